// SPDX-License-Identifier: Apache-2.0
/* Arithmetic of odometry, the same bits on both backends: voxels of points, the nearest point, planes,
 * rows of the normal equations, their sums, and one Gauss-Newton step.
 *
 * Points are relative to the low corner of a base voxel near the sensor, so that float32 is exact
 * enough wherever the sensor is. T moves a scan's points there. A row is the derivative of a residual
 * with respect to x = (translation, rotation): the pose turns about the sensor by exp(rotation), and
 * then moves. */
#ifndef VXD_GPU_ODOMETRY_ODOMETRY_MATH_H
#define VXD_GPU_ODOMETRY_ODOMETRY_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/hash/hash_math.h"
#include "gpu/odometry/odometry.h"

VXD_HD float vxd_odometry_sqrtf(float a)
{
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(a);
#else
    return sqrtf(a);
#endif
}

VXD_HD double vxd_odometry_subd(double a, double b)
{
    return vxd_addd(a, -b);
}

VXD_HD float vxd_odometry_dot(const float a[3], const float b[3])
{
    return vxd_addf(vxd_addf(vxd_mulf(a[0], b[0]), vxd_mulf(a[1], b[1])),
                    vxd_mulf(a[2], b[2]));
}

VXD_HD void vxd_odometry_cross(const float a[3], const float b[3], float out[3])
{
    out[0] = vxd_subf(vxd_mulf(a[1], b[2]), vxd_mulf(a[2], b[1]));
    out[1] = vxd_subf(vxd_mulf(a[2], b[0]), vxd_mulf(a[0], b[2]));
    out[2] = vxd_subf(vxd_mulf(a[0], b[1]), vxd_mulf(a[1], b[0]));
}

/* T: three rows of four, rotation and translation. */
VXD_HD void vxd_odometry_move(const float T[12], const float p[3], float out[3])
{
    for (int i = 0; i < 3; i++) {
        const float *row = T + 4 * (size_t)i;

        out[i] = vxd_addf(vxd_odometry_dot(row, p), row[3]);
    }
}

/* ---- The scan ---- */

/* Whether a point is finite and within the ranges, whose squares are given. */
VXD_HD bool vxd_odometry_is_used(const float p[3], float min2, float max2)
{
    float d2 = vxd_odometry_dot(p, p);

    return d2 >= min2 && d2 <= max2 && d2 > 0;
}

/* No point has this tag, whose components would all be the highest. */
#define VXD_ODOMETRY_NO_TAG (~(uint64_t)0)

/* The voxel of a used point in a grid of the sensor's frame, packed. */
VXD_HD uint64_t vxd_odometry_tag(const float p[3], float inverse_size)
{
    int32_t key[3];
    uint64_t tag;

    for (int i = 0; i < 3; i++) {
        key[i] = (int32_t)floorf(vxd_mulf(p[i], inverse_size));
    }
    (void)vxd_hash_tag3(key, &tag);
    return tag;
}

/* ---- The map ---- */

#define VXD_ODOMETRY_SLOTS VXD_ODOMETRY_MAX_VOXEL_POINTS

/* What a scan is registered against. */
struct vxd_odometry_grid {
    struct vxd_hash_lookup lookup;
    const uint32_t *counts; /* points of each entry */
    const float *points;    /* 3 x VXD_ODOMETRY_SLOTS each: x, y, z from the low corner */
    int32_t base[3];        /* the voxel that positions are relative to */
    float size;
    float inverse_size;
};

/* Voxel of a position, relative to the base, and the position within. */
VXD_HD void vxd_odometry_locate(const struct vxd_odometry_grid *grid, const float q[3],
                                int32_t cell[3], float local[3])
{
    for (int i = 0; i < 3; i++) {
        float whole = floorf(vxd_mulf(q[i], grid->inverse_size));

        cell[i] = (int32_t)whole;
        local[i] = vxd_subf(q[i], vxd_mulf(whole, grid->size));
    }
}

/* Offset of neighbour 0 to 26 on an axis; 13 is the voxel itself. */
VXD_HD int vxd_odometry_offset(int rank, int axis)
{
    return axis == 0 ? rank / 9 - 1 : axis == 1 ? rank / 3 % 3 - 1 : rank % 3 - 1;
}

