// SPDX-License-Identifier: Apache-2.0
#include "tests/support/posegraph/graphs.h"

#include <stdlib.h>

#include "gpu/posegraph/posegraph_math.h"

static uint64_t next(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

double graph_normal(uint64_t *state)
{
    double u = ((double)(next(state) >> 11) + 1) * 0x1p-53;
    double v = (double)(next(state) >> 11) * 0x1p-53;

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static void *alloc(size_t n, size_t item_bytes)
{
    void *memory = calloc(n + 1, item_bytes);

    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void add_edge(struct graph_made *out, size_t from, size_t to,
                     struct graph_noise noise, uint64_t *state)
{
    struct vxd_posegraph_edge *edge = &out->edges[out->n_edges++];
    struct vxd_rigid between;
    double x[6];

    *edge = (struct vxd_posegraph_edge){.from = (uint32_t)from, .to = (uint32_t)to};
    for (int i = 0; i < 6; i++) {
        double sigma = i < 3 ? noise.t_m : noise.r_rad;

        x[i] = sigma * graph_normal(state);
        edge->information[7 * i] = sigma > 0 ? 1 / (sigma * sigma) : 1e4;
    }
    vxd_rigid_between(&out->truth[from], &out->truth[to], &between);
    vxd_rigid_move(&between, x, &edge->T_from_to);
}

/* Odometry first, then edges to the pose `back` poses before; a closed graph has its last
 * odometry edge back to the first pose. */
static void link(struct graph_made *out, size_t back, bool closed,
                 struct graph_noise noise)
{
    uint64_t state = noise.seed;

    out->edges = alloc(2 * out->n_nodes + back + 2, sizeof *out->edges);
    out->start = alloc(out->n_nodes, sizeof *out->start);
    out->start[0] = out->truth[0];
    for (size_t i = 0; i + 1 < out->n_nodes; i++) {
        add_edge(out, i, i + 1, noise, &state);
        vxd_rigid_multiply(&out->start[i], &out->edges[i].T_from_to, &out->start[i + 1]);
        vxd_quaternion_normalize(out->start[i + 1].q);
    }
    for (size_t i = back; back > 0 && i < out->n_nodes; i++) {
        add_edge(out, i - back, i, noise, &state);
    }
    for (size_t i = 0; closed && i < (back > 0 ? back : 1); i++) {
        add_edge(out, out->n_nodes - (back > 0 ? back : 1) + i, i, noise, &state);
    }
}

/* Turns about z, then about y. */
static void turn(double z, double y, double q[4])
{
    double about_z[4] = {0, 0, sin(z / 2), cos(z / 2)};
    double about_y[4] = {0, sin(y / 2), 0, cos(y / 2)};

    vxd_quaternion_multiply(about_z, about_y, q);
}

void graph_make_sphere(size_t n_rings, size_t n_per_ring, struct graph_noise noise,
                       struct graph_made *out)
{
    const double radius[3] = {50, 0, 0};

    *out = (struct graph_made){.n_nodes = n_rings * n_per_ring};
    out->truth = alloc(out->n_nodes, sizeof *out->truth);
    for (size_t i = 0; i < out->n_nodes; i++) {
        double z = 6.283185307179586 * (double)i / (double)n_per_ring;
        double y = 3.141592653589793 * ((double)i / (double)out->n_nodes - 0.5);

        turn(z, y, out->truth[i].q);
        vxd_quaternion_rotate(out->truth[i].q, radius, out->truth[i].t_m);
    }
    link(out, n_per_ring, false, noise);
}

void graph_make_torus(size_t n_rings, size_t n_per_ring, struct graph_noise noise,
                      struct graph_made *out)
{
    *out = (struct graph_made){.n_nodes = n_rings * n_per_ring};
    out->truth = alloc(out->n_nodes, sizeof *out->truth);
    for (size_t i = 0; i < out->n_nodes; i++) {
        double y = 6.283185307179586 * (double)i / (double)n_per_ring;
        double z = 6.283185307179586 * (double)i / (double)out->n_nodes;
        double distance = 40 + 15 * cos(y);

        turn(z, y, out->truth[i].q);
        out->truth[i].t_m[0] = distance * cos(z);
        out->truth[i].t_m[1] = distance * sin(z);
        out->truth[i].t_m[2] = -15 * sin(y);
    }
    link(out, n_per_ring, true, noise);
}

void graph_make_ring(size_t n, double radius_m, struct graph_noise noise,
                     struct graph_made *out)
{
    *out = (struct graph_made){.n_nodes = n};
    out->truth = alloc(n, sizeof *out->truth);
    for (size_t i = 0; i < n; i++) {
        double z = 6.283185307179586 * (double)i / (double)n;

        turn(z + 1.5707963267948966, 0, out->truth[i].q);
        out->truth[i].t_m[0] = radius_m * cos(z);
        out->truth[i].t_m[1] = radius_m * sin(z);
    }
    link(out, 0, true, noise);
}

void graph_free(struct graph_made *graph)
{
    free(graph->edges);
    free(graph->start);
    free(graph->truth);
}

struct vxd_posegraph graph_of(const struct graph_made *made)
{
    return (struct vxd_posegraph){.n_nodes = made->n_nodes,
                                  .T_map_node = made->start,
                                  .n_edges = made->n_edges,
                                  .edges = made->edges};
}

double graph_error(const struct graph_made *made, const struct vxd_rigid *poses)
{
    double sum = 0;

    for (size_t i = 0; i < made->n_nodes; i++) {
        struct vxd_rigid a;
        struct vxd_rigid b;

        vxd_rigid_between(&made->truth[0], &made->truth[i], &a);
        vxd_rigid_between(&poses[0], &poses[i], &b);
        for (int c = 0; c < 3; c++) {
            sum += (a.t_m[c] - b.t_m[c]) * (a.t_m[c] - b.t_m[c]);
        }
    }
    return sqrt(sum / (double)made->n_nodes);
}

bool graph_write(const struct graph_made *made, const char *path)
{
    FILE *file = fopen(path, "w");

    if (file == NULL) {
        return false;
    }
    for (size_t i = 0; i < made->n_nodes; i++) {
        const struct vxd_rigid *p = &made->start[i];

        (void)fprintf(
            file, "VERTEX_SE3:QUAT %zu %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", i,
            p->t_m[0], p->t_m[1], p->t_m[2], p->q[0], p->q[1], p->q[2], p->q[3]);
    }
    for (size_t i = 0; i < made->n_edges; i++) {
        const struct vxd_posegraph_edge *edge = &made->edges[i];
        const struct vxd_rigid *p = &edge->T_from_to;

        (void)fprintf(file,
                      "EDGE_SE3:QUAT %u %u %.17g %.17g %.17g %.17g %.17g %.17g %.17g",
                      edge->from, edge->to, p->t_m[0], p->t_m[1], p->t_m[2], p->q[0],
                      p->q[1], p->q[2], p->q[3]);
        for (int r = 0; r < 6; r++) {
            for (int c = r; c < 6; c++) {
                (void)fprintf(file, " %.17g", edge->information[6 * r + c]);
            }
        }
        (void)fprintf(file, "\n");
    }
    return fclose(file) == 0;
}
