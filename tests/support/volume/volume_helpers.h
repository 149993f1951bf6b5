// SPDX-License-Identifier: Apache-2.0
/* What tests of volumes share: a scene of a ball before a wall that is rendered exactly, a volume
 * in host memory, and integration again in double, as simply as possible. */
#ifndef VXD_TESTS_SUPPORT_VOLUME_VOLUME_HELPERS_H
#define VXD_TESTS_SUPPORT_VOLUME_VOLUME_HELPERS_H

#include "gpu/volume/volume.h"
#include "tests/support/gpu/gpu_helpers.h"

#define VOLUME_MAX_FRAMES 8

/* A ball of radius 0.3 m around (0, 0, 1.2), and a wall in the plane z = 1.8, in the map frame. */
#define VOLUME_BALL_Z 1.2
#define VOLUME_BALL_RADIUS 0.3
#define VOLUME_WALL_Z 1.8

/* A frame in host memory: what the engine gets, with device copies of its arrays. */
struct volume_shot {
    struct vxd_volume_frame frame; /* arrays are device memory */
    void *depth;                   /* the same arrays on the host */
    uint8_t *colour;               /* NULL: none */
    struct vxd_buffer d_depth;
    struct vxd_buffer d_colour;
};

struct vxd_volume_camera volume_camera(int width, int height);

/* Pose `i` of a small arc before the scene, looking at the ball. */
struct vxd_volume_pose volume_pose(int i);

/* z of the surface along the ray through normalized coordinates (x, y); 0 where there is none. */
double volume_scene_depth(const struct vxd_volume_pose *pose, double x, double y);

/* How far a point of the map frame is from the scene's surface. */
double volume_scene_distance(const double p[3]);

/* Undistorts pixel (u, v) of a camera in double, by many small steps. */
void volume_ray(const struct vxd_volume_camera *camera, double u, double v, double *x,
                double *y);

/* Renders the scene; depth as uint16 millimetres or float32 metres. */
void volume_shoot(struct gpu_env *env, const struct vxd_volume_camera *camera,
                  const struct vxd_volume_pose *pose, enum vxd_dtype dtype,
                  bool has_colour, struct volume_shot *out);
void volume_shot_free(struct gpu_env *env, struct volume_shot *shot);

/* A volume's blocks in host memory, ascending by entry. Distances and weights are float32 in
 * either form. */
struct volume_host {
    struct vxd_volume_info info;
    size_t n;
    int32_t *entries;
    int32_t *keys;
    uint64_t *stamps;
    float *distances;
    float *weights;
    uint16_t *colours; /* NULL: none */
    uint64_t *labels;  /* votes; NULL: none */
};

void volume_read(struct gpu_env *env, struct vxd_volume *volume, struct volume_host *out);
void volume_host_free(struct volume_host *host);
uint64_t volume_digest(const struct volume_host *host);

/* The segments, in blocks, along which a shot's rays touch blocks: two ends of three numbers a
 * pixel, NaN where there is no depth. malloc'ed. */
double *volume_segments(const struct vxd_volume_spec *spec,
                        const struct volume_shot *shot);

/* Whether any of n segments meets a block: 1, 0, or -1 where 1e-4 of its edge decides. */
int volume_meets(const double *segments, size_t n, const int32_t key[3]);

/* The value of one voxel of a block after those shots whose bit is set in `touching`, in double.
 * is_tie is set where a projection is so near to the border of two pixels, or a distance to a
 * bound, that float32 may decide otherwise. */
struct volume_voxel {
    double distance;
    double weight;
    double colour[3]; /* 0 to 255 */
    double colour_weight;
    bool is_tie;
};
void volume_oracle(const struct vxd_volume_spec *spec, const struct volume_shot *shots,
                   unsigned touching, const int32_t key[3], int index,
                   struct volume_voxel *out);

#endif
