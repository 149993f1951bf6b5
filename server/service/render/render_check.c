// SPDX-License-Identifier: Apache-2.0
/* What a message says about its picture, checked on the transport's thread. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/render/scene_render.h"
#include "server/service/service.h"

enum {
    DEFAULT_WIDTH = 640,
    DEFAULT_HEIGHT = 360,
    MAX_PIXELS = 1 << 23,
    MAX_PIXEL_RAYS = 4096, /* a pixel is drawn in one stage */
    PATH_SAMPLES = 16,
    AO_SAMPLES = 16,
    PATH_BOUNCES = 3,
    /* Bytes of a pixel on the device, on the host and in a reply. */
    PIXEL_BYTES = 12
};

static const enum vxd_render_mode modes[] = {
    [VOXELD__V1__RENDER_MODE__RENDER_COLOUR] = VXD_RENDER_COLOUR,
    [VOXELD__V1__RENDER_MODE__RENDER_HEIGHT] = VXD_RENDER_HEIGHT,
    [VOXELD__V1__RENDER_MODE__RENDER_DEPTH] = VXD_RENDER_DEPTH,
    [VOXELD__V1__RENDER_MODE__RENDER_NORMAL] = VXD_RENDER_NORMAL,
    [VOXELD__V1__RENDER_MODE__RENDER_MATERIAL] = VXD_RENDER_MATERIAL,
    [VOXELD__V1__RENDER_MODE__RENDER_AO] = VXD_RENDER_AO,
    [VOXELD__V1__RENDER_MODE__RENDER_PATH] = VXD_RENDER_PATH,
    [VOXELD__V1__RENDER_MODE__RENDER_AGE] = VXD_RENDER_AGE,
    [VOXELD__V1__RENDER_MODE__RENDER_LABEL] = VXD_RENDER_LABEL};

bool vxd_render_needs_bounds(const Voxeld__V1__SceneRenderRequest *input)
{
    bool has_view =
        input->view != NULL && input->view->eye != NULL && input->view->target != NULL;
    bool needs_height = input->camera == VOXELD__V1__RENDER_CAMERA__RENDER_ORTHOGRAPHIC &&
                        !(input->view_height_m > 0);
    bool needs_colours = input->mode == VOXELD__V1__RENDER_MODE__RENDER_HEIGHT &&
                         !(input->z_low_m < input->z_high_m);

    return !has_view || needs_height || needs_colours;
}

static enum vxd_status check_range(double value, double low, double high,
                                   const char *field, struct vxd_err *err)
{
    return value >= low && value <= high
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %g, it must be %g to %g",
                          value, low, high);
}

static enum vxd_status check_finite(double value, const char *field, struct vxd_err *err)
{
    return isfinite(value) ? VXD_OK
                           : vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                                      "is %g, it must be finite", value);
}

static enum vxd_status check_vectors(const Voxeld__V1__SceneRenderRequest *input,
                                     struct vxd_err *err)
{
    const Voxeld__V1__RenderView *view = input->view;
    enum vxd_status status = VXD_OK;

    if (view != NULL && view->eye != NULL) {
        VXD_TRY(vxd_scene_check_vector(view->eye, "view.eye", err));
    }
    if (view != NULL && view->target != NULL) {
        VXD_TRY(vxd_scene_check_vector(view->target, "view.target", err));
    }
    if (view != NULL && view->up != NULL) {
        VXD_TRY(vxd_scene_check_vector(view->up, "view.up", err));
    }
    if (input->sun_direction != NULL) {
        VXD_TRY(vxd_scene_check_vector(input->sun_direction, "sun_direction", err));
    }
    if (view != NULL && view->eye != NULL && view->target != NULL &&
        view->eye->x == view->target->x && view->eye->y == view->target->y &&
        view->eye->z == view->target->z) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "view.target",
                         "is the eye, it must be another point"));
    }
out:
    return status;
}

static enum vxd_status check_numbers(const Voxeld__V1__SceneRenderRequest *input,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(check_finite(input->z_low_m, "z_low_m", err));
    status = check_finite(input->z_high_m, "z_high_m", err);
out:
    return status;
}

static enum vxd_status check_choices(const Voxeld__V1__SceneRenderRequest *input,
                                     struct vxd_err *err)
{
    if (input->encode == VOXELD__V1__RENDER_ENCODE__RENDER_JPEG &&
        (modes[input->mode] < VXD_RENDER_COLOUR)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "encode",
                        "RENDER_JPEG loses what DEPTH, NORMAL and MATERIAL say; "
                        "RENDER_PNG and RENDER_TENSOR keep it");
    }
    return VXD_OK;
}

