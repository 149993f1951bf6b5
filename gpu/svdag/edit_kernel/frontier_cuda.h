// SPDX-License-Identifier: Apache-2.0
/* What a pass keeps of open cubes, and what its blocks have in shared memory. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_FRONTIER_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_FRONTIER_CUDA_H

#include <type_traits>

#include "gpu/svdag/store/store_cuda.h"
#include "gpu/svdag/edit_kernel/leaf_memo_cuda.h"

/* What a block takes at once. With an editor that tells all, a lane takes a cube, and as many
 * as there are threads are of the height above the leaves. With others a lane takes a child,
 * and cubes of height 4 are gone down and up; with height 5 fewer fit, whose phases are more,
 * and most warps wait in most of those. */
template <class Editor> struct vxd_svdag_sizes {
    static const int SUBTREE_HEIGHT =
        VXD_SVDAG_LEAF_HEIGHT + (Editor::CLASSIFIES_ALL ? 1 : 2);
    static const int LEVELS = SUBTREE_HEIGHT - VXD_SVDAG_LEAF_HEIGHT;
    static const uint32_t BATCH_ENTRIES =
        Editor::CLASSIFIES_ALL ? VXD_SVDAG_BLOCK_THREADS : 64;
    /* Open cubes in and below those of ROW_HEIGHT, and leaves. */
    static const uint32_t LOCAL_ENTRIES =
        Editor::CLASSIFIES_ALL ? BATCH_ENTRIES : BATCH_ENTRIES * (1 + 8);
    static const uint32_t LOCAL_LEAVES = BATCH_ENTRIES << 3 * LEVELS;
};

enum {
    /* Pairs that a warp has at most: of four that are opened 32 come, of 32 of height 4 the first
     * four are before the others. */
    VXD_SVDAG_WARP_PAIRS = 64
};

/* An open cube, and the node it becomes. */
template <class State> struct vxd_svdag_frontier_entry {
    uint64_t place; /* x | y << 21 | z << 42 */
    State state;    /* the editor's */
    uint32_t ref;   /* what stands there; once it is closed, what it became */
    uint32_t marks;
    /* The header that its node will have, as far as it is told by children that are no rows (its
     * mask left out); then for each child its reference or, by marks, its row. */
    uint32_t words[9];
};

#define VXD_SVDAG_MARK_ENTRIES 0xffu  /* children that are rows, a bit each */
#define VXD_SVDAG_MARK_CHANGED 0x100u /* something below is not what it was */
#define VXD_SVDAG_MARK_NODE                                                              \
    0x200u                        /* a node is to be found for it, whose words are made */
#define VXD_SVDAG_MARK_NEW 0x400u /* the node that it became was not there before */
#define VXD_SVDAG_MARK_STORED 0x800u /* its words are, but it is not yet in the index */
/* Of those that are rows: the word is the child (row * 8 + octant) whose row it is, for a
 * moment. */
#define VXD_SVDAG_MARK_DUPLICATES 16
#define VXD_SVDAG_MARK_SUBTREE                                                           \
    24 /* of a block's own: which cube of the batch it is below */

#define VXD_SVDAG_NO_CHILD UINT32_MAX

/* A bit of a leaf that is listed: its cube's editor told of it. */
#define VXD_SVDAG_LEAF_CLASSIFIED 0x8000u

/* Pairs of a warp, the last ones next. */
struct vxd_svdag_pair_list {
    uint64_t pairs[VXD_SVDAG_WARP_PAIRS];   /* from << 32 | to */
    uint64_t weights[VXD_SVDAG_WARP_PAIRS]; /* << 5 | the height */
};

/* Rows that the first block found alone, of one height. */
struct vxd_svdag_level_counts {
    uint64_t n_entries;
    uint64_t n_pairs;
};

/* What a block has to do in a stage, numbered: cubes, then pairs from the first number on that a
 * batch may begin at. */
struct vxd_svdag_batches {
    uint32_t batch_size; /* of a batch */
    uint32_t pairs;      /* the first of pairs, */
    uint32_t pairs_each; /* and how many it is */
    uint32_t n;
    uint32_t stride;
    uint32_t next[2];      /* the first of a batch, in turn; VXD_SVDAG_NO_BATCH */
    uint32_t next_entries; /* rows of the next height */
    uint32_t next_pairs;
    uint32_t n_visits; /* cubes the block looked at, not yet among the pass's */
    uint32_t is_bad;   /* a stage before this one had a fault */
    struct vxd_svdag_level_counts level_counts[2]; /* of even and odd heights */
    /* As the grid has them after a stage: */
    struct vxd_svdag_handover handover;
    uint32_t n_reduced[VXD_SVDAG_N_HEIGHTS]; /* cubes of each height */
    uint32_t fault;
    uint64_t n_visits_of_all;
};

