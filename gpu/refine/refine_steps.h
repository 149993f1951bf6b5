// SPDX-License-Identifier: Apache-2.0
/* The steps of a refinement, an item each: voxels of the set mostly. Every item writes its own
 * rows alone and reads those of others that an earlier step wrote, so any order and division
 * gives the same bits.
 *
 * The linear system of a joint step. A voxel's residual in keyframe j changes by z[0] - g_j z[1..3]
 * (refine_math.h); the energy's pairs of voxels x, y couple these vectors z by 4 x 4 matrices, sums
 * over j of w [1, -g_j(x)] [1, -g_j(y)]^T. So a product with the system's matrix costs the same
 * whatever the number of keyframes: push (unknowns to z), couple, pull (z to unknowns). */
#ifndef VXD_GPU_REFINE_REFINE_STEPS_H
#define VXD_GPU_REFINE_REFINE_STEPS_H

#include "gpu/refine/refine_math.h"

/* Keyframes whose residuals are in memory at once: all, where these bytes hold them, else at least
 * so many. */
#define VXD_REFINE_SIGHT_BYTES ((size_t)512 << 20)
#define VXD_REFINE_LEAST_SLOTS 8
/* Arrays of the coupling: 10 of a voxel with itself (upper triangle), 16 with each upper neighbour. */
#define VXD_REFINE_SELF 10
#define VXD_REFINE_COUPLING (VXD_REFINE_SELF + 3 * 16)
/* Unknowns of a keyframe: translation, rotation (of the camera, about the set's centre), fx, fy, cx,
 * cy; its normal equations: upper triangle, right side. */
#define VXD_REFINE_POSE 10
#define VXD_REFINE_POSE_SUMS                                                             \
    (VXD_REFINE_POSE * (VXD_REFINE_POSE + 1) / 2 + VXD_REFINE_POSE)
/* They are summed over ranges of voxels, each by so many lanes. */
#define VXD_REFINE_POSE_VOXELS 4096 /* of a range, at least */
#define VXD_REFINE_MAX_POSE_PARTS 256
#define VXD_REFINE_POSE_LANES 128

/* Arrays of several numbers a voxel lie side by side on the CPU, for its caches, and one behind the
 * other on a GPU, for the threads of a warp. */
#if defined(__CUDA_ARCH__)
#define VXD_REFINE_AT(view, i, e, width) ((size_t)(e) * (view)->n + (i))
#define VXD_REFINE_SLOT_AT(view, slot, i) ((slot) * (view)->n + (i))
#define VXD_REFINE_SIGHT_AT(view, slot, i, e) (((slot)*4 + (size_t)(e)) * (view)->n + (i))
#else
#define VXD_REFINE_AT(view, i, e, width)                                                 \
    ((void)(view), (size_t)(i) * (width) + (size_t)(e))
#define VXD_REFINE_SLOT_AT(view, slot, i) ((i) * (view)->n_slots + (slot))
#define VXD_REFINE_SIGHT_AT(view, slot, i, e)                                            \
    (((i) * (view)->n_slots + (slot)) * 4 + (size_t)(e))
#endif

struct vxd_refine_view {
    size_t n; /* voxels of the set */
    size_t n_keyframes;
    int32_t base[3];      /* the set's keys count from here */
    const int32_t *keys;  /* n x 3 */
    const int32_t *near6; /* n x 6: -x +x -y +y -z +z; -1: not in the set */
    const int32_t
        *links; /* n x 3: upper neighbours where both voxels have all six, else -1 */
    const uint8_t *ring; /* n: it has all six */
    const struct vxd_refine_eye *eyes;

    vxd_refine_real *state; /* distances, then albedo: 2 n */
    vxd_refine_real *start; /* n: distances at first */
    vxd_refine_real *mean; /* n x 4: colours of the keyframes, and intensity; 0: unseen */
    vxd_refine_real *chroma; /* n x 3: weights of upper neighbours */
    uint8_t *views; /* n_keyframes x n: weight of the view in 1/255; 0 = not seen */
    struct vxd_refine_node *nodes;

