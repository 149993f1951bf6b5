// SPDX-License-Identifier: Apache-2.0
/* The tiles of conv_tiles_cuda.h for Hopper: of every eight warps one finds what rows read, three
 * fetch it, and four multiply and store.
 *
 * Fetchers run ahead through the stages and into the next tile, as far as stages are free.
 * Barriers in shared memory signal when a stage is full and when it is free again. Rows arrive by
 * 16-byte copies, the weights of a slot by one bulk copy. The size of tiles is chosen by the upper
 * bound of the rows; the order of sums is that of conv_tiles_cuda.h for every size. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_WGMMA_TILES_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_WGMMA_TILES_CUDA_H

#include <stddef.h>

#include "gpu/sparse/conv/conv_wgmma_fetch_cuda.h"

/* Multiplying: adds up the stages of a tile.
 *
 * The matrix instructions of a stage are issued while those of the previous stage run, whose
 * buffer is freed once they have ended, so the matrix units do not wait between two stages.
 * Addresses, and everything that counts stages, are computed once and kept in uniform registers.
 * There is no branch around matrix instructions, nor anything else that touches sums between
 * them, because the compiler would then make each instruction wait for the previous one. */

#define EMPTY_FROM_FULL (MAX_STAGES * (uint32_t)sizeof(uint64_t))

/* The same value in all lanes, which the compiler then knows. */
static __device__ __forceinline__ uint32_t uniform(uint32_t x)
{
    return __shfl_sync(0xffffffffu, x, 0);
}

/* Number of the warpgroup among those that multiply. */
template <class FORM> static __device__ __forceinline__ uint32_t warpgroup_of(void)
{
    return FORM::N_WARPGROUPS == 1 ? 0 : uniform(threadIdx.x / N_THREADS);
}

/* Shared address of full[0]; the barriers of empty follow. It is kept instead of
 * computed for each stage. */
template <class FORM>
static __device__ __forceinline__ uint32_t
barriers_of(const struct wgmma_shared<FORM> *shared)
{
    uint32_t full = shared_address(shared->full);

    static_assert(offsetof(struct wgmma_shared<FORM>, empty) -
                          offsetof(struct wgmma_shared<FORM>, full) ==
                      EMPTY_FROM_FULL,
                  "barriers follow each other");
    asm("" : "+r"(full));
    return uniform(full);
}

/* Whether the sums end with the stage. After this call no lane reads the stage's word
 * any more. */
template <class FORM>
static __device__ __forceinline__ bool sums_end(const struct wgmma_shared<FORM> *shared,
                                                int at)
{
    bool ends = __any_sync(0xffffffffu, shared->ends_sums[at] != 0);

    __syncwarp();
    return ends;
}

/* Frees the stage with that full barrier; none of the warp's lanes or matrix
 * instructions may still read it. */
static __device__ __forceinline__ void free_stage(uint32_t barrier)
{
    if (threadIdx.x % 32 == 0) {
        barrier_arrive_at(barrier + EMPTY_FROM_FULL);
    }
}

/* Whether a stage arrives before the running one has ended, approximately: polls for
 * as long as its instructions take. The result is the same in all lanes. */
template <class FORM>
static __device__ __forceinline__ bool arrives_soon(uint32_t barrier, uint32_t parity)
{
    constexpr int N_POLLS = FORM::N_TILE * FORM::N_HALVES / 16;
    bool is_there = false;

#pragma unroll 1
    for (int i = 0; i < N_POLLS && !is_there; i++) {
        is_there = __all_sync(0xffffffffu, barrier_test_at(barrier, parity));
    }
    return is_there;
}

/* Waits for a stage while another, if any (0 = none), may be in use. Frees the latter
 * if the wait is long, because fetchers may need it. Returns the stage that is still
 * to be freed. */
template <class FORM>
static __device__ __forceinline__ uint32_t wait_for_stage(uint32_t barrier,
                                                          uint32_t parity,
                                                          uint32_t before)
{
    if (arrives_soon<FORM>(barrier, parity)) {
        return before;
    }
    wgmma_wait<0>();
    if (before != 0) {
        free_stage(before);
    }
    barrier_wait_at(barrier, parity);
    return 0;
}

/* Issues the instructions that add a stage to the sums of all halves of the group's
 * rows. */
