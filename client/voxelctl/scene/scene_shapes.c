// SPDX-License-Identifier: Apache-2.0
/* Parses operations of an edit from the command line: an option that is a shape begins
 * one, and the options after it say what to do with the shape. */
#include <string.h>

#include "client/voxelctl/scene/scene_commands.h"

static bool add_box(struct ctl_scene_args *args, const double *numbers)
{
    struct voxeld_scene_operation *op =
        voxeld_scene_add(&args->operations, VOXELD_SHAPE_BOX);

    if (op != NULL) {
        memcpy(op->in.box.low, numbers, sizeof op->in.box.low);
        memcpy(op->in.box.high, numbers + 3, sizeof op->in.box.high);
    }
    return op != NULL;
}

static bool add_ball(struct ctl_scene_args *args, const double *numbers)
{
    struct voxeld_scene_operation *op =
        voxeld_scene_add(&args->operations, VOXELD_SHAPE_BALL);

    if (op != NULL) {
        memcpy(op->in.ball.centre, numbers, sizeof op->in.ball.centre);
        op->in.ball.radius = numbers[3];
    }
    return op != NULL;
}

static bool add_capsule(struct ctl_scene_args *args, const double *numbers)
{
    struct voxeld_scene_operation *op =
        voxeld_scene_add(&args->operations, VOXELD_SHAPE_CAPSULE);

    if (op != NULL) {
        memcpy(op->in.capsule.a, numbers, sizeof op->in.capsule.a);
        memcpy(op->in.capsule.b, numbers + 3, sizeof op->in.capsule.b);
        op->in.capsule.radius = numbers[6];
    }
    return op != NULL;
}

static bool add_half_space(struct ctl_scene_args *args, const double *numbers)
{
    struct voxeld_scene_operation *op =
        voxeld_scene_add(&args->operations, VOXELD_SHAPE_HALF_SPACE);

    if (op != NULL) {
        memcpy(op->in.half_space.normal, numbers, sizeof op->in.half_space.normal);
        op->in.half_space.offset = numbers[3];
    }
    return op != NULL;
}

/* Takes a file that holds a part of the last operation. */
static bool add_file(struct ctl_scene_args *args, enum ctl_scene_part part,
                     const char *path)
{
    if (args->n_files == CTL_SCENE_MAX_FILES) {
        return false;
    }
    args->files[args->n_files++] =
        (struct ctl_scene_file){args->operations.n - 1, part, path};
    return true;
}

static bool add_points(struct ctl_scene_args *args, const char *path)
{
    return voxeld_scene_add(&args->operations, VOXELD_SHAPE_POINTS) != NULL &&
           add_file(args, CTL_SCENE_PART_POINTS, path);
}

/* Until --grid says otherwise, cells have edge 1 and begin at (0, 0), and columns
 * begin at 0. */
static bool add_heights(struct ctl_scene_args *args, const char *path)
{
    struct voxeld_scene_operation *op =
        voxeld_scene_add(&args->operations, VOXELD_SHAPE_HEIGHTFIELD);

    if (op != NULL) {
        op->in.heightfield.cell = 1;
    }
    return op != NULL && add_file(args, CTL_SCENE_PART_HEIGHTS, path);
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

static bool set_material(struct voxeld_scene_operation *op,
                         enum voxeld_scene_action action, const char *value)
{
    op->action = action;
    return ctl_parse_u32(value, 0, UINT16_MAX, &op->material);
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

static bool set_copy(struct voxeld_scene_operation *op, enum ctl_scene_option id,
                     const char *value)
{
    double numbers[9];

    if (id == CTL_SCENE_COPY_FROM) {
        op->action = VOXELD_SCENE_COPY;
        return ctl_parse_doubles(value, op->copy.from, 3) == 3;
    }
    if (op->action != VOXELD_SCENE_COPY) {
        return false;
    }
    if (id == CTL_SCENE_COPY_EMPTY) {
        op->copy.copy_empty = true;
        return true;
    }
    if (ctl_parse_doubles(value, numbers, 9) != 9) {
        return false;
    }
    for (size_t i = 0; i < 9; i++) {
        op->copy.matrix[i] = numbers[i] > 0 ? 1 : numbers[i] < 0 ? -1 : 0;
        if ((double)op->copy.matrix[i] != numbers[i]) {
            return false;
        }
    }
    return true;
}

/* Takes what to do with the last shape. */
static bool set_action(struct voxeld_scene_operation *op, enum ctl_scene_option id,
                       const char *value)
{
    switch (id) {
    case CTL_SCENE_NOISE:
        return set_noise(op, value);
    case CTL_SCENE_GRID:
        return set_grid(op, value);
    case CTL_SCENE_FILL:
        return set_material(op, VOXELD_SCENE_FILL, value);
    case CTL_SCENE_PAINT:
        return set_material(op, VOXELD_SCENE_PAINT, value);
    case CTL_SCENE_ERASE:
        op->action = VOXELD_SCENE_ERASE;
        return true;
    case CTL_SCENE_FREE:
        op->action = VOXELD_SCENE_SET_FREE;
        return true;
    case CTL_SCENE_LEAVE:
        op->action = VOXELD_SCENE_KEEP;
        return true;
    case CTL_SCENE_PIN:
        op->pin = VOXELD_SCENE_PINNED;
        return true;
    case CTL_SCENE_UNPIN:
        op->pin = VOXELD_SCENE_UNPINNED;
        return true;
    case CTL_SCENE_SWAP:
        return set_replace(op, value);
    case CTL_SCENE_ERODE:
        op->action = VOXELD_SCENE_ERODE;
        return ctl_parse_u32(value, 1, 6, &op->threshold);
    case CTL_SCENE_DILATE:
        op->action = VOXELD_SCENE_DILATE;
        return ctl_parse_u32(value, 1, 6, &op->threshold);
    default:
        return set_copy(op, id, value);
    }
}

bool ctl_scene_take_shape(struct ctl_scene_args *args, enum ctl_scene_option id,
                          const char *value)
{
    const struct voxeld_scene_operations *list = &args->operations;
    double numbers[7];

    switch (id) {
    case CTL_SCENE_BOX:
        return ctl_parse_doubles(value, numbers, 6) == 6 && add_box(args, numbers);
    case CTL_SCENE_BALL:
        return ctl_parse_doubles(value, numbers, 4) == 4 && add_ball(args, numbers);
    case CTL_SCENE_CAPSULE:
        return ctl_parse_doubles(value, numbers, 7) == 7 && add_capsule(args, numbers);
    case CTL_SCENE_HALF_SPACE:
        return ctl_parse_doubles(value, numbers, 4) == 4 && add_half_space(args, numbers);
    case CTL_SCENE_POINTS:
        return add_points(args, value);
    case CTL_SCENE_HEIGHTS:
        return add_heights(args, value);
    case CTL_SCENE_POINT_MATERIALS:
        return list->n > 0 &&
               list->operations[list->n - 1].shape == VOXELD_SHAPE_POINTS &&
               add_file(args, CTL_SCENE_PART_MATERIALS, value);
    default:
        return list->n > 0 && set_action(&list->operations[list->n - 1], id, value);
    }
}
