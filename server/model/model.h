// SPDX-License-Identifier: Apache-2.0
/* A network as its two files say it: NAME.json (format voxeld-net/1, documented key by key in
 * configs/networks/README.md) and a .safetensors file, read into what the engine and the
 * service need. Immutable once read: any thread may look at it. */
#ifndef VXD_SERVER_MODEL_MODEL_H
#define VXD_SERVER_MODEL_MODEL_H

#include "gpu/sparse/executor/executor.h"
#include "gpu/voxel/voxel.h"

enum {
    VXD_MODEL_NAME_BYTES = 64,   /* [a-z0-9][a-z0-9._-]{0,62} and its zero */
    VXD_MODEL_DIGEST_BYTES = 65, /* hexadecimal SHA-256 and its zero */
    VXD_MODEL_MAX_LABELS = 1024,
    VXD_MODEL_MAX_POINTS = 65536, /* kept a voxel */
    VXD_MODEL_MAX_CONFIG_BYTES = 1 << 20,
    VXD_MODEL_MAX_WEIGHT_BYTES = 1 << 30
};

/* --- what goes in ------------------------------------------------------------------------ */

/* One channel of the points' features. */
struct vxd_model_feature {
    /* FIELD: the cloud's field `name`, times scale plus bias (on top of the field's own);
     * POSITION: component 0, 1, 2 of what is voxelized ("x", "y", "z"; after `normalize`),
     * likewise scaled; CONSTANT: `constant` for every point. */
    enum vxd_channel_kind kind;
    char name[VXD_MODEL_NAME_BYTES]; /* as the config says it; "1" for a constant */
    int component;
    float constant;
    double scale;
    double bias;
};

enum vxd_model_reduce {
    VXD_MODEL_MEAN = 0,
    VXD_MODEL_FIRST = 1,
    VXD_MODEL_MAX = 2,
    VXD_MODEL_SUM = 3
};

/* What happens with voxels after the max_voxels-th: they are dropped and counted, or the
 * item is refused (RESOURCE_EXHAUSTED). */
enum vxd_model_overflow {
    VXD_MODEL_DROP = 0,
    VXD_MODEL_ERROR = 1
};

/* Before voxels are made: vxd_model_normalize. */
struct vxd_model_normalize {
    bool used;
    uint32_t n_points; /* kept at most; 0 = all */
    bool has_range; /* points outside lo <= p < hi (metres, as sent) are dropped first */
    float range_lo_m[3];
    float range_hi_m[3];
    bool center;       /* the kept points' mean is subtracted */
    bool scale_to_one; /* divided by the largest absolute coordinate: [-1, 1] */
};

struct vxd_model_input {
    const struct vxd_model_feature *features;
    int n_features; /* 1 to VXD_MAX_CHANNELS; the network's input channels */
    /* rule, order MORTON, size_m, range, max_points and max_voxels are set; positions,
     * features, batch and channels are the caller's. Mode "voxelize" is the rule SPCONV (needs
     * a range), "quantize" the rule MINKOWSKI. */
    struct vxd_voxelize_args voxelize;
    enum vxd_model_reduce reduce;
    enum vxd_model_overflow overflow;
    struct vxd_model_normalize normalize;
    int32_t shape[3]; /* cells x, y, z of the network's input; zeros = unbounded */
};

/* --- what comes out ---------------------------------------------------------------------- */

enum vxd_model_output_kind {
    VXD_MODEL_VOXELS = 0, /* rows with coordinates */
    VXD_MODEL_POINTS =
        1, /* each point's voxel's row, by the inverse map; `fill` for points
                           * without a voxel. Of a set at the input's resolution only */
    VXD_MODEL_DENSE = 2, /* bird's-eye view, samples x (channels * depth) x y x x */
    VXD_MODEL_VECTOR = 3 /* one row a sample; an l2norm is a layer of the network */
};

struct vxd_model_output {
    char name[VXD_NET_NAME_BYTES];
    enum vxd_model_output_kind kind;
    int engine_output; /* number for vxd_net_run_result */
    bool argmax; /* VOXELS and POINTS: int32 label and float32 score a row, instead of the
                        * channels */
    int n_channels;     /* of the layer; DENSE: before z is folded in */
    float fill;         /* POINTS without argmax */
    int32_t fill_label; /* POINTS with argmax; -1 unless said otherwise */
    /* Cells of the network's input that one cell of this output's coordinates spans, x, y, z:
     * a strided layer's rows times this are input cells. 1 for VECTOR. */
    int32_t stride[3];
    const char *const *label_names; /* n_labels of them, NULL where none are given */
    int n_labels;                   /* 0 or n_channels */
};

