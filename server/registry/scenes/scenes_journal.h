// SPDX-License-Identifier: Apache-2.0
/* Durable scenes: what changes them goes to the journal (server/durable) before anybody sees it,
 * and comes back from there, or from a snapshot file and what follows it, at the next start.
 *
 *   change    executes to a version that waits; its record and its reply are handed over as one
 *             transaction; when that is decided, everybody sees the version, or nobody ever
 *   start     newest valid snapshot, then the records after it, in order
 *   snapshot  a thread of its own writes what everybody sees, when a family's journal has
 *             grown to its journal_max_bytes; no change waits for it */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENES_JOURNAL_H
#define VXD_SERVER_REGISTRY_SCENES_SCENES_JOURNAL_H

#include "server/durable/record/record.h"
#include "server/registry/scenes/named_scenes.h"

struct vxd_once;

/* Opens the journal in a directory that is locked, which is borrowed, and brings back the scenes and the
 * exactly-once outcomes that are there. Once, before anything runs. Logs its progress.
 * errors  those of journal.h and recovery.h; no memory for a scene */
enum vxd_status vxd_scenes_open_journal(struct vxd_scenes *scenes, struct vxd_once *once,
                                        const struct vxd_data_dir *dir,
                                        struct vxd_err *err);

/* Nothing runs any more: writes what waits and closes it. Harmless without one. */
void vxd_scenes_close_journal(struct vxd_scenes *scenes);

/* NULL: there is none. Borrowed. */
struct vxd_journal *vxd_scenes_get_journal(struct vxd_scenes *scenes);

/* Where it is; of a journal that there is. Borrowed. */
const struct vxd_data_dir *vxd_scenes_get_data_dir(struct vxd_scenes *scenes);

/* --- on the write lane ------------------------------------------------------------------- */

/* What the journal gets of one change. Zero-initialised = nothing. */
struct vxd_scene_entry {
    enum vxd_record_kind kind;
    uint64_t version; /* the number that it makes, where it makes one */
    int64_t unix_ns;
    struct vxd_record_bytes record;
    uint64_t sequence; /* that it got */
};

bool vxd_scene_is_durable(const struct vxd_scene *scene);

/* Whether a change of a durable scene can be handed over now.
 * errors  UNAVAILABLE  the disk does not take it, or a change that this one would build on has
 *                      just failed */
enum vxd_status vxd_scene_check_journal(struct vxd_scene *scene, struct vxd_err *err);

/* Packs the record of a change: entry->kind, version and unix_ns are set; operations with
 * lists in host memory for EDIT and INTEGRATE, of_version for UNDO, REDO and BRANCH (of
 * `from`).
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_pack_entry(const struct vxd_scene *scene,
                                     const struct vxd_request *request,
                                     const struct vxd_svdag_op *ops, size_t n_ops,
                                     const struct vxd_scene *from, uint64_t of_version,
                                     struct vxd_scene_entry *entry, struct vxd_err *err);

/* Hands it over with the request's outcome (its output is complete); vxd_commit_decide
 * follows.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED; then it does not follow */
enum vxd_status vxd_scene_hand_over(struct vxd_scene *scene, struct vxd_request *request,
                                    struct vxd_scene_entry *entry, struct vxd_err *err);

/* Adds to a transaction that this version is the newest one now (scene_ages.h).
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_mark_age(struct vxd_scene *scene, uint64_t version,
                                   struct vxd_journal_txn *txn, struct vxd_err *err);

/* What was handed over is decided, in this order; call it after everybody sees the change or
 * it was taken back. */
void vxd_scene_note_decided(struct vxd_scene *scene, const struct vxd_scene_entry *entry,
                            bool committed);

/* Writes a snapshot's name, or that it is forgotten, with the request's outcome, and waits for the
 * disk: that is rare enough for the write lane.
 * errors  as vxd_scene_hand_over, and what the disk says */
enum vxd_status vxd_scene_commit_snapshot(struct vxd_scene *scene,
                                          struct vxd_request *request,
                                          const struct vxd_scene_snapshot *snapshot,
                                          bool drop, struct vxd_err *err);

/* Adds what a request that is filed is answered (exactly_once.h), so that it is known after a
 * start; its output stays as it is. Harmless where it is not filed.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_put_outcome(struct vxd_request *request, int64_t unix_ns,
                                      struct vxd_journal_txn *txn, struct vxd_err *err);

void vxd_scene_free_entry(struct vxd_scene_entry *entry);

#endif
