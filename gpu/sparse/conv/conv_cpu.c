// SPDX-License-Identifier: Apache-2.0
/* A task is a tile of output rows times a strip of output channels, with its sums on the stack.
 * Tap by tap, the rows of the tile for which the tap reads an input row are taken in groups of
 * six. The sums of a group for one panel of sixteen channels stay in registers during the loop
 * over input channels.
 *
 * Each sum is taken in one order, taps ascending and within them input channels ascending; each
 * product and each addition rounds once. Vectors span output channels, so their width, the tiling
 * and the threads change no bit. This is also why no variant fuses multiply and add. */
#include <string.h>

#include "gpu/core/core.h"
#include "gpu/sparse/conv/conv_math.h"
#include "gpu/sparse/conv/conv_cpu.h"

#define TILE_ROWS 128
#define STRIP_PANELS 8
#define STRIP ((size_t)STRIP_PANELS * VXD_CONV_PANEL)
#define GROUP_ROWS 6
/* 16-bit input channels that are widened at a time */
#define CHUNK_CHANNELS ((size_t)256)

typedef float vector
    __attribute__((vector_size(VXD_CONV_PANEL / 2 * 4), aligned(4), may_alias));

/* Adds the products of n rows and n_k input channels to a panel's sums. Every caller
 * that inlines it passes a constant n, so that the sums are registers. */
static inline __attribute__((always_inline)) void
multiply_rows(int n, const float *const *x, size_t n_k, const float *weights,
              float *const *sums)
{
    vector low[GROUP_ROWS];
    vector high[GROUP_ROWS];

    for (int r = 0; r < n; r++) {
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): no group is empty
        low[r] = ((const vector *)sums[r])[0];
        high[r] = ((const vector *)sums[r])[1];
    }
    for (size_t k = 0; k < n_k; k++) {
        vector w_low = ((const vector *)(weights + k * VXD_CONV_PANEL))[0];
        vector w_high = ((const vector *)(weights + k * VXD_CONV_PANEL))[1];

        for (int r = 0; r < n; r++) {
            low[r] += w_low * x[r][k];
            high[r] += w_high * x[r][k];
        }
    }
    for (int r = 0; r < n; r++) {
        ((vector *)sums[r])[0] = low[r];
        ((vector *)sums[r])[1] = high[r];
    }
}

static inline __attribute__((always_inline)) void
multiply_panel(int n, const float *const *x, size_t n_k, const float *weights,
               float *const *sums)
{
    switch (n) {
    case 1:
        multiply_rows(1, x, n_k, weights, sums);
        break;
    case 2:
        multiply_rows(2, x, n_k, weights, sums);
        break;
    case 3:
        multiply_rows(3, x, n_k, weights, sums);
        break;
    case 4:
        multiply_rows(4, x, n_k, weights, sums);
        break;
    case 5:
        multiply_rows(5, x, n_k, weights, sums);
        break;
    default:
        multiply_rows(GROUP_ROWS, x, n_k, weights, sums);
        break;
    }
}

/* Panels are `stride` floats apart; the sums of panels are consecutive. */
struct panels {
    const float *weights;
    size_t stride;
    int n;
};

static inline __attribute__((always_inline)) void
multiply_any(int n, const float *const *x, size_t n_k, const struct panels *panels,
             float *const *sums)
{
    for (int panel = 0; panel < panels->n; panel++) {
        float *at[GROUP_ROWS];

        for (int r = 0; r < n; r++) {
            at[r] = sums[r] + (size_t)panel * VXD_CONV_PANEL;
        }
        multiply_panel(n, x, n_k, panels->weights + (size_t)panel * panels->stride, at);
    }
}

typedef void (*multiply_fn)(int n, const float *const *x, size_t n_k,
                            const struct panels *panels, float *const *sums);

static void multiply_base(int n, const float *const *x, size_t n_k,
                          const struct panels *panels, float *const *sums)
{
    multiply_any(n, x, n_k, panels, sums);
}

#if defined(__x86_64__)
/* Eight lanes an instruction; products are still rounded before they are added. */
__attribute__((target("avx2"))) static void multiply_avx2(int n, const float *const *x,
                                                          size_t n_k,
                                                          const struct panels *panels,
                                                          float *const *sums)
{
    multiply_any(n, x, n_k, panels, sums);
}
#endif

static multiply_fn pick_multiply(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return multiply_avx2;
    }
#endif
    return multiply_base;
}

struct run {
    const struct vxd_conv_call *call;
    multiply_fn multiply;
    size_t n_rows;
    size_t n_strips;
    size_t row_bytes_in;
};

/* The rows of a tile for which one tap reads an input row. */
struct pairs {
    int n;
    int rows[TILE_ROWS];
    const char *inputs[TILE_ROWS];
};

struct tile {
    float sums[TILE_ROWS][STRIP];
    float widened[GROUP_ROWS][CHUNK_CHANNELS];
    struct pairs pairs;
};

static void find_pairs(const struct run *run, int tap, size_t begin, size_t end,
                       struct pairs *pairs)
{
    const struct vxd_conv_call *call = run->call;
    const char *in = call->args.in.data;
    const int32_t *table =
        call->has_map ? call->map.table + (size_t)tap * call->map.capacity : NULL;

    pairs->n = 0;
    for (size_t row = begin; row < end; row++) {
        if (table == NULL || table[row] >= 0) {
            size_t from = table == NULL ? row : (size_t)table[row];

            pairs->rows[pairs->n] = (int)(row - begin);
            pairs->inputs[pairs->n] = in + from * run->row_bytes_in;
            pairs->n++;
        }
    }
}

