// SPDX-License-Identifier: Apache-2.0
/* Copies the data directory while it is in use; lists and removes such copies. It is one stage on a lane that takes bulk
 * requests. The lane waits for the disk, and no other lane does. */
#include "server/durable/maintenance/maintenance.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/observe/log/log.h"
#include "server/registry/registry.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "voxeld/v1/admin.pb-c.h"
#include "voxeld/v1/backup.pb-c.h"

#define MAX_LISTED 1000

enum vxd_status vxd_backup_list_check(struct vxd_request *request, struct vxd_err *err)
{
    request->bulk = true;
    return vxd_registry_get_journal(request->server->registry) != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                          "the server keeps nothing: it has no data_dir");
}

static enum vxd_status check_name(struct vxd_request *request, const char *name,
                                  struct vxd_err *err)
{
    return vxd_is_name(name) ? vxd_backup_list_check(request, err)
                             : vxd_fail(err, VXD_INVALID_ARGUMENT, "name",
                                        "\"%.63s\" is no name: " VXD_NAME_RULE, name);
}

enum vxd_status vxd_backup_check(struct vxd_request *request, struct vxd_err *err)
{
    return check_name(request, ((const Voxeld__V1__BackupRequest *)request->input)->name,
                      err);
}

enum vxd_status vxd_backup_drop_check(struct vxd_request *request, struct vxd_err *err)
{
    return check_name(request,
                      ((const Voxeld__V1__BackupDropRequest *)request->input)->name, err);
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

static Voxeld__V1__BackupInfo *make_info(struct vxd_request *request, const char *folder,
                                         const struct vxd_backup_entry *entry,
                                         struct vxd_err *err)
{
    Voxeld__V1__BackupInfo *info =
        vxd_message_new(request->decoder, &voxeld__v1__backup_info__descriptor, err);
    char path[VXD_DURABLE_PATH_BYTES + VXD_NAME_BYTES];
    char database[sizeof path + 16];
    struct stat made;

    if (info == NULL) {
        return NULL;
    }
    (void)snprintf(path, sizeof path, "%s/%s", folder, entry->name);
    (void)snprintf(database, sizeof database, "%s/voxeld.db", path);
    info->name =
        vxd_message_text(request->decoder, entry->name, strlen(entry->name), err);
    info->path = vxd_message_text(request->decoder, path, strlen(path), err);
    if (info->name == NULL || info->path == NULL) {
        return NULL;
    }
    if (stat(database, &made) == 0) {
        info->made_ns = made.st_mtim.tv_sec * INT64_C(1000000000) + made.st_mtim.tv_nsec;
    }
    info->n_database_bytes = entry->n_database_bytes;
    info->n_snapshot_bytes = entry->n_snapshot_bytes;
    info->n_snapshots = entry->n_snapshots;
    info->n_file_bytes = entry->n_file_bytes;
    info->n_files = entry->n_files;
    return info;
}

enum vxd_status vxd_backup_list_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    const struct vxd_data_dir *dir = vxd_registry_get_data_dir(request->server->registry);
    Voxeld__V1__BackupListResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__backup_list_response__descriptor, err);
    struct vxd_backup_entry *entries =
        vxd_message_array(request->decoder, MAX_LISTED, sizeof *entries, err);
    char folder[VXD_DURABLE_PATH_BYTES];
    struct statvfs disk;
    size_t n = 0;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL || entries == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    (void)snprintf(folder, sizeof folder, "%s/backups", dir->path);
    VXD_TRY(vxd_backup_list(dir, folder, entries, MAX_LISTED, &n, err));
    reply->backups = vxd_message_pointers(request->decoder, n, err);
    if (reply->backups == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (; reply->n_backups < n; reply->n_backups++) {
        Voxeld__V1__BackupInfo *info =
            make_info(request, folder, &entries[reply->n_backups], err);

        if (info == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        reply->backups[reply->n_backups] = info;
    }
    if (statvfs(dir->path, &disk) == 0) {
        reply->n_free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    }
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_backup_drop_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__BackupDropRequest *input =
        (const Voxeld__V1__BackupDropRequest *)request->input;
    const struct vxd_registry *registry = request->server->registry;
    const struct vxd_data_dir *dir = vxd_registry_get_data_dir(registry);
    Voxeld__V1__BackupDropResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__backup_drop_response__descriptor, err);
    char path[VXD_DURABLE_PATH_BYTES];
    bool existed = false;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    (void)snprintf(path, sizeof path, "%s/backups/%s", dir->path, input->name);
    VXD_TRY(
        vxd_backup_drop(dir, vxd_registry_get_journal(registry), path, &existed, err));
    reply->existed = existed;
    request->output = &reply->base;
    if (existed) {
        vxd_log(VXD_LOG_INFO, "backup removed", "path", path, "by",
                request->principal.name);
    }
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
