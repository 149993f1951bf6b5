// SPDX-License-Identifier: Apache-2.0
/* Edits that are refused, either when they are queued or, for the contents of lists, when
 * they are executed. The error names the field, and nothing is changed. */
#include "tests/support/test.h"

#include "gpu/svdag/edit/edit.h"
#include "tests/support/gpu/gpu_helpers.h"

static const struct vxd_svdag_format format = {8, 4, true};

static struct vxd_svdag_op ball(enum vxd_svdag_action action)
{
    struct vxd_svdag_op op = {.action = action, .threshold = 3};

    op.shape.kind = VXD_SVDAG_BALL;
    op.shape.r = 1000;
    return op;
}

static struct vxd_svdag_op of_kind(enum vxd_svdag_shape_kind kind)
{
    static const int64_t heights[4];
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL};

    op.shape = (struct vxd_svdag_shape){
        .kind = kind,
        .high = {1024, 1024, 1024},
        .r = 100,
        .n = {0, 0, 1},
        .cell_bits = 3,
        .field = {.heights = heights, .n_x = 2, .n_y = 2, .cell = 1}};
    return op;
}

static struct vxd_svdag_op copy(void)
{
    struct vxd_svdag_op op = of_kind(VXD_SVDAG_BOX);

    op.action = VXD_SVDAG_COPY;
    op.matrix[0][1] = op.matrix[1][0] = 1;
    op.matrix[2][2] = -1;
    return op;
}

/* Queues valid operations before and after the invalid one, and expects an error that
 * names the field. */
static void refused(struct vxd_queue *queue, struct vxd_svdag *svdag,
                    struct vxd_svdag_op op, const char *field)
{
    struct vxd_svdag_op ops[3] = {ball(VXD_SVDAG_FILL), op, ball(VXD_SVDAG_ERASE)};
    struct vxd_svdag_edit_result result = {.root = 77};
    struct vxd_err err = {0};

