// SPDX-License-Identifier: Apache-2.0
/* Deduplication: work that would give the same result is done once.
 *
 * Cubes of the frontier that have equal edit keys (what stands there, the height, and
 * what the editor does with the cube) become the same node. A flat wall cuts thousands of
 * cubes the same way. The first of them becomes an entry, which then stands for all; a
 * hash table in device memory finds it.
 *
 * Leaves: of the surface of a ball nine leaves of ten have a mask that another leaf near
 * it has. Each mask is edited and stored once per block; a memo in shared memory has the
 * result until the parents are reduced. Slots are taken by atomics in one phase, filled
 * in the next one and read in a later one, with barriers between. They stay from batch to
 * batch until too many are taken.
 *
 * Threads: a lane a child. Bytes: a record of up to 80 bytes is written for each open
 * cube, and one is read for each probe; the memo moves nothing. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_DEDUP_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_DEDUP_CUDA_H

#include "gpu/svdag/edit_kernel/frontier_cuda.h"

/* Cubes ----------------------------------------------------------------------------------- */

/* The child that child number `child` duplicates. VXD_SVDAG_NO_CHILD: there is none, and
 * this one stands for all that come after it. A record is complete before its slot names
 * it. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t
vxd_svdag_find_duplicate(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                         const struct vxd_svdag_cube *cube, uint32_t old,
                         const typename Editor::state *state, uint32_t child)
{
    const struct vxd_svdag_dedup_table *keys = &args->dedup;
    uint64_t words[VXD_SVDAG_DEDUP_RECORD_WORDS];
    const int n = 1 + editor.edit_key(cube, state, words + 1);
    uint64_t record;
    uint64_t hash = 0;

    if (n == 1) {
        return VXD_SVDAG_NO_CHILD;
    }
    record = vxd_svdag_atomic_add(&args->state->n_records, 1);
    if (record >= keys->n) {
        return VXD_SVDAG_NO_CHILD;
    }
    words[0] = (uint64_t)old << 32 | (uint64_t)cube->height << 8 | (uint64_t)n;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        keys->records[record * VXD_SVDAG_DEDUP_RECORD_WORDS + (uint64_t)i] = words[i];
        hash = vxd_svdag_fold(hash ^ words[i], 0xa0761d6478bd642fULL);
    }
    keys->records[record * VXD_SVDAG_DEDUP_RECORD_WORDS + VXD_SVDAG_DEDUP_RECORD_WORDS -
                  1] = child;
#pragma unroll 1
    for (int probe = 0; probe < VXD_SVDAG_DEDUP_PROBES; probe++) {
        uint32_t *slot = &keys->slots[(hash + (uint64_t)probe) & (2 * keys->n - 1)];
        uint32_t seen = vxd_svdag_load_published(slot);
        const uint64_t *other;
        bool is_equal = true;

        seen = seen != 0 ? seen : vxd_svdag_publish(slot, (uint32_t)record + 1);
        if (seen == 0) {
            break;
        }
        other = keys->records + (uint64_t)(seen - 1) * VXD_SVDAG_DEDUP_RECORD_WORDS;
#pragma unroll 1
        for (int i = 0; i < n && is_equal; i++) {
            is_equal = vxd_svdag_load_volatile64(&other[i]) == words[i];
        }
        if (is_equal) {
            return (uint32_t)vxd_svdag_load_volatile64(
                &other[VXD_SVDAG_DEDUP_RECORD_WORDS - 1]);
        }
    }
    return VXD_SVDAG_NO_CHILD;
}

/* After that and a barrier: duplicates among the children of entries begin to begin + n
 * take the entry of the child that they duplicate, whose weight grows. A thread takes
 * every size-th child, from number `first` on. */
template <class State>
VXD_SVDAG_DEVICE void vxd_svdag_dedup_entries(const struct vxd_svdag_kernel_args *args,
                                              struct vxd_svdag_entry<State> *entries,
                                              uint32_t begin, uint32_t n, uint32_t first,
                                              uint32_t size)
{
    for (uint64_t i = first; i < (uint64_t)n * 8; i += size) {
        struct vxd_svdag_entry<State> *entry = &entries[begin + i / 8];
        uint32_t *word = &entry->words[1 + i % 8];

        if ((entry->marks >> (VXD_SVDAG_MARK_DUPLICATES + i % 8) & 1) != 0) {
            *word = entries[*word / 8].words[1 + *word % 8];
            (void)vxd_svdag_atomic_add(&args->entry_weights[*word],
                                       args->entry_weights[begin + i / 8]);
        }
    }
}

/* Leaves ---------------------------------------------------------------------------------- */

