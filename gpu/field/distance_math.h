// SPDX-License-Identifier: Apache-2.0
/* Distances at points, as both backends compile them. Sums of squares go x, y, z; every operation
 * rounds once, so that both backends give the same bits. */
#ifndef VXD_GPU_FIELD_DISTANCE_MATH_H
#define VXD_GPU_FIELD_DISTANCE_MATH_H

#include "gpu/field/field_math.h"

/* Above half the diagonal of a cube. Bounds that use it are never too high. */
#define VXD_FIELD_HALF_CUBE 0.8661
/* Above the errors of floats in bounds of distances. */
#define VXD_FIELD_SLACK 1e-4f

VXD_HD double vxd_field_subd(double a, double b)
{
    return vxd_addd(a, -b);
}

/* Of doubles it is rounded as IEEE 754 says on both backends. */
VXD_HD double vxd_field_sqrt(double a)
{
    return sqrt(a);
}

VXD_HD double vxd_field_divd(double a, double b)
{
#if defined(__CUDA_ARCH__)
    return __ddiv_rn(a, b);
#else
    return a / b;
#endif
}

VXD_HD double vxd_field_square(double a)
{
    return vxd_muld(a, a);
}

VXD_HD double vxd_field_sum(double x, double y, double z)
{
    return vxd_addd(vxd_addd(x, y), z);
}

/* What a query finds; the voxel in the field's indices. */
struct vxd_field_answer {
    double distance; /* voxels, signed; NaN: unknown */
    double gradient[3];
    int nearest[3];
    bool is_near;
};

/* Makes a direction of unit length; what has none becomes 0. */
VXD_HD void vxd_field_unit(double v[3])
{
    double length = vxd_field_sqrt(vxd_field_sum(
        vxd_field_square(v[0]), vxd_field_square(v[1]), vxd_field_square(v[2])));

    for (int axis = 0; axis < 3; axis++) {
        v[axis] = length > 0 ? vxd_field_divd(v[axis], length) : 0.0;
    }
}

/* The voxel that holds a point, in the field's indices; false outside, and where the point is not
 * finite. */
VXD_HD bool vxd_field_voxel_of(const struct vxd_field_view *field, const double point[3],
                               int at[3])
{
    for (int axis = 0; axis < 3; axis++) {
        double p = vxd_field_subd(point[axis], (double)field->low[axis]);

        if (!(p >= 0 && p < (double)field->size[axis])) {
            return false;
        }
        at[axis] = (int)p;
    }
    return true;
}

/* The signed distance between centres at a voxel. */
VXD_HD double vxd_field_distance_at(const struct vxd_field_view *field, int x, int y,
                                    int z)
{
    int square = field->squares[vxd_field_index(field, x, y, z)];
    bool is_obstacle = square < 0;
    double distance;

    square = is_obstacle ? -square : square;
    distance =
        square == VXD_FIELD_FAR ? (double)field->reach : vxd_field_sqrt((double)square);
    return is_obstacle ? -distance : distance;
}

VXD_HD void vxd_field_query_nearest(const struct vxd_field_view *field, const int at[3],
                                    struct vxd_field_answer *out)
{
    double sign = vxd_field_is_obstacle(field, at[0], at[1], at[2]) ? -1.0 : 1.0;

    out->distance = vxd_field_distance_at(field, at[0], at[1], at[2]);
    for (int axis = 0; axis < 3 && out->is_near; axis++) {
        out->gradient[axis] = sign * (double)(at[axis] - out->nearest[axis]);
    }
}

/* The distances at the eight centres around a place; NaN where they are outside or unknown. */
VXD_HD void vxd_field_corners(const struct vxd_field_view *field, const int first[3],
                              double values[8])
{
    for (int i = 0; i < 8; i++) {
        int x = first[0] + (i >> 2 & 1);
        int y = first[1] + (i >> 1 & 1);
        int z = first[2] + (i & 1);

        values[i] = x < 0 || y < 0 || z < 0 || x >= field->size[0] ||
                            y >= field->size[1] || z >= field->size[2] ||
                            vxd_field_is_unknown(field, x, y, z)
                        ? NAN
                        : vxd_field_distance_at(field, x, y, z);
    }
}

