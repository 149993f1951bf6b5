// SPDX-License-Identifier: Apache-2.0
/* The twins behind query.h and export.h. The public entries check every argument; the twins
 * only compute. */
#ifndef VXD_GPU_DAG_QUERY_BACKENDS_H
#define VXD_GPU_DAG_QUERY_BACKENDS_H

#include "gpu/core/internal.h"
#include "gpu/dag/cells_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Everything a twin needs; n is at least 1. */
struct vxd_dag_values_call {
    struct vxd_dag_view view;
    uint32_t root;
    size_t n;
    const int32_t *voxels;
    uint8_t *states;
    uint16_t *values;
};

struct vxd_dag_rays_call {
    struct vxd_dag_view view;
    uint32_t root;
    size_t n;
    const double *origins;
    const double *directions;
    const double *max_range;
    struct vxd_dag_hit *hits;
};

struct vxd_dag_nearest_call {
    struct vxd_dag_view view;
    uint32_t root;
    size_t n;
    const int64_t *points;
    const int64_t *radii;
    int32_t *voxels;
    uint64_t *squares;
    uint16_t *values;
};

/* One of states and counts. */
struct vxd_dag_regions_call {
    struct vxd_dag_view view;
    uint32_t root;
    size_t n;
    const struct vxd_dag_region *regions;
    uint8_t *states;
    uint64_t *counts;
};

/* rows.cells NULL: counts alone. */
struct vxd_dag_cells_call {
    struct vxd_dag_view view;
    uint32_t root;
    struct vxd_dag_cells cells;
    uint64_t first;
    uint64_t limit;
    struct vxd_dag_rows rows;
    uint64_t *n_cells;
};

struct vxd_dag_dense_call {
    struct vxd_dag_view view;
    uint32_t root;
    struct vxd_dag_cells cells;
    struct vxd_dag_dense dense; /* at least one cell */
};

enum vxd_status vxd_dag_values_cpu(struct vxd_queue *queue,
                                   const struct vxd_dag_values_call *call,
                                   struct vxd_err *err);
enum vxd_status vxd_dag_cast_rays_cpu(struct vxd_queue *queue,
                                      const struct vxd_dag_rays_call *call,
                                      struct vxd_err *err);
enum vxd_status vxd_dag_nearest_cpu(struct vxd_queue *queue,
                                    const struct vxd_dag_nearest_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_dag_overlap_cpu(struct vxd_queue *queue,
                                    const struct vxd_dag_regions_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_dag_count_cpu(struct vxd_queue *queue,
                                  const struct vxd_dag_regions_call *call,
                                  struct vxd_err *err);
enum vxd_status vxd_dag_export_cells_cpu(struct vxd_queue *queue,
                                         const struct vxd_dag_cells_call *call,
                                         struct vxd_err *err);
enum vxd_status vxd_dag_export_dense_cpu(struct vxd_queue *queue,
                                         const struct vxd_dag_dense_call *call,
                                         struct vxd_err *err);

#ifdef __cplusplus
}
#endif

/* What every entry checks before its own arguments: where it runs. */
static inline enum vxd_status vxd_dag_query_check(const struct vxd_queue *queue,
                                                  struct vxd_err *err)
{
    (void)queue;
    if (VXD_ON_CUDA(queue->context)) {
        return vxd_fail(err, VXD_UNIMPLEMENTED, NULL,
                        "scenes are not on the GPU yet; use the device cpu for them");
    }
    return VXD_OK;
}

/* An array that may not be missing. */
static inline enum vxd_status vxd_dag_query_need(const void *array, const char *name,
                                                 struct vxd_err *err)
{
    return array != NULL ? VXD_OK : vxd_fail(err, VXD_INVALID_ARGUMENT, name, "missing");
}

#endif
