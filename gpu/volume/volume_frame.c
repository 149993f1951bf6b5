// SPDX-License-Identifier: Apache-2.0
/* Checks of cameras, poses and frames, and their forms for the backends. */
#include "gpu/volume/volume_internal.h"

#define MAX_SIDE 16384
#define MAX_PIXELS ((size_t)1 << 25)
#define MAX_FOCAL 1e7
#define MAX_CENTRE 1e6
#define MAX_DEPTH_M 1000.0
#define MAX_TRANSLATION_M 1e9
#define MAX_WEIGHT 65535.0
#define MAX_TAN 100.0
#define BORDER_SAMPLES 64
#define RADIAL_SAMPLES 256

static enum vxd_status check_lens(const struct vxd_volume_camera *camera,
                                  const char *field, struct vxd_err *err)
{
    for (int i = 0; i < 8; i++) {
        if (!(fabs(camera->distortion[i]) <= 1e3)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "distortion coefficient %d is %g, must be within +-1000", i,
                            camera->distortion[i]);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_camera(const struct vxd_volume_camera *camera,
                                    const char *field, struct vxd_err *err)
{
    if (camera->width < 1 || camera->width > MAX_SIDE || camera->height < 1 ||
        camera->height > MAX_SIDE ||
        (size_t)camera->width * (size_t)camera->height > MAX_PIXELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "%d x %d pixels, sides must be 1 to %d and pixels at most %zu",
                        camera->width, camera->height, MAX_SIDE, MAX_PIXELS);
    }
    if (!(camera->fx > 0 && camera->fx <= MAX_FOCAL && camera->fy > 0 &&
          camera->fy <= MAX_FOCAL)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "focal lengths %g, %g pixels, must be above 0 and at most %g",
                        camera->fx, camera->fy, MAX_FOCAL);
    }
    if (!(fabs(camera->cx) <= MAX_CENTRE && fabs(camera->cy) <= MAX_CENTRE)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "principal point %g, %g, must be within +-%g pixels", camera->cx,
                        camera->cy, MAX_CENTRE);
    }
    return check_lens(camera, field, err);
}

enum vxd_status vxd_volume_check_pose(const struct vxd_volume_pose *pose,
                                      const char *field, struct vxd_err *err)
{
    const double *r = pose->rotation;
    double determinant = r[0] * (r[4] * r[8] - r[5] * r[7]) -
                         r[1] * (r[3] * r[8] - r[5] * r[6]) +
                         r[2] * (r[3] * r[7] - r[4] * r[6]);
    bool is_rigid = fabs(determinant - 1) <= 3e-3;

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            const double *a = r + 3 * (size_t)i;
            const double *b = r + 3 * (size_t)j;
            double dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

            is_rigid = is_rigid && fabs(dot - (i == j ? 1 : 0)) <= 1e-3;
        }
        if (!(fabs(pose->translation[i]) <= MAX_TRANSLATION_M)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "component %d of the translation is %g, must be within +-%g "
                            "metres",
                            i, pose->translation[i], MAX_TRANSLATION_M);
        }
    }
    if (!is_rigid) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "the rotation is not orthonormal with determinant 1 (to 1e-3)");
    }
    return VXD_OK;
}

enum vxd_status vxd_volume_check_depths(double depth_min_m, double depth_max_m,
                                        struct vxd_err *err)
{
    if (!(depth_min_m >= 0 && depth_min_m < depth_max_m && depth_max_m <= MAX_DEPTH_M)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "depth_max_m",
                        "depths from %g to %g, must be 0 <= min < max <= %g metres",
                        depth_min_m, depth_max_m, MAX_DEPTH_M);
    }
    return VXD_OK;
}

/* The largest radius of undistorted coordinates on the image's border; false where the
 * distortion cannot be inverted there. */
