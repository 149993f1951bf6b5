// SPDX-License-Identifier: Apache-2.0
#include "server/registry/scenes/scene_fusion.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/registry/scenes/scenes_internal.h"
#include "server/registry/scenes/scenes_journal.h"

enum {
    COPY_STEP_NS = 500000
};

uint32_t vxd_scene_rules(const struct vxd_scene *scene)
{
    return vxd_scene_fuses(scene) ? VXD_LOG_ODDS_RULES : VXD_LAST_WORD_RULES;
}

static const char *names_of_limits(const struct vxd_scene *scene)
{
    return scene->family->max_bytes > 0 ? "its max_bytes and the limits"
                                        : "limits.scene_bytes and _per_token";
}

static void account(struct vxd_scene *scene)
{
    struct vxd_scenes *scenes = scene->scenes;
    uint64_t now = vxd_occupancy_n_bytes(scene->log_odds.layer);

    vxd_scenes_lock(scenes);
    atomic_fetch_add(&scenes->n_bytes, now);
    atomic_fetch_sub(&scenes->n_bytes, scene->log_odds.n_bytes);
    vxd_auth_note_bytes(scenes->auth, scene->family->owner, scene->log_odds.n_bytes, now);
    scene->log_odds.n_bytes = now;
    scene->log_odds.n_vote_bytes = vxd_occupancy_vote_bytes(scene->log_odds.layer);
    vxd_scenes_unlock(scenes);
}

/* Refuses a copy of the parent's layer that the limits leave no room for; a layer's own limit
 * counts from the next change on. */
static enum vxd_status check_copy(const struct vxd_scene *scene,
                                  const struct vxd_scene *parent, struct vxd_err *err)
{
    uint64_t needed = vxd_occupancy_n_bytes(parent->log_odds.layer);
    uint64_t allowed = vxd_scene_layer_allowance(scene);

    if (allowed == 0 || needed <= allowed) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "log-odds: a copy of those of \"%s\" takes %" PRIu64
                    " bytes, but %s leave it %" PRIu64,
                    parent->terms.name, needed, names_of_limits(scene), allowed);
}

enum vxd_status vxd_scene_new_log_odds(struct vxd_scene *scene,
                                       const struct vxd_scene *parent,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    bool copies = parent != NULL && !parent->log_odds.must_forget;
    enum vxd_status status = VXD_OK;

    if (!vxd_scene_fuses(scene)) {
        return VXD_OK;
    }
    vxd_scene_free_log_odds(scene, queue);
    if (copies) {
        VXD_TRY(check_copy(scene, parent, err));
    }
    /* Where the parent's layer has forgotten what its records say, so has this one. */
    scene->log_odds.has_forgotten = parent != NULL && (parent->log_odds.must_forget ||
                                                       parent->log_odds.has_forgotten);
    scene->log_odds.decayed_ns = parent != NULL ? parent->log_odds.decayed_ns : 0;
    scene->log_odds.newest_ns = parent != NULL ? parent->log_odds.newest_ns : 0;
    VXD_TRY(copies
                ? vxd_occupancy_copy(queue, parent->log_odds.layer,
                                     &scene->log_odds.layer, err)
                : vxd_occupancy_create(queue, &scene->spec.rule, scene->spec.format.depth,
                                       &scene->log_odds.layer, err));
    account(scene);
out:
    return status;
}

void vxd_scene_free_log_odds(struct vxd_scene *scene, struct vxd_queue *queue)
{
    vxd_occupancy_destroy(queue, scene->log_odds.layer);
    atomic_fetch_sub(&scene->scenes->n_bytes, scene->log_odds.n_bytes);
    if (scene->log_odds.n_bytes > 0) { /* so it has a family */
        vxd_auth_note_bytes(scene->scenes->auth, scene->family->owner,
                            scene->log_odds.n_bytes, 0);
    }
    memset(&scene->log_odds, 0, sizeof scene->log_odds);
}

/* Counts the change, unless a copy is being made, or is about to be since nothing stands in its
 * way any more. While something does, changes go on: what they wait for may need this lane. */
