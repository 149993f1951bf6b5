// SPDX-License-Identifier: Apache-2.0
/* For the tiles of conv_wgmma_tiles_cuda.h: Hopper's matrix instructions, the warps that find what
 * the rows of a tile read (finders), and the warps that fetch it (fetchers).
 *
 * Finders: one warp, or two where two warpgroups multiply; a thread has two or four rows. The taps
 * of a tile are those that some row has. Finders pass them on in chunks through a ring of tables,
 * so that no warp waits for the beginning of a tile.
 * Fetchers: each fills a stage in turn, a warp a stage, or two warps where two warpgroups
 * multiply, so that their waits overlap. A stage is four slots of all the tile's rows with their
 * weights, or a piece of the residual. Where a row lacks a tap the stage contains zeros, and
 * weights are finite, so whole stages are multiplied without changing a sum. Each stage has a
 * word that says whether it is the tile's last, so the warps that multiply need to know nothing
 * else of the tile except its output rows. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_WGMMA_FETCH_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_WGMMA_FETCH_CUDA_H

#include "gpu/sparse/conv/conv_load_cuda.h"
#include "gpu/sparse/conv/conv_mma_cuda.h"
#include "gpu/sparse/kernel_map/kernel_map_math.h"

/* Hopper's asynchronous matrix instructions: 64 rows x N channels x one slot, both operands in
 * shared memory, issued by four warps together. For .cu files built for sm_90a only. */

/* Addresses and distances are in units of 16 bytes: address in bits 0 to 13, distance
 * along the depth in 16 to 29, along rows in 32 to 45. */
#define WGMMA_SWAPPED_128 (1ULL << 62) /* pieces permuted by the row's number */

/* Describes the rows of a stage: 128 bytes each, eight of them 1024. */
static __device__ __forceinline__ uint64_t wgmma_rows(uint32_t address)
{
    return WGMMA_SWAPPED_128 | (uint64_t)(1024 / 16) << 32 | 1ULL << 16 |
           (address & 0x3ffffu) >> 4;
}

/* Describes a packed tile of weights: matrices of 128 bytes, two of them a group of 8
 * channels. */
static __device__ __forceinline__ uint64_t wgmma_weights(uint32_t address)
{
    return (uint64_t)(256 / 16) << 32 | (uint64_t)(128 / 16) << 16 |
           (address & 0x3ffffu) >> 4;
}

/* Required before the first instruction that adds to sums that other code has written. */
static __device__ __forceinline__ void wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most n (0 or 1) committed groups are in flight. */
template <int N> static __device__ __forceinline__ void wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/* Required after the wait for all groups: makes the sums ordinary registers of this
 * thread again. */
template <int N_TILE, int N_HALVES>
static __device__ __forceinline__ void wgmma_release(float (*sums)[N_TILE / 8][4])
{
#pragma unroll
    for (int i = 0; i < N_HALVES * N_TILE / 2; i++) {
        asm volatile(
            ""
            : "+f"(sums[i / (N_TILE / 2)][i / 4 % (N_TILE / 8)][i % 4])::"memory");
    }
}

/* Makes the writes to shared memory that this thread has seen, copies among them,
 * visible to the matrix instructions that it issues next. */
static __device__ __forceinline__ void wgmma_publish(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#define WGMMA_SUMS(j)                                                                    \
    "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])
#define WGMMA_SUMS4(j)                                                                   \
    WGMMA_SUMS(j), WGMMA_SUMS(j + 1), WGMMA_SUMS(j + 2), WGMMA_SUMS(j + 3)

/* The registers of one instruction's sums, by number. */
#define WGMMA_D16 "{%0, %1, %2, %3, %4, %5, %6, %7}, "
#define WGMMA_D32                                                                        \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "                 \
    "%15}, "
#define WGMMA_D64                                                                        \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "            \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "             \
    "%30, %31}, "
#define WGMMA_D96                                                                        \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "            \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "             \
    "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "             \
    "%44, %45, %46, %47}, "
#define WGMMA_D128                                                                       \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "            \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "             \
    "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "             \
    "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, "             \
    "%58, %59, %60, %61, %62, %63}, "
#define WGMMA_SHARED_16(type)                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32." type "." type             \
                 " " WGMMA_D16 "%8, %9, 1, 1, 1, 0, 0;"                                  \
                 : WGMMA_SUMS(0), WGMMA_SUMS(1)                                          \
                 : "l"(rows), "l"(weights))
