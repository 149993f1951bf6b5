// SPDX-License-Identifier: Apache-2.0
/* A refinement as an object: checks, memory, and the phases that its steps go through. A phase makes
 * a list of operations, which are worked off in slices; then comes the next phase. */
#include "gpu/refine/refine.h"

#include <stdlib.h>

#include "gpu/refine/refine_internal.h"

#define MAX_TERM 1e6
#define MIN_BAND_VOXELS 2.0
#define MAX_BAND_VOXELS 16.0
#define DEFAULT_BAND_VOXELS 3.0
#define MAX_FOCAL 1e6
#define MIN_PIXELS 16
#define FIRST_LOSSES 16

void vxd_refine_options_init(struct vxd_refine_options *out)
{
    *out = (struct vxd_refine_options){.smooth = 2e-4,
                                       .init = 2e-5,
                                       .chroma = 5,
                                       .light = 0.05,
                                       .learning_rate = 0.01,
                                       .rounds = 2,
                                       .iterations = 5,
                                       .cg_iterations = 10};
}

/* ---- Checks ---- */

static enum vxd_status check_number(double value, const char *field, double low,
                                    double high, struct vxd_err *err)
{
    return value >= low && value <= high
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %g, must be %g to %g",
                          value, low, high);
}

static enum vxd_status check_options(const struct vxd_refine_options *options,
                                     const struct vxd_volume_spec *spec,
                                     struct vxd_err *err)
{
    double most_band = fmin(MAX_BAND_VOXELS * spec->voxel_size_m, spec->truncation_m);
    double least_band = MIN_BAND_VOXELS * spec->voxel_size_m;
    enum vxd_status status;

    if (options->band_m != 0 || most_band < least_band) {
        VXD_TRY(check_number(options->band_m, "band_m", least_band, most_band, err));
    }
    VXD_TRY(check_number(options->min_weight, "min_weight", 0, 65535, err));
    if (options->subvolume_m != 0) {
        VXD_TRY(check_number(options->subvolume_m, "subvolume_m", 2 * spec->voxel_size_m,
                             1e6, err));
    }
    VXD_TRY(check_number(options->depth_max_m, "depth_max_m", 0, 1000, err));
    VXD_TRY(check_number(options->smooth, "smooth", 0, MAX_TERM, err));
    VXD_TRY(check_number(options->init, "init", 0, MAX_TERM, err));
    VXD_TRY(check_number(options->chroma, "chroma", 0, MAX_TERM, err));
    VXD_TRY(check_number(options->light, "light", 0, MAX_TERM, err));
    VXD_TRY(check_number(options->learning_rate, "learning_rate", 0, 1, err));
    VXD_TRY(check_number(options->rounds, "rounds", 1, 100, err));
    VXD_TRY(check_number(options->iterations, "iterations", 1, 1000, err));
    VXD_TRY(check_number(options->rounds * options->iterations, "iterations", 1,
                         VXD_REFINE_MAX_STEPS, err));
    VXD_TRY(check_number(options->cg_iterations, "cg_iterations", 1, 1000, err));
    VXD_TRY(check_number(options->upsample, "upsample", 0, VXD_REFINE_MAX_UPSAMPLE, err));
    if (options->solver != VXD_REFINE_GAUSS_NEWTON &&
        options->solver != VXD_REFINE_ADAM) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "solver", "%d is none",
                         (int)options->solver));
    }
    if (options->upsample > 0 && !options->makes_volume) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "upsample",
                         "halved voxels need a new volume"));
    }
out:
    return status;
}

/* Puts "keyframes[7]." before the field of an error. */
static enum vxd_status name_frame(size_t frame, struct vxd_err *err)
{
    char field[sizeof err->field];

    (void)snprintf(field, sizeof field, "keyframes[%zu].%.40s", frame, err->field);
    (void)snprintf(err->field, sizeof err->field, "%s", field);
    return err->code;
}

static enum vxd_status check_keyframe(const struct vxd_refine_keyframe *keyframe,
                                      struct vxd_err *err)
{
    const struct vxd_volume_camera *camera = &keyframe->camera;
    struct vxd_camera_form form;
    enum vxd_status status;

