// SPDX-License-Identifier: Apache-2.0
/* Chooses the material of a point. The fields that a rule reads are decoded as columns of
 * features. The message's cloud is shown to the decoder with just these fields, under
 * names of ours, since a packed colour is three of its bytes. */
#include <math.h>
#include <string.h>

#include "server/service/service.h"
#include "server/service/integrate/integrate.h"
#include "server/service/scene/scene.h"

enum {
    MAX_FIELDS = 3 + 1 + VXD_SCENE_RULE_CHANNELS /* the points' times may be one */
};

const char *const vxd_scene_rule_channels[VXD_SCENE_RULE_CHANNELS] = {"a", "b", "c"};

#define RULE_CONSTANT VOXELD__V1__SCENE_MATERIAL_RULE__KIND__CONSTANT
#define RULE_LABEL VOXELD__V1__SCENE_MATERIAL_RULE__KIND__LABEL
#define RULE_COLOUR VOXELD__V1__SCENE_MATERIAL_RULE__KIND__COLOUR
#define RULE_RAMP VOXELD__V1__SCENE_MATERIAL_RULE__KIND__RAMP
#define RULE_HEIGHT VOXELD__V1__SCENE_MATERIAL_RULE__KIND__HEIGHT

/* --- fields ------------------------------------------------------------------------------- */

/* A layout of the message that is being converted to one of ours. */
struct layout {
    struct vxd_decoder *decoder;
    Voxeld__V1__Field *const *from;
    size_t n_from;
    Voxeld__V1__Field **to;
    size_t n_to;
};

static const Voxeld__V1__Field *find_field(const struct layout *layout, const char *name)
{
    for (size_t i = 0; i < layout->n_from; i++) {
        if (strcmp(layout->from[i]->name, name) == 0) {
            return layout->from[i];
        }
    }
    return NULL;
}

