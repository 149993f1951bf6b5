// SPDX-License-Identifier: Apache-2.0
/* The operations of an edit, checked and converted to the engine's. */
#include <math.h>
#include <string.h>

#include "proto/base/shapes.h"
#include "server/service/scene/scene.h"

enum {
    NORMAL_BITS = 30 /* of the longest component of a half-space's normal */
};

/* Calls vxd_fail with a member of the i-th operation. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
static enum vxd_status
fail_at(struct vxd_err *err, enum vxd_status code, size_t i, const char *member,
        const char *format, ...)
{
    char field[sizeof err->field];
    char message[sizeof err->message];
    va_list args;

    (void)snprintf(field, sizeof field, "operations[%zu]%s%s", i,
                   member[0] != '\0' ? "." : "", member);
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return vxd_fail(err, code, field, "%s", message);
}

static void make_path(char path[VXD_SCENE_PATH_BYTES], size_t i, const char *member)
{
    (void)snprintf(path, VXD_SCENE_PATH_BYTES, "operations[%zu].%s", i, member);
}

/* --- what the message alone says ---------------------------------------------------------- */

/* Fails for a member whose number is out of its range. */
static enum vxd_status fail_range(const struct vxd_shape_member *member, double number,
                                  const char *path, struct vxd_err *err)
{
    if (member->kind == VXD_SHAPE_COUNT) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, path,
                        "is %.0f, it must be %.0f to %.0f", number, member->low,
                        member->high);
    }
    if (member->low == -DBL_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, path, "is %g, it must be finite",
                        number);
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, path, "is %g, it must be %s %g and finite",
                    number, member->above_low ? ">" : ">=", member->low);
}

static bool is_finite(const Voxeld__V1__Vec3 *v)
{
    return v != NULL && isfinite(v->x) && isfinite(v->y) && isfinite(v->z);
}

static double number_at(const struct vxd_shape_member *member, const void *value)
{
    uint32_t count;
    double number;

    if (member->kind == VXD_SHAPE_COUNT) {
        memcpy(&count, value, sizeof count);
        return count;
    }
    memcpy(&number, value, sizeof number);
    return number;
}

/* Checks a member that is no array; the range is that of the schema. */
static enum vxd_status check_member(const struct vxd_shape_info *shape,
                                    const struct vxd_shape_member *member,
                                    const void *value, size_t i, struct vxd_err *err)
{
    bool is_vector = member->kind == VXD_SHAPE_VECTOR;
    const Voxeld__V1__Vec3 *vector = is_vector ? vxd_field_pointer(value) : NULL;
    double number = is_vector ? 0 : number_at(member, value);
    char path[VXD_SCENE_PATH_BYTES];

    if (is_vector ? is_finite(vector)
                  : (member->above_low ? number > member->low : number >= member->low) &&
                        number <= member->high) {
        return VXD_OK;
    }
    (void)snprintf(path, sizeof path, "operations[%zu].%s.%s", i, shape->name,
                   member->name);
    return is_vector ? vxd_scene_check_vector(vector, path, err)
                     : fail_range(member, number, path, err);
}

/* Checks each member by itself. The schema has them in the order of their numbers, as protobuf-c has
 * the fields of a message. */
static enum vxd_status check_members(const Voxeld__V1__SceneOperation *operation,
                                     size_t i, struct vxd_err *err)
{
    const struct vxd_shape_info *shape = &vxd_shapes[operation->shape_case];
    const ProtobufCMessage *message = vxd_field_pointer(&operation->box);
    enum vxd_status status = VXD_OK;

    for (size_t k = 0; k < shape->n_members && status == VXD_OK; k++) {
        const uint8_t *value =
            (const uint8_t *)message + message->descriptor->fields[k].offset;

        if (shape->members[k].kind != VXD_SHAPE_ARRAY) {
            status = check_member(shape, &shape->members[k], value, i, err);
        }
    }
    return status;
}