/* Between centres: `point` in voxels from the scene's corner. Corners without weight need not be
 * known. */
VXD_HD void vxd_field_query_trilinear(const struct vxd_field_view *field,
                                      const double point[3], struct vxd_field_answer *out)
{
    double weight[3][2];
    double values[8];
    int first[3];

    for (int axis = 0; axis < 3; axis++) {
        double p =
            vxd_field_subd(vxd_field_subd(point[axis], (double)field->low[axis]), 0.5);
        double low = floor(p);

        first[axis] = (int)low;
        weight[axis][1] = vxd_field_subd(p, low);
        weight[axis][0] = vxd_field_subd(1.0, weight[axis][1]);
    }
    vxd_field_corners(field, first, values);
    out->distance = 0;
    for (int i = 0; i < 8; i++) {
        int bit[3] = {i >> 2 & 1, i >> 1 & 1, i & 1};
        double w[3] = {weight[0][bit[0]], weight[1][bit[1]], weight[2][bit[2]]};

        if (w[0] != 0 && w[1] != 0 && w[2] != 0) {
            out->distance = vxd_addd(
                out->distance, vxd_muld(vxd_muld(vxd_muld(values[i], w[0]), w[1]), w[2]));
        }
        for (int axis = 0; axis < 3; axis++) {
            int other = i | 4 >> axis;
            double slope = vxd_field_subd(values[other], values[i]);
            double area = vxd_muld(w[(axis + 1) % 3], w[(axis + 2) % 3]);

            if (bit[axis] == 0 && area != 0 && slope == slope) {
                out->gradient[axis] =
                    vxd_addd(out->gradient[axis], vxd_muld(slope, area));
            }
        }
    }
}

/* How far cube k, which covers [k, k + 1], is from p along an axis: p minus its nearest place. */
VXD_HD double vxd_field_gap(double p, int k)
{
    double low = vxd_field_subd(p, (double)k);
    double high = vxd_field_subd(p, (double)(k + 1));

    return low < 0 ? low : high > 0 ? high : 0.0;
}

/* The nearest cube of the kind that the voxel at a point is not. */
struct vxd_field_cube {
    double square; /* of the distance */
    int at[3];
    bool is_found;
};

VXD_HD bool vxd_field_is_before(const int a[3], const int b[3])
{
    return a[0] != b[0] ? a[0] < b[0] : a[1] != b[1] ? a[1] < b[1] : a[2] < b[2];
}

VXD_HD void vxd_field_try_cube(const double p[3], double base, int x, int y, int z,
                               struct vxd_field_cube *cube)
{
    double square = vxd_addd(base, vxd_field_square(vxd_field_gap(p[2], z)));
    int at[3] = {x, y, z};

    if (square < cube->square ||
        (square == cube->square && vxd_field_is_before(at, cube->at))) {
        cube->square = square;
        cube->at[0] = x;
        cube->at[1] = y;
        cube->at[2] = z;
    }
}

/* A square of the field as the distance, rounded down, from a voxel of the target's kind to the
 * nearest of the other kind; 0 at a voxel of the other kind. */
VXD_HD float vxd_field_clear_distance(const struct vxd_field_view *field, int square,
                                      bool is_obstacle)
{
    if ((square < 0) != is_obstacle) {
        return 0;
    }
    square = square < 0 ? -square : square;
    return square == VXD_FIELD_FAR ? (float)field->reach
                                   : sqrtf((float)square) - VXD_FIELD_SLACK;
}

/* What a search knows of its point. */
struct vxd_field_search {
    const double *p; /* in the field's frame */
    const int *at;   /* the voxel that holds it */
    bool is_obstacle;
    /* A cube is nearer than its centre is to the voxel's centre, by at most so much along z, and
     * across x. */
    float slack_z, slack_yz;
};