static bool enter(struct vxd_scene *scene)
{
    struct vxd_scene_family *family = scene->family;
    bool is_free;

    vxd_scenes_lock(scene->scenes);
    is_free = !family->is_copied &&
              !(family->wants_copy && family->n_fusing + family->n_referring == 0);
    family->n_fusing += is_free ? 1 : 0;
    vxd_scenes_unlock(scene->scenes);
    return is_free;
}

enum vxd_status vxd_scene_begin_fusing(struct vxd_scene *scene, struct vxd_queue *queue,
                                       struct vxd_err *err)
{
    const struct timespec step = {.tv_nsec = COPY_STEP_NS};
    struct vxd_scene_log_odds *log_odds = &scene->log_odds;
    enum vxd_status status = VXD_OK;

    if (!vxd_scene_fuses(scene)) {
        return VXD_OK;
    }
    while (!enter(scene)) {
        (void)nanosleep(&step, NULL);
    }
    if (log_odds->must_forget) {
        status = vxd_occupancy_clear(queue, log_odds->layer, err);
        log_odds->must_forget = status != VXD_OK;
        log_odds->has_forgotten = log_odds->has_forgotten || status == VXD_OK;
    }
    vxd_occupancy_set_max_bytes(log_odds->layer,
                                (size_t)vxd_scene_layer_allowance(scene));
    if (status != VXD_OK) {
        vxd_scene_end_fusing(scene);
    }
    return status;
}

void vxd_scene_end_fusing(struct vxd_scene *scene)
{
    if (vxd_scene_fuses(scene)) {
        vxd_scenes_lock(scene->scenes);
        scene->family->n_fusing--;
        vxd_scenes_unlock(scene->scenes);
    }
}

/* Says which limit the engine's refusal is about. */
static void explain(const struct vxd_scene *scene, struct vxd_err *err)
{
    char what[160];

    if (err == NULL || err->code != VXD_RESOURCE_EXHAUSTED ||
        strcmp(err->field, "max_bytes") != 0) {
        return;
    }
    (void)snprintf(what, sizeof what, "%.120s", err->message);
    (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                   "log-odds: %s (%s leave them %" PRIu64 ")", what,
                   names_of_limits(scene), vxd_scene_layer_allowance(scene));
}

/* Lists of a scan's operations, and the operations of its edit. */
struct scan_lists {
    struct vxd_svdag_voxels *hits;
    struct vxd_svdag_voxels *passed;
    size_t n_hits;
    size_t n_passed;
    struct vxd_svdag_op *ops; /* one more than hits */
    struct vxd_svdag_voxel_list
        *unpinned; /* one for each operation, where there are pins */
    size_t n_unpinned;
};

/* Takes the pinned voxels out of an operation's list. */
static enum vxd_status unpin(struct vxd_queue *queue, const struct vxd_scene_state *state,
                             struct vxd_svdag_op *op, struct scan_lists *lists,
                             struct vxd_err *err)
{
    struct vxd_svdag_voxel_list *list;
    enum vxd_status status;

    if (state->pins == VXD_SVDAG_EMPTY) {
        return VXD_OK;
    }
    list = &lists->unpinned[lists->n_unpinned++];
    status = vxd_occupancy_unpinned(queue, state->svdag, state->pins, &op->shape.voxels,
                                    list, err);
    op->shape.voxels = list->voxels;
    return status;
}

static enum vxd_status split_ops(struct vxd_queue *queue,
                                 const struct vxd_scene_state *state,
                                 const struct vxd_svdag_op *ops, size_t n_ops,
                                 struct scan_lists *lists, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    lists->unpinned = calloc(n_ops + 1, sizeof *lists->unpinned);
    lists->hits = calloc(n_ops + 1, sizeof *lists->hits);
    lists->passed = calloc(n_ops + 1, sizeof *lists->passed);
    lists->ops = calloc(n_ops + 1, sizeof *lists->ops);
    if (lists->hits == NULL || lists->passed == NULL || lists->ops == NULL ||
        lists->unpinned == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scan");
    }
    for (size_t i = 0; i < n_ops; i++) {
        struct vxd_svdag_op op = ops[i];

        VXD_TRY(unpin(queue, state, &op, lists, err));
        if (op.shape.voxels.n == 0) {
            continue;
        }
        if (op.action == VXD_SVDAG_FILL) {
            lists->ops[lists->n_hits] = op;
            lists->hits[lists->n_hits++] = op.shape.voxels;
        } else {
            lists->passed[lists->n_passed++] = op.shape.voxels;
        }
    }
out:
    return status;
}

