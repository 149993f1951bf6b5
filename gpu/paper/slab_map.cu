// SPDX-License-Identifier: Apache-2.0
/* The slab index on a GPU but for insertion; slab_map_cuda.h says how a warp walks.
 *
 * Erasing. ANY: who replaces an entry's place by ERASED is the one that is reported. FIRST:
 * keys are found while nothing changes; each then raises what stands at its place to a mark of
 * its position, smaller positions to higher marks; who finds its own mark there in the end was
 * the first.
 * Wear. Operations that may leave a worn index end with two kernels that look at the counters
 * and return at once unless the index is to be rebuilt. */
#include <stddef.h>

#include "gpu/paper/slab_map_cuda.h"

#define N_THREADS VXD_SLAB_THREADS
#define N_COUNTS (VXD_PROBE_BINS + 2)

struct find {
    struct vxd_slab_view view;
    const uint8_t *rows;
    size_t n; /* keys, or neighbours of all keys */
    int kind; /* neighbours of a key */
    int32_t *indices;
    uint8_t *found;
};

struct erase {
    struct vxd_slab_view view;
    const uint8_t *rows;
    size_t n;
    uint8_t *erased;
    uint32_t *places;
    int32_t *entries; /* whose key was found; then to be freed */
};

/* Rebuilding -----------------------------------------------------------------------------*/

static __device__ bool needs_rebuild(const struct vxd_slab_view *view)
{
    const struct vxd_hash_counters *counters = view->counters;

    return counters->scratch[VXD_SLAB_WORN] != 0 ||
           counters->n_erased_marks > view->shape.max_erased;
}

static __global__ void __launch_bounds__(N_THREADS)
    empty_worn_kernel(const __grid_constant__ struct vxd_slab_view view)
{
    size_t n = vxd_slab_count(&view.shape) * VXD_SLAB_WORDS / 2;
    size_t stride = (size_t)gridDim.x * N_THREADS;
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    bool worn = needs_rebuild(&view);

    if (i == 0) {
        view.counters->scratch[VXD_SLAB_FAILED] = 0;
        view.counters->scratch[VXD_SLAB_N_NEW] = 0;
        view.counters->scratch[VXD_SLAB_BASE] = 0;
        if (worn) {
            view.counters->n_slabs = 0;
        }
    }
    for (; worn && i < n; i += stride) {
        ((uint4 *)view.words)[i] = make_uint4(~0u, ~0u, ~0u, ~0u);
    }
}

/* The entries e .. e + 31 of a warp to their places. */
static __device__ void place_entries(const struct vxd_slab_view *view, size_t e,
                                     uint32_t *error_word)
{
    bool needed = e < view->capacity && vxd_slab_lives(view->live, (uint32_t)e);
    struct vxd_slab_query query = vxd_slab_query_of<false>(
        view, needed ? view->keys + e * (size_t)view->form.row_bytes : NULL);
    uint64_t word = 0;
    bool reused;
    uint32_t place = vxd_slab_claim<false>(
        view, NULL, &query, vxd_slab_place(query.home.fragment, (uint32_t)e), &word,
        &reused);

    if (needed &&
        (place == VXD_SLAB_NO_PLACE || vxd_slab_delegate(word) != (uint32_t)e)) {
        atomicCAS(error_word, (uint32_t)VXD_OK, (uint32_t)VXD_DATA_LOSS);
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    fill_rebuild_kernel(const __grid_constant__ struct vxd_slab_view view,
                        uint32_t *error_word)
{
    size_t stride = (size_t)gridDim.x * N_THREADS;

    if (!needs_rebuild(&view)) {
        return;
    }
    for (size_t first = (size_t)blockIdx.x * N_THREADS; first < view.capacity;
         first += stride) {
        place_entries(&view, first + threadIdx.x, error_word);
    }
    /* The last block through: every other has asked whether the index is worn. */
    __syncthreads();
    if (threadIdx.x == 0 && atomicInc(&view.counters->scratch[VXD_SLAB_N_DONE],
                                      gridDim.x - 1) == gridDim.x - 1) {
        view.counters->n_erased_marks = 0;
        view.counters->scratch[VXD_SLAB_WORN] = 0;
    }
}

/* Enough for n items or to fill the device, and 1 or more. */
static unsigned blocks_at_most(const struct vxd_queue *queue, size_t n)
{
    size_t most = (size_t)queue->context->info.n_multiprocessors * 8;
    size_t needed = (n + N_THREADS - 1) / N_THREADS;

    needed = needed < 1 ? 1 : needed;
    return (unsigned)(needed < most ? needed : most);
}

enum vxd_status vxd_slab_renew(struct vxd_queue *queue, const struct vxd_slab_view *view,
                               struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_empty =
        blocks_at_most(queue, vxd_slab_count(&view->shape) * VXD_SLAB_WORDS / 2);
    unsigned n_fill = blocks_at_most(queue, view->capacity);
    enum vxd_status status = VXD_OK;

    empty_worn_kernel<<<n_empty, N_THREADS, 0, stream>>>(*view);
    VXD_TRY(vxd_cuda_launched(queue->context, "empty_worn_kernel", err));
    fill_rebuild_kernel<<<n_fill, N_THREADS, 0, stream>>>(*view, queue->error_word);
    VXD_TRY(vxd_cuda_launched(queue->context, "fill_rebuild_kernel", err));
out:
    return status;
}

static enum vxd_status slab_clear(struct vxd_queue *queue, struct vxd_hashmap *map,
                                  struct vxd_err *err)
{
    struct vxd_slab_view view = vxd_slab_view_of(map);
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(
        VXD_CUDA(queue->context,
                 cudaMemsetAsync(view.words, 0xff,
                                 vxd_slab_count(&view.shape) * VXD_SLAB_BYTES, stream),
                 err));
    VXD_TRY(VXD_CUDA(
        queue->context,
        cudaMemsetAsync(&view.counters->n_erased_marks, 0, sizeof(uint32_t), stream),
        err));
    VXD_TRY(VXD_CUDA(
        queue->context,
        cudaMemsetAsync(&view.counters->n_slabs, 0, sizeof(uint32_t), stream), err));
out:
    return status;
}

static enum vxd_status slab_rebuild(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err)
{
    struct vxd_slab_view view = vxd_slab_view_of(map);
    enum vxd_status status = VXD_OK;

    (void)scratch;
    (void)scratch_bytes;
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaMemsetAsync(&view.counters->scratch[VXD_SLAB_WORN], 1,
                                     sizeof(uint32_t), (cudaStream_t)queue->stream),
                     err));
    VXD_TRY(vxd_slab_renew(queue, &view, err));
out:
    return status;
}

