// SPDX-License-Identifier: Apache-2.0
/* Arithmetic of scans, the same bits on both backends: the ray of a point at its time, the walks
 * along it, the pixel of a direction, and what a voxel observes. */
#ifndef VXD_GPU_VOLUME_SCAN_SCAN_MATH_H
#define VXD_GPU_VOLUME_SCAN_SCAN_MATH_H

#include "gpu/volume/volume_math.h"

/* A scan as backends use it, made by the host. Lengths are metres, from the volume's origin. */
struct vxd_lidar_form {
    const float *points;
    const float *features;
    uint32_t n;
    int n_features;
    int time_column;
    int normal_column;
    int label_column;
    const uint8_t *labels; /* NULL: none, or a column has them */

    /* The pose at time s: start * (turn about the axis by s * angle), and at + s * travel. */
    double start[9];
    double at[3];
    double axis[3];
    double angle;
    double travel[3];

    int edge;
    int shift;
    double voxel_size;
    float truncation;
    float range_min;
    float range_max;
    float carve;
    int is_inverse_square;
    int is_by_angle;
    float weight;
    float max_weight;
    int is_compact;
    double scale; /* units of sums a unit of weight, a power of two */

    /* The range image: from where, and which way. */
    int is_image;
    int rows;
    int columns;
    const float *borders; /* rows + 1 tangents of elevations, falling */
    double image_at[3];
    double to_image[9];
    double azimuth_begin;      /* radians */
    double columns_per_radian; /* negative: clockwise */
};

#define VXD_LIDAR_OPEN 0x100u /* a ray without a hit: free up to its range */
#define VXD_LIDAR_NO_PIXEL UINT64_MAX

/* A point's ray. */
struct vxd_lidar_ray {
    int32_t voxel[3];   /* of the hit */
    float at[3];        /* the hit in that voxel, 0 to 1 */
    float direction[3]; /* unit length, map frame */
    float range;        /* metres */
    float weight;       /* of the hit; 0: none */
    uint32_t label;     /* with VXD_LIDAR_OPEN, or 0 */
};

enum vxd_lidar_kind {
    VXD_LIDAR_DROPPED = 0,
    VXD_LIDAR_USED = 1,
    VXD_LIDAR_BEYOND = 2
};

/* Both are rounded to nearest on every backend. */
VXD_HD double vxd_lidar_sqrt(double a)
{
    return sqrt(a);
}

VXD_HD double vxd_lidar_div(double a, double b)
{
    return a / b;
}

VXD_HD double vxd_lidar_dot(const double a[3], const double b[3])
{
    return vxd_addd(vxd_addd(vxd_muld(a[0], b[0]), vxd_muld(a[1], b[1])),
                    vxd_muld(a[2], b[2]));
}

VXD_HD void vxd_lidar_cross(const double a[3], const double b[3], double out[3])
{
    out[0] = vxd_addd(vxd_muld(a[1], b[2]), -vxd_muld(a[2], b[1]));
    out[1] = vxd_addd(vxd_muld(a[2], b[0]), -vxd_muld(a[0], b[2]));
    out[2] = vxd_addd(vxd_muld(a[0], b[1]), -vxd_muld(a[1], b[0]));
}

VXD_HD void vxd_lidar_turn(const double r[9], const double p[3], double out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = vxd_lidar_dot(&r[3 * (size_t)i], p);
    }
}

/* Sine and cosine of 0 to pi by the series of the half angle, to 1e-15. */
VXD_HD void vxd_lidar_sincos(double angle, double *sine, double *cosine)
{
    double half = vxd_muld(0.5, angle);
    double x2 = vxd_muld(half, half);
    double s = 0;
    double c = 0;

    for (int k = 10; k >= 1; k--) {
        s = vxd_lidar_div(vxd_muld(-x2, vxd_addd(1, s)), (double)(2 * k * (2 * k + 1)));
        c = vxd_lidar_div(vxd_muld(-x2, vxd_addd(1, c)), (double)(2 * k * (2 * k - 1)));
    }
    s = vxd_muld(half, vxd_addd(1, s));
    c = vxd_addd(1, c);
    *sine = vxd_muld(2, vxd_muld(s, c));
    *cosine = vxd_addd(1, -vxd_muld(2, vxd_muld(s, s)));
}

