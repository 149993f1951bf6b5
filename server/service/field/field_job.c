// SPDX-License-Identifier: Apache-2.0
#include "server/service/field/service_field.h"

#include <math.h>

#include "server/instance/instance.h"
#include "server/service/service.h"

enum {
    /* Boxes of fields end at multiples of this, so that near requests share them. */
    BOX_STEP = 32,
    GPU_PARTS = 3 /* of an update, in one stage: 64 M voxels in all three passes, 4 ms */
};

#define DEFAULT_DISTANCE_M 2.0

enum vxd_status vxd_field_set_terms(struct vxd_field_job *job,
                                    Voxeld__V1__FieldUnknown unknown,
                                    double max_distance_m, double least, int spare,
                                    const char *field, struct vxd_err *err)
{
    double size = job->base.scene->spec.voxel_size_m;
    int most = VXD_FIELD_MAX_DISTANCE - spare;
    double voxels = max_distance_m / size;

    if (max_distance_m == 0) {
        voxels = DEFAULT_DISTANCE_M / size;
        voxels = voxels < most ? voxels : most;
    }
    /* A distance of whole voxels stays one, however it was rounded. */
    voxels = ceil(voxels - 1e-6);
    voxels = voxels > least ? voxels : ceil(least);
    voxels = voxels > 1 ? voxels : 1;
    if (voxels > most) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "needs distances of %.0f voxels; at voxels of %g m at most %g m "
                        "(%d voxels) are possible",
                        voxels, size, most * size, most);
    }
    job->want.generation = job->base.scene->generation;
    job->want.version = job->base.state.version;
    job->want.spec.max_distance = (int)voxels + spare;
    job->want.spec.unknown = (enum vxd_field_unknown)unknown;
    job->want.spec.voxel_size_m = size;
    return VXD_OK;
}

double vxd_field_reach_m(const struct vxd_field_job *job, int spare)
{
    return (job->want.spec.max_distance - spare) * job->want.spec.voxel_size_m;
}

struct vxd_field_box vxd_field_box_empty(void)
{
    return (struct vxd_field_box){{INFINITY, INFINITY, INFINITY},
                                  {-INFINITY, -INFINITY, -INFINITY}};
}

void vxd_field_box_add(struct vxd_field_box *box, const double at[3], double around)
{
    for (int axis = 0; axis < 3; axis++) {
        box->low[axis] = fmin(box->low[axis], at[axis] - around);
        box->high[axis] = fmax(box->high[axis], at[axis] + around);
    }
}

void vxd_field_set_box(struct vxd_field_job *job, const struct vxd_field_box *box)
{
    struct vxd_field_spec *spec = &job->want.spec;
    /* One more, for interpolation between centres. */
    double around = spec->max_distance + 1;

    for (int axis = 0; axis < 3; axis++) {
        bool is_empty = !(box->low[axis] <= box->high[axis]);
        double low = is_empty ? 0 : box->low[axis] - around;
        double high = is_empty ? 1 : box->high[axis] + 1 + around;

        spec->low[axis] = (int32_t)floor(low / BOX_STEP) * BOX_STEP;
        spec->high[axis] = (int32_t)ceil(high / BOX_STEP) * BOX_STEP;
    }
}

bool vxd_field_on_gpu(const struct vxd_request *request)
{
    return vxd_context_backend(request->server->context) == VXD_BACKEND_CUDA;
}

/* The next parts of an update; when all have been queued, another stage finds them done. */
static enum vxd_status update_parts(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct vxd_field_job *job = request->state;
    struct vxd_field *field = vxd_fields_get(job->kept);
    size_t left = vxd_field_n_parts(field) - job->next_part;
    size_t now = vxd_field_on_gpu(request) ? GPU_PARTS : 1;
    enum vxd_status status;

    now = now < left ? now : left;
    status = vxd_field_update(queue, field, job->base.state.svdag, job->base.state.root,
                              job->next_part, now, err);
    job->next_part += now;
    return status;
}

enum vxd_status vxd_field_prepare(struct vxd_request *request, struct vxd_queue *queue,
                                  bool *is_ready, struct vxd_err *err)
{
    struct vxd_field_job *job = request->state;
    enum vxd_field_claim claim = VXD_FIELD_STALE;
    enum vxd_status status = VXD_OK;

    if (job->kept == NULL) {
        VXD_TRY(vxd_fields_claim(request->server->fields, queue, &job->want,
                                 job->asked_by, &job->kept, &claim, err));
        job->is_ready = claim == VXD_FIELD_READY;
        request->is_waiting = claim == VXD_FIELD_BUSY;
    }
    if (claim == VXD_FIELD_STALE && !job->is_ready) {
        if (job->next_part < vxd_field_n_parts(vxd_fields_get(job->kept))) {
            VXD_TRY(update_parts(request, queue, err));
        } else {
            vxd_fields_set_ready(request->server->fields, job->kept, job->want.version);
            job->is_ready = true;
        }
    }
    *is_ready = job->is_ready;
out:
    return status;
}

const struct vxd_field *vxd_field_of(const struct vxd_field_job *job)
{
    return vxd_fields_get(job->kept);
}

void vxd_field_close(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_field_job *job = request->state;

    vxd_fields_release(request->server->fields, queue, job->kept);
    job->kept = NULL;
    vxd_scene_close(request, queue);
}

void vxd_field_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_field_job *job = request->state;

    vxd_fields_release(request->server->fields, queue, job->kept);
    job->kept = NULL;
    vxd_scene_release(request, queue);
}
