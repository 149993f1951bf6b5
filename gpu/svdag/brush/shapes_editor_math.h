// SPDX-License-Identifier: Apache-2.0
/* The editor of up to 64 operations on shapes, applied in one traversal of the tree.
 *
 * The state of a cube is two sets of operations: those whose shape holds the whole cube,
 * and those for which that is not known yet. A cube outside a shape has all descendants
 * outside, so the sets only shrink on the way down. An operation that overwrites (its
 * result does not depend on the voxel before) hides the operations before it where the
 * cube is wholly inside. The traversal stops at a cube where the remaining operations
 * make it uniform, or leave it as it is. */
#ifndef VXD_GPU_SVDAG_BRUSH_SHAPES_EDITOR_MATH_H
#define VXD_GPU_SVDAG_BRUSH_SHAPES_EDITOR_MATH_H

#include "gpu/svdag/brush/capsule_math.h"
#include "gpu/svdag/brush/data_shapes_math.h"
#include "gpu/svdag/brush/noise_math.h"
#include "gpu/svdag/node/node_math.h"

/* Most operations of one traversal, */
enum {
    VXD_SVDAG_SHAPES_OPS = 64,
    VXD_SVDAG_SHAPES_LISTS = 4, /* and most of them with a list of voxels */
    VXD_SVDAG_NO_LIST = -1
};

struct vxd_svdag_shape_op {
    const struct vxd_svdag_op *op;
    int list; /* index among the lists of this run, or */
    struct vxd_svdag_pyramid pyramid;
};

/* The operations of a traversal, in memory of the backend. */
struct vxd_svdag_shapes_run {
    const struct vxd_svdag_shape_op *ops; /* n */
    int n;
    bool has_materials;
    int free_value;
    uint64_t
        overwriting; /* operations whose result does not depend on the voxel before */
};

struct vxd_svdag_shapes_state {
    uint64_t partial;
    uint64_t inside;
    uint64_t ranges[VXD_SVDAG_SHAPES_LISTS]
                   [2]; /* for each list: the range of its leaves in the cube */
};

/* Index of the highest bit of a mask, which is not 0. */
VXD_HD int vxd_svdag_high_bit(uint64_t mask)
{
#if defined(__CUDA_ARCH__)
    return 63 - __clzll((long long)mask);
#else
    return 63 - __builtin_clzll(mask);
#endif
}

VXD_HD bool vxd_svdag_is_overwriting(const struct vxd_svdag_op *op)
{
    return op->action == VXD_SVDAG_FILL || op->action == VXD_SVDAG_ERASE ||
           op->action == VXD_SVDAG_SET_FREE;
}

/* Whole cubes ----------------------------------------------------------------------------- */

VXD_SVDAG_RARE enum vxd_svdag_relation
vxd_svdag_shapes_relate_other(const struct vxd_svdag_shape_op *op,
                              const struct vxd_svdag_cube *cube,
                              const struct vxd_svdag_extent *extent)
{
    const struct vxd_svdag_shape *shape = &op->op->shape;

    return shape->kind == VXD_SVDAG_CAPSULE ? vxd_svdag_capsule_relation(shape, extent)
           : shape->kind == VXD_SVDAG_NOISE_BALL
               ? vxd_svdag_noise_ball_relation(shape, extent)
               : vxd_svdag_heights_relation(shape, &op->pyramid, cube->x, cube->y,
                                            cube->height, extent);
}

VXD_HD enum vxd_svdag_relation vxd_svdag_shapes_relate(
    const struct vxd_svdag_shape_op *op, const struct vxd_svdag_cube *cube,
    const struct vxd_svdag_extent *extent, struct vxd_svdag_shapes_state *state)
{
    const struct vxd_svdag_shape *shape = &op->op->shape;
    uint64_t *range;

    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        return vxd_svdag_box_relation(shape, extent);
    case VXD_SVDAG_BALL:
        return vxd_svdag_ball_relation(shape, extent);
    case VXD_SVDAG_HALF_SPACE:
        return vxd_svdag_half_space_relation(shape, extent);
    case VXD_SVDAG_CAPSULE:
    case VXD_SVDAG_NOISE_BALL:
    case VXD_SVDAG_HEIGHTFIELD:
        return vxd_svdag_shapes_relate_other(op, cube, extent);
    case VXD_SVDAG_VOXELS:
        break;
    }
    range = state->ranges[op->list];
    vxd_svdag_list_narrow(&shape->voxels, cube->x, cube->y, cube->z, cube->height, range);
    return range[0] == range[1] ? VXD_SVDAG_OUTSIDE : VXD_SVDAG_PARTIAL;
}

