// SPDX-License-Identifier: Apache-2.0
/* States of the eight parts of a cube at once. Most of what an edit looks at are cubes that it finds
 * nothing to do in: asked one by one, each of a cube's operations would be asked eight times. */
#include "gpu/svdag/edit/shapes_editor.h"

static struct vxd_svdag_relations relate_heights(const struct vxd_svdag_shape_op *op,
                                                 const struct vxd_svdag_cube *cube)
{
    struct vxd_svdag_relations relations = {0, 0};

    for (int i = 0; i < 8; i++) {
        const struct vxd_svdag_cube child_cube = vxd_svdag_cube_child(cube, i);
        const struct vxd_svdag_extent extent = vxd_svdag_extent_of(
            child_cube.x, child_cube.y, child_cube.z, child_cube.height);
        const enum vxd_svdag_relation relation =
            vxd_svdag_shapes_relate_other(op, &child_cube, &extent);

        relations.outside |= (unsigned)(relation == VXD_SVDAG_OUTSIDE) << i;
        relations.inside |= (unsigned)(relation == VXD_SVDAG_INSIDE) << i;
    }
    return relations;
}

/* Shares a list's range out. */
static struct vxd_svdag_relations relate_list(const struct vxd_svdag_shape_op *op,
                                              const struct vxd_svdag_cube *cube,
                                              const uint64_t range[2],
                                              union vxd_svdag_edit_state child_states[8])
{
    const struct vxd_svdag_voxels *voxels = &op->op->shape.voxels;
    const uint64_t n_codes = (uint64_t)1
                             << 3 * (cube->height - 1 - VXD_SVDAG_LEAF_HEIGHT);
    uint64_t code = vxd_svdag_list_code(cube->x, cube->y, cube->z);
    uint64_t first = range[0];
    struct vxd_svdag_relations relations = {0, 0};

    for (int i = 0; i < 8; i++) {
        uint64_t *own =
            vxd_svdag_shapes_own_of(&child_states[i])->shapes.ranges[op->list];

        code += n_codes;
        own[0] = first;
        own[1] = vxd_svdag_list_bound(voxels->codes, first, range[1], code);
        first = own[1];
        relations.outside |= (unsigned)(own[0] == own[1]) << i;
    }
    return relations;
}

struct vxd_svdag_relations vxd_svdag_shapes_children(const struct vxd_svdag_op *op,
                                                     const struct vxd_svdag_cube *cube)
{
    const struct vxd_svdag_shape *shape = &op->shape;
    const struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);
    struct vxd_svdag_relations relations = {0, 0};

    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        return vxd_svdag_box_children(shape, &extent, cube->height);
    case VXD_SVDAG_BALL:
        vxd_svdag_ball_children(shape, &extent, cube->height, &relations.outside,
                                &relations.inside);
        break;
    case VXD_SVDAG_HALF_SPACE:
        return vxd_svdag_half_space_children(shape, &extent, cube->height);
    case VXD_SVDAG_CAPSULE:
        return vxd_svdag_capsule_children(shape, &extent, cube->height);
    case VXD_SVDAG_NOISE_BALL:
        return vxd_svdag_noise_ball_children(shape, &extent, cube->height);
    case VXD_SVDAG_HEIGHTFIELD:
    case VXD_SVDAG_VOXELS:
        break; /* these need more than the shape */
    }
    return relations;
}

static struct vxd_svdag_relations
relate_children(const struct vxd_svdag_shape_op *op, const struct vxd_svdag_cube *cube,
                const struct vxd_svdag_shapes_state *state,
                union vxd_svdag_edit_state child_states[8])
{
    switch (op->op->shape.kind) {
    case VXD_SVDAG_HEIGHTFIELD:
        return relate_heights(op, cube);
    case VXD_SVDAG_VOXELS:
        return relate_list(op, cube, state->ranges[op->list], child_states);
    default:
        return vxd_svdag_shapes_children(op->op, cube);
    }
}

unsigned vxd_svdag_shapes_split(const void *args, const struct vxd_svdag_cube *cube,
                                const union vxd_svdag_edit_state *state,
                                union vxd_svdag_edit_state child_states[8])
{
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);
    uint64_t partial[8] = {0};
    uint64_t inside[8] = {0};
    unsigned some = own->shapes.inside != 0 ? VXD_SVDAG_ALL_CHILDREN : 0;

    (void)args;
    for (int i = 0; own->has_lists && i < 8; i++) {
        vxd_svdag_shapes_own_of(&child_states[i])->shapes = own->shapes;
    }
    for (uint64_t rest = own->shapes.partial; rest != 0; rest &= rest - 1) {
        const int number = vxd_svdag_low_bit(rest);
        const struct vxd_svdag_relations relations =
            relate_children(&own->run->ops[number], cube, &own->shapes, child_states);
        const unsigned undecided =
            VXD_SVDAG_ALL_CHILDREN & ~(relations.inside | relations.outside);

        some |= undecided | relations.inside;
        for (int i = 0; i < 8; i++) {
            partial[i] |= (uint64_t)(undecided >> i & 1u) << number;
            inside[i] |= (uint64_t)(relations.inside >> i & 1u) << number;
        }
    }
    for (int i = 0; i < 8; i++) {
        struct vxd_svdag_shapes_own *child_cube =
            vxd_svdag_shapes_own_of(&child_states[i]);

        child_cube->shapes.partial = partial[i];
        child_cube->shapes.inside = own->shapes.inside | inside[i];
        child_cube->run = own->run;
        child_cube->node = own->node;
        child_cube->has_lists = own->has_lists;
        child_cube->is_refined = true;
    }
    return some;
}
