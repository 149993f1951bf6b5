// SPDX-License-Identifier: Apache-2.0
/* What the files of snapshots share: the layout, which is told in snapshot_read.c. */
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

/* DIR/snapshots/FAMILY.SEQUENCE.vxs, and what it is called while it is written. */
static inline void vxd_snapshot_path(const struct vxd_data_dir *dir, uint32_t family,
                                     uint64_t sequence, const char *end,
                                     char out[VXD_DURABLE_PATH_BYTES])
{
    (void)snprintf(out, VXD_DURABLE_PATH_BYTES, "%s/snapshots/%08x.%016llx.vxs%s",
                   dir->path, family, (unsigned long long)sequence, end);
}

/* True where a name is that of a snapshot; out may be NULL. */
bool vxd_snapshot_parse_name(const char *name, uint32_t *family, uint64_t *sequence);

#endif
