// SPDX-License-Identifier: Apache-2.0
/* The public entry: checks a picture, turns it into numbers and tables, and dispatches parts. */
#include "gpu/render/render.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/render/beam_math.h"
#include "gpu/svdag/query/query.h"
#include "gpu/svdag/store/store.h"

#define PI 3.14159265358979323846

/* --- checks ----------------------------------------------------------------------------- */

static enum vxd_status check_place(const double p[3], const char *field,
                                   struct vxd_err *err)
{
    for (int i = 0; i < 3; i++) {
        if (!(fabs(p[i]) <= VXD_RENDER_MAX_PLACE)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "is %g voxels from the scene's low corner, it must be finite "
                            "and at most %.0f",
                            p[i], VXD_RENDER_MAX_PLACE);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_direction(const double d[3], const char *field,
                                       struct vxd_err *err)
{
    double copy[3] = {d[0], d[1], d[2]};

    if (!isfinite(d[0]) || !isfinite(d[1]) || !isfinite(d[2]) ||
        !vxd_render_normalize(copy)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "is (%g, %g, %g), it must be finite and not 0", d[0], d[1], d[2]);
    }
    return VXD_OK;
}

static enum vxd_status check_number(double value, double low, double high,
                                    const char *field, struct vxd_err *err)
{
    return value >= low && value <= high
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %g, it must be %g to %g",
                          value, low, high);
}

static enum vxd_status check_count(uint32_t value, uint32_t low, uint32_t high,
                                   const char *field, struct vxd_err *err)
{
    return value >= low && value <= high
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %u, it must be %u to %u",
                          value, low, high);
}

static enum vxd_status check_camera(const struct vxd_render_picture *picture,
                                    struct vxd_err *err)
{
    const struct vxd_render_camera *camera = &picture->camera;
    double view[3];
    enum vxd_status status;

    VXD_TRY(check_count((uint32_t)camera->kind, 0, VXD_RENDER_LIDAR, "camera.kind", err));
    VXD_TRY(check_place(camera->eye, "camera.eye", err));
    for (int i = 0; i < 3; i++) {
        view[i] = camera->target[i] - camera->eye[i];
    }
    if (!isfinite(view[0]) || !isfinite(view[1]) || !isfinite(view[2]) ||
        !vxd_render_normalize(view)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "camera.target",
                         "is (%g, %g, %g), it must be finite and another point than the "
                         "eye",
                         camera->target[0], camera->target[1], camera->target[2]));
    }
    VXD_TRY(check_direction(camera->up, "camera.up", err));
    if (camera->kind == VXD_RENDER_PINHOLE &&
        !(camera->fov_y_deg > 0 && camera->fov_y_deg < 180)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "camera.fov_y_deg",
                         "is %g degrees, it must be above 0 and below 180",
                         camera->fov_y_deg));
    }
    if (camera->kind == VXD_RENDER_ORTHOGRAPHIC) {
        double half = camera->view_height / 2 *
                      fmax(1.0, (double)picture->width / (double)picture->height);

        if (!(camera->view_height > 0 && half <= VXD_RENDER_MAX_PLACE)) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "camera.view_height",
                             "is %g voxels, it must be above 0, and neither it nor the "
                             "view's width above %.0f",
                             camera->view_height, 2 * VXD_RENDER_MAX_PLACE));
        }
    }
    for (uint32_t y = 0; camera->kind == VXD_RENDER_LIDAR && y < picture->height; y++) {
        if (camera->elevations_deg == NULL) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "camera.elevations_deg",
                             "are missing"));
        }
        VXD_TRY(check_number(camera->elevations_deg[y], -90, 90, "camera.elevations_deg",
                             err));
    }
out:
    return status;
}

static enum vxd_status check_picture(const struct vxd_render_picture *picture,
                                     struct vxd_err *err)
{
    const double huge = 1e6;
    bool has_samples = vxd_render_is_colour(picture->mode);
    enum vxd_status status;

