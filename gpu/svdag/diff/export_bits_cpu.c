// SPDX-License-Identifier: Apache-2.0
/* A piece is a row of leaves along y; a word of sixteen rows is put together from the leaves
 * above each other. */
#include "gpu/svdag/diff/diff_backends.h"

/* Adds the leaves that are equal from number `leaf` on, n of them, to the words. */
static void add_leaves(uint64_t words[VXD_SVDAG_LEAF_ROWS], uint64_t mask, int leaf,
                       int n)
{
    uint64_t columns = n == VXD_SVDAG_WORD_LEAVES
                           ? ~(uint64_t)0
                           : (((uint64_t)1 << (4 * n)) - 1) << (4 * leaf);

    if (mask == 0) {
        return;
    }
    for (int row = 0; row < VXD_SVDAG_LEAF_ROWS; row++) {
        words[row] |= vxd_svdag_leaf_row(mask, row) * 0x1111111111111111ULL & columns;
    }
}

/* One word of the sixteen rows of a column of leaves. */
static void put_column(const struct vxd_svdag_bits_call *call, int64_t x, int64_t y,
                       int64_t word)
{
    const struct vxd_svdag_bits *bits = &call->bits;
    uint64_t occupied[VXD_SVDAG_LEAF_ROWS] = {0};
    uint64_t free[VXD_SVDAG_LEAF_ROWS] = {0};
    int64_t first = word * VXD_SVDAG_WORD_LEAVES;
    int64_t n = bits->size[2] / VXD_SVDAG_LEAF_SIDE - first;

    n = n < VXD_SVDAG_WORD_LEAVES ? n : VXD_SVDAG_WORD_LEAVES;
    for (int leaf = 0; leaf < (int)n;) {
        int64_t z = bits->low[2] + (first + leaf) * VXD_SVDAG_LEAF_SIDE;
        uint64_t masks[2];
        int height = vxd_svdag_masks_at(&call->view, call->root, bits->low[0] + x,
                                        bits->low[1] + y, z, &masks[0], &masks[1]);
        int64_t side = (int64_t)1 << height;
        int64_t equal = (side - (z & (side - 1))) / VXD_SVDAG_LEAF_SIDE;
        int n_equal = equal < n - leaf ? (int)equal : (int)n - leaf;

        add_leaves(occupied, masks[0], leaf, n_equal);
        add_leaves(free, masks[1], leaf, n_equal);
        leaf += n_equal;
    }
    for (int row = 0; row < VXD_SVDAG_LEAF_ROWS; row++) {
        size_t at =
            (size_t)(((x + row / 4) * bits->size[1] + y + row % 4) * bits->n_words +
                     word);

        bits->occupied[at] = occupied[row];
        bits->free[at] = free[row];
    }
}

static void bits_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_svdag_bits_call *call = context;

    for (size_t i = begin; i < end; i++) {
        for (int64_t y = 0; y < call->bits.size[1]; y += VXD_SVDAG_LEAF_SIDE) {
            for (int64_t word = 0; word < call->bits.n_words; word++) {
                put_column(call, (int64_t)i * VXD_SVDAG_LEAF_SIDE, y, word);
            }
        }
    }
}

static enum vxd_status bits_job(struct vxd_pool *pool, const void *context,
                                struct vxd_err *err)
{
    struct vxd_svdag_bits_call call = *(const struct vxd_svdag_bits_call *)context;

    (void)err;
    vxd_parallel_for(pool, (size_t)(call.bits.size[0] / VXD_SVDAG_LEAF_SIDE), 1,
                     bits_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_svdag_export_bits_cpu(struct vxd_queue *queue,
                                          const struct vxd_svdag_bits_call *call,
                                          struct vxd_err *err)
{
    return vxd_queue_push(queue, bits_job, call, sizeof *call, err);
}
