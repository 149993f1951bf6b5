// SPDX-License-Identifier: Apache-2.0
/* Erasing from the open-addressing index, a thread a key.
 *
 * ANY: the thread whose compare-and-swap turns the tag into ERASED has erased the key. FIRST:
 * every thread marks the slot with its position, and a second pass erases for the least one, so
 * slots are accessed at random twice. Numbers, rows and live bits are then freed in the order of
 * positions, and the heap is rebuilt from the live bits. The index is rebuilt too where more than
 * a quarter of it is erased marks.
 * Moved: 64 bytes read and 32 written of the slots (twice with FIRST), 12 of the key, 8 of
 * the list of freed numbers, the value rows. */
#include "gpu/hash/open_cuda.h"

/* Threads of a multiprocessor at a time; open_insert.cu says why. */
#define N_ACTIVE 1024

struct erase_args {
    struct vxd_open_view view;
    const char *keys;
    uint32_t n;
    uint8_t *erased;
    /* n values: erased numbers, else VXD_NO_ENTRY; FIRST stores slots here between its
     * passes. */
    int32_t *freed;
};

static __device__ __forceinline__ void answer(const struct erase_args *args, uint32_t i,
                                              int32_t number)
{
    args->freed[i] = number;
    if (args->erased != NULL) {
        args->erased[i] = number != VXD_NO_ENTRY ? 1 : 0;
    }
}

/* One atomic operation a block: one a warp, all on one address, would take longer than
 * the erasing. */
static __device__ __forceinline__ void count_marks(const struct erase_args *args,
                                                   uint32_t n_erased)
{
    __shared__ uint32_t sum;

    if (threadIdx.x == 0) {
        sum = 0;
    }
    __syncthreads();
    n_erased = __reduce_add_sync(UINT32_MAX, n_erased);
    if (threadIdx.x % 32 == 0 && n_erased != 0) {
        (void)atomicAdd(&sum, n_erased);
    }
    __syncthreads();
    if (threadIdx.x == 0 && sum != 0) {
        (void)atomicAdd(&args->view.counters->n_erased_marks, sum);
    }
}

/* Erases the key from the slot found, or from the next one of its probe sequence that
 * holds it: another thread may be faster, perhaps with another key of the same tag. */
template <bool INT3>
static __device__ __forceinline__ int32_t erase_key(const struct erase_args *args,
                                                    const struct vxd_open_query *query)
{
    uint32_t step;
    uint32_t number;
    uint32_t found =
        vxd_open_seek<INT3, VXD_OPEN_CACHED>(&args->view, query, 0, &number, &step);

#pragma unroll 1
    while (found != VXD_OPEN_NO_SLOT) {
        struct vxd_open_slot *slot = args->view.slots + found;

        if (vxd_open_cas_tag(slot, query->tag, VXD_TAG_ERASED) == query->tag) {
            vxd_open_write_word(slot, vxd_open_word(VXD_OPEN_PENDING));
            return (int32_t)number;
        }
        found = vxd_open_seek<INT3, VXD_OPEN_FRESH>(&args->view, query, step + 1, &number,
                                                    &step);
    }
    return VXD_NO_ENTRY;
}

template <bool INT3>
static __global__ void __launch_bounds__(VXD_OPEN_THREADS)
    erase_any_kernel(const __grid_constant__ struct erase_args args)
{
    uint32_t n_up = (args.n + 31) / 32 * 32;
    uint32_t n_erased = 0;

    for (uint32_t i = blockIdx.x * VXD_OPEN_THREADS + threadIdx.x; i < n_up;
         i += gridDim.x * VXD_OPEN_THREADS) {
        if (i < args.n) {
            struct vxd_open_query query = vxd_open_query_of<INT3>(
                &args.view, args.keys + (size_t)i * (size_t)args.view.form.row_bytes);
            int32_t number = erase_key<INT3>(&args, &query);

            answer(&args, i, number);
            n_erased += number != VXD_NO_ENTRY ? 1 : 0;
        }
        __syncwarp(); /* without it, lanes that probed longer never converge again */
    }
    count_marks(&args, n_erased);
}

template <bool INT3>
static __global__ void __launch_bounds__(VXD_OPEN_THREADS)
    mark_kernel(const __grid_constant__ struct erase_args args)
{
    uint32_t i = blockIdx.x * VXD_OPEN_THREADS + threadIdx.x;
    struct vxd_open_query query;
    uint32_t number;
    uint32_t step;
    uint32_t slot;

    if (i >= args.n) {
        return;
    }
    query = vxd_open_query_of<INT3>(
        &args.view, args.keys + (size_t)i * (size_t)args.view.form.row_bytes);
    slot = vxd_open_seek<INT3, VXD_OPEN_CACHED>(&args.view, &query, 0, &number, &step);
    if (slot != VXD_OPEN_NO_SLOT) {
        (void)atomicMin(vxd_open_mark_of(args.view.slots + slot), i);
    }
    args.freed[i] = (int32_t)slot;
}

