// SPDX-License-Identifier: Apache-2.0
/* The public entries of coordinate sets: checks, layout, dispatch. */
#include "gpu/sparse/coords/coords.h"

#include "gpu/sparse/coords/coord_set_backends.h"

#define MAX_ROWS ((size_t)INT32_MAX)
#define MAX_SHAPE ((int32_t)1 << (VXD_SPARSE_COORD_BITS - 1))
#define MAX_TIMES ((int32_t)1 << 13) /* so that a coordinate times this fits 32 bits */

static enum vxd_status check_axes(const int values[3], int least, int most,
                                  const char *field, struct vxd_err *err)
{
    for (int axis = 0; axis < 3; axis++) {
        if (values[axis] < least || values[axis] > most) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "%d in %c, must be %d to %d", values[axis], "xyz"[axis],
                            least, most);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_sparse_geometry_check(const struct vxd_sparse_geometry *geometry,
                                          struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(check_axes(geometry->kernel, 1, VXD_SPARSE_MAX_KERNEL, "kernel", err));
    VXD_TRY(check_axes(geometry->stride, 1, VXD_SPARSE_MAX_STRIDE, "stride", err));
    VXD_TRY(check_axes(geometry->padding, 0, VXD_SPARSE_MAX_PADDING, "padding", err));
    VXD_TRY(check_axes(geometry->dilation, 1, VXD_SPARSE_MAX_DILATION, "dilation", err));
out:
    return status;
}

struct layout {
    size_t n_slots;
    size_t n_rows;
    size_t n_blocks;
    size_t keys;
    size_t block_keys;
    size_t block_mask;
    size_t block_row;
    size_t slots;
    size_t total;
};

static bool lay_out(size_t capacity, struct layout *out)
{
    *out = (struct layout){.n_slots = 4};
    if (capacity > MAX_ROWS) {
        return false;
    }
    while (out->n_slots < 2 * capacity) {
        out->n_slots *= 2;
    }
    return vxd_layout_add(&out->total, 1, sizeof(uint32_t), &out->n_rows) &&
           vxd_layout_add(&out->total, 1, sizeof(uint32_t), &out->n_blocks) &&
           vxd_layout_add(&out->total, capacity, sizeof(uint64_t), &out->keys) &&
           vxd_layout_add(&out->total, capacity, sizeof(uint64_t), &out->block_keys) &&
           vxd_layout_add(&out->total, capacity, sizeof(uint64_t), &out->block_mask) &&
           vxd_layout_add(&out->total, capacity, sizeof(uint32_t), &out->block_row) &&
           vxd_layout_add(&out->total, out->n_slots, sizeof(uint64_t), &out->slots);
}

size_t vxd_coord_set_bytes(size_t capacity)
{
    struct layout layout;

    return lay_out(capacity, &layout) ? layout.total : 0;
}

enum vxd_status vxd_coord_set_layout(void *block, size_t capacity, const int32_t shape[3],
                                     struct vxd_coord_set *out, struct vxd_err *err)
{
    char *bytes = block;
    struct layout layout;
    enum vxd_status status;

    if (!lay_out(capacity, &layout)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "capacity", "%zu rows, at most %zu",
                        capacity, MAX_ROWS);
    }
    VXD_TRY(check_axes(shape, 0, MAX_SHAPE, "shape", err));
    out->capacity = capacity;
    out->n_slots = layout.n_slots;
    out->n_rows = (uint32_t *)(void *)(bytes + layout.n_rows);
    out->n_blocks = (uint32_t *)(void *)(bytes + layout.n_blocks);
    out->keys = (uint64_t *)(void *)(bytes + layout.keys);
    out->block_keys = (uint64_t *)(void *)(bytes + layout.block_keys);
    out->block_mask = (uint64_t *)(void *)(bytes + layout.block_mask);
    out->block_row = (uint32_t *)(void *)(bytes + layout.block_row);
    out->slots = (uint64_t *)(void *)(bytes + layout.slots);
    for (int axis = 0; axis < 3; axis++) {
        out->shape[axis] = shape[axis];
    }
out:
    return status;
}

size_t vxd_coord_set_scratch_bytes(const struct vxd_queue *queue, size_t n_candidates,
                                   size_t capacity)
{
    if (n_candidates > MAX_ROWS || capacity > MAX_ROWS) {
        return 0;
    }
    return VXD_BACKEND_FN(queue, vxd_coord_set_scratch_bytes)(queue, n_candidates,
                                                              capacity);
}

