// SPDX-License-Identifier: Apache-2.0
/* The arithmetic of SLAC, the same bits on both backends: a function a step and item, over a state
 * that both share. slac.cu is compiled without fused multiply-adds, as C is, so plain expressions
 * round the same way.
 *
 * A pair is seen from both of its points, as an entry of a list that each point has: from p it pulls
 * with W (d_p - d_q), from q with the negative, where d are the points' displacements and W is n n^T
 * (to planes) or 1. The normal equations times a vector are then sums over points, cells and control
 * points, each in one fixed order; the gradient is the same sums with positions in place of
 * displacements. */
#ifndef VXD_GPU_SLAC_SLAC_MATH_H
#define VXD_GPU_SLAC_SLAC_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/deform/deform_math.h"
#include "gpu/slac/slac.h"

#define VXD_SLAC_TILE 128        /* source points of one edge that are matched together */
#define VXD_SLAC_STRIP 64        /* points of one fragment whose sums are one */
#define VXD_SLAC_CHUNK 64        /* points of one cell whose sums are one */
#define VXD_SLAC_LANES 1024      /* of sums over all unknowns */
#define VXD_SLAC_REACH 30000     /* voxels and cells from the origin at most */
#define VXD_SLAC_MIN_COSINE 0.5f /* between the normals of a pair */
#define VXD_SLAC_AGREE                                                                   \
    0.5 /* mean length of a voxel's normals, for which points are averaged */
#define VXD_SLAC_DAMPING 1e-6
#define VXD_SLAC_NO_KEY UINT64_MAX

/* Part of an edge: n source points from `first` on. */
struct vxd_slac_tile {
    uint32_t first;
    uint32_t n;
    uint32_t edge;
    int32_t target;
};

/* Part of a fragment, or of the list of points by cell. */
struct vxd_slac_range {
    uint32_t first;
    uint32_t n;
    int32_t owner; /* fragment or cell */
};

/* A run of points in one cell of the search, in the sorted list. */
struct vxd_slac_slot {
    uint64_t key;
    uint32_t first;
    uint32_t n;
};

/* A point as the search reads it. */
struct vxd_slac_seen {
    float at[3];
    float normal[3];
    int32_t point;
    int32_t unused;
};

/* What a point's list has of a pair. */
struct vxd_slac_link {
    float normal[3]; /* times the pair's weight; points: the weight */
    int32_t other;
};

/* The solver's numbers, in device memory. */
struct vxd_slac_work {
    double rz;
    double first_rz;
    int32_t is_done;
    int32_t n_steps;
};

struct vxd_slac_state {
    size_t n_raw; /* of the fragments as they came */
    size_t n_points;
    size_t n_cells;
    size_t n_nodes; /* control points */
    size_t n_fragments;
    size_t n_unknowns; /* 3 * n_nodes + 6 * n_fragments: the first pose's stay 0 */
    size_t n_strips;
    size_t n_chunks;
    size_t n_tiles;
    size_t n_pairs;
    int is_rigid;
    int is_plane;
    float search_m; /* edge of the search's cells: twice the distance of pairs */
    float distance2;
    double robust2; /* pairs as far apart as its root count a quarter */
    double voxel_m;
    double cell_m;
    double lambda;
    double tolerance2;
    double scale; /* that is taken out of the scene */

    /* Before the points are thinned out. */
    const float *raw_points; /* of one fragment at a time */
    const float *raw_normals;
    size_t raw_first;
    double raw_origin[3];
    int32_t raw_fragment;
    int raw_has_normals; /* all fragments have them */
    float *raw_at;
    float *raw_normal;
    int32_t *raw_keys; /* 4 a point: fragment and voxel */
    uint8_t *raw_new;
    uint32_t
        *raw_flags; /* n_raw + 1: 1 where a voxel's first point is, then where it goes */
    int32_t *raw_entries;   /* the number of each point's voxel */
    uint64_t *member_keys;  /* the same, ascending, */
    uint32_t *members;      /* and the points in that order; of one voxel as they came */
    uint32_t *member_begin; /* of a voxel's first point: where its points begin there */
    uint64_t *order_keys;
    uint32_t *order;
    float *kept_at;
    float *kept_normals;
    int32_t *kept_fragment;

