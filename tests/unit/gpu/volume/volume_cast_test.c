// SPDX-License-Identifier: Apache-2.0
/* Ray casts against brute-force marching at an eighth of a voxel, and against the rendered scene;
 * equal pictures on all backends. */
#include "tests/support/test.h"
#include "tests/support/volume/volume_helpers.h"

#include <math.h>

#define WIDTH 72
#define HEIGHT 56
#define N_PIXELS ((size_t)WIDTH * HEIGHT)
#define N_SHOTS 5
#define VOXEL_M 0.02
#define MU_M 0.08

/* A picture in host memory. */
struct picture {
    float *depth;
    float *vertex;
    float *normal;
    uint8_t *colour;
    uint8_t *mask;
};

static void cast(struct gpu_env *env, struct vxd_volume *volume,
                 struct vxd_volume_cast_args args, struct picture *out)
{
    struct vxd_buffer depth = gpu_to_device(env, NULL, N_PIXELS * sizeof(float));
    struct vxd_buffer vertex = gpu_to_device(env, NULL, 3 * N_PIXELS * sizeof(float));
    struct vxd_buffer normal = gpu_to_device(env, NULL, 3 * N_PIXELS * sizeof(float));
    struct vxd_buffer colour = gpu_to_device(env, NULL, 3 * N_PIXELS);
    struct vxd_buffer mask = gpu_to_device(env, NULL, N_PIXELS);
    struct vxd_err err = {0};

    args.depth = depth.ptr;
    args.vertex = vertex.ptr;
    args.normal = normal.ptr;
    args.colour = colour.ptr;
    args.mask = mask.ptr;
    CHECK_INT(vxd_volume_cast(env->queue, volume, &args, &err), VXD_OK);
    *out = (struct picture){gpu_to_host(env, &depth), gpu_to_host(env, &vertex),
                            gpu_to_host(env, &normal), gpu_to_host(env, &colour),
                            gpu_to_host(env, &mask)};
    vxd_device_free(env->queue, &depth);
    vxd_device_free(env->queue, &vertex);
    vxd_device_free(env->queue, &normal);
    vxd_device_free(env->queue, &colour);
    vxd_device_free(env->queue, &mask);
}

static void picture_free(struct picture *picture)
{
    free(picture->depth);
    free(picture->vertex);
    free(picture->normal);
    free(picture->colour);
    free(picture->mask);
}

static struct vxd_volume_cast_args cast_args(int pose)
{
    return (struct vxd_volume_cast_args){.camera = volume_camera(WIDTH, HEIGHT),
                                         .T_map_camera = volume_pose(pose),
                                         .depth_min_m = 0.2,
                                         .depth_max_m = 3};
}

/* The scene from N_SHOTS poses; `last` is the last of them. */
static struct vxd_volume *make_volume(struct gpu_env *env, int edge,
                                      enum vxd_volume_form form)
{
    struct vxd_volume_spec spec = {.voxel_size_m = VOXEL_M,
                                   .block_edge = edge,
                                   .truncation_m = MU_M,
                                   .form = form,
                                   .has_colour = true,
                                   .origin_m = {0.1, 0.2, -0.3}};
    struct vxd_volume_camera camera = volume_camera(120, 90);
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};

    CHECK_INT(vxd_volume_create(env->queue, &spec, &volume, &err), VXD_OK);
    for (int i = 0; volume != NULL && i < N_SHOTS; i++) {
        struct vxd_volume_pose pose = volume_pose(i);
        struct vxd_volume_activation done;
        struct volume_shot shot;

        volume_shoot(env, &camera, &pose, VXD_FLOAT32, true, &shot);
        memset(shot.colour, 0, 3 * 120 * 90); /* green */
        for (size_t p = 0; p < (size_t)120 * 90; p++) {
            shot.colour[3 * p + 1] = 200;
        }
        vxd_device_free(env->queue, &shot.d_colour);
        shot.d_colour = gpu_to_device(env, shot.colour, (size_t)3 * 120 * 90);
        shot.frame.colour = shot.d_colour.ptr;
        CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, &err),
                  VXD_OK);
        gpu_wait(env);
        volume_shot_free(env, &shot);
    }
    return volume;
}

