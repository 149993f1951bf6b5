// SPDX-License-Identifier: Apache-2.0
/* Tensors as layers ask for them. They are found by name and shape and permuted from the
 * libraries' layouts to the engine's; or they are only listed, to draw random ones. */
#ifndef VXD_SERVER_MODEL_WEIGHTS_H
#define VXD_SERVER_MODEL_WEIGHTS_H

#include "server/model/safetensors_read.h"

/* How a convolution's weights lie in the file; k, r, s, c as the letters' order says, taps by
 * the config's axes. Taps are numbered with the last axis fastest except where said. */
enum vxd_weight_layout {
    VXD_LAYOUT_KRSC = 0,        /* spconv 2: out, taps, in */
    VXD_LAYOUT_RSCK = 1,        /* spconv 1: taps, in, out */
    VXD_LAYOUT_ME = 2,          /* MinkowskiEngine: taps (first axis fastest), in, out */
    VXD_LAYOUT_TORCHSPARSE = 3, /* taps (first axis fastest when their number is odd), in,
                                 * out */
    VXD_LAYOUT_TORCH = 4,       /* out, in, taps */
    VXD_LAYOUT_KIO = 5          /* taps, in, out */
};

/* What a layer needs; shapes match without regard to ones: [1, 32] is [32]. */
struct vxd_tensor_want {
    char name[VXD_TENSOR_NAME_BYTES];
    const char *path; /* the layer's key, for errors */
    size_t n_dims;
    size_t shape[VXD_TENSOR_MAX_RANK];
    bool learned; /* counts as parameters: all but running statistics */
    /* Drawn from [center - bound, center + bound]. */
    double center;
    double bound;
};

/* Tensors asked for, in order, each name once. Zero-initialised = none. */
struct vxd_tensor_list {
    struct vxd_tensor_want *wants; /* their paths do not live on: NULL */
    size_t n;
    size_t capacity;
};

/* Where tensors come from: a file, or, where it is NULL, they are only listed. */
struct vxd_tensors {
    const char *name; /* of the file, for messages */
    const struct vxd_safetensors *file;
    struct vxd_tensor_list *list;
    size_t n_parameters; /* learned elements asked for so far */
};

/* Finds a tensor of floats and of the given shape. *out is NULL when tensors are only
 * listed.
 * errors  INVALID_ARGUMENT    there is none, of another shape or type; want->path
 *         RESOURCE_EXHAUSTED  no memory for the list; more than a weights file may have */
enum vxd_status vxd_tensors_find(struct vxd_tensors *tensors,
                                 const struct vxd_tensor_want *want,
                                 const struct vxd_tensor **out, struct vxd_err *err);

/* Finds a tensor and converts its elements; the caller frees *out, which is NULL when
 * tensors are only listed.
 * errors  INVALID_ARGUMENT  also for an element that is not finite as float32 */
enum vxd_status vxd_tensors_read(struct vxd_tensors *tensors,
                                 const struct vxd_tensor_want *want, double **out,
                                 struct vxd_err *err);

struct vxd_conv_want {
    const char *tensor; /* the whole name */
    const char *path;
    enum vxd_weight_layout layout;
    int axes[3];   /* axis (0 = x) of the config's first, second, third */
    int kernel[3]; /* x, y, z */
    int n_in;
    int n_out;
};

/* A convolution's weights as the engine takes them, taps x in x out; *out is the caller's to
 * free, NULL when only listing. */
enum vxd_status vxd_tensors_conv(struct vxd_tensors *tensors,
                                 const struct vxd_conv_want *want, float **out,
                                 size_t *n_out, struct vxd_err *err);

void vxd_tensor_list_free(struct vxd_tensor_list *list);

/* A weights file of the list's tensors, float32, drawn from the seed; *bytes is the caller's
 * to free. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_tensor_list_draw(const struct vxd_tensor_list *list, uint64_t seed,
                                     uint8_t **bytes, size_t *n_bytes,
                                     struct vxd_err *err);

#endif
