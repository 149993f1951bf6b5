// SPDX-License-Identifier: Apache-2.0
/* The named pose graphs, as posegraphs.h gives them to others. All functions belong to the write lane
 * unless they say "any thread"; an optimization or a search copies what it needs there and then runs
 * elsewhere. A graph that a request holds lives on when its name is dropped.
 *
 * Memory is the host's: a graph may grow up to its own max_bytes and to what limits.posegraph_bytes
 * leaves. */
#ifndef VXD_SERVER_REGISTRY_POSEGRAPHS_NAMED_POSEGRAPHS_H
#define VXD_SERVER_REGISTRY_POSEGRAPHS_NAMED_POSEGRAPHS_H

#include "proto/base/name.h"
#include "server/durable/journal/journal.h"
#include "server/registry/posegraphs/posegraph_content.h"
#include "server/request/request.h"

enum {
    VXD_POSEGRAPHS_MAX = 4096,
    VXD_POSEGRAPHS_MAX_RUNNING = 64
};

#define VXD_POSEGRAPH_JOURNAL_BYTES                                                      \
    ((uint64_t)256 << 20) /* the default of journal_max_bytes */

struct vxd_posegraphs;

struct vxd_posegraph_terms {
    char name[VXD_NAME_BYTES];
    char owner[VXD_NAME_BYTES];
    uint64_t max_bytes; /* 0 = the limits' */
    bool durable;       /* it is in the journal */
    enum vxd_fsync fsync;
    uint64_t journal_max_bytes; /* a snapshot is written when its records have so many */
};

/* How a durable graph stands in the journal; the write lane's. Sequence numbers are those of the
 * graph's family there. */
struct vxd_posegraph_durable {
    uint32_t journal_id; /* 0: the graph is not durable */
    uint64_t sequence;   /* of the last record that was handed over */
    uint64_t decided;    /* of the last one on disk */
    size_t n_waiting;    /* changes that were handed over and are not decided */
    bool is_leaving;     /* it is being dropped */
    bool is_gone;        /* it was dropped, or could not be made: its name is free */
    /* Memory has changes that the disk lacks: one failed, and others were built on it. Nobody sees
     * the graph until it is brought back. */
    bool is_broken;
};

struct vxd_named_posegraph {
    struct vxd_posegraph_terms terms;
    struct vxd_posegraph_content content;
    uint64_t generation;
    int64_t created_unix_ns;
    struct vxd_posegraph_durable durable;
    /* These belong to the list. */
    size_t n_bytes; /* as accounted */
    int references;
    struct vxd_named_posegraph *next; /* by name */
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_posegraphs_create(struct vxd_server *server,
                                      struct vxd_posegraphs **out, struct vxd_err *err);

/* No request may run. NULL is fine. */
void vxd_posegraphs_destroy(struct vxd_posegraphs *posegraphs);

/* NULL where there is none. */
struct vxd_named_posegraph *vxd_posegraphs_find(struct vxd_posegraphs *posegraphs,
                                                const char *name);

/* Returns the next graph in order of names; the first one for NULL. */
struct vxd_named_posegraph *vxd_posegraphs_next(struct vxd_posegraphs *posegraphs,
                                                const struct vxd_named_posegraph *graph);

/* Makes an empty graph that nobody can find yet, with one reference.
 * errors  RESOURCE_EXHAUSTED  too many graphs, or no memory */
enum vxd_status vxd_named_posegraph_new(struct vxd_posegraphs *posegraphs,
                                        const struct vxd_posegraph_terms *terms,
                                        struct vxd_named_posegraph **out,
                                        struct vxd_err *err);

/* Gives the graph its name, which is free, and takes a reference. It cannot fail. */
void vxd_posegraphs_publish(struct vxd_posegraphs *posegraphs,
                            struct vxd_named_posegraph *graph);

/* Takes the name away. The graph is freed with its last reference. */
void vxd_posegraphs_remove(struct vxd_posegraphs *posegraphs,
                           struct vxd_named_posegraph *graph);

void vxd_named_posegraph_hold(struct vxd_named_posegraph *graph);
void vxd_named_posegraph_drop(struct vxd_posegraphs *posegraphs,
                              struct vxd_named_posegraph *graph);

/* Refuses to let a graph grow by more bytes than are left.
 * errors  RESOURCE_EXHAUSTED  names the limit */
enum vxd_status vxd_posegraphs_check_bytes(const struct vxd_posegraphs *posegraphs,
                                           const struct vxd_named_posegraph *graph,
                                           size_t n_more, struct vxd_err *err);

/* Accounts for the graph's memory after it may have grown. */
void vxd_posegraphs_account(struct vxd_posegraphs *posegraphs,
                            struct vxd_named_posegraph *graph);

/* Any thread. What a solver may take at most. */
size_t vxd_posegraphs_solver_bytes(const struct vxd_posegraphs *posegraphs);

/* --- optimizations that run, any thread ----------------------------------------------------- */

struct vxd_posegraph_run {
    char name[VXD_NAME_BYTES]; /* of the graph */
    uint64_t generation;
    char request_id[VXD_NAME_BYTES];
    int n_iterations;
    double cost;
    int64_t started_unix_ns;
};

/* Lists a run; its number is for the other two. -1: there are too many to list, which is no error. */
int vxd_posegraphs_begin_run(struct vxd_posegraphs *posegraphs,
                             const struct vxd_posegraph_run *run);
void vxd_posegraphs_note_run(struct vxd_posegraphs *posegraphs, int number,
                             int n_iterations, double cost);
void vxd_posegraphs_end_run(struct vxd_posegraphs *posegraphs, int number);
/* Copies the runs of a graph; returns how many. */
size_t vxd_posegraphs_list_runs(struct vxd_posegraphs *posegraphs,
                                const struct vxd_named_posegraph *graph,
                                struct vxd_posegraph_run out[VXD_POSEGRAPHS_MAX_RUNNING]);

struct vxd_posegraphs_usage {
    size_t n_posegraphs;
    uint64_t n_bytes;
    uint64_t limit_bytes;
    size_t n_durable;
    uint64_t n_snapshots; /* files of durable graphs written, and failed */
    uint64_t n_failed_snapshots;
};

/* Any thread. */
void vxd_posegraphs_get_usage(const struct vxd_posegraphs *posegraphs,
                              struct vxd_posegraphs_usage *out);

#endif
