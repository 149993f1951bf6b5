// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/edit/voxel_list_index_cpu.h"

#include <string.h>

/* By counting, list after list: what is of one leaf is in the order of the lists. */
void vxd_svdag_voxel_list_index_make(const struct vxd_svdag_cube *cube,
                                     const struct vxd_svdag_op *ops,
                                     const struct vxd_svdag_voxel_list_range *ranges,
                                     size_t n, uint32_t *first,
                                     struct vxd_svdag_indexed_leaf *entries,
                                     struct vxd_svdag_voxel_list_index *table)
{
    const uint64_t code = vxd_svdag_list_code(cube->x, cube->y, cube->z);
    const size_t n_leaves = vxd_svdag_leaves_of_cube(cube);
    uint32_t sum = 0;

    memset(first, 0, (n_leaves + 1) * sizeof *first);
    for (size_t i = 0; i < n; i++) {
        const uint64_t *codes = ops[ranges[i].number].shape.voxels.codes;

        for (uint32_t k = ranges[i].begin; k < ranges[i].end; k++) {
            first[codes[k] - code]++;
        }
    }
    for (size_t i = 0; i <= n_leaves; i++) {
        sum += first[i];
        first[i] =
            sum; /* where they end; filled from the end on, it is where they begin */
    }
    for (size_t i = n; i > 0; i--) {
        const struct vxd_svdag_voxel_list_range *range = &ranges[i - 1];
        const struct vxd_svdag_voxels *voxels = &ops[range->number].shape.voxels;

        for (uint32_t k = range->begin; k < range->end; k++) {
            entries[--first[voxels->codes[k] - code]] = (struct vxd_svdag_indexed_leaf){
                .mask = voxels->masks[k], .number = range->number, .entry = k};
        }
    }
    *table = (struct vxd_svdag_voxel_list_index){
        .code = code, .first = first, .entries = entries};
}
