// SPDX-License-Identifier: Apache-2.0
/* Voxelize in two stages, and a third that merges. The first brings the clouds to the
 * device, decodes them into one array of positions and features, and groups it. The
 * second copies back as many rows of each selected array as there are voxels. On the CPU
 * nothing is copied. */
#include "server/service/voxelize/voxelize_job.h"

#include "server/service/service.h"
#include "server/service/voxelize/voxelize_merge.h"

/* What 2 GiB leave for the arrays beside all other fields. */
#define MAX_REPLY_BYTES ((size_t)INT32_MAX - ((size_t)1 << 20))

static void *result_at(const struct vxd_voxelize_job *job, enum vxd_result i)
{
    const struct vxd_result_array *result = &job->results[i];

    return result->selected ? (uint8_t *)job->result_block.ptr + result->offset : NULL;
}

static enum vxd_status download(struct vxd_voxelize_job *job, struct vxd_queue *queue,
                                enum vxd_result i, size_t n_rows, struct vxd_err *err)
{
    struct vxd_result_array *result = &job->results[i];

    if (!result->selected || n_rows == 0) {
        return VXD_OK;
    }
    return vxd_download(queue, result_at(job, i), n_rows * result->row_bytes,
                        &result->host, &result->bytes, err);
}

static enum vxd_status submit_grouping(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_voxelize_job *job = request->state;
    struct vxd_voxels voxels;
    float *positions;
    float *features;
    enum vxd_status status;

    job->ran = true;
    VXD_TRY(vxd_device_alloc(queue, job->work_bytes, &job->work, err));
    VXD_TRY(vxd_device_alloc(queue, job->results_bytes, &job->result_block, err));
    positions = job->work.ptr;
    features = job->args.n_channels > 0 && job->work.ptr != NULL
                   ? (float *)(void *)((uint8_t *)job->work.ptr + job->features_offset)
                   : NULL;
    if (job->args.rule == VXD_RULE_DOUBLE && job->work.ptr != NULL) {
        job->clouds.exact =
            (double *)(void *)((uint8_t *)job->work.ptr + job->exact_offset);
        job->args.exact = job->clouds.exact;
    }
    VXD_TRY(vxd_clouds_decode(&job->clouds, queue, positions, features, err));
    job->args.positions = positions;
    job->args.features = features;
    voxels = (struct vxd_voxels){
        .capacity = vxd_voxelize_capacity(&job->args),
        .totals = result_at(job, VXD_RESULT_TOTALS),
        .starts = result_at(job, VXD_RESULT_STARTS),
        .coords = result_at(job, VXD_RESULT_COORDS),
        .counts = result_at(job, VXD_RESULT_COUNTS),
        .inverse = result_at(job, VXD_RESULT_INVERSE),
        .first_point = result_at(job, VXD_RESULT_FIRST_POINT),
        .mean = result_at(job, VXD_RESULT_MEAN),
        .sum = result_at(job, VXD_RESULT_SUM),
        .min = result_at(job, VXD_RESULT_MIN),
        .max = result_at(job, VXD_RESULT_MAX),
        .first = result_at(job, VXD_RESULT_FIRST),
        .points = result_at(job, VXD_RESULT_POINTS),
    };
    VXD_TRY(vxd_voxelize(queue, &job->args, &voxels, err));
    VXD_TRY(download(job, queue, VXD_RESULT_TOTALS, (size_t)job->args.n_batch, err));
    VXD_TRY(download(job, queue, VXD_RESULT_STARTS, (size_t)job->args.n_batch + 1, err));
    request->more = true;
out:
    return status;
}

static size_t result_rows(const struct vxd_voxelize_job *job, size_t i)
{
    return i == VXD_RESULT_INVERSE ? job->args.n_points : vxd_voxelize_n_voxels(job);
}

/* protobuf's lengths are int32, and only now is it known how many voxels there are. */
static enum vxd_status check_reply(const struct vxd_voxelize_job *job,
                                   struct vxd_err *err)
{
    size_t n_bytes = 0; /* below the device's budget: no overflow */

    for (size_t i = VXD_RESULT_COORDS; i < VXD_N_RESULTS; i++) {
        if (job->results[i].sent) {
            n_bytes += result_rows(job, i) * job->results[i].row_bytes;
        }
    }
    if (n_bytes > MAX_REPLY_BYTES) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the reply would have %zu bytes, at most %zu are possible: ask "
                        "for fewer outputs, channels or max_points",
                        n_bytes, MAX_REPLY_BYTES);
    }
    return VXD_OK;
}

/* The clouds' memory is given back first, since the second stage needs only the results. */
static void free_work(struct vxd_voxelize_job *job, struct vxd_queue *queue)
{
    vxd_clouds_free(&job->clouds, queue);
    vxd_device_free(queue, &job->work);
}

enum vxd_status vxd_voxelize_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct vxd_voxelize_job *job = request->state;
    bool needs_rows;
    enum vxd_status status;

    if (!job->ran) {
        return submit_grouping(request, queue, err);
    }
    if (job->fetched) {
        return vxd_merge_submit(request, queue, err);
    }
    job->fetched = true;
    needs_rows = vxd_merge_needs_rows(request);
    free_work(job, queue);
    VXD_TRY(check_reply(job, err));
    for (size_t i = VXD_RESULT_COORDS; i < VXD_N_RESULTS; i++) {
        /* Merging reads the coordinates on the host, and the rest on the device. */
        bool is_merged = i == VXD_RESULT_COUNTS || i == VXD_RESULT_SUM;

        if (job->results[i].sent || i == VXD_RESULT_COORDS ||
            (needs_rows && is_merged && job->results[i].selected)) {
            VXD_TRY(download(job, queue, (enum vxd_result)i, result_rows(job, i), err));
        }
    }
    request->more = job->merge != NULL;
out:
    return status;
}

enum vxd_status vxd_voxelize_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const struct vxd_voxelize_job *job = request->state;

    if (job->merge == NULL) {
        return vxd_voxelize_reply(request, err);
    }
    vxd_merge_finish(request, queue);
    return VXD_OK;
}

void vxd_voxelize_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_voxelize_job *job = request->state;

    free_work(job, queue);
    if (job->merge != NULL) {
        vxd_merge_release(request, queue);
    }
    vxd_device_free(queue, &job->result_block);
    for (size_t i = 0; i < VXD_N_RESULTS; i++) {
        vxd_host_free(vxd_queue_context(queue), &job->results[i].host);
    }
}
