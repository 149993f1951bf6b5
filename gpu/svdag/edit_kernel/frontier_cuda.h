// SPDX-License-Identifier: Apache-2.0
/* The frontier of an edit, and what a block keeps in shared memory.
 *
 * An edit goes down the tree height by height. A cube that the editor neither keeps nor
 * sets as a whole is open: it expands, as an entry of the frontier, an array in device
 * memory that begins with the root and has the heights one after the other. A block
 * copies the entries of small subtrees into its shared memory and finishes them there.
 *
 * Threads: one lane has an entry, or one of an entry's eight children.
 * Bytes: an entry is 60 bytes and the editor's state of the cube; it is written once on
 * the way down, and read and written once on the way up. Of a subtree the entry of its
 * root alone moves.
 * Source: SVDAG editing, section 4.3. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_FRONTIER_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_FRONTIER_CUDA_H

#include <type_traits>

#include "gpu/svdag/store/store_cuda.h"

/* Entries --------------------------------------------------------------------------------- */

/* How many entries a block takes at once. Where an editor classifies the children of
 * every cube, a lane takes a cube, and a batch has as many cubes of the height above the
 * leaves as the block has threads. Elsewhere a lane takes a child, and subtrees of two
 * heights are finished by one block: of three heights fewer would fit, in more phases, in
 * most of which most warps would wait. */
template <class Editor> struct vxd_svdag_batch_sizes {
    static const int SUBTREE_HEIGHT =
        VXD_SVDAG_LEAF_HEIGHT + (Editor::CLASSIFIES_ALL ? 1 : 2);
    static const int LEVELS = SUBTREE_HEIGHT - VXD_SVDAG_LEAF_HEIGHT;
    static const uint32_t BATCH_ENTRIES =
        Editor::CLASSIFIES_ALL ? VXD_SVDAG_BLOCK_THREADS : 64;
    /* Open cubes of SUBTREE_HEIGHT and below, and leaves. */
    static const uint32_t LOCAL_ENTRIES =
        Editor::CLASSIFIES_ALL ? BATCH_ENTRIES : BATCH_ENTRIES * (1 + 8);
    static const uint32_t LOCAL_LEAVES = BATCH_ENTRIES << 3 * LEVELS;
};

/* An open cube, and the node that it becomes. */
template <class State> struct vxd_svdag_entry {
    uint64_t place; /* x | y << 21 | z << 42 */
    State state;    /* the editor's, of this cube */
    uint32_t ref;   /* what stands there; after the reduction, what it became */
    uint32_t marks; /* VXD_SVDAG_MARK_... */
    /* First the header of the node, as far as children decide it that are no entries;
     * its mask of children is left out. Then a word for each child: its reference, or
     * the number of its entry where a mark says that it has one. */
    uint32_t words[9];
};

#define VXD_SVDAG_MARK_ENTRIES 0xffu  /* a bit for each child that is an entry */
#define VXD_SVDAG_MARK_CHANGED 0x100u /* something in the cube is not what it was */
#define VXD_SVDAG_MARK_NODE 0x200u /* its node's words are made, and are to be stored */
#define VXD_SVDAG_MARK_NEW 0x400u  /* the store did not have its node before */
#define VXD_SVDAG_MARK_STORED                                                            \
    0x800u /* its node has an address, but is not in the index */
/* From this bit on: children that are duplicates. Until the stage of deduplication is
 * over, the word of such a child is the child (entry * 8 + octant) that it duplicates. */
#define VXD_SVDAG_MARK_DUPLICATES 16
/* From this bit on, of an entry in shared memory: the number of its subtree in the
 * batch. */
#define VXD_SVDAG_MARK_SUBTREE 24

#define VXD_SVDAG_NO_CHILD UINT32_MAX

