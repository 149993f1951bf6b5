// SPDX-License-Identifier: Apache-2.0
/* The Voxelize method from message to message: every check by table, and results small
 * enough to be worked out by hand. Numbers against an oracle: tests/unit/gpu/voxel/voxelize_test.c. */
#include "tests/support/test.h"

#include <math.h>

#include "proto/wire/wire.h"
#include "server/method_table.h"
#include "tests/support/server/server_checks.h"
#include "tests/support/server/server_helpers.h"
#include "voxeld/v1/voxelize.pb-c.h"

VXD_TEST_HELPERS

/* Parts of a request in JSON. A point at (0, 0, 0) in base64. */
#define ORIGIN_POINT "AAAAAAAAAAAAAAAA"
#define XYZ                                                                              \
    "{\"name\":\"x\",\"dtype\":\"FLOAT32\"},"                                            \
    "{\"name\":\"y\",\"offset\":4,\"dtype\":\"FLOAT32\"},"                               \
    "{\"name\":\"z\",\"offset\":8,\"dtype\":\"FLOAT32\"}"
#define CLOUD_WITH(more)                                                                 \
    "{\"fields\":[" XYZ "],\"pointStep\":12,\"data\":\"" ORIGIN_POINT "\"" more "}"
#define CLOUD CLOUD_WITH("")
#define SIZE "\"size\":{\"x\":1,\"y\":1,\"z\":1}"
#define FIELDS_CLOUD(fields)                                                             \
    "{\"clouds\":[{\"fields\":[" fields "],\"pointStep\":12}]," SIZE "}"
#define RANGE_OF(low, high)                                                              \
    "\"range\":{\"low\":{\"x\":" low ",\"y\":0,\"z\":0},"                                \
    "\"high\":{\"x\":" high ",\"y\":4,\"z\":4}}"
#define WITH(more) "{\"clouds\":[" CLOUD "]," SIZE "," more "}"
#define WITH_CLOUD(more) "{\"clouds\":[" CLOUD_WITH("," more) "]," SIZE "}"

