// SPDX-License-Identifier: Apache-2.0
/* Maps are in one list in order of their names: there are few of them, and a walk is
 * short beside a request. */
#include "server/registry/maps/maps_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/instance/instance.h"
#include "server/registry/maps/map_file.h"

enum vxd_status vxd_maps_create(struct vxd_server *server, struct vxd_maps **out,
                                struct vxd_err *err)
{
    struct vxd_maps *maps = calloc(1, sizeof *maps);
    struct vxd_memory_usage memory;
    enum vxd_status status;

    if (maps == NULL || pthread_mutex_init(&maps->mutex, NULL) != 0) {
        free(maps);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the maps");
    }
    maps->registry = server->registry;
    maps->auth = server->auth;
    vxd_context_get_memory(server->context, &memory);
    maps->limit_bytes = server->config.map_bytes > 0 ? server->config.map_bytes
                                                     : memory.device_budget_bytes / 2;
    maps->token_limit_bytes = server->config.token_map_bytes > 0
                                  ? server->config.token_map_bytes
                                  : maps->limit_bytes;
    atomic_init(&maps->next_reap_ns, INT64_MAX);
    status = vxd_queue_create(server->context, &maps->queue, err);
    if (status != VXD_OK) {
        (void)pthread_mutex_destroy(&maps->mutex);
        free(maps);
        return status;
    }
    if (server->config.data_dir[0] != '\0') {
        vxd_map_file_sweep(server->config.data_dir);
    }
    vxd_registry_add(server->registry, &vxd_maps_kind, maps);
    *out = maps;
    return VXD_OK;
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

struct vxd_map *vxd_maps_peek(struct vxd_maps *maps, const char *name)
{
    struct vxd_map *map = maps->first;

    while (map != NULL && strcmp(map->terms.name, name) != 0) {
        map = map->next;
    }
    return map;
}

static void find_next_reap(struct vxd_maps *maps)
{
    int64_t next = INT64_MAX;

    for (const struct vxd_map *m = maps->first; m != NULL; m = m->next) {
        if (m->terms.ttl_ns > 0 && m->used_ns + m->terms.ttl_ns < next) {
            next = m->used_ns + m->terms.ttl_ns;
        }
    }
    atomic_store(&maps->next_reap_ns, next);
}

struct vxd_map *vxd_maps_find(struct vxd_maps *maps, const char *name)
{
    struct vxd_map *map = vxd_maps_peek(maps, name);

