// SPDX-License-Identifier: Apache-2.0
/* Insertion goes in the passes of ASH, section 4.4.2, but candidates are delegated by their
 * position in the batch, whose rows nobody writes, rather than by entries that every
 * candidate, winner or not, is copied to: no number is taken to be given back, and a batch
 * may be longer than the map has room for.
 *
 * ANY    claim   every key that is not there claims a place; of equal keys one does. Winners
 *                take numbers at once (one atomic operation a block) and copy their keys
 *        settle  places name entries instead of claims; losers read the winner's number
 * FIRST  claim   as above, and of equal keys the smallest position lowers the claim to its own
 *        flag    winners are flagged and, by a scan, ranked in position order
 *        number  winners take heap[n_live + rank] and copy their keys, losers read along
 * then           winners' values are copied
 * A batch of up to ONE_TILE keys goes through the passes of FIRST in one block.
 * Moved a new key: its row twice, a slab line read and 32 bytes of it written twice, 8 bytes of
 * scratch four times, its entry's rows. */
#include <string.h>

#include "gpu/core/core.h"
#include "gpu/hash/hash_cuda.h"
#include "gpu/paper/slab_map_cuda.h"

#define N_THREADS VXD_SLAB_THREADS
#define N_WARPS (N_THREADS / 32)
#define ONE_TILE 1024 /* keys that one block inserts */

/* In `numbers`: a winner for whom there is no room. */
#define REFUSED (-2)

struct insert {
    struct vxd_slab_view view;
    const uint8_t *rows;
    size_t n;
    int32_t *indices;
    uint8_t *is_new;
    /* A claim's place, or a loser's winner, or NO_PLACE; in the end the entry of a winner,
     * NO_ENTRY of all others. */
    uint32_t *places;
    int32_t *numbers; /* n + 1. ANY: a winner's number. FIRST: flags, then ranks */
    uint32_t *error_word;
    uint32_t most; /* entries there may be after */
    /* One tile only. */
    bool is_first;
    int n_values;
    struct vxd_value_rows values[VXD_HASHMAP_MAX_VALUES];
};

static __device__ __forceinline__ void put(const struct insert *insert, size_t i,
                                           int32_t index, bool is_new)
{
    if (insert->indices != NULL) {
        insert->indices[i] = index;
    }
    if (insert->is_new != NULL) {
        insert->is_new[i] = is_new;
    }
}

/* The entry `number` becomes key i's, where `makes`: its key row and its live bit. All lanes
 * of a warp call. */
static __device__ __forceinline__ void make_entry(const struct insert *insert, bool makes,
                                                  size_t i, uint32_t number)
{
    size_t row_bytes = (size_t)insert->view.form.row_bytes;

    if (makes) {
        vxd_row_copy_thread((char *)insert->view.keys + number * row_bytes,
                            (const char *)insert->rows + i * row_bytes,
                            (uint32_t)row_bytes,
                            (uint32_t)insert->view.form.component_bytes);
    }
    vxd_live_set_warp(insert->view.live, makes, number);
}

/* The low half of a place's word is its delegate. */
static __device__ __forceinline__ void name_entry(const struct insert *insert,
                                                  uint32_t place, uint32_t number)
{
    ((uint32_t *)(insert->view.words + place))[0] = number;
}

/* Numbers for the block's winners: the calling thread's, or REFUSED. All threads call. */
static __device__ int32_t take_number(const struct insert *insert, bool is_winner)
{
    const struct vxd_slab_view *view = &insert->view;
    __shared__ uint32_t warp_base[N_WARPS];
    uint32_t lane = threadIdx.x % 32;
    uint32_t winners = __ballot_sync(VXD_SLAB_ALL, is_winner);
    size_t rank;

    if (lane == 0) {
        warp_base[threadIdx.x / 32] = (uint32_t)__popc(winners);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t total = 0;

        for (int w = 0; w < N_WARPS; w++) {
            uint32_t count = warp_base[w];

            warp_base[w] = total;
            total += count;
        }
        total =
            total > 0 ? atomicAdd(&view->counters->scratch[VXD_SLAB_N_NEW], total) : 0;
        for (int w = 0; w < N_WARPS; w++) {
            warp_base[w] += total;
        }
    }
    __syncthreads();
    rank = (size_t)view->counters->n_live + warp_base[threadIdx.x / 32] +
           (uint32_t)__popc(winners & ((1u << lane) - 1));
    return is_winner && rank < insert->most ? (int32_t)view->heap[rank] : REFUSED;
}