    /* Light. cells: n, the cube that a voxel is in; corners: 8 a cube */
    const int32_t *cells;
    const int32_t *corners;
    const float *lights; /* 9 a corner */
    double cube;         /* voxels; 0: one cube holds all */
    double cube_at[3];   /* of the set's base, voxels from the volume's origin */

    /* Of the keyframes in memory: n of each slot */
    size_t n_slots;
    vxd_refine_real *
        sight; /* x 4: derivative of the image by the point, residual; where it is seen */
    vxd_refine_real *sight_weight; /* 0: not seen */
    vxd_refine_real *coupling;     /* n x VXD_REFINE_COUPLING */
    vxd_refine_real *force;        /* n x 4: the energy's derivative by z */
    vxd_refine_real *losses;       /* 4 arrays of n: data, smooth, init, chroma */
    vxd_refine_real *pose_sums;    /* slots x n_pose_parts x VXD_REFINE_POSE_SUMS */
    double *pose_totals;           /* slots x VXD_REFINE_POSE_SUMS */
    size_t n_pose_parts;

    /* Products */
    vxd_refine_real *z;        /* n x 4 */
    vxd_refine_real *laplace;  /* n */
    vxd_refine_real *pulled;   /* n x 5: albedo, distance, differences */
    vxd_refine_real *diagonal; /* 2 n */

    vxd_refine_real data_scale;
    vxd_refine_real smooth;
    vxd_refine_real init;
    vxd_refine_real chroma_scale;
    vxd_refine_real damping; /* of the diagonal */
    int keeps_distances;
    int keeps_albedo;
    int has_intrinsics;
};

/* A voxel's centre, voxels from the set's base. */
VXD_HD void vxd_refine_position(const struct vxd_refine_view *view, size_t i,
                                vxd_refine_real out[3])
{
    for (int k = 0; k < 3; k++) {
        out[k] = (vxd_refine_real)(view->keys[3 * i + (size_t)k] - view->base[k]) +
                 (vxd_refine_real)0.5;
    }
}

/* Its point on the surface (equation 17). */
VXD_HD void vxd_refine_point(const struct vxd_refine_view *view, size_t i,
                             vxd_refine_real out[3])
{
    vxd_refine_position(view, i, out);
    for (int k = 0; k < 3; k++) {
        out[k] -= view->state[i] * view->nodes[i].normal[k];
    }
}

/* The place of a voxel in its cube of light, 0 to 1 on each axis. */
VXD_HD void vxd_refine_place(const struct vxd_refine_view *view, size_t i,
                             vxd_refine_real at[3])
{
    for (int k = 0; k < 3; k++) {
        double place;

        if (view->cube == 0) {
            at[k] = 0;
            continue;
        }
        place = (view->cube_at[k] +
                 (double)(view->keys[3 * i + (size_t)k] - view->base[k]) + 0.5) /
                view->cube;
        at[k] = (vxd_refine_real)(place - floor(place));
    }
}

/* ---- The image formation of a voxel ---- */

VXD_HD void vxd_refine_light_at(const struct vxd_refine_view *view, size_t i,
                                vxd_refine_real light[9])
{
    const int32_t *corners = view->corners + 8 * (size_t)view->cells[i];
    vxd_refine_real at[3];

    vxd_refine_place(view, i, at);
    for (int e = 0; e < 9; e++) {
        light[e] = 0;
    }
    for (int c = 0; c < (view->cube == 0 ? 1 : 8); c++) {
        const float *from = view->lights + 9 * (size_t)corners[c];
        vxd_refine_real weight = vxd_refine_corner_weight(at, c);

        for (int e = 0; e < 9; e++) {
            light[e] += weight * (vxd_refine_real)from[e];
        }
    }
}

