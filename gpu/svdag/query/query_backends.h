// SPDX-License-Identifier: Apache-2.0
/* The twins behind query.h, export.h and diff.h. The public entries check every argument; the twins
 * only compute. */
#ifndef VXD_GPU_SVDAG_QUERY_QUERY_BACKENDS_H
#define VXD_GPU_SVDAG_QUERY_QUERY_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/svdag/query/region_math.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_dag_cells_call; /* gpu/svdag/diff/diff_backends.h */
struct vxd_dag_dense_call;
struct vxd_dag_diff_call;

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
    void *scratch; /* of a GPU's counts */
};

/* All queries of one form: a twin on the CPU, one for a GPU, and what stores that are handed in
 * bring for a GPU where their items stand in two pieces. */
#define VXD_DAG_QUERY_FORMS(form)                                                        \
    VXD_DAG_QUERY_FORM(vxd_dag_values##form, vxd_dag_values_call);                       \
    VXD_DAG_QUERY_FORM(vxd_dag_cast_rays##form, vxd_dag_rays_call);                      \
    VXD_DAG_QUERY_FORM(vxd_dag_nearest##form, vxd_dag_nearest_call);                     \
    VXD_DAG_QUERY_FORM(vxd_dag_overlap##form, vxd_dag_regions_call);                     \
    VXD_DAG_QUERY_FORM(vxd_dag_count##form, vxd_dag_regions_call);                       \
    VXD_DAG_QUERY_FORM(vxd_dag_export_cells##form, vxd_dag_cells_call);                  \
    VXD_DAG_QUERY_FORM(vxd_dag_export_dense##form, vxd_dag_dense_call);                  \
    VXD_DAG_QUERY_FORM(vxd_dag_diff##form, vxd_dag_diff_call)
#define VXD_DAG_QUERY_FORM(name, args)                                                   \
    enum vxd_status name(struct vxd_queue *queue, const struct args *call,               \
                         struct vxd_err *err)

VXD_DAG_QUERY_FORMS(_cpu);
VXD_DAG_QUERY_FORMS(_cuda);

/* The same as a table of functions. */
struct vxd_dag_queries {
    VXD_DAG_QUERY_FORM((*values), vxd_dag_values_call);
    VXD_DAG_QUERY_FORM((*cast_rays), vxd_dag_rays_call);
    VXD_DAG_QUERY_FORM((*nearest), vxd_dag_nearest_call);
    VXD_DAG_QUERY_FORM((*overlap), vxd_dag_regions_call);
    VXD_DAG_QUERY_FORM((*count), vxd_dag_regions_call);
    VXD_DAG_QUERY_FORM((*export_cells), vxd_dag_cells_call);
    VXD_DAG_QUERY_FORM((*export_dense), vxd_dag_dense_call);
    VXD_DAG_QUERY_FORM((*diff), vxd_dag_diff_call);
};

#ifdef __cplusplus
}
#endif

/* The twin of a query of a store, which may bring its own. For files that include store_table.h. */
#if defined(VXD_WITH_CUDA)
#define VXD_DAG_QUERY_TWIN(queue, dag, name)                                             \
    (!VXD_ON_CUDA((queue)->context) ? vxd_dag_##name##_cpu                               \
     : (dag)->device_ops != NULL && (dag)->device_ops->queries != NULL                   \
         ? (dag)->device_ops->queries->name                                              \
         : vxd_dag_##name##_cuda)
#else
#define VXD_DAG_QUERY_TWIN(queue, dag, name) ((void)(dag), vxd_dag_##name##_cpu)
#endif

/* On GPUs one region or export is first made a list of spots, which warps then share: at most
 * so many, unless there are fewer that small. */
#define VXD_DAG_SPOTS_MOST 16384
#define VXD_DAG_SPOTS_HEAD_BYTES ((size_t)256)
#define VXD_DAG_SPOTS_BYTES                                                              \
    (VXD_DAG_SPOTS_HEAD_BYTES +                                                          \
     (size_t)2 * VXD_DAG_SPOTS_MOST * (sizeof(uint64_t) + sizeof(uint32_t)))

/* Counts of as few regions go by lists, one each; of more, a warp counts each. */
#define VXD_DAG_FEW_REGIONS ((size_t)16)

/* Scratch of a GPU's counts. */
static inline size_t vxd_dag_count_scratch_bytes(const struct vxd_queue *queue, size_t n)
{
    (void)queue;
    return VXD_ON_CUDA(queue->context) && n <= VXD_DAG_FEW_REGIONS
               ? n * VXD_DAG_SPOTS_BYTES
               : 0;
}

/* An array that may not be missing. */
static inline enum vxd_status vxd_dag_query_need(const void *array, const char *name,
                                                 struct vxd_err *err)
{
    return array != NULL ? VXD_OK : vxd_fail(err, VXD_INVALID_ARGUMENT, name, "missing");
}

#endif
