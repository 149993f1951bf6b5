// SPDX-License-Identifier: Apache-2.0
/* Pairs of references of which it is not known at once in how many voxels they differ: they are
 * gone down like open cubes, by the team down to the height at which warps go on alone, each with
 * a list of its own. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_PAIR_FRONTIER_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_PAIR_FRONTIER_CUDA_H

#include "gpu/svdag/edit_kernel/frontier_cuda.h"

/* How many cubes, or pairs, a row stands for. */
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

/* Adds a pair to what changed, or says that it has to be a row. */
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

/* A pair of a lane. */
struct vxd_svdag_pair {
    bool is_there;
    int height;
    uint32_t from;
    uint32_t to;
    uint64_t weight;
};

/* Where pairs go that are open: rows of the pass, or the warp's own. */
struct vxd_svdag_pairs_to {
    uint64_t *n;    /* of rows: how many there are (NULL: the warp's own), */
    uint32_t begin; /* and the first one */
};

/* By all lanes of a warp: lists the pairs of those that have an open one. */
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

/* By all lanes of a warp: lists up to 32 rows of pairs. */
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

/* By all lanes of a warp: adds the pairs that lanes have, then those that are listed, four at a
 * time with a lane for each of their children, and all that these come to where they are the
 * warp's own. The last ones go first, so that few are listed at once. */
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
