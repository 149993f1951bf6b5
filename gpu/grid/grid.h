// SPDX-License-Identifier: Apache-2.0
/* Maps that a robot plans with, from a scene's root: what stands in each column of a height
 * band, costs around it, heights of the ground, and frontiers of what is known.
 *
 * A grid has a cell for each column of voxels of a box, row-major from the low corner with x
 * fastest: cell (x, y) is y * n_x + x. The box is in voxel indices and may reach beyond the
 * scene; there everything is unknown. Large grids are made in parts: every operation takes a
 * range of rows, and what a range needs of other rows is said.
 *
 * All operations but those of clusters are asynchronous on device memory, any number at once,
 * beside edits; results are equal on every backend, bit for bit. The root is of the store, or
 * EMPTY or uniform.
 * errors  INVALID_ARGUMENT  an array is missing, or what is said there */
#ifndef VXD_GPU_GRID_GRID_H
#define VXD_GPU_GRID_GRID_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Cells of a side, and of a grid. */
#define VXD_GRID_MAX_SIDE 65536
#define VXD_GRID_MAX_CELLS ((int64_t)1 << 26)
/* Cells between an obstacle and the farthest cell that it costs. */
#define VXD_GRID_MAX_RADIUS 180

/* Columns low[0] .. high[0] - 1 by low[1] .. high[1] - 1 of the band low[2] .. high[2] - 1. */
struct vxd_grid_box {
    int64_t low[3], high[3];
};

/* errors  INVALID_ARGUMENT  a side that is empty or above VXD_GRID_MAX_SIDE, more than
 *                           VXD_GRID_MAX_CELLS; err.field "low" or "high" */
enum vxd_status vxd_grid_check_box(const struct vxd_grid_box *box, struct vxd_err *err);

/* Rows begin .. end - 1 of a grid, counted from its low y. */
struct vxd_grid_rows {
    uint32_t begin, end;
};

/* --- what stands in a column ------------------------------------------------------------ */

/* The state of each column: OCCUPIED where a voxel of the band is, else FREE where one is, else
 * UNKNOWN (octomap_server's projected map). Where the scene does not track free space, no column
 * is FREE.
 * out  states  the whole grid, n_y x n_x uint8, of enum vxd_svdag_state; written: `rows` */
enum vxd_status vxd_grid_states(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                uint32_t root, const struct vxd_grid_box *box,
                                const struct vxd_grid_rows *rows, uint8_t *states,
                                struct vxd_err *err);

/* Heights of the occupied voxels of each column: centres, metres, z_m = origin_m +
 * (z + 0.5) * voxel_m in double, then float32; the mean is of the indices first. NaN (0x7fc00000)
 * where there is none.
 * out  low, high, mean  n_y x n_x float32 each
 *      top              n_y x n_x int32: index of the highest, INT32_MIN where there is none */
struct vxd_grid_heights {
    double origin_m; /* of the scene's low corner */
    double voxel_m;
    float *low;
    float *high;
    float *mean;
    int32_t *top;
};
enum vxd_status vxd_grid_heights(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                 uint32_t root, const struct vxd_grid_box *box,
                                 const struct vxd_grid_rows *rows,
                                 const struct vxd_grid_heights *heights,
                                 struct vxd_err *err);

/* The slope of the highest voxels: length of the gradient, metres a metre. Along an axis it is
 * the difference of both neighbours over two cells, or to the one that is there over one; NaN
 * where the cell has no height, or no neighbour on an axis.
 * in   top    of all rows from rows.begin - 1 to rows.end
 * out  slope  n_y x n_x float32; written: `rows` */
enum vxd_status vxd_grid_slope(struct vxd_queue *queue, const int32_t *top, uint32_t n_x,
                               uint32_t n_y, const struct vxd_grid_rows *rows,
                               float *slope, struct vxd_err *err);

/* --- costs (nav2_costmap_2d's values and its inflation layer) --------------------------- */

enum {
    VXD_COST_FREE = 0,
    VXD_COST_INSCRIBED = 253,
    VXD_COST_LETHAL = 254,
    VXD_COST_UNKNOWN = 255
};

/* What an unknown column is. */
enum vxd_grid_unknown {
    VXD_GRID_UNKNOWN_KEPT = 0,  /* 255, or 253 within the robot's radius of an obstacle */
    VXD_GRID_UNKNOWN_FREE = 1,  /* as a free one */
    VXD_GRID_UNKNOWN_LETHAL = 2 /* an obstacle, with costs around it */
};

struct vxd_grid_inflation {
    double cell_m;      /* edge of a cell, > 0 */
    double inscribed_m; /* the robot's radius, >= 0 */
    double inflation_m; /* >= inscribed_m; at most VXD_GRID_MAX_RADIUS cells */
    double scale;       /* k of 252 * exp(-k (d - inscribed)), 1 / m, >= 0 */
};

/* The table of costs by the square of the distance in cells, of radius^2 + 1 entries: 254 at 0,
 * 253 up to the robot's radius, then nav2's unsigned char of 252 * exp(...), which rounds down.
 * Costs reach as far as nav2's: radius = inflation_m / cell_m cells, rounded up.
 * out     radius  cells
 *         costs   VXD_GRID_COST_ENTRIES entries
 * errors  INVALID_ARGUMENT  a number not finite or outside the ranges above; err.field names it
 * sync    computes at once, on the host */