/* A child of an open cube, and what becomes of it. */
template <class State> struct vxd_svdag_visited {
    struct vxd_svdag_cube cube;
    State state;
    uint32_t parent; /* the number of its entry */
    uint32_t octant;
    uint32_t top;  /* of a parent in shared memory: the number of its subtree */
    uint32_t old;  /* what stands there */
    uint32_t ref;  /* what it becomes, where it is not open */
    uint32_t slot; /* of a leaf: its slot of the memo, or VXD_SVDAG_NO_MEMO_SLOT */
    bool is_there;
    bool expands;
    bool is_classified; /* together with the other children of its parent */
};

/* A leaf that was edited, or a node: what is to be found or inserted. */
struct vxd_svdag_new_item {
    uint32_t words[VXD_SVDAG_MAX_ITEM_WORDS];
    uint64_t set;  /* of a leaf: its voxels that are set */
    int n_words;   /* 0: nothing is to be stored */
    bool is_block; /* the words are those of the leaf's materials; its own come next */
    uint32_t ref;  /* where nothing is to be stored */
    bool is_new;   /* the last item that was stored */
};

/* The position of a cube in one word, and the cube at such a position. */
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

/* Shared memory --------------------------------------------------------------------------- */

/* Pairs that a warp lists at most: 32 come from four pairs that are expanded, and of 32
 * pairs of one height the first four are expanded before the others. */
#define VXD_SVDAG_WARP_PAIRS 64

/* Pairs of references that a warp has to compare; the last ones come next. */
struct vxd_svdag_pair_list {
    uint64_t pairs[VXD_SVDAG_WARP_PAIRS];   /* from << 32 | to */
    uint64_t weights[VXD_SVDAG_WARP_PAIRS]; /* << 5 | the height */
};

/* A warp's: it needs only one of them at a time. */
union vxd_svdag_warp_lists {
    struct vxd_svdag_pair_list pairs;
    uint16_t leaves[32 * 8]; /* of its entries, before they have slots of the memo */
};

/* A bit of a leaf in a list: it was classified together with the other children. */
#define VXD_SVDAG_LEAF_CLASSIFIED 0x8000u

enum {
    VXD_SVDAG_LEAF_MEMO_HALF =
        512, /* slots; the first half is for leaves that were empty */
    VXD_SVDAG_LEAF_MEMO_PROBES = 8,      /* after which a leaf has no slot */
    VXD_SVDAG_LEAF_MEMO_MOST_TAKEN = 384 /* slots, when a batch begins */
};

#define VXD_SVDAG_NO_MEMO_SLOT UINT32_MAX

/* What edits of leaves gave, by the mask of voxels that was edited (dedup_cuda.h). */
struct vxd_svdag_leaf_memo {
    uint64_t masks[2 * VXD_SVDAG_LEAF_MEMO_HALF]; /* 0: the slot is free */
    uint32_t refs[2 * VXD_SVDAG_LEAF_MEMO_HALF];
    uint32_t
        headers[2 * VXD_SVDAG_LEAF_MEMO_HALF]; /* what the parent's header has of it */
    uint32_t counts[2 * VXD_SVDAG_LEAF_MEMO_HALF]; /* of a change, a byte each */
    uint32_t old; /* what leaves of the second half were before; EMPTY: not yet decided */
    uint32_t n_taken; /* slots */
};

/* Takes the place of the memo for editors that have none. */
struct vxd_svdag_no_leaf_memo {
    char none;
};

/* How many cubes and pairs a height has. */
struct vxd_svdag_level_counts {
    uint64_t n_entries;
    uint64_t n_pairs;
};

/* What a block has to do in a stage. Work is numbered: first cubes, then pairs, which
 * begin at a number that is a multiple of the batch's size. */
