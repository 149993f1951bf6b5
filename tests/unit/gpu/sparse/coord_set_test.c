// SPDX-License-Identifier: Apache-2.0
/* Coordinate sets of any size against sorted lists of keys on the host, and against
 * the counts of a real frame. */
#include <math.h>

#include "gpu/sparse/coords/coords_math.h"
#include "tests/support/sparse/coord_set_model.h"
#include "tests/support/test.h"

static const int32_t unbounded[3] = {0, 0, 0};

static void sort_coords(int32_t *coords, size_t n)
{
    uint64_t *keys = gpu_alloc((n + 1) * sizeof *keys);

    for (size_t i = 0; i < n; i++) {
        keys[i] = gpu_model_key(coords + 4 * i);
    }
    qsort(keys, n, sizeof *keys, gpu_model_compare);
    for (size_t i = 0; i < n; i++) {
        gpu_model_coords(keys[i], coords + 4 * i);
    }
    free(keys);
}

static void check_make(struct gpu_env *env, const int32_t *coords, size_t n,
                       int n_samples, const int32_t shape[3])
{
    struct gpu_model model = gpu_model_of(coords, n, n_samples, shape);
    int32_t *rows = gpu_alloc((n + 1) * sizeof *rows);
    size_t n_wrong;
    struct gpu_coord_set coord_set;

    CHECK_INT(
        gpu_coord_set_make(env, coords, n, n_samples, shape, model.n, rows, &coord_set),
        VXD_OK);
    n_wrong = gpu_model_other_rows(&coord_set, &model) +
              gpu_model_other_blocks(env, &coord_set, &model);
    for (size_t i = 0; i < n; i++) {
        struct gpu_model one = gpu_model_of(coords + 4 * i, 1, n_samples, shape);

        n_wrong += rows[i] != (one.n == 0 ? -1 : gpu_model_row(&model, one.keys[0]));
        free(one.keys);
    }
    if (n_wrong > 0) {
        (void)fprintf(stderr, "%s: %zu coordinates: %zu differences\n", env->name, n,
                      n_wrong);
    }
    CHECK_INT(n_wrong, 0);
    gpu_coord_set_free(env, &coord_set);
    free(rows);
    free(model.keys);
}

static void make_of_any_size(struct gpu_env *env)
{
    static const size_t sizes[] = {0, 1, 2, 255, 256, 257, 1025, 33000, 300001};
    static const int32_t shape[3] = {700, 200, 0};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i];
        int32_t *coords = gpu_model_random(n, 3, true, i + 1);

        check_make(env, coords, n, 3, unbounded);
        check_make(env, coords, n, 2, shape);
        free(coords);
        coords = gpu_model_random(n, 3, false, i + 1);
        sort_coords(coords, n);
        check_make(env, coords, n, 3, unbounded);
        free(coords);
    }
}

static void test_set_of_any_coordinates_has_them_once_in_order(void)
{
    gpu_each_backend(make_of_any_size);
}

static void make_of_one(struct gpu_env *env)
{
    static const int32_t edges[3][4] = {
        {0, 131071, 131071, 131071}, {1022, -131072, -131072, -131072}, {5, -1, 0, -1}};
    size_t n = 5000;
    int32_t *coords = gpu_alloc(n * 4 * sizeof *coords);

    for (int i = 0; i < 3; i++) {
        for (size_t j = 0; j < n; j++) {
            memcpy(coords + 4 * j, edges[i], sizeof edges[i]);
        }
        check_make(env, coords, n, VXD_SPARSE_MAX_SAMPLES, unbounded);
        memcpy(coords, edges[(i + 1) % 3], sizeof edges[0]);
        check_make(env, coords, n, VXD_SPARSE_MAX_SAMPLES, unbounded);
        check_make(env, coords + 4, n - 1, 1, unbounded); /* of other samples: no rows */
    }
    free(coords);
}

static void test_set_of_one_coordinate_many_times_has_one_row(void)
{
    gpu_each_backend(make_of_one);
}