    if (map != NULL) {
        map->used_ns = vxd_clock_ns();
    }
    return map;
}

struct vxd_map *vxd_maps_next(struct vxd_maps *maps, const struct vxd_map *map)
{
    return map != NULL ? map->next : maps->first;
}

void vxd_map_hold(struct vxd_map *map)
{
    map->references++;
}

static void unlink_from(struct vxd_map **list, const struct vxd_map *map)
{
    while (*list != map) {
        list = &(*list)->next;
    }
    *list = map->next;
}

/* Takes a map out of the list of those without a name. */
static void destroy(struct vxd_maps *maps, struct vxd_queue *queue, struct vxd_map *map)
{
    unlink_from(&maps->unnamed, map);
    if (maps->next_epoch <= vxd_map_epoch(map)) {
        maps->next_epoch = vxd_map_epoch(map) + 1;
    }
    vxd_hashmap_destroy(queue, map->hashmap);
    atomic_fetch_sub(&maps->n_bytes, map->n_bytes);
    vxd_auth_note_bytes(maps->auth, map->terms.owner, map->n_bytes, 0);
    free(map);
}

void vxd_map_drop(struct vxd_maps *maps, struct vxd_queue *queue, struct vxd_map *map)
{
    map->used_ns = vxd_clock_ns();
    if (--map->references == 0) {
        destroy(maps, queue, map);
    }
}

void vxd_maps_destroy(struct vxd_maps *maps)
{
    if (maps == NULL) {
        return;
    }
    while (maps->first != NULL) {
        vxd_maps_remove(maps, maps->queue, maps->first);
    }
    while (maps->unnamed != NULL) {
        destroy(maps, maps->queue, maps->unnamed);
    }
    vxd_queue_destroy(maps->queue);
    (void)pthread_mutex_destroy(&maps->mutex);
    free(maps);
}

static uint64_t bytes_of_owner(const struct vxd_map *list, const char *owner)
{
    uint64_t n_bytes = 0;

    for (; list != NULL; list = list->next) {
        n_bytes += strcmp(list->terms.owner, owner) == 0 ? list->n_bytes : 0;
    }
    return n_bytes;
}

/* Counts the owner's maps of other names. */
static size_t count_others(const struct vxd_map *list, const struct vxd_map_terms *terms)
{
    size_t n = 0;

    for (; list != NULL; list = list->next) {
        n += strcmp(list->terms.owner, terms->owner) == 0 &&
                     strcmp(list->terms.name, terms->name) != 0
                 ? 1
                 : 0;
    }
    return n;
}

/* The bytes that the limits allow a map, including those it has already. */
struct allowed_bytes {
    uint64_t of_all;
    struct vxd_owner_bytes of_owner;
};

static struct allowed_bytes find_allowed_bytes(const struct vxd_maps *maps,
                                               const struct vxd_map_terms *terms,
                                               const struct vxd_map *map)
{
    uint64_t own = map != NULL ? map->n_bytes : 0;
    uint64_t others = atomic_load(&maps->n_bytes) - own;
    uint64_t owners = bytes_of_owner(maps->first, terms->owner) +
                      bytes_of_owner(maps->unnamed, terms->owner) - own;

    return (struct allowed_bytes){
        .of_all = maps->limit_bytes > others ? maps->limit_bytes - others : 0,
        .of_owner =
            vxd_auth_allow_bytes(maps->auth, terms->owner, own, owners,
                                 maps->token_limit_bytes, "limits.map_bytes_per_token")};
}

size_t vxd_maps_allowance(const struct vxd_maps *maps, const struct vxd_map_terms *terms,
                          const struct vxd_map *map)
{
    struct allowed_bytes allowed_bytes;
    uint64_t allowed;

    if (maps->is_recovering) {
        return 0; /* the context's budget */
    }
    allowed_bytes = find_allowed_bytes(maps, terms, map);
    allowed = allowed_bytes.of_owner.left < allowed_bytes.of_all
                  ? allowed_bytes.of_owner.left
                  : allowed_bytes.of_all;

    if (terms->max_bytes > 0 && terms->max_bytes < allowed) {
        allowed = terms->max_bytes;
    }
    return (size_t)(allowed > 0 ? allowed : 1); /* 0 would mean no limit */
}

void vxd_maps_explain(const struct vxd_maps *maps, const struct vxd_map_terms *terms,
                      const struct vxd_map *map, struct vxd_err *err)
{
    struct allowed_bytes allowed_bytes = find_allowed_bytes(maps, terms, map);
    bool is_owners = allowed_bytes.of_owner.left < allowed_bytes.of_all;
    uint64_t left = is_owners ? allowed_bytes.of_owner.left : allowed_bytes.of_all;
    char what[96];

    if (err == NULL || err->code != VXD_RESOURCE_EXHAUSTED ||
        strcmp(err->field, "max_bytes") != 0 ||
        (terms->max_bytes > 0 && terms->max_bytes <= left)) {
        return;
    }
    (void)snprintf(what, sizeof what, "%.*s", (int)strcspn(err->message, ";"),
                   err->message);
    (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                   "%s; %s of %" PRIu64 " leaves it %" PRIu64, what,
                   is_owners ? allowed_bytes.of_owner.key : "limits.map_bytes",
                   is_owners ? allowed_bytes.of_owner.limit : maps->limit_bytes, left);
}

enum vxd_status vxd_maps_prepare(const struct vxd_maps *maps, struct vxd_queue *queue,
                                 struct vxd_map *map, const void *keys, size_t n,
                                 size_t *n_new, struct vxd_err *err)
{
    enum vxd_status status;

    vxd_hashmap_set_max_bytes(map->hashmap, vxd_maps_allowance(maps, &map->terms, map));
    status = vxd_hashmap_prepare(queue, map->hashmap, keys, n, n_new, err);
    if (status != VXD_OK) {
        vxd_maps_explain(maps, &map->terms, map, err);
    }
    return status;
}

void vxd_maps_account(struct vxd_maps *maps, struct vxd_map *map)
{
    size_t n_bytes = vxd_hashmap_n_bytes(map->hashmap);

    atomic_fetch_add(&maps->n_bytes, n_bytes);
    atomic_fetch_sub(&maps->n_bytes, map->n_bytes);
    vxd_auth_note_bytes(maps->auth, map->terms.owner, map->n_bytes, n_bytes);
    (void)pthread_mutex_lock(&maps->mutex);
    map->n_bytes = n_bytes;
    (void)pthread_mutex_unlock(&maps->mutex);
}

/* The epoch comes from the clock, in microseconds, so that a later start of the server
 * continues above it; and it is above the epochs of a map that this one replaces. */
uint64_t vxd_maps_choose_epoch(struct vxd_maps *maps, const struct vxd_map *made)
{
    const struct vxd_map *now = vxd_maps_peek(maps, made->terms.name);
    uint64_t epoch = (uint64_t)made->created_unix_ns / 1000;

    if (epoch < maps->next_epoch) {
        epoch = maps->next_epoch;
    }
    if (now != NULL && epoch <= vxd_map_epoch(now)) {
        epoch = vxd_map_epoch(now) + 1;
    }
    return epoch;
}

enum vxd_status vxd_map_new(struct vxd_maps *maps, struct vxd_queue *queue,
                            const struct vxd_map_terms *terms,
                            const struct vxd_map_spec *spec,
                            struct vxd_hashmap *take_hashmap, struct vxd_map **out,
                            struct vxd_err *err)
{
    struct vxd_map *map = NULL;
    enum vxd_status status = VXD_OK;