static bool border_radius(const struct vxd_camera_form *form, float *max_r2)
{
    *max_r2 = 0;
    for (int i = 0; i <= BORDER_SAMPLES; i++) {
        float part = (float)i / BORDER_SAMPLES;
        float last_u = (float)(form->width - 1);
        float last_v = (float)(form->height - 1);
        float us[4] = {part * last_u, part * last_u, 0, last_u};
        float vs[4] = {0, last_v, part * last_v, part * last_v};

        for (int side = 0; side < 4; side++) {
            float x;
            float y;
            float back_x;
            float back_y;

            vxd_camera_ray(form, us[side], vs[side], &x, &y);
            vxd_camera_distort(form, x, y, &back_x, &back_y);
            if (!(fabsf(back_x * form->fx + form->cx - us[side]) <= 0.1f &&
                  fabsf(back_y * form->fy + form->cy - vs[side]) <= 0.1f)) {
                return false;
            }
            *max_r2 = fmaxf(*max_r2, x * x + y * y);
        }
    }
    *max_r2 *= 1.05f; /* half a pixel beyond the border projects into it */
    return true;
}

/* Whether the radial part rises up to the border, so that no two points share a pixel. */
static bool is_monotonic(const struct vxd_camera_form *form)
{
    const float *k = form->k;
    double last = 0;

    for (int i = 1; i <= RADIAL_SAMPLES; i++) {
        double r2 = (double)form->max_r2 * i * i / (RADIAL_SAMPLES * RADIAL_SAMPLES);
        double top = 1 + r2 * (k[0] + r2 * (k[1] + r2 * k[4]));
        double below = 1 + r2 * (k[5] + r2 * (k[6] + r2 * k[7]));
        double radius = sqrt(r2) * top / below;

        if (!(below > 0 && radius > last)) {
            return false;
        }
        last = radius;
    }
    return true;
}

enum vxd_status vxd_camera_form_init(const struct vxd_volume_camera *camera,
                                     const char *field, struct vxd_camera_form *out,
                                     struct vxd_err *err)
{
    double tan_x;
    double tan_y;
    enum vxd_status status;

    VXD_TRY(check_camera(camera, field, err));
    *out = (struct vxd_camera_form){.width = camera->width,
                                    .height = camera->height,
                                    .fx = (float)camera->fx,
                                    .fy = (float)camera->fy,
                                    .cx = (float)camera->cx,
                                    .cy = (float)camera->cy};
    for (int i = 0; i < 8; i++) {
        out->k[i] = (float)camera->distortion[i];
        out->is_distorted = out->is_distorted != 0 || out->k[i] != 0 ? 1 : 0;
    }
    tan_x = (fabs(camera->cx) + camera->width) / camera->fx;
    tan_y = (fabs(camera->cy) + camera->height) / camera->fy;
    if (!(tan_x <= MAX_TAN && tan_y <= MAX_TAN)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "focal lengths of %g, %g pixels are too short for %d x %d pixels "
                        "around %g, %g",
                        camera->fx, camera->fy, camera->width, camera->height, camera->cx,
                        camera->cy);
    }
    if (out->is_distorted != 0 &&
        !(border_radius(out, &out->max_r2) && is_monotonic(out))) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "the distortion cannot be inverted within the image");
    }
out:
    return status;
}

double vxd_volume_lidar_elevation(const struct vxd_volume_lidar *lidar, int row)
{
    double step = (lidar->bottom_deg - lidar->top_deg) / (lidar->rows - 1);

    return lidar->elevations_deg != NULL ? lidar->elevations_deg[row]
                                         : lidar->top_deg + row * step;
}

