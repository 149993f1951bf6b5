// SPDX-License-Identifier: Apache-2.0
/* What host code (store_device.c, edit_cuda.c) and kernels share of stores and edits on a
 * GPU. Included as C11 and as CUDA C++.
 *
 * Nothing grows while an edit is queued: chunks of words, the index and the edit's
 * scratch have the capacity that the host reserved. Kernels count what they need. Where
 * it is more than there is they set a fault, and the rest of the edit does nothing; the
 * host then calls vxd_svdag_reserve and repeats the edit. Items that a failed edit
 * inserted are complete, and the repeated edit finds them. */
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

/* Faults: why an edit has no result; bits. */
enum vxd_svdag_fault {
    VXD_SVDAG_NO_ENTRIES =
        1, /* the frontier is full, or the edit may not visit so many cubes */
    VXD_SVDAG_NO_PAIRS = 4,  /* the frontier of pairs is full */
    VXD_SVDAG_NO_SLOTS = 8,  /* the index is full */
    VXD_SVDAG_NO_WORDS = 16, /* no words left */
    VXD_SVDAG_BAD_DATA = 32, /* a list of voxels or a height is invalid */
    VXD_SVDAG_STUCK = 64     /* a search did not end, which is a bug */
};

/* Words of a store's state whose meaning only a store of gpu/paper defines. */
enum {
    VXD_SVDAG_STORE_OWN_WORDS = 44
};

/* Counts of a store, in device memory. Edits change them, one after the other. */
struct vxd_svdag_store_state {
    uint64_t
        next; /* first word never handed out; at least 1 in an arena, a multiple of a chunk in other stores */
    uint64_t n_items[VXD_SVDAG_N_KINDS];
    uint64_t n_words; /* words of the items */
    uint32_t
        own[VXD_SVDAG_STORE_OWN_WORDS]; /* zeros at first; always zeros in an arena */
};

/* State of an edit, over all of its kernels. */
struct vxd_svdag_progress {
    uint32_t fault; /* fault of the kernels that have ended */
    uint32_t first_root;
    uint32_t root; /* root after the kernels that have ended */
    struct vxd_svdag_change change;
    uint64_t n_lookups[VXD_SVDAG_N_HEIGHTS];
    uint64_t n_new[VXD_SVDAG_N_HEIGHTS];
    struct vxd_svdag_needs needs;
    uint64_t stage_cycles[VXD_SVDAG_N_STAGES];
};

/* Where the first block hands over to the whole grid: entries of this height are next. */
struct vxd_svdag_handover {
    uint32_t height;
    uint32_t entries; /* first of them in the frontier */
    uint32_t n_entries;
    uint32_t pairs;
    uint32_t n_pairs;
};

/* State of one edit kernel; all zeros before it. Arrays are by height. */
struct vxd_svdag_kernel_state {
    uint32_t fault;
    struct vxd_svdag_handover handover;
    uint32_t
        n_scheduled; /* entries handed out to blocks that had finished their first batch */
    /* For the estimate of what the kernel lacks: entries that were or were about to be
     * reduced inside of subtrees, and entries above those. */
    uint32_t n_local_reduced;
    uint32_t n_reduced;
    uint32_t padding;
    uint64_t n_items;  /* items of the store before the kernel */
    uint64_t n_visits; /* visited cubes */
    uint64_t n_taken;  /* words and items taken (find_or_insert_cuda.h) */
    uint64_t n_entries
        [VXD_SVDAG_N_HEIGHTS]; /* entries needed, including those that did not fit */
    uint64_t n_pairs[VXD_SVDAG_N_HEIGHTS];
    uint64_t n_records;
};

/* A hash table of the edit keys of frontier entries. Equal entries are expanded once; a
 * flat wall cuts thousands of cubes in the same way. Where the table is full, or a probe
 * sequence is too long, a duplicate stays an entry of its own: this costs entries, and
 * does not change the result. */
struct vxd_svdag_dedup_table {
    uint64_t *records; /* n records of VXD_SVDAG_DEDUP_RECORD_WORDS */
    uint32_t *slots;   /* 2 n: number of a record plus one; 0: free; all zeros at first */
    uint32_t n;        /* 0 or a power of two */
};

