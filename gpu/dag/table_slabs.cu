// SPDX-License-Identifier: Apache-2.0
/* The four slab tables' batches on a GPU (SVDAG editing, algorithms 1 and 2).
 *
 * A warp takes 32 items at a time: every lane hashes one, reads its list's first address and
 * begins to fetch that slab, then each group of eight lanes (table_slabs_cuda.h) works through its eight.
 *
 * find    a group goes down the list: a sector or two a slab, and an item's words where they
 *         may be equal. Groups go on to their next item by themselves, so that long lists keep
 *         none of the others waiting
 * insert  the first slab alone has room: a place of it is taken by one atomic operation, as
 *         the store's name says, and then the words are written. Where it has none, a slab is
 *         taken and swapped to the front, or given back where another group was faster
 *
 * Invariants of an insertion. Places and slabs of lists only go from free to taken. A slab
 * comes to the front of a list only past one that was seen full: all but the first are full. An
 * attempt fails only because others took a place or changed the front: at most n + 1 times.
 * Nobody waits for anybody. Words are read by later launches only. */
#include "gpu/dag/table_slabs_cuda.h"

#define N_THREADS 256
/* Blocks that a multiprocessor has at once, by their registers: searches wait for memory, so
 * that more of them are faster. */
#define N_FIND_BLOCKS 8
#define N_INSERT_BLOCKS 6

struct batch {
    struct vxd_dag_table_view view;
    const uint32_t *items;
    uint64_t n;
    uint32_t *refs;
    uint32_t *error_word;
};

/* What a lane knows of its own item. */
struct own {
    uint64_t hash;
    uint64_t head;
    uint32_t list;
};

static __device__ __forceinline__ struct own own_of(const struct batch *batch, uint64_t i)
{
    const struct vxd_dag_table_view *view = &batch->view;
    struct own own = {0, 0, 0};

    if (i < batch->n) {
        const uint32_t *words = batch->items + i * (uint64_t)view->n_words;

        own.hash = vxd_dag_hash(view->kind, words, view->n_words);
        own.head = vxd_slab_pair(words[0], words[1]);
        own.list = vxd_dag_slab_list(own.hash, view->n_lists);
    }
    return own;
}

/* The item of the group's lane r, which is number i. */
static __device__ __forceinline__ struct vxd_slab_needle
needle_of(const struct batch *batch, const struct vxd_slab_group *group,
          const struct own *own, uint32_t r, uint64_t i)
{
    struct vxd_slab_needle needle;

    needle.hash = vxd_slab_from64(group, own->hash, r);
    needle.head = vxd_slab_from64(group, own->head, r);
    needle.words = batch->items + i * (uint64_t)batch->view.n_words;
    return needle;
}

/* What of the item its places are looked up by. */
template <enum vxd_dag_store STORE>
static __device__ __forceinline__ uint64_t value_of(const struct vxd_slab_needle *needle)
{
    return STORE == VXD_DAG_ATOMIC64  ? needle->head
           : STORE == VXD_DAG_ACCEL32 ? vxd_dag_slab_hash32(needle->hash)
                                      : vxd_dag_slab_hash8(needle->hash);
}

/* --- finding ------------------------------------------------------------------------------ */

/* Of a ticket board: the places whose first two words are the item's. Lane i looks at places
 * i, i + 8, i + 16 and i + 24. */
static __device__ __forceinline__ uint32_t look_ticket(const struct vxd_slab_group *group,
                                                       const uint32_t *slab,
                                                       uint32_t n_words, uint64_t head,
                                                       uint32_t *next)
{
    uint4 board = *(const uint4 *)slab; /* one address for all lanes */
    uint64_t heads[4];
    uint32_t places = 0;

#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t *words = slab + 4 + (group->lane + 8 * k) * n_words;

        heads[k] = (board.x >> (group->lane + 8 * k) & 1u) != 0
                       ? vxd_slab_pair(words[0], words[1])
                       : ~head;
    }
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        places |= vxd_slab_ballot(group, heads[k] == head) << (8 * k);
    }
    *next = board.y;
    return places;
}

