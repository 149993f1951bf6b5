// SPDX-License-Identifier: Apache-2.0
/* The way down of a pass (batch_cuda.h): four cubes a warp at a time, a lane for each of their
 * children. The same code opens rows of the pass, height by height, and a block's own in shared
 * memory; leaves below these are listed, so that no lane is idle when they are edited
 * (leaves_cuda.h). Where an editor tells at once of all children of a cube (a ball does), a lane
 * asks for a cube of 32 before. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_CUDA_H

#include "gpu/svdag/edit_kernel/phase_cuda.h"

/* A child of an open cube, and what becomes of it. */
template <class State> struct vxd_svdag_visited {
    struct vxd_svdag_cube cube;
    State state;
    uint32_t parent; /* row */
    uint32_t octant;
    uint32_t top; /* of the parent, where it is the block's own: its cube in the batch */
    uint32_t old;
    uint32_t ref;  /* where it is not open */
    uint32_t slot; /* of a leaf that others are like, or VXD_SVDAG_NO_SLOT */
    bool is_there;
    bool is_open;
    bool is_told;
};

/* What an editor tells of the children of a cube, in the first words of its row: masks of octants
 * that are open and set, and a bit that says that it tells. */
#define VXD_SVDAG_TOLD_SET 8
#define VXD_SVDAG_TOLD 16

/* Visits ---------------------------------------------------------------------------------- */

/* Of the row of this lane, if i is one. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_ask(const struct vxd_svdag_pass *pass,
                                    const Editor &editor,
                                    struct vxd_svdag_desk<Editor> *desk,
                                    const struct vxd_svdag_phase *phase, uint32_t i)
{
    if (i < phase->n) {
        const struct vxd_svdag_row<typename Editor::state> *row =
            vxd_svdag_row_at(pass, desk, phase, phase->begin + i);
        uint32_t *to = vxd_svdag_shadow(desk, phase, i)->words;
        const struct vxd_svdag_cube cube = vxd_svdag_cube_at(row->place, phase->height);
        struct vxd_svdag_told told = {0, 0, VXD_SVDAG_EMPTY};
        const bool tells = editor.tell(&cube, &row->state, &told);

        to[0] =
            tells ? told.open | told.set << VXD_SVDAG_TOLD_SET | 1u << VXD_SVDAG_TOLD : 0;
        to[1] = told.uniform;
    }
}

/* The child that this lane is to look at: of four open cubes, or a leaf that is listed; with
 * what its cube's editor told. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_find_child(
    const struct vxd_svdag_pass *pass, struct vxd_svdag_desk<Editor> *desk,
    const struct vxd_svdag_phase *phase, uint32_t first, uint32_t telling[2],
    struct vxd_svdag_visited<typename Editor::state> *at)
{
    const bool is_leaf = phase->kind == VXD_SVDAG_PHASE_LEAVES;
    const uint32_t i = first + (is_leaf ? vxd_svdag_lane() : vxd_svdag_lane() / 8);
    const struct vxd_svdag_row<typename Editor::state> *row;

    at->is_there = i < phase->n;
    at->is_open = false;
    at->is_told = false;
    at->old = VXD_SVDAG_EMPTY;
    at->ref = VXD_SVDAG_EMPTY;
    at->top = 0;
    at->slot = VXD_SVDAG_NO_SLOT;
    at->octant = vxd_svdag_lane() % 8;
    at->parent = phase->begin + (at->is_there ? i : 0);
    telling[0] = 0;
    telling[1] = VXD_SVDAG_EMPTY;
    if (!at->is_there) {
        return;
    }
    if (is_leaf) {
        const uint32_t leaf = desk->leaves[i];

        at->octant = leaf % 8;
        at->parent = (leaf & (VXD_SVDAG_LEAF_TOLD - 1)) / 8;
        telling[0] = (leaf & VXD_SVDAG_LEAF_TOLD) != 0 ? 1u << VXD_SVDAG_TOLD : 0;
    } else if (Editor::TELLS) {
        const uint32_t *told = vxd_svdag_shadow(desk, phase, i)->words;

        telling[0] = told[0];
        telling[1] = told[1];
    }
    row = vxd_svdag_row_at(pass, desk, phase, at->parent);
    at->top = row->marks >> VXD_SVDAG_MARK_TOP;
    at->old = is_leaf ? row->words[1 + at->octant]
                      : vxd_svdag_below(&pass->view, row->ref, (int)at->octant);
    if constexpr (Editor::TELLS_ALL) {
        if (is_leaf && (row->marks >> at->octant & 1) != 0) {
            at->slot = at->old;
            at->old = vxd_svdag_table_old(&desk->table, at->slot);
        }
    }
    if (!is_leaf && vxd_svdag_is_node(at->old)) {
        /* Its header is read here, or its children at the next height. */
        vxd_svdag_prefetch(vxd_svdag_words(&pass->view, at->old));
    }
}

