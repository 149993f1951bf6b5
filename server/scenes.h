// SPDX-License-Identifier: Apache-2.0
/* The named scenes. A scene is a store of voxels (gpu/dag) that only grows, and one number of
 * it, the root, which says what is in the scene now. Changes run on the write lane, one after
 * the other; each ends in a new root, which queries see as a whole or not at all: they read
 * root and version once, when their turn comes, and hold the scene, so that it outlives its
 * name's being dropped. All functions may be called from any thread unless they say otherwise.
 *
 * Memory: a scene may grow to its own max_bytes and to what limits.scene_bytes and
 * limits.scene_bytes_per_token leave. */
#ifndef VXD_SERVER_SCENES_H
#define VXD_SERVER_SCENES_H

#include "gpu/dag/dag.h"
#include "server/request.h"

enum {
    VXD_SCENE_FRAME_BYTES = 256
};

struct vxd_scenes;

struct vxd_scene_material {
    const char *name; /* "" = none */
    uint32_t rgb;     /* 0xRRGGBB */
};

/* What a scene is, but for its name and its voxels. */
struct vxd_scene_spec {
    struct vxd_dag_format format;
    double voxel_size_m;
    double origin_m[3]; /* the low corner */
    char frame_id[VXD_SCENE_FRAME_BYTES];
    const struct vxd_scene_material *palette;
    size_t n_palette;
};

struct vxd_scene_terms {
    char name[VXD_NAME_BYTES];
    char owner[VXD_NAME_BYTES];
    uint64_t max_bytes; /* 0 = the limits' */
};

/* What a change replaces, all at once. */
struct vxd_scene_state {
    uint32_t root;
    uint64_t version; /* 1 = as it was made */
    int64_t changed_unix_ns;
};

struct vxd_scene {
    struct vxd_scene_terms terms;
    struct vxd_scene_spec spec; /* its palette is its own */
    struct vxd_dag *dag;
    uint64_t generation;
    int64_t created_unix_ns;
    /* The registry's. */
    struct vxd_scenes *scenes;
    struct vxd_buffer palette_memory;
    struct vxd_scene_state state;
    size_t n_bytes; /* as accounted */
    int references;
    struct vxd_scene *next;  /* by name */
    struct vxd_scene *older; /* of all that exist, for its owner's bytes */
};

/* errors  RESOURCE_EXHAUSTED
 *         UNIMPLEMENTED       scenes.store is one of slabs, and the engine a GPU */
enum vxd_status vxd_scenes_create(struct vxd_server *server, struct vxd_scenes **out,
                                  struct vxd_err *err);

/* Nobody may hold one any more. NULL is fine. */
void vxd_scenes_destroy(struct vxd_scenes *scenes);

/* Equal voxels, place and palette. */
bool vxd_scene_spec_equal(const struct vxd_scene_spec *a, const struct vxd_scene_spec *b);

/* A scene that nobody can find yet, empty, held by the caller; the palette is copied. On the
 * write lane.
 * errors  RESOURCE_EXHAUSTED  over the limits, the engine's budget, or too many scenes
 *         INVALID_ARGUMENT    scenes.store does not take so many bits of material */
enum vxd_status vxd_scene_new(struct vxd_scenes *scenes, struct vxd_queue *queue,
                              const struct vxd_scene_terms *terms,
                              const struct vxd_scene_spec *spec, struct vxd_scene **out,
                              struct vxd_err *err);

/* Makes it what its name, which is free, finds; the registry holds it as well. Cannot fail. */
void vxd_scenes_publish(struct vxd_scenes *scenes, struct vxd_scene *scene);

/* The scene, held; NULL where there is none. */
struct vxd_scene *vxd_scenes_find(struct vxd_scenes *scenes, const char *name);

/* Up to n_most in order of their names, each held; how many. */
size_t vxd_scenes_list(struct vxd_scenes *scenes, struct vxd_scene **out, size_t n_most);

/* Takes the name away, if it is this scene's still; the caller holds it. */
void vxd_scenes_remove(struct vxd_scenes *scenes, struct vxd_queue *queue,
                       struct vxd_scene *scene);

/* Lets go of it; with the last who does so its memory goes, in the queue's order. NULL is
 * fine. */
void vxd_scene_drop(struct vxd_scene *scene, struct vxd_queue *queue);

void vxd_scene_get_state(const struct vxd_scene *scene, struct vxd_scene_state *out);

/* The root from now on; returns its version. On the write lane. Cannot fail. */
uint64_t vxd_scene_set_root(struct vxd_scene *scene, uint32_t root);

/* Before a change: sets the most that the scene may take now. On the write lane. */
void vxd_scene_allow(struct vxd_scene *scene);

/* Where the engine refused what is above that: names the limit that it came from. On the write
 * lane. */
void vxd_scene_explain(const struct vxd_scene *scene, struct vxd_err *err);

/* After it may have grown. On the write lane. */
void vxd_scene_account(struct vxd_scene *scene);

struct vxd_scenes_usage {
    size_t n_scenes;
    uint64_t n_bytes;
    uint64_t limit_bytes;
};

void vxd_scenes_get_usage(const struct vxd_scenes *scenes, struct vxd_scenes_usage *out);

#endif