/* A volume as one array of voxels, NaN where nothing was observed. */
struct grid {
    int32_t low[3];
    int n[3];
    double *values;
};

static void grid_make(const struct volume_host *host, struct grid *grid)
{
    int edge = host->info.spec.block_edge;
    int block_voxels = edge * edge * edge;

    for (int axis = 0; axis < 3; axis++) {
        int32_t high = INT32_MIN;

        grid->low[axis] = INT32_MAX;
        for (size_t i = 0; i < host->n; i++) {
            int32_t at = host->keys[3 * i + (size_t)axis] * edge;

            grid->low[axis] = at < grid->low[axis] ? at : grid->low[axis];
            high = at + edge > high ? at + edge : high;
        }
        grid->n[axis] = high - grid->low[axis];
    }
    grid->values = gpu_alloc(sizeof(double) * (size_t)grid->n[0] * (size_t)grid->n[1] *
                             (size_t)grid->n[2]);
    for (size_t i = 0; i < (size_t)grid->n[0] * (size_t)grid->n[1] * (size_t)grid->n[2];
         i++) {
        grid->values[i] = NAN;
    }
    for (size_t i = 0; i < host->n * (size_t)block_voxels; i++) {
        const int32_t *key = host->keys + 3 * (i / (size_t)block_voxels);
        int index = (int)(i % (size_t)block_voxels);
        int x = key[0] * edge + index % edge - grid->low[0];
        int y = key[1] * edge + index / edge % edge - grid->low[1];
        int z = key[2] * edge + index / edge / edge - grid->low[2];

        if (host->weights[i] > 0) {
            grid->values[((size_t)z * (size_t)grid->n[1] + (size_t)y) *
                             (size_t)grid->n[0] +
                         (size_t)x] = host->distances[i];
        }
    }
}

static double grid_at(const struct grid *grid, int x, int y, int z)
{
    x -= grid->low[0];
    y -= grid->low[1];
    z -= grid->low[2];
    if (x < 0 || y < 0 || z < 0 || x >= grid->n[0] || y >= grid->n[1] ||
        z >= grid->n[2]) {
        return NAN;
    }
    return grid
        ->values[((size_t)z * (size_t)grid->n[1] + (size_t)y) * (size_t)grid->n[0] +
                 (size_t)x];
}

/* Trilinear over eight known voxels, else the voxel's own value, in voxel coordinates. */
static double grid_sample(const struct grid *grid, const double p[3])
{
    int v[3];
    double f[3];
    double sum = 0;

    for (int axis = 0; axis < 3; axis++) {
        v[axis] = (int)floor(p[axis] - 0.5);
        f[axis] = p[axis] - 0.5 - v[axis];
    }
    for (int c = 0; c < 8; c++) {
        double part = ((c & 1) != 0 ? f[0] : 1 - f[0]) *
                      ((c & 2) != 0 ? f[1] : 1 - f[1]) * ((c & 4) != 0 ? f[2] : 1 - f[2]);

        sum += part * grid_at(grid, v[0] + (c & 1), v[1] + (c >> 1 & 1), v[2] + (c >> 2));
    }
    return isnan(sum) || isnan(grid_at(grid, (int)floor(p[0]), (int)floor(p[1]),
                                       (int)floor(p[2])))
               ? grid_at(grid, (int)floor(p[0]), (int)floor(p[1]), (int)floor(p[2]))
               : sum;
}

/* Depth of the first change from + to - by steps of an eighth of a voxel; 0: none. */
static double brute_force(const struct grid *grid, const double origin[3],
                          const struct vxd_volume_cast_args *args, int u, int v)
{
    const struct vxd_volume_pose *pose = &args->T_map_camera;
    double d[3];
    double length = 0;
    double last = NAN;
    double x;
    double y;
    double step;

    volume_ray(&args->camera, u, v, &x, &y);
    for (int i = 0; i < 3; i++) {
        const double *r = &pose->rotation[3 * i];

        d[i] = (r[0] * x + r[1] * y + r[2]) / VOXEL_M;
        length += d[i] * d[i];
    }
    step = 0.125 / sqrt(length);
    for (double t = args->depth_min_m; t < args->depth_max_m; t += step) {
        double p[3];
        double now;

        for (int i = 0; i < 3; i++) {
            p[i] = (pose->translation[i] - origin[i]) / VOXEL_M + d[i] * t;
        }
        now = grid_sample(grid, p);
        if (now <= 0 && last > 0) {
            return t - step + step * last / (last - now);
        }
        if (now > 0 && last < 0) {
            return 0;
        }
        last = now;
    }
    return 0;
}

