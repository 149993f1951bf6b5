// SPDX-License-Identifier: Apache-2.0
/* Rounds: means of what is seen, light, and the joint steps with their conjugate gradients. A step
 * that makes the energy greater is taken back, and the next one is more damped. */
#include <stdlib.h>

#include "gpu/refine/refine_internal.h"

#define LIGHT_ITERATIONS 60
#define LIGHT_PASSES 6 /* of the first round */
#define CG_AT_ONCE 8   /* iterations in the list of operations */
#define FIRST_DAMPING 1e-3
#define LEAST_DAMPING 1e-6
#define FIRST_LOSSES 16

/* ---- Memory ---- */

enum vxd_status vxd_refine_reserve_sums(struct vxd_queue *queue,
                                        struct vxd_refine *refine, size_t n,
                                        struct vxd_err *err)
{
    struct vxd_refine_solve_call *solve = &refine->call.solve;
    size_t n_terms = n > 2 * refine->n ? n : 2 * refine->n;
    enum vxd_status status;

    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_PARTIAL,
                             n_terms / VXD_REFINE_LANES + 1, sizeof(double), err));
    VXD_TRY(
        vxd_refine_alloc(queue, refine, VXD_REFINE_N_SUMMED, 1, sizeof(uint32_t), err));
    solve->partial = refine->buffers[VXD_REFINE_PARTIAL].ptr;
    solve->n_chunks = refine->buffers[VXD_REFINE_N_SUMMED].ptr;
    VXD_TRY(vxd_queue_fill(queue, solve->n_chunks, 0, sizeof(uint32_t), err));
out:
    return status;
}

/* How many keyframes' residuals are in memory at once: the same on all backends, since sums are in
 * this order. */
static size_t count_slots(const struct vxd_refine *refine)
{
    size_t most = VXD_REFINE_SIGHT_BYTES / (5 * sizeof(vxd_refine_real)) / refine->n;
    size_t n_times;

    most = most < VXD_REFINE_LEAST_SLOTS ? VXD_REFINE_LEAST_SLOTS : most;
    n_times = (refine->n_frames + most - 1) / most;
    return (refine->n_frames + n_times - 1) / n_times;
}

/* A part a so many voxels, 1 to most. */
static size_t count_parts(size_t n, size_t voxels, size_t most)
{
    size_t parts = (n + voxels - 1) / voxels;

    return parts < most ? parts : most;
}

