// SPDX-License-Identifier: Apache-2.0
/* Derived coordinate sets and kernel maps against dense grids, and against the counts
 * of a real scan. */
#include "tests/support/sparse/sparse_helpers.h"
#include "tests/support/test.h"

enum {
    N_CASES = 260
};

/* A grid that holds row + 1 for each row of a set. */
static void number_rows(const struct gpu_coord_set *coord_set, struct gpu_grid *grid)
{
    for (uint32_t i = 0; i < coord_set->n_rows; i++) {
        double *at = gpu_grid_at(grid, coord_set->coords + 4 * (size_t)i);

        REQUIRE(at != NULL && *at == 0);
        *at = i + 1;
    }
}

static uint64_t morton(const int32_t c[4])
{
    uint64_t code = 0;

    for (int bit = 17; bit >= 0; bit--) {
        for (int axis = 0; axis < 3; axis++) {
            code = code << 1 | ((uint64_t)(c[1 + axis] + 131072) >> bit & 1);
        }
    }
    return (uint64_t)c[0] << 54 | code;
}

static size_t count_unsorted(const struct gpu_coord_set *coord_set)
{
    size_t n_wrong = 0;

    for (size_t i = 1; i < coord_set->n_rows; i++) {
        n_wrong +=
            morton(coord_set->coords + 4 * i) <= morton(coord_set->coords + 4 * (i - 1));
    }
    return n_wrong;
}

/* The output's set is where the dense convolution of ones is not zero; a floor set is
 * the result of division. */
static size_t check_coord_set(const struct gpu_sparse_case *item,
                              const struct gpu_coord_set *in,
                              const struct gpu_coord_set *out)
{
    struct gpu_grid ones;
    struct gpu_grid expected;
    struct gpu_grid rows;
    size_t n_cells = (size_t)item->n_samples;
    size_t n_wrong = 0;

    gpu_grid_make(&ones, item->in_lo, item->in_n, item->n_samples, 1);
    gpu_grid_make(&expected, item->out_lo, item->out_n, item->n_samples, 1);
    gpu_grid_make(&rows, item->out_lo, item->out_n, item->n_samples, 1);
    number_rows(out, &rows);
    for (uint32_t i = 0; i < in->n_rows; i++) {
        int32_t c[4];

        memcpy(c, in->coords + 4 * (size_t)i, sizeof c);
        *gpu_grid_at(&ones, c) = 1;
        for (int axis = 0; axis < 3; axis++) {
            int s = item->geometry.stride[axis];

            while (c[1 + axis] % s != 0) {
                c[1 + axis]--;
            }
            c[1 + axis] /= s;
        }
        if (item->rule == VXD_DERIVE_FLOOR) {
            *gpu_grid_at(&expected, c) = 1;
        }
    }
    if (item->rule == VXD_DERIVE_SUPPORT) {
        gpu_grid_conv(&ones, &item->geometry, NULL, &expected);
    }
    for (int axis = 0; axis < 3; axis++) {
        n_cells *= (size_t)item->out_n[axis];
    }
    for (size_t i = 0; i < n_cells; i++) {
        n_wrong += (expected.values[i] != 0) != (rows.values[i] != 0);
    }
    gpu_grid_free(&ones);
    gpu_grid_free(&expected);
    gpu_grid_free(&rows);
    return n_wrong;
}

/* Entries of a map that differ from a look-up of the cell in a grid. g relates a set
 * of coarse cells to one of fine cells; the map reads `in` for `out`. */
