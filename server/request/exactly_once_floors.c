// SPDX-License-Identifier: Apache-2.0
/* What is left of clients whose outcomes went to make place for others': the highest sequence that
 * took effect, so that a late repetition of it, or of one below, is refused and not done again.
 * They lie in a hash table and in a list by when their clients went; those that went first go for
 * good when there are VXD_ONCE_FLOORS. A client has its own from the beginning, so that it needs no
 * memory to go. */
#include <stdlib.h>
#include <string.h>

#include "server/request/exactly_once_internal.h"

static bool is_of(const struct vxd_once_floor *floor, const char *principal,
                  const char *client_id)
{
    return strcmp(floor->names, principal) == 0 &&
           strcmp(floor->names + strlen(floor->names) + 1, client_id) == 0;
}

static struct vxd_once_floor **bucket_of(struct vxd_once *once, const char *principal,
                                         const char *client_id)
{
    return &once->floors[vxd_once_hash(principal, client_id) % VXD_ONCE_FLOOR_BUCKETS];
}

static void leave(struct vxd_once *once, struct vxd_once_floor *floor)
{
    struct vxd_once_floor **at =
        bucket_of(once, floor->names, floor->names + strlen(floor->names) + 1);

    while (*at != floor) {
        at = &(*at)->in_bucket;
    }
    *at = floor->in_bucket;
    *(floor->newer != NULL ? &floor->newer->older : &once->newest_floor) = floor->older;
    *(floor->older != NULL ? &floor->older->newer : &once->oldest_floor) = floor->newer;
    once->n_floors--;
}

struct vxd_once_floor *vxd_once_find_floor(struct vxd_once *once, const char *principal,
                                           const char *client_id)
{
    struct vxd_once_floor *floor = *bucket_of(once, principal, client_id);

    while (floor != NULL && !is_of(floor, principal, client_id)) {
        floor = floor->in_bucket;
    }
    return floor;
}

struct vxd_once_floor *vxd_once_take_floor(struct vxd_once *once, const char *principal,
                                           const char *client_id)
{
    struct vxd_once_floor *floor = vxd_once_find_floor(once, principal, client_id);
    size_t n_principal = strlen(principal) + 1;
    size_t n_client_id = strlen(client_id) + 1;

    if (floor != NULL) {
        leave(once, floor);
        return floor;
    }
    floor = calloc(1, sizeof *floor + n_principal + n_client_id);
    if (floor != NULL) {
        memcpy(floor->names, principal, n_principal);
        memcpy(floor->names + n_principal, client_id, n_client_id);
    }
    return floor;
}

void vxd_once_keep_floor(struct vxd_once *once, struct vxd_once_floor *take_floor)
{
    struct vxd_once_floor **bucket;

    if (take_floor->sequence == 0) { /* it had keys alone, which have no order */
        free(take_floor);
        return;
    }
    bucket = bucket_of(once, take_floor->names,
                       take_floor->names + strlen(take_floor->names) + 1);
    take_floor->in_bucket = *bucket;
    *bucket = take_floor;
    take_floor->newer = NULL;
    take_floor->older = once->newest_floor;
    *(once->newest_floor != NULL ? &once->newest_floor->newer : &once->oldest_floor) =
        take_floor;
    once->newest_floor = take_floor;
    if (++once->n_floors > once->max_floors) {
        struct vxd_once_floor *oldest = once->oldest_floor;

        leave(once, oldest);
        (void)vxd_once_note_floor(once, oldest);
        free(oldest);
    }
}

void vxd_once_free_floors(struct vxd_once *once)
{
    struct vxd_once_floor *next = once->oldest_floor;

    while (next != NULL) {
        struct vxd_once_floor *floor = next;

        next = floor->newer;
        free(floor);
    }
}
