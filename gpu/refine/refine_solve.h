// SPDX-License-Identifier: Apache-2.0
/* The steps that find light and the albedo at first, and the vectors of the solver, an item each. As in
 * refine_steps.h, every item writes its own rows. */
#ifndef VXD_GPU_REFINE_REFINE_SOLVE_H
#define VXD_GPU_REFINE_REFINE_SOLVE_H

#include "gpu/refine/refine_steps.h"

/* ---- The albedo at first: one for all voxels of a chromaticity ---- */

#define VXD_REFINE_BINS 256
#define VXD_REFINE_MAX_BIN_PARTS 4096
#define VXD_REFINE_BIN_VOXELS 512 /* of a part, about */
#define VXD_REFINE_BIN_LANES 128

/* A bin of chromaticities, 1/32 wide. */
VXD_HD int vxd_refine_bin_of(const vxd_refine_real mean[3])
{
    vxd_refine_real sum = mean[0] + mean[1] + mean[2] + (vxd_refine_real)1e-3;
    int red = (int)(mean[0] / sum * 32) - 4;
    int green = (int)(mean[1] / sum * 32) - 4;

    red = red < 0 ? 0 : (red > 15 ? 15 : red);
    green = green < 0 ? 0 : (green > 15 ? 15 : green);
    return red * 16 + green;
}

struct vxd_refine_bin_call {
    size_t n_parts;
    vxd_refine_real *parts;  /* n_parts x 2 VXD_REFINE_BINS */
    vxd_refine_real *albedo; /* VXD_REFINE_BINS */
    vxd_refine_real unseen;
};

/* Sums of voxels part, part + n_parts, ...: intensity times shading, and its square. */
VXD_HD void vxd_refine_bin_sum_item(const struct vxd_refine_view *view,
                                    const struct vxd_refine_bin_call *call, size_t part)
{
    vxd_refine_real *sums = call->parts + part * 2 * VXD_REFINE_BINS;

    for (int e = 0; e < 2 * VXD_REFINE_BINS; e++) {
        sums[e] = 0;
    }
    for (size_t i = part; i < view->n; i += call->n_parts) {
        const vxd_refine_real *mean = view->mean + 4 * i;
        vxd_refine_real shade = view->nodes[i].shade;

        if (mean[3] >= 0 && shade > 0) {
            int bin = vxd_refine_bin_of(mean);

            sums[2 * (size_t)bin] += mean[3] * shade;
            sums[2 * (size_t)bin + 1] += shade * shade;
        }
    }
}

/* The sums of a bin over parts lane, lane + VXD_REFINE_BIN_LANES, ... */
VXD_HD void vxd_refine_bin_lane(const struct vxd_refine_bin_call *call, size_t bin,
                                size_t lane, double *products, double *squares)
{
    *products = 0;
    *squares = 0;
    for (size_t part = lane; part < call->n_parts; part += VXD_REFINE_BIN_LANES) {
        const vxd_refine_real *sums = call->parts + part * 2 * VXD_REFINE_BINS + 2 * bin;

        *products += (double)sums[0];
        *squares += (double)sums[1];
    }
}

VXD_HD void vxd_refine_bin_end(const struct vxd_refine_bin_call *call, size_t bin,
                               double products, double squares)
{
    call->albedo[bin] = squares > 0.01 && products > 0
                            ? (vxd_refine_real)(products / squares)
                            : call->unseen;
}

/* The albedo of a bin. On a GPU a block sums its lanes. */
VXD_HD void vxd_refine_bin_item(const struct vxd_refine_bin_call *call, size_t bin)
{
    double products[VXD_REFINE_BIN_LANES];
    double squares[VXD_REFINE_BIN_LANES];

    for (size_t lane = 0; lane < VXD_REFINE_BIN_LANES; lane++) {
        vxd_refine_bin_lane(call, bin, lane, &products[lane], &squares[lane]);
    }
    for (size_t half = VXD_REFINE_BIN_LANES / 2; half > 0; half /= 2) {
        for (size_t lane = 0; lane < half; lane++) {
            products[lane] += products[lane + half];
            squares[lane] += squares[lane + half];
        }
    }
    vxd_refine_bin_end(call, bin, products[0], squares[0]);
}

VXD_HD void vxd_refine_albedo_item(const struct vxd_refine_view *view,
                                   const struct vxd_refine_bin_call *call, size_t i)
{
    const vxd_refine_real *mean = view->mean + 4 * i;

    view->state[view->n + i] =
        mean[3] >= 0 ? call->albedo[vxd_refine_bin_of(mean)] : call->unseen;
}

