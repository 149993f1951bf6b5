// SPDX-License-Identifier: Apache-2.0
/* Arithmetic of volumes that gives the same bits on both backends: keys of blocks and their
 * lookup, voxels, the running average, projection and distortion of cameras. */
#ifndef VXD_GPU_VOLUME_VOLUME_MATH_H
#define VXD_GPU_VOLUME_VOLUME_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/volume/volume.h"

VXD_HD float vxd_volume_sqrtf(float a)
{
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(a);
#else
    return sqrtf(a);
#endif
}

/* ---- Blocks ---- */

/* Keys are within +-VXD_BLOCK_LIMIT, so that the neighbours of a block have tags too. */
#define VXD_BLOCK_LIMIT ((1 << 20) - 2)
#define VXD_BLOCK_BIAS (1 << 20)

/* A key in 63 bits: x highest. Each component is within +-(VXD_BLOCK_LIMIT + 1). */
VXD_HD uint64_t vxd_block_tag(int32_t x, int32_t y, int32_t z)
{
    return (uint64_t)(uint32_t)(x + VXD_BLOCK_BIAS) << 42 |
           (uint64_t)(uint32_t)(y + VXD_BLOCK_BIAS) << 21 |
           (uint64_t)(uint32_t)(z + VXD_BLOCK_BIAS);
}

VXD_HD void vxd_block_key(uint64_t tag, int32_t key[3])
{
    key[0] = (int32_t)(tag >> 42 & 0x1fffff) - VXD_BLOCK_BIAS;
    key[1] = (int32_t)(tag >> 21 & 0x1fffff) - VXD_BLOCK_BIAS;
    key[2] = (int32_t)(tag & 0x1fffff) - VXD_BLOCK_BIAS;
}

/* Morton code of a tag's key: the order in which new blocks get entries. */
VXD_HD uint64_t vxd_block_morton(uint64_t tag)
{
    return vxd_spread3(tag >> 42) << 2 | vxd_spread3(tag >> 21) << 1 | vxd_spread3(tag);
}

VXD_HD uint64_t vxd_block_tag_of_morton(uint64_t morton)
{
    return vxd_gather3(morton >> 2) << 42 | vxd_gather3(morton >> 1) << 21 |
           vxd_gather3(morton);
}

/* Finaliser of SplitMix64. */
VXD_HD uint32_t vxd_block_hash(uint64_t tag)
{
    tag = (tag ^ tag >> 30) * 0xbf58476d1ce4e5b9ULL;
    tag = (tag ^ tag >> 27) * 0x94d049bb133111ebULL;
    return (uint32_t)(tag >> 32);
}

/* The entry of a block, or VXD_NO_ENTRY. At most half of the slots are taken, so the loop ends at
 * an empty one; it is bounded by the table besides. */
VXD_HD int32_t vxd_volume_find_block(const struct vxd_volume_view *view, uint64_t tag)
{
    uint32_t slot = vxd_block_hash(tag) & view->table_mask;

    for (uint32_t n = 0; n <= view->table_mask; n++) {
        uint64_t here = view->table[slot].tag;

        if (here == tag) {
            return view->table[slot].entry;
        }
        if (here == VXD_BLOCK_EMPTY) {
            break;
        }
        slot = (slot + 1) & view->table_mask;
    }
    return VXD_NO_ENTRY;
}

/* The entry of neighbour `column` (VXD_NEIGHBOURS_27) of a block. */
VXD_HD int32_t vxd_block_neighbour(const struct vxd_volume_view *view, int32_t entry,
                                   int column)
{
    const int32_t *key;

    if (entry < 0 || (uint32_t)entry >= view->capacity) {
        return VXD_NO_ENTRY;
    }
    if (view->neighbours != NULL) {
        return view->neighbours[27 * (size_t)entry + (size_t)column];
    }
    key = view->keys + 3 * (size_t)entry;
    return vxd_volume_find_block(view, vxd_block_tag(key[0] + column / 9 - 1,
                                                     key[1] + column / 3 % 3 - 1,
                                                     key[2] + column % 3 - 1));
}

