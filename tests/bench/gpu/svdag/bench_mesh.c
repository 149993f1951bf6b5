// SPDX-License-Identifier: Apache-2.0
/* Scenes of meshes: the paper's Table 1, and what a store that splits its items costs paths.
 *
 * --part memory   voxelizes a mesh at several depths, without materials and with 4 bits, of 16
 *                 materials by bands of height, and prints bytes: raw (nodes of the scene), used (with
 *                 what the lists before the last one left) and taken of the arena, what an octree without sharing would take (SVO: a header word and a pointer a
 *                 child of each inner node, two words of a leaf's mask, and a nibble an occupied voxel),
 *                 the share of it that the DAG without materials takes, and what all stores take.
 *                 Triangles are read from memory and voxelized in lists of bounded size, each an edit.
 * --part paths    the camera stands inside the closed mesh, so no path leaves it soon: times pictures
 *                 by path tracing at 1 and 6 bounces in the arena and in atomic64, whose nodes are in
 *                 two pieces (the paper: 9 and 16 per cent slower). On the CPU the time is that of
 *                 all processors.
 * --part pictures the mesh from outside, as bench_render times other scenes.
 * usage: bench_mesh --mesh FILE.ply|obj [--backend cpu|cuda] [--threads N] [--depth N] [--to N]
 *                   [--repeat N] [--part memory|paths|pictures] [--stores 1: all five]
 *                   [--width PIXELS] [--height PIXELS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/files/mesh/files_mesh.h"
#include "gpu/render/render.h"
#include "gpu/svdag/diff/export_cells.h"
#include "gpu/svdag/edit/edit.h"
#include "gpu/svdag/mesh/mesh.h"
#include "tests/bench/support/bench_device.h"

#define MIB 1048576.0
#define MAX_REPEAT 50
#define N_BANDS 16

struct options {
    const char *mesh;
    enum vxd_backend backend;
    int n_threads;
    int depth, to;
    int n_repeat;
    bool is_paths;
    bool is_pictures;
    int has_stores;
    int width, height;
};

struct bench {
    struct options options;
    struct bench_device device;
    double *vertices; /* of unit size, its longest side 1, around 0 */
    size_t n_vertices;
    uint32_t *triangles;
    size_t n_triangles;
};

/* --- the mesh --------------------------------------------------------------------------- */

static enum vxd_status read_triangles(struct bench *bench, struct vxd_mesh_file *file,
                                      struct vxd_err *err)
{
    size_t capacity = 0;
    size_t n = 1;
    enum vxd_status status = VXD_OK;

    while (n > 0) {
        uint32_t(*all)[3];

        if (bench->n_triangles + VXD_MESH_MOST_CORNERS > capacity) {
            capacity = 2 * capacity + 65536;
            all = realloc(bench->triangles, capacity * sizeof *all);
            if (all == NULL) {
                return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
            }
            bench->triangles = (uint32_t *)all;
        }
        all = (uint32_t(*)[3])bench->triangles;
        VXD_TRY(vxd_mesh_next(file, all + bench->n_triangles,
                              capacity - bench->n_triangles, &n, err));
        bench->n_triangles += n;
    }
out:
    return status;
}

/* Turns a mesh whose y points up, and makes its longest side 1 around 0. */
static void normalize(struct bench *bench)
{
    double low[3] = {INFINITY, INFINITY, INFINITY};
    double high[3] = {-INFINITY, -INFINITY, -INFINITY};
    double side = 0;

    for (size_t i = 0; i < bench->n_vertices; i++) {
        double *v = bench->vertices + 3 * i;
        double y = v[1];

        v[1] = -v[2];
        v[2] = y;
        for (int k = 0; k < 3; k++) {
            low[k] = fmin(low[k], v[k]);
            high[k] = fmax(high[k], v[k]);
        }
    }
    for (int k = 0; k < 3; k++) {
        side = fmax(side, high[k] - low[k]);
    }
    for (size_t i = 0; i < 3 * bench->n_vertices; i++) {
        bench->vertices[i] = (bench->vertices[i] - (low[i % 3] + high[i % 3]) / 2) / side;
    }
}

static enum vxd_status read_mesh(struct bench *bench, struct vxd_err *err)
{
    struct vxd_mesh_file file = {0};
    enum vxd_mesh_format format;
    FILE *stream = fopen(bench->options.mesh, "rb");
    enum vxd_status status;

