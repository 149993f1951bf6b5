// SPDX-License-Identifier: Apache-2.0
/* What watchers see of things that have versions: the newest one of each, names that are gone, and that
 * something has changed. Changes of all things are numbered, and each thing has the number of its last
 * one, so a watcher of all of them needs one number to go on from. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/registry/named/named_internal.h"

uint64_t vxd_named_version(const struct vxd_named *named)
{
    const struct vxd_noun_calls *calls = named->names->calls;

    return calls->version != NULL ? calls->version(named) : 0;
}

static struct vxd_named_head head_of(const struct vxd_named *named)
{
    struct vxd_named_head head = {.generation = named->generation,
                                  .version = named->is_named ? named->version : 0,
                                  .changed_unix_ns = named->changed_unix_ns,
                                  .changed = named->changed};

    memcpy(head.name, named->terms.name, sizeof head.name);
    return head;
}

void vxd_named_number_change(struct vxd_named *named)
{
    struct vxd_names *names = named->names;

    named->changed = ++names->last_change;
    named->changed_unix_ns = vxd_clock_unix_ns();
    if (!named->is_named) {
        names->gone[names->n_gone++ % VXD_NAMES_GONE] = head_of(named);
    }
}

void vxd_named_notify(const struct vxd_named *named)
{
    const struct vxd_names *names = named->names;

    if (names->listener != NULL) {
        names->listener(names->listener_context, named->terms.name);
    }
}

void vxd_names_set_listener(struct vxd_names *names, vxd_names_changed_fn changed,
                            void *context)
{
    names->listener = changed;
    names->listener_context = context;
}

bool vxd_names_get_head(struct vxd_names *names, const char *name,
                        struct vxd_named_head *out)
{
    const struct vxd_named *named;

    (void)pthread_mutex_lock(&names->mutex);
    named = vxd_names_peek(names, name);
    if (named != NULL) {
        *out = head_of(named);
    }
    (void)pthread_mutex_unlock(&names->mutex);
    return named != NULL;
}

uint64_t vxd_names_last_change(struct vxd_names *names)
{
    uint64_t last;

    (void)pthread_mutex_lock(&names->mutex);
    last = names->last_change;
    (void)pthread_mutex_unlock(&names->mutex);
    return last;
}

static int compare_changes(const void *a, const void *b)
{
    const struct vxd_named_head *x = a;
    const struct vxd_named_head *y = b;

    return (x->changed > y->changed) - (x->changed < y->changed);
}

/* Whether every name that is gone since is remembered. The mutex is held. */
static bool remembers(const struct vxd_names *names, uint64_t after)
{
    return names->n_gone <= VXD_NAMES_GONE ||
           names->gone[names->n_gone % VXD_NAMES_GONE].changed <= after;
}

/* Whether a name that is gone was given again, or is gone a second time. The mutex is held. */
static bool came_again(const struct vxd_names *names, uint64_t n_kept,
                       const struct vxd_named_head *gone)
{
    for (uint64_t i = 0; i < n_kept; i++) {
        if (names->gone[i].changed > gone->changed &&
            strcmp(names->gone[i].name, gone->name) == 0) {
            return true;
        }
    }
    return vxd_names_peek(names, gone->name) != NULL;
}

/* The mutex is held; the array has capacity for all. */
static size_t copy_after(const struct vxd_names *names, uint64_t after, bool is_complete,
                         struct vxd_named_head *out)
{
    uint64_t n_kept = names->n_gone < VXD_NAMES_GONE ? names->n_gone : VXD_NAMES_GONE;
    size_t n = 0;

    for (const struct vxd_named *at = names->first; at != NULL; at = at->next) {
        if (is_complete || at->changed > after) {
            out[n++] = head_of(at);
        }
    }
    for (uint64_t i = 0; i < n_kept && !is_complete; i++) {
        if (names->gone[i].changed > after &&
            !came_again(names, n_kept, &names->gone[i])) {
            out[n++] = names->gone[i];
        }
    }
    return n;
}

enum vxd_status vxd_names_copy_heads(struct vxd_names *names, uint64_t after,
                                     struct vxd_named_head **out, size_t *n,
                                     bool *is_complete, uint64_t *last,
                                     struct vxd_err *err)
{
    size_t capacity;

    (void)pthread_mutex_lock(&names->mutex);
    capacity = atomic_load(&names->n) + VXD_NAMES_GONE;
    *out = malloc(capacity * sizeof **out);
    if (*out != NULL) {
        *is_complete = after == 0 || !remembers(names, after);
        *n = copy_after(names, after, *is_complete, *out);
        *last = names->last_change;
    }
    (void)pthread_mutex_unlock(&names->mutex);
    if (*out == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for the heads of %zu %s", capacity,
                        names->calls->many);
    }
    qsort(*out, *n, sizeof **out, compare_changes);
    return VXD_OK;
}
