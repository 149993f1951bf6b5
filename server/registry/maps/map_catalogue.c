// SPDX-License-Identifier: Apache-2.0
/* Maps as bytes. Numbers are encoded as in bytes.h (base 128), doubles as their 8 bytes,
 * little end first, and a text as its length and its bytes.
 *
 *   description   77, 1                      the kind of description, and its layout
 *                 text name, text owner, number max_bytes, number fsync,
 *                 number journal_max_bytes
 *                 number key_dtype, number n_components, number capacity at the start
 *                 number n_values, then each: text name, number dtype, number n_elements
 *                 number has_lattice (0, 1); if 1: 3 doubles size_m, 3 doubles origin_m,
 *                 text frame_id
 *                 number generation, number first_epoch, signed created_unix_ns
 *
 * A snapshot file (snapshot_read.c):
 *   catalogue     description
 *   image         as registry_image.c describes it */
#include "server/registry/maps/map_catalogue.h"

#include <math.h>

#include "proto/base/name.h"
#include "server/registry/registry.h"

enum {
    OWNER_KIND = 77,
    LAYOUT = 1,
    MAX_DESCRIPTION_BYTES = 1 << 16
};

/* --- descriptions ----------------------------------------------------------------------- */

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

void vxd_map_describe(struct vxd_bytes_out *out, const struct vxd_map_described *map)
{
    const struct vxd_map_spec *spec = &map->spec;

    vxd_bytes_put_number(out, OWNER_KIND);
    vxd_bytes_put_number(out, LAYOUT);
    put_text(out, map->base.terms.name);
    put_text(out, map->base.terms.owner);
    vxd_bytes_put_number(out, map->base.terms.max_bytes);
    vxd_bytes_put_number(out, (uint64_t)map->base.terms.fsync);
    vxd_bytes_put_number(out, map->base.terms.journal_max_bytes);
    vxd_bytes_put_number(out, (uint64_t)spec->engine.key_dtype);
    vxd_bytes_put_number(out, (uint64_t)spec->engine.n_components);
    vxd_bytes_put_number(out, spec->engine.capacity);
    vxd_bytes_put_number(out, (uint64_t)spec->engine.n_values);
    for (int i = 0; i < spec->engine.n_values; i++) {
        put_text(out, spec->array_names[i]);
        vxd_bytes_put_number(out, (uint64_t)spec->engine.values[i].dtype);
        vxd_bytes_put_number(out, spec->engine.values[i].n_elements);
    }
    vxd_bytes_put_number(out, spec->has_lattice ? 1 : 0);
    if (spec->has_lattice) {
        put_doubles(out, spec->size_m, 3);
        put_doubles(out, spec->origin_m, 3);
        put_text(out, spec->frame_id);
    }
    vxd_bytes_put_number(out, map->base.generation);
    vxd_bytes_put_number(out, map->first_epoch);
    vxd_bytes_put_signed(out, map->base.created_unix_ns);
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

static void get_keys(struct vxd_bytes_in *in, struct vxd_map_spec *spec)
{
    uint64_t dtype = get_below(in, 32);

    in->is_bad =
        in->is_bad || (dtype != VXD_INT16 && dtype != VXD_INT32 && dtype != VXD_INT64);
    spec->engine.key_dtype = (enum vxd_dtype)dtype;
    spec->engine.n_components = (int)get_below(in, VXD_HASHMAP_MAX_COMPONENTS + 1);
    in->is_bad = in->is_bad || spec->engine.n_components < 1;
    spec->engine.capacity = (size_t)get_below(in, VXD_HASHMAP_MAX_CAPACITY + 1);
}

static void get_arrays(struct vxd_bytes_in *in, struct vxd_map_spec *spec)
{
    spec->engine.n_values = (int)get_below(in, VXD_HASHMAP_MAX_VALUES + 1);
    for (int i = 0; i < spec->engine.n_values && !in->is_bad; i++) {
        struct vxd_hashmap_array *array = &spec->engine.values[i];
        size_t n_bytes;

        get_text(in, spec->array_names[i], VXD_NAME_BYTES);
        array->dtype = (enum vxd_dtype)get_below(in, 32);
        array->n_elements = (uint32_t)get_below(in, VXD_HASHMAP_MAX_ROW_BYTES + 1);
        n_bytes = vxd_dtype_bytes(array->dtype);
        in->is_bad = in->is_bad || n_bytes == 0 || array->n_elements < 1 ||
                     array->n_elements > VXD_HASHMAP_MAX_ROW_BYTES / n_bytes ||
                     !vxd_is_name(spec->array_names[i]);
    }
}

static void get_lattice(struct vxd_bytes_in *in, struct vxd_map_spec *spec)
{
    spec->has_lattice = get_below(in, 2) == 1;
    if (spec->has_lattice) {
        get_doubles(in, spec->size_m, 3);
        get_doubles(in, spec->origin_m, 3);
        get_text(in, spec->frame_id, VXD_MAP_FRAME_BYTES);
        for (int i = 0; i < 3; i++) {
            in->is_bad = in->is_bad || !(spec->size_m[i] > 0);
        }
        in->is_bad = in->is_bad || spec->engine.n_components != 3;
    }
}

enum vxd_status vxd_map_read_description(const void *bytes, size_t n_bytes,
                                         struct vxd_map_described *out,
                                         struct vxd_err *err)
{
    struct vxd_bytes_in in = {.bytes = bytes, .n = n_bytes};

    memset(out, 0, sizeof *out);
    if (vxd_bytes_get_number(&in) != OWNER_KIND || vxd_bytes_get_number(&in) != LAYOUT) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "this is no map's description");
    }
    get_text(&in, out->base.terms.name, VXD_NAME_BYTES);
    get_text(&in, out->base.terms.owner, VXD_NAME_BYTES);
    out->base.terms.max_bytes = vxd_bytes_get_number(&in);
    out->base.terms.durable = true;
    out->base.terms.fsync = (enum vxd_fsync)get_below(&in, VXD_FSYNC_OFF + 1);
    out->base.terms.journal_max_bytes = vxd_bytes_get_number(&in);
    get_keys(&in, &out->spec);
    get_arrays(&in, &out->spec);
    get_lattice(&in, &out->spec);
    out->base.generation = vxd_bytes_get_number(&in);
    out->first_epoch = vxd_bytes_get_number(&in);
    out->base.created_unix_ns = vxd_bytes_get_signed(&in);
    return !in.is_bad && in.at == in.n && vxd_is_name(out->base.terms.name)
               ? VXD_OK
               : vxd_fail(err, VXD_DATA_LOSS, NULL, "a map's description is damaged");
}