enum {
    VXD_SVDAG_DEDUP_RECORD_WORDS =
        VXD_SVDAG_EDIT_KEY_WORDS + 2, /* the key after the cube, before the child */
    VXD_SVDAG_DEDUP_PROBES = 16
};

/* Arguments of an edit kernel, by value. */
struct vxd_svdag_kernel_args {
    struct vxd_svdag_view view;
    uint32_t *const *chunks;      /* the view's chunks, writable */
    uint64_t capacity_words;      /* end of the addresses that may be handed out */
    struct vxd_svdag_index index; /* in an arena */
    struct vxd_svdag_store_state *store;
    struct vxd_svdag_store_state
        *mirror; /* page-locked host memory, written at the end for the host */
    struct vxd_svdag_progress *progress;
    struct vxd_svdag_kernel_state *state;
    void *entries; /* the frontier (frontier_cuda.h), from the root's height down */
    uint64_t
        *entry_weights; /* number of cubes that an entry stands for; NULL: one each */
    uint32_t entries_capacity;
    uint64_t *pairs;        /* from << 32 | to */
    uint64_t *pair_weights; /* as of the entries */
    uint32_t pairs_capacity;
    struct vxd_svdag_dedup_table dedup;
    uint64_t max_visits;
    bool counts_changes; /* else changes are counted once at the end of the edit */
    const void *tables;  /* index of a store of gpu/paper; else NULL */
};

/* Host side ------------------------------------------------------------------------------- */

struct vxd_svdag;

/* A store on a GPU: store_device.c. */
struct vxd_svdag_device;

/* Grows the words and items that `needs` names. The queue must be idle. Waits.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_device_grow(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                      const struct vxd_svdag_needs *needs,
                                      struct vxd_err *err);

/* Reserves capacity before an edit that is expected to lack it, since such an edit runs
 * twice. Where each of the last two edits took much, as a robot's scans do, this one is
 * expected to do the same. Waits where something grows; does nothing where there is no
 * memory for it.
 * errors  those of work that was queued before */
enum vxd_status vxd_svdag_device_reserve_expected(struct vxd_queue *queue,
                                                  struct vxd_svdag *svdag,
                                                  struct vxd_err *err);

/* Capacity of the frontier in an edit's scratch. */
struct vxd_svdag_frontier_capacity {
    uint32_t n_entries;
    uint32_t n_pairs;
};
struct vxd_svdag_frontier_capacity
vxd_svdag_device_frontier(const struct vxd_svdag *svdag);
void vxd_svdag_device_set_frontier(struct vxd_svdag *svdag,
                                   const struct vxd_svdag_frontier_capacity *frontier);
/* Reduces the capacity that large edits needed, where there is no memory for it. False:
 * it is at its smallest. */
bool vxd_svdag_device_shrink_frontier(struct vxd_svdag *svdag);

/* Sets the members of the arguments that belong to the store. */
void vxd_svdag_device_set_args(const struct vxd_svdag *svdag,
                               struct vxd_svdag_kernel_args *args);
/* Number of chunks; further down, the counts after the last edit or
 * vxd_svdag_device_end_edit, valid once the queue was waited for. */
uint32_t vxd_svdag_device_n_chunks(const struct vxd_svdag *svdag);
/* The words of a chunk in device memory; they never move. Any thread. */
const uint32_t *vxd_svdag_device_chunk(const struct vxd_svdag *svdag, uint32_t i);
struct vxd_svdag_store_state vxd_svdag_device_state(const struct vxd_svdag *svdag);
/* Queues the update of the counts that get_usage reads, after changes that are no
 * edit. */
enum vxd_status vxd_svdag_device_end_edit(struct vxd_queue *queue,
                                          struct vxd_svdag *svdag, struct vxd_err *err);

