// SPDX-License-Identifier: Apache-2.0
/* The robot's own body, as clouds say it: its boxes, and how many points were of it. */
#include <math.h>

#include "server/service/clouds/clouds.h"
#include "server/service/service.h"

enum {
    PATH_BYTES = 64,
    BOX_NUMBERS = 6 /* of a query */
};

/* Paths are "clouds[0].body.boxes[3].high". */
static enum vxd_status read_corner(const Voxeld__V1__Vec3 *corner, const char *path,
                                   double out[3], struct vxd_err *err)
{
    if (corner == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, path, "is required");
    }
    if (!isfinite(corner->x) || !isfinite(corner->y) || !isfinite(corner->z)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, path, "(%g, %g, %g) is not finite",
                        corner->x, corner->y, corner->z);
    }
    out[0] = corner->x;
    out[1] = corner->y;
    out[2] = corner->z;
    return VXD_OK;
}

static enum vxd_status read_box(const Voxeld__V1__BodyBox *box, size_t cloud, size_t i,
                                struct vxd_cloud_box *out, struct vxd_err *err)
{
    char path[PATH_BYTES];
    enum vxd_status status;

    (void)snprintf(path, sizeof path, "clouds[%zu].body.boxes[%zu].low", cloud, i);
    VXD_TRY(read_corner(box->low, path, out->low, err));
    (void)snprintf(path, sizeof path, "clouds[%zu].body.boxes[%zu].high", cloud, i);
    VXD_TRY(read_corner(box->high, path, out->high, err));
    for (int axis = 0; axis < 3; axis++) {
        if (!(out->low[axis] < out->high[axis])) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, path,
                             "is %g along %c, it must be above low, %g", out->high[axis],
                             "xyz"[axis], out -> low[axis]));
        }
    }
out:
    return status;
}

enum vxd_status vxd_clouds_read_body(const Voxeld__V1__RobotBody *body, size_t cloud,
                                     struct vxd_cloud_body *out, struct vxd_err *err)
{
    struct vxd_volume_pose pose;
    char path[PATH_BYTES];
    enum vxd_status status;

    *out = (struct vxd_cloud_body){.min_range = body->min_range_m,
                                   .n_boxes = (int)body->n_boxes};
    if (!(body->min_range_m >= 0) || !isfinite(body->min_range_m)) {
        (void)snprintf(path, sizeof path, "clouds[%zu].body.min_range_m", cloud);
        return vxd_fail(err, VXD_INVALID_ARGUMENT, path,
                        "is %g, it must be finite and not below 0", body->min_range_m);
    }
    if (body->n_boxes > VXD_MAX_BODY_BOXES) {
        (void)snprintf(path, sizeof path, "clouds[%zu].body.boxes", cloud);
        return vxd_fail(err, VXD_INVALID_ARGUMENT, path,
                        "has %zu entries, at most %d are possible", body->n_boxes,
                        VXD_MAX_BODY_BOXES);
    }
    (void)snprintf(path, sizeof path, "clouds[%zu].body.T_base_sensor", cloud);
    VXD_TRY(vxd_volume_read_pose(body->t_base_sensor, path, &pose, err));
    memcpy(out->rotation, pose.rotation, sizeof out->rotation);
    memcpy(out->translation, pose.translation, sizeof out->translation);
    for (size_t i = 0; i < body->n_boxes; i++) {
        VXD_TRY(read_box(body->boxes[i], cloud, i, &out->boxes[i], err));
    }
out:
    return status;
}

/* --- counts --------------------------------------------------------------------------------- */

struct vxd_clouds_own {
    struct vxd_buffer device;
    struct vxd_buffer host;
    const struct vxd_cloud_own
        *counts; /* read once they are there; NULL: not asked for */
};

enum vxd_status vxd_clouds_check_body(struct vxd_request *request,
                                      struct vxd_clouds *clouds, struct vxd_err *err)
{
    struct vxd_cloud_body body;
    bool is_any = false;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < clouds->n_clouds; i++) {
        if (clouds->clouds[i]->body != NULL) {
            is_any = true;
            VXD_TRY(vxd_clouds_read_body(clouds->clouds[i]->body, i, &body, err));
        }
    }
    if (is_any) {
        clouds->own = vxd_message_array(request->decoder, 1, sizeof *clouds->own, err);
        status = clouds->own != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
    }