/* What becomes of it. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_visit(const struct vxd_svdag_pass *pass, const Editor &editor,
                struct vxd_svdag_desk<Editor> *desk, const struct vxd_svdag_phase *phase,
                const uint32_t telling[2],
                struct vxd_svdag_visited<typename Editor::state> *at)
{
    const struct vxd_svdag_row<typename Editor::state> *row =
        vxd_svdag_row_at(pass, desk, phase, at->parent);
    const struct vxd_svdag_cube cube =
        vxd_svdag_cube_at(row->place, vxd_svdag_row_height(phase, at->parent));

    at->cube = vxd_svdag_cube_child(&cube, (int)at->octant);
    at->is_told = Editor::TELLS_ALL || telling[0] >> VXD_SVDAG_TOLD != 0;
    if (at->is_told) {
        at->state = row->state;
        at->is_open = (telling[0] >> at->octant & 1) != 0 && at->old != telling[1];
        at->ref = (telling[0] >> (VXD_SVDAG_TOLD_SET + at->octant) & 1) != 0 ? telling[1]
                                                                             : at->old;
        return;
    }
    if constexpr (!Editor::TELLS_ALL) {
        enum vxd_svdag_visit visit;
        uint32_t uniform = VXD_SVDAG_EMPTY;

        editor.child(&cube, &row->state, (int)at->octant, &at->state);
        visit = editor.visit(&pass->view, &at->cube, at->old, &at->state, &uniform);
        at->is_open = visit == VXD_SVDAG_DESCEND;
        at->ref = visit == VXD_SVDAG_SET ? uniform : at->old;
    }
}

/* A cube's header, by the lane of its first child, from the children that are not open. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_put_header(
    const struct vxd_svdag_pass *pass, struct vxd_svdag_desk<Editor> *desk,
    const struct vxd_svdag_phase *phase,
    const struct vxd_svdag_visited<typename Editor::state> *at, bool is_row, bool is_like)
{
    const uint32_t shift = vxd_svdag_lane() & 24;
    const bool is_known = at->is_there && !at->is_open;
    const int height = vxd_svdag_row_height(phase, at->parent);
    struct vxd_svdag_part part = {0, 0};
    uint32_t occupied;
    uint32_t free;
    uint32_t changed;
    uint32_t is_rows;
    uint32_t likes;

    if (is_known) {
        part = vxd_svdag_part_of(&pass->view, at->ref, height - 1);
    }
    __syncwarp();
    occupied =
        __ballot_sync(UINT32_MAX, (part.flags & VXD_SVDAG_HAS_OCCUPIED) != 0) >> shift;
    free = __ballot_sync(UINT32_MAX, (part.flags & VXD_SVDAG_HAS_FREE) != 0) >> shift;
    changed = __ballot_sync(UINT32_MAX, is_known && at->ref != at->old) >> shift;
    is_rows = __ballot_sync(UINT32_MAX, is_row || is_like) >> shift;
    likes = __ballot_sync(UINT32_MAX, is_like) >> shift;
    for (int step = 1; step < 8; step *= 2) {
        part.n_occupied += __shfl_xor_sync(UINT32_MAX, part.n_occupied, step);
    }
    if (at->is_there && at->octant == 0) {
        struct vxd_svdag_row<typename Editor::state> *row =
            vxd_svdag_row_at(pass, desk, phase, at->parent);

        row->words[0] = ((occupied & 0xffu) != 0 ? VXD_SVDAG_HAS_OCCUPIED : 0) |
                        ((free & 0xffu) != 0 ? VXD_SVDAG_HAS_FREE : 0) |
                        (height <= VXD_SVDAG_COUNT_HEIGHT ? part.n_occupied << 10 : 0);
        row->marks =
            (is_rows & 0xffu) | ((changed & 0xffu) != 0 ? VXD_SVDAG_MARK_CHANGED : 0) |
            (likes & 0xffu) << VXD_SVDAG_MARK_LIKES | at->top << VXD_SVDAG_MARK_TOP;
    }
}

/* By all lanes of a warp: a place for each that takes one, after those of the warps before it. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_take_places(uint32_t *n, bool takes)
{
    const uint32_t mask = __ballot_sync(UINT32_MAX, takes);
    uint32_t begin = 0;

    if (mask != 0 && vxd_svdag_lane() == 0) {
        begin = atomicAdd(n, (uint32_t)__popc(mask));
    }
    return __shfl_sync(UINT32_MAX, begin, 0) +
           (uint32_t)__popc(mask & ((1u << vxd_svdag_lane()) - 1));
}

/* By all lanes of a warp: likewise, of the rows of the pass; which may be beyond those there are. */
VXD_SVDAG_DEVICE uint64_t vxd_svdag_take_rows_of_pass(uint64_t *n, bool takes)
{
    const uint32_t mask = __ballot_sync(UINT32_MAX, takes);
    unsigned long long begin = 0;

    if (mask != 0 && vxd_svdag_lane() == 0) {
        begin = vxd_svdag_atomic_add(n, (uint64_t)__popc(mask));
    }
    return __shfl_sync(UINT32_MAX, begin, 0) +
           (uint64_t)__popc(mask & ((1u << vxd_svdag_lane()) - 1));
}

