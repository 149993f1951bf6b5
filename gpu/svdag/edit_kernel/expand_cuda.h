// SPDX-License-Identifier: Apache-2.0
/* The way down: which children of an open cube are open, and what becomes of the others.
 *
 * - Four cubes a warp, a lane for each of their children. The same code expands entries
 *   of the frontier height by height, and the subtrees of a block in shared memory.
 *   Leaves are listed, so that no lane is idle when they are edited. Some editors
 *   classify all children of a cube at once; then a lane does that for a cube before (the
 *   phase CLASSIFY).
 * - A lane a cube, where an editor classifies the children of every cube (CLASSIFIES_ALL:
 *   a ball). No cube duplicates another one then.
 * - The top of the tree by the first block alone: the path to a bounded edit (HAS_BOUNDS:
 *   a copy), a lane a cube; or the upper cubes of a ball, a thread a child.
 *
 * Bytes: the header of each child that is a node, 4 bytes; the words of an open cube's
 * node, up to 36; and the entries (frontier_cuda.h). Source: SVDAG editing, section
 * 4.3. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_CUDA_H

#include "gpu/svdag/edit_kernel/changes_cuda.h"
#include "gpu/svdag/edit_kernel/dedup_cuda.h"

/* A lane a child -------------------------------------------------------------------------- */

/* How an editor classifies the children of a cube, in the first words of its entry: a
 * mask of open octants, from the next bit on one of octants that are set, and a bit that
 * says that they are classified. */
#define VXD_SVDAG_CLASSIFIED_SET 8
#define VXD_SVDAG_CLASSIFIED 16

/* Classifies the children of the entry of this lane, if i is one. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_classify_entry(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                         struct vxd_svdag_block_memory<Editor> *block,
                         const struct vxd_svdag_phase *phase, uint32_t i)
{
    if (i < phase->n) {
        const struct vxd_svdag_entry<typename Editor::state> *entry =
            vxd_svdag_entry_at(args, block, phase, phase->begin + i);
        uint32_t *to = vxd_svdag_block_entry(block, phase, i)->words;
        const struct vxd_svdag_cube cube = vxd_svdag_cube_at(entry->place, phase->height);
        struct vxd_svdag_classes classes = {0, 0, VXD_SVDAG_EMPTY};
        const bool is_classified = editor.classify(&cube, &entry->state, &classes);

        to[0] = is_classified ? classes.expand | classes.set << VXD_SVDAG_CLASSIFIED_SET |
                                    1u << VXD_SVDAG_CLASSIFIED
                              : 0;
        to[1] = classes.uniform;
    }
}

/* The child that this lane has: of one of four open cubes, or a leaf of the list.
 * class_words gets how the editor classified the children of its cube. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_find_child(const struct vxd_svdag_kernel_args *args,
                     struct vxd_svdag_block_memory<Editor> *block,
                     const struct vxd_svdag_phase *phase, uint32_t first,
                     uint32_t class_words[2],
                     struct vxd_svdag_visited<typename Editor::state> *at)
{
    const bool is_leaf = phase->kind == VXD_SVDAG_PHASE_LEAVES;
    const uint32_t i = first + (is_leaf ? vxd_svdag_lane() : vxd_svdag_lane() / 8);
    const struct vxd_svdag_entry<typename Editor::state> *entry;

    at->is_there = i < phase->n;
    at->expands = false;
    at->is_classified = false;
    at->old = VXD_SVDAG_EMPTY;
    at->ref = VXD_SVDAG_EMPTY;
    at->top = 0;
    at->slot = VXD_SVDAG_NO_MEMO_SLOT;
    at->octant = vxd_svdag_lane() % 8;
    at->parent = phase->begin + (at->is_there ? i : 0);
    class_words[0] = 0;
    class_words[1] = VXD_SVDAG_EMPTY;
    if (!at->is_there) {
        return;
    }
    if (is_leaf) {
        const uint32_t leaf = block->leaves[i];

        at->octant = leaf % 8;
        at->parent = (leaf & (VXD_SVDAG_LEAF_CLASSIFIED - 1)) / 8;
        class_words[0] =
            (leaf & VXD_SVDAG_LEAF_CLASSIFIED) != 0 ? 1u << VXD_SVDAG_CLASSIFIED : 0;
    } else if (Editor::CLASSIFIES) {
        const uint32_t *classes = vxd_svdag_block_entry(block, phase, i)->words;

        class_words[0] = classes[0];
        class_words[1] = classes[1];
    }
    entry = vxd_svdag_entry_at(args, block, phase, at->parent);
    at->top = entry->marks >> VXD_SVDAG_MARK_SUBTREE;
    at->old = is_leaf ? entry->words[1 + at->octant]
                      : vxd_svdag_child_ref(&args->view, entry->ref, (int)at->octant);
    if constexpr (Editor::CLASSIFIES_ALL) {
        if (is_leaf && (entry->marks >> at->octant & 1) != 0) {
            at->slot = at->old;
            at->old = vxd_svdag_leaf_memo_old(&block->leaf_memo, at->slot);
        }
    }
    if (!is_leaf && vxd_svdag_is_node(at->old)) {
        /* Its header is read soon, or its children at the next height. */
        vxd_svdag_prefetch(vxd_svdag_words(&args->view, at->old));
    }
}