VXD_HD float vxd_field_slack_of(double p, int k)
{
    double above = vxd_field_subd(p, (double)k);

    return (float)(above > 0.5 ? above : 1 - above) + VXD_FIELD_SLACK;
}

/* Whether cubes that are `clear` or farther from the middle, less `slack`, are all farther than
 * the one found; `base` is the square of their gap along the axes before. */
VXD_HD bool vxd_field_is_past(double base, float clear, float slack,
                              const struct vxd_field_cube *cube)
{
    float least = clear - slack;

    return least > 0 && base + (double)(least * least) > cube->square;
}

/* How many planes or rows to go on from one, `steps` away from the point, whose cubes are past the
 * one found. Those of the next ones are as well, as far as `clear` reaches: each step adds more to
 * the gap along this axis than it can take from that across it. The first step adds less than 1. */
VXD_HD int vxd_field_stride(int steps, float clear)
{
    return steps != 0 && clear >= 1 ? (int)clear + 1 : 1;
}

/* The cubes of a row along z; `here` is the square of the gap across it. */
VXD_HD void vxd_field_search_row(const struct vxd_field_view *field,
                                 const struct vxd_field_search *search, int x, int y,
                                 double here, struct vxd_field_cube *cube)
{
    uint64_t flip = search->is_obstacle ? ~(uint64_t)0 : 0;
    const uint64_t *row = vxd_field_bits(field, x, y);
    int far = (int)sqrtf((float)vxd_field_subd(cube->square, here)) + 2;
    int at = search->at[2];
    int z = vxd_field_previous(row, flip, at, at > far ? at - far : 0);

    if (z >= 0) {
        vxd_field_try_cube(search->p, here, x, y, z, cube);
    }
    z = vxd_field_next(row, flip, at,
                       at < field->size[2] - far ? at + far : field->size[2] - 1);
    if (z >= 0) {
        vxd_field_try_cube(search->p, here, x, y, z, cube);
    }
}

/* The square of the second pass at a voxel, as such a distance; 0 outside the box: nothing is known
 * there. */
VXD_HD float vxd_field_plane_clear(const struct vxd_field_view *field,
                                   const struct vxd_field_search *search, int x, int y,
                                   int z)
{
    return y < 0 || z < 0 || y >= field->size[1] || z >= field->size[2]
               ? 0.0F
               : vxd_field_clear_distance(
                     field, field->plane_squares[vxd_field_index(field, x, y, z)],
                     search->is_obstacle);
}

VXD_HD float vxd_field_maxf(float a, float b)
{
    return a > b ? a : b;
}

VXD_HD float vxd_field_hypot(float a, float b)
{
    return sqrtf(a * a + b * b);
}

/* Not above the gap across z of any cube in a row whose own voxel is `clear` from cubes of its plane:
 * what is below the point, and what is above, is each within the bounds of its own side. Holds as
 * well for as many of the next rows as *stride has. */
VXD_HD float vxd_field_row_gap(const struct vxd_field_view *field,
                               const struct vxd_field_search *search, int x, int y,
                               float clear, float *stride)
{
    int z = search->at[2];
    float below = vxd_field_plane_clear(field, search, x, y, z - 1);
    float above = vxd_field_plane_clear(field, search, x, y, z + 1);
    float low = (float)vxd_field_subd(search->p[2], (double)z);
    float down = vxd_field_maxf(clear - (1 - low), below);
    float up = vxd_field_maxf(clear - low, above);

    *stride = below < above ? below : above;
    *stride = clear < *stride ? clear : *stride;
    return clear < 1 ? 0.0F : (down < up ? down : up) - VXD_FIELD_SLACK;
}

/* Not above the gap, across y and z, of any cube of a plane. Cubes are before the point's voxel along
 * an axis, behind it or beside it; for each such side the voxel itself, and the next one there, say how
 * near they can be. */