/* --- the model --------------------------------------------------------------------------- */

struct vxd_model_layer {
    char name[VXD_NET_NAME_BYTES];
    const char *op; /* as in the config; static */
    int n_in;       /* channels of its first input */
    int n_out;
    size_t n_parameters;
};

struct vxd_model;

/* Reads DIRECTORY/NAME.json and the weights file that it names in the same directory.
 *
 * errors  INVALID_ARGUMENT     a fault in either file: err.field is the key's path
 *                              ("layers[c2a].kernel", "weights[conv1.0.weight]"), the message
 *                              names the file. Also a name of another form
 *         NOT_FOUND            one of the files; no regular file
 *         RESOURCE_EXHAUSTED   no memory; a file above its limit
 * owner   the caller: vxd_model_destroy */
enum vxd_status vxd_model_read(const char *directory, const char *name,
                               struct vxd_model **out, struct vxd_err *err);

/* Reads a model from memory, which is not used any more afterwards. `name` stands for the
 * file in messages and must be the config's name. */
enum vxd_status vxd_model_parse(const char *name, const char *text, size_t n_text,
                                const void *weights, size_t n_weights,
                                struct vxd_model **out, struct vxd_err *err);

/* Reads the config and draws its weights from the seed (Kaiming's uniform bounds; batch
 * norms near the identity) instead of reading them. Equal seeds give equal weights
 * everywhere. */
enum vxd_status vxd_model_read_random(const char *directory, const char *name,
                                      uint64_t seed, struct vxd_model **out,
                                      struct vxd_err *err);

/* Writes the weights file that DIRECTORY/NAME.json names, with the tensors of
 * vxd_model_read_random; beside it first, then renamed.
 * errors  as above; ALREADY_EXISTS  it is there and replace is false
 *         UNAVAILABLE     the disk does not take it */
enum vxd_status vxd_model_init_weights(const char *directory, const char *name,
                                       uint64_t seed, bool replace, struct vxd_err *err);

/* NULL is fine. */
void vxd_model_destroy(struct vxd_model *model);

const char *vxd_model_name(const struct vxd_model *model);
/* Returns the SHA-256 over the SHA-256 of the config and that of the weights file, as
 * they were read. */
const char *vxd_model_digest(const struct vxd_model *model);
/* Beside the values of enum vxd_net_precision, which are below VXD_N_MODEL_PRECISIONS. */
enum {
    VXD_MODEL_ITS_PRECISION = -1,  /* what the config recommends ("precision"), or fp32 */
    VXD_MODEL_AUTO_PRECISION = -2, /* fp16 on a GPU, fp32 on a CPU */
    VXD_N_MODEL_PRECISIONS = 4
};

/* Returns the precision that the network has when `wished`, or one of the above, is asked for. */
enum vxd_net_precision vxd_model_choose_precision(const struct vxd_model *model,
                                                  int wished, enum vxd_backend backend);
const struct vxd_net_builder *vxd_model_builder(const struct vxd_model *model);
const struct vxd_model_input *vxd_model_input(const struct vxd_model *model);
size_t vxd_model_n_outputs(const struct vxd_model *model);
const struct vxd_model_output *vxd_model_output(const struct vxd_model *model, size_t i);
size_t vxd_model_n_parameters(const struct vxd_model *model);
size_t vxd_model_n_layers(const struct vxd_model *model);
const struct vxd_model_layer *vxd_model_layer(const struct vxd_model *model, size_t i);

/* The names (without .json) of the configs in the directory, sorted; other files are passed
 * over. errors  NOT_FOUND  the directory; RESOURCE_EXHAUSTED
 * owner   the caller: vxd_model_names_free */
enum vxd_status vxd_model_names(const char *directory, char ***names, size_t *n,
                                struct vxd_err *err);
void vxd_model_names_free(char **names, size_t n);

/* Whether it has the form of a network's name. */
bool vxd_model_name_ok(const char *name);

/* Does the normalize step in host memory. Points that are not finite or outside the range
 * are dropped first. Of the m that are left, the i * m / n_points-th stay (integer
 * division, i ascending), so the same cloud gives the same points everywhere. Mean and
 * scale are computed in double and rounded to float32 once.
 * in      positions  n x 3 float32
 * out     normal     capacity vxd_model_normalized_max(how, n) x 3; may not be `positions`
 *         picked     as many: the index of the point that each row was
 *         n_out      rows */
size_t vxd_model_normalized_max(const struct vxd_model_normalize *how, size_t n);
void vxd_model_normalize(const struct vxd_model_normalize *how, const float *positions,
                         size_t n, float *normal, uint32_t *picked, size_t *n_out);

#endif
