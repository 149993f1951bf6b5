// SPDX-License-Identifier: Apache-2.0
/* The memory of one request on a map. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/map/map.h"
#include "server/service/existing/existing.h"
#include "server/service/service.h"

enum vxd_status vxd_map_job_new(struct vxd_request *request, struct vxd_map_job **out,
                                struct vxd_err *err)
{
    *out = vxd_message_array(request->decoder, 1, sizeof **out, err);
    request->state = *out;
    return *out != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_map_open(struct vxd_request *request, const char *name,
                             struct vxd_err *err)
{
    struct vxd_map_job *job = request->state;

    job->map = vxd_maps_find(request->server->maps, name);
    if (job->map == NULL) {
        return vxd_missing_map(request, "name", name, err);
    }
    vxd_named_hold(&job->map->named);
    return vxd_named_check_visible(&job->map->named, err);
}

enum vxd_status vxd_map_take_device(struct vxd_map_job *job, struct vxd_queue *queue,
                                    size_t n_bytes, void **out, struct vxd_err *err)
{
    struct vxd_buffer *buffer = &job->device[job->n_device];
    enum vxd_status status = vxd_device_alloc(queue, n_bytes, buffer, err);

    if (status == VXD_OK) {
        job->n_device++;
        *out = buffer->ptr;
    }
    return status;
}

enum vxd_status vxd_map_take_host(struct vxd_map_job *job, struct vxd_queue *queue,
                                  size_t n_bytes, void **out, struct vxd_err *err)
{
    struct vxd_buffer *buffer = &job->host[job->n_host];
    enum vxd_status status =
        vxd_host_alloc(vxd_queue_context(queue), n_bytes, buffer, err);

    if (status == VXD_OK) {
        job->n_host++;
        *out = buffer->ptr;
    }
    return status;
}

enum vxd_status vxd_map_upload(struct vxd_map_job *job, struct vxd_queue *queue,
                               const void *host, size_t n_bytes, const void **out,
                               struct vxd_err *err)
{
    enum vxd_status status =
        vxd_upload(queue, host, n_bytes, &job->device[job->n_device], out, err);

    job->n_device += status == VXD_OK ? 1 : 0;
    return status;
}

void vxd_map_settle(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_map_job *job = request->state;
    size_t n_entries;

    /* Nothing is queued, so it cannot report a fault, but it may lack memory for the
     * question. */
    if (vxd_hashmap_size(queue, job->map->hashmap, &n_entries, NULL) == VXD_OK) {
        job->map->n_entries = n_entries;
    }
    vxd_named_account(&job->map->named);
}

void vxd_map_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_map_job *job = request->state;
    struct vxd_context *context = vxd_queue_context(queue);

    vxd_columns_free(&job->query.columns, queue);
    for (size_t i = 0; i < job->n_device; i++) {
        vxd_device_free(queue, &job->device[i]);
    }
    for (size_t i = 0; i < job->n_host; i++) {
        vxd_host_free(context, &job->host[i]);
    }
    if (job->image.context != NULL) {
        vxd_hashmap_image_free(&job->image);
    }
    vxd_decoder_destroy(job->arena);
    job->arena = NULL;
    vxd_named_end_commit(&job->commit);
    if (job->map != NULL) {
        /* The map may have grown before a failure. */
        vxd_named_account(&job->map->named);
        vxd_named_drop(&job->map->named, queue);
    }
    if (job->made != NULL) {
        vxd_named_drop(&job->made->named, queue);
    }
}
