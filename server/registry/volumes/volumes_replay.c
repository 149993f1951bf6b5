// SPDX-License-Identifier: Apache-2.0
/* Applies records to durable volumes. An image or scan is integrated again and a removal done again, with the same
 * values, stamps and entries on either backend; what a record has as blocks is put in its place. */
#include <string.h>

#include "client/files/image/files_image.h"
#include "server/durable/record/record.h"
#include "server/registry/volumes/volumes_internal.h"

enum {
    MAX_IMAGE_BYTES = 1 << 26 /* of one that is decoded */
};

enum vxd_status vxd_volume_as_damage(enum vxd_status status, struct vxd_err *err)
{
    if (status != VXD_INVALID_ARGUMENT) {
        return status;
    }
    if (err != NULL) {
        err->code = VXD_DATA_LOSS;
    }
    return VXD_DATA_LOSS;
}

/* --- blocks --------------------------------------------------------------------------------- */

/* Finds the record's rows of each of the volume's layers. A layer that the volume lacks is damage:
 * a newer server's records have newer rules. */
static enum vxd_status match_layers(const struct vxd_record_blocks *from,
                                    const struct vxd_volume *volume,
                                    struct vxd_volume_blocks *to, struct vxd_err *err)
{
    struct vxd_volume_layer layers[VXD_VOLUME_MAX_LAYERS];
    int n_layers = vxd_volume_get_layers(volume, layers);

    for (int i = 0; i < from->n_layers; i++) {
        int at = 0;

        while (at < n_layers && strcmp(layers[at].name, from->layers[i].name) != 0) {
            at++;
        }
        if (at == n_layers || layers[at].dtype != from->layers[i].dtype ||
            layers[at].n_elements != from->layers[i].n_elements) {
            return vxd_fail(err, VXD_DATA_LOSS, NULL,
                            "a record has a layer \"%s\" that the volume has not, or of "
                            "another type",
                            from->layers[i].name);
        }
        to->layers[at] = from->layers[i].rows;
    }
    return VXD_OK;
}

static enum vxd_status apply_blocks(struct vxd_queue *queue,
                                    struct vxd_volume_state *state,
                                    const struct vxd_record_blocks *from,
                                    struct vxd_err *err)
{
    struct vxd_volume_blocks blocks = {.n = from->n,
                                       .entries = from->entries,
                                       .keys = from->keys,
                                       .stamps = from->stamps};
    enum vxd_status status;

    VXD_TRY(match_layers(from, state->volume, &blocks, err));
    if (from->has_all_keys) {
        VXD_TRY(vxd_volume_keep_only(queue, state->volume, from->all_keys,
                                     from->n_all_keys, err));
    }
    VXD_TRY(vxd_volume_write_blocks(queue, state->volume, &blocks, from->version,
                                    from->removed_version, err));
    state->n_images = from->n_images;
out:
    return status;
}

/* --- images --------------------------------------------------------------------------------- */

/* An image of a record in host and in device memory. */
struct pixels {
    struct vxd_image decoded;
    struct vxd_buffer device;
};

/* Decodes an image where it is a file, and uploads it.
 * in      n_channels, sample_bytes  what it has to have */
static enum vxd_status take_pixels(struct vxd_queue *queue,
                                   const struct vxd_record_image *from,
                                   const struct vxd_volume_camera *camera,
                                   uint32_t n_channels, size_t sample_bytes,
                                   struct pixels *pixels, const void **out,
                                   struct vxd_err *err)
{
    const struct vxd_image_limits limits = {.max_bytes = MAX_IMAGE_BYTES};
    size_t n_bytes =
        (size_t)camera->width * (size_t)camera->height * n_channels * sample_bytes;
    const void *bytes = from->bytes;
    bool fits = from->n_bytes == n_bytes;
    enum vxd_status status;

    if (from->form == VXD_RECORD_PIXELS_PNG) {
        VXD_TRY(
            vxd_image_decode(from->bytes, from->n_bytes, &limits, &pixels->decoded, err));
        bytes = pixels->decoded.data;
        fits = (int)pixels->decoded.width == camera->width &&
               (int)pixels->decoded.height == camera->height &&
               pixels->decoded.n_channels == n_channels &&
               pixels->decoded.sample_bytes == sample_bytes;
    }
    if (!fits) {
        VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL,
                         "a record's image is none of %d x %d pixels", camera->width,
                         camera->height));
    }
    status = vxd_upload(queue, bytes, n_bytes, &pixels->device, out, err);
out:
    return status;
}

static void free_pixels(struct vxd_queue *queue, struct pixels *pixels)
{
    vxd_device_free(queue, &pixels->device);
    vxd_image_clear(&pixels->decoded);
}

