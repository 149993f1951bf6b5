// SPDX-License-Identifier: Apache-2.0
/* What the files of gpu/svdag share: the store behind the opaque name, finding or inserting
 * nodes, and how an edit goes over a tree. */
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
    const struct vxd_svdag_store_ops *ops; /* what spec.store says */
    /* Of a context on a GPU, where the store was handed in. NULL: it is an arena. */
    const struct vxd_svdag_device_ops *device_ops;
    struct vxd_svdag_arena *arena;   /* on the CPU, one of these two: of an arena, */
    void *own;                       /* and of a store that was handed in */
    struct vxd_svdag_device *device; /* device.h; of a context on a GPU */
};

/* An item that a writer met: upper bits of its hash with its kind, and where it is. */
struct vxd_svdag_recent_item {
    uint32_t key;
    uint32_t ref;
};

/* One thread's way into the store, for the time of one edit: words to hand out without
 * asking others, and the items it met last. Zero-initialised but for svdag; close gives back
 * what was not used. */
struct vxd_svdag_writer {
    struct vxd_svdag *svdag;
    struct vxd_svdag_recent_item
        *recent;   /* made by the first put; without memory for it NULL */
    uint32_t next; /* address of the first free word of the segment */
    uint32_t n_left;
    uint64_t n_lookups[VXD_SVDAG_MAX_DEPTH + 1];
    uint64_t n_new[VXD_SVDAG_MAX_DEPTH + 1];
};
void vxd_svdag_writer_close(struct vxd_svdag_writer *writer);

/* What is looked for, or stored. */
struct vxd_svdag_lookup_key {
    uint64_t hash;
    const uint32_t *words;
    enum vxd_svdag_kind kind;
    int n_words;
};

/* A way of keeping items. All but create, destroy are thread-safe, and create
 * leaves nothing where it fails. */
struct vxd_svdag_store_ops {
    /* Sets what of the view and of *svdag is the store's. */
    enum vxd_status (*create)(struct vxd_queue *queue, struct vxd_svdag *svdag,
                              struct vxd_err *err);
    void (*destroy)(struct vxd_queue *queue, struct vxd_svdag *svdag);
    /* As vxd_svdag_put; says whether the item is new. */
    enum vxd_status (*put)(struct vxd_svdag_writer *writer,
                           const struct vxd_svdag_lookup_key *key, uint32_t *ref,
                           bool *is_new, struct vxd_err *err);
    uint32_t (*find)(const struct vxd_svdag *svdag,
                     const struct vxd_svdag_lookup_key *key);
    /* Gets memory under way that a put of this hash will look at. NULL: none. */
    void (*prefetch)(const struct vxd_svdag *svdag, uint64_t hash);
    /* Takes back what a writer has for itself. */
    void (*close)(struct vxd_svdag_writer *writer);
    void (*get_usage)(const struct vxd_svdag *svdag, struct vxd_svdag_usage *out);
};
extern const struct vxd_svdag_store_ops vxd_svdag_arena_cpu;
/* device.c, all stores. Items come and go by edits (edit_cuda.c) and transfers alone: put, find
 * and close are NULL. */
extern const struct vxd_svdag_store_ops vxd_svdag_store_cuda;

/* Whether a stored item of the kind is these words. Equal first words (of a leaf the first
 * two) tell equal lengths: no read goes past its end. */
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

/* store.c. Device memory within the store's budget and the context's; *n_taken is what the store has,
 * guarded by the caller's lock. */
enum vxd_status vxd_svdag_take_bytes(const struct vxd_svdag *svdag, size_t n_bytes,
                                     size_t *n_taken, void **out, struct vxd_err *err);
void vxd_svdag_release_bytes(const struct vxd_svdag *svdag, void *memory);
/* CPU backend: makes the first n_bytes of a host buffer such memory, and empties the buffer.
 * errors  RESOURCE_EXHAUSTED  as of vxd_svdag_take_bytes; the buffer is still the caller's */
enum vxd_status vxd_svdag_keep_buffer(const struct vxd_svdag *svdag, size_t n_bytes,
                                      size_t *n_taken, struct vxd_buffer *buffer,
                                      struct vxd_err *err);

/* Finds an item, or stores it: *ref is its address. Thread-safe, equal items of a kind are
 * stored once whoever races; height is for the counts alone (0 for blocks).
 * errors  RESOURCE_EXHAUSTED  at the budget; nothing is stored */
enum vxd_status vxd_svdag_put(struct vxd_svdag_writer *writer, enum vxd_svdag_kind kind,
                              int height, const uint32_t *words, int n_words,
                              uint32_t *ref, struct vxd_err *err);

/* The same in two steps: between them the memory comes that the second one looks at. `hash` is
 * the item's (vxd_svdag_hash). */
void vxd_svdag_prefetch(const struct vxd_svdag *svdag, uint64_t hash);
enum vxd_status vxd_svdag_put_hashed(struct vxd_svdag_writer *writer,
                                     const struct vxd_svdag_lookup_key *key, int height,
                                     uint32_t *ref, struct vxd_err *err);

/* True where the writer met the item lately: *ref is its reference. */
bool vxd_svdag_find_recent(struct vxd_svdag_writer *writer,
                           const struct vxd_svdag_lookup_key *key, uint32_t *ref);

/* The reference of an item that is there, VXD_SVDAG_EMPTY where it is not. */
uint32_t vxd_svdag_find(const struct vxd_svdag *svdag, enum vxd_svdag_kind kind,
                        const uint32_t *words, int n_words);

enum {
    VXD_SVDAG_MAX_LEAF_WORDS = 10 /* 64 values of 4 bits */
};

