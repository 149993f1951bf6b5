// SPDX-License-Identifier: Apache-2.0
/* What the modules of gpu/svdag share: the store behind the opaque name, finding or
 * inserting nodes, and the interface between editors and the traversal of a tree on the
 * CPU. */
#ifndef VXD_GPU_SVDAG_STORE_STORE_H
#define VXD_GPU_SVDAG_STORE_STORE_H

#include <stdatomic.h>

#include "gpu/core/core_cpu.h"
#include "gpu/svdag/brush/brush.h"
#include "gpu/svdag/brush/brush_math.h"

struct vxd_svdag_store_ops;
struct vxd_svdag_device_ops; /* store_table.h */
struct vxd_svdag_arena;      /* arena_cpu.c */

struct vxd_svdag {
    struct vxd_context *context;
    struct vxd_svdag_spec spec;
    struct vxd_svdag_view view;
    uint64_t max_visits;
    bool (*is_stopped)(void *user); /* asked by edits; NULL = never */
    void *stop_user;
    const struct vxd_svdag_store_ops *ops; /* by spec.store */
    /* In a context on a GPU: the functions of a store of gpu/paper; NULL for an arena. */
    const struct vxd_svdag_device_ops *device_ops;
    struct vxd_svdag_arena *arena;   /* on the CPU: an arena, or */
    void *own;                       /* a store of gpu/paper */
    struct vxd_svdag_device *device; /* in a context on a GPU (store_device.h) */
};

/* An item that a writer used recently: upper bits of its hash with its kind, and its
 * reference. */
struct vxd_svdag_recent_item {
    uint32_t key;
    uint32_t ref;
};

/* Access of one thread to the store for the time of one edit: words that it hands out
 * without locks, and the items that it used recently. Zero-initialised except svdag;
 * vxd_svdag_writer_close gives back unused words. */
struct vxd_svdag_writer {
    struct vxd_svdag *svdag;
    struct vxd_svdag_recent_item
        *recent;   /* allocated by the first put; NULL where there is no memory for it */
    uint32_t next; /* address of the first free word of the segment */
    uint32_t n_left;
    uint64_t n_lookups[VXD_SVDAG_MAX_DEPTH + 1];
    uint64_t n_new[VXD_SVDAG_MAX_DEPTH + 1];
};
void vxd_svdag_writer_close(struct vxd_svdag_writer *writer);

/* An item that is looked up or inserted. */
struct vxd_svdag_lookup_key {
    uint64_t hash;
    const uint32_t *words;
    enum vxd_svdag_kind kind;
    int n_words;
};

/* errors  CANCELLED  the edit that runs should end */
enum vxd_status vxd_svdag_check_stop(const struct vxd_svdag *svdag, struct vxd_err *err);

/* Functions of a store. All but create and destroy are thread-safe. A create that fails
 * leaves nothing behind. */
struct vxd_svdag_store_ops {
    /* Sets the members of the view and of *svdag that belong to the store. */
    enum vxd_status (*create)(struct vxd_queue *queue, struct vxd_svdag *svdag,
                              struct vxd_err *err);
    void (*destroy)(struct vxd_queue *queue, struct vxd_svdag *svdag);
    /* As vxd_svdag_put; *is_new: the item was inserted. */
    enum vxd_status (*put)(struct vxd_svdag_writer *writer,
                           const struct vxd_svdag_lookup_key *key, uint32_t *ref,
                           bool *is_new, struct vxd_err *err);
    uint32_t (*find)(const struct vxd_svdag *svdag,
                     const struct vxd_svdag_lookup_key *key);
    /* Prefetches the memory that a put of this hash reads. NULL: does nothing. */
    void (*prefetch)(const struct vxd_svdag *svdag, uint64_t hash);
    /* Takes back the words that a writer did not use. */
    void (*close)(struct vxd_svdag_writer *writer);
    void (*get_usage)(const struct vxd_svdag *svdag, struct vxd_svdag_usage *out);
};
extern const struct vxd_svdag_store_ops vxd_svdag_arena_cpu;
/* store_device.c, for all stores on a GPU. Only edits (edit_cuda.c) and collections
 * insert items, so put, find and close are NULL. */
extern const struct vxd_svdag_store_ops vxd_svdag_store_cuda;

/* Whether a stored item of the key's kind has the key's words. Items with equal first
 * words (leaves: first two words) have equal lengths, so no read passes the end of an
 * item. */
