// SPDX-License-Identifier: Apache-2.0
/* Things are in one list in order of their names: there are few of them, and a walk is short beside a
 * request. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/registry/named/named_internal.h"

static void free_names(struct vxd_names *names)
{
    if (names->calls->free_own != NULL) {
        names->calls->free_own(names->own);
    }
    free(names);
}

enum vxd_status vxd_names_create(struct vxd_server *server,
                                 const struct vxd_names_options *options,
                                 struct vxd_names **out, struct vxd_err *err)
{
    const struct vxd_noun_calls *calls = options->calls;
    struct vxd_names *names = calloc(1, sizeof *names);
    enum vxd_status status = VXD_OK;

    if (names == NULL || pthread_mutex_init(&names->mutex, NULL) != 0) {
        free(names);
        if (calls->free_own != NULL) {
            calls->free_own(options->take_own);
        }
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the %s",
                        calls->many);
    }
    names->calls = calls;
    names->own = options->take_own;
    names->registry = server->registry;
    names->auth = server->auth;
    names->limit_bytes = options->limit_bytes;
    names->token_limit_bytes = options->token_limit_bytes > 0 ? options->token_limit_bytes
                                                              : options->limit_bytes;
    atomic_init(&names->next_reap_ns, INT64_MAX);
    if (calls->uses_device) {
        status = vxd_queue_create(server->context, &names->queue, err);
    }
    if (status != VXD_OK) {
        (void)pthread_mutex_destroy(&names->mutex);
        free_names(names);
        return status;
    }
    if (calls->durable != NULL) {
        vxd_registry_add(server->registry, calls->durable->kind, names);
    }
    *out = names;
    return VXD_OK;
}

void *vxd_names_own(const struct vxd_names *names)
{
    return names->own;
}

struct vxd_queue *vxd_names_queue(const struct vxd_names *names)
{
    return names->queue;
}

uint64_t vxd_names_limit_bytes(const struct vxd_names *names)
{
    return names->limit_bytes;
}

bool vxd_names_is_recovering(const struct vxd_names *names)
{
    return names->is_recovering;
}

/* --- finding ------------------------------------------------------------------------------------ */

struct vxd_named *vxd_names_peek(const struct vxd_names *names, const char *name)
{
    struct vxd_named *named = names->first;

    while (named != NULL && strcmp(named->terms.name, name) != 0) {
        named = named->next;
    }
    return named;
}

struct vxd_named *vxd_names_find(struct vxd_names *names, const char *name)
{
    struct vxd_named *named = vxd_names_peek(names, name);

    if (named != NULL) {
        named->used_ns = vxd_clock_ns();
    }
    return named;
}

struct vxd_named *vxd_names_next(const struct vxd_names *names,
                                 const struct vxd_named *named)
{
    return named != NULL ? named->next : names->first;
}

bool vxd_names_look(struct vxd_names *names, const char *name,
                    void (*look)(const struct vxd_named *named, void *user), void *user)
{
    const struct vxd_named *named;

    (void)pthread_mutex_lock(&names->mutex);
    named = vxd_names_peek(names, name);
    if (named != NULL) {
        look(named, user);
    }
    (void)pthread_mutex_unlock(&names->mutex);
    return named != NULL;
}

void vxd_names_look_at_all(struct vxd_names *names,
                           void (*look)(const struct vxd_named *named, void *user),
                           void *user)
{
    (void)pthread_mutex_lock(&names->mutex);
    for (const struct vxd_named *n = names->first; n != NULL; n = n->next) {
        look(n, user);
    }
    (void)pthread_mutex_unlock(&names->mutex);
}

struct vxd_named *vxd_names_hold(struct vxd_names *names, const char *name)
{
    struct vxd_named *named;

    (void)pthread_mutex_lock(&names->mutex);
    named = vxd_names_peek(names, name);
    if (named != NULL) {
        named->references++;
    }
    (void)pthread_mutex_unlock(&names->mutex);
    return named;
}

enum vxd_status vxd_names_hold_all(struct vxd_names *names, struct vxd_named ***out,
                                   size_t *n, struct vxd_err *err)
{
    struct vxd_named **held;

    *n = 0;
    (void)pthread_mutex_lock(&names->mutex);
    held = calloc(atomic_load(&names->n) + 1, sizeof(struct vxd_named *));
    for (struct vxd_named *at = names->first; held != NULL && at != NULL; at = at->next) {
        at->references++;
        held[(*n)++] = at;
    }
    (void)pthread_mutex_unlock(&names->mutex);
    *out = held;
    return held != NULL ? VXD_OK
                        : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                   "no memory for a list of %s", names->calls->many);
}

