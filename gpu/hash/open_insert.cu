// SPDX-License-Identifier: Apache-2.0
/* Inserting into the open-addressing index: one pass, a thread a key (ASH, section 4.3.1).
 *
 * 1 claim    search the key or the first empty slot; claim a free slot by a compare-and-swap of
 *            64 bits, with FIRST of 128
 * 2 decide   FIRST only: once every earlier tile has claimed, the least position that is
 *            marked in the slot has won
 * 3 number   the winners of a tile take heap places together: ANY by one atomic operation, FIRST
 *            by looking back over the earlier tiles
 * 4 publish  number to the slot, key, values, live bit
 * 5 wait     the other threads with the same key read the number; winners never wait for them,
 *            so the number always arrives
 * Steps 1 and 4 access a random sector twice, and the time depends on whether it is still in the
 * second-level cache at the second access; otherwise memory writes it twice. So fewer threads run
 * than would fit (N_ACTIVE), and data that is only streamed is evicted first.
 *
 * Moved for a new int3 key: 64 bytes read and 32 written of the slots, 12 + 4 + 4 bytes of
 * key, value and heap read, 12 + 4 + 4 + 1 written.
 * On an H200, 100 M keys of which 0.99 are new, floor (a compare-and-swap a key) 6.2 ms: ANY
 * 9.2 ms, FIRST 13.9. Tried and slower: as many threads as fit 11.7 ms, two or four keys a thread
 * 14.8 and 16.5, an atomic operation a warp for places 20, numbers taken before the claim (which
 * leaves gaps to repair) 9.4, with a 128-bit compare-and-swap 9.3, prefetched lines of the next
 * tile 10.5; FIRST with the mark after the claim 14.4, polling other tiles without a pause 14.1,
 * tiles that look back a warp at a time 15.7, twice as many threads 16.6, flags of the losers
 * instead of reading the slot again 17. */
#include <stdint.h>

#include "gpu/hash/open_cuda.h"

/* Tiles of one kernel that are processed in order: a block works on one tile at a
 * time, and tiles are numbered as they start. A tile looks up what it needs to know of
 * earlier tiles while these run, so it only ever waits for tiles that are running. A
 * block looks back at as many tiles as it has threads: a chain in which each tile
 * waits for the previous one would be the bottleneck. */

#define VXD_TILE_CLAIMED 1 /* the tile has claimed */
/* all earlier tiles have claimed too; in prefixes: the sum is known */
#define VXD_TILE_DONE 2

/* Nanoseconds between two polls of a tile that is not ready. All blocks poll the same
 * few lines, and without a pause they would delay the accesses of blocks that claim
 * slots. */
#define VXD_TILE_PAUSE_NS 200

