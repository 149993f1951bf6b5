// SPDX-License-Identifier: Apache-2.0
/* The open-addressing index on the CPU: its sizes, and the table of its functions. */
#include "gpu/hash/open_cpu.h"

static size_t n_places(const struct vxd_hashmap *map, size_t capacity)
{
    (void)map;
    return (size_t)vxd_open_n_lines(capacity) * VXD_OPEN_LINE;
}

static size_t index_bytes(const struct vxd_key_form *form, size_t capacity)
{
    (void)form;
    return (size_t)vxd_open_n_lines(capacity) * VXD_OPEN_LINE *
           sizeof(struct vxd_open_slot);
}

static size_t scratch_bytes(const struct vxd_queue *queue, const struct vxd_hashmap *map,
                            enum vxd_hash_call call, enum vxd_hash_order order, size_t n)
{
    size_t heap_bytes = vxd_hash_heap_scratch_bytes_cpu(queue, map->capacity);
    size_t rebuild_bytes = vxd_open_rebuild_bytes(map->capacity);
    size_t batch_bytes = vxd_open_batch_bytes(n, map->capacity);

    (void)order;
    switch (call) {
    case VXD_CALL_INSERT:
        return batch_bytes;
    case VXD_CALL_ERASE: /* its three steps run one after the other and share the scratch */
        if (batch_bytes < rebuild_bytes) {
            batch_bytes = rebuild_bytes;
        }
        return batch_bytes < heap_bytes ? heap_bytes : batch_bytes;
    case VXD_CALL_REBUILD:
        return rebuild_bytes;
    case VXD_CALL_FIND:
        break;
    }
    return 0;
}

const struct vxd_hash_ops vxd_hash_open_cpu = {
    .index_bytes = index_bytes,
    .scratch_bytes = scratch_bytes,
    .clear = vxd_open_clear_cpu,
    .rebuild = vxd_open_rebuild_cpu,
    .insert = vxd_open_insert_cpu,
    .find = vxd_open_find_cpu,
    .erase = vxd_open_erase_cpu,
    .neighbours = vxd_open_neighbours_cpu,
    .probes = vxd_open_probes_cpu,
    .n_places = n_places,
};
