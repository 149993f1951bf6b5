// SPDX-License-Identifier: Apache-2.0
/* A record of a volume (numbers are base 128, the low seven bits first; s = signed, zigzag;
 * doubles are their 8 bytes, little end first):
 *
 *      1  kind: 9 blocks, 10 image, 11 remove, 22 scan (volume_record_scan.c)
 *      1  bytes of the author's name, 0 to 63, and the name
 *      1  bytes of the client's name, 0 to 63, and the name
 *         unix_ns (s)
 *    blocks
 *         the volume's version, its removed_version and its number of images afterwards (numbers)
 *      1  1: blocks were removed, and the keys of all that stay follow, 0: none were
 *         of 1: keys
 *      1  layers, 0 to 15, and each: 1 bytes of its name, and the name; 1 dtype; elements a block
 *         n, blocks (number); with n > 0:
 *         columns (record_columns.c) of entries (int32), of their keys (3 of int32), and of their
 *         stamps (uint64)
 *         for each layer, for each byte of its elements from the lowest up, a plane
 *         (byte_planes.c) of that byte of all elements of all blocks
 *    image
 *         keys of blocks that were removed before
 *         camera
 *         pose, camera to map: 12 doubles, the rotation row by row, then the translation
 *      1  dtype of the depths: 4 uint16, 7 float32 (enum vxd_dtype)
 *     32  depth_scale, depth_min_m, depth_max_m, weight
 *      1  weighting, 0 constant, 1 by 1/z^2
 *      1  1: the colours have a camera of their own, 0: not
 *         of 1: camera; pose of it in the depth camera
 *         depth, colour: each 1 form (0 none, 1 raw, 2 PNG), and where it is not 0 its bytes
 *         (number) and the bytes
 *    remove
 *      1  1: a decay, 0: a removal
 *     16  factor, min_weight; of a decay
 *      1  1: outside of a ball, 0: a box
 *         centre and radius, 4 doubles; or the low and the high corner, 6
 *
 *    keys: number of keys, and columns of 3 of int32. camera: width, height (numbers), fx, fy, cx,
 *    cy, k1 k2 p1 p2 k3 k4 k5 k6
 *
 * and nothing behind. */
#include "server/durable/record/volume_record.h"

#include "server/durable/journal/journal.h"
#include "server/durable/record/byte_planes.h"
#include "server/durable/record/record_internal.h"

enum {
    MAX_SIDE = 16384
};

/* --- writing ---------------------------------------------------------------------------- */

void vxd_record_put_doubles(struct vxd_bytes_out *out, const double *values, size_t n)
{
    vxd_bytes_put(out, values, n * sizeof *values);
}

/* Columns are only read here; their type serves reading and writing. */
static enum vxd_status put_integers(struct vxd_bytes_out *out, const void *values,
                                    size_t n, size_t n_columns, size_t width,
                                    struct vxd_err *err)
{
    const struct vxd_record_columns columns = {.bytes = (uint8_t *)(uintptr_t)values,
                                               .n = n,
                                               .n_columns = n_columns,
                                               .width = width};

    return vxd_record_put_columns(out, &columns, err);
}

enum vxd_status vxd_record_put_keys(struct vxd_bytes_out *out, const int32_t *keys,
                                    size_t n, struct vxd_err *err)
{
    vxd_bytes_put_number(out, n);
    return put_integers(out, keys, n, 3, sizeof *keys, err);
}

static enum vxd_status put_layer(struct vxd_bytes_out *out, const void *rows,
                                 size_t n_elements, size_t width, struct vxd_err *err)
{
    const uint8_t *bytes = rows;
    uint8_t *plane;

    if (width == 1) {
        vxd_byte_plane_put(out, bytes, n_elements);
        return VXD_OK;
    }
    plane = malloc(n_elements);
    if (plane == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a record");
    }
    for (size_t k = 0; k < width; k++) {
        for (size_t i = 0; i < n_elements; i++) {
            plane[i] = bytes[i * width + k];
        }
        vxd_byte_plane_put(out, plane, n_elements);
    }
    free(plane);
    return VXD_OK;
}

