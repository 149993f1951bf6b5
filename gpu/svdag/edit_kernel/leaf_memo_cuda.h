// SPDX-License-Identifier: Apache-2.0
/* Leaves that are edited alike, of a block that edits where one thing stood before: of the surface
 * of a ball nine leaves of ten have a mask that one near it has. Each mask is edited and looked
 * for once; leaves have its slot until their parents close, and read there what became of it.
 *
 * Slots are taken by atomics in one phase, filled in the next one and read in a later one, with
 * barriers between. They stay from batch to batch, as what an edit makes of a mask does, until
 * too many are taken. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_LEAF_MEMO_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_LEAF_MEMO_CUDA_H

#include "gpu/svdag/store/store_cuda.h"

enum {
    VXD_SVDAG_LEAF_MEMO_HALF = 512,      /* slots; the first ones of where nothing was */
    VXD_SVDAG_LEAF_MEMO_PROBES = 8,      /* then a leaf stands for itself */
    VXD_SVDAG_LEAF_MEMO_MOST_TAKEN = 384 /* at the beginning of a batch */
};

#define VXD_SVDAG_NO_SLOT UINT32_MAX

struct vxd_svdag_leaf_memo {
    uint64_t masks[2 * VXD_SVDAG_LEAF_MEMO_HALF]; /* of voxels edited; 0: free */
    uint32_t refs[2 * VXD_SVDAG_LEAF_MEMO_HALF];
    uint32_t
        headers[2 * VXD_SVDAG_LEAF_MEMO_HALF]; /* what the parent's header has of it */
    uint32_t counts[2 * VXD_SVDAG_LEAF_MEMO_HALF]; /* of a change, a byte each */
    uint32_t old;     /* what stood where slots of the second half are; EMPTY: none yet */
    uint32_t n_taken; /* slots */
};

/* Of editors that have no such table. */
struct vxd_svdag_no_memo {
    char none;
};

/* What stood where the leaves of a slot are. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_leaf_memo_old(const struct vxd_svdag_leaf_memo *memo,
                                                  uint32_t slot)
{
    return slot < VXD_SVDAG_LEAF_MEMO_HALF ? VXD_SVDAG_EMPTY : memo->old;
}

/* The slot of leaves of which `mask` is edited where `old` stood; VXD_SVDAG_NO_SLOT where there is
 * none. *is_first: nobody had it before. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_leaf_memo_take(struct vxd_svdag_leaf_memo *memo,
                                                   uint64_t mask, uint32_t old,
                                                   bool *is_first)
{
    const uint32_t hash = (uint32_t)(mask * 0x9e3779b97f4a7c15ULL >> 32) >> 16;
    uint32_t half = 0;

    *is_first = false;
    if (mask == 0 || vxd_svdag_is_node(old)) {
        return VXD_SVDAG_NO_SLOT;
    }
    if (old != VXD_SVDAG_EMPTY) {
        const uint32_t owner = vxd_svdag_atomic_cas(&memo->old, VXD_SVDAG_EMPTY, old);

        if (owner != VXD_SVDAG_EMPTY && owner != old) {
            return VXD_SVDAG_NO_SLOT;
        }
        half = VXD_SVDAG_LEAF_MEMO_HALF;
    }
#pragma unroll 1
    for (uint32_t probe = 0; probe < VXD_SVDAG_LEAF_MEMO_PROBES; probe++) {
        const uint32_t slot = half + ((hash + probe) & (VXD_SVDAG_LEAF_MEMO_HALF - 1));
        const uint64_t seen = vxd_svdag_atomic_cas64(&memo->masks[slot], 0, mask);

        if (seen == 0 || seen == mask) {
            *is_first = seen == 0;
            return slot;
        }
    }
    return VXD_SVDAG_NO_SLOT;
}

/* By all threads of a block, the table not in use: frees slots where too many are taken, or all
 * where it is new. Ends with a barrier. */
VXD_SVDAG_DEVICE void vxd_svdag_leaf_memo_clear(struct vxd_svdag_leaf_memo *memo,
                                                bool is_new)
{
    const bool clears = is_new || memo->n_taken > VXD_SVDAG_LEAF_MEMO_MOST_TAKEN;

    if (clears) {
        for (uint32_t i = threadIdx.x; i < 2 * VXD_SVDAG_LEAF_MEMO_HALF;
             i += blockDim.x) {
            memo->masks[i] = 0;
        }
    }
    __syncthreads();
    if (clears && threadIdx.x == 0) {
        memo->old = VXD_SVDAG_EMPTY;
        memo->n_taken = 0;
    }
}

#endif