template <enum vxd_net_precision PRECISION, int N_TILE, int N>
static __device__ __forceinline__ void begin_stage(uint64_t rows, uint64_t weights,
                                                   float (*sums)[N_TILE / 8][4])
{
    wgmma_fence();
#pragma unroll
    for (int slot = 0; slot < STAGE_SLOTS; slot++) {
        uint64_t of_slot = weights + (uint64_t)(slot * N_TILE * VXD_CONV_SLOT_BYTES / 16);

#pragma unroll
        for (int half = 0; half < N; half++) {
            uint64_t of_half =
                rows +
                (uint64_t)((half * HALF_ROWS * ROW_BYTES + slot * VXD_CONV_SLOT_BYTES) /
                           16);

            wgmma<PRECISION, N_TILE>(sums[half], of_half, of_slot);
        }
    }
    wgmma_commit();
}

/* Loads N slots of a half's rows, beginning with slot `first`, of a stage whose rows
 * pass through registers: the warp's 16 of them. */
template <enum vxd_net_precision PRECISION, int N>
static __device__ __forceinline__ void load_slots(uint32_t rows, int first,
                                                  uint32_t to[N][4])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        load_rows<PRECISION>(rows, first + i, to[i]);
    }
}

/* Like begin_stage for one half and N slots, with rows in registers. Matrix units read
 * those registers while they multiply, not when the instruction is issued, so nothing
 * may write them before a wait for the group. The assembler keeps other values out of
 * the registers that long only where they are loaded again after that wait. Where the
 * next rows were loaded before it, into other registers, and moved afterwards, the
 * assembler merged the two: slots were then multiplied with rows of the next stage
 * whenever that stage arrived early, which is usual for many rows. */
template <int N_TILE, int N>
static __device__ __forceinline__ void
begin_slots(const uint32_t rows[N][4], uint64_t weights, int first, float (*sums)[4])
{
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < N; i++) {
        wgmma_tf32<N_TILE>(
            sums, rows[i],
            weights + (uint64_t)((first + i) * N_TILE * VXD_CONV_SLOT_BYTES / 16));
    }
    wgmma_commit();
}

/* All stages of a tile's sums, both operands in shared memory. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_from_shared(int n_stages, const struct wgmma_shared<FORM> *shared,
                     uint32_t stages, struct ring *ring,
                     float (*sums)[FORM::N_TILE / 8][4])
{
    constexpr int N_TILE = FORM::N_TILE;
    constexpr int N_HALVES = FORM::N_HALVES;
    uint64_t rows =
        wgmma_rows(stages + warpgroup_of<FORM>() * (N_HALVES * HALF_ROWS * ROW_BYTES));
    uint64_t weights = wgmma_weights(stages + FORM::ROWS_BYTES);
    uint32_t full = barriers_of(shared);
    uint32_t before = 0; /* full barrier of the previous stage; 0 = none */
    bool ends;

    do {
        uint32_t barrier = full + (uint32_t)ring->at * 8;
        uint64_t stage = (uint32_t)ring->at * (FORM::STAGE_BYTES / 16);

        before = wait_for_stage<FORM>(barrier, ring->parity, before);
        wgmma_publish();
        begin_stage<PRECISION, N_TILE, N_HALVES>(rows + stage, weights + stage, sums);
        ends = sums_end(shared, ring->at);
        wgmma_wait<1>();
        if (before != 0) {
            free_stage(before);
        }
        before = barrier;
        ring_step(ring, n_stages);
    } while (!ends);
    wgmma_wait<0>();
    free_stage(before);
}

/* The same with rows in registers: slots of one half of a stage are loaded while those
 * of the other half are multiplied, so that each half has registers of its own. Sums
 * are still added to in the order of slots. Only ordinary loads read rows, and weights
 * arrive by bulk copies, whose end the barrier signals, so no write has to be made
 * visible. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_from_registers(int n_stages, const struct wgmma_shared<FORM> *shared,
                        uint32_t stages, struct ring *ring, float (*sums)[4])
{
    constexpr int N = STAGE_SLOTS / 2;
    uint32_t rows = stages + threadIdx.x / 32 % 4 * (16 * ROW_BYTES);
    uint64_t weights = wgmma_weights(stages + FORM::ROWS_BYTES);
    uint32_t full = barriers_of(shared);
    uint32_t before = 0; /* full barrier of the previous stage; 0 = none */
    uint32_t loaded[2][N][4];
    bool ends;

    do {
        uint32_t barrier = full + (uint32_t)ring->at * 8;
        uint32_t of_stage = rows + (uint32_t)ring->at * FORM::STAGE_BYTES;
        uint64_t weights_of_stage =
            weights + (uint32_t)ring->at * (FORM::STAGE_BYTES / 16);

        before = wait_for_stage<FORM>(barrier, ring->parity, before);
        load_slots<PRECISION, N>(of_stage, 0, loaded[0]);
        begin_slots<FORM::N_TILE, N>(loaded[0], weights_of_stage, 0, sums);
        wgmma_wait<1>(); /* the last slots of the previous stage */
        if (before != 0) {
            free_stage(before);
        }
        load_slots<PRECISION, N>(of_stage, N, loaded[1]);
        begin_slots<FORM::N_TILE, N>(loaded[1], weights_of_stage, N, sums);
        ends = sums_end(shared, ring->at);
        wgmma_wait<1>(); /* the stage's first slots */
        before = barrier;
        ring_step(ring, n_stages);
    } while (!ends);
    wgmma_wait<0>();
    free_stage(before);
}