/* Entry of a neighbour of a cell. */
VXD_HD int32_t vxd_odometry_neighbour(const struct vxd_odometry_grid *grid,
                                      const int32_t cell[3], int rank)
{
    int32_t key[3];
    uint64_t tag;

    for (int i = 0; i < 3; i++) {
        key[i] = grid->base[i] + cell[i] + vxd_odometry_offset(rank, i);
    }
    return vxd_hash_tag3(key, &tag) ? vxd_hash_find3(&grid->lookup, tag) : VXD_NO_ENTRY;
}

/* The square of how near a point of a neighbour can be, less what rounding may change. */
VXD_HD float vxd_odometry_bound(const struct vxd_odometry_grid *grid,
                                const float local[3], int rank)
{
    float sum = 0;

    for (int i = 0; i < 3; i++) {
        int offset = vxd_odometry_offset(rank, i);
        float gap = offset < 0   ? local[i]
                    : offset > 0 ? vxd_subf(grid->size, local[i])
                                 : 0;

        sum = vxd_addf(sum, vxd_mulf(gap, gap));
    }
    return vxd_subf(sum, vxd_mulf(2e-3f, vxd_mulf(grid->size, grid->size)));
}

/* The nearest point so far: the square of its distance, and neighbour * 32 + slot. Of equally near
 * ones the least number wins. */
struct vxd_odometry_match {
    float d2;
    uint32_t id;
};
#define VXD_ODOMETRY_NO_MATCH 0xffffffffu

/* The shift that makes points of a neighbour relative to the position. */
VXD_HD void vxd_odometry_shift(const struct vxd_odometry_grid *grid, const float local[3],
                               int rank, float out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] =
            vxd_subf(vxd_mulf((float)vxd_odometry_offset(rank, i), grid->size), local[i]);
    }
}

VXD_HD float vxd_odometry_distance2(const float *row, int slot, const float shift[3])
{
    float d[3];

    d[0] = vxd_addf(row[slot], shift[0]);
    d[1] = vxd_addf(row[VXD_ODOMETRY_SLOTS + slot], shift[1]);
    d[2] = vxd_addf(row[2 * VXD_ODOMETRY_SLOTS + slot], shift[2]);
    return vxd_odometry_dot(d, d);
}

/* Looks through a neighbour's points; nearer ones than match->d2 count. */
VXD_HD void vxd_odometry_search(const struct vxd_odometry_grid *grid, int32_t entry,
                                const float local[3], int rank,
                                struct vxd_odometry_match *match)
{
    const float *row = grid->points + (size_t)entry * 3 * VXD_ODOMETRY_SLOTS;
    int n = (int)grid->counts[entry];
    float shift[3];

    vxd_odometry_shift(grid, local, rank, shift);
    for (int k = 0; k < n; k++) {
        float d2 = vxd_odometry_distance2(row, k, shift);
        uint32_t id = (uint32_t)(rank * 32 + k);

        if (d2 < match->d2 || (d2 == match->d2 && id < match->id)) {
            match->d2 = d2;
            match->id = id;
        }
    }
}

/* ---- Planes ---- */

enum {
    VXD_ODOMETRY_N_MOMENTS = 10, /* count; sums of x y z, of xx xy xz yy yz zz */
    VXD_ODOMETRY_MIN_PLANE = 6   /* points */
};

/* Adds the points of a neighbour that are within one voxel's edge from a point of the map; `local`
 * is that point in its voxel. */
VXD_HD void vxd_odometry_moments(const struct vxd_odometry_grid *grid, int32_t entry,
                                 const float local[3], int rank,
                                 float out[VXD_ODOMETRY_N_MOMENTS])
{
    const float *row = grid->points + (size_t)entry * 3 * VXD_ODOMETRY_SLOTS;
    float radius2 = vxd_mulf(grid->size, grid->size);
    int n = (int)grid->counts[entry];
    float shift[3];

    vxd_odometry_shift(grid, local, rank, shift);
    for (int k = 0; k < n; k++) {
        float x = vxd_addf(row[k], shift[0]);
        float y = vxd_addf(row[VXD_ODOMETRY_SLOTS + k], shift[1]);
        float z = vxd_addf(row[2 * VXD_ODOMETRY_SLOTS + k], shift[2]);
        float d2 = vxd_addf(vxd_addf(vxd_mulf(x, x), vxd_mulf(y, y)), vxd_mulf(z, z));

        if (d2 <= radius2) {
            out[0] = vxd_addf(out[0], 1);
            out[1] = vxd_addf(out[1], x);
            out[2] = vxd_addf(out[2], y);
            out[3] = vxd_addf(out[3], z);
            out[4] = vxd_addf(out[4], vxd_mulf(x, x));
            out[5] = vxd_addf(out[5], vxd_mulf(x, y));
            out[6] = vxd_addf(out[6], vxd_mulf(x, z));
            out[7] = vxd_addf(out[7], vxd_mulf(y, y));
            out[8] = vxd_addf(out[8], vxd_mulf(y, z));
            out[9] = vxd_addf(out[9], vxd_mulf(z, z));
        }
    }
}

