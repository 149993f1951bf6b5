// SPDX-License-Identifier: Apache-2.0
/* The public entry of meshes. The host prepares some triangles, both backends count and write the
 * voxels of their rows, and vxd_svdag_list_voxels makes the list. A call takes so many rows as have
 * MOST_VOXELS voxels, so its memory does not grow with the mesh nor with a triangle. The host guesses how many
 * voxels rows have, so that not many more are counted than are taken: a large triangle has thousands a row. */
#include "gpu/svdag/mesh/mesh.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/core/core_cpu.h"
#include "gpu/svdag/mesh/mesh_backends.h"

enum {
    MOST_ITEMS = 1 << 15,
    MOST_ROWS = 1 << 18,
    MOST_VOXELS = 1 << 21,
    MOST_GUESSED = MOST_VOXELS + MOST_VOXELS / 4 /* of the rows of a call */
};

/* Below this part of the square of its longest side, twice a triangle's area says nothing certain
 * of its plane. */
#define LEAST_AREA 1e-6

/* Memory of a call. */
struct work {
    struct vxd_queue *queue;
    struct vxd_svdag_mesh_work device;
    struct vxd_svdag_mesh_item *items;   /* host */
    struct vxd_svdag_mesh_state *before; /* host: of each item */
    uint32_t *sums;                      /* host; n_rows + 1 */
    struct vxd_buffer d_items;
    struct vxd_buffer d_counts;
    struct vxd_buffer d_scratch;
    struct vxd_buffer d_voxels;
    struct vxd_buffer d_values;
};

/* --- preparing a triangle -------------------------------------------------------------------- */

static void set_plane(struct vxd_svdag_mesh_item *item, const double extent[3])
{
    double e[2][3];
    double n[3];
    double longest = 0;
    int w = 0;

    for (int k = 0; k < 3; k++) {
        e[0][k] = item->p[1][k] - item->p[0][k];
        e[1][k] = item->p[2][k] - item->p[0][k];
        longest = fmax(longest, extent[k]);
    }
    for (int k = 0; k < 3; k++) {
        int i = (k + 1) % 3;
        int j = (k + 2) % 3;

        n[k] = e[0][i] * e[1][j] - e[0][j] * e[1][i];
        w = fabs(n[k]) > fabs(n[w]) ? k : w;
    }
    item->has_plane = fabs(n[w]) > LEAST_AREA * longest * longest;
    if (item->has_plane) {
        /* Rows go along the longer one of the plane's two axes. */
        int i = (w + 1) % 3;
        int j = (w + 2) % 3;

        item->w = (uint8_t)w;
        item->v = (uint8_t)(extent[i] > extent[j] ? i : j);
        item->u = (uint8_t)(extent[i] > extent[j] ? j : i);
        memcpy(item->normal, n, sizeof n);
        item->plane[0] = -n[item->u] / n[w];
        item->plane[1] = -n[item->v] / n[w];
    } else {
        /* Nearly a line: along its longest axis each row has a few voxels. */
        int v = extent[1] > extent[0] ? 1 : 0;

        v = extent[2] > extent[v] ? 2 : v;
        item->v = (uint8_t)v;
        item->u = (uint8_t)((v + 1) % 3);
        item->w = (uint8_t)((v + 2) % 3);
    }
}

static void set_slopes(struct vxd_svdag_mesh_item *item)
{
    for (int i = 0; i < 3; i++) {
        const double *a = item->p[i];
        const double *b = item->p[(i + 1) % 3];
        double along = b[item->v] - a[item->v];

        item->slope[i][0] = along != 0 ? (b[item->u] - a[item->u]) / along : 0;
        item->slope[i][1] = along != 0 ? (b[item->w] - a[item->w]) / along : 0;
    }
}

/* Prepares the next triangle from its next row on. False: no part of it is in the scene. */
static bool prepare(const struct vxd_svdag_mesh *mesh, struct vxd_svdag_mesh_state *state,
                    int64_t side, struct vxd_svdag_mesh_item *item)
{
    const uint32_t *corners = mesh->triangles + 3 * state->triangle;
    double low[3], extent[3];
    double begin, end;

    *item = (struct vxd_svdag_mesh_item){
        .value = mesh->values != NULL ? mesh->values[state->triangle] : 0};
    for (int k = 0; k < 3; k++) {
        double high = -INFINITY;

        low[k] = INFINITY;
        for (int m = 0; m < 3; m++) {
            double x = mesh->vertices[3 * (size_t)corners[m] + (size_t)k];

            if (!(fabs(x) <= VXD_SVDAG_MESH_FAR)) {
                state->n_non_finite++;
                return false;
            }
            item->p[m][k] = x;
            low[k] = fmin(low[k], x);
            high = fmax(high, x);
        }
        extent[k] = high - low[k];
        if (high < 0 || low[k] >= (double)side) {
            state->n_outside++;
            return false;
        }
    }
    set_plane(item, extent);
    set_slopes(item);
    begin = fmax(floor(low[item->v]), 0);
    end = fmin(floor(low[item->v] + extent[item->v]), (double)(side - 1));
    item->low_row = (int32_t)begin + (int32_t)state->row;
    item->n_rows = (uint32_t)(end - begin) + 1 - state->row;
    return true;
}