/* Classifies a cube against the shapes that its parent was partly in. */
VXD_HD void vxd_svdag_shapes_refine(const struct vxd_svdag_shapes_run *shapes,
                                    const struct vxd_svdag_cube *cube,
                                    struct vxd_svdag_shapes_state *state)
{
    struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);

    for (uint64_t rest = state->partial; rest != 0; rest &= rest - 1) {
        uint64_t bit = rest & -rest;

        switch (vxd_svdag_shapes_relate(&shapes->ops[vxd_svdag_low_bit(rest)], cube,
                                        &extent, state)) {
        case VXD_SVDAG_INSIDE:
            state->inside |= bit;
            state->partial &= ~bit;
            break;
        case VXD_SVDAG_OUTSIDE:
            state->partial &= ~bit;
            break;
        case VXD_SVDAG_PARTIAL:
            break;
        }
    }
}

/* What an operation makes of an empty or uniform region. */
VXD_HD uint32_t vxd_svdag_shapes_apply_even(const struct vxd_svdag_shapes_run *shapes,
                                            const struct vxd_svdag_op *op, uint32_t ref)
{
    bool is_occupied =
        ref != VXD_SVDAG_EMPTY && (int)vxd_svdag_uniform_value(ref) != shapes->free_value;

    switch (op->action) {
    case VXD_SVDAG_FILL:
        return VXD_SVDAG_UNIFORM | op->value;
    case VXD_SVDAG_ERASE:
        return VXD_SVDAG_EMPTY;
    case VXD_SVDAG_SET_FREE:
        return VXD_SVDAG_UNIFORM | (uint32_t)shapes->free_value;
    case VXD_SVDAG_PAINT:
        return is_occupied ? VXD_SVDAG_UNIFORM | op->value : ref;
    case VXD_SVDAG_REPLACE:
        return is_occupied && vxd_svdag_uniform_value(ref) == op->from
                   ? VXD_SVDAG_UNIFORM | op->value
                   : ref;
    case VXD_SVDAG_ERODE:
    case VXD_SVDAG_DILATE:
    case VXD_SVDAG_COPY:
        break;
    }
    return ref; /* other editors handle these actions */
}

/* True where each voxel takes its own value from the list. */
VXD_HD bool vxd_svdag_has_own_values(const struct vxd_svdag_op *op)
{
    return op->shape.kind == VXD_SVDAG_VOXELS && op->shape.voxels.values != NULL &&
           (op->action == VXD_SVDAG_FILL || op->action == VXD_SVDAG_PAINT);
}

/* True where the operation leaves an empty or uniform region as it is, whichever part of
 * it is inside the shape. */
VXD_HD bool vxd_svdag_shapes_leave_alone(const struct vxd_svdag_shapes_run *shapes,
                                         const struct vxd_svdag_op *op, uint32_t ref)
{
    if (vxd_svdag_has_own_values(op) &&
        (op->action == VXD_SVDAG_FILL || ref != VXD_SVDAG_EMPTY)) {
        return false;
    }
    return vxd_svdag_shapes_apply_even(shapes, op, ref) == ref;
}

/* Applies the operations to an empty or uniform region: true where it stays so. */
VXD_HD bool vxd_svdag_shapes_fold(const struct vxd_svdag_shapes_run *shapes,
                                  const struct vxd_svdag_shapes_state *state,
                                  uint32_t *ref)
{
    for (uint64_t rest = state->partial | state->inside; rest != 0; rest &= rest - 1) {
        const struct vxd_svdag_op *op = shapes->ops[vxd_svdag_low_bit(rest)].op;

        if ((state->inside & rest & -rest) != 0) {
            *ref = vxd_svdag_shapes_apply_even(shapes, op, *ref);
        } else if (!vxd_svdag_shapes_leave_alone(shapes, op, *ref)) {
            return false;
        }
    }
    return true;
}

/* Drops the operations before the last overwriting one that holds the whole cube. True
 * where there is one. */
VXD_HD bool vxd_svdag_shapes_hide(const struct vxd_svdag_shapes_run *shapes,
                                  struct vxd_svdag_shapes_state *state)
{
    uint64_t covering = state->inside & shapes->overwriting;
    uint64_t last;

    if (covering == 0) {
        return false;
    }
    last = (uint64_t)1 << vxd_svdag_high_bit(covering);
    state->inside &= -last;
    state->partial &= -last;
    return true;
}