template <bool PACKED>
static __global__ void __launch_bounds__(N_THREADS)
    claim_any_kernel(const __grid_constant__ struct insert insert)
{
    const struct vxd_slab_view *view = &insert.view;
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    bool needed = i < insert.n;
    struct vxd_slab_query query = vxd_slab_query_of<PACKED>(
        view, needed ? insert.rows + i * (size_t)view->form.row_bytes : NULL);
    uint32_t delegate = VXD_SLAB_CLAIM | (uint32_t)i;
    uint64_t word = 0;
    bool reused;
    uint32_t place = vxd_slab_claim<PACKED>(view, insert.rows, &query,
                                            vxd_slab_place(query.home.fragment, delegate),
                                            &word, &reused);
    bool has_place = place != VXD_SLAB_NO_PLACE;
    bool is_winner = has_place && vxd_slab_delegate(word) == delegate;
    int32_t number = take_number(&insert, is_winner);
    int n_reused = __syncthreads_count(reused);

    make_entry(&insert, number >= 0, i, (uint32_t)number);
    if (threadIdx.x == 0 && n_reused > 0) {
        atomicSub(&view->counters->n_erased_marks, (uint32_t)n_reused);
    }
    if (!needed) {
        return;
    }
    if (!has_place || (is_winner && number == REFUSED)) {
        view->counters->scratch[VXD_SLAB_FAILED] = 1;
    }
    insert.numbers[i] = is_winner ? number : VXD_NO_ENTRY;
    if (has_place && vxd_slab_delegate(word) < VXD_SLAB_CLAIM) {
        insert.places[i] = VXD_SLAB_NO_PLACE;
        put(&insert, i, (int32_t)vxd_slab_delegate(word), false);
    } else if (!has_place) {
        insert.places[i] = VXD_SLAB_NO_PLACE;
        put(&insert, i, VXD_NO_ENTRY, false);
    } else {
        insert.places[i] = is_winner ? place : vxd_slab_delegate(word) & ~VXD_SLAB_CLAIM;
    }
}

static __device__ void report(const struct insert *insert)
{
    insert->view.counters->scratch[VXD_SLAB_WORN] = 1;
    atomicCAS(insert->error_word, (uint32_t)VXD_OK, (uint32_t)VXD_INTERNAL);
}

static __global__ void __launch_bounds__(N_THREADS)
    settle_kernel(const __grid_constant__ struct insert insert)
{
    struct vxd_hash_counters *counters = insert.view.counters;
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    int32_t number;

    if (i == 0) {
        uint32_t n_left = insert.most - counters->n_live;
        uint32_t n_new = counters->scratch[VXD_SLAB_N_NEW];

        counters->n_live += n_new < n_left ? n_new : n_left;
        if (counters->scratch[VXD_SLAB_FAILED] != 0) {
            report(&insert);
        }
    }
    if (i >= insert.n) {
        return;
    }
    number = insert.numbers[i];
    if (number >= 0) {
        name_entry(&insert, insert.places[i], (uint32_t)number);
        put(&insert, i, number, true);
    } else if (number == REFUSED) {
        put(&insert, i, VXD_NO_ENTRY, false);
    } else if (insert.places[i] != VXD_SLAB_NO_PLACE) {
        number = insert.numbers[insert.places[i]];
        put(&insert, i, number >= 0 ? number : VXD_NO_ENTRY, false);
        number = VXD_NO_ENTRY;
    }
    insert.places[i] = number >= 0 ? (uint32_t)number : (uint32_t)VXD_NO_ENTRY;
}