    /* Points: by fragment, then by the Morton code of their cell. */
    float *at; /* 3 a point, as all vectors; the fragment's frame */
    float *normals;
    int32_t *fragment;
    int32_t *cell;
    int32_t *cell_keys;
    float *part; /* where in the cell */

    /* The grid. */
    const int32_t *map_cells; /* keys of cells */
    int32_t *corner_keys;
    int32_t *cell_nodes;      /* 8 a cell */
    const int32_t *node_keys; /* 3 a control point */
    int32_t *node_ring;       /* 6 a control point, as VXD_NEIGHBOURS_6 */
    int32_t *node_cells;      /* 8: the cell of which it is corner k */
    uint32_t *by_cell;        /* points */
    struct vxd_slac_range *chunks;
    uint32_t *cell_chunks; /* n_cells + 1: where each cell's chunks begin */
    float *offsets;
    float *rotations; /* quaternions x y z w */

    /* Fragments. */
    double *poses; /* 12: rotation, translation from the map's middle */
    struct vxd_slac_range *strips;
    uint32_t *fragment_strips; /* n_fragments + 1 */

    /* Where the points are now, and the search. */
    double *placed; /* map frame */
    float *placed_normals;
    uint64_t *search_keys;
    uint32_t *search_points;
    struct vxd_slac_seen *seen;
    struct vxd_slac_slot *slots;
    uint32_t slot_mask;

    /* Pairs. */
    const struct vxd_slac_tile *tiles;
    int32_t *partners;     /* VXD_SLAC_TILE a tile; -1: none */
    uint32_t *tile_counts; /* pairs a tile */
    uint32_t *tile_firsts; /* where its pairs go; UINT32_MAX: its edge does not count */
    int32_t *pairs;        /* 2 a pair: source and target point */
    uint64_t *link_keys;   /* points, sorted */
    uint32_t *link_values; /* pair * 2 + side */
    struct vxd_slac_link *links;
    uint32_t *link_firsts; /* n_points + 1 */

    /* The solver. */
    double *displaced; /* a point */
    double *forces;    /* map frame */
    double *pulls;     /* the same in the fragment's frame */
    double *blocks; /* 12 a point: sums of W, in the map's frame and in the fragment's */
    double *chunk_sums;   /* 24 a chunk */
    double *chunk_blocks; /* 48 */
    double *strip_sums;   /* 6 a strip */
    double *strip_blocks; /* 21 */
    double *strip_losses;
    double *node_losses;
    double *damping;  /* a control point */
    double *inverses; /* 9 a control point, 36 a pose */
    double *x;
    double *r;
    double *z;
    double *p;
    double *q; /* the matrix times p */
    struct vxd_slac_work *work;
};

/* ---- Small things ---- */

VXD_HD uint64_t vxd_slac_claim(uint64_t *at, uint64_t key)
{
#if defined(__CUDA_ARCH__)
    return atomicCAS((unsigned long long *)at, (unsigned long long)VXD_SLAC_NO_KEY,
                     (unsigned long long)key);
#elif defined(__CUDACC__)
    uint64_t here = *at;

    *at = here == VXD_SLAC_NO_KEY ? key : here;
    return here;
#else
    uint64_t here = VXD_SLAC_NO_KEY;

    (void)__atomic_compare_exchange_n(at, &here, key, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
    return here;
#endif
}

VXD_HD void vxd_slac_rotate(const double r[9], const double v[3], double out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = r[3 * (size_t)i] * v[0] + r[3 * (size_t)i + 1] * v[1] +
                 r[3 * (size_t)i + 2] * v[2];
    }
}

VXD_HD void vxd_slac_rotate_back(const double r[9], const double v[3], double out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = r[i] * v[0] + r[3 + i] * v[1] + r[6 + i] * v[2];
    }
}

