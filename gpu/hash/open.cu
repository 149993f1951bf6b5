// SPDX-License-Identifier: Apache-2.0
/* Open addressing on a GPU: find, neighbours, probe lengths, clear and rebuild; open_cuda.h
 * describes the layout.
 *
 * Each thread finds one key: it reads 12 bytes of key and the sector where the probe sequence
 * begins (the two loads of its slots are one request), and writes 4 bytes of answer. At load 0.5
 * one key in 20 leaves its line. Two or four keys a thread, loads that bypass the first-level
 * cache and plain linear probing were tried and are slower (10 M keys on an H200: 0.273 ms;
 * 0.329 and 0.354, 0.334, 0.282).
 * Rebuilding reads the key buffer in order and touches one slot for each living entry. */
#include "gpu/hash/open_cuda.h"

struct find_args {
    struct vxd_open_view view;
    const char *keys;
    uint32_t n;
    int32_t *indices;
    uint8_t *found;
};

template <bool INT3>
static __global__ void __launch_bounds__(VXD_OPEN_THREADS)
    find_kernel(const __grid_constant__ struct find_args args)
{
    uint32_t i = blockIdx.x * VXD_OPEN_THREADS + threadIdx.x;
    struct vxd_open_query query;
    uint32_t number = 0;
    uint32_t step;
    bool is_there;

    if (i >= args.n) {
        return;
    }
    query = vxd_open_query_of<INT3>(
        &args.view,
        args.keys + (size_t)i * (INT3 ? 12 : (size_t)args.view.form.row_bytes));
    is_there = vxd_open_seek<INT3, VXD_OPEN_READ_ONLY>(&args.view, &query, 0, &number,
                                                       &step) != VXD_OPEN_NO_SLOT;
    if (args.indices != NULL) {
        __stcs(args.indices + i, is_there ? (int32_t)number : VXD_NO_ENTRY);
    }
    if (args.found != NULL) {
        args.found[i] = is_there ? 1 : 0;
    }
}

static enum vxd_status find(struct vxd_queue *queue, const struct vxd_hashmap *map,
                            const void *keys, size_t n, int32_t *indices, uint8_t *found,
                            struct vxd_err *err)
{
    struct find_args args = {vxd_open_view_of(queue, map), (const char *)keys,
                             (uint32_t)n, indices, found};
    unsigned n_blocks = (unsigned)((n + VXD_OPEN_THREADS - 1) / VXD_OPEN_THREADS);
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (vxd_open_is_int3(&map->form)) {
        find_kernel<true><<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(args);
    } else {
        find_kernel<false><<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(args);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "find_kernel", err));
out:
    return status;
}

struct neighbours_args {
    struct vxd_open_view view;
    const char *keys;
    uint32_t n; /* keys times kind */
    int kind;
    int32_t *indices;
};

/* Holds an aligned row of four components of any type. */
union key_row {
    int64_t as_int64[4];
    char bytes[32];
};

/* Neighbour `column` of key k. False where it is out of range. */
template <bool INT3>
static __device__ __forceinline__ bool
neighbour_query(const struct neighbours_args *args, uint32_t k, int column,
                union key_row *neighbour, struct vxd_open_query *query)
{
    if (INT3) {
        const int32_t *row = (const int32_t *)args->keys + (size_t)k * 3;
        int offset[3];
        bool is_in_range = true;

        vxd_neighbour_offset(args->kind, column, offset);
        for (int c = 0; c < 3; c++) {
            int64_t value = (int64_t)row[c] + offset[c];

            query->key[c] = (int32_t)value;
            is_in_range = is_in_range && query->key[c] == value;
        }
        vxd_open_set_tag(&args->view, query,
                         vxd_open_tag3(query->key[0], query->key[1], query->key[2]));
        return is_in_range;
    }
    query->row = neighbour->bytes;
    if (!vxd_key_neighbour(&args->view.form,
                           args->keys + (size_t)k * (size_t)args->view.form.row_bytes,
                           args->kind, column, neighbour->bytes)) {
        return false;
    }
    vxd_open_set_tag(&args->view, query, vxd_key_tag(&args->view.form, neighbour->bytes));
    return true;
}

template <bool INT3>
static __global__ void __launch_bounds__(VXD_OPEN_THREADS)
    neighbours_kernel(const __grid_constant__ struct neighbours_args args)
{
    uint32_t i = blockIdx.x * VXD_OPEN_THREADS + threadIdx.x;
    uint32_t k = i / (uint32_t)args.kind;
    int32_t entry = VXD_NO_ENTRY;
    struct vxd_open_query query;
    union key_row neighbour;
    uint32_t number;
    uint32_t step;

    if (i >= args.n) {
        return;
    }
    if (neighbour_query<INT3>(&args, k, (int)(i - k * (uint32_t)args.kind), &neighbour,
                              &query) &&
        vxd_open_seek<INT3, VXD_OPEN_READ_ONLY>(&args.view, &query, 0, &number, &step) !=
            VXD_OPEN_NO_SLOT) {
        entry = (int32_t)number;
    }
    args.indices[i] = entry;
}