/* Whether a pixel's surroundings are one surface: along the ball's silhouette the rays graze
 * voxels that several shots saw differently, and the answer depends on every sample. */
static bool is_smooth(const double *depths, size_t pixel)
{
    int u = (int)(pixel % WIDTH);
    int v = (int)(pixel / WIDTH);

    for (int y = v - 1; y <= v + 1; y++) {
        for (int x = u - 1; x <= u + 1; x++) {
            if (x < 0 || y < 0 || x >= WIDTH || y >= HEIGHT ||
                depths[y * WIDTH + x] == 0 ||
                fabs(depths[y * WIDTH + x] - depths[pixel]) > 2 * VOXEL_M) {
                return false;
            }
        }
    }
    return true;
}

/* Pixels that differ in being hit or by a tenth of a voxel. */
struct unlike {
    size_t n_smooth; /* pixels */
    size_t n_unlike; /* of these */
    size_t n_unlike_at_all;
};

static void compare_to_brute_force(struct gpu_env *env, struct vxd_volume *volume,
                                   const struct vxd_volume_cast_args *args,
                                   const struct picture *picture, struct unlike *out)
{
    double *depths = gpu_alloc(N_PIXELS * sizeof *depths);
    struct volume_host host;
    struct grid grid;

    *out = (struct unlike){0};
    volume_read(env, volume, &host);
    grid_make(&host, &grid);
    for (size_t pixel = 0; pixel < N_PIXELS; pixel++) {
        depths[pixel] = brute_force(&grid, host.info.spec.origin_m, args,
                                    (int)(pixel % WIDTH), (int)(pixel / WIDTH));
    }
    for (size_t pixel = 0; pixel < N_PIXELS; pixel++) {
        bool smooth = depths[pixel] > 0 && is_smooth(depths, pixel);
        bool unlike = fabs(depths[pixel] - (double)picture->depth[pixel]) > 0.1 * VOXEL_M;

        out->n_smooth += smooth ? 1 : 0;
        out->n_unlike += smooth && unlike ? 1 : 0;
        out->n_unlike_at_all += unlike ? 1 : 0;
    }
    free(depths);
    free(grid.values);
    volume_host_free(&host);
}

static void expect_brute_force(struct gpu_env *env)
{
    static const struct {
        int edge;
        enum vxd_volume_form form;
        double lens;
    } cases[] = {{8, VXD_VOLUME_FULL, 0},
                 {16, VXD_VOLUME_FULL, 0},
                 {8, VXD_VOLUME_COMPACT, 0},
                 {8, VXD_VOLUME_FULL, -0.15}};

    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct vxd_volume *volume = make_volume(env, cases[c].edge, cases[c].form);
        struct vxd_volume_cast_args args = cast_args((int)c);
        struct picture picture;
        struct unlike unlike;

        args.camera.distortion[0] = cases[c].lens;
        cast(env, volume, args, &picture);
        compare_to_brute_force(env, volume, &args, &picture, &unlike);
        CHECK(unlike.n_smooth > N_PIXELS / 2);
        CHECK(unlike.n_unlike <= unlike.n_smooth / 100);
        CHECK(unlike.n_unlike_at_all <= N_PIXELS / 25);
        picture_free(&picture);
        vxd_volume_destroy(env->queue, volume);
        gpu_wait(env);
    }
}

static void test_volume_cast_is_as_by_brute_force(void)
{
    gpu_each_backend(expect_brute_force);
}

