// SPDX-License-Identifier: Apache-2.0
/* What the code relies on in the schema, for every message that a request or a reply can
 * hold: no message contains itself, no proto3 `optional`, names of a bounded length. */
#include "proto/wire/wire.h"
#include "tests/support/test.h"
#include "voxeld/v1/rpc.pb-c.h"

enum {
    /* Request, VoxelizeRequest, Cloud, Sweep, Pose, Vec3 is 6; the walkers recurse so far. */
    MAX_DEPTH = 12
};

static const ProtobufCMessageDescriptor *const roots[] = {
    &voxeld__v1__request__descriptor, &voxeld__v1__response__descriptor};

/* Depth-first with the path on a stack of our own; a message on it twice is recursive. */
static void walk(void (*visit)(const ProtobufCFieldDescriptor *field), size_t *max_depth)
{
    struct {
        const ProtobufCMessageDescriptor *message;
        unsigned next_field;
    } stack[MAX_DEPTH];

    for (size_t r = 0; r < sizeof roots / sizeof roots[0]; r++) {
        size_t depth = 1;

        stack[0].message = roots[r];
        stack[0].next_field = 0;
        while (depth > 0) {
            const ProtobufCMessageDescriptor *message = stack[depth - 1].message;
            const ProtobufCFieldDescriptor *field;

            if (stack[depth - 1].next_field == message->n_fields) {
                depth--;
                continue;
            }
            field = &message->fields[stack[depth - 1].next_field++];
            visit(field);
            if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
                continue;
            }
            for (size_t i = 0; i < depth; i++) {
                if (stack[i].message == field->descriptor) {
                    (void)fprintf(stderr, "%s contains itself\n", stack[i].message->name);
                    REQUIRE(stack[i].message != field->descriptor);
                }
            }
            REQUIRE(depth < MAX_DEPTH);
            stack[depth].message = field->descriptor;
            stack[depth].next_field = 0;
            depth++;
            *max_depth = depth > *max_depth ? depth : *max_depth;
        }
    }
}

/* proto/wire/encode.c copies the structs, proto/wire/borrow.c counts the fields. */
static void check_message(const ProtobufCMessageDescriptor *message)
{
    bool holds_data = false;

    CHECK(message->sizeof_message <= VXD_ENCODE_STRUCT_BYTES);
    CHECK(message->n_fields <= VXD_BORROW_FIELDS);
    for (unsigned i = 0; i < message->n_fields; i++) {
        holds_data = holds_data || message->fields[i].type == PROTOBUF_C_TYPE_BYTES;
    }
    CHECK(!holds_data || protobuf_c_message_descriptor_get_field(
                             message, VXD_WIRE_PADDING_FIELD) == NULL);
}

static void check_field(const ProtobufCFieldDescriptor *field)
{
    CHECK(field->label == PROTOBUF_C_LABEL_NONE ||
          field->label == PROTOBUF_C_LABEL_REPEATED);
    CHECK(strlen(field->name) < VXD_FIELD_NAME_BYTES);
    /* The OpenAPI writer refers to schemas by their short names. */
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        check_message(field->descriptor);
        CHECK_STR(((const ProtobufCMessageDescriptor *)field->descriptor)->package_name,
                  "voxeld.v1");
    }
}

static void test_schema_any_message_is_not_recursive(void)
{
    size_t depth = 0;

    walk(check_field, &depth);
    CHECK(depth >= 5);
    for (size_t r = 0; r < sizeof roots / sizeof roots[0]; r++) {
        check_message(roots[r]);
    }
    (void)printf("     deepest message: %zu levels\n", depth);
}

/* server/method_table.c maps codes by number. */
static void test_schema_codes_and_dtypes_are_those_of_base_h(void)
{
    CHECK_INT(VOXELD__V1__CODE__INVALID_ARGUMENT, VXD_INVALID_ARGUMENT);
    CHECK_INT(VOXELD__V1__CODE__RESOURCE_EXHAUSTED, VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(VOXELD__V1__CODE__UNAUTHENTICATED, VXD_UNAUTHENTICATED);
    CHECK_INT(voxeld__v1__code__descriptor.n_values, VXD_UNAUTHENTICATED + 1);
    CHECK_INT(VOXELD__V1__DTYPE__INT8, VXD_INT8);
    CHECK_INT(VOXELD__V1__DTYPE__FLOAT64, VXD_FLOAT64);
    CHECK_INT(VOXELD__V1__DTYPE__BFLOAT16, VXD_BFLOAT16);
    CHECK_INT(voxeld__v1__dtype__descriptor.n_values, VXD_BFLOAT16 + 1);
}

/* A method's reply stands at its request's number. */
static void test_schema_request_and_response_methods_have_equal_numbers(void)
{
    const ProtobufCMessageDescriptor *request = &voxeld__v1__request__descriptor;

    CHECK_INT(request->n_fields, voxeld__v1__response__descriptor.n_fields);
    for (unsigned i = 0; i < request->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &request->fields[i];
        const ProtobufCFieldDescriptor *reply = protobuf_c_message_descriptor_get_field(
            &voxeld__v1__response__descriptor, field->id);

        REQUIRE(reply != NULL);
        CHECK_STR(reply->name, field->name);
        CHECK(field->id == 1 || field->id >= 10);
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_schema_any_message_is_not_recursive),
    VXD_TEST(test_schema_codes_and_dtypes_are_those_of_base_h),
    VXD_TEST(test_schema_request_and_response_methods_have_equal_numbers),
};

VXD_TEST_MAIN(tests)