VXD_HD void vxd_slac_cross(const double a[3], const double b[3], double out[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

/* The eight weights of a point in its cell. */
VXD_HD void vxd_slac_weights(const float part[3], double out[8])
{
    double x = (double)part[0];
    double y = (double)part[1];
    double z = (double)part[2];
    double xy[4] = {(1 - x) * (1 - y), (1 - x) * y, x * (1 - y), x * y};

    VXD_UNROLL
    for (int k = 0; k < 4; k++) {
        out[2 * (size_t)k] = xy[k] * (1 - z);
        out[2 * (size_t)k + 1] = xy[k] * z;
    }
}

/* The first item not below `value` in n ascending ones. */
VXD_HD uint32_t vxd_slac_lower(const int32_t *items, uint32_t n, int32_t value)
{
    uint32_t low = 0;

    while (n > 0) {
        uint32_t half = n / 2;
        bool is_below = items[low + half] < value;

        low = is_below ? low + half + 1 : low;
        n = is_below ? n - half - 1 : half;
    }
    return low;
}

/* ---- Rotations ---- */

VXD_HD void vxd_slac_rotation_of(const double q[4], double r[9])
{
    double x = q[0];
    double y = q[1];
    double z = q[2];
    double w = q[3];

    r[0] = 1 - 2 * (y * y + z * z);
    r[1] = 2 * (x * y - z * w);
    r[2] = 2 * (x * z + y * w);
    r[3] = 2 * (x * y + z * w);
    r[4] = 1 - 2 * (x * x + z * z);
    r[5] = 2 * (y * z - x * w);
    r[6] = 2 * (x * z - y * w);
    r[7] = 2 * (y * z + x * w);
    r[8] = 1 - 2 * (x * x + y * y);
}

/* q <- the small rotation `by` times q, unit length. */
VXD_HD void vxd_slac_turn(const double by[3], double q[4])
{
    double a[4] = {by[0] / 2, by[1] / 2, by[2] / 2, 1};
    double out[4];
    double length;

    out[0] = a[3] * q[0] + a[0] * q[3] + a[1] * q[2] - a[2] * q[1];
    out[1] = a[3] * q[1] - a[0] * q[2] + a[1] * q[3] + a[2] * q[0];
    out[2] = a[3] * q[2] + a[0] * q[1] - a[1] * q[0] + a[2] * q[3];
    out[3] = a[3] * q[3] - a[0] * q[0] - a[1] * q[1] - a[2] * q[2];
    length = sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2] + out[3] * out[3]);
    for (int i = 0; i < 4; i++) {
        q[i] = out[i] / length;
    }
}

/* The rotation R nearest to S, row-major: that of the largest trace of R^T S, which is the
 * orthogonal part of S's polar decomposition, or of its singular values with the sign of the least
 * one changed. From a guess q, by turns that vanish where the columns of R and S agree; where S
 * leaves a turn open (a single neighbour) the guess stays.
 * source  Mueller and others, A Robust Method to Extract the Rotational Part of Deformations, 2016 */
VXD_HD void vxd_slac_polar(const double s[9], double q[4])
{
    for (int step = 0; step < 64; step++) {
        double r[9];
        double by[3] = {0, 0, 0};
        double dots = 0;
        double size = 0;

        vxd_slac_rotation_of(q, r);
        for (int j = 0; j < 3; j++) {
            double a[3] = {r[j], r[3 + j], r[6 + j]};
            double b[3] = {s[j], s[3 + j], s[6 + j]};
            double c[3];

            vxd_slac_cross(a, b, c);
            for (int i = 0; i < 3; i++) {
                by[i] += c[i];
                size += b[i] * b[i];
            }
            dots += a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        }
        dots = fabs(dots) + 1e-12 * sqrt(size) + 1e-300;
        for (int i = 0; i < 3; i++) {
            by[i] /= dots;
        }
        vxd_slac_turn(by, q);
        if (by[0] * by[0] + by[1] * by[1] + by[2] * by[2] < 1e-24) {
            break;
        }
    }
}

/* ---- Fragments to points ---- */