    VXD_TRY(check_count((uint32_t)picture->mode, 0, VXD_RENDER_N_MODES - 1, "mode", err));
    VXD_TRY(check_count(picture->width, 1, VXD_RENDER_MAX_SIDE, "width", err));
    VXD_TRY(check_count(picture->height, 1, VXD_RENDER_MAX_SIDE, "height", err));
    VXD_TRY(check_camera(picture, err));
    VXD_TRY(vxd_render_materials_check(picture, err));
    if (!(picture->voxel_size_m > 0 && isfinite(picture->voxel_size_m))) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "voxel_size_m",
                         "is %g, it must be above 0 and finite", picture->voxel_size_m));
    }
    if (has_samples) {
        VXD_TRY(check_count(picture->samples, 1, VXD_RENDER_MAX_SAMPLES, "samples", err));
        VXD_TRY(check_count(picture->ao_samples, picture->mode == VXD_RENDER_AO ? 1 : 0,
                            VXD_RENDER_MAX_SAMPLES, "ao_samples", err));
        VXD_TRY(check_direction(picture->sun_direction, "sun_direction", err));
    }
    if (picture->mode == VXD_RENDER_PATH) {
        VXD_TRY(check_count(picture->bounces, 1, VXD_RENDER_MAX_BOUNCES, "bounces", err));
    }
    VXD_TRY(check_number(picture->ao_radius, 0, VXD_RENDER_MAX_PLACE, "ao_radius", err));
    VXD_TRY(check_number(picture->sun, 0, huge, "sun", err));
    VXD_TRY(check_number(picture->ambient, 0, huge, "ambient", err));
    VXD_TRY(check_number(picture->sky, 0, huge, "sky", err));
    VXD_TRY(check_number(picture->variation, 0, 1, "variation", err));
    VXD_TRY(check_number(picture->detail, 0, huge, "detail", err));
    VXD_TRY(check_number(picture->z_low, -DBL_MAX, DBL_MAX, "z_low", err));
    VXD_TRY(check_number(picture->z_high, -DBL_MAX, DBL_MAX, "z_high", err));
    if (picture->n_palette > 0 && picture->palette == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "palette", "is missing"));
    }
    if (picture->n_palette > 65536) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "n_palette",
                         "is %u, it must be at most 65536", picture->n_palette));
    }
out:
    return status;
}

/* --- numbers ---------------------------------------------------------------------------- */

static void set_plane_camera(const struct vxd_render_picture *picture,
                             const struct vxd_render_axes *axes,
                             struct vxd_render_params *params)
{
    const struct vxd_render_camera *camera = &picture->camera;
    bool is_pinhole = camera->kind == VXD_RENDER_PINHOLE;
    double width = (double)picture->width;
    double height = (double)picture->height;
    /* Half of the picture's height where the view has length 1. */
    double half =
        is_pinhole ? tan(camera->fov_y_deg * PI / 360) : camera->view_height / 2;
    double pixel = 2 * half / height;

    for (int i = 0; i < 3; i++) {
        double corner = half * axes->up[i] - pixel * width / 2 * axes->right[i];

        params->direction[i] = (float)(axes->forward[i] + (is_pinhole ? corner : 0));
        params->direction_x[i] = (float)(pixel * axes->right[i]);
        params->direction_y[i] = (float)(-pixel * axes->up[i]);
        params->origin[i] = camera->eye[i] + corner;
        params->origin_x[i] = pixel * axes->right[i];
        params->origin_y[i] = -pixel * axes->up[i];
    }
    if (is_pinhole) {
        params->detail_slope = (float)(picture->detail * pixel);
    } else {
        params->detail_base = (float)(picture->detail * pixel);
    }
}

static void set_sphere_camera(const struct vxd_render_picture *picture,
                              const struct vxd_render_axes *axes,
                              struct vxd_render_params *params, float *columns,
                              float *rows)
{
    const struct vxd_render_camera *camera = &picture->camera;

    for (int i = 0; i < 3; i++) {
        params->direction[i] = (float)axes->forward[i];
        params->direction_x[i] = (float)axes->right[i];
        params->direction_y[i] = (float)axes->up[i];
    }
    for (uint32_t x = 0; x < picture->width; x++) {
        double angle = ((x + 0.5) / picture->width - 0.5) * 2 * PI;

        columns[2 * (size_t)x] = (float)cos(angle);
        columns[2 * (size_t)x + 1] = (float)sin(angle);
    }
    for (uint32_t y = 0; y < picture->height; y++) {
        double angle = camera->kind == VXD_RENDER_LIDAR
                           ? camera->elevations_deg[y] * PI / 180
                           : (0.5 - (y + 0.5) / picture->height) * PI;

        rows[2 * (size_t)y] = (float)cos(angle);
        rows[2 * (size_t)y + 1] = (float)sin(angle);
    }
    params->detail_slope = (float)(picture->detail * 2 * PI / picture->width);
}

/* Light of a stored colour's byte. */
static float linear(uint32_t rgb, int i)
{
    double stored = (rgb >> (16 - 8 * i) & 0xffu) / 255.0;

    return (float)(stored * stored);
}

/* The colours of heights: Mikhailov's polynomials of the Turbo map. */
static void set_ramp(float *ramp)
{
    static const double terms[3][6] = {
        {0.13572138, 4.61539260, -42.66032258, 132.13108234, -152.94239396, 59.28637943},
        {0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604},
        {0.10667330, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973}};

    for (int k = 0; k < VXD_RENDER_RAMP_COLOURS; k++) {
        double x = k / (VXD_RENDER_RAMP_COLOURS - 1.0);

        for (int i = 0; i < 3; i++) {
            double stored = 0;

            for (int term = 5; term >= 0; term--) {
                stored = stored * x + terms[i][term];
            }
            stored = fmin(fmax(stored, 0), 1);
            ramp[3 * k + i] = (float)(stored * stored);
        }
    }
}

