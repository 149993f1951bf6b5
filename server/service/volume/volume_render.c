// SPDX-License-Identifier: Apache-2.0
/* volume_render: a picture file of the surface. Its blocks say where the camera stands and how far
 * it sees; the rows are cast in stages, then lit and encoded band by band. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/render/render.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

enum {
    MAX_SIDE = 8192,
    DEFAULT_WIDTH = 640,
    DEFAULT_HEIGHT = 360,
    DEFAULT_QUALITY = 90,
    PNG_LEVEL = 1,         /* a picture that is sent at once */
    BAND_PIXELS = 1 << 18, /* of a stage, about 10 ms of a core */
    CHANNELS = 3,
    PIXEL_BYTES =
        2 * 36 + 3 /* depths, places, normals, colours and labels here and there */
};

#define PI 3.14159265358979323846
#define DEFAULT_FOV_DEG 50
#define MAX_DEPTH_M 1000
#define MAX_PLACE_M 1e10   /* in the map */
#define MAX_DISTANCE_M 1e6 /* from the volume's origin */
#define LEAST_M 0.1        /* from the surface's middle to where we put the eye */
#define TRIAL_WIDTH 64     /* pixels of a row of the pictures by which a side is chosen */

enum step {
    OPEN,
    CAST,
    DRAW
};

struct render_job {
    struct vxd_volume_job base; /* first: request->state is both */
    enum step step;
    struct vxd_volume_casting casting;
    struct vxd_volume_lidar lidar; /* of the casting, for a panorama */
    /* Lengths in metres, places from the volume's origin. */
    struct vxd_render_picture picture;
    struct vxd_render_plan *plan;
    double low[3]; /* the box of the volume's blocks, likewise */
    double high[3];
    int side; /* of it that an eye of ours stands on */
    struct vxd_column *depth;
    struct vxd_column *places;
    struct vxd_column *normals;
    struct vxd_column *colours;
    struct vxd_column *labels;
    struct vxd_png_writer *png;
    uint8_t *pixels;  /* of a band of a PNG, of the picture for JPEG; malloc'ed */
    uint32_t n_drawn; /* rows */
    uint8_t *file;    /* malloc'ed */
    size_t n_file;
};

static const Voxeld__V1__VolumeRenderRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__VolumeRenderRequest *)request->input;
}

static bool is_depth(const struct vxd_request *request)
{
    return input_of(request)->show == VOXELD__V1__VOLUME_SHOW__VOLUME_SHOW_DEPTH;
}

static bool is_jpeg(const struct vxd_request *request)
{
    return input_of(request)->encode == VOXELD__V1__VOLUME_ENCODE__VOLUME_JPEG;
}

/* --- check -------------------------------------------------------------------------------- */

static enum vxd_status check_place(const Voxeld__V1__Vec3 *v, const char *field,
                                   struct vxd_err *err)
{
    double most = v != NULL ? fmax(fmax(fabs(v->x), fabs(v->y)), fabs(v->z)) : 0;

    /* fmax drops NaN. */
    return v == NULL ||
                   (most <= MAX_PLACE_M && !isnan(v->x) && !isnan(v->y) && !isnan(v->z))
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                          "is %g, %g, %g; each must be finite and at most %g from 0",
                          v->x, v->y, v->z, MAX_PLACE_M);
}

static enum vxd_status check_choices(const Voxeld__V1__VolumeRenderRequest *input,
                                     struct vxd_err *err)
{
    if (input->encode == VOXELD__V1__VOLUME_ENCODE__VOLUME_JPEG &&
        input->show == VOXELD__V1__VOLUME_SHOW__VOLUME_SHOW_DEPTH) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "encode",
                        "VOLUME_JPEG loses depths; VOLUME_PNG keeps them");
    }
    return VXD_OK;
}

