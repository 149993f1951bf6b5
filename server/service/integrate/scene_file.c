// SPDX-License-Identifier: Apache-2.0
/* A scan file as the body of POST /v1/scene_integrate: ?name=NAME&format=pcd&max_range=50. */
#include <errno.h>
#include <stdlib.h>

#include "server/service/clouds/clouds.h"
#include "server/service/service.h"
#include "server/service/integrate/integrate.h"
#include "server/service/scene/scene.h"

struct query {
    struct vxd_decoder *decoder;
    Voxeld__V1__SceneIntegrateRequest *input;
    Voxeld__V1__SceneCarve *carve;       /* input's, where a key asked for it */
    Voxeld__V1__SceneMaterialRule *rule; /* likewise */
    Voxeld__V1__Pose *pose;
    struct vxd_err *err;
};

static enum vxd_status need_carve(struct query *q)
{
    if (q->carve == NULL) {
        q->carve =
            vxd_message_new(q->decoder, &voxeld__v1__scene_carve__descriptor, q->err);
    }
    return q->carve != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status need_rule(struct query *q)
{
    if (q->rule == NULL) {
        q->rule = vxd_message_new(q->decoder,
                                  &voxeld__v1__scene_material_rule__descriptor, q->err);
    }
    return q->rule != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status take_number(struct query *q, const struct vxd_query_item *item,
                                   double *out)
{
    return vxd_query_numbers(item->value, out, 1) == 1
               ? VXD_OK
               : vxd_query_fail(q->err, item, "a number");
}

static enum vxd_status take_whole(struct query *q, const struct vxd_query_item *item,
                                  uint64_t most, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(item->value, &end, 10);
    return end != item->value && *end == '\0' && errno == 0 && item->value[0] != '-' &&
                   *out <= most
               ? VXD_OK
               : vxd_query_fail(q->err, item, "a whole number from 0 on");
}

static enum vxd_status take_name(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->name, q->err);
}

static enum vxd_status take_odometry(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->odometry, q->err);
}

