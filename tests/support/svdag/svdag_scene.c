// SPDX-License-Identifier: Apache-2.0
#include "tests/support/svdag/svdag_scene.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/store/store_table.h"
#include "tests/support/gpu/gpu_helpers.h"

/* The CPU scene that a GPU's scene was copied from, and the device memory of the copy. */
struct gpu_svdag_original {
    struct gpu_env env;
    struct vxd_svdag *svdag;
    struct vxd_buffer words;
    struct vxd_buffer chunks;
};

/* The Morton code of a node among those of its height, and its reference. */
struct node {
    uint64_t morton;
    uint32_t ref;
};

static void require(enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "scene: status %d, %s\n", (int)status, err->message);
        exit(EXIT_FAILURE);
    }
}

enum vxd_svdag_store gpu_svdag_store(const struct vxd_svdag_format *format)
{
    const char *text = getenv("VOXELD_TEST_SVDAG_STORE");

    return text == NULL || format->material_bits > 4
               ? VXD_SVDAG_ARENA
               : (enum vxd_svdag_store)strtol(text, NULL, 10);
}

uint64_t gpu_svdag_morton(uint32_t x, uint32_t y, uint32_t z)
{
    uint64_t morton = 0;

    for (int bit = 0; bit < VXD_SVDAG_MAX_DEPTH; bit++) {
        morton |= (uint64_t)(x >> bit & 1u) << (3 * bit + 2) |
                  (uint64_t)(y >> bit & 1u) << (3 * bit + 1) |
                  (uint64_t)(z >> bit & 1u) << (3 * bit);
    }
    return morton;
}

void gpu_svdag_unmorton(uint64_t morton, uint32_t voxel[3])
{
    voxel[0] = 0;
    voxel[1] = 0;
    voxel[2] = 0;
    for (int bit = 0; bit < 3 * VXD_SVDAG_MAX_DEPTH; bit++) {
        voxel[2 - bit % 3] |= (uint32_t)(morton >> bit & 1u) << (bit / 3);
    }
}

int gpu_svdag_voxel_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct gpu_svdag_voxel *)a)->morton;
    uint64_t y = ((const struct gpu_svdag_voxel *)b)->morton;

    return x < y ? -1 : x > y;
}

/* Inserts the leaves of the voxels; returns how many. */
static size_t put_leaves(struct vxd_svdag_writer *writer,
                         const struct gpu_svdag_voxel *voxels, size_t n,
                         struct node *nodes)
{
    struct vxd_err err = {0};
    size_t n_nodes = 0;

    for (size_t i = 0; i < n;) {
        struct node *node = nodes + n_nodes++;
        uint16_t values[64];
        struct vxd_svdag_leaf leaf = {.is_mixed = true, .values = values};

        node->morton = voxels[i].morton >> 6;
        for (; i < n && voxels[i].morton >> 6 == node->morton; i++) {
            int bit = (int)(voxels[i].morton & 63u);

            leaf.set |= (uint64_t)1 << bit;
            if (voxels[i].code == GPU_SVDAG_FREE) {
                leaf.free |= (uint64_t)1 << bit;
            } else {
                values[bit] = (uint16_t)(voxels[i].code - GPU_SVDAG_MATERIAL);
            }
        }
        require(vxd_svdag_leaf_put(writer, &leaf, &node->ref, &err), &err);
    }
    return n_nodes;
}

/* Replaces `nodes` by their parents; returns how many. */
static size_t put_inner(struct vxd_svdag_writer *writer, int height, struct node *nodes,
                        size_t n)
{
    struct vxd_err err = {0};
    size_t n_out = 0;

    for (size_t i = 0; i < n;) {
        uint64_t morton = nodes[i].morton >> 3;
        uint32_t children[8] = {0};
        uint32_t ref;

        for (; i < n && nodes[i].morton >> 3 == morton; i++) {
            children[nodes[i].morton & 7u] = nodes[i].ref;
        }
        require(vxd_svdag_inner_put(writer, height, children, &ref, &err), &err);
        nodes[n_out].morton = morton;
        nodes[n_out].ref = ref;
        n_out++;
    }
    return n_out;
}

/* Creates an empty store for a CPU queue. */
static struct vxd_svdag *create(struct vxd_queue *queue,
                                const struct vxd_svdag_format *format)
{
    struct vxd_svdag_spec spec = {.format = *format, .store = gpu_svdag_store(format)};
    struct vxd_err err = {0};
    struct vxd_svdag *svdag;

    require(vxd_svdag_create(queue, &spec, &svdag, &err), &err);
    return svdag;
}