static enum vxd_status put_blocks(struct vxd_bytes_out *out,
                                  const struct vxd_record_blocks *blocks,
                                  struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    vxd_bytes_put_number(out, blocks->version);
    vxd_bytes_put_number(out, blocks->removed_version);
    vxd_bytes_put_number(out, blocks->n_images);
    vxd_bytes_put8(out, blocks->has_all_keys ? 1 : 0);
    if (blocks->has_all_keys) {
        VXD_TRY(vxd_record_put_keys(out, blocks->all_keys, blocks->n_all_keys, err));
    }
    vxd_bytes_put8(out, (unsigned)blocks->n_layers);
    for (int i = 0; i < blocks->n_layers; i++) {
        vxd_record_put_name(out, blocks->layers[i].name);
        vxd_bytes_put8(out, (unsigned)blocks->layers[i].dtype);
        vxd_bytes_put_number(out, blocks->layers[i].n_elements);
    }
    vxd_bytes_put_number(out, blocks->n);
    if (blocks->n == 0) {
        return VXD_OK;
    }
    VXD_TRY(put_integers(out, blocks->entries, blocks->n, 1, sizeof(int32_t), err));
    VXD_TRY(put_integers(out, blocks->keys, blocks->n, 3, sizeof(int32_t), err));
    VXD_TRY(put_integers(out, blocks->stamps, blocks->n, 1, sizeof(uint64_t), err));
    for (int i = 0; i < blocks->n_layers; i++) {
        VXD_TRY(put_layer(out, blocks->layers[i].rows,
                          blocks->n * blocks->layers[i].n_elements,
                          vxd_dtype_bytes(blocks->layers[i].dtype), err));
    }
out:
    return status;
}

static void put_camera(struct vxd_bytes_out *out, const struct vxd_volume_camera *camera)
{
    vxd_bytes_put_number(out, (uint64_t)camera->width);
    vxd_bytes_put_number(out, (uint64_t)camera->height);
    vxd_record_put_doubles(out, &camera->fx, 1);
    vxd_record_put_doubles(out, &camera->fy, 1);
    vxd_record_put_doubles(out, &camera->cx, 1);
    vxd_record_put_doubles(out, &camera->cy, 1);
    vxd_record_put_doubles(out, camera->distortion, 8);
}

void vxd_record_put_pose(struct vxd_bytes_out *out, const struct vxd_volume_pose *pose)
{
    vxd_record_put_doubles(out, pose->rotation, 9);
    vxd_record_put_doubles(out, pose->translation, 3);
}

static void put_pixels(struct vxd_bytes_out *out, const struct vxd_record_image *image)
{
    vxd_bytes_put8(out, (unsigned)image->form);
    if (image->form != VXD_RECORD_PIXELS_NONE) {
        vxd_bytes_put_number(out, image->n_bytes);
        vxd_bytes_put(out, image->bytes, image->n_bytes);
    }
}

static enum vxd_status put_image(struct vxd_bytes_out *out,
                                 const struct vxd_volume_record *record,
                                 struct vxd_err *err)
{
    const struct vxd_volume_frame *frame = &record->frame;
    enum vxd_status status;

    /* All of it at once: the pixels are most of a record, and growing would copy them. */
    (void)vxd_bytes_reserve(out, record->depth.n_bytes + record->colour.n_bytes + 1024);
    VXD_TRY(vxd_record_put_keys(out, record->forgotten, record->n_forgotten, err));
    put_camera(out, &frame->camera);
    vxd_record_put_pose(out, &frame->T_map_camera);
    vxd_bytes_put8(out, (unsigned)frame->dtype);
    vxd_record_put_doubles(out, &frame->depth_scale, 1);
    vxd_record_put_doubles(out, &frame->depth_min_m, 1);
    vxd_record_put_doubles(out, &frame->depth_max_m, 1);
    vxd_record_put_doubles(out, &frame->weight, 1);
    vxd_bytes_put8(out, (unsigned)frame->weighting);
    vxd_bytes_put8(out, frame->has_colour_camera ? 1 : 0);
    if (frame->has_colour_camera) {
        put_camera(out, &frame->colour_camera);
        vxd_record_put_pose(out, &frame->T_depth_colour);
    }
    put_pixels(out, &record->depth);
    put_pixels(out, &record->colour);
out:
    return status;
}

