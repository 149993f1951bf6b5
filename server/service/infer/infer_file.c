// SPDX-License-Identifier: Apache-2.0
/* A scan file as the body of POST /v1/infer: ?network=NAME&format=pcd. */
#include "server/service/infer/infer.h"
#include "server/service/service.h"

enum {
    MAX_OUTPUTS = VXD_NET_MAX_OUTPUTS
};

struct query {
    struct vxd_decoder *decoder;
    Voxeld__V1__InferRequest *input;
    struct vxd_err *err;
};

static enum vxd_status take_outputs(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_names(q->decoder, item, MAX_OUTPUTS, "a comma list of outputs, or *",
                           &q->input->outputs, &q->input->n_outputs, q->err);
}

static enum vxd_status take_dtype(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    if (strcmp(item->value, "float16") == 0) {
        q->input->dtype = VOXELD__V1__DTYPE__FLOAT16;
        return VXD_OK;
    }
    return strcmp(item->value, "float32") == 0
               ? VXD_OK
               : vxd_query_fail(q->err, item, "float32 or float16");
}

static const struct vxd_query_field fields[] = {
    {"network", "network"},
    {"no_coords", "no_coords"},
    {"expect_digest", "expect_digest"},
};

static const struct vxd_query_key keys[] = {
    {"outputs", take_outputs},
    {"dtype", take_dtype},
};

enum vxd_status vxd_infer_from_file(struct vxd_request *request,
                                    const struct vxd_body *body, struct vxd_err *err)
{
    struct query q = {.decoder = request->decoder, .err = err};
    struct vxd_query_keys all = {.keys = keys,
                                 .n_keys = sizeof keys / sizeof keys[0],
                                 .query = &q,
                                 .fields = fields,
                                 .n_fields = sizeof fields / sizeof fields[0]};
    enum vxd_status status;

    q.input =
        vxd_message_new(request->decoder, &voxeld__v1__infer_request__descriptor, err);
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
