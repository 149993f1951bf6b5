// SPDX-License-Identifier: Apache-2.0
/* Fuses a plain frame, as most are, into blocks on a GPU: a camera without a lens, observations of weight 1, no
 * labels, no control grid. As volume_fuse.cu does, whose time goes into instructions rather than memory; here
 * what is the same for all voxels is computed once, divisions need no care for numbers out of range, and
 * integers are converted by additions. The bits are the same.
 *
 * 86 instructions a voxel instead of some 150: 7,700 blocks of 8^3 in 0.026 ms on an H100 instead of 0.033. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/volume_internal.h"

#define N_THREADS 256
#define N_BATCH 4

struct plain_call {
    struct vxd_fuse_call all;
    double by_z[3][16]; /* a step of z voxels in a block, in the camera's frame, metres */
    float inverse_truncation;
};

/* Metres between which depths and the truncation are in range. */
#define PLAIN_LEAST 1e-15f
#define PLAIN_MOST 1e15f

bool vxd_volume_is_plain(const struct vxd_fuse_call *call)
{
    const struct vxd_frame_form *frame = &call->frame;
    float least = frame->is_u16 != 0 ? 1.0f / frame->depth_scale : frame->depth_min;

    least = least > frame->depth_min ? least : frame->depth_min;
    return frame->is_deformed == 0 && frame->labels == NULL &&
           frame->camera.is_distorted == 0 && frame->is_inverse_z2 == 0 &&
           frame->has_colour_camera == 0 &&
           vxd_frame_weight(frame, 1.0f, call->view.max_weight, call->view.is_compact) ==
               1 &&
           least > PLAIN_LEAST && frame->depth_max < PLAIN_MOST &&
           frame->truncation > PLAIN_LEAST && frame->truncation < PLAIN_MOST;
}

static struct plain_call plain_call_of(const struct vxd_fuse_call *call)
{
    const struct vxd_frame_form *frame = &call->frame;
    struct plain_call plain = {*call, {}, 1.0f / frame->truncation};

    for (int axis = 0; axis < 3; axis++) {
        double step = vxd_muld(frame->to_camera[3 * axis + 2], frame->voxel_size);

        for (int z = 0; z < call->view.edge; z++) {
            plain.by_z[axis][z] = vxd_muld(step, (double)z);
        }
    }
    return plain;
}

/* a / b to the last bit, where inverse is 1 / b and nothing is out of range: two corrections of the
 * quotient, of which the first leaves it less than a unit of its last place away (Markstein). */
static __device__ __forceinline__ float divide(float a, float b, float inverse)
{
    float q = __fmul_rn(a, inverse);

    q = __fmaf_rn(__fmaf_rn(-q, b, a), inverse, q);
    return __fmaf_rn(__fmaf_rn(-q, b, a), inverse, q);
}

/* Conversions of whole numbers from 0 to 2^22, which units that do little at once would do else. */
#define WHOLE 8388608.0f /* 2^23: the least float whose last bit is a 1 */

static __device__ __forceinline__ uint32_t whole_of(float a)
{
    return __float_as_uint(__fadd_rz(a, WHOLE)) & 0x7fffff;
}

static __device__ __forceinline__ float small_float(uint32_t a)
{
    return __fsub_rn(__uint_as_float(a | __float_as_uint(WHOLE)), WHOLE);
}

/* As vxd_camera_pixel of a camera without a lens. Where a depth's inverse is out of range its voxel is
 * not seen, whatever its pixel is. */
static __device__ __forceinline__ int32_t
plain_pixel(const struct vxd_camera_form *camera, const float p[3])
{
    float inverse = vxd_inverse(p[2]);
    float u = vxd_addf(
        vxd_addf(vxd_mulf(camera->fx, vxd_mulf(p[0], inverse)), camera->cx), 0.5f);
    float v = vxd_addf(
        vxd_addf(vxd_mulf(camera->fy, vxd_mulf(p[1], inverse)), camera->cy), 0.5f);
    /* As whole numbers, the bits of what is below 0 or NaN are greater than those of a width. */
    bool is_in = (p[2] > 0) &
                 (__float_as_uint(u) < __float_as_uint((float)camera->width)) &
                 (__float_as_uint(v) < __float_as_uint((float)camera->height));

    return is_in ? (int32_t)whole_of(v) * camera->width + (int32_t)whole_of(u) : -1;
}

