// SPDX-License-Identifier: Apache-2.0
/* Tests that the emulator does what CUDA specifies, and that it finds faults of
 * kernels. Kernels whose fault shows in results are run until it does; those whose
 * fault is reported run in a child process. */
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#define ALL_LANES 0xffffffffu
#define N_THREADS 128
#define MAX_RUNS 200

static __global__ void block_kernel(uint32_t *out, bool has_barrier)
{
    __shared__ uint32_t words[N_THREADS];

    words[threadIdx.x] = threadIdx.x;
    if (has_barrier) {
        __syncthreads();
    }
    out[blockIdx.x * N_THREADS + threadIdx.x] = words[(threadIdx.x + 40) % N_THREADS];
}

static __global__ void warp_kernel(uint32_t *out, bool has_barrier)
{
    __shared__ uint32_t words[N_THREADS];
    uint32_t first = threadIdx.x / 32 * 32;

    words[threadIdx.x] = threadIdx.x;
    if (has_barrier) {
        __syncwarp();
    }
    out[blockIdx.x * N_THREADS + threadIdx.x] = words[first + (threadIdx.x + 8) % 32];
}

/* How many of `n_runs` runs write a wrong word to the rows of 5 blocks. */
static int count_wrong(void (*kernel)(uint32_t *out, bool has_barrier), bool is_warp,
                       bool has_barrier, int n_runs)
{
    static uint32_t out[5 * N_THREADS];
    int n_wrong = 0;

    for (int run = 0; run < n_runs; run++) {
        bool is_wrong = false;

        kernel<<<5, N_THREADS>>>(out, has_barrier);
        for (uint32_t i = 0; i < 5 * N_THREADS; i++) {
            uint32_t thread = i % N_THREADS;
            uint32_t expected = is_warp ? thread / 32 * 32 + (thread + 8) % 32
                                        : (thread + 40) % N_THREADS;

            is_wrong = is_wrong || out[i] != expected;
        }
        n_wrong += is_wrong;
    }
    return n_wrong;
}

static void test_missing_barrier_of_a_block_shows(void)
{
    CHECK_INT(count_wrong(block_kernel, false, true, 20), 0);
    CHECK(count_wrong(block_kernel, false, false, 20) > 0);
}

static void test_missing_barrier_of_a_warp_shows(void)
{
    CHECK_INT(count_wrong(warp_kernel, true, true, 20), 0);
    CHECK(count_wrong(warp_kernel, true, false, 20) > 0);
}

static __global__ void add_kernel(uint32_t *sums)
{
    (void)atomicAdd(&sums[0], 1u);
    sums[1]++;
}

static void test_atomics_lose_nothing_and_plain_sums_do(void)
{
    uint32_t sums[2] = {0, 0};

    for (int run = 0; run < MAX_RUNS; run++) {
        add_kernel<<<7, N_THREADS>>>(sums);
    }
    CHECK_INT(sums[0], MAX_RUNS * 7 * N_THREADS);
    CHECK(sums[1] < sums[0]);
}

static __global__ void lanes_kernel(uint64_t *out)
{
    uint64_t own = 1000 + threadIdx.x;
    uint64_t *row = out + threadIdx.x * 10;

    row[0] = __shfl_sync(ALL_LANES, own, 5);
    row[1] = __shfl_up_sync(ALL_LANES, own, 3);
    row[2] = __shfl_down_sync(ALL_LANES, own, 3, 8);
    row[3] = __shfl_xor_sync(ALL_LANES, own, 1);
    row[4] = __ballot_sync(ALL_LANES, threadIdx.x % 3 == 0);
    row[5] = __reduce_add_sync(ALL_LANES, threadIdx.x);
    row[6] = __reduce_max_sync(ALL_LANES, threadIdx.x);
    row[7] = __match_any_sync(ALL_LANES, threadIdx.x % 2);
    row[8] = (uint64_t)__any_sync(ALL_LANES, threadIdx.x == 63);
    /* Each half of the warp separately. */
    row[9] = threadIdx.x % 32 < 16 ? __reduce_add_sync(0x0000ffffu, 1u)
                                   : __reduce_add_sync(0xffff0000u, 2u);
}