    VXD_TRY(check_number(camera->width, "camera.width", MIN_PIXELS, 16384, err));
    VXD_TRY(check_number(camera->height, "camera.height", MIN_PIXELS, 16384, err));
    VXD_TRY(check_number(camera->fx, "camera.fx", 1, MAX_FOCAL, err));
    VXD_TRY(check_number(camera->fy, "camera.fy", 1, MAX_FOCAL, err));
    VXD_TRY(check_number(camera->cx, "camera.cx", -MAX_FOCAL, MAX_FOCAL, err));
    VXD_TRY(check_number(camera->cy, "camera.cy", -MAX_FOCAL, MAX_FOCAL, err));
    VXD_TRY(vxd_camera_form_init(camera, "camera", &form, err));
    VXD_TRY(vxd_volume_check_pose(&keyframe->T_map_camera, "T_map_camera", err));
    if (keyframe->colour == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "colour", "there is no image"));
    }
out:
    return status;
}

/* ---- Memory ---- */

enum vxd_status vxd_refine_alloc(struct vxd_queue *queue, struct vxd_refine *refine,
                                 enum vxd_refine_buffer which, size_t n_items,
                                 size_t item_bytes, struct vxd_err *err)
{
    size_t total = 0;
    size_t offset;

    vxd_device_free(queue, &refine->buffers[which]);
    if (!vxd_layout_add(&total, n_items, item_bytes, &offset)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu items are too many",
                        n_items);
    }
    return vxd_device_alloc(queue, total, &refine->buffers[which], err);
}

void vxd_refine_free(struct vxd_queue *queue, struct vxd_refine *refine,
                     enum vxd_refine_buffer which)
{
    vxd_device_free(queue, &refine->buffers[which]);
}

enum vxd_status vxd_refine_read(struct vxd_queue *queue, const void *device,
                                size_t n_bytes, void *out, struct vxd_err *err)
{
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *read = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_download(queue, device, n_bytes, &host, &read, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    memcpy(out, read, n_bytes);
out:
    vxd_host_free(queue->context, &host);
    return status;
}

enum vxd_status vxd_refine_write(struct vxd_queue *queue, void *device, const void *from,
                                 size_t n_bytes, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_queue_copy(queue, device, from, n_bytes, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

enum vxd_status vxd_refine_create(struct vxd_queue *queue,
                                  const struct vxd_volume *volume,
                                  const struct vxd_refine_keyframe *keyframes, size_t n,
                                  const struct vxd_refine_options *options,
                                  struct vxd_refine **out, struct vxd_err *err)
{
    struct vxd_refine *refine = NULL;
    struct vxd_volume_info info;
    struct vxd_err checked = {0};
    enum vxd_status status;

    *out = NULL;
    vxd_volume_get_info(volume, &info);
    VXD_TRY(check_options(options, &info.spec, err));
    if (n < 1 || n > VXD_REFINE_MAX_KEYFRAMES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "keyframes",
                        "there are %zu, must be 1 to %d", n, VXD_REFINE_MAX_KEYFRAMES);
    }
    for (size_t i = 0; i < n; i++) {
        status = check_keyframe(&keyframes[i], &checked);
        if (status != VXD_OK) {
            (void)name_frame(i, &checked);
            return vxd_fail(err, status, checked.field, "%s", checked.message);
        }
    }
    if (info.n_blocks == 0) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "name", "the volume is empty");
    }
    refine = calloc(1, sizeof *refine);
    if (refine != NULL) {
        refine->frames = calloc(n, sizeof *refine->frames);
    }
    if (refine == NULL || refine->frames == NULL) {
        free(refine);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a refinement");
    }
    refine->context = queue->context;
    refine->options = *options;
    refine->n_frames = n;
    refine->phase = options->makes_volume ? VXD_REFINE_MAKE : VXD_REFINE_LIST_VOXELS;
    refine->damping = 1e-3;
    for (size_t i = 0; i < n; i++) {
        refine->frames[i].given = keyframes[i];
        refine->frames[i].camera = keyframes[i].camera;
        refine->frames[i].pose = keyframes[i].T_map_camera;
    }
    *out = refine;
out:
    return status;
}