/* True where only occupied voxels could change, and the cube has none. */
VXD_HD bool vxd_svdag_shapes_find_nothing(const struct vxd_svdag_shapes_run *shapes,
                                          const struct vxd_svdag_view *view,
                                          const struct vxd_svdag_shapes_state *state,
                                          uint32_t old, int height)
{
    return ((state->partial | state->inside) & shapes->overwriting) == 0 &&
           height > VXD_SVDAG_LEAF_HEIGHT && vxd_svdag_is_node(old) &&
           (vxd_svdag_words(view, old)[0] & VXD_SVDAG_HAS_OCCUPIED) == 0;
}

VXD_HD void vxd_svdag_shapes_begin_state(const struct vxd_svdag_shapes_run *shapes,
                                         struct vxd_svdag_shapes_state *state)
{
    state->partial =
        shapes->n == 0 ? 0 : ~(uint64_t)0 >> (VXD_SVDAG_SHAPES_OPS - shapes->n);
    state->inside = 0;
    for (int i = 0; i < VXD_SVDAG_SHAPES_LISTS; i++) {
        state->ranges[i][0] = 0;
        state->ranges[i][1] = 0;
    }
    for (int i = 0; i < shapes->n; i++) {
        if (shapes->ops[i].list != VXD_SVDAG_NO_LIST) {
            state->ranges[shapes->ops[i].list][1] = shapes->ops[i].op->shape.voxels.n;
        }
    }
}

/* What becomes of a cube whose state was refined. */
VXD_HD enum vxd_svdag_visit
vxd_svdag_shapes_decide(const struct vxd_svdag_shapes_run *shapes,
                        const struct vxd_svdag_view *view,
                        const struct vxd_svdag_cube *cube, uint32_t old,
                        struct vxd_svdag_shapes_state *state, uint32_t *uniform)
{
    bool is_hidden;

    if ((state->partial | state->inside) == 0) {
        return VXD_SVDAG_KEEP;
    }
    /* If so, the remaining operations begin with one that overwrites, and `old` does not
     * matter. */
    is_hidden = vxd_svdag_shapes_hide(shapes, state);
    *uniform = old;
    if ((is_hidden || !vxd_svdag_is_node(old)) &&
        vxd_svdag_shapes_fold(shapes, state, uniform)) {
        return *uniform == old ? VXD_SVDAG_KEEP : VXD_SVDAG_SET;
    }
    return vxd_svdag_shapes_find_nothing(shapes, view, state, old, cube->height)
               ? VXD_SVDAG_KEEP
               : VXD_SVDAG_DESCEND;
}

VXD_HD enum vxd_svdag_visit
vxd_svdag_shapes_visit(const struct vxd_svdag_shapes_run *shapes,
                       const struct vxd_svdag_view *view,
                       const struct vxd_svdag_cube *cube, uint32_t old,
                       struct vxd_svdag_shapes_state *state, uint32_t *uniform)
{
    if (state->partial != 0) {
        vxd_svdag_shapes_refine(shapes, cube, state);
    }
    return vxd_svdag_shapes_decide(shapes, view, cube, old, state, uniform);
}

/* Classifies the children of a cube where a single ball overwrites. `uniform` is what
 * becomes of children wholly inside. */
VXD_HD void vxd_svdag_ball_classify(const struct vxd_svdag_shape *ball,
                                    const struct vxd_svdag_cube *cube, uint32_t uniform,
                                    struct vxd_svdag_classes *classes)
{
    struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);
    unsigned is_outside;
    unsigned is_inside;

    vxd_svdag_ball_children(ball, &extent, cube->height, &is_outside, &is_inside);
    classes->uniform = uniform;
    classes->set = is_inside;
    classes->expand = 0xffu & ~(is_outside | is_inside);
}

/* Classifies the children of a cube at once, without reading them; only children that
 * already are `uniform` stay so. The children's states are the cube's. False: each child
 * has to be visited. Only one overwriting ball is decided this way, but most cubes of an
 * edit with a ball are such. */
VXD_HD bool vxd_svdag_shapes_classify(const struct vxd_svdag_shapes_run *shapes,
                                      const struct vxd_svdag_cube *cube, uint64_t partial,
                                      uint64_t inside, struct vxd_svdag_classes *classes)
{
    const struct vxd_svdag_op *op;

    if (inside != 0 || (partial & (partial - 1)) != 0 ||
        (partial & shapes->overwriting) == 0) {
        return false;
    }
    op = shapes->ops[vxd_svdag_low_bit(partial)].op;
    if (op->shape.kind != VXD_SVDAG_BALL) {
        return false;
    }
    vxd_svdag_ball_classify(&op->shape, cube,
                            vxd_svdag_shapes_apply_even(shapes, op, VXD_SVDAG_EMPTY),
                            classes);
    return true;
}

