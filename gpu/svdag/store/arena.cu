// SPDX-License-Identifier: Apache-2.0
/* Kernels of scenes that do not depend on an editor: the end of an edit, moving the
 * arena's index to a larger one, and checks of lists and heights. */
#include "gpu/core/core_cuda.h"
#include "gpu/svdag/store/find_or_insert_cuda.h"

enum {
    THREADS = 256
};

/* Blocks for n elements, a thread each, up to a limit; kernels loop over the rest. */
static unsigned blocks_for(const struct vxd_queue *queue, size_t n)
{
    size_t most = (size_t)queue->context->info.n_multiprocessors * 8;
    size_t desired = (n + THREADS - 1) / THREADS;

    return (unsigned)(desired < 1 ? 1 : desired < most ? desired : most);
}

static cudaStream_t stream_of(const struct vxd_queue *queue)
{
    return (cudaStream_t)queue->stream;
}

/* The end of an edit ---------------------------------------------------------------------- */

/* Writes the result of an edit, by one thread after all edit kernels. */
static __device__ void finish(const struct vxd_svdag_kernel_args *args,
                              struct vxd_svdag_edit_result *out)
{
    const struct vxd_svdag_progress *progress = args->progress;
    const bool is_bad = progress->fault != 0;

    out->needs_capacity =
        is_bad && (progress->fault & (VXD_SVDAG_BAD_DATA | VXD_SVDAG_STUCK)) == 0;
    out->needs = progress->needs;
    out->root = is_bad ? progress->first_root : progress->root;
    out->n_added = is_bad ? 0 : progress->change.n_added;
    out->n_removed = is_bad ? 0 : progress->change.n_removed;
    out->n_changed = is_bad ? 0 : progress->change.n_changed;
    out->n_freed = is_bad ? 0 : progress->change.n_freed;
    for (int i = 0; i < VXD_SVDAG_N_HEIGHTS; i++) {
        out->n_lookups[i] = is_bad ? 0 : progress->n_lookups[i];
        out->n_new[i] = is_bad ? 0 : progress->n_new[i];
    }
    for (int i = 0; i < VXD_SVDAG_N_STAGES; i++) {
        out->stage_cycles[i] = progress->stage_cycles[i];
    }
}

static __global__ void
finish_kernel(const __grid_constant__ struct vxd_svdag_kernel_args args,
              struct vxd_svdag_edit_result *out, uint32_t *error_word)
{
    const uint64_t *store = (const uint64_t *)(const void *)args.store;
    uint64_t *mirror = (uint64_t *)(void *)args.mirror;

    for (uint32_t i = threadIdx.x; i < sizeof *args.store / sizeof *store;
         i += blockDim.x) {
        mirror[i] = store[i];
    }
    if (threadIdx.x == 0) {
        finish(&args, out);
        if ((args.progress->fault & VXD_SVDAG_BAD_DATA) != 0) {
            (void)atomicCAS_system(error_word, VXD_OK, VXD_INVALID_ARGUMENT);
        } else if ((args.progress->fault & VXD_SVDAG_STUCK) != 0) {
            (void)atomicCAS_system(error_word, VXD_OK, VXD_INTERNAL);
        }
    }
}

enum vxd_status vxd_svdag_launch_finish(struct vxd_queue *queue,
                                        const struct vxd_svdag_kernel_args *args,
                                        struct vxd_svdag_edit_result *out,
                                        struct vxd_err *err)
{
    finish_kernel<<<1, 32, 0, stream_of(queue)>>>(*args, out, queue->error_word);
    return vxd_cuda_launched(queue->context, "finish_kernel", err);
}

/* Another index ------------------------------------------------------------------------- */

/* Inserts the item at an address into an index that does not have it. Several threads may
 * insert at the same time while nobody searches. False: there is no free slot. */
static __device__ bool enter(const struct vxd_svdag_view *view, uint32_t ref,
                             uint32_t tag, const struct vxd_svdag_index *to)
{
    const enum vxd_svdag_kind kind = vxd_svdag_tag_kind(tag);
    const uint32_t *words;
    uint64_t hash;
    uint32_t word;
    uint32_t at;

    if (ref == VXD_SVDAG_EMPTY) {
        return true;
    }
    words = vxd_svdag_words(view, ref);
    hash = vxd_svdag_hash((uint32_t)kind, words,
                          vxd_svdag_item_words(view->value_bits, kind, words));
    word = ref | vxd_svdag_slot_hash(hash, to->addresses);
    at = vxd_svdag_home_bucket(hash, to->n_buckets);
    for (uint32_t i = 0; i < to->n_buckets && i < VXD_SVDAG_INDEX_PROBES; i++) {
        struct vxd_svdag_index_bucket *bucket = &to->buckets[at];

        for (int k = 0; k < VXD_SVDAG_INDEX_SLOTS; k++) {
            if (vxd_svdag_load_volatile(&bucket->slots[k]) == VXD_SVDAG_EMPTY &&
                vxd_svdag_atomic_cas(&bucket->slots[k], VXD_SVDAG_EMPTY, word) ==
                    VXD_SVDAG_EMPTY) {
                vxd_svdag_atomic_or(&bucket->tags, vxd_svdag_tag_bits(tag, k));
                return true;
            }
        }
        at = vxd_svdag_bucket_after(hash, at, to->n_buckets);
    }
    return false;
}