static size_t check_map(const struct vxd_sparse_geometry *g, const struct gpu_grid *in,
                        const struct gpu_coord_set *out, const struct gpu_map *map)
{
    size_t n_wrong = 0;
    uint64_t n_pairs = 0;
    int tap = 0;

    for (int rx = 0; rx < g->kernel[0]; rx++) {
        for (int ry = 0; ry < g->kernel[1]; ry++) {
            for (int rz = 0; rz < g->kernel[2]; rz++, tap++) {
                const int32_t *entries = map->table + (size_t)tap * map->map.capacity;
                int r[3] = {rx, ry, rz};
                uint32_t i = 0;

                for (; i < out->n_rows; i++) {
                    const int32_t *o = out->coords + 4 * (size_t)i;
                    int32_t c[4] = {o[0], 0, 0, 0};
                    bool is_whole = true;
                    const double *at;
                    int32_t expected = -1;

                    for (int a = 0; a < 3; a++) {
                        int32_t n = o[1 + a] + g->padding[a] - r[a] * g->dilation[a];

                        is_whole = is_whole && (!g->transposed || n % g->stride[a] == 0);
                        c[1 + a] = g->transposed
                                       ? n / g->stride[a]
                                       : o[1 + a] * g->stride[a] - g->padding[a] +
                                             r[a] * g->dilation[a];
                    }
                    at = is_whole ? gpu_grid_at(in, c) : NULL;
                    if (at != NULL) {
                        expected = (int32_t)*at - 1;
                    }
                    n_wrong += entries[i] != expected;
                    n_pairs += expected >= 0;
                }
                for (; i % VXD_SPARSE_ROW_PAD != 0; i++) {
                    n_wrong += entries[i] != -1;
                }
            }
        }
    }
    return n_wrong + (n_pairs != map->n_pairs);
}

/* Taps of the bits of a row's sort key, the rarest first: of the taps that some rows
 * have and others lack, the 27 most frequent; of equally frequent ones the first. */
static int rank_taps(const struct gpu_map *map, uint32_t n_rows, int taps[27])
{
    int n_taps = map->map.n_taps;
    uint32_t counts[VXD_SPARSE_MAX_TAPS] = {0};
    int n = 0;

    for (int tap = 0; tap < n_taps; tap++) {
        for (uint32_t i = 0; i < n_rows; i++) {
            counts[tap] += map->table[(size_t)tap * map->map.capacity + i] >= 0;
        }
    }
    for (; n < 27; n++) {
        int best = -1;

        for (int tap = 0; tap < n_taps; tap++) {
            if (counts[tap] > 0 && counts[tap] < n_rows &&
                (best < 0 || counts[tap] > counts[best])) {
                best = tap;
            }
        }
        if (best < 0) {
            break;
        }
        counts[best] = 0;
        taps[n] = best;
    }
    for (int i = 0; i < n / 2; i++) {
        int tap = taps[i];

        taps[i] = taps[n - 1 - i];
        taps[n - 1 - i] = tap;
    }
    return n;
}

/* Masks agree with the table. The order has every row once and ascends by the key in a
 * Gray code's order, in which a bit ascends below an even number of higher bits and
 * descends below an odd one; rows with equal keys by number. Without masks and order
 * (CPU) it counts no error. */
