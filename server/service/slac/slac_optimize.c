// SPDX-License-Identifier: Apache-2.0
/* An alignment, stage by stage: names and surfaces on the write lane, steps on a read lane, and the
 * grid as a map on the write lane again. Other requests run between the stages. Nothing that others
 * see changes before finish. */
#include "gpu/surface/surface.h"
#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/slac/slac_service.h"

/* --- the write lane ---------------------------------------------------------------------- */

/* Refuses a name that is taken. */
static enum vxd_status check_name(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SlacOptimizeRequest *input =
        (const Voxeld__V1__SlacOptimizeRequest *)request->input;
    struct vxd_slac_optimize_job *job = request->state;

    if (input->rigid) {
        return VXD_OK;
    }
    job->replaced = vxd_maps_find(request->server->maps, job->terms.name);
    if (job->replaced != NULL && !input->replace) {
        return vxd_fail(err, VXD_ALREADY_EXISTS, "name",
                        "there is a map \"%s\"; say replace to have it replaced",
                        job->terms.name);
    }
    if (job->replaced != NULL && job->replaced->named.terms.durable) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "replace",
                        "the map \"%s\" is durable; drop it first", job->terms.name);
    }
    return VXD_OK;
}

static enum vxd_status hold_volumes(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SlacOptimizeRequest *input =
        (const Voxeld__V1__SlacOptimizeRequest *)request->input;
    struct vxd_slac_optimize_job *job = request->state;
    struct vxd_names *volumes = request->server->volumes;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < input->n_volumes; i++) {
        struct vxd_named_volume *volume = vxd_volumes_find(volumes, input->volumes[i]);

        if (volume == NULL) {
            char field[32];

            (void)snprintf(field, sizeof field, "volumes[%zu]", i);
            return vxd_fail(err, VXD_NOT_FOUND, field, "there is no volume \"%s\"",
                            input->volumes[i]);
        }
        vxd_named_hold(&volume->named);
        job->parts[i].volume = volume;
    }
    return status;
}

static enum vxd_status upload(struct vxd_queue *queue, const float *host, size_t n,
                              struct vxd_buffer *out, const float **device,
                              struct vxd_err *err)
{
    size_t n_bytes = 3 * n * sizeof(float);
    enum vxd_status status = vxd_device_alloc(queue, n_bytes, out, err);

    if (status == VXD_OK) {
        *device = out->ptr;
        status = vxd_queue_copy(queue, out->ptr, host, n_bytes, err);
    }
    return status;
}

/* Uploads the clouds. */
static enum vxd_status upload_clouds(struct vxd_queue *queue,
                                     struct vxd_slac_optimize_job *job,
                                     struct vxd_err *err)
{
    size_t first = 0;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < job->n_parts; i++) {
        struct vxd_slac_fragment *fragment = &job->fragments[i];

        VXD_TRY(upload(queue, job->points + 3 * first, fragment->n, &job->parts[i].points,
                       &fragment->points, err));
        if (job->normals != NULL) {
            VXD_TRY(upload(queue, job->normals + 3 * first, fragment->n,
                           &job->parts[i].normals, &fragment->normals, err));
        }
        first += fragment->n;
    }
out:
    return status;
}

static enum vxd_status open_job(struct vxd_request *request, struct vxd_queue *queue,
                                struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(vxd_slac_jobs_begin(request->server->slac, job->terms.name, job->iterations,
                                &job->id, err));
    job->began_ns = vxd_clock_ns();
    VXD_TRY(check_name(request, err));
    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__slac_optimize_response__descriptor, err);
    job->losses = vxd_message_array(request->decoder, 4 * ((size_t)job->iterations + 1),
                                    sizeof *job->losses, err);
    if (job->reply == NULL || job->losses == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(hold_volumes(request, err));
    if (job->points != NULL) {
        VXD_TRY(upload_clouds(queue, job, err));
        job->stage = VXD_SLAC_CREATE;
    } else {
        job->stage = VXD_SLAC_SURFACES;
    }
out:
    return status;
}

/* Makes the points of a volume's surface, and lets go of it. Changes of a durable volume have to be on
 * the disk first: *waits until they are. */
