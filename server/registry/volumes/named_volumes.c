// SPDX-License-Identifier: Apache-2.0
/* Volumes are in one list in order of their names: there are few of them, and a walk is
 * short beside a request. */
#include "server/registry/volumes/volumes_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/observe/log/log.h"
#include "server/registry/fields/registry_fields.h"

enum {
    CAPACITY_STEP = 32 /* the part of a capacity that is tried less next */
};

enum vxd_status vxd_volumes_create(struct vxd_server *server, struct vxd_volumes **out,
                                   struct vxd_err *err)
{
    struct vxd_volumes *volumes = calloc(1, sizeof *volumes);
    struct vxd_memory_usage memory;
    enum vxd_status status;

    if (volumes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the volumes");
    }
    volumes->registry = server->registry;
    vxd_context_get_memory(server->context, &memory);
    volumes->auth = server->auth;
    volumes->server = server;
    volumes->limit_bytes = server->config.volume_bytes > 0
                               ? server->config.volume_bytes
                               : memory.device_budget_bytes / 2;
    volumes->token_limit_bytes = server->config.token_volume_bytes > 0
                                     ? server->config.token_volume_bytes
                                     : volumes->limit_bytes;
    atomic_init(&volumes->next_reap_ns, INT64_MAX);
    status = vxd_queue_create(server->context, &volumes->queue, err);
    if (status != VXD_OK) {
        free(volumes);
        return status;
    }
    vxd_registry_add(server->registry, &vxd_volumes_kind, volumes);
    *out = volumes;
    return VXD_OK;
}

struct vxd_queue *vxd_volumes_queue(struct vxd_volumes *volumes)
{
    return volumes->queue;
}

bool vxd_volume_spec_equal(const struct vxd_volume_spec *a,
                           const struct vxd_volume_spec *b)
{
    for (int i = 0; i < 3; i++) {
        if (a->origin_m[i] != b->origin_m[i]) {
            return false;
        }
    }
    return a->voxel_size_m == b->voxel_size_m && a->block_edge == b->block_edge &&
           a->truncation_m == b->truncation_m && a->form == b->form &&
           a->has_colour == b->has_colour && a->has_labels == b->has_labels &&
           a->has_albedo == b->has_albedo && a->max_weight == b->max_weight;
}

struct vxd_named_volume *vxd_volumes_peek(struct vxd_volumes *volumes, const char *name)
{
    struct vxd_named_volume *volume = volumes->first;

    while (volume != NULL && strcmp(volume->terms.name, name) != 0) {
        volume = volume->next;
    }
    return volume;
}

static void find_next_reap(struct vxd_volumes *volumes)
{
    int64_t next = INT64_MAX;

    for (const struct vxd_named_volume *v = volumes->first; v != NULL; v = v->next) {
        if (v->terms.ttl_ns > 0 && v->used_ns + v->terms.ttl_ns < next) {
            next = v->used_ns + v->terms.ttl_ns;
        }
    }
    atomic_store(&volumes->next_reap_ns, next);
}

struct vxd_named_volume *vxd_volumes_find(struct vxd_volumes *volumes, const char *name)
{
    struct vxd_named_volume *volume = vxd_volumes_peek(volumes, name);

    if (volume != NULL) {
        volume->used_ns = vxd_clock_ns();
    }
    return volume;
}

struct vxd_named_volume *vxd_volumes_next(struct vxd_volumes *volumes,
                                          const struct vxd_named_volume *volume)
{
    return volume != NULL ? volume->next : volumes->first;
}

void vxd_named_volume_hold(struct vxd_named_volume *volume)
{
    volume->references++;
}

static void unlink_from(struct vxd_named_volume **list,
                        const struct vxd_named_volume *volume)
{
    while (*list != volume) {
        list = &(*list)->next;
    }
    *list = volume->next;
}

/* Frees one of those without a name. */
static void destroy(struct vxd_volumes *volumes, struct vxd_queue *queue,
                    struct vxd_named_volume *volume)
{
    unlink_from(&volumes->unnamed, volume);
    vxd_volume_destroy(queue, volume->volume);
    atomic_fetch_sub(&volumes->n_bytes, volume->n_bytes);
    vxd_auth_note_bytes(volumes->auth, volume->terms.owner, volume->n_bytes, 0);
    free(volume);
}