/* The same with two halves of rows: the rows of one are loaded while the other is
 * multiplied, so that each has registers of its own. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_two_from_registers(int n_stages, const struct wgmma_shared<FORM> *shared,
                            uint32_t stages, struct ring *ring,
                            float (*sums)[FORM::N_TILE / 8][4])
{
    constexpr int N = STAGE_SLOTS;
    uint32_t rows = stages + warpgroup_of<FORM>() * (2 * HALF_ROWS * ROW_BYTES) +
                    threadIdx.x / 32 % 4 * (16 * ROW_BYTES);
    uint64_t weights = wgmma_weights(stages + FORM::ROWS_BYTES);
    uint32_t full = barriers_of(shared);
    uint32_t before = 0; /* full barrier of the previous stage; 0 = none */
    uint32_t loaded[2][N][4];
    bool ends;

    do {
        uint32_t barrier = full + (uint32_t)ring->at * 8;
        uint32_t of_stage = rows + (uint32_t)ring->at * FORM::STAGE_BYTES;
        uint64_t weights_of_stage =
            weights + (uint32_t)ring->at * (FORM::STAGE_BYTES / 16);

        before = wait_for_stage<FORM>(barrier, ring->parity, before);
        load_slots<PRECISION, N>(of_stage, 0, loaded[0]);
        begin_slots<FORM::N_TILE, N>(loaded[0], weights_of_stage, 0, sums[0]);
        wgmma_wait<1>(); /* the other half of the previous stage */
        if (before != 0) {
            free_stage(before);
        }
        load_slots<PRECISION, N>(of_stage + HALF_ROWS * ROW_BYTES, 0, loaded[1]);
        begin_slots<FORM::N_TILE, N>(loaded[1], weights_of_stage, 0, sums[1]);
        ends = sums_end(shared, ring->at);
        wgmma_wait<1>(); /* the stage's first half */
        before = barrier;
        ring_step(ring, n_stages);
    } while (!ends);
    wgmma_wait<0>();
    free_stage(before);
}

/* All stages of a tile's sums. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_tile(int n_stages, const struct wgmma_shared<FORM> *shared, const char *stages,
              struct ring *ring, float (*sums)[FORM::N_TILE / 8][4])
{
    uint32_t first = shared_address(stages);

    static_assert(FORM::N_HALVES == 2 || FORM::N_WARPGROUPS == 1, "of a lone half one");
    /* written before all that follows */
    wgmma_release<FORM::N_TILE, FORM::N_HALVES>(sums);
    if constexpr (PRECISION == VXD_NET_TF32 && FORM::N_HALVES == 2) {
        multiply_two_from_registers<PRECISION, FORM>(n_stages, shared, first, ring, sums);
    } else if constexpr (PRECISION == VXD_NET_TF32) {
        multiply_from_registers<PRECISION, FORM>(n_stages, shared, first, ring, sums[0]);
    } else {
        multiply_from_shared<PRECISION, FORM>(n_stages, shared, first, ring, sums);
    }
    wgmma_release<FORM::N_TILE, FORM::N_HALVES>(sums);
}

/* Storing the sums. Where all addresses are multiples of 16 bytes and the activation
 * is plain, sums began with the bias; the residual is added and numbers are rounded in
 * the registers where the matrix unit left them, and the warp's rows pass through
 * shared memory to 16-byte stores. All other cases use the code of conv_load_cuda.h. */

#define WARP_STAGED_BYTES (16 * ROW_BYTES)
#define PIECES_PITCH 24 /* floats a row of 16 channels */