/* Turns rows and columns p and q of a symmetric matrix so that a[p][q] becomes 0, and the columns of
 * its eigenvectors with them. */
VXD_HD void vxd_odometry_jacobi(float a[3][3], float v[3][3], int p, int q)
{
    float apq = a[p][q];
    float theta;
    float t;
    float c;
    float s;

    if (!(apq > 1e-30f || apq < -1e-30f)) {
        return;
    }
    theta = vxd_divf(vxd_subf(a[q][q], a[p][p]), vxd_mulf(2.0f, apq));
    t = vxd_divf(theta >= 0 ? 1.0f : -1.0f,
                 vxd_addf(theta >= 0 ? theta : -theta,
                          vxd_odometry_sqrtf(vxd_addf(vxd_mulf(theta, theta), 1.0f))));
    c = vxd_divf(1.0f, vxd_odometry_sqrtf(vxd_addf(vxd_mulf(t, t), 1.0f)));
    s = vxd_mulf(t, c);
    for (int k = 0; k < 3; k++) {
        float x = a[k][p];
        float y = a[k][q];

        a[k][p] = vxd_subf(vxd_mulf(c, x), vxd_mulf(s, y));
        a[k][q] = vxd_addf(vxd_mulf(s, x), vxd_mulf(c, y));
    }
    for (int k = 0; k < 3; k++) {
        float x = a[p][k];
        float y = a[q][k];

        a[p][k] = vxd_subf(vxd_mulf(c, x), vxd_mulf(s, y));
        a[q][k] = vxd_addf(vxd_mulf(s, x), vxd_mulf(c, y));
    }
    for (int k = 0; k < 3; k++) {
        float x = v[k][p];
        float y = v[k][q];

        v[k][p] = vxd_subf(vxd_mulf(c, x), vxd_mulf(s, y));
        v[k][q] = vxd_addf(vxd_mulf(s, x), vxd_mulf(c, y));
    }
}

/* How points lie: on a plane; scattered, thicker than a third of their width; or nobody knows, since
 * they are few or on a line, as those of one beam are. */
enum vxd_odometry_shape {
    VXD_ODOMETRY_PLANE = 0,
    VXD_ODOMETRY_SCATTERED = 1,
    VXD_ODOMETRY_NO_SHAPE = 2
};

