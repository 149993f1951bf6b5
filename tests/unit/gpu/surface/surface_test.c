// SPDX-License-Identifier: Apache-2.0
/* Surfaces of volumes that are given by functions: spheres, whose shape is known, and random
 * signs, which have all cases of marching cubes. Vertices are compared with a list made from the
 * function alone, without blocks. */
#include <math.h>

#include "gpu/surface/surface.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"
#include "tests/support/volume/volume_make.h"

/* A surface on the host. */
struct mesh {
    struct vxd_surface_counts n;
    float *vertices;
    float *normals;
    uint8_t *colours; /* NULL: the volume has none */
    int32_t *triangles;
    int32_t *blocks;
};

static struct vxd_err err;

static void *fetch(struct gpu_env *env, struct vxd_buffer *buffer)
{
    void *host = gpu_to_host(env, buffer);

    vxd_device_free(env->queue, buffer);
    return host;
}

static struct mesh extract(struct gpu_env *env, struct vxd_volume *volume,
                           const struct vxd_surface_args *args)
{
    struct mesh mesh = {0};
    struct vxd_buffer buffers[5];
    struct vxd_volume_info info;
    struct vxd_surface *surface = NULL;
    struct vxd_surface_outputs out;
    bool is_mesh = args->kind == VXD_SURFACE_MESH;

    vxd_volume_get_info(volume, &info);
    CHECK_INT(vxd_surface_create(env->queue, volume, args, &surface, &err), VXD_OK);
    if (surface == NULL) {
        return mesh;
    }
    vxd_surface_get_counts(surface, &mesh.n);
    buffers[0] = gpu_to_device(env, NULL, mesh.n.n_vertices * 12);
    buffers[1] = gpu_to_device(env, NULL, mesh.n.n_vertices * 12);
    buffers[2] = gpu_to_device(env, NULL, mesh.n.n_vertices * 3);
    buffers[3] = gpu_to_device(env, NULL, mesh.n.n_triangles * 12);
    buffers[4] = gpu_to_device(env, NULL, mesh.n.n_blocks * 16);
    out = (struct vxd_surface_outputs){.vertices = buffers[0].ptr,
                                       .normals = buffers[1].ptr,
                                       .colours =
                                           info.spec.has_colour ? buffers[2].ptr : NULL,
                                       .triangles = is_mesh ? buffers[3].ptr : NULL,
                                       .blocks = buffers[4].ptr};
    CHECK_INT(vxd_surface_write(env->queue, surface, &out, &err), VXD_OK);
    gpu_wait(env);
    vxd_surface_destroy(env->queue, surface);
    mesh.vertices = fetch(env, &buffers[0]);
    mesh.normals = fetch(env, &buffers[1]);
    mesh.colours = fetch(env, &buffers[2]);
    mesh.triangles = fetch(env, &buffers[3]);
    mesh.blocks = fetch(env, &buffers[4]);
    return mesh;
}

static void mesh_free(struct mesh *mesh)
{
    free(mesh->vertices);
    free(mesh->normals);
    free(mesh->colours);
    free(mesh->triangles);
    free(mesh->blocks);
}

static uint64_t digest_of(const struct mesh *mesh)
{
    uint64_t digest = gpu_digest(GPU_FNV_START, mesh->vertices, mesh->n.n_vertices * 12);

    digest = gpu_digest(digest, mesh->normals, mesh->n.n_vertices * 12);
    digest = gpu_digest(digest, mesh->colours, mesh->n.n_vertices * 3);
    digest = gpu_digest(digest, mesh->triangles, mesh->n.n_triangles * 12);
    return gpu_digest(digest, mesh->blocks, mesh->n.n_blocks * 16);
}

/* The same numbers on every backend: compares with those of the first one. */
static void check_digest(uint64_t *first, const struct mesh *mesh)
{
    uint64_t digest = digest_of(mesh);

    *first = *first == 0 ? digest : *first;
    CHECK(digest == *first);
}

/* --- what a mesh is made of ------------------------------------------------------------- */

