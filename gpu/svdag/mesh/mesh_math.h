// SPDX-License-Identifier: Apache-2.0
/* Which voxels of a row a triangle sets, the same on every backend: doubles, rounded once in each
 * operation. The host prepares triangles (mesh.c), so divisions happen in one place only.
 *
 * A row is the voxels of one index along the axis v of its triangle. The part of the triangle in the
 * row bounds u and w; the plane bounds w again for each u. So a row looks at few voxels more than it
 * sets, and the exact test decides. */
#ifndef VXD_GPU_SVDAG_MESH_MESH_MATH_H
#define VXD_GPU_SVDAG_MESH_MESH_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/svdag/mesh/mesh.h"

/* What bounds are widened by: more than all roundings together for coordinates up to 2^31. */
#define VXD_SVDAG_MESH_SLACK 0.001

/* A prepared triangle. */
struct vxd_svdag_mesh_item {
    double p[3][3]; /* its vertices */
    double
        slope[3]
             [2]; /* of the edge from vertex i to the next: du/dv and dw/dv; 0 along v */
    double normal[3];   /* zeros where has_plane is 0 */
    double plane[2];    /* dw/du and dw/dv in its plane, at most 1 */
    uint32_t first_row; /* of all rows of the call */
    uint32_t n_rows;
    int32_t low_row; /* voxel index of its first row */
    uint16_t value;
    uint8_t u, v, w; /* axes: v along the rows, w the one that the plane gives */
    uint8_t has_plane;
};

/* n_items prepared triangles with n_rows rows in all. */
struct vxd_svdag_mesh_work {
    const struct vxd_svdag_mesh_item *items;
    uint32_t n_items;
    uint32_t n_rows;
    int64_t side; /* of the scene, voxels */
    enum vxd_svdag_mesh_rule rule;
    uint32_t *counts; /* n_rows + 1 */
    int32_t *voxels;  /* 3 for each; NULL while they are counted */
    uint16_t *values; /* NULL: none */
};

struct vxd_svdag_mesh_range {
    double low, high;
};

VXD_HD void vxd_svdag_mesh_extend(struct vxd_svdag_mesh_range *range, double x)
{
    range->low = x < range->low ? x : range->low;
    range->high = x > range->high ? x : range->high;
}

/* The ranges of u and w of the triangle's part from v = row to row + 1. */
VXD_HD void vxd_svdag_mesh_slab(const struct vxd_svdag_mesh_item *item, int64_t row,
                                struct vxd_svdag_mesh_range *u,
                                struct vxd_svdag_mesh_range *w)
{
    u->low = w->low = VXD_SVDAG_MESH_FAR;
    u->high = w->high = -VXD_SVDAG_MESH_FAR;
    for (int i = 0; i < 3; i++) {
        const double *a = item->p[i];
        const double *b = item->p[(i + 1) % 3];
        const double from = a[item->v];
        const double to = b[item->v];

        if (from >= (double)row && from <= (double)(row + 1)) {
            vxd_svdag_mesh_extend(u, a[item->u]);
            vxd_svdag_mesh_extend(w, a[item->w]);
        }
        for (int k = 0; k < 2; k++) {
            const double plane = (double)(row + k);
            const double t = vxd_addd(plane, -from);

            if ((from < plane && plane < to) || (to < plane && plane < from)) {
                vxd_svdag_mesh_extend(
                    u, vxd_addd(a[item->u], vxd_muld(t, item->slope[i][0])));
                vxd_svdag_mesh_extend(
                    w, vxd_addd(a[item->w], vxd_muld(t, item->slope[i][1])));
            }
        }
    }
    u->low = vxd_addd(u->low, -VXD_SVDAG_MESH_SLACK);
    u->high = vxd_addd(u->high, VXD_SVDAG_MESH_SLACK);
    w->low = vxd_addd(w->low, -VXD_SVDAG_MESH_SLACK);
    w->high = vxd_addd(w->high, VXD_SVDAG_MESH_SLACK);
}

