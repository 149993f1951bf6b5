// SPDX-License-Identifier: Apache-2.0
/* Pose graphs: poses in SE(3), relative poses measured between them, and the poses that fit all of
 * the measurements best.
 *
 *   minimize  sum over edges  rho(e^T information e),  e = Log(Z^-1 T_from^-1 T_to)
 *           + sum over priors rho(e^T information e),  e = Log(Z^-1 T)
 *
 * Log is that of SE(3). Vectors of six are (translation, rotation): metres and radians, in the
 * frame of the pose that they move (T Exp(x)). Information matrices are in the same order, as in
 * g2o files; they weigh rotation vectors, as GTSAM's do.
 *
 * Levenberg and Marquardt's method with a sparse Cholesky factorization of 6 x 6 blocks, on the
 * CPU's pool. The same graph gives the same bits, whatever the number of threads.
 *
 * source  Dellaert and Kaess, Factor Graphs for Robot Perception (2017); Carlone et al.,
 *         Initialization techniques for 3D SLAM (2015), section IV; Agarwal et al., Robust map
 *         optimization using dynamic covariance scaling (2013) */
#ifndef VXD_GPU_POSEGRAPH_POSEGRAPH_H
#define VXD_GPU_POSEGRAPH_POSEGRAPH_H

#include "gpu/core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VXD_POSEGRAPH_MAX_NODES = 1 << 20,
    VXD_POSEGRAPH_MAX_EDGES = 1 << 22,
    VXD_POSEGRAPH_MAX_ITERATIONS = 1000
};

/* A rigid motion: x_to = R(q) x_from + t. */
struct vxd_rigid {
    double t_m[3];
    double q[4]; /* x, y, z, w; unit length */
};

/* What a residual r with s = r^T information r costs. */
enum vxd_posegraph_robust {
    VXD_POSEGRAPH_SQUARES = 0, /* s */
    VXD_POSEGRAPH_HUBER = 1,   /* s up to width^2, then linear in its root */
    VXD_POSEGRAPH_CAUCHY = 2,  /* width^2 log(1 + s / width^2) */
    VXD_POSEGRAPH_DCS = 3 /* dynamic covariance scaling with Phi = width^2: bounded */
};

struct vxd_posegraph_edge {
    uint32_t from; /* nodes, by index */
    uint32_t to;
    struct vxd_rigid T_from_to;
    double information[36]; /* symmetric, positive definite */
    enum vxd_posegraph_robust robust;
    double width; /* > 0 where robust is not SQUARES: in standard deviations */
};

/* What is known of one pose. Its information may be semidefinite: a position alone has zeros for
 * the rotation. */
struct vxd_posegraph_prior {
    uint32_t node;
    struct vxd_rigid T_map_node;
    double information[36];
    enum vxd_posegraph_robust robust;
    double width;
};

/* A graph; all arrays are borrowed until the solver is made. */
struct vxd_posegraph {
    size_t n_nodes;
    const struct vxd_rigid *T_map_node; /* where the search begins */
    const uint64_t *ids;                /* of nodes, for errors; NULL: their indexes */
    const bool *fixed;                  /* poses that are not moved; NULL: none */
    size_t n_edges;
    const struct vxd_posegraph_edge *edges;
    size_t n_priors;
    const struct vxd_posegraph_prior *priors;
};

/* Where the search begins. */
enum vxd_posegraph_start {
    VXD_POSEGRAPH_KEEP = 0, /* at the poses of the graph */
    VXD_POSEGRAPH_CHORDAL =
        1 /* at the solution of the relaxed problem (rotations as free 3 x 3
                               * matrices, then positions), which needs no good poses, unless the
                               * graph's cost less */
};

struct vxd_posegraph_options {
    enum vxd_posegraph_start start;
    int max_iterations;        /* 1 to VXD_POSEGRAPH_MAX_ITERATIONS; 0 = 100 */
    double relative_tolerance; /* it ends when the cost falls by less; 0 = 1e-5 */
    size_t max_bytes;          /* of host memory; 0 = no limit */
};