/* The shape of some points from their moments, and the normal of a plane. */
VXD_HD enum vxd_odometry_shape
vxd_odometry_plane(const float moments[VXD_ODOMETRY_N_MOMENTS], float normal[3])
{
    float n = moments[0];
    float mean[3];
    float a[3][3];
    float v[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    int least;
    int most;
    float middle;

    normal[0] = normal[1] = normal[2] = 0;
    if (!(n >= VXD_ODOMETRY_MIN_PLANE)) {
        return VXD_ODOMETRY_NO_SHAPE;
    }
    for (int i = 0; i < 3; i++) {
        mean[i] = vxd_divf(moments[1 + i], n);
    }
    for (int i = 0, at = 4; i < 3; i++) {
        for (int j = i; j < 3; j++, at++) {
            a[i][j] = vxd_subf(vxd_divf(moments[at], n), vxd_mulf(mean[i], mean[j]));
            a[j][i] = a[i][j];
        }
    }
    for (int round = 0; round < 4; round++) {
        vxd_odometry_jacobi(a, v, 0, 1);
        vxd_odometry_jacobi(a, v, 0, 2);
        vxd_odometry_jacobi(a, v, 1, 2);
    }
    least = a[0][0] <= a[1][1] ? 0 : 1;
    least = a[least][least] <= a[2][2] ? least : 2;
    most = a[0][0] > a[1][1] ? 0 : 1;
    most = a[most][most] > a[2][2] ? most : 2;
    if (least == most) {
        return VXD_ODOMETRY_NO_SHAPE;
    }
    middle = a[3 - least - most][3 - least - most];
    for (int i = 0; i < 3; i++) {
        normal[i] = v[i][least];
    }
    if (!(middle >= vxd_mulf(0.02f, a[most][most]) && middle > 0)) {
        return VXD_ODOMETRY_NO_SHAPE;
    }
    return a[least][least] <= vxd_mulf(0.1f, middle) ? VXD_ODOMETRY_PLANE
                                                     : VXD_ODOMETRY_SCATTERED;
}

/* ---- Rows and sums ---- */

/* Sums: the upper triangle of J^T W J by rows, J^T W r, and what the verdict needs. */
enum vxd_odometry_sum {
    VXD_ODOMETRY_SUM_GRADIENT = 21,
    VXD_ODOMETRY_SUM_SQUARES = 27, /* of distances of inliers */
    VXD_ODOMETRY_SUM_INLIERS = 28,
    VXD_ODOMETRY_SUM_PAIRS = 29,  /* points with one near enough */
    VXD_ODOMETRY_SUM_RANGE = 30,  /* of inliers' distances from the sensor */
    VXD_ODOMETRY_SUM_PLANES = 31, /* inliers on planes */
    VXD_ODOMETRY_N_SUMS = 32
};

/* Points are summed in strips: the values of 16 points pairwise, then the strips in double by 32
 * lanes, which are added pairwise, too. This order is what makes sums equal everywhere. */
enum {
    VXD_ODOMETRY_STRIP = 16,
    VXD_ODOMETRY_STRIP_LANES = 32
};

/* The rule of pairs and weights. Of two stages, the first with the adaptive threshold, the second,
 * of planes alone, with that of inliers: far pairs of a first scan would pull at the pose. */
struct vxd_odometry_rule {
    enum vxd_odometry_method method;
    enum vxd_odometry_robust robust;
    float thresholds[2];
    float max_d2[2]; /* pairs are nearer */
    float inlier2;   /* squares of inliers' distances are at most this */
    /* Sums for the verdict: outliers are left out, planes weigh 1, and scattered points hold what they
     * hold at least. */
    int is_last;
};

#define VXD_ODOMETRY_SCATTERED_WEIGHT 0.01f

/* Beside planes, distances to single points weigh this part: the nearest point of a beam's line on the
 * ground moves with the scan and would hold it where it is. */
#define VXD_ODOMETRY_SCATTERED_PART 0.03f
#define VXD_ODOMETRY_NO_SHAPE_PART 0.003f

/* The rows of a strip: up to three a point, plane rows first. */
struct vxd_odometry_rows {
    float row[3][6][VXD_ODOMETRY_STRIP];
    float residual[3][VXD_ODOMETRY_STRIP];
    float weight[VXD_ODOMETRY_STRIP];
    float d2[VXD_ODOMETRY_STRIP]; /* of inliers, else 0 */
    float is_inlier[VXD_ODOMETRY_STRIP];
    float is_pair[VXD_ODOMETRY_STRIP];
    float range[VXD_ODOMETRY_STRIP];    /* of inliers, else 0 */
    float is_plane[VXD_ODOMETRY_STRIP]; /* of inliers, else 0 */
};

VXD_HD float vxd_odometry_weight(enum vxd_odometry_robust robust, float threshold,
                                 float r2)
{
    float ratio = vxd_divf(threshold, vxd_addf(threshold, r2));

    if (robust == VXD_ODOMETRY_HUBER) {
        float r = vxd_odometry_sqrtf(r2);

        return r > threshold ? vxd_divf(threshold, r) : 1.0f;
    }
    return robust == VXD_ODOMETRY_SQUARES ? 1.0f : vxd_mulf(ratio, ratio);
}

/* A point without a pair. */
VXD_HD void vxd_odometry_clear_rows(struct vxd_odometry_rows *rows, int lane)
{
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 6; i++) {
            rows->row[k][i][lane] = 0;
        }
        rows->residual[k][lane] = 0;
    }
    rows->weight[lane] = 0;
    rows->d2[lane] = 0;
    rows->is_inlier[lane] = 0;
    rows->is_pair[lane] = 0;
    rows->range[lane] = 0;
    rows->is_plane[lane] = 0;
}