/* Decides what becomes of it. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_visit(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                struct vxd_svdag_block_memory<Editor> *block,
                const struct vxd_svdag_phase *phase, const uint32_t class_words[2],
                struct vxd_svdag_visited<typename Editor::state> *at)
{
    const struct vxd_svdag_entry<typename Editor::state> *entry =
        vxd_svdag_entry_at(args, block, phase, at->parent);
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

/* Makes the header and the marks of a cube's entry from the children that are not open;
 * the lane of its first child writes them. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_put_header(const struct vxd_svdag_kernel_args *args,
                     struct vxd_svdag_block_memory<Editor> *block,
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
        struct vxd_svdag_entry<typename Editor::state> *entry =
            vxd_svdag_entry_at(args, block, phase, at->parent);

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

/* By all lanes of a warp: places in the frontier for those that take one. They may be
 * beyond its capacity. */
VXD_SVDAG_DEVICE uint64_t vxd_svdag_take_frontier_places(uint64_t *n, bool takes)
{
    const uint32_t mask = __ballot_sync(UINT32_MAX, takes);
    unsigned long long begin = 0;

    if (mask != 0 && vxd_svdag_lane() == 0) {
        begin = vxd_svdag_atomic_add(n, (uint64_t)__popc(mask));
    }
    return __shfl_sync(UINT32_MAX, begin, 0) +
           (uint64_t)__popc(mask & ((1u << vxd_svdag_lane()) - 1));
}

/* By all lanes of a warp: an entry for each child that takes one; its number. Sets a
 * fault where the frontier is full. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t vxd_svdag_take_entries(
    const struct vxd_svdag_kernel_args *args,
    struct vxd_svdag_block_memory<Editor> *block, const struct vxd_svdag_phase *phase,
    const struct vxd_svdag_visited<typename Editor::state> *at, bool takes,
    uint64_t weight)
{
    const int child_height = phase->height - 1;
    const uint64_t child =
        phase->is_local
            ? vxd_svdag_local_begin<Editor>(child_height) +
                  vxd_svdag_take_places(&block->n_local[phase->top - child_height], takes)
            : block->batches.next_entries +
                  vxd_svdag_take_frontier_places(
                      vxd_svdag_next_n_entries(args, block, phase), takes);

    if (takes && !phase->is_local && child >= args->entries_capacity) {
        vxd_svdag_set_fault(args, VXD_SVDAG_NO_ENTRIES);
    } else if (takes) {
        struct vxd_svdag_entry<typename Editor::state> *entry =
            vxd_svdag_entry_at(args, block, phase, (uint32_t)child);

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

/* How many equal cubes the parent of a child stands for. */
template <class Editor>
VXD_SVDAG_DEVICE uint64_t
vxd_svdag_weight_of(const struct vxd_svdag_kernel_args *args,
                    const struct vxd_svdag_block_memory<Editor> *block,
                    const struct vxd_svdag_phase *phase,
                    const struct vxd_svdag_visited<typename Editor::state> *at)
{
    return phase->is_local ? block->weights[at->top]
           : at->is_there  ? vxd_svdag_weight(args->entry_weights, at->parent)
                           : 0;
}