static void put_removal(struct vxd_bytes_out *out, const struct vxd_volume_record *record)
{
    const struct vxd_volume_region *region = &record->decay.region;

    vxd_bytes_put8(out, record->decays ? 1 : 0);
    if (record->decays) {
        vxd_record_put_doubles(out, &record->decay.factor, 1);
        vxd_record_put_doubles(out, &record->decay.min_weight, 1);
    }
    vxd_bytes_put8(out, region->is_ball ? 1 : 0);
    if (region->is_ball) {
        vxd_record_put_doubles(out, region->centre, 3);
        vxd_record_put_doubles(out, &region->radius, 1);
    } else {
        vxd_record_put_doubles(out, region->low, 3);
        vxd_record_put_doubles(out, region->high, 3);
    }
}

enum vxd_status vxd_volume_record_encode(const struct vxd_volume_record *record,
                                         struct vxd_record_bytes *out,
                                         struct vxd_err *err)
{
    struct vxd_bytes_out bytes = {0};
    enum vxd_status status = VXD_OK;

    vxd_bytes_put8(&bytes, (unsigned)record->kind);
    vxd_record_put_name(&bytes, record->author);
    vxd_record_put_name(&bytes, record->client);
    vxd_bytes_put_signed(&bytes, record->unix_ns);
    if (record->kind == VXD_VOLUME_RECORD_BLOCKS) {
        VXD_TRY(put_blocks(&bytes, &record->blocks, err));
    } else if (record->kind == VXD_VOLUME_RECORD_IMAGE) {
        VXD_TRY(put_image(&bytes, record, err));
    } else if (record->kind == VXD_VOLUME_RECORD_SCAN) {
        VXD_TRY(vxd_record_put_scan(&bytes, record, err));
    } else {
        put_removal(&bytes, record);
    }
    if (bytes.is_out_of_memory) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a record"));
    }
    if (bytes.n > VXD_JOURNAL_MAX_BLOB_BYTES) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "a change of %zu bytes is more than the journal takes at once "
                         "(%zu)",
                         bytes.n, VXD_JOURNAL_MAX_BLOB_BYTES));
    }
    *out = (struct vxd_record_bytes){bytes.bytes, bytes.n};
    return VXD_OK;
out:
    free(bytes.bytes);
    return status;
}

/* --- reading ---------------------------------------------------------------------------- */

bool vxd_record_get_doubles(struct vxd_record_reader *reader, double *out, size_t n)
{
    const uint8_t *from = vxd_bytes_get(&reader->in, n * sizeof *out);

    if (from == NULL) {
        return vxd_record_bad(reader, "the record ends too soon");
    }
    memcpy(out, from, n * sizeof *out);
    return true;
}

/* Reads a byte that is 0 or 1. */
bool vxd_record_get_flag(struct vxd_record_reader *reader, bool *out)
{
    unsigned value = vxd_bytes_get8(&reader->in);

    *out = value == 1;
    return (value <= 1 && !reader->in.is_bad) || vxd_record_bad(reader, "no flag");
}

static bool get_integers(struct vxd_record_reader *reader, size_t n, size_t n_columns,
                         size_t width, const void **out)
{
    struct vxd_record_columns columns = {.n = n, .n_columns = n_columns, .width = width};
    bool is_good = vxd_record_get_columns(reader, &columns);

    *out = columns.bytes;
    return is_good;
}

bool vxd_record_get_keys(struct vxd_record_reader *reader, const int32_t **keys,
                         size_t *n)
{
    uint64_t number = vxd_bytes_get_number(&reader->in);
    const void *at = NULL;

    if (number > INT32_MAX || reader->in.is_bad) {
        return vxd_record_bad(reader, "no number of keys");
    }
    *n = (size_t)number;
    if (!get_integers(reader, *n, 3, sizeof **keys, &at)) {
        return false;
    }
    *keys = at;
    return true;
}

