// SPDX-License-Identifier: Apache-2.0
/* What a picture shows beside the palette: clip boxes against scenes without the voxels outside,
 * textures and regions by what a camera from above must see, ages by two versions. */
#include "tests/support/test.h"

#include <math.h>

#include "gpu/render/render.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    SIDE = 64,
    DEPTH = 6,
    WIDTH = 72,
    HEIGHT = 50
};

static struct vxd_render_picture plain_picture(enum vxd_render_mode mode)
{
    struct vxd_render_picture picture = {.camera = {.kind = VXD_RENDER_PINHOLE,
                                                    .eye = {-45.3, -25.1, 78.2},
                                                    .target = {32, 32, 32},
                                                    .up = {0, 0, 1},
                                                    .fov_y_deg = 60,
                                                    .view_height = SIDE},
                                         .mode = mode,
                                         .width = WIDTH,
                                         .height = HEIGHT,
                                         .voxel_size_m = 1,
                                         .samples = 1,
                                         .ao_samples = 4,
                                         .bounces = 2,
                                         .shadows = true,
                                         .sun_direction = {0.3, -0.4, 0.9},
                                         .sun = 0.8,
                                         .ambient = 0.3,
                                         .sky_zenith = 0x4060ff,
                                         .sky_horizon = 0xe0f0ff,
                                         .sky_ground = 0x807868,
                                         .sky = 1,
                                         .z_low = 0,
                                         .z_high = SIDE};

    return picture;
}

static uint32_t *draw(struct gpu_env *env, const struct vxd_render_picture *picture,
                      const struct vxd_svdag *svdag, uint32_t root)
{
    size_t n_bytes = (size_t)picture->width * picture->height * sizeof(uint32_t);
    struct vxd_buffer pixels = gpu_to_device(env, NULL, n_bytes);
    const struct vxd_render_rect whole = {0, 0, picture->width, picture->height};
    struct vxd_render_plan *plan = NULL;
    struct vxd_err err = {0};
    uint32_t *out;

    CHECK_INT(vxd_render_plan_create(env->queue, picture, &plan, &err), VXD_OK);
    CHECK_STR(err.message, "");
    CHECK_INT(vxd_render_draw(env->queue, plan, svdag, root, &whole, pixels.ptr, &err),
              VXD_OK);
    out = gpu_to_host(env, &pixels);
    vxd_render_plan_destroy(env->queue, plan);
    vxd_device_free(env->queue, &pixels);
    return out;
}

/* --- clip boxes ---------------------------------------------------------------------------- */

static void clipped(struct gpu_env *env)
{
    static const uint32_t boxes[4][6] = {{0, 0, 0, 31, 64, 64},
                                         {17, 9, 3, 50, 41, 60},
                                         {0, 0, 20, 64, 64, 21},
                                         {60, 60, 60, 64, 64, 64}};
    static const enum vxd_render_mode modes[] = {VXD_RENDER_DEPTH,    VXD_RENDER_NORMAL,
                                                 VXD_RENDER_MATERIAL, VXD_RENDER_COLOUR,
                                                 VXD_RENDER_AO,       VXD_RENDER_PATH};
    struct vxd_svdag_format format = {DEPTH, 8, true};
    uint32_t *grids[2] = {gpu_svdag_random_grid(&format, 5), NULL};
    size_t n = (size_t)SIDE * SIDE * SIDE;

    grids[1] = gpu_alloc(n * sizeof *grids[1]);
    for (size_t b = 0; b < 4; b++) {
        const uint32_t *box = boxes[b];
        struct gpu_svdag_voxel *voxels[2];
        size_t n_voxels[2];
        struct gpu_svdag_scene scene;

        for (size_t i = 0; i < n; i++) {
            const uint32_t at[3] = {(uint32_t)(i / SIDE / SIDE),
                                    (uint32_t)(i / SIDE) % SIDE, (uint32_t)i % SIDE};
            bool is_in = true;

            for (int axis = 0; axis < 3; axis++) {
                is_in = is_in && at[axis] >= box[axis] && at[axis] < box[3 + axis];
            }
            grids[1][i] = is_in ? grids[0][i] : 0;
        }
        for (int k = 0; k < 2; k++) {
            voxels[k] = gpu_svdag_grid_voxels(grids[k], DEPTH, &n_voxels[k]);
        }
        gpu_svdag_scene_build_two(env->queue, &format,
                                  (const struct gpu_svdag_voxel *const *)voxels, n_voxels,
                                  &scene);
        for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
            for (int kind = 0; kind < 3; kind++) {
                struct vxd_render_picture picture = plain_picture(modes[m]);
                uint32_t *cut;
                uint32_t *known;
                size_t n_other = 0;

                picture.camera.kind = (enum vxd_render_camera_kind)kind;
                known = draw(env, &picture, scene.svdag, scene.other);
                picture.has_clip = true;
                memcpy(picture.clip_low, box, sizeof picture.clip_low);
                memcpy(picture.clip_high, box + 3, sizeof picture.clip_high);
                cut = draw(env, &picture, scene.svdag, scene.root);
                for (size_t i = 0; i < (size_t)WIDTH * HEIGHT; i++) {
                    n_other += cut[i] != known[i] ? 1 : 0;
                }
                /* Rays that meet a voxel just where they leave the box. */
                CHECK(n_other <= 3);
                free(cut);
                free(known);
            }
        }
        gpu_svdag_scene_free(env->queue, &scene);
        free(voxels[0]);
        free(voxels[1]);
    }
    free(grids[0]);
    free(grids[1]);
}

