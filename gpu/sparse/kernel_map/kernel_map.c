// SPDX-License-Identifier: Apache-2.0
/* The public entries of kernel maps: checks, layout, dispatch. */
#include "gpu/sparse/kernel_map/kernel_map.h"

#include "gpu/sparse/kernel_map/kernel_map_backends.h"
#include "gpu/sparse/kernel_map/kernel_map_math.h"

#define MAX_ROWS ((size_t)INT32_MAX - VXD_SPARSE_ROW_PAD)

struct layout {
    size_t capacity;
    size_t n_pairs;
    size_t table;
    size_t masks;
    size_t order;
    size_t total;
};

static bool lay_out(const struct vxd_queue *queue, int n_taps, size_t n_rows,
                    struct layout *out)
{
    size_t n_entries;
    size_t n_words;

    (void)queue; /* unused in builds without CUDA */
    *out = (struct layout){.total = 0};
    if (n_taps < 1 || n_taps > VXD_SPARSE_MAX_TAPS || n_rows > MAX_ROWS) {
        return false;
    }
    out->capacity = (n_rows + VXD_SPARSE_ROW_PAD - 1) / VXD_SPARSE_ROW_PAD;
    out->capacity = (out->capacity > 0 ? out->capacity : 1) * VXD_SPARSE_ROW_PAD;
    if (!vxd_layout_add(&out->total, 1, sizeof(uint64_t), &out->n_pairs) ||
        !vxd_size_mul(out->capacity, (size_t)n_taps, &n_entries) ||
        !vxd_layout_add(&out->total, n_entries, sizeof(int32_t), &out->table)) {
        return false;
    }
    if (!VXD_ON_CUDA(queue->context)) {
        return true;
    }
    n_words = (size_t)VXD_SPARSE_MASK_WORDS(n_taps);
    return vxd_layout_add(&out->total, out->capacity * n_words, sizeof(uint32_t),
                          &out->masks) &&
           vxd_layout_add(&out->total,
                          vxd_sparse_tiles_at(out->capacity, VXD_SPARSE_TILE_SIZES),
                          sizeof(uint32_t), &out->order);
}

size_t vxd_kernel_map_bytes(const struct vxd_queue *queue, int n_taps, size_t n_rows)
{
    struct layout layout;

    return lay_out(queue, n_taps, n_rows, &layout) ? layout.total : 0;
}

enum vxd_status vxd_kernel_map_layout(const struct vxd_queue *queue, void *block,
                                      int n_taps, size_t n_rows,
                                      struct vxd_kernel_map *out, struct vxd_err *err)
{
    char *bytes = block;
    struct layout layout;

    if (!lay_out(queue, n_taps, n_rows, &layout)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_taps",
                        "a map of %d taps and %zu rows, at most %d and %zu", n_taps,
                        n_rows, VXD_SPARSE_MAX_TAPS, MAX_ROWS);
    }
    *out = (struct vxd_kernel_map){.n_taps = n_taps, .capacity = layout.capacity};
    out->n_pairs = (uint64_t *)(void *)(bytes + layout.n_pairs);
    out->table = (int32_t *)(void *)(bytes + layout.table);
    if (VXD_ON_CUDA(queue->context)) {
        out->masks = (uint32_t *)(void *)(bytes + layout.masks);
        out->order = (uint32_t *)(void *)(bytes + layout.order);
    }
    return VXD_OK;
}

size_t vxd_kernel_map_scratch_bytes(const struct vxd_queue *queue, int n_taps,
                                    size_t n_rows)
{
    struct layout layout;

    if (!lay_out(queue, n_taps, n_rows, &layout)) {
        return 0;
    }
    return VXD_BACKEND_FN(queue, vxd_kernel_map_scratch_bytes)(queue, n_taps,
                                                               layout.capacity);
}

size_t vxd_kernel_maps_scratch_bytes(const struct vxd_queue *queue,
                                     const struct vxd_kernel_map_request *requests,
                                     size_t n)
{
    size_t total = 0;

    for (size_t i = 0; i < n; i++) {
        const struct vxd_kernel_map *map = requests[i].map;
        size_t n_bytes = vxd_kernel_map_scratch_bytes(queue, map->n_taps, map->capacity);
        size_t offset;

        if (!vxd_layout_add(&total, n_bytes, 1, &offset)) {
            return SIZE_MAX;
        }
    }
    return total;
}

static enum vxd_status check_request(const struct vxd_kernel_map_request *request,
                                     struct vxd_err *err)
{
    int n_taps;
    enum vxd_status status;

    VXD_TRY(vxd_sparse_geometry_check(&request->geometry, err));
    n_taps = vxd_sparse_n_taps(&request->geometry);
    if (request->map->n_taps != n_taps) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "map",
                        "a map of %d taps, the kernel has %d", request->map->n_taps,
                        n_taps);
    }
out:
    return status;
}

enum vxd_status vxd_kernel_maps_build(struct vxd_queue *queue,
                                      const struct vxd_kernel_map_request *requests,
                                      size_t n, void *scratch, size_t scratch_bytes,
                                      struct vxd_err *err)
{
    struct vxd_kernel_map_call calls[VXD_KERNEL_MAPS_AT_ONCE];
    size_t needed = vxd_kernel_maps_scratch_bytes(queue, requests, n);
    size_t used = 0;
    int n_calls = 0;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < n; i++) {
        VXD_TRY(check_request(&requests[i], err));
    }
    if (scratch_bytes < needed || (scratch == NULL && needed > 0)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "scratch_bytes",
                        "%zu bytes of scratch, needed are %zu",
                        scratch != NULL ? scratch_bytes : 0, needed);
    }
    for (size_t i = 0; i < n; i++) {
        const struct vxd_kernel_map_request *r = &requests[i];
        size_t n_bytes =
            vxd_kernel_map_scratch_bytes(queue, r->map->n_taps, r->map->capacity);
        size_t offset = 0;

        /* cannot fail: `needed` is the sum of the same sizes */
        (void)vxd_layout_add(&used, n_bytes, 1, &offset);
        calls[n_calls++] =
            (struct vxd_kernel_map_call){r->geometry,
                                         *r->in,
                                         *r->out,
                                         *r->map,
                                         n_bytes > 0 ? (char *)scratch + offset : NULL,
                                         n_bytes};
        if (n_calls == VXD_KERNEL_MAPS_AT_ONCE || i == n - 1) {
            VXD_TRY(
                VXD_BACKEND_FN(queue, vxd_kernel_maps_build)(queue, calls, n_calls, err));
            n_calls = 0;
        }
    }
out:
    return status;
}

enum vxd_status vxd_kernel_map_build(struct vxd_queue *queue,
                                     const struct vxd_sparse_geometry *geometry,
                                     const struct vxd_coord_set *in,
                                     const struct vxd_coord_set *out,
                                     struct vxd_kernel_map *map, void *scratch,
                                     size_t scratch_bytes, struct vxd_err *err)
{
    const struct vxd_kernel_map_request request = {*geometry, in, out, map};

    return vxd_kernel_maps_build(queue, &request, 1, scratch, scratch_bytes, err);
}
