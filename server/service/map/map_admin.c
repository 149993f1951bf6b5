// SPDX-License-Identifier: Apache-2.0
/* Maps as a whole: create, drop, list, get. */
#include <inttypes.h>

#include "server/instance/instance.h"
#include "server/registry/registry.h"
#include "server/service/map/map.h"
#include "server/service/existing/existing.h"
#include "server/service/service.h"

enum {
    MAX_INFO_BYTES = 8192 /* of one MapInfo with all that it may have */
};

/* --- create ---------------------------------------------------------------------------- */

struct create_job {
    struct vxd_map_job base; /* first: request->state is both */
    struct vxd_named_terms terms;
    struct vxd_map_spec spec;
    Voxeld__V1__MapCreateResponse *reply;
};

static enum vxd_status read_durability(const struct vxd_request *request,
                                       const Voxeld__V1__MapCreateRequest *input,
                                       struct vxd_named_terms *terms, struct vxd_err *err)
{
    if (protobuf_c_enum_descriptor_get_value(&voxeld__v1__map_fsync__descriptor,
                                             (int)input->fsync) == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "fsync",
                        "is %d; known: MAP_FSYNC_ALWAYS, MAP_FSYNC_EVERYSEC, "
                        "MAP_FSYNC_OFF",
                        (int)input->fsync);
    }
    if (!input->durable) {
        return input->fsync == VOXELD__V1__MAP_FSYNC__MAP_FSYNC_ALWAYS &&
                       input->journal_max_bytes == 0
                   ? VXD_OK
                   : vxd_fail(err, VXD_INVALID_ARGUMENT,
                              input->journal_max_bytes > 0 ? "journal_max_bytes"
                                                           : "fsync",
                              "goes with durable");
    }
    if (vxd_registry_get_journal(request->server->registry) == NULL) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "durable",
                        "the server keeps nothing: it has no data_dir");
    }
    if (terms->ttl_ns > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "ttl_s",
                        "must be 0 of a durable map, which lasts until it is dropped");
    }
    if (input->journal_max_bytes > VXD_JOURNAL_MAX_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "journal_max_bytes",
                        "is %" PRIu64 ", at most 2^63 - 1 is possible",
                        input->journal_max_bytes);
    }
    terms->durable = true;
    terms->fsync = (enum vxd_fsync)input->fsync;
    terms->journal_max_bytes =
        input->journal_max_bytes > 0 ? input->journal_max_bytes : VXD_NAMED_JOURNAL_BYTES;
    return VXD_OK;
}

enum vxd_status vxd_map_create_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapCreateRequest *input =
        (const Voxeld__V1__MapCreateRequest *)request->input;
    struct create_job *job = vxd_message_array(request->decoder, 1, sizeof *job, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_map_read_terms(request, input->name, input->max_bytes, input->ttl_s,
                               &job->terms, err));
    VXD_TRY(read_durability(request, input, &job->terms, err));
    VXD_TRY(
        vxd_map_read_spec(input->spec, input->lattice, input->capacity, &job->spec, err));
    request->cost_bytes = vxd_hashmap_bytes(request->server->context, &job->spec.engine);
    request->state = job;
out:
    return status;
}

static void compare_specs(const struct vxd_map_spec *has,
                          const struct vxd_map_spec *wished,
                          struct vxd_differing *differing)
{
    static const char *const axes[2][3] = {
        {"lattice.size.x", "lattice.size.y", "lattice.size.z"},
        {"lattice.origin.x", "lattice.origin.y", "lattice.origin.z"}};

    vxd_differing_other(differing, "key_dtype",
                        has->engine.key_dtype != wished->engine.key_dtype);
    vxd_differing_number(differing, "key_components", has->engine.n_components,
                         wished->engine.n_components);
    vxd_differing_number(differing, "values' arrays", has->engine.n_values,
                         wished->engine.n_values);
    vxd_differing_flag(differing, "lattice", has->has_lattice, wished->has_lattice);
    for (int i = 0; i < 3 && has->has_lattice && wished->has_lattice; i++) {
        vxd_differing_number(differing, axes[0][i], has->size_m[i], wished->size_m[i]);
        vxd_differing_number(differing, axes[1][i], has->origin_m[i],
                             wished->origin_m[i]);
    }
    /* Names and types of arrays, or the frame. */
    vxd_differing_other(differing, "values",
                        differing->n == 0 && !vxd_map_spec_equal(has, wished));
}

