// SPDX-License-Identifier: Apache-2.0
/* Describes networks of the registry in the schema's messages. */
#include "server/service/network/network.h"
#include "server/service/service.h"

Voxeld__V1__NetworkPrecision vxd_network_wire_precision(enum vxd_net_precision precision)
{
    switch (precision) {
    case VXD_NET_FP32:
        return VOXELD__V1__NETWORK_PRECISION__FP32;
    case VXD_NET_TF32:
        return VOXELD__V1__NETWORK_PRECISION__TF32;
    case VXD_NET_FP16:
        return VOXELD__V1__NETWORK_PRECISION__FP16;
    case VXD_NET_BF16:
        break;
    }
    return VOXELD__V1__NETWORK_PRECISION__BF16;
}

Voxeld__V1__NetworkOutputKind vxd_network_wire_kind(enum vxd_model_output_kind kind)
{
    switch (kind) {
    case VXD_MODEL_VOXELS:
        return VOXELD__V1__NETWORK_OUTPUT_KIND__NETWORK_VOXELS;
    case VXD_MODEL_POINTS:
        return VOXELD__V1__NETWORK_OUTPUT_KIND__NETWORK_POINTS;
    case VXD_MODEL_DENSE:
        return VOXELD__V1__NETWORK_OUTPUT_KIND__NETWORK_DENSE;
    case VXD_MODEL_VECTOR:
        break;
    }
    return VOXELD__V1__NETWORK_OUTPUT_KIND__NETWORK_VECTOR;
}

bool vxd_network_is_default_output(const struct vxd_model_output *output)
{
    return output->kind == VXD_MODEL_VECTOR || output->argmax;
}

static char *copy_text(struct vxd_decoder *decoder, const char *text, struct vxd_err *err)
{
    return vxd_message_text(decoder, text, strlen(text), err);
}

Voxeld__V1__Vec3 *vxd_network_new_vector(struct vxd_decoder *decoder, double x, double y,
                                         double z, struct vxd_err *err)
{
    Voxeld__V1__Vec3 *v = vxd_message_new(decoder, &voxeld__v1__vec3__descriptor, err);

    if (v != NULL) {
        v->x = x;
        v->y = y;
        v->z = z;
    }
    return v;
}

Voxeld__V1__NetworkTimings *
vxd_network_new_timings(struct vxd_decoder *decoder,
                        const struct vxd_network_timings *timings, struct vxd_err *err)
{
    Voxeld__V1__NetworkTimings *out =
        vxd_message_new(decoder, &voxeld__v1__network_timings__descriptor, err);

    if (out != NULL) {
        out->voxelize_ms = (double)timings->voxelize_ns / 1e6;
        out->sets_ms = (double)timings->sets_ns / 1e6;
        out->layers_ms = (double)timings->layers_ns / 1e6;
        out->outputs_ms = (double)timings->outputs_ns / 1e6;
        out->n_items = timings->n_items;
        out->n_voxels = timings->n_voxels;
    }
    return out;
}

