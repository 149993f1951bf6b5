// SPDX-License-Identifier: Apache-2.0
/* The named odometries, and those that are kept beside scenes and volumes for scans whose poses are
 * to be estimated: a table of named things (server/registry/named) each. All functions belong to the write
 * lane unless they say "any thread": scans of one stream are registered one after the other. A request
 * holds its odometry, which lives on when its name is dropped, and accounts for its memory before it drops
 * it.
 *
 * None is durable: a local map is of the last hundred metres, and after a restart nobody knows how far
 * the sensor has moved meanwhile. */
#ifndef VXD_SERVER_REGISTRY_ODOMETRIES_ODOMETRIES_H
#define VXD_SERVER_REGISTRY_ODOMETRIES_ODOMETRIES_H

#include "gpu/odometry/odometry.h"
#include "server/registry/named/named.h"

enum {
    VXD_ODOMETRIES_MAX = 256 /* of all tables together */
};

/* What a map may take where nobody says it. */
#define VXD_ODOMETRY_BYTES ((size_t)256 << 20)

struct vxd_odometries;

/* What an odometry belongs to. */
enum vxd_odometry_owner {
    VXD_ODOMETRY_NAMED = 0,     /* nothing else: its name is in the list */
    VXD_ODOMETRY_OF_SCENE = 1,  /* the scene of that name */
    VXD_ODOMETRY_OF_VOLUME = 2, /* the volume of that name */
    VXD_ODOMETRY_N_OWNERS = 3
};

struct vxd_named_odometry {
    struct vxd_named named; /* first: a struct vxd_named of these tables is one */
    uint64_t of_generation; /* of the scene or volume */
    struct vxd_odometry *odometry;
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_odometries_create(struct vxd_server *server,
                                      struct vxd_odometries **out, struct vxd_err *err);
/* No request may run. NULL is fine. */
void vxd_odometries_destroy(struct vxd_odometries *odometries);

/* Returns the table of those that are no scene's or volume's. */
struct vxd_names *vxd_odometries_named(const struct vxd_odometries *odometries);

/* Finds an odometry of that table, which is no use of it; NULL where there is none. */
struct vxd_named_odometry *vxd_odometries_find(const struct vxd_odometries *odometries,
                                               const char *name);

/* What an odometry is made with. */
struct vxd_odometry_terms {
    enum vxd_odometry_owner kind;
    uint64_t of_generation;
    const char *name;
    const char *owner;
    int64_t ttl_ns;
    struct vxd_odometry_options options;
    const struct vxd_volume_pose *initial; /* NULL: the identity */
};

/* Makes one and gives it its name, which is free. Held by the table alone.
 * errors  INVALID_ARGUMENT    options
 *         RESOURCE_EXHAUSTED  too many odometries, or no memory */
enum vxd_status vxd_odometries_add(struct vxd_odometries *odometries,
                                   struct vxd_queue *queue,
                                   const struct vxd_odometry_terms *terms,
                                   struct vxd_named_odometry **out, struct vxd_err *err);

/* The one that is kept beside a scene or a volume, with the defaults; made where there is none, or
 * where it belongs to an earlier one of that name. Its bytes are those of `owner`, whom the scene or
 * volume belongs to. It is dropped with that scene or volume, and when nobody used it for
 * an hour. */
enum vxd_status vxd_odometries_beside(struct vxd_odometries *odometries,
                                      struct vxd_queue *queue,
                                      enum vxd_odometry_owner kind, const char *name,
                                      uint64_t generation, const char *owner,
                                      struct vxd_named_odometry **out,
                                      struct vxd_err *err);

/* Drops the one beside a scene or a volume whose name was taken away. Nothing where there is none, or
 * where odometries is NULL, as while a server starts. */
void vxd_odometries_drop_beside(struct vxd_odometries *odometries,
                                enum vxd_odometry_owner kind, const char *name);

/* Drops odometries that nobody used for their ttl at the time `now_ns`. */
void vxd_odometries_reap(struct vxd_odometries *odometries, struct vxd_queue *queue,
                         int64_t now_ns);

/* Any thread. When the next one's time is over, unless it is used before; INT64_MAX = never. */
int64_t vxd_odometries_next_reap_ns(const struct vxd_odometries *odometries);

/* Any thread. Of all tables together; no limits. */
void vxd_odometries_get_usage(const struct vxd_odometries *odometries,
                              struct vxd_names_usage *out);

#endif