/* ---- Light (setup 9) ---- */

#define VXD_REFINE_LIGHT_MATRIX (36 * 45) /* pairs of corners x pairs of harmonics */
#define VXD_REFINE_LIGHT_SUMS (VXD_REFINE_LIGHT_MATRIX + 72)

/* The number of a pair i <= j of n things. */
VXD_HD int vxd_refine_pair_of(int i, int j, int n)
{
    int low = i < j ? i : j;
    int high = i < j ? j : i;

    return low * n - low * (low - 1) / 2 + high - low;
}

/* Voxels order[begin .. end) of one cube. */
struct vxd_refine_chunk {
    uint32_t cube;
    uint32_t begin;
    uint32_t end;
    uint32_t unused;
};

struct vxd_refine_light_call {
    size_t n_cubes;
    size_t n_corners;
    const uint32_t *order;
    const struct vxd_refine_chunk *chunks;
    const uint32_t *first_chunk; /* n_cubes + 1 */
    vxd_refine_real *chunk_sums; /* x VXD_REFINE_LIGHT_SUMS */
    vxd_refine_real *cube_sums;  /* likewise */
    const int32_t *owners; /* 8 a corner: the cube of which it is corner 0 to 7, or -1 */
    const int32_t *around; /* 6 a corner */
    const int32_t *corner_keys; /* 3 a corner */
    const int32_t *cube_keys;   /* 3 a cube */
    int32_t *keys;              /* out of the steps that make keys */
    uint64_t *sort_keys;
    uint32_t *begins;
    vxd_refine_real *products; /* 8 a row: what each cube adds to it */
    vxd_refine_real smooth;
    vxd_refine_real damping;
};

VXD_HD void vxd_refine_cube_item(const struct vxd_refine_view *view, int32_t *keys,
                                 size_t i)
{
    for (int k = 0; k < 3; k++) {
        keys[3 * i + (size_t)k] =
            view->cube == 0
                ? 0
                : (int32_t)floor(
                      (view->cube_at[k] +
                       (double)(view->keys[3 * i + (size_t)k] - view->base[k]) + 0.5) /
                      view->cube);
    }
}

/* The corners of a cube, and the cubes of a corner: of which it is corner 0 to 7. */
VXD_HD void vxd_refine_corner_item(const struct vxd_refine_light_call *call, size_t item)
{
    for (size_t k = 0; k < 3; k++) {
        call->keys[3 * item + k] =
            call->cube_keys[3 * (item / 8) + k] + (int32_t)(item % 8 >> (2 - k) & 1);
    }
}

VXD_HD void vxd_refine_owner_item(const struct vxd_refine_light_call *call, size_t item)
{
    for (size_t k = 0; k < 3; k++) {
        call->keys[3 * item + k] =
            call->corner_keys[3 * (item / 8) + k] - (int32_t)(item % 8 >> (2 - k) & 1);
    }
}

VXD_HD void vxd_refine_sort_key_item(const struct vxd_refine_view *view,
                                     const struct vxd_refine_light_call *call,
                                     uint32_t *order, size_t i)
{
    call->sort_keys[i] = (uint64_t)view->cells[i];
    order[i] = (uint32_t)i;
}

VXD_HD void vxd_refine_begin_of_item(const struct vxd_refine_light_call *call, size_t k)
{
    if (k == 0 || call->sort_keys[k] != call->sort_keys[k - 1]) {
        call->begins[call->sort_keys[k]] = (uint32_t)k;
    }
}

/* What a voxel adds to the light's equations: factors of harmonics and corners, and the intensity;
 * zeros where it is not seen. */
VXD_HD void vxd_refine_light_row(const struct vxd_refine_view *view, size_t i,
                                 vxd_refine_real harmonics[9], vxd_refine_real corners[8],
                                 vxd_refine_real *intensity)
{
    const struct vxd_refine_node *node = &view->nodes[i];
    vxd_refine_real at[3];

    vxd_refine_place(view, i, at);
    for (int c = 0; c < 8; c++) {
        corners[c] = view->cube == 0 ? (c == 0 ? (vxd_refine_real)1 : (vxd_refine_real)0)
                                     : vxd_refine_corner_weight(at, c);
    }
    *intensity = view->mean[4 * i + 3];
    if (*intensity < 0 || !(node->inverse > 0)) {
        for (int k = 0; k < 9; k++) {
            harmonics[k] = 0;
        }
        return;
    }
    vxd_refine_harmonics(node->normal, harmonics);
    for (int k = 0; k < 9; k++) {
        harmonics[k] *= view->state[view->n + i];
    }
}

