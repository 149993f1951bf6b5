// SPDX-License-Identifier: Apache-2.0
/* The editor of up to 64 operations on shapes, all in one way over the tree.
 *
 * A cube's state is two sets of operations: those whose shape it is wholly in, and those of
 * which that is not known yet. What is outside a shape is outside for all below, so sets only
 * shrink on the way down. An operation that gives every voxel the same, whatever it was, hides
 * those before it where the cube is wholly inside. A cube ends the way where what is left of
 * the operations makes one region of it, or leaves it alone. */
#include "gpu/dag/shapes.h"

#include <assert.h>
#include <stddef.h>

#include "gpu/dag/capsule_math.h"
#include "gpu/dag/noise_math.h"

#define NO_LIST (-1)

struct shape_op {
    const struct vxd_dag_op *op;
    int list; /* among the lists of this run, or NO_LIST */
    struct vxd_dag_pyramid pyramid;
    struct vxd_buffer memory; /* of the pyramid, host */
};

struct vxd_dag_shapes {
    struct vxd_context *context;
    struct vxd_buffer memory; /* of this, host */
    bool has_materials;
    int free_value;
    uint64_t overwriting; /* operations of which the voxel's state before is nothing */
    size_t n;
    struct shape_op ops[VXD_DAG_SHAPES_OPS];
};

/* As union vxd_dag_edit_state. */
struct state {
    uint64_t partial;
    uint64_t inside;
    uint64_t ranges[VXD_DAG_SHAPES_LISTS][2]; /* of the lists, in the cube */
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

/* Whole cubes ----------------------------------------------------------------------------- */

static enum vxd_dag_relation relate(const struct shape_op *op,
                                    const struct vxd_dag_cube *cube,
                                    const struct vxd_dag_extent *extent,
                                    struct state *state)
{
    const struct vxd_dag_shape *shape = &op->op->shape;
    uint64_t *range;

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
    case VXD_DAG_HEIGHTFIELD:
        return vxd_dag_heights_relation(shape, &op->pyramid, cube->x, cube->y,
                                        cube->height, extent);
    case VXD_DAG_VOXELS:
        break;
    }
    range = state->ranges[op->list];
    vxd_dag_list_narrow(&shape->voxels, cube->x, cube->y, cube->z, cube->height, range);
    return range[0] == range[1] ? VXD_DAG_OUTSIDE : VXD_DAG_PARTIAL;
}

/* Asks again about the shapes the cube was partly in. */
static void refine(const struct vxd_dag_shapes *shapes, const struct vxd_dag_cube *cube,
                   struct state *state)
{
    struct vxd_dag_extent extent =
        vxd_dag_extent_of(cube->x, cube->y, cube->z, cube->height);

    for (uint64_t rest = state->partial; rest != 0; rest &= rest - 1) {
        uint64_t bit = rest & -rest;

        switch (relate(&shapes->ops[__builtin_ctzll(rest)], cube, &extent, state)) {
        case VXD_DAG_INSIDE:
            state->inside |= bit;
            state->partial &= ~bit;
            break;
        case VXD_DAG_OUTSIDE:
            state->partial &= ~bit;
            break;
        case VXD_DAG_PARTIAL:
            break;
        }
    }
}

/* What an operation makes of a uniform or empty region. */
static uint32_t apply_uniform(const struct vxd_dag_shapes *shapes,
                              const struct vxd_dag_op *op, uint32_t ref)
{
    bool is_occupied =
        ref != VXD_DAG_EMPTY && (int)vxd_dag_uniform_value(ref) != shapes->free_value;

    switch (op->action) {
    case VXD_DAG_FILL:
        return VXD_DAG_UNIFORM | op->value;
    case VXD_DAG_ERASE:
        return VXD_DAG_EMPTY;
    case VXD_DAG_SET_FREE:
        return VXD_DAG_UNIFORM | (uint32_t)shapes->free_value;
    case VXD_DAG_PAINT:
        return is_occupied ? VXD_DAG_UNIFORM | op->value : ref;
    case VXD_DAG_REPLACE:
        return is_occupied && vxd_dag_uniform_value(ref) == op->from
                   ? VXD_DAG_UNIFORM | op->value
                   : ref;
    case VXD_DAG_ERODE:
    case VXD_DAG_DILATE:
    case VXD_DAG_COPY:
        break;
    }
    assert(false && "an operation of another editor");
    return ref;
}

