// SPDX-License-Identifier: Apache-2.0
/* The editor of erosion and dilation: goes down the tree with a cube's six neighbours. Of a
 * voxel's neighbours at least three lie in its own cube, so that the surface of even regions
 * alone is looked at, and often not even that. */
#include <assert.h>

#include "gpu/dag/capsule_math.h"
#include "gpu/dag/cursor_math.h"
#include "gpu/dag/internal.h"
#include "gpu/dag/morph_math.h"
#include "gpu/dag/noise_math.h"

/* As union vxd_dag_edit_state. */
struct state {
    uint32_t self;
    uint32_t next[6]; /* by direction; EMPTY outside the scene */
};

_Static_assert(sizeof(struct state) <= VXD_DAG_STATE_BYTES, "a state has its room");

static struct state *state_of(union vxd_dag_edit_state *state)
{
    return (struct state *)(void *)state->bytes;
}

static const struct state *const_state_of(const union vxd_dag_edit_state *state)
{
    return (const struct state *)(const void *)state->bytes;
}

static enum vxd_dag_relation relate(const struct vxd_dag_shape *shape,
                                    const struct vxd_dag_extent *extent)
{
    switch (shape->kind) {
    case VXD_DAG_BOX:
        return vxd_dag_box_relation(shape, extent);
    case VXD_DAG_BALL:
        return vxd_dag_ball_relation(shape, extent);
    case VXD_DAG_CAPSULE:
        return vxd_dag_capsule_relation(shape, extent);
    case VXD_DAG_HALF_SPACE:
        return vxd_dag_half_space_relation(shape, extent);
    case VXD_DAG_NOISE_BALL:
        return vxd_dag_noise_ball_relation(shape, extent);
    case VXD_DAG_VOXELS:
    case VXD_DAG_HEIGHTFIELD:
        break;
    }
    assert(false && "a shape that vxd_dag_edit refuses");
    return VXD_DAG_OUTSIDE;
}

static uint64_t mask_of(const struct vxd_dag_shape *shape,
                        const struct vxd_dag_extent *extent)
{
    switch (shape->kind) {
    case VXD_DAG_BOX:
        return vxd_dag_box_mask(shape, extent);
    case VXD_DAG_BALL:
        return vxd_dag_ball_mask(shape, extent);
    case VXD_DAG_CAPSULE:
        return vxd_dag_capsule_mask(shape, extent);
    case VXD_DAG_HALF_SPACE:
        return vxd_dag_half_space_mask(shape, extent);
    case VXD_DAG_NOISE_BALL:
        return vxd_dag_noise_ball_mask(shape, extent);
    case VXD_DAG_VOXELS:
    case VXD_DAG_HEIGHTFIELD:
        break;
    }
    assert(false && "a shape that vxd_dag_edit refuses");
    return 0;
}

static void begin(const void *args, union vxd_dag_edit_state *state)
{
    const struct vxd_dag_source *source = args;

    *state_of(state) = (struct state){.self = source->root};
}

static void make_child(const void *args, const struct vxd_dag_view *view,
                       const struct vxd_dag_cube *cube,
                       const union vxd_dag_edit_state *state, int octant,
                       union vxd_dag_edit_state *child)
{
    const struct vxd_dag_source *source = args;
    const struct state *from = const_state_of(state);
    struct state *to = state_of(child);

    (void)view;
    (void)cube;
    to->self = vxd_dag_below(&source->view, from->self, octant);
    for (int direction = 0; direction < 6; direction++) {
        const int bit = 4 >> (direction >> 1);
        const bool is_high = (octant & bit) != 0;
        const bool is_sibling = is_high != ((direction & 1) != 0);

        to->next[direction] = vxd_dag_below(
            &source->view, is_sibling ? from->self : from->next[direction], octant ^ bit);
    }
}

static bool has_occupied(const struct vxd_dag_view *view, uint32_t ref, int height)
{
    const struct vxd_dag_spot spot = {.ref = ref, .height = height};

    return (vxd_dag_spot_states(view, &spot) & VXD_DAG_OCCUPIED) != 0;
}

static bool is_full(const struct vxd_dag_view *view, uint32_t ref)
{
    return !vxd_dag_is_node(ref) && vxd_dag_uniform_state(view, ref) == VXD_DAG_OCCUPIED;
}

/* Some voxel of the cube may have fewer than threshold neighbours. Of a full cube's voxels
 * none lacks more than one an axis, and only towards a neighbour that is not full. */
