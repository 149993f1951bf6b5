// SPDX-License-Identifier: Apache-2.0
/* Coordinate sets of any size against sorted lists of keys on the host. */
#include "tests/unit/gpu_sparse.h"
#include "tests/unit/test.h"

static const int32_t unbounded[3] = {0, 0, 0};

/* Key of a row, bit by bit; a list of them is the model of a set. */
static uint64_t key_of(const int32_t c[4])
{
    uint64_t code = 0;

    for (int bit = 17; bit >= 0; bit--) {
        for (int axis = 0; axis < 3; axis++) {
            code = code << 1 | ((uint64_t)(c[1 + axis] + 131072) >> bit & 1);
        }
    }
    return (uint64_t)c[0] << 54 | code;
}

static void coords_of(uint64_t key, int32_t c[4])
{
    c[0] = (int32_t)(key >> 54);
    for (int axis = 0; axis < 3; axis++) {
        int32_t code = 0;

        for (int bit = 17; bit >= 0; bit--) {
            code = code * 2 + (int32_t)(key >> (3 * bit + 2 - axis) & 1);
        }
        c[1 + axis] = code - 131072;
    }
}

struct model {
    uint64_t *keys;
    size_t n;
};

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Sorts, drops duplicates. */
static void model_close_up(struct model *model)
{
    size_t n = 0;

    qsort(model->keys, model->n, sizeof *model->keys, compare_keys);
    for (size_t i = 0; i < model->n; i++) {
        if (i == 0 || model->keys[i] != model->keys[i - 1]) {
            model->keys[n++] = model->keys[i];
        }
    }
    model->n = n;
}

static struct model model_of(const int32_t *coords, size_t n, int n_samples,
                             const int32_t shape[3])
{
    struct model model = {gpu_alloc((n + 1) * sizeof(uint64_t)), 0};

    for (size_t i = 0; i < n; i++) {
        const int32_t *c = coords + 4 * i;
        bool is_in = c[0] >= 0 && c[0] < n_samples;

        for (int axis = 1; axis < 4; axis++) {
            int32_t cells = shape[axis - 1];

            is_in = is_in && c[axis] >= -131072 && c[axis] < 131072 &&
                    (cells == 0 || (c[axis] >= 0 && c[axis] < cells));
        }
        if (is_in) {
            model.keys[model.n++] = key_of(c);
        }
    }
    model_close_up(&model);
    return model;
}

/* Row of a key, or -1. */
static int32_t model_row(const struct model *model, uint64_t key)
{
    const uint64_t *at =
        model->n == 0 ? NULL
                      : bsearch(&key, model->keys, model->n, sizeof key, compare_keys);

    return at != NULL ? (int32_t)(at - model->keys) : -1;
}

static size_t n_other_rows(const struct gpu_set *set, const struct model *model)
{
    size_t n_wrong = set->n_rows != model->n;

    for (size_t i = 0; i < set->n_rows && i < model->n; i++) {
        n_wrong += key_of(set->coords + 4 * i) != model->keys[i];
    }
    return n_wrong;
}

/* Blocks as set.h describes them; the table is the backend's own and shows in kernel maps. */
static size_t n_other_blocks(struct gpu_env *env, const struct gpu_set *set,
                             const struct model *model)
{
    uint64_t *keys = gpu_alloc((model->n + 1) * sizeof *keys);
    uint64_t *masks = gpu_alloc((model->n + 1) * sizeof *masks);
    uint32_t *rows = gpu_alloc((model->n + 1) * sizeof *rows);
    uint32_t n_blocks = 0;
    size_t n = 0;
    size_t n_wrong = 0;
    struct vxd_err err = {0};

    CHECK_INT(vxd_queue_copy(env->queue, keys, set->set.block_keys, model->n * 8, &err),
              VXD_OK);
    CHECK_INT(vxd_queue_copy(env->queue, masks, set->set.block_mask, model->n * 8, &err),
              VXD_OK);
    CHECK_INT(vxd_queue_copy(env->queue, rows, set->set.block_row, model->n * 4, &err),
              VXD_OK);
    CHECK_INT(vxd_queue_copy(env->queue, &n_blocks, set->set.n_blocks, 4, &err), VXD_OK);
    gpu_wait(env);
    for (size_t i = 0; i < model->n; n++) {
        uint64_t mask = 0;
        size_t first = i;

        for (; i < model->n && model->keys[i] >> 6 == model->keys[first] >> 6; i++) {
            mask |= (uint64_t)1 << (model->keys[i] & 63);
        }
        n_wrong += n >= n_blocks || keys[n] != model->keys[first] >> 6 ||
                   masks[n] != mask || rows[n] != first;
    }
    free(keys);
    free(masks);
    free(rows);
    return n_wrong + (n_blocks != n);
}