/* Each voxel takes a value of its own from the list. */
static bool has_own_values(const struct vxd_dag_op *op)
{
    return op->shape.kind == VXD_DAG_VOXELS && op->shape.voxels.values != NULL &&
           (op->action == VXD_DAG_FILL || op->action == VXD_DAG_PAINT);
}

/* True where the operation leaves an even region as it is, whichever part of it is in. */
static bool leaves_alone(const struct vxd_dag_shapes *shapes, const struct vxd_dag_op *op,
                         uint32_t ref)
{
    if (has_own_values(op) && (op->action == VXD_DAG_FILL || ref != VXD_DAG_EMPTY)) {
        return false;
    }
    return apply_uniform(shapes, op, ref) == ref;
}

/* Applies the operations to a region that is even: true where it stays so. */
static bool fold(const struct vxd_dag_shapes *shapes, const struct state *state,
                 uint32_t *ref)
{
    for (uint64_t rest = state->partial | state->inside; rest != 0; rest &= rest - 1) {
        const struct vxd_dag_op *op = shapes->ops[__builtin_ctzll(rest)].op;

        if ((state->inside & rest & -rest) != 0) {
            *ref = apply_uniform(shapes, op, *ref);
        } else if (!leaves_alone(shapes, op, *ref)) {
            return false;
        }
    }
    return true;
}

/* Drops what the last overwriting operation that holds the cube hides. */
static bool hide(const struct vxd_dag_shapes *shapes, struct state *state)
{
    uint64_t covering = state->inside & shapes->overwriting;
    uint64_t last;

    if (covering == 0) {
        return false;
    }
    last = (uint64_t)1 << (63 - __builtin_clzll(covering));
    state->inside &= -last;
    state->partial &= -last;
    return true;
}

/* Only occupied voxels can change, and there are none. */
static bool is_void_of_targets(const struct vxd_dag_shapes *shapes,
                               const struct vxd_dag_view *view, const struct state *state,
                               uint32_t old, int height)
{
    return ((state->partial | state->inside) & shapes->overwriting) == 0 &&
           height > VXD_DAG_LEAF_HEIGHT && vxd_dag_is_node(old) &&
           (vxd_dag_words(view, old)[0] & VXD_DAG_HAS_OCCUPIED) == 0;
}

static void begin(const void *args, union vxd_dag_edit_state *state)
{
    const struct vxd_dag_shapes *shapes = args;
    struct state *own = state_of(state);

    *own = (struct state){.partial = ~(uint64_t)0 >> (VXD_DAG_SHAPES_OPS - shapes->n)};
    for (size_t i = 0; i < shapes->n; i++) {
        if (shapes->ops[i].list != NO_LIST) {
            own->ranges[shapes->ops[i].list][1] = shapes->ops[i].op->shape.voxels.n;
        }
    }
}

static enum vxd_dag_visit visit(const void *args, const struct vxd_dag_view *view,
                                const struct vxd_dag_cube *cube, uint32_t old,
                                union vxd_dag_edit_state *state, uint32_t *uniform)
{
    const struct vxd_dag_shapes *shapes = args;
    struct state *own = state_of(state);
    bool is_hidden;

    if (own->partial != 0) {
        refine(shapes, cube, own);
    }
    if ((own->partial | own->inside) == 0) {
        return VXD_DAG_KEEP;
    }
    /* What is left then begins with the one that hides, so `old` is nothing to it. */
    is_hidden = hide(shapes, own);
    *uniform = old;
    if ((is_hidden || !vxd_dag_is_node(old)) && fold(shapes, own, uniform)) {
        return *uniform == old ? VXD_DAG_KEEP : VXD_DAG_SET;
    }
    return is_void_of_targets(shapes, view, own, old, cube->height) ? VXD_DAG_KEEP
                                                                    : VXD_DAG_DESCEND;
}

