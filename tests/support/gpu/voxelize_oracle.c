// SPDX-License-Identifier: Apache-2.0
#include "tests/support/gpu/voxelize_oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
    uint32_t sample;
    uint64_t morton;
    uint32_t index;
    int32_t c[3];
};

struct group {
    const struct item *items;
    uint32_t n;
    bool survives;
    uint32_t id;
};

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;

    if (x->sample != y->sample) {
        return x->sample < y->sample ? -1 : 1;
    }
    if (x->morton != y->morton) {
        return x->morton < y->morton ? -1 : 1;
    }
    return x->index < y->index ? -1 : x->index > y->index ? 1 : 0;
}

static int compare_first_points(const void *a, const void *b)
{
    const struct group *const *x = a;
    const struct group *const *y = b;

    return (*x)->items[0].index < (*y)->items[0].index ? -1 : 1;
}

static uint64_t morton_bit_by_bit(const int32_t c[3])
{
    uint64_t code = 0;

    for (int level = 20; level >= 0; level--) {
        for (int axis = 0; axis < 3; axis++) {
            uint32_t biased = (uint32_t)(c[axis] + 1048576);

            code = code * 2 + (biased >> level) % 2;
        }
    }
    return code;
}

/* Returns 0 for kept, 1 for not finite, 2 for out of range. */
static int place(const struct vxd_voxelize_args *args, const float *p, int32_t c[3])
{
    for (int axis = 0; axis < 3; axis++) {
        if (isnan(p[axis]) || isinf(p[axis])) {
            return 1;
        }
    }
    for (int axis = 0; axis < 3; axis++) {
        float lo = args->range_lo_m[axis];
        float hi = args->range_hi_m[axis];
        float size = args->size_m[axis];
        float cell;

        if (args->rule == VXD_RULE_SPCONV) {
            float extent = hi - lo;
            float grid = roundf(extent / size);
            float offset = p[axis] - lo;

            cell = floorf(offset / size);
            if (cell < 0 || cell >= grid) {
                return 2;
            }
        } else {
            cell = floorf(p[axis] / size);
            if (cell < -1048576.0f || cell > 1048575.0f) {
                return 2;
            }
            if (args->has_range && (p[axis] < lo || p[axis] >= hi)) {
                return 2;
            }
        }
        c[axis] = (int32_t)cell;
    }
    return 0;
}

static float one_nan(float value)
{
    uint32_t bits = 0x7fc00000u;

    if (isnan(value)) {
        memcpy(&value, &bits, sizeof value);
    }
    return value;
}

static void reduce(const struct vxd_voxelize_args *args, const struct group *group,
                   uint32_t n, struct gpu_voxels *out)
{
    size_t n_channels = (size_t)args->n_channels;

    for (size_t c = 0; c < n_channels; c++) {
        float first = args->features[group->items[0].index * n_channels + c];
        float min = first;
        float max = first;
        float total = 0;
        float block = 0;
        size_t at = group->id * n_channels + c;

        for (uint32_t i = 0; i < n; i++) {
            float value = args->features[group->items[i].index * n_channels + c];

            if (value < min) {
                min = value;
            }
            if (value > max) {
                max = value;
            }
            block = i % 1024 == 0 ? value : block + value;
            if (i % 1024 == 1023 || i == n - 1) {
                total = i < 1024 ? block : total + block;
            }
            if (out->points != NULL) {
                out->points[((size_t)group->id * args->max_points + i) * n_channels + c] =
                    value;
            }
        }
        out->first[at] = first;
        out->min[at] = min;
        out->max[at] = max;
        out->sum[at] = one_nan(total);
        out->mean[at] = one_nan(total / (float)n);
    }
}

static void allocate(const struct vxd_voxelize_args *args, struct gpu_voxels *out)
{
    size_t n = args->n_points;
    size_t n_batch = (size_t)args->n_batch;
    size_t row = (size_t)args->n_channels * sizeof(float);

    out->totals = calloc(n_batch, sizeof *out->totals);
    out->starts = calloc(n_batch + 1, sizeof *out->starts);
    out->coords = gpu_alloc(n * 4 * sizeof *out->coords);
    out->counts = gpu_alloc(n * sizeof *out->counts);
    out->inverse = gpu_alloc(n * sizeof *out->inverse);
    out->first_point = gpu_alloc(n * sizeof *out->first_point);
    out->mean = gpu_alloc(n * row);
    out->sum = gpu_alloc(n * row);
    out->min = gpu_alloc(n * row);
    out->max = gpu_alloc(n * row);
    out->first = gpu_alloc(n * row);
    out->points = NULL;
    if (args->max_points > 0 && args->max_voxels > 0) {
        out->points = calloc(vxd_voxelize_capacity(args) * args->max_points + 1, row + 1);
    }
    if (out->totals == NULL || out->starts == NULL) {
        exit(EXIT_FAILURE);
    }
}

