// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/diff/export_bits.h"

#include "gpu/svdag/diff/diff_backends.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/store/store_math.h"

/* Words of an array. */
#define MAX_WORDS ((int64_t)1 << 32)

static enum vxd_status check_corners(const int64_t low[3], const int64_t high[3],
                                     struct vxd_err *err)
{
    for (int axis = 0; axis < 3; axis++) {
        if (low[axis] % VXD_SVDAG_LEAF_SIDE != 0 ||
            high[axis] % VXD_SVDAG_LEAF_SIDE != 0) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT,
                            low[axis] % VXD_SVDAG_LEAF_SIDE != 0 ? "low" : "high",
                            "must be multiples of %d", VXD_SVDAG_LEAF_SIDE);
        }
    }
    return VXD_OK;
}

/* Sizes below 0 are none; the product of all words fits an int64_t. */
static enum vxd_status size_of(const int64_t low[3], const int64_t high[3],
                               struct vxd_svdag_bits *bits, struct vxd_err *err)
{
    int64_t n = 1;

    for (int axis = 0; axis < 3; axis++) {
        bits->low[axis] = low[axis];
        if (high[axis] <= low[axis]) {
            bits->size[axis] = 0;
        } else if (__builtin_sub_overflow(high[axis], low[axis], &bits->size[axis])) {
            bits->size[axis] = INT64_MAX - VXD_SVDAG_ROW_BITS;
        }
    }
    bits->n_words = (bits->size[2] + VXD_SVDAG_ROW_BITS - 1) / VXD_SVDAG_ROW_BITS;
    if (__builtin_mul_overflow(bits->size[0], bits->size[1], &n) ||
        __builtin_mul_overflow(n, bits->n_words, &n) || n > MAX_WORDS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "high",
                        "a box of more than %lld words", (long long)MAX_WORDS);
    }
    bits->size[0] = n > 0 ? bits->size[0] : 0;
    return VXD_OK;
}

enum vxd_status vxd_svdag_export_bits(struct vxd_queue *queue,
                                      const struct vxd_svdag *svdag, uint32_t root,
                                      const int64_t low[3], const int64_t high[3],
                                      uint64_t *occupied, uint64_t *free,
                                      struct vxd_err *err)
{
    struct vxd_svdag_bits_call call = {.view = svdag->view, .root = root};
    enum vxd_status status;

    VXD_TRY(check_corners(low, high, err));
    VXD_TRY(size_of(low, high, &call.bits, err));
    if (call.bits.size[0] == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_svdag_query_need(occupied, "occupied", err));
    VXD_TRY(vxd_svdag_query_need(free, "free", err));
    call.bits.occupied = occupied;
    call.bits.free = free;
    VXD_TRY(VXD_SVDAG_QUERY_BACKEND(queue, svdag, export_bits)(queue, &call, err));
out:
    return status;
}