static enum vxd_status take_pose(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    double v[7];
    size_t n = vxd_query_numbers(item->value, v, 7);
    Voxeld__V1__Pose *pose =
        vxd_message_new(q->decoder, &voxeld__v1__pose__descriptor, q->err);

    if (strcmp(item->value, "estimate") == 0) {
        q->input->pose = VOXELD__V1__POSE_SOURCE__POSE_ESTIMATE;
        return VXD_OK;
    }
    if (n != 3 && n != 7) {
        return vxd_query_fail(q->err, item, "x,y,z or x,y,z,qx,qy,qz,qw, or estimate");
    }
    if (pose == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    pose->translation =
        vxd_message_new(q->decoder, &voxeld__v1__vec3__descriptor, q->err);
    pose->rotation =
        vxd_message_new(q->decoder, &voxeld__v1__quaternion__descriptor, q->err);
    if (pose->translation == NULL || pose->rotation == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    pose->translation->x = v[0];
    pose->translation->y = v[1];
    pose->translation->z = v[2];
    if (n == 7) {
        pose->rotation->x = v[3];
        pose->rotation->y = v[4];
        pose->rotation->z = v[5];
        pose->rotation->w = v[6];
    }
    q->pose = pose;
    return VXD_OK;
}

/* carve=false alone changes nothing. */
static enum vxd_status take_carve(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    if (strcmp(item->value, "true") == 0) {
        return need_carve(q);
    }
    return strcmp(item->value, "false") == 0
               ? VXD_OK
               : vxd_query_fail(q->err, item, "true or false");
}

static enum vxd_status take_erase(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    bool erase = strcmp(item->value, "true") == 0;

    if (!erase) {
        return take_carve(q, item);
    }
    if (need_carve(q) != VXD_OK) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    q->carve->erase = true;
    return VXD_OK;
}

static enum vxd_status take_discretize(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    bool discretize = strcmp(item->value, "true") == 0;

    if (!discretize) {
        return take_carve(q, item);
    }
    if (need_carve(q) != VXD_OK) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    q->carve->discretize = true;
    return VXD_OK;
}

static enum vxd_status take_range(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return need_carve(q) == VXD_OK ? take_number(q, item, &q->carve->max_range_m)
                                   : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status take_rule(void *query, const struct vxd_query_item *item)
{
    static const char *const names[] = {"constant", "label", "colour", "ramp", "height"};
    struct query *q = query;

    if (need_rule(q) != VXD_OK) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        if (strcmp(names[i], item->value) == 0) {
            /* In the order of the schema's numbers. */
            q->rule->kind = (Voxeld__V1__SceneMaterialRule__Kind)i;
            return VXD_OK;
        }
    }
    return vxd_query_fail(q->err, item, "constant, label, colour, ramp or height");
}

static enum vxd_status take_material(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    uint64_t material;
    enum vxd_status status = take_whole(q, item, UINT32_MAX, &material);

    if (status == VXD_OK) {
        status = need_rule(q);
    }
    if (status == VXD_OK) {
        q->rule->material = (uint32_t)material;
    }
    return status;
}

static enum vxd_status take_field(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return need_rule(q) == VXD_OK
               ? vxd_query_text(q->decoder, item, &q->rule->field, q->err)
               : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status take_low(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return need_rule(q) == VXD_OK ? take_number(q, item, &q->rule->low)
                                  : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status take_high(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return need_rule(q) == VXD_OK ? take_number(q, item, &q->rule->high)
                                  : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status take_if_version(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return take_whole(q, item, UINT64_MAX, &q->input->if_version);
}

static enum vxd_status take_network(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->network, q->err);
}

static enum vxd_status take_digest(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->expect_digest, q->err);
}

static enum vxd_status take_output(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->output, q->err);
}

/* A whole number, else a name. */
static enum vxd_status take_number_or_name(struct query *q, const char *text,
                                           size_t n_bytes, int32_t *number, char **name)
{
    char *copy = vxd_message_text(q->decoder, text, n_bytes, q->err);
    char *end;
    long value;

    if (copy == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    errno = 0;
    value = strtol(copy, &end, 10);
    if (end != copy && *end == '\0' && errno == 0 && value >= INT32_MIN &&
        value <= INT32_MAX) {
        *number = (int32_t)value;
    } else {
        *name = copy;
    }
    return VXD_OK;
}

/* LABEL:MATERIAL,LABEL:MATERIAL,... */
static enum vxd_status take_labels(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    size_t n_most = 1;
    const char *text = item->value;
    Voxeld__V1__SceneLabel **entries;
    enum vxd_status status = VXD_OK;

    for (const char *s = text; *s != '\0'; s++) {
        n_most += *s == ',';
    }
    entries = vxd_message_pointers(q->decoder, n_most, q->err);
    if (entries == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n_most; i++) {
        size_t n = strcspn(text, ",");
        size_t n_label = strcspn(text, ":,");

        if (n_label == 0 || n_label + 1 >= n) {
            return vxd_query_fail(q->err, item, "LABEL:MATERIAL, and more behind commas");
        }
        entries[i] =
            vxd_message_new(q->decoder, &voxeld__v1__scene_label__descriptor, q->err);
        if (entries[i] == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        VXD_TRY(take_number_or_name(q, text, n_label, &entries[i]->label,
                                    &entries[i]->label_name));
        VXD_TRY(take_number_or_name(q, text + n_label + 1, n - n_label - 1,
                                    &entries[i]->material, &entries[i]->material_name));
        text += n + 1;
    }
    q->input->label_to_material = entries;
    q->input->n_label_to_material = n_most;
out:
    return status;
}

static const struct vxd_query_key query_keys[] = {
    {"name", take_name},
    {"pose", take_pose},
    {"carve", take_carve},
    {"max_range", take_range},
    {"discretize", take_discretize},
    {"erase", take_erase},
    {"rule", take_rule},
    {"material", take_material},
    {"field", take_field},
    {"low", take_low},
    {"high", take_high},
    {"if_version", take_if_version},
    {"network", take_network},
    {"labels", take_labels},
    {"output", take_output},
    {"expect_digest", take_digest},
    {"odometry", take_odometry},
};

enum vxd_status vxd_scene_integrate_from_file(struct vxd_request *request,
                                              const struct vxd_body *body,
                                              struct vxd_err *err)
{
    struct query q = {.decoder = request->decoder, .err = err};
    const struct vxd_query_keys keys = {.keys = query_keys,
                                        .n_keys =
                                            sizeof query_keys / sizeof query_keys[0],
                                        .query = &q};
    Voxeld__V1__Cloud **clouds;
    enum vxd_status status;

    q.input = vxd_message_new(request->decoder,
                              &voxeld__v1__scene_integrate_request__descriptor, err);
    if (q.input == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_cloud_from_body(request, body, &keys, &clouds, err));
    q.input->cloud = clouds[0];
    q.input->cloud->t_map_sensor = q.pose;
    q.input->carve = q.carve;
    q.input->rule = q.rule;
    request->input = &q.input->base;
out:
    return status;
}