/* Numbers the voxels of each sample that the cap keeps, and thereby their rows. */
static void number(const struct vxd_voxelize_args *args, struct group *groups,
                   size_t n_groups, struct gpu_voxels *out)
{
    const struct group **by_first = gpu_alloc(n_groups * sizeof(struct group *));
    size_t begin = 0;

    for (size_t i = 0; i < n_groups; i++) {
        by_first[i] = &groups[i];
    }
    out->n_voxels = 0;
    for (uint32_t s = 0; s < (uint32_t)args->n_batch; s++) {
        size_t end = begin;
        uint32_t n_kept = 0;

        out->starts[s] = out->n_voxels;
        while (end < n_groups && groups[end].items[0].sample == s) {
            end++;
        }
        qsort((void *)(by_first + begin), end - begin, sizeof *by_first,
              compare_first_points);
        for (size_t i = begin; i < end; i++) {
            struct group *group = &groups[by_first[i] - groups];

            group->survives = args->max_voxels == 0 || i - begin < args->max_voxels;
            group->id = out->n_voxels + (uint32_t)(i - begin);
            n_kept += group->survives ? 1 : 0;
        }
        if (args->order == VXD_ORDER_MORTON) {
            uint32_t id = out->n_voxels;

            for (size_t i = begin; i < end; i++) {
                groups[i].id = groups[i].survives ? id++ : 0;
            }
        }
        out->totals[s].n_voxels = n_kept;
        out->n_voxels += n_kept;
        begin = end;
    }
    out->starts[args->n_batch] = out->n_voxels;
    free((void *)by_first);
}

static void write_group(const struct vxd_voxelize_args *args, const struct group *group,
                        struct gpu_voxels *out)
{
    struct vxd_voxel_totals *totals = &out->totals[group->items[0].sample];
    uint32_t n = group->n;

    if (args->max_points > 0 && n > args->max_points) {
        n = args->max_points;
    }
    for (uint32_t i = 0; i < group->n; i++) {
        out->inverse[group->items[i].index] = group->survives ? (int32_t)group->id : -1;
    }
    if (!group->survives) {
        totals->n_over_max_voxels += group->n;
        return;
    }
    totals->n_used += n;
    totals->n_over_max_points += group->n - n;
    out->coords[4 * group->id] = (int32_t)group->items[0].sample;
    for (int axis = 0; axis < 3; axis++) {
        out->coords[4 * group->id + 1 + (uint32_t)axis] = group->items[0].c[axis];
    }
    out->counts[group->id] = n;
    out->first_point[group->id] = group->items[0].index;
    reduce(args, group, n, out);
}

void gpu_oracle(const struct vxd_voxelize_args *args, struct gpu_voxels *out)
{
    struct item *items = gpu_alloc(args->n_points * sizeof *items);
    struct group *groups = gpu_alloc(args->n_points * sizeof *groups);
    size_t n_items = 0;
    size_t n_groups = 0;
    uint32_t sample = 0;

    allocate(args, out);
    for (uint32_t i = 0; i < args->n_points; i++) {
        struct item item = {.index = i};
        int fate = place(args, args->positions + 3 * (size_t)i, item.c);

        while (args->batch_starts[sample + 1] <= i) {
            sample++;
        }
        out->inverse[i] = -1;
        out->totals[sample].n_non_finite += fate == 1 ? 1 : 0;
        out->totals[sample].n_out_of_range += fate == 2 ? 1 : 0;
        if (fate == 0) {
            item.sample = sample;
            item.morton = morton_bit_by_bit(item.c);
            items[n_items++] = item;
        }
    }
    qsort(items, n_items, sizeof *items, compare_items);
    for (size_t i = 0; i < n_items; i++) {
        if (i == 0 || items[i].sample != items[i - 1].sample ||
            items[i].morton != items[i - 1].morton) {
            groups[n_groups++] = (struct group){.items = &items[i]};
        }
        groups[n_groups - 1].n++;
    }
    number(args, groups, n_groups, out);
    for (size_t i = 0; i < n_groups; i++) {
        write_group(args, &groups[i], out);
    }
    free(groups);
    free(items);
}

static int differs(const char *label, const char *name, const void *actual,
                   const void *expected, size_t n_items, size_t item_bytes)
{
    const char *a = actual;
    const char *e = expected;

    for (size_t i = 0; i < n_items; i++) {
        if (memcmp(a + i * item_bytes, e + i * item_bytes, item_bytes) != 0) {
            (void)fprintf(stderr, "%s: %s differs from item %zu of %zu on\n", label, name,
                          i, n_items);
            return 1;
        }
    }
    return 0;
}

int gpu_compare(const char *label, const struct vxd_voxelize_args *args,
                const struct gpu_voxels *actual, const struct gpu_voxels *expected)
{
    size_t n_batch = (size_t)args->n_batch;
    size_t m = expected->n_voxels;
    size_t n_floats = m * (size_t)args->n_channels;
    int n = differs(label, "starts", actual->starts, expected->starts, n_batch + 1, 4);

    n += differs(label, "totals", actual->totals, expected->totals, n_batch,
                 sizeof *actual->totals);
    n += differs(label, "inverse", actual->inverse, expected->inverse, args->n_points, 4);
    if (n > 0) {
        return n;
    }
    n += differs(label, "coords", actual->coords, expected->coords, m, 16);
    n += differs(label, "counts", actual->counts, expected->counts, m, 4);
    n += differs(label, "first_point", actual->first_point, expected->first_point, m, 4);
    n += differs(label, "mean", actual->mean, expected->mean, n_floats, 4);
    n += differs(label, "sum", actual->sum, expected->sum, n_floats, 4);
    n += differs(label, "min", actual->min, expected->min, n_floats, 4);
    n += differs(label, "max", actual->max, expected->max, n_floats, 4);
    n += differs(label, "first", actual->first, expected->first, n_floats, 4);
    if (expected->points != NULL) {
        n += differs(label, "points", actual->points, expected->points,
                     n_floats * args->max_points, 4);
    }
    return n;
}
