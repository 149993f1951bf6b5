// SPDX-License-Identifier: Apache-2.0
/* Finds the surface that a watcher of a volume does not know yet. A watcher's point is a version of the
 * volume; or, within a round that began at to_version, how many of the listed blocks it has seen. Blocks
 * keep their order while none is removed, and one that changes meanwhile comes once more in the next
 * round, so a round that ends makes the surface whole as of its beginning or later. A removal ends no
 * round: a watcher that is slow against removals gets to the end of one all the same, and then begins
 * anew. Where the volume was brought back from the disk, blocks may have another order, so the round
 * begins again. */
#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/noun/noun.h"
#include "server/service/service.h"
#include "server/service/volume/service_volume.h"
#include "server/service/watch/watch.h"

/* WatchPoint.first: the volume's order above, the number of the block below. */
#define ORDER_SHIFT 40
#define FIRST_MASK ((UINT64_C(1) << ORDER_SHIFT) - 1)
#define DEFAULT_BYTES ((uint32_t)1 << 20)
/* Voxels that one stage looks at, and what an engine needs for a part, about. */
#define STAGE_VOXELS ((uint64_t)1 << 25)
#define STAGE_BYTES ((uint64_t)96 << 20)

struct watch_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_volume_surface part;
    struct vxd_watcher watcher;
    struct vxd_decoder *arena; /* of the heads; NULL: none */
    Voxeld__V1__WatchKind kind;
    uint64_t generation;
    uint64_t version;    /* the newest; 0: there is no such volume */
    uint64_t to_version; /* where the round began; 0: no blocks come */
    uint64_t order;      /* of the volume's blocks */
};

static const Voxeld__V1__VolumeWatchRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__VolumeWatchRequest *)request->input;
}

static bool watches_all(const struct vxd_request *request)
{
    return input_of(request)->name[0] == '\0';
}

/* --- check -------------------------------------------------------------------------------- */

static enum vxd_status check_name(const Voxeld__V1__VolumeWatchRequest *input,
                                  struct vxd_err *err)
{
    if (input->name[0] != '\0') {
        return vxd_noun_check_name(input->name, "name", err);
    }
    return input->box != NULL || input->min_weight > 0 || input->points ||
                   input->albedo || input->keys_only
               ? vxd_fail(err, VXD_INVALID_ARGUMENT, "name",
                          "is required with a box, min_weight, points, albedo or "
                          "keys_only: there are no blocks of all volumes")
               : VXD_OK;
}

static void set_args(const Voxeld__V1__VolumeWatchRequest *input,
                     struct vxd_volume_surface *part)
{
    uint32_t max_bytes = input->max_bytes > 0 ? input->max_bytes : DEFAULT_BYTES;
    bool has_rows = !input->keys_only;

    part->has_albedo = input->albedo;
    part->keys_only = input->keys_only;
    part->args.kind = input->points ? VXD_SURFACE_POINTS : VXD_SURFACE_MESH;
    part->args.min_weight = input->min_weight;
    part->args.max_bytes = max_bytes;
    part->args.vertex_bytes = has_rows ? 6 * sizeof(float) : 0;
    part->args.triangle_bytes = has_rows ? 3 * sizeof(int32_t) : 0;
    part->args.block_bytes = 4 * sizeof(int32_t);
}

enum vxd_status vxd_volume_watch_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeWatchRequest *input = input_of(request);
    struct vxd_names_usage usage;
    struct vxd_volume_surface *part;
    enum vxd_status status;

    request->state =
        vxd_message_array(request->decoder, 1, sizeof(struct watch_job), err);
    if (request->state == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    part = &((struct watch_job *)request->state)->part;
    VXD_TRY(check_name(input, err));
    VXD_TRY(vxd_watch_check_point(input->after, err));
    set_args(input, part);
    if (input->box != NULL) {
        VXD_TRY(vxd_volume_read_box(input->box, part->args.low, part->args.high, err));
        part->args.has_box = true;
    }
    if (watches_all(request)) {
        request->lane = VXD_LANE_READ;
        return VXD_OK;
    }
    vxd_names_get_usage(request->server->volumes, &usage);
    request->bulk = true;
    request->cost_bytes = (usage.n_bytes < STAGE_BYTES ? usage.n_bytes : STAGE_BYTES) +
                          part->args.max_bytes;
out:
    return status;
}

/* --- waiting ------------------------------------------------------------------------------ */

static bool is_newer(const struct vxd_request *request)
{
    const Voxeld__V1__VolumeWatchRequest *input = input_of(request);
    const Voxeld__V1__WatchPoint *after = input->after;
    struct vxd_named_head head;

    if (input->name[0] == '\0') {
        return vxd_watch_volume_heads_are_newer(request->server, after->generation,
                                                after->version);
    }
    if (!vxd_names_get_head(request->server->volumes, input->name, &head)) {
        return after->version > 0 || after->to_version > 0;
    }
    return after->to_version > 0 || head.generation != after->generation ||
           head.version != after->version;
}