/* A pair: `arm` is the point from the sensor, `difference` from the map's point to it, in map axes.
 * normal: of a plane, else the distance to the point counts. */
VXD_HD void vxd_odometry_set_rows(const struct vxd_odometry_rule *rule, int stage,
                                  const float arm[3], const float difference[3],
                                  enum vxd_odometry_shape shape, const float normal[3],
                                  struct vxd_odometry_rows *rows, int lane)
{
    bool on_plane = shape == VXD_ODOMETRY_PLANE;
    float distance = on_plane ? vxd_odometry_dot(normal, difference) : 0;
    float r2 = on_plane ? vxd_mulf(distance, distance)
                        : vxd_odometry_dot(difference, difference);
    bool is_inlier = r2 <= rule->inlier2;

    vxd_odometry_clear_rows(rows, lane);
    rows->is_pair[lane] = 1;
    rows->weight[lane] = vxd_odometry_weight(rule->robust, rule->thresholds[stage], r2);
    if (rule->method == VXD_ODOMETRY_POINT_TO_PLANE && !on_plane) {
        rows->weight[lane] =
            vxd_mulf(rows->weight[lane], shape == VXD_ODOMETRY_SCATTERED
                                             ? VXD_ODOMETRY_SCATTERED_PART
                                             : VXD_ODOMETRY_NO_SHAPE_PART);
    }
    if (rule->is_last != 0) {
        rows->weight[lane] = !is_inlier ? 0.0f
                             : on_plane ? 1.0f
                             : shape == VXD_ODOMETRY_SCATTERED
                                 ? VXD_ODOMETRY_SCATTERED_WEIGHT
                                 : 0.0f;
    }
    if (is_inlier) {
        rows->is_inlier[lane] = 1;
        rows->d2[lane] = r2;
        rows->range[lane] = vxd_odometry_sqrtf(vxd_odometry_dot(arm, arm));
        rows->is_plane[lane] = on_plane ? 1.0f : 0.0f;
    }
    if (on_plane) {
        float turned[3];

        vxd_odometry_cross(arm, normal, turned);
        for (int i = 0; i < 3; i++) {
            rows->row[0][i][lane] = normal[i];
            rows->row[0][3 + i][lane] = turned[i];
        }
        rows->residual[0][lane] = distance;
        return;
    }
    for (int k = 0; k < 3; k++) {
        const int next = (k + 1) % 3;
        const int after = (k + 2) % 3;

        rows->row[k][k][lane] = 1;
        rows->row[k][3 + next][lane] = arm[after]; /* arm x e_k */
        rows->row[k][3 + after][lane] = -arm[next];
        rows->residual[k][lane] = difference[k];
    }
}

/* Row and column of a sum of the triangle. */
VXD_HD void vxd_odometry_place(int sum, int *i, int *j)
{
    int row = 0;

    while (sum >= 6 - row) {
        sum -= 6 - row;
        row++;
    }
    *i = row;
    *j = row + sum;
}

/* What lane `lane` adds to a sum. a, b: the row's elements, or its element and the residual. */
VXD_HD float vxd_odometry_term(float weight, float a0, float b0, float a1, float b1,
                               float a2, float b2)
{
    return vxd_mulf(
        weight, vxd_addf(vxd_addf(vxd_mulf(a0, b0), vxd_mulf(a1, b1)), vxd_mulf(a2, b2)));
}