/* From a pose between those of the shots, so that nothing is seen as it was measured. */
static void expect_scene(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, 8, VXD_VOLUME_FULL);
    struct vxd_volume_cast_args args = cast_args(2);
    const double *origin;
    struct vxd_volume_info info;
    struct picture picture;
    double squares = 0;
    double cosines = 0;
    size_t n = 0;
    size_t n_normals = 0;

    args.T_map_camera.translation[0] += 0.05;
    args.T_map_camera.translation[1] -= 0.04;
    cast(env, volume, args, &picture);
    vxd_volume_get_info(volume, &info);
    origin = info.spec.origin_m;
    for (size_t i = 0; i < N_PIXELS; i++) {
        const float *vertex = picture.vertex + 3 * i;
        const float *normal = picture.normal + 3 * i;
        double p[3] = {vertex[0] + origin[0], vertex[1] + origin[1],
                       vertex[2] + origin[2]};
        double distance = volume_scene_distance(p);
        double wall = fabs(p[2] - VOLUME_WALL_Z);

        CHECK_INT(picture.mask[i], picture.depth[i] > 0 ? 1 : 0);
        if (picture.mask[i] == 0) {
            CHECK(vertex[0] == 0 && normal[2] == 0 && picture.colour[3 * i + 1] == 0);
            continue;
        }
        n++;
        squares += distance * distance;
        if (normal[0] != 0 || normal[1] != 0 || normal[2] != 0) {
            double z = p[2] - VOLUME_BALL_Z;
            double r = sqrt(p[0] * p[0] + p[1] * p[1] + z * z);
            double cosine =
                wall < 0.05 ? -normal[2]
                            : (normal[0] * p[0] + normal[1] * p[1] + normal[2] * z) / r;

            cosines += cosine;
            n_normals++;
            CHECK(fabs(normal[0] * normal[0] + normal[1] * normal[1] +
                       normal[2] * normal[2] - 1) < 1e-5);
            CHECK_INT(picture.colour[3 * i + 1], 200);
            CHECK_INT(picture.colour[3 * i], 0);
        }
    }
    CHECK(n > N_PIXELS * 2 / 3);
    CHECK(sqrt(squares / (double)n) < 0.5 * VOXEL_M);
    CHECK(n_normals > n * 9 / 10);
    CHECK(cosines / (double)n_normals > 0.98);
    picture_free(&picture);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_cast_shows_the_scene_within_half_a_voxel(void)
{
    gpu_each_backend(expect_scene);
}

/* A picture that is cast some rows at a time is the same. */
static void check_stages(struct gpu_env *env, struct vxd_volume *volume,
                         struct vxd_volume_cast_args args, const struct picture *whole)
{
    struct vxd_buffer depth = gpu_to_device(env, NULL, N_PIXELS * sizeof(float));
    struct vxd_err err = {0};
    float *pixels;

    args.depth = depth.ptr;
    for (int row = 0; row < HEIGHT; row = args.row_end) {
        args.row_begin = row;
        args.row_end = row + 24 < HEIGHT ? row + 24 : HEIGHT;
        CHECK_INT(vxd_volume_cast(env->queue, volume, &args, &err), VXD_OK);
    }
    pixels = gpu_to_host(env, &depth);
    CHECK(memcmp(pixels, whole->depth, N_PIXELS * sizeof(float)) == 0);
    args.row_begin = 4;
    CHECK_INT(vxd_volume_cast(env->queue, volume, &args, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "row_end");
    free(pixels);
    vxd_device_free(env->queue, &depth);
}

/* Casts a picture of so few pixels that the surface goes through more cells. */
static uint64_t digest_few(struct gpu_env *env, struct vxd_volume *volume,
                           struct vxd_volume_cast_args args, uint64_t digest)
{
    enum {
        N_FEW = 36 * 28
    };
    struct vxd_buffer depth = gpu_to_device(env, NULL, N_FEW * sizeof(float));
    struct vxd_err err = {0};
    float *few;

    args.camera = volume_camera(36, 28);
    args.depth = depth.ptr;
    CHECK_INT(vxd_volume_cast(env->queue, volume, &args, &err), VXD_OK);
    few = gpu_to_host(env, &depth);
    digest = gpu_digest(digest, few, N_FEW * sizeof(float));
    free(few);
    vxd_device_free(env->queue, &depth);
    return digest;
}

static uint64_t first_digest;

static void expect_equal_pictures(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, 8, VXD_VOLUME_FULL);
    struct vxd_volume_cast_args args = cast_args(3);
    struct picture global;
    struct picture local;
    uint64_t digest = GPU_FNV_START;
    size_t n_unlike = 0;

