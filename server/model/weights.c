// SPDX-License-Identifier: Apache-2.0
#include "server/model/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/model/json_value.h"
#include "server/model/model.h"

enum {
    SHAPE_TEXT_BYTES = 64
};

static size_t count_of(const struct vxd_tensor_want *want)
{
    size_t n = 1;

    for (size_t i = 0; i < want->n_dims; i++) {
        n *= want->shape[i]; /* the list's limit, or the file's size, bounds it */
    }
    return n;
}

static bool shapes_match(const size_t *a, size_t n_a, const size_t *b, size_t n_b)
{
    size_t i = 0;
    size_t j = 0;

    for (;;) {
        while (i < n_a && a[i] == 1) {
            i++;
        }
        while (j < n_b && b[j] == 1) {
            j++;
        }
        if (i == n_a || j == n_b) {
            return i == n_a && j == n_b;
        }
        if (a[i++] != b[j++]) {
            return false;
        }
    }
}

static void print_shape(char out[SHAPE_TEXT_BYTES], const size_t *shape, size_t n)
{
    size_t at = 1;

    memcpy(out, "[", 2);
    for (size_t i = 0; i < n && at < SHAPE_TEXT_BYTES; i++) {
        (void)snprintf(out + at, SHAPE_TEXT_BYTES - at, "%s%zu", i > 0 ? ", " : "",
                       shape[i]);
        at += strlen(out + at);
    }
    (void)snprintf(out + at, SHAPE_TEXT_BYTES - at, "]");
}

static enum vxd_status fail_shape(const struct vxd_json *json,
                                  const struct vxd_tensor_want *want, const size_t *shape,
                                  size_t n_dims)
{
    char has[SHAPE_TEXT_BYTES];
    char expected[SHAPE_TEXT_BYTES];

    print_shape(has, shape, n_dims);
    print_shape(expected, want->shape, want->n_dims);
    return vxd_json_fail(json, want->path, "tensor \"%.60s\" is %s, the layer needs %s",
                         want->name, has, expected);
}

/* Adds a tensor to the list, unless the name is there already, with the same shape. */
static enum vxd_status list_want(struct vxd_tensors *tensors, const struct vxd_json *json,
                                 const struct vxd_tensor_want *want)
{
    struct vxd_tensor_list *list = tensors->list;

    for (size_t i = 0; i < list->n; i++) {
        const struct vxd_tensor_want *known = &list->wants[i];

        if (strcmp(known->name, want->name) == 0) {
            return shapes_match(known->shape, known->n_dims, want->shape, want->n_dims)
                       ? VXD_OK
                       : fail_shape(json, want, known->shape, known->n_dims);
        }
    }
    if (tensors->n_parameters > VXD_MODEL_MAX_WEIGHT_BYTES / sizeof(float)) {
        return vxd_fail(json->err, VXD_RESOURCE_EXHAUSTED, want->path,
                        "%.70s: more than %d bytes of weights", json->file,
                        VXD_MODEL_MAX_WEIGHT_BYTES);
    }
    if (list->n == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 64;
        struct vxd_tensor_want *wants =
            realloc(list->wants, capacity * sizeof list->wants[0]);

        if (wants == NULL) {
            return vxd_json_no_memory(json);
        }
        list->wants = wants;
        list->capacity = capacity;
    }
    list->wants[list->n] = *want;
    list->wants[list->n++].path = NULL;
    return VXD_OK;
}

enum vxd_status vxd_tensors_find(struct vxd_tensors *tensors,
                                 const struct vxd_tensor_want *want,
                                 const struct vxd_tensor **out, struct vxd_err *err)
{
    const struct vxd_json json = {.file = tensors->name, .err = err};
    const struct vxd_tensor *tensor;

    *out = NULL;
    if (want->learned) {
        tensors->n_parameters += count_of(want);
    }
    if (tensors->file == NULL) {
        return list_want(tensors, &json, want);
    }
    tensor = vxd_safetensors_find(tensors->file, want->name);
    if (tensor == NULL) {
        return vxd_json_fail(&json, want->path, "there is no tensor \"%.90s\"",
                             want->name);
    }
    if (!vxd_tensor_is_float(tensor)) {
        return vxd_json_fail(
            &json, want->path,
            "tensor \"%.60s\" is of %s, it must be F64, F32, F16 or BF16", want->name,
            tensor->dtype);
    }
    if (!shapes_match(tensor->shape, tensor->n_dims, want->shape, want->n_dims)) {
        return fail_shape(&json, want, tensor->shape, tensor->n_dims);
    }
    *out = tensor;
    return VXD_OK;
}

static enum vxd_status fail_element(const struct vxd_tensors *tensors,
                                    const struct vxd_tensor_want *want, size_t i,
                                    struct vxd_err *err)
{
    const struct vxd_json json = {.file = tensors->name, .err = err};

    return vxd_json_fail(&json, want->path,
                         "tensor \"%.60s\": element %zu is no finite float32", want->name,
                         i);
}

static bool fits_float(double value)
{
    return isfinite(value) && fabs(value) <= (double)3.402823466e38F;
}

enum vxd_status vxd_tensors_read(struct vxd_tensors *tensors,
                                 const struct vxd_tensor_want *want, double **out,
                                 struct vxd_err *err)
{
    const struct vxd_tensor *tensor;
    enum vxd_status status = vxd_tensors_find(tensors, want, &tensor, err);
    double *values;