/* A raw point: its place, its voxel; not finite or too far is not kept. */
VXD_HD void vxd_slac_take_one(const struct vxd_slac_state *s, size_t i)
{
    const float *in = s->raw_points + 3 * i;
    size_t to = s->raw_first + i;
    bool is_kept = vxd_deform_is_finite(in);

    s->raw_keys[4 * to] = s->raw_fragment;
    for (int a = 0; a < 3; a++) {
        double p = (double)in[a] + s->raw_origin[a];
        double voxel = floor(p / s->voxel_m);
        double cell = floor(p / s->cell_m);
        float n = s->raw_normals != NULL ? s->raw_normals[3 * i + (size_t)a] : 0;

        is_kept = is_kept && fabs(p) <= 1e4 && fabs(cell) <= VXD_SLAC_REACH &&
                  n - n == 0 && fabs(p / (double)s->search_m) <= 65000;
        s->raw_at[3 * to + (size_t)a] = (float)p;
        s->raw_normal[3 * to + (size_t)a] = n;
        voxel = voxel > -1e9 ? voxel : -1e9; /* NaN, too */
        s->raw_keys[4 * to + 1 + (size_t)a] = (int32_t)(voxel < 1e9 ? voxel : 1e9);
    }
    if (!is_kept) { /* no other point has this key's first component */
        s->raw_keys[4 * to] = -1;
    }
}

VXD_HD void vxd_slac_flag_one(const struct vxd_slac_state *s, size_t i)
{
    s->raw_flags[i] = s->raw_new[i] != 0 && s->raw_keys[4 * i] >= 0 ? 1 : 0;
}

VXD_HD void vxd_slac_member_one(const struct vxd_slac_state *s, size_t i)
{
    s->member_keys[i] = (uint64_t)(uint32_t)s->raw_entries[i];
    s->members[i] = (uint32_t)i;
}

VXD_HD void vxd_slac_begin_one(const struct vxd_slac_state *s, size_t k)
{
    if (k == 0 || s->member_keys[k - 1] != s->member_keys[k]) {
        s->member_begin[s->members[k]] = (uint32_t)k;
    }
}

/* The mean of a voxel's points and normals, by which most of their noise goes. Where normals are
 * against each other, as on both sides of a leaf, the first point stays as it is. */
VXD_HD void vxd_slac_mean(const struct vxd_slac_state *s, size_t first, float at[3],
                          float normal[3])
{
    size_t begin = s->member_begin[first];
    double points[3] = {0, 0, 0};
    double normals[3] = {0, 0, 0};
    double n = 0;
    double squares;
    double length;

    for (size_t k = begin; k < s->n_raw && s->member_keys[k] == s->member_keys[begin];
         k++) {
        size_t i = s->members[k];

        for (int a = 0; a < 3; a++) {
            points[a] += (double)s->raw_at[3 * i + (size_t)a];
            normals[a] += (double)s->raw_normal[3 * i + (size_t)a];
        }
        n += 1;
    }
    squares = normals[0] * normals[0] + normals[1] * normals[1] + normals[2] * normals[2];
    length = sqrt(squares);
    for (int a = 0; a < 3; a++) {
        bool is_mean = s->raw_has_normals == 0 || length > VXD_SLAC_AGREE * n;

        at[a] = is_mean ? (float)(points[a] / n) : s->raw_at[3 * first + (size_t)a];
        normal[a] = is_mean && length > 0 ? (float)(normals[a] / length)
                                          : s->raw_normal[3 * first + (size_t)a];
    }
}

/* The order of points: by fragment, then by the Morton code of their cell. */
VXD_HD void vxd_slac_keep_one(const struct vxd_slac_state *s, size_t i)
{
    float at[3];
    float normal[3];
    uint32_t to = s->raw_flags[i];
    uint64_t code = (uint64_t)s->raw_keys[4 * i] << 48;

    if (s->raw_flags[i + 1] == to) {
        return;
    }
    vxd_slac_mean(s, i, at, normal);
    for (int a = 0; a < 3; a++) {
        double cell = floor((double)at[a] / s->cell_m);

        s->kept_at[3 * (size_t)to + (size_t)a] = at[a];
        s->kept_normals[3 * (size_t)to + (size_t)a] = normal[a];
        code |= vxd_spread3((uint64_t)(int64_t)(cell + 32768)) << (2 - a);
    }
    s->kept_fragment[to] = s->raw_keys[4 * i];
    s->order_keys[to] = code;
    s->order[to] = to;
}

