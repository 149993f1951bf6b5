// SPDX-License-Identifier: Apache-2.0
/* Who fetches, of conv_wgmma_tiles_cuda.h: finds what the rows of a tile read, and fills stages.
 *
 * The four warps find a tile's rows together; its stages they fill in turn, a warp a stage, so
 * that what each must wait for overlaps. A stage is four slots of all the tile's rows and their
 * weights, or a piece of the residual.
 * Beside it stands what there is to do with it, so that who multiplies needs to know nothing
 * else of the tile but its output rows. */
#ifndef VXD_GPU_SPARSE_CONV_WGMMA_FETCH_CUDA_H
#define VXD_GPU_SPARSE_CONV_WGMMA_FETCH_CUDA_H

#include "gpu/sparse/conv_load_cuda.h"
#include "gpu/sparse/conv_wgmma_cuda.h"

#define HALF_ROWS 64 /* of one matrix instruction */
#define MAX_STAGES 8
#define N_PLACES 2

/* What to do with a slot of a stage: bit i: some of the rows of half i have its tap. What they
 * lack is zeros, and weights are finite: whole stages are multiplied, which changes no sum.
 * Another bit tells that the tile's sums end with the stage. */
#define SLOT_ENDS_SUMS 0x80u

/* A tile has N_HALVES x 64 rows, N_HALVES 1 or 2. */
template <int N_HALVES> struct wgmma_shared {
    __align__(16) int32_t rows[N_PLACES][N_HALVES * HALF_ROWS]; /* output rows or -1 */
    uint32_t warp_masks[2 * N_HALVES];                          /* taps of 32 rows each */
    int32_t taps[WORD_TAPS]; /* that some row of the tile has, of this word */
    __align__(4) uint8_t to_do[MAX_STAGES][STAGE_SLOTS];
    uint64_t full[MAX_STAGES];
    uint64_t empty[MAX_STAGES];
    uint64_t place_empty[N_PLACES]; /* of rows */
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

static __device__ __forceinline__ void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}

/* Arrives once the copies that this thread has begun are done. */
static __device__ __forceinline__ void barrier_arrive_copied(uint64_t *barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                     shared_address(barrier))
                 : "memory");
}