static enum vxd_status check_box(const Voxeld__V1__SceneBox *box, size_t i,
                                 struct vxd_err *err)
{
    if (box->low->x >= box->high->x || box->low->y >= box->high->y ||
        box->low->z >= box->high->z) {
        return fail_at(err, VXD_INVALID_ARGUMENT, i, "box.high",
                       "(%g, %g, %g) must be above low on every axis", box->high->x,
                       box->high->y, box->high->z);
    }
    return VXD_OK;
}

static enum vxd_status check_normal(const Voxeld__V1__Vec3 *n, size_t i,
                                    struct vxd_err *err)
{
    if (n->x == 0 && n->y == 0 && n->z == 0) {
        return fail_at(err, VXD_INVALID_ARGUMENT, i, "half_space.normal",
                       "is zero: it has no direction");
    }
    return VXD_OK;
}

static bool takes(const Voxeld__V1__SceneOperation *operation, unsigned members)
{
    return (vxd_actions[operation->action].takes & members) != 0;
}

static enum vxd_status check_points(const Voxeld__V1__SceneOperation *operation, size_t i,
                                    struct vxd_err *err)
{
    const Voxeld__V1__ScenePoints *points = operation->points;
    char path[VXD_SCENE_PATH_BYTES];
    size_t n;
    enum vxd_status status;

    make_path(path, i, "points.points");
    VXD_TRY(vxd_scene_check_numbers(points->points, path, 3, true, &n, err));
    if (points->materials == NULL) {
        return VXD_OK;
    }
    make_path(path, i, "points.materials");
    if (!takes(operation, VXD_TAKES_MATERIAL) ||
        takes(operation, VXD_TAKES_FROM_MATERIAL)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, path,
                        "go with SCENE_FILL and SCENE_PAINT alone");
    }
    status = vxd_scene_check_materials(points->materials, path, n, err);
out:
    return status;
}

static enum vxd_status check_shape(const Voxeld__V1__SceneOperation *operation, size_t i,
                                   struct vxd_err *err)
{
    char path[VXD_SCENE_PATH_BYTES];
    enum vxd_status status = VXD_OK;

    if (operation->shape_case == VOXELD__V1__SCENE_OPERATION__SHAPE__NOT_SET) {
        return fail_at(err, VXD_INVALID_ARGUMENT, i, "",
                       "has no shape: box, ball, capsule, half_space, points or "
                       "heightfield is required");
    }
    VXD_TRY(check_members(operation, i, err));
    switch (operation->shape_case) {
    case VOXELD__V1__SCENE_OPERATION__SHAPE_BOX:
        return check_box(operation->box, i, err);
    case VOXELD__V1__SCENE_OPERATION__SHAPE_HALF_SPACE:
        return check_normal(operation->half_space->normal, i, err);
    case VOXELD__V1__SCENE_OPERATION__SHAPE_POINTS:
        return check_points(operation, i, err);
    case VOXELD__V1__SCENE_OPERATION__SHAPE_HEIGHTFIELD:
        make_path(path, i, "heightfield");
        return vxd_scene_check_heights(operation->heightfield, path, err);
    default:
        break;
    }
out:
    return status;
}

/* Whether each row and column has one 1 or -1. */
static bool is_turn(const int32_t *matrix)
{
    for (int i = 0; i < 3; i++) {
        int n_row = 0;
        int n_column = 0;

        for (int k = 0; k < 3; k++) {
            int32_t row = matrix[3 * i + k];
            int32_t column = matrix[3 * k + i];

            if (row < -1 || row > 1) {
                return false;
            }
            n_row += row != 0 ? 1 : 0;
            n_column += column != 0 ? 1 : 0;
        }
        if (n_row != 1 || n_column != 1) {
            return false;
        }
    }
    return true;
}

static enum vxd_status check_copy(const Voxeld__V1__SceneOperation *operation, size_t i,
                                  struct vxd_err *err)
{
    const Voxeld__V1__SceneCopy *copy = operation->copy;
    char path[VXD_SCENE_PATH_BYTES];
    enum vxd_status status;