/* Puts a point where its order says, and finds its cell. */
VXD_HD void vxd_slac_order_one(const struct vxd_slac_state *s, size_t i)
{
    size_t from = s->order[i];

    for (int a = 0; a < 3; a++) {
        float p = s->kept_at[3 * from + (size_t)a];
        double at = (double)p / s->cell_m;
        double low = floor(at);

        s->at[3 * i + (size_t)a] = p;
        s->normals[3 * i + (size_t)a] = s->kept_normals[3 * from + (size_t)a];
        if (s->is_rigid == 0) {
            s->cell_keys[3 * i + (size_t)a] = (int32_t)low;
            s->part[3 * i + (size_t)a] = (float)(at - low);
        }
    }
    s->fragment[i] = s->kept_fragment[from];
}

VXD_HD void vxd_slac_corner_one(const struct vxd_slac_state *s, size_t i)
{
    const int32_t *key = s->map_cells + 3 * (i / 8);
    int k = (int)(i % 8);

    s->corner_keys[3 * i] = key[0] + (k >> 2 & 1);
    s->corner_keys[3 * i + 1] = key[1] + (k >> 1 & 1);
    s->corner_keys[3 * i + 2] = key[2] + (k & 1);
}

/* Makes control points know the cells of which they are corners. */
VXD_HD void vxd_slac_owner_one(const struct vxd_slac_state *s, size_t i)
{
    s->node_cells[8 * (size_t)s->cell_nodes[i] + i % 8] = (int32_t)(i / 8);
}

VXD_HD void vxd_slac_node_one(const struct vxd_slac_state *s, size_t i)
{
    s->rotations[4 * i + 3] = 1;
}

VXD_HD void vxd_slac_cell_order_one(const struct vxd_slac_state *s, size_t i)
{
    s->order_keys[i] = (uint64_t)(uint32_t)s->cell[i];
    s->order[i] = (uint32_t)i;
}

/* ---- Where points are ---- */

/* C of a point and the derivative there, from the corners' offsets. */
VXD_HD void vxd_slac_embed(const struct vxd_slac_state *s, size_t i, double at[3],
                           double J[9])
{
    const int32_t *nodes = s->cell_nodes + 8 * (size_t)s->cell[i];
    const float *part = s->part + 3 * i;
    double weights[8];
    struct vxd_deform_cell cell;
    const double where[3] = {(double)part[0], (double)part[1], (double)part[2]};

    vxd_slac_weights(part, weights);
    cell.known = 0xffu;
    for (int k = 0; k < 8; k++) {
        for (int a = 0; a < 3; a++) {
            cell.offsets[k][a] = s->offsets[3 * (size_t)nodes[k] + (size_t)a];
            at[a] += weights[k] * (double)cell.offsets[k][a];
        }
    }
    vxd_deform_derivative(&cell, where, s->cell_m, J);
}

/* The search's key of a cell; NO_KEY beyond its range. */
VXD_HD uint64_t vxd_slac_search_key(int32_t fragment, const int32_t cell[3])
{
    uint64_t key = (uint64_t)(uint32_t)fragment;

    for (int a = 0; a < 3; a++) {
        if (cell[a] < -131072 || cell[a] > 131071) {
            return VXD_SLAC_NO_KEY;
        }
        key = key << 18 | (uint64_t)(uint32_t)(cell[a] + 131072);
    }
    return key;
}

VXD_HD int32_t vxd_slac_floor(float a)
{
    a = floorf(a);
    a = a > -1e9f ? a : -1e9f; /* NaN, too */
    return (int32_t)(a < 1e9f ? a : 1e9f);
}

VXD_HD void vxd_slac_place_one(const struct vxd_slac_state *s, size_t i)
{
    const double *pose = s->poses + 12 * (size_t)s->fragment[i];
    double at[3];
    double n[3];
    double moved[3];
    double J[9];
    int32_t cell[3];

    for (int a = 0; a < 3; a++) {
        at[a] = (double)s->at[3 * i + (size_t)a];
        n[a] = (double)s->normals[3 * i + (size_t)a];
    }
    if (s->is_rigid == 0) {
        vxd_slac_embed(s, i, at, J);
        vxd_deform_normal(J, n, moved);
        for (int a = 0; a < 3; a++) {
            n[a] = moved[a];
        }
    }
    vxd_slac_rotate(pose, n, moved);
    for (int a = 0; a < 3; a++) {
        double p = pose[3 * (size_t)a] * at[0] + pose[3 * (size_t)a + 1] * at[1] +
                   pose[3 * (size_t)a + 2] * at[2] + pose[9 + a];

        s->placed[3 * i + (size_t)a] = p;
        s->placed_normals[3 * i + (size_t)a] = (float)moved[a];
        cell[a] = vxd_slac_floor((float)p / s->search_m);
    }
    s->search_keys[i] = vxd_slac_search_key(s->fragment[i], cell);
    s->search_points[i] = (uint32_t)i;
}

