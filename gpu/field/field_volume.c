// SPDX-License-Identifier: Apache-2.0
/* Fields of volumes: checks, and dispatch by backend. */
#include "gpu/field/field_backends.h"
#include "gpu/field/field_volume_math.h"

static enum vxd_status read_volume(struct vxd_queue *queue, const struct vxd_field *field,
                                   const struct vxd_field_part *part,
                                   const struct vxd_field_source *source,
                                   struct vxd_err *err)
{
    struct vxd_field_bits_call call = {.field = field->view,
                                       .min_weight = source->min_weight,
                                       .first_x = part->first * VXD_FIELD_BLOCK,
                                       .n_x =
                                           (part->last - part->first) * VXD_FIELD_BLOCK,
                                       .occupied = field->occupied,
                                       .free = field->free};

    vxd_volume_get_view(source->volume, &call.volume);
    return VXD_BACKEND_FN(queue, vxd_field_volume_bits)(queue, &call, err);
}

enum vxd_status vxd_field_update_volume(struct vxd_queue *queue, struct vxd_field *field,
                                        const struct vxd_volume *volume,
                                        double min_weight, size_t first, size_t n,
                                        struct vxd_err *err)
{
    const struct vxd_field_source source = {.read = read_volume,
                                            .tracks_free = true,
                                            .volume = volume,
                                            .min_weight = (float)min_weight};

    return vxd_field_update_from(queue, field, &source, first, n, err);
}

enum vxd_status vxd_field_query_volume(struct vxd_queue *queue,
                                       const struct vxd_field *field,
                                       const struct vxd_volume *volume, double min_weight,
                                       const double *points, size_t n, float *distances,
                                       float *gradients, struct vxd_err *err)
{
    struct vxd_field_surface_call call = {.field = field->view,
                                          .min_weight = (float)min_weight,
                                          .n = n,
                                          .points = points,
                                          .distances = distances,
                                          .gradients = gradients};

    if (n == 0) {
        return VXD_OK;
    }
    if (points == NULL || distances == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        points == NULL ? "points" : "distances", "missing");
    }
    vxd_volume_get_view(volume, &call.volume);
    return VXD_BACKEND_FN(queue, vxd_field_query_surface)(queue, &call, err);
}
