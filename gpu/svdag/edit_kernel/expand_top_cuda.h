// SPDX-License-Identifier: Apache-2.0
/* The fan of a pass whose editor tells of all parts of every cube (Editor::CLASSIFIES_ALL): the cubes
 * from the root down as long as those of a height are few, and what changed in those that are set
 * as a whole is known at once. A ball that is small has one to eight of each height. The first
 * block finds them height by height, a thread for a child; headers that stay are read once all are
 * found, at once. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_TOP_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_TOP_CUDA_H

#include "gpu/svdag/edit_kernel/batch_cuda.h"
#include "gpu/svdag/edit_kernel/stage_cuda.h"

/* What becomes of the child that a thread has, one of eight of its cube; by all lanes of a warp. */
struct vxd_svdag_expand_top_child {
    struct vxd_svdag_cube cube;
    uint32_t old;
    bool expands;
    bool is_set;
};

/* A word of the node that each eight lanes look at, and its header: a word that may be the lane's
 * child does not wait for the header that tells which is. */
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

template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_expand_top_child vxd_svdag_expand_top_classify(
    const struct vxd_svdag_kernel_args *args, const Editor &editor,
    const struct vxd_svdag_expand_top *expand_top, uint32_t n, int height)
{
    const uint32_t i = threadIdx.x / 8;
    const uint32_t octant = threadIdx.x % 8;
    const uint32_t at = i < n ? i : 0;
    const struct vxd_svdag_cube cube = vxd_svdag_cube_at(expand_top->places[at], height);
    const uint32_t ref = expand_top->refs[at];
    const bool is_split = vxd_svdag_reads_split(&args->view);
    struct vxd_svdag_expand_top_child child = {vxd_svdag_cube_child(&cube, (int)octant),
                                               ref, false, false};
    uint32_t header = 0;
    uint32_t word = VXD_SVDAG_EMPTY;
    enum vxd_svdag_relation relation;

    if (vxd_svdag_is_node(ref) && is_split) {
        child.old = vxd_svdag_child_ref(&args->view, ref, (int)octant);
    } else if (vxd_svdag_is_node(ref)) {
        vxd_svdag_expand_top_load(&args->view, ref, &header, &word);
    }
    __syncwarp();
    /* It is told while that is loaded. */
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

/* By all lanes of a warp: counts what changes in children that are set; those of which it is not
 * known at once become pairs of the height below, counted in *n_pairs. */
VXD_SVDAG_DEVICE void vxd_svdag_expand_top_count(
    const struct vxd_svdag_kernel_args *args, struct vxd_svdag_block_counts *block_counts,
    const struct vxd_svdag_expand_top_child *child, uint32_t uniform, uint64_t *n_pairs)
{
    const struct vxd_svdag_pairs_to to = {n_pairs, 0};
    const struct vxd_svdag_pair pair = {child->is_set, child->cube.height, child->old,
                                        uniform, 1};
    struct vxd_svdag_change change = {0, 0, 0, 0};
    const bool expands =
        child->is_set && !vxd_svdag_change_known(&args->view, child->old, uniform,
                                                 child->cube.height, &change);

    __syncwarp();
    vxd_svdag_count_change(block_counts, &change);
    vxd_svdag_put_pairs(args, &to, expands, &pair, NULL, NULL);
}

/* By all threads of the block: a height's row, and those of its open children from `below` on, of
 * which this thread's is the one of that number. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_expand_top_put(const struct vxd_svdag_kernel_args *args,
                         struct vxd_svdag_expand_top *expand_top, uint32_t entry,
                         const struct vxd_svdag_expand_top_child *child, uint32_t uniform,
                         uint32_t first_child, uint32_t number)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    entry_t *entries = (entry_t *)args->entries;

    entries[entry].words[1 + threadIdx.x % 8] = child->expands  ? first_child + number
                                                : child->is_set ? uniform
                                                                : child->old;
    if (child->expands) {
        const uint64_t place = vxd_svdag_place_of(&child->cube);

        entries[first_child + number].place = place;
        entries[first_child + number].ref = child->old;
        if (number < VXD_SVDAG_FEW_ENTRIES) {
            expand_top->places[number] = place;
            expand_top->refs[number] = child->old;
        }
    }
}

/* By all threads of the block, a barrier after what each warp counted: how many there are in warps
 * before this one; of all in *total. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_expand_top_before(
    const struct vxd_svdag_expand_top *expand_top, uint32_t *total)
{
    const uint64_t counts = expand_top->n_expand.of_all; /* a byte each; sums need more */
    const uint64_t bytes = UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t ones = UINT64_C(0x0001000100010001);
    const uint64_t before = counts & ((UINT64_C(1) << (threadIdx.x / 32 * 8)) - 1);

    *total = (uint32_t)(((counts & bytes) + (counts >> 8 & bytes)) * ones >> 48);
    return (uint32_t)(((before & bytes) + (before >> 8 & bytes)) * ones >> 48);
}

