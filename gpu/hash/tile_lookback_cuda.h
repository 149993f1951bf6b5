// SPDX-License-Identifier: Apache-2.0
/* Tiles of one kernel that take turns: a block works on a tile at a time, numbered as they
 * start, and what a tile needs to know of those before it, it looks up while they run. So
 * whatever is waited for is running. A block looks back at as many tiles as it has threads:
 * a chain of tiles, each waiting for the one before, would be the bottleneck. */
#ifndef VXD_GPU_HASH_TILE_LOOKBACK_CUDA_H
#define VXD_GPU_HASH_TILE_LOOKBACK_CUDA_H

#include <stdint.h>

#define VXD_TILE_CLAIMED 1 /* the tile has claimed */
#define VXD_TILE_DONE 2    /* and so have all before; in prefixes: the sum is known */

/* Between two looks at a tile that is not ready, nanoseconds: all blocks look at the same few
 * lines, and would keep those who claim slots from the second-level cache. */
#define VXD_TILE_PAUSE_NS 200

/* Scratch of FIRST in several tiles, zeroed. */
struct vxd_tiles {
    uint32_t n;
    uint32_t *ticket;
    uint32_t *claims;             /* n: 0, VXD_TILE_CLAIMED, VXD_TILE_DONE */
    unsigned long long *prefixes; /* n: state << 32 | winners */
};

static __device__ __forceinline__ uint32_t vxd_load_acquire(const uint32_t *word)
{
    uint32_t value;

    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];"
                 : "=r"(value)
                 : "l"(word)
                 : "memory");
    return value;
}

static __device__ __forceinline__ unsigned long long
vxd_load_acquire(const unsigned long long *word)
{
    unsigned long long value;

    asm volatile("ld.acquire.gpu.global.b64 %0, [%1];"
                 : "=l"(value)
                 : "l"(word)
                 : "memory");
    return value;
}

static __device__ __forceinline__ void vxd_store_release(uint32_t *word, uint32_t value)
{
    asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(word), "r"(value)
                 : "memory");
}

static __device__ __forceinline__ void vxd_store_release(unsigned long long *word,
                                                         unsigned long long value)
{
    asm volatile("st.release.gpu.global.b64 [%0], %1;" ::"l"(word), "l"(value)
                 : "memory");
}

/* Says that this tile's threads have claimed; all of the block call. */
static __device__ __forceinline__ void vxd_tiles_claimed(const struct vxd_tiles *tiles,
                                                         uint32_t tile)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        vxd_store_release(tiles->claims + tile,
                          tile == 0 ? VXD_TILE_DONE : VXD_TILE_CLAIMED);
    }
}

/* Returns when all tiles before have claimed. */
static __device__ __forceinline__ void
vxd_tiles_wait_for_claims(const struct vxd_tiles *tiles, uint32_t tile)
{
    for (uint32_t end = tile; end > 0; end -= end < blockDim.x ? end : blockDim.x) {
        uint32_t state = VXD_TILE_DONE;

        if (threadIdx.x < end) {
            state = vxd_load_acquire(tiles->claims + end - 1 - threadIdx.x);
            while (state == 0) {
                __nanosleep(VXD_TILE_PAUSE_NS);
                state = vxd_load_acquire(tiles->claims + end - 1 - threadIdx.x);
            }
        }
        if (__syncthreads_or(state == VXD_TILE_DONE) != 0) {
            break;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && tile > 0) {
        vxd_store_release(tiles->claims + tile, VXD_TILE_DONE);
    }
}

/* Winners in the tiles before, and entries before the call; adds n_won of this tile. */
static __device__ uint32_t vxd_tiles_look_back(const struct vxd_tiles *tiles,
                                               uint32_t tile, uint32_t n_won,
                                               const uint32_t *n_live)
{
    __shared__ uint32_t nearest;
    __shared__ uint32_t sum;
    uint32_t base = 0;

    if (tile == 0) {
        base = *n_live;
        __syncthreads();
        if (threadIdx.x == 0) {
            vxd_store_release(tiles->prefixes,
                              (unsigned long long)VXD_TILE_DONE << 32 | (base + n_won));
        }
        return base;
    }
    if (threadIdx.x == 0) {
        vxd_store_release(tiles->prefixes + tile,
                          (unsigned long long)VXD_TILE_CLAIMED << 32 | n_won);
    }
    for (uint32_t end = tile; end > 0; end -= end < blockDim.x ? end : blockDim.x) {
        unsigned long long word = (unsigned long long)VXD_TILE_CLAIMED << 32;

        if (threadIdx.x == 0) {
            nearest = blockDim.x;
            sum = 0;
        }
        __syncthreads();
        if (threadIdx.x < end) {
            word = vxd_load_acquire(tiles->prefixes + end - 1 - threadIdx.x);
            while (word == 0) {
                __nanosleep(VXD_TILE_PAUSE_NS);
                word = vxd_load_acquire(tiles->prefixes + end - 1 - threadIdx.x);
            }
        }
        if (word >> 32 == VXD_TILE_DONE) {
            (void)atomicMin(&nearest, threadIdx.x);
        }
        __syncthreads();
        uint32_t allocation =
            __reduce_add_sync(UINT32_MAX, threadIdx.x <= nearest ? (uint32_t)word : 0);

        if (threadIdx.x % 32 == 0 && allocation != 0) {
            (void)atomicAdd(&sum, allocation);
        }
        __syncthreads();
        base += sum;
        if (nearest < blockDim.x) {
            break;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        vxd_store_release(tiles->prefixes + tile,
                          (unsigned long long)VXD_TILE_DONE << 32 | (base + n_won));
    }
    return base;
}

#endif
