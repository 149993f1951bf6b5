// SPDX-License-Identifier: Apache-2.0
/* Exact Euclidean distance fields of scenes and volumes, and what planners ask of them.
 *
 * A field covers a box of voxels of a scene, densely. A voxel is an obstacle or it is not. For
 * each voxel the field holds the squared distance, in voxels, from its centre to the centre of
 * the nearest voxel of the other kind: positive for voxels that are no obstacle, negative for
 * obstacles. Of several nearest voxels the one with the least x counts, then y, then z. Farther
 * than max_distance there is none. What lies outside the box is neither kind: a box that exceeds
 * the region of interest by max_distance on every side gives the region's exact distances.
 *
 * A field follows a scene: an update to any root, of any store, computes again only what changed
 * blocks of 8^3 voxels can have changed, and the result is the field made from scratch, bit for
 * bit. Equal on every backend, bit for bit, queries included.
 *
 * Memory: 6 bytes a voxel and 2 bits, or 3 with IGNORED. As in gpu/svdag/query/query.h, calls
 * are asynchronous and arrays are device memory. One thread at a time updates a field while
 * nobody reads it; any number of queries run at once between updates.
 *
 * source  Meijster et al., A general algorithm for computing distance transforms in linear time
 *         (2000); Felzenszwalb and Huttenlocher (2012): separable passes */
#ifndef VXD_GPU_FIELD_FIELD_H
#define VXD_GPU_FIELD_FIELD_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Corners of a field's box are multiples of this. */
#define VXD_FIELD_BLOCK 8
#define VXD_FIELD_MAX_DISTANCE 127
#define VXD_FIELD_MAX_VOXELS ((int64_t)1 << 30)

/* What voxels are whose state is unknown: those that are not set, in a scene that tracks free
 * space, and those outside the scene then. In other scenes voxels that are not set are free.
 * FREE      no obstacles
 * OCCUPIED  obstacles
 * IGNORED   no obstacles, and distances there are NaN */
enum vxd_field_unknown {
    VXD_FIELD_UNKNOWN_FREE = 0,
    VXD_FIELD_UNKNOWN_OCCUPIED = 1,
    VXD_FIELD_UNKNOWN_IGNORED = 2
};

struct vxd_field_spec {
    int32_t low[3], high[3]; /* voxels of the scene, half-open; may lie outside of it */
    int max_distance;        /* voxels, 1 .. VXD_FIELD_MAX_DISTANCE */
    enum vxd_field_unknown unknown;
    double voxel_size_m; /* > 0 and finite: distances are given in metres */
};

struct vxd_field;

/* Device memory of such a field, 0 for a spec that vxd_field_create refuses. */
size_t vxd_field_bytes(const struct vxd_context *context,
                       const struct vxd_field_spec *spec);

/* Allocates a field without contents.
 * errors  INVALID_ARGUMENT    err.field "low", "high", "max_distance", "unknown",
 *                             "voxel_size_m"
 *         RESOURCE_EXHAUSTED  over the context's budget
 * owner   the caller */
enum vxd_status vxd_field_create(struct vxd_queue *queue,
                                 const struct vxd_field_spec *spec,
                                 struct vxd_field **out, struct vxd_err *err);
void vxd_field_destroy(struct vxd_queue *queue, struct vxd_field *field);

const struct vxd_field_spec *vxd_field_get_spec(const struct vxd_field *field);

/* An update is done in parts, all of them in order, with other work between if need be: each is
 * bounded (about a million voxels on a CPU). */
size_t vxd_field_n_parts(const struct vxd_field *field);

/* Does parts first .. first + n - 1 of the update to a root; all parts of one update are given
 * the same. When the last one has run the field is that of the root. An update that begins again
 * at part 0, after one that was left, computes everything.
 * errors  INVALID_ARGUMENT  not the parts that come next
 * sync    asynchronous; after an error of the wait the contents are undefined, and
 *         vxd_field_forget makes the next update compute everything */
enum vxd_status vxd_field_update(struct vxd_queue *queue, struct vxd_field *field,
                                 const struct vxd_svdag *svdag, uint32_t root,
                                 size_t first, size_t n, struct vxd_err *err);
void vxd_field_forget(struct vxd_field *field);

/* A box of a field as dense arrays, row-major, x slowest; any of them may be NULL.
 * in      low, high  in the field's box
 * out     distances  float32, metres, signed; +-max_distance where nothing is as near; NaN
 *                    where unknown voxels are IGNORED
 *         squares    int32, signed squared distances in voxels; 0: nothing is as near
 *         nearest    n x 3 int32, that voxel of the scene; INT32_MIN where there is none
 * errors  INVALID_ARGUMENT  a box that is not inside the field's */
struct vxd_field_arrays {
    float *distances;
    int32_t *squares;
    int32_t *nearest;
};
enum vxd_status vxd_field_read(struct vxd_queue *queue, const struct vxd_field *field,
                               const int32_t low[3], const int32_t high[3],
                               const struct vxd_field_arrays *out, struct vxd_err *err);

/* How a distance at a point is found.
 * NEAREST    that of the voxel which holds the point, from centre to centre
 * TRILINEAR  interpolated between the eight centres around the point
 * SURFACE    from the point itself to the nearest cube of the other kind, exactly: the distance
 *            to the surface of the obstacles, at most max_distance - 2 voxels (0 at least) */
