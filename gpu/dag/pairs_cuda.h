// SPDX-License-Identifier: Apache-2.0
/* Pairs of references of which it is not known at once in how many voxels they differ: they are
 * gone down like open cubes, by the team down to the height at which warps go on alone. */
#ifndef VXD_GPU_DAG_PAIRS_CUDA_H
#define VXD_GPU_DAG_PAIRS_CUDA_H

#include "gpu/dag/rows_cuda.h"

/* How many cubes, or pairs, a row stands for. */
VXD_DAG_DEVICE uint64_t vxd_dag_weight(const uint64_t *weights, uint64_t row)
{
    return weights == NULL ? 1 : weights[row];
}

VXD_DAG_DEVICE void vxd_dag_add_times(struct vxd_dag_change *sum,
                                      const struct vxd_dag_change *change,
                                      uint64_t weight)
{
    sum->n_added += change->n_added * weight;
    sum->n_removed += change->n_removed * weight;
    sum->n_changed += change->n_changed * weight;
    sum->n_freed += change->n_freed * weight;
}

/* Adds a pair to what changed, or says that it has to be a row. */
VXD_DAG_DEVICE bool vxd_dag_pair_is_open(const struct vxd_dag_pass *pass, uint32_t from,
                                         uint32_t to, int height, uint64_t weight,
                                         struct vxd_dag_change *sum)
{
    struct vxd_dag_change change;

    if (!vxd_dag_change_at_once(&pass->view, from, to, height, &change)) {
        return true;
    }
    vxd_dag_add_times(sum, &change, weight);
    return false;
}

/* Where pairs of the next height go: a warp's list, or rows of the pass. */
struct vxd_dag_pairs_to {
    uint64_t *local; /* NULL: rows */
    uint64_t *n;     /* of rows: how many there are, */
    uint32_t begin;  /* and the first one */
};

/* By all lanes of a warp: lists the pairs of those that have one; *n_local is the warp's. */
VXD_DAG_DEVICE void vxd_dag_put_pairs(const struct vxd_dag_pass *pass,
                                      const struct vxd_dag_pairs_to *to, bool is_pair,
                                      uint32_t from, uint32_t ref, uint64_t weight,
                                      uint32_t *n_local)
{
    const uint32_t mask = __ballot_sync(UINT32_MAX, is_pair);
    const uint32_t rank = (uint32_t)__popc(mask & ((1u << vxd_dag_lane()) - 1));
    unsigned long long begin = 0;

    if (mask == 0) {
        return;
    }
    if (to->local != NULL) {
        if (is_pair) {
            to->local[*n_local + rank] = (uint64_t)from << 32 | ref;
        }
        *n_local += (uint32_t)__popc(mask);
        __syncwarp();
        return;
    }
    if (vxd_dag_lane() == 0) {
        begin = vxd_dag_atomic_add(to->n, (uint64_t)__popc(mask));
    }
    begin = to->begin + __shfl_sync(UINT32_MAX, begin, 0) + rank;
    if (is_pair && begin >= pass->pairs_capacity) {
        vxd_dag_raise(pass, VXD_DAG_NO_PAIRS);
    } else if (is_pair) {
        pass->pairs[begin] = (uint64_t)from << 32 | ref;
        if (pass->pair_weights != NULL) {
            pass->pair_weights[begin] = weight;
        }
    }
    __syncwarp();
}

/* By all lanes of a warp: opens n pairs of a height. Of a warp's own list all weigh the same,
 * of rows (weights, or NULL: one) each has its own. */
VXD_DAG_DEVICE void vxd_dag_open_pairs(const struct vxd_dag_pass *pass,
                                       struct vxd_dag_board *board, const uint64_t *pairs,
                                       const uint64_t *weights, uint64_t weight,
                                       uint32_t n, int height,
                                       const struct vxd_dag_pairs_to *to,
                                       uint32_t *n_local)
{
    for (uint32_t first = 0; first < n; first += 4) {
        const uint32_t i = first + vxd_dag_lane() / 8;
        const int octant = (int)(vxd_dag_lane() % 8);
        struct vxd_dag_change change = {0, 0, 0, 0};
        uint32_t from = VXD_DAG_EMPTY;
        uint32_t ref = VXD_DAG_EMPTY;
        uint64_t own = weight;
        bool is_open = false;

        if (i < n) {
            const uint64_t pair = pairs[i];

            own = weights == NULL ? weight : weights[i];
            from = vxd_dag_below(&pass->view, (uint32_t)(pair >> 32), octant);
            ref = vxd_dag_below(&pass->view, (uint32_t)pair, octant);
            is_open = vxd_dag_pair_is_open(pass, from, ref, height - 1, own, &change);
        }
        __syncwarp();
        vxd_dag_put_pairs(pass, to, is_open, from, ref, own, n_local);
        vxd_dag_count_change(board, &change);
    }
}

/* Likewise, from the lists of a warp at the heights below `top` on, and all below them; n_at has
 * their lengths, eight bits a height. */
VXD_DAG_DEVICE void vxd_dag_open_local_pairs(const struct vxd_dag_pass *pass,
                                             struct vxd_dag_board *board, uint64_t *pairs,
                                             uint64_t weight, int top, uint32_t n_at)
{
    for (int height = top; height > VXD_DAG_LEAF_HEIGHT && n_at != 0; height--) {
        const int shift = 8 * (height - VXD_DAG_LEAF_HEIGHT);
        const uint32_t n = n_at >> shift & 0xffu;
        uint32_t n_below = n_at >> (shift - 8) & 0xffu;
        const struct vxd_dag_pairs_to to = {pairs + vxd_dag_local_begin(top, height - 1),
                                            NULL, 0};

        vxd_dag_open_pairs(pass, board, pairs + vxd_dag_local_begin(top, height), NULL,
                           weight, n, height, &to, &n_below);
        n_at = (n_at & ((1u << (shift - 8)) - 1)) | n_below << (shift - 8);
    }
}

#endif
