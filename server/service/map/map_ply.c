// SPDX-License-Identifier: Apache-2.0
/* A map's entries as a PLY file: what other programs show. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/files.h"
#include "proto/base/name.h"
#include "server/service/map/map.h"

enum {
    MAX_PLY_COLUMNS = 4096,
    COLUMN_NAME_BYTES = VXD_NAME_BYTES + 16,
    HEADER_BYTES = 256,                     /* at most, but for the properties */
    PROPERTY_BYTES = COLUMN_NAME_BYTES + 32 /* a line of the header, at most */
};

/* A PLY file's columns and the memory behind them. */
struct ply {
    struct vxd_write_column *columns;
    char (*names)[COLUMN_NAME_BYTES];
    size_t n_columns;
};

static void add_column(struct ply *ply, const char *name, size_t element, bool only,
                       enum vxd_dtype dtype, const void *data, size_t stride_bytes)
{
    char *to = ply->names[ply->n_columns];

    (void)snprintf(to, COLUMN_NAME_BYTES, only ? "%s" : "%s_%zu", name, element);
    ply->columns[ply->n_columns++] =
        (struct vxd_write_column){to, dtype, data, stride_bytes};
}

/* Half and 64-bit types are none of PLY's. */
static enum vxd_dtype ply_dtype(enum vxd_dtype dtype)
{
    switch (dtype) {
    case VXD_FLOAT16:
    case VXD_BFLOAT16:
        return VXD_FLOAT32;
    case VXD_INT64:
    case VXD_UINT64:
        return VXD_FLOAT64;
    default:
        return dtype;
    }
}

static float half_to_float(uint16_t half, bool is_bfloat)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 0x1f;
    uint32_t mantissa = half & 0x3ff;
    uint32_t bits;
    float value;

    if (is_bfloat) {
        bits = (uint32_t)half << 16;
    } else if (exponent == 0) {
        value = (float)mantissa / 16777216.0f; /* 2^-24 */
        return sign != 0 ? -value : value;
    } else {
        bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | mantissa << 13;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Converts n elements to a type that PLY has, in a block of the request's. */
static enum vxd_status widen(struct vxd_map_read_job *job, struct vxd_queue *queue,
                             const void *from, enum vxd_dtype dtype, size_t n,
                             const void **out, struct vxd_err *err)
{
    void *to;
    enum vxd_status status = VXD_OK;

    *out = from;
    if (ply_dtype(dtype) == dtype || n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_map_take_host(&job->base, queue, n * vxd_dtype_bytes(ply_dtype(dtype)),
                              &to, err));
    for (size_t i = 0; i < n; i++) {
        switch (dtype) {
        case VXD_INT64:
            ((double *)to)[i] = (double)((const int64_t *)from)[i];
            break;
        case VXD_UINT64:
            ((double *)to)[i] = (double)((const uint64_t *)from)[i];
            break;
        default:
            ((float *)to)[i] =
                half_to_float(((const uint16_t *)from)[i], dtype == VXD_BFLOAT16);
            break;
        }
    }
    *out = to;
out:
    return status;
}

static double key_component(const struct vxd_map_read_job *job, size_t row, int axis)
{
    const void *keys = job->keys->bytes;
    size_t i = 3 * row + (size_t)axis;

    switch (job->base.map->spec.engine.key_dtype) {
    case VXD_INT16:
        return ((const int16_t *)keys)[i];
    case VXD_INT32:
        return ((const int32_t *)keys)[i];
    default:
        return (double)((const int64_t *)keys)[i];
    }
}

/* Writes the middle of each voxel, or the key itself. */
static enum vxd_status add_positions(struct vxd_map_read_job *job,
                                     struct vxd_queue *queue, struct ply *ply,
                                     struct vxd_err *err)
{
    static const char *const axes[3] = {"x", "y", "z"};
    const struct vxd_map_spec *spec = &job->base.map->spec;
    enum vxd_dtype dtype = spec->engine.key_dtype;
    const void *data = job->keys->bytes;
    enum vxd_status status;

    if (spec->has_lattice) {
        void *block;
        double *positions;

        VXD_TRY(vxd_map_take_host(&job->base, queue,
                                  job->base.query.n * 3 * sizeof(double), &block, err));
        positions = block;
        for (size_t i = 0; i < 3 * job->base.query.n; i++) {
            int axis = (int)(i % 3);

            positions[i] = spec->origin_m[axis] +
                           (key_component(job, i / 3, axis) + 0.5) * spec->size_m[axis];
        }
        data = positions;
        dtype = VXD_FLOAT64;
    } else {
        VXD_TRY(widen(job, queue, data, dtype, 3 * job->base.query.n, &data, err));
        dtype = ply_dtype(dtype);
    }
    for (size_t axis = 0; axis < 3; axis++) {
        size_t n_bytes = vxd_dtype_bytes(dtype);

        add_column(ply, axes[axis], 0, true, dtype,
                   data != NULL ? (const uint8_t *)data + axis * n_bytes : NULL,
                   3 * n_bytes);
    }
    status = VXD_OK;
out:
    return status;
}

static enum vxd_status add_arrays(struct vxd_map_read_job *job, struct vxd_queue *queue,
                                  struct ply *ply, struct vxd_err *err)
{
    const struct vxd_map_spec *spec = &job->base.map->spec;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < spec->engine.n_values; i++) {
        size_t n_elements = spec->engine.values[i].n_elements;
        enum vxd_dtype dtype = spec->engine.values[i].dtype;
        size_t n_bytes = vxd_dtype_bytes(ply_dtype(dtype));
        const void *data;

        if (!job->selected[i]) {
            continue;
        }
        VXD_TRY(widen(job, queue, job->rows[i]->bytes, dtype,
                      n_elements * job->base.query.n, &data, err));
        for (size_t k = 0; k < n_elements; k++) {
            add_column(ply, spec->array_names[i], k, n_elements == 1, ply_dtype(dtype),
                       data != NULL ? (const uint8_t *)data + k * n_bytes : NULL,
                       n_elements * n_bytes);
        }
    }
out:
    return status;
}