/* By all lanes of a warp: writes what is known of the children of four cubes to their
 * entries. Open ones become entries, or are listed where they are leaves. *pair is what
 * may have to be expanded to know what changed. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_put_children(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                       struct vxd_svdag_block_memory<Editor> *block,
                       const struct vxd_svdag_phase *phase,
                       const struct vxd_svdag_visited<typename Editor::state> *at,
                       struct vxd_svdag_pair *pair)
{
    const int child_height = vxd_svdag_entry_height(phase, at->parent) - 1;
    const uint32_t number = at->parent * 8 + at->octant;
    const uint64_t weight = vxd_svdag_weight_of(args, block, phase, at);
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
        child = vxd_svdag_take_entries(args, block, phase, at, is_entry, weight);
    } else {
        child = vxd_svdag_take_places(&block->n_leaves, at->expands);
        if (at->expands) {
            block->leaves[child] =
                (uint16_t)(number | (at->is_classified ? VXD_SVDAG_LEAF_CLASSIFIED : 0));
        }
    }
    if (at->is_there) {
        vxd_svdag_entry_at(args, block, phase, at->parent)->words[1 + at->octant] =
            duplicate != VXD_SVDAG_NO_CHILD ? duplicate
            : is_entry                      ? child
            : at->expands                   ? at->old
                                            : at->ref;
    }
    vxd_svdag_put_header(args, block, phase, at, is_entry,
                         duplicate != VXD_SVDAG_NO_CHILD);
    __syncwarp();
}

/* A lane a cube --------------------------------------------------------------------------- */

/* The cube of a lane, and what becomes of its children, a bit each. */
struct vxd_svdag_classified_cube {
    struct vxd_svdag_cube cube;
    struct vxd_svdag_classes classes;
    uint32_t olds[8];
    uint32_t heads[8]; /* headers of children that are nodes and stay */
    uint32_t expand;
    uint32_t changed; /* of those that are not open */
};

/* Reads what stands in a cube and decides what becomes of its children. The loads of the
 * eight children are independent. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_classify_cube(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                        int height,
                        const struct vxd_svdag_entry<typename Editor::state> *entry,
                        struct vxd_svdag_classified_cube *at)
{
    const uint32_t ref = entry->ref;
    const uint32_t *words[8];

    at->cube = vxd_svdag_cube_at(entry->place, height);
    (void)editor.classify(&at->cube, &entry->state, &at->classes);
    at->expand = at->classes.expand;
    at->changed = at->classes.set;
    vxd_svdag_child_refs(&args->view, ref, at->olds);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        at->heads[i] = 0;
        if (at->olds[i] == at->classes.uniform) {
            at->expand &= ~(1u << i);
            at->changed &= ~(1u << i);
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        words[i] = vxd_svdag_is_node(at->olds[i]) && (at->classes.set >> i & 1) == 0
                       ? vxd_svdag_words(&args->view, at->olds[i])
                       : NULL;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (words[i] != NULL && (at->expand >> i & 1) != 0) {
            vxd_svdag_prefetch(words[i]);
        } else if (words[i] != NULL && height > VXD_SVDAG_LEAF_HEIGHT + 1) {
            at->heads[i] = words[i][0];
        }
    }
}

/* Makes the header of a cube's node from the children that are not open. Writes their
 * references, and for open ones what stands there, to the entry. */
template <class State>
VXD_SVDAG_DEVICE uint32_t vxd_svdag_classified_header(
    const struct vxd_svdag_kernel_args *args, const struct vxd_svdag_classified_cube *at,
    struct vxd_svdag_entry<State> *entry)
{
    const int child_height = at->cube.height - 1;
    uint32_t flags = 0;
    uint32_t n_occupied = 0;

#pragma unroll
    for (int i = 0; i < 8; i++) {
        const uint32_t now =
            (at->classes.set >> i & 1) != 0 ? at->classes.uniform : at->olds[i];
        struct vxd_svdag_occupancy occupancy = {0, 0};

        entry->words[1 + i] = (at->expand >> i & 1) != 0 ? at->olds[i] : now;
        if ((at->expand >> i & 1) == 0 && child_height > VXD_SVDAG_LEAF_HEIGHT &&
            vxd_svdag_is_node(now)) {
            occupancy = vxd_svdag_occupancy_of_header(at->heads[i]);
        } else if ((at->expand >> i & 1) == 0 && !vxd_svdag_is_node(now)) {
            occupancy = vxd_svdag_occupancy_of_uniform(&args->view, now, child_height);
        }
        flags |= occupancy.flags;
        n_occupied += occupancy.n_occupied;
    }
    /* Leaves that stay, of which there are few. */
    if (child_height == VXD_SVDAG_LEAF_HEIGHT) {
#pragma unroll 1
        for (uint32_t rest = 0xffu & ~(at->expand | at->classes.set); rest != 0;
             rest &= rest - 1) {
            const uint32_t ref = entry->words[__ffs((int)rest)];

            if (vxd_svdag_is_node(ref)) {
                const struct vxd_svdag_occupancy occupancy =
                    vxd_svdag_occupancy_of(&args->view, ref, child_height);

                flags |= occupancy.flags;
                n_occupied += occupancy.n_occupied;
            }
        }
    }
    return flags | (at->cube.height <= VXD_SVDAG_COUNT_HEIGHT ? n_occupied << 10 : 0);
}

