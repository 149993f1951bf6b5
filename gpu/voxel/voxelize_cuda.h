// SPDX-License-Identifier: Apache-2.0
/* What the .cu files of voxelization share: compressed keys, the scratch layout, the view
 * of sorted points, and the steps that voxelize.cu runs one after another. */
#ifndef VXD_GPU_VOXEL_VOXELIZE_CUDA_H
#define VXD_GPU_VOXEL_VOXELIZE_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/voxel/voxel_backends.h"
#include "gpu/voxel/voxelize_math.h"

#define VXD_NO_VOXEL UINT32_MAX

/* A voxel with more points is reduced by a warp instead of single threads. */
#define VXD_SHORT_VOXEL 32

/* Removes from a Morton key the bits that are the same for every point (a scan is wide
 * but low, so z needs fewer levels than x), which saves sort passes and keeps the
 * order. moves: Hacker's Delight, 7-4, compress by parallel suffix. */
struct vxd_key_code {
    uint64_t mask;  /* bits that may differ */
    uint64_t fixed; /* the other bits, as they are in every key */
    uint64_t moves[6];
    int n_bits; /* set bits of mask */
};

static __device__ __forceinline__ uint64_t
vxd_key_compress(const struct vxd_key_code *code, uint64_t key)
{
    if (code->n_bits == 3 * VXD_COORD_BITS) {
        return key;
    }
    key &= code->mask;
#pragma unroll
    for (int i = 0; i < 6; i++) {
        uint64_t moved = key & code->moves[i];

        key = (key ^ moved) | moved >> (1 << i);
    }
    return key;
}

static __device__ __forceinline__ uint64_t vxd_key_expand(const struct vxd_key_code *code,
                                                          uint64_t key)
{
    if (code->n_bits == 3 * VXD_COORD_BITS) {
        return key;
    }
#pragma unroll
    for (int i = 5; i >= 0; i--) {
        key = (key & ~code->moves[i]) | (key << (1 << i) & code->moves[i]);
    }
    return (key & code->mask) | code->fixed;
}

/* How points are sorted:
 * PACKED  one word: sample, key, point index; 16 bytes a point and pass
 * PAIRS   a word of sample and key, with the index beside it; 24 bytes
 * KEYS    PAIRS without the index, where no output depends on the points: 16 bytes
 * WIDE    key and index by key, then by sample, since all three exceed a word
 * Dropped points have the sample n_batch, so they come last. */
enum vxd_sort_form {
    VXD_SORT_PACKED,
    VXD_SORT_PAIRS,
    VXD_SORT_KEYS,
    VXD_SORT_WIDE
};

/* Offsets into the scratch block, and everything that the host decides about a call. */
struct vxd_voxel_plan {
    struct vxd_key_code code;
    enum vxd_sort_form form;
    int index_bits;  /* PACKED: low bits that hold the index; otherwise 0 */
    int sample_bits; /* bits that hold 0 to n_batch */
    bool has_remap;  /* final voxel ids differ from Morton ranks: caps or FIRST_POINT */

    /* two of n uint64; the one that is free after sorting holds `ranks`, */
    size_t keys[2];
    size_t indices[2];    /* segments; two of n uint32, not PACKED */
    size_t samples[2];    /* WIDE: two of n uint32 */
    size_t places[2];     /* WIDE: two of n uint32 */
    size_t sample_points; /* n_batch + 1: first sorted place of each sample */
    size_t sample_voxels; /* n_batch + 1: first Morton rank of each sample */
    size_t first_ranks;   /* remap: n + 1, flags of first points, then their prefix sum */
    size_t remap;         /* remap: n + 1 */
    size_t counters;      /* the rest of voxelize_reduce.cu, where there are channels */
    size_t items;
    size_t folds;
    size_t partials;
    size_t cub;
    size_t cub_bytes;
    size_t total_bytes;
};

/* Points in voxel order, equal voxels in point order. */
struct vxd_sorted {
    const uint64_t *keys;    /* see enum vxd_sort_form */
    const uint32_t *indices; /* NULL: PACKED, KEYS */
    const uint32_t *samples; /* WIDE only */
    int index_bits;
    int key_bits;
};

/* Undefined for KEYS. */
static __device__ __forceinline__ uint32_t
vxd_sorted_index(const struct vxd_sorted *sorted, size_t place)
{
    if (sorted->indices != NULL) {
        return sorted->indices[place];
    }
    return (uint32_t)(sorted->keys[place] & ((1ULL << sorted->index_bits) - 1));
}

static __device__ __forceinline__ uint32_t
vxd_sorted_sample(const struct vxd_sorted *sorted, size_t place)
{
    if (sorted->samples != NULL) {
        return sorted->samples[place];
    }
    return (uint32_t)(sorted->keys[place] >> sorted->index_bits >> sorted->key_bits);
}

