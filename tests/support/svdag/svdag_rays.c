// SPDX-License-Identifier: Apache-2.0
#include "tests/support/svdag/svdag_rays.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/gpu/gpu_helpers.h"

/* Times closer than this may be equal in double precision. */
#define NEAR 1e-13L

struct crossing {
    long double t;
    int axis;
};

struct crossings {
    struct crossing *at;
    size_t n;
};

static size_t n_of(const struct gpu_svdag_scan_grid *grid)
{
    return (size_t)(grid->side * grid->side * grid->side);
}

void gpu_svdag_scan_grid_make(struct gpu_svdag_scan_grid *grid, int depth)
{
    *grid = (struct gpu_svdag_scan_grid){.side = (int64_t)1 << depth};
    grid->hit = gpu_alloc(n_of(grid));
    grid->passed = gpu_alloc(n_of(grid));
    grid->value = gpu_alloc(n_of(grid) * sizeof *grid->value);
}

void gpu_svdag_scan_grid_free(struct gpu_svdag_scan_grid *grid)
{
    free(grid->hit);
    free(grid->passed);
    free(grid->value);
}

static int by_time(const void *a, const void *b)
{
    const struct crossing *left = a;
    const struct crossing *right = b;

    return left->t != right->t ? (left->t > right->t) - (left->t < right->t)
                               : left->axis - right->axis;
}

static struct crossings crossings_of(const double origin[3], const long double end[3])
{
    struct crossings all = {NULL, 0};
    long long n = 0;

    for (int a = 0; a < 3; a++) {
        n += llabs((long long)(floorl(end[a]) - floorl(origin[a])));
    }
    all.at = gpu_alloc((size_t)n * sizeof *all.at);
    for (int a = 0; a < 3; a++) {
        long double o = origin[a];
        long double low = floorl(o < end[a] ? o : end[a]);
        long double high = floorl(o < end[a] ? end[a] : o);

        for (long double plane = low + 1; plane <= high; plane++) {
            all.at[all.n++] = (struct crossing){(plane - o) / (end[a] - o), a};
        }
    }
    qsort(all.at, all.n, sizeof *all.at, by_time);
    return all;
}

static long double length_of(const double origin[3], const float point[3])
{
    long double square = 0;

    for (int a = 0; a < 3; a++) {
        long double d = (long double)point[a] - origin[a];

        square += d * d;
    }
    return sqrtl(square);
}

static bool is_finite(const float point[3])
{
    return isfinite(point[0]) && isfinite(point[1]) && isfinite(point[2]);
}

/* Computes where a point's ray would end; returns true if the point is beyond the range. */
static bool reach_of(const struct vxd_svdag_scan *scan, const float point[3],
                     long double end[3])
{
    long double length = length_of(scan->origin, point);
    bool is_beyond = scan->max_range > 0 && length > scan->max_range;

    for (int a = 0; a < 3; a++) {
        long double o = scan->origin[a];

        end[a] = is_beyond ? o + (point[a] - o) * (scan->max_range / length) : point[a];
    }
    return is_beyond;
}

/* The same; rays end in the middle of a cell of 1/256 voxel. */
static bool end_of(const struct vxd_svdag_scan *scan, const float point[3],
                   long double end[3])
{
    bool is_beyond = reach_of(scan, point, end);

    for (int a = 0; a < 3; a++) {
        end[a] = (floorl(end[a] * 256) + 0.5L) / 256;
    }
    return is_beyond;
}

bool gpu_svdag_point_is_clear(const struct vxd_svdag_scan *scan, const float point[3])
{
    struct crossings all;
    long double end[3];
    bool is_clear = true;
    bool is_beyond;

    if (!is_finite(point)) {
        return true;
    }
    if (scan->max_range > 0 &&
        fabsl(length_of(scan->origin, point) - scan->max_range) < 1e-6L) {
        return false;
    }
    is_beyond = reach_of(scan, point, end);
    for (int a = 0; a < 3; a++) {
        long double cell = end[a] * 256;

        is_clear = is_clear && (!is_beyond || fabsl(cell - roundl(cell)) > 1e-6L);
    }
    (void)end_of(scan, point, end);
    if ((is_beyond ? scan->max_range : length_of(scan->origin, point)) >
        VXD_SVDAG_MAX_RAY_VOXELS) {
        return is_clear;
    }
    all = crossings_of(scan->origin, end);
    for (size_t i = 1; i < all.n; i++) {
        is_clear = is_clear && all.at[i].t - all.at[i - 1].t > NEAR;
    }
    free(all.at);
    return is_clear;
}

/* Index of a voxel, -1 outside the grid. */
static int64_t index_of(const struct gpu_svdag_scan_grid *grid, const int64_t voxel[3])
{
    for (int a = 0; a < 3; a++) {
        if (voxel[a] < 0 || voxel[a] >= grid->side) {
            return -1;
        }
    }
    return (voxel[0] * grid->side + voxel[1]) * grid->side + voxel[2];
}

