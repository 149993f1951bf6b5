// SPDX-License-Identifier: Apache-2.0
/* Batched insert and find of the arena on a GPU, a thread for each item, with the index
 * that scenes have (arena_index_math.h).
 *
 * find    reads a bucket of 32 bytes, and the words of the items whose tags match: about two
 *         random sectors for an item that is there, slightly more than one for one that is not
 * insert  appends items in order, so that a block writes its words in one piece. Then each item
 *         takes the first free slot of its bucket by a compare-and-swap of the seven tags.
 *         Addresses are written after the swap, as only later launches search */
#include "gpu/core/core_cuda.h"
#include "gpu/svdag/table/table_backends.h"

#define N_THREADS 256

struct batch {
    struct vxd_svdag_table_view view;
    const uint32_t *items;
    uint64_t n;
    uint64_t first; /* items in the table before */
    uint32_t *refs;
    uint32_t *error_word;
};

/* Address of the item that was stored as number i. */
static __device__ __forceinline__ uint32_t
address_of(const struct vxd_svdag_table_view *view, uint64_t i)
{
    uint32_t number = (uint32_t)i; /* at most VXD_SVDAG_MAX_TABLE_ITEMS */
    uint32_t chunk = number / view->chunk_items;

    return (chunk << VXD_SVDAG_CHUNK_BITS) +
           (number % view->chunk_items + 1) * (uint32_t)view->n_words;
}

static __device__ __forceinline__ uint32_t *
words_at(const struct vxd_svdag_table_view *view, uint32_t ref)
{
    return view->chunks[ref >> VXD_SVDAG_CHUNK_BITS] +
           (ref & (VXD_SVDAG_CHUNK_WORDS - 1));
}

/* Takes a slot for a reference. False: there is none. */
static __device__ bool take_slot(const struct vxd_svdag_table_view *view, uint64_t hash,
                                 uint32_t ref)
{
    const struct vxd_svdag_index *index = &view->index;
    uint32_t tag = vxd_svdag_tag_of(hash, (enum vxd_svdag_kind)view->kind);
    uint32_t at = vxd_svdag_home_bucket(hash, index->n_buckets);

    for (uint32_t i = 0; i < index->n_buckets && i < VXD_SVDAG_INDEX_PROBES; i++) {
        struct vxd_svdag_index_bucket *bucket = &index->buckets[at];
        uint32_t tags = *(volatile uint32_t *)&bucket->tags;

        /* A swap fails only if another thread took a slot of the bucket: at most seven
         * times. */
        for (int k = 0; k <= VXD_SVDAG_INDEX_SLOTS; k++) {
            uint32_t free_tags = vxd_svdag_tags_equal(tags, VXD_SVDAG_INDEX_NO_TAG);
            int slot;
            uint32_t before;

            if (free_tags == 0) {
                break;
            }
            slot = (__ffs((int)free_tags) - 1) / VXD_SVDAG_INDEX_TAG_BITS;
            before = atomicCAS(&bucket->tags, tags, tags | vxd_svdag_tag_bits(tag, slot));
            if (before == tags) {
                bucket->slots[slot] = ref | vxd_svdag_slot_hash(hash, index->addresses);
                return true;
            }
            tags = before;
        }
        at = at + 1 < index->n_buckets ? at + 1 : 0;
    }
    return false;
}

static __global__ void __launch_bounds__(N_THREADS)
    insert_kernel(const __grid_constant__ struct batch batch)
{
    const struct vxd_svdag_table_view *view = &batch.view;
    uint32_t n_words = (uint32_t)view->n_words;
    uint64_t begin = (uint64_t)blockIdx.x * N_THREADS;
    uint64_t i = begin + threadIdx.x;
    uint32_t n_here =
        batch.n - begin < N_THREADS ? (uint32_t)(batch.n - begin) : N_THREADS;
    uint32_t ref;

    for (uint32_t w = threadIdx.x; w < n_here * n_words; w += N_THREADS) {
        uint32_t item = w / n_words;

        words_at(view, address_of(view, batch.first + begin + item))[w % n_words] =
            batch.items[begin * n_words + w];
    }
    if (i >= batch.n) {
        return;
    }
    ref = address_of(view, batch.first + i);
    if (!take_slot(view,
                   vxd_svdag_hash(view->kind, batch.items + i * n_words, (int)n_words),
                   ref)) {
        ref = VXD_SVDAG_EMPTY;
        atomicCAS(batch.error_word, (uint32_t)VXD_OK, (uint32_t)VXD_RESOURCE_EXHAUSTED);
    }
    if (batch.refs != NULL) {
        batch.refs[i] = ref;
    }
}