struct vxd_svdag_batches {
    uint32_t batch_size; /* numbers of a batch */
    uint32_t pairs;      /* the first number of pairs, */
    uint32_t pairs_each; /* and how many pairs a number is */
    uint32_t n;          /* numbers in all */
    uint32_t stride;
    uint32_t next[2]; /* the first number of a batch, in turn; or VXD_SVDAG_NO_BATCH */
    uint32_t next_entries; /* where the entries of the next height begin, */
    uint32_t next_pairs;   /* and its pairs */
    uint32_t n_visits;     /* cubes that were looked at, not yet added to the edit's */
    uint32_t is_bad;       /* a stage before this one had a fault */
    struct vxd_svdag_level_counts
        level_counts[2]; /* of even and odd heights; the first block's */
    /* What the grid found, as it was fetched after a stage: */
    struct vxd_svdag_handover handover;
    uint32_t n_cubes_at[VXD_SVDAG_N_HEIGHTS]; /* entries of each height */
    uint32_t fault;
    uint64_t n_visits_of_all;
};

#define VXD_SVDAG_NO_BATCH UINT32_MAX

/* Entries that the first block begins with (expand_cuda.h), and the height below them. */
struct vxd_svdag_top {
    uint32_t n_expanded;
    int height;
    uint32_t n_entries;
    uint32_t n_pairs;
};

/* Entries of a height, up to which the first block goes on alone. */
#define VXD_SVDAG_FEW_ENTRIES (VXD_SVDAG_BLOCK_THREADS / 8)

/* Entries that the first block expands at once, at most. */
#define VXD_SVDAG_TOP_ENTRIES VXD_SVDAG_BLOCK_THREADS

/* While the first block expands the top: the cubes of one height, how many open children
 * each warp found, and the height of each entry. */
struct vxd_svdag_expand_top_memory {
    uint64_t places[VXD_SVDAG_FEW_ENTRIES];
    uint32_t refs[VXD_SVDAG_FEW_ENTRIES];
    union {
        uint8_t of_warps[VXD_SVDAG_BLOCK_THREADS / 32];
        uint64_t of_all;
    } n_expand;
    uint64_t n_pairs; /* of the height below the last one */
    uint8_t heights[VXD_SVDAG_TOP_ENTRIES];
};

/* While the first block reduces the top: what the entries of a height became, and the
 * nodes of the height above. */
struct vxd_svdag_reduce_top_memory {
    uint64_t hashes[VXD_SVDAG_FEW_ENTRIES];
    uint32_t words[VXD_SVDAG_FEW_ENTRIES]
                  [10]; /* nine; the tenth keeps them aligned to two */
    uint32_t n_words[VXD_SVDAG_FEW_ENTRIES]; /* of nodes that are to be stored; else 0 */
    uint32_t refs[VXD_SVDAG_FEW_ENTRIES];
    uint32_t headers[VXD_SVDAG_FEW_ENTRIES];
    uint32_t marks[VXD_SVDAG_FEW_ENTRIES];
    uint64_t next;         /* the first word that is free */
    uint64_t n_items_left; /* that the index has capacity for */
    uint32_t n_taken;      /* words and items (vxd_svdag_reduce_top_take) */
    uint32_t n_new_words;
    uint32_t has_failed;
};

/* The shared memory of a block. The words of the first entries also hold, for a batch of
 * entries in device memory, how their children are classified, or the words of their
 * nodes. */
template <class Editor> struct vxd_svdag_block_memory {
    struct vxd_svdag_entry<typename Editor::state> entries
        [vxd_svdag_batch_sizes<Editor>::LOCAL_ENTRIES]; /* at vxd_svdag_local_begin */
    union vxd_svdag_warp_lists warp_lists[VXD_SVDAG_BLOCK_THREADS / 32];
    struct vxd_svdag_pool word_pools[VXD_SVDAG_BLOCK_THREADS / 32];
    std::conditional_t<Editor::CLASSIFIES_ALL, struct vxd_svdag_leaf_memo,
                       struct vxd_svdag_no_leaf_memo>
        leaf_memo;
    uint64_t weights[vxd_svdag_batch_sizes<Editor>::BATCH_ENTRIES]; /* of subtrees */
    struct vxd_svdag_batches batches;
    /* How many of them there are, from the batch's height down. */
    uint32_t n_local[vxd_svdag_batch_sizes<Editor>::LEVELS];
    struct vxd_svdag_top expanded_top; /* the first block's */
    uint32_t n_leaves;
    union {
        /* Leaves that are to be edited: entry * 8 + octant. */
        uint16_t leaves[vxd_svdag_batch_sizes<Editor>::LOCAL_LEAVES];
        struct vxd_svdag_expand_top_memory expand_top; /* before there are leaves */
        struct vxd_svdag_reduce_top_memory reduce_top; /* after the last leaves */
    };
};