/* Finding --------------------------------------------------------------------------------*/

template <bool PACKED>
static __global__ void __launch_bounds__(N_THREADS)
    find_kernel(const __grid_constant__ struct find find)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    struct vxd_slab_query query = vxd_slab_query_of<PACKED>(
        &find.view, i < find.n ? find.rows + i * (size_t)find.view.form.row_bytes : NULL);
    uint64_t word;
    bool is_there = vxd_slab_find<PACKED>(&find.view, &query, &word) != VXD_SLAB_NO_PLACE;

    if (i < find.n && find.indices != NULL) {
        find.indices[i] = is_there ? (int32_t)vxd_slab_delegate(word) : VXD_NO_ENTRY;
    }
    if (i < find.n && find.found != NULL) {
        find.found[i] = is_there;
    }
}

template <bool PACKED>
static __global__ void __launch_bounds__(N_THREADS)
    neighbours_kernel(const __grid_constant__ struct find find)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    uint32_t kind = (uint32_t)find.kind;
    int64_t neighbour[4];
    bool needed =
        i < find.n &&
        vxd_key_neighbour(&find.view.form,
                          find.rows + i / kind * (size_t)find.view.form.row_bytes,
                          find.kind, (int)(i % kind), neighbour);
    struct vxd_slab_query query =
        vxd_slab_query_of<PACKED>(&find.view, needed ? neighbour : NULL);
    uint64_t word;
    bool is_there = vxd_slab_find<PACKED>(&find.view, &query, &word) != VXD_SLAB_NO_PLACE;

    if (i < find.n) {
        find.indices[i] = is_there ? (int32_t)vxd_slab_delegate(word) : VXD_NO_ENTRY;
    }
}

static enum vxd_status slab_find(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                 const void *keys, size_t n, int32_t *indices,
                                 uint8_t *found, struct vxd_err *err)
{
    struct find find = {
        vxd_slab_view_of(map), (const uint8_t *)keys, n, 0, indices, found};
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (vxd_slab_is_packed(&map->form)) {
        find_kernel<true><<<vxd_slab_blocks(n), N_THREADS, 0, stream>>>(find);
    } else {
        find_kernel<false><<<vxd_slab_blocks(n), N_THREADS, 0, stream>>>(find);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "find_kernel", err));
out:
    return status;
}

static enum vxd_status slab_neighbours(struct vxd_queue *queue,
                                       const struct vxd_hashmap *map, const void *keys,
                                       size_t n, enum vxd_hash_neighbours kind,
                                       int32_t *indices, struct vxd_err *err)
{
    struct find find = {vxd_slab_view_of(map),
                        (const uint8_t *)keys,
                        n * (size_t)kind,
                        (int)kind,
                        indices,
                        NULL};
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (vxd_slab_is_packed(&map->form)) {
        neighbours_kernel<true><<<vxd_slab_blocks(find.n), N_THREADS, 0, stream>>>(find);
    } else {
        neighbours_kernel<false><<<vxd_slab_blocks(find.n), N_THREADS, 0, stream>>>(find);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "neighbours_kernel", err));
