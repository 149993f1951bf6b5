// SPDX-License-Identifier: Apache-2.0
/* A mesh as the body of POST /v1/scene_import_mesh?format=ply&name=NAME&scale=..., PLY or OBJ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/mesh/files_mesh.h"
#include "server/service/clouds/clouds.h"
#include "server/service/scene/scene.h"
#include "server/service/service.h"
#include "voxeld/v1/mesh.pb-c.h"

enum {
    FIRST_TRIANGLES = 4096
};

struct query {
    struct vxd_request *request;
    Voxeld__V1__SceneImportMeshRequest *input;
    double scale;
    double offset[3];
    bool has_material;
    struct vxd_err *err;
};

static enum vxd_status take_scale(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_numbers(item->value, &q->scale, 1) == 1 && q->scale > 0
               ? VXD_OK
               : vxd_query_fail(q->err, item, "a number above 0");
}

static enum vxd_status take_offset(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;

    return vxd_query_numbers(item->value, q->offset, 3) == 3
               ? VXD_OK
               : vxd_query_fail(q->err, item, "x,y,z");
}

static enum vxd_status take_rule(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    bool is_thin = strcmp(item->value, "thin") == 0;

    q->input->rule = is_thin ? VOXELD__V1__MESH_RULE__MESH_THIN
                             : VOXELD__V1__MESH_RULE__MESH_CONSERVATIVE;
    return is_thin || strcmp(item->value, "conservative") == 0
               ? VXD_OK
               : vxd_query_fail(q->err, item, "conservative or thin");
}

static enum vxd_status take_material(void *query, const struct vxd_query_item *item)
{
    struct query *q = query;
    double number = 0;

    if (vxd_query_numbers(item->value, &number, 1) != 1 ||
        !(number >= 0 && number <= UINT16_MAX) || number != (double)(uint32_t)number) {
        return vxd_query_fail(q->err, item, "a whole number from 0 on");
    }
    q->has_material = true;
    q->input->material = (uint32_t)number;
    return VXD_OK;
}

static const struct vxd_query_field fields[] = {
    {"name", "name"},
    {"in_voxels", "in_voxels"},
    {"if_version", "if_version"},
};

static const struct vxd_query_key keys[] = {
    {"scale", take_scale},
    {"offset", take_offset},
    {"rule", take_rule},
    {"material", take_material},
};

/* A tensor of n rows whose bytes are copied into the request's memory. */
static enum vxd_status make_tensor(struct query *q, Voxeld__V1__DType dtype, size_t n,
                                   const void *bytes, size_t row_bytes,
                                   Voxeld__V1__Tensor **out)
{
    struct vxd_decoder *decoder = q->request->decoder;
    Voxeld__V1__Tensor *tensor =
        vxd_message_new(decoder, &voxeld__v1__tensor__descriptor, q->err);
    uint8_t *copy = vxd_message_array(decoder, n > 0 ? n : 1, row_bytes, q->err);
    int64_t *shape = vxd_message_array(decoder, 2, sizeof *shape, q->err);

    if (tensor == NULL || copy == NULL || shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(copy, bytes, n * row_bytes);
    shape[0] = (int64_t)n;
    shape[1] = 3;
    tensor->dtype = dtype;
    tensor->shape = shape;
    tensor->n_shape = 2;
    tensor->data.data = copy;
    tensor->data.len = n * row_bytes;
    *out = tensor;
    return VXD_OK;
}

static enum vxd_status take_vertices(struct query *q, struct vxd_mesh_file *mesh)
{
    uint8_t *bytes;
    enum vxd_status status;

    for (size_t i = 0; i < 3 * mesh->n_vertices; i++) {
        mesh->vertices[i] = mesh->vertices[i] * q->scale + q->offset[i % 3];
    }
    VXD_TRY(make_tensor(q, VOXELD__V1__DTYPE__FLOAT64, mesh->n_vertices, mesh->vertices,
                        3 * sizeof(double), &q->input->vertices));
    if (mesh->colours == NULL || q->has_material) {
        return VXD_OK;
    }
    VXD_TRY(make_tensor(q, VOXELD__V1__DTYPE__UINT8, mesh->n_vertices, mesh->colours, 3,
                        &q->input->colours));
    bytes = q->input->colours->data.data;
    for (size_t i = 0; i < 3 * mesh->n_vertices; i++) {
        bytes[i] = (uint8_t)(mesh->colours[i / 3] >> (16 - 8 * (i % 3)));
    }
out:
    return status;
}

static enum vxd_status take_triangles(struct query *q, struct vxd_mesh_file *mesh)
{
    uint32_t(*triangles)[3] = NULL;
    size_t capacity = FIRST_TRIANGLES;
    size_t n = 0;
    size_t n_more = 1;
    enum vxd_status status = VXD_OK;

    while (n_more > 0 && status == VXD_OK) {
        uint32_t(*larger)[3];

        capacity = triangles == NULL ? capacity : 2 * capacity;
        larger = realloc(triangles, capacity * sizeof *larger);
        if (larger == NULL) {
            VXD_TRY(vxd_fail(q->err, VXD_RESOURCE_EXHAUSTED, NULL,
                             "no memory for %zu triangles", capacity));
        }
        triangles = larger;
        VXD_TRY(vxd_mesh_next(mesh, triangles + n, capacity - n, &n_more, q->err));
        n += n_more;
    }
    status = make_tensor(q, VOXELD__V1__DTYPE__INT32, n, triangles, sizeof *triangles,
                         &q->input->triangles);
out:
    free(triangles);
    return status;
}

enum vxd_status vxd_scene_import_mesh_from_file(struct vxd_request *request,
                                                const struct vxd_body *body,
                                                struct vxd_err *err)
{
    struct query q = {.request = request, .scale = 1, .err = err};
    struct vxd_query_keys all = {.keys = keys,
                                 .n_keys = sizeof keys / sizeof keys[0],
                                 .query = &q,
                                 .fields = fields,
                                 .n_fields = sizeof fields / sizeof fields[0]};
    struct vxd_mesh_file mesh = {0};
    FILE *stream = NULL;
    bool is_obj = strcmp(body->format, "obj") == 0;
    enum vxd_status status;

    q.input = vxd_message_new(request->decoder,
                              &voxeld__v1__scene_import_mesh_request__descriptor, err);
    if (q.input == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (!is_obj && strcmp(body->format, "ply") != 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                         "\"%.32s\"; known: ply, obj", body->format));
    }
    all.message = &q.input->base;
    VXD_TRY(vxd_query_take_all(request->decoder, body, &all, err));
    if (body->n_bytes == 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "the file is empty"));
    }
    stream = fmemopen((void *)(uintptr_t)body->bytes, body->n_bytes, "rb");
    if (stream == NULL) {
        VXD_TRY(
            vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory to read the file"));
    }
    /* A vertex takes at least a byte of the file, but for rows without properties. */
    VXD_TRY(vxd_mesh_open(stream, is_obj ? VXD_MESH_OBJ : VXD_MESH_PLY, body->n_bytes,
                          &mesh, err));
    VXD_TRY(take_vertices(&q, &mesh));
    VXD_TRY(take_triangles(&q, &mesh));
    request->input = &q.input->base;
out:
    vxd_mesh_close(&mesh);
    if (stream != NULL) {
        (void)fclose(stream);
    }
    return status;
}
