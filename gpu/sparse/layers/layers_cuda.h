// SPDX-License-Identifier: Apache-2.0
/* What the .cu files of network layers share: elements as float32, several at a time, and how rows
 * are mapped to a grid. For .cu files only.
 *
 * Kernels are compiled by form: the element type, and how many adjacent channels a thread moves
 * at once (16 bytes where every tensor of the call allows it, else 8, else one element). The form,
 * and thereby the order of sums over channels, depends on the layout of the layer's tensors, not
 * on their rows; sums over rows have one order in all forms. */
#ifndef VXD_GPU_SPARSE_LAYERS_LAYERS_CUDA_H
#define VXD_GPU_SPARSE_LAYERS_LAYERS_CUDA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/core/core_cuda.h"
#include "gpu/sparse/layers/layers.h"
#include "gpu/sparse/layers/layers_math.h"

#define VXD_NET_THREADS 256

template <typename ELEMENT, int WIDTH> struct vxd_net_form {
    typedef ELEMENT element;
    static constexpr int width = WIDTH;
};

/* Calls launch(form) with the form of precision and width. */
template <typename LAUNCH>
static void vxd_net_by_form(enum vxd_net_precision precision, int width, LAUNCH launch)
{
    if (precision == VXD_NET_FP16) {
        switch (width) {
        case 8:
            launch(vxd_net_form<__half, 8>());
            break;
        case 4:
            launch(vxd_net_form<__half, 4>());
            break;
        default:
            launch(vxd_net_form<__half, 1>());
            break;
        }
    } else if (precision == VXD_NET_BF16) {
        switch (width) {
        case 8:
            launch(vxd_net_form<__nv_bfloat16, 8>());
            break;
        case 4:
            launch(vxd_net_form<__nv_bfloat16, 4>());
            break;
        default:
            launch(vxd_net_form<__nv_bfloat16, 1>());
            break;
        }
    } else if (width == 4) {
        launch(vxd_net_form<float, 4>());
    } else {
        launch(vxd_net_form<float, 1>());
    }
}

/* Calls launch(form) with a width of 1. */
template <typename LAUNCH>
static void vxd_net_by_element(enum vxd_net_precision precision, LAUNCH launch)
{
    switch (precision) {
    case VXD_NET_FP16:
        launch(vxd_net_form<__half, 1>());
        break;
    case VXD_NET_BF16:
        launch(vxd_net_form<__nv_bfloat16, 1>());
        break;
    default:
        launch(vxd_net_form<float, 1>());
        break;
    }
}

/* Whether `width` elements of any row may be moved at once, from a multiple of width
 * on. */
static inline bool vxd_net_rows_allow(const struct vxd_rows *rows, size_t element_bytes,
                                      int width)
{
    return rows->n_channels % width == 0 && rows->stride % (size_t)width == 0 &&
           (uintptr_t)rows->data % (element_bytes * (size_t)width) == 0;
}

/* Whether an array of float32 may be moved 16 bytes at a time; true for NULL. */
static inline bool vxd_net_floats_allow(const float *floats)
{
    return (uintptr_t)floats % 16 == 0;
}

/* The width that n tensors and n_floats arrays of float32 (those that are NULL do not
 * count), all of the same number of channels, allow. */
static inline int vxd_net_width(enum vxd_net_precision precision,
                                const struct vxd_rows *const *rows, int n,
                                const float *const *floats, int n_floats)
{
    size_t element_bytes = vxd_net_element_bytes(precision);

    for (int i = 0; i < n_floats; i++) {
        if (!vxd_net_floats_allow(floats[i])) {
            return 1;
        }
    }
    for (int width = (int)(16 / element_bytes); width >= 4; width /= 2) {
        bool is_allowed = true;

        for (int i = 0; i < n; i++) {
            is_allowed = is_allowed && vxd_net_rows_allow(rows[i], element_bytes, width);
        }
        if (is_allowed) {
            return width;
        }
    }
    return 1;
}

