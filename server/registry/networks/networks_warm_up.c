// SPDX-License-Identifier: Apache-2.0
#include "server/registry/networks/networks_warm_up.h"

#include <stddef.h>
#include <string.h>

#include "gpu/core/core.h"
#include "proto/base/clock.h"

enum {
    MAX_VOXELS = 8,
    /* What is measured: a square of the ground, as scans have it near the sensor. */
    PATCH_BITS = 6,
    PATCH_SIDE = 1 << PATCH_BITS,
    N_PATCH = PATCH_SIDE * PATCH_SIDE,
    N_MEASURED = 3 /* runs, of which the best counts: other work delays some */
};

/* A patch's voxels have more neighbours than those of scans, and take about so much more time. */
#define PATCH_TO_SCAN 0.6

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

/* Runs the network on voxels in host memory; blocking. */
static enum vxd_status run_host(struct vxd_network *network, struct vxd_queue *queue,
                                const struct vxd_buffer *host,
                                struct vxd_net_input *input, size_t features_offset,
                                struct vxd_err *err)
{
    struct vxd_buffer device = {0};
    const void *uploaded;
    enum vxd_status status;

    VXD_TRY(vxd_upload(queue, host->ptr, host->n_bytes, &device, &uploaded, err));
    input->coords = uploaded;
    input->features =
        (const float *)(const void *)((const uint8_t *)uploaded + features_offset);
    VXD_TRY(run_all(network, queue, input, err));
out:
    vxd_device_free(queue, &device);
    (void)vxd_queue_wait(queue, NULL);
    return status;
}

enum vxd_status vxd_network_warm_up(struct vxd_network *network, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct vxd_context *context = vxd_queue_context(queue);
    struct vxd_buffer host = {0};
    struct vxd_net_input input = {.n_samples = 1};
    enum vxd_status status = vxd_host_alloc(context, sizeof(struct voxels), &host, err);

    if (status != VXD_OK) {
        return status;
    }
    input.n_rows = make_voxels(vxd_model_input(network->model), host.ptr);
    status =
        run_host(network, queue, &host, &input, offsetof(struct voxels, features), err);
    vxd_host_free(context, &host);
    return status;
}

/* --- measuring ---------------------------------------------------------------------------- */

/* The even bits of a number, which is a column's place in Morton order. */
static int32_t even_bits(uint32_t number)
{
    uint32_t bits = 0;

    for (int i = 0; i < PATCH_BITS; i++) {
        bits |= (number >> 2 * i & 1) << i;
    }
    return (int32_t)bits;
}

/* Makes a level patch of the ground, in Morton order, its corner at a multiple of its side. Fills
 * nothing and returns false where the network looks at less. */
static bool make_patch(const struct vxd_model_input *input, int32_t (*coords)[4])
{
    int32_t low[3];

    for (int i = 0; i < 3; i++) {
        int32_t least = i < 2 ? 2 * PATCH_SIDE : 1;

        if (input->shape[i] != 0 && input->shape[i] < least) {
            return false;
        }
        low[i] = i < 2 ? input->shape[i] / 2 & ~(PATCH_SIDE - 1) : input->shape[i] / 2;
    }
    for (uint32_t i = 0; i < N_PATCH; i++) {
        coords[i][0] = 0;
        coords[i][1] = low[0] + even_bits(i >> 1);
        coords[i][2] = low[1] + even_bits(i);
        coords[i][3] = low[2];
    }
    return true;
}

enum vxd_status vxd_network_measure(struct vxd_network *network, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct vxd_context *context = vxd_queue_context(queue);
    const struct vxd_model_input *model = vxd_model_input(network->model);
    size_t n_features = (size_t)model->n_features * N_PATCH;
    size_t offset = sizeof(int32_t) * 4 * N_PATCH;
    struct vxd_net_input input = {.n_samples = 1, .n_rows = N_PATCH};
    struct vxd_buffer host = {0};
    enum vxd_status status =
        vxd_host_alloc(context, offset + n_features * sizeof(float), &host, err);

    if (status != VXD_OK) {
        return status;
    }
    if (!make_patch(model, host.ptr)) {
        vxd_host_free(context, &host);
        return VXD_OK;
    }
    for (size_t i = 0; i < n_features; i++) {
        ((float *)(void *)((uint8_t *)host.ptr + offset))[i] = 1;
    }
    for (int i = 0; status == VXD_OK && i < N_MEASURED; i++) {
        int64_t began_ns = vxd_clock_ns();

        status = run_host(network, queue, &host, &input, offset, err);
        if (status == VXD_OK) {
            vxd_network_speed_note(&network->speed,
                                   (double)(vxd_clock_ns() - began_ns) * PATCH_TO_SCAN,
                                   N_PATCH, 0);
        }
    }
    vxd_host_free(context, &host);
    return status;
}