VXD_HD void vxd_refine_node_item(const struct vxd_refine_view *view, size_t i)
{
    struct vxd_refine_node node = {{0, 0, 0}, 0, 0, {0, 0, 0}};

    if (view->ring[i] != 0) {
        vxd_refine_real near_d[6];
        vxd_refine_real light[9];

        for (int k = 0; k < 6; k++) {
            near_d[k] = view->state[view->near6[6 * i + (size_t)k]];
        }
        node.inverse = vxd_refine_normal(near_d, node.normal);
        if (view->lights != NULL) {
            vxd_refine_light_at(view, i, light);
            node.shade = vxd_refine_shade(light, node.normal, node.slope);
            for (int k = 0; k < 3; k++) {
                node.slope[k] *= view->state[view->n + i];
            }
        }
    }
    view->nodes[i] = node;
}

/* The residuals of a voxel in keyframes `first` to `first + n_slots` - 1. */
VXD_HD void vxd_refine_sight_item(const struct vxd_refine_view *view, size_t first,
                                  size_t n_slots, size_t i)
{
    const struct vxd_refine_node *node = &view->nodes[i];
    vxd_refine_real brightness = node->shade * view->state[view->n + i];
    vxd_refine_real x[3];

    vxd_refine_point(view, i, x);
    for (size_t slot = 0; slot < n_slots; slot++) {
        uint8_t seen = view->views[(first + slot) * view->n + i];
        vxd_refine_real weight = 0;
        vxd_refine_real intensity;
        vxd_refine_real by_x[3];

        if (seen != 0 && node->inverse > 0 &&
            vxd_refine_look(&view->eyes[first + slot], x, &intensity, by_x)) {
            weight = (vxd_refine_real)seen / 255 * view->data_scale;
            for (int k = 0; k < 3; k++) {
                view->sight[VXD_REFINE_SIGHT_AT(view, slot, i, k)] = by_x[k];
            }
            view->sight[VXD_REFINE_SIGHT_AT(view, slot, i, 3)] = brightness - intensity;
        }
        view->sight_weight[VXD_REFINE_SLOT_AT(view, slot, i)] = weight;
    }
}

VXD_HD void vxd_refine_load_sight(const struct vxd_refine_view *view, size_t slot,
                                  size_t i, vxd_refine_real out[4])
{
    for (int k = 0; k < 4; k++) {
        out[k] = view->sight[VXD_REFINE_SIGHT_AT(view, slot, i, k)];
    }
}

VXD_HD void vxd_refine_load4(const struct vxd_refine_view *view,
                             const vxd_refine_real *from, size_t i,
                             vxd_refine_real out[4])
{
    for (int k = 0; k < 4; k++) {
        out[k] = from[VXD_REFINE_AT(view, i, k, 4)];
    }
}

/* The other voxel of a pair: direction 2k the lower, 2k + 1 the upper neighbour on axis k; -1: the
 * pair has no data term. */
VXD_HD int32_t vxd_refine_pair(const struct vxd_refine_view *view, size_t i,
                               int direction)
{
    int32_t other;

    if (view->ring[i] == 0) {
        return -1;
    }
    if ((direction & 1) != 0) {
        return view->links[3 * i + (size_t)(direction / 2)];
    }
    other = view->near6[6 * i + (size_t)direction];
    return view->ring[other] != 0 ? other : -1;
}

/* The weight of a pair by its colours: where they change, differences of intensity are those of the
 * paint, and its border within a voxel is nothing that a shape explains. */
VXD_HD vxd_refine_real vxd_refine_paint(const struct vxd_refine_view *view, size_t i,
                                        int32_t other, int direction)
{
    size_t owner = (direction & 1) != 0 || other < 0 ? i : (size_t)other;

    return view->chroma[3 * owner + (size_t)(direction / 2)];
}

/* What the pairs of a voxel come to. */
struct vxd_refine_couple {
    vxd_refine_real self[VXD_REFINE_SELF];
    vxd_refine_real pairs[3][16]; /* with the upper neighbours */
    vxd_refine_real force[4];
    vxd_refine_real loss;
};

