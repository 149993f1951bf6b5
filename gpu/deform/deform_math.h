// SPDX-License-Identifier: Apache-2.0
/* Arithmetic of control grids that gives the same bits on both backends: lookup of control points,
 * C and its derivative, its inverse. */
#ifndef VXD_GPU_DEFORM_DEFORM_MATH_H
#define VXD_GPU_DEFORM_DEFORM_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/deform/deform.h"

/* Keys of control points are within +-VXD_DEFORM_LIMIT; those of cells one less at the top. */
#define VXD_DEFORM_LIMIT ((1 << 20) - 2)

/* Steps of the inverse at most: each one divides the error by ten or more where C's derivative is
 * within a tenth of a rotation by no angle. */
#define VXD_DEFORM_INVERSE_STEPS 24
#define VXD_DEFORM_INVERSE_M 1e-9

/* The offsets of a cell's corners. Corner k has x + (k >> 2 & 1), y + (k >> 1 & 1), z + (k & 1),
 * as VXD_NEIGHBOURS_8. */
struct vxd_deform_cell {
    int32_t key[3];
    uint32_t known; /* bit k: corner k is in the map; the others' offsets are 0 */
    int is_loaded;
    float offsets[8][3];
};

VXD_HD uint64_t vxd_deform_tag(int32_t x, int32_t y, int32_t z)
{
    return (uint64_t)(uint32_t)(x + (1 << 20)) << 42 |
           (uint64_t)(uint32_t)(y + (1 << 20)) << 21 |
           (uint64_t)(uint32_t)(z + (1 << 20));
}

/* Finaliser of SplitMix64. */
VXD_HD uint32_t vxd_deform_hash(uint64_t tag)
{
    tag = (tag ^ tag >> 30) * 0xbf58476d1ce4e5b9ULL;
    tag = (tag ^ tag >> 27) * 0x94d049bb133111ebULL;
    return (uint32_t)(tag >> 32);
}

/* The entry of a control point; -1: none. At most half of the slots are taken. */
VXD_HD int32_t vxd_deform_find(const struct vxd_deform_view *view, int32_t x, int32_t y,
                               int32_t z)
{
    uint64_t tag = vxd_deform_tag(x, y, z);
    uint32_t slot = vxd_deform_hash(tag) & view->table_mask;

    for (uint32_t n = 0; n <= view->table_mask; n++) {
        uint64_t here = view->table[slot].tag;

        if (here == tag) {
            return view->table[slot].entry;
        }
        if (here == UINT64_MAX) {
            break;
        }
        slot = (slot + 1) & view->table_mask;
    }
    return VXD_NO_ENTRY;
}

VXD_HD double vxd_deform_mad(double a, double b, double c)
{
    return vxd_addd(vxd_muld(a, b), c);
}

/* p_to = rotation * p_from + translation. */
VXD_HD void vxd_deform_move(const struct vxd_deform_pose *pose, const double p[3],
                            double out[3])
{
    for (int i = 0; i < 3; i++) {
        const double *r = &pose->rotation[3 * (size_t)i];

        out[i] = vxd_addd(
            vxd_deform_mad(r[2], p[2], vxd_deform_mad(r[1], p[1], vxd_muld(r[0], p[0]))),
            pose->translation[i]);
    }
}

/* The cell of a point, and where in it the point lies, 0 to 1. Points beyond the range of keys get
 * a cell at its end. */
VXD_HD void vxd_deform_locate(const struct vxd_deform_view *view, const double p[3],
                              int32_t key[3], double part[3])
{
    for (int i = 0; i < 3; i++) {
        double at = vxd_addd(p[i], -view->origin[i]) / view->cell;
        double low;

        at = at > -(double)VXD_DEFORM_LIMIT ? at
                                            : -(double)VXD_DEFORM_LIMIT; /* NaN, too */
        at = at < (double)(VXD_DEFORM_LIMIT - 1) ? at : (double)(VXD_DEFORM_LIMIT - 1);
        low = floor(at);
        key[i] = (int32_t)low;
        part[i] = vxd_addd(at, -low);
    }
}

/* Loads a cell's corners, unless it is the one that is loaded. */
VXD_HD void vxd_deform_load(const struct vxd_deform_view *view, const int32_t key[3],
                            struct vxd_deform_cell *cell)
{
    if (cell->is_loaded != 0 && cell->key[0] == key[0] && cell->key[1] == key[1] &&
        cell->key[2] == key[2]) {
        return;
    }
    cell->is_loaded = 1;
    cell->known = 0;
    for (int i = 0; i < 3; i++) {
        cell->key[i] = key[i];
    }
    for (int k = 0; k < 8; k++) {
        int32_t entry = vxd_deform_find(view, key[0] + (k >> 2 & 1),
                                        key[1] + (k >> 1 & 1), key[2] + (k & 1));

        for (int i = 0; i < 3; i++) {
            cell->offsets[k][i] =
                entry >= 0 ? view->offsets[3 * (size_t)entry + (size_t)i] : 0;
        }
        cell->known |= entry >= 0 ? 1u << k : 0;
    }
}

