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

struct vxd_svdag_cells_call; /* gpu/svdag/diff/diff_backends.h */
struct vxd_svdag_dense_call;
struct vxd_svdag_bits_call;
struct vxd_svdag_diff_call;
struct vxd_render_call; /* gpu/render/render_backends.h */

/* Everything a twin needs; n is at least 1. */
struct vxd_svdag_values_call {
    struct vxd_svdag_view view;
    uint32_t root;
    size_t n;
    const int32_t *voxels;
    uint8_t *states;
    uint16_t *values;
};

struct vxd_svdag_changed_call {
    struct vxd_svdag_view view;
    const uint32_t *roots;
    uint32_t n_roots; /* at least 1 */
    size_t n;
    const int32_t *voxels;
    uint32_t *indices;
};

struct vxd_svdag_rays_call {
    struct vxd_svdag_view view;
    uint32_t root;
    size_t n;
    const double *origins;
    const double *directions;
    const double *max_range;
    struct vxd_svdag_hit *hits;
};

struct vxd_svdag_nearest_call {
    struct vxd_svdag_view view;
    uint32_t root;
    size_t n;
    const int64_t *points;
    const int64_t *radii;
    int32_t *voxels;
    uint64_t *squares;
    uint16_t *values;
};

/* One of states and counts. */
struct vxd_svdag_regions_call {
    struct vxd_svdag_view view;
    uint32_t root;
    size_t n;
    const struct vxd_svdag_region *regions;
    uint8_t *states;
    uint64_t *counts;
    void *scratch; /* of a GPU's counts */
};

/* All queries of one form: those of the CPU, and those of a GPU for stores that keep items in
 * one piece. A store that splits items brings a table of its own (struct vxd_svdag_queries). */
#define VXD_SVDAG_QUERY_FORMS(form)                                                      \
    VXD_SVDAG_QUERY_FORM(vxd_svdag_values##form, vxd_svdag_values_call);                 \
    VXD_SVDAG_QUERY_FORM(vxd_svdag_changed##form, vxd_svdag_changed_call);               \
    VXD_SVDAG_QUERY_FORM(vxd_svdag_cast_rays##form, vxd_svdag_rays_call);                \
    VXD_SVDAG_QUERY_FORM(vxd_svdag_nearest##form, vxd_svdag_nearest_call);               \
    VXD_SVDAG_QUERY_FORM(vxd_svdag_overlap##form, vxd_svdag_regions_call);               \
    VXD_SVDAG_QUERY_FORM(vxd_svdag_count##form, vxd_svdag_regions_call);                 \
    VXD_SVDAG_QUERY_FORM(vxd_svdag_export_cells##form, vxd_svdag_cells_call);            \
    VXD_SVDAG_QUERY_FORM(vxd_svdag_export_dense##form, vxd_svdag_dense_call);            \
    VXD_SVDAG_QUERY_FORM(vxd_svdag_export_bits##form, vxd_svdag_bits_call);              \
    VXD_SVDAG_QUERY_FORM(vxd_svdag_diff##form, vxd_svdag_diff_call)
#define VXD_SVDAG_QUERY_FORM(name, args)                                                 \
    enum vxd_status name(struct vxd_queue *queue, const struct args *call,               \
                         struct vxd_err *err)

VXD_SVDAG_QUERY_FORMS(_cpu);
VXD_SVDAG_QUERY_FORMS(_cuda);

/* The same as a table of functions. */
struct vxd_svdag_queries {
    VXD_SVDAG_QUERY_FORM((*values), vxd_svdag_values_call);
    VXD_SVDAG_QUERY_FORM((*changed), vxd_svdag_changed_call);
    VXD_SVDAG_QUERY_FORM((*cast_rays), vxd_svdag_rays_call);
    VXD_SVDAG_QUERY_FORM((*nearest), vxd_svdag_nearest_call);
    VXD_SVDAG_QUERY_FORM((*overlap), vxd_svdag_regions_call);
    VXD_SVDAG_QUERY_FORM((*count), vxd_svdag_regions_call);
    VXD_SVDAG_QUERY_FORM((*export_cells), vxd_svdag_cells_call);
    VXD_SVDAG_QUERY_FORM((*export_dense), vxd_svdag_dense_call);
    VXD_SVDAG_QUERY_FORM((*export_bits), vxd_svdag_bits_call);
    VXD_SVDAG_QUERY_FORM((*diff), vxd_svdag_diff_call);
    VXD_SVDAG_QUERY_FORM((*draw), vxd_render_call); /* a part of a picture */
};

#ifdef __cplusplus
}
#endif

/* The twin of a query of a store, which may bring its own. For files that include store_table.h. */
#if defined(VXD_WITH_CUDA)
#define VXD_SVDAG_QUERY_BACKEND(queue, svdag, name)                                      \
    (!VXD_ON_CUDA((queue)->context) ? vxd_svdag_##name##_cpu                             \
     : (svdag)->device_ops != NULL && (svdag)->device_ops->queries != NULL               \
         ? (svdag)->device_ops->queries->name                                            \
         : vxd_svdag_##name##_cuda)
#else
#define VXD_SVDAG_QUERY_BACKEND(queue, svdag, name)                                      \
    ((void)(svdag), vxd_svdag_##name##_cpu)
#endif

/* On GPUs one region or export is first made a list of cubes, which warps then share: at most
 * so many, unless there are fewer that small. */
#define VXD_SVDAG_TREE_CUBES_MOST 16384
#define VXD_SVDAG_TREE_CUBES_HEAD_BYTES ((size_t)256)
#define VXD_SVDAG_TREE_CUBES_BYTES                                                       \
    (VXD_SVDAG_TREE_CUBES_HEAD_BYTES +                                                   \
     (size_t)2 * VXD_SVDAG_TREE_CUBES_MOST * (sizeof(uint64_t) + sizeof(uint32_t)))

/* Counts of as few regions go by lists, one each; of more, a warp counts each. */
#define VXD_SVDAG_FEW_REGIONS ((size_t)16)

/* Scratch of a GPU's counts. */
static inline size_t vxd_svdag_count_scratch_bytes(const struct vxd_queue *queue,
                                                   size_t n)
{
    (void)queue;
    return VXD_ON_CUDA(queue->context) && n <= VXD_SVDAG_FEW_REGIONS
               ? n * VXD_SVDAG_TREE_CUBES_BYTES
               : 0;
}

/* An array that may not be missing. */
static inline enum vxd_status vxd_svdag_query_need(const void *array, const char *name,
                                                   struct vxd_err *err)
{
    return array != NULL ? VXD_OK : vxd_fail(err, VXD_INVALID_ARGUMENT, name, "missing");
}

#endif
