// SPDX-License-Identifier: Apache-2.0
/* The editor of up to 64 operations on shapes (shapes_math.h): its memory, and its functions
 * as the CPU's way over the tree calls them. */
#include "gpu/svdag/edit/shapes_editor.h"
#include "gpu/svdag/edit/edit.h"

#include <assert.h>

struct vxd_svdag_shapes {
    struct vxd_context *context;
    struct vxd_buffer memory; /* of this, host */
    struct vxd_svdag_shapes_run run;
    struct vxd_svdag_shape_op ops[VXD_SVDAG_SHAPES_OPS];
    struct vxd_buffer pyramids[VXD_SVDAG_SHAPES_OPS]; /* host */
};

_Static_assert(sizeof(struct vxd_svdag_shapes_own) <= VXD_SVDAG_STATE_BYTES,
               "an editor's state fits the memory kept for it");

static void begin(const void *args, union vxd_svdag_edit_state *state)
{
    struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_of(state);

    *own = (struct vxd_svdag_shapes_own){.run = args};
    for (int i = 0; i < own->run->n; i++) {
        own->has_lists = own->has_lists || own->run->ops[i].list != VXD_SVDAG_NO_LIST;
    }
    vxd_svdag_shapes_begin_state(own->run, &own->shapes);
}

enum vxd_svdag_visit vxd_svdag_shapes_own_visit(const struct vxd_svdag_view *view,
                                                const struct vxd_svdag_cube *cube,
                                                uint32_t old,
                                                struct vxd_svdag_shapes_own *own,
                                                uint32_t *uniform)
{
    bool is_refined = own->is_refined;

    own->is_refined = false; /* for a part */
    return is_refined
               ? vxd_svdag_shapes_decide(own->run, view, cube, old, &own->shapes, uniform)
               : vxd_svdag_shapes_visit(own->run, view, cube, old, &own->shapes, uniform);
}

static enum vxd_svdag_visit visit(const void *args, const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_cube *cube, uint32_t old,
                                  union vxd_svdag_edit_state *state, uint32_t *uniform)
{
    (void)args;
    return vxd_svdag_shapes_own_visit(view, cube, old, vxd_svdag_shapes_own_of(state),
                                      uniform);
}

/* One ball that overwrites decides alone: most cubes of an edit with a ball are such. */
bool vxd_svdag_shapes_own_classify(const void *args, const struct vxd_svdag_cube *cube,
                                   const union vxd_svdag_edit_state *state,
                                   const uint32_t old[8],
                                   struct vxd_svdag_classes *classes)
{
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);
    unsigned same = 0;

    (void)args;
    if (!vxd_svdag_shapes_classify(own->run, cube, own->shapes.partial,
                                   own->shapes.inside, classes)) {
        return false;
    }
    for (int octant = 0; octant < 8; octant++) {
        same |= (unsigned)(old[octant] == classes->uniform) << octant;
    }
    classes->set &= ~same;
    classes->expand &= ~same;
    return true;
}

static int edit_key(const void *args, const struct vxd_svdag_cube *cube,
                    const union vxd_svdag_edit_state *state, uint64_t *words)
{
    return vxd_svdag_shapes_edit_key(args, cube, &vxd_svdag_shapes_own_in(state)->shapes,
                                     words);
}

void vxd_svdag_shapes_leaf(const void *args, const struct vxd_svdag_view *view,
                           const struct vxd_svdag_cube *cube,
                           const union vxd_svdag_edit_state *state,
                           struct vxd_svdag_leaf *leaf)
{
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);

    (void)args;
    (void)view;
    vxd_svdag_shapes_edit_leaf(own->run, cube, &own->shapes, leaf);
}

static bool take_op(struct vxd_svdag_edit_batch *batch, const struct vxd_svdag_op *op,
                    int most_ops, int most_lists)
{
    bool is_list = op->shape.kind == VXD_SVDAG_VOXELS;

    if (batch->n_ops == most_ops || op->action >= VXD_SVDAG_ERODE ||
        (is_list && batch->n_lists == most_lists)) {
        return false;
    }
    batch->n_ops++;
    batch->n_lists += is_list;
    return true;
}

