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

/* The corners of the box. */
static void corners_of(const struct vxd_svdag_export *box, double low[3], double high[3])
{
    for (int i = 0; i < 3; i++) {
        low[i] = (double)box->low[i];
        high[i] = (double)box->high[i];
    }
}

static void set_view(struct vxd_render_job *job, const Voxeld__V1__RenderView *view)
{
    struct vxd_render_camera *camera = &job->picture.camera;
    const Voxeld__V1__Vec3 *up = view != NULL ? view->up : NULL;
    double low[3];
    double high[3];

    corners_of(&job->box, low, high);
    set_vector(camera->up, 0, 0, 1);
    if (up != NULL && (up->x != 0 || up->y != 0 || up->z != 0)) {
        set_vector(camera->up, up->x, up->y, up->z);
    }
    if (view != NULL && view->target != NULL) {
        place(job, view->target, camera->target);
    } else {
        for (int i = 0; i < 3; i++) {
            camera->target[i] = (low[i] + high[i]) / 2;
        }
    }
    if (view != NULL && view->eye != NULL) {
        place(job, view->eye, camera->eye);
    } else {
        vxd_render_stand_back(&job->picture, 0, low, high, camera->target, 1,
                              camera->eye);
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
    double low[3];
    double high[3];

    corners_of(&job->box, low, high);
    set_view(job, input->view);
    picture->voxel_size_m = spec->voxel_size_m;
    picture->camera.view_height =
        input->view_height_m > 0 ? input->view_height_m / spec->voxel_size_m
                                 : 2 * vxd_render_box_radius(low, high) / fmin(aspect, 1);
    /* Nothing is farther away. */
    picture->ao_radius =
        fmin(input->ao_radius_m / spec->voxel_size_m, VXD_RENDER_MAX_PLACE);
    picture->z_low = has_heights
                         ? (input->z_low_m - spec->origin_m[2]) / spec->voxel_size_m
                         : (double)job->box.low[2];
    picture->z_high = has_heights
                          ? (input->z_high_m - spec->origin_m[2]) / spec->voxel_size_m
                          : (double)job->box.high[2];
}
