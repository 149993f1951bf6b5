// SPDX-License-Identifier: Apache-2.0
/* The OpenAPI document, and safetensors made from messages, read back with jansson. */
#include <jansson.h>

#include "proto/wire/wire.h"
#include "tests/support/test.h"
#include "voxeld/v1/rpc.pb-c.h"

static json_t *read_document(void)
{
    return json_loadb(vxd_openapi_json, vxd_openapi_json_bytes, JSON_REJECT_DUPLICATES,
                      NULL);
}

/* "a/b/c" from object to object. */
static const json_t *at(const json_t *json, const char *path)
{
    char key[64];

    while (json != NULL && *path != '\0') {
        size_t n = strcspn(path, "|");

        (void)snprintf(key, sizeof key, "%.*s", (int)n, path);
        json = json_object_get(json, key);
        path += n + (path[n] == '|');
    }
    return json;
}

static const char *text_at(const json_t *json, const char *path)
{
    const char *text = json_string_value(at(json, path));

    return text != NULL ? text : "(none)";
}

/* Every "$ref" names something that is there. Calls itself as deep as the document. */
static void check_refs(const json_t *document, const json_t *json)
{
    const char *ref = json_string_value(json_object_get(json, "$ref"));
    const char *key;
    json_t *value;

    if (ref != NULL) {
        const char *name = strrchr(ref, '/') + 1;
        char path[128];

        (void)snprintf(path, sizeof path, "components|%s|%s",
                       strstr(ref, "/parameters/") != NULL  ? "parameters"
                       : strstr(ref, "/responses/") != NULL ? "responses"
                                                            : "schemas",
                       name);
        if (at(document, path) == NULL) {
            (void)fprintf(stderr, "dangling %s\n", ref);
            CHECK(at(document, path) != NULL);
        }
    }
    json_object_foreach((json_t *)json, key, value)
    {
        check_refs(document, value);
    }
    for (size_t i = 0; i < json_array_size(json); i++) {
        check_refs(document, json_array_get(json, i));
    }
}

static void test_openapi_methods_and_schemas_are_complete(void)
{
    json_t *d = read_document();

    REQUIRE(d != NULL);
    CHECK_STR(text_at(d, "openapi"), "3.0.3");
    CHECK_STR(text_at(d, "info|version"), "0.3.0");
    CHECK_STR(text_at(d, "paths|/v1/voxelize|post|summary"),
              "Point clouds to unique voxels with reduced features.");
    CHECK_STR(text_at(d, "paths|/v1/voxelize|post|x-voxeld-scope"), "read");
    CHECK_STR(text_at(d, "paths|/v1/voxelize|post|requestBody|content|application/json|"
                         "schema|$ref"),
              "#/components/schemas/VoxelizeRequest");
    CHECK_STR(text_at(d, "paths|/v1/status|post|responses|200|content|application/json|"
                         "schema|$ref"),
              "#/components/schemas/StatusResponse");
    CHECK_STR(text_at(d, "components|schemas|Cloud|properties|stampNs|format"), "int64");
    CHECK_STR(text_at(d, "components|schemas|Cloud|properties|stampNs|type"), "string");
    CHECK_STR(text_at(d, "components|schemas|Cloud|properties|TMapSensor|$ref"),
              "#/components/schemas/Pose");
    CHECK_STR(text_at(d, "components|schemas|Cloud|properties|fields|items|$ref"),
              "#/components/schemas/Field");
    CHECK_STR(text_at(d, "components|schemas|Cloud|properties|data|format"), "byte");
    CHECK_STR(text_at(d, "components|securitySchemes|bearer|scheme"), "bearer");
    CHECK(at(d, "components|schemas|Tensor|description") != NULL);
    CHECK(at(d, "components|schemas|Quaternion") != NULL);
    CHECK_INT(json_array_size(at(d, "components|schemas|DType|enum")), 13);
    CHECK_INT(json_array_size(at(d, "components|schemas|Code|enum")), 17);
    CHECK_INT(json_array_size(at(d, "components|schemas|Error|required")), 4);
    CHECK_STR(text_at(d, "paths|/v1/maps/{name}|get|operationId"), "map_get_view");
    CHECK(at(d, "paths|/metrics|get") != NULL);
    CHECK_STR(text_at(d, "paths|/v1/map_insert|post|requestBody|content|application/json|"
                         "example|name"),
              "seen");
    CHECK_STR(text_at(d, "components|schemas|MapLattice|properties|size|x-voxeld-unit"),
              "m");
    check_refs(d, d);
    json_decref(d);
}