/* Whether the item at a place is the needle, of which `from` words are known to be equal. */
static __device__ __forceinline__ bool is_equal(const struct vxd_dag_table_view *view,
                                                const struct vxd_slab_group *group,
                                                const uint32_t *stored,
                                                const uint32_t *words, uint32_t from)
{
    bool differs = false;

    for (uint32_t k = from + group->lane; k < (uint32_t)view->n_words;
         k += VXD_SLAB_GROUP) {
        differs = differs || stored[k] != words[k];
    }
    return vxd_slab_ballot(group, differs) == 0;
}

/* Address of the needle in a slab, or VXD_DAG_EMPTY; *next is the slab after it. */
template <enum vxd_dag_store STORE>
static __device__ __forceinline__ uint32_t
find_in_slab(const struct vxd_dag_table_view *view, const struct vxd_slab_group *group,
             const struct vxd_slab_needle *needle, uint32_t slab, uint32_t *next)
{
    const uint32_t *words = vxd_slab_words(view, slab);
    uint32_t n_words = (uint32_t)view->n_words;
    uint32_t places;

    if (STORE == VXD_DAG_TICKET) {
        places = look_ticket(group, words, n_words, needle->head, next);
    } else {
        places = vxd_slab_look<STORE, false>(group, words, value_of<STORE>(needle), next);
    }
    for (; places != 0; places &= places - 1) {
        uint32_t at = vxd_dag_slab_item(&view->form, (uint32_t)__ffs((int)places) - 1);
        const uint32_t *stored = words + at;
        bool has_head = STORE == VXD_DAG_ATOMIC64 || STORE == VXD_DAG_TICKET;

        if (STORE == VXD_DAG_ATOMIC64 && n_words > 2) {
            /* As if the rest stood behind its head. */
            stored += (int)vxd_dag_split_distance(slab + at, view->n_words) - 2;
        }
        if (is_equal(view, group, stored, needle->words, has_head ? 2 : 0)) {
            return slab + at;
        }
    }
    return VXD_DAG_EMPTY;
}

template <enum vxd_dag_store STORE>
static __global__ void __launch_bounds__(N_THREADS, N_FIND_BLOCKS)
    find_kernel(const __grid_constant__ struct batch batch)
{
    const struct vxd_dag_table_view *view = &batch.view;
    struct vxd_slab_group group = vxd_slab_group_of_thread();
    uint64_t stride = (uint64_t)gridDim.x * N_THREADS;

    for (uint64_t warp = (uint64_t)blockIdx.x * N_THREADS + threadIdx.x / 32 * 32;
         warp < batch.n; warp += stride) {
        uint64_t begin = warp + group.base;
        struct own own = own_of(&batch, begin + group.lane);
        uint32_t first = begin + group.lane < batch.n ? view->lists[own.list] : 0;
        uint32_t mine = VXD_DAG_EMPTY;
        uint32_t r = 0;
        uint32_t slab = vxd_slab_from(&group, first, 0);
        struct vxd_slab_needle needle = needle_of(&batch, &group, &own, 0, begin);

        vxd_slab_prefetch(view, first);

        /* Lists have no circles: eight of them are at most eight times all slabs. */
        for (uint64_t left = 8 * ((uint64_t)view->n_chunks * view->form.n_slabs + 1);
             r < VXD_SLAB_GROUP && left > 0; left--) {
            uint32_t ref = VXD_DAG_EMPTY;

            if (slab != VXD_DAG_EMPTY) {
                uint32_t next;

                ref = find_in_slab<STORE>(view, &group, &needle, slab, &next);
                slab = ref != VXD_DAG_EMPTY ? VXD_DAG_EMPTY : next;
            }
            if (slab == VXD_DAG_EMPTY) {
                mine = group.lane == r ? ref : mine;
                r++;
                slab = vxd_slab_from(&group, first, r % VXD_SLAB_GROUP);
                needle = needle_of(&batch, &group, &own, r % VXD_SLAB_GROUP, begin + r);
            }
        }
        if (begin + group.lane < batch.n) {
            batch.refs[begin + group.lane] = mine;
        }
    }
}

