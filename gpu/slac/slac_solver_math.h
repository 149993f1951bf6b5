// SPDX-License-Identifier: Apache-2.0
/* The arithmetic of a Gauss-Newton step, the same bits on both backends: the loss, rotations of control
 * points, the normal equations times a vector, the blocks of their diagonal, the step itself. */
#ifndef VXD_GPU_SLAC_SLAC_SOLVER_MATH_H
#define VXD_GPU_SLAC_SLAC_SOLVER_MATH_H

#include "gpu/slac/slac_math.h"

/* ---- The loss ---- */

VXD_HD void vxd_slac_strip_loss_one(const struct vxd_slac_state *s, size_t i)
{
    const struct vxd_slac_range *strip = &s->strips[i];
    double sum = 0;

    for (size_t k = 0; k < strip->n; k++) {
        size_t point = strip->first + k;
        const double *at = s->placed + 3 * point;

        for (uint32_t l = s->link_firsts[point]; l < s->link_firsts[point + 1]; l++) {
            const struct vxd_slac_link *link = &s->links[l];
            const double *to = s->placed + 3 * (size_t)link->other;
            double d[3] = {at[0] - to[0], at[1] - to[1], at[2] - to[2]};

            if (s->is_plane != 0) {
                double along = (double)link->normal[0] * d[0] +
                               (double)link->normal[1] * d[1] +
                               (double)link->normal[2] * d[2];

                sum += along * along;
            } else {
                double weight = (double)link->normal[0];

                sum += weight * weight * (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
            }
        }
    }
    s->strip_losses[i] = sum / 2; /* each pair is seen from both sides */
}

/* The step to neighbour `column` of a control point, in cells: VXD_NEIGHBOURS_6. */
VXD_HD double vxd_slac_ring_sign(int column)
{
    return column % 2 == 0 ? -1 : 1;
}

/* (c_v - c_u) for the neighbour v in `column` of u. */
VXD_HD void vxd_slac_ring_edge(const struct vxd_slac_state *s, size_t u, size_t v,
                               int column, double out[3])
{
    for (int a = 0; a < 3; a++) {
        out[a] = (double)s->offsets[3 * v + (size_t)a] -
                 (double)s->offsets[3 * u + (size_t)a] +
                 (a == column / 2 ? vxd_slac_ring_sign(column) * s->cell_m : 0);
    }
}

VXD_HD void vxd_slac_node_rotation(const struct vxd_slac_state *s, size_t u, double r[9])
{
    const float *stored = s->rotations + 4 * u;
    double q[4] = {(double)stored[0], (double)stored[1], (double)stored[2],
                   (double)stored[3]};
    const double none[3] = {0, 0, 0};

    vxd_slac_turn(none, q);
    vxd_slac_rotation_of(q, r);
}

VXD_HD void vxd_slac_node_loss_one(const struct vxd_slac_state *s, size_t u)
{
    double r[9];
    double sum = 0;

    vxd_slac_node_rotation(s, u, r);
    for (int column = 0; column < 6; column++) {
        int32_t v = s->node_ring[6 * u + (size_t)column];
        double step = vxd_slac_ring_sign(column) * s->cell_m;
        double edge[3];

        if (v < 0) {
            continue;
        }
        vxd_slac_ring_edge(s, u, (size_t)v, column, edge);
        for (int a = 0; a < 3; a++) {
            double d = edge[a] - r[3 * a + column / 2] * step;

            sum += d * d;
        }
    }
    s->node_losses[u] = s->lambda * sum;
}

/* R_u of a control point. */
VXD_HD void vxd_slac_turn_one(const struct vxd_slac_state *s, size_t u)
{
    float *stored = s->rotations + 4 * u;
    double q[4] = {(double)stored[0], (double)stored[1], (double)stored[2],
                   (double)stored[3]};
    double sums[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};

    for (int column = 0; column < 6; column++) {
        int32_t v = s->node_ring[6 * u + (size_t)column];
        double step = vxd_slac_ring_sign(column) * s->cell_m;
        double edge[3];

        if (v < 0) {
            continue;
        }
        vxd_slac_ring_edge(s, u, (size_t)v, column, edge);
        for (int a = 0; a < 3; a++) { /* edge times (v - u) transposed */
            sums[3 * a + column / 2] += edge[a] * step;
        }
    }
    vxd_slac_polar(sums, q);
    for (int a = 0; a < 4; a++) {
        stored[a] = (float)q[a];
    }
}

/* ---- The normal equations times a vector ---- */

/* How a point is displaced by the unknowns p. */
VXD_HD void vxd_slac_displace_one(const struct vxd_slac_state *s, size_t i)
{
    size_t fragment = (size_t)s->fragment[i];
    const double *pose = s->poses + 12 * fragment;
    const double *by = s->p + 3 * s->n_nodes + 6 * fragment;
    double local[3] = {0, 0, 0};
    double turned[3];
    double moved[3];

    if (s->is_rigid == 0) {
        const int32_t *nodes = s->cell_nodes + 8 * (size_t)s->cell[i];
        double weights[8];

        vxd_slac_weights(s->part + 3 * i, weights);
        for (int k = 0; k < 8; k++) {
            const double *x = s->p + 3 * (size_t)nodes[k];

            local[0] += weights[k] * x[0];
            local[1] += weights[k] * x[1];
            local[2] += weights[k] * x[2];
        }
    }
    vxd_slac_rotate(pose, local, moved);
    vxd_slac_cross(by + 3, s->placed + 3 * i, turned);
    for (int a = 0; a < 3; a++) {
        s->displaced[3 * i + (size_t)a] = moved[a] + turned[a] + by[a];
    }
}

/* What its pairs pull at a point with, where points have moved by d. */
VXD_HD void vxd_slac_force(const struct vxd_slac_state *s, const double *d, size_t i)
{
    const double *pose = s->poses + 12 * (size_t)s->fragment[i];
    const double at[3] = {d[3 * i], d[3 * i + 1], d[3 * i + 2]};
    double sum[3] = {0, 0, 0};

    for (uint32_t l = s->link_firsts[i]; l < s->link_firsts[i + 1]; l++) {
        const struct vxd_slac_link *link = &s->links[l];
        const double *to = d + 3 * (size_t)link->other;
        double x = at[0] - to[0];
        double y = at[1] - to[1];
        double z = at[2] - to[2];

        if (s->is_plane != 0) {
            double along = (double)link->normal[0] * x + (double)link->normal[1] * y +
                           (double)link->normal[2] * z;

            x = along * (double)link->normal[0];
            y = along * (double)link->normal[1];
            z = along * (double)link->normal[2];
        } else {
            double weight = (double)link->normal[0] * (double)link->normal[0];

            x *= weight;
            y *= weight;
            z *= weight;
        }
        sum[0] += x;
        sum[1] += y;
        sum[2] += z;
    }
    for (int a = 0; a < 3; a++) {
        s->forces[3 * i + (size_t)a] = sum[a];
    }
    vxd_slac_rotate_back(pose, sum, s->pulls + 3 * i);
}

VXD_HD void vxd_slac_force_one(const struct vxd_slac_state *s, size_t i)
{
    vxd_slac_force(s, s->displaced, i);
}

/* The gradient: the same of the points' places. */
VXD_HD void vxd_slac_pull_one(const struct vxd_slac_state *s, size_t i)
{
    vxd_slac_force(s, s->placed, i);
}

/* Sum `column` (corner * 3 + axis) of a chunk. */
VXD_HD void vxd_slac_chunk_one(const struct vxd_slac_state *s, size_t i)
{
    const struct vxd_slac_range *chunk = &s->chunks[i / 24];
    size_t corner = i % 24 / 3;
    size_t axis = i % 3;
    double sum = 0;

    for (size_t k = 0; k < chunk->n; k++) {
        size_t point = s->by_cell[chunk->first + k];
        double weights[8];

        vxd_slac_weights(s->part + 3 * point, weights);
        sum += weights[corner] * s->pulls[3 * point + axis];
    }
    s->chunk_sums[i] = sum;
}

/* All sums of a chunk at once, as the CPU makes them: the same additions. */
VXD_HD void vxd_slac_chunk_all(const struct vxd_slac_state *s, size_t i)
{
    const struct vxd_slac_range *chunk = &s->chunks[i];
    double *out = s->chunk_sums + 24 * i;

    for (int k = 0; k < 24; k++) {
        out[k] = 0;
    }
    for (size_t k = 0; k < chunk->n; k++) {
        size_t point = s->by_cell[chunk->first + k];
        const double *pull = s->pulls + 3 * point;
        double weights[8];

        vxd_slac_weights(s->part + 3 * point, weights);
        for (int c = 0; c < 8; c++) {
            out[3 * (size_t)c] += weights[c] * pull[0];
            out[3 * (size_t)c + 1] += weights[c] * pull[1];
            out[3 * c + 2] += weights[c] * pull[2];
        }
    }
}

/* Sum `column` of a strip: forces, then their moments about the map's middle. */
VXD_HD void vxd_slac_strip_one(const struct vxd_slac_state *s, size_t i)
{
    const struct vxd_slac_range *strip = &s->strips[i / 6];
    size_t column = i % 6;
    double sum = 0;

    for (size_t k = 0; k < strip->n; k++) {
        size_t point = strip->first + k;
        const double *force = s->forces + 3 * point;

        if (column < 3) {
            sum += force[column];
        } else {
            const double *at = s->placed + 3 * point;
            size_t a = (column - 3 + 1) % 3;
            size_t b = (column - 3 + 2) % 3;

            sum += at[a] * force[b] - at[b] * force[a];
        }
    }
    s->strip_sums[i] = sum;
}

/* Sum of the chunks around a control point, of one axis. */
VXD_HD double vxd_slac_around(const struct vxd_slac_state *s, size_t node, size_t axis)
{
    double sum = 0;

    for (size_t k = 0; k < 8; k++) {
        int32_t cell = s->node_cells[8 * node + k];

        for (uint32_t c = cell >= 0 ? s->cell_chunks[cell] : 0;
             cell >= 0 && c < s->cell_chunks[cell + 1]; c++) {
            sum += s->chunk_sums[24 * (size_t)c + 3 * k + axis];
        }
    }
    return sum;
}

VXD_HD double vxd_slac_of_fragment(const struct vxd_slac_state *s, size_t fragment,
                                   size_t column)
{
    double sum = 0;

    for (uint32_t k = s->fragment_strips[fragment]; k < s->fragment_strips[fragment + 1];
         k++) {
        sum += s->strip_sums[6 * (size_t)k + column];
    }
    return sum;
}

/* Component i of the matrix times p. The first pose does not move. */
VXD_HD void vxd_slac_product_one(const struct vxd_slac_state *s, size_t i)
{
    size_t n = 3 * s->n_nodes;

    if (i < n) {
        size_t node = i / 3;
        double sum = vxd_slac_around(s, node, i % 3) + s->damping[node] * s->p[i];

        for (size_t column = 0; column < 6; column++) {
            int32_t v = s->node_ring[6 * node + column];

            if (v >= 0) {
                sum += 2 * s->lambda * (s->p[i] - s->p[3 * (size_t)v + i % 3]);
            }
        }
        s->q[i] = sum;
    } else {
        size_t fragment = (i - n) / 6;

        s->q[i] = fragment > 0 ? vxd_slac_of_fragment(s, fragment, (i - n) % 6) : 0;
    }
}

/* Component i of the negative gradient, of half the loss. */
VXD_HD void vxd_slac_descent_one(const struct vxd_slac_state *s, size_t i)
{
    size_t n = 3 * s->n_nodes;
    double sum;

    if (i < n) {
        size_t u = i / 3;
        size_t axis = i % 3;
        double own[9];

        sum = -vxd_slac_around(s, u, axis);
        vxd_slac_node_rotation(s, u, own);
        for (int column = 0; column < 6; column++) {
            int32_t v = s->node_ring[6 * u + (size_t)column];
            double step = vxd_slac_ring_sign(column) * s->cell_m;
            double edge[3];
            double other[9];

            if (v >= 0) {
                vxd_slac_ring_edge(s, u, (size_t)v, column, edge);
                vxd_slac_node_rotation(s, (size_t)v, other);
                sum += s->lambda *
                       (2 * edge[axis] - (own[3 * axis + (size_t)(column / 2)] +
                                          other[3 * axis + (size_t)(column / 2)]) *
                                             step);
            }
        }
    } else {
        size_t fragment = (i - n) / 6;

        sum = fragment > 0 ? -vxd_slac_of_fragment(s, fragment, (i - n) % 6) : 0;
    }
    s->r[i] = sum;
}

/* ---- Blocks of the diagonal ---- */

/* Sums of W over a point's pairs: xx xy xz yy yz zz in the map's frame, then the fragment's. */
VXD_HD void vxd_slac_block_one(const struct vxd_slac_state *s, size_t i)
{
    const double *pose = s->poses + 12 * (size_t)s->fragment[i];
    double m[6] = {0, 0, 0, 0, 0, 0};
    double half[9];
    double *out = s->blocks + 12 * i;

    for (uint32_t l = s->link_firsts[i]; l < s->link_firsts[i + 1]; l++) {
        double x = (double)s->links[l].normal[0];
        double y = (double)s->links[l].normal[1];
        double z = (double)s->links[l].normal[2];

        if (s->is_plane != 0) {
            m[0] += x * x;
            m[1] += x * y;
            m[2] += x * z;
            m[3] += y * y;
            m[4] += y * z;
            m[5] += z * z;
        } else {
            m[0] += x * x;
            m[3] += x * x;
            m[5] += x * x;
        }
    }
    for (int k = 0; k < 6; k++) {
        out[k] = m[k];
    }
    for (int a = 0; a < 3; a++) { /* M R */
        const double row[3] = {a == 0   ? m[0]
                               : a == 1 ? m[1]
                                        : m[2],
                               a == 0   ? m[1]
                               : a == 1 ? m[3]
                                        : m[4],
                               a == 0   ? m[2]
                               : a == 1 ? m[4]
                                        : m[5]};

        for (int b = 0; b < 3; b++) {
            half[3 * a + b] =
                row[0] * pose[b] + row[1] * pose[3 + b] + row[2] * pose[6 + b];
        }
    }
    for (int a = 0, k = 6; a < 3; a++) { /* R^T (M R) */
        for (int b = a; b < 3; b++, k++) {
            out[k] =
                pose[a] * half[b] + pose[3 + a] * half[3 + b] + pose[6 + a] * half[6 + b];
        }
    }
}

/* Sum `column` (corner * 6 + element) of a chunk's blocks. */
VXD_HD void vxd_slac_chunk_block_one(const struct vxd_slac_state *s, size_t i)
{
    const struct vxd_slac_range *chunk = &s->chunks[i / 48];
    size_t corner = i % 48 / 6;
    double sum = 0;

    for (size_t k = 0; k < chunk->n; k++) {
        size_t point = s->by_cell[chunk->first + k];
        double weights[8];

        vxd_slac_weights(s->part + 3 * point, weights);
        sum += weights[corner] * weights[corner] * s->blocks[12 * point + 6 + i % 6];
    }
    s->chunk_blocks[i] = sum;
}

/* Adds J^T M J of a point, J = (1, -[at]x), to the 21 elements of its upper triangle. */
VXD_HD void vxd_slac_add_block(const double m[6], const double at[3], double sums[21])
{
    const double columns[3][3] = {
        {m[0], m[1], m[2]}, {m[1], m[3], m[4]}, {m[2], m[4], m[5]}};
    double moved[3][3]; /* M times e x at, for the three axes e */
    int k = 0;

    for (int a = 0; a < 3; a++) {
        moved[0][a] = at[1] * columns[2][a] - at[2] * columns[1][a];
        moved[1][a] = at[2] * columns[0][a] - at[0] * columns[2][a];
        moved[2][a] = at[0] * columns[1][a] - at[1] * columns[0][a];
    }
    for (int a = 0; a < 3; a++) {
        for (int b = a; b < 3; b++) {
            sums[k++] += columns[b][a];
        }
        for (int b = 0; b < 3; b++) {
            sums[k++] += moved[b][a];
        }
    }
    for (int a = 0; a < 3; a++) {
        int c = (a + 1) % 3;
        int d = (a + 2) % 3;

        for (int b = a; b < 3; b++) { /* (e_a x at) . (M (e_b x at)) */
            sums[k++] += at[c] * moved[b][d] - at[d] * moved[b][c];
        }
    }
}

VXD_HD void vxd_slac_strip_block_one(const struct vxd_slac_state *s, size_t i)
{
    const struct vxd_slac_range *strip = &s->strips[i];
    double sums[21];

    for (int k = 0; k < 21; k++) {
        sums[k] = 0;
    }
    for (size_t k = 0; k < strip->n; k++) {
        size_t point = strip->first + k;

        vxd_slac_add_block(s->blocks + 12 * point, s->placed + 3 * point, sums);
    }
    for (size_t k = 0; k < 21; k++) {
        s->strip_blocks[21 * i + k] = sums[k];
    }
}

/* All sums of a chunk's blocks, as the CPU makes them. */
VXD_HD void vxd_slac_chunk_block_all(const struct vxd_slac_state *s, size_t i)
{
    const struct vxd_slac_range *chunk = &s->chunks[i];
    double *out = s->chunk_blocks + 48 * i;

    for (int k = 0; k < 48; k++) {
        out[k] = 0;
    }
    for (size_t k = 0; k < chunk->n; k++) {
        size_t point = s->by_cell[chunk->first + k];
        const double *m = s->blocks + 12 * point + 6;
        double weights[8];

        vxd_slac_weights(s->part + 3 * point, weights);
        for (int c = 0; c < 8; c++) {
            double w = weights[c] * weights[c];

            for (int e = 0; e < 6; e++) {
                out[6 * c + e] += w * m[e];
            }
        }
    }
}

/* Inverts a symmetric matrix of n <= 6 rows whose eigenvalues are above 0, by Cholesky; where one is
 * not, its row counts as the identity's. */
VXD_HD void vxd_slac_invert(double *a, size_t n, double *out)
{
    double l[36] = {0};
    double least = 0;

    for (size_t i = 0; i < n; i++) {
        least = a[n * i + i] > least ? a[n * i + i] : least;
    }
    least = least * 1e-12 + 1e-300;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = a[n * i + j];

            for (size_t k = 0; k < j; k++) {
                sum -= l[6 * i + k] * l[6 * j + k];
            }
            if (i == j) {
                l[6 * i + i] = sqrt(sum > least ? sum : least);
            } else {
                l[6 * i + j] = sum / l[6 * j + j];
            }
        }
    }
    for (size_t c = 0; c < n; c++) { /* a column of the inverse after the other */
        double y[6];

        for (size_t i = 0; i < n; i++) {
            double sum = i == c ? 1 : 0;

            for (size_t k = 0; k < i; k++) {
                sum -= l[6 * i + k] * y[k];
            }
            y[i] = sum / l[6 * i + i];
        }
        for (size_t i = n; i-- > 0;) {
            double sum = y[i];

            for (size_t k = i + 1; k < n; k++) {
                sum -= l[6 * k + i] * y[k];
            }
            y[i] = sum / l[6 * i + i];
        }
        for (size_t i = 0; i < n; i++) {
            out[n * i + c] = y[i];
        }
    }
}

