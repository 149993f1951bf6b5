// SPDX-License-Identifier: Apache-2.0
#include "gpu/grid/grid.h"

#include <inttypes.h>

#include "gpu/grid/grid_backends.h"
#include "gpu/svdag/store/store.h"

static enum vxd_status need(const void *array, const char *name, struct vxd_err *err)
{
    return array != NULL ? VXD_OK : vxd_fail(err, VXD_INVALID_ARGUMENT, name, "missing");
}

enum vxd_status vxd_grid_check_box(const struct vxd_grid_box *box, struct vxd_err *err)
{
    int64_t n[2];

    for (int axis = 0; axis < 3; axis++) {
        int64_t length;

        if (box->low[axis] >= box->high[axis]) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "high",
                            "the grid is empty along %c: its box goes from voxel %" PRId64
                            " to %" PRId64,
                            "xyz"[axis], box -> low[axis], box -> high[axis]);
        }
        if (axis == 2) {
            break;
        }
        if (__builtin_sub_overflow(box->high[axis], box->low[axis], &length) ||
            length > VXD_GRID_MAX_SIDE) {
            return vxd_fail(
                err, VXD_INVALID_ARGUMENT, "high",
                "the grid has more than %d cells along %c; take a smaller box",
                VXD_GRID_MAX_SIDE, "xyz"[axis]);
        }
        n[axis] = length;
    }
    if (n[0] * n[1] > VXD_GRID_MAX_CELLS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "high",
                        "the grid has %" PRId64 " x %" PRId64 " cells, at most %" PRId64
                        " are possible; take a smaller box",
                        n[0], n[1], VXD_GRID_MAX_CELLS);
    }
    return VXD_OK;
}

static enum vxd_status check_rows(const struct vxd_grid_rows *rows, uint64_t n_y,
                                  const char *name, struct vxd_err *err)
{
    if (rows->begin > rows->end || rows->end > n_y) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, name,
                        "%" PRIu32 " to %" PRIu32 " of %" PRIu64, rows->begin, rows->end,
                        n_y);
    }
    return VXD_OK;
}

static enum vxd_status check_sides(uint32_t n_x, uint32_t n_y,
                                   const struct vxd_grid_rows *rows, struct vxd_err *err)
{
    const struct vxd_grid_box box = {{0, 0, 0}, {n_x, n_y, 1}};
    enum vxd_status status = vxd_grid_check_box(&box, err);

    return status == VXD_OK ? check_rows(rows, n_y, "rows", err) : status;
}

/* Checks a box and its rows, and makes the call of their columns; the area may be empty. */
static enum vxd_status begin_columns(const struct vxd_svdag *svdag, uint32_t root,
                                     const struct vxd_grid_box *box,
                                     const struct vxd_grid_rows *rows,
                                     struct vxd_grid_columns_call *call,
                                     struct vxd_err *err)
{
    int64_t low[3];
    int64_t high[3];
    enum vxd_status status;

    VXD_TRY(vxd_grid_check_box(box, err));
    VXD_TRY(check_rows(rows, (uint64_t)(box->high[1] - box->low[1]), "rows", err));
    for (int axis = 0; axis < 3; axis++) {
        low[axis] = box->low[axis];
        high[axis] = box->high[axis];
    }
    low[1] = box->low[1] + rows->begin;
    high[1] = box->low[1] + rows->end;
    memset(call, 0, sizeof *call);
    call->view = svdag->view;
    call->root = root;
    call->n_x = (uint32_t)(box->high[0] - box->low[0]);
    call->low[0] = box->low[0];
    call->low[1] = box->low[1];
    call->rows = *rows;
    call->area = vxd_svdag_area_of_box(low, high, svdag->view.depth);
out:
    return status;
}

enum vxd_status vxd_grid_states(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                uint32_t root, const struct vxd_grid_box *box,
                                const struct vxd_grid_rows *rows, uint8_t *states,
                                struct vxd_err *err)
{
    struct vxd_grid_columns_call call;
    enum vxd_status status;

    VXD_TRY(begin_columns(svdag, root, box, rows, &call, err));
    VXD_TRY(need(states, "states", err));
    if (rows->begin == rows->end) {
        return VXD_OK;
    }
    call.states = states;
    VXD_TRY(vxd_queue_fill(queue, states + (size_t)rows->begin * call.n_x,
                           VXD_SVDAG_UNKNOWN,
                           (size_t)(rows->end - rows->begin) * call.n_x, err));
    if (!vxd_svdag_area_is_empty(&call.area)) {
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_grid_columns)(queue, &call, err));
    }
out:
    return status;
}

enum vxd_status vxd_grid_heights(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                 uint32_t root, const struct vxd_grid_box *box,
                                 const struct vxd_grid_rows *rows,
                                 const struct vxd_grid_heights *heights,
                                 struct vxd_err *err)
{
    struct vxd_grid_columns_call call;
    enum vxd_status status;

    VXD_TRY(begin_columns(svdag, root, box, rows, &call, err));
    VXD_TRY(need(heights->low, "low", err));
    VXD_TRY(need(heights->high, "high", err));
    VXD_TRY(need(heights->mean, "mean", err));
    VXD_TRY(need(heights->top, "top", err));
    if (rows->begin == rows->end) {
        return VXD_OK;
    }
    call.heights = *heights;
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_grid_columns)(queue, &call, err));
out:
    return status;
}