/* A cloud like a scan's: cells along walls, in sample order or not, few outside. */
static int32_t *random_coords(size_t n, int n_samples, bool has_strays, uint64_t seed)
{
    uint64_t state = seed;
    int32_t *coords = gpu_alloc((n + 1) * 4 * sizeof *coords);

    for (size_t i = 0; i < n; i++) {
        uint64_t bits = gpu_random(&state);
        int32_t *c = coords + 4 * i;

        c[0] = (int32_t)(bits % (uint64_t)n_samples);
        c[1] = (int32_t)(bits >> 8 & 1023) - 300;
        c[2] = c[1] / 2 + (int32_t)(bits >> 20 & 15);
        c[3] = (int32_t)(bits >> 30 & 63) - 32;
        if (has_strays && (bits >> 40 & 31) == 0) {
            c[bits >> 50 & 3] = (int32_t)(bits >> 45 & 1) == 0 ? -131073 : 131072;
        }
    }
    return coords;
}

static void sort_coords(int32_t *coords, size_t n)
{
    uint64_t *keys = gpu_alloc((n + 1) * sizeof *keys);

    for (size_t i = 0; i < n; i++) {
        keys[i] = key_of(coords + 4 * i);
    }
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 0; i < n; i++) {
        coords_of(keys[i], coords + 4 * i);
    }
    free(keys);
}

static void check_make(struct gpu_env *env, const int32_t *coords, size_t n,
                       int n_samples, const int32_t shape[3])
{
    struct model model = model_of(coords, n, n_samples, shape);
    int32_t *rows = gpu_alloc((n + 1) * sizeof *rows);
    size_t n_wrong;
    struct gpu_set set;

    CHECK_INT(gpu_set_make(env, coords, n, n_samples, shape, model.n, rows, &set),
              VXD_OK);
    n_wrong = n_other_rows(&set, &model) + n_other_blocks(env, &set, &model);
    for (size_t i = 0; i < n; i++) {
        struct model one = model_of(coords + 4 * i, 1, n_samples, shape);

        n_wrong += rows[i] != (one.n == 0 ? -1 : model_row(&model, one.keys[0]));
        free(one.keys);
    }
    if (n_wrong > 0) {
        (void)fprintf(stderr, "%s: %zu coordinates: %zu differences\n", env->name, n,
                      n_wrong);
    }
    CHECK_INT(n_wrong, 0);
    gpu_set_close(env, &set);
    free(rows);
    free(model.keys);
}

static void make_of_any_size(struct gpu_env *env)
{
    static const size_t sizes[] = {0, 1, 2, 255, 256, 257, 1025, 33000, 300001};
    static const int32_t shape[3] = {700, 200, 0};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i];
        int32_t *coords = random_coords(n, 3, true, i + 1);

        check_make(env, coords, n, 3, unbounded);
        check_make(env, coords, n, 2, shape);
        free(coords);
        coords = random_coords(n, 3, false, i + 1);
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

/* floor(c / stride), by steps of one. */
static struct model floors_of(const struct model *model, const int32_t stride[3])
{
    struct model out = {gpu_alloc((model->n + 1) * sizeof(uint64_t)), model->n};

