// SPDX-License-Identifier: Apache-2.0
/* Coordinate sets derived together, compared with each derived alone. */
#include <string.h>

#include "tests/support/sparse/coord_set_model.h"
#include "tests/support/test.h"

static const int32_t unbounded[3] = {0, 0, 0};

/* Levels as in networks, with others between them: each is derived from the earlier
 * set that `of` names; 0 is the input. */
static void chain(struct gpu_env *env)
{
    enum {
        N = 12
    };
    static const struct {
        int of;
        int32_t stride;
    } links[N] = {{0, 2}, {1, 2}, {1, 4}, {3, 2}, {0, 3},  {5, 2},
                  {6, 2}, {0, 8}, {8, 1}, {2, 2}, {10, 2}, {11, 2}};
    size_t n = 120000;
    int32_t *coords = gpu_model_random(n, 3, false, 78);
    struct gpu_model models[N + 1];
    struct gpu_coord_set coord_sets[N + 1];
    struct vxd_sparse_derive_request requests[N];
    struct vxd_buffer scratch =
        gpu_to_device(env, NULL, vxd_coord_set_scratch_bytes(env->queue, n, n));
    struct vxd_err err = {0};

    models[0] = gpu_model_of(coords, n, 3, unbounded);
    CHECK_INT(gpu_coord_set_make(env, coords, n, 3, unbounded, n, NULL, &coord_sets[0]),
              VXD_OK);
    for (int i = 0; i < N; i++) {
        int32_t s = links[i].stride;
        int32_t strides[3] = {s, s, s};

        models[i + 1] = gpu_model_floors(&models[links[i].of], strides);
        gpu_coord_set_alloc(env, &coord_sets[i + 1], models[i + 1].n, unbounded);
        requests[i] = (struct vxd_sparse_derive_request){
            VXD_DERIVE_FLOOR,
            {{2, 2, 2}, {s, s, s}, {0, 0, 0}, {1, 1, 1}, false},
            &coord_sets[links[i].of].coord_set,
            &coord_sets[i + 1].coord_set};
    }
    CHECK_INT(vxd_coord_sets_derive(env->queue, requests, N, scratch.ptr, scratch.n_bytes,
                                    &err),
              VXD_OK);
    for (int i = 0; i <= N; i++) {
        gpu_coord_set_fetch(env, &coord_sets[i]);
        CHECK_INT(gpu_model_other_rows(&coord_sets[i], &models[i]), 0);
        CHECK_INT(gpu_model_other_blocks(env, &coord_sets[i], &models[i]), 0);
        gpu_coord_set_free(env, &coord_sets[i]);
        free(models[i].keys);
    }
    vxd_device_free(env->queue, &scratch);
    free(coords);
    gpu_wait(env);
}

/* Links of a chain of supports, each derived from the previous set; the fourth skips
 * cells, so its outputs are not ranges. */
