// SPDX-License-Identifier: Apache-2.0
/* The way up of a pass (pass_cuda.h), by warps: nodes are made of what the children of open cubes
 * became, four at a time with a lane for each child, and found or stored, 32 at a time. Headers
 * come from the rows, so that no child's words are read. */
#ifndef VXD_GPU_DAG_CLOSE_CUDA_H
#define VXD_GPU_DAG_CLOSE_CUDA_H

#include "gpu/dag/open_cuda.h"

/* What a cube becomes, as far as it is known without the store. */
struct vxd_dag_closing {
    int n_words;  /* of its node; 0: none is needed */
    uint32_t ref; /* what it is then */
};

/* By all lanes of a warp: the row of this lane's eight, and the child of it that is this lane's.
 * The node's words go to `to`, which may be the row's. */
template <class State>
VXD_DAG_DEVICE struct vxd_dag_closing
vxd_dag_compose(const struct vxd_dag_row<State> *rows, struct vxd_dag_row<State> *row,
                bool is_there, int height, uint32_t *to)
{
    const uint32_t shift = vxd_dag_lane() & 24;
    const uint32_t octant = vxd_dag_lane() % 8;
    struct vxd_dag_closing closing = {0, VXD_DAG_EMPTY};
    uint32_t ref = VXD_DAG_EMPTY;
    uint32_t header =
        0; /* a row's; of the first child what the row itself was told too */
    uint32_t n_occupied;
    bool is_changed = false;
    uint32_t first;
    uint32_t mask;
    uint32_t flags;
    uint32_t changed;
    uint32_t differ;

    if (is_there) {
        const bool is_row = (row->marks >> octant & 1) != 0;

        ref = row->words[1 + octant];
        if (is_row) {
            const struct vxd_dag_row<State> *child = &rows[ref];

            ref = child->ref;
            header = child->words[0];
            is_changed = (child->marks & VXD_DAG_MARK_CHANGED) != 0;
        }
        is_changed = is_changed || (row->marks & VXD_DAG_MARK_CHANGED) != 0;
        closing.ref = row->ref;
    }
    n_occupied = header >> 10;
    if (is_there && octant == 0) {
        n_occupied += row->words[0] >> 10;
        header |= row->words[0];
    }
    for (int step = 1; step < 8; step *= 2) {
        n_occupied += __shfl_xor_sync(UINT32_MAX, n_occupied, step);
    }
    first = __shfl_sync(UINT32_MAX, ref, (int)shift);
    mask = __ballot_sync(UINT32_MAX, ref != VXD_DAG_EMPTY) >> shift & 0xffu;
    differ = __ballot_sync(UINT32_MAX, ref != first) >> shift & 0xffu;
    changed = __ballot_sync(UINT32_MAX, is_changed) >> shift & 0xffu;
    flags =
        ((__ballot_sync(UINT32_MAX, (header & VXD_DAG_HAS_OCCUPIED) != 0) >> shift &
          0xffu)
             ? VXD_DAG_HAS_OCCUPIED
             : 0) |
        ((__ballot_sync(UINT32_MAX, (header & VXD_DAG_HAS_FREE) != 0) >> shift & 0xffu)
             ? VXD_DAG_HAS_FREE
             : 0);
    header = mask | flags | (height <= VXD_DAG_COUNT_HEIGHT ? n_occupied << 10 : 0);
    /* All lanes have read what some write now. */
    __syncwarp();
    if (is_there && ref != VXD_DAG_EMPTY) {
        to[1 + __popc(mask & ((1u << octant) - 1))] = ref;
    }
    if (is_there && octant == 0) {
        row->words[0] = header;
        row->marks = changed != 0 ? VXD_DAG_MARK_CHANGED : 0;
        to[0] = header;
    }
    if (changed != 0 && differ == 0 && !vxd_dag_is_node(first)) {
        closing.ref = first;
    } else if (changed != 0) {
        closing.n_words = 1 + __popc(mask);
    }
    return closing;
}

/* By all lanes of a warp: closes n cubes of a height from `begin` on, of which all that is below
 * is closed. Words of nodes are made in the rows where these are the warp's own, else in those.
 * False: the store has no room. */
template <class Store, class Editor>
VXD_DAG_DEVICE bool
vxd_dag_close_cubes(const struct vxd_dag_pass *pass, struct vxd_dag_board *board,
                    struct vxd_dag_desk<Editor> *desk,
                    struct vxd_dag_row<typename Editor::state> *rows, bool is_local,
                    int height, uint32_t begin, uint32_t n, typename Store::spare *spare)
{
    for (uint32_t base = 0; base < n; base += 32) {
        const uint32_t own = base + vxd_dag_lane();
        const uint32_t *words =
            (is_local ? &rows[begin + (own < n ? own : 0)] : &desk->rows[vxd_dag_lane()])
                ->words;
        struct vxd_dag_closing closing = {0, VXD_DAG_EMPTY};
        bool is_bad = false;

        for (uint32_t g = 0; g < 32 && base + g < n; g += 4) {
            const uint32_t i = base + g + vxd_dag_lane() / 8;
            struct vxd_dag_row<typename Editor::state> *row =
                &rows[begin + (i < n ? i : 0)];
            uint32_t *to =
                is_local ? row->words : desk->rows[g + vxd_dag_lane() / 8].words;
            const struct vxd_dag_closing four =
                vxd_dag_compose(rows, row, i < n, height, to);
            const int from = (int)(vxd_dag_lane() % 4 * 8);
            const int n_words = __shfl_sync(UINT32_MAX, four.n_words, from);
            const uint32_t ref = __shfl_sync(UINT32_MAX, four.ref, from);

            if (vxd_dag_lane() / 4 == g / 4 && own < n) {
                closing.n_words = n_words;
                closing.ref = ref;
            }
        }
        __syncwarp();
        if (__any_sync(UINT32_MAX, closing.n_words > 0)) {
            const struct vxd_dag_sought sought = {words, closing.n_words, VXD_DAG_INNER};
            bool is_new;
            const uint32_t ref = Store::find_or_store(pass, &sought, spare, &is_new);

            vxd_dag_count_items_of(board, height, closing.n_words, is_new);
            is_bad = closing.n_words > 0 && ref == VXD_DAG_EMPTY;
            closing.ref = closing.n_words > 0 ? ref : closing.ref;
        }
        if (own < n) {
            rows[begin + own].ref = closing.ref;
        }
        __syncwarp();
        if (__any_sync(UINT32_MAX, is_bad)) {
            return false;
        }
    }
    return true;
}

#endif
