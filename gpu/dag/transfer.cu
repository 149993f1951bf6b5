// SPDX-License-Identifier: Apache-2.0
/* Kernels of transfers (transfer_cuda.c). Marks are eight lanes a node, one for each child: a
 * read of the node, in one piece, and a read of each child's mark, mostly from the L2 cache,
 * with an atomic for the first one that comes. Storing is a thread an item: its words, for each
 * child the mark and what it became, then words in one piece a warp and a slot of the index: a
 * sector read, and a swap in it. */
#include "gpu/core/cuda_check.h"
#include "gpu/dag/arena_math.h"
#include "gpu/dag/items_cuda.h"
#include "gpu/dag/transfer_cuda.h"

enum {
    THREADS = 256,
    MARKS_A_THREAD = VXD_DAG_RANK_MARKS / THREADS
};

static unsigned blocks_for(const struct vxd_queue *queue, uint64_t n)
{
    uint64_t most = (uint64_t)queue->context->info.n_multiprocessors * 8;
    uint64_t wanted = (n + THREADS - 1) / THREADS;

    return (unsigned)(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

/* Marks --------------------------------------------------------------------------------- */

static __device__ __forceinline__ const struct vxd_dag_mark *
find_mark(const struct vxd_dag_mark *marks, uint32_t ref, struct vxd_dag_mark *out)
{
    const struct vxd_dag_mark *at = &marks[ref / VXD_DAG_MARK_WORDS];
    const uint2 both = *(const uint2 *)(const void *)at;

    out->bits = both.x;
    out->base = both.y;
    return (both.x & vxd_dag_mark_bit(ref)) != 0 ? at : NULL;
}

/* Where it stands what a marked node became. */
static __device__ __forceinline__ uint32_t *
slot_of(const struct vxd_dag_carry_view *carry, uint32_t ref)
{
    struct vxd_dag_mark mark;

    if (find_mark(carry->marks[0], ref, &mark) != NULL) {
        return carry->refs[0] + vxd_dag_mark_number(&mark, ref);
    }
    (void)find_mark(carry->marks[1], ref, &mark);
    return carry->refs[1] + vxd_dag_mark_number(&mark, ref);
}

/* Marks a node; false where it was marked. */
static __device__ __forceinline__ bool mark_node(const struct vxd_dag_carry_view *carry,
                                                 uint32_t ref)
{
    const uint32_t bit = vxd_dag_mark_bit(ref);
    struct vxd_dag_mark mark;
    uint32_t *bits = &carry->marks[carry->fresh][ref / VXD_DAG_MARK_WORDS].bits;

    if (carry->fresh != 0 && find_mark(carry->marks[0], ref, &mark) != NULL) {
        return false;
    }
    return (vxd_dag_load_now(bits) & bit) == 0 && (atomicOr(bits, bit) & bit) == 0;
}

/* By all lanes of a warp. */
static __device__ __forceinline__ void list_node(const struct vxd_dag_carry_view *carry,
                                                 bool is_new, uint32_t ref)
{
    const uint32_t mask = __ballot_sync(UINT32_MAX, is_new);
    const uint32_t lane = threadIdx.x % 32;
    uint32_t begin = 0;

    if (lane == 0 && mask != 0) {
        begin = atomicAdd(&carry->state->n_listed, (uint32_t)__popc(mask));
    }
    begin = __shfl_sync(UINT32_MAX, begin, 0);
    if (is_new) {
        carry->list[begin + (uint32_t)__popc(mask & ((1u << lane) - 1))] = ref;
    }
}

static __global__ void __launch_bounds__(THREADS)
    mark_roots_kernel(const __grid_constant__ struct vxd_dag_carry_view carry,
                      const uint32_t *roots, uint32_t n)
{
    for (uint32_t first = blockIdx.x * THREADS; first < n; first += gridDim.x * THREADS) {
        const uint32_t i = first + threadIdx.x;
        const uint32_t ref = i < n ? roots[i] : VXD_DAG_EMPTY;

        list_node(&carry, vxd_dag_is_node(ref) && mark_node(&carry, ref), ref);
    }
}

static __global__ void __launch_bounds__(THREADS)
    mark_inner_kernel(const __grid_constant__ struct vxd_dag_carry_view carry,
                      uint32_t begin, uint32_t n)
{
    const uint32_t lane = threadIdx.x % 8;
    uint64_t n_words = 0;

    for (uint32_t first = blockIdx.x * THREADS; first < n * 8;
         first += gridDim.x * THREADS) {
        const uint32_t i = (first + threadIdx.x) / 8;
        uint32_t ref = VXD_DAG_EMPTY;

        if (i < n) {
            const uint32_t *words = vxd_dag_words(&carry.view, carry.list[begin + i]);
            const uint32_t n_children = (uint32_t)__popc(words[0] & 0xffu);

            n_words += lane == 0 ? n_children + 1 : 0;
            ref = lane < n_children ? words[1 + lane] : VXD_DAG_EMPTY;
        }
        list_node(&carry, vxd_dag_is_node(ref) && mark_node(&carry, ref), ref);
    }
    vxd_dag_warp_add(&carry.state->n_listed_words, n_words);
}

static __global__ void __launch_bounds__(THREADS)
    mark_leaves_kernel(const __grid_constant__ struct vxd_dag_carry_view carry,
                       uint32_t begin, uint32_t n)
{
    const int bits = carry.view.value_bits;
    uint64_t n_words = 0;

    for (uint32_t first = blockIdx.x * THREADS; first < n; first += gridDim.x * THREADS) {
        const uint32_t i = first + threadIdx.x;
        uint32_t ref = VXD_DAG_EMPTY;
        bool is_new = false;

        if (i < n) {
            const uint32_t *words = vxd_dag_words(&carry.view, carry.list[begin + i]);

            n_words += (uint64_t)vxd_dag_leaf_words(bits, vxd_dag_leaf_mask(words));
            ref = bits >= 8 ? words[2] : VXD_DAG_EMPTY;
            is_new = vxd_dag_is_node(ref) && mark_node(&carry, ref);
        }
        if (is_new) {
            n_words += (uint64_t)vxd_dag_block_words(
                bits, (int)vxd_dag_words(&carry.view, ref)[0]);
        }
        if (bits >= 8) {
            list_node(&carry, is_new, ref);
        }
    }
    vxd_dag_warp_add(&carry.state->n_listed_words, n_words);
}

/* Numbers ------------------------------------------------------------------------------- */

/* By all threads of a block: the sum of n before this thread's, and *total. */
static __device__ __forceinline__ uint32_t sum_before(uint32_t n, uint32_t *total)
{
    __shared__ uint32_t sums[THREADS / 32];
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
    for (uint32_t i = 0; i < THREADS / 32; i++) {
        before += i < threadIdx.x / 32 ? sums[i] : 0;
        *total += sums[i];
    }
    __syncthreads();
    return before + sum - n;
}

static __device__ __forceinline__ uint32_t bits_of(const struct vxd_dag_carry_view *carry,
                                                   bool has_both, uint32_t group)
{
    return has_both ? carry->marks[0][group].bits | carry->marks[1][group].bits
                    : carry->marks[carry->fresh][group].bits;
}

static __global__ void __launch_bounds__(THREADS)
    count_marks_kernel(const __grid_constant__ struct vxd_dag_carry_view carry,
                       bool has_both, uint32_t n_groups, uint32_t *counts)
{
    const uint32_t begin = blockIdx.x * VXD_DAG_RANK_MARKS;
    uint32_t n = 0;
    uint32_t total;

    for (uint32_t k = threadIdx.x; k < VXD_DAG_RANK_MARKS; k += THREADS) {
        n += begin + k < n_groups ? (uint32_t)__popc(bits_of(&carry, has_both, begin + k))
                                  : 0;
    }
    (void)sum_before(n, &total);
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = total;
    }
}

/* Groups of a block by turns of THREADS: in order, and read in one piece. */
static __global__ void __launch_bounds__(THREADS)
    rank_kernel(const __grid_constant__ struct vxd_dag_carry_view carry,
                uint32_t n_groups, const uint32_t *sums)
{
    uint32_t base = sums[blockIdx.x];

    for (uint32_t k = 0; k < MARKS_A_THREAD; k++) {
        const uint32_t group =
            blockIdx.x * VXD_DAG_RANK_MARKS + k * THREADS + threadIdx.x;
        const bool is_there = group < n_groups;
        const uint32_t n = is_there ? (uint32_t)__popc(bits_of(&carry, false, group)) : 0;
        uint32_t total;
        const uint32_t before = sum_before(n, &total);

        if (is_there) {
            carry.marks[carry.fresh][group].base = base + before;
        }
        base += total;
    }
}

static __device__ __forceinline__ void merge_group(const struct vxd_dag_carry_view *carry,
                                                   uint32_t group, uint32_t base,
                                                   uint32_t *refs)
{
    const struct vxd_dag_mark old = carry->marks[0][group];
    const struct vxd_dag_mark fresh = carry->marks[1][group];
    uint32_t n_old = 0;
    uint32_t n_fresh = 0;

    for (uint32_t rest = old.bits | fresh.bits; rest != 0; rest &= rest - 1) {
        const bool is_old = (old.bits & rest & (~rest + 1)) != 0;

        refs[base + n_old + n_fresh] = is_old ? carry->refs[0][old.base + n_old]
                                              : carry->refs[1][fresh.base + n_fresh];
        n_old += is_old ? 1 : 0;
        n_fresh += is_old ? 0 : 1;
    }
    carry->marks[0][group].bits = old.bits | fresh.bits;
    carry->marks[0][group].base = base;
    carry->marks[1][group].bits = 0;
}

static __global__ void __launch_bounds__(THREADS)
    merge_kernel(const __grid_constant__ struct vxd_dag_carry_view carry,
                 uint32_t n_groups, const uint32_t *sums, uint32_t *refs)
{
    uint32_t base = sums[blockIdx.x];

    for (uint32_t k = 0; k < MARKS_A_THREAD; k++) {
        const uint32_t group =
            blockIdx.x * VXD_DAG_RANK_MARKS + k * THREADS + threadIdx.x;
        const bool is_there = group < n_groups;
        const uint32_t n = is_there ? (uint32_t)__popc(bits_of(&carry, true, group)) : 0;
        uint32_t total;
        const uint32_t before = sum_before(n, &total);

        if (is_there) {
            merge_group(&carry, group, base + before, refs);
        }
        base += total;
    }
}

/* Items --------------------------------------------------------------------------------- */

/* An item's words with the references that its children have become. 0: one has none yet. */
template <int KIND>
static __device__ __forceinline__ int read_item(const struct vxd_dag_carry_view *carry,
                                                uint32_t ref, uint32_t *out)
{
    const enum vxd_dag_kind kind = (enum vxd_dag_kind)KIND;
    const uint32_t *words = vxd_dag_words(&carry->view, ref);
    const int n_words = vxd_dag_item_words(carry->view.value_bits, kind, words);
    int first;
    const int n_refs = vxd_dag_item_refs(carry->view.value_bits, kind, n_words, &first);

    for (int i = 0; i < n_words; i++) {
        out[i] = words[i];
    }
    for (int i = first; i < first + n_refs; i++) {
        if (vxd_dag_is_node(out[i])) {
            out[i] = *slot_of(carry, out[i]);
            if (out[i] == VXD_DAG_EMPTY) {
                return 0;
            }
        }
    }
    return n_words;
}

/* The item of a slot that has a tag: who took it tells at once. Its words were there before. */
static __device__ uint32_t wait_for_ref(const uint32_t *ref)
{
    uint32_t seen = vxd_dag_load_now(ref);

    while (seen == VXD_DAG_EMPTY) {
        seen = vxd_dag_load_now(ref);
    }
    __threadfence();
    return seen;
}

static __device__ bool is_stored(const struct vxd_dag_pass *to, uint32_t ref,
                                 const uint32_t *words, int n_words)
{
    const uint32_t *stored =
        to->chunks[ref >> VXD_DAG_CHUNK_BITS] + (ref & (VXD_DAG_CHUNK_WORDS - 1));

    for (int i = 0; i < n_words; i++) {
        if (vxd_dag_load_now(&stored[i]) != words[i]) {
            return false;
        }
    }
    return true;
}

/* Finds an item, or takes a slot for it at `ref`, where its words are. Others do so beside it:
 * equal items come to the same bucket, the first one that has room, where one swap of the tags
 * goes before the other. VXD_DAG_EMPTY: there is no room. */
static __device__ uint32_t find_or_take(const struct vxd_dag_pass *to, uint32_t ref,
                                        enum vxd_dag_kind kind, const uint32_t *words,
                                        int n_words)
{
    const uint64_t hash = vxd_dag_hash((uint32_t)kind, words, n_words);
    const uint32_t tag = vxd_dag_tag_of(hash, kind);
    uint32_t at = vxd_dag_home(hash, to->n_buckets);

    __threadfence();
    for (uint32_t i = 0; i < to->n_buckets && i < VXD_DAG_INDEX_PROBES; i++) {
        struct vxd_dag_index_bucket *bucket = &to->buckets[at];
        uint64_t tags = vxd_dag_load_now64(&bucket->tags);
        uint64_t checked = 0; /* tops of equal tags that are other items' */

        /* A swap fails only where another one took a slot. */
        for (int k = 0; k <= VXD_DAG_INDEX_SLOTS; k++) {
            uint64_t equal = vxd_dag_bucket_equal(tags, tag) & ~checked;
            const uint64_t room = vxd_dag_bucket_equal(tags, VXD_DAG_INDEX_NO_TAG);
            uint64_t seen;
            int slot;

            for (; equal != 0; equal &= equal - 1) {
                slot = (__ffsll((long long)equal) - 1) / VXD_DAG_INDEX_TAG_BITS;
                seen = wait_for_ref(&bucket->refs[slot]);
                if (is_stored(to, (uint32_t)seen, words, n_words)) {
                    return (uint32_t)seen;
                }
                checked |= equal & (~equal + 1);
            }
            if (room == 0) {
                break;
            }
            slot = (__ffsll((long long)room) - 1) / VXD_DAG_INDEX_TAG_BITS;
            seen = vxd_dag_atomic_cas64(&bucket->tags, tags,
                                        tags | vxd_dag_tag_bits(tag, slot));
            if (seen == tags) {
                *(volatile uint32_t *)&bucket->refs[slot] = ref;
                return ref;
            }
            tags = seen;
        }
        at = at + 1 < to->n_buckets ? at + 1 : 0;
    }
    return VXD_DAG_EMPTY;
}

/* What a thread counted over its items. */
struct tally {
    uint64_t n_put;
    uint64_t n_words;
    uint64_t n_new;
    uint64_t n_new_words;
};

/* Stores an item's words at `ref`, unless it is there. */
static __device__ __forceinline__ uint32_t put_item(const struct vxd_dag_pass *to,
                                                    uint32_t ref, enum vxd_dag_kind kind,
                                                    const uint32_t *words, int n_words)
{
    uint32_t *at =
        to->chunks[ref >> VXD_DAG_CHUNK_BITS] + (ref & (VXD_DAG_CHUNK_WORDS - 1));

    for (int i = 0; i < n_words; i++) {
        at[i] = words[i];
    }
    return find_or_take(to, ref, kind, words, n_words);
}

/* FINDS: of what is there alone, so that no words are taken in vain. */
template <int KIND, bool FINDS>
static __global__ void __launch_bounds__(THREADS)
    put_kernel(const __grid_constant__ struct vxd_dag_carry_view carry, uint32_t begin,
               uint32_t n, uint32_t *error_word)
{
    const enum vxd_dag_kind kind = (enum vxd_dag_kind)KIND;
    const struct vxd_dag_pass *to = &carry.to;
    uint32_t words[KIND == VXD_DAG_BLOCK ? VXD_DAG_MAX_ITEM_WORDS : 10];
    struct tally tally = {0, 0, 0, 0};

    for (uint32_t start = blockIdx.x * THREADS; start < n; start += gridDim.x * THREADS) {
        const uint32_t i = start + threadIdx.x;
        uint32_t *slot = NULL;
        uint32_t own = VXD_DAG_EMPTY;
        uint32_t ref = VXD_DAG_EMPTY;
        int n_words = 0;

        if (i < n) {
            slot = slot_of(&carry, carry.list[begin + i]);
            if (*slot == VXD_DAG_EMPTY) {
                n_words = read_item<KIND>(&carry, carry.list[begin + i], words);
                if (n_words == 0) {
                    carry.state->is_left = 1;
                }
            }
        }
        if (!FINDS) {
            own = vxd_dag_take_words(&to->store->next, 0, (uint32_t)n_words);
        }
        if (n_words > 0) {
            ref = FINDS ? vxd_dag_index_find(to->buckets, to->n_buckets, &to->view, kind,
                                             words, n_words)
                        : put_item(to, own, kind, words, n_words);
            *slot = ref;
            tally.n_put += ref != VXD_DAG_EMPTY ? 1 : 0;
            tally.n_words += ref != VXD_DAG_EMPTY ? (uint64_t)n_words : 0;
        }
        if (!FINDS && n_words > 0) {
            tally.n_new += ref == own ? 1 : 0;
            tally.n_new_words += ref == own ? (uint64_t)n_words : 0;
            if (ref == VXD_DAG_EMPTY) {
                (void)atomicCAS_system(error_word, VXD_OK, VXD_INTERNAL);
            }
        }
    }
    vxd_dag_warp_add(&carry.state->n_put, tally.n_put);
    vxd_dag_warp_add(&carry.state->n_put_words, tally.n_words);
    if (!FINDS) {
        vxd_dag_warp_add(&carry.state->n_stored, tally.n_new);
        vxd_dag_warp_add(&to->store->n_items[KIND], tally.n_new);
        vxd_dag_warp_add(&to->store->n_words, tally.n_new_words);
    }
}

static __global__ void __launch_bounds__(THREADS)
    read_kernel(const __grid_constant__ struct vxd_dag_carry_view carry,
                const uint32_t *roots, uint32_t *refs, uint32_t n)
{
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n;
         i += gridDim.x * THREADS) {
        refs[i] = vxd_dag_is_node(roots[i]) ? *slot_of(&carry, roots[i]) : roots[i];
    }
}

