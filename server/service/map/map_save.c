// SPDX-License-Identifier: Apache-2.0
/* Save and load. Both run to their end on the write lane, disk included: a map cannot change
 * while it is saved, and two saves of one file end in their order. */
#include "server/instance/instance.h"
#include "server/service/map/map.h"
#include "server/service/service.h"
#include "server/registry/maps/maps.h"

struct file_job {
    struct vxd_map_job base; /* first: request->state is both */
    struct vxd_named_terms terms;
    const char *file;
    struct vxd_map *replaced;
};

static enum vxd_status check_file(struct vxd_request *request, const char *name,
                                  const char *file, struct vxd_err *err)
{
    struct file_job *job = request->state;
    enum vxd_status status = vxd_map_check_name(name, "name", err);

    job->file = file[0] != '\0' ? file : name;
    if (status == VXD_OK) {
        status = vxd_map_check_name(job->file, "file", err);
    }
    if (status == VXD_OK && request->server->config.data_dir[0] == '\0') {
        status = vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                          "the server has no data_dir, so it keeps no maps on disk");
    }
    return status;
}

static struct file_job *new_job(struct vxd_request *request, struct vxd_err *err)
{
    struct file_job *job = vxd_message_array(request->decoder, 1, sizeof *job, err);

    request->state = job;
    return job;
}

/* --- save ------------------------------------------------------------------------------ */

enum vxd_status vxd_map_save_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapSaveRequest *input =
        (const Voxeld__V1__MapSaveRequest *)request->input;

    return new_job(request, err) != NULL
               ? check_file(request, input->name, input->file, err)
               : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_map_save_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__MapSaveRequest *input =
        (const Voxeld__V1__MapSaveRequest *)request->input;
    struct file_job *job = request->state;
    Voxeld__V1__MapSaveResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__map_save_response__descriptor, err);
    struct vxd_map_file_info info = {0};
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->file = vxd_message_text(request->decoder, job->file, strlen(job->file), err);
    if (reply->file == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_map_open(request, input->name, err));
    VXD_TRY(vxd_hashmap_export(queue, job->base.map->hashmap, &job->base.image, err));
    if (!vxd_map_file_size(&job->base.map->spec, job->base.image.n_entries,
                           &info.n_bytes)) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "file", "no file is so large"));
    }
    VXD_TRY(vxd_map_file_check_quota(request->server->config.data_dir, job->file,
                                     info.n_bytes, request->server->config.saved_bytes,
                                     err));
    VXD_TRY(vxd_map_file_write(request->server->config.data_dir, job->file,
                               &job->base.map->spec, &job->base.image, &info, err));
    reply->n_bytes = info.n_bytes;
    reply->n_entries = job->base.image.n_entries;
    reply->digest = info.digest;
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_map_save_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct file_job *job = request->state;

    (void)queue;
    (void)err;
    vxd_map_conclude(request, &job->base.commit, job->base.map, VXD_NAMED_READ);
    return VXD_OK;
}

/* --- load ------------------------------------------------------------------------------ */

enum vxd_status vxd_map_load_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__MapLoadRequest *input =
        (const Voxeld__V1__MapLoadRequest *)request->input;
    struct file_job *job = new_job(request, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(check_file(request, input->name, input->file, err));
    status = vxd_map_read_terms(request, input->name, input->max_bytes, input->ttl_s,
                                &job->terms, err);
out:
    return status;
}

enum vxd_status vxd_map_load_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__MapLoadRequest *input =
        (const Voxeld__V1__MapLoadRequest *)request->input;
    struct file_job *job = request->state;
    struct vxd_server *server = request->server;
    Voxeld__V1__MapLoadResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__map_load_response__descriptor, err);
    struct vxd_hashmap_image *image = &job->base.image;
    struct vxd_hashmap *hashmap = NULL;
    struct vxd_map_file_info info = {0};
    struct vxd_map_spec spec;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    job->replaced = vxd_maps_find(server->maps, job->terms.name);
    if (job->replaced != NULL && !input->replace) {
        VXD_TRY(vxd_fail(err, VXD_ALREADY_EXISTS, "name",
                         "there is a map \"%s\"; say replace to have it replaced",
                         job->terms.name));
    }
    if (job->replaced != NULL && job->replaced->named.terms.durable) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "replace",
                         "the map \"%s\" is durable; drop it first", job->terms.name));
    }
    VXD_TRY(vxd_map_file_read(server->context, server->config.data_dir, job->file, &spec,
                              image, &info, err));
    image->spec.max_bytes = vxd_names_allowance(server->maps, &job->terms, NULL);
    status = vxd_hashmap_import(queue, image, &hashmap, err);
    if (status != VXD_OK) {
        vxd_names_explain(server->maps, &job->terms, NULL, err);
        goto out;
    }
    VXD_TRY(vxd_map_new(server->maps, queue, &job->terms, &spec, hashmap, &job->base.made,
                        err));
    job->base.made->n_entries = image->n_entries;
    reply->replaced = job->replaced != NULL;
    VXD_TRY(vxd_map_new_info(request->decoder, job->base.made, &reply->map, err));
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_map_load_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct file_job *job = request->state;

    (void)err;
    if (job->replaced != NULL) {
        vxd_named_remove(&job->replaced->named, queue);
    }
    vxd_named_publish(&job->base.made->named);
    return VXD_OK;
}
