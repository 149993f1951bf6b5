// SPDX-License-Identifier: Apache-2.0
/* Points are sorted by their cells, so that sums have one order. The normal of a cell is the least
 * direction of the covariance of all points of it and of its neighbours, where it is much less than
 * the next. */
#include "gpu/relocalize/scan_index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CELLS (1 << 20) /* from the sensor, in each direction */
#define MIN_POINTS 6         /* around a cell that has a normal */
#define FLAT 0.15            /* least over middle eigenvalue of what counts as flat */

void vxd_scan_eigen(int n, double *a, double *v, double *values)
{
    for (int i = 0; i < n * n; i++) {
        v[i] = i % (n + 1) == 0 ? 1 : 0;
    }
    for (int sweep = 0; sweep < 50; sweep++) {
        double off = 0;

        for (int p = 0; p < n; p++) {
            for (int q = p + 1; q < n; q++) {
                double theta;
                double t;
                double c;
                double s;

                off += fabs(a[p * n + q]);
                if (a[p * n + q] == 0) {
                    continue;
                }
                theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
                t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
                c = 1 / sqrt(t * t + 1);
                s = t * c;
                for (int k = 0; k < n; k++) {
                    double x = a[k * n + p];
                    double y = a[k * n + q];

                    a[k * n + p] = c * x - s * y;
                    a[k * n + q] = s * x + c * y;
                }
                for (int k = 0; k < n; k++) {
                    double x = a[p * n + k];
                    double y = a[q * n + k];

                    a[p * n + k] = c * x - s * y;
                    a[q * n + k] = s * x + c * y;
                    x = v[k * n + p];
                    y = v[k * n + q];
                    v[k * n + p] = c * x - s * y;
                    v[k * n + q] = s * x + c * y;
                }
            }
        }
        if (off < 1e-300) {
            break;
        }
    }
    for (int i = 0; i < n; i++) {
        values[i] = a[i * n + i];
    }
    for (int i = 0; i < n; i++) { /* few of them: a selection sort, columns with them */
        int least = i;

        for (int j = i + 1; j < n; j++) {
            least = values[j] < values[least] ? j : least;
        }
        if (least != i) {
            double value = values[i];

            values[i] = values[least];
            values[least] = value;
            for (int k = 0; k < n; k++) {
                double x = v[k * n + i];

                v[k * n + i] = v[k * n + least];
                v[k * n + least] = x;
            }
        }
    }
}

/* --- cells ---------------------------------------------------------------------------------------- */

/* A cell's points as sums, from its own low corner. */
struct sums {
    double n;
    double p[3];
    double pp[6]; /* xx xy xz yy yz zz */
};

struct sorted {
    int32_t key[3];
    uint32_t point;
};

