// SPDX-License-Identifier: Apache-2.0
/* Row by row in key order, tap by tap. The key of the cell that a tap reads is the
 * bitwise or of three axis parts; its block comes from a small cache (the 64 cells of
 * an output block read some 27 blocks), its row from a bit test and a population
 * count. */
#include "gpu/sparse/coords/coords_cpu.h"
#include "gpu/sparse/kernel_map/kernel_map_backends.h"

/* A multiple of VXD_SPARSE_ROW_PAD. */
#define PIECE_ROWS ((size_t)1024)
#define CACHE_BLOCKS 64

struct build {
    const struct vxd_kernel_map_call *call;
    size_t n_rows;
    uint64_t slot_mask;
};

/* The thread that works on a piece keeps blocks by the low two bits of each axis. */
struct cache {
    uint64_t blocks[CACHE_BLOCKS];
    uint64_t masks[CACHE_BLOCKS]; /* 0: the input has no such block */
    uint32_t rows[CACHE_BLOCKS];
};

static int32_t find_row(const struct build *build, struct cache *cache, uint64_t key)
{
    const struct vxd_coord_set *in = &build->call->in;
    uint64_t block = key >> 6;
    uint64_t at = block & (CACHE_BLOCKS - 1);
    int cell = (int)(key & 63);

    if (cache->blocks[at] != block) {
        uint32_t number = vxd_sparse_find_block(in, build->slot_mask, block);

        cache->blocks[at] = block;
        cache->masks[at] = number != VXD_SPARSE_NO_BLOCK ? in->block_mask[number] : 0;
        cache->rows[at] = number != VXD_SPARSE_NO_BLOCK ? in->block_row[number] : 0;
    }
    if ((cache->masks[at] >> cell & 1) == 0) {
        return -1;
    }
    return (int32_t)vxd_sparse_block_cell_row(cache->masks[at], cache->rows[at], cell);
}

/* Writes a row's entries of all taps; returns how many read a row. */
static uint64_t map_row(const struct build *build, struct cache *cache, size_t row)
{
    const struct vxd_sparse_geometry *geometry = &build->call->geometry;
    const int *kernel = geometry->kernel;
    uint64_t key = build->call->out.keys[row];
    uint64_t sample = vxd_sparse_key_sample_part(key);
    size_t capacity = build->call->map.capacity;
    int32_t *to = build->call->map.table + row;
    uint64_t range[3][VXD_SPARSE_MAX_KERNEL];
    uint64_t n_pairs = 0;

    for (int axis = 0; axis < 3; axis++) {
        int32_t output = vxd_sparse_key_coord(key, axis);

        for (int tap = 0; tap < kernel[axis]; tap++) {
            int32_t input;

            range[axis][tap] = vxd_sparse_tap_input(geometry, axis, output, tap, &input)
                                   ? vxd_sparse_key_axis(axis, input)
                                   : VXD_SPARSE_NO_KEY;
        }
    }
    for (int x = 0; x < kernel[0]; x++) {
        for (int y = 0; y < kernel[1]; y++) {
            for (int z = 0; z < kernel[2]; z++) {
                uint64_t in_key = sample | range[0][x] | range[1][y] | range[2][z];
                int32_t in_row =
                    in_key != VXD_SPARSE_NO_KEY ? find_row(build, cache, in_key) : -1;

                *to = in_row;
                to += capacity;
                n_pairs += in_row >= 0;
            }
        }
    }
    return n_pairs;
}

static void build_piece(void *args, size_t begin, size_t end)
{
    const struct build *build = args;
    const struct vxd_kernel_map *map = &build->call->map;
    size_t end_row = end < build->n_rows ? end : build->n_rows;
    uint64_t n_pairs = 0;
    struct cache cache;

    for (int i = 0; i < CACHE_BLOCKS; i++) {
        /* stands for no block: names have 58 bits */
        cache.blocks[i] = VXD_SPARSE_NO_KEY;
    }
    for (size_t row = begin; row < end_row; row++) {
        n_pairs += map_row(build, &cache, row);
    }
    for (int tap = 0; tap < map->n_taps && end_row < end; tap++) {
        memset(map->table + (size_t)tap * map->capacity + end_row, 0xff,
               (end - end_row) * sizeof *map->table);
    }
    (void)__atomic_fetch_add(map->n_pairs, n_pairs, __ATOMIC_RELAXED);
}

static enum vxd_status build_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    const struct vxd_kernel_map_call *call = args;
    struct build build = {call, *call->out.n_rows,
                          vxd_sparse_slot_mask(*call->in.n_blocks)};
    size_t n_padded =
        (build.n_rows + VXD_SPARSE_ROW_PAD - 1) / VXD_SPARSE_ROW_PAD * VXD_SPARSE_ROW_PAD;

    *call->map.n_pairs = 0;
    if (build.n_rows > call->map.capacity) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "a kernel map of %zu rows exceeds its capacity of %zu",
                        build.n_rows, call->map.capacity);
    }
    vxd_parallel_for(pool, n_padded, PIECE_ROWS, build_piece, &build);
    return VXD_OK;
}

size_t vxd_kernel_map_scratch_bytes_cpu(const struct vxd_queue *queue, int n_taps,
                                        size_t n_rows)
{
    (void)queue;
    (void)n_taps;
    (void)n_rows;
    return 0;
}

enum vxd_status vxd_kernel_maps_build_cpu(struct vxd_queue *queue,
                                          const struct vxd_kernel_map_call *calls, int n,
                                          struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < n; i++) {
        VXD_TRY(vxd_queue_push(queue, build_job, &calls[i], sizeof calls[i], err));
    }
out:
    return status;
}
