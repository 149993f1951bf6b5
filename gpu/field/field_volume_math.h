// SPDX-License-Identifier: Apache-2.0
/* Fields of volumes: which voxels are obstacles, and distances finer than voxels, as both backends
 * compile them. Sums go x, y, z and every operation rounds once, as in distance_math.h.
 *
 * A voxel with an observed negative distance is an obstacle. From the point the field knows the
 * nearest voxel of the other kind; a side of that voxel faces one of the point's kind, because a
 * step towards the point comes nearer. On each such side the distances cross 0 between the two
 * centres, and the crossing stands for a disc across the gradient there: what is nearest to the
 * point is on one of at most six discs. */
#ifndef VXD_GPU_FIELD_FIELD_VOLUME_MATH_H
#define VXD_GPU_FIELD_FIELD_VOLUME_MATH_H

#include "gpu/field/distance_math.h"
#include "gpu/volume/volume_math.h"

/* Voxels: a disc reaches what the crossings beside it leave between them. */
#define VXD_FIELD_DISC_RADIUS 1.0

/* A gradient that points so far against the change from obstacle to free between two centres is
 * noise: then the disc is across the line between these. Where an edge runs along the surface the
 * gradient may be a little against it. */
#define VXD_FIELD_AGAINST (-0.5)

/* Where a part's bits come from. */
struct vxd_field_bits_call {
    struct vxd_field_view field;
    struct vxd_volume_view volume;
    float min_weight;
    int first_x; /* of the part, in the field's indices */
    int n_x;
    uint64_t *occupied; /* rows of the part, from its first */
    uint64_t *free;
};

/* Whether a voxel of the volume is known, and its distance in units of the truncation. */
VXD_HD bool vxd_field_volume_value(const struct vxd_volume_view *volume, float min_weight,
                                   int32_t x, int32_t y, int32_t z, float *distance)
{
    int32_t key[3] = {vxd_block_of_voxel(volume, x), vxd_block_of_voxel(volume, y),
                      vxd_block_of_voxel(volume, z)};
    int32_t entry;
    size_t row;
    float weight;

    if (!vxd_block_in_range(key)) {
        return false;
    }
    entry = vxd_volume_find_block(volume, vxd_block_tag(key[0], key[1], key[2]));
    if (entry == VXD_NO_ENTRY) {
        return false;
    }
    row = vxd_voxel_row(volume, entry, vxd_voxel_index(volume, x, y, z));
    weight = vxd_volume_weight(volume, row);
    if (!(weight > 0 && weight >= min_weight)) {
        return false;
    }
    *distance = vxd_volume_distance(volume, row);
    return true;
}

/* Word `word` of row (x, y), in the field's indices: a block of the volume after the other. */
VXD_HD void vxd_field_volume_word(const struct vxd_field_bits_call *call, int x, int y,
                                  int word, uint64_t *occupied, uint64_t *free)
{
    const struct vxd_field_view *field = &call->field;
    const struct vxd_volume_view *volume = &call->volume;
    int32_t at_x = field->low[0] + x;
    int32_t at_y = field->low[1] + y;
    int end = field->size[2] - word * VXD_FIELD_WORD;

    *occupied = 0;
    *free = 0;
    end = end < VXD_FIELD_WORD ? end : VXD_FIELD_WORD;
    for (int i = 0; i < end;) {
        int32_t z = field->low[2] + word * VXD_FIELD_WORD + i;
        int32_t key[3] = {vxd_block_of_voxel(volume, at_x),
                          vxd_block_of_voxel(volume, at_y),
                          vxd_block_of_voxel(volume, z)};
        int n = volume->edge - (int)((uint32_t)z & ((uint32_t)volume->edge - 1));
        int32_t entry =
            vxd_block_in_range(key)
                ? vxd_volume_find_block(volume, vxd_block_tag(key[0], key[1], key[2]))
                : VXD_NO_ENTRY;

        n = n < end - i ? n : end - i;
        for (int k = 0; k < n && entry != VXD_NO_ENTRY; k++) {
            size_t row =
                vxd_voxel_row(volume, entry, vxd_voxel_index(volume, at_x, at_y, z + k));
            float weight = vxd_volume_weight(volume, row);
            uint64_t bit = (uint64_t)1 << (i + k);

            if (weight > 0 && weight >= call->min_weight) {
                *occupied |= vxd_volume_distance(volume, row) < 0 ? bit : 0;
                *free |= vxd_volume_distance(volume, row) < 0 ? 0 : bit;
            }
        }
        i += n;
    }
}