static bool get_layer_type(struct vxd_record_reader *reader,
                           struct vxd_record_blocks *blocks, int i)
{
    char name[VXD_RECORD_NAME_BYTES];
    unsigned dtype;
    uint64_t n_elements;
    size_t width;

    if (!vxd_record_get_name(reader, name)) {
        return false;
    }
    dtype = vxd_bytes_get8(&reader->in);
    n_elements = vxd_bytes_get_number(&reader->in);
    width = vxd_dtype_bytes((enum vxd_dtype)dtype);
    if (strlen(name) >= VXD_RECORD_LAYER_BYTES || width == 0 || n_elements < 1 ||
        n_elements > VXD_HASHMAP_MAX_ROW_BYTES / width) {
        return vxd_record_bad(reader, "not a layer");
    }
    memcpy(blocks->layers[i].name, name, strlen(name) + 1);
    blocks->layers[i].dtype = (enum vxd_dtype)dtype;
    blocks->layers[i].n_elements = (uint32_t)n_elements;
    return true;
}

static bool get_layer(struct vxd_record_reader *reader, size_t n_elements, size_t width,
                      const void **out)
{
    uint8_t *rows = vxd_record_alloc(reader, n_elements, width);
    uint8_t *plane = rows != NULL ? malloc(n_elements) : NULL;
    bool is_good = true;

    *out = rows;
    if (plane == NULL) {
        reader->is_out_of_memory = true;
        return false;
    }
    for (size_t k = 0; k < width && is_good; k++) {
        is_good = vxd_byte_plane_get(&reader->in, plane, n_elements) ||
                  vxd_record_bad(reader, "not a plane of a layer");
        for (size_t i = 0; i < n_elements && is_good; i++) {
            rows[i * width + k] = plane[i];
        }
    }
    free(plane);
    return is_good;
}

static bool get_block_rows(struct vxd_record_reader *reader,
                           struct vxd_record_blocks *blocks)
{
    const void *at = NULL;

    if (!get_integers(reader, blocks->n, 1, sizeof(int32_t), &at)) {
        return false;
    }
    blocks->entries = at;
    if (!get_integers(reader, blocks->n, 3, sizeof(int32_t), &at)) {
        return false;
    }
    blocks->keys = at;
    if (!get_integers(reader, blocks->n, 1, sizeof(uint64_t), &at)) {
        return false;
    }
    blocks->stamps = at;
    for (int i = 0; i < blocks->n_layers; i++) {
        if (!get_layer(reader, blocks->n * blocks->layers[i].n_elements,
                       vxd_dtype_bytes(blocks->layers[i].dtype),
                       &blocks->layers[i].rows)) {
            return false;
        }
    }
    return true;
}

static bool get_blocks(struct vxd_record_reader *reader, struct vxd_record_blocks *blocks)
{
    unsigned n_layers;
    uint64_t n;

    blocks->version = vxd_bytes_get_number(&reader->in);
    blocks->removed_version = vxd_bytes_get_number(&reader->in);
    blocks->n_images = vxd_bytes_get_number(&reader->in);
    if (!vxd_record_get_flag(reader, &blocks->has_all_keys) ||
        (blocks->has_all_keys &&
         !vxd_record_get_keys(reader, &blocks->all_keys, &blocks->n_all_keys))) {
        return false;
    }
    n_layers = vxd_bytes_get8(&reader->in);
    if (n_layers > VXD_VOLUME_MAX_LAYERS) {
        return vxd_record_bad(reader, "not a number of layers");
    }
    blocks->n_layers = (int)n_layers;
    for (int i = 0; i < blocks->n_layers; i++) {
        if (!get_layer_type(reader, blocks, i)) {
            return false;
        }
    }
    n = vxd_bytes_get_number(&reader->in);
    if (n > VXD_HASHMAP_MAX_CAPACITY || reader->in.is_bad) {
        return vxd_record_bad(reader, "not a number of blocks");
    }
    blocks->n = (size_t)n;
    return n == 0 || get_block_rows(reader, blocks);
}

