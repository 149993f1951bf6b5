// SPDX-License-Identifier: Apache-2.0
/* The way up of a pass (batch_cuda.h): nodes are made of what the children of open cubes became,
 * four a warp at a time with a lane for each child. Headers come from the rows, so that no
 * child's words are read. */
#ifndef VXD_GPU_DAG_CLOSE_CUDA_H
#define VXD_GPU_DAG_CLOSE_CUDA_H

#include "gpu/dag/phase_cuda.h"

/* By all lanes of a warp: makes the words of the nodes of up to four rows from `first` on, of which
 * all that is below is closed, in what the block keeps of them. Where no node is needed, the row
 * has what it became. */
template <class Editor>
VXD_DAG_DEVICE void vxd_dag_compose(const struct vxd_dag_pass *pass,
                                    struct vxd_dag_desk<Editor> *desk,
                                    const struct vxd_dag_phase *phase, uint32_t first)
{
    const uint32_t shift = vxd_dag_lane() & 24;
    const uint32_t octant = vxd_dag_lane() % 8;
    const uint32_t i = first + vxd_dag_lane() / 8;
    const bool is_there = i < phase->n;
    struct vxd_dag_row<typename Editor::state> *row =
        vxd_dag_row_at(pass, desk, phase, phase->begin + (is_there ? i : 0));
    struct vxd_dag_row<typename Editor::state> *to =
        vxd_dag_shadow(desk, phase, is_there ? i : 0);
    uint32_t ref = VXD_DAG_EMPTY;
    uint32_t header =
        0; /* a row's; of the first child what the row itself was told too */
    uint32_t n_occupied;
    bool is_changed = false;
    uint32_t even;
    uint32_t mask;
    uint32_t flags;
    uint32_t changed;
    uint32_t differ;

    if (is_there) {
        const uint32_t marks = row->marks;

        ref = row->words[1 + octant];
        is_changed = (marks & VXD_DAG_MARK_CHANGED) != 0;
        if ((marks >> octant & 1) != 0) {
            const struct vxd_dag_row<typename Editor::state> *child =
                vxd_dag_row_at(pass, desk, phase, ref);

            ref = child->ref;
            header = child->words[0];
            is_changed = is_changed || (child->marks & VXD_DAG_MARK_CHANGED) != 0;
        }
    }
    n_occupied = header >> 10;
    if (is_there && octant == 0) {
        n_occupied += row->words[0] >> 10;
        header |= row->words[0];
    }
#pragma unroll 1
    for (int step = 1; step < 8; step *= 2) {
        n_occupied += __shfl_xor_sync(UINT32_MAX, n_occupied, step);
    }
    even = __shfl_sync(UINT32_MAX, ref, (int)shift);
    mask = __ballot_sync(UINT32_MAX, ref != VXD_DAG_EMPTY) >> shift & 0xffu;
    differ = __ballot_sync(UINT32_MAX, ref != even) >> shift & 0xffu;
    changed = __ballot_sync(UINT32_MAX, is_changed) >> shift & 0xffu;
    flags =
        ((__ballot_sync(UINT32_MAX, (header & VXD_DAG_HAS_OCCUPIED) != 0) >> shift &
          0xffu)
             ? VXD_DAG_HAS_OCCUPIED
             : 0) |
        ((__ballot_sync(UINT32_MAX, (header & VXD_DAG_HAS_FREE) != 0) >> shift & 0xffu)
             ? VXD_DAG_HAS_FREE
             : 0);
    header =
        mask | flags | (phase->height <= VXD_DAG_COUNT_HEIGHT ? n_occupied << 10 : 0);
    /* All lanes have read what some write now. */
    __syncwarp();
    if (is_there && ref != VXD_DAG_EMPTY) {
        to->words[1 + __popc(mask & ((1u << octant) - 1))] = ref;
    }
    if (is_there && octant == 0) {
        const bool is_even = differ == 0 && !vxd_dag_is_node(even);

        row->words[0] = header;
        row->marks = changed != 0 ? VXD_DAG_MARK_CHANGED : 0;
        if (changed != 0 && is_even) {
            row->ref = even;
        }
        to->words[0] = header;
        to->marks = changed == 0 ? 0
                    : is_even    ? VXD_DAG_MARK_CHANGED
                                 : VXD_DAG_MARK_CHANGED | VXD_DAG_MARK_NODE;
    }
    __syncwarp();
}

#endif
