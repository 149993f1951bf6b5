// SPDX-License-Identifier: Apache-2.0
/* What an edit changes, counted in voxels.
 *
 * Where a whole cube becomes something else, the two references are a pair. Of most pairs
 * the difference is known from their headers; the others are expanded like open cubes,
 * without going into what both share. The grid expands pairs height by height, down to a
 * height at which each warp finishes its own pairs with a list in shared memory.
 *
 * Threads: a lane a pair; eight lanes expand one.
 * Bytes: 8 or 16 bytes a pair in device memory, and the headers of both nodes. Blocks
 * count in shared memory and add to the edit's counts once, at its end. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_CHANGES_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_CHANGES_CUDA_H

#include "gpu/svdag/edit_kernel/frontier_cuda.h"

/* Counts of a block ----------------------------------------------------------------------- */

/* Adds to a counter, which other threads add to. */
VXD_SVDAG_DEVICE void vxd_svdag_add_shared(uint64_t *at, uint64_t n)
{
    if (n > 0) {
        (void)vxd_svdag_atomic_add(at, n);
    }
}

/* Number i of the four counts of a change. */
VXD_SVDAG_DEVICE uint64_t vxd_svdag_change_nth(const struct vxd_svdag_change *change,
                                               uint32_t i)
{
    return i == 0   ? change->n_added
           : i == 1 ? change->n_removed
           : i == 2 ? change->n_changed
                    : change->n_freed;
}

VXD_SVDAG_DEVICE uint64_t *vxd_svdag_change_at(struct vxd_svdag_change *change,
                                               uint32_t i)
{
    return i == 0   ? &change->n_added
           : i == 1 ? &change->n_removed
           : i == 2 ? &change->n_changed
                    : &change->n_freed;
}

/* By all lanes of a warp: adds what each counted to the block's counts. Four lanes add
 * one of the four sums each. */
VXD_SVDAG_DEVICE void vxd_svdag_count_change(struct vxd_svdag_block_counts *counts,
                                             const struct vxd_svdag_change *own)
{
    const uint64_t bits = own->n_added | own->n_removed | own->n_changed | own->n_freed;
    struct vxd_svdag_change sum = *own;

    if (!__any_sync(UINT32_MAX, bits != 0)) {
        return;
    }
    if (!__any_sync(UINT32_MAX, bits >> 26 != 0)) {
        sum.n_added = __reduce_add_sync(UINT32_MAX, (uint32_t)own->n_added);
        sum.n_removed = __reduce_add_sync(UINT32_MAX, (uint32_t)own->n_removed);
        sum.n_changed = __reduce_add_sync(UINT32_MAX, (uint32_t)own->n_changed);
        sum.n_freed = __reduce_add_sync(UINT32_MAX, (uint32_t)own->n_freed);
    } else {
#pragma unroll 1
        for (int step = 1; step < 32; step *= 2) {
            sum.n_added +=
                __shfl_xor_sync(UINT32_MAX, (unsigned long long)sum.n_added, step);
            sum.n_removed +=
                __shfl_xor_sync(UINT32_MAX, (unsigned long long)sum.n_removed, step);
            sum.n_changed +=
                __shfl_xor_sync(UINT32_MAX, (unsigned long long)sum.n_changed, step);
            sum.n_freed +=
                __shfl_xor_sync(UINT32_MAX, (unsigned long long)sum.n_freed, step);
        }
    }
    if (vxd_svdag_lane() < 4) {
        vxd_svdag_add_shared(vxd_svdag_change_at(&counts->change, vxd_svdag_lane()),
                             vxd_svdag_change_nth(&sum, vxd_svdag_lane()));
    }
    __syncwarp();
}

/* By all lanes of a warp: counts items that were looked up, and those that were
 * inserted. */