VXD_HD void vxd_field_volume_row_words(const struct vxd_field_bits_call *call, size_t i)
{
    size_t n_words = (size_t)call->field.n_words;
    size_t row = i / n_words;
    size_t n_y = (size_t)call->field.size[1];

    vxd_field_volume_word(call, call->first_x + (int)(row / n_y), (int)(row % n_y),
                          (int)(i % n_words), &call->occupied[i], &call->free[i]);
}

/* --- distances ------------------------------------------------------------------------------ */

struct vxd_field_surface_call {
    struct vxd_field_view field;
    struct vxd_volume_view volume;
    float min_weight;
    size_t n;
    const double *points;
    float *distances;
    float *gradients; /* may be NULL */
};

/* The slope along one axis at a voxel whose distance is d: central where both neighbours are known,
 * else one-sided, else 0. */
VXD_HD double vxd_field_slope(const struct vxd_field_surface_call *call,
                              const int32_t at[3], int axis, float d)
{
    int32_t step[3] = {axis == 0, axis == 1, axis == 2};
    float low = d;
    float high = d;
    bool has_low =
        vxd_field_volume_value(&call->volume, call->min_weight, at[0] - step[0],
                               at[1] - step[1], at[2] - step[2], &low);
    bool has_high =
        vxd_field_volume_value(&call->volume, call->min_weight, at[0] + step[0],
                               at[1] + step[1], at[2] + step[2], &high);
    double slope = vxd_field_subd((double)high, (double)low);

    return has_low && has_high ? vxd_muld(slope, 0.5) : slope;
}

/* A disc: its centre in voxels of the volume, and its unit normal out of the obstacle. */
struct vxd_field_disc {
    double at[3];
    double normal[3];
};

/* The disc between voxel n and its neighbour m along an axis, which is of the other kind; both in
 * voxels of the volume. */
VXD_HD void vxd_field_make_disc(const struct vxd_field_surface_call *call,
                                const int32_t n[3], const int32_t m[3], int axis,
                                bool n_is_obstacle, struct vxd_field_disc *disc)
{
    double outwards = (double)(n_is_obstacle ? m[axis] - n[axis] : n[axis] - m[axis]);
    double share = 0.5;
    double length;
    float of_n = 0;
    float of_m = 0;
    bool is_known =
        vxd_field_volume_value(&call->volume, call->min_weight, n[0], n[1], n[2],
                               &of_n) &&
        vxd_field_volume_value(&call->volume, call->min_weight, m[0], m[1], m[2], &of_m);

    for (int i = 0; i < 3; i++) {
        disc->normal[i] = 0;
    }
    if (is_known) {
        share = vxd_field_divd((double)of_n, vxd_field_subd((double)of_n, (double)of_m));
        for (int i = 0; i < 3; i++) {
            double here = vxd_field_slope(call, n, i, of_n);
            double there = vxd_field_slope(call, m, i, of_m);

            disc->normal[i] =
                vxd_addd(here, vxd_muld(share, vxd_field_subd(there, here)));
        }
        vxd_field_unit(disc->normal);
    }
    length = vxd_field_sum(vxd_field_square(disc->normal[0]),
                           vxd_field_square(disc->normal[1]),
                           vxd_field_square(disc->normal[2]));
    if (!(length > 0) || vxd_muld(disc->normal[axis], outwards) < VXD_FIELD_AGAINST) {
        for (int i = 0; i < 3; i++) {
            disc->normal[i] = i == axis ? outwards : 0.0;
        }
    }
    for (int i = 0; i < 3; i++) {
        disc->at[i] = vxd_addd((double)n[i], 0.5);
    }
    disc->at[axis] =
        vxd_addd(disc->at[axis], vxd_muld(share, (double)(m[axis] - n[axis])));
}

/* The nearest place of a disc to a point: *square of the distance, the sign by the disc's side, or
 * `kind` beyond its rim, and the direction out of the obstacle. */
struct vxd_field_near {
    double square;
    double sign;
    double gradient[3];
};