VXD_HD int64_t vxd_svdag_within(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Writes the part of an edit key that a shape adds: what decides over the voxels of a
 * cube that is partly inside. For a box that is the box clipped to the cube, for a
 * half-space the distance of its plane. Walls and floors cut many cubes in the same way.
 * False for shapes that seldom cut two cubes in the same way. */
VXD_HD bool vxd_svdag_shape_edit_key(const struct vxd_svdag_shape *shape,
                                     const struct vxd_svdag_extent *extent,
                                     uint64_t **words)
{
    int64_t d = shape->d;

    if (shape->kind == VXD_SVDAG_HALF_SPACE) {
        for (int axis = 0; axis < 3; axis++) {
            d -= shape->n[axis] * extent->low[axis];
        }
        *(*words)++ = (uint64_t)d;
        return true;
    }
    if (shape->kind != VXD_SVDAG_BOX) {
        return false;
    }
    for (int axis = 0; axis < 3; axis++) {
        int64_t from = extent->low[axis];
        int64_t end = extent->high[axis] + 1;
        uint64_t low = (uint64_t)(vxd_svdag_within(shape->low[axis], from, end) - from);
        uint64_t high = (uint64_t)(vxd_svdag_within(shape->high[axis], from, end) - from);

        *(*words)++ = low << 32 | high;
    }
    return true;
}

/* Writes the edit key of a cube. Together with the reference and the height it decides
 * what becomes of the cube: equal keys give equal results. Returns the number of words;
 * 0: the cube has no key and is never a duplicate. */
VXD_HD int vxd_svdag_shapes_edit_key(const struct vxd_svdag_shapes_run *shapes,
                                     const struct vxd_svdag_cube *cube,
                                     const struct vxd_svdag_shapes_state *own,
                                     uint64_t *words)
{
    struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);
    uint64_t *next = words;

    *next++ = own->partial;
    *next++ = own->inside;
    for (uint64_t rest = own->partial; rest != 0; rest &= rest - 1) {
        const struct vxd_svdag_shape_op *op = &shapes->ops[vxd_svdag_low_bit(rest)];

        if (next + 3 > words + VXD_SVDAG_EDIT_KEY_WORDS ||
            !vxd_svdag_shape_edit_key(&op->op->shape, &extent, &next)) {
            return 0;
        }
    }
    for (uint64_t rest = own->inside; rest != 0; rest &= rest - 1) {
        if (shapes->ops[vxd_svdag_low_bit(rest)].list != VXD_SVDAG_NO_LIST) {
            return 0;
        }
    }
    return (int)(next - words);
}

/* Leaves ---------------------------------------------------------------------------------- */

VXD_SVDAG_RARE uint64_t vxd_svdag_shapes_mask_other(const struct vxd_svdag_shape *shape,
                                                    const struct vxd_svdag_cube *cube,
                                                    const struct vxd_svdag_extent *extent)
{
    return shape->kind == VXD_SVDAG_CAPSULE ? vxd_svdag_capsule_mask(shape, extent)
           : shape->kind == VXD_SVDAG_NOISE_BALL
               ? vxd_svdag_noise_ball_mask(shape, extent)
               : vxd_svdag_heights_mask(shape, cube->x, cube->y, extent);
}

VXD_HD uint64_t vxd_svdag_shapes_mask(const struct vxd_svdag_shape_op *op,
                                      const struct vxd_svdag_cube *cube,
                                      const struct vxd_svdag_extent *extent,
                                      const struct vxd_svdag_shapes_state *state)
{
    const struct vxd_svdag_shape *shape = &op->op->shape;

    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        return vxd_svdag_box_mask(shape, extent);
    case VXD_SVDAG_BALL:
        return vxd_svdag_ball_mask(shape, extent);
    case VXD_SVDAG_HALF_SPACE:
        return vxd_svdag_half_space_mask(shape, extent);
    case VXD_SVDAG_CAPSULE:
    case VXD_SVDAG_NOISE_BALL:
    case VXD_SVDAG_HEIGHTFIELD:
        return vxd_svdag_shapes_mask_other(shape, cube, extent);
    case VXD_SVDAG_VOXELS:
        break;
    }
    return shape->voxels.masks[state->ranges[op->list][0]];
}

/* Writes the values of the voxels of `mask`, at least one, from an entry of a list.
 * Returns the value where all are equal, else -1. */