    if (stream == NULL || !vxd_mesh_format_of(bench->options.mesh, &format)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "mesh", "cannot be read: %s",
                         bench->options.mesh));
    }
    VXD_TRY(vxd_mesh_open(stream, format, (size_t)1 << 31, &file, err));
    VXD_TRY(read_triangles(bench, &file, err));
    bench->n_vertices = file.n_vertices;
    bench->vertices = file.vertices;
    file.vertices = NULL;
    normalize(bench);
out:
    vxd_mesh_close(&file);
    if (stream != NULL) {
        (void)fclose(stream);
    }
    return status;
}

/* --- scenes ----------------------------------------------------------------------------- */

struct scene {
    struct vxd_svdag *svdag;
    uint32_t root;
    uint64_t n_set; /* voxels that triangles set, those of two twice */
    double seconds;
};

/* Vertices in voxels: the mesh fills 0.96 of the scene's side. */
static enum vxd_status scale_mesh(const struct bench *bench, int bits, int depth,
                                  struct vxd_svdag_mesh *mesh, double **vertices,
                                  uint16_t **values, struct vxd_err *err)
{
    double side = (double)((int64_t)1 << depth);

    *vertices = malloc(3 * bench->n_vertices * sizeof **vertices);
    *values = bits > 0 ? malloc(bench->n_triangles * sizeof **values) : NULL;
    if (*vertices == NULL || (bits > 0 && *values == NULL)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    for (size_t i = 0; i < 3 * bench->n_vertices; i++) {
        (*vertices)[i] = (bench->vertices[i] * 0.96 + 0.5) * side;
    }
    for (size_t i = 0; bits > 0 && i < bench->n_triangles; i++) {
        double z = bench->vertices[3 * (size_t)bench->triangles[3 * i] + 2];
        double band = floor((z + 0.5) * N_BANDS * 4);

        (*values)[i] = (uint16_t)((int)band % N_BANDS);
    }
    *mesh = (struct vxd_svdag_mesh){.vertices = *vertices,
                                    .n_vertices = bench->n_vertices,
                                    .triangles = bench->triangles,
                                    .values = *values,
                                    .n = bench->n_triangles,
                                    .rule = VXD_SVDAG_MESH_CONSERVATIVE};
    return VXD_OK;
}

static enum vxd_status fill(struct bench *bench, const struct vxd_svdag_mesh *mesh,
                            struct scene *scene, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    const struct vxd_svdag_format *format = &vxd_svdag_get_spec(scene->svdag)->format;
    struct vxd_svdag_mesh_state state = {0};
    enum vxd_status status = VXD_OK;

    scene->root = VXD_SVDAG_EMPTY;
    while (state.triangle < mesh->n && status == VXD_OK) {
        struct vxd_svdag_voxel_list list = {0};
        struct vxd_svdag_edit_result edit = {0};
        struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL};

        status = vxd_svdag_list_triangles(queue, format, mesh, &state, &list, err);
        if (status == VXD_OK) {
            status = vxd_queue_wait(queue, err);
        }
        if (status == VXD_OK && list.voxels.n > 0) {
            op.shape.kind = VXD_SVDAG_VOXELS;
            op.shape.voxels = list.voxels;
            status =
                vxd_svdag_edit_wait(queue, scene->svdag, scene->root, &op, 1, &edit, err);
            scene->root = status == VXD_OK ? edit.root : scene->root;
        }
        vxd_svdag_voxel_list_free(queue, &list);
    }
    scene->n_set = state.n_voxels;
    return status;
}

static enum vxd_status make_scene(struct bench *bench, int depth, int bits,
                                  enum vxd_svdag_store store, struct scene *scene,
                                  struct vxd_err *err)
{
    struct vxd_svdag_spec spec = {
        .format = {depth, bits, false}, .store = store, .table_items = 0};
    struct vxd_svdag_mesh mesh;
    double *vertices = NULL;
    uint16_t *values = NULL;
    enum vxd_status status;

    *scene = (struct scene){0};
    VXD_TRY(vxd_svdag_create(bench->device.queue, &spec, &scene->svdag, err));
    VXD_TRY(scale_mesh(bench, bits, depth, &mesh, &vertices, &values, err));
    (void)bench_device_start(&bench->device);
    VXD_TRY(fill(bench, &mesh, scene, err));
    (void)bench_device_stop(&bench->device);
    VXD_TRY(vxd_queue_wait(bench->device.queue, err));
    scene->seconds = bench_device_seconds(&bench->device);
out:
    free(vertices);
    free(values);
    return status;
}

