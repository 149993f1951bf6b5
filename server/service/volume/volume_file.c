// SPDX-License-Identifier: Apache-2.0
/* A depth image as the body of POST /v1/volume_integrate?format=png&name=NAME&fx=585&..., or depth,
 * colour and labels as the parts of a form. */
#include <errno.h>
#include <stdlib.h>

#include "server/service/clouds/clouds.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

struct query {
    struct vxd_request *request;
    Voxeld__V1__VolumeIntegrateRequest *input;
    struct vxd_err *err;
};

static enum vxd_status take_name(struct query *q, const struct vxd_query_item *item)
{
    return vxd_query_text(q->request->decoder, item, &q->input->name, q->err);
}

static enum vxd_status take_number(struct query *q, const struct vxd_query_item *item,
                                   double *out)
{
    return vxd_query_numbers(item->value, out, 1) == 1
               ? VXD_OK
               : vxd_query_fail(q->err, item, "a number");
}

static enum vxd_status take_fx(struct query *q, const struct vxd_query_item *item)
{
    return take_number(q, item, &q->input->camera->fx);
}

static enum vxd_status take_fy(struct query *q, const struct vxd_query_item *item)
{
    return take_number(q, item, &q->input->camera->fy);
}

static enum vxd_status take_cx(struct query *q, const struct vxd_query_item *item)
{
    return take_number(q, item, &q->input->camera->cx);
}

static enum vxd_status take_cy(struct query *q, const struct vxd_query_item *item)
{
    return take_number(q, item, &q->input->camera->cy);
}

static enum vxd_status take_side(struct query *q, const struct vxd_query_item *item,
                                 uint32_t *out)
{
    double side = 0;

    if (vxd_query_numbers(item->value, &side, 1) != 1 || !(side >= 1 && side <= 16384) ||
        side != (double)(uint32_t)side) {
        return vxd_query_fail(q->err, item, "a whole number from 1 to 16384");
    }
    *out = (uint32_t)side;
    return VXD_OK;
}

static enum vxd_status take_width(struct query *q, const struct vxd_query_item *item)
{
    return take_side(q, item, &q->input->camera->width);
}

static enum vxd_status take_height(struct query *q, const struct vxd_query_item *item)
{
    return take_side(q, item, &q->input->camera->height);
}

static enum vxd_status take_distortion(struct query *q, const struct vxd_query_item *item)
{
    Voxeld__V1__VolumeCamera *camera = q->input->camera;
    double k[8] = {0};
    size_t n = vxd_query_numbers(item->value, k, 8);

    if (n != 4 && n != 5 && n != 8) {
        return vxd_query_fail(q->err, item, "k1,k2,p1,p2 or with k3 or with k3,k4,k5,k6");
    }
    camera->k1 = k[0];
    camera->k2 = k[1];
    camera->p1 = k[2];
    camera->p2 = k[3];
    camera->k3 = k[4];
    camera->k4 = k[5];
    camera->k5 = k[6];
    camera->k6 = k[7];
    return VXD_OK;
}

static enum vxd_status take_pose(struct query *q, const struct vxd_query_item *item)
{
    if (strcmp(item->value, "estimate") == 0) {
        q->input->pose = VOXELD__V1__POSE_SOURCE__POSE_ESTIMATE;
        return VXD_OK;
    }
    return vxd_volume_query_pose(q->request->decoder, item, &q->input->t_map_camera,
                                 q->err);
}

static enum vxd_status take_scale(struct query *q, const struct vxd_query_item *item)
{
    return take_number(q, item, &q->input->depth_scale);
}

static enum vxd_status take_min(struct query *q, const struct vxd_query_item *item)
{
    return take_number(q, item, &q->input->depth_min_m);
}

static enum vxd_status take_max(struct query *q, const struct vxd_query_item *item)
{
    return take_number(q, item, &q->input->depth_max_m);
}

static enum vxd_status take_weight(struct query *q, const struct vxd_query_item *item)
{
    return take_number(q, item, &q->input->weight);
}

static enum vxd_status take_carve(struct query *q, const struct vxd_query_item *item)
{
    return take_number(q, item, &q->input->carve_m);
}

