// SPDX-License-Identifier: Apache-2.0
/* What stays of a forgotten client: the highest sequence that took effect. A late
 * repetition of that request, or of an earlier one, is refused instead of being done
 * again. Watermarks are in a hash table and, of each owner, in a list ordered by when their clients
 * were forgotten; the oldest ones are dropped when an owner has VXD_ONCE_WATERMARKS. Each client
 * gets its watermark when it is first seen, so forgetting it needs no memory. */
#include <stdlib.h>
#include <string.h>

#include "server/request/exactly_once_internal.h"

static bool is_of(const struct vxd_once_watermark *watermark, const char *principal,
                  const char *client_id)
{
    return strcmp(watermark->names, principal) == 0 &&
           strcmp(watermark->names + strlen(watermark->names) + 1, client_id) == 0;
}

static struct vxd_once_watermark **bucket_of(struct vxd_once *once, const char *principal,
                                             const char *client_id)
{
    return &once->watermarks[vxd_once_hash(principal, client_id) %
                             VXD_ONCE_WATERMARK_BUCKETS];
}

static void leave(struct vxd_once *once, struct vxd_once_watermark *watermark)
{
    struct vxd_once_owner *owner = watermark->owner;
    struct vxd_once_watermark **at = bucket_of(
        once, watermark->names, watermark->names + strlen(watermark->names) + 1);

    while (*at != watermark) {
        at = &(*at)->in_bucket;
    }
    *at = watermark->in_bucket;
    *(watermark->newer != NULL ? &watermark->newer->older : &owner->newest_watermark) =
        watermark->older;
    *(watermark->older != NULL ? &watermark->older->newer : &owner->oldest_watermark) =
        watermark->newer;
    owner->n_watermarks--;
    once->n_watermarks--;
}

struct vxd_once_watermark *vxd_once_find_watermark(struct vxd_once *once,
                                                   const char *principal,
                                                   const char *client_id)
{
    struct vxd_once_watermark *watermark = *bucket_of(once, principal, client_id);

    while (watermark != NULL && !is_of(watermark, principal, client_id)) {
        watermark = watermark->in_bucket;
    }
    return watermark;
}

struct vxd_once_watermark *vxd_once_take_watermark(struct vxd_once *once,
                                                   const char *principal,
                                                   const char *client_id)
{
    struct vxd_once_watermark *watermark =
        vxd_once_find_watermark(once, principal, client_id);
    struct vxd_once_owner *owner = vxd_once_find_owner(once, principal);
    size_t n_principal = strlen(principal) + 1;
    size_t n_client_id = strlen(client_id) + 1;

    if (watermark != NULL) {
        leave(once, watermark);
        return watermark;
    }
    watermark =
        owner != NULL ? calloc(1, sizeof *watermark + n_principal + n_client_id) : NULL;
    if (watermark != NULL) {
        watermark->owner = owner;
        memcpy(watermark->names, principal, n_principal);
        memcpy(watermark->names + n_principal, client_id, n_client_id);
    }
    return watermark;
}

void vxd_once_keep_watermark(struct vxd_once *once,
                             struct vxd_once_watermark *take_watermark)
{
    struct vxd_once_owner *owner = take_watermark->owner;
    struct vxd_once_watermark **bucket;

    if (take_watermark->sequence == 0) { /* it used keys only, which have no order */
        free(take_watermark);
        return;
    }
    bucket = bucket_of(once, take_watermark->names,
                       take_watermark->names + strlen(take_watermark->names) + 1);
    take_watermark->in_bucket = *bucket;
    *bucket = take_watermark;
    take_watermark->newer = NULL;
    take_watermark->older = owner->newest_watermark;
    *(owner->newest_watermark != NULL ? &owner->newest_watermark->newer
                                      : &owner->oldest_watermark) = take_watermark;
    owner->newest_watermark = take_watermark;
    once->n_watermarks++;
    if (++owner->n_watermarks > once->max_watermarks) {
        struct vxd_once_watermark *oldest = owner->oldest_watermark;

        leave(once, oldest);
        (void)vxd_once_note_watermark(once, oldest);
        free(oldest);
    }
}

void vxd_once_free_watermarks(struct vxd_once *once)
{
    for (size_t i = 0; i < VXD_ONCE_WATERMARK_BUCKETS; i++) {
        struct vxd_once_watermark *next = once->watermarks[i];

        while (next != NULL) {
            struct vxd_once_watermark *watermark = next;

            next = watermark->in_bucket;
            free(watermark);
        }
    }
}