static int compare_edges(const void *a, const void *b)
{
    return memcmp(a, b, 2 * sizeof(int32_t));
}

/* Counts the directed edges that have no opposite one; an edge that comes twice in one
 * direction, or a triangle with two equal corners, fails. */
static size_t count_open_edges(const struct mesh *mesh)
{
    size_t n = 3 * mesh->n.n_triangles;
    int32_t *edges = gpu_alloc((n + 1) * 2 * sizeof(int32_t));
    size_t n_open = 0;

    for (size_t i = 0; i < n; i++) {
        int32_t from = mesh->triangles[i];
        int32_t to = mesh->triangles[i % 3 < 2 ? i + 1 : i - 2];

        CHECK(from != to && from >= 0 && (size_t)from < mesh->n.n_vertices);
        edges[2 * i] = from;
        edges[2 * i + 1] = to;
    }
    qsort(edges, n, 2 * sizeof(int32_t), compare_edges);
    for (size_t i = 0; i < n; i++) {
        int32_t opposite[2] = {edges[2 * i + 1], edges[2 * i]};

        CHECK(i == 0 || compare_edges(edges + 2 * i, edges + 2 * i - 2) != 0);
        n_open += bsearch(opposite, edges, n, 2 * sizeof(int32_t), compare_edges) == NULL;
    }
    free(edges);
    return n_open;
}

static int compare_points(const void *a, const void *b)
{
    const float *p = a;
    const float *q = b;

    for (int i = 0; i < 3; i++) {
        if (p[i] != q[i]) {
            return p[i] < q[i] ? -1 : 1;
        }
    }
    return 0;
}

/* No vertex comes twice, and each is a corner of a triangle. */
static void check_vertices(const struct mesh *mesh)
{
    size_t n = mesh->n.n_vertices;
    float *sorted = gpu_alloc((n + 1) * 12);
    uint8_t *is_used = calloc(n + 1, 1);

    memcpy(sorted, mesh->vertices, n * 12);
    qsort(sorted, n, 12, compare_points);
    for (size_t i = 1; i < n; i++) {
        CHECK(compare_points(sorted + 3 * i, sorted + 3 * i - 3) != 0);
    }
    REQUIRE(is_used != NULL);
    for (size_t i = 0; i < 3 * mesh->n.n_triangles; i++) {
        is_used[mesh->triangles[i]] = 1;
    }
    for (size_t i = 0; i < n && mesh->n.n_triangles > 0; i++) {
        CHECK(is_used[i] == 1);
    }
    free(is_used);
    free(sorted);
}

/* Six times the volume that the mesh encloses: > 0 where it is seen from outside. */
static double volume_of(const struct mesh *mesh)
{
    double sum = 0;

    for (size_t i = 0; i < mesh->n.n_triangles; i++) {
        const float *a = mesh->vertices + 3 * mesh->triangles[3 * i];
        const float *b = mesh->vertices + 3 * mesh->triangles[3 * i + 1];
        const float *c = mesh->vertices + 3 * mesh->triangles[3 * i + 2];

        sum += (double)a[0] * ((double)b[1] * c[2] - (double)b[2] * c[1]) +
               (double)a[1] * ((double)b[2] * c[0] - (double)b[0] * c[2]) +
               (double)a[2] * ((double)b[0] * c[1] - (double)b[1] * c[0]);
    }
    return sum;
}

/* --- spheres ---------------------------------------------------------------------------- */

struct sphere {
    double centre[3]; /* voxels */
    double radius;
    double truncation;
};

static struct volume_voxel sphere_voxel(const void *user, int x, int y, int z)
{
    const struct sphere *s = user;
    double d[3] = {x + 0.5 - s->centre[0], y + 0.5 - s->centre[1],
                   z + 0.5 - s->centre[2]};
    double r = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) - s->radius;

    r = r / s->truncation;
    return (struct volume_voxel){.distance = (float)(r < -1  ? -1
                                                     : r > 1 ? 1
                                                             : r),
                                 .weight = 3,
                                 .colour = {200, 100, (uint8_t)(x & 255)}};
}