static inline bool vxd_svdag_is_equal(const struct vxd_svdag_view *view, uint32_t ref,
                                      const struct vxd_svdag_lookup_key *key)
{
    const uint32_t *stored = vxd_svdag_words(view, ref);
    struct vxd_svdag_item item;

    if (stored[0] != key->words[0] || (key->n_words > 1 && stored[1] != key->words[1])) {
        return false;
    }
    item = vxd_svdag_item_at(view, ref, key->n_words);
    for (int i = 2; i < key->n_words; i++) {
        if (item.rest[i - 2] != key->words[i]) {
            return false;
        }
    }
    return true;
}

/* store_writer_cpu.c. Device memory within the budgets of the store and of the context.
 * *n_taken is what the store has; the caller's lock guards it. */
enum vxd_status vxd_svdag_take_bytes(const struct vxd_svdag *svdag, size_t n_bytes,
                                     size_t *n_taken, void **out, struct vxd_err *err);
void vxd_svdag_release_bytes(const struct vxd_svdag *svdag, void *memory);
/* CPU backend: turns the first n_bytes of a host buffer into such memory, and empties the
 * buffer.
 * errors  RESOURCE_EXHAUSTED  as of vxd_svdag_take_bytes; the buffer is still the caller's */
enum vxd_status vxd_svdag_keep_buffer(const struct vxd_svdag *svdag, size_t n_bytes,
                                      size_t *n_taken, struct vxd_buffer *buffer,
                                      struct vxd_err *err);

/* Finds an item or inserts it; *ref is its address. Thread-safe: equal items of a kind
 * are stored once, even if threads race. `height` is only for the counts (0 for blocks).
 * errors  RESOURCE_EXHAUSTED  at the budget; nothing is stored */
enum vxd_status vxd_svdag_put(struct vxd_svdag_writer *writer, enum vxd_svdag_kind kind,
                              int height, const uint32_t *words, int n_words,
                              uint32_t *ref, struct vxd_err *err);

/* The same in two steps, so that the memory which the second one reads is prefetched in
 * between. `hash` is the item's (vxd_svdag_hash). */
void vxd_svdag_prefetch(const struct vxd_svdag *svdag, uint64_t hash);
enum vxd_status vxd_svdag_put_hashed(struct vxd_svdag_writer *writer,
                                     const struct vxd_svdag_lookup_key *key, int height,
                                     uint32_t *ref, struct vxd_err *err);

/* True where the writer used the item recently; *ref is its reference. */
bool vxd_svdag_find_recent(struct vxd_svdag_writer *writer,
                           const struct vxd_svdag_lookup_key *key, uint32_t *ref);

/* The reference of an item, or VXD_SVDAG_EMPTY where the store does not have it. */
uint32_t vxd_svdag_find(const struct vxd_svdag *svdag, enum vxd_svdag_kind kind,
                        const uint32_t *words, int n_words);

enum {
    VXD_SVDAG_MAX_LEAF_WORDS = 10 /* 64 values of 4 bits */
};

/* leaf_put_cpu.c. Reads a reference of leaf height, also an empty or uniform one. The
 * leaf borrows `values`. */
void vxd_svdag_leaf_read(const struct vxd_svdag_view *view, uint32_t ref,
                         uint16_t values[64], struct vxd_svdag_leaf *leaf);

/* Makes the canonical words of a leaf; its block, if any, is inserted first. *n_words is
 * 0 where the leaf is empty or uniform; then *ref is its reference.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_leaf_make(struct vxd_svdag_writer *writer,
                                    const struct vxd_svdag_leaf *leaf,
                                    uint32_t words[VXD_SVDAG_MAX_LEAF_WORDS],
                                    int *n_words, uint32_t *ref, struct vxd_err *err);

/* The same, and inserts the item. */
enum vxd_status vxd_svdag_leaf_put(struct vxd_svdag_writer *writer,
                                   const struct vxd_svdag_leaf *leaf, uint32_t *ref,
                                   struct vxd_err *err);

/* inner_put_cpu.c. Inserts an inner node of this height from its eight children. */
enum vxd_status vxd_svdag_inner_put(struct vxd_svdag_writer *writer, int height,
                                    const uint32_t children[8], uint32_t *ref,
                                    struct vxd_err *err);

/* Counts the occupied and the FREE voxels of a reference of this height. Traverses nodes
 * higher than VXD_SVDAG_COUNT_HEIGHT with a stack of its own. */
