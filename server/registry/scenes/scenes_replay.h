// SPDX-License-Identifier: Apache-2.0
/* Applies changes of the journal again. Versions that nobody can ask for any more are
 * skipped: the changes up to the next version that somebody may ask for become one edit
 * of the engine. That traverses the tree once for all of them and makes no node that only
 * a version between them had. Private to scenes_*.c. */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENES_REPLAY_H
#define VXD_SERVER_REGISTRY_SCENES_SCENES_REPLAY_H

#include "server/durable/record/record.h"
#include "server/registry/scenes/scenes_internal.h"

/* --- scenes_replay_plan.c --------------------------------------------------------------- */

/* What the records of a family need of one another: which versions they use again, and
 * where each scene ends. Zero-initialised but for the backend, nothing is known, and
 * every version has to be made. */
struct vxd_scene_plan {
    enum vxd_backend backend;        /* of the scenes */
    struct vxd_scene_planned *lives; /* ordered by their first records */
    size_t n;
    size_t capacity;
    struct vxd_scene_planned_name *named;
    size_t n_named;
    size_t named_capacity;
    size_t found;    /* the one that was found last */
    bool is_useless; /* there was no memory for the plan */
};

void vxd_scene_plan_free(struct vxd_scene_plan *plan);

/* Adds a version that a name keeps. To be called before the records. */
void vxd_scene_plan_name(struct vxd_scene_plan *plan, const char *scene,
                         uint64_t version);

/* Adds the next record's head, with its sequence number. */
void vxd_scene_plan_record(struct vxd_scene_plan *plan, uint64_t sequence,
                           const struct vxd_record *head);

/* Returns how many records may be one edit, of n in the order of the journal from
 * `sequence` on; at least 1. The first is a change of this scene. */
size_t vxd_scene_plan_count(struct vxd_scene_plan *plan, const struct vxd_scene *scene,
                            uint64_t sequence, const struct vxd_record_decoded *records,
                            size_t n);

/* --- scenes_replay.c -------------------------------------------------------------------- */

/* Applies n changes of a scene as one edit; an undo or redo is applied alone. The
 * versions before the last get its root and no counts. A change that the scene has
 * already is skipped where n is 1.
 * errors  DATA_LOSS           they do not follow one another, or undo what is not there
 *         RESOURCE_EXHAUSTED  (also where n > 1 and each alone would do), others of the engine;
 *                             no version was made */
enum vxd_status vxd_scene_replay(struct vxd_scene *scene, uint64_t least_generation,
                                 const struct vxd_record_decoded *records, size_t n,
                                 struct vxd_err *err);

/* --- scenes_cast.c ---------------------------------------------------------------------- */

/* The lists of a scan that was cast again, and the memory of its points. Zero-initialised it is
 * nothing. */
struct vxd_scene_cast {
    struct vxd_buffer points;
    struct vxd_buffer origins;
    struct vxd_buffer values;
    struct vxd_svdag_scan_result result;
};

/* Casts the scans of a record, if it has any, and gives its operations their lists, which live
 * until the casts, one for each scan, are freed, also after a failure. Blocking.
 * errors  DATA_LOSS           a value that is no material of the scene's
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_cast_scans(struct vxd_queue *queue,
                                     const struct vxd_svdag_format *format,
                                     const struct vxd_record *record,
                                     struct vxd_scene_cast *casts,
                                     struct vxd_svdag_op *ops, struct vxd_err *err);
void vxd_scene_cast_free(struct vxd_queue *queue, struct vxd_scene_cast *cast);

#endif