static const struct sphere ball = {{1.3, -0.4, 3.1}, 9.7, 4.0};

static void check_sphere(struct gpu_env *env, const struct vxd_volume_spec *spec,
                         double tolerance, uint64_t *first)
{
    int32_t n = 24 / spec->block_edge;
    struct volume_blocks blocks =
        volume_box((int32_t[3]){-n, -n, -n}, (int32_t[3]){n, n, n});
    struct vxd_volume *volume = volume_make(env, spec, &blocks, sphere_voxel, &ball);
    struct mesh mesh = extract(env, volume, &(struct vxd_surface_args){.min_weight = 3});
    double expected = 8 * acos(-1) * ball.radius * ball.radius * ball.radius;
    double unit = spec->voxel_size_m;

    CHECK(mesh.n.n_vertices > 1000);
    CHECK_INT(count_open_edges(&mesh), 0);
    CHECK_INT((long long)mesh.n.n_vertices - (long long)mesh.n.n_triangles / 2, 2);
    check_vertices(&mesh);
    CHECK(fabs(volume_of(&mesh) / (unit * unit * unit * expected) - 1) < 0.01);
    for (size_t i = 0; i < mesh.n.n_vertices; i++) {
        double square = 0;
        double dot = 0;

        for (int k = 0; k < 3; k++) {
            double d = mesh.vertices[3 * i + (size_t)k] / unit - ball.centre[k];

            square += d * d;
            dot += d * mesh.normals[3 * i + (size_t)k];
        }
        CHECK(fabs(sqrt(square) - ball.radius) < tolerance);
        CHECK(dot > 0.99 * ball.radius);
        CHECK(!spec->has_colour ||
              (mesh.colours[3 * i] == 200 && mesh.colours[3 * i + 1] == 100));
    }
    CHECK_INT(mesh.blocks[4 * (mesh.n.n_blocks - 1) + 3], mesh.n.n_triangles);
    check_digest(first, &mesh);
    mesh_free(&mesh);
    vxd_volume_destroy(env->queue, volume);
    free(blocks.keys);
}

static void spheres(struct gpu_env *env)
{
    static uint64_t first[3];
    struct vxd_volume_spec spec = {
        .voxel_size_m = 0.01, .block_edge = 8, .truncation_m = 0.04, .has_colour = true};

    check_sphere(env, &spec, 0.03, &first[0]);
    spec.block_edge = 16;
    spec.voxel_size_m = 1.0 / 64;
    spec.truncation_m = 4.0 / 64;
    check_sphere(env, &spec, 0.03, &first[1]);
    spec.form = VXD_VOLUME_COMPACT;
    spec.block_edge = 8;
    spec.has_colour = false;
    check_sphere(env, &spec, 0.035, &first[2]);
}

static void test_surface_of_sphere_is_closed_and_round(void)
{
    gpu_each_backend(spheres);
}

/* --- random signs ------------------------------------------------------------------------ */

struct noise {
    uint64_t seed;
    int hole; /* one in `hole` voxels is unknown; 0: none */
};

static struct volume_voxel noise_voxel(const void *user, int x, int y, int z)
{
    const struct noise *noise = user;
    uint64_t state = noise->seed ^ (uint64_t)(uint32_t)x << 42 ^
                     (uint64_t)(uint32_t)y << 21 ^ (uint64_t)(uint32_t)z;
    float d = gpu_random_float(&state, -1, 1);
    bool is_hole = noise->hole > 0 && gpu_random(&state) % (uint64_t)noise->hole == 0;

    d = gpu_random(&state) % 16 == 0 ? 0.0f : d; /* on the surface */
    return (struct volume_voxel){.distance = d, .weight = is_hole ? 1.0f : 2.0f};
}

/* Noise within 3 x 2 x 2 blocks, positive around it, so that its surface is closed. */
static struct volume_voxel island_voxel(const void *user, int x, int y, int z)
{
    bool inside = x >= 0 && y >= 0 && z >= 0 && x < 24 && y < 16 && z < 16;

