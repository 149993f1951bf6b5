// SPDX-License-Identifier: Apache-2.0
/* Contact of shapes with the cubes of obstacles, as both backends compile it. Shapes are first
 * compared with the field at their middle, which bounds how near an obstacle can be; then the
 * cubes within their bounds are examined one by one. */
#ifndef VXD_GPU_FIELD_COLLIDE_MATH_H
#define VXD_GPU_FIELD_COLLIDE_MATH_H

#include "gpu/field/distance_math.h"

/* Edges of a box that are parallel to axes make directions of no length, for which the test of
 * separation has only rounding errors to compare. */
#define VXD_FIELD_PARALLEL 1e-12

VXD_HD double vxd_field_abs(double a)
{
    return a < 0 ? -a : a;
}

/* A shape in the field's frame, with what is computed once of it. */
struct vxd_field_body {
    int kind;
    double a[3]; /* centre or end */
    double b[3]; /* half sides, or from one end to the other */
    double r;
    double axes[3][3]; /* of a box: component i of its axis j is axes[i][j] */
    double middle[3];
    double extent[3]; /* half of the bounds' sides, r included */
    double radius;    /* of a ball around the middle */
};

/* The matrix of a unit quaternion x y z w. */
VXD_HD void vxd_field_rotation(const double q[4], double m[3][3])
{
    double x = q[0];
    double y = q[1];
    double z = q[2];
    double w = q[3];

    m[0][0] = vxd_field_subd(1, vxd_muld(2, vxd_addd(vxd_muld(y, y), vxd_muld(z, z))));
    m[1][1] = vxd_field_subd(1, vxd_muld(2, vxd_addd(vxd_muld(x, x), vxd_muld(z, z))));
    m[2][2] = vxd_field_subd(1, vxd_muld(2, vxd_addd(vxd_muld(x, x), vxd_muld(y, y))));
    m[0][1] = vxd_muld(2, vxd_field_subd(vxd_muld(x, y), vxd_muld(z, w)));
    m[1][0] = vxd_muld(2, vxd_addd(vxd_muld(x, y), vxd_muld(z, w)));
    m[0][2] = vxd_muld(2, vxd_addd(vxd_muld(x, z), vxd_muld(y, w)));
    m[2][0] = vxd_muld(2, vxd_field_subd(vxd_muld(x, z), vxd_muld(y, w)));
    m[1][2] = vxd_muld(2, vxd_field_subd(vxd_muld(y, z), vxd_muld(x, w)));
    m[2][1] = vxd_muld(2, vxd_addd(vxd_muld(y, z), vxd_muld(x, w)));
}

VXD_HD double vxd_field_length_of(double x, double y, double z)
{
    return vxd_field_sqrt(
        vxd_field_sum(vxd_field_square(x), vxd_field_square(y), vxd_field_square(z)));
}

VXD_HD double vxd_field_length(const double v[3])
{
    return vxd_field_length_of(v[0], v[1], v[2]);
}

VXD_HD void vxd_field_make_box(const struct vxd_field_shape *shape,
                               struct vxd_field_body *body)
{
    vxd_field_rotation(shape->q, body->axes);
    for (int i = 0; i < 3; i++) {
        body->b[i] = shape->b[i];
        body->middle[i] = body->a[i];
        body->extent[i] =
            vxd_field_sum(vxd_muld(vxd_field_abs(body->axes[i][0]), shape->b[0]),
                          vxd_muld(vxd_field_abs(body->axes[i][1]), shape->b[1]),
                          vxd_muld(vxd_field_abs(body->axes[i][2]), shape->b[2]));
    }
    body->radius = vxd_field_length(shape->b);
}

VXD_HD void vxd_field_make_capsule(const struct vxd_field_shape *shape,
                                   struct vxd_field_body *body)
{
    for (int i = 0; i < 3; i++) {
        double half = vxd_muld(0.5, vxd_field_subd(shape->b[i], shape->a[i]));

        body->b[i] = vxd_field_subd(shape->b[i], shape->a[i]);
        body->middle[i] = vxd_addd(body->a[i], half);
        body->extent[i] = vxd_addd(vxd_field_abs(half), shape->r);
    }
    body->radius = vxd_addd(vxd_muld(0.5, vxd_field_length(body->b)), shape->r);
}

VXD_HD void vxd_field_make_body(const struct vxd_field_view *field,
                                const struct vxd_field_shape *shape,
                                struct vxd_field_body *body)
{
    body->kind = shape->kind;
    body->r = shape->r;
    for (int i = 0; i < 3; i++) {
        body->a[i] = vxd_field_subd(shape->a[i], (double)field->low[i]);
    }
    if (shape->kind == VXD_FIELD_BOX) {
        vxd_field_make_box(shape, body);
    } else {
        vxd_field_make_capsule(shape, body);
    }
}

