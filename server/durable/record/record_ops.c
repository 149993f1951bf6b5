// SPDX-License-Identifier: Apache-2.0
/* One operation of an edit (s = signed number, base 128 zigzag; n = number, base 128):
 *
 *     1  shape's kind        numbers of gpu/svdag/brush/brush.h: 0 box, 1 ball, 2 capsule,
 *     1  action              3 half-space, 4 noise ball, 5 voxels, 6 heightfield; 0 fill,
 *                            1 erase, 2 set free, 3 paint, 4 replace, 5 erode, 6 dilate, 7 copy
 *        box                 low 3s, high less low 3s
 *        ball                a 3s, r n
 *        capsule             a 3s, b less a 3s, r n
 *        half-space          n 3s, d s
 *        noise ball          a 3s, r n, seed n, amplitude n, cell_bits n
 *        voxels              the list (record_voxels.c)
 *        heightfield         low[2] s, the field (record_voxels.c)
 *        fill, paint         value n
 *        replace             from n, value n
 *        erode, dilate       threshold n
 *        copy                from_voxel 3s, the matrix: 9 bytes by rows, each 0, 1 or 255 (-1),
 *                            copy_empty (1 byte) */
#include "server/durable/record/record_internal.h"

enum {
    MAX_MATERIAL = 65535
};
#define MAX_CELLS ((uint64_t)1 << 26)
#define MAX_PLANE ((int64_t)1 << 62)

static bool is_coordinate(int64_t c)
{
    return c >= -VXD_SVDAG_MAX_COORDINATE && c <= VXD_SVDAG_MAX_COORDINATE;
}

static bool are_coordinates(const int64_t c[3])
{
    return is_coordinate(c[0]) && is_coordinate(c[1]) && is_coordinate(c[2]);
}

static const char *check_round(const struct vxd_svdag_shape *shape)
{
    if (!are_coordinates(shape->a) ||
        (shape->kind == VXD_SVDAG_CAPSULE && !are_coordinates(shape->b))) {
        return "a coordinate is beyond 2^31 units";
    }
    if (shape->r < 0 || shape->r > VXD_SVDAG_MAX_COORDINATE) {
        return "the radius is not 0 to 2^31 units";
    }
    if (shape->kind != VXD_SVDAG_NOISE_BALL) {
        return NULL;
    }
    if (shape->amplitude < 0 || shape->amplitude > VXD_SVDAG_MAX_COORDINATE - shape->r) {
        return "the amplitude is not 0 to what the radius leaves of 2^31 units";
    }
    return shape->cell_bits < 0 || shape->cell_bits > VXD_BALL_NOISE_CELL_BITS_MAX
               ? "cell_bits is not 0 to 16"
               : NULL;
}

static const char *check_field(const struct vxd_svdag_shape *shape)
{
    const struct vxd_svdag_heights *field = &shape->field;

    if (field->n_x == 0 || field->n_y == 0 ||
        (uint64_t)field->n_x * field->n_y > MAX_CELLS || field->cell == 0 ||
        field->heights == NULL) {
        return "a field without cells, or of more than 2^26";
    }
    if (!is_coordinate(field->x) || !is_coordinate(field->y) ||
        !is_coordinate(shape->low[2])) {
        return "its corner is beyond 2^31";
    }
    for (size_t i = 0; i < (size_t)field->n_x * field->n_y; i++) {
        if (!is_coordinate(field->heights[i])) {
            return "a height is beyond 2^31 units";
        }
    }
    return NULL;
}