static void set_lights(const struct vxd_render_picture *picture,
                       struct vxd_render_params *params)
{
    double sun[3] = {picture->sun_direction[0], picture->sun_direction[1],
                     picture->sun_direction[2]};
    double span = picture->z_high - picture->z_low;

    if (!vxd_render_normalize(sun)) {
        sun[2] = 1; /* a mode without light */
    }
    for (int i = 0; i < 3; i++) {
        params->sun[i] = (float)sun[i];
        params->sky_zenith[i] = linear(picture->sky_zenith, i);
        params->sky_horizon[i] = linear(picture->sky_horizon, i);
        params->sky_ground[i] = linear(picture->sky_ground, i);
    }
    params->has_shadows = picture->shadows;
    params->sun_light = (float)picture->sun;
    params->ambient = (float)picture->ambient;
    params->sky_light = (float)picture->sky;
    params->ao_most =
        picture->ao_radius > 0 ? (float)picture->ao_radius : (float)INFINITY;
    params->variation = (float)picture->variation;
    params->ramp_low = (float)fmin(fmax(picture->z_low, -1e9), 1e9);
    params->ramp_scale =
        (float)(VXD_RENDER_RAMP_COLOURS / (span > 1e-6 && span < 1e9 ? span : 1.0));
}

/* The picture as numbers; the tables go to *tables, which has the floats that n_floats says. */
static size_t n_floats(const struct vxd_render_picture *picture)
{
    return 2 * (size_t)VXD_RENDER_ANGLES + 3 * (size_t)VXD_RENDER_RAMP_COLOURS +
           3 * (size_t)picture->n_palette + 2 * (size_t)picture->width +
           2 * (size_t)picture->height + vxd_render_materials_words(picture);
}

static void set_params(const struct vxd_render_picture *picture,
                       struct vxd_render_params *params, float *tables)
{
    struct vxd_render_axes axes;
    float *ramp = tables + 2 * (size_t)VXD_RENDER_ANGLES;
    float *palette = ramp + 3 * (size_t)VXD_RENDER_RAMP_COLOURS;
    float *columns = palette + 3 * (size_t)picture->n_palette;
    float *rows = columns + 2 * (size_t)picture->width;

    vxd_render_find_axes(&picture->camera, &axes);
    memset(params, 0, sizeof *params);
    memset(columns, 0, 2 * ((size_t)picture->width + picture->height) * sizeof *columns);
    params->kind = picture->camera.kind;
    params->width = picture->width;
    params->height = picture->height;
    params->samples = vxd_render_is_colour(picture->mode) ? picture->samples : 1;
    params->ao_samples = picture->ao_samples;
    params->bounces = picture->bounces;
    params->seed = picture->seed;
    params->voxel_size_m = (float)picture->voxel_size_m;
    for (int i = 0; i < 3; i++) {
        double cell = floor(picture->camera.eye[i]);

        params->eye_cell[i] = (int32_t)cell;
        params->eye_offset[i] = (float)(picture->camera.eye[i] - cell);
    }
    if (params->kind >= VXD_RENDER_EQUIRECTANGULAR) {
        set_sphere_camera(picture, &axes, params, columns, rows);
    } else {
        set_plane_camera(picture, &axes, params);
    }
    set_lights(picture, params);
    for (int i = 0; i < VXD_RENDER_ANGLES; i++) {
        tables[2 * (size_t)i] = (float)cos((i + 0.5) * 2 * PI / VXD_RENDER_ANGLES);
        tables[2 * (size_t)i + 1] = (float)sin((i + 0.5) * 2 * PI / VXD_RENDER_ANGLES);
    }
    set_ramp(ramp);
    for (size_t i = 0; i < 3 * (size_t)picture->n_palette; i++) {
        palette[i] = linear(picture->palette[i / 3], (int)(i % 3));
    }
    params->n_palette = picture->n_palette;
    vxd_render_materials_write(picture,
                               (uint32_t *)(void *)(rows + 2 * (size_t)picture->height));
    params->has_clip = picture->has_clip;
    memcpy(params->clip.low, picture->clip_low, sizeof params->clip.low);
    memcpy(params->clip.high, picture->clip_high, sizeof params->clip.high);
}

/* Points the parameters to their tables. */
static void set_tables(const struct vxd_render_picture *picture,
                       struct vxd_render_params *params, const float *tables)
{
    params->angles = tables;
    params->ramp = params->angles + 2 * (size_t)VXD_RENDER_ANGLES;
    params->palette = params->ramp + 3 * (size_t)VXD_RENDER_RAMP_COLOURS;
    params->columns = params->palette + 3 * (size_t)params->n_palette;
    params->rows = params->columns + 2 * (size_t)params->width;
    vxd_render_materials_place(
        picture,
        (const uint32_t *)(const void *)(params->rows + 2 * (size_t)params->height),
        &params->materials);
}