/* The sums of a chunk, voxel after voxel. On a GPU the threads of a block each make some of them. */
VXD_HD void vxd_refine_light_chunk_item(const struct vxd_refine_view *view,
                                        const struct vxd_refine_light_call *call,
                                        size_t item)
{
    const struct vxd_refine_chunk *chunk = &call->chunks[item];
    vxd_refine_real *sums = call->chunk_sums + item * VXD_REFINE_LIGHT_SUMS;

    for (int e = 0; e < VXD_REFINE_LIGHT_SUMS; e++) {
        sums[e] = 0;
    }
    for (uint32_t k = chunk->begin; k < chunk->end; k++) {
        vxd_refine_real harmonics[9];
        vxd_refine_real corners[8];
        vxd_refine_real products[45] = {0};
        vxd_refine_real intensity;
        int p = 0;

        vxd_refine_light_row(view, call->order[k], harmonics, corners, &intensity);
        for (int a = 0, q = 0; a < 9; a++) {
            for (int b = a; b < 9; b++) {
                products[q++] = harmonics[a] * harmonics[b];
            }
        }
        for (int a = 0; a < 8; a++) {
            for (int b = a; b < 8; b++, p++) {
                vxd_refine_real pair = corners[a] * corners[b];

                for (int q = 0; q < 45; q++) {
                    sums[p * 45 + q] += pair * products[q];
                }
            }
            for (int q = 0; q < 9; q++) {
                sums[VXD_REFINE_LIGHT_MATRIX + 9 * a + q] +=
                    corners[a] * (harmonics[q] * intensity);
            }
        }
    }
}

VXD_HD void vxd_refine_cube_sum_item(const struct vxd_refine_light_call *call,
                                     size_t item)
{
    size_t cube = item / VXD_REFINE_LIGHT_SUMS;
    size_t e = item % VXD_REFINE_LIGHT_SUMS;
    vxd_refine_real sum = 0;

    for (uint32_t k = call->first_chunk[cube]; k < call->first_chunk[cube + 1]; k++) {
        sum += call->chunk_sums[(size_t)k * VXD_REFINE_LIGHT_SUMS + e];
    }
    call->cube_sums[item] = sum;
}

/* What cube item % 8 of a corner adds to row item / 8 of the light's equations times p. */
VXD_HD void vxd_refine_light_matrix_item(const struct vxd_refine_view *view,
                                         const struct vxd_refine_light_call *call,
                                         const vxd_refine_real *p, size_t item)
{
    size_t corner = item / 8 / 9;
    int k = (int)(item / 8 % 9);
    int s = (int)(item % 8);
    int32_t cube = call->owners[8 * corner + (size_t)s];
    vxd_refine_real sum = 0;

    for (int c = 0; cube >= 0 && c < 8; c++) {
        const vxd_refine_real *sums = call->cube_sums +
                                      (size_t)cube * VXD_REFINE_LIGHT_SUMS +
                                      (size_t)vxd_refine_pair_of(s, c, 8) * 45;
        const vxd_refine_real *other =
            p + 9 * (size_t)view->corners[8 * (size_t)cube + (size_t)c];

        for (int l = 0; l < 9; l++) {
            sum += sums[vxd_refine_pair_of(k, l, 9)] * other[l];
        }
    }
    call->products[item] = sum;
}

/* What the cubes of a corner add to a right side (harmonic k), or to a row's diagonal. */
VXD_HD vxd_refine_real vxd_refine_light_sum(const struct vxd_refine_light_call *call,
                                            size_t corner, int k, int is_diagonal)
{
    vxd_refine_real sum = 0;

    for (int s = 0; s < 8; s++) {
        int32_t cube = call->owners[8 * corner + (size_t)s];
        int e = is_diagonal
                    ? vxd_refine_pair_of(s, s, 8) * 45 + vxd_refine_pair_of(k, k, 9)
                    : VXD_REFINE_LIGHT_MATRIX + 9 * s + k;

        if (cube >= 0) {
            sum += call->cube_sums[(size_t)cube * VXD_REFINE_LIGHT_SUMS + (size_t)e];
        }
    }
    return sum;
}

/* ---- Vectors of the solver ---- */

/* Terms are summed by so many lanes: of each chunk of so many terms in halves (lane l and l + 128, and
 * so on); then each lane sums the chunks lane, lane + 256, ..., and the lanes are summed in halves. A
 * step that ends with a sum does it with its items. */
