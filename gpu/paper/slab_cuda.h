// SPDX-License-Identifier: Apache-2.0
/* Slabs as kernels see them, of a table's batches (slab_tables.cu) and of a scene
 * (slab_store_cuda.h): what their first words tell of places, and SlabAlloc. For .cu files
 * only. */
#ifndef VXD_GPU_PAPER_SLAB_CUDA_H
#define VXD_GPU_PAPER_SLAB_CUDA_H

#include "gpu/paper/slab_store_math.h"

#define VXD_SLAB_WARP 0xffffffffu
#define VXD_SLAB_NONE 32u /* no place of a slab */

/* What any lane of the warp has. */
static __device__ __forceinline__ uint32_t vxd_slab_from_warp(uint32_t value,
                                                              uint32_t lane)
{
    return __shfl_sync(VXD_SLAB_WARP, value, (int)lane);
}

/* Reads past the first-level cache, which other multiprocessors' swaps do not reach. */
static __device__ __forceinline__ uint32_t vxd_slab_read(const uint32_t *word)
{
    return *(const volatile uint32_t *)word;
}

static __device__ __forceinline__ uint64_t vxd_slab_pair(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

/* Which bytes of a word are `byte`, four bits. */
static __device__ __forceinline__ uint32_t vxd_slab_bytes(uint32_t word, uint32_t byte)
{
    uint32_t equal = __vcmpeq4(word, byte * 0x01010101u);

    return (equal & 0x08040201u) * 0x01010101u >> 24;
}

/* Vectors of four words at the front of a slab that tell of its places. */
VXD_HD constexpr uint32_t vxd_slab_vectors(enum vxd_svdag_store store)
{
    return store == VXD_SVDAG_ATOMIC64 ? 16 : store == VXD_SVDAG_ACCEL32 ? 8 : 2;
}

/* The places that vector i tells to hold `value`. */
template <enum vxd_svdag_store STORE>
static __device__ __forceinline__ uint32_t vxd_slab_match(uint4 v, uint32_t i,
                                                          uint64_t value)
{
    uint32_t word = (uint32_t)value;

    if (STORE == VXD_SVDAG_ATOMIC64) {
        return ((vxd_slab_pair(v.x, v.y) == value ? 1u : 0u) |
                (vxd_slab_pair(v.z, v.w) == value ? 2u : 0u))
               << (2 * i);
    }
    if (STORE == VXD_SVDAG_ACCEL32) {
        return ((v.x == word ? 1u : 0u) | (v.y == word ? 2u : 0u) |
                (v.z == word ? 4u : 0u) | (v.w == word ? 8u : 0u))
               << (4 * i);
    }
    return (vxd_slab_bytes(v.x, word) | vxd_slab_bytes(v.y, word) << 4 |
            vxd_slab_bytes(v.z, word) << 8 | vxd_slab_bytes(v.w, word) << 12)
           << (16 * i);
}

/* --- SlabAlloc --------------------------------------------------------------------------- */

#define VXD_SLAB_NONE_TAKEN 0xffffffffu

/* The number of a slab, now the caller's, of one memory block of a chunk, or
 * VXD_SLAB_NONE_TAKEN. By a whole warp: a lane has a word of the block's bits each. */
static __device__ __forceinline__ uint32_t
vxd_slab_take_of_block(const struct vxd_svdag_slab_form *form, uint32_t *chunk,
                       uint32_t block, uint32_t lane, uint32_t seed)
{
    uint32_t word = block * VXD_SVDAG_BLOCK_BITMAP_WORDS + lane;
    uint32_t *bits = chunk + word;
    uint32_t free_bits = ~vxd_slab_read(bits) & vxd_svdag_slab_bits(form, word);
    uint32_t turn = seed % 32;
    uint32_t lanes;

    /* Each time round a word's room becomes less. */
    while ((lanes = __ballot_sync(VXD_SLAB_WARP, free_bits != 0)) != 0) {
        uint32_t turned = __funnelshift_r(lanes, lanes, turn);
        uint32_t owner = ((uint32_t)__ffs((int)turned) - 1 + turn) % 32;
        uint32_t number = VXD_SLAB_NONE_TAKEN;

        if (lane == owner) {
            uint32_t bit = free_bits & (~free_bits + 1);
            uint32_t before = atomicOr(bits, bit);

            free_bits &= ~(before | bit);
            if ((before & bit) == 0) {
                number = 32 * word + (uint32_t)__ffs((int)bit) - 1;
            }
        }
        number = vxd_slab_from_warp(number, owner);
        if (number != VXD_SLAB_NONE_TAKEN) {
            return number;
        }
    }
    return VXD_SLAB_NONE_TAKEN;
}

#endif
