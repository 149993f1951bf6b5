// SPDX-License-Identifier: Apache-2.0
/* When a call uses shared memory, and how much of it. */
#include <stdlib.h>
#include <string.h>

#include "client/c/call/client_internal.h"

enum {
    RETRY_MS = 2000,            /* after the daemon refused, or did not answer */
    AUTOMATIC_RETRY_MS = 60000, /* likewise, where nobody has asked for shared memory */
    /* One large call alone is not worth a region, whose pages cost as much as the copies saved. */
    AUTOMATIC_CALLS = 2,
    /* Calls of less time register none, since a daemon that hangs may take two seconds to show it. */
    AUTOMATIC_LEAST_MS = 4000
};

/* Smaller bodies go through the socket as fast. */
#define AUTOMATIC_LEAST_BYTES ((size_t)256 << 10)
#define AUTOMATIC_LEAST_REGION ((size_t)8 << 20)
#define AUTOMATIC_MOST_REGION ((size_t)256 << 20)

void vxd_client_set_shared(struct voxeld_client *client, size_t n_bytes)
{
    static const char ipc[] = "ipc://";
    const char *transport = getenv(VXD_TRANSPORT_VARIABLE);
    struct vxd_client_shared *shared = &client->shared;

    shared->is_automatic = n_bytes == 0 &&
                           strncmp(client->url, ipc, sizeof ipc - 1) == 0 &&
                           (transport == NULL || transport[0] == '\0');
    shared->n_bytes = n_bytes != VOXELD_SHARES_NOTHING ? n_bytes : 0;
    shared->is_on = shared->is_automatic || shared->n_bytes > 0;
}

/* What is reserved for a reply: somewhat more than the largest one so far. */
static size_t estimate_reply(const struct vxd_client_shared *shared, size_t method)
{
    size_t largest = shared->n_reply_bytes[method];

    return largest < VXD_BIG_BLOCK_BYTES ? VXD_BIG_BLOCK_BYTES : largest + largest / 4;
}

/* At most half of the memory, so that one reply that did not fit keeps no later call from the other
 * half. */
static size_t choose_reply_bytes(const struct vxd_client_shared *shared, size_t method)
{
    size_t n_bytes = estimate_reply(shared, method);

    return n_bytes < shared->n_bytes / 2 ? n_bytes : shared->n_bytes / 2;
}

/* Whether a call of this size is better off with shared memory. The mutex is held. */
static bool is_large(const struct vxd_client_shared *shared, size_t method,
                     size_t n_bytes)
{
    size_t least = shared->is_automatic ? AUTOMATIC_LEAST_BYTES : VXD_BIG_BLOCK_BYTES;

    return n_bytes >= least || shared->n_reply_bytes[method] >= least;
}

/* How large the region is to be: large enough for two such calls, since the last one's result is
 * often still in use, and no smaller than it was. The mutex is held. */
static size_t choose_region(const struct vxd_client_shared *shared, size_t method,
                            size_t n_bytes)
{
    size_t n_reply = estimate_reply(shared, method);
    size_t n_region = AUTOMATIC_LEAST_REGION;

    if (!shared->is_automatic) {
        return shared->n_bytes;
    }
    while (n_region < AUTOMATIC_MOST_REGION && n_region / 2 < n_bytes + n_reply) {
        n_region *= 2;
    }
    return n_region > shared->n_bytes ? n_region : shared->n_bytes;
}

static nng_time next_try(const struct vxd_client_shared *shared)
{
    return nng_clock() + (nng_time)(shared->is_automatic ? AUTOMATIC_RETRY_MS : RETRY_MS);
}

/* Closes a region that the daemon does not have any more. The mutex is held. */
static void close_dead(struct vxd_client_shared *shared)
{
    if (shared->memory != NULL && !vxd_shared_stands(shared->memory)) {
        vxd_shared_close(shared->memory);
        shared->memory = NULL;
        shared->retry_at = 0; /* whatever was refused, another daemon may grant it */
    }
}

/* Registers a region of so many bytes, which takes the place of a smaller one once the daemon has
 * granted it. The mutex is held, but not while the daemon is asked: other calls go on meanwhile,
 * with the region that there is or without. */
static void ensure_memory(struct voxeld_client *client, size_t n_region)
{
    struct vxd_client_shared *shared = &client->shared;
    struct vxd_shared_memory *memory;
    enum vxd_status status;

    if ((shared->memory != NULL && n_region <= shared->n_bytes) || shared->is_opening ||
        nng_clock() < shared->retry_at) {
        return;
    }
    shared->is_opening = true;
    (void)pthread_mutex_unlock(&shared->mutex);
    status = vxd_shared_open(client->url, client->token, n_region, &memory, NULL);
    (void)pthread_mutex_lock(&shared->mutex);
    shared->is_opening = false;
    if (status == VXD_OK) {
        vxd_shared_close(shared->memory); /* slots that are in use keep it */
        shared->memory = memory;
        shared->n_bytes = n_region;
        return;
    }
    shared->retry_at = next_try(shared);
    if (shared->is_automatic && shared->memory == NULL) {
        shared->n_bytes = 0; /* the next try asks for no more than its call needs */
    }
}

struct vxd_shared_slot *vxd_client_take_slot(struct voxeld_client *client,
                                             Voxeld__V1__Request__MethodCase method,
                                             size_t n_bytes, uint32_t timeout_ms)
{
    struct vxd_client_shared *shared = &client->shared;
    size_t number = (size_t)method;
    struct vxd_shared_slot *slot = NULL;

    if (!shared->is_on || number >= VXD_SHARED_METHODS) {
        return NULL;
    }
    (void)pthread_mutex_lock(&shared->mutex);
    if (is_large(shared, number, n_bytes) &&
        (!shared->is_automatic || ++shared->n_large >= AUTOMATIC_CALLS)) {
        close_dead(shared);
        if (!shared->is_automatic || timeout_ms >= AUTOMATIC_LEAST_MS) {
            ensure_memory(client, choose_region(shared, number, n_bytes));
        }
        if (shared->memory != NULL) {
            slot = vxd_shared_slot_take(shared->memory, n_bytes,
                                        choose_reply_bytes(shared, number));
        }
    }
    (void)pthread_mutex_unlock(&shared->mutex);
    return slot;
}

void vxd_client_note_reply(struct voxeld_client *client,
                           Voxeld__V1__Request__MethodCase method, size_t n_bytes)
{
    struct vxd_client_shared *shared = &client->shared;
    size_t number = (size_t)method;

    if (!shared->is_on || number >= VXD_SHARED_METHODS) {
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
        shared->retry_at = waits ? next_try(shared) : 0;
    }
    (void)pthread_mutex_unlock(&shared->mutex);
}