void vxd_named_volume_drop(struct vxd_volumes *volumes, struct vxd_queue *queue,
                           struct vxd_named_volume *volume)
{
    volume->used_ns = vxd_clock_ns();
    if (--volume->references == 0) {
        destroy(volumes, queue, volume);
    }
}

void vxd_volumes_destroy(struct vxd_volumes *volumes)
{
    if (volumes == NULL) {
        return;
    }
    while (volumes->first != NULL) {
        vxd_volumes_remove(volumes, volumes->queue, volumes->first);
    }
    while (volumes->unnamed != NULL) {
        destroy(volumes, volumes->queue, volumes->unnamed);
    }
    vxd_queue_destroy(volumes->queue);
    free(volumes);
}

static uint64_t bytes_of_owner(const struct vxd_named_volume *list, const char *owner)
{
    uint64_t n_bytes = 0;

    for (; list != NULL; list = list->next) {
        n_bytes += strcmp(list->terms.owner, owner) == 0 ? list->n_bytes : 0;
    }
    return n_bytes;
}

static size_t count_of_owner(const struct vxd_named_volume *list, const char *owner)
{
    size_t n = 0;

    for (; list != NULL; list = list->next) {
        n += strcmp(list->terms.owner, owner) == 0 ? 1 : 0;
    }
    return n;
}

/* The bytes that the limits allow a volume, including those it has already. */
struct allowed_bytes {
    uint64_t of_all;
    struct vxd_owner_bytes of_owner;
};

static struct allowed_bytes find_allowed_bytes(const struct vxd_volumes *volumes,
                                               const struct vxd_volume_terms *terms,
                                               const struct vxd_named_volume *volume)
{
    uint64_t own = volume != NULL ? volume->n_bytes : 0;
    uint64_t others = atomic_load(&volumes->n_bytes) - own;
    uint64_t owners = bytes_of_owner(volumes->first, terms->owner) +
                      bytes_of_owner(volumes->unnamed, terms->owner) - own;

    return (struct allowed_bytes){
        .of_all = volumes->limit_bytes > others ? volumes->limit_bytes - others : 0,
        .of_owner = vxd_auth_allow_bytes(volumes->auth, terms->owner, own, owners,
                                         volumes->token_limit_bytes,
                                         "limits.volume_bytes_per_token")};
}

/* The bytes that a volume's blocks may take; 0, no limit, at a start alone. */
static size_t allowance(const struct vxd_volumes *volumes,
                        const struct vxd_volume_terms *terms,
                        const struct vxd_named_volume *volume)
{
    struct allowed_bytes allowed_bytes;
    uint64_t allowed;

    if (volumes->is_recovering) {
        return 0; /* the context's budget */
    }
    allowed_bytes = find_allowed_bytes(volumes, terms, volume);
    allowed = allowed_bytes.of_owner.left < allowed_bytes.of_all
                  ? allowed_bytes.of_owner.left
                  : allowed_bytes.of_all;
    if (terms->max_bytes > 0 && terms->max_bytes < allowed) {
        allowed = terms->max_bytes;
    }
    return (size_t)(allowed > 0 ? allowed : 1);
}

void vxd_volumes_allow(const struct vxd_volumes *volumes, struct vxd_named_volume *volume)
{
    vxd_hashmap_set_max_bytes(vxd_volume_map(volume->volume),
                              allowance(volumes, &volume->terms, volume));
}

void vxd_volumes_explain(const struct vxd_volumes *volumes,
                         const struct vxd_volume_terms *terms,
                         const struct vxd_named_volume *volume, struct vxd_err *err)
{
    struct allowed_bytes allowed_bytes = find_allowed_bytes(volumes, terms, volume);
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
                   is_owners ? allowed_bytes.of_owner.key : "limits.volume_bytes",
                   is_owners ? allowed_bytes.of_owner.limit : volumes->limit_bytes, left);
}

void vxd_volumes_account(struct vxd_volumes *volumes, struct vxd_named_volume *volume)
{
    struct vxd_volume_info info;

    vxd_volume_get_info(volume->volume, &info);
    atomic_fetch_add(&volumes->n_bytes, info.n_bytes);
    atomic_fetch_sub(&volumes->n_bytes, volume->n_bytes);
    vxd_auth_note_bytes(volumes->auth, volume->terms.owner, volume->n_bytes,
                        info.n_bytes);
    volume->n_bytes = info.n_bytes;
}

