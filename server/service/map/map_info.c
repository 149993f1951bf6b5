// SPDX-License-Identifier: Apache-2.0
/* Converts specs, terms and MapInfo between the schema and the registry. */
#include <inttypes.h>
#include <math.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/instance/instance.h"
#include "server/service/map/map.h"
#include "server/service/service.h"

static enum vxd_status read_array(const Voxeld__V1__MapSpec *spec, size_t i,
                                  struct vxd_map_spec *out, struct vxd_err *err)
{
    const Voxeld__V1__MapArray *array = spec->values[i];
    char field[48];
    enum vxd_status status;

    (void)snprintf(field, sizeof field, "spec.values[%zu].name", i);
    status = vxd_noun_check_name(array->name, field, err);
    if (status != VXD_OK) {
        return status;
    }
    if (vxd_map_find_array(out, array->name) >= 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "\"%s\" is given twice",
                        array->name);
    }
    (void)snprintf(out->array_names[i], sizeof out->array_names[i], "%s", array->name);
    out->engine.values[i].dtype = (enum vxd_dtype)array->dtype;
    out->engine.values[i].n_elements = array->n_elements > 0 ? array->n_elements : 1;
    out->engine.n_values++;
    if (vxd_dtype_bytes((enum vxd_dtype)array->dtype) == 0) {
        (void)snprintf(field, sizeof field, "spec.values[%zu].dtype", i);
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %d, known are 1 to 12",
                        (int)array->dtype);
    }
    if (out->engine.values[i].n_elements >
        VXD_HASHMAP_MAX_ROW_BYTES / vxd_dtype_bytes((enum vxd_dtype)array->dtype)) {
        (void)snprintf(field, sizeof field, "spec.values[%zu].n_elements", i);
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "is %u: a row may have at most %d bytes", array->n_elements,
                        VXD_HASHMAP_MAX_ROW_BYTES);
    }
    return VXD_OK;
}

static enum vxd_status read_lattice(const Voxeld__V1__MapLattice *lattice,
                                    struct vxd_map_spec *out, struct vxd_err *err)
{
    const Voxeld__V1__Vec3 *size = lattice->size;
    const Voxeld__V1__Vec3 *origin = lattice->origin;

    if (size == NULL || !(size->x > 0 && size->y > 0 && size->z > 0) ||
        !isfinite(size->x) || !isfinite(size->y) || !isfinite(size->z)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "lattice.size",
                        "must be three edges > 0 and finite, in metres");
    }
    if (origin != NULL &&
        (!isfinite(origin->x) || !isfinite(origin->y) || !isfinite(origin->z))) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "lattice.origin", "is not finite");
    }
    if (strlen(lattice->frame_id) >= VXD_MAP_FRAME_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "lattice.frame_id",
                        "has %zu bytes, at most %d are allowed",
                        strlen(lattice->frame_id), VXD_MAP_FRAME_BYTES - 1);
    }
    if (out->engine.n_components != 3) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "lattice",
                        "needs keys of 3 components, not %d", out->engine.n_components);
    }
    out->has_lattice = true;
    out->size_m[0] = size->x;
    out->size_m[1] = size->y;
    out->size_m[2] = size->z;
    if (origin != NULL) {
        out->origin_m[0] = origin->x;
        out->origin_m[1] = origin->y;
        out->origin_m[2] = origin->z;
    }
    (void)snprintf(out->frame_id, sizeof out->frame_id, "%s", lattice->frame_id);
    return VXD_OK;
}

enum vxd_status vxd_map_read_spec(const Voxeld__V1__MapSpec *spec,
                                  const Voxeld__V1__MapLattice *lattice,
                                  uint64_t capacity, struct vxd_map_spec *out,
                                  struct vxd_err *err)
{
    static const Voxeld__V1__MapSpec none = VOXELD__V1__MAP_SPEC__INIT;
    enum vxd_status status = VXD_OK;