/* Until the phase of that parity has ended. */
static __device__ __forceinline__ void barrier_wait(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\n"
                 "bra again;\n"
                 "over:\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
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
 * work in one round has the least in the next; false past the last. */
static __device__ __forceinline__ bool find_tile(const struct vxd_conv_tiles *tiles,
                                                 uint32_t n_rows, int n_tile_rows,
                                                 int n_tile, uint32_t number,
                                                 uint32_t *first_place, int *first_out)
{
    uint32_t n_columns = (uint32_t)(tiles->n_padded / n_tile);
    uint32_t n_row_tiles = (n_rows + (uint32_t)n_tile_rows - 1) / (uint32_t)n_tile_rows;
    uint32_t in_round = number % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    uint64_t i = (uint64_t)number * gridDim.x + in_round;

    *first_place = (n_row_tiles - 1 - (uint32_t)(i / n_columns)) * (uint32_t)n_tile_rows;
    *first_out = (int)(i % n_columns) * n_tile;
    return i < (uint64_t)n_row_tiles * n_columns;
}

/* What a thread that fetches knows of a tile: one row, and its first mask word. Loaded long
 * before they are looked at. Of 64 rows each has two threads. */
struct lookahead {
    int32_t row;
    uint32_t mask;
};

static __device__ __forceinline__ int32_t look_for_row(const struct vxd_conv_tiles *tiles,
                                                       uint32_t n_rows, int n_tile_rows,
                                                       int n_tile, uint32_t number)
{
    uint32_t in_tile = threadIdx.x % (uint32_t)n_tile_rows;
    uint32_t first_place;
    int first_out;

    if (!find_tile(tiles, n_rows, n_tile_rows, n_tile, number, &first_place,
                   &first_out)) {
        return -1;
    }
    return find_row(tiles, first_place + in_tile, n_rows);
}

static __device__ __forceinline__ uint32_t mask_of(const struct vxd_conv_tiles *tiles,
                                                   int32_t row, int word)
{
    size_t n_words = VXD_SPARSE_MASK_WORDS(tiles->n_taps);

    if (row < 0) {
        return 0;
    }
    return tiles->table == NULL ? 1 : tiles->masks[(size_t)row * n_words + (size_t)word];
}

/* One mask word of a tile. */
template <int N_HALVES> struct word_slots {
    uint32_t n; /* n_slots for each tap the tile has */
    int first_tap;
    uint32_t half_masks[N_HALVES];
};

/* What the tile's rows read, of the taps of a word that the tile has: to `inputs`. */
template <int N_HALVES>
static __device__ __forceinline__ void
fetch_table(const struct vxd_conv_tiles *tiles, int32_t *inputs, uint32_t all,
            int first_tap, const struct lookahead *own)
{
    constexpr int ROWS = N_HALVES * HALF_ROWS;
    constexpr int N_SHARES = N_THREADS / ROWS; /* threads of a row: taps in turn */
    int thread = (int)threadIdx.x % N_THREADS;
    int32_t *to = inputs + thread % ROWS;

    for (int i = thread / ROWS; all != 0; all &= all - 1, to += ROWS, i++) {
        int bit = __ffs((int)all) - 1;

        if (i % N_SHARES != 0) {
            continue;
        }
        if ((own->mask >> bit & 1u) == 0) {
            *to = -1;
        } else if (tiles->table == NULL) {
            *to = own->row;
        } else {
            copy4(shared_address(to),
                  tiles->table + (size_t)(first_tap + bit) * tiles->map_capacity +
                      own->row);
        }
    }
    copies_end_group();
    copies_wait(0);
}

template <int N_HALVES>
static __device__ __forceinline__ struct word_slots<N_HALVES>
find_word(const struct vxd_conv_tiles *tiles, struct wgmma_shared<N_HALVES> *shared,
          int32_t *inputs, const struct lookahead *own, int word) {
    int thread = (int)threadIdx.x % N_THREADS;
    struct word_slots<N_HALVES> slots;
    uint32_t of_warp = __reduce_or_sync(0xffffffffu, own->mask);
    uint32_t all = 0;

    if (thread % 32 == 0 && thread < N_HALVES * HALF_ROWS) {
        shared->warp_masks[thread / 32] = of_warp;
    }
    tile_sync();
#pragma unroll
    for (int i = 0; i < N_HALVES; i++) {
        slots.half_masks[i] = shared->warp_masks[2 * i] | shared->warp_masks[2 * i + 1];
        all |= slots.half_masks[i];
    }
    if (thread < WORD_TAPS && (all >> thread & 1u) != 0) {
        shared->taps[__popc(all & ((1u << thread) - 1))] = thread;
    }
    slots.first_tap = word * WORD_TAPS;
    slots.n = (uint32_t)__popc(all) * (uint32_t)tiles->n_slots;
    fetch_table<N_HALVES>(tiles, inputs, all, slots.first_tap, own);
    tile_sync();
    return slots;
}

/* Copies 16 bytes, or writes zeros. Says nothing of memory, so that loads of the next row
 * numbers need not wait: who reads them is told by barriers. */
static __device__ __forceinline__ void
copy16_or_zeros(uint32_t to, const void *from, bool is_missing)
{
    asm volatile("{\n"
                 ".reg .pred missing;\n"
                 "setp.ne.b32 missing, %2, 0;\n"
                 "cp.async.cg.shared.global [%0], [%1], 16, missing;\n"
                 "}" ::"r"(to),
                 "l"(from), "r"((int)is_missing));
}

/* A whole 16-byte piece, or none, of N rows of a stage one after another. `to` is where the
 * first row begins, a multiple of 1024, and `swap` 16 times the piece's number. */
template <int N>
static __device__ __forceinline__ void fetch_rows(const int32_t *inputs, const char *in,
                                                  uint32_t row_bytes, bool exists,
                                                  uint32_t to, uint32_t swap)
{
    to += swap;
    asm("" : "+l"(in)); /* one address, so that one instruction finds a row's */
#pragma unroll 1
    for (int first = 0; first < N; first += 16) {
        int4 of[4];

#pragma unroll
        for (int i = 0; i < 4; i++) {
            of[i] = *(const int4 *)(inputs + first + 4 * i);
        }
#pragma unroll
        for (int i = 0; i < 16; i++) {
            int32_t input = i % 4 == 0   ? of[i / 4].x
                            : i % 4 == 1 ? of[i / 4].y
                            : i % 4 == 2 ? of[i / 4].z
                                         : of[i / 4].w;

            copy16_or_zeros(
                (to ^ (uint32_t)((i & 7) * 16)) + (uint32_t)((first + i) * ROW_BYTES),
                in + (uint64_t)(uint32_t)input * row_bytes, input < 0 || !exists);
        }
    }
}

/* The same where n_valid bytes of a piece exist and addresses are multiples of WIDTH; by copies
 * of so many bytes, or at once where that is 2: copies are of 4 at least. */
template <int WIDTH>
static __device__ __forceinline__ void
fetch_narrow_rows(const int32_t *inputs, int n, const char *in, uint32_t row_bytes,
                  int n_valid, char *to, uint32_t swap)
{
#pragma unroll 2
    for (int first = 0; first < n; first += 4) {
        int4 of = *(const int4 *)(inputs + first); /* copies are ordered after loads */
        const int32_t input[4] = {of.x, of.y, of.z, of.w};

#pragma unroll
        for (int i = 0; i < 4; i++) {
            const char *from =
                in + (uint64_t)(uint32_t)(input[i] < 0 ? 0 : input[i]) * row_bytes;
            int row = first + i;
            char *piece_to = to + row * ROW_BYTES + (swap ^ (uint32_t)((row & 7) * 16));

            if constexpr (WIDTH > 2) {
                copy_pieces<WIDTH>(shared_address(piece_to), from,
                                   input[i] < 0 ? 0 : n_valid);
            } else {
                *(uint4 *)piece_to = gather16<2>(from, input[i] < 0 ? 0 : n_valid);
            }
        }
    }
}

/* Rows of stage `stage` by one warp, a piece number a lane. */
template <int N_HALVES>
static __device__ __forceinline__ void
fetch_stage_rows(const struct vxd_conv_tiles *tiles, const int32_t *inputs,
                 const struct word_slots<N_HALVES> *slots, uint32_t stage,
                 int element_bytes, int alignment, char *to)
{
    constexpr int ROWS = N_HALVES * HALF_ROWS;
    constexpr int N = ROWS / 4;
    int first_row = (int)threadIdx.x % 32 / 8 * N;
    int piece = (int)threadIdx.x % 8;
    uint32_t swap = (uint32_t)piece * 16;
    uint32_t number = stage * STAGE_SLOTS + (uint32_t)piece / 2;
    const char *in = tiles->in;
    uint32_t in_tap;
    uint32_t tap;
    int offset;
    int n_valid;

    if (slots->n == 0) {
        return;
    }
    tap = tap_of_slot(tiles, number < slots->n ? number : 0, &in_tap);
    offset = (int)in_tap * VXD_CONV_SLOT_BYTES + piece % 2 * 16;
    n_valid = tiles->n_in * element_bytes - offset;
    n_valid = n_valid < 0 || number >= slots->n ? 0 : n_valid > 16 ? 16 : n_valid;
    in += n_valid > 0 ? offset : 0;
    to += first_row * ROW_BYTES;
    inputs += tap * (uint32_t)ROWS + (uint32_t)first_row;
    if (alignment == 16) {
        fetch_rows<N>(inputs, in, tiles->in_row_bytes, n_valid > 0, shared_address(to),
                      swap);
    } else if (alignment == 8) {
        fetch_narrow_rows<8>(inputs, N, in, tiles->in_row_bytes, n_valid, to, swap);
    } else if (alignment == 4) {
        fetch_narrow_rows<4>(inputs, N, in, tiles->in_row_bytes, n_valid, to, swap);
    } else {
        fetch_narrow_rows<2>(inputs, N, in, tiles->in_row_bytes, n_valid, to, swap);
    }
}

/* A slot's weights, and what there is to do with it; one lane a slot. Where a stage's weights
 * lie in one piece, the first lane has them all copied. */
template <int N_TILE, int N_HALVES>
static __device__ __forceinline__ void
fetch_slot(const struct vxd_conv_tiles *tiles, struct wgmma_shared<N_HALVES> *shared,
           const struct word_slots<N_HALVES> *slots, uint32_t stage, int first_out,
           uint32_t to, int at, uint32_t ends)
{
    uint32_t in_stage = threadIdx.x % 32;
    uint32_t number = stage * STAGE_SLOTS + in_stage;
    bool is_one_piece = tiles->n_padded == N_TILE && tiles->n_slots % STAGE_SLOTS == 0;
    uint32_t to_do = ends;
    uint64_t slot = 0; /* past the last: any weights, for rows of zeros */

    if (number < slots->n) {
        uint32_t in_tap;
        uint32_t tap = (uint32_t)shared->taps[tap_of_slot(tiles, number, &in_tap)];

        slot = (uint64_t)((uint32_t)slots->first_tap + tap) * (uint32_t)tiles->n_slots +
               in_tap;
#pragma unroll
        for (int i = 0; i < N_HALVES; i++) {
            to_do |= (slots->half_masks[i] >> tap & 1u) << i;
        }
    }
    shared->to_do[at][in_stage] = (uint8_t)to_do;
    if (slots->n == 0 || (is_one_piece && in_stage > 0)) {
        barrier_arrive(&shared->full[at]);
        return;
    }
    bulk_copy(&shared->full[at], to + in_stage * (N_TILE * VXD_CONV_SLOT_BYTES),
              tiles->weights + (slot * (uint32_t)tiles->n_padded + (uint32_t)first_out) *
                                   VXD_CONV_SLOT_BYTES,
              (is_one_piece ? STAGE_SLOTS : 1u) * N_TILE * VXD_CONV_SLOT_BYTES);
}

/* Bytes of a stage. */
template <int N_TILE, int N_HALVES> __host__ __device__ constexpr int wgmma_stage_bytes()
{
    return N_HALVES * HALF_ROWS * ROW_BYTES + STAGE_SLOTS * N_TILE * VXD_CONV_SLOT_BYTES;
}

/* Where a warp's next stage is; stages are numbered from the block's first on. No more warps
 * take turns than there are stages: a warp would mistake an older round for the last. */
struct turn {
    uint32_t n;      /* warps that take turns */
    uint32_t number; /* of the warp's next stage */
    uint32_t first;  /* of the word's, or residual's, stages */
    struct ring ring;
};

/* n stages on. */
static __device__ __forceinline__ void turn_step(struct turn *turn, uint32_t n,
                                                 int n_stages)
{
    turn->number += n;
    turn->ring.at += (int)n;
    while (turn->ring.at >= n_stages) {
        turn->ring.at -= n_stages;
        turn->ring.parity ^= 1;
    }
}

/* All stages of a word; the tile's last word has one at least, which ends the sums. */
template <int N_TILE, int N_HALVES>
static __device__ __forceinline__ void
fetch_word(const struct vxd_conv_tiles *tiles, struct wgmma_shared<N_HALVES> *shared,
           const struct tile_memory *memory, const struct word_slots<N_HALVES> *slots,
           int first_out, int element_bytes, bool is_last, struct turn *turn)
{
    int alignment = tiles->in_alignment;
    constexpr int STAGE_BYTES = wgmma_stage_bytes<N_TILE, N_HALVES>();
    uint32_t n_stages = (slots->n + STAGE_SLOTS - 1) / STAGE_SLOTS;

    if (is_last && n_stages == 0) {
        n_stages = 1;
    }
    for (; turn->number - turn->first < n_stages;
         turn_step(turn, turn->n, tiles->n_stages)) {
        uint32_t stage = turn->number - turn->first;
        int at = turn->ring.at;
        char *to = memory->stages + at * STAGE_BYTES;

        barrier_wait(&shared->empty[at], turn->ring.parity ^ 1);
        if (threadIdx.x % 32 < STAGE_SLOTS) {
            fetch_slot<N_TILE, N_HALVES>(
                tiles, shared, slots, stage, first_out,
                shared_address(to) + N_HALVES * HALF_ROWS * ROW_BYTES, at,
                is_last && stage == n_stages - 1 ? SLOT_ENDS_SUMS : 0);
        }
        __syncwarp();
        fetch_stage_rows<N_HALVES>(tiles, memory->inputs, slots, stage, element_bytes,
                                   alignment, to);
        if (alignment > 2) {
            barrier_arrive_copied(&shared->full[at]);
        } else {
            barrier_arrive(&shared->full[at]);
        }
    }
    turn->first += n_stages;
}

/* The tile's residual: 128 bytes of each row a stage. */
template <int N_TILE, int N_HALVES>
static __device__ __forceinline__ void
fetch_residual(const struct vxd_conv_tiles *tiles, struct wgmma_shared<N_HALVES> *shared,
               const struct tile_memory *memory, const int32_t *rows, int first_out,
               int element_bytes, struct turn *turn)
{
    constexpr int N = N_HALVES * HALF_ROWS / 4;
    uint32_t n_stages = (uint32_t)(N_TILE * element_bytes + ROW_BYTES - 1) / ROW_BYTES;
    int first_row = (int)threadIdx.x % 32 / 8 * N;
    int piece = (int)threadIdx.x % 8;

    for (; turn->number - turn->first < n_stages;
         turn_step(turn, turn->n, tiles->n_stages)) {
        int at = turn->ring.at;
        char *to = memory->stages + at * wgmma_stage_bytes<N_TILE, N_HALVES>();
        int in_tile = (int)(turn->number - turn->first) * ROW_BYTES + piece * 16;
        int offset = first_out * element_bytes + in_tile;
        bool exists =
            in_tile < N_TILE * element_bytes && offset < tiles->n_out * element_bytes;

        barrier_wait(&shared->empty[at], turn->ring.parity ^ 1);
        if (threadIdx.x % 32 < STAGE_SLOTS) {
            barrier_arrive(&shared->full[at]);
        }
        fetch_rows<N>(rows + first_row, tiles->add + offset,
                      (uint32_t)tiles->add_row_bytes, exists,
                      shared_address(to + first_row * ROW_BYTES), (uint32_t)piece * 16);
        barrier_arrive_copied(&shared->full[at]);
    }
    turn->first += n_stages;
}

template <enum vxd_net_precision PRECISION, int N_TILE, int N_HALVES>
static __device__ __forceinline__ void
fetch_tiles(const struct vxd_conv_tiles *tiles, struct wgmma_shared<N_HALVES> *shared,
            const struct tile_memory *memory, uint32_t n_rows)
{
    constexpr int ROWS = N_HALVES * HALF_ROWS;
    constexpr int ELEMENT_BYTES =
        PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 2 : 4;
    int n_words = VXD_SPARSE_MASK_WORDS(tiles->n_taps);
    int thread = (int)threadIdx.x % N_THREADS;
    bool has_turns = thread / 32 < tiles->n_stages;
    struct turn turn = {(uint32_t)min(N_THREADS / 32, tiles->n_stages), 0, 0, {0, 0}};
    struct ring places = {0, 0};
    struct lookahead own = {look_for_row(tiles, n_rows, ROWS, N_TILE, 0), 0};
    struct lookahead next = {look_for_row(tiles, n_rows, ROWS, N_TILE, 1), 0};
    uint32_t first_place;
    int first_out;

    turn_step(&turn, (uint32_t)thread / 32, tiles->n_stages);
    own.mask = mask_of(tiles, own.row, 0);
    for (uint32_t i = 0;
         find_tile(tiles, n_rows, ROWS, N_TILE, i, &first_place, &first_out); i++) {
        int32_t after = -1;

        barrier_wait(&shared->place_empty[places.at], places.parity ^ 1);
        if (thread < ROWS) {
            shared->rows[places.at][thread] = own.row;
        }
        for (int word = 0; word < n_words; word++) {
            struct word_slots<N_HALVES> slots;

            if (word > 0) {
                own.mask = mask_of(tiles, own.row, word);
            }
            slots = find_word<N_HALVES>(tiles, shared, memory->inputs, &own, word);
            if (word == 0) {
                after = look_for_row(tiles, n_rows, ROWS, N_TILE, i + 2);
                next.mask = mask_of(tiles, next.row, 0);
            }
            if (has_turns) {
                fetch_word<N_TILE, N_HALVES>(tiles, shared, memory, &slots, first_out,
                                             ELEMENT_BYTES, word == n_words - 1, &turn);
            }
            tile_sync(); /* the table of inputs is free */
        }
        if (has_turns && tiles->is_out_whole && tiles->add != NULL) {
            fetch_residual<N_TILE, N_HALVES>(tiles, shared, memory,
                                             shared->rows[places.at], first_out,
                                             ELEMENT_BYTES, &turn);
        }
        own = next;
        next = {after, 0};
        ring_step(&places, N_PLACES);
    }
}

#endif