#define VXD_REFINE_LANES 256

enum vxd_refine_scalar {
    VXD_REFINE_RZ = 0,
    VXD_REFINE_ALPHA = 1,
    VXD_REFINE_BETA = 2,
    VXD_REFINE_SUM = 3,
    VXD_REFINE_N_SCALARS = 16 + 256
};

/* Indices of sums behind VXD_REFINE_SUM. */
enum vxd_refine_sum_index {
    VXD_REFINE_OF_LOSSES = 0, /* four */
    VXD_REFINE_OF_SEEN = 4,
    VXD_REFINE_OF_BRIGHT = 5,
    VXD_REFINE_OF_LIGHT = 6,
    VXD_REFINE_OF_VIEWS = 8 /* one a keyframe */
};

enum vxd_refine_sum_kind {
    VXD_REFINE_SUM_NONE,
    VXD_REFINE_SUM_RZ_FIRST,
    VXD_REFINE_SUM_RZ,
    VXD_REFINE_SUM_PQ,
    VXD_REFINE_SUM_PQ_BOTH, /* of a voxel's distance and albedo */
    VXD_REFINE_SUM_VALUES,  /* of `values`, into scalar VXD_REFINE_SUM + index */
    VXD_REFINE_SUM_LIGHT,   /* squares of intensity minus shading */
    VXD_REFINE_SUM_SEEN,    /* voxels that have a mean intensity */
    VXD_REFINE_SUM_BRIGHT,  /* their intensities */
    VXD_REFINE_SUM_VIEWS    /* of one keyframe, weights 0 to 1 */
};

struct vxd_refine_solve_call {
    size_t n; /* unknowns */
    vxd_refine_real *x;
    vxd_refine_real *r;
    vxd_refine_real *p;
    vxd_refine_real *q;
    vxd_refine_real *diagonal;
    double *partial;    /* a chunk of terms each */
    uint32_t *n_chunks; /* of a GPU: chunks that are summed so far */
    double *scalars;
    enum vxd_refine_sum_kind kind;
    int index;
    const vxd_refine_real *values;
    const uint8_t *bytes;
    vxd_refine_real
        *state; /* of the joint step: what x is added to, and what it was before */
    vxd_refine_real *before;
    vxd_refine_real *moments; /* Adam: 2 n */
    vxd_refine_real rate;     /* Adam */
    vxd_refine_real correct1;
    vxd_refine_real correct2;
};

VXD_HD double vxd_refine_term(const struct vxd_refine_view *view,
                              const struct vxd_refine_solve_call *call, size_t i)
{
    switch (call->kind) {
    case VXD_REFINE_SUM_RZ_FIRST:
    case VXD_REFINE_SUM_RZ:
        return (double)(call->r[i] * call->r[i] / call->diagonal[i]);
    case VXD_REFINE_SUM_PQ:
        return (double)(call->p[i] * call->q[i]);
    case VXD_REFINE_SUM_PQ_BOTH:
        return (double)(call->p[i] * call->q[i]) +
               (double)(call->p[view->n + i] * call->q[view->n + i]);
    case VXD_REFINE_SUM_VALUES:
        return (double)call->values[i];
    case VXD_REFINE_SUM_VIEWS:
        return (double)call->bytes[i] / 255;
    case VXD_REFINE_SUM_SEEN:
        return view->mean[4 * i + 3] >= 0 ? 1 : 0;
    case VXD_REFINE_SUM_BRIGHT:
        return view->mean[4 * i + 3] >= 0 ? (double)view->mean[4 * i + 3] : 0;
    case VXD_REFINE_SUM_LIGHT:
    default: {
        vxd_refine_real mean = view->mean[4 * i + 3];
        vxd_refine_real r = mean - view->nodes[i].shade * view->state[view->n + i];

        return mean >= 0 ? (double)(r * r) : 0;
    }
    }
}

/* The sum of chunks lane, lane + VXD_REFINE_LANES, ... of n. */
VXD_HD double vxd_refine_lane_total(const double *partial, size_t n, size_t lane)
{
    double sum = 0;

    for (size_t k = lane; k < n; k += VXD_REFINE_LANES) {
        sum += partial[k];
    }
    return sum;
}