/* Scratch of FIRST in several tiles, zeroed. */
struct vxd_tiles {
    uint32_t n;
    uint32_t *ticket;
    uint32_t *claims;             /* n values: 0, VXD_TILE_CLAIMED, VXD_TILE_DONE */
    unsigned long long *prefixes; /* n values: state << 32 | winners */
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

/* Announces that this tile's threads have claimed; all threads of the block call. */
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

/* Returns when all earlier tiles have claimed. */
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

/* Returns the number of winners in earlier tiles plus the entries before the call, and
 * publishes n_won of this tile. */
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

#define ONE_TILE_THREADS 1024 /* few keys: one tile, which waits for no other */
#define MAX_POLLS (1u << 26)

struct insert_args {
    struct vxd_open_view view;
    char *map_keys;
    uint32_t *live;
    const uint32_t *heap;
    const char *keys;
    uint32_t n;
    /* upper bound of the entries afterwards: heap places from there on stay untouched */
    uint32_t max_entries;
    int32_t *indices;
    uint8_t *is_new;
    int n_values; /* that the key's thread writes */
    struct vxd_value_rows values[VXD_HASHMAP_MAX_VALUES];
    /* Where longer rows are moved afterwards: position of the k-th new key. */
    uint32_t *sources;
    const uint32_t *n_before; /* number of entries before the call */
    struct vxd_tiles tiles;
};

/* How the tiles of a call are processed. */
enum tile_mode {
    TILES,          /* in any order: ANY */
    TILES_IN_ORDER, /* FIRST */
    ONE_TILE        /* FIRST, few keys */
};

enum outcome {
    FOUND,   /* with its number */
    CLAIMED, /* a slot, by this thread */
    PENDING, /* another thread of this call has claimed the key's slot */
    NO_CAPACITY
};

struct claim {
    enum outcome outcome;
    bool was_erased; /* the slot claimed */
    uint32_t slot;
    uint32_t number;
};

static __device__ __forceinline__ const char *batch_row(const struct insert_args *args,
                                                        uint32_t i)
{
    return args->keys + (size_t)i * (size_t)args->view.form.row_bytes;
}

/* Whether a slot with the wide tag of this key holds the key. A slot that was claimed
 * in this call is marked, at once after the claim, with a position of its key in the
 * batch. */
template <bool INT3>
static __device__ __forceinline__ bool holds_wide_key(const struct insert_args *args,
                                                      const struct vxd_open_slot *slot,
                                                      const struct vxd_open_query *query)
{
    uint64_t word = vxd_open_word(VXD_OPEN_PENDING);
    const char *row;

#pragma unroll 1
    for (uint32_t polls = 0; word == vxd_open_word(VXD_OPEN_PENDING) && polls < MAX_POLLS;
         polls++) {
        word = vxd_open_read_word(slot);
    }
    if (vxd_open_number(word) == VXD_OPEN_FAILED) {
        return false; /* the call has failed and the slot will be erased */
    }
    if (vxd_open_number(word) != VXD_OPEN_PENDING) {
        __threadfence();
        row = vxd_open_key_row(&args->view, vxd_open_number(word));
    } else if (vxd_open_mark(word) != VXD_OPEN_NO_MARK) {
        row = batch_row(args, vxd_open_mark(word));
    } else {
        vxd_open_report(&args->view, VXD_INTERNAL);
        return false;
    }
    return vxd_open_is_key<INT3>(&args->view, query, row);
}

/* Which slots of a sector hold the key, a bit each; slots behind an EMPTY one do not
 * count. */
template <bool INT3>
static __device__ __forceinline__ uint32_t
matches_in(const struct insert_args *args, const struct vxd_open_query *query,
           const struct vxd_open_sector *sector, uint32_t first)
{
    uint32_t matches = vxd_open_tags_in(sector, query->tag);

    if (matches != 0 && vxd_tag_is_wide(query->tag)) {
#pragma unroll 1
        for (uint32_t k = 0; k < 2; k++) {
            if ((matches >> k & 1) != 0 &&
                !holds_wide_key<INT3>(args, args->view.slots + first + k, query)) {
                matches &= ~(1u << k);
            }
        }
    }
    return matches;
}

/* FIRST decides by marks, and keys with a wide tag are compared through them. */
template <bool FIRST>
static __device__ __forceinline__ bool
take_slot(struct vxd_open_slot *slot, uint64_t free_tag, uint64_t tag, uint32_t i)
{
    if (FIRST || vxd_tag_is_wide(tag)) {
        return vxd_open_claim_marked(slot, free_tag, tag, i);
    }
    return vxd_open_cas_tag(slot, free_tag, tag) == free_tag;
}

/* A thread searches the key or the first EMPTY slot, then claims the first free slot
 * that it saw; where another thread was faster it continues from there. Equal keys
 * never take two slots, because free slots of a probe sequence are only ever taken,
 * and always the first of them. The loop stays small: few keys are inserted in the
 * time that it takes to fetch the instructions. */
template <bool INT3, bool FIRST>
static __device__ __forceinline__ struct claim
claim_slot(const struct insert_args *args, const struct vxd_open_query *query, uint32_t i)
{
    const struct vxd_open_view *view = &args->view;
    struct claim claim = {NO_CAPACITY, false, VXD_OPEN_NO_SLOT, VXD_OPEN_FAILED};
    bool is_fresh = false;
    uint32_t free_step = 0;
    uint64_t free_tag = 0;
    uint32_t step = 0;

#pragma unroll 1
    while (true) {
        uint32_t first = vxd_open_slot_at(view, query, step);
        struct vxd_open_sector sector =
            is_fresh ? vxd_open_load_sector(view, first, VXD_OPEN_FRESH)
                     : vxd_open_load_sector(view, first, VXD_OPEN_CACHED);
        uint32_t matches = matches_in<INT3>(args, query, &sector, first);

        if (matches != 0) {
            bool is_second = (matches & 1) == 0;

            claim.slot = first + (is_second ? 1 : 0);
            claim.number =
                vxd_open_number(is_second ? sector.slot[1].word : sector.slot[0].word);
            claim.outcome = claim.number == VXD_OPEN_PENDING ? PENDING : FOUND;
            return claim;
        }
        if (free_tag == 0 && sector.slot[0].tag >= VXD_TAG_ERASED) {
            free_step = step;
            free_tag = sector.slot[0].tag;
        } else if (free_tag == 0 && sector.slot[1].tag >= VXD_TAG_ERASED) {
            free_step = step + 1;
            free_tag = sector.slot[1].tag;
        }
        step += 2;
        if (!vxd_open_has_empty(&sector) && step < vxd_open_n_steps(view)) {
            continue;
        }
        if (free_tag == 0) {
            return claim;
        }
        claim.slot = vxd_open_slot_at(view, query, free_step);
        if (take_slot<FIRST>(view->slots + claim.slot, free_tag, query->tag, i)) {
            break;
        }
        step = free_step & ~1u;
        free_tag = 0;
        is_fresh = true;
    }
    claim.outcome = CLAIMED;
    claim.was_erased = free_tag == VXD_TAG_ERASED;
    return claim;
}

/* Step 2, after every earlier tile has claimed. Marks that were set after a number was
 * published are reset. */
static __device__ __forceinline__ void decide(const struct insert_args *args, uint32_t i,
                                              struct claim *claim)
{
    struct vxd_open_slot *slot;
    uint64_t word;