#define VXD_SVDAG_NO_BATCH UINT32_MAX

/* A warp's, of one or the other at a time. */
union vxd_svdag_lists {
    struct vxd_svdag_pair_list pairs;
    uint16_t leaves[32 * 8]; /* below its rows, whose masks are found next */
};

/* Rows that a pass begins with (path_cuda.h, fan_cuda.h), and the height below them with its rows. */
struct vxd_svdag_path {
    uint32_t n_expanded;
    int height;
    uint32_t n_entries;
    uint32_t n_pairs;
};

/* Rows of a height up to which the first block goes on alone. */
#define VXD_SVDAG_FEW_ENTRIES (VXD_SVDAG_BLOCK_THREADS / 8)

#define VXD_SVDAG_TOP_ENTRIES VXD_SVDAG_BLOCK_THREADS

/* While a fan is found: cubes of one height, open children of each warp's; the height of each row. */
struct vxd_svdag_expand_top {
    uint64_t places[VXD_SVDAG_FEW_ENTRIES];
    uint32_t refs[VXD_SVDAG_FEW_ENTRIES];
    union {
        uint8_t of_warps[VXD_SVDAG_BLOCK_THREADS / 32];
        uint64_t of_all;
    } n_expand;
    uint64_t n_pairs; /* of the height below the last one */
    uint8_t heights[VXD_SVDAG_TOP_ENTRIES];
};

/* While the first block climbs: what the rows of a height became, and of the next one's the nodes. */
struct vxd_svdag_reduce_top {
    uint64_t hashes[VXD_SVDAG_FEW_ENTRIES];
    uint32_t words[VXD_SVDAG_FEW_ENTRIES]
                  [10];                      /* nine, whose next one is aligned to two */
    uint32_t n_words[VXD_SVDAG_FEW_ENTRIES]; /* of those to be stored; else 0 */
    uint32_t refs[VXD_SVDAG_FEW_ENTRIES];
    uint32_t headers[VXD_SVDAG_FEW_ENTRIES];
    uint32_t marks[VXD_SVDAG_FEW_ENTRIES];
    uint64_t next;         /* the first word that is free */
    uint64_t n_items_left; /* that the index has room for */
    uint32_t n_taken;      /* words and items (climb_cuda.h) */
    uint32_t n_new_words;
    uint32_t has_failed;
};

/* A block's. Of a batch of rows of the pass the first rows have their telling, or their words. */
template <class Editor> struct vxd_svdag_block_shared {
    struct vxd_svdag_frontier_entry<typename Editor::state> entries[vxd_svdag_sizes<
        Editor>::LOCAL_ENTRIES]; /* by the place that vxd_svdag_local_begin says */
    union vxd_svdag_lists lists[VXD_SVDAG_BLOCK_THREADS / 32];
    struct vxd_svdag_pool pools[VXD_SVDAG_BLOCK_THREADS / 32];
    std::conditional_t<Editor::CLASSIFIES_ALL, struct vxd_svdag_leaf_memo,
                       struct vxd_svdag_no_memo>
        memo;
    uint64_t weights[vxd_svdag_sizes<Editor>::BATCH_ENTRIES];
    struct vxd_svdag_batches batches;
    uint32_t n_local[vxd_svdag_sizes<Editor>::LEVELS]; /* from the batch's height down */
    struct vxd_svdag_path path;                        /* the first block's */
    uint32_t n_leaves;
    union {
        uint16_t leaves
            [vxd_svdag_sizes<Editor>::LOCAL_LEAVES]; /* to be edited: row * 8 + octant */
        struct vxd_svdag_expand_top expand_top;      /* before there are any */
        struct vxd_svdag_reduce_top reduce_top;      /* after the last ones */
    };
};

/* Counts of a block. */
struct vxd_svdag_block_counts {
    struct vxd_svdag_change change;
    uint64_t n_new_words;
    uint32_t n_lookups[VXD_SVDAG_N_HEIGHTS]; /* by height, 0 of blocks */
    uint32_t n_new[VXD_SVDAG_N_HEIGHTS];
    uint32_t has_failed; /* the store had no room for something of this block */
    uint32_t padding;
    uint64_t cycles[VXD_SVDAG_N_STAGES]; /* that it took for the stages */
};

/* The thread of a block that knows what is next: of the last warp, which has least to do. */
VXD_SVDAG_DEVICE bool vxd_svdag_is_scheduler(void)
{
    return threadIdx.x == blockDim.x - 32;
}

/* Where a block's rows of a height begin: those of the batch, then what is below. */
template <class Editor> VXD_SVDAG_DEVICE uint32_t vxd_svdag_local_begin(int height)
{
    return height == vxd_svdag_sizes<Editor>::SUBTREE_HEIGHT
               ? 0
               : vxd_svdag_sizes<Editor>::BATCH_ENTRIES;
}