/* leaf.c. Reads what stands at a reference of leaf height, empty and uniform ones too; the leaf
 * borrows values. */
void vxd_svdag_leaf_read(const struct vxd_svdag_view *view, uint32_t ref,
                         uint16_t values[64], struct vxd_svdag_leaf *leaf);

/* The canonical form of a leaf, whose block is stored first. Where that is an item, *n_words is
 * their number, else 0 and *ref empty or uniform.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_leaf_make(struct vxd_svdag_writer *writer,
                                    const struct vxd_svdag_leaf *leaf,
                                    uint32_t words[VXD_SVDAG_MAX_LEAF_WORDS],
                                    int *n_words, uint32_t *ref, struct vxd_err *err);

/* The same, and stores the item. */
enum vxd_status vxd_svdag_leaf_put(struct vxd_svdag_writer *writer,
                                   const struct vxd_svdag_leaf *leaf, uint32_t *ref,
                                   struct vxd_err *err);

/* inner.c. Stores an inner node of this height from its eight children. */
enum vxd_status vxd_svdag_inner_put(struct vxd_svdag_writer *writer, int height,
                                    const uint32_t children[8], uint32_t *ref,
                                    struct vxd_err *err);

/* Occupied (and FREE) voxels below a reference of this height. Walks nodes higher than
 * VXD_SVDAG_COUNT_HEIGHT, with a stack of its own. */
void vxd_svdag_ref_count(const struct vxd_svdag_view *view, uint32_t ref, int height,
                         uint64_t *n_occupied, uint64_t *n_free);

enum {
    VXD_SVDAG_STATE_BYTES = 96
};

/* An editor's memory of a cube, handed down. */
union vxd_svdag_edit_state {
    uint64_t align;
    unsigned char bytes[VXD_SVDAG_STATE_BYTES];
};

/* One way over a tree (build_cpu.c goes it): the editor says what becomes of cubes and
 * leaves, everything else (identity, canonical form, counts, threads) is the same for all.
 * Its functions are called by many threads at once, args is constant. */
struct vxd_svdag_editor {
    /* State of the whole scene's cube. */
    void (*begin)(const void *args, union vxd_svdag_edit_state *state);
    /* `old` is what stands there (its words may be read through the view). May refine
     * *state, which the children's are made from. */
    enum vxd_svdag_visit (*visit)(const void *args, const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_cube *cube, uint32_t old,
                                  union vxd_svdag_edit_state *state, uint32_t *uniform);
    /* What visit would say of the eight parts of a cube that is gone into, all at once, `old` being
     * what stands at each; then the cube's state is that of all below, and each stands for itself
     * (signature). False: each has to be visited. NULL: always. */
    bool (*classify)(const void *args, const struct vxd_svdag_cube *cube,
                     const union vxd_svdag_edit_state *state, const uint32_t old[8],
                     struct vxd_svdag_classes *classes);
    /* State of a child from its parent's. NULL: a copy. */
    void (*child)(const void *args, const struct vxd_svdag_view *view,
                  const struct vxd_svdag_cube *cube,
                  const union vxd_svdag_edit_state *state, int octant,
                  union vxd_svdag_edit_state *child);
    /* States of all eight children at once, of cubes for which visit_parts does not tell, and a mask
     * of those that may change: of others there need be none. NULL: by child. */
    unsigned (*split)(const void *args, const struct vxd_svdag_cube *cube,
                      const union vxd_svdag_edit_state *state,
                      union vxd_svdag_edit_state child_states[8]);
    /* Changes a leaf in place, after DESCEND. */
    void (*leaf)(const void *args, const struct vxd_svdag_view *view,
                 const struct vxd_svdag_cube *cube,
                 const union vxd_svdag_edit_state *state, struct vxd_svdag_leaf *leaf);
    /* Whatever decides, with `old` and the height, what becomes of a cube that is gone into:
     * of two with equal words the second takes the first one's result. Fills words, of which
     * there is room for VXD_SVDAG_EDIT_KEY_WORDS, and says how many; 0: the cube stands for
     * itself. NULL: every cube does. */
    int (*edit_key)(const void *args, const struct vxd_svdag_cube *cube,
                    const union vxd_svdag_edit_state *state, uint64_t *words);
    const void *args;
};

/* build_cpu.c. Goes over the tree of `root` at once, on the pool; adds to *result and sets
 * its root. Called by jobs.
 * errors  RESOURCE_EXHAUSTED; result->root is not to be used */
enum vxd_status vxd_svdag_build(struct vxd_pool *pool, struct vxd_svdag *svdag,
                                uint32_t root, const struct vxd_svdag_editor *editor,
                                struct vxd_svdag_edit_result *result,
                                struct vxd_err *err);

/* Editors; each makes one from operations that were checked. `first` and n say which.
 * shapes.c: FILL to REPLACE, as many at once as shapes_math.h says. Begin may need memory for
 * pyramids of heights; end frees it. */
struct vxd_svdag_shapes;
enum vxd_status vxd_svdag_shapes_begin(struct vxd_svdag *svdag,
                                       const struct vxd_svdag_op *ops, size_t n,
                                       struct vxd_svdag_shapes **out,
                                       struct vxd_svdag_editor *editor,
                                       struct vxd_err *err);
void vxd_svdag_shapes_end(struct vxd_svdag_shapes *shapes);

/* copy.c and morph.c: one operation; the source is the root before it. args borrows op. */
void vxd_svdag_copy_editor(const struct vxd_svdag_source *source,
                           struct vxd_svdag_editor *editor);
void vxd_svdag_morph_editor(const struct vxd_svdag_source *source,
                            struct vxd_svdag_editor *editor);

#endif