    if (claim->outcome != CLAIMED && claim->outcome != PENDING) {
        return;
    }
    slot = args->view.slots + claim->slot;
    word = vxd_open_read_word(slot);
    claim->number = vxd_open_number(word);
    if (claim->number != VXD_OPEN_PENDING) {
        claim->outcome = FOUND;
        if (vxd_open_mark(word) != VXD_OPEN_NO_MARK) {
            *(volatile uint32_t *)vxd_open_mark_of(slot) = VXD_OPEN_NO_MARK;
        }
    } else {
        claim->outcome = vxd_open_mark(word) == i ? CLAIMED : PENDING;
    }
}

/* First heap place of a tile's winners. Places above the maximum number of entries are
 * handed out too; n_live is then reduced to that maximum. */
template <enum tile_mode MODE>
static __device__ __forceinline__ uint32_t take_places(const struct insert_args *args,
                                                       uint32_t tile, uint32_t n_won)
{
    struct vxd_hash_counters *counters = args->view.counters;
    uint32_t max_entries = args->max_entries;

    if (MODE == TILES_IN_ORDER) {
        uint32_t base = vxd_tiles_look_back(&args->tiles, tile, n_won, &counters->n_live);

        if (tile + 1 == args->tiles.n && threadIdx.x == 0 &&
            base + n_won <= max_entries) {
            counters->n_live = base + n_won;
        }
        return base;
    }
    __shared__ uint32_t shared_base;

    if (threadIdx.x == 0 && n_won > 0) {
        uint32_t base = atomicAdd(&counters->n_live, n_won);

        if (base + n_won > max_entries) {
            (void)atomicSub(&counters->n_live,
                            base + n_won - (base < max_entries ? max_entries : base));
        }
        shared_base = base;
    }
    __syncthreads();
    return n_won > 0 ? shared_base : 0;
}

/* The heap values that a single tile may need, read while its keys are looked up. */
struct heap_prefetch {
    uint32_t numbers[ONE_TILE_THREADS];
};

/* Leaves the map unchanged where not all new keys fit. */
static __device__ __forceinline__ void count_one_tile(const struct insert_args *args,
                                                      uint32_t n_before, uint32_t n_won)
{
    if (threadIdx.x == 0 && n_before + n_won <= args->max_entries) {
        args->view.counters->n_live = n_before + n_won;
    }
}

/* Step 4 for a winner with heap place `place`. False where there is no such place. */
template <bool INT3>
static __device__ __forceinline__ bool
publish(const struct insert_args *args, uint32_t i, const struct vxd_open_query *query,
        struct claim *claim, uint32_t place, uint32_t heap_number)
{
    struct vxd_open_slot *slot = args->view.slots + claim->slot;
    size_t number;