template <bool PACKED>
static __global__ void __launch_bounds__(N_THREADS)
    claim_first_kernel(const __grid_constant__ struct insert insert)
{
    const struct vxd_slab_view *view = &insert.view;
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    bool needed = i < insert.n;
    struct vxd_slab_query query = vxd_slab_query_of<PACKED>(
        view, needed ? insert.rows + i * (size_t)view->form.row_bytes : NULL);
    uint64_t mine = vxd_slab_place(query.home.fragment, VXD_SLAB_CLAIM | (uint32_t)i);
    uint64_t word = 0;
    bool reused;
    uint32_t place =
        vxd_slab_claim<PACKED>(view, insert.rows, &query, mine, &word, &reused);
    int n_reused = __syncthreads_count(reused);

    if (threadIdx.x == 0 && n_reused > 0) {
        atomicSub(&view->counters->n_erased_marks, (uint32_t)n_reused);
    }
    if (!needed) {
        return;
    }
    if (place == VXD_SLAB_NO_PLACE) {
        view->counters->scratch[VXD_SLAB_FAILED] = 1;
        put(&insert, i, VXD_NO_ENTRY, false);
    } else if (vxd_slab_delegate(word) < VXD_SLAB_CLAIM) {
        place = VXD_SLAB_NO_PLACE;
        put(&insert, i, (int32_t)vxd_slab_delegate(word), false);
    } else if (word > mine) {
        /* The fragments are the same: only positions are compared. */
        atomicMin((unsigned long long *)view->words + place, (unsigned long long)mine);
    }
    insert.places[i] = place;
}

static __global__ void __launch_bounds__(N_THREADS)
    flag_kernel(const __grid_constant__ struct insert insert)
{
    struct vxd_hash_counters *counters = insert.view.counters;
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    bool is_winner = false;

    if (i == 0) {
        counters->scratch[VXD_SLAB_BASE] = counters->n_live;
    }
    if (i >= insert.n) {
        return;
    }
    if (insert.places[i] != VXD_SLAB_NO_PLACE) {
        uint32_t winner =
            vxd_slab_delegate(insert.view.words[insert.places[i]]) & ~VXD_SLAB_CLAIM;

        is_winner = winner == i;
        if (!is_winner) {
            insert.places[i] = winner;
        }
    }
    insert.numbers[i] = is_winner;
}

static __global__ void __launch_bounds__(N_THREADS)
    number_kernel(const __grid_constant__ struct insert insert)
{
    struct vxd_hash_counters *counters = insert.view.counters;
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    uint32_t base = counters->scratch[VXD_SLAB_BASE];
    uint32_t total = (uint32_t)insert.numbers[insert.n];
    bool failed = counters->scratch[VXD_SLAB_FAILED] != 0 || total > insert.most - base;
    bool is_winner =
        i < insert.n && !failed && insert.numbers[i] != insert.numbers[i + 1];
    int32_t entry = VXD_NO_ENTRY;
    uint32_t place;

    if (i == 0) {
        if (failed) {
            report(&insert);
        } else {
            counters->n_live = base + total;
        }
    }
    if (is_winner) {
        entry = (int32_t)insert.view.heap[base + (uint32_t)insert.numbers[i]];
    }
    make_entry(&insert, is_winner, i, (uint32_t)entry);
    if (i >= insert.n) {
        return;
    }
    place = insert.places[i];
    if (is_winner) {
        name_entry(&insert, place, (uint32_t)entry);
        put(&insert, i, entry, true);
    } else if (place != VXD_SLAB_NO_PLACE) {
        put(&insert, i,
            failed ? VXD_NO_ENTRY
                   : (int32_t)insert.view.heap[base + (uint32_t)insert.numbers[place]],
            false);
    }
    insert.places[i] = (uint32_t)entry;
}