/* Whether a direction in space separates two boxes whose half sides reach `reach` along it;
 * `apart` is the distance of their centres along it. */
VXD_HD bool vxd_field_separates(double apart, double reach, double slack)
{
    return vxd_field_abs(apart) > vxd_addd(reach, slack);
}

/* Cross products of the cube's edge i and the box's edge j. */
VXD_HD bool vxd_field_edges_separate(const struct vxd_field_body *body,
                                     const double apart[3], int i, int j)
{
    int u = (i + 1) % 3;
    int v = (i + 2) % 3;
    int k = (j + 1) % 3;
    int l = (j + 2) % 3;
    double along = vxd_field_subd(vxd_muld(apart[v], body->axes[u][j]),
                                  vxd_muld(apart[u], body->axes[v][j]));
    double cube = vxd_muld(
        0.5, vxd_addd(vxd_field_abs(body->axes[u][j]), vxd_field_abs(body->axes[v][j])));
    double box = vxd_addd(vxd_muld(body->b[k], vxd_field_abs(body->axes[i][l])),
                          vxd_muld(body->b[l], vxd_field_abs(body->axes[i][k])));

    return vxd_field_separates(along, vxd_addd(cube, box), VXD_FIELD_PARALLEL);
}

/* The fifteen directions of two boxes: those that separate them are among them, if any are. */
VXD_HD bool vxd_field_box_touches(const struct vxd_field_body *body, int x, int y, int z)
{
    double apart[3] = {vxd_field_subd(body->a[0], vxd_addd((double)x, 0.5)),
                       vxd_field_subd(body->a[1], vxd_addd((double)y, 0.5)),
                       vxd_field_subd(body->a[2], vxd_addd((double)z, 0.5))};

    for (int i = 0; i < 3; i++) {
        double along = vxd_field_sum(vxd_muld(apart[0], body->axes[0][i]),
                                     vxd_muld(apart[1], body->axes[1][i]),
                                     vxd_muld(apart[2], body->axes[2][i]));
        double cube = vxd_muld(0.5, vxd_field_sum(vxd_field_abs(body->axes[0][i]),
                                                  vxd_field_abs(body->axes[1][i]),
                                                  vxd_field_abs(body->axes[2][i])));

        if (vxd_field_separates(apart[i], vxd_addd(body->extent[i], 0.5), 0) ||
            vxd_field_separates(along, vxd_addd(body->b[i], cube), 0)) {
            return false;
        }
    }
    for (int i = 0; i < 9; i++) {
        if (vxd_field_edges_separate(body, apart, i / 3, i % 3)) {
            return false;
        }
    }
    return true;
}

/* Half the derivative of the squared distance between a cube and the point at t of a segment, and
 * that square. */
VXD_HD double vxd_field_segment_slope(const struct vxd_field_body *body,
                                      const int cube[3], double t, double *square)
{
    double slope[3];
    double part[3];

    for (int i = 0; i < 3; i++) {
        double gap =
            vxd_field_gap(vxd_addd(body->a[i], vxd_muld(t, body->b[i])), cube[i]);

        part[i] = vxd_field_square(gap);
        slope[i] = vxd_muld(gap, body->b[i]);
    }
    *square = vxd_field_sum(part[0], part[1], part[2]);
    return vxd_field_sum(slope[0], slope[1], slope[2]);
}

/* The squared distance is convex along the segment, and a parabola between the places where it
 * crosses a plane of the cube: the slope finds the piece with the least, and the place in it. */
VXD_HD bool vxd_field_capsule_touches(const struct vxd_field_body *body, int x, int y,
                                      int z)
{
    int cube[3] = {x, y, z};
    double limit = vxd_field_square(body->r);
    double low = 0;
    double high = 1;
    double square;
    double slope_low = vxd_field_segment_slope(body, cube, low, &square);
    double slope_high;

    if (square <= limit || slope_low >= 0) {
        return square <= limit;
    }
    slope_high = vxd_field_segment_slope(body, cube, high, &square);
    if (square <= limit || slope_high <= 0) {
        return square <= limit;
    }
    for (int i = 0; i < 6; i++) {
        int axis = i / 2;
        double t = body->b[axis] == 0
                       ? -1
                       : vxd_field_divd(
                             vxd_field_subd((double)(cube[axis] + i % 2), body->a[axis]),
                             body->b[axis]);

        if (t > low && t < high) {
            double slope = vxd_field_segment_slope(body, cube, t, &square);

            low = slope <= 0 ? t : low;
            slope_low = slope <= 0 ? slope : slope_low;
            high = slope <= 0 ? high : t;
            slope_high = slope <= 0 ? slope_high : slope;
        }
    }
    if (slope_high > slope_low) {
        low = vxd_addd(
            low,
            vxd_muld(vxd_field_subd(high, low),
                     vxd_field_divd(-slope_low, vxd_field_subd(slope_high, slope_low))));
    }
    (void)vxd_field_segment_slope(body, cube, low, &square);
    return square <= limit;
}