    return inside ? noise_voxel(user, x, y, z)
                  : (struct volume_voxel){.distance = 0.5f, .weight = 2};
}

static void islands(struct gpu_env *env)
{
    static uint64_t first;
    struct vxd_volume_spec spec = {.voxel_size_m = 1, .block_edge = 8, .truncation_m = 4};
    struct noise noise = {.seed = 7};
    struct volume_blocks blocks =
        volume_box((int32_t[3]){-1, -1, -1}, (int32_t[3]){4, 3, 3});
    struct vxd_volume *volume = volume_make(env, &spec, &blocks, island_voxel, &noise);
    struct mesh mesh = extract(env, volume, &(struct vxd_surface_args){.min_weight = 2});

    CHECK(mesh.n.n_triangles > 10000);
    CHECK_INT(count_open_edges(&mesh), 0);
    check_vertices(&mesh);
    CHECK(volume_of(&mesh) > 0);
    check_digest(&first, &mesh);
    mesh_free(&mesh);
    vxd_volume_destroy(env->queue, volume);
    free(blocks.keys);
}

static void test_surface_of_all_cases_is_closed(void)
{
    gpu_each_backend(islands);
}

/* --- the vertices, without blocks -------------------------------------------------------- */

enum {
    SIDE = 24, /* voxels of the volume, from 0 on */
};

static struct volume_voxel at(const struct noise *noise, const int v[3])
{
    for (int i = 0; i < 3; i++) {
        if (v[i] < 0 || v[i] >= SIDE) {
            return (struct volume_voxel){.weight = 0};
        }
    }
    return noise_voxel(noise, v[0], v[1], v[2]);
}

/* Whether a cell around the edge has eight known corners. */
static bool is_in_cell(const struct noise *noise, const int v[3], int axis)
{
    for (int around = 0; around < 4; around++) {
        int cell[3] = {v[0], v[1], v[2]};
        bool is_known = true;

        cell[(axis + 1) % 3] -= around & 1;
        cell[(axis + 2) % 3] -= around >> 1;
        for (int c = 0; c < 8; c++) {
            int corner[3] = {cell[0] + (c & 1), cell[1] + (c >> 1 & 1),
                             cell[2] + (c >> 2)};

            is_known = is_known && at(noise, corner).weight >= 2;
        }
        if (is_known) {
            return true;
        }
    }
    return false;
}

/* The vertices that a surface of SIDE^3 voxels must have, sorted; *n of them. */
static float *expected_vertices(const struct noise *noise, bool is_mesh, size_t *n)
{
    float *out = gpu_alloc((size_t)SIDE * SIDE * SIDE * 3 * 12);

    *n = 0;
    for (int i = 0; i < SIDE * SIDE * SIDE * 3; i++) {
        int axis = i % 3;
        int v[3] = {i / 3 % SIDE, i / 3 / SIDE % SIDE, i / 3 / SIDE / SIDE};
        int w[3] = {v[0] + (axis == 0), v[1] + (axis == 1), v[2] + (axis == 2)};
        struct volume_voxel a = at(noise, v);
        struct volume_voxel b = at(noise, w);
        double t = a.distance / ((double)a.distance - b.distance);

        if (a.weight < 2 || b.weight < 2 || (a.distance < 0) == (b.distance < 0) ||
            (is_mesh && !is_in_cell(noise, v, axis))) {
            continue;
        }
        t = t < 1.0 / 1024 ? 1.0 / 1024 : t > 1023.0 / 1024 ? 1023.0 / 1024 : t;
        for (int k = 0; k < 3; k++) {
            out[3 * *n + (size_t)k] = (float)(v[k] + 0.5 + (k == axis ? t : 0));
        }
        ++*n;
    }
    qsort(out, *n, 12, compare_points);
    return out;
}