/* atan2 to 1e-10, in (-pi, pi]. */
VXD_HD double vxd_lidar_atan2(double y, double x)
{
    const double pi = 3.14159265358979323846;
    double ay = y < 0 ? -y : y;
    double ax = x < 0 ? -x : x;
    bool is_steep = ay > ax;
    double ratio = is_steep ? vxd_lidar_div(ax, ay) : ax > 0 ? vxd_lidar_div(ay, ax) : 0;
    bool is_far = ratio > 0.41421356237309503;
    double t = is_far ? vxd_lidar_div(vxd_addd(ratio, -1), vxd_addd(ratio, 1)) : ratio;
    double t2 = vxd_muld(t, t);
    double sum = 1.0 / 21;
    double angle;

    sum = vxd_addd(1.0 / 19, -vxd_muld(t2, sum));
    sum = vxd_addd(1.0 / 17, -vxd_muld(t2, sum));
    sum = vxd_addd(1.0 / 15, -vxd_muld(t2, sum));
    sum = vxd_addd(1.0 / 13, -vxd_muld(t2, sum));
    sum = vxd_addd(1.0 / 11, -vxd_muld(t2, sum));
    sum = vxd_addd(1.0 / 9, -vxd_muld(t2, sum));
    sum = vxd_addd(1.0 / 7, -vxd_muld(t2, sum));
    sum = vxd_addd(1.0 / 5, -vxd_muld(t2, sum));
    sum = vxd_addd(1.0 / 3, -vxd_muld(t2, sum));
    sum = vxd_addd(1.0 / 1, -vxd_muld(t2, sum));
    angle = vxd_addd(vxd_muld(t, sum), is_far ? pi / 4 : 0);
    angle = is_steep ? vxd_addd(pi / 2, -angle) : angle;
    angle = x < 0 ? vxd_addd(pi, -angle) : angle;
    return y < 0 ? -angle : angle;
}

/* The pixel of a direction in the image's frame; -1: none. */
VXD_HD int32_t vxd_lidar_pixel(const struct vxd_lidar_form *form, const double p[3])
{
    double flat = vxd_lidar_sqrt(vxd_addd(vxd_muld(p[0], p[0]), vxd_muld(p[1], p[1])));
    float slope = (float)vxd_lidar_div(p[2], flat);
    double turn;
    double column;
    int low = 0;
    int high = form->rows;

    if (!(flat > 0) ||
        !(slope <= form->borders[0] && slope > form->borders[form->rows])) {
        return -1;
    }
    while (high - low > 1) { /* borders[low] >= slope > borders[high] */
        int middle = (low + high) / 2;

        if (slope <= form->borders[middle]) {
            low = middle;
        } else {
            high = middle;
        }
    }
    turn = vxd_addd(vxd_lidar_atan2(p[1], p[0]), -form->azimuth_begin);
    column = vxd_muld(turn, form->columns_per_radian);
    /* A turn of the sensor, in columns; the angles differ by few of them. */
    {
        double around = 6.283185307179586 * form->columns_per_radian;

        around = around < 0 ? -around : around;
        for (int k = 0; k < 4 && column < 0; k++) {
            column = vxd_addd(column, around);
        }
        for (int k = 0; k < 4 && column >= around; k++) {
            column = vxd_addd(column, -around);
        }
    }
    if (!(column >= 0 && column < (double)form->columns)) {
        return -1;
    }
    return low * form->columns + (int32_t)column;
}

VXD_HD float vxd_lidar_feature(const struct vxd_lidar_form *form, uint32_t i, int column)
{
    return form->features[(size_t)i * (size_t)form->n_features + (size_t)column];
}

/* Whether a voxel's coordinates lie in blocks that have keys. */
VXD_HD bool vxd_lidar_voxel_of(const struct vxd_lidar_form *form, const double p[3],
                               int32_t voxel[3], float at[3])
{
    double limit = (double)VXD_BLOCK_LIMIT * form->edge;
    bool is_inside = true;

    for (int axis = 0; axis < 3; axis++) {
        double v = vxd_lidar_div(p[axis], form->voxel_size);
        double whole;

        is_inside = is_inside && v > -limit && v < limit;
        v = is_inside ? v : 0;
        whole = (double)(int32_t)v;
        whole = whole > v ? whole - 1 : whole;
        voxel[axis] = (int32_t)whole;
        at[axis] = (float)vxd_addd(v, -whole);
    }
    return is_inside;
}

