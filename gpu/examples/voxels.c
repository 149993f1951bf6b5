// SPDX-License-Identifier: Apache-2.0
/* The engine inside another program: voxelizes points on the GPU, or on the CPU where none answers.
 * Build: cc voxels.c $(pkg-config --cflags --libs --static voxeld-engine) */
#include <inttypes.h>
#include <stdio.h>

#include "gpu/core/core.h"
#include "gpu/voxel/voxel.h"

enum {
    N_POINTS = 6
};

static const float points_m[N_POINTS][3] = {{0.01f, 0.02f, 0.0f}, {0.03f, 0.04f, 0.05f},
                                            {0.26f, 0.0f, 0.0f},  {0.27f, 0.01f, 0.0f},
                                            {-0.01f, 0.0f, 0.0f}, {0.28f, 0.02f, 0.0f}};

/* What comes back of one sample, in one block of device memory. */
struct results {
    struct vxd_voxel_totals totals[1];
    uint32_t starts[2];
    int32_t coords[N_POINTS][4];
    uint32_t counts[N_POINTS];
};

static void print(const struct results *results)
{
    (void)printf("%" PRIu32 " voxels from %d points\n", results->starts[1], N_POINTS);
    for (uint32_t i = 0; i < results->starts[1]; i++) {
        const int32_t *c = results->coords[i];

        (void)printf("(%" PRId32 ", %" PRId32 ", %" PRId32 ") of %" PRIu32 " points\n",
                     c[1], c[2], c[3], results->counts[i]);
    }
}

/* Work is queued, and runs at the latest while the queue is waited for. */
static enum vxd_status run(struct vxd_queue *queue, struct vxd_err *err)
{
    static const uint32_t batch_starts[2] = {0, N_POINTS};
    struct vxd_buffer d_points = {0};
    struct vxd_buffer d_results = {0};
    struct vxd_buffer h_results = {0};
    const void *positions = NULL;
    const void *results = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_upload(queue, points_m, sizeof points_m, &d_points, &positions, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(struct results), &d_results, err));
    {
        struct results *d = d_results.ptr;
        const struct vxd_voxelize_args args = {.positions = positions,
                                               .n_points = N_POINTS,
                                               .batch_starts = batch_starts,
                                               .n_batch = 1,
                                               .rule = VXD_RULE_MINKOWSKI,
                                               .size_m = {0.1f, 0.1f, 0.1f}};
        const struct vxd_voxels out = {.capacity = N_POINTS,
                                       .totals = d->totals,
                                       .starts = d->starts,
                                       .coords = &d->coords[0][0],
                                       .counts = d->counts};

        VXD_TRY(vxd_voxelize(queue, &args, &out, err));
    }
    VXD_TRY(vxd_download(queue, d_results.ptr, sizeof(struct results), &h_results,
                         &results, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    print(results);
out:
    (void)vxd_queue_wait(queue, NULL); /* what was queued uses the buffers */
    vxd_device_free(queue, &d_points);
    vxd_device_free(queue, &d_results);
    vxd_host_free(vxd_queue_context(queue), &h_results);
    return status;
}

int main(void)
{
    struct vxd_context_options options = {.backend = VXD_BACKEND_CPU};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;

    if (vxd_cuda_device_count(NULL, 0) > 0) {
        options.backend = VXD_BACKEND_CUDA;
    }
    VXD_TRY(vxd_context_create(&options, &context, &err));
    VXD_TRY(vxd_queue_create(context, &queue, &err));
    VXD_TRY(run(queue, &err));
out:
    if (status != VXD_OK) {
        (void)fprintf(stderr, "%s %s\n", err.field, err.message);
    }
    vxd_queue_destroy(queue);
    if (context != NULL) {
        vxd_context_destroy(context);
    }
    return status == VXD_OK ? 0 : 1;
}
