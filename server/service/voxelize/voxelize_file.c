// SPDX-License-Identifier: Apache-2.0
/* A scan file as the body of a POST: the reader says where the numbers lie, the query says
 * what to make of them, and out comes the same message that protobuf would have carried. */
#include "server/service/service.h"
#include "server/service/voxelize/voxelize_job.h"

enum {
    MAX_LIST = 64
};

struct query {
    struct vxd_decoder *decoder;
    Voxeld__V1__VoxelizeRequest *input;
    struct vxd_err *err;
};

static Voxeld__V1__Vec3 *new_vector(struct query *q, const double v[3])
{
    Voxeld__V1__Vec3 *vector =
        vxd_message_new(q->decoder, &voxeld__v1__vec3__descriptor, q->err);

    if (vector != NULL) {
        vector->x = v[0];
        vector->y = v[1];
        vector->z = v[2];
    }
    return vector;
}

static enum vxd_status take_size(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    double v[3];
    size_t n = vxd_query_numbers(item->value, v, 3);

    if (n != 1 && n != 3) {
        return vxd_query_fail(q->err, item,
                              "one number or three, in metres: 0.1 or 0.1,0.1,0.2");
    }
    if (n == 1) {
        v[1] = v[0];
        v[2] = v[0];
    }
    q->input->size = new_vector(q, v);
    return q->input->size != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

static enum vxd_status take_range(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    double v[6];
    Voxeld__V1__Range *range;

    if (vxd_query_numbers(item->value, v, 6) != 6) {
        return vxd_query_fail(q->err, item, "six numbers in metres: x0,y0,z0,x1,y1,z1");
    }
    range = vxd_message_new(q->decoder, &voxeld__v1__range__descriptor, q->err);
    if (range == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    range->low = new_vector(q, v);
    range->high = new_vector(q, v + 3);
    q->input->range = range;
    return range->low != NULL && range->high != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

/* The value of a word, -1 when it is none of the n names. */
static int find_word(const char *word, size_t n_bytes, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(names[i]) == n_bytes && memcmp(names[i], word, n_bytes) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static enum vxd_status take_rule(void *query, const struct vxd_query_item *item)
{
    static const char *const names[] = {"spconv", "minkowski", "double"};
    struct query *q = query;
    int i = find_word(item->value, strlen(item->value), names, 3);

    if (i < 0) {
        return vxd_query_fail(q->err, item, "spconv, minkowski or double");
    }
    q->input->rule = i == 0   ? VOXELD__V1__VOXEL_RULE__SPCONV
                     : i == 1 ? VOXELD__V1__VOXEL_RULE__MINKOWSKI
                              : VOXELD__V1__VOXEL_RULE__DOUBLE;
    return VXD_OK;
}

static enum vxd_status take_order(void *query, const struct vxd_query_item *item)
{
    static const char *const names[] = {"morton", "first_point"};
    struct query *q = query;
    int i = find_word(item->value, strlen(item->value), names, 2);

    if (i < 0) {
        return vxd_query_fail(q->err, item, "morton or first_point");
    }
    q->input->order =
        i == 0 ? VOXELD__V1__VOXEL_ORDER__MORTON : VOXELD__V1__VOXEL_ORDER__FIRST_POINT;
    return VXD_OK;
}

/* A comma list of words as enum values counted from 1; 0 when there is an unknown word or
 * too many. protobuf-c's enums are ints. */
static size_t parse_words(const char *text, const char *const *names, size_t n_names,
                          int out[MAX_LIST])
{
    for (size_t n = 0; n < MAX_LIST; n++) {
        size_t n_bytes = strcspn(text, ",");
        int i = find_word(text, n_bytes, names, n_names);

        if (i < 0) {
            return 0;
        }
        out[n] = i + 1;
        if (text[n_bytes] == '\0') {
            return n + 1;
        }
        text += n_bytes + 1;
    }
    return 0;
}

static enum vxd_status take_reduce(void *query, const struct vxd_query_item *item)
{
    static const char *const names[] = {"mean", "sum", "min", "max", "first"};
    struct query *q = query;
    int values[MAX_LIST];
    size_t n = parse_words(item->value, names, 5, values);

    if (n == 0) {
        return vxd_query_fail(q->err, item, "a comma list of mean, sum, min, max, first");
    }
    q->input->reduce = vxd_message_array(q->decoder, n, sizeof *q->input->reduce, q->err);
    if (q->input->reduce == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        q->input->reduce[i] = (Voxeld__V1__Reduce)values[i];
    }
    q->input->n_reduce = n;
    return VXD_OK;
}

static enum vxd_status take_outputs(void *query, const struct vxd_query_item *item)
{
    static const char *const names[] = {"coords", "counts", "inverse", "points",
                                        "first_index"};
    struct query *q = query;
    int values[MAX_LIST];
    size_t n = parse_words(item->value, names, 5, values);

    if (n == 0) {
        return vxd_query_fail(
            q->err, item, "a comma list of coords, counts, inverse, points, first_index");
    }
    q->input->outputs =
        vxd_message_array(q->decoder, n, sizeof *q->input->outputs, q->err);
    if (q->input->outputs == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        q->input->outputs[i] = (Voxeld__V1__VoxelOutput)values[i];
    }
    q->input->n_outputs = n;
    return VXD_OK;
}

static enum vxd_status take_features(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_names(q->decoder, item, MAX_LIST,
                           "a comma list of at most 64 field names", &q->input->features,
                           &q->input->n_features, q->err);
}

static enum vxd_status take_no_features(void *query, const struct vxd_query_item *item)
{
    static const char *const names[] = {"false", "true", "0", "1"};
    struct query *q = query;
    int i = find_word(item->value, strlen(item->value), names, 4);

    if (i < 0) {
        return vxd_query_fail(q->err, item, "true or false");
    }
    q->input->no_features = i % 2 == 1;
    return VXD_OK;
}

static const struct vxd_query_key query_keys[] = {
    {"size", take_size},         {"range", take_range},
    {"rule", take_rule},         {"order", take_order},
    {"features", take_features}, {"reduce", take_reduce},
    {"outputs", take_outputs},   {"no_features", take_no_features},
};

static const struct vxd_query_field query_fields[] = {
    {"max_points", "max_points"},
    {"max_voxels", "max_voxels"},
    {"origin", "origin"},
};

enum vxd_status vxd_voxelize_from_file(struct vxd_request *request,
                                       const struct vxd_body *body, struct vxd_err *err)
{
    struct query q = {.decoder = request->decoder, .err = err};
    struct vxd_query_keys all = {.keys = query_keys,
                                 .n_keys = sizeof query_keys / sizeof query_keys[0],
                                 .query = &q,
                                 .fields = query_fields,
                                 .n_fields =
                                     sizeof query_fields / sizeof query_fields[0]};
    enum vxd_status status;

    q.input =
        vxd_message_new(request->decoder, &voxeld__v1__voxelize_request__descriptor, err);
    if (q.input == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    all.message = &q.input->base;
    VXD_TRY(vxd_cloud_from_body(request, body, &all, &q.input->clouds, err));
    q.input->n_clouds = 1;
    request->input = &q.input->base;
out:
    return status;
}
