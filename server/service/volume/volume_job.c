// SPDX-License-Identifier: Apache-2.0
/* The memory of one request on a volume. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

enum vxd_status vxd_volume_open(struct vxd_request *request, const char *name,
                                struct vxd_err *err)
{
    struct vxd_volume_job *job = request->state;

    job->volume = vxd_volumes_find(request->server->volumes, name);
    if (job->volume == NULL) {
        return vxd_missing_volume(request, "name", name, err);
    }
    vxd_named_hold(&job->volume->named);
    return vxd_volume_enlist(request, err);
}

void vxd_volume_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_volume_job *job = request->state;

    vxd_columns_free(&job->query.columns, queue);
    vxd_volume_end_commit(queue, &job->commit);
    free(job->forgotten);
    job->forgotten = NULL;
    if (job->volume != NULL) {
        /* The volume may have grown before a failure. */
        vxd_named_account(&job->volume->named);
        vxd_named_drop(&job->volume->named, queue);
        job->volume = NULL;
    }
    if (job->made != NULL) {
        vxd_named_drop(&job->made->named, queue);
        job->made = NULL;
    }
}