static const struct {
    const char *json;
    const char *field;
    const char *message;
} faults[] = {
    {"{" SIZE "}", "clouds", "has 0 entries, it must have 1 to 1024"},
    {"{\"clouds\":[" CLOUD "]}", "size", "is required"},
    {"{\"clouds\":[" CLOUD "],\"size\":{\"x\":0,\"y\":1,\"z\":1}}", "size.x", "is 0"},
    {"{\"clouds\":[" CLOUD "],\"size\":{\"x\":1,\"y\":-1,\"z\":1}}", "size.y", "is -1"},
    {"{\"clouds\":[" CLOUD "],\"size\":{\"x\":1,\"y\":1,\"z\":\"NaN\"}}", "size.z",
     "nan"},
    {"{\"clouds\":[" CLOUD "],\"size\":{\"x\":1e-60,\"y\":1,\"z\":1}}", "size.x",
     "1e-60"},
    {"{\"clouds\":[" CLOUD "],\"size\":{\"x\":1e60,\"y\":1,\"z\":1}}", "size.x", "1e+60"},
    {WITH("\"range\":{\"low\":{\"x\":0}}"), "range.high", "is missing"},
    {WITH("\"range\":{\"high\":{\"x\":0}}"), "range.low", "is missing"},
    {WITH(RANGE_OF("\"-Infinity\"", "4")), "range.low.x", "-inf"},
    {WITH(RANGE_OF("4", "4")), "range.high.x", "above the low corner's 4"},
    {WITH(RANGE_OF("0", "9e6")), "size", "9e+06 cells"},
    {WITH("\"rule\":\"SPCONV\""), "range", "is required by the rule SPCONV"},
    {WITH("\"origin\":{\"x\":\"Infinity\"}"), "origin", "not finite"},
    {WITH("\"reduce\":[0]"), "reduce[0]", "is 0"},
    {WITH("\"outputs\":[\"OUTPUT_POINTS\"]"), "outputs[0]",
     "needs features, max_points (0)"},
    {WITH("\"maxPoints\":65537"), "max_points", "is 65537, it must be 0 to 65536"},
    {WITH("\"noFeatures\":true,\"features\":[\"x\"]"), "no_features",
     "features are asked"},
    {WITH("\"noFeatures\":true,\"reduce\":[1]"), "no_features", "reductions are asked"},
    {WITH("\"features\":[\"x\",\"ring\"]"), "features[1]",
     "clouds[0] has no field \"ring\""},
    {WITH_CLOUD(
         "\"frameId\":\"0123456789012345678901234567890123456789012345678901234567890"
         "123456789012345678901234567890123456789012345678901234567890123456789012345"
         "678901234567890123456789012345678901234567890123456789012345678901234567890"
         "1234567890123456789012345678901234567890123456789\""),
     "clouds[0].frame_id", "at most 255"},
    {WITH_CLOUD("\"TMapSensor\":{\"rotation\":{\"w\":1.1}}"),
     "clouds[0].T_map_sensor.rotation", "has norm 1.1"},
    {WITH_CLOUD("\"TMapSensor\":{\"rotation\":{\"w\":\"NaN\"}}"),
     "clouds[0].T_map_sensor.rotation", "norm"},
    {WITH_CLOUD("\"TMapSensor\":{\"translation\":{\"y\":\"Infinity\"}}"),
     "clouds[0].T_map_sensor.translation", "not finite"},
    {WITH_CLOUD("\"sweeps\":[{\"dtS\":\"NaN\"}]"), "clouds[0].sweeps[0].dt_s",
     "not finite"},
    {WITH_CLOUD("\"sweeps\":[{},{\"data\":\"AAAA\"}]"), "clouds[0].sweeps[1].data",
     "has 3 bytes, no multiple of point_step, 12"},
    {WITH_CLOUD("\"sweeps\":[{\"pointStep\":16}]"), "clouds[0].sweeps[0].point_step",
     "the cloud's is 12"},
    {WITH_CLOUD("\"sweeps\":[{\"fields\":[" XYZ "]}]"), "clouds[0].sweeps[0].point_step",
     "is 0, it must be 1 to 65535"},
    {WITH_CLOUD("\"sweeps\":[{\"TCloudSweep\":{\"rotation\":{\"x\":2}}}]"),
     "clouds[0].sweeps[0].T_cloud_sweep.rotation", "norm 2"},
    {"{\"clouds\":[{\"fields\":[" XYZ "]}]," SIZE "}", "clouds[0].point_step", "is 0"},
    {"{\"clouds\":[{\"fields\":[" XYZ "],\"pointStep\":65536}]," SIZE "}",
     "clouds[0].point_step", "65536, it must be 1 to 65535"},
    {"{\"clouds\":[" CLOUD ",{\"fields\":[" XYZ
     "],\"pointStep\":12,\"data\":\"AAAA\"}]," SIZE "}",
     "clouds[1].data", "has 3 bytes"},
    {FIELDS_CLOUD("{\"name\":\"\",\"dtype\":1}"), "clouds[0].fields[0].name",
     "has 0 bytes"},
    {FIELDS_CLOUD(XYZ ",{\"name\":\"a\",\"offset\":8}"), "clouds[0].fields[3].dtype",
     "is 0, known are 1 to 12"},
    {FIELDS_CLOUD(XYZ ",{\"name\":\"a\",\"dtype\":13}"), "clouds[0].fields[3].dtype",
     "is 13"},
    {FIELDS_CLOUD(XYZ ",{\"name\":\"a\",\"offset\":9,\"dtype\":\"FLOAT32\"}"),
     "clouds[0].fields[3].offset", "\"a\" would end at byte 13, point_step is 12"},
    {FIELDS_CLOUD(XYZ ",{\"name\":\"a\",\"offset\":4294967295,\"dtype\":\"FLOAT64\"}"),
     "clouds[0].fields[3].offset", "point_step is 12"},
    {FIELDS_CLOUD(XYZ ",{\"name\":\"a\",\"dtype\":\"UINT8\",\"count\":4294967295}"),
     "clouds[0].fields[3].offset", "point_step is 12"},
    {FIELDS_CLOUD(XYZ ",{\"name\":\"a\",\"dtype\":1,\"scale\":\"NaN\"}"),
     "clouds[0].fields[3].scale", "not finite"},
    {FIELDS_CLOUD(XYZ ",{\"name\":\"a\",\"dtype\":1,\"bias\":\"Infinity\"}"),
     "clouds[0].fields[3].bias", "not finite"},
    {FIELDS_CLOUD(XYZ ",{\"name\":\"x\",\"dtype\":1}"), "clouds[0].fields[3].name",
     "\"x\" is also the name of fields[0]"},
    {FIELDS_CLOUD("{\"name\":\"x\",\"dtype\":1},{\"name\":\"y\",\"dtype\":1}"),
     "clouds[0].fields", "no field \"z\""},
    {FIELDS_CLOUD(
         "{\"name\":\"x\",\"dtype\":1,\"count\":3},{\"name\":\"y\",\"dtype\":1}"),
     "clouds[0].fields", "one element in the field \"x\""},
};

