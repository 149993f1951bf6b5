// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of layers over the channels of a row: softmax, L2 norm, argmax.
 *
 * Norms: each row is processed by a power-of-two group of lanes, as many as it has vectors of
 * channels, at most a warp. A lane combines its vectors in order, then the lanes are combined in
 * a tree, so the order depends on the layer alone. A row is read again from L1 rather than kept.
 * Argmax: a thread processes a row; channels in order, so the first of equal ones wins. */
#include "gpu/sparse/layers/layers_cuda.h"

/* Lanes of a row: a power of two, at most 32. */
static int group_lanes(int n_vectors)
{
    int lanes = 1;

    while (lanes < 32 && lanes < n_vectors) {
        lanes *= 2;
    }
    return lanes;
}

/* Sum, or maximum, over the lanes of a group; all lanes of a warp call together. Lanes
 * exchange their values in both directions, so both add the same two and all end with
 * the same bits. */
static __device__ __forceinline__ float group_sum(float x, int lanes)
{
    for (int apart = lanes / 2; apart > 0; apart /= 2) {
        x = vxd_addf(x, __shfl_xor_sync(UINT32_MAX, x, apart));
    }
    return x;
}

static __device__ __forceinline__ float group_max(float x, int lanes)
{
    for (int apart = lanes / 2; apart > 0; apart /= 2) {
        x = vxd_net_max(x, __shfl_xor_sync(UINT32_MAX, x, apart));
    }
    return x;
}

/* What is subtracted from a row's channels, and by what they are divided. */
struct norm_terms {
    float shift;   /* softmax: the maximum, subtracted */
    float divisor; /* sum of exponentials, or the length */
};

template <typename FORM>
static __device__ __forceinline__ struct norm_terms
find_terms(const struct vxd_net_norm_call *call, size_t row, int lane, int lanes,
           bool is_there)
{
    const int n_channels = is_there ? call->in.n_channels : 0;
    const typename FORM::element *from =
        vxd_net_at<const typename FORM::element>(&call->in, row, 0);
    const bool is_softmax = call->norm == VXD_NET_NORM_SOFTMAX;
    float max = -INFINITY;
    float sum = 0.0f;

    for (int c = lane * FORM::width; is_softmax && c < n_channels;
         c += lanes * FORM::width) {
        struct vxd_lanes<FORM::width> x = vxd_net_load<FORM>(from + c);

#pragma unroll
        for (int i = 0; i < FORM::width; i++) {
            max = vxd_net_max(max, x.v[i]);
        }
    }
    max = group_max(max, lanes);
    for (int c = lane * FORM::width; c < n_channels; c += lanes * FORM::width) {
        struct vxd_lanes<FORM::width> x = vxd_net_load<FORM>(from + c);

#pragma unroll
        for (int i = 0; i < FORM::width; i++) {
            sum = vxd_addf(sum, is_softmax ? expf(vxd_subf(x.v[i], max))
                                           : vxd_mulf(x.v[i], x.v[i]));
        }
    }
    sum = group_sum(sum, lanes);
    if (is_softmax) {
        return {max, sum};
    }
    sum = __fsqrt_rn(sum);
    return {0.0f, sum < call->eps ? call->eps : sum};
}

template <typename FORM>
static __global__ void __launch_bounds__(VXD_NET_THREADS)
    norm_kernel(const __grid_constant__ struct vxd_net_norm_call call, int lanes)
{
    const uint32_t n_rows = vxd_net_n_rows(&call.extent);
    const int lane = (int)threadIdx.x & (lanes - 1);
    const size_t rows_per_block = (size_t)(VXD_NET_THREADS / lanes);

    /* All threads of a block stay in the loop together, because groups exchange values
     * within warps. */
    for (size_t first = blockIdx.x * rows_per_block; first < n_rows;
         first += gridDim.x * rows_per_block) {
        size_t row = first + threadIdx.x / (unsigned)lanes;
        bool is_there = row < n_rows;
        struct norm_terms terms = find_terms<FORM>(&call, row, lane, lanes, is_there);

        for (int c = lane * FORM::width; is_there && c < call.in.n_channels;
             c += lanes * FORM::width) {
            struct vxd_lanes<FORM::width> x = vxd_net_load<FORM>(
                vxd_net_at<const typename FORM::element>(&call.in, row, c));

#pragma unroll
            for (int i = 0; i < FORM::width; i++) {
                if (call.norm == VXD_NET_NORM_SOFTMAX) {
                    x.v[i] = expf(vxd_subf(x.v[i], terms.shift));
                }
                x.v[i] = vxd_divf(x.v[i], terms.divisor);
            }
            vxd_net_store<FORM>(vxd_net_at<typename FORM::element>(&call.out, row, c), x);
        }
    }
}

enum vxd_status vxd_net_norm_cuda(struct vxd_queue *queue,
                                  const struct vxd_net_norm_call *call,
                                  struct vxd_err *err)
{
    const struct vxd_rows *rows[] = {&call->in, &call->out};
    int width = vxd_net_width(call->precision, rows, 2, NULL, 0);
    int lanes = group_lanes(call->in.n_channels / width);
    unsigned n_blocks = vxd_net_blocks(queue, call->extent.max_rows * (size_t)lanes);
    enum vxd_status status = VXD_OK;

    if (n_blocks == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    vxd_net_by_form(call->precision, width, [&](auto form) {
        norm_kernel<decltype(form)>
            <<<n_blocks, VXD_NET_THREADS, 0, (cudaStream_t)queue->stream>>>(*call, lanes);
    });
    VXD_TRY(vxd_cuda_launched(queue->context, "norm_kernel", err));
out:
    return status;
}

template <typename FORM>
static __global__ void __launch_bounds__(VXD_NET_THREADS)
    argmax_kernel(const __grid_constant__ struct vxd_net_argmax_call call)
{
    const uint32_t n_rows = vxd_net_n_rows(&call.extent);

    for (size_t row = (size_t)blockIdx.x * VXD_NET_THREADS + threadIdx.x; row < n_rows;
         row += (size_t)gridDim.x * VXD_NET_THREADS) {
        const typename FORM::element *from =
            vxd_net_at<const typename FORM::element>(&call.in, row, 0);
        float best = vxd_net_widen(from[0]);
        int32_t label = 0;

#pragma unroll 4
        for (int c = 0; c < call.in.n_channels; c += FORM::width) {
            struct vxd_lanes<FORM::width> x = vxd_net_load<FORM>(from + c);

#pragma unroll
            for (int i = 0; i < FORM::width; i++) {
                if (vxd_net_is_better(x.v[i], best)) {
                    best = x.v[i];
                    label = c + i;
                }
            }
        }
        call.labels[row] = label;
        call.scores[row] = vxd_canonical_nanf(best);
    }
}

enum vxd_status vxd_net_argmax_cuda(struct vxd_queue *queue,
                                    const struct vxd_net_argmax_call *call,
                                    struct vxd_err *err)
{
    const struct vxd_rows *rows[] = {&call->in};
    int width = vxd_net_width(call->precision, rows, 1, NULL, 0);
    unsigned n_blocks = vxd_net_blocks(queue, call->extent.max_rows);
    enum vxd_status status = VXD_OK;

    if (n_blocks == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    vxd_net_by_form(call->precision, width, [&](auto form) {
        argmax_kernel<decltype(form)>
            <<<n_blocks, VXD_NET_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    });
    VXD_TRY(vxd_cuda_launched(queue->context, "argmax_kernel", err));
out:
    return status;
}
