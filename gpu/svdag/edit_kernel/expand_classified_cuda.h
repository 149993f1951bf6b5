// SPDX-License-Identifier: Apache-2.0
/* The way down where an editor tells of all parts of every cube (Editor::CLASSIFIES_ALL: a ball
 * does): a lane takes a cube, not a child of one. Of the lowest rows a warp finds the masks of
 * the leaves below at once, so that leaves that are edited alike are one (leaf_table_cuda.h).
 * No cube stands for another then. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_CLASSIFIED_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_CLASSIFIED_CUDA_H

#include "gpu/svdag/edit_kernel/expand_cuda.h"

/* A lane's cube, and what becomes of its children; a bit each. */
struct vxd_svdag_classified {
    struct vxd_svdag_cube cube;
    struct vxd_svdag_classes classes;
    uint32_t olds[8];
    uint32_t heads[8]; /* of those that are nodes and stay */
    uint32_t expand;
    uint32_t changed; /* of those that are not open */
};

/* Children ---------------------------------------------------------------------------------- */

/* What stands there and what becomes of it. Loads do not wait for each other. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_classify_entry(
    const struct vxd_svdag_kernel_args *args, const Editor &editor, int height,
    const struct vxd_svdag_frontier_entry<typename Editor::state> *entry,
    struct vxd_svdag_classified *at)
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

/* The header of the cube's node, as far as children tell that are not open; their references, and
 * of open ones what stands there, go to the row. */
template <class State>
VXD_SVDAG_DEVICE uint32_t vxd_svdag_classified_header(
    const struct vxd_svdag_kernel_args *args, const struct vxd_svdag_classified *at,
    struct vxd_svdag_frontier_entry<State> *entry)
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

/* By all lanes of a warp: the sum of n of the lanes before this one; of all in *total. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_sum_before(uint32_t n, uint32_t *total)
{
    uint32_t sum = n;

#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const uint32_t before = __shfl_up_sync(UINT32_MAX, sum, step);

        sum += vxd_svdag_lane() >= (uint32_t)step ? before : 0;
    }
    *total = __shfl_sync(UINT32_MAX, sum, 31);
    return sum - n;
}

/* By all lanes of a warp: adds what changed in children that are not open, of lanes that have a
 * cube. Where one thing stood in all of a cube, it is the same in each of them; of others a lane
 * takes one, whoever has its cube, as most cubes have several or none. */
VXD_SVDAG_DEVICE void vxd_svdag_count_classified(const struct vxd_svdag_kernel_args *args,
                                                 const struct vxd_svdag_pairs_to *to,
                                                 const struct vxd_svdag_classified *at,
                                                 uint32_t ref,
                                                 union vxd_svdag_lists *lists,
                                                 struct vxd_svdag_change *sum)
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
        /* Leaves, or rows of the pass: nothing is put into the warp's list. */
        vxd_svdag_count_pairs(args, to, &pair, NULL, 0, sum);
    }
}

/* Rows -------------------------------------------------------------------------------------- */

