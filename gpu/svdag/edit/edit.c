// SPDX-License-Identifier: Apache-2.0
/* Edits: what is asked is checked when it is queued; lists of voxels and heights, which are
 * large and may be written by what is queued before, when their turn comes. Operations then
 * run in passes over the tree: as many shapes in a row as one editor takes (on the CPU nearly
 * always all, bins_cpu.c), copies and morphology (which look at the state before them) one at a time. */
#include "gpu/svdag/edit/edit.h"

#include "gpu/svdag/edit/change_count.h"
#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/edit/shapes_editor.h"

/* What vxd_queue_push copies. */
struct edit_call {
    struct vxd_svdag *svdag;
    uint32_t root;
    const struct vxd_svdag_op *ops;
    size_t n_ops;
    struct vxd_svdag_edit_result *out;
};

/* Checks ---------------------------------------------------------------------------------- */

#define MAX_CELLS ((uint64_t)1 << 26)

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static enum vxd_status
bad(struct vxd_err *err, size_t number, const char *field, const char *format, ...)
{
    char name[64];
    char message[160];
    va_list args;

    (void)snprintf(name, sizeof name, "ops[%zu].%s", number, field);
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return vxd_fail(err, VXD_INVALID_ARGUMENT, name, "%s", message);
}

static bool is_coordinate(int64_t c)
{
    return c >= -VXD_SVDAG_MAX_COORDINATE && c <= VXD_SVDAG_MAX_COORDINATE;
}

static bool are_coordinates(const int64_t c[3])
{
    return is_coordinate(c[0]) && is_coordinate(c[1]) && is_coordinate(c[2]);
}

static enum vxd_status check_point(const int64_t point[3], const char *field,
                                   size_t number, struct vxd_err *err)
{
    if (!are_coordinates(point)) {
        return bad(err, number, field, "a coordinate is beyond 2^31 units");
    }
    return VXD_OK;
}

/* A radius, with what noise may add to it. */
static enum vxd_status check_radius(const struct vxd_svdag_shape *shape, size_t number,
                                    struct vxd_err *err)
{
    bool is_noisy = shape->kind == VXD_SVDAG_NOISE_BALL;

    if (shape->r < 0 || shape->r > VXD_SVDAG_MAX_COORDINATE) {
        return bad(err, number, "shape.r", "%lld units, must be 0 to 2^31",
                   (long long)shape->r);
    }
    if (is_noisy && (shape->amplitude < 0 ||
                     shape->amplitude > VXD_SVDAG_MAX_COORDINATE - shape->r)) {
        return bad(err, number, "shape.amplitude",
                   "%lld units, must be at least 0, with the radius at most 2^31",
                   (long long)shape->amplitude);
    }
    if (is_noisy &&
        (shape->cell_bits < 0 || shape->cell_bits > VXD_BALL_NOISE_CELL_BITS_MAX)) {
        return bad(err, number, "shape.cell_bits", "%d, must be 0 to %d",
                   shape->cell_bits, VXD_BALL_NOISE_CELL_BITS_MAX);
    }
    return VXD_OK;
}

static enum vxd_status check_half_space(const struct vxd_svdag_shape *shape,
                                        size_t number, struct vxd_err *err)
{
    const int64_t most = (int64_t)1 << 62;

    if (shape->n[0] == 0 && shape->n[1] == 0 && shape->n[2] == 0) {
        return bad(err, number, "shape.n", "a normal of 0");
    }
    if (shape->d < -most || shape->d > most) {
        return bad(err, number, "shape.d", "%lld, its magnitude must be at most 2^62",
                   (long long)shape->d);
    }
    return VXD_OK;
}

static enum vxd_status check_heights(const struct vxd_svdag_shape *shape, size_t number,
                                     struct vxd_err *err)
{
    const struct vxd_svdag_heights *field = &shape->field;