/* By all lanes of a warp: a row for each child that takes one; its number. Where there is none a
 * fault is raised. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t vxd_svdag_take_rows(
    const struct vxd_svdag_pass *pass, struct vxd_svdag_desk<Editor> *desk,
    const struct vxd_svdag_phase *phase,
    const struct vxd_svdag_visited<typename Editor::state> *at, bool takes,
    uint64_t weight)
{
    const int below = phase->height - 1;
    const uint64_t child =
        phase->is_local
            ? vxd_svdag_local_begin<Editor>(below) +
                  vxd_svdag_take_places(&desk->n_rows[phase->top - below], takes)
            : desk->jobs.cubes_below +
                  vxd_svdag_take_rows_of_pass(vxd_svdag_n_cubes_below(pass, desk, phase),
                                              takes);

    if (takes && !phase->is_local && child >= pass->cubes_capacity) {
        vxd_svdag_raise(pass, VXD_SVDAG_NO_CUBES);
    } else if (takes) {
        struct vxd_svdag_row<typename Editor::state> *row =
            vxd_svdag_row_at(pass, desk, phase, (uint32_t)child);

        row->place = vxd_svdag_place_of(&at->cube);
        row->state = at->state;
        row->ref = at->old;
        row->marks = at->top << VXD_SVDAG_MARK_TOP;
        if (!phase->is_local && pass->cube_weights != NULL) {
            pass->cube_weights[child] = weight;
        }
    }
    return (uint32_t)child;
}

/* Cubes ----------------------------------------------------------------------------------- */

/* How many cubes stand for one. */
template <class Editor>
VXD_SVDAG_DEVICE uint64_t vxd_svdag_weight_of(
    const struct vxd_svdag_pass *pass, const struct vxd_svdag_desk<Editor> *desk,
    const struct vxd_svdag_phase *phase,
    const struct vxd_svdag_visited<typename Editor::state> *at)
{
    return phase->is_local ? desk->weights[at->top]
           : at->is_there  ? vxd_svdag_weight(pass->cube_weights, at->parent)
                           : 0;
}

/* What is known of the children of four cubes goes to their rows; those that are open become
 * rows, those that are leaves are listed. *pair is what may have to be gone into to know what
 * changed. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_put_children(const struct vxd_svdag_pass *pass, const Editor &editor,
                       struct vxd_svdag_desk<Editor> *desk,
                       const struct vxd_svdag_phase *phase,
                       const struct vxd_svdag_visited<typename Editor::state> *at,
                       struct vxd_svdag_pair *pair)
{
    const int below = vxd_svdag_row_height(phase, at->parent) - 1;
    const uint32_t number = at->parent * 8 + at->octant;
    const uint64_t weight = vxd_svdag_weight_of(pass, desk, phase, at);
    const bool is_above = below > VXD_SVDAG_LEAF_HEIGHT;
    uint32_t like = VXD_SVDAG_NO_CHILD;
    bool is_row;
    uint32_t child;

    pair->is_there =
        at->is_there && !at->is_open && at->ref != at->old && pass->counts_changes;
    pair->height = below;
    pair->from = at->old;
    pair->to = at->ref;
    pair->weight = weight;
    if (!phase->is_local && at->is_open && pass->signs.n > 0) {
        like = vxd_svdag_find_like(pass, editor, &at->cube, at->old, &at->state, number);
    }
    __syncwarp();
    is_row = is_above && at->is_open && like == VXD_SVDAG_NO_CHILD;
    if (phase->is_path) {
        child = at->parent + 1;
    } else if (is_above) {
        child = vxd_svdag_take_rows(pass, desk, phase, at, is_row, weight);
    } else {
        child = vxd_svdag_take_places(&desk->n_leaves, at->is_open);
        if (at->is_open) {
            desk->leaves[child] =
                (uint16_t)(number | (at->is_told ? VXD_SVDAG_LEAF_TOLD : 0));
        }
    }
    if (at->is_there) {
        vxd_svdag_row_at(pass, desk, phase, at->parent)->words[1 + at->octant] =
            like != VXD_SVDAG_NO_CHILD ? like
            : is_row                   ? child
            : at->is_open              ? at->old
                                       : at->ref;
    }
    vxd_svdag_put_header(pass, desk, phase, at, is_row, like != VXD_SVDAG_NO_CHILD);
    __syncwarp();
}

#endif
