// SPDX-License-Identifier: Apache-2.0
/* The named volumes: a table of named things (server/registry/named), which volumes.h gives to others. A
 * volume is changed in place, so requests on volumes run on the write lane, one after the other, and all
 * functions here belong to that lane. */
#ifndef VXD_SERVER_REGISTRY_VOLUMES_NAMED_VOLUMES_H
#define VXD_SERVER_REGISTRY_VOLUMES_NAMED_VOLUMES_H

#include "gpu/track/track.h"
#include "gpu/volume/volume.h"
#include "server/registry/named/named.h"

enum {
    VXD_VOLUMES_MAX = 4096
};

struct vxd_volume_refining;

/* Distance fields of volumes are kept beside those of scenes (server/registry/fields): their
 * generations have this bit. */
#define VXD_VOLUME_FIELDS ((uint64_t)1 << 63)

/* What a volume is on the disk: the engine's, and what counts beside it. */
struct vxd_volume_state {
    struct vxd_volume *volume;
    uint64_t n_images; /* integrated */
};

struct vxd_named_volume {
    struct vxd_named named; /* first: a struct vxd_named of this table is one */
    /* max_bytes 0; capacity 0 but where the volume forgets: all the blocks that it may have */
    struct vxd_volume_spec spec;
    struct vxd_volume_state state;
    struct vxd_track_state track;         /* of the camera that is tracked against it */
    struct vxd_volume_refining *refining; /* the request's that refines it; NULL: none */
    /* 24 bits that are others in each run of the server, and once the blocks were made anew: who goes
     * through them by number begins again then. */
    uint32_t order;
};

/* What a request on a durable volume hands over to the journal. Zero-initialised it is nothing. An image
 * or a scan with its pose, or what is removed, since the engine gives the same volume again for them;
 * else the blocks that changed. */
struct vxd_volume_entry {
    struct vxd_named_entry base; /* first: of struct vxd_named_commit */
    /* CHANGED: what the change was; kind 0: the blocks that have changed since `since` */
    struct vxd_volume_record record;
    uint64_t since; /* the volume's version before the change */
    /* CHANGED: another engine's volume has taken the place of the one that was (vxd_named_volume_replace):
     * all that the disk has of it goes, and all blocks come anew. */
    bool replaces;
    const struct vxd_named_volume
        *copied_from; /* MADE: has to be decided first; or NULL */
};

/* Makes the table of volumes. vxd_names_destroy frees it.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volumes_create(struct vxd_server *server, struct vxd_names **out,
                                   struct vxd_err *err);

/* Whether everything but capacity and max_bytes is equal. */
bool vxd_volume_spec_equal(const struct vxd_volume_spec *a,
                           const struct vxd_volume_spec *b);

/* As vxd_names_find and vxd_names_peek. */
struct vxd_named_volume *vxd_volumes_find(struct vxd_names *volumes, const char *name);
struct vxd_named_volume *vxd_volumes_peek(const struct vxd_names *volumes,
                                          const char *name);

/* Makes a volume that nobody can find yet, with one reference. One that forgets gets the capacity
 * that its max_bytes give.
 * in      take_volume  NULL = an empty one is made; else it has been made within the limits
 * errors  INVALID_ARGUMENT    a spec that vxd_volume_create refuses
 *         RESOURCE_EXHAUSTED  over the limits, the engine's budget, or too many volumes */
enum vxd_status vxd_named_volume_new(struct vxd_names *volumes, struct vxd_queue *queue,
                                     const struct vxd_named_terms *terms,
                                     const struct vxd_volume_spec *spec,
                                     struct vxd_volume *take_volume,
                                     struct vxd_named_volume **out, struct vxd_err *err);

/* Makes an empty engine's volume that may take a volume's place, within what the limits leave beside it.
 * Its versions go on from that one's, so that whoever knows an older one starts anew.
 * errors  RESOURCE_EXHAUSTED  names the limit */
enum vxd_status vxd_named_volume_begin_anew(const struct vxd_named_volume *volume,
                                            struct vxd_queue *queue,
                                            struct vxd_volume **out, struct vxd_err *err);

/* Puts it in the volume's place, which nothing has changed since; what was there is freed. It cannot
 * fail. */
void vxd_named_volume_replace(struct vxd_named_volume *volume, struct vxd_queue *queue,
                              struct vxd_volume *take_volume, uint64_t n_images);

/* Lets the volume grow as far as the limits leave it, before a call that may grow it. */
void vxd_named_volume_allow(struct vxd_named_volume *volume);

#endif
