// SPDX-License-Identifier: Apache-2.0
/* Inserting into the open index on a GPU: the steps of a tile of keys, which open_insert.cu
 * tells and runs in its kernels; only that file includes this one. */
#ifndef VXD_GPU_HASH_OPEN_INSERT_CUDA_H
#define VXD_GPU_HASH_OPEN_INSERT_CUDA_H

#include "gpu/hash/open_cuda.h"
#include "gpu/hash/tile_lookback_cuda.h"

#define ONE_TILE_THREADS 1024 /* few keys: no other tile to wait for */
#define MAX_POLLS (1u << 26)

struct insert_args {
    struct vxd_open_view view;
    char *map_keys;
    uint32_t *live;
    const uint32_t *heap;
    const char *keys;
    uint32_t n;
    uint32_t most; /* entries there may be after: heap places from there on stay */
    int32_t *indices;
    uint8_t *is_new;
    int n_values; /* that the key's thread writes */
    struct vxd_value_rows values[VXD_HASHMAP_MAX_VALUES];
    /* Where longer rows are moved afterwards: position of the k-th new key. */
    uint32_t *sources;
    const uint32_t *n_before; /* entries there were */
    struct vxd_tiles tiles;
};

/* How the tiles of a call are worked on. */
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

/* Whether a slot with the wide tag of this key holds the key. One claimed in this call is
 * marked, at once after the claim, with a position of its key in the batch. */
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
        return false; /* the call has failed; the slot goes */
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

/* Which slots of a sector hold the key, a bit each; those behind an EMPTY one do not. */
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

/* Marks are what FIRST decides by, and where keys with a wide tag are found. */
template <bool FIRST>
static __device__ __forceinline__ bool
take_slot(struct vxd_open_slot *slot, uint64_t free_tag, uint64_t tag, uint32_t i)
{
    if (FIRST || vxd_tag_is_wide(tag)) {
        return vxd_open_claim_marked(slot, free_tag, tag, i);
    }
    return vxd_open_cas_tag(slot, free_tag, tag) == free_tag;
}

/* A thread walks to the key or the first EMPTY slot, then claims the first free slot that it
 * saw; where another was faster it goes on from there. Equal keys never take two slots: free
 * slots of a path are only ever taken, the first of them first. The loop stays small: few
 * keys are inserted in the time that it takes to fetch the instructions. */
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

/* Step 2: after every earlier tile has claimed. Marks that came after a number was published
 * are taken back. */
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

/* First heap place of a tile's winners. Places past the most entries are given too; n_live
 * never stays above them. */
template <enum tile_mode MODE>
static __device__ __forceinline__ uint32_t take_places(const struct insert_args *args,
                                                       uint32_t tile, uint32_t n_won)
{
    struct vxd_hash_counters *counters = args->view.counters;
    uint32_t most = args->most;

    if (MODE == TILES_IN_ORDER) {
        uint32_t base = vxd_tiles_look_back(&args->tiles, tile, n_won, &counters->n_live);

        if (tile + 1 == args->tiles.n && threadIdx.x == 0 && base + n_won <= most) {
            counters->n_live = base + n_won;
        }
        return base;
    }
    __shared__ uint32_t shared_base;

    if (threadIdx.x == 0 && n_won > 0) {
        uint32_t base = atomicAdd(&counters->n_live, n_won);

        if (base + n_won > most) {
            (void)atomicSub(&counters->n_live,
                            base + n_won - (base < most ? most : base));
        }
        shared_base = base;
    }
    __syncthreads();
    return n_won > 0 ? shared_base : 0;
}

/* What the only tile needs of the heap, read while its keys are looked up. */
struct heap_prefetch {
    uint32_t numbers[ONE_TILE_THREADS];
};

/* The map stays as it was where there is not room for all. */
static __device__ __forceinline__ void count_one_tile(const struct insert_args *args,
                                                      uint32_t n_before, uint32_t n_won)
{
    if (threadIdx.x == 0 && n_before + n_won <= args->most) {
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

    if (place >= args->most) {
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
        __threadfence(); /* who sees the number compares with this row */
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

/* Erased marks that a warp has put to use again. */
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
    if (MODE == ONE_TILE && n_live + threadIdx.x < args->most) {
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
        } else if (base + rank < args->most) {
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

#endif