/* What a block counts. */
struct vxd_svdag_block_counts {
    struct vxd_svdag_change change;
    uint64_t n_new_words;
    uint32_t n_lookups[VXD_SVDAG_N_HEIGHTS]; /* by height; at 0 blocks of materials */
    uint32_t n_new[VXD_SVDAG_N_HEIGHTS];
    uint32_t has_failed; /* the store had no capacity for something of this block */
    uint32_t padding;
    uint64_t cycles[VXD_SVDAG_N_STAGES]; /* that stages took */
};

/* What a thread works with. */
template <class Store, class Editor> struct vxd_svdag_worker {
    const struct vxd_svdag_kernel_args *args;
    const Editor *editor;
    struct vxd_svdag_block_counts *counts;
    struct vxd_svdag_block_memory<Editor> *block;
    typename Store::spare spare;
};

/* Whether this is the thread that hands out the batches of its block. It is in the last
 * warp, which has least to do. */
VXD_SVDAG_DEVICE bool vxd_svdag_is_scheduler(void)
{
    return threadIdx.x == blockDim.x - 32;
}

/* Where the entries of a height begin in shared memory: first those of the batch, then
 * those below. */
template <class Editor> VXD_SVDAG_DEVICE uint32_t vxd_svdag_local_begin(int height)
{
    return height == vxd_svdag_batch_sizes<Editor>::SUBTREE_HEIGHT
               ? 0
               : vxd_svdag_batch_sizes<Editor>::BATCH_ENTRIES;
}

/* Stages and phases ----------------------------------------------------------------------- */

enum vxd_svdag_stage_kind {
    VXD_SVDAG_STAGE_EXPAND_PATH, /* expands the entries of several heights at once */
    VXD_SVDAG_STAGE_EXPAND,
    VXD_SVDAG_STAGE_DEDUP,
    VXD_SVDAG_STAGE_HAND_OVER, /* from the first block to the grid */
    VXD_SVDAG_STAGE_SUBTREES,
    VXD_SVDAG_STAGE_REDUCE,
    VXD_SVDAG_STAGE_END
};

/* A stage, and where the entries and pairs of its height are. */
struct vxd_svdag_stage {
    enum vxd_svdag_stage_kind kind;
    bool is_grid; /* else the first block is alone */
    int height;
    uint32_t entries;
    uint32_t n_entries;
    uint32_t pairs;
    uint32_t n_pairs;
    /* On the way up: how many entries the height has whose number is that of this
     * lane, and a bit for each height with many entries. */
    uint32_t n_cubes_at;
    uint32_t many;
    int subtree_height; /* of the stage SUBTREES */
};

enum vxd_svdag_phase_kind {
    VXD_SVDAG_PHASE_EXPAND_CLASSIFIED, /* a lane a cube; all are classified */
    VXD_SVDAG_PHASE_CLASSIFY,          /* all children of a cube, a lane a cube */
    VXD_SVDAG_PHASE_EXPAND,            /* a lane a child */
    VXD_SVDAG_PHASE_LEAVES,            /* leaves are edited and stored, a lane each */
    VXD_SVDAG_PHASE_REDUCE,  /* a lane makes the node of an entry, which is stored */
    VXD_SVDAG_PHASE_COMPOSE, /* makes the words of nodes, a lane a child */
    VXD_SVDAG_PHASE_INSERT,  /* stores these nodes, a lane each */
    VXD_SVDAG_PHASE_PAIRS,   /* compares pairs of references */
    VXD_SVDAG_PHASE_END
};

