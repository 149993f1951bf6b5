// SPDX-License-Identifier: Apache-2.0
/* The surface of a volume as a model in glTF's binary form (GLB): a header, a chunk of JSON and a
 * chunk of arrays. Foxglove's triangles take 29 bytes a vertex and 38 a colour; here it is 12, 12
 * and 4. glTF has y up, so the model's node is turned, and a viewer that turns it back shows it
 * with z up. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/transport/foxglove/foxglove_internal.h"

#define MAGIC 0x46546C67u
#define CHUNK_JSON 0x4E4F534Au
#define CHUNK_BIN 0x004E4942u

enum {
    TRIANGLES = 4,
    UNSIGNED_BYTE = 5121,
    UNSIGNED_INT = 5125,
    FLOAT = 5126,
    ARRAY_BUFFER = 34962,
    ELEMENT_BUFFER = 34963
};

/* A part of a surface. */
struct mesh {
    const Voxeld__V1__Tensor *vertices;
    const Voxeld__V1__Tensor *normals;
    const Voxeld__V1__Tensor *colours;
    const Voxeld__V1__Tensor *triangles;
    size_t n_vertices;
    size_t n_indices;
    bool has_colours;
    float low[3];
    float high[3];
};

static size_t bytes_of(const Voxeld__V1__Tensor *tensor)
{
    return tensor != NULL ? tensor->data.len : 0;
}

static enum vxd_status open_mesh(const Voxeld__V1__VolumeExtractResponse *reply,
                                 struct mesh *mesh, struct vxd_err *err)
{
    *mesh = (struct mesh){.vertices = reply->vertices,
                          .normals = reply->normals,
                          .colours = reply->colours,
                          .triangles = reply->triangles,
                          .n_vertices = bytes_of(reply->vertices) / 12,
                          .n_indices = bytes_of(reply->triangles) / 4};
    mesh->has_colours = bytes_of(mesh->colours) == 3 * mesh->n_vertices;
    if (bytes_of(mesh->normals) != bytes_of(mesh->vertices)) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "the surface has no normals");
    }
    for (size_t i = 0; i < 3 * mesh->n_vertices; i++) {
        float x;

        memcpy(&x, mesh->vertices->data.data + 4 * i, sizeof x);
        mesh->low[i % 3] = i < 3 || x < mesh->low[i % 3] ? x : mesh->low[i % 3];
        mesh->high[i % 3] = i < 3 || x > mesh->high[i % 3] ? x : mesh->high[i % 3];
    }
    return VXD_OK;
}

static void append_view(struct vxd_text *json, size_t *offset, size_t n_bytes, int target)
{
    vxd_text_printf(
        json, "%s{\"buffer\":0,\"byteOffset\":%zu,\"byteLength\":%zu,\"target\":%d}",
        *offset > 0 ? "," : "", *offset, n_bytes, target);
    *offset += n_bytes;
}

static void append_bounds(struct vxd_text *json, const float x[3])
{
    for (int k = 0; k < 3; k++) {
        vxd_text_append(json, k == 0 ? "[" : ",", 1);
        vxd_text_json_float(json, x[k]);
    }
    vxd_text_append(json, "]", 1);
}

static void write_json(const struct mesh *mesh, struct vxd_text *json)
{
    size_t n = mesh->n_vertices;
    size_t offset = 0;

    vxd_text_printf(
        json,
        "{\"asset\":{\"version\":\"2.0\",\"generator\":\"voxeld\"},\"scene\":0,"
        "\"scenes\":[{\"nodes\":[0]}],"
        "\"nodes\":[{\"mesh\":0,\"rotation\":[-0.7071067811865476,0,0,"
        "0.7071067811865476]}],"
        "\"materials\":[{\"doubleSided\":true,\"pbrMetallicRoughness\":{"
        "\"metallicFactor\":0,\"roughnessFactor\":1}}],"
        "\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":0,\"NORMAL\":1");
    vxd_text_printf(json, "%s},\"indices\":2,\"material\":0,\"mode\":%d}]}],",
                    mesh->has_colours ? ",\"COLOR_0\":3" : "", TRIANGLES);
    vxd_text_printf(json,
                    "\"accessors\":[{\"bufferView\":0,\"componentType\":%d,"
                    "\"count\":%zu,\"type\":\"VEC3\",\"min\":",
                    FLOAT, n);
    append_bounds(json, mesh->low);
    vxd_text_printf(json, ",\"max\":");
    append_bounds(json, mesh->high);
    vxd_text_printf(json,
                    "},{\"bufferView\":1,\"componentType\":%d,\"count\":%zu,"
                    "\"type\":\"VEC3\"},{\"bufferView\":2,\"componentType\":%d,"
                    "\"count\":%zu,\"type\":\"SCALAR\"}",
                    FLOAT, n, UNSIGNED_INT, mesh->n_indices);
    if (mesh->has_colours) {
        vxd_text_printf(json,
                        ",{\"bufferView\":3,\"componentType\":%d,\"normalized\":true,"
                        "\"count\":%zu,\"type\":\"VEC4\"}",
                        UNSIGNED_BYTE, n);
    }
    vxd_text_printf(json, "],\"bufferViews\":[");
    append_view(json, &offset, 12 * n, ARRAY_BUFFER);
    append_view(json, &offset, 12 * n, ARRAY_BUFFER);
    append_view(json, &offset, 4 * mesh->n_indices, ELEMENT_BUFFER);
    if (mesh->has_colours) {
        append_view(json, &offset, 4 * n, ARRAY_BUFFER);
    }
    vxd_text_printf(json, "],\"buffers\":[{\"byteLength\":%zu}]}", offset);
    while (json->n_bytes % 4 != 0 && !json->failed) {
        vxd_text_append(json, " ", 1);
    }
}

