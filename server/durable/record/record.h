// SPDX-License-Identifier: Apache-2.0
/* Journal records of scenes, maps, volumes and pose graphs: from edits to bytes and back; and the list of what there
 * are records of. */
#ifndef VXD_SERVER_DURABLE_RECORD_RECORD_H
#define VXD_SERVER_DURABLE_RECORD_RECORD_H

#include "server/durable/record/map_record.h"
#include "server/durable/record/posegraph_record.h"
#include "server/durable/record/scene_record.h"
#include "server/durable/record/volume_record.h"

/* What the names of families begin with. Names of things have no ':'. */
#define VXD_SCENE_FAMILIES ""
#define VXD_MAP_FAMILIES "map:"
#define VXD_VOLUME_FAMILIES "volume:"
#define VXD_POSEGRAPH_FAMILIES "posegraph:"

/* The families of one kind of thing: its rules have the upper half of their numbers in common. */
struct vxd_record_owner {
    const char *prefix;
    uint32_t rules_version; /* the highest that this program knows */
    /* Checks a record's bytes. errors  as vxd_record_decode */
    enum vxd_status (*check)(const void *bytes, size_t n_bytes, uint32_t rules_version,
                             struct vxd_err *err);
};

/* Whose rules these are; NULL: of a kind that this program does not know. */
const struct vxd_record_owner *vxd_record_find_owner(uint32_t rules_version);

#endif
