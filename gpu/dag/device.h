// SPDX-License-Identifier: Apache-2.0
/* The arena store and edits on a GPU: what host code (device.c, edit_cuda.c) and kernels
 * share. Included as C11 and as CUDA C++.
 *
 * Nothing grows while an edit is queued: chunks of words, the index and an edit's scratch have
 * the room that the host gave them. Kernels count what they need; where it is more, they raise
 * a fault, the rest of the edit falls through, and vxd_dag_make_room comes next. What such an
 * edit stored is whole, and found again when it is repeated. */
#ifndef VXD_GPU_DAG_DEVICE_H
#define VXD_GPU_DAG_DEVICE_H

#include "gpu/dag/change_math.h"
#include "gpu/dag/edit.h"
#include "gpu/dag/index_math.h"
#include "gpu/dag/shapes_math.h"
#include "gpu/dag/undo_math.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VXD_DAG_N_HEIGHTS = VXD_DAG_MAX_DEPTH + 1,
    VXD_DAG_CHUNK_WORDS = 1 << VXD_DAG_CHUNK_BITS,
    /* Chunks there may be: addresses end below VXD_DAG_UNIFORM. */
    VXD_DAG_MAX_CHUNKS = (1 << (32 - VXD_DAG_CHUNK_BITS)) - 1
};

/* Why an edit has no result; bits. */
enum vxd_dag_fault {
    VXD_DAG_NO_CUBES = 1,  /* no room for cubes, */
    VXD_DAG_NO_LEAVES = 2, /* leaves, */
    VXD_DAG_NO_PAIRS = 4,  /* pairs to compare, */
    VXD_DAG_NO_SLOTS = 8,  /* in the index, */
    VXD_DAG_NO_WORDS = 16, /* for words */
    VXD_DAG_BAD_DATA = 32  /* a list or a height breaks a rule */
};

/* Counts of a store, in device memory; changed by edits, one after the other. */
struct vxd_dag_store_state {
    uint64_t next; /* first word that was never handed out; at least 1 */
    uint64_t n_items[VXD_DAG_N_KINDS];
    uint64_t n_words; /* of the items */
};

/* An edit over its passes. */
struct vxd_dag_progress {
    uint32_t fault; /* of passes that ended */
    uint32_t first_root;
    uint32_t root; /* what they made of it */
    struct vxd_dag_change change;
    uint64_t n_lookups[VXD_DAG_N_HEIGHTS];
    uint64_t n_new[VXD_DAG_N_HEIGHTS];
    struct vxd_dag_needs needs;
};

/* One way over the tree; all zeros before it. By height; 0 is for blocks. */
struct vxd_dag_pass_state {
    uint32_t fault;
    uint32_t is_open;     /* the root's cube is a row */
    uint32_t root;        /* else what it becomes */
    uint32_t grid_height; /* the first height whose cubes the whole grid opens */
    uint64_t n_cubes[VXD_DAG_N_HEIGHTS]; /* wanted, more than fit too; 2: leaves */
    uint64_t n_pairs[VXD_DAG_N_HEIGHTS];
    uint64_t n_signs;
    uint64_t n_lookups[VXD_DAG_N_HEIGHTS];
    uint64_t n_claimed[VXD_DAG_N_HEIGHTS]; /* new items, */
    uint64_t n_claimed_words[VXD_DAG_N_HEIGHTS];
    uint64_t
        n_taken_words[VXD_DAG_N_HEIGHTS];  /* theirs, and those lost at chunks' ends */
    uint32_t is_stored[VXD_DAG_N_HEIGHTS]; /* the items of this height are */
};

/* What becomes of a row's item. */
#define VXD_DAG_MARK_DONE 0xffffffffu    /* the row's ref is a reference */
#define VXD_DAG_MARK_SAME 0xfffffffeu    /* ref is the row whose ref it has */
#define VXD_DAG_MARK_WAITING 0xfffffffdu /* its words are to be found or stored */
#define VXD_DAG_MAX_MARK 0xfffffff0u     /* below: a slot of the index is taken for it */

/* Items of one kind, a row each: immutable while they are looked for. */
struct vxd_dag_item_rows {
    uint32_t *words; /* stride a row */
    uint64_t *hashes;
    uint32_t *refs;
    uint32_t *marks;
    uint32_t stride;
};

