// SPDX-License-Identifier: Apache-2.0
/* Triangles of a mesh fill voxels. The engine makes one list of voxels after the other, each of
 * bounded memory; all of them are applied as one edit, so the journal has what it has of an edit
 * with lists of points. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/integrate/integrate.h"
#include "server/service/scene/scene.h"
#include "server/service/service.h"
#include "voxeld/v1/mesh.pb-c.h"

struct mesh_job {
    struct vxd_scene_job base; /* first: request->state is both */
    struct vxd_scene_triangles triangles;
    struct vxd_svdag_mesh_state state;
    struct vxd_svdag_edit_result result;
    Voxeld__V1__SceneChange *change;
    Voxeld__V1__SceneImportMeshResponse *reply;
};

static const Voxeld__V1__SceneImportMeshRequest *
input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SceneImportMeshRequest *)request->input;
}

static enum vxd_status check_colours(const Voxeld__V1__SceneImportMeshRequest *input,
                                     size_t n_vertices, struct vxd_err *err)
{
    const Voxeld__V1__Tensor *colours = input->colours;

    if (input->materials != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "colours", "go without materials");
    }
    return colours->dtype == VOXELD__V1__DTYPE__UINT8 && colours->n_shape == 2 &&
                   (size_t)colours->shape[0] == n_vertices && colours->shape[1] == 3 &&
                   colours->data.len == 3 * n_vertices
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "colours",
                          "must be %zu x 3 uint8 as data, a row a vertex", n_vertices);
}

static enum vxd_status check_arrays(const Voxeld__V1__SceneImportMeshRequest *input,
                                    struct vxd_err *err)
{
    size_t n_vertices, n;
    enum vxd_status status;

    if (input->vertices == NULL || input->triangles == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT,
                         input->vertices == NULL ? "vertices" : "triangles",
                         "is required"));
    }
    VXD_TRY(
        vxd_scene_check_numbers(input->vertices, "vertices", 3, false, &n_vertices, err));
    VXD_TRY(vxd_scene_check_numbers(input->triangles, "triangles", 3, true, &n, err));
    if (!vxd_scene_is_indices(input->triangles) && input->triangles->n_values == 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "triangles",
                         "are rows of vertices: int32 or int64"));
    }
    if (n < 1) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "triangles", "has no rows"));
    }
    if (input->materials != NULL) {
        VXD_TRY(vxd_scene_check_materials(input->materials, "materials", n, err));
    }
    if (input->colours != NULL) {
        VXD_TRY(check_colours(input, n_vertices, err));
    }
    if (input->rule != VOXELD__V1__MESH_RULE__MESH_CONSERVATIVE &&
        input->rule != VOXELD__V1__MESH_RULE__MESH_THIN) {
        VXD_TRY(
            vxd_fail(err, VXD_INVALID_ARGUMENT, "rule", "%d is none", (int)input->rule));
    }
    status = VXD_OK;
out:
    return status;
}

enum vxd_status vxd_scene_import_mesh_check(struct vxd_request *request,
                                            struct vxd_err *err)
{
    const Voxeld__V1__SceneImportMeshRequest *input = input_of(request);
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct mesh_job), input->name, err));
    VXD_TRY(check_arrays(input, err));
    request->bulk = true;
    request->n_points = (uint64_t)input->triangles->shape[0];
    request->cost_bytes = 4 * request->body_bytes;
out:
    return status;
}

/* The vertices in voxels from the scene's low corner. */
static enum vxd_status read_vertices(struct vxd_request *request,
                                     struct vxd_svdag_mesh *mesh, struct vxd_err *err)
{
    const Voxeld__V1__SceneImportMeshRequest *input = input_of(request);
    const struct mesh_job *job = request->state;
    struct vxd_scene_frame frame =
        vxd_scene_frame_of(&job->base.scene->spec, input->in_voxels);
    size_t n = (size_t)input->vertices->shape[0];
    double *vertices;
    void *block;
    enum vxd_status status =
        vxd_scene_take_host(request, n, 3 * sizeof *vertices, &block, err);

    if (status != VXD_OK) {
        return status;
    }
    vertices = block;
    for (size_t i = 0; i < 3 * n; i++) {
        vertices[i] =
            (vxd_scene_number(input->vertices, i) - frame.origin[i % 3]) / frame.size;
    }
    mesh->vertices = vertices;
    mesh->n_vertices = n;
    return VXD_OK;
}

static enum vxd_status read_triangles(struct vxd_request *request,
                                      struct vxd_svdag_mesh *mesh, struct vxd_err *err)
{
    const Voxeld__V1__SceneImportMeshRequest *input = input_of(request);
    size_t n = (size_t)input->triangles->shape[0];
    uint32_t *triangles;
    void *block;
    enum vxd_status status =
        vxd_scene_take_host(request, n, 3 * sizeof *triangles, &block, err);

    if (status != VXD_OK) {
        return status;
    }
    triangles = block;
    for (size_t i = 0; i < 3 * n; i++) {
        double vertex = vxd_scene_number(input->triangles, i);

        if (!(vertex >= 0 && vertex < (double)mesh->n_vertices) ||
            vertex != floor(vertex)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "triangles",
                            "row %zu has %.17g, which is none of the %zu vertices", i / 3,
                            vertex, mesh->n_vertices);
        }
        triangles[i] = (uint32_t)vertex;
    }
    mesh->triangles = triangles;
    mesh->n = n;
    return VXD_OK;
}