/* ---- The search ---- */

VXD_HD uint32_t vxd_slac_slot_of(const struct vxd_slac_state *s, uint64_t key)
{
    return vxd_deform_hash(key) & s->slot_mask;
}

/* Item i of the sorted list: what the search reads of it, and, of the first in a cell, its slot. */
VXD_HD void vxd_slac_index_one(const struct vxd_slac_state *s, size_t i)
{
    size_t point = s->search_points[i];
    uint64_t key = s->search_keys[i];
    struct vxd_slac_seen *seen = &s->seen[i];
    uint32_t slot = vxd_slac_slot_of(s, key);
    size_t end = i + 1;

    for (int a = 0; a < 3; a++) {
        seen->at[a] = (float)s->placed[3 * point + (size_t)a];
        seen->normal[a] = s->placed_normals[3 * point + (size_t)a];
    }
    seen->point = (int32_t)point;
    seen->unused = 0;
    if (key == VXD_SLAC_NO_KEY || (i > 0 && s->search_keys[i - 1] == key)) {
        return;
    }
    while (end < s->n_points && s->search_keys[end] == key) {
        end++;
    }
    while (vxd_slac_claim(&s->slots[slot].key, key) != VXD_SLAC_NO_KEY) {
        slot = (slot + 1) &
               s->slot_mask; /* keys are put once, half of the slots stay free */
    }
    s->slots[slot].first = (uint32_t)i;
    s->slots[slot].n = (uint32_t)(end - i);
}

/* Looks at one cell of the search; keeps the nearest, of equal ones the first. */
VXD_HD void vxd_slac_look(const struct vxd_slac_state *s, uint64_t key, const float at[3],
                          const float n[3], float *nearest, int32_t *found)
{
    uint32_t slot = vxd_slac_slot_of(s, key);

    while (s->slots[slot].key != key) {
        if (s->slots[slot].key == VXD_SLAC_NO_KEY) {
            return;
        }
        slot = (slot + 1) & s->slot_mask;
    }
    for (uint32_t i = 0; i < s->slots[slot].n; i++) {
        const struct vxd_slac_seen *seen = &s->seen[s->slots[slot].first + i];
        float x = seen->at[0] - at[0];
        float y = seen->at[1] - at[1];
        float z = seen->at[2] - at[2];
        float d = x * x + y * y + z * z;
        bool fits = s->is_plane == 0 || seen->normal[0] * n[0] + seen->normal[1] * n[1] +
                                                seen->normal[2] * n[2] >=
                                            VXD_SLAC_MIN_COSINE;

        if (fits && (d < *nearest || (d == *nearest && seen->point < *found))) {
            *nearest = d;
            *found = seen->point;
        }
    }
}

/* Partner of the i-th place of all tiles. */
VXD_HD void vxd_slac_match_one(const struct vxd_slac_state *s, size_t i)
{
    const struct vxd_slac_tile *tile = &s->tiles[i / VXD_SLAC_TILE];
    size_t lane = i % VXD_SLAC_TILE;
    size_t point = tile->first + lane;
    float nearest = s->distance2;
    int32_t found = INT32_MAX;
    int32_t low[3];
    float at[3];

    s->partners[i] = -1;
    if (lane >= tile->n) {
        return;
    }
    for (int a = 0; a < 3; a++) {
        at[a] = (float)s->placed[3 * point + (size_t)a];
        low[a] = vxd_slac_floor(at[a] / s->search_m - 0.5f);
    }
    for (int k = 0; k < 8; k++) {
        const int32_t cell[3] = {low[0] + (k >> 2 & 1), low[1] + (k >> 1 & 1),
                                 low[2] + (k & 1)};
        uint64_t key = vxd_slac_search_key(tile->target, cell);

        if (key != VXD_SLAC_NO_KEY) {
            vxd_slac_look(s, key, at, s->placed_normals + 3 * point, &nearest, &found);
        }
    }
    s->partners[i] = found != INT32_MAX ? found : -1;
}

