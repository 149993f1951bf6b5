// SPDX-License-Identifier: Apache-2.0
/* The surface of a volume, as a mesh or as points: marching cubes with shared vertices (ASH,
 * section 6.2.5).
 *
 * A cell is the cube between eight voxel centres, and belongs to the lowest of them. It has a
 * surface where the eight are known and their distances have both signs; a distance of 0 counts
 * as positive. A vertex lies on the edge between two neighbouring voxel centres of different
 * signs, and belongs to the lower one. So every block makes its own vertices alone, cells of
 * neighbouring blocks name them by number, and none has to be merged afterwards. All cases of
 * a face between two cells are cut the same way from both sides (negative corners are kept
 * apart), so the mesh has holes only where voxels are unknown.
 *
 * Blocks come in ascending entry number, the order in which they came into the volume (in Morton
 * order within one image). Results are equal on every backend, bit for bit. */
#ifndef VXD_GPU_SURFACE_SURFACE_H
#define VXD_GPU_SURFACE_SURFACE_H

#include "gpu/volume/volume.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vxd_surface_kind {
    VXD_SURFACE_MESH = 0,
    VXD_SURFACE_POINTS = 1 /* a vertex for each edge whose two voxels are known */
};

struct vxd_surface_args {
    enum vxd_surface_kind kind;
    bool has_box; /* only blocks that the half-open box touches, metres, map frame */
    double low[3];
    double high[3];
    /* Only blocks whose surface may differ from that at this version of the volume: they, or a
     * neighbour that their cells or normals reach, have a later stamp. 0: all */
    uint64_t since;
    double min_weight; /* voxels of less weight are unknown; 0 = any weight above 0 */
    /* Of the volume's observed blocks, ascending by entry: only those from the `first`-th on, at
     * most `limit` (0: all); the box and `since` choose among these. */
    size_t first;
    size_t limit;
    /* Not 0: the listed blocks end earlier, so that a surface of these bytes a vertex, triangle and
     * chosen block is at most max_bytes, or of one chosen block. */
    size_t max_bytes;
    size_t vertex_bytes;
    size_t triangle_bytes;
    size_t block_bytes;
};

struct vxd_surface_counts {
    size_t n_vertices;
    size_t n_triangles; /* 0 of points */
    size_t n_blocks;    /* that were chosen, with or without a surface */
    size_t n_listed;    /* observed blocks of the volume */
    size_t next;        /* the first listed block that was not looked at, or n_listed */
};

/* A surface that was counted and can be written. */
struct vxd_surface;

/* Counts the surface. Until it is destroyed the volume, which is borrowed, must not change.
 * Blocking: counts are read, with max_bytes several times.
 *
 * errors  INVALID_ARGUMENT    a box or weight that is not finite, an unknown kind
 *         RESOURCE_EXHAUSTED  no scratch (about 1 KB a block of 8^3, 4 KB of 16^3), or more
 *                             blocks than 32-bit counts of vertices allow
 * owner   the caller */
enum vxd_status vxd_surface_create(struct vxd_queue *queue, struct vxd_volume *volume,
                                   const struct vxd_surface_args *args,
                                   struct vxd_surface **out, struct vxd_err *err);

void vxd_surface_get_counts(const struct vxd_surface *surface,
                            struct vxd_surface_counts *out);

/* Device memory; each may be NULL. */
struct vxd_surface_outputs {
    float
        *vertices;  /* n_vertices x 3, metres from the volume's origin, axes of the map */
    float *normals; /* n_vertices x 3, unit length, out of the surface */
    uint8_t *colours;   /* n_vertices x 3, r g b; of a volume with colour only */
    bool has_albedo;    /* `colours` are those of the albedo layer instead */
    uint8_t *labels;    /* n_vertices; of a volume with labels only */
    int32_t *triangles; /* n_triangles x 3, counter-clockwise seen from outside */
    /* n_blocks x 4: the key's x y z, and the triangles (of points: vertices) up to the end of
     * the block's own */
    int32_t *blocks;
};

/* Writes the surface. A vertex is where the distance, linear along its edge, is 0, but at least
 * 1/1024 of the edge from either end, so that no triangle has two equal corners. Its normal is
 * the gradient (central differences where both neighbours are known, else one-sided) of the two
 * voxels, linear along the edge; its colour likewise. Its label is that of the nearer voxel, or of
 * the other one where that has none.
 *
 * errors  INVALID_ARGUMENT  colours, albedo or labels of a volume without, triangles of points
 * sync    asynchronous */
enum vxd_status vxd_surface_write(struct vxd_queue *queue,
                                  const struct vxd_surface *surface,
                                  const struct vxd_surface_outputs *outputs,
                                  struct vxd_err *err);

/* In queue order; NULL is fine. */
void vxd_surface_destroy(struct vxd_queue *queue, struct vxd_surface *surface);

#ifdef __cplusplus
}
#endif
#endif
