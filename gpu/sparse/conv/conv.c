// SPDX-License-Identifier: Apache-2.0
/* The public entry of convolutions: checks and dispatch. */
#include "gpu/sparse/conv/conv.h"

#include "gpu/sparse/conv/conv_backends.h"

static enum vxd_status check_rows(const struct vxd_rows *rows, int n_channels,
                                  const char *field, struct vxd_err *err)
{
    if (rows->data == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "missing");
    }
    if (rows->n_channels != n_channels || rows->stride < (size_t)n_channels) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "%d channels, %zu elements apart; the weights have %d",
                        rows->n_channels, rows->stride, n_channels);
    }
    return VXD_OK;
}

static enum vxd_status check_args(const struct vxd_conv_args *args, struct vxd_err *err)
{
    const struct vxd_conv_weights *weights = args->weights;
    enum vxd_status status;

    if (weights == NULL || weights->data.ptr == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "weights", "missing");
    }
    if (args->n_rows == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_rows", "missing");
    }
    if (weights->n_taps != (args->map != NULL ? args->map->n_taps : 1)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "map",
                        "weights of %d taps, the map has %d", weights->n_taps,
                        args->map != NULL ? args->map->n_taps : 1);
    }
    if ((int)args->act < VXD_ACT_NONE || (int)args->act > VXD_ACT_SIGMOID) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "act", "%d is no activation",
                        (int)args->act);
    }
    VXD_TRY(check_rows(&args->in, weights->n_in, "in", err));
    VXD_TRY(check_rows(&args->out, weights->n_out, "out", err));
    if (args->add.data != NULL) {
        VXD_TRY(check_rows(&args->add, weights->n_out, "add", err));
    }
    if (args->in.data == args->out.data) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "out", "is the input");
    }
out:
    return status;
}

enum vxd_status vxd_conv_run(struct vxd_queue *queue, const struct vxd_conv_args *args,
                             struct vxd_err *err)
{
    struct vxd_conv_call call = {.args = *args, .has_map = args->map != NULL};
    enum vxd_status status;

    VXD_TRY(check_args(args, err));
    call.weights = *args->weights;
    if (call.has_map) {
        call.map = *args->map;
    }
    call.args.map = NULL;
    call.args.weights = NULL;
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_conv_run)(queue, &call, err));
out:
    return status;
}