    if (atomic_load(&maps->n_maps) >= VXD_MAPS_MAX && !maps->is_recovering) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "there are %d maps already",
                         VXD_MAPS_MAX));
    }
    if (!maps->is_recovering) {
        VXD_TRY(vxd_auth_check_held(maps->auth, terms->owner, VXD_NOUN_MAP,
                                    count_others(maps->first, terms), err));
    }
    map = calloc(1, sizeof *map);
    if (map == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a map"));
    }
    map->terms = *terms;
    map->spec = *spec;
    if (take_hashmap == NULL) {
        map->spec.engine.max_bytes = vxd_maps_allowance(maps, terms, NULL);
        VXD_TRY(vxd_hashmap_create(queue, &map->spec.engine, &take_hashmap, err));
    }
    map->hashmap = take_hashmap;
    map->created_unix_ns = vxd_clock_unix_ns();
    map->used_ns = vxd_clock_ns();
    /* Generations come from the clock, so that other starts of the server make different
     * ones. */
    map->generation = (uint64_t)map->created_unix_ns + maps->n_made++;
    map->first_epoch = vxd_maps_choose_epoch(maps, map);
    map->references = 1;
    map->next = maps->unnamed;
    maps->unnamed = map;
    vxd_maps_account(maps, map);
    *out = map;
    return VXD_OK;
out:
    vxd_maps_explain(maps, terms, NULL, err);
    vxd_hashmap_destroy(queue, take_hashmap);
    free(map);
    return status;
}

void vxd_maps_publish(struct vxd_maps *maps, struct vxd_map *map)
{
    struct vxd_map **at = &maps->first;

    unlink_from(&maps->unnamed, map);
    map->references++;
    map->used_ns = vxd_clock_ns(); /* making it may have taken long */
    (void)pthread_mutex_lock(&maps->mutex);
    while (*at != NULL && strcmp((*at)->terms.name, map->terms.name) < 0) {
        at = &(*at)->next;
    }
    map->next = *at;
    *at = map;
    (void)pthread_mutex_unlock(&maps->mutex);
    atomic_fetch_add(&maps->n_maps, 1);
    atomic_fetch_add(&maps->n_durable, map->terms.durable ? 1 : 0);
    find_next_reap(maps);
}

void vxd_maps_remove(struct vxd_maps *maps, struct vxd_queue *queue, struct vxd_map *map)
{
    (void)pthread_mutex_lock(&maps->mutex);
    unlink_from(&maps->first, map);
    (void)pthread_mutex_unlock(&maps->mutex);
    map->next = maps->unnamed;
    maps->unnamed = map;
    atomic_fetch_sub(&maps->n_maps, 1);
    atomic_fetch_sub(&maps->n_durable, map->terms.durable ? 1 : 0);
    vxd_map_drop(maps, queue, map);
    find_next_reap(maps);
}

void vxd_maps_reap(struct vxd_maps *maps, struct vxd_queue *queue, int64_t now_ns)
{
    struct vxd_map *next;

    if (now_ns < atomic_load(&maps->next_reap_ns)) {
        return;
    }
    for (struct vxd_map *m = maps->first; m != NULL; m = next) {
        next = m->next;
        if (m->references > 1) { /* a long request holds it between two stages */
            m->used_ns = now_ns;
        } else if (m->terms.ttl_ns > 0 && m->used_ns + m->terms.ttl_ns <= now_ns) {
            vxd_log(VXD_LOG_INFO, "map dropped: nobody used it for its ttl_s", "map",
                    m->terms.name, "owner", m->terms.owner);
            vxd_maps_remove(maps, queue, m);
        }
    }
    find_next_reap(maps);
}

int64_t vxd_maps_next_reap_ns(const struct vxd_maps *maps)
{
    return atomic_load(&maps->next_reap_ns);
}

void vxd_maps_get_usage(const struct vxd_maps *maps, struct vxd_maps_usage *out)
{
    out->n_maps = atomic_load(&maps->n_maps);
    out->n_bytes = atomic_load(&maps->n_bytes);
    out->limit_bytes = maps->limit_bytes;
    out->n_durable = atomic_load(&maps->n_durable);
    vxd_registry_count_snapshots(maps->registry, &vxd_maps_kind, &out->n_snapshots,
                                 &out->n_failed_snapshots);
}

void vxd_maps_estimate(struct vxd_maps *maps, const char *name, size_t *entry_bytes,
                       uint64_t *n_entries)
{
    const struct vxd_map *map;

    *entry_bytes = 0;
    *n_entries = 0;
    (void)pthread_mutex_lock(&maps->mutex);
    map = vxd_maps_peek(maps, name);
    if (map != NULL) {
        const struct vxd_hashmap_spec *spec = &map->spec.engine;

        *entry_bytes = vxd_map_key_bytes(spec);
        for (int i = 0; i < spec->n_values; i++) {
            *entry_bytes += vxd_map_row_bytes(spec, i);
        }
        *n_entries = map->n_bytes / (*entry_bytes + 1); /* at most */
    }
    (void)pthread_mutex_unlock(&maps->mutex);
}