static bool get_camera(struct vxd_record_reader *reader, struct vxd_volume_camera *camera)
{
    uint64_t width = vxd_bytes_get_number(&reader->in);
    uint64_t height = vxd_bytes_get_number(&reader->in);

    if (width < 1 || width > MAX_SIDE || height < 1 || height > MAX_SIDE) {
        return vxd_record_bad(reader, "not the sides of an image");
    }
    camera->width = (int)width;
    camera->height = (int)height;
    return vxd_record_get_doubles(reader, &camera->fx, 1) &&
           vxd_record_get_doubles(reader, &camera->fy, 1) &&
           vxd_record_get_doubles(reader, &camera->cx, 1) &&
           vxd_record_get_doubles(reader, &camera->cy, 1) &&
           vxd_record_get_doubles(reader, camera->distortion, 8);
}

bool vxd_record_get_pose(struct vxd_record_reader *reader, struct vxd_volume_pose *pose)
{
    return vxd_record_get_doubles(reader, pose->rotation, 9) &&
           vxd_record_get_doubles(reader, pose->translation, 3);
}

/* Copied: what the engine reads has to be aligned. */
static bool get_pixels(struct vxd_record_reader *reader, struct vxd_record_image *image)
{
    unsigned form = vxd_bytes_get8(&reader->in);
    const uint8_t *from;
    uint8_t *bytes;
    uint64_t n;

    if (form > VXD_RECORD_PIXELS_PNG || reader->in.is_bad) {
        return vxd_record_bad(reader, "no form of an image");
    }
    image->form = (enum vxd_record_pixels)form;
    if (form == VXD_RECORD_PIXELS_NONE) {
        return true;
    }
    n = vxd_bytes_get_number(&reader->in);
    from = n <= reader->in.n ? vxd_bytes_get(&reader->in, (size_t)n) : NULL;
    if (from == NULL) {
        return vxd_record_bad(reader, "an image ends too soon");
    }
    bytes = vxd_record_alloc(reader, n + 1, 1);
    if (bytes == NULL) {
        return false;
    }
    memcpy(bytes, from, (size_t)n);
    image->bytes = bytes;
    image->n_bytes = (size_t)n;
    return true;
}

static bool get_image(struct vxd_record_reader *reader, struct vxd_volume_record *record)
{
    struct vxd_volume_frame *frame = &record->frame;
    unsigned weighting;

    if (!vxd_record_get_keys(reader, &record->forgotten, &record->n_forgotten) ||
        !get_camera(reader, &frame->camera) ||
        !vxd_record_get_pose(reader, &frame->T_map_camera)) {
        return false;
    }
    frame->dtype = (enum vxd_dtype)vxd_bytes_get8(&reader->in);
    if (frame->dtype != VXD_UINT16 && frame->dtype != VXD_FLOAT32) {
        return vxd_record_bad(reader, "no type of depths");
    }
    if (!vxd_record_get_doubles(reader, &frame->depth_scale, 1) ||
        !vxd_record_get_doubles(reader, &frame->depth_min_m, 1) ||
        !vxd_record_get_doubles(reader, &frame->depth_max_m, 1) ||
        !vxd_record_get_doubles(reader, &frame->weight, 1)) {
        return false;
    }
    weighting = vxd_bytes_get8(&reader->in);
    if (weighting > VXD_VOLUME_WEIGHT_INV_Z2) {
        return vxd_record_bad(reader, "no weighting");
    }
    frame->weighting = (enum vxd_volume_weighting)weighting;
    return vxd_record_get_flag(reader, &frame->has_colour_camera) &&
           (!frame->has_colour_camera ||
            (get_camera(reader, &frame->colour_camera) &&
             vxd_record_get_pose(reader, &frame->T_depth_colour))) &&
           get_pixels(reader, &record->depth) && get_pixels(reader, &record->colour) &&
           (record->depth.form != VXD_RECORD_PIXELS_NONE ||
            vxd_record_bad(reader, "an image without depths"));
}