#define WGMMA_SHARED_32(type)                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type             \
                 " " WGMMA_D32 "%16, %17, 1, 1, 1, 0, 0;"                                \
                 : WGMMA_SUMS4(0)                                                        \
                 : "l"(rows), "l"(weights))
#define WGMMA_SHARED_64(type)                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type             \
                 " " WGMMA_D64 "%32, %33, 1, 1, 1, 0, 0;"                                \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4)                                        \
                 : "l"(rows), "l"(weights))
#define WGMMA_SHARED_96(type)                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n96k16.f32." type "." type             \
                 " " WGMMA_D96 "%48, %49, 1, 1, 1, 0, 0;"                                \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4), WGMMA_SUMS4(8)                        \
                 : "l"(rows), "l"(weights))
#define WGMMA_SHARED_128(type)                                                           \
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type            \
                 " " WGMMA_D128 "%64, %65, 1, 1, 1, 0, 0;"                               \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4), WGMMA_SUMS4(8), WGMMA_SUMS4(12)       \
                 : "l"(rows), "l"(weights))
#define WGMMA_TF32_16()                                                                  \
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 " WGMMA_D16        \
                 "{%8, %9, %10, %11}, %12, 1, 1, 1;"                                     \
                 : WGMMA_SUMS(0), WGMMA_SUMS(1)                                          \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(weights))
#define WGMMA_TF32_32()                                                                  \
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 " WGMMA_D32        \
                 "{%16, %17, %18, %19}, %20, 1, 1, 1;"                                   \
                 : WGMMA_SUMS4(0)                                                        \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(weights))
#define WGMMA_TF32_64()                                                                  \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 " WGMMA_D64        \
                 "{%32, %33, %34, %35}, %36, 1, 1, 1;"                                   \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4)                                        \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(weights))
#define WGMMA_TF32_96()                                                                  \
    asm volatile("wgmma.mma_async.sync.aligned.m64n96k8.f32.tf32.tf32 " WGMMA_D96        \
                 "{%48, %49, %50, %51}, %52, 1, 1, 1;"                                   \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4), WGMMA_SUMS4(8)                        \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(weights))
#define WGMMA_TF32_128()                                                                 \
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 " WGMMA_D128      \
                 "{%64, %65, %66, %67}, %68, 1, 1, 1;"                                   \
                 : WGMMA_SUMS4(0), WGMMA_SUMS4(4), WGMMA_SUMS4(8), WGMMA_SUMS4(12)       \
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(weights))

/* Adds the products of 64 rows and one slot to sums[N_TILE / 8][4], in the layout of
 * mma.m16n8; warp i of the four has rows 16 i to 16 i + 15. */
template <enum vxd_net_precision PRECISION, int N_TILE>
static __device__ __forceinline__ void wgmma(float (*sums)[4], uint64_t rows,
                                             uint64_t weights)
{
    if constexpr (PRECISION == VXD_NET_FP16 && N_TILE == 16) {
        WGMMA_SHARED_16("f16");
    } else if constexpr (PRECISION == VXD_NET_FP16 && N_TILE == 32) {
        WGMMA_SHARED_32("f16");
    } else if constexpr (PRECISION == VXD_NET_FP16 && N_TILE == 64) {
        WGMMA_SHARED_64("f16");
    } else if constexpr (PRECISION == VXD_NET_FP16 && N_TILE == 96) {
        WGMMA_SHARED_96("f16");
    } else if constexpr (PRECISION == VXD_NET_FP16 && N_TILE == 128) {
        WGMMA_SHARED_128("f16");
    } else if constexpr (PRECISION == VXD_NET_BF16 && N_TILE == 16) {
        WGMMA_SHARED_16("bf16");
    } else if constexpr (PRECISION == VXD_NET_BF16 && N_TILE == 32) {
        WGMMA_SHARED_32("bf16");
    } else if constexpr (PRECISION == VXD_NET_BF16 && N_TILE == 64) {
        WGMMA_SHARED_64("bf16");
    } else if constexpr (PRECISION == VXD_NET_BF16 && N_TILE == 96) {
        WGMMA_SHARED_96("bf16");
    } else if constexpr (PRECISION == VXD_NET_BF16 && N_TILE == 128) {
        WGMMA_SHARED_128("bf16");
    }
}

