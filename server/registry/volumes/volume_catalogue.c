// SPDX-License-Identifier: Apache-2.0
/* Volumes as bytes. Numbers are encoded as in bytes.h (base 128), doubles as their 8 bytes, little
 * end first, and a text as its length and its bytes.
 *
 *   description   86, 1                      the kind of description, and its layout
 *                 text name, text owner, number max_bytes, number forgets (0, 1), number fsync,
 *                 number journal_max_bytes
 *                 doubles voxel_size_m, truncation_m, max_weight, 3 of origin_m
 *                 number block_edge, number form, number has_colour (0, 1), number capacity
 *                 number n_more, then each: text key, double value: labels is 1, or not there
 *                 number generation, signed created_unix_ns
 *
 * A snapshot file (snapshot_read.c):
 *   catalogue     number of bytes of the description, and the description
 *                 numbers version, removed_version, n_images
 *                 number n_layers, then each: text name, number dtype, number n_elements
 *   image         as registry_image.c describes it; the value arrays are the stamps and the layers
 */
#include "server/registry/volumes/volume_catalogue.h"

#include <math.h>

#include "server/durable/record/record.h"
#include "server/registry/volumes/volumes_internal.h"

#define LABELS "labels"
#define ALBEDO "albedo"

enum {
    OWNER_KIND = 86,
    LAYOUT = 1,
    MAX_CATALOGUE_BYTES = 1 << 16
};

/* --- descriptions ------------------------------------------------------------------------- */

static void put_text(struct vxd_bytes_out *out, const char *text)
{
    size_t n = strlen(text);

    vxd_bytes_put_number(out, n);
    vxd_bytes_put(out, text, n);
}

/* Hosts are little-endian (base.h). */
static void put_doubles(struct vxd_bytes_out *out, const double *values, size_t n)
{
    vxd_bytes_put(out, values, n * sizeof *values);
}

/* A layer that not every volume has, as a key with the value 1. */
static void put_layer(struct vxd_bytes_out *out, const char *key)
{
    const double has = 1;

    put_text(out, key);
    put_doubles(out, &has, 1);
}

void vxd_volume_describe(struct vxd_bytes_out *out,
                         const struct vxd_volume_described *volume)
{
    const struct vxd_volume_spec *spec = &volume->spec;

    vxd_bytes_put_number(out, OWNER_KIND);
    vxd_bytes_put_number(out, LAYOUT);
    put_text(out, volume->base.terms.name);
    put_text(out, volume->base.terms.owner);
    vxd_bytes_put_number(out, volume->base.terms.max_bytes);
    vxd_bytes_put_number(out, volume->base.terms.forgets ? 1 : 0);
    vxd_bytes_put_number(out, (uint64_t)volume->base.terms.fsync);
    vxd_bytes_put_number(out, volume->base.terms.journal_max_bytes);
    put_doubles(out, &spec->voxel_size_m, 1);
    put_doubles(out, &spec->truncation_m, 1);
    put_doubles(out, &spec->max_weight, 1);
    put_doubles(out, spec->origin_m, 3);
    vxd_bytes_put_number(out, (uint64_t)spec->block_edge);
    vxd_bytes_put_number(out, (uint64_t)spec->form);
    vxd_bytes_put_number(out, spec->has_colour ? 1 : 0);
    vxd_bytes_put_number(out, spec->capacity);
    vxd_bytes_put_number(out,
                         (spec->has_labels ? 1U : 0U) + (spec->has_albedo ? 1U : 0U));
    if (spec->has_labels) {
        put_layer(out, LABELS);
    }
    if (spec->has_albedo) {
        put_layer(out, ALBEDO);
    }
    vxd_bytes_put_number(out, volume->base.generation);
    vxd_bytes_put_signed(out, volume->base.created_unix_ns);
}

static void get_text(struct vxd_bytes_in *in, char *out, size_t capacity)
{
    uint64_t n = vxd_bytes_get_number(in);
    const uint8_t *from = n < capacity ? vxd_bytes_get(in, (size_t)n) : NULL;

    out[0] = '\0';
    if (from == NULL || (n > 0 && memchr(from, 0, (size_t)n) != NULL)) {
        in->is_bad = true;
        return;
    }
    memcpy(out, from, (size_t)n);
    out[n] = '\0';
}

/* Reads a number below a bound. */
static uint64_t get_below(struct vxd_bytes_in *in, uint64_t bound)
{
    uint64_t value = vxd_bytes_get_number(in);

    in->is_bad = in->is_bad || value >= bound;
    return in->is_bad ? 0 : value;
}

static void get_doubles(struct vxd_bytes_in *in, double *out, size_t n)
{
    const uint8_t *from = vxd_bytes_get(in, n * sizeof *out);

    if (from != NULL) {
        memcpy(out, from, n * sizeof *out);
    }
    for (size_t i = 0; i < n; i++) {
        in->is_bad = in->is_bad || !isfinite(out[i]);
    }
}