VXD_HD void vxd_refine_load_couple(const struct vxd_refine_view *view, int is_first,
                                   size_t i, struct vxd_refine_couple *out)
{
    for (int e = 0; e < VXD_REFINE_SELF; e++) {
        out->self[e] =
            is_first ? 0 : view->coupling[VXD_REFINE_AT(view, i, e, VXD_REFINE_COUPLING)];
    }
    for (int axis = 0; axis < 3; axis++) {
        for (int e = 0; e < 16; e++) {
            out->pairs[axis][e] =
                is_first
                    ? 0
                    : view->coupling[VXD_REFINE_AT(
                          view, i, VXD_REFINE_SELF + 16 * axis + e, VXD_REFINE_COUPLING)];
        }
    }
    for (int e = 0; e < 4; e++) {
        out->force[e] = is_first ? 0 : view->force[VXD_REFINE_AT(view, i, e, 4)];
    }
    out->loss = is_first ? 0 : view->losses[i];
}

VXD_HD void vxd_refine_store_couple(const struct vxd_refine_view *view, size_t i,
                                    const struct vxd_refine_couple *couple)
{
    for (int e = 0; e < VXD_REFINE_SELF; e++) {
        view->coupling[VXD_REFINE_AT(view, i, e, VXD_REFINE_COUPLING)] = couple->self[e];
    }
    for (int axis = 0; axis < 3; axis++) {
        for (int e = 0; e < 16; e++) {
            view->coupling[VXD_REFINE_AT(view, i, VXD_REFINE_SELF + 16 * axis + e,
                                         VXD_REFINE_COUPLING)] = couple->pairs[axis][e];
        }
    }
    for (int e = 0; e < 4; e++) {
        view->force[VXD_REFINE_AT(view, i, e, 4)] = couple->force[e];
    }
    view->losses[i] = couple->loss;
}

/* [1, -g] of a sight, and its residual. */
VXD_HD vxd_refine_real vxd_refine_factors(const struct vxd_refine_view *view, size_t slot,
                                          size_t i, vxd_refine_real out[4])
{
    vxd_refine_real sight[4];

    vxd_refine_load_sight(view, slot, i, sight);
    out[0] = 1;
    for (int k = 0; k < 3; k++) {
        out[1 + k] = -sight[k];
    }
    return sight[3];
}

/* Adds the pairs of a voxel in the keyframes of `n_slots` slots to its coupling, force and loss. */
VXD_HD void vxd_refine_couple_item(const struct vxd_refine_view *view, size_t n_slots,
                                   int is_first, size_t i)
{
    struct vxd_refine_couple couple;
    vxd_refine_real paints[6];
    int32_t others[6];

    vxd_refine_load_couple(view, is_first, i, &couple);
    for (int direction = 0; direction < 6; direction++) {
        others[direction] = vxd_refine_pair(view, i, direction);
        paints[direction] = vxd_refine_paint(view, i, others[direction], direction);
    }
    for (size_t slot = 0; view->ring[i] != 0 && slot < n_slots; slot++) {
        vxd_refine_real mine = view->sight_weight[VXD_REFINE_SLOT_AT(view, slot, i)];
        vxd_refine_real weights = 0; /* of all pairs */
        vxd_refine_real pull = 0;
        vxd_refine_real a[4];
        vxd_refine_real mine_r;

        if (!(mine > 0)) {
            continue;
        }
        mine_r = vxd_refine_factors(view, slot, i, a);
        for (int direction = 0; direction < 6; direction++) {
            size_t other = others[direction] >= 0 ? (size_t)others[direction] : i;
            vxd_refine_real its =
                view->sight_weight[VXD_REFINE_SLOT_AT(view, slot, other)];
            vxd_refine_real unweighted = paints[direction] * (mine < its ? mine : its);
            vxd_refine_real weight;
            vxd_refine_real energy;
            vxd_refine_real b[4];
            vxd_refine_real r;

            if (others[direction] < 0 || !(unweighted > 0)) {
                continue;
            }
            r = mine_r - vxd_refine_factors(view, slot, other, b);
            weight = unweighted * vxd_refine_huber(r, &energy);
            weights += weight;
            pull += weight * r;
            if ((direction & 1) == 0) {
                continue;
            }
            couple.loss += unweighted * energy;
            for (int row = 0; row < 4; row++) {
                vxd_refine_real weighted = weight * a[row];

                for (int column = 0; column < 4; column++) {
                    couple.pairs[direction / 2][4 * row + column] += weighted * b[column];
                }
            }
        }
        for (int row = 0, e = 0; row < 4; row++) {
            vxd_refine_real weighted = weights * a[row];

            couple.force[row] += pull * a[row];
            for (int column = row; column < 4; column++) {
                couple.self[e++] += weighted * a[column];
            }
        }
    }
    vxd_refine_store_couple(view, i, &couple);
}