static int64_t within(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* What of a shape that the cube is partly in decides over its voxels: a box clipped to the
 * cube, a plane's distance. Walls and floors cut many cubes alike. False where a shape seldom
 * cuts two alike. */
static bool sign_shape(const struct vxd_dag_shape *shape,
                       const struct vxd_dag_extent *extent, uint64_t **words)
{
    int64_t d = shape->d;

    if (shape->kind == VXD_DAG_HALF_SPACE) {
        for (int axis = 0; axis < 3; axis++) {
            d -= shape->n[axis] * extent->low[axis];
        }
        *(*words)++ = (uint64_t)d;
        return true;
    }
    if (shape->kind != VXD_DAG_BOX) {
        return false;
    }
    for (int axis = 0; axis < 3; axis++) {
        int64_t from = extent->low[axis];
        int64_t end = extent->high[axis] + 1;
        uint64_t low = (uint64_t)(within(shape->low[axis], from, end) - from);
        uint64_t high = (uint64_t)(within(shape->high[axis], from, end) - from);

        *(*words)++ = low << 32 | high;
    }
    return true;
}

static int sign(const void *args, const struct vxd_dag_cube *cube,
                const union vxd_dag_edit_state *state, uint64_t *words)
{
    const struct vxd_dag_shapes *shapes = args;
    const struct state *own = const_state_of(state);
    struct vxd_dag_extent extent =
        vxd_dag_extent_of(cube->x, cube->y, cube->z, cube->height);
    uint64_t *next = words;

    *next++ = own->partial;
    *next++ = own->inside;
    for (uint64_t rest = own->partial; rest != 0; rest &= rest - 1) {
        const struct shape_op *op = &shapes->ops[__builtin_ctzll(rest)];

        if (next + 3 > words + VXD_DAG_SIGNATURE_WORDS ||
            !sign_shape(&op->op->shape, &extent, &next)) {
            return 0;
        }
    }
    for (uint64_t rest = own->inside; rest != 0; rest &= rest - 1) {
        if (shapes->ops[__builtin_ctzll(rest)].list != NO_LIST) {
            return 0;
        }
    }
    return (int)(next - words);
}

/* Leaves ---------------------------------------------------------------------------------- */

static uint64_t mask_of(const struct shape_op *op, const struct vxd_dag_cube *cube,
                        const struct vxd_dag_extent *extent, const struct state *state)
{
    const struct vxd_dag_shape *shape = &op->op->shape;

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
    case VXD_DAG_HEIGHTFIELD:
        return vxd_dag_heights_mask(shape, cube->x, cube->y, extent);
    case VXD_DAG_VOXELS:
        break;
    }
    return shape->voxels.masks[state->ranges[op->list][0]];
}

/* Gives the voxels of mask their materials: the operation's, or those of its list. */
static void set_values(const struct shape_op *op, const struct state *state,
                       uint64_t mask, struct vxd_dag_leaf *leaf)
{
    const struct vxd_dag_voxels *voxels = &op->op->shape.voxels;
    uint16_t value = (uint16_t)op->op->value;
    const uint16_t *values;
    uint64_t listed;
    uint64_t entry;

    if (!has_own_values(op->op)) {
        for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
            leaf->values[__builtin_ctzll(rest)] = value;
        }
        return;
    }
    entry = state->ranges[op->list][0];
    listed = voxels->masks[entry];
    values = voxels->values + voxels->first_value[entry];
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        uint64_t below = (rest & -rest) - 1;

        leaf->values[__builtin_ctzll(rest)] = values[vxd_dag_popc(listed & below)];
    }
}

static uint64_t voxels_of_value(const struct vxd_dag_leaf *leaf, uint64_t mask,
                                uint32_t value)
{
    uint64_t equal = 0;

    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        equal |= leaf->values[__builtin_ctzll(rest)] == value ? rest & -rest : 0;
    }
    return equal;
}