    if (place >= args->max_entries) {
        claim->number = VXD_OPEN_FAILED;
        vxd_open_write_word(slot, vxd_open_word(VXD_OPEN_FAILED));
        args->view.counters->scratch[VXD_OPEN_NEEDS_REBUILD] = 1;
        vxd_open_report(&args->view, VXD_INTERNAL);
        return false;
    }
    claim->number = heap_number;
    number = heap_number;
    if (!INT3 || vxd_tag_is_wide(query->tag)) {
        vxd_row_copy_thread(args->map_keys + number * (size_t)args->view.form.row_bytes,
                            (const char *)query->row, (uint32_t)args->view.form.row_bytes,
                            (uint32_t)args->view.form.component_bytes);
        __threadfence(); /* threads that see the number compare with this row */
        vxd_open_write_word(slot, vxd_open_word(claim->number));
    } else {
        int32_t *key = (int32_t *)(args->map_keys + number * 12);

        vxd_open_write_word(slot, vxd_open_word(claim->number));
        for (int c = 0; c < 3; c++) {
            __stcs(key + c, query->key[c]);
        }
    }
    vxd_values_copy_thread(args->values, args->n_values, number, i);
    if (args->sources != NULL) {
        args->sources[place - *args->n_before] = i;
    }
    return true;
}

static __device__ __forceinline__ void wait_for_number(const struct insert_args *args,
                                                       struct claim *claim)
{
#pragma unroll 1
    for (uint32_t polls = 0; polls < MAX_POLLS; polls++) {
        claim->number =
            vxd_open_number(vxd_open_read_word(args->view.slots + claim->slot));
        if (claim->number != VXD_OPEN_PENDING) {
            return;
        }
    }
    claim->number = VXD_OPEN_FAILED;
    vxd_open_report(&args->view, VXD_INTERNAL);
}

/* Counts the erased marks that a warp has used again. */
static __device__ __forceinline__ void count_reused(const struct insert_args *args,
                                                    bool was_erased)
{
    uint32_t reused = __ballot_sync(UINT32_MAX, was_erased);

    if (reused != 0 && threadIdx.x % 32 == 0) {
        (void)atomicSub(&args->view.counters->n_erased_marks, (uint32_t)__popc(reused));
    }
}

template <bool INT3, enum tile_mode MODE, int THREADS>
static __device__ __forceinline__ void insert_tile(const struct insert_args *args,
                                                   uint32_t tile,
                                                   struct heap_prefetch *heap_prefetch)
{
    uint32_t i = tile * THREADS + threadIdx.x;
    struct claim claim = {NO_CAPACITY, false, VXD_OPEN_NO_SLOT, VXD_OPEN_FAILED};
    struct vxd_open_query query = {};
    uint32_t n_won;
    uint32_t rank;
    uint32_t base;
    constexpr bool FIRST = MODE != TILES;
    uint32_t number = VXD_OPEN_FAILED;
    uint32_t n_live = 0;
    bool has_won;

