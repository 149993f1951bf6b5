// SPDX-License-Identifier: Apache-2.0
/* libvoxeld: versions of scenes. Part of voxeld.h, whose conventions hold here.
 *
 * Every change of a scene makes a version. The new scene is version 1, then come 2, 3
 * ...; numbers only rise, because undoing is a change as well. The server keeps the
 * newest versions of each scene, as many as it was created with, and those that a
 * snapshot names. A branch is a scene of its own that began as a version of another
 * one. Queries look at any version that is kept: their scene is NAME@VERSION or
 * NAME@SNAPSHOT (voxeld_scene.h).
 *
 *   struct voxeld_scene_undo_request undo = {.scene = "yard"};   (the newest of our own)
 *   struct voxeld_scene_undone done;
 *   if (voxeld_scene_undo(client, &undo, &done, &error) == VOXELD_OK) {
 *       ... done.of_version, done.change.n_removed ...
 *   }
 *
 * Errors of all of these are those of voxeld_scene.h, and:
 *   NOT_FOUND  a version that is not kept, or a snapshot that does not exist; error.field
 *              says which */
#ifndef VOXELD_VERSION_H
#define VOXELD_VERSION_H

#include "voxeld_scene.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A version of a scene: by number, or by the snapshot that names it. Zeroed: the newest. */
struct voxeld_scene_at {
    uint64_t version;
    const char *snapshot;
};

/* What was ------------------------------------------------------------------------------ */

enum voxeld_scene_version_kind {
    VOXELD_VERSION_MADE = 0, /* the scene, or the branch, as it was created */
    VOXELD_VERSION_EDITED = 1,
    VOXELD_VERSION_INTEGRATED = 2,
    VOXELD_VERSION_UNDONE = 3, /* undoes of_version */
    VOXELD_VERSION_REDONE = 4, /* undoes of_version, which had undone something */
    VOXELD_VERSION_DECAYED = 5 /* log-odds have faded (voxeld_upkeep.h) */
};

struct voxeld_scene_version {
    uint64_t version;
    enum voxeld_scene_version_kind kind;
    uint64_t of_version;
    int64_t stamp_ns;
    const char *by;        /* name of the token of who made it */
    const char *client_id; /* and its client_id */
    uint64_t n_added;      /* as in voxeld_scene_change */
    uint64_t n_removed;
    uint64_t n_changed;
    uint64_t n_freed;
    uint64_t undone_by; /* the last version that undid this one; 0: none */
};

struct voxeld_scene_snapshot {
    const char *name;
    uint64_t version;
    int64_t version_ns; /* when that version was made */
    int64_t taken_ns;
    const char *by;
};

/* All pointers live until the struct is freed. */
struct voxeld_scene_log {
    const struct voxeld_scene_version *versions; /* newest first */
    size_t n_versions;
    const struct voxeld_scene_snapshot *snapshots; /* all of the scene, by name */
    size_t n_snapshots;
    uint64_t version; /* the newest one */
    uint64_t generation;
    uint64_t oldest;    /* that is kept apart from snapshots */
    uint32_t n_sharing; /* scenes that share nodes with it, itself included */
};

/* Lists the kept versions below `below` (0: from the newest on), at most limit (0:
 * 100; at most 10000). Free with voxeld_scene_log_free. */
VOXELD_API enum voxeld_status
voxeld_scene_get_log(struct voxeld_client *client, const struct voxeld_call *call,
                     const char *scene, uint64_t below, uint32_t limit,
                     struct voxeld_scene_log **out, struct voxeld_error *error);
VOXELD_API void voxeld_scene_log_free(struct voxeld_scene_log *log);

/* Undo ---------------------------------------------------------------------------------- */

struct voxeld_scene_undo_request {
    const char *scene;
    /* Undo: a version that is kept together with the one before it; 0: the newest that
     * this client made by an edit or a scan and that is not undone. Redo: the version
     * that the undo made; 0: this client's newest undo that is not undone. "This
     * client" is its token and client_id. */
    uint64_t of_version;
    uint64_t if_version; /* ABORTED unless the scene is at this version; 0: at any */
    struct voxeld_call call;
};

struct voxeld_scene_undone {
    struct voxeld_scene_change change;
    uint64_t of_version;
    double engine_ms;
    double queue_ms; /* waited at the server */
    double total_ms; /* at the server, from arrival to reply */
    bool replayed;   /* the outcome of an earlier call with this sequence */
};

/* Gives the voxels that a version changed, and that are as it left them, the values
 * that they had before it; later changes of others stay. This is one change. out may
 * be NULL. */
VOXELD_API enum voxeld_status
voxeld_scene_undo(struct voxeld_client *client,
                  const struct voxeld_scene_undo_request *request,
                  struct voxeld_scene_undone *out, struct voxeld_error *error);

/* Undoes an undo in the same way. */
VOXELD_API enum voxeld_status
voxeld_scene_redo(struct voxeld_client *client,
                  const struct voxeld_scene_undo_request *request,
                  struct voxeld_scene_undone *out, struct voxeld_error *error);

/* Snapshots and branches ---------------------------------------------------------------- */

struct voxeld_scene_snapshot_request {
    const char *scene;
    const char *snapshot; /* [a-z0-9][a-z0-9._-]{0,62} */
    struct voxeld_scene_at at;
    bool replace; /* moves a snapshot that exists; else ALREADY_EXISTS */
    struct voxeld_call call;
};

struct voxeld_scene_snapshot_taken {
    uint64_t version;
    int64_t version_ns; /* when that version was made */
    int64_t taken_ns;
    bool replayed; /* the outcome of an earlier call with this sequence */
};

