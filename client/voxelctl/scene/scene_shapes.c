// SPDX-License-Identifier: Apache-2.0
/* Makes operations of an edit from the command line: an option that is a shape begins one, and the
 * options after it say what to do with the shape. */
#include <stddef.h>
#include <string.h>

#include "client/voxelctl/scene/scene_commands.h"
#include "proto/base/shapes.h"

enum {
    MOST_NUMBERS = 9
};

/* Shapes that are numbers, as many as vxd_shapes says: they are the first doubles of their structs. */
static const struct {
    enum ctl_scene_option option;
    enum voxeld_scene_shape shape;
} plain[] = {{CTL_SCENE_EDIT_BOX, VOXELD_SHAPE_BOX},
             {CTL_SCENE_EDIT_BALL, VOXELD_SHAPE_BALL},
             {CTL_SCENE_EDIT_CAPSULE, VOXELD_SHAPE_CAPSULE},
             {CTL_SCENE_EDIT_HALF_SPACE, VOXELD_SHAPE_HALF_SPACE}};

_Static_assert(offsetof(struct voxeld_scene_box, high) == 3 * sizeof(double) &&
                   offsetof(struct voxeld_scene_ball, radius) == 3 * sizeof(double) &&
                   offsetof(struct voxeld_scene_capsule, radius) == 6 * sizeof(double) &&
                   offsetof(struct voxeld_scene_half_space, offset) == 3 * sizeof(double),
               "without gaps");

/* Actions whose option has one number at most, which is what the action takes. */
static const struct {
    enum ctl_scene_option option;
    enum voxeld_scene_action action;
} actions[] = {{CTL_SCENE_EDIT_FILL, VOXELD_SCENE_FILL},
               {CTL_SCENE_EDIT_PAINT, VOXELD_SCENE_PAINT},
               {CTL_SCENE_EDIT_ERASE, VOXELD_SCENE_ERASE},
               {CTL_SCENE_EDIT_FREE, VOXELD_SCENE_SET_FREE},
               {CTL_SCENE_EDIT_LEAVE, VOXELD_SCENE_KEEP},
               {CTL_SCENE_EDIT_ERODE, VOXELD_SCENE_ERODE},
               {CTL_SCENE_EDIT_DILATE, VOXELD_SCENE_DILATE}};

/* Takes a file that holds a part of the last operation. */
static bool add_file(struct ctl_scene_edits *edits, enum ctl_scene_part part,
                     const char *path)
{
    if (edits->n_files == CTL_SCENE_MAX_FILES) {
        return false;
    }
    edits->files[edits->n_files++] =
        (struct ctl_scene_file){edits->operations.n - 1, part, path};
    return true;
}

/* Begins an operation of numbers, or of a file. Until --grid says otherwise, cells of heights have
 * edge 1 and begin at (0, 0), and columns begin at 0. *is_shape is false for other options. */
static bool take_shape(struct ctl_scene_edits *edits, const struct ctl_step *step,
                       bool *is_shape)
{
    struct voxeld_scene_operation *op;
    double numbers[MOST_NUMBERS];

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        size_t n = vxd_shapes[plain[i].shape].n_numbers;

        if ((int)plain[i].option == step->option) {
            op = voxeld_scene_add(&edits->operations, plain[i].shape);
            if (op == NULL || ctl_parse_doubles(step->value, numbers, n) != n) {
                return false;
            }
            memcpy(&op->in, numbers, n * sizeof numbers[0]);
            return true;
        }
    }
    if (step->option == CTL_SCENE_EDIT_POINTS) {
        return voxeld_scene_add(&edits->operations, VOXELD_SHAPE_POINTS) != NULL &&
               add_file(edits, CTL_SCENE_PART_POINTS, step->value);
    }
    if (step->option == CTL_SCENE_EDIT_HEIGHTFIELD) {
        op = voxeld_scene_add(&edits->operations, VOXELD_SHAPE_HEIGHTFIELD);
        if (op != NULL) {
            op->in.heightfield.cell = 1;
        }
        return op != NULL && add_file(edits, CTL_SCENE_PART_HEIGHTS, step->value);
    }
    *is_shape = false;
    return false;
}

static bool set_grid(struct voxeld_scene_operation *op, const char *value)
{
    double numbers[4];
    bool right = op->shape == VOXELD_SHAPE_HEIGHTFIELD &&
                 ctl_parse_doubles(value, numbers, 4) == 4 && numbers[2] > 0;

    if (right) {
        op->in.heightfield.x = numbers[0];
        op->in.heightfield.y = numbers[1];
        op->in.heightfield.cell = numbers[2];
        op->in.heightfield.low_z = numbers[3];
    }
    return right;
}

