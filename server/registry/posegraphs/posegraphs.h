// SPDX-License-Identifier: Apache-2.0
/* The named pose graphs: a table of named things (server/registry/named). All functions belong to the write lane unless they say "any thread"; an optimization or a search
 * copies what it needs there and then runs elsewhere.
 *
 * Memory is the host's: a graph may grow up to its own max_bytes and to what limits.posegraph_bytes
 * leaves. */
#ifndef VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_H
#define VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_H

#include "server/registry/named/named.h"
#include "server/registry/posegraphs/posegraph_content.h"

enum {
    VXD_POSEGRAPHS_MAX = 4096,
    VXD_POSEGRAPHS_MAX_RUNNING = 64,
    VXD_POSEGRAPHS_MAX_REBUILDS = 16 /* at once */
};

struct vxd_named_posegraph {
    struct vxd_named named; /* first: a struct vxd_named of this table is one */
    struct vxd_posegraph_content content;
};

/* Makes the table of pose graphs. vxd_names_destroy frees it.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_posegraphs_create(struct vxd_server *server, struct vxd_names **out,
                                      struct vxd_err *err);

/* NULL where there is none. */
struct vxd_named_posegraph *vxd_posegraphs_find(struct vxd_names *posegraphs,
                                                const char *name);

/* Makes an empty graph that nobody can find yet, with one reference.
 * errors  RESOURCE_EXHAUSTED  too many graphs, or no memory */
enum vxd_status vxd_named_posegraph_new(struct vxd_names *posegraphs,
                                        const struct vxd_named_terms *terms,
                                        struct vxd_named_posegraph **out,
                                        struct vxd_err *err);

/* Refuses to let a graph grow by more bytes than are left.
 * errors  RESOURCE_EXHAUSTED  names the limit */
enum vxd_status vxd_posegraph_check_bytes(const struct vxd_named_posegraph *graph,
                                          size_t n_more, struct vxd_err *err);

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
int vxd_posegraphs_begin_run(struct vxd_names *posegraphs,
                             const struct vxd_posegraph_run *run);
void vxd_posegraphs_note_run(struct vxd_names *posegraphs, int number, int n_iterations,
                             double cost);
void vxd_posegraphs_end_run(struct vxd_names *posegraphs, int number);
/* Copies the runs of a graph; returns how many. */
size_t vxd_posegraphs_list_runs(struct vxd_names *posegraphs,
                                const struct vxd_named_posegraph *graph,
                                struct vxd_posegraph_run out[VXD_POSEGRAPHS_MAX_RUNNING]);

/* --- rebuilds that run, one a graph; any thread --------------------------------------------- */

struct vxd_posegraph_rebuild {
    char name[VXD_NAME_BYTES]; /* of the graph */
    uint64_t generation;
    char request_id[VXD_NAME_BYTES];
    char scene[VXD_NAME_BYTES]; /* one of the two is "" */
    char volume[VXD_NAME_BYTES];
    uint64_t n_done; /* keyframes */
    uint64_t n_keyframes;
    int64_t started_unix_ns;
    bool is_cancelled;
};

/* Lists a rebuild; its number, from 0, is for the next three.
 * errors  FAILED_PRECONDITION  the graph has one that runs
 *         RESOURCE_EXHAUSTED   too many */
enum vxd_status vxd_posegraphs_begin_rebuild(struct vxd_names *posegraphs,
                                             const struct vxd_posegraph_rebuild *rebuild,
                                             int *number, struct vxd_err *err);
void vxd_posegraphs_note_rebuild(struct vxd_names *posegraphs, int number,
                                 uint64_t n_done);
bool vxd_posegraphs_is_cancelled(struct vxd_names *posegraphs, int number);
void vxd_posegraphs_end_rebuild(struct vxd_names *posegraphs, int number);
/* Copies the rebuild of a graph, and with `cancels` has it end; false: none runs. */
bool vxd_posegraphs_find_rebuild(struct vxd_names *posegraphs,
                                 const struct vxd_named_posegraph *graph, bool cancels,
                                 struct vxd_posegraph_rebuild *out);

#endif
