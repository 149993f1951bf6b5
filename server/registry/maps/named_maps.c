// SPDX-License-Identifier: Apache-2.0
#include "server/registry/maps/maps_internal.h"

#include <stdlib.h>
#include <string.h>

#include "server/instance/instance.h"
#include "server/observe/log/log.h"
#include "server/registry/maps/map_file.h"

/* What maps keep beside their table. */
struct own {
    uint64_t next_epoch; /* above the epochs of all maps that were dropped */
};

static struct vxd_map *as_map(struct vxd_named *named)
{
    return (struct vxd_map *)named;
}

static size_t count_bytes(const struct vxd_named *named)
{
    return vxd_hashmap_n_bytes(((const struct vxd_map *)named)->hashmap);
}

static void clear(struct vxd_named *named, struct vxd_queue *queue)
{
    struct vxd_map *map = as_map(named);
    struct own *own = vxd_names_own(named->names);

    if (map->hashmap == NULL) {
        return; /* a start could not read it */
    }
    if (own->next_epoch <= vxd_map_epoch(map)) {
        own->next_epoch = vxd_map_epoch(map) + 1;
    }
    vxd_hashmap_destroy(queue, map->hashmap);
}

static const struct vxd_noun_calls calls = {.one = "map",
                                            .many = "maps",
                                            .max = VXD_MAPS_MAX,
                                            .n_bytes = sizeof(struct vxd_map),
                                            .uses_device = true,
                                            .has_quota = true,
                                            .quota = VXD_NOUN_MAP,
                                            .bytes_key = "limits.map_bytes",
                                            .token_bytes_key =
                                                "limits.map_bytes_per_token",
                                            .log = vxd_maps_log,
                                            .count_bytes = count_bytes,
                                            .clear = clear,
                                            .free_own = free,
                                            .durable = &vxd_maps_durable};

enum vxd_status vxd_maps_create(struct vxd_server *server, struct vxd_names **out,
                                struct vxd_err *err)
{
    struct vxd_names_options options = {.calls = &calls,
                                        .token_limit_bytes =
                                            server->config.token_map_bytes,
                                        .take_own = calloc(1, sizeof(struct own))};
    struct vxd_memory_usage memory;

    if (options.take_own == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the maps");
    }
    vxd_context_get_memory(server->context, &memory);
    options.limit_bytes = server->config.map_bytes > 0 ? server->config.map_bytes
                                                       : memory.device_budget_bytes / 2;
    if (server->config.data_dir[0] != '\0') {
        vxd_map_file_sweep(server->config.data_dir);
    }
    return vxd_names_create(server, &options, out, err);
}

size_t vxd_map_key_bytes(const struct vxd_hashmap_spec *spec)
{
    return vxd_dtype_bytes(spec->key_dtype) * (size_t)spec->n_components;
}

size_t vxd_map_row_bytes(const struct vxd_hashmap_spec *spec, int array)
{
    return vxd_dtype_bytes(spec->values[array].dtype) * spec->values[array].n_elements;
}

bool vxd_map_spec_equal(const struct vxd_map_spec *a, const struct vxd_map_spec *b)
{
    const struct vxd_hashmap_spec *x = &a->engine;
    const struct vxd_hashmap_spec *y = &b->engine;

    if (x->key_dtype != y->key_dtype || x->n_components != y->n_components ||
        x->n_values != y->n_values || a->has_lattice != b->has_lattice) {
        return false;
    }
    for (int i = 0; i < x->n_values; i++) {
        if (x->values[i].dtype != y->values[i].dtype ||
            x->values[i].n_elements != y->values[i].n_elements ||
            strcmp(a->array_names[i], b->array_names[i]) != 0) {
            return false;
        }
    }
    for (int i = 0; i < 3 && a->has_lattice; i++) {
        if (a->size_m[i] != b->size_m[i] || a->origin_m[i] != b->origin_m[i]) {
            return false;
        }
    }
    return !a->has_lattice || strcmp(a->frame_id, b->frame_id) == 0;
}