VXD_SVDAG_DEVICE void vxd_svdag_count_lookups(struct vxd_svdag_block_counts *counts,
                                              int number, int n_words, bool is_new)
{
    const uint32_t looked_up = __ballot_sync(UINT32_MAX, n_words > 0);
    const uint32_t inserted = __ballot_sync(UINT32_MAX, is_new);
    uint32_t n_words_new = 0;

    if (inserted != 0) {
        n_words_new = __reduce_add_sync(UINT32_MAX, is_new ? (uint32_t)n_words : 0);
    }
    if (vxd_svdag_lane() == 0) {
        (void)atomicAdd(&counts->n_lookups[number], (uint32_t)__popc(looked_up));
        if (inserted != 0) {
            (void)atomicAdd(&counts->n_new[number], (uint32_t)__popc(inserted));
            (void)vxd_svdag_atomic_add(&counts->n_new_words, n_words_new);
        }
    }
    __syncwarp();
}

/* By all threads of a block, before they count. */
VXD_SVDAG_DEVICE void vxd_svdag_block_counts_clear(struct vxd_svdag_block_counts *counts)
{
    for (uint32_t i = threadIdx.x; i < VXD_SVDAG_N_HEIGHTS; i += blockDim.x) {
        counts->n_lookups[i] = 0;
        counts->n_new[i] = 0;
    }
    if (threadIdx.x == 0) {
        counts->change = {0, 0, 0, 0};
        counts->n_new_words = 0;
        counts->has_failed = 0;
        for (int i = 0; i < VXD_SVDAG_N_STAGES; i++) {
            counts->cycles[i] = 0;
        }
    }
    __syncthreads();
}

/* By all threads of a block, when it counts no more: adds its counts to the edit's and to
 * the store's. Those of an edit with a fault are not used. */
VXD_SVDAG_DEVICE void
vxd_svdag_block_counts_add(const struct vxd_svdag_kernel_args *args,
                           const struct vxd_svdag_block_counts *counts,
                           bool counts_changes)
{
    struct vxd_svdag_progress *progress = args->progress;

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < VXD_SVDAG_N_HEIGHTS; i += blockDim.x) {
        const int kind = i == 0                       ? VXD_SVDAG_BLOCK
                         : i == VXD_SVDAG_LEAF_HEIGHT ? VXD_SVDAG_LEAF
                                                      : VXD_SVDAG_INNER;

        vxd_svdag_add_shared(&progress->n_lookups[i], counts->n_lookups[i]);
        vxd_svdag_add_shared(&progress->n_new[i], counts->n_new[i]);
        vxd_svdag_add_shared(&args->store->n_items[kind], counts->n_new[i]);
    }
    if (threadIdx.x == 0) {
        vxd_svdag_add_shared(&args->store->n_words, counts->n_new_words);
    } else if (threadIdx.x <= 4 && counts_changes) {
        vxd_svdag_add_shared(vxd_svdag_change_at(&progress->change, threadIdx.x - 1),
                             vxd_svdag_change_nth(&counts->change, threadIdx.x - 1));
    }
}

/* Pairs ----------------------------------------------------------------------------------- */

/* How many equal cubes, or pairs, an entry stands for. */
VXD_SVDAG_DEVICE uint64_t vxd_svdag_weight(const uint64_t *weights, uint64_t entry)
{
    return weights == NULL ? 1 : weights[entry];
}

VXD_SVDAG_DEVICE void vxd_svdag_add_times(struct vxd_svdag_change *sum,
                                          const struct vxd_svdag_change *change,
                                          uint64_t weight)
{
    sum->n_added += change->n_added * weight;
    sum->n_removed += change->n_removed * weight;
    sum->n_changed += change->n_changed * weight;
    sum->n_freed += change->n_freed * weight;
}

/* Adds the difference of a pair to *sum. True: it is not known yet, the pair has to be
 * expanded. */
VXD_SVDAG_DEVICE bool vxd_svdag_pair_expands(const struct vxd_svdag_kernel_args *args,
                                             uint32_t from, uint32_t to, int height,
                                             uint64_t weight,
                                             struct vxd_svdag_change *sum)
{
    struct vxd_svdag_change change;

    if (!vxd_svdag_change_at_once(&args->view, from, to, height, &change)) {
        return true;
    }
    vxd_svdag_add_times(sum, &change, weight);
    return false;
}

/* The pair of a lane. */
struct vxd_svdag_pair {
    bool is_there;
    int height;
    uint32_t from;
    uint32_t to;
    uint64_t weight;
};

/* Where open pairs go: into device memory, or into the warp's list. */
struct vxd_svdag_pairs_to {
    uint64_t *n;    /* how many there are in device memory; NULL: the warp's list, */
    uint32_t begin; /* and the first one */
};