enum vxd_status vxd_refine_reserve_joint(struct vxd_queue *queue,
                                         struct vxd_refine *refine, struct vxd_err *err)
{
    size_t n = refine->n;
    size_t real = sizeof(vxd_refine_real);
    size_t n_slots = count_slots(refine);
    size_t n_pose_parts =
        count_parts(n, VXD_REFINE_POSE_VOXELS, VXD_REFINE_MAX_POSE_PARTS);
    size_t n_bin_parts = count_parts(n, VXD_REFINE_BIN_VOXELS, VXD_REFINE_MAX_BIN_PARTS);
    struct vxd_refine_view *view = &refine->call.view;
    const struct {
        enum vxd_refine_buffer which;
        size_t n_items;
        size_t item_bytes;
    } sizes[] = {
        {VXD_REFINE_MEAN, n, 4 * real},
        {VXD_REFINE_CHROMA, n, 3 * real},
        {VXD_REFINE_VIEWS, n, refine->n_frames},
        {VXD_REFINE_SIGHT, n, n_slots * 4 * real},
        {VXD_REFINE_SIGHT_WEIGHT, n, n_slots * real},
        {VXD_REFINE_COUPLINGS, n, VXD_REFINE_COUPLING * real},
        {VXD_REFINE_FORCE, n, 4 * real},
        {VXD_REFINE_LOSSES, n, 4 * real},
        {VXD_REFINE_POSE_PARTS, n_slots * VXD_REFINE_POSE_SUMS * n_pose_parts, real},
        {VXD_REFINE_POSE_TOTALS, refine->n_frames * VXD_REFINE_POSE_SUMS, sizeof(double)},
        {VXD_REFINE_PRODUCTS, n, 10 * real},
        {VXD_REFINE_DIAGONAL, n, 2 * real},
        {VXD_REFINE_VECTORS, n, 8 * real},
        {VXD_REFINE_BEFORE, n, 2 * real},
        {VXD_REFINE_MOMENTS, refine->options.solver == VXD_REFINE_ADAM ? n : 0, 4 * real},
        {VXD_REFINE_BIN_PARTS_BUFFER, (size_t)2 * VXD_REFINE_BINS * n_bin_parts, real},
        {VXD_REFINE_BIN_ALBEDO, VXD_REFINE_BINS, real},
        {VXD_REFINE_SCALARS, VXD_REFINE_N_SCALARS, sizeof(double)},
    };
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        VXD_TRY(vxd_refine_alloc(queue, refine, sizes[i].which, sizes[i].n_items,
                                 sizes[i].item_bytes, err));
    }
    VXD_TRY(vxd_refine_reserve_sums(queue, refine, 0, err));
    view->n_slots = n_slots;
    view->n_pose_parts = n_pose_parts;
    refine->call.bins.n_parts = n_bin_parts;
    view->mean = refine->buffers[VXD_REFINE_MEAN].ptr;
    view->chroma = refine->buffers[VXD_REFINE_CHROMA].ptr;
    view->views = refine->buffers[VXD_REFINE_VIEWS].ptr;
    view->sight = refine->buffers[VXD_REFINE_SIGHT].ptr;
    view->sight_weight = refine->buffers[VXD_REFINE_SIGHT_WEIGHT].ptr;
    view->coupling = refine->buffers[VXD_REFINE_COUPLINGS].ptr;
    view->force = refine->buffers[VXD_REFINE_FORCE].ptr;
    view->losses = refine->buffers[VXD_REFINE_LOSSES].ptr;
    view->pose_sums = refine->buffers[VXD_REFINE_POSE_PARTS].ptr;
    view->z = refine->buffers[VXD_REFINE_PRODUCTS].ptr;
    view->laplace = view->z + 4 * n;
    view->pulled = view->z + 5 * n;
    view->diagonal = refine->buffers[VXD_REFINE_DIAGONAL].ptr;
    view->smooth = (vxd_refine_real)refine->options.smooth;
    view->init = (vxd_refine_real)refine->options.init;
    view->chroma_scale = (vxd_refine_real)refine->options.chroma;
    view->keeps_distances = refine->options.keep_distances;
    view->keeps_albedo = refine->options.keep_albedo;
    view->has_intrinsics = refine->options.refine_intrinsics;
    refine->call.bins.parts = refine->buffers[VXD_REFINE_BIN_PARTS_BUFFER].ptr;
    refine->call.bins.albedo = refine->buffers[VXD_REFINE_BIN_ALBEDO].ptr;
    refine->call.solve.before = refine->buffers[VXD_REFINE_BEFORE].ptr;
    refine->call.solve.moments = refine->buffers[VXD_REFINE_MOMENTS].ptr;
    refine->call.solve.scalars = refine->buffers[VXD_REFINE_SCALARS].ptr;
    if (refine->options.solver == VXD_REFINE_ADAM) {
        VXD_TRY(vxd_queue_fill(queue, refine->call.solve.moments, 0, n * 4 * real, err));
    }
out:
    return status;
}

static enum vxd_status read_sums(struct vxd_queue *queue, struct vxd_refine *refine,
                                 double scalars[VXD_REFINE_N_SCALARS],
                                 struct vxd_err *err)
{
    return vxd_refine_read(queue, refine->call.solve.scalars,
                           VXD_REFINE_N_SCALARS * sizeof *scalars, scalars, err);
}

/* ---- Operations ---- */

static void push(struct vxd_refine *refine, enum vxd_refine_step_name step, size_t n)
{
    vxd_refine_push_op(refine, (struct vxd_refine_op){.step = step, .n = n});
}

void vxd_refine_push_cg(struct vxd_refine *refine, bool is_light)
{
    size_t n = is_light ? 9 * refine->n_corners : 2 * refine->n;
    struct vxd_refine_op op = {.n = n, .is_light = is_light};

    if (is_light) {
        op.step = VXD_REFINE_STEP_LIGHT_MATRIX;
        op.n = 8 * n;
        vxd_refine_push_op(refine, op);
        op.step = VXD_REFINE_STEP_LIGHT_GATHER;
        op.n = n;
        op.kind = VXD_REFINE_SUM_PQ;
    } else {
        push(refine, VXD_REFINE_STEP_PUSH, refine->n);
        push(refine, VXD_REFINE_STEP_PULL, refine->n);
        op.step = VXD_REFINE_STEP_GATHER;
        op.n = refine->n;
        op.kind = VXD_REFINE_SUM_PQ_BOTH;
    }
    vxd_refine_push_op(refine, op);
    op.n = n;
    op.step = VXD_REFINE_STEP_ADVANCE;
    op.kind = VXD_REFINE_SUM_RZ;
    vxd_refine_push_op(refine, op);
    op.step = VXD_REFINE_STEP_TURN;
    op.kind = VXD_REFINE_SUM_NONE;
    vxd_refine_push_op(refine, op);
}

