// SPDX-License-Identifier: Apache-2.0
/* Kernels of transfers (transfer_cuda.c) that store what was marked: a thread an item. Its words,
 * for each child the mark and what it became; then the store finds or stores it, a warp at a
 * time (store_cuda.h). A store without room says so once, and what it has no room for is put
 * again by the next launch. For .cu files only, which read stores of both forms
 * (VXD_SVDAG_ANY_FORM) and compile it for each of their stores. */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_PUT_CUDA_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_PUT_CUDA_H

#include "gpu/svdag/collect/collect_kernels_cuda.h"

/* Where it stands what a marked node became. */
static __device__ __forceinline__ uint32_t *
vxd_svdag_carry_slot(const struct vxd_svdag_carry_view *carry, uint32_t ref)
{
    struct vxd_svdag_mark mark;

    if (vxd_svdag_find_mark(carry->marks[0], ref, &mark) != NULL) {
        return carry->refs[0] + vxd_svdag_mark_number(&mark, ref);
    }
    (void)vxd_svdag_find_mark(carry->marks[1], ref, &mark);
    return carry->refs[1] + vxd_svdag_mark_number(&mark, ref);
}

/* An item's words with the references that its children have become. 0: one has none yet. */
template <int KIND>
static __device__ __forceinline__ int
vxd_svdag_carry_item(const struct vxd_svdag_carry_view *carry, uint32_t ref,
                     uint32_t *out)
{
    const enum vxd_svdag_kind kind = (enum vxd_svdag_kind)KIND;
    const int bits = carry->view.value_bits;
    const int n_words =
        vxd_svdag_item_words(bits, kind, vxd_svdag_words(&carry->view, ref));
    const struct vxd_svdag_item item = vxd_svdag_item_at(&carry->view, ref, n_words);
    int first;
    const int n_refs = vxd_svdag_item_refs(bits, kind, n_words, &first);

    for (int i = 0; i < n_words; i++) {
        out[i] = vxd_svdag_item_word(&item, i);
    }
    for (int i = first; i < first + n_refs; i++) {
        if (vxd_svdag_is_node(out[i])) {
            out[i] = *vxd_svdag_carry_slot(carry, out[i]);
            if (out[i] == VXD_SVDAG_EMPTY) {
                return 0;
            }
        }
    }
    return n_words;
}

/* What a thread counted over its items. */
struct vxd_svdag_carry_tally {
    uint64_t n_put;
    uint64_t n_words;
    uint64_t n_new;
    uint64_t n_new_words;
};

template <class Store, int KIND>
static __global__ void __launch_bounds__(VXD_SVDAG_CARRY_THREADS)
    put_kernel(const __grid_constant__ struct vxd_svdag_carry_view carry, uint32_t begin,
               uint32_t n)
{
    const struct vxd_svdag_pass *to = &carry.to;
    uint32_t words[KIND == VXD_SVDAG_BLOCK ? VXD_SVDAG_MAX_ITEM_WORDS : 10];
    struct vxd_svdag_sought sought = {words, 0, (enum vxd_svdag_kind)KIND, NULL};
    typename Store::spare spare = Store::no_spare();
    struct vxd_svdag_carry_tally tally = {0, 0, 0, 0};

    for (uint32_t start = blockIdx.x * VXD_SVDAG_CARRY_THREADS; start < n;
         start += gridDim.x * VXD_SVDAG_CARRY_THREADS) {
        const uint32_t i = start + threadIdx.x;
        uint32_t *slot = NULL;
        uint32_t ref;
        bool is_new;

        sought.n_words = 0;
        if (i < n) {
            slot = vxd_svdag_carry_slot(&carry, carry.list[begin + i]);
            if (*slot == VXD_SVDAG_EMPTY) {
                sought.n_words =
                    vxd_svdag_carry_item<KIND>(&carry, carry.list[begin + i], words);
                if (sought.n_words == 0) {
                    carry.state->is_left = 1;
                }
            }
        }
        __syncwarp();
        ref = Store::find_or_store(to, &sought, &spare, &is_new);
        if (sought.n_words > 0 && ref != VXD_SVDAG_EMPTY) {
            const uint64_t n_words = (uint64_t)sought.n_words;

            *slot = ref;
            tally.n_put++;
            tally.n_words += n_words;
            tally.n_new += is_new ? 1 : 0;
            tally.n_new_words += is_new ? n_words : 0;
        }
    }
    vxd_svdag_warp_add(&carry.state->n_put, tally.n_put);
    vxd_svdag_warp_add(&carry.state->n_put_words, tally.n_words);
    vxd_svdag_warp_add(&carry.state->n_new, tally.n_new);
    vxd_svdag_warp_add(&carry.state->n_new_words, tally.n_new_words);
}

/* After it: what was stored counts. */
template <class Store>
static __global__ void
end_kernel(const __grid_constant__ struct vxd_svdag_carry_view carry, int kind)
{
    struct vxd_svdag_carry_state *state = carry.state;

    if (threadIdx.x == 0) {
        Store::end(&carry.to);
        carry.to.store->n_items[kind] += state->n_new;
        carry.to.store->n_words += state->n_new_words;
        state->n_stored += state->n_new;
        state->n_new = 0;
        state->n_new_words = 0;
        state->fault = carry.to.state->fault;
    }
}

/* A launch of both. */
template <class Store, int KIND>
static enum vxd_status
vxd_svdag_carry_put_kind(struct vxd_queue *queue, const struct vxd_svdag_carry_view *view,
                         uint32_t begin, uint32_t n, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    /* The items of an arena need not be counted: its index has room for all. */
    VXD_TRY(vxd_queue_fill(queue, view->to.state, 0, sizeof *view->to.state, err));
    VXD_SVDAG_CARRY_LAUNCH(queue, vxd_svdag_carry_blocks(queue, n),
                           (put_kernel<Store, KIND>), *view, begin, n);
    VXD_SVDAG_CARRY_LAUNCH(queue, 1, (end_kernel<Store>), *view, KIND);
out:
    return status;
}

#endif
