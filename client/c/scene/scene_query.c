// SPDX-License-Identifier: Apache-2.0
/* Calls that query scenes: values, rays, nearest, overlap. */
#include "client/c/scene/scene_call.h"

/* Sends the request and opens the answer of n rows. */
static enum vxd_status exchange(struct vxd_exchange *call, size_t n, bool counts,
                                struct voxeld_scene_found **out)
{
    enum vxd_status status;

    VXD_TRY(vxd_exchange_send(call));
    VXD_TRY(vxd_scene_found_open(call, n, counts, out));
out:
    return status;
}

/* Makes the tensor of an array that must be given. */
static enum vxd_status build(struct vxd_exchange *call, const char *field,
                             const struct voxeld_array *in, Voxeld__V1__Tensor **out)
{
    if (in == NULL) {
        return vxd_fail(&call->err, VXD_INVALID_ARGUMENT, field, "is NULL");
    }
    return vxd_exchange_tensor(call, field, in, out);
}

enum voxeld_status
voxeld_scene_values(struct voxeld_client *client, const struct voxeld_call *options,
                    const char *scene, const struct voxeld_array *points,
                    struct voxeld_scene_found **out, struct voxeld_error *error)
{
    Voxeld__V1__SceneValuesRequest body = VOXELD__V1__SCENE_VALUES_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    VXD_TRY(vxd_scene_name(&call, scene, &body.name, &body.at));
    VXD_TRY(build(&call, "points", points, &body.points));
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_VALUES;
    call.request.scene_values = &body;
    VXD_TRY(exchange(&call, points->n, false, out));
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status
voxeld_scene_cast_rays(struct voxeld_client *client, const struct voxeld_call *options,
                       const char *scene, const struct voxeld_array *origins,
                       const struct voxeld_array *directions, double max_range_m,
                       struct voxeld_scene_found **out, struct voxeld_error *error)
{
    Voxeld__V1__SceneCastRaysRequest body = VOXELD__V1__SCENE_CAST_RAYS_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    VXD_TRY(vxd_scene_name(&call, scene, &body.name, &body.at));
    VXD_TRY(build(&call, "origins", origins, &body.origins));
    VXD_TRY(build(&call, "directions", directions, &body.directions));
    body.max_range_m = max_range_m;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_CAST_RAYS;
    call.request.scene_cast_rays = &body;
    VXD_TRY(exchange(&call, directions->n, false, out));
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_scene_nearest(struct voxeld_client *client,
                                        const struct voxeld_call *options,
                                        const char *scene,
                                        const struct voxeld_array *points,
                                        double radius_m, struct voxeld_scene_found **out,
                                        struct voxeld_error *error)
{
    Voxeld__V1__SceneNearestRequest body = VOXELD__V1__SCENE_NEAREST_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    VXD_TRY(vxd_scene_name(&call, scene, &body.name, &body.at));
    VXD_TRY(build(&call, "points", points, &body.points));
    body.radius_m = radius_m;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_NEAREST;
    call.request.scene_nearest = &body;
    VXD_TRY(exchange(&call, points->n, false, out));
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status
voxeld_scene_overlap(struct voxeld_client *client, const struct voxeld_call *options,
                     const char *scene, const struct voxeld_array *shapes, bool counts,
                     struct voxeld_scene_found **out, struct voxeld_error *error)
{
    Voxeld__V1__SceneOverlapRequest body = VOXELD__V1__SCENE_OVERLAP_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    VXD_TRY(vxd_scene_name(&call, scene, &body.name, &body.at));
    if (shapes == NULL || (shapes->n_elements != 6 && shapes->n_elements != 4)) {
        status = vxd_fail(&call.err, VXD_INVALID_ARGUMENT, "shapes",
                          "rows of %zu numbers; 6 of a box, 4 of a ball",
                          shapes != NULL ? shapes->n_elements : 0);
        goto out;
    }
    if (shapes->n_elements == 6) {
        VXD_TRY(build(&call, "boxes", shapes, &body.boxes));
    } else {
        VXD_TRY(build(&call, "balls", shapes, &body.balls));
    }
    body.counts = counts;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_OVERLAP;
    call.request.scene_overlap = &body;
    VXD_TRY(exchange(&call, shapes->n, counts, out));
out:
    return vxd_exchange_end(&call, status, error);
}