/* --- a call ---------------------------------------------------------------------------------- */

static enum vxd_status check(const struct vxd_svdag_format *format,
                             const struct vxd_svdag_mesh *mesh,
                             const struct vxd_svdag_mesh_state *state,
                             struct vxd_err *err)
{
    if (format->depth < VXD_SVDAG_MIN_DEPTH || format->depth > VXD_SVDAG_MAX_DEPTH) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "depth", "is %d, must be %d to %d",
                        format->depth, VXD_SVDAG_MIN_DEPTH, VXD_SVDAG_MAX_DEPTH);
    }
    if (mesh->rule != VXD_SVDAG_MESH_CONSERVATIVE && mesh->rule != VXD_SVDAG_MESH_THIN) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "rule", "%d is none", (int)mesh->rule);
    }
    for (size_t i = 3 * state->triangle; i < 3 * mesh->n; i++) {
        if (mesh->triangles[i] >= mesh->n_vertices) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "triangles",
                            "triangle %zu has vertex %u of %zu", i / 3,
                            mesh->triangles[i], mesh->n_vertices);
        }
    }
    return VXD_OK;
}

/* About how many voxels of the scene a row of a triangle has: the columns of its plane that the triangle
 * covers, and those of its border, each with what the plane rises over it. */
static double guess_row(const struct vxd_svdag_mesh_item *item, int64_t side)
{
    double a[2] = {item->p[1][item->u] - item->p[0][item->u],
                   item->p[1][item->v] - item->p[0][item->v]};
    double b[2] = {item->p[2][item->u] - item->p[0][item->u],
                   item->p[2][item->v] - item->p[0][item->v]};
    double along = fmax(fmax(fabs(a[1]), fabs(b[1])), fabs(a[1] - b[1]));
    double columns = fabs(a[0] * b[1] - a[1] * b[0]) / 2 / fmax(along, 1) + 1;

    columns = fmin(columns, (double)side);
    return columns * (1 + fabs(item->plane[0]) + fabs(item->plane[1]));
}

/* Prepares so many triangles as fit. *next is the state after them. */
static void gather(struct work *work, const struct vxd_svdag_mesh *mesh,
                   struct vxd_svdag_mesh_state *next)
{
    struct vxd_svdag_mesh_work *device = &work->device;
    double n_guessed = 0;

    while (next->triangle < mesh->n && device->n_items < MOST_ITEMS &&
           device->n_rows < MOST_ROWS && n_guessed < MOST_GUESSED) {
        struct vxd_svdag_mesh_item *item = &work->items[device->n_items];
        uint32_t left = MOST_ROWS - device->n_rows;
        double row_voxels;
        double most;

        work->before[device->n_items] = *next;
        if (!prepare(mesh, next, device->side, item)) {
            next->triangle++;
            next->row = 0;
            continue;
        }
        item->first_row = device->n_rows;
        row_voxels = guess_row(item, device->side);
        most = floor((MOST_GUESSED - n_guessed) / row_voxels) + 1;
        left = most < left ? (uint32_t)most : left;
        if (item->n_rows > left) {
            next->row += left;
            item->n_rows = left;
        } else {
            next->triangle++;
            next->row = 0;
        }
        n_guessed += row_voxels * item->n_rows;
        device->n_rows += item->n_rows;
        device->n_items++;
    }
}

