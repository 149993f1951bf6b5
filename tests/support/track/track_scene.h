// SPDX-License-Identifier: Apache-2.0
/* A textured room with boxes and balls that is ray-traced in double, for tests of tracking. */
#ifndef VXD_TESTS_SUPPORT_TRACK_TRACK_SCENE_H
#define VXD_TESTS_SUPPORT_TRACK_TRACK_SCENE_H

#include "gpu/volume/volume.h"
#include "tests/support/gpu/gpu_helpers.h"

enum track_scene {
    TRACK_ROOM,   /* of 4 x 2.4 x 4 m around the origin, y down */
    TRACK_WALL,   /* the plane z = 1.5 in grey, with noise */
    TRACK_PAINTED /* the same plane, textured */
};

/* An image in host memory. */
struct track_shot {
    struct vxd_volume_frame frame; /* its arrays are those below */
    float *depth;                  /* metres; 0: nothing */
    uint8_t *colour;
};

struct vxd_volume_camera track_camera(int width, int height);

/* A pose at (x, y, z), turned by angles in degrees about y (first), x and z. */
struct vxd_volume_pose track_pose(double x, double y, double z, double yaw, double pitch,
                                  double roll);

/* The camera's pose in a room at step i of n of a closed loop. */
struct vxd_volume_pose track_loop_pose(int i, int n);

/* Renders the scene. noise: of the depth, as a part of its square (Kinect: about 0.002). */
void track_shoot(enum track_scene scene, const struct vxd_volume_camera *camera,
                 const struct vxd_volume_pose *pose, double noise, uint64_t seed,
                 struct track_shot *out);
void track_shot_free(struct track_shot *shot);

/* Metres between the positions, and degrees between the rotations, of two poses. */
double track_apart_m(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b);
double track_apart_deg(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b);

#endif
