// SPDX-License-Identifier: Apache-2.0
#include "server/registry/networks/networks_warm_up.h"

#include <string.h>

#include "gpu/core/core.h"

enum {
    MAX_VOXELS = 8
};

struct voxels {
    int32_t coords[MAX_VOXELS][4];
    float features[MAX_VOXELS * VXD_MAX_CHANNELS];
};

/* A block of up to 2 x 2 x 2 in the middle of the network's shape. It begins at even
 * coordinates, so the plain loops give Morton order. */
static size_t make_voxels(const struct vxd_model_input *input, struct voxels *out)
{
    int32_t low[3];
    int32_t side[3];
    size_t n = 0;

    for (int i = 0; i < 3; i++) {
        low[i] = input->shape[i] / 2 & ~1;
        side[i] = input->shape[i] == 0 || input->shape[i] - low[i] >= 2 ? 2 : 1;
    }
    for (int32_t x = 0; x < side[0]; x++) {
        for (int32_t y = 0; y < side[1]; y++) {
            for (int32_t z = 0; z < side[2]; z++) {
                out->coords[n][0] = 0;
                out->coords[n][1] = low[0] + x;
                out->coords[n][2] = low[1] + y;
                out->coords[n][3] = low[2] + z;
                n++;
            }
        }
    }
    for (size_t i = 0; i < n * (size_t)input->n_features; i++) {
        out->features[i] = 1;
    }
    return n;
}

static enum vxd_status run_all(struct vxd_network *network, struct vxd_queue *queue,
                               const struct vxd_net_input *input, struct vxd_err *err)
{
    struct vxd_net_run *run = NULL;
    enum vxd_status status;
    bool more = true;

    VXD_TRY(vxd_net_run_create(queue, network->net, input, &run, err));
    while (more) {
        VXD_TRY(vxd_net_run_step(queue, run, &more, err));
        VXD_TRY(vxd_queue_wait(queue, err));
    }
out:
    /* Steps that a failed one has queued may still read the input. */
    (void)vxd_queue_wait(queue, NULL);
    vxd_net_run_destroy(queue, run);
    return status;
}

enum vxd_status vxd_network_warm_up(struct vxd_network *network, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct vxd_context *context = vxd_queue_context(queue);
    struct vxd_buffer host = {0};
    struct vxd_buffer device = {0};
    const void *uploaded;
    const struct voxels *voxels;
    struct vxd_net_input input = {.n_samples = 1};
    enum vxd_status status;

    VXD_TRY(vxd_host_alloc(context, sizeof *voxels, &host, err));
    input.n_rows = make_voxels(vxd_model_input(network->model), host.ptr);
    VXD_TRY(vxd_upload(queue, host.ptr, sizeof *voxels, &device, &uploaded, err));
    voxels = uploaded;
    input.coords = &voxels->coords[0][0];
    input.features = voxels->features;
    VXD_TRY(run_all(network, queue, &input, err));
out:
    vxd_device_free(queue, &device);
    (void)vxd_queue_wait(queue, NULL);
    vxd_host_free(context, &host);
    return status;
}
