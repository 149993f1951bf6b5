// SPDX-License-Identifier: Apache-2.0
/* Classifies the eight children of a cube against a shape at once, as four children share
 * each term of an axis. The answers are those of the shapes' own relations (shape_math.h,
 * capsule_math.h, noise_math.h), except that a leaf which depends on noise is left
 * partial: its mask decides. */
#ifndef VXD_GPU_SVDAG_BRUSH_BRUSH_CPU_H
#define VXD_GPU_SVDAG_BRUSH_BRUSH_CPU_H

#include "gpu/svdag/brush/capsule_math.h"
#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/brush/noise_math.h"

enum {
    VXD_SVDAG_ALL_CHILDREN = 0xff
};

/* Masks of children. Those in neither mask may be partly inside. */
struct vxd_svdag_relations {
    unsigned outside;
    unsigned inside;
};

/* The four children in one half of an axis. */
VXD_HD unsigned vxd_svdag_half_children(int axis, int half)
{
    const unsigned low = axis == 0 ? 0x0f : axis == 1 ? 0x33 : 0x55;

    return half == 0 ? low : VXD_SVDAG_ALL_CHILDREN & ~low;
}

/* Side of a child of a cube of this height, in units. */
VXD_HD int64_t vxd_svdag_child_side(int height)
{
    return (int64_t)VXD_SVDAG_UNIT << (height - 1);
}

/* Extent of a child, from the extent and height of its parent. */
VXD_HD struct vxd_svdag_extent
vxd_svdag_child_extent(const struct vxd_svdag_extent *extent, int height, int octant)
{
    const int64_t side = vxd_svdag_child_side(height);
    struct vxd_svdag_extent child;

    for (int axis = 0; axis < 3; axis++) {
        child.low[axis] = extent->low[axis] + (octant >> (2 - axis) & 1) * side;
        child.high[axis] = child.low[axis] + side - VXD_SVDAG_UNIT;
    }
    return child;
}

VXD_HD struct vxd_svdag_relations
vxd_svdag_box_children(const struct vxd_svdag_shape *shape,
                       const struct vxd_svdag_extent *extent, int height)
{
    const int64_t side = vxd_svdag_child_side(height);
    struct vxd_svdag_relations relations = {0, VXD_SVDAG_ALL_CHILDREN};

    for (int axis = 0; axis < 3; axis++) {
        const int64_t low = vxd_svdag_next_centre(shape->low[axis]);
        const int64_t high = shape->high[axis];

        for (int half = 0; half < 2; half++) {
            const int64_t first = extent->low[axis] + half * side;
            const int64_t last = first + side - VXD_SVDAG_UNIT;
            const unsigned here = vxd_svdag_half_children(axis, half);

            relations.outside |= low >= high || last < low || first >= high ? here : 0;
            relations.inside &= first >= low && last < high ? ~0u : ~here;
        }
    }
    relations.inside &= ~relations.outside;
    return relations;
}

VXD_HD struct vxd_svdag_relations
vxd_svdag_half_space_children(const struct vxd_svdag_shape *shape,
                              const struct vxd_svdag_extent *extent, int height)
{
    const int64_t side = vxd_svdag_child_side(height);
    struct vxd_svdag_relations relations = {0, 0};
    int64_t least[3][2];
    int64_t most[3][2];

    for (int axis = 0; axis < 3; axis++) {
        for (int half = 0; half < 2; half++) {
            const int64_t first = extent->low[axis] + half * side;
            const int64_t low = shape->n[axis] * first;
            const int64_t high = shape->n[axis] * (first + side - VXD_SVDAG_UNIT);

            least[axis][half] = low < high ? low : high;
            most[axis][half] = low < high ? high : low;
        }
    }
    for (int i = 0; i < 8; i++) {
        relations.outside |=
            (unsigned)(least[0][i >> 2] + least[1][i >> 1 & 1] + least[2][i & 1] >
                       shape->d)
            << i;
        relations.inside |=
            (unsigned)(most[0][i >> 2] + most[1][i >> 1 & 1] + most[2][i & 1] <= shape->d)
            << i;
    }
    return relations;
}

/* A child outside the largest ball that noise can make, or inside the smallest one, is
 * decided without noise. The others evaluate noise, except leaves, whose masks decide
 * each voxel. */
VXD_HD struct vxd_svdag_relations
vxd_svdag_noise_ball_children(const struct vxd_svdag_shape *shape,
                              const struct vxd_svdag_extent *extent, int height)
{
    const int64_t inner = shape->r - shape->amplitude;
    struct vxd_svdag_relations relations;
    unsigned unknown;

    vxd_svdag_balls_children(shape->a, vxd_svdag_square(shape->r + shape->amplitude),
                             inner < 0 ? 0 : vxd_svdag_square(inner), extent, height,
                             &relations.outside, &relations.inside);
    relations.inside = inner < 0 ? 0 : relations.inside;
    unknown = VXD_SVDAG_ALL_CHILDREN & ~(relations.outside | relations.inside);
    if (height - 1 == VXD_SVDAG_LEAF_HEIGHT || height - 1 > shape->cell_bits) {
        return relations;
    }
    for (int i = 0; i < 8; i++) {
        const struct vxd_svdag_extent child = vxd_svdag_child_extent(extent, height, i);
        const enum vxd_svdag_relation relation =
            (unknown >> i & 1) != 0 ? vxd_svdag_noise_ball_relation(shape, &child)
                                    : VXD_SVDAG_PARTIAL;

        relations.outside |= (unsigned)(relation == VXD_SVDAG_OUTSIDE) << i;
        relations.inside |= (unsigned)(relation == VXD_SVDAG_INSIDE) << i;
    }
    return relations;
}

