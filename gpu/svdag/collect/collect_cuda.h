// SPDX-License-Identifier: Apache-2.0
/* Kernels of collections that insert the marked items: a thread for each item. It reads
 * the item's words and the new reference of each child; then the store finds or inserts
 * the items of a warp together (find_or_insert_cuda.h). A store without capacity sets a
 * fault, and what did not fit is put again by the next launch. For .cu files only, which
 * read stores of both forms (VXD_SVDAG_ANY_FORM) and compile this for each of their
 * stores. */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_CUDA_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_CUDA_H

#include "gpu/svdag/collect/collect_kernels_cuda.h"

/* Where the new reference of a marked node is kept. */
static __device__ __forceinline__ uint32_t *
vxd_svdag_collect_device_slot(const struct vxd_svdag_collect_view *collection,
                              uint32_t ref)
{
    struct vxd_svdag_mark mark;

    if (vxd_svdag_find_mark(collection->marks[0], ref, &mark) != NULL) {
        return collection->refs[0] + vxd_svdag_mark_number(&mark, ref);
    }
    (void)vxd_svdag_find_mark(collection->marks[1], ref, &mark);
    return collection->refs[1] + vxd_svdag_mark_number(&mark, ref);
}

/* Copies the words of an item with the new references of its children. Returns 0 where a
 * child has none yet. */
template <int KIND>
static __device__ __forceinline__ int
vxd_svdag_collect_device_item(const struct vxd_svdag_collect_view *collection,
                              uint32_t ref, uint32_t *out)
{
    const enum vxd_svdag_kind kind = (enum vxd_svdag_kind)KIND;
    const int bits = collection->view.value_bits;
    const int n_words =
        vxd_svdag_item_words(bits, kind, vxd_svdag_words(&collection->view, ref));
    const struct vxd_svdag_item item = vxd_svdag_item_at(&collection->view, ref, n_words);
    int first;
    const int n_refs = vxd_svdag_item_refs(bits, kind, n_words, &first);

    for (int i = 0; i < n_words; i++) {
        out[i] = vxd_svdag_item_word(&item, i);
    }
    for (int i = first; i < first + n_refs; i++) {
        if (vxd_svdag_is_node(out[i])) {
            out[i] = *vxd_svdag_collect_device_slot(collection, out[i]);
            if (out[i] == VXD_SVDAG_EMPTY) {
                return 0;
            }
        }
    }
    return n_words;
}

/* Counts of a thread over its items. */
struct vxd_svdag_collect_tally {
    uint64_t n_put;
    uint64_t n_words;
    uint64_t n_new;
    uint64_t n_new_words;
};

template <class Store, int KIND>
static __global__ void __launch_bounds__(VXD_SVDAG_COLLECT_THREADS)
    put_kernel(const __grid_constant__ struct vxd_svdag_collect_view collection,
               uint32_t begin, uint32_t n)
{
    const struct vxd_svdag_kernel_args *to = &collection.to;
    uint32_t words[KIND == VXD_SVDAG_BLOCK ? VXD_SVDAG_MAX_ITEM_WORDS : 10];
    struct vxd_svdag_lane_key key = {words, 0, (enum vxd_svdag_kind)KIND, NULL};
    typename Store::spare spare = Store::no_spare();
    struct vxd_svdag_collect_tally tally = {0, 0, 0, 0};

    for (uint32_t start = blockIdx.x * VXD_SVDAG_COLLECT_THREADS; start < n;
         start += gridDim.x * VXD_SVDAG_COLLECT_THREADS) {
        const uint32_t i = start + threadIdx.x;
        uint32_t *slot = NULL;
        uint32_t ref;
        bool is_new;

        key.n_words = 0;
        if (i < n) {
            slot = vxd_svdag_collect_device_slot(&collection, collection.list[begin + i]);
            if (*slot == VXD_SVDAG_EMPTY) {
                key.n_words = vxd_svdag_collect_device_item<KIND>(
                    &collection, collection.list[begin + i], words);
                if (key.n_words == 0) {
                    collection.state->is_left = 1;
                }
            }
        }
        __syncwarp();
        ref = Store::find_or_insert(to, &key, &spare, &is_new);
        if (key.n_words > 0 && ref != VXD_SVDAG_EMPTY) {
            const uint64_t n_words = (uint64_t)key.n_words;

            *slot = ref;
            tally.n_put++;
            tally.n_words += n_words;
            tally.n_new += is_new ? 1 : 0;
            tally.n_new_words += is_new ? n_words : 0;
        }
    }
    vxd_svdag_warp_add(&collection.state->n_put, tally.n_put);
    vxd_svdag_warp_add(&collection.state->n_put_words, tally.n_words);
    vxd_svdag_warp_add(&collection.state->n_new, tally.n_new);
    vxd_svdag_warp_add(&collection.state->n_new_words, tally.n_new_words);
}

/* Runs after it: adds up what was inserted. */
template <class Store>
static __global__ void
end_kernel(const __grid_constant__ struct vxd_svdag_collect_view collection, int kind)
{
    struct vxd_svdag_collect_state *state = collection.state;

    if (threadIdx.x == 0) {
        Store::end(&collection.to);
        collection.to.store->n_items[kind] += state->n_new;
        collection.to.store->n_words += state->n_new_words;
        state->n_stored += state->n_new;
        state->n_new = 0;
        state->n_new_words = 0;
        state->fault = collection.to.state->fault;
    }
}

/* Launches both. */
template <class Store, int KIND>
static enum vxd_status
vxd_svdag_collect_device_put_kind(struct vxd_queue *queue,
                                  const struct vxd_svdag_collect_view *view,
                                  uint32_t begin, uint32_t n, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    /* The state's count of items may stay 0: the arena's index has capacity for all. */
    VXD_TRY(vxd_queue_fill(queue, view->to.state, 0, sizeof *view->to.state, err));
    VXD_SVDAG_COLLECT_LAUNCH(queue, vxd_svdag_collect_device_blocks(queue, n),
                             (put_kernel<Store, KIND>), *view, begin, n);
    VXD_SVDAG_COLLECT_LAUNCH(queue, 1, (end_kernel<Store>), *view, KIND);
out:
    return status;
}

#endif