/* Narrows w to what the plane has over the square of u and row. */
VXD_HD void vxd_svdag_mesh_narrow(const struct vxd_svdag_mesh_item *item, int64_t u,
                                  int64_t row, struct vxd_svdag_mesh_range *w)
{
    const double du = vxd_addd((double)u, -item->p[0][item->u]);
    const double dv = vxd_addd((double)row, -item->p[0][item->v]);
    const double at =
        vxd_addd(item->p[0][item->w],
                 vxd_addd(vxd_muld(du, item->plane[0]), vxd_muld(dv, item->plane[1])));
    double low = vxd_addd(at, -VXD_SVDAG_MESH_SLACK);
    double high = vxd_addd(at, VXD_SVDAG_MESH_SLACK);

    for (int k = 0; k < 2; k++) {
        low = item->plane[k] < 0 ? vxd_addd(low, item->plane[k]) : low;
        high = item->plane[k] > 0 ? vxd_addd(high, item->plane[k]) : high;
    }
    w->low = low > w->low ? low : w->low;
    w->high = high < w->high ? high : w->high;
}

VXD_HD double vxd_svdag_mesh_dot(const double a[3], const double b[3])
{
    return vxd_addd(vxd_addd(vxd_muld(a[0], b[0]), vxd_muld(a[1], b[1])),
                    vxd_muld(a[2], b[2]));
}

VXD_HD double vxd_svdag_mesh_abs(double x)
{
    return x < 0 ? -x : x;
}

/* Whether the axis that is the cross product of an edge and coordinate axis k keeps the triangle
 * apart from the cube around 0. q are its vertices. */
VXD_HD bool vxd_svdag_mesh_apart(const double q[3][3], const double edge[3], int k)
{
    const int i = (k + 1) % 3;
    const int j = (k + 2) % 3;
    const double radius =
        vxd_muld(0.5, vxd_addd(vxd_svdag_mesh_abs(edge[i]), vxd_svdag_mesh_abs(edge[j])));
    double low = 0;
    double high = 0;

    for (int m = 0; m < 3; m++) {
        const double at =
            vxd_addd(vxd_muld(q[m][i], edge[j]), -vxd_muld(q[m][j], edge[i]));

        low = m == 0 || at < low ? at : low;
        high = m == 0 || at > high ? at : high;
    }
    return low > radius || high < -radius;
}

/* Whether the triangle meets the cube around 0: no axis keeps them apart (Akenine-Moeller). */
VXD_HD bool vxd_svdag_mesh_meets_cube(const struct vxd_svdag_mesh_item *item,
                                      const double q[3][3])
{
    double at, radius;

    for (int k = 0; k < 3; k++) {
        double low = q[0][k] < q[1][k] ? q[0][k] : q[1][k];
        double high = q[0][k] > q[1][k] ? q[0][k] : q[1][k];

        low = q[2][k] < low ? q[2][k] : low;
        high = q[2][k] > high ? q[2][k] : high;
        if (low >= 0.5 || high < -0.5) {
            return false;
        }
    }
    at = vxd_svdag_mesh_dot(item->normal, q[0]);
    radius = vxd_muld(0.5, vxd_addd(vxd_addd(vxd_svdag_mesh_abs(item->normal[0]),
                                             vxd_svdag_mesh_abs(item->normal[1])),
                                    vxd_svdag_mesh_abs(item->normal[2])));
    if (vxd_svdag_mesh_abs(at) > radius) {
        return false;
    }
    for (int m = 0; m < 3; m++) {
        double edge[3];

        for (int k = 0; k < 3; k++) {
            edge[k] = vxd_addd(q[(m + 1) % 3][k], -q[m][k]);
        }
        for (int k = 0; k < 3; k++) {
            if (vxd_svdag_mesh_apart(q, edge, k)) {
                return false;
            }
        }
    }
    return true;
}