static void widen(enum vxd_net_precision precision, const char *row, size_t first,
                  size_t n, float *to)
{
    const uint16_t *from = (const uint16_t *)(const void *)row + first;

    if (precision == VXD_NET_BF16) {
        for (size_t i = 0; i < n; i++) {
            to[i] = vxd_float_of_bfloat(from[i]);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            to[i] = vxd_float_of_half(from[i]);
        }
    }
}

/* One group of pairs, all input channels. */
static void multiply_group(const struct run *run, struct tile *tile, int first, int n,
                           const struct panels *panels)
{
    const struct vxd_conv_weights *weights = &run->call->weights;
    size_t n_in = (size_t)weights->n_in;
    bool is_wide = vxd_net_element_bytes(weights->precision) == sizeof(float);
    size_t chunk = is_wide ? n_in : CHUNK_CHANNELS;
    const float *x[GROUP_ROWS];
    float *sums[GROUP_ROWS];

    for (int r = 0; r < n; r++) {
        x[r] = (const float *)(const void *)tile->pairs.inputs[first + r];
        sums[r] = tile->sums[tile->pairs.rows[first + r]];
    }
    for (size_t k = 0; k < n_in; k += chunk) {
        size_t n_k = n_in - k < chunk ? n_in - k : chunk;
        struct panels of_chunk = *panels;

        for (int r = 0; r < n && !is_wide; r++) {
            widen(weights->precision, tile->pairs.inputs[first + r], k, n_k,
                  tile->widened[r]);
            x[r] = tile->widened[r];
        }
        of_chunk.weights += k * VXD_CONV_PANEL;
        run->multiply(n, x, n_k, &of_chunk, sums);
    }
}

/* Bias, residual, activation, rounding. */
static void store_tile(const struct run *run, const struct tile *tile, size_t begin,
                       size_t end, size_t first_out, size_t n_out)
{
    const struct vxd_conv_args *args = &run->call->args;
    enum vxd_net_precision precision = run->call->weights.precision;
    size_t element = vxd_net_element_bytes(precision);

    for (size_t row = begin; row < end; row++) {
        const float *sums = tile->sums[row - begin];
        char *out = (char *)args->out.data + row * args->out.stride * element;
        const char *add = args->add.data;

        if (add != NULL) {
            add += row * args->add.stride * element;
        }
        for (size_t j = 0; j < n_out; j++) {
            // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): run_tile clears
            float x = sums[j];

            if (args->bias != NULL) {
                x += args->bias[first_out + j];
            }
            if (add != NULL) {
                x += vxd_element_load(precision, add, first_out + j);
            }
            vxd_element_store(precision, out, first_out + j,
                              vxd_activate(args->act, args->alpha, x));
        }
    }
}

static void run_tile(const struct run *run, size_t number)
{
    const struct vxd_conv_weights *weights = &run->call->weights;
    size_t begin = number / run->n_strips * TILE_ROWS;
    size_t end = run->n_rows - begin < TILE_ROWS ? run->n_rows : begin + TILE_ROWS;
    size_t first_out = number % run->n_strips * STRIP;
    size_t left = (size_t)weights->n_out - first_out;
    size_t n_out = left < STRIP ? left : STRIP;
    size_t n_panels = vxd_conv_n_panels(weights->n_out);
    struct panels panels = {.stride = (size_t)weights->n_in * VXD_CONV_PANEL};
    struct tile tile;

    panels.n = (int)vxd_conv_n_panels((int)n_out);
    for (size_t i = 0; i < end - begin; i++) {
        // cppcheck-suppress uninitvar ; takes a row of an array for a pointer
        memset(tile.sums[i], 0, (size_t)panels.n * VXD_CONV_PANEL * sizeof(float));
    }
    for (int tap = 0; tap < weights->n_taps; tap++) {
        panels.weights =
            (const float *)weights->data.ptr +
            ((size_t)tap * n_panels + first_out / VXD_CONV_PANEL) * panels.stride;
        find_pairs(run, tap, begin, end, &tile.pairs);
        for (int first = 0; first < tile.pairs.n; first += GROUP_ROWS) {
            int n = tile.pairs.n - first;

            multiply_group(run, &tile, first, n < GROUP_ROWS ? n : GROUP_ROWS, &panels);
        }
    }
    store_tile(run, &tile, begin, end, first_out, n_out);
}

static void run_tiles(void *args, size_t begin, size_t end)
{
    for (size_t number = begin; number < end; number++) {
        run_tile(args, number);
    }
}

static enum vxd_status conv_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    const struct vxd_conv_call *call = args;
    struct run run = {.call = call,
                      .multiply = pick_multiply(),
                      .n_rows = *call->args.n_rows,
                      .n_strips = ((size_t)call->weights.n_out + STRIP - 1) / STRIP};
    size_t max_rows = call->args.max_rows;

    if (call->has_map && call->map.capacity < max_rows) {
        max_rows = call->map.capacity;
    }
    if (run.n_rows > max_rows) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "a convolution of %zu rows exceeds its capacity of %zu",
                        run.n_rows, max_rows);
    }
    run.row_bytes_in =
        call->args.in.stride * vxd_net_element_bytes(call->weights.precision);
    vxd_parallel_for(pool, (run.n_rows + TILE_ROWS - 1) / TILE_ROWS * run.n_strips, 1,
                     run_tiles, &run);
    return VXD_OK;
}

enum vxd_status vxd_conv_run_cpu(struct vxd_queue *queue,
                                 const struct vxd_conv_call *call, struct vxd_err *err)
{
    return vxd_queue_push(queue, conv_job, call, sizeof *call, err);
}