static void get_spec(struct vxd_bytes_in *in, struct vxd_volume_spec *spec)
{
    get_doubles(in, &spec->voxel_size_m, 1);
    get_doubles(in, &spec->truncation_m, 1);
    get_doubles(in, &spec->max_weight, 1);
    get_doubles(in, spec->origin_m, 3);
    spec->block_edge = (int)get_below(in, 17);
    spec->form = (enum vxd_volume_form)get_below(in, 2);
    spec->has_colour = get_below(in, 2) == 1;
    spec->capacity = (size_t)get_below(in, VXD_HASHMAP_MAX_CAPACITY + 1);
    in->is_bad = in->is_bad || vxd_volume_block_bytes(spec) == 0;
}

/* Returns false where a key or its value is not known. */
static bool get_more(struct vxd_bytes_in *in, struct vxd_volume_spec *spec)
{
    uint64_t n = vxd_bytes_get_number(in);

    for (uint64_t i = 0; !in->is_bad && i < n; i++) {
        char key[VXD_NAME_BYTES];
        double value = 0;

        get_text(in, key, sizeof key);
        get_doubles(in, &value, 1);
        if (!in->is_bad &&
            (value != 1 || (strcmp(key, LABELS) != 0 && strcmp(key, ALBEDO) != 0))) {
            return false;
        }
        spec->has_labels = spec->has_labels || strcmp(key, LABELS) == 0;
        spec->has_albedo = spec->has_albedo || strcmp(key, ALBEDO) == 0;
    }
    in->is_bad = in->is_bad || vxd_volume_block_bytes(spec) == 0;
    return true;
}

enum vxd_status vxd_volume_read_description(const void *bytes, size_t n_bytes,
                                            struct vxd_volume_described *out,
                                            struct vxd_err *err)
{
    struct vxd_bytes_in in = {.bytes = bytes, .n = n_bytes};

    memset(out, 0, sizeof *out);
    if (vxd_bytes_get_number(&in) != OWNER_KIND || vxd_bytes_get_number(&in) != LAYOUT) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "this is no volume's description");
    }
    get_text(&in, out->base.terms.name, VXD_NAME_BYTES);
    get_text(&in, out->base.terms.owner, VXD_NAME_BYTES);
    out->base.terms.max_bytes = vxd_bytes_get_number(&in);
    out->base.terms.forgets = get_below(&in, 2) == 1;
    out->base.terms.durable = true;
    out->base.terms.fsync = (enum vxd_fsync)get_below(&in, VXD_FSYNC_OFF + 1);
    out->base.terms.journal_max_bytes = vxd_bytes_get_number(&in);
    get_spec(&in, &out->spec);
    if (!get_more(&in, &out->spec)) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                        "the volume \"%s\" has what this program does not know: a newer "
                        "server made it",
                        out->base.terms.name);
    }
    out->base.generation = vxd_bytes_get_number(&in);
    out->base.created_unix_ns = vxd_bytes_get_signed(&in);
    return !in.is_bad && in.at == in.n && vxd_is_name(out->base.terms.name)
               ? VXD_OK
               : vxd_fail(err, VXD_DATA_LOSS, NULL, "a volume's description is damaged");
}

/* --- writing a snapshot ------------------------------------------------------------------- */

enum vxd_status vxd_volume_write_snapshot(struct vxd_snapshot_writer *writer,
                                          const struct vxd_volume_described *described,
                                          struct vxd_queue *queue,
                                          const struct vxd_volume_state *state,
                                          struct vxd_err *err)
{
    struct vxd_volume_layer layers[VXD_VOLUME_MAX_LAYERS];
    int n_layers = vxd_volume_get_layers(state->volume, layers);
    struct vxd_bytes_out description = {0};
    struct vxd_bytes_out catalogue = {0};
    struct vxd_volume_info info;
    enum vxd_status status = VXD_OK;

    vxd_volume_get_info(state->volume, &info);
    vxd_volume_describe(&description, described);
    vxd_bytes_put_number(&catalogue, description.n);
    vxd_bytes_put(&catalogue, description.bytes, description.n);
    vxd_bytes_put_number(&catalogue, info.version);
    vxd_bytes_put_number(&catalogue, info.removed_version);
    vxd_bytes_put_number(&catalogue, state->n_images);
    vxd_bytes_put_number(&catalogue, (uint64_t)n_layers);
    for (int i = 0; i < n_layers; i++) {
        put_text(&catalogue, layers[i].name);
        vxd_bytes_put_number(&catalogue, (uint64_t)layers[i].dtype);
        vxd_bytes_put_number(&catalogue, layers[i].n_elements);
    }
    if (description.is_out_of_memory || catalogue.is_out_of_memory) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "no memory for a volume's description"));
    }
    VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, catalogue.bytes,
                               catalogue.n, err));
    status = vxd_registry_write_image(writer, queue, vxd_volume_map(state->volume), err);