    if (MODE == ONE_TILE) {
        n_live = *(const volatile uint32_t *)&args->view.counters->n_live;
    }
    if (i < args->n) {
        query = vxd_open_query_of<INT3>(&args->view, batch_row(args, i));
    }
    if (MODE == ONE_TILE && n_live + threadIdx.x < args->max_entries) {
        number = args->heap[n_live + threadIdx.x];
    }
    if (i < args->n) {
        claim = claim_slot<INT3, FIRST>(args, &query, i);
        if (FIRST && claim.outcome == PENDING) {
            (void)atomicMin(vxd_open_mark_of(args->view.slots + claim.slot), i);
        } else if (claim.outcome == NO_CAPACITY) {
            args->view.counters->scratch[VXD_OPEN_NEEDS_REBUILD] = 1;
            vxd_open_report(&args->view, VXD_INTERNAL);
        }
    }
    if (MODE == ONE_TILE) {
        heap_prefetch->numbers[threadIdx.x] = number;
    }
    count_reused(args, claim.was_erased);
    if (FIRST) {
        if (MODE == TILES_IN_ORDER) {
            vxd_tiles_claimed(&args->tiles, tile);
            vxd_tiles_wait_for_claims(&args->tiles, tile);
        } else {
            __threadfence();
            __syncthreads();
        }
        decide(args, i, &claim);
    }
    has_won = claim.outcome == CLAIMED;
    rank = vxd_rank_in_block<THREADS>(has_won, &n_won);
    if (MODE == ONE_TILE) {
        base = n_live;
        count_one_tile(args, base, n_won);
    } else {
        base = take_places<MODE>(args, tile, n_won);
    }
    if (has_won) {
        if (MODE == ONE_TILE) {
            number = heap_prefetch->numbers[rank];
        } else if (base + rank < args->max_entries) {
            number = __ldcs(args->heap + base + rank);
        }
        has_won = publish<INT3>(args, i, &query, &claim, base + rank, number);
    }
    vxd_live_set_warp(args->live, has_won, claim.number);
    if (claim.outcome == PENDING && args->indices != NULL) {
        wait_for_number(args, &claim);
    }
    if (i < args->n && args->indices != NULL) {
        __stcs(args->indices + i,
               claim.number < args->view.capacity ? (int32_t)claim.number : VXD_NO_ENTRY);
    }
    if (i < args->n && args->is_new != NULL) {
        args->is_new[i] = has_won ? 1 : 0;
    }
}

#define ANY_THREADS 128
#define FIRST_THREADS 768
#define N_ACTIVE 1280       /* threads of a multiprocessor at a time, ANY */
#define N_ACTIVE_FIRST 1536 /* the same, FIRST */

template <bool INT3>
static __global__ void __launch_bounds__(ANY_THREADS)
    insert_any_kernel(const __grid_constant__ struct insert_args args)
{
    uint32_t n_tiles = (args.n + ANY_THREADS - 1) / ANY_THREADS;

    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
        insert_tile<INT3, TILES, ANY_THREADS>(&args, tile, NULL);
        __syncthreads();
    }
}

template <bool INT3>
static __global__ void __launch_bounds__(FIRST_THREADS)
    insert_first_kernel(const __grid_constant__ struct insert_args args)
{
    __shared__ uint32_t shared_tile;

    while (true) {
        uint32_t tile;

        if (threadIdx.x == 0) {
            shared_tile = atomicAdd(args.tiles.ticket, 1);
        }
        __syncthreads();
        tile = shared_tile;
        __syncthreads();
        if (tile >= args.tiles.n) {
            return;
        }
        insert_tile<INT3, TILES_IN_ORDER, FIRST_THREADS>(&args, tile, NULL);
    }
}

template <bool INT3>
static __global__ void __launch_bounds__(ONE_TILE_THREADS)
    insert_one_tile_kernel(const __grid_constant__ struct insert_args args)
{
    __shared__ struct heap_prefetch heap_prefetch;

    insert_tile<INT3, ONE_TILE, ONE_TILE_THREADS>(&args, 0, &heap_prefetch);
}