static void test_clipped_pictures_are_those_of_the_voxels_in_the_box(void)
{
    gpu_each_backend(clipped);
}

/* --- textures and regions --------------------------------------------------------------------- */

/* A floor of two voxels, materials 1 and 2 by halves along x. */
static void build_floor(struct gpu_env *env, struct gpu_svdag_scene *scene)
{
    struct vxd_svdag_format format = {DEPTH, 8, false};
    struct gpu_svdag_voxel *voxels = gpu_alloc((size_t)SIDE * SIDE * 2 * sizeof *voxels);
    size_t n = 0;

    for (uint32_t x = 0; x < SIDE; x++) {
        for (uint32_t y = 0; y < SIDE; y++) {
            for (uint32_t z = 0; z < 2; z++) {
                voxels[n].morton = gpu_svdag_morton(x, y, z);
                voxels[n++].code = GPU_SVDAG_MATERIAL + (x < SIDE / 2 ? 1 : 2);
            }
        }
    }
    qsort(voxels, n, sizeof *voxels, gpu_svdag_voxel_compare);
    gpu_svdag_scene_build(env->queue, &format, voxels, n, scene);
    free(voxels);
}

/* One pixel a voxel, from above: pixel (x, y) shows voxel (x, SIDE - 1 - y). */
static struct vxd_render_picture picture_from_above(void)
{
    struct vxd_render_picture picture = plain_picture(VXD_RENDER_LABEL);

    picture.width = picture.height = SIDE;
    picture.camera.kind = VXD_RENDER_ORTHOGRAPHIC;
    picture.camera.view_height = SIDE;
    for (int axis = 0; axis < 2; axis++) {
        picture.camera.eye[axis] = picture.camera.target[axis] = SIDE / 2;
        picture.camera.up[axis] = axis;
    }
    picture.camera.eye[2] = SIDE;
    picture.camera.target[2] = 0;
    picture.camera.up[2] = 0;
    return picture;
}

static uint32_t stored(uint32_t rgb)
{
    return 0xff000000u | (rgb & 0xffu) << 16 | (rgb & 0xff00u) | rgb >> 16;
}