    if (field->n_x == 0 || field->n_y == 0 ||
        (uint64_t)field->n_x * field->n_y > MAX_CELLS) {
        return bad(err, number, "shape.field", "%u x %u cells, must be 1 to 2^26",
                   field->n_x, field->n_y);
    }
    if (field->heights == NULL) {
        return bad(err, number, "shape.field.heights", "missing");
    }
    if (field->cell == 0) {
        return bad(err, number, "shape.field.cell", "0 voxels, must be at least 1");
    }
    if (!is_coordinate(field->x) || !is_coordinate(field->y)) {
        return bad(err, number, "shape.field", "its corner is beyond 2^31 voxels");
    }
    if (!is_coordinate(shape->low[2])) {
        return bad(err, number, "shape.low", "beyond 2^31 units");
    }
    return VXD_OK;
}

static enum vxd_status check_list(const struct vxd_svdag_shape *shape, size_t number,
                                  struct vxd_err *err)
{
    const struct vxd_svdag_voxels *voxels = &shape->voxels;

    if (voxels->n > 0 && (voxels->codes == NULL || voxels->masks == NULL)) {
        return bad(err, number, "shape.voxels", "codes or masks are missing");
    }
    if ((voxels->values == NULL) != (voxels->first_value == NULL)) {
        return bad(err, number, "shape.voxels", "values and first_value go together");
    }
    return VXD_OK;
}

static enum vxd_status check_shape(const struct vxd_svdag_shape *shape, size_t number,
                                   struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        VXD_TRY(check_point(shape->low, "shape.low", number, err));
        return check_point(shape->high, "shape.high", number, err);
    case VXD_SVDAG_CAPSULE:
        VXD_TRY(check_point(shape->b, "shape.b", number, err));
        VXD_TRY(check_point(shape->a, "shape.a", number, err));
        return check_radius(shape, number, err);
    case VXD_SVDAG_BALL:
    case VXD_SVDAG_NOISE_BALL:
        VXD_TRY(check_point(shape->a, "shape.a", number, err));
        return check_radius(shape, number, err);
    case VXD_SVDAG_HALF_SPACE:
        return check_half_space(shape, number, err);
    case VXD_SVDAG_VOXELS:
        return check_list(shape, number, err);
    case VXD_SVDAG_HEIGHTFIELD:
        return check_heights(shape, number, err);
    }
    status = bad(err, number, "shape.kind", "%d is no shape", (int)shape->kind);
out:
    return status;
}

/* A signed permutation: one 1 or -1 in each row and column. */
static bool is_rotation(const int8_t matrix[3][3])
{
    int rows[3] = {0};
    int columns[3] = {0};

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            bool is_one = matrix[i][j] == 1 || matrix[i][j] == -1;

            if (!is_one && matrix[i][j] != 0) {
                return false;
            }
            rows[i] += is_one;
            columns[j] += is_one;
        }
    }
    return rows[0] == 1 && rows[1] == 1 && rows[2] == 1 && columns[0] == 1 &&
           columns[1] == 1 && columns[2] == 1;
}

static enum vxd_status check_copy(const struct vxd_svdag_op *op, size_t number,
                                  struct vxd_err *err)
{
    if (op->shape.kind != VXD_SVDAG_BOX) {
        return bad(err, number, "shape.kind", "only boxes can be copied to");
    }
    for (int axis = 0; axis < 3; axis++) {
        if (op->shape.low[axis] % VXD_SVDAG_UNIT != 0 ||
            op->shape.high[axis] % VXD_SVDAG_UNIT != 0) {
            return bad(err, number, "shape", "a copy's box must be of whole voxels");
        }
    }
    if (!are_coordinates(op->from_voxel)) {
        return bad(err, number, "from_voxel", "beyond 2^31 voxels");
    }
    if (!is_rotation(op->matrix)) {
        return bad(err, number, "matrix",
                   "each row and column must have one 1 or -1 and else 0");
    }
    return VXD_OK;
}