/* By all lanes of a warp: puts away the pairs of lanes that have an open one. */
VXD_SVDAG_DEVICE void vxd_svdag_put_pairs(const struct vxd_svdag_kernel_args *args,
                                          const struct vxd_svdag_pairs_to *to,
                                          bool expands, const struct vxd_svdag_pair *pair,
                                          struct vxd_svdag_pair_list *list,
                                          uint32_t *n_listed)
{
    const uint32_t mask = __ballot_sync(UINT32_MAX, expands);
    const uint32_t rank = (uint32_t)__popc(mask & ((1u << vxd_svdag_lane()) - 1));
    const uint64_t both = (uint64_t)pair->from << 32 | pair->to;
    unsigned long long begin = 0;

    if (mask == 0) {
        return;
    }
    if (to->n == NULL) {
        if (expands) {
            list->pairs[*n_listed + rank] = both;
            list->weights[*n_listed + rank] = pair->weight << 5 | (uint64_t)pair->height;
        }
        *n_listed += (uint32_t)__popc(mask);
        __syncwarp();
        return;
    }
    if (vxd_svdag_lane() == 0) {
        begin = vxd_svdag_atomic_add(to->n, (uint64_t)__popc(mask));
    }
    begin = to->begin + __shfl_sync(UINT32_MAX, begin, 0) + rank;
    if (expands && begin >= args->pairs_capacity) {
        vxd_svdag_set_fault(args, VXD_SVDAG_NO_PAIRS);
    } else if (expands) {
        args->pairs[begin] = both;
        if (args->pair_weights != NULL) {
            args->pair_weights[begin] = pair->weight;
        }
    }
    __syncwarp();
}

/* By all lanes of a warp: puts up to 32 pairs of device memory into its list. */
VXD_SVDAG_DEVICE void vxd_svdag_list_pairs(const struct vxd_svdag_kernel_args *args,
                                           uint32_t begin, uint32_t n, int height,
                                           struct vxd_svdag_pair_list *list)
{
    if (vxd_svdag_lane() < n) {
        list->pairs[vxd_svdag_lane()] = args->pairs[begin + vxd_svdag_lane()];
        list->weights[vxd_svdag_lane()] =
            vxd_svdag_weight(args->pair_weights, begin + vxd_svdag_lane()) << 5 |
            (uint64_t)height;
    }
    __syncwarp();
}

/* By all lanes of a warp: counts the pairs that lanes have, then those in the list, four
 * at a time with a lane for each of their children. Where open pairs go into the list,
 * all that come of them are counted too. The last ones go first, so that the list stays
 * short. */
VXD_SVDAG_DEVICE void vxd_svdag_count_pairs(const struct vxd_svdag_kernel_args *args,
                                            const struct vxd_svdag_pairs_to *to,
                                            struct vxd_svdag_pair *pair,
                                            struct vxd_svdag_pair_list *list,
                                            uint32_t n_listed,
                                            struct vxd_svdag_change *sum)
{
#pragma unroll 1
    for (;;) {
        const bool expands =
            pair->is_there && vxd_svdag_pair_expands(args, pair->from, pair->to,
                                                     pair->height, pair->weight, sum);
        uint32_t n;

        __syncwarp();
        vxd_svdag_put_pairs(args, to, expands, pair, list, &n_listed);
        if (n_listed == 0) {
            return;
        }
        n = n_listed < 4 ? n_listed : 4;
        n_listed -= n;
        pair->is_there = vxd_svdag_lane() / 8 < n;
        if (pair->is_there) {
            const uint64_t both = list->pairs[n_listed + vxd_svdag_lane() / 8];
            const uint64_t weight = list->weights[n_listed + vxd_svdag_lane() / 8];
            const int octant = (int)(vxd_svdag_lane() % 8);

            pair->from = vxd_svdag_child_ref(&args->view, (uint32_t)(both >> 32), octant);
            pair->to = vxd_svdag_child_ref(&args->view, (uint32_t)both, octant);
            pair->height = (int)(weight & 31) - 1;
            pair->weight = weight >> 5;
        }
        __syncwarp();
    }
}

#endif
