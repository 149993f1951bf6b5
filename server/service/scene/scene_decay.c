// SPDX-License-Identifier: Apache-2.0
/* A decay of log-odds: a change like a scan's, whose edit erases what is forgotten. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"
#include "voxeld/v1/scene_upkeep.pb-c.h"

enum {
    LEAST_PARTS = 32, /* of a half-life: less is left for the next time */
    MAX_STEP = 255
};

#define MAX_CENTRE ((int64_t)1 << 30)
#define NS_PER_S 1e9

struct decay_job {
    struct vxd_scene_job base; /* first: request->state is both */
    struct vxd_occupancy_decay decay;
    int64_t decayed_ns; /* the scene's from then on; 0 = as it is */
    struct vxd_svdag_edit_result result;
    Voxeld__V1__SceneChange *change;
    Voxeld__V1__SceneDecayResponse *reply;
};

/* --- check -------------------------------------------------------------------------------- */

static enum vxd_status check_number(double value, bool is_good, const char *field,
                                    const char *range, struct vxd_err *err)
{
    return is_good ? VXD_OK
                   : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %g, it must be %s",
                              value, range);
}

static enum vxd_status check_law(const Voxeld__V1__SceneDecayRequest *input,
                                 struct vxd_err *err)
{
    int n_laws = (input->factor != 0) + (input->step != 0) + (input->half_life_s != 0);
    enum vxd_status status;

    if (n_laws != 1) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "factor",
                        "%d of factor, step and half_life_s are given, it must be one",
                        n_laws);
    }
    VXD_TRY(check_number(input->factor, input->factor >= 0 && input->factor < 1, "factor",
                         "above 0 and below 1", err));
    VXD_TRY(check_number(input->step, input->step >= 0 && isfinite(input->step), "step",
                         "> 0 and finite", err));
    VXD_TRY(check_number(input->half_life_s,
                         input->half_life_s >= 0 && isfinite(input->half_life_s),
                         "half_life_s", "> 0 and finite", err));
    VXD_TRY(check_number(input->elapsed_s,
                         input->elapsed_s >= 0 && isfinite(input->elapsed_s), "elapsed_s",
                         ">= 0 and finite", err));
    if (input->half_life_s == 0 && (input->elapsed_s > 0 || input->until_ns != 0)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT,
                         input->elapsed_s > 0 ? "elapsed_s" : "until_ns",
                         "goes with half_life_s"));
    }
    if (input->elapsed_s > 0 && input->until_ns != 0) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "until_ns",
                          "is given beside elapsed_s, it must be one of the two");
    }
out:
    return status;
}

enum vxd_status vxd_scene_decay_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneDecayRequest *input =
        (const Voxeld__V1__SceneDecayRequest *)request->input;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct decay_job), input->name, err));
    VXD_TRY(check_law(input, err));
    if (input->box != NULL) {
        VXD_TRY(vxd_scene_check_box(input->box, "box", err));
    }
    VXD_TRY(check_number(input->keep_radius,
                         input->keep_radius >= 0 && isfinite(input->keep_radius),
                         "keep_radius", ">= 0 and finite", err));
    if (input->keep_radius > 0) {
        status = vxd_scene_check_vector(input->keep_centre, "keep_centre", err);
    }
out:
    return status;
}

/* --- submit ------------------------------------------------------------------------------- */

/* Computes the part of the scene that fades. */
static enum vxd_status read_place(const Voxeld__V1__SceneDecayRequest *input,
                                  struct decay_job *job, struct vxd_err *err)
{
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    struct vxd_scene_frame frame = vxd_scene_frame_of(spec, input->in_voxels);
    struct vxd_occupancy_decay *decay = &job->decay;
    int64_t side = (int64_t)1 << spec->format.depth;