static void floors(struct gpu_env *env)
{
    static const int32_t strides[5][3] = {
        {2, 2, 2}, {1, 1, 1}, {64, 64, 64}, {3, 3, 3}, {2, 2, 1}};
    size_t n = 200000;
    int32_t *coords = gpu_model_random(n, 3, false, 77);
    struct gpu_model model;
    struct gpu_coord_set coord_set;

    coords[1] = coords[2] = coords[3] = -131072;
    coords[5] = coords[6] = coords[7] = 131071;
    model = gpu_model_of(coords, n, 3, unbounded);
    CHECK_INT(gpu_coord_set_make(env, coords, n, 3, unbounded, n, NULL, &coord_set),
              VXD_OK);
    for (int i = 0; i < 5; i++) {
        struct vxd_sparse_geometry geometry = {
            {3, 3, 3}, {0}, {1, 1, 1}, {1, 1, 1}, false};
        struct gpu_model expected = gpu_model_floors(&model, strides[i]);
        struct gpu_coord_set out;

        memcpy(geometry.stride, strides[i], sizeof geometry.stride);
        CHECK_INT(gpu_coord_set_derive(env, VXD_DERIVE_FLOOR, &geometry, &coord_set,
                                       unbounded, expected.n, &out),
                  VXD_OK);
        CHECK_INT(gpu_model_other_rows(&out, &expected), 0);
        CHECK_INT(gpu_model_other_blocks(env, &out, &expected), 0);
        gpu_coord_set_free(env, &out);
        CHECK_INT(gpu_coord_set_derive(env, VXD_DERIVE_FLOOR, &geometry, &coord_set,
                                       unbounded, expected.n - 1, &out),
                  VXD_RESOURCE_EXHAUSTED);
        gpu_coord_set_free(env, &out);
        free(expected.keys);
    }
    gpu_coord_set_free(env, &coord_set);
    free(model.keys);
    free(coords);
}

static void test_floor_set_of_a_big_set_is_what_division_gives(void)
{
    gpu_each_backend(floors);
}