static enum vxd_status check_scratch(const struct vxd_queue *queue, size_t n_candidates,
                                     size_t capacity, const void *scratch,
                                     size_t scratch_bytes, struct vxd_err *err)
{
    size_t needed = vxd_coord_set_scratch_bytes(queue, n_candidates, capacity);

    if (needed == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "capacity",
                        "%zu coordinates for %zu rows, at most %zu each", n_candidates,
                        capacity, MAX_ROWS);
    }
    if (scratch == NULL || scratch_bytes < needed) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "scratch_bytes",
                        "%zu bytes of scratch, needed are %zu",
                        scratch != NULL ? scratch_bytes : 0, needed);
    }
    return VXD_OK;
}

static enum vxd_status check_samples(int n_samples, struct vxd_err *err)
{
    if (n_samples < 1 || n_samples > VXD_SPARSE_MAX_SAMPLES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_samples",
                        "%d samples, must be 1 to %d", n_samples, VXD_SPARSE_MAX_SAMPLES);
    }
    return VXD_OK;
}

enum vxd_status vxd_coord_set_make(struct vxd_queue *queue, const int32_t *coords,
                                   size_t n, int n_samples,
                                   struct vxd_coord_set *coord_set, int32_t *rows,
                                   void *scratch, size_t scratch_bytes,
                                   struct vxd_err *err)
{
    struct vxd_sparse_make_call call = {coords, n,       n_samples,    *coord_set,
                                        rows,   scratch, scratch_bytes};
    enum vxd_status status;

    VXD_TRY(check_samples(n_samples, err));
    VXD_TRY(check_scratch(queue, n, coord_set->capacity, scratch, scratch_bytes, err));
    if (n > 0 && coords == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "coords", "missing");
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_coord_set_make)(queue, &call, err));
out:
    return status;
}

static int gcd(int a, int b)
{
    while (b != 0) {
        int rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

size_t vxd_sparse_derive_candidates(enum vxd_sparse_derive rule,
                                    const struct vxd_sparse_geometry *geometry,
                                    size_t n_rows)
{
    size_t n = n_rows;

    if (rule == VXD_DERIVE_FLOOR) {
        return n;
    }
    for (int axis = 0; axis < 3; axis++) {
        int most = geometry->kernel[axis];

        if (!geometry->transposed) {
            /* tap * dilation has the same residue of the stride every stride / gcd
             * taps. */
            int step = geometry->stride[axis] /
                       gcd(geometry->stride[axis], geometry->dilation[axis]);

            most = (most + step - 1) / step;
        }
        if (!vxd_size_mul(n, (size_t)most, &n)) {
            return SIZE_MAX;
        }
    }
    return n;
}

size_t vxd_sparse_derive_bound(enum vxd_sparse_derive rule,
                               const struct vxd_sparse_geometry *geometry, size_t n_rows,
                               const int32_t shape[3], int n_samples)
{
    size_t n = vxd_sparse_derive_candidates(rule, geometry, n_rows);
    size_t n_cells = (size_t)n_samples;

    for (int axis = 0; axis < 3; axis++) {
        if (shape[axis] == 0 || !vxd_size_mul(n_cells, (size_t)shape[axis], &n_cells)) {
            return n;
        }
    }
    return n < n_cells ? n : n_cells;
}

static enum vxd_status prepare_derive(const struct vxd_queue *queue,
                                      const struct vxd_sparse_derive_request *request,
                                      void *scratch, size_t scratch_bytes,
                                      struct vxd_sparse_derive_call *out,
                                      struct vxd_err *err)
{
    const struct vxd_sparse_geometry *geometry = &request->geometry;
    enum vxd_status status;

    VXD_TRY(vxd_sparse_geometry_check(geometry, err));
    if (request->rule != VXD_DERIVE_SUPPORT && request->rule != VXD_DERIVE_FLOOR) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "rule",
                        "%d is no rule; 0 is SUPPORT, 1 FLOOR", (int)request->rule);
    }
    if (request->rule == VXD_DERIVE_FLOOR && geometry->transposed) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "transposed",
                        "a transposed convolution has no floor set");
    }
    *out = (struct vxd_sparse_derive_call){.rule = request->rule,
                                           .geometry = *geometry,
                                           .in = *request->in,
                                           .out = *request->out,
                                           .scratch = scratch,
                                           .scratch_bytes = scratch_bytes};
    out->n_candidates =
        vxd_sparse_derive_candidates(request->rule, geometry, request->in->capacity);
    VXD_TRY(check_scratch(queue, out->n_candidates, request->out->capacity, scratch,
                          scratch_bytes, err));
out:
    return status;
}