VXD_HD float vxd_field_plane_gap(const struct vxd_field_view *field,
                                 const struct vxd_field_search *search, int x,
                                 float clear)
{
    float least = INFINITY;
    float from[2][3]; /* of the voxel's centre, by axis and side */
    float next[2][3]; /* of the next one's */

    if (clear < 1) {
        return 0;
    }
    for (int axis = 0; axis < 2; axis++) {
        float low =
            (float)vxd_field_subd(search->p[axis + 1], (double)search->at[axis + 1]);

        from[axis][0] = 1 - low;
        from[axis][1] = 0;
        from[axis][2] = low;
        for (int side = 0; side < 3; side += 2) {
            int step = side - 1;

            next[axis][side] = vxd_field_plane_clear(
                field, search, x, search->at[1] + (axis == 0 ? step : 0),
                search->at[2] + (axis == 1 ? step : 0));
        }
    }
    for (int i = 0; i < 9; i++) {
        int y = i / 3;
        int z = i % 3;
        float gap = clear - vxd_field_hypot(from[0][y], from[1][z]);

        if (y != 1) {
            gap = vxd_field_maxf(gap, next[0][y] -
                                          vxd_field_hypot(1 - from[0][y], from[1][z]));
        }
        if (z != 1) {
            gap = vxd_field_maxf(gap, next[1][z] -
                                          vxd_field_hypot(from[0][y], 1 - from[1][z]));
        }
        least = i != 4 && gap < least ? gap : least;
    }
    return least - VXD_FIELD_SLACK;
}

/* How far a search has come: planes across x, and in each the rows across y that it has to look into,
 * on one side of the point and then on the other. */
struct vxd_field_walk {
    int side, steps; /* of planes */
    int row_side, row_steps;
    int x;       /* the plane that the rows are in */
    double base; /* the square of its gap along x */
    bool is_in_plane;
};

/* The next plane: goes past it, or begins its rows; false: there is none. */
VXD_HD bool vxd_field_walk_plane(const struct vxd_field_view *field,
                                 const struct vxd_field_search *search,
                                 struct vxd_field_walk *walk,
                                 const struct vxd_field_cube *cube)
{
    int x = search->at[0] + (walk->side == 0 ? -walk->steps : walk->steps);
    float clear;
    size_t i;

    walk->base = vxd_field_square(vxd_field_gap(search->p[0], x));
    if (x < 0 || x >= field->size[0] || walk->base > cube->square) {
        walk->steps = 1;
        return walk->side++ == 0;
    }
    i = vxd_field_index(field, x, search->at[1], search->at[2]);
    clear = vxd_field_clear_distance(field, field->plane_squares[i], search->is_obstacle);
    if (vxd_field_is_past(walk->base, clear, search->slack_yz, cube)) {
        clear = vxd_field_clear_distance(field, field->squares[i], search->is_obstacle);
        walk->steps += vxd_field_is_past(walk->base, clear, search->slack_yz, cube)
                           ? vxd_field_stride(walk->steps, clear)
                           : 1;
        return true;
    }
    if (vxd_field_is_past(walk->base, vxd_field_plane_gap(field, search, x, clear), 0,
                          cube)) {
        walk->steps++;
        return true;
    }
    walk->x = x;
    walk->row_side = 0;
    walk->row_steps = 0;
    walk->is_in_plane = true;
    return true;
}

/* The next row of the plane: squares of the second pass bound how near its cubes can be. */
VXD_HD void vxd_field_walk_row(const struct vxd_field_view *field,
                               const struct vxd_field_search *search,
                               struct vxd_field_walk *walk, struct vxd_field_cube *cube)
{
    int y = search->at[1] + (walk->row_side == 0 ? -walk->row_steps : walk->row_steps);
    double here = vxd_addd(walk->base, vxd_field_square(vxd_field_gap(search->p[1], y)));
    float stride;
    float clear;

    if (y < 0 || y >= field->size[1] || here > cube->square) {
        walk->is_in_plane = walk->row_side == 0;
        walk->steps += walk->row_side;
        walk->row_side = 1;
        walk->row_steps = 1;
        return;
    }
    clear = vxd_field_clear_distance(
        field, field->plane_squares[vxd_field_index(field, walk->x, y, search->at[2])],
        search->is_obstacle);
    if (vxd_field_is_past(here, clear, search->slack_z, cube)) {
        walk->row_steps += vxd_field_stride(walk->row_steps, clear);
        return;
    }
    clear = vxd_field_row_gap(field, search, walk->x, y, clear, &stride);
    if (vxd_field_is_past(here, clear, 0, cube)) {
        walk->row_steps += vxd_field_stride(walk->row_steps, stride);
        return;
    }
    vxd_field_search_row(field, search, walk->x, y, here, cube);
    walk->row_steps++;
}

