// SPDX-License-Identifier: Apache-2.0
/* What a client and the daemon say to each other on the socket PATH.shm beside an ipc socket,
 * where the client shares memory (server/transport/shared/shared.h). Both run on one machine, so
 * numbers have its byte order. One message each way; a SOCK_SEQPACKET keeps their borders. */
#ifndef VXD_PROTO_WIRE_SHARED_MEMORY_H
#define VXD_PROTO_WIRE_SHARED_MEMORY_H

#include <stdint.h>

#define VXD_SHARED_SUFFIX ".shm"
#define VXD_SHARED_MAGIC "VXDSHM1" /* with its 0, eight bytes */
#define VXD_SHARED_ID_BYTES 16
#define VXD_SHARED_TOKEN_BYTES 256
#define VXD_SHARED_MESSAGE_BYTES 240
/* A region's smallest size; sizes are multiples of it. */
#define VXD_SHARED_PAGE_BYTES 4096

/* From the client, with one descriptor as SCM_RIGHTS: a memfd of n_bytes, all of them allocated,
 * sealed with F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL. */
struct vxd_shared_hello {
    char magic[8];
    uint64_t n_bytes;
    char token[VXD_SHARED_TOKEN_BYTES]; /* ends with a 0; "" = none */
};

/* From the daemon. */
struct vxd_shared_answer {
    uint32_t code; /* enum vxd_status; 0: the region is registered */
    uint32_t reserved;
    uint8_t id[VXD_SHARED_ID_BYTES];
    char message[VXD_SHARED_MESSAGE_BYTES]; /* why not; ends with a 0 */
};

#endif