/* The residuals of all keyframes, as many at a time as memory holds, with what each time does with
 * them. */
static void push_sights(struct vxd_refine *refine, bool is_for_poses)
{
    for (size_t first = 0; first < refine->n_frames; first += refine->call.view.n_slots) {
        size_t left = refine->n_frames - first;
        struct vxd_refine_op op = {.step = VXD_REFINE_STEP_SIGHT,
                                   .n = refine->n,
                                   .first = first,
                                   .n_slots = left < refine->call.view.n_slots
                                                  ? left
                                                  : refine->call.view.n_slots};

        vxd_refine_push_op(refine, op);
        if (!is_for_poses) {
            op.step = VXD_REFINE_STEP_COUPLE;
            vxd_refine_push_op(refine, op);
            continue;
        }
        op.step = VXD_REFINE_STEP_POSE;
        op.n = op.n_slots * refine->call.view.n_pose_parts;
        vxd_refine_push_op(refine, op);
        op.step = VXD_REFINE_STEP_POSE_SUM;
        op.n = op.n_slots * VXD_REFINE_POSE_SUMS;
        vxd_refine_push_op(refine, op);
    }
}

static void push_linearise(struct vxd_refine *refine)
{
    struct vxd_refine_op op = {.n = refine->n, .is_gradient = true};

    push_sights(refine, false);
    op.step = VXD_REFINE_STEP_PUSH;
    vxd_refine_push_op(refine, op);
    op.step = VXD_REFINE_STEP_PULL;
    vxd_refine_push_op(refine, op);
    op.step = VXD_REFINE_STEP_GATHER;
    vxd_refine_push_op(refine, op);
    push(refine, VXD_REFINE_STEP_DIAGONAL, refine->n);
    for (int i = 0; i < 4; i++) {
        vxd_refine_push_sum(refine, VXD_REFINE_SUM_VALUES, refine->n,
                            VXD_REFINE_OF_LOSSES + i);
    }
}

/* ---- Phases ---- */

/* What the keyframes see, and the light's equations. */
static enum vxd_status begin_light(struct vxd_queue *queue, struct vxd_refine *refine,
                                   struct vxd_err *err)
{
    double scalars[VXD_REFINE_N_SCALARS];
    const double *sums = scalars + VXD_REFINE_SUM;
    double n_views = 0;
    enum vxd_status status;

    VXD_TRY(read_sums(queue, refine, scalars, err));
    for (size_t i = 0; i < refine->n_frames; i++) {
        double views = sums[VXD_REFINE_OF_VIEWS + i];

        n_views += views;
        if (!(views > 0) && !refine->has_overlap) {
            char field[32];

            (void)snprintf(field, sizeof field, "keyframes[%zu]", i);
            VXD_TRY(
                vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                         "sees nothing of the volume's surface: its pose or camera is "
                         "another one, or something is in between"));
        }
    }
    refine->has_overlap = true;
    refine->call.view.data_scale =
        (vxd_refine_real)(n_views > 0 ? fmax(sums[VXD_REFINE_OF_SEEN], 1) / n_views : 0);
    if (refine->round == 0) {
        refine->brightness =
            sums[VXD_REFINE_OF_BRIGHT] / fmax(sums[VXD_REFINE_OF_SEEN], 1) + 1e-6;
        refine->call.bins.unseen = (vxd_refine_real)refine->brightness;
        if (refine->level > 0) {
            VXD_TRY(vxd_refine_run(queue, &refine->call, VXD_REFINE_STEP_READ_ALBEDO,
                                   refine->n, err));
        } else { /* no shading is known: one albedo for all */
            VXD_TRY(vxd_refine_run(queue, &refine->call, VXD_REFINE_STEP_BIN_SUM,
                                   refine->call.bins.n_parts, err));
            VXD_TRY(vxd_refine_run(queue, &refine->call, VXD_REFINE_STEP_BIN,
                                   VXD_REFINE_BINS, err));
            VXD_TRY(vxd_refine_run(queue, &refine->call, VXD_REFINE_STEP_ALBEDO,
                                   refine->n, err));
        }
        VXD_TRY(vxd_refine_find_cubes(queue, refine, err));
    }
    vxd_refine_push_light_sums(refine);
    refine->phase = VXD_REFINE_SOLVE_LIGHT;
    refine->cg = 0;