    for (size_t i = 0; i < model->n; i++) {
        int32_t c[4];

        coords_of(model->keys[i], c);
        for (int axis = 0; axis < 3; axis++) {
            while (c[1 + axis] % stride[axis] != 0) {
                c[1 + axis]--;
            }
            c[1 + axis] /= stride[axis];
        }
        out.keys[i] = key_of(c);
    }
    model_close_up(&out);
    return out;
}

static void floors(struct gpu_env *env)
{
    static const int32_t strides[5][3] = {
        {2, 2, 2}, {1, 1, 1}, {64, 64, 64}, {3, 3, 3}, {2, 2, 1}};
    size_t n = 200000;
    int32_t *coords = random_coords(n, 3, false, 77);
    struct model model;
    struct gpu_set set;

    coords[1] = coords[2] = coords[3] = -131072;
    coords[5] = coords[6] = coords[7] = 131071;
    model = model_of(coords, n, 3, unbounded);
    CHECK_INT(gpu_set_make(env, coords, n, 3, unbounded, n, NULL, &set), VXD_OK);
    for (int i = 0; i < 5; i++) {
        struct vxd_sparse_geometry geometry = {
            {3, 3, 3}, {0}, {1, 1, 1}, {1, 1, 1}, false};
        struct model expected = floors_of(&model, strides[i]);
        struct gpu_set out;

        memcpy(geometry.stride, strides[i], sizeof geometry.stride);
        CHECK_INT(gpu_set_derive(env, VXD_DERIVE_FLOOR, &geometry, &set, unbounded,
                                 expected.n, &out),
                  VXD_OK);
        CHECK_INT(n_other_rows(&out, &expected), 0);
        CHECK_INT(n_other_blocks(env, &out, &expected), 0);
        gpu_set_close(env, &out);
        CHECK_INT(gpu_set_derive(env, VXD_DERIVE_FLOOR, &geometry, &set, unbounded,
                                 expected.n - 1, &out),
                  VXD_RESOURCE_EXHAUSTED);
        gpu_set_close(env, &out);
        free(expected.keys);
    }
    gpu_set_close(env, &set);
    free(model.keys);
    free(coords);
}

static void test_floor_set_of_a_big_set_is_what_division_gives(void)
{
    gpu_each_backend(floors);
}

/* Levels as networks have them, and others between: each is of the set before it that `of`
 * names, 0 being the input. */
static void chain(struct gpu_env *env)
{
    enum {
        N = 12
    };
    static const struct {
        int of;
        int32_t stride;
    } links[N] = {{0, 2}, {1, 2}, {1, 4}, {3, 2}, {0, 3},  {5, 2},
                  {6, 2}, {0, 8}, {8, 1}, {2, 2}, {10, 2}, {11, 2}};
    size_t n = 120000;
    int32_t *coords = random_coords(n, 3, false, 78);
    struct model models[N + 1];
    struct gpu_set sets[N + 1];
    struct vxd_sparse_derive_request requests[N];
    struct vxd_buffer scratch =
        gpu_to_device(env, NULL, vxd_sparse_set_scratch_bytes(env->queue, n, n));
    struct vxd_err err = {0};

    models[0] = model_of(coords, n, 3, unbounded);
    CHECK_INT(gpu_set_make(env, coords, n, 3, unbounded, n, NULL, &sets[0]), VXD_OK);
    for (int i = 0; i < N; i++) {
        int32_t s = links[i].stride;
        int32_t strides[3] = {s, s, s};

        models[i + 1] = floors_of(&models[links[i].of], strides);
        gpu_set_open(env, &sets[i + 1], models[i + 1].n, unbounded);
        requests[i] = (struct vxd_sparse_derive_request){
            VXD_DERIVE_FLOOR,
            {{2, 2, 2}, {s, s, s}, {0, 0, 0}, {1, 1, 1}, false},
            &sets[links[i].of].set,
            &sets[i + 1].set};
    }
    CHECK_INT(vxd_sparse_sets_derive(env->queue, requests, N, scratch.ptr,
                                     scratch.n_bytes, &err),
              VXD_OK);
    for (int i = 0; i <= N; i++) {
        gpu_set_fetch(env, &sets[i]);
        CHECK_INT(n_other_rows(&sets[i], &models[i]), 0);
        CHECK_INT(n_other_blocks(env, &sets[i], &models[i]), 0);
        gpu_set_close(env, &sets[i]);
        free(models[i].keys);
    }
    vxd_device_free(env->queue, &scratch);
    free(coords);
    gpu_wait(env);
}