VXD_SVDAG_RARE int vxd_svdag_shapes_list_values(const struct vxd_svdag_voxels *voxels,
                                                uint64_t entry, uint64_t mask,
                                                bool is_packed, uint16_t *values)
{
    const uint64_t list_mask = voxels->masks[entry];
    const uint16_t *from = voxels->values + voxels->first_value[entry];
    int differ = 0;
    int value = 0;

    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        uint64_t lower = (rest & (~rest + 1)) - 1;
        uint16_t own = from[vxd_svdag_popc(list_mask & lower)];

        value = rest == mask ? own : value;
        differ |= own ^ value;
        vxd_svdag_values_put(values, is_packed, vxd_svdag_low_bit(rest), own);
    }
    return differ == 0 ? value : -1;
}

/* Gives the voxels of `mask` their materials: the operation's value, or those of the
 * leaf's entry in the list. */
VXD_HD void vxd_svdag_shapes_set_values(const struct vxd_svdag_op *op,
                                        const uint64_t *entry, uint64_t mask,
                                        struct vxd_svdag_leaf *leaf)
{
    int value = (int)op->value;

    if (mask == 0) {
        return;
    }
    if (vxd_svdag_has_own_values(op)) {
        value = vxd_svdag_shapes_list_values(&op->shape.voxels, *entry, mask,
                                             leaf->is_packed, leaf->values);
    }
    if (value >= 0) {
        vxd_svdag_leaf_set_value(leaf, mask, (uint16_t)value);
    } else {
        vxd_svdag_leaf_mix(leaf, leaf->set & ~leaf->free & ~mask, 0, 0);
    }
}

/* Applies an overwriting action to the voxels of `mask`. Returns true where they take a
 * material next. Other actions change nothing. */
VXD_HD bool vxd_svdag_leaf_overwrite(enum vxd_svdag_action action, uint64_t mask,
                                     struct vxd_svdag_leaf *leaf)
{
    const bool is_set = action == VXD_SVDAG_FILL || action == VXD_SVDAG_SET_FREE;

    if (is_set || action == VXD_SVDAG_ERASE) {
        leaf->set = is_set ? leaf->set | mask : leaf->set & ~mask;
        leaf->free =
            action == VXD_SVDAG_SET_FREE ? leaf->free | mask : leaf->free & ~mask;
    }
    return action == VXD_SVDAG_FILL;
}

/* Applies an operation to the voxels of `mask`. *entry is the leaf's entry where the
 * shape is a list, else it is not read. */
VXD_HD void vxd_svdag_shapes_apply(const struct vxd_svdag_shapes_run *shapes,
                                   const struct vxd_svdag_op *op, const uint64_t *entry,
                                   uint64_t mask, struct vxd_svdag_leaf *leaf)
{
    switch (op->action) {
    case VXD_SVDAG_FILL:
    case VXD_SVDAG_ERASE:
    case VXD_SVDAG_SET_FREE:
        if (!vxd_svdag_leaf_overwrite(op->action, mask, leaf)) {
            return;
        }
        break;
    case VXD_SVDAG_PAINT:
        mask &= leaf->set & ~leaf->free;
        break;
    case VXD_SVDAG_REPLACE:
        mask &= leaf->set & ~leaf->free;
        if (shapes->has_materials) {
            mask = vxd_svdag_leaf_find_value(leaf, mask, op->from);
        }
        break;
    case VXD_SVDAG_ERODE:
    case VXD_SVDAG_DILATE:
    case VXD_SVDAG_COPY:
        return; /* other editors handle these actions */
    }
    if (shapes->has_materials) {
        vxd_svdag_shapes_set_values(op, entry, mask, leaf);
    }
}

VXD_HD void vxd_svdag_shapes_edit_leaf(const struct vxd_svdag_shapes_run *shapes,
                                       const struct vxd_svdag_cube *cube,
                                       const struct vxd_svdag_shapes_state *state,
                                       struct vxd_svdag_leaf *leaf)
{
    struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);

    for (uint64_t rest = state->partial | state->inside; rest != 0; rest &= rest - 1) {
        const struct vxd_svdag_shape_op *op = &shapes->ops[vxd_svdag_low_bit(rest)];
        uint64_t mask = (state->inside & rest & -rest) != 0
                            ? ~(uint64_t)0
                            : vxd_svdag_shapes_mask(op, cube, &extent, state);

        vxd_svdag_shapes_apply(
            shapes, op->op, state->ranges[op->list == VXD_SVDAG_NO_LIST ? 0 : op->list],
            mask, leaf);
    }
}

#endif
