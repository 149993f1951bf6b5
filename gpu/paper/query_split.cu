// SPDX-License-Identifier: Apache-2.0
/* The kernels that walk over nodes, in the form for stores that split items. */
#define VXD_SVDAG_SPLIT_FORM

#include "gpu/paper/slab_stores.h"
#include "gpu/svdag/diff/diff_cuda.h"
#include "gpu/svdag/query/query_cuda.h"

const struct vxd_svdag_queries vxd_paper_split_queries = {
    vxd_svdag_values_launch<true>,
    vxd_svdag_changed_launch<true>,
    vxd_svdag_cast_rays_launch<true>,
    vxd_svdag_nearest_launch<true>,
    vxd_svdag_overlap_launch<true>,
    vxd_svdag_count_launch<true>,
    vxd_svdag_export_cells_launch<true>,
    vxd_svdag_export_dense_launch<true>,
    vxd_svdag_export_bits_launch<true>,
    vxd_svdag_diff_launch<true>,
    vxd_paper_draw_split,
};