static const struct vxd_sparse_geometry chain_links[] = {
    {{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, false},
    {{3, 3, 3}, {2, 2, 2}, {1, 1, 0}, {1, 1, 1}, false},
    {{1, 1, 3}, {1, 1, 2}, {0, 0, 0}, {1, 1, 1}, false},
    {{2, 2, 1}, {3, 2, 1}, {0, 1, 0}, {1, 1, 1}, false},
    {{5, 3, 3}, {3, 1, 2}, {2, 1, 0}, {1, 1, 1}, false},
    {{2, 3, 2}, {1, 3, 2}, {0, 0, 1}, {1, 1, 1}, false}};

enum {
    N_LINKS = (int)(sizeof chain_links / sizeof chain_links[0])
};

/* n random cells of a shape in three samples, derived together and one by one. */
static void check_supports(struct gpu_env *env, size_t n, const int32_t shape[3])
{
    int32_t *coords = gpu_model_random(n, 3, true, n);
    struct gpu_coord_set alone[N_LINKS + 1];
    struct gpu_coord_set coord_sets[N_LINKS + 1];
    struct vxd_sparse_derive_request requests[N_LINKS];
    struct vxd_buffer scratch;
    size_t scratch_bytes = 0;
    int32_t shapes[N_LINKS + 1][3];
    struct vxd_err err = {0};

    memcpy(shapes[0], shape, sizeof shapes[0]);
    for (size_t i = 0; i < n; i++) {
        for (int axis = 0; axis < 3; axis++) {
            int32_t *c = &coords[4 * i + 1 + (size_t)axis];

            *c = (int32_t)((uint32_t)*c % (uint32_t)shape[axis]);
        }
    }
    CHECK_INT(gpu_coord_set_make(env, coords, n, 3, shape, n, NULL, &alone[0]), VXD_OK);
    coord_sets[0] = alone[0];
    for (int i = 0; i < N_LINKS; i++) {
        size_t n_candidates;
        size_t n_bytes;
        size_t capacity;

        CHECK_INT(
            vxd_sparse_out_shape(&chain_links[i], shapes[i], NULL, shapes[i + 1], &err),
            VXD_OK);
        capacity = vxd_sparse_derive_bound(VXD_DERIVE_SUPPORT, &chain_links[i],
                                           alone[i].n_rows, shapes[i + 1], 3);
        CHECK_INT(gpu_coord_set_derive(env, VXD_DERIVE_SUPPORT, &chain_links[i],
                                       &alone[i], shapes[i + 1], capacity, &alone[i + 1]),
                  VXD_OK);
        gpu_coord_set_alloc(env, &coord_sets[i + 1], alone[i + 1].n_rows, shapes[i + 1]);
        n_candidates = vxd_sparse_derive_candidates(VXD_DERIVE_SUPPORT, &chain_links[i],
                                                    coord_sets[i].coord_set.capacity);
        n_bytes = vxd_coord_set_scratch_bytes(env->queue, n_candidates, capacity);
        scratch_bytes = n_bytes > scratch_bytes ? n_bytes : scratch_bytes;
        requests[i] = (struct vxd_sparse_derive_request){
            VXD_DERIVE_SUPPORT, chain_links[i], &coord_sets[i].coord_set,
            &coord_sets[i + 1].coord_set};
    }
    scratch = gpu_to_device(env, NULL, scratch_bytes);
    CHECK_INT(vxd_coord_sets_derive(env->queue, requests, N_LINKS, scratch.ptr,
                                    scratch.n_bytes, &err),
              VXD_OK);
    for (int i = 1; i <= N_LINKS; i++) {
        struct gpu_model model;

        gpu_coord_set_fetch(env, &coord_sets[i]);
        CHECK(n == 1 || alone[i].n_rows > 0);
        model = gpu_model_of(alone[i].coords, alone[i].n_rows, 3, shapes[i]);
        CHECK_INT(gpu_model_other_rows(&coord_sets[i], &model), 0);
        CHECK_INT(gpu_model_other_blocks(env, &coord_sets[i], &model), 0);
        gpu_coord_set_free(env, &coord_sets[i]);
        gpu_coord_set_free(env, &alone[i]);
        free(model.keys);
    }
    gpu_coord_set_free(env, &alone[0]);
    vxd_device_free(env->queue, &scratch);
    free(coords);
    gpu_wait(env);
}

static void supports_in_chains(struct gpu_env *env)
{
    static const int32_t small[3] = {96, 64, 41};
    static const int32_t big[3] = {1440, 1440, 41};

    check_supports(env, 20000, small);
    check_supports(env, 60000, big);
    check_supports(env, 300, big); /* no memory for tables */
    check_supports(env, 1, small);
}

static void test_supports_derived_together_are_those_derived_one_by_one(void)
{
    gpu_each_backend(supports_in_chains);
}

static void test_sets_derived_together_are_those_derived_one_by_one(void)
{
    gpu_each_backend(chain);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_sets_derived_together_are_those_derived_one_by_one),
    VXD_TEST(test_supports_derived_together_are_those_derived_one_by_one),
};

VXD_TEST_MAIN(tests)
