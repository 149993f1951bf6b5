// SPDX-License-Identifier: Apache-2.0
/* Pools over taps and the bird's-eye view, one by one. Results with one order of
 * operations are compared bit for bit on every backend. */
#include "gpu/sparse/layers/layers_math.h"
#include "gpu/sparse/coords/coords_math.h"
#include "tests/support/sparse/layer_rows.h"
#include "tests/support/test.h"

enum {
    N_POOLS = 5,
    N_POOL_CASES = 2 * GPU_ROWS_CASES + N_POOLS
};

/* One channel of one row. */
static float pooled(enum vxd_net_pool pool, const int32_t *table, size_t capacity,
                    int n_taps, const float *in, size_t n_channels)
{
    float y = 0;
    int n = 0;

    for (int tap = 0; tap < n_taps; tap++) {
        int32_t from = table[(size_t)tap * capacity];
        float x;

        if (from < 0 || (pool == VXD_NET_POOL_OF_FIRST && n > 0)) {
            continue;
        }
        x = in[(size_t)from * n_channels];
        if (pool == VXD_NET_POOL_OF_AVG || pool == VXD_NET_POOL_OF_SUM) {
            y += x;
        } else if (pool == VXD_NET_POOL_OF_MAX_AND_0 || n > 0) {
            y = x > y ? x : y;
        } else {
            y = x;
        }
        n++;
    }
    return pool == VXD_NET_POOL_OF_AVG && n > 0 ? y / (float)n : y;
}

/* The last cases have the largest number of channels. */
static struct gpu_rows_case pool_case(int number)
{
    struct gpu_rows_case v = gpu_rows_case(number);

    if (number >= N_POOL_CASES - N_POOLS) {
        v.n_rows = 2;
        v.n_channels = VXD_NET_MAX_CHANNELS;
    }
    return v;
}

static void pool(struct gpu_env *env)
{
    for (int number = 0; number < N_POOL_CASES; number++) {
        struct gpu_rows_case v = pool_case(number);
        size_t n_channels = (size_t)v.n_channels;
        size_t n_in = v.n_rows + 5;
        int n_taps = number % 4 == 0 ? 27 : 1 + number % 8;
        size_t capacity =
            (v.n_rows + VXD_SPARSE_ROW_PAD) / VXD_SPARSE_ROW_PAD * VXD_SPARSE_ROW_PAD;
        struct gpu_samples samples = gpu_samples_of_one(env, v.n_rows);
        float *in = gpu_rounded_floats(&v.state, v.precision, n_in * n_channels);
        int32_t *table = gpu_alloc((size_t)n_taps * capacity * sizeof *table);
        struct gpu_rows x =
            gpu_rows_make(env, v.precision, in, n_in, v.n_channels, v.layout);
        struct gpu_rows out = gpu_rows_make(env, v.precision, NULL, v.n_rows,
                                            v.n_channels, number % GPU_N_LAYOUTS);
        struct vxd_net_pool_call call = {
            v.precision,    (enum vxd_net_pool)(number % N_POOLS),
            samples.extent, {.n_taps = n_taps},
            x.rows,         out.rows};
        struct vxd_buffer d_table;
        size_t n_wrong = 0;
        float *actual;

        for (size_t i = 0; i < (size_t)n_taps * capacity; i++) {
            bool reads = gpu_random(&v.state) % 3 != 0 && i % 7 != 3;

            table[i] = reads ? (int32_t)(gpu_random(&v.state) % n_in) : -1;
        }
        d_table = gpu_to_device(env, table, (size_t)n_taps * capacity * sizeof *table);
        call.map.capacity = capacity;
        call.map.table = d_table.ptr;
        GPU_BACKEND_CALL(env, pool, &call);
        actual = gpu_rows_fetch(env, &out);
        for (size_t i = 0; i < v.n_rows * n_channels; i++) {
            float y = pooled(call.pool, table + i / n_channels, capacity, n_taps,
                             in + i % n_channels, n_channels);

            n_wrong += actual[i] != gpu_rounded(v.precision, y);
        }
        CHECK_INT(n_wrong, 0);
        free(actual);
        free(table);
        free(in);
        vxd_device_free(env->queue, &d_table);
        gpu_rows_free(env, &x);
        gpu_rows_free(env, &out);
        gpu_samples_free(env, &samples);
    }
}

static void test_pool_goes_over_taps_in_order(void)
{
    gpu_each_backend(pool);
}

static void bev(struct gpu_env *env)
{
    static const int32_t shape[3] = {7, 5, 3};

    for (int number = 0; number < GPU_ROWS_CASES; number++) {
        struct gpu_rows_case v = gpu_rows_case(number);
        size_t n_channels = (size_t)v.n_channels;
        size_t n_cells = 2 * 7 * 5 * 3;
        size_t n_floats = n_cells * n_channels;
        uint64_t keys[2 * 7 * 5 * 3];
        float *expected = gpu_alloc(n_floats * sizeof *expected);
        float *in = gpu_rounded_floats(&v.state, v.precision, n_cells * n_channels);
        size_t n_rows = 0;
        struct gpu_samples samples;
        struct vxd_buffer d_keys;
        struct vxd_buffer d_out = gpu_to_device(env, NULL, n_floats * sizeof(float));
        struct gpu_rows x;
        float *actual;

        memset(expected, 0, n_floats * sizeof *expected);
        for (size_t cell = 0; cell < n_cells; cell++) {
            int32_t c[4] = {(int32_t)(cell / 105), (int32_t)(cell / 15 % 7),
                            (int32_t)(cell / 3 % 5), (int32_t)(cell % 3)};

            if (gpu_random(&v.state) % 4 != 0) {
                continue;
            }
            keys[n_rows] = vxd_sparse_key(c);
            for (size_t j = 0; j < n_channels; j++) {
                size_t plane = ((size_t)c[0] * n_channels + j) * 3 + (size_t)c[3];

                expected[(plane * 5 + (size_t)c[2]) * 7 + (size_t)c[1]] =
                    in[n_rows * n_channels + j];
            }
            n_rows++;
        }
        samples = gpu_samples_of_one(env, n_rows);
        d_keys = gpu_to_device(env, keys, n_rows * sizeof *keys);
        x = gpu_rows_make(env, v.precision, in, n_rows, v.n_channels, v.layout);
        GPU_BACKEND_CALL(env, bev,
                         (&(struct vxd_net_bev_call){v.precision,
                                                     samples.extent,
                                                     d_keys.ptr,
                                                     {shape[0], shape[1], shape[2]},
                                                     x.rows,
                                                     d_out.ptr,
                                                     n_floats}));
        actual = gpu_to_host(env, &d_out);
        CHECK(memcmp(actual, expected, n_floats * sizeof *actual) == 0);
        free(actual);
        free(expected);
        free(in);
        vxd_device_free(env->queue, &d_keys);
        vxd_device_free(env->queue, &d_out);
        gpu_rows_free(env, &x);
        gpu_samples_free(env, &samples);
    }
}

static void test_bev_puts_depth_into_channels(void)
{
    gpu_each_backend(bev);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_pool_goes_over_taps_in_order),
    VXD_TEST(test_bev_puts_depth_into_channels),
};

VXD_TEST_MAIN(tests)
