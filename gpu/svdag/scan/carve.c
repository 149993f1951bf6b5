// SPDX-License-Identifier: Apache-2.0
/* The public entries of scans and voxel lists: checks and dispatch. */
#include "gpu/svdag/scan/scan.h"

#include <stdlib.h>

#include "gpu/svdag/scan/carve_cpu.h"
#include "gpu/svdag/scan/carve_bricks.h"

#define MAX_POINTS ((size_t)1 << 28)

struct vxd_svdag_scanning {
    struct vxd_svdag_scanning_cpu *cpu; /* NULL: the scan is one step */
    struct vxd_svdag_format format;
    struct vxd_svdag_scan scan;
};

static enum vxd_status check_format(const struct vxd_svdag_format *format, size_t n,
                                    struct vxd_err *err)
{
    int bits = format->material_bits;

    if (format->depth < VXD_SVDAG_MIN_DEPTH || format->depth > VXD_SVDAG_MAX_DEPTH) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "depth", "is %d, must be %d to %d",
                        format->depth, VXD_SVDAG_MIN_DEPTH, VXD_SVDAG_MAX_DEPTH);
    }
    if (bits != 0 && bits != 4 && bits != 8 && bits != 16) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "material_bits",
                        "is %d, must be 0, 4, 8 or 16", bits);
    }
    if (n > MAX_POINTS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n", "%zu points, at most %zu", n,
                        MAX_POINTS);
    }
    return VXD_OK;
}

static enum vxd_status check_scan(const struct vxd_svdag_format *format,
                                  const struct vxd_svdag_scan *scan, struct vxd_err *err)
{
    enum vxd_status status = check_format(format, scan->n, err);

    if (status != VXD_OK) {
        return status;
    }
    if (scan->n_rays_only > scan->n) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_rays_only", "is %zu of %zu points",
                        scan->n_rays_only, scan->n);
    }
    for (int a = 0; a < 3; a++) {
        if (!isfinite(scan->origin[a])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "origin", "is not finite");
        }
        if (scan->base[a] > VXD_SVDAG_MAX_BASE || scan->base[a] < -VXD_SVDAG_MAX_BASE) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "base",
                            "is %lld on axis %d, at most 2^40", (long long)scan->base[a],
                            a);
        }
    }
    if (!(scan->max_range >= 0) || !isfinite(scan->max_range)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_range",
                        "is %g, must be finite and not negative", scan->max_range);
    }
    if (scan->value >= vxd_svdag_n_materials(format)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "value", "is %u of %u materials",
                        scan->value, vxd_svdag_n_materials(format));
    }
    return VXD_OK;
}

enum vxd_status vxd_svdag_scan_voxels(struct vxd_queue *queue,
                                      const struct vxd_svdag_format *format,
                                      const struct vxd_svdag_scan *scan,
                                      struct vxd_svdag_scan_result *out,
                                      struct vxd_err *err)
{
    enum vxd_status status = check_scan(format, scan, err);

    *out = (struct vxd_svdag_scan_result){0};
    return status != VXD_OK ? status
           : VXD_ON_CUDA(queue->context)
               ? vxd_svdag_scan_voxels_cuda(queue, format, scan, out, err)
               : vxd_svdag_scan_voxels_cpu(queue, format, scan, out, err);
}

enum vxd_status vxd_svdag_scan_begin(struct vxd_queue *queue,
                                     const struct vxd_svdag_format *format,
                                     const struct vxd_svdag_scan *scan,
                                     struct vxd_svdag_scanning **out, struct vxd_err *err)
{
    struct vxd_svdag_scanning *scanning;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(check_scan(format, scan, err));
    scanning = calloc(1, sizeof *scanning);
    if (scanning == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scan");
    }
    *out = scanning;
    scanning->format = *format;
    scanning->scan = *scan;
    if (!VXD_ON_CUDA(queue->context)) {
        status = vxd_svdag_scan_begin_cpu(queue, format, scan, &scanning->cpu, err);
    }
out:
    return status;
}

enum vxd_status vxd_svdag_scan_step(struct vxd_queue *queue,
                                    struct vxd_svdag_scanning *scanning,
                                    struct vxd_svdag_scan_result *out, bool *is_done,
                                    struct vxd_err *err)
{
    enum vxd_status status;

    *is_done = false;
    if (!VXD_ON_CUDA(queue->context)) {
        return vxd_svdag_scan_step_cpu(queue, scanning->cpu, out, is_done, err);
    }
    VXD_TRY(
        vxd_svdag_scan_voxels_cuda(queue, &scanning->format, &scanning->scan, out, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    *is_done = true;
out:
    return status;
}

void vxd_svdag_scan_end(struct vxd_svdag_scanning *scanning)
{
    if (scanning != NULL) {
        vxd_svdag_scan_end_cpu(scanning->cpu);
        free(scanning);
    }
}

enum vxd_status vxd_svdag_list_voxels(struct vxd_queue *queue,
                                      const struct vxd_svdag_format *format,
                                      const int32_t *voxels, const uint16_t *values,
                                      size_t n, struct vxd_svdag_voxel_list *list,
                                      uint64_t *n_outside, struct vxd_err *err)
{
    enum vxd_status status = check_format(format, n, err);

    *list = (struct vxd_svdag_voxel_list){0};
    *n_outside = 0;
    return status != VXD_OK ? status
           : VXD_ON_CUDA(queue->context)
               ? vxd_svdag_list_voxels_cuda(queue, format, voxels, values, n, list,
                                            n_outside, err)
               : vxd_svdag_list_voxels_cpu(queue, format, voxels, values, n, list,
                                           n_outside, err);
}

void vxd_svdag_voxel_list_free(struct vxd_queue *queue, struct vxd_svdag_voxel_list *list)
{
    vxd_device_free(queue, &list->memory);
    *list = (struct vxd_svdag_voxel_list){0};
}

void vxd_svdag_ray_ends_free(struct vxd_queue *queue, struct vxd_svdag_ray_ends *ends)
{
    vxd_device_free(queue, &ends->memory);
    *ends = (struct vxd_svdag_ray_ends){0};
}
