// SPDX-License-Identifier: Apache-2.0
/* What is in a pose graph as Foxglove's messages. */
#include <stdlib.h>
#include <string.h>

#include "server/transport/foxglove/foxglove_internal.h"

enum {
    POSE_DOUBLES = 7, /* x y z, and the quaternion x y z w */
    POSE_BYTES = 69,  /* of a message, at most */
    EDGE_BYTES = 60,  /* two points of a line */
    LINE_LIST = 2
};

/* The rows of a reply's tensor; NULL where there are not so many bytes. */
static const uint8_t *rows_of(const Voxeld__V1__Tensor *tensor, size_t n,
                              size_t row_bytes)
{
    return tensor != NULL && tensor->data.len == n * row_bytes ? tensor->data.data : NULL;
}

static void read_pose(const uint8_t *poses, size_t i, double pose[POSE_DOUBLES])
{
    memcpy(pose, poses + i * POSE_DOUBLES * sizeof *pose, POSE_DOUBLES * sizeof *pose);
}

static enum vxd_status find_poses(const Voxeld__V1__PosegraphReadResponse *reply,
                                  const uint8_t **poses, struct vxd_err *err)
{
    *poses = reply->n_nodes > 0
                 ? rows_of(reply->poses, reply->n_nodes, POSE_DOUBLES * sizeof(double))
                 : NULL;
    return *poses != NULL || reply->n_nodes == 0
               ? VXD_OK
               : vxd_fail(err, VXD_INTERNAL, NULL, "poses are missing");
}

enum vxd_status vxd_fox_poses_message(const Voxeld__V1__PosegraphReadResponse *reply,
                                      int64_t stamp_ns, size_t max_bytes,
                                      struct vxd_text *text, struct vxd_err *err)
{
    size_t most = max_bytes / POSE_BYTES > 0 ? max_bytes / POSE_BYTES : 1;
    size_t step = reply->n_nodes > 0 ? (reply->n_nodes - 1) / most + 1 : 1;
    const uint8_t *poses;
    enum vxd_status status;

    VXD_TRY(find_poses(reply, &poses, err));
    vxd_fox_time(text, 1, stamp_ns);
    vxd_fox_string(text, 2, "map");
    for (size_t i = 0; i < reply->n_nodes; i += step) {
        double pose[POSE_DOUBLES];

        read_pose(poses, i, pose);
        vxd_fox_turned_pose(text, 3, pose, pose + 3);
    }
out:
    return status;
}

/* --- edges ------------------------------------------------------------------------------------ */

/* A node's id and its row. */
struct node {
    uint64_t id;
    size_t row;
};

static int compare_nodes(const void *a, const void *b)
{
    uint64_t x = ((const struct node *)a)->id;
    uint64_t y = ((const struct node *)b)->id;

    return (x > y) - (x < y);
}

/* A graph's nodes by their ids; NULL: no memory, or no ids. */
static struct node *sort_nodes(const Voxeld__V1__PosegraphReadResponse *reply)
{
    const uint8_t *ids = rows_of(reply->ids, reply->n_nodes, sizeof(uint64_t));
    struct node *nodes =
        ids != NULL ? malloc((size_t)reply->n_nodes * sizeof *nodes) : NULL;

    for (size_t i = 0; nodes != NULL && i < reply->n_nodes; i++) {
        memcpy(&nodes[i].id, ids + i * sizeof nodes[i].id, sizeof nodes[i].id);
        nodes[i].row = i;
    }
    if (nodes != NULL) {
        qsort(nodes, (size_t)reply->n_nodes, sizeof *nodes, compare_nodes);
    }
    return nodes;
}

/* The lines of the edges between nodes that were added one after the other, or of the others. */
static void append_lines(const Voxeld__V1__PosegraphReadResponse *reply,
                         const uint8_t *edges, const uint8_t *poses,
                         const struct node *nodes, bool are_steps, struct vxd_text *text)
{
    size_t at = vxd_fox_open(text, 11);

    vxd_fox_number(text, 1, LINE_LIST);
    vxd_fox_pose(text, 2, 0, 0, 0);
    vxd_fox_double(text, 3, 2); /* pixels, as it does not scale */
    vxd_fox_number(text, 4, 1);
    for (size_t i = 0; i < reply->n_edges; i++) {
        const struct node *ends[2];
        uint64_t ids[2];
        bool is_step;

        memcpy(ids, edges + i * sizeof ids, sizeof ids);
        for (int k = 0; k < 2; k++) {
            const struct node key = {.id = ids[k]};

            ends[k] =
                bsearch(&key, nodes, (size_t)reply->n_nodes, sizeof key, compare_nodes);
        }
        if (ends[0] == NULL || ends[1] == NULL) {
            continue;
        }
        is_step = ends[0]->row + 1 == ends[1]->row || ends[1]->row + 1 == ends[0]->row;
        for (int k = 0; k < 2 && is_step == are_steps; k++) {
            double pose[POSE_DOUBLES];

            read_pose(poses, ends[k]->row, pose);
            vxd_fox_vector(text, 5, pose[0], pose[1], pose[2]);
        }
    }
    if (are_steps) {
        vxd_fox_colour(text, 6, 0.2, 0.55, 1, 1);
    } else {
        vxd_fox_colour(text, 6, 1, 0.55, 0.1, 1);
    }
    vxd_fox_close(text, at);
}

enum vxd_status vxd_fox_edges_message(const Voxeld__V1__PosegraphReadResponse *reply,
                                      const char *name, int64_t stamp_ns,
                                      size_t max_bytes, struct vxd_text *text,
                                      struct vxd_err *err)
{
    const uint8_t *edges =
        rows_of(reply->edge_ids, (size_t)reply->n_edges, 2 * sizeof(uint64_t));
    const uint8_t *poses;
    struct node *nodes = NULL;
    size_t at;
    enum vxd_status status;

    if (reply->n_edges == 0) {
        return VXD_OK; /* a graph never loses one, so there is nothing to take away */
    }
    VXD_TRY(find_poses(reply, &poses, err));
    if (reply->n_edges > max_bytes / EDGE_BYTES) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                         "%zu bytes are too few for %llu edges", max_bytes,
                         (unsigned long long)reply->n_edges));
    }
    nodes = sort_nodes(reply);
    if (edges == NULL || poses == NULL || nodes == NULL) {
        VXD_TRY(vxd_fail(err, VXD_INTERNAL, NULL, "edges are missing, or memory"));
    }
    at = vxd_fox_open(text, 2);
    vxd_fox_time(text, 1, stamp_ns);
    vxd_fox_string(text, 2, "map");
    vxd_fox_string(text, 3, name);
    append_lines(reply, edges, poses, nodes, true, text);
    append_lines(reply, edges, poses, nodes, false, text);
    vxd_fox_close(text, at);
out:
    free(nodes);
    return status;
}