static enum vxd_status check_morph(const struct vxd_svdag_op *op, size_t number,
                                   struct vxd_err *err)
{
    if (op->shape.kind == VXD_SVDAG_VOXELS || op->shape.kind == VXD_SVDAG_HEIGHTFIELD) {
        return bad(err, number, "shape.kind",
                   "lists and heightfields cannot be eroded or dilated");
    }
    if (op->threshold < 1 || op->threshold > VXD_OPERATION_THRESHOLD_MAX) {
        return bad(err, number, "threshold", "%d, must be 1 to %d", op->threshold,
                   VXD_OPERATION_THRESHOLD_MAX);
    }
    return VXD_OK;
}

static enum vxd_status check_value(uint32_t value, const char *field, size_t number,
                                   uint32_t n_materials, struct vxd_err *err)
{
    if (value >= n_materials) {
        return bad(err, number, field, "%u, materials are 0 to %u", value,
                   n_materials - 1);
    }
    return VXD_OK;
}

static enum vxd_status check_op(const struct vxd_svdag_format *format,
                                const struct vxd_svdag_op *op, size_t number,
                                struct vxd_err *err)
{
    uint32_t n_materials = vxd_svdag_n_materials(format);
    enum vxd_status status = check_shape(&op->shape, number, err);

    if (status != VXD_OK) {
        return status;
    }
    switch (op->action) {
    case VXD_SVDAG_REPLACE:
        status = check_value(op->from, "from", number, n_materials, err);
        return status != VXD_OK
                   ? status
                   : check_value(op->value, "value", number, n_materials, err);
    case VXD_SVDAG_FILL:
    case VXD_SVDAG_PAINT:
        return check_value(op->value, "value", number, n_materials, err);
    case VXD_SVDAG_ERASE:
        return VXD_OK;
    case VXD_SVDAG_SET_FREE:
        return format->tracks_free
                   ? VXD_OK
                   : bad(err, number, "action", "the scene does not track free space");
    case VXD_SVDAG_ERODE:
    case VXD_SVDAG_DILATE:
        return check_morph(op, number, err);
    case VXD_SVDAG_COPY:
        return check_copy(op, number, err);
    }
    return bad(err, number, "action", "%d is no action", (int)op->action);
}

/* Lists and heights, in their turn --------------------------------------------------------- */

/* A loop over a list's leaves or a field's cells: is_bad is set where one breaks a rule. */
struct list_check {
    const struct vxd_svdag_voxels *voxels;
    const int64_t *heights;
    uint64_t n_codes;
    uint32_t n_materials;
    bool has_values;
    atomic_bool is_bad;
};

enum {
    CHECK_GRAIN = 1 << 15
};

static void check_leaves(void *args, size_t begin, size_t end)
{
    struct list_check *check = args;

    for (size_t i = begin; i < end; i++) {
        if (!vxd_svdag_list_is_good(check->voxels, i, check->n_codes, check->n_materials,
                                    check->has_values)) {
            atomic_store_explicit(&check->is_bad, true, memory_order_relaxed);
            return;
        }
    }
}

static void check_cells(void *args, size_t begin, size_t end)
{
    struct list_check *check = args;

    for (size_t i = begin; i < end; i++) {
        if (!is_coordinate(check->heights[i])) {
            atomic_store_explicit(&check->is_bad, true, memory_order_relaxed);
            return;
        }
    }
}

static enum vxd_status check_data(struct vxd_pool *pool,
                                  const struct vxd_svdag_format *format,
                                  const struct vxd_svdag_op *op, size_t number,
                                  struct vxd_err *err)
{
    const struct vxd_svdag_shape *shape = &op->shape;
    struct list_check check = {
        .voxels = &shape->voxels,
        .heights = shape->field.heights,
        .n_codes = (uint64_t)1 << 3 * (format->depth - VXD_SVDAG_LEAF_HEIGHT),
        .n_materials = vxd_svdag_n_materials(format),
        .has_values = shape->voxels.values != NULL &&
                      (op->action == VXD_SVDAG_FILL || op->action == VXD_SVDAG_PAINT)};