static enum vxd_status count(struct work *work, struct vxd_err *err)
{
    struct vxd_svdag_mesh_work *device = &work->device;
    struct vxd_queue *queue = work->queue;
    size_t n = device->n_rows;
    size_t n_scratch = vxd_scan_scratch_bytes(queue, n);
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, device->n_items * sizeof *work->items, &work->d_items,
                             err));
    VXD_TRY(vxd_device_alloc(queue, (n + 1) * sizeof(uint32_t), &work->d_counts, err));
    VXD_TRY(vxd_device_alloc(queue, n_scratch, &work->d_scratch, err));
    device->items = work->d_items.ptr;
    device->counts = work->d_counts.ptr;
    VXD_TRY(vxd_queue_copy(queue, work->d_items.ptr, work->items,
                           device->n_items * sizeof *work->items, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_svdag_mesh_count)(queue, device, err));
    VXD_TRY(vxd_scan_exclusive(queue, device->counts, device->counts, n,
                               work->d_scratch.ptr, n_scratch, err));
    VXD_TRY(vxd_queue_copy(queue, work->sums, device->counts, (n + 1) * sizeof(uint32_t),
                           err));
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

/* Takes rows off the end until the others have at most MOST_VOXELS voxels, or one is left, and sets
 * the state to after them. A row has at most some ten million voxels, so the sums of MOST_ROWS of
 * them may wrap around: they are looked at from the beginning. */
static void limit_rows(struct work *work, struct vxd_svdag_mesh_state *next)
{
    struct vxd_svdag_mesh_work *device = &work->device;
    uint32_t n = 1;
    uint32_t i;

    while (n < device->n_rows && work->sums[n + 1] >= work->sums[n] &&
           work->sums[n + 1] <= MOST_VOXELS) {
        n++;
    }
    if (n < device->n_rows) {
        device->n_rows = n;
        i = vxd_svdag_mesh_find(&(struct vxd_svdag_mesh_work){.items = work->items,
                                                              .n_items = device->n_items},
                                n);
        *next = work->before[i];
        next->row += n - work->items[i].first_row;
    }
    next->n_voxels += work->sums[n];
}

static enum vxd_status write_list(struct work *work, bool has_values,
                                  const struct vxd_svdag_format *format,
                                  struct vxd_svdag_voxel_list *list, struct vxd_err *err)
{
    struct vxd_svdag_mesh_work *device = &work->device;
    struct vxd_queue *queue = work->queue;
    size_t n = work->sums[device->n_rows];
    uint64_t n_outside = 0;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n * 3 * sizeof(int32_t), &work->d_voxels, err));
    device->voxels = work->d_voxels.ptr;
    if (has_values) {
        VXD_TRY(vxd_device_alloc(queue, n * sizeof(uint16_t), &work->d_values, err));
        device->values = work->d_values.ptr;
    }
    if (n > 0) {
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_svdag_mesh_write)(queue, device, err));
    }
    VXD_TRY(vxd_svdag_list_voxels(queue, format, device->voxels, device->values, n, list,
                                  &n_outside, err));
    status = vxd_queue_wait(queue, err);
out:
    return status;
}

static enum vxd_status open_work(struct work *work, struct vxd_err *err)
{
    work->items = malloc(MOST_ITEMS * sizeof *work->items);
    work->before = malloc(MOST_ITEMS * sizeof *work->before);
    work->sums = malloc((MOST_ROWS + 1) * sizeof *work->sums);
    return work->items != NULL && work->before != NULL && work->sums != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for triangles");
}

static void close_work(struct work *work)
{
    /* Copies to and from the arrays may still be queued where something failed. */
    (void)vxd_queue_wait(work->queue, NULL);
    vxd_device_free(work->queue, &work->d_values);
    vxd_device_free(work->queue, &work->d_voxels);
    vxd_device_free(work->queue, &work->d_scratch);
    vxd_device_free(work->queue, &work->d_counts);
    vxd_device_free(work->queue, &work->d_items);
    free(work->sums);
    free(work->before);
    free(work->items);
}

enum vxd_status vxd_svdag_list_triangles(struct vxd_queue *queue,
                                         const struct vxd_svdag_format *format,
                                         const struct vxd_svdag_mesh *mesh,
                                         struct vxd_svdag_mesh_state *state,
                                         struct vxd_svdag_voxel_list *list,
                                         struct vxd_err *err)
{
    struct work work = {.queue = queue};
    struct vxd_svdag_mesh_state next = *state;
    enum vxd_status status;

    *list = (struct vxd_svdag_voxel_list){0};
    VXD_TRY(check(format, mesh, state, err));
    VXD_TRY(open_work(&work, err));
    work.device.side = (int64_t)1 << format->depth;
    work.device.rule = mesh->rule;
    gather(&work, mesh, &next);
    if (work.device.n_rows > 0) {
        VXD_TRY(count(&work, err));
        limit_rows(&work, &next);
        VXD_TRY(write_list(&work, mesh->values != NULL, format, list, err));
    }
    *state = next;
out:
    close_work(&work);
    return status;
}
