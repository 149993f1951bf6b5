// SPDX-License-Identifier: Apache-2.0
/* The named scenes and their versions. A scene's voxels stand in a store of immutable nodes
 * (gpu/svdag), a version of it is one number there, the root. Changes run on the write lane, one
 * after the other; each ends in a new version, which queries see as a whole or not at all:
 * they pin a version once, when their turn comes, and with it the store, so that both outlive
 * the scene's name being dropped and the store being collected. All functions may be called
 * from any thread unless they say otherwise.
 *
 * Scenes that branched from one another share a family: one store, one collection.
 *
 * Memory: a family may grow to its own max_bytes and to what limits.scene_bytes and, for the
 * token that made its first scene, limits.scene_bytes_per_token leave. */
#ifndef VXD_SERVER_REGISTRY_SCENES_NAMED_SCENES_H
#define VXD_SERVER_REGISTRY_SCENES_NAMED_SCENES_H

#include "gpu/svdag/svdag.h"
#include "proto/base/name.h"
#include "server/durable/journal/journal.h"
#include "server/request/request.h"
#include "server/registry/scenes/scene_ages.h"

enum {
    VXD_SCENE_FRAME_BYTES = 256,
    VXD_SCENE_KEEP_VERSIONS = 64, /* where nobody says how many */
    VXD_SCENE_MAX_VERSIONS = 4096,
    VXD_SCENE_MAX_SNAPSHOTS = 256
};

/* Of journal, after which a snapshot file is written, where nobody says how many. */
#define VXD_SCENE_JOURNAL_BYTES ((uint64_t)256 << 20)

struct vxd_scenes;
struct vxd_scene_family;
struct vxd_scene_store;

struct vxd_scene_material {
    const char *name; /* "" = none */
    uint32_t rgb;     /* 0xRRGGBB */
};

/* What a scene is, but for its name and its voxels. */
struct vxd_scene_spec {
    struct vxd_svdag_format format;
    double voxel_size_m;
    double origin_m[3]; /* the low corner */
    char frame_id[VXD_SCENE_FRAME_BYTES];
    const struct vxd_scene_material *palette;
    size_t n_palette;
};

struct vxd_scene_terms {
    char name[VXD_NAME_BYTES];
    char owner[VXD_NAME_BYTES];
    uint64_t max_bytes;     /* 0 = the limits' */
    uint32_t keep_versions; /* 1 to VXD_SCENE_MAX_VERSIONS */
    uint64_t keep_seconds;  /* 0 = of any age */
    /* Of its family: every change is in the journal before anybody sees it. */
    bool durable;
    enum vxd_fsync fsync;
    uint64_t
        journal_max_bytes; /* of its records, then a snapshot is written; 0 = never */
};

/* What made a version. */
enum vxd_scene_made_by {
    VXD_SCENE_MADE = 0,
    VXD_SCENE_EDITED = 1,
    VXD_SCENE_INTEGRATED = 2,
    VXD_SCENE_UNDONE = 3, /* of_version */
    VXD_SCENE_REDONE = 4  /* of_version, which was an undo */
};

struct vxd_scene_version {
    uint64_t number; /* 1 = as the scene was made */
    enum vxd_scene_made_by kind;
    uint64_t of_version;
    uint64_t undone_by; /* the last version that undid this one, 0 = none */
    uint32_t root;
    int64_t unix_ns;
    uint64_t run_ns; /* the daemon's running time when it was added (scene_ages.h) */
    uint64_t n_added, n_removed, n_changed, n_freed;
    char by[VXD_NAME_BYTES]; /* the token's name */
    char client_id[VXD_NAME_BYTES];
};

/* A version that a name keeps. */
struct vxd_scene_snapshot {
    char name[VXD_NAME_BYTES];
    char by[VXD_NAME_BYTES];
    int64_t taken_unix_ns;
    struct vxd_scene_version version;
};

/* The versions that a scene keeps, by number, and its snapshots, by name. The registry's. The
 * last versions may wait for the journal: only the write lane sees them. */
struct vxd_scene_history {
    struct vxd_scene_version
        *versions; /* the last one that does not wait is the newest */
    size_t n;
    size_t n_waiting; /* of them, the last ones */
    size_t capacity;
    bool keeps_all; /* while it is recovered */
    struct vxd_scene_snapshot
        *snapshots; /* room for VXD_SCENE_MAX_SNAPSHOTS once there is one */
    size_t n_snapshots;
    /* While it is recovered: a file's, some of which may be forgotten or moved since; only the
     * journal knows. They keep their versions until it has said so. */
    struct vxd_scene_snapshot *filed;
    size_t n_filed;
};

/* A pinned version. */
struct vxd_scene_state {
    struct vxd_scene_store *store; /* held */
    struct vxd_svdag *svdag;       /* the store's */
    uint32_t root;
    uint64_t version;
    int64_t changed_unix_ns;
};