/* The mutex is held. */
static void find_next_reap(struct vxd_names *names)
{
    int64_t next = INT64_MAX;

    for (const struct vxd_named *n = names->first; n != NULL; n = n->next) {
        if (n->terms.ttl_ns > 0 && n->used_ns + n->terms.ttl_ns < next) {
            next = n->used_ns + n->terms.ttl_ns;
        }
    }
    atomic_store(&names->next_reap_ns, next);
}

/* --- making and dropping ------------------------------------------------------------------------ */

/* Counts the owner's things of other names. */
static size_t count_others(struct vxd_names *names, const struct vxd_named_terms *terms)
{
    size_t n = 0;

    (void)pthread_mutex_lock(&names->mutex);
    for (const struct vxd_named *at = names->first; at != NULL; at = at->next) {
        n += strcmp(at->terms.owner, terms->owner) == 0 &&
                     strcmp(at->terms.name, terms->name) != 0
                 ? 1
                 : 0;
    }
    (void)pthread_mutex_unlock(&names->mutex);
    return n;
}

enum vxd_status vxd_named_begin(struct vxd_names *names,
                                const struct vxd_named_terms *terms,
                                struct vxd_named **out, struct vxd_err *err)
{
    const struct vxd_noun_calls *calls = names->calls;
    struct vxd_named *named = NULL;
    enum vxd_status status = VXD_OK;

    if (atomic_load(&names->n) >= calls->max && !names->is_recovering) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "there are %zu %s already",
                         calls->max, calls->many));
    }
    if (calls->has_quota && !names->is_recovering) {
        VXD_TRY(vxd_auth_check_held(names->auth, terms->owner, calls->quota,
                                    count_others(names, terms), err));
    }
    named = calloc(1, calls->n_bytes);
    if (named == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a %s",
                         calls->one));
    }
    named->names = names;
    named->terms = *terms;
    named->created_unix_ns = vxd_clock_unix_ns();
    named->used_ns = vxd_clock_ns();
    named->generation =
        (uint64_t)named->created_unix_ns + atomic_fetch_add(&names->n_made, 1);
    *out = named;
out:
    return status;
}

static void unlist(struct vxd_named *named)
{
    named->next = named->names->unnamed;
    named->names->unnamed = named;
}

void vxd_named_enlist(struct vxd_named *named)
{
    struct vxd_names *names = named->names;

    (void)pthread_mutex_lock(&names->mutex);
    named->references = 1;
    unlist(named);
    (void)pthread_mutex_unlock(&names->mutex);
    vxd_named_account(named);
}

/* False where it is not in that list. */
static bool unlink_from(struct vxd_named **list, const struct vxd_named *named)
{
    while (*list != NULL && *list != named) {
        list = &(*list)->next;
    }
    if (*list == NULL) {
        return false;
    }
    *list = named->next;
    return true;
}

/* Makes a thing one of those without a name, if it has one. The mutex is held. */
static bool take_name(struct vxd_named *named)
{
    struct vxd_names *names = named->names;

    if (!unlink_from(&names->first, named)) {
        return false;
    }
    unlist(named);
    named->is_named = false;
    vxd_named_number_change(named);
    atomic_fetch_sub(&names->n, 1);
    atomic_fetch_sub(&names->n_durable, named->terms.durable ? 1 : 0);
    find_next_reap(names);
    return true;
}

/* What follows once the name is taken: nobody but holders has the thing. */
static void end_name(struct vxd_named *named, struct vxd_queue *queue)
{
    if (named->names->calls->unnamed != NULL) {
        named->names->calls->unnamed(named);
    }
    vxd_named_notify(named);
    vxd_named_drop(named, queue);
}

bool vxd_named_replace(struct vxd_named *named, struct vxd_queue *queue)
{
    struct vxd_names *names = named->names;
    struct vxd_named **at = &names->first;
    uint64_t version = vxd_named_version(named);
    struct vxd_named *old;

    (void)pthread_mutex_lock(&names->mutex);
    old = vxd_names_peek(names, named->terms.name);
    if (old == named) {
        (void)pthread_mutex_unlock(&names->mutex);
        return false;
    }
    if (old != NULL) {
        (void)take_name(old);
    }
    (void)unlink_from(&names->unnamed, named);
    named->references++;
    named->used_ns = vxd_clock_ns(); /* making it may have taken long */
    while (*at != NULL && strcmp((*at)->terms.name, named->terms.name) < 0) {
        at = &(*at)->next;
    }
    named->next = *at;
    *at = named;
    named->is_named = true;
    named->version = version;
    vxd_named_number_change(named);
    atomic_fetch_add(&names->n, 1);
    atomic_fetch_add(&names->n_durable, named->terms.durable ? 1 : 0);
    find_next_reap(names);
    (void)pthread_mutex_unlock(&names->mutex);
    if (old != NULL) {
        end_name(old, queue);
    }
    vxd_named_notify(named);
    return old != NULL;
}

