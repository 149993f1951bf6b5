// SPDX-License-Identifier: Apache-2.0
/* Maps a network's labels to a scene's materials. label_to_material is read in three
 * steps: what the message alone says, then the network's labels, then the scene's
 * materials. */
#include <inttypes.h>
#include <string.h>

#include "server/service/existing/existing.h"
#include "server/service/service.h"
#include "server/service/integrate/integrate.h"
#include "server/service/scene/scene.h"

enum {
    MAX_EARLY_LOOKS = 1 << 16 /* names compared while the list of scenes is locked */
};

static enum vxd_status fail_entry(struct vxd_err *err, size_t i, const char *member,
                                  const char *what)
{
    char field[VXD_SCENE_PATH_BYTES];

    (void)snprintf(field, sizeof field, "label_to_material[%zu].%s", i, member);
    return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "%s", what);
}

static enum vxd_status read_entry(const Voxeld__V1__SceneLabel *in, size_t i,
                                  struct vxd_scene_label *out, struct vxd_err *err)
{
    char what[96];

    if (in->label_name[0] != '\0' && in->label != 0) {
        return fail_entry(err, i, "label",
                          "is given beside label_name: give one of them");
    }
    if (in->material_name[0] != '\0' && in->material != 0) {
        return fail_entry(err, i, "material",
                          "is given beside material_name: give one of them");
    }
    if (in->material < VXD_SCENE_NO_MATERIAL || in->material > UINT16_MAX) {
        (void)snprintf(what, sizeof what, "is %" PRId32 ", it must be -1 (none) to %d",
                       in->material, UINT16_MAX);
        return fail_entry(err, i, "material", what);
    }
    *out = (struct vxd_scene_label){.label = in->label,
                                    .material = in->material,
                                    .label_name = in->label_name,
                                    .material_name = in->material_name};
    return VXD_OK;
}

enum vxd_status vxd_scene_labels_check(struct vxd_request *request,
                                       struct vxd_scene_network *network,
                                       struct vxd_err *err)
{
    const Voxeld__V1__SceneIntegrateRequest *message = network->message;
    size_t n = message->n_label_to_material;

    if (n > VXD_SCENE_MAX_LABELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "label_to_material",
                        "has %zu entries, at most %d are possible", n,
                        VXD_SCENE_MAX_LABELS);
    }
    network->entries =
        vxd_message_array(request->decoder, n, sizeof *network->entries, err);
    if (network->entries == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        enum vxd_status status =
            read_entry(message->label_to_material[i], i, &network->entries[i], err);

        if (status != VXD_OK) {
            return status;
        }
    }
    network->n_entries = n;
    return VXD_OK;
}

