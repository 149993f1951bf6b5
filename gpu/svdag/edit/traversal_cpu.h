// SPDX-License-Identifier: Apache-2.0
/* How a thread goes through one cube of a tree with an editor, for build_cpu.c, which shares
 * cubes out. */
#ifndef VXD_GPU_SVDAG_EDIT_TRAVERSAL_CPU_H
#define VXD_GPU_SVDAG_EDIT_TRAVERSAL_CPU_H

#include "gpu/svdag/edit/change_count.h"

enum {
    VXD_SVDAG_N_HEIGHTS = VXD_SVDAG_MAX_DEPTH + 1,
    VXD_SVDAG_N_EDIT_MEMO = 512, /* signatures a thread remembers */
    VXD_SVDAG_N_PENDING = 16 /* nodes of a height, and leaves, that wait to be stored */
};

/* What a cube was to its editor. */
struct vxd_svdag_edit_key {
    int n_words;
    int height;
    uint32_t old;
    uint64_t words[VXD_SVDAG_EDIT_KEY_WORDS];
};

/* A cube that was gone into, and what came of it. */
struct vxd_svdag_edit_memo_entry {
    struct vxd_svdag_edit_key edit_key;
    uint32_t ref;
    struct vxd_svdag_change change;
};

/* An inner node that is made. */
struct vxd_svdag_made {
    uint32_t *ref; /* where its reference goes */
    uint32_t old;
    uint32_t children[8];
};

/* A leaf that is made; its words are not in the thread's memory of items. */
struct vxd_svdag_made_leaf {
    uint32_t *ref;
    uint64_t hash;
    int n_words;
    uint32_t words[VXD_SVDAG_MAX_LEAF_WORDS];
};

/* A cube on the way down. */
struct vxd_svdag_frame {
    struct vxd_svdag_cube cube;
    uint32_t old;
    uint32_t *ref;      /* where what it becomes goes */
    unsigned relations; /* a mask of the parts that are still to be looked at */
    bool is_classified; /* the editor classified them, and all of them are expanded */
    bool is_split;      /* parts are the states of all of them */
    struct vxd_svdag_made *node;
    union vxd_svdag_edit_state *state; /* its own, or one of or for a frame above */
    union vxd_svdag_edit_state own;
    union vxd_svdag_edit_state child_states[8];
    struct vxd_svdag_edit_key edit_key;
    struct vxd_svdag_edit_memo_entry
        *memo_entry;                /* for it; NULL where it stands for itself */
    struct vxd_svdag_change before; /* the walker's, when it was gone into */
};

/* What all threads share. */
struct vxd_svdag_traversal {
    struct vxd_svdag *svdag;
    const struct vxd_svdag_view *view;
    const struct vxd_svdag_editor *editor;
    atomic_bool has_failed;
    atomic_uint_fast64_t n_visits;
};

/* What a thread has for itself: open before the first use, then vxd_svdag_writer_close. Not small:
 * of what is not used nothing is touched. */
struct vxd_svdag_walker {
    atomic_flag is_busy;
    bool has_edit_memo; /* the places below are made */
    struct vxd_svdag_writer writer;
    struct vxd_svdag_change change;
    uint32_t n_visits;                    /* not yet among the way's */
    uint32_t n_made[VXD_SVDAG_N_HEIGHTS]; /* nodes by height; the last one may be open */
    uint32_t n_leaves;
    struct vxd_svdag_made_leaf leaves[VXD_SVDAG_N_PENDING];
    struct vxd_svdag_change_memo memo;
    struct vxd_svdag_made made[VXD_SVDAG_N_HEIGHTS][VXD_SVDAG_N_PENDING];
    struct vxd_svdag_edit_memo_entry edit_memo[VXD_SVDAG_N_EDIT_MEMO];
};

/* Of memory with anything in it. */
void vxd_svdag_walker_open(struct vxd_svdag_walker *walker, struct vxd_svdag *svdag);

/* Finds what a cube above leaf height becomes, or that its parts decide (*is_open). Of the frame
 * cube, old, ref and state are set; what is in the state is refined.
 * errors  RESOURCE_EXHAUSTED  the store is full, or the edit looks at too much */
enum vxd_status vxd_svdag_traversal_visit(struct vxd_svdag_traversal *traversal,
                                          struct vxd_svdag_walker *walker,
                                          struct vxd_svdag_frame *at, bool *expands,
                                          struct vxd_err *err);

/* What stands at the eight parts of an inner or uniform reference. */
void vxd_svdag_read_children(const struct vxd_svdag_view *view, uint32_t ref,
                             uint32_t children[8]);

/* Stores a node whose children are known, if one of them changed.
 * errors  RESOURCE_EXHAUSTED  the store is full */
enum vxd_status vxd_svdag_traversal_reduce(const struct vxd_svdag_traversal *traversal,
                                           struct vxd_svdag_walker *walker, int height,
                                           const struct vxd_svdag_made *made,
                                           struct vxd_err *err);

/* Depth first through a cube and all below it; *ref is what it becomes. Ends early where another
 * thread has failed.
 * errors  as vxd_svdag_traversal_visit */
enum vxd_status vxd_svdag_traversal_run(struct vxd_svdag_traversal *traversal,
                                        struct vxd_svdag_walker *walker,
                                        const struct vxd_svdag_cube *cube, uint32_t old,
                                        const union vxd_svdag_edit_state *state,
                                        uint32_t *ref, struct vxd_err *err);

#endif
