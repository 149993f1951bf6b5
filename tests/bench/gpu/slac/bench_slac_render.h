// SPDX-License-Identifier: Apache-2.0
/* Depth images of a mesh along a path, as a sensor that distorts and is noisy takes them. */
#ifndef VXD_TESTS_BENCH_GPU_BENCH_SLAC_RENDER_H
#define VXD_TESTS_BENCH_GPU_BENCH_SLAC_RENDER_H

#include "gpu/volume/volume.h"

struct bench_mesh {
    float *corners; /* 9 a triangle */
    size_t n;
};

/* Reads what gltf_triangles.py wrote; false after a message. */
bool bench_mesh_read(const char *path, struct bench_mesh *out);

/* The pose of frame i of n: turns on a small circle around a middle, with all rolls. */
struct vxd_volume_pose bench_path_pose(const double middle[3], size_t i, size_t n);

/* b after a, and the inverse. */
struct vxd_volume_pose bench_pose_times(const struct vxd_volume_pose *a,
                                        const struct vxd_volume_pose *b);
struct vxd_volume_pose bench_pose_inverse(const struct vxd_volume_pose *a);

/* True depths, 0 = nothing. */
void bench_render(const struct bench_mesh *mesh, const struct vxd_volume_camera *camera,
                  const struct vxd_volume_pose *T_map_camera, float *depth);

/* What the sensor sees: at each pixel the depth at which D of the point, in the fragment's frame, is on
 * the surface; with the noise of a structured light camera (Nguyen and others, 2012: 1.2 mm + 1.9 mm
 * (z - 0.4)^2) and half a pixel of shift. */
void bench_sense(const struct vxd_volume_camera *camera,
                 const struct vxd_volume_pose *T_fragment_camera, double amplitude_m,
                 double noise, uint64_t seed, const float *truth, float *depth);

#endif
