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

static enum vxd_status take_network(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->network, q->err);
}

static enum vxd_status take_digest(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_text(q->decoder, item, &q->input->expect_digest, q->err);
}

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

static enum vxd_status take_no_coords(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    q->input->no_coords = strcmp(item->value, "true") == 0;
    return q->input->no_coords || strcmp(item->value, "false") == 0
               ? VXD_OK
               : vxd_query_fail(q->err, item, "true or false");
}

static const struct vxd_query_key query_keys[] = {
    {"network", take_network},     {"outputs", take_outputs},      {"dtype", take_dtype},
    {"no_coords", take_no_coords}, {"expect_digest", take_digest},
};

enum vxd_status vxd_infer_from_file(struct vxd_request *request,
                                    const struct vxd_body *body, struct vxd_err *err)
{
    struct query q = {.decoder = request->decoder, .err = err};
    const struct vxd_query_keys keys = {query_keys,
                                        sizeof query_keys / sizeof query_keys[0], &q};
    enum vxd_status status;

    q.input =
        vxd_message_new(request->decoder, &voxeld__v1__infer_request__descriptor, err);
    if (q.input == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_cloud_from_body(request, body, &keys, &q.input->clouds, err));
    q.input->n_clouds = 1;
    request->input = &q.input->base;
out:
    return status;
}