/* Weight of a hit. */
VXD_HD float vxd_lidar_weight(const struct vxd_lidar_form *form, uint32_t i,
                              const double p[3], double range)
{
    float weight = form->weight;

    if (form->is_inverse_square != 0) {
        weight = vxd_divf(weight, (float)vxd_muld(range, range));
    }
    if (form->is_by_angle != 0 && form->normal_column >= 0) {
        double normal[3];
        double length;
        double cosine;

        for (int axis = 0; axis < 3; axis++) {
            normal[axis] = (double)vxd_lidar_feature(form, i, form->normal_column + axis);
        }
        length = vxd_lidar_sqrt(vxd_lidar_dot(normal, normal));
        cosine = vxd_lidar_div(vxd_lidar_dot(normal, p), vxd_muld(length, range));
        cosine = cosine < 0 ? -cosine : cosine;
        if (length > 0 && cosine <= 1.01) { /* NaN: the point has no normal */
            weight = vxd_mulf(weight, cosine > 0.01 ? (float)cosine : 0.01f);
        }
    }
    return weight < form->max_weight ? weight : form->max_weight;
}

/* The sensor's position at a point's time, and the point, both from the volume's origin. */
VXD_HD void vxd_lidar_place(const struct vxd_lidar_form *form, uint32_t i,
                            const double p[3], double sensor[3], double hit[3])
{
    double turned[3] = {p[0], p[1], p[2]};
    double moved[3];
    double s = 0;

    if (form->time_column >= 0) {
        float time = vxd_lidar_feature(form, i, form->time_column);
        double sine;
        double cosine;
        double a[3];
        double b[3];

        time = time > 0 ? time : 0; /* NaN, too */
        time = time < 1 ? time : 1;
        s = (double)time;
        vxd_lidar_sincos(vxd_muld(s, form->angle), &sine, &cosine);
        vxd_lidar_cross(form->axis, p, a);
        vxd_lidar_cross(form->axis, a, b);
        for (int axis = 0; axis < 3; axis++) {
            turned[axis] = vxd_addd(vxd_addd(p[axis], vxd_muld(sine, a[axis])),
                                    vxd_muld(vxd_addd(1, -cosine), b[axis]));
        }
    }
    vxd_lidar_turn(form->start, turned, moved);
    for (int axis = 0; axis < 3; axis++) {
        sensor[axis] = vxd_addd(form->at[axis], vxd_muld(s, form->travel[axis]));
        hit[axis] = vxd_addd(sensor[axis], moved[axis]);
    }
}

/* The label of a point; 0: none. */
VXD_HD uint32_t vxd_lidar_label(const struct vxd_lidar_form *form, uint32_t i)
{
    float label =
        form->label_column >= 0 ? vxd_lidar_feature(form, i, form->label_column) : 0;

    if (form->labels != NULL) {
        return form->labels[i];
    }
    return label >= 1 && label < 256 ? (uint32_t)label : 0;
}

/* Makes the ray of point i, and finds the pixel that it has in the range image (-1: none). A ray
 * that only says what is free ends at range_max. */
VXD_HD enum vxd_lidar_kind vxd_lidar_aim(const struct vxd_lidar_form *form, uint32_t i,
                                         struct vxd_lidar_ray *ray, int32_t *pixel)
{
    double p[3] = {(double)form->points[3 * (size_t)i],
                   (double)form->points[3 * (size_t)i + 1],
                   (double)form->points[3 * (size_t)i + 2]};
    double sensor[3];
    double hit[3];
    double beam[3];
    double own; /* range as it was measured */
    double range;
    bool is_beyond;

    ray->weight = 0;
    ray->label = 0;
    ray->range = 0;
    *pixel = -1;
    own = vxd_lidar_sqrt(vxd_lidar_dot(p, p));
    if (!(own >= (double)form->range_min && own > 0 && own <= 1e6)) {
        return VXD_LIDAR_DROPPED;
    }
    vxd_lidar_place(form, i, p, sensor, hit);
    for (int axis = 0; axis < 3; axis++) {
        sensor[axis] = form->is_image != 0 ? form->image_at[axis] : sensor[axis];
        beam[axis] = vxd_addd(hit[axis], -sensor[axis]);
    }
    range = vxd_lidar_sqrt(vxd_lidar_dot(beam, beam));
    if (!(range > 0)) {
        return VXD_LIDAR_DROPPED;
    }
    is_beyond = own > (double)form->range_max;
    for (int axis = 0; axis < 3; axis++) {
        beam[axis] = vxd_lidar_div(beam[axis], range);
        ray->direction[axis] = (float)beam[axis];
    }
    if (is_beyond) {
        range = (double)form->range_max;
        for (int axis = 0; axis < 3; axis++) {
            hit[axis] = vxd_addd(sensor[axis], vxd_muld(range, beam[axis]));
        }
    }
    if (!vxd_lidar_voxel_of(form, hit, ray->voxel, ray->at)) {
        return VXD_LIDAR_DROPPED;
    }
    ray->range = (float)range;
    if (form->is_image != 0) {
        double seen[3];

        vxd_lidar_turn(form->to_image, beam, seen);
        *pixel = vxd_lidar_pixel(form, seen);
        if (*pixel < 0) {
            return VXD_LIDAR_DROPPED;
        }
    }
    if (is_beyond) {
        ray->label = VXD_LIDAR_OPEN;
        return VXD_LIDAR_BEYOND;
    }
    ray->weight = vxd_lidar_weight(form, i, p, own);
    ray->label = vxd_lidar_label(form, i);
    return ray->weight > 0 ? VXD_LIDAR_USED : VXD_LIDAR_DROPPED;
}

