// SPDX-License-Identifier: Apache-2.0
/* The smallest box that holds all occupied voxels of a root: each of its six faces is found by bisection,
 * all at once, by asking whether a slab has an occupied voxel. Between two answers a slab is half as
 * thick, so the walks see little more than the scene twice. */
#include "gpu/svdag/query/query.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"

enum {
    N_FACES = 6 /* low x, y, z; then high x, y, z */
};

/* The layer of voxels that a face's outermost ones are in is first to last of these. */
struct face {
    int64_t first;
    int64_t last;
};

/* Fills the slab that decides which half a face is in: the outer half of its layers, as far as the
 * others may reach. */
static void fill_slab(const struct face *faces, int i, struct vxd_svdag_region *out)
{
    int64_t middle = (faces[i].first + faces[i].last) / 2;
    bool is_low = i < 3;

    *out = (struct vxd_svdag_region){.r = -1};
    for (int axis = 0; axis < 3; axis++) {
        int64_t low = faces[axis].first;
        int64_t high = faces[3 + axis].last;

        if (axis == i % 3) {
            low = is_low ? faces[i].first : middle + 1;
            high = is_low ? middle : faces[i].last;
        }
        out->low[axis] = low * VXD_SVDAG_UNIT;
        out->high[axis] = (high + 1) * VXD_SVDAG_UNIT;
    }
}

static void take_half(struct face *face, bool is_low, bool is_occupied)
{
    int64_t middle = (face->first + face->last) / 2;

    if (is_low == is_occupied) {
        face->last = middle;
    } else {
        face->first = middle + 1;
    }
}

/* One round; `states` has a byte a face. */
static enum vxd_status halve(struct vxd_request *request, struct vxd_queue *queue,
                             struct face *faces, const struct vxd_column *states,
                             struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    struct vxd_svdag_region slabs[N_FACES];
    const void *uploaded;
    enum vxd_status status;

    for (int i = 0; i < N_FACES; i++) {
        fill_slab(faces, i, &slabs[i]);
    }
    VXD_TRY(vxd_scene_upload(request, queue, slabs, sizeof slabs, &uploaded, err));
    VXD_TRY(vxd_svdag_overlap(queue, job->state.svdag, job->state.root, uploaded, N_FACES,
                              states->device, err));
    VXD_TRY(vxd_columns_fetch(&job->query.columns, queue, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    for (int i = 0; i < N_FACES; i++) {
        if (faces[i].first < faces[i].last) {
            take_half(&faces[i], i < 3,
                      (((const uint8_t *)states->bytes)[i] & VXD_SVDAG_OCCUPIED) != 0);
        }
    }
out:
    return status;
}

enum vxd_status vxd_scene_find_bounds(struct vxd_request *request,
                                      struct vxd_queue *queue, int64_t low[3],
                                      int64_t high[3], struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    int64_t side = (int64_t)1 << job->scene->spec.format.depth;
    struct face faces[N_FACES];
    struct vxd_column *states;
    enum vxd_status status;

    for (int i = 0; i < N_FACES; i++) {
        faces[i] = (struct face){0, side - 1};
    }
    VXD_TRY(vxd_columns_reserve(&job->query.columns, queue, N_FACES, 1, &states, err));
    for (int64_t left = side; left > 1; left /= 2) {
        VXD_TRY(halve(request, queue, faces, states, err));
    }
    for (int axis = 0; axis < 3; axis++) {
        low[axis] = faces[axis].first;
        high[axis] = faces[3 + axis].first + 1;
    }
out:
    return status;
}