/* What the leaves of a slot were before. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_leaf_memo_old(const struct vxd_svdag_leaf_memo *memo,
                                                  uint32_t slot)
{
    return slot < VXD_SVDAG_LEAF_MEMO_HALF ? VXD_SVDAG_EMPTY : memo->old;
}

/* The slot of leaves of which the voxels `mask` are edited where `old` stood;
 * VXD_SVDAG_NO_MEMO_SLOT where there is none. *is_first: no leaf had the slot before. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_leaf_memo_take(struct vxd_svdag_leaf_memo *memo,
                                                   uint64_t mask, uint32_t old,
                                                   bool *is_first)
{
    const uint32_t hash = (uint32_t)(mask * 0x9e3779b97f4a7c15ULL >> 32) >> 16;
    uint32_t half = 0;

    *is_first = false;
    if (mask == 0 || vxd_svdag_is_node(old)) {
        return VXD_SVDAG_NO_MEMO_SLOT;
    }
    if (old != VXD_SVDAG_EMPTY) {
        const uint32_t owner = vxd_svdag_atomic_cas(&memo->old, VXD_SVDAG_EMPTY, old);

        if (owner != VXD_SVDAG_EMPTY && owner != old) {
            return VXD_SVDAG_NO_MEMO_SLOT;
        }
        half = VXD_SVDAG_LEAF_MEMO_HALF;
    }
#pragma unroll 1
    for (uint32_t probe = 0; probe < VXD_SVDAG_LEAF_MEMO_PROBES; probe++) {
        const uint32_t slot = half + ((hash + probe) & (VXD_SVDAG_LEAF_MEMO_HALF - 1));
        const uint64_t seen = vxd_svdag_atomic_cas64(&memo->masks[slot], 0, mask);

        if (seen == 0 || seen == mask) {
            *is_first = seen == 0;
            return slot;
        }
    }
    return VXD_SVDAG_NO_MEMO_SLOT;
}

/* By all threads of a block, while the memo is not in use: frees all slots where it is
 * new, or too many are taken. Ends with a barrier. */
VXD_SVDAG_DEVICE void vxd_svdag_leaf_memo_clear(struct vxd_svdag_leaf_memo *memo,
                                                bool is_new)
{
    const bool clears = is_new || memo->n_taken > VXD_SVDAG_LEAF_MEMO_MOST_TAKEN;

    if (clears) {
        for (uint32_t i = threadIdx.x; i < 2 * VXD_SVDAG_LEAF_MEMO_HALF;
             i += blockDim.x) {
            memo->masks[i] = 0;
        }
    }
    __syncthreads();
    if (clears && threadIdx.x == 0) {
        memo->old = VXD_SVDAG_EMPTY;
        memo->n_taken = 0;
    }
}

/* By all lanes of a warp: the leaves of its list take slots. Those that are the first of
 * their slot, or have none, are to be edited. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_take_slots(const Editor &editor,
                                           struct vxd_svdag_block_memory<Editor> *block,
                                           const uint16_t *leaves, uint32_t n)
{
    const uint32_t octant_bits = 3;

#pragma unroll 1
    for (uint32_t i = vxd_svdag_lane(); i - vxd_svdag_lane() < n; i += 32) {
        const uint32_t number = i < n ? leaves[i] : 0;
        const uint32_t octant = number & ((1u << octant_bits) - 1);
        struct vxd_svdag_entry<typename Editor::state> *entry =
            &block->entries[number >> octant_bits];
        uint32_t slot = VXD_SVDAG_NO_MEMO_SLOT;
        bool is_first = false;
        uint32_t firsts;
        uint32_t place;

        if (i < n) {
            const struct vxd_svdag_cube cube =
                vxd_svdag_cube_at(entry->place, VXD_SVDAG_LEAF_HEIGHT + 1);
            const struct vxd_svdag_cube leaf = vxd_svdag_cube_child(&cube, (int)octant);

            slot = vxd_svdag_leaf_memo_take(&block->leaf_memo, editor.mask(&leaf),
                                            entry->words[1 + octant], &is_first);
        }
        __syncwarp();
        if (slot != VXD_SVDAG_NO_MEMO_SLOT) {
            entry->words[1 + octant] = slot;
            (void)atomicOr(&entry->marks, 1u << octant);
        }
        firsts = __ballot_sync(UINT32_MAX, is_first);
        place = vxd_svdag_take_places(
            &block->n_leaves, i < n && (is_first || slot == VXD_SVDAG_NO_MEMO_SLOT));
        if (i < n && (is_first || slot == VXD_SVDAG_NO_MEMO_SLOT)) {
            block->leaves[place] = (uint16_t)number;
        }
        if (vxd_svdag_lane() == 0 && firsts != 0) {
            (void)atomicAdd(&block->leaf_memo.n_taken, (uint32_t)__popc(firsts));
        }
        __syncwarp();
    }
}

#endif