static void test_voxelize_wrong_field_is_refused_with_path_and_limit(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});

    REQUIRE(server != NULL);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct call call;

        call_begin(&call);
        call_json(&call, server, vxd_method_by_name(vxd_method_table(), "voxelize"), NULL,
                  faults[i].json);
        if (call_wait(&call) != VXD_INVALID_ARGUMENT ||
            strcmp(call.err.field, faults[i].field) != 0 ||
            strstr(call.err.message, faults[i].message) == NULL) {
            (void)fprintf(stderr, "%s\n  gave %d, \"%s\": %s\n", faults[i].json,
                          (int)call.err.code, call.err.field, call.err.message);
            CHECK(!"the fault is named");
        }
        call_finish(&call);
    }
    server_finish(server);
}

/* Numbers that the enums of a newer client may have: JSON refuses them by itself, protobuf
 * carries them. Appended to a good message. */
static void test_voxelize_unknown_enum_is_refused_with_the_known_names(void)
{
    static const struct {
        uint8_t bytes[3];
        size_t n_bytes;
        const char *field;
        const char *message;
    } cases[] = {
        {{4 << 3, 7},
         2,
         "rule",
         "is 7; known: VOXEL_RULE_UNSPECIFIED, SPCONV, MINKOWSKI"},
        {{5 << 3, 9}, 2, "order", "is 9; known: MORTON, FIRST_POINT"},
        {{(8 << 3) | 2, 1, 9},
         3,
         "reduce[0]",
         "is 9; known: REDUCE_UNSPECIFIED, REDUCE_MEAN"},
        {{(10 << 3) | 2, 1, 6}, 3, "outputs[0]", "is 6; known: VOXEL_OUTPUT_UNSPECIFIED"},
    };
    struct vxd_server *server = server_start(&(struct server_setup){0});
    const char *json = "{\"clouds\":[" CLOUD "]," SIZE "}";
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    struct vxd_err err = {0};
    uint8_t packed[512];
    size_t n;

    REQUIRE(server != NULL);
    REQUIRE(vxd_decoder_create(1 << 20, NULL, &decoder, &err) == VXD_OK);
    REQUIRE(vxd_json_read(decoder, &voxeld__v1__voxelize_request__descriptor, json,
                          strlen(json), &message, &err) == VXD_OK);
    REQUIRE(protobuf_c_message_get_packed_size(message) < sizeof packed - 3);
    n = protobuf_c_message_pack(message, packed);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct vxd_body body = {.bytes = packed, .n_bytes = n + cases[i].n_bytes};
        struct call call;

        memcpy(packed + n, cases[i].bytes, cases[i].n_bytes);
        call_begin(&call);
        call_send(&call, server, vxd_method_by_name(vxd_method_table(), "voxelize"), NULL,
                  &body);
        CHECK_INT(call_wait(&call), VXD_INVALID_ARGUMENT);
        CHECK_STR(call.err.field, cases[i].field);
        CHECK(strstr(call.err.message, cases[i].message) != NULL);
        call_finish(&call);
    }
    vxd_decoder_destroy(decoder);
    server_finish(server);
}