/* ---- Products with the system's matrix ---- */

/* z of a vector of unknowns, and the Laplacian of its distances. */
VXD_HD void vxd_refine_push_item(const struct vxd_refine_view *view,
                                 const vxd_refine_real *p, size_t i)
{
    vxd_refine_real z[4] = {0, 0, 0, 0};
    vxd_refine_real laplace = 0;

    if (view->ring[i] != 0) {
        const int32_t *around = view->near6 + 6 * i;
        vxd_refine_real difference[3];

        for (int k = 0; k < 3; k++) {
            vxd_refine_real low = p[around[2 * (size_t)k]];
            vxd_refine_real high = p[around[2 * (size_t)k + 1]];

            difference[k] = high - low;
            laplace += high + low;
        }
        laplace -= 6 * p[i];
        vxd_refine_push(&view->nodes[i], view->state[i], p[view->n + i], p[i], difference,
                        z);
    }
    for (int e = 0; e < 4; e++) {
        view->z[VXD_REFINE_AT(view, i, e, 4)] = z[e];
    }
    view->laplace[i] = laplace;
}

/* Couples the voxels' z, or takes the force, and pulls the result back. */
VXD_HD void vxd_refine_pull_item(const struct vxd_refine_view *view, int is_gradient,
                                 size_t i)
{
    vxd_refine_real out[4] = {0, 0, 0, 0};
    vxd_refine_real pulled[5];

    if (view->ring[i] != 0 && is_gradient) {
        vxd_refine_load4(view, view->force, i, out);
    } else if (view->ring[i] != 0) {
        vxd_refine_real z[4];

        vxd_refine_load4(view, view->z, i, z);
        for (int row = 0, e = 0; row < 4; row++) {
            for (int column = row; column < 4; column++, e++) {
                vxd_refine_real m =
                    view->coupling[VXD_REFINE_AT(view, i, e, VXD_REFINE_COUPLING)];

                out[row] += m * z[column];
                if (column != row) {
                    out[column] += m * z[row];
                }
            }
        }
        for (int direction = 0; direction < 6; direction++) {
            int32_t other = vxd_refine_pair(view, i, direction);
            int is_upper = direction & 1;
            int base = VXD_REFINE_SELF + 16 * (direction / 2);
            size_t owner = is_upper ? i : (size_t)other;

            if (other < 0) {
                continue;
            }
            vxd_refine_load4(view, view->z, (size_t)other, z);
            for (int e = 0; e < 16; e++) {
                vxd_refine_real m = view->coupling[VXD_REFINE_AT(view, owner, base + e,
                                                                 VXD_REFINE_COUPLING)];

                if (is_upper) {
                    out[e / 4] -= m * z[e % 4];
                } else {
                    out[e % 4] -= m * z[e / 4];
                }
            }
        }
    }
    vxd_refine_pull(&view->nodes[i], view->state[i], out, &pulled[0], &pulled[1],
                    pulled + 2);
    for (int e = 0; e < 5; e++) {
        view->pulled[VXD_REFINE_AT(view, i, e, 5)] = pulled[e];
    }
}