/* By all lanes of a warp: open children of a cube, of lanes that have one, become rows of the pass.
 * Where there are none left a fault is raised. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_put_expanded(const struct vxd_svdag_kernel_args *args,
                       struct vxd_svdag_block_shared<Editor> *shared,
                       const struct vxd_svdag_phase *phase,
                       const struct vxd_svdag_classified *at,
                       struct vxd_svdag_frontier_entry<typename Editor::state> *entry)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const uint32_t expand = at->expand;
    uint32_t total;
    const uint32_t before = vxd_svdag_sum_before((uint32_t)__popc(expand), &total);
    unsigned long long begin = 0;
    uint64_t child;

    if (total > 0 && vxd_svdag_lane() == 0) {
        begin =
            vxd_svdag_atomic_add(vxd_svdag_next_n_entries(args, shared, phase), total);
    }
    child = shared->batches.next_entries + __shfl_sync(UINT32_MAX, begin, 0) + before;
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

/* By all lanes of a warp: leaves of its list take slots; those that are the first of one, or have
 * none, are to be edited. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_take_slots(const Editor &editor,
                                           struct vxd_svdag_block_shared<Editor> *shared,
                                           const uint16_t *leaves, uint32_t n)
{
    const uint32_t octant_bits = 3;

#pragma unroll 1
    for (uint32_t i = vxd_svdag_lane(); i - vxd_svdag_lane() < n; i += 32) {
        const uint32_t number = i < n ? leaves[i] : 0;
        const uint32_t octant = number & ((1u << octant_bits) - 1);
        struct vxd_svdag_frontier_entry<typename Editor::state> *entry =
            &shared->entries[number >> octant_bits];
        uint32_t slot = VXD_SVDAG_NO_SLOT;
        bool is_first = false;
        uint32_t firsts;
        uint32_t place;

        if (i < n) {
            const struct vxd_svdag_cube cube =
                vxd_svdag_cube_at(entry->place, VXD_SVDAG_LEAF_HEIGHT + 1);
            const struct vxd_svdag_cube leaf = vxd_svdag_cube_child(&cube, (int)octant);

            slot = vxd_svdag_leaf_memo_take(&shared->memo, editor.mask(&leaf),
                                            entry->words[1 + octant], &is_first);
        }
        __syncwarp();
        if (slot != VXD_SVDAG_NO_SLOT) {
            entry->words[1 + octant] = slot;
            (void)atomicOr(&entry->marks, 1u << octant);
        }
        firsts = __ballot_sync(UINT32_MAX, is_first);
        place = vxd_svdag_take_places(&shared->n_leaves,
                                      i < n && (is_first || slot == VXD_SVDAG_NO_SLOT));
        if (i < n && (is_first || slot == VXD_SVDAG_NO_SLOT)) {
            shared->leaves[place] = (uint16_t)number;
        }
        if (vxd_svdag_lane() == 0 && firsts != 0) {
            (void)atomicAdd(&shared->memo.n_taken, (uint32_t)__popc(firsts));
        }
        __syncwarp();
    }
}

/* By all lanes of a warp: opens the rows of a phase from `first` on, one a lane: of the pass, whose
 * children become rows, or the block's own, whose leaves take slots. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_expand_classified(
    const struct vxd_svdag_kernel_args *args, const Editor &editor,
    struct vxd_svdag_block_shared<Editor> *shared, const struct vxd_svdag_phase *phase,
    uint32_t first, struct vxd_svdag_change *sum)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const uint32_t i = first + vxd_svdag_lane();
    const bool is_there = i < phase->n;
    union vxd_svdag_lists *lists = &shared->lists[threadIdx.x / 32];
    entry_t *entry =
        vxd_svdag_entry_at(args, shared, phase, phase->begin + (is_there ? i : 0));
    const struct vxd_svdag_pairs_to to = {
        phase->is_local ? NULL : vxd_svdag_next_n_pairs(args, shared, phase),
        shared->batches.next_pairs};
    struct vxd_svdag_classified at;

    at.cube.height = phase->height;
    at.classes = {0, 0, VXD_SVDAG_EMPTY};
    at.expand = 0;
    at.changed = 0;
    if (is_there) {
        vxd_svdag_classify_entry(args, editor, phase->height, entry, &at);
        entry->words[0] = vxd_svdag_classified_header(args, &at, entry);
        entry->marks = (phase->is_local ? 0 : at.expand) |
                       (at.changed != 0 ? VXD_SVDAG_MARK_CHANGED : 0);
    }
    __syncwarp();
    if (!phase->is_local) {
        vxd_svdag_put_expanded(args, shared, phase, &at, entry);
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
        vxd_svdag_take_slots(editor, shared, lists->leaves, n_leaves);
    }
}

#endif
