// SPDX-License-Identifier: Apache-2.0
/* Memory that a client of this machine shares with the daemon, so that large requests and
 * replies do not cross a socket. nng passes no file descriptors; therefore each ipc socket PATH
 * has a second one beside it, PATH.shm (SOCK_SEQPACKET). A client connects there and sends a
 * struct vxd_shared_hello with one descriptor, of a memfd; the answer is a struct
 * vxd_shared_answer with the region's id. The region lives as long as that connection and the
 * requests that use it.
 *
 * A request over ipc then names the region in its header (SharedBody in rpc.proto): its body
 * lies there, and its reply's body goes there.
 *
 * The client may write into its memory at any time. So a body is copied once into the daemon's
 * own memory before anything of it is read, and nothing that was written for a reply is read
 * again. The memfd is sealed against shrinking and growing, since touching memory that is gone
 * would end the process. */
#ifndef VXD_SERVER_TRANSPORT_SHARED_SHARED_H
#define VXD_SERVER_TRANSPORT_SHARED_SHARED_H

#include "proto/wire/wire.h"
#include "server/instance/instance.h"

/* The regions of all clients, and the thread that takes and drops them. */
struct vxd_shared;

/* A client's memory, held by whoever uses it. */
struct vxd_shared_region;

/* Starts the thread. It takes the listening sockets, non-blocking; n up to
 * VXD_CONFIG_MAX_LISTEN. On failure they are closed.
 * errors  RESOURCE_EXHAUSTED  no memory, thread or descriptor */
enum vxd_status vxd_shared_start(struct vxd_server *server, const int *take_fds, size_t n,
                                 struct vxd_shared **out, struct vxd_err *err);

/* Closes all connections. Regions that are held live on; nobody may call vxd_shared_hold any
 * more. NULL is fine. */
void vxd_shared_stop(struct vxd_shared *shared);

/* Finds the region that a user registered and holds it.
 * errors  FAILED_PRECONDITION  none with this id of this user: its client has to register anew */
enum vxd_status vxd_shared_hold(struct vxd_shared *shared, const uint8_t *id,
                                size_t n_id_bytes, int64_t uid,
                                struct vxd_shared_region **out, struct vxd_err *err);
void vxd_shared_drop(struct vxd_shared_region *region);

/* The memory at [offset, offset + n_bytes) of a region; NULL where that does not lie within it. */
uint8_t *vxd_shared_bytes(const struct vxd_shared_region *region, uint64_t offset,
                          uint64_t n_bytes);

#endif
