// SPDX-License-Identifier: Apache-2.0
/* Slab tables on a GPU: groups of lanes, what they see of a slab, and SlabAlloc. For .cu files
 * only.
 *
 * Where the paper has a warp an item, we have groups of 2 to 8 lanes, enough to read what tells
 * which places of a slab are taken, 32 to 256 bytes, in a few loads of 16 bytes: so 4 to 16
 * items are under way in a warp. Its groups go in step: everything here that shuffles or votes
 * is called by all 32 threads of a warp at once, those of groups without work too. All lanes of
 * a group decide alike, by what one of them read or all of them joined. */
#ifndef VXD_GPU_PAPER_SLAB_TABLES_CUDA_H
#define VXD_GPU_PAPER_SLAB_TABLES_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/svdag/table/table_math.h"
#include "gpu/paper/slab_cuda.h"

/* What kernels get of a table by value. */
struct vxd_slab_table_view {
    unsigned kind; /* enum vxd_svdag_kind of the items */
    int n_words;
    uint32_t *const *chunks; /* n_chunks, zeros where nothing was stored */
    uint32_t n_chunks;
    struct vxd_svdag_slab_form form;
    uint32_t *lists; /* addresses of first slabs */
    uint32_t n_lists;
    uint32_t n_blocks;     /* memory blocks of all chunks, */
    uint32_t chunk_blocks; /* and of one */
};

/* Bits of all lanes of a group. */
template <uint32_t LANES>
static __device__ __forceinline__ uint32_t vxd_slab_append(uint32_t bits)
{
#pragma unroll
    for (uint32_t step = 1; step < LANES; step *= 2) {
        bits |= __shfl_xor_sync(VXD_SLAB_WARP, bits, (int)step);
    }
    return bits;
}

/* What a lane of the own group has. */
template <uint32_t LANES>
static __device__ __forceinline__ uint32_t vxd_slab_from(uint32_t value, uint32_t lane)
{
    return __shfl_sync(VXD_SLAB_WARP, value, (int)lane, (int)LANES);
}

/* Four words, as vxd_slab_read reads one; aligned to 16 bytes. */
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

static __device__ __forceinline__ uint32_t *
vxd_slab_words(const struct vxd_slab_table_view *view, uint32_t ref)
{
    return view->chunks[ref >> VXD_SVDAG_CHUNK_BITS] +
           (ref & (VXD_SVDAG_CHUNK_WORDS - 1));
}

/* Begins to fetch the front of a list, if it has one: a lane for each item of a warp, long
 * before its group comes to it. */
static __device__ __forceinline__ void
vxd_slab_prefetch(const struct vxd_slab_table_view *view, uint32_t slab)
{
    if (slab != VXD_SVDAG_EMPTY) {
        asm volatile("prefetch.global.L2 [%0];" : : "l"(vxd_slab_words(view, slab)));
    }
}

/* Places of a slab that hold `value` (64 bits of an item, 32 or 8 of a hash: 0 for those that
 * are free), and the next slab; none of NULL. For all stores but TICKET. */
template <enum vxd_svdag_store STORE, uint32_t LANES, bool SHARED>
static __device__ __forceinline__ uint32_t vxd_slab_look(uint32_t lane,
                                                         const uint32_t *slab,
                                                         uint64_t value, uint32_t *next)
{
    constexpr uint32_t VECTORS = vxd_slab_vectors(STORE);
    constexpr uint32_t SHARE = VECTORS < LANES ? 1 : VECTORS / LANES; /* of a lane */
    uint32_t places = 0;

    static_assert(SHARED || LANES <= VECTORS,
                  "lanes without a vector do not know the next");
    *next = VXD_SVDAG_EMPTY;
    if (slab != NULL && lane < VECTORS) {
        uint4 v[SHARE];

#pragma unroll
        for (uint32_t k = 0; k < SHARE; k++) {
            v[k] = vxd_slab_load4<SHARED>(slab + 4 * (lane + LANES * k));
        }
        *next = STORE == VXD_SVDAG_ATOMIC64  ? v[SHARE - 1].z
                : STORE == VXD_SVDAG_ACCEL32 ? v[0].x
                                             : slab[8];
#pragma unroll
        for (uint32_t k = 0; k < SHARE; k++) {
            places |= vxd_slab_match<STORE>(v[k], lane + LANES * k, value);
        }
        places &= STORE == VXD_SVDAG_ATOMIC64  ? 0x7fffffffu
                  : STORE == VXD_SVDAG_ACCEL32 ? 0xfffffffeu
                                               : 0xffffffffu;
    }
    if (STORE != VXD_SVDAG_ACCEL8) {
        *next = vxd_slab_from<LANES>(*next, STORE == VXD_SVDAG_ATOMIC64 ? LANES - 1 : 0);
    }
    return vxd_slab_append<LANES>(places);
}

/* --- SlabAlloc --------------------------------------------------------------------------- */

/* A slab that no list has, or VXD_SVDAG_EMPTY. By a whole warp. Takers begin at any slab's block,
 * so that all fill alike and hardly any is full long before the last one is; all blocks are
 * tried, twice. */
static __device__ uint32_t vxd_slab_take(const struct vxd_slab_table_view *view,
                                         uint32_t lane, uint32_t seed)
{
    uint32_t start = __umulhi(seed, view->n_chunks * view->form.n_slabs);
    uint32_t block = start / view->form.n_slabs * view->chunk_blocks +
                     start % view->form.n_slabs / (32 * VXD_SVDAG_BLOCK_BITMAP_WORDS);

    for (uint32_t k = 0; k < 2 * view->n_blocks; k++) {
        uint32_t chunk = block / view->chunk_blocks;
        uint32_t number = vxd_slab_take_of_block(&view->form, view->chunks[chunk],
                                                 block % view->chunk_blocks, lane, seed);

        if (number != VXD_SLAB_NONE_TAKEN) {
            return vxd_svdag_slab_address(&view->form, chunk, number);
        }
        block = block + 1 == view->n_blocks ? 0 : block + 1;
    }
    return VXD_SVDAG_EMPTY;
}

/* Gives back a slab that came into no list. One lane calls. */
static __device__ void vxd_slab_give_back(const struct vxd_slab_table_view *view,
                                          uint32_t slab)
{
    uint32_t chunk = slab >> VXD_SVDAG_CHUNK_BITS;
    uint32_t number = vxd_svdag_slab_number(&view->form, slab);

    /* What the taker wrote to it comes before what the next one writes. */
    __threadfence();
    atomicAnd(view->chunks[chunk] + number / 32, ~(1u << number % 32));
}

#endif