/* One sum of a strip. */
VXD_HD float vxd_odometry_add_strip(const struct vxd_odometry_rows *rows, int sum)
{
    float v[VXD_ODOMETRY_STRIP];

    if (sum < VXD_ODOMETRY_SUM_SQUARES) {
        bool is_gradient = sum >= VXD_ODOMETRY_SUM_GRADIENT;
        int i = sum - VXD_ODOMETRY_SUM_GRADIENT;
        int j = 0;
        const float *b[3];

        if (!is_gradient) {
            vxd_odometry_place(sum, &i, &j);
        }
        for (int k = 0; k < 3; k++) {
            b[k] = is_gradient ? rows->residual[k] : rows->row[k][j];
        }
        VXD_UNROLL
        for (int l = 0; l < VXD_ODOMETRY_STRIP; l++) {
            v[l] = vxd_odometry_term(rows->weight[l], rows->row[0][i][l], b[0][l],
                                     rows->row[1][i][l], b[1][l], rows->row[2][i][l],
                                     b[2][l]);
        }
    } else {
        const float *from = sum == VXD_ODOMETRY_SUM_SQUARES   ? rows->d2
                            : sum == VXD_ODOMETRY_SUM_INLIERS ? rows->is_inlier
                            : sum == VXD_ODOMETRY_SUM_PAIRS   ? rows->is_pair
                            : sum == VXD_ODOMETRY_SUM_RANGE   ? rows->range
                                                              : rows->is_plane;

        VXD_UNROLL
        for (int l = 0; l < VXD_ODOMETRY_STRIP; l++) {
            v[l] = from[l];
        }
    }
    VXD_UNROLL
    for (int half = VXD_ODOMETRY_STRIP / 2; half > 0; half /= 2) {
        VXD_UNROLL
        for (int l = 0; l < VXD_ODOMETRY_STRIP / 2; l++) {
            if (l < half) {
                v[l] = vxd_addf(v[l], v[l + half]);
            }
        }
    }
    return v[0];
}

/* ---- Steps ---- */

/* What a call keeps in device memory; the host reads it at the end. */
struct vxd_odometry_work {
    double pose[12]; /* relative to the base: three rows of four */
    float T[12];     /* the same in float32, for the points */
    double sums[VXD_ODOMETRY_N_SUMS];
    double convergence2;
    double max_step; /* metres; a longer one is a failure */
    double last_step2;
    int32_t n_stages;
    int32_t stage;
    int32_t n_stage_steps;
    int32_t is_done;
    int32_t is_singular;
    int32_t n_iterations;
    uint32_t n_used; /* points within the ranges */
    uint32_t n_map;
    uint32_t n_registered;
    uint32_t n_blocks_done; /* CUDA: of the running step */
};

/* Solves H x = -g by LDL^T; false where H is not positive definite in double. */
VXD_HD bool vxd_odometry_solve(const double *sums, double x[6])
{
    double l[6][6];
    double d[6];
    int at = 0;
    bool is_positive = true;

    for (int i = 0; i < 6; i++) {
        for (int j = i; j < 6; j++) {
            l[j][i] = sums[at++];
        }
    }
    for (int j = 0; j < 6; j++) {
        double whole = l[j][j];
        double inverse;

        d[j] = whole;
        for (int k = 0; k < j; k++) {
            d[j] = vxd_odometry_subd(d[j], vxd_muld(vxd_muld(l[j][k], l[j][k]), d[k]));
        }
        is_positive = is_positive && d[j] > whole * 1e-9 && whole > 0;
        inverse = 1.0 / d[j];
        for (int i = j + 1; i < 6; i++) {
            for (int k = 0; k < j; k++) {
                l[i][j] = vxd_odometry_subd(l[i][j],
                                            vxd_muld(vxd_muld(l[i][k], l[j][k]), d[k]));
            }
            l[i][j] = vxd_muld(l[i][j], inverse);
        }
    }
    for (int i = 0; i < 6; i++) {
        x[i] = -sums[VXD_ODOMETRY_SUM_GRADIENT + i];
        for (int k = 0; k < i; k++) {
            x[i] = vxd_odometry_subd(x[i], vxd_muld(l[i][k], x[k]));
        }
    }
    for (int i = 5; i >= 0; i--) {
        x[i] = x[i] / d[i];
        for (int k = i + 1; k < 6; k++) {
            x[i] = vxd_odometry_subd(x[i], vxd_muld(l[k][i], x[k]));
        }
    }
    return is_positive;
}

/* The rotation of a vector of less than one radian: that of the quaternion (1, w / 2), whose angle
 * is 2 atan(|w| / 2). */