out:
    return status;
}

/* Erasing --------------------------------------------------------------------------------*/

/* Counts a block's erased places. All threads call. */
static __device__ void count_erased(const struct vxd_slab_view *view, bool is_erased)
{
    int n = __syncthreads_count(is_erased);

    if (threadIdx.x == 0 && n > 0) {
        atomicAdd(&view->counters->n_erased_marks, (uint32_t)n);
    }
}

static __device__ uint32_t erase_mark(size_t i)
{
    return VXD_SLAB_CLAIM | (0x7ffffffeu - (uint32_t)i);
}

/* ANY erases at once; FIRST remembers places and entries. */
template <bool PACKED, bool FIRST>
static __global__ void __launch_bounds__(N_THREADS)
    locate_kernel(const __grid_constant__ struct erase erase)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    struct vxd_slab_query query = vxd_slab_query_of<PACKED>(
        &erase.view,
        i < erase.n ? erase.rows + i * (size_t)erase.view.form.row_bytes : NULL);
    uint64_t word;
    uint32_t place = vxd_slab_find<PACKED>(&erase.view, &query, &word);
    bool is_mine = place != VXD_SLAB_NO_PLACE;

    if (!FIRST) {
        is_mine = is_mine &&
                  vxd_slab_cas(erase.view.words + place, word, VXD_SLAB_ERASED) == word;
        count_erased(&erase.view, is_mine);
    }
    if (i >= erase.n) {
        return;
    }
    if (FIRST) {
        erase.places[i] = place;
    } else if (erase.erased != NULL) {
        erase.erased[i] = is_mine;
    }
    erase.entries[i] = is_mine ? (int32_t)vxd_slab_delegate(word) : VXD_NO_ENTRY;
}

static __global__ void __launch_bounds__(N_THREADS)
    mark_kernel(const __grid_constant__ struct erase erase)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < erase.n && erase.places[i] != VXD_SLAB_NO_PLACE) {
        atomicMax((uint32_t *)(erase.view.words + erase.places[i]), erase_mark(i));
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    empty_kernel(const __grid_constant__ struct erase erase)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    bool is_first = false;

    if (i < erase.n && erase.places[i] != VXD_SLAB_NO_PLACE) {
        uint64_t *word = erase.view.words + erase.places[i];

        is_first = vxd_slab_delegate(vxd_slab_read(word)) == erase_mark(i);
        if (is_first) {
            *(volatile uint64_t *)word = VXD_SLAB_ERASED;
        }
    }
    count_erased(&erase.view, is_first);
    if (i >= erase.n) {
        return;
    }
    if (!is_first) {
        erase.entries[i] = VXD_NO_ENTRY;
    }
    if (erase.erased != NULL) {
        erase.erased[i] = is_first;
    }
}

static bool lay_out_erase(const struct vxd_queue *queue, size_t capacity, size_t n,
                          size_t *entries, size_t *heap, size_t *total)
{
    size_t places;

    *entries = *heap = *total = 0;
    return vxd_layout_add(total, n, sizeof(uint32_t), &places) &&
           vxd_layout_add(total, n, sizeof(int32_t), entries) &&
           vxd_layout_add(total, vxd_hash_heap_scratch_bytes_cuda(queue, capacity), 1,
                          heap);
}

template <bool PACKED>
static enum vxd_status erase_keys(struct vxd_queue *queue, const struct erase *erase,
                                  enum vxd_hash_order order, struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_blocks = vxd_slab_blocks(erase->n);
    enum vxd_status status = VXD_OK;

    if (order == VXD_HASH_ANY) {
        locate_kernel<PACKED, false><<<n_blocks, N_THREADS, 0, stream>>>(*erase);
        return vxd_cuda_launched(queue->context, "locate_kernel", err);
    }
    locate_kernel<PACKED, true><<<n_blocks, N_THREADS, 0, stream>>>(*erase);
    VXD_TRY(vxd_cuda_launched(queue->context, "locate_kernel", err));
    mark_kernel<<<n_blocks, N_THREADS, 0, stream>>>(*erase);
    VXD_TRY(vxd_cuda_launched(queue->context, "mark_kernel", err));
    empty_kernel<<<n_blocks, N_THREADS, 0, stream>>>(*erase);
    VXD_TRY(vxd_cuda_launched(queue->context, "empty_kernel", err));
out:
    return status;
}