    memset(out, 0, sizeof *out);
    spec = spec != NULL ? spec : &none;
    out->engine.key_dtype = spec->key_dtype != VOXELD__V1__DTYPE__DTYPE_UNSPECIFIED
                                ? (enum vxd_dtype)spec->key_dtype
                                : VXD_INT32;
    if (out->engine.key_dtype != VXD_INT16 && out->engine.key_dtype != VXD_INT32 &&
        out->engine.key_dtype != VXD_INT64) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "spec.key_dtype",
                        "is %d, it must be INT16, INT32 or INT64", (int)spec->key_dtype);
    }
    out->engine.n_components = spec->n_components > 0 ? (int)spec->n_components : 3;
    if (spec->n_values > VXD_HASHMAP_MAX_VALUES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "spec.values",
                        "has %zu arrays, at most %d are possible", spec->n_values,
                        VXD_HASHMAP_MAX_VALUES);
    }
    for (size_t i = 0; i < spec->n_values && status == VXD_OK; i++) {
        status = read_array(spec, i, out, err);
    }
    if (status == VXD_OK && lattice != NULL) {
        status = read_lattice(lattice, out, err);
    }
    if (status == VXD_OK && capacity > VXD_HASHMAP_MAX_CAPACITY) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "capacity",
                          "is %" PRIu64 ", it must be at most %zu", capacity,
                          VXD_HASHMAP_MAX_CAPACITY);
    }
    out->engine.capacity = (size_t)capacity;
    return status;
}

enum vxd_status vxd_map_read_terms(const struct vxd_request *request, const char *name,
                                   uint64_t max_bytes, double ttl_s,
                                   struct vxd_named_terms *out, struct vxd_err *err)
{
    enum vxd_status status = vxd_noun_check_name(name, "name", err);

    if (status != VXD_OK) {
        return status;
    }
    memset(out, 0, sizeof *out);
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    (void)snprintf(out->owner, sizeof out->owner, "%s", request->principal.name);
    out->max_bytes = max_bytes;
    out->ttl_ns = (int64_t)ceil(ttl_s * 1e9);
    return VXD_OK;
}