/* Voxels of an axis whose cubes touch a body's bounds, in the field; false: none. */
VXD_HD bool vxd_field_bounds(const struct vxd_field_view *field,
                             const struct vxd_field_body *body, int low[3], int high[3])
{
    for (int i = 0; i < 3; i++) {
        double first = ceil(vxd_field_subd(body->middle[i], body->extent[i])) - 1;
        double last = floor(vxd_addd(body->middle[i], body->extent[i]));

        if (!(first < (double)field->size[i] && last >= 0)) {
            return false;
        }
        low[i] = first > 0 ? (int)first : 0;
        high[i] = last < (double)(field->size[i] - 1) ? (int)last : field->size[i] - 1;
    }
    return true;
}

/* The voxel that holds a place; false outside of the field. */
VXD_HD bool vxd_field_is_inside(const struct vxd_field_view *field, const double p[3],
                                int at[3])
{
    for (int i = 0; i < 3; i++) {
        if (!(p[i] >= 0 && p[i] < (double)field->size[i])) {
            return false;
        }
        at[i] = (int)p[i];
    }
    return true;
}

/* A ball around the middle that the body fills, by a margin above all rounding. */
VXD_HD double vxd_field_inner_radius(const struct vxd_field_body *body)
{
    double least = body->r;

    if (body->kind == VXD_FIELD_BOX) {
        least = body->b[0] < body->b[1] ? body->b[0] : body->b[1];
        least = body->b[2] < least ? body->b[2] : least;
    }
    return least - VXD_FIELD_SLACK;
}

/* How far obstacles that the body touches can be from the voxel that holds its middle, in a plane
 * across x: centre to centre, rounded up. */
VXD_HD float vxd_field_plane_reach(const struct vxd_field_body *body, int x)
{
    float y = (float)body->extent[1] + 1;
    float z = (float)body->extent[2] + 1;
    float away =
        (float)vxd_field_abs(vxd_field_subd(vxd_addd((double)x, 0.5), body->middle[0])) -
        0.5F;
    float radius = (float)body->radius;
    float rest = radius * radius - (away > 0 ? away * away : 0.0F);
    float of_bounds = sqrtf(y * y + z * z);
    float of_ball = sqrtf(rest > 0 ? rest : 0.0F) + 1.4144F;

    return (of_ball < of_bounds ? of_ball : of_bounds) * (1 + VXD_FIELD_SLACK) +
           VXD_FIELD_SLACK;
}

/* The obstacles in a body's bounds, one after the other. */
struct vxd_field_obstacles {
    int low[3], high[3];
    int at[3];     /* the last one; z is the one before the row's first at its begin */
    int middle[3]; /* the voxel of the body's middle; x < 0: outside */
};

/* Whether a plane across x has no obstacle that is near enough, by the square of the second pass at
 * the body's middle. */
VXD_HD bool vxd_field_plane_is_far(const struct vxd_field_view *field,
                                   const struct vxd_field_body *body,
                                   const struct vxd_field_obstacles *of, int x)
{
    return of->middle[0] >= 0 &&
           vxd_field_clear_distance(field,
                                    field->plane_squares[vxd_field_index(
                                        field, x, of->middle[1], of->middle[2])],
                                    false) > vxd_field_plane_reach(body, x);
}

/* Goes to the next row, and past planes that are too far; false: there is none. */
VXD_HD bool vxd_field_next_row(const struct vxd_field_view *field,
                               const struct vxd_field_body *body,
                               struct vxd_field_obstacles *of)
{
    of->at[1]++;
    while (of->at[1] > of->high[1]) {
        of->at[0]++;
        if (of->at[0] > of->high[0]) {
            return false;
        }
        of->at[1] = vxd_field_plane_is_far(field, body, of, of->at[0]) ? of->high[1] + 1
                                                                       : of->low[1];
    }
    return true;
}

/* Threads of a warp look for their next obstacles together, and then examine these together. */
VXD_HD bool vxd_field_next_obstacle(const struct vxd_field_view *field,
                                    const struct vxd_field_body *body,
                                    struct vxd_field_obstacles *of)
{
    for (;;) {
        int z = of->at[1] > of->high[1]
                    ? -1
                    : vxd_field_next(vxd_field_bits(field, of->at[0], of->at[1]), 0,
                                     of->at[2] + 1, of->high[2]);

        if (z >= 0) {
            of->at[2] = z;
            return true;
        }
        if (!vxd_field_next_row(field, body, of)) {
            return false;
        }
        of->at[2] = of->low[2] - 1;
    }
}