out:
    return status;
}

enum vxd_status vxd_clouds_begin_own(const struct vxd_clouds *clouds,
                                     struct vxd_queue *queue, struct vxd_cloud_own **out,
                                     struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    *out = NULL;
    if (clouds->own == NULL) {
        return VXD_OK;
    }
    VXD_TRY(vxd_device_alloc(queue, sizeof **out, &clouds->own->device, err));
    *out = clouds->own->device.ptr;
    status = vxd_queue_fill(queue, *out, 0, sizeof **out, err);
out:
    return status;
}

enum vxd_status vxd_clouds_end_own(const struct vxd_clouds *clouds,
                                   struct vxd_queue *queue, struct vxd_err *err)
{
    const void *counts = NULL;
    enum vxd_status status = VXD_OK;

    if (clouds->own == NULL) {
        return VXD_OK;
    }
    VXD_TRY(vxd_download(queue, clouds->own->device.ptr, sizeof(struct vxd_cloud_own),
                         &clouds->own->host, &counts, err));
    clouds->own->counts = counts;
out:
    return status;
}

void vxd_clouds_count_own(const struct vxd_clouds *clouds, uint64_t *n_near,
                          uint64_t *n_own)
{
    bool is_any = clouds->own != NULL && clouds->own->counts != NULL;

    *n_near = is_any ? clouds->own->counts->n[0] : 0;
    *n_own = is_any ? clouds->own->counts->n[1] : 0;
}

void vxd_clouds_free_own(const struct vxd_clouds *clouds, struct vxd_queue *queue)
{
    if (clouds->own != NULL) {
        clouds->own->counts = NULL;
        vxd_device_free(queue, &clouds->own->device);
        vxd_host_free(vxd_queue_context(queue), &clouds->own->host);
    }
}

/* --- keys of a query -------------------------------------------------------------------------- */

/* The cloud's body, made when the first key needs it. */
static Voxeld__V1__RobotBody *body_of(struct vxd_decoder *decoder,
                                      Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    if (cloud->body == NULL) {
        cloud->body = vxd_message_new(decoder, &voxeld__v1__robot_body__descriptor, err);
    }
    return cloud->body;
}

enum vxd_status vxd_clouds_take_min_range(struct vxd_decoder *decoder,
                                          const struct vxd_query_item *item,
                                          Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    Voxeld__V1__RobotBody *body = body_of(decoder, cloud, err);

    if (body == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    return vxd_query_numbers(item->value, &body->min_range_m, 1) == 1
               ? VXD_OK
               : vxd_query_fail(err, item, "a number of metres");
}

static Voxeld__V1__Vec3 *new_corner(struct vxd_decoder *decoder, const double *numbers,
                                    struct vxd_err *err)
{
    Voxeld__V1__Vec3 *corner =
        vxd_message_new(decoder, &voxeld__v1__vec3__descriptor, err);

    if (corner != NULL) {
        corner->x = numbers[0];
        corner->y = numbers[1];
        corner->z = numbers[2];
    }
    return corner;
}

enum vxd_status vxd_clouds_take_body(struct vxd_decoder *decoder,
                                     const struct vxd_query_item *item,
                                     Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    Voxeld__V1__RobotBody *body = body_of(decoder, cloud, err);
    double numbers[BOX_NUMBERS * VXD_MAX_BODY_BOXES];
    size_t n = vxd_query_numbers(item->value, numbers, sizeof numbers / sizeof *numbers);

    if (body == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (n == 0 || n % BOX_NUMBERS != 0) {
        return vxd_query_fail(err, item,
                              "x,y,z,x,y,z, the low and the high corner of a box, and "
                              "those of up to 31 others behind it");
    }
    body->boxes = vxd_message_pointers(decoder, n / BOX_NUMBERS, err);
    if (body->boxes == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i += BOX_NUMBERS) {
        Voxeld__V1__BodyBox *box =
            vxd_message_new(decoder, &voxeld__v1__body_box__descriptor, err);

        if (box == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        box->low = new_corner(decoder, numbers + i, err);
        box->high = new_corner(decoder, numbers + i + 3, err);
        if (box->low == NULL || box->high == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        body->boxes[body->n_boxes++] = box;
    }
    return VXD_OK;
}
