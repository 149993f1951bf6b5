// SPDX-License-Identifier: Apache-2.0
/* The named scenes and their versions. A scene's voxels are in a store of immutable nodes
 * (gpu/svdag); a version is one number there, the root. Changes run on the write lane,
 * one after the other, and each makes a new version, which queries see as a whole or not
 * at all. A query pins a version once, when its turn comes, and with it the store. So
 * both outlive the scene's name and a collection of the store. All functions may be
 * called from any thread unless they say otherwise.
 *
 * Scenes that branched from one another share a family, which has one store and one
 * collection.
 *
 * Memory: a family may grow up to its own max_bytes and to what limits.scene_bytes and,
 * for the token that made its first scene, limits.scene_bytes_per_token leave. */
#ifndef VXD_SERVER_REGISTRY_SCENES_NAMED_SCENES_H
#define VXD_SERVER_REGISTRY_SCENES_NAMED_SCENES_H

#include "gpu/occupancy/occupancy.h"
#include "gpu/svdag/svdag.h"
#include "proto/base/name.h"
#include "server/durable/journal/journal.h"
#include "server/request/request.h"
#include "server/registry/scenes/scene_ages.h"

enum {
    VXD_SCENE_FRAME_BYTES = 256,
    VXD_SCENE_KEEP_VERSIONS = 64, /* the default */
    VXD_SCENE_MAX_VERSIONS = 4096,
    VXD_SCENE_MAX_SNAPSHOTS = 256
};

/* The default of journal_max_bytes. */
#define VXD_SCENE_JOURNAL_BYTES ((uint64_t)256 << 20)

struct vxd_scenes;
struct vxd_scene_family;
struct vxd_scene_store;

struct vxd_scene_material {
    const char *name; /* "" = none */
    uint32_t rgb;     /* 0xRRGGBB */
};

/* How scans meet what a scene has. The numbers are the schema's. */
enum vxd_scene_fusion {
    VXD_SCENE_FUSION_UNSPECIFIED = 0, /* in requests alone */
    VXD_SCENE_LAST = 1,               /* the last word counts */
    VXD_SCENE_LOG_ODDS = 2 /* gpu/occupancy; only where free space is tracked */
};

/* What a scene is, apart from its name and its voxels. */
struct vxd_scene_spec {
    struct vxd_svdag_format format;
    double voxel_size_m;
    double origin_m[3]; /* the low corner */
    char frame_id[VXD_SCENE_FRAME_BYTES];
    const struct vxd_scene_material *palette;
    size_t n_palette;
    enum vxd_scene_fusion fusion;
    struct vxd_occupancy_odds odds; /* LOG_ODDS; */
    struct vxd_occupancy_rule rule; /* of them */
};

struct vxd_scene_terms {
    char name[VXD_NAME_BYTES];
    char owner[VXD_NAME_BYTES];
    uint64_t max_bytes;     /* 0 = the limits' */
    uint32_t keep_versions; /* 1 to VXD_SCENE_MAX_VERSIONS */
    uint64_t keep_seconds;  /* 0 = of any age */
    /* Of its family. Where it is set, every change is in the journal before anybody sees
     * it. */
    bool durable;
    enum vxd_fsync fsync;
    uint64_t
        journal_max_bytes; /* a snapshot is written when its records have so many bytes; 0 = never */
};

/* How a version was made. */
enum vxd_scene_made_by {
    VXD_SCENE_MADE = 0,
    VXD_SCENE_EDITED = 1,
    VXD_SCENE_INTEGRATED = 2,
    VXD_SCENE_UNDONE = 3, /* of_version */
    VXD_SCENE_REDONE = 4, /* of_version, which was an undo */
    VXD_SCENE_DECAYED = 5
};

struct vxd_scene_version {
    uint64_t number; /* 1 = as the scene was made */
    enum vxd_scene_made_by kind;
    uint64_t of_version;
    uint64_t undone_by; /* the last version that undid this one, 0 = none */
    uint32_t root;
    uint32_t pins; /* root of the pinned voxels, which are occupied there */
    int64_t unix_ns;
    uint64_t run_ns; /* the daemon's running time when it was added (scene_ages.h) */
    uint64_t n_added, n_removed, n_changed, n_freed;
    char by[VXD_NAME_BYTES]; /* the token's name */
    char client_id[VXD_NAME_BYTES];
};

