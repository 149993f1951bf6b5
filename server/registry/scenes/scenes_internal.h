// SPDX-License-Identifier: Apache-2.0
/* What the files behind scenes.h share. */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENES_INTERNAL_H
#define VXD_SERVER_REGISTRY_SCENES_SCENES_INTERNAL_H

#include <pthread.h>

#include "proto/base/name.h"
#include "server/registry/scenes/named_scenes.h"

struct vxd_svdag_collection;
struct vxd_registry;

enum {
    VXD_SCENE_GONE_NAMES = 256 /* that are remembered */
};

struct vxd_scenes {
    struct vxd_context *context;
    uint64_t limit_bytes;
    uint64_t token_limit_bytes;
    enum vxd_svdag_store store; /* for new families */
    const char *store_name;
    size_t limit_scenes;
    uint64_t limit_edit_regions;
    uint32_t collect_growth;  /* per cent; 0: collections never begin by themselves */
    uint64_t last_generation; /* the write lane's */
    struct vxd_queue *queue;  /* frees what is left at the end */
    _Atomic uint64_t n_bytes; /* of all stores that exist */
    _Atomic size_t n_scenes;  /* findable */
    _Atomic uint64_t n_collections;
    _Atomic uint64_t collected_bytes;
    int64_t debt_ns; /* how much longer requests took than slices; the write lane's */
    _Atomic size_t n_due;          /* families whose collection is due or under way */
    _Atomic size_t n_wanting_copy; /* whose snapshot waits for changes to end */
    pthread_mutex_t mutex;         /* guards the lists, histories and references */
    struct vxd_scene *first;
    struct vxd_scene *reserved; /* scenes that wait for their names, linked by `next` */
    struct vxd_scene_family *families;
    struct vxd_registry *registry; /* borrowed; has the journal */
    struct vxd_auth *auth;         /* borrowed; has the quotas */
    _Atomic size_t n_held;         /* families that a change has for itself */
    /* Limits do not count, so that all on the disk comes back, and nothing is collected. */
    _Atomic bool is_recovering;
    /* What watchers see. The mutex guards it, but for the listener, which does not change. */
    vxd_scenes_changed_fn changed;
    void *changed_context;
    uint64_t last_change;
    struct vxd_scene_head gone[VXD_SCENE_GONE_NAMES]; /* a ring of the last ones */
    uint64_t n_gone;
};

/* A store. It lives as long as somebody has a version of it pinned. */
struct vxd_scene_store {
    struct vxd_svdag *svdag;
    int references;
    _Atomic uint64_t n_bytes;   /* as accounted; the write lane's to change */
    char owner[VXD_NAME_BYTES]; /* whose bytes they are: the family's */
};

struct vxd_scene_family {
    struct vxd_scenes *scenes;
    uint64_t max_bytes;         /* 0 = the limits' */
    char owner[VXD_NAME_BYTES]; /* who made the first scene */
    struct vxd_scene_store *store;
    int references;          /* of scenes, and of a collection */
    struct vxd_scene *first; /* of its scenes, with a name or without */
    struct vxd_scene_family *next;
    /* The collection. The write lane's, except that any thread may free what it has. */
    bool is_due;
    uint64_t collect_bytes; /* the store's bytes at which it is due by itself */
    struct vxd_scene_store
        *fresh; /* where kept nodes are copied to; NULL: no collection is under way */
    struct vxd_svdag_collection *collection;
    uint64_t n_collections; /* begun */
    struct vxd_scene_collected
        collected; /* what the last one did; `after` is set once it succeeded */
    /* Its number in the journal; 0: it is not durable. */
    uint32_t journal_id;
    uint64_t sequence; /* of the last record that was handed over; the write lane's */
    uint64_t
        decided; /* the last record whose change everybody sees; the mutex guards it */
    size_t
        n_waiting; /* records that were handed over and have not ended; the write lane's */
    /* How many of them are made from an older version, which a later change may drop. No
     * snapshot is captured that would lack both. The mutex guards it. */
    size_t n_referring;
    /* Changes that its layers of log-odds have followed, or are about to, and that have not
     * ended; whether a snapshot copies the layers, so that none may begin; and whether one
     * waits for them to end. The mutex guards all three (scene_fusion.h). */
    size_t n_fusing;
    bool is_copied;
    bool wants_copy;
    /* What a start would take to apply the changes since a snapshot file was last asked for; the
     * write lane's. And what the last file took to write. */
    int64_t replay_ns;
    _Atomic int64_t save_ns;
    bool is_broken; /* one of them failed, so all later ones fail too; the write lane's */
    bool is_held;   /* a change has it for itself; the mutex guards it */
};

/* The daemon's running time, over all its runs where there is a journal: what versions age by. */
uint64_t vxd_scenes_run_ns(const struct vxd_scenes *scenes);
void vxd_scenes_lock(const struct vxd_scenes *scenes);
void vxd_scenes_unlock(const struct vxd_scenes *scenes);

/* scene_family.c, all without the mutex. Makes a family of this scene, with an empty
 * store.
 * errors  as vxd_scene_new */
enum vxd_status vxd_scene_family_new(struct vxd_scene *scene, struct vxd_queue *queue,
                                     struct vxd_err *err);
void vxd_scene_family_join(struct vxd_scene_family *family, struct vxd_scene *scene);
/* Takes the scene out of its family, if it has one. The last scene frees the family. */
void vxd_scene_family_leave(struct vxd_scene *scene, struct vxd_queue *queue);
/* NULL is fine. */
void vxd_scene_store_drop(struct vxd_scenes *scenes, struct vxd_scene_store *store,
                          struct vxd_queue *queue);
/* The most bytes that the scene's layer of log-odds may take now; 0 = no limit. On the write
 * lane. */
uint64_t vxd_scene_layer_allowance(const struct vxd_scene *scene);
/* Adds a root that the family's collection, if one is under way, has to keep as well. On
 * the write lane. */
void vxd_scene_family_keep(struct vxd_scene_family *family, uint32_t root);

/* scene_heads.c. Numbers a change of a scene that has a name, or had one until this change; with
 * the mutex held. The listener hears of it afterwards, without the mutex. */
void vxd_scene_number_change(struct vxd_scene *scene, bool was_named);
void vxd_scene_notify(const struct vxd_scene *scene, bool is_seen);

/* scene_history.c. Replaces each root of a scene by what `map` returns for it. The mutex
 * is held. */
void vxd_scene_history_map(struct vxd_scene_history *history,
                           uint32_t (*map)(void *argument, uint32_t root),
                           void *argument);
/* Begin a history with its first version, and free one. */
enum vxd_status vxd_scene_history_begin(struct vxd_scene *scene, uint32_t root,
                                        uint32_t pins, struct vxd_err *err);
void vxd_scene_history_free(struct vxd_scene_history *history);
/* Returns undone_by of a version in the array as everybody sees it, without waiting
 * versions. */
uint64_t vxd_scene_undone_by(const struct vxd_scene_history *history,
                             const struct vxd_scene_version *version);
/* Ends the recovery of a scene, once all that the journal has is applied: versions that
 * neither the terms nor a name keeps are dropped. Without the mutex. */
void vxd_scene_end_recovery(struct vxd_scene *scene);

/* named_scenes.c. Does what vxd_scene_new does, but without a version; in `family`, where
 * there is one. */
enum vxd_status vxd_scene_restore(struct vxd_scenes *scenes,
                                  struct vxd_scene_family *family,
                                  const struct vxd_scene_terms *terms,
                                  const struct vxd_scene_spec *spec,
                                  struct vxd_scene **out, struct vxd_err *err);

#endif