/* One block goes all the way of FIRST, whose result is one that ANY may have too. */
template <bool PACKED>
static __global__ void __launch_bounds__(ONE_TILE)
    one_tile_kernel(const __grid_constant__ struct insert insert)
{
    const struct vxd_slab_view *view = &insert.view;
    struct vxd_hash_counters *counters = view->counters;
    uint32_t base = *(const volatile uint32_t *)&counters->n_live;
    uint32_t n_left = insert.most - base;
    size_t i = threadIdx.x;
    bool needed = i < insert.n;
    struct vxd_slab_query query = vxd_slab_query_of<PACKED>(
        view, needed ? insert.rows + i * (size_t)view->form.row_bytes : NULL);
    uint64_t mine = vxd_slab_place(query.home.fragment, VXD_SLAB_CLAIM | (uint32_t)i);
    uint64_t word = 0;
    bool reused;
    uint32_t place =
        vxd_slab_claim<PACKED>(view, insert.rows, &query, mine, &word, &reused);
    bool is_claim =
        place != VXD_SLAB_NO_PLACE && vxd_slab_delegate(word) >= VXD_SLAB_CLAIM;
    int32_t entry = VXD_NO_ENTRY;
    bool is_winner;
    bool makes;
    bool failed;
    uint32_t n_won;
    uint32_t rank;
    int n_reused;

    if (is_claim && word > mine) {
        atomicMin((unsigned long long *)view->words + place, (unsigned long long)mine);
    }
    n_reused = __syncthreads_count(reused);
    failed = __syncthreads_or(needed && place == VXD_SLAB_NO_PLACE) != 0;
    is_winner = is_claim && vxd_slab_read(view->words + place) == mine;
    rank = vxd_rank_in_block<ONE_TILE>(is_winner, &n_won);
    failed = failed || n_won > n_left;
    makes = is_winner && rank < n_left && !(failed && insert.is_first);
    if (makes) {
        entry = (int32_t)view->heap[base + rank];
        name_entry(&insert, place, (uint32_t)entry);
        vxd_values_copy_thread(insert.values, insert.n_values, (size_t)entry, i);
    }
    make_entry(&insert, makes, i, (uint32_t)entry);
    if (threadIdx.x == 0) {
        counters->n_erased_marks -= (uint32_t)n_reused;
        if (failed) {
            report(&insert);
        }
        if (!failed || !insert.is_first) {
            counters->n_live = base + (n_won < n_left ? n_won : n_left);
        }
    }
    __syncthreads();
    if (!needed) {
        return;
    }
    insert.places[i] = (uint32_t)entry;
    if (is_claim && !is_winner) {
        word = vxd_slab_read(view->words + place);
    }
    if (place != VXD_SLAB_NO_PLACE && !is_winner &&
        vxd_slab_delegate(word) < VXD_SLAB_CLAIM) {
        entry = (int32_t)vxd_slab_delegate(word);
    }
    put(&insert, i, entry, makes);
}

/* Copies winners' values of the arrays chosen. */
static enum vxd_status copy_values(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                   const struct vxd_hashmap_insert_args *args,
                                   const int32_t *entries,
                                   const bool is_chosen[VXD_HASHMAP_MAX_VALUES],
                                   struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (int v = 0; args->values != NULL && v < map->spec.n_values; v++) {
        struct vxd_row_move move = {};

        if (!is_chosen[v]) {
            continue;
        }
        move.to = map->values[v].ptr;
        move.from = args->values[v];
        move.row_bytes = map->row_bytes[v];
        move.n = args->n;
        move.to_rows = entries;
        move.capacity = map->capacity;
        VXD_TRY(vxd_rows_move(queue, &move, err));
    }
out:
    return status;
}

static bool lay_out(size_t n, size_t *numbers, size_t *scan, size_t *total)
{
    size_t places;

    *numbers = *scan = *total = 0;
    return vxd_layout_add(total, n, sizeof(uint32_t), &places) &&
           vxd_layout_add(total, n + 1, sizeof(int32_t), numbers) &&
           vxd_layout_add(total, vxd_scan_scratch_bytes_cuda(n), 1, scan);
}

size_t vxd_slab_insert_bytes_cuda(size_t n)
{
    size_t numbers;
    size_t scan;
    size_t total;

    return lay_out(n, &numbers, &scan, &total) ? total : SIZE_MAX;
}

