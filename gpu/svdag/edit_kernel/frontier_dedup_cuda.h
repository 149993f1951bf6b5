// SPDX-License-Identifier: Apache-2.0
/* Of cubes that are equal to their editor one alone becomes a row (a wall cuts thousands alike). */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_FRONTIER_DEDUP_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_FRONTIER_DEDUP_CUDA_H

#include "gpu/svdag/edit_kernel/frontier_cuda.h"

/* The child that this one, number `child`, is equal to, or VXD_SVDAG_NO_CHILD: then it stands for
 * all that come after. Records are whole before their slot tells of them. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t
vxd_svdag_find_duplicate(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                         const struct vxd_svdag_cube *cube, uint32_t old,
                         const typename Editor::state *state, uint32_t child)
{
    const struct vxd_svdag_dedup_table *dedup = &args->dedup;
    uint64_t words[VXD_SVDAG_DEDUP_RECORD_WORDS];
    const int n = 1 + editor.edit_key(cube, state, words + 1);
    uint64_t record;
    uint64_t hash = 0;

    if (n == 1) {
        return VXD_SVDAG_NO_CHILD;
    }
    record = vxd_svdag_atomic_add(&args->state->n_records, 1);
    if (record >= dedup->n) {
        return VXD_SVDAG_NO_CHILD;
    }
    words[0] = (uint64_t)old << 32 | (uint64_t)cube->height << 8 | (uint64_t)n;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        dedup->records[record * VXD_SVDAG_DEDUP_RECORD_WORDS + (uint64_t)i] = words[i];
        hash = vxd_svdag_fold(hash ^ words[i], 0xa0761d6478bd642fULL);
    }
    dedup->records[record * VXD_SVDAG_DEDUP_RECORD_WORDS + VXD_SVDAG_DEDUP_RECORD_WORDS -
                   1] = child;
#pragma unroll 1
    for (int probe = 0; probe < VXD_SVDAG_DEDUP_PROBES; probe++) {
        uint32_t *slot = &dedup->slots[(hash + (uint64_t)probe) & (2 * dedup->n - 1)];
        uint32_t seen = vxd_svdag_load_published(slot);
        const uint64_t *other;
        bool is_equal = true;

        seen = seen != 0 ? seen : vxd_svdag_publish(slot, (uint32_t)record + 1);
        if (seen == 0) {
            break;
        }
        other = dedup->records + (uint64_t)(seen - 1) * VXD_SVDAG_DEDUP_RECORD_WORDS;
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

/* After that and a barrier, of rows begin to begin + n, by threads `first`, then every size-th:
 * children that are equal to others take their rows, which stand for so many more. */
template <class State>
VXD_SVDAG_DEVICE void
vxd_svdag_join_duplicates(const struct vxd_svdag_kernel_args *args,
                          struct vxd_svdag_frontier_entry<State> *entries, uint32_t begin,
                          uint32_t n, uint32_t first, uint32_t size)
{
    for (uint64_t i = first; i < (uint64_t)n * 8; i += size) {
        struct vxd_svdag_frontier_entry<State> *entry = &entries[begin + i / 8];
        uint32_t *word = &entry->words[1 + i % 8];

        if ((entry->marks >> (VXD_SVDAG_MARK_DUPLICATES + i % 8) & 1) != 0) {
            *word = entries[*word / 8].words[1 + *word % 8];
            (void)vxd_svdag_atomic_add(&args->entry_weights[*word],
                                       args->entry_weights[begin + i / 8]);
        }
    }
}

#endif
