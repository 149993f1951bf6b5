// SPDX-License-Identifier: Apache-2.0
/* What the files behind scenes.h share. */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENES_INTERNAL_H
#define VXD_SERVER_REGISTRY_SCENES_SCENES_INTERNAL_H

#include <pthread.h>

#include "proto/base/name.h"
#include "server/registry/scenes/named_scenes.h"

struct vxd_svdag_transfer;
struct vxd_maps;

struct vxd_scenes {
    struct vxd_context *context;
    uint64_t limit_bytes;
    uint64_t token_limit_bytes;
    enum vxd_svdag_store store; /* of new families */
    const char *store_name;
    size_t limit_scenes;
    uint32_t collect_growth;  /* per cent; 0: never by itself */
    uint64_t last_generation; /* the write lane's */
    struct vxd_queue *queue;  /* for freeing what is left at the end */
    _Atomic uint64_t n_bytes; /* of all stores that exist */
    _Atomic size_t n_scenes;  /* findable */
    _Atomic uint64_t n_collections;
    _Atomic uint64_t collected_bytes;
    int64_t debt_ns;       /* requests took this longer than slices; the write lane's */
    _Atomic size_t n_due;  /* families that are to be collected, or are */
    pthread_mutex_t mutex; /* guards the lists, histories and references */
    struct vxd_scene *first;
    struct vxd_scene *reserved; /* scenes that wait for their names; by `next` */
    struct vxd_scene_family *families;
    /* scenes_journal.c; NULL: nothing is durable */
    struct vxd_journal *journal;
    const struct vxd_data_dir *dir; /* borrowed */
    struct vxd_scene_saver *saver;
    struct vxd_maps *maps; /* whose durable ones share journal and saver; borrowed */
    bool is_recovering;    /* limits do not count: what is on the disk comes back */
};

/* A store, for as long as somebody has a version of it pinned. */
struct vxd_scene_store {
    struct vxd_svdag *svdag;
    int references;
    uint64_t n_bytes; /* as accounted; the write lane's */
};

struct vxd_scene_family {
    struct vxd_scenes *scenes;
    uint64_t max_bytes;         /* 0 = the limits' */
    char owner[VXD_NAME_BYTES]; /* who made the first scene */
    struct vxd_scene_store *store;
    int references;          /* scenes, and who collects */
    struct vxd_scene *first; /* of its scenes, findable or not */
    struct vxd_scene_family *next;
    /* Collection; the write lane's, but for the freeing of what it has. */
    bool is_due;
    uint64_t collect_bytes;        /* the store's bytes at which it is due by itself */
    struct vxd_scene_store *fresh; /* where kept nodes go; NULL: none is under way */
    struct vxd_svdag_transfer *transfer;
    uint64_t n_collections; /* begun */
    struct vxd_scene_collected
        collected; /* of the last one; `after` once it ended well */
    /* In the journal; 0: not there. */
    uint32_t journal_id;
    uint64_t
        sequence; /* last record that was handed over, and decided; the write lane's */
    uint64_t decided; /* the last record in what everybody sees; the mutex guards it */
    size_t n_waiting; /* handed over and not ended; the write lane's */
    /* Of them, those that are made from an older version, which a later change may end: no
     * picture is taken that lacks it and them. The mutex guards it. */
    size_t n_referring;
    /* What a start would take to apply the changes since a snapshot file was last asked for; the
     * write lane's. And what the last file took to write. */
    int64_t replay_ns;
    _Atomic int64_t save_ns;
    bool is_broken; /* one of them failed, so all that follow do; the write lane's */
};

/* The daemon's running time, over all its runs where there is a journal: what versions age by. */
uint64_t vxd_scenes_run_ns(const struct vxd_scenes *scenes);
void vxd_scenes_lock(const struct vxd_scenes *scenes);
void vxd_scenes_unlock(const struct vxd_scenes *scenes);

/* scene_family.c, all without the mutex. A family of this scene, with an empty store.
 * errors  as vxd_scene_new */
enum vxd_status vxd_scene_family_new(struct vxd_scene *scene, struct vxd_queue *queue,
                                     struct vxd_err *err);
void vxd_scene_family_join(struct vxd_scene_family *family, struct vxd_scene *scene);
/* Harmless where there is none. With the last scene the family goes. */
void vxd_scene_family_leave(struct vxd_scene *scene, struct vxd_queue *queue);
/* NULL is fine. */
void vxd_scene_store_drop(struct vxd_scenes *scenes, struct vxd_scene_store *store,
                          struct vxd_queue *queue);
/* A root that the family's collection, if there is one, has to keep as well. On the write
 * lane. */
void vxd_scene_family_keep(struct vxd_scene_family *family, uint32_t root);

/* scene_history.c. With the mutex held: all roots of a scene go through `map`. */
void vxd_scene_history_map(struct vxd_scene_history *history,
                           uint32_t (*map)(void *argument, uint32_t root),
                           void *argument);
/* Puts the first version in; frees. */
enum vxd_status vxd_scene_history_begin(struct vxd_scene *scene, uint32_t root,
                                        struct vxd_err *err);
void vxd_scene_history_free(struct vxd_scene_history *history);
/* What everybody sees of a version's undone_by, the one in the array: not what waits. */
uint64_t vxd_scene_undone_by(const struct vxd_scene_history *history,
                             const struct vxd_scene_version *version);
/* All that the journal has is there: what neither the terms nor a name keeps goes. Without the
 * mutex. */
void vxd_scene_end_recovery(struct vxd_scene *scene);

/* scenes.c. As vxd_scene_new, with no version yet; in `family`, where there is one. */
enum vxd_status vxd_scene_restore(struct vxd_scenes *scenes,
                                  struct vxd_scene_family *family,
                                  const struct vxd_scene_terms *terms,
                                  const struct vxd_scene_spec *spec,
                                  struct vxd_scene **out, struct vxd_err *err);

#endif
