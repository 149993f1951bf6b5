// SPDX-License-Identifier: Apache-2.0
/* Surfaces: arrays, or a PLY file. */
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

/* Voxels that one request looks at: some tenths of a second. */
#define MAX_VOXELS_CPU ((uint64_t)1 << 25)
#define MAX_VOXELS_CUDA ((uint64_t)1 << 29)

enum {
    MAX_BLOCK_BYTES = 65536 /* of a block's part of a surface, about */
};

struct extract_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_volume_surface part;
    struct vxd_buffer ply;
};

static Voxeld__V1__VolumeExtractResponse *reply_of(const struct vxd_request *request)
{
    const struct vxd_query *query = request->state;

    return (Voxeld__V1__VolumeExtractResponse *)query->reply;
}

static bool is_ply(const struct vxd_request *request)
{
    return ((const Voxeld__V1__VolumeExtractRequest *)request->input)->format ==
           VOXELD__V1__VOLUME_FORMAT__VOLUME_PLY;
}

/* Memory that a surface takes, about, before its volume is known: as much as the blocks that it is
 * made of, and no more than all volumes have. */
static uint64_t estimate(const struct vxd_request *request, size_t limit)
{
    struct vxd_names_usage usage;
    uint64_t most = VXD_VOLUME_REPLY_BYTES;

    vxd_names_get_usage(request->server->volumes, &usage);
    if (limit > 0 && limit < most / MAX_BLOCK_BYTES) {
        most = (uint64_t)limit * MAX_BLOCK_BYTES;
    }
    return usage.n_bytes < most ? usage.n_bytes : most;
}

enum vxd_status vxd_volume_extract_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeExtractRequest *input =
        (const Voxeld__V1__VolumeExtractRequest *)request->input;
    struct vxd_surface_args *args;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct extract_job), input->name, err));
    args = &((struct extract_job *)request->state)->part.args;
    if (input->box != NULL) {
        VXD_TRY(vxd_volume_read_box(input->box, args->low, args->high, err));
        args->has_box = true;
    }
    args->kind = input->points ? VXD_SURFACE_POINTS : VXD_SURFACE_MESH;
    args->min_weight = input->min_weight;
    args->first = input->first < SIZE_MAX ? (size_t)input->first : SIZE_MAX;
    args->limit = input->limit < SIZE_MAX ? (size_t)input->limit : SIZE_MAX;
    request->cost_bytes = estimate(request, args->limit);
out:
    return status;
}

/* --- arrays ------------------------------------------------------------------------------- */

/* Refuses a surface that is more than a reply may have. A file is made of the arrays, beside them.
 * errors  RESOURCE_EXHAUSTED */
static enum vxd_status check_size(const struct extract_job *job, bool is_file,
                                  struct vxd_err *err)
{
    size_t most = is_file ? VXD_VOLUME_REPLY_BYTES / 2 : VXD_VOLUME_REPLY_BYTES;
    bool has_colour =
        job->base.volume->spec.has_colour || job->base.volume->spec.has_albedo;
    const struct vxd_surface_counts *n = &job->part.n;
    uint64_t n_bytes = (uint64_t)n->n_vertices * (has_colour ? 28 : 25) +
                       (uint64_t)n->n_triangles * 13 + (uint64_t)n->n_blocks * 16;

    if (n_bytes > most) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "box",
                        "the surface has %zu vertices and %zu triangles, %llu bytes; a "
                        "reply holds %zu: ask for boxes of it",
                        n->n_vertices, n->n_triangles, (unsigned long long)n_bytes, most);
    }
    return VXD_OK;
}

/* Refuses what would hold the lane for long.
 * errors  RESOURCE_EXHAUSTED */
static enum vxd_status check_work(const struct vxd_queue *queue,
                                  const struct vxd_volume_info *info,
                                  const struct vxd_surface_args *args,
                                  struct vxd_err *err)
{
    bool is_cuda = vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA;
    uint64_t edge = (uint64_t)info->spec.block_edge;
    uint64_t most = (is_cuda ? MAX_VOXELS_CUDA : MAX_VOXELS_CPU) / (edge * edge * edge);
    uint64_t left = args->first < info->n_blocks ? info->n_blocks - args->first : 0;
    uint64_t n = args->limit > 0 && args->limit < left ? args->limit : left;