static enum vxd_status add_field(struct layout *layout, const Voxeld__V1__Field *field,
                                 const char *name, struct vxd_err *err)
{
    Voxeld__V1__Field *copy =
        vxd_message_new(layout->decoder, &voxeld__v1__field__descriptor, err);

    if (copy == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    copy->name = vxd_message_text(layout->decoder, name, strlen(name), err);
    copy->offset = field->offset;
    copy->dtype = field->dtype;
    copy->scale = field->scale;
    copy->bias = field->bias;
    copy->count = field->count;
    layout->to[layout->n_to++] = copy;
    return copy->name != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status fail_field(struct vxd_err *err, bool is_colour, const char *where,
                                  const char *what)
{
    return vxd_fail(err, VXD_INVALID_ARGUMENT, is_colour ? "rule.kind" : "rule.field",
                    "%s %s", where, what);
}

static enum vxd_status add_named(struct layout *layout, const char *name,
                                 const char *where, struct vxd_err *err)
{
    const Voxeld__V1__Field *field = find_field(layout, name);
    char what[128];

    if (field == NULL || field->count > 1) {
        (void)snprintf(what, sizeof what, "%s \"%.63s\"",
                       field == NULL ? "has no field"
                                     : "has more than one element in the field",
                       name);
        return fail_field(err, false, where, what);
    }
    return add_field(layout, field, vxd_scene_rule_channels[0], err);
}

/* 0x??RRGGBB in four bytes, of whatever type: red is the third byte. */
static enum vxd_status add_packed(struct layout *layout, const Voxeld__V1__Field *packed,
                                  const char *where, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (vxd_dtype_bytes((enum vxd_dtype)packed->dtype) != 4 || packed->count > 1) {
        return fail_field(err, true, where,
                          "must have four bytes in its field \"rgb\" or \"rgba\"");
    }
    for (uint32_t i = 0; i < 3 && status == VXD_OK; i++) {
        Voxeld__V1__Field byte = VOXELD__V1__FIELD__INIT;

        byte.offset = packed->offset + 2 - i;
        byte.dtype = VOXELD__V1__DTYPE__UINT8;
        status = add_field(layout, &byte, vxd_scene_rule_channels[i], err);
    }
    return status;
}

static enum vxd_status add_colour(struct layout *layout, const char *where,
                                  struct vxd_err *err)
{
    static const char *const names[2][3] = {{"r", "g", "b"}, {"red", "green", "blue"}};
    const Voxeld__V1__Field *packed = find_field(layout, "rgb");

    packed = packed != NULL ? packed : find_field(layout, "rgba");
    if (packed != NULL) {
        return add_packed(layout, packed, where, err);
    }
    for (int k = 0; k < 2; k++) {
        const Voxeld__V1__Field *fields[3];
        bool all = true;

        for (int i = 0; i < 3; i++) {
            fields[i] = find_field(layout, names[k][i]);
            all = all && fields[i] != NULL && fields[i]->count <= 1;
        }
        for (int i = 0; i < 3 && all; i++) {
            enum vxd_status status =
                add_field(layout, fields[i], vxd_scene_rule_channels[i], err);

            if (status != VXD_OK) {
                return status;
            }
        }
        if (all) {
            return VXD_OK;
        }
    }
    return fail_field(err, true, where,
                      "has no colour: no field \"rgb\" or \"rgba\", no \"r\", \"g\" and "
                      "\"b\", no \"red\", \"green\" and \"blue\"");
}

static const char *field_name(const Voxeld__V1__SceneMaterialRule *rule)
{
    return rule->field[0] != '\0'    ? rule->field
           : rule->kind == RULE_RAMP ? "intensity"
                                     : "label";
}

/* Adds the field of a moving sensor's times. It is there: the cloud was checked. */
static enum vxd_status bind_time(struct vxd_request *request, struct layout *layout,
                                 const Voxeld__V1__Deskew *deskew,
                                 Voxeld__V1__Deskew **out, struct vxd_err *err)
{
    static char time_name[] = "time";
    const Voxeld__V1__Field *field;
    Voxeld__V1__Deskew *copy;

    if (deskew == NULL) {
        return VXD_OK;
    }
    field = find_field(layout, deskew->time_field[0] != '\0' ? deskew->time_field : "t");
    copy = vxd_message_array(request->decoder, 1, sizeof *copy, err);
    if (copy == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    *copy = *deskew;
    copy->time_field = time_name;
    *out = copy;
    return field != NULL
               ? add_field(layout, field, time_name, err)
               : vxd_fail(err, VXD_INTERNAL, NULL, "a checked cloud has no times");
}

/* x, y, z are there: the cloud was checked. */
static enum vxd_status bind_layout(struct layout *layout,
                                   const struct vxd_scene_rule *rule, const char *where,
                                   struct vxd_err *err)
{
    static const char *const axes[3] = {"x", "y", "z"};
    enum vxd_status status = VXD_OK;

    layout->to = vxd_message_pointers(layout->decoder, MAX_FIELDS, err);
    if (layout->to == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < 3; i++) {
        const Voxeld__V1__Field *field = find_field(layout, axes[i]);

        VXD_TRY(field != NULL ? add_field(layout, field, axes[i], err)
                              : vxd_fail(err, VXD_INTERNAL, NULL,
                                         "a checked cloud has no field \"%s\"", axes[i]));
    }
    if (rule->n_channels == VXD_SCENE_RULE_CHANNELS) {
        status = add_colour(layout, where, err);
    } else if (rule->message != NULL && rule->n_channels == 1) {
        status = add_named(layout, field_name(rule->message), where, err);
    }
out:
    return status;
}

static enum vxd_status bind_sweeps(struct vxd_request *request,
                                   const struct vxd_scene_rule *rule,
                                   const Voxeld__V1__Cloud *cloud, Voxeld__V1__Cloud *out,
                                   struct vxd_err *err)
{
    out->sweeps = vxd_message_pointers(request->decoder, cloud->n_sweeps, err);
    if (out->sweeps == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < cloud->n_sweeps; i++) {
        const Voxeld__V1__Sweep *sweep = cloud->sweeps[i];
        struct layout layout = {request->decoder, sweep->fields, sweep->n_fields, NULL,
                                0};
        Voxeld__V1__Sweep *copy =
            vxd_message_array(request->decoder, 1, sizeof *copy, err);
        char where[VXD_SCENE_PATH_BYTES];

        if (copy == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        *copy = *sweep;
        out->sweeps[i] = copy;
        (void)snprintf(where, sizeof where, "cloud.sweeps[%zu]", i);
        if (sweep->n_fields > 0) {
            enum vxd_status status = bind_layout(&layout, rule, where, err);

            if (status != VXD_OK) {
                return status;
            }
            copy->fields = layout.to;
            copy->n_fields = layout.n_to;
        }
    }
    return VXD_OK;
}

static enum vxd_status check_rule(const Voxeld__V1__SceneMaterialRule *rule,
                                  struct vxd_err *err)
{
    if ((rule->kind == RULE_RAMP || rule->kind == RULE_HEIGHT) &&
        (!isfinite(rule->low) || !isfinite(rule->high) || !(rule->low < rule->high))) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "rule.high",
                        "is %g, it must be above low, %g, and both finite", rule->high,
                        rule->low);
    }
    return VXD_OK;
}

enum vxd_status vxd_scene_rule_bind(struct vxd_request *request,
                                    const Voxeld__V1__SceneMaterialRule *message,
                                    const Voxeld__V1__Cloud *cloud,
                                    struct vxd_scene_rule *rule, Voxeld__V1__Cloud **out,
                                    struct vxd_err *err)
{
    static const int n_channels[] = {[RULE_CONSTANT] = 0,
                                     [RULE_LABEL] = 1,
                                     [RULE_COLOUR] = VXD_SCENE_RULE_CHANNELS,
                                     [RULE_RAMP] = 1,
                                     [RULE_HEIGHT] = 0};
    struct layout layout = {request->decoder, cloud->fields, cloud->n_fields, NULL, 0};
    Voxeld__V1__Cloud *copy = vxd_message_array(request->decoder, 1, sizeof *copy, err);
    enum vxd_status status = VXD_OK;

    if (copy == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    rule->message = message;
    if (message != NULL) {
        VXD_TRY(check_rule(message, err));
        rule->n_channels = n_channels[message->kind];
    }
    *copy = *cloud;
    VXD_TRY(bind_layout(&layout, rule, "the cloud", err));
    VXD_TRY(bind_time(request, &layout, cloud->deskew, &copy->deskew, err));
    copy->fields = layout.to;
    copy->n_fields = layout.n_to;
    VXD_TRY(bind_sweeps(request, rule, cloud, copy, err));
    *out = copy;
out:
    return status;
}

/* --- materials ---------------------------------------------------------------------------- */

enum vxd_status vxd_scene_rule_check(const struct vxd_scene_rule *rule,
                                     const struct vxd_scene *scene, struct vxd_err *err)
{
    uint32_t n_materials = vxd_svdag_n_materials(&scene->spec.format);
    Voxeld__V1__SceneMaterialRule__Kind kind =
        rule->message != NULL ? rule->message->kind : RULE_CONSTANT;

    if (rule->message != NULL && rule->message->material >= n_materials) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "rule.material",
                        "is %u, the scene's materials are 0 to %u",
                        rule->message->material, n_materials - 1);
    }
    if (kind != RULE_CONSTANT && kind != RULE_LABEL && scene->spec.n_palette == 0) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "rule.kind",
                        "needs a palette, the scene has none");
    }
    return VXD_OK;
}