/* By all lanes of a warp: counts what changed in children that are not open, of lanes
 * that have a cube. Where a cube was uniform the change is the same in each of its
 * children. Of the others each lane takes one, whoever has its cube, as most cubes have
 * several or none. */
VXD_SVDAG_DEVICE void vxd_svdag_count_classified(
    const struct vxd_svdag_kernel_args *args, const struct vxd_svdag_pairs_to *to,
    const struct vxd_svdag_classified_cube *at, uint32_t ref,
    union vxd_svdag_warp_lists *lists, struct vxd_svdag_change *sum)
{
    const bool is_even = !vxd_svdag_is_node(ref);
    uint32_t changed = at->changed;
    uint32_t n;
    uint32_t place;

    if (is_even && changed != 0) {
        struct vxd_svdag_change change;

        (void)vxd_svdag_change_at_once(&args->view, ref, at->classes.uniform,
                                       at->cube.height - 1, &change);
        vxd_svdag_add_times(sum, &change, (uint64_t)__popc(changed));
        changed = 0;
    }
    __syncwarp();
    place = vxd_svdag_sum_before((uint32_t)__popc(changed), &n);
    for (; changed != 0; changed &= changed - 1) {
        lists->leaves[place++] =
            (uint16_t)(vxd_svdag_lane() * 8 + (uint32_t)__ffs((int)changed) - 1);
    }
    __syncwarp();
#pragma unroll 1
    for (uint32_t first = 0; first < n; first += 32) {
        const bool is_there = first + vxd_svdag_lane() < n;
        const uint32_t child = is_there ? lists->leaves[first + vxd_svdag_lane()] : 0;
        const uint32_t from = __shfl_sync(UINT32_MAX, ref, (int)(child / 8));
        const int height = __shfl_sync(UINT32_MAX, at->cube.height, (int)(child / 8));
        const uint32_t uniform =
            __shfl_sync(UINT32_MAX, at->classes.uniform, (int)(child / 8));
        struct vxd_svdag_pair pair = {is_there, height - 1, VXD_SVDAG_EMPTY, uniform, 1};

        if (is_there) {
            pair.from = vxd_svdag_child_ref(&args->view, from, (int)(child % 8));
        }
        __syncwarp();
        /* Pairs of leaves are never open, and others go into device memory: there is
         * no list. */
        vxd_svdag_count_pairs(args, to, &pair, NULL, 0, sum);
    }
}