VXD_HD void vxd_slac_count_one(const struct vxd_slac_state *s, size_t i)
{
    uint32_t n = 0;

    for (size_t k = 0; k < VXD_SLAC_TILE; k++) {
        n += s->partners[i * VXD_SLAC_TILE + k] >= 0 ? 1 : 0;
    }
    s->tile_counts[i] = n;
}

/* Lists the pairs of a tile's edge, if it counts, and asks for their places in both points' lists. */
VXD_HD void vxd_slac_pair_one(const struct vxd_slac_state *s, size_t i)
{
    size_t tile = i / VXD_SLAC_TILE;
    size_t lane = i % VXD_SLAC_TILE;
    const int32_t *partners = s->partners + tile * VXD_SLAC_TILE;
    uint32_t first = s->tile_firsts[tile];
    size_t pair;

    if (first == UINT32_MAX || partners[lane] < 0) {
        return;
    }
    for (size_t k = 0; k < lane; k++) {
        first += partners[k] >= 0 ? 1 : 0;
    }
    pair = first;
    s->pairs[2 * pair] = (int32_t)(s->tiles[tile].first + lane);
    s->pairs[2 * pair + 1] = partners[lane];
    for (size_t side = 0; side < 2; side++) {
        s->link_keys[2 * pair + side] = (uint64_t)(uint32_t)s->pairs[2 * pair + side];
        s->link_values[2 * pair + side] = (uint32_t)(2 * pair + side);
    }
}

/* The direction in which a pair's distance is taken: between the normals of both, since each has the
 * noise of its fragment. They are within 60 degrees. */
VXD_HD void vxd_slac_pair_normal(const struct vxd_slac_state *s, const int32_t pair[2],
                                 float out[3])
{
    const float *a = s->placed_normals + 3 * (size_t)pair[0];
    const float *b = s->placed_normals + 3 * (size_t)pair[1];
    float squares = 0;
    float length;

    for (int k = 0; k < 3; k++) {
        out[k] = a[k] + b[k];
        squares += out[k] * out[k];
    }
    length = sqrtf(squares);
    for (int k = 0; k < 3; k++) {
        out[k] /= length;
    }
}

/* Item i of the sorted links; where a point's list begins, for it and those before it without. A pair
 * counts less the farther apart it is (Geman and McClure): its normal is so much shorter. */
VXD_HD void vxd_slac_link_one(const struct vxd_slac_state *s, size_t i)
{
    uint32_t value = s->link_values[i];
    const int32_t *pair = s->pairs + 2 * (size_t)(value / 2);
    const double *at = s->placed + 3 * (size_t)pair[0];
    const double *to = s->placed + 3 * (size_t)pair[1];
    float normal[3] = {0, 0, 0};
    size_t point = (size_t)s->link_keys[i];
    size_t from = i > 0 ? (size_t)s->link_keys[i - 1] + 1 : 0;
    double along = 0;
    double squares = 0;
    float weight;

    if (s->is_plane != 0) {
        vxd_slac_pair_normal(s, pair, normal);
    }
    for (int a = 0; a < 3; a++) {
        double d = at[a] - to[a];

        along += (double)normal[a] * d;
        squares += d * d;
    }
    squares = s->is_plane != 0 ? along * along : squares;
    weight = (float)(1 / (1 + squares / s->robust2));
    for (int a = 0; a < 3; a++) {
        s->links[i].normal[a] = s->is_plane != 0 ? normal[a] * weight : weight;
    }
    s->links[i].other = pair[1 - value % 2];
    for (size_t k = from; k <= point; k++) {
        s->link_firsts[k] = (uint32_t)i;
    }
    for (size_t k = point + 1; i + 1 == 2 * s->n_pairs && k <= s->n_points; k++) {
        s->link_firsts[k] = (uint32_t)(2 * s->n_pairs);
    }
}

#endif
