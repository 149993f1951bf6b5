// SPDX-License-Identifier: Apache-2.0
/* Observations of whole blocks that no sensor made: the values of the blocks are read, averaged on
 * the host, and written again, so both backends do the same by construction. */
#include <stdlib.h>

#include "gpu/volume/volume_internal.h"

#define MAX_WEIGHT 65535.0

static enum vxd_status check(const struct vxd_volume_observation *in, struct vxd_err *err)
{
    if (!(in->weight >= 0 && in->weight <= MAX_WEIGHT)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "weight", "%g, must be 0 to %g",
                        in->weight, MAX_WEIGHT);
    }
    for (size_t i = 0; i < in->n; i++) {
        if (!vxd_block_in_range(in->keys + 3 * i)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "keys",
                            "block %zu is (%d, %d, %d), must be within +-%d", i,
                            in->keys[3 * i], in->keys[3 * i + 1], in->keys[3 * i + 2],
                            VXD_BLOCK_LIMIT);
        }
    }
    return VXD_OK;
}

/* --- values on the host ------------------------------------------------------------------- */

/* The layers of the blocks, in the observation's order, to be changed. */
struct layers {
    void *distances;
    void *weights;
    uint64_t *labels; /* NULL: none */
};

static float distance_of(const struct vxd_volume_view *view, const struct layers *layers,
                         size_t row)
{
    return view->is_compact != 0
               ? vxd_float_of_half(((const uint16_t *)layers->distances)[row])
               : ((const float *)layers->distances)[row];
}

static float weight_of(const struct vxd_volume_view *view, const struct layers *layers,
                       size_t row)
{
    return view->is_compact != 0 ? (float)((const uint8_t *)layers->weights)[row]
                                 : ((const float *)layers->weights)[row];
}

/* One voxel: equation 12, with a distance in metres. */
static void observe_voxel(const struct vxd_volume_view *view, const struct layers *layers,
                          size_t row, float metres, float weight)
{
    float d_new = vxd_divf(metres, view->truncation);
    float w = weight_of(view, layers, row);
    float d;

    d_new = d_new > 1 ? 1.0f : d_new < -1 ? -1.0f : d_new;
    d = w > 0 ? vxd_average(distance_of(view, layers, row), w, d_new, weight) : d_new;
    w = vxd_weight_sum(w, weight, view->max_weight);
    if (view->is_compact != 0) {
        ((uint16_t *)layers->distances)[row] = vxd_half_of_float(d);
        ((uint8_t *)layers->weights)[row] = (uint8_t)w;
    } else {
        ((float *)layers->distances)[row] = d;
        ((float *)layers->weights)[row] = w;
    }
}

/* All voxels; what lies deeper than the truncation observes nothing, as in images. */
static void observe_all(const struct vxd_volume *volume,
                        const struct vxd_volume_observation *in, struct layers *layers)
{
    struct vxd_volume_view view;
    float weight = in->weight > 0 ? (float)in->weight : 1.0f;
    size_t n;

    vxd_volume_get_view(volume, &view);
    n = in->n << (3 * view.shift);
    if (view.is_compact != 0) {
        weight = (float)(int)vxd_addf(weight, 0.5f);
        weight = weight < 1 ? 1.0f : weight > 255 ? 255.0f : weight;
    }
    for (size_t row = 0; row < n; row++) {
        float metres = in->distances[row];

        if (!(metres >= -view.truncation)) {
            continue; /* NaN as well */
        }
        observe_voxel(&view, layers, row, metres, weight);
        if (layers->labels != NULL && in->labels != NULL && in->labels[row] != 0 &&
            metres < view.truncation) {
            layers->labels[row] = vxd_label_vote(layers->labels[row], in->labels[row]);
        }
    }
}

/* --- blocks ---------------------------------------------------------------------------------- */