static int compare_keys(const int32_t a[3], const int32_t b[3])
{
    for (int i = 0; i < 3; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_sorted(const void *a, const void *b)
{
    const struct sorted *x = a;
    const struct sorted *y = b;
    int order = compare_keys(x->key, y->key);

    return order != 0 ? order : (x->point > y->point) - (x->point < y->point);
}

static size_t hash_key(const int32_t key[3], size_t n_table)
{
    uint64_t h = (uint64_t)(uint32_t)key[0] * 0x9e3779b97f4a7c15ULL ^
                 (uint64_t)(uint32_t)key[1] * 0xc2b2ae3d27d4eb4fULL ^
                 (uint64_t)(uint32_t)key[2] * 0x165667b19e3779f9ULL;

    h ^= h >> 29;
    return (size_t)(h * 0x9e3779b97f4a7c15ULL >> 20) & (n_table - 1);
}

/* The number of a cell; level->n where there is none. */
static size_t find_cell(const struct vxd_scan_level *level, const int32_t key[3])
{
    size_t at = hash_key(key, level->n_table);

    while (level->table[at] != 0) {
        size_t i = level->table[at] - 1;

        if (compare_keys(level->cells[i].key, key) == 0) {
            return i;
        }
        at = (at + 1) & (level->n_table - 1);
    }
    return level->n;
}

static void add_to_block(struct vxd_scan_level *level, const int32_t key[3])
{
    const int32_t half[3] = {key[0] >> 1, key[1] >> 1, key[2] >> 1};
    size_t at = hash_key(half, level->n_table);

    while (level->blocks[at].cells != 0 &&
           compare_keys(level->blocks[at].key, half) != 0) {
        at = (at + 1) & (level->n_table - 1);
    }
    memcpy(level->blocks[at].key, half, sizeof half);
    level->blocks[at].cells |= 1u << (4 * (key[0] & 1) + 2 * (key[1] & 1) + (key[2] & 1));
}

/* The cells that there are in the eight blocks from `low` on. */
static void find_blocks(const struct vxd_scan_level *level, const int32_t low[3],
                        uint32_t cells[8])
{
    for (int k = 0; k < 8; k++) {
        const int32_t half[3] = {low[0] + (k >> 2), low[1] + (k >> 1 & 1),
                                 low[2] + (k & 1)};
        size_t at = hash_key(half, level->n_table);

        while (level->blocks[at].cells != 0 &&
               compare_keys(level->blocks[at].key, half) != 0) {
            at = (at + 1) & (level->n_table - 1);
        }
        cells[k] = level->blocks[at].cells;
    }
}

const struct vxd_scan_cell *vxd_scan_nearest(const struct vxd_scan_level *level,
                                             const double p[3])
{
    const struct vxd_scan_cell *best = NULL;
    double nearest = level->cell_m * level->cell_m;
    uint32_t cells[8];
    int32_t low[3];
    int32_t key[3];

    for (int i = 0; i < 3; i++) {
        double cell = floor(p[i] / level->cell_m);

        if (!(fabs(cell) < 2.0 * MOST_CELLS)) {
            return NULL;
        }
        key[i] = (int32_t)cell;
        low[i] = (key[i] - 1) >> 1;
    }
    find_blocks(level, low, cells); /* three cells lie in two blocks */
    for (int k = 0; k < 27; k++) {
        const int32_t at[3] = {key[0] + k % 3 - 1, key[1] + k / 3 % 3 - 1,
                               key[2] + k / 9 - 1};
        int block = 4 * ((at[0] >> 1) - low[0]) + 2 * ((at[1] >> 1) - low[1]) +
                    ((at[2] >> 1) - low[2]);
        int bit = 4 * (at[0] & 1) + 2 * (at[1] & 1) + (at[2] & 1);

        if ((cells[block] >> bit & 1) != 0) {
            size_t i = find_cell(level, at);
            const struct vxd_scan_cell *cell = &level->cells[i];
            double dx = (double)cell->mean[0] - p[0];
            double dy = (double)cell->mean[1] - p[1];
            double dz = (double)cell->mean[2] - p[2];
            double square = dx * dx + dy * dy + dz * dz;

            if (square < nearest) {
                nearest = square;
                best = cell;
            }
        }
    }
    return best;
}

/* Adds the sums of a cell that lies (dx, dy, dz) metres from the one that they are for. */
static void add_sums(struct sums *to, const struct sums *from, const double d[3])
{
    int at = 0;

    to->n += from->n;
    for (int i = 0; i < 3; i++) {
        to->p[i] += from->p[i] + from->n * d[i];
        for (int j = i; j < 3; j++, at++) {
            to->pp[at] += from->pp[at] + d[i] * from->p[j] + d[j] * from->p[i] +
                          from->n * d[i] * d[j];
        }
    }
}

static void find_normal(struct vxd_scan_level *level, const struct sums *sums, size_t i)
{
    static const int places[9] = {0, 1, 2, 1, 3, 4, 2, 4, 5};
    struct vxd_scan_cell *cell = &level->cells[i];
    struct sums all = {0};
    double a[9];
    double v[9];
    double values[3];

    for (int k = 0; k < 27; k++) {
        const int32_t step[3] = {k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1};
        const int32_t at[3] = {cell->key[0] + step[0], cell->key[1] + step[1],
                               cell->key[2] + step[2]};
        const double d[3] = {step[0] * level->cell_m, step[1] * level->cell_m,
                             step[2] * level->cell_m};
        size_t other = find_cell(level, at);

        if (other < level->n) {
            add_sums(&all, &sums[other], d);
        }
    }
    if (all.n < MIN_POINTS) {
        return;
    }
    for (int k = 0; k < 9; k++) {
        a[k] = all.pp[places[k]] / all.n - all.p[k / 3] * all.p[k % 3] / (all.n * all.n);
    }
    vxd_scan_eigen(3, a, v, values);
    if (values[1] > 0 && values[0] < FLAT * values[1]) {
        for (int k = 0; k < 3; k++) {
            cell->normal[k] = (float)v[3 * (size_t)k];
        }
    }
}

/* Makes cells of points that are sorted by them.
 * in      sums  capacity n */
static void make_cells(const float *points, const struct sorted *sorted, size_t n,
                       struct vxd_scan_level *level, struct sums *sums)
{
    for (size_t i = 0; i < n; i++) {
        const float *p = points + 3 * (size_t)sorted[i].point;
        struct sums one = {.n = 1};
        const double zero[3] = {0, 0, 0};
        int at = 0;

        if (i == 0 || compare_keys(sorted[i].key, sorted[i - 1].key) != 0) {
            memcpy(level->cells[level->n].key, sorted[i].key, sizeof sorted[i].key);
            level->n++;
        }
        for (int k = 0; k < 3; k++) {
            one.p[k] = (double)p[k] - sorted[i].key[k] * level->cell_m;
        }
        for (int k = 0; k < 3; k++) {
            for (int j = k; j < 3; j++) {
                one.pp[at++] = one.p[k] * one.p[j];
            }
        }
        add_sums(&sums[level->n - 1], &one, zero);
    }
    for (size_t i = 0; i < level->n; i++) {
        struct vxd_scan_cell *cell = &level->cells[i];
        size_t at = hash_key(cell->key, level->n_table);

        for (int k = 0; k < 3; k++) {
            cell->mean[k] =
                (float)(cell->key[k] * level->cell_m + sums[i].p[k] / sums[i].n);
        }
        while (level->table[at] != 0) {
            at = (at + 1) & (level->n_table - 1);
        }
        level->table[at] = (uint32_t)i + 1;
        add_to_block(level, cell->key);
    }
    for (size_t i = 0; i < level->n; i++) {
        find_normal(level, sums, i);
    }
}

static enum vxd_status make_level(const float *points, size_t n, double cell_m,
                                  struct vxd_scan_level *level, struct vxd_err *err)
{
    struct sorted *sorted = malloc((n + 1) * sizeof *sorted);
    struct sums *sums = NULL;
    size_t n_cells = 0;
    size_t n_good = 0;
    enum vxd_status status = VXD_OK;

    level->cell_m = cell_m;
    if (sorted == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scan"));
    }
    for (size_t i = 0; i < n; i++) {
        const float *p = points + 3 * i;
        bool is_good = true;

        for (int k = 0; k < 3; k++) {
            double cell = floor((double)p[k] / cell_m);

            if (!isfinite(p[k])) {
                is_good = false;
            } else if (fabs(cell) > MOST_CELLS) {
                VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud",
                                 "point %zu is %g m from the sensor, at most %g m are "
                                 "possible with cells of %g m",
                                 i, (double)p[k], MOST_CELLS * cell_m, cell_m));
            } else {
                sorted[n_good].key[k] = (int32_t)cell;
            }
        }
        sorted[n_good].point = (uint32_t)i;
        n_good += is_good ? 1 : 0;
    }
    qsort(sorted, n_good, sizeof *sorted, compare_sorted);
    for (size_t i = 0; i < n_good; i++) {
        n_cells += i == 0 || compare_keys(sorted[i].key, sorted[i - 1].key) != 0 ? 1 : 0;
    }
    level->n_table = 16;
    while (level->n_table < 2 * n_cells) {
        level->n_table *= 2;
    }
    level->cells = calloc(n_cells + 1, sizeof *level->cells);
    level->table = calloc(level->n_table, sizeof *level->table);
    level->blocks = calloc(level->n_table, sizeof *level->blocks);
    sums = calloc(n_cells + 1, sizeof *sums);
    if (level->cells == NULL || level->table == NULL || level->blocks == NULL ||
        sums == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scan"));
    }
    make_cells(points, sorted, n_good, level, sums);
out:
    free(sums);
    free(sorted);
    return status;
}

enum vxd_status vxd_scan_create(const float *points, size_t n, double cell_m,
                                struct vxd_scan **out, struct vxd_err *err)
{
    struct vxd_scan *scan = NULL;
    enum vxd_status status = VXD_OK;

    *out = NULL;
    if (!(cell_m >= 0.01 && cell_m <= 10)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "cell_m",
                         "is %g, it must be 0.01 to 10", cell_m));
    }
    if (n > VXD_RELOCALIZE_MAX_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud",
                         "has %zu points, at most %d are possible", n,
                         VXD_RELOCALIZE_MAX_POINTS));
    }
    scan = calloc(1, sizeof *scan);
    if (scan == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scan"));
    }
    VXD_TRY(make_level(points, n, 4 * cell_m, &scan->levels[0], err));
    VXD_TRY(make_level(points, n, cell_m, &scan->levels[1], err));
    *out = scan;
    return VXD_OK;
out:
    vxd_scan_destroy(scan);
    return status;
}

void vxd_scan_destroy(struct vxd_scan *scan)
{
    if (scan != NULL) {
        for (int i = 0; i < 2; i++) {
            free(scan->levels[i].blocks);
            free(scan->levels[i].table);
            free(scan->levels[i].cells);
        }
        free(scan);
    }
}
