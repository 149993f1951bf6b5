// SPDX-License-Identifier: Apache-2.0
/* Checks what of replies about scenes does not follow from the schema. The server is not trusted. */
#include "client/c/call/exchange.h"
#include "client/c/include/voxeld_version.h"

enum vxd_status vxd_scene_check_hits(const struct voxeld_scene_found *found,
                                     struct vxd_err *err)
{
    return found->n_hits <= found->n
               ? VXD_OK
               : vxd_reply_bad(err, "n_hits", "more than there are rows");
}

/* Versions must fall, so that a caller that goes on below the last one comes to an end. */
enum vxd_status vxd_scene_check_log(const struct voxeld_scene_log *log,
                                    struct vxd_err *err)
{
    for (size_t i = 1; i < log->n_versions; i++) {
        if (log->versions[i].version >= log->versions[i - 1].version) {
            return vxd_reply_bad(err, "versions", "not newest first");
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_scene_check_diff(const struct voxeld_scene_diff *diff,
                                     struct vxd_err *err)
{
    return diff->n <= diff->n_cells ? VXD_OK
                                    : vxd_reply_bad(err, "cells", "more than there are");
}

/* Finds the extents of a dense array. */
static enum vxd_status open_dense(const Voxeld__V1__SceneExportResponse *in,
                                  struct voxeld_scene_cells *cells, struct vxd_err *err)
{
    const void *data = NULL;
    enum vxd_status status;

    if (in->states == NULL || in->states->n_shape != 3 || in->n_low_cell != 3) {
        return vxd_reply_bad(err, "states", "no array of three axes and its low cell");
    }
    for (size_t i = 0; i < 3; i++) {
        if (in->states->shape[i] < 0) {
            return vxd_reply_bad(err, "states", "a negative extent");
        }
        cells->shape[i] = (size_t)in->states->shape[i];
        cells->low_cell[i] = in->low_cell[i];
    }
    VXD_TRY(vxd_reply_tensor(in->states, "states", VOXELD__V1__DTYPE__UINT8, cells->shape,
                             3, &data, err));
    cells->states = data;
    /* No overflow: the states are in memory. */
    cells->n = cells->shape[0] * cells->shape[1] * cells->shape[2];
out:
    return status;
}

enum vxd_status vxd_scene_open_cells(const Voxeld__V1__SceneExportResponse *in,
                                     struct voxeld_scene_cells *cells,
                                     struct vxd_err *err)
{
    bool is_dense = cells->cells == NULL && cells->ply == NULL;
    const void *data = NULL;
    enum vxd_status status = VXD_OK;

    if (is_dense) {
        VXD_TRY(open_dense(in, cells, err));
    } else if (cells->n > cells->n_cells) {
        return vxd_reply_bad(err, "cells", "more than there are");
    }
    if (in->materials != NULL && cells->ply == NULL) {
        VXD_TRY(vxd_reply_tensor(in->materials, "materials", VOXELD__V1__DTYPE__UINT16,
                                 is_dense ? cells->shape : &cells->n, is_dense ? 3 : 1,
                                 &data, err));
    }
    cells->materials = data;
out:
    return status;
}
