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

#define DEFAULT_FOV_DEG 50
#define MAX_PLACE_M 1e10 /* in the map */
#define LEAST_M 0.1      /* from the surface's middle to where we put the eye */
#define TRIAL_WIDTH 64   /* pixels of a row of the pictures by which a side is chosen */

enum step {
    OPEN,
    CAST,
    DRAW
};

struct render_job {
    struct vxd_volume_job base; /* first: request->state is both */
    enum step step;
    struct vxd_volume_sight view;
    struct vxd_render_plan *plan;
    int side; /* of the view's box that an eye of ours stands on */
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
    read_picture(input, &job->view.picture);
    n_pixels = (uint64_t)job->view.picture.width * job->view.picture.height;
    if (n_pixels > VXD_VOLUME_MAX_PIXELS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "width",
                         "%u x %u pixels are more than %d", job->view.picture.width,
                         job->view.picture.height, VXD_VOLUME_MAX_PIXELS));
    }
    job->view.casting.args.weight_threshold = input->min_weight;
    job->view.casting.args.passes_backs = true;
    request->cost_bytes = n_pixels * PIXEL_BYTES;
out:
    return status;
}

/* --- the view ----------------------------------------------------------------------------- */

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
        if (fabs(out[i]) > VXD_VOLUME_MAX_DISTANCE_M) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "is farther than %g m from the volume's origin, which is at "
                            "%g, %g, %g",
                            VXD_VOLUME_MAX_DISTANCE_M, origin[0], origin[1], origin[2]);
        }
    }
    return VXD_OK;
}

static enum vxd_status set_view(const Voxeld__V1__VolumeRenderRequest *input,
                                struct render_job *job, struct vxd_err *err)
{
    struct vxd_render_camera *camera = &job->view.picture.camera;
    double z_zero = job->base.volume->spec.origin_m[2];
    bool is_free = is_same_place(input->eye, input->target);
    bool has_heights = input->z_low_m < input->z_high_m;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < 3; i++) {
        camera->target[i] = (job->view.low[i] + job->view.high[i]) / 2;
    }
    if (input->target != NULL && !is_free) {
        VXD_TRY(bring_place(job, input->target, "target", camera->target, err));
    }
    if (input->eye != NULL && !is_free) {
        VXD_TRY(bring_place(job, input->eye, "eye", camera->eye, err));
    } else {
        vxd_render_stand_back(&job->view.picture, job->side, job->view.low,
                              job->view.high, camera->target, LEAST_M, camera->eye);
    }
    if (camera->eye[0] == camera->target[0] && camera->eye[1] == camera->target[1] &&
        (camera->eye[2] == camera->target[2] || input->panorama)) {
        camera->target[0] += 1;
    }
    job->view.picture.z_low = has_heights ? input->z_low_m - z_zero : job->view.low[2];
    job->view.picture.z_high = has_heights ? input->z_high_m - z_zero : job->view.high[2];
out:
    return status;
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
    VXD_TRY(vxd_volume_aim(request, &job->view, input_of(request)->depth_max_m, err));
    VXD_TRY(vxd_device_alloc(queue, n * sizeof *depths, &device, err));
    job->view.casting.args.depth = device.ptr;
    VXD_TRY(vxd_volume_cast(queue, job->base.volume->state.volume,
                            &job->view.casting.args, err));
    VXD_TRY(vxd_queue_copy(queue, depths, device.ptr, n * sizeof *depths, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    for (size_t i = 0; i < n; i++) {
        *n_seen += depths[i] > 0 ? 1 : 0;
    }
out:
    job->view.casting.args.depth = NULL;
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
    const uint32_t width = job->view.picture.width;
    const uint32_t height = job->view.picture.height;
    size_t n_most = 0;
    int best = 0;
    float *depths = NULL;
    size_t n;
    enum vxd_status status = VXD_OK;

    if (input->panorama ||
        (input->eye != NULL && !is_same_place(input->eye, input->target))) {
        return VXD_OK;
    }
    job->view.picture.width = TRIAL_WIDTH;
    job->view.picture.height = (uint32_t)((uint64_t)TRIAL_WIDTH * height / width) + 1;
    n = (size_t)TRIAL_WIDTH * job->view.picture.height;
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
    job->view.picture.width = width;
    job->view.picture.height = height;
    free(depths);
    return status;
}

/* --- the stages --------------------------------------------------------------------------- */

static enum vxd_status open(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_err *err)
{
    const Voxeld__V1__VolumeRenderRequest *input = input_of(request);
    struct render_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(vxd_volume_open(request, input->name, err));
    job->view.casting.volume = job->base.volume;
    if (input->show == VOXELD__V1__VOLUME_SHOW__VOLUME_SHOW_LABEL &&
        !job->base.volume->spec.has_labels) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "show",
                         "the volume \"%s\" keeps no labels", input->name));
    }
    VXD_TRY(vxd_volume_find_box(queue, &job->view, err));
    VXD_TRY(find_side(request, queue, err));
    VXD_TRY(set_view(input, job, err));
    VXD_TRY(vxd_render_plan_create(queue, &job->view.picture, &job->plan, err));
    VXD_TRY(vxd_volume_aim(request, &job->view, input_of(request)->depth_max_m, err));
    VXD_TRY(vxd_volume_plan_casting(request, queue, &job->view.casting, err));
    VXD_TRY(vxd_volume_reserve_seen(request, &job->base.query.columns, queue, &job->view,
                                    err));
    job->step = CAST;
out:
    return status;
}

/* Rows of a band: all of a JPEG's. */
static uint32_t count_band_rows(const struct vxd_request *request)
{
    const struct render_job *job = request->state;
    uint32_t n = BAND_PIXELS / job->view.picture.width;

    n = n > 0 ? n : 1;
    return n < job->view.picture.height ? n : job->view.picture.height;
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
    const struct vxd_image image = {.width = job->view.picture.width,
                                    .height = job->view.picture.height,
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
    const struct vxd_image image = {.width = job->view.picture.width,
                                    .height = job->view.picture.height,
                                    .n_channels = CHANNELS,
                                    .sample_bytes = 1,
                                    .data = job->pixels};

    return is_jpeg(request)
               ? vxd_jpeg_encode(&image, quality > 0 ? (int)quality : DEFAULT_QUALITY,
                                 &job->file, &job->n_file, err)
               : vxd_png_take_file(job->png, &job->file, &job->n_file, err);
}

/* Lights and encodes the next rows; the last ones end the file. */
static enum vxd_status draw(struct vxd_request *request, struct vxd_err *err)
{
    struct render_job *job = request->state;
    const uint32_t width = job->view.picture.width;
    const uint32_t left = job->view.picture.height - job->n_drawn;
    const struct vxd_render_seen seen = vxd_volume_seen(&job->view);
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
    VXD_TRY(vxd_volume_cast_rows(queue, &job->view.casting, &is_done, err));
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
    const float *depths = job->view.depth->bytes;
    size_t n = (size_t)job->view.picture.width * job->view.picture.height;
    Voxeld__V1__VolumeRenderResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_render_response__descriptor, err);
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(show_place(request, job->view.picture.camera.eye, &reply->eye, err));
    VXD_TRY(show_place(request, job->view.picture.camera.target, &reply->target, err));
    reply->image.data = job->file;
    reply->image.len = job->n_file;
    reply->width = job->view.picture.width;
    reply->height = job->view.picture.height;
    reply->stamp = job->view.casting.version;
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
