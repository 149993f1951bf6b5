// SPDX-License-Identifier: Apache-2.0
/* What the warps of a block do at the same time (batch_cuda.h), a barrier before and behind it. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_PHASE_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_PHASE_CUDA_H

#include "gpu/svdag/edit_kernel/frontier_dedup_cuda.h"
#include "gpu/svdag/edit_kernel/pair_frontier_cuda.h"

enum vxd_svdag_phase_kind {
    VXD_SVDAG_PHASE_EXPAND_CLASSIFIED, /* cubes of the block: a lane for one (told_cuda.h) */
    VXD_SVDAG_PHASE_CLASSIFY, /* editors that tell at once of all children of a cube */
    VXD_SVDAG_PHASE_EXPAND,   /* cubes: a lane for a child */
    VXD_SVDAG_PHASE_LEAVES,   /* edits and stores them */
    VXD_SVDAG_PHASE_REDUCE,   /* cubes of the block: a lane makes a node and stores it */
    VXD_SVDAG_PHASE_COMPOSE,  /* words of others' nodes: a lane for a child */
    VXD_SVDAG_PHASE_INSERT,   /* these */
    VXD_SVDAG_PHASE_PAIRS,
    VXD_SVDAG_PHASE_END
};

/* A phase, and where the rows of its height are. */
struct vxd_svdag_phase {
    enum vxd_svdag_phase_kind kind;
    bool is_local;  /* the block's own; of pairs, a warp's */
    bool is_alone;  /* no other block does anything */
    bool is_path;   /* rows of several heights (path_cuda.h) */
    int top;        /* the height of the batch, */
    int height;     /* and of this phase */
    uint32_t begin; /* row, or pair */
    uint32_t n;     /* rows, leaves, or pairs; for a step those up to its last one */
};

/* A row of the phase's kind: of the pass, or the block's own. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_frontier_entry<typename Editor::state> *
vxd_svdag_entry_at(const struct vxd_svdag_kernel_args *args,
                   struct vxd_svdag_block_shared<Editor> *shared,
                   const struct vxd_svdag_phase *phase, uint32_t entry) {
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;

    return (phase->is_local ? shared->entries : (entry_t *)args->entries) + entry;
}

/* The height of a row of the phase. */
VXD_SVDAG_DEVICE int
vxd_svdag_entry_height(const struct vxd_svdag_phase *phase, uint32_t entry)
{
    return phase->height - (phase->is_path ? (int)(entry - phase->begin) : 0);
}

/* Whether a lane has an item of its own, not a child of one. */
VXD_SVDAG_DEVICE bool vxd_svdag_phase_is_by_item(enum vxd_svdag_phase_kind kind)
{
    return kind != VXD_SVDAG_PHASE_EXPAND && kind != VXD_SVDAG_PHASE_COMPOSE &&
           kind != VXD_SVDAG_PHASE_PAIRS;
}

/* Whether a step of the phase ends with what it finds or stores. */
VXD_SVDAG_DEVICE bool vxd_svdag_phase_stores(enum vxd_svdag_phase_kind kind)
{
    return kind == VXD_SVDAG_PHASE_LEAVES || kind == VXD_SVDAG_PHASE_REDUCE ||
           kind == VXD_SVDAG_PHASE_INSERT;
}

/* Where cubes of the next height are counted that become rows of the pass: while the first
 * block is alone by itself. */
template <class Editor>
VXD_SVDAG_DEVICE uint64_t *
vxd_svdag_next_n_entries(const struct vxd_svdag_kernel_args *args,
                         struct vxd_svdag_block_shared<Editor> *shared,
                         const struct vxd_svdag_phase *phase)
{
    const int child_height = phase->height - 1;

    return phase->is_alone ? &shared->batches.level_counts[child_height & 1].n_entries
                           : &args->state->n_entries[child_height];
}

/* The same of pairs. */
template <class Editor>
VXD_SVDAG_DEVICE uint64_t *
vxd_svdag_next_n_pairs(const struct vxd_svdag_kernel_args *args,
                       struct vxd_svdag_block_shared<Editor> *shared,
                       const struct vxd_svdag_phase *phase)
{
    const int child_height = phase->height - 1;

    return phase->is_alone ? &shared->batches.level_counts[child_height & 1].n_pairs
                           : &args->state->n_pairs[child_height];
}

/* Of item i of the phase, what the block keeps of it: the row itself, where it is its own. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_frontier_entry<typename Editor::state> *
vxd_svdag_local_copy(struct vxd_svdag_block_shared<Editor> *shared,
                     const struct vxd_svdag_phase *phase, uint32_t i) {
    return &shared->entries[phase->is_local ? phase->begin + i : i];
}

#endif