static __global__ void __launch_bounds__(VXD_OPEN_THREADS)
    erase_marked_kernel(const __grid_constant__ struct erase_args args)
{
    uint32_t n_erased = 0;

    for (uint32_t i = blockIdx.x * VXD_OPEN_THREADS + threadIdx.x; i < args.n;
         i += gridDim.x * VXD_OPEN_THREADS) {
        uint32_t found = (uint32_t)args.freed[i];
        int32_t number = VXD_NO_ENTRY;

        if (found != VXD_OPEN_NO_SLOT) {
            struct vxd_open_slot *slot = args.view.slots + found;
            uint64_t word = vxd_open_read_word(slot);

            if (vxd_open_mark(word) == i) {
                number = (int32_t)vxd_open_number(word);
                *slot = {VXD_TAG_ERASED, vxd_open_word(VXD_OPEN_PENDING)};
                n_erased++;
            }
        }
        answer(&args, i, number);
    }
    count_marks(&args, n_erased);
}

struct layout {
    size_t freed;
    size_t heap;
    size_t heap_bytes;
    size_t total;
};

static bool lay_out(const struct vxd_queue *queue, const struct vxd_hashmap *map,
                    size_t n, struct layout *out)
{
    *out = {};
    out->heap_bytes = vxd_hash_heap_scratch_bytes_cuda(queue, map->capacity);
    return vxd_layout_add(&out->total, n, sizeof(int32_t), &out->freed) &&
           vxd_layout_add(&out->total, 1, out->heap_bytes, &out->heap);
}

size_t vxd_open_erase_scratch_bytes_cuda(const struct vxd_queue *queue,
                                         const struct vxd_hashmap *map,
                                         enum vxd_hash_order order, size_t n)
{
    struct layout layout;

    (void)order;
    return lay_out(queue, map, n, &layout) ? layout.total : SIZE_MAX;
}

static enum vxd_status launch(const struct vxd_queue *queue, enum vxd_hash_order order,
                              const struct erase_args *args, struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    bool is_int3 = vxd_open_is_int3(&args->view.form);
    unsigned n_blocks = (args->n + VXD_OPEN_THREADS - 1) / VXD_OPEN_THREADS;
    enum vxd_status status = VXD_OK;

    if (order == VXD_HASH_ANY) {
        n_blocks = vxd_hash_blocks(queue, args->n, VXD_OPEN_THREADS,
                                   N_ACTIVE / VXD_OPEN_THREADS);
        if (is_int3) {
            erase_any_kernel<true><<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(*args);
        } else {
            erase_any_kernel<false><<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(*args);
        }
        VXD_TRY(vxd_cuda_launched(queue->context, "erase_any_kernel", err));
        return VXD_OK;
    }
    if (is_int3) {
        mark_kernel<true><<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(*args);
    } else {
        mark_kernel<false><<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(*args);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "mark_kernel", err));
    n_blocks = vxd_hash_blocks(queue, args->n, VXD_OPEN_THREADS, 8);
    erase_marked_kernel<<<n_blocks, VXD_OPEN_THREADS, 0, stream>>>(*args);
    VXD_TRY(vxd_cuda_launched(queue->context, "erase_marked_kernel", err));
out:
    return status;
}

enum vxd_status vxd_open_erase_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    const void *keys, size_t n, enum vxd_hash_order order,
                                    uint8_t *erased, void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err)
{
    struct erase_args args = {vxd_open_view_of(queue, map), (const char *)keys,
                              (uint32_t)n, erased, NULL};
    struct layout layout;
    char *base = (char *)scratch;
    enum vxd_status status = VXD_OK;

    (void)scratch_bytes;
    (void)lay_out(queue, map, n, &layout);
    args.freed = (int32_t *)(base + layout.freed);
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(launch(queue, order, &args, err));
    VXD_TRY(vxd_hash_entries_free_cuda(queue, map, args.freed, n, err));
    VXD_TRY(vxd_hash_heap_rebuild_cuda(queue, map, base + layout.heap, layout.heap_bytes,
                                       err));
    VXD_TRY(vxd_open_refill_cuda(queue, map, false, err));
out:
    return status;
}