static void test_voxelize_beyond_the_device_budget_is_resource_exhausted(void)
{
    struct vxd_server *server =
        server_start(&(struct server_setup){.device_bytes = 16 << 20});
    static Voxeld__V1__Field axes[3] = {VOXELD__V1__FIELD__INIT, VOXELD__V1__FIELD__INIT,
                                        VOXELD__V1__FIELD__INIT};
    Voxeld__V1__Field *fields[3] = {&axes[0], &axes[1], &axes[2]};
    Voxeld__V1__Cloud cloud = VOXELD__V1__CLOUD__INIT;
    Voxeld__V1__Cloud *clouds[1] = {&cloud};
    Voxeld__V1__Vec3 size = {PROTOBUF_C_MESSAGE_INIT(&voxeld__v1__vec3__descriptor), 1, 1,
                             1};
    Voxeld__V1__VoxelizeRequest input = VOXELD__V1__VOXELIZE_REQUEST__INIT;
    uint8_t *packed;
    struct vxd_body body = {0};
    struct call call;

    REQUIRE(server != NULL);
    for (int i = 0; i < 3; i++) {
        axes[i].name = i == 0 ? "x" : i == 1 ? "y" : "z";
        axes[i].dtype = VOXELD__V1__DTYPE__INT8;
    }
    cloud.n_fields = 3;
    cloud.fields = fields;
    cloud.point_step = 1;
    cloud.data.len = 2 << 20;
    cloud.data.data = calloc(1, cloud.data.len);
    input.n_clouds = 1;
    input.clouds = clouds;
    input.size = &size;
    body.n_bytes = voxeld__v1__voxelize_request__get_packed_size(&input);
    packed = malloc(body.n_bytes);
    REQUIRE(packed != NULL && cloud.data.data != NULL);
    body.bytes = packed;
    (void)voxeld__v1__voxelize_request__pack(&input, packed);
    call_begin(&call);
    call_send(&call, server, vxd_method_by_name(vxd_method_table(), "voxelize"), NULL,
              &body);
    CHECK_INT(call_wait(&call), VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(call.err.message, "its budget is 16777216") != NULL);
    call_finish(&call);
    free(packed);
    free(cloud.data.data);
    server_finish(server);
}

/* x, y, z and intensity as float32. */
static const float scan[][4] = {
    {0.5f, 0.5f, 0.5f, 1}, {2.5f, 0.5f, 0.5f, 10}, {0.25f, 0.75f, 0.5f, 3},
    {NAN, 0, 0, 100},      {-0.5f, 0.5f, 0.5f, 7}, {5e6f, 0, 0, 100},
};

/* A file body in KITTI's layout, whose query says the rest. */
static Voxeld__V1__VoxelizeResponse *send_file(struct vxd_server *server,
                                               struct call *call,
                                               const struct vxd_query_item *query,
                                               size_t n_query, const char *format)
{
    const struct vxd_body body = {.kind = VXD_BODY_FILE,
                                  .bytes = (const uint8_t *)scan,
                                  .n_bytes = sizeof scan,
                                  .format = format,
                                  .query = query,
                                  .n_query = n_query};

    call_begin(call);
    call_send(call, server, vxd_method_by_name(vxd_method_table(), "voxelize"), NULL,
              &body);
    return call_wait(call) == VXD_OK
               ? voxeld__v1__voxelize_response__unpack(NULL, call->n_packed, call->packed)
               : NULL;
}

