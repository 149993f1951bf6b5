// SPDX-License-Identifier: Apache-2.0
/* Of cubes that are equal to their editor one alone becomes a row (a wall cuts thousands alike). */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_FRONTIER_DEDUP_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_FRONTIER_DEDUP_CUDA_H

#include "gpu/svdag/edit_kernel/frontier_cuda.h"

/* The child that this one, number `child`, is equal to, or VXD_SVDAG_NO_CHILD: then it stands for
 * all that come after. Records are whole before their slot tells of them. */
template <class Editor>
VXD_SVDAG_DEVICE uint32_t vxd_svdag_find_like(const struct vxd_svdag_pass *pass,
                                              const Editor &editor,
                                              const struct vxd_svdag_cube *cube,
                                              uint32_t old,
                                              const typename Editor::state *state,
                                              uint32_t child)
{
    const struct vxd_svdag_signs *signs = &pass->signs;
    uint64_t words[VXD_SVDAG_SIGN_WORDS];
    const int n = 1 + editor.sign(cube, state, words + 1);
    uint64_t record;
    uint64_t hash = 0;

    if (n == 1) {
        return VXD_SVDAG_NO_CHILD;
    }
    record = vxd_svdag_atomic_add(&pass->state->n_signs, 1);
    if (record >= signs->n) {
        return VXD_SVDAG_NO_CHILD;
    }
    words[0] = (uint64_t)old << 32 | (uint64_t)cube->height << 8 | (uint64_t)n;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        signs->records[record * VXD_SVDAG_SIGN_WORDS + (uint64_t)i] = words[i];
        hash = vxd_svdag_fold(hash ^ words[i], 0xa0761d6478bd642fULL);
    }
    signs->records[record * VXD_SVDAG_SIGN_WORDS + VXD_SVDAG_SIGN_WORDS - 1] = child;
#pragma unroll 1
    for (int probe = 0; probe < VXD_SVDAG_SIGN_PROBES; probe++) {
        uint32_t *slot = &signs->slots[(hash + (uint64_t)probe) & (2 * signs->n - 1)];
        uint32_t seen = vxd_svdag_load_published(slot);
        const uint64_t *other;
        bool is_equal = true;

        seen = seen != 0 ? seen : vxd_svdag_publish(slot, (uint32_t)record + 1);
        if (seen == 0) {
            break;
        }
        other = signs->records + (uint64_t)(seen - 1) * VXD_SVDAG_SIGN_WORDS;
#pragma unroll 1
        for (int i = 0; i < n && is_equal; i++) {
            is_equal = vxd_svdag_load_now64(&other[i]) == words[i];
        }
        if (is_equal) {
            return (uint32_t)vxd_svdag_load_now64(&other[VXD_SVDAG_SIGN_WORDS - 1]);
        }
    }
    return VXD_SVDAG_NO_CHILD;
}

/* After that and a barrier, of rows begin to begin + n, by threads `first`, then every size-th:
 * children that are equal to others take their rows, which stand for so many more. */
template <class State>
VXD_SVDAG_DEVICE void
vxd_svdag_join_likes(const struct vxd_svdag_pass *pass, struct vxd_svdag_row<State> *rows,
                     uint32_t begin, uint32_t n, uint32_t first, uint32_t size)
{
    for (uint64_t i = first; i < (uint64_t)n * 8; i += size) {
        struct vxd_svdag_row<State> *row = &rows[begin + i / 8];
        uint32_t *word = &row->words[1 + i % 8];

        if ((row->marks >> (VXD_SVDAG_MARK_LIKES + i % 8) & 1) != 0) {
            *word = rows[*word / 8].words[1 + *word % 8];
            (void)vxd_svdag_atomic_add(&pass->cube_weights[*word],
                                       pass->cube_weights[begin + i / 8]);
        }
    }
}

#endif