/* Links of a chain of supports, each of the set before; the fourth leaves cells out, so no
 * ranges are kept. */
static const struct vxd_sparse_geometry chain_links[] = {
    {{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, false},
    {{3, 3, 3}, {2, 2, 2}, {1, 1, 0}, {1, 1, 1}, false},
    {{1, 1, 3}, {1, 1, 2}, {0, 0, 0}, {1, 1, 1}, false},
    {{2, 2, 1}, {3, 2, 1}, {0, 1, 0}, {1, 1, 1}, false},
    {{5, 3, 3}, {3, 1, 2}, {2, 1, 0}, {1, 1, 1}, false},
    {{2, 3, 2}, {1, 3, 2}, {0, 0, 1}, {1, 1, 1}, false}};

enum {
    N_LINKS = (int)(sizeof chain_links / sizeof chain_links[0])
};

/* n random cells of a shape in three samples; together and one by one. */
static void check_supports(struct gpu_env *env, size_t n, const int32_t shape[3])
{
    int32_t *coords = random_coords(n, 3, true, n);
    struct gpu_set alone[N_LINKS + 1];
    struct gpu_set sets[N_LINKS + 1];
    struct vxd_sparse_derive_request requests[N_LINKS];
    struct vxd_buffer scratch;
    size_t scratch_bytes = 0;
    int32_t shapes[N_LINKS + 1][3];
    struct vxd_err err = {0};

    memcpy(shapes[0], shape, sizeof shapes[0]);
    for (size_t i = 0; i < n; i++) {
        for (int axis = 0; axis < 3; axis++) {
            int32_t *c = &coords[4 * i + 1 + (size_t)axis];

            *c = (int32_t)((uint32_t)*c % (uint32_t)shape[axis]);
        }
    }
    CHECK_INT(gpu_set_make(env, coords, n, 3, shape, n, NULL, &alone[0]), VXD_OK);
    sets[0] = alone[0];
    for (int i = 0; i < N_LINKS; i++) {
        size_t n_candidates;
        size_t n_bytes;
        size_t capacity;

        CHECK_INT(
            vxd_sparse_out_shape(&chain_links[i], shapes[i], NULL, shapes[i + 1], &err),
            VXD_OK);
        capacity = vxd_sparse_derive_bound(VXD_DERIVE_SUPPORT, &chain_links[i],
                                           alone[i].n_rows, shapes[i + 1], 3);
        CHECK_INT(gpu_set_derive(env, VXD_DERIVE_SUPPORT, &chain_links[i], &alone[i],
                                 shapes[i + 1], capacity, &alone[i + 1]),
                  VXD_OK);
        gpu_set_open(env, &sets[i + 1], alone[i + 1].n_rows, shapes[i + 1]);
        n_candidates = vxd_sparse_derive_candidates(VXD_DERIVE_SUPPORT, &chain_links[i],
                                                    sets[i].set.capacity);
        n_bytes = vxd_sparse_set_scratch_bytes(env->queue, n_candidates, capacity);
        scratch_bytes = n_bytes > scratch_bytes ? n_bytes : scratch_bytes;
        requests[i] = (struct vxd_sparse_derive_request){
            VXD_DERIVE_SUPPORT, chain_links[i], &sets[i].set, &sets[i + 1].set};
    }
    scratch = gpu_to_device(env, NULL, scratch_bytes);
    CHECK_INT(vxd_sparse_sets_derive(env->queue, requests, N_LINKS, scratch.ptr,
                                     scratch.n_bytes, &err),
              VXD_OK);
    for (int i = 1; i <= N_LINKS; i++) {
        struct model model;

        gpu_set_fetch(env, &sets[i]);
        CHECK(n == 1 || alone[i].n_rows > 0);
        model = model_of(alone[i].coords, alone[i].n_rows, 3, shapes[i]);
        CHECK_INT(n_other_rows(&sets[i], &model), 0);
        CHECK_INT(n_other_blocks(env, &sets[i], &model), 0);
        gpu_set_close(env, &sets[i]);
        gpu_set_close(env, &alone[i]);
        free(model.keys);
    }
    gpu_set_close(env, &alone[0]);
    vxd_device_free(env->queue, &scratch);
    free(coords);
    gpu_wait(env);
}

static void supports_in_chains(struct gpu_env *env)
{
    static const int32_t small[3] = {96, 64, 41};
    static const int32_t big[3] = {1440, 1440, 41};

    check_supports(env, 20000, small);
    check_supports(env, 60000, big);
    check_supports(env, 300, big); /* no room for tables */
    check_supports(env, 1, small);
}

static void test_supports_derived_together_are_those_derived_one_by_one(void)
{
    gpu_each_backend(supports_in_chains);
}

static void test_sets_derived_together_are_those_derived_one_by_one(void)
{
    gpu_each_backend(chain);
}

/* Shapes that have a table: everything of a layer of cells, and next to nothing. */
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
        int32_t *coords = random_coords(n, n_samples, false, (uint64_t)i);
        struct model in = model_of(coords, n, n_samples, shape);
        struct model out = {gpu_alloc((in.n * 27 + 1) * sizeof(uint64_t)), 0};
        int32_t out_shape[3];
        struct gpu_set sets[2];

        CHECK_INT(vxd_sparse_out_shape(g, shape, NULL, out_shape, NULL), VXD_OK);
        for (size_t j = 0; j < in.n * 27; j++) {
            int tap[3] = {(int)(j % 3), (int)(j / 3 % 3), (int)(j / 9 % 3)};
            bool is_in = true;
            int32_t c[4];

            coords_of(in.keys[j / 27], c);
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
                out.keys[out.n++] = key_of(c);
            }
        }
        model_close_up(&out);
        CHECK_INT(gpu_set_make(env, coords, n, n_samples, shape, n, NULL, &sets[0]),
                  VXD_OK);
        CHECK_INT(gpu_set_derive(env, VXD_DERIVE_SUPPORT, g, &sets[0], out_shape, out.n,
                                 &sets[1]),
                  VXD_OK);
        CHECK_INT(n_other_rows(&sets[1], &out), 0);
        CHECK_INT(n_other_blocks(env, &sets[1], &out), 0);
        gpu_set_close(env, &sets[1]);
        if (out.n > 0) {
            CHECK_INT(gpu_set_derive(env, VXD_DERIVE_SUPPORT, g, &sets[0], out_shape,
                                     out.n - 1, &sets[1]),
                      VXD_RESOURCE_EXHAUSTED);
            gpu_set_close(env, &sets[1]);
        }
        gpu_set_close(env, &sets[0]);
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
static enum vxd_status combine(struct gpu_env *env, const struct gpu_set *a,
                               const struct gpu_set *b, const uint8_t *keep,
                               struct gpu_set *out, int32_t **rows_a, int32_t **rows_b)
{
    size_t n = a->set.capacity + (b != NULL ? b->set.capacity : 0);
    size_t n_bytes = vxd_sparse_set_scratch_bytes(env->queue, n, out->set.capacity);
    struct vxd_buffer scratch = gpu_to_device(env, NULL, n_bytes);
    struct vxd_buffer d_keep = gpu_to_device(env, keep, a->set.capacity);
    struct vxd_buffer d_rows[2];
    struct vxd_err err = {0};
    enum vxd_status status;

