// SPDX-License-Identifier: Apache-2.0
/* The columns and heights of a request. Without a box they are those around all that is occupied or
 * free, which one dense export in large cells shows. */
#include <math.h>

#include "server/service/service.h"
#include "server/service/grid/grid_job.h"

enum {
    COARSE_BITS = 7, /* a scene is seen as 128 large cells a side */
    /* Of one stage: columns, and how many voxels they may be high. */
    COLUMNS_PART = 1 << 17,
    COLUMN_HEIGHT = 256
};

enum vxd_status vxd_grid_check_place(const struct vxd_grid_place *place,
                                     struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (place->box != NULL) {
        VXD_TRY(vxd_scene_check_box(place->box, "box", err));
    }
    if (!isfinite(place->z_low) || !isfinite(place->z_high)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT,
                         isfinite(place->z_low) ? "z_high" : "z_low", "is not finite"));
    }
    if (!place->is_layer && place->z_high < place->z_low) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "z_high",
                         "is %g, below z_low, %g: the band is from z_low up to z_high",
                         place->z_high, place->z_low));
    }
out:
    return status;
}

uint64_t vxd_grid_count_most(const struct vxd_grid_place *place, bool in_space,
                             uint64_t most)
{
    double n = 1;

    if (place->box == NULL || !place->in_voxels) {
        return most;
    }
    n *= ceil(place->box->high->x - place->box->low->x) + 1;
    n *= ceil(place->box->high->y - place->box->low->y) + 1;
    n *= in_space ? ceil(place->box->high->z - place->box->low->z) + 1 : 1;
    return n < (double)most ? (uint64_t)n : most;
}

/* Sets the heights of a box, whose own they are where no band is given. */
static enum vxd_status set_band(const struct vxd_scene_spec *spec,
                                const struct vxd_grid_place *place, int64_t low[3],
                                int64_t high[3], struct vxd_err *err)
{
    struct vxd_scene_frame frame = vxd_scene_frame_of(spec, place->in_voxels);
    int64_t units_low = vxd_scene_coordinate(&frame, 2, place->z_low);
    int64_t units_high = vxd_scene_coordinate(&frame, 2, place->z_high);

    if (place->is_layer) {
        low[2] = vxd_scene_voxel_at(units_low);
        high[2] = low[2] + 1;
        return VXD_OK;
    }
    if (place->z_high > place->z_low) {
        int64_t band_low = vxd_scene_first_voxel(units_low);
        int64_t band_high = vxd_scene_first_voxel(units_high);

        low[2] = place->box == NULL || band_low > low[2] ? band_low : low[2];
        high[2] = place->box == NULL || band_high < high[2] ? band_high : high[2];
    }
    if (low[2] >= high[2]) {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, "z_high",
            "no voxel's centre lies between z_low, %g, and z_high, %g, in the "
            "box; a voxel is %g m high",
            place->z_low, place->z_high, spec->voxel_size_m);
    }
    return VXD_OK;
}

/* Asks for the band in large cells. */
static enum vxd_status look(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_grid_area *area, struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;
    int depth = job->scene->spec.format.depth;
    struct vxd_svdag_export *coarse = &area->coarse;
    int64_t side = (int64_t)1 << depth;
    size_t n = 1;
    enum vxd_status status;

    coarse->level = depth > COARSE_BITS ? depth - COARSE_BITS : 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t low = area->box.low[axis] > 0 ? area->box.low[axis] : 0;
        int64_t high = area->box.high[axis] < side ? area->box.high[axis] : side;
        int64_t cell = (int64_t)1 << coarse->level;

        high = high > low ? high : low;
        coarse->low[axis] = low / cell * cell;
        coarse->high[axis] = (high + cell - 1) / cell * cell;
        n *= (size_t)((coarse->high[axis] - coarse->low[axis]) >> coarse->level);
    }
    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_scene_reserve_output(request, queue, n, 1, &area->states, err));
    VXD_TRY(vxd_svdag_export_dense(queue, job->state.svdag, job->state.root, coarse,
                                   area->states.device, NULL, err));
    VXD_TRY(vxd_scene_fetch_output(request, queue, &area->states, err));
out:
    return status;
}

/* Takes the columns of the large cells in which something is known; false: there are none. */
static bool take_known(struct vxd_grid_area *area)
{
    const struct vxd_svdag_export *coarse = &area->coarse;
    const uint8_t *states = area->states.bytes;
    int64_t n[3];
    int64_t low[2] = {INT64_MAX, INT64_MAX};
    int64_t high[2] = {0, 0};

    for (int axis = 0; axis < 3; axis++) {
        n[axis] = (coarse->high[axis] - coarse->low[axis]) >> coarse->level;
    }
    if (states == NULL) {
        return false;
    }
    for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
        if ((states[i] & (VXD_SVDAG_OCCUPIED | VXD_SVDAG_FREE)) != 0) {
            int64_t at[2] = {i / n[2] / n[1], i / n[2] % n[1]};

            for (int axis = 0; axis < 2; axis++) {
                low[axis] = at[axis] < low[axis] ? at[axis] : low[axis];
                high[axis] = at[axis] + 1 > high[axis] ? at[axis] + 1 : high[axis];
            }
        }
    }
    for (int axis = 0; axis < 2 && high[0] > 0; axis++) {
        area->box.low[axis] = coarse->low[axis] + (low[axis] << coarse->level);
        area->box.high[axis] = coarse->low[axis] + (high[axis] << coarse->level);
    }
    return high[0] > 0;
}

enum vxd_status vxd_grid_find_area(struct vxd_request *request, struct vxd_queue *queue,
                                   const struct vxd_grid_place *place,
                                   struct vxd_grid_area *area, struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;
    enum vxd_status status = VXD_OK;

    if (!area->is_looking) {
        vxd_scene_voxels_in(&job->scene->spec, place->in_voxels, place->box,
                            area->box.low, area->box.high);
        VXD_TRY(set_band(&job->scene->spec, place, area->box.low, area->box.high, err));
        if (place->box == NULL) {
            VXD_TRY(look(request, queue, area, err));
            area->is_looking = true;
            return VXD_OK;
        }
    } else if (!take_known(area)) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "box",
                        "is absent, and nothing in the band is occupied or free: give a "
                        "box, or another band");
    }
    VXD_TRY(vxd_grid_check_box(&area->box, err));
    area->is_known = true;
out:
    if (status != VXD_OK && err != NULL && strcmp(err->field, "high") == 0) {
        (void)snprintf(err->field, sizeof err->field, "box.high");
    }
    return status;
}

uint32_t vxd_grid_count_columns(const struct vxd_scene_spec *spec,
                                const struct vxd_grid_box *box)
{
    int64_t side = (int64_t)1 << spec->format.depth;
    int64_t low = box->low[2] > 0 ? box->low[2] : 0;
    int64_t high = box->high[2] < side ? box->high[2] : side;
    int64_t n = (int64_t)COLUMNS_PART * COLUMN_HEIGHT;

    return high - low > COLUMN_HEIGHT
               ? (uint32_t)(n / (high - low) > 0 ? n / (high - low) : 1)
               : COLUMNS_PART;
}