/* Stores four matrices of 8 x 16 bytes; each lane passes the address of one row. */
static __device__ __forceinline__ void store_matrices(uint32_t address,
                                                      const uint32_t of[4])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
        "r"(of[0]), "r"(of[1]), "r"(of[2]), "r"(of[3])
        : "memory");
}

/* Rounds two numbers to two bytes each, as bits_of does. */
template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ uint32_t pair_of(float low, float high)
{
    uint32_t pair;

    if constexpr (PRECISION == VXD_NET_FP16) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return __vmins2(pair, 0x7e007e00u); /* the instruction's NaN is 0x7fff */
    } else {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return __vmins2(pair, 0x7fc07fc0u);
    }
}

/* x < 0 ? 0 : x, where no x is -0. */
static __device__ __forceinline__ float relu_of(float x)
{
    float y;

    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
    return y;
}

template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ float2 widen_pair(uint32_t pair)
{
    if constexpr (PRECISION == VXD_NET_FP16) {
        return __half22float2(*(const __half2 *)&pair);
    } else {
        return make_float2(__uint_as_float(pair << 16),
                           __uint_as_float(pair & 0xffff0000u));
    }
}

/* Sums of a warp's 16 rows and WIDTH channels; WIDTH elements are at most 128 bytes. */
struct strip {
    uint32_t add;    /* shared address of the warp's residual; 0 = none */
    uint32_t staged; /* shared address of the warp's staging memory */
    bool has_relu;
};

/* Offset of a piece in 16 rows of 128 bytes with permuted pieces. */
static __device__ __forceinline__ uint32_t piece_at(int row, int piece)
{
    return (uint32_t)(row * ROW_BYTES + (piece ^ (row & 7)) * 16);
}

/* Eight channels of the strip, two bytes each: residual, activation, two words. A sum
 * of -0 becomes 0, as it is where a tap of zeros was added too. */
template <enum vxd_net_precision PRECISION>
static __device__ __forceinline__ void end_pairs(const struct strip *strip, float *of,
                                                 const uint32_t *add, uint32_t to[2])
{
#pragma unroll
    for (int i = 0; i < 2; i++) { /* rows lane / 4 and lane / 4 + 8 */
        float2 x = make_float2(of[2 * i] + 0.0f, of[2 * i + 1] + 0.0f);

        if (strip->add != 0) {
            float2 y = widen_pair<PRECISION>(add[i]);

            x.x += y.x;
            x.y += y.y;
        }
        if (strip->has_relu) {
            x.x = relu_of(x.x);
            x.y = relu_of(x.y);
        }
        to[i] = pair_of<PRECISION>(x.x, x.y);
    }
}

template <enum vxd_net_precision PRECISION, int WIDTH>
static __device__ __forceinline__ void end_strip(const struct strip *strip,
                                                 float (*sums)[4])
{
    int lane = (int)threadIdx.x % 32;
    /* The row of a matrix whose address this lane gives, and its piece. */
    int row = lane / 8 % 2 * 8 + lane % 8;
    int half = lane / 16;

#pragma unroll
    for (int j = 0; j < WIDTH / 8; j += 2) {
        uint32_t add[4] = {0, 0, 0, 0};
        uint32_t words[4];

        if (strip->add != 0) {
            load_matrices(strip->add + piece_at(row, j + half), add);
        }
#pragma unroll
        for (int k = 0; k < 2; k++) {
            end_pairs<PRECISION>(strip, sums[j + k], add + 2 * k, words + 2 * k);
        }
        store_matrices(strip->staged + piece_at(row, j + half), words);
    }
}

/* The same with elements of four bytes. */
template <int WIDTH>
static __device__ __forceinline__ void end_strip_wide(const struct strip *strip,
                                                      float (*sums)[4])
{
    int lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int j = 0; j < WIDTH / 8; j++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int row = lane / 4 + 8 * i;
            uint32_t at = piece_at(row, 2 * j + lane % 4 / 2) + (uint32_t)(lane % 2 * 8);
            float2 x = make_float2(sums[j][2 * i] + 0.0f, sums[j][2 * i + 1] + 0.0f);

            if (strip->add != 0) {
                float2 y;

                asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                             : "=f"(y.x), "=f"(y.y)
                             : "r"(strip->add + at)
                             : "memory");
                x.x += y.x;
                x.y += y.y;
            }
            if (strip->has_relu) {
                x.x = relu_of(x.x);
                x.y = relu_of(x.y);
            }
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(strip->staged + at),
                         "f"(vxd_canonical_nanf(x.x)), "f"(vxd_canonical_nanf(x.y))
                         : "memory");
        }
    }
}