/* Trilinear weight of a corner. */
VXD_HD double vxd_deform_weight(const double part[3], int k)
{
    double x = (k >> 2 & 1) != 0 ? part[0] : vxd_addd(1, -part[0]);
    double y = (k >> 1 & 1) != 0 ? part[1] : vxd_addd(1, -part[1]);
    double z = (k & 1) != 0 ? part[2] : vxd_addd(1, -part[2]);

    return vxd_muld(vxd_muld(x, y), z);
}

/* Its derivative along an axis, a cell. */
VXD_HD double vxd_deform_weight_by(const double part[3], int k, int axis)
{
    double weight = (k >> (2 - axis) & 1) != 0 ? 1 : -1;

    for (int i = 0; i < 3; i++) {
        double here = (k >> (2 - i) & 1) != 0 ? part[i] : vxd_addd(1, -part[i]);

        weight = i != axis ? vxd_muld(weight, here) : weight;
    }
    return weight;
}

/* The offset of a point in a cell; false and 0 where none of its corners counts. */
VXD_HD bool vxd_deform_offset(const struct vxd_deform_cell *cell, const double part[3],
                              double out[3])
{
    double sum[3] = {0, 0, 0};
    double total = 0;

    for (int k = 0; k < 8; k++) {
        double weight = (cell->known >> k & 1) != 0 ? vxd_deform_weight(part, k) : 0;

        total = vxd_addd(total, weight);
        for (int i = 0; i < 3; i++) {
            sum[i] = vxd_deform_mad(weight, (double)cell->offsets[k][i], sum[i]);
        }
    }
    if (!(total > 0)) {
        out[0] = out[1] = out[2] = 0;
        return false;
    }
    for (int i = 0; i < 3; i++) {
        out[i] = cell->known == 0xffu ? sum[i] : sum[i] / total;
    }
    return true;
}

/* C(p). The cell is a cache of the last one; its is_loaded is 0 before the first call. */
VXD_HD bool vxd_deform_point(const struct vxd_deform_view *view,
                             struct vxd_deform_cell *cell, const double p[3],
                             double out[3])
{
    int32_t key[3];
    double part[3];
    double offset[3];
    bool is_inside;

    vxd_deform_locate(view, p, key, part);
    vxd_deform_load(view, key, cell);
    is_inside = vxd_deform_offset(cell, part, offset);
    for (int i = 0; i < 3; i++) {
        out[i] = vxd_addd(p[i], offset[i]);
    }
    return is_inside;
}

/* C^-1(y): p with C(p) = y, by p <- y - offset(p). */
VXD_HD bool vxd_deform_inverse(const struct vxd_deform_view *view,
                               struct vxd_deform_cell *cell, const double y[3],
                               double out[3])
{
    double p[3] = {y[0], y[1], y[2]};
    bool is_inside = false;

    for (int step = 0; step < VXD_DEFORM_INVERSE_STEPS; step++) {
        double at[3];
        double error = 0;

        is_inside = vxd_deform_point(view, cell, p, at);
        for (int i = 0; i < 3; i++) {
            double d = vxd_addd(y[i], -at[i]);

            p[i] = vxd_addd(p[i], d);
            d = d < 0 ? -d : d;
            error = d > error ? d : error;
        }
        if (!(error > VXD_DEFORM_INVERSE_M)) {
            break;
        }
    }
    for (int i = 0; i < 3; i++) {
        out[i] = p[i];
    }
    return is_inside;
}

/* dC / dp, row-major, at a point of a cell. */
VXD_HD void vxd_deform_derivative(const struct vxd_deform_cell *cell,
                                  const double part[3], double cell_m, double out[9])
{
    double sum[3] = {0, 0, 0};
    double total = 0;

    for (int k = 0; k < 8; k++) {
        double weight = (cell->known >> k & 1) != 0 ? vxd_deform_weight(part, k) : 0;

        total = vxd_addd(total, weight);
        for (int i = 0; i < 3; i++) {
            sum[i] = vxd_deform_mad(weight, (double)cell->offsets[k][i], sum[i]);
        }
    }
    for (int axis = 0; axis < 3; axis++) {
        double by[3] = {0, 0, 0};
        double total_by = 0;

        for (int k = 0; k < 8; k++) {
            double weight = (cell->known >> k & 1) != 0
                                ? vxd_deform_weight_by(part, k, axis) / cell_m
                                : 0;

            total_by = vxd_addd(total_by, weight);
            for (int i = 0; i < 3; i++) {
                by[i] = vxd_deform_mad(weight, (double)cell->offsets[k][i], by[i]);
            }
        }
        for (int i = 0; i < 3; i++) {
            double slope = 0;

            if (cell->known == 0xffu) {
                slope = by[i];
            } else if (total > 0) { /* of a quotient */
                slope = vxd_addd(by[i], -vxd_muld(sum[i] / total, total_by)) / total;
            }
            out[3 * i + axis] = vxd_addd(i == axis ? 1 : 0, slope);
        }
    }
}