/* edit_cuda.c: vxd_svdag_edit, for operations that were checked. */
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
/* edit_cuda.c: grows the frontier to what `needs` names, or to more, as the device has memory for
 * the scratch of an edit at present; each edit allocates its own. Waits.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_grow_frontier_cuda(struct vxd_queue *queue,
                                             struct vxd_svdag *svdag,
                                             const struct vxd_svdag_needs *needs,
                                             struct vxd_err *err);

/* The whole store in host memory, for traversals on the host while no edit runs: the
 * store itself on the CPU, else a copy. The caller frees `memory`. */
struct vxd_svdag_image {
    struct vxd_svdag_view view;
    struct vxd_svdag_index index; /* of the copy of an arena, else all zeros */
    const void *tables;           /* of the copy of a store of gpu/paper, else NULL */
    struct vxd_buffer memory;     /* host */
};

/* store_verify.c. Waits where it copies.
 * errors  RESOURCE_EXHAUSTED  no memory for it */
enum vxd_status vxd_svdag_image_open(struct vxd_queue *queue,
                                     const struct vxd_svdag *svdag,
                                     struct vxd_svdag_image *out, struct vxd_err *err);
/* store_device.c: makes the copy. */
enum vxd_status vxd_svdag_device_copy(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag,
                                      struct vxd_svdag_image *out, struct vxd_err *err);

/* Kernels --------------------------------------------------------------------------------- */

/* Variants of the edit kernel for shapes. */
enum vxd_svdag_shapes_form {
    VXD_SVDAG_FORM_SHAPES, /* up to 64 operations without lists of voxels */
    VXD_SVDAG_FORM_LISTS,  /* up to 64 operations, some with lists of voxels */
    VXD_SVDAG_FORM_BALL    /* one overwriting ball */
};

/* Bytes of a frontier entry, by editor. */
size_t vxd_svdag_shapes_entry_bytes(enum vxd_svdag_shapes_form form);
size_t vxd_svdag_copy_entry_bytes(void);
size_t vxd_svdag_morph_entry_bytes(void);
size_t vxd_svdag_undo_entry_bytes(void);

/* The edit kernels of a store: each function launches one, whose state must be all zeros.
 * The runs of shapes and the operation of morph lie in device memory; `ops` are the
 * operations of the run on the host, and so is the operation of copy. Change counts what
 * changed from the edit's first root to its last; it uses the pairs and the state.
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

/* For an arena (gpu/svdag/edit_kernel/). The stores of gpu/paper have tables of their own. */
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

/* arena.cu. Ends an edit: writes its result in device memory, copies the store's counts
 * to the mirror, and sets the queue's error for faults that more capacity does not
 * cure. */
enum vxd_status vxd_svdag_launch_finish(struct vxd_queue *queue,
                                        const struct vxd_svdag_kernel_args *args,
                                        struct vxd_svdag_edit_result *out,
                                        struct vxd_err *err);
/* Inserts every item of an index into another, empty one. Sets the queue's error
 * (INTERNAL) where an item finds no free slot. */
enum vxd_status vxd_svdag_index_move(struct vxd_queue *queue,
                                     const struct vxd_svdag_view *view,
                                     const struct vxd_svdag_index *from,
                                     const struct vxd_svdag_index *to,
                                     struct vxd_err *err);
/* Sets VXD_SVDAG_BAD_DATA where a list of voxels, or a height, breaks the rules of
 * brush.h. */
enum vxd_status vxd_svdag_launch_check_list(struct vxd_queue *queue,
                                            const struct vxd_svdag_voxels *voxels,
                                            uint64_t n_codes, uint32_t n_materials,
                                            bool has_values, uint32_t *fault,
                                            struct vxd_err *err);
enum vxd_status vxd_svdag_launch_check_heights(struct vxd_queue *queue,
                                               const int64_t *heights, size_t n,
                                               uint32_t *fault, struct vxd_err *err);
/* Fills a level of a heightfield's pyramid from the level before. */
enum vxd_status vxd_svdag_launch_pyramid(struct vxd_queue *queue,
                                         const struct vxd_svdag_heights *field,
                                         const struct vxd_svdag_pyramid *pyramid,
                                         int number, int32_t *least, int32_t *most,
                                         struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