static enum vxd_status check_numbers(const Voxeld__V1__VolumeRenderRequest *input,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(check_place(input->eye, "eye", err));
    VXD_TRY(check_place(input->target, "target", err));
    VXD_TRY(check_place(input->up, "up", err));
    VXD_TRY(check_place(input->sun_direction, "sun_direction", err));
    VXD_TRY(vxd_volume_check_number(input->z_low_m, "z_low_m", -MAX_PLACE_M, MAX_PLACE_M,
                                    err));
    VXD_TRY(vxd_volume_check_number(input->z_high_m, "z_high_m", -MAX_PLACE_M,
                                    MAX_PLACE_M, err));
    status = vxd_volume_check_number(
        input->height, "height", 0, input->panorama ? VXD_LIDAR_MAX_ROWS : MAX_SIDE, err);
out:
    return status;
}

static void copy_vector(const Voxeld__V1__Vec3 *v, double out[3])
{
    out[0] = v->x;
    out[1] = v->y;
    out[2] = v->z;
}

static bool has_direction(const Voxeld__V1__Vec3 *v)
{
    return v != NULL && (v->x != 0 || v->y != 0 || v->z != 0);
}

static void read_picture(const Voxeld__V1__VolumeRenderRequest *input,
                         struct vxd_render_picture *picture)
{
    static const enum vxd_render_mode modes[] = {VXD_RENDER_COLOUR, VXD_RENDER_HEIGHT,
                                                 VXD_RENDER_NORMAL, VXD_RENDER_LABEL,
                                                 VXD_RENDER_DEPTH};

    vxd_render_set_sky(picture);
    picture->camera.kind =
        input->panorama ? VXD_RENDER_EQUIRECTANGULAR : VXD_RENDER_PINHOLE;
    picture->camera.fov_y_deg = input->fov_y_deg > 0 ? input->fov_y_deg : DEFAULT_FOV_DEG;
    picture->camera.up[2] = 1;
    if (has_direction(input->up)) {
        copy_vector(input->up, picture->camera.up);
    }
    if (has_direction(input->sun_direction)) {
        copy_vector(input->sun_direction, picture->sun_direction);
    }
    picture->mode = modes[input->show];
    picture->width = input->width > 0 ? input->width : DEFAULT_WIDTH;
    picture->height = input->height > 0 ? input->height : DEFAULT_HEIGHT;
    picture->voxel_size_m = 1;
    picture->samples = 1;
    picture->sun = input->sun != 0 ? fmax(input->sun, 0) : picture->sun;
    picture->ambient = input->ambient != 0 ? fmax(input->ambient, 0) : picture->ambient;
}

enum vxd_status vxd_volume_render_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeRenderRequest *input = input_of(request);
    struct render_job *job;
    uint64_t n_pixels;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(check_choices(input, err));
    VXD_TRY(check_numbers(input, err));
    read_picture(input, &job->picture);
    n_pixels = (uint64_t)job->picture.width * job->picture.height;
    if (n_pixels > VXD_VOLUME_MAX_PIXELS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "width",
                         "%u x %u pixels are more than %d", job->picture.width,
                         job->picture.height, VXD_VOLUME_MAX_PIXELS));
    }
    job->casting.args.weight_threshold = input->min_weight;
    job->casting.args.passes_backs = true;
    request->cost_bytes = n_pixels * PIXEL_BYTES;
out:
    return status;
}

/* --- the view ----------------------------------------------------------------------------- */

/* Finds the box of the volume's blocks; of none it is around the origin. */
static enum vxd_status find_box(struct render_job *job, struct vxd_queue *queue,
                                struct vxd_err *err)
{
    const struct vxd_volume *volume = job->base.volume->state.volume;
    const struct vxd_volume_spec *spec = &job->base.volume->spec;
    const double side_m = spec->block_edge * spec->voxel_size_m;
    struct vxd_volume_blocks blocks = {0};
    int32_t *entries = NULL;
    int32_t low[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
    int32_t high[3] = {INT32_MIN, INT32_MIN, INT32_MIN};
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_volume_list_changed(queue, volume, 0, &entries, &n, err));
    VXD_TRY(vxd_volume_read_blocks(queue, volume, entries, n, false, &blocks, err));
    for (size_t i = 0; i < 3 * n; i++) {
        int32_t key = blocks.keys[i];

        low[i % 3] = key < low[i % 3] ? key : low[i % 3];
        high[i % 3] = key > high[i % 3] ? key : high[i % 3];
    }
    for (int axis = 0; axis < 3; axis++) {
        job->low[axis] = n > 0 ? low[axis] * side_m : 0;
        job->high[axis] = n > 0 ? (high[axis] + 1) * side_m : side_m;
    }
out:
    vxd_volume_blocks_free(queue, &blocks);
    free(entries);
    return status;
}