enum vxd_status vxd_volume_check_lidar(const struct vxd_volume_lidar *lidar,
                                       double max_deg, struct vxd_err *err)
{
    if (lidar->rows < 2 || lidar->rows > VXD_LIDAR_MAX_ROWS || lidar->columns < 1 ||
        lidar->columns > VXD_LIDAR_MAX_COLUMNS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "lidar",
                        "%d rows and %d columns, must be 2 to %d and 1 to %d",
                        lidar->rows, lidar->columns, VXD_LIDAR_MAX_ROWS,
                        VXD_LIDAR_MAX_COLUMNS);
    }
    if (!(fabs(lidar->azimuth_begin_deg) <= 720) ||
        !(fabs(lidar->azimuth_span_deg) <= 360 && fabs(lidar->azimuth_span_deg) >= 0.1)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "lidar.azimuth_span_deg",
                        "azimuths begin at %g and span %g degrees; must be within +-720, "
                        "and 0.1 to 360 either way",
                        lidar->azimuth_begin_deg, lidar->azimuth_span_deg);
    }
    for (int row = 0; row < lidar->rows; row++) {
        double here = vxd_volume_lidar_elevation(lidar, row);
        double above = row > 0 ? vxd_volume_lidar_elevation(lidar, row - 1) : 1e3;

        if (!(fabs(here) <= max_deg && above - here >= 1e-3)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "lidar.elevations_deg",
                            "row %d is at %g degrees; must be within +-%g, and below the "
                            "row above it by 0.001 at least",
                            row, here, max_deg);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_image(const struct vxd_volume_frame *frame,
                                   struct vxd_err *err)
{
    if (frame->depth == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "depth", "missing");
    }
    if (frame->dtype != VXD_UINT16 && frame->dtype != VXD_FLOAT32) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "dtype",
                        "%d; depth images are uint16 or float32", (int)frame->dtype);
    }
    if (frame->depth_scale != 0 &&
        !(frame->depth_scale >= 1e-6 && frame->depth_scale <= 1e6)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "depth_scale",
                        "%g units a metre, must be 1e-6 to 1e6", frame->depth_scale);
    }
    if (frame->weighting != VXD_VOLUME_WEIGHT_CONST &&
        frame->weighting != VXD_VOLUME_WEIGHT_INV_Z2) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "weighting",
                        "%d is no weighting; 0 is CONST, 1 INV_Z2",
                        (int)frame->weighting);
    }
    if (frame->weight != 0 && !(frame->weight >= 1e-6 && frame->weight <= MAX_WEIGHT)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "weight", "%g, must be 1e-6 to %g",
                        frame->weight, MAX_WEIGHT);
    }
    if (!(frame->carve_m >= 0 && frame->carve_m <= MAX_DEPTH_M)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "carve_m",
                        "%g metres, must be 0 to %g", frame->carve_m, MAX_DEPTH_M);
    }
    return vxd_volume_check_depths(frame->depth_min_m, frame->depth_max_m, err);
}

void vxd_pose_to_blocks(const struct vxd_volume *volume,
                        const struct vxd_volume_pose *pose, int32_t base[3],
                        float offset[3], float rotation[9])
{
    double block_m = volume->spec.voxel_size_m * volume->spec.block_edge;

    for (int axis = 0; axis < 3; axis++) {
        double at = (pose->translation[axis] - volume->spec.origin_m[axis]) / block_m;
        double whole = floor(at);

        /* A camera far outside of the range of keys touches no block. */
        whole = fmin(fmax(whole, -(double)VXD_RAY_FAR), (double)VXD_RAY_FAR);
        base[axis] = (int32_t)whole;
        offset[axis] = (float)fmin(fmax(at - whole, 0), 1);
    }
    for (int i = 0; i < 9; i++) {
        rotation[i] = (float)(pose->rotation[i] / block_m);
    }
}

static void init_colour(const struct vxd_volume_frame *frame, struct vxd_frame_form *out)
{
    const double *r = frame->T_depth_colour.rotation;
    const double *t = frame->T_depth_colour.translation;

    out->has_colour_camera = 1;
    for (int i = 0; i < 3; i++) {
        double shift = 0;

        for (int j = 0; j < 3; j++) {
            out->to_colour[3 * i + j] = (float)r[3 * j + i];
            shift -= r[3 * j + i] * t[j];
        }
        out->colour_shift[i] = (float)shift;
    }
}

/* The control grid's poses, from the camera's: T_grid_map = T_grid_camera * T_map_camera^-1, whose
 * translation counts from the volume's origin. */