/* Launches ------------------------------------------------------------------------------ */

/* Of THREADS each. */
#define LAUNCH(queue, n_blocks, kernel, ...)                                             \
    do {                                                                                 \
        VXD_TRY(vxd_cuda_enter((queue)->context, err));                                  \
        kernel<<<(n_blocks), THREADS, 0, (cudaStream_t)(queue)->stream>>>(__VA_ARGS__);  \
        VXD_TRY(vxd_cuda_launched((queue)->context, #kernel, err));                      \
    } while (0)

enum vxd_status vxd_dag_carry_mark_roots(struct vxd_queue *queue,
                                         const struct vxd_dag_carry_view *view,
                                         const uint32_t *roots, uint32_t n,
                                         struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    LAUNCH(queue, blocks_for(queue, n), mark_roots_kernel, *view, roots, n);
out:
    return status;
}

enum vxd_status vxd_dag_carry_mark(struct vxd_queue *queue,
                                   const struct vxd_dag_carry_view *view, bool is_leaf,
                                   uint32_t begin, uint32_t n, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (is_leaf) {
        LAUNCH(queue, blocks_for(queue, n), mark_leaves_kernel, *view, begin, n);
    } else {
        LAUNCH(queue, blocks_for(queue, (uint64_t)n * 8), mark_inner_kernel, *view, begin,
               n);
    }
out:
    return status;
}

static unsigned rank_blocks(uint32_t n_groups)
{
    return (n_groups + VXD_DAG_RANK_MARKS - 1) / VXD_DAG_RANK_MARKS;
}

enum vxd_status vxd_dag_carry_count_marks(struct vxd_queue *queue,
                                          const struct vxd_dag_carry_view *view,
                                          bool has_both, uint32_t n_groups,
                                          uint32_t *counts, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    LAUNCH(queue, rank_blocks(n_groups), count_marks_kernel, *view, has_both, n_groups,
           counts);
out:
    return status;
}

enum vxd_status vxd_dag_carry_rank(struct vxd_queue *queue,
                                   const struct vxd_dag_carry_view *view,
                                   uint32_t n_groups, const uint32_t *sums,
                                   struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    LAUNCH(queue, rank_blocks(n_groups), rank_kernel, *view, n_groups, sums);
out:
    return status;
}

enum vxd_status vxd_dag_carry_merge(struct vxd_queue *queue,
                                    const struct vxd_dag_carry_view *view,
                                    uint32_t n_groups, const uint32_t *sums,
                                    uint32_t *refs, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    LAUNCH(queue, rank_blocks(n_groups), merge_kernel, *view, n_groups, sums, refs);
out:
    return status;
}

template <int KIND>
static enum vxd_status put(struct vxd_queue *queue, const struct vxd_dag_carry_view *view,
                           bool finds, uint32_t begin, uint32_t n, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (finds) {
        LAUNCH(queue, blocks_for(queue, n), (put_kernel<KIND, true>), *view, begin, n,
               queue->error_word);
    } else {
        LAUNCH(queue, blocks_for(queue, n), (put_kernel<KIND, false>), *view, begin, n,
               queue->error_word);
    }
out:
    return status;
}

enum vxd_status vxd_dag_carry_put(struct vxd_queue *queue,
                                  const struct vxd_dag_carry_view *view,
                                  enum vxd_dag_kind kind, bool finds, uint32_t begin,
                                  uint32_t n, struct vxd_err *err)
{
    return kind == VXD_DAG_BLOCK  ? put<VXD_DAG_BLOCK>(queue, view, finds, begin, n, err)
           : kind == VXD_DAG_LEAF ? put<VXD_DAG_LEAF>(queue, view, finds, begin, n, err)
                                  : put<VXD_DAG_INNER>(queue, view, finds, begin, n, err);
}

enum vxd_status vxd_dag_carry_read(struct vxd_queue *queue,
                                   const struct vxd_dag_carry_view *view,
                                   const uint32_t *roots, uint32_t *refs, uint32_t n,
                                   struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    LAUNCH(queue, blocks_for(queue, n), read_kernel, *view, roots, refs, n);
out:
    return status;
}