static bool is_same_place(const Voxeld__V1__Vec3 *a, const Voxeld__V1__Vec3 *b)
{
    return a != NULL && b != NULL && a->x == b->x && a->y == b->y && a->z == b->z;
}

/* A place of the message's, from the volume's origin. */
static enum vxd_status bring_place(const struct render_job *job,
                                   const Voxeld__V1__Vec3 *v, const char *field,
                                   double out[3], struct vxd_err *err)
{
    const double *origin = job->base.volume->spec.origin_m;

    copy_vector(v, out);
    for (int i = 0; i < 3; i++) {
        out[i] -= origin[i];
        if (fabs(out[i]) > MAX_DISTANCE_M) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "is farther than %g m from the volume's origin, which is at "
                            "%g, %g, %g",
                            MAX_DISTANCE_M, origin[0], origin[1], origin[2]);
        }
    }
    return VXD_OK;
}

static enum vxd_status set_view(const Voxeld__V1__VolumeRenderRequest *input,
                                struct render_job *job, struct vxd_err *err)
{
    struct vxd_render_camera *camera = &job->picture.camera;
    double z_zero = job->base.volume->spec.origin_m[2];
    bool is_free = is_same_place(input->eye, input->target);
    bool has_heights = input->z_low_m < input->z_high_m;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < 3; i++) {
        camera->target[i] = (job->low[i] + job->high[i]) / 2;
    }
    if (input->target != NULL && !is_free) {
        VXD_TRY(bring_place(job, input->target, "target", camera->target, err));
    }
    if (input->eye != NULL && !is_free) {
        VXD_TRY(bring_place(job, input->eye, "eye", camera->eye, err));
    } else {
        vxd_render_stand_back(&job->picture, job->side, job->low, job->high,
                              camera->target, LEAST_M, camera->eye);
    }
    if (camera->eye[0] == camera->target[0] && camera->eye[1] == camera->target[1] &&
        (camera->eye[2] == camera->target[2] || input->panorama)) {
        camera->target[0] += 1;
    }
    job->picture.z_low = has_heights ? input->z_low_m - z_zero : job->low[2];
    job->picture.z_high = has_heights ? input->z_high_m - z_zero : job->high[2];
out:
    return status;
}

/* How far the farthest corner of the box is from the eye, along the longest ray. */
static double farthest(const struct render_job *job)
{
    const double *eye = job->picture.camera.eye;
    double square = 0;

    for (int i = 0; i < 3; i++) {
        double d = fmax(fabs(job->low[i] - eye[i]), fabs(job->high[i] - eye[i]));

        square += d * d;
    }
    return fmin(sqrt(square), MAX_DEPTH_M);
}

/* The camera as the engine casts it: x to the right, y down, z forward; or, all around, x forward, y
 * to the left, z up. */
