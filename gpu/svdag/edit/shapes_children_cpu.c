// SPDX-License-Identifier: Apache-2.0
/* States of the eight parts of a cube at once. Most of what an edit looks at are cubes that it finds
 * nothing to do in: asked one by one, each of a cube's operations would be asked eight times. */
#include "gpu/svdag/edit/shapes_editor.h"

static struct vxd_svdag_relations relate_heights(const struct vxd_svdag_shape_op *op,
                                                 const struct vxd_svdag_cube *cube)
{
    struct vxd_svdag_relations octants = {0, 0};

    for (int i = 0; i < 8; i++) {
        const struct vxd_svdag_cube part = vxd_svdag_cube_child(cube, i);
        const struct vxd_svdag_extent extent =
            vxd_svdag_extent_of(part.x, part.y, part.z, part.height);
        const enum vxd_svdag_relation relation =
            vxd_svdag_shapes_relate_other(op, &part, &extent);

        octants.outside |= (unsigned)(relation == VXD_SVDAG_OUTSIDE) << i;
        octants.inside |= (unsigned)(relation == VXD_SVDAG_INSIDE) << i;
    }
    return octants;
}

/* Shares a list's range out. */
static struct vxd_svdag_relations relate_list(const struct vxd_svdag_shape_op *op,
                                              const struct vxd_svdag_cube *cube,
                                              const uint64_t range[2],
                                              union vxd_svdag_edit_state parts[8])
{
    const struct vxd_svdag_voxels *voxels = &op->op->shape.voxels;
    const uint64_t n_codes = (uint64_t)1
                             << 3 * (cube->height - 1 - VXD_SVDAG_LEAF_HEIGHT);
    uint64_t code = vxd_svdag_list_code(cube->x, cube->y, cube->z);
    uint64_t first = range[0];
    struct vxd_svdag_relations octants = {0, 0};

    for (int i = 0; i < 8; i++) {
        uint64_t *own = vxd_svdag_shapes_own_of(&parts[i])->shapes.ranges[op->list];

        code += n_codes;
        own[0] = first;
        own[1] = vxd_svdag_list_bound(voxels->codes, first, range[1], code);
        first = own[1];
        octants.outside |= (unsigned)(own[0] == own[1]) << i;
    }
    return octants;
}

struct vxd_svdag_relations vxd_svdag_shapes_octants(const struct vxd_svdag_op *op,
                                                    const struct vxd_svdag_cube *cube)
{
    const struct vxd_svdag_shape *shape = &op->shape;
    const struct vxd_svdag_extent extent =
        vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);
    struct vxd_svdag_relations octants = {0, 0};

    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        return vxd_svdag_box_octants(shape, &extent, cube->height);
    case VXD_SVDAG_BALL:
        vxd_svdag_ball_octants(shape, &extent, cube->height, &octants.outside,
                               &octants.inside);
        break;
    case VXD_SVDAG_HALF_SPACE:
        return vxd_svdag_half_space_octants(shape, &extent, cube->height);
    case VXD_SVDAG_CAPSULE:
        return vxd_svdag_capsule_octants(shape, &extent, cube->height);
    case VXD_SVDAG_NOISE_BALL:
        return vxd_svdag_noise_ball_octants(shape, &extent, cube->height);
    case VXD_SVDAG_HEIGHTFIELD:
    case VXD_SVDAG_VOXELS:
        break; /* these need more than the shape */
    }
    return octants;
}

static struct vxd_svdag_relations relate_parts(const struct vxd_svdag_shape_op *op,
                                               const struct vxd_svdag_cube *cube,
                                               const struct vxd_svdag_shapes_state *state,
                                               union vxd_svdag_edit_state parts[8])
{
    switch (op->op->shape.kind) {
    case VXD_SVDAG_HEIGHTFIELD:
        return relate_heights(op, cube);
    case VXD_SVDAG_VOXELS:
        return relate_list(op, cube, state->ranges[op->list], parts);
    default:
        return vxd_svdag_shapes_octants(op->op, cube);
    }
}

unsigned vxd_svdag_shapes_split(const void *args, const struct vxd_svdag_cube *cube,
                                const union vxd_svdag_edit_state *state,
                                union vxd_svdag_edit_state parts[8])
{
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);
    uint64_t partial[8] = {0};
    uint64_t inside[8] = {0};
    unsigned some = own->shapes.inside != 0 ? VXD_SVDAG_ALL_OCTANTS : 0;

    (void)args;
    for (int i = 0; own->has_lists && i < 8; i++) {
        vxd_svdag_shapes_own_of(&parts[i])->shapes = own->shapes;
    }
    for (uint64_t rest = own->shapes.partial; rest != 0; rest &= rest - 1) {
        const int number = vxd_svdag_low_bit(rest);
        const struct vxd_svdag_relations octants =
            relate_parts(&own->run->ops[number], cube, &own->shapes, parts);
        const unsigned open = VXD_SVDAG_ALL_OCTANTS & ~(octants.inside | octants.outside);

        some |= open | octants.inside;
        for (int i = 0; i < 8; i++) {
            partial[i] |= (uint64_t)(open >> i & 1u) << number;
            inside[i] |= (uint64_t)(octants.inside >> i & 1u) << number;
        }
    }
    for (int i = 0; i < 8; i++) {
        struct vxd_svdag_shapes_own *part = vxd_svdag_shapes_own_of(&parts[i]);

        part->shapes.partial = partial[i];
        part->shapes.inside = own->shapes.inside | inside[i];
        part->run = own->run;
        part->bin = own->bin;
        part->has_lists = own->has_lists;
        part->is_refined = true;
    }
    return some;
}