VXD_HD void vxd_field_near_disc(const struct vxd_field_disc *disc, const double p[3],
                                double kind, struct vxd_field_near *out)
{
    double v[3];
    double height = 0;
    double squares = 0;
    double across;
    double beyond;

    for (int i = 0; i < 3; i++) {
        v[i] = vxd_field_subd(p[i], disc->at[i]);
        height = vxd_addd(height, vxd_muld(v[i], disc->normal[i]));
        squares = vxd_addd(squares, vxd_field_square(v[i]));
    }
    across = vxd_field_subd(squares, vxd_field_square(height));
    across = across > 0 ? vxd_field_sqrt(across) : 0.0;
    beyond = vxd_field_subd(across, VXD_FIELD_DISC_RADIUS);
    if (!(beyond > 0)) {
        out->square = vxd_field_square(height);
        out->sign = height < 0 ? -1.0 : 1.0;
        for (int i = 0; i < 3; i++) {
            out->gradient[i] = disc->normal[i];
        }
        return;
    }
    out->square = vxd_addd(vxd_field_square(height), vxd_field_square(beyond));
    out->sign = kind;
    for (int i = 0; i < 3; i++) {
        double flat = vxd_field_subd(v[i], vxd_muld(height, disc->normal[i]));

        out->gradient[i] =
            vxd_muld(kind, vxd_addd(vxd_muld(height, disc->normal[i]),
                                    vxd_muld(flat, vxd_field_divd(beyond, across))));
    }
}

/* The nearest of the discs around voxel `nearest`, in the field's indices. */
VXD_HD void vxd_field_near_surface(const struct vxd_field_surface_call *call,
                                   const double p[3], const int nearest[3],
                                   struct vxd_field_near *out)
{
    const struct vxd_field_view *field = &call->field;
    bool is_obstacle = vxd_field_is_obstacle(field, nearest[0], nearest[1], nearest[2]);

    out->square = INFINITY;
    for (int side = 0; side < 6; side++) {
        int axis = side >> 1;
        int other[3] = {nearest[0], nearest[1], nearest[2]};
        struct vxd_field_disc disc;
        struct vxd_field_near here;
        int32_t n[3];
        int32_t m[3];

        other[axis] += (side & 1) != 0 ? 1 : -1;
        if (other[axis] < 0 || other[axis] >= field->size[axis] ||
            vxd_field_is_obstacle(field, other[0], other[1], other[2]) == is_obstacle) {
            continue;
        }
        for (int i = 0; i < 3; i++) {
            n[i] = field->low[i] + nearest[i];
            m[i] = field->low[i] + other[i];
        }
        vxd_field_make_disc(call, n, m, axis, is_obstacle, &disc);
        vxd_field_near_disc(&disc, p, is_obstacle ? 1.0 : -1.0, &here);
        if (here.square < out->square) {
            *out = here;
        }
    }
}

/* Point i of a query: `points` are in voxels from the volume's origin. */
VXD_HD void vxd_field_answer_surface(const struct vxd_field_surface_call *call, size_t i)
{
    const struct vxd_field_view *field = &call->field;
    const double *p = call->points + 3 * i;
    double reach = vxd_field_surface_reach(field);
    double distance = NAN;
    double gradient[3] = {NAN, NAN, NAN};
    int at[3];

    if (vxd_field_voxel_of(field, p, at) &&
        !vxd_field_is_unknown(field, at[0], at[1], at[2])) {
        struct vxd_field_near near = {INFINITY, 1.0, {0, 0, 0}};
        int nearest[3];
        bool is_near = vxd_field_nearest(field, at, nearest);

        if (is_near) {
            vxd_field_near_surface(call, p, nearest, &near);
            is_near = near.square <= vxd_field_square(reach);
        }
        distance = is_near ? vxd_muld(near.sign, vxd_field_sqrt(near.square))
                   : vxd_field_is_obstacle(field, at[0], at[1], at[2]) ? -reach
                                                                       : reach;
        if (is_near) {
            vxd_field_unit(near.gradient);
        }
        for (int axis = 0; axis < 3; axis++) {
            gradient[axis] = is_near ? near.gradient[axis] : 0.0;
        }
    }
    call->distances[i] =
        vxd_canonical_nanf((float)vxd_muld(distance, field->voxel_size_m));
    for (int axis = 0; axis < 3 && call->gradients != NULL; axis++) {
        call->gradients[3 * i + (size_t)axis] = vxd_canonical_nanf((float)gradient[axis]);
    }
}

#ifdef __cplusplus
extern "C" {
#endif
enum vxd_status vxd_field_volume_bits_cpu(struct vxd_queue *queue,
                                          const struct vxd_field_bits_call *call,
                                          struct vxd_err *err);
enum vxd_status vxd_field_volume_bits_cuda(struct vxd_queue *queue,
                                           const struct vxd_field_bits_call *call,
                                           struct vxd_err *err);
enum vxd_status vxd_field_query_surface_cpu(struct vxd_queue *queue,
                                            const struct vxd_field_surface_call *call,
                                            struct vxd_err *err);
enum vxd_status vxd_field_query_surface_cuda(struct vxd_queue *queue,
                                             const struct vxd_field_surface_call *call,
                                             struct vxd_err *err);
#ifdef __cplusplus
}
#endif
#endif