/* Threads as (vectors of a row) x (rows), blocks over rows; kernels loop over further
 * rows. */
struct vxd_net_grid {
    dim3 blocks; /* x is 0 where there is no work */
    dim3 threads;
};

static inline struct vxd_net_grid vxd_net_row_grid(const struct vxd_queue *queue,
                                                   size_t max_rows, int n_vectors)
{
    size_t most = (size_t)queue->context->info.n_multiprocessors * 32;
    struct vxd_net_grid grid;
    size_t n_blocks;

    grid.threads.x =
        (unsigned)(n_vectors < VXD_NET_THREADS ? n_vectors : VXD_NET_THREADS);
    grid.threads.y = VXD_NET_THREADS / grid.threads.x;
    n_blocks = (max_rows + grid.threads.y - 1) / grid.threads.y;
    grid.blocks.x = (unsigned)(n_blocks < most ? n_blocks : most);
    return grid;
}

/* Launches a kernel, named `kernel` in errors, over rows of n_channels in vectors of
 * `width`: calls launch(form, grid), or nothing where there are no rows. */
template <typename LAUNCH>
static enum vxd_status vxd_net_over_rows(struct vxd_queue *queue, const char *kernel,
                                         enum vxd_net_precision precision, int width,
                                         size_t max_rows, int n_channels, LAUNCH launch,
                                         struct vxd_err *err)
{
    const struct vxd_net_grid grid =
        vxd_net_row_grid(queue, max_rows, n_channels / width);
    enum vxd_status status = VXD_OK;