static void free_lists(struct vxd_queue *queue, struct scan_lists *lists)
{
    for (size_t i = 0; i < lists->n_unpinned; i++) {
        vxd_svdag_voxel_list_free(queue, &lists->unpinned[i]);
    }
    free(lists->hits);
    free(lists->passed);
    free(lists->ops);
    free(lists->unpinned);
}

/* Accounts for what planning took, and explains why it failed. */
static enum vxd_status end_planning(struct vxd_scene *scene, enum vxd_status status,
                                    struct vxd_err *err)
{
    account(scene);
    vxd_scene_allow(scene); /* the store: what the layer has left of it */
    if (status != VXD_OK) {
        if (vxd_occupancy_is_damaged(scene->log_odds.layer)) {
            vxd_scene_fusing_failed(scene); /* so that the next record says it */
        }
        explain(scene, err);
    }
    return status;
}

/* Counts the hits as votes, where the scene has such, so that they fill with what wins. */
static enum vxd_status vote(struct vxd_queue *queue, struct vxd_occupancy_plan *plan,
                            struct scan_lists *lists, struct vxd_err *err)
{
    struct vxd_svdag_voxels *voted = calloc(lists->n_hits + 1, sizeof *voted);
    uint32_t *values = calloc(lists->n_hits + 1, sizeof *values);
    enum vxd_status status;

    if (voted == NULL || values == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for votes"));
    }
    for (size_t i = 0; i < lists->n_hits; i++) {
        values[i] = lists->ops[i].value;
    }
    VXD_TRY(
        vxd_occupancy_vote(queue, plan, lists->hits, values, lists->n_hits, voted, err));
    for (size_t i = 0; i < lists->n_hits; i++) {
        lists->ops[i].shape.voxels = voted[i];
    }
out:
    free(values);
    free(voted);
    return status;
}

enum vxd_status vxd_scene_fuse(struct vxd_scene *scene,
                               const struct vxd_scene_state *state,
                               struct vxd_queue *queue, const struct vxd_svdag_op *ops,
                               size_t n_ops, struct vxd_occupancy_plan **plan,
                               struct vxd_svdag_edit_result *result, struct vxd_err *err)
{
    struct scan_lists lists = {0};
    struct vxd_svdag_voxels freed;
    struct vxd_svdag_op *frees;
    enum vxd_status status;

    VXD_TRY(split_ops(queue, state, ops, n_ops, &lists, err));
    status = vxd_occupancy_plan_scan(queue, scene->log_odds.layer, state->svdag,
                                     state->root, lists.hits, lists.n_hits, lists.passed,
                                     lists.n_passed, plan, &freed, err);
    if (status == VXD_OK) {
        status = vote(queue, *plan, &lists, err);
    }
    VXD_TRY(end_planning(scene, status, err));
    frees = &lists.ops[lists.n_hits];
    frees->shape.kind = VXD_SVDAG_VOXELS;
    frees->shape.voxels = freed;
    frees->action = VXD_SVDAG_SET_FREE;
    status = vxd_svdag_edit_wait(queue, state->svdag, state->root, lists.ops,
                                 lists.n_hits + (freed.n > 0 ? 1 : 0), result, err);
out:
    free_lists(queue, &lists);
    return status;
}

enum vxd_status vxd_scene_decay(struct vxd_scene *scene,
                                const struct vxd_scene_state *state,
                                struct vxd_queue *queue,
                                const struct vxd_occupancy_decay *decay,
                                struct vxd_occupancy_plan **plan,
                                struct vxd_svdag_edit_result *result, struct vxd_err *err)
{
    struct vxd_svdag_op erase = {.shape = {.kind = VXD_SVDAG_VOXELS},
                                 .action = VXD_SVDAG_ERASE};
    enum vxd_status status =
        vxd_occupancy_plan_decay(queue, scene->log_odds.layer, state->svdag, state->root,
                                 state->pins, decay, plan, &erase.shape.voxels, err);

