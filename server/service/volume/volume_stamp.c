// SPDX-License-Identifier: Apache-2.0
/* The surface of a volume into a scene, as one edit of it: the triangles of some blocks after the
 * other become lists of voxels, in stages between which the volume must not change. */
#include <stdlib.h>

#include "gpu/surface/surface.h"
#include "server/instance/instance.h"
#include "server/service/scene/scene.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

/* Voxels of the volume that a stage looks at. */
#define STAGE_VOXELS_CPU ((size_t)1 << 18)
#define STAGE_VOXELS_CUDA ((size_t)1 << 24)

struct stamp_job {
    struct vxd_scene_job base;       /* first: request->state is both */
    struct vxd_named_volume *volume; /* held */
    uint64_t volume_version;
    struct vxd_surface_args args;
    struct vxd_scene_triangles triangles;
    struct vxd_svdag_edit_result result;
    uint64_t n_triangles;
    uint64_t n_voxels;
    uint64_t n_outside;
    Voxeld__V1__SceneChange *change;
    Voxeld__V1__VolumeStampResponse *reply;
};

static const Voxeld__V1__VolumeStampRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__VolumeStampRequest *)request->input;
}

enum vxd_status vxd_volume_stamp_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeStampRequest *input = input_of(request);
    struct stamp_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(vxd_noun_check_name(input->scene, "scene", err));
    if (input->box != NULL) {
        VXD_TRY(vxd_volume_read_box(input->box, job->args.low, job->args.high, err));
        job->args.has_box = true;
    }
    job->args.min_weight = input->min_weight;
    request->bulk = true;
out:
    return status;
}

/* --- volume and scene -------------------------------------------------------------------- */

/* Finds the volume. One of which a change waits for the disk is waited for, since the scene's
 * change must not outlive what it was made of. */
static enum vxd_status open_volume(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeStampRequest *input = input_of(request);
    struct vxd_names *volumes = request->server->volumes;
    struct stamp_job *job = request->state;
    struct vxd_volume_info info;
    enum vxd_status status = VXD_OK;

    if (job->volume == NULL) {
        job->volume = vxd_volumes_find(volumes, input->name);
        if (job->volume == NULL) {
            return vxd_fail(err, VXD_NOT_FOUND, "name", "there is no volume \"%s\"",
                            input->name);
        }
        vxd_named_hold(&job->volume->named);
    }
    if (job->volume->named.durable.journal_id != 0) {
        VXD_TRY(vxd_named_check_visible(&job->volume->named, err));
        request->is_waiting = vxd_named_is_waiting(volumes, &job->volume->named);
        request->more = request->is_waiting;
    }
    vxd_volume_get_info(job->volume->state.volume, &info);
    job->volume_version = info.version;
    if (input->labels_as_materials && !job->volume->spec.has_labels) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "labels_as_materials",
                         "the volume \"%s\" keeps no labels", input->name));
    }
out:
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeStampRequest *input = input_of(request);
    struct stamp_job *job = request->state;
    uint32_t n_materials;
    enum vxd_status status;

    VXD_TRY(vxd_scene_open(request, input->scene, NULL, err));
    VXD_TRY(vxd_scene_check_version(&job->base, input->if_version, err));
    n_materials = vxd_svdag_n_materials(&job->base.scene->spec.format);
    if (input->material >= n_materials) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "material",
                         "is %u; the scene has %u materials", input->material,
                         n_materials));
    }
    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__volume_stamp_response__descriptor, err);
    job->change =
        vxd_message_new(request->decoder, &voxeld__v1__scene_change__descriptor, err);
    status = job->reply != NULL && job->change != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
out:
    if (status == VXD_NOT_FOUND) {
        (void)snprintf(err->field, sizeof err->field, "scene");
    }
    return status;
}

/* --- the surface of some blocks --------------------------------------------------------------- */

/* Arrays of a part of the surface, on both sides. */
struct part {
    struct vxd_surface_counts n;
    struct vxd_buffer device[3];
    struct vxd_buffer host[3];
    const float *vertices;
    const int32_t *triangles;
    const uint8_t *labels; /* NULL: none */
};

static void free_part(struct vxd_queue *queue, struct part *part)
{
    for (int i = 0; i < 3; i++) {
        vxd_device_free(queue, &part->device[i]);
        vxd_host_free(vxd_queue_context(queue), &part->host[i]);
    }
}