struct layout {
    size_t tiles; /* ticket, claims and prefixes, zeroed together */
    size_t tiles_bytes;
    size_t claims;
    size_t prefixes;
    size_t sources;
    size_t n_before;
    size_t total;
    uint32_t n_tiles;
    bool has_long_rows;
};

static bool lay_out(const struct vxd_hashmap *map, enum vxd_hash_order order, size_t n,
                    struct layout *out)
{
    bool ok = true;

    *out = {};
    out->n_tiles = 1;
    if (order == VXD_HASH_FIRST && n > ONE_TILE_THREADS) {
        out->n_tiles = (uint32_t)((n + FIRST_THREADS - 1) / FIRST_THREADS);
        ok = vxd_layout_add(&out->total, 1, sizeof(uint32_t), &out->tiles) &&
             vxd_layout_add(&out->total, out->n_tiles, sizeof(uint32_t), &out->claims) &&
             vxd_layout_add(&out->total, out->n_tiles, sizeof(uint64_t), &out->prefixes);
        out->tiles_bytes = out->total;
    }
    /* The alignment of the caller's arrays is not known here, so any row may be a long
     * one. */
    for (int v = 0; v < map->spec.n_values; v++) {
        out->has_long_rows = out->has_long_rows || map->row_bytes[v] > VXD_DIRECT_UNITS;
    }
    if (out->has_long_rows) {
        ok = ok && vxd_layout_add(&out->total, n, sizeof(uint32_t), &out->sources) &&
             vxd_layout_add(&out->total, 1, sizeof(uint32_t), &out->n_before);
    }
    return ok;
}

size_t vxd_open_insert_scratch_bytes_cuda(const struct vxd_hashmap *map,
                                          enum vxd_hash_order order, size_t n)
{
    struct layout layout;

    return lay_out(map, order, n, &layout) ? layout.total : SIZE_MAX;
}

template <bool INT3>
static void launch(const struct vxd_queue *queue, enum vxd_hash_order order,
                   const struct insert_args *args)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;

    if (order == VXD_HASH_ANY) {
        insert_any_kernel<INT3>
            <<<vxd_hash_blocks(queue, args->n, ANY_THREADS, N_ACTIVE / ANY_THREADS),
               ANY_THREADS, 0, stream>>>(*args);
    } else if (args->tiles.n == 1) {
        insert_one_tile_kernel<INT3><<<1, ONE_TILE_THREADS, 0, stream>>>(*args);
    } else {
        insert_first_kernel<INT3><<<vxd_hash_blocks(queue, args->n, FIRST_THREADS,
                                                    N_ACTIVE_FIRST / FIRST_THREADS),
                                    FIRST_THREADS, 0, stream>>>(*args);
    }
}

static enum vxd_status
move_long_rows(struct vxd_queue *queue, const struct vxd_hashmap *map,
               const struct vxd_hashmap_insert_args *call, const struct insert_args *args,
               const bool is_long[VXD_HASHMAP_MAX_VALUES], struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (int v = 0; v < map->spec.n_values; v++) {
        struct vxd_row_move move = {};

        if (!is_long[v]) {
            continue;
        }
        move.to = map->values[v].ptr;
        move.from = call->values[v];
        move.row_bytes = map->row_bytes[v];
        move.n = call->n;
        move.to_rows = (const int32_t *)args->heap;
        move.from_rows = (const int32_t *)args->sources;
        move.first = args->n_before;
        move.last = &args->view.counters->n_live;
        VXD_TRY(vxd_rows_move(queue, &move, err));
    }
out:
    return status;
}

struct undo_args {
    struct vxd_open_view view;
    uint32_t max_entries;
    const uint32_t *heap;
    uint32_t *live;
    int n_values;
    struct vxd_value_rows values[VXD_HASHMAP_MAX_VALUES];
};

/* FIRST, where there were more new keys than fit: the entries that the insertion made
 * are at the heap places from n_live on, which it left unchanged. */