static void check_int32s(const Voxeld__V1__Tensor *tensor, const int32_t *expected,
                         size_t n)
{
    REQUIRE(tensor != NULL);
    REQUIRE(tensor->data.len == n * sizeof *expected);
    CHECK(memcmp(tensor->data.data, expected, tensor->data.len) == 0);
}

static void check_floats(const Voxeld__V1__Tensor *tensor, const float *expected,
                         size_t n)
{
    REQUIRE(tensor != NULL);
    REQUIRE(tensor->data.len == n * sizeof *expected);
    CHECK_INT(tensor->dtype, VOXELD__V1__DTYPE__FLOAT32);
    CHECK(memcmp(tensor->data.data, expected, tensor->data.len) == 0);
}

static void test_voxelize_file_gives_the_voxels_worked_out_by_hand(void)
{
    static const struct vxd_query_item query[] = {
        {"size", "1"},
        {"order", "first_point"},
        {"features", "intensity,x,dt"},
        {"reduce", "mean,max,sum"},
        {"outputs", "coords,counts,inverse,first_index"},
        {"frame_id", "lidar"},
        {"stamp_ns", "-5"},
        {"origin", "-1,0,0"},
    };
    static const int32_t coords[] = {0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0};
    static const int32_t counts[] = {2, 1, 1};
    static const int32_t inverse[] = {0, 1, 0, -1, 2, -1};
    static const int32_t first[] = {0, 1, 4};
    static const float mean[] = {2, 1.375f, 0, 10, 3.5f, 0, 7, 0.5f, 0};
    static const float max[] = {3, 1.5f, 0, 10, 3.5f, 0, 7, 0.5f, 0};
    struct vxd_server *server = server_start(&(struct server_setup){0});
    Voxeld__V1__VoxelizeResponse *reply;
    struct call call;

    REQUIRE(server != NULL);
    reply = send_file(server, &call, query, sizeof query / sizeof query[0], "kitti");
    CHECK_STR(call.err.message, "");
    REQUIRE(reply != NULL);
    CHECK_INT(reply->n_voxels, 3);
    check_int32s(reply->coords, coords, 12);
    check_int32s(reply->counts, counts, 3);
    check_int32s(reply->inverse, inverse, 6);
    check_int32s(reply->first_index, first, 3);
    check_floats(reply->mean, mean, 9);
    check_floats(reply->max, max, 9);
    CHECK(reply->min == NULL && reply->first == NULL && reply->points == NULL);
    CHECK_INT(reply->mean->n_shape, 2);
    CHECK_INT(reply->mean->shape[1], 3);
    CHECK_INT(reply->n_items, 1);
    CHECK_INT(reply->items[0]->n_points, 6);
    CHECK_INT(reply->items[0]->n_used, 4);
    CHECK_INT(reply->items[0]->n_non_finite, 1);
    CHECK_INT(reply->items[0]->n_out_of_range, 1);
    CHECK_INT(reply->items[0]->stamp_ns, -5);
    CHECK_STR(reply->items[0]->frame_id, "lidar");
    CHECK_INT(reply->n_features, 3);
    CHECK_STR(reply->features[0], "intensity");
    CHECK_INT(reply->rule, VOXELD__V1__VOXEL_RULE__MINKOWSKI);
    CHECK_STR(reply->axes, "xyz");
    CHECK(reply->origin->x == -1 && reply->size->y == 1 && reply->low->z == 0);
    CHECK(reply->engine_ms > 0);
    voxeld__v1__voxelize_response__free_unpacked(reply, NULL);
    call_finish(&call);
    server_finish(server);
}

