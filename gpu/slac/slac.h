// SPDX-License-Identifier: Apache-2.0
/* Non-rigid alignment of fragments (SLAC; ASH, section 6.3, equation 15): the poses of fragments of
 * a scene, and one control grid in which all of them are embedded, are moved until the fragments lie
 * on each other. The grid stands for what the sensor distorts, so it lies in the fragments' own
 * frames and is the same in all of them:
 *
 *   sum over pairs (p, q) of |T_i C(p) - T_j C(q)|^2
 *     + lambda * sum over u, v in N_u of |(c_v - c_u) - R_u (v - u)|^2
 *
 * C moves a point with the corners of its cell (gpu/deform), c_u is where control point u is moved
 * to, N_u are its neighbours along the axes, and R_u is the rotation that explains best how they
 * moved (as rigid as possible). Distances of pairs may be those to planes instead.
 *
 * Pairs count by 1 / (1 + (r / s)^2)^2 of their distance r (Geman and McClure), where s begins as the
 * largest distance and is halved by each step down to a tenth of it: what does not fit, such as leaves
 * of which one side is seen, counts less and less.
 *
 * One call, vxd_slac_step, is a Gauss-Newton step: pairs are found anew, the rotations too, and the
 * step is solved by conjugate gradients without any matrix but blocks on its diagonal.
 *
 * Everything is equal on every backend and with any number of threads, bit for bit. */
#ifndef VXD_GPU_SLAC_SLAC_H
#define VXD_GPU_SLAC_SLAC_H

#include "gpu/deform/deform.h"
#include "gpu/hash/hash.h"
#include "gpu/volume/volume.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_SLAC_MAX_FRAGMENTS 1024
#define VXD_SLAC_MAX_EDGES ((size_t)1 << 18)
#define VXD_SLAC_MAX_UNKNOWNS ((size_t)3 << 20)
#define VXD_SLAC_MAX_ITERATIONS 100

/* What a pair's distance is.
 * POINT_TO_PLANE  along the mean of both normals: surfaces may slide on each other
 * POINT_TO_POINT  equation 15 as it is printed; needs no normals */
enum vxd_slac_metric {
    VXD_SLAC_POINT_TO_PLANE = 0,
    VXD_SLAC_POINT_TO_POINT = 1
};

/* Zeros are the defaults. */
struct vxd_slac_options {
    bool is_rigid; /* only the poses move: there is no grid */
    enum vxd_slac_metric metric;
    double cell_m;     /* between two control points, 0.01 to 100; 0: 0.375 */
    double lambda;     /* of the regularizer, 1e-9 to 1e9; 0: 0.2 */
    double distance_m; /* pairs are as near at most, 1e-3 to 10; 0: 0.07 */
    double fitness; /* edges with fewer pairs a point do not count, 1e-6 to 1; 0: 0.3 */
    double voxel_m; /* fragments keep a point a voxel of this edge, 1e-3 to 10; 0: 0.05 */
    int solver_steps; /* of conjugate gradients a Gauss-Newton step, 1 to 1000; 0: 60 */
    double
        tolerance; /* they end where the residual has fallen to this, 1e-9 to 1; 0: 1e-3 */
    size_t
        max_unknowns; /* three a control point and six a pose; 0: VXD_SLAC_MAX_UNKNOWNS */
};

/* A fragment: points of a surface. Arrays are device memory, borrowed until create returns. */
struct vxd_slac_fragment {
    const char *name; /* for errors; at most 63 characters are shown */
    const float
        *points; /* n x 3, metres; those not finite or beyond 10 km are left out */
    const float *normals; /* n x 3, unit length; NULL: none, for POINT_TO_POINT only */
    size_t n;
    double origin_m[3]; /* added to the points, within +-1e4 */
    struct vxd_volume_pose T_map_fragment;
};

/* Two fragments that may overlap. Points of `source` look for points of `target`. */
struct vxd_slac_edge {
    int32_t source;
    int32_t target;
};

struct vxd_slac_args {
    const struct vxd_slac_fragment *fragments;
    size_t n_fragments; /* 2 to VXD_SLAC_MAX_FRAGMENTS */
    /* NULL: all pairs of fragments whose boxes overlap */
    const struct vxd_slac_edge *edges;
    size_t n_edges;
    struct vxd_slac_options options;
};

struct vxd_slac;

/* Fills in the defaults.
 * errors  INVALID_ARGUMENT  outside of what each may be; err.field names it */
enum vxd_status vxd_slac_options_init(struct vxd_slac_options *options,
                                      struct vxd_err *err);

