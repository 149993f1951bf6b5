// SPDX-License-Identifier: Apache-2.0
/* Who finds, of conv_wgmma_tiles_cuda.h: what the rows of a tile read, ahead of who fetches it.
 *
 * A warp, or two where two warpgroups multiply; a thread has two or four rows. A tile's taps
 * are those that some row has; they pass on in chunks through a ring of tables, so that nobody
 * waits for a tile's begin. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_WGMMA_FIND_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_WGMMA_FIND_CUDA_H

#include "gpu/sparse/conv/conv_load_cuda.h"
#include "gpu/sparse/conv/conv_wgmma_cuda.h"
#include "gpu/sparse/kernel_map/kernel_map_math.h"

#define HALF_ROWS 64 /* of one matrix instruction */
#define MAX_STAGES 8
#define NO_TILE UINT32_MAX
#define N_PLACES 2
#define N_CHUNKS 3
#define CHUNK_TAPS                                                                       \
    8 /* a multiple of STAGE_SLOTS: but for the last, chunks are whole stages */

/* The form of a tile: warpgroups that multiply, each 64 rows once or twice. Beside each stand
 * four warps, of which one finds and three fetch. A block with one warpgroup leaves room for a
 * second block on the multiprocessor; one with two has it for itself and fetches weights half
 * as often. */
template <int N_TILE_, int N_HALVES_, int N_WARPGROUPS_> struct wgmma_form {
    static constexpr int N_TILE = N_TILE_;     /* output channels */
    static constexpr int N_HALVES = N_HALVES_; /* of a warpgroup */
    static constexpr int N_WARPGROUPS = N_WARPGROUPS_;
    static constexpr int ROWS = N_HALVES * N_WARPGROUPS * HALF_ROWS;
    static constexpr int N_MULTIPLIERS = N_WARPGROUPS * N_THREADS; /* threads */
    static constexpr int N_FINDERS = N_WARPGROUPS * 32;
    static constexpr int N_OWN = ROWS / N_FINDERS;      /* rows of a finder */
    static constexpr int ROWS_BYTES = ROWS * ROW_BYTES; /* of a stage, then its weights */
    static constexpr int STAGE_BYTES =
        ROWS_BYTES + STAGE_SLOTS * N_TILE * VXD_CONV_SLOT_BYTES;
};

/* Taps of a tile that are fetched together; what its rows read by them lies in a table. */
struct chunk {
    uint32_t n; /* slots */
    bool is_last;
    int32_t taps[CHUNK_TAPS];
};

template <class FORM> struct wgmma_shared {
    __align__(16) int32_t rows[N_PLACES][FORM::ROWS]; /* output rows or -1 */
    uint32_t warp_masks[2][FORM::N_WARPGROUPS];       /* taps of a finding warp's rows */
    struct chunk chunks[N_CHUNKS];
    uint32_t ends_sums[MAX_STAGES]; /* the tile's sums end with the stage */
    uint64_t full[MAX_STAGES];
    uint64_t empty[MAX_STAGES];
    uint64_t place_empty[N_PLACES]; /* of rows */
    uint64_t chunk_full[N_CHUNKS];
    uint64_t chunk_empty[N_CHUNKS];
};

/* What finders, who fetches and who multiplies have in common. */
struct wgmma_memory {
    char *stages;
    int32_t *tables; /* N_CHUNKS of n_table */
    uint32_t n_table;
};

/* A place in a ring, and how often the ring was gone round, its last bit. */
struct ring {
    int at;
    uint32_t parity;
};

static __device__ __forceinline__ void ring_step(struct ring *ring, int n)
{
    if (++ring->at == n) {
        ring->at = 0;
        ring->parity ^= 1;
    }
}

static __device__ __forceinline__ void barrier_init(uint64_t *barrier, int n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(n)
                 : "memory");
}

static __device__ __forceinline__ void barrier_arrive_at(uint32_t address)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint64_t *barrier)
{
    barrier_arrive_at(shared_address(barrier));
}

/* Arrives once the copies that this thread has begun are done. */
static __device__ __forceinline__ void barrier_arrive_copied(uint64_t *barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                     shared_address(barrier))
                 : "memory");
}

/* Whether the phase of that parity has ended. */
static __device__ __forceinline__ bool barrier_test_at(uint32_t address, uint32_t parity)
{
    uint32_t is_over;

    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                 "selp.b32 %0, 1, 0, over;\n"
                 "}"
                 : "=r"(is_over)
                 : "r"(address), "r"(parity)
                 : "memory");
    return is_over != 0;
}

/* Until the phase of that parity has ended. */
static __device__ __forceinline__ void barrier_wait_at(uint32_t address, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\n"
                 "bra again;\n"
                 "over:\n"
                 "}" ::"r"(address),
                 "r"(parity)
                 : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint64_t *barrier, uint32_t parity)
{
    barrier_wait_at(shared_address(barrier), parity);
}