void vxd_refine_destroy(struct vxd_queue *queue, struct vxd_refine *refine)
{
    if (refine == NULL) {
        return;
    }
    for (int i = 0; i < VXD_REFINE_N_BUFFERS; i++) {
        vxd_device_free(queue, &refine->buffers[i]);
    }
    for (size_t i = 0; i < refine->n_frames; i++) {
        vxd_device_free(queue, &refine->frames[i].grey);
        vxd_device_free(queue, &refine->frames[i].rgb8);
    }
    vxd_hashmap_destroy(queue, refine->set);
    vxd_hashmap_destroy(queue, refine->cubes);
    vxd_hashmap_destroy(queue, refine->corners);
    vxd_volume_destroy(queue, refine->made);
    free(refine->frames);
    free(refine->losses);
    free(refine);
}

/* ---- Operations ---- */

/* About what an item takes of a CPU thread, nanoseconds. */
static double cost_of(const struct vxd_refine *refine, const struct vxd_refine_op *op)
{
    switch (op->step) {
    case VXD_REFINE_STEP_LIGHT_CHUNK:
        return 1e6;
    case VXD_REFINE_STEP_CUBE_SUM:
    case VXD_REFINE_STEP_POSE_SUM:
        return 1000;
    case VXD_REFINE_STEP_LIGHT_MATRIX:
        return 250;
    case VXD_REFINE_STEP_POSE:
        return 8000 + 100 * (double)refine->n / (double)refine->call.view.n_pose_parts;
    case VXD_REFINE_STEP_BIN_SUM:
        return 500 + 10 * (double)refine->n / (double)refine->call.bins.n_parts;
    case VXD_REFINE_STEP_BIN:
        return 500 + 2 * (double)refine->call.bins.n_parts;
    case VXD_REFINE_STEP_MEAN:
        return 30 * (double)refine->n_frames;
    case VXD_REFINE_STEP_COUPLE:
        return 60 + 40 * (double)op->n_slots;
    case VXD_REFINE_STEP_SIGHT:
        return 20 + 40 * (double)op->n_slots;
    case VXD_REFINE_STEP_NODE:
    case VXD_REFINE_STEP_PULL:
    case VXD_REFINE_STEP_DIAGONAL:
        return 200;
    case VXD_REFINE_STEP_SEE:
    case VXD_REFINE_STEP_GATHER:
        return 60;
    default:
        return 10;
    }
}

void vxd_refine_push_op(struct vxd_refine *refine, struct vxd_refine_op op)
{
    if (op.n > 0) {
        refine->ops[refine->n_ops++] = op;
    }
}

void vxd_refine_push_sum(struct vxd_refine *refine, enum vxd_refine_sum_kind kind,
                         size_t n, int index)
{
    vxd_refine_push_op(
        refine, (struct vxd_refine_op){
                    .step = VXD_REFINE_STEP_SUM, .n = n, .kind = kind, .index = index});
}

enum vxd_status vxd_refine_run(struct vxd_queue *queue, struct vxd_refine_call *call,
                               enum vxd_refine_step_name step, size_t n,
                               struct vxd_err *err)
{
    call->step = step;
    call->begin = 0;
    call->end = n;
    call->n_items = n;
    call->solve.kind = VXD_REFINE_SUM_NONE;
    return n > 0 ? VXD_BACKEND_FN(queue, vxd_refine_run)(queue, call, err) : VXD_OK;
}

/* Sets what an operation says that its call lacks. */
static void set_call(struct vxd_refine *refine, const struct vxd_refine_op *op)
{
    struct vxd_refine_call *call = &refine->call;
    struct vxd_refine_solve_call *solve = &call->solve;
    vxd_refine_real *vectors =
        refine->buffers[op->is_light ? VXD_REFINE_LIGHT_VECTORS : VXD_REFINE_VECTORS].ptr;
    size_t n = op->is_light ? 9 * refine->n_corners : 2 * refine->n;

    call->step = op->step;
    call->n_items = op->n;
    call->pose.first = op->first;
    call->pose.n_slots = op->n_slots;
    call->is_gradient = op->is_gradient;
    solve->n = n;
    solve->kind = op->kind;
    solve->index = op->index;
    solve->r = vectors;
    solve->p = vectors != NULL ? vectors + n : NULL;
    solve->q = vectors != NULL ? vectors + 2 * n : NULL;
    solve->x = vectors == NULL ? NULL
               : op->is_light  ? (vxd_refine_real *)(uintptr_t)call->view.lights
                               : vectors + 3 * n;
    solve->diagonal =
        op->is_light && vectors != NULL ? vectors + 3 * n : call->view.diagonal;
    if (op->is_gradient) {
        solve->p = call->view.state;
    }
    if (op->kind == VXD_REFINE_SUM_VALUES) {
        solve->values = call->view.losses + (size_t)op->index * refine->n;
    }
    if (op->kind == VXD_REFINE_SUM_VIEWS) {
        solve->bytes =
            call->view.views + (size_t)(op->index - VXD_REFINE_OF_VIEWS) * refine->n;
    }
    if (op->step == VXD_REFINE_STEP_POSE_SUM) {
        call->view.pose_totals = (double *)refine->buffers[VXD_REFINE_POSE_TOTALS].ptr +
                                 op->first * VXD_REFINE_POSE_SUMS;
    }
    solve->state = call->view.state;
}