/* Gives a kept version a name, which keeps it. out may be NULL. */
VOXELD_API enum voxeld_status voxeld_scene_take_snapshot(
    struct voxeld_client *client, const struct voxeld_scene_snapshot_request *request,
    struct voxeld_scene_snapshot_taken *out, struct voxeld_error *error);

/* Drops the name: NOT_FOUND where there is none. call may be NULL, in all below. */
VOXELD_API enum voxeld_status voxeld_scene_drop_snapshot(struct voxeld_client *client,
                                                         const struct voxeld_call *call,
                                                         const char *scene,
                                                         const char *snapshot,
                                                         struct voxeld_error *error);

struct voxeld_scene_branch_request {
    const char *scene;
    const char *new_scene;
    struct voxeld_scene_at at; /* of `scene` */
    struct voxeld_call call;
};

/* Makes a scene that is what a version of another one is: same space and palette, own versions.
 * *out is the new scene, *of_version what it began as; both may be NULL. Free *out with
 * voxeld_scenes_free.
 * errors  ALREADY_EXISTS  a scene new_scene */
VOXELD_API enum voxeld_status voxeld_scene_branch(
    struct voxeld_client *client, const struct voxeld_scene_branch_request *request,
    struct voxeld_scenes **out, uint64_t *of_version, struct voxeld_error *error);

/* Differences --------------------------------------------------------------------------- */

/* What became of some voxel of a cell; sets of them are sums. */
enum voxeld_scene_difference {
    VOXELD_DIFF_ADDED = 1,   /* occupied in `to` and not in `from` */
    VOXELD_DIFF_REMOVED = 2, /* in `from` and not in `to` */
    VOXELD_DIFF_CHANGED = 4, /* of another material */
    VOXELD_DIFF_FREED = 8,   /* free in `to` and not in `from` */
    VOXELD_DIFF_UNFREED = 16 /* in `from` and not in `to` */
};

struct voxeld_scene_diff_request {
    const char *scene;
    /* Both zeroed: from the version before the newest (with to_scene the newest) to
     * the newest. */
    struct voxeld_scene_at from;
    struct voxeld_scene_at to;
    const char *to_scene; /* the scene of `to`, which shares nodes; NULL: `scene` */
    uint32_t level;       /* cells are 2^level voxels a side */
    bool has_box;         /* else all of the scene */
    struct voxeld_scene_box box;
    bool in_voxels; /* the box is voxels, not metres */
    uint64_t first; /* of the cells in Morton order: skip so many, */
    uint64_t limit; /* send at most so many; 0: as many as fit in a reply */
    struct voxeld_call call;
};

/* All pointers live until the struct is freed. */
struct voxeld_scene_diff {
    size_t n;
    const int32_t *cells;   /* n x 3, voxel indices >> level */
    const uint8_t *changes; /* n sets of enum voxeld_scene_difference */
    uint64_t n_cells;       /* of the whole box, not of this reply */
    uint64_t from_version;
    uint64_t to_version;
    uint64_t generation;
    /* The low corner of cell (x, y, z) is origin_m + (x, y, z) * cell_size_m. */
    double origin_m[3];
    double cell_size_m;
    const char *frame_id;
    double engine_ms; /* in the engine, copies included */
    double queue_ms;  /* waited at the server */
    double total_ms;  /* at the server, from arrival to reply */
    const char *request_id;
};

/* Finds the cells in which two versions differ. To go on after the first reply, ask
 * for the versions that it names. Free with voxeld_scene_diff_free.
 * errors  FAILED_PRECONDITION  to_scene shares nothing with `scene` */
VOXELD_API enum voxeld_status
voxeld_scene_get_diff(struct voxeld_client *client,
                      const struct voxeld_scene_diff_request *request,
                      struct voxeld_scene_diff **out, struct voxeld_error *error);
VOXELD_API void voxeld_scene_diff_free(struct voxeld_scene_diff *diff);

/* Care ---------------------------------------------------------------------------------- */

struct voxeld_scene_verified {
    uint64_t n_versions;
    uint64_t n_roots; /* distinct roots, those of snapshots included */
    uint64_t n_nodes; /* summed over the roots */
    char digest[33];  /* of the newest version */
    double engine_ms;
};

/* Checks all nodes that kept versions and snapshots hold. out may be NULL.
 * errors  DATA_LOSS  a node breaks a rule; the message says which */
VOXELD_API enum voxeld_status voxeld_scene_verify(struct voxeld_client *client,
                                                  const struct voxeld_call *call,
                                                  const char *scene,
                                                  struct voxeld_scene_verified *out,
                                                  struct voxeld_error *error);

struct voxeld_scene_collected {
    uint64_t
        n_bytes_before; /* device memory of the scene and of those that share with it */
    uint64_t n_bytes_after;
    uint64_t n_nodes_before;
    uint64_t n_nodes_after;
    uint32_t n_slices; /* steps between which other requests ran */
    double longest_slice_ms;
    double engine_ms;
    bool replayed; /* the outcome of an earlier call with this sequence */
};

/* Frees the memory that no kept version holds; the server also does so by itself. out
 * may be NULL. */
VOXELD_API enum voxeld_status voxeld_scene_collect(struct voxeld_client *client,
                                                   const struct voxeld_call *call,
                                                   const char *scene,
                                                   struct voxeld_scene_collected *out,
                                                   struct voxeld_error *error);

#ifdef __cplusplus
}
#endif

#endif
