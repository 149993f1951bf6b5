// SPDX-License-Identifier: Apache-2.0
/* A depth image as the body of POST /v1/volume_integrate?format=png&name=NAME&fx=585&..., or depth,
 * colour and labels as the parts of a form. */
#include "server/service/clouds/clouds.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

struct query {
    struct vxd_request *request;
    Voxeld__V1__VolumeIntegrateRequest *input;
    struct vxd_err *err;
};

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

static enum vxd_status take_width(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_side(q, item, &q->input->camera->width);
}

static enum vxd_status take_height(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_side(q, item, &q->input->camera->height);
}

static enum vxd_status take_distortion(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
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

static enum vxd_status take_pose(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    if (strcmp(item->value, "estimate") == 0) {
        q->input->pose = VOXELD__V1__POSE_SOURCE__POSE_ESTIMATE;
        return VXD_OK;
    }
    return vxd_volume_query_pose(q->request->decoder, item, &q->input->t_map_camera,
                                 q->err);
}

static const struct vxd_query_field fields[] = {
    {"name", "name"},
    {"fx", "camera.fx"},
    {"fy", "camera.fy"},
    {"cx", "camera.cx"},
    {"cy", "camera.cy"},
    {"depth_scale", "depth_scale"},
    {"depth_min", "depth_min_m"},
    {"depth_max", "depth_max_m"},
    {"weight", "weight"},
    {"carve", "carve_m"},
};

static const struct vxd_query_key keys[] = {
    {"width", take_width},
    {"height", take_height},
    {"distortion", take_distortion},
    {"pose", take_pose},
};

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
    struct vxd_query_keys all = {.keys = keys,
                                 .n_keys = sizeof keys / sizeof keys[0],
                                 .query = &q,
                                 .fields = fields,
                                 .n_fields = sizeof fields / sizeof fields[0]};
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
    all.message = &q.input->base;
    VXD_TRY(vxd_query_take_all(request->decoder, body, &all, err));
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