    for (int i = 0; i < 2; i++) {
        d_rows[i] = gpu_to_device(env, NULL, (out->set.capacity + 1) * sizeof(int32_t));
    }
    if (b != NULL) {
        VXD_TRY(vxd_sparse_set_union(env->queue, &a->set, &b->set, &out->set,
                                     d_rows[0].ptr, d_rows[1].ptr, scratch.ptr,
                                     scratch.n_bytes, &err));
    } else {
        VXD_TRY(vxd_sparse_set_subset(env->queue, &a->set, d_keep.ptr, &out->set,
                                      d_rows[0].ptr, scratch.ptr, scratch.n_bytes, &err));
    }
    VXD_TRY(vxd_queue_wait(env->queue, &err));
    gpu_set_fetch(env, out);
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
    int32_t *coords_a = random_coords(n_a, 2, false, n_a + 3);
    int32_t *coords_b = random_coords(n_b, 2, false, n_b + 4);
    struct model a = model_of(coords_a, n_a, 2, unbounded);
    struct model b = model_of(coords_b, n_b, 2, unbounded);
    struct model both = {gpu_alloc((a.n + b.n + 1) * sizeof(uint64_t)), a.n + b.n};
    size_t n_wrong;
    struct gpu_set sets[3];
    int32_t *rows_a;
    int32_t *rows_b;