    cast(env, volume, args, &global);
    digest = gpu_digest(digest, global.depth, N_PIXELS * sizeof(float));
    digest = gpu_digest(digest, global.vertex, 3 * N_PIXELS * sizeof(float));
    digest = gpu_digest(digest, global.normal, 3 * N_PIXELS * sizeof(float));
    digest = gpu_digest(digest, global.colour, 3 * N_PIXELS);
    digest = digest_few(env, volume, args, digest);
    if (first_digest == 0) {
        first_digest = digest;
    }
    CHECK(digest == first_digest);
    /* The last shot's touched blocks bound the rays of its own pose just as well. */
    args = cast_args(N_SHOTS - 1);
    picture_free(&global);
    cast(env, volume, args, &global);
    check_stages(env, volume, args, &global);
    args.mode = VXD_VOLUME_CAST_LOCAL;
    cast(env, volume, args, &local);
    for (size_t i = 0; i < N_PIXELS; i++) {
        n_unlike +=
            fabsf(global.depth[i] - local.depth[i]) > 0.2f * (float)VOXEL_M ? 1 : 0;
    }
    CHECK(n_unlike < N_PIXELS / 20);
    picture_free(&global);
    picture_free(&local);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_cast_is_equal_on_every_backend(void)
{
    gpu_each_backend(expect_equal_pictures);
}

/* Pixels without a surface all of whose neighbours show one surface. */
static size_t count_holes(const struct picture *picture)
{
    size_t n = 0;

    for (int v = 1; v < HEIGHT - 1; v++) {
        for (int u = 1; u < WIDTH - 1; u++) {
            float least = INFINITY;
            float most = 0;

            for (int i = 0; i < 9; i++) {
                float depth = picture->depth[(v + i / 3 - 1) * WIDTH + u + i % 3 - 1];

                least = i != 4 && depth < least ? depth : least;
                most = i != 4 && depth > most ? depth : most;
            }
            n += picture->depth[v * WIDTH + u] == 0 && least > 0 &&
                         most - least < 2 * (float)VOXEL_M
                     ? 1
                     : 0;
        }
    }
    return n;
}

/* From so near that a cell covers hundreds of pixels, and along the axes of the grid, where rays run
 * in the faces of cells: no ray finds a gap between two cells. */
static void expect_no_holes(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, 8, VXD_VOLUME_FULL);