    atomic_init(&check.is_bad, false);
    if (shape->kind == VXD_SVDAG_VOXELS) {
        vxd_parallel_for(pool, shape->voxels.n, CHECK_GRAIN, check_leaves, &check);
        if (atomic_load(&check.is_bad)) {
            return bad(err, number, "shape.voxels",
                       "codes must ascend and lie inside, masks not be 0, values be "
                       "materials of the scene");
        }
    } else if (shape->kind == VXD_SVDAG_HEIGHTFIELD) {
        vxd_parallel_for(pool, (size_t)shape->field.n_x * shape->field.n_y, CHECK_GRAIN,
                         check_cells, &check);
        if (atomic_load(&check.is_bad)) {
            return bad(err, number, "shape.field.heights", "one is beyond 2^31 units");
        }
    }
    return VXD_OK;
}

/* Passes ---------------------------------------------------------------------------------- */

static enum vxd_status run_shapes(struct vxd_pool *pool, struct vxd_svdag *svdag,
                                  const struct vxd_svdag_op *ops, size_t n,
                                  struct vxd_svdag_edit_result *result,
                                  struct vxd_err *err)
{
    struct vxd_svdag_shapes *shapes;
    struct vxd_svdag_editor editor;
    enum vxd_status status = vxd_svdag_shapes_begin(svdag, ops, n, &shapes, &editor, err);

    if (status == VXD_OK) {
        status = vxd_svdag_build(pool, svdag, result->root, &editor, result, err);
        vxd_svdag_shapes_end(shapes);
    }
    return status;
}

/* As many of n shapes in a row as one way over the tree takes: *n_done. *most is how many are tried,
 * less where that was too many. */
static enum vxd_status run_many(struct vxd_pool *pool, struct vxd_svdag *svdag,
                                const struct vxd_svdag_op *ops, size_t n, size_t *most,
                                size_t *n_done, struct vxd_svdag_edit_result *result,
                                struct vxd_err *err)
{
    size_t n_many = vxd_svdag_op_octree_count(ops, n);

    *n_done = vxd_svdag_shapes_count(ops, n);
    for (n_many = n_many < *most ? n_many : *most; n_many > *n_done; n_many /= 2) {
        struct vxd_svdag_edit_result tried = *result;
        struct vxd_svdag_op_octree *octree;
        struct vxd_svdag_editor editor;
        enum vxd_status status =
            vxd_svdag_op_octree_begin(svdag, ops, n_many, &octree, &editor, NULL);

        if (octree != NULL) {
            status = vxd_svdag_build(pool, svdag, tried.root, &editor, &tried, NULL);
            vxd_svdag_op_octree_end(octree);
            if (status == VXD_OK) {
                *result = tried;
                *n_done = n_many;
                return VXD_OK;
            }
        }
        /* What fails may look at less in several passes: those say. */
        *most = status == VXD_OK ? n_many / 2 : 0;
        n_many = status == VXD_OK ? n_many : 0;
    }
    return run_shapes(pool, svdag, ops, *n_done, result, err);
}

/* What looks at the state before it: this root, which the pass only reads. */
static enum vxd_status run_other(struct vxd_pool *pool, struct vxd_svdag *svdag,
                                 const struct vxd_svdag_op *op,
                                 struct vxd_svdag_edit_result *result,
                                 struct vxd_err *err)
{
    const struct vxd_svdag_source source = {op, svdag->view, result->root};
    struct vxd_svdag_editor editor;

    if (op->action == VXD_SVDAG_COPY) {
        vxd_svdag_copy_editor(&source, &editor);
    } else {
        vxd_svdag_morph_editor(&source, &editor);
    }
    return vxd_svdag_build(pool, svdag, result->root, &editor, result, err);
}

/* What several passes changed is between the first root and the last. */
static enum vxd_status count_change(struct vxd_svdag *svdag, uint32_t from,
                                    struct vxd_svdag_edit_result *result,
                                    struct vxd_err *err)
{
    struct vxd_svdag_change change = {0};
    struct vxd_svdag_change_memo *memo;
    struct vxd_buffer memory;
    enum vxd_status status = vxd_host_alloc(
        svdag->context, sizeof(struct vxd_svdag_change_memo), &memory, err);