/* Inverse block of control point or, behind those, of pose i; the damping of a control point. */
VXD_HD void vxd_slac_inverse_one(const struct vxd_slac_state *s, size_t i)
{
    if (i < s->n_nodes) {
        double m[6] = {0, 0, 0, 0, 0, 0};
        double a[9] = {0};
        double degree = 0;
        double damping;

        for (size_t k = 0; k < 8; k++) {
            int32_t cell = s->node_cells[8 * i + k];

            for (uint32_t c = cell >= 0 ? s->cell_chunks[cell] : 0;
                 cell >= 0 && c < s->cell_chunks[cell + 1]; c++) {
                for (size_t e = 0; e < 6; e++) {
                    m[e] += s->chunk_blocks[48 * (size_t)c + 6 * k + e];
                }
            }
        }
        for (size_t k = 0; k < 6; k++) {
            degree += s->node_ring[6 * i + k] >= 0 ? 2 * s->lambda : 0;
        }
        damping = VXD_SLAC_DAMPING * ((m[0] + m[3] + m[5]) / 3 + degree);
        s->damping[i] = damping;
        degree += damping;
        a[0] = m[0] + degree;
        a[1] = a[3] = m[1];
        a[2] = a[6] = m[2];
        a[4] = m[3] + degree;
        a[5] = a[7] = m[4];
        a[8] = m[5] + degree;
        vxd_slac_invert(a, 3, s->inverses + 9 * i);
    } else {
        size_t fragment = i - s->n_nodes;
        double a[36] = {0};

        for (size_t row = 0, e = 0; row < 6; row++) {
            for (size_t column = row; column < 6; column++, e++) {
                double sum = 0;

                for (uint32_t k = s->fragment_strips[fragment];
                     k < s->fragment_strips[fragment + 1]; k++) {
                    sum += s->strip_blocks[21 * (size_t)k + e];
                }
                a[6 * row + column] = sum;
                a[6 * column + row] = sum;
            }
        }
        vxd_slac_invert(a, 6, s->inverses + 9 * s->n_nodes + 36 * fragment);
    }
}