static enum vxd_status set_casting(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeRenderRequest *input = input_of(request);
    struct render_job *job = request->state;
    struct vxd_volume_cast_args *args = &job->casting.args;
    const struct vxd_render_picture *picture = &job->picture;
    const double *origin = job->base.volume->spec.origin_m;
    struct vxd_render_axes axes;

    vxd_render_find_axes(&picture->camera, &axes);
    for (size_t i = 0; i < 3; i++) {
        double *row = args->T_map_camera.rotation + 3 * i;

        args->T_map_camera.translation[i] = picture->camera.eye[i] + origin[i];
        row[0] = input->panorama ? axes.forward[i] : axes.right[i];
        row[1] = input->panorama ? -axes.right[i] : -axes.up[i];
        row[2] = input->panorama ? axes.up[i] : axes.forward[i];
    }
    args->depth_max_m = input->depth_max_m > 0 ? input->depth_max_m : farthest(job);
    if (input->panorama) {
        double *elevations =
            vxd_message_array(request->decoder, picture->height, sizeof *elevations, err);

        if (elevations == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        for (uint32_t y = 0; y < picture->height; y++) {
            elevations[y] = (0.5 - (y + 0.5) / picture->height) * 180;
        }
        job->lidar = (struct vxd_volume_lidar){.rows = (int)picture->height,
                                               .columns = (int)picture->width,
                                               .elevations_deg = elevations,
                                               .azimuth_begin_deg = 180,
                                               .azimuth_span_deg = -360};
        args->lidar = &job->lidar;
        return vxd_volume_check_lidar(&job->lidar, VXD_CAMERA_MAX_ELEVATION, err);
    }
    args->camera.width = (int)picture->width;
    args->camera.height = (int)picture->height;
    args->camera.fy = picture->height / (2 * tan(picture->camera.fov_y_deg * PI / 360));
    args->camera.fx = args->camera.fy;
    args->camera.cx = picture->width / 2.0 - 0.5;
    args->camera.cy = picture->height / 2.0 - 0.5;
    return VXD_OK;
}

/* Casts a small picture from one side and counts the pixels that have a surface. */
static enum vxd_status count_seen(struct vxd_request *request, struct vxd_queue *queue,
                                  float *depths, size_t n, size_t *n_seen,
                                  struct vxd_err *err)
{
    struct render_job *job = request->state;
    struct vxd_buffer device = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    *n_seen = 0;
    VXD_TRY(set_view(input_of(request), job, err));
    VXD_TRY(set_casting(request, err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof *depths, &device, err));
    job->casting.args.depth = device.ptr;
    VXD_TRY(
        vxd_volume_cast(queue, job->base.volume->state.volume, &job->casting.args, err));
    VXD_TRY(vxd_queue_copy(queue, depths, device.ptr, n * sizeof *depths, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    for (size_t i = 0; i < n; i++) {
        *n_seen += depths[i] > 0 ? 1 : 0;
    }
out:
    job->casting.args.depth = NULL;
    vxd_device_free(queue, &device);
    return status;
}

/* Where the eye is ours to choose, it stands on the side that most is seen from: surfaces that were
 * observed from one side alone have a front there. */
static enum vxd_status find_side(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    const Voxeld__V1__VolumeRenderRequest *input = input_of(request);
    struct render_job *job = request->state;
    const uint32_t width = job->picture.width;
    const uint32_t height = job->picture.height;
    size_t n_most = 0;
    int best = 0;
    float *depths = NULL;
    size_t n;
    enum vxd_status status = VXD_OK;

    if (input->panorama ||
        (input->eye != NULL && !is_same_place(input->eye, input->target))) {
        return VXD_OK;
    }
    job->picture.width = TRIAL_WIDTH;
    job->picture.height = (uint32_t)((uint64_t)TRIAL_WIDTH * height / width) + 1;
    n = (size_t)TRIAL_WIDTH * job->picture.height;
    depths = malloc(n * sizeof *depths);
    if (depths == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a trial"));
    }
    for (int side = 0; side < VXD_RENDER_N_SIDES; side++) {
        size_t n_seen;

        job->side = side;
        VXD_TRY(count_seen(request, queue, depths, n, &n_seen, err));
        n_seen *= (side & 4) != 0 ? 1 : 2; /* people look from above */
        best = n_seen > n_most ? side : best;
        n_most = n_seen > n_most ? n_seen : n_most;
    }
out:
    job->side = best;
    job->picture.width = width;
    job->picture.height = height;
    free(depths);
    return status;
}

/* --- the stages --------------------------------------------------------------------------- */

/* Memory of what is cast. No tensor of it goes out. */
static enum vxd_status reserve(struct vxd_request *request, struct vxd_queue *queue,
                               struct vxd_err *err)
{
    const Voxeld__V1__VolumeRenderRequest *input = input_of(request);
    struct render_job *job = request->state;
    struct vxd_volume_cast_args *args = &job->casting.args;
    size_t n = (size_t)job->picture.width * job->picture.height;
    enum vxd_status status;

    VXD_TRY(vxd_columns_reserve_shown(request, &job->base.query.columns, queue,
                                      VXD_FLOAT32, n, 0, NULL, &job->depth, err));
    args->depth = job->depth->device;
    if (is_depth(request)) {
        return VXD_OK;
    }
    VXD_TRY(vxd_columns_reserve_shown(request, &job->base.query.columns, queue,
                                      VXD_FLOAT32, n, 3, NULL, &job->normals, err));
    args->normal = job->normals->device;
    switch (input->show) {
    case VOXELD__V1__VOLUME_SHOW__VOLUME_SHOW_HEIGHT:
        VXD_TRY(vxd_columns_reserve_shown(request, &job->base.query.columns, queue,
                                          VXD_FLOAT32, n, 3, NULL, &job->places, err));
        args->vertex = job->places->device;
        break;
    case VOXELD__V1__VOLUME_SHOW__VOLUME_SHOW_LABEL:
        VXD_TRY(vxd_columns_reserve_shown(request, &job->base.query.columns, queue,
                                          VXD_UINT8, n, 0, NULL, &job->labels, err));
        args->label = job->labels->device;
        break;
    case VOXELD__V1__VOLUME_SHOW__VOLUME_SHOW_COLOUR:
        if (job->base.volume->spec.has_colour) {
            VXD_TRY(vxd_columns_reserve_shown(request, &job->base.query.columns, queue,
                                              VXD_UINT8, n, 3, NULL, &job->colours, err));
            args->colour = job->colours->device;
        }
        break;
    default:
        break;
    }
out:
    return status;
}

static enum vxd_status open(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_err *err)
{
    const Voxeld__V1__VolumeRenderRequest *input = input_of(request);
    struct render_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(vxd_volume_open(request, input->name, err));
    if (input->show == VOXELD__V1__VOLUME_SHOW__VOLUME_SHOW_LABEL &&
        !job->base.volume->spec.has_labels) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "show",
                         "the volume \"%s\" keeps no labels", input->name));
    }
    VXD_TRY(find_box(job, queue, err));
    VXD_TRY(find_side(request, queue, err));
    VXD_TRY(set_view(input, job, err));
    VXD_TRY(vxd_render_plan_create(queue, &job->picture, &job->plan, err));
    VXD_TRY(set_casting(request, err));
    VXD_TRY(vxd_volume_plan_casting(request, queue, &job->casting, err));
    VXD_TRY(reserve(request, queue, err));
    job->step = CAST;
out:
    return status;
}