    if (status != VXD_OK) {
        return status;
    }
    memo = memory.ptr;
    memo->is_made = false;
    vxd_svdag_change_add(&svdag->view, memo, from, result->root, svdag->view.depth,
                         &change);
    vxd_host_free(svdag->context, &memory);
    result->n_added = change.n_added;
    result->n_removed = change.n_removed;
    result->n_changed = change.n_changed;
    result->n_freed = change.n_freed;
    return VXD_OK;
}

static enum vxd_status edit_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    const struct edit_call *call = args;
    struct vxd_svdag_edit_result result = {.root = call->root};
    size_t n_traversals = 0;
    size_t most = call->n_ops; /* that are tried together */
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < call->n_ops; i++) {
        VXD_TRY(check_data(pool, &call->svdag->spec.format, &call->ops[i], i, err));
    }
    for (size_t i = 0; i < call->n_ops; n_traversals++) {
        size_t n;

        if (vxd_svdag_shapes_count(call->ops + i, 1) > 0) {
            VXD_TRY(run_many(pool, call->svdag, call->ops + i, call->n_ops - i, &most, &n,
                             &result, err));
            i += n;
        } else {
            VXD_TRY(run_other(pool, call->svdag, &call->ops[i], &result, err));
            i++;
        }
    }
    if (n_traversals > 1) {
        VXD_TRY(count_change(call->svdag, call->root, &result, err));
    }
    *call->out = result;
out:
    return status;
}

enum vxd_status vxd_svdag_edit(struct vxd_queue *queue, struct vxd_svdag *svdag,
                               uint32_t root, const struct vxd_svdag_op *ops,
                               size_t n_ops, struct vxd_svdag_edit_result *out,
                               struct vxd_err *err)
{
    struct edit_call call = {svdag, root, ops, n_ops, out};

    if (n_ops > VXD_SVDAG_MAX_OPS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "ops", "%zu operations, at most %d",
                        n_ops, VXD_SVDAG_MAX_OPS);
    }
    for (size_t i = 0; i < n_ops; i++) {
        enum vxd_status status = check_op(&svdag->spec.format, &ops[i], i, err);

        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_ON_CUDA(queue->context)
               ? vxd_svdag_edit_cuda(queue, svdag, root, ops, n_ops, out, err)
               : vxd_queue_push(queue, edit_job, &call, sizeof call, err);
}

enum vxd_status vxd_svdag_reserve(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                  const struct vxd_svdag_edit_result *result,
                                  struct vxd_err *err)
{
    enum vxd_status status = vxd_queue_wait(queue, err);

    if (status != VXD_OK || !VXD_ON_CUDA(queue->context) || !result->needs_capacity) {
        return status;
    }
    VXD_TRY(vxd_svdag_device_grow(queue, svdag, &result->needs, err));
    if (result->needs.n_entries > 0 || result->needs.n_pairs > 0) {
        status = vxd_svdag_grow_frontier_cuda(queue, svdag, &result->needs, err);
    }
out:
    return status;
}

enum vxd_status vxd_svdag_edit_wait(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                    uint32_t root, const struct vxd_svdag_op *ops,
                                    size_t n_ops, struct vxd_svdag_edit_result *out,
                                    struct vxd_err *err)
{
    enum vxd_status status;

    if (VXD_ON_CUDA(queue->context)) {
        VXD_TRY(vxd_svdag_device_reserve_expected(queue, svdag, err));
    }
    for (;;) {
        VXD_TRY(vxd_svdag_check_stop(svdag, err));
        VXD_TRY(vxd_svdag_edit(queue, svdag, root, ops, n_ops, out, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        if (!out->needs_capacity) {
            break;
        }
        /* Each time some room grows, or the budget ends it. */
        VXD_TRY(vxd_svdag_reserve(queue, svdag, out, err));
    }
out:
    return status;
}