    if (!takes(operation, VXD_TAKES_COPY)) {
        return copy == NULL ? VXD_OK
                            : fail_at(err, VXD_INVALID_ARGUMENT, i, "copy",
                                      "goes with SCENE_COPY alone");
    }
    if (copy == NULL) {
        return fail_at(err, VXD_INVALID_ARGUMENT, i, "copy",
                       "is required for SCENE_COPY");
    }
    if (operation->shape_case != VOXELD__V1__SCENE_OPERATION__SHAPE_BOX) {
        return fail_at(err, VXD_INVALID_ARGUMENT, i, "action",
                       "SCENE_COPY takes a box alone");
    }
    make_path(path, i, "copy.from");
    status = vxd_scene_check_vector(copy->from, path, err);
    if (status == VXD_OK && copy->n_matrix != 0 &&
        (copy->n_matrix != 9 || !is_turn(copy->matrix))) {
        status = fail_at(err, VXD_INVALID_ARGUMENT, i, "copy.matrix",
                         "must be empty, or nine numbers with one 1 or -1 in each row "
                         "and column");
    }
    return status;
}

/* Pins are of all voxels of the shape, so they go with actions that are. */
static enum vxd_status check_pin(const Voxeld__V1__SceneOperation *operation, size_t i,
                                 struct vxd_err *err)
{
    if ((int)operation->pin < (int)VOXELD__V1__SCENE_PIN__SCENE_PIN_UNCHANGED ||
        (int)operation->pin > (int)VOXELD__V1__SCENE_PIN__SCENE_UNPINNED) {
        return fail_at(err, VXD_INVALID_ARGUMENT, i, "pin",
                       "is %d, known are SCENE_PIN_UNCHANGED, SCENE_PINNED and "
                       "SCENE_UNPINNED",
                       (int)operation->pin);
    }
    if (operation->pin != VOXELD__V1__SCENE_PIN__SCENE_PIN_UNCHANGED &&
        !takes(operation, VXD_TAKES_PIN)) {
        return fail_at(
            err, VXD_INVALID_ARGUMENT, i, "pin",
            "goes with SCENE_FILL, SCENE_ERASE, SCENE_SET_FREE and SCENE_KEEP");
    }
    if (operation->pin == VOXELD__V1__SCENE_PIN__SCENE_PIN_UNCHANGED &&
        operation->action == VOXELD__V1__SCENE_ACTION__SCENE_KEEP) {
        return fail_at(err, VXD_INVALID_ARGUMENT, i, "action",
                       "SCENE_KEEP changes nothing without `pin`");
    }
    return VXD_OK;
}

static enum vxd_status check_morph(const Voxeld__V1__SceneOperation *operation, size_t i,
                                   struct vxd_err *err)
{
    bool is_morph = takes(operation, VXD_TAKES_THRESHOLD);

    if (operation->threshold > VXD_OPERATION_THRESHOLD_MAX ||
        (!is_morph && operation->threshold != 0)) {
        return fail_at(err, VXD_INVALID_ARGUMENT, i, "threshold",
                       "is %u, it must be 1 to %d (0 = the default) with SCENE_ERODE and "
                       "SCENE_DILATE, 0 with others",
                       operation->threshold, VXD_OPERATION_THRESHOLD_MAX);
    }
    if (is_morph &&
        (operation->shape_case == VOXELD__V1__SCENE_OPERATION__SHAPE_POINTS ||
         operation->shape_case == VOXELD__V1__SCENE_OPERATION__SHAPE_HEIGHTFIELD)) {
        return fail_at(err, VXD_INVALID_ARGUMENT, i, "action",
                       "SCENE_ERODE and SCENE_DILATE take no points or heightfield");
    }
    return VXD_OK;
}