/* Copies staged rows to the output; `out` points to the first channel, and n_bytes of
 * a row exist. */
template <int N_PIECES>
static __device__ __forceinline__ void
write_strip(const struct vxd_conv_tiles *tiles, const int32_t *rows, const char *staged,
            char *out, int n_bytes)
{
    constexpr int N_ROWS = 32 / N_PIECES; /* rows at a time */
    int piece = (int)threadIdx.x % N_PIECES;
    int first = (int)threadIdx.x % 32 / N_PIECES;

#pragma unroll
    for (int i = 0; i < 16; i += N_ROWS) {
        int32_t row = rows[first + i];
        uint4 words = *(const uint4 *)(staged + piece_at(first + i, piece));

        if (row >= 0 && piece * 16 < n_bytes) {
            *(uint4 *)(out + (size_t)row * tiles->out_row_bytes + piece * 16) = words;
        }
    }
}

/* Ends WIDTH channels, beginning at `first` of the tile, of the rows of one warp in
 * one half. */
template <enum vxd_net_precision PRECISION, int WIDTH>
static __device__ __forceinline__ void
store_strip_whole(const struct vxd_conv_tiles *tiles, const int32_t *rows, char *staged,
                  int first_out, uint32_t add, float (*sums)[4])
{
    constexpr int ELEMENT_BYTES =
        PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 2 : 4;
    int n_channels = tiles->n_out - first_out;
    struct strip strip = {add, shared_address(staged), tiles->act == VXD_ACT_RELU};

    if (n_channels <= 0) {
        return;
    }
    if constexpr (ELEMENT_BYTES == 2) {
        end_strip<PRECISION, WIDTH>(&strip, sums);
    } else {
        end_strip_wide<WIDTH>(&strip, sums);
    }
    __syncwarp();
    write_strip<WIDTH * ELEMENT_BYTES / 16>(
        tiles, rows, staged, tiles->out + (size_t)first_out * ELEMENT_BYTES,
        n_channels * ELEMENT_BYTES);
    __syncwarp();
}

/* What sums begin with: the bias where store_tile_whole ends them, else 0, never -0. */
template <class FORM>
static __device__ __forceinline__ void begin_sums(const struct vxd_conv_tiles *tiles,
                                                  int first_out,
                                                  float (*sums)[FORM::N_TILE / 8][4])
{
    const float *from = tiles->bias + first_out + threadIdx.x % 4 * 2;
    int n_channels = tiles->is_out_whole && tiles->bias != NULL
                         ? tiles->n_out - first_out - (int)threadIdx.x % 4 * 2
                         : 0;

#pragma unroll
    for (int j = 0; j < FORM::N_TILE / 8; j++) {
        float2 bias = make_float2(0.0f, 0.0f);

        if (8 * j < n_channels) {
            bias = *(const float2 *)(from + 8 * j);
        }
#pragma unroll
        for (int half = 0; half < FORM::N_HALVES; half++) {
            sums[half][j][0] = sums[half][j][2] = bias.x + 0.0f;
            sums[half][j][1] = sums[half][j][3] = bias.y + 0.0f;
        }
    }
}

/* `rows` are the group's output rows, `stages` begins with its residual rows, `staged`
 * is this warp's memory. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
store_tile_whole(const struct vxd_conv_tiles *tiles, struct wgmma_shared<FORM> *shared,
                 const char *stages, const int32_t *rows, char *staged, int first_out,
                 struct ring *ring, float (*sums)[FORM::N_TILE / 8][4])
{
    constexpr int N_ELEMENTS =
        ROW_BYTES / (PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 2 : 4);
    constexpr int N_TILE = FORM::N_TILE;
    constexpr int N_HALVES = FORM::N_HALVES;
    constexpr int REST = N_TILE % N_ELEMENTS;
    int warp = (int)threadIdx.x / 32 % 4;
    bool has_add = tiles->add != NULL;

#pragma unroll
    for (int first = 0; first < N_TILE; first += N_ELEMENTS) {
        if (has_add) {
            barrier_wait(&shared->full[ring->at], ring->parity);
        }
#pragma unroll
        for (int half = 0; half < N_HALVES; half++) {
            int row = half * HALF_ROWS + warp * 16;
            uint32_t add = has_add
                               ? shared_address(stages + ring->at * FORM::STAGE_BYTES) +
                                     (uint32_t)(row * ROW_BYTES)
                               : 0;

            if (first + N_ELEMENTS <= N_TILE) {
                store_strip_whole<PRECISION, N_ELEMENTS>(tiles, rows + row, staged,
                                                         first_out + first, add,
                                                         sums[half] + first / 8);
            } else {
                store_strip_whole<PRECISION, REST == 0 ? 16 : REST>(
                    tiles, rows + row, staged, first_out + first, add,
                    sums[half] + first / 8);
            }
        }
        if (has_add) {
            __syncwarp(); /* lanes without a row to store may still wait for the stage */
            if (threadIdx.x % 32 == 0) {
                barrier_arrive(&shared->empty[ring->at]);
            }
            ring_step(ring, tiles->n_stages);
        }
    }
}

