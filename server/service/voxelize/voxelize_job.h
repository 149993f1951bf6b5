// SPDX-License-Identifier: Apache-2.0
/* What the functions of a Voxelize request share: what check found out, and the engine
 * memory of the stages. Private to server/service/voxelize. */
#ifndef VXD_SERVER_SERVICE_VOXELIZE_VOXELIZE_JOB_H
#define VXD_SERVER_SERVICE_VOXELIZE_VOXELIZE_JOB_H

#include "gpu/voxel/voxel.h"
#include "server/service/clouds/clouds.h"
#include "voxeld/v1/voxelize.pb-c.h"

enum {
    VXD_VOXELIZE_MAX_CLOUDS = 1024
};

/* The engine's result arrays, in one block of device memory. */
enum vxd_result {
    VXD_RESULT_TOTALS,
    VXD_RESULT_STARTS,
    VXD_RESULT_COORDS,
    VXD_RESULT_COUNTS,
    VXD_RESULT_INVERSE,
    VXD_RESULT_FIRST_POINT,
    VXD_RESULT_MEAN,
    VXD_RESULT_SUM,
    VXD_RESULT_MIN,
    VXD_RESULT_MAX,
    VXD_RESULT_FIRST,
    VXD_RESULT_POINTS,
    VXD_N_RESULTS
};

struct vxd_result_array {
    bool selected;          /* whether the engine computes it */
    bool sent;              /* whether the client gets it */
    size_t row_bytes;       /* of one voxel, point or item */
    size_t offset;          /* in the results' block */
    struct vxd_buffer host; /* where a GPU's copy landed */
    const void *bytes;      /* readable after the second stage */
};

struct vxd_merge;

struct vxd_voxelize_job {
    const Voxeld__V1__VoxelizeRequest *input;
    struct vxd_voxelize_args args; /* positions and features are set by the first stage */
    struct vxd_clouds clouds;
    Voxeld__V1__VoxelRule rule; /* resolved */
    int32_t grid[3];            /* SPCONV */
    struct vxd_result_array results[VXD_N_RESULTS];
    size_t results_bytes;
    size_t features_offset; /* in the work block, behind the positions */
    size_t exact_offset;    /* of DOUBLE; likewise */
    size_t work_bytes;

    struct vxd_merge *merge; /* voxelize_merge.h; NULL = none */

    bool ran;     /* the first stage was submitted */
    bool fetched; /* the second */
    struct vxd_buffer work;
    struct vxd_buffer result_block;
};

/* Fills the reply; request->output is set. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_voxelize_reply(struct vxd_request *request, struct vxd_err *err);

/* Voxels of all items, once the first stage has run. */
static inline size_t vxd_voxelize_n_voxels(const struct vxd_voxelize_job *job)
{
    const uint32_t *starts = job->results[VXD_RESULT_STARTS].bytes;

    return starts[job->args.n_batch];
}

#endif