/* Whether the triangle meets the piece of coordinate axis k in the cube around 0. */
VXD_HD bool vxd_svdag_mesh_meets_axis(const struct vxd_svdag_mesh_item *item,
                                      const double q[3][3], int k)
{
    const int i = (k + 1) % 3;
    const int j = (k + 2) % 3;
    const double n = item->normal[k];
    const double half = vxd_muld(0.5, n);
    const double at = vxd_svdag_mesh_dot(item->normal, q[0]);
    int n_left = 0;
    int n_right = 0;

    if (n == 0 || (n > 0 ? at < -half || at >= half : at > -half || at <= half)) {
        return false;
    }
    for (int m = 0; m < 3; m++) {
        const double *a = q[m];
        const double *b = q[(m + 1) % 3];
        const double side =
            vxd_addd(vxd_muld(a[i], b[j]), -vxd_muld(a[j], b[i])); /* 0: through it */

        n_left += side > 0 ? 1 : 0;
        n_right += side < 0 ? 1 : 0;
    }
    return n_left == 0 || n_right == 0;
}

VXD_HD bool vxd_svdag_mesh_sets(const struct vxd_svdag_mesh_item *item,
                                const int64_t voxel[3], enum vxd_svdag_mesh_rule rule)
{
    double q[3][3];

    for (int m = 0; m < 3; m++) {
        for (int k = 0; k < 3; k++) {
            q[m][k] = vxd_addd(item->p[m][k], -((double)voxel[k] + 0.5));
        }
    }
    return rule == VXD_SVDAG_MESH_CONSERVATIVE
               ? vxd_svdag_mesh_meets_cube(item, q)
               : vxd_svdag_mesh_meets_axis(item, q, 0) ||
                     vxd_svdag_mesh_meets_axis(item, q, 1) ||
                     vxd_svdag_mesh_meets_axis(item, q, 2);
}

/* The voxels of a range that are in the scene: from *low below *high. */
VXD_HD void vxd_svdag_mesh_indices(const struct vxd_svdag_mesh_range *range, int64_t side,
                                   int64_t *low, int64_t *high)
{
    *low = range->low > 0 ? (int64_t)range->low : 0;
    *high = range->high < 0 ? 0 : (int64_t)range->high + 1;
    *high = *high < side ? *high : side;
}

/* The triangle that a row is of: the last one whose first row is not above it. */
VXD_HD uint32_t vxd_svdag_mesh_find(const struct vxd_svdag_mesh_work *work, uint32_t row)
{
    uint32_t low = 0;
    uint32_t high = work->n_items;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (work->items[middle].first_row <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Returns how many voxels row i sets, and writes them from place `at` on where there are voxels to
 * write to. */
VXD_HD uint32_t vxd_svdag_mesh_row(const struct vxd_svdag_mesh_work *work, uint32_t i,
                                   uint32_t at)
{
    const struct vxd_svdag_mesh_item *item = &work->items[vxd_svdag_mesh_find(work, i)];
    const int64_t row = (int64_t)item->low_row + (i - item->first_row);
    struct vxd_svdag_mesh_range range_u, range_w;
    int64_t voxel[3], u, u_end;
    uint32_t n = 0;

    vxd_svdag_mesh_slab(item, row, &range_u, &range_w);
    vxd_svdag_mesh_indices(&range_u, work->side, &u, &u_end);
    for (; u < u_end; u++) {
        struct vxd_svdag_mesh_range range = range_w;
        int64_t w, w_end;

        if (item->has_plane) {
            vxd_svdag_mesh_narrow(item, u, row, &range);
        }
        vxd_svdag_mesh_indices(&range, work->side, &w, &w_end);
        for (; w < w_end; w++) {
            voxel[item->u] = u;
            voxel[item->v] = row;
            voxel[item->w] = w;
            if (!vxd_svdag_mesh_sets(item, voxel, work->rule)) {
                continue;
            }
            if (work->voxels != NULL) {
                const uint64_t place = (uint64_t)at + n;

                for (int k = 0; k < 3; k++) {
                    work->voxels[3 * place + (uint64_t)k] = (int32_t)voxel[k];
                }
                if (work->values != NULL) {
                    work->values[place] = item->value;
                }
            }
            n++;
        }
    }
    return n;
}

#endif