static void append_u32(struct vxd_text *text, size_t value)
{
    uint32_t number = (uint32_t)value;

    vxd_text_append(text, (const char *)&number, sizeof number);
}

/* A normal of length 0 has no direction, which glTF does not allow: it points up. */
static void append_normals(const struct mesh *mesh, struct vxd_text *text)
{
    static const float up[3] = {0, 0, 1};

    for (size_t i = 0; i < mesh->n_vertices; i++) {
        float n[3];

        memcpy(n, mesh->normals->data.data + 12 * i, sizeof n);
        vxd_text_append(
            text, (const char *)(n[0] == 0 && n[1] == 0 && n[2] == 0 ? up : n), sizeof n);
    }
}

static void append_model(const struct mesh *mesh, const struct vxd_text *json,
                         struct vxd_text *text)
{
    size_t n_bin =
        mesh->n_vertices * (mesh->has_colours ? 28u : 24u) + 4 * mesh->n_indices;
    size_t n_bytes = 12 + 8 + json->n_bytes + 8 + n_bin;

    vxd_fox_begin_bytes(text, 7, n_bytes);
    append_u32(text, MAGIC);
    append_u32(text, 2);
    append_u32(text, n_bytes);
    append_u32(text, json->n_bytes);
    append_u32(text, CHUNK_JSON);
    vxd_text_append(text, json->bytes, json->n_bytes);
    append_u32(text, n_bin);
    append_u32(text, CHUNK_BIN);
    vxd_text_append(text, (const char *)mesh->vertices->data.data,
                    mesh->vertices->data.len);
    append_normals(mesh, text);
    vxd_text_append(text, (const char *)mesh->triangles->data.data,
                    mesh->triangles->data.len);
    for (size_t i = 0; mesh->has_colours && i < mesh->n_vertices; i++) {
        vxd_text_append(text, (const char *)mesh->colours->data.data + 3 * i, 3);
        vxd_text_append(text, "\xff", 1);
    }
}

static void append_id(struct vxd_text *text, uint32_t field, uint32_t part)
{
    char id[24];

    (void)snprintf(id, sizeof id, "part %" PRIu32, part);
    vxd_fox_string(text, field, id);
}

static void append_deletion(struct vxd_text *text, uint32_t part, int64_t stamp_ns)
{
    size_t at = vxd_fox_open(text, 1);

    vxd_fox_time(text, 1, stamp_ns);
    append_id(text, 3, part);
    vxd_fox_close(text, at);
}

enum vxd_status vxd_fox_mesh_message(const Voxeld__V1__VolumeExtractResponse *reply,
                                     const char *name, uint32_t part, uint32_t n_gone,
                                     int64_t stamp_ns, struct vxd_text *text,
                                     struct vxd_err *err)
{
    struct mesh mesh;
    struct vxd_text json = {0};
    char frame[VXD_NAME_BYTES + 16];
    size_t at, model;
    enum vxd_status status;

    VXD_TRY(open_mesh(reply, &mesh, err));
    for (uint32_t i = 0; i < n_gone; i++) {
        append_deletion(text, part + 1 + i, stamp_ns);
    }
    if (mesh.n_indices == 0 || mesh.n_vertices == 0) {
        append_deletion(text, part, stamp_ns);
        goto out;
    }
    write_json(&mesh, &json);
    if (json.failed) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a model"));
    }
    (void)snprintf(frame, sizeof frame, "volume/%s", name);
    at = vxd_fox_open(text, 2);
    vxd_fox_time(text, 1, stamp_ns);
    vxd_fox_string(text, 2, frame);
    append_id(text, 3, part);
    model = vxd_fox_open(text, 14);
    vxd_fox_pose(text, 1, 0, 0, 0);
    vxd_fox_vector(text, 2, 1, 1, 1);
    if (!mesh.has_colours) {
        vxd_fox_colour(text, 3, 0.8, 0.8, 0.8, 1);
        vxd_fox_number(text, 4, 1);
    }
    vxd_fox_string(text, 6, "model/gltf-binary");
    append_model(&mesh, &json, text);
    vxd_fox_close(text, model);
    vxd_fox_close(text, at);
out:
    free(json.bytes);
    return status;
}