/* Cells of a level that hold an occupied voxel. */
static enum vxd_status count_cells(struct bench *bench, const struct scene *scene,
                                   int depth, int level, uint64_t *out,
                                   struct vxd_err *err)
{
    int64_t side = (int64_t)1 << depth;
    struct vxd_svdag_export box = {
        .low = {0, 0, 0}, .high = {side, side, side}, .level = level};
    struct vxd_buffer count = {0};
    struct vxd_queue *queue = bench->device.queue;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, sizeof *out, &count, err));
    VXD_TRY(
        vxd_svdag_count_cells(queue, scene->svdag, scene->root, &box, count.ptr, err));
    VXD_TRY(vxd_queue_copy(queue, out, count.ptr, sizeof *out, err));
    status = vxd_queue_wait(queue, err);
out:
    vxd_device_free(queue, &count);
    return status;
}

/* --- memory ----------------------------------------------------------------------------- */

/* Bytes of an octree that shares nothing. */
static enum vxd_status svo_bytes(struct bench *bench, const struct scene *scene,
                                 int depth, int bits, double *out, uint64_t *n_voxels,
                                 struct vxd_err *err)
{
    uint64_t n[VXD_SVDAG_MAX_DEPTH + 1] = {0};
    double words = 0;
    enum vxd_status status = VXD_OK;

    for (int level = 0; level <= depth; level++) {
        VXD_TRY(count_cells(bench, scene, depth, level, &n[level], err));
    }
    words = 2.0 * (double)n[2] + (double)n[0] * bits / 32;
    for (int level = 3; level <= depth; level++) {
        words += (double)n[level] + (double)n[level - 1];
    }
    *out = 4 * words;
    *n_voxels = n[0];
out:
    return status;
}

static enum vxd_status print_stores(struct bench *bench, int depth, int bits,
                                    struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (int store = 0; store < VXD_SVDAG_N_STORES && status == VXD_OK; store++) {
        struct scene scene;
        struct vxd_svdag_usage usage;

        status = make_scene(bench, depth, bits, (enum vxd_svdag_store)store, &scene, err);
        if (status == VXD_OK) {
            vxd_svdag_get_usage(scene.svdag, &usage);
            (void)printf(" %.1f |", (double)usage.used_bytes / MIB);
        }
        vxd_svdag_destroy(bench->device.queue, scene.svdag);
    }
    return status;
}

static enum vxd_status run_memory(struct bench *bench, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    (void)printf(
        "| side | materials | voxels | ms | nodes, raw MiB | used MiB | taken MiB "
        "| SVO MiB | share |%s\n|---|---|---:|---:|---:|---:|---:|---:|---:|%s\n",
        bench->options.has_stores != 0 ? " arena | atomic64 | ticket | accel32 | accel8 |"
                                       : "",
        bench->options.has_stores != 0 ? "---:|---:|---:|---:|---:|" : "");
    for (int depth = bench->options.depth; depth <= bench->options.to; depth++) {
        for (int bits = 0; bits <= 4; bits += 4) {
            struct scene scene;
            struct vxd_svdag_usage usage;
            struct vxd_svdag_summary summary = {0};
            double svo = 0;
            uint64_t n_voxels = 0;

            status = make_scene(bench, depth, bits, VXD_SVDAG_ARENA, &scene, err);
            if (status == VXD_OK) {
                status = svo_bytes(bench, &scene, depth, bits, &svo, &n_voxels, err);
            }
            if (status == VXD_OK) {
                status = vxd_svdag_verify(bench->device.queue, scene.svdag, scene.root,
                                          &summary, err);
            }
            if (status == VXD_OK) {
                vxd_svdag_get_usage(scene.svdag, &usage);
                (void)printf(
                    "| 2^%d | %s | %llu | %.0f | %.1f | %.1f | %.1f | %.1f | %.1f %% |",
                    depth, bits > 0 ? "4 bits" : "none", (unsigned long long)n_voxels,
                    scene.seconds * 1e3, (double)summary.node_bytes / MIB,
                    (double)usage.used_bytes / MIB, (double)usage.n_bytes / MIB,
                    svo / MIB, 100 * (double)summary.node_bytes / svo);
            }
            vxd_svdag_destroy(bench->device.queue, scene.svdag);
            if (status == VXD_OK && bench->options.has_stores != 0) {
                status = print_stores(bench, depth, bits, err);
            }
            (void)printf("\n");
            (void)fflush(stdout);
            VXD_TRY(status);
        }
    }
out:
    return status;
}

/* --- pictures --------------------------------------------------------------------------- */

