// SPDX-License-Identifier: Apache-2.0
/* Pictures, against the rule stated in render.h applied to every voxel of small scenes, against
 * ray queries, and against what is known of light. Pixels of all backends are compared with
 * those of the first one, bit for bit. */
#include "tests/support/test.h"

#include <math.h>

#include "gpu/render/render.h"
#include "gpu/svdag/query/query.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/svdag/svdag_scene.h"

enum {
    MAX_WIDTH = 64,
    MAX_HEIGHT = 48,
    N_KEPT = 128
};

/* Pixels of the first backend, by the order of the pictures of a test. */
static uint32_t *kept[N_KEPT];
static int n_pictures;

static void forget_kept(void)
{
    for (int i = 0; i < N_KEPT; i++) {
        free(kept[i]);
        kept[i] = NULL;
    }
}

static struct vxd_render_picture plain_picture(int depth)
{
    double side = (double)((int64_t)1 << depth);
    struct vxd_render_picture picture = {
        .camera = {.kind = VXD_RENDER_PINHOLE,
                   .eye = {-0.7 * side, -0.4 * side, 1.2 * side},
                   .target = {side / 2, side / 2, side / 2},
                   .up = {0, 0, 1},
                   .fov_y_deg = 60,
                   .view_height = 1.5 * side},
        .mode = VXD_RENDER_MATERIAL,
        .width = 37,
        .height = 21,
        .voxel_size_m = 0.25,
        .samples = 1,
        .bounces = 2,
        .sun_direction = {0.3, -0.4, 0.9},
        .sun = 0.8,
        .ambient = 0.3,
        .sky_zenith = 0x4060ff,
        .sky_horizon = 0xe0f0ff,
        .sky_ground = 0x807868,
        .sky = 1,
        .z_low = 0,
        .z_high = side};

    return picture;
}

/* Pixels of a picture on the host; malloc'ed. */
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
    CHECK_STR(err.message, "");
    out = gpu_to_host(env, &pixels);
    vxd_render_plan_destroy(env->queue, plan);
    vxd_device_free(env->queue, &pixels);
    if (n_pictures < N_KEPT) {
        if (kept[n_pictures] == NULL) {
            kept[n_pictures] = gpu_alloc(n_bytes);
            memcpy(kept[n_pictures], out, n_bytes);
        }
        CHECK(memcmp(kept[n_pictures], out, n_bytes) == 0);
    }
    n_pictures++;
    return out;
}

/* --- the rule, on every voxel ------------------------------------------------------------ */

struct known_hit {
    float t;
    int axis; /* 3: inside */
    int32_t voxel[3];
    bool is_hit;
};

/* The ray's crossing of a plane, as render.h says. */
static float plane_t(double origin, float d, int32_t k)
{
    float size = fabsf(d) > 0x1p-60f ? fabsf(d) : 0x1p-60f;
    float cell = (float)floor(origin);
    volatile float distance = (float)k - cell;
    volatile float inverse = 1.0f / size;

    distance = distance - (float)(origin - floor(origin));
    return (d < 0 ? -distance : distance) * inverse;
}

static bool is_before(float t, int axis, float than, int than_axis)
{
    return t < than || (t == than && axis < than_axis);
}

static bool visit(const double origin[3], const float d[3], const int32_t v[3],
                  struct known_hit *out)
{
    out->t = 0;
    out->axis = 3;
    for (int axis = 0; axis < 3; axis++) {
        float t = plane_t(origin[axis], d[axis], v[axis] + (d[axis] < 0 ? 1 : 0));

        if (is_before(out->t, out->axis, t, axis)) {
            out->t = t;
            out->axis = axis;
        }
    }
    for (int axis = 0; axis < 3; axis++) {
        float t = plane_t(origin[axis], d[axis], v[axis] + (d[axis] < 0 ? 0 : 1));

        if (!is_before(out->t, out->axis, t, axis)) {
            return false;
        }
    }
    return true;
}

