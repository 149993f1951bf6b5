// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of rows of bits: sixteen lanes have the sixteen leaves of a word, each descends to
 * its own, and then each puts together the word of one of their sixteen rows.
 *
 * Bytes: a node a level and leaf, of which the upper ones stay in L1; a quarter of a byte out a
 * voxel. */
#ifndef VXD_GPU_SVDAG_DIFF_EXPORT_BITS_CUDA_H
#define VXD_GPU_SVDAG_DIFF_EXPORT_BITS_CUDA_H

#include "gpu/svdag/diff/diff_backends.h"
#include "gpu/svdag/query/query_cuda.h"

#define VXD_SVDAG_BITS_THREADS 128

/* Sixteen threads a word of a column of leaves; n columns in all. */
template <bool IS_SPLIT>
static __global__ void __launch_bounds__(VXD_SVDAG_BITS_THREADS)
    bits_kernel(const __grid_constant__ struct vxd_svdag_bits_call call, size_t n)
{
    const struct vxd_svdag_bits *bits = &call.bits;
    size_t i = ((size_t)blockIdx.x * VXD_SVDAG_BITS_THREADS + threadIdx.x) /
               VXD_SVDAG_WORD_LEAVES;
    bool is_there = i < n;
    int lane = (int)(threadIdx.x % VXD_SVDAG_WORD_LEAVES);
    int64_t word = (int64_t)(i % (size_t)bits->n_words);
    size_t column = i / (size_t)bits->n_words;
    int64_t y = (int64_t)(column % (size_t)(bits->size[1] / VXD_SVDAG_LEAF_SIDE)) *
                VXD_SVDAG_LEAF_SIDE;
    int64_t x = (int64_t)(column / (size_t)(bits->size[1] / VXD_SVDAG_LEAF_SIDE)) *
                VXD_SVDAG_LEAF_SIDE;
    int64_t z = (word * VXD_SVDAG_WORD_LEAVES + lane) * VXD_SVDAG_LEAF_SIDE;
    uint64_t masks[2] = {0, 0};
    uint64_t occupied = 0;
    uint64_t free = 0;

    if (is_there && z < bits->size[2]) {
        (void)vxd_svdag_masks_at(&call.view, call.root, bits->low[0] + x,
                                 bits->low[1] + y, bits->low[2] + z, &masks[0],
                                 &masks[1]);
    }
    for (int leaf = 0; leaf < VXD_SVDAG_WORD_LEAVES; leaf++) {
        uint64_t set = __shfl_sync(UINT32_MAX, masks[0], leaf, VXD_SVDAG_WORD_LEAVES);
        uint64_t clear = __shfl_sync(UINT32_MAX, masks[1], leaf, VXD_SVDAG_WORD_LEAVES);

        occupied |= vxd_svdag_leaf_row(set, lane) << (4 * leaf);
        free |= vxd_svdag_leaf_row(clear, lane) << (4 * leaf);
    }
    if (is_there) {
        size_t at =
            (size_t)(((x + lane / 4) * bits->size[1] + y + lane % 4) * bits->n_words +
                     word);

        bits->occupied[at] = occupied;
        bits->free[at] = free;
    }
}

template <bool IS_SPLIT>
static enum vxd_status
vxd_svdag_export_bits_launch(struct vxd_queue *queue,
                             const struct vxd_svdag_bits_call *call, struct vxd_err *err)
{
    static_assert(IS_SPLIT == VXD_SVDAG_IS_SPLIT_FORM,
                  "a translation unit is compiled for one form of stores");
    const struct vxd_svdag_bits *bits = &call->bits;
    size_t n = (size_t)(bits->size[0] / VXD_SVDAG_LEAF_SIDE *
                        (bits->size[1] / VXD_SVDAG_LEAF_SIDE) * bits->n_words);
    unsigned n_blocks = 0;
    enum vxd_status status;

    VXD_TRY(vxd_svdag_blocks_of(n, VXD_SVDAG_BITS_THREADS / VXD_SVDAG_WORD_LEAVES,
                                &n_blocks, err));
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    bits_kernel<IS_SPLIT>
        <<<n_blocks, VXD_SVDAG_BITS_THREADS, 0, (cudaStream_t)queue->stream>>>(*call, n);
    VXD_TRY(vxd_cuda_launched(queue->context, "bits_kernel", err));
out:
    return status;
}

#endif
