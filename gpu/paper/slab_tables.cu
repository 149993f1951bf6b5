// SPDX-License-Identifier: Apache-2.0
/* The four slab tables' batches on a GPU (SVDAG editing, algorithms 1 and 2).
 *
 * Where the paper has a warp an item, we have groups of 2 to 8 lanes: enough to read what
 * says which places of a slab are taken, 32 to 256 bytes, in a few loads of 16 bytes. So 4
 * to 16 items are under way in a warp. A warp takes 32 items at a time: every lane hashes
 * one and prefetches the front slab of its list; groups work through them, each on to the
 * next one as soon as it is done. All groups of a warp make one step at a time, together,
 * those without work too, so every shuffle and vote is called by all 32 lanes.
 *
 * find    a step looks at a slab, and at an item's words where they may be equal
 * insert  only the front slab has free places: one is taken by an atomic operation, which
 *         the store is named after, and then the words are written. Where it is full, the
 *         warp takes a slab for the group, which swaps it to the front, or gives it back
 *         where another group was faster */
#include <stdlib.h>

#include "gpu/core/core_cuda.h"
#include "gpu/svdag/table/table_math.h"
#include "gpu/paper/slab_cuda.h"
#include "gpu/paper/slab_stores.h"

/* Invariants of an insertion. Places and slabs of lists only go from free to taken. A slab
 * comes to the front of a list only past one that was seen full: all but the first are full.
 * An attempt fails only because others took a place or changed the front: at most n + 1
 * times. Nobody waits for anybody. Words are read by later launches only. */

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
 * so that all fill evenly and hardly any is full long before the last one is; all blocks are
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

#define N_THREADS 256
/* Blocks that a multiprocessor has at once, by their registers: both wait for memory, so that
 * more of them are faster. */
#define N_BLOCKS 6

struct batch {
    struct vxd_slab_table_view view;
    const uint32_t *items;
    uint64_t n;
    uint32_t *refs;
    uint32_t *error_word;
};

/* Lanes of a group. More read a slab in fewer loads, fewer have more items under way; what was
 * fastest. */
VXD_HD constexpr uint32_t lanes_to_find(enum vxd_svdag_store store)
{
    return store == VXD_SVDAG_TICKET ? 8 : store == VXD_SVDAG_ACCEL8 ? 2 : 4;
}

VXD_HD constexpr uint32_t lanes_to_insert(enum vxd_svdag_store store)
{
    return store == VXD_SVDAG_TICKET ? 8 : 4;
}

/* A value that any lane has. */
template <enum vxd_svdag_store STORE>
static __device__ __forceinline__ uint64_t value_from(uint64_t value, uint32_t lane)
{
    if (STORE == VXD_SVDAG_ACCEL32 || STORE == VXD_SVDAG_ACCEL8) {
        return vxd_slab_from_warp((uint32_t)value, lane);
    }
    return __shfl_sync(VXD_SLAB_WARP, (unsigned long long)value, (int)lane);
}

/* 32 items of a warp, of which a lane knows one each, and how many of them groups were given. */
struct hand {
    uint64_t begin;  /* first of the 32 */
    uint64_t stride; /* to the warp's next 32 */
    uint32_t n_given;
    uint32_t
        from; /* the lane's: slab at the front of its list, or, to insert, its list */
    uint64_t value; /* by which its places are looked up */
};

/* What a group works on. */
struct work {
    bool is_busy;
    uint32_t from;
    uint64_t value;
    uint64_t i; /* the item */
};

static __device__ __forceinline__ struct hand hand_of_thread(void)
{
    struct hand hand = {0, (uint64_t)gridDim.x * N_THREADS, 32, VXD_SVDAG_EMPTY, 0};

    /* The first 32 are still to be taken. */
    hand.begin = (uint64_t)blockIdx.x * N_THREADS + threadIdx.x / 32 * 32 - hand.stride;
    return hand;
}

template <enum vxd_svdag_store STORE, bool FINDS>
static __device__ __forceinline__ void take_hand(const struct batch *batch, uint32_t lane,
                                                 struct hand *hand)
{
    const struct vxd_slab_table_view *view = &batch->view;
    uint64_t i;