    if (n > most) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "limit",
                        "%llu blocks are asked for, at most %llu are looked at in one "
                        "request: go through them with first and limit",
                        (unsigned long long)n, (unsigned long long)most);
    }
    return VXD_OK;
}

static void set_counts(struct vxd_request *request)
{
    const struct extract_job *job = request->state;
    const struct vxd_surface_counts *n = &job->part.n;
    Voxeld__V1__VolumeExtractResponse *reply = reply_of(request);
    struct vxd_volume_info info;

    vxd_volume_get_info(job->base.volume->state.volume, &info);
    reply->stamp = info.version;
    reply->is_whole = job->part.args.since == 0;
    reply->n_vertices = n->n_vertices;
    reply->n_triangles = n->n_triangles;
    reply->n_blocks = n->n_blocks;
    reply->n_colours = job->part.n_colours;
    reply->n_labels = job->part.n_labels;
    if (n->next < n->n_listed) {
        reply->next = n->next;
    }
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__VolumeExtractRequest *input =
        (const Voxeld__V1__VolumeExtractRequest *)request->input;
    Voxeld__V1__VolumeExtractResponse *reply = reply_of(request);
    struct extract_job *job = request->state;
    struct vxd_volume_surface *part = &job->part;
    const struct vxd_volume_surface_tensors tensors = {
        .vertices = &reply->vertices,
        .normals = &reply->normals,
        .colours = &reply->colours,
        .labels = &reply->labels,
        .triangles = &reply->triangles,
        .blocks = &reply->blocks,
    };
    struct vxd_volume_info info;
    enum vxd_status status;

    VXD_TRY(vxd_volume_open(request, input->name, err));
    VXD_TRY(vxd_volume_check_albedo(job->base.volume, input->albedo, err));
    part->has_albedo = input->albedo;
    vxd_volume_get_info(job->base.volume->state.volume, &info);
    part->args.since = input->since > info.version || info.removed_version > input->since
                           ? 0
                           : input->since;
    VXD_TRY(check_work(queue, &info, &part->args, err));
    VXD_TRY(vxd_volume_surface_count(queue, job->base.volume, part, err));
    VXD_TRY(check_size(job, is_ply(request), err));
    /* A file is made of the columns instead of tensors. */
    VXD_TRY(vxd_volume_surface_write(request, queue, part,
                                     is_ply(request) ? NULL : &tensors, err));
    if (is_ply(request)) {
        const struct vxd_volume_mesh mesh = {.n_vertices = part->n.n_vertices,
                                             .n_triangles = part->n.n_triangles,
                                             .colours = part->colours->device};

        VXD_TRY(vxd_host_alloc(vxd_queue_context(queue), vxd_volume_ply_bytes(&mesh),
                               &job->ply, err));
    }
    set_counts(request);
out:
    return status;
}

/* The file instead of the arrays. */
static void write_ply(struct extract_job *job, Voxeld__V1__VolumeExtractResponse *reply)
{
    const struct vxd_volume_surface *part = &job->part;
    const struct vxd_volume_mesh mesh = {
        .n_vertices = part->n.n_vertices,
        .n_triangles = part->n.n_triangles,
        .vertices = part->vertices->bytes,
        .normals = part->normals->bytes,
        .colours = part->colours->n_bytes > 0 ? part->colours->bytes : NULL,
        .triangles = part->triangles->bytes};

    vxd_volume_write_ply(&mesh, job->ply.ptr);
    reply->ply.data = job->ply.ptr;
    reply->ply.len = job->ply.n_bytes;
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    (void)queue;
    (void)err;
    reply_of(request)->engine_ms = (double)request->engine_ns / 1e6;
    if (is_ply(request)) {
        write_ply(request->state, reply_of(request));
    }
    return VXD_OK;
}

/* All of a surface is written at once, since what its rows are of is counted by then. */
const struct vxd_query_calls vxd_volume_extract_query = {.begin = begin, .end = end};

void vxd_volume_extract_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct extract_job *job = request->state;

    vxd_host_free(vxd_queue_context(queue), &job->ply);
    vxd_volume_surface_free(queue, &job->part);
    vxd_volume_release(request, queue);
}
