// SPDX-License-Identifier: Apache-2.0
/* What up to 64 operations on shapes make of cubes and leaves, all in one way over the tree.
 *
 * A cube's state is two sets of operations: those whose shape it is wholly in, and those of
 * which that is not known yet. What is outside a shape is outside for all below, so sets only
 * shrink on the way down. An operation that gives every voxel the same, whatever it was, hides
 * those before it where the cube is wholly inside. A cube ends the way where what is left of
 * the operations makes one region of it, or leaves it alone. */
#ifndef VXD_GPU_SVDAG_BRUSH_SHAPES_EDITOR_MATH_H
#define VXD_GPU_SVDAG_BRUSH_SHAPES_EDITOR_MATH_H

#include "gpu/svdag/brush/capsule_math.h"
#include "gpu/svdag/brush/data_shapes_math.h"
#include "gpu/svdag/brush/noise_math.h"
#include "gpu/svdag/node/node_math.h"

/* One way over the tree takes so many operations, */
enum {
    VXD_SVDAG_SHAPES_OPS = 64,
    VXD_SVDAG_SHAPES_LISTS = 4, /* of them, VOXELS */
    VXD_SVDAG_NO_LIST = -1
};

struct vxd_svdag_shape_op {
    const struct vxd_svdag_op *op;
    int list; /* among the lists of this run, or VXD_SVDAG_NO_LIST */
    struct vxd_svdag_pyramid pyramid;
};

/* Operations, in memory of the backend. */
struct vxd_svdag_shapes_run {
    const struct vxd_svdag_shape_op *ops; /* n */
    int n;
    bool has_materials;
    int free_value;
    uint64_t overwriting; /* operations of which the voxel's state before is nothing */
};

struct vxd_svdag_shapes_state {
    uint64_t partial;
    uint64_t inside;
    uint64_t ranges[VXD_SVDAG_SHAPES_LISTS][2]; /* of the lists, in the cube */
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

/* Asks again about the shapes the cube was partly in. */
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

/* What an operation makes of a uniform or empty region. */
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
    return ref; /* operations of other editors, which do not come here */
}

/* Each voxel takes a value of its own from the list. */
VXD_HD bool vxd_svdag_has_own_values(const struct vxd_svdag_op *op)
{
    return op->shape.kind == VXD_SVDAG_VOXELS && op->shape.voxels.values != NULL &&
           (op->action == VXD_SVDAG_FILL || op->action == VXD_SVDAG_PAINT);
}

/* True where the operation leaves an even region as it is, whichever part of it is in. */
VXD_HD bool vxd_svdag_shapes_leave_alone(const struct vxd_svdag_shapes_run *shapes,
                                         const struct vxd_svdag_op *op, uint32_t ref)
{
    if (vxd_svdag_has_own_values(op) &&
        (op->action == VXD_SVDAG_FILL || ref != VXD_SVDAG_EMPTY)) {
        return false;
    }
    return vxd_svdag_shapes_apply_even(shapes, op, ref) == ref;
}

/* Applies the operations to a region that is even: true where it stays so. */
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

/* Drops what the last overwriting operation that holds the cube hides. */
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

/* Only occupied voxels can change, and there are none. */
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

/* What becomes of a cube whose state is refined. */
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
    /* What is left then begins with the one that hides, so `old` is nothing to it. */
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

/* What becomes of the parts of a cube where a ball alone overwrites what stands there, `uniform` being
 * what becomes of those that are wholly in it. */
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

/* What becomes of the parts of a cube that is gone into, whatever stands there, but that those
 * which are `uniform` stay so; their states are the cube's. False: each has to be visited. One
 * ball that overwrites decides alone: most cubes of an edit with a ball are such. */
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

/* What of a shape that the cube is partly in decides over its voxels: a box clipped to the
 * cube, a plane's distance. Walls and floors cut many cubes alike. False where a shape seldom
 * cuts two alike. */
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

/* What decides, with what stands there and the height, what becomes of a cube that is gone into:
 * equal words, equal results. How many words; 0: the cube stands for itself. */
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

/* Values of the voxels of mask, one at least, from a list's entry. The one of all, or -1 where
 * they differ. */
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

/* Gives the voxels of mask their materials: the operation's, or those of the leaf's entry in its
 * list. */
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

/* What an operation that overwrites makes of the voxels of mask: true where they take a material
 * next. Other operations make nothing. */
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

/* What an operation makes of the voxels of mask; *entry is the leaf's where it is a list, else it is
 * not looked at. */
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
        return; /* operations of other editors, which do not come here */
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
