// SPDX-License-Identifier: Apache-2.0
/* Pose graphs with known true poses: spheres and tori as in the literature. Needs the engine alone. */
#ifndef VXD_TESTS_SUPPORT_POSEGRAPH_GRAPHS_H
#define VXD_TESTS_SUPPORT_POSEGRAPH_GRAPHS_H

#include "gpu/posegraph/posegraph.h"

struct graph_made {
    size_t n_nodes;
    struct vxd_rigid *truth;
    struct vxd_rigid *start; /* odometry, one measurement after the other */
    size_t n_edges;
    struct vxd_posegraph_edge *edges;
};

struct graph_noise {
    double t_m;   /* standard deviation of each component */
    double r_rad; /* likewise */
    uint64_t seed;
};

/* n_rings times n_per_ring poses on a spiral around a sphere, linked with the next one and with the
 * one a ring before; as sphere2500 (50 and 50), radius 50 m. */
void graph_make_sphere(size_t n_rings, size_t n_per_ring, struct graph_noise noise,
                       struct graph_made *out);
/* Likewise around a torus of radii 40 and 15 m, whose last ring meets the first one; as torus3D. */
void graph_make_torus(size_t n_rings, size_t n_per_ring, struct graph_noise noise,
                      struct graph_made *out);
/* Poses in the plane around a circle of a radius, the last one linked with the first. */
void graph_make_ring(size_t n, double radius_m, struct graph_noise noise,
                     struct graph_made *out);
void graph_free(struct graph_made *graph);

/* The graph for the solver, borrowed from *made; its search begins at `start`. */
struct vxd_posegraph graph_of(const struct graph_made *made);

/* A normally distributed number. */
double graph_normal(uint64_t *state);

/* Root mean square distance of positions to the true ones, with the first poses put on each other. */
double graph_error(const struct graph_made *made, const struct vxd_rigid *poses);

/* Writes the graph in g2o's format. False where the file cannot be written. */
bool graph_write(const struct graph_made *made, const char *path);

#endif
