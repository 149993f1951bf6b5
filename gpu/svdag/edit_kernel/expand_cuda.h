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
    bool expands;
    bool is_classified;
};

/* What an editor tells of the children of a cube, in the first words of its row: masks of octants
 * that are open and set, and a bit that says that it tells. */
#define VXD_SVDAG_CLASSIFIED_SET 8
#define VXD_SVDAG_CLASSIFIED 16

/* Visits ---------------------------------------------------------------------------------- */

/* Of the row of this lane, if i is one. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_classify(const struct vxd_svdag_kernel_args *args,
                                         const Editor &editor,
                                         struct vxd_svdag_block_shared<Editor> *shared,
                                         const struct vxd_svdag_phase *phase, uint32_t i)
{
    if (i < phase->n) {
        const struct vxd_svdag_frontier_entry<typename Editor::state> *entry =
            vxd_svdag_entry_at(args, shared, phase, phase->begin + i);
        uint32_t *to = vxd_svdag_local_copy(shared, phase, i)->words;
        const struct vxd_svdag_cube cube = vxd_svdag_cube_at(entry->place, phase->height);
        struct vxd_svdag_classes classes = {0, 0, VXD_SVDAG_EMPTY};
        const bool decides = editor.classify(&cube, &entry->state, &classes);

        to[0] = decides ? classes.expand | classes.set << VXD_SVDAG_CLASSIFIED_SET |
                              1u << VXD_SVDAG_CLASSIFIED
                        : 0;
        to[1] = classes.uniform;
    }
}

/* The child that this lane is to look at: of four open cubes, or a leaf that is listed; with
 * what its cube's editor told. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_find_child(const struct vxd_svdag_kernel_args *args,
                     struct vxd_svdag_block_shared<Editor> *shared,
                     const struct vxd_svdag_phase *phase, uint32_t first,
                     uint32_t class_words[2],
                     struct vxd_svdag_visited<typename Editor::state> *at)
{
    const bool is_leaf = phase->kind == VXD_SVDAG_PHASE_LEAVES;
    const uint32_t i = first + (is_leaf ? vxd_svdag_lane() : vxd_svdag_lane() / 8);
    const struct vxd_svdag_frontier_entry<typename Editor::state> *entry;

    at->is_there = i < phase->n;
    at->expands = false;
    at->is_classified = false;
    at->old = VXD_SVDAG_EMPTY;
    at->ref = VXD_SVDAG_EMPTY;
    at->top = 0;
    at->slot = VXD_SVDAG_NO_SLOT;
    at->octant = vxd_svdag_lane() % 8;
    at->parent = phase->begin + (at->is_there ? i : 0);
    class_words[0] = 0;
    class_words[1] = VXD_SVDAG_EMPTY;
    if (!at->is_there) {
        return;
    }
    if (is_leaf) {
        const uint32_t leaf = shared->leaves[i];

        at->octant = leaf % 8;
        at->parent = (leaf & (VXD_SVDAG_LEAF_CLASSIFIED - 1)) / 8;
        class_words[0] =
            (leaf & VXD_SVDAG_LEAF_CLASSIFIED) != 0 ? 1u << VXD_SVDAG_CLASSIFIED : 0;
    } else if (Editor::CLASSIFIES) {
        const uint32_t *classes = vxd_svdag_local_copy(shared, phase, i)->words;

        class_words[0] = classes[0];
        class_words[1] = classes[1];
    }
    entry = vxd_svdag_entry_at(args, shared, phase, at->parent);
    at->top = entry->marks >> VXD_SVDAG_MARK_SUBTREE;
    at->old = is_leaf ? entry->words[1 + at->octant]
                      : vxd_svdag_child_ref(&args->view, entry->ref, (int)at->octant);
    if constexpr (Editor::CLASSIFIES_ALL) {
        if (is_leaf && (entry->marks >> at->octant & 1) != 0) {
            at->slot = at->old;
            at->old = vxd_svdag_leaf_memo_old(&shared->memo, at->slot);
        }
    }
    if (!is_leaf && vxd_svdag_is_node(at->old)) {
        /* Its header is read here, or its children at the next height. */
        vxd_svdag_prefetch(vxd_svdag_words(&args->view, at->old));
    }
}