    for (int which = 0; which < 4; which++) {
        struct vxd_volume_cast_args args = cast_args(2);
        struct picture picture;
        struct unlike unlike;
        size_t n_hits = 0;

        if (which < 2) {
            double by = which == 0 ? 0.4 : 0.74; /* 0.06 m before the ball */

            for (int axis = 0; axis < 3; axis++) {
                args.T_map_camera.translation[axis] +=
                    by * args.T_map_camera.rotation[3 * axis + 2];
            }
        } else { /* the origin is a multiple of the voxel's side */
            const double straight[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};

            memcpy(args.T_map_camera.rotation, straight, sizeof straight);
            args.T_map_camera.translation[0] = which == 2 ? 0.1 : 0.11;
            args.T_map_camera.translation[1] = which == 2 ? 0.2 : 0.21;
            args.T_map_camera.translation[2] = 0.3;
        }
        args.depth_min_m = 0.01;
        cast(env, volume, args, &picture);
        compare_to_brute_force(env, volume, &args, &picture, &unlike);
        for (size_t i = 0; i < N_PIXELS; i++) {
            n_hits += picture.mask[i];
        }
        CHECK(n_hits > N_PIXELS / 2);
        CHECK_INT(count_holes(&picture), 0);
        CHECK(unlike.n_smooth > N_PIXELS / 2);
        CHECK(unlike.n_unlike <= unlike.n_smooth / 100);
        picture_free(&picture);
    }
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_cast_has_no_holes(void)
{
    gpu_each_backend(expect_no_holes);
}

/* A picture of few pixels is cast by rays, one of many by cells: where both show a smooth surface,
 * it is the same. */
static void expect_both_ways(struct gpu_env *env)
{
    enum {
        STEP = 8,
        FEW_WIDTH = WIDTH / STEP,
        FEW_HEIGHT = HEIGHT / STEP
    };
    struct vxd_volume *volume = make_volume(env, 8, VXD_VOLUME_FULL);
    struct vxd_volume_cast_args args = cast_args(1);
    struct vxd_buffer depth =
        gpu_to_device(env, NULL, sizeof(float) * FEW_WIDTH * FEW_HEIGHT);
    double *depths = gpu_alloc(N_PIXELS * sizeof *depths);
    struct vxd_err err = {0};
    struct picture many;
    float *few;
    size_t n = 0;
    size_t n_unlike = 0;

    cast(env, volume, args, &many);
    args.camera.width = FEW_WIDTH;
    args.camera.height = FEW_HEIGHT;
    args.camera.fx /= STEP;
    args.camera.fy /= STEP;
    args.camera.cx /= STEP;
    args.camera.cy /= STEP;
    args.depth = depth.ptr;
    CHECK_INT(vxd_volume_cast(env->queue, volume, &args, &err), VXD_OK);
    few = gpu_to_host(env, &depth);
    for (size_t i = 0; i < N_PIXELS; i++) {
        depths[i] = (double)many.depth[i];
    }
    for (int v = 0; v < FEW_HEIGHT; v++) {
        for (int u = 0; u < FEW_WIDTH; u++) {
            size_t pixel = (size_t)(STEP * v) * WIDTH + (size_t)(STEP * u);

            if (depths[pixel] > 0 && is_smooth(depths, pixel)) {
                n++;
                n_unlike +=
                    fabs((double)few[v * FEW_WIDTH + u] - depths[pixel]) > 0.1 * VOXEL_M
                        ? 1
                        : 0;
            }
        }
    }
    CHECK(n > (size_t)FEW_WIDTH * FEW_HEIGHT / 2);
    CHECK(n_unlike <= n / 20);
    free(few);
    free(depths);
    picture_free(&many);
    vxd_device_free(env->queue, &depth);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_cast_by_rays_and_by_cells_agree(void)
{
    gpu_each_backend(expect_both_ways);
}

/* A threshold above all weights leaves nothing; a camera behind the wall sees nothing. */
static void expect_nothing(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, 8, VXD_VOLUME_FULL);
    struct vxd_volume_cast_args args = cast_args(2);
    struct picture picture;
    size_t n_hits = 0;

    args.weight_threshold = N_SHOTS + 1;
    cast(env, volume, args, &picture);
    for (size_t i = 0; i < N_PIXELS; i++) {
        n_hits += picture.mask[i];
    }
    CHECK_INT(n_hits, 0);
    picture_free(&picture);
    args = cast_args(2);
    for (int i = 0; i < 9; i++) { /* half a turn about y, 0.8 m behind the wall */
        args.T_map_camera.rotation[i] *= i % 3 == 1 ? 1 : -1;
    }
    args.T_map_camera.translation[2] = VOLUME_WALL_Z + 0.8;
    args.depth_max_m = 1;
    cast(env, volume, args, &picture);
    for (size_t i = 0; i < N_PIXELS; i++) {
        n_hits += picture.mask[i];
    }
    CHECK_INT(n_hits, 0);
    picture_free(&picture);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_cast_of_nothing_is_a_miss(void)
{
    gpu_each_backend(expect_nothing);
}

/* A half turn about y. */
static void turn(struct vxd_volume_pose *pose)
{
    for (int i = 0; i < 9; i++) {
        pose->rotation[i] *= i / 3 == 1 ? 1 : -1;
    }
    pose->translation[0] *= -1;
    pose->translation[2] *= -1;
}

/* From behind the wall, with another one beyond it that faces the camera: plain cameras are cast by
 * cells, lenses by rays. */
static void expect_through(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, 8, VXD_VOLUME_FULL);
    struct vxd_volume_camera camera = volume_camera(120, 90);
    struct vxd_volume_pose pose = volume_pose(2);
    struct vxd_volume_activation done;
    struct volume_shot shot;

    volume_shoot(env, &camera, &pose, VXD_FLOAT32, true, &shot);
    turn(&shot.frame.T_map_camera);
    CHECK_INT(vxd_volume_integrate(env->queue, volume, &shot.frame, &done, NULL), VXD_OK);
    gpu_wait(env);
    volume_shot_free(env, &shot);
    for (int i = 0; i < 4; i++) {
        struct vxd_volume_cast_args args = cast_args(2);
        struct picture picture;
        size_t n_hits = 0;

        args.passes_backs = (i & 1) != 0;
        args.camera.distortion[0] = (i & 2) != 0 ? 0.05 : 0;
        turn(&args.T_map_camera);
        args.T_map_camera.translation[2] = VOLUME_WALL_Z + 0.8;
        args.depth_max_m = 6;
        cast(env, volume, args, &picture);
        for (size_t p = 0; p < N_PIXELS; p++) {
            n_hits += picture.mask[p];
            CHECK(picture.mask[p] == 0 || picture.depth[p] > 0.9); /* beyond the wall */
        }
        if ((i & 1) != 0) {
            CHECK(n_hits > N_PIXELS / 12);
        } else {
            CHECK(n_hits < N_PIXELS / 12); /* beside the wall */
        }
        picture_free(&picture);
    }
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_cast_passes_backs_where_it_is_asked_to(void)
{
    gpu_each_backend(expect_through);
}

/* What is asked for besides changes no array: a lens is cast by rays, a plain camera by cells. */
static void check_same_alone(struct gpu_env *env, struct vxd_volume *volume,
                             struct vxd_volume_cast_args asked)
{
    enum {
        N_ARRAYS = 5
    };
    static const size_t n_bytes[N_ARRAYS] = {
        N_PIXELS * sizeof(float), 3 * N_PIXELS * sizeof(float),
        3 * N_PIXELS * sizeof(float), 3 * N_PIXELS, N_PIXELS};
    struct picture all;

    cast(env, volume, asked, &all);
    for (int array = 0; array < 2 * N_ARRAYS; array++) { /* alone, or all but it */
        const void *expected[N_ARRAYS] = {all.depth, all.vertex, all.normal, all.colour,
                                          all.mask};
        struct vxd_volume_cast_args args = asked;
        struct vxd_buffer arrays[N_ARRAYS];
        struct vxd_err err = {0};

        for (int i = 0; i < N_ARRAYS; i++) {
            arrays[i] = gpu_to_device(env, NULL, n_bytes[i]);
            if ((i == array % N_ARRAYS) != (array < N_ARRAYS)) {
                expected[i] = NULL;
            }
        }
        args.depth = expected[0] != NULL ? arrays[0].ptr : NULL;
        args.vertex = expected[1] != NULL ? arrays[1].ptr : NULL;
        args.normal = expected[2] != NULL ? arrays[2].ptr : NULL;
        args.colour = expected[3] != NULL ? arrays[3].ptr : NULL;
        args.mask = expected[4] != NULL ? arrays[4].ptr : NULL;
        CHECK_INT(vxd_volume_cast(env->queue, volume, &args, &err), VXD_OK);
        for (int i = 0; i < N_ARRAYS; i++) {
            void *found = gpu_to_host(env, &arrays[i]);

            CHECK(expected[i] == NULL || memcmp(found, expected[i], n_bytes[i]) == 0);
            free(found);
            vxd_device_free(env->queue, &arrays[i]);
        }
    }
    picture_free(&all);
}

static void expect_same_alone(struct gpu_env *env)
{
    struct vxd_volume *volume = make_volume(env, 8, VXD_VOLUME_FULL);
    struct vxd_volume_cast_args args = cast_args(3);

    check_same_alone(env, volume, args);
    args.camera.distortion[0] = 0.05;
    check_same_alone(env, volume, args);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_volume_cast_of_some_arrays_is_that_of_all(void)
{
    gpu_each_backend(expect_same_alone);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_volume_cast_is_as_by_brute_force),
    VXD_TEST(test_volume_cast_shows_the_scene_within_half_a_voxel),
    VXD_TEST(test_volume_cast_is_equal_on_every_backend),
    VXD_TEST(test_volume_cast_has_no_holes),
    VXD_TEST(test_volume_cast_by_rays_and_by_cells_agree),
    VXD_TEST(test_volume_cast_of_nothing_is_a_miss),
    VXD_TEST(test_volume_cast_passes_backs_where_it_is_asked_to),
    VXD_TEST(test_volume_cast_of_some_arrays_is_that_of_all),
};

VXD_TEST_MAIN(tests)