static void init_deform(const struct vxd_volume_frame *frame, struct vxd_frame_form *out)
{
    const struct vxd_volume_pose *grid = &frame->T_grid_camera;

    vxd_deform_get_view(frame->deform, &out->deform);
    out->is_deformed = 1;
    memcpy(out->T_grid_camera.rotation, grid->rotation, sizeof grid->rotation);
    memcpy(out->T_grid_camera.translation, grid->translation, sizeof grid->translation);
    for (int i = 0; i < 3; i++) {
        double shift = 0;
        double at = grid->translation[i];

        for (int j = 0; j < 3; j++) {
            double sum = 0;

            for (int k = 0; k < 3; k++) {
                sum += grid->rotation[3 * i + k] * out->to_camera[3 * k + j];
            }
            out->T_grid_map.rotation[3 * i + j] = sum;
            at -= sum * out->camera_at[j];
            out->T_camera_grid.rotation[3 * i + j] = grid->rotation[3 * j + i];
            shift -= grid->rotation[3 * j + i] * grid->translation[j];
        }
        out->T_grid_map.translation[i] = at;
        out->T_camera_grid.translation[i] = shift;
    }
}

enum vxd_status vxd_frame_form_init(const struct vxd_volume *volume,
                                    const struct vxd_volume_frame *frame,
                                    struct vxd_frame_form *out, struct vxd_err *err)
{
    bool is_u16 = frame->dtype == VXD_UINT16;
    double scale = frame->depth_scale != 0 ? frame->depth_scale : is_u16 ? 1000 : 1;
    enum vxd_status status;

    *out = (struct vxd_frame_form){.depth = frame->depth,
                                   .mask = frame->mask,
                                   .is_u16 = is_u16 ? 1 : 0,
                                   .depth_scale = (float)scale,
                                   .depth_min = (float)frame->depth_min_m,
                                   .depth_max = (float)frame->depth_max_m,
                                   .truncation = (float)volume->spec.truncation_m,
                                   .voxel_size = volume->spec.voxel_size_m};
    VXD_TRY(check_image(frame, err));
    VXD_TRY(vxd_camera_form_init(&frame->camera, "camera", &out->camera, err));
    VXD_TRY(vxd_volume_check_pose(&frame->T_map_camera, "T_map_camera", err));
    if (volume->spec.has_colour) {
        out->colour = frame->colour;
    }
    if (volume->spec.has_labels) {
        out->labels = frame->labels;
    }
    if (out->colour != NULL && frame->has_colour_camera) {
        VXD_TRY(vxd_camera_form_init(&frame->colour_camera, "colour_camera",
                                     &out->colour_camera, err));
        VXD_TRY(vxd_volume_check_pose(&frame->T_depth_colour, "T_depth_colour", err));
        init_colour(frame, out);
    }
    out->is_inverse_z2 = frame->weighting == VXD_VOLUME_WEIGHT_INV_Z2 ? 1 : 0;
    out->weight = frame->weight != 0 ? (float)frame->weight : 1;
    vxd_pose_to_blocks(volume, &frame->T_map_camera, out->base, out->offset,
                       out->to_blocks);
    for (int i = 0; i < 3; i++) {
        out->camera_at[i] = frame->T_map_camera.translation[i] - volume->spec.origin_m[i];
        for (int j = 0; j < 3; j++) {
            out->to_camera[3 * i + j] = frame->T_map_camera.rotation[3 * j + i];
        }
    }
    if (frame->deform != NULL) {
        VXD_TRY(vxd_volume_check_pose(&frame->T_grid_camera, "T_grid_camera", err));
        init_deform(frame, out);
    }
out:
    return status;
}

enum vxd_status vxd_volume_check_frame(const struct vxd_volume *volume,
                                       const struct vxd_volume_frame *frame,
                                       struct vxd_err *err)
{
    struct vxd_frame_form form;

    return vxd_frame_form_init(volume, frame, &form, err);
}