static __global__ void undo_kernel(const __grid_constant__ struct undo_args args)
{
    const struct vxd_hash_counters *counters = args.view.counters;

    if (counters->scratch[VXD_OPEN_NEEDS_REBUILD] == 0) {
        return;
    }
    for (uint32_t place = counters->n_live + blockIdx.x * blockDim.x + threadIdx.x;
         place < args.max_entries; place += gridDim.x * blockDim.x) {
        uint32_t number = args.heap[place];

        (void)atomicAnd(args.live + number / 32, ~(1u << number % 32));
        for (int v = 0; v < args.n_values; v++) {
            char *row = args.values[v].to + (size_t)number * args.values[v].row_bytes;

            for (uint32_t b = 0; b < args.values[v].row_bytes; b++) {
                row[b] = 0;
            }
        }
    }
}

static enum vxd_status undo(struct vxd_queue *queue, const struct vxd_hashmap *map,
                            const struct insert_args *insert, struct vxd_err *err)
{
    struct undo_args args = {insert->view, insert->max_entries, insert->heap,
                             insert->live, insert->n_values,    {}};
    enum vxd_status status = VXD_OK;

    for (int v = 0; v < insert->n_values; v++) {
        args.values[v] = insert->values[v];
    }
    undo_kernel<<<vxd_hash_blocks(queue, map->capacity, VXD_OPEN_THREADS, 4),
                  VXD_OPEN_THREADS, 0, (cudaStream_t)queue->stream>>>(args);
    VXD_TRY(vxd_cuda_launched(queue->context, "undo_kernel", err));
out:
    return status;
}

enum vxd_status vxd_open_insert_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     const struct vxd_hashmap_insert_args *call,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err)
{
    struct insert_args args = {};
    struct layout layout;
    bool is_long[VXD_HASHMAP_MAX_VALUES] = {};
    bool has_long;
    /* Otherwise the caller's count of new keys could be wrong. */
    bool fits = call->max_new == call->n;
    char *base = (char *)scratch;
    enum vxd_status status = VXD_OK;

    (void)scratch_bytes;
    (void)lay_out(map, call->order, call->n, &layout);
    args.view = vxd_open_view_of(queue, map);
    args.map_keys = (char *)map->keys.ptr;
    args.live = (uint32_t *)map->live.ptr;
    args.heap = (const uint32_t *)map->heap.ptr;
    args.keys = (const char *)call->keys;
    args.n = (uint32_t)call->n;
    args.max_entries = (uint32_t)(map->size_bound + call->max_new);
    args.indices = call->indices;
    args.is_new = call->is_new;
    args.tiles.n = layout.n_tiles;
    has_long = vxd_split_values(map, call, args.values, &args.n_values, is_long);
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (layout.tiles_bytes > 0) {
        args.tiles.ticket = (uint32_t *)(base + layout.tiles);
        args.tiles.claims = (uint32_t *)(base + layout.claims);
        args.tiles.prefixes = (unsigned long long *)(base + layout.prefixes);
        VXD_TRY(vxd_cuda_fill(queue, base, 0, layout.tiles_bytes, err));
    }
    if (has_long) {
        args.sources = (uint32_t *)(base + layout.sources);
        args.n_before = (const uint32_t *)(base + layout.n_before);
        VXD_TRY(vxd_cuda_copy(queue, base + layout.n_before, &args.view.counters->n_live,
                              sizeof(uint32_t), err));
    }
    if (vxd_open_is_int3(&map->form)) {
        launch<true>(queue, call->order, &args);
    } else {
        launch<false>(queue, call->order, &args);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "insert_kernel", err));
    if (has_long) {
        VXD_TRY(move_long_rows(queue, map, call, &args, is_long, err));
    }
    if (!fits) {
        if (call->order == VXD_HASH_FIRST) {
            VXD_TRY(undo(queue, map, &args, err));
        }
        VXD_TRY(vxd_open_refill_cuda(queue, map, false, err));
    }
out:
    return status;
}