struct vxd_scene {
    struct vxd_scene_terms terms;
    struct vxd_scene_spec spec; /* its palette is its own */
    uint64_t generation;
    int64_t created_unix_ns;
    /* The registry's. */
    struct vxd_scenes *scenes;
    struct vxd_scene_family *family;
    struct vxd_buffer palette_memory;
    struct vxd_scene_history history;
    struct vxd_scene_ages ages; /* the write lane's */
    int references;
    bool is_named;          /* findable */
    bool is_reserved;       /* its name is, for it */
    bool is_leaving;        /* its end waits for the journal; the write lane's */
    struct vxd_scene *next; /* by name */
    struct vxd_scene *next_in_family;
};

/* Which version: of this number, else that a snapshot names, else the newest. */
struct vxd_scene_at {
    uint64_t version;
    const char *snapshot; /* NULL or "": none */
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scenes_create(struct vxd_server *server, struct vxd_scenes **out,
                                  struct vxd_err *err);

/* Nobody may hold one any more. NULL is fine. */
void vxd_scenes_destroy(struct vxd_scenes *scenes);

/* Equal voxels, place and palette. */
bool vxd_scene_spec_equal(const struct vxd_scene_spec *a, const struct vxd_scene_spec *b);

/* For a scene, or for one that has lost something: a number above all earlier ones, of earlier
 * starts too. On the write lane. */
uint64_t vxd_scenes_new_generation(struct vxd_scenes *scenes);

/* A scene that nobody can find yet, empty, held by the caller; the palette is copied. On the
 * write lane.
 * errors  RESOURCE_EXHAUSTED  over the limits, the engine's budget, or too many scenes
 *         INVALID_ARGUMENT    scenes.store does not take so many bits of material */
enum vxd_status vxd_scene_new(struct vxd_scenes *scenes, struct vxd_queue *queue,
                              const struct vxd_scene_terms *terms,
                              const struct vxd_scene_spec *spec, struct vxd_scene **out,
                              struct vxd_err *err);

/* The same, but it begins as a version of another scene and shares its family, max_bytes
 * included. `from` is pinned of `parent`. On the write lane.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_branch(const struct vxd_scene *parent,
                                 const struct vxd_scene_state *from,
                                 const struct vxd_scene_terms *terms,
                                 struct vxd_queue *queue, struct vxd_scene **out,
                                 struct vxd_err *err);

/* Keeps a name for a scene that is being made until it is published or dropped; false: it is
 * another one's, or kept for one. On the write lane. */
bool vxd_scenes_reserve_name(struct vxd_scenes *scenes, struct vxd_scene *scene);

/* Makes it what its name, which is free, finds; the registry holds it as well. Cannot fail. */
void vxd_scenes_publish(struct vxd_scenes *scenes, struct vxd_scene *scene);

/* The scene, held; NULL where there is none. */
struct vxd_scene *vxd_scenes_find(struct vxd_scenes *scenes, const char *name);

/* Up to n_most in order of their names, each held; how many. */
size_t vxd_scenes_list(struct vxd_scenes *scenes, struct vxd_scene **out, size_t n_most);

/* Takes the name away, if it is this scene's still; the caller holds it. Queue NULL, on the write
 * lane: the registry's own. */
void vxd_scenes_remove(struct vxd_scenes *scenes, struct vxd_queue *queue,
                       struct vxd_scene *scene);

/* Lets go of it; with the last who does so its memory goes, in the queue's order. NULL is
 * fine. */
void vxd_scene_drop(struct vxd_scene *scene, struct vxd_queue *queue);

/* --- versions (scene_history.c) --------------------------------------------------------- */

/* Pins a version until vxd_scene_unpin.
 * errors  NOT_FOUND  no such snapshot, or the version is not kept (any more) */
enum vxd_status vxd_scene_pin(struct vxd_scene *scene, const struct vxd_scene_at *at,
                              struct vxd_scene_state *out, struct vxd_err *err);

/* The last one, whether it waits for the journal or not. On the write lane. */
void vxd_scene_pin_last(struct vxd_scene *scene, struct vxd_scene_state *out);

/* Harmless on what is not pinned. */
void vxd_scene_unpin(struct vxd_scenes *scenes, struct vxd_scene_state *state,
                     struct vxd_queue *queue);

/* What there is to say of the history, at one moment. */
struct vxd_scene_past {
    uint64_t version; /* the newest */
    int64_t changed_unix_ns;
    uint64_t oldest; /* kept, snapshots aside */
    size_t n_versions;
    size_t n_snapshots;
    size_t n_sharing; /* scenes of its family */
};

void vxd_scene_get_past(const struct vxd_scene *scene, struct vxd_scene_past *out);

/* Copies up to n_most kept versions below a number (0 = all), newest first; how many. */
size_t vxd_scene_copy_versions(const struct vxd_scene *scene, uint64_t below,
                               struct vxd_scene_version *out, size_t n_most);

/* Copies up to n_most snapshots by name; how many. */
size_t vxd_scene_copy_snapshots(const struct vxd_scene *scene,
                                struct vxd_scene_snapshot *out, size_t n_most);

/* Pins all different roots that kept versions and snapshots have, up to n_most, in *state's
 * store; how many. */
size_t vxd_scene_pin_roots(struct vxd_scene *scene, struct vxd_scene_state *state,
                           uint32_t *out, size_t n_most);

/* Makes room for one more version, or for so many, so that adding them cannot fail. On the write
 * lane.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_reserve_version(struct vxd_scene *scene, struct vxd_err *err);
enum vxd_status vxd_scene_reserve_versions(struct vxd_scene *scene, size_t n,
                                           struct vxd_err *err);

/* One more version: all of *version but its number, which it gets, and its time, which it gets
 * where that is 0. A place was reserved; older versions go as the terms say. With `waiting` nobody
 * but the write lane sees it before vxd_scene_decide_version. Returns the number. On the write
 * lane. */
uint64_t vxd_scene_add_version(struct vxd_scene *scene,
                               const struct vxd_scene_version *version, bool waiting);

/* The first of those that wait is on disk, or failed: then it goes with all that were built on it.
 * On the write lane. */
void vxd_scene_decide_version(struct vxd_scene *scene, uint64_t number, bool committed);

/* What an undo (or with `redo` a redo) is of: *of is the version, or 0 to choose the newest
 * one that this sender made, that may be undone (redone) and is not; before and after are
 * pinned: what it was made from and what it made. On the write lane.
 * errors  NOT_FOUND            not kept, or the one before it is not; none to choose
 *         FAILED_PRECONDITION  a version that changed nothing by itself (the first one), or
 *                              for a redo one that is no undo */
struct vxd_scene_undoing {
    uint64_t of;
    uint32_t before;
    uint32_t after;
};

enum vxd_status vxd_scene_find_undoing(struct vxd_scene *scene, bool redo, uint64_t of,
                                       const struct vxd_request *sender,
                                       struct vxd_scene_undoing *out,
                                       struct vxd_err *err);

/* Whether a name may be given to a pinned version, or forgotten with `drop`: *snapshot has the
 * name, the taker and the time, and gets the rest, or what the name has. On the write lane.
 * errors  NOT_FOUND           to forget
 *         ALREADY_EXISTS      the name is another version's and not to be replaced
 *         RESOURCE_EXHAUSTED  there are VXD_SCENE_MAX_SNAPSHOTS */
enum vxd_status vxd_scene_check_snapshot(struct vxd_scene *scene,
                                         const struct vxd_scene_state *state, bool drop,
                                         bool replace,
                                         struct vxd_scene_snapshot *snapshot,
                                         struct vxd_err *err);

/* Does what was checked, on the same turn. Cannot fail. */
void vxd_scene_set_snapshot(struct vxd_scene *scene,
                            const struct vxd_scene_snapshot *snapshot, bool drop);

/* --- families (scene_family.c) ---------------------------------------------------------- */

/* Before a change: sets the most that the scene's store may take now. On the write lane. */
void vxd_scene_allow(struct vxd_scene *scene);

/* Where the engine refused what is above that: names the limit that it came from. On the write
 * lane. */
void vxd_scene_explain(const struct vxd_scene *scene, struct vxd_err *err);

/* After it may have grown. On the write lane. */
void vxd_scene_account(struct vxd_scene *scene);

/* What its family's store takes. */
void vxd_scene_get_usage(struct vxd_scene *scene, struct vxd_svdag_usage *out);

bool vxd_scene_shares(const struct vxd_scene *a, const struct vxd_scene *b);

/* What a collection did, or has done so far. */
struct vxd_scene_collected {
    struct vxd_svdag_usage before;
    struct vxd_svdag_usage after;
    uint32_t n_slices;
    int64_t longest_slice_ns;
};

/* One slice of a collection of the scene's family, which it begins where none is under way:
 * nodes that a kept version or snapshot reaches go to another store, which then takes the
 * old one's place; the old one goes when nobody has it pinned. *is_done: it has ended. *which
 * is 0 at first, and tells later calls which collection it is. On the write lane; waits.
 * errors  RESOURCE_EXHAUSTED  no room for what is kept beside the old store; all is as it was */
enum vxd_status vxd_scene_collect(struct vxd_scene *scene, struct vxd_queue *queue,
                                  uint64_t *which, bool *is_done,
                                  struct vxd_scene_collected *out, struct vxd_err *err);

/* A slice of a collection that is under way or due, or as many as take as long as the requests
 * since took: else one that makes nodes faster than slices carry them over would never be
 * collected. False when there is nothing to do. On the write lane, between requests. */
bool vxd_scenes_tend(struct vxd_scenes *scenes, struct vxd_queue *queue,
                     int64_t requests_ns);

/* Whether vxd_scenes_tend has something to do. */
bool vxd_scenes_are_due(struct vxd_scenes *scenes);

struct vxd_scenes_usage {
    size_t n_scenes;
    uint64_t n_bytes;
    uint64_t limit_bytes;
    uint64_t n_collections;
    uint64_t collected_bytes; /* given back by them */
};

void vxd_scenes_get_usage(const struct vxd_scenes *scenes, struct vxd_scenes_usage *out);

#endif