static __device__ __forceinline__ bool is_equal(const uint32_t *stored,
                                                const uint32_t *words, int n_words)
{
    uint32_t differ = 0;

    for (int k = 0; k < n_words; k++) {
        differ |= stored[k] ^ words[k];
    }
    return differ == 0;
}

static __global__ void __launch_bounds__(N_THREADS)
    find_kernel(const __grid_constant__ struct batch batch)
{
    const struct vxd_svdag_table_view *view = &batch.view;
    const struct vxd_svdag_index *index = &view->index;
    uint64_t i = (uint64_t)blockIdx.x * N_THREADS + threadIdx.x;
    const uint32_t *words;
    uint64_t hash;
    uint32_t slot_hash;
    uint32_t tag;
    uint32_t at;
    uint32_t ref = VXD_SVDAG_EMPTY;
    bool is_more = true;

    if (i >= batch.n) {
        return;
    }
    words = batch.items + i * (uint64_t)view->n_words;
    hash = vxd_svdag_hash(view->kind, words, view->n_words);
    slot_hash = vxd_svdag_slot_hash(hash, index->addresses);
    tag = vxd_svdag_tag_of(hash, (enum vxd_svdag_kind)view->kind);
    at = vxd_svdag_home_bucket(hash, index->n_buckets);
    for (uint32_t k = 0; k < index->n_buckets && k < VXD_SVDAG_INDEX_PROBES && is_more;
         k++) {
        /* Buckets are aligned to 32 bytes: two loads of one sector. */
        const uint4 *halves = (const uint4 *)(const void *)&index->buckets[at];
        const uint4 low = halves[0];
        const uint4 high = halves[1];
        const struct vxd_svdag_index_bucket bucket = {
            {low.x, low.y, low.z, low.w, high.x, high.y, high.z}, high.w};
        /* A slot with an equal tag holds an item: free slots have no tag. */
        const uint32_t may = vxd_svdag_slots_that_may(
            &bucket, vxd_svdag_tags_equal(bucket.tags, tag), slot_hash, index->addresses);

        is_more = bucket.slots[VXD_SVDAG_INDEX_SLOTS - 1] != VXD_SVDAG_EMPTY;
#pragma unroll
        for (int slot = 0; slot < VXD_SVDAG_INDEX_SLOTS; slot++) {
            const uint32_t there = bucket.slots[slot] & index->addresses;

            if ((may & vxd_svdag_tag_bits(8, slot)) != 0 && ref == VXD_SVDAG_EMPTY &&
                is_equal(words_at(view, there), words, view->n_words)) {
                ref = there;
            }
        }
        is_more = is_more && ref == VXD_SVDAG_EMPTY;
        at = at + 1 < index->n_buckets ? at + 1 : 0;
    }
    batch.refs[i] = ref;
}

static struct batch batch_of(const struct vxd_queue *queue,
                             const struct vxd_svdag_table_call *call)
{
    struct batch batch = {call->table->view, call->items, call->n,
                          call->first,       call->refs,  queue->error_word};

    return batch;
}

static unsigned blocks_of(uint64_t n)
{
    return (unsigned)((n + N_THREADS - 1) / N_THREADS);
}

enum vxd_status vxd_svdag_table_arena_insert(struct vxd_queue *queue,
                                             const struct vxd_svdag_table_call *call,
                                             struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    insert_kernel<<<blocks_of(call->n), N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        batch_of(queue, call));
    VXD_TRY(vxd_cuda_launched(queue->context, "insert_kernel", err));
out:
    return status;
}

enum vxd_status vxd_svdag_table_arena_find(struct vxd_queue *queue,
                                           const struct vxd_svdag_table_call *call,
                                           struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    find_kernel<<<blocks_of(call->n), N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        batch_of(queue, call));
    VXD_TRY(vxd_cuda_launched(queue->context, "find_kernel", err));
out:
    return status;
}
