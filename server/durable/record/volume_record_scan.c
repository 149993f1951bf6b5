// SPDX-License-Identifier: Apache-2.0
/* A lidar scan in a volume's record, behind the head that all have (volume_record.c, where numbers,
 * keys and poses are described too):
 *
 *         keys of blocks that were removed before
 *         pose of the sensor at time 0; at time 1
 *      1  method: 0 along rays, 1 by range image
 *    of 1:
 *         rows, columns (numbers)
 *      1  1: the elevations follow, a double a row; 0: of the first and of the last row, 2 doubles
 *     24  azimuth_begin_deg, azimuth_span_deg, image_time
 *     32  range_min_m, range_max_m, carve_m, weight
 *      1  weighting, 0 constant, 1 by 1/range^2
 *      1  by_angle, 0 or 1
 *         points (number)
 *      1  features a point
 *      3  the columns of the time, of the first component of the normal, and of the label, plus 1 (0:
 *         none)
 *      1  1: labels follow, 0: none
 *         units a metre of the positions (number): 1000 or 4096 where each coordinate is a whole
 *         number of them, rounded to float32, or NaN; 0 where not
 *         columns (record_columns.c) of the positions, 3 of int32: units (NaN: -2^31), or of 0 the
 *         bits of float32; and of the features, of float32 as their bits. Neighbours of a scan differ
 *         little, so differences are short
 *         of labels: a plane (byte_planes.c) */
#include <math.h>

#include "server/durable/record/byte_planes.h"
#include "server/durable/record/record_internal.h"

enum {
    MAX_FEATURES = 5, /* time, normal, label */
    NAN_BITS = 0x7fc00000
};

/* Units a metre in which sensors and files give coordinates. */
static const uint32_t known_units[] = {1000, 4096};

#define MOST_UNITS 1e9

/* --- positions ------------------------------------------------------------------------------- */

static float float_of_units(int32_t units, uint32_t units_a_metre)
{
    return units == INT32_MIN ? NAN : (float)((double)units / units_a_metre);
}

/* Converts n coordinates to whole units; false where one is none. */
static bool to_units(const float *values, size_t n, uint32_t units_a_metre, int32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        double units = (double)values[i] * units_a_metre;
        uint32_t bits;
        uint32_t back_bits;
        float back;

        memcpy(&bits, &values[i], sizeof bits);
        if (bits == NAN_BITS) {
            out[i] = INT32_MIN;
            continue;
        }
        if (!(units > -MOST_UNITS && units < MOST_UNITS)) {
            return false;
        }
        out[i] = (int32_t)lrint(units);
        back = float_of_units(out[i], units_a_metre);
        memcpy(&back_bits, &back, sizeof back_bits);
        if (back_bits != bits) {
            return false;
        }
    }
    return true;
}

/* --- writing ---------------------------------------------------------------------------- */

static void put_lidar(struct vxd_bytes_out *out, const struct vxd_volume_scan *scan)
{
    const struct vxd_volume_lidar *lidar = &scan->lidar;

    vxd_bytes_put_number(out, (uint64_t)lidar->rows);
    vxd_bytes_put_number(out, (uint64_t)lidar->columns);
    vxd_bytes_put8(out, lidar->elevations_deg != NULL ? 1 : 0);
    if (lidar->elevations_deg != NULL) {
        vxd_record_put_doubles(out, lidar->elevations_deg, (size_t)lidar->rows);
    } else {
        vxd_record_put_doubles(out, &lidar->top_deg, 1);
        vxd_record_put_doubles(out, &lidar->bottom_deg, 1);
    }
    vxd_record_put_doubles(out, &lidar->azimuth_begin_deg, 1);
    vxd_record_put_doubles(out, &lidar->azimuth_span_deg, 1);
    vxd_record_put_doubles(out, &scan->image_time, 1);
}

static enum vxd_status put_floats(struct vxd_bytes_out *out, const float *rows, size_t n,
                                  size_t n_columns, struct vxd_err *err)
{
    const struct vxd_record_columns columns = {.bytes = (uint8_t *)(uintptr_t)rows,
                                               .n = n,
                                               .n_columns = n_columns,
                                               .width = sizeof(float)};

    return vxd_record_put_columns(out, &columns, err);
}