out:
    free(catalogue.bytes);
    free(description.bytes);
    return status;
}

/* --- reading one -------------------------------------------------------------------------- */

/* What a catalogue says behind the description. */
struct catalogue {
    struct vxd_volume_described described;
    uint64_t version;
    uint64_t removed_version;
    uint64_t n_images;
    struct vxd_volume_layer layers[VXD_VOLUME_MAX_LAYERS];
    char names[VXD_VOLUME_MAX_LAYERS][VXD_RECORD_LAYER_BYTES];
    int n_layers;
};

static enum vxd_status read_catalogue(const uint8_t *bytes, size_t n_bytes,
                                      struct catalogue *out, struct vxd_err *err)
{
    struct vxd_bytes_in in = {.bytes = bytes, .n = n_bytes};
    uint64_t n = vxd_bytes_get_number(&in);
    const uint8_t *description = n <= n_bytes ? vxd_bytes_get(&in, (size_t)n) : NULL;
    enum vxd_status status;

    *out = (struct catalogue){.n_layers = 0};
    if (description == NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "a volume's catalogue is cut off");
    }
    VXD_TRY(vxd_volume_read_description(description, (size_t)n, &out->described, err));
    out->version = vxd_bytes_get_number(&in);
    out->removed_version = vxd_bytes_get_number(&in);
    out->n_images = vxd_bytes_get_number(&in);
    out->n_layers = (int)get_below(&in, VXD_VOLUME_MAX_LAYERS + 1);
    for (int i = 0; i < out->n_layers; i++) {
        get_text(&in, out->names[i], VXD_RECORD_LAYER_BYTES);
        out->layers[i].dtype = (enum vxd_dtype)get_below(&in, 32);
        out->layers[i].n_elements =
            (uint32_t)get_below(&in, VXD_HASHMAP_MAX_ROW_BYTES + 1);
    }
    if (in.is_bad || in.at != in.n) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "a volume's catalogue is damaged");
    }
out:
    return status;
}

static enum vxd_status read_file_catalogue(struct vxd_snapshot_reader *reader,
                                           struct catalogue *out, struct vxd_err *err)
{
    uint8_t *bytes = malloc(MAX_CATALOGUE_BYTES);
    size_t n = 0;
    enum vxd_status status;

    if (bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");
    }
    VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_CATALOGUE, bytes, MAX_CATALOGUE_BYTES,
                              &n, err));
    status = read_catalogue(bytes, n, out, err);
out:
    free(bytes);
    return status;
}

enum vxd_status vxd_volume_read_catalogue(struct vxd_snapshot_reader *reader,
                                          struct vxd_volume_described *out,
                                          struct vxd_err *err)
{
    struct catalogue catalogue;
    enum vxd_status status = read_file_catalogue(reader, &catalogue, err);

    *out = catalogue.described;
    return status;
}

/* Whether the file's layers are the volume's. */
static enum vxd_status check_layers(const struct catalogue *catalogue,
                                    const struct vxd_volume *volume, struct vxd_err *err)
{
    struct vxd_volume_layer layers[VXD_VOLUME_MAX_LAYERS];
    int n_layers = vxd_volume_get_layers(volume, layers);
    bool is_same = n_layers == catalogue->n_layers;

    for (int i = 0; i < n_layers && is_same; i++) {
        is_same = strcmp(layers[i].name, catalogue->names[i]) == 0 &&
                  layers[i].dtype == catalogue->layers[i].dtype &&
                  layers[i].n_elements == catalogue->layers[i].n_elements;
    }
    return is_same ? VXD_OK
                   : vxd_fail(err, VXD_DATA_LOSS, NULL,
                              "a snapshot is of a volume with other layers");
}

enum vxd_status vxd_volume_read_snapshot(struct vxd_snapshot_reader *reader,
                                         const struct vxd_volume_described *described,
                                         struct vxd_queue *queue,
                                         struct vxd_volume_state *state,
                                         struct vxd_err *err)
{
    struct catalogue catalogue;
    struct vxd_volume *volume = NULL;
    struct vxd_hashmap *map = NULL;
    enum vxd_status status;

    VXD_TRY(read_file_catalogue(reader, &catalogue, err));
    VXD_TRY(check_layers(&catalogue, state->volume, err));
    VXD_TRY(vxd_registry_read_image(
        reader, vxd_hashmap_get_spec(vxd_volume_map(state->volume)), queue, &map, err));
    VXD_TRY(vxd_volume_adopt(queue, &described->spec, catalogue.version,
                             catalogue.removed_version, map, &volume, err));
    vxd_volume_destroy(queue, state->volume);
    state->volume = volume;
    state->n_images = catalogue.n_images;
    if (catalogue.version < described->base.generation) {
        /* A start that lost changes gave the volume a later generation, where stamps go on. */
        vxd_volume_begin_version(volume, described->base.generation);
    }
    status = vxd_queue_wait(queue, err);
out:
    return status;
}