/* By all lanes of a warp: the open children of the cubes of lanes become entries of the
 * frontier. Sets a fault where it is full. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_put_open_entries(const struct vxd_svdag_kernel_args *args,
                           struct vxd_svdag_block_memory<Editor> *block,
                           const struct vxd_svdag_phase *phase,
                           const struct vxd_svdag_classified_cube *at,
                           struct vxd_svdag_entry<typename Editor::state> *entry)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const uint32_t expand = at->expand;
    uint32_t total;
    const uint32_t before = vxd_svdag_sum_before((uint32_t)__popc(expand), &total);
    unsigned long long begin = 0;
    uint64_t child;

    if (total > 0 && vxd_svdag_lane() == 0) {
        begin = vxd_svdag_atomic_add(vxd_svdag_next_n_entries(args, block, phase), total);
    }
    child = block->batches.next_entries + __shfl_sync(UINT32_MAX, begin, 0) + before;
    if (expand != 0 && child + (uint32_t)__popc(expand) > args->entries_capacity) {
        vxd_svdag_set_fault(args, VXD_SVDAG_NO_ENTRIES);
    }
#pragma unroll
    for (int octant = 0; octant < 8; octant++) {
        if ((expand >> octant & 1) != 0 && child < args->entries_capacity) {
            const struct vxd_svdag_cube child_cube =
                vxd_svdag_cube_child(&at->cube, octant);
            entry_t *to = (entry_t *)args->entries + child;

            to->place = vxd_svdag_place_of(&child_cube);
            to->ref = at->olds[octant];
            entry->words[1 + octant] = (uint32_t)child++;
        }
    }
    __syncwarp();
}

/* By all lanes of a warp: expands the entries of a phase from `first` on, one a lane.
 * Open children become entries of the frontier; or, of entries in shared memory, leaves
 * that take slots of the memo. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_expand_classified(
    const struct vxd_svdag_kernel_args *args, const Editor &editor,
    struct vxd_svdag_block_memory<Editor> *block, const struct vxd_svdag_phase *phase,
    uint32_t first, struct vxd_svdag_change *sum)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const uint32_t i = first + vxd_svdag_lane();
    const bool is_there = i < phase->n;
    union vxd_svdag_warp_lists *lists = &block->warp_lists[threadIdx.x / 32];
    entry_t *entry =
        vxd_svdag_entry_at(args, block, phase, phase->begin + (is_there ? i : 0));
    const struct vxd_svdag_pairs_to to = {
        phase->is_local ? NULL : vxd_svdag_next_n_pairs(args, block, phase),
        block->batches.next_pairs};
    struct vxd_svdag_classified_cube at;

    at.cube.height = phase->height;
    at.classes = {0, 0, VXD_SVDAG_EMPTY};
    at.expand = 0;
    at.changed = 0;
    if (is_there) {
        vxd_svdag_classify_cube(args, editor, phase->height, entry, &at);
        entry->words[0] = vxd_svdag_classified_header(args, &at, entry);
        entry->marks = (phase->is_local ? 0 : at.expand) |
                       (at.changed != 0 ? VXD_SVDAG_MARK_CHANGED : 0);
    }
    __syncwarp();
    if (!phase->is_local) {
        vxd_svdag_put_open_entries(args, block, phase, &at, entry);
    }
    if (args->counts_changes) {
        vxd_svdag_count_classified(args, &to, &at, entry->ref, lists, sum);
    }
    if (phase->is_local) {
        uint32_t n_leaves;
        uint32_t leaf = vxd_svdag_sum_before((uint32_t)__popc(at.expand), &n_leaves);

        for (uint32_t rest = at.expand; rest != 0; rest &= rest - 1) {
            lists->leaves[leaf++] =
                (uint16_t)((phase->begin + i) * 8 + (uint32_t)__ffs((int)rest) - 1);
        }
        __syncwarp();
        vxd_svdag_take_slots(editor, block, lists->leaves, n_leaves);
    }
}

/* The root, and the path to a bounded edit ------------------------------------------------- */

/* By one thread: the entry of the root, which is always expanded. */
template <class Editor>
static __device__ void vxd_svdag_put_root(const struct vxd_svdag_kernel_args *args,
                                          const Editor &editor)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    entry_t *entry = (entry_t *)args->entries;

    entry->place = 0;
    entry->marks = 0;
    entry->ref = args->progress->root;
    editor.begin(&args->view, entry->ref, &entry->state);
    if (args->entry_weights != NULL) {
        args->entry_weights[0] = 1;
    }
    args->state->n_entries[args->view.depth] = 1;
}

/* The height of the smallest cube, *end, that holds all that the editor edits; at least
 * that of subtrees. */
template <class Editor>
VXD_SVDAG_DEVICE int vxd_svdag_path_end(const Editor &editor, int depth,
                                        struct vxd_svdag_cube *end)
{
    uint32_t low[3];
    uint32_t high[3];
    int height = depth;

    if (editor.bounds(depth, low, high)) {
        const uint32_t differ =
            (low[0] ^ high[0]) | (low[1] ^ high[1]) | (low[2] ^ high[2]);

        height = 32 - __clz((int)differ);
        height = height < vxd_svdag_batch_sizes<Editor>::SUBTREE_HEIGHT
                     ? vxd_svdag_batch_sizes<Editor>::SUBTREE_HEIGHT
                     : height;
    }
    end->height = height;
    end->x = height < depth ? low[0] >> height << height : 0;
    end->y = height < depth ? low[1] >> height << height : 0;
    end->z = height < depth ? low[2] >> height << height : 0;
    return height;
}