    memcpy(both.keys, a.keys, a.n * sizeof *a.keys);
    memcpy(both.keys + a.n, b.keys, b.n * sizeof *b.keys);
    model_close_up(&both);
    CHECK_INT(gpu_set_make(env, coords_a, n_a, 2, unbounded, n_a + 5, NULL, &sets[0]),
              VXD_OK);
    CHECK_INT(gpu_set_make(env, coords_b, n_b, 2, unbounded, n_b, NULL, &sets[1]),
              VXD_OK);
    gpu_set_open(env, &sets[2], both.n, unbounded);
    CHECK_INT(combine(env, &sets[0], &sets[1], NULL, &sets[2], &rows_a, &rows_b), VXD_OK);
    n_wrong = n_other_rows(&sets[2], &both) + n_other_blocks(env, &sets[2], &both);
    for (size_t i = 0; i < both.n; i++) {
        n_wrong += rows_a[i] != model_row(&a, both.keys[i]);
        n_wrong += rows_b[i] != model_row(&b, both.keys[i]);
    }
    CHECK_INT(n_wrong, 0);
    free(rows_a);
    free(rows_b);
    gpu_set_close(env, &sets[2]);
    if (both.n > 0) {
        gpu_set_open(env, &sets[2], both.n - 1, unbounded);
        CHECK_INT(combine(env, &sets[0], &sets[1], NULL, &sets[2], &rows_a, &rows_b),
                  VXD_RESOURCE_EXHAUSTED);
        free(rows_a);
        free(rows_b);
        gpu_set_close(env, &sets[2]);
    }
    gpu_set_close(env, &sets[0]);
    gpu_set_close(env, &sets[1]);
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
    int32_t *coords = random_coords(n, 2, false, n + 9);
    struct model all = model_of(coords, n, 2, unbounded);
    struct model kept = {gpu_alloc((n + 1) * sizeof(uint64_t)), 0};
    int32_t *origins = gpu_alloc((n + 1) * sizeof *origins);
    uint8_t *keep = gpu_alloc(n + 6);
    uint64_t state = n;
    size_t n_wrong;
    struct gpu_set sets[2];
    int32_t *rows_a;
    int32_t *rows_b;