static void check_expected(struct gpu_env *env, struct vxd_volume *volume,
                           const struct noise *noise, enum vxd_surface_kind kind)
{
    struct mesh mesh =
        extract(env, volume, &(struct vxd_surface_args){.kind = kind, .min_weight = 2});
    size_t n = 0;
    float *expected = expected_vertices(noise, kind == VXD_SURFACE_MESH, &n);

    CHECK_INT(mesh.n.n_vertices, n);
    qsort(mesh.vertices, mesh.n.n_vertices, 12, compare_points);
    for (size_t i = 0; i < n && mesh.n.n_vertices == n; i++) {
        for (size_t k = 0; k < 3; k++) {
            CHECK(fabsf(mesh.vertices[3 * i + k] - expected[3 * i + k]) < 1e-4f);
        }
    }
    free(expected);
    mesh_free(&mesh);
}

static void vertices(struct gpu_env *env)
{
    struct noise noise = {.seed = 99, .hole = 40};
    struct volume_blocks blocks =
        volume_box((int32_t[3]){0, 0, 0}, (int32_t[3]){3, 3, 3});
    struct vxd_volume_spec spec = {.voxel_size_m = 1, .block_edge = 8, .truncation_m = 4};
    struct vxd_volume *volume = volume_make(env, &spec, &blocks, noise_voxel, &noise);

    check_expected(env, volume, &noise, VXD_SURFACE_MESH);
    check_expected(env, volume, &noise, VXD_SURFACE_POINTS);
    vxd_volume_destroy(env->queue, volume);
    free(blocks.keys);
}

static void test_surface_vertices_are_those_of_the_function(void)
{
    gpu_each_backend(vertices);
}

/* --- parts ------------------------------------------------------------------------------- */

static const float *corner(const struct mesh *mesh, size_t i)
{
    return mesh->vertices + 3 * mesh->triangles[i];
}

/* The triangles of a part's blocks are those that the whole has there. Returns the blocks. */
static size_t check_part(struct gpu_env *env, struct vxd_volume *volume,
                         const struct mesh *whole, const struct vxd_surface_args *args)
{
    struct mesh part = extract(env, volume, args);
    size_t n_blocks = part.n.n_blocks;
    size_t k = 0;

    check_vertices(&part);
    for (size_t b = 0; b < n_blocks; b++) {
        size_t begin = b > 0 ? (size_t)part.blocks[4 * b - 1] : 0;
        size_t end = (size_t)part.blocks[4 * b + 3];
        size_t first;

        while (k < whole->n.n_blocks &&
               memcmp(whole->blocks + 4 * k, part.blocks + 4 * b, 12) != 0) {
            k++;
        }
        CHECK(k < whole->n.n_blocks);
        if (k >= whole->n.n_blocks) {
            break;
        }
        first = k > 0 ? (size_t)whole->blocks[4 * k - 1] : 0;
        CHECK_INT(end - begin, (size_t)whole->blocks[4 * k + 3] - first);
        for (size_t i = 0; i < 3 * (end - begin); i++) {
            CHECK(memcmp(corner(whole, 3 * first + i), corner(&part, 3 * begin + i),
                         12) == 0);
        }
    }
    mesh_free(&part);
    return n_blocks;
}

/* Parts of at most so many bytes are the whole together, and are no smaller than they need be. */
static void check_bytes(struct gpu_env *env, struct vxd_volume *volume,
                        const struct mesh *whole)
{
    size_t n_whole =
        24 * whole->n.n_vertices + 12 * whole->n.n_triangles + 16 * whole->n.n_blocks;

    for (size_t divisor = 1; divisor < 2000; divisor *= 4) {
        struct vxd_surface_args args = {.min_weight = 2,
                                        .max_bytes = n_whole / divisor,
                                        .vertex_bytes = 24,
                                        .triangle_bytes = 12,
                                        .block_bytes = 16};
        size_t n_blocks = 0;
        size_t n_parts = 0;

        for (; args.first < whole->n.n_listed; n_parts++) {
            struct mesh part = extract(env, volume, &args);
            size_t n_bytes =
                24 * part.n.n_vertices + 12 * part.n.n_triangles + 16 * part.n.n_blocks;

            CHECK(n_bytes <= args.max_bytes || part.n.n_blocks == 1);
            CHECK(part.n.next > args.first && part.n.next <= part.n.n_listed);
            CHECK_INT(check_part(env, volume, whole, &args), part.n.n_blocks);
            n_blocks += part.n.n_blocks;
            args.first = part.n.next > args.first ? part.n.next : SIZE_MAX;
            mesh_free(&part);
        }
        CHECK_INT(n_blocks, whole->n.n_blocks);
        CHECK(n_parts >= (divisor < 27 ? divisor : 27) && n_parts <= 6 * divisor);
    }
}