/* errors  ALREADY_EXISTS  says which parameters of the map are others */
static enum vxd_status check_equal(const struct vxd_map *map,
                                   const struct create_job *job, struct vxd_err *err)
{
    const struct vxd_named_terms *has = &map->named.terms;
    const struct vxd_named_terms *wished = &job->terms;
    struct vxd_differing differing = {.n = 0};

    compare_specs(&map->spec, &job->spec, &differing);
    vxd_differing_number(&differing, "max_bytes", (double)has->max_bytes,
                         (double)wished->max_bytes);
    vxd_differing_number(&differing, "ttl_s", (double)has->ttl_ns / 1e9,
                         (double)wished->ttl_ns / 1e9);
    vxd_differing_flag(&differing, "durability", has->durable, wished->durable);
    if (has->durable && wished->durable) {
        vxd_differing_other(&differing, "durability.fsync", has->fsync != wished->fsync);
        vxd_differing_number(&differing, "journal_max_bytes",
                             (double)has->journal_max_bytes,
                             (double)wished->journal_max_bytes);
    }
    return vxd_differing_check(&differing, "map", has->name, err);
}

enum vxd_status vxd_map_create_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    struct create_job *job = request->state;
    struct vxd_names *maps = request->server->maps;
    struct vxd_map *map = vxd_maps_find(maps, job->terms.name);
    enum vxd_status status;

    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__map_create_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (map != NULL) {
        job->base.map = map;
        vxd_named_hold(&map->named);
        VXD_TRY(vxd_named_check_visible(&map->named, err));
    }
    if (map != NULL) {
        VXD_TRY(check_equal(map, job, err));
    }
    job->reply->existed = map != NULL;
    if (map == NULL) {
        VXD_TRY(vxd_map_new(maps, queue, &job->terms, &job->spec, NULL, &job->base.made,
                            err));
        map = job->base.made;
        VXD_TRY(vxd_named_enter_journal(&map->named, err));
    }
    status = vxd_map_new_info(request->decoder, map, &job->reply->map, err);
out:
    return status;
}

enum vxd_status vxd_map_create_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    struct create_job *job = request->state;

    (void)queue;
    (void)err;
    request->output = &job->reply->base;
    if (job->base.made != NULL) {
        vxd_named_publish(&job->base.made->named);
        vxd_map_conclude(request, &job->base.commit, job->base.made, VXD_NAMED_MADE);
    } else {
        vxd_map_conclude(request, &job->base.commit, job->base.map, VXD_NAMED_READ);
    }
    return VXD_OK;
}

/* --- drop ------------------------------------------------------------------------------ */

enum vxd_status vxd_map_drop_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapDropRequest *input =
        (const Voxeld__V1__MapDropRequest *)request->input;
    struct vxd_map_job *job;
    enum vxd_status status = vxd_map_check_name(input->name, "name", err);

    return status == VXD_OK ? vxd_map_job_new(request, &job, err) : status;
}

enum vxd_status vxd_map_drop_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__MapDropRequest *input =
        (const Voxeld__V1__MapDropRequest *)request->input;
    Voxeld__V1__MapDropResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__map_drop_response__descriptor, err);
    const struct vxd_map_job *job = request->state;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    status = vxd_map_open(request, input->name, err);
    if (status == VXD_NOT_FOUND && input->missing_ok) {
        status = VXD_OK;
    }
    if (status == VXD_UNAVAILABLE && !job->map->named.durable.is_leaving &&
        job->map->named.durable.n_waiting == 0) {
        status =
            VXD_OK; /* a map that cannot be brought back from the disk may be dropped */
    }
    if (status == VXD_OK && job->map != NULL) {
        status = vxd_named_check_journal(&job->map->named, 0, err);
    }
    request->output = &reply->base;
    return status;
}