/* A version that is kept under a name. */
struct vxd_scene_snapshot {
    char name[VXD_NAME_BYTES];
    char by[VXD_NAME_BYTES];
    int64_t taken_unix_ns;
    struct vxd_scene_version version;
};

/* The versions that a scene keeps, by number, and its snapshots, by name. They belong to
 * the list of scenes. The last versions may wait for the journal; then only the write
 * lane sees them. */
struct vxd_scene_history {
    struct vxd_scene_version
        *versions; /* the newest is the last one that does not wait */
    size_t n;
    size_t n_waiting; /* how many of them wait, the last ones */
    size_t capacity;
    bool keeps_all; /* during recovery */
    struct vxd_scene_snapshot
        *snapshots; /* capacity VXD_SCENE_MAX_SNAPSHOTS once there is one */
    size_t n_snapshots;
    /* During recovery: the snapshots of a file, some of which may have been forgotten or
     * moved since. Only the journal knows; until it has been read, they keep their
     * versions. */
    struct vxd_scene_snapshot *filed;
    size_t n_filed;
};

/* A pinned version. */
struct vxd_scene_state {
    struct vxd_scene_store *store; /* held */
    struct vxd_svdag *svdag;       /* the store's */
    uint32_t root;
    uint32_t pins;
    uint64_t version;
    int64_t changed_unix_ns;
};

/* Log-odds of a scene's last version, whether it waits for the journal or not. They are
 * the write lane's (scene_fusion.h). */
struct vxd_scene_log_odds {
    struct vxd_occupancy *layer; /* NULL: the scene has none */
    uint64_t n_bytes;            /* as accounted; the mutex guards it */
    uint64_t n_vote_bytes;       /* of these the votes' */
    /* A change failed after the layer had followed it, so all values are to be forgotten;
     * and they were, which the next scan's record says. */
    bool must_forget;
    bool has_forgotten;
    int64_t decayed_ns; /* by the scans' time they have faded up to here; 0 = not yet */
    int64_t newest_ns;  /* the newest stamp of the scans since the daemon's start, or 0 */
};

/* Where the sensor of the newest scan was; stamp_ns 0: there was none since the start. */
struct vxd_scene_sensor {
    int64_t stamp_ns;
    double place[3]; /* metres */
    double turn[4];  /* x, y, z, w */
};

struct vxd_scene {
    struct vxd_scene_terms terms;
    struct vxd_scene_spec spec; /* its palette is its own */
    uint64_t generation;
    int64_t created_unix_ns;
    /* These belong to the list of scenes. */
    struct vxd_scenes *scenes;
    struct vxd_scene_family *family;
    struct vxd_buffer palette_memory;
    struct vxd_scene_history history;
    struct vxd_scene_ages ages; /* the write lane's */
    struct vxd_scene_log_odds log_odds;
    uint64_t changed; /* the number of its last change among all scenes */
    struct vxd_scene_sensor sensor;
    int references;
    bool is_named;          /* its name finds it */
    bool is_reserved;       /* its name is reserved for it */
    bool is_leaving;        /* its drop waits for the journal; the write lane's */
    struct vxd_scene *next; /* by name */
    struct vxd_scene *next_in_family;
};