/* The palette's nearest colours to the means of the triangles' corners. */
static enum vxd_status read_colours(struct vxd_request *request,
                                    struct vxd_svdag_mesh *mesh, struct vxd_err *err)
{
    const Voxeld__V1__SceneImportMeshRequest *input = input_of(request);
    const struct mesh_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    const uint8_t *rgb = input->colours->data.data;
    float *means;
    void *block;
    uint16_t *values;
    enum vxd_status status;

    if (spec->n_palette == 0) {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, "colours",
            "need a palette, which the scene has not; give materials, or one");
    }
    VXD_TRY(vxd_scene_take_host(request, mesh->n, 3 * sizeof *means, &block, err));
    means = block;
    for (size_t i = 0; i < 3 * mesh->n; i++) {
        const uint32_t *corners = mesh->triangles + 3 * (i / 3);
        float sum = 0;

        for (int k = 0; k < 3; k++) {
            sum += (float)rgb[3 * (size_t)corners[k] + i % 3];
        }
        means[i] = sum / 3;
    }
    VXD_TRY(vxd_scene_take_host(request, mesh->n, sizeof *values, &block, err));
    values = block;
    VXD_TRY(vxd_scene_nearest_colours(spec, means, mesh->n, (uint16_t)input->material,
                                      values, err));
    mesh->values = values;
out:
    return status;
}

static enum vxd_status read_materials(struct vxd_request *request,
                                      struct vxd_svdag_mesh *mesh, struct vxd_err *err)
{
    const Voxeld__V1__SceneImportMeshRequest *input = input_of(request);
    const struct mesh_job *job = request->state;
    uint32_t n_materials = vxd_svdag_n_materials(&job->base.scene->spec.format);
    void *block;
    enum vxd_status status;

    if (input->material >= n_materials) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "material",
                        "is %u; the scene has %u materials", input->material,
                        n_materials);
    }
    if (input->colours != NULL) {
        return read_colours(request, mesh, err);
    }
    if (input->materials == NULL) {
        return VXD_OK;
    }
    VXD_TRY(vxd_scene_take_host(request, mesh->n, sizeof(uint16_t), &block, err));
    VXD_TRY(
        vxd_scene_read_materials(input->materials, "materials", n_materials, block, err));
    mesh->values = block;
out:
    return status;
}

static enum vxd_status make_lists(struct vxd_request *request, struct vxd_queue *queue,
                                  const struct vxd_svdag_mesh *mesh, struct vxd_err *err)
{
    struct mesh_job *job = request->state;
    enum vxd_status status = VXD_OK;

    atomic_store(&request->ends_when_over, true);
    while (job->state.triangle < mesh->n && status == VXD_OK) {
        if (vxd_request_is_over(request)) {
            return vxd_fail(err, VXD_CANCELLED, NULL, "nobody waits for the reply");
        }
        status = vxd_scene_list_triangles(
            request, queue, mesh, &job->state, &job->triangles, "triangles",
            "have too many voxels for one request; send them in parts", err);
    }
    if (status == VXD_OK && job->triangles.n_lists == 0) {
        status = vxd_fail(err, VXD_OUT_OF_RANGE, "triangles",
                          "no triangle has a voxel in the scene");
    }
    return status;
}

static enum vxd_status make_replies(struct vxd_request *request, struct vxd_err *err)
{
    struct mesh_job *job = request->state;

    job->reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_import_mesh_response__descriptor, err);
    job->change =
        vxd_message_new(request->decoder, &voxeld__v1__scene_change__descriptor, err);
    return job->reply != NULL && job->change != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_scene_import_mesh_submit(struct vxd_request *request,
                                             struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneImportMeshRequest *input = input_of(request);
    struct mesh_job *job = request->state;
    struct vxd_svdag_mesh mesh = {.rule = (enum vxd_svdag_mesh_rule)input->rule};
    enum vxd_status status;

    VXD_TRY(make_replies(request, err));
    VXD_TRY(vxd_scene_open(request, input->name, NULL, err));
    VXD_TRY(vxd_scene_check_version(&job->base, input->if_version, err));
    VXD_TRY(read_vertices(request, &mesh, err));
    VXD_TRY(read_triangles(request, &mesh, err));
    VXD_TRY(read_materials(request, &mesh, err));
    VXD_TRY(make_lists(request, queue, &mesh, err));
    status = vxd_scene_fill_triangles(request, queue, &job->triangles, input->material,
                                      &job->result, err);
    request->output = &job->reply->base;
out:
    return status;
}

enum vxd_status vxd_scene_import_mesh_finish(struct vxd_request *request,
                                             struct vxd_queue *queue, struct vxd_err *err)
{
    const struct mesh_job *job = request->state;
    Voxeld__V1__SceneImportMeshResponse *reply = job->reply;

    (void)queue;
    (void)err;
    vxd_scene_publish(request, &job->result, VXD_SCENE_EDITED, 0, job->change);
    reply->version = job->change->version;
    reply->n_added = job->change->n_added;
    reply->n_changed = job->change->n_changed;
    reply->n_new_nodes = job->change->n_new_nodes;
    reply->n_voxels = job->state.n_voxels;
    reply->n_outside = job->state.n_outside;
    reply->n_non_finite = job->state.n_non_finite;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_scene_import_mesh_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct mesh_job *job = request->state;

    vxd_scene_free_triangles(queue, &job->triangles);
    vxd_scene_release(request, queue);
}