VXD_HD void vxd_odometry_rotation(const double w[3], double out[9])
{
    double x = vxd_muld(w[0], 0.5);
    double y = vxd_muld(w[1], 0.5);
    double z = vxd_muld(w[2], 0.5);
    double xx = vxd_muld(x, x);
    double yy = vxd_muld(y, y);
    double zz = vxd_muld(z, z);
    double s = 2 / vxd_addd(vxd_addd(vxd_addd(xx, yy), zz), 1);

    out[0] = vxd_odometry_subd(1, vxd_muld(s, vxd_addd(yy, zz)));
    out[1] = vxd_muld(s, vxd_odometry_subd(vxd_muld(x, y), z));
    out[2] = vxd_muld(s, vxd_addd(vxd_muld(x, z), y));
    out[3] = vxd_muld(s, vxd_addd(vxd_muld(x, y), z));
    out[4] = vxd_odometry_subd(1, vxd_muld(s, vxd_addd(xx, zz)));
    out[5] = vxd_muld(s, vxd_odometry_subd(vxd_muld(y, z), x));
    out[6] = vxd_muld(s, vxd_odometry_subd(vxd_muld(x, z), y));
    out[7] = vxd_muld(s, vxd_addd(vxd_muld(y, z), x));
    out[8] = vxd_odometry_subd(1, vxd_muld(s, vxd_addd(xx, yy)));
}

/* Turns the pose about the sensor and moves it. */
VXD_HD void vxd_odometry_apply(const double x[6], double pose[12])
{
    double r[9];

    vxd_odometry_rotation(x + 3, r);
    for (int j = 0; j < 3; j++) {
        double column[3] = {pose[j], pose[4 + j], pose[8 + j]};

        for (int i = 0; i < 3; i++) {
            const double *row = r + 3 * (size_t)i;

            pose[4 * i + j] = vxd_addd(
                vxd_addd(vxd_muld(row[0], column[0]), vxd_muld(row[1], column[1])),
                vxd_muld(row[2], column[2]));
        }
    }
    for (int i = 0; i < 3; i++) {
        pose[4 * i + 3] = vxd_addd(pose[4 * i + 3], x[i]);
    }
}

/* Steps to planes are halved after so many of a stage, and again: pairs that change back and forth
 * would make them swing for ever. */
#define VXD_ODOMETRY_WHOLE_STEPS 10

/* One step with the sums in place. */
VXD_HD void vxd_odometry_step(struct vxd_odometry_work *work)
{
    const int n_halved =
        work->n_stages > 1 ? work->n_stage_steps / VXD_ODOMETRY_WHOLE_STEPS : 0;
    const double part = 1.0 / (double)(1 << (n_halved < 20 ? n_halved : 20));
    double x[6];
    double square = 0;

    work->n_iterations++;
    work->n_stage_steps++;
    if (!vxd_odometry_solve(work->sums, x)) {
        work->is_singular = 1;
        return;
    }
    for (int i = 0; i < 6; i++) {
        x[i] = vxd_muld(x[i], part);
        if (!(x[i] > -work->max_step && x[i] < work->max_step) ||
            (i >= 3 && !(x[i] > -1 && x[i] < 1))) {
            work->is_singular = 1; /* NaN, too */
            return;
        }
        square = vxd_addd(square, vxd_muld(x[i], x[i]));
    }
    vxd_odometry_apply(x, work->pose);
    for (int i = 0; i < 12; i++) {
        work->T[i] = (float)work->pose[i];
    }
    work->last_step2 = square;
    if (square < work->convergence2) {
        work->is_done = work->stage + 1 == work->n_stages ? 1 : 0;
        work->stage += work->is_done != 0 ? 0 : 1;
        work->n_stage_steps = 0;
    }
}

/* ---- The map's update ---- */

/* Whether a point may join the others of its voxel: there is capacity, and none is too near. */
VXD_HD bool vxd_odometry_may_join(const float *row, uint32_t count, uint32_t max_points,
                                  float min_d2, const float local[3])
{
    const float shift[3] = {-local[0], -local[1], -local[2]};

    if (count >= max_points) {
        return false;
    }
    for (uint32_t k = 0; k < count; k++) {
        if (vxd_odometry_distance2(row, (int)k, shift) < min_d2) {
            return false;
        }
    }
    return true;
}

VXD_HD void vxd_odometry_join(float *row, uint32_t count, const float local[3])
{
    for (int i = 0; i < 3; i++) {
        row[i * VXD_ODOMETRY_SLOTS + (int)count] = local[i];
    }
}

/* Whether a voxel's centre is farther from the sensor than a distance; `sensor` is in voxels. */
VXD_HD bool vxd_odometry_is_far(const int32_t key[3], const double sensor[3],
                                double max_voxels2)
{
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        double d = vxd_odometry_subd(vxd_addd((double)key[i], 0.5), sensor[i]);

        sum = vxd_addd(sum, vxd_muld(d, d));
    }
    return sum > max_voxels2;
}

#endif