/* Says which version: the one of this number, or that of the snapshot, or the newest. */
struct vxd_scene_at {
    uint64_t version;
    const char *snapshot; /* NULL or "": none */
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scenes_create(struct vxd_server *server, struct vxd_scenes **out,
                                  struct vxd_err *err);

/* Nobody may hold a scene any more. NULL is fine. */
void vxd_scenes_destroy(struct vxd_scenes *scenes);

/* Whether voxel size, place, palette and fusion are equal. */
bool vxd_scene_spec_equal(const struct vxd_scene_spec *a, const struct vxd_scene_spec *b);

/* Returns the generation of a new scene, or of one that has lost something: a number
 * above all earlier ones, those of earlier starts too. On the write lane. */
uint64_t vxd_scenes_new_generation(struct vxd_scenes *scenes);

/* Makes an empty scene that nobody can find yet; the caller holds it, and the palette is
 * copied. On the write lane.
 * errors  RESOURCE_EXHAUSTED  over the limits, the engine's budget, or too many scenes
 *         INVALID_ARGUMENT    scenes.store does not take so many bits of material */
enum vxd_status vxd_scene_new(struct vxd_scenes *scenes, struct vxd_queue *queue,
                              const struct vxd_scene_terms *terms,
                              const struct vxd_scene_spec *spec, struct vxd_scene **out,
                              struct vxd_err *err);

/* Makes a scene that begins as a version of another one and shares its family, max_bytes
 * included. `from` is pinned of `parent`; where that is its last version, its log-odds are
 * copied. On the write lane.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_branch(struct vxd_scene *parent,
                                 const struct vxd_scene_state *from,
                                 const struct vxd_scene_terms *terms,
                                 struct vxd_queue *queue, struct vxd_scene **out,
                                 struct vxd_err *err);

/* Reserves a name for a scene that is being made, until it is published or dropped.
 * Returns false where another scene has the name or has reserved it. On the write
 * lane. */
bool vxd_scenes_reserve_name(struct vxd_scenes *scenes, struct vxd_scene *scene);

/* Gives the scene its name, which is free, and takes a reference. It cannot fail. */
void vxd_scenes_publish(struct vxd_scenes *scenes, struct vxd_scene *scene);

/* Finds a scene and holds it; NULL where there is none. */
struct vxd_scene *vxd_scenes_find(struct vxd_scenes *scenes, const char *name);

/* The generation and newest version of a scene, without holding it; false where there is none.
 * From any thread. */
bool vxd_scenes_get_version(struct vxd_scenes *scenes, const char *name,
                            uint64_t *generation, uint64_t *version);

/* Copies up to n_most scenes in order of their names, each held; returns how many. */
size_t vxd_scenes_list(struct vxd_scenes *scenes, struct vxd_scene **out, size_t n_most);

/* Calls `look` with a scene's spec while the list is locked, so it must be quick; false: there is no
 * such scene. From any thread. */
bool vxd_scenes_look(struct vxd_scenes *scenes, const char *name,
                     void (*look)(void *user, const struct vxd_scene_spec *spec),
                     void *user);

/* Copies the name that follows `name` in order, "" being before the first; false: there is none.
 * From any thread. */
bool vxd_scenes_next_name(struct vxd_scenes *scenes, char name[VXD_NAME_BYTES]);

/* Takes the name away if this scene still has it; the caller holds the scene. A queue of
 * NULL, on the write lane, means the list's own. */
void vxd_scenes_remove(struct vxd_scenes *scenes, struct vxd_queue *queue,
                       struct vxd_scene *scene);

/* Drops a reference. The last one frees the scene's memory, in the queue's order. NULL is
 * fine. */
void vxd_scene_drop(struct vxd_scene *scene, struct vxd_queue *queue);

/* A change has the scene's family for itself from here on: no other request on the write lane that names
 * a scene of the family begins, and the family is not collected. So the change may leave the write
 * lane's other work to others while the engine works (vxd_request_begin_apart). On the write lane. */
void vxd_scene_hold_family(struct vxd_scene *scene);
void vxd_scene_let_family_go(struct vxd_scene *scene);
/* Any thread: whether a change has any family, or that of the scene of this name, for itself. */
bool vxd_scenes_hold_any(const struct vxd_scenes *scenes);
bool vxd_scenes_is_held(struct vxd_scenes *scenes, const char *name);

/* --- versions (scene_history.c) --------------------------------------------------------- */

/* Pins a version until vxd_scene_unpin.
 * errors  NOT_FOUND  no such snapshot, or the version is not kept (any more) */
enum vxd_status vxd_scene_pin(struct vxd_scene *scene, const struct vxd_scene_at *at,
                              struct vxd_scene_state *out, struct vxd_err *err);

/* Pins the last version, whether it waits for the journal or not. On the write lane. */
void vxd_scene_pin_last(struct vxd_scene *scene, struct vxd_scene_state *out);

/* Whether this is the number of the last version, whether that waits or not. On the write
 * lane. */
bool vxd_scene_is_last(const struct vxd_scene *scene, uint64_t version);

/* Does nothing where no version is pinned. */
void vxd_scene_unpin(struct vxd_scenes *scenes, struct vxd_scene_state *state,
                     struct vxd_queue *queue);

/* The history at one moment, in numbers. */
struct vxd_scene_log_summary {
    uint64_t version; /* the newest */
    int64_t changed_unix_ns;
    uint64_t oldest; /* that is kept, apart from snapshots */
    size_t n_versions;
    size_t n_snapshots;
    size_t n_sharing; /* scenes of its family */
};

void vxd_scene_get_log_summary(const struct vxd_scene *scene,
                               struct vxd_scene_log_summary *out);

/* Copies up to n_most kept versions below a number (0 = all), newest first; returns how
 * many. */
size_t vxd_scene_copy_versions(const struct vxd_scene *scene, uint64_t below,
                               struct vxd_scene_version *out, size_t n_most);

/* Pins a version as vxd_scene_pin does, and copies it and the kept versions before it, at most
 * n_most, newest first, whose roots are all of the pinned store; *n says how many. A version that
 * a snapshot alone keeps comes by itself.
 * errors  NOT_FOUND, as vxd_scene_pin */
enum vxd_status vxd_scene_pin_versions(struct vxd_scene *scene,
                                       const struct vxd_scene_at *at,
                                       struct vxd_scene_state *state,
                                       struct vxd_scene_version *out, size_t n_most,
                                       size_t *n, struct vxd_err *err);

/* Remembers, and copies, where the newest scan's sensor was. */
void vxd_scene_set_sensor(struct vxd_scene *scene, const struct vxd_scene_sensor *sensor);
void vxd_scene_get_sensor(const struct vxd_scene *scene, struct vxd_scene_sensor *out);

/* Copies up to n_most snapshots by name; returns how many. */
size_t vxd_scene_copy_snapshots(const struct vxd_scene *scene,
                                struct vxd_scene_snapshot *out, size_t n_most);

/* Pins all different roots of kept versions and snapshots and of their pins, up to n_most,
 * in *state's store; returns how many. */
size_t vxd_scene_pin_roots(struct vxd_scene *scene, struct vxd_scene_state *state,
                           uint32_t *out, size_t n_most);

/* Reserve capacity for one more version, or for so many, so that adding them cannot fail.
 * On the write lane.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_reserve_version(struct vxd_scene *scene, struct vxd_err *err);
enum vxd_status vxd_scene_reserve_versions(struct vxd_scene *scene, size_t n,
                                           struct vxd_err *err);

/* Adds a version. It gets its number here, and its time where that is 0. Its place was
 * reserved; older versions are dropped as the terms say. With `waiting` only the write
 * lane sees it until vxd_scene_decide_version. Returns the number. On the write lane. */
uint64_t vxd_scene_add_version(struct vxd_scene *scene,
                               const struct vxd_scene_version *version, bool waiting);

/* The first waiting version is on disk now, or has failed; then it is dropped with all
 * that were built on it. On the write lane. */
void vxd_scene_decide_version(struct vxd_scene *scene, uint64_t number, bool committed);

/* Finds what an undo, or with `redo` a redo, is about. *of is the version, or 0 to choose
 * the newest one that this sender made, may be undone (redone) and has not been. `before`
 * and `after` are pinned: the version it was made from, and what it made. On the write
 * lane.
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

/* Checks that a name may be given to a pinned version, or with `drop` be forgotten.
 * *snapshot has the name, the taker and the time, and gets the rest, or what the name
 * has. On the write lane.
 * errors  NOT_FOUND           to forget
 *         ALREADY_EXISTS      the name is another version's and not to be replaced
 *         RESOURCE_EXHAUSTED  there are VXD_SCENE_MAX_SNAPSHOTS */
enum vxd_status vxd_scene_check_snapshot(struct vxd_scene *scene,
                                         const struct vxd_scene_state *state, bool drop,
                                         bool replace,
                                         struct vxd_scene_snapshot *snapshot,
                                         struct vxd_err *err);

/* Does what was checked, in the same turn. It cannot fail. */
void vxd_scene_set_snapshot(struct vxd_scene *scene,
                            const struct vxd_scene_snapshot *snapshot, bool drop);

/* --- families (scene_family.c) ---------------------------------------------------------- */

/* Sets the most that the scene's store may take now; to be called before a change. On the
 * write lane. */
void vxd_scene_allow(struct vxd_scene *scene);

/* Completes the engine's error where it refused what is above that: names the limit. On
 * the write lane. */
void vxd_scene_explain(const struct vxd_scene *scene, struct vxd_err *err);

/* Accounts for the store's memory after it may have grown. On the write lane. */
void vxd_scene_account(struct vxd_scene *scene);

/* Returns the bytes that its family's store takes. */
void vxd_scene_get_usage(struct vxd_scene *scene, struct vxd_svdag_usage *out);

bool vxd_scene_shares(const struct vxd_scene *a, const struct vxd_scene *b);

/* What a collection has done, or has done so far. */
struct vxd_scene_collected {
    struct vxd_svdag_usage before;
    struct vxd_svdag_usage after;
    uint32_t n_slices;
    int64_t longest_slice_ns;
};

/* Runs one slice of a collection of the scene's family, and begins one where none is
 * under way. Nodes that a kept version or snapshot reaches are copied to another store,
 * which then takes the old one's place; the old one is freed when nobody has it pinned.
 * *is_done says that the collection has ended. *which is 0 at first, and identifies the
 * collection in later calls. On the write lane; waits.
 * errors  RESOURCE_EXHAUSTED  no memory for the new store beside the old one; nothing has
 * changed */
enum vxd_status vxd_scene_collect(struct vxd_scene *scene, struct vxd_queue *queue,
                                  uint64_t *which, bool *is_done,
                                  struct vxd_scene_collected *out, struct vxd_err *err);

/* Runs a slice of a collection that is under way or due, or as many as take as long as
 * the requests since took: otherwise a scene that makes nodes faster than slices copy
 * them would never be collected. Returns false when there is nothing to do. On the write
 * lane, between requests. */
bool vxd_scenes_collect_due(struct vxd_scenes *scenes, struct vxd_queue *queue,
                            int64_t requests_ns);

/* Whether vxd_scenes_collect_due has something to do. */
bool vxd_scenes_are_due(struct vxd_scenes *scenes);

/* --- what watchers see (scene_heads.c) -------------------------------------------------- */

/* The newest version of a named scene; or a name that is gone. */
struct vxd_scene_head {
    char name[VXD_NAME_BYTES];
    uint64_t generation;
    uint64_t version; /* 0: the name is gone */
    int64_t changed_unix_ns;
    uint64_t
        changed; /* changes of all scenes are numbered from 1 in a run of the server */
};

/* Is called on the thread of a change, without a lock, once everybody sees it: a named scene has
 * another newest version, or the name was given or taken away. It must not block. */
typedef void (*vxd_scenes_changed_fn)(void *context, const char *name);

/* To be called before the first change. */
void vxd_scenes_set_listener(struct vxd_scenes *scenes, vxd_scenes_changed_fn changed,
                             void *context);

/* False where there is no scene of this name. */
bool vxd_scenes_get_head(const struct vxd_scenes *scenes, const char *name,
                         struct vxd_scene_head *out);

/* The number of the last change. */
uint64_t vxd_scenes_last_change(const struct vxd_scenes *scenes);

/* Copies the scenes and gone names whose last change is after this one, in the order of these;
 * *out is the caller's to free. *is_complete says that all scenes are there and no gone names:
 * after 0, or where more names are gone since than are remembered.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scenes_copy_heads(const struct vxd_scenes *scenes, uint64_t after,
                                      struct vxd_scene_head **out, size_t *n,
                                      bool *is_complete, uint64_t *last,
                                      struct vxd_err *err);

struct vxd_scenes_usage {
    size_t n_scenes;
    uint64_t n_bytes;
    uint64_t limit_bytes;
    uint64_t n_collections;
    uint64_t collected_bytes; /* given back by them */
};

void vxd_scenes_get_usage(const struct vxd_scenes *scenes, struct vxd_scenes_usage *out);

#endif