/* Terms of vxd_svdag_is_near_segment_64 for the centres of the eight children, by axis
 * and half, and the capsule's d. */
struct vxd_svdag_capsule_children_64 {
    int64_t d[3];
    int64_t v[3][2];
    int64_t along[3][2];
    int64_t square[3][2];
    int64_t length;
};

/* False where 64 bits are not enough. */
VXD_HD bool vxd_svdag_capsule_children_64_make(const struct vxd_svdag_shape *shape,
                                               const struct vxd_svdag_extent *extent,
                                               int height,
                                               struct vxd_svdag_capsule_children_64 *out)
{
    const int64_t side = vxd_svdag_child_side(height);
    int64_t v_1 = 0;

    for (int axis = 0; axis < 3; axis++) {
        int64_t most = 0;

        out->d[axis] = shape->b[axis] - shape->a[axis];
        for (int half = 0; half < 2; half++) {
            const int64_t v = extent->low[axis] + half * side +
                              (side - VXD_SVDAG_UNIT) / 2 - shape->a[axis];
            const int64_t size = v < 0 ? -v : v;

            out->v[axis][half] = v;
            most = size > most ? size : most;
        }
        v_1 += most;
    }
    if (!vxd_svdag_capsule_fits_64(out->d, v_1)) {
        return false;
    }
    out->length = 0;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t d = out->d[axis];

        out->length += d * d;
        for (int half = 0; half < 2; half++) {
            out->along[axis][half] = out->v[axis][half] * d;
            out->square[axis][half] = out->v[axis][half] * out->v[axis][half];
        }
    }
    return true;
}

/* The children in the mask `some` whose centres are within r of the segment. */
VXD_HD unsigned
vxd_svdag_capsule_children_near(const struct vxd_svdag_capsule_children_64 *brush,
                                int64_t r, unsigned some)
{
    const int64_t r_square = (int64_t)vxd_svdag_square(r);
    unsigned near = 0;

    for (int axis = 0; axis < 3; axis++) {
        const int64_t d = brush->d[axis];

        for (int half = 0; half < 2; half++) {
            const int64_t v = brush->v[axis][half];

            if (v < (d < 0 ? d : 0) - r || v > (d > 0 ? d : 0) + r) {
                some &= ~vxd_svdag_half_children(axis, half);
            }
        }
    }
    for (; some != 0; some &= some - 1) {
        const int i = vxd_svdag_low_bit(some);
        const int x = i >> 2;
        const int y = i >> 1 & 1;
        const int z = i & 1;

        near |= (unsigned)vxd_svdag_is_near_segment_64(
                    brush->along[0][x] + brush->along[1][y] + brush->along[2][z],
                    brush->square[0][x] + brush->square[1][y] + brush->square[2][z],
                    brush->length, r_square)
                << i;
    }
    return near;
}

VXD_HD struct vxd_svdag_relations
vxd_svdag_capsule_children(const struct vxd_svdag_shape *shape,
                           const struct vxd_svdag_extent *extent, int height)
{
    const int64_t around =
        vxd_svdag_capsule_around((vxd_svdag_child_side(height) - VXD_SVDAG_UNIT) / 2);
    struct vxd_svdag_relations relations = {0, 0};
    struct vxd_svdag_capsule_children_64 brush;

    if (shape->r + around <= VXD_SVDAG_MAX_COORDINATE &&
        vxd_svdag_capsule_children_64_make(shape, extent, height, &brush)) {
        const unsigned near = vxd_svdag_capsule_children_near(&brush, shape->r + around,
                                                              VXD_SVDAG_ALL_CHILDREN);

        relations.outside = VXD_SVDAG_ALL_CHILDREN & ~near;
        relations.inside =
            shape->r < around || near == 0
                ? 0
                : vxd_svdag_capsule_children_near(&brush, shape->r - around, near);
        return relations;
    }
    for (int i = 0; i < 8; i++) {
        const struct vxd_svdag_extent child = vxd_svdag_child_extent(extent, height, i);
        const enum vxd_svdag_relation relation =
            vxd_svdag_capsule_relation(shape, &child);

        relations.outside |= (unsigned)(relation == VXD_SVDAG_OUTSIDE) << i;
        relations.inside |= (unsigned)(relation == VXD_SVDAG_INSIDE) << i;
    }
    return relations;
}

#endif