/* Thins the fragments out (points in a voxel become their mean, and so their normals; where those are
 * against each other, the first point stays), embeds their points in a
 * new control grid without offsets, and lists what edges there are. Blocking.
 *
 * errors  INVALID_ARGUMENT    fragments, poses, edges or options outside of what they may be; a
 *                             fragment without points; err.field names it as "fragments[3].pose"
 *         FAILED_PRECONDITION no two boxes of fragments overlap
 *         RESOURCE_EXHAUSTED  more unknowns than max_unknowns; no memory (about 400 bytes a point
 *                             that stays, 90 one that came and 100 a pair)
 * owner   the caller */
enum vxd_status vxd_slac_create(struct vxd_queue *queue, const struct vxd_slac_args *args,
                                struct vxd_slac **out, struct vxd_err *err);

/* In queue order; NULL is fine. */
void vxd_slac_destroy(struct vxd_queue *queue, struct vxd_slac *slac);

/* How well the fragments lie on each other. */
struct vxd_slac_loss {
    double data; /* weighted sum of the squares of the pairs' distances, square metres */
    double regularizer; /* lambda times its sum, square metres */
    size_t n_pairs;
    size_t n_edges; /* whose fitness is enough */
};

/* Finds the pairs where the fragments are now, and the loss over them. Blocking.
 *
 * errors  FAILED_PRECONDITION fragments that no edge of enough fitness connects with the first one:
 *                             names them
 *         RESOURCE_EXHAUSTED  no memory
 *         INTERNAL            the loss is no finite number any more */
enum vxd_status vxd_slac_find_pairs(struct vxd_queue *queue, struct vxd_slac *slac,
                                    struct vxd_slac_loss *out, struct vxd_err *err);

/* Moves poses and control points by one Gauss-Newton step over the pairs that were found last. The
 * first fragment stays where it is. Asynchronous.
 *
 * errors  FAILED_PRECONDITION no pairs were found before */
enum vxd_status vxd_slac_solve(struct vxd_queue *queue, struct vxd_slac *slac,
                               struct vxd_err *err);

/* Both. loss: before the step. */
enum vxd_status vxd_slac_step(struct vxd_queue *queue, struct vxd_slac *slac,
                              struct vxd_slac_loss *loss, struct vxd_err *err);

struct vxd_slac_info {
    size_t n_fragments;
    size_t n_points;         /* that stayed */
    size_t n_control_points; /* 0: rigid */
    size_t n_unknowns;
    size_t n_edges; /* that are tried */
    size_t n_bytes; /* device memory that it takes at present */
};

void vxd_slac_get_info(const struct vxd_slac *slac, struct vxd_slac_info *out);

/* Pairs a point of the smaller fragment, of the edge as pairs were found last, 0 to 1.
 * edge below info.n_edges. */
void vxd_slac_get_edge(const struct vxd_slac *slac, size_t edge,
                       struct vxd_slac_edge *out, double *fitness);

/* Reads the poses as they are now, one a fragment. Blocking. */
enum vxd_status vxd_slac_read_poses(struct vxd_queue *queue, const struct vxd_slac *slac,
                                    struct vxd_volume_pose *out, struct vxd_err *err);

/* Arrays of the grid's map. */
enum {
    VXD_SLAC_OFFSETS = 0,   /* float32 x 3, metres */
    VXD_SLAC_ROTATIONS = 1, /* float32 x 4: the quaternion x y z w of R_u */
    VXD_SLAC_N_ARRAYS = 2
};

/* The control grid: int32 x 3 to offset and rotation; borrowed. Its control point u lies at
 * u * cell_m in the fragments' frames. NULL: rigid. */
const struct vxd_hashmap *vxd_slac_grid(const struct vxd_slac *slac);

/* Takes the grid, which the caller destroys; find_pairs and solve must not be called after it. */
struct vxd_hashmap *vxd_slac_take_grid(struct vxd_slac *slac);

/* ---- Deformed volumes ---- */

/* Makes a new volume of the same parameters from one whose map frame is a grid's frame: a voxel gets
 * what the source has where C^-1 takes it: distance trilinear where all eight voxels are known, else
 * the nearest voxel's; weight, colour and labels of the nearest. Blocking.
 *
 * errors  RESOURCE_EXHAUSTED  no memory, or over the spec's max_bytes
 *         INVALID_ARGUMENT    the deformation takes blocks beyond the range of keys
 * owner   the caller */
enum vxd_status vxd_slac_deform_volume(struct vxd_queue *queue,
                                       const struct vxd_volume *volume,
                                       const struct vxd_deform *deform,
                                       struct vxd_volume **out, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