/* From inside the mesh, or from a corner outside, so that it fills the picture. */
static struct vxd_render_picture picture_of(const struct bench *bench, int depth,
                                            bool is_inside)
{
    static const uint32_t palette[4] = {0x8d8478, 0x4f7a3a, 0xc2b280, 0xb5482f};
    static const double places[2][2][3] = {{{-0.35, -0.55, 0.85}, {0.5, 0.5, 0.46}},
                                           {{0.5, 0.5, 0.42}, {0.9, 0.6, 0.45}}};
    double side = (double)((int64_t)1 << depth);
    struct vxd_render_picture picture = {.camera = {.kind = VXD_RENDER_PINHOLE,
                                                    .up = {0, 0, 1},
                                                    .fov_y_deg = is_inside ? 90 : 45},
                                         .mode = VXD_RENDER_PATH,
                                         .width = (uint32_t)bench->options.width,
                                         .height = (uint32_t)bench->options.height,
                                         .voxel_size_m = 1,
                                         .samples = 1,
                                         .bounces = 3,
                                         .shadows = true,
                                         .sun_direction = {-0.5, -0.35, 0.8},
                                         .sun = 0.8,
                                         .ambient = 0.4,
                                         .sky_zenith = 0x5c8fd6,
                                         .sky_horizon = 0xdfe9f3,
                                         .sky_ground = 0xc2c6ca,
                                         .sky = 1,
                                         .palette = palette,
                                         .n_palette = 4};

    for (int i = 0; i < 3; i++) {
        picture.camera.eye[i] = places[is_inside ? 1 : 0][0][i] * side;
        picture.camera.target[i] = places[is_inside ? 1 : 0][1][i] * side;
    }
    return picture;
}

/* The median of the runs: of the GPU's clock, or of all processors. */
static enum vxd_status time_picture(struct bench *bench, const struct scene *scene,
                                    const struct vxd_render_picture *picture, double *out,
                                    struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    const struct vxd_render_rect whole = {0, 0, picture->width, picture->height};
    struct vxd_buffer pixels = {0};
    struct vxd_render_plan *plan = NULL;
    double seconds[MAX_REPEAT];
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, (size_t)picture->width * picture->height * 4, &pixels,
                             err));
    VXD_TRY(vxd_render_plan_create(queue, picture, &plan, err));
    for (int i = -1; i < bench->options.n_repeat; i++) {
        double began;

        VXD_TRY(bench_device_flush(&bench->device, err));
        began = (double)clock() / CLOCKS_PER_SEC;
        (void)bench_device_start(&bench->device);
        VXD_TRY(vxd_render_draw(queue, plan, scene->svdag, scene->root, &whole,
                                pixels.ptr, err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(queue, err));
        seconds[i < 0 ? 0 : i] = bench->options.backend == VXD_BACKEND_CUDA
                                     ? bench_device_seconds(&bench->device)
                                     : (double)clock() / CLOCKS_PER_SEC - began;
    }
    *out = bench_median(seconds, bench->options.n_repeat);
out:
    vxd_render_plan_destroy(queue, plan);
    vxd_device_free(queue, &pixels);
    return status;
}

static enum vxd_status run_paths(struct bench *bench, struct vxd_err *err)
{
    static const enum vxd_svdag_store stores[2] = {VXD_SVDAG_ARENA, VXD_SVDAG_ATOMIC64};
    static const uint32_t bounces[2] = {1, 6};
    enum vxd_status status = VXD_OK;

    (void)printf("| side | bounces | arena ms | atomic64 ms | slower by |\n"
                 "|---|---:|---:|---:|---:|\n");
    for (int depth = bench->options.depth; depth <= bench->options.to; depth++) {
        double seconds[2][2];

        for (int k = 0; k < 2; k++) {
            struct scene scene;

            status = make_scene(bench, depth, 4, stores[k], &scene, err);
            for (int b = 0; b < 2 && status == VXD_OK; b++) {
                struct vxd_render_picture picture = picture_of(bench, depth, true);

                picture.bounces = bounces[b];
                picture.sun = 0; /* no rays to it: what is timed are paths alone */
                status = time_picture(bench, &scene, &picture, &seconds[k][b], err);
            }
            vxd_svdag_destroy(bench->device.queue, scene.svdag);
            VXD_TRY(status);
        }
        for (int b = 0; b < 2; b++) {
            (void)printf("| 2^%d | %u | %.2f | %.2f | %.1f %% |\n", depth, bounces[b],
                         seconds[0][b] * 1e3, seconds[1][b] * 1e3,
                         100 * (seconds[1][b] / seconds[0][b] - 1));
        }
    }
out:
    return status;
}

