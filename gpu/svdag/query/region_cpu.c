// SPDX-License-Identifier: Apache-2.0
/* Many regions are a task each few; of few regions, each is counted in parts. An overlap mostly
 * ends soon, and is never split. */
#include "gpu/svdag/query/tree_parts_math.h"
#include "gpu/svdag/query/query_backends.h"

#define PIECE_REGIONS ((size_t)8)
#define FEW_REGIONS ((size_t)16)

struct region_parts {
    const struct vxd_svdag_regions_call *call;
    struct vxd_svdag_area area;
    struct vxd_svdag_parts parts;
    uint64_t counts[VXD_SVDAG_MAX_PARTS][2];
};

static struct vxd_svdag_spot whole(const struct vxd_svdag_regions_call *call)
{
    struct vxd_svdag_spot spot = {call->root, 0, 0, 0, call->view.depth};

    return spot;
}

static void overlap_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_svdag_regions_call *call = context;
    struct vxd_svdag_spot spot = whole(call);

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_area area =
            vxd_svdag_area_of(call->regions + i, call->view.depth);

        call->states[i] = (uint8_t)vxd_svdag_area_states(&call->view, &spot, &area);
    }
}

static enum vxd_status overlap_job(struct vxd_pool *pool, const void *context,
                                   struct vxd_err *err)
{
    struct vxd_svdag_regions_call call = *(const struct vxd_svdag_regions_call *)context;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE_REGIONS, overlap_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_svdag_overlap_cpu(struct vxd_queue *queue,
                                      const struct vxd_svdag_regions_call *call,
                                      struct vxd_err *err)
{
    return vxd_queue_push(queue, overlap_job, call, sizeof *call, err);
}

static void count_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_svdag_regions_call *call = context;
    struct vxd_svdag_spot spot = whole(call);

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_area area =
            vxd_svdag_area_of(call->regions + i, call->view.depth);

        call->counts[2 * i] = 0;
        call->counts[2 * i + 1] = 0;
        vxd_svdag_area_count(&call->view, &spot, &area, vxd_svdag_all_states(&call->view),
                             call->counts + 2 * i);
    }
}

static void count_part(void *context, size_t begin, size_t end)
{
    struct region_parts *region = context;

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_spot spot = vxd_svdag_part(
            &region->call->view, region->call->root, &region->parts, (uint32_t)i);

        region->counts[i][0] = 0;
        region->counts[i][1] = 0;
        vxd_svdag_area_count(&region->call->view, &spot, &region->area,
                             vxd_svdag_all_states(&region->call->view),
                             region->counts[i]);
    }
}

static enum vxd_status count_job(struct vxd_pool *pool, const void *context,
                                 struct vxd_err *err)
{
    struct vxd_svdag_regions_call call = *(const struct vxd_svdag_regions_call *)context;
    struct region_parts region;

    (void)err;
    if (call.n > FEW_REGIONS) {
        vxd_parallel_for(pool, call.n, PIECE_REGIONS, count_piece, &call);
        return VXD_OK;
    }
    region.call = &call;
    for (size_t i = 0; i < call.n; i++) {
        uint64_t *counts = call.counts + 2 * i;
        size_t n_parts;

        counts[0] = 0;
        counts[1] = 0;
        region.area = vxd_svdag_area_of(call.regions + i, call.view.depth);
        if (vxd_svdag_area_is_empty(&region.area)) {
            continue;
        }
        region.parts = vxd_svdag_parts_of(&region.area, 0);
        n_parts = vxd_svdag_parts_n(&region.parts);
        vxd_parallel_for(pool, n_parts, 1, count_part, &region);
        for (size_t part = 0; part < n_parts; part++) {
            counts[0] += region.counts[part][0];
            counts[1] += region.counts[part][1];
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_svdag_count_cpu(struct vxd_queue *queue,
                                    const struct vxd_svdag_regions_call *call,
                                    struct vxd_err *err)
{
    return vxd_queue_push(queue, count_job, call, sizeof *call, err);
}