/* --- inserting ---------------------------------------------------------------------------- */

/* Takes the byte of a place for a hash. A swap fails only where another place of the word was
 * taken: at most three times. */
static __device__ bool take_byte(uint32_t *slab, uint32_t place, uint32_t hash)
{
    uint32_t *word = slab + place / 4;
    uint32_t shift = place % 4 * 8;
    uint32_t seen = vxd_slab_read(word);

    for (int k = 0; k <= 4 && (seen >> shift & 0xffu) == 0; k++) {
        uint32_t before = atomicCAS(word, seen, seen | hash << shift);

        if (before == seen) {
            return true;
        }
        seen = before;
    }
    return false;
}

template <enum vxd_dag_store STORE>
static __device__ __forceinline__ bool take_place(uint32_t *slab, uint32_t place,
                                                  uint64_t value)
{
    if (STORE == VXD_DAG_ATOMIC64) {
        return atomicCAS((unsigned long long *)(slab + 2 * place), 0ULL,
                         (unsigned long long)value) == 0;
    }
    if (STORE == VXD_DAG_ACCEL32) {
        return atomicCAS(slab + place, 0u, (uint32_t)value) == 0;
    }
    return take_byte(slab, place, (uint32_t)value);
}

/* The lowest free bit of a board. One lane calls. */
static __device__ uint32_t take_ticket(uint32_t *slab)
{
    uint32_t taken = vxd_slab_read(slab);

    while (taken != 0xffffffffu) { /* at most 32 times: it gains a bit each time */
        uint32_t bit = ~taken & (taken + 1);
        uint32_t before = atomicOr(slab, bit);

        if ((before & bit) == 0) {
            return (uint32_t)__ffs((int)bit) - 1;
        }
        taken = before | bit;
    }
    return VXD_SLAB_NONE;
}

/* A place of a slab, now the caller's, or VXD_SLAB_NONE where all are taken. */
template <enum vxd_dag_store STORE>
static __device__ __forceinline__ uint32_t claim(const struct vxd_slab_group *group,
                                                 uint32_t *slab, uint64_t value)
{
    uint32_t place = VXD_SLAB_NONE;

    if (STORE == VXD_DAG_TICKET) {
        if (group->lane == 0) {
            place = take_ticket(slab);
        }
    } else {
        uint32_t next;
        uint32_t room = vxd_slab_look<STORE, true>(group, slab, 0, &next);

        for (; group->lane == 0 && room != 0; room &= room - 1) {
            uint32_t lowest = (uint32_t)__ffs((int)room) - 1;

            if (take_place<STORE>(slab, lowest, value)) {
                place = lowest;
                break;
            }
        }
    }
    return vxd_slab_from(group, place, 0);
}

template <enum vxd_dag_store STORE>
static __device__ __forceinline__ void
write_item(const struct vxd_dag_table_view *view, const struct vxd_slab_group *group,
           uint32_t *words, uint32_t ref, const uint32_t *item)
{
    uint32_t n_words = (uint32_t)view->n_words;
    uint32_t from = 0;

    if (STORE == VXD_DAG_ATOMIC64) { /* the swap wrote the head */
        from = 2;
        words += n_words > 2 ? (int)vxd_dag_split_distance(ref, view->n_words) - 2 : 0;
    }
    for (uint32_t k = from + group->lane; k < n_words; k += VXD_SLAB_GROUP) {
        words[k] = item[k];
    }
}

