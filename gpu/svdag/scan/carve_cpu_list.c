// SPDX-License-Identifier: Apache-2.0
/* The list of the voxels that rays pass, from the bricks of all threads: the bricks are sorted,
 * equal ones are merged, hits are removed, and the masks that are not 0 are written. */
#include "gpu/svdag/scan/carve_cpu.h"

#define BRICKS_AT_ONCE ((size_t)16)

/* The bricks of all threads, sorted by code. */
struct merging {
    const struct vxd_svdag_voxels *hits;
    uint64_t *codes; /* n, ascending */
    uint32_t *order; /* n: index of their words */
    uint64_t *spare_codes;
    uint32_t *spare_order;
    void *sort_scratch;
    uint64_t **words;
    size_t n;
    size_t *starts; /* n_bricks + 1: where the run of each code begins */
    size_t *leaves; /* n_bricks + 1: number of leaves before it in the list */
    size_t n_bricks;
    atomic_uint_least64_t n_voxels;
    uint64_t *list_codes;
    uint64_t *list_masks;
};

/* Index of the first hit in this leaf or a later one. */
static size_t find_hit(const struct vxd_svdag_voxels *hits, uint64_t leaf)
{
    size_t low = 0;
    size_t high = hits->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (hits->codes[middle] < leaf) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void merge_piece(void *args, size_t begin, size_t end)
{
    struct merging *merging = args;
    const struct vxd_svdag_voxels *hits = merging->hits;
    uint64_t n_voxels = 0;

    for (size_t b = begin; b < end; b++) {
        size_t first = merging->starts[b];
        uint64_t code = merging->codes[first];
        uint64_t *words = merging->words[merging->order[first]];
        size_t n_leaves = 0;

        for (size_t i = first + 1; i < merging->starts[b + 1]; i++) {
            const uint64_t *more = merging->words[merging->order[i]];

            for (size_t k = 0; k < VXD_SVDAG_BRICK_LEAVES; k++) {
                words[k] |= more[k];
            }
        }
        for (size_t h = find_hit(hits, code * VXD_SVDAG_BRICK_LEAVES);
             h < hits->n && hits->codes[h] / VXD_SVDAG_BRICK_LEAVES == code; h++) {
            words[hits->codes[h] % VXD_SVDAG_BRICK_LEAVES] &= ~hits->masks[h];
        }
        for (size_t k = 0; k < VXD_SVDAG_BRICK_LEAVES; k++) {
            n_leaves += words[k] != 0;
            n_voxels += (uint64_t)vxd_svdag_popc(words[k]);
        }
        merging->leaves[b] = n_leaves;
    }
    (void)atomic_fetch_add_explicit(&merging->n_voxels, n_voxels, memory_order_relaxed);
}

static void list_piece(void *args, size_t begin, size_t end)
{
    const struct merging *merging = args;

    for (size_t b = begin; b < end; b++) {
        size_t first = merging->starts[b];
        const uint64_t *words = merging->words[merging->order[first]];
        size_t at = merging->leaves[b];

        for (size_t k = 0; k < VXD_SVDAG_BRICK_LEAVES; k++) {
            if (words[k] != 0) {
                merging->list_codes[at] =
                    merging->codes[first] * VXD_SVDAG_BRICK_LEAVES + k;
                merging->list_masks[at] = words[k];
                at++;
            }
        }
    }
}

/* Allocates memory for n bricks; the caller gives *block back. */
static enum vxd_status lay_out(struct vxd_context *context, int n_threads, size_t n,
                               struct merging *merging, void **block, struct vxd_err *err)
{
    size_t sort_bytes = vxd_sort_pairs_scratch_bytes_cpu(n_threads, n);
    size_t n_bytes = 0;
    size_t at[8];
    enum vxd_status status;
    char *memory;

    if (!vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[3]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t *), &at[4]) ||
        !vxd_layout_add(&n_bytes, n + 1, sizeof(size_t), &at[5]) ||
        !vxd_layout_add(&n_bytes, n + 1, sizeof(size_t), &at[6]) ||
        !vxd_layout_add(&n_bytes, sort_bytes, 1, &at[7])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu bricks", n);
    }
    status = vxd_svdag_scratch_take(context, n_bytes, block, err);
    if (status != VXD_OK) {
        return status;
    }
    memory = *block;
    merging->codes = (void *)(memory + at[0]);
    merging->spare_codes = (void *)(memory + at[1]);
    merging->order = (void *)(memory + at[2]);
    merging->spare_order = (void *)(memory + at[3]);
    merging->words = (void *)(memory + at[4]);
    merging->starts = (void *)(memory + at[5]);
    merging->leaves = (void *)(memory + at[6]);
    merging->sort_scratch = memory + at[7];
    merging->n = n;
    return VXD_OK;
}