size_t vxd_svdag_shapes_count(const struct vxd_svdag_op *ops, size_t n)
{
    struct vxd_svdag_edit_batch batch = {.n_ops = 0};
    size_t i = 0;

    while (i < n &&
           take_op(&batch, &ops[i], VXD_SVDAG_SHAPES_OPS, VXD_SVDAG_SHAPES_LISTS)) {
        i++;
    }
    return i;
}

bool vxd_svdag_edit_batch_add(struct vxd_svdag_edit_batch *batch,
                              const struct vxd_svdag_op *ops, size_t n_ops)
{
    int most_lists =
        batch->backend == VXD_BACKEND_CPU ? VXD_SVDAG_MAX_OPS : VXD_SVDAG_SHAPES_LISTS;
    struct vxd_svdag_edit_batch longer = *batch;

    for (size_t i = 0; i < n_ops; i++) {
        if (!take_op(&longer, &ops[i], VXD_SVDAG_MAX_OPS, most_lists)) {
            return false;
        }
    }
    *batch = longer;
    return true;
}

void vxd_svdag_shapes_plan(const struct vxd_svdag_view *view,
                           const struct vxd_svdag_op *ops, size_t n,
                           struct vxd_svdag_shape_op *shape_ops,
                           struct vxd_svdag_shapes_run *run)
{
    int n_lists = 0;

    assert(n > 0 && n <= VXD_SVDAG_SHAPES_OPS);
    *run = (struct vxd_svdag_shapes_run){.ops = shape_ops,
                                         .n = (int)n,
                                         .has_materials = view->value_bits > 1,
                                         .free_value = view->free_value};
    for (size_t i = 0; i < n; i++) {
        shape_ops[i].op = &ops[i];
        shape_ops[i].list =
            ops[i].shape.kind == VXD_SVDAG_VOXELS ? n_lists++ : VXD_SVDAG_NO_LIST;
        run->overwriting |= (uint64_t)vxd_svdag_is_overwriting(&ops[i]) << i;
    }
    assert(n_lists <= VXD_SVDAG_SHAPES_LISTS);
}

enum vxd_status vxd_svdag_shapes_begin(struct vxd_svdag *svdag,
                                       const struct vxd_svdag_op *ops, size_t n,
                                       struct vxd_svdag_shapes **out,
                                       struct vxd_svdag_editor *editor,
                                       struct vxd_err *err)
{
    struct vxd_svdag_shapes *shapes;
    struct vxd_buffer memory;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_host_alloc(svdag->context, sizeof *shapes, &memory, err));
    shapes = memory.ptr;
    *shapes = (struct vxd_svdag_shapes){.context = svdag->context, .memory = memory};
    *out = shapes;
    vxd_svdag_shapes_plan(&svdag->view, ops, n, shapes->ops, &shapes->run);
    for (size_t i = 0; i < n; i++) {
        if (ops[i].shape.kind == VXD_SVDAG_HEIGHTFIELD) {
            VXD_TRY(vxd_svdag_pyramid_make(svdag->context, &ops[i].shape.field,
                                           &shapes->pyramids[i], &shapes->ops[i].pyramid,
                                           err));
        }
    }
    *editor = (struct vxd_svdag_editor){.begin = begin,
                                        .visit = visit,
                                        .classify = vxd_svdag_shapes_own_classify,
                                        .split = vxd_svdag_shapes_split,
                                        .leaf = vxd_svdag_shapes_leaf,
                                        .edit_key = edit_key,
                                        .args = &shapes->run};
    return VXD_OK;
out:
    vxd_svdag_shapes_end(*out);
    *out = NULL;
    return status;
}

void vxd_svdag_shapes_end(struct vxd_svdag_shapes *shapes)
{
    struct vxd_buffer memory;

    if (shapes == NULL) {
        return;
    }
    for (int i = 0; i < shapes->run.n; i++) {
        vxd_host_free(shapes->context, &shapes->pyramids[i]);
    }
    memory = shapes->memory;
    vxd_host_free(shapes->context, &memory);
}
