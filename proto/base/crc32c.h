// SPDX-License-Identifier: Apache-2.0
/* CRC32C (Castagnoli, reflected, as in iSCSI and ext4), computed by the processor if
 * it can. */
#ifndef VXD_PROTO_BASE_CRC32C_H
#define VXD_PROTO_BASE_CRC32C_H

#include "proto/base/base.h"

/* Extends `crc` by these bytes; begin with 0. */
uint32_t vxd_crc32c(uint32_t crc, const void *bytes, size_t n_bytes);

/* Does the same by a table, on every machine; for tests. */
uint32_t vxd_crc32c_table(uint32_t crc, const void *bytes, size_t n_bytes);

#endif
