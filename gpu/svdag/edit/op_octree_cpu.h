// SPDX-License-Identifier: Apache-2.0
/* Bins of operations on shapes (bins_cpu.c). */
#ifndef VXD_GPU_SVDAG_EDIT_OP_OCTREE_CPU_H
#define VXD_GPU_SVDAG_EDIT_OP_OCTREE_CPU_H

#include "gpu/svdag/edit/voxel_list_index_cpu.h"
#include "gpu/svdag/edit/shapes_editor.h"

struct vxd_svdag_op_octree_node {
    struct vxd_svdag_cube cube;
    uint32_t first_child;   /* the first of eight bins in a row; 0: none */
    uint32_t first;         /* of its operations */
    uint32_t n;             /* of them */
    uint32_t n_lists;       /* VOXELS */
    uint64_t n_list_leaves; /* leaves in those */
    /* Where it has operations and no parts: all of them, or shapes alone where lists have a table. */
    struct vxd_svdag_shapes_run run;
    bool has_index;
    struct vxd_svdag_indexed_leaf
        *index_memory; /* n_listed entries, then the index of where leaves begin */
    struct vxd_svdag_voxel_list_index index;
};

/* How an operation's shape lies to the parts of the bin that is shared out. */
struct vxd_svdag_op_octree_split {
    uint8_t outside;
    uint8_t inside;
    uint32_t next; /* of a list: its first leaf that is in no part yet */
};

struct vxd_svdag_op_octree {
    struct vxd_context *context;
    const struct vxd_svdag_view *view;
    struct vxd_buffer memory; /* of this, as the others host memory */
    struct vxd_buffer nodes_memory;
    struct vxd_buffer members_memory;
    struct vxd_buffer splits_memory;
    struct vxd_buffer runs_memory;
    struct vxd_buffer indices_memory;
    const struct vxd_svdag_op *ops; /* n_ops */
    size_t n_ops;
    struct vxd_svdag_op_octree_node *nodes;
    size_t n_nodes;
    size_t max_nodes;
    struct vxd_svdag_voxel_list_range
        *members; /* operations of bins; ranges where they are lists */
    size_t n_members;
    size_t max_members;
    struct vxd_svdag_op_octree_split *splits; /* n_ops */
};

/* bins_fill_cpu.c. Fills zeroed bins for these operations: runs and tables of all that have them.
 * *fits is false where too many operations meet in one place.
 * errors  RESOURCE_EXHAUSTED  no memory; what there is is to be freed after all of these */
enum vxd_status vxd_svdag_op_octree_fill(struct vxd_svdag_op_octree *octree, bool *fits,
                                         struct vxd_err *err);

#endif