static enum vxd_status forget(struct vxd_queue *queue, struct vxd_volume *volume,
                              const struct vxd_volume_record *record, struct vxd_err *err)
{
    struct vxd_buffer device = {NULL, 0, VXD_SPACE_DEVICE};
    const void *keys = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_upload(queue, record->forgotten,
                       record->n_forgotten * 3 * sizeof(int32_t), &device, &keys, err));
    status = vxd_volume_remove(queue, volume, keys, record->n_forgotten, err);
out:
    (void)vxd_queue_wait(queue, NULL);
    vxd_device_free(queue, &device);
    return status;
}

static enum vxd_status apply_image(struct vxd_queue *queue,
                                   struct vxd_volume_state *state,
                                   const struct vxd_volume_record *record,
                                   struct vxd_err *err)
{
    struct vxd_volume_frame frame = record->frame;
    struct vxd_volume_activation done;
    struct pixels depth = {.device = {NULL, 0, VXD_SPACE_DEVICE}};
    struct pixels colour = {.device = {NULL, 0, VXD_SPACE_DEVICE}};
    const void *at = NULL;
    enum vxd_status status = VXD_OK;

    VXD_TRY(take_pixels(queue, &record->depth, &frame.camera, 1,
                        vxd_dtype_bytes(frame.dtype), &depth, &frame.depth, err));
    if (record->colour.form != VXD_RECORD_PIXELS_NONE) {
        VXD_TRY(
            take_pixels(queue, &record->colour,
                        frame.has_colour_camera ? &frame.colour_camera : &frame.camera, 3,
                        1, &colour, &at, err));
        frame.colour = at;
    }
    if (record->n_forgotten > 0) {
        VXD_TRY(forget(queue, state->volume, record, err));
    }
    VXD_TRY(vxd_volume_integrate(queue, state->volume, &frame, &done, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    state->n_images++;
out:
    (void)vxd_queue_wait(queue, NULL); /* the engine may read the record until then */
    free_pixels(queue, &colour);
    free_pixels(queue, &depth);
    return status;
}

/* --- scans ---------------------------------------------------------------------------------- */

static enum vxd_status apply_scan(struct vxd_queue *queue, struct vxd_volume_state *state,
                                  const struct vxd_volume_record *record,
                                  struct vxd_err *err)
{
    struct vxd_volume_scan scan = record->scan;
    struct vxd_volume_scan_result done;
    struct vxd_buffer device[3] = {0};
    const void *at[3] = {NULL};
    const size_t n_bytes[3] = {
        scan.n_points * 3 * sizeof(float),
        scan.n_points * (size_t)scan.n_features * sizeof(float),
        scan.labels != NULL ? scan.n_points : 0,
    };
    const void *const from[3] = {scan.points, scan.features, scan.labels};
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < 3; i++) {
        if (n_bytes[i] > 0) {
            VXD_TRY(vxd_upload(queue, from[i], n_bytes[i], &device[i], &at[i], err));
        }
    }
    scan.points = at[0];
    scan.features = at[1];
    scan.labels = at[2];
    if (record->n_forgotten > 0) {
        VXD_TRY(forget(queue, state->volume, record, err));
    }
    VXD_TRY(vxd_volume_integrate_scan(queue, state->volume, &scan, &done, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    state->n_images++;
out:
    (void)vxd_queue_wait(queue, NULL); /* the engine may read the record until then */
    for (int i = 0; i < 3; i++) {
        vxd_device_free(queue, &device[i]);
    }
    return status;
}

/* --- one record ----------------------------------------------------------------------------- */

enum vxd_status vxd_volume_apply(struct vxd_queue *queue, struct vxd_volume_state *state,
                                 const struct vxd_journal_record *record,
                                 struct vxd_err *err)
{
    struct vxd_volume_record_decoded decoded;
    const struct vxd_volume_record *r = &decoded.record;
    struct vxd_volume_decay decay;
    size_t n_removed;
    enum vxd_status status = vxd_volume_record_decode(
        record->bytes, record->n_bytes, record->rules_version, 0, &decoded, err);

    if (status != VXD_OK) {
        return status;
    }
    decay = r->decay;
    if (r->kind == VXD_VOLUME_RECORD_BLOCKS) {
        status = apply_blocks(queue, state, &r->blocks, err);
    } else if (r->kind == VXD_VOLUME_RECORD_IMAGE) {
        status = apply_image(queue, state, r, err);
    } else if (r->kind == VXD_VOLUME_RECORD_SCAN) {
        status = apply_scan(queue, state, r, err);
    } else if (r->decays) {
        decay.keeps_votes = record->rules_version < VXD_VOLUME_RULES_VOTES_DECAY;
        status = vxd_volume_decay(queue, state->volume, &decay, &n_removed, err);
    } else {
        status =
            vxd_volume_clear(queue, state->volume, &r->decay.region, &n_removed, err);
    }
    vxd_volume_record_decoded_free(&decoded);
    return vxd_volume_as_damage(status, err);
}
