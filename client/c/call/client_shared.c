// SPDX-License-Identifier: Apache-2.0
/* When a call uses shared memory, and how much of it. */
#include "client/c/call/client_internal.h"

enum {
    RETRY_MS = 2000 /* after the daemon refused, or did not answer */
};

/* What is reserved for a reply: somewhat more than the largest one so far, at most half of the
 * memory, so that one reply that did not fit keeps no later call from the other half. */
static size_t choose_reply_bytes(const struct vxd_client_shared *shared, size_t method)
{
    size_t largest = shared->n_reply_bytes[method];
    size_t n_bytes =
        largest < VXD_BIG_BLOCK_BYTES ? VXD_BIG_BLOCK_BYTES : largest + largest / 4;

    return n_bytes < shared->n_bytes / 2 ? n_bytes : shared->n_bytes / 2;
}

/* Registers a region where there is none. The mutex is held. */
static void ensure_memory(struct voxeld_client *client)
{
    struct vxd_client_shared *shared = &client->shared;

    if (shared->memory != NULL && !vxd_shared_stands(shared->memory)) {
        vxd_shared_close(shared->memory);
        shared->memory = NULL;
    }
    if (shared->memory == NULL && nng_clock() >= shared->retry_at &&
        vxd_shared_open(client->url, client->token, shared->n_bytes, &shared->memory,
                        NULL) != VXD_OK) {
        shared->retry_at = nng_clock() + RETRY_MS;
    }
}

struct vxd_shared_slot *vxd_client_take_slot(struct voxeld_client *client,
                                             Voxeld__V1__Request__MethodCase method,
                                             size_t n_bytes)
{
    struct vxd_client_shared *shared = &client->shared;
    size_t number = (size_t)method;
    struct vxd_shared_slot *slot = NULL;

    if (shared->n_bytes == 0 || number >= VXD_SHARED_METHODS) {
        return NULL;
    }
    (void)pthread_mutex_lock(&shared->mutex);
    if (n_bytes >= VXD_BIG_BLOCK_BYTES ||
        shared->n_reply_bytes[number] >= VXD_BIG_BLOCK_BYTES) {
        ensure_memory(client);
    }
    if (shared->memory != NULL &&
        (n_bytes >= VXD_BIG_BLOCK_BYTES ||
         shared->n_reply_bytes[number] >= VXD_BIG_BLOCK_BYTES)) {
        slot = vxd_shared_slot_take(shared->memory, n_bytes,
                                    choose_reply_bytes(shared, number));
    }
    (void)pthread_mutex_unlock(&shared->mutex);
    return slot;
}

void vxd_client_note_reply(struct voxeld_client *client,
                           Voxeld__V1__Request__MethodCase method, size_t n_bytes)
{
    struct vxd_client_shared *shared = &client->shared;
    size_t number = (size_t)method;

    if (shared->n_bytes == 0 || number >= VXD_SHARED_METHODS) {
        return;
    }
    (void)pthread_mutex_lock(&shared->mutex);
    if (n_bytes > shared->n_reply_bytes[number]) {
        shared->n_reply_bytes[number] = n_bytes;
    }
    (void)pthread_mutex_unlock(&shared->mutex);
}

void vxd_client_drop_shared(struct voxeld_client *client,
                            const struct vxd_shared_memory *memory, bool waits)
{
    struct vxd_client_shared *shared = &client->shared;

    (void)pthread_mutex_lock(&shared->mutex);
    if (shared->memory != NULL && (memory == NULL || memory == shared->memory)) {
        vxd_shared_close(shared->memory);
        shared->memory = NULL;
        shared->retry_at = waits ? nng_clock() + RETRY_MS : 0;
    }
    (void)pthread_mutex_unlock(&shared->mutex);
}