/* Shapes with a table: all cells of one layer, and almost none. */
static void supports(struct gpu_env *env)
{
    static const int32_t shape[3] = {500, 333, 21};
    static const struct vxd_sparse_geometry geometries[3] = {
        {{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, false},
        {{3, 1, 1}, {2, 1, 1}, {0, 0, 0}, {1, 1, 1}, false},
        {{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, true}};
    static const size_t sizes[3] = {0, 7, 40000};

    for (int i = 0; i < 9; i++) {
        const struct vxd_sparse_geometry *g = &geometries[i % 3];
        size_t n = sizes[i / 3];
        int n_samples = i % 2 + 1;
        int32_t *coords = gpu_model_random(n, n_samples, false, (uint64_t)i);
        struct gpu_model in = gpu_model_of(coords, n, n_samples, shape);
        struct gpu_model out = {gpu_alloc((in.n * 27 + 1) * sizeof(uint64_t)), 0};
        int32_t out_shape[3];
        struct gpu_coord_set coord_sets[2];

        CHECK_INT(vxd_sparse_out_shape(g, shape, NULL, out_shape, NULL), VXD_OK);
        for (size_t j = 0; j < in.n * 27; j++) {
            int tap[3] = {(int)(j % 3), (int)(j / 3 % 3), (int)(j / 9 % 3)};
            bool is_in = true;
            int32_t c[4];

            gpu_model_coords(in.keys[j / 27], c);
            for (int axis = 0; axis < 3; axis++) {
                int32_t x = c[1 + axis] + g->padding[axis] - tap[axis];
                int32_t s = g->stride[axis];

                is_in = is_in && tap[axis] < g->kernel[axis];
                if (g->transposed) {
                    x = c[1 + axis] * s - g->padding[axis] + tap[axis];
                } else {
                    is_in = is_in && x >= 0 && x % s == 0;
                    x /= s;
                }
                is_in = is_in && x >= 0 && x < out_shape[axis];
                c[1 + axis] = x;
            }
            if (is_in) {
                out.keys[out.n++] = gpu_model_key(c);
            }
        }
        gpu_model_deduplicate(&out);
        CHECK_INT(
            gpu_coord_set_make(env, coords, n, n_samples, shape, n, NULL, &coord_sets[0]),
            VXD_OK);
        CHECK_INT(gpu_coord_set_derive(env, VXD_DERIVE_SUPPORT, g, &coord_sets[0],
                                       out_shape, out.n, &coord_sets[1]),
                  VXD_OK);
        CHECK_INT(gpu_model_other_rows(&coord_sets[1], &out), 0);
        CHECK_INT(gpu_model_other_blocks(env, &coord_sets[1], &out), 0);
        gpu_coord_set_free(env, &coord_sets[1]);
        if (out.n > 0) {
            CHECK_INT(gpu_coord_set_derive(env, VXD_DERIVE_SUPPORT, g, &coord_sets[0],
                                           out_shape, out.n - 1, &coord_sets[1]),
                      VXD_RESOURCE_EXHAUSTED);
            gpu_coord_set_free(env, &coord_sets[1]);
        }
        gpu_coord_set_free(env, &coord_sets[0]);
        free(coords);
        free(in.keys);
        free(out.keys);
    }
}

static void test_support_in_a_shape_is_what_every_tap_reaches(void)
{
    gpu_each_backend(supports);
}

/* Runs a union or (b NULL) a subset of host bytes `keep`; rows are on the host then. */
static enum vxd_status combine(struct gpu_env *env, const struct gpu_coord_set *a,
                               const struct gpu_coord_set *b, const uint8_t *keep,
                               struct gpu_coord_set *out, int32_t **rows_a,
                               int32_t **rows_b)
{
    size_t n = a->coord_set.capacity + (b != NULL ? b->coord_set.capacity : 0);
    size_t n_bytes = vxd_coord_set_scratch_bytes(env->queue, n, out->coord_set.capacity);
    struct vxd_buffer scratch = gpu_to_device(env, NULL, n_bytes);
    struct vxd_buffer d_keep = gpu_to_device(env, keep, a->coord_set.capacity);
    struct vxd_buffer d_rows[2];
    struct vxd_err err = {0};
    enum vxd_status status;

    for (int i = 0; i < 2; i++) {
        d_rows[i] =
            gpu_to_device(env, NULL, (out->coord_set.capacity + 1) * sizeof(int32_t));
    }
    if (b != NULL) {
        VXD_TRY(vxd_coord_set_union(env->queue, &a->coord_set, &b->coord_set,
                                    &out->coord_set, d_rows[0].ptr, d_rows[1].ptr,
                                    scratch.ptr, scratch.n_bytes, &err));
    } else {
        VXD_TRY(vxd_coord_set_subset(env->queue, &a->coord_set, d_keep.ptr,
                                     &out->coord_set, d_rows[0].ptr, scratch.ptr,
                                     scratch.n_bytes, &err));
    }
    VXD_TRY(vxd_queue_wait(env->queue, &err));
    gpu_coord_set_fetch(env, out);
out:
    *rows_a = gpu_to_host(env, &d_rows[0]);
    *rows_b = gpu_to_host(env, &d_rows[1]);
    for (int i = 0; i < 2; i++) {
        vxd_device_free(env->queue, &d_rows[i]);
    }
    vxd_device_free(env->queue, &scratch);
    vxd_device_free(env->queue, &d_keep);
    gpu_wait(env);
    return status;
}

static void check_union(struct gpu_env *env, size_t n_a, size_t n_b)
{
    int32_t *coords_a = gpu_model_random(n_a, 2, false, n_a + 3);
    int32_t *coords_b = gpu_model_random(n_b, 2, false, n_b + 4);
    struct gpu_model a = gpu_model_of(coords_a, n_a, 2, unbounded);
    struct gpu_model b = gpu_model_of(coords_b, n_b, 2, unbounded);
    struct gpu_model both = {gpu_alloc((a.n + b.n + 1) * sizeof(uint64_t)), a.n + b.n};
    size_t n_wrong;
    struct gpu_coord_set coord_sets[3];
    int32_t *rows_a;
    int32_t *rows_b;

    memcpy(both.keys, a.keys, a.n * sizeof *a.keys);
    memcpy(both.keys + a.n, b.keys, b.n * sizeof *b.keys);
    gpu_model_deduplicate(&both);
    CHECK_INT(gpu_coord_set_make(env, coords_a, n_a, 2, unbounded, n_a + 5, NULL,
                                 &coord_sets[0]),
              VXD_OK);
    CHECK_INT(
        gpu_coord_set_make(env, coords_b, n_b, 2, unbounded, n_b, NULL, &coord_sets[1]),
        VXD_OK);
    gpu_coord_set_alloc(env, &coord_sets[2], both.n, unbounded);
    CHECK_INT(combine(env, &coord_sets[0], &coord_sets[1], NULL, &coord_sets[2], &rows_a,
                      &rows_b),
              VXD_OK);
    n_wrong = gpu_model_other_rows(&coord_sets[2], &both) +
              gpu_model_other_blocks(env, &coord_sets[2], &both);
    for (size_t i = 0; i < both.n; i++) {
        n_wrong += rows_a[i] != gpu_model_row(&a, both.keys[i]);
        n_wrong += rows_b[i] != gpu_model_row(&b, both.keys[i]);
    }
    CHECK_INT(n_wrong, 0);
    free(rows_a);
    free(rows_b);
    gpu_coord_set_free(env, &coord_sets[2]);
    if (both.n > 0) {
        gpu_coord_set_alloc(env, &coord_sets[2], both.n - 1, unbounded);
        CHECK_INT(combine(env, &coord_sets[0], &coord_sets[1], NULL, &coord_sets[2],
                          &rows_a, &rows_b),
                  VXD_RESOURCE_EXHAUSTED);
        free(rows_a);
        free(rows_b);
        gpu_coord_set_free(env, &coord_sets[2]);
    }
    gpu_coord_set_free(env, &coord_sets[0]);
    gpu_coord_set_free(env, &coord_sets[1]);
    free(coords_a);
    free(coords_b);
    free(a.keys);
    free(b.keys);
    free(both.keys);
}

static void unions(struct gpu_env *env)
{
    check_union(env, 0, 0);
    check_union(env, 0, 700);
    check_union(env, 700, 0);
    check_union(env, 1, 1);
    check_union(env, 3000, 2000);
    check_union(env, 60000, 150000);
}

static void test_union_has_the_rows_of_both_and_says_whose(void)
{
    gpu_each_backend(unions);
}

static void check_subset(struct gpu_env *env, size_t n, uint64_t one_in)
{
    int32_t *coords = gpu_model_random(n, 2, false, n + 9);
    struct gpu_model all = gpu_model_of(coords, n, 2, unbounded);
    struct gpu_model kept = {gpu_alloc((n + 1) * sizeof(uint64_t)), 0};
    int32_t *origins = gpu_alloc((n + 1) * sizeof *origins);
    uint8_t *keep = gpu_alloc(n + 6);
    uint64_t state = n;
    size_t n_wrong;
    struct gpu_coord_set coord_sets[2];
    int32_t *rows_a;
    int32_t *rows_b;

    for (size_t i = 0; i < n + 5; i++) { /* values after the rows are ignored */
        keep[i] = gpu_random(&state) % one_in == 0 ? (uint8_t)(1 + i % 255) : 0;
        if (i < all.n && keep[i] != 0) {
            origins[kept.n] = (int32_t)i;
            kept.keys[kept.n++] = all.keys[i];
        }
    }
    CHECK_INT(
        gpu_coord_set_make(env, coords, n, 2, unbounded, n + 5, NULL, &coord_sets[0]),
        VXD_OK);
    gpu_coord_set_alloc(env, &coord_sets[1], kept.n, unbounded);
    CHECK_INT(combine(env, &coord_sets[0], NULL, keep, &coord_sets[1], &rows_a, &rows_b),
              VXD_OK);
    n_wrong = gpu_model_other_rows(&coord_sets[1], &kept) +
              gpu_model_other_blocks(env, &coord_sets[1], &kept);
    for (size_t i = 0; i < kept.n; i++) {
        n_wrong += rows_a[i] != origins[i];
    }
    CHECK_INT(n_wrong, 0);
    gpu_coord_set_free(env, &coord_sets[0]);
    gpu_coord_set_free(env, &coord_sets[1]);
    free(rows_a);
    free(rows_b);
    free(coords);
    free(keep);
    free(origins);
    free(all.keys);
    free(kept.keys);
}

static void subsets(struct gpu_env *env)
{
    check_subset(env, 0, 2);
    check_subset(env, 1, 1);
    check_subset(env, 3000, 2);
    check_subset(env, 150000, 1);
    check_subset(env, 150000, 40);
}

static void test_subset_has_the_rows_kept_and_says_which(void)
{
    gpu_each_backend(subsets);
}

static void samples(struct gpu_env *env)
{
    static const int32_t times[3] = {4, 1, 8192};
    size_t n = 20000;
    int32_t *coords = gpu_model_random(n, 7, false, 21);
    struct gpu_model model;
    struct gpu_coord_set coord_set;
    struct vxd_buffer d_coords;
    struct vxd_buffer d_starts = gpu_to_device(env, NULL, 10 * sizeof(uint32_t));
    int32_t *scaled;
    uint32_t *starts;
    size_t n_wrong = 0;
    struct vxd_err err = {0};

    for (size_t i = 0; i < n; i++) {
        coords[4 * i] += coords[4 * i] >= 3; /* sample 3 is empty */
    }
    model = gpu_model_of(coords, n, 9, unbounded);
    CHECK_INT(gpu_coord_set_make(env, coords, n, 9, unbounded, n, NULL, &coord_set),
              VXD_OK);
    d_coords = gpu_to_device(env, NULL, n * 16);
    CHECK_INT(vxd_coord_set_coords(env->queue, &coord_set.coord_set, times, 9,
                                   d_coords.ptr, d_starts.ptr, &err),
              VXD_OK);
    scaled = gpu_to_host(env, &d_coords);
    starts = gpu_to_host(env, &d_starts);
    for (size_t i = 0; i < model.n; i++) {
        int32_t c[4];

        gpu_model_coords(model.keys[i], c);
        n_wrong += scaled[4 * i] != c[0];
        for (int axis = 0; axis < 3; axis++) {
            n_wrong += scaled[4 * i + 1 + (size_t)axis] != c[1 + axis] * times[axis];
        }
        n_wrong += i < starts[c[0]] || i >= starts[c[0] + 1];
    }
    CHECK_INT(n_wrong, 0);
    CHECK_INT(starts[0], 0);
    CHECK_INT(starts[3], starts[4]);
    CHECK_INT(starts[9], model.n);
    vxd_device_free(env->queue, &d_coords);
    vxd_device_free(env->queue, &d_starts);
    gpu_coord_set_free(env, &coord_set);
    free(scaled);
    free(starts);
    free(model.keys);
    free(coords);
}

static void test_coordinates_are_scaled_and_samples_found(void)
{
    gpu_each_backend(samples);
}

static void faults(struct gpu_env *env)
{
    static const int32_t corner[8] = {0, 1, 2, 3, 0, 131071, 0, 0};
    const struct vxd_sparse_geometry up = {
        {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, true};
    struct gpu_coord_set coord_set;
    struct gpu_coord_set out;

    CHECK_INT(gpu_coord_set_make(env, corner, 2, 1, unbounded, 1, NULL, &coord_set),
              VXD_RESOURCE_EXHAUSTED);
    gpu_coord_set_fetch(env, &coord_set);
    CHECK_INT(coord_set.n_rows, 0);
    gpu_coord_set_free(env, &coord_set);
    CHECK_INT(gpu_coord_set_make(env, corner, 2, 1, unbounded, 2, NULL, &coord_set),
              VXD_OK);
    CHECK_INT(gpu_coord_set_derive(env, VXD_DERIVE_SUPPORT, &up, &coord_set, unbounded,
                                   16, &out),
              VXD_OUT_OF_RANGE);
    gpu_coord_set_fetch(env, &out);
    CHECK_INT(out.n_rows, 0);
    gpu_coord_set_free(env, &coord_set);
    gpu_coord_set_free(env, &out);
}

static void test_set_that_cannot_be_is_empty_and_the_wait_says_why(void)
{
    gpu_each_backend(faults);
}

/* Research 1.1, cloud A: convolutions of kernel 3, stride 2, padding 1 one after another. */
static void centerpoint_coord_sets(struct gpu_env *env)
{
    static const uint32_t support[3] = {69276, 29723, 10335};
    static const uint32_t floors[3] = {35727, 13345, 4413};
    const struct vxd_sparse_geometry centred = {
        {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, false};
    struct vxd_sparse_geometry last = centred;
    size_t n_bytes = 0;
    int32_t *words =
        gpu_read_data("lidar/centerpoint_in_indices_zyx.int32.tensor", &n_bytes);
    int32_t *coords = words + (n_bytes - (size_t)79745 * 16) / 4;
    int32_t shape[3] = {1440, 1440, 41};

    last.padding[2] = 0;
    for (size_t i = 0; i < 79745; i++) {
        int32_t z = coords[4 * i + 1];

        coords[4 * i + 1] = coords[4 * i + 3];
        coords[4 * i + 3] = z;
    }
    for (int rule = 0; rule < 2; rule++) {
        struct gpu_coord_set coord_set;

        CHECK_INT(gpu_coord_set_make(env, coords, 79745, 1, rule == 0 ? shape : unbounded,
                                     79745, NULL, &coord_set),
                  VXD_OK);
        CHECK_INT(coord_set.n_rows, 79745);
        for (int layer = 0; layer < 3; layer++) {
            const struct vxd_sparse_geometry *g =
                rule == 0 && layer == 2 ? &last : &centred;
            int32_t out_shape[3];
            struct gpu_coord_set out;

            CHECK_INT(
                vxd_sparse_out_shape(g, coord_set.coord_set.shape, NULL, out_shape, NULL),
                VXD_OK);
            CHECK_INT(gpu_coord_set_derive(env, (enum vxd_sparse_derive)rule, g,
                                           &coord_set, out_shape, 80000, &out),
                      VXD_OK);
            CHECK_INT(out.n_rows, rule == 0 ? support[layer] : floors[layer]);
            gpu_coord_set_free(env, &coord_set);
            coord_set = out;
        }
        gpu_coord_set_free(env, &coord_set);
    }
    free(words);
}

static void test_centerpoint_frame_has_the_sets_of_the_research(void)
{
    size_t n_bytes = 0;
    void *words =
        gpu_read_data("lidar/centerpoint_in_indices_zyx.int32.tensor", &n_bytes);

    free(words);
    if (n_bytes < (size_t)79745 * 16) {
        SKIP("no data directory (set VOXELD_DATA)");
    }
    gpu_each_backend(centerpoint_coord_sets);
}

static void test_out_shape_is_at_most_the_largest(void)
{
    enum {
        LARGEST = 1 << 17
    };
    const struct vxd_sparse_geometry same = {
        .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    struct vxd_sparse_geometry wider = {.kernel = {2, 2, 2},
                                        .stride = {2, 2, 2},
                                        .dilation = {1, 1, 1},
                                        .transposed = true};
    int32_t shape[3] = {LARGEST, 1, 0};
    int32_t out[3];
    struct vxd_err err = {0};

    CHECK_INT(vxd_sparse_out_shape(&same, shape, NULL, out, &err), VXD_OK);
    CHECK(out[0] == LARGEST && out[1] == 1 && out[2] == 0);
    for (int axis = 0; axis < 3; axis++) {
        const int32_t one[3] = {axis == 0, axis == 1, axis == 2};

        for (int i = 0; i < 3; i++) {
            shape[i] = i == axis ? LARGEST / 2 : 3;
        }
        CHECK_INT(vxd_sparse_out_shape(&wider, shape, NULL, out, &err), VXD_OK);
        CHECK(out[axis] == LARGEST && out[(axis + 1) % 3] == 6);
        CHECK_INT(vxd_sparse_out_shape(&wider, shape, one, out, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "shape");
    }
    /* A kernel that does not fit within the input leaves no cell. */
    wider = same;
    wider.kernel[1] = 3;
    shape[0] = shape[1] = shape[2] = 3;
    CHECK_INT(vxd_sparse_out_shape(&wider, shape, NULL, out, &err), VXD_OK);
    CHECK(out[0] == 3 && out[1] == 1 && out[2] == 3);
    shape[1] = 2;
    CHECK_INT(vxd_sparse_out_shape(&wider, shape, NULL, out, &err), VXD_INVALID_ARGUMENT);
}

/* The functions by which CUDA's kernels compute keys of other levels. */
static void test_keys_of_coarser_and_finer_cells_are_what_division_gives(void)
{
    static const int32_t edges[6] = {-131072, -65537, -65536, 65535, 65536, 131071};
    uint64_t state = 3;
    size_t n_wrong = 0;

    for (size_t i = 0; i < 20000; i++) {
        int levels = (int)(i % VXD_SPARSE_COORD_BITS);
        int32_t c[4] = {(int32_t)(gpu_random(&state) % 1023)};
        int32_t coarse[4] = {c[0]};
        int32_t fine[4] = {c[0]};
        bool is_held = true;
        uint64_t key;

        for (int axis = 1; axis < 4; axis++) {
            int32_t any = (int32_t)(gpu_random(&state) % 262144) - 131072;
            bool is_near = gpu_random(&state) % 2 != 0;

            c[axis] = i % 5 == 0 ? edges[gpu_random(&state) % 6]
                      : is_near  ? any / 64
                                 : any;
            coarse[axis] = (int32_t)floor(ldexp(c[axis], -levels));
            fine[axis] = 2 * c[axis];
            is_held = is_held && fine[axis] >= -131072 && fine[axis] < 131072;
        }
        n_wrong +=
            vxd_sparse_key_floor(gpu_model_key(c), levels) != gpu_model_key(coarse);
        n_wrong += vxd_sparse_key_double(gpu_model_key(c), &key) != is_held;
        n_wrong += is_held && key != gpu_model_key(fine);
    }
    CHECK_INT(n_wrong, 0);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_set_of_any_coordinates_has_them_once_in_order),
    VXD_TEST(test_set_of_one_coordinate_many_times_has_one_row),
    VXD_TEST(test_floor_set_of_a_big_set_is_what_division_gives),
    VXD_TEST(test_support_in_a_shape_is_what_every_tap_reaches),
    VXD_TEST(test_union_has_the_rows_of_both_and_says_whose),
    VXD_TEST(test_subset_has_the_rows_kept_and_says_which),
    VXD_TEST(test_out_shape_is_at_most_the_largest),
    VXD_TEST(test_keys_of_coarser_and_finer_cells_are_what_division_gives),
    VXD_TEST(test_coordinates_are_scaled_and_samples_found),
    VXD_TEST(test_set_that_cannot_be_is_empty_and_the_wait_says_why),
    VXD_TEST(test_centerpoint_frame_has_the_sets_of_the_research),
};

VXD_TEST_MAIN(tests)