static enum vxd_status put_positions(struct vxd_bytes_out *out,
                                     const struct vxd_volume_scan *scan,
                                     struct vxd_err *err)
{
    size_t n = 3 * scan->n_points;
    int32_t *units = malloc((n + 1) * sizeof *units);
    const float *positions = scan->points;
    uint32_t units_a_metre = 0;
    enum vxd_status status;

    if (units == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a record");
    }
    for (size_t i = 0; i < sizeof known_units / sizeof known_units[0]; i++) {
        if (units_a_metre == 0 && to_units(scan->points, n, known_units[i], units)) {
            units_a_metre = known_units[i];
            positions = (const float *)(const void *)units;
        }
    }
    vxd_bytes_put_number(out, units_a_metre);
    status = put_floats(out, positions, scan->n_points, 3, err);
    free(units);
    return status;
}

enum vxd_status vxd_record_put_scan(struct vxd_bytes_out *out,
                                    const struct vxd_volume_record *record,
                                    struct vxd_err *err)
{
    const struct vxd_volume_scan *scan = &record->scan;
    enum vxd_status status;

    VXD_TRY(vxd_record_put_keys(out, record->forgotten, record->n_forgotten, err));
    vxd_record_put_pose(out, &scan->T_map_sensor);
    vxd_record_put_pose(out, &scan->T_map_sensor_end);
    vxd_bytes_put8(out, (unsigned)scan->method);
    if (scan->method == VXD_LIDAR_RANGE_IMAGE) {
        put_lidar(out, scan);
    }
    vxd_record_put_doubles(out, &scan->range_min_m, 1);
    vxd_record_put_doubles(out, &scan->range_max_m, 1);
    vxd_record_put_doubles(out, &scan->carve_m, 1);
    vxd_record_put_doubles(out, &scan->weight, 1);
    vxd_bytes_put8(out, (unsigned)scan->weighting);
    vxd_bytes_put8(out, scan->by_angle ? 1 : 0);
    vxd_bytes_put_number(out, scan->n_points);
    vxd_bytes_put8(out, (unsigned)scan->n_features);
    vxd_bytes_put8(out, (unsigned)(scan->time_column + 1));
    vxd_bytes_put8(out, (unsigned)(scan->normal_column + 1));
    vxd_bytes_put8(out, (unsigned)(scan->label_column + 1));
    vxd_bytes_put8(out, scan->labels != NULL ? 1 : 0);
    VXD_TRY(put_positions(out, scan, err));
    VXD_TRY(
        put_floats(out, scan->features, scan->n_points, (size_t)scan->n_features, err));
    if (scan->labels != NULL) {
        vxd_byte_plane_put(out, scan->labels, scan->n_points);
    }
out:
    return status;
}

/* --- reading ---------------------------------------------------------------------------- */

static bool get_lidar(struct vxd_record_reader *reader, struct vxd_volume_scan *scan)
{
    struct vxd_volume_lidar *lidar = &scan->lidar;
    uint64_t rows = vxd_bytes_get_number(&reader->in);
    uint64_t columns = vxd_bytes_get_number(&reader->in);
    bool has_elevations;
    double *elevations;

    if (rows > VXD_LIDAR_MAX_ROWS || columns > VXD_LIDAR_MAX_COLUMNS) {
        return vxd_record_bad(reader, "not the rows and columns of a lidar");
    }
    lidar->rows = (int)rows;
    lidar->columns = (int)columns;
    if (!vxd_record_get_flag(reader, &has_elevations)) {
        return false;
    }
    if (has_elevations) {
        elevations = vxd_record_alloc(reader, rows + 1, sizeof *elevations);
        if (elevations == NULL || !vxd_record_get_doubles(reader, elevations, rows)) {
            return false;
        }
        lidar->elevations_deg = elevations;
    } else if (!vxd_record_get_doubles(reader, &lidar->top_deg, 1) ||
               !vxd_record_get_doubles(reader, &lidar->bottom_deg, 1)) {
        return false;
    }
    return vxd_record_get_doubles(reader, &lidar->azimuth_begin_deg, 1) &&
           vxd_record_get_doubles(reader, &lidar->azimuth_span_deg, 1) &&
           vxd_record_get_doubles(reader, &scan->image_time, 1);
}

/* A column of the features, of which `width` have to be there; -1: there is none. */
static bool get_column(struct vxd_record_reader *reader,
                       const struct vxd_volume_scan *scan, int width, int *column)
{
    int value = (int)vxd_bytes_get8(&reader->in) - 1;

    *column = value;
    return (value < 0 || value + width <= scan->n_features) ||
           vxd_record_bad(reader, "no column of the features");
}

