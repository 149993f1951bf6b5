// SPDX-License-Identifier: Apache-2.0
#include "server/warm_up.h"

#include "gpu/core/core.h"
#include "gpu/voxel/voxel.h"

enum {
    N_POINTS = 1024,
    N_CHANNELS = 4, /* x, y, z, intensity */
    POINT_BYTES = N_CHANNELS * sizeof(float)
};

/* One block of device memory. */
struct results {
    struct vxd_voxel_totals totals[1];
    uint32_t starts[2];
    int32_t coords[N_POINTS][4];
    uint32_t counts[N_POINTS];
    int32_t inverse[N_POINTS];
    float mean[N_POINTS][N_CHANNELS];
    float positions[N_POINTS][3];
    float features[N_POINTS][N_CHANNELS];
};

/* Makes a diagonal line with about two points in a voxel. */
static void make_points(float (*points)[N_CHANNELS])
{
    for (int i = 0; i < N_POINTS; i++) {
        for (int c = 0; c < N_CHANNELS; c++) {
            points[i][c] = (float)i * 0.25f;
        }
    }
}

static struct vxd_cloud describe(const void *data)
{
    struct vxd_cloud cloud = {.data = data,
                              .n_points = N_POINTS,
                              .point_step = POINT_BYTES,
                              .rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                              .n_channels = N_CHANNELS};

    for (uint32_t c = 0; c < N_CHANNELS; c++) {
        const struct vxd_field field = {c * sizeof(float), VXD_FLOAT32, 1, 0};

        cloud.channels[c] =
            (struct vxd_channel){.kind = VXD_CHANNEL_FIELD, .field = field};
        if (c < 3) {
            cloud.position[c] = field;
        }
    }
    return cloud;
}

static enum vxd_status submit(struct vxd_queue *queue, const void *points,
                              struct results *results, struct vxd_err *err)
{
    static const uint32_t batch_starts[2] = {0, N_POINTS};
    const struct vxd_cloud cloud = describe(points);
    const struct vxd_voxelize_args args = {
        .positions = &results->positions[0][0],
        .features = &results->features[0][0],
        .n_points = N_POINTS,
        .n_channels = N_CHANNELS,
        .batch_starts = batch_starts,
        .n_batch = 1,
        .rule = VXD_RULE_MINKOWSKI,
        .size_m = {0.5f, 0.5f, 0.5f},
    };
    const struct vxd_voxels out = {
        .capacity = N_POINTS,
        .totals = results->totals,
        .starts = results->starts,
        .coords = &results->coords[0][0],
        .counts = results->counts,
        .inverse = results->inverse,
        .mean = &results->mean[0][0],
    };
    enum vxd_status status;

    VXD_TRY(vxd_cloud_decode(queue, &cloud, &results->positions[0][0],
                             &results->features[0][0], err));
    VXD_TRY(vxd_voxelize(queue, &args, &out, err));
out:
    return status;
}

enum vxd_status vxd_warm_up(struct vxd_context *context, struct vxd_err *err)
{
    struct vxd_queue *queue = NULL;
    struct vxd_buffer host = {0};
    struct vxd_buffer points = {0};
    struct vxd_buffer results = {0};
    struct vxd_buffer totals = {0};
    const void *d_points;
    const void *h_totals;
    enum vxd_status status;
    enum vxd_status wait_status;

    VXD_TRY(vxd_queue_create(context, &queue, err));
    VXD_TRY(vxd_host_alloc(context, (size_t)N_POINTS * POINT_BYTES, &host, err));
    make_points(host.ptr);
    VXD_TRY(vxd_upload(queue, host.ptr, host.n_bytes, &points, &d_points, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(struct results), &results, err));
    VXD_TRY(submit(queue, d_points, results.ptr, err));
    VXD_TRY(vxd_download(queue, results.ptr, sizeof(struct vxd_voxel_totals), &totals,
                         &h_totals, err));
out:
    if (queue != NULL) {
        /* What was queued uses the buffers, also after a failure. */
        wait_status = vxd_queue_wait(queue, status == VXD_OK ? err : NULL);
        status = status == VXD_OK ? wait_status : status;
        vxd_device_free(queue, &points);
        vxd_device_free(queue, &results);
        vxd_host_free(context, &totals);
    }
    vxd_host_free(context, &host);
    vxd_queue_destroy(queue);
    return status;
}
