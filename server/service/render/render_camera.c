// SPDX-License-Identifier: Apache-2.0
/* Where the camera stands. What is occupied is found by exports of cells: of the whole scene,
 * coarsely, then of the box around those cells, until the box is known to a part of its side. */
#include <math.h>

#include "server/service/render/scene_render.h"

enum {
    MAX_CELLS_SIDE = 32, /* of an export */
    ENOUGH_CELLS =
        16 /* on the longest side of the box: its border is known well enough */
};

static int64_t longest(const struct vxd_svdag_export *box)
{
    int64_t side = 1;

    for (int i = 0; i < 3; i++) {
        side = box->high[i] - box->low[i] > side ? box->high[i] - box->low[i] : side;
    }
    return side;
}

static void set_level(struct vxd_svdag_export *box)
{
    int64_t side = longest(box);

    box->level = 0;
    while (side >> box->level > MAX_CELLS_SIDE) {
        box->level++;
    }
}

void vxd_render_begin_bounds(struct vxd_render_job *job)
{
    int64_t side = (int64_t)1 << job->base.scene->spec.format.depth;

    for (int i = 0; i < 3; i++) {
        job->box.low[i] = 0;
        job->box.high[i] = side;
    }
    set_level(&job->box);
}

bool vxd_render_narrow_bounds(struct vxd_render_job *job)
{
    const int32_t *cells = job->cells.bytes;
    uint64_t n = *(const uint64_t *)job->n_cells.bytes;
    int level = job->box.level;
    struct vxd_svdag_export next = job->box;

    job->is_empty = n == 0;
    if (n == 0) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        int64_t low = INT64_MAX;
        int64_t high = INT64_MIN;

        for (uint64_t k = 0; k < n; k++) {
            int64_t at = (int64_t)cells[3 * k + (uint64_t)i] << level;
            int64_t end = at + ((int64_t)1 << level);

            low = at < low ? at : low;
            high = end > high ? end : high;
        }
        next.low[i] = low > job->box.low[i] ? low : job->box.low[i];
        next.high[i] = high < job->box.high[i] ? high : job->box.high[i];
    }
    job->box = next;
    set_level(&job->box);
    return level > 0 && longest(&next) >> level < ENOUGH_CELLS;
}

static void set_vector(double out[3], double x, double y, double z)
{
    out[0] = x;
    out[1] = y;
    out[2] = z;
}

/* Voxels from the scene's low corner. */
static void place(const struct vxd_render_job *job, const Voxeld__V1__Vec3 *v,
                  double out[3])
{
    const struct vxd_scene_spec *spec = &job->base.scene->spec;

    set_vector(out, (v->x - spec->origin_m[0]) / spec->voxel_size_m,
               (v->y - spec->origin_m[1]) / spec->voxel_size_m,
               (v->z - spec->origin_m[2]) / spec->voxel_size_m);
}

/* Half of the box's diagonal. */
static double radius_of(const struct vxd_svdag_export *box)
{
    double square = 0;

    for (int i = 0; i < 3; i++) {
        double half = (double)(box->high[i] - box->low[i]) / 2;

        square += half * half;
    }
    return sqrt(square);
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* How far from the target the eye has to be, against `from`, that all corners of the box are in a
 * picture: its half height and half width where the view has length 1. */
static double distance_for(const struct vxd_svdag_export *box, const double target[3],
                           const double from[3], double half, double aspect)
{
    const double across = sqrt(from[0] * from[0] + from[1] * from[1]);
    const double right[3] = {-from[1] / across, from[0] / across, 0};
    const double up[3] = {-from[0] * from[2] / across, -from[1] * from[2] / across,
                          across};
    double distance = 1;

    for (int k = 0; k < 8; k++) {
        double corner[3];
        double needed;

        for (int i = 0; i < 3; i++) {
            corner[i] =
                (double)((k >> i & 1) != 0 ? box->high[i] : box->low[i]) - target[i];
        }
        needed = fmax(fabs(dot(corner, right)) / (half * aspect),
                      fabs(dot(corner, up)) / half);
        distance = fmax(distance, needed + dot(corner, from));
    }
    return distance;
}

/* Puts the eye so far from the target that all of the box is in the picture, as seen from above a
 * corner; panoramas are seen from above the middle. */
static void set_eye(const struct vxd_render_job *job, double eye[3],
                    const double target[3])
{
    static const double from[3] = {-0.62, -0.54, 0.569386}; /* of length 1 */
    const struct vxd_render_picture *picture = &job->picture;
    double radius = radius_of(&job->box);
    double half = tan(picture->camera.fov_y_deg * 3.14159265358979 / 360);
    double aspect = (double)picture->width / picture->height;
    double distance = 2 * radius;

    if (picture->camera.kind >= VXD_RENDER_EQUIRECTANGULAR) {
        set_vector(eye, target[0], target[1],
                   (double)job->box.high[2] + 0.05 * radius + 1);
        return;
    }
    if (picture->camera.kind == VXD_RENDER_PINHOLE) {
        distance = 1.03 * distance_for(&job->box, target, from, half, aspect);
    }
    for (int i = 0; i < 3; i++) {
        eye[i] = target[i] + from[i] * distance;
        eye[i] = fmin(fmax(eye[i], -VXD_RENDER_MAX_PLACE), VXD_RENDER_MAX_PLACE);
    }
}

static void set_view(struct vxd_render_job *job, const Voxeld__V1__RenderView *view)
{
    struct vxd_render_camera *camera = &job->picture.camera;
    const Voxeld__V1__Vec3 *up = view != NULL ? view->up : NULL;

    set_vector(camera->up, 0, 0, 1);
    if (up != NULL && (up->x != 0 || up->y != 0 || up->z != 0)) {
        set_vector(camera->up, up->x, up->y, up->z);
    }
    if (view != NULL && view->target != NULL) {
        place(job, view->target, camera->target);
    } else {
        for (int i = 0; i < 3; i++) {
            camera->target[i] = (double)(job->box.low[i] + job->box.high[i]) / 2;
        }
    }
    if (view != NULL && view->eye != NULL) {
        place(job, view->eye, camera->eye);
    } else {
        set_eye(job, camera->eye, camera->target);
    }
    /* Where we chose the target, or both lie so near that doubles do not tell them apart, and
     * for panoramas, whose view is level. */
    if (camera->eye[0] == camera->target[0] && camera->eye[1] == camera->target[1] &&
        (camera->eye[2] == camera->target[2] ||
         camera->kind >= VXD_RENDER_EQUIRECTANGULAR)) {
        camera->target[0] += 1;
    }
}

void vxd_render_set_camera(struct vxd_render_job *job,
                           const Voxeld__V1__SceneRenderRequest *input)
{
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    struct vxd_render_picture *picture = &job->picture;
    double aspect = (double)picture->width / picture->height;
    bool has_heights = input->z_low_m < input->z_high_m;

    set_view(job, input->view);
    picture->voxel_size_m = spec->voxel_size_m;
    picture->camera.view_height = input->view_height_m > 0
                                      ? input->view_height_m / spec->voxel_size_m
                                      : 2 * radius_of(&job->box) / fmin(aspect, 1);
    picture->ao_radius = input->ao_radius_m / spec->voxel_size_m;
    picture->z_low = has_heights
                         ? (input->z_low_m - spec->origin_m[2]) / spec->voxel_size_m
                         : (double)job->box.low[2];
    picture->z_high = has_heights
                          ? (input->z_high_m - spec->origin_m[2]) / spec->voxel_size_m
                          : (double)job->box.high[2];
}