static bool get_floats(struct vxd_record_reader *reader, size_t n, size_t n_columns,
                       const float **out)
{
    struct vxd_record_columns columns = {
        .n = n, .n_columns = n_columns, .width = sizeof(float)};

    if (!vxd_record_get_columns(reader, &columns)) {
        return false;
    }
    *out = (const float *)(const void *)columns.bytes;
    return true;
}

static bool get_positions(struct vxd_record_reader *reader, struct vxd_volume_scan *scan)
{
    uint64_t units_a_metre = vxd_bytes_get_number(&reader->in);
    bool is_known = units_a_metre == 0;
    float *positions;

    for (size_t i = 0; i < sizeof known_units / sizeof known_units[0]; i++) {
        is_known = is_known || units_a_metre == known_units[i];
    }
    if (!is_known || reader->in.is_bad) {
        return vxd_record_bad(reader, "no units of positions");
    }
    if (!get_floats(reader, scan->n_points, 3, &scan->points)) {
        return false;
    }
    positions = (float *)(uintptr_t)scan->points;
    for (size_t i = 0; i < 3 * scan->n_points && units_a_metre > 0; i++) {
        int32_t units;

        memcpy(&units, &positions[i], sizeof units);
        positions[i] = float_of_units(units, (uint32_t)units_a_metre);
    }
    return true;
}

static bool get_points(struct vxd_record_reader *reader, struct vxd_volume_scan *scan)
{
    uint64_t n = vxd_bytes_get_number(&reader->in);
    unsigned n_features = vxd_bytes_get8(&reader->in);
    bool has_labels;
    uint8_t *labels;

    if (n > VXD_LIDAR_MAX_POINTS || n_features > MAX_FEATURES || reader->in.is_bad) {
        return vxd_record_bad(reader, "not a number of points, or of their features");
    }
    scan->n_points = (size_t)n;
    scan->n_features = (int)n_features;
    if (!get_column(reader, scan, 1, &scan->time_column) ||
        !get_column(reader, scan, 3, &scan->normal_column) ||
        !get_column(reader, scan, 1, &scan->label_column) ||
        !vxd_record_get_flag(reader, &has_labels) || !get_positions(reader, scan) ||
        !get_floats(reader, scan->n_points, n_features, &scan->features)) {
        return false;
    }
    if (has_labels) {
        labels = vxd_record_alloc(reader, n + 1, 1);
        if (labels == NULL) {
            return false;
        }
        scan->labels = labels;
        if (!vxd_byte_plane_get(&reader->in, labels, scan->n_points)) {
            return vxd_record_bad(reader, "not the labels of a scan");
        }
    }
    return true;
}

bool vxd_record_get_scan(struct vxd_record_reader *reader,
                         struct vxd_volume_record *record)
{
    struct vxd_volume_scan *scan = &record->scan;
    unsigned method;
    unsigned weighting;

    if (!vxd_record_get_keys(reader, &record->forgotten, &record->n_forgotten) ||
        !vxd_record_get_pose(reader, &scan->T_map_sensor) ||
        !vxd_record_get_pose(reader, &scan->T_map_sensor_end)) {
        return false;
    }
    method = vxd_bytes_get8(&reader->in);
    if (method > VXD_LIDAR_RANGE_IMAGE) {
        return vxd_record_bad(reader, "no method of a scan");
    }
    scan->method = (enum vxd_volume_scan_method)method;
    if ((method == VXD_LIDAR_RANGE_IMAGE && !get_lidar(reader, scan)) ||
        !vxd_record_get_doubles(reader, &scan->range_min_m, 1) ||
        !vxd_record_get_doubles(reader, &scan->range_max_m, 1) ||
        !vxd_record_get_doubles(reader, &scan->carve_m, 1) ||
        !vxd_record_get_doubles(reader, &scan->weight, 1)) {
        return false;
    }
    weighting = vxd_bytes_get8(&reader->in);
    if (weighting > VXD_VOLUME_WEIGHT_INV_Z2) {
        return vxd_record_bad(reader, "no weighting");
    }
    scan->weighting = (enum vxd_volume_weighting)weighting;
    return vxd_record_get_flag(reader, &scan->by_angle) && get_points(reader, scan);
}
