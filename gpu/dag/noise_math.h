// SPDX-License-Identifier: Apache-2.0
/* Value noise in integers, and balls whose radius it changes.
 *
 * The lattice has a point every 2^cell_bits voxels, the first at the scene's low corner; each
 * has a value of 16 bits, a hash of its indices and the seed. Between them the value is
 * interpolated along x, then y, then z, each time as
 *     (a (65536 - s) + b s) / 65536, rounded down,
 * where s = f^2 (196608 - 2 f) / 2^32, rounded down, smooths the fraction f of the way from a
 * to b in 1/65536 (rounded down where the lattice is finer than that). A value u, 0 to 65535,
 * becomes amplitude (2 u - 65535) / 65535 units, rounded to zero: from -amplitude to
 * amplitude, both included. */
#ifndef VXD_GPU_DAG_NOISE_MATH_H
#define VXD_GPU_DAG_NOISE_MATH_H

#include "gpu/dag/shape_math.h"

/* Value of a lattice point, 0 to 65535: the finalizer of MurmurHash3 over 64 bits, twice. */
VXD_HD uint32_t vxd_dag_noise_value(uint32_t seed, uint32_t i, uint32_t j, uint32_t k)
{
    uint64_t hash = (uint64_t)seed << 32 | i;

    for (int round = 0; round < 2; round++) {
        hash ^= hash >> 33;
        hash *= 0xff51afd7ed558ccdULL;
        hash ^= hash >> 33;
        hash *= 0xc4ceb9fe1a85ec53ULL;
        hash ^= hash >> 33;
        hash += round == 0 ? (uint64_t)j << 32 | k : 0;
    }
    return (uint32_t)(hash >> 48);
}

/* How far a coordinate (units, not negative) is between two lattice points, smoothed: 0 to
 * 65535. */
VXD_HD uint32_t vxd_dag_noise_weight(int64_t c, int cell_bits)
{
    int bits = cell_bits + 8;
    uint64_t f = (uint64_t)c & (((uint64_t)1 << bits) - 1);

    f = bits > 16 ? f >> (bits - 16) : f << (16 - bits);
    return (uint32_t)(f * f * (196608 - 2 * f) >> 32);
}

VXD_HD uint32_t vxd_dag_noise_mix(uint32_t a, uint32_t b, uint32_t weight)
{
    return (uint32_t)(((uint64_t)a * (65536 - weight) + (uint64_t)b * weight) >> 16);
}

VXD_HD int64_t vxd_dag_noise_units(uint32_t value, int64_t amplitude)
{
    return amplitude * (2 * (int64_t)value - 65535) / 65535;
}

/* Values at the corners of the lattice cell of a point, by octant. */
VXD_HD void vxd_dag_noise_corners(uint32_t seed, int cell_bits, const int64_t c[3],
                                  uint32_t corners[8])
{
    int bits = cell_bits + 8;

    for (uint32_t octant = 0; octant < 8; octant++) {
        corners[octant] =
            vxd_dag_noise_value(seed, (uint32_t)(c[0] >> bits) + (octant >> 2),
                                (uint32_t)(c[1] >> bits) + (octant >> 1 & 1),
                                (uint32_t)(c[2] >> bits) + (octant & 1));
    }
}

/* Value at a point (units, none negative) of the lattice cell with these corners. */
VXD_HD uint32_t vxd_dag_noise_between(const uint32_t corners[8], int cell_bits,
                                      const int64_t c[3])
{
    uint32_t weight[3];
    uint32_t v[4];

    for (int axis = 0; axis < 3; axis++) {
        weight[axis] = vxd_dag_noise_weight(c[axis], cell_bits);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = vxd_dag_noise_mix(corners[i], corners[i + 4], weight[0]);
    }
    for (int i = 0; i < 2; i++) {
        v[i] = vxd_dag_noise_mix(v[i], v[i + 2], weight[1]);
    }
    return vxd_dag_noise_mix(v[0], v[1], weight[2]);
}

/* Noise at a point, units. */
VXD_HD int64_t vxd_dag_noise(uint32_t seed, int cell_bits, int64_t amplitude,
                             const int64_t c[3])
{
    uint32_t corners[8];

    vxd_dag_noise_corners(seed, cell_bits, c, corners);
    return vxd_dag_noise_units(vxd_dag_noise_between(corners, cell_bits, c), amplitude);
}

