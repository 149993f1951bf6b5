// SPDX-License-Identifier: Apache-2.0
/* What the methods of posegraph.proto share. Private to server/service/posegraph.
 *
 * check (any thread) looks at what the message alone says. Graphs are found in submit, on the write
 * lane. Optimizations and searches copy there what they need, in their first stage, and go on with the
 * read lanes, a step or a candidate a stage. */
#ifndef VXD_SERVER_SERVICE_POSEGRAPH_POSEGRAPH_SERVICE_H
#define VXD_SERVER_SERVICE_POSEGRAPH_POSEGRAPH_SERVICE_H

#include "gpu/relocalize/relocalize.h"
#include "server/registry/posegraphs/posegraphs.h"
#include "server/request/request.h"
#include "server/service/clouds/clouds.h"
#include "server/service/noun/noun.h"
#include "voxeld/v1/posegraph.pb-c.h"

enum {
    VXD_POSEGRAPH_MAX_ARRAYS = 16
};

struct vxd_posegraph_job {
    struct vxd_named_posegraph *graph; /* held */
    struct vxd_named_commit commit;
    void *arrays[VXD_POSEGRAPH_MAX_ARRAYS]; /* of the reply; freed by release */
    size_t n_arrays;
};

/* --- posegraph_job.c ------------------------------------------------------------------------ */

/* Finds the graph and holds it: job->graph.
 * errors  NOT_FOUND; UNAVAILABLE  of a durable graph */
enum vxd_status vxd_posegraph_open(struct vxd_request *request, const char *name,
                                   struct vxd_err *err);

/* For a request that goes on with the read lanes: finds the graph, whose changes are all decided, to be
 * read in this stage alone; *graph NULL: they are not yet, and the stage comes again. */
enum vxd_status vxd_posegraph_peek(struct vxd_request *request, const char *name,
                                   const struct vxd_named_posegraph **graph,
                                   struct vxd_err *err);

/* Moves the request's next stages to the read lanes. */
void vxd_posegraph_go_on_reading(struct vxd_request *request);

/* Makes a tensor of n rows over memory of the job's, zeroed; columns 0: one extent only.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_posegraph_tensor(struct vxd_request *request, enum vxd_dtype dtype,
                                     size_t n, size_t columns,
                                     Voxeld__V1__Tensor **tensor, void **array,
                                     struct vxd_err *err);

/* An absent pose is the identity.
 * errors  INVALID_ARGUMENT  not finite, or no unit quaternion */
enum vxd_status vxd_posegraph_read_pose(const Voxeld__V1__Pose *pose, const char *field,
                                        struct vxd_rigid *out, struct vxd_err *err);

/* Makes a Pose in the decoder; NULL after an error: RESOURCE_EXHAUSTED. */
Voxeld__V1__Pose *vxd_posegraph_new_pose(struct vxd_decoder *decoder,
                                         const struct vxd_rigid *pose,
                                         struct vxd_err *err);

/* --- posegraph_commit.c --------------------------------------------------------------------- */

/* Makes a change, within the limits, and has it journalled where the graph is durable.
 * errors  as vxd_posegraph_apply; RESOURCE_EXHAUSTED  names the limit */
enum vxd_status vxd_posegraph_change(struct vxd_request *request,
                                     struct vxd_posegraph_record *record,
                                     struct vxd_err *err);

/* Ends a request, in finish, when its reply is complete, in another way than by a change: a graph was
 * made or dropped, or read. graph NULL: all graphs were read. */
void vxd_posegraph_conclude(struct vxd_request *request, struct vxd_named_commit *commit,
                            struct vxd_named_posegraph *graph,
                            enum vxd_named_change kind);

/* --- posegraph_solve.c ---------------------------------------------------------------------- */

/* Has the search end where nobody waits for `waiting` any more, a request that it is a prerequisite
 * of. After check. */
void vxd_posegraph_solve_for(struct vxd_request *request, struct vxd_request *waiting);

/* --- posegraph_keyframe.c: clouds and descriptors ------------------------------------------- */

/* A cloud and its descriptor, as requests send them. */
struct vxd_posegraph_scan {
    Voxeld__V1__Cloud *cloud; /* NULL: none */
    const char *network;
    const char *output;
    float *descriptor; /* the request's, or malloc'ed */
    size_t n_descriptor;
    bool owns_descriptor;
    struct vxd_clouds clouds;
    struct vxd_buffer positions; /* device */
    struct vxd_buffer host;      /* CUDA: where the copy lands */
    float *points;               /* host, finite ones, malloc'ed; after fetch */
    size_t n_points;
};

/* errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_posegraph_scan_check(struct vxd_request *request,
                                         struct vxd_posegraph_scan *scan,
                                         struct vxd_err *err);

/* Sends the cloud through the network, if one is named, as the request's prerequisite. */
enum vxd_status vxd_posegraph_scan_prerequisite(struct vxd_request *request,
                                                const struct vxd_posegraph_scan *scan,
                                                bool *waits, struct vxd_err *err);
/* Keeps the network's descriptor. */
enum vxd_status vxd_posegraph_scan_take(struct vxd_posegraph_scan *scan,
                                        const ProtobufCMessage *output,
                                        struct vxd_err *err);
/* Decodes the cloud's points to scan->points. Waits for the queue. */
enum vxd_status vxd_posegraph_scan_fetch(struct vxd_posegraph_scan *scan,
                                         struct vxd_queue *queue, struct vxd_err *err);
/* Frees what decoding took; on a lane. */
void vxd_posegraph_scan_free(struct vxd_posegraph_scan *scan, struct vxd_queue *queue);
/* Frees what is malloc'ed; any thread. */
void vxd_posegraph_scan_forget(struct vxd_posegraph_scan *scan);

#endif
