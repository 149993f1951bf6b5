// SPDX-License-Identifier: Apache-2.0
/* What the files of a rebuild share: one job for scenes and volumes, whose stages take turns on two kinds
 * of lanes. */
#ifndef VXD_SERVER_SERVICE_POSEGRAPH_POSEGRAPH_REBUILD_H
#define VXD_SERVER_SERVICE_POSEGRAPH_POSEGRAPH_REBUILD_H

#include "server/service/posegraph/posegraph_service.h"
#include "server/service/scene/scene.h"
#include "server/service/volume/service_volume.h"

enum vxd_rebuild_stage {
    VXD_REBUILD_OPEN =
        0, /* write lane: what is to be made anew is found, keyframes are held */
    VXD_REBUILD_SCAN, /* read lanes: a part of a keyframe's rays; a keyframe of a volume */
    VXD_REBUILD_EDIT,   /* write lane: the keyframe into the scene beside */
    VXD_REBUILD_LIST,   /* read lanes: the voxels of that scene, as lists */
    VXD_REBUILD_REPLACE /* write lane: all takes its place, as one change */
};

struct vxd_rebuild_keyframe {
    struct vxd_keyframe *keyframe; /* held */
    struct vxd_rigid T_map_node;
};

/* Voxels, and what becomes of them: an operation of the edit that replaces all. */
struct vxd_rebuild_list {
    struct vxd_svdag_voxel_list list;
    enum vxd_svdag_action action;
};

/* Of a scene. */
struct vxd_rebuild_scene {
    struct vxd_scene *target;            /* held; perhaps the base's */
    struct vxd_scene *beside;            /* what is made of the keyframes; likewise */
    struct vxd_buffer records;           /* device: points as they came, */
    struct vxd_buffer positions;         /* and in voxels from the sensor's */
    struct vxd_svdag_scanning *scanning; /* NULL: the keyframe's rays have not begun */
    struct vxd_svdag_scan_result scan;
    struct vxd_rebuild_list *lists; /* first the free voxels */
    size_t n_lists;
    uint64_t n_cells; /* of the free, or then the occupied ones */
    uint64_t n_listed;
    bool is_counted;
    bool lists_occupied;
    struct vxd_svdag_edit_result result;
    Voxeld__V1__SceneChange *change;
};

/* Of a volume. */
struct vxd_rebuild_volume {
    struct vxd_volume *made;   /* the job's own until it takes the other's place */
    struct vxd_volume *engine; /* whose place that is */
    uint64_t version;          /* of that one, when the rebuild began */
    struct vxd_buffer points;  /* device */
    struct vxd_err
        over_limit; /* the answer where the blocks do not fit, made on the write lane */
};

struct vxd_rebuild_job {
    /* First: request->state is any of them. */
    union {
        struct vxd_scene_job scene;
        struct vxd_volume_job volume;
    } base;
    bool is_scene;
    enum vxd_rebuild_stage stage;
    int number; /* in the list of rebuilds; -1: it is not there */
    struct vxd_rebuild_keyframe *keyframes;
    size_t n_keyframes;
    size_t n_done;
    float *kept; /* the points of a keyframe that are not too near; NULL: all are */
    struct vxd_rebuild_scene scene;
    struct vxd_rebuild_volume volume;
    Voxeld__V1__PosegraphRebuildResponse *reply;
};

static inline const Voxeld__V1__PosegraphRebuildRequest *
vxd_rebuild_input(const struct vxd_request *request)
{
    return (const Voxeld__V1__PosegraphRebuildRequest *)request->input;
}

/* A pose as a rotation matrix, as messages' poses become one. */
void vxd_rebuild_pose(const struct vxd_rigid *pose, struct vxd_volume_pose *out);

/* --- posegraph_rebuild_scene.c ------------------------------------------------------------------- */

/* OPEN: finds the scene, and makes an empty one beside it.
 * errors  NOT_FOUND, INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_rebuild_open_scene(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);

/* SCAN: a part of the rays of the next keyframe; *is_done: all of them, and EDIT follows.
 * errors  OUT_OF_RANGE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_rebuild_scan(struct vxd_request *request, struct vxd_queue *queue,
                                 bool *is_done, struct vxd_err *err);

/* EDIT: what they hit and passed into the scene beside.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_rebuild_edit(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err);

/* LIST: a part of the lists; *is_done: all of them. */
enum vxd_status vxd_rebuild_list(struct vxd_request *request, struct vxd_queue *queue,
                                 bool *is_done, struct vxd_err *err);

/* REPLACE: the scene's own change, which finish publishes. */
enum vxd_status vxd_rebuild_replace_scene(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err);
void vxd_rebuild_publish_scene(struct vxd_request *request);

void vxd_rebuild_release_scene(struct vxd_request *request, struct vxd_queue *queue);

/* --- posegraph_rebuild_volume.c ------------------------------------------------------------------ */

/* The same of a volume; SCAN is a keyframe whole. */
enum vxd_status vxd_rebuild_open_volume(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_rebuild_integrate(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_rebuild_replace_volume(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err);
void vxd_rebuild_release_volume(struct vxd_request *request, struct vxd_queue *queue);

#endif
