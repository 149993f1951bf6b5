// SPDX-License-Identifier: Apache-2.0
/* What the files that read a model share. Private to server/model. */
#ifndef VXD_SERVER_MODEL_MODEL_INTERNAL_H
#define VXD_SERVER_MODEL_MODEL_INTERNAL_H

#include "server/model/json_value.h"
#include "server/model/model.h"
#include "server/model/weights.h"

enum {
    VXD_LAYER_NAME_BYTES = 49, /* leaves space for what the engine's names add (".bn") */
    VXD_PREFIX_BYTES = 64, /* of tensors' names; with a layer's w and the longest ending
                                 * it fits VXD_TENSOR_NAME_BYTES */
    VXD_TENSOR_STEM_BYTES = 48, /* a layer's w, bn_w */
    VXD_MODEL_MAX_STRIDE = 1 << 13
};

struct vxd_model {
    char name[VXD_MODEL_NAME_BYTES];
    char digest[VXD_MODEL_DIGEST_BYTES];
    int precision; /* or VXD_MODEL_AUTO_PRECISION */
    struct vxd_net_builder *builder;
    struct vxd_model_input input;
    struct vxd_model_feature features[VXD_MAX_CHANNELS];
    struct vxd_model_output outputs[VXD_NET_MAX_OUTPUTS];
    char **label_names[VXD_NET_MAX_OUTPUTS]; /* each one block of memory */
    size_t n_outputs;
    struct vxd_model_layer *layers; /* VXD_NET_MAX_LAYERS */
    size_t n_layers;
    size_t n_parameters;
};

/* --- the config as read ------------------------------------------------------------------ */

enum vxd_layer_kind {
    VXD_LAYER_SUBM,
    VXD_LAYER_CONV,
    VXD_LAYER_INVERSE,
    VXD_LAYER_TRANSPOSE,
    VXD_LAYER_LINEAR,
    VXD_LAYER_POOL,
    VXD_LAYER_UNPOOL,
    VXD_LAYER_GLOBAL,
    VXD_LAYER_ADD,
    VXD_LAYER_ADD_UNION,
    VXD_LAYER_CAT,
    VXD_LAYER_BN,
    VXD_LAYER_ACT,
    VXD_LAYER_SOFTMAX,
    VXD_LAYER_EMBEDDING,
    VXD_LAYER_PRUNE,
    VXD_LAYER_L2NORM,
    VXD_LAYER_ATTENTION,
    VXD_LAYER_TOKENS,
    VXD_N_LAYER_KINDS
};

/* Sets of kinds, a bit each. */
#define VXD_OPS_OF(kind) (1U << VXD_LAYER_##kind)
#define VXD_OPS_TAPS                                                                     \
    (VXD_OPS_OF(SUBM) | VXD_OPS_OF(CONV) | VXD_OPS_OF(INVERSE) | VXD_OPS_OF(TRANSPOSE))
#define VXD_OPS_CONV (VXD_OPS_TAPS | VXD_OPS_OF(LINEAR))
#define VXD_OPS_ALL ((1U << VXD_N_LAYER_KINDS) - 1)

/* "bn": the engine takes running statistics as a scale and a bias a channel. */
struct vxd_layer_bn {
    bool used;
    bool batch;  /* statistics of what runs, not the file's */
    bool sample; /* of each sample alone */
    double eps;
};

/* What a layer's keys say; three-vectors are x, y, z. */
struct vxd_layer_config {
    char name[VXD_LAYER_NAME_BYTES];
    enum vxd_layer_kind kind;
    int inputs[VXD_NET_MAX_INPUTS]; /* numbers of nodes */
    int n_inputs;
    int n_channels; /* 0 = not said */
    int kernel[3];  /* 0 = not said */
    int stride[3];
    int padding[3];
    int dilation[3];
    int output_padding[3];
    enum vxd_net_semantics semantics;
    char map[VXD_LAYER_NAME_BYTES]; /* "" = none */
    char of_map[VXD_LAYER_NAME_BYTES];
    int onto; /* node, or VXD_NET_NONE */
    int add;
    bool bias;
    struct vxd_layer_bn bn;
    enum vxd_net_act act;
    double alpha;
    int reduce;       /* pool, global: 0 max, 1 avg, 2 sum or gem */
    double p;         /* gem */
    double eps;       /* gem, l2norm */
    double scale;     /* attention */
    double threshold; /* prune */
    int n_rows;       /* embedding */
    enum vxd_weight_layout layout;
    char w[VXD_TENSOR_STEM_BYTES]; /* "" = the layer's name */
    char bn_w[VXD_TENSOR_STEM_BYTES];
    char p_w[VXD_TENSOR_STEM_BYTES];
};

/* --- what has been made of it so far ----------------------------------------------------- */