static const char *check_shape(const struct vxd_svdag_shape *shape)
{
    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        return are_coordinates(shape->low) && are_coordinates(shape->high)
                   ? NULL
                   : "a coordinate is beyond 2^31 units";
    case VXD_SVDAG_BALL:
    case VXD_SVDAG_CAPSULE:
    case VXD_SVDAG_NOISE_BALL:
        return check_round(shape);
    case VXD_SVDAG_HALF_SPACE:
        return (shape->n[0] == 0 && shape->n[1] == 0 && shape->n[2] == 0) ||
                       shape->d < -MAX_PLANE || shape->d > MAX_PLANE
                   ? "a normal of 0, or a distance beyond 2^62"
                   : NULL;
    case VXD_SVDAG_VOXELS:
        return vxd_record_check_voxels(&shape->voxels);
    case VXD_SVDAG_HEIGHTFIELD:
        return check_field(shape);
    }
    return "no kind of shape";
}

/* A signed permutation: one 1 or -1 in each row and column. */
static bool is_turn(const int8_t matrix[3][3])
{
    unsigned rows = 0;
    unsigned columns = 0;
    int n = 0;

    for (int i = 0; i < 9; i++) {
        int8_t entry = matrix[i / 3][i % 3];

        if (entry < -1 || entry > 1) {
            return false;
        }
        if (entry != 0) {
            n++;
            rows |= 1u << i / 3;
            columns |= 1u << i % 3;
        }
    }
    return n == 3 && rows == 7 && columns == 7;
}

static const char *check_copy(const struct vxd_svdag_op *op)
{
    if (op->shape.kind != VXD_SVDAG_BOX) {
        return "only boxes can be copied to";
    }
    for (int axis = 0; axis < 3; axis++) {
        if (op->shape.low[axis] % VXD_SVDAG_UNIT != 0 ||
            op->shape.high[axis] % VXD_SVDAG_UNIT != 0) {
            return "a copy's box is not of whole voxels";
        }
    }
    return are_coordinates(op->from_voxel) && is_turn(op->matrix)
               ? NULL
               : "a copy from beyond 2^31 voxels, or by a matrix that is no turn";
}

/* By what no scene takes; what this scene does not take, the engine says. */
static const char *check_op(const struct vxd_svdag_op *op)
{
    bool is_list =
        op->shape.kind == VXD_SVDAG_VOXELS || op->shape.kind == VXD_SVDAG_HEIGHTFIELD;

    switch (op->action) {
    case VXD_SVDAG_ERASE:
    case VXD_SVDAG_SET_FREE:
        return NULL;
    case VXD_SVDAG_FILL:
    case VXD_SVDAG_PAINT:
        return op->value <= MAX_MATERIAL ? NULL : "no scene has such a material";
    case VXD_SVDAG_REPLACE:
        return op->value <= MAX_MATERIAL && op->from <= MAX_MATERIAL
                   ? NULL
                   : "no scene has such a material";
    case VXD_SVDAG_ERODE:
    case VXD_SVDAG_DILATE:
        return !is_list && op->threshold >= 1 &&
                       op->threshold <= VXD_OPERATION_THRESHOLD_MAX
                   ? NULL
                   : "a threshold that is not 1 to 6, or a list";
    case VXD_SVDAG_COPY:
        return check_copy(op);
    }
    return "no action";
}

static void put_signed3(struct vxd_bytes_out *out, const int64_t v[3],
                        const int64_t base[3])
{
    for (int axis = 0; axis < 3; axis++) {
        vxd_bytes_put_signed(out, v[axis] - (base != NULL ? base[axis] : 0));
    }
}