    *out = NULL;
    if (status != VXD_OK || tensor == NULL) {
        return status;
    }
    values = malloc((tensor->n_elements + 1) * sizeof *values);
    if (values == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %.70s",
                        tensors->name);
    }
    for (size_t i = 0; i < tensor->n_elements; i++) {
        values[i] = vxd_tensor_get(tensors->file, tensor, i);
        if (!fits_float(values[i])) {
            free(values);
            return fail_element(tensors, want, i, err);
        }
    }
    *out = values;
    return VXD_OK;
}

/* Returns the number of a tap in the file; r counts along the config's axes. */
static size_t file_tap(enum vxd_weight_layout layout, const int r[3], const int size[3])
{
    bool first_fastest =
        layout == VXD_LAYOUT_ME ||
        (layout == VXD_LAYOUT_TORCHSPARSE && size[0] * size[1] * size[2] % 2 != 0);
    int tap = first_fastest ? (r[2] * size[1] + r[1]) * size[0] + r[0]
                            : (r[0] * size[1] + r[1]) * size[2] + r[2];

    return (size_t)tap;
}

/* Computes the distance in elements between neighbours along taps, inputs and outputs,
 * and the tensor's shape. */
struct steps {
    size_t tap;
    size_t in;
    size_t out;
};

static struct steps lay_out(const struct vxd_conv_want *want, const int size[3],
                            struct vxd_tensor_want *tensor)
{
    const size_t k[3] = {(size_t)size[0], (size_t)size[1], (size_t)size[2]};
    const size_t taps = k[0] * k[1] * k[2];
    const size_t in = (size_t)want->n_in;
    const size_t out = (size_t)want->n_out;

    switch (want->layout) {
    case VXD_LAYOUT_KRSC:
        tensor->n_dims = 5;
        memcpy(tensor->shape, (const size_t[]){out, k[0], k[1], k[2], in},
               5 * sizeof(size_t));
        return (struct steps){.tap = in, .in = 1, .out = taps * in};
    case VXD_LAYOUT_RSCK:
        tensor->n_dims = 5;
        memcpy(tensor->shape, (const size_t[]){k[0], k[1], k[2], in, out},
               5 * sizeof(size_t));
        return (struct steps){.tap = in * out, .in = out, .out = 1};
    case VXD_LAYOUT_TORCH:
        tensor->n_dims = 5;
        memcpy(tensor->shape, (const size_t[]){out, in, k[0], k[1], k[2]},
               5 * sizeof(size_t));
        return (struct steps){.tap = 1, .in = taps, .out = in * taps};
    case VXD_LAYOUT_ME:
    case VXD_LAYOUT_TORCHSPARSE:
    case VXD_LAYOUT_KIO:
        break;
    }
    tensor->n_dims = 3;
    memcpy(tensor->shape, (const size_t[]){taps, in, out}, 3 * sizeof(size_t));
    return (struct steps){.tap = in * out, .in = out, .out = 1};
}

/* Copies tap by tap in the engine's order. False: an element is not finite, and *at says
 * which. */
static bool permute(const struct vxd_tensors *tensors, const struct vxd_tensor *tensor,
                    const struct vxd_conv_want *want, const int size[3],
                    const struct steps *steps, float *out, size_t *at)
{
    int r[3]; /* x, y, z */

    for (r[0] = 0; r[0] < want->kernel[0]; r[0]++) {
        for (r[1] = 0; r[1] < want->kernel[1]; r[1]++) {
            for (r[2] = 0; r[2] < want->kernel[2]; r[2]++) {
                const int along[3] = {r[want->axes[0]], r[want->axes[1]],
                                      r[want->axes[2]]};
                size_t from = file_tap(want->layout, along, size) * steps->tap;

                for (size_t i = 0; i < (size_t)want->n_in; i++) {
                    for (size_t o = 0; o < (size_t)want->n_out; o++) {
                        double value;

                        *at = from + i * steps->in + o * steps->out;
                        value = vxd_tensor_get(tensors->file, tensor, *at);
                        if (!fits_float(value)) {
                            return false;
                        }
                        *out++ = (float)value;
                    }
                }
            }
        }
    }
    return true;
}

enum vxd_status vxd_tensors_conv(struct vxd_tensors *tensors,
                                 const struct vxd_conv_want *want, float **out,
                                 size_t *n_out, struct vxd_err *err)
{
    const int size[3] = {want->kernel[want->axes[0]], want->kernel[want->axes[1]],
                         want->kernel[want->axes[2]]};
    struct vxd_tensor_want shape = {.path = want->path, .learned = true};
    struct steps steps = lay_out(want, size, &shape);
    const struct vxd_tensor *tensor;
    enum vxd_status status;
    size_t at = 0;
    float *values;

    *out = NULL;
    *n_out = 0;
    (void)snprintf(shape.name, sizeof shape.name, "%s", want->tensor);
    /* Returns Kaiming's uniform bound for ReLU. */
    shape.bound =
        sqrt(6.0 / ((double)want->n_in * (double)(size[0] * size[1] * size[2])));
    status = vxd_tensors_find(tensors, &shape, &tensor, err);
    if (status != VXD_OK || tensor == NULL) {
        return status;
    }
    values = malloc(tensor->n_elements * sizeof *values);
    if (values == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %.70s",
                        tensors->name);
    }
    if (!permute(tensors, tensor, want, size, &steps, values, &at)) {
        free(values);
        return fail_element(tensors, &shape, at, err);
    }
    *out = values;
    *n_out = tensor->n_elements;
    return VXD_OK;
}

void vxd_tensor_list_free(struct vxd_tensor_list *list)
{
    free(list->wants);
    memset(list, 0, sizeof *list);
}
