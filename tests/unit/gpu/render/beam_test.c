// SPDX-License-Identifier: Apache-2.0
/* Beams: of every tile of a picture, against the rays of its pixels, one by one. */
#include "tests/support/test.h"

#include <math.h>

#include "gpu/render/beam_math.h"
#include "gpu/svdag/store/store.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    N_NODES = 2 * VXD_RENDER_NODES,
    N_SAMPLES = 3
};

struct counts {
    size_t n_rays, n_hits, n_started, n_empty_tiles, n_tiles;
};

static struct vxd_render_picture random_picture(double side, uint64_t *state)
{
    struct vxd_render_picture picture = {.mode = VXD_RENDER_PATH,
                                         .width = 1 + (uint32_t)(gpu_random(state) % 50),
                                         .height = 1 + (uint32_t)(gpu_random(state) % 40),
                                         .voxel_size_m = 1,
                                         .samples = N_SAMPLES,
                                         .bounces = 1,
                                         .seed = (uint32_t)gpu_random(state),
                                         .sun_direction = {0, 0, 1}};
    struct vxd_render_camera *camera = &picture.camera;

    camera->kind = (enum vxd_render_camera_kind)(gpu_random(state) % 2);
    for (int axis = 0; axis < 3; axis++) {
        camera->eye[axis] = gpu_random_float(state, -0.6f, 1.6f) * side;
        camera->target[axis] = gpu_random_float(state, 0.2f, 0.8f) * side;
        camera->up[axis] = gpu_random_float(state, -1, 1);
        if (gpu_random(state) % 4 == 0) { /* on planes, along axes */
            camera->eye[axis] = floor(camera->eye[axis]);
            camera->target[axis] = camera->eye[axis];
        }
    }
    camera->target[0] += camera->target[0] == camera->eye[0] ? 1 : 0;
    camera->fov_y_deg = gpu_random_float(state, 1, 120);
    camera->view_height = gpu_random_float(state, 0.1f, 2) * side;
    return picture;
}

static bool same_hit(const struct vxd_render_hit *a, const struct vxd_render_hit *b)
{
    return a->t == b->t && a->axis == b->axis && a->value == b->value &&
           a->height == b->height && memcmp(a->voxel, b->voxel, sizeof a->voxel) == 0;
}

/* The ray of a pixel, a sample of it, from the eye and from where the beam ends. */
static void check_ray(const struct vxd_render_call *call, uint32_t x, uint32_t y,
                      uint32_t sample, float start, struct counts *counts)
{
    struct vxd_render_limit limit = {0, (float)INFINITY, 0, 0, NULL};
    uint32_t nodes[VXD_RENDER_NODES];
    struct vxd_render_hit from_eye = {0};
    struct vxd_render_hit from_start = {0};
    struct vxd_render_origin origin;
    struct vxd_render_ray ray;
    float direction[3];
    float at[2];
    bool is_hit;

    vxd_render_place_sample(&call->params, x, y, sample, at);
    vxd_render_direction(&call->params, x, y, at, direction);
    vxd_render_origin_of(&call->params, at, &origin);
    ray = vxd_render_ray_of(&origin, direction, call->view.depth);
    is_hit = vxd_render_trace(&call->view, call->root, &ray, &limit, nodes, 1, &from_eye);
    limit.least = start;
    CHECK_INT(
        vxd_render_trace(&call->view, call->root, &ray, &limit, nodes, 1, &from_start),
        is_hit);
    if (is_hit) {
        CHECK(from_eye.t >= start);
        CHECK(same_hit(&from_eye, &from_start));
    }
    counts->n_rays++;
    counts->n_hits += is_hit ? 1 : 0;
    counts->n_started += is_hit && start > 0.5f * from_eye.t ? 1 : 0;
}