/* Inserts a scene and returns its root. */
static uint32_t build(struct vxd_svdag *svdag, const struct gpu_svdag_voxel *voxels,
                      size_t n)
{
    struct vxd_svdag_writer writer = {.svdag = svdag};
    struct node *nodes = gpu_alloc(n * sizeof *nodes);
    size_t n_nodes;
    uint32_t root;

    n_nodes = put_leaves(&writer, voxels, n, nodes);
    for (int height = VXD_SVDAG_LEAF_HEIGHT + 1; height <= svdag->view.depth; height++) {
        n_nodes = put_inner(&writer, height, nodes, n_nodes);
    }
    root = n_nodes == 0 ? VXD_SVDAG_EMPTY : nodes[0].ref;
    vxd_svdag_writer_close(&writer);
    free(nodes);
    return root;
}

/* Copies all chunks of the original to the device and makes the table of their device
 * addresses. */
static void copy_words(struct vxd_queue *queue, struct gpu_svdag_original *original)
{
    const size_t chunk_bytes = sizeof(uint32_t) << VXD_SVDAG_CHUNK_BITS;
    const uint32_t *const *from = original->svdag->view.chunks;
    const uint32_t **table;
    struct vxd_err err = {0};
    size_t n = 0;

    original->words = (struct vxd_buffer){NULL, 0, VXD_SPACE_DEVICE};
    original->chunks = original->words;
    while (n < (size_t)1 << (32 - VXD_SVDAG_CHUNK_BITS) && from[n] != NULL) {
        n++;
    }
    if (n == 0) {
        return;
    }
    require(vxd_device_alloc(queue, n * chunk_bytes, &original->words, &err), &err);
    require(vxd_device_alloc(queue, n * sizeof *table, &original->chunks, &err), &err);
    table = gpu_alloc(n * sizeof *table);
    for (size_t i = 0; i < n; i++) {
        unsigned char *to = (unsigned char *)original->words.ptr + i * chunk_bytes;

        table[i] = (const uint32_t *)(const void *)to;
        require(vxd_queue_copy(queue, to, from[i], chunk_bytes, &err), &err);
    }
    require(vxd_queue_copy(queue, original->chunks.ptr, table, n * sizeof *table, &err),
            &err);
    require(vxd_queue_wait(queue, &err), &err);
    free(table);
}

void gpu_svdag_scene_build_two(struct vxd_queue *queue,
                               const struct vxd_svdag_format *format,
                               const struct gpu_svdag_voxel *const voxels[2],
                               const size_t n[2], struct gpu_svdag_scene *out)
{
    struct gpu_svdag_original *original;
    const struct vxd_svdag_store_table *table;
    struct vxd_err err = {0};

    out->original = NULL;
    if (vxd_context_backend(queue->context) == VXD_BACKEND_CPU) {
        out->svdag = create(queue, format);
        out->root = build(out->svdag, voxels[0], n[0]);
        out->other = build(out->svdag, voxels[1], n[1]);
        return;
    }
    original = gpu_alloc(sizeof *original);
    gpu_env_create(&original->env, VXD_BACKEND_CPU, 1, 0, 0);
    original->svdag = create(original->env.queue, format);
    out->root = build(original->svdag, voxels[0], n[0]);
    out->other = build(original->svdag, voxels[1], n[1]);
    copy_words(queue, original);
    out->original = original;
    out->svdag = gpu_alloc(sizeof *out->svdag);
    *out->svdag = *original->svdag;
    out->svdag->context = queue->context;
    out->svdag->view.chunks = original->chunks.ptr;
    if (original->svdag->spec.store != VXD_SVDAG_ARENA) { /* whose kernels read it */
        require(vxd_svdag_find_store(queue->context, original->svdag->spec.store, &table,
                                     &err),
                &err);
        out->svdag->device_ops = table->cuda;
    }
}

void gpu_svdag_scene_build(struct vxd_queue *queue, const struct vxd_svdag_format *format,
                           const struct gpu_svdag_voxel *voxels, size_t n,
                           struct gpu_svdag_scene *out)
{
    const struct gpu_svdag_voxel *const both[2] = {voxels, NULL};
    const size_t counts[2] = {n, 0};

    gpu_svdag_scene_build_two(queue, format, both, counts, out);
}