/* Rows of a band: all of a JPEG's. */
static uint32_t count_band_rows(const struct vxd_request *request)
{
    const struct render_job *job = request->state;
    uint32_t n = BAND_PIXELS / job->picture.width;

    n = n > 0 ? n : 1;
    return n < job->picture.height ? n : job->picture.height;
}

/* Depths as millimetres; what is not there is 0. */
static void put_millimetres(const float *depths, size_t n, uint16_t *out)
{
    for (size_t i = 0; i < n; i++) {
        double mm = floor((double)depths[i] * 1000 + 0.5);

        out[i] = !(depths[i] > 0)  ? 0
                 : mm < UINT16_MAX ? (uint16_t)fmax(mm, 1)
                                   : UINT16_MAX;
    }
}

static enum vxd_status begin_file(struct vxd_request *request, struct vxd_err *err)
{
    struct render_job *job = request->state;
    const struct vxd_image image = {.width = job->picture.width,
                                    .height = job->picture.height,
                                    .n_channels = is_depth(request) ? 1 : CHANNELS,
                                    .sample_bytes = is_depth(request) ? 2 : 1};
    size_t n_rows = is_jpeg(request) ? image.height : count_band_rows(request);

    job->pixels = malloc(n_rows * image.width * CHANNELS);
    if (job->pixels == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the picture");
    }
    return is_jpeg(request) ? VXD_OK : vxd_png_begin(&image, PNG_LEVEL, &job->png, err);
}

static enum vxd_status end_file(struct vxd_request *request, struct vxd_err *err)
{
    struct render_job *job = request->state;
    uint32_t quality = input_of(request)->quality;
    const struct vxd_image image = {.width = job->picture.width,
                                    .height = job->picture.height,
                                    .n_channels = CHANNELS,
                                    .sample_bytes = 1,
                                    .data = job->pixels};

    return is_jpeg(request)
               ? vxd_jpeg_encode(&image, quality > 0 ? (int)quality : DEFAULT_QUALITY,
                                 &job->file, &job->n_file, err)
               : vxd_png_take_file(job->png, &job->file, &job->n_file, err);
}

