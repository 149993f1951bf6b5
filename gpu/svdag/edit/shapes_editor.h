// SPDX-License-Identifier: Apache-2.0
/* What the files of the shape editor share. */
#ifndef VXD_GPU_SVDAG_EDIT_SHAPES_EDITOR_H
#define VXD_GPU_SVDAG_EDIT_SHAPES_EDITOR_H

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/brush/brush_cpu.h"
#include "gpu/svdag/brush/brush_math.h"

/* Operations from the first of n on that one run takes: shapes in a row. 0 where the first one
 * is none. */
size_t vxd_svdag_shapes_count(const struct vxd_svdag_op *ops, size_t n);

/* Plans a run of n operations (1 to VXD_SVDAG_SHAPES_OPS, as many lists as fit) into shape_ops,
 * whose pyramids stay as they are. Borrows ops and shape_ops. */
void vxd_svdag_shapes_plan(const struct vxd_svdag_view *view,
                           const struct vxd_svdag_op *ops, size_t n,
                           struct vxd_svdag_shape_op *shape_ops,
                           struct vxd_svdag_shapes_run *run);

/* What the CPU's editors of shapes hand down. */
struct vxd_svdag_shapes_own {
    struct vxd_svdag_shapes_state shapes;
    const struct vxd_svdag_shapes_run *run; /* NULL: above the bin that has one */
    uint32_t node;
    bool has_lists;  /* the run: ranges are looked at */
    bool is_refined; /* for its cube already */
};

static inline struct vxd_svdag_shapes_own *
vxd_svdag_shapes_own_of(union vxd_svdag_edit_state *state)
{
    return (struct vxd_svdag_shapes_own *)(void *)state->bytes;
}

static inline const struct vxd_svdag_shapes_own *
vxd_svdag_shapes_own_in(const union vxd_svdag_edit_state *state)
{
    return (const struct vxd_svdag_shapes_own *)(const void *)state->bytes;
}

/* shapes.c, but split: shapes_parts_cpu.c. As of an editor (internal.h), for cubes whose state has a
 * run; classify and split for those that were visited. */
enum vxd_svdag_visit vxd_svdag_shapes_own_visit(const struct vxd_svdag_view *view,
                                                const struct vxd_svdag_cube *cube,
                                                uint32_t old,
                                                struct vxd_svdag_shapes_own *own,
                                                uint32_t *uniform);
bool vxd_svdag_shapes_own_classify(const void *args, const struct vxd_svdag_cube *cube,
                                   const union vxd_svdag_edit_state *state,
                                   const uint32_t old[8],
                                   struct vxd_svdag_classes *classes);
unsigned vxd_svdag_shapes_split(const void *args, const struct vxd_svdag_cube *cube,
                                const union vxd_svdag_edit_state *state,
                                union vxd_svdag_edit_state child_states[8]);
void vxd_svdag_shapes_leaf(const void *args, const struct vxd_svdag_view *view,
                           const struct vxd_svdag_cube *cube,
                           const union vxd_svdag_edit_state *state,
                           struct vxd_svdag_leaf *leaf);

/* shapes_parts_cpu.c. How the parts of a cube lie to a shape; of heightfields and lists it is not
 * known: all partly in. */
struct vxd_svdag_relations vxd_svdag_shapes_children(const struct vxd_svdag_op *op,
                                                     const struct vxd_svdag_cube *cube);

/* bins_cpu.c. Operations from the first of n on that bins may take: shapes in a row, without
 * heightfields. */
size_t vxd_svdag_op_octree_count(const struct vxd_svdag_op *ops, size_t n);

/* An editor of n such operations, 1 to VXD_SVDAG_MAX_OPS, for one way over the tree; borrows them.
 * *out is the caller's to end; NULL without an error where too many of them meet in one place.
 * errors  RESOURCE_EXHAUSTED  no memory */
struct vxd_svdag_op_octree;
enum vxd_status vxd_svdag_op_octree_begin(struct vxd_svdag *svdag,
                                          const struct vxd_svdag_op *ops, size_t n,
                                          struct vxd_svdag_op_octree **out,
                                          struct vxd_svdag_editor *editor,
                                          struct vxd_err *err);
void vxd_svdag_op_octree_end(struct vxd_svdag_op_octree *octree);

/* shapes_heights.c. Makes the pyramid of a heightfield; *memory (host) is the caller's, and
 * stays empty where the field is so small that none is ever looked at.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_pyramid_make(struct vxd_context *context,
                                       const struct vxd_svdag_heights *field,
                                       struct vxd_buffer *memory,
                                       struct vxd_svdag_pyramid *out,
                                       struct vxd_err *err);

#endif