enum vxd_status vxd_volume_watch_prerequisite(struct vxd_request *request, bool *waits,
                                              struct vxd_err *err)
{
    const Voxeld__V1__VolumeWatchRequest *input = input_of(request);
    const struct vxd_watch_terms terms = {.noun = VXD_WATCH_VOLUMES,
                                          .name = input->name,
                                          .has_after = input->after != NULL,
                                          .timeout_ms = input->timeout_ms,
                                          .is_newer = is_newer};
    struct watch_job *job = request->state;

    return vxd_watch_wait(request, &terms, &job->watcher, waits, err);
}

void vxd_volume_watch_forget(struct vxd_request *request)
{
    struct watch_job *job = request->state;

    vxd_watch_forget(request, &job->watcher);
}

/* --- looking ------------------------------------------------------------------------------ */

static void get_version(const struct vxd_named_volume *volume, struct watch_job *job,
                        uint64_t *removed_version)
{
    struct vxd_volume_info info;

    vxd_volume_get_info(volume->state.volume, &info);
    job->generation = volume->named.generation;
    job->version = info.version;
    job->order = volume->order;
    *removed_version = info.removed_version;
}

/* Begins a round: the blocks after `since`. */
static void begin_round(struct watch_job *job, Voxeld__V1__WatchKind kind, uint64_t since)
{
    job->kind = kind;
    job->part.args.since = since;
    job->part.args.first = 0;
    job->to_version = job->version;
}

/* Decides what a watcher gets of a volume. */
static void choose(const Voxeld__V1__WatchPoint *after, uint64_t removed_version,
                   struct watch_job *job)
{
    uint64_t known = after == NULL            ? 0
                     : after->to_version == 0 ? after->version
                                              : after->to_version;
    bool is_other =
        after == NULL || after->generation != job->generation || known > job->version;
    bool goes_on = after != NULL && after->to_version > 0 &&
                   after->first >> ORDER_SHIFT == job->order;
    bool has_lost = after != NULL && !goes_on && after->version != job->version &&
                    removed_version > after->version;

    if (known == 0 && after != NULL) {
        begin_round(job, VOXELD__V1__WATCH_KIND__WATCH_CREATED, 0);
    } else if (is_other || has_lost) {
        begin_round(job, VOXELD__V1__WATCH_KIND__WATCH_RESYNC, 0);
    } else if (goes_on) {
        job->kind = VOXELD__V1__WATCH_KIND__WATCH_BLOCKS;
        job->part.args.since = after->version;
        job->part.args.first = (size_t)(after->first & FIRST_MASK);
        job->to_version = after->to_version;
    } else if (after->version == job->version) {
        job->kind = VOXELD__V1__WATCH_KIND__WATCH_UNCHANGED;
        job->to_version = 0;
    } else {
        begin_round(job, VOXELD__V1__WATCH_KIND__WATCH_BLOCKS, after->version);
    }
}

/* How much of the volume a part has at most. */
static void add_bytes(struct watch_job *job)
{
    const struct vxd_volume_spec *spec = &job->base.volume->spec;
    struct vxd_surface_args *args = &job->part.args;
    size_t edge = (size_t)spec->block_edge;

    args->limit = (size_t)(STAGE_VOXELS / (edge * edge * edge));
    if (!job->part.keys_only) {
        args->vertex_bytes += spec->has_colour || job->part.has_albedo ? 3 : 0;
        args->vertex_bytes += spec->has_labels ? 1 : 0;
    }
}

/* Finds the volume, and holds it where blocks of it are to be read: only that is a use of it. */
static enum vxd_status look(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeWatchRequest *input = input_of(request);
    const Voxeld__V1__WatchPoint *after = input->after;
    const struct vxd_named_volume *volume =
        vxd_volumes_peek(request->server->volumes, input->name);
    struct watch_job *job = request->state;
    uint64_t removed_version = 0;
    enum vxd_status status = VXD_OK;

    if (volume == NULL && after == NULL) {
        return vxd_missing_volume(request, "name", input->name, err);
    }
    if (volume == NULL) {
        job->kind = after->version > 0 || after->to_version > 0
                        ? VOXELD__V1__WATCH_KIND__WATCH_DROPPED
                        : VOXELD__V1__WATCH_KIND__WATCH_UNCHANGED;
        job->generation = after->generation;
        return VXD_OK;
    }
    get_version(volume, job, &removed_version);
    choose(after, removed_version, job);
    if (job->kind != VOXELD__V1__WATCH_KIND__WATCH_UNCHANGED) {
        /* A durable volume may have to be brought back first, and is another one then. */
        VXD_TRY(vxd_volume_open(request, input->name, err));
        VXD_TRY(vxd_volume_check_albedo(job->base.volume, input->albedo, err));
        get_version(job->base.volume, job, &removed_version);
        choose(after, removed_version, job);
        add_bytes(job);
    }
out:
    return status;
}