/* Finds the number of a label by its name; -1 where the network has none of that name. */
static int32_t find_label(const struct vxd_model_output *output, const char *name)
{
    for (int i = 0; i < output->n_labels; i++) {
        if (strcmp(output->label_names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static enum vxd_status fail_label(const struct vxd_model_output *output, size_t i,
                                  const char *name, struct vxd_err *err)
{
    struct vxd_missing missing = {.closest.word = name};
    char known[160];
    char what[240];

    for (int k = 0; k < output->n_labels; k++) {
        vxd_missing_offer(&missing, output->label_names[k]);
    }
    (void)snprintf(what, sizeof what, "\"%.40s\" is no label of the network%s", name,
                   vxd_missing_text(&missing, "names of labels", known, sizeof known));
    return fail_entry(err, i, "label_name", what);
}

static enum vxd_status bind_entry(const struct vxd_model_output *output, size_t i,
                                  struct vxd_scene_label *entry, struct vxd_err *err)
{
    char what[160];

    if (entry->label_name[0] != '\0') {
        entry->label = find_label(output, entry->label_name);
        if (entry->label < 0) {
            return fail_label(output, i, entry->label_name, err);
        }
        entry->label_name = "";
    }
    if ((entry->label < 0 || entry->label >= output->n_channels) &&
        entry->label != output->fill_label) {
        (void)snprintf(what, sizeof what,
                       "is %" PRId32 ", the network's labels are 0 to %d, and %" PRId32
                       " for points without one",
                       entry->label, output->n_channels - 1, output->fill_label);
        return fail_entry(err, i, "label", what);
    }
    return VXD_OK;
}

/* Returns the row of the table that a label has. */
static size_t row_of(const struct vxd_scene_network *network, int32_t label)
{
    return (size_t)(label >= 0 && label < network->n_labels ? label : network->n_labels);
}

enum vxd_status vxd_scene_labels_bind(struct vxd_scene_network *network,
                                      const struct vxd_model_output *output,
                                      struct vxd_err *err)
{
    bool seen[VXD_SCENE_MAX_LABELS + 1] = {false};

    if (output->n_channels > VXD_SCENE_MAX_LABELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "network",
                        "has %d labels, at most %d are possible", output->n_channels,
                        VXD_SCENE_MAX_LABELS);
    }
    network->n_labels = output->n_channels;
    network->fill_label = output->fill_label;
    for (size_t i = 0; i < network->n_entries; i++) {
        enum vxd_status status = bind_entry(output, i, &network->entries[i], err);
        size_t row;

        if (status != VXD_OK) {
            return status;
        }
        row = row_of(network, network->entries[i].label);
        if (seen[row]) {
            return fail_entry(err, i, "label", "stands here for the second time");
        }
        seen[row] = true;
    }
    return VXD_OK;
}

static enum vxd_status fail_material(const struct vxd_scene_spec *spec, size_t i,
                                     const char *name, struct vxd_err *err)
{
    struct vxd_missing missing = {.closest.word = name};
    char known[160];
    char what[240];

    for (size_t k = 0; k < spec->n_palette; k++) {
        if (spec->palette[k].name[0] != '\0') {
            vxd_missing_offer(&missing, spec->palette[k].name);
        }
    }
    (void)snprintf(what, sizeof what, "\"%.40s\" is no name of the scene's palette%s",
                   name,
                   vxd_missing_text(&missing, "named materials", known, sizeof known));
    return fail_entry(err, i, "material_name", what);
}

static enum vxd_status find_material(const struct vxd_scene_spec *spec,
                                     const struct vxd_scene_label *entry, size_t i,
                                     int32_t *out, struct vxd_err *err)
{
    uint32_t n_materials = vxd_svdag_n_materials(&spec->format);
    char what[128];

    if (entry->material_name[0] != '\0') {
        for (size_t k = 0; k < spec->n_palette; k++) {
            if (strcmp(spec->palette[k].name, entry->material_name) == 0) {
                *out = (int32_t)k;
                return VXD_OK;
            }
        }
        return fail_material(spec, i, entry->material_name, err);
    }
    if (entry->material >= (int32_t)n_materials) {
        (void)snprintf(what, sizeof what,
                       "is %" PRId32 ", the scene's materials are 0 to %u%s",
                       entry->material, n_materials - 1,
                       n_materials == 1 ? ": make it with material_bits 8" : "");
        return fail_entry(err, i, "material", what);
    }
    *out = entry->material;
    return VXD_OK;
}

/* Without label_to_material, label i takes material i. */
static enum vxd_status check_numbers(const struct vxd_scene_network *network,
                                     const struct vxd_scene_spec *spec,
                                     struct vxd_err *err)
{
    uint32_t n_materials = vxd_svdag_n_materials(&spec->format);

    return (uint32_t)network->n_labels <= n_materials
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "label_to_material",
                          "is empty, and the network's %" PRId32
                          " labels are more than the scene's %u materials: say which "
                          "material each takes",
                          network->n_labels, n_materials);
}

enum vxd_status vxd_scene_labels_check_materials(const struct vxd_scene_network *network,
                                                 const struct vxd_scene_spec *spec,
                                                 struct vxd_err *err)
{
    int32_t ignored;

    if (network->n_entries == 0) {
        return check_numbers(network, spec, err);
    }
    if (network->n_entries * (spec->n_palette + 1) > MAX_EARLY_LOOKS) {
        return VXD_OK;
    }
    for (size_t i = 0; i < network->n_entries; i++) {
        enum vxd_status status =
            find_material(spec, &network->entries[i], i, &ignored, err);

        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

static enum vxd_status fill_table(const struct vxd_scene_network *network,
                                  const struct vxd_scene_spec *spec, int32_t *table,
                                  struct vxd_err *err)
{
    for (size_t i = 0; i < network->n_entries; i++) {
        size_t row = row_of(network, network->entries[i].label);
        enum vxd_status status =
            find_material(spec, &network->entries[i], i, &table[row], err);

        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_scene_labels_table(struct vxd_request *request,
                                       const struct vxd_scene_network *network,
                                       const struct vxd_scene_spec *spec,
                                       const int32_t **out, struct vxd_err *err)
{
    size_t n = (size_t)network->n_labels + 1;
    int32_t *table;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n, sizeof *table, &block, err));
    table = block;
    for (size_t i = 0; i < n; i++) {
        table[i] = VXD_SCENE_NO_MATERIAL;
    }
    *out = table;
    if (network->n_entries > 0) {
        return fill_table(network, spec, table, err);
    }
    VXD_TRY(check_numbers(network, spec, err));
    for (int32_t i = 0; i < network->n_labels; i++) {
        table[i] = i;
    }
out:
    return status;
}
