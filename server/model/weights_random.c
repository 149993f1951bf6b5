// SPDX-License-Identifier: Apache-2.0
/* Random weights: each tensor from a generator of its own, begun with the seed and the
 * tensor's name, so that a tensor's values do not depend on the others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/model/weights.h"
#include "proto/base/xxh64.h"

enum {
    LENGTH_BYTES = 8,
    ENTRY_BYTES = 2 * VXD_TENSOR_NAME_BYTES + 256, /* of the header's JSON, at most */
    ALIGNMENT = 8
};

static size_t count_of(const struct vxd_tensor_want *want)
{
    size_t n = 1;

    for (size_t i = 0; i < want->n_dims; i++) {
        n *= want->shape[i];
    }
    return n;
}

/* SplitMix64 (Steele, Lea, Flood; public domain). */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void draw(const struct vxd_tensor_want *want, uint64_t seed, uint8_t *out)
{
    uint64_t state = seed ^ vxd_sum_of(want->name, strlen(want->name));
    size_t n = count_of(want);

    for (size_t i = 0; i < n; i++) {
        double unit = (double)(next(&state) >> 11) * 0x1p-53; /* [0, 1) */
        float value = (float)(want->center + want->bound * (2 * unit - 1));

        memcpy(out + i * sizeof value, &value, sizeof value);
    }
}

/* Writes a tensor's member of the header. Names have no character that JSON would escape;
 * the config's reader makes sure of that. */
static size_t describe(const struct vxd_tensor_want *want, size_t begin, size_t end,
                       char *out)
{
    size_t n = (size_t)snprintf(out, ENTRY_BYTES, "\"%s\":{\"dtype\":\"F32\",\"shape\":[",
                                want->name);

    for (size_t i = 0; i < want->n_dims; i++) {
        n += (size_t)snprintf(out + n, ENTRY_BYTES - n, "%s%zu", i > 0 ? "," : "",
                              want->shape[i]);
    }
    n += (size_t)snprintf(out + n, ENTRY_BYTES - n, "],\"data_offsets\":[%zu,%zu]}",
                          begin, end);
    return n;
}

enum vxd_status vxd_tensor_list_draw(const struct vxd_tensor_list *list, uint64_t seed,
                                     uint8_t **bytes, size_t *n_bytes,
                                     struct vxd_err *err)
{
    size_t n_data = 0;
    size_t n_header = 1;
    size_t at = 0;
    uint8_t *block;
    char *header;

    for (size_t i = 0; i < list->n; i++) {
        n_data += count_of(&list->wants[i]) * sizeof(float);
    }
    block = malloc(LENGTH_BYTES + (list->n + 1) * ENTRY_BYTES + n_data);
    if (block == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for %zu bytes of weights", n_data);
    }
    header = (char *)block + LENGTH_BYTES;
    header[0] = '{';
    for (size_t i = 0; i < list->n; i++) {
        size_t end = at + count_of(&list->wants[i]) * sizeof(float);

        if (i > 0) {
            header[n_header++] = ',';
        }
        n_header += describe(&list->wants[i], at, end, header + n_header);
        at = end;
    }
    header[n_header++] = '}';
    while (n_header % ALIGNMENT != 0) {
        header[n_header++] = ' ';
    }
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        block[i] = (uint8_t)((uint64_t)n_header >> (8 * i));
    }
    at = LENGTH_BYTES + n_header;
    for (size_t i = 0; i < list->n; i++) {
        draw(&list->wants[i], seed, block + at);
        at += count_of(&list->wants[i]) * sizeof(float);
    }
    *bytes = block;
    *n_bytes = at;
    return VXD_OK;
}