static enum vxd_status run_pictures(struct bench *bench, struct vxd_err *err)
{
    static const struct {
        const char *name;
        enum vxd_render_mode mode;
        uint32_t samples;
        bool shadows;
    } kinds[] = {{"primary", VXD_RENDER_MATERIAL, 1, false},
                 {"primary + shadow", VXD_RENDER_COLOUR, 1, true},
                 {"AO, 16 samples", VXD_RENDER_AO, 1, false},
                 {"paths, 16 samples, 3 bounces", VXD_RENDER_PATH, 16, true}};
    enum vxd_status status = VXD_OK;

    (void)printf("| side | picture | ms | M rays/s |\n|---|---|---:|---:|\n");
    for (int depth = bench->options.depth; depth <= bench->options.to; depth++) {
        struct scene scene;

        status = make_scene(bench, depth, 4, VXD_SVDAG_ARENA, &scene, err);
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && status == VXD_OK; i++) {
            struct vxd_render_picture picture = picture_of(bench, depth, false);
            double seconds;

            picture.mode = kinds[i].mode;
            picture.samples = kinds[i].samples;
            picture.shadows = kinds[i].shadows;
            picture.ao_samples = kinds[i].mode == VXD_RENDER_AO ? 16 : 0;
            status = time_picture(bench, &scene, &picture, &seconds, err);
            if (status == VXD_OK) {
                (void)printf(
                    "| 2^%d | %s | %.3f | %.0f |\n", depth, kinds[i].name, seconds * 1e3,
                    (double)picture.width * picture.height *
                        (double)vxd_render_rays_of_pixel(&picture) / seconds * 1e-6);
            }
        }
        vxd_svdag_destroy(bench->device.queue, scene.svdag);
        VXD_TRY(status);
    }
out:
    return status;
}

/* --- main ------------------------------------------------------------------------------- */

static bool read_options(int argc, char **argv, struct options *options)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i];
        const char *value = argv[i + 1];
        int number = (int)strtol(value, NULL, 10);

        if (strcmp(key, "--mesh") == 0) {
            options->mesh = value;
        } else if (strcmp(key, "--backend") == 0) {
            options->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(key, "--threads") == 0) {
            options->n_threads = number;
        } else if (strcmp(key, "--depth") == 0) {
            options->depth = number;
        } else if (strcmp(key, "--to") == 0) {
            options->to = number;
        } else if (strcmp(key, "--repeat") == 0) {
            options->n_repeat = number;
        } else if (strcmp(key, "--stores") == 0) {
            options->has_stores = number;
        } else if (strcmp(key, "--width") == 0) {
            options->width = number;
        } else if (strcmp(key, "--height") == 0) {
            options->height = number;
        } else if (strcmp(key, "--part") == 0) {
            options->is_paths = strcmp(value, "paths") == 0;
            options->is_pictures = strcmp(value, "pictures") == 0;
        } else {
            return false;
        }
    }
    options->to = options->to > options->depth ? options->to : options->depth;
    return argc % 2 == 1 && options->mesh != NULL && options->n_repeat >= 1 &&
           options->n_repeat <= MAX_REPEAT && options->depth >= VXD_SVDAG_MIN_DEPTH &&
           options->to <= VXD_SVDAG_MAX_DEPTH && options->width > 0 &&
           options->height > 0;
}

int main(int argc, char **argv)
{
    struct bench bench = {
        .options = {.depth = 9, .to = 0, .n_repeat = 5, .width = 640, .height = 360}};
    struct vxd_err err = {0};
    enum vxd_status status;

    if (!read_options(argc, argv, &bench.options)) {
        (void)fputs(
            "usage: bench_mesh --mesh FILE.ply|obj [--backend cpu|cuda] [--threads N] "
            "[--depth N] [--to N] [--repeat N] [--part memory|paths|pictures] [--stores "
            "1] "
            "[--width N] [--height N]\n",
            stderr);
        return 2;
    }
    status = bench_device_create(bench.options.backend, bench.options.n_threads,
                                 &bench.device, &err);
    if (status == VXD_OK) {
        status = read_mesh(&bench, &err);
    }
    if (status == VXD_OK) {
        status = bench.options.is_paths      ? run_paths(&bench, &err)
                 : bench.options.is_pictures ? run_pictures(&bench, &err)
                                             : run_memory(&bench, &err);
    }
    free(bench.vertices);
    free(bench.triangles);
    bench_device_destroy(&bench.device);
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_mesh: %s %s\n", err.field, err.message);
    }
    return status == VXD_OK ? 0 : 1;
}
