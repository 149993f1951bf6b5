// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of prefix_sum.h: CUB's single-pass scan with decoupled look-back; 8 bytes an item.
 *
 * The total is item n of the same scan: the input is read through an iterator that gives 0
 * there. A tile reads only the items that it then writes, so in and out may be one array. */
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "gpu/core/core_cuda.h"
#include "gpu/core/prefix_sum.h"

struct padded_items {
    const uint32_t *in;
    uint64_t n;

    __host__ __device__ uint32_t operator()(uint64_t i) const
    {
        return i < n ? in[i] : 0;
    }
};

static cudaError_t scan(void *scratch, size_t *scratch_bytes, const uint32_t *in,
                        uint32_t *out, size_t n, cudaStream_t stream)
{
    struct padded_items items = {in, n};

    return cub::DeviceScan::ExclusiveSum(
        scratch, *scratch_bytes,
        thrust::make_transform_iterator(thrust::make_counting_iterator((uint64_t)0),
                                        items),
        out, (uint64_t)n + 1, stream);
}

size_t vxd_scan_scratch_bytes_cuda(size_t n)
{
    size_t n_bytes = 0;

    if (scan(NULL, &n_bytes, NULL, NULL, n, NULL) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return n_bytes > 256 ? n_bytes : 256;
}

enum vxd_status vxd_scan_exclusive_cuda(struct vxd_queue *queue, const uint32_t *in,
                                        uint32_t *out, size_t n, void *scratch,
                                        size_t scratch_bytes, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(VXD_CUDA(
        queue->context,
        scan(scratch, &scratch_bytes, in, out, n, (cudaStream_t)queue->stream), err));
out:
    return status;
}
