// SPDX-License-Identifier: Apache-2.0
/* The start and the end of durable scenes; private to scenes_*.c. */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENES_RECOVER_H
#define VXD_SERVER_REGISTRY_SCENES_SCENES_RECOVER_H

#include "server/durable/recovery/recovery.h"
#include "server/registry/scenes/scenes_internal.h"

/* scenes_recover.c. Brings back what the journal has.
 * errors  as vxd_scenes_open_journal */
enum vxd_status vxd_scenes_recover(struct vxd_scenes *scenes,
                                   const struct vxd_journal_found *found,
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

/* scenes_save.c. The thread that writes snapshot files, once it may begin.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_saver_start(struct vxd_scenes *scenes,
                                      struct vxd_scene_saver **out, struct vxd_err *err);
/* All scenes are there: before, one that is half recovered would be written. */
void vxd_scene_saver_begin(struct vxd_scene_saver *saver);
/* It ends the file that it writes, which needs the journal. Who asks later is not heard. */
void vxd_scene_saver_stop(struct vxd_scene_saver *saver);
/* Stopped, and nobody asks any more: the journal, whose thread asks, is closed. */
void vxd_scene_saver_destroy(struct vxd_scene_saver *saver);
/* A family is due, or was dropped, and then its files go. Never waits. Any thread. */
void vxd_scene_saver_ask(struct vxd_scene_saver *saver, uint32_t journal_id);

#endif
