// SPDX-License-Identifier: Apache-2.0
/* Who fetches, of conv_wgmma_tiles_cuda.h: fills stages with what the rows of a tile read.
 *
 * Stages are filled in turn, by a warp a stage, or two where two warpgroups multiply, so that
 * what each must wait for overlaps. A stage is four slots of all the tile's rows and their
 * weights, or a piece of the residual. What a row lacks is zeros, and weights are finite: whole
 * stages are multiplied, which changes no sum. Beside a stage stands whether it is the tile's
 * last, so that who multiplies needs to know nothing else of the tile but its output rows. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_WGMMA_FETCH_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_WGMMA_FETCH_CUDA_H

#include "gpu/sparse/conv/conv_wgmma_find_cuda.h"

/* Copies 16 bytes, or writes zeros. Says nothing of memory, so that loads of the next row
 * numbers need not wait: who reads them is told by barriers. */
static __device__ __forceinline__ void copy16_or_zeros(uint32_t to, const void *from,
                                                       bool is_missing)
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

/* Of a stage's rows, those that lanes 8 i to 8 i + 7 of a warp copy. */
template <class FORM> static __device__ constexpr int rows_of_lane(void)
{
    return FORM::ROWS / FORM::N_WARPGROUPS / 4;
}

template <class FORM> static __device__ __forceinline__ int first_row_of_lane(void)
{
    return (int)(threadIdx.x / 32 % FORM::N_WARPGROUPS * 4 + threadIdx.x % 32 / 8) *
           rows_of_lane<FORM>();
}

/* Of the warps that fill a stage together the first has its weights copied. */
template <class FORM> static __device__ __forceinline__ bool is_first_of_fetchers(void)
{
    return threadIdx.x / 32 % FORM::N_WARPGROUPS == 0;
}