/* By all threads of the block: rows of the pass from the root's on; where they end. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_path vxd_svdag_expand_top_heights(
    const struct vxd_svdag_kernel_args *args, const Editor &editor,
    struct vxd_svdag_block_counts *block_counts, struct vxd_svdag_expand_top *expand_top)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    entry_t *entries = (entry_t *)args->entries;
    const uint32_t lane = vxd_svdag_lane();
    const uint32_t i = threadIdx.x / 8;
    struct vxd_svdag_path path = {0, args->view.depth, 1, 0};

    while (path.height > vxd_svdag_sizes<Editor>::SUBTREE_HEIGHT && path.n_entries > 0 &&
           path.n_entries <= VXD_SVDAG_FEW_ENTRIES &&
           path.n_expanded + path.n_entries <= VXD_SVDAG_TOP_ENTRIES &&
           path.n_pairs == 0) {
        const struct vxd_svdag_expand_top_child child = vxd_svdag_expand_top_classify(
            args, editor, expand_top, path.n_entries, path.height);
        const uint32_t expand = __ballot_sync(UINT32_MAX, child.expands);
        const uint32_t set = __ballot_sync(UINT32_MAX, child.is_set);
        const uint32_t first_child = path.n_expanded + path.n_entries;
        uint32_t number;
        uint32_t n;
        bool has_set;

        if (lane == 0) {
            expand_top->n_expand.of_warps[threadIdx.x / 32] = (uint8_t)__popc(expand);
        }
        has_set = __syncthreads_or(child.is_set) != 0;
        number = vxd_svdag_expand_top_before(expand_top, &n) +
                 (uint32_t)__popc(expand & ((1u << lane) - 1));
        if (first_child + n > args->entries_capacity) {
            break;
        }
        if (has_set && args->counts_changes) {
            vxd_svdag_expand_top_count(args, block_counts, &child, editor.uniform,
                                       &expand_top->n_pairs);
        }
        if (i < path.n_entries) {
            const uint32_t entry = path.n_expanded + i;

            if (lane % 8 == 0) {
                entries[entry].marks =
                    (expand >> lane & VXD_SVDAG_MARK_ENTRIES) |
                    ((set >> lane & 0xffu) != 0 ? VXD_SVDAG_MARK_CHANGED : 0);
                expand_top->heights[entry] = (uint8_t)path.height;
            }
            vxd_svdag_expand_top_put<Editor>(args, expand_top, entry, &child,
                                             editor.uniform, first_child, number);
        }
        __syncthreads();
        path = {first_child, path.height - 1, n,
                has_set ? (uint32_t)expand_top->n_pairs : 0};
        if (threadIdx.x == 0) {
            args->state->n_entries[path.height] = n;
            args->state->n_pairs[path.height] = path.n_pairs;
        }
    }
    return path;
}

/* By all threads of the block: headers of rows of the fan, of children that are not open. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_expand_top_headers(const struct vxd_svdag_kernel_args *args,
                             const struct vxd_svdag_expand_top *expand_top,
                             uint32_t n_expanded)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    const uint32_t octant = threadIdx.x % 8;

#pragma unroll 1
    for (uint32_t i = threadIdx.x / 8; i - threadIdx.x / 8 < n_expanded;
         i += blockDim.x / 8) {
        const uint32_t at = i < n_expanded ? i : 0;
        entry_t *entry = (entry_t *)args->entries + at;
        const int height = expand_top->heights[at];
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
        if (i < n_expanded && octant == 0) {
            entry->words[0] = vxd_svdag_header_at(header, height);
        }
    }
}

/* By all threads of the first block: the fan's rows, opened, and those of the height below it,
 * with its pairs. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_put_top(const struct vxd_svdag_kernel_args *args,
                                        const Editor &editor,
                                        struct vxd_svdag_block_counts *block_counts,
                                        struct vxd_svdag_block_shared<Editor> *shared)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    entry_t *root = (entry_t *)args->entries;
    struct vxd_svdag_path path;

    if (threadIdx.x == 0) {
        root->place = 0;
        root->ref = args->progress->root;
        args->state->n_entries[args->view.depth] = 1;
        shared->expand_top.places[0] = 0;
        shared->expand_top.refs[0] = root->ref;
        shared->expand_top.n_pairs = 0;
    }
    __syncthreads();
    path = vxd_svdag_expand_top_heights(args, editor, block_counts, &shared->expand_top);
    vxd_svdag_expand_top_headers<Editor>(args, &shared->expand_top, path.n_expanded);
    if (threadIdx.x == 0) {
        shared->path = path;
    }
    if (vxd_svdag_is_scheduler()) {
        shared->batches.n_visits += path.n_expanded * 8;
    }
}

#endif