/* What the field at the middle says: 1 an obstacle is there, 0 none is near enough, -1 neither. */
VXD_HD int vxd_field_classify(const struct vxd_field_view *field,
                              const struct vxd_field_body *body, const int at[3])
{
    double distance = vxd_field_distance_at(field, at[0], at[1], at[2]);

    if (distance > body->radius + 2 * VXD_FIELD_HALF_CUBE) {
        return 0;
    }
    /* The nearest obstacle's centre is in the body. */
    return distance < 0 || (field->squares[vxd_field_index(field, at[0], at[1], at[2])] !=
                                VXD_FIELD_FAR &&
                            distance + VXD_FIELD_HALF_CUBE < vxd_field_inner_radius(body))
               ? 1
               : -1;
}

VXD_HD bool vxd_field_body_touches(const struct vxd_field_view *field,
                                   const struct vxd_field_body *body)
{
    struct vxd_field_obstacles of;
    int found = -1;

    if (!vxd_field_bounds(field, body, of.low, of.high)) {
        return false;
    }
    if (vxd_field_is_inside(field, body->middle, of.middle)) {
        found = vxd_field_classify(field, body, of.middle);
    } else {
        of.middle[0] = -1;
    }
    if (found >= 0) {
        return found == 1;
    }
    /* Before the first plane's first row. */
    of.at[0] = of.low[0] - 1;
    of.at[1] = of.high[1] + 1;
    of.at[2] = of.low[2] - 1;
    while (vxd_field_next_obstacle(field, body, &of)) {
        if (body->kind == VXD_FIELD_BOX
                ? vxd_field_box_touches(body, of.at[0], of.at[1], of.at[2])
                : vxd_field_capsule_touches(body, of.at[0], of.at[1], of.at[2])) {
            return true;
        }
    }
    return false;
}

struct vxd_field_collide_call {
    struct vxd_field_view field;
    size_t n;
    const struct vxd_field_shape *shapes;
    uint8_t *hits;
    float *clearance;
};

/* A sphere: in contact where the nearest cube is within its radius; false where that cannot be seen
 * from the distance, because the radius exceeds what distances reach, or the centre is outside. */
VXD_HD bool vxd_field_sphere_touches(const struct vxd_field_view *field,
                                     const double p[3], double r, bool has_clearance,
                                     double *clearance, bool *touches)
{
    double reach = vxd_field_surface_reach(field);
    struct vxd_field_cube cube;
    bool is_obstacle;
    int at[3];

    *clearance = vxd_field_subd(reach, r);
    if (!vxd_field_is_inside(field, p, at)) {
        return false;
    }
    is_obstacle = vxd_field_is_obstacle(field, at[0], at[1], at[2]);
    vxd_field_find_cube(field, p, at,
                        has_clearance ? INFINITY : vxd_field_square(r + VXD_FIELD_SLACK),
                        &cube);
    if (cube.is_found && cube.square <= vxd_field_square(reach)) {
        reach = vxd_field_sqrt(cube.square);
    }
    *clearance = vxd_field_subd(is_obstacle ? -reach : reach, r);
    *touches = is_obstacle || (cube.is_found && cube.square <= vxd_field_square(r));
    return is_obstacle || r < vxd_field_surface_reach(field);
}

/* Shape i of a call. A sphere that cannot be judged from its centre is a capsule without length. */
VXD_HD void vxd_field_collide_shape(const struct vxd_field_collide_call *call, size_t i)
{
    const struct vxd_field_view *field = &call->field;
    struct vxd_field_shape shape = call->shapes[i];
    double clearance = NAN;
    bool is_judged = false;
    bool touches = false;

    if (shape.kind == VXD_FIELD_SPHERE) {
        double p[3];

        for (int axis = 0; axis < 3; axis++) {
            p[axis] = vxd_field_subd(shape.a[axis], (double)field->low[axis]);
            shape.b[axis] = shape.a[axis];
        }
        is_judged = vxd_field_sphere_touches(field, p, shape.r, call->clearance != NULL,
                                             &clearance, &touches);
    }
    if (!is_judged) {
        struct vxd_field_body body;

        vxd_field_make_body(field, &shape, &body);
        touches = vxd_field_body_touches(field, &body);
    }
    call->hits[i] = touches ? 1 : 0;
    if (call->clearance != NULL) {
        call->clearance[i] =
            vxd_canonical_nanf((float)vxd_muld(clearance, field->voxel_size_m));
    }
}

#endif