/* A slab goes to the front of a list, of which `front` was and was full. False: none is left. */
static __device__ bool lengthen(const struct vxd_dag_table_view *view,
                                const struct vxd_slab_group *group, uint32_t *list,
                                uint32_t front, uint32_t seed)
{
    uint32_t slab = vxd_slab_take(view, group, seed);

    if (slab == VXD_DAG_EMPTY) {
        return false;
    }
    if (group->lane == 0) {
        *(volatile uint32_t *)(vxd_slab_words(view, slab) + view->form.next) = front;
        __threadfence();
        if (atomicCAS(list, front, slab) != front) {
            vxd_slab_give_back(view, slab);
        }
    }
    return true;
}

/* Stores an item that the table does not hold; its address, or VXD_DAG_EMPTY without a slab. */
template <enum vxd_dag_store STORE>
static __device__ uint32_t insert_item(const struct batch *batch,
                                       const struct vxd_slab_group *group,
                                       const struct vxd_slab_needle *needle,
                                       uint32_t *list, uint32_t seed)
{
    const struct vxd_dag_table_view *view = &batch->view;

    for (uint64_t attempt = 0; attempt < 2 * batch->n + 2; attempt++) {
        uint32_t front = vxd_slab_from(group, vxd_slab_read(list), 0);

        if (front != VXD_DAG_EMPTY) {
            uint32_t *words = vxd_slab_words(view, front);
            uint32_t place = claim<STORE>(group, words, value_of<STORE>(needle));

            if (place != VXD_SLAB_NONE) {
                uint32_t at = vxd_dag_slab_item(&view->form, place);

                write_item<STORE>(view, group, words + at, front + at, needle->words);
                return front + at;
            }
        }
        if (!lengthen(view, group, list, front, seed)) {
            break;
        }
    }
    return VXD_DAG_EMPTY;
}

template <enum vxd_dag_store STORE>
static __global__ void __launch_bounds__(N_THREADS, N_INSERT_BLOCKS)
    insert_kernel(const __grid_constant__ struct batch batch)
{
    struct vxd_slab_group group = vxd_slab_group_of_thread();
    uint64_t stride = (uint64_t)gridDim.x * N_THREADS;

    for (uint64_t warp = (uint64_t)blockIdx.x * N_THREADS + threadIdx.x / 32 * 32;
         warp < batch.n; warp += stride) {
        uint64_t begin = warp + group.base;
        struct own own = own_of(&batch, begin + group.lane);
        uint32_t mine = VXD_DAG_EMPTY;

        if (begin + group.lane < batch.n) {
            vxd_slab_prefetch(&batch.view, vxd_slab_read(batch.view.lists + own.list));
        }
        for (uint32_t r = 0; r < VXD_SLAB_GROUP && begin + r < batch.n; r++) {
            struct vxd_slab_needle needle = needle_of(&batch, &group, &own, r, begin + r);
            uint32_t *list = batch.view.lists + vxd_slab_from(&group, own.list, r);
            uint32_t ref = insert_item<STORE>(&batch, &group, &needle, list,
                                              (uint32_t)(begin + r) * 0x9e3779b1u >> 8);

            mine = group.lane == r ? ref : mine;
            if (ref == VXD_DAG_EMPTY && group.lane == 0) {
                atomicCAS(batch.error_word, (uint32_t)VXD_OK,
                          (uint32_t)VXD_RESOURCE_EXHAUSTED);
            }
        }
        if (begin + group.lane < batch.n && batch.refs != NULL) {
            batch.refs[begin + group.lane] = mine;
        }
    }
}

