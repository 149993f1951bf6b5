// SPDX-License-Identifier: Apache-2.0
/* Maps as a whole: create, drop, list, get. */
#include "server/instance/instance.h"
#include "server/service/map/map.h"
#include "server/service/noun/noun.h"
#include "server/service/service.h"

enum {
    MAX_INFO_BYTES = 8192 /* of one MapInfo with all that it may have */
};

/* --- create ---------------------------------------------------------------------------- */

struct create_job {
    struct vxd_noun_create base; /* first: request->state is both */
    struct vxd_map_spec spec;
};

enum vxd_status vxd_map_create_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapCreateRequest *input =
        (const Voxeld__V1__MapCreateRequest *)request->input;
    const struct vxd_noun_durability durability = {.one = "map",
                                                   .durable = input->durable,
                                                   .fsync = (int)input->fsync,
                                                   .journal_max_bytes =
                                                       input->journal_max_bytes};
    struct create_job *job = vxd_message_array(request->decoder, 1, sizeof *job, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_map_read_terms(request, input->name, input->max_bytes, input->ttl_s,
                               &job->base.terms, err));
    VXD_TRY(vxd_noun_read_durability(request, &durability, &job->base.terms, err));
    VXD_TRY(
        vxd_map_read_spec(input->spec, input->lattice, input->capacity, &job->spec, err));
    request->cost_bytes = vxd_hashmap_bytes(request->server->context, &job->spec.engine);
    request->state = job;
out:
    return status;
}

static void compare(const struct vxd_request *request, const struct vxd_named *named,
                    struct vxd_differing *differing)
{
    const struct vxd_map_spec *has = &((const struct vxd_map *)named)->spec;
    const struct vxd_map_spec *wished =
        &((const struct create_job *)request->state)->spec;
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

static enum vxd_status make(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_named **out, struct vxd_err *err)
{
    const struct create_job *job = request->state;
    struct vxd_map *made = NULL;
    enum vxd_status status = vxd_map_new(request->server->maps, queue, &job->base.terms,
                                         &job->spec, NULL, &made, err);

    *out = made != NULL ? &made->named : NULL;
    return status;
}

static const struct vxd_noun_maker maker = {
    .one = "map", .compare = compare, .make = make};

/* --- list, get, drop -------------------------------------------------------------------- */

static struct vxd_names *get_names(const struct vxd_server *server)
{
    return server->maps;
}

static enum vxd_status new_info(struct vxd_request *request, struct vxd_decoder *arena,
                                const struct vxd_named *named, ProtobufCMessage **out,
                                struct vxd_err *err)
{
    Voxeld__V1__MapInfo *info = NULL;
    enum vxd_status status =
        vxd_map_new_info(arena, (const struct vxd_map *)named, &info, err);

    (void)request;
    *out = info != NULL ? &info->base : NULL;
    return status;
}

static enum vxd_status add_load(struct vxd_request *request, struct vxd_queue *queue,
                                const struct vxd_named *named, ProtobufCMessage *message,
                                struct vxd_err *err)
{
    const struct vxd_map *map = (const struct vxd_map *)named;
    Voxeld__V1__MapInfo *info = (Voxeld__V1__MapInfo *)message;
    struct vxd_hashmap_stats stats;
    enum vxd_status status = vxd_hashmap_get_stats(queue, map->hashmap, &stats, err);

    (void)request;
    if (status == VXD_OK) {
        info->load = stats.load;
        info->mean_probes = stats.mean_probes;
        info->max_probes = stats.max_probes;
        info->index_bytes_per_entry = stats.bytes_per_key;
    }
    return status;
}

const struct vxd_noun_service vxd_map_service = {.names = get_names,
                                                 .max_info_bytes = MAX_INFO_BYTES,
                                                 .list_field = "maps",
                                                 .info_field = "map",
                                                 .new_info = new_info,
                                                 .maker = &maker,
                                                 .add_details = add_load,
                                                 .missing = vxd_missing_map};