/* Works off operations until the work is done or the list is. */
static enum vxd_status run_ops(struct vxd_queue *queue, struct vxd_refine *refine,
                               double *work_ns, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    while (refine->op_at<refine->n_ops && * work_ns> 0) {
        const struct vxd_refine_op *op = &refine->ops[refine->op_at];
        double cost = cost_of(refine, op);
        size_t left = op->n - refine->item_at;
        size_t n = *work_ns / cost < (double)left ? (size_t)(*work_ns / cost) + 1 : left;

        if (op->kind != VXD_REFINE_SUM_NONE) { /* whole chunks of terms */
            n = (n + VXD_REFINE_LANES - 1) / VXD_REFINE_LANES * VXD_REFINE_LANES;
            n = n < left ? n : left;
        }
        set_call(refine, op);
        refine->call.begin = refine->item_at;
        refine->call.end = refine->item_at + n;
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_refine_run)(queue, &refine->call, err));
        *work_ns -= cost * (double)n;
        refine->item_at += n;
        if (refine->item_at == op->n) {
            refine->item_at = 0;
            refine->op_at++;
        }
    }
    if (refine->op_at == refine->n_ops) {
        refine->op_at = 0;
        refine->n_ops = 0;
    }
out:
    return status;
}

/* ---- Phases ---- */

/* The volume that the level's voxels are of. */
static struct vxd_volume *volume_of(const struct vxd_refine *refine,
                                    struct vxd_volume *volume)
{
    return refine->made != NULL ? refine->made : volume;
}

static enum vxd_status make_level(struct vxd_queue *queue, struct vxd_refine *refine,
                                  struct vxd_volume *volume, struct vxd_err *err)
{
    struct vxd_volume *made = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_refine_make_volume(queue, volume_of(refine, volume),
                                   refine->level > 0 ? 1 : 0, refine->options.max_bytes,
                                   &made, err));
    vxd_volume_destroy(queue, refine->made);
    refine->made = made;
    refine->phase = VXD_REFINE_LIST_VOXELS;
out:
    return status;
}

/* What follows when a level's last round has ended. */
static enum vxd_status end_level(struct vxd_queue *queue, struct vxd_refine *refine,
                                 struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (refine->options.makes_volume) {
        VXD_TRY(vxd_refine_write_back(queue, refine, refine->made, err));
    }
    if (refine->level < refine->options.upsample) {
        refine->level++;
        refine->phase = VXD_REFINE_MAKE;
        refine->round = 0;
        refine->iteration = 0;
        refine->part = 0;
    } else {
        refine->phase = VXD_REFINE_DONE;
    }
out:
    return status;
}

/* Does the next blocking thing, and lists operations.
 * out  *work_ns is what is left for this slice */
static enum vxd_status next_phase(struct vxd_queue *queue, struct vxd_refine *refine,
                                  struct vxd_volume *volume, double *work_ns,
                                  struct vxd_err *err)
{
    bool is_whole = false;
    enum vxd_status status = VXD_OK;

