// SPDX-License-Identifier: Apache-2.0
/* The papers' stores and slab maps are given to a context when it is created. A
 * context without them returns UNIMPLEMENTED, and so does every context of a build
 * without them (VOXELD_PAPER=OFF). */
#include <string.h>

#include "gpu/svdag/table/table.h"
#include "gpu/paper/paper.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

static const char *const names[VXD_SVDAG_N_STORES] = {"arena", "atomic64", "ticket",
                                                      "accel32", "accel8"};

/* What a requested store must return: OK, or UNIMPLEMENTED with the store's name. */
static void check_answer(enum vxd_status status, const struct vxd_err *err,
                         bool has_stores, const char *field, const char *name)
{
    if (has_stores) {
        CHECK_INT(status, VXD_OK);
        return;
    }
    CHECK_INT(status, VXD_UNIMPLEMENTED);
    CHECK_INT(err->code, VXD_UNIMPLEMENTED);
    CHECK_STR(err->field, field);
    CHECK(strstr(err->message, name) != NULL);
    CHECK(strstr(err->message, "VOXELD_PAPER=OFF") != NULL);
    CHECK(strstr(err->message, "known here: ") != NULL);
}

static void ask_for_stores(struct vxd_queue *queue, bool has_stores)
{
    for (int store = VXD_SVDAG_ATOMIC64; store < VXD_SVDAG_N_STORES; store++) {
        const struct vxd_svdag_spec spec = {.format = {5, 4, false},
                                            .store = (enum vxd_svdag_store)store,
                                            .table_items = 64};
        const struct vxd_svdag_table_spec table_spec = {(enum vxd_svdag_store)store, 2,
                                                        10, 0};
        struct vxd_svdag *svdag;
        struct vxd_svdag_table *table;
        struct vxd_err err = {0};

        check_answer(vxd_svdag_create(queue, &spec, &svdag, &err), &err, has_stores,
                     "store", names[store]);
        CHECK((svdag != NULL) == has_stores);
        check_answer(vxd_svdag_table_create(queue, &table_spec, &table, &err), &err,
                     has_stores, "store", names[store]);
        CHECK((table != NULL) == has_stores);
        vxd_svdag_table_destroy(queue, table);
        vxd_svdag_destroy(queue, svdag);
    }
}

static void ask_for_slab_maps(struct vxd_queue *queue, struct vxd_context *context,
                              bool has_slabs)
{
    struct vxd_hashmap_spec spec = {.key_dtype = VXD_INT32,
                                    .n_components = 3,
                                    .index = VXD_HASH_SLAB,
                                    .capacity = 10};
    struct vxd_hashmap *map;
    struct vxd_hashmap *copy;
    struct vxd_err err = {0};

    check_answer(vxd_hashmap_create(queue, &spec, &map, &err), &err, has_slabs, "index",
                 "slab");
    CHECK((map != NULL) == has_slabs);
    CHECK((vxd_hashmap_bytes(context, &spec) != 0) == has_slabs);
    vxd_hashmap_destroy(queue, map);
    spec.index = VXD_HASH_OPEN;
    REQUIRE(vxd_hashmap_create(queue, &spec, &map, NULL) == VXD_OK);
    check_answer(vxd_hashmap_copy(queue, map, queue, VXD_HASH_SLAB, &copy, &err), &err,
                 has_slabs, "index", "slab");
    CHECK((copy != NULL) == has_slabs);
    vxd_hashmap_destroy(queue, copy);
    vxd_hashmap_destroy(queue, map);
}

static void ask(enum vxd_backend backend, const struct vxd_context_extras *extras,
                bool has_stores)
{
    const struct vxd_context_options options = {
        .backend = backend, .n_threads = 1, .extras = extras};
    const struct vxd_svdag_spec arena = {.format = {5, 4, false}};
    struct vxd_context *context;
    struct vxd_queue *queue;
    struct vxd_svdag *svdag;

    REQUIRE(vxd_context_create(&options, &context, NULL) == VXD_OK);
    REQUIRE(vxd_queue_create(context, &queue, NULL) == VXD_OK);
    ask_for_stores(queue, has_stores);
    ask_for_slab_maps(queue, context, has_stores);
    CHECK_INT(vxd_svdag_create(queue, &arena, &svdag, NULL), VXD_OK);
    vxd_svdag_destroy(queue, svdag);
    CHECK_INT(vxd_queue_wait(queue, NULL), VXD_OK);
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
}

static void test_context_without_the_papers_stores_names_what_is_known(void)
{
    ask(VXD_BACKEND_CPU, NULL, false);
    if (vxd_cuda_device_count(NULL, 0) > 0) {
        ask(VXD_BACKEND_CUDA, NULL, false);
    }
}

static void test_context_with_the_papers_stores_has_those_of_its_build(void)
{
#if defined(VXD_WITH_PAPER)
    const bool has_stores = true;
#else
    const bool has_stores = false;
#endif

    CHECK((vxd_paper_stores() != NULL) == has_stores);
    ask(VXD_BACKEND_CPU, vxd_paper_stores(), has_stores);
    if (vxd_cuda_device_count(NULL, 0) > 0) {
        ask(VXD_BACKEND_CUDA, vxd_paper_stores(), has_stores);
    }
}

static void test_stores_have_the_names_of_configurations(void)
{
    for (int store = 0; store < VXD_SVDAG_N_STORES; store++) {
        CHECK_STR(vxd_svdag_store_name((enum vxd_svdag_store)store), names[store]);
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_context_without_the_papers_stores_names_what_is_known),
    VXD_TEST(test_context_with_the_papers_stores_has_those_of_its_build),
    VXD_TEST(test_stores_have_the_names_of_configurations),
};

VXD_TEST_MAIN(tests)
