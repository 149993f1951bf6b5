// SPDX-License-Identifier: Apache-2.0
/* Converts places in metres or voxels to the engine's units. */
#include <math.h>

#include "server/service/scene/scene.h"

struct vxd_scene_frame vxd_scene_frame_of(const struct vxd_scene_spec *spec,
                                          bool in_voxels)
{
    struct vxd_scene_frame frame = {.size = in_voxels ? 1.0 : spec->voxel_size_m};

    for (int i = 0; i < 3 && !in_voxels; i++) {
        frame.origin[i] = spec->origin_m[i];
    }
    return frame;
}

/* NaN fails every comparison, so it ends low. */
static int64_t to_units(double units)
{
    const double most = (double)VXD_SCENE_FAR;

    if (!(units > -most)) {
        return -VXD_SCENE_FAR;
    }
    return units < most ? (int64_t)rint(units) : VXD_SCENE_FAR;
}

int64_t vxd_scene_length(const struct vxd_scene_frame *frame, double length)
{
    return to_units(length / frame->size * VXD_SVDAG_UNIT);
}

int64_t vxd_scene_coordinate(const struct vxd_scene_frame *frame, int axis, double p)
{
    return to_units((p - frame->origin[axis]) / frame->size * VXD_SVDAG_UNIT);
}

/* Rounds down below zero, too. */
static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

int64_t vxd_scene_first_voxel(int64_t units)
{
    return floor_div(units + VXD_SVDAG_UNIT / 2 - 1, VXD_SVDAG_UNIT);
}

int64_t vxd_scene_voxel_at(int64_t units)
{
    return floor_div(units, VXD_SVDAG_UNIT);
}

void vxd_scene_corner(const struct vxd_scene_frame *frame, const Voxeld__V1__Vec3 *v,
                      int64_t out[3])
{
    out[0] = vxd_scene_coordinate(frame, 0, v->x);
    out[1] = vxd_scene_coordinate(frame, 1, v->y);
    out[2] = vxd_scene_coordinate(frame, 2, v->z);
}

enum vxd_status vxd_scene_place(const struct vxd_scene_frame *frame,
                                const Voxeld__V1__Vec3 *v, const char *field,
                                int64_t out[3], struct vxd_err *err)
{
    vxd_scene_corner(frame, v, out);
    for (int i = 0; i < 3; i++) {
        if (out[i] <= -VXD_SCENE_FAR || out[i] >= VXD_SCENE_FAR) {
            return vxd_fail(err, VXD_OUT_OF_RANGE, field,
                            "(%g, %g, %g) lies more than %lld voxels from the scene's "
                            "low corner",
                            v->x, v->y, v->z,
                            (long long)(VXD_SCENE_FAR / VXD_SVDAG_UNIT));
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_scene_check_vector(const Voxeld__V1__Vec3 *v, const char *field,
                                       struct vxd_err *err)
{
    if (v == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is required");
    }
    if (!isfinite(v->x) || !isfinite(v->y) || !isfinite(v->z)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "(%g, %g, %g) is not finite",
                        v->x, v->y, v->z);
    }
    return VXD_OK;
}

enum vxd_status vxd_scene_check_box(const Voxeld__V1__SceneBox *box, const char *path,
                                    struct vxd_err *err)
{
    char field[VXD_SCENE_PATH_BYTES];
    enum vxd_status status;

    (void)snprintf(field, sizeof field, "%s.low", path);
    status = vxd_scene_check_vector(box->low, field, err);
    if (status == VXD_OK) {
        (void)snprintf(field, sizeof field, "%s.high", path);
        status = vxd_scene_check_vector(box->high, field, err);
    }
    return status;
}

void vxd_scene_voxels_in(const struct vxd_scene_spec *spec, bool in_voxels,
                         const Voxeld__V1__SceneBox *box, int64_t low[3], int64_t high[3])
{
    struct vxd_scene_frame frame = vxd_scene_frame_of(spec, in_voxels);

    for (int i = 0; i < 3; i++) {
        low[i] = 0;
        high[i] = (int64_t)1 << spec->format.depth;
    }
    if (box == NULL) {
        return;
    }
    vxd_scene_corner(&frame, box->low, low);
    vxd_scene_corner(&frame, box->high, high);
    for (int i = 0; i < 3; i++) {
        low[i] = vxd_scene_first_voxel(low[i]);
        high[i] = vxd_scene_first_voxel(high[i]);
    }
}

enum vxd_status vxd_scene_read_level(const struct vxd_scene_spec *spec, uint32_t level,
                                     int *out, struct vxd_err *err)
{
    *out = (int)level;
    return *out <= spec->format.depth
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "level",
                          "is %d, it must be 0 to the scene's depth, %d", *out,
                          spec->format.depth);
}