enum vxd_field_mode {
    VXD_FIELD_NEAREST = 0,
    VXD_FIELD_TRILINEAR = 1,
    VXD_FIELD_SURFACE = 2
};

/* Distances at points.
 *
 * in      points     n x 3 float64, in voxels from the scene's low corner: voxel x covers
 *                    [x, x + 1)
 * out     distances  n float32, metres, signed; +-max_distance where nothing is as near; NaN for
 *                    points outside the box (TRILINEAR: with a centre beside them outside), not
 *                    finite, or unknown where that is IGNORED
 *         gradients  n x 3 float32 of unit length, pointing out of the obstacle; 0 where nothing
 *                    is near or the direction is undefined, NaN where the distance is; may be
 *                    NULL
 *         nearest    n x 3 int32, the voxel of the scene that is nearest, by the field's rule to
 *                    the voxel that holds the point, for SURFACE the nearest cube (of equal ones
 *                    the least x, y, z); INT32_MIN where there is none; may be NULL */
enum vxd_status vxd_field_query(struct vxd_queue *queue, const struct vxd_field *field,
                                const double *points, size_t n, enum vxd_field_mode mode,
                                float *distances, float *gradients, int32_t *nearest,
                                struct vxd_err *err);

enum vxd_field_shape_kind {
    VXD_FIELD_SPHERE = 0,
    VXD_FIELD_BOX = 1,
    VXD_FIELD_CAPSULE = 2
};

/* A shape, in voxels from the scene's low corner.
 * SPHERE   centre a, radius r
 * BOX      centre a, half sides b along its own axes, rotated by the unit quaternion q (x y z w)
 * CAPSULE  from a to b, radius r */
struct vxd_field_shape {
    int32_t kind; /* enum vxd_field_shape_kind */
    double a[3];
    double b[3];
    double q[4];
    double r;
};

/* Whether shapes touch the cube of an obstacle; touching is contact. Obstacles are those in the
 * field's box.
 * out     hits       n uint8, 0 or 1
 *         clearance  n float32, metres: of spheres the distance between surfaces, negative in
 *                    contact, at most max_distance - 2 voxels - r; NaN for other shapes; may be
 *                    NULL
 * cost    of boxes and capsules: the words of bits in their bounds, where an obstacle may be
 *         that near */
enum vxd_status vxd_field_collide(struct vxd_queue *queue, const struct vxd_field *field,
                                  const struct vxd_field_shape *shapes, size_t n,
                                  uint8_t *hits, float *clearance, struct vxd_err *err);

/* A robot of spheres along trajectories.
 * in      spheres  n_spheres x 4 float64: centre in the robot's frame and radius, voxels;
 *                  radii at most max_distance - 2
 *         poses    n_trajectories x n_steps x 7 float64: position in voxels from the scene's
 *                  low corner, unit quaternion x y z w
 * out     first      n_trajectories int32, the first step in contact, -1 where there is none
 *         clearance  n_trajectories float32, metres, the least of all steps and spheres;
 *                    may be NULL
 * errors  RESOURCE_EXHAUSTED  no memory for scratch, on a GPU */
struct vxd_field_trajectories {
    const double *spheres;
    const double *poses;
    size_t n_spheres;
    size_t n_steps;
    size_t n_trajectories;
};
enum vxd_status vxd_field_follow(struct vxd_queue *queue, const struct vxd_field *field,
                                 const struct vxd_field_trajectories *in, int32_t *first,
                                 float *clearance, struct vxd_err *err);

/* ---- Fields of volumes (gpu/volume/volume.h) ----
 *
 * In voxels of the volume: voxel (x, y, z) covers [x, x + 1) from the volume's origin. A voxel is an
 * obstacle where its distance is negative, and unknown where it was never observed or weighs too
 * little. */

struct vxd_volume;

/* As vxd_field_update, to a volume as it is. All parts of one update are given the same volume,
 * unchanged, and the same weight; the next update may have another.
 * in      min_weight  voxels of less weight are unknown; 0 = any weight above 0
 * order   equal on every backend, bit for bit */
enum vxd_status vxd_field_update_volume(struct vxd_queue *queue, struct vxd_field *field,
                                        const struct vxd_volume *volume,
                                        double min_weight, size_t first, size_t n,
                                        struct vxd_err *err);

/* Distances to the surface of the volume that the field was updated to: where the distances of
 * neighbouring voxels of different signs cross 0, each crossing standing for a disc of a voxel's
 * radius across the gradient there. Of all crossings those are looked at that the voxel of the
 * other kind has which is nearest, by centres, to the voxel that holds the point.
 *
 * in      points     n x 3 float64, in voxels from the volume's origin
 * out     distances  n float32, metres, negative behind the surface; at most max_distance - 2
 *                    voxels; NaN outside the field's box, and where unknown voxels are IGNORED
 *         gradients  n x 3 float32 of unit length, away from the surface's back; 0 where nothing is
 *                    near, NaN where the distance is; may be NULL
 * errors  INVALID_ARGUMENT  missing arrays
 * order   equal on every backend, bit for bit
 * sync    asynchronous; arrays are device memory */
enum vxd_status vxd_field_query_volume(struct vxd_queue *queue,
                                       const struct vxd_field *field,
                                       const struct vxd_volume *volume, double min_weight,
                                       const double *points, size_t n, float *distances,
                                       float *gradients, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