static bool may_erode(const struct vxd_dag_source *source, const struct state *state,
                      int height)
{
    int n_open = 0;

    if (!is_full(&source->view, state->self)) {
        return has_occupied(&source->view, state->self, height);
    }
    for (size_t axis = 0; axis < 3; axis++) {
        n_open += !is_full(&source->view, state->next[2 * axis]) ||
                  !is_full(&source->view, state->next[2 * axis + 1]);
    }
    return 6 - n_open < source->op->threshold;
}

/* Some voxel of the cube may be empty and have threshold neighbours. In a cube without
 * occupied ones none has more than one an axis. */
static bool may_dilate(const struct vxd_dag_source *source, const struct state *state,
                       int height)
{
    const struct vxd_dag_view *view = &source->view;
    int n_near = 0;

    if (is_full(view, state->self)) {
        return false;
    }
    if (has_occupied(view, state->self, height)) {
        return true;
    }
    for (size_t axis = 0; axis < 3; axis++) {
        n_near += has_occupied(view, state->next[2 * axis], height) ||
                  has_occupied(view, state->next[2 * axis + 1], height);
    }
    return n_near >= source->op->threshold;
}

static enum vxd_dag_visit visit(const void *args, const struct vxd_dag_view *view,
                                const struct vxd_dag_cube *cube, uint32_t old,
                                union vxd_dag_edit_state *state, uint32_t *uniform)
{
    const struct vxd_dag_source *source = args;
    struct vxd_dag_extent extent =
        vxd_dag_extent_of(cube->x, cube->y, cube->z, cube->height);
    bool may_change = source->op->action == VXD_DAG_ERODE
                          ? may_erode(source, state_of(state), cube->height)
                          : may_dilate(source, state_of(state), cube->height);

    (void)view;
    (void)old;
    (void)uniform;
    return may_change && relate(&source->op->shape, &extent) != VXD_DAG_OUTSIDE
               ? VXD_DAG_DESCEND
               : VXD_DAG_KEEP;
}

/* Gives new voxels the value of their first occupied neighbour. */
static void take_values(const struct vxd_dag_source *source, const struct state *state,
                        const uint64_t neighbours[6], uint64_t mask,
                        struct vxd_dag_leaf *leaf)
{
    for (int direction = 0; direction < 6; direction++) {
        uint64_t taken = mask & neighbours[direction];

        mask &= ~taken;
        for (uint64_t rest = taken; rest != 0; rest &= rest - 1) {
            int bit = vxd_dag_low_bit(rest);
            bool is_next;
            int from = vxd_dag_neighbour_bit(bit, direction, &is_next);

            leaf->values[bit] = (uint16_t)vxd_dag_spot_value(
                &source->view, is_next ? state->next[direction] : state->self, from);
        }
    }
}

static void edit_leaf(const void *args, const struct vxd_dag_view *view,
                      const struct vxd_dag_cube *cube,
                      const union vxd_dag_edit_state *state, struct vxd_dag_leaf *leaf)
{
    const struct vxd_dag_source *source = args;
    const struct state *own = const_state_of(state);
    struct vxd_dag_extent extent =
        vxd_dag_extent_of(cube->x, cube->y, cube->z, cube->height);
    const uint64_t shape = mask_of(&source->op->shape, &extent);
    uint64_t neighbours[6];
    uint64_t occupied;
    uint64_t enough;
    uint64_t free;

    (void)view;
    vxd_dag_spot_masks(&source->view, own->self, &occupied, &free);
    for (int direction = 0; direction < 6; direction++) {
        uint64_t next;

        vxd_dag_spot_masks(&source->view, own->next[direction], &next, &free);
        neighbours[direction] = vxd_dag_neighbours(occupied, next, direction);
    }
    enough = vxd_dag_at_least(neighbours, source->op->threshold);
    if (source->op->action == VXD_DAG_ERODE) {
        leaf->set &= ~(occupied & shape & ~enough);
        return;
    }
    enough &= shape & ~occupied;
    leaf->set |= enough;
    leaf->free &= ~enough;
    if (source->view.value_bits > 1) {
        take_values(source, own, neighbours, enough, leaf);
    }
}

void vxd_dag_morph_editor(const struct vxd_dag_source *source,
                          struct vxd_dag_editor *editor)
{
    *editor = (struct vxd_dag_editor){.begin = begin,
                                      .visit = visit,
                                      .child = make_child,
                                      .leaf = edit_leaf,
                                      .args = source};
}