static bool get_removal(struct vxd_record_reader *reader,
                        struct vxd_volume_record *record)
{
    struct vxd_volume_region *region = &record->decay.region;

    if (!vxd_record_get_flag(reader, &record->decays) ||
        (record->decays &&
         (!vxd_record_get_doubles(reader, &record->decay.factor, 1) ||
          !vxd_record_get_doubles(reader, &record->decay.min_weight, 1))) ||
        !vxd_record_get_flag(reader, &region->is_ball)) {
        return false;
    }
    return region->is_ball ? vxd_record_get_doubles(reader, region->centre, 3) &&
                                 vxd_record_get_doubles(reader, &region->radius, 1)
                           : vxd_record_get_doubles(reader, region->low, 3) &&
                                 vxd_record_get_doubles(reader, region->high, 3);
}

static bool get_record(struct vxd_record_reader *reader, struct vxd_volume_record *record)
{
    unsigned kind = vxd_bytes_get8(&reader->in);
    bool is_good;

    if ((kind < VXD_VOLUME_RECORD_BLOCKS || kind > VXD_VOLUME_RECORD_REMOVE) &&
        kind != VXD_VOLUME_RECORD_SCAN) {
        return vxd_record_bad(reader, "no kind of record");
    }
    record->kind = (enum vxd_volume_record_kind)kind;
    if (!vxd_record_get_name(reader, record->author) ||
        !vxd_record_get_name(reader, record->client)) {
        return false;
    }
    record->unix_ns = vxd_bytes_get_signed(&reader->in);
    is_good =
        record->kind == VXD_VOLUME_RECORD_BLOCKS  ? get_blocks(reader, &record->blocks)
        : record->kind == VXD_VOLUME_RECORD_IMAGE ? get_image(reader, record)
        : record->kind == VXD_VOLUME_RECORD_SCAN  ? vxd_record_get_scan(reader, record)
                                                  : get_removal(reader, record);
    if (!is_good || reader->in.is_bad) {
        return vxd_record_bad(reader, "the record ends too soon");
    }
    return reader->in.at == reader->in.n || vxd_record_bad(reader, "more bytes follow");
}

enum vxd_status vxd_volume_record_decode(const void *bytes, size_t n_bytes,
                                         uint32_t rules_version, size_t max_bytes,
                                         struct vxd_volume_record_decoded *out,
                                         struct vxd_err *err)
{
    struct vxd_record_reader reader = {
        .in = {.bytes = n_bytes > 0 ? bytes : (const void *)"", .n = n_bytes},
        .n_bytes_left = max_bytes != 0 ? max_bytes : VXD_RECORD_MAX_BYTES};

    *out = (struct vxd_volume_record_decoded){0};
    if (rules_version <= VXD_VOLUME_RULES_BASE ||
        rules_version > VXD_VOLUME_RULES_VERSION) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                        "a volume's record of rules %u; this program knows those up to "
                        "%d: a newer server wrote it",
                        rules_version, VXD_VOLUME_RULES_VERSION);
    }
    if (get_record(&reader, &out->record)) {
        out->memory = reader.blocks;
        return VXD_OK;
    }
    out->memory = reader.blocks;
    vxd_volume_record_decoded_free(out);
    if (reader.is_out_of_memory && !reader.in.is_bad) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "a record that takes more than %zu bytes of memory",
                        max_bytes != 0 ? max_bytes : VXD_RECORD_MAX_BYTES);
    }
    return vxd_fail(err, VXD_DATA_LOSS, NULL,
                    "a volume's record is damaged at byte %zu: %s", reader.in.at,
                    reader.what != NULL ? reader.what : "the record ends too soon");
}

void vxd_volume_record_decoded_free(struct vxd_volume_record_decoded *decoded)
{
    struct vxd_record_decoded blocks = {.memory = decoded->memory};

    vxd_record_decoded_free(&blocks);
    *decoded = (struct vxd_volume_record_decoded){0};
}