/* Gathers the product, or the gradient (p is the state then), with the other terms. */
VXD_HD void vxd_refine_gather_item(const struct vxd_refine_view *view,
                                   const vxd_refine_real *p, vxd_refine_real *out,
                                   int is_gradient, size_t i)
{
    const int32_t *around = view->near6 + 6 * i;
    const vxd_refine_real *albedo = p + view->n;
    vxd_refine_real by_distance = view->pulled[VXD_REFINE_AT(view, i, 1, 5)];
    vxd_refine_real by_albedo = view->pulled[VXD_REFINE_AT(view, i, 0, 5)];
    vxd_refine_real laplace = -6 * view->laplace[i];
    vxd_refine_real chroma = 0;
    vxd_refine_real chroma_loss = 0;
    vxd_refine_real moved = is_gradient ? p[i] - view->start[i] : p[i];

    for (int direction = 0; direction < 6; direction++) {
        int32_t other = around[direction];
        int axis = direction / 2;
        int is_upper = direction & 1;
        vxd_refine_real weight;
        vxd_refine_real part;
        vxd_refine_real change;

        if (other < 0) {
            continue;
        }
        part = view->pulled[VXD_REFINE_AT(view, (size_t)other, 2 + axis, 5)];
        by_distance += is_upper ? -part : part;
        laplace += view->laplace[other];
        weight = view->chroma[3 * (is_upper ? i : (size_t)other) + (size_t)axis];
        change = albedo[i] - albedo[other];
        chroma += weight * change;
        if (is_upper) {
            chroma_loss += weight * change * change;
        }
    }
    by_distance += view->smooth * laplace + view->init * moved;
    by_albedo += view->chroma_scale * chroma;
    if (is_gradient) {
        view->losses[view->n + i] =
            view->smooth / 2 * view->laplace[i] * view->laplace[i];
        view->losses[2 * view->n + i] = view->init / 2 * moved * moved;
        view->losses[3 * view->n + i] = view->chroma_scale / 2 * chroma_loss;
    } else {
        by_distance += view->damping * view->diagonal[i] * p[i];
        by_albedo += view->damping * view->diagonal[view->n + i] * p[view->n + i];
    }
    out[i] = view->keeps_distances ? 0 : by_distance;
    out[view->n + i] = view->keeps_albedo ? 0 : by_albedo;
}

VXD_HD vxd_refine_real vxd_refine_square4(const vxd_refine_real *self,
                                          const vxd_refine_real v[4])
{
    vxd_refine_real sum = 0;

    for (int row = 0, e = 0; row < 4; row++) {
        for (int column = row; column < 4; column++, e++) {
            sum += (column == row ? 1 : 2) * self[e] * v[row] * v[column];
        }
    }
    return sum;
}

/* What a unit change of difference `axis` at a voxel, or of its albedo (3) or distance (4), costs by
 * the voxel's own coupling. */
VXD_HD vxd_refine_real vxd_refine_own_cost(const struct vxd_refine_view *view, size_t i,
                                           int what)
{
    vxd_refine_real self[VXD_REFINE_SELF];
    vxd_refine_real difference[3] = {0, 0, 0};
    vxd_refine_real z[4];

    for (int e = 0; e < VXD_REFINE_SELF; e++) {
        self[e] = view->coupling[VXD_REFINE_AT(view, i, e, VXD_REFINE_COUPLING)];
    }
    if (what < 3) {
        difference[what] = 1;
    }
    vxd_refine_push(&view->nodes[i], view->state[i], what == 3 ? 1 : 0, what == 4 ? 1 : 0,
                    difference, z);
    return vxd_refine_square4(self, z);
}

/* The matrix' diagonal, without what couples two voxels' z: the preconditioner. */
VXD_HD void vxd_refine_diagonal_item(const struct vxd_refine_view *view, size_t i)
{
    const int32_t *around = view->near6 + 6 * i;
    vxd_refine_real by_distance = view->init;
    vxd_refine_real by_albedo = (vxd_refine_real)1e-6;

    if (view->ring[i] != 0) {
        by_distance += 36 * view->smooth + vxd_refine_own_cost(view, i, 4);
        by_albedo += vxd_refine_own_cost(view, i, 3);
    }
    for (int direction = 0; direction < 6; direction++) {
        int32_t other = around[direction];
        int is_upper = direction & 1;

        if (other < 0) {
            continue;
        }
        by_albedo +=
            view->chroma_scale *
            view->chroma[3 * (is_upper ? i : (size_t)other) + (size_t)(direction / 2)];
        if (view->ring[other] != 0) {
            by_distance +=
                view->smooth + vxd_refine_own_cost(view, (size_t)other, direction / 2);
        }
    }
    view->diagonal[i] = by_distance + (vxd_refine_real)1e-6;
    view->diagonal[view->n + i] = by_albedo;
}