    hand->begin += hand->stride;
    hand->n_given = 0;
    i = hand->begin + lane;
    if (i < batch->n) {
        const uint32_t *words = batch->items + i * (uint64_t)view->n_words;
        uint64_t hash = vxd_svdag_hash(view->kind, words, view->n_words);
        uint32_t list = vxd_svdag_slab_list(hash, view->n_lists);
        uint32_t front = vxd_slab_read(view->lists + list);

        vxd_slab_prefetch(view, front);
        hand->from = FINDS ? front : list;
        hand->value = STORE == VXD_SVDAG_ACCEL32  ? vxd_svdag_slab_hash32(hash)
                      : STORE == VXD_SVDAG_ACCEL8 ? vxd_svdag_slab_hash8(hash)
                                                  : vxd_slab_pair(words[0], words[1]);
    }
}

/* Gives groups that have no work an item each, as long as there are some. False when all are
 * done. */
template <enum vxd_svdag_store STORE, uint32_t LANES, bool FINDS>
static __device__ __forceinline__ bool next_batch(const struct batch *batch,
                                                  struct hand *hand, struct work *work)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t takers = __ballot_sync(VXD_SLAB_WARP, !work->is_busy && lane % LANES == 0);
    uint32_t mine;
    uint32_t from;
    uint64_t value;

    if (takers == 0) {
        return true;
    }
    if (hand->n_given == 32 && hand->begin + hand->stride < batch->n) {
        take_hand<STORE, FINDS>(batch, lane, hand);
    }
    mine = hand->n_given + (uint32_t)__popc(takers & ((1u << (lane & ~(LANES - 1))) - 1));
    hand->n_given = min(32u, hand->n_given + (uint32_t)__popc(takers));
    from = vxd_slab_from_warp(hand->from, mine % 32);
    value = value_from<STORE>(hand->value, mine % 32);
    if (!work->is_busy && mine < 32) {
        work->from = from;
        work->value = value;
        work->i = hand->begin + mine;
        work->is_busy = work->i < batch->n;
    }
    return hand->n_given < 32 || hand->begin + hand->stride < batch->n ||
           __any_sync(VXD_SLAB_WARP, work->is_busy);
}

/* --- finding ------------------------------------------------------------------------------ */

/* Of a ticket board: the places whose first two words are the item's. They are only read where
 * the slab's bits say that there may be one. */
template <uint32_t LANES>
static __device__ __forceinline__ uint32_t look_ticket(uint32_t lane,
                                                       const uint32_t *slab,
                                                       uint32_t n_words, uint64_t head,
                                                       uint32_t *next)
{
    constexpr uint32_t SHARE = VXD_SVDAG_SLAB_PLACES / LANES;
    uint32_t places = 0;

    *next = VXD_SVDAG_EMPTY;
    if (slab != NULL) {
        uint4 board = *(const uint4 *)slab; /* one address for all lanes */
        uint32_t taken =
            (board.w & vxd_svdag_slab_filter((uint32_t)head, (uint32_t)(head >> 32))) != 0
                ? board.x
                : 0;
        uint64_t heads[SHARE];

#pragma unroll
        for (uint32_t k = 0; k < SHARE; k++) {
            const uint32_t *words = slab + 4 + (lane + LANES * k) * n_words;

            if ((taken >> (lane + LANES * k) & 1u) == 0) {
                heads[k] = ~head;
            } else if (n_words % 2 == 0) {
                heads[k] = *(const uint64_t *)words;
            } else {
                heads[k] = vxd_slab_pair(words[0], words[1]);
            }
        }
#pragma unroll
        for (uint32_t k = 0; k < SHARE; k++) {
            places |= heads[k] == head ? 1u << (lane + LANES * k) : 0u;
        }
        *next = board.y;
    }
    return vxd_slab_append<LANES>(places);
}

/* Which of the places of a slab holds the item, of which two words are known to be equal in
 * some stores: its address, or VXD_SVDAG_EMPTY. */