/* Writes what follows from a sum. */
VXD_HD void vxd_refine_set_total(const struct vxd_refine_solve_call *call, double sum)
{
    double *scalars = call->scalars;

    if (call->kind == VXD_REFINE_SUM_RZ_FIRST) {
        scalars[VXD_REFINE_RZ] = sum;
    } else if (call->kind == VXD_REFINE_SUM_RZ) {
        scalars[VXD_REFINE_BETA] =
            scalars[VXD_REFINE_RZ] > 0 ? sum / scalars[VXD_REFINE_RZ] : 0;
        scalars[VXD_REFINE_RZ] = sum;
    } else if (call->kind == VXD_REFINE_SUM_PQ || call->kind == VXD_REFINE_SUM_PQ_BOTH) {
        scalars[VXD_REFINE_ALPHA] = sum > 0 ? scalars[VXD_REFINE_RZ] / sum : 0;
    } else {
        scalars[VXD_REFINE_SUM + call->index] = sum;
    }
}

/* Begins from the gradient in q (or, of the light, minus it): r = -q, x = 0, p = r / diagonal. */
VXD_HD void vxd_refine_begin_item(const struct vxd_refine_solve_call *call, size_t i)
{
    vxd_refine_real r = -call->q[i];

    call->r[i] = r;
    call->x[i] = 0;
    call->p[i] = r / call->diagonal[i];
}

/* Minus the right side and the diagonal of the light's equations. */
VXD_HD void vxd_refine_light_right_item(const struct vxd_refine_light_call *light,
                                        const struct vxd_refine_solve_call *call,
                                        size_t i)
{
    vxd_refine_real diagonal = vxd_refine_light_sum(light, i / 9, (int)(i % 9), 1);

    for (size_t d = 0; d < 6; d++) {
        diagonal += light->around[6 * (i / 9) + d] >= 0 ? light->smooth : 0;
    }
    call->q[i] = -vxd_refine_light_sum(light, i / 9, (int)(i % 9), 0);
    call->diagonal[i] = diagonal + light->damping;
}

/* A row of the light's equations times p, from the products of its cubes. */
VXD_HD void vxd_refine_light_gather_item(const struct vxd_refine_light_call *light,
                                         const struct vxd_refine_solve_call *call,
                                         size_t i)
{
    const vxd_refine_real *p = call->p;
    vxd_refine_real sum = 0;

    for (size_t s = 0; s < 8; s++) {
        sum += light->products[8 * i + s];
    }
    for (size_t d = 0; d < 6; d++) {
        int32_t other = light->around[6 * (i / 9) + d];

        if (other >= 0) {
            sum += light->smooth * (p[i] - p[9 * (size_t)other + i % 9]);
        }
    }
    call->q[i] = sum + light->damping * p[i];
}

VXD_HD void vxd_refine_advance_item(const struct vxd_refine_solve_call *call, size_t i)
{
    vxd_refine_real alpha = (vxd_refine_real)call->scalars[VXD_REFINE_ALPHA];

    call->x[i] += alpha * call->p[i];
    call->r[i] -= alpha * call->q[i];
}

VXD_HD void vxd_refine_turn_item(const struct vxd_refine_solve_call *call, size_t i)
{
    vxd_refine_real beta = (vxd_refine_real)call->scalars[VXD_REFINE_BETA];

    call->p[i] = call->r[i] / call->diagonal[i] + beta * call->p[i];
}

/* Distances move by half a voxel at most; an albedo stays above 0. */
VXD_HD void vxd_refine_accept_item(const struct vxd_refine_solve_call *call, size_t i)
{
    vxd_refine_real x = call->x[i];
    vxd_refine_real was = call->state[i];

    call->before[i] = was;
    if (i < call->n / 2) {
        x = x > (vxd_refine_real)0.5
                ? (vxd_refine_real)0.5
                : (x < (vxd_refine_real)-0.5 ? (vxd_refine_real)-0.5 : x);
        call->state[i] = was + x;
        return;
    }
    call->state[i] = was + x > was / 4 ? was + x : was / 4;
}

/* Adam's step (beta 0.9 and 0.999) with the gradient in q, as x of an accept. */
VXD_HD void vxd_refine_adam_item(const struct vxd_refine_solve_call *call, size_t i)
{
    vxd_refine_real *m = call->moments + 2 * i;
    vxd_refine_real g = call->q[i];

    m[0] = (vxd_refine_real)0.9 * m[0] + (vxd_refine_real)0.1 * g;
    m[1] = (vxd_refine_real)0.999 * m[1] + (vxd_refine_real)0.001 * g * g;
    call->x[i] = -call->rate * (m[0] * call->correct1) /
                 (VXD_REFINE_SQRT(m[1] * call->correct2) + (vxd_refine_real)1e-8);
}

#endif
