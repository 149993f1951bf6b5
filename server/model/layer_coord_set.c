// SPDX-License-Identifier: Apache-2.0
/* Finds out which rows a layer's result has: coordinate sets are distinguished by where
 * they come from, and kernel maps by the names that the config gives them. The checks are
 * those that spconv makes when an indice_key is used again. */
#include <string.h>

#include "server/model/model_internal.h"

static enum vxd_status fail_layer(const struct vxd_model_reader *reader,
                                  const struct vxd_layer_config *layer, const char *key,
                                  const char *text, const char *name)
{
    char path[VXD_JSON_PATH_BYTES];

    vxd_layer_path(path, layer->name, key);
    return vxd_json_fail(&reader->json, path, "\"%s\" %s%s%s%s", path, text,
                         name != NULL ? " \"" : "", name != NULL ? name : "",
                         name != NULL ? "\"" : "");
}

static bool vectors_equal(const int a[3], const int b[3])
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

static bool geometries_equal(const struct vxd_sparse_geometry *a,
                             const struct vxd_sparse_geometry *b)
{
    return vectors_equal(a->kernel, b->kernel) && vectors_equal(a->stride, b->stride) &&
           vectors_equal(a->padding, b->padding) &&
           vectors_equal(a->dilation, b->dilation) && a->transposed == b->transposed;
}

/* Computes the engine's geometry, with padding derived where the semantics derive it. */
static struct vxd_sparse_geometry geometry_of(const struct vxd_layer_config *layer)
{
    struct vxd_sparse_geometry out = {.transposed = layer->kind == VXD_LAYER_TRANSPOSE};

    for (int i = 0; i < 3; i++) {
        bool is_odd = layer->kernel[i] % 2 != 0;

        out.kernel[i] = layer->kernel[i];
        out.stride[i] = layer->stride[i];
        out.dilation[i] = layer->dilation[i];
        out.padding[i] = layer->padding[i];
        if (layer->kind == VXD_LAYER_SUBM || layer->semantics == VXD_NET_MINKOWSKI) {
            out.padding[i] = is_odd ? layer->kernel[i] / 2 * layer->dilation[i] : 0;
        }
    }
    return out;
}

/* Finds the set that equals `set` in all that distinguishes sets, or adds it. */
static int find_set(struct vxd_model_reader *reader, const struct vxd_node_set *set)
{
    for (int i = 1; i < reader->n_sets; i++) {
        const struct vxd_node_set *known = &reader->sets[i];

        if (known->from == set->from && known->with == set->with &&
            known->is_floor == set->is_floor &&
            memcmp(known->shape, set->shape, sizeof set->shape) == 0 &&
            geometries_equal(&known->geometry, &set->geometry)) {
            return i;
        }
    }
    reader->sets[reader->n_sets] = *set;
    return reader->n_sets++;
}

/* Finds the set of a strided convolution or pool, or of a generative transpose. */
static enum vxd_status derive_set(struct vxd_model_reader *reader,
                                  const struct vxd_layer_config *layer,
                                  const struct vxd_sparse_geometry *geometry, int from,
                                  int *out)
{
    const struct vxd_node_set *in = &reader->sets[from];
    struct vxd_node_set set = {.from = from, .with = -1, .geometry = *geometry};
    bool is_same = true;

    set.is_floor = layer->semantics == VXD_NET_MINKOWSKI && !geometry->transposed;
    for (int i = 0; i < 3; i++) {
        is_same = is_same && geometry->stride[i] == 1;
        if (geometry->transposed && in->stride[i] % geometry->stride[i] != 0) {
            return fail_layer(reader, layer, "stride",
                              "would make voxels smaller than the input's", NULL);
        }
        set.stride[i] = geometry->transposed ? in->stride[i] / geometry->stride[i]
                                             : in->stride[i] * geometry->stride[i];
        if (set.stride[i] > VXD_MODEL_MAX_STRIDE) {
            return fail_layer(reader, layer, "stride",
                              "leaves voxels of more than 8192 cells of the input", NULL);
        }
    }
    if (set.is_floor && is_same) {
        *out = from;
        return VXD_OK;
    }
    if (set.is_floor) { /* its stride alone decides, whatever the kernel */
        for (int i = 0; i < 3; i++) {
            set.geometry.kernel[i] = 1;
            set.geometry.padding[i] = 0;
            set.geometry.dilation[i] = 1;
        }
    }
    if (layer->semantics == VXD_NET_SPCONV) {
        char path[VXD_JSON_PATH_BYTES];
        struct vxd_err err = {0};

        if (vxd_sparse_out_shape(geometry, in->shape, layer->output_padding, set.shape,
                                 &err) != VXD_OK) {
            vxd_layer_path(path, layer->name, NULL);
            return vxd_json_fail(&reader->json, path, "\"%s\": %.150s", path,
                                 err.message);
        }
    }
    *out = find_set(reader, &set);
    return VXD_OK;
}

static struct vxd_node_map *find_map(const struct vxd_model_reader *reader,
                                     const char *name)
{
    for (int i = 0; i < reader->n_maps; i++) {
        if (strcmp(reader->maps[i].name, name) == 0) {
            return &reader->maps[i];
        }
    }
    return NULL;
}