    CHECK_INT(vxd_svdag_edit(queue, svdag, VXD_SVDAG_EMPTY, ops, 3, &result, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, field);
    CHECK(err.message[0] != '\0');
    CHECK_INT(vxd_queue_wait(queue, NULL), VXD_OK);
    CHECK_INT(result.root, 77);
}

/* Sets one field of a valid operation to an invalid number. */
#define REFUSED(make, field, assignment)                                                 \
    do {                                                                                 \
        struct vxd_svdag_op op = (make);                                                 \
                                                                                         \
        op.assignment;                                                                   \
        refused(env.queue, svdag, op, "ops[1]." field);                                  \
    } while (0)

static void refuse_shapes(struct gpu_env env, struct vxd_svdag *svdag)
{
    const int64_t beyond = VXD_SVDAG_MAX_COORDINATE + 1;

    REFUSED(of_kind(VXD_SVDAG_BALL), "shape.kind", shape.kind = 7);
    REFUSED(of_kind(VXD_SVDAG_BOX), "shape.low", shape.low[1] = -beyond);
    REFUSED(of_kind(VXD_SVDAG_BOX), "shape.high", shape.high[2] = beyond);
    REFUSED(of_kind(VXD_SVDAG_BALL), "shape.a", shape.a[0] = INT64_MIN);
    REFUSED(of_kind(VXD_SVDAG_BALL), "shape.r", shape.r = -1);
    REFUSED(of_kind(VXD_SVDAG_BALL), "shape.r", shape.r = beyond);
    REFUSED(of_kind(VXD_SVDAG_CAPSULE), "shape.a", shape.a[2] = beyond);
    REFUSED(of_kind(VXD_SVDAG_CAPSULE), "shape.b", shape.b[2] = INT64_MAX);
    REFUSED(of_kind(VXD_SVDAG_CAPSULE), "shape.r", shape.r = -1);
    REFUSED(of_kind(VXD_SVDAG_HALF_SPACE), "shape.n", shape.n[2] = 0);
    REFUSED(of_kind(VXD_SVDAG_HALF_SPACE), "shape.d", shape.d = INT64_MAX);
    REFUSED(of_kind(VXD_SVDAG_NOISE_BALL), "shape.amplitude", shape.amplitude = -1);
    REFUSED(of_kind(VXD_SVDAG_NOISE_BALL), "shape.amplitude",
            shape.amplitude = VXD_SVDAG_MAX_COORDINATE - 99);
    REFUSED(of_kind(VXD_SVDAG_NOISE_BALL), "shape.cell_bits", shape.cell_bits = 17);
    REFUSED(of_kind(VXD_SVDAG_NOISE_BALL), "shape.cell_bits", shape.cell_bits = -1);
    REFUSED(of_kind(VXD_SVDAG_VOXELS), "shape.voxels", shape.voxels.n = 1);
    REFUSED(of_kind(VXD_SVDAG_VOXELS), "shape.voxels",
            shape.voxels.values = (const uint16_t *)"ab");
    REFUSED(of_kind(VXD_SVDAG_HEIGHTFIELD), "shape.field", shape.field.n_x = 0);
    REFUSED(of_kind(VXD_SVDAG_HEIGHTFIELD), "shape.field", shape.field.n_y = 1 << 26);
    REFUSED(of_kind(VXD_SVDAG_HEIGHTFIELD), "shape.field", shape.field.y = beyond);
    REFUSED(of_kind(VXD_SVDAG_HEIGHTFIELD), "shape.field.cell", shape.field.cell = 0);
    REFUSED(of_kind(VXD_SVDAG_HEIGHTFIELD), "shape.field.heights",
            shape.field.heights = NULL);
    REFUSED(of_kind(VXD_SVDAG_HEIGHTFIELD), "shape.low", shape.low[2] = beyond);
}

static void refuse_actions(struct gpu_env env, struct vxd_svdag *svdag)
{
    REFUSED(ball(VXD_SVDAG_FILL), "action", action = 8);
    REFUSED(ball(VXD_SVDAG_FILL), "value", value = 15); /* the value that means FREE */
    REFUSED(ball(VXD_SVDAG_PAINT), "value", value = 16);
    REFUSED(ball(VXD_SVDAG_REPLACE), "value", value = UINT32_MAX);
    REFUSED(ball(VXD_SVDAG_REPLACE), "from", from = 15);
    REFUSED(ball(VXD_SVDAG_ERODE), "threshold", threshold = 0);
    REFUSED(ball(VXD_SVDAG_DILATE), "threshold", threshold = 7);
    REFUSED(of_kind(VXD_SVDAG_HEIGHTFIELD), "shape.kind", action = VXD_SVDAG_ERODE);
    REFUSED(of_kind(VXD_SVDAG_VOXELS), "shape.kind", action = VXD_SVDAG_DILATE);
    REFUSED(ball(VXD_SVDAG_COPY), "shape.kind", value = 0);
    REFUSED(copy(), "shape", shape.low[0] = 1);
    REFUSED(copy(), "shape", shape.high[2] = 255);
    REFUSED(copy(), "from_voxel", from_voxel[1] = INT64_MIN);
    REFUSED(copy(), "matrix", matrix[0][0] = 1);
    REFUSED(copy(), "matrix", matrix[2][2] = 0);
    REFUSED(copy(), "matrix", matrix[2][2] = 2);
}

static void test_edit_of_a_wrong_operation_is_refused_with_its_field(void)
{
    struct gpu_env env;
    struct vxd_svdag_spec spec = {.format = format};
    struct vxd_svdag *svdag = NULL;
    struct vxd_svdag *plain = NULL;
    struct vxd_svdag_edit_result result;
    struct vxd_svdag_op fine = copy();
    struct vxd_err err = {0};

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    REQUIRE(vxd_svdag_create(env.queue, &spec, &svdag, NULL) == VXD_OK);
    spec.format.tracks_free = false;
    REQUIRE(vxd_svdag_create(env.queue, &spec, &plain, NULL) == VXD_OK);
    refuse_shapes(env, svdag);
    refuse_actions(env, svdag);
    refused(env.queue, plain, ball(VXD_SVDAG_SET_FREE), "ops[1].action");
    CHECK_INT(vxd_svdag_edit(env.queue, svdag, VXD_SVDAG_EMPTY, &fine,
                             VXD_SVDAG_MAX_OPS + 1, &result, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "ops");
    CHECK_INT(vxd_svdag_edit(env.queue, svdag, VXD_SVDAG_EMPTY, &fine, 1, &result, NULL),
              VXD_OK);
    CHECK_INT(vxd_queue_wait(env.queue, NULL), VXD_OK);
    vxd_svdag_destroy(env.queue, svdag);
    vxd_svdag_destroy(env.queue, plain);
    gpu_env_destroy(&env);
}

/* Errors that the wait reports. */
static void refused_late(struct vxd_queue *queue, struct vxd_svdag *svdag,
                         const struct vxd_svdag_op *op, const char *field)
{
    struct vxd_svdag_op ops[2] = {ball(VXD_SVDAG_FILL), *op};
    struct vxd_svdag_edit_result result = {.root = 77};
    struct vxd_svdag_usage before;
    struct vxd_svdag_usage after;
    struct vxd_err err = {0};

    vxd_svdag_get_usage(svdag, &before);
    CHECK_INT(vxd_svdag_edit(queue, svdag, VXD_SVDAG_EMPTY, ops, 2, &result, &err),
              VXD_OK);
    CHECK_INT(vxd_queue_wait(queue, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, field);
    vxd_svdag_get_usage(svdag, &after);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK_INT(result.root, 77);
}

static void test_edit_of_a_wrong_list_is_refused_by_the_wait(void)
{
    struct gpu_env env;
    struct vxd_svdag_spec spec = {.format = format};
    struct vxd_svdag *svdag = NULL;
    uint64_t codes[3] = {5, 6, ((uint64_t)1 << 18) - 1};
    uint64_t masks[3] = {1, 3, 1};
    uint32_t first_value[3] = {0, 1, 3};
    uint16_t values[4] = {0, 14, 3, 2};
    int64_t heights[2] = {0, VXD_SVDAG_MAX_COORDINATE + 1};
    struct vxd_svdag_op op = of_kind(VXD_SVDAG_VOXELS);
    struct vxd_svdag_edit_result result;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    REQUIRE(vxd_svdag_create(env.queue, &spec, &svdag, NULL) == VXD_OK);
    op.shape.voxels = (struct vxd_svdag_voxels){codes, masks, first_value, values, 3};
    codes[1] = 5;
    refused_late(env.queue, svdag, &op, "ops[1].shape.voxels");
    codes[1] = 6;
    codes[2]++;
    refused_late(env.queue, svdag, &op, "ops[1].shape.voxels");
    codes[2]--;
    masks[0] = 0;
    refused_late(env.queue, svdag, &op, "ops[1].shape.voxels");
    masks[0] = 1;
    values[2] = 15;
    refused_late(env.queue, svdag, &op, "ops[1].shape.voxels");
    values[2] = 3;
    CHECK_INT(vxd_svdag_edit(env.queue, svdag, VXD_SVDAG_EMPTY, &op, 1, &result, NULL),
              VXD_OK);
    CHECK_INT(vxd_queue_wait(env.queue, NULL), VXD_OK);
    CHECK_INT(result.n_added, 4);
    op = of_kind(VXD_SVDAG_HEIGHTFIELD);
    op.shape.field.heights = heights;
    op.shape.field.n_x = 1;
    refused_late(env.queue, svdag, &op, "ops[1].shape.field.heights");
    vxd_svdag_destroy(env.queue, svdag);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_edit_of_a_wrong_operation_is_refused_with_its_field),
    VXD_TEST(test_edit_of_a_wrong_list_is_refused_by_the_wait)};

VXD_TEST_MAIN(tests)
