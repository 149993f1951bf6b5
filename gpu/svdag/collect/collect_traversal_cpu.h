// SPDX-License-Identifier: Apache-2.0
/* The way over a store that transfers on the CPU and images share: what roots reach, marked
 * from the roots down, then handed out item by item, children first. */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_TRAVERSAL_CPU_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_TRAVERSAL_CPU_H

#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/collect/collect.h"
#include "gpu/svdag/collect/collect_math.h"

/* Items marked in one round of adding roots and all rounds before it: merged into one where a
 * third round begins. */
struct vxd_svdag_marks {
    struct vxd_svdag_mark **pages; /* by chunk; NULL: none of it is marked */
    struct vxd_buffer refs;        /* host: what the marked items became, by number */
    uint32_t n;
};

/* Takes an item whose references are those of where it goes; gives its own.
 * errors  any; the item is offered again by the next step */
typedef enum vxd_status (*vxd_svdag_put_fn)(void *args, struct vxd_svdag_writer *writer,
                                            enum vxd_svdag_kind kind,
                                            const uint32_t *words, int n_words,
                                            uint32_t *ref, struct vxd_err *err);

enum vxd_svdag_walk_phase {
    VXD_SVDAG_WALK_IDLE, /* no root is to be gone over */
    VXD_SVDAG_WALK_MERGE,
    VXD_SVDAG_WALK_MARK,
    VXD_SVDAG_WALK_RANK,
    VXD_SVDAG_WALK_STORE
};

struct vxd_svdag_walk {
    struct vxd_context *context;
    struct vxd_pool *pool; /* NULL: all in order, by the calling thread */
    struct vxd_svdag_view view;
    struct vxd_svdag *to; /* whose writers put gets, or NULL */
    vxd_svdag_put_fn put;
    void *put_args;
    pthread_mutex_t mutex;    /* guards what follows, up to `marks` */
    struct vxd_buffer *slabs; /* host: pages */
    size_t n_slabs;
    uint32_t n_slab_pages; /* of the last slab, handed out */
    enum vxd_status status;
    struct vxd_err err;
    struct vxd_svdag_marks marks[2];
    struct vxd_svdag_marks *fresh; /* one of them: this round's */
    struct vxd_buffer list; /* host: the round's items, by height from the highest on */
    uint32_t n_listed;
    uint32_t begins[VXD_SVDAG_N_HEIGHTS]; /* of the list, by height; 0 is for blocks */
    uint32_t ends[VXD_SVDAG_N_HEIGHTS];
    enum vxd_svdag_walk_phase phase;
    int height;
    uint32_t next;            /* of the list; of MERGE and RANK a chunk */
    uint32_t number;          /* RANK and MERGE: marks so far */
    struct vxd_buffer merged; /* MERGE */
    int first_left;   /* STORE: the first height of which an item waits for a child, or
                     * VXD_SVDAG_N_HEIGHTS */
    uint64_t n_put;   /* on this way up, */
    uint64_t n_nodes; /* and in all */
    uint64_t n_words;
};

/* errors  RESOURCE_EXHAUSTED; it is to be closed all the same */
enum vxd_status vxd_svdag_walk_open(struct vxd_svdag_walk *walk,
                                    struct vxd_context *context,
                                    const struct vxd_svdag_view *view,
                                    struct vxd_err *err);
void vxd_svdag_walk_close(struct vxd_svdag_walk *walk);

/* While it is idle begins a round; roots are then not needed any more. Where it has to merge the
 * marks of rounds before it does that alone, and is called again when it is idle: the phase
 * tells which. n_items is what the store has at least.
 * errors  RESOURCE_EXHAUSTED; nothing was begun */
enum vxd_status vxd_svdag_walk_begin(struct vxd_svdag_walk *walk, const uint32_t *roots,
                                     size_t n_roots, uint64_t n_items,
                                     struct vxd_err *err);

/* One piece of work. The round is over once the phase is IDLE. */
enum vxd_status vxd_svdag_walk_step(struct vxd_svdag_walk *walk, struct vxd_err *err);

/* What a reference has become; VXD_SVDAG_EMPTY where it is not there yet. */
uint32_t vxd_svdag_walk_ref(const struct vxd_svdag_walk *walk, uint32_t ref);

/* Nanoseconds of a steady clock. */
uint64_t vxd_svdag_now_ns(void);

/* A step's time: pieces go on while another one as long as the longest so far still fits. */
struct vxd_svdag_pace {
    uint64_t begin_ns;
    uint64_t last_ns; /* the last piece ended */
    uint64_t longest_ns;
    uint64_t max_ns;
};
struct vxd_svdag_pace vxd_svdag_pace_begin(uint64_t max_ns);
bool vxd_svdag_pace_goes_on(struct vxd_svdag_pace *pace);

#endif