/* codes: side^3, x slowest, as of gpu_svdag_random_grid. */
static struct known_hit first_hit(const uint32_t *codes, int32_t side,
                                  const double origin[3], const double direction[3])
{
    float d[3] = {(float)direction[0], (float)direction[1], (float)direction[2]};
    struct known_hit best = {.t = INFINITY, .axis = 4};

    for (int32_t x = 0; x < side; x++) {
        for (int32_t y = 0; y < side; y++) {
            for (int32_t z = 0; z < side; z++) {
                int32_t v[3] = {x, y, z};
                struct known_hit hit = {.is_hit = true, .voxel = {x, y, z}};

                if (codes[((size_t)x * (size_t)side + (size_t)y) * (size_t)side +
                          (size_t)z] >= GPU_SVDAG_MATERIAL &&
                    visit(origin, d, v, &hit) &&
                    is_before(hit.t, hit.axis, best.t, best.axis)) {
                    best = hit;
                }
            }
        }
    }
    return best;
}

/* A random camera of any kind, inside the scene or around it. */
static void random_camera(struct vxd_render_camera *camera, double side, uint64_t *state)
{
    static const double elevations[MAX_HEIGHT] = {90, 45, 12,  3,   0,
                                                  -1, -2, -30, -89, -90};

    camera->kind = (enum vxd_render_camera_kind)(gpu_random(state) % 4);
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
    camera->fov_y_deg = gpu_random_float(state, 1, 170);
    camera->view_height = gpu_random_float(state, 0.1f, 2) * side;
    camera->elevations_deg = elevations;
}

static void check_pixels(struct gpu_env *env, struct vxd_render_picture *picture,
                         const struct gpu_svdag_scene *scene, const uint32_t *codes,
                         const struct vxd_svdag_format *format)
{
    static const enum vxd_render_mode modes[3] = {VXD_RENDER_MATERIAL, VXD_RENDER_DEPTH,
                                                  VXD_RENDER_NORMAL};
    int32_t side = (int32_t)1 << format->depth;
    struct vxd_render_plan *plan = NULL;
    uint32_t *pixels[3];

    for (int i = 0; i < 3; i++) {
        picture->mode = modes[i];
        pixels[i] = draw(env, picture, scene->svdag, scene->root);
    }
    REQUIRE(vxd_render_plan_create(env->queue, picture, &plan, NULL) == VXD_OK);
    for (uint32_t i = 0; i < picture->width * picture->height; i++) {
        double origin[3];
        double direction[3];
        struct known_hit hit;
        float depth;
        int8_t normal[3] = {0, 0, 0};

        vxd_render_pixel_ray(plan, i % picture->width, i / picture->width, origin,
                             direction);
        hit = first_hit(codes, side, origin, direction);
        memcpy(&depth, &pixels[1][i], sizeof depth);
        if (!hit.is_hit) {
            CHECK_INT((int32_t)pixels[0][i], -1);
            CHECK(isinf(depth) && pixels[2][i] == 0);
            continue;
        }
        if (format->material_bits > 0) {
            CHECK_INT(pixels[0][i],
                      codes[((size_t)hit.voxel[0] * (size_t)side + (size_t)hit.voxel[1]) *
                                (size_t)side +
                            (size_t)hit.voxel[2]] -
                          GPU_SVDAG_MATERIAL);
        } else {
            CHECK_INT(pixels[0][i], 0);
        }
        CHECK(depth == hit.t * (float)picture->voxel_size_m);
        if (hit.axis < 3) {
            normal[hit.axis] = direction[hit.axis] < 0 ? 1 : -1;
        }
        CHECK(memcmp(normal, &pixels[2][i], 3) == 0);
    }
    vxd_render_plan_destroy(env->queue, plan);
    for (int i = 0; i < 3; i++) {
        free(pixels[i]);
    }
}

static void primary_hits(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[6] = {{4, 0, false}, {4, 0, true},
                                                       {4, 4, true},  {5, 4, false},
                                                       {4, 8, true},  {4, 16, false}};
    uint64_t state = 5;

    n_pictures = 0;
    for (int i = 0; i < 6; i++) {
        const struct vxd_svdag_format *format = &formats[i];
        uint32_t *grid = gpu_svdag_random_grid(format, (uint64_t)i);
        size_t n;
        struct gpu_svdag_voxel *voxels = gpu_svdag_grid_voxels(grid, format->depth, &n);
        struct gpu_svdag_scene scene;

        gpu_svdag_scene_build(env->queue, format, voxels, n, &scene);
        for (int k = 0; k < 6; k++) {
            struct vxd_render_picture picture = plain_picture(format->depth);

            random_camera(&picture.camera, (double)((int64_t)1 << format->depth), &state);
            picture.width = 1 + (uint32_t)(gpu_random(&state) % 21);
            picture.height = 1 + (uint32_t)(gpu_random(&state) % 10);
            check_pixels(env, &picture, &scene, grid, format);
        }
        gpu_svdag_scene_free(env->queue, &scene);
        free(voxels);
        free(grid);
    }
}