/* ---- Voxels ---- */

VXD_HD int32_t vxd_volume_block_voxels(const struct vxd_volume_view *view)
{
    return 1 << (3 * view->shift);
}

/* Index of a voxel in its block; x, y, z may be coordinates in the volume too. */
VXD_HD uint32_t vxd_voxel_index(const struct vxd_volume_view *view, int32_t x, int32_t y,
                                int32_t z)
{
    uint32_t mask = (uint32_t)view->edge - 1;

    return (((uint32_t)z & mask) << view->shift | ((uint32_t)y & mask)) << view->shift |
           ((uint32_t)x & mask);
}

/* Key component of the block that holds voxel coordinate v: the floor of v / edge. */
VXD_HD int32_t vxd_block_of_voxel(const struct vxd_volume_view *view, int32_t v)
{
    return v >> view->shift;
}

/* Number of a voxel in the arrays of a volume. */
VXD_HD size_t vxd_voxel_row(const struct vxd_volume_view *view, int32_t entry,
                            uint32_t index)
{
    return ((size_t)entry << (3 * view->shift)) + index;
}

VXD_HD float vxd_volume_weight(const struct vxd_volume_view *view, size_t row)
{
    return view->is_compact != 0 ? (float)((const uint8_t *)view->weights)[row]
                                 : ((const float *)view->weights)[row];
}

/* In units of the truncation, -1 to 1. */
VXD_HD float vxd_volume_distance(const struct vxd_volume_view *view, size_t row)
{
    return view->is_compact != 0
               ? vxd_float_of_half(((const uint16_t *)view->distances)[row])
               : ((const float *)view->distances)[row];
}

/* Position of a voxel's centre on one axis, metres from the origin. */
VXD_HD float vxd_voxel_centre(const struct vxd_volume_view *view, int32_t v)
{
    return vxd_mulf(vxd_addf((float)v, 0.5f), view->voxel_size);
}

/* An 8-bit component of a colour in units of 1/256, to nearest. */
VXD_HD uint8_t vxd_colour_byte(uint32_t value)
{
    uint32_t rounded = (value + 128) >> 8;

    return (uint8_t)(rounded > 255 ? 255 : rounded);
}

/* ---- Labels ---- */

/* A voxel's votes are four pairs of a label (high byte) and a count. A vote counts for its label;
 * where four others have votes, it takes one from each of them (Misra and Gries), so a label that
 * got more than a fifth of all votes always stays. At 255 all counts are halved, which lets newer
 * votes outweigh old ones. */
VXD_HD uint64_t vxd_label_vote(uint64_t votes, uint32_t label)
{
    int same = -1;
    int empty = -1;

    for (int i = 3; i >= 0; i--) {
        uint32_t pair = (uint32_t)(votes >> (16 * i)) & 0xffffu;

        same = (pair & 255u) != 0 && pair >> 8 == label ? i : same;
        empty = (pair & 255u) == 0 ? i : empty;
    }
    if (same >= 0 && (votes >> (16 * same) & 255u) == 255u) {
        uint64_t halved = 0;

        for (int i = 0; i < 4; i++) {
            uint64_t pair = votes >> (16 * i) & 0xffffu;

            halved |= ((pair & 0xff00u) | (pair & 255u) >> 1) << (16 * i);
        }
        votes = halved;
    }
    if (same >= 0) {
        return votes + ((uint64_t)1 << (16 * same));
    }
    if (empty >= 0) {
        votes &= ~((uint64_t)0xffff << (16 * empty));
        return votes | (uint64_t)(label << 8 | 1u) << (16 * empty);
    }
    return votes - 0x0001000100010001ULL;
}

