// SPDX-License-Identifier: Apache-2.0
/* Kernels of collections that find what is to be copied. Marking uses eight lanes for a
 * node, one for each child. It reads the node in one piece and the mark of each child,
 * mostly from the L2 cache, with an atomic for the first that reaches a child. */
#define VXD_SVDAG_ANY_FORM

#include "gpu/svdag/collect/collect_kernels_cuda.h"

enum {
    MARKS_PER_THREAD = VXD_SVDAG_RANK_MARKS / VXD_SVDAG_COLLECT_THREADS
};

/* Marks --------------------------------------------------------------------------------- */

/* Marks a node; false where it was marked. */
static __device__ __forceinline__ bool
mark_node(const struct vxd_svdag_collect_view *collection, uint32_t ref)
{
    const uint32_t bit = vxd_svdag_mark_bit(ref);
    struct vxd_svdag_mark mark;
    uint32_t *bits =
        &collection->marks[collection->fresh][ref / VXD_SVDAG_MARK_WORDS].bits;

    if (collection->fresh != 0 &&
        vxd_svdag_find_mark(collection->marks[0], ref, &mark) != NULL) {
        return false;
    }
    return (vxd_svdag_load_volatile(bits) & bit) == 0 && (atomicOr(bits, bit) & bit) == 0;
}

/* By all lanes of a warp: appends the nodes of lanes with is_new to the list. */
static __device__ __forceinline__ void
list_node(const struct vxd_svdag_collect_view *collection, bool is_new, uint32_t ref)
{
    const uint32_t mask = __ballot_sync(UINT32_MAX, is_new);
    const uint32_t lane = threadIdx.x % 32;
    uint32_t begin = 0;

    if (lane == 0 && mask != 0) {
        begin = atomicAdd(&collection->state->n_listed, (uint32_t)__popc(mask));
    }
    begin = __shfl_sync(UINT32_MAX, begin, 0);
    if (is_new) {
        collection->list[begin + (uint32_t)__popc(mask & ((1u << lane) - 1))] = ref;
    }
}

static __global__ void __launch_bounds__(VXD_SVDAG_COLLECT_THREADS)
    mark_roots_kernel(const __grid_constant__ struct vxd_svdag_collect_view collection,
                      const uint32_t *roots, uint32_t n)
{
    for (uint32_t first = blockIdx.x * VXD_SVDAG_COLLECT_THREADS; first < n;
         first += gridDim.x * VXD_SVDAG_COLLECT_THREADS) {
        const uint32_t i = first + threadIdx.x;
        const uint32_t ref = i < n ? roots[i] : VXD_SVDAG_EMPTY;

        list_node(&collection, vxd_svdag_is_node(ref) && mark_node(&collection, ref),
                  ref);
    }
}

static __global__ void __launch_bounds__(VXD_SVDAG_COLLECT_THREADS)
    mark_inner_kernel(const __grid_constant__ struct vxd_svdag_collect_view collection,
                      uint32_t begin, uint32_t n)
{
    const uint32_t lane = threadIdx.x % 8;
    uint64_t n_words = 0;

    for (uint32_t first = blockIdx.x * VXD_SVDAG_COLLECT_THREADS; first < n * 8;
         first += gridDim.x * VXD_SVDAG_COLLECT_THREADS) {
        const uint32_t i = (first + threadIdx.x) / 8;
        uint32_t ref = VXD_SVDAG_EMPTY;

        if (i < n) {
            const uint32_t node = collection.list[begin + i];
            const int n = vxd_svdag_inner_words(vxd_svdag_words(&collection.view, node));
            const struct vxd_svdag_item item =
                vxd_svdag_item_at(&collection.view, node, n);

            n_words += lane == 0 ? (uint32_t)n : 0;
            ref = 1 + (int)lane < n ? vxd_svdag_item_word(&item, 1 + (int)lane)
                                    : VXD_SVDAG_EMPTY;
        }
        list_node(&collection, vxd_svdag_is_node(ref) && mark_node(&collection, ref),
                  ref);
    }
    vxd_svdag_warp_add(&collection.state->n_listed_words, n_words);
}