/* Divides low to high into equal intervals, one for each palette entry. */
static uint16_t ramp(double value, const Voxeld__V1__SceneMaterialRule *rule, size_t n)
{
    double t = (value - rule->low) / (rule->high - rule->low) * (double)n;

    if (isnan(t)) {
        return (uint16_t)rule->material;
    }
    return (uint16_t)(t <= 0 ? 0 : t >= (double)n ? (double)(n - 1) : floor(t));
}

static uint16_t label(float value, const struct vxd_scene_spec *spec, uint16_t other)
{
    double rounded = rint((double)value);

    /* NaN fails every comparison. */
    return rounded >= 0 && rounded < (double)vxd_svdag_n_materials(&spec->format)
               ? (uint16_t)rounded
               : other;
}

enum vxd_status vxd_scene_rule_apply(const struct vxd_scene_rule *rule,
                                     const struct vxd_scene_spec *spec, const float *rows,
                                     double base_z, size_t n, uint16_t *out,
                                     struct vxd_err *err)
{
    const Voxeld__V1__SceneMaterialRule *message = rule->message;
    uint16_t other = message != NULL ? (uint16_t)message->material : 0;

    switch (message != NULL ? message->kind : RULE_CONSTANT) {
    case RULE_LABEL:
        for (size_t i = 0; i < n; i++) {
            out[i] = label(rows[i], spec, other);
        }
        return VXD_OK;
    case RULE_COLOUR:
        return vxd_scene_nearest_colours(spec, rows, n, other, out, err);
    case RULE_RAMP:
        for (size_t i = 0; i < n; i++) {
            out[i] = ramp((double)rows[i], message, spec->n_palette);
        }
        return VXD_OK;
    case RULE_HEIGHT:
        for (size_t i = 0; i < n; i++) {
            double z = (base_z + (double)rows[3 * i + 2]) * spec->voxel_size_m;

            out[i] = ramp(spec->origin_m[2] + z, message, spec->n_palette);
        }
        return VXD_OK;
    default:
        for (size_t i = 0; i < n; i++) {
            out[i] = other;
        }
        return VXD_OK;
    }
}