enum vxd_status vxd_scene_check_operation(const Voxeld__V1__SceneOperation *operation,
                                          size_t i, struct vxd_err *err)
{
    enum vxd_status status;

    if ((int)operation->action < 0 || (int)operation->action >= VXD_N_ACTIONS) {
        return fail_at(err, VXD_INVALID_ARGUMENT, i, "action",
                       "is %d, known are 0 to %d: %s to %s", (int)operation->action,
                       VXD_N_ACTIONS - 1, vxd_actions[0].name,
                       vxd_actions[VXD_N_ACTIONS - 1].name);
    }
    VXD_TRY(check_pin(operation, i, err));
    VXD_TRY(check_shape(operation, i, err));
    VXD_TRY(check_copy(operation, i, err));
    status = check_morph(operation, i, err);
out:
    return status;
}

/* --- with the scene ----------------------------------------------------------------------- */

/* An operation while it is read. */
struct reading {
    const struct vxd_scene *scene;
    const struct vxd_scene_frame *frame;
    const Voxeld__V1__SceneOperation *operation;
    size_t i;
    struct vxd_svdag_op *out;
    bool *outside;
};

/* Centres of the scene's voxels lie from here to side - here. */
static const int64_t half_unit = VXD_SVDAG_UNIT / 2;

static int64_t side_of(const struct vxd_scene *scene)
{
    return (int64_t)VXD_SVDAG_UNIT << scene->spec.format.depth;
}

static enum vxd_status read_length(const struct reading *r, double length,
                                   const char *member, int64_t *out, struct vxd_err *err)
{
    *out = vxd_scene_length(r->frame, length);
    if (*out >= VXD_SCENE_FAR) {
        return fail_at(err, VXD_OUT_OF_RANGE, r->i, member,
                       "is %g, more than %lld voxels", length,
                       (long long)(VXD_SCENE_FAR / VXD_SVDAG_UNIT));
    }
    return VXD_OK;
}

static enum vxd_status read_place(const struct reading *r, const Voxeld__V1__Vec3 *v,
                                  const char *member, int64_t out[3], struct vxd_err *err)
{
    char path[VXD_SCENE_PATH_BYTES];

    make_path(path, r->i, member);
    return vxd_scene_place(r->frame, v, path, out, err);
}

/* Whether no centre of the scene is in low <= c <= high. */
static bool misses(const struct vxd_scene *scene, const int64_t low[3],
                   const int64_t high[3])
{
    int64_t last = side_of(scene) - half_unit;

    for (int i = 0; i < 3; i++) {
        if (high[i] < half_unit || low[i] > last) {
            return true;
        }
    }
    return false;
}

static void read_box(const struct reading *r)
{
    struct vxd_svdag_shape *shape = &r->out->shape;
    int64_t last[3];

    shape->kind = VXD_SVDAG_BOX;
    vxd_scene_corner(r->frame, r->operation->box->low, shape->low);
    vxd_scene_corner(r->frame, r->operation->box->high, shape->high);
    for (int i = 0; i < 3; i++) {
        last[i] = shape->high[i] - 1;
    }
    *r->outside = misses(r->scene, shape->low, last);
}

static enum vxd_status read_ball(const struct reading *r, struct vxd_err *err)
{
    const Voxeld__V1__SceneBall *ball = r->operation->ball;
    struct vxd_svdag_shape *shape = &r->out->shape;
    int64_t last = side_of(r->scene) - half_unit;
    double square = 0;
    double reach;
    enum vxd_status status;

    shape->kind = VXD_SVDAG_BALL;
    VXD_TRY(read_place(r, ball->centre, "ball.centre", shape->a, err));
    VXD_TRY(read_length(r, ball->radius, "ball.radius", &shape->r, err));
    VXD_TRY(read_length(r, ball->noise, "ball.noise", &shape->amplitude, err));
    if (shape->r + shape->amplitude >= VXD_SCENE_FAR) {
        VXD_TRY(fail_at(err, VXD_OUT_OF_RANGE, r->i, "ball.noise",
                        "is %g, with the radius more than %lld voxels", ball->noise,
                        (long long)(VXD_SCENE_FAR / VXD_SVDAG_UNIT)));
    }
    if (shape->amplitude > 0) {
        shape->kind = VXD_SVDAG_NOISE_BALL;
        shape->seed = ball->noise_seed;
        shape->cell_bits = (int)ball->noise_cell_bits;
    }
    for (int i = 0; i < 3; i++) {
        int64_t nearest = shape->a[i] < half_unit ? half_unit
                          : shape->a[i] > last    ? last
                                                  : shape->a[i];
        double d = (double)(shape->a[i] - nearest);

        square += d * d;
    }
    reach = (double)(shape->r + shape->amplitude);
    *r->outside = square > reach * reach;
out:
    return status;
}

