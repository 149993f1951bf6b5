// SPDX-License-Identifier: Apache-2.0
/* A surface as columns of a reply: all of one that was extracted, or the part that a watcher lacks. */
#include "server/service/volume/volume_service.h"

enum vxd_status vxd_volume_check_albedo(const struct vxd_named_volume *volume,
                                        bool has_albedo, struct vxd_err *err)
{
    return !has_albedo || volume->spec.has_albedo
               ? VXD_OK
               : vxd_fail(err, VXD_FAILED_PRECONDITION, "albedo",
                          "the volume \"%s\" keeps no albedo", volume->named.terms.name);
}

enum vxd_status vxd_volume_surface_count(struct vxd_queue *queue,
                                         const struct vxd_named_volume *volume,
                                         struct vxd_volume_surface *surface,
                                         struct vxd_err *err)
{
    const struct vxd_volume_spec *spec = &volume->spec;
    enum vxd_status status;

    VXD_TRY(vxd_surface_create(queue, volume->state.volume, &surface->args,
                               &surface->counted, err));
    vxd_surface_get_counts(surface->counted, &surface->n);
    surface->n_colours =
        spec->has_colour || surface->has_albedo ? surface->n.n_vertices : 0;
    surface->n_labels = spec->has_labels ? surface->n.n_vertices : 0;
out:
    return status;
}

enum vxd_status vxd_volume_surface_write(struct vxd_request *request,
                                         struct vxd_queue *queue,
                                         struct vxd_volume_surface *surface,
                                         const struct vxd_volume_surface_tensors *tensors,
                                         struct vxd_err *err)
{
    struct vxd_query *query = request->state;
    static const struct vxd_volume_surface_tensors none;
    const struct vxd_volume_surface_tensors *to = tensors != NULL ? tensors : &none;
    const struct vxd_surface_counts *n = &surface->n;
    bool has_rows = !surface->keys_only;
    const struct {
        enum vxd_dtype dtype;
        size_t n;
        size_t n_elements;
        Voxeld__V1__Tensor **tensor;
        struct vxd_column **column;
    } columns[] = {
        {VXD_FLOAT32, has_rows ? n->n_vertices : 0, 3, to->vertices, &surface->vertices},
        {VXD_FLOAT32, has_rows ? n->n_vertices : 0, 3, to->normals, &surface->normals},
        {VXD_UINT8, has_rows ? surface->n_colours : 0, 3, to->colours, &surface->colours},
        {VXD_UINT8, has_rows ? surface->n_labels : 0, 0, to->labels, &surface->labels},
        {VXD_INT32, has_rows ? n->n_triangles : 0, 3, to->triangles, &surface->triangles},
        {VXD_INT32, n->n_blocks, 4, to->blocks, &surface->blocks},
    };
    struct vxd_surface_outputs out;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        VXD_TRY(vxd_columns_reserve_shown(
            request, &query->columns, queue, columns[i].dtype, columns[i].n,
            columns[i].n_elements, columns[i].tensor, columns[i].column, err));
    }
    if (surface->counted == NULL) {
        return VXD_OK;
    }
    out = (struct vxd_surface_outputs){.blocks = surface->blocks->device};
    if (has_rows) {
        out.vertices = surface->vertices->device;
        out.normals = surface->normals->device;
        out.colours = surface->colours->device;
        out.has_albedo = surface->has_albedo;
        out.labels = surface->labels->device;
        out.triangles = surface->triangles->device;
    }
    VXD_TRY(vxd_surface_write(queue, surface->counted, &out, err));
out:
    return status;
}

void vxd_volume_surface_free(struct vxd_queue *queue, struct vxd_volume_surface *surface)
{
    vxd_surface_destroy(queue, surface->counted);
    surface->counted = NULL;
}