static void textures(struct gpu_env *env)
{
    static const uint32_t texels[6] = {0xff0000, 0x00ff00, 0x0000ff,
                                       0x102030, 0x405060, 0x708090};
    static const uint32_t palette[3] = {0, 0xaabbcc, 0x123456};
    static const uint32_t other[3] = {0, 0x010203, 0x040506};
    const struct vxd_render_texture texture = {2, 3, 2, 5, texels};
    const struct vxd_render_region regions[2] = {{{10, 20, 0}, {40, 30, 2}, other, 3},
                                                 {{12, 22, 0}, {14, 24, 64}, texels, 2}};
    struct vxd_render_picture picture = picture_from_above();
    struct gpu_svdag_scene scene;
    uint32_t *pixels;

    build_floor(env, &scene);
    picture.palette = palette;
    picture.n_palette = 3;
    picture.textures = &texture;
    picture.n_textures = 1;
    picture.regions = regions;
    picture.n_regions = 2;
    pixels = draw(env, &picture, scene.svdag, scene.root);
    for (uint32_t py = 0; py < SIDE; py++) {
        for (uint32_t x = 0; x < SIDE; x++) {
            uint32_t y = SIDE - 1 - py;
            uint32_t known = palette[1];

            if (x >= SIDE / 2) { /* textured: regions do not matter */
                known = texels[3 * (1 - y / 5 % 2) + x / 5 % 3];
            } else if (x >= 12 && x < 14 && y >= 22 && y < 24) {
                known = texels[1];
            } else if (x >= 10 && x < 40 && y >= 20 && y < 30) {
                known = other[1];
            }
            CHECK_INT(pixels[py * SIDE + x], stored(known));
        }
    }
    free(pixels);
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_faces_show_the_textures_and_regions_of_their_materials(void)
{
    gpu_each_backend(textures);
}

/* --- ages ------------------------------------------------------------------------------------- */

static void ages(struct gpu_env *env)
{
    struct vxd_svdag_format format = {DEPTH, 8, false};
    struct gpu_svdag_voxel *voxels[2];
    size_t n[2] = {0, 0};
    struct gpu_svdag_scene scene;
    struct vxd_render_picture picture = picture_from_above();
    uint32_t roots[4];
    uint32_t *pixels;
    uint32_t *others;

    for (int k = 0; k < 2; k++) { /* the second floor has a hole less */
        voxels[k] = gpu_alloc((size_t)SIDE * SIDE * sizeof *voxels[k]);
        for (uint32_t x = 0; x < SIDE; x++) {
            for (uint32_t y = 0; y < SIDE; y++) {
                if (k == 1 || x / 8 != 3) {
                    voxels[k][n[k]].morton = gpu_svdag_morton(x, y, 0);
                    voxels[k][n[k]++].code = GPU_SVDAG_MATERIAL + 4;
                }
            }
        }
        qsort(voxels[k], n[k], sizeof *voxels[k], gpu_svdag_voxel_compare);
    }
    gpu_svdag_scene_build_two(env->queue, &format,
                              (const struct gpu_svdag_voxel *const *)voxels, n, &scene);
    roots[0] = scene.other;
    roots[1] = scene.root;
    picture.mode = VXD_RENDER_AGE;
    picture.shadows = false;
    picture.ao_samples = 0;
    picture.sun = 0;
    picture.ambient = 1;
    picture.roots = roots;
    picture.n_roots = 2;
    pixels = draw(env, &picture, scene.svdag, scene.other);
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        int red = (int)(pixels[i] & 0xffu);
        int blue = (int)(pixels[i] >> 16 & 0xffu);

        if (i % SIDE / 8 == 3) {
            CHECK(red > 90 && blue < 40); /* the newest end of the ramp */
        } else {
            CHECK(abs(red - blue) < 20 && red > 150); /* stone */
        }
    }
    /* The newest change is the newest of any number of versions. */
    roots[2] = roots[3] = roots[1];
    picture.n_roots = 4;
    others = draw(env, &picture, scene.svdag, scene.other);
    CHECK(memcmp(others, pixels, (size_t)SIDE * SIDE * sizeof *pixels) == 0);
    free(others);
    free(pixels);
    picture.n_roots = 0;
    {
        struct vxd_render_plan *plan = NULL;
        struct vxd_err err = {0};

        CHECK_INT(vxd_render_plan_create(env->queue, &picture, &plan, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "roots");
    }
    gpu_svdag_scene_free(env->queue, &scene);
    free(voxels[0]);
    free(voxels[1]);
}

static void test_ages_are_those_of_the_versions(void)
{
    gpu_each_backend(ages);
}

static void refused(struct gpu_env *env)
{
    static const uint32_t colour = 0;
    const struct vxd_render_texture texture = {1, 0, 4, 1, &colour};
    const struct vxd_render_region region = {{0, 4, 0}, {4, 4, 4}, &colour, 1};
    struct vxd_render_picture picture = plain_picture(VXD_RENDER_COLOUR);
    struct vxd_render_plan *plan = NULL;
    struct vxd_err err = {0};

    picture.textures = &texture;
    picture.n_textures = 1;
    CHECK_INT(vxd_render_plan_create(env->queue, &picture, &plan, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "textures");
    picture.n_textures = 0;
    picture.regions = &region;
    picture.n_regions = 1;
    CHECK_INT(vxd_render_plan_create(env->queue, &picture, &plan, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "regions");
    picture.n_regions = 0;
    picture.has_clip = true;
    CHECK_INT(vxd_render_plan_create(env->queue, &picture, &plan, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "clip");
    CHECK(plan == NULL);
}

static void test_materials_that_cannot_be_are_refused_by_field(void)
{
    gpu_each_backend(refused);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_clipped_pictures_are_those_of_the_voxels_in_the_box),
    VXD_TEST(test_faces_show_the_textures_and_regions_of_their_materials),
    VXD_TEST(test_ages_are_those_of_the_versions),
    VXD_TEST(test_materials_that_cannot_be_are_refused_by_field),
};

VXD_TEST_MAIN(tests)