/* Compressed key without the sample. */
static __device__ __forceinline__ uint64_t vxd_sorted_key(const struct vxd_sorted *sorted,
                                                          size_t place)
{
    return sorted->keys[place] >> sorted->index_bits & ((1ULL << sorted->key_bits) - 1);
}

/* One call as the kernels see it: device pointers and sizes, passed by value. A "rank"
 * is a voxel's place in Morton order before caps, a "voxel" its final number. */
struct vxd_voxel_run {
    struct vxd_sorted sorted;
    struct vxd_key_code code;
    struct vxd_voxel_lattice lattice;
    struct vxd_voxels out;
    const float *features;
    size_t n_points;
    int n_channels;
    int n_batch;
    uint32_t max_points; /* UINT32_MAX where the caller set no cap */
    uint32_t max_voxels;
    uint32_t *ranks;    /* n: number of ranks that begin at this place or before */
    uint32_t *segments; /* n + 1: first place of each rank, then of the dropped points */
    uint32_t *sample_points;
    uint32_t *sample_voxels;
    uint32_t *first_ranks; /* NULL unless voxels are renumbered, as is remap */
    uint32_t *remap;
};

/* Voxel of a rank, VXD_NO_VOXEL where a cap dropped it. */
static __device__ __forceinline__ uint32_t vxd_run_voxel(const struct vxd_voxel_run *run,
                                                         uint32_t rank)
{
    return run->remap != NULL ? run->remap[rank] : rank;
}

/* Adds `value` (0 where the lane has nothing to add) to a field of its sample's
 * totals, with one atomic operation a warp where the whole warp is in one sample. All
 * 32 lanes call together. */
static __device__ __forceinline__ void vxd_total_add(uint32_t *field_of_first,
                                                     uint32_t sample, uint32_t value)
{
    const size_t stride = sizeof(struct vxd_voxel_totals) / sizeof(uint32_t);
    uint32_t adding = __ballot_sync(UINT32_MAX, value != 0);
    uint32_t leader_sample;
    int leader;

    if (adding == 0) {
        return;
    }
    leader = __ffs((int)adding) - 1;
    leader_sample = __shfl_sync(UINT32_MAX, sample, leader);
    if (__all_sync(UINT32_MAX, value == 0 || sample == leader_sample)) {
        value = __reduce_add_sync(UINT32_MAX, value);
        if ((int)(threadIdx.x & 31) == leader) {
            atomicAdd(field_of_first + leader_sample * stride, value);
        }
    } else if (value != 0) {
        atomicAdd(field_of_first + sample * stride, value);
    }
}

/* The steps in files of their own. Each launches its kernels and returns. */

/* voxelize_sort.cu: scratch of CUB for the largest of the sorts and scans; 0 on failure. */
size_t vxd_voxelize_sort_bytes(const struct vxd_voxel_plan *plan, size_t n_points,
                               int n_batch);
/* Sorts keys[0] (and indices[0]) of the scratch block; *sorted views the result, and
 * *free_keys is the key array that it does not use. Only WIDE needs batch_starts. */
enum vxd_status vxd_voxelize_sort(struct vxd_queue *queue,
                                  const struct vxd_voxel_plan *plan,
                                  const struct vxd_voxelize_call *call,
                                  struct vxd_sorted *sorted, void **free_keys,
                                  struct vxd_err *err);
/* Fills run->ranks. */
enum vxd_status vxd_voxelize_rank(struct vxd_queue *queue,
                                  const struct vxd_voxel_plan *plan,
                                  const struct vxd_voxel_run *run, void *scratch,
                                  struct vxd_err *err);

/* voxelize_renumber.cu: fills run->remap, out.starts and out.inverse from the Morton ranks
 * and the flags of first points in run->first_ranks. */
enum vxd_status vxd_voxelize_renumber(struct vxd_queue *queue,
                                      const struct vxd_voxel_plan *plan,
                                      const struct vxd_voxel_run *run,
                                      enum vxd_voxel_order order, void *scratch,
                                      struct vxd_err *err);

/* voxelize_reduce.cu: adds its arrays to the layout (false on overflow); writes the float
 * outputs. */
bool vxd_voxelize_reduce_layout(struct vxd_voxel_plan *plan, size_t n_points,
                                int n_channels);
enum vxd_status vxd_voxelize_reduce(struct vxd_queue *queue,
                                    const struct vxd_voxel_plan *plan,
                                    const struct vxd_voxel_run *run, void *scratch,
                                    struct vxd_err *err);

/* Number of blocks of a grid-stride kernel over n_items: all that the work needs, but
 * at most what fills the device, because only the device knows the true number of
 * voxels. */
static inline unsigned vxd_voxelize_blocks(const struct vxd_queue *queue, size_t n_items,
                                           int items_per_block)
{
    size_t most = (size_t)queue->context->info.n_multiprocessors * 32;
    size_t n_blocks = (n_items + (size_t)items_per_block - 1) / (size_t)items_per_block;

    return (unsigned)(n_blocks < most ? n_blocks : most);
}

#endif