static void apply_leaf(const struct vxd_dag_shapes *shapes, const struct shape_op *op,
                       const struct state *state, uint64_t mask,
                       struct vxd_dag_leaf *leaf)
{
    switch (op->op->action) {
    case VXD_DAG_FILL:
        leaf->set |= mask;
        leaf->free &= ~mask;
        break;
    case VXD_DAG_ERASE:
        leaf->set &= ~mask;
        leaf->free &= ~mask;
        return;
    case VXD_DAG_SET_FREE:
        leaf->set |= mask;
        leaf->free |= mask;
        return;
    case VXD_DAG_PAINT:
        mask &= leaf->set & ~leaf->free;
        break;
    case VXD_DAG_REPLACE:
        mask &= leaf->set & ~leaf->free;
        if (shapes->has_materials) {
            mask = voxels_of_value(leaf, mask, op->op->from);
        }
        break;
    case VXD_DAG_ERODE:
    case VXD_DAG_DILATE:
    case VXD_DAG_COPY:
        assert(false && "an operation of another editor");
        return;
    }
    if (shapes->has_materials) {
        set_values(op, state, mask, leaf);
    }
}

static void edit_leaf(const void *args, const struct vxd_dag_view *view,
                      const struct vxd_dag_cube *cube,
                      const union vxd_dag_edit_state *state, struct vxd_dag_leaf *leaf)
{
    const struct vxd_dag_shapes *shapes = args;
    const struct state *own = const_state_of(state);
    struct vxd_dag_extent extent =
        vxd_dag_extent_of(cube->x, cube->y, cube->z, cube->height);

    (void)view;
    for (uint64_t rest = own->partial | own->inside; rest != 0; rest &= rest - 1) {
        const struct shape_op *op = &shapes->ops[__builtin_ctzll(rest)];
        uint64_t mask = (own->inside & rest & -rest) != 0
                            ? ~(uint64_t)0
                            : mask_of(op, cube, &extent, own);

        apply_leaf(shapes, op, own, mask, leaf);
    }
}

/* Beginning and end ----------------------------------------------------------------------- */

static bool is_overwriting(const struct vxd_dag_op *op)
{
    return op->action == VXD_DAG_FILL || op->action == VXD_DAG_ERASE ||
           op->action == VXD_DAG_SET_FREE;
}

enum vxd_status vxd_dag_shapes_begin(struct vxd_dag *dag, const struct vxd_dag_op *ops,
                                     size_t n, struct vxd_dag_shapes **out,
                                     struct vxd_dag_editor *editor, struct vxd_err *err)
{
    struct vxd_dag_shapes *shapes;
    struct vxd_buffer memory;
    int n_lists = 0;
    enum vxd_status status;

    assert(n > 0 && n <= VXD_DAG_SHAPES_OPS);
    *out = NULL;
    VXD_TRY(vxd_host_alloc(dag->context, sizeof *shapes, &memory, err));
    shapes = memory.ptr;
    *shapes = (struct vxd_dag_shapes){.context = dag->context,
                                      .memory = memory,
                                      .has_materials = dag->spec.format.material_bits > 0,
                                      .free_value = dag->view.free_value,
                                      .n = n};
    *out = shapes;
    for (size_t i = 0; i < n; i++) {
        struct shape_op *own = &shapes->ops[i];

        own->op = &ops[i];
        own->list = ops[i].shape.kind == VXD_DAG_VOXELS ? n_lists++ : NO_LIST;
        shapes->overwriting |= (uint64_t)is_overwriting(&ops[i]) << i;
        if (ops[i].shape.kind == VXD_DAG_HEIGHTFIELD) {
            VXD_TRY(vxd_dag_pyramid_make(dag->context, &ops[i].shape.field, &own->memory,
                                         &own->pyramid, err));
        }
    }
    assert(n_lists <= VXD_DAG_SHAPES_LISTS);
    *editor = (struct vxd_dag_editor){.begin = begin,
                                      .visit = visit,
                                      .leaf = edit_leaf,
                                      .signature = sign,
                                      .args = shapes};
    return VXD_OK;
out:
    vxd_dag_shapes_end(*out);
    *out = NULL;
    return status;
}

void vxd_dag_shapes_end(struct vxd_dag_shapes *shapes)
{
    struct vxd_buffer memory;

    if (shapes == NULL) {
        return;
    }
    for (size_t i = 0; i < shapes->n; i++) {
        vxd_host_free(shapes->context, &shapes->ops[i].memory);
    }
    memory = shapes->memory;
    vxd_host_free(shapes->context, &memory);
}