/* The same in TF32, with rows in registers in the layout of mma.m16n8k8. */
template <int N_TILE>
static __device__ __forceinline__ void
wgmma_tf32(float (*sums)[4], const uint32_t rows[4], uint64_t weights)
{
    if constexpr (N_TILE == 16) {
        WGMMA_TF32_16();
    } else if constexpr (N_TILE == 32) {
        WGMMA_TF32_32();
    } else if constexpr (N_TILE == 64) {
        WGMMA_TF32_64();
    } else if constexpr (N_TILE == 96) {
        WGMMA_TF32_96();
    } else if constexpr (N_TILE == 128) {
        WGMMA_TF32_128();
    }
}

#define HALF_ROWS 64 /* rows of one matrix instruction */
#define MAX_STAGES 8
#define NO_TILE UINT32_MAX
#define N_PLACES 2
#define N_CHUNKS 3
/* a multiple of STAGE_SLOTS: all chunks but the last are whole stages */
#define CHUNK_TAPS 8

/* The form of a tile: warpgroups that multiply, each 64 rows once or twice. Each has
 * four more warps beside it, of which one finds and three fetch. A block with one
 * warpgroup leaves resources for a second block on the multiprocessor. A block with
 * two has the multiprocessor to itself and fetches weights half as often. */
template <int N_TILE_, int N_HALVES_, int N_WARPGROUPS_> struct wgmma_form {
    static constexpr int N_TILE = N_TILE_;     /* output channels */
    static constexpr int N_HALVES = N_HALVES_; /* of a warpgroup */
    static constexpr int N_WARPGROUPS = N_WARPGROUPS_;
    static constexpr int ROWS = N_HALVES * N_WARPGROUPS * HALF_ROWS;
    static constexpr int N_MULTIPLIERS = N_WARPGROUPS * N_THREADS; /* threads */
    static constexpr int N_FINDERS = N_WARPGROUPS * 32;
    static constexpr int N_OWN = ROWS / N_FINDERS; /* rows of a finder */
    /* bytes of the rows of a stage; its weights follow */
    static constexpr int ROWS_BYTES = ROWS * ROW_BYTES;
    static constexpr int STAGE_BYTES =
        ROWS_BYTES + STAGE_SLOTS * N_TILE * VXD_CONV_SLOT_BYTES;
};

/* Taps of a tile that are fetched together; the rows that they read are in a table. */
struct chunk {
    uint32_t n; /* slots */
    bool is_last;
    int32_t taps[CHUNK_TAPS];
};

template <class FORM> struct wgmma_shared {
    __align__(16) int32_t rows[N_PLACES][FORM::ROWS]; /* output rows or -1 */
    /* taps of the rows of each finder warp */
    uint32_t warp_masks[2][FORM::N_WARPGROUPS];
    struct chunk chunks[N_CHUNKS];
    uint32_t ends_sums[MAX_STAGES]; /* the tile's sums end with this stage */
    uint64_t full[MAX_STAGES];
    uint64_t empty[MAX_STAGES];
    uint64_t place_empty[N_PLACES]; /* of rows */
    uint64_t chunk_full[N_CHUNKS];
    uint64_t chunk_empty[N_CHUNKS];
};