/* What a pixel of the range image holds: the nearest point wins, of equal ones the first. */
VXD_HD uint64_t vxd_lidar_code(const struct vxd_lidar_ray *ray, uint32_t i)
{
    return (uint64_t)vxd_float_bits(ray->range) << 32 | i;
}

/* ---- The voxels near a hit ---- */

/* The walk over the voxels around a hit; cells count from ray->voxel. Returns how many steps it
 * has. */
VXD_HD int vxd_lidar_near_walk(const struct vxd_lidar_form *form,
                               const struct vxd_lidar_ray *ray,
                               struct vxd_cell_walk *walk)
{
    float size = (float)form->voxel_size;
    float before =
        vxd_divf(form->truncation < ray->range ? form->truncation : ray->range, size);
    float behind = vxd_divf(form->truncation, size);
    float from[3];
    float to[3];
    int32_t from_cell[3];
    int32_t to_cell[3];

    for (int axis = 0; axis < 3; axis++) {
        from[axis] = vxd_subf(ray->at[axis], vxd_mulf(ray->direction[axis], before));
        to[axis] = vxd_addf(ray->at[axis], vxd_mulf(ray->direction[axis], behind));
        from_cell[axis] = vxd_frame_floor(from[axis]);
        to_cell[axis] = vxd_frame_floor(to[axis]);
    }
    vxd_cell_walk_start(walk, from, to, from_cell, to_cell);
    return vxd_cell_walk_n_left(walk);
}

/* The key of a voxel's block; false outside of the range of keys. */
VXD_HD bool vxd_lidar_key(const struct vxd_lidar_form *form, const int32_t voxel[3],
                          int32_t key[3])
{
    for (int axis = 0; axis < 3; axis++) {
        key[axis] = voxel[axis] >> form->shift;
    }
    return vxd_block_in_range(key);
}

/* The distance that a hit gives a voxel, `cell` from the hit's own, in truncations along the ray;
 * at most 1. */
VXD_HD float vxd_lidar_distance(const struct vxd_lidar_form *form,
                                const struct vxd_lidar_ray *ray, const int32_t cell[3])
{
    float sum = 0;
    float d;

    for (int axis = 0; axis < 3; axis++) {
        float offset = vxd_subf(ray->at[axis], vxd_addf((float)cell[axis], 0.5f));

        sum = vxd_addf(sum, vxd_mulf(offset, ray->direction[axis]));
    }
    d = vxd_divf(vxd_mulf(sum, (float)form->voxel_size), form->truncation);
    return d < 1.0f ? d : 1.0f;
}

VXD_HD int64_t vxd_lidar_units(double value, double scale)
{
    double units = vxd_muld(value, scale);

    return (int64_t)vxd_addd(units, units < 0 ? -0.5 : 0.5);
}

/* What decides which of several labels a scan gives a voxel: the nearest hit, of equal ones the
 * lowest label. */
VXD_HD uint32_t vxd_lidar_vote(float distance, uint32_t label)
{
    float size = distance < 0 ? -distance : distance;

    return (uint32_t)(int32_t)vxd_mulf(size, 1048576.0f) << 8 | (label & 255u);
}

/* The observation that sums of units make. */
VXD_HD void vxd_lidar_mean(const struct vxd_lidar_form *form, int64_t sum_distance,
                           int64_t sum_weight, float *distance, float *weight)
{
    float w = (float)vxd_lidar_div((double)sum_weight, form->scale);
    float whole;

    w = w < form->max_weight ? w : form->max_weight;
    whole = (float)(int32_t)vxd_addf(w, 0.5f);
    whole = whole > 1 ? whole : 1;
    *weight = form->is_compact != 0 ? whole : w;
    *distance = (float)vxd_lidar_div((double)sum_distance, (double)sum_weight);
}