out:
    return status;
}

static void solve_light(struct vxd_refine *refine)
{
    for (int i = 0; i < CG_AT_ONCE && refine->cg < LIGHT_ITERATIONS; i++, refine->cg++) {
        vxd_refine_push_cg(refine, true);
    }
    if (refine->n_ops > 0) {
        return;
    }
    push(refine, VXD_REFINE_STEP_NODE, refine->n);
    if (refine->level == 0 && refine->round == 0 && !refine->options.keep_albedo) {
        push(refine, VXD_REFINE_STEP_BIN_SUM, refine->call.bins.n_parts);
        push(refine, VXD_REFINE_STEP_BIN, VXD_REFINE_BINS);
        push(refine, VXD_REFINE_STEP_ALBEDO, refine->n);
        if (++refine->light_pass < LIGHT_PASSES) {
            vxd_refine_push_light_sums(refine);
            refine->cg = 0;
            return;
        }
        push(refine, VXD_REFINE_STEP_NODE, refine->n);
    }
    vxd_refine_push_sum(refine, VXD_REFINE_SUM_LIGHT, refine->n, VXD_REFINE_OF_LIGHT);
    refine->phase = VXD_REFINE_LINEARISE;
}

static enum vxd_status add_loss(struct vxd_refine *refine,
                                const struct vxd_refine_loss *loss, struct vxd_err *err)
{
    if (refine->n_losses == refine->losses_capacity) {
        size_t capacity =
            refine->n_losses > 0 ? 2 * refine->n_losses : (size_t)FIRST_LOSSES;
        struct vxd_refine_loss *losses =
            realloc(refine->losses, capacity * sizeof *losses);

        if (losses == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for losses");
        }
        refine->losses = losses;
        refine->losses_capacity = capacity;
    }
    refine->losses[refine->n_losses++] = *loss;
    return VXD_OK;
}

static void end_round(struct vxd_refine *refine)
{
    refine->round++;
    refine->iteration = 0;
    refine->frame = 0;
    refine->last_energy = -1;
    refine->damping = FIRST_DAMPING;
    refine->was_rejected = false;
    refine->phase = refine->round < refine->options.rounds ? VXD_REFINE_SEE_FRAMES
                                                           : VXD_REFINE_END_LEVEL;
}

/* Looks at the energy of the state, and takes it back where it is worse than the one before. */
static enum vxd_status judge(struct vxd_queue *queue, struct vxd_refine *refine,
                             struct vxd_err *err)
{
    double scalars[VXD_REFINE_N_SCALARS];
    const double *sums = scalars + VXD_REFINE_SUM;
    double energy = 0;
    struct vxd_refine_loss loss;
    enum vxd_status status;

    VXD_TRY(read_sums(queue, refine, scalars, err));
    for (int i = 0; i < 4; i++) {
        energy += sums[VXD_REFINE_OF_LOSSES + i];
    }
    loss = (struct vxd_refine_loss){
        .level = refine->level,
        .round = refine->round,
        .data = sums[0],
        .smooth = sums[1],
        .init = sums[2],
        .chroma = sums[3],
        .light = sums[VXD_REFINE_OF_LIGHT] / fmax(sums[VXD_REFINE_OF_SEEN], 1),
        .rejected = refine->options.solver == VXD_REFINE_GAUSS_NEWTON &&
                    refine->last_energy >= 0 && !refine->was_rejected &&
                    energy > refine->last_energy};
    VXD_TRY(add_loss(refine, &loss, err));
    if (loss.rejected) {
        push(refine, VXD_REFINE_STEP_REVERT, 2 * refine->n);
        vxd_refine_revert_frames(refine);
        VXD_TRY(vxd_refine_set_eyes(queue, refine, err));
        push(refine, VXD_REFINE_STEP_NODE, refine->n);
        refine->damping *= 10;
        refine->was_rejected = true;
        if (refine->iteration == refine->options.iterations) {
            end_round(refine);
        } else {
            refine->phase = VXD_REFINE_LINEARISE;
        }
        return VXD_OK;
    }
    if (!refine->was_rejected) {
        refine->damping = fmax(refine->damping / 3, LEAST_DAMPING);
        refine->last_energy = energy;
    }
    refine->was_rejected = false;
    if (refine->iteration == refine->options.iterations) {
        end_round(refine);
        return VXD_OK;
    }
    refine->call.view.damping = (vxd_refine_real)refine->damping;
    refine->cg = 0;
    refine->phase = VXD_REFINE_SOLVE;
    if (refine->options.solver == VXD_REFINE_GAUSS_NEWTON) {
        vxd_refine_push_op(refine,
                           (struct vxd_refine_op){.step = VXD_REFINE_STEP_BEGIN,
                                                  .n = 2 * refine->n,
                                                  .kind = VXD_REFINE_SUM_RZ_FIRST});
    }
out:
    return status;
}

