// SPDX-License-Identifier: Apache-2.0
/* Saved maps: whatever the bytes, either a map that the engine takes or refuses, or a reason.
 * Sums are mended first, or no input would come past them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/xxh64.h"
#include "server/registry/maps/maps.h"

enum {
    HEAD_BYTES = 376,
    ARRAY_BYTES = 72,
    MAX_BYTES = 1 << 16
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_sum(uint8_t *bytes, size_t begin, size_t end, size_t n_bytes)
{
    uint64_t sum;

    if (end <= n_bytes && n_bytes - end >= sizeof sum) {
        sum = vxd_sum_of(bytes + begin, end - begin);
        memcpy(bytes + end, &sum, sizeof sum);
    }
}

/* The head's sum, and for sets those of the two sections and the digest; the sizes in the
 * head are the file's own. */
static void mend(uint8_t *bytes, size_t n_bytes)
{
    static const size_t key_sizes[] = {[3] = 2, [5] = 4, [9] = 8};
    uint64_t total = n_bytes;
    uint64_t n_entries;
    uint32_t n_values, dtype, n_components;
    uint64_t sums[2];
    size_t at;

    if (n_bytes < HEAD_BYTES) {
        return;
    }
    memcpy(bytes + 16, &total, sizeof total);
    memcpy(&n_entries, bytes + 24, sizeof n_entries);
    memcpy(bytes + 48, &n_entries, sizeof n_entries);
    memcpy(&dtype, bytes + 56, sizeof dtype);
    memcpy(&n_components, bytes + 60, sizeof n_components);
    memcpy(&n_values, bytes + 64, sizeof n_values);
    if (n_values > VXD_HASHMAP_MAX_VALUES) {
        return;
    }
    put_sum(bytes, 0, HEAD_BYTES + n_values * ARRAY_BYTES, n_bytes);
    if (n_values == 0 && n_entries < MAX_BYTES && dtype < 10 && n_components <= 8) {
        struct vxd_sum digest;
        size_t keys = n_entries * n_components * key_sizes[dtype];
        uint64_t sum;

        at = HEAD_BYTES + sizeof sum;
        if (at + 4 * n_entries + keys + 3 * sizeof sum > n_bytes) {
            return;
        }
        put_sum(bytes, at, at + 4 * n_entries, n_bytes);
        memcpy(&sums[0], bytes + at + 4 * n_entries, sizeof sum);
        at += 4 * n_entries + sizeof sum;
        put_sum(bytes, at, at + keys, n_bytes);
        memcpy(&sums[1], bytes + at + keys, sizeof sum);
        vxd_sum_begin(&digest);
        vxd_sum_add(&digest, bytes + 48, HEAD_BYTES - 48);
        vxd_sum_add(&digest, sums, sizeof sums);
        sum = vxd_sum_end(&digest);
        memcpy(bytes + at + keys + sizeof sum, &sum, sizeof sum);
    }
}

static void read_map(struct vxd_context *context, struct vxd_queue *queue, FILE *file)
{
    struct vxd_hashmap_image image = {0};
    struct vxd_map_file_info info = {0};
    struct vxd_map_spec spec;
    struct vxd_err err = {0};
    struct vxd_hashmap *map = NULL;
    enum vxd_status status =
        vxd_map_file_parse(context, file, &spec, &image, &info, &err);

    if (status != VXD_OK) {
        assert(err.code == status && err.message[0] != '\0');
        return;
    }
    image.spec.max_bytes = 8 << 20;
    status = vxd_hashmap_import(queue, &image, &map, &err);
    assert(status == VXD_OK || status == VXD_DATA_LOSS ||
           status == VXD_RESOURCE_EXHAUSTED);
    vxd_hashmap_destroy(queue, map);
    (void)vxd_queue_wait(queue, NULL);
    vxd_hashmap_image_free(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct vxd_context *context;
    static struct vxd_queue *queue;
    const struct vxd_context_options options = {.backend = VXD_BACKEND_CPU,
                                                .n_threads = 1,
                                                .device_bytes = 64 << 20,
                                                .host_bytes = 64 << 20};
    uint8_t *bytes;

    if (context == NULL) {
        assert(vxd_context_create(&options, &context, NULL) == VXD_OK);
        assert(vxd_queue_create(context, &queue, NULL) == VXD_OK);
    }
    if (size == 0 || size > MAX_BYTES) {
        return 0;
    }
    bytes = malloc(size);
    assert(bytes != NULL);
    memcpy(bytes, data, size);
    for (int mended = 0; mended < 2; mended++) {
        FILE *file;

        if (mended != 0) {
            mend(bytes, size);
        }
        file = fmemopen(bytes, size, "rb");
        assert(file != NULL);
        read_map(context, queue, file);
        (void)fclose(file);
    }
    free(bytes);
    return 0;
}
