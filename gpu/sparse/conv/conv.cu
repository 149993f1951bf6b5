// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of vxd_conv_run: selects the kernel that runs a layer.
 *
 * Tiles (conv_tiles_cuda.h) multiply the zeros that stand for a missing tap, which adds nothing
 * as long as weights are finite. Layers with other weights use a plain kernel, a thread for each
 * output value, which skips missing taps. */
#include "gpu/sparse/conv/conv_cuda.h"

#define N_THREADS 256
#define MAX_STRIDE ((size_t)1 << 29) /* of input rows, in elements */

struct guarded {
    struct vxd_conv_tiles tiles;
    enum vxd_net_precision precision;
    int element_bytes;
};

static __device__ float guarded_sum(const struct guarded *guarded, uint32_t row, int out)
{
    const struct vxd_conv_tiles *tiles = &guarded->tiles;
    float sum = 0.0f;

    for (int tap = 0; tap < tiles->n_taps; tap++) {
        int32_t input = tiles->table == NULL
                            ? (int32_t)row
                            : tiles->table[(size_t)tap * tiles->map_capacity + row];
        const char *from = tiles->in + (size_t)input * tiles->in_row_bytes;

        for (int channel = 0; channel < tiles->n_in && input >= 0; channel++) {
            const char *weight =
                tiles->weights + vxd_conv_weight_at(tiles->n_slots, tiles->n_padded, tap,
                                                    channel, out, guarded->element_bytes);

            sum = __fmaf_rn(vxd_element_load(guarded->precision, from, (size_t)channel),
                            vxd_element_load(guarded->precision, weight, 0), sum);
        }
    }
    return sum;
}

static __global__ void __launch_bounds__(N_THREADS)
    guarded_kernel(const __grid_constant__ struct guarded guarded)
{
    const struct vxd_conv_tiles *tiles = &guarded.tiles;
    size_t stride = (size_t)gridDim.x * N_THREADS;
    uint32_t n_rows = *tiles->n_rows;
    size_t n = (size_t)n_rows * (size_t)tiles->n_out;

    if (n_rows > tiles->max_rows) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            atomicCAS(tiles->error_word, (uint32_t)VXD_OK,
                      (uint32_t)VXD_RESOURCE_EXHAUSTED);
        }
        return;
    }
    for (size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x; i < n; i += stride) {
        uint32_t row = (uint32_t)(i / (size_t)tiles->n_out);
        int out = (int)(i % (size_t)tiles->n_out);
        float x = guarded_sum(&guarded, row, out);

        x += tiles->bias != NULL ? tiles->bias[out] : 0.0f;
        if (tiles->add != NULL) {
            x += vxd_element_load(guarded.precision,
                                  tiles->add + (size_t)row * tiles->add_row_bytes,
                                  (size_t)out);
        }
        vxd_element_store(guarded.precision,
                          tiles->out + (size_t)row * tiles->out_row_bytes, (size_t)out,
                          vxd_activate(tiles->act, tiles->alpha, x));
    }
}

static enum vxd_status run_guarded(struct vxd_queue *queue, const struct guarded *guarded,
                                   struct vxd_err *err)
{
    unsigned n_blocks = (unsigned)queue->context->info.n_multiprocessors * 8;

    guarded_kernel<<<n_blocks, N_THREADS, 0, (cudaStream_t)queue->stream>>>(*guarded);
    return vxd_cuda_launched(queue->context, "guarded_kernel", err);
}

static bool is_aligned(const void *data, size_t row_bytes)
{
    return (uintptr_t)data % 16 == 0 && row_bytes % 16 == 0;
}

