// SPDX-License-Identifier: Apache-2.0
/* The traversal that collections on the CPU and images share: it marks what roots reach
 * from the roots down, then hands it out item by item, children first. */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_TRAVERSAL_CPU_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_TRAVERSAL_CPU_H

#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/collect/collect.h"
#include "gpu/svdag/collect/collect_math.h"

/* The items marked in one round of roots, or in all rounds before it, whose marks are
 * merged when a third round begins. */
struct vxd_svdag_marks {
    struct vxd_svdag_mark **pages; /* by chunk; NULL: it has no mark */
    struct vxd_buffer refs; /* host: new references of the marked items, by number */
    uint32_t n;
};

/* Takes an item, whose references are those of the target; returns the item's own
 * reference in the target.
 * errors  any; the item is offered again by the next step */
typedef enum vxd_status (*vxd_svdag_put_fn)(void *args, struct vxd_svdag_writer *writer,
                                            enum vxd_svdag_kind kind,
                                            const uint32_t *words, int n_words,
                                            uint32_t *ref, struct vxd_err *err);

enum vxd_svdag_collect_phase {
    VXD_SVDAG_COLLECT_IDLE, /* no round is running */
    VXD_SVDAG_COLLECT_MERGE,
    VXD_SVDAG_COLLECT_MARK,
    VXD_SVDAG_COLLECT_RANK,
    VXD_SVDAG_COLLECT_PUT
};

struct vxd_svdag_collect_traversal {
    struct vxd_context *context;
    struct vxd_pool *pool; /* NULL: in order, by the calling thread */
    struct vxd_svdag_view view;
    struct vxd_svdag *to; /* put gets writers of this store; NULL: none */
    vxd_svdag_put_fn put;
    void *put_args;
    pthread_mutex_t mutex;    /* guards the members up to `marks` */
    struct vxd_buffer *slabs; /* host: memory of pages */
    size_t n_slabs;
    uint32_t n_slab_pages; /* pages of the last slab in use */
    enum vxd_status status;
    struct vxd_err err;
    struct vxd_svdag_marks marks[2];
    struct vxd_svdag_marks *fresh; /* this round's marks */
    struct vxd_buffer list; /* host: the round's items by height, from the highest down */
    uint32_t n_listed;
    uint32_t
        begins[VXD_SVDAG_N_HEIGHTS]; /* ranges in the list by height; 0 means blocks */
    uint32_t ends[VXD_SVDAG_N_HEIGHTS];
    enum vxd_svdag_collect_phase phase;
    int height;
    uint32_t next;            /* index in the list; a chunk in MERGE and RANK */
    uint32_t number;          /* RANK and MERGE: number of marks so far */
    struct vxd_buffer merged; /* MERGE: the merged references */
    int first_left; /* PUT: the first height at which an item waits for a child, or VXD_SVDAG_N_HEIGHTS */
    uint64_t n_put;   /* items put since the way up last began */
    uint64_t n_nodes; /* items put in all */
    uint64_t n_words;
};

/* errors  RESOURCE_EXHAUSTED; it has to be closed nevertheless */
enum vxd_status
vxd_svdag_collect_traversal_open(struct vxd_svdag_collect_traversal *traversal,
                                 struct vxd_context *context,
                                 const struct vxd_svdag_view *view, struct vxd_err *err);
void vxd_svdag_collect_traversal_close(struct vxd_svdag_collect_traversal *traversal);

/* Begins a round, while it is idle; the roots are copied. Where the marks of earlier
 * rounds have to be merged first it does only that, and has to be called again when it is
 * idle: the phase says which. n_items is at least the number of the store's items.
 * errors  RESOURCE_EXHAUSTED; nothing was begun */
enum vxd_status
vxd_svdag_collect_traversal_begin(struct vxd_svdag_collect_traversal *traversal,
                                  const uint32_t *roots, size_t n_roots, uint64_t n_items,
                                  struct vxd_err *err);

/* Does one piece of work. The round is over once the phase is IDLE. */
enum vxd_status
vxd_svdag_collect_traversal_step(struct vxd_svdag_collect_traversal *traversal,
                                 struct vxd_err *err);

/* The new reference of a reference; VXD_SVDAG_EMPTY where it has none yet. */
uint32_t
vxd_svdag_collect_traversal_ref(const struct vxd_svdag_collect_traversal *traversal,
                                uint32_t ref);

/* Nanoseconds of a monotonic clock. */
uint64_t vxd_svdag_now_ns(void);

/* Time limit of a step: another piece begins only while a piece as long as the longest so
 * far would still fit. */
struct vxd_svdag_pace {
    uint64_t begin_ns;
    uint64_t last_ns; /* end of the last piece */
    uint64_t longest_ns;
    uint64_t max_ns;
};
struct vxd_svdag_pace vxd_svdag_pace_begin(uint64_t max_ns);
bool vxd_svdag_pace_goes_on(struct vxd_svdag_pace *pace);

#endif