/* --- writing a snapshot ------------------------------------------------------------------- */

enum vxd_status vxd_map_write_snapshot(struct vxd_snapshot_writer *writer,
                                       const struct vxd_map_described *map,
                                       struct vxd_queue *queue,
                                       struct vxd_hashmap *hashmap, struct vxd_err *err)
{
    struct vxd_bytes_out catalogue = {0};
    enum vxd_status status;

    vxd_map_describe(&catalogue, map);
    status = !catalogue.is_out_of_memory
                 ? vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, catalogue.bytes,
                                      catalogue.n, err)
                 : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no memory for a map's description");
    free(catalogue.bytes);
    return status == VXD_OK ? vxd_registry_write_image(writer, queue, hashmap, err)
                            : status;
}

/* --- reading one -------------------------------------------------------------------------- */

enum vxd_status vxd_map_read_catalogue(struct vxd_snapshot_reader *reader,
                                       struct vxd_map_described *out, struct vxd_err *err)
{
    uint8_t *bytes = malloc(MAX_DESCRIPTION_BYTES);
    size_t n = 0;
    enum vxd_status status;

    if (bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");
    }
    VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_CATALOGUE, bytes,
                              MAX_DESCRIPTION_BYTES, &n, err));
    status = vxd_map_read_description(bytes, n, out, err);
out:
    free(bytes);
    return status;
}

/* Whether two maps have the same keys and arrays. */
static enum vxd_status check_catalogue(struct vxd_snapshot_reader *reader,
                                       const struct vxd_map_described *map,
                                       struct vxd_err *err)
{
    struct vxd_map_described described;
    enum vxd_status status = vxd_map_read_catalogue(reader, &described, err);

    return status != VXD_OK || vxd_map_spec_equal(&described.spec, &map->spec)
               ? status
               : vxd_fail(err, VXD_DATA_LOSS, NULL,
                          "a snapshot is of a map with other keys or arrays");
}

enum vxd_status vxd_map_read_snapshot(struct vxd_snapshot_reader *reader,
                                      const struct vxd_map_described *map,
                                      struct vxd_queue *queue, struct vxd_hashmap **out,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(check_catalogue(reader, map, err));
    status = vxd_registry_read_image(reader, &map->spec.engine, queue, out, err);
out:
    return status;
}