static enum vxd_status read_capsule(const struct reading *r, struct vxd_err *err)
{
    const Voxeld__V1__SceneCapsule *capsule = r->operation->capsule;
    struct vxd_svdag_shape *shape = &r->out->shape;
    int64_t low[3];
    int64_t high[3];
    enum vxd_status status;

    shape->kind = VXD_SVDAG_CAPSULE;
    VXD_TRY(read_place(r, capsule->a, "capsule.a", shape->a, err));
    VXD_TRY(read_place(r, capsule->b, "capsule.b", shape->b, err));
    VXD_TRY(read_length(r, capsule->radius, "capsule.radius", &shape->r, err));
    for (int i = 0; i < 3; i++) {
        bool a_first = shape->a[i] < shape->b[i];

        low[i] = (a_first ? shape->a[i] : shape->b[i]) - shape->r;
        high[i] = (a_first ? shape->b[i] : shape->a[i]) + shape->r;
    }
    *r->outside = misses(r->scene, low, high);
out:
    return status;
}

/* The unit normal in 2^-30, and the distance of the plane from the scene's low corner rounded
 * to a unit: so a plane along an axis lies where a box's face would. */
static void read_half_space(const struct reading *r)
{
    const Voxeld__V1__SceneHalfSpace *half = r->operation->half_space;
    const double normal[3] = {half->normal->x, half->normal->y, half->normal->z};
    struct vxd_svdag_shape *shape = &r->out->shape;
    double longest = fmax(fabs(normal[0]), fmax(fabs(normal[1]), fabs(normal[2])));
    double offset = half->offset / longest;
    double square = 0;
    int64_t least = 0;

    shape->kind = VXD_SVDAG_HALF_SPACE;
    /* Divides by the longest component first, so that squares neither overflow nor
     * vanish. */
    for (int i = 0; i < 3; i++) {
        double component = normal[i] / longest;

        square += component * component;
        offset -= component * r->frame->origin[i];
    }
    for (int i = 0; i < 3; i++) {
        double component = normal[i] / longest / sqrt(square);

        shape->n[i] = (int32_t)rint(ldexp(component, NORMAL_BITS));
        least +=
            shape->n[i] * (shape->n[i] > 0 ? half_unit : side_of(r->scene) - half_unit);
    }
    shape->d =
        vxd_scene_length(r->frame, offset / sqrt(square)) * ((int64_t)1 << NORMAL_BITS);
    *r->outside = least > shape->d;
}

static enum vxd_status read_copy(const struct reading *r, struct vxd_err *err)
{
    static const int8_t none[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const Voxeld__V1__SceneCopy *copy = r->operation->copy;
    const struct vxd_svdag_shape *shape = &r->out->shape;
    int64_t from[3];
    enum vxd_status status;

    for (int i = 0; i < 3; i++) {
        if (shape->low[i] % VXD_SVDAG_UNIT != 0 || shape->high[i] % VXD_SVDAG_UNIT != 0) {
            return fail_at(err, VXD_INVALID_ARGUMENT, r->i,
                           shape->low[i] % VXD_SVDAG_UNIT != 0 ? "box.low" : "box.high",
                           "must lie on voxels' borders: SCENE_COPY copies whole voxels");
        }
    }
    status = read_place(r, copy->from, "copy.from", from, err);
    memcpy(r->out->matrix, none, sizeof none);
    for (size_t i = 0; i < 3; i++) {
        r->out->from_voxel[i] = vxd_scene_voxel_at(from[i]);
        for (size_t k = 0; k < 3 && copy->n_matrix == 9; k++) {
            r->out->matrix[i][k] = (int8_t)copy->matrix[3 * i + k];
        }
    }
    r->out->copy_empty = copy->copy_empty;
    return status;
}

static enum vxd_status read_material(const struct reading *r, uint32_t material,
                                     const char *member, uint32_t *out,
                                     struct vxd_err *err)
{
    uint32_t n = vxd_svdag_n_materials(&r->scene->spec.format);