static enum vxd_status neighbours(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                  const void *keys, size_t n,
                                  enum vxd_hash_neighbours kind, int32_t *indices,
                                  struct vxd_err *err)
{
    struct neighbours_args args = {vxd_open_view_of(queue, map), (const char *)keys,
                                   (uint32_t)(n * (size_t)kind), (int)kind, indices};
    unsigned n_blocks = (args.n + VXD_OPEN_THREADS - 1) / VXD_OPEN_THREADS;
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (vxd_open_is_int3(&map->form)) {
        neighbours_kernel<true><<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(args);
    } else {
        neighbours_kernel<false><<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(args);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "neighbours_kernel", err));
out:
    return status;
}

struct probes_args {
    struct vxd_open_view view;
    unsigned long long *probes;
};

/* Number of slots from the start of the probe sequence of a slot's key to the slot,
 * which is included. */
static __device__ uint64_t probes_of(const struct vxd_open_view *view, uint64_t slot,
                                     uint64_t tag)
{
    uint64_t hash = vxd_mix64(tag);
    uint64_t home = __umul64hi(hash, view->n_lines);
    uint64_t line = slot / 4;
    uint64_t n_lines = line >= home ? line - home : line + view->n_lines - home;

    return n_lines * 4 + (((slot / 2) ^ hash) & 1) * 2 + (slot & 1) + 1;
}

static __global__ void __launch_bounds__(VXD_OPEN_THREADS)
    probes_kernel(const __grid_constant__ struct probes_args args)
{
    __shared__ unsigned long long bins[VXD_PROBE_BINS + 2];
    uint64_t n_slots = vxd_open_n_steps(&args.view);

    if (threadIdx.x < VXD_PROBE_BINS + 2) {
        bins[threadIdx.x] = 0;
    }
    __syncthreads();
    for (uint64_t slot = (uint64_t)blockIdx.x * VXD_OPEN_THREADS + threadIdx.x;
         slot < n_slots; slot += (uint64_t)gridDim.x * VXD_OPEN_THREADS) {
        uint64_t tag = args.view.slots[slot].tag;

        if (tag != VXD_TAG_EMPTY && tag != VXD_TAG_ERASED) {
            uint64_t probes = probes_of(&args.view, slot, tag);

            (void)atomicAdd(
                &bins[probes < VXD_PROBE_BINS ? probes - 1 : VXD_PROBE_BINS - 1], 1ULL);
            (void)atomicAdd(&bins[VXD_PROBE_BINS], probes);
            (void)atomicMax(&bins[VXD_PROBE_BINS + 1], probes);
        }
    }
    __syncthreads();
    if (threadIdx.x <= VXD_PROBE_BINS && bins[threadIdx.x] != 0) {
        (void)atomicAdd(&args.probes[threadIdx.x], bins[threadIdx.x]);
    } else if (threadIdx.x == VXD_PROBE_BINS + 1) {
        (void)atomicMax(&args.probes[threadIdx.x], bins[threadIdx.x]);
    }
}

static enum vxd_status probes(struct vxd_queue *queue, const struct vxd_hashmap *map,
                              uint64_t *out_probes, struct vxd_err *err)
{
    struct probes_args args = {vxd_open_view_of(queue, map),
                               (unsigned long long *)out_probes};
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_fill(queue, out_probes, 0, (VXD_PROBE_BINS + 2) * sizeof *out_probes,
                          err));
    probes_kernel<<<vxd_hash_blocks(queue, (size_t)args.view.n_lines * 4,
                                    VXD_OPEN_THREADS, 8),
                    VXD_OPEN_THREADS, 0, (cudaStream_t)queue->stream>>>(args);
    VXD_TRY(vxd_cuda_launched(queue->context, "probes_kernel", err));
out:
    return status;
}

static size_t index_bytes(const struct vxd_key_form *form, size_t capacity)
{
    (void)form;
    return (size_t)vxd_open_lines(capacity) * 4 * sizeof(struct vxd_open_slot);
}

static size_t n_places(const struct vxd_hashmap *map, size_t capacity)
{
    (void)map;
    return (size_t)vxd_open_lines(capacity) * 4;
}

static size_t scratch_bytes(const struct vxd_queue *queue, const struct vxd_hashmap *map,
                            enum vxd_hash_call call, enum vxd_hash_order order, size_t n)
{
    switch (call) {
    case VXD_CALL_INSERT:
        return vxd_open_insert_scratch_bytes_cuda(map, order, n);
    case VXD_CALL_ERASE:
        return vxd_open_erase_scratch_bytes_cuda(queue, map, order, n);
    default:
        return 0;
    }
}

/* A slot of all bytes 0xff is {EMPTY, PENDING, NO_MARK}. */
static enum vxd_status clear(struct vxd_queue *queue, struct vxd_hashmap *map,
                             struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_fill(queue, map->index.ptr, 0xff, map->index.n_bytes, err));
    VXD_TRY(vxd_cuda_fill(
        queue, &((struct vxd_hash_counters *)map->counters.ptr)->n_erased_marks, 0,
        sizeof(uint32_t), err));