static void cross_ray(struct gpu_svdag_scan_grid *grid, const struct vxd_svdag_scan *scan,
                      const long double end[3])
{
    struct crossings all = crossings_of(scan->origin, end);
    int64_t voxel[3];

    for (int a = 0; a < 3; a++) {
        voxel[a] = (int64_t)floor(scan->origin[a]) + scan->base[a];
    }
    for (size_t i = 0; i < all.n; i++) {
        int axis = all.at[i].axis;

        if (index_of(grid, voxel) >= 0) {
            grid->passed[index_of(grid, voxel)] = 1;
        }
        voxel[axis] += end[axis] > scan->origin[axis] ? 1 : -1;
    }
    free(all.at);
}

void gpu_svdag_scan_grid_run(struct gpu_svdag_scan_grid *grid,
                             const struct vxd_svdag_scan *scan)
{
    memset(grid->hit, 0, n_of(grid));
    memset(grid->passed, 0, n_of(grid));
    grid->n_hit = grid->n_non_finite = grid->n_outside = grid->n_beyond = 0;
    for (size_t i = 0; i < scan->n; i++) {
        const float *point = scan->points + 3 * i;
        long double end[3];
        int64_t voxel[3];
        int64_t index = -1;
        bool is_beyond;
        bool has_ray;

        if (!is_finite(point)) {
            grid->n_non_finite++;
            continue;
        }
        is_beyond = end_of(scan, point, end);
        has_ray = scan->carve && (is_beyond ? scan->max_range
                                            : (double)length_of(scan->origin, point)) <=
                                     VXD_SVDAG_MAX_RAY_VOXELS;
        for (int a = 0; a < 3; a++) {
            voxel[a] =
                fabsf(point[a]) < 1e12f ? (int64_t)floorf(point[a]) + scan->base[a] : -1;
        }
        if (is_beyond) {
            grid->n_beyond++;
        } else {
            index = index_of(grid, voxel);
            grid->n_hit += index >= 0;
            grid->n_outside += index < 0;
        }
        if (index >= 0) {
            has_ray = has_ray && !(scan->discretize && grid->hit[index] != 0);
            grid->hit[index] = 1;
            grid->value[index] =
                scan->values != NULL ? scan->values[i] : (int32_t)scan->value;
        }
        if (has_ray) {
            cross_ray(grid, scan, end);
        }
    }
    for (size_t i = 0; i < n_of(grid); i++) {
        grid->passed[i] = grid->passed[i] && !grid->hit[i];
    }
}

bool gpu_svdag_list_to_grid(const struct vxd_svdag_voxels *list, int64_t side,
                            uint8_t *grid, int32_t *values, uint64_t *n_voxels)
{
    uint32_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        int64_t leaf[3] = {0, 0, 0};

        if ((i > 0 && list->codes[i] <= list->codes[i - 1]) || list->masks[i] == 0 ||
            (list->first_value != NULL && list->first_value[i] != n)) {
            return false;
        }
        for (int bit = 0; bit < 63; bit++) {
            leaf[2 - bit % 3] |= (int64_t)(list->codes[i] >> bit & 1) << (bit / 3 + 2);
        }
        for (int bit = 0; bit < 64; bit++) {
            int64_t x = leaf[0] + (bit >> 5 & 1) * 2 + (bit >> 2 & 1);
            int64_t y = leaf[1] + (bit >> 4 & 1) * 2 + (bit >> 1 & 1);
            int64_t z = leaf[2] + (bit >> 3 & 1) * 2 + (bit & 1);

            if ((list->masks[i] >> bit & 1) == 0) {
                continue;
            }
            if (x >= side || y >= side || z >= side) {
                return false;
            }
            grid[(x * side + y) * side + z] = 1;
            if (values != NULL && list->values != NULL) {
                values[(x * side + y) * side + z] = list->values[n];
            }
            n++;
        }
    }
    *n_voxels = n;
    return true;
}

size_t gpu_svdag_scan_grid_compare(const struct gpu_svdag_scan_grid *grid,
                                   const struct vxd_svdag_scan_result *result)
{
    uint8_t *hit = gpu_alloc(n_of(grid));
    uint8_t *passed = gpu_alloc(n_of(grid));
    int32_t *value = gpu_alloc(n_of(grid) * sizeof *value);
    uint64_t n_hit = 0;
    uint64_t n_passed = 0;
    size_t n_wrong = 0;

    memset(hit, 0, n_of(grid));
    memset(passed, 0, n_of(grid));
    n_wrong +=
        !gpu_svdag_list_to_grid(&result->hits.voxels, grid->side, hit, value, &n_hit);
    n_wrong += !gpu_svdag_list_to_grid(&result->passed.voxels, grid->side, passed, NULL,
                                       &n_passed);
    for (size_t i = 0; i < n_of(grid); i++) {
        n_wrong += hit[i] != grid->hit[i] || passed[i] != grid->passed[i] ||
                   (hit[i] != 0 && value[i] != grid->value[i]);
    }
    n_wrong += result->n_hit_voxels != n_hit;
    n_wrong += result->n_passed_voxels != n_passed;
    n_wrong += result->n_hit != grid->n_hit;
    n_wrong += result->n_non_finite != grid->n_non_finite;
    n_wrong += result->n_outside != grid->n_outside;
    n_wrong += result->n_beyond != grid->n_beyond;
    free(hit);
    free(passed);
    free(value);
    return n_wrong;
}
