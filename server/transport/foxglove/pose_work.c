// SPDX-License-Identifier: Apache-2.0
/* Pose graphs and odometries: lists of them, and the requests of what is in a graph. An odometry's list has
 * its pose, so no request follows. Both are of the frame "map". */
#include <string.h>

#include "proto/base/clock.h"
#include "server/transport/foxglove/viewer_internal.h"

/* The thing of a list's entry, marked as there; NULL, and the socket closed: no memory. */
static struct vxd_fox_thing *take_entry(struct vxd_foxglove *viewer,
                                        enum vxd_fox_kind kind, const char *name)
{
    struct vxd_fox_thing *thing = vxd_fox_thing_find(viewer, kind, name, true);

    if (thing == NULL) {
        vxd_socket_close(viewer->socket, VXD_SOCKET_FAULT, "no memory");
        return NULL;
    }
    thing->is_there = true;
    (void)snprintf(thing->frame, sizeof thing->frame, "map");
    return thing;
}

void vxd_fox_take_posegraphs(struct vxd_foxglove *viewer,
                             const Voxeld__V1__PosegraphListResponse *output)
{
    size_t n_before = vxd_fox_list_begin(viewer, VXD_FOX_POSEGRAPH);

    for (size_t i = 0; i < output->n_posegraphs; i++) {
        const Voxeld__V1__PosegraphInfo *info = output->posegraphs[i];
        struct vxd_fox_thing *thing = take_entry(viewer, VXD_FOX_POSEGRAPH, info->name);

        if (thing == NULL) {
            return;
        }
        thing->generation = info->generation;
        /* Nothing of it ever falls. */
        thing->version = info->version + info->n_nodes + info->n_edges;
    }
    vxd_fox_list_end(viewer, n_before);
}

static void take_odometry(struct vxd_foxglove *viewer, struct vxd_fox_thing *thing,
                          const Voxeld__V1__OdometryInfo *info)
{
    if (thing->has_place && thing->generation == info->generation &&
        thing->n_scans == info->n_scans) {
        return;
    }
    thing->generation = info->generation;
    thing->n_scans = info->n_scans;
    thing->version++;
    vxd_fox_take_sensor(thing, info->t_map_sensor,
                        info->stamp_ns > 0 ? info->stamp_ns : vxd_clock_unix_ns());
    thing->has_place = thing->sensor_ns > 0;
    viewer->transforms_version++;
}

void vxd_fox_take_odometries(struct vxd_foxglove *viewer,
                             const Voxeld__V1__OdometryListResponse *output)
{
    size_t n_before = vxd_fox_list_begin(viewer, VXD_FOX_ODOMETRY);

    for (size_t i = 0; i < output->n_odometries; i++) {
        const Voxeld__V1__OdometryInfo *info = output->odometries[i];
        struct vxd_fox_thing *thing = take_entry(viewer, VXD_FOX_ODOMETRY, info->name);

        if (thing == NULL) {
            return;
        }
        take_odometry(viewer, thing, info);
    }
    vxd_fox_list_end(viewer, n_before);
}

void vxd_fox_ask_graph(struct vxd_fox_job *job, char *body, size_t capacity)
{
    job->kind = VXD_FOX_GRAPH;
    (void)snprintf(body, capacity, "{\"name\":\"%s\",\"edges\":%s}", job->name,
                   job->schema == VXD_FOXGLOVE_POSES ? "false" : "true");
}

enum vxd_status vxd_fox_take_graph(const struct vxd_fox_job *job,
                                   const Voxeld__V1__PosegraphReadResponse *output,
                                   size_t max_bytes, struct vxd_text *text,
                                   struct vxd_err *err)
{
    return job->schema == VXD_FOXGLOVE_POSES
               ? vxd_fox_poses_message(output, vxd_clock_unix_ns(), max_bytes, text, err)
               : vxd_fox_edges_message(output, job->name, vxd_clock_unix_ns(), max_bytes,
                                       text, err);
}
