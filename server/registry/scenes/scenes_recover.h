// SPDX-License-Identifier: Apache-2.0
/* The start and the end of durable scenes; private to scenes_*.c. */
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

/* scenes_load.c. What a snapshot file has of a family: its scenes, in the registry, their roots
 * loaded. The family has no scene yet.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED, those of the reader */
enum vxd_status vxd_scenes_load(struct vxd_scenes *scenes, uint32_t journal_id,
                                uint64_t least_generation,
                                struct vxd_snapshot_reader *reader, struct vxd_err *err);

/* A scene as described, in the registry, on a family of this id (made with the first one).
 * errors  DATA_LOSS (a name that is taken), RESOURCE_EXHAUSTED */
enum vxd_status vxd_scenes_add_described(struct vxd_scenes *scenes, uint32_t journal_id,
                                         const struct vxd_scene_terms *terms,
                                         const struct vxd_scene_spec *spec,
                                         uint64_t generation, int64_t created_unix_ns,
                                         struct vxd_scene **out, struct vxd_err *err);

/* Not below `least`; later ones are above it, whatever the clock says at this start. */
void vxd_scene_set_generation(struct vxd_scene *scene, uint64_t least,
                              uint64_t generation);

/* The family of this id; NULL. */
struct vxd_scene_family *vxd_scenes_find_family(struct vxd_scenes *scenes,
                                                uint32_t journal_id);

#endif