static void test_voxelize_file_with_range_gives_grid_and_hard_voxels(void)
{
    static const struct vxd_query_item query[] = {
        {"size", "1,1,1"},   {"range", "0,0,0,4,2,1"}, {"outputs", "points,coords"},
        {"max_points", "2"}, {"max_voxels", "1"},      {"features", "intensity"},
        {"rule", "spconv"},
    };
    static const int32_t coords[] = {0, 0, 0, 0};
    static const float points[] = {1, 3};
    struct vxd_server *server = server_start(&(struct server_setup){0});
    Voxeld__V1__VoxelizeResponse *reply;
    struct call call;

    REQUIRE(server != NULL);
    reply = send_file(server, &call, query, sizeof query / sizeof query[0], "kitti");
    CHECK_STR(call.err.message, "");
    REQUIRE(reply != NULL);
    CHECK_INT(reply->n_voxels, 1);
    check_int32s(reply->coords, coords, 4);
    check_floats(reply->points, points, 2);
    CHECK_INT(reply->items[0]->n_over_max_voxels, 1);
    CHECK_INT(reply->n_grid, 3);
    CHECK(reply->grid[0] == 4 && reply->grid[1] == 2 && reply->grid[2] == 1);
    CHECK_INT(reply->rule, VOXELD__V1__VOXEL_RULE__SPCONV);
    voxeld__v1__voxelize_response__free_unpacked(reply, NULL);
    call_finish(&call);
    server_finish(server);
}

static void test_voxelize_query_wrong_is_refused_by_key(void)
{
    static const struct {
        struct vxd_query_item item;
        const char *message;
    } cases[] = {
        {{"sice", "1"}, "is no key of the query"},
        {{"size", "1,2"}, "one number or three"},
        {{"size", "1m"}, "one number or three"},
        {{"size", ""}, "one number or three"},
        {{"range", "1,2,3,4,5"}, "six numbers"},
        {{"range", "1,2,3,4,5,6,7"}, "six numbers"},
        {{"rule", "SPCONV"}, "spconv, minkowski or double"},
        {{"order", "z"}, "morton or first_point"},
        {{"reduce", "mean,"}, "a comma list"},
        {{"reduce", "median"}, "a comma list"},
        {{"outputs", "all"}, "a comma list"},
        {{"features", "x,,y"}, "a comma list"},
        {{"max_points", "-1"}, "a whole number"},
        {{"max_voxels", "4294967296"}, "a whole number"},
        {{"no_features", "yes"}, "true or false"},
        {{"origin", "1"}, "three numbers"},
        {{"stamp_ns", "9223372036854775808"}, "nanoseconds"},
        {{"frame_id", "lidar\xff"}, "UTF-8"},
    };
    struct vxd_server *server = server_start(&(struct server_setup){0});
    struct call call;

    REQUIRE(server != NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(send_file(server, &call, &cases[i].item, 1, "kitti") == NULL);
        CHECK_INT(call.err.code, VXD_INVALID_ARGUMENT);
        CHECK_STR(call.err.field, cases[i].item.key);
        CHECK(strstr(call.err.message, cases[i].message) != NULL);
        call_finish(&call);
    }
    {
        static const struct vxd_query_item twice[] = {{"size", "1"}, {"size", "2"}};

        CHECK(send_file(server, &call, twice, 2, "kitti") == NULL);
        CHECK_STR(call.err.message, "is given twice");
        call_finish(&call);
        CHECK(send_file(server, &call, twice, 1, "tiff") == NULL);
        CHECK_INT(call.err.code, VXD_INVALID_ARGUMENT);
        call_finish(&call);
    }
    server_finish(server);
}