/* Keeps the map under its name, or compares the layer with the map that has the name. */
static enum vxd_status name_map(struct vxd_model_reader *reader,
                                const struct vxd_layer_config *layer,
                                const struct vxd_node_map *map)
{
    const struct vxd_node_map *known;

    if (layer->map[0] == '\0') {
        return VXD_OK;
    }
    known = find_map(reader, layer->map);
    if (known == NULL) {
        struct vxd_node_map *to = &reader->maps[reader->n_maps++];

        *to = *map;
        memcpy(to->name, layer->map, sizeof to->name);
        memcpy(to->layer_name, layer->name, sizeof to->layer_name);
        to->layer = reader->n_layers;
        return VXD_OK;
    }
    if (known->from != map->from || known->to != map->to) {
        return fail_layer(reader, layer, "map",
                          "is the map of other voxels, those of layer",
                          known->layer_name);
    }
    if (!geometries_equal(&known->geometry, &map->geometry) ||
        known->is_pool != map->is_pool || known->semantics != map->semantics) {
        return fail_layer(
            reader, layer, "map",
            "is the map of another kernel, stride, padding, dilation or op, "
            "that of layer",
            known->layer_name);
    }
    return VXD_OK;
}

static enum vxd_status place_taps(struct vxd_model_reader *reader,
                                  const struct vxd_layer_config *layer, int from,
                                  struct vxd_node *to)
{
    struct vxd_node_map map = {.geometry = geometry_of(layer),
                               .is_pool = layer->kind == VXD_LAYER_POOL,
                               .semantics = layer->semantics,
                               .from = from};
    enum vxd_status status = VXD_OK;

    if (layer->kind == VXD_LAYER_SUBM) {
        for (int i = 0; i < 3; i++) {
            if (layer->semantics == VXD_NET_SPCONV && layer->kernel[i] % 2 == 0) {
                return fail_layer(reader, layer, "kernel",
                                  "must be odd for a submanifold convolution of spconv",
                                  NULL);
            }
        }
        map.to = from;
    } else if (layer->onto != VXD_NET_NONE) {
        map.to = reader->nodes[layer->onto].set;
        if (map.to < 0) {
            return fail_layer(reader, layer, "onto",
                              "must have voxels, not tokens, unlike",
                              reader->nodes[layer->onto].name);
        }
        for (int i = 0; i < 3; i++) {
            if (reader->sets[map.to].stride[i] * layer->stride[i] !=
                reader->sets[from].stride[i]) {
                return fail_layer(reader, layer, "onto",
                                  "must have voxels of this layer's, its stride smaller",
                                  NULL);
            }
        }
    } else {
        VXD_TRY(derive_set(reader, layer, &map.geometry, from, &map.to));
    }
    to->set = map.to;
    VXD_TRY(name_map(reader, layer, &map));
out:
    return status;
}

static enum vxd_status place_backwards(struct vxd_model_reader *reader,
                                       const struct vxd_layer_config *layer, int from,
                                       struct vxd_node *to,
                                       const struct vxd_node_map **of_map)
{
    const struct vxd_node_map *map = find_map(reader, layer->of_map);

    if (map == NULL) {
        return fail_layer(reader, layer, "of_map",
                          "is the \"map\" of no layer before this one:", layer->of_map);
    }
    if (map->is_pool != (layer->kind == VXD_LAYER_UNPOOL)) {
        return fail_layer(reader, layer, "of_map",
                          map->is_pool ? "is a pool's, that of"
                                       : "is not a pool's, but that of",
                          map->layer_name);
    }
    if (map->to != from) {
        return fail_layer(reader, layer, "of_map",
                          "does not lead back from this layer's input; it leads to the "
                          "voxels of",
                          map->layer_name);
    }
    if (layer->kernel[0] > 0 && !vectors_equal(layer->kernel, map->geometry.kernel)) {
        return fail_layer(reader, layer, "kernel", "must be that of layer",
                          map->layer_name);
    }
    to->set = map->from;
    *of_map = map;
    return VXD_OK;
}

static enum vxd_status place_union(struct vxd_model_reader *reader,
                                   const struct vxd_layer_config *layer,
                                   struct vxd_node *to)
{
    const struct vxd_node *a = &reader->nodes[layer->inputs[0]];
    const struct vxd_node *b = &reader->nodes[layer->inputs[1]];
    struct vxd_node_set set = {0};

    if (a->set == b->set) {
        to->set = a->set;
        return VXD_OK;
    }
    set = reader->sets[a->set];
    if (!vectors_equal(set.stride, reader->sets[b->set].stride) ||
        memcmp(set.shape, reader->sets[b->set].shape, sizeof set.shape) != 0) {
        return fail_layer(reader, layer, "in",
                          "must be voxels of the same size and shape, unlike", b->name);
    }
    memset(&set.geometry, 0, sizeof set.geometry);
    set.is_floor = false;
    set.from = a->set;
    set.with = b->set;
    to->set = find_set(reader, &set);
    return VXD_OK;
}

