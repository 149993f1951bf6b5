// SPDX-License-Identifier: Apache-2.0
/* What the files of snapshots share: the layout, which snapshot_read.c describes. */
#ifndef VXD_SERVER_DURABLE_SNAPSHOT_SNAPSHOT_INTERNAL_H
#define VXD_SERVER_DURABLE_SNAPSHOT_SNAPSHOT_INTERNAL_H

#include <string.h>

#include "server/durable/snapshot/snapshot.h"

enum {
    VXD_SNAPSHOT_LAYOUT = 1,
    VXD_SNAPSHOT_HEAD_BYTES = 128,
    VXD_SNAPSHOT_CHUNK_HEAD_BYTES = 24,
    VXD_SNAPSHOT_END_BYTES = 16
};

/* "VXDSNP\r\n", little-endian: a transfer that changes line ends shows. */
#define VXD_SNAPSHOT_MAGIC UINT64_C(0x0a0d504e53445856)

static inline void vxd_put32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static inline void vxd_put64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

static inline uint32_t vxd_get32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t vxd_get64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
    return value;
}

/* What a chunk of n bytes takes of the file behind its head. */
static inline size_t vxd_snapshot_padded(size_t n_bytes)
{
    return (n_bytes + 7) / 8 * 8;
}

#endif
