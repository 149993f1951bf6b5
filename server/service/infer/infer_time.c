// SPDX-License-Identifier: Apache-2.0
/* Refuses what cannot be in time: at admission by the points that were sent, and again when the voxels are
 * counted, before the network begins. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/service/infer/infer.h"

static const char *precision_name(enum vxd_net_precision precision)
{
    static const char *const names[] = {[VXD_NET_FP32] = "fp32",
                                        [VXD_NET_TF32] = "tf32",
                                        [VXD_NET_FP16] = "fp16",
                                        [VXD_NET_BF16] = "bf16"};

    return names[precision];
}

/* Says what to do: wait longer where that is allowed, else send less. */
static void advise(const struct vxd_request *request, const struct vxd_network *network,
                   int64_t expected_ns, char *text, size_t n_bytes)
{
    uint32_t most_ms = atomic_load(&request->server->limits.max_timeout_ms);
    double seconds = ceil((double)expected_ns * 2 / 1e9);
    bool is_slow_type =
        vxd_context_backend(request->server->context) != VXD_BACKEND_CUDA &&
        (network->precision == VXD_NET_FP16 || network->precision == VXD_NET_BF16);

    if (is_slow_type) {
        (void)snprintf(text, n_bytes,
                       "load it as fp32, which a CPU computes faster, or ");
        n_bytes -= strlen(text);
        text += strlen(text);
    }
    if (seconds * 1e3 <= most_ms) {
        (void)snprintf(text, n_bytes, "allow %.0f s (--timeout %.0f)", seconds, seconds);
    } else {
        (void)snprintf(text, n_bytes,
                       "send fewer points; limits.max_timeout_ms allows %" PRIu32 " s",
                       most_ms / 1000);
    }
}

enum vxd_status vxd_infer_check_time(struct vxd_request *request,
                                     struct vxd_network *network,
                                     const struct vxd_network_work *work,
                                     struct vxd_err *err)
{
    int64_t left_ns = request->deadline_ns - vxd_clock_ns();
    int64_t expected_ns;
    char advice[128];

    if (vxd_network_is_in_time(network, work, left_ns > 0 ? left_ns : 0, &expected_ns)) {
        return VXD_OK;
    }
    advise(request, network, expected_ns, advice, sizeof advice);
    return vxd_fail(err, VXD_FAILED_PRECONDITION, "header.timeout_ms",
                    "leaves %.1f s, and \"%.40s\" (%s) takes at least %.1f s for %" PRIu64
                    " %s here: %s",
                    (double)(left_ns > 0 ? left_ns : 0) / 1e9,
                    vxd_model_name(network->model), precision_name(network->precision),
                    (double)expected_ns / 1e9,
                    work->n_voxels > 0 ? work->n_voxels : work->n_points,
                    work->n_voxels > 0 ? "voxels" : "points", advice);
}
