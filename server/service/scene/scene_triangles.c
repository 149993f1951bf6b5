// SPDX-License-Identifier: Apache-2.0
/* Triangles as lists of voxels, and the edit that fills them. */
#include <stdlib.h>

#include "server/service/scene/scene.h"

/* Makes one list more, empty. */
static enum vxd_status grow(struct vxd_scene_triangles *triangles, const char *field,
                            const char *too_many, struct vxd_err *err)
{
    size_t n = triangles->n_lists + 1;
    struct vxd_svdag_voxel_list *lists = realloc(triangles->lists, n * sizeof *lists);

    if (lists != NULL) {
        triangles->lists = lists;
        lists[n - 1] = (struct vxd_svdag_voxel_list){0};
    }
    if (lists == NULL || n > VXD_SVDAG_MAX_OPS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, field, "%s", too_many);
    }
    triangles->n_lists = n;
    return VXD_OK;
}

enum vxd_status vxd_scene_list_triangles(struct vxd_request *request,
                                         struct vxd_queue *queue,
                                         const struct vxd_svdag_mesh *mesh,
                                         struct vxd_svdag_mesh_state *state,
                                         struct vxd_scene_triangles *triangles,
                                         const char *field, const char *too_many,
                                         struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;
    struct vxd_svdag_voxel_list *list;
    enum vxd_status status;

    VXD_TRY(grow(triangles, field, too_many, err));
    list = &triangles->lists[triangles->n_lists - 1];
    VXD_TRY(vxd_svdag_list_triangles(queue, &job->scene->spec.format, mesh, state, list,
                                     err));
    VXD_TRY(vxd_queue_wait(queue, err));
    if (list->voxels.n == 0) {
        vxd_svdag_voxel_list_free(queue, list);
        triangles->n_lists--;
    }
out:
    return status;
}

enum vxd_status
vxd_scene_fill_triangles(struct vxd_request *request, struct vxd_queue *queue,
                         struct vxd_scene_triangles *triangles, uint32_t material,
                         struct vxd_svdag_edit_result *result, struct vxd_err *err)
{
    size_t n = triangles->n_lists;
    struct vxd_svdag_op *ops = calloc(n, sizeof *ops);

    if (ops == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an edit");
    }
    for (size_t i = 0; i < n; i++) {
        ops[i].action = VXD_SVDAG_FILL;
        ops[i].value = material;
        ops[i].shape.kind = VXD_SVDAG_VOXELS;
        ops[i].shape.voxels = triangles->lists[i].voxels;
    }
    triangles->ops = ops;
    return vxd_scene_apply(request, queue, VXD_RECORD_EDIT, ops, n, result, err);
}

void vxd_scene_free_triangles(struct vxd_queue *queue,
                              struct vxd_scene_triangles *triangles)
{
    for (size_t i = 0; i < triangles->n_lists; i++) {
        vxd_svdag_voxel_list_free(queue, &triangles->lists[i]);
    }
    free(triangles->lists);
    free(triangles->ops);
    *triangles = (struct vxd_scene_triangles){0};
}