/* The octant of the child of a cube of this height that holds the cube *end. */
VXD_SVDAG_DEVICE int vxd_svdag_path_octant(const struct vxd_svdag_cube *end, int height)
{
    return (int)((end->x >> (height - 1) & 1) << 2 | (end->y >> (height - 1) & 1) << 1 |
                 (end->z >> (height - 1) & 1));
}

/* By one thread: the entries of the path, from the root on, one of each height. No child
 * of theirs is open except the next one. The path ends early where it is known what
 * becomes of the next cube. The last entry is not expanded. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_top
vxd_svdag_put_path(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                   const struct vxd_svdag_cube *end)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    entry_t *entry = (entry_t *)args->entries;
    uint32_t ref = args->progress->root;
    int height = args->view.depth;

    editor.begin(&args->view, ref, &entry->state);
    for (;; height--, entry++) {
        const struct vxd_svdag_cube cube = {end->x >> height << height,
                                            end->y >> height << height,
                                            end->z >> height << height, height};

        entry->place = vxd_svdag_place_of(&cube);
        entry->marks = 0;
        entry->ref = ref;
        args->state->n_entries[height] = 1;
        if (args->entry_weights != NULL) {
            args->entry_weights[args->view.depth - height] = 1;
        }
        if (height > end->height) {
            const int octant = vxd_svdag_path_octant(end, height);
            const struct vxd_svdag_cube child = vxd_svdag_cube_child(&cube, octant);
            uint32_t uniform;

            ref = vxd_svdag_child_ref(&args->view, ref, octant);
            editor.child(&cube, &entry->state, octant, &entry[1].state);
            if (editor.visit(&args->view, &child, ref, &entry[1].state, &uniform) ==
                VXD_SVDAG_DESCEND) {
                continue;
            }
        }
        return {(uint32_t)(args->view.depth - height), height, 1, 0};
    }
}

/* The top of an edit that classifies all cubes ---------------------------------------------- */

/* The child that a thread has, one of eight of its cube, and what becomes of it. */
struct vxd_svdag_top_child {
    struct vxd_svdag_cube cube;
    uint32_t old;
    bool expands;
    bool is_set;
};

/* Loads the header of the node that eight lanes look at, and the word of it that would be
 * the lane's child if all were there: it does not have to wait for the header that says
 * which one it is. */
VXD_SVDAG_DEVICE void vxd_svdag_expand_top_load(const struct vxd_svdag_view *view,
                                                uint32_t ref, uint32_t *header,
                                                uint32_t *word)
{
    const uint32_t *chunk = view->chunks[ref >> VXD_SVDAG_CHUNK_BITS];
    const uint32_t at = ref & ((1u << VXD_SVDAG_CHUNK_BITS) - 1);
    const uint32_t own = at + 1 + threadIdx.x % 8;

    *header = chunk[at];
    *word = chunk[own < VXD_SVDAG_CHUNK_WORDS ? own : at];
}

/* By all lanes of a warp, eight a cube: finds the child of this thread and classifies
 * it. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_top_child
vxd_svdag_expand_top_visit(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                           const struct vxd_svdag_expand_top_memory *top, uint32_t n,
                           int height)
{
    const uint32_t i = threadIdx.x / 8;
    const uint32_t octant = threadIdx.x % 8;
    const uint32_t at = i < n ? i : 0;
    const struct vxd_svdag_cube cube = vxd_svdag_cube_at(top->places[at], height);
    const uint32_t ref = top->refs[at];
    const bool is_split = vxd_svdag_reads_split(&args->view);
    struct vxd_svdag_top_child child = {vxd_svdag_cube_child(&cube, (int)octant), ref,
                                        false, false};
    uint32_t header = 0;
    uint32_t word = VXD_SVDAG_EMPTY;
    enum vxd_svdag_relation relation;

    if (vxd_svdag_is_node(ref) && is_split) {
        child.old = vxd_svdag_child_ref(&args->view, ref, (int)octant);
    } else if (vxd_svdag_is_node(ref)) {
        vxd_svdag_expand_top_load(&args->view, ref, &header, &word);
    }
    __syncwarp();
    /* The cube is classified while these loads are under way. */
    relation = editor.relation(&cube);
    word = __shfl_sync(
        UINT32_MAX, word,
        (int)((threadIdx.x & 24) + (uint32_t)__popc(header & ((1u << octant) - 1))));
    if (vxd_svdag_is_node(ref) && !is_split) {
        child.old = (header >> octant & 1) != 0 ? word : (uint32_t)VXD_SVDAG_EMPTY;
    }
    child.is_set = i < n && relation == VXD_SVDAG_INSIDE && child.old != editor.uniform;
    child.expands = i < n && relation == VXD_SVDAG_PARTIAL && child.old != editor.uniform;
    return child;
}