/* What finders, fetchers and the warps that multiply share. */
struct wgmma_memory {
    char *stages;
    int32_t *tables; /* N_CHUNKS of n_table */
    uint32_t n_table;
};

/* A position in a ring, and the parity of the number of times that the ring was
 * completed. */
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

/* Arrives once the copies that this thread has issued are done. */
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

/* Arrives, and makes the barrier wait for the n_bytes of one bulk copy. */
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

/* Tile `number` of those of block blockIdx.x, in rounds that run forwards and
 * backwards in turn, so that the block with the most work in one round has the least
 * in the next. Gives its turn among the tiles of rows and its channels; false after
 * the last. */
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

/* What a finder thread has loaded of a tile in advance: rows, N_FINDERS apart, and
 * their first mask words. */
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

/* Which tile of rows has this turn, by the map's list of tiles of that size, which
 * begins with those of the most taps; NO_TILE after the last. */
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

/* Which taps of a mask word some row of the tile has. Two arrays of warp masks are
 * used alternately. */
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

/* Writes to `table` the rows that the first taps of `rest`, a chunk of them, read.
 * Without taps it writes that no row is read. */
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

/* All chunks of a mask word. The last word has at least one, which ends the tile. */
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
        /* arrival for what was stored without a copy */
        barrier_arrive(&shared->chunk_full[ring->at]);
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
        look_for_tile<FORM>(tiles, n_rows, 2); /* turn of the tile to load next */
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

/* Copies 16 bytes, or writes zeros. It does not clobber "memory", so that loads of the
 * next row numbers need not wait; barriers order the readers. */
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

/* A whole 16-byte piece, or none, of N rows of a stage one after another. `to` is the
 * begin of the first row, a multiple of 1024, and `swap` 16 times the piece's number. */
template <int N>
static __device__ __forceinline__ void fetch_rows(const int32_t *inputs, const char *in,
                                                  uint32_t row_bytes, bool exists,
                                                  uint32_t to, uint32_t swap)
{
    to += swap;
    /* one address register, so that one instruction computes a row's address */
    asm("" : "+l"(in));
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

/* The same where n_valid bytes of a piece exist and addresses are multiples of WIDTH.
 * It uses copies of that many bytes, or a store where WIDTH is 2, because copies have
 * at least 4. */
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

/* How many of a stage's rows lanes 8 i to 8 i + 7 of a warp copy. */
template <class FORM> static __device__ constexpr int rows_of_lane(void)
{
    return FORM::ROWS / FORM::N_WARPGROUPS / 4;
}

template <class FORM> static __device__ __forceinline__ int first_row_of_lane(void)
{
    return (int)(threadIdx.x / 32 % FORM::N_WARPGROUPS * 4 + threadIdx.x % 32 / 8) *
           rows_of_lane<FORM>();
}

/* Among the warps that fill a stage together, the first has the weights copied. */
template <class FORM> static __device__ __forceinline__ bool is_first_of_fetchers(void)
{
    return threadIdx.x / 32 % FORM::N_WARPGROUPS == 0;
}

/* The warp's part of the rows of stage `stage`, one piece number a lane. */
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

/* A slot's weights, and whether sums end with the stage; one lane a slot. Where the
 * weights of a stage are contiguous, the first lane has all of them copied. */
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
    uint64_t slot = 0; /* after the last slot: any weights, for rows of zeros */

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

/* The next stage of a fetcher (a warp, or two that share a stage's rows); stages are
 * numbered from the block's first. There are no more active fetchers than stages: an
 * additional one would mistake an older round for the last. */
struct turn {
    uint32_t n;      /* number of fetchers that take turns */
    uint32_t number; /* number of the fetcher's next stage */
    uint32_t first;  /* first stage of the mask word, or of the residual */
    struct ring ring;
};

/* Moves n stages on. */
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

/* All stages of a chunk. A tile's last chunk has at least one, which may be of zeros
 * and ends the sums. */
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

/* How many fetchers take turns. */
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
    uint32_t tile_turn; /* unused here: only finders need the turn */
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
