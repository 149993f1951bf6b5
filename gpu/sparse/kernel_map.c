// SPDX-License-Identifier: Apache-2.0
/* The public entries of kernel maps: checks, layout, dispatch. */
#include "gpu/sparse/kernel_map.h"

#include "gpu/sparse/backends.h"
#include "gpu/sparse/sparse_math.h"

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
    size_t n_words = (size_t)VXD_SPARSE_MASK_WORDS(n_taps);
    size_t n_entries;

    (void)queue; /* in builds without CUDA */
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
    return vxd_layout_add(&out->total, out->capacity * n_words, sizeof(uint32_t),
                          &out->masks) &&
           vxd_layout_add(&out->total, out->capacity, sizeof(uint32_t), &out->order);
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
    return VXD_SPARSE_TWIN(queue, vxd_kernel_map_scratch_bytes)(queue, n_taps,
                                                                layout.capacity);
}

enum vxd_status vxd_kernel_map_build(struct vxd_queue *queue,
                                     const struct vxd_sparse_geometry *geometry,
                                     const struct vxd_sparse_set *in,
                                     const struct vxd_sparse_set *out,
                                     struct vxd_kernel_map *map, void *scratch,
                                     size_t scratch_bytes, struct vxd_err *err)
{
    struct vxd_kernel_map_call call = {*geometry, *in,     *out,
                                       *map,      scratch, scratch_bytes};
    size_t needed = vxd_kernel_map_scratch_bytes(queue, map->n_taps, map->capacity);
    enum vxd_status status;

    VXD_TRY(vxd_sparse_geometry_check(geometry, err));
    if (map->n_taps != vxd_sparse_n_taps(geometry)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "map",
                        "a map of %d taps, the kernel has %d", map->n_taps,
                        vxd_sparse_n_taps(geometry));
    }
    if (scratch_bytes < needed || (scratch == NULL && needed > 0)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "scratch_bytes",
                        "%zu bytes of scratch, needed are %zu",
                        scratch != NULL ? scratch_bytes : 0, needed);
    }
    VXD_TRY(VXD_SPARSE_TWIN(queue, vxd_kernel_map_build)(queue, &call, err));
out:
    return status;
}