/* What becomes of it. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_visit(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                struct vxd_svdag_block_shared<Editor> *shared,
                const struct vxd_svdag_phase *phase, const uint32_t class_words[2],
                struct vxd_svdag_visited<typename Editor::state> *at)
{
    const struct vxd_svdag_frontier_entry<typename Editor::state> *entry =
        vxd_svdag_entry_at(args, shared, phase, at->parent);
    const struct vxd_svdag_cube cube =
        vxd_svdag_cube_at(entry->place, vxd_svdag_entry_height(phase, at->parent));

    at->cube = vxd_svdag_cube_child(&cube, (int)at->octant);
    at->is_classified =
        Editor::CLASSIFIES_ALL || class_words[0] >> VXD_SVDAG_CLASSIFIED != 0;
    if (at->is_classified) {
        at->state = entry->state;
        at->expands =
            (class_words[0] >> at->octant & 1) != 0 && at->old != class_words[1];
        at->ref = (class_words[0] >> (VXD_SVDAG_CLASSIFIED_SET + at->octant) & 1) != 0
                      ? class_words[1]
                      : at->old;
        return;
    }
    if constexpr (!Editor::CLASSIFIES_ALL) {
        enum vxd_svdag_visit visit;
        uint32_t uniform = VXD_SVDAG_EMPTY;

        editor.child(&cube, &entry->state, (int)at->octant, &at->state);
        visit = editor.visit(&args->view, &at->cube, at->old, &at->state, &uniform);
        at->expands = visit == VXD_SVDAG_DESCEND;
        at->ref = visit == VXD_SVDAG_SET ? uniform : at->old;
    }
}

/* A cube's header, by the lane of its first child, from the children that are not open. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_put_header(const struct vxd_svdag_kernel_args *args,
                     struct vxd_svdag_block_shared<Editor> *shared,
                     const struct vxd_svdag_phase *phase,
                     const struct vxd_svdag_visited<typename Editor::state> *at,
                     bool is_entry, bool is_duplicate)
{
    const uint32_t shift = vxd_svdag_lane() & 24;
    const bool is_known = at->is_there && !at->expands;
    const int height = vxd_svdag_entry_height(phase, at->parent);
    struct vxd_svdag_occupancy occupancy = {0, 0};
    uint32_t occupied;
    uint32_t free;
    uint32_t changed;
    uint32_t entry_mask;
    uint32_t duplicates;

    if (is_known) {
        occupancy = vxd_svdag_occupancy_of(&args->view, at->ref, height - 1);
    }
    __syncwarp();
    occupied =
        __ballot_sync(UINT32_MAX, (occupancy.flags & VXD_SVDAG_HAS_OCCUPIED) != 0) >>
        shift;
    free =
        __ballot_sync(UINT32_MAX, (occupancy.flags & VXD_SVDAG_HAS_FREE) != 0) >> shift;
    changed = __ballot_sync(UINT32_MAX, is_known && at->ref != at->old) >> shift;
    entry_mask = __ballot_sync(UINT32_MAX, is_entry || is_duplicate) >> shift;
    duplicates = __ballot_sync(UINT32_MAX, is_duplicate) >> shift;
    for (int step = 1; step < 8; step *= 2) {
        occupancy.n_occupied += __shfl_xor_sync(UINT32_MAX, occupancy.n_occupied, step);
    }
    if (at->is_there && at->octant == 0) {
        struct vxd_svdag_frontier_entry<typename Editor::state> *entry =
            vxd_svdag_entry_at(args, shared, phase, at->parent);

        entry->words[0] =
            ((occupied & 0xffu) != 0 ? VXD_SVDAG_HAS_OCCUPIED : 0) |
            ((free & 0xffu) != 0 ? VXD_SVDAG_HAS_FREE : 0) |
            (height <= VXD_SVDAG_COUNT_HEIGHT ? occupancy.n_occupied << 10 : 0);
        entry->marks = (entry_mask & 0xffu) |
                       ((changed & 0xffu) != 0 ? VXD_SVDAG_MARK_CHANGED : 0) |
                       (duplicates & 0xffu) << VXD_SVDAG_MARK_DUPLICATES |
                       at->top << VXD_SVDAG_MARK_SUBTREE;
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
VXD_SVDAG_DEVICE uint64_t vxd_svdag_take_frontier_entries(uint64_t *n, bool takes)
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
VXD_SVDAG_DEVICE uint32_t vxd_svdag_take_entries(
    const struct vxd_svdag_kernel_args *args,
    struct vxd_svdag_block_shared<Editor> *shared, const struct vxd_svdag_phase *phase,
    const struct vxd_svdag_visited<typename Editor::state> *at, bool takes,
    uint64_t weight)
{
    const int child_height = phase->height - 1;
    const uint64_t child =
        phase->is_local ? vxd_svdag_local_begin<Editor>(child_height) +
                              vxd_svdag_take_places(
                                  &shared->n_local[phase->top - child_height], takes)
                        : shared->batches.next_entries +
                              vxd_svdag_take_frontier_entries(
                                  vxd_svdag_next_n_entries(args, shared, phase), takes);

    if (takes && !phase->is_local && child >= args->entries_capacity) {
        vxd_svdag_set_fault(args, VXD_SVDAG_NO_ENTRIES);
    } else if (takes) {
        struct vxd_svdag_frontier_entry<typename Editor::state> *entry =
            vxd_svdag_entry_at(args, shared, phase, (uint32_t)child);

        entry->place = vxd_svdag_place_of(&at->cube);
        entry->state = at->state;
        entry->ref = at->old;
        entry->marks = at->top << VXD_SVDAG_MARK_SUBTREE;
        if (!phase->is_local && args->entry_weights != NULL) {
            args->entry_weights[child] = weight;
        }
    }
    return (uint32_t)child;
}

/* Cubes ----------------------------------------------------------------------------------- */

