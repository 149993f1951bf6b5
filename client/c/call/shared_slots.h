// SPDX-License-Identifier: Apache-2.0
/* Memory that a client shares with a daemon of this machine (server/transport/shared/shared.h):
 * large requests are written into it and large replies read from it, so that they do not cross
 * the socket. It is divided into slots, one a call. */
#ifndef VXD_CLIENT_C_CALL_SHARED_SLOTS_H
#define VXD_CLIENT_C_CALL_SHARED_SLOTS_H

#include "proto/base/base.h"
#include "proto/wire/wire.h"

/* One region, registered on a connection of its own. It lives until it is closed and all of its
 * slots were given back. */
struct vxd_shared_memory;

struct vxd_shared_slot {
    struct vxd_shared_memory *memory;
    size_t
        offset; /* in the region: n_bytes for a request, then n_reply_bytes for its reply */
    size_t n_bytes;
    size_t n_reply_bytes;
    struct vxd_shared_slot *next;
};

/* Makes a region of n_bytes and registers it at url's daemon, which may take a second.
 * errors  UNAVAILABLE         not an ipc URL, nobody listens there, or no answer
 *         RESOURCE_EXHAUSTED  no memory; as the daemon answers */
enum vxd_status vxd_shared_open(const char *url, const char *token, size_t n_bytes,
                                struct vxd_shared_memory **out, struct vxd_err *err);
/* Ends the registration; slots in use stay valid. NULL is fine. */
void vxd_shared_close(struct vxd_shared_memory *memory);

/* Whether the daemon still has it. */
bool vxd_shared_stands(struct vxd_shared_memory *memory);
/* VXD_SHARED_ID_BYTES. */
const uint8_t *vxd_shared_id(const struct vxd_shared_memory *memory);

/* Finds a free place; NULL where there is none. */
struct vxd_shared_slot *vxd_shared_slot_take(struct vxd_shared_memory *memory,
                                             size_t n_bytes, size_t n_reply_bytes);
uint8_t *vxd_shared_slot_request(const struct vxd_shared_slot *slot);
uint8_t *vxd_shared_slot_reply(const struct vxd_shared_slot *slot);
/* The place can be used again. NULL is fine. */
void vxd_shared_slot_give(struct vxd_shared_slot *slot);
/* The daemon may still write there: the place is not used again. */
void vxd_shared_slot_abandon(struct vxd_shared_slot *slot);

#endif