static const void *bytes_of(const struct vxd_column *output)
{
    return output != NULL ? output->bytes : NULL;
}

/* Lights and encodes the next rows; the last ones end the file. */
static enum vxd_status draw(struct vxd_request *request, struct vxd_err *err)
{
    struct render_job *job = request->state;
    const uint32_t width = job->picture.width;
    const uint32_t left = job->picture.height - job->n_drawn;
    const struct vxd_render_seen seen = {
        .depths = bytes_of(job->depth),
        .normals = bytes_of(job->normals),
        .places = bytes_of(job->places),
        .colours = bytes_of(job->colours),
        .labels = bytes_of(job->labels),
    };
    uint32_t n_rows = count_band_rows(request);
    uint8_t *rows;
    enum vxd_status status = VXD_OK;

    if (job->pixels == NULL) {
        VXD_TRY(begin_file(request, err));
    }
    n_rows = n_rows < left ? n_rows : left;
    rows = job->pixels + (is_jpeg(request) ? (size_t)job->n_drawn * width * CHANNELS : 0);
    if (is_depth(request)) {
        put_millimetres(seen.depths + (size_t)job->n_drawn * width,
                        (size_t)n_rows * width, (uint16_t *)(void *)rows);
    } else {
        vxd_render_light_rows(job->plan, &seen, job->n_drawn, n_rows, rows);
    }
    if (!is_jpeg(request)) {
        VXD_TRY(vxd_png_write_rows(job->png, rows, n_rows, err));
    }
    job->n_drawn += n_rows;
    request->more = n_rows < left;
    if (!request->more) {
        VXD_TRY(end_file(request, err));
    }
out:
    return status;
}

enum vxd_status vxd_volume_render_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct render_job *job = request->state;
    bool is_done;
    enum vxd_status status = VXD_OK;

    if (job->step == DRAW) {
        return draw(request, err);
    }
    if (job->step == OPEN) {
        VXD_TRY(open(request, queue, err));
    }
    VXD_TRY(vxd_volume_cast_rows(request, queue, &job->casting, &is_done, err));
    if (is_done) {
        VXD_TRY(vxd_columns_fetch(&job->base.query.columns, queue, err));
    }
    job->step = is_done ? DRAW : CAST;
    request->more = true;
out:
    return status;
}

static enum vxd_status show_place(struct vxd_request *request, const double place[3],
                                  Voxeld__V1__Vec3 **out, struct vxd_err *err)
{
    const struct render_job *job = request->state;
    const double *origin = job->base.volume->spec.origin_m;
    Voxeld__V1__Vec3 *v =
        vxd_message_new(request->decoder, &voxeld__v1__vec3__descriptor, err);

    if (v == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    v->x = place[0] + origin[0];
    v->y = place[1] + origin[1];
    v->z = place[2] + origin[2];
    *out = v;
    return VXD_OK;
}

enum vxd_status vxd_volume_render_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    const struct render_job *job = request->state;
    const float *depths = job->depth->bytes;
    size_t n = (size_t)job->picture.width * job->picture.height;
    Voxeld__V1__VolumeRenderResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_render_response__descriptor, err);
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(show_place(request, job->picture.camera.eye, &reply->eye, err));
    VXD_TRY(show_place(request, job->picture.camera.target, &reply->target, err));
    reply->image.data = job->file;
    reply->image.len = job->n_file;
    reply->width = job->picture.width;
    reply->height = job->picture.height;
    reply->stamp = job->casting.version;
    for (size_t i = 0; i < n; i++) {
        reply->n_hits += depths[i] > 0 ? 1 : 0;
    }
    reply->engine_ms = (double)request->engine_ns / 1e6;
    request->output = &reply->base;
out:
    return status;
}

void vxd_volume_render_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct render_job *job = request->state;

    vxd_render_plan_destroy(queue, job->plan);
    job->plan = NULL;
    vxd_png_destroy(job->png);
    job->png = NULL;
    free(job->pixels);
    job->pixels = NULL;
    free(job->file);
    job->file = NULL;
    vxd_volume_release(request, queue);
}