/* Noise of a leaf's voxels that all lie in one lattice cell (cell_bits at least 2): the same
 * numbers, with what rows share done once. */
VXD_HD void vxd_dag_noise_leaf(const struct vxd_dag_shape *shape,
                               const struct vxd_dag_extent *extent,
                               int64_t noise[4][4][4])
{
    uint32_t weight[3][4];
    uint32_t v[8];

    vxd_dag_noise_corners(shape->seed, shape->cell_bits, extent->low, v);
    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < 4; k++) {
            weight[axis][k] = vxd_dag_noise_weight(vxd_dag_nth_centre(extent, axis, k),
                                                   shape->cell_bits);
        }
    }
    for (int i = 0; i < 4; i++) {
        uint32_t x[4];

        for (int p = 0; p < 4; p++) {
            x[p] = vxd_dag_noise_mix(v[p], v[p + 4], weight[0][i]);
        }
        for (int j = 0; j < 4; j++) {
            uint32_t low = vxd_dag_noise_mix(x[0], x[2], weight[1][j]);
            uint32_t high = vxd_dag_noise_mix(x[1], x[3], weight[1][j]);

            for (int k = 0; k < 4; k++) {
                noise[i][j][k] = vxd_dag_noise_units(
                    vxd_dag_noise_mix(low, high, weight[2][k]), shape->amplitude);
            }
        }
    }
}

/* Between which values the noise of a cube's voxels is, where it lies in one lattice cell;
 * else, and where that is all the shape says, from -amplitude to amplitude. In between the
 * lattice's points it is between theirs, which is all that is asked where the cube is the cell.
 * Along an axis the noise before rounding is a straight line in the weight, so in a smaller cube it
 * is least and greatest at its corners; three values more for what the three roundings took. */
VXD_HD void vxd_dag_noise_bounds(const struct vxd_dag_shape *shape,
                                 const struct vxd_dag_extent *extent, int64_t *least,
                                 int64_t *most)
{
    int bits = shape->cell_bits + 8;
    bool is_cell = extent->high[0] - extent->low[0] + VXD_DAG_UNIT == (int64_t)1 << bits;
    uint32_t low = 65535;
    uint32_t high = 0;
    uint32_t v[8];

    *least = -shape->amplitude;
    *most = shape->amplitude;
    if (extent->low[0] >> bits != extent->high[0] >> bits ||
        extent->low[1] >> bits != extent->high[1] >> bits ||
        extent->low[2] >> bits != extent->high[2] >> bits) {
        return;
    }
    vxd_dag_noise_corners(shape->seed, shape->cell_bits, extent->low, v);
    for (int corner = 0; corner < 8; corner++) {
        int64_t c[3] = {(corner & 4) == 0 ? extent->low[0] : extent->high[0],
                        (corner & 2) == 0 ? extent->low[1] : extent->high[1],
                        (corner & 1) == 0 ? extent->low[2] : extent->high[2]};
        uint32_t value =
            is_cell ? v[corner] : vxd_dag_noise_between(v, shape->cell_bits, c);

        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    if (!is_cell) {
        low = low > 3 ? low - 3 : 0;
        high = high < 65532 ? high + 3 : 65535;
    }
    *least = vxd_dag_noise_units(low, shape->amplitude);
    *most = vxd_dag_noise_units(high, shape->amplitude);
}

VXD_HD enum vxd_dag_relation
vxd_dag_noise_ball_relation(const struct vxd_dag_shape *shape,
                            const struct vxd_dag_extent *extent)
{
    uint64_t limit = vxd_dag_square(shape->r + shape->amplitude);
    int64_t least = -shape->amplitude;
    int64_t most = shape->amplitude;
    uint64_t nearest;
    uint64_t farthest;

    vxd_dag_ball_span(shape->a, limit, extent, &nearest, &farthest);
    for (int round = 0; round < 2; round++) {
        if (shape->r + most < 0 || nearest > vxd_dag_square(shape->r + most)) {
            return VXD_DAG_OUTSIDE;
        }
        if (shape->r + least >= 0 && farthest <= vxd_dag_square(shape->r + least)) {
            return VXD_DAG_INSIDE;
        }
        if (round == 0) {
            vxd_dag_noise_bounds(shape, extent, &least, &most);
        }
    }
    return VXD_DAG_PARTIAL;
}

#if VXD_DAG_HAS_LANES
/* The low halves of four products. */
static inline __m128i vxd_dag_lanes_product(__m128i a, __m128i b)
{
    __m128i even = _mm_mul_epu32(a, b);
    __m128i odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32));

    return _mm_unpacklo_epi32(_mm_shuffle_epi32(even, _MM_SHUFFLE(0, 0, 2, 0)),
                              _mm_shuffle_epi32(odd, _MM_SHUFFLE(0, 0, 2, 0)));
}

