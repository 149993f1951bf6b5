// SPDX-License-Identifier: Apache-2.0
/* A kernel map's lists of tiles, against its table, masks and order. */
#include "gpu/sparse/kernel_map/kernel_map_math.h"
#include "tests/support/sparse/sparse_helpers.h"
#include "tests/support/test.h"

/* Number of taps that some of n rows have, beginning at `first` of the order. */
static int count_taps(const struct gpu_map *map, const uint32_t *order, uint32_t first,
                      uint32_t n)
{
    int n_taps = 0;

    for (int tap = 0; tap < map->map.n_taps; tap++) {
        const int32_t *of_tap = map->table + (size_t)tap * map->map.capacity;
        bool has = false;

        for (uint32_t i = first; i < first + n && !has; i++) {
            has = of_tap[order[i]] >= 0;
        }
        n_taps += has;
    }
    return n_taps;
}

/* Each tile occurs once, and tiles with more taps come no later; for kernels with more
 * than 32 taps, by the scaled number of taps. */
static size_t check_list(const struct gpu_map *map, const uint32_t *order,
                         uint32_t n_rows, const uint32_t *list, uint32_t tile_rows)
{
    uint32_t n_tiles = (n_rows + tile_rows - 1) / tile_rows;
    uint8_t *seen = gpu_alloc(n_tiles + 1);
    int before = VXD_SPARSE_MAX_TAPS;
    size_t n_wrong = 0;

    memset(seen, 0, n_tiles + 1);
    for (uint32_t i = 0; i < n_tiles; i++) {
        uint32_t first = list[i] * tile_rows;
        int n;

        if (list[i] >= n_tiles || seen[list[i]]++ != 0) {
            n_wrong++;
            continue;
        }
        n = count_taps(map, order, first,
                       n_rows - first < tile_rows ? n_rows - first : tile_rows);
        n = map->map.n_taps > 32 ? n * 32 / map->map.n_taps : n;
        n_wrong += n > before;
        before = n;
    }
    free(seen);
    return n_wrong;
}

/* Lists follow the order, one after another. Without lists (CPU) it counts no error. */
static size_t check_tiles(struct gpu_env *env, const struct gpu_map *map, uint32_t n_rows)
{
    size_t n_words = map->map.capacity;
    size_t at = 0;
    size_t n_wrong = 0;
    uint32_t *order;
    struct vxd_err err = {0};

    if (map->map.order == NULL) {
        return 0;
    }
    for (uint32_t tile_rows = 64; tile_rows <= 256; tile_rows *= 2) {
        n_words += (map->map.capacity + tile_rows - 1) / tile_rows;
    }
    order = gpu_alloc(n_words * sizeof *order);
    CHECK_INT(
        vxd_queue_copy(env->queue, order, map->map.order, n_words * sizeof *order, &err),
        VXD_OK);
    gpu_wait(env);
    for (uint32_t tile_rows = 64; tile_rows <= 256; tile_rows *= 2) {
        n_wrong +=
            check_list(map, order, n_rows, order + map->map.capacity + at, tile_rows);
        at += (map->map.capacity + tile_rows - 1) / tile_rows;
    }
    free(order);
    return n_wrong;
}

static void random_cases(struct gpu_env *env)
{
    for (int number = 0; number < vxd_test_rounds(120); number++) {
        struct gpu_sparse_case item;
        struct gpu_coord_set in;
        struct gpu_coord_set out;
        struct gpu_map map;

        gpu_sparse_case_make(&item, number);
        gpu_sparse_case_coord_sets(env, &item, &in, &out);
        gpu_map_build(env, &item.geometry, &in, &out, &map);
        CHECK_INT(check_tiles(env, &map, out.n_rows), 0);
        gpu_map_free(env, &map);
        gpu_coord_set_free(env, &in);
        gpu_coord_set_free(env, &out);
        gpu_sparse_case_free(&item);
    }
}

static void test_map_lists_each_tile_once_most_taps_first(void)
{
    gpu_each_backend(random_cases);
}

/* As many rows as all blocks of a GPU process at once, then one, and none. */
static void many_rows(struct gpu_env *env)
{
    static const int32_t unbounded[3] = {0, 0, 0};
    static const size_t counts[3] = {60001, 1, 0};
    const struct vxd_sparse_geometry g = {
        {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false};
    int32_t *coords = gpu_alloc(counts[0] * 4 * sizeof *coords);
    uint64_t state = 3;

    for (size_t i = 0; i < counts[0]; i++) { /* a quarter of a column of cells each */
        const int32_t c[4] = {0, (int32_t)(i / 240), (int32_t)(i % 240),
                              (int32_t)(gpu_random(&state) % 4)};

        memcpy(coords + 4 * i, c, sizeof c);
    }
    for (int i = 0; i < 3; i++) {
        struct gpu_coord_set coord_set;
        struct gpu_map map;

        CHECK_INT(gpu_coord_set_make(env, coords, counts[i], 1, unbounded, counts[i],
                                     NULL, &coord_set),
                  VXD_OK);
        gpu_map_build(env, &g, &coord_set, &coord_set, &map);
        CHECK_INT(check_tiles(env, &map, coord_set.n_rows), 0);
        gpu_map_free(env, &map);
        gpu_coord_set_free(env, &coord_set);
    }
    free(coords);
}

static void test_map_of_many_rows_lists_each_tile_once(void)
{
    gpu_each_backend(many_rows);
}

static void test_lists_of_tiles_lie_behind_the_order_without_gaps(void)
{
    static const size_t capacities[] = {0, 1, 63, 64, 65, 256, 257, 100000};

    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        size_t capacity = capacities[i];
        size_t at = capacity;

        CHECK_INT(vxd_sparse_tiles_at(capacity, 0), at);
        for (int size = 0; size < VXD_SPARSE_TILE_SIZES; size++) {
            for (size_t row = 0; row < capacity; row += (size_t)64 << size) {
                at++;
            }
            CHECK_INT(vxd_sparse_tiles_at(capacity, size + 1), at);
        }
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_map_lists_each_tile_once_most_taps_first),
    VXD_TEST(test_lists_of_tiles_lie_behind_the_order_without_gaps),
    VXD_TEST(test_map_of_many_rows_lists_each_tile_once),
};

VXD_TEST_MAIN(tests)