static enum vxd_status insert_any(struct vxd_queue *queue, const struct insert *insert,
                                  struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_blocks = vxd_slab_blocks(insert->n);
    enum vxd_status status = VXD_OK;

    if (vxd_slab_is_packed(&insert->view.form)) {
        claim_any_kernel<true><<<n_blocks, N_THREADS, 0, stream>>>(*insert);
    } else {
        claim_any_kernel<false><<<n_blocks, N_THREADS, 0, stream>>>(*insert);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "claim_any_kernel", err));
    settle_kernel<<<n_blocks, N_THREADS, 0, stream>>>(*insert);
    VXD_TRY(vxd_cuda_launched(queue->context, "settle_kernel", err));
out:
    return status;
}

static enum vxd_status insert_first(struct vxd_queue *queue, const struct insert *insert,
                                    void *scan, size_t scan_bytes, struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    unsigned n_blocks = vxd_slab_blocks(insert->n);
    enum vxd_status status = VXD_OK;

    if (vxd_slab_is_packed(&insert->view.form)) {
        claim_first_kernel<true><<<n_blocks, N_THREADS, 0, stream>>>(*insert);
    } else {
        claim_first_kernel<false><<<n_blocks, N_THREADS, 0, stream>>>(*insert);
    }
    VXD_TRY(vxd_cuda_launched(queue->context, "claim_first_kernel", err));
    flag_kernel<<<n_blocks, N_THREADS, 0, stream>>>(*insert);
    VXD_TRY(vxd_cuda_launched(queue->context, "flag_kernel", err));
    VXD_TRY(vxd_scan_exclusive_cuda(queue, (const uint32_t *)insert->numbers,
                                    (uint32_t *)insert->numbers, insert->n, scan,
                                    scan_bytes, err));
    number_kernel<<<n_blocks, N_THREADS, 0, stream>>>(*insert);
    VXD_TRY(vxd_cuda_launched(queue->context, "number_kernel", err));
out:
    return status;
}

static enum vxd_status insert_one_tile(struct vxd_queue *queue,
                                       const struct insert *insert, struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;

    if (vxd_slab_is_packed(&insert->view.form)) {
        one_tile_kernel<true><<<1, ONE_TILE, 0, stream>>>(*insert);
    } else {
        one_tile_kernel<false><<<1, ONE_TILE, 0, stream>>>(*insert);
    }
    return vxd_cuda_launched(queue->context, "one_tile_kernel", err);
}

enum vxd_status vxd_slab_insert_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     const struct vxd_hashmap_insert_args *args,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err)
{
    struct insert insert = {};
    enum vxd_status status = VXD_OK;
    bool is_moved[VXD_HASHMAP_MAX_VALUES]; /* by vxd_rows_move */
    bool is_small = args->n <= ONE_TILE;
    size_t numbers;
    size_t scan;
    size_t total;

    /* The same sizes were laid out when the scratch was allocated. */
    (void)lay_out(args->n, &numbers, &scan, &total);
    insert.view = vxd_slab_view_of(map);
    insert.rows = (const uint8_t *)args->keys;
    insert.n = args->n;
    insert.indices = args->indices;
    insert.is_new = args->is_new;
    insert.places = (uint32_t *)scratch;
    insert.numbers = (int32_t *)((uint8_t *)scratch + numbers);
    insert.error_word = queue->error_word;
    insert.most = (uint32_t)(map->size_bound + args->max_new);
    insert.is_first = args->order == VXD_HASH_FIRST;
    memset(is_moved, 1, sizeof is_moved);
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    if (is_small) {
        (void)vxd_split_values(map, args, insert.values, &insert.n_values, is_moved);
        VXD_TRY(insert_one_tile(queue, &insert, err));
    } else if (args->order == VXD_HASH_ANY) {
        VXD_TRY(insert_any(queue, &insert, err));
    } else {
        VXD_TRY(insert_first(queue, &insert, (uint8_t *)scratch + scan,
                             scratch_bytes - scan, err));
    }
    VXD_TRY(copy_values(queue, map, args, (const int32_t *)insert.places, is_moved, err));
    /* Places and numbers suffice where the caller's own count could not be wrong. */
    if (!is_small || args->max_new < args->n) {
        VXD_TRY(vxd_slab_renew(queue, &insert.view, err));
    }
out:
    return status;
}