/* What voxelize merges into a map: how many points an entry has, and the sum of their channels. */
struct merged {
    const uint64_t *counts;
    const double *sums;
    size_t n_channels;
};

/* Whether the reply has both of them, of a map whose keys are voxels. */
static bool find_merged(const struct vxd_map_read_job *job, struct merged *out)
{
    static const char *const names[] = {"mean_x", "mean_y", "mean_z"};
    const struct vxd_map_spec *spec = &job->base.map->spec;
    int count = vxd_map_find_array(spec, "count");
    int sum = vxd_map_find_array(spec, "sum");

    for (size_t i = 0; i < 3; i++) {
        if (vxd_map_find_array(spec, names[i]) >= 0) {
            return false;
        }
    }
    if (!spec->has_lattice || count < 0 || sum < 0 || !job->selected[count] ||
        !job->selected[sum] || spec->engine.values[count].dtype != VXD_UINT64 ||
        spec->engine.values[count].n_elements != 1 ||
        spec->engine.values[sum].dtype != VXD_FLOAT64 ||
        spec->engine.values[sum].n_elements < 3) {
        return false;
    }
    *out = (struct merged){.counts = job->rows[count]->bytes,
                           .sums = job->rows[sum]->bytes,
                           .n_channels = spec->engine.values[sum].n_elements};
    return true;
}

/* Whether the first three channels are x, y and z, whose names a map does not keep: then each entry's
 * mean lies in its voxel, but for what float32 coordinates and sums have lost. */
static bool sums_are_positions(const struct vxd_map_read_job *job,
                               const struct merged *merged)
{
    const double *size_m = job->base.map->spec.size_m;
    bool has_points = false;

    for (size_t i = 0; i < job->base.query.n; i++) {
        for (int axis = 0; axis < 3 && merged->counts[i] > 0; axis++) {
            double low = key_component(job, i, axis) * size_m[axis];
            double mean = merged->sums[i * merged->n_channels + (size_t)axis] /
                          (double)merged->counts[i];
            double lost = 1e-3 * size_m[axis] + 1e-5 * fabs(low);

            if (!(mean >= low - lost && mean <= low + size_m[axis] + lost)) {
                return false;
            }
        }
        has_points = has_points || merged->counts[i] > 0;
    }
    return has_points;
}

/* Sums count from the origin, positions of the file do not: the points' mean position is written in
 * the map frame, so that nobody need know both. NaN where an entry has no points. */
static enum vxd_status add_means(struct vxd_map_read_job *job, struct vxd_queue *queue,
                                 struct ply *ply, struct vxd_err *err)
{
    static const char *const names[] = {"mean_x", "mean_y", "mean_z"};
    const double *origin_m = job->base.map->spec.origin_m;
    struct merged merged;
    void *block;
    double *means;
    enum vxd_status status = VXD_OK;