    VXD_TRY(end_planning(scene, status, err));
    status = vxd_svdag_edit_wait(queue, state->svdag, state->root, &erase,
                                 erase.shape.voxels.n > 0 ? 1 : 0, result, err);
out:
    return status;
}

enum vxd_status vxd_scene_apply_plan(struct vxd_scene *scene, struct vxd_queue *queue,
                                     const struct vxd_occupancy_plan *plan,
                                     struct vxd_err *err)
{
    return vxd_occupancy_apply(queue, scene->log_odds.layer, plan, err);
}

enum vxd_status vxd_scene_follow_change(struct vxd_scene *scene,
                                        const struct vxd_scene_state *state,
                                        uint32_t after, struct vxd_queue *queue,
                                        struct vxd_err *err)
{
    return vxd_scene_fuses(scene)
               ? vxd_occupancy_follow(queue, scene->log_odds.layer, state->svdag,
                                      state->root, after, err)
               : VXD_OK;
}

void vxd_scene_fusing_failed(struct vxd_scene *scene)
{
    scene->log_odds.must_forget = vxd_scene_fuses(scene);
}

void vxd_scene_want_copy(struct vxd_scene *scene, bool wants)
{
    struct vxd_scene_family *family = scene->family;

    if (family->wants_copy != wants) {
        family->wants_copy = wants;
        atomic_fetch_add(&scene->scenes->n_wanting_copy, wants ? (size_t)1 : (size_t)-1);
    }
}

bool vxd_scenes_want_copy(const struct vxd_scenes *scenes)
{
    return atomic_load(&scenes->n_wanting_copy) > 0;
}

bool vxd_scene_begin_copy(struct vxd_scene *scene)
{
    struct vxd_scene_family *family = scene->family;

    if (family->n_referring > 0 || (vxd_scene_fuses(scene) && family->n_fusing > 0)) {
        return false;
    }
    family->is_copied = true;
    return true;
}

void vxd_scene_end_copy(struct vxd_scene *scene)
{
    vxd_scenes_lock(scene->scenes);
    scene->family->is_copied = false;
    vxd_scenes_unlock(scene->scenes);
}

enum vxd_status vxd_scene_copy_log_odds(struct vxd_scene *scene, struct vxd_queue *queue,
                                        struct vxd_occupancy_image *out,
                                        bool *has_forgotten, struct vxd_err *err)
{
    const struct vxd_scene_log_odds *log_odds = &scene->log_odds;

    *has_forgotten = log_odds->must_forget || log_odds->has_forgotten;
    return log_odds->must_forget ? VXD_OK
                                 : vxd_occupancy_export(queue, log_odds->layer, out, err);
}

enum vxd_status vxd_scene_import_log_odds(struct vxd_scene *scene,
                                          const struct vxd_occupancy_image *image,
                                          bool has_forgotten, struct vxd_err *err)
{
    enum vxd_status status =
        vxd_occupancy_import(scene->scenes->queue, scene->log_odds.layer, image, err);

    scene->log_odds.has_forgotten = has_forgotten;
    account(scene);
    return status;
}

uint64_t vxd_scene_log_odds_bytes(const struct vxd_scene *scene)
{
    uint64_t n = 0;

    vxd_scenes_lock(scene->scenes);
    for (const struct vxd_scene *s = scene->family->first; s != NULL;
         s = s->next_in_family) {
        n += s->log_odds.n_bytes;
    }
    vxd_scenes_unlock(scene->scenes);
    return n;
}

uint64_t vxd_scene_vote_bytes(const struct vxd_scene *scene)
{
    uint64_t n = 0;

    vxd_scenes_lock(scene->scenes);
    for (const struct vxd_scene *s = scene->family->first; s != NULL;
         s = s->next_in_family) {
        n += s->log_odds.n_vote_bytes;
    }
    vxd_scenes_unlock(scene->scenes);
    return n;
}
