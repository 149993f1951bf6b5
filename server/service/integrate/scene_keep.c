// SPDX-License-Identifier: Apache-2.0
/* What the journal gets of a scan into a durable scene: where its rays end, which are cast again at
 * a start, or the lists of its voxels. */
#include "server/instance/instance.h"
#include "server/service/integrate/integrate.h"
#include "server/service/scene/scene.h"

enum {
    SMALLER = 4,     /* times fewer leaves than rays */
    LEAF_BYTES = 4,  /* of a list's leaf in the journal, rounded up */
    POINT_BYTES = 16 /* of a point as sensors mostly send it */
};

/* Ends take about 4 bytes a ray whatever a voxel's size. A GPU casts quickly, so there lists are
 * kept only where they are much smaller. A CPU casts for longer than it unpacks lists, so there
 * they are kept unless they take more than a third of the points' own bytes. */
static bool keeps_ends(const struct vxd_request *request,
                       const struct vxd_svdag_scan_result *scans, size_t n)
{
    const struct vxd_scene_job *job = request->state;
    size_t n_leaves = 0;
    size_t n_rays = 0;

    if (!vxd_scene_is_durable(job->scene)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const struct vxd_svdag_scan_result *scan = &scans[i];

        if (scan->ends.n == 0 && scan->hits.voxels.n + scan->passed.voxels.n > 0) {
            return false; /* without rays, or with some that have no such ends */
        }
        n_rays += scan->ends.n;
        n_leaves += scan->hits.voxels.n + scan->passed.voxels.n;
    }
    return n_rays > 0 &&
           (vxd_context_backend(request->server->context) == VXD_BACKEND_CUDA
                ? n_leaves * SMALLER > n_rays
                : n_leaves * LEAF_BYTES > n_rays * POINT_BYTES / 3);
}

/* Brings an array to the host; on the CPU it is there. NULL stays NULL. */
static enum vxd_status fetch(struct vxd_request *request, struct vxd_queue *queue,
                             const void *device, size_t n_bytes, const void **out,
                             struct vxd_err *err)
{
    /* The engine reads it, the field's type does not say so. */
    struct vxd_scene_output output = {.n_bytes = n_bytes,
                                      .device = (void *)(uintptr_t)device};
    enum vxd_status status = VXD_OK;

    if (device != NULL) {
        status = vxd_scene_fetch_output(request, queue, &output, err);
    }
    *out = output.bytes;
    return status;
}

static enum vxd_status keep_scan(struct vxd_request *request, struct vxd_queue *queue,
                                 const struct vxd_svdag_scan_result *scan,
                                 struct vxd_record_scan *record, struct vxd_err *err)
{
    const size_t n_bytes = scan->ends.n * 3 * sizeof *record->ends;
    const void *cells;
    enum vxd_status status;

    record->n = scan->ends.n;
    record->n_hits = scan->ends.n_hits;
    VXD_TRY(fetch(request, queue, scan->ends.ends, n_bytes, &cells, err));
    record->ends = cells;
    VXD_TRY(fetch(request, queue, scan->ends.origins, n_bytes, &cells, err));
    record->origins = cells;
    if (record->has_values && record->n_hits > 0) {
        VXD_TRY(fetch(request, queue, scan->hits.voxels.values,
                      scan->n_hit_voxels * sizeof *record->values, &cells, err));
        record->values = cells;
    }
out:
    return status;
}

enum vxd_status vxd_scene_keep_scans(struct vxd_request *request, struct vxd_queue *queue,
                                     const struct vxd_svdag_scan_result *scans,
                                     struct vxd_record_scan *records, size_t n,
                                     struct vxd_scene_entry *entry, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (!keeps_ends(request, scans, n)) {
        return VXD_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (scans[i].ends.n > 0) {
            records[entry->n_scans] = records[i];
            VXD_TRY(keep_scan(request, queue, &scans[i], &records[entry->n_scans], err));
            entry->n_scans++;
        }
    }
    entry->scans = records;
    status = vxd_queue_wait(queue, err);
out:
    return status;
}