enum vxd_status vxd_map_drop_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct vxd_map_job *job = request->state;

    (void)err;
    if (job->map == NULL) {
        return VXD_OK;
    }
    ((Voxeld__V1__MapDropResponse *)request->output)->existed = true;
    if (job->map->named.terms.durable) {
        vxd_map_conclude(request, &job->commit, job->map, VXD_NAMED_DROPPED);
    } else {
        vxd_named_remove(&job->map->named, queue);
    }
    return VXD_OK;
}

/* --- list ------------------------------------------------------------------------------ */

enum vxd_status vxd_map_list_check(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_map_job *job;

    return vxd_map_job_new(request, &job, err);
}

enum vxd_status vxd_map_list_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct vxd_names *maps = request->server->maps;
    struct vxd_map_job *job = request->state;
    Voxeld__V1__MapListResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__map_list_response__descriptor, err);
    struct vxd_names_usage usage;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    /* The arena is not the request's decoder, whose budget depends on the request's size. */
    vxd_names_get_usage(maps, &usage);
    status = vxd_decoder_create((usage.n + 1) * MAX_INFO_BYTES, NULL, &job->arena, err);
    if (status != VXD_OK) {
        return status;
    }
    reply->maps = vxd_message_pointers(job->arena, usage.n, err);
    if (reply->maps == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (struct vxd_named *n = vxd_names_next(maps, NULL); n != NULL;
         n = vxd_names_next(maps, n)) {
        struct vxd_err why;

        (void)vxd_named_check_visible(n,
                                      &why); /* brings it back where that is possible */
        status = vxd_map_new_info(job->arena, (const struct vxd_map *)n,
                                  &reply->maps[reply->n_maps], err);
        if (status != VXD_OK) {
            return status;
        }
        reply->n_maps++;
    }
    reply->n_bytes = usage.n_bytes;
    reply->limit_bytes = usage.limit_bytes;
    request->output = &reply->base;
    return VXD_OK;
}

enum vxd_status vxd_map_list_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct vxd_map_job *job = request->state;

    (void)queue;
    (void)err;
    vxd_map_conclude(request, &job->commit, NULL, VXD_NAMED_READ);
    return VXD_OK;
}

/* --- get ------------------------------------------------------------------------------- */

enum vxd_status vxd_map_get_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapGetRequest *input =
        (const Voxeld__V1__MapGetRequest *)request->input;
    struct vxd_map_job *job;
    enum vxd_status status = vxd_map_check_name(input->name, "name", err);

    return status == VXD_OK ? vxd_map_job_new(request, &job, err) : status;
}

enum vxd_status vxd_map_get_submit(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    const Voxeld__V1__MapGetRequest *input =
        (const Voxeld__V1__MapGetRequest *)request->input;
    Voxeld__V1__MapGetResponse *reply =
        vxd_message_new(request->decoder, &voxeld__v1__map_get_response__descriptor, err);
    struct vxd_map *map = vxd_maps_peek(request->server->maps, input->name);
    struct vxd_map_job *job = request->state;
    struct vxd_hashmap_stats stats;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (map == NULL) {
        return vxd_missing_map(request, "name", input->name, err);
    }
    if (map->named.terms.durable) {
        job->map = map; /* this does not count as a use of the map */
        vxd_named_hold(&map->named);
        VXD_TRY(vxd_named_check_visible(&map->named, err));
    }
    VXD_TRY(vxd_map_new_info(request->decoder, map, &reply->map, err));
    VXD_TRY(vxd_hashmap_get_stats(queue, map->hashmap, &stats, err));
    reply->map->load = stats.load;
    reply->map->mean_probes = stats.mean_probes;
    reply->map->max_probes = stats.max_probes;
    reply->map->index_bytes_per_entry = stats.bytes_per_key;
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_map_get_finish(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    struct vxd_map_job *job = request->state;

    (void)queue;
    (void)err;
    if (job->map != NULL) {
        vxd_map_conclude(request, &job->commit, job->map, VXD_NAMED_READ);
    }
    return VXD_OK;
}
