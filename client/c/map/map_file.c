// SPDX-License-Identifier: Apache-2.0
/* Writes the entries of a map to a PLY file. */
#include "client/c/call/call.h"
#include "client/c/include/voxeld_map.h"

static enum vxd_status
write_file(const char *path, const struct voxeld_map_result *result, struct vxd_err *err)
{
    struct vxd_out_file file;
    enum vxd_status status = vxd_out_file_open(path, &file, err);

    if (status == VXD_OK) {
        status = vxd_out_file_write(&file, result->ply, result->n_ply_bytes, err);
    }
    return vxd_out_file_end(&file, status, err);
}

enum voxeld_status voxeld_map_export_file(struct voxeld_client *client,
                                          const struct voxeld_map_export_request *request,
                                          const char *path, uint64_t *n_entries,
                                          struct voxeld_error *error)
{
    struct voxeld_map_export_request as_ply = *request;
    struct voxeld_map_result *result = NULL;
    struct vxd_err err = {0};
    enum voxeld_status status;

    if (path == NULL) {
        (void)vxd_fail(&err, VXD_INVALID_ARGUMENT, "path", "is NULL");
        return vxd_client_error(&err, "", error);
    }
    as_ply.as_ply = true;
    status = voxeld_map_export(client, &as_ply, &result, error);
    if (status != VOXELD_OK) {
        return status;
    }
    if (write_file(path, result, &err) != VXD_OK) {
        status = vxd_client_error(&err, result->request_id, error);
    } else if (n_entries != NULL) {
        *n_entries = result->n_entries;
    }
    voxeld_map_result_free(result);
    return status;
}
