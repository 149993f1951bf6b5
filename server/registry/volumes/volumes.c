// SPDX-License-Identifier: Apache-2.0
/* Volumes are in one list in order of their names: there are few of them, and a walk is
 * short beside a request. */
#include "server/registry/volumes/volumes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/observe/log/log.h"

struct vxd_volumes {
    struct vxd_named_volume *first;   /* by name */
    struct vxd_named_volume *unnamed; /* not yet published, or removed and still held */
    struct vxd_queue *queue;          /* of the server's context, for the end */
    uint64_t limit_bytes;
    uint64_t token_limit_bytes;
    uint64_t n_made;
    _Atomic size_t n_volumes;
    _Atomic uint64_t n_bytes;
    _Atomic int64_t next_reap_ns;
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
    vxd_context_get_memory(server->context, &memory);
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
    *out = volumes;
    return VXD_OK;
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
           a->max_weight == b->max_weight;
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

/* The bytes that the limits allow a volume, including those it has already. */
struct allowed_bytes {
    uint64_t of_all;
    uint64_t of_owner;
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
        .of_owner = volumes->token_limit_bytes > owners
                        ? volumes->token_limit_bytes - owners
                        : 0};
}

/* The bytes that a volume's blocks may take; never 0, which would mean no limit. */
static size_t allowance(const struct vxd_volumes *volumes,
                        const struct vxd_volume_terms *terms,
                        const struct vxd_named_volume *volume)
{
    struct allowed_bytes allowed_bytes = find_allowed_bytes(volumes, terms, volume);
    uint64_t allowed = allowed_bytes.of_owner < allowed_bytes.of_all
                           ? allowed_bytes.of_owner
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
    bool is_owners = allowed_bytes.of_owner < allowed_bytes.of_all;
    uint64_t left = is_owners ? allowed_bytes.of_owner : allowed_bytes.of_all;
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
                   is_owners ? "limits.volume_bytes_per_token" : "limits.volume_bytes",
                   is_owners ? volumes->token_limit_bytes : volumes->limit_bytes, left);
}

void vxd_volumes_account(struct vxd_volumes *volumes, struct vxd_named_volume *volume)
{
    struct vxd_volume_info info;

    vxd_volume_get_info(volume->volume, &info);
    atomic_fetch_add(&volumes->n_bytes, info.n_bytes);
    atomic_fetch_sub(&volumes->n_bytes, volume->n_bytes);
    volume->n_bytes = info.n_bytes;
}

enum vxd_status vxd_named_volume_new(struct vxd_volumes *volumes, struct vxd_queue *queue,
                                     const struct vxd_volume_terms *terms,
                                     const struct vxd_volume_spec *spec,
                                     struct vxd_named_volume **out, struct vxd_err *err)
{
    struct vxd_named_volume *volume = NULL;
    struct vxd_volume_spec limited = *spec;
    struct vxd_volume_info info;
    enum vxd_status status = VXD_OK;

    if (atomic_load(&volumes->n_volumes) >= VXD_VOLUMES_MAX) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "there are %d volumes already", VXD_VOLUMES_MAX));
    }
    volume = calloc(1, sizeof *volume);
    if (volume == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a volume"));
    }
    limited.max_bytes = allowance(volumes, terms, NULL);
    VXD_TRY(vxd_volume_create(queue, &limited, &volume->volume, err));
    vxd_volume_get_info(volume->volume, &info);
    volume->terms = *terms;
    volume->spec = *spec;
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
    free(volume);
    return status;
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
    find_next_reap(volumes);
}

void vxd_volumes_remove(struct vxd_volumes *volumes, struct vxd_queue *queue,
                        struct vxd_named_volume *volume)
{
    unlink_from(&volumes->first, volume);
    volume->next = volumes->unnamed;
    volumes->unnamed = volume;
    atomic_fetch_sub(&volumes->n_volumes, 1);
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
}