/* ---- A keyframe's own unknowns ---- */

/* The derivative of a voxel's residual by them, in units of voxels (x / reach for rotations, and
 * per pixel of the keyframe's image). */
VXD_HD void vxd_refine_pose_row(const struct vxd_refine_view *view,
                                const struct vxd_refine_eye *eye,
                                const vxd_refine_real centre[3], vxd_refine_real reach,
                                const vxd_refine_real sight[4], size_t i, int n_unknowns,
                                vxd_refine_real row[VXD_REFINE_POSE])
{
    vxd_refine_real x[3];
    vxd_refine_real arm[3];

    vxd_refine_point(view, i, x);
    for (int k = 0; k < 3; k++) {
        arm[k] = (x[k] - centre[k]) / reach;
        row[k] = sight[k];
    }
    row[3] = arm[1] * sight[2] - arm[2] * sight[1];
    row[4] = arm[2] * sight[0] - arm[0] * sight[2];
    row[5] = arm[0] * sight[1] - arm[1] * sight[0];
    if (n_unknowns == VXD_REFINE_POSE) {
        vxd_refine_real p[3];
        vxd_refine_real by_u = 0;
        vxd_refine_real by_v = 0;

        vxd_refine_to_camera(eye, x, p);
        for (int k = 0; k < 3; k++) {
            by_u += eye->rotation[k] * sight[k];
            by_v += eye->rotation[3 + k] * sight[k];
        }
        by_u *= p[2] / eye->fx;
        by_v *= p[2] / eye->fy;
        row[6] = -by_u * (p[0] / p[2]);
        row[7] = -by_v * (p[1] / p[2]);
        row[8] = -by_u;
        row[9] = -by_v;
    }
}

struct vxd_refine_pose_call {
    size_t first; /* keyframe of slot 0 */
    size_t n_slots;
    vxd_refine_real centre[3];
    vxd_refine_real reach;
};

/* The place of right side k in the sums. */
#define VXD_REFINE_POSE_RIGHT(k) (VXD_REFINE_POSE_SUMS - VXD_REFINE_POSE + (k))

/* Sums the normal equations of the keyframe of a slot over voxels begin, begin + lanes, ...; n_unknowns
 * is 6 or VXD_REFINE_POSE, which a compiler sees, so that the sums of a GPU's thread are registers. */