static void solve_joint(struct vxd_refine *refine)
{
    const struct vxd_refine_options *options = &refine->options;

    if (options->solver == VXD_REFINE_ADAM) {
        int step = refine->round * options->iterations + refine->iteration + 1;

        refine->call.solve.rate =
            (vxd_refine_real)(options->learning_rate > 0 ? options->learning_rate : 0.01);
        refine->call.solve.correct1 = (vxd_refine_real)(1 / (1 - pow(0.9, step)));
        refine->call.solve.correct2 = (vxd_refine_real)(1 / (1 - pow(0.999, step)));
        push(refine, VXD_REFINE_STEP_ADAM, 2 * refine->n);
    }
    for (int i = 0; options->solver == VXD_REFINE_GAUSS_NEWTON && i < CG_AT_ONCE &&
                    refine->cg < options->cg_iterations;
         i++, refine->cg++) {
        vxd_refine_push_cg(refine, false);
    }
    if (options->solver == VXD_REFINE_GAUSS_NEWTON && refine->n_ops > 0) {
        return;
    }
    push(refine, VXD_REFINE_STEP_ACCEPT, 2 * refine->n);
    push(refine, VXD_REFINE_STEP_NODE, refine->n);
    refine->phase = VXD_REFINE_STEP_TAKEN;
}

enum vxd_status vxd_refine_next_joint(struct vxd_queue *queue, struct vxd_refine *refine,
                                      struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    switch (refine->phase) {
    case VXD_REFINE_MEANS:
        push(refine, VXD_REFINE_STEP_MEAN, refine->n);
        push(refine, VXD_REFINE_STEP_CHROMA, refine->n);
        vxd_refine_push_sum(refine, VXD_REFINE_SUM_SEEN, refine->n, VXD_REFINE_OF_SEEN);
        vxd_refine_push_sum(refine, VXD_REFINE_SUM_BRIGHT, refine->n,
                            VXD_REFINE_OF_BRIGHT);
        refine->phase = VXD_REFINE_FIND_CUBES;
        break;
    case VXD_REFINE_FIND_CUBES:
        return begin_light(queue, refine, err);
    case VXD_REFINE_SOLVE_LIGHT:
        solve_light(refine);
        break;
    case VXD_REFINE_LINEARISE:
        push_linearise(refine);
        refine->phase = VXD_REFINE_JUDGE;
        break;
    case VXD_REFINE_JUDGE:
        return judge(queue, refine, err);
    case VXD_REFINE_SOLVE:
        solve_joint(refine);
        break;
    case VXD_REFINE_STEP_TAKEN:
        refine->iteration++;
        vxd_refine_keep_frames(refine);
        refine->phase = VXD_REFINE_LINEARISE;
        /* The first round's surface lacks what keyframes would be moved to explain. */
        if ((refine->round > 0 || refine->options.rounds == 1) &&
            (!refine->options.keep_poses || refine->options.refine_intrinsics)) {
            push_sights(refine, true);
            refine->phase = VXD_REFINE_POSES_SUMMED;
        }
        break;
    case VXD_REFINE_POSES_SUMMED:
        VXD_TRY(vxd_refine_move_frames(queue, refine, err));
        VXD_TRY(vxd_refine_set_eyes(queue, refine, err));
        refine->phase = VXD_REFINE_LINEARISE;
        break;
    default:
        status = vxd_fail(err, VXD_INTERNAL, NULL, "a refinement is in no phase");
        break;
    }
out:
    return status;
}