enum vxd_status vxd_coord_sets_derive(struct vxd_queue *queue,
                                      const struct vxd_sparse_derive_request *requests,
                                      size_t n, void *scratch, size_t scratch_bytes,
                                      struct vxd_err *err)
{
    struct vxd_sparse_derive_call calls[VXD_COORD_SETS_AT_ONCE];
    int n_calls = 0;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < n; i++) {
        VXD_TRY(prepare_derive(queue, &requests[i], scratch, scratch_bytes,
                               &calls[n_calls], err));
        n_calls++;
        if (n_calls == VXD_COORD_SETS_AT_ONCE || i == n - 1) {
            VXD_TRY(
                VXD_BACKEND_FN(queue, vxd_coord_sets_derive)(queue, calls, n_calls, err));
            n_calls = 0;
        }
    }
out:
    return status;
}

enum vxd_status vxd_coord_set_derive(struct vxd_queue *queue, enum vxd_sparse_derive rule,
                                     const struct vxd_sparse_geometry *geometry,
                                     const struct vxd_coord_set *in,
                                     struct vxd_coord_set *out, void *scratch,
                                     size_t scratch_bytes, struct vxd_err *err)
{
    const struct vxd_sparse_derive_request request = {rule, *geometry, in, out};

    return vxd_coord_sets_derive(queue, &request, 1, scratch, scratch_bytes, err);
}

enum vxd_status vxd_sparse_out_shape(const struct vxd_sparse_geometry *geometry,
                                     const int32_t in[3], const int32_t output_padding[3],
                                     int32_t out[3], struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_sparse_geometry_check(geometry, err));
    VXD_TRY(check_axes(in, 0, MAX_SHAPE, "shape", err));
    if (output_padding != NULL) {
        VXD_TRY(
            check_axes(output_padding, 0, VXD_SPARSE_MAX_PADDING, "output_padding", err));
    }
    for (int axis = 0; axis < 3; axis++) {
        int32_t stride = geometry->stride[axis];
        int32_t reach = geometry->dilation[axis] * (geometry->kernel[axis] - 1);
        int32_t padding = 2 * geometry->padding[axis];
        int32_t cells;

        if (in[axis] == 0) {
            out[axis] = 0;
            continue;
        }
        if (geometry->transposed) {
            cells = (in[axis] - 1) * stride - padding + reach + 1;
            cells += output_padding != NULL ? output_padding[axis] : 0;
        } else {
            cells = in[axis] + padding - reach - 1;
            cells = cells < 0 ? 0 : cells / stride + 1;
        }
        if (cells < 1 || cells > MAX_SHAPE) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "shape",
                            "%d cells in %c become %d, must be 1 to %d", in[axis],
                            "xyz"[axis], cells, MAX_SHAPE);
        }
        out[axis] = cells;
    }
out:
    return status;
}

enum vxd_status vxd_coord_set_union(struct vxd_queue *queue,
                                    const struct vxd_coord_set *a,
                                    const struct vxd_coord_set *b,
                                    struct vxd_coord_set *out, int32_t *rows_a,
                                    int32_t *rows_b, void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err)
{
    struct vxd_sparse_union_call call = {*a,     *b,      *out,         rows_a,
                                         rows_b, scratch, scratch_bytes};
    enum vxd_status status;

    VXD_TRY(check_scratch(queue, a->capacity + b->capacity, out->capacity, scratch,
                          scratch_bytes, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_coord_set_union)(queue, &call, err));
out:
    return status;
}

enum vxd_status vxd_coord_set_subset(struct vxd_queue *queue,
                                     const struct vxd_coord_set *a, const uint8_t *keep,
                                     struct vxd_coord_set *out, int32_t *rows_a,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err)
{
    struct vxd_sparse_subset_call call = {*a, keep, *out, rows_a, scratch, scratch_bytes};
    enum vxd_status status;

    VXD_TRY(
        check_scratch(queue, a->capacity, out->capacity, scratch, scratch_bytes, err));
    if (a->capacity > 0 && keep == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "keep", "missing");
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_coord_set_subset)(queue, &call, err));
out:
    return status;
}

enum vxd_status vxd_coord_set_coords(struct vxd_queue *queue,
                                     const struct vxd_coord_set *coord_set,
                                     const int32_t times[3], int n_samples,
                                     int32_t *coords, uint32_t *sample_starts,
                                     struct vxd_err *err)
{
    struct vxd_sparse_coords_call call = {.coord_set = *coord_set,
                                          .times = {times[0], times[1], times[2]},
                                          .n_samples = n_samples,
                                          .coords = coords,
                                          .sample_starts = sample_starts};
    enum vxd_status status;

    VXD_TRY(check_samples(n_samples, err));
    VXD_TRY(check_axes(times, 1, MAX_TIMES, "times", err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_coord_set_coords)(queue, &call, err));
out:
    return status;
}