static void test_voxelize_no_points_gives_no_voxels(void)
{
    struct vxd_server *server = server_start(&(struct server_setup){0});
    Voxeld__V1__VoxelizeResponse *reply;
    struct call call;

    REQUIRE(server != NULL);
    call_begin(&call);
    call_json(&call, server, vxd_method_by_name(vxd_method_table(), "voxelize"), NULL,
              "{\"clouds\":[{\"fields\":[" XYZ "],\"pointStep\":12}," CLOUD
              ",{\"fields\":[" XYZ "],\"pointStep\":12}]," SIZE "}");
    REQUIRE(call_wait(&call) == VXD_OK);
    reply = voxeld__v1__voxelize_response__unpack(NULL, call.n_packed, call.packed);
    REQUIRE(reply != NULL);
    CHECK_INT(reply->n_voxels, 1);
    CHECK_INT(reply->n_items, 3);
    CHECK_INT(reply->items[2]->first_voxel, 1);
    CHECK_INT(reply->items[2]->n_points, 0);
    voxeld__v1__voxelize_response__free_unpacked(reply, NULL);
    call_finish(&call);
    call_begin(&call);
    call_json(&call, server, vxd_method_by_name(vxd_method_table(), "voxelize"), NULL,
              "{\"clouds\":[{\"fields\":[" XYZ "],\"pointStep\":12}]," SIZE "}");
    REQUIRE(call_wait(&call) == VXD_OK);
    reply = voxeld__v1__voxelize_response__unpack(NULL, call.n_packed, call.packed);
    REQUIRE(reply != NULL);
    CHECK_INT(reply->n_voxels, 0);
    CHECK_INT(reply->coords->n_shape, 2);
    CHECK_INT(reply->coords->shape[0], 0);
    CHECK_INT(reply->coords->data.len, 0);
    voxeld__v1__voxelize_response__free_unpacked(reply, NULL);
    call_finish(&call);
    server_finish(server);
}

/* A quarter turn about z and a shift: sensor (0,0,0) of the sweep at (10, 0, 0) of the
 * cloud's sensor is at (100, 10, 0) of the map. */
static void test_voxelize_sweep_is_moved_by_both_poses(void)
{
    static const int32_t coords[] = {0, 100, 0, 0, 0, 100, 10, 0};
    static const float dt[] = {0, 0.5f};
    struct vxd_server *server = server_start(&(struct server_setup){0});
    Voxeld__V1__VoxelizeResponse *reply;
    struct call call;

    REQUIRE(server != NULL);
    call_begin(&call);
    call_json(&call, server, vxd_method_by_name(vxd_method_table(), "voxelize"), NULL,
              "{\"clouds\":[" CLOUD_WITH(
                  ",\"TMapSensor\":{\"translation\":{\"x\":100.5,\"y\":"
                  "0.5,\"z\":0.5},"
                  "\"rotation\":{\"z\":0.70710678118654752,\"w\":0."
                  "70710678118654752}},"
                  "\"sweeps\":[{\"data\":\"" ORIGIN_POINT
                  "\",\"dtS\":0.5,\"TCloudSweep\":{\"translation\":{"
                  "\"x\":10}}}]") "]," SIZE ",\"features\":[\"dt\"],\"order\":"
                                  "\"FIRST_POINT\"}");
    CHECK_INT(call_wait(&call), VXD_OK);
    CHECK_STR(call.err.message, "");
    reply = voxeld__v1__voxelize_response__unpack(NULL, call.n_packed, call.packed);
    REQUIRE(reply != NULL);
    check_int32s(reply->coords, coords, 8);
    check_floats(reply->mean, dt, 2);
    voxeld__v1__voxelize_response__free_unpacked(reply, NULL);
    call_finish(&call);
    server_finish(server);
}

