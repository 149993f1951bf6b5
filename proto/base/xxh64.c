// SPDX-License-Identifier: Apache-2.0
#include "proto/base/xxh64.h"

#include <string.h>

static const uint64_t prime_1 = UINT64_C(11400714785074694791);
static const uint64_t prime_2 = UINT64_C(14029467366897019727);
static const uint64_t prime_3 = UINT64_C(1609587929392839161);
static const uint64_t prime_4 = UINT64_C(9650029242287828579);
static const uint64_t prime_5 = UINT64_C(2870177450012600261);

static uint64_t rotate(uint64_t v, int bits)
{
    return v << bits | v >> (64 - bits);
}

/* Reads little-endian numbers, as the files have them. */
static uint64_t load64(const uint8_t *at)
{
    uint64_t v;

    memcpy(&v, at, sizeof v);
    return v;
}

static uint64_t load32(const uint8_t *at)
{
    uint32_t v;

    memcpy(&v, at, sizeof v);
    return v;
}

static uint64_t mix(uint64_t lane, uint64_t v)
{
    return rotate(lane + v * prime_2, 31) * prime_1;
}

static void add_block(struct vxd_sum *sum, const uint8_t *at)
{
    for (int i = 0; i < 4; i++) {
        sum->lanes[i] = mix(sum->lanes[i], load64(at + 8 * (size_t)i));
    }
}

void vxd_sum_begin(struct vxd_sum *sum)
{
    memset(sum, 0, sizeof *sum);
    sum->lanes[0] = prime_1 + prime_2;
    sum->lanes[1] = prime_2;
    sum->lanes[2] = 0;
    sum->lanes[3] = 0 - prime_1;
}

void vxd_sum_add(struct vxd_sum *sum, const void *bytes, size_t n_bytes)
{
    const uint8_t *at = bytes;
    size_t n_rest = (size_t)(sum->n_bytes % VXD_SUM_BLOCK_BYTES);

    sum->n_bytes += n_bytes;
    if (n_rest > 0) {
        size_t n = VXD_SUM_BLOCK_BYTES - n_rest;

        n = n < n_bytes ? n : n_bytes;
        if (n > 0) {
            memcpy(sum->rest + n_rest, at, n);
            at += n;
            n_bytes -= n;
        }
        if (n_rest + n < VXD_SUM_BLOCK_BYTES) {
            return;
        }
        add_block(sum, sum->rest);
    }
    for (; n_bytes >= VXD_SUM_BLOCK_BYTES; n_bytes -= VXD_SUM_BLOCK_BYTES) {
        add_block(sum, at);
        at += VXD_SUM_BLOCK_BYTES;
    }
    if (n_bytes > 0) {
        memcpy(sum->rest, at, n_bytes);
    }
}

static uint64_t finish_rest(uint64_t hash, const uint8_t *at, size_t n_bytes)
{
    for (; n_bytes >= 8; n_bytes -= 8, at += 8) {
        hash = rotate(hash ^ mix(0, load64(at)), 27) * prime_1 + prime_4;
    }
    if (n_bytes >= 4) {
        hash = rotate(hash ^ (load32(at) * prime_1), 23) * prime_2 + prime_3;
        n_bytes -= 4;
        at += 4;
    }
    for (; n_bytes > 0; n_bytes--, at++) {
        hash = rotate(hash ^ (*at * prime_5), 11) * prime_1;
    }
    return hash;
}

uint64_t vxd_sum_end(const struct vxd_sum *sum)
{
    uint64_t hash = sum->lanes[2] + prime_5;

    if (sum->n_bytes >= VXD_SUM_BLOCK_BYTES) {
        hash = rotate(sum->lanes[0], 1) + rotate(sum->lanes[1], 7) +
               rotate(sum->lanes[2], 12) + rotate(sum->lanes[3], 18);
        for (int i = 0; i < 4; i++) {
            hash = (hash ^ mix(0, sum->lanes[i])) * prime_1 + prime_4;
        }
    }
    hash = finish_rest(hash + sum->n_bytes, sum->rest,
                       (size_t)(sum->n_bytes % VXD_SUM_BLOCK_BYTES));
    hash = (hash ^ hash >> 33) * prime_2;
    hash = (hash ^ hash >> 29) * prime_3;
    return hash ^ hash >> 32;
}

uint64_t vxd_sum_of(const void *bytes, size_t n_bytes)
{
    struct vxd_sum sum;

    vxd_sum_begin(&sum);
    vxd_sum_add(&sum, bytes, n_bytes);
    return vxd_sum_end(&sum);
}