/* Begins a search with the voxel that is nearest by centres, if its cube's squared distance is below
 * `limit`; false: there is none at all. */
VXD_HD bool vxd_field_begin_search(const struct vxd_field_view *field, const double p[3],
                                   const int at[3], double limit,
                                   struct vxd_field_search *search,
                                   struct vxd_field_cube *cube)
{
    double square;
    float slack_y;

    search->p = p;
    search->at = at;
    search->is_obstacle = vxd_field_is_obstacle(field, at[0], at[1], at[2]);
    cube->is_found = false;
    if (!vxd_field_nearest(field, at, cube->at)) {
        return false;
    }
    square = vxd_field_sum(vxd_field_square(vxd_field_gap(p[0], cube->at[0])),
                           vxd_field_square(vxd_field_gap(p[1], cube->at[1])),
                           vxd_field_square(vxd_field_gap(p[2], cube->at[2])));
    cube->square = square < limit ? square : limit;
    slack_y = vxd_field_slack_of(p[1], at[1]);
    search->slack_z = vxd_field_slack_of(p[2], at[2]);
    search->slack_yz = sqrtf(slack_y * slack_y + search->slack_z * search->slack_z);
    return true;
}

/* Finds the nearest cube, if its squared distance is below `limit`: goes plane by plane away from the
 * point. */
VXD_HD void vxd_field_find_cube(const struct vxd_field_view *field, const double p[3],
                                const int at[3], double limit,
                                struct vxd_field_cube *cube)
{
    struct vxd_field_search search;
    struct vxd_field_walk walk = {0, 0, 0, 0, 0, 0, false};
    bool is_any = vxd_field_begin_search(field, p, at, limit, &search, cube);
    bool goes_on = is_any;

    /* One loop, not one in another: threads of a warp go through it together, though each has
     * other planes and rows. */
    while (goes_on) {
        if (walk.is_in_plane) {
            vxd_field_walk_row(field, &search, &walk, cube);
        } else {
            goes_on = vxd_field_walk_plane(field, &search, &walk, cube);
        }
    }
    cube->is_found = is_any && cube->square < limit;
}

/* The largest distance that SURFACE gives. */
VXD_HD double vxd_field_surface_reach(const struct vxd_field_view *field)
{
    return field->reach > 2 ? (double)(field->reach - 2) : 0.0;
}

/* What SURFACE answers where a search from p, in the field's frame, found a cube, or none. */
VXD_HD void vxd_field_describe_cube(const struct vxd_field_view *field, const double p[3],
                                    double sign, const struct vxd_field_cube *cube,
                                    struct vxd_field_answer *out)
{
    double reach = vxd_field_surface_reach(field);

    out->distance = sign * reach;
    out->is_near = cube->is_found && cube->square <= vxd_field_square(reach);
    if (!out->is_near) {
        return;
    }
    out->distance = sign * vxd_field_sqrt(cube->square);
    for (int axis = 0; axis < 3; axis++) {
        out->nearest[axis] = cube->at[axis];
        out->gradient[axis] = sign * vxd_field_gap(p[axis], cube->at[axis]);
    }
}

VXD_HD void vxd_field_query_surface(const struct vxd_field_view *field,
                                    const double point[3], const int at[3],
                                    struct vxd_field_answer *out)
{
    double sign = vxd_field_is_obstacle(field, at[0], at[1], at[2]) ? -1.0 : 1.0;
    struct vxd_field_cube cube;
    double p[3];