static enum vxd_status make_surface(struct vxd_request *request, struct vxd_queue *queue,
                                    bool *waits, struct vxd_err *err)
{
    const struct vxd_surface_args args = {.kind = VXD_SURFACE_POINTS};
    struct vxd_slac_optimize_job *job = request->state;
    struct vxd_names *volumes = request->server->volumes;
    struct vxd_slac_part *part = &job->parts[job->n_surfaces];
    struct vxd_slac_fragment *fragment = &job->fragments[job->n_surfaces];
    struct vxd_surface_outputs out = {0};
    struct vxd_surface *surface = NULL;
    struct vxd_surface_counts n;
    enum vxd_status status;

    VXD_TRY(vxd_named_check_visible(&part->volume->named, err));
    *waits = vxd_named_is_waiting(volumes, &part->volume->named);
    if (*waits) {
        return VXD_OK;
    }
    VXD_TRY(vxd_surface_create(queue, part->volume->state.volume, &args, &surface, err));
    vxd_surface_get_counts(surface, &n);
    if (n.n_vertices == 0) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "volumes",
                         "the volume \"%s\" has no surface", part->name));
    }
    VXD_TRY(vxd_device_alloc(queue, n.n_vertices * 12, &part->points, err));
    VXD_TRY(vxd_device_alloc(queue, n.n_vertices * 12, &part->normals, err));
    out.vertices = part->points.ptr;
    out.normals = part->normals.ptr;
    VXD_TRY(vxd_surface_write(queue, surface, &out, err));
    fragment->points = part->points.ptr;
    fragment->normals = part->normals.ptr;
    fragment->n = n.n_vertices;
    memcpy(fragment->origin_m, part->volume->spec.origin_m, sizeof fragment->origin_m);
    vxd_surface_destroy(queue, surface);
    surface = NULL;
    vxd_named_drop(&part->volume->named, queue);
    part->volume = NULL;
    job->n_surfaces++;
out:
    vxd_surface_destroy(queue, surface);
    return status;
}

/* The grid becomes a map that nobody can find yet. */
static enum vxd_status keep_grid(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;
    struct vxd_names *maps = request->server->maps;
    struct vxd_map_spec spec = {
        .array_names = {[VXD_SLAC_OFFSETS] = VXD_SLAC_OFFSET_NAME,
                        [VXD_SLAC_ROTATIONS] = VXD_SLAC_ROTATION_NAME},
        .has_lattice = true};
    struct vxd_hashmap *grid;
    enum vxd_status status;

    VXD_TRY(check_name(request, err));
    for (int i = 0; i < 3; i++) {
        spec.size_m[i] = job->options.cell_m;
    }
    (void)snprintf(spec.frame_id, sizeof spec.frame_id, "fragment");
    grid = vxd_slac_take_grid(job->slac);
    spec.engine = *vxd_hashmap_get_spec(grid);
    if (vxd_hashmap_n_bytes(grid) > vxd_names_allowance(maps, &job->terms, NULL)) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "the control grid takes %zu bytes", vxd_hashmap_n_bytes(grid));
        vxd_names_explain(maps, &job->terms, NULL, err);
        vxd_hashmap_destroy(queue, grid);
        goto out;
    }
    VXD_TRY(vxd_map_new(maps, queue, &job->terms, &spec, grid, &job->base.made, err));
    job->base.made->n_entries = job->reply->n_control_points;
out:
    return status;
}

/* --- a read lane -------------------------------------------------------------------------- */

static void free_parts(struct vxd_queue *queue, struct vxd_slac_optimize_job *job)
{
    for (size_t i = 0; i < job->n_parts; i++) {
        vxd_device_free(queue, &job->parts[i].points);
        vxd_device_free(queue, &job->parts[i].normals);
    }
}

static enum vxd_status create(struct vxd_queue *queue, struct vxd_slac_optimize_job *job,
                              struct vxd_err *err)
{
    const struct vxd_slac_args args = {.fragments = job->fragments,
                                       .n_fragments = job->n_parts,
                                       .edges = job->edges,
                                       .n_edges = job->n_edges,
                                       .options = job->options};
    enum vxd_status status;