/* A voxel's colour and that of its pixel. */
struct tint {
    uint2 bits;
    uint32_t rgb[3];
};

static __device__ __forceinline__ void
load_tint(const struct vxd_fuse_call *call, size_t row, int32_t pixel, struct tint *tint)
{
    const uint8_t *rgb = call->frame.colour + 3 * (size_t)pixel;

    tint->bits = ((const uint2 *)call->view.colours)[row];
#pragma unroll
    for (int c = 0; c < 3; c++) {
        tint->rgb[c] = __ldg(rgb + c);
    }
}

/* As vxd_frame_mix_colour, without conversions of integers. */
static __device__ __forceinline__ uint2 mix_tint(const struct tint *tint,
                                                 float max_weight)
{
    const float old[3] = {small_float(tint->bits.x & 0xffff),
                          small_float(tint->bits.x >> 16),
                          small_float(tint->bits.y & 0xffff)};
    float weight = small_float(tint->bits.y >> 16);
    float sum = vxd_weight_sum(weight, 1.0f, max_weight);
    float part = vxd_inverse(vxd_addf(weight, 1.0f));
    uint32_t out[3];

#pragma unroll
    for (int c = 0; c < 3; c++) {
        float now = small_float(tint->rgb[c] << 8);

        out[c] = whole_of(
            vxd_addf(vxd_addf(old[c], vxd_mulf(vxd_subf(now, old[c]), part)), 0.5f));
    }
    return make_uint2(out[0] | out[1] << 16, out[2] | whole_of(sum) << 16);
}

/* row: where the first voxel of the thread's row is at z = 0; by_x: from it to the thread's. */
static __device__ __forceinline__ uint32_t observe_plain(const struct plain_call *plain,
                                                         const double row[3],
                                                         const float by_x[3], int z,
                                                         int32_t pixel[N_BATCH],
                                                         float distance[N_BATCH])
{
    const struct vxd_fuse_call *call = &plain->all;
    float p[N_BATCH][3];
    float depth[N_BATCH];
    uint32_t seen = 0;

#pragma unroll
    for (int i = 0; i < N_BATCH; i++) {
        for (int axis = 0; axis < 3; axis++) {
            p[i][axis] = vxd_addf((float)vxd_addd(row[axis], plain->by_z[axis][z + i]),
                                  by_x[axis]);
        }
        pixel[i] = plain_pixel(&call->frame.camera, p[i]);
        depth[i] = __ldg(call->depth + 1 + pixel[i]); /* item 0 is 0 */
    }
#pragma unroll
    for (int i = 0; i < N_BATCH; i++) {
        float d = divide(vxd_subf(depth[i], p[i][2]), call->frame.truncation,
                         plain->inverse_truncation);

        distance[i] = d < 1.0f ? d : 1.0f;
        seen |= depth[i] > 0 && d >= -1.0f ? 1u << i : 0u;
    }
    return seen;
}