static void test_primary_hits_are_those_of_the_rule_on_every_voxel(void)
{
    forget_kept();
    gpu_each_backend(primary_hits);
}

/* --- a large scene, against ray queries --------------------------------------------------- */

static void large_scene(struct gpu_env *env)
{
    struct vxd_svdag_format format = {17, 4, false};
    size_t n = 4000;
    struct gpu_svdag_voxel *voxels = gpu_svdag_random_voxels(&format, 3, &n);
    struct vxd_render_picture picture = plain_picture(format.depth);
    struct vxd_buffer arrays[2];
    struct vxd_buffer hits;
    struct vxd_svdag_hit *known;
    struct vxd_render_plan *plan = NULL;
    struct gpu_svdag_scene scene;
    double *rays;
    uint32_t *pixels;
    size_t n_pixels;
    size_t n_hits = 0;
    size_t n_others = 0;

    n_pictures = 0;
    gpu_svdag_scene_build(env->queue, &format, voxels, n, &scene);
    picture.width = MAX_WIDTH;
    picture.height = MAX_HEIGHT;
    picture.mode = VXD_RENDER_DEPTH;
    picture.voxel_size_m = 1;
    picture.camera.kind = VXD_RENDER_EQUIRECTANGULAR; /* t is a distance */
    for (int axis = 0; axis < 3; axis++) {            /* next to a cluster */
        uint32_t voxel[3];

        gpu_svdag_unmorton(voxels[n / 2].morton, voxel);
        picture.camera.eye[axis] = (double)voxel[axis] + 2.3;
        picture.camera.target[axis] = (double)voxel[axis];
    }
    n_pixels = (size_t)picture.width * picture.height;
    rays = gpu_alloc(6 * n_pixels * sizeof *rays);
    REQUIRE(vxd_render_plan_create(env->queue, &picture, &plan, NULL) == VXD_OK);
    for (size_t i = 0; i < n_pixels; i++) {
        vxd_render_pixel_ray(plan, (uint32_t)(i % picture.width),
                             (uint32_t)(i / picture.width), rays + 3 * i,
                             rays + 3 * (n_pixels + i));
    }
    arrays[0] = gpu_to_device(env, rays, 3 * n_pixels * sizeof *rays);
    arrays[1] = gpu_to_device(env, rays + 3 * n_pixels, 3 * n_pixels * sizeof *rays);
    hits = gpu_to_device(env, NULL, n_pixels * sizeof *known);
    CHECK_INT(vxd_svdag_cast_rays(env->queue, scene.svdag, scene.root, arrays[0].ptr,
                                  arrays[1].ptr, NULL, n_pixels, hits.ptr, NULL),
              VXD_OK);
    known = gpu_to_host(env, &hits);
    pixels = draw(env, &picture, scene.svdag, scene.root);
    for (size_t i = 0; i < n_pixels; i++) {
        float depth;

        memcpy(&depth, &pixels[i], sizeof depth);
        n_hits += known[i].distance >= 0 ? 1 : 0;
        if (known[i].distance < 0
                ? !isinf(depth)
                : !(fabs(depth - known[i].distance) <= 1e-6 * (1 + known[i].distance))) {
            n_others++;
        }
    }
    CHECK(n_hits >= 20);
    CHECK(n_others <= n_pixels / 1000);
    vxd_render_plan_destroy(env->queue, plan);
    for (int i = 0; i < 2; i++) {
        vxd_device_free(env->queue, &arrays[i]);
    }
    vxd_device_free(env->queue, &hits);
    gpu_svdag_scene_free(env->queue, &scene);
    free(rays);
    free(known);
    free(pixels);
    free(voxels);
}

static void test_depths_of_a_large_scene_are_those_of_ray_queries(void)
{
    forget_kept();
    gpu_each_backend(large_scene);
}