    VXD_TRY(vxd_slac_create(queue, &args, &job->slac, err));
    free_parts(queue, job);
    job->stage = VXD_SLAC_PAIRS;
out:
    return status;
}

static enum vxd_status find_pairs(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;
    double *row = job->losses + 4 * (size_t)job->iteration;
    struct vxd_slac_loss loss;
    struct vxd_slac_info info;
    enum vxd_status status;

    VXD_TRY(vxd_slac_find_pairs(queue, job->slac, &loss, err));
    row[0] = loss.data;
    row[1] = loss.regularizer;
    row[2] = (double)loss.n_pairs;
    row[3] = (double)loss.n_edges;
    vxd_slac_get_info(job->slac, &info);
    vxd_slac_jobs_update(request->server->slac, job->id, job->iteration, &loss,
                         info.n_control_points);
    job->stage = job->iteration < job->iterations ? VXD_SLAC_SOLVE : VXD_SLAC_READ;
out:
    return status;
}

static enum vxd_status solve(struct vxd_queue *queue, struct vxd_slac_optimize_job *job,
                             struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_slac_solve(queue, job->slac, err));
    job->iteration++;
    job->stage = VXD_SLAC_PAIRS;
out:
    return status;
}

static enum vxd_status show(struct vxd_request *request, enum vxd_dtype dtype, size_t n,
                            size_t columns, const void *bytes, Voxeld__V1__Tensor **out,
                            struct vxd_err *err)
{
    enum vxd_status status = vxd_map_new_tensor(request, dtype, n, columns, out, err);

    if (status == VXD_OK) {
        (*out)->data.data = (uint8_t *)(uintptr_t)bytes;
        (*out)->data.len = n * columns * vxd_dtype_bytes(dtype);
    }
    return status;
}

static enum vxd_status show_grid(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;
    struct vxd_hashmap_image *image = &job->base.image;
    Voxeld__V1__SlacOptimizeResponse *reply = job->reply;
    enum vxd_status status;

    if (!job->options.is_rigid) {
        VXD_TRY(vxd_hashmap_export(queue, vxd_slac_grid(job->slac), image, err));
    }
    VXD_TRY(show(request, VXD_INT32, image->n_entries, 3, image->keys.ptr, &reply->keys,
                 err));
    VXD_TRY(show(request, VXD_FLOAT32, image->n_entries, 3,
                 image->values[VXD_SLAC_OFFSETS].ptr, &reply->offsets, err));
    VXD_TRY(show(request, VXD_FLOAT32, image->n_entries, 4,
                 image->values[VXD_SLAC_ROTATIONS].ptr, &reply->rotations, err));
out:
    return status;
}

/* Reads poses and grid for the reply. */
static enum vxd_status read_result(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;
    Voxeld__V1__SlacOptimizeResponse *reply = job->reply;
    struct vxd_volume_pose *poses =
        vxd_message_array(request->decoder, job->n_parts, sizeof *poses, err);
    double *rows =
        vxd_message_array(request->decoder, 7 * job->n_parts, sizeof *rows, err);
    struct vxd_slac_info info;
    enum vxd_status status;

    if (poses == NULL || rows == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_slac_read_poses(queue, job->slac, poses, err));
    vxd_slac_write_pose_rows(poses, job->n_parts, rows);
    VXD_TRY(show(request, VXD_FLOAT64, job->n_parts, 7, rows, &reply->poses, err));
    reply->n_losses = (uint64_t)job->iterations + 1;
    VXD_TRY(
        show(request, VXD_FLOAT64, reply->n_losses, 4, job->losses, &reply->losses, err));
    vxd_slac_get_info(job->slac, &info);
    reply->n_points = info.n_points;
    reply->n_edges = info.n_edges;
    reply->n_unknowns = info.n_unknowns;
    reply->n_control_points = info.n_control_points;
    if (((const Voxeld__V1__SlacOptimizeRequest *)request->input)->grid_arrays) {
        VXD_TRY(show_grid(request, queue, err));
    }
    job->stage = VXD_SLAC_KEEP;
out:
    return status;
}

