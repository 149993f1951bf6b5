// SPDX-License-Identifier: Apache-2.0
/* Updating value rows in place on a GPU.
 *
 * 1 key      thread a row: its entry's number, the capacity where no entry lives
 * 2 sort     positions by number, stable: the rows of one entry are adjacent, in order
 * 3 combine  thread a place and element: where an entry's rows begin, and at every
 *            VXD_COMBINE_BLOCK-th row after, a thread combines the rows of a block in order; an
 *            entry of one block is written at once
 * 4 join     for entries of several blocks, a thread an element combines the blocks in order
 * So the longest chain is 1024 + n / 1024 rows, as combine_math.h defines the sums. Moved: 24
 * bytes a row and sorting pass, the gathered rows, and the values that change. */
#include "gpu/core/core_cuda.h"
#include "gpu/hash/combine_math.h"
#include "gpu/hash/hash_cuda.h"

#define N_THREADS 256
#define BLOCK ((size_t)VXD_COMBINE_BLOCK)

enum fold_kind {
    FOLD_INT,
    FOLD_FLOAT,
    FOLD_DOUBLE,
    FOLD_EXTREME
};

/* The result of a block of rows, in the form that the kind needs. */
struct partial {
    struct vxd_wide_int sum;
    float float_sum;
    double double_sum;
    uint64_t best; /* element number in rows */
};

struct update_args {
    const uint32_t *live;
    size_t capacity;
    const int32_t *indices;
    size_t n;
    const void *rows;
    char *values;
    size_t row_bytes;
    size_t n_elements;
    enum vxd_dtype dtype; /* of rows */
    enum vxd_dtype own;   /* of the array */
    enum vxd_hash_combine combine;
    uint8_t *updated;
    uint64_t *keys;
    uint32_t *positions;
    struct partial *partials; /* two rows every BLOCK places; see partial_row */
};

static __global__ void __launch_bounds__(N_THREADS)
    key_kernel(const __grid_constant__ struct update_args args)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < args.n) {
        int32_t entry = args.indices[i];
        bool lives = vxd_live_get(args.live, args.capacity, entry);

        args.keys[i] = lives ? (uint64_t)entry : args.capacity;
        args.positions[i] = (uint32_t)i;
        if (args.updated != NULL) {
            args.updated[i] = lives ? 1 : 0;
        }
    }
}

static __device__ __forceinline__ bool is_key_at(const struct update_args *args,
                                                 size_t place, uint64_t key)
{
    return place < args->n && args->keys[place] == key;
}

/* First place in [low, high] from which on the keys are `key`, given that the key at
 * `high` is. */
static __device__ size_t first_of(const struct update_args *args, size_t low, size_t high,
                                  uint64_t key)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (args->keys[middle] == key) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return high;
}