/* Component i of the inverse blocks times r. */
VXD_HD double vxd_slac_precondition(const struct vxd_slac_state *s, size_t i)
{
    size_t n = 3 * s->n_nodes;
    double sum = 0;

    if (i < n) {
        const double *row = s->inverses + 3 * i; /* 9 a control point */
        const double *r = s->r + i / 3 * 3;

        sum = row[0] * r[0] + row[1] * r[1] + row[2] * r[2];
    } else {
        const double *row = s->inverses + 9 * s->n_nodes + 6 * (i - n);
        const double *r = s->r + n + (i - n) / 6 * 6;

        for (int k = 0; k < 6; k++) {
            sum += row[k] * r[k];
        }
    }
    return sum;
}

/* ---- After the solver ---- */

VXD_HD void vxd_slac_move_node_one(const struct vxd_slac_state *s, size_t i)
{
    s->offsets[i] = (float)((double)s->offsets[i] + s->x[i]);
}

/* How much longer the edges of a control point are than they were, summed. */
VXD_HD void vxd_slac_stretch_one(const struct vxd_slac_state *s, size_t u)
{
    double r[9];
    double sum = 0;

    vxd_slac_node_rotation(s, u, r);
    for (int column = 0; column < 6; column++) {
        int32_t v = s->node_ring[6 * u + (size_t)column];
        double step = vxd_slac_ring_sign(column) * s->cell_m;
        double edge[3];

        if (v < 0) {
            continue;
        }
        vxd_slac_ring_edge(s, u, (size_t)v, column, edge);
        for (int a = 0; a < 3; a++) {
            sum += edge[a] * r[3 * a + column / 2] / step;
        }
    }
    s->node_losses[u] = sum;
}