static void test_collectives_give_what_cuda_says(void)
{
    uint64_t out[64 * 10];

    lanes_kernel<<<1, 64>>>(out);
    for (uint32_t i = 0; i < 64; i++) {
        const uint64_t *row = out + i * 10;
        uint32_t first = i / 32 * 32;
        uint32_t thirds = 0;
        uint32_t sum = 0;

        for (uint32_t j = 0; j < 32; j++) {
            thirds |= (uint32_t)((first + j) % 3 == 0) << j;
            sum += first + j;
        }
        CHECK_INT(row[0], 1000 + first + 5);
        CHECK_INT(row[1], 1000 + (i % 32 < 3 ? i : i - 3));
        CHECK_INT(row[2], 1000 + (i % 8 + 3 < 8 ? i + 3 : i));
        CHECK_INT(row[3], 1000 + (i ^ 1));
        CHECK_INT(row[4], thirds);
        CHECK_INT(row[5], sum);
        CHECK_INT(row[6], first + 31);
        CHECK_INT(row[7], i % 2 == 0 ? 0x55555555u : 0xaaaaaaaau);
        CHECK_INT(row[8], first == 32);
        CHECK_INT(row[9], i % 32 < 16 ? 16 : 32);
    }
}

static __global__ void grid_kernel(uint32_t *words, uint32_t *wrong)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t n = gridDim.x * blockDim.x;

    for (uint32_t round = 1; round < 5; round++) {
        words[i] = round;
        cooperative_groups::this_grid().sync();
        if (words[(i + n / 2 + 1) % n] != round) {
            (void)atomicAdd(wrong, 1u);
        }
        cooperative_groups::this_grid().sync();
    }
}

static void test_barrier_of_a_grid_holds_all_blocks(void)
{
    static uint32_t words[3 * 512];
    uint32_t wrong = 0;
    uint32_t *at[2] = {words, &wrong};
    void *args[2] = {&at[0], &at[1]};
    int n = 0;

    CHECK_INT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, (const void *)grid_kernel,
                                                            512, 0),
              cudaSuccess);
    CHECK(n >= 1);
    CHECK_INT(
        cudaLaunchCooperativeKernel((const void *)grid_kernel, dim3(3), dim3(512), args),
        cudaSuccess);
    CHECK_INT(wrong, 0);
}

static void test_launches_outside_the_devices_limits_are_refused(void)
{
    uint32_t sums[2] = {0, 0};
    uint32_t *at = sums;
    void *args[2] = {&at, &at};

    add_kernel<<<0, N_THREADS>>>(sums);
    CHECK(cudaGetLastError() != cudaSuccess);
    add_kernel<<<1, 1025>>>(sums);
    CHECK(cudaGetLastError() != cudaSuccess);
    CHECK(cudaLaunchCooperativeKernel((const void *)grid_kernel, dim3(1000), dim3(512),
                                      args) != cudaSuccess);
    CHECK(cudaGetLastError() != cudaSuccess);
    CHECK_INT(sums[0], 0);
}

/* Waits for a lane of its own warp. */
static __global__ void spin_kernel(volatile uint32_t *flag, uint32_t lane)
{
    if (threadIdx.x == lane) {
        *flag = 1;
    } else {
        while (*flag == 0) {
        }
    }
}

static __global__ void divergent_vote_kernel(uint32_t *out)
{
    if (threadIdx.x % 32 < 16) {
        *out = __ballot_sync(ALL_LANES, 1);
    }
    __syncthreads();
}

static __global__ void two_votes_kernel(uint32_t *out)
{
    if (threadIdx.x % 32 < 16) {
        *out = __ballot_sync(ALL_LANES, 1);
    } else {
        *out = (uint32_t)__popc(__ballot_sync(ALL_LANES, 1));
    }
}