    if (!find_merged(job, &merged) || !sums_are_positions(job, &merged)) {
        return VXD_OK;
    }
    VXD_TRY(vxd_map_take_host(&job->base, queue, job->base.query.n * 3 * sizeof *means,
                              &block, err));
    means = block;
    for (size_t i = 0; i < job->base.query.n; i++) {
        for (size_t axis = 0; axis < 3; axis++) {
            double sum = merged.sums[i * merged.n_channels + axis];

            means[3 * i + axis] = merged.counts[i] > 0
                                      ? origin_m[axis] + sum / (double)merged.counts[i]
                                      : (double)NAN;
        }
    }
    for (size_t axis = 0; axis < 3; axis++) {
        add_column(ply, names[axis], 0, true, VXD_FLOAT64, means + axis,
                   3 * sizeof *means);
    }
out:
    return status;
}

static enum vxd_status new_ply(struct vxd_request *request, struct vxd_queue *queue,
                               struct ply *ply, struct vxd_err *err)
{
    struct vxd_map_read_job *job = request->state;
    size_t n = 6; /* positions and, of a merged map, means */
    enum vxd_status status;

    for (int i = 0; i < job->base.map->spec.engine.n_values; i++) {
        n += job->selected[i] ? job->base.map->spec.engine.values[i].n_elements : 0;
    }
    if (n > MAX_PLY_COLUMNS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "format",
                        "the file would have %zu properties, at most %d are possible", n,
                        MAX_PLY_COLUMNS);
    }
    ply->columns = calloc(n, sizeof *ply->columns);
    ply->names = calloc(n, sizeof *ply->names);
    if (ply->columns == NULL || ply->names == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a PLY file");
    }
    if (add_positions(job, queue, ply, err) != VXD_OK) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(add_arrays(job, queue, ply, err));
    VXD_TRY(add_means(job, queue, ply, err));
out:
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* An array "x", or "a_0" beside an "a" of several elements: readers take either. */
static enum vxd_status check_names(const struct ply *ply, struct vxd_err *err)
{
    const char **sorted = calloc(ply->n_columns, sizeof *sorted);
    enum vxd_status status = VXD_OK;

    if (sorted == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a PLY file");
    }
    for (size_t i = 0; i < ply->n_columns; i++) {
        sorted[i] = ply->names[i];
    }
    qsort(sorted, ply->n_columns, sizeof *sorted, compare_names);
    for (size_t i = 1; i < ply->n_columns && status == VXD_OK; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0) {
            status = vxd_fail(err, VXD_FAILED_PRECONDITION, "values",
                              "the file would have two properties \"%s\": name arrays "
                              "that have others",
                              sorted[i]);
        }
    }
    free(sorted);
    return status;
}

/* Computes the most bytes that the file may have. It is made in the engine's host memory,
 * whose budget counts it. */
static enum vxd_status bound_file(const struct ply *ply, size_t n_rows, size_t *n_bytes,
                                  struct vxd_err *err)
{
    size_t row_bytes = 0;

    for (size_t i = 0; i < ply->n_columns; i++) {
        row_bytes += vxd_dtype_bytes(ply->columns[i].dtype);
    }
    if (!vxd_size_mul(row_bytes, n_rows, n_bytes) ||
        !vxd_size_add(*n_bytes, HEADER_BYTES + ply->n_columns * PROPERTY_BYTES,
                      n_bytes) ||
        *n_bytes > VXD_MAP_REPLY_BYTES) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "a file of %zu vertices of %zu bytes is more than a reply holds "
                        "(%zu bytes): ask for fewer at once",
                        n_rows, row_bytes, VXD_MAP_REPLY_BYTES);
    }
    return VXD_OK;
}

enum vxd_status vxd_map_write_ply(struct vxd_request *request, struct vxd_queue *queue,
                                  Voxeld__V1__MapExportResponse *reply,
                                  struct vxd_err *err)
{
    struct vxd_map_read_job *job = request->state;
    struct ply ply = {0};
    size_t n_most;
    void *block;
    long n_bytes;
    FILE *stream = NULL;
    enum vxd_status status;

    VXD_TRY(new_ply(request, queue, &ply, err));
    VXD_TRY(check_names(&ply, err));
    VXD_TRY(bound_file(&ply, job->base.query.n, &n_most, err));
    VXD_TRY(vxd_map_take_host(&job->base, queue, n_most, &block, err));
    stream = fmemopen(block, n_most, "wb");
    if (stream == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a PLY file"));
    }
    status = vxd_ply_write(stream, ply.columns, ply.n_columns, job->base.query.n, err);
    n_bytes = status == VXD_OK && fflush(stream) == 0 ? ftell(stream) : -1;
    (void)fclose(stream);
    if (status == VXD_OK && n_bytes < 0) {
        status = vxd_fail(err, VXD_INTERNAL, NULL, "the PLY file was not written");
    }
    if (status == VXD_OK) {
        reply->ply.data = block;
        reply->ply.len = (size_t)n_bytes;
    }
out:
    free(ply.columns);
    free(ply.names);
    return status;
}
