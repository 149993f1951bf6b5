// SPDX-License-Identifier: Apache-2.0
/* What the functions of an inference share. check makes a request's job; the run belongs
 * to the batch, and the first request of a batch owns it, alone or not. Private to
 * server/service/infer.
 *
 * Stages: decode and group points (networks that normalize do so between the two, on the
 * host); coordinate sets and kernel maps; layers, some of them a stage; how many rows
 * there are; the requested rows, in their types, to where the reply takes them. */
#ifndef VXD_SERVER_SERVICE_INFER_INFER_H
#define VXD_SERVER_SERVICE_INFER_INFER_H

#include "server/registry/networks/networks.h"
#include "server/service/clouds/clouds.h"
#include "voxeld/v1/network.pb-c.h"

/* An array that the reply will have. */
struct vxd_infer_array {
    size_t n_bytes;
    struct vxd_buffer device;
    struct vxd_buffer host; /* CUDA: where the copy lands */
    const void *bytes;      /* readable once the queue has run */
};

/* One output of the network, for one request. */
struct vxd_infer_output {
    bool is_selected;
    size_t n_rows;
    int64_t shape[4]; /* of the values, or with argmax of labels and scores */
    size_t n_shape;
    struct vxd_infer_array values;
    struct vxd_infer_array labels;
    struct vxd_buffer coords; /* host */
    uint64_t *first_rows;     /* VOXELS: n_items + 1 */
};

enum vxd_infer_stage {
    VXD_INFER_DECODE = 0,
    VXD_INFER_NORMALIZE,
    VXD_INFER_MAPS,
    VXD_INFER_LAYERS,
    VXD_INFER_COUNTS,
    VXD_INFER_OUTPUTS,
    VXD_INFER_JUDGE, /* of networks in fp16: the outputs are there, and are looked at */
    VXD_INFER_TRACE  /* they are not finite: a second run finds the layer */
};

/* What happened to points before vxd_voxelize saw them. */
struct vxd_infer_dropped {
    uint32_t n_non_finite;
    uint32_t n_out_of_range;
    uint32_t n_not_picked;
};

struct vxd_infer_batch {
    struct vxd_network *network; /* the leader's */
    enum vxd_infer_stage stage;
    size_t n_items;
    size_t n_points; /* as sent */
    size_t n_requests;
    bool wants_inverse;

    struct vxd_voxelize_args args;
    uint32_t *starts;                  /* n_items + 1: of the points that are voxelized */
    struct vxd_infer_dropped *dropped; /* n_items */
    size_t features_offset;            /* in work, behind the positions */
    struct vxd_buffer work;
    struct vxd_buffer results;
    /* In results, device memory. */
    struct vxd_voxels voxels;
    float *features;
    const int32_t *inverse; /* of every point sent */
    /* Host, after their stage. */
    const struct vxd_voxel_totals *totals;
    const uint32_t *voxel_starts;
    struct vxd_buffer totals_host;
    struct vxd_buffer starts_host;

    /* Networks that normalize. */
    const float *raw_positions;
    const float *raw_features;
    struct vxd_buffer raw_positions_host;
    struct vxd_buffer raw_features_host;
    struct vxd_buffer
        normal_host; /* positions, features and picked indices of what is kept */
    struct vxd_buffer normal_device;
    const uint32_t *picked;
    const int32_t *kept_inverse;
    struct vxd_buffer kept_inverse_host;
    struct vxd_buffer inverse_host;
    struct vxd_buffer inverse_device;

    struct vxd_net_run *run;
    struct vxd_net_result *net_results; /* one an output of the model */
    struct vxd_buffer *row_starts_host; /* likewise */
    const uint32_t **row_starts;

    bool overflows;             /* some output is not finite */
    const char *overflow_layer; /* where that began; NULL: not in a layer */

    struct vxd_network_timings timings;
    int64_t timed_ns; /* the leader's engine_ns up to the stage that runs */
};

struct vxd_infer_job {
    const Voxeld__V1__InferRequest *input;
    struct vxd_network *network; /* held from check to forget */
    struct vxd_clouds clouds;
    enum vxd_dtype dtype;
    struct vxd_infer_output *outputs; /* one an output of the model */
    size_t first_item;                /* in the batch */
    size_t first_point;
    struct vxd_infer_batch *batch; /* the leader's; NULL before submit */
};

/* Returns the next request that runs with `leader`, which comes first; NULL after the
 * last. */
static inline struct vxd_request *vxd_infer_next(const struct vxd_request *leader,
                                                 const struct vxd_request *request)
{
    return request == leader ? leader->companions : request->next_companion;
}

/* infer_check.c: has a checked request return the labels by point and nothing else.
 * in      name    an output, "" = the only one that is such
 * out     index   of it in the model
 * errors  INVALID_ARGUMENT  no such output; err.field "network" or "output" */
enum vxd_status vxd_infer_choose_labels(struct vxd_infer_job *job, const char *name,
                                        size_t *index, struct vxd_err *err);

/* infer_time.c: whether the request can be in time, as far as the network's speed here is known.
 * errors  FAILED_PRECONDITION  it cannot: says how long it would take, and what to do */
enum vxd_status vxd_infer_check_time(struct vxd_request *request,
                                     struct vxd_network *network,
                                     const struct vxd_network_work *work,
                                     struct vxd_err *err);

/* infer_input.c: enqueues making voxels of points; the leader's job->batch is set.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_infer_decode(struct vxd_request *leader, struct vxd_queue *queue,
                                 struct vxd_err *err);
enum vxd_status vxd_infer_normalize(struct vxd_request *leader, struct vxd_queue *queue,
                                    struct vxd_err *err);

/* Fills in the arguments of the network's own voxelization, without points, within what a
 * network can count. */
void vxd_infer_voxelize_args(const struct vxd_model_input *input,
                             struct vxd_voxelize_args *out);

/* infer_normalize.c: normalizes on the host. The batch's raw positions and features are
 * there; this makes starts, dropped, and the kept rows in normal_host.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_infer_pick(struct vxd_request *leader, struct vxd_queue *queue,
                               struct vxd_err *err);
/* Spreads the kept points' inverse map over all points, on the device: batch->inverse.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_infer_spread_inverse(struct vxd_request *leader,
                                         struct vxd_queue *queue, struct vxd_err *err);

/* infer_output.c: enqueues copying the results to the requests' arrays.
 * errors  RESOURCE_EXHAUSTED; INTERNAL  the engine's results do not fit the model */
enum vxd_status vxd_infer_fetch_counts(struct vxd_request *leader,
                                       struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_infer_fetch_outputs(struct vxd_request *leader,
                                        struct vxd_queue *queue, struct vxd_err *err);
void vxd_infer_free_outputs(struct vxd_request *request, struct vxd_queue *queue);

/* infer_overflow.c: whether all values of an item's rows are finite; -1 = of all items. */
bool vxd_infer_is_finite(const struct vxd_infer_job *job, int item);
/* Whether those of all requests are. */
bool vxd_infer_all_finite(const struct vxd_request *leader);
/* Runs the network once more with counts of what is not finite; errors as of the first run. */
enum vxd_status vxd_infer_begin_trace(struct vxd_request *leader, struct vxd_queue *queue,
                                      struct vxd_err *err);
enum vxd_status vxd_infer_end_trace(struct vxd_request *leader, struct vxd_queue *queue,
                                    struct vxd_err *err);

/* infer_reply.c: makes request->output.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_infer_reply(struct vxd_request *request,
                                const struct vxd_infer_batch *batch, struct vxd_err *err);

#endif