    if (grid.blocks.x == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    vxd_net_by_form(precision, width, [&](auto form) { launch(form, grid); });
    VXD_TRY(vxd_cuda_launched(queue->context, kernel, err));
out:
    return status;
}

/* Number of blocks of a kernel with a thread an item; threads loop over further items. */
static inline unsigned vxd_net_blocks(const struct vxd_queue *queue, size_t n_items)
{
    size_t most = (size_t)queue->context->info.n_multiprocessors * 32;
    size_t n_blocks = (n_items + VXD_NET_THREADS - 1) / VXD_NET_THREADS;

    return (unsigned)(n_blocks < most ? n_blocks : most);
}

static __device__ __forceinline__ uint32_t
vxd_net_n_rows(const struct vxd_net_extent *extent)
{
    uint32_t n_rows = *extent->n_rows;

    return n_rows < extent->max_rows ? n_rows : (uint32_t)extent->max_rows;
}

/* First row of a sample, or the number of rows after the last sample. */
static __device__ __forceinline__ uint32_t
vxd_net_start(const struct vxd_net_extent *extent, int sample)
{
    uint32_t start = extent->starts[sample];

    return start < extent->max_rows ? start : (uint32_t)extent->max_rows;
}

/* Elements ------------------------------------------------------------------------------- */

template <int WIDTH> struct vxd_lanes {
    float v[WIDTH];
};

/* Elements in the layout of memory, moved by one instruction. */
template <typename ELEMENT, int WIDTH>
struct __align__(sizeof(ELEMENT) * WIDTH) vxd_net_pack
{
    ELEMENT v[WIDTH];
};

static __device__ __forceinline__ float vxd_net_widen(float x)
{
    return x;
}

static __device__ __forceinline__ float vxd_net_widen(__half x)
{
    return __half2float(x);
}

static __device__ __forceinline__ float vxd_net_widen(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

/* Rounds as vxd_element_store does, with the device's own instructions. */
static __device__ __forceinline__ void vxd_net_narrow(float x, float *out)
{
    *out = vxd_canonical_nanf(x);
}

static __device__ __forceinline__ void vxd_net_narrow(float x, __half *out)
{
    *out = x != x ? __ushort_as_half(0x7e00u) : __float2half_rn(x);
}

static __device__ __forceinline__ void vxd_net_narrow(float x, __nv_bfloat16 *out)
{
    *out = x != x ? __ushort_as_bfloat16(0x7fc0u) : __float2bfloat16_rn(x);
}

/* Loads WIDTH elements as float32. */
template <typename FORM>
static __device__ __forceinline__ struct vxd_lanes<FORM::width>
vxd_net_load(const typename FORM::element *from) {
    typedef struct vxd_net_pack<typename FORM::element, FORM::width> pack;
    pack packed = *(const pack *)from;
    struct vxd_lanes<FORM::width> x;

#pragma unroll
    for (int i = 0; i < FORM::width; i++) {
        x.v[i] = vxd_net_widen(packed.v[i]);
    }
    return x;
}

template <typename FORM>
static __device__ __forceinline__ void vxd_net_store(typename FORM::element *to,
                                                     struct vxd_lanes<FORM::width> x)
{
    typedef struct vxd_net_pack<typename FORM::element, FORM::width> pack;
    pack packed;

#pragma unroll
    for (int i = 0; i < FORM::width; i++) {
        vxd_net_narrow(x.v[i], &packed.v[i]);
    }
    *(pack *)to = packed;
}

/* Loads WIDTH float32, at most 16 bytes at a time. */
template <int WIDTH>
static __device__ __forceinline__ struct vxd_lanes<WIDTH>
vxd_net_load_floats(const float *from) {
    constexpr int step = WIDTH < 4 ? WIDTH : 4;
    struct vxd_lanes<WIDTH> x;

#pragma unroll
    for (int i = 0; i < WIDTH; i += step) {
        struct vxd_net_pack<float, step> packed =
            *(const struct vxd_net_pack<float, step> *)(from + i);

#pragma unroll
        for (int j = 0; j < step; j++) {
            x.v[i + j] = packed.v[j];
        }
    }
    return x;
}

template <int WIDTH>
static __device__ __forceinline__ void vxd_net_store_floats(float *to,
                                                            struct vxd_lanes<WIDTH> x)
{
    constexpr int step = WIDTH < 4 ? WIDTH : 4;

#pragma unroll
    for (int i = 0; i < WIDTH; i += step) {
        struct vxd_net_pack<float, step> packed;

#pragma unroll
        for (int j = 0; j < step; j++) {
            packed.v[j] = x.v[i + j];
        }
        *(struct vxd_net_pack<float, step> *)(to + i) = packed;
    }
}

/* Address of a row's element. */
template <typename ELEMENT>
static __device__ __forceinline__ ELEMENT *vxd_net_at(const struct vxd_rows *rows,
                                                      size_t row, int channel)
{
    return (ELEMENT *)rows->data + row * rows->stride + channel;
}

/* Samples in pieces ----------------------------------------------------------------------- */

/* A range of at most PIECE rows of one sample. */
struct vxd_net_span {
    int sample;
    uint32_t piece;
    uint32_t begin; /* rows */
    uint32_t end;   /* equal to begin where no piece has this place */
};

/* The piece of PIECE rows with place `place` (vxd_net_piece_place): the places of
 * sample s begin at starts[s] / PIECE + s, which is strictly ascending. */
template <int PIECE>
static __device__ __forceinline__ struct vxd_net_span
vxd_net_find_span(const struct vxd_net_extent *extent, size_t place)
{
    int low = 0;
    int high = extent->n_samples - 1;
    struct vxd_net_span span;
    uint32_t start;

    while (low < high) {
        int middle = (low + high + 1) / 2;

        if (vxd_net_start(extent, middle) / PIECE + (size_t)middle <= place) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    start = vxd_net_start(extent, low);
    span.sample = low;
    span.piece = (uint32_t)(place - (start / PIECE + (size_t)low));
    span.end = vxd_net_start(extent, low + 1);
    span.begin = span.end;
    if ((size_t)span.piece * PIECE < span.end - start) {
        span.begin = start + span.piece * PIECE;
        span.end = span.end - span.begin < PIECE ? span.end : span.begin + PIECE;
    }
    return span;
}

#endif