struct reply {
    Voxeld__V1__VoxelizeResponse message;
    Voxeld__V1__Tensor coords;
    Voxeld__V1__Tensor mean;
    Voxeld__V1__Vec3 size;
    int64_t coords_shape[2];
    int64_t mean_shape[2];
    char *features[2];
    int32_t coords_data[8];
    float mean_data[4];
};

/* Two voxels with two channels. */
static void make_reply(struct reply *r)
{
    voxeld__v1__voxelize_response__init(&r->message);
    voxeld__v1__tensor__init(&r->coords);
    voxeld__v1__tensor__init(&r->mean);
    voxeld__v1__vec3__init(&r->size);
    for (int i = 0; i < 8; i++) {
        r->coords_data[i] = i - 3;
    }
    for (int i = 0; i < 4; i++) {
        r->mean_data[i] = (float)i / 4;
    }
    r->coords_shape[0] = r->mean_shape[0] = 2;
    r->coords_shape[1] = 4;
    r->mean_shape[1] = 2;
    r->coords.dtype = VOXELD__V1__DTYPE__INT32;
    r->coords.n_shape = 2;
    r->coords.shape = r->coords_shape;
    r->coords.data.data = (uint8_t *)r->coords_data;
    r->coords.data.len = sizeof r->coords_data;
    r->mean.dtype = VOXELD__V1__DTYPE__FLOAT32;
    r->mean.n_shape = 2;
    r->mean.shape = r->mean_shape;
    r->mean.data.data = (uint8_t *)r->mean_data;
    r->mean.data.len = sizeof r->mean_data;
    r->size.x = 0.5;
    r->features[0] = (char *)"x";
    r->features[1] = (char *)"i\"";
    r->message.n_voxels = 2;
    r->message.coords = &r->coords;
    r->message.mean = &r->mean;
    r->message.size = &r->size;
    r->message.features = r->features;
    r->message.n_features = 2;
    r->message.rule = VOXELD__V1__VOXEL_RULE__MINKOWSKI;
    r->message.axes = (char *)"xyz";
    r->message.engine_ms = 0.25;
}

