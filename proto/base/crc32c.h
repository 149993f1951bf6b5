// SPDX-License-Identifier: Apache-2.0
/* CRC32C (Castagnoli, reflected, as in iSCSI and ext4): by the processor where it can. */
#ifndef VXD_PROTO_BASE_CRC32C_H
#define VXD_PROTO_BASE_CRC32C_H

#include "proto/base/base.h"

/* The CRC of what `crc` covers and these bytes after it; begin with 0. */
uint32_t vxd_crc32c(uint32_t crc, const void *bytes, size_t n_bytes);

/* The same by table, wherever this runs; for tests. */
uint32_t vxd_crc32c_table(uint32_t crc, const void *bytes, size_t n_bytes);

#endif
