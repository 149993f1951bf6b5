// SPDX-License-Identifier: Apache-2.0
/* The named volumes, as volumes.h gives them to others. A volume is changed in place, so requests on volumes run on the write lane,
 * one after the other, and all functions here belong to that lane unless they say "any thread".
 * A request finds its volume by name when its turn has come; a volume that a request holds lives
 * on when its name is dropped.
 *
 * Memory: a volume may grow up to its own max_bytes and to what limits.volume_bytes and
 * limits.volume_bytes_per_token leave. The copies that growing needs for a moment count. */
#ifndef VXD_SERVER_REGISTRY_VOLUMES_NAMED_VOLUMES_H
#define VXD_SERVER_REGISTRY_VOLUMES_NAMED_VOLUMES_H

#include "gpu/track/track.h"
#include "gpu/volume/volume.h"
#include "proto/base/name.h"
#include "server/durable/journal/journal.h"
#include "server/request/request.h"

enum {
    VXD_VOLUMES_MAX = 4096
};

#define VXD_VOLUME_JOURNAL_BYTES                                                         \
    ((uint64_t)256 << 20) /* the default of journal_max_bytes */

struct vxd_volumes;
struct vxd_volume_refining;

/* Distance fields of volumes are kept beside those of scenes (server/registry/fields): their
 * generations have this bit. */
#define VXD_VOLUME_FIELDS ((uint64_t)1 << 63)

/* How long a volume is kept, and how large it may be. */
struct vxd_volume_terms {
    char name[VXD_NAME_BYTES];
    char owner[VXD_NAME_BYTES];
    uint64_t max_bytes; /* 0 = the limits' */
    int64_t ttl_ns;     /* 0 = never dropped */
    /* What needs more than max_bytes, which is not 0 then, removes the farthest blocks. */
    bool forgets;
    bool durable; /* it is in the journal; then ttl_ns is 0 */
    enum vxd_fsync fsync;
    uint64_t journal_max_bytes; /* a snapshot is written when its records have so many */
};

/* How a durable volume stands in the journal; the write lane's. Sequence numbers are those of the
 * volume's family there. */
struct vxd_volume_durable {
    uint32_t journal_id; /* 0: the volume is not durable */
    uint64_t sequence;   /* of the last record that was handed over */
    uint64_t decided;    /* of the last one on disk */
    size_t n_waiting;    /* changes that were handed over and are not decided */
    bool is_leaving;     /* it is being dropped */
    bool is_gone;        /* it was dropped, or could not be made: its name is free */
    /* Memory has changes that the disk lacks: one failed, and others were built on it. Nobody sees
     * the volume until it is brought back. */
    bool is_broken;
};

struct vxd_named_volume {
    struct vxd_volume_terms terms;
    /* max_bytes 0; capacity 0 but where the volume forgets: all the blocks that it may have */
    struct vxd_volume_spec spec;
    struct vxd_volume *volume;
    uint64_t n_images;                    /* integrated */
    struct vxd_track_state track;         /* of the camera that is tracked against it */
    struct vxd_volume_refining *refining; /* the request's that refines it; NULL: none */
    uint64_t generation;
    int64_t created_unix_ns;
    int64_t used_ns; /* monotonic */
    struct vxd_volume_durable durable;
    /* These belong to the list. */
    size_t n_bytes; /* as accounted */
    int references;
    struct vxd_named_volume *next; /* by name */
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volumes_create(struct vxd_server *server, struct vxd_volumes **out,
                                   struct vxd_err *err);

/* Returns the volumes' own queue, for work of the write lane between requests; borrowed. */
struct vxd_queue *vxd_volumes_queue(struct vxd_volumes *volumes);

/* No request may run. NULL is fine. */
void vxd_volumes_destroy(struct vxd_volumes *volumes);

/* Whether everything but capacity and max_bytes is equal. */
bool vxd_volume_spec_equal(const struct vxd_volume_spec *a,
                           const struct vxd_volume_spec *b);

/* Finds a volume; that is a use of it. NULL where there is none. */
struct vxd_named_volume *vxd_volumes_find(struct vxd_volumes *volumes, const char *name);

/* Finds a volume without using it. */
struct vxd_named_volume *vxd_volumes_peek(struct vxd_volumes *volumes, const char *name);

/* Returns the next volume in order of names; the first one for NULL. */
struct vxd_named_volume *vxd_volumes_next(struct vxd_volumes *volumes,
                                          const struct vxd_named_volume *volume);

/* Makes a volume that nobody can find yet, with one reference. One that forgets gets the capacity
 * that its max_bytes give.
 * in      take_volume  NULL = an empty one is made; else it has been made within the limits
 * errors  INVALID_ARGUMENT    a spec that vxd_volume_create refuses
 *         RESOURCE_EXHAUSTED  over the limits, the engine's budget, or too many volumes */
enum vxd_status vxd_named_volume_new(struct vxd_volumes *volumes, struct vxd_queue *queue,
                                     const struct vxd_volume_terms *terms,
                                     const struct vxd_volume_spec *spec,
                                     struct vxd_volume *take_volume,
                                     struct vxd_named_volume **out, struct vxd_err *err);

/* Gives the volume its name, which is free, and takes a reference. It cannot fail. */
void vxd_volumes_publish(struct vxd_volumes *volumes, struct vxd_named_volume *volume);

/* Takes the name away. The volume is freed with its last reference. */
void vxd_volumes_remove(struct vxd_volumes *volumes, struct vxd_queue *queue,
                        struct vxd_named_volume *volume);

void vxd_named_volume_hold(struct vxd_named_volume *volume);
/* Drops a reference. It ends a use, so the volume's ttl begins anew. */
void vxd_named_volume_drop(struct vxd_volumes *volumes, struct vxd_queue *queue,
                           struct vxd_named_volume *volume);

/* Lets the volume grow as far as the limits leave it, before a call that may grow it. */
void vxd_volumes_allow(const struct vxd_volumes *volumes,
                       struct vxd_named_volume *volume);

/* Completes the engine's error where it refused what is above what was allowed: names the
 * limit, unless it is the volume's own. volume NULL: one that was to be made. */
void vxd_volumes_explain(const struct vxd_volumes *volumes,
                         const struct vxd_volume_terms *terms,
                         const struct vxd_named_volume *volume, struct vxd_err *err);

/* Refuses a copy of so many bytes that the limits do not leave.
 * errors  RESOURCE_EXHAUSTED  names the limit */
enum vxd_status vxd_volumes_check_copy(const struct vxd_volumes *volumes,
                                       const struct vxd_volume_terms *terms,
                                       uint64_t n_bytes, struct vxd_err *err);

/* Accounts for the volume's memory after it may have grown. */
void vxd_volumes_account(struct vxd_volumes *volumes, struct vxd_named_volume *volume);

/* Drops volumes that nobody used for their ttl at the time `now_ns`. */
void vxd_volumes_reap(struct vxd_volumes *volumes, struct vxd_queue *queue,
                      int64_t now_ns);

/* Any thread. Returns when the next volume's time is over, unless it is used before;
 * INT64_MAX = never. */
int64_t vxd_volumes_next_reap_ns(const struct vxd_volumes *volumes);

struct vxd_volumes_usage {
    size_t n_volumes;
    uint64_t n_bytes;
    uint64_t limit_bytes;
    size_t n_durable;
    uint64_t n_snapshots; /* files of durable volumes written, and failed */
    uint64_t n_failed_snapshots;
};

/* Any thread. */
void vxd_volumes_get_usage(const struct vxd_volumes *volumes,
                           struct vxd_volumes_usage *out);

#endif