/* vxd_dag_noise_mix of four: a 65536 + (b - a) weight is below 2^32, whatever its parts are. */
static inline __m128i vxd_dag_lanes_mix(__m128i a, __m128i b, __m128i weight)
{
    __m128i change = vxd_dag_lanes_product(_mm_sub_epi32(b, a), weight);

    return _mm_srli_epi32(_mm_add_epi32(_mm_slli_epi32(a, 16), change), 16);
}

/* vxd_dag_noise_units of four, of amplitudes below 2^15: m / 65535 is (m + m / 65536 + 1) / 65536,
 * all rounded down, for m = q 65535 + rest as long as q is below 65536. */
static inline __m128i vxd_dag_lanes_units(__m128i value, __m128i amplitude)
{
    __m128i x = _mm_sub_epi32(_mm_slli_epi32(value, 1), _mm_set1_epi32(65535));
    __m128i sign = _mm_srai_epi32(x, 31);
    __m128i m =
        vxd_dag_lanes_product(_mm_sub_epi32(_mm_xor_si128(x, sign), sign), amplitude);
    __m128i q = _mm_srli_epi32(
        _mm_add_epi32(_mm_add_epi32(m, _mm_srli_epi32(m, 16)), _mm_set1_epi32(1)), 16);

    return _mm_sub_epi32(_mm_xor_si128(q, sign), sign);
}

/* What the voxels of a leaf share: squares of distances along each axis, weights, and the ball. */
struct vxd_dag_noise_lanes {
    uint32_t corners[8];
    uint32_t weight[3][4];
    int32_t terms[3][4];
    __m128i r;
    __m128i amplitude;
};

/* Voxels of one x that are in: 16 bits in Morton order of y and z. */
static inline uint32_t vxd_dag_noise_slice(const struct vxd_dag_noise_lanes *leaf, int x)
{
    const uint32_t *v = leaf->corners;
    const uint32_t *z = leaf->weight[2];
    const int32_t *terms = leaf->terms[2];
    __m128i weight_x = _mm_set1_epi32((int)leaf->weight[0][x]);
    __m128i weight_y = _mm_loadu_si128((const __m128i *)(const void *)leaf->weight[1]);
    __m128i corners = vxd_dag_lanes_mix(
        _mm_loadu_si128((const __m128i *)(const void *)v),
        _mm_loadu_si128((const __m128i *)(const void *)(v + 4)), weight_x);
    __m128i low = vxd_dag_lanes_mix(_mm_shuffle_epi32(corners, 0x00),
                                    _mm_shuffle_epi32(corners, 0xaa), weight_y);
    __m128i high = vxd_dag_lanes_mix(_mm_shuffle_epi32(corners, 0x55),
                                     _mm_shuffle_epi32(corners, 0xff), weight_y);
    __m128i xy =
        _mm_add_epi32(_mm_set1_epi32(leaf->terms[0][x]),
                      _mm_loadu_si128((const __m128i *)(const void *)leaf->terms[1]));
    uint32_t above = 0;

    /* By the bits y1 and z1; the lanes are y0 and z0. */
    for (int part = 0; part < 4; part++) {
        const uint32_t *w = (part & 1) == 0 ? z : z + 2;
        const int32_t *t = (part & 1) == 0 ? terms : terms + 2;
        bool is_upper = part >= 2;
        __m128i value = vxd_dag_lanes_mix(
            is_upper ? _mm_unpackhi_epi32(low, low) : _mm_unpacklo_epi32(low, low),
            is_upper ? _mm_unpackhi_epi32(high, high) : _mm_unpacklo_epi32(high, high),
            _mm_setr_epi32((int)w[0], (int)w[1], (int)w[0], (int)w[1]));
        __m128i sum = _mm_add_epi32(is_upper ? _mm_unpackhi_epi32(xy, xy)
                                             : _mm_unpacklo_epi32(xy, xy),
                                    _mm_setr_epi32(t[0], t[1], t[0], t[1]));
        __m128i r = _mm_add_epi32(leaf->r, vxd_dag_lanes_units(value, leaf->amplitude));
        /* A radius below 0 has no voxel. */
        __m128i out = _mm_or_si128(_mm_cmpgt_epi32(sum, vxd_dag_lanes_product(r, r)),
                                   _mm_srai_epi32(r, 31));

        above |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(out)) << (4 * part);
    }
    return ~above & 0xffffu;
}