static __global__ void stranger_kernel(uint32_t *out)
{
    *out = __ballot_sync(0x0000ffffu, 1);
}

static __global__ void two_barriers_kernel(void)
{
    if (threadIdx.x < 32) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}

static __global__ void lonely_barrier_kernel(void)
{
    if (threadIdx.x < 32) {
        __syncthreads();
    } else {
        cooperative_groups::this_grid().sync();
    }
}

static __global__ void overrun_kernel(uint32_t *words, uint32_t n)
{
    words[threadIdx.x == 7 ? n : threadIdx.x] = 1;
}

static void overrun(void)
{
    void *words = NULL;

    (void)cudaMallocFromPoolAsync(&words, 64 * sizeof(uint32_t), NULL, NULL);
    overrun_kernel<<<1, 64>>>((uint32_t *)words, 64);
}

/* Runs a kernel in a child process; returns whether that failed with the given words. */
static bool is_reported(int which, const char *words)
{
    static uint32_t out;
    char said[8192] = "";
    size_t n = 0;
    ssize_t got;
    int status = 0;
    int ends[2];
    pid_t child;

    if (pipe(ends) != 0 || (child = fork()) < 0) {
        return false;
    }
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        switch (which) {
        case 0:
            divergent_vote_kernel<<<1, 64>>>(&out);
            break;
        case 1:
            two_votes_kernel<<<1, 64>>>(&out);
            break;
        case 2:
            stranger_kernel<<<1, 64>>>(&out);
            break;
        case 3:
            two_barriers_kernel<<<1, 64>>>();
            break;
        case 4:
            lonely_barrier_kernel<<<1, 64>>>();
            break;
        case 5:
            overrun();
            break;
        default:
            (void)setenv("VOXELD_EMULATOR_SECONDS", "1", 1);
            spin_kernel<<<1, 64>>>(&out, 64);
            break;
        }
        _exit(0);
    }
    (void)close(ends[1]);
    while (n + 1 < sizeof said &&
           (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0) {
        n += (size_t)got;
    }
    (void)close(ends[0]);
    (void)waitpid(child, &status, 0);
    said[n] = '\0';
    return status != 0 && strstr(said, words) != NULL;
}

static void test_faults_of_collectives_and_barriers_are_reported(void)
{
    CHECK(is_reported(0, "threads wait for ever; kernel divergent_vote_kernel"));
    CHECK(is_reported(1, "different collectives"));
    CHECK(is_reported(2, "its own mask does not name"));
    CHECK(is_reported(3, "different __syncthreads"));
    CHECK(is_reported(4, "not launched for it"));
}

static void test_spins_end_where_another_lane_ends_them(void)
{
    uint32_t flag;

    for (uint32_t lane = 0; lane < 64; lane += 9) {
        flag = 0;
        spin_kernel<<<1, 64>>>(&flag, lane);
        CHECK_INT(flag, 1);
    }
    CHECK(is_reported(6, "the kernel does not end"));
}

static void test_write_past_a_buffer_is_reported(void)
{
#if defined(EMU_WITH_ADDRESS_SANITIZER)
    CHECK(is_reported(5, "heap-buffer-overflow"));
#else
    SKIP("built without AddressSanitizer");
#endif
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_missing_barrier_of_a_block_shows),
    VXD_TEST(test_missing_barrier_of_a_warp_shows),
    VXD_TEST(test_atomics_lose_nothing_and_plain_sums_do),
    VXD_TEST(test_collectives_give_what_cuda_says),
    VXD_TEST(test_barrier_of_a_grid_holds_all_blocks),
    VXD_TEST(test_launches_outside_the_devices_limits_are_refused),
    VXD_TEST(test_faults_of_collectives_and_barriers_are_reported),
    VXD_TEST(test_write_past_a_buffer_is_reported),
    VXD_TEST(test_spins_end_where_another_lane_ends_them),
};

VXD_TEST_MAIN(tests)
