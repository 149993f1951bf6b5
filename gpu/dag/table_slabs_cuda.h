// SPDX-License-Identifier: Apache-2.0
/* Slab tables on a GPU: groups of eight lanes, what they see of a slab, and SlabAlloc. For .cu
 * files only.
 *
 * Where the paper has a warp an item, a group has a quarter of one: it reads all that tells
 * which places are taken, 32 to 256 bytes, in one or two loads of 16 bytes a lane, and four
 * items' searches are under way in a warp. All lanes of a group take the same way: what they
 * decide by comes from ballots and shuffles, never from a lane's own read of words that others
 * change. */
#ifndef VXD_GPU_DAG_TABLE_SLABS_CUDA_H
#define VXD_GPU_DAG_TABLE_SLABS_CUDA_H

#include "gpu/core/cuda_check.h"
#include "gpu/dag/table_backends.h"

#define VXD_SLAB_GROUP 8
#define VXD_SLAB_NONE 32u /* no place of a slab */

struct vxd_slab_group {
    uint32_t mask; /* of its lanes in the warp */
    uint32_t base; /* first of them */
    uint32_t lane; /* the caller's, 0 to 7 */
};

/* An item as all lanes of its group know it. */
struct vxd_slab_needle {
    uint64_t hash;
    uint64_t head; /* its first two words */
    const uint32_t *words;
};

static __device__ __forceinline__ struct vxd_slab_group vxd_slab_group_of_thread(void)
{
    uint32_t lane = threadIdx.x % 32;
    struct vxd_slab_group group;

    group.base = lane & ~(uint32_t)(VXD_SLAB_GROUP - 1);
    group.mask = 0xffu << group.base;
    group.lane = lane - group.base;
    return group;
}

static __device__ __forceinline__ uint32_t
vxd_slab_ballot(const struct vxd_slab_group *group, bool predicate)
{
    return __ballot_sync(group->mask, predicate) >> group->base & 0xffu;
}

static __device__ __forceinline__ uint32_t
vxd_slab_from(const struct vxd_slab_group *group, uint32_t value, uint32_t lane)
{
    return __shfl_sync(group->mask, value, (int)lane, VXD_SLAB_GROUP);
}

static __device__ __forceinline__ uint64_t
vxd_slab_from64(const struct vxd_slab_group *group, uint64_t value, uint32_t lane)
{
    return __shfl_sync(group->mask, (unsigned long long)value, (int)lane, VXD_SLAB_GROUP);
}

/* Reads past the first-level cache, which other multiprocessors' swaps do not reach. */
static __device__ __forceinline__ uint32_t vxd_slab_read(const uint32_t *word)
{
    return *(const volatile uint32_t *)word;
}

/* The same of four words, aligned to 16 bytes. */
static __device__ __forceinline__ uint4 vxd_slab_read4(const uint32_t *words)
{
    uint4 v;

    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(words)
                 : "memory");
    return v;
}

/* Four words of a slab, of which only `next` and marks change beside a search. */
template <bool SHARED>
static __device__ __forceinline__ uint4 vxd_slab_load4(const uint32_t *words)
{
    return SHARED ? vxd_slab_read4(words) : *(const uint4 *)words;
}

template <bool SHARED>
static __device__ __forceinline__ uint32_t vxd_slab_load(const uint32_t *word)
{
    return SHARED ? vxd_slab_read(word) : *word;
}

static __device__ __forceinline__ uint32_t *
vxd_slab_words(const struct vxd_dag_table_view *view, uint32_t ref)
{
    return view->chunks[ref >> VXD_DAG_CHUNK_BITS] + (ref & (VXD_DAG_CHUNK_WORDS - 1));
}

/* Begins to fetch the front of a list, if it has one: a lane for each item of a warp, long
 * before its group comes to it. */
static __device__ __forceinline__ void
vxd_slab_prefetch(const struct vxd_dag_table_view *view, uint32_t slab)
{
    if (slab != VXD_DAG_EMPTY) {
        asm volatile("prefetch.global.L2 [%0];" : : "l"(vxd_slab_words(view, slab)));
    }
}

