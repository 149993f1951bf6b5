// SPDX-License-Identifier: Apache-2.0
/* Shape from shading (ASH, section 6.4): refines the distances of a volume, and finds the albedo of
 * its surface, so that shading explains what colour images of known poses show.
 *
 * A voxel near the surface has a distance d and an albedo a, a factor of its brightness. Its shading
 * is a * SH(n): nine spherical harmonics (three bands) of the normal n, the normalized gradient of
 * the distances (equation 18). It belongs to the surface's point x - d n (equation 17), which
 * keyframes see. The energy is equation 16's, over pairs of neighbouring voxels x, y and keyframes j:
 *
 *   data     ((B(x) - I_j(x)) - (B(y) - I_j(y)))^2, Huber's beyond 0.03: differences of shading equal
 *            those of the images. Weighted by the cosine to the camera, over the mean number of views
 *   smooth   the square of the distances' Laplacian
 *   init     the square of the distance's change
 *   chroma   w(x, y) (a(x) - a(y))^2, w = (1 + 5 |chromaticity(x) - chromaticity(y)|)^-3
 *
 * Distances count in voxels, intensities from 0 to 1. The light is a set of harmonics at each corner
 * of cubes, trilinear between (setup 9), by linear least squares with fixed distances and albedo.
 * Rounds of visibility, light and joint steps follow each other; after them the voxels may be
 * halved and refined again.
 *
 * All results are equal on every backend, bit for bit, and do not depend on how work is divided. */
#ifndef VXD_GPU_REFINE_REFINE_H
#define VXD_GPU_REFINE_REFINE_H

#include "gpu/volume/volume.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_REFINE_MAX_KEYFRAMES 256
#define VXD_REFINE_MAX_UPSAMPLE 3
#define VXD_REFINE_MAX_STEPS 1000 /* rounds * iterations, of a level */
#define VXD_REFINE_HARMONICS 9

struct vxd_refine;

/* A colour image and how it was taken. */
struct vxd_refine_keyframe {
    struct vxd_volume_camera camera;
    struct vxd_volume_pose T_map_camera;
    const uint8_t
        *colour; /* height x width x 3, rgb8; host memory, borrowed until destroy */
};

enum vxd_refine_solver {
    VXD_REFINE_GAUSS_NEWTON = 0, /* preconditioned conjugate gradients */
    VXD_REFINE_ADAM = 1          /* as the paper, to compare */
};

struct vxd_refine_options {
    double
        band_m; /* voxels with |d| below it, 2 to 16 voxels, below the truncation; 0 = 3 voxels */
    double min_weight; /* voxels of less weight are left alone; 0 = any observed */
    /* Edge of the cubes of light, 2 voxels or more; 0 = one set for all. */
    double subvolume_m;
    double depth_max_m; /* keyframes see no farther; 0 = 1000 */
    /* Weights of the terms, 0 to 1e6. */
    double smooth;
    double init;
    double chroma;
    double light; /* differences of harmonics at neighbouring corners */
    enum vxd_refine_solver solver;
    double learning_rate; /* of Adam: voxels, and albedo, a step; 0 = 0.01 */
    int rounds;           /* 1 to 100: visibility and light are found anew in each */
    int iterations;       /* joint steps a round, 1 to 1000 */
    int cg_iterations;    /* of a Gauss-Newton step, 1 to 1000 */
    int upsample;         /* how often voxels are halved, 0 to VXD_REFINE_MAX_UPSAMPLE */
    bool keep_distances;  /* what is not refined */
    bool keep_albedo;
    bool keep_poses;
    bool refine_intrinsics; /* fx, fy, cx, cy; a lens' distortion is kept */
    size_t max_unknowns;    /* distances and albedo of one level; 0 = 2^31 - 2 */
    /* The result is a new volume (vxd_refine_take_volume), which upsampling needs. */
    bool makes_volume;
    size_t max_bytes; /* of the new volume's blocks; 0 = the context's budget */
};

/* Fills in the values that the daemon's defaults are: 2 rounds of 5 steps of 10 iterations. */
void vxd_refine_options_init(struct vxd_refine_options *out);

/* Energies of one joint step, before it; each is a sum over voxels, times its weight. */
struct vxd_refine_loss {
    int level; /* 0: voxels as they are */
    int round;
    double data;
    double smooth;
    double init;
    double chroma;
    double
        light; /* mean square difference of shading and images' intensity, when it was found */
    bool rejected; /* the step before it made the energy greater, and was taken back */
};

struct vxd_refine_progress {
    double fraction; /* 0 to 1: joint steps done */
    int level;
    size_t n_voxels; /* of the level */
    size_t n_subvolumes;
    size_t n_losses;
    int light_passes; /* of the level's first round: how often the light was solved for */
    bool is_finding_light; /* the next step goes on with that */
};

/* Checks everything and prepares a refinement, without reading voxels. The volume does not change
 * until vxd_refine_apply; its caller gives the same one, unchanged, to every step.
 * errors  INVALID_ARGUMENT     options or cameras outside the ranges above; err.field names it, as
 *                              "keyframes[2].camera.fx"
 *         FAILED_PRECONDITION  the volume is empty
 *         RESOURCE_EXHAUSTED
 * owner   the caller */
enum vxd_status vxd_refine_create(struct vxd_queue *queue,
                                  const struct vxd_volume *volume,
                                  const struct vxd_refine_keyframe *keyframes, size_t n,
                                  const struct vxd_refine_options *options,
                                  struct vxd_refine **out, struct vxd_err *err);

/* Does a slice of the work: about work_ns nanoseconds of one CPU thread, or one operation where that
 * is more. *is_done when nothing is left. Blocking.
 * errors  INVALID_ARGUMENT     a keyframe that sees nothing of the surface ("keyframes[3]"), or a
 *                              voxel set that is empty ("band_m")
 *         RESOURCE_EXHAUSTED   more unknowns than max_unknowns (names both), or no memory
 *         OUT_OF_RANGE         halved voxels are beyond the range of keys
 * After an error the refinement can only be destroyed; the volume is as it was. */
enum vxd_status vxd_refine_step(struct vxd_queue *queue, struct vxd_refine *refine,
                                struct vxd_volume *volume, double work_ns, bool *is_done,
                                struct vxd_err *err);

void vxd_refine_get_progress(const struct vxd_refine *refine,
                             struct vxd_refine_progress *out);

/* n_losses of the progress; borrowed until the next step. */
const struct vxd_refine_loss *vxd_refine_losses(const struct vxd_refine *refine);

/* A keyframe's camera and pose as refined so far. */
void vxd_refine_get_keyframe(const struct vxd_refine *refine, size_t keyframe,
                             struct vxd_volume_camera *camera,
                             struct vxd_volume_pose *T_map_camera);

/* Writes the refined distances into the volume, and the albedo where it has that layer, and raises
 * its version. Of a refinement that is done and makes no volume. Blocking.
 * errors  FAILED_PRECONDITION  it is not done */
enum vxd_status vxd_refine_apply(struct vxd_queue *queue, struct vxd_refine *refine,
                                 struct vxd_volume *volume, struct vxd_err *err);

/* Gives the new volume to the caller; NULL where there is none, or it was taken. */
struct vxd_volume *vxd_refine_take_volume(struct vxd_refine *refine);

/* In queue order; NULL is fine. */
void vxd_refine_destroy(struct vxd_queue *queue, struct vxd_refine *refine);

#ifdef __cplusplus
}
#endif
#endif
