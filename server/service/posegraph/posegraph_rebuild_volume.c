// SPDX-License-Identifier: Apache-2.0
/* A volume made anew. Keyframes are integrated, as scans are, into an engine's volume of the same
 * parameters, which then takes the other one's place; of a durable one the journal has that all its blocks
 * go and which ones come. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/posegraph/posegraph_rebuild.h"
#include "server/service/service.h"

#define DEFAULT_RANGE_MAX_M 100 /* as of VolumeIntegratePoints */

enum vxd_status vxd_rebuild_open_volume(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRebuildRequest *input = vxd_rebuild_input(request);
    struct vxd_rebuild_job *job = request->state;
    struct vxd_named_volume *volume =
        vxd_volumes_find(request->server->volumes, input->volume);
    struct vxd_volume_info info;
    enum vxd_status status;

    if (volume == NULL) {
        return vxd_missing_volume(request, "volume", input->volume, err);
    }
    vxd_named_hold(&volume->named);
    job->base.volume.volume = volume;
    VXD_TRY(vxd_named_check_visible(&volume->named, err));
    vxd_volume_get_info(volume->state.volume, &info);
    job->volume.engine = volume->state.volume;
    job->volume.version = info.version;
    (void)vxd_fail(&job->volume.over_limit, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                   "the keyframes' blocks do not fit beside those that are there");
    vxd_names_explain(request->server->volumes, &volume->named.terms, NULL,
                      &job->volume.over_limit);
    status = vxd_named_volume_begin_anew(volume, queue, &job->volume.made, err);
out:
    return status;
}

/* Of a volume that forgets its farthest blocks: forgets some for a scan that was refused. */
static bool forget_for(struct vxd_rebuild_job *job, struct vxd_queue *queue,
                       enum vxd_status status, const struct vxd_volume_scan *scan)
{
    const struct vxd_named_terms *terms = &job->base.volume.volume->named.terms;
    struct vxd_err why = {0};
    int32_t *keys = NULL;
    size_t n_keys = 0;
    bool has_forgotten = terms->forgets && status == VXD_RESOURCE_EXHAUSTED &&
                         vxd_volume_forget_farthest(queue, job->volume.made,
                                                    scan->T_map_sensor.translation, &keys,
                                                    &n_keys, &why) == VXD_OK &&
                         n_keys > 0;

    free(keys);
    return has_forgotten;
}

enum vxd_status vxd_rebuild_integrate(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRebuildRequest *input = vxd_rebuild_input(request);
    struct vxd_rebuild_job *job = request->state;
    const struct vxd_rebuild_keyframe *at = &job->keyframes[job->n_done];
    struct vxd_volume *volume = job->volume.made;
    struct vxd_volume_scan scan = {
        .n_points = at->keyframe->n_points,
        .time_column = -1,
        .normal_column = -1,
        .label_column = -1,
        .range_min_m = input->range_min_m,
        .range_max_m = input->range_max_m > 0 ? input->range_max_m : DEFAULT_RANGE_MAX_M,
        .carve_m = input->carve_m,
        .weight = input->weight};
    struct vxd_volume_scan_result result = {.n_used = 0};
    const void *points = NULL;
    enum vxd_status status = VXD_OK;

    if (scan.n_points == 0) {
        return VXD_OK;
    }
    vxd_rebuild_pose(&at->T_map_node, &scan.T_map_sensor);
    VXD_TRY(vxd_upload(queue, at->keyframe->points, scan.n_points * 3 * sizeof(float),
                       &job->volume.points, &points, err));
    scan.points = points;
    status = vxd_volume_integrate_scan(queue, volume, &scan, &result, err);
    if (forget_for(job, queue, status, &scan)) {
        status = vxd_volume_integrate_scan(queue, volume, &scan, &result, err);
    }
    if (status == VXD_RESOURCE_EXHAUSTED && err != NULL &&
        strcmp(err->field, "max_bytes") == 0) {
        *err = job->volume.over_limit;
    }
    job->reply->n_used += result.n_used;
out:
    (void)vxd_queue_wait(queue, NULL);
    vxd_device_free(queue, &job->volume.points);
    return status;
}

static enum vxd_status check_unchanged(const struct vxd_request *request,
                                       struct vxd_err *err)
{
    const struct vxd_rebuild_job *job = request->state;
    const struct vxd_named_volume *volume = job->base.volume.volume;
    struct vxd_volume_info info;

    vxd_volume_get_info(volume->state.volume, &info);
    if (info.version == job->volume.version &&
        volume->state.volume == job->volume.engine &&
        vxd_volumes_peek(request->server->volumes, volume->named.terms.name) == volume) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_ABORTED, NULL,
                    "the volume \"%s\" was changed while it was made anew",
                    volume->named.terms.name);
}

enum vxd_status vxd_rebuild_replace_volume(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_rebuild_job *job = request->state;
    struct vxd_volume_info info;
    enum vxd_status status;

    VXD_TRY(vxd_named_check_visible(&job->base.volume.volume->named, err));
    VXD_TRY(check_unchanged(request, err));
    VXD_TRY(vxd_volume_enlist(request, err));
    vxd_volume_get_info(job->volume.made, &info);
    job->reply->n_blocks = info.n_blocks;
    job->reply->stamp = info.version;
    job->base.volume.commit.entry.replaces = true;
    vxd_named_volume_replace(job->base.volume.volume, queue, job->volume.made,
                             job->n_keyframes);
    job->volume.made = NULL;
out:
    return status;
}

void vxd_rebuild_release_volume(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_rebuild_job *job = request->state;

    vxd_device_free(queue, &job->volume.points);
    vxd_volume_destroy(queue, job->volume.made);
    job->volume.made = NULL;
    vxd_volume_release(request, queue);
}
