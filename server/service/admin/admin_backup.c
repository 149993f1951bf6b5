// SPDX-License-Identifier: Apache-2.0
/* Copies the data directory while it is in use. It is one stage on a lane that takes bulk
 * requests. The lane waits for the disk, and no other lane does. */
#include "server/durable/maintenance/maintenance.h"

#include <errno.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/observe/log/log.h"
#include "server/registry/registry.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "voxeld/v1/admin.pb-c.h"

enum vxd_status vxd_backup_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__BackupRequest *input =
        (const Voxeld__V1__BackupRequest *)request->input;

    request->bulk = true;
    if (!vxd_is_name(input->name)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "name",
                        "\"%.63s\" must be [a-z0-9][a-z0-9._-]{0,62}", input->name);
    }
    return vxd_registry_get_journal(request->server->registry) != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                          "the server keeps nothing: it has no data_dir");
}

/* Chooses the backup's path in DIR/backups, which is made where it is missing. */
static enum vxd_status choose_path(const struct vxd_data_dir *dir, const char *name,
                                   char path[VXD_DURABLE_PATH_BYTES], struct vxd_err *err)
{
    int made;

    (void)snprintf(path, VXD_DURABLE_PATH_BYTES, "%s/backups", dir->path);
    made = dir->ops->make_directory(dir->ops->user, path, 0700);
    if (made != 0 && made != -EEXIST) {
        return vxd_file_fail(err, made, "make", path);
    }
    (void)snprintf(path, VXD_DURABLE_PATH_BYTES, "%s/backups/%s", dir->path, name);
    return VXD_OK;
}

enum vxd_status vxd_backup_submit(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_err *err)
{
    const Voxeld__V1__BackupRequest *input =
        (const Voxeld__V1__BackupRequest *)request->input;
    const struct vxd_registry *registry = request->server->registry;
    const struct vxd_data_dir *dir = vxd_registry_get_data_dir(registry);
    Voxeld__V1__BackupResponse *reply =
        vxd_message_new(request->decoder, &voxeld__v1__backup_response__descriptor, err);
    char *path = vxd_message_array(request->decoder, VXD_DURABLE_PATH_BYTES, 1, err);
    int64_t since_ns = vxd_clock_ns();
    struct vxd_backup_info info;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL || path == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(choose_path(dir, input->name, path, err));
    VXD_TRY(vxd_backup(dir, vxd_registry_get_journal(registry), path, &info, err));
    reply->path = path;
    reply->n_database_bytes = info.n_database_bytes;
    reply->n_snapshot_bytes = info.n_snapshot_bytes;
    reply->n_snapshots = info.n_snapshots;
    reply->n_linked = info.n_linked;
    reply->elapsed_ms = (double)(vxd_clock_ns() - since_ns) / 1e6;
    request->output = &reply->base;
    vxd_log(VXD_LOG_INFO, "backup made", "path", path, "by", request->principal.name);
out:
    return status;
}

enum vxd_status vxd_backup_finish(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_err *err)
{
    (void)request;
    (void)queue;
    (void)err;
    return VXD_OK;
}