/* Gathers the bricks of all casters and finds where each code's run begins. */
static void sort_bricks(struct vxd_pool *pool, const struct vxd_svdag_caster *casters,
                        size_t n_casters, int depth, struct merging *merging)
{
    int end_bit = 3 * depth > VXD_SVDAG_BRICK_BITS ? 3 * depth - VXD_SVDAG_BRICK_BITS : 1;
    size_t n = 0;

    for (size_t k = 0; k < n_casters; k++) {
        for (size_t i = 0; i < casters[k].table_size; i++) {
            if (casters[k].table[i].words != NULL) {
                merging->codes[n] = casters[k].table[i].code;
                merging->words[n] = casters[k].table[i].words;
                merging->order[n] = (uint32_t)n;
                n++;
            }
        }
    }
    if (vxd_sort_pairs_run(pool, merging->codes, merging->order, merging->spare_codes,
                           merging->spare_order, n, 0, end_bit, merging->sort_scratch)) {
        merging->codes = merging->spare_codes;
        merging->order = merging->spare_order;
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || merging->codes[i] != merging->codes[i - 1]) {
            merging->starts[merging->n_bricks] = i;
            merging->n_bricks++;
        }
    }
    merging->starts[merging->n_bricks] = n;
}

enum vxd_status vxd_svdag_cast_list(struct vxd_pool *pool,
                                    const struct vxd_svdag_casting *casting,
                                    struct vxd_svdag_voxel_list *list, uint64_t *n_voxels,
                                    struct vxd_err *err)
{
    const struct vxd_svdag_rays *rays = casting->rays;
    const struct vxd_svdag_caster *casters = casting->casters;
    const size_t n_casters = casting->n_casters;
    struct merging merging = {.hits = rays->hits};
    struct vxd_context *context = rays->queue->context;
    size_t n = 0;
    size_t n_leaves = 0;
    void *block = NULL;
    enum vxd_status status;

    for (size_t k = 0; k < n_casters; k++) {
        n += casters[k].n_bricks;
    }
    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(lay_out(context, vxd_pool_n_threads(pool), n, &merging, &block, err));
    sort_bricks(pool, casters, n_casters, rays->depth, &merging);
    vxd_parallel_for(pool, merging.n_bricks, BRICKS_AT_ONCE, merge_piece, &merging);
    for (size_t b = 0; b < merging.n_bricks; b++) {
        size_t count = merging.leaves[b];

        merging.leaves[b] = n_leaves;
        n_leaves += count;
    }
    /* Masks directly follow the codes. */
    VXD_TRY(vxd_device_alloc(rays->queue, n_leaves * 2 * sizeof(uint64_t), &list->memory,
                             err));
    merging.list_codes = list->memory.ptr;
    merging.list_masks = n_leaves > 0 ? merging.list_codes + n_leaves : NULL;
    vxd_parallel_for(pool, merging.n_bricks, BRICKS_AT_ONCE, list_piece, &merging);
    list->voxels = (struct vxd_svdag_voxels){
        .codes = merging.list_codes, .masks = merging.list_masks, .n = n_leaves};
    *n_voxels = atomic_load(&merging.n_voxels);
out:
    vxd_svdag_scratch_give(context, block);
    return status;
}
