// SPDX-License-Identifier: Apache-2.0
/* The public entry that packs weights: checks, memory, dispatch, wait. */
#include "gpu/core/core_math.h"
#include "gpu/sparse/conv/conv_backends.h"

static enum vxd_status check_counts(const float *weights, int n_taps, int n_in, int n_out,
                                    enum vxd_net_precision precision, struct vxd_err *err)
{
    if (weights == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "weights", "missing");
    }
    if (n_taps < 1 || n_taps > VXD_SPARSE_MAX_TAPS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_taps", "%d taps, must be 1 to %d",
                        n_taps, VXD_SPARSE_MAX_TAPS);
    }
    if (n_in < 1 || n_in > VXD_CONV_MAX_CHANNELS || n_out < 1 ||
        n_out > VXD_CONV_MAX_CHANNELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_channels",
                        "%d channels to %d, must be 1 to %d", n_in, n_out,
                        VXD_CONV_MAX_CHANNELS);
    }
    if ((int)precision < VXD_NET_FP32 || (int)precision > VXD_NET_BF16) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "precision",
                        "%d is no precision; 0 is FP32, 1 TF32, 2 FP16, 3 BF16",
                        (int)precision);
    }
    return VXD_OK;
}

/* Whether a weight is infinite or NaN, or becomes so when it is rounded. */
static bool find_non_finite(const float *weights, size_t n,
                            enum vxd_net_precision precision)
{
    /* The least value that rounds to infinity; for TF32, which keeps more bits, too. */
    float limit = precision == VXD_NET_FP16   ? 65520.0f
                  : precision == VXD_NET_FP32 ? INFINITY
                                              : vxd_float_of_bits(0x7f7f8000u);

    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(weights[i]) < limit)) {
            return true;
        }
    }
    return false;
}

enum vxd_status vxd_conv_weights_pack(struct vxd_queue *queue, const float *weights,
                                      int n_taps, int n_in, int n_out,
                                      enum vxd_net_precision precision,
                                      struct vxd_conv_weights *out, struct vxd_err *err)
{
    struct vxd_conv_weights packed = {
        n_taps, n_in, n_out, precision, {NULL, 0, VXD_SPACE_DEVICE}, false};
    size_t n_bytes;
    enum vxd_status status;

    *out = packed;
    VXD_TRY(check_counts(weights, n_taps, n_in, n_out, precision, err));
    n_bytes =
        VXD_BACKEND_FN(queue, vxd_conv_weights_bytes)(n_taps, n_in, n_out, precision);
    if (n_bytes == 0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "weights",
                        "%d taps of %d to %d channels overflow a size", n_taps, n_in,
                        n_out);
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &packed.data, err));
    packed.has_non_finite = find_non_finite(
        weights, (size_t)n_taps * (size_t)n_in * (size_t)n_out, precision);
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_conv_weights_pack)(queue, weights, &packed, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    *out = packed;
    return VXD_OK;
out:
    vxd_device_free(queue, &packed.data);
    return status;
}
