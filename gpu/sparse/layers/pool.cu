// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of pools over a kernel map's taps, and of the dense bird's-eye view.
 *
 * Pools: a thread takes one vector of channels of an output row and loops over the taps in order;
 * the threads of a row read its table entries together. Moved: 4 bytes a row and tap, every
 * pair's input row once (from L2, where features fit), every output row once.
 * Bird's-eye view: zeros first, then a thread for each row and vector of channels. Adjacent rows
 * are in the same warp, since consecutive cells in Morton order are close in the planes. */
#include "gpu/sparse/layers/layers_cuda.h"
#include "gpu/sparse/coords/coords_math.h"

#define N_IN_FLIGHT 4 /* table entries, then rows, of a thread in flight */

/* The result over the rows read so far. */
template <int WIDTH> struct folded {
    struct vxd_lanes<WIDTH> value;
    int n_read;
};

template <int WIDTH>
static __device__ __forceinline__ void
fold(enum vxd_net_pool pool, struct folded<WIDTH> *folded, struct vxd_lanes<WIDTH> x)
{
    bool is_max = pool == VXD_NET_POOL_OF_MAX || pool == VXD_NET_POOL_OF_MAX_AND_0;
    bool is_begun = folded->n_read > 0 || pool == VXD_NET_POOL_OF_MAX_AND_0;

#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        float before = folded->value.v[i];

        if (is_max) {
            folded->value.v[i] = is_begun ? vxd_net_max(before, x.v[i]) : x.v[i];
        } else if (pool != VXD_NET_POOL_OF_FIRST) {
            folded->value.v[i] = vxd_addf(before, x.v[i]);
        } else if (!is_begun) {
            folded->value.v[i] = x.v[i];
        }
    }
    folded->n_read++;
}

template <typename FORM>
static __device__ __forceinline__ void pool_vector(const struct vxd_net_pool_call *call,
                                                   size_t row, int c)
{
    const int n_taps = call->map.n_taps;
    const int32_t *table = call->map.table + row;
    struct folded<FORM::width> folded = {
    };

    for (int tap = 0; tap < n_taps; tap += N_IN_FLIGHT) {
        struct vxd_lanes<FORM::width> x[N_IN_FLIGHT];
        int32_t from[N_IN_FLIGHT];

#pragma unroll
        for (int j = 0; j < N_IN_FLIGHT; j++) {
            from[j] =
                tap + j < n_taps ? table[(size_t)(tap + j) * call->map.capacity] : -1;
        }
#pragma unroll
        for (int j = 0; j < N_IN_FLIGHT; j++) {
            if (from[j] >= 0) {
                x[j] = vxd_net_load<FORM>(vxd_net_at<const typename FORM::element>(
                    &call->in, (size_t)from[j], c));
            }
        }
#pragma unroll
        for (int j = 0; j < N_IN_FLIGHT; j++) {
            if (from[j] >= 0) {
                fold(call->pool, &folded, x[j]);
            }
        }
    }
    if (call->pool == VXD_NET_POOL_OF_AVG && folded.n_read > 0) {
#pragma unroll
        for (int i = 0; i < FORM::width; i++) {
            folded.value.v[i] = vxd_divf(folded.value.v[i], (float)folded.n_read);
        }
    }
    vxd_net_store<FORM>(vxd_net_at<typename FORM::element>(&call->out, row, c),
                        folded.value);
}

template <typename FORM>
static __global__ void __launch_bounds__(VXD_NET_THREADS)
    pool_kernel(const __grid_constant__ struct vxd_net_pool_call call)
{
    const uint32_t n_rows = vxd_net_n_rows(&call.extent);

    for (size_t row = (size_t)blockIdx.x * blockDim.y + threadIdx.y; row < n_rows;
         row += (size_t)gridDim.x * blockDim.y) {
        for (int c = (int)threadIdx.x * FORM::width; c < call.out.n_channels;
             c += (int)blockDim.x * FORM::width) {
            pool_vector<FORM>(&call, row, c);
        }
    }
}

enum vxd_status vxd_net_pool_cuda(struct vxd_queue *queue,
                                  const struct vxd_net_pool_call *call,
                                  struct vxd_err *err)
{
    const struct vxd_rows *rows[] = {&call->in, &call->out};
    int width = vxd_net_width(call->precision, rows, 2, NULL, 0);

    return vxd_net_over_rows(
        queue, "pool_kernel", call->precision, width, call->extent.max_rows,
        call->out.n_channels,
        [&](auto form, const struct vxd_net_grid &grid) {
            pool_kernel<decltype(form)>
                <<<grid.blocks, grid.threads, 0, (cudaStream_t)queue->stream>>>(*call);
        },
        err);
}

template <typename FORM>
static __global__ void __launch_bounds__(VXD_NET_THREADS)
    bev_kernel(const __grid_constant__ struct vxd_net_bev_call call)
{
    const uint32_t n_rows = vxd_net_n_rows(&call.extent);
    const size_t plane =
        (size_t)call.shape[0] * (size_t)call.shape[1] * (size_t)call.shape[2];
    const int c = (int)blockIdx.y * FORM::width;

    for (size_t row = (size_t)blockIdx.x * VXD_NET_THREADS + threadIdx.x; row < n_rows;
         row += (size_t)gridDim.x * VXD_NET_THREADS) {
        struct vxd_lanes<FORM::width> x = vxd_net_load<FORM>(
            vxd_net_at<const typename FORM::element>(&call.in, row, c));
        int32_t cell[4];
        size_t place;

        vxd_sparse_from_key(call.keys[row], cell);
        place = vxd_net_bev_place(call.shape, call.in.n_channels, cell, c);
#pragma unroll
        for (int i = 0; i < FORM::width; i++) {
            call.out[place + (size_t)i * plane] = vxd_canonical_nanf(x.v[i]);
        }
    }
}

enum vxd_status vxd_net_bev_cuda(struct vxd_queue *queue,
                                 const struct vxd_net_bev_call *call, struct vxd_err *err)
{
    const struct vxd_rows *rows[] = {&call->in};
    int width = vxd_net_width(call->precision, rows, 1, NULL, 0);
    dim3 grid(vxd_net_blocks(queue, call->extent.max_rows),
              (unsigned)(call->in.n_channels / width));
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_fill(queue, call->out, 0, call->n_floats * sizeof *call->out, err));
    if (grid.x == 0) {
        return VXD_OK;
    }
    vxd_net_by_form(call->precision, width, [&](auto form) {
        bev_kernel<decltype(form)>
            <<<grid, VXD_NET_THREADS, 0, (cudaStream_t)queue->stream>>>(*call);
    });
    VXD_TRY(vxd_cuda_launched(queue->context, "bev_kernel", err));
out:
    return status;
}