/* Rows of the block that begins at `place`. */
static __device__ size_t n_in_block(const struct update_args *args, size_t place,
                                    uint64_t key)
{
    size_t low = 1;
    size_t high = args->n - place < BLOCK ? args->n - place : BLOCK;

    if (args->keys[place + high - 1] == key) {
        return high;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (args->keys[place + middle] == key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Where the result of the block at `place` of a long entry is stored. Among BLOCK
 * consecutive places at most one first block and one later block of long entries
 * begin. */
static __device__ __forceinline__ struct partial *
partial_row(const struct update_args *args, size_t place, bool is_first)
{
    return args->partials + (place / BLOCK * 2 + (is_first ? 0 : 1)) * args->n_elements;
}

static __device__ __forceinline__ size_t element_of(const struct update_args *args,
                                                    size_t place, size_t e)
{
    return args->positions[place] * args->n_elements + e;
}

template <enum fold_kind KIND>
static __device__ __forceinline__ struct partial
fold_start(const struct update_args *args, size_t element)
{
    struct partial p = {};

    if (KIND == FOLD_INT) {
        p.sum = vxd_int_load(args->dtype, args->rows, element);
    } else if (KIND == FOLD_FLOAT) {
        p.float_sum = vxd_float_load(args->own, args->rows, element);
    } else if (KIND == FOLD_DOUBLE) {
        p.double_sum = vxd_double_load(args->dtype, args->rows, element);
    } else {
        p.best = element;
    }
    return p;
}

/* The later block comes second. */
template <enum fold_kind KIND>
static __device__ __forceinline__ void
fold_join(const struct update_args *args, struct partial *to, const struct partial *next)
{
    if (KIND == FOLD_INT) {
        to->sum = vxd_wide_add(to->sum, next->sum);
    } else if (KIND == FOLD_FLOAT) {
        to->float_sum = vxd_addf(to->float_sum, next->float_sum);
    } else if (KIND == FOLD_DOUBLE) {
        to->double_sum = vxd_addd(to->double_sum, next->double_sum);
    } else if (vxd_element_supersedes(args->combine, args->dtype, args->rows, next->best,
                                      to->best)) {
        to->best = next->best;
    }
}

template <enum fold_kind KIND>
static __device__ __forceinline__ void fold_finish(const struct update_args *args,
                                                   uint64_t entry, size_t e,
                                                   const struct partial *p)
{
    char *to = args->values + entry * args->row_bytes;

    if (KIND == FOLD_INT) {
        vxd_int_store(args->own, to, e,
                      vxd_wide_add(vxd_int_load(args->own, to, e), p->sum));
    } else if (KIND == FOLD_FLOAT) {
        vxd_float_store(args->own, to, e,
                        vxd_addf(vxd_float_load(args->own, to, e), p->float_sum));
    } else if (KIND == FOLD_DOUBLE) {
        vxd_double_store(to, e,
                         vxd_addd(vxd_double_load(VXD_FLOAT64, to, e), p->double_sum));
    } else if (vxd_element_wins(args->combine, args->dtype, args->rows, p->best,
                                args->own, to, e)) {
        vxd_element_copy(args->own, to, e, args->dtype, args->rows, p->best);
    }
}

/* Whether a block of an entry's rows begins at `place`. */
static __device__ __forceinline__ bool
begins_block(const struct update_args *args, size_t place, uint64_t key, bool is_first)
{
    if (is_first) {
        return true;
    }
    if (place < BLOCK || args->keys[place - BLOCK] != key) {
        return false;
    }
    return (place - first_of(args, 0, place - BLOCK, key)) % BLOCK == 0;
}

template <enum fold_kind KIND>
static __global__ void __launch_bounds__(N_THREADS)
    combine_kernel(const __grid_constant__ struct update_args args)
{
    size_t n_items = args.n * args.n_elements;

    for (size_t item = (size_t)blockIdx.x * N_THREADS + threadIdx.x; item < n_items;
         item += (size_t)gridDim.x * N_THREADS) {
        size_t place = item / args.n_elements;
        size_t e = item - place * args.n_elements;
        uint64_t key = args.keys[place];
        bool is_first = place == 0 || args.keys[place - 1] != key;
        struct partial sum;
        size_t n_rows;

        if (key >= args.capacity || !begins_block(&args, place, key, is_first)) {
            continue;
        }
        n_rows = n_in_block(&args, place, key);
        sum = fold_start<KIND>(&args, element_of(&args, place, e));
#pragma unroll 4
        for (size_t i = 1; i < n_rows; i++) {
            struct partial next =
                fold_start<KIND>(&args, element_of(&args, place + i, e));

            fold_join<KIND>(&args, &sum, &next);
        }
        if (is_first && !is_key_at(&args, place + BLOCK, key)) {
            fold_finish<KIND>(&args, key, e, &sum);
        } else {
            partial_row(&args, place, is_first)[e] = sum;
        }
    }
}

template <enum fold_kind KIND>
static __global__ void __launch_bounds__(N_THREADS)
    join_kernel(const __grid_constant__ struct update_args args)
{
    size_t n_items = args.n * args.n_elements;

    for (size_t item = (size_t)blockIdx.x * N_THREADS + threadIdx.x; item < n_items;
         item += (size_t)gridDim.x * N_THREADS) {
        size_t place = item / args.n_elements;
        size_t e = item - place * args.n_elements;
        uint64_t key = args.keys[place];
        struct partial total;

        if (key >= args.capacity || (place > 0 && args.keys[place - 1] == key) ||
            !is_key_at(&args, place + BLOCK, key)) {
            continue;
        }
        total = partial_row(&args, place, true)[e];
        for (size_t at = place + BLOCK; is_key_at(&args, at, key); at += BLOCK) {
            fold_join<KIND>(&args, &total, &partial_row(&args, at, false)[e]);
        }
        fold_finish<KIND>(&args, key, e, &total);
    }
}

/* SET: the last row of each entry. */
static __global__ void __launch_bounds__(N_THREADS)
    set_kernel(const __grid_constant__ struct update_args args)
{
    size_t n_items = args.n * args.n_elements;

    for (size_t item = (size_t)blockIdx.x * N_THREADS + threadIdx.x; item < n_items;
         item += (size_t)gridDim.x * N_THREADS) {
        size_t place = item / args.n_elements;
        size_t e = item - place * args.n_elements;
        uint64_t key = args.keys[place];

        if (key < args.capacity && !is_key_at(&args, place + 1, key)) {
            vxd_element_copy(args.own, args.values + key * args.row_bytes, e, args.dtype,
                             args.rows, element_of(&args, place, e));
        }
    }
}

template <enum fold_kind KIND>
static enum vxd_status combine(struct vxd_queue *queue, const struct update_args *args,
                               unsigned n_blocks, struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;

    combine_kernel<KIND><<<n_blocks, N_THREADS, 0, stream>>>(*args);
    VXD_TRY(vxd_cuda_launched(queue->context, "combine_kernel", err));
    if (args->n > BLOCK) {
        join_kernel<KIND><<<n_blocks, N_THREADS, 0, stream>>>(*args);
        VXD_TRY(vxd_cuda_launched(queue->context, "join_kernel", err));
    }
out:
    return status;
}

struct layout {
    size_t keys[2];
    size_t positions[2];
    size_t partials;
    size_t sort;
    size_t sort_bytes;
    size_t total;
};

static bool lay_out(const struct vxd_hashmap *map,
                    const struct vxd_hashmap_update_args *call, struct layout *out)
{
    size_t n_partials;

    *out = {};
    out->sort_bytes = vxd_sort_pairs_scratch_bytes_cuda(call->n);
    for (int i = 0; i < 2; i++) {
        if (!vxd_layout_add(&out->total, call->n, sizeof(uint64_t), &out->keys[i]) ||
            !vxd_layout_add(&out->total, call->n, sizeof(uint32_t), &out->positions[i])) {
            return false;
        }
    }
    /* An entry has several blocks only where there are more than BLOCK rows. */
    n_partials = call->n > BLOCK && call->combine != VXD_COMBINE_SET
                     ? (call->n / BLOCK + 1) * 2
                     : 0;
    return vxd_size_mul(n_partials, map->spec.values[call->array].n_elements,
                        &n_partials) &&
           vxd_layout_add(&out->total, n_partials, sizeof(struct partial),
                          &out->partials) &&
           out->sort_bytes != 0 &&
           vxd_layout_add(&out->total, 1, out->sort_bytes, &out->sort);
}

size_t vxd_hash_update_scratch_bytes_cuda(const struct vxd_queue *queue,
                                          const struct vxd_hashmap *map,
                                          const struct vxd_hashmap_update_args *call)
{
    struct layout layout;

    (void)queue;
    return lay_out(map, call, &layout) ? layout.total : SIZE_MAX;
}

static int bit_length(size_t v)
{
    return v == 0 ? 1 : 64 - __builtin_clzll(v);
}

enum vxd_status vxd_hash_update_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     const struct vxd_hashmap_update_args *call,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err)
{
    const struct vxd_hashmap_array *array = &map->spec.values[call->array];
    struct update_args args = {};
    struct layout layout;
    char *base = (char *)scratch;
    enum vxd_status status = VXD_OK;
    unsigned n_blocks;

    (void)scratch_bytes;
    (void)lay_out(map, call, &layout);
    args.live = (const uint32_t *)map->live.ptr;
    args.capacity = map->capacity;
    args.indices = call->indices;
    args.n = call->n;
    args.rows = call->rows;
    args.values = (char *)map->values[call->array].ptr;
    args.row_bytes = map->row_bytes[call->array];
    args.n_elements = array->n_elements;
    args.dtype = call->dtype;
    args.own = array->dtype;
    args.combine = call->combine;
    args.updated = call->updated;
    args.keys = (uint64_t *)(base + layout.keys[0]);
    args.positions = (uint32_t *)(base + layout.positions[0]);
    args.partials = (struct partial *)(base + layout.partials);
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    key_kernel<<<(unsigned)((call->n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                 (cudaStream_t)queue->stream>>>(args);
    VXD_TRY(vxd_cuda_launched(queue->context, "key_kernel", err));
    VXD_TRY(vxd_sort_pairs_cuda(
        queue, args.keys, args.positions, (uint64_t *)(base + layout.keys[1]),
        (uint32_t *)(base + layout.positions[1]), call->n, 0, bit_length(map->capacity),
        base + layout.sort, layout.sort_bytes, err));
    n_blocks = vxd_hash_blocks(queue, args.n * args.n_elements, N_THREADS, 32);
    if (call->combine == VXD_COMBINE_SET) {
        set_kernel<<<n_blocks, N_THREADS, 0, (cudaStream_t)queue->stream>>>(args);
        VXD_TRY(vxd_cuda_launched(queue->context, "set_kernel", err));
    } else if (call->combine != VXD_COMBINE_ADD) {
        VXD_TRY(combine<FOLD_EXTREME>(queue, &args, n_blocks, err));
    } else if (vxd_combine_form_of(args.own) == VXD_FORM_INT) {
        VXD_TRY(combine<FOLD_INT>(queue, &args, n_blocks, err));
    } else if (vxd_combine_form_of(args.own) == VXD_FORM_FLOAT) {
        VXD_TRY(combine<FOLD_FLOAT>(queue, &args, n_blocks, err));
    } else {
        VXD_TRY(combine<FOLD_DOUBLE>(queue, &args, n_blocks, err));
    }
out:
    return status;
}