/* Open cubes (or leaves), by height from the highest on. */
struct vxd_dag_cube_rows {
    uint64_t *places; /* x | y << 21 | z << 42 */
    uint32_t *olds;
    char *states;      /* the editor's, of its size */
    uint8_t *opens;    /* 8 a row: what the word of a child is, enum vxd_dag_opened */
    uint64_t *weights; /* how many cubes a row stands for; NULL: one */
    /* Of a cube the words 1 to 8 are its children until its item is made. */
    struct vxd_dag_item_rows items;
    uint32_t capacity; /* at most 2^29 */
};

enum vxd_dag_opened {
    VXD_DAG_IS_REF = 0,
    VXD_DAG_IS_ROW = 1,
    VXD_DAG_IS_LIKE =
        2 /* the child (row * 8 + octant) that it is equal to, for a moment */
};

/* What open cubes are to their editor, so that equal ones (a wall cuts thousands alike) are
 * gone into once. Where there is no room, or too many look for one place, cubes stand for
 * themselves: it costs rows alone. */
struct vxd_dag_signs {
    uint64_t *records; /* n of VXD_DAG_SIGN_WORDS */
    uint32_t *slots;   /* 2 n: a record's number plus one; 0: free, as all at first */
    uint32_t n;        /* 0 or a power of two */
};

enum {
    VXD_DAG_SIGN_WORDS =
        VXD_DAG_SIGNATURE_WORDS + 2, /* the cube before, the child behind */
    VXD_DAG_SIGN_PROBES = 16
};

/* What a pass works with, by value in kernels. */
struct vxd_dag_pass {
    struct vxd_dag_view view;
    uint32_t *const *chunks; /* the view's, to be written */
    uint64_t capacity_words; /* addresses from 1 on below it may be handed out */
    struct vxd_dag_index_bucket *buckets;
    uint32_t n_buckets;
    struct vxd_dag_store_state *store;
    struct vxd_dag_progress *progress;
    struct vxd_dag_pass_state *state;
    struct vxd_dag_cube_rows cubes;
    struct vxd_dag_cube_rows leaves;
    struct vxd_dag_item_rows blocks; /* as many as leaves, where values stand in blocks */
    uint64_t *pairs;                 /* from << 32 | to */
    uint64_t *pair_weights;          /* as of cubes */
    uint32_t pairs_capacity;
    struct vxd_dag_signs signs;
    bool counts_changes; /* else the edit's are counted at its end */
};

/* Host side ------------------------------------------------------------------------------- */

struct vxd_dag;

/* The store of a dag on a GPU: device.c. */
struct vxd_dag_device;

/* Grows what needs say; the queue was waited for. Waits.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_dag_device_grow(struct vxd_queue *queue, struct vxd_dag *dag,
                                    const struct vxd_dag_needs *needs,
                                    struct vxd_err *err);

/* Rows that an edit's scratch has. */
struct vxd_dag_rooms {
    uint32_t n_cubes;
    uint32_t n_leaves;
    uint32_t n_pairs;
};
struct vxd_dag_rooms vxd_dag_device_rooms(const struct vxd_dag *dag);
/* Gives up what large edits came to need, where there is no memory for it now. False: it is as
 * small as it was at first. */
bool vxd_dag_device_shrink_rooms(struct vxd_dag *dag);

/* Sets what of a pass is the store's. */
void vxd_dag_device_begin_pass(const struct vxd_dag *dag, struct vxd_dag_pass *pass);
/* Chunks there are, and the counts that the last vxd_dag_device_end_edit told, once it was
 * waited for. */
uint32_t vxd_dag_device_n_chunks(const struct vxd_dag *dag);
/* Words of one, device memory; they stay there. Any thread. */
const uint32_t *vxd_dag_device_chunk(const struct vxd_dag *dag, uint32_t i);
struct vxd_dag_store_state vxd_dag_device_state(const struct vxd_dag *dag);
/* Queues what tells get_usage of the store's counts. */
enum vxd_status vxd_dag_device_end_edit(struct vxd_queue *queue, struct vxd_dag *dag,
                                        struct vxd_err *err);

/* edit_cuda.c: vxd_dag_edit of operations that were checked. */
enum vxd_status vxd_dag_edit_cuda(struct vxd_queue *queue, struct vxd_dag *dag,
                                  uint32_t root, const struct vxd_dag_op *ops,
                                  size_t n_ops, struct vxd_dag_edit_result *out,
                                  struct vxd_err *err);