/* Any rows, any activation; `staged` is this warp's memory. */
template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
store_tile_pieces(const struct vxd_conv_tiles *tiles, const int32_t *rows, float *staged,
                  int first_out, float (*sums)[FORM::N_TILE / 8][4])
{
    constexpr int N = PRECISION == VXD_NET_FP16 || PRECISION == VXD_NET_BF16 ? 8 : 4;
    constexpr int N_HALVES = FORM::N_HALVES;
    constexpr int WIDTH = 16;
    int lane = (int)threadIdx.x % 32;
    int warp = (int)threadIdx.x / 32 % 4;

#pragma unroll
    for (int k = 0; k < N_HALVES * FORM::N_TILE / WIDTH; k++) {
        int half = k % N_HALVES;
        int first = k / N_HALVES * WIDTH;

#pragma unroll
        for (int j = 0; j < WIDTH / 8; j++) {
            const float *of = sums[half][first / 8 + j];
            float *to = staged + lane / 4 * PIECES_PITCH + 8 * j + lane % 4 * 2;

            *(float2 *)to = make_float2(of[0], of[1]);
            *(float2 *)(to + 8 * PIECES_PITCH) = make_float2(of[2], of[3]);
        }
        __syncwarp();
        store_strip<PRECISION, N, PIECES_PITCH>(
            tiles, rows + half * HALF_ROWS + warp * 16, staged, first_out + first, WIDTH);
        __syncwarp();
    }
}

template <enum vxd_net_precision PRECISION, class FORM>
static __device__ __forceinline__ void
multiply_tiles(const struct vxd_conv_tiles *tiles, struct wgmma_shared<FORM> *shared,
               const char *stages, char *staged, uint32_t n_rows)
{
    constexpr int N_TILE = FORM::N_TILE;
    constexpr int N_HALVES = FORM::N_HALVES;
    struct ring ring = {0, 0};
    struct ring places = {0, 0};
    /* of the tile's rows */
    int first_row = (int)warpgroup_of<FORM>() * N_HALVES * HALF_ROWS;
    uint32_t tile_turn; /* unused here: only finders need the turn */
    int first_out;

    staged += threadIdx.x / 32 * WARP_STAGED_BYTES;
    for (uint32_t i = 0;
         find_tile(tiles, n_rows, FORM::ROWS, N_TILE, i, &tile_turn, &first_out); i++) {
        float sums[N_HALVES][N_TILE / 8][4];
        const int32_t *rows = shared->rows[places.at] + first_row;

        begin_sums<FORM>(tiles, first_out, sums);
        multiply_tile<PRECISION, FORM>(tiles->n_stages, shared, stages, &ring, sums);
        if (tiles->is_out_whole) {
            store_tile_whole<PRECISION, FORM>(tiles, shared,
                                              stages + first_row * ROW_BYTES, rows,
                                              staged, first_out, &ring, sums);
        } else {
            store_tile_pieces<PRECISION, FORM>(tiles, rows, (float *)staged, first_out,
                                               sums);
        }
        if (threadIdx.x % 32 == 0) {
            barrier_arrive(&shared->place_empty[places.at]);
        }
        ring_step(&places, N_PLACES);
    }
}

template <class FORM>
static __device__ __forceinline__ void init_barriers(const struct vxd_conv_tiles *tiles,
                                                     struct wgmma_shared<FORM> *shared)
{
    int n_multiplying = 4 * FORM::N_WARPGROUPS; /* warps */
    int n_fetching = n_fetchers(tiles) * FORM::N_WARPGROUPS;