/* True where the ball is so small that the leaf's mask is found in 32 bits, and the leaf lies in one
 * lattice cell. */
static inline bool vxd_dag_noise_ball_mask_near(const struct vxd_dag_shape *shape,
                                                const struct vxd_dag_extent *extent,
                                                uint64_t *mask)
{
    const int64_t most =
        1 << 14; /* units: three squares, cut behind it, are below 2^30 */
    struct vxd_dag_noise_lanes leaf;
    uint64_t terms[3][4];

    if (shape->cell_bits < VXD_DAG_LEAF_HEIGHT || shape->r >= most ||
        shape->r + shape->amplitude >= most) {
        return false;
    }
    vxd_dag_ball_terms(shape->a, vxd_dag_square(shape->r + shape->amplitude), extent,
                       terms);
    for (int axis = 0; axis < 3; axis++) {
        for (int k = 0; k < 4; k++) {
            leaf.terms[axis][k] = (int32_t)terms[axis][k];
            leaf.weight[axis][k] = vxd_dag_noise_weight(
                vxd_dag_nth_centre(extent, axis, k), shape->cell_bits);
        }
    }
    vxd_dag_noise_corners(shape->seed, shape->cell_bits, extent->low, leaf.corners);
    leaf.r = _mm_set1_epi32((int)shape->r);
    leaf.amplitude = _mm_set1_epi32((int)shape->amplitude);
    *mask = 0;
    for (int x = 0; x < 4; x++) {
        uint64_t slice = vxd_dag_noise_slice(&leaf, x);

        /* The bit x0 stands between y1, z1 and y0, z0. */
        for (int part = 0; part < 4; part++) {
            *mask |= (slice >> (4 * part) & 0xfu)
                     << (32 * (x >> 1) + 8 * part + 4 * (x & 1));
        }
    }
    return true;
}
#endif

VXD_HD uint64_t vxd_dag_noise_ball_mask(const struct vxd_dag_shape *shape,
                                        const struct vxd_dag_extent *extent)
{
    bool is_one_cell = shape->cell_bits >= VXD_DAG_LEAF_HEIGHT;
    uint64_t terms[3][4];
    int64_t noise[4][4][4];
    uint64_t mask = 0;

#if VXD_DAG_HAS_LANES
    if (vxd_dag_noise_ball_mask_near(shape, extent, &mask)) {
        return mask;
    }
#endif
    vxd_dag_ball_terms(shape->a, vxd_dag_square(shape->r + shape->amplitude), extent,
                       terms);
    if (is_one_cell) {
        vxd_dag_noise_leaf(shape, extent, noise);
    }
    for (int voxel = 0; voxel < 64; voxel++) {
        int i = voxel >> 4;
        int j = voxel >> 2 & 3;
        int k = voxel & 3;
        int64_t c[3] = {vxd_dag_nth_centre(extent, 0, i),
                        vxd_dag_nth_centre(extent, 1, j),
                        vxd_dag_nth_centre(extent, 2, k)};
        int64_t r = shape->r + (is_one_cell ? noise[i][j][k]
                                            : vxd_dag_noise(shape->seed, shape->cell_bits,
                                                            shape->amplitude, c));

        if (r >= 0 && terms[0][i] + terms[1][j] + terms[2][k] <= vxd_dag_square(r)) {
            mask |= (uint64_t)1 << vxd_dag_leaf_index(i, j, k);
        }
    }
    return mask;
}

#endif