static __global__ void __launch_bounds__(THREADS)
    move_kernel(const struct vxd_svdag_view view, const struct vxd_svdag_index from,
                const struct vxd_svdag_index to, uint32_t *error_word)
{
    const uint64_t n = (uint64_t)from.n_buckets * VXD_SVDAG_INDEX_SLOTS;

    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += (uint64_t)gridDim.x * THREADS) {
        const struct vxd_svdag_index_bucket *bucket =
            &from.buckets[i / VXD_SVDAG_INDEX_SLOTS];
        const int slot = (int)(i % VXD_SVDAG_INDEX_SLOTS);

        if (!enter(&view, bucket->slots[slot] & from.addresses,
                   vxd_svdag_tag_at(bucket->tags, slot), &to)) {
            (void)atomicCAS_system(error_word, VXD_OK, VXD_INTERNAL);
        }
    }
}

enum vxd_status vxd_svdag_index_move(struct vxd_queue *queue,
                                     const struct vxd_svdag_view *view,
                                     const struct vxd_svdag_index *from,
                                     const struct vxd_svdag_index *to,
                                     struct vxd_err *err)
{
    enum vxd_status status = vxd_cuda_enter(queue->context, err);

    if (status != VXD_OK) {
        return status;
    }
    move_kernel<<<blocks_for(queue, (size_t)from->n_buckets * VXD_SVDAG_INDEX_SLOTS),
                  THREADS, 0, stream_of(queue)>>>(*view, *from, *to, queue->error_word);
    return vxd_cuda_launched(queue->context, "move_kernel", err);
}

/* Lists and heights --------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS)
    check_list_kernel(const struct vxd_svdag_voxels voxels, uint64_t n_codes,
                      uint32_t n_materials, bool has_values, uint32_t *fault)
{
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < voxels.n;
         i += (size_t)gridDim.x * THREADS) {
        if (!vxd_svdag_list_is_good(&voxels, i, n_codes, n_materials, has_values)) {
            (void)atomicOr(fault, (uint32_t)VXD_SVDAG_BAD_DATA);
        }
    }
}

enum vxd_status vxd_svdag_launch_check_list(struct vxd_queue *queue,
                                            const struct vxd_svdag_voxels *voxels,
                                            uint64_t n_codes, uint32_t n_materials,
                                            bool has_values, uint32_t *fault,
                                            struct vxd_err *err)
{
    enum vxd_status status = vxd_cuda_enter(queue->context, err);

    if (status != VXD_OK) {
        return status;
    }
    check_list_kernel<<<blocks_for(queue, voxels->n), THREADS, 0, stream_of(queue)>>>(
        *voxels, n_codes, n_materials, has_values, fault);
    return vxd_cuda_launched(queue->context, "check_list_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    check_heights_kernel(const int64_t *heights, size_t n, uint32_t *fault)
{
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += (size_t)gridDim.x * THREADS) {
        if (heights[i] < -VXD_SVDAG_MAX_COORDINATE ||
            heights[i] > VXD_SVDAG_MAX_COORDINATE) {
            (void)atomicOr(fault, (uint32_t)VXD_SVDAG_BAD_DATA);
        }
    }
}

enum vxd_status vxd_svdag_launch_check_heights(struct vxd_queue *queue,
                                               const int64_t *heights, size_t n,
                                               uint32_t *fault, struct vxd_err *err)
{
    enum vxd_status status = vxd_cuda_enter(queue->context, err);

    if (status != VXD_OK) {
        return status;
    }
    check_heights_kernel<<<blocks_for(queue, n), THREADS, 0, stream_of(queue)>>>(
        heights, n, fault);
    return vxd_cuda_launched(queue->context, "check_heights_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    pyramid_kernel(const struct vxd_svdag_heights field,
                   const struct vxd_svdag_pyramid pyramid, int number, uint32_t n_x,
                   uint32_t n_y, int32_t *least, int32_t *most)
{
    const uint64_t n = (uint64_t)n_x * n_y;

    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += (uint64_t)gridDim.x * THREADS) {
        vxd_svdag_pyramid_square(&field, &pyramid, number, (uint32_t)(i / n_y),
                                 (uint32_t)(i % n_y), &least[i], &most[i]);
    }
}

enum vxd_status vxd_svdag_launch_pyramid(struct vxd_queue *queue,
                                         const struct vxd_svdag_heights *field,
                                         const struct vxd_svdag_pyramid *pyramid,
                                         int number, int32_t *least, int32_t *most,
                                         struct vxd_err *err)
{
    int level = VXD_SVDAG_PYRAMID_BASE + number;
    uint32_t n_x = vxd_svdag_pyramid_side(field->n_x, level);
    uint32_t n_y = vxd_svdag_pyramid_side(field->n_y, level);
    enum vxd_status status = vxd_cuda_enter(queue->context, err);

    if (status != VXD_OK) {
        return status;
    }
    pyramid_kernel<<<blocks_for(queue, (size_t)n_x * n_y), THREADS, 0,
                     stream_of(queue)>>>(*field, *pyramid, number, n_x, n_y, least, most);
    return vxd_cuda_launched(queue->context, "pyramid_kernel", err);
}