static enum vxd_status set_features(struct vxd_decoder *decoder,
                                    const struct vxd_model_input *input,
                                    Voxeld__V1__NetworkInfo *info, struct vxd_err *err)
{
    size_t n = (size_t)input->n_features;

    info->features = vxd_message_pointers(decoder, n, err);
    if (info->features == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        Voxeld__V1__NetworkFeature *feature =
            vxd_message_new(decoder, &voxeld__v1__network_feature__descriptor, err);

        if (feature == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        feature->name = copy_text(decoder, input->features[i].name, err);
        if (feature->name == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        feature->scale = input->features[i].scale;
        feature->bias = input->features[i].bias;
        if (input->features[i].kind == VXD_CHANNEL_CONSTANT) {
            feature->scale = (double)input->features[i].constant;
            feature->bias = 0;
        }
        info->features[i] = feature;
        info->n_features = i + 1;
    }
    return VXD_OK;
}

static enum vxd_status set_output(struct vxd_decoder *decoder,
                                  const struct vxd_model_output *output,
                                  Voxeld__V1__NetworkOutput *out, struct vxd_err *err)
{
    out->name = copy_text(decoder, output->name, err);
    out->stride = vxd_message_array(decoder, 3, sizeof *out->stride, err);
    out->labels = vxd_message_pointers(decoder, (size_t)output->n_labels, err);
    if (out->name == NULL || out->stride == NULL || out->labels == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    out->kind = vxd_network_wire_kind(output->kind);
    out->argmax = output->argmax;
    out->n_channels = (uint32_t)output->n_channels;
    out->by_default = vxd_network_is_default_output(output);
    memcpy(out->stride, output->stride, 3 * sizeof *out->stride);
    out->n_stride = 3;
    for (int i = 0; i < output->n_labels; i++) {
        const char *label = output->label_names[i];

        out->labels[i] = copy_text(decoder, label != NULL ? label : "", err);
        if (out->labels[i] == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        out->n_labels = (size_t)i + 1;
    }
    return VXD_OK;
}

static enum vxd_status set_outputs(struct vxd_decoder *decoder,
                                   const struct vxd_model *model,
                                   Voxeld__V1__NetworkInfo *info, struct vxd_err *err)
{
    size_t n = vxd_model_n_outputs(model);

    info->outputs = vxd_message_pointers(decoder, n, err);
    if (info->outputs == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        Voxeld__V1__NetworkOutput *output =
            vxd_message_new(decoder, &voxeld__v1__network_output__descriptor, err);

        if (output == NULL ||
            set_output(decoder, vxd_model_output(model, i), output, err) != VXD_OK) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        info->outputs[i] = output;
        info->n_outputs = i + 1;
    }
    return VXD_OK;
}

enum vxd_status vxd_network_add_layers(struct vxd_decoder *decoder,
                                       const struct vxd_model *model,
                                       Voxeld__V1__NetworkInfo *info, struct vxd_err *err)
{
    size_t n = vxd_model_n_layers(model);

    info->layers = vxd_message_pointers(decoder, n, err);
    if (info->layers == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        const struct vxd_model_layer *layer = vxd_model_layer(model, i);
        Voxeld__V1__NetworkLayer *out =
            vxd_message_new(decoder, &voxeld__v1__network_layer__descriptor, err);

        if (out == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        out->name = copy_text(decoder, layer->name, err);
        out->op = copy_text(decoder, layer->op, err);
        if (out->name == NULL || out->op == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        out->n_in = (uint32_t)layer->n_in;
        out->n_out = (uint32_t)layer->n_out;
        out->n_parameters = layer->n_parameters;
        info->layers[i] = out;
        info->n_layers = i + 1;
    }
    return VXD_OK;
}

/* Describes the range and the voxel size of the network. */
static enum vxd_status set_lattice(struct vxd_decoder *decoder,
                                   const struct vxd_model_input *input,
                                   Voxeld__V1__NetworkInfo *info, struct vxd_err *err)
{
    const struct vxd_voxelize_args *args = &input->voxelize;
    const float *size = args->size_m;
    const float *low = args->range_lo_m;
    const float *high = args->range_hi_m;

    info->rule = args->rule == VXD_RULE_SPCONV ? VOXELD__V1__VOXEL_RULE__SPCONV
                                               : VOXELD__V1__VOXEL_RULE__MINKOWSKI;
    info->max_points = args->max_points;
    info->max_voxels = args->max_voxels;
    info->normalizes = input->normalize.used;
    info->size = vxd_network_new_vector(decoder, (double)size[0], (double)size[1],
                                        (double)size[2], err);
    if (info->size == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (!args->has_range) {
        return VXD_OK;
    }
    info->range = vxd_message_new(decoder, &voxeld__v1__range__descriptor, err);
    if (info->range == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    info->range->low = vxd_network_new_vector(decoder, (double)low[0], (double)low[1],
                                              (double)low[2], err);
    info->range->high = vxd_network_new_vector(decoder, (double)high[0], (double)high[1],
                                               (double)high[2], err);
    return info->range->low != NULL && info->range->high != NULL ? VXD_OK
                                                                 : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_network_new_info(struct vxd_decoder *decoder,
                                     const struct vxd_network *network,
                                     Voxeld__V1__NetworkInfo **out, struct vxd_err *err)
{
    const struct vxd_model *model = network->model;
    Voxeld__V1__NetworkInfo *info =
        vxd_message_new(decoder, &voxeld__v1__network_info__descriptor, err);
    struct vxd_network_timings last;
    uint64_t n_requests;
    enum vxd_status status;

    if (info == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    info->name = copy_text(decoder, vxd_model_name(model), err);
    info->digest = copy_text(decoder, vxd_model_digest(model), err);
    if (info->name == NULL || info->digest == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    info->precision = vxd_network_wire_precision(network->precision);
    info->n_parameters = vxd_model_n_parameters(model);
    info->n_bytes = network->info.weight_bytes;
    info->n_sets = (uint32_t)network->info.n_coord_sets;
    info->n_maps = (uint32_t)network->info.n_maps;
    info->loaded_ns = network->loaded_unix_ns;
    VXD_TRY(set_features(decoder, vxd_model_input(model), info, err));
    VXD_TRY(set_outputs(decoder, model, info, err));
    VXD_TRY(set_lattice(decoder, vxd_model_input(model), info, err));
    vxd_network_get_runs(network, &n_requests, &last);
    info->n_requests = n_requests;
    if (n_requests > 0) {
        info->last = vxd_network_new_timings(decoder, &last, err);
        if (info->last == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
    }
    *out = info;
out:
    return status;
}