void gpu_svdag_scene_free(struct vxd_queue *queue, struct gpu_svdag_scene *scene)
{
    struct gpu_svdag_original *original = scene->original;

    if (original == NULL) {
        vxd_svdag_destroy(queue, scene->svdag);
    } else {
        free(scene->svdag);
        vxd_device_free(queue, &original->chunks);
        vxd_device_free(queue, &original->words);
        vxd_svdag_destroy(original->env.queue, original->svdag);
        gpu_env_destroy(&original->env);
        free(original);
    }
    scene->svdag = NULL;
}

static uint32_t random_code(const struct vxd_svdag_format *format, uint64_t *state)
{
    uint32_t code = (uint32_t)(gpu_random(state) %
                               (vxd_svdag_n_materials(format) + GPU_SVDAG_MATERIAL));

    return code == GPU_SVDAG_FREE && !format->tracks_free ? 0 : code;
}

uint32_t *gpu_svdag_random_grid(const struct vxd_svdag_format *format, uint64_t seed)
{
    uint32_t side = 1u << format->depth;
    uint32_t *grid = gpu_alloc((size_t)side * side * side * sizeof *grid);
    uint64_t state = seed;

    memset(grid, 0, (size_t)side * side * side * sizeof *grid);
    for (int step = 0; step < 40; step++) {
        uint32_t size[3];
        uint32_t low[3];
        uint32_t code = random_code(format, &state);
        uint32_t kind = (uint32_t)(gpu_random(&state) % 4);
        /* Also clears whole cubes of the size of nodes, which become uniform. */
        uint32_t align = gpu_random(&state) % 2 == 0 ? 1 : 8;

        for (int axis = 0; axis < 3; axis++) {
            size[axis] = (uint32_t)(gpu_random(&state) % (side / 2 / align) + 1) * align;
            low[axis] = (uint32_t)(gpu_random(&state) % side) / align * align;
        }
        for (uint32_t x = low[0]; x < low[0] + size[0] && x < side; x++) {
            for (uint32_t y = low[1]; y < low[1] + size[1] && y < side; y++) {
                for (uint32_t z = low[2]; z < low[2] + size[2] && z < side; z++) {
                    uint32_t *at = grid + ((size_t)x * side + y) * side + z;

                    *at = kind <= 1                           ? code
                          : kind == 2 && (x ^ y ^ z) % 4 == 1 ? code
                          : gpu_random(&state) % 16 == 0 ? random_code(format, &state)
                          : step % 3 == 0                ? 0
                                                         : *at;
                }
            }
        }
    }
    return grid;
}

struct gpu_svdag_voxel *gpu_svdag_grid_voxels(const uint32_t *grid, int depth, size_t *n)
{
    size_t n_all = (size_t)1 << (3 * depth);
    struct gpu_svdag_voxel *voxels = gpu_alloc(n_all * sizeof *voxels);

    *n = 0;
    for (uint64_t morton = 0; morton < n_all; morton++) {
        uint32_t at[3];
        uint32_t code;

        gpu_svdag_unmorton(morton, at);
        code = grid[(size_t)at[0] << (2 * depth) | (size_t)at[1] << depth | at[2]];
        if (code != 0) {
            voxels[*n].morton = morton;
            voxels[*n].code = code;
            (*n)++;
        }
    }
    return voxels;
}

struct gpu_svdag_voxel *gpu_svdag_random_voxels(const struct vxd_svdag_format *format,
                                                uint64_t seed, size_t *n)
{
    struct gpu_svdag_voxel *voxels = gpu_alloc(*n * sizeof *voxels);
    uint32_t side = 1u << format->depth;
    uint64_t state = seed;
    uint32_t at[3] = {0, 0, 0};
    size_t n_out = 0;

    for (size_t i = 0; i < *n; i++) {
        for (int axis = 0; axis < 3; axis++) {
            at[axis] = i % 8 == 0
                           ? (uint32_t)(gpu_random(&state) % side)
                           : (at[axis] + (uint32_t)(gpu_random(&state) % 3)) & (side - 1);
        }
        voxels[i].morton = gpu_svdag_morton(at[0], at[1], at[2]);
        voxels[i].code = random_code(format, &state);
        if (voxels[i].code == 0) {
            voxels[i].code = GPU_SVDAG_MATERIAL;
        }
    }
    qsort(voxels, *n, sizeof *voxels, gpu_svdag_voxel_compare);
    for (size_t i = 0; i < *n; i++) {
        if (n_out == 0 || voxels[n_out - 1].morton != voxels[i].morton) {
            voxels[n_out++] = voxels[i];
        }
    }
    *n = n_out;
    return voxels;
}