/* --- the stages --------------------------------------------------------------------------- */

static enum vxd_status check_end(const struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_slac_optimize_job *job = request->state;

    if (job->id != 0 && vxd_slac_jobs_is_cancelled(request->server->slac, job->id)) {
        return vxd_fail(err, VXD_CANCELLED, NULL,
                        "the alignment was cancelled after %u of %u steps",
                        job->iteration, job->iterations);
    }
    if (job->id != 0 && vxd_clock_ns() - job->began_ns >= job->max_ns) {
        return vxd_fail(err, VXD_ABORTED, "max_s",
                        "is over after %u of %u steps; nothing has changed",
                        job->iteration, job->iterations);
    }
    return VXD_OK;
}

static enum vxd_status run_stage(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;
    bool waits = false;
    enum vxd_status status;

    VXD_TRY(check_end(request, err));
    switch (job->stage) {
    case VXD_SLAC_OPEN:
        VXD_TRY(open_job(request, queue, err));
        break;
    case VXD_SLAC_SURFACES:
        VXD_TRY(make_surface(request, queue, &waits, err));
        job->stage = job->n_surfaces < job->n_parts ? VXD_SLAC_SURFACES : VXD_SLAC_CREATE;
        /* Others come first between two surfaces. */
        request->is_waiting = job->stage == VXD_SLAC_SURFACES;
        break;
    case VXD_SLAC_CREATE:
        VXD_TRY(create(queue, job, err));
        break;
    case VXD_SLAC_PAIRS:
        VXD_TRY(find_pairs(request, queue, err));
        break;
    case VXD_SLAC_SOLVE:
        VXD_TRY(solve(queue, job, err));
        break;
    case VXD_SLAC_READ:
        VXD_TRY(read_result(request, queue, err));
        break;
    case VXD_SLAC_KEEP:
        if (!job->options.is_rigid) {
            VXD_TRY(keep_grid(request, queue, err));
        }
        request->output = &job->reply->base;
        return VXD_OK;
    }
    request->lane = job->stage >= VXD_SLAC_CREATE && job->stage < VXD_SLAC_KEEP
                        ? VXD_LANE_READ
                        : VXD_LANE_WRITE;
    request->more = true;
out:
    return status;
}

static void end_job(struct vxd_request *request, Voxeld__V1__SlacState state,
                    const char *error)
{
    struct vxd_slac_optimize_job *job = request->state;

    if (job->id != 0 && !job->is_ended) {
        job->is_ended = true;
        vxd_slac_jobs_end(request->server->slac, job->id, state, error);
    }
}

enum vxd_status vxd_slac_optimize_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_err own = {0};
    enum vxd_status status = run_stage(request, queue, &own);

    if (status != VXD_OK) {
        end_job(request,
                status == VXD_CANCELLED ? VOXELD__V1__SLAC_STATE__SLAC_WAS_CANCELLED
                                        : VOXELD__V1__SLAC_STATE__SLAC_FAILED,
                own.message);
        *err = own;
    }
    return status;
}

enum vxd_status vxd_slac_optimize_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_slac_optimize_job *job = request->state;

    (void)err;
    job->reply->replaced = job->replaced != NULL;
    if (job->replaced != NULL) {
        vxd_named_remove(&job->replaced->named, queue);
    }
    if (job->base.made != NULL) {
        vxd_named_publish(&job->base.made->named);
    }
    job->reply->engine_ms = (double)request->engine_ns / 1e6;
    end_job(request, VOXELD__V1__SLAC_STATE__SLAC_DONE, "");
    return VXD_OK;
}

void vxd_slac_optimize_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_slac_optimize_job *job = request->state;

    end_job(request, VOXELD__V1__SLAC_STATE__SLAC_FAILED, "it was given up");
    free_parts(queue, job);
    vxd_slac_destroy(queue, job->slac);
    job->slac = NULL;
    for (size_t i = 0; i < job->n_parts; i++) {
        if (job->parts[i].volume != NULL) {
            vxd_named_drop(&job->parts[i].volume->named, queue);
            job->parts[i].volume = NULL;
        }
    }
    vxd_map_release(request, queue);
}