#define VXD_GRID_COST_ENTRIES (VXD_GRID_MAX_RADIUS * VXD_GRID_MAX_RADIUS + 1)
enum vxd_status vxd_grid_cost_table(const struct vxd_grid_inflation *inflation,
                                    uint32_t *radius, uint8_t *costs,
                                    struct vxd_err *err);

/* Squares of the distances, in cells, to the nearest obstacle of the same row: 0 at one, at most
 * (radius + 1)^2.
 * in   states   of `rows`
 * out  squares  n_y x n_x uint16; written: `rows` */
enum vxd_status vxd_grid_row_squares(struct vxd_queue *queue, const uint8_t *states,
                                     uint32_t n_x, uint32_t n_y,
                                     const struct vxd_grid_rows *rows, uint32_t radius,
                                     enum vxd_grid_unknown unknown, uint16_t *squares,
                                     struct vxd_err *err);

/* The costs of cells, by the exact Euclidean distance to the nearest obstacle.
 * in   states   of `rows`
 *      squares  of all rows from rows.begin - radius to rows.end + radius - 1
 *      costs    the table: radius^2 + 1 uint8, device memory
 * out  out      n_y x n_x uint8; written: `rows` */
enum vxd_status vxd_grid_costs(struct vxd_queue *queue, const uint8_t *states,
                               const uint16_t *squares, uint32_t n_x, uint32_t n_y,
                               const struct vxd_grid_rows *rows, uint32_t radius,
                               enum vxd_grid_unknown unknown, const uint8_t *costs,
                               uint8_t *out, struct vxd_err *err);

/* --- frontiers --------------------------------------------------------------------------- */

/* Marks the cells of a dense array that are FREE and have an UNKNOWN neighbour in the array, by a
 * side (4 in a plane, 6 in space).
 * in   states   n[0] x n[1] x n[2] uint8, row-major, of enum vxd_svdag_state: of
 *               vxd_svdag_export_dense, or of a grid with n = {1, n_y, n_x}
 *      words    words begin .. end - 1 of the marks are written
 * out  marks    uint32: bit i of word w is cell 32 w + i; 0 behind the last cell
 * errors  INVALID_ARGUMENT  no cells, or more than VXD_GRID_MAX_CELLS; a range beyond them */
enum vxd_status vxd_grid_mark_frontiers(struct vxd_queue *queue, const uint8_t *states,
                                        const uint32_t n[3],
                                        const struct vxd_grid_rows *words,
                                        uint32_t *marks, struct vxd_err *err);

/* --- clusters.c: marks in clusters, on the host ------------------------------------------ */

/* Marked cells that touch by a side, an edge or a corner (8 in a plane, 26 in space) are of one
 * cluster. It is computed on the host, for either backend: frontiers are few cells of many, and
 * joining them is a chase of pointers that a GPU does no faster than the marks are copied. */
struct vxd_clusters;

struct vxd_cluster {
    uint64_t n_cells;
    uint64_t first;   /* its lowest cell */
    double centre[3]; /* mean of the cells' indices, in the array's axes */
};

#define VXD_GRID_MAX_FRONTIER_CELLS ((size_t)1 << 20)
#define VXD_GRID_MAX_CLUSTERS ((size_t)1 << 18)

/* Their memory is of the context's host budget: 4 bytes a word and 8 a mark, and 40 a cluster of
 * the list.
 * in      marks  host memory; borrowed until destroyed
 * owner   the caller
 * errors  RESOURCE_EXHAUSTED  more than VXD_GRID_MAX_FRONTIER_CELLS marks: take a smaller box;
 *                             no memory */
enum vxd_status vxd_clusters_create(struct vxd_context *context, const uint32_t *marks,
                                    const uint32_t n[3], struct vxd_clusters **out,
                                    struct vxd_err *err);
void vxd_clusters_destroy(struct vxd_clusters *clusters);

/* Joins at most n_words words of marks more; true when all are joined. */
bool vxd_clusters_step(struct vxd_clusters *clusters, size_t n_words);

/* Makes the list, once all are joined: clusters of at least min_cells, largest first, of equally
 * large ones the one with the lowest cell.
 * out     list    of *n; as long as the clusters live
 * errors  RESOURCE_EXHAUSTED  more than VXD_GRID_MAX_CLUSTERS, err.field "min_cells"; no memory */
enum vxd_status vxd_clusters_finish(struct vxd_clusters *clusters, uint64_t min_cells,
                                    const struct vxd_cluster **list, size_t *n,
                                    struct vxd_err *err);

/* Cells of the clusters in that list, and afterwards those cells in ascending order with the
 * number of the cluster that each is of. */
size_t vxd_clusters_n_cells(const struct vxd_clusters *clusters);
void vxd_clusters_cells(const struct vxd_clusters *clusters, uint32_t *cells,
                        uint32_t *of_cluster);

#ifdef __cplusplus
}
#endif
#endif
