// SPDX-License-Identifier: Apache-2.0
/* What the methods of field.proto share: finding the field that a request needs, and bringing it
 * up to the version that the request has pinned. */
#ifndef VXD_SERVER_SERVICE_FIELD_SERVICE_FIELD_H
#define VXD_SERVER_SERVICE_FIELD_SERVICE_FIELD_H

#include "server/registry/fields/registry_fields.h"
#include "server/service/scene/scene.h"
#include "voxeld/v1/field.pb-c.h"

enum {
    /* How far outside of the scene, in voxels, a request may reach. */
    VXD_FIELD_OUTSIDE = 1024,
    /* What SURFACE and contacts need beyond a distance (gpu/field/field.h). */
    VXD_FIELD_SURFACE_SPARE = 2
};

struct vxd_field_job {
    struct vxd_scene_job base; /* first: request->state is both */
    struct vxd_field_want want;
    const char
        *asked_by; /* the request's field that errors name where the field is too large */
    struct vxd_kept_field *kept;
    bool is_ready; /* the field may be asked */
    size_t next_part;
};

/* Fills in what is wanted, but for the box, once the scene is open. The distance is rounded up to
 * voxels; 0 stands for two metres or what a field reaches, if that is less. `least` voxels are
 * reached in any case, and `spare` more.
 * errors  INVALID_ARGUMENT  more than a field reaches; err.field is `field` */
enum vxd_status vxd_field_set_terms(struct vxd_field_job *job,
                                    Voxeld__V1__FieldUnknown unknown,
                                    double max_distance_m, double least, int spare,
                                    const char *field, struct vxd_err *err);

/* The largest distance that replies give, in metres. */
double vxd_field_reach_m(const struct vxd_field_job *job, int spare);

/* A box that grows by what a request asks about, in voxels of the scene. Begins empty. */
struct vxd_field_box {
    double low[3];
    double high[3];
};
struct vxd_field_box vxd_field_box_empty(void);
void vxd_field_box_add(struct vxd_field_box *box, const double at[3], double around);

/* Sets the box that is wanted: this one, larger by the distance; an empty one is some block. It
 * must lie within VXD_FIELD_OUTSIDE of the scene. */
void vxd_field_set_box(struct vxd_field_job *job, const struct vxd_field_box *box);

/* One stage on the way to the field: claims it, or does parts of its update. For vxd_query_calls.
 * errors  RESOURCE_EXHAUSTED  the field would be too large */
enum vxd_status vxd_field_prepare(struct vxd_request *request, struct vxd_queue *queue,
                                  bool *is_ready, struct vxd_err *err);

/* The field that is ready. */
const struct vxd_field *vxd_field_of(const struct vxd_field_job *job);

/* Whether the engine is a GPU: then one stage takes more. */
bool vxd_field_on_gpu(const struct vxd_request *request);

/* Gives field and scene back, in finish and in release. */
void vxd_field_close(struct vxd_request *request, struct vxd_queue *queue);

#endif
