// SPDX-License-Identifier: Apache-2.0
/* Odometries are in one list in order of their names: there are few of them. */
#include "server/registry/odometries/odometries.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/core/core.h"
#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/observe/log/log.h"

/* How long one beside a scene or a volume is kept unused. */
#define BESIDE_TTL_NS ((int64_t)3600 * 1000000000)

struct vxd_odometries {
    struct vxd_named_odometry *first;   /* by kind and name */
    struct vxd_named_odometry *unnamed; /* removed, and still held */
    struct vxd_queue *queue;            /* for the end */
    struct vxd_auth *auth;              /* borrowed; has the quotas */
    uint64_t n_made;
    _Atomic size_t n_odometries;
    _Atomic uint64_t n_bytes;
    _Atomic int64_t next_reap_ns;
};

enum vxd_status vxd_odometries_create(struct vxd_server *server,
                                      struct vxd_odometries **out, struct vxd_err *err)
{
    struct vxd_odometries *odometries = calloc(1, sizeof *odometries);
    enum vxd_status status;

    if (odometries == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for odometries");
    }
    atomic_init(&odometries->next_reap_ns, INT64_MAX);
    odometries->auth = server->auth;
    status = vxd_queue_create(server->context, &odometries->queue, err);
    if (status != VXD_OK) {
        free(odometries);
        return status;
    }
    *out = odometries;
    return VXD_OK;
}

static int compare(const struct vxd_named_odometry *odometry,
                   enum vxd_odometry_owner kind, const char *name)
{
    return odometry->kind != kind ? (odometry->kind < kind ? -1 : 1)
                                  : strcmp(odometry->name, name);
}

struct vxd_named_odometry *vxd_odometries_find(struct vxd_odometries *odometries,
                                               enum vxd_odometry_owner kind,
                                               const char *name)
{
    struct vxd_named_odometry *at = odometries->first;

    while (at != NULL && compare(at, kind, name) != 0) {
        at = at->next;
    }
    return at;
}

struct vxd_named_odometry *vxd_odometries_next(struct vxd_odometries *odometries,
                                               const struct vxd_named_odometry *odometry)
{
    struct vxd_named_odometry *next =
        odometry != NULL ? odometry->next : odometries->first;

    return next != NULL && next->kind == VXD_ODOMETRY_NAMED ? next : NULL;
}

static void find_next_reap(struct vxd_odometries *odometries)
{
    int64_t next = INT64_MAX;

    for (const struct vxd_named_odometry *o = odometries->first; o != NULL; o = o->next) {
        if (o->ttl_ns > 0 && o->used_ns + o->ttl_ns < next) {
            next = o->used_ns + o->ttl_ns;
        }
    }
    atomic_store(&odometries->next_reap_ns, next);
}

static void account(struct vxd_odometries *odometries,
                    struct vxd_named_odometry *odometry)
{
    struct vxd_odometry_info info;

    vxd_odometry_get_info(odometry->odometry, &info);
    atomic_fetch_add(&odometries->n_bytes, info.n_bytes);
    atomic_fetch_sub(&odometries->n_bytes, odometry->n_bytes);
    vxd_auth_note_bytes(odometries->auth, odometry->owner, odometry->n_bytes,
                        info.n_bytes);
    odometry->n_bytes = info.n_bytes;
}

static size_t count_named_of_owner(const struct vxd_odometries *odometries,
                                   const char *owner)
{
    size_t n = 0;

    for (const struct vxd_named_odometry *o = odometries->first; o != NULL; o = o->next) {
        n += o->kind == VXD_ODOMETRY_NAMED && strcmp(o->owner, owner) == 0 ? 1 : 0;
    }
    return n;
}

enum vxd_status vxd_odometries_check_bytes(const struct vxd_odometries *odometries,
                                           const struct vxd_named_odometry *odometry,
                                           struct vxd_err *err)
{
    return vxd_auth_check_bytes(odometries->auth, odometry->owner, odometry->n_bytes,
                                odometry->n_bytes + 1, "the odometry", err);
}

enum vxd_status vxd_odometries_add(struct vxd_odometries *odometries,
                                   struct vxd_queue *queue,
                                   const struct vxd_odometry_terms *terms,
                                   struct vxd_named_odometry **out, struct vxd_err *err)
{
    struct vxd_named_odometry **at = &odometries->first;
    struct vxd_named_odometry *odometry = NULL;
    enum vxd_status status;

