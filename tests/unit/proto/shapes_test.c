// SPDX-License-Identifier: Apache-2.0
/* The lists of shapes and actions say what protobuf-c's own descriptors say, whose numbers libvoxeld
 * and the engine have as well; and members stand in the order of the descriptors' fields, by which the
 * service finds them. */
#include "client/c/include/voxeld.h"
#include "gpu/svdag/brush/brush.h"
#include "proto/base/shapes.h"
#include "tests/support/test.h"
#include "voxeld/v1/rpc.pb-c.h"

static enum vxd_shape_kind kind_of(const ProtobufCFieldDescriptor *field)
{
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        CHECK(field->type == PROTOBUF_C_TYPE_DOUBLE ||
              field->type == PROTOBUF_C_TYPE_UINT32);
        return field->type == PROTOBUF_C_TYPE_DOUBLE ? VXD_SHAPE_NUMBER : VXD_SHAPE_COUNT;
    }
    return field->descriptor == &voxeld__v1__vec3__descriptor ? VXD_SHAPE_VECTOR
                                                              : VXD_SHAPE_ARRAY;
}

static void test_shape_has_the_members_of_its_message(void)
{
    const ProtobufCMessageDescriptor *operation =
        &voxeld__v1__scene_operation__descriptor;
    size_t n_shapes = 0;

    for (unsigned i = 0; i < operation->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &operation->fields[i];
        const ProtobufCMessageDescriptor *message = field->descriptor;
        const struct vxd_shape_info *shape;

        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0) {
            continue;
        }
        n_shapes++;
        REQUIRE(field->id < VXD_N_SHAPES);
        shape = &vxd_shapes[field->id];
        CHECK_STR(shape->name, field->name);
        REQUIRE(shape->n_members == message->n_fields);
        for (size_t k = 0; k < shape->n_members; k++) {
            CHECK_STR(shape->members[k].name, message->fields[k].name);
            CHECK(shape->members[k].kind == kind_of(&message->fields[k]));
        }
    }
    CHECK(n_shapes == VXD_N_SHAPES - 1);
    CHECK(vxd_shapes[VXD_SHAPE_NONE].name == NULL);
}

static void test_shapes_numbers_are_what_its_struct_begins_with(void)
{
    struct voxeld_scene_operation op;

    CHECK(vxd_shapes[VOXELD_SHAPE_BOX].n_numbers * sizeof(double) == sizeof op.in.box);
    CHECK(vxd_shapes[VOXELD_SHAPE_BALL].n_numbers * sizeof(double) ==
          offsetof(struct voxeld_scene_ball, noise));
    CHECK(vxd_shapes[VOXELD_SHAPE_CAPSULE].n_numbers * sizeof(double) ==
          sizeof op.in.capsule);
    CHECK(vxd_shapes[VOXELD_SHAPE_HALF_SPACE].n_numbers * sizeof(double) ==
          sizeof op.in.half_space);
    CHECK(vxd_shapes[VOXELD_SHAPE_POINTS].n_numbers == 0);
    CHECK(vxd_shapes[VOXELD_SHAPE_HEIGHTFIELD].n_numbers == 0);
}

static void test_shape_has_libvoxelds_number(void)
{
    CHECK(VOXELD_SHAPE_BOX == (int)VXD_SHAPE_BOX);
    CHECK(VOXELD_SHAPE_BALL == (int)VXD_SHAPE_BALL);
    CHECK(VOXELD_SHAPE_CAPSULE == (int)VXD_SHAPE_CAPSULE);
    CHECK(VOXELD_SHAPE_HALF_SPACE == (int)VXD_SHAPE_HALF_SPACE);
    CHECK(VOXELD_SHAPE_POINTS == (int)VXD_SHAPE_POINTS);
    CHECK(VOXELD_SHAPE_HEIGHTFIELD == (int)VXD_SHAPE_HEIGHTFIELD);
}

static void test_range_is_that_of_the_manuals(void)
{
    const struct vxd_shape_member *ball = vxd_shapes[VXD_SHAPE_BALL].members;
    const struct vxd_shape_member *field = vxd_shapes[VXD_SHAPE_HEIGHTFIELD].members;

    CHECK(ball[1].low == 0 && !ball[1].above_low && ball[1].high == DBL_MAX);
    CHECK(ball[3].low == 0 && ball[3].high == 16);
    CHECK(ball[4].low == 0 && ball[4].high == UINT32_MAX);
    CHECK(field[3].low == 0 && field[3].above_low);
    CHECK(field[4].low == -DBL_MAX);
    CHECK(VXD_BALL_NOISE_CELL_BITS_MAX == 16 && VXD_OPERATION_THRESHOLD_MAX == 6);
}

static void test_action_has_the_schemas_name_and_the_journals_number(void)
{
    const ProtobufCEnumDescriptor *actions = &voxeld__v1__scene_action__descriptor;

    REQUIRE(actions->n_values == VXD_N_ACTIONS);
    for (unsigned i = 0; i < actions->n_values; i++) {
        CHECK_STR(vxd_actions[actions->values[i].value].name, actions->values[i].name);
    }
    /* Journals hold these numbers, so they never change. */
    CHECK(VXD_SVDAG_FILL == 0 && VXD_SVDAG_ERASE == 1 && VXD_SVDAG_SET_FREE == 2 &&
          VXD_SVDAG_PAINT == 3 && VXD_SVDAG_REPLACE == 4 && VXD_SVDAG_ERODE == 5 &&
          VXD_SVDAG_DILATE == 6 && VXD_SVDAG_COPY == 7);
    CHECK(VOXELD_SCENE_FILL == (int)VXD_ACTION_FILL &&
          VOXELD_SCENE_KEEP == (int)VXD_ACTION_KEEP);
}

static void test_action_takes_what_the_manual_says(void)
{
    CHECK(vxd_actions[VXD_ACTION_FILL].takes == (VXD_TAKES_MATERIAL | VXD_TAKES_PIN));
    CHECK(vxd_actions[VXD_ACTION_REPLACE].takes ==
          (VXD_TAKES_MATERIAL | VXD_TAKES_FROM_MATERIAL));
    CHECK(vxd_actions[VXD_ACTION_ERODE].takes == VXD_TAKES_THRESHOLD);
    CHECK(vxd_actions[VXD_ACTION_COPY].takes == VXD_TAKES_COPY);
    CHECK(vxd_actions[VXD_ACTION_KEEP].takes == VXD_TAKES_PIN);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_shape_has_the_members_of_its_message),
    VXD_TEST(test_shapes_numbers_are_what_its_struct_begins_with),
    VXD_TEST(test_shape_has_libvoxelds_number),
    VXD_TEST(test_range_is_that_of_the_manuals),
    VXD_TEST(test_action_has_the_schemas_name_and_the_journals_number),
    VXD_TEST(test_action_takes_what_the_manual_says),
};

VXD_TEST_MAIN(tests)