/* Makes the next blocks' surface, waits, and moves on. */
static enum vxd_status extract(struct vxd_request *request, struct vxd_queue *queue,
                               struct part *part, struct vxd_err *err)
{
    struct stamp_job *job = request->state;
    struct vxd_volume *volume = job->volume->state.volume;
    bool has_labels = input_of(request)->labels_as_materials;
    struct vxd_surface *surface = NULL;
    struct vxd_surface_outputs out = {0};
    const void *read[3] = {NULL};
    size_t n_bytes[3];
    enum vxd_status status;

    VXD_TRY(vxd_surface_create(queue, volume, &job->args, &surface, err));
    vxd_surface_get_counts(surface, &part->n);
    n_bytes[0] = part->n.n_vertices * 3 * sizeof(float);
    n_bytes[1] = part->n.n_triangles * 3 * sizeof(int32_t);
    n_bytes[2] = has_labels ? part->n.n_vertices : 0;
    for (int i = 0; i < 3; i++) {
        VXD_TRY(vxd_device_alloc(queue, n_bytes[i], &part->device[i], err));
    }
    out.vertices = part->device[0].ptr;
    out.triangles = part->device[1].ptr;
    out.labels = has_labels ? part->device[2].ptr : NULL;
    VXD_TRY(vxd_surface_write(queue, surface, &out, err));
    for (int i = 0; i < 3; i++) {
        if (n_bytes[i] > 0) {
            VXD_TRY(vxd_download(queue, part->device[i].ptr, n_bytes[i], &part->host[i],
                                 &read[i], err));
        }
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    part->vertices = read[0];
    part->triangles = read[1];
    part->labels = read[2];
out:
    vxd_surface_destroy(queue, surface);
    return status;
}

/* The label of most of a triangle's corners that is a material, of several the lowest; 0: none. */
static uint32_t label_of(const struct part *part, size_t triangle, uint32_t n_materials)
{
    const int32_t *corners = part->triangles + 3 * triangle;
    uint32_t best = 0;
    int most = 0;

    for (int i = 0; i < 3; i++) {
        uint32_t label = part->labels[corners[i]];
        int n = 0;

        for (int k = 0; k < 3; k++) {
            n += part->labels[corners[k]] == label ? 1 : 0;
        }
        if (label != 0 && label < n_materials &&
            (n > most || (n == most && label < best))) {
            best = label;
            most = n;
        }
    }
    return best;
}

/* The part as a mesh in voxels of the scene; its arrays are malloc'ed. */
static enum vxd_status make_mesh(const struct vxd_request *request,
                                 const struct part *part, struct vxd_svdag_mesh *mesh,
                                 struct vxd_err *err)
{
    const Voxeld__V1__VolumeStampRequest *input = input_of(request);
    const struct stamp_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    uint32_t n_materials = vxd_svdag_n_materials(&spec->format);
    size_t n = part->n.n_triangles;
    double *vertices = malloc((part->n.n_vertices + 1) * 3 * sizeof *vertices);
    uint32_t *triangles = malloc((n + 1) * 3 * sizeof *triangles);
    uint16_t *values = part->labels != NULL ? malloc((n + 1) * sizeof *values) : NULL;

    *mesh = (struct vxd_svdag_mesh){
        vertices,  part->n.n_vertices,
        triangles, values,
        n,         input->thin ? VXD_SVDAG_MESH_THIN : VXD_SVDAG_MESH_CONSERVATIVE};
    if (vertices == NULL || triangles == NULL ||
        (part->labels != NULL && values == NULL)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu triangles",
                        n);
    }
    for (size_t i = 0; i < 3 * part->n.n_vertices; i++) {
        vertices[i] = ((double)part->vertices[i] + job->volume->spec.origin_m[i % 3] -
                       spec->origin_m[i % 3]) /
                      spec->voxel_size_m;
    }
    for (size_t i = 0; i < 3 * n; i++) {
        triangles[i] = (uint32_t)part->triangles[i];
    }
    for (size_t i = 0; values != NULL && i < n; i++) {
        uint32_t label = label_of(part, i, n_materials);

        values[i] = (uint16_t)(label != 0 ? label : input->material);
    }
    return VXD_OK;
}

static void free_mesh(struct vxd_svdag_mesh *mesh)
{
    free((void *)(uintptr_t)mesh->vertices);
    free((void *)(uintptr_t)mesh->triangles);
    free((void *)(uintptr_t)mesh->values);
    *mesh = (struct vxd_svdag_mesh){0};
}