/* Averages an observation into a voxel. */
VXD_HD void vxd_lidar_average(const struct vxd_volume_view *view, size_t row,
                              float distance, float weight)
{
    float w = vxd_volume_weight(view, row);
    float mean = vxd_average(vxd_volume_distance(view, row), w, distance, weight);
    float sum = vxd_weight_sum(w, weight, view->max_weight);

    if (view->is_compact != 0) {
        ((uint16_t *)view->distances)[row] = vxd_half_of_float(mean);
        ((uint8_t *)view->weights)[row] = (uint8_t)(int32_t)sum;
    } else {
        ((float *)view->distances)[row] = mean;
        ((float *)view->weights)[row] = sum;
    }
}

/* Weight of an observation that is not of a point: of free space. */
VXD_HD float vxd_lidar_free_weight(const struct vxd_lidar_form *form)
{
    float w = form->weight < form->max_weight ? form->weight : form->max_weight;
    float whole = (float)(int32_t)vxd_addf(w, 0.5f);

    whole = whole > 1 ? whole : 1;
    return form->is_compact != 0 ? whole : w;
}

/* ---- The free part of a ray ---- */

/* The walk over the blocks of the free part of a ray. */
struct vxd_lidar_free {
    int32_t base[3];
    float from[3]; /* in blocks from the base */
    float length[3];
    struct vxd_cell_walk walk;
    int n_left;
};

/* False where nothing of the ray is free, or it leaves the range of keys. */
VXD_HD bool vxd_lidar_free_start(const struct vxd_lidar_form *form,
                                 const struct vxd_lidar_ray *ray,
                                 struct vxd_lidar_free *out)
{
    bool is_open = (ray->label & VXD_LIDAR_OPEN) != 0;
    float end = is_open ? ray->range : vxd_subf(ray->range, form->truncation);
    double block = vxd_muld(form->voxel_size, (double)form->edge);
    float to[3];
    int32_t from_cell[3];
    int32_t to_cell[3];
    int32_t first[3];
    int32_t last[3];

    end = end < form->carve ? end : form->carve;
    if (!(ray->weight > 0 || is_open) || !(end > 0)) {
        return false;
    }
    for (int axis = 0; axis < 3; axis++) {
        double hit =
            vxd_lidar_div(vxd_addd((double)ray->voxel[axis], (double)ray->at[axis]),
                          (double)form->edge);
        double slope = vxd_lidar_div((double)ray->direction[axis], block);
        double sensor = vxd_addd(hit, -vxd_muld(slope, (double)ray->range));
        double whole;

        if (!(sensor > -VXD_BLOCK_LIMIT && sensor < VXD_BLOCK_LIMIT)) {
            return false;
        }
        whole = (double)(int32_t)sensor;
        whole = whole > sensor ? whole - 1 : whole;
        out->base[axis] = (int32_t)whole;
        out->from[axis] = (float)vxd_addd(sensor, -whole);
        out->length[axis] = (float)vxd_muld(slope, (double)end);
        to[axis] = vxd_addf(out->from[axis], out->length[axis]);
        from_cell[axis] = vxd_frame_floor(out->from[axis]);
        to_cell[axis] = vxd_frame_floor(to[axis]);
        first[axis] = out->base[axis] + from_cell[axis];
        last[axis] = out->base[axis] + to_cell[axis];
    }
    vxd_cell_walk_start(&out->walk, out->from, to, from_cell, to_cell);
    out->n_left = vxd_cell_walk_n_left(&out->walk);
    return vxd_block_in_range(first) && vxd_block_in_range(last);
}

/* The share of the ray's free part at which it leaves the cell where the walk is. */
VXD_HD float vxd_lidar_free_exit(const struct vxd_lidar_free *part)
{
    float t = 1.0f;

    for (int axis = 0; axis < 3; axis++) {
        if (part->walk.n_left[axis] > 0 && part->walk.t[axis] < t) {
            t = part->walk.t[axis];
        }
    }
    return t;
}

/* The walk over the voxels of that cell's block between two shares; cells count from the block's
 * corner. */
