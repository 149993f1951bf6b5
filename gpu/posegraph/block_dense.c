// SPDX-License-Identifier: Apache-2.0
/* Dense loops of the factorization: tiles of sixteen or eight rows and four columns, whose sums are
 * registers. Each number is the result of the same additions in the same order whatever the vectors' width,
 * the tile or the thread, and products are rounded before they are added. */
#include <math.h>
#include <string.h>

#include "gpu/posegraph/block_cholesky.h"

#define LANES 8
#define TILE_COLUMNS 4
#define STRIP ((size_t)VXD_DENSE_STRIP)

typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));

/* C[r, c] -= sum over k of A[r, k] B[c, k], for 8 n rows and 4 columns; n is 1 or 2. */
static inline __attribute__((always_inline)) void subtract_tile(int n, const double *a,
                                                                const double *b,
                                                                size_t ld, size_t n_k,
                                                                double *c, size_t ld_c)
{
    lanes sums[2][TILE_COLUMNS];

    for (int i = 0; i < TILE_COLUMNS; i++) {
        for (int v = 0; v < n; v++) {
            sums[v][i] = *(const lanes *)(c + (size_t)i * ld_c + (size_t)v * LANES);
        }
    }
    for (size_t k = 0; k < n_k; k++) {
        const double *row = a + k * ld;

        for (int v = 0; v < n; v++) {
            lanes x = *(const lanes *)(row + (size_t)v * LANES);

            for (int i = 0; i < TILE_COLUMNS; i++) {
                sums[v][i] -= x * b[k * ld + (size_t)i];
            }
        }
    }
    for (int i = 0; i < TILE_COLUMNS; i++) {
        for (int v = 0; v < n; v++) {
            *(lanes *)(c + (size_t)i * ld_c + (size_t)v * LANES) = sums[v][i];
        }
    }
}

static inline void subtract_rest(const double *a, const double *b, size_t ld, size_t n_k,
                                 double *c, size_t ld_c, size_t n_r, size_t n_c)
{
    for (size_t i = 0; i < n_c; i++) {
        for (size_t r = 0; r < n_r; r++) {
            double sum = c[i * ld_c + r];

            for (size_t k = 0; k < n_k; k++) {
                sum -= a[k * ld + r] * b[k * ld + i];
            }
            c[i * ld_c + r] = sum;
        }
    }
}

/* Subtracts A B^T from C, n_r x n_c, where A and B are columns of one panel. With `lower` rows of C
 * above its diagonal may keep what they have. */
static inline __attribute__((always_inline)) void
subtract(const double *a, const double *b, size_t ld, size_t n_k, double *c, size_t ld_c,
         size_t n_r, size_t n_c, bool lower)
{
    for (size_t i = 0; i < n_c; i += TILE_COLUMNS) {
        size_t columns = n_c - i < TILE_COLUMNS ? n_c - i : TILE_COLUMNS;

        for (size_t r = lower ? i : 0; r < n_r;) {
            const double *rows = a + r;
            double *to = c + i * ld_c + r;
            size_t left = n_r - r;

            if (columns < TILE_COLUMNS || left < LANES) {
                size_t n = left < LANES ? left : LANES;

                subtract_rest(rows, b + i, ld, n_k, to, ld_c, n, columns);
                r += n;
            } else if (left < (size_t)2 * LANES) {
                subtract_tile(1, rows, b + i, ld, n_k, to, ld_c);
                r += LANES;
            } else {
                subtract_tile(2, rows, b + i, ld, n_k, to, ld_c);
                r += (size_t)2 * LANES;
            }
        }
    }
}

/* Factors a strip whose columns are updated, with all rows below it. */
static inline __attribute__((always_inline)) size_t factor_strip(double *p, size_t ld,
                                                                 size_t n_rows, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        double *column = p + j * ld;
        double inverse;

        for (size_t k = 0; k < j; k++) {
            const double *before = p + k * ld;
            double factor = before[j];

            for (size_t r = j; r < n_rows; r++) {
                column[r] -= before[r] * factor;
            }
        }
        if (!(column[j] > 0) || !(column[j] < HUGE_VAL)) {
            return j;
        }
        column[j] = sqrt(column[j]);
        inverse = 1 / column[j];
        for (size_t r = j + 1; r < n_rows; r++) {
            column[r] *= inverse;
        }
    }
    return n;
}

static inline __attribute__((always_inline)) size_t
factor_any(double *panel, size_t ld, size_t n_rows, size_t n_columns)
{
    for (size_t j = 0; j < n_columns; j += STRIP) {
        size_t n = n_columns - j < STRIP ? n_columns - j : STRIP;
        double *strip = panel + j * ld + j;
        size_t done;

        subtract(panel + j, panel + j, ld, j, strip, ld, n_rows - j, n, false);
        done = factor_strip(strip, ld, n_rows - j, n);
        if (done < n) {
            return j + done;
        }
    }
    return n_columns;
}

/* What factor_strip does with rows [begin, end) below strip [j, j + n), whose triangle is factored. */
static inline __attribute__((always_inline)) void
solve_strip(double *panel, size_t ld, size_t j, size_t n, size_t begin, size_t end)
{
    for (size_t i = j; i < j + n; i++) {
        double *column = panel + i * ld;
        double inverse = 1 / column[i];

        for (size_t k = j; k < i; k++) {
            const double *before = panel + k * ld;
            double factor = before[i];

            for (size_t r = begin; r < end; r++) {
                column[r] -= before[r] * factor;
            }
        }
        for (size_t r = begin; r < end; r++) {
            column[r] *= inverse;
        }
    }
}