/* Averages a batch into rows first, first + stride, ...; all loads are asked for before the first store. */
template <bool IS_COMPACT, bool HAS_COLOUR>
static __device__ __forceinline__ void
average_plain(const struct vxd_fuse_call *call, const struct vxd_volume_view *view,
              size_t first, size_t stride, uint32_t seen, const float distance[N_BATCH],
              const int32_t pixel[N_BATCH])
{
    struct tint tint[N_BATCH];
    float w[N_BATCH];
    float d[N_BATCH];

#pragma unroll
    for (int i = 0; i < N_BATCH; i++) {
        size_t row = first + (size_t)i * stride;
        bool is_seen = (seen >> i & 1) != 0;

        w[i] = is_seen ? vxd_volume_weight(view, row) : 0;
        d[i] = is_seen ? vxd_volume_distance(view, row) : 0;
        if (HAS_COLOUR && is_seen && distance[i] < 1.0f) {
            load_tint(call, row, pixel[i], &tint[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < N_BATCH; i++) {
        size_t row = first + (size_t)i * stride;
        bool is_seen = (seen >> i & 1) != 0;
        float mean = vxd_addf(d[i], vxd_mulf(vxd_subf(distance[i], d[i]),
                                             vxd_inverse(vxd_addf(w[i], 1.0f))));
        float sum = vxd_weight_sum(w[i], 1.0f, view->max_weight);

        if (is_seen && IS_COMPACT) {
            ((uint16_t *)view->distances)[row] = vxd_half_of_float(mean);
            ((uint8_t *)view->weights)[row] = (uint8_t)whole_of(sum);
        } else if (is_seen) {
            ((float *)view->distances)[row] = mean;
            ((float *)view->weights)[row] = sum;
        }
        if (HAS_COLOUR && is_seen && distance[i] < 1.0f) {
            ((uint2 *)view->colours)[row] = mix_tint(&tint[i], view->max_weight);
        }
    }
}

template <int EDGE, bool IS_COMPACT, bool HAS_COLOUR, int MIN_BLOCKS>
static __global__ void __launch_bounds__(N_THREADS, MIN_BLOCKS)
    plain_kernel(const __grid_constant__ struct plain_call plain)
{
    const struct vxd_fuse_call *call = &plain.all;
    const struct vxd_frame_form *frame = &call->frame;
    constexpr int n_unrolled = EDGE == 8 ? EDGE / N_BATCH : 1;
    const int n_columns = EDGE * EDGE; /* whole warps a block */
    size_t block = (size_t)blockIdx.x * (N_THREADS / n_columns) + threadIdx.x / n_columns;
    unsigned column = threadIdx.x % n_columns;
    struct vxd_volume_view view = call->view;
    size_t n = call->n;
    uint32_t any = 0;
    int32_t entry;
    double row[3];
    float by_x[3];

    view.edge = EDGE;
    view.shift = EDGE == 8 ? 3 : 4;
    view.is_compact = IS_COMPACT ? 1 : 0;
    if (call->counts != NULL) {
        n = vxd_volume_fuses_ahead(call->counts, call->most_taken, n)
                ? call->counts->n_known
                : 0;
    }
    if (block >= n) {
        return;
    }
    entry = call->entries[block];
    vxd_frame_block_at(frame, view.keys + 3 * (size_t)entry, EDGE, row);
    for (int axis = 0; axis < 3; axis++) {
        double by_y = vxd_muld(frame->to_camera[3 * axis + 1], frame->voxel_size);

        row[axis] = vxd_addd(row[axis], vxd_muld(by_y, (double)(column / EDGE)));
        by_x[axis] = vxd_mulf(vxd_frame_row_step(frame, axis), (float)(column % EDGE));
    }
#pragma unroll(n_unrolled)
    for (int z = 0; z < EDGE; z += N_BATCH) {
        size_t first = vxd_voxel_row(&view, entry, column + (uint32_t)(z * n_columns));
        float distance[N_BATCH];
        int32_t pixel[N_BATCH];
        uint32_t seen = observe_plain(&plain, row, by_x, z, pixel, distance);

        any |= seen;
        if (seen != 0) {
            average_plain<IS_COMPACT, HAS_COLOUR>(call, &view, first, n_columns, seen,
                                                  distance, pixel);
        }
    }
    if (__any_sync(0xffffffffu, any != 0 ? 1 : 0) != 0 && (threadIdx.x & 31) == 0) {
        (void)atomicMax((unsigned long long *)&view.stamps[entry],
                        (unsigned long long)call->version);
    }
}

template <int EDGE, bool IS_COMPACT>
static void launch(const struct vxd_fuse_call *call, cudaStream_t stream)
{
    unsigned n = (unsigned)(EDGE == 8 ? (call->n + 3) / 4 : call->n);
    struct plain_call plain = plain_call_of(call);

    if (call->frame.colour != NULL) {
        plain_kernel<EDGE, IS_COMPACT, true, 4><<<n, N_THREADS, 0, stream>>>(plain);
    } else {
        plain_kernel<EDGE, IS_COMPACT, false, EDGE == 8 ? 6 : 4>
            <<<n, N_THREADS, 0, stream>>>(plain);
    }
}

enum vxd_status vxd_volume_fuse_plain_cuda(struct vxd_queue *queue,
                                           const struct vxd_fuse_call *call,
                                           struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (call->view.edge == 8) {
        (call->view.is_compact != 0 ? launch<8, true> : launch<8, false>)(call, stream);
    } else {
        (call->view.is_compact != 0 ? launch<16, true> : launch<16, false>)(call, stream);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "plain_kernel", err));
out:
    return status;
}