VXD_HD int vxd_lidar_free_voxels(const struct vxd_lidar_form *form,
                                 const struct vxd_lidar_free *part, float enter,
                                 float leave, struct vxd_cell_walk *walk)
{
    float edge = (float)form->edge;
    float from[3];
    float to[3];
    int32_t from_cell[3];
    int32_t to_cell[3];

    for (int axis = 0; axis < 3; axis++) {
        float corner = (float)part->walk.cell[axis];

        from[axis] = vxd_mulf(
            vxd_subf(vxd_addf(part->from[axis], vxd_mulf(part->length[axis], enter)),
                     corner),
            edge);
        to[axis] = vxd_mulf(
            vxd_subf(vxd_addf(part->from[axis], vxd_mulf(part->length[axis], leave)),
                     corner),
            edge);
        from[axis] = from[axis] > 0 ? from[axis] : 0;
        to[axis] = to[axis] > 0 ? to[axis] : 0;
        from[axis] = from[axis] < edge ? from[axis] : edge;
        to[axis] = to[axis] < edge ? to[axis] : edge;
        from_cell[axis] = (int32_t)from[axis];
        to_cell[axis] = (int32_t)to[axis];
        from_cell[axis] = from_cell[axis] < form->edge ? from_cell[axis] : form->edge - 1;
        to_cell[axis] = to_cell[axis] < form->edge ? to_cell[axis] : form->edge - 1;
    }
    vxd_cell_walk_start(walk, from, to, from_cell, to_cell);
    return vxd_cell_walk_n_left(walk);
}

/* ---- The range image ---- */

/* A voxel's centre in the image's frame, and its range. */
VXD_HD double vxd_lidar_voxel_at(const struct vxd_lidar_form *form, const int32_t key[3],
                                 uint32_t index, double seen[3])
{
    uint32_t mask = (uint32_t)form->edge - 1;
    uint32_t in_block[3] = {index & mask, index >> form->shift & mask,
                            index >> (2 * form->shift)};
    double p[3];

    for (int axis = 0; axis < 3; axis++) {
        double voxel = vxd_addd((double)key[axis] * form->edge + (double)in_block[axis],
                                0.5); /* exact */

        p[axis] = vxd_addd(vxd_muld(voxel, form->voxel_size), -form->image_at[axis]);
    }
    vxd_lidar_turn(form->to_image, p, seen);
    return vxd_lidar_sqrt(vxd_lidar_dot(p, p));
}

/* What a voxel observes in the range image. */
struct vxd_lidar_observation {
    float distance;
    float weight; /* 0: it observes nothing */
    uint32_t label;
};

VXD_HD struct vxd_lidar_observation
vxd_lidar_observe(const struct vxd_lidar_form *form, const struct vxd_lidar_ray *rays,
                  const uint64_t *image, const int32_t key[3], uint32_t index)
{
    struct vxd_lidar_observation none = {0, 0, 0};
    struct vxd_lidar_observation out;
    double seen[3];
    double range = vxd_lidar_voxel_at(form, key, index, seen);
    int32_t pixel = vxd_lidar_pixel(form, seen);
    const struct vxd_lidar_ray *ray;
    double d;

    if (pixel < 0 || image[pixel] == VXD_LIDAR_NO_PIXEL) {
        return none;
    }
    ray = &rays[(uint32_t)image[pixel]];
    d = vxd_lidar_div(vxd_addd((double)ray->range, -range), (double)form->truncation);
    if ((ray->label & VXD_LIDAR_OPEN) != 0) {
        out.distance = 1;
        out.weight = d >= 0 ? vxd_lidar_free_weight(form) : 0;
        out.label = 0;
        return out;
    }
    out.distance = d < 1 ? (float)d : 1;
    out.weight = ray->weight;
    out.label = out.distance < 1 ? ray->label : 0;
    if (form->is_compact != 0) {
        float whole = (float)(int32_t)vxd_addf(out.weight, 0.5f);

        out.weight = whole > 1 ? whole : 1;
    }
    return d >= -1 ? out : none;
}

/* Whether a block's centre is within the reach of free space. */
VXD_HD bool vxd_lidar_reaches(const struct vxd_lidar_form *form, const int32_t key[3])
{
    double offset[3];
    double reach = (double)form->carve;

    for (int axis = 0; axis < 3; axis++) {
        double centre =
            vxd_muld(((double)key[axis] + 0.5) * form->edge, form->voxel_size);

        offset[axis] = vxd_addd(centre, -form->image_at[axis]);
    }
    return vxd_lidar_dot(offset, offset) <= vxd_muld(reach, reach);
}

#endif