/* How many cubes stand for one. */
template <class Editor>
VXD_SVDAG_DEVICE uint64_t
vxd_svdag_weight_of(const struct vxd_svdag_kernel_args *args,
                    const struct vxd_svdag_block_shared<Editor> *shared,
                    const struct vxd_svdag_phase *phase,
                    const struct vxd_svdag_visited<typename Editor::state> *at)
{
    return phase->is_local ? shared->weights[at->top]
           : at->is_there  ? vxd_svdag_weight(args->entry_weights, at->parent)
                           : 0;
}

/* What is known of the children of four cubes goes to their rows; those that are open become
 * rows, those that are leaves are listed. *pair is what may have to be gone into to know what
 * changed. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_put_children(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                       struct vxd_svdag_block_shared<Editor> *shared,
                       const struct vxd_svdag_phase *phase,
                       const struct vxd_svdag_visited<typename Editor::state> *at,
                       struct vxd_svdag_pair *pair)
{
    const int child_height = vxd_svdag_entry_height(phase, at->parent) - 1;
    const uint32_t number = at->parent * 8 + at->octant;
    const uint64_t weight = vxd_svdag_weight_of(args, shared, phase, at);
    const bool is_above = child_height > VXD_SVDAG_LEAF_HEIGHT;
    uint32_t duplicate = VXD_SVDAG_NO_CHILD;
    bool is_entry;
    uint32_t child;

    pair->is_there =
        at->is_there && !at->expands && at->ref != at->old && args->counts_changes;
    pair->height = child_height;
    pair->from = at->old;
    pair->to = at->ref;
    pair->weight = weight;
    if (!phase->is_local && at->expands && args->dedup.n > 0) {
        duplicate = vxd_svdag_find_duplicate(args, editor, &at->cube, at->old, &at->state,
                                             number);
    }
    __syncwarp();
    is_entry = is_above && at->expands && duplicate == VXD_SVDAG_NO_CHILD;
    if (phase->is_path) {
        child = at->parent + 1;
    } else if (is_above) {
        child = vxd_svdag_take_entries(args, shared, phase, at, is_entry, weight);
    } else {
        child = vxd_svdag_take_places(&shared->n_leaves, at->expands);
        if (at->expands) {
            shared->leaves[child] =
                (uint16_t)(number | (at->is_classified ? VXD_SVDAG_LEAF_CLASSIFIED : 0));
        }
    }
    if (at->is_there) {
        vxd_svdag_entry_at(args, shared, phase, at->parent)->words[1 + at->octant] =
            duplicate != VXD_SVDAG_NO_CHILD ? duplicate
            : is_entry                      ? child
            : at->expands                   ? at->old
                                            : at->ref;
    }
    vxd_svdag_put_header(args, shared, phase, at, is_entry,
                         duplicate != VXD_SVDAG_NO_CHILD);
    __syncwarp();
}

#endif