static struct vxd_volume_surface_tensors
tensors_of(Voxeld__V1__VolumeWatchResponse *reply)
{
    return (struct vxd_volume_surface_tensors){.vertices = &reply->vertices,
                                               .normals = &reply->normals,
                                               .colours = &reply->colours,
                                               .labels = &reply->labels,
                                               .triangles = &reply->triangles,
                                               .blocks = &reply->blocks};
}

static Voxeld__V1__VolumeWatchResponse *reply_of(const struct vxd_request *request)
{
    return (Voxeld__V1__VolumeWatchResponse *)((const struct vxd_query *)request->state)
        ->reply;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    struct watch_job *job = request->state;

    (void)queue;
    if (job->watcher.is_over) { /* on a read lane */
        job->kind = VOXELD__V1__WATCH_KIND__WATCH_UNCHANGED;
        job->generation = input_of(request)->after->generation;
        job->version = input_of(request)->after->version;
        return VXD_OK;
    }
    return look(request, err);
}

/* Looks at blocks until some are chosen, or none is left. */
static enum vxd_status prepare(struct vxd_request *request, struct vxd_queue *queue,
                               bool *is_ready, struct vxd_err *err)
{
    const struct vxd_volume_surface_tensors tensors = tensors_of(reply_of(request));
    struct watch_job *job = request->state;
    struct vxd_volume_surface *part = &job->part;
    uint64_t removed_version = 0;
    enum vxd_status status;

    if (job->to_version > 0 && job->base.volume->order != job->order) {
        /* It was brought back from the disk since the last stage, and its blocks lie in another order. */
        get_version(job->base.volume, job, &removed_version);
        choose(input_of(request)->after, removed_version, job);
    }
    if (job->to_version > 0) {
        VXD_TRY(vxd_volume_surface_count(queue, job->base.volume, part, err));
        *is_ready = part->n.n_blocks > 0 || part->n.next >= part->n.n_listed;
        if (!*is_ready) {
            part->args.first = part->n.next;
            vxd_volume_surface_free(queue, part);
            return VXD_OK;
        }
    }
    VXD_TRY(vxd_volume_surface_write(request, queue, part, &tensors, err));
out:
    return status;
}

/* --- the reply ---------------------------------------------------------------------------- */

/* Where the watcher goes on. */
static void set_next(const struct watch_job *job, Voxeld__V1__WatchPoint *next)
{
    next->generation = job->generation;
    next->version = job->to_version > 0 ? job->to_version : job->version;
    if (job->to_version > 0 && job->part.n.next < job->part.n.n_listed) {
        next->version = job->part.args.since;
        next->to_version = job->to_version;
        next->first = job->order << ORDER_SHIFT | job->part.n.next;
    }
}

static enum vxd_status show_place(struct vxd_request *request,
                                  const struct vxd_volume_spec *spec,
                                  Voxeld__V1__VolumeWatchResponse *reply,
                                  struct vxd_err *err)
{
    reply->origin = vxd_message_new(request->decoder, &voxeld__v1__vec3__descriptor, err);
    if (reply->origin == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->origin->x = spec->origin_m[0];
    reply->origin->y = spec->origin_m[1];
    reply->origin->z = spec->origin_m[2];
    reply->voxel_size_m = spec->voxel_size_m;
    reply->block = (uint32_t)spec->block_edge;
    return VXD_OK;
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    const struct watch_job *job = request->state;
    const struct vxd_volume_surface *part = &job->part;
    Voxeld__V1__VolumeWatchResponse *reply = reply_of(request);
    enum vxd_status status = VXD_OK;

    (void)queue;
    reply->next =
        vxd_message_new(request->decoder, &voxeld__v1__watch_point__descriptor, err);
    if (reply->next == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (job->base.volume != NULL) {
        VXD_TRY(show_place(request, &job->base.volume->spec, reply, err));
    }
    reply->kind = job->kind;
    set_next(job, reply->next);
    if (job->to_version > 0) {
        reply->from_version = part->args.since;
        reply->to_version = job->to_version;
    }
    reply->n_blocks = part->n.n_blocks;
    if (!part->keys_only) {
        reply->n_vertices = part->n.n_vertices;
        reply->n_triangles = part->n.n_triangles;
        reply->n_colours = part->n_colours;
        reply->n_labels = part->n_labels;
    }
    reply->engine_ms = (double)request->engine_ns / 1e6;
out:
    return status;
}

const struct vxd_query_calls vxd_volume_watch_query = {
    .begin = begin, .prepare = prepare, .end = end};

enum vxd_status vxd_volume_watch_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    return watches_all(request) ? VXD_OK : vxd_query_submit(request, queue, err);
}

enum vxd_status vxd_volume_watch_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct watch_job *job = request->state;

    return watches_all(request) ? vxd_watch_volume_heads_reply(request, &job->arena, err)
                                : vxd_query_finish(request, queue, err);
}

void vxd_volume_watch_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct watch_job *job = request->state;

    vxd_decoder_destroy(job->arena);
    job->arena = NULL;
    vxd_volume_surface_free(queue, &job->part);
    vxd_volume_release(request, queue);
    vxd_watch_end_look(request, &job->watcher);
}
