// SPDX-License-Identifier: Apache-2.0
/* Stores and edits on a GPU: what host code (device*.c, edit_cuda.c) and kernels share. Included
 * as C11 and as CUDA C++.
 *
 * Nothing grows while an edit is queued: chunks of words, what items are found by and an edit's
 * scratch have the room that the host gave them. Kernels count what they need; where it is more,
 * they raise a fault, the rest of the edit falls through, and vxd_svdag_reserve comes next. What
 * such an edit stored is whole, and found again when it is repeated. */
#ifndef VXD_GPU_SVDAG_STORE_STORE_DEVICE_H
#define VXD_GPU_SVDAG_STORE_STORE_DEVICE_H

#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/brush/brush.h"
#include "gpu/svdag/store/arena_index_math.h"
#include "gpu/svdag/brush/brush_math.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VXD_SVDAG_N_HEIGHTS = VXD_SVDAG_MAX_DEPTH + 1
};

/* Why an edit has no result; bits. */
enum vxd_svdag_fault {
    VXD_SVDAG_NO_ENTRIES = 1, /* no room for cubes, or more than an edit may look at, */
    VXD_SVDAG_NO_PAIRS = 4,   /* for pairs to compare, */
    VXD_SVDAG_NO_SLOTS = 8,   /* in the index, */
    VXD_SVDAG_NO_WORDS = 16,  /* for words */
    VXD_SVDAG_BAD_DATA = 32,  /* a list or a height breaks a rule */
    VXD_SVDAG_STUCK = 64      /* a search came to no end, which does not happen */
};

/* Words of a store's state that only a store which was handed in gives a meaning to. */
enum {
    VXD_SVDAG_STORE_OWN_WORDS = 44
};

/* Counts of a store, in device memory; changed by edits, one after the other. */
struct vxd_svdag_store_state {
    uint64_t
        next; /* first word that was never handed out; of an arena at least 1, of other
                    * stores whole chunks */
    uint64_t n_items[VXD_SVDAG_N_KINDS];
    uint64_t n_words;                        /* of the items */
    uint32_t own[VXD_SVDAG_STORE_OWN_WORDS]; /* zeros at first, and always of an arena */
};

/* An edit over its passes. */
struct vxd_svdag_progress {
    uint32_t fault; /* of passes that ended */
    uint32_t first_root;
    uint32_t root; /* what they made of it */
    struct vxd_svdag_change change;
    uint64_t n_lookups[VXD_SVDAG_N_HEIGHTS];
    uint64_t n_new[VXD_SVDAG_N_HEIGHTS];
    struct vxd_svdag_needs needs;
    uint64_t stage_cycles[VXD_SVDAG_N_STAGES];
};

/* Where the first block came to alone: the whole grid goes on with rows of this height. */
struct vxd_svdag_handover {
    uint32_t height;
    uint32_t entries; /* the first of them, of the pass's rows */
    uint32_t n_entries;
    uint32_t pairs;
    uint32_t n_pairs;
};

/* One way over the tree; all zeros before it. By height. */
struct vxd_svdag_kernel_state {
    uint32_t fault;
    struct vxd_svdag_handover handover;
    uint32_t n_scheduled; /* rows that were dealt out to blocks that had done some */
    /* For who tells what a pass would need: rows that became nodes, or were about to, and rows
     * above those. */
    uint32_t n_local_reduced;
    uint32_t n_reduced;
    uint32_t padding;
    uint64_t n_items;                        /* of the store, before it */
    uint64_t n_visits;                       /* cubes looked at */
    uint64_t n_taken;                        /* words, and items (store_cuda.h) */
    uint64_t n_entries[VXD_SVDAG_N_HEIGHTS]; /* wanted, more than fit too */
    uint64_t n_pairs[VXD_SVDAG_N_HEIGHTS];
    uint64_t n_records;
};

/* What open cubes are to their editor, so that equal ones (a wall cuts thousands alike) are
 * gone into once. Where there is no room, or too many look for one place, cubes stand for
 * themselves: it costs rows alone. */
struct vxd_svdag_dedup_table {
    uint64_t *records; /* n of VXD_SVDAG_DEDUP_RECORD_WORDS */
    uint32_t *slots;   /* 2 n: a record's number plus one; 0: free, as all at first */
    uint32_t n;        /* 0 or a power of two */
};

enum {
    VXD_SVDAG_DEDUP_RECORD_WORDS =
        VXD_SVDAG_EDIT_KEY_WORDS + 2, /* the cube before, the child behind */
    VXD_SVDAG_DEDUP_PROBES = 16
};