static void parts(struct gpu_env *env)
{
    struct noise noise = {.seed = 5, .hole = 100};
    struct volume_blocks blocks =
        volume_box((int32_t[3]){-1, -1, -1}, (int32_t[3]){2, 2, 2});
    struct vxd_volume_spec spec = {.voxel_size_m = 0.5,
                                   .block_edge = 8,
                                   .truncation_m = 2,
                                   .origin_m = {100, -20, 3}};
    struct vxd_volume *volume = volume_make(env, &spec, &blocks, noise_voxel, &noise);
    struct vxd_surface_args args = {.min_weight = 2};
    struct mesh whole = extract(env, volume, &args);

    CHECK_INT(whole.n.n_blocks, 27);
    args.has_box = true; /* from within block 0 to the border of block 1 */
    for (int i = 0; i < 3; i++) {
        args.low[i] = spec.origin_m[i] + 1.9;
        args.high[i] = spec.origin_m[i] + 4.0;
    }
    CHECK_INT(check_part(env, volume, &whole, &args), 1);
    args.high[0] += 0.001;
    CHECK_INT(check_part(env, volume, &whole, &args), 2);
    args.has_box = false;
    args.since = 26; /* the last block, and its seven lower neighbours */
    CHECK_INT(check_part(env, volume, &whole, &args), 8);
    args.since = 24;
    CHECK_INT(check_part(env, volume, &whole, &args), 12);
    args.since = 27;
    CHECK_INT(check_part(env, volume, &whole, &args), 0);
    args.since = 0;
    args.limit = 10;
    for (args.first = 0; args.first < 40; args.first += 10) {
        size_t left = args.first < 27 ? 27 - args.first : 0;

        CHECK_INT(check_part(env, volume, &whole, &args), left < 10 ? left : 10);
    }
    CHECK_INT(whole.n.n_listed, 27);
    check_bytes(env, volume, &whole);
    mesh_free(&whole);
    vxd_volume_destroy(env->queue, volume);
    free(blocks.keys);
}

static void test_surface_of_some_blocks_is_part_of_the_whole(void)
{
    gpu_each_backend(parts);
}

/* --- edges of the contract ----------------------------------------------------------------- */