/* A surface's normal after C: the cofactors of the derivative times the normal, unit length; the
 * normal itself where that has no direction. */
VXD_HD void vxd_deform_normal(const double J[9], const double n[3], double out[3])
{
    double squares = 0;
    double length;

    for (int i = 0; i < 3; i++) {
        int a = (i + 1) % 3;
        int b = (i + 2) % 3;

        out[i] = 0;
        for (int j = 0; j < 3; j++) {
            int c = (j + 1) % 3;
            int d = (j + 2) % 3;
            double cofactor = vxd_addd(vxd_muld(J[3 * a + c], J[3 * b + d]),
                                       -vxd_muld(J[3 * a + d], J[3 * b + c]));

            out[i] = vxd_deform_mad(cofactor, n[j], out[i]);
        }
        squares = vxd_deform_mad(out[i], out[i], squares);
    }
    length = sqrt(squares);
    for (int i = 0; i < 3; i++) {
        out[i] = length > 0 ? out[i] / length : n[i];
    }
}

/* ---- Apply ---- */

struct vxd_deform_call {
    struct vxd_deform_view view;
    struct vxd_deform_apply_args args;
};

VXD_HD bool vxd_deform_is_finite(const float *p)
{
    /* The difference of what is not finite is NaN. */
    return p[0] - p[0] == 0 && p[1] - p[1] == 0 && p[2] - p[2] == 0;
}

VXD_HD void vxd_deform_rotate(const struct vxd_deform_pose *pose, const double n[3],
                              double out[3])
{
    for (int i = 0; i < 3; i++) {
        const double *r = &pose->rotation[3 * (size_t)i];

        out[i] =
            vxd_deform_mad(r[2], n[2], vxd_deform_mad(r[1], n[1], vxd_muld(r[0], n[0])));
    }
}

/* The cofactors of the derivative of C^-1 at C(p) are, up to a factor above 0, J transposed. */
VXD_HD void vxd_deform_apply_normal(const struct vxd_deform_call *call,
                                    const struct vxd_deform_cell *cell,
                                    const double part[3], size_t i)
{
    const float *in = call->args.normals + 3 * i;
    float *to = call->args.out_normals + 3 * i;
    const double n[3] = {(double)in[0], (double)in[1], (double)in[2]};
    double J[9];
    double at[3];
    double moved[3];
    double out[3];

    vxd_deform_derivative(cell, part, call->view.cell, J);
    vxd_deform_rotate(&call->args.T_grid_in, n, at);
    if (call->args.is_inverse) {
        double squares = 0;
        double length;

        for (int a = 0; a < 3; a++) {
            moved[a] = vxd_deform_mad(
                J[6 + a], at[2], vxd_deform_mad(J[3 + a], at[1], vxd_muld(J[a], at[0])));
            squares = vxd_deform_mad(moved[a], moved[a], squares);
        }
        length = sqrt(squares);
        for (int a = 0; a < 3; a++) {
            moved[a] = length > 0 ? moved[a] / length : at[a];
        }
    } else {
        vxd_deform_normal(J, at, moved);
    }
    vxd_deform_rotate(&call->args.T_out_grid, moved, out);
    for (int a = 0; a < 3; a++) {
        to[a] = vxd_canonical_nanf((float)out[a]);
    }
}

VXD_HD void vxd_deform_apply_one(const struct vxd_deform_call *call,
                                 struct vxd_deform_cell *cell, size_t i)
{
    const struct vxd_deform_apply_args *args = &call->args;
    const float *in = args->points + 3 * i;
    float *to = args->out_points + 3 * i;
    const double x[3] = {(double)in[0], (double)in[1], (double)in[2]};
    bool is_finite = vxd_deform_is_finite(in);
    bool is_inside = false;
    double at[3];
    double moved[3];
    double out[3];
    double part[3];
    int32_t key[3];

    if (is_finite) {
        vxd_deform_move(&args->T_grid_in, x, at);
        is_inside = args->is_inverse ? vxd_deform_inverse(&call->view, cell, at, moved)
                                     : vxd_deform_point(&call->view, cell, at, moved);
        if (args->out_normals != NULL) {
            vxd_deform_locate(&call->view, args->is_inverse ? moved : at, key, part);
            vxd_deform_load(&call->view, key, cell);
            vxd_deform_apply_normal(call, cell, part, i);
        }
        vxd_deform_move(&args->T_out_grid, moved, out);
        for (int a = 0; a < 3; a++) {
            to[a] = (float)out[a];
        }
    } else {
        for (int a = 0; a < 3; a++) {
            to[a] = in[a];
            if (args->out_normals != NULL) {
                args->out_normals[3 * i + (size_t)a] = args->normals[3 * i + (size_t)a];
            }
        }
    }
    if (args->is_inside != NULL) {
        args->is_inside[i] = is_inside ? 1 : 0;
    }
}

#endif