/* --- light -------------------------------------------------------------------------------- */

/* Voxels of a box, low to high, of a code. */
static size_t add_box(struct gpu_svdag_voxel *voxels, size_t n, const uint32_t low[3],
                      const uint32_t high[3], uint32_t code)
{
    for (uint32_t x = low[0]; x < high[0]; x++) {
        for (uint32_t y = low[1]; y < high[1]; y++) {
            for (uint32_t z = low[2]; z < high[2]; z++) {
                voxels[n].morton = gpu_svdag_morton(x, y, z);
                voxels[n++].code = code;
            }
        }
    }
    return n;
}

/* A floor of 64 x 64 at z = 4, and a wall of that many voxels above it at x = 0 .. 3. */
static void build_corner(struct gpu_env *env, uint32_t wall,
                         struct gpu_svdag_scene *scene)
{
    struct vxd_svdag_format format = {6, 4, false};
    struct gpu_svdag_voxel *voxels = gpu_alloc(64 * 64 * 68 * sizeof *voxels);
    size_t n = add_box(voxels, 0, (uint32_t[3]){0, 0, 0}, (uint32_t[3]){64, 64, 4},
                       GPU_SVDAG_MATERIAL);

    n = add_box(voxels, n, (uint32_t[3]){0, 0, 4}, (uint32_t[3]){4, 64, 4 + wall},
                GPU_SVDAG_MATERIAL + 1);
    qsort(voxels, n, sizeof *voxels, gpu_svdag_voxel_compare);
    gpu_svdag_scene_build(env->queue, &format, voxels, n, scene);
    free(voxels);
}

/* Straight down on the floor at x, so that all pixels show it around there. */
static void look_down(struct vxd_render_camera *camera, double x)
{
    camera->kind = VXD_RENDER_ORTHOGRAPHIC;
    camera->view_height = 0.01;
    camera->eye[0] = camera->target[0] = x;
    camera->eye[1] = camera->target[1] = 32.3;
    camera->eye[2] = 63.5;
    camera->target[2] = 0;
    camera->up[0] = 0;
    camera->up[1] = 1;
    camera->up[2] = 0;
}

/* The share of a floor point's hemisphere, by cosine, that a wall of width w to either side and
 * height h at distance d covers. */
static double covered(double d, double w, double h)
{
    double far = sqrt(h * h + d * d);

    return 2 / (2 * 3.14159265358979) * (atan(w / d) - d / far * atan(w / far));
}