VXD_HD void vxd_refine_pose_lane(const struct vxd_refine_view *view,
                                 const struct vxd_refine_pose_call *call, size_t slot,
                                 size_t begin, size_t end, const int n_unknowns,
                                 vxd_refine_real sums[VXD_REFINE_POSE_SUMS])
{
    const struct vxd_refine_eye *eye = &view->eyes[call->first + slot];

    for (size_t i = begin; i < end; i += VXD_REFINE_POSE_LANES) {
        vxd_refine_real my_weight = view->sight_weight[VXD_REFINE_SLOT_AT(view, slot, i)];
        vxd_refine_real a[4];
        vxd_refine_real mine[VXD_REFINE_POSE];

        if (!(my_weight > 0)) {
            continue;
        }
        vxd_refine_load_sight(view, slot, i, a);
        vxd_refine_pose_row(view, eye, call->centre, call->reach, a, i, n_unknowns, mine);
        for (int axis = 0; axis < 3; axis++) {
            int32_t other = vxd_refine_pair(view, i, 2 * axis + 1);
            vxd_refine_real its =
                other < 0
                    ? 0
                    : view->sight_weight[VXD_REFINE_SLOT_AT(view, slot, (size_t)other)];
            vxd_refine_real b[4];
            vxd_refine_real row[VXD_REFINE_POSE];
            vxd_refine_real weight;
            vxd_refine_real energy;
            vxd_refine_real r;
            int e = 0;

            if (!(its > 0)) {
                continue;
            }
            vxd_refine_load_sight(view, slot, (size_t)other, b);
            vxd_refine_pose_row(view, eye, call->centre, call->reach, b, (size_t)other,
                                n_unknowns, row);
            r = a[3] - b[3];
            weight = (my_weight < its ? my_weight : its) *
                     vxd_refine_paint(view, i, other, 2 * axis + 1) *
                     vxd_refine_huber(r, &energy);
            for (int k = 0; k < n_unknowns; k++) {
                row[k] = mine[k] - row[k];
            }
            for (int k = 0; k < n_unknowns; k++) {
                vxd_refine_real weighted = weight * row[k];

                for (int l = k; l < n_unknowns; l++) {
                    sums[e++] += weighted * row[l];
                }
                sums[VXD_REFINE_POSE_RIGHT(k)] += weighted * r;
            }
        }
    }
}

/* The range of voxels of a part. */
VXD_HD void vxd_refine_pose_range(const struct vxd_refine_view *view, size_t part,
                                  size_t *begin, size_t *end)
{
    size_t n = (view->n + view->n_pose_parts - 1) / view->n_pose_parts;

    *begin = part * n < view->n ? part * n : view->n;
    *end = *begin + n < view->n ? *begin + n : view->n;
}

/* Sums one slot's equations over one part: lane by lane, then halves of the lanes. On a GPU a block
 * does that. */
VXD_HD void vxd_refine_pose_item(const struct vxd_refine_view *view,
                                 const struct vxd_refine_pose_call *call, size_t item)
{
    vxd_refine_real lanes[VXD_REFINE_POSE_LANES][VXD_REFINE_POSE_SUMS] = {{0}};
    vxd_refine_real *to = view->pose_sums + item * VXD_REFINE_POSE_SUMS;
    const int n_matrix = view->has_intrinsics ? VXD_REFINE_POSE_RIGHT(0) : 6 * 7 / 2;
    size_t begin;
    size_t end;

    vxd_refine_pose_range(view, item % view->n_pose_parts, &begin, &end);
    for (size_t lane = 0; lane < VXD_REFINE_POSE_LANES; lane++) {
        size_t slot = item / view->n_pose_parts;

        if (view->has_intrinsics) {
            vxd_refine_pose_lane(view, call, slot, begin + lane, end, VXD_REFINE_POSE,
                                 lanes[lane]);
        } else {
            vxd_refine_pose_lane(view, call, slot, begin + lane, end, 6, lanes[lane]);
        }
    }
    for (size_t half = VXD_REFINE_POSE_LANES / 2; half > 0; half /= 2) {
        for (size_t lane = 0; lane < half; lane++) {
            for (int e = 0; e < n_matrix; e++) {
                lanes[lane][e] += lanes[lane + half][e];
            }
            for (int e = VXD_REFINE_POSE_RIGHT(0); e < VXD_REFINE_POSE_SUMS; e++) {
                lanes[lane][e] += lanes[lane + half][e];
            }
        }
    }
    for (int e = 0; e < VXD_REFINE_POSE_SUMS; e++) {
        to[e] = lanes[0][e];
    }
}

VXD_HD void vxd_refine_pose_sum_item(const struct vxd_refine_view *view, size_t item)
{
    const vxd_refine_real *from =
        view->pose_sums +
        item / VXD_REFINE_POSE_SUMS * view->n_pose_parts * VXD_REFINE_POSE_SUMS +
        item % VXD_REFINE_POSE_SUMS;
    double sum = 0;

    for (size_t part = 0; part < view->n_pose_parts; part++) {
        sum += (double)from[part * VXD_REFINE_POSE_SUMS];
    }
    view->pose_totals[item] = sum;
}

#endif
