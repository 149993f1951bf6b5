// SPDX-License-Identifier: Apache-2.0
/* Scenes as bytes: the description of a scene (in CREATE records and families' rows) and
 * the histories of a family's scenes (in snapshot files). scene_catalogue.c describes
 * them byte by byte. */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENE_CATALOGUE_H
#define VXD_SERVER_REGISTRY_SCENES_SCENE_CATALOGUE_H

#include "proto/base/bytes.h"
#include "proto/base/name.h"
#include "server/registry/scenes/scenes_internal.h"

/* What was read. */
struct vxd_scene_described {
    struct vxd_scene_terms terms;
    struct vxd_scene_spec spec;
    struct vxd_scene_material *palette; /* to be freed, with the names behind it */
    uint64_t generation;
    int64_t created_unix_ns;
};

/* Adds a scene's description. A lack of memory shows at the end (vxd_bytes_out). */
void vxd_scene_describe(struct vxd_bytes_out *out, const struct vxd_scene_terms *terms,
                        const struct vxd_scene_spec *spec, uint64_t generation,
                        int64_t created_unix_ns);

/* errors  DATA_LOSS, RESOURCE_EXHAUSTED; then nothing is to be freed */
enum vxd_status vxd_scene_read_description(struct vxd_bytes_in *in,
                                           struct vxd_scene_described *out,
                                           struct vxd_err *err);

/* Adds what everybody sees of a history. Roots are replaced by numbers from *n_roots on,
 * and written to `roots`, which has the capacity for all. */
void vxd_scene_write_history(struct vxd_bytes_out *out,
                             const struct vxd_scene_history *history, uint32_t *roots,
                             size_t *n_roots);

/* Reads one; roots are the numbers, below n_roots. The history is freed by
 * vxd_scene_history_free, also after a failure.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_read_history(struct vxd_bytes_in *in,
                                       struct vxd_scene_history *out, uint64_t n_roots,
                                       struct vxd_err *err);

/* Whether a scene has pins, or has decayed; then a snapshot file has its upkeep. */
bool vxd_scene_has_upkeep(const struct vxd_scene *scene);

/* Adds the time up to which a scene that fuses has decayed, and the pins of each version and
 * snapshot of the history as written: numbers of roots, which are written behind the others,
 * at most one for each version; 0 = none. */
void vxd_scene_write_upkeep(struct vxd_bytes_out *out, const struct vxd_scene *scene,
                            uint32_t *roots, size_t *n_roots);

/* Reads it into a scene whose history has been read; n_roots are at least 1.
 * errors  DATA_LOSS */
enum vxd_status vxd_scene_read_upkeep(struct vxd_bytes_in *in, struct vxd_scene *scene,
                                      const uint32_t *roots, size_t n_roots,
                                      struct vxd_err *err);

/* A snapshot's name as an item of the journal: scene, name, taker, time, and the
 * version's number. The item's own name is made of both names. */
enum {
    VXD_SCENE_ITEM_BYTES = 64
};
void vxd_scene_item_name(const char *scene, const char *snapshot,
                         char out[VXD_SCENE_ITEM_BYTES]);
void vxd_scene_write_named(struct vxd_bytes_out *out, const char *scene,
                           const struct vxd_scene_snapshot *snapshot);
/* Of the version only the number is set.
 * errors  DATA_LOSS */
enum vxd_status vxd_scene_read_named(struct vxd_bytes_in *in, char scene[VXD_NAME_BYTES],
                                     struct vxd_scene_snapshot *out, struct vxd_err *err);

#endif