/* What a pass works with, by value in kernels. */
struct vxd_svdag_kernel_args {
    struct vxd_svdag_view view;
    uint32_t *const *chunks;      /* the view's, to be written */
    uint64_t capacity_words;      /* addresses from 1 on below it may be handed out */
    struct vxd_svdag_index index; /* of an arena */
    struct vxd_svdag_store_state *store;
    struct vxd_svdag_store_state *mirror; /* for the host, in its memory: page-locked */
    struct vxd_svdag_progress *progress;
    struct vxd_svdag_kernel_state *state;
    void *entries; /* the frontier (frontier_cuda.h), from the highest cubes on */
    uint64_t *entry_weights; /* how many cubes a row stands for; NULL: one */
    uint32_t entries_capacity;
    uint64_t *pairs;        /* from << 32 | to */
    uint64_t *pair_weights; /* as of cubes */
    uint32_t pairs_capacity;
    struct vxd_svdag_dedup_table dedup;
    uint64_t max_visits;
    bool counts_changes; /* else the edit's are counted at its end */
    const void *tables;  /* by what a store that was handed in finds items; else NULL */
};

/* Host side ------------------------------------------------------------------------------- */

struct vxd_svdag;

/* The store of a svdag on a GPU: device.c. */
struct vxd_svdag_device;

/* Grows what needs say; the queue was waited for. Waits.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_device_grow(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                      const struct vxd_svdag_needs *needs,
                                      struct vxd_err *err);

/* Makes room before an edit that finds none, which would be done twice: where the last two edits
 * took much each, as a robot's scans do, this one is taken to be like them. Waits where it
 * grows something; where there is no memory for that nothing happens.
 * errors  of what was queued before */
enum vxd_status vxd_svdag_device_reserve_expected(struct vxd_queue *queue,
                                                  struct vxd_svdag *svdag,
                                                  struct vxd_err *err);

/* Rows that an edit's scratch has. */
struct vxd_svdag_frontier_capacity {
    uint32_t n_entries;
    uint32_t n_pairs;
};
struct vxd_svdag_frontier_capacity
vxd_svdag_device_frontier(const struct vxd_svdag *svdag);
/* Gives up what large edits came to need, where there is no memory for it now. False: it is as
 * small as it was at first. */
bool vxd_svdag_device_shrink_frontier(struct vxd_svdag *svdag);

/* Sets what of a pass is the store's. */
void vxd_svdag_device_set_args(const struct vxd_svdag *svdag,
                               struct vxd_svdag_kernel_args *args);
/* Chunks there are, and the counts that the last edit, or vxd_svdag_device_end_edit, told, once it
 * was waited for. */
uint32_t vxd_svdag_device_n_chunks(const struct vxd_svdag *svdag);
/* Words of one, device memory; they stay there. Any thread. */
const uint32_t *vxd_svdag_device_chunk(const struct vxd_svdag *svdag, uint32_t i);
struct vxd_svdag_store_state vxd_svdag_device_state(const struct vxd_svdag *svdag);
/* Queues what tells get_usage of the store's counts, after changes that are no edit. */
enum vxd_status vxd_svdag_device_end_edit(struct vxd_queue *queue,
                                          struct vxd_svdag *svdag, struct vxd_err *err);

/* edit_cuda.c: vxd_svdag_edit of operations that were checked. */
enum vxd_status vxd_svdag_edit_cuda(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                    uint32_t root, const struct vxd_svdag_op *ops,
                                    size_t n_ops, struct vxd_svdag_edit_result *out,
                                    struct vxd_err *err);
/* edit_cuda.c: vxd_svdag_undo. */
enum vxd_status vxd_svdag_undo_cuda(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                    uint32_t head,
                                    const struct vxd_svdag_undo_state *roots,
                                    struct vxd_svdag_edit_result *out,
                                    struct vxd_err *err);
/* Bytes of an edit's scratch for such rooms, its operations left out. */
size_t vxd_svdag_scratch_bytes_cuda(const struct vxd_svdag_frontier_capacity *frontier);

/* The whole store as the host reads it, for walks that no edit runs beside: on the CPU the store
 * itself, else a copy. The caller frees its memory. */
struct vxd_svdag_image {
    struct vxd_svdag_view view;
    struct vxd_svdag_index index; /* of an arena's copy, else all zeros */
    const void *tables;       /* of the copy of a store that was handed in, else NULL */
    struct vxd_buffer memory; /* host */
};

/* verify.c. Waits where it copies. errors  RESOURCE_EXHAUSTED  no memory for it */
enum vxd_status vxd_svdag_image_open(struct vxd_queue *queue,
                                     const struct vxd_svdag *svdag,
                                     struct vxd_svdag_image *out, struct vxd_err *err);
/* device.c: the copy. */
enum vxd_status vxd_svdag_device_copy(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag,
                                      struct vxd_svdag_image *out, struct vxd_err *err);

/* Kernels --------------------------------------------------------------------------------- */