static const struct {
    const char *key;
    enum vxd_status (*take)(struct query *q, const struct vxd_query_item *item);
} keys[] = {
    {"name", take_name},     {"fx", take_fx},
    {"fy", take_fy},         {"cx", take_cx},
    {"cy", take_cy},         {"width", take_width},
    {"height", take_height}, {"distortion", take_distortion},
    {"pose", take_pose},     {"depth_scale", take_scale},
    {"depth_min", take_min}, {"depth_max", take_max},
    {"weight", take_weight}, {"carve", take_carve},
};

enum {
    N_KEYS = sizeof keys / sizeof keys[0]
};

static enum vxd_status take_item(struct query *q, const struct vxd_query_item *item,
                                 bool *is_taken)
{
    for (size_t k = 0; k < N_KEYS; k++) {
        if (strcmp(item->key, keys[k].key) == 0) {
            if (is_taken[k]) {
                return vxd_fail(q->err, VXD_INVALID_ARGUMENT, item->key,
                                "is given twice");
            }
            is_taken[k] = true;
            return keys[k].take(q, item);
        }
    }
    return vxd_fail(q->err, VXD_INVALID_ARGUMENT, item->key,
                    "no such key; known: name, fx, fy, cx, cy, width, height, "
                    "distortion, pose, depth_scale, depth_min, depth_max, weight, carve");
}

static enum vxd_status read_format(const char *format, Voxeld__V1__VolumeDepth *out,
                                   struct vxd_err *err)
{
    static const char *const names[] = {"png", "uint16", "float32"};

    for (int i = 0; i < 3; i++) {
        if (format != NULL && strcmp(format, names[i]) == 0) {
            *out = (Voxeld__V1__VolumeDepth)i;
            return VXD_OK;
        }
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                    "\"%.32s\"; known: png, uint16, float32",
                    format != NULL ? format : "");
}

/* Takes the images of a form. */
static enum vxd_status take_parts(const struct vxd_body *body,
                                  Voxeld__V1__VolumeIntegrateRequest *input,
                                  struct vxd_err *err)
{
    const struct {
        const char *name;
        ProtobufCBinaryData *to;
    } known[] = {
        {"depth", &input->depth}, {"colour", &input->colour}, {"labels", &input->labels}};

    for (size_t i = 0; i < body->n_parts; i++) {
        const struct vxd_body_part *part = &body->parts[i];
        ProtobufCBinaryData *to = NULL;

        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
            to = strcmp(part->name, known[k].name) == 0 ? known[k].to : to;
        }
        if (to == NULL) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, part->name,
                            "no such part; known: depth, colour, labels; the rest goes "
                            "into the URL's query");
        }
        to->data = (uint8_t *)(uintptr_t)part->bytes;
        to->len = part->n_bytes;
    }
    return input->depth.len > 0
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "depth", "the part is missing");
}

enum vxd_status vxd_volume_integrate_from_file(struct vxd_request *request,
                                               const struct vxd_body *body,
                                               struct vxd_err *err)
{
    struct query q = {.request = request, .err = err};
    bool is_taken[N_KEYS] = {false};
    enum vxd_status status;

    q.input = vxd_message_new(request->decoder,
                              &voxeld__v1__volume_integrate_request__descriptor, err);
    if (q.input == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    q.input->camera =
        vxd_message_new(request->decoder, &voxeld__v1__volume_camera__descriptor, err);
    if (q.input->camera == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (body->boundary == NULL || body->format[0] != '\0') { /* of a form: png, else */
        VXD_TRY(read_format(body->format, &q.input->depth_type, err));
    }
    for (size_t i = 0; i < body->n_query; i++) {
        VXD_TRY(take_item(&q, &body->query[i], is_taken));
    }
    if (body->boundary != NULL) {
        VXD_TRY(take_parts(body, q.input, err));
    } else {
        q.input->depth.data = (uint8_t *)(uintptr_t)body->bytes;
        q.input->depth.len = body->n_bytes;
    }
    request->input = &q.input->base;
out:
    return status;
}
