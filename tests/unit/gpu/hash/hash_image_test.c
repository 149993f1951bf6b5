// SPDX-License-Identifier: Apache-2.0
/* Images of hash maps: across backends and indexes, and damaged images. */
#include "tests/support/hash/hash_keys.h"
#include "tests/support/hash/hash_run.h"
#include "tests/support/test.h"

enum {
    N_KEYS = 3000
};

static const struct vxd_hashmap_spec image_spec = {
    .key_dtype = VXD_INT64,
    .n_components = 3,
    .n_values = 2,
    .values = {{VXD_UINT8, 3}, {VXD_FLOAT64, 2}}};

/* A map with gaps in its numbers. */
static void open_map(struct hash_run *run, struct gpu_env *env, enum vxd_hash_index index,
                     const char *why)
{
    struct vxd_hashmap_spec spec = image_spec;
    struct hash_batch batch = {.n = N_KEYS};
    uint64_t random = 4;

    spec.index = index;
    hash_run_create(run, env, &spec, why);
    batch.keys = gpu_alloc(N_KEYS * run->model.key_bytes);
    hash_keys_make(&spec, HASH_KEYS_MIXED, &random, batch.keys, N_KEYS);
    for (int v = 0; v < spec.n_values; v++) {
        batch.values[v] = gpu_alloc(N_KEYS * run->model.row_bytes[v]);
        memset(batch.values[v], v + 1, N_KEYS * run->model.row_bytes[v]);
    }
    hash_run_insert(run, &batch, VXD_HASH_FIRST, 0);
    hash_run_erase(run, batch.keys, N_KEYS / 3, VXD_HASH_FIRST, false);
    free(batch.keys);
    free(batch.values[0]);
    free(batch.values[1]);
}

/* To a CPU context and back, by copies and by images, with a change of the index. */
static void travel(struct gpu_env *env, enum vxd_hash_index index)
{
    enum vxd_hash_index other = index == VXD_HASH_OPEN ? GPU_OTHER_INDEX : VXD_HASH_OPEN;
    struct hash_run home;
    struct hash_run away;
    struct gpu_env cpu;
    struct vxd_hashmap *back = NULL;
    struct vxd_hashmap_image image;
    struct vxd_err err = {0};

    gpu_env_create(&cpu, VXD_BACKEND_CPU, 2, 0, 0);
    open_map(&home, env, index, "a map that stays");
    away = home; /* the same model, borrowed */
    away.env = &cpu;
    REQUIRE(vxd_hashmap_copy(env->queue, home.map, cpu.queue, other, &away.map, &err) ==
            VXD_OK);
    hash_run_verify(&away);
    REQUIRE(vxd_hashmap_export(cpu.queue, away.map, &image, &err) == VXD_OK);
    vxd_hashmap_destroy(cpu.queue, away.map);
    image.spec.index = index;
    REQUIRE(vxd_hashmap_import(env->queue, &image, &back, &err) == VXD_OK);
    vxd_hashmap_image_free(&image);
    away = home;
    away.map = back;
    away.why = "a map that came back";
    hash_run_verify(&away);
    vxd_hashmap_destroy(env->queue, back);
    hash_run_verify(&home);
    CHECK_INT(home.n_failures + away.n_failures, 0);
    hash_run_destroy(&home);
    gpu_wait(&cpu);
    gpu_env_destroy(&cpu);
}

static void test_hashmap_copied_to_another_backend_and_back_is_the_same(void)
{
    hash_each(travel);
}

/* An image that the test damages: entries 0 to 9 with distinct keys. */
static bool make_image(struct gpu_env *env, enum vxd_hash_index index,
                       struct vxd_hashmap_image *image)
{
    struct vxd_hashmap_spec spec = image_spec;
    struct vxd_err err = {0};

    spec.index = index;
    spec.capacity = 64;
    if (vxd_hashmap_image_alloc(env->context, &spec, 10, image, &err) != VXD_OK) {
        return false;
    }
    for (int i = 0; i < 10; i++) {
        ((int32_t *)image->indices.ptr)[i] = 2 * i;
        for (int c = 0; c < 3; c++) {
            /* Packed keys and wide ones. */
            ((int64_t *)image->keys.ptr)[3 * i + c] = (int64_t)i << 10 * c;
        }
    }
    memset(image->values[0].ptr, 1, image->values[0].n_bytes);
    memset(image->values[1].ptr, 2, image->values[1].n_bytes);
    return true;
}

static void spoil(struct vxd_hashmap_image *image, int how)
{
    int32_t *indices = image->indices.ptr;
    int64_t *keys = image->keys.ptr;

    switch (how) {
    case 1:
        indices[4] = indices[3];
        break;
    case 2:
        indices[4] = indices[6];
        break;
    case 3:
        indices[0] = -1;
        break;
    case 4:
        indices[9] = 64;
        break;
    case 5:
        indices[9] = INT32_MAX;
        break;
    case 6: /* a packed key twice */
        memcpy(keys + 3, keys, 3 * sizeof *keys);
        break;
    case 7: /* a wide one */
        keys[3] = keys[27] = INT64_MAX;
        keys[4] = keys[28] = 1;
        keys[5] = keys[29] = 2;
        break;
    default:
        break;
    }
}

static void refuse_lies(struct gpu_env *env, enum vxd_hash_index index)
{
    for (int how = 0; how < 8; how++) {
        struct vxd_hashmap_image image;
        struct vxd_hashmap *map = NULL;
        struct vxd_err err = {0};
        enum vxd_status status;

        REQUIRE(make_image(env, index, &image));
        spoil(&image, how);
        status = vxd_hashmap_import(env->queue, &image, &map, &err);
        CHECK_INT(status, how == 0 ? VXD_OK : VXD_DATA_LOSS);
        if (status == VXD_OK) {
            vxd_hashmap_destroy(env->queue, map);
        }
        /* The queue still works. */
        CHECK_INT(vxd_queue_wait(env->queue, &err), VXD_OK);
        vxd_hashmap_image_free(&image);
    }
}

static void test_hashmap_images_that_lie_are_refused(void)
{
    hash_each(refuse_lies);
}

static void image_empty(struct gpu_env *env, enum vxd_hash_index index)
{
    struct vxd_hashmap_spec spec = image_spec;
    struct hash_run run;

    spec.index = index;
    hash_run_create(&run, env, &spec, "an empty map");
    hash_run_through_image(&run, VXD_HASH_OPEN);
    hash_run_through_image(&run, GPU_OTHER_INDEX);
    hash_run_through_copy(&run, VXD_HASH_OPEN);
    CHECK_INT(run.n_failures, 0);
    hash_run_destroy(&run);
}

static void test_hashmap_empty_image_is_an_empty_map(void)
{
    hash_each(image_empty);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_hashmap_copied_to_another_backend_and_back_is_the_same),
    VXD_TEST(test_hashmap_images_that_lie_are_refused),
    VXD_TEST(test_hashmap_empty_image_is_an_empty_map),
};

VXD_TEST_MAIN(tests)
