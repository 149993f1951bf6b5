// SPDX-License-Identifier: Apache-2.0
#include "tests/support/svdag/svdag_ray_rule.h"

#include <math.h>
#include <stdlib.h>

/* One ray. */
struct rule {
    double origin[3];
    double d[3];
    double length;
};

/* The ray crosses plane k of an axis at time t. */
struct crossing {
    double t;
    int axis;
    int k;
    int order; /* index among the crossings of its axis */
};

static bool rule_make(struct rule *rule, const double origin[3],
                      const double direction[3])
{
    double largest = 0;
    int exponent;

    for (int axis = 0; axis < 3; axis++) {
        if (!isfinite(origin[axis]) || !isfinite(direction[axis])) {
            return false;
        }
        largest = fabs(direction[axis]) > largest ? fabs(direction[axis]) : largest;
        rule->origin[axis] = origin[axis];
    }
    if (largest == 0) {
        return false;
    }
    (void)frexp(largest, &exponent);
    for (int axis = 0; axis < 3; axis++) {
        rule->d[axis] = ldexp(direction[axis], 1 - exponent);
    }
    rule->length = rule->d[0] * rule->d[0] + rule->d[1] * rule->d[1];
    rule->length += rule->d[2] * rule->d[2];
    rule->length = sqrt(rule->length);
    return true;
}

/* Time of a crossing; INFINITY: the ray never crosses the plane. */
static double rule_time(const struct rule *rule, int axis, double k)
{
    double inverse = rule->length / rule->d[axis];

    return rule->d[axis] == 0 || isinf(inverse) ? (double)INFINITY
                                                : (k - rule->origin[axis]) * inverse;
}

static int crossing_compare(const void *a, const void *b)
{
    const struct crossing *x = a;
    const struct crossing *y = b;

    if (x->t != y->t) {
        return x->t < y->t ? -1 : 1;
    }
    return x->axis != y->axis ? x->axis - y->axis : x->order - y->order;
}

static void report(struct vxd_svdag_hit *hit, const int at[3], uint32_t code, double t,
                   int normal)
{
    hit->distance = t == 0 ? 0 : t;
    for (int axis = 0; axis < 3; axis++) {
        hit->voxel[axis] = at[axis];
    }
    hit->value = (uint16_t)(code - GPU_SVDAG_MATERIAL);
    hit->normal = (int8_t)normal;
}

/* Sorts the scene's planes that the ray crosses by time and returns their number. The
 * voxel index of an axis is -1 below the scene and `side` above. */
static int crossings_of(const struct rule *rule, int side, struct crossing *crossings,
                        int at[3])
{
    int n = 0;

    for (int axis = 0; axis < 3; axis++) {
        double voxel = floor(rule->origin[axis]);
        bool is_up = rule->d[axis] > 0;

        at[axis] = voxel < 0 ? -1 : voxel >= side ? side : (int)voxel;
        for (int i = 0; i <= side; i++) {
            int k = is_up ? i : side - i;
            bool is_ahead = is_up ? k > voxel : k <= voxel;
            double t = rule_time(rule, axis, k);

            if (is_ahead && t < (double)INFINITY) {
                crossings[n++] = (struct crossing){t, axis, k, i};
            }
        }
    }
    qsort(crossings, (size_t)n, sizeof *crossings, crossing_compare);
    return n;
}

void gpu_svdag_cast_dense(const uint32_t *grid, int side, const double origin[3],
                          const double direction[3], struct vxd_svdag_hit *hit)
{
    struct crossing crossings[3 * (GPU_SVDAG_RULE_SIDE + 1)];
    struct rule rule;
    double t = 0;
    int normal = 0;
    int at[3];
    int n;

    *hit = (struct vxd_svdag_hit){-1.0, {-1, -1, -1}, 0, 0, 0};
    if (!rule_make(&rule, origin, direction)) {
        hit->bad = 1;
        return;
    }
    n = crossings_of(&rule, side, crossings, at);
    for (int i = 0; i <= n; i++) {
        bool is_inside = at[0] >= 0 && at[1] >= 0 && at[2] >= 0 && at[0] < side &&
                         at[1] < side && at[2] < side;

        if (is_inside &&
            grid[(at[0] * side + at[1]) * side + at[2]] >= GPU_SVDAG_MATERIAL) {
            report(hit, at, grid[(at[0] * side + at[1]) * side + at[2]], t, normal);
            return;
        }
        if (i < n) {
            int axis = crossings[i].axis;
            bool is_up = rule.d[axis] > 0;

            t = crossings[i].t;
            at[axis] = is_up ? crossings[i].k : crossings[i].k - 1;
            normal = is_up ? -(axis + 1) : axis + 1;
        }
    }
}

/* The crossings at which the ray enters and leaves a voxel; false if it never is in the
 * voxel. */
static bool voxel_span(const struct rule *rule, const uint32_t voxel[3],
                       struct crossing *in, struct crossing *out)
{
    *in = (struct crossing){-1.0, -1, 0, 0};
    *out = (struct crossing){(double)INFINITY, 3, 0, 0};
    for (int axis = 0; axis < 3; axis++) {
        int v = (int)voxel[axis];
        double from = floor(rule->origin[axis]);
        bool is_up = rule->d[axis] > 0;
        int first = is_up ? v : v + 1;
        int last = is_up ? v + 1 : v;
        struct crossing enter = {rule_time(rule, axis, first), axis, first,
                                 is_up ? first : -first};
        struct crossing leave = {rule_time(rule, axis, last), axis, last,
                                 is_up ? last : -last};

        if (is_up ? from > v : from < v) {
            return false;
        }
        if (from != v) {
            if (isinf(enter.t)) {
                return false;
            }
            *in = crossing_compare(&enter, in) > 0 ? enter : *in;
        }
        *out = crossing_compare(&leave, out) < 0 ? leave : *out;
    }
    return crossing_compare(in, out) < 0;
}

void gpu_svdag_cast_voxels(const struct gpu_svdag_voxel *voxels, size_t n,
                           const double origin[3], const double direction[3],
                           struct vxd_svdag_hit *hit)
{
    struct crossing best = {(double)INFINITY, 3, 0, 0};
    struct rule rule;

    *hit = (struct vxd_svdag_hit){-1.0, {-1, -1, -1}, 0, 0, 0};
    if (!rule_make(&rule, origin, direction)) {
        hit->bad = 1;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t at[3];
        struct crossing in;
        struct crossing out;

        gpu_svdag_unmorton(voxels[i].morton, at);
        if (voxels[i].code < GPU_SVDAG_MATERIAL || !voxel_span(&rule, at, &in, &out) ||
            crossing_compare(&in, &best) >= 0) {
            continue;
        }
        best = in;
        if (in.axis < 0) {
            report(hit, (int[3]){(int)at[0], (int)at[1], (int)at[2]}, voxels[i].code, 0,
                   0);
        } else {
            report(hit, (int[3]){(int)at[0], (int)at[1], (int)at[2]}, voxels[i].code,
                   in.t, rule.d[in.axis] > 0 ? -(in.axis + 1) : in.axis + 1);
        }
    }
}
