// SPDX-License-Identifier: Apache-2.0
/* Masks of balls with noise, eight voxels at a time: those of an octant of the leaf, in
 * Morton order.
 *
 * The numbers are those of noise_math.h in 32 bits: a 65536 + (b - a) weight is below
 * 2^32. Interpolation along x is done for both x halves of an octant at once, with all
 * four corners of y and z; along y for both ends of z. The compiler maps the vectors to
 * the processor's own. On x86-64 it compiles two versions, and the processor decides at
 * run time. */
#include "gpu/svdag/brush/noise_math.h"

#if defined(__x86_64__)
#define HAS_AVX2 1
#else
#define HAS_AVX2 0
#endif
#define ALWAYS static inline __attribute__((always_inline))

typedef int32_t signed_lanes __attribute__((vector_size(32)));
typedef uint32_t lanes __attribute__((vector_size(32)));

/* What the voxels of a leaf share; weights and squared distances by axis and index. */
struct noise_leaf {
    uint32_t corners[8];
    uint32_t weight[3][4];
    uint32_t terms[3][4];
    uint32_t r;
    uint32_t amplitude;
};

/* vxd_svdag_noise_mix for eight voxels. */
ALWAYS void mix(const lanes *a, const lanes *b, const lanes *weight, lanes *out)
{
    *out = ((*a << 16) + (*b - *a) * *weight) >> 16;
}

/* vxd_svdag_noise_units for eight voxels, for amplitudes below 2^15. The quotient m /
 * 65535 is (m + m / 65536 + 1) / 65536, all rounded down, for m = q 65535 + rest as long
 * as q is below 65536. */
ALWAYS void make_units(const lanes *value, uint32_t amplitude, lanes *out)
{
    const lanes x = (*value << 1) - 65535;
    const lanes sign = (lanes)((signed_lanes)x < 0);
    const lanes m = ((x ^ sign) - sign) * amplitude;
    const lanes q = (m + (m >> 16) + 1) >> 16;

    *out = (q ^ sign) - sign;
}

/* Spreads two numbers, one for each half of an octant along an axis, to eight lanes. */
ALWAYS void spread(const uint32_t two[2], int axis, lanes *out)
{
    const uint32_t low = two[0];
    const uint32_t high = two[1];

    *out = axis == 0   ? (lanes){low, low, low, low, high, high, high, high}
           : axis == 1 ? (lanes){low, low, high, high, low, low, high, high}
                       : (lanes){low, high, low, high, low, high, low, high};
}

/* Transposes the 8x8 matrix of bits whose row k is the low byte of lane k. */
ALWAYS uint64_t transpose(const lanes *rows)
{
    uint64_t bits = 0;
    uint64_t swapped;

    for (int k = 0; k < 8; k++) {
        bits |= (uint64_t)(*rows)[k] << 8 * k;
    }
    swapped = (bits ^ bits >> 7) & UINT64_C(0x00aa00aa00aa00aa);
    bits ^= swapped ^ swapped << 7;
    swapped = (bits ^ bits >> 14) & UINT64_C(0x0000cccc0000cccc);
    bits ^= swapped ^ swapped << 14;
    swapped = (bits ^ bits >> 28) & UINT64_C(0x00000000f0f0f0f0);
    return bits ^ swapped ^ swapped << 28;
}

/* Finds the voxels of an octant that are outside: all bits of their lanes are set. */
ALWAYS void find_out(const struct noise_leaf *leaf, const lanes *ends, const lanes *xy,
                     int z, lanes *out)
{
    const lanes low = __builtin_shufflevector(*ends, *ends, 0, 0, 2, 2, 4, 4, 6, 6);
    const lanes high = __builtin_shufflevector(*ends, *ends, 1, 1, 3, 3, 5, 5, 7, 7);
    lanes weight;
    lanes value;
    lanes term;
    lanes r;

    spread(leaf->weight[2] + z, 2, &weight);
    spread(leaf->terms[2] + z, 2, &term);
    mix(&low, &high, &weight, &value);
    make_units(&value, leaf->amplitude, &r);
    r += leaf->r;
    /* With a radius below 0 no voxel is inside. */
    *out = (lanes)((signed_lanes)(*xy + term) > (signed_lanes)(r * r)) |
           (lanes)((signed_lanes)r < 0);
}

ALWAYS uint64_t find_mask(const struct noise_leaf *leaf)
{
    const uint32_t *v = leaf->corners;
    const lanes near = {v[0], v[1], v[2], v[3], v[0], v[1], v[2], v[3]};
    const lanes far = {v[4], v[5], v[6], v[7], v[4], v[5], v[6], v[7]};
    lanes above = {0}; /* bit i of a lane belongs to octant i */

    for (int i = 0; i < 8; i += 4) {
        const int x = i >> 1;
        lanes weight_x;
        lanes term_x;
        lanes corners; /* by y and z, for both x */

        spread(leaf->weight[0] + x, 0, &weight_x);
        spread(leaf->terms[0] + x, 0, &term_x);
        mix(&near, &far, &weight_x, &corners);
        for (int j = 0; j < 4; j += 2) {
            const lanes low =
                __builtin_shufflevector(corners, corners, 0, 1, 0, 1, 4, 5, 4, 5);
            const lanes high =
                __builtin_shufflevector(corners, corners, 2, 3, 2, 3, 6, 7, 6, 7);
            lanes weight_y;
            lanes term_y;
            lanes ends; /* by z, for both x and y */
            lanes out;

            spread(leaf->weight[1] + j, 1, &weight_y);
            spread(leaf->terms[1] + j, 1, &term_y);
            mix(&low, &high, &weight_y, &ends);
            term_y += term_x;
            for (int z = 0; z < 2; z++) {
                find_out(leaf, &ends, &term_y, 2 * z, &out);
                above |= out & 1u << (i + j + z);
            }
        }
    }
    return ~transpose(&above);
}

static uint64_t find_mask_any(const struct noise_leaf *leaf)
{
    return find_mask(leaf);
}

#if HAS_AVX2
__attribute__((target("avx2"))) static uint64_t
find_mask_avx2(const struct noise_leaf *leaf)
{
    return find_mask(leaf);
}
#endif

uint64_t vxd_svdag_noise_mask_small(const struct vxd_svdag_shape *shape,
                                    const struct vxd_svdag_extent *extent)
{
    struct noise_leaf leaf;
    uint64_t terms[3][4];

    vxd_svdag_ball_terms(shape->a, vxd_svdag_square(shape->r + shape->amplitude), extent,
                         terms);
    vxd_svdag_noise_corners(shape->seed, shape->cell_bits, extent->low, leaf.corners);
    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < 4; k++) {
            leaf.terms[axis][k] = (uint32_t)terms[axis][k];
            leaf.weight[axis][k] = vxd_svdag_noise_weight(
                vxd_svdag_nth_centre(extent, axis, k), shape->cell_bits);
        }
    }
    leaf.r = (uint32_t)shape->r;
    leaf.amplitude = (uint32_t)shape->amplitude;
#if HAS_AVX2
    if (__builtin_cpu_supports("avx2")) {
        return find_mask_avx2(&leaf);
    }
#endif
    return find_mask_any(&leaf);
}