    for (int i = 0; i < tiles->n_stages; i++) {
        barrier_init(&shared->full[i], 32 * FORM::N_WARPGROUPS + STAGE_SLOTS);
        barrier_init(&shared->empty[i], n_multiplying);
    }
    for (int i = 0; i < N_PLACES; i++) {
        barrier_init(&shared->place_empty[i], n_multiplying + n_fetching);
    }
    for (int i = 0; i < N_CHUNKS; i++) {
        barrier_init(&shared->chunk_full[i], 2 * FORM::N_FINDERS);
        barrier_init(&shared->chunk_empty[i], n_fetching);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* The point where a kernel begins that was launched before the previous one had ended:
 * until here it has accessed nothing but its own shared memory. From here on the next
 * kernel may start as blocks finish; it waits here for the end of this kernel, and
 * thereby of all before it. */
static __device__ __forceinline__ void begin_after_others(void)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

template <enum vxd_net_precision PRECISION, class FORM>
static __global__ void __launch_bounds__(2 * FORM::N_MULTIPLIERS, 2 / FORM::N_WARPGROUPS)
    wgmma_tiles_kernel(const __grid_constant__ struct vxd_conv_tiles tiles)
{
    extern __shared__ __align__(1024) char dynamic_shared[];
    __shared__ struct wgmma_shared<FORM> shared;
    __shared__ __align__(128) char staged[4 * FORM::N_WARPGROUPS * WARP_STAGED_BYTES];
    struct wgmma_memory memory = {
        dynamic_shared, (int32_t *)(dynamic_shared + tiles.n_stages * FORM::STAGE_BYTES),
        (uint32_t)(min(tiles.n_taps, CHUNK_TAPS) * FORM::ROWS)};
    uint32_t n_rows;

    if (threadIdx.x == 0) {
        init_barriers<FORM>(&tiles, &shared);
    }
    begin_after_others();
    n_rows = *tiles.n_rows;
    if (n_rows > tiles.max_rows) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            atomicCAS(tiles.error_word, (uint32_t)VXD_OK,
                      (uint32_t)VXD_RESOURCE_EXHAUSTED);
        }
        return;
    }
    __syncthreads();
    /* gives registers to the warps that multiply */
    if (threadIdx.x < FORM::N_MULTIPLIERS) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 176;");
        multiply_tiles<PRECISION, FORM>(&tiles, &shared, dynamic_shared, staged, n_rows);
        return;
    }
    asm volatile("setmaxnreg.dec.sync.aligned.u32 80;");
    if (threadIdx.x >= 2 * FORM::N_MULTIPLIERS - FORM::N_FINDERS) {
        find_tiles<FORM>(&tiles, &shared, &memory, n_rows);
    } else {
        fetch_tiles<PRECISION, FORM>(&tiles, &shared, &memory, n_rows);
    }
}

/* Computes the number of stages: as many as leave shared memory for n_blocks a
 * multiprocessor. The kernel is allowed the largest amount that one block may have,
 * whatever it uses in this call, so that graphs that contain it keep their launches. */
static inline enum vxd_status fit_wgmma_stages(struct vxd_context *context,
                                               const void *kernel, int n_blocks,
                                               int n_stage_bytes, int n_table_bytes,
                                               int *n_stages, struct vxd_err *err)
{
    struct cudaFuncAttributes attributes;
    int of_block = 0;
    int of_multiprocessor = 0;
    int stages_bytes;
    enum vxd_status status;

    VXD_TRY(VXD_CUDA(context, cudaFuncGetAttributes(&attributes, kernel), err));
    VXD_TRY(VXD_CUDA(context,
                     cudaDeviceGetAttribute(&of_block,
                                            cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                            context->device),
                     err));
    VXD_TRY(VXD_CUDA(context,
                     cudaDeviceGetAttribute(&of_multiprocessor,
                                            cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                            context->device),
                     err));
    of_block -= (int)attributes.sharedSizeBytes;
    stages_bytes = of_multiprocessor / n_blocks - 1024 /* reserved by the system */ -
                   (int)attributes.sharedSizeBytes;
    stages_bytes = stages_bytes < of_block ? stages_bytes : of_block;
    *n_stages = (stages_bytes - n_table_bytes) / n_stage_bytes;
    *n_stages = *n_stages < MAX_STAGES ? *n_stages : MAX_STAGES;
    VXD_TRY(VXD_CUDA(context,
                     cudaFuncSetAttribute(
                         kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, of_block),
                     err));
out:
    return status;
}

