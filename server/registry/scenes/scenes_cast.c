// SPDX-License-Identifier: Apache-2.0
/* Scans of the journal that are kept by the ends of their rays: a scan by the middles of those cells
 * gives the lists of the first one, bit for bit, on either backend (gpu/svdag/scan). */
#include <stdlib.h>

#include "server/registry/scenes/scenes_replay.h"

/* A scan's arrays on the host; the queue reads them until it was waited for. */
struct arrays {
    float *points;
    float *origins;
    uint16_t *values;
};

static enum vxd_status fail_memory(struct vxd_err *err)
{
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scan");
}

/* The middles of n cells; NULL: no memory. */
static float *middles_of(const int32_t *cells, size_t n)
{
    float *middles = malloc(3 * n * sizeof *middles);

    for (size_t i = 0; middles != NULL && i < 3 * n; i++) {
        /* Exact: cells have 23 bits with their sign. */
        middles[i] = ((float)cells[i] + 0.5F) * (1.0F / VXD_SVDAG_UNIT);
    }
    return middles;
}

static bool is_same_voxel(const int32_t *a, const int32_t *b)
{
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2])) >> 8 == 0;
}

/* A value for each ray that hit: its voxel's. NULL: no memory. */
static uint16_t *values_of(const struct vxd_record_scan *record)
{
    uint16_t *values = calloc(record->n, sizeof *values);
    size_t n_voxels = 0;

    for (size_t i = 0; values != NULL && i < record->n_hits; i++) {
        n_voxels +=
            i == 0 || !is_same_voxel(record->ends + 3 * i, record->ends + 3 * (i - 1));
        values[i] = record->values[n_voxels - 1];
    }
    return values;
}

static enum vxd_status make_arrays(const struct vxd_record_scan *record,
                                   struct arrays *arrays, struct vxd_err *err)
{
    arrays->points = middles_of(record->ends, record->n);
    if (record->origins != NULL) {
        arrays->origins = middles_of(record->origins, record->n);
    }
    if (record->values != NULL) {
        arrays->values = values_of(record);
    }
    return arrays->points != NULL &&
                   (arrays->origins != NULL || record->origins == NULL) &&
                   (arrays->values != NULL || record->values == NULL)
               ? VXD_OK
               : fail_memory(err);
}

static enum vxd_status upload(struct vxd_queue *queue,
                              const struct vxd_record_scan *record,
                              const struct arrays *arrays, struct vxd_scene_cast *cast,
                              struct vxd_svdag_scan *scan, struct vxd_err *err)
{
    const size_t n_bytes = 3 * record->n * sizeof *arrays->points;
    const void *at;
    enum vxd_status status;

    VXD_TRY(vxd_upload(queue, arrays->points, n_bytes, &cast->points, &at, err));
    scan->points = at;
    if (arrays->origins != NULL) {
        VXD_TRY(vxd_upload(queue, arrays->origins, n_bytes, &cast->origins, &at, err));
        scan->origins = at;
    }
    if (arrays->values != NULL) {
        VXD_TRY(vxd_upload(queue, arrays->values, record->n * sizeof *arrays->values,
                           &cast->values, &at, err));
        scan->values = at;
    }
out:
    return status;
}

static enum vxd_status cast_scan(struct vxd_queue *queue,
                                 const struct vxd_svdag_format *format,
                                 const struct vxd_record_scan *record,
                                 struct vxd_scene_cast *cast, struct vxd_err *err)
{
    struct vxd_svdag_scan scan = {.n = record->n,
                                  .n_rays_only = record->n - record->n_hits,
                                  .value = record->value,
                                  .carve = true};
    struct arrays arrays = {0};
    enum vxd_status status;

    memcpy(scan.base, record->base, sizeof scan.base);
    memcpy(scan.origin, record->origin, sizeof scan.origin);
    VXD_TRY(make_arrays(record, &arrays, err));
    VXD_TRY(upload(queue, record, &arrays, cast, &scan, err));
    VXD_TRY(vxd_svdag_scan_voxels(queue, format, &scan, &cast->result, err));
    status = vxd_queue_wait(queue, err);
out:
    (void)vxd_queue_wait(queue, NULL);
    free(arrays.points);
    free(arrays.origins);
    free(arrays.values);
    vxd_device_free(queue, &cast->points);
    vxd_device_free(queue, &cast->origins);
    vxd_device_free(queue, &cast->values);
    if (status == VXD_INVALID_ARGUMENT && err != NULL) {
        err->code = VXD_DATA_LOSS; /* this scene has no such material */
    }
    return status == VXD_INVALID_ARGUMENT ? VXD_DATA_LOSS : status;
}

enum vxd_status vxd_scene_cast_scans(struct vxd_queue *queue,
                                     const struct vxd_svdag_format *format,
                                     const struct vxd_record *record,
                                     struct vxd_scene_cast *casts,
                                     struct vxd_svdag_op *ops, struct vxd_err *err)
{
    size_t n_fills = record->n_scans; /* operations before the next one that fills */
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < record->n_scans; i++) {
        VXD_TRY(cast_scan(queue, format, &record->scans[i], &casts[i], err));
        ops[i].shape.voxels = casts[i].result.passed.voxels;
        if (record->scans[i].fills) {
            ops[n_fills++].shape.voxels = casts[i].result.hits.voxels;
        }
    }
out:
    return status;
}

void vxd_scene_cast_free(struct vxd_queue *queue, struct vxd_scene_cast *cast)
{
    vxd_device_free(queue, &cast->points);
    vxd_device_free(queue, &cast->origins);
    vxd_device_free(queue, &cast->values);
    vxd_svdag_voxel_list_free(queue, &cast->result.hits);
    vxd_svdag_voxel_list_free(queue, &cast->result.passed);
}
