// SPDX-License-Identifier: Apache-2.0
/* Checks of scans and of lidars, and their form for the backends. */
#include "gpu/volume/scan/scan_internal.h"

#define RADIANS (3.14159265358979323846 / 180)
#define MAX_ELEVATION 89.0
#define MAX_TURN (170 * RADIANS)
#define MAX_CARVE_BLOCKS 65536.0
#define MAX_WEIGHT 65535.0

void vxd_lidar_borders(const struct vxd_volume_lidar *lidar, float *borders)
{
    int last = lidar->rows - 1;

    for (int row = 0; row <= lidar->rows; row++) {
        double above = row > 0 ? vxd_volume_lidar_elevation(lidar, row - 1)
                               : 2 * vxd_volume_lidar_elevation(lidar, 0) -
                                     vxd_volume_lidar_elevation(lidar, 1);
        double below = row <= last ? vxd_volume_lidar_elevation(lidar, row)
                                   : 2 * vxd_volume_lidar_elevation(lidar, last) -
                                         vxd_volume_lidar_elevation(lidar, last - 1);

        borders[row] = (float)tan(
            fmin(fmax((above + below) / 2, -MAX_ELEVATION), MAX_ELEVATION) * RADIANS);
    }
}

static enum vxd_status check_columns(const struct vxd_volume_scan *scan,
                                     struct vxd_err *err)
{
    const int columns[3] = {scan->time_column, scan->normal_column, scan->label_column};
    const int widths[3] = {1, 3, 1};

    for (int i = 0; i < 3; i++) {
        if (columns[i] != -1 &&
            (columns[i] < 0 || columns[i] + widths[i] > scan->n_features ||
             scan->features == NULL)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "features",
                            "columns %d to %d of %d", columns[i],
                            columns[i] + widths[i] - 1, scan->n_features);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_numbers(const struct vxd_volume *volume,
                                     const struct vxd_volume_scan *scan,
                                     struct vxd_err *err)
{
    struct vxd_volume_info info;
    double block_m;

    vxd_volume_get_info(volume, &info);
    block_m = info.spec.voxel_size_m * info.spec.block_edge;
    if (!(scan->carve_m >= 0 && scan->carve_m <= 1000 &&
          scan->carve_m <= MAX_CARVE_BLOCKS * block_m)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "carve_m",
                        "%g metres, must be 0 to 1000 and at most %g blocks",
                        scan->carve_m, MAX_CARVE_BLOCKS);
    }
    if (scan->weighting != VXD_VOLUME_WEIGHT_CONST &&
        scan->weighting != VXD_VOLUME_WEIGHT_INV_Z2) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "weighting",
                        "%d is no weighting; 0 is CONST, 1 INV_Z2", (int)scan->weighting);
    }
    if (scan->weight != 0 && !(scan->weight >= 1e-6 && scan->weight <= MAX_WEIGHT)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "weight", "%g, must be 1e-6 to %g",
                        scan->weight, MAX_WEIGHT);
    }
    if (!(scan->image_time >= 0 && scan->image_time <= 1)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "image_time", "%g, must be 0 to 1",
                        scan->image_time);
    }
    if (scan->method != VXD_LIDAR_ALONG_RAYS && scan->method != VXD_LIDAR_RANGE_IMAGE) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "method",
                        "%d is no method; 0 is ALONG_RAYS, 1 RANGE_IMAGE",
                        (int)scan->method);
    }
    if (scan->n_points > VXD_LIDAR_MAX_POINTS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "points",
                        "%zu points, at most %zu are possible", scan->n_points,
                        VXD_LIDAR_MAX_POINTS);
    }
    return vxd_volume_check_depths(scan->range_min_m, scan->range_max_m, err);
}

/* The turn from start to end, in the frame of the start: an axis and an angle from 0 to pi. */
static enum vxd_status set_turn(const struct vxd_volume_scan *scan,
                                struct vxd_lidar_form *form, struct vxd_err *err)
{
    const double *a = scan->T_map_sensor.rotation;
    const double *b = scan->T_map_sensor_end.rotation;
    double r[9];
    double sine;
    double trace;

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            r[3 * i + j] = a[i] * b[j] + a[3 + i] * b[3 + j] + a[6 + i] * b[6 + j];
        }
    }
    form->axis[0] = (r[7] - r[5]) / 2;
    form->axis[1] = (r[2] - r[6]) / 2;
    form->axis[2] = (r[3] - r[1]) / 2;
    sine = sqrt(form->axis[0] * form->axis[0] + form->axis[1] * form->axis[1] +
                form->axis[2] * form->axis[2]);
    trace = r[0] + r[4] + r[8];
    form->angle = atan2(sine, (trace - 1) / 2);
    if (!(form->angle <= MAX_TURN)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "T_map_sensor_end",
                        "the sensor turns by %g degrees, must be less than 170",
                        form->angle / RADIANS);
    }
    for (int i = 0; i < 3; i++) {
        form->axis[i] = sine > 0 ? form->axis[i] / sine : 0;
        form->travel[i] =
            scan->T_map_sensor_end.translation[i] - scan->T_map_sensor.translation[i];
    }
    return VXD_OK;
}