/* By all lanes of a warp: counts what changes in children that are set. Those of which it
 * is not known at once become pairs of the height below, counted in *n_pairs. */
VXD_SVDAG_DEVICE void vxd_svdag_expand_top_count(const struct vxd_svdag_kernel_args *args,
                                                 struct vxd_svdag_block_counts *counts,
                                                 const struct vxd_svdag_top_child *child,
                                                 uint32_t uniform, uint64_t *n_pairs)
{
    const struct vxd_svdag_pairs_to to = {n_pairs, 0};
    const struct vxd_svdag_pair pair = {child->is_set, child->cube.height, child->old,
                                        uniform, 1};
    struct vxd_svdag_change change = {0, 0, 0, 0};
    const bool expands =
        child->is_set && !vxd_svdag_change_known(&args->view, child->old, uniform,
                                                 child->cube.height, &change);

    __syncwarp();
    vxd_svdag_count_change(counts, &change);
    vxd_svdag_put_pairs(args, &to, expands, &pair, NULL, NULL);
}

/* By all threads of the block: writes the words of an entry, and the entries of its open
 * children from `first_child` on; the child of this thread is number `number` of them. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_expand_top_put(const struct vxd_svdag_kernel_args *args,
                         struct vxd_svdag_expand_top_memory *top, uint32_t entry,
                         const struct vxd_svdag_top_child *child, uint32_t uniform,
                         uint32_t first_child, uint32_t number)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    entry_t *entries = (entry_t *)args->entries;

    entries[entry].words[1 + threadIdx.x % 8] = child->expands  ? first_child + number
                                                : child->is_set ? uniform
                                                                : child->old;
    if (child->expands) {
        const uint64_t place = vxd_svdag_place_of(&child->cube);

        entries[first_child + number].place = place;
        entries[first_child + number].ref = child->old;
        if (number < VXD_SVDAG_FEW_ENTRIES) {
            top->places[number] = place;
            top->refs[number] = child->old;
        }
    }
}

/* By all threads of the block, a barrier after each warp counted its open children: how
 * many there are in the warps before this one; in all warps in *total. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_expand_top_before(
    const struct vxd_svdag_expand_top_memory *top, uint32_t *total)
{
    const uint64_t counts = top->n_expand.of_all; /* a byte each; sums need more */
    const uint64_t bytes = UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t ones = UINT64_C(0x0001000100010001);
    const uint64_t before = counts & ((UINT64_C(1) << (threadIdx.x / 32 * 8)) - 1);

    *total = (uint32_t)(((counts & bytes) + (counts >> 8 & bytes)) * ones >> 48);
    return (uint32_t)(((before & bytes) + (before >> 8 & bytes)) * ones >> 48);
}