static enum vxd_status slab_erase(struct vxd_queue *queue, struct vxd_hashmap *map,
                                  const void *keys, size_t n, enum vxd_hash_order order,
                                  uint8_t *erased, void *scratch, size_t scratch_bytes,
                                  struct vxd_err *err)
{
    struct erase erase = {vxd_slab_view_of(map),
                          (const uint8_t *)keys,
                          n,
                          erased,
                          (uint32_t *)scratch,
                          NULL};
    enum vxd_status status = VXD_OK;
    size_t entries;
    size_t heap;
    size_t total;

    /* The same sizes were laid out when the scratch was allocated. */
    (void)lay_out_erase(queue, map->capacity, n, &entries, &heap, &total);
    erase.entries = (int32_t *)((uint8_t *)scratch + entries);
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (vxd_slab_is_packed(&map->form)) {
        VXD_TRY(erase_keys<true>(queue, &erase, order, err));
    } else {
        VXD_TRY(erase_keys<false>(queue, &erase, order, err));
    }
    VXD_TRY(vxd_hash_entries_free_cuda(queue, map, erase.entries, n, err));
    VXD_TRY(vxd_hash_heap_rebuild_cuda(queue, map, (uint8_t *)scratch + heap,
                                       scratch_bytes - heap, err));
    VXD_TRY(vxd_slab_renew(queue, &erase.view, err));
out:
    return status;
}

static size_t slab_scratch_bytes(const struct vxd_queue *queue,
                                 const struct vxd_hashmap *map, enum vxd_hash_call call,
                                 enum vxd_hash_order order, size_t n)
{
    size_t entries;
    size_t heap;
    size_t total;

    (void)order;
    if (call == VXD_CALL_INSERT) {
        return vxd_slab_insert_bytes_cuda(n);
    }
    if (call == VXD_CALL_ERASE) {
        return lay_out_erase(queue, map->capacity, n, &entries, &heap, &total) ? total
                                                                               : SIZE_MAX;
    }
    return 0; /* finding and rebuilding need none */
}

/* Statistics -----------------------------------------------------------------------------*/

/* A thread a bucket. */
static __global__ void __launch_bounds__(N_THREADS)
    probes_kernel(const __grid_constant__ struct vxd_slab_view view, uint64_t *counts)
{
    __shared__ unsigned long long sums[N_COUNTS];
    uint64_t n_slabs = vxd_slab_count(&view.shape);
    uint64_t slab = (uint64_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (threadIdx.x < N_COUNTS) {
        sums[threadIdx.x] = 0;
    }
    __syncthreads();
    slab = slab < view.shape.n_buckets ? slab : VXD_SLAB_NONE;
    for (uint64_t n_read = 1; n_read <= n_slabs && slab < n_slabs; n_read++) {
        const uint64_t *words = view.words + slab * VXD_SLAB_WORDS;
        uint64_t n_taken = 0;

        for (int p = 0; p < VXD_SLAB_PLACES; p++) {
            n_taken += !vxd_slab_is_free(words[p]);
        }
        if (n_taken > 0) {
            atomicAdd(&sums[n_read < VXD_PROBE_BINS ? n_read - 1 : VXD_PROBE_BINS - 1],
                      (unsigned long long)n_taken);
            atomicAdd(&sums[VXD_PROBE_BINS], (unsigned long long)(n_taken * n_read));
            atomicMax(&sums[VXD_PROBE_BINS + 1], (unsigned long long)n_read);
        }
        slab = words[VXD_SLAB_LINK];
    }
    __syncthreads();
    if (threadIdx.x <= VXD_PROBE_BINS) {
        atomicAdd((unsigned long long *)counts + threadIdx.x, sums[threadIdx.x]);
    } else if (threadIdx.x == VXD_PROBE_BINS + 1) {
        atomicMax((unsigned long long *)counts + threadIdx.x, sums[threadIdx.x]);
    }
}

static enum vxd_status slab_probes(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                   uint64_t *counts, struct vxd_err *err)
{
    struct vxd_slab_view view = vxd_slab_view_of(map);
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaMemsetAsync(counts, 0, N_COUNTS * sizeof *counts, stream), err));
    probes_kernel<<<vxd_slab_blocks(view.shape.n_buckets), N_THREADS, 0, stream>>>(
        view, counts);
    VXD_TRY(vxd_cuda_launched(queue->context, "probes_kernel", err));
out:
    return status;
}

const struct vxd_hash_ops vxd_paper_slab_map_cuda = {
    vxd_slab_index_bytes, slab_scratch_bytes, slab_clear, slab_rebuild,
    vxd_slab_insert_cuda, slab_find,          slab_erase, slab_neighbours,
    slab_probes,          vxd_slab_n_places,
};