/* The image's frame: the sensor's at image_time. */
static void set_image(const struct vxd_volume_scan *scan, struct vxd_lidar_form *form)
{
    double s = form->time_column >= 0 ? scan->image_time : 0;
    double c = 1 - cos(s * form->angle);
    double k[9] = {0, -form->axis[2], form->axis[1],  form->axis[2],
                   0, -form->axis[0], -form->axis[1], form->axis[0],
                   0};
    double turn[9];

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            double kk = 0;

            for (int m = 0; m < 3; m++) {
                kk += k[3 * i + m] * k[3 * m + j];
            }
            turn[3 * i + j] =
                (i == j ? 1 : 0) + sin(s * form->angle) * k[3 * i + j] + c * kk;
        }
        form->image_at[i] = form->at[i] + s * form->travel[i];
    }
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) { /* the inverse: transposed */
            form->to_image[3 * j + i] = form->start[3 * (size_t)i] * turn[j] +
                                        form->start[3 * i + 1] * turn[3 + j] +
                                        form->start[3 * i + 2] * turn[6 + j];
        }
    }
}

/* Units of sums: what all points together may add stays below 2^62. */
static double units_of(size_t n_points, double max_weight)
{
    int exponent = 62;

    while (exponent > 0 &&
           ldexp(1, exponent) * max_weight * (double)(n_points + 1) > ldexp(1, 62)) {
        exponent--;
    }
    return ldexp(1, exponent);
}

enum vxd_status vxd_lidar_form_init(const struct vxd_volume *volume,
                                    const struct vxd_volume_scan *scan,
                                    struct vxd_lidar_form *out, struct vxd_err *err)
{
    struct vxd_volume_info info;
    enum vxd_status status;

    vxd_volume_get_info(volume, &info);
    VXD_TRY(check_numbers(volume, scan, err));
    VXD_TRY(check_columns(scan, err));
    VXD_TRY(vxd_volume_check_pose(&scan->T_map_sensor, "T_map_sensor", err));
    *out = (struct vxd_lidar_form){
        .points = scan->points,
        .features = scan->features,
        .n = (uint32_t)scan->n_points,
        .n_features = scan->n_features,
        .time_column = scan->time_column,
        .normal_column = scan->normal_column,
        .label_column = info.spec.has_labels ? scan->label_column : -1,
        .labels = info.spec.has_labels ? scan->labels : NULL,
        .edge = info.spec.block_edge,
        .shift = info.spec.block_edge == 8 ? 3 : 4,
        .voxel_size = info.spec.voxel_size_m,
        .truncation = (float)info.spec.truncation_m,
        .range_min = (float)scan->range_min_m,
        .range_max = (float)scan->range_max_m,
        .carve = (float)scan->carve_m,
        .is_inverse_square = scan->weighting == VXD_VOLUME_WEIGHT_INV_Z2 ? 1 : 0,
        .is_by_angle = scan->by_angle ? 1 : 0,
        .weight = scan->weight != 0 ? (float)scan->weight : 1,
        .max_weight = (float)info.spec.max_weight,
        .is_compact = info.spec.form == VXD_VOLUME_COMPACT ? 1 : 0,
        .scale = units_of(scan->n_points, info.spec.max_weight),
        .is_image = scan->method == VXD_LIDAR_RANGE_IMAGE ? 1 : 0,
        .rows = scan->lidar.rows,
        .columns = scan->lidar.columns,
        .azimuth_begin = scan->lidar.azimuth_begin_deg * RADIANS,
    };
    for (int i = 0; i < 3; i++) {
        out->at[i] = scan->T_map_sensor.translation[i] - info.spec.origin_m[i];
    }
    memcpy(out->start, scan->T_map_sensor.rotation, sizeof out->start);
    if (scan->time_column >= 0) {
        VXD_TRY(vxd_volume_check_pose(&scan->T_map_sensor_end, "T_map_sensor_end", err));
        VXD_TRY(set_turn(scan, out, err));
    }
    if (out->is_image != 0) {
        VXD_TRY(vxd_volume_check_lidar(&scan->lidar, MAX_ELEVATION, err));
        out->columns_per_radian =
            scan->lidar.columns / (scan->lidar.azimuth_span_deg * RADIANS);
        set_image(scan, out);
    }
out:
    return status;
}
