// SPDX-License-Identifier: Apache-2.0
/* Recovering and saving durable scenes; private to scenes_*.c. */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENES_RECOVER_H
#define VXD_SERVER_REGISTRY_SCENES_SCENES_RECOVER_H

#include "server/registry/registry.h"
#include "server/registry/scenes/scenes_internal.h"

/* scenes_recover.c. What the registry of durable things needs of scenes. */
extern const struct vxd_durable_kind vxd_scenes_kind;

/* scenes_save.c. Writes what everybody sees of a family.
 * in      owner  struct vxd_scenes
 * errors  as save of struct vxd_durable_kind */
enum vxd_status vxd_scenes_save(void *owner, struct vxd_registry_save *save,
                                struct vxd_err *err);

enum {
    VXD_SCENE_LOG_ODDS_LAYOUT = 1, /* of a snapshot file's log-odds (scenes_load.c) */
    VXD_SCENE_VOTES_LAYOUT = 2     /* and of those with votes */
};

/* scenes_load.c. Loads what a snapshot file has of a family, which has no scene yet: its
 * scenes are made, and their roots are loaded.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED, those of the reader */
enum vxd_status vxd_scenes_load(struct vxd_scenes *scenes, uint32_t journal_id,
                                uint64_t least_generation,
                                struct vxd_snapshot_reader *reader, struct vxd_err *err);

/* Makes a scene from its description and puts it into the family of this id, which is made with
 * the first scene. It has no name yet (scenes_naming.c).
 * errors  DATA_LOSS (the family has one of that name), RESOURCE_EXHAUSTED */
enum vxd_status vxd_scenes_add_described(struct vxd_scenes *scenes, uint32_t journal_id,
                                         const struct vxd_scene_terms *terms,
                                         const struct vxd_scene_spec *spec,
                                         uint64_t generation, int64_t created_unix_ns,
                                         struct vxd_scene **out, struct vxd_err *err);

/* Sets a scene's generation, which is at least `least`; later ones are above it, whatever
 * the clock says at this start. */
void vxd_scene_set_generation(struct vxd_scene *scene, uint64_t least,
                              uint64_t generation);

/* scenes_naming.c. Finds a scene of a family by what its name is, or will be; NULL where there is
 * none. */
struct vxd_scene *vxd_scenes_find_in_family(struct vxd_scenes *scenes,
                                            uint32_t journal_id, const char *name);
/* Drops the scenes of a family, or of all with 0, that have no names yet. */
void vxd_scenes_drop_unnamed(struct vxd_scenes *scenes, uint32_t journal_id);
/* Gives the scenes of a family that is back their names, where no other family has them. */
void vxd_scenes_name_family(struct vxd_scene_family *family);
/* Ends what that has left, once all families are back: of two scenes of the same name the one that
 * was made first is dropped, in the journal too.
 * errors  of the journal */
enum vxd_status vxd_scenes_settle_names(struct vxd_scenes *scenes, struct vxd_err *err);

/* Finds the family of this id; NULL where there is none. */
struct vxd_scene_family *vxd_scenes_find_family(struct vxd_scenes *scenes,
                                                uint32_t journal_id);

#endif