/* Divides the scene by s->scale: control points, then poses. */
VXD_HD void vxd_slac_scale_node_one(const struct vxd_slac_state *s, size_t i)
{
    double at = (double)s->node_keys[i] * s->cell_m;

    s->offsets[i] = (float)((at + (double)s->offsets[i]) / s->scale - at);
}

VXD_HD void vxd_slac_scale_pose_one(const struct vxd_slac_state *s, size_t i)
{
    for (int a = 0; a < 3; a++) {
        s->poses[12 * i + 9 + (size_t)a] /= s->scale;
    }
}

/* T <- exp(x) T, to first order, with an exact rotation. */
VXD_HD void vxd_slac_move_pose_one(const struct vxd_slac_state *s, size_t i)
{
    const double *x = s->x + 3 * s->n_nodes + 6 * i;
    double *pose = s->poses + 12 * i;
    double q[4] = {0, 0, 0, 1};
    double r[9];
    double old[12];

    vxd_slac_turn(x + 3, q);
    vxd_slac_rotation_of(q, r);
    for (int k = 0; k < 12; k++) {
        old[k] = pose[k];
    }
    for (int a = 0; a < 3; a++) {
        for (int b = 0; b < 3; b++) {
            pose[3 * a + b] = r[3 * (size_t)a] * old[b] +
                              r[3 * (size_t)a + 1] * old[3 + b] +
                              r[3 * (size_t)a + 2] * old[6 + b];
        }
        pose[9 + a] = r[3 * (size_t)a] * old[9] + r[3 * (size_t)a + 1] * old[10] +
                      r[3 * (size_t)a + 2] * old[11] + x[a];
    }
}

#endif