template <enum vxd_svdag_store STORE, uint32_t LANES>
static __device__ __forceinline__ uint32_t
match_items(const struct vxd_slab_table_view *view, uint32_t lane, uint32_t slab,
            const uint32_t *words, uint32_t places, const uint32_t *item)
{
    constexpr bool HAS_HEAD = STORE == VXD_SVDAG_ATOMIC64 || STORE == VXD_SVDAG_TICKET;
    uint32_t n_words = (uint32_t)view->n_words;
    uint32_t group = (LANES < 32 ? (1u << LANES) - 1 : VXD_SLAB_WARP)
                     << (threadIdx.x % 32 & ~(LANES - 1));
    uint32_t ref = VXD_SVDAG_EMPTY;

    while (__any_sync(VXD_SLAB_WARP, places != 0)) {
        uint32_t at = 0;
        bool differs = false;
        uint32_t differing;

        if (places != 0) {
            const uint32_t *stored;

            at = vxd_svdag_slab_item(&view->form, (uint32_t)__ffs((int)places) - 1);
            stored = words + at;
            if (STORE == VXD_SVDAG_ATOMIC64 && n_words > 2) {
                /* As if the rest stood behind its head. */
                stored += (int)vxd_svdag_split_distance(slab + at, view->n_words) - 2;
            }
            for (uint32_t k = (HAS_HEAD ? 2 : 0) + lane; k < n_words; k += LANES) {
                differs |= stored[k] != item[k];
            }
        }
        differing = __ballot_sync(VXD_SLAB_WARP, differs) & group;
        if (places != 0) {
            ref = differing == 0 ? slab + at : ref;
            places = differing == 0 ? 0 : places & (places - 1);
        }
    }
    return ref;
}