    *out = material;
    if (material >= n) {
        return fail_at(err, VXD_INVALID_ARGUMENT, r->i, member,
                       "is %u, the scene's materials are 0 to %u", material, n - 1);
    }
    return VXD_OK;
}

static enum vxd_status read_action(const struct reading *r, struct vxd_err *err)
{
    const Voxeld__V1__SceneOperation *operation = r->operation;
    enum vxd_status status = VXD_OK;

    if (operation->action == VOXELD__V1__SCENE_ACTION__SCENE_KEEP) {
        return VXD_OK; /* its shape is for the pins alone */
    }
    r->out->action = (enum vxd_svdag_action)operation->action;
    switch (r->out->action) {
    case VXD_SVDAG_REPLACE:
        VXD_TRY(read_material(r, operation->from_material, "from_material", &r->out->from,
                              err));
        VXD_TRY(read_material(r, operation->material, "material", &r->out->value, err));
        break;
    case VXD_SVDAG_FILL:
    case VXD_SVDAG_PAINT:
        VXD_TRY(read_material(r, operation->material, "material", &r->out->value, err));
        break;
    case VXD_SVDAG_SET_FREE:
        if (!r->scene->spec.format.tracks_free) {
            status = fail_at(err, VXD_FAILED_PRECONDITION, r->i, "action",
                             "is SCENE_SET_FREE, but the scene does not track free "
                             "space");
        }
        break;
    case VXD_SVDAG_ERODE:
        r->out->threshold = operation->threshold > 0 ? (int)operation->threshold : 6;
        break;
    case VXD_SVDAG_DILATE:
        r->out->threshold = operation->threshold > 0 ? (int)operation->threshold : 1;
        break;
    case VXD_SVDAG_COPY:
        status = read_copy(r, err);
        break;
    case VXD_SVDAG_ERASE:
        break;
    }
out:
    return status;
}

enum vxd_status vxd_scene_read_operation(const struct vxd_scene *scene,
                                         const struct vxd_scene_frame *frame,
                                         const Voxeld__V1__SceneOperation *operation,
                                         size_t i, struct vxd_svdag_op *out,
                                         bool *outside, struct vxd_err *err)
{
    const struct reading r = {scene, frame, operation, i, out, outside};
    enum vxd_status status = VXD_OK;

    memset(out, 0, sizeof *out);
    *outside = false;
    switch (operation->shape_case) {
    case VOXELD__V1__SCENE_OPERATION__SHAPE_BOX:
        read_box(&r);
        break;
    case VOXELD__V1__SCENE_OPERATION__SHAPE_BALL:
        VXD_TRY(read_ball(&r, err));
        break;
    case VOXELD__V1__SCENE_OPERATION__SHAPE_CAPSULE:
        VXD_TRY(read_capsule(&r, err));
        break;
    case VOXELD__V1__SCENE_OPERATION__SHAPE_HALF_SPACE:
        read_half_space(&r);
        break;
    case VOXELD__V1__SCENE_OPERATION__SHAPE_POINTS:
        out->shape.kind = VXD_SVDAG_VOXELS;
        break;
    default: /* there is one: it was checked */
        out->shape.kind = VXD_SVDAG_HEIGHTFIELD;
        break;
    }
    status = read_action(&r, err);
out:
    return status;
}