VXD_SVDAG_DEVICE uint64_t vxd_svdag_place_of(const struct vxd_svdag_cube *cube)
{
    return (uint64_t)cube->x | (uint64_t)cube->y << 21 | (uint64_t)cube->z << 42;
}

VXD_SVDAG_DEVICE struct vxd_svdag_cube vxd_svdag_cube_at(uint64_t place, int height)
{
    struct vxd_svdag_cube cube;

    cube.x = (uint32_t)(place & 0x1fffffu);
    cube.y = (uint32_t)(place >> 21 & 0x1fffffu);
    cube.z = (uint32_t)(place >> 42);
    cube.height = height;
    return cube;
}

/* Counts ---------------------------------------------------------------------------------- */

VXD_SVDAG_DEVICE void vxd_svdag_add_shared(uint64_t *at, uint64_t n)
{
    if (n > 0) {
        (void)vxd_svdag_atomic_add(at, n);
    }
}

/* One of the four counts of a change. */
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

/* By all lanes of a warp: adds what each counted to the block's. A lane adds each of the four
 * sums. */
VXD_SVDAG_DEVICE void vxd_svdag_count_change(struct vxd_svdag_block_counts *block_counts,
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
        vxd_svdag_add_shared(vxd_svdag_change_at(&block_counts->change, vxd_svdag_lane()),
                             vxd_svdag_change_nth(&sum, vxd_svdag_lane()));
    }
    __syncwarp();
}

/* By all lanes of a warp: counts items that were looked for and stored. */
VXD_SVDAG_DEVICE void
vxd_svdag_count_items_of(struct vxd_svdag_block_counts *block_counts, int number,
                         int n_words, bool is_new)
{
    const uint32_t looked_up = __ballot_sync(UINT32_MAX, n_words > 0);
    const uint32_t stored = __ballot_sync(UINT32_MAX, is_new);
    uint32_t n_words_new = 0;

    if (stored != 0) {
        n_words_new = __reduce_add_sync(UINT32_MAX, is_new ? (uint32_t)n_words : 0);
    }
    if (vxd_svdag_lane() == 0) {
        (void)atomicAdd(&block_counts->n_lookups[number], (uint32_t)__popc(looked_up));
        if (stored != 0) {
            (void)atomicAdd(&block_counts->n_new[number], (uint32_t)__popc(stored));
            (void)vxd_svdag_atomic_add(&block_counts->n_new_words, n_words_new);
        }
    }
    __syncwarp();
}

/* By all threads of a block, before they count. */
VXD_SVDAG_DEVICE void
vxd_svdag_block_counts_clear(struct vxd_svdag_block_counts *block_counts)
{
    for (uint32_t i = threadIdx.x; i < VXD_SVDAG_N_HEIGHTS; i += blockDim.x) {
        block_counts->n_lookups[i] = 0;
        block_counts->n_new[i] = 0;
    }
    if (threadIdx.x == 0) {
        block_counts->change = {0, 0, 0, 0};
        block_counts->n_new_words = 0;
        block_counts->has_failed = 0;
        for (int i = 0; i < VXD_SVDAG_N_STAGES; i++) {
            block_counts->cycles[i] = 0;
        }
    }
    __syncthreads();
}

/* By all threads of a block, once it counts no more: adds to the edit's and the store's counts.
 * Those of an edit with a fault are not looked at. */
VXD_SVDAG_DEVICE void
vxd_svdag_block_counts_add(const struct vxd_svdag_kernel_args *args,
                           const struct vxd_svdag_block_counts *block_counts,
                           bool counts_changes)
{
    struct vxd_svdag_progress *progress = args->progress;

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < VXD_SVDAG_N_HEIGHTS; i += blockDim.x) {
        const int kind = i == 0                       ? VXD_SVDAG_BLOCK
                         : i == VXD_SVDAG_LEAF_HEIGHT ? VXD_SVDAG_LEAF
                                                      : VXD_SVDAG_INNER;

        vxd_svdag_add_shared(&progress->n_lookups[i], block_counts->n_lookups[i]);
        vxd_svdag_add_shared(&progress->n_new[i], block_counts->n_new[i]);
        vxd_svdag_add_shared(&args->store->n_items[kind], block_counts->n_new[i]);
    }
    if (threadIdx.x == 0) {
        vxd_svdag_add_shared(&args->store->n_words, block_counts->n_new_words);
    } else if (threadIdx.x <= 4 && counts_changes) {
        vxd_svdag_add_shared(
            vxd_svdag_change_at(&progress->change, threadIdx.x - 1),
            vxd_svdag_change_nth(&block_counts->change, threadIdx.x - 1));
    }
}

#endif
