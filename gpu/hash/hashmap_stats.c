// SPDX-License-Identifier: Apache-2.0
#include "gpu/hash/hash_internal.h"

enum vxd_status vxd_hashmap_get_stats(struct vxd_queue *queue,
                                      const struct vxd_hashmap *map,
                                      struct vxd_hashmap_stats *out, struct vxd_err *err)
{
    size_t n_places = map->ops->n_places(map, map->capacity);
    struct vxd_buffer device = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *copy = NULL;
    const uint64_t *probes;
    enum vxd_status status;

    *out = (struct vxd_hashmap_stats){.capacity = map->capacity,
                                      .n_bytes = vxd_hashmap_n_bytes(map)};
    out->index_bytes = out->n_bytes - map->keys.n_bytes;
    for (int i = 0; i < map->spec.n_values; i++) {
        out->index_bytes -= map->values[i].n_bytes;
    }
    VXD_TRY(vxd_device_alloc(queue, (VXD_PROBE_BINS + 2) * sizeof *probes, &device, err));
    VXD_TRY(map->ops->probes(queue, map, device.ptr, err));
    VXD_TRY(vxd_download(queue, device.ptr, device.n_bytes, &host, &copy, err));
    /* Waits for the download too. */
    VXD_TRY(vxd_hashmap_read_size(queue, map, &out->n_entries, err));
    probes = copy;
    for (int i = 0; i < VXD_PROBE_BINS; i++) {
        out->probes[i] = probes[i];
    }
    out->max_probes = (uint32_t)probes[VXD_PROBE_BINS + 1];
    if (out->n_entries > 0) {
        out->load = (double)out->n_entries / (double)n_places;
        out->bytes_per_key = (double)out->index_bytes / (double)out->n_entries;
        out->mean_probes = (double)probes[VXD_PROBE_BINS] / (double)out->n_entries;
    }
out:
    vxd_host_free(queue->context, &host);
    vxd_device_free(queue, &device);
    return status;
}