/* Copies a lidar's elevations, whose number is the picture's height. */
static enum vxd_status read_elevations(struct vxd_request *request,
                                       const Voxeld__V1__SceneRenderRequest *input,
                                       struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    double *elevations;
    size_t n;
    enum vxd_status status;

    VXD_TRY(vxd_scene_check_numbers(input->elevations_deg, "elevations_deg", 1, false, &n,
                                    err));
    if (n < 1 || n > VXD_RENDER_MAX_SIDE || (input->height != 0 && input->height != n)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "elevations_deg",
                         "are %zu, they must be 1 to %u, and `height` 0 or as many", n,
                         VXD_RENDER_MAX_SIDE));
    }
    elevations = vxd_message_array(request->decoder, n, sizeof *elevations, err);
    if (elevations == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        elevations[i] = vxd_scene_number(input->elevations_deg, i);
        VXD_TRY(check_range(elevations[i], -90, 90, "elevations_deg", err));
    }
    job->picture.camera.elevations_deg = elevations;
    job->picture.height = (uint32_t)n;
out:
    return status;
}

static enum vxd_status read_size(struct vxd_request *request,
                                 const Voxeld__V1__SceneRenderRequest *input,
                                 struct vxd_err *err)
{
    struct vxd_render_picture *picture =
        &((struct vxd_render_job *)request->state)->picture;
    enum vxd_status status;

    picture->width = input->width > 0 ? input->width : DEFAULT_WIDTH;
    picture->height = input->height > 0 ? input->height : DEFAULT_HEIGHT;
    if (input->camera == VOXELD__V1__RENDER_CAMERA__RENDER_LIDAR) {
        VXD_TRY(read_elevations(request, input, err));
    }
    if ((uint64_t)picture->width * picture->height > MAX_PIXELS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "width",
                         "%u x %u pixels are more than %d", picture->width,
                         picture->height, MAX_PIXELS));
    }
out:
    return status;
}

static double strength(double value, double absent)
{
    return value == 0 ? absent : fmax(value, 0);
}

static void read_picture(const Voxeld__V1__SceneRenderRequest *input,
                         struct vxd_render_picture *picture)
{
    const Voxeld__V1__Vec3 *direction = input->sun_direction;
    bool is_path = input->mode == VOXELD__V1__RENDER_MODE__RENDER_PATH;
    bool is_ao = input->mode == VOXELD__V1__RENDER_MODE__RENDER_AO;

    vxd_render_set_sky(picture);
    picture->camera.kind = (enum vxd_render_camera_kind)input->camera;
    picture->camera.fov_y_deg = input->fov_y_deg > 0 ? input->fov_y_deg : 50;
    picture->mode = modes[input->mode];
    picture->samples = input->samples > 0 ? input->samples : is_path ? PATH_SAMPLES : 1;
    picture->ao_samples = input->ao_samples > 0 ? input->ao_samples
                          : is_ao               ? AO_SAMPLES
                                                : 0;
    picture->bounces = input->bounces > 0 ? input->bounces : PATH_BOUNCES;
    picture->seed = input->seed;
    picture->shadows = !input->no_shadows;
    if (direction != NULL &&
        (direction->x != 0 || direction->y != 0 || direction->z != 0)) {
        picture->sun_direction[0] = direction->x;
        picture->sun_direction[1] = direction->y;
        picture->sun_direction[2] = direction->z;
    }
    picture->sun = strength(input->sun, picture->sun);
    picture->ambient = strength(input->ambient, picture->ambient);
    picture->sky = is_path ? strength(input->ambient, 0.75) : 0;
    picture->variation = input->variation;
    picture->detail = input->detail;
}

/* Refuses pixels that one stage should not draw. */
static enum vxd_status check_rays(const struct vxd_render_picture *picture,
                                  struct vxd_err *err)
{
    uint64_t n_rays = vxd_render_rays_of_pixel(picture);

    return n_rays <= MAX_PIXEL_RAYS
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "samples",
                          "%u make %llu rays a pixel with those of light, at most %d are "
                          "cast: ask for fewer samples, ao_samples or bounces",
                          picture->samples, (unsigned long long)n_rays, MAX_PIXEL_RAYS);
}

enum vxd_status vxd_scene_render_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneRenderRequest *input =
        (const Voxeld__V1__SceneRenderRequest *)request->input;
    struct vxd_render_job *job;
    uint64_t n_pixels;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(check_choices(input, err));
    VXD_TRY(check_vectors(input, err));
    VXD_TRY(check_numbers(input, err));
    VXD_TRY(vxd_render_check_materials(input, err));
    VXD_TRY(vxd_render_check_others(input, err));
    VXD_TRY(read_size(request, input, err));
    read_picture(input, &job->picture);
    VXD_TRY(vxd_render_check_volumes(input, &job->picture, err));
    VXD_TRY(check_rays(&job->picture, err));
    n_pixels = (uint64_t)job->picture.width * job->picture.height;
    job->n_rays =
        n_pixels * vxd_render_rays_of_pixel(&job->picture) * (1 + input->n_others) +
        n_pixels * input->n_volumes;
    request->bulk = job->n_rays > request->server->config.bulk_points;
    request->cost_bytes = n_pixels * PIXEL_BYTES * (1 + 2 * input->n_others);
    if (input->n_volumes > 0) {
        request->cost_bytes += n_pixels * (PIXEL_BYTES + VXD_RENDER_VOLUME_BYTES);
    }
out:
    return status;
}