/* Makes the engine's volume with room for all the blocks that max_bytes allow: the first capacity
 * that fits, from what the blocks alone would give downwards. */
static enum vxd_status make_full(struct vxd_queue *queue, uint64_t max_bytes,
                                 struct vxd_volume_spec *spec, struct vxd_volume **out,
                                 struct vxd_err *err)
{
    size_t capacity = (size_t)(max_bytes / vxd_volume_block_bytes(spec));
    enum vxd_status status = VXD_RESOURCE_EXHAUSTED;

    while (status == VXD_RESOURCE_EXHAUSTED && capacity > 0) {
        struct vxd_volume_info info;

        spec->capacity = capacity;
        status = vxd_volume_create(queue, spec, out, err);
        if (status == VXD_OK) {
            vxd_volume_get_info(*out, &info);
            if (info.n_bytes <= max_bytes) {
                return VXD_OK;
            }
            vxd_volume_destroy(queue, *out);
            *out = NULL;
            status = VXD_RESOURCE_EXHAUSTED;
        }
        capacity -= capacity / CAPACITY_STEP + 1;
    }
    return capacity > 0 ? status
                        : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                                   "%" PRIu64 " bytes hold no block of %zu", max_bytes,
                                   vxd_volume_block_bytes(spec));
}

/* Makes the engine's volume; the spec's capacity becomes the one that it keeps. */
static enum vxd_status make_engines(const struct vxd_volumes *volumes,
                                    struct vxd_queue *queue,
                                    const struct vxd_volume_terms *terms,
                                    struct vxd_volume_spec *spec, struct vxd_volume **out,
                                    struct vxd_err *err)
{
    size_t allowed = allowance(volumes, terms, NULL);
    enum vxd_status status;

    spec->max_bytes = allowed;
    if (terms->forgets && spec->capacity == 0) {
        size_t most = allowed != 0 && allowed < terms->max_bytes
                          ? allowed
                          : (size_t)terms->max_bytes;

        status = make_full(queue, most, spec, out, err);
    } else {
        status = vxd_volume_create(queue, spec, out, err);
    }
    spec->max_bytes = 0;
    return status;
}

enum vxd_status vxd_named_volume_new(struct vxd_volumes *volumes, struct vxd_queue *queue,
                                     const struct vxd_volume_terms *terms,
                                     const struct vxd_volume_spec *spec,
                                     struct vxd_volume *take_volume,
                                     struct vxd_named_volume **out, struct vxd_err *err)
{
    struct vxd_named_volume *volume = NULL;
    struct vxd_volume_info info;
    enum vxd_status status = VXD_OK;

    if (atomic_load(&volumes->n_volumes) >= VXD_VOLUMES_MAX && !volumes->is_recovering) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "there are %d volumes already", VXD_VOLUMES_MAX));
    }
    VXD_TRY(vxd_auth_check_held(volumes->auth, terms->owner, VXD_NOUN_VOLUME,
                                count_of_owner(volumes->first, terms->owner), err));
    volume = calloc(1, sizeof *volume);
    if (volume == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a volume"));
    }
    volume->terms = *terms;
    volume->spec = *spec;
    if (take_volume == NULL) {
        VXD_TRY(make_engines(volumes, queue, terms, &volume->spec, &volume->volume, err));
    } else {
        volume->volume = take_volume;
        take_volume = NULL;
    }
    vxd_volume_get_info(volume->volume, &info);
    volume->spec.max_weight = info.spec.max_weight;
    volume->created_unix_ns = vxd_clock_unix_ns();
    volume->used_ns = vxd_clock_ns();
    /* Generations come from the clock, so that other starts of the server make different
     * ones. Stamps begin there, so that a stamp of an earlier volume of this name is known. */
    volume->generation = (uint64_t)volume->created_unix_ns + volumes->n_made++;
    vxd_volume_begin_version(volume->volume, volume->generation);
    volume->references = 1;
    volume->next = volumes->unnamed;
    volumes->unnamed = volume;
    vxd_volumes_account(volumes, volume);
    *out = volume;
    return VXD_OK;