/* Counts of votes after a decay, rounded down; a label without votes is forgotten. */
VXD_HD uint64_t vxd_label_decay(uint64_t votes, float factor)
{
    uint64_t decayed = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t pair = (uint32_t)(votes >> (16 * i)) & 0xffffu;
        uint32_t count = (uint32_t)vxd_mulf((float)(pair & 255u), factor);

        decayed |= (uint64_t)(count > 0 ? (pair & 0xff00u) | count : 0) << (16 * i);
    }
    return decayed;
}

/* The label with the most votes, of equal ones the lowest; 0: there is none. */
VXD_HD uint32_t vxd_label_of_votes(uint64_t votes)
{
    uint32_t best = 0;
    uint32_t most = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t pair = (uint32_t)(votes >> (16 * i)) & 0xffffu;
        uint32_t count = pair & 255u;
        uint32_t label = pair >> 8;

        if (count > most || (count == most && count > 0 && label < best)) {
            best = label;
            most = count;
        }
    }
    return best;
}

VXD_HD void vxd_volume_vote(const struct vxd_volume_view *view, size_t row,
                            uint32_t label)
{
    uint64_t *at = (uint64_t *)(void *)view->labels + row;

    *at = vxd_label_vote(*at, label);
}

VXD_HD uint32_t vxd_volume_label(const struct vxd_volume_view *view, size_t row)
{
    return vxd_label_of_votes(((const uint64_t *)(const void *)view->labels)[row]);
}

/* ---- The running average (equation 12) ---- */

/* (w * d + w_new * d_new) / (w + w_new) as d + (d_new - d) * w_new / (w + w_new): one rounding of
 * a small correction, which a long average does not drift by. */
VXD_HD float vxd_average(float d, float w, float d_new, float w_new)
{
    return vxd_addf(d, vxd_mulf(vxd_subf(d_new, d), vxd_divf(w_new, vxd_addf(w, w_new))));
}

/* 1 / a to the last bit, where both are normal numbers, without the care that a division takes of others;
 * of those a device makes some number or NaN. */
VXD_HD float vxd_inverse(float a)
{
#if defined(__CUDA_ARCH__)
    float inverse;

    asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(a));
    return __fmaf_rn(__fmaf_rn(-a, inverse, 1.0f), inverse, inverse);
#else
    return 1.0f / a;
#endif
}

VXD_HD float vxd_weight_sum(float w, float w_new, float max_weight)
{
    float sum = vxd_addf(w, w_new);

    return sum < max_weight ? sum : max_weight;
}

/* ---- Cameras ---- */

/* A camera as kernels use it, float32. */
struct vxd_camera_form {
    int width;
    int height;
    int is_distorted;
    float fx;
    float fy;
    float cx;
    float cy;
    float k[8];
    float max_r2; /* beyond it the distortion's polynomial means nothing */
};

#ifdef __cplusplus
extern "C" {
#endif
/* Host.
 * errors  INVALID_ARGUMENT with `field` */
enum vxd_status vxd_camera_form_init(const struct vxd_volume_camera *camera,
                                     const char *field, struct vxd_camera_form *out,
                                     struct vxd_err *err);
#ifdef __cplusplus
}
#endif

