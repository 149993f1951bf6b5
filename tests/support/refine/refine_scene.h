// SPDX-License-Identifier: Apache-2.0
/* A ball with a relief of 1 mm and painted patches under a known light, for tests and benchmarks of
 * refinement. Images show the relief; depth images that of the ball without it, as a depth
 * camera that is too coarse for it. */
#ifndef VXD_TESTS_SUPPORT_REFINE_REFINE_SCENE_H
#define VXD_TESTS_SUPPORT_REFINE_REFINE_SCENE_H

#include "gpu/refine/refine.h"

struct refine_scene {
    double radius_m;
    double relief_m;     /* from the lowest to the highest point */
    double wavelength_m; /* of the relief */
    int n_keyframes;
    int width;
    int height;
    bool has_lamps; /* two near lamps; else one set of harmonics for all */
    bool is_plain;  /* one albedo */
};

/* Keyframes around the ball; *take_images are theirs, to be freed. */
void refine_scene_shoot(const struct refine_scene *scene,
                        struct vxd_refine_keyframe *keyframes, uint8_t **take_images);

/* Integrates depth images of the ball without relief. Blocking. */
enum vxd_status refine_scene_integrate(const struct refine_scene *scene,
                                       struct vxd_queue *queue, struct vxd_volume *volume,
                                       struct vxd_err *err);

struct refine_score {
    size_t n_vertices;
    double normal_deg;  /* mean angle to the true normals */
    double surface_mm;  /* root of the mean square distance to the true surface */
    double correlation; /* of the albedo's brightness; 0 without albedo */
};

/* Compares the volume's surface with the scene. Blocking. */
enum vxd_status refine_scene_score(const struct refine_scene *scene,
                                   struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct refine_score *out, struct vxd_err *err);

#endif