/* The warp's share of the rows of stage `stage`, a piece number a lane. */
template <class FORM>
static __device__ __forceinline__ void
fetch_stage_rows(const struct vxd_conv_tiles *tiles, const int32_t *inputs,
                 const struct chunk *chunk, uint32_t stage, int element_bytes,
                 int alignment, char *to)
{
    constexpr int N = rows_of_lane<FORM>();
    int first_row = first_row_of_lane<FORM>();
    int piece = (int)threadIdx.x % 8;
    uint32_t swap = (uint32_t)piece * 16;
    uint32_t number = stage * STAGE_SLOTS + (uint32_t)piece / 2;
    const char *in = tiles->in;
    uint32_t in_tap;
    uint32_t tap;
    int offset;
    int n_valid;

    tap = tap_of_slot(tiles, number < chunk->n ? number : 0, &in_tap);
    offset = (int)in_tap * VXD_CONV_SLOT_BYTES + piece % 2 * 16;
    n_valid = tiles->n_in * element_bytes - offset;
    n_valid = n_valid < 0 || number >= chunk->n ? 0 : n_valid > 16 ? 16 : n_valid;
    in += n_valid > 0 ? offset : 0;
    to += first_row * ROW_BYTES;
    inputs += tap * (uint32_t)FORM::ROWS + (uint32_t)first_row;
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

/* A slot's weights, and whether sums end with the stage; one lane a slot. Where a stage's
 * weights lie in one piece, the first lane has them all copied. */
template <class FORM>
static __device__ __forceinline__ void
fetch_slot(const struct vxd_conv_tiles *tiles, struct wgmma_shared<FORM> *shared,
           const struct chunk *chunk, uint32_t stage, int first_out, uint32_t to, int at,
           bool ends_sums)
{
    constexpr int N_TILE = FORM::N_TILE;
    uint32_t in_stage = threadIdx.x % 32;
    uint32_t number = stage * STAGE_SLOTS + in_stage;
    bool is_one_piece = tiles->n_padded == N_TILE && tiles->n_slots % STAGE_SLOTS == 0;
    uint64_t slot = 0; /* past the last: any weights, for rows of zeros */

    if (number < chunk->n) {
        uint32_t in_tap;
        uint32_t tap = tap_of_slot(tiles, number, &in_tap);

        slot = (uint64_t)(uint32_t)chunk->taps[tap] * (uint32_t)tiles->n_slots + in_tap;
    }
    if (in_stage == 0) {
        shared->ends_sums[at] = ends_sums;
    }
    if (is_one_piece && in_stage > 0) {
        barrier_arrive(&shared->full[at]);
        return;
    }
    bulk_copy(&shared->full[at], to + in_stage * (N_TILE * VXD_CONV_SLOT_BYTES),
              tiles->weights + (slot * (uint32_t)tiles->n_padded + (uint32_t)first_out) *
                                   VXD_CONV_SLOT_BYTES,
              (is_one_piece ? STAGE_SLOTS : 1u) * N_TILE * VXD_CONV_SLOT_BYTES);
}

/* Where a team's next stage is (a team is a warp, or two that share a stage's rows); stages are
 * numbered from the block's first on. No more teams take turns than there are stages: one would
 * mistake an older round for the last. */
struct turn {
    uint32_t n;      /* teams that take turns */
    uint32_t number; /* of the team's next stage */
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

/* All stages of a chunk; a tile's last chunk has one at least, if of zeros, which ends the
 * sums. */
template <class FORM>
static __device__ __forceinline__ void
fetch_chunk(const struct vxd_conv_tiles *tiles, struct wgmma_shared<FORM> *shared,
            const struct wgmma_memory *memory, const struct chunk *chunk,
            const int32_t *table, int first_out, int element_bytes, struct turn *turn)
{
    int alignment = tiles->in_alignment;
    bool is_last = chunk->is_last;
    uint32_t n_stages = (chunk->n + STAGE_SLOTS - 1) / STAGE_SLOTS;

    if (is_last && n_stages == 0) {
        n_stages = 1;
    }
    for (; turn->number - turn->first < n_stages;
         turn_step(turn, turn->n, tiles->n_stages)) {
        uint32_t stage = turn->number - turn->first;
        int at = turn->ring.at;
        char *to = memory->stages + at * FORM::STAGE_BYTES;

        barrier_wait(&shared->empty[at], turn->ring.parity ^ 1);
        if (is_first_of_fetchers<FORM>() && threadIdx.x % 32 < STAGE_SLOTS) {
            fetch_slot<FORM>(tiles, shared, chunk, stage, first_out,
                             shared_address(to) + FORM::ROWS_BYTES, at,
                             is_last && stage == n_stages - 1);
        }
        __syncwarp();
        fetch_stage_rows<FORM>(tiles, table, chunk, stage, element_bytes, alignment, to);
        if (alignment > 2) {
            barrier_arrive_copied(&shared->full[at]);
        } else {
            barrier_arrive(&shared->full[at]);
        }
    }
    turn->first += n_stages;
}

/* The tile's residual: 128 bytes of each row a stage. */
template <class FORM>
static __device__ __forceinline__ void
fetch_residual(const struct vxd_conv_tiles *tiles, struct wgmma_shared<FORM> *shared,
               const struct wgmma_memory *memory, const int32_t *rows, int first_out,
               int element_bytes, struct turn *turn)
{
    constexpr int N = rows_of_lane<FORM>();
    constexpr int N_TILE = FORM::N_TILE;
    uint32_t n_stages = (uint32_t)(N_TILE * element_bytes + ROW_BYTES - 1) / ROW_BYTES;
    int first_row = first_row_of_lane<FORM>();
    int piece = (int)threadIdx.x % 8;

    for (; turn->number - turn->first < n_stages;
         turn_step(turn, turn->n, tiles->n_stages)) {
        int at = turn->ring.at;
        char *to = memory->stages + at * FORM::STAGE_BYTES;
        int in_tile = (int)(turn->number - turn->first) * ROW_BYTES + piece * 16;
        int offset = first_out * element_bytes + in_tile;
        bool exists =
            in_tile < N_TILE * element_bytes && offset < tiles->n_out * element_bytes;

        barrier_wait(&shared->empty[at], turn->ring.parity ^ 1);
        if (is_first_of_fetchers<FORM>() && threadIdx.x % 32 < STAGE_SLOTS) {
            barrier_arrive(&shared->full[at]);
        }
        fetch_rows<N>(rows + first_row, tiles->add + offset,
                      (uint32_t)tiles->add_row_bytes, exists,
                      shared_address(to + first_row * ROW_BYTES), (uint32_t)piece * 16);
        barrier_arrive_copied(&shared->full[at]);
    }
    turn->first += n_stages;
}

/* How many teams take turns. */
static __device__ __forceinline__ int n_fetchers(const struct vxd_conv_tiles *tiles)
{
    return min(3, tiles->n_stages);
}

template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
fetch_tiles(const struct vxd_conv_tiles *tiles, struct wgmma_shared<FORM> *shared,
            const struct wgmma_memory *memory, uint32_t n_rows)
{
    constexpr int ELEMENT_BYTES =
        PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 2 : 4;
    int fetcher = (int)threadIdx.x % FORM::N_MULTIPLIERS / 32 / FORM::N_WARPGROUPS;
    bool has_residual = tiles->is_out_whole && tiles->add != NULL;
    struct turn turn = {(uint32_t)n_fetchers(tiles), 0, 0, {0, 0}};
    struct ring places = {0, 0};
    struct ring chunks = {0, 0};
    uint32_t tile_turn; /* of rows: whoever finds knows them */
    int first_out;

    if (fetcher >= n_fetchers(tiles)) {
        return;
    }
    turn_step(&turn, (uint32_t)fetcher, tiles->n_stages);
    for (uint32_t i = 0;
         find_tile(tiles, n_rows, FORM::ROWS, FORM::N_TILE, i, &tile_turn, &first_out);
         i++) {
        bool is_last;

        do {
            const struct chunk *chunk = &shared->chunks[chunks.at];

            barrier_wait(&shared->chunk_full[chunks.at], chunks.parity);
            is_last = chunk->is_last;
            fetch_chunk<FORM>(tiles, shared, memory, chunk,
                              memory->tables + (uint32_t)chunks.at * memory->n_table,
                              first_out, ELEMENT_BYTES, &turn);
            __syncwarp();
            if (threadIdx.x % 32 == 0) {
                barrier_arrive(&shared->chunk_empty[chunks.at]);
            }
            ring_step(&chunks, N_CHUNKS);
        } while (!is_last);
        if (has_residual) {
            fetch_residual<FORM>(tiles, shared, memory, shared->rows[places.at],
                                 first_out, ELEMENT_BYTES, &turn);
            __syncwarp();
        }
        if (threadIdx.x % 32 == 0) {
            barrier_arrive(&shared->place_empty[places.at]);
        }
        ring_step(&places, N_PLACES);
    }
}

#endif