static enum vxd_status list_mesh(struct vxd_request *request, struct vxd_queue *queue,
                                 const struct vxd_svdag_mesh *mesh, struct vxd_err *err)
{
    struct stamp_job *job = request->state;
    struct vxd_svdag_mesh_state state = {0};
    enum vxd_status status = VXD_OK;

    while (state.triangle < mesh->n) {
        VXD_TRY(vxd_scene_list_triangles(
            request, queue, mesh, &state, &job->triangles, "box",
            "the surface has too many voxels for one request: stamp boxes of it", err));
    }
    job->n_triangles += mesh->n;
    job->n_voxels += state.n_voxels;
    job->n_outside += state.n_outside + state.n_non_finite;
out:
    return status;
}

/* One stage: the triangles of the next blocks. Sets request->more until there are no others.
 * errors  ABORTED  the volume was changed */
static enum vxd_status list_part(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct stamp_job *job = request->state;
    bool is_cuda = vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA;
    size_t edge = (size_t)job->volume->spec.block_edge;
    struct vxd_svdag_mesh mesh = {0};
    struct part part = {0};
    struct vxd_volume_info info;
    enum vxd_status status;

    vxd_volume_get_info(job->volume->state.volume, &info);
    if (info.version != job->volume_version) {
        return vxd_fail(err, VXD_ABORTED, "name",
                        "the volume \"%s\" was changed meanwhile; ask again, or for "
                        "boxes, which take one stage",
                        job->volume->named.terms.name);
    }
    job->args.limit =
        (is_cuda ? STAGE_VOXELS_CUDA : STAGE_VOXELS_CPU) / (edge * edge * edge);
    VXD_TRY(extract(request, queue, &part, err));
    VXD_TRY(make_mesh(request, &part, &mesh, err));
    VXD_TRY(list_mesh(request, queue, &mesh, err));
    job->args.first += job->args.limit;
    request->more = job->args.first < part.n.n_listed;
out:
    free_mesh(&mesh);
    free_part(queue, &part);
    return status;
}

/* --- the edit ------------------------------------------------------------------------------- */

static enum vxd_status apply(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__VolumeStampRequest *input = input_of(request);
    struct stamp_job *job = request->state;
    enum vxd_status status;

    if (job->triangles.n_lists == 0) {
        return vxd_fail(err, VXD_OUT_OF_RANGE, "scene",
                        "no part of the surface, of %llu triangles, is in the scene",
                        (unsigned long long)job->n_triangles);
    }
    vxd_scene_unpin(request->server->scenes, &job->base.state, queue);
    vxd_scene_pin_last(job->base.scene, &job->base.state);
    VXD_TRY(vxd_scene_check_version(&job->base, input->if_version, err));
    status = vxd_scene_fill_triangles(request, queue, &job->triangles, input->material,
                                      &job->result, err);
    request->output = &job->reply->base;
out:
    return status;
}

enum vxd_status vxd_volume_stamp_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct stamp_job *job = request->state;
    enum vxd_status status = VXD_OK;

    if (job->reply == NULL) {
        VXD_TRY(open_volume(request, err));
        if (request->is_waiting) {
            return VXD_OK;
        }
        VXD_TRY(begin(request, err));
    }
    VXD_TRY(list_part(request, queue, err));
    if (!request->more) {
        VXD_TRY(apply(request, queue, err));
    }
out:
    return status;
}

enum vxd_status vxd_volume_stamp_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    const struct stamp_job *job = request->state;
    Voxeld__V1__VolumeStampResponse *reply = job->reply;

    (void)queue;
    (void)err;
    vxd_scene_publish(request, &job->result, VXD_SCENE_EDITED, 0, job->change);
    reply->version = job->change->version;
    reply->n_added = job->change->n_added;
    reply->n_changed = job->change->n_changed;
    reply->n_new_nodes = job->change->n_new_nodes;
    reply->n_voxels = job->n_voxels;
    reply->n_triangles = job->n_triangles;
    reply->n_outside = job->n_outside;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_volume_stamp_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct stamp_job *job = request->state;

    vxd_scene_free_triangles(queue, &job->triangles);
    if (job->volume != NULL) {
        vxd_named_drop(&job->volume->named, queue);
        job->volume = NULL;
    }
    vxd_scene_release(request, queue);
}
