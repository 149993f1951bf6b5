// SPDX-License-Identifier: Apache-2.0
/* When the versions of a scene were published, in the daemon's running time, for retention by age.
 * Records and snapshot files have wall times only, and a wall clock that jumps must not end a
 * history. So the journal keeps a few marks for a scene that forgets by age: at this running time
 * its newest version was that one. A version is as old as the first mark that has it, or, where
 * none has, it begins with age 0 at the start that finds it. Time in which no daemon runs does not
 * count. */
#ifndef VXD_SERVER_REGISTRY_SCENES_SCENE_AGES_H
#define VXD_SERVER_REGISTRY_SCENES_SCENE_AGES_H

#include "proto/base/bytes.h"
#include "proto/base/name.h"

enum {
    VXD_SCENE_AGE_STEPS = 64, /* in the time that a scene keeps */
    VXD_SCENE_AGE_MARKS = VXD_SCENE_AGE_STEPS + 8
};

struct vxd_scene_age_mark {
    uint64_t version;
    uint64_t run_ns;
};

/* Ascending in both. */
struct vxd_scene_ages {
    struct vxd_scene_age_mark marks[VXD_SCENE_AGE_MARKS];
    size_t n;
};

/* Whether a mark for this version is due: it is above the last one's, and a step of the time that
 * is kept has passed. */
bool vxd_scene_age_is_due(const struct vxd_scene_ages *ages, uint64_t keep_seconds,
                          uint64_t version, uint64_t run_ns);

/* Adds it; marks that are older than what is kept go. */
void vxd_scene_age_add(struct vxd_scene_ages *ages, uint64_t keep_seconds,
                       uint64_t version, uint64_t run_ns);

/* Versions from this number on were not published. */
void vxd_scene_age_forget(struct vxd_scene_ages *ages, uint64_t version);

/* Marks later than the present running time say nothing: it was lost with the journal's end. */
void vxd_scene_age_drop_later(struct vxd_scene_ages *ages, uint64_t run_ns);

/* When a version was published, at the latest; `otherwise` where no mark has it. */
uint64_t vxd_scene_age_find(const struct vxd_scene_ages *ages, uint64_t version,
                            uint64_t otherwise);

/* As an item of the journal: text scene, number n, and n times number version, number run_ns.
 * Reading: false where the bytes are none; *ages is empty then. */
void vxd_scene_age_write(struct vxd_bytes_out *out, const char *scene,
                         const struct vxd_scene_ages *ages);
bool vxd_scene_age_read(struct vxd_bytes_in *in, char scene[VXD_NAME_BYTES],
                        struct vxd_scene_ages *ages);

#endif
