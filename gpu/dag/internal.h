// SPDX-License-Identifier: Apache-2.0
/* What the files of gpu/dag share: the store behind the opaque name, finding or inserting
 * nodes, and how an edit goes over a tree. */
#ifndef VXD_GPU_DAG_INTERNAL_H
#define VXD_GPU_DAG_INTERNAL_H

#include <stdatomic.h>

#include "gpu/core/internal.h"
#include "gpu/dag/dag_math.h"
#include "gpu/dag/edit.h"

/* What an item is: two of different kinds are never the same, whatever their words. */
enum vxd_dag_kind {
    VXD_DAG_LEAF = 0,
    VXD_DAG_INNER = 1,
    VXD_DAG_BLOCK = 2,
    VXD_DAG_N_KINDS = 3
};

/* arena_cpu.c: the store on the CPU. */
struct vxd_dag_arena;

struct vxd_dag {
    struct vxd_context *context;
    struct vxd_dag_spec spec;
    struct vxd_dag_view view;
    uint64_t max_visits;
    struct vxd_dag_arena *arena;
};

enum vxd_status vxd_dag_arena_create(struct vxd_queue *queue, struct vxd_dag *dag,
                                     struct vxd_err *err);
void vxd_dag_arena_destroy(struct vxd_queue *queue, struct vxd_dag *dag);
void vxd_dag_arena_get_usage(const struct vxd_dag *dag, struct vxd_dag_usage *out);

/* An item that a writer met: upper bits of its hash with its kind, and where it is. */
struct vxd_dag_met {
    uint32_t key;
    uint32_t ref;
};

/* One thread's way into the store, for the time of one edit: words to hand out without
 * asking others, and the items it met last. Zero-initialised but for dag; close gives back
 * what was not used. */
struct vxd_dag_writer {
    struct vxd_dag *dag;
    struct vxd_dag_met *met; /* made by the first put; without memory for it NULL */
    uint32_t next;           /* address of the first free word of the segment */
    uint32_t n_left;
    uint64_t n_lookups[VXD_DAG_MAX_DEPTH + 1];
    uint64_t n_new[VXD_DAG_MAX_DEPTH + 1];
};
void vxd_dag_writer_close(struct vxd_dag_writer *writer);

/* Finds an item, or stores it: *ref is its address. Thread-safe, equal items of a kind are
 * stored once whoever races; height is for the counts alone (0 for blocks).
 * errors  RESOURCE_EXHAUSTED  at the budget; nothing is stored */
enum vxd_status vxd_dag_put(struct vxd_dag_writer *writer, enum vxd_dag_kind kind,
                            int height, const uint32_t *words, int n_words, uint32_t *ref,
                            struct vxd_err *err);

/* The reference of an item that is there, VXD_DAG_EMPTY where it is not. */
uint32_t vxd_dag_find(const struct vxd_dag *dag, enum vxd_dag_kind kind,
                      const uint32_t *words, int n_words);

/* 4x4x4 voxels, apart. */
struct vxd_dag_leaf {
    uint64_t set;        /* occupied or FREE */
    uint64_t free;       /* of those, FREE; 0 where it is not tracked */
    uint16_t values[64]; /* materials of the occupied ones, others anything; not looked at
                          * where there are no materials */
};

/* leaf.c. Reads what stands at a reference of leaf height, empty and uniform ones too. */
void vxd_dag_leaf_read(const struct vxd_dag_view *view, uint32_t ref,
                       struct vxd_dag_leaf *leaf);

/* Stores a leaf in its canonical form, its block first; *ref may come out empty or uniform. */
enum vxd_status vxd_dag_leaf_put(struct vxd_dag_writer *writer,
                                 const struct vxd_dag_leaf *leaf, uint32_t *ref,
                                 struct vxd_err *err);

/* inner.c. Stores an inner node of this height from its eight children. */
enum vxd_status vxd_dag_inner_put(struct vxd_dag_writer *writer, int height,
                                  const uint32_t children[8], uint32_t *ref,
                                  struct vxd_err *err);

/* Occupied (and FREE) voxels below a reference of this height. Walks nodes higher than
 * VXD_DAG_COUNT_HEIGHT, with a stack of its own. */
