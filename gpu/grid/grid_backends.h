// SPDX-License-Identifier: Apache-2.0
/* The backends behind grid.h. The public entries check every argument; the backends only
 * compute. */
#ifndef VXD_GPU_GRID_GRID_BACKENDS_H
#define VXD_GPU_GRID_GRID_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/grid/grid_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns of a root: states, or heights where `states` is NULL. States are UNKNOWN before, and the
 * area is not empty then; heights are written for all cells of the rows. */
struct vxd_grid_columns_call {
    struct vxd_svdag_view view;
    uint32_t root;
    uint32_t n_x;
    int64_t low[2]; /* voxels of cell (0, 0) */
    struct vxd_grid_rows rows;
    struct vxd_svdag_area area; /* of the rows, inside the scene */
    uint8_t *states;
    struct vxd_grid_heights heights;
};

struct vxd_grid_slope_call {
    const int32_t *top;
    uint32_t n_x;
    uint32_t n_y;
    struct vxd_grid_rows rows;
    float *slope;
};

struct vxd_grid_squares_call {
    const uint8_t *states;
    uint32_t n_x;
    struct vxd_grid_rows rows;
    uint32_t radius;
    enum vxd_grid_unknown unknown;
    uint16_t *squares;
};

struct vxd_grid_costs_call {
    const uint8_t *states;
    const uint16_t *squares;
    uint32_t n_x;
    uint32_t n_y;
    struct vxd_grid_rows rows;
    uint32_t radius;
    enum vxd_grid_unknown unknown;
    const uint8_t *costs;
    uint8_t *out;
};

struct vxd_grid_marks_call {
    const uint8_t *states;
    uint32_t n[3];
    uint32_t n_cells;
    struct vxd_grid_rows words;
    uint32_t *marks;
};

#define VXD_GRID_BACKENDS(form)                                                          \
    VXD_GRID_BACKEND(vxd_grid_columns##form, vxd_grid_columns_call);                     \
    VXD_GRID_BACKEND(vxd_grid_slope##form, vxd_grid_slope_call);                         \
    VXD_GRID_BACKEND(vxd_grid_row_squares##form, vxd_grid_squares_call);                 \
    VXD_GRID_BACKEND(vxd_grid_costs##form, vxd_grid_costs_call);                         \
    VXD_GRID_BACKEND(vxd_grid_mark_frontiers##form, vxd_grid_marks_call)
#define VXD_GRID_BACKEND(name, args)                                                     \
    enum vxd_status name(struct vxd_queue *queue, const struct args *call,               \
                         struct vxd_err *err)

VXD_GRID_BACKENDS(_cpu);
VXD_GRID_BACKENDS(_cuda);

#ifdef __cplusplus
}
#endif
#endif