out:
    return status;
}

struct refill_args {
    struct vxd_open_view view;
    const uint32_t *live;
    bool always;
};

static __device__ __forceinline__ bool is_due(const struct refill_args *args)
{
    return args->always || args->view.counters->scratch[VXD_OPEN_NEEDS_REBUILD] != 0 ||
           args->view.counters->n_erased_marks > args->view.n_lines;
}

static __global__ void __launch_bounds__(VXD_OPEN_THREADS)
    empty_kernel(const __grid_constant__ struct refill_args args)
{
    if (!is_due(&args)) {
        return;
    }
    for (uint64_t slot = (uint64_t)blockIdx.x * VXD_OPEN_THREADS + threadIdx.x;
         slot < args.view.n_lines * 4; slot += (uint64_t)gridDim.x * VXD_OPEN_THREADS) {
        args.view.slots[slot] = {VXD_TAG_EMPTY, ~(uint64_t)0};
    }
}

/* Whether the slot's key, which another thread of this kernel claimed, equals this
 * one. */
static __device__ bool is_twice(const struct vxd_open_view *view,
                                struct vxd_open_slot *slot,
                                const struct vxd_open_query *query)
{
    uint32_t number;

    if (!vxd_tag_is_wide(query->tag)) {
        return true;
    }
    do {
        number = vxd_open_number(vxd_open_read_word(slot));
    } while (number == VXD_OPEN_PENDING);
    return vxd_keys_equal(&view->form, query->row, vxd_open_key_row(view, number));
}

static __device__ void refill_one(const struct vxd_open_view *view, uint32_t entry)
{
    struct vxd_open_query query =
        vxd_open_query_of<false>(view, vxd_open_key_row(view, entry));

    for (uint32_t step = 0; step < vxd_open_n_steps(view); step++) {
        struct vxd_open_slot *slot = view->slots + vxd_open_slot_at(view, &query, step);
        uint64_t there = vxd_open_load(slot, VXD_OPEN_CACHED).tag;

        if (there == VXD_TAG_EMPTY) {
            there = vxd_open_cas_tag(slot, VXD_TAG_EMPTY, query.tag);
            if (there == VXD_TAG_EMPTY) {
                vxd_open_write_word(slot, vxd_open_word(entry));
                return;
            }
        }
        if (there == query.tag && is_twice(view, slot, &query)) {
            vxd_open_report(view, VXD_DATA_LOSS);
            return;
        }
    }
}

static __global__ void __launch_bounds__(VXD_OPEN_THREADS)
    refill_kernel(const __grid_constant__ struct refill_args args)
{
    uint32_t n_up = (args.view.capacity + 31) / 32 * 32;

    if (!is_due(&args)) {
        return;
    }
    for (uint32_t entry = blockIdx.x * VXD_OPEN_THREADS + threadIdx.x; entry < n_up;
         entry += gridDim.x * VXD_OPEN_THREADS) {
        if (entry < args.view.capacity &&
            (args.live[entry / 32] >> entry % 32 & 1) != 0) {
            refill_one(&args.view, entry);
        }
        __syncwarp(); /* without it, lanes that probed longer never converge again */
    }
}

static __global__ void refilled_kernel(const __grid_constant__ struct refill_args args)
{
    if (is_due(&args)) {
        args.view.counters->n_erased_marks = 0;
        args.view.counters->scratch[VXD_OPEN_NEEDS_REBUILD] = 0;
    }
}

enum vxd_status vxd_open_refill_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     bool always, struct vxd_err *err)
{
    struct refill_args args = {vxd_open_view_of(queue, map),
                               (const uint32_t *)map->live.ptr, always};
    unsigned n_blocks =
        vxd_hash_blocks(queue, (size_t)args.view.n_lines * 4, VXD_OPEN_THREADS, 8);
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    empty_kernel<<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(args);
    VXD_TRY(vxd_cuda_launched(queue->context, "empty_kernel", err));
    refill_kernel<<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(args);
    VXD_TRY(vxd_cuda_launched(queue->context, "refill_kernel", err));
    refilled_kernel<<<1, 1, 0, stream>>>(args);
    VXD_TRY(vxd_cuda_launched(queue->context, "refilled_kernel", err));
out:
    return status;
}

static enum vxd_status rebuild(struct vxd_queue *queue, struct vxd_hashmap *map,
                               void *scratch, size_t scratch_size, struct vxd_err *err)
{
    (void)scratch;
    (void)scratch_size;
    return vxd_open_refill_cuda(queue, map, true, err);
}

const struct vxd_hash_ops vxd_hash_open_cuda = {
    index_bytes, scratch_bytes,       clear,      rebuild, vxd_open_insert_cuda,
    find,        vxd_open_erase_cuda, neighbours, probes,  n_places};
