// SPDX-License-Identifier: Apache-2.0
/* What a record of a durable pose graph says: nodes, edges, priors and keyframes that were added, or
 * the poses that an optimization made. posegraph_record.c describes the bytes. Equal changes, equal
 * bytes. */
#ifndef VXD_SERVER_DURABLE_RECORD_POSEGRAPH_RECORD_H
#define VXD_SERVER_DURABLE_RECORD_POSEGRAPH_RECORD_H

#include "gpu/posegraph/posegraph.h"
#include "server/durable/record/scene_record.h"

enum {
    /* By which rules pose graphs' records are applied. They count apart from those of others. */
    VXD_POSEGRAPH_RULES_BASE = 16 << 16,
    VXD_POSEGRAPH_RULES_VERSION = VXD_POSEGRAPH_RULES_BASE + 1
};

/* Kinds of the journal's rows: no kind of the other records. */
enum vxd_posegraph_record_kind {
    VXD_POSEGRAPH_RECORD_ADD = 16,
    VXD_POSEGRAPH_RECORD_POSES = 17
};

struct vxd_posegraph_record_node {
    uint64_t id;
    struct vxd_rigid T_map_node;
    int64_t stamp_ns;
    bool fixed;
};

struct vxd_posegraph_record_keyframe {
    uint32_t node; /* index */
    uint32_t n_points;
    const float *points; /* n_points x 3 */
    uint32_t n_descriptor;
    const float *descriptor;
};

struct vxd_posegraph_record {
    enum vxd_posegraph_record_kind kind;
    int64_t unix_ns;
    /* Who asked: the token's name and the client_id; may be "". */
    char author[VXD_RECORD_NAME_BYTES];
    char client[VXD_RECORD_NAME_BYTES];
    /* ADD. Edges, priors and keyframes name nodes by their indexes in the graph. */
    size_t n_nodes;
    const struct vxd_posegraph_record_node *nodes;
    size_t n_edges;
    const struct vxd_posegraph_edge *edges;
    size_t n_priors;
    const struct vxd_posegraph_prior *priors;
    size_t n_keyframes;
    const struct vxd_posegraph_record_keyframe *keyframes;
    /* POSES: of nodes 0 to n_poses - 1. */
    uint64_t version;
    double cost;
    size_t n_poses;
    const struct vxd_rigid *poses;
};

/* Packs a record. *out is the caller's to free (vxd_record_bytes_free).
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_posegraph_record_encode(const struct vxd_posegraph_record *record,
                                            struct vxd_record_bytes *out,
                                            struct vxd_err *err);

/* Its pointers lead into `memory` and nowhere else. */
struct vxd_posegraph_record_decoded {
    struct vxd_posegraph_record record;
    struct vxd_record_block *memory;
};

/* Unpacks a record. Whatever the bytes, arrays are as long as their numbers say and no more than
 * max_bytes of memory is taken (0 = VXD_RECORD_MAX_BYTES); whether it fits a certain graph is left to
 * who applies it. *out is the caller's to free (vxd_posegraph_record_decoded_free).
 * errors  as vxd_record_decode */
enum vxd_status vxd_posegraph_record_decode(const void *bytes, size_t n_bytes,
                                            uint32_t rules_version, size_t max_bytes,
                                            struct vxd_posegraph_record_decoded *out,
                                            struct vxd_err *err);
void vxd_posegraph_record_decoded_free(struct vxd_posegraph_record_decoded *decoded);

#endif