/* What the warps of a block do at the same time, and where the entries of its height are.
 * There is a barrier before and behind each phase. */
struct vxd_svdag_phase {
    enum vxd_svdag_phase_kind kind;
    bool is_local;  /* the entries are in shared memory; of pairs, in the warp's list */
    bool is_alone;  /* no other block does anything */
    bool is_path;   /* the entries are of several heights, one each */
    int top;        /* the height of the batch, */
    int height;     /* and of this phase */
    uint32_t begin; /* the first entry, or pair */
    uint32_t n;     /* entries, leaves or pairs; within a step, up to its last one */
};

/* An entry of the phase: of the frontier, or of shared memory. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_entry<typename Editor::state> *
vxd_svdag_entry_at(const struct vxd_svdag_kernel_args *args,
                   struct vxd_svdag_block_memory<Editor> *block,
                   const struct vxd_svdag_phase *phase, uint32_t entry) {
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;

    return (phase->is_local ? block->entries : (entry_t *)args->entries) + entry;
}

/* The height of an entry of the phase. */
VXD_SVDAG_DEVICE int
vxd_svdag_entry_height(const struct vxd_svdag_phase *phase, uint32_t entry)
{
    return phase->height - (phase->is_path ? (int)(entry - phase->begin) : 0);
}

/* The entry in shared memory where a block keeps what it makes of item i of a phase.
 * Where entries are in shared memory it is the entry itself. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_entry<typename Editor::state> *
vxd_svdag_block_entry(struct vxd_svdag_block_memory<Editor> *block,
                      const struct vxd_svdag_phase *phase, uint32_t i) {
    return &block->entries[phase->is_local ? phase->begin + i : i];
}

/* Where the open cubes of the next height are counted: in shared memory while the first
 * block is alone. */
template <class Editor>
VXD_SVDAG_DEVICE uint64_t *
vxd_svdag_next_n_entries(const struct vxd_svdag_kernel_args *args,
                         struct vxd_svdag_block_memory<Editor> *block,
                         const struct vxd_svdag_phase *phase)
{
    const int child_height = phase->height - 1;

    return phase->is_alone ? &block->batches.level_counts[child_height & 1].n_entries
                           : &args->state->n_entries[child_height];
}

/* Where the pairs of the next height are counted, likewise. */
template <class Editor>
VXD_SVDAG_DEVICE uint64_t *
vxd_svdag_next_n_pairs(const struct vxd_svdag_kernel_args *args,
                       struct vxd_svdag_block_memory<Editor> *block,
                       const struct vxd_svdag_phase *phase)
{
    const int child_height = phase->height - 1;

    return phase->is_alone ? &block->batches.level_counts[child_height & 1].n_pairs
                           : &args->state->n_pairs[child_height];
}

/* Places ---------------------------------------------------------------------------------- */

/* By all lanes of a warp: the places of those that take one, after those of the warps
 * before it. */
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

/* By all lanes of a warp: the sum of n over the lanes before this one; over all lanes in
 * *total. */
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

/* Headers --------------------------------------------------------------------------------- */

#define VXD_SVDAG_HEADER_FLAGS ((1u << 10) - 1)

/* The header of what two parts hold together, without the mask of children. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_merge_headers(uint32_t one, uint32_t other)
{
    return ((one | (other & VXD_SVDAG_HEADER_FLAGS)) & ~0xffu) +
           (other & ~VXD_SVDAG_HEADER_FLAGS);
}

/* Such a header as a node of this height has it: counts of voxels end at
 * VXD_SVDAG_COUNT_HEIGHT. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_header_at(uint32_t header, int height)
{
    return height > VXD_SVDAG_COUNT_HEIGHT ? header & VXD_SVDAG_HEADER_FLAGS : header;
}

#endif
