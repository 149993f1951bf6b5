// SPDX-License-Identifier: Apache-2.0
/* Non-rigid alignment: the jobs that run, and control grids of named maps. */
#ifndef VXD_SERVER_SERVICE_SLAC_SERVICE_SLAC_H
#define VXD_SERVER_SERVICE_SLAC_SERVICE_SLAC_H

#include "gpu/slac/slac.h"
#include "server/registry/maps/maps.h"

/* The last VXD_SLAC_JOBS jobs of the server, and how far they are. Any thread. */
struct vxd_slac_jobs;

enum {
    VXD_SLAC_JOBS = 64
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_slac_jobs_create(struct vxd_slac_jobs **out, struct vxd_err *err);
void vxd_slac_jobs_destroy(struct vxd_slac_jobs *jobs);

/* What a control grid's map has: the names of its arrays. */
#define VXD_SLAC_OFFSET_NAME "offset"
#define VXD_SLAC_ROTATION_NAME "rotation"

/* Makes a grid for lookups of a map's control points. On the write lane; blocking.
 * errors  INVALID_ARGUMENT    the map is no control grid; err.field is `field`
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_slac_open_grid(struct vxd_queue *queue, const struct vxd_map *map,
                                   const char *field, struct vxd_deform **out,
                                   struct vxd_err *err);

/* Finds a map that may be seen. On the write lane; borrowed until the stage ends.
 * errors  NOT_FOUND  err.field is `field`; UNAVAILABLE  of a durable map */
enum vxd_status vxd_slac_find_map(struct vxd_names *maps, const char *name,
                                  const char *field, struct vxd_map **out,
                                  struct vxd_err *err);

#endif