    for (size_t i = 0; i < n + 5; i++) { /* what is past the rows counts for nothing */
        keep[i] = gpu_random(&state) % one_in == 0 ? (uint8_t)(1 + i % 255) : 0;
        if (i < all.n && keep[i] != 0) {
            origins[kept.n] = (int32_t)i;
            kept.keys[kept.n++] = all.keys[i];
        }
    }
    CHECK_INT(gpu_set_make(env, coords, n, 2, unbounded, n + 5, NULL, &sets[0]), VXD_OK);
    gpu_set_open(env, &sets[1], kept.n, unbounded);
    CHECK_INT(combine(env, &sets[0], NULL, keep, &sets[1], &rows_a, &rows_b), VXD_OK);
    n_wrong = n_other_rows(&sets[1], &kept) + n_other_blocks(env, &sets[1], &kept);
    for (size_t i = 0; i < kept.n; i++) {
        n_wrong += rows_a[i] != origins[i];
    }
    CHECK_INT(n_wrong, 0);
    gpu_set_close(env, &sets[0]);
    gpu_set_close(env, &sets[1]);
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
    int32_t *coords = random_coords(n, 7, false, 21);
    struct model model;
    struct gpu_set set;
    struct vxd_buffer d_coords;
    struct vxd_buffer d_starts = gpu_to_device(env, NULL, 10 * sizeof(uint32_t));
    int32_t *scaled;
    uint32_t *starts;
    size_t n_wrong = 0;
    struct vxd_err err = {0};

    for (size_t i = 0; i < n; i++) {
        coords[4 * i] += coords[4 * i] >= 3; /* sample 3 is empty */
    }
    model = model_of(coords, n, 9, unbounded);
    CHECK_INT(gpu_set_make(env, coords, n, 9, unbounded, n, NULL, &set), VXD_OK);
    d_coords = gpu_to_device(env, NULL, n * 16);
    CHECK_INT(vxd_sparse_set_coords(env->queue, &set.set, times, 9, d_coords.ptr,
                                    d_starts.ptr, &err),
              VXD_OK);
    scaled = gpu_to_host(env, &d_coords);
    starts = gpu_to_host(env, &d_starts);
    for (size_t i = 0; i < model.n; i++) {
        int32_t c[4];

        coords_of(model.keys[i], c);
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
    gpu_set_close(env, &set);
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
    struct gpu_set set;
    struct gpu_set out;

    CHECK_INT(gpu_set_make(env, corner, 2, 1, unbounded, 1, NULL, &set),
              VXD_RESOURCE_EXHAUSTED);
    gpu_set_fetch(env, &set);
    CHECK_INT(set.n_rows, 0);
    gpu_set_close(env, &set);
    CHECK_INT(gpu_set_make(env, corner, 2, 1, unbounded, 2, NULL, &set), VXD_OK);
    CHECK_INT(gpu_set_derive(env, VXD_DERIVE_SUPPORT, &up, &set, unbounded, 16, &out),
              VXD_OUT_OF_RANGE);
    gpu_set_fetch(env, &out);
    CHECK_INT(out.n_rows, 0);
    gpu_set_close(env, &set);
    gpu_set_close(env, &out);
}

static void test_set_that_cannot_be_is_empty_and_the_wait_says_why(void)
{
    gpu_each_backend(faults);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_set_of_any_coordinates_has_them_once_in_order),
    VXD_TEST(test_set_of_one_coordinate_many_times_has_one_row),
    VXD_TEST(test_floor_set_of_a_big_set_is_what_division_gives),
    VXD_TEST(test_sets_derived_together_are_those_derived_one_by_one),
    VXD_TEST(test_supports_derived_together_are_those_derived_one_by_one),
    VXD_TEST(test_support_in_a_shape_is_what_every_tap_reaches),
    VXD_TEST(test_union_has_the_rows_of_both_and_says_whose),
    VXD_TEST(test_subset_has_the_rows_kept_and_says_which),
    VXD_TEST(test_coordinates_are_scaled_and_samples_found),
    VXD_TEST(test_set_that_cannot_be_is_empty_and_the_wait_says_why),
};

VXD_TEST_MAIN(tests)