/* What factor_any does with rows [begin, end) below the columns, whose triangle is factored. */
static inline __attribute__((always_inline)) void
solve_rows_any(double *panel, size_t ld, size_t n_columns, size_t begin, size_t end)
{
    for (size_t j = 0; j < n_columns; j += STRIP) {
        size_t n = n_columns - j < STRIP ? n_columns - j : STRIP;

        subtract(panel + begin, panel + j, ld, j, panel + j * ld + begin, ld, end - begin,
                 n, false);
        solve_strip(panel, ld, j, n, begin, end);
    }
}

/* The triangle of strip j, and the rows of the next strip. */
static inline __attribute__((always_inline)) size_t strip_any(double *panel, size_t ld,
                                                              size_t n_columns, size_t j)
{
    size_t n = n_columns - j < STRIP ? n_columns - j : STRIP;
    size_t end = n_columns - j < 2 * STRIP ? n_columns : j + 2 * STRIP;
    size_t done = factor_strip(panel + j * ld + j, ld, n, n);

    if (done == n) {
        solve_strip(panel, ld, j, n, j + n, end);
    }
    return done;
}

/* Rows [begin, end) behind strip j: solved in it, and updated for the next strip. */
static inline __attribute__((always_inline)) void strip_rows_any(double *panel, size_t ld,
                                                                 size_t n_columns,
                                                                 size_t j, size_t begin,
                                                                 size_t end)
{
    size_t next = j + STRIP;
    size_t n_next = n_columns - next < STRIP ? n_columns - next : STRIP;
    size_t first = begin > next + n_next ? begin : next + n_next;

    if (first < end) {
        solve_strip(panel, ld, j, STRIP, first, end);
    }
    subtract(panel + begin, panel + next, ld, next, panel + next * ld + begin, ld,
             end - begin, n_next, false);
}

static inline __attribute__((always_inline)) void update_any(const double *a, size_t ld_a,
                                                             size_t n, size_t n_k,
                                                             double *c, size_t ld_c,
                                                             size_t begin, size_t end)
{
    subtract(a + begin, a + begin, ld_a, n_k, c + begin * ld_c + begin, ld_c, n - begin,
             end - begin, true);
}

#if defined(__x86_64__)
#define VARIANT(name, isa)                                                               \
    __attribute__((target(isa))) static size_t factor_##name(                            \
        double *panel, size_t ld, size_t n_rows, size_t n_columns)                       \
    {                                                                                    \
        return factor_any(panel, ld, n_rows, n_columns);                                 \
    }                                                                                    \
    __attribute__((target(isa))) static void solve_rows_##name(                          \
        double *panel, size_t ld, size_t n_columns, size_t begin, size_t end)            \
    {                                                                                    \
        solve_rows_any(panel, ld, n_columns, begin, end);                                \
    }                                                                                    \
    __attribute__((target(isa))) static size_t strip_##name(double *panel, size_t ld,    \
                                                            size_t n_columns, size_t j)  \
    {                                                                                    \
        return strip_any(panel, ld, n_columns, j);                                       \
    }                                                                                    \
    __attribute__((target(isa))) static void strip_rows_##name(                          \
        double *panel, size_t ld, size_t n_columns, size_t j, size_t begin, size_t end)  \
    {                                                                                    \
        strip_rows_any(panel, ld, n_columns, j, begin, end);                             \
    }                                                                                    \
    __attribute__((target(isa))) static void update_##name(                              \
        const double *a, size_t ld_a, size_t n, size_t n_k, double *c, size_t ld_c,      \
        size_t begin, size_t end)                                                        \
    {                                                                                    \
        update_any(a, ld_a, n, n_k, c, ld_c, begin, end);                                \
    }
VARIANT(avx2, "avx2")
#if defined(__clang__) /* which takes no width here */
VARIANT(avx512, "avx512f")
#else
VARIANT(avx512, "avx512f,prefer-vector-width=512")
#endif
#endif

size_t vxd_dense_factor(double *panel, size_t ld, size_t n_rows, size_t n_columns)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return factor_avx512(panel, ld, n_rows, n_columns);
    }
    if (__builtin_cpu_supports("avx2")) {
        return factor_avx2(panel, ld, n_rows, n_columns);
    }
#endif
    return factor_any(panel, ld, n_rows, n_columns);
}

void vxd_dense_solve_rows(double *panel, size_t ld, size_t n_columns, size_t begin,
                          size_t end)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        solve_rows_avx512(panel, ld, n_columns, begin, end);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        solve_rows_avx2(panel, ld, n_columns, begin, end);
        return;
    }
#endif
    solve_rows_any(panel, ld, n_columns, begin, end);
}

size_t vxd_dense_strip(double *panel, size_t ld, size_t n_columns, size_t j)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return strip_avx512(panel, ld, n_columns, j);
    }
    if (__builtin_cpu_supports("avx2")) {
        return strip_avx2(panel, ld, n_columns, j);
    }
#endif
    return strip_any(panel, ld, n_columns, j);
}

void vxd_dense_strip_rows(double *panel, size_t ld, size_t n_columns, size_t j,
                          size_t begin, size_t end)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        strip_rows_avx512(panel, ld, n_columns, j, begin, end);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        strip_rows_avx2(panel, ld, n_columns, j, begin, end);
        return;
    }
#endif
    strip_rows_any(panel, ld, n_columns, j, begin, end);
}

void vxd_dense_update(const double *a, size_t ld_a, size_t n, size_t n_k, double *c,
                      size_t ld_c, size_t begin, size_t end)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        update_avx512(a, ld_a, n, n_k, c, ld_c, begin, end);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        update_avx2(a, ld_a, n, n_k, c, ld_c, begin, end);
        return;
    }
#endif
    update_any(a, ld_a, n, n_k, c, ld_c, begin, end);
}
