// SPDX-License-Identifier: Apache-2.0
/* What a named pose graph has: nodes, edges, priors, keyframes, and the versions of its poses. It only
 * grows, and a change is checked as a whole before it begins, so it is made or it is not. One thread at
 * a time; keyframes alone may be held by others. */
#ifndef VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPH_CONTENT_H
#define VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPH_CONTENT_H

#include <stdatomic.h>

#include "server/durable/record/record.h"

enum {
    VXD_POSEGRAPH_VERSIONS = 16 /* that are kept */
};

/* A cloud and its descriptor, which never change. */
struct vxd_keyframe {
    atomic_int references;
    uint32_t n_points;
    uint32_t n_descriptor; /* 0: none */
    const float *descriptor;
    float points[]; /* 3 each; then the descriptor */
};

/* Any thread. */
struct vxd_keyframe *vxd_keyframe_hold(struct vxd_keyframe *keyframe);
/* NULL is fine. */
void vxd_keyframe_drop(struct vxd_keyframe *keyframe);

struct vxd_posegraph_node {
    uint64_t id;
    int64_t stamp_ns;
    bool fixed;
    struct vxd_keyframe *keyframe; /* NULL: none */
    uint32_t keyframe_order;       /* its place among the keyframes */
};

struct vxd_posegraph_version {
    uint64_t version;
    int64_t unix_ns;
    double cost;
    size_t n; /* the newest has all nodes */
    struct vxd_rigid *poses;
    size_t capacity;
};

struct vxd_posegraph_content {
    size_t n_nodes;
    struct vxd_posegraph_node *nodes;
    size_t n_edges;
    struct vxd_posegraph_edge *edges;
    size_t n_priors;
    struct vxd_posegraph_prior *priors;
    size_t n_keyframes;
    uint32_t n_descriptor; /* of all keyframes that have one; 0: none has */
    struct vxd_posegraph_version versions[VXD_POSEGRAPH_VERSIONS]; /* oldest first */
    int n_versions;
    size_t n_bytes;
    /* Capacities, and nodes by id: index plus 1, 0: free; n_table is a power of two. */
    size_t nodes_capacity;
    size_t edges_capacity;
    size_t priors_capacity;
    uint32_t *table;
    size_t n_table;
};

void vxd_posegraph_content_clear(struct vxd_posegraph_content *content);

/* The index of a node; UINT32_MAX: none has the id. */
uint32_t vxd_posegraph_find(const struct vxd_posegraph_content *content, uint64_t id);

/* A version; 0: the newest. NULL: it is not there. */
const struct vxd_posegraph_version *
vxd_posegraph_find_version(const struct vxd_posegraph_content *content, uint64_t version);

/* Bytes that an ADD takes, at most. */
size_t vxd_posegraph_record_needs(const struct vxd_posegraph_content *content,
                                  const struct vxd_posegraph_record *record);

/* Makes a change, or none.
 * errors  INVALID_ARGUMENT    names the field: what vxd_posegraph_solver_create would refuse of it, two
 *                             keyframes of a node, a descriptor of another length
 *         ALREADY_EXISTS      a node's id; a node's keyframe
 *         FAILED_PRECONDITION POSES of more nodes than there are, or no newer version
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_posegraph_apply(struct vxd_posegraph_content *content,
                                    const struct vxd_posegraph_record *record,
                                    struct vxd_err *err);

/* Forgets all versions of the poses; POSES follow. */
void vxd_posegraph_forget_versions(struct vxd_posegraph_content *content);

#endif
