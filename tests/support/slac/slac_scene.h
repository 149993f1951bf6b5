// SPDX-License-Identifier: Apache-2.0
/* Fragments of a ray-traced room that a planted smooth distortion has bent, and how well they were
 * straightened: for tests of SLAC. */
#ifndef VXD_TESTS_SUPPORT_SLAC_SLAC_SCENE_H
#define VXD_TESTS_SUPPORT_SLAC_SLAC_SCENE_H

#include "gpu/slac/slac.h"
#include "tests/support/gpu/gpu_helpers.h"

#define SLAC_MAX_FRAGMENTS 64

/* A point of a fragment as it is seen, and where it truly is. */
struct slac_fragment {
    char name[32];
    size_t n;
    float *points;  /* n x 3, the fragment's frame, distorted and noisy */
    float *normals; /* n x 3, of the undistorted surface */
    float *truth;   /* n x 3, map frame, without noise */
    struct vxd_volume_pose true_pose; /* T_map_fragment */
    struct vxd_volume_pose pose;      /* what is known of it */
};

struct slac_scene {
    size_t n_fragments;
    struct slac_fragment fragments[SLAC_MAX_FRAGMENTS];
};

/* The planted distortion D: where a point that is seen at p truly is. amplitude_m: of its waves. */
void slac_distort(const double p[3], double amplitude_m, double out[3]);
/* D^-1. */
void slac_undistort(const double p[3], double amplitude_m, double out[3]);

/* Fragments on a loop through the room, of 24 steps or more of which the first ones are taken, each an image of `width` x 3/4 width; poses are wrong by
 * pose_error_m and as many tenths of a radian. */
void slac_scene_make(struct slac_scene *out, size_t n_fragments, int width,
                     double amplitude_m, double noise, double pose_error_m);
void slac_scene_free(struct slac_scene *scene);

/* Uploads the fragments; *buffers (2 a fragment, malloc'ed) are the caller's. */
void slac_scene_upload(struct gpu_env *env, const struct slac_scene *scene,
                       struct vxd_slac_fragment *fragments, struct vxd_buffer **buffers);
void slac_buffers_free(struct gpu_env *env, const struct slac_scene *scene,
                       struct vxd_buffer *buffers);

/* Moves all points by C (grid NULL: not) and by the poses into the map, after one another;
 * malloc'ed, 3 a point. */
float *slac_scene_map(struct gpu_env *env, const struct slac_scene *scene,
                      const struct vxd_hashmap *grid, double cell_m,
                      const struct vxd_volume_pose *poses, size_t *n);

/* The truth likewise. */
float *slac_scene_truth(const struct slac_scene *scene, size_t *n);

/* Aligns `points` rigidly to `truth`, one to one, in place; returns the root of the mean square
 * distance that is left. */
double slac_align(float *points, const float *truth, size_t n);

/* How far C is from D up to a rigid motion, root of the mean square over all points, metres. */
double slac_distortion_left(struct gpu_env *env, const struct slac_scene *scene,
                            const struct vxd_hashmap *grid, double cell_m,
                            double amplitude_m);

/* Parts of points that are within `distance` of one of the others: precision, recall, and their
 * harmonic mean; each 0 to 1. */
struct slac_score {
    double precision;
    double recall;
    double f;
};

struct slac_score slac_score(const float *points, size_t n_points, const float *truth,
                             size_t n_truth, double distance);

#endif
