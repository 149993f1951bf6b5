// SPDX-License-Identifier: Apache-2.0
/* Heightfields: cells of metres to columns of voxels. A column belongs to the cell that its
 * centre is in, so a grid that lies askew to the voxels is moved by less than one of them. */
#include <inttypes.h>
#include <math.h>

#include "server/service/scene/scene.h"

enum {
    MAX_HEIGHTS = 1 << 26,
    MAX_CELL = 1 << VXD_SVDAG_MAX_DEPTH
};

/* Farther from a whole number of voxels than rounding gets. */
#define CELL_TOLERANCE 1e-6

static enum vxd_status fail_at(struct vxd_err *err, enum vxd_status code,
                               const char *path, const char *member, const char *what,
                               double value)
{
    char field[sizeof err->field];

    (void)snprintf(field, sizeof field, "%s.%s", path, member);
    return vxd_fail(err, code, field, "is %g, it must be %s", value, what);
}

enum vxd_status vxd_scene_check_heights(const Voxeld__V1__SceneHeightfield *field,
                                        const char *path, struct vxd_err *err)
{
    const Voxeld__V1__Tensor *heights = field->heights;
    char member[VXD_SCENE_PATH_BYTES];
    size_t n_rows;

    (void)snprintf(member, sizeof member, "%s.heights", path);
    if (heights == NULL || heights->n_shape != 2 || heights->shape[0] < 1 ||
        heights->shape[1] < 1 || heights->shape[0] > MAX_HEIGHTS ||
        heights->shape[1] > MAX_HEIGHTS ||
        heights->shape[0] * heights->shape[1] > MAX_HEIGHTS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, member,
                        "must be of shape n_x x n_y, 1 to %d numbers in all",
                        MAX_HEIGHTS);
    }
    return vxd_scene_check_numbers(heights, member, (size_t)heights->shape[1], false,
                                   &n_rows, err);
}

static enum vxd_status read_grid(const struct vxd_scene_frame *frame,
                                 const Voxeld__V1__SceneHeightfield *field,
                                 const char *path, struct vxd_svdag_heights *out,
                                 struct vxd_err *err)
{
    double cell = field->cell / frame->size;
    int64_t x = vxd_scene_coordinate(frame, 0, field->x);
    int64_t y = vxd_scene_coordinate(frame, 1, field->y);

    if (fabs(cell - rint(cell)) > CELL_TOLERANCE * cell || cell > MAX_CELL ||
        rint(cell) < 1) {
        return fail_at(err, VXD_INVALID_ARGUMENT, path, "cell",
                       "a whole number of voxels, at most 2^21", field->cell);
    }
    if (x <= -VXD_SCENE_FAR || x >= VXD_SCENE_FAR) {
        return fail_at(err, VXD_OUT_OF_RANGE, path, "x", "nearer to the scene", field->x);
    }
    if (y <= -VXD_SCENE_FAR || y >= VXD_SCENE_FAR) {
        return fail_at(err, VXD_OUT_OF_RANGE, path, "y", "nearer to the scene", field->y);
    }
    out->cell = (uint32_t)rint(cell);
    out->x = vxd_scene_first_voxel(x);
    out->y = vxd_scene_first_voxel(y);
    out->n_x = (uint32_t)field->heights->shape[0];
    out->n_y = (uint32_t)field->heights->shape[1];
    return VXD_OK;
}

enum vxd_status vxd_scene_read_heights(struct vxd_request *request,
                                       const struct vxd_scene_frame *frame,
                                       const Voxeld__V1__SceneHeightfield *field,
                                       const char *path, struct vxd_svdag_op *out,
                                       bool *outside, struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;
    int64_t n_voxels = (int64_t)1 << job->scene->spec.format.depth;
    struct vxd_svdag_heights *grid = &out->shape.field;
    int64_t highest = -VXD_SCENE_FAR;
    int64_t *heights;
    void *block;
    size_t n;
    enum vxd_status status;

    VXD_TRY(read_grid(frame, field, path, grid, err));
    n = (size_t)grid->n_x * grid->n_y;
    VXD_TRY(vxd_scene_take_host(request, n, sizeof *heights, &block, err));
    heights = block;
    for (size_t i = 0; i < n; i++) {
        /* NaN becomes the lowest: no column. */
        heights[i] = vxd_scene_coordinate(frame, 2, vxd_scene_number(field->heights, i));
        highest = heights[i] > highest ? heights[i] : highest;
    }
    grid->heights = heights;
    out->shape.low[2] = vxd_scene_coordinate(frame, 2, field->low_z);
    *outside = grid->x >= n_voxels || grid->y >= n_voxels ||
               grid->x + (int64_t)grid->n_x * grid->cell <= 0 ||
               grid->y + (int64_t)grid->n_y * grid->cell <= 0 ||
               vxd_scene_first_voxel(out->shape.low[2]) >= n_voxels ||
               vxd_scene_first_voxel(highest) <= 0;
out:
    return status;
}