out:
    vxd_volumes_explain(volumes, terms, NULL, err);
    vxd_volume_destroy(queue, take_volume);
    free(volume);
    return status;
}

enum vxd_status vxd_volumes_check_copy(const struct vxd_volumes *volumes,
                                       const struct vxd_volume_terms *terms,
                                       uint64_t n_bytes, struct vxd_err *err)
{
    struct allowed_bytes allowed = find_allowed_bytes(volumes, terms, NULL);
    bool is_owners = allowed.of_owner.left < allowed.of_all;
    uint64_t left = is_owners ? allowed.of_owner.left : allowed.of_all;

    return n_bytes <= left
               ? VXD_OK
               : vxd_fail(
                     err, VXD_RESOURCE_EXHAUSTED, NULL,
                     "the copy takes %" PRIu64 " bytes; %s of %" PRIu64
                     " leaves it %" PRIu64,
                     n_bytes, is_owners ? allowed.of_owner.key : "limits.volume_bytes",
                     is_owners ? allowed.of_owner.limit : volumes->limit_bytes, left);
}

void vxd_volumes_publish(struct vxd_volumes *volumes, struct vxd_named_volume *volume)
{
    struct vxd_named_volume **at = &volumes->first;

    unlink_from(&volumes->unnamed, volume);
    volume->references++;
    volume->used_ns = vxd_clock_ns(); /* making it may have taken long */
    while (*at != NULL && strcmp((*at)->terms.name, volume->terms.name) < 0) {
        at = &(*at)->next;
    }
    volume->next = *at;
    *at = volume;
    atomic_fetch_add(&volumes->n_volumes, 1);
    atomic_fetch_add(&volumes->n_durable, volume->terms.durable ? 1 : 0);
    find_next_reap(volumes);
}

void vxd_volume_forget_fields(struct vxd_volumes *volumes,
                              const struct vxd_named_volume *volume)
{
    if (volumes->server->fields != NULL) {
        vxd_fields_drop_scene(volumes->server->fields, NULL,
                              VXD_VOLUME_FIELDS | volume->generation);
    }
}

void vxd_volumes_remove(struct vxd_volumes *volumes, struct vxd_queue *queue,
                        struct vxd_named_volume *volume)
{
    unlink_from(&volumes->first, volume);
    volume->next = volumes->unnamed;
    volumes->unnamed = volume;
    vxd_volume_forget_fields(volumes, volume);
    atomic_fetch_sub(&volumes->n_volumes, 1);
    atomic_fetch_sub(&volumes->n_durable, volume->terms.durable ? 1 : 0);
    vxd_named_volume_drop(volumes, queue, volume);
    find_next_reap(volumes);
}

void vxd_volumes_reap(struct vxd_volumes *volumes, struct vxd_queue *queue,
                      int64_t now_ns)
{
    struct vxd_named_volume *next;

    if (now_ns < atomic_load(&volumes->next_reap_ns)) {
        return;
    }
    for (struct vxd_named_volume *v = volumes->first; v != NULL; v = next) {
        next = v->next;
        if (v->references > 1) { /* a long request holds it between two stages */
            v->used_ns = now_ns;
        } else if (v->terms.ttl_ns > 0 && v->used_ns + v->terms.ttl_ns <= now_ns) {
            vxd_log(VXD_LOG_INFO, "volume dropped: nobody used it for its ttl_s",
                    "volume", v->terms.name, "owner", v->terms.owner);
            vxd_volumes_remove(volumes, queue, v);
        }
    }
    find_next_reap(volumes);
}

int64_t vxd_volumes_next_reap_ns(const struct vxd_volumes *volumes)
{
    return atomic_load(&volumes->next_reap_ns);
}

void vxd_volumes_get_usage(const struct vxd_volumes *volumes,
                           struct vxd_volumes_usage *out)
{
    out->n_volumes = atomic_load(&volumes->n_volumes);
    out->n_bytes = atomic_load(&volumes->n_bytes);
    out->limit_bytes = volumes->limit_bytes;
    out->n_durable = atomic_load(&volumes->n_durable);
    vxd_registry_count_snapshots(volumes->registry, &vxd_volumes_kind, &out->n_snapshots,
                                 &out->n_failed_snapshots);
}