static bool set_noise(struct voxeld_scene_operation *op, const char *value)
{
    double numbers[3];
    bool right = op->shape == VOXELD_SHAPE_BALL &&
                 ctl_parse_doubles(value, numbers, 3) == 3 && numbers[1] >= 0 &&
                 numbers[1] <= UINT32_MAX && numbers[2] >= 0 && numbers[2] <= UINT32_MAX;

    if (right) {
        op->in.ball.noise = numbers[0];
        op->in.ball.noise_cell_bits = (uint32_t)numbers[1];
        op->in.ball.noise_seed = (uint32_t)numbers[2];
    }
    return right;
}

static bool set_replace(struct voxeld_scene_operation *op, const char *value)
{
    double numbers[2];
    bool right = ctl_parse_doubles(value, numbers, 2) == 2;

    for (size_t i = 0; i < 2 && right; i++) {
        right = numbers[i] >= 0 && numbers[i] <= UINT16_MAX;
    }
    if (right) {
        op->action = VOXELD_SCENE_REPLACE;
        op->from_material = (uint32_t)numbers[0];
        op->material = (uint32_t)numbers[1];
    }
    return right;
}

static bool set_turn(struct voxeld_scene_operation *op, const char *value)
{
    double numbers[MOST_NUMBERS];

    if (op->action != VOXELD_SCENE_COPY ||
        ctl_parse_doubles(value, numbers, MOST_NUMBERS) != MOST_NUMBERS) {
        return false;
    }
    for (size_t i = 0; i < MOST_NUMBERS; i++) {
        op->copy.matrix[i] = numbers[i] > 0 ? 1 : numbers[i] < 0 ? -1 : 0;
        if ((double)op->copy.matrix[i] != numbers[i]) {
            return false;
        }
    }
    return true;
}

/* Takes what to do with a shape. */
static bool set_action(struct voxeld_scene_operation *op, const struct ctl_step *step)
{
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if ((int)actions[i].option == step->option) {
            unsigned takes = vxd_actions[actions[i].action].takes;

            op->action = actions[i].action;
            if ((takes & VXD_TAKES_MATERIAL) != 0) {
                return ctl_parse_u32(step->value, 0, UINT16_MAX, &op->material);
            }
            return (takes & VXD_TAKES_THRESHOLD) == 0 ||
                   ctl_parse_u32(step->value, 1, VXD_OPERATION_THRESHOLD_MAX,
                                 &op->threshold);
        }
    }
    switch ((enum ctl_scene_option)step->option) {
    case CTL_SCENE_EDIT_NOISE:
        return set_noise(op, step->value);
    case CTL_SCENE_EDIT_GRID:
        return set_grid(op, step->value);
    case CTL_SCENE_EDIT_REPLACE:
        return set_replace(op, step->value);
    case CTL_SCENE_EDIT_PIN:
        op->pin = VOXELD_SCENE_PINNED;
        return true;
    case CTL_SCENE_EDIT_UNPIN:
        op->pin = VOXELD_SCENE_UNPINNED;
        return true;
    case CTL_SCENE_EDIT_COPY_FROM:
        op->action = VOXELD_SCENE_COPY;
        return ctl_parse_doubles(step->value, op->copy.from, 3) == 3;
    case CTL_SCENE_EDIT_COPY_EMPTY:
        op->copy.copy_empty = true;
        return op->action == VOXELD_SCENE_COPY;
    default:
        return set_turn(op, step->value);
    }
}

static bool take_step(struct ctl_scene_edits *edits, const struct ctl_step *step)
{
    bool is_shape = true;
    bool is_right = take_shape(edits, step, &is_shape);
    struct voxeld_scene_operation *last;

    if (is_shape || edits->operations.n == 0) {
        return is_right;
    }
    last = &edits->operations.operations[edits->operations.n - 1];
    return step->option == CTL_SCENE_EDIT_POINT_MATERIALS
               ? last->shape == VOXELD_SHAPE_POINTS &&
                     add_file(edits, CTL_SCENE_PART_MATERIALS, step->value)
               : set_action(last, step);
}

int ctl_scene_take_shapes(const struct ctl_scene_args *args,
                          struct ctl_scene_edits *edits)
{
    for (size_t i = 0; i < args->steps.n; i++) {
        const struct ctl_step *step = &args->steps.steps[i];

        if (!take_step(edits, step)) {
            return ctl_scene_refuse(&ctl_scene_edit_manual, step->option, step->value);
        }
    }
    return CTL_OK;
}