enum vxd_status vxd_grid_slope(struct vxd_queue *queue, const int32_t *top, uint32_t n_x,
                               uint32_t n_y, const struct vxd_grid_rows *rows,
                               float *slope, struct vxd_err *err)
{
    const struct vxd_grid_slope_call call = {top, n_x, n_y, *rows, slope};
    enum vxd_status status;

    VXD_TRY(check_sides(n_x, n_y, rows, err));
    VXD_TRY(need(top, "top", err));
    VXD_TRY(need(slope, "slope", err));
    if (rows->begin < rows->end) {
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_grid_slope)(queue, &call, err));
    }
out:
    return status;
}

static enum vxd_status check_number(double value, double low, const char *field,
                                    struct vxd_err *err)
{
    /* NaN fails every comparison. */
    if (!(value >= low && value <= 1e9)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "%g; it is a number from %g to 1e9", value, low);
    }
    return VXD_OK;
}

enum vxd_status vxd_grid_cost_table(const struct vxd_grid_inflation *inflation,
                                    uint32_t *radius, uint8_t *costs, struct vxd_err *err)
{
    double cells;
    enum vxd_status status;

    VXD_TRY(check_number(inflation->cell_m, 1e-9, "cell_m", err));
    VXD_TRY(check_number(inflation->inscribed_m, 0, "inscribed_m", err));
    VXD_TRY(check_number(inflation->inflation_m, 0, "inflation_m", err));
    VXD_TRY(check_number(inflation->scale, 0, "scale", err));
    if (inflation->inflation_m < inflation->inscribed_m) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "inflation_m",
                        "%g m is less than the robot's radius, %g m",
                        inflation->inflation_m, inflation->inscribed_m);
    }
    cells = ceil(inflation->inflation_m / inflation->cell_m);
    if (cells > VXD_GRID_MAX_RADIUS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "inflation_m",
                        "%g m are %.0f cells of %g m, at most %d are possible",
                        inflation->inflation_m, cells, inflation->cell_m,
                        VXD_GRID_MAX_RADIUS);
    }
    *radius = (uint32_t)cells;
    costs[0] = VXD_COST_LETHAL;
    for (uint32_t square = 1; square <= *radius * *radius; square++) {
        double d = sqrt((double)square) * inflation->cell_m;

        costs[square] = d <= inflation->inscribed_m
                            ? (uint8_t)VXD_COST_INSCRIBED
                            : (uint8_t)(252.0 * exp(-inflation->scale *
                                                    (d - inflation->inscribed_m)));
    }
out:
    return status;
}

static enum vxd_status check_radius(uint32_t radius, struct vxd_err *err)
{
    if (radius > VXD_GRID_MAX_RADIUS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "radius",
                        "%" PRIu32 " cells, at most %d are possible", radius,
                        VXD_GRID_MAX_RADIUS);
    }
    return VXD_OK;
}

enum vxd_status vxd_grid_row_squares(struct vxd_queue *queue, const uint8_t *states,
                                     uint32_t n_x, uint32_t n_y,
                                     const struct vxd_grid_rows *rows, uint32_t radius,
                                     enum vxd_grid_unknown unknown, uint16_t *squares,
                                     struct vxd_err *err)
{
    const struct vxd_grid_squares_call call = {states, n_x,     *rows,
                                               radius, unknown, squares};
    enum vxd_status status;

    VXD_TRY(check_sides(n_x, n_y, rows, err));
    VXD_TRY(check_radius(radius, err));
    VXD_TRY(need(states, "states", err));
    VXD_TRY(need(squares, "squares", err));
    if (rows->begin < rows->end) {
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_grid_row_squares)(queue, &call, err));
    }
out:
    return status;
}

enum vxd_status vxd_grid_costs(struct vxd_queue *queue, const uint8_t *states,
                               const uint16_t *squares, uint32_t n_x, uint32_t n_y,
                               const struct vxd_grid_rows *rows, uint32_t radius,
                               enum vxd_grid_unknown unknown, const uint8_t *costs,
                               uint8_t *out, struct vxd_err *err)
{
    const struct vxd_grid_costs_call call = {states, squares, n_x,   n_y, *rows,
                                             radius, unknown, costs, out};
    enum vxd_status status;

    VXD_TRY(check_sides(n_x, n_y, rows, err));
    VXD_TRY(check_radius(radius, err));
    VXD_TRY(need(states, "states", err));
    VXD_TRY(need(squares, "squares", err));
    VXD_TRY(need(costs, "costs", err));
    VXD_TRY(need(out, "out", err));
    if (rows->begin < rows->end) {
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_grid_costs)(queue, &call, err));
    }
out:
    return status;
}

enum vxd_status vxd_grid_mark_frontiers(struct vxd_queue *queue, const uint8_t *states,
                                        const uint32_t n[3],
                                        const struct vxd_grid_rows *words,
                                        uint32_t *marks, struct vxd_err *err)
{
    struct vxd_grid_marks_call call = {states, {n[0], n[1], n[2]}, 0, *words, marks};
    uint64_t n_cells = (uint64_t)n[0] * n[1];
    enum vxd_status status;

    if (n[0] == 0 || n[1] == 0 || n[2] == 0 || n_cells > (uint64_t)VXD_GRID_MAX_CELLS ||
        n_cells * n[2] > (uint64_t)VXD_GRID_MAX_CELLS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n",
                        "%" PRIu32 " x %" PRIu32 " x %" PRIu32 " cells; 1 to %" PRId64
                        " are possible",
                        n[0], n[1], n[2], VXD_GRID_MAX_CELLS);
    }
    call.n_cells = (uint32_t)(n_cells * n[2]);
    VXD_TRY(check_rows(words, (call.n_cells + 31u) / 32, "words", err));
    VXD_TRY(need(states, "states", err));
    VXD_TRY(need(marks, "marks", err));
    if (words->begin < words->end) {
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_grid_mark_frontiers)(queue, &call, err));
    }
out:
    return status;
}