static void nothing(struct gpu_env *env)
{
    struct volume_blocks none = {.keys = NULL, .n = 0};
    struct volume_blocks one = volume_box((int32_t[3]){5, 5, 5}, (int32_t[3]){6, 6, 6});
    struct vxd_volume_spec spec = {
        .voxel_size_m = 0.01, .block_edge = 8, .truncation_m = 0.04};
    struct vxd_volume *empty = volume_make(env, &spec, &none, sphere_voxel, &ball);
    struct vxd_volume *flat = volume_make(env, &spec, &one, sphere_voxel, &ball);
    struct vxd_surface *surface = NULL;
    struct mesh mesh = extract(env, empty, &(struct vxd_surface_args){.since = 0});

    CHECK_INT(mesh.n.n_vertices + mesh.n.n_triangles + mesh.n.n_blocks, 0);
    mesh_free(&mesh);
    mesh = extract(env, flat, &(struct vxd_surface_args){.since = 0});
    CHECK_INT(mesh.n.n_vertices + mesh.n.n_triangles, 0);
    CHECK_INT(mesh.n.n_blocks, 1);
    mesh_free(&mesh);
    mesh = extract(env, flat, &(struct vxd_surface_args){.min_weight = 1e30});
    CHECK_INT(mesh.n.n_vertices, 0);
    mesh_free(&mesh);
    CHECK_INT(vxd_surface_create(env->queue, flat,
                                 &(struct vxd_surface_args){.min_weight = NAN}, &surface,
                                 &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "min_weight");
    CHECK_INT(vxd_surface_create(
                  env->queue, flat,
                  &(struct vxd_surface_args){.has_box = true, .low = {INFINITY, 0, 0}},
                  &surface, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "box");
    CHECK_INT(vxd_surface_create(env->queue, flat,
                                 &(struct vxd_surface_args){.kind = VXD_SURFACE_POINTS},
                                 &surface, &err),
              VXD_OK);
    CHECK_INT(vxd_surface_write(
                  env->queue, surface,
                  &(struct vxd_surface_outputs){.colours = (uint8_t *)surface}, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_surface_write(
                  env->queue, surface,
                  &(struct vxd_surface_outputs){.triangles = (int32_t *)surface}, &err),
              VXD_INVALID_ARGUMENT);
    vxd_surface_destroy(env->queue, surface);
    vxd_volume_destroy(env->queue, flat);
    vxd_volume_destroy(env->queue, empty);
    free(one.keys);
}

static void test_surface_without_anything_is_empty(void)
{
    gpu_each_backend(nothing);
}

/* --- allocations --------------------------------------------------------------------------- */

static uint64_t live_bytes(struct gpu_env *env)
{
    struct vxd_memory_usage usage;

    vxd_context_get_memory(env->context, &usage);
    return usage.device_bytes + usage.host_bytes;
}

/* Extracts a surface while allocation k fails; false where there are not so many. Where a
 * block that was kept can be given up instead, nothing fails. */
static bool extract_failing(long k, const struct volume_blocks *blocks)
{
    struct vxd_volume_spec spec = {
        .voxel_size_m = 0.01, .block_edge = 8, .truncation_m = 0.04};
    struct vxd_surface_args args = {.kind = VXD_SURFACE_MESH};
    struct vxd_surface *surface = NULL;
    struct vxd_volume *volume;
    struct gpu_env env;
    enum vxd_status status;
    bool was_reached;
    uint64_t before;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    volume = volume_make(&env, &spec, blocks, sphere_voxel, &ball);
    gpu_wait(&env);
    before = live_bytes(&env);
    fail_allocation(k);
    status = vxd_surface_create(env.queue, volume, &args, &surface, &err);
    was_reached = stop_failing();
    if (status != VXD_OK) {
        CHECK(was_reached);
        CHECK_INT(status, VXD_RESOURCE_EXHAUSTED);
        CHECK(surface == NULL);
        (void)vxd_queue_wait(env.queue, NULL);
        CHECK(live_bytes(&env) == before);
    }
    vxd_surface_destroy(env.queue, surface);
    vxd_volume_destroy(env.queue, volume);
    gpu_env_destroy(&env);
    return was_reached;
}

static void test_surface_without_memory_leaves_nothing_behind(void)
{
    struct volume_blocks blocks =
        volume_box((int32_t[3]){-2, -2, -2}, (int32_t[3]){2, 2, 2});
    long k = 0;

    while (k < 1000 && extract_failing(k, &blocks)) {
        k++;
    }
    CHECK(k > 10 && k < 1000);
    free(blocks.keys);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_surface_without_memory_leaves_nothing_behind),
    VXD_TEST(test_surface_of_sphere_is_closed_and_round),
    VXD_TEST(test_surface_of_all_cases_is_closed),
    VXD_TEST(test_surface_vertices_are_those_of_the_function),
    VXD_TEST(test_surface_of_some_blocks_is_part_of_the_whole),
    VXD_TEST(test_surface_without_anything_is_empty),
};

VXD_TEST_MAIN(tests)
