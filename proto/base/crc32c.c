// SPDX-License-Identifier: Apache-2.0
#include "proto/base/crc32c.h"

#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, bits reflected */

/* tables[k][b] is the change of the CRC by byte b that k bytes of zeros follow. */
static uint32_t tables[8][256];
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;

        for (int i = 0; i < 8; i++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        }
        tables[0][b] = crc;
    }
    for (int k = 1; k < 8; k++) {
        for (int b = 0; b < 256; b++) {
            uint32_t crc = tables[k - 1][b];

            tables[k][b] = crc >> 8 ^ tables[0][crc & 255];
        }
    }
}

uint32_t vxd_crc32c_table(uint32_t crc, const void *bytes, size_t n_bytes)
{
    const uint8_t *at = bytes;

    (void)pthread_once(&tables_made, make_tables);
    crc = ~crc;
    for (; n_bytes >= 8; n_bytes -= 8, at += 8) {
        uint64_t v;

        memcpy(&v, at, sizeof v);
        v ^= crc;
        crc = 0;
        for (int k = 0; k < 8; k++) {
            crc ^= tables[7 - k][v >> 8 * k & 255];
        }
    }
    for (; n_bytes > 0; n_bytes--, at++) {
        crc = crc >> 8 ^ tables[0][(crc ^ *at) & 255];
    }
    return ~crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t
by_processor(uint32_t crc, const uint8_t *at, size_t n_bytes)
{
    uint64_t sum = ~crc;

    for (; n_bytes >= 8; n_bytes -= 8, at += 8) {
        uint64_t v;

        memcpy(&v, at, sizeof v);
        sum = _mm_crc32_u64(sum, v);
    }
    for (; n_bytes > 0; n_bytes--, at++) {
        sum = _mm_crc32_u8((uint32_t)sum, *at);
    }
    return ~(uint32_t)sum;
}

uint32_t vxd_crc32c(uint32_t crc, const void *bytes, size_t n_bytes)
{
    return __builtin_cpu_supports("sse4.2") ? by_processor(crc, bytes, n_bytes)
                                            : vxd_crc32c_table(crc, bytes, n_bytes);
}

#elif defined(__ARM_FEATURE_CRC32)

uint32_t vxd_crc32c(uint32_t crc, const void *bytes, size_t n_bytes)
{
    const uint8_t *at = bytes;

    crc = ~crc;
    for (; n_bytes >= 8; n_bytes -= 8, at += 8) {
        uint64_t v;

        memcpy(&v, at, sizeof v);
        crc = __crc32cd(crc, v);
    }
    for (; n_bytes > 0; n_bytes--, at++) {
        crc = __crc32cb(crc, *at);
    }
    return ~crc;
}

#else

uint32_t vxd_crc32c(uint32_t crc, const void *bytes, size_t n_bytes)
{
    return vxd_crc32c_table(crc, bytes, n_bytes);
}

#endif
