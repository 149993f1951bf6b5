// SPDX-License-Identifier: Apache-2.0
#include "gpu/slac/slac.h"
#include "gpu/slac/slac_internal.h"
#include "tests/support/slac/slac_scene.h"
#include "tests/support/test.h"

#include <math.h>

#define AMPLITUDE 0.03

static void try_it(struct gpu_env *env)
{
    struct slac_scene scene;
    struct vxd_slac_fragment fragments[SLAC_MAX_FRAGMENTS];
    struct vxd_buffer *buffers;
    struct vxd_slac_args args = {.fragments = fragments};
    struct vxd_slac *slac = NULL;
    struct vxd_slac_loss loss;
    struct vxd_volume_pose poses[SLAC_MAX_FRAGMENTS];
    struct vxd_err err = {0};
    struct vxd_slac_info info;

    slac_scene_make(&scene, 20, 96, AMPLITUDE, 0.0003, 0.02);
    slac_scene_upload(env, &scene, fragments, &buffers);
    for (int rigid = 1; rigid >= 0; rigid--) {
        size_t n;
        float *points;
        float *truth;
        double left;
        struct slac_score score;
        int steps = getenv("STEPS") ? atoi(getenv("STEPS")) : 10;

        args.n_fragments = scene.n_fragments;
        args.options.is_rigid = rigid == 1;
        args.options.lambda = getenv("LAMBDA") ? atof(getenv("LAMBDA")) : 0;
        args.options.cell_m = getenv("CELL") ? atof(getenv("CELL")) : 0;
        args.options.voxel_m = getenv("VOXEL") ? atof(getenv("VOXEL")) : 0;
        args.options.tolerance = getenv("TOL") ? atof(getenv("TOL")) : 0;
        args.options.solver_steps = getenv("CG") ? atoi(getenv("CG")) : 0;
        if (vxd_slac_create(env->queue, &args, &slac, &err) != VXD_OK) {
            printf("create %s: %s\n", err.field, err.message);
            exit(1);
        }
        vxd_slac_get_info(slac, &info);
        printf("%zu points %zu nodes %zu edges\n", info.n_points, info.n_control_points, info.n_edges);
        for (int i = 0; i <= steps; i++) {
            if (vxd_slac_find_pairs(env->queue, slac, &loss, &err) != VXD_OK) {
                printf("pairs %s: %s\n", err.field, err.message);
                exit(1);
            }
            printf("%d: data %g (rms %.2f mm) reg %g pairs %zu edges %zu\n", i, loss.data, 1e3 * sqrt(loss.data / (double)loss.n_pairs), loss.regularizer, loss.n_pairs, loss.n_edges);
            if (i < steps) {
                CHECK(vxd_slac_solve(env->queue, slac, &err) == VXD_OK);
                struct vxd_slac_work work;
                vxd_slac_read(env->queue, slac->state.work, sizeof work, &work, &err);
                printf("   cg %d %g\n", work.n_steps, sqrt(work.rz / work.first_rz));
            }
        }
        CHECK(vxd_slac_read_poses(env->queue, slac, poses, &err) == VXD_OK);
        points = slac_scene_map(env, &scene, vxd_slac_grid(slac), slac->options.cell_m, poses, &n);
        truth = slac_scene_truth(&scene, &n);
        left = slac_align(points, truth, n);
        score = slac_score(points, n, truth, n, 0.02);
        printf("left %.2f mm; F %.4f P %.4f R %.4f; distortion left %.2f of %.2f\n", 1e3 * left, score.f, score.precision, score.recall,
               1e3 * slac_distortion_left(env, &scene, vxd_slac_grid(slac), slac->options.cell_m, AMPLITUDE),
               1e3 * slac_distortion_left(env, &scene, NULL, slac->options.cell_m, AMPLITUDE));
        if (getenv("DUMP")) {
            static const struct vxd_volume_pose none = {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0}};
            struct vxd_volume_pose id[SLAC_MAX_FRAGMENTS];
            for (int i = 0; i < SLAC_MAX_FRAGMENTS; i++) id[i] = none;
            float *seen = slac_scene_map(env, &scene, NULL, slac->options.cell_m, id, &n);
            float *c = slac_scene_map(env, &scene, vxd_slac_grid(slac), slac->options.cell_m, id, &n);
            FILE *f = fopen(rigid ? "/work/tmp/d_rigid.bin" : "/work/tmp/d_slac.bin", "wb");
            for (size_t i = 0; i < n; i++) { double p[3] = {seen[3*i], seen[3*i+1], seen[3*i+2]}, o[3]; float g[3]; slac_distort(p, AMPLITUDE, o); for (int a = 0; a < 3; a++) g[a] = (float)o[a]; fwrite(seen+3*i, 4, 3, f); fwrite(c+3*i,4,3,f); fwrite(g,4,3,f);}
            fclose(f); free(seen); free(c);
        }
        vxd_slac_destroy(env->queue, slac);
        free(points);
        free(truth);
    }
    slac_buffers_free(env, &scene, buffers);
    slac_scene_free(&scene);
}

static void test_try(void)
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    try_it(&env);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {VXD_TEST(test_try)};

VXD_TEST_MAIN(tests)