/* The entries of the blocks, made where there are none. Blocking. */
static enum vxd_status find_entries(struct vxd_queue *queue, struct vxd_volume *volume,
                                    const struct vxd_volume_observation *in,
                                    int32_t *entries, size_t *n_new, struct vxd_err *err)
{
    uint64_t *codes = malloc(in->n * sizeof *codes);
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer found = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer missing = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *d_keys = NULL;
    const void *d_codes = NULL;
    const void *read = NULL;
    enum vxd_status status = VXD_OK;

    *n_new = 0;
    if (codes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu blocks",
                        in->n);
    }
    VXD_TRY(
        vxd_upload(queue, in->keys, in->n * 3 * sizeof(int32_t), &keys, &d_keys, err));
    VXD_TRY(vxd_device_alloc(queue, in->n * sizeof(int32_t), &found, err));
    VXD_TRY(vxd_hashmap_find(queue, volume->map, d_keys, in->n, found.ptr, NULL, err));
    VXD_TRY(vxd_download(queue, found.ptr, in->n * sizeof(int32_t), &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    memcpy(entries, read, in->n * sizeof *entries);
    for (size_t i = 0; i < in->n; i++) {
        const int32_t *key = in->keys + 3 * i;

        if (entries[i] == VXD_NO_ENTRY) {
            codes[(*n_new)++] = vxd_block_morton(vxd_block_tag(key[0], key[1], key[2]));
        }
    }
    if (*n_new > 0) {
        VXD_TRY(
            vxd_upload(queue, codes, *n_new * sizeof *codes, &missing, &d_codes, err));
        VXD_TRY(vxd_volume_add_blocks(queue, volume, (uint64_t *)(uintptr_t)d_codes,
                                      *n_new, found.ptr, err));
        VXD_TRY(
            vxd_hashmap_find(queue, volume->map, d_keys, in->n, found.ptr, NULL, err));
        vxd_host_free(queue->context, &host);
        VXD_TRY(
            vxd_download(queue, found.ptr, in->n * sizeof(int32_t), &host, &read, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        memcpy(entries, read, in->n * sizeof *entries);
    }
out:
    (void)vxd_queue_wait(queue, NULL); /* it reads `codes` until then */
    vxd_host_free(queue->context, &host);
    vxd_device_free(queue, &missing);
    vxd_device_free(queue, &found);
    vxd_device_free(queue, &keys);
    free(codes);
    return status;
}

/* Queues one array's new rows. What was uploaded stays until the wait. */
static enum vxd_status write_array(struct vxd_queue *queue, struct vxd_volume *volume,
                                   const int32_t *d_entries, size_t n, int array,
                                   const void *d_rows, struct vxd_err *err)
{
    const struct vxd_hashmap_update_args args = {
        .indices = d_entries,
        .n = n,
        .array = array,
        .dtype = vxd_hashmap_get_spec(volume->map)->values[array].dtype,
        .rows = d_rows,
        .combine = VXD_COMBINE_SET};

    return vxd_hashmap_update(queue, volume->map, &args, err);
}

/* Writes what observe_all has changed. All memory is there before the first change. */
static enum vxd_status write_layers(struct vxd_queue *queue, struct vxd_volume *volume,
                                    const int32_t *entries, size_t n,
                                    const struct layers *layers, struct vxd_err *err)
{
    const struct vxd_hashmap_spec *spec = vxd_hashmap_get_spec(volume->map);
    int label_array =
        volume->spec.has_colour ? VXD_VOLUME_COLOURS + 1 : VXD_VOLUME_COLOURS;
    const struct {
        int array;
        const void *rows;
    } changed[] = {{VXD_VOLUME_DISTANCES, layers->distances},
                   {VXD_VOLUME_WEIGHTS, layers->weights},
                   {label_array, layers->labels}};
    struct vxd_buffer buffers[5] = {0};
    const void *d_rows[3] = {NULL};
    const void *d_stamps = NULL;
    const void *d_entries = NULL;
    uint64_t *stamps = malloc(n * sizeof *stamps);
    enum vxd_status status;

    if (stamps == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu stamps", n);
    }
    for (size_t i = 0; i < n; i++) {
        stamps[i] = volume->version + 1;
    }
    VXD_TRY(
        vxd_upload(queue, entries, n * sizeof *entries, &buffers[3], &d_entries, err));
    VXD_TRY(vxd_upload(queue, stamps, n * sizeof *stamps, &buffers[4], &d_stamps, err));
    for (int i = 0; i < 3; i++) {
        const struct vxd_hashmap_array *value = &spec->values[changed[i].array];

        if (changed[i].rows != NULL) {
            VXD_TRY(vxd_upload(queue, changed[i].rows,
                               n * value->n_elements * vxd_dtype_bytes(value->dtype),
                               &buffers[i], &d_rows[i], err));
        }
    }
    (void)vxd_volume_begin_change(volume);
    VXD_TRY(write_array(queue, volume, d_entries, n, VXD_VOLUME_STAMPS, d_stamps, err));
    for (int i = 0; i < 3; i++) {
        if (changed[i].rows != NULL) {
            VXD_TRY(write_array(queue, volume, d_entries, n, changed[i].array, d_rows[i],
                                err));
        }
    }
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    (void)vxd_queue_wait(queue, NULL);
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        vxd_device_free(queue, &buffers[i]);
    }
    free(stamps);
    return status;
}

enum vxd_status vxd_volume_observe(struct vxd_queue *queue, struct vxd_volume *volume,
                                   const struct vxd_volume_observation *observation,
                                   size_t *n_new, struct vxd_err *err)
{
    struct vxd_volume_blocks blocks = {0};
    struct layers layers = {0};
    int32_t *entries = NULL;
    size_t n = observation->n;
    enum vxd_status status;

    *n_new = 0;
    VXD_TRY(check(observation, err));
    if (n == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_volume_prepare(queue, volume, err));
    entries = malloc(n * sizeof *entries);
    if (entries == NULL) {
        VXD_TRY(
            vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu entries", n));
    }
    VXD_TRY(find_entries(queue, volume, observation, entries, n_new, err));
    VXD_TRY(vxd_volume_read_blocks(queue, volume, entries, n, true, &blocks, err));
    layers.distances = (void *)(uintptr_t)blocks.layers[VXD_VOLUME_DISTANCES - 1];
    layers.weights = (void *)(uintptr_t)blocks.layers[VXD_VOLUME_WEIGHTS - 1];
    if (volume->spec.has_labels && observation->labels != NULL) {
        int layer = volume->spec.has_colour ? VXD_VOLUME_COLOURS : VXD_VOLUME_COLOURS - 1;

        layers.labels = (uint64_t *)(uintptr_t)blocks.layers[layer];
    }
    observe_all(volume, observation, &layers);
    VXD_TRY(write_layers(queue, volume, entries, n, &layers, err));
out:
    vxd_volume_blocks_free(queue, &blocks);
    free(entries);
    return status;
}
