// SPDX-License-Identifier: Apache-2.0
/* XXH64 (Yann Collet's public algorithm), seed 0: sums of files. Not for secrets. */
#ifndef VXD_PROTO_BASE_XXH64_H
#define VXD_PROTO_BASE_XXH64_H

#include "proto/base/base.h"

enum {
    VXD_SUM_BLOCK_BYTES = 32
};

/* The state of a sum; begin with vxd_sum_begin. */
struct vxd_sum {
    uint64_t lanes[4];
    uint64_t n_bytes;
    uint8_t rest[VXD_SUM_BLOCK_BYTES]; /* n_bytes % 32 of them */
};

void vxd_sum_begin(struct vxd_sum *sum);
void vxd_sum_add(struct vxd_sum *sum, const void *bytes, size_t n_bytes);
uint64_t vxd_sum_end(const struct vxd_sum *sum);

/* Sums bytes that lie in one piece. */
uint64_t vxd_sum_of(const void *bytes, size_t n_bytes);

#endif