    for (int axis = 0; axis < 3; axis++) {
        p[axis] = vxd_field_subd(point[axis], (double)field->low[axis]);
    }
    vxd_field_find_cube(field, p, at, INFINITY, &cube);
    vxd_field_describe_cube(field, p, sign, &cube, out);
}

/* Point i of a query. */
struct vxd_field_query_call {
    struct vxd_field_view field;
    size_t n;
    const double *points;
    enum vxd_field_mode mode;
    float *distances;
    float *gradients;
    int32_t *nearest;
};

VXD_HD void vxd_field_write_answer(const struct vxd_field_query_call *call, size_t i,
                                   const struct vxd_field_answer *answer)
{
    call->distances[i] =
        vxd_canonical_nanf((float)vxd_muld(answer->distance, call->field.voxel_size_m));
    for (int axis = 0; axis < 3; axis++) {
        if (call->gradients != NULL) {
            call->gradients[3 * i + (size_t)axis] =
                vxd_canonical_nanf((float)answer->gradient[axis]);
        }
        if (call->nearest != NULL) {
            call->nearest[3 * i + (size_t)axis] =
                answer->is_near ? answer->nearest[axis] + call->field.low[axis]
                                : INT32_MIN;
        }
    }
}

/* `mode` is the call's: a constant where a kernel is of one mode. */
VXD_HD void vxd_field_answer_point(const struct vxd_field_query_call *call, size_t i,
                                   enum vxd_field_mode mode)
{
    const struct vxd_field_view *field = &call->field;
    const double *point = call->points + 3 * i;
    struct vxd_field_answer answer = {NAN, {0, 0, 0}, {0, 0, 0}, false};
    int at[3];

    if (vxd_field_voxel_of(field, point, at) &&
        !vxd_field_is_unknown(field, at[0], at[1], at[2])) {
        if (mode == VXD_FIELD_SURFACE) {
            vxd_field_query_surface(field, point, at, &answer);
        } else {
            answer.is_near = vxd_field_nearest(field, at, answer.nearest);
            if (mode == VXD_FIELD_TRILINEAR) {
                vxd_field_query_trilinear(field, point, &answer);
            } else {
                vxd_field_query_nearest(field, at, &answer);
            }
        }
        vxd_field_unit(answer.gradient);
    }
    if (answer.distance != answer.distance) {
        for (int axis = 0; axis < 3; axis++) {
            answer.gradient[axis] = NAN;
        }
        answer.is_near = false;
    }
    vxd_field_write_answer(call, i, &answer);
}

/* --- dense arrays ---------------------------------------------------------------------- */

struct vxd_field_read_call {
    struct vxd_field_view field;
    int32_t low[3]; /* in the field's indices */
    int32_t size[3];
    struct vxd_field_arrays out;
};

/* Voxel i of a read. */
VXD_HD void vxd_field_read_voxel(const struct vxd_field_read_call *call, size_t i)
{
    const struct vxd_field_view *field = &call->field;
    size_t row = i / (size_t)call->size[2];
    int at[3] = {call->low[0] + (int)(row / (size_t)call->size[1]),
                 call->low[1] + (int)(row % (size_t)call->size[1]),
                 call->low[2] + (int)(i % (size_t)call->size[2])};
    int square = field->squares[vxd_field_index(field, at[0], at[1], at[2])];
    int nearest[3];

    if (call->out.distances != NULL) {
        call->out.distances[i] =
            vxd_field_is_unknown(field, at[0], at[1], at[2])
                ? vxd_canonical_nanf(NAN)
                : (float)vxd_muld(vxd_field_distance_at(field, at[0], at[1], at[2]),
                                  field->voxel_size_m);
    }
    if (call->out.squares != NULL) {
        call->out.squares[i] =
            square == VXD_FIELD_FAR || square == -VXD_FIELD_FAR ? 0 : square;
    }
    if (call->out.nearest != NULL) {
        bool is_near = vxd_field_nearest(field, at, nearest);

        for (int axis = 0; axis < 3; axis++) {
            call->out.nearest[3 * i + (size_t)axis] =
                is_near ? nearest[axis] + field->low[axis] : INT32_MIN;
        }
    }
}

#endif