/* Arrives, and has the barrier wait for n_bytes that one bulk copy brings. */
static __device__ __forceinline__ void bulk_copy(uint64_t *barrier, uint32_t to,
                                                 const char *from, uint32_t n_bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(n_bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(n_bytes), "r"(shared_address(barrier))
                 : "memory");
}

/* Tile `number` of those of block blockIdx.x, in rounds to and fro, so that who had the most
 * work in one round has the least in the next: its turn among the tiles of rows, and its
 * channels; false past the last. */
static __device__ __forceinline__ bool find_tile(const struct vxd_conv_tiles *tiles,
                                                 uint32_t n_rows, int n_tile_rows,
                                                 int n_tile, uint32_t number,
                                                 uint32_t *turn, int *first_out)
{
    uint32_t n_columns = (uint32_t)(tiles->n_padded / n_tile);
    uint32_t n_row_tiles = (n_rows + (uint32_t)n_tile_rows - 1) / (uint32_t)n_tile_rows;
    uint32_t in_round = number % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    uint64_t i = (uint64_t)number * gridDim.x + in_round;

    *turn = (uint32_t)(i / n_columns);
    *first_out = (int)(i % n_columns) * n_tile;
    return i < (uint64_t)n_row_tiles * n_columns;
}

/* What a thread that finds knows of a tile: rows, N_FINDERS apart, and their first mask words.
 * Loaded long before they are looked at. */
template <class FORM> struct lookahead {
    int32_t rows[FORM::N_OWN];
    uint32_t masks[FORM::N_OWN];
};

static __device__ __forceinline__ uint32_t mask_of(const struct vxd_conv_tiles *tiles,
                                                   int32_t row, int word)
{
    size_t n_words = VXD_SPARSE_MASK_WORDS(tiles->n_taps);

    if (row < 0) {
        return 0;
    }
    return tiles->table == NULL ? 1 : tiles->masks[(size_t)row * n_words + (size_t)word];
}

/* Which tile of rows, by the map's list of those of that size, the ones with the most taps
 * first; NO_TILE past the last. */
template <class FORM>
static __device__ __forceinline__ uint32_t
look_for_tile(const struct vxd_conv_tiles *tiles, uint32_t n_rows, uint32_t number)
{
    constexpr int SIZE = FORM::ROWS / 2 / VXD_SPARSE_TILE_ROWS;
    uint32_t turn;
    int first_out;

    static_assert(VXD_SPARSE_TILE_ROWS << SIZE == FORM::ROWS,
                  "a size there is a list of");
    if (!find_tile(tiles, n_rows, FORM::ROWS, FORM::N_TILE, number, &turn, &first_out)) {
        return NO_TILE;
    }
    return tiles->order != NULL
               ? tiles->order[vxd_sparse_tiles_at(tiles->map_capacity, SIZE) + turn]
               : turn;
}

template <class FORM>
static __device__ __forceinline__ void look_for_rows(const struct vxd_conv_tiles *tiles,
                                                     uint32_t n_rows, uint32_t tile,
                                                     int32_t *rows)
{
    uint32_t first_place = tile * (uint32_t)FORM::ROWS + threadIdx.x % FORM::N_FINDERS;

#pragma unroll
    for (int i = 0; i < FORM::N_OWN; i++) {
        rows[i] =
            tile != NO_TILE
                ? find_row(tiles, first_place + (uint32_t)i * FORM::N_FINDERS, n_rows)
                : -1;
    }
}

/* Which taps of a mask word some row of the tile has. Two sets of warp masks take turns. */
template <class FORM>
static __device__ __forceinline__ uint32_t find_taps_of_tile(uint32_t *warp_masks,
                                                             const uint32_t *masks)
{
    uint32_t all = 0;

#pragma unroll
    for (int i = 0; i < FORM::N_OWN; i++) {
        all |= masks[i];
    }
    all = __reduce_or_sync(0xffffffffu, all);
    if constexpr (FORM::N_WARPGROUPS > 1) {
        if (threadIdx.x % 32 == 0) {
            warp_masks[threadIdx.x % FORM::N_FINDERS / 32] = all;
        }
        asm volatile("bar.sync 1, %0;" ::"n"(FORM::N_FINDERS) : "memory");
#pragma unroll
        for (int i = 0; i < FORM::N_WARPGROUPS; i++) {
            all |= warp_masks[i];
        }
    }
    return all;
}

/* What the tile's rows read by the first taps of `rest`, a chunk of them: to `table`. Without
 * a tap they read nothing by one. */
template <class FORM>
static __device__ __forceinline__ void
find_inputs(const struct vxd_conv_tiles *tiles, int32_t *table, uint32_t rest,
            int first_tap, const struct lookahead<FORM> *own)
{
    table += threadIdx.x % FORM::N_FINDERS;
#pragma unroll
    for (int k = 0; k < FORM::N_OWN && rest == 0; k++) {
        table[k * FORM::N_FINDERS] = -1;
    }
    for (int i = 0; i < CHUNK_TAPS && rest != 0; i++) {
        int bit = __ffs((int)rest) - 1;

#pragma unroll
        for (int k = 0; k < FORM::N_OWN; k++) {
            int32_t *to = table + k * FORM::N_FINDERS;

            if ((own->masks[k] >> bit & 1u) == 0) {
                *to = -1;
            } else if (tiles->table == NULL) {
                *to = own->rows[k];
            } else {
                copy4(shared_address(to),
                      tiles->table + (size_t)(first_tap + bit) * tiles->map_capacity +
                          own->rows[k]);
            }
        }
        rest &= rest - 1;
        table += FORM::ROWS;
    }
}