void vxd_svdag_ref_count(const struct vxd_svdag_view *view, uint32_t ref, int height,
                         uint64_t *n_occupied, uint64_t *n_free);

enum {
    VXD_SVDAG_STATE_BYTES = 96
};

/* What an editor knows of a cube; children's states are made from it. */
union vxd_svdag_edit_state {
    uint64_t align;
    unsigned char bytes[VXD_SVDAG_STATE_BYTES];
};

/* An editor, as vxd_svdag_build calls it: it says what becomes of cubes and leaves.
 * Sharing, the canonical form, counts and threads are the same for all editors. Many
 * threads call its functions at once; args is constant. */
struct vxd_svdag_editor {
    /* Makes the state of the root's cube. */
    void (*begin)(const void *args, union vxd_svdag_edit_state *state);
    /* What becomes of a cube whose reference is `old` (its words may be read through the
     * view). May refine *state, from which the children's states are made. */
    enum vxd_svdag_visit (*visit)(const void *args, const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_cube *cube, uint32_t old,
                                  union vxd_svdag_edit_state *state, uint32_t *uniform);
    /* Answers `visit` for all eight children of a cube at once; `old` are their
     * references. If true, all descendants have the cube's state and no edit key. False:
     * each child has to be visited. NULL: always false. */
    bool (*classify)(const void *args, const struct vxd_svdag_cube *cube,
                     const union vxd_svdag_edit_state *state, const uint32_t old[8],
                     struct vxd_svdag_classes *classes);
    /* Makes the state of a child from its parent's. NULL: a copy. */
    void (*child)(const void *args, const struct vxd_svdag_view *view,
                  const struct vxd_svdag_cube *cube,
                  const union vxd_svdag_edit_state *state, int octant,
                  union vxd_svdag_edit_state *child);
    /* Makes the states of all eight children of a cube for which `classify` is false.
     * Returns a mask of the children that may change; states of others may be undefined.
     * NULL: `child` makes them. */
    unsigned (*split)(const void *args, const struct vxd_svdag_cube *cube,
                      const union vxd_svdag_edit_state *state,
                      union vxd_svdag_edit_state child_states[8]);
    /* Edits a leaf in place, after VXD_SVDAG_DESCEND. */
    void (*leaf)(const void *args, const struct vxd_svdag_view *view,
                 const struct vxd_svdag_cube *cube,
                 const union vxd_svdag_edit_state *state, struct vxd_svdag_leaf *leaf);
    /* Writes the edit key of a cube, at most VXD_SVDAG_EDIT_KEY_WORDS words. With `old`
     * and the height it decides what becomes of the cube, so a cube with the key of an
     * earlier one takes its result. Returns the number of words; 0: the cube has no key.
     * NULL: no cube has one. */
    int (*edit_key)(const void *args, const struct vxd_svdag_cube *cube,
                    const union vxd_svdag_edit_state *state, uint64_t *words);
    const void *args;
};

/* traversal_pool_cpu.c. Traverses the tree of `root` on the pool, when called. Adds to
 * *result and sets its root. Called by jobs of a queue.
 * errors  RESOURCE_EXHAUSTED; result->root is not to be used */
enum vxd_status vxd_svdag_build(struct vxd_pool *pool, struct vxd_svdag *svdag,
                                uint32_t root, const struct vxd_svdag_editor *editor,
                                struct vxd_svdag_edit_result *result,
                                struct vxd_err *err);

/* Editors for operations that were checked. shapes_editor.c: FILL to REPLACE, as many at
 * once as shapes_editor_math.h allows. `begin` may need memory for pyramids of heights;
 * `end` frees it. */
struct vxd_svdag_shapes;
enum vxd_status vxd_svdag_shapes_begin(struct vxd_svdag *svdag,
                                       const struct vxd_svdag_op *ops, size_t n,
                                       struct vxd_svdag_shapes **out,
                                       struct vxd_svdag_editor *editor,
                                       struct vxd_err *err);
void vxd_svdag_shapes_end(struct vxd_svdag_shapes *shapes);

/* copy_editor.c and morph_editor.c: one operation, whose source is the root before it.
 * The editor borrows `source`. */
void vxd_svdag_copy_editor(const struct vxd_svdag_source *source,
                           struct vxd_svdag_editor *editor);
void vxd_svdag_morph_editor(const struct vxd_svdag_source *source,
                            struct vxd_svdag_editor *editor);

#endif