static void fill_tiles(const struct vxd_queue *queue, const struct vxd_conv_call *call,
                       const struct vxd_conv_shape *shape, struct vxd_conv_tiles *tiles)
{
    const struct vxd_conv_args *args = &call->args;
    size_t element = vxd_net_element_bytes(call->weights.precision);
    size_t max_rows = args->max_rows;

    if (call->has_map) {
        max_rows = call->map.capacity < max_rows ? call->map.capacity : max_rows;
        tiles->table = call->map.table;
        tiles->masks = call->map.masks;
        tiles->order = call->map.order;
        tiles->map_capacity = call->map.capacity;
    }
    tiles->max_rows = max_rows < INT32_MAX ? (uint32_t)max_rows : INT32_MAX;
    tiles->in = (const char *)args->in.data;
    tiles->in_row_bytes = (uint32_t)(args->in.stride * element);
    tiles->out = (char *)args->out.data;
    tiles->out_row_bytes = args->out.stride * element;
    tiles->add = (const char *)args->add.data;
    tiles->add_row_bytes = args->add.stride * element;
    tiles->bias = args->bias;
    tiles->weights = (const char *)call->weights.data.ptr;
    tiles->n_rows = args->n_rows;
    tiles->error_word = queue->error_word;
    tiles->n_taps = call->weights.n_taps;
    tiles->n_in = shape->n_in;
    tiles->n_out = shape->n_out;
    tiles->n_slots = shape->n_slots;
    if (shape->n_slots > 1) {
        tiles->slots_reciprocal = UINT32_MAX / (uint32_t)shape->n_slots + 1;
    }
    tiles->n_padded = shape->n_padded;
    tiles->act = args->act;
    tiles->alpha = args->alpha;
    for (tiles->in_alignment = 16; tiles->in_alignment > (int)element;
         tiles->in_alignment /= 2) {
        if (((uintptr_t)tiles->in | tiles->in_row_bytes |
             (unsigned)shape->n_in * (unsigned)element) %
                (unsigned)tiles->in_alignment ==
            0) {
            break;
        }
    }
    tiles->is_out_aligned =
        is_aligned(tiles->out, tiles->out_row_bytes) &&
        (tiles->add == NULL || is_aligned(tiles->add, tiles->add_row_bytes)) &&
        is_aligned(tiles->bias, 0);
    tiles->is_out_whole = tiles->is_out_aligned &&
                          (size_t)shape->n_out * element % 16 == 0 &&
                          tiles->add_row_bytes <= UINT32_MAX &&
                          (args->act == VXD_ACT_NONE || args->act == VXD_ACT_RELU);
}

typedef enum vxd_status (*tiles_fn)(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err);

/* Selects by precision and device only, so that results depend on nothing else. */
static tiles_fn pick_tiles(const struct vxd_queue *queue,
                           enum vxd_net_precision precision)
{
    bool has_wgmma = queue->context->info.compute_capability == 90;

    switch (precision) {
    case VXD_NET_FP16:
        return has_wgmma ? vxd_conv_wgmma_fp16 : vxd_conv_tiles_fp16;
    case VXD_NET_BF16:
        return has_wgmma ? vxd_conv_wgmma_bf16 : vxd_conv_tiles_bf16;
    case VXD_NET_TF32:
        return has_wgmma ? vxd_conv_wgmma_tf32 : vxd_conv_tiles_tf32;
    default:
        return vxd_conv_tiles_fp32;
    }
}

enum vxd_status vxd_conv_run_cuda(struct vxd_queue *queue,
                                  const struct vxd_conv_call *call, struct vxd_err *err)
{
    const struct vxd_conv_weights *weights = &call->weights;
    struct vxd_conv_shape shape =
        vxd_conv_shape_of(weights->n_in, weights->n_out, weights->precision);
    struct vxd_conv_tiles tiles = {};
    struct guarded guarded;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->args.in.stride > MAX_STRIDE) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "in", "rows %zu elements apart",
                        call->args.in.stride);
    }
    fill_tiles(queue, call, &shape, &tiles);
    if (weights->has_non_finite) {
        guarded = {tiles, weights->precision,
                   (int)vxd_net_element_bytes(weights->precision)};
        VXD_TRY(run_guarded(queue, &guarded, err));
        return VXD_OK;
    }
    VXD_TRY(pick_tiles(queue, weights->precision)(queue, &tiles, shape.n_tile, err));
out:
    return status;
}