/* All chunks of a mask word. The last word has one at least, which ends the tile. */
template <class FORM>
static __device__ __forceinline__ void
find_chunks(const struct vxd_conv_tiles *tiles, struct wgmma_shared<FORM> *shared,
            const struct wgmma_memory *memory, uint32_t all, int word, bool is_last_word,
            const struct lookahead<FORM> *own, struct ring *ring)
{
    uint32_t thread = threadIdx.x % FORM::N_FINDERS;
    uint32_t n_before = (uint32_t)__popc(all & ((1u << thread % 32) - 1));
    uint32_t n_taps = (uint32_t)__popc(all);
    uint32_t rest = all;
    uint32_t done = 0;

    if (n_taps == 0 && !is_last_word) {
        return;
    }
    do {
        struct chunk *chunk = &shared->chunks[ring->at];
        uint32_t n = min(n_taps - done, (uint32_t)CHUNK_TAPS);

        barrier_wait(&shared->chunk_empty[ring->at], ring->parity ^ 1);
        if (thread == 0) {
            chunk->n = n * (uint32_t)tiles->n_slots;
            chunk->is_last = is_last_word && done + n == n_taps;
        }
        if (thread < WORD_TAPS && (all >> thread & 1u) != 0 && n_before - done < n) {
            chunk->taps[n_before - done] = word * WORD_TAPS + (int32_t)thread;
        }
        find_inputs<FORM>(tiles, memory->tables + (uint32_t)ring->at * memory->n_table,
                          rest, word * WORD_TAPS, own);
        barrier_arrive_copied(&shared->chunk_full[ring->at]);
        barrier_arrive(&shared->chunk_full[ring->at]); /* for what was not copied */
        ring_step(ring, N_CHUNKS);
        done += n;
        for (uint32_t i = 0; i < CHUNK_TAPS; i++) {
            rest &= rest - 1;
        }
    } while (done < n_taps);
}

template <class FORM>
static __device__ __forceinline__ void
find_tiles(const struct vxd_conv_tiles *tiles, struct wgmma_shared<FORM> *shared,
           const struct wgmma_memory *memory, uint32_t n_rows)
{
    int n_words = VXD_SPARSE_MASK_WORDS(tiles->n_taps);
    int thread = (int)threadIdx.x % FORM::N_FINDERS;
    struct ring places = {0, 0};
    struct ring chunks = {0, 0};
    uint32_t masks_at = 0;
    struct lookahead<FORM> own;
    struct lookahead<FORM> next;
    uint32_t tile =
        look_for_tile<FORM>(tiles, n_rows, 2); /* of the rows to ask for next */
    uint32_t turn;
    int first_out;

    look_for_rows<FORM>(tiles, n_rows, look_for_tile<FORM>(tiles, n_rows, 0), own.rows);
    look_for_rows<FORM>(tiles, n_rows, look_for_tile<FORM>(tiles, n_rows, 1), next.rows);
#pragma unroll
    for (int k = 0; k < FORM::N_OWN; k++) {
        own.masks[k] = mask_of(tiles, own.rows[k], 0);
    }
    for (uint32_t i = 0;
         find_tile(tiles, n_rows, FORM::ROWS, FORM::N_TILE, i, &turn, &first_out); i++) {
        int32_t after[FORM::N_OWN];

        barrier_wait(&shared->place_empty[places.at], places.parity ^ 1);
#pragma unroll
        for (int k = 0; k < FORM::N_OWN; k++) {
            shared->rows[places.at][thread + k * FORM::N_FINDERS] = own.rows[k];
        }
        look_for_rows<FORM>(tiles, n_rows, tile, after);
        tile = look_for_tile<FORM>(tiles, n_rows, i + 3);
#pragma unroll
        for (int k = 0; k < FORM::N_OWN; k++) {
            next.masks[k] = mask_of(tiles, next.rows[k], 0);
        }
        for (int word = 0; word < n_words; word++) {
            uint32_t all;

#pragma unroll
            for (int k = 0; k < FORM::N_OWN && word > 0; k++) {
                own.masks[k] = mask_of(tiles, own.rows[k], word);
            }
            all = find_taps_of_tile<FORM>(shared->warp_masks[masks_at], own.masks);
            masks_at ^= 1;
            find_chunks<FORM>(tiles, shared, memory, all, word, word == n_words - 1, &own,
                              &chunks);
        }
        own = next;
#pragma unroll
        for (int k = 0; k < FORM::N_OWN; k++) {
            next.rows[k] = after[k];
        }
        ring_step(&places, N_PLACES);
    }
}

#endif