void vxd_dag_ref_count(const struct vxd_dag_view *view, uint32_t ref, int height,
                       uint64_t *n_occupied, uint64_t *n_free);

/* A node's place: low corner in voxels, side 2^height. */
struct vxd_dag_cube {
    uint32_t x, y, z;
    int height;
};

/* What an edit does with a cube. */
enum vxd_dag_visit {
    VXD_DAG_KEEP,   /* stays as it is */
    VXD_DAG_SET,    /* becomes *uniform, an empty or uniform reference */
    VXD_DAG_DESCEND /* depends on the parts; of a leaf: on its voxels */
};

enum {
    VXD_DAG_STATE_BYTES = 96,
    VXD_DAG_SIGNATURE_WORDS = 10
};

/* An editor's memory of a cube, handed down. */
union vxd_dag_edit_state {
    uint64_t align;
    unsigned char bytes[VXD_DAG_STATE_BYTES];
};

/* One way over a tree (build_cpu.c goes it): the editor says what becomes of cubes and
 * leaves, everything else (identity, canonical form, counts, threads) is the same for all.
 * Its functions are called by many threads at once, args is constant. */
struct vxd_dag_editor {
    /* State of the whole scene's cube. */
    void (*begin)(const void *args, union vxd_dag_edit_state *state);
    /* `old` is what stands there (its words may be read through the view). May refine
     * *state, which the children's are made from. */
    enum vxd_dag_visit (*visit)(const void *args, const struct vxd_dag_view *view,
                                const struct vxd_dag_cube *cube, uint32_t old,
                                union vxd_dag_edit_state *state, uint32_t *uniform);
    /* State of a child from its parent's. NULL: a copy. */
    void (*child)(const void *args, const struct vxd_dag_view *view,
                  const struct vxd_dag_cube *cube, const union vxd_dag_edit_state *state,
                  int octant, union vxd_dag_edit_state *child);
    /* Changes a leaf in place, after DESCEND. */
    void (*leaf)(const void *args, const struct vxd_dag_view *view,
                 const struct vxd_dag_cube *cube, const union vxd_dag_edit_state *state,
                 struct vxd_dag_leaf *leaf);
    /* Whatever decides, with `old` and the height, what becomes of a cube that is gone into:
     * of two with equal words the second takes the first one's result. Fills words, of which
     * there is room for VXD_DAG_SIGNATURE_WORDS, and says how many; 0: the cube stands for
     * itself. NULL: every cube does. */
    int (*signature)(const void *args, const struct vxd_dag_cube *cube,
                     const union vxd_dag_edit_state *state, uint64_t *words);
    const void *args;
};

/* build_cpu.c. Goes over the tree of `root` at once, on the pool; adds to *result and sets
 * its root. Called by jobs.
 * errors  RESOURCE_EXHAUSTED; result->root is not to be used */
enum vxd_status vxd_dag_build(struct vxd_pool *pool, struct vxd_dag *dag, uint32_t root,
                              const struct vxd_dag_editor *editor,
                              struct vxd_dag_edit_result *result, struct vxd_err *err);

/* Editors; each makes one from operations that were checked. `first` and n say which.
 * shapes.c: FILL to REPLACE, at most VXD_DAG_SHAPES_OPS at once. Begin may need memory for
 * pyramids of heights; end frees it. */
enum {
    VXD_DAG_SHAPES_OPS = 64,
    VXD_DAG_SHAPES_LISTS = 4 /* of them, VOXELS */
};
struct vxd_dag_shapes;
enum vxd_status vxd_dag_shapes_begin(struct vxd_dag *dag, const struct vxd_dag_op *ops,
                                     size_t n, struct vxd_dag_shapes **out,
                                     struct vxd_dag_editor *editor, struct vxd_err *err);
void vxd_dag_shapes_end(struct vxd_dag_shapes *shapes);

/* copy.c and morph.c: one operation; the source is the root before it. args borrows op. */
struct vxd_dag_source {
    const struct vxd_dag_op *op;
    struct vxd_dag_view view;
    uint32_t root;
};
void vxd_dag_copy_editor(const struct vxd_dag_source *source,
                         struct vxd_dag_editor *editor);
void vxd_dag_morph_editor(const struct vxd_dag_source *source,
                          struct vxd_dag_editor *editor);

#endif