struct vxd_posegraph_stats {
    int n_iterations;    /* steps tried, with those that were rejected */
    bool converged;      /* else max_iterations ended it */
    double initial_cost; /* at the graph's own poses */
    double cost;         /* at the present ones */
    size_t n_outliers;   /* edges whose robust weight is below 0.5 */
    size_t n_free;       /* poses that are moved */
    size_t n_bytes;      /* that the solver takes */
};

struct vxd_posegraph_solver;

/* Checks a graph and prepares its solution. Where no pose is fixed and no prior is definite, the
 * first node of what hangs together is held where it is, since measurements are relative.
 *
 * in      pool     borrowed until the solver is destroyed
 * errors  INVALID_ARGUMENT     names the node, edge or prior: not finite; no unit quaternion; an
 *                              edge from a node to itself or to none; information that is not
 *                              symmetric, or singular
 *         FAILED_PRECONDITION  the graph is not connected; names a node that the first one does
 *                              not reach
 *         RESOURCE_EXHAUSTED   more than max_bytes, or no memory */
enum vxd_status vxd_posegraph_solver_create(struct vxd_pool *pool,
                                            const struct vxd_posegraph *graph,
                                            const struct vxd_posegraph_options *options,
                                            struct vxd_posegraph_solver **out,
                                            struct vxd_err *err);
/* NULL is fine. */
void vxd_posegraph_solver_destroy(struct vxd_posegraph_solver *solver);

/* One stage: the start, or one step. A step that would raise the cost is taken back, and the next
 * one is shorter.
 * out     done  nothing more is to be done
 * errors  FAILED_PRECONDITION  the equations are singular; names a node
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_posegraph_solver_step(struct vxd_posegraph_solver *solver, bool *done,
                                          struct vxd_err *err);

/* The present poses: n_nodes, borrowed. */
const struct vxd_rigid *
vxd_posegraph_solver_poses(const struct vxd_posegraph_solver *solver);

/* The statistics without n_outliers, which takes a look at every edge. */
void vxd_posegraph_solver_get_progress(const struct vxd_posegraph_solver *solver,
                                       struct vxd_posegraph_stats *out);

void vxd_posegraph_solver_get_stats(const struct vxd_posegraph_solver *solver,
                                    struct vxd_posegraph_stats *out);

/* Each edge's e^T information e and robust weight at the present poses; n_edges each. Either may
 * be NULL. */
void vxd_posegraph_solver_get_edges(const struct vxd_posegraph_solver *solver,
                                    double *squares, double *weights);

/* Covariances of poses, in the poses' own frames, against what is held or known: the inverse of the
 * information at the present poses. Zero for poses that are held.
 * in      nodes  n of them
 * out     covariance  n x 36, rows first
 * errors  INVALID_ARGUMENT     no such node
 *         FAILED_PRECONDITION  the information is singular
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_posegraph_solver_covariance(struct vxd_posegraph_solver *solver,
                                                const uint32_t *nodes, size_t n,
                                                double *covariance, struct vxd_err *err);

/* a b, and the inverse of a; out may be either. */
void vxd_rigid_compose(const struct vxd_rigid *a, const struct vxd_rigid *b,
                       struct vxd_rigid *out);
void vxd_rigid_inverse(const struct vxd_rigid *a, struct vxd_rigid *out);

/* An edge's e^T information e between two poses, and its robust weight there. */
double vxd_posegraph_edge_square(const struct vxd_posegraph_edge *edge,
                                 const struct vxd_rigid *T_map_from,
                                 const struct vxd_rigid *T_map_to, double *weight);

/* Whether a matrix may be an edge's information. What is wrong with it, NULL = nothing. */
const char *vxd_posegraph_check_information(const double information[36], bool definite);

#ifdef __cplusplus
}
#endif
#endif