template <enum vxd_svdag_store STORE>
static __global__ void __launch_bounds__(N_THREADS, N_BLOCKS)
    find_kernel(const __grid_constant__ struct batch batch)
{
    constexpr uint32_t LANES = lanes_to_find(STORE);
    const struct vxd_slab_table_view *view = &batch.view;
    uint32_t lane = threadIdx.x % LANES;
    struct hand hand = hand_of_thread();
    struct work work = {false, VXD_SVDAG_EMPTY, 0, 0};
    /* Lists have no circles: of each item all slabs, at most. */
    uint64_t left = (batch.n / hand.stride + 1) * 64 *
                    ((uint64_t)view->n_chunks * view->form.n_slabs + 1);

    for (; next_batch<STORE, LANES, true>(&batch, &hand, &work) && left > 0; left--) {
        const uint32_t *words = work.is_busy && work.from != VXD_SVDAG_EMPTY
                                    ? vxd_slab_words(view, work.from)
                                    : NULL;
        uint32_t next;
        uint32_t places;
        uint32_t ref;

        if constexpr (STORE == VXD_SVDAG_TICKET) {
            places = look_ticket<LANES>(lane, words, (uint32_t)view->n_words, work.value,
                                        &next);
        } else {
            places = vxd_slab_look<STORE, LANES, false>(lane, words, work.value, &next);
        }
        ref = match_items<STORE, LANES>(view, lane, work.from, words, places,
                                        batch.items + work.i * (uint64_t)view->n_words);

        work.from = next;
        if (work.is_busy && (ref != VXD_SVDAG_EMPTY || next == VXD_SVDAG_EMPTY)) {
            work.is_busy = false;
            if (lane == 0) {
                batch.refs[work.i] = ref;
            }
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

template <enum vxd_svdag_store STORE>
static __device__ __forceinline__ bool take_place(uint32_t *slab, uint32_t place,
                                                  uint64_t value)
{
    if (STORE == VXD_SVDAG_ATOMIC64) {
        return atomicCAS((unsigned long long *)(slab + 2 * place), 0ULL,
                         (unsigned long long)value) == 0;
    }
    if (STORE == VXD_SVDAG_ACCEL32) {
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

/* A place of a slab, now the group's, or VXD_SLAB_NONE where all are taken, or of NULL. */
template <enum vxd_svdag_store STORE, uint32_t LANES>
static __device__ __forceinline__ uint32_t claim(uint32_t lane, uint32_t *slab,
                                                 uint64_t value)
{
    uint32_t place = VXD_SLAB_NONE;

    if constexpr (STORE == VXD_SVDAG_TICKET) {
        if (lane == 0 && slab != NULL) {
            place = take_ticket(slab);
            if (place != VXD_SLAB_NONE) {
                atomicOr(slab + 3,
                         vxd_svdag_slab_filter((uint32_t)value, (uint32_t)(value >> 32)));
            }
        }
    } else {
        uint32_t next;
        uint32_t n_left = vxd_slab_look<STORE, LANES, true>(lane, slab, 0, &next);

        for (; lane == 0 && n_left != 0; n_left &= n_left - 1) {
            uint32_t lowest = (uint32_t)__ffs((int)n_left) - 1;

            if (take_place<STORE>(slab, lowest, value)) {
                place = lowest;
                break;
            }
        }
    }
    return vxd_slab_from<LANES>(place, 0);
}

template <enum vxd_svdag_store STORE, uint32_t LANES>
static __device__ __forceinline__ void write_item(const struct vxd_slab_table_view *view,
                                                  uint32_t lane, uint32_t *words,
                                                  uint32_t ref, const uint32_t *item)
{
    uint32_t n_words = (uint32_t)view->n_words;
    uint32_t from = 0;

    if (STORE == VXD_SVDAG_ATOMIC64) { /* the swap wrote the head */
        from = 2;
        words += n_words > 2 ? (int)vxd_svdag_split_distance(ref, view->n_words) - 2 : 0;
    }
    for (uint32_t k = from + lane; k < n_words; k += LANES) {
        words[k] = item[k];
    }
}

/* A slab goes to the front of a list, of which `front` was and was full. One lane calls. */
static __device__ void lengthen(const struct vxd_slab_table_view *view, uint32_t list,
                                uint32_t front, uint32_t slab)
{
    *(volatile uint32_t *)(vxd_slab_words(view, slab) + view->form.next) = front;
    __threadfence();
    if (atomicCAS(view->lists + list, front, slab) != front) {
        vxd_slab_give_back(view, slab);
    }
}

/* Takes slabs for the groups that say so, one after the other, so that a warp never holds two.
 * False to groups for which none is left. */
template <uint32_t LANES>
static __device__ __forceinline__ bool
lengthen_all(const struct vxd_slab_table_view *view, bool needs, const struct work *work,
             uint32_t front)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t owners = __ballot_sync(VXD_SLAB_WARP, needs && lane % LANES == 0);
    bool has_one = true;

    for (; owners != 0; owners &= owners - 1) {
        uint32_t owner = (uint32_t)__ffs((int)owners) - 1;
        uint32_t seed = vxd_slab_from_warp((uint32_t)work->i, owner) * 0x9e3779b1u;
        uint32_t slab = vxd_slab_take(view, lane, seed);

        if (slab == VXD_SVDAG_EMPTY) {
            has_one = has_one && lane / LANES != owner / LANES;
        } else if (lane == owner) {
            lengthen(view, work->from, front, slab);
        }
        __syncwarp();
    }
    return has_one;
}

template <enum vxd_svdag_store STORE>
static __global__ void __launch_bounds__(N_THREADS, N_BLOCKS)
    insert_kernel(const __grid_constant__ struct batch batch)
{
    constexpr uint32_t LANES = lanes_to_insert(STORE);
    const struct vxd_slab_table_view *view = &batch.view;
    uint32_t lane = threadIdx.x % LANES;
    struct hand hand = hand_of_thread();
    struct work work = {false, 0, 0, 0};
    uint64_t left = (batch.n / hand.stride + 1) * 32 * (2 * batch.n + 2);

    while (next_batch<STORE, LANES, false>(&batch, &hand, &work)) {
        uint32_t front = vxd_slab_from<LANES>(
            work.is_busy ? vxd_slab_read(view->lists + work.from) : VXD_SVDAG_EMPTY, 0);
        uint32_t *words = front != VXD_SVDAG_EMPTY ? vxd_slab_words(view, front) : NULL;
        uint32_t place = claim<STORE, LANES>(lane, words, work.value);
        uint32_t ref = VXD_SVDAG_EMPTY;
        bool is_over;

        if (place != VXD_SLAB_NONE) {
            ref = front + vxd_svdag_slab_item(&view->form, place);
            write_item<STORE, LANES>(view, lane,
                                     words + vxd_svdag_slab_item(&view->form, place), ref,
                                     batch.items + work.i * (uint64_t)view->n_words);
        }
        is_over = !lengthen_all<LANES>(view, work.is_busy && place == VXD_SLAB_NONE,
                                       &work, front) ||
                  left-- == 0;
        if (work.is_busy && (ref != VXD_SVDAG_EMPTY || is_over)) {
            work.is_busy = false;
            if (lane == 0 && batch.refs != NULL) {
                batch.refs[work.i] = ref;
            }
            if (lane == 0 && ref == VXD_SVDAG_EMPTY) {
                atomicCAS(batch.error_word, (uint32_t)VXD_OK,
                          (uint32_t)VXD_RESOURCE_EXHAUSTED);
            }
        }
    }
}

/* --- launches ----------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(N_THREADS)
    count_kernel(const __grid_constant__ struct vxd_slab_table_view view,
                 uint64_t *n_slabs)
{
    uint64_t n = (uint64_t)view.n_chunks * VXD_SVDAG_CHUNK_BITMAP_WORDS;
    uint64_t i = (uint64_t)blockIdx.x * N_THREADS + threadIdx.x;
    uint32_t word = (uint32_t)(i % VXD_SVDAG_CHUNK_BITMAP_WORDS);

    if (i < n) {
        uint32_t bits = view.chunks[i / VXD_SVDAG_CHUNK_BITMAP_WORDS][word];

        atomicAdd(
            (unsigned long long *)n_slabs,
            (unsigned long long)__popc(bits & vxd_svdag_slab_bits(&view.form, word)));
    }
}

static unsigned blocks_of(const struct vxd_queue *queue, uint64_t n)
{
    uint64_t most = (uint64_t)queue->context->info.n_multiprocessors * N_BLOCKS;
    uint64_t needed = (n + N_THREADS - 1) / N_THREADS;

    return (unsigned)(needed < most ? needed : most);
}

/* Warps that one launch over n items has at once: each may hold one slab that is in no list. */
static uint64_t takers_of(const struct vxd_queue *queue, uint64_t n)
{
    return (uint64_t)blocks_of(queue, n) * (N_THREADS / 32);
}

/* What is known of a table besides its memory; the table's own. */
struct slab_table {
    struct vxd_slab_table_view view;
    uint64_t *n_slabs; /* device: where slabs are counted */
};

static const struct slab_table *slab_table_of(const struct vxd_svdag_table *table)
{
    return (const struct slab_table *)table->own;
}

template <enum vxd_svdag_store STORE>
static enum vxd_status launch(struct vxd_queue *queue,
                              const struct vxd_svdag_table_call *call, bool inserts,
                              struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_blocks = blocks_of(queue, call->n);
    struct batch batch = {slab_table_of(call->table)->view, call->items, call->n,
                          call->refs, queue->error_word};

    if (inserts) {
        insert_kernel<STORE><<<n_blocks, N_THREADS, 0, stream>>>(batch);
        return vxd_cuda_launched(queue->context, "insert_kernel", err);
    }
    find_kernel<STORE><<<n_blocks, N_THREADS, 0, stream>>>(batch);
    return vxd_cuda_launched(queue->context, "find_kernel", err);
}

static enum vxd_status launch_any(struct vxd_queue *queue,
                                  const struct vxd_svdag_table_call *call, bool inserts,
                                  struct vxd_err *err)
{
    enum vxd_status status = vxd_cuda_enter(queue->context, err);

    if (status != VXD_OK) {
        return status;
    }
    switch (call->table->spec.store) {
    case VXD_SVDAG_ATOMIC64:
        return launch<VXD_SVDAG_ATOMIC64>(queue, call, inserts, err);
    case VXD_SVDAG_TICKET:
        return launch<VXD_SVDAG_TICKET>(queue, call, inserts, err);
    case VXD_SVDAG_ACCEL32:
        return launch<VXD_SVDAG_ACCEL32>(queue, call, inserts, err);
    default:
        return launch<VXD_SVDAG_ACCEL8>(queue, call, inserts, err);
    }
}

/* --- tables ------------------------------------------------------------------------------- */

static enum vxd_status slabs_insert(struct vxd_queue *queue,
                                    const struct vxd_svdag_table_call *call,
                                    struct vxd_err *err)
{
    return launch_any(queue, call, true, err);
}

static enum vxd_status slabs_find(struct vxd_queue *queue,
                                  const struct vxd_svdag_table_call *call,
                                  struct vxd_err *err)
{
    return launch_any(queue, call, false, err);
}

/* Chunks that hold the table's items whatever their hashes, and what of the view depends on it. */
static uint64_t shape(const struct vxd_queue *queue,
                      const struct vxd_svdag_table_spec *spec,
                      struct vxd_slab_table_view *view)
{
    uint64_t n_slabs;
    uint64_t n_chunks;

    view->form = vxd_svdag_slab_form_of(spec->store, spec->n_words);
    view->n_lists = vxd_svdag_slab_lists(spec->n_items, spec->load);
    /* All slabs of a list but its first are full; and each warp that inserts may hold one
     * that is in no list. */
    n_slabs = spec->n_items / vxd_svdag_slab_places(&view->form) + view->n_lists +
              takers_of(queue, spec->n_items);
    n_chunks = (n_slabs + view->form.n_slabs - 1) / view->form.n_slabs;
    view->chunk_blocks = (view->form.n_slabs + 1023) / 1024;
    view->n_blocks = (uint32_t)n_chunks * view->chunk_blocks;
    return n_chunks;
}

static enum vxd_status slabs_open(struct vxd_queue *queue, struct vxd_svdag_table *table,
                                  struct vxd_err *err)
{
    struct slab_table *own = (struct slab_table *)calloc(1, sizeof *own);
    size_t n_bytes = 0;
    size_t at[2];
    uint64_t n_chunks;
    void *index = NULL;
    enum vxd_status status;

    if (own == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a table");
    }
    n_chunks = shape(queue, &table->spec, &own->view);
    if (!vxd_layout_add(&n_bytes, own->view.n_lists, sizeof *own->view.lists, &at[0]) ||
        !vxd_layout_add(&n_bytes, 1, sizeof *own->n_slabs, &at[1])) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "n_items", "too many bytes");
        goto out;
    }
    VXD_TRY(vxd_svdag_table_alloc(queue, table, n_chunks, n_bytes, &index, err));
    own->view.kind = table->view.kind;
    own->view.n_words = table->view.n_words;
    own->view.chunks = table->view.chunks;
    own->view.n_chunks = table->view.n_chunks;
    own->view.lists = (uint32_t *)((uint8_t *)index + at[0]);
    own->n_slabs = (uint64_t *)((uint8_t *)index + at[1]);
    table->own = own;
    return VXD_OK;
out:
    free(own);
    return status;
}

static void slabs_close(struct vxd_queue *queue, struct vxd_svdag_table *table)
{
    vxd_device_free(queue, &table->memory);
    free(table->own);
}

static enum vxd_status slabs_count(struct vxd_queue *queue,
                                   const struct slab_table *table, struct vxd_err *err)
{
    uint64_t n = (uint64_t)table->view.n_chunks * VXD_SVDAG_CHUNK_BITMAP_WORDS;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(vxd_queue_fill(queue, table->n_slabs, 0, sizeof *table->n_slabs, err));
    count_kernel<<<(unsigned)((n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                   (cudaStream_t)queue->stream>>>(table->view, table->n_slabs);
    VXD_TRY(vxd_cuda_launched(queue->context, "count_kernel", err));
out:
    return status;
}

static enum vxd_status slabs_get_usage(struct vxd_queue *queue,
                                       const struct vxd_svdag_table *table,
                                       struct vxd_svdag_table_usage *out,
                                       struct vxd_err *err)
{
    const struct slab_table *own = slab_table_of(table);
    uint64_t n_slabs = 0;
    enum vxd_status status;

    out->n_items = table->n_items;
    out->node_bytes = table->n_items * (uint64_t)table->spec.n_words * sizeof(uint32_t);
    out->n_bytes = table->memory.n_bytes;
    VXD_TRY(slabs_count(queue, own, err));
    VXD_TRY(vxd_queue_copy(queue, &n_slabs, own->n_slabs, sizeof n_slabs, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    out->used_bytes = n_slabs * own->view.form.stride * sizeof(uint32_t) +
                      (uint64_t)own->view.n_lists * sizeof *own->view.lists;
out:
    return status;
}

const struct vxd_svdag_table_ops vxd_paper_slab_tables_cuda = {
    slabs_open, slabs_close, slabs_insert, slabs_find, slabs_get_usage,
};