/* A coordinate set, with what distinguishes it from others. */
struct vxd_node_set {
    int32_t shape[3]; /* 0 = unbounded */
    int stride[3];    /* cells of the input that one of its cells spans */
    /* Where it comes from: sets of equal sources are equal. -1 = the input's own. */
    int from;
    int with; /* the other one of a union; the layer of a prune; else -1 */
    bool is_floor;
    struct vxd_sparse_geometry geometry;
};

/* The result of a layer, or the input. */
struct vxd_node {
    char name[VXD_LAYER_NAME_BYTES];
    int layer; /* of the engine */
    int n_channels;
    int set;      /* -1: tokens */
    int n_tokens; /* a sample, where there is no set; 1 = one vector */
};

/* A kernel map by the name that a config gives it. */
struct vxd_node_map {
    char name[VXD_LAYER_NAME_BYTES];
    char layer_name[VXD_LAYER_NAME_BYTES]; /* whose it was first */
    int layer;                             /* of the engine */
    bool is_pool;
    int from; /* sets */
    int to;
    enum vxd_net_semantics semantics;
    struct vxd_sparse_geometry geometry;
};

/* What all readers share. Zero-initialised, except for what model.c sets. */
struct vxd_model_reader {
    struct vxd_json json;
    struct vxd_err *err;
    struct vxd_model *model;
    struct vxd_tensors tensors; /* file NULL: only lists what it would take */
    json_t *root;
    int axes[3]; /* axis (0 = x) of each component of the config's vectors */
    enum vxd_net_semantics semantics;
    enum vxd_weight_layout layout;
    char prefix[VXD_PREFIX_BYTES];
    struct vxd_layer_config defaults;
    struct vxd_node *nodes; /* VXD_NET_MAX_LAYERS + 1; 0 is the input */
    int n_nodes;
    struct vxd_node_set *sets; /* VXD_NET_MAX_LAYERS + 1; 0 is the input's */
    int n_sets;
    struct vxd_node_map *maps; /* VXD_NET_MAX_LAYERS */
    int n_maps;
    int n_layers; /* of the engine so far */
};

static inline bool vxd_model_lists_only(const struct vxd_model_reader *reader)
{
    return reader->tensors.file == NULL;
}

/* A name that the config gives: letters, digits and _ . / : - only, so that it can stand in
 * paths, tensors' names and JSON as it is. */
enum vxd_status vxd_read_label(const struct vxd_json *json, const char *path,
                               const json_t *value, char *out, size_t n_bytes);

/* Finds the number of the node of that name ("@in" is the input). */
enum vxd_status vxd_read_node(const struct vxd_model_reader *reader, const char *path,
                              const json_t *value, int *out);

/* input_read.c: "input", once axes and semantics are known. */
enum vxd_status vxd_model_read_input(struct vxd_model_reader *reader,
                                     const json_t *value);
/* layer_keys.c: "defaults"; and the keys of a layer whose name and kind are known. */
enum vxd_status vxd_model_read_keys(struct vxd_model_reader *reader, const json_t *value,
                                    struct vxd_layer_config *layer);
/* layer_read.c: one item of "layers". */
extern const char *const vxd_layer_kind_names[VXD_N_LAYER_KINDS + 1];
enum vxd_status vxd_model_read_defaults(struct vxd_model_reader *reader,
                                        const json_t *value);
enum vxd_status vxd_model_read_layer(struct vxd_model_reader *reader, size_t i,
                                     const json_t *value, struct vxd_layer_config *out);
/* layer_coord_set.c: finds the rows of the layer's result and checks that its maps agree,
 * for nodes whose inputs are known. Fills to->set and to->n_tokens. *of_map is the map
 * that it reads backwards, or NULL. */
enum vxd_status vxd_model_place_layer(struct vxd_model_reader *reader,
                                      const struct vxd_layer_config *layer,
                                      struct vxd_node *to,
                                      const struct vxd_node_map **of_map);
/* layer_add.c: adds the layer to the engine's builder, with its weights, and to the
 * nodes. */
enum vxd_status vxd_model_add_layer(struct vxd_model_reader *reader,
                                    struct vxd_layer_config *layer);
/* output_read.c: "outputs". */
enum vxd_status vxd_model_read_outputs(struct vxd_model_reader *reader,
                                       const json_t *value);

/* model_file.c: reads a whole regular file of DIRECTORY, of at most n_max bytes; the
 * caller frees *bytes. */
enum vxd_status vxd_model_load_file(const char *directory, const char *file, size_t n_max,
                                    uint8_t **bytes, size_t *n_bytes,
                                    struct vxd_err *err);
/* Writes a file: beside its place first, synced, then renamed. */
enum vxd_status vxd_model_store_file(const char *directory, const char *file,
                                     const uint8_t *bytes, size_t n_bytes, bool replace,
                                     struct vxd_err *err);

/* "layers[NAME].key", or "layers[NAME]" for key NULL. */
void vxd_layer_path(char out[VXD_JSON_PATH_BYTES], const char *layer, const char *key);

#endif