void vxd_named_publish(struct vxd_named *named)
{
    (void)vxd_named_replace(named, named->names->queue); /* the name is free */
}

void vxd_named_hold(struct vxd_named *named)
{
    (void)pthread_mutex_lock(&named->names->mutex);
    named->references++;
    (void)pthread_mutex_unlock(&named->names->mutex);
}

/* Frees one that is in no list any more. */
static void destroy(struct vxd_named *named, struct vxd_queue *queue)
{
    struct vxd_names *names = named->names;

    names->calls->clear(named, queue);
    atomic_fetch_sub(&names->n_bytes, named->n_bytes);
    vxd_auth_note_bytes(names->auth, named->terms.owner, named->n_bytes, 0);
    free(named);
}

static void drop_reference(struct vxd_named *named, struct vxd_queue *queue, bool is_use)
{
    struct vxd_names *names = named->names;
    bool is_last;

    (void)pthread_mutex_lock(&names->mutex);
    if (is_use) {
        named->used_ns = vxd_clock_ns();
    }
    is_last = --named->references == 0;
    if (is_last) {
        (void)unlink_from(&names->unnamed, named);
    }
    (void)pthread_mutex_unlock(&names->mutex);
    if (is_last) {
        destroy(named, queue);
    }
}

void vxd_named_drop(struct vxd_named *named, struct vxd_queue *queue)
{
    drop_reference(named, queue, true);
}

void vxd_named_let_go(struct vxd_named *named, struct vxd_queue *queue)
{
    drop_reference(named, queue, false);
}

void vxd_named_remove(struct vxd_named *named, struct vxd_queue *queue)
{
    bool had_name;

    (void)pthread_mutex_lock(&named->names->mutex);
    had_name = take_name(named);
    (void)pthread_mutex_unlock(&named->names->mutex);
    if (had_name) {
        end_name(named, queue);
    }
}

void vxd_names_destroy(struct vxd_names *names)
{
    if (names == NULL) {
        return;
    }
    while (names->first != NULL) {
        vxd_named_remove(names->first, names->queue);
    }
    while (names->unnamed != NULL) {
        struct vxd_named *named = names->unnamed;

        names->unnamed = named->next;
        destroy(named, names->queue);
    }
    vxd_queue_destroy(names->queue);
    (void)pthread_mutex_destroy(&names->mutex);
    free_names(names);
}

/* --- times to live ------------------------------------------------------------------------------ */

void vxd_names_reap(struct vxd_names *names, struct vxd_queue *queue, int64_t now_ns)
{
    struct vxd_named *next;

    if (now_ns < atomic_load(&names->next_reap_ns)) {
        return;
    }
    for (struct vxd_named *n = names->first; n != NULL; n = next) {
        next = n->next;
        if (n->references > 1) { /* a long request holds it between two stages */
            n->used_ns = now_ns;
        } else if (n->terms.ttl_ns > 0 && n->used_ns + n->terms.ttl_ns <= now_ns) {
            names->calls->log(VXD_REGISTRY_EXPIRED, n->terms.name, n->terms.owner);
            vxd_named_remove(n, queue);
        }
    }
    (void)pthread_mutex_lock(&names->mutex);
    find_next_reap(names); /* some were used meanwhile */
    (void)pthread_mutex_unlock(&names->mutex);
}

int64_t vxd_names_next_reap_ns(const struct vxd_names *names)
{
    return atomic_load(&names->next_reap_ns);
}

void vxd_names_get_usage(const struct vxd_names *names, struct vxd_names_usage *out)
{
    const struct vxd_durable_calls *durable = names->calls->durable;

    *out = (struct vxd_names_usage){.n = atomic_load(&names->n),
                                    .n_bytes = atomic_load(&names->n_bytes),
                                    .limit_bytes = names->limit_bytes,
                                    .n_durable = atomic_load(&names->n_durable)};
    if (durable != NULL) {
        vxd_registry_count_snapshots(names->registry, durable->kind, &out->n_snapshots,
                                     &out->n_failed_snapshots);
    }
}