/* Distorts normalized coordinates x / z, y / z (OpenCV's rational model). */
VXD_HD void vxd_camera_distort(const struct vxd_camera_form *camera, float x, float y,
                               float *out_x, float *out_y)
{
    const float *k = camera->k;
    float r2 = vxd_addf(vxd_mulf(x, x), vxd_mulf(y, y));
    float xy2 = vxd_mulf(2.0f, vxd_mulf(x, y));
    float top = vxd_addf(vxd_mulf(vxd_addf(vxd_mulf(k[4], r2), k[1]), r2), k[0]);
    float below = vxd_addf(vxd_mulf(vxd_addf(vxd_mulf(k[7], r2), k[6]), r2), k[5]);
    float radial =
        vxd_divf(vxd_addf(1.0f, vxd_mulf(top, r2)), vxd_addf(1.0f, vxd_mulf(below, r2)));
    float shift_x =
        vxd_addf(vxd_mulf(k[2], xy2),
                 vxd_mulf(k[3], vxd_addf(r2, vxd_mulf(2.0f, vxd_mulf(x, x)))));
    float shift_y =
        vxd_addf(vxd_mulf(k[3], xy2),
                 vxd_mulf(k[2], vxd_addf(r2, vxd_mulf(2.0f, vxd_mulf(y, y)))));

    *out_x = vxd_addf(vxd_mulf(x, radial), shift_x);
    *out_y = vxd_addf(vxd_mulf(y, radial), shift_y);
}

/* The inverse, by Newton's method with the numeric Jacobian of a unit step's distortion: five
 * rounds reach float32's precision for lenses whose distortion is monotonic. */
#define VXD_UNDISTORT_ROUNDS 6
#define VXD_UNDISTORT_STEP 1e-3f

VXD_HD void vxd_camera_undistort(const struct vxd_camera_form *camera, float x, float y,
                                 float *out_x, float *out_y)
{
    float u = x;
    float v = y;

    for (int round = 0; round < VXD_UNDISTORT_ROUNDS; round++) {
        float at[2];
        float by_u[2];
        float by_v[2];
        float error_x;
        float error_y;
        float determinant;

        vxd_camera_distort(camera, u, v, &at[0], &at[1]);
        vxd_camera_distort(camera, vxd_addf(u, VXD_UNDISTORT_STEP), v, &by_u[0],
                           &by_u[1]);
        vxd_camera_distort(camera, u, vxd_addf(v, VXD_UNDISTORT_STEP), &by_v[0],
                           &by_v[1]);
        by_u[0] = vxd_subf(by_u[0], at[0]);
        by_u[1] = vxd_subf(by_u[1], at[1]);
        by_v[0] = vxd_subf(by_v[0], at[0]);
        by_v[1] = vxd_subf(by_v[1], at[1]);
        error_x = vxd_subf(x, at[0]);
        error_y = vxd_subf(y, at[1]);
        determinant = vxd_subf(vxd_mulf(by_u[0], by_v[1]), vxd_mulf(by_u[1], by_v[0]));
        if (!(determinant > 1e-12f)) {
            break;
        }
        u = vxd_addf(
            u, vxd_mulf(VXD_UNDISTORT_STEP, vxd_divf(vxd_subf(vxd_mulf(error_x, by_v[1]),
                                                              vxd_mulf(error_y, by_v[0])),
                                                     determinant)));
        v = vxd_addf(
            v, vxd_mulf(VXD_UNDISTORT_STEP, vxd_divf(vxd_subf(vxd_mulf(error_y, by_u[0]),
                                                              vxd_mulf(error_x, by_u[1])),
                                                     determinant)));
    }
    *out_x = u;
    *out_y = v;
}

/* x / z and y / z of the ray through the centre of pixel (u, v). */
VXD_HD void vxd_camera_ray(const struct vxd_camera_form *camera, float u, float v,
                           float *x, float *y)
{
    *x = vxd_divf(vxd_subf(u, camera->cx), camera->fx);
    *y = vxd_divf(vxd_subf(v, camera->cy), camera->fy);
    if (camera->is_distorted != 0) {
        vxd_camera_undistort(camera, *x, *y, x, y);
    }
}

/* The nearest pixel of a point in the camera's frame, as its index in the image; -1 where the
 * point is behind the camera or projects outside. */