    vxd_scene_voxels_in(spec, input->in_voxels, input->box, decay->low, decay->high);
    for (int i = 0; i < 3; i++) {
        decay->low[i] = decay->low[i] < 0      ? 0
                        : decay->low[i] > side ? side
                                               : decay->low[i];
        decay->high[i] = decay->high[i] < decay->low[i] ? decay->low[i]
                         : decay->high[i] > side        ? side
                                                        : decay->high[i];
    }
    if (input->keep_radius == 0) {
        return VXD_OK;
    }
    decay->keeps = true;
    decay->radius = vxd_scene_length(&frame, input->keep_radius);
    vxd_scene_corner(&frame, input->keep_centre, decay->centre);
    for (int i = 0; i < 3; i++) {
        if (decay->centre[i] <= -MAX_CENTRE || decay->centre[i] >= MAX_CENTRE) {
            return vxd_fail(err, VXD_OUT_OF_RANGE, "keep_centre",
                            "(%g, %g, %g) lies more than 2^22 voxels from the scene's "
                            "low corner",
                            input->keep_centre->x, input->keep_centre->y,
                            input->keep_centre->z);
        }
    }
    return VXD_OK;
}

static void set_factor(struct decay_job *job, double factor)
{
    job->decay.factor = (uint32_t)lrint(factor * VXD_OCCUPANCY_DECAY_ONE);
}

/* Computes what is left after the time that has passed. */
static enum vxd_status read_time(const Voxeld__V1__SceneDecayRequest *input,
                                 struct decay_job *job, struct vxd_err *err)
{
    const struct vxd_scene_log_odds *log_odds = &job->base.scene->log_odds;
    int64_t until_ns = input->until_ns != 0 ? input->until_ns : log_odds->newest_ns;
    double elapsed_s = input->elapsed_s;

    set_factor(job, 1);
    if (elapsed_s == 0) {
        if (until_ns == 0) {
            return vxd_fail(err, VXD_FAILED_PRECONDITION, "until_ns",
                            "is 0, and no scan of the scene \"%s\" has had a stamp_ns "
                            "since the server's start: give it, or elapsed_s",
                            job->base.scene->terms.name);
        }
        job->decayed_ns = until_ns;
        if (log_odds->decayed_ns == 0) {
            return VXD_OK;
        }
        elapsed_s = ((double)until_ns - (double)log_odds->decayed_ns) / NS_PER_S;
        if (elapsed_s < input->half_life_s / LEAST_PARTS) {
            job->decayed_ns = log_odds->decayed_ns;
            return VXD_OK;
        }
    }
    job->reply->elapsed_s = elapsed_s;
    set_factor(job, exp2(-elapsed_s / input->half_life_s));
    return VXD_OK;
}

static enum vxd_status read_law(const Voxeld__V1__SceneDecayRequest *input,
                                struct decay_job *job, struct vxd_err *err)
{
    double step = job->base.scene->spec.rule.step;
    enum vxd_status status = VXD_OK;

    if (input->half_life_s > 0) {
        status = read_time(input, job, err);
    } else if (input->factor > 0) {
        set_factor(job, input->factor);
    } else {
        double n = rint(input->step / step);

        set_factor(job, 1);
        job->decay.step = n < 1 ? 1 : n < MAX_STEP ? (int32_t)n : MAX_STEP;
    }
    job->reply->factor = (double)job->decay.factor / VXD_OCCUPANCY_DECAY_ONE;
    job->reply->step = job->decay.step * step;
    job->reply->decayed_ns = job->decayed_ns;
    return status;
}

enum vxd_status vxd_scene_decay_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneDecayRequest *input =
        (const Voxeld__V1__SceneDecayRequest *)request->input;
    struct decay_job *job = request->state;
    enum vxd_status status;

    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__scene_decay_response__descriptor, err);
    job->change =
        vxd_message_new(request->decoder, &voxeld__v1__scene_change__descriptor, err);
    if (job->reply == NULL || job->change == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_open(request, input->name, NULL, err));
    VXD_TRY(vxd_scene_check_version(&job->base, input->if_version, err));
    VXD_TRY(vxd_scene_need_log_odds(job->base.scene, err));
    VXD_TRY(read_place(input, job, err));
    VXD_TRY(read_law(input, job, err));
    VXD_TRY(
        vxd_scene_fade(request, queue, &job->decay, job->decayed_ns, &job->result, err));
    request->output = &job->reply->base;
out:
    return status;
}

enum vxd_status vxd_scene_decay_finish(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    struct decay_job *job = request->state;

    (void)queue;
    (void)err;
    if (job->decayed_ns != 0) {
        job->base.scene->log_odds.decayed_ns = job->decayed_ns;
    }
    vxd_scene_publish(request, &job->result, VXD_SCENE_DECAYED, 0, job->change);
    job->reply->version = job->change->version;
    job->reply->n_removed = job->change->n_removed;
    job->reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}
