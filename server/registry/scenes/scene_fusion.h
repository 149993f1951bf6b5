// SPDX-License-Identifier: Apache-2.0
/* Log-odds of scenes that fuse their scans. A layer follows its scene's last version, also
 * while that waits for the journal. So a change that fails leaves a layer that has seen
 * too much: it forgets its values, and the record of the next scan says so, which gives
 * the same layer when the journal is applied again. A snapshot file has the layer of what
 * everybody sees: it copies it when no change waits, and the lane's next change waits for
 * the copy. On the write lane, where nothing else is said. */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENE_FUSION_H
#define VXD_SERVER_REGISTRY_SCENES_SCENE_FUSION_H

#include "gpu/svdag/edit/edit.h"
#include "server/registry/scenes/named_scenes.h"

static inline bool vxd_scene_fuses(const struct vxd_scene *scene)
{
    return scene->spec.fusion == VXD_SCENE_LOG_ODDS;
}

/* Returns the rules that its records and snapshots need (scene_record.h). */
uint32_t vxd_scene_rules(const struct vxd_scene *scene);

/* Makes the layer of a scene that fuses, in place of the one that it may have: empty, or a
 * copy of the parent's, as whose last version the scene begins. A parent of NULL is none.
 * errors  RESOURCE_EXHAUSTED  also where the limits leave no room for the copy */
enum vxd_status vxd_scene_new_log_odds(struct vxd_scene *scene,
                                       const struct vxd_scene *parent,
                                       struct vxd_queue *queue, struct vxd_err *err);
void vxd_scene_free_log_odds(struct vxd_scene *scene, struct vxd_queue *queue);

/* Begins a change of a scene: waits for a copy that is being made, forgets what has to be
 * forgotten, and allows the layer what the limits leave. A durable scene's change is ended by
 * vxd_scene_end_fusing, whatever becomes of it. Does nothing to a scene that does not
 * fuse.
 * errors  RESOURCE_EXHAUSTED; nothing is to be ended */
enum vxd_status vxd_scene_begin_fusing(struct vxd_scene *scene, struct vxd_queue *queue,
                                       struct vxd_err *err);
void vxd_scene_end_fusing(struct vxd_scene *scene);

/* Edits what a scan does: its lists of passed voxels are operations that set free, those of
 * hit ones operations that fill, as its record has them; pinned voxels are left out. The
 * layer is updated by vxd_scene_apply_plan, once the record is made.
 *
 * in      state  pins the last version
 * out     *plan  to be freed by vxd_occupancy_plan_free
 * errors  as vxd_occupancy_plan_scan and vxd_svdag_edit; names the limit. The scene and the
 *         layer are as they were; where the layer could not be kept, it forgets its values as
 *         after vxd_scene_fusing_failed */
enum vxd_status vxd_scene_fuse(struct vxd_scene *scene,
                               const struct vxd_scene_state *state,
                               struct vxd_queue *queue, const struct vxd_svdag_op *ops,
                               size_t n_ops, struct vxd_occupancy_plan **plan,
                               struct vxd_svdag_edit_result *result, struct vxd_err *err);
/* The same for a decay. */
enum vxd_status
vxd_scene_decay(struct vxd_scene *scene, const struct vxd_scene_state *state,
                struct vxd_queue *queue, const struct vxd_occupancy_decay *decay,
                struct vxd_occupancy_plan **plan, struct vxd_svdag_edit_result *result,
                struct vxd_err *err);
enum vxd_status vxd_scene_apply_plan(struct vxd_scene *scene, struct vxd_queue *queue,
                                     const struct vxd_occupancy_plan *plan,
                                     struct vxd_err *err);

/* Follows any other change of a scene that fuses.
 * errors  RESOURCE_EXHAUSTED; nothing has changed */
enum vxd_status vxd_scene_follow_change(struct vxd_scene *scene,
                                        const struct vxd_scene_state *state,
                                        uint32_t after, struct vxd_queue *queue,
                                        struct vxd_err *err);

/* The layer has followed a change that failed. */
void vxd_scene_fusing_failed(struct vxd_scene *scene);

/* Says, with the mutex held, that a copy is to begin which a change that is under way does
 * not let begin; or that it has begun or was given up. A family has one such copy at a time.
 * vxd_scenes_want_copy says whether any family's waits: then the write lane ends what it has
 * handed over before it takes another request, or one change would always be under way. Any
 * thread. */
void vxd_scene_want_copy(struct vxd_scene *scene, bool wants);
bool vxd_scenes_want_copy(const struct vxd_scenes *scenes);

/* For snapshot files, any thread. Begins a copy, with the mutex held, where no change is
 * under way, and ends it, without the mutex. In between the layers of the family stay as
 * they are. False where one is: a change of a layer, or one that waits for the journal and
 * is made from an older version, which may be out of the history already. */
bool vxd_scene_begin_copy(struct vxd_scene *scene);
void vxd_scene_end_copy(struct vxd_scene *scene);

/* Copies the layer of a scene, between vxd_scene_begin_copy and _end_copy, and whether it has
 * forgotten what the records up to here say; and gives a scene whose layer is empty the
 * values of such a copy.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_copy_log_odds(struct vxd_scene *scene, struct vxd_queue *queue,
                                        struct vxd_occupancy_image *out,
                                        bool *has_forgotten, struct vxd_err *err);
enum vxd_status vxd_scene_import_log_odds(struct vxd_scene *scene,
                                          const struct vxd_occupancy_image *image,
                                          bool has_forgotten, struct vxd_err *err);

/* Return the bytes of all layers of a scene's family, and of those the votes'. Any thread. */
uint64_t vxd_scene_log_odds_bytes(const struct vxd_scene *scene);
uint64_t vxd_scene_vote_bytes(const struct vxd_scene *scene);

#endif