VXD_HD int32_t vxd_camera_pixel(const struct vxd_camera_form *camera, float x, float y,
                                float z)
{
    float inverse = vxd_divf(1.0f, z);
    float a = vxd_mulf(x, inverse);
    float b = vxd_mulf(y, inverse);
    float u;
    float v;

    if (!(z > 0)) {
        return -1;
    }
    if (camera->is_distorted != 0) {
        if (!(vxd_addf(vxd_mulf(a, a), vxd_mulf(b, b)) <= camera->max_r2)) {
            return -1;
        }
        vxd_camera_distort(camera, a, b, &a, &b);
    }
    u = vxd_addf(vxd_addf(vxd_mulf(camera->fx, a), camera->cx), 0.5f);
    v = vxd_addf(vxd_addf(vxd_mulf(camera->fy, b), camera->cy), 0.5f);
    if (!(u >= 0 && v >= 0 && u < (float)camera->width && v < (float)camera->height)) {
        return -1;
    }
    return (int32_t)v * camera->width + (int32_t)u;
}

/* ---- Walks ---- */

VXD_HD int32_t vxd_frame_floor(float at)
{
    int32_t cell = (int32_t)at;

    return cell - ((float)cell > at ? 1 : 0);
}

/* A walk over the cells of a grid along a segment, from the cell of its start to that of its end.
 * The numbers of steps on each axis are known at once, so it ends there whatever is rounded. */
struct vxd_cell_walk {
    int32_t cell[3];
    int32_t step[3];
    int32_t n_left[3];
    float t[3];
    float dt[3];
};

#define VXD_WALK_NEVER 3.0e38f

VXD_HD void vxd_cell_walk_start(struct vxd_cell_walk *walk, const float from[3],
                                const float to[3], const int32_t from_cell[3],
                                const int32_t to_cell[3])
{
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        int32_t n = to_cell[axis] - from_cell[axis];
        float length = vxd_subf(to[axis], from[axis]);
        float to_border = n > 0 ? vxd_subf((float)(from_cell[axis] + 1), from[axis])
                                : vxd_subf(from[axis], (float)from_cell[axis]);
        float size = n > 0 ? length : -length;
        float inverse = 0;

        if (n != 0) {
            inverse = size > 1e-30f ? vxd_inverse(size) : vxd_divf(1.0f, size);
        }
        walk->cell[axis] = from_cell[axis];
        walk->step[axis] = n > 0 ? 1 : -1;
        walk->n_left[axis] = n > 0 ? n : -n;
        walk->dt[axis] = inverse;
        walk->t[axis] = n != 0 ? vxd_mulf(to_border, inverse) : VXD_WALK_NEVER;
    }
}

VXD_HD int vxd_cell_walk_n_left(const struct vxd_cell_walk *walk)
{
    return walk->n_left[0] + walk->n_left[1] + walk->n_left[2];
}

VXD_HD void vxd_cell_walk_next(struct vxd_cell_walk *walk)
{
    int axis = walk->n_left[0] > 0 ? 0 : walk->n_left[1] > 0 ? 1 : 2;
    float least = axis == 0 ? walk->t[0] : axis == 1 ? walk->t[1] : walk->t[2];

    VXD_UNROLL
    for (int other = 1; other < 3; other++) {
        if (other > axis && walk->n_left[other] > 0 && walk->t[other] < least) {
            axis = other;
            least = walk->t[other];
        }
    }
    VXD_UNROLL
    for (int each = 0; each < 3;
         each++) { /* constant indices keep the walk in registers */
        if (each == axis) {
            walk->cell[each] += walk->step[each];
            walk->t[each] = vxd_addf(walk->t[each], walk->dt[each]);
            walk->n_left[each]--;
        }
    }
}

VXD_HD bool vxd_block_in_range(const int32_t key[3])
{
    return key[0] >= -VXD_BLOCK_LIMIT && key[0] <= VXD_BLOCK_LIMIT &&
           key[1] >= -VXD_BLOCK_LIMIT && key[1] <= VXD_BLOCK_LIMIT &&
           key[2] >= -VXD_BLOCK_LIMIT && key[2] <= VXD_BLOCK_LIMIT;
}

#endif