static void check_tiles(const struct vxd_render_call *call, struct counts *counts)
{
    for (uint32_t y = 0; y < call->params.height; y++) {
        for (uint32_t x = 0; x < call->params.width; x++) {
            uint32_t nodes[N_NODES];
            float start =
                vxd_render_tile_start(call, x / VXD_RENDER_BEAM * VXD_RENDER_BEAM,
                                      y / VXD_RENDER_BEAM * VXD_RENDER_BEAM, nodes, 1);

            CHECK(start >= 0);
            if (x % VXD_RENDER_BEAM == 0 && y % VXD_RENDER_BEAM == 0) {
                counts->n_tiles++;
                counts->n_empty_tiles += isinf(start) ? 1 : 0;
            }
            for (uint32_t sample = 0; sample < N_SAMPLES; sample++) {
                check_ray(call, x, y, sample, start, counts);
            }
        }
    }
}

static void check_picture(struct gpu_env *env, const struct gpu_svdag_scene *scene,
                          const struct vxd_render_picture *picture, struct counts *counts)
{
    struct vxd_render_plan *plan = NULL;
    struct vxd_render_call call = {.view = scene->svdag->view, .root = scene->root};

    REQUIRE(vxd_render_plan_create(env->queue, picture, &plan, NULL) == VXD_OK);
    REQUIRE(vxd_queue_wait(env->queue, NULL) == VXD_OK);
    call.params = plan->params;
    check_tiles(&call, counts);
    vxd_render_plan_destroy(env->queue, plan);
}

static void test_no_ray_of_a_tile_hits_before_its_beam_ends(void)
{
    static const struct vxd_svdag_format formats[5] = {
        {4, 0, false}, {4, 4, true}, {5, 4, false}, {4, 16, false}, {5, 8, true}};
    struct gpu_env env = {0};
    struct counts counts = {0};
    uint64_t state = 11;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    for (int i = 0; i < 5; i++) {
        uint32_t *grid = gpu_svdag_random_grid(&formats[i], (uint64_t)i);
        size_t n;
        struct gpu_svdag_voxel *voxels =
            gpu_svdag_grid_voxels(grid, formats[i].depth, &n);
        struct gpu_svdag_scene scene;

        gpu_svdag_scene_build(env.queue, &formats[i], voxels, n, &scene);
        for (int k = 0; k < 24; k++) {
            struct vxd_render_picture picture =
                random_picture((double)((int64_t)1 << formats[i].depth), &state);

            check_picture(&env, &scene, &picture, &counts);
        }
        gpu_svdag_scene_free(env.queue, &scene);
        free(voxels);
        free(grid);
    }
    CHECK(counts.n_hits > counts.n_rays / 20);
    gpu_env_destroy(&env);
}

/* Clusters of voxels in a scene of 2^17 a side, each seen from far away. */
static void test_beams_of_a_large_scene_end_near_what_is_hit(void)
{
    struct vxd_svdag_format format = {17, 4, false};
    size_t n = 20000;
    struct gpu_svdag_voxel *voxels = gpu_svdag_random_voxels(&format, 3, &n);
    struct gpu_svdag_scene scene;
    struct gpu_env env = {0};
    struct counts counts = {0};
    uint64_t state = 12;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    gpu_svdag_scene_build(env.queue, &format, voxels, n, &scene);
    for (size_t i = 0; i < 24; i++) {
        struct vxd_render_picture picture = random_picture(40, &state);
        uint32_t voxel[3];

        gpu_svdag_unmorton(voxels[n / 24 * i].morton, voxel);
        picture.camera.fov_y_deg = 0.1;
        for (int axis = 0; axis < 3; axis++) {
            picture.camera.target[axis] = (double)voxel[axis] + 0.5;
            picture.camera.eye[axis] = 65536 + gpu_random_float(&state, -60000, 60000);
        }
        check_picture(&env, &scene, &picture, &counts);
    }
    CHECK(counts.n_hits > 1000);
    CHECK(counts.n_empty_tiles > 0);
    CHECK(counts.n_started >= counts.n_hits / 10 * 9);
    gpu_svdag_scene_free(env.queue, &scene);
    gpu_env_destroy(&env);
    free(voxels);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_no_ray_of_a_tile_hits_before_its_beam_ends),
    VXD_TEST(test_beams_of_a_large_scene_end_near_what_is_hit),
};

VXD_TEST_MAIN(tests)
