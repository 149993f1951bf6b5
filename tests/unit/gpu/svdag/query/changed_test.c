// SPDX-License-Identifier: Apache-2.0
/* In which version voxels changed last, against dense grids of the versions, voxel by voxel. */
#include "tests/support/test.h"

#include "gpu/svdag/query/query.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/svdag/svdag_scene.h"

/* Codes of two grids with much in common: every seventh voxel of the first one is the second's. */
static void make_grids(const struct vxd_svdag_format *format, uint32_t *grids[2])
{
    size_t n = (size_t)1 << (3 * format->depth);
    uint32_t *other = gpu_svdag_random_grid(format, 11);

    grids[0] = gpu_svdag_random_grid(format, 10);
    grids[1] = gpu_alloc(n * sizeof *grids[1]);
    for (size_t i = 0; i < n; i++) {
        grids[1][i] = i / 64 % 7 == 0 ? other[i] : grids[0][i];
    }
    free(other);
}

static void compare(struct gpu_env *env, const struct vxd_svdag_format *format)
{
    int side = 1 << format->depth;
    size_t n = (size_t)side * (size_t)side * (size_t)side;
    uint32_t *grids[2];
    struct gpu_svdag_voxel *voxels[2];
    size_t n_voxels[2];
    struct gpu_svdag_scene scene;
    uint32_t roots[5];
    struct vxd_buffer arrays[3];
    int32_t *places = gpu_alloc((n + 3) * 3 * sizeof *places);
    uint32_t *indices;
    size_t n_wrong = 0;
    size_t n_changed = 0;

    make_grids(format, grids);
    for (int k = 0; k < 2; k++) {
        voxels[k] = gpu_svdag_grid_voxels(grids[k], format->depth, &n_voxels[k]);
    }
    gpu_svdag_scene_build_two(env->queue, format,
                              (const struct gpu_svdag_voxel *const *)voxels, n_voxels,
                              &scene);
    /* Newest first: the second grid twice, the first one, nothing, the first one. */
    roots[0] = roots[1] = scene.other;
    roots[2] = roots[4] = scene.root;
    roots[3] = VXD_SVDAG_EMPTY;
    for (size_t i = 0; i < n; i++) {
        places[3 * i] = (int32_t)(i / (size_t)side / (size_t)side);
        places[3 * i + 1] = (int32_t)(i / (size_t)side) % side;
        places[3 * i + 2] = (int32_t)i % side;
    }
    for (int i = 0; i < 9; i++) { /* outside of the scene */
        places[3 * n + (size_t)i] = i % 2 == 0 ? -1 - i : side + i;
    }
    arrays[0] = gpu_to_device(env, roots, sizeof roots);
    arrays[1] = gpu_to_device(env, places, (n + 3) * 3 * sizeof *places);
    arrays[2] = gpu_to_device(env, NULL, (n + 3) * sizeof *indices);
    CHECK_INT(vxd_svdag_changed(env->queue, scene.svdag, arrays[0].ptr, 5, arrays[1].ptr,
                                n + 3, arrays[2].ptr, NULL),
              VXD_OK);
    indices = gpu_to_host(env, &arrays[2]);
    for (size_t i = 0; i < n; i++) {
        uint32_t known = grids[1][i] != grids[0][i] ? 1 : grids[0][i] != 0 ? 2 : 4;

        n_wrong += indices[i] != known ? 1 : 0;
        n_changed += known == 1 ? 1 : 0;
    }
    CHECK_INT(n_wrong, 0);
    CHECK(n_changed > 100 && n_changed < n / 2);
    for (size_t i = n; i < n + 3; i++) {
        CHECK_INT(indices[i], 4);
    }
    CHECK_INT(vxd_svdag_changed(env->queue, scene.svdag, arrays[0].ptr, 0, arrays[1].ptr,
                                n, arrays[2].ptr, NULL),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_svdag_changed(env->queue, scene.svdag, NULL, 0, NULL, 0, NULL, NULL),
              VXD_OK);
    free(indices);
    for (int k = 0; k < 3; k++) {
        vxd_device_free(env->queue, &arrays[k]);
    }
    gpu_svdag_scene_free(env->queue, &scene);
    for (int k = 0; k < 2; k++) {
        free(voxels[k]);
        free(grids[k]);
    }
    free(places);
}

static void every_format(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[] = {
        {5, 0, false}, {5, 0, true}, {5, 4, true}, {6, 8, false}, {5, 16, true}};

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        compare(env, &formats[i]);
    }
}

static void test_changes_of_voxels_are_those_of_dense_grids(void)
{
    gpu_each_backend(every_format);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_changes_of_voxels_are_those_of_dense_grids),
};

VXD_TEST_MAIN(tests)
