// SPDX-License-Identifier: Apache-2.0
/* States of the eight parts of a cube at once. Most of what an edit looks at are cubes that it finds
 * nothing to do in: asked one by one, each of a cube's operations would be asked eight times. */
#include "gpu/svdag/edit/shapes_editor.h"

static struct vxd_dag_relations relate_heights(const struct vxd_dag_shape_op *op,
                                               const struct vxd_dag_cube *cube)
{
    struct vxd_dag_relations octants = {0, 0};

    for (int i = 0; i < 8; i++) {
        const struct vxd_dag_cube part = vxd_dag_cube_child(cube, i);
        const struct vxd_dag_extent extent =
            vxd_dag_extent_of(part.x, part.y, part.z, part.height);
        const enum vxd_dag_relation relation =
            vxd_dag_shapes_relate_other(op, &part, &extent);

        octants.outside |= (unsigned)(relation == VXD_DAG_OUTSIDE) << i;
        octants.inside |= (unsigned)(relation == VXD_DAG_INSIDE) << i;
    }
    return octants;
}

/* Shares a list's range out. */
static struct vxd_dag_relations relate_list(const struct vxd_dag_shape_op *op,
                                            const struct vxd_dag_cube *cube,
                                            const uint64_t range[2],
                                            union vxd_dag_edit_state parts[8])
{
    const struct vxd_dag_voxels *voxels = &op->op->shape.voxels;
    const uint64_t n_codes = (uint64_t)1 << 3 * (cube->height - 1 - VXD_DAG_LEAF_HEIGHT);
    uint64_t code = vxd_dag_list_code(cube->x, cube->y, cube->z);
    uint64_t first = range[0];
    struct vxd_dag_relations octants = {0, 0};

    for (int i = 0; i < 8; i++) {
        uint64_t *own = vxd_dag_shapes_own_of(&parts[i])->shapes.ranges[op->list];

        code += n_codes;
        own[0] = first;
        own[1] = vxd_dag_list_bound(voxels->codes, first, range[1], code);
        first = own[1];
        octants.outside |= (unsigned)(own[0] == own[1]) << i;
    }
    return octants;
}

struct vxd_dag_relations vxd_dag_shapes_octants(const struct vxd_dag_op *op,
                                                const struct vxd_dag_cube *cube)
{
    const struct vxd_dag_shape *shape = &op->shape;
    const struct vxd_dag_extent extent =
        vxd_dag_extent_of(cube->x, cube->y, cube->z, cube->height);
    struct vxd_dag_relations octants = {0, 0};

    switch (shape->kind) {
    case VXD_DAG_BOX:
        return vxd_dag_box_octants(shape, &extent, cube->height);
    case VXD_DAG_BALL:
        vxd_dag_ball_octants(shape, &extent, cube->height, &octants.outside,
                             &octants.inside);
        break;
    case VXD_DAG_HALF_SPACE:
        return vxd_dag_half_space_octants(shape, &extent, cube->height);
    case VXD_DAG_CAPSULE:
        return vxd_dag_capsule_octants(shape, &extent, cube->height);
    case VXD_DAG_NOISE_BALL:
        return vxd_dag_noise_ball_octants(shape, &extent, cube->height);
    case VXD_DAG_HEIGHTFIELD:
    case VXD_DAG_VOXELS:
        break; /* these need more than the shape */
    }
    return octants;
}

static struct vxd_dag_relations relate_parts(const struct vxd_dag_shape_op *op,
                                             const struct vxd_dag_cube *cube,
                                             const struct vxd_dag_shapes_state *state,
                                             union vxd_dag_edit_state parts[8])
{
    switch (op->op->shape.kind) {
    case VXD_DAG_HEIGHTFIELD:
        return relate_heights(op, cube);
    case VXD_DAG_VOXELS:
        return relate_list(op, cube, state->ranges[op->list], parts);
    default:
        return vxd_dag_shapes_octants(op->op, cube);
    }
}

unsigned vxd_dag_shapes_split(const void *args, const struct vxd_dag_cube *cube,
                              const union vxd_dag_edit_state *state,
                              union vxd_dag_edit_state parts[8])
{
    const struct vxd_dag_shapes_own *own = vxd_dag_shapes_own_in(state);
    uint64_t partial[8] = {0};
    uint64_t inside[8] = {0};
    unsigned some = own->shapes.inside != 0 ? VXD_DAG_ALL_OCTANTS : 0;

    (void)args;
    for (int i = 0; own->has_lists && i < 8; i++) {
        vxd_dag_shapes_own_of(&parts[i])->shapes = own->shapes;
    }
    for (uint64_t rest = own->shapes.partial; rest != 0; rest &= rest - 1) {
        const int number = vxd_dag_low_bit(rest);
        const struct vxd_dag_relations octants =
            relate_parts(&own->run->ops[number], cube, &own->shapes, parts);
        const unsigned open = VXD_DAG_ALL_OCTANTS & ~(octants.inside | octants.outside);

        some |= open | octants.inside;
        for (int i = 0; i < 8; i++) {
            partial[i] |= (uint64_t)(open >> i & 1u) << number;
            inside[i] |= (uint64_t)(octants.inside >> i & 1u) << number;
        }
    }
    for (int i = 0; i < 8; i++) {
        struct vxd_dag_shapes_own *part = vxd_dag_shapes_own_of(&parts[i]);

        part->shapes.partial = partial[i];
        part->shapes.inside = own->shapes.inside | inside[i];
        part->run = own->run;
        part->bin = own->bin;
        part->has_lists = own->has_lists;
        part->is_refined = true;
    }
    return some;
}
