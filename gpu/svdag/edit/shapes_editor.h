// SPDX-License-Identifier: Apache-2.0
/* What the files of the shape editor share. */
#ifndef VXD_GPU_SVDAG_EDIT_SHAPES_EDITOR_H
#define VXD_GPU_SVDAG_EDIT_SHAPES_EDITOR_H

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/brush/brush_cpu.h"
#include "gpu/svdag/brush/brush_math.h"

/* Operations from the first of n on that one run takes: shapes in a row. 0 where the first one
 * is none. */
size_t vxd_dag_shapes_count(const struct vxd_dag_op *ops, size_t n);

/* Plans a run of n operations (1 to VXD_DAG_SHAPES_OPS, as many lists as fit) into shape_ops,
 * whose pyramids stay as they are. Borrows ops and shape_ops. */
void vxd_dag_shapes_plan(const struct vxd_dag_view *view, const struct vxd_dag_op *ops,
                         size_t n, struct vxd_dag_shape_op *shape_ops,
                         struct vxd_dag_shapes_run *run);

/* What the CPU's editors of shapes hand down. */
struct vxd_dag_shapes_own {
    struct vxd_dag_shapes_state shapes;
    const struct vxd_dag_shapes_run *run; /* NULL: above the bin that has one */
    uint32_t bin;
    bool has_lists;  /* the run: ranges are looked at */
    bool is_refined; /* for its cube already */
};

static inline struct vxd_dag_shapes_own *
vxd_dag_shapes_own_of(union vxd_dag_edit_state *state)
{
    return (struct vxd_dag_shapes_own *)(void *)state->bytes;
}

static inline const struct vxd_dag_shapes_own *
vxd_dag_shapes_own_in(const union vxd_dag_edit_state *state)
{
    return (const struct vxd_dag_shapes_own *)(const void *)state->bytes;
}

/* shapes.c, but split: shapes_parts_cpu.c. As of an editor (internal.h), for cubes whose state has a
 * run; visit_parts and split for those that were visited. */
enum vxd_dag_visit vxd_dag_shapes_own_visit(const struct vxd_dag_view *view,
                                            const struct vxd_dag_cube *cube, uint32_t old,
                                            struct vxd_dag_shapes_own *own,
                                            uint32_t *uniform);
bool vxd_dag_shapes_visit_parts(const void *args, const struct vxd_dag_cube *cube,
                                const union vxd_dag_edit_state *state,
                                const uint32_t old[8], struct vxd_dag_told *told);
unsigned vxd_dag_shapes_split(const void *args, const struct vxd_dag_cube *cube,
                              const union vxd_dag_edit_state *state,
                              union vxd_dag_edit_state parts[8]);
void vxd_dag_shapes_leaf(const void *args, const struct vxd_dag_view *view,
                         const struct vxd_dag_cube *cube,
                         const union vxd_dag_edit_state *state,
                         struct vxd_dag_leaf *leaf);

/* shapes_parts_cpu.c. How the parts of a cube lie to a shape; of heightfields and lists it is not
 * known: all partly in. */
struct vxd_dag_relations vxd_dag_shapes_octants(const struct vxd_dag_op *op,
                                                const struct vxd_dag_cube *cube);

/* bins_cpu.c. Operations from the first of n on that bins may take: shapes in a row, without
 * heightfields. */
size_t vxd_dag_bins_count(const struct vxd_dag_op *ops, size_t n);

/* An editor of n such operations, 1 to VXD_DAG_MAX_OPS, for one way over the tree; borrows them.
 * *out is the caller's to end; NULL without an error where too many of them meet in one place.
 * errors  RESOURCE_EXHAUSTED  no memory */
struct vxd_dag_bins;
enum vxd_status vxd_dag_bins_begin(struct vxd_dag *dag, const struct vxd_dag_op *ops,
                                   size_t n, struct vxd_dag_bins **out,
                                   struct vxd_dag_editor *editor, struct vxd_err *err);
void vxd_dag_bins_end(struct vxd_dag_bins *bins);

/* shapes_heights.c. Makes the pyramid of a heightfield; *memory (host) is the caller's, and
 * stays empty where the field is so small that none is ever looked at.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_dag_pyramid_make(struct vxd_context *context,
                                     const struct vxd_dag_heights *field,
                                     struct vxd_buffer *memory,
                                     struct vxd_dag_pyramid *out, struct vxd_err *err);

#endif