static enum vxd_status copy_text(struct vxd_decoder *arena, const char *text, char **out,
                                 struct vxd_err *err)
{
    *out = vxd_message_text(arena, text, strlen(text), err);
    return *out != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status new_spec(struct vxd_decoder *arena,
                                const struct vxd_map_spec *spec,
                                Voxeld__V1__MapSpec **out, struct vxd_err *err)
{
    Voxeld__V1__MapSpec *copy =
        vxd_message_new(arena, &voxeld__v1__map_spec__descriptor, err);
    size_t n = (size_t)spec->engine.n_values;
    enum vxd_status status = VXD_OK;

    if (copy == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    copy->key_dtype = (Voxeld__V1__DType)spec->engine.key_dtype;
    copy->n_components = (uint32_t)spec->engine.n_components;
    copy->values = vxd_message_pointers(arena, n, err);
    if (copy->values == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        Voxeld__V1__MapArray *array =
            vxd_message_new(arena, &voxeld__v1__map_array__descriptor, err);

        if (array == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        VXD_TRY(copy_text(arena, spec->array_names[i], &array->name, err));
        array->dtype = (Voxeld__V1__DType)spec->engine.values[i].dtype;
        array->n_elements = spec->engine.values[i].n_elements;
        copy->values[i] = array;
    }
    copy->n_values = n;
    *out = copy;
out:
    return status;
}

static Voxeld__V1__Vec3 *new_vector(struct vxd_decoder *arena, const double v[3],
                                    struct vxd_err *err)
{
    Voxeld__V1__Vec3 *copy = vxd_message_new(arena, &voxeld__v1__vec3__descriptor, err);

    if (copy != NULL) {
        copy->x = v[0];
        copy->y = v[1];
        copy->z = v[2];
    }
    return copy;
}

enum vxd_status vxd_map_new_lattice(struct vxd_decoder *arena,
                                    const struct vxd_map_spec *spec,
                                    Voxeld__V1__MapLattice **out, struct vxd_err *err)
{
    Voxeld__V1__MapLattice *lattice;

    *out = NULL;
    if (!spec->has_lattice) {
        return VXD_OK;
    }
    lattice = vxd_message_new(arena, &voxeld__v1__map_lattice__descriptor, err);
    if (lattice == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    lattice->size = new_vector(arena, spec->size_m, err);
    lattice->origin = new_vector(arena, spec->origin_m, err);
    if (lattice->size == NULL || lattice->origin == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    *out = lattice;
    return copy_text(arena, spec->frame_id, &lattice->frame_id, err);
}

enum vxd_status vxd_map_new_info(struct vxd_decoder *arena, const struct vxd_map *map,
                                 Voxeld__V1__MapInfo **out, struct vxd_err *err)
{
    Voxeld__V1__MapInfo *info =
        vxd_message_new(arena, &voxeld__v1__map_info__descriptor, err);
    enum vxd_status status;

    if (info == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(copy_text(arena, map->named.terms.name, &info->name, err));
    VXD_TRY(copy_text(arena, map->named.terms.owner, &info->owner, err));
    VXD_TRY(new_spec(arena, &map->spec, &info->spec, err));
    VXD_TRY(vxd_map_new_lattice(arena, &map->spec, &info->lattice, err));
    info->max_bytes = map->named.terms.max_bytes;
    info->generation = map->named.generation;
    info->ttl_s = (double)map->named.terms.ttl_ns / 1e9;
    info->created_ns = map->named.created_unix_ns;
    info->durable = map->named.terms.durable;
    info->fsync = (Voxeld__V1__MapFsync)map->named.terms.fsync;
    info->journal_max_bytes = map->named.terms.journal_max_bytes;
    vxd_map_fill_info(info, map);
    *out = info;
out:
    return status;
}

void vxd_map_fill_info(Voxeld__V1__MapInfo *info, const struct vxd_map *map)
{
    int64_t left_ns = map->named.used_ns + map->named.terms.ttl_ns - vxd_clock_ns();

    info->unavailable = map->named.durable.is_broken;
    if (!map->named.durable.is_broken) {
        info->n_entries = map->n_entries;
        info->capacity = vxd_hashmap_capacity(map->hashmap);
        info->erase_epoch = vxd_map_epoch(map);
    }
    info->n_bytes = vxd_hashmap_n_bytes(map->hashmap);
    if (map->named.terms.ttl_ns > 0) {
        info->ttl_left_s = left_ns > 0 ? (double)left_ns / 1e9 : 0;
    }
}

int vxd_map_find_array(const struct vxd_map_spec *spec, const char *name)
{
    for (int i = 0; i < spec->engine.n_values; i++) {
        if (strcmp(spec->array_names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

enum vxd_status vxd_map_choose_arrays(const struct vxd_map_spec *spec, char *const *names,
                                      size_t n_names,
                                      bool selected[VXD_HASHMAP_MAX_VALUES],
                                      struct vxd_err *err)
{
    memset(selected, 0, VXD_HASHMAP_MAX_VALUES * sizeof *selected);
    for (size_t i = 0; i < n_names; i++) {
        int array = vxd_map_find_array(spec, names[i]);
        bool is_all = strcmp(names[i], "*") == 0;

        if (array < 0 && !is_all) {
            char field[40];

            (void)snprintf(field, sizeof field, "values[%zu]", i);
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "the map has no array \"%.63s\"", names[i]);
        }
        for (int k = 0; k < spec->engine.n_values; k++) {
            selected[k] = selected[k] || is_all || k == array;
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_map_check_epoch(const struct vxd_map *map, uint64_t epoch,
                                    struct vxd_err *err)
{
    uint64_t now = vxd_map_epoch(map);

    if (epoch == now) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_FAILED_PRECONDITION, "erase_epoch",
                    "is %" PRIu64 ", the map's is %" PRIu64
                    ": entries were erased or the "
                    "map was made again since, and the numbers may be others'",
                    epoch, now);
}