static void test_safetensors_reply_reads_back(void)
{
    struct reply r;
    uint8_t *file = NULL;
    size_t n = 0;
    uint64_t n_header = 0;
    json_t *h;

    make_reply(&r);
    REQUIRE(vxd_safetensors_write(&r.message.base, &file, &n, NULL) == VXD_OK);
    REQUIRE(n > 8);
    for (int i = 0; i < 8; i++) {
        n_header |= (uint64_t)file[i] << (8 * i);
    }
    CHECK_INT(n_header % 8, 0);
    REQUIRE(n == 8 + n_header + 32 + 16);
    h = json_loadb((char *)file + 8, n_header, JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(h != NULL);
    CHECK_INT(json_object_size(h), 3);
    CHECK_STR(text_at(h, "coords|dtype"), "I32");
    CHECK_STR(text_at(h, "mean|dtype"), "F32");
    CHECK_INT(json_integer_value(json_array_get(at(h, "coords|shape"), 1)), 4);
    CHECK_INT(json_integer_value(json_array_get(at(h, "coords|data_offsets"), 0)), 0);
    CHECK_INT(json_integer_value(json_array_get(at(h, "coords|data_offsets"), 1)), 32);
    CHECK_INT(json_integer_value(json_array_get(at(h, "mean|data_offsets"), 0)), 32);
    CHECK_INT(json_integer_value(json_array_get(at(h, "mean|data_offsets"), 1)), 48);
    CHECK_STR(text_at(h, "__metadata__|n_voxels"), "2");
    CHECK_STR(text_at(h, "__metadata__|axes"), "xyz");
    CHECK_STR(text_at(h, "__metadata__|rule"), "MINKOWSKI");
    CHECK_STR(text_at(h, "__metadata__|engine_ms"), "0.25");
    CHECK_STR(text_at(h, "__metadata__|size"), "{\"x\":0.5}");
    CHECK_STR(text_at(h, "__metadata__|features"), "[\"x\",\"i\\\"\"]");
    CHECK(at(h, "__metadata__|items") == NULL);
    CHECK(memcmp(file + 8 + n_header, r.coords_data, 32) == 0);
    CHECK(memcmp(file + 8 + n_header + 32, r.mean_data, 16) == 0);
    json_decref(h);
    free(file);
}

/* Tensors of elements with names are entries NAME.FIELD; what else the elements have is metadata. */
static void test_safetensors_of_named_elements_read_back(void)
{
    enum {
        N = 3
    };
    static char *const names[N] = {(char *)"bev", (char *)"labels", (char *)"vector"};
    Voxeld__V1__InferResponse message = VOXELD__V1__INFER_RESPONSE__INIT;
    Voxeld__V1__InferOutput outputs[N];
    Voxeld__V1__InferOutput *list[N];
    Voxeld__V1__Tensor values[N];
    Voxeld__V1__Tensor labels = VOXELD__V1__TENSOR__INIT;
    int64_t shapes[N];
    int64_t n_labels = 5;
    uint8_t data[N][3];
    uint8_t label_data[5] = {9, 8, 7, 6, 5};
    uint8_t expected[] = {0, 10, 11, 9, 8, 7, 6, 5, 20, 21, 22};
    uint64_t n_header = 0;
    uint8_t *file = NULL;
    size_t n = 0;
    json_t *h;

    for (int i = 0; i < N; i++) {
        voxeld__v1__infer_output__init(&outputs[i]);
        voxeld__v1__tensor__init(&values[i]);
        list[i] = &outputs[i];
        outputs[i].name = names[i];
        outputs[i].values = &values[i];
        shapes[i] = i + 1;
        values[i].dtype = VOXELD__V1__DTYPE__UINT8;
        values[i].n_shape = 1;
        values[i].shape = &shapes[i];
        values[i].data.data = data[i];
        values[i].data.len = (size_t)i + 1;
        for (int k = 0; k < 3; k++) {
            data[i][k] = (uint8_t)(10 * i + k);
        }
    }
    labels.dtype = VOXELD__V1__DTYPE__UINT8;
    labels.n_shape = 1;
    labels.shape = &n_labels;
    labels.data.data = label_data;
    labels.data.len = sizeof label_data;
    outputs[1].labels = &labels;
    message.outputs = list;
    message.n_outputs = N;
    REQUIRE(vxd_safetensors_write(&message.base, &file, &n, NULL) == VXD_OK);
    for (int i = 0; i < 8; i++) {
        n_header |= (uint64_t)file[i] << (8 * i);
    }
    REQUIRE(n == 8 + n_header + sizeof expected);
    h = json_loadb((char *)file + 8, n_header, JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(h != NULL);
    CHECK_INT(json_object_size(h), 5);
    for (int i = 0; i < N; i++) {
        char entry[64];

        (void)snprintf(entry, sizeof entry, "%s.values|shape", names[i]);
        CHECK_INT(json_integer_value(json_array_get(at(h, entry), 0)), i + 1);
    }
    CHECK_INT(json_integer_value(json_array_get(at(h, "bev.values|data_offsets"), 1)), 1);
    CHECK_INT(json_integer_value(json_array_get(at(h, "labels.labels|data_offsets"), 0)),
              3);
    CHECK_INT(json_integer_value(json_array_get(at(h, "vector.values|data_offsets"), 0)),
              8);
    CHECK(memcmp(file + 8 + n_header, expected, sizeof expected) == 0);
    json_decref(h);
    free(file);
}

static void test_safetensors_without_tensors_is_metadata_only(void)
{
    Voxeld__V1__ServerInfoResponse info = VOXELD__V1__SERVER_INFO_RESPONSE__INIT;
    uint8_t *file = NULL;
    size_t n = 0;

    REQUIRE(vxd_safetensors_write(&info.base, &file, &n, NULL) == VXD_OK);
    CHECK_INT(n % 8, 0);
    CHECK_INT(file[0] + 256 * file[1], n - 8);
    free(file);
}

static void test_safetensors_tensor_that_does_not_fit_is_refused_by_name(void)
{
    double values[] = {1, 2};
    struct reply r;
    uint8_t *file = NULL;
    size_t n = 0;
    struct vxd_err err = {0};

    make_reply(&r);
    r.mean_shape[0] = 3;
    CHECK_INT(vxd_safetensors_write(&r.message.base, &file, &n, &err),
              VXD_FAILED_PRECONDITION);
    CHECK_STR(err.field, "mean");
    make_reply(&r);
    r.coords.dtype = VOXELD__V1__DTYPE__DTYPE_UNSPECIFIED;
    CHECK_INT(vxd_safetensors_write(&r.message.base, &file, &n, &err),
              VXD_FAILED_PRECONDITION);
    CHECK_STR(err.field, "coords");
    make_reply(&r);
    r.mean.data.len = 0;
    r.mean.values = values;
    r.mean.n_values = 2;
    CHECK_INT(vxd_safetensors_write(&r.message.base, &file, &n, &err),
              VXD_FAILED_PRECONDITION);
    CHECK(strstr(err.message, "values") != NULL);
    CHECK(file == NULL);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_openapi_methods_and_schemas_are_complete),
    VXD_TEST(test_safetensors_reply_reads_back),
    VXD_TEST(test_safetensors_of_named_elements_read_back),
    VXD_TEST(test_safetensors_without_tensors_is_metadata_only),
    VXD_TEST(test_safetensors_tensor_that_does_not_fit_is_refused_by_name),
};

VXD_TEST_MAIN(tests)