static void put_shape(struct vxd_bytes_out *out, const struct vxd_svdag_shape *shape)
{
    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        put_signed3(out, shape->low, NULL);
        put_signed3(out, shape->high, shape->low);
        break;
    case VXD_SVDAG_BALL:
    case VXD_SVDAG_CAPSULE:
    case VXD_SVDAG_NOISE_BALL:
        put_signed3(out, shape->a, NULL);
        if (shape->kind == VXD_SVDAG_CAPSULE) {
            put_signed3(out, shape->b, shape->a);
        }
        vxd_bytes_put_number(out, (uint64_t)shape->r);
        if (shape->kind == VXD_SVDAG_NOISE_BALL) {
            vxd_bytes_put_number(out, shape->seed);
            vxd_bytes_put_number(out, (uint64_t)shape->amplitude);
            vxd_bytes_put_number(out, (uint64_t)shape->cell_bits);
        }
        break;
    case VXD_SVDAG_HALF_SPACE:
        for (int axis = 0; axis < 3; axis++) {
            vxd_bytes_put_signed(out, shape->n[axis]);
        }
        vxd_bytes_put_signed(out, shape->d);
        break;
    case VXD_SVDAG_VOXELS:
        vxd_record_put_voxels(out, &shape->voxels);
        break;
    case VXD_SVDAG_HEIGHTFIELD:
        vxd_bytes_put_signed(out, shape->low[2]);
        vxd_record_put_heights(out, &shape->field);
        break;
    }
}

static void put_action(struct vxd_bytes_out *out, const struct vxd_svdag_op *op)
{
    switch (op->action) {
    case VXD_SVDAG_FILL:
    case VXD_SVDAG_PAINT:
        vxd_bytes_put_number(out, op->value);
        break;
    case VXD_SVDAG_REPLACE:
        vxd_bytes_put_number(out, op->from);
        vxd_bytes_put_number(out, op->value);
        break;
    case VXD_SVDAG_ERODE:
    case VXD_SVDAG_DILATE:
        vxd_bytes_put_number(out, (uint64_t)op->threshold);
        break;
    case VXD_SVDAG_COPY:
        put_signed3(out, op->from_voxel, NULL);
        for (int i = 0; i < 9; i++) {
            vxd_bytes_put8(out, (uint8_t)op->matrix[i / 3][i % 3]);
        }
        vxd_bytes_put8(out, op->copy_empty);
        break;
    case VXD_SVDAG_ERASE:
    case VXD_SVDAG_SET_FREE:
        break;
    }
}

enum vxd_status vxd_record_put_op(struct vxd_bytes_out *out,
                                  const struct vxd_svdag_op *op, size_t number,
                                  struct vxd_err *err)
{
    const char *fault = check_op(op);
    char field[32];

    if (fault == NULL) {
        fault = check_shape(&op->shape);
    }
    if (fault != NULL) {
        (void)snprintf(field, sizeof field, "ops[%zu]", number);
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "%s", fault);
    }
    vxd_bytes_put8(out, (unsigned)op->shape.kind);
    vxd_bytes_put8(out, (unsigned)op->action);
    put_shape(out, &op->shape);
    put_action(out, op);
    return VXD_OK;
}

/* What does not fit is beyond every range. */
static int64_t get_within(struct vxd_bytes_in *in)
{
    uint64_t value = vxd_bytes_get_number(in);

    return value <= (uint64_t)VXD_SVDAG_MAX_COORDINATE ? (int64_t)value : INT64_MAX;
}

static void get_signed3(struct vxd_bytes_in *in, int64_t v[3], const int64_t base[3])
{
    for (int axis = 0; axis < 3; axis++) {
        if (__builtin_add_overflow(vxd_bytes_get_signed(in),
                                   base != NULL ? base[axis] : 0, &v[axis])) {
            in->is_bad = true;
        }
    }
}

static void get_normal(struct vxd_bytes_in *in, int32_t n[3])
{
    for (int axis = 0; axis < 3; axis++) {
        int64_t v = vxd_bytes_get_signed(in);

        in->is_bad = in->is_bad || v < INT32_MIN || v > INT32_MAX;
        n[axis] = in->is_bad ? 0 : (int32_t)v;
    }
}

static void get_noise(struct vxd_bytes_in *in, struct vxd_svdag_shape *shape)
{
    uint64_t seed = vxd_bytes_get_number(in);
    uint64_t cell_bits;

    shape->amplitude = get_within(in);
    cell_bits = vxd_bytes_get_number(in);
    in->is_bad =
        in->is_bad || seed > UINT32_MAX || cell_bits > VXD_BALL_NOISE_CELL_BITS_MAX;
    shape->seed = (uint32_t)seed;
    shape->cell_bits = in->is_bad ? 0 : (int)cell_bits;
}