static __global__ void __launch_bounds__(VXD_SVDAG_COLLECT_THREADS)
    mark_leaves_kernel(const __grid_constant__ struct vxd_svdag_collect_view collection,
                       uint32_t begin, uint32_t n)
{
    const int bits = collection.view.value_bits;
    uint64_t n_words = 0;

    for (uint32_t first = blockIdx.x * VXD_SVDAG_COLLECT_THREADS; first < n;
         first += gridDim.x * VXD_SVDAG_COLLECT_THREADS) {
        const uint32_t i = first + threadIdx.x;
        uint32_t ref = VXD_SVDAG_EMPTY;
        bool is_new = false;

        if (i < n) {
            const uint32_t *words =
                vxd_svdag_words(&collection.view, collection.list[begin + i]);

            n_words += (uint64_t)vxd_svdag_leaf_words(bits, vxd_svdag_leaf_mask(words));
            ref = bits >= 8 ? words[2] : VXD_SVDAG_EMPTY;
            is_new = vxd_svdag_is_node(ref) && mark_node(&collection, ref);
        }
        if (is_new) {
            n_words += (uint64_t)vxd_svdag_block_words(
                bits, (int)vxd_svdag_words(&collection.view, ref)[0]);
        }
        if (bits >= 8) {
            list_node(&collection, is_new, ref);
        }
    }
    vxd_svdag_warp_add(&collection.state->n_listed_words, n_words);
}

/* Numbers ------------------------------------------------------------------------------- */

/* By all threads of a block: the sum of n over the threads before this one, and over all
 * in *total. */