/* Names are compared with each other: their number is bounded over all sources. */
static void test_voxelize_too_many_fields_in_all_are_refused(void)
{
    enum {
        N_FIELDS = 256,
        N_SWEEPS = 256
    };
    static Voxeld__V1__Field fields[N_FIELDS];
    static char names[N_FIELDS][8];
    static Voxeld__V1__Field *field_list[N_FIELDS];
    static Voxeld__V1__Sweep sweeps[N_SWEEPS];
    static Voxeld__V1__Sweep *sweep_list[N_SWEEPS];
    struct vxd_server *server = server_start(&(struct server_setup){0});
    Voxeld__V1__Cloud cloud = VOXELD__V1__CLOUD__INIT;
    Voxeld__V1__Cloud *clouds[1] = {&cloud};
    Voxeld__V1__Vec3 size = {PROTOBUF_C_MESSAGE_INIT(&voxeld__v1__vec3__descriptor), 1, 1,
                             1};
    Voxeld__V1__VoxelizeRequest input = VOXELD__V1__VOXELIZE_REQUEST__INIT;
    char *channels[1] = {names[0]};
    struct vxd_body body = {0};
    uint8_t *packed;

    REQUIRE(server != NULL);
    for (int i = 0; i < N_FIELDS; i++) {
        voxeld__v1__field__init(&fields[i]);
        (void)snprintf(names[i], sizeof names[i], i < 3 ? "%c" : "f%d",
                       i < 3 ? 'x' + i : i);
        fields[i].name = names[i];
        fields[i].dtype = VOXELD__V1__DTYPE__INT8;
        field_list[i] = &fields[i];
    }
    for (int i = 0; i < N_SWEEPS; i++) {
        voxeld__v1__sweep__init(&sweeps[i]);
        sweeps[i].n_fields = N_FIELDS;
        sweeps[i].fields = field_list;
        sweeps[i].point_step = 1;
        sweep_list[i] = &sweeps[i];
    }
    cloud.n_fields = 3;
    cloud.fields = field_list;
    /* 64 points of many bytes: the decoder's budget goes by the body's size. */
    cloud.point_step = 65535;
    cloud.data.len = (size_t)64 * 65535;
    cloud.data.data = calloc(1, cloud.data.len);
    REQUIRE(cloud.data.data != NULL);
    cloud.sweeps = sweep_list;
    input.n_clouds = 1;
    input.clouds = clouds;
    input.size = &size;
    input.n_features = 1;
    input.features = channels;
    for (cloud.n_sweeps = N_SWEEPS - 1; cloud.n_sweeps <= N_SWEEPS; cloud.n_sweeps++) {
        struct call call;

        body.n_bytes = voxeld__v1__voxelize_request__get_packed_size(&input);
        packed = malloc(body.n_bytes);
        REQUIRE(packed != NULL);
        body.bytes = packed;
        (void)voxeld__v1__voxelize_request__pack(&input, packed);
        call_begin(&call);
        call_send(&call, server, vxd_method_by_name(vxd_method_table(), "voxelize"), NULL,
                  &body);
        CHECK_INT(call_wait(&call),
                  cloud.n_sweeps < N_SWEEPS ? VXD_OK : VXD_INVALID_ARGUMENT);
        if (cloud.n_sweeps == N_SWEEPS) {
            CHECK(strstr(call.err.message, "more than 65536 fields") != NULL);
        }
        call_finish(&call);
        free(packed);
    }
    free(cloud.data.data);
    server_finish(server);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_voxelize_too_many_fields_in_all_are_refused),
    VXD_TEST(test_voxelize_wrong_field_is_refused_with_path_and_limit),
    VXD_TEST(test_voxelize_unknown_enum_is_refused_with_the_known_names),
    VXD_TEST(test_voxelize_beyond_the_device_budget_is_resource_exhausted),
    VXD_TEST(test_voxelize_file_gives_the_voxels_worked_out_by_hand),
    VXD_TEST(test_voxelize_file_with_range_gives_grid_and_hard_voxels),
    VXD_TEST(test_voxelize_query_wrong_is_refused_by_key),
    VXD_TEST(test_voxelize_no_points_gives_no_voxels),
    VXD_TEST(test_voxelize_sweep_is_moved_by_both_poses),
};

VXD_TEST_MAIN(tests)