static bool get_shape(struct vxd_record_reader *reader, struct vxd_svdag_shape *shape)
{
    struct vxd_bytes_in *in = &reader->in;

    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        get_signed3(in, shape->low, NULL);
        get_signed3(in, shape->high, shape->low);
        break;
    case VXD_SVDAG_BALL:
    case VXD_SVDAG_CAPSULE:
    case VXD_SVDAG_NOISE_BALL:
        get_signed3(in, shape->a, NULL);
        if (shape->kind == VXD_SVDAG_CAPSULE) {
            get_signed3(in, shape->b, shape->a);
        }
        shape->r = get_within(in);
        if (shape->kind == VXD_SVDAG_NOISE_BALL) {
            get_noise(in, shape);
        }
        break;
    case VXD_SVDAG_HALF_SPACE:
        get_normal(in, shape->n);
        shape->d = vxd_bytes_get_signed(in);
        break;
    case VXD_SVDAG_VOXELS:
        return vxd_record_get_voxels(reader, &shape->voxels);
    case VXD_SVDAG_HEIGHTFIELD:
        shape->low[2] = vxd_bytes_get_signed(in);
        return vxd_record_get_heights(reader, &shape->field);
    }
    return !in->is_bad || vxd_record_bad(reader, "a shape is damaged");
}

static uint32_t get_small(struct vxd_bytes_in *in)
{
    uint64_t value = vxd_bytes_get_number(in);

    in->is_bad = in->is_bad || value > MAX_MATERIAL;
    return in->is_bad ? 0 : (uint32_t)value;
}

static void get_action(struct vxd_bytes_in *in, struct vxd_svdag_op *op)
{
    unsigned flag;

    switch (op->action) {
    case VXD_SVDAG_REPLACE:
        op->from = get_small(in);
        op->value = get_small(in);
        break;
    case VXD_SVDAG_FILL:
    case VXD_SVDAG_PAINT:
        op->value = get_small(in);
        break;
    case VXD_SVDAG_ERODE:
    case VXD_SVDAG_DILATE:
        op->threshold = (int)get_small(in);
        break;
    case VXD_SVDAG_COPY:
        get_signed3(in, op->from_voxel, NULL);
        for (int i = 0; i < 9; i++) {
            op->matrix[i / 3][i % 3] = (int8_t)vxd_bytes_get8(in);
        }
        flag = vxd_bytes_get8(in);
        in->is_bad = in->is_bad || flag > 1;
        op->copy_empty = flag == 1;
        break;
    case VXD_SVDAG_ERASE:
    case VXD_SVDAG_SET_FREE:
        break;
    }
}

bool vxd_record_get_op(struct vxd_record_reader *reader, struct vxd_svdag_op *op)
{
    unsigned kind = vxd_bytes_get8(&reader->in);
    unsigned action = vxd_bytes_get8(&reader->in);
    const char *fault;

    if (reader->in.is_bad || kind > VXD_SVDAG_HEIGHTFIELD || action > VXD_SVDAG_COPY) {
        return vxd_record_bad(reader, "not an operation");
    }
    op->shape.kind = (enum vxd_svdag_shape_kind)kind;
    op->action = (enum vxd_svdag_action)action;
    if (!get_shape(reader, &op->shape)) {
        return false;
    }
    get_action(&reader->in, op);
    if (reader->in.is_bad) {
        return vxd_record_bad(reader, "an action is damaged");
    }
    fault = check_op(op);
    if (fault == NULL &&
        op->shape.kind != VXD_SVDAG_VOXELS) { /* whose reader saw to it */
        fault = check_shape(&op->shape);
    }
    return fault == NULL || vxd_record_bad(reader, fault);
}