/* By all threads of the block: entries from the root on, height by height, as long as
 * those of a height are few and what changed is known at once. Returns where they end. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_top
vxd_svdag_expand_top_levels(const struct vxd_svdag_kernel_args *args,
                            const Editor &editor, struct vxd_svdag_block_counts *counts,
                            struct vxd_svdag_expand_top_memory *top)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    entry_t *entries = (entry_t *)args->entries;
    const uint32_t lane = vxd_svdag_lane();
    const uint32_t i = threadIdx.x / 8;
    struct vxd_svdag_top expanded_top = {0, args->view.depth, 1, 0};

    while (expanded_top.height > vxd_svdag_batch_sizes<Editor>::SUBTREE_HEIGHT &&
           expanded_top.n_entries > 0 &&
           expanded_top.n_entries <= VXD_SVDAG_FEW_ENTRIES &&
           expanded_top.n_expanded + expanded_top.n_entries <= VXD_SVDAG_TOP_ENTRIES &&
           expanded_top.n_pairs == 0) {
        const struct vxd_svdag_top_child child = vxd_svdag_expand_top_visit(
            args, editor, top, expanded_top.n_entries, expanded_top.height);
        const uint32_t expand = __ballot_sync(UINT32_MAX, child.expands);
        const uint32_t set = __ballot_sync(UINT32_MAX, child.is_set);
        const uint32_t first_child = expanded_top.n_expanded + expanded_top.n_entries;
        uint32_t number;
        uint32_t n;
        bool has_set;

        if (lane == 0) {
            top->n_expand.of_warps[threadIdx.x / 32] = (uint8_t)__popc(expand);
        }
        has_set = __syncthreads_or(child.is_set) != 0;
        number = vxd_svdag_expand_top_before(top, &n) +
                 (uint32_t)__popc(expand & ((1u << lane) - 1));
        if (first_child + n > args->entries_capacity) {
            break;
        }
        if (has_set && args->counts_changes) {
            vxd_svdag_expand_top_count(args, counts, &child, editor.uniform,
                                       &top->n_pairs);
        }
        if (i < expanded_top.n_entries) {
            const uint32_t entry = expanded_top.n_expanded + i;

            if (lane % 8 == 0) {
                entries[entry].marks =
                    (expand >> lane & VXD_SVDAG_MARK_ENTRIES) |
                    ((set >> lane & 0xffu) != 0 ? VXD_SVDAG_MARK_CHANGED : 0);
                top->heights[entry] = (uint8_t)expanded_top.height;
            }
            vxd_svdag_expand_top_put<Editor>(args, top, entry, &child, editor.uniform,
                                             first_child, number);
        }
        __syncthreads();
        expanded_top = {first_child, expanded_top.height - 1, n,
                        has_set ? (uint32_t)top->n_pairs : 0};
        if (threadIdx.x == 0) {
            args->state->n_entries[expanded_top.height] = n;
            args->state->n_pairs[expanded_top.height] = expanded_top.n_pairs;
        }
    }
    return expanded_top;
}

/* By all threads of the block: the headers of these entries, from children that are not
 * open. They are read after all entries are found, at once. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_expand_top_headers(const struct vxd_svdag_kernel_args *args,
                             const struct vxd_svdag_expand_top_memory *top,
                             uint32_t n_entries)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const uint32_t octant = threadIdx.x % 8;

#pragma unroll 1
    for (uint32_t i = threadIdx.x / 8; i - threadIdx.x / 8 < n_entries;
         i += blockDim.x / 8) {
        const uint32_t at = i < n_entries ? i : 0;
        entry_t *entry = (entry_t *)args->entries + at;
        const int height = top->heights[at];
        const uint32_t ref = entry->words[1 + octant];
        struct vxd_svdag_occupancy occupancy = {0, 0};
        uint32_t header;

        if ((entry->marks >> octant & 1) == 0) {
            occupancy =
                vxd_svdag_is_node(ref)
                    ? vxd_svdag_occupancy_of_header(vxd_svdag_words(&args->view, ref)[0])
                    : vxd_svdag_occupancy_of_uniform(&args->view, ref, height - 1);
        }
        header = occupancy.flags | occupancy.n_occupied << 10;
        __syncwarp();
#pragma unroll
        for (int step = 1; step < 8; step *= 2) {
            header = vxd_svdag_merge_headers(header,
                                             __shfl_xor_sync(UINT32_MAX, header, step));
        }
        if (i < n_entries && octant == 0) {
            entry->words[0] = vxd_svdag_header_at(header, height);
        }
    }
}

/* By all threads of the first block: expands the top. A small ball has one to eight cubes
 * of each height. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_expand_top(const struct vxd_svdag_kernel_args *args,
                                           const Editor &editor,
                                           struct vxd_svdag_block_counts *counts,
                                           struct vxd_svdag_block_memory<Editor> *block)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    entry_t *root = (entry_t *)args->entries;
    struct vxd_svdag_top expanded_top;

    if (threadIdx.x == 0) {
        root->place = 0;
        root->ref = args->progress->root;
        args->state->n_entries[args->view.depth] = 1;
        block->expand_top.places[0] = 0;
        block->expand_top.refs[0] = root->ref;
        block->expand_top.n_pairs = 0;
    }
    __syncthreads();
    expanded_top = vxd_svdag_expand_top_levels(args, editor, counts, &block->expand_top);
    vxd_svdag_expand_top_headers<Editor>(args, &block->expand_top,
                                         expanded_top.n_expanded);
    if (threadIdx.x == 0) {
        block->expanded_top = expanded_top;
    }
    if (vxd_svdag_is_scheduler()) {
        block->batches.n_visits += expanded_top.n_expanded * 8;
    }
}

#endif