static size_t check_order(struct gpu_env *env, const struct gpu_map *map, uint32_t n_rows)
{
    size_t n_words = ((size_t)map->map.n_taps + 31) / 32;
    uint32_t n_padded =
        (n_rows + VXD_SPARSE_ROW_PAD - 1) / VXD_SPARSE_ROW_PAD * VXD_SPARSE_ROW_PAD;
    uint32_t *masks;
    uint32_t *order;
    uint8_t *seen;
    size_t n_wrong = 0;
    int taps[27];
    int n_bits = rank_taps(map, n_rows, taps);
    struct vxd_err err = {0};

    if (map->map.masks == NULL) {
        return map->map.order != NULL;
    }
    masks = gpu_alloc((n_padded + 1) * n_words * sizeof *masks);
    order = gpu_alloc((n_padded + 1) * sizeof *order);
    seen = gpu_alloc(n_padded + 1);
    memset(seen, 0, n_padded);
    CHECK_INT(vxd_queue_copy(env->queue, masks, map->map.masks,
                             n_padded * n_words * sizeof *masks, &err),
              VXD_OK);
    CHECK_INT(
        vxd_queue_copy(env->queue, order, map->map.order, n_padded * sizeof *order, &err),
        VXD_OK);
    gpu_wait(env);
    for (uint32_t i = 0; i < n_padded; i++) {
        bool is_falling = false;
        bool is_odd = false;

        for (int tap = 0; tap < map->map.n_taps; tap++) {
            bool has = map->table[(size_t)tap * map->map.capacity + i] >= 0;

            n_wrong += (masks[i * n_words + (size_t)tap / 32] >> tap % 32 & 1) != has;
        }
        if (order[i] >= n_padded || seen[order[i]]++ != 0 ||
            (i >= n_rows && order[i] != i)) {
            n_wrong++;
            continue;
        }
        if (i == 0 || i >= n_rows || order[i - 1] >= n_rows) {
            continue;
        }
        is_falling = order[i] < order[i - 1];
        for (int bit = 0; bit < n_bits; bit++) {
            const int32_t *of_tap = map->table + (size_t)taps[bit] * map->map.capacity;
            bool has = of_tap[order[i]] >= 0;
            bool had = of_tap[order[i - 1]] >= 0;

            if (has != had) {
                is_falling = had != is_odd;
                break;
            }
            is_odd = is_odd != has;
        }
        n_wrong += is_falling;
    }
    free(masks);
    free(order);
    free(seen);
    return n_wrong;
}

static void check_case(struct gpu_env *env, const struct gpu_sparse_case *item,
                       int number)
{
    struct vxd_sparse_geometry back;
    struct gpu_coord_set in;
    struct gpu_coord_set out;
    struct gpu_map map;
    struct gpu_map inverse;
    struct gpu_grid rows;
    size_t n_wrong = 0;

    gpu_sparse_case_coord_sets(env, item, &in, &out);
    n_wrong += count_unsorted(&in) + count_unsorted(&out);
    if (!gpu_sparse_case_is_subm(item)) {
        n_wrong += check_coord_set(item, &in, &out);
    }
    gpu_map_build(env, &item->geometry, &in, &out, &map);
    gpu_grid_make(&rows, item->in_lo, item->in_n, item->n_samples, 1);
    number_rows(&in, &rows);
    n_wrong += check_map(&item->geometry, &rows, &out, &map);
    n_wrong += check_order(env, &map, out.n_rows);
    gpu_grid_free(&rows);

    /* Used in reverse onto the input's set: the same pairs with exchanged roles. */
    back = item->geometry;
    back.transposed = !back.transposed;
    gpu_map_build(env, &back, &out, &in, &inverse);
    gpu_grid_make(&rows, item->out_lo, item->out_n, item->n_samples, 1);
    number_rows(&out, &rows);
    n_wrong += check_map(&back, &rows, &in, &inverse);
    n_wrong += check_order(env, &inverse, in.n_rows);
    gpu_grid_free(&rows);
    n_wrong += inverse.n_pairs != map.n_pairs;
    if (n_wrong > 0) {
        (void)fprintf(stderr, "%s: case %d: %zu differences\n", env->name, number,
                      n_wrong);
    }
    CHECK_INT(n_wrong, 0);
    gpu_map_free(env, &map);
    gpu_map_free(env, &inverse);
    gpu_coord_set_free(env, &in);
    gpu_coord_set_free(env, &out);
}

static void random_cases(struct gpu_env *env)
{
    for (int number = 0; number < vxd_test_rounds(N_CASES); number++) {
        struct gpu_sparse_case item;

        gpu_sparse_case_make(&item, number);
        check_case(env, &item, number);
        gpu_sparse_case_free(&item);
    }
}

static void test_map_of_random_geometry_equals_lookups_in_a_dense_grid(void)
{
    gpu_each_backend(random_cases);
}

