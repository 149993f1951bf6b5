// SPDX-License-Identifier: Apache-2.0
/* Durable scenes. A change goes to the journal (server/durable) before anybody sees it.
 * At the next start scenes come back from the journal, or from a snapshot file and the
 * records after it.
 *
 *   change    the change makes a version that waits; its record and its reply are handed over as one
 *             transaction. When that is decided, everybody sees the version, or nobody ever does
 *   start     the newest valid snapshot, then the records after it, in order
 *   snapshot  on the registry's thread (registry_saver.c), what everybody sees is written when the
 *             family's journal has grown to its journal_max_bytes; no change waits for it */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENES_JOURNAL_H
#define VXD_SERVER_REGISTRY_SCENES_SCENES_JOURNAL_H

#include "server/durable/record/record.h"
#include "server/registry/registry.h"
#include "server/registry/scenes/named_scenes.h"

/* --- on the write lane ------------------------------------------------------------------- */

/* What a change hands over to the journal. Zero-initialised it is nothing. */
struct vxd_scene_entry {
    enum vxd_record_kind kind;
    uint64_t version; /* the number of the version that it makes, if it makes one */
    int64_t unix_ns;
    /* DECAY: what it is, and the record's decayed_ns. */
    struct vxd_occupancy_decay decay;
    int64_t decayed_ns;
    size_t n_pin_ops; /* PIN */
    /* CAST, CAST_FUSE: as the record's. */
    const struct vxd_record_scan *scans;
    size_t n_scans;
    bool erases;
    /* From vxd_scene_begin_entry to vxd_scene_end_entry. */
    struct vxd_scene_packing {
        struct vxd_packing base;
        const struct vxd_scene *scene;
        const struct vxd_request *request;
        const struct vxd_svdag_op *ops;
        size_t n_ops;
        const struct vxd_scene *from;
        uint64_t of_version;
        enum vxd_status status;
        struct vxd_err err;
    } packing;
    struct vxd_record_bytes record;
    uint64_t sequence; /* the number that its record got */
};

bool vxd_scene_is_durable(const struct vxd_scene *scene);

/* Checks that a change of a durable scene can be handed over now.
 * errors  UNAVAILABLE  the disk does not take it, or a change that this one would build on has
 *                      just failed */
enum vxd_status vxd_scene_check_journal(struct vxd_scene *scene, struct vxd_err *err);

/* Begins to pack the record of a change, a large one on a thread of its own. entry->kind, version
 * and unix_ns are set; EDIT, INTEGRATE, FUSE and PIN have operations with lists in host memory,
 * CAST and CAST_FUSE have entry->scans; UNDO, REDO and BRANCH (which is made from `from`) have
 * of_version. What is given stays as it is until vxd_scene_end_entry, which must follow. */
void vxd_scene_begin_entry(const struct vxd_scene *scene,
                           const struct vxd_request *request,
                           const struct vxd_svdag_op *ops, size_t n_ops,
                           const struct vxd_scene *from, uint64_t of_version,
                           struct vxd_scene_entry *entry);

/* Waits until the record is packed, if it is needed. Does nothing where it was not begun.
 * errors  RESOURCE_EXHAUSTED; only where it is needed */
enum vxd_status vxd_scene_end_entry(const struct vxd_scene *scene,
                                    struct vxd_scene_entry *entry, bool is_needed,
                                    struct vxd_err *err);

/* Hands a change over with the request's outcome (its output is complete);
 * vxd_commit_decide follows.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED; then it does not follow */
enum vxd_status vxd_scene_hand_over(struct vxd_scene *scene, struct vxd_request *request,
                                    struct vxd_scene_entry *entry, struct vxd_err *err);

/* Adds to a transaction that this version is the newest one at this time (scene_ages.h).
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_mark_age(struct vxd_scene *scene, uint64_t version,
                                   struct vxd_journal_txn *txn, struct vxd_err *err);

/* Writes that a scene was dropped, at a start, which takes its name from it; waits for the disk.
 * errors  of journal.h; RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_commit_drop(struct vxd_scene *scene, struct vxd_err *err);

/* Asks for a snapshot of a family whose few bytes take long to apply: a start is not to take
 * much longer than a snapshot file does. */
void vxd_scene_save_if_slow(struct vxd_scene_family *family);

/* Ends a record that was handed over, once it is decided. Records end in the order in
 * which they were handed over, each after everybody sees its change or it was taken
 * back. */
void vxd_scene_end_record(struct vxd_scene *scene, const struct vxd_scene_entry *entry,
                          bool committed);

/* Writes a snapshot's name, or with `drop` forgets it, together with the request's
 * outcome, and waits for the disk: this is rare enough for the write lane.
 * errors  as vxd_scene_hand_over, and what the disk says */
enum vxd_status vxd_scene_commit_snapshot(struct vxd_scene *scene,
                                          struct vxd_request *request,
                                          const struct vxd_scene_snapshot *snapshot,
                                          bool drop, struct vxd_err *err);

void vxd_scene_free_entry(struct vxd_scene_entry *entry);

#endif