    if (atomic_load(&odometries->n_odometries) >= VXD_ODOMETRIES_MAX) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "there are %d odometries already, those beside scenes and "
                        "volumes included",
                        VXD_ODOMETRIES_MAX);
    }
    if (terms->kind == VXD_ODOMETRY_NAMED) {
        status = vxd_auth_check_held(odometries->auth, terms->owner, VXD_NOUN_ODOMETRY,
                                     count_named_of_owner(odometries, terms->owner), err);
        if (status != VXD_OK) {
            return status;
        }
    }
    odometry = calloc(1, sizeof *odometry);
    if (odometry == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for odometry");
    }
    status = vxd_odometry_create(queue, &terms->options, terms->initial,
                                 &odometry->odometry, err);
    if (status != VXD_OK) {
        free(odometry);
        return status;
    }
    odometry->kind = terms->kind;
    odometry->of_generation = terms->of_generation;
    (void)snprintf(odometry->name, sizeof odometry->name, "%s", terms->name);
    (void)snprintf(odometry->owner, sizeof odometry->owner, "%s", terms->owner);
    odometry->ttl_ns = terms->ttl_ns;
    odometry->created_unix_ns = vxd_clock_unix_ns();
    odometry->used_ns = vxd_clock_ns();
    /* From the clock, so that other starts of the server make different ones. */
    odometry->generation = (uint64_t)odometry->created_unix_ns + odometries->n_made++;
    odometry->references = 1;
    while (*at != NULL && compare(*at, terms->kind, terms->name) < 0) {
        at = &(*at)->next;
    }
    odometry->next = *at;
    *at = odometry;
    atomic_fetch_add(&odometries->n_odometries, 1);
    account(odometries, odometry);
    find_next_reap(odometries);
    *out = odometry;
    return VXD_OK;
}

enum vxd_status vxd_odometries_beside(struct vxd_odometries *odometries,
                                      struct vxd_queue *queue,
                                      enum vxd_odometry_owner kind, const char *name,
                                      uint64_t generation, const char *owner,
                                      struct vxd_named_odometry **out,
                                      struct vxd_err *err)
{
    const struct vxd_odometry_terms terms = {
        .kind = kind,
        .of_generation = generation,
        .name = name,
        .owner = owner,
        .ttl_ns = BESIDE_TTL_NS,
        .options = {.max_bytes = VXD_ODOMETRY_BYTES}};
    struct vxd_named_odometry *odometry = vxd_odometries_find(odometries, kind, name);

    if (odometry != NULL && odometry->of_generation != generation) {
        vxd_odometries_remove(odometries, queue, odometry);
        odometry = NULL;
    }
    if (odometry != NULL) {
        *out = odometry;
        return VXD_OK;
    }
    return vxd_odometries_add(odometries, queue, &terms, out, err);
}

static void unlink_from(struct vxd_named_odometry **list,
                        const struct vxd_named_odometry *odometry)
{
    while (*list != odometry) {
        list = &(*list)->next;
    }
    *list = odometry->next;
}

void vxd_named_odometry_hold(struct vxd_named_odometry *odometry)
{
    odometry->references++;
}

void vxd_named_odometry_drop(struct vxd_odometries *odometries, struct vxd_queue *queue,
                             struct vxd_named_odometry *odometry)
{
    odometry->used_ns = vxd_clock_ns();
    if (--odometry->references > 0) {
        account(odometries, odometry);
        return;
    }
    unlink_from(&odometries->unnamed, odometry);
    vxd_odometry_destroy(queue, odometry->odometry);
    atomic_fetch_sub(&odometries->n_bytes, odometry->n_bytes);
    vxd_auth_note_bytes(odometries->auth, odometry->owner, odometry->n_bytes, 0);
    free(odometry);
}

void vxd_odometries_remove(struct vxd_odometries *odometries, struct vxd_queue *queue,
                           struct vxd_named_odometry *odometry)
{
    unlink_from(&odometries->first, odometry);
    odometry->next = odometries->unnamed;
    odometries->unnamed = odometry;
    atomic_fetch_sub(&odometries->n_odometries, 1);
    vxd_named_odometry_drop(odometries, queue, odometry);
    find_next_reap(odometries);
}

void vxd_odometries_destroy(struct vxd_odometries *odometries)
{
    if (odometries == NULL) {
        return;
    }
    while (odometries->first != NULL) {
        vxd_odometries_remove(odometries, odometries->queue, odometries->first);
    }
    vxd_queue_destroy(odometries->queue);
    free(odometries);
}

void vxd_odometries_reap(struct vxd_odometries *odometries, struct vxd_queue *queue,
                         int64_t now_ns)
{
    struct vxd_named_odometry *next;

    if (now_ns < atomic_load(&odometries->next_reap_ns)) {
        return;
    }
    for (struct vxd_named_odometry *o = odometries->first; o != NULL; o = next) {
        next = o->next;
        if (o->references > 1) { /* a request holds it */
            o->used_ns = now_ns;
        } else if (o->ttl_ns > 0 && o->used_ns + o->ttl_ns <= now_ns) {
            vxd_log(VXD_LOG_INFO, "odometry dropped: nobody used it for its ttl_s",
                    "odometry", o->name, "owner", o->owner);
            vxd_odometries_remove(odometries, queue, o);
        }
    }
    find_next_reap(odometries);
}

int64_t vxd_odometries_next_reap_ns(const struct vxd_odometries *odometries)
{
    return atomic_load(&odometries->next_reap_ns);
}

void vxd_odometries_get_usage(const struct vxd_odometries *odometries,
                              struct vxd_odometries_usage *out)
{
    out->n_odometries = atomic_load(&odometries->n_odometries);
    out->n_bytes = atomic_load(&odometries->n_bytes);
}