    switch (refine->phase) {
    case VXD_REFINE_MAKE:
        *work_ns = 0;
        return make_level(queue, refine, volume, err);
    case VXD_REFINE_LIST_VOXELS:
        *work_ns = 0;
        return vxd_refine_list_voxels(queue, refine, volume_of(refine, volume), err);
    case VXD_REFINE_IMAGES:
        *work_ns = 0;
        VXD_TRY(vxd_refine_load_image(queue, refine, volume_of(refine, volume),
                                      refine->frame, err));
        if (++refine->frame == refine->n_frames) {
            refine->phase = VXD_REFINE_SEE_FRAMES;
            refine->frame = 0;
            refine->cast_row = 0;
            VXD_TRY(vxd_refine_reserve_joint(queue, refine, err));
        }
        break;
    case VXD_REFINE_SEE_FRAMES:
        if (refine->frame == 0 && refine->cast_row == 0) {
            VXD_TRY(vxd_refine_set_eyes(queue, refine, err));
            VXD_TRY(vxd_refine_run(queue, &refine->call, VXD_REFINE_STEP_NODE, refine->n,
                                   err));
        }
        VXD_TRY(vxd_refine_cast(queue, refine, volume_of(refine, volume), *work_ns,
                                &is_whole, err));
        *work_ns = 0;
        if (is_whole) {
            vxd_refine_push_sum(refine, VXD_REFINE_SUM_VIEWS, refine->n,
                                VXD_REFINE_OF_VIEWS + (int)refine->frame);
            refine->phase =
                ++refine->frame == refine->n_frames ? VXD_REFINE_MEANS : refine->phase;
        }
        break;
    case VXD_REFINE_END_LEVEL:
        *work_ns = 0;
        return end_level(queue, refine, err);
    case VXD_REFINE_DONE:
        break;
    default:
        return vxd_refine_next_joint(queue, refine, err);
    }
out:
    return status;
}

enum vxd_status vxd_refine_step(struct vxd_queue *queue, struct vxd_refine *refine,
                                struct vxd_volume *volume, double work_ns, bool *is_done,
                                struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    while (work_ns > 0 && refine->phase != VXD_REFINE_DONE) {
        if (refine->n_ops > 0) {
            VXD_TRY(run_ops(queue, refine, &work_ns, err));
        } else {
            VXD_TRY(next_phase(queue, refine, volume, &work_ns, err));
        }
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    *is_done = refine->phase == VXD_REFINE_DONE;
out:
    return status;
}

/* ---- What it has come to ---- */

void vxd_refine_get_progress(const struct vxd_refine *refine,
                             struct vxd_refine_progress *out)
{
    double steps = (double)refine->options.rounds * refine->options.iterations;
    double levels = refine->options.upsample + 1;

    *out = (struct vxd_refine_progress){
        .fraction = refine->phase == VXD_REFINE_DONE
                        ? 1
                        : (refine->level + (refine->round * refine->options.iterations +
                                            refine->iteration) /
                                               (steps + 1)) /
                              levels,
        .level = refine->level,
        .n_voxels = refine->n,
        .n_subvolumes = refine->n_cubes,
        .n_losses = refine->n_losses,
        .light_passes = refine->light_pass,
        .is_finding_light = refine->phase == VXD_REFINE_SOLVE_LIGHT};
}

const struct vxd_refine_loss *vxd_refine_losses(const struct vxd_refine *refine)
{
    return refine->losses;
}

void vxd_refine_get_keyframe(const struct vxd_refine *refine, size_t keyframe,
                             struct vxd_volume_camera *camera,
                             struct vxd_volume_pose *T_map_camera)
{
    *camera = refine->frames[keyframe].camera;
    *T_map_camera = refine->frames[keyframe].pose;
}

enum vxd_status vxd_refine_apply(struct vxd_queue *queue, struct vxd_refine *refine,
                                 struct vxd_volume *volume, struct vxd_err *err)
{
    enum vxd_status status;

    if (refine->phase != VXD_REFINE_DONE || refine->options.makes_volume) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                        refine->options.makes_volume ? "the refinement makes a new volume"
                                                     : "the refinement is not done");
    }
    VXD_TRY(vxd_refine_write_back(queue, refine, volume, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

struct vxd_volume *vxd_refine_take_volume(struct vxd_refine *refine)
{
    struct vxd_volume *made = refine->phase == VXD_REFINE_DONE ? refine->made : NULL;

    if (made != NULL) {
        refine->made = NULL;
    }
    return made;
}