/* --- the public functions --------------------------------------------------------------- */

uint64_t vxd_render_rays_of_pixel(const struct vxd_render_picture *picture)
{
    uint64_t samples = picture->samples;

    switch (picture->mode) {
    case VXD_RENDER_COLOUR:
    case VXD_RENDER_HEIGHT:
    case VXD_RENDER_AGE:
        return samples * (1 + (picture->shadows ? 1u : 0u) + picture->ao_samples);
    case VXD_RENDER_LABEL:
        return samples;
    case VXD_RENDER_AO:
        return samples * (1 + (uint64_t)picture->ao_samples);
    case VXD_RENDER_PATH:
        return samples * (1 + 2 * (uint64_t)picture->bounces);
    default:
        return 1;
    }
}

enum vxd_status vxd_render_plan_create(struct vxd_queue *queue,
                                       const struct vxd_render_picture *picture,
                                       struct vxd_render_plan **out, struct vxd_err *err)
{
    struct vxd_render_plan *plan = NULL;
    const void *tables;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(check_picture(picture, err));
    plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a picture"));
    }
    plan->context = vxd_queue_context(queue);
    plan->mode = picture->mode;
    VXD_TRY(vxd_host_alloc(plan->context, n_floats(picture) * sizeof(float), &plan->host,
                           err));
    set_params(picture, &plan->params, plan->host.ptr);
    VXD_TRY(vxd_upload(queue, plan->host.ptr, plan->host.n_bytes, &plan->device, &tables,
                       err));
    set_tables(picture, &plan->params, plan->host.ptr);
    plan->columns = plan->params.columns;
    plan->rows = plan->params.rows;
    set_tables(picture, &plan->params, tables);
    *out = plan;
out:
    if (status != VXD_OK) {
        vxd_render_plan_destroy(queue, plan);
    }
    return status;
}

void vxd_render_plan_destroy(struct vxd_queue *queue, struct vxd_render_plan *plan)
{
    if (plan != NULL) {
        vxd_device_free(queue, &plan->device);
        vxd_host_free(plan->context, &plan->host);
        free(plan);
    }
}

static size_t n_tiles(const struct vxd_render_params *params)
{
    return (size_t)((params->width - 1) / VXD_RENDER_BEAM + 1) *
           ((params->height - 1) / VXD_RENDER_BEAM + 1);
}

enum vxd_status vxd_render_draw(struct vxd_queue *queue,
                                const struct vxd_render_plan *plan,
                                const struct vxd_svdag *svdag, uint32_t root,
                                const struct vxd_render_rect *part, uint32_t *pixels,
                                struct vxd_err *err)
{
    const struct vxd_render_params *params = &plan->params;
    struct vxd_render_call call = {svdag->view, root, plan->mode,  *part,
                                   pixels,      NULL, plan->params};
    struct vxd_buffer starts = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    if (part->x > params->width || part->width > params->width - part->x ||
        part->y > params->height || part->height > params->height - part->y) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "part",
                         "of %u x %u pixels from (%u, %u) on is not in the picture, "
                         "which has %u x %u",
                         part->width, part->height, part->x, part->y, params->width,
                         params->height));
    }
    if (part->width == 0 || part->height == 0) {
        return VXD_OK;
    }
    if (pixels == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "pixels", "missing"));
    }
    if (VXD_ON_CUDA(queue->context) && vxd_render_has_beams(params)) {
        VXD_TRY(vxd_device_alloc(queue, n_tiles(params) * sizeof(float), &starts, err));
        call.starts = starts.ptr;
    }
    if (VXD_ON_CUDA(queue->context) && svdag->view.is_split) {
        /* A store that splits items brings the kernels for itself. */
        VXD_TRY(vxd_svdag_draw_split(queue, svdag, &call, err));
    } else {
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_render_draw)(queue, &call, err));
    }
out:
    vxd_device_free(queue, &starts);
    return status;
}

void vxd_render_pixel_ray(const struct vxd_render_plan *plan, uint32_t x, uint32_t y,
                          double origin[3], double direction[3])
{
    struct vxd_render_params params = plan->params;
    struct vxd_render_origin begin;
    float at[2] = {(float)x + 0.5f, (float)y + 0.5f};
    float d[3];

    params.columns = plan->columns;
    params.rows = plan->rows;
    vxd_render_direction(&params, x, y, at, d);
    vxd_render_origin_of(&params, at, &begin);
    for (int i = 0; i < 3; i++) {
        origin[i] = (double)begin.cell[i] + (double)begin.offset[i];
        direction[i] = (double)d[i];
    }
}