/* edit_cuda.c: vxd_dag_undo. */
enum vxd_status vxd_dag_undo_cuda(struct vxd_queue *queue, struct vxd_dag *dag,
                                  uint32_t head, const struct vxd_dag_undo_state *roots,
                                  struct vxd_dag_edit_result *out, struct vxd_err *err);
/* Bytes of an edit's scratch for such rooms, its operations left out. */
size_t vxd_dag_scratch_bytes_cuda(const struct vxd_dag *dag,
                                  const struct vxd_dag_rooms *rooms);

/* The whole store as the host reads it, for walks that no edit runs beside: on the CPU the store
 * itself, else a copy. The caller frees its memory. */
struct vxd_dag_image {
    struct vxd_dag_view view;
    const struct vxd_dag_index_bucket *buckets; /* of a copy, else NULL */
    uint32_t n_buckets;
    struct vxd_buffer memory; /* host */
};

/* verify.c. Waits where it copies. errors  RESOURCE_EXHAUSTED  no memory for it */
enum vxd_status vxd_dag_image_open(struct vxd_queue *queue, const struct vxd_dag *dag,
                                   struct vxd_dag_image *out, struct vxd_err *err);
/* device.c: the copy. */
enum vxd_status vxd_dag_device_copy(struct vxd_queue *queue, const struct vxd_dag *dag,
                                    struct vxd_dag_image *out, struct vxd_err *err);

/* Kernels --------------------------------------------------------------------------------- */

/* Bytes of a state, by editor. */
size_t vxd_dag_shapes_state_bytes(bool has_lists);
size_t vxd_dag_copy_state_bytes(void);
size_t vxd_dag_morph_state_bytes(void);
size_t vxd_dag_undo_state_bytes(void);

/* Launches, one kernel each; the pass's state is all zeros. Operations and runs lie in device
 * memory.
 * errors  of the launch */
enum vxd_status vxd_dag_shapes_pass(struct vxd_queue *queue,
                                    const struct vxd_dag_pass *pass,
                                    const struct vxd_dag_shapes_run *run, bool has_lists,
                                    struct vxd_err *err);
enum vxd_status vxd_dag_copy_pass(struct vxd_queue *queue,
                                  const struct vxd_dag_pass *pass,
                                  const struct vxd_dag_op *op, struct vxd_err *err);
enum vxd_status vxd_dag_morph_pass(struct vxd_queue *queue,
                                   const struct vxd_dag_pass *pass,
                                   const struct vxd_dag_op *op, struct vxd_err *err);
enum vxd_status vxd_dag_undo_pass(struct vxd_queue *queue,
                                  const struct vxd_dag_pass *pass,
                                  const struct vxd_dag_undo_state *roots,
                                  struct vxd_err *err);

/* arena.cu. What changed from the edit's first root to its last; the pass's pairs and state
 * are used. */
enum vxd_status vxd_dag_change_pass(struct vxd_queue *queue,
                                    const struct vxd_dag_pass *pass, struct vxd_err *err);
/* Ends an edit: its result, in device memory, and the fault of bad data to the queue. */
enum vxd_status vxd_dag_finish_pass(struct vxd_queue *queue,
                                    const struct vxd_dag_pass *pass,
                                    struct vxd_dag_edit_result *out, struct vxd_err *err);
/* Enters every item of a table into a larger one, whose slots are free. A fault is raised to
 * the queue (INTERNAL) where one has no place. */
enum vxd_status vxd_dag_index_move(struct vxd_queue *queue,
                                   const struct vxd_dag_view *view,
                                   const struct vxd_dag_index_bucket *from,
                                   uint32_t n_from, struct vxd_dag_index_bucket *to,
                                   uint32_t n_to, struct vxd_err *err);
/* Raises VXD_DAG_BAD_DATA where a list breaks a rule of edit.h, or a height. */
enum vxd_status vxd_dag_check_list_pass(struct vxd_queue *queue,
                                        const struct vxd_dag_voxels *voxels,
                                        uint64_t n_codes, uint32_t n_materials,
                                        bool has_values, uint32_t *fault,
                                        struct vxd_err *err);
enum vxd_status vxd_dag_check_heights_pass(struct vxd_queue *queue,
                                           const int64_t *heights, size_t n,
                                           uint32_t *fault, struct vxd_err *err);
/* Fills a level of a heightfield's pyramid from the one below. */
enum vxd_status vxd_dag_pyramid_pass(struct vxd_queue *queue,
                                     const struct vxd_dag_heights *field,
                                     const struct vxd_dag_pyramid *pyramid, int number,
                                     int32_t *least, int32_t *most, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