/* What a kernel of shapes is compiled for. */
enum vxd_svdag_shapes_form {
    VXD_SVDAG_FORM_SHAPES, /* up to 64 operations, no lists of voxels among them */
    VXD_SVDAG_FORM_LISTS,  /* the same with lists */
    VXD_SVDAG_FORM_BALL    /* one ball that overwrites */
};

/* Bytes of a row of cubes, by editor. */
size_t vxd_svdag_shapes_entry_bytes(enum vxd_svdag_shapes_form form);
size_t vxd_svdag_copy_entry_bytes(void);
size_t vxd_svdag_morph_entry_bytes(void);
size_t vxd_svdag_undo_entry_bytes(void);

/* The kernels of a store's edits: each function launches one. The kernel's state is all
 * zeros. Runs and what morphology does lie in device memory; `ops` of shapes are those of
 * the run, on the host. Change counts what changed from the edit's first root to its last;
 * it uses the pairs and the state.
 * errors  of the launch */
struct vxd_svdag_edit_kernels {
    enum vxd_status (*shapes)(struct vxd_queue *queue,
                              const struct vxd_svdag_kernel_args *args,
                              const struct vxd_svdag_shapes_run *run,
                              enum vxd_svdag_shapes_form form,
                              const struct vxd_svdag_op *ops, struct vxd_err *err);
    enum vxd_status (*copy)(struct vxd_queue *queue,
                            const struct vxd_svdag_kernel_args *args,
                            const struct vxd_svdag_op *op, struct vxd_err *err);
    enum vxd_status (*morph)(struct vxd_queue *queue,
                             const struct vxd_svdag_kernel_args *args,
                             const struct vxd_svdag_op *op, struct vxd_err *err);
    enum vxd_status (*undo)(struct vxd_queue *queue,
                            const struct vxd_svdag_kernel_args *args,
                            const struct vxd_svdag_undo_state *roots,
                            struct vxd_err *err);
    enum vxd_status (*change)(struct vxd_queue *queue,
                              const struct vxd_svdag_kernel_args *args,
                              struct vxd_err *err);
};

/* edit_kernel/: those of the arena. */
enum vxd_status vxd_svdag_launch_shapes(struct vxd_queue *queue,
                                        const struct vxd_svdag_kernel_args *args,
                                        const struct vxd_svdag_shapes_run *run,
                                        enum vxd_svdag_shapes_form form,
                                        const struct vxd_svdag_op *ops,
                                        struct vxd_err *err);
enum vxd_status vxd_svdag_launch_copy(struct vxd_queue *queue,
                                      const struct vxd_svdag_kernel_args *args,
                                      const struct vxd_svdag_op *op, struct vxd_err *err);
enum vxd_status vxd_svdag_launch_morph(struct vxd_queue *queue,
                                       const struct vxd_svdag_kernel_args *args,
                                       const struct vxd_svdag_op *op,
                                       struct vxd_err *err);
enum vxd_status vxd_svdag_launch_undo(struct vxd_queue *queue,
                                      const struct vxd_svdag_kernel_args *args,
                                      const struct vxd_svdag_undo_state *roots,
                                      struct vxd_err *err);
enum vxd_status vxd_svdag_launch_change(struct vxd_queue *queue,
                                        const struct vxd_svdag_kernel_args *args,
                                        struct vxd_err *err);

/* arena.cu. Ends an edit: its result, in device memory, the store's counts to the mirror, and
 * faults that no room mends to the queue. */
enum vxd_status vxd_svdag_launch_finish(struct vxd_queue *queue,
                                        const struct vxd_svdag_kernel_args *args,
                                        struct vxd_svdag_edit_result *out,
                                        struct vxd_err *err);
/* Enters every item of an index into another one, whose slots are free. A fault is raised to
 * the queue (INTERNAL) where one has no place. */
enum vxd_status vxd_svdag_index_move(struct vxd_queue *queue,
                                     const struct vxd_svdag_view *view,
                                     const struct vxd_svdag_index *from,
                                     const struct vxd_svdag_index *to,
                                     struct vxd_err *err);
/* Raises VXD_SVDAG_BAD_DATA where a list breaks a rule of edit.h, or a height. */
enum vxd_status vxd_svdag_launch_check_list(struct vxd_queue *queue,
                                            const struct vxd_svdag_voxels *voxels,
                                            uint64_t n_codes, uint32_t n_materials,
                                            bool has_values, uint32_t *fault,
                                            struct vxd_err *err);
enum vxd_status vxd_svdag_launch_check_heights(struct vxd_queue *queue,
                                               const int64_t *heights, size_t n,
                                               uint32_t *fault, struct vxd_err *err);
/* Fills a level of a heightfield's pyramid from the one below. */
enum vxd_status vxd_svdag_launch_pyramid(struct vxd_queue *queue,
                                         const struct vxd_svdag_heights *field,
                                         const struct vxd_svdag_pyramid *pyramid,
                                         int number, int32_t *least, int32_t *most,
                                         struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