/* Gives the result the rows of input 0, which all inputs must have. */
static enum vxd_status place_same(struct vxd_model_reader *reader,
                                  const struct vxd_layer_config *layer,
                                  struct vxd_node *to)
{
    const struct vxd_node *first = &reader->nodes[layer->inputs[0]];

    for (int i = 1; i < layer->n_inputs; i++) {
        const struct vxd_node *node = &reader->nodes[layer->inputs[i]];

        if (node->set != first->set || node->n_tokens != first->n_tokens) {
            return fail_layer(reader, layer, "in",
                              "must have the same voxels everywhere, unlike", node->name);
        }
    }
    to->set = first->set;
    to->n_tokens = first->n_tokens;
    return VXD_OK;
}

static enum vxd_status require_sets(const struct vxd_model_reader *reader,
                                    const struct vxd_layer_config *layer)
{
    for (int i = 0; i < layer->n_inputs; i++) {
        const struct vxd_node *node = &reader->nodes[layer->inputs[i]];

        if (node->set < 0) {
            return fail_layer(reader, layer, "in", "must have voxels, not tokens, unlike",
                              node->name);
        }
    }
    return VXD_OK;
}

static enum vxd_status place_prune(struct vxd_model_reader *reader,
                                   const struct vxd_layer_config *layer,
                                   struct vxd_node *to)
{
    enum vxd_status status = place_same(reader, layer, to);
    struct vxd_node_set set;

    if (status != VXD_OK) {
        return status;
    }
    set = reader->sets[to->set];
    memset(&set.geometry, 0, sizeof set.geometry);
    set.is_floor = false;
    set.from = to->set;
    set.with = VXD_NET_MAX_LAYERS + 1 +
               reader->n_nodes; /* a set of its own, since values decide */
    to->set = find_set(reader, &set);
    return VXD_OK;
}

static enum vxd_status place_attention(struct vxd_model_reader *reader,
                                       const struct vxd_layer_config *layer,
                                       struct vxd_node *to)
{
    const struct vxd_node *k = &reader->nodes[layer->inputs[1]];
    const struct vxd_node *v = &reader->nodes[layer->inputs[2]];

    if (k->set != v->set || k->n_tokens != v->n_tokens) {
        return fail_layer(reader, layer, "in",
                          "must have keys and values of the same voxels, unlike",
                          v->name);
    }
    to->set = reader->nodes[layer->inputs[0]].set;
    to->n_tokens = reader->nodes[layer->inputs[0]].n_tokens;
    return VXD_OK;
}

enum vxd_status vxd_model_place_layer(struct vxd_model_reader *reader,
                                      const struct vxd_layer_config *layer,
                                      struct vxd_node *to,
                                      const struct vxd_node_map **of_map)
{
    static const unsigned of_sets = 1U << VXD_LAYER_SUBM | 1U << VXD_LAYER_CONV |
                                    1U << VXD_LAYER_INVERSE | 1U << VXD_LAYER_TRANSPOSE |
                                    1U << VXD_LAYER_POOL | 1U << VXD_LAYER_UNPOOL |
                                    1U << VXD_LAYER_GLOBAL | 1U << VXD_LAYER_ADD_UNION |
                                    1U << VXD_LAYER_PRUNE | 1U << VXD_LAYER_TOKENS;
    int from = reader->nodes[layer->inputs[0]].set;
    enum vxd_status status = VXD_OK;

    *of_map = NULL;
    to->set = -1;
    to->n_tokens = 0;
    if ((of_sets >> layer->kind & 1U) != 0) {
        VXD_TRY(require_sets(reader, layer));
    }
    switch (layer->kind) {
    case VXD_LAYER_SUBM:
    case VXD_LAYER_CONV:
    case VXD_LAYER_TRANSPOSE:
    case VXD_LAYER_POOL:
        return place_taps(reader, layer, from, to);
    case VXD_LAYER_INVERSE:
    case VXD_LAYER_UNPOOL:
        return place_backwards(reader, layer, from, to, of_map);
    case VXD_LAYER_GLOBAL:
        to->n_tokens = 1;
        return VXD_OK;
    case VXD_LAYER_TOKENS:
        to->n_tokens = reader->nodes[layer->inputs[0]].n_channels;
        return from == reader->nodes[layer->inputs[1]].set
                   ? VXD_OK
                   : fail_layer(reader, layer, "in",
                                "must have the same voxels everywhere, unlike",
                                reader->nodes[layer->inputs[1]].name);
    case VXD_LAYER_ADD_UNION:
        return place_union(reader, layer, to);
    case VXD_LAYER_PRUNE:
        return place_prune(reader, layer, to);
    case VXD_LAYER_ATTENTION:
        return place_attention(reader, layer, to);
    case VXD_LAYER_LINEAR:
    case VXD_LAYER_ADD:
    case VXD_LAYER_CAT:
    case VXD_LAYER_BN:
    case VXD_LAYER_ACT:
    case VXD_LAYER_SOFTMAX:
    case VXD_LAYER_EMBEDDING:
    case VXD_LAYER_L2NORM:
    case VXD_N_LAYER_KINDS:
        break;
    }
    return place_same(reader, layer, to);
out:
    return status;
}