static void corner(struct gpu_env *env)
{
    static const double places[4] = {5.0, 7.5, 12.0, 30.0};
    struct gpu_svdag_scene scene;

    n_pictures = 0;
    build_corner(env, 40, &scene);
    for (int i = 0; i < 4; i++) {
        struct vxd_render_picture picture = plain_picture(6);
        double open = 1 - covered(places[i] - 4, 32, 40);
        double sum = 0;
        uint32_t *pixels;

        picture.mode = VXD_RENDER_AO;
        picture.width = picture.height = 4;
        picture.ao_samples = 1024;
        look_down(&picture.camera, places[i]);
        pixels = draw(env, &picture, scene.svdag, scene.root);
        for (int k = 0; k < 16; k++) {
            double stored = (pixels[k] & 0xffu) / 255.0;

            sum += stored * stored / 16;
        }
        CHECK(fabs(sum - open) < 0.006);
        free(pixels);
    }
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_occlusion_beside_a_wall_is_what_geometry_says(void)
{
    forget_kept();
    gpu_each_backend(corner);
}

/* In a white world everything is as bright as its sky, to the bit, where paths get out. */
static void furnace(struct gpu_env *env)
{
    static const uint32_t white[2] = {0xffffff, 0xffffff};
    struct gpu_svdag_scene scene;
    struct vxd_render_picture picture = plain_picture(6);
    uint32_t *pixels;
    size_t n_solid = 0;

    n_pictures = 0;
    build_corner(env, 0, &scene); /* a slab is convex: one bounce leaves it */
    picture.mode = VXD_RENDER_PATH;
    picture.samples = 7;
    picture.palette = white;
    picture.n_palette = 2;
    picture.sky_horizon = picture.sky_zenith = picture.sky_ground = 0xffffff;
    picture.sun = 0;
    pixels = draw(env, &picture, scene.svdag, scene.root);
    for (uint32_t i = 0; i < picture.width * picture.height; i++) {
        CHECK_INT(pixels[i] & 0xffffffu, 0xffffff);
        n_solid += pixels[i] >> 24 == 0xff ? 1 : 0;
    }
    CHECK(n_solid > 50);
    free(pixels);
    gpu_svdag_scene_free(env->queue, &scene);
    /* In a corner paths need more bounces: with many hardly any light is lost. */
    build_corner(env, 40, &scene);
    picture.bounces = VXD_RENDER_MAX_BOUNCES;
    pixels = draw(env, &picture, scene.svdag, scene.root);
    for (uint32_t i = 0; i < picture.width * picture.height; i++) {
        CHECK((pixels[i] & 0xffu) >= 254);
    }
    free(pixels);
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_a_white_furnace_is_white(void)
{
    forget_kept();
    gpu_each_backend(furnace);
}

/* The wall's shadow ends on the floor where the sun's slope says. */
static void shadow(struct gpu_env *env)
{
    static const uint32_t colours[2] = {0xff8000, 0x00ff00};
    struct gpu_svdag_scene scene;
    struct vxd_render_picture picture = plain_picture(6);

    n_pictures = 0;
    build_corner(env, 10, &scene);
    picture.mode = VXD_RENDER_COLOUR;
    picture.palette = colours;
    picture.n_palette = 2;
    picture.width = picture.height = 2;
    picture.ambient = 0.25;
    picture.sun = 0.75 * sqrt(1.25); /* a floor in the sun has light 1 */
    picture.sun_direction[0] = -1;
    picture.sun_direction[1] = 0;
    picture.sun_direction[2] = 2; /* a shadow half as long as the wall is high: 5 */
    for (int is_shadowed = 0; is_shadowed < 2; is_shadowed++) {
        for (int has_shadows = 0; has_shadows < 2; has_shadows++) {
            uint32_t *pixels;
            double red;

            picture.shadows = has_shadows != 0;
            look_down(&picture.camera, is_shadowed != 0 ? 8.9 : 9.1);
            pixels = draw(env, &picture, scene.svdag, scene.root);
            red = 255 * (is_shadowed != 0 && has_shadows != 0 ? sqrt(0.25) : 1.0);
            for (int i = 0; i < 4; i++) {
                CHECK(fabs((double)(pixels[i] & 0xffu) - red) <= 1);
                CHECK(fabs((double)(pixels[i] >> 8 & 0xffu) - red * 128 / 255) <= 1);
                CHECK_INT(pixels[i] >> 16, 0xff00);
            }
            free(pixels);
        }
    }
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_a_shadow_ends_where_the_sun_says(void)
{
    forget_kept();
    gpu_each_backend(shadow);
}

/* --- all modes on all backends ------------------------------------------------------------ */

static void every_mode(struct gpu_env *env)
{
    struct vxd_svdag_format format = {6, 8, true};
    uint32_t *grid = gpu_svdag_random_grid(&format, 9);
    size_t n;
    struct gpu_svdag_voxel *voxels = gpu_svdag_grid_voxels(grid, format.depth, &n);
    static const uint32_t colours[3] = {0x102030, 0xff0000, 0x00ffee};
    struct gpu_svdag_scene scene;

    n_pictures = 0;
    gpu_svdag_scene_build(env->queue, &format, voxels, n, &scene);
    for (int mode = 0; mode < VXD_RENDER_N_MODES; mode++) {
        for (int k = 0; k < 4; k++) {
            struct vxd_render_picture picture = plain_picture(format.depth);

            picture.mode = (enum vxd_render_mode)mode;
            picture.roots = &scene.root;
            picture.n_roots = 1;
            picture.samples = 1 + (uint32_t)k;
            picture.ao_samples = mode == VXD_RENDER_AO || k == 3 ? 5 : 0;
            picture.ao_radius = k == 2 ? 7.5 : 0;
            picture.shadows = k != 1;
            picture.palette = colours;
            picture.n_palette = 3;
            picture.variation = 0.2 * k;
            picture.detail = k == 3 ? 2 : 0;
            picture.camera.kind = (enum vxd_render_camera_kind)(k == 3 ? 0 : k);
            picture.seed = (uint32_t)k;
            free(draw(env, &picture, scene.svdag, scene.root));
        }
    }
    gpu_svdag_scene_free(env->queue, &scene);
    free(voxels);
    free(grid);
}

static void test_every_mode_gives_the_same_pixels_on_every_backend(void)
{
    forget_kept();
    gpu_each_backend(every_mode);
}

/* Cubes below a pixel are one voxel: what is hit lies no farther away, and at most such a cube's
 * diagonal nearer, or it is a cube that the ray misses by less than that. */
static void detail(struct gpu_env *env)
{
    struct vxd_svdag_format format = {6, 4, false};
    uint32_t *grid = gpu_svdag_random_grid(&format, 4);
    size_t n;
    struct gpu_svdag_voxel *voxels = gpu_svdag_grid_voxels(grid, format.depth, &n);
    struct vxd_render_picture picture = plain_picture(format.depth);
    struct gpu_svdag_scene scene;
    uint32_t *pixels[2];
    size_t n_other = 0;

    n_pictures = 0;
    gpu_svdag_scene_build(env->queue, &format, voxels, n, &scene);
    picture.camera.kind = VXD_RENDER_ORTHOGRAPHIC;
    picture.mode = VXD_RENDER_DEPTH;
    picture.voxel_size_m = 1;
    for (int i = 0; i < 2; i++) {
        /* A pixel is 96 / 21 voxels: cubes of 4 are below it. */
        picture.detail = i;
        pixels[i] = draw(env, &picture, scene.svdag, scene.root);
    }
    for (uint32_t i = 0; i < picture.width * picture.height; i++) {
        float depths[2];

        memcpy(&depths[0], &pixels[0][i], sizeof depths[0]);
        memcpy(&depths[1], &pixels[1][i], sizeof depths[1]);
        CHECK(depths[1] <= depths[0]);
        n_other += depths[1] < depths[0] ? 1 : 0;
    }
    CHECK(n_other > 10);
    free(pixels[0]);
    free(pixels[1]);
    gpu_svdag_scene_free(env->queue, &scene);
    free(voxels);
    free(grid);
}

static void test_cubes_below_a_pixel_are_drawn_as_voxels(void)
{
    forget_kept();
    gpu_each_backend(detail);
}

/* --- edges -------------------------------------------------------------------------------- */

static void empty_and_full(struct gpu_env *env)
{
    struct vxd_svdag_format format = {8, 8, false};
    struct gpu_svdag_voxel voxel = {gpu_svdag_morton(3, 200, 77), GPU_SVDAG_MATERIAL + 9};
    struct gpu_svdag_scene scene;
    struct vxd_render_picture picture = plain_picture(format.depth);
    uint32_t *pixels;

    n_pictures = 0;
    gpu_svdag_scene_build(env->queue, &format, &voxel, 1, &scene);
    pixels = draw(env, &picture, scene.svdag, VXD_SVDAG_EMPTY);
    for (uint32_t i = 0; i < picture.width * picture.height; i++) {
        CHECK_INT((int32_t)pixels[i], -1);
    }
    free(pixels);
    pixels = draw(env, &picture, scene.svdag, VXD_SVDAG_UNIFORM | 5);
    CHECK_INT(pixels[picture.width * (picture.height / 2) + picture.width / 2], 5);
    free(pixels);
    /* From inside a voxel: it is all there is, at 0, without a face; and light comes from
     * nowhere. */
    for (int axis = 0; axis < 3; axis++) {
        picture.camera.eye[axis] = (double)(axis == 0 ? 3 : axis == 1 ? 200 : 77) + 0.5;
    }
    for (int mode = 0; mode < VXD_RENDER_N_MODES; mode++) {
        static const uint32_t known[3] = {0, 0, 9};

        picture.mode = (enum vxd_render_mode)mode;
        picture.roots = &scene.root;
        picture.n_roots = 1;
        picture.ao_samples = 2;
        pixels = draw(env, &picture, scene.svdag, scene.root);
        for (uint32_t i = 0; i < picture.width * picture.height; i++) {
            if (mode < 3) {
                CHECK_INT(pixels[i], known[mode]);
            } else {
                CHECK_INT(pixels[i], pixels[0]);
                CHECK_INT(pixels[i] >> 24, 0xff);
            }
        }
        free(pixels);
    }
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_empty_and_full_scenes_and_a_camera_in_a_voxel(void)
{
    forget_kept();
    gpu_each_backend(empty_and_full);
}

static void parts_of_a_picture(struct gpu_env *env)
{
    static const uint32_t steps[2] = {5, 19};
    struct gpu_svdag_scene scene;
    struct vxd_render_picture picture = plain_picture(6);
    struct vxd_render_rect part = {1, 0, picture.width, 1};
    struct vxd_render_plan *plan = NULL;
    size_t n_bytes;
    struct vxd_buffer pixels;
    uint32_t *whole;
    uint32_t *parts;

    n_pictures = 0;
    build_corner(env, 20, &scene);
    picture.mode = VXD_RENDER_COLOUR;
    picture.samples = 2;
    n_bytes = (size_t)picture.width * picture.height * sizeof(uint32_t);
    whole = draw(env, &picture, scene.svdag, scene.root);
    pixels = gpu_to_device(env, NULL, n_bytes);
    REQUIRE(vxd_render_plan_create(env->queue, &picture, &plan, NULL) == VXD_OK);
    CHECK_INT(vxd_render_draw(env->queue, plan, scene.svdag, scene.root, &part,
                              pixels.ptr, NULL),
              VXD_INVALID_ARGUMENT);
    part = (struct vxd_render_rect){0, picture.height, 1, 1};
    CHECK_INT(vxd_render_draw(env->queue, plan, scene.svdag, scene.root, &part,
                              pixels.ptr, NULL),
              VXD_INVALID_ARGUMENT);
    part.height = 0;
    CHECK_INT(vxd_render_draw(env->queue, plan, scene.svdag, scene.root, &part,
                              pixels.ptr, NULL),
              VXD_OK);
    for (uint32_t y = 0; y < picture.height; y += steps[0]) {
        for (uint32_t x = 0; x < picture.width; x += steps[1]) {
            part = (struct vxd_render_rect){x, y, picture.width - x, picture.height - y};
            part.width = part.width < steps[1] ? part.width : steps[1];
            part.height = part.height < steps[0] ? part.height : steps[0];
            CHECK_INT(vxd_render_draw(env->queue, plan, scene.svdag, scene.root, &part,
                                      pixels.ptr, NULL),
                      VXD_OK);
        }
    }
    parts = gpu_to_host(env, &pixels);
    CHECK(memcmp(whole, parts, n_bytes) == 0);
    vxd_render_plan_destroy(env->queue, plan);
    vxd_device_free(env->queue, &pixels);
    gpu_svdag_scene_free(env->queue, &scene);
    free(whole);
    free(parts);
}

static void test_parts_of_a_picture_are_the_picture(void)
{
    forget_kept();
    gpu_each_backend(parts_of_a_picture);
}

/* --- pictures that are refused ------------------------------------------------------------ */

static void refuse(struct gpu_env *env, const struct vxd_render_picture *picture,
                   const char *field)
{
    struct vxd_render_plan *plan = NULL;
    struct vxd_err err = {0};

    CHECK_INT(vxd_render_plan_create(env->queue, picture, &plan, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, field);
    CHECK(plan == NULL);
}

#define REFUSE(member, value, field)                                                     \
    do {                                                                                 \
        struct vxd_render_picture bad = picture;                                         \
        bad.member = (value);                                                            \
        refuse(env, &bad, (field));                                                      \
    } while (0)

static void refusals(struct gpu_env *env)
{
    struct vxd_render_picture picture = plain_picture(6);

    picture.mode = VXD_RENDER_PATH;
    REFUSE(camera.kind, (enum vxd_render_camera_kind)9, "camera.kind");
    REFUSE(camera.eye[1], NAN, "camera.eye");
    REFUSE(camera.eye[2], INFINITY, "camera.eye");
    REFUSE(camera.eye[0], 4194305, "camera.eye");
    REFUSE(camera.target[0], NAN, "camera.target");
    REFUSE(camera.target[0], -INFINITY, "camera.target");
    REFUSE(camera.up[2], 0, "camera.up");
    REFUSE(camera.up[0], NAN, "camera.up");
    REFUSE(camera.fov_y_deg, 0, "camera.fov_y_deg");
    REFUSE(camera.fov_y_deg, 180, "camera.fov_y_deg");
    REFUSE(camera.fov_y_deg, NAN, "camera.fov_y_deg");
    REFUSE(width, 0, "width");
    REFUSE(height, VXD_RENDER_MAX_SIDE + 1, "height");
    REFUSE(mode, VXD_RENDER_N_MODES, "mode");
    REFUSE(samples, 0, "samples");
    REFUSE(samples, VXD_RENDER_MAX_SAMPLES + 1, "samples");
    REFUSE(bounces, 0, "bounces");
    REFUSE(sun, -1, "sun");
    REFUSE(ambient, NAN, "ambient");
    REFUSE(variation, 1.5, "variation");
    REFUSE(detail, -1, "detail");
    REFUSE(voxel_size_m, 0, "voxel_size_m");
    REFUSE(n_palette, 3, "palette");
    picture.sun_direction[0] = picture.sun_direction[1] = 0;
    REFUSE(sun_direction[2], 0, "sun_direction");
    memcpy(picture.camera.target, picture.camera.eye, sizeof picture.camera.eye);
    refuse(env, &picture, "camera.target");
    picture = plain_picture(6);
    picture.camera.kind = VXD_RENDER_ORTHOGRAPHIC;
    REFUSE(camera.view_height, 0, "camera.view_height");
    REFUSE(camera.view_height, 1e9, "camera.view_height");
    picture.camera.kind = VXD_RENDER_LIDAR;
    refuse(env, &picture, "camera.elevations_deg");
}

static void test_pictures_that_cannot_be_are_refused_by_field(void)
{
    gpu_each_backend(refusals);
}

/* Cameras at the ends of what is allowed draw something, and nothing breaks. */
static void extremes(struct gpu_env *env)
{
    static const double fovs[4] = {1e-300, 1e-6, 179.999999, 179.9999999999999};
    struct gpu_svdag_scene scene;
    struct vxd_render_picture picture = plain_picture(6);

    n_pictures = 0;
    build_corner(env, 20, &scene);
    picture.mode = VXD_RENDER_COLOUR;
    for (int i = 0; i < 4; i++) {
        picture.camera.fov_y_deg = fovs[i];
        free(draw(env, &picture, scene.svdag, scene.root));
    }
    picture = plain_picture(6);
    picture.mode = VXD_RENDER_HEIGHT;
    for (int i = 0; i < 3; i++) { /* up along the view */
        picture.camera.up[i] = picture.camera.target[i] - picture.camera.eye[i];
    }
    free(draw(env, &picture, scene.svdag, scene.root));
    for (int axis = 0; axis < 3; axis++) { /* straight along each axis */
        memcpy(picture.camera.target, picture.camera.eye, sizeof picture.camera.eye);
        picture.camera.target[axis] += 1e-9;
        free(draw(env, &picture, scene.svdag, scene.root));
    }
    picture.camera.eye[0] = -VXD_RENDER_MAX_PLACE;
    picture.camera.target[0] = 1e300;
    picture.z_high = picture.z_low;
    picture.width = 1;
    picture.height = 1;
    free(draw(env, &picture, scene.svdag, scene.root));
    gpu_svdag_scene_free(env->queue, &scene);
}

static void test_extreme_cameras_draw(void)
{
    forget_kept();
    gpu_each_backend(extremes);
    forget_kept();
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_primary_hits_are_those_of_the_rule_on_every_voxel),
    VXD_TEST(test_depths_of_a_large_scene_are_those_of_ray_queries),
    VXD_TEST(test_occlusion_beside_a_wall_is_what_geometry_says),
    VXD_TEST(test_a_white_furnace_is_white),
    VXD_TEST(test_a_shadow_ends_where_the_sun_says),
    VXD_TEST(test_every_mode_gives_the_same_pixels_on_every_backend),
    VXD_TEST(test_cubes_below_a_pixel_are_drawn_as_voxels),
    VXD_TEST(test_empty_and_full_scenes_and_a_camera_in_a_voxel),
    VXD_TEST(test_parts_of_a_picture_are_the_picture),
    VXD_TEST(test_pictures_that_cannot_be_are_refused_by_field),
    VXD_TEST(test_extreme_cameras_draw),
};

VXD_TEST_MAIN(tests)
