// SPDX-License-Identifier: Apache-2.0
/* How much memory things may take. */
#include <inttypes.h>
#include <string.h>

#include "server/registry/named/named_internal.h"

static uint64_t bytes_of_owner(const struct vxd_named *list, const char *owner)
{
    uint64_t n_bytes = 0;

    for (; list != NULL; list = list->next) {
        n_bytes += strcmp(list->terms.owner, owner) == 0 ? list->n_bytes : 0;
    }
    return n_bytes;
}

/* What the limits leave a thing, including what it has already: the least of them, and which it is. */
static struct vxd_owner_bytes find_limit(const struct vxd_names *names,
                                         const struct vxd_named_terms *terms,
                                         const struct vxd_named *named)
{
    uint64_t own = named != NULL ? named->n_bytes : 0;
    uint64_t others = atomic_load(&names->n_bytes) - own;
    struct vxd_owner_bytes all = {
        .left = names->limit_bytes > others ? names->limit_bytes - others : 0,
        .limit = names->limit_bytes,
        .key = names->calls->bytes_key};
    struct vxd_owner_bytes owners;
    uint64_t theirs;

    if (names->calls->token_bytes_key == NULL) {
        return all;
    }
    theirs = bytes_of_owner(names->first, terms->owner) +
             bytes_of_owner(names->unnamed, terms->owner) - own;
    owners =
        vxd_auth_allow_bytes(names->auth, terms->owner, own, theirs,
                             names->token_limit_bytes, names->calls->token_bytes_key);
    return owners.left < all.left ? owners : all;
}

size_t vxd_names_allowance(const struct vxd_names *names,
                           const struct vxd_named_terms *terms,
                           const struct vxd_named *named)
{
    uint64_t allowed;

    if (names->is_recovering) {
        return 0; /* the context's budget */
    }
    allowed = find_limit(names, terms, named).left;
    if (terms->max_bytes > 0 && terms->max_bytes < allowed) {
        allowed = terms->max_bytes;
    }
    return (size_t)(allowed > 0 ? allowed : 1); /* 0 would mean no limit */
}

void vxd_names_explain(const struct vxd_names *names, const struct vxd_named_terms *terms,
                       const struct vxd_named *named, struct vxd_err *err)
{
    struct vxd_owner_bytes limit = find_limit(names, terms, named);
    char what[96];

    if (err == NULL || err->code != VXD_RESOURCE_EXHAUSTED ||
        strcmp(err->field, "max_bytes") != 0 ||
        (terms->max_bytes > 0 && terms->max_bytes <= limit.left)) {
        return;
    }
    (void)snprintf(what, sizeof what, "%.*s", (int)strcspn(err->message, ";"),
                   err->message);
    (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                   "%s; %s of %" PRIu64 " leaves it %" PRIu64, what, limit.key,
                   limit.limit, limit.left);
}

enum vxd_status vxd_names_check_copy(const struct vxd_names *names,
                                     const struct vxd_named_terms *terms,
                                     uint64_t n_bytes, struct vxd_err *err)
{
    struct vxd_owner_bytes limit = find_limit(names, terms, NULL);

    return n_bytes <= limit.left
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "the copy takes %" PRIu64 " bytes; %s of %" PRIu64
                          " leaves it %" PRIu64,
                          n_bytes, limit.key, limit.limit, limit.left);
}

enum vxd_status vxd_named_check_bytes(const struct vxd_named *named, uint64_t n_more,
                                      const char *what, struct vxd_err *err)
{
    return vxd_auth_check_bytes(named->names->auth, named->terms.owner, named->n_bytes,
                                named->n_bytes + n_more, what, err);
}

bool vxd_named_take_bytes(struct vxd_named *named, uint64_t n_bytes, uint64_t *used)
{
    struct vxd_names *names = named->names;
    uint64_t before = named->n_bytes;
    bool is_left;

    (void)pthread_mutex_lock(&names->mutex);
    *used = atomic_load(&names->n_bytes);
    is_left = *used <= names->limit_bytes && n_bytes <= names->limit_bytes - *used;
    if (is_left) {
        atomic_fetch_add(&names->n_bytes, n_bytes);
        named->n_bytes += (size_t)n_bytes;
    }
    (void)pthread_mutex_unlock(&names->mutex);
    if (is_left) {
        vxd_auth_note_bytes(names->auth, named->terms.owner, before, before + n_bytes);
    }
    return is_left;
}

void vxd_named_account(struct vxd_named *named)
{
    struct vxd_names *names = named->names;
    size_t n_bytes = names->calls->count_bytes(named);
    uint64_t version = vxd_named_version(named);
    bool is_seen;

    atomic_fetch_add(&names->n_bytes, n_bytes);
    atomic_fetch_sub(&names->n_bytes, named->n_bytes);
    vxd_auth_note_bytes(names->auth, named->terms.owner, named->n_bytes, n_bytes);
    (void)pthread_mutex_lock(&names->mutex);
    named->n_bytes = n_bytes;
    is_seen = named->is_named && version != named->version;
    named->version = version;
    if (is_seen) {
        vxd_named_number_change(named);
    }
    (void)pthread_mutex_unlock(&names->mutex);
    if (is_seen) {
        vxd_named_notify(named);
    }
}