/* Bit i of eight goes to bit 2 i, and to bit 4 i. */
static __device__ __forceinline__ uint32_t vxd_slab_spread2(uint32_t b)
{
    b = (b | b << 4) & 0x0f0fu;
    b = (b | b << 2) & 0x3333u;
    return (b | b << 1) & 0x5555u;
}

static __device__ __forceinline__ uint32_t vxd_slab_spread4(uint32_t b)
{
    b = (b | b << 12) & 0x000f000fu;
    b = (b | b << 6) & 0x03030303u;
    return (b | b << 3) & 0x11111111u;
}

/* What lanes say of four words each, as a mask of 32. */
static __device__ __forceinline__ uint32_t
vxd_slab_ballot4(const struct vxd_slab_group *group, bool x, bool y, bool z, bool w)
{
    return vxd_slab_spread4(vxd_slab_ballot(group, x)) |
           vxd_slab_spread4(vxd_slab_ballot(group, y)) << 1 |
           vxd_slab_spread4(vxd_slab_ballot(group, z)) << 2 |
           vxd_slab_spread4(vxd_slab_ballot(group, w)) << 3;
}

static __device__ __forceinline__ uint64_t vxd_slab_pair(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

/* Places of a slab that hold `value` (64 bits of an item, 32 or 8 of a hash: 0 for those that
 * are free), and the next slab. For all stores but TICKET. */
template <enum vxd_dag_store STORE, bool SHARED>
static __device__ __forceinline__ uint32_t
vxd_slab_look(const struct vxd_slab_group *group, const uint32_t *slab, uint64_t value,
              uint32_t *next)
{
    uint32_t places;

    if (STORE == VXD_DAG_ATOMIC64) {
        /* Lane i has places 2 i, 2 i + 1, and 16 more of each. */
        uint4 a = vxd_slab_load4<SHARED>(slab + 4 * group->lane);
        uint4 b = vxd_slab_load4<SHARED>(slab + 32 + 4 * group->lane);
        uint32_t low =
            vxd_slab_spread2(vxd_slab_ballot(group, vxd_slab_pair(a.x, a.y) == value)) |
            vxd_slab_spread2(vxd_slab_ballot(group, vxd_slab_pair(a.z, a.w) == value))
                << 1;
        uint32_t high =
            vxd_slab_spread2(vxd_slab_ballot(group, vxd_slab_pair(b.x, b.y) == value)) |
            vxd_slab_spread2(vxd_slab_ballot(group, vxd_slab_pair(b.z, b.w) == value))
                << 1;

        *next = vxd_slab_from(group, b.z, 7);
        places = (low | high << 16) & 0x7fffffffu;
    } else if (STORE == VXD_DAG_ACCEL32) {
        uint4 a = vxd_slab_load4<SHARED>(slab + 4 * group->lane);
        uint32_t hash = (uint32_t)value;

        *next = vxd_slab_from(group, a.x, 0);
        places =
            vxd_slab_ballot4(group, a.x == hash, a.y == hash, a.z == hash, a.w == hash) &
            0xfffffffeu;
    } else {
        uint32_t differ =
            vxd_slab_load<SHARED>(slab + group->lane) ^ (uint32_t)value * 0x01010101u;

        *next = vxd_slab_from(group, vxd_slab_load<SHARED>(slab + 8), 0);
        places = vxd_slab_ballot4(group, (differ & 0xffu) == 0, (differ & 0xff00u) == 0,
                                  (differ & 0xff0000u) == 0, differ >> 24 == 0);
    }
    return places;
}

/* --- SlabAlloc --------------------------------------------------------------------------- */

/* The first of the lane's 128 bits that it can take; NONE_TAKEN where all are. */
#define VXD_SLAB_NONE_TAKEN 0xffffffffu

static __device__ __forceinline__ uint32_t vxd_slab_take_bit(uint32_t *words,
                                                             const uint32_t room[4])
{
#pragma unroll
    for (uint32_t w = 0; w < 4; w++) {
        uint32_t left = room[w];

        while (left != 0) { /* at most 32 times: a bit is dropped each time */
            uint32_t bit = left & (~left + 1);
            uint32_t before = atomicOr(&words[w], bit);

            if ((before & bit) == 0) {
                return 32 * w + (uint32_t)__ffs((int)bit) - 1;
            }
            left &= ~(before | bit);
        }
    }
    return VXD_SLAB_NONE_TAKEN;
}

/* A slab of one memory block, or VXD_DAG_EMPTY. */
static __device__ uint32_t vxd_slab_take_of_block(const struct vxd_dag_table_view *view,
                                                  const struct vxd_slab_group *group,
                                                  uint32_t block)
{
    uint32_t chunk = block / view->chunk_blocks;
    uint32_t first = block % view->chunk_blocks * VXD_DAG_BLOCK_BITMAP_WORDS +
                     4 * group->lane; /* the lane's first word of the chunk's bits */
    uint32_t *words = view->chunks[chunk] + first;
    uint4 taken = vxd_slab_read4(words);
    uint32_t room[4] = {~taken.x & vxd_dag_slab_bits(&view->form, first),
                        ~taken.y & vxd_dag_slab_bits(&view->form, first + 1),
                        ~taken.z & vxd_dag_slab_bits(&view->form, first + 2),
                        ~taken.w & vxd_dag_slab_bits(&view->form, first + 3)};
    uint32_t lanes = vxd_slab_ballot(group, (room[0] | room[1] | room[2] | room[3]) != 0);

    for (; lanes != 0; lanes &= lanes - 1) {
        uint32_t owner = (uint32_t)__ffs((int)lanes) - 1;
        uint32_t number = VXD_SLAB_NONE_TAKEN;

        if (group->lane == owner) {
            number = vxd_slab_take_bit(words, room);
            number = number == VXD_SLAB_NONE_TAKEN ? number : number + 32 * first;
        }
        number = vxd_slab_from(group, number, owner);
        if (number != VXD_SLAB_NONE_TAKEN) {
            return vxd_dag_slab_address(&view->form, chunk, number);
        }
    }
    return VXD_DAG_EMPTY;
}

/* A slab that no list has, or VXD_DAG_EMPTY. Takers begin at a few super blocks from the first
 * that has room on, and at any block of them; all blocks are tried, twice. */
static __device__ uint32_t vxd_slab_take(const struct vxd_dag_table_view *view,
                                         const struct vxd_slab_group *group,
                                         uint32_t seed)
{
    enum {
        SPREAD = 64
    };
    uint32_t first = vxd_slab_from(group, vxd_slab_read(view->first_open), 0);
    uint32_t n_open = first < view->n_super_blocks ? view->n_super_blocks - first : 1;
    uint32_t start =
        first + seed / VXD_DAG_SUPER_BLOCKS % (n_open < SPREAD ? n_open : SPREAD);

    for (uint32_t k = 0; k < 2 * view->n_super_blocks; k++) {
        uint32_t super_block = (start + k) % view->n_super_blocks;

        for (uint32_t i = 0; i < VXD_DAG_SUPER_BLOCKS; i++) {
            uint32_t block =
                super_block * VXD_DAG_SUPER_BLOCKS + (seed + i) % VXD_DAG_SUPER_BLOCKS;
            uint32_t slab = block < view->n_blocks
                                ? vxd_slab_take_of_block(view, group, block)
                                : VXD_DAG_EMPTY;

            if (slab != VXD_DAG_EMPTY) {
                return slab;
            }
        }
        if (group->lane == 0) {
            atomicCAS(view->first_open, super_block, super_block + 1);
        }
    }
    return VXD_DAG_EMPTY;
}

/* Gives back a slab that came into no list. One lane calls. */
static __device__ void vxd_slab_give_back(const struct vxd_dag_table_view *view,
                                          uint32_t slab)
{
    uint32_t chunk = slab >> VXD_DAG_CHUNK_BITS;
    uint32_t number = vxd_dag_slab_number(&view->form, slab);
    uint32_t block =
        chunk * view->chunk_blocks + number / (32 * VXD_DAG_BLOCK_BITMAP_WORDS);

    /* What the taker wrote to it comes before what the next one writes. */
    __threadfence();
    atomicAnd(view->chunks[chunk] + number / 32, ~(1u << number % 32));
    atomicMin(view->first_open, block / VXD_DAG_SUPER_BLOCKS);
}

#endif
