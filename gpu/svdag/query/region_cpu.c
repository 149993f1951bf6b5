// SPDX-License-Identifier: Apache-2.0
/* Many regions are a task each few; of few regions, each is counted in parts. An overlap mostly
 * ends soon, and is never split. */
#include "gpu/svdag/query/tree_parts_math.h"
#include "gpu/svdag/query/query_backends.h"

#define PIECE_REGIONS ((size_t)8)
#define FEW_REGIONS ((size_t)16)

struct region_subtrees {
    const struct vxd_svdag_regions_call *call;
    struct vxd_svdag_area area;
    struct vxd_svdag_subtrees subtrees;
    uint64_t counts[VXD_SVDAG_MAX_SUBTREES][2];
};

static struct vxd_svdag_position whole(const struct vxd_svdag_regions_call *call)
{
    struct vxd_svdag_position tree_cube = {call->root, 0, 0, 0, call->view.depth};

    return tree_cube;
}

static void overlap_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_svdag_regions_call *call = context;
    struct vxd_svdag_position tree_cube = whole(call);

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_area area =
            vxd_svdag_area_of(call->regions + i, call->view.depth);

        call->states[i] = (uint8_t)vxd_svdag_area_states(&call->view, &tree_cube, &area);
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
    struct vxd_svdag_position tree_cube = whole(call);

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_area area =
            vxd_svdag_area_of(call->regions + i, call->view.depth);

        call->counts[2 * i] = 0;
        call->counts[2 * i + 1] = 0;
        vxd_svdag_area_count(&call->view, &tree_cube, &area,
                             vxd_svdag_all_states(&call->view), call->counts + 2 * i);
    }
}

static void count_subtree(void *context, size_t begin, size_t end)
{
    struct region_subtrees *region = context;

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_position tree_cube = vxd_svdag_subtree(
            &region->call->view, region->call->root, &region->subtrees, (uint32_t)i);

        region->counts[i][0] = 0;
        region->counts[i][1] = 0;
        vxd_svdag_area_count(&region->call->view, &tree_cube, &region->area,
                             vxd_svdag_all_states(&region->call->view),
                             region->counts[i]);
    }
}

static enum vxd_status count_job(struct vxd_pool *pool, const void *context,
                                 struct vxd_err *err)
{
    struct vxd_svdag_regions_call call = *(const struct vxd_svdag_regions_call *)context;
    struct region_subtrees region;

    (void)err;
    if (call.n > FEW_REGIONS) {
        vxd_parallel_for(pool, call.n, PIECE_REGIONS, count_piece, &call);
        return VXD_OK;
    }
    region.call = &call;
    for (size_t i = 0; i < call.n; i++) {
        uint64_t *counts = call.counts + 2 * i;
        size_t n_subtrees;

        counts[0] = 0;
        counts[1] = 0;
        region.area = vxd_svdag_area_of(call.regions + i, call.view.depth);
        if (vxd_svdag_area_is_empty(&region.area)) {
            continue;
        }
        region.subtrees = vxd_svdag_subtrees_of(&region.area, 0);
        n_subtrees = vxd_svdag_subtrees_n(&region.subtrees);
        vxd_parallel_for(pool, n_subtrees, 1, count_subtree, &region);
        for (size_t part = 0; part < n_subtrees; part++) {
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