static inline uint64_t count_tiles(const struct vxd_conv_tiles *tiles, int n_tile_rows,
                                   int n_tile)
{
    return ((uint64_t)tiles->max_rows + (uint64_t)n_tile_rows - 1) /
           (uint64_t)n_tile_rows * (uint64_t)(tiles->n_padded / n_tile);
}

template <enum vxd_net_precision PRECISION, class FORM>
static enum vxd_status launch(struct vxd_queue *queue, struct vxd_conv_tiles tiles,
                              struct vxd_err *err)
{
    const void *kernel = (const void *)wgmma_tiles_kernel<PRECISION, FORM>;
    struct vxd_context *context = queue->context;
    int n_table_taps = tiles.n_taps < CHUNK_TAPS ? tiles.n_taps : CHUNK_TAPS;
    int n_table_bytes = N_CHUNKS * n_table_taps * FORM::ROWS * (int)sizeof(int32_t);
    uint64_t n_tiles = count_tiles(&tiles, FORM::ROWS, FORM::N_TILE);
    unsigned n_multiprocessors = (unsigned)context->info.n_multiprocessors;
    /* Blocks of a multiprocessor: a single one uses all its memory for stages. */
    unsigned n_at_once = n_tiles <= n_multiprocessors ? 1 : 2 / FORM::N_WARPGROUPS;
    unsigned n_most = n_at_once * n_multiprocessors;
    unsigned n_blocks = n_tiles == 0 ? 1 : n_tiles < n_most ? (unsigned)n_tiles : n_most;
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};
    enum vxd_status status;

    VXD_TRY(fit_wgmma_stages(context, kernel, (int)n_at_once, FORM::STAGE_BYTES,
                             n_table_bytes, &tiles.n_stages, err));
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(n_blocks);
    config.blockDim = dim3(2 * FORM::N_MULTIPLIERS);
    config.dynamicSmemBytes =
        (size_t)(tiles.n_stages * FORM::STAGE_BYTES + n_table_bytes);
    config.stream = (cudaStream_t)queue->stream;
    config.attrs = &early;
    config.numAttrs = 1;
    VXD_TRY(VXD_CUDA(
        context, cudaLaunchKernelEx(&config, wgmma_tiles_kernel<PRECISION, FORM>, tiles),
        err));
out:
    return status;
}

/* Tiles of more rows gather weights less often, but leave fewer stages, and fewer taps
 * are absent from all of their rows. Measured, they are faster for few taps and for
 * very many rows. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static enum vxd_status launch_rows(struct vxd_queue *queue,
                                   const struct vxd_conv_tiles *tiles,
                                   struct vxd_err *err)
{
    unsigned n_multiprocessors = (unsigned)queue->context->info.n_multiprocessors;

    if constexpr (N_TILE == 96) {
        if (count_tiles(tiles, 256, N_TILE) >= 3 * n_multiprocessors) {
            return launch<PRECISION, wgmma_form<N_TILE, 2, 2>>(queue, *tiles, err);
        }
    }
    /* tiles of 128 channels leave too few registers for two halves */
    if constexpr (N_TILE < 128) {
        if (count_tiles(tiles, 128, N_TILE) >= 2 * n_multiprocessors &&
            (tiles->n_taps <= 8 || N_TILE <= 32)) {
            return launch<PRECISION, wgmma_form<N_TILE, 2, 1>>(queue, *tiles, err);
        }
    }
    return launch<PRECISION, wgmma_form<N_TILE, 1, 1>>(queue, *tiles, err);
}

template <enum vxd_net_precision PRECISION>
static enum vxd_status launch_tiles(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err)
{
    unsigned n_multiprocessors = (unsigned)queue->context->info.n_multiprocessors;

    /* Rows are gathered half as often, unless tiles of half the width would leave one
     * a multiprocessor. */
    if (tiles->n_padded % 128 == 0 &&
        2 * count_tiles(tiles, HALF_ROWS, 128) > n_multiprocessors) {
        n_tile = 128;
    }
    switch (n_tile) {
    case 16:
        return launch_rows<PRECISION, 16>(queue, tiles, err);
    case 32:
        return launch_rows<PRECISION, 32>(queue, tiles, err);
    case 64:
        return launch_rows<PRECISION, 64>(queue, tiles, err);
    case 128:
        return launch_rows<PRECISION, 128>(queue, tiles, err);
    default:
        return launch_rows<PRECISION, 96>(queue, tiles, err);
    }
}

#endif