/* Kernels that networks use, for which backends may have special code. */
static void common_cases(struct gpu_env *env)
{
    static const struct vxd_sparse_geometry geometries[4] = {
        {{2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, false},
        {{4, 4, 4}, {4, 4, 4}, {0, 0, 0}, {1, 1, 1}, false},
        {{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, false},
        {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false}};

    for (int number = 0; number < vxd_test_rounds(N_CASES); number++) {
        struct gpu_sparse_case item;
        bool is_bounded;

        gpu_sparse_case_make(&item, number / 4 * 3); /* every other one is bounded */
        is_bounded = item.shape[0] > 0;
        item.geometry = geometries[number % 4];
        item.rule = is_bounded ? VXD_DERIVE_SUPPORT : VXD_DERIVE_FLOOR;
        if (vxd_sparse_out_shape(&item.geometry, item.shape, NULL, item.out_shape,
                                 NULL) != VXD_OK) {
            gpu_sparse_case_free(&item);
            continue; /* no kernel fits */
        }
        for (int axis = 0; axis < 3; axis++) {
            item.out_lo[axis] = is_bounded ? 0 : -20; /* inputs lie in -20 .. 14 */
            item.out_n[axis] = is_bounded ? item.out_shape[axis] : 36;
        }
        check_case(env, &item, number);
        gpu_sparse_case_free(&item);
    }
}

static void test_map_of_a_common_kernel_equals_lookups_in_a_dense_grid(void)
{
    gpu_each_backend(common_cases);
}

#define N_TOGETHER 20 /* more than one launch can build */

/* Words of two maps' rows (padding included) that differ. */
static size_t compare_maps(struct gpu_env *env, const struct gpu_map *alone,
                           const struct vxd_buffer *block,
                           const struct vxd_kernel_map *map, uint32_t n_rows)
{
    size_t capacity = map->capacity;
    size_t n_taps = (size_t)map->n_taps;
    size_t n_padded =
        (n_rows + VXD_SPARSE_ROW_PAD - 1) / VXD_SPARSE_ROW_PAD * VXD_SPARSE_ROW_PAD;
    size_t n_masks = n_padded * ((n_taps + 31) / 32);
    char *words[2] = {gpu_to_host(env, &alone->block), gpu_to_host(env, block)};
    size_t at_table = (size_t)((char *)map->table - (char *)block->ptr);
    size_t n_wrong = memcmp(words[0], words[1], sizeof *map->n_pairs) != 0;

    for (size_t tap = 0; tap < n_taps; tap++) {
        size_t at = at_table + tap * capacity * 4;

        n_wrong += memcmp(words[0] + at, words[1] + at, n_padded * 4) != 0;
    }
    if (map->masks != NULL) {
        size_t at_masks = (size_t)((char *)map->masks - (char *)block->ptr);
        size_t at_order = (size_t)((char *)map->order - (char *)block->ptr);

        n_wrong += memcmp(words[0] + at_masks, words[1] + at_masks, n_masks * 4) != 0;
        n_wrong += memcmp(words[0] + at_order, words[1] + at_order, n_padded * 4) != 0;
    }
    free(words[0]);
    free(words[1]);
    return n_wrong;
}

static void together(struct gpu_env *env)
{
    struct gpu_sparse_case items[N_TOGETHER];
    struct gpu_coord_set in[N_TOGETHER];
    struct gpu_coord_set out[N_TOGETHER];
    struct gpu_map alone[N_TOGETHER];
    struct vxd_buffer blocks[N_TOGETHER];
    struct vxd_kernel_map maps[N_TOGETHER];
    struct vxd_kernel_map_request requests[N_TOGETHER];
    struct vxd_buffer scratch;
    size_t n_wrong = 0;
    struct vxd_err err = {0};

    for (int i = 0; i < N_TOGETHER; i++) {
        int n_taps;

        gpu_sparse_case_make(&items[i], 300 + i);
        gpu_sparse_case_coord_sets(env, &items[i], &in[i], &out[i]);
        gpu_map_build(env, &items[i].geometry, &in[i], &out[i], &alone[i]);
        n_taps = alone[i].map.n_taps;
        blocks[i] = gpu_to_device(
            env, NULL, vxd_kernel_map_bytes(env->queue, n_taps, out[i].n_rows));
        CHECK_INT(vxd_kernel_map_layout(env->queue, blocks[i].ptr, n_taps, out[i].n_rows,
                                        &maps[i], &err),
                  VXD_OK);
        requests[i] = (struct vxd_kernel_map_request){items[i].geometry, &in[i].coord_set,
                                                      &out[i].coord_set, &maps[i]};
    }
    scratch = gpu_to_device(
        env, NULL, vxd_kernel_maps_scratch_bytes(env->queue, requests, N_TOGETHER));
    CHECK_INT(vxd_kernel_maps_build(env->queue, requests, N_TOGETHER, scratch.ptr,
                                    scratch.n_bytes, &err),
              VXD_OK);
    for (int i = 0; i < N_TOGETHER; i++) {
        n_wrong += compare_maps(env, &alone[i], &blocks[i], &maps[i], out[i].n_rows);
        vxd_device_free(env->queue, &blocks[i]);
        gpu_map_free(env, &alone[i]);
        gpu_coord_set_free(env, &in[i]);
        gpu_coord_set_free(env, &out[i]);
        gpu_sparse_case_free(&items[i]);
    }
    CHECK_INT(n_wrong, 0);
    vxd_device_free(env->queue, &scratch);
    gpu_wait(env);
}

static void test_maps_built_together_equal_each_built_alone(void)
{
    gpu_each_backend(together);
}

static void one_too_small(struct gpu_env *env)
{
    static const int32_t unbounded[3] = {0, 0, 0};
    const struct vxd_sparse_geometry subm = {
        {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false};
    int32_t coords[4 * 200];
    struct vxd_buffer block;
    struct vxd_buffer scratch;
    struct vxd_kernel_map map;
    struct gpu_coord_set coord_set;
    struct vxd_err err = {0};

    for (int i = 0; i < 200; i++) {
        int32_t c[4] = {0, i, 0, 0};

        memcpy(coords + 4 * (size_t)i, c, sizeof c);
    }
    CHECK_INT(gpu_coord_set_make(env, coords, 200, 1, unbounded, 200, NULL, &coord_set),
              VXD_OK);
    block = gpu_to_device(env, NULL, vxd_kernel_map_bytes(env->queue, 27, 128));
    scratch = gpu_to_device(env, NULL, vxd_kernel_map_scratch_bytes(env->queue, 27, 128));
    CHECK_INT(vxd_kernel_map_layout(env->queue, block.ptr, 27, 128, &map, &err), VXD_OK);
    CHECK_INT(vxd_kernel_map_build(env->queue, &subm, &coord_set.coord_set,
                                   &coord_set.coord_set, &map, scratch.ptr,
                                   scratch.n_bytes, &err),
              VXD_OK);
    CHECK_INT(vxd_queue_wait(env->queue, &err), VXD_RESOURCE_EXHAUSTED);
    vxd_device_free(env->queue, &block);
    vxd_device_free(env->queue, &scratch);
    gpu_coord_set_free(env, &coord_set);
}

static void test_map_with_too_many_rows_is_refused_by_the_wait(void)
{
    gpu_each_backend(one_too_small);
}

/* The same map so often that each of a GPU's blocks has many rows. */
static void check_crowd(struct gpu_env *env, const struct vxd_sparse_geometry *geometry,
                        const struct gpu_coord_set *coord_set,
                        const struct gpu_map *alone)
{
    struct vxd_kernel_map_request requests[8];
    struct vxd_kernel_map maps[8];
    struct vxd_buffer blocks[8];
    struct vxd_buffer scratch;
    size_t n_wrong = 0;
    struct vxd_err err = {0};

    for (int i = 0; i < 8; i++) {
        blocks[i] = gpu_to_device(
            env, NULL, vxd_kernel_map_bytes(env->queue, 27, coord_set->n_rows));
        CHECK_INT(vxd_kernel_map_layout(env->queue, blocks[i].ptr, 27, coord_set->n_rows,
                                        &maps[i], &err),
                  VXD_OK);
        requests[i] = (struct vxd_kernel_map_request){*geometry, &coord_set->coord_set,
                                                      &coord_set->coord_set, &maps[i]};
    }
    scratch =
        gpu_to_device(env, NULL, vxd_kernel_maps_scratch_bytes(env->queue, requests, 8));
    CHECK_INT(vxd_kernel_maps_build(env->queue, requests, 8, scratch.ptr, scratch.n_bytes,
                                    &err),
              VXD_OK);
    for (int i = 0; i < 8; i++) {
        n_wrong += compare_maps(env, alone, &blocks[i], &maps[i], coord_set->n_rows);
        vxd_device_free(env->queue, &blocks[i]);
    }
    CHECK_INT(n_wrong, 0);
    vxd_device_free(env->queue, &scratch);
    gpu_wait(env);
}

static void check_scan(struct gpu_env *env, float size, uint32_t n_voxels,
                       uint64_t n_pairs)
{
    static const int32_t unbounded[3] = {0, 0, 0};
    const struct vxd_sparse_geometry subm = {
        {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false};
    size_t n = 0;
    float *points = gpu_read_spconv_scan(&n);
    uint32_t starts[2] = {0, (uint32_t)n};
    struct vxd_voxelize_args args = {.positions = points,
                                     .n_points = n,
                                     .batch_starts = starts,
                                     .n_batch = 1,
                                     .rule = VXD_RULE_MINKOWSKI,
                                     .size_m = {size, size, size}};
    struct gpu_voxels voxels;
    struct gpu_coord_set coord_set;
    struct gpu_map map;

    REQUIRE(points != NULL);
    gpu_voxelize(env, &args, &voxels);
    CHECK_INT(voxels.n_voxels, n_voxels);
    CHECK_INT(gpu_coord_set_make(env, voxels.coords, voxels.n_voxels, 1, unbounded,
                                 voxels.n_voxels, NULL, &coord_set),
              VXD_OK);
    CHECK_INT(coord_set.n_rows, n_voxels);
    CHECK_INT(memcmp(coord_set.coords, voxels.coords, (size_t)coord_set.n_rows * 16), 0);
    gpu_map_build(env, &subm, &coord_set, &coord_set, &map);
    CHECK_INT(map.n_pairs, n_pairs);
    CHECK_INT(check_order(env, &map, coord_set.n_rows), 0);
    check_crowd(env, &subm, &coord_set, &map);
    gpu_map_free(env, &map);
    gpu_coord_set_free(env, &coord_set);
    gpu_voxels_free(&voxels);
    free(points);
}

/* Cloud B: at 0.1 m exactly the count of pairs of spconv. */
static void spconv_scan(struct gpu_env *env)
{
    check_scan(env, 0.1f, 125565, 788961);
    check_scan(env, 0.05f, 173112, 598394);
}

static void test_spconv_scan_has_788961_pairs(void)
{
    gpu_each_backend(spconv_scan);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_map_of_random_geometry_equals_lookups_in_a_dense_grid),
    VXD_TEST(test_map_of_a_common_kernel_equals_lookups_in_a_dense_grid),
    VXD_TEST(test_maps_built_together_equal_each_built_alone),
    VXD_TEST(test_map_with_too_many_rows_is_refused_by_the_wait),
    VXD_TEST(test_spconv_scan_has_788961_pairs),
};

VXD_TEST_MAIN(tests)