static __device__ __forceinline__ uint32_t sum_before(uint32_t n, uint32_t *total)
{
    __shared__ uint32_t sums[VXD_SVDAG_COLLECT_THREADS / 32];
    const uint32_t lane = threadIdx.x % 32;
    uint32_t sum = n;
    uint32_t before = 0;

    for (uint32_t step = 1; step < 32; step *= 2) {
        const uint32_t other = __shfl_up_sync(UINT32_MAX, sum, step);

        sum += lane >= step ? other : 0;
    }
    if (lane == 31) {
        sums[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    *total = 0;
    for (uint32_t i = 0; i < VXD_SVDAG_COLLECT_THREADS / 32; i++) {
        before += i < threadIdx.x / 32 ? sums[i] : 0;
        *total += sums[i];
    }
    __syncthreads();
    return before + sum - n;
}

static __device__ __forceinline__ uint32_t
bits_of(const struct vxd_svdag_collect_view *collection, bool has_both, uint32_t group)
{
    return has_both ? collection->marks[0][group].bits | collection->marks[1][group].bits
                    : collection->marks[collection->fresh][group].bits;
}

static __global__ void __launch_bounds__(VXD_SVDAG_COLLECT_THREADS)
    count_marks_kernel(const __grid_constant__ struct vxd_svdag_collect_view collection,
                       bool has_both, uint32_t n_groups, uint32_t *counts)
{
    const uint32_t begin = blockIdx.x * VXD_SVDAG_RANK_MARKS;
    uint32_t n = 0;
    uint32_t total;

    for (uint32_t k = threadIdx.x; k < VXD_SVDAG_RANK_MARKS;
         k += VXD_SVDAG_COLLECT_THREADS) {
        n += begin + k < n_groups
                 ? (uint32_t)__popc(bits_of(&collection, has_both, begin + k))
                 : 0;
    }
    (void)sum_before(n, &total);
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = total;
    }
}

/* A block goes through its groups VXD_SVDAG_COLLECT_THREADS at a time, so that they are
 * numbered in order and read coalesced. */
static __global__ void __launch_bounds__(VXD_SVDAG_COLLECT_THREADS)
    rank_kernel(const __grid_constant__ struct vxd_svdag_collect_view collection,
                uint32_t n_groups, const uint32_t *sums)
{
    uint32_t base = sums[blockIdx.x];

    for (uint32_t k = 0; k < MARKS_PER_THREAD; k++) {
        const uint32_t group = blockIdx.x * VXD_SVDAG_RANK_MARKS +
                               k * VXD_SVDAG_COLLECT_THREADS + threadIdx.x;
        const bool is_there = group < n_groups;
        const uint32_t n =
            is_there ? (uint32_t)__popc(bits_of(&collection, false, group)) : 0;
        uint32_t total;
        const uint32_t before = sum_before(n, &total);

        if (is_there) {
            collection.marks[collection.fresh][group].base = base + before;
        }
        base += total;
    }
}

static __device__ __forceinline__ void
merge_group(const struct vxd_svdag_collect_view *collection, uint32_t group,
            uint32_t base, uint32_t *refs)
{
    const struct vxd_svdag_mark old = collection->marks[0][group];
    const struct vxd_svdag_mark fresh = collection->marks[1][group];
    uint32_t n_old = 0;
    uint32_t n_fresh = 0;

    for (uint32_t rest = old.bits | fresh.bits; rest != 0; rest &= rest - 1) {
        const bool is_old = (old.bits & rest & (~rest + 1)) != 0;

        refs[base + n_old + n_fresh] = is_old ? collection->refs[0][old.base + n_old]
                                              : collection->refs[1][fresh.base + n_fresh];
        n_old += is_old ? 1 : 0;
        n_fresh += is_old ? 0 : 1;
    }
    collection->marks[0][group].bits = old.bits | fresh.bits;
    collection->marks[0][group].base = base;
    collection->marks[1][group].bits = 0;
}

static __global__ void __launch_bounds__(VXD_SVDAG_COLLECT_THREADS)
    merge_kernel(const __grid_constant__ struct vxd_svdag_collect_view collection,
                 uint32_t n_groups, const uint32_t *sums, uint32_t *refs)
{
    uint32_t base = sums[blockIdx.x];

    for (uint32_t k = 0; k < MARKS_PER_THREAD; k++) {
        const uint32_t group = blockIdx.x * VXD_SVDAG_RANK_MARKS +
                               k * VXD_SVDAG_COLLECT_THREADS + threadIdx.x;
        const bool is_there = group < n_groups;
        const uint32_t n =
            is_there ? (uint32_t)__popc(bits_of(&collection, true, group)) : 0;
        uint32_t total;
        const uint32_t before = sum_before(n, &total);

        if (is_there) {
            merge_group(&collection, group, base + before, refs);
        }
        base += total;
    }
}

/* Launches ------------------------------------------------------------------------------ */

enum vxd_status vxd_svdag_collect_device_mark_roots(
    struct vxd_queue *queue, const struct vxd_svdag_collect_view *view,
    const uint32_t *roots, uint32_t n, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_SVDAG_COLLECT_LAUNCH(queue, vxd_svdag_collect_device_blocks(queue, n),
                             mark_roots_kernel, *view, roots, n);
out:
    return status;
}

enum vxd_status vxd_svdag_collect_device_mark(struct vxd_queue *queue,
                                              const struct vxd_svdag_collect_view *view,
                                              bool is_leaf, uint32_t begin, uint32_t n,
                                              struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (is_leaf) {
        VXD_SVDAG_COLLECT_LAUNCH(queue, vxd_svdag_collect_device_blocks(queue, n),
                                 mark_leaves_kernel, *view, begin, n);
    } else {
        VXD_SVDAG_COLLECT_LAUNCH(queue,
                                 vxd_svdag_collect_device_blocks(queue, (uint64_t)n * 8),
                                 mark_inner_kernel, *view, begin, n);
    }
out:
    return status;
}

static unsigned rank_blocks(uint32_t n_groups)
{
    return (n_groups + VXD_SVDAG_RANK_MARKS - 1) / VXD_SVDAG_RANK_MARKS;
}

enum vxd_status vxd_svdag_collect_device_count_marks(
    struct vxd_queue *queue, const struct vxd_svdag_collect_view *view, bool has_both,
    uint32_t n_groups, uint32_t *counts, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_SVDAG_COLLECT_LAUNCH(queue, rank_blocks(n_groups), count_marks_kernel, *view,
                             has_both, n_groups, counts);
out:
    return status;
}

enum vxd_status vxd_svdag_collect_device_rank(struct vxd_queue *queue,
                                              const struct vxd_svdag_collect_view *view,
                                              uint32_t n_groups, const uint32_t *sums,
                                              struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_SVDAG_COLLECT_LAUNCH(queue, rank_blocks(n_groups), rank_kernel, *view, n_groups,
                             sums);
out:
    return status;
}

enum vxd_status vxd_svdag_collect_device_merge(struct vxd_queue *queue,
                                               const struct vxd_svdag_collect_view *view,
                                               uint32_t n_groups, const uint32_t *sums,
                                               uint32_t *refs, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_SVDAG_COLLECT_LAUNCH(queue, rank_blocks(n_groups), merge_kernel, *view, n_groups,
                             sums, refs);
out:
    return status;
}