uint64_t vxd_map_epoch(const struct vxd_map *map)
{
    return map->first_epoch + vxd_hashmap_erase_epoch(map->hashmap);
}

struct vxd_map *vxd_maps_find(struct vxd_names *maps, const char *name)
{
    return as_map(vxd_names_find(maps, name));
}

struct vxd_map *vxd_maps_peek(const struct vxd_names *maps, const char *name)
{
    return as_map(vxd_names_peek(maps, name));
}

enum vxd_status vxd_map_prepare(struct vxd_queue *queue, struct vxd_map *map,
                                const void *keys, size_t n, size_t *n_new,
                                struct vxd_err *err)
{
    const struct vxd_named *named = &map->named;
    enum vxd_status status;

    vxd_hashmap_set_max_bytes(map->hashmap,
                              vxd_names_allowance(named->names, &named->terms, named));
    status = vxd_hashmap_prepare(queue, map->hashmap, keys, n, n_new, err);
    if (status != VXD_OK) {
        vxd_names_explain(named->names, &named->terms, named, err);
    }
    return status;
}

/* The epoch comes from the clock, in microseconds, so that a later start of the server
 * continues above it; and it is above the epochs of a map that this one replaces. */
static uint64_t choose_epoch(const struct vxd_named *made)
{
    const struct own *own = vxd_names_own(made->names);
    const struct vxd_map *now = vxd_maps_peek(made->names, made->terms.name);
    uint64_t epoch = (uint64_t)made->created_unix_ns / 1000;

    if (epoch < own->next_epoch) {
        epoch = own->next_epoch;
    }
    if (now != NULL && epoch <= vxd_map_epoch(now)) {
        epoch = vxd_map_epoch(now) + 1;
    }
    return epoch;
}

enum vxd_status vxd_map_new(struct vxd_names *maps, struct vxd_queue *queue,
                            const struct vxd_named_terms *terms,
                            const struct vxd_map_spec *spec,
                            struct vxd_hashmap *take_hashmap, struct vxd_map **out,
                            struct vxd_err *err)
{
    struct vxd_named *named = NULL;
    struct vxd_map *map = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_named_begin(maps, terms, &named, err));
    map = as_map(named);
    map->spec = *spec;
    if (take_hashmap == NULL) {
        map->spec.engine.max_bytes = vxd_names_allowance(maps, terms, NULL);
        VXD_TRY(vxd_hashmap_create(queue, &map->spec.engine, &take_hashmap, err));
    }
    map->hashmap = take_hashmap;
    map->first_epoch = choose_epoch(named);
    vxd_named_enlist(named);
    *out = map;
    return VXD_OK;
out:
    vxd_names_explain(maps, terms, NULL, err);
    vxd_hashmap_destroy(queue, take_hashmap);
    free(map);
    return status;
}

/* What an estimate is about. */
struct estimate {
    size_t entry_bytes;
    uint64_t n_entries;
};

static void look(const struct vxd_named *named, void *user)
{
    const struct vxd_hashmap_spec *spec = &((const struct vxd_map *)named)->spec.engine;
    struct estimate *estimate = user;

    estimate->entry_bytes = vxd_map_key_bytes(spec);
    for (int i = 0; i < spec->n_values; i++) {
        estimate->entry_bytes += vxd_map_row_bytes(spec, i);
    }
    estimate->n_entries = named->n_bytes / (estimate->entry_bytes + 1); /* at most */
}

void vxd_maps_estimate(struct vxd_names *maps, const char *name, size_t *entry_bytes,
                       uint64_t *n_entries)
{
    struct estimate estimate = {0, 0};

    (void)vxd_names_look(maps, name, look, &estimate);
    *entry_bytes = estimate.entry_bytes;
    *n_entries = estimate.n_entries;
}