/* --- launches ----------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(N_THREADS)
    count_kernel(const __grid_constant__ struct vxd_dag_table_view view,
                 uint64_t *n_slabs)
{
    uint64_t n = (uint64_t)view.n_chunks * VXD_DAG_CHUNK_BITMAP_WORDS;
    uint64_t i = (uint64_t)blockIdx.x * N_THREADS + threadIdx.x;
    uint32_t word = (uint32_t)(i % VXD_DAG_CHUNK_BITMAP_WORDS);

    if (i < n) {
        uint32_t bits = view.chunks[i / VXD_DAG_CHUNK_BITMAP_WORDS][word];

        atomicAdd((unsigned long long *)n_slabs,
                  (unsigned long long)__popc(bits & vxd_dag_slab_bits(&view.form, word)));
    }
}

static unsigned blocks_of(const struct vxd_queue *queue, unsigned at_once, uint64_t n)
{
    uint64_t most = (uint64_t)queue->context->info.n_multiprocessors * at_once;
    uint64_t wanted = (n + N_THREADS - 1) / N_THREADS;

    return (unsigned)(wanted < most ? wanted : most);
}

uint64_t vxd_dag_table_slabs_groups(const struct vxd_queue *queue, uint64_t n)
{
    return (uint64_t)blocks_of(queue, N_INSERT_BLOCKS, n) * (N_THREADS / VXD_SLAB_GROUP);
}

static struct batch batch_of(const struct vxd_queue *queue,
                             const struct vxd_dag_table_call *call)
{
    struct batch batch = {call->table->view, call->items, call->n, call->refs,
                          queue->error_word};

    return batch;
}

template <enum vxd_dag_store STORE>
static enum vxd_status launch(struct vxd_queue *queue,
                              const struct vxd_dag_table_call *call, bool inserts,
                              struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;

    if (inserts) {
        unsigned n_blocks = blocks_of(queue, N_INSERT_BLOCKS, call->n);

        insert_kernel<STORE><<<n_blocks, N_THREADS, 0, stream>>>(batch_of(queue, call));
        return vxd_cuda_launched(queue->context, "insert_kernel", err);
    }
    find_kernel<STORE>
        <<<blocks_of(queue, N_FIND_BLOCKS, call->n), N_THREADS, 0, stream>>>(
            batch_of(queue, call));
    return vxd_cuda_launched(queue->context, "find_kernel", err);
}

static enum vxd_status launch_any(struct vxd_queue *queue,
                                  const struct vxd_dag_table_call *call, bool inserts,
                                  struct vxd_err *err)
{
    enum vxd_status status = vxd_cuda_enter(queue->context, err);

    if (status != VXD_OK) {
        return status;
    }
    switch (call->table->spec.store) {
    case VXD_DAG_ATOMIC64:
        return launch<VXD_DAG_ATOMIC64>(queue, call, inserts, err);
    case VXD_DAG_TICKET:
        return launch<VXD_DAG_TICKET>(queue, call, inserts, err);
    case VXD_DAG_ACCEL32:
        return launch<VXD_DAG_ACCEL32>(queue, call, inserts, err);
    default:
        return launch<VXD_DAG_ACCEL8>(queue, call, inserts, err);
    }
}

enum vxd_status vxd_dag_table_slabs_insert(struct vxd_queue *queue,
                                           const struct vxd_dag_table_call *call,
                                           struct vxd_err *err)
{
    return launch_any(queue, call, true, err);
}

enum vxd_status vxd_dag_table_slabs_find(struct vxd_queue *queue,
                                         const struct vxd_dag_table_call *call,
                                         struct vxd_err *err)
{
    return launch_any(queue, call, false, err);
}

enum vxd_status vxd_dag_table_slabs_count(struct vxd_queue *queue,
                                          const struct vxd_dag_table *table,
                                          struct vxd_err *err)
{
    uint64_t n = (uint64_t)table->view.n_chunks * VXD_DAG_CHUNK_BITMAP_WORDS;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(vxd_queue_fill(queue, table->n_slabs, 0, sizeof *table->n_slabs, err));
    count_kernel<<<(unsigned)((n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                   (cudaStream_t)queue->stream>>>(table->view, table->n_slabs);
    VXD_TRY(vxd_cuda_launched(queue->context, "count_kernel", err));
out:
    return status;
}
