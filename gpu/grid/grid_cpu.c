// SPDX-License-Identifier: Apache-2.0
/* Costs, slopes and marks on the CPU: a task is a few rows. Costs are made a row at a time, so that
 * the compiler takes eight cells an instruction. */
#include "gpu/grid/grid_backends.h"

enum {
    GRAIN = 8, /* rows of a task */
    WORDS_GRAIN = 1024
};

static void slope_rows(void *context, size_t begin, size_t end)
{
    const struct vxd_grid_slope_call *call = context;

    for (size_t y = call->rows.begin + begin; y < call->rows.begin + end; y++) {
        for (uint32_t x = 0; x < call->n_x; x++) {
            call->slope[y * call->n_x + x] =
                vxd_grid_slope_of(call->top, call->n_x, call->n_y, x, (uint32_t)y);
        }
    }
}

static enum vxd_status slope_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_grid_slope_call call = *(const struct vxd_grid_slope_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.rows.end - call.rows.begin, GRAIN, slope_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_grid_slope_cpu(struct vxd_queue *queue,
                                   const struct vxd_grid_slope_call *call,
                                   struct vxd_err *err)
{
    return vxd_queue_push(queue, slope_job, call, sizeof *call, err);
}

static void squares_rows(void *context, size_t begin, size_t end)
{
    const struct vxd_grid_squares_call *call = context;
    uint32_t beyond = call->radius + 1;

    for (size_t y = call->rows.begin + begin; y < call->rows.begin + end; y++) {
        const uint8_t *states = call->states + y * call->n_x;
        uint16_t *squares = call->squares + y * call->n_x;
        uint32_t distance = beyond;

        /* To the obstacle on the left; then to the nearer one of both sides. */
        for (uint32_t x = 0; x < call->n_x; x++) {
            distance = vxd_grid_is_lethal(states[x], call->unknown) ? 0 : distance + 1;
            distance = distance < beyond ? distance : beyond;
            squares[x] = (uint16_t)distance;
        }
        distance = beyond;
        for (uint32_t x = call->n_x; x-- > 0;) {
            distance = distance + 1 < squares[x] ? distance + 1 : squares[x];
            squares[x] = (uint16_t)(distance * distance);
        }
    }
}

static enum vxd_status squares_job(struct vxd_pool *pool, const void *args,
                                   struct vxd_err *err)
{
    struct vxd_grid_squares_call call = *(const struct vxd_grid_squares_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.rows.end - call.rows.begin, GRAIN, squares_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_grid_row_squares_cpu(struct vxd_queue *queue,
                                         const struct vxd_grid_squares_call *call,
                                         struct vxd_err *err)
{
    return vxd_queue_push(queue, squares_job, call, sizeof *call, err);
}

/* Cells of a row that are made together, so that what is found stays in the first cache. */
enum {
    COSTS_CELLS = 1024
};

/* Lowers squares by those of another row. The sum of two fits: (radius + 1)^2 + radius^2. */
static void lower(uint16_t *restrict nearest, const uint16_t *restrict squares, size_t n,
                  unsigned square)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t other = (uint16_t)(squares[i] + square);

        nearest[i] = nearest[i] < other ? nearest[i] : other;
    }
}

static void costs_part(const struct vxd_grid_costs_call *call, uint32_t y, uint32_t x,
                       size_t n)
{
    uint32_t radius = call->radius;
    size_t row = (size_t)y * call->n_x + x;
    uint16_t nearest[COSTS_CELLS];

    memcpy(nearest, call->squares + row, n * sizeof nearest[0]);
    for (uint32_t d = 1; d <= radius; d++) {
        if (d <= y) {
            lower(nearest, call->squares + row - (size_t)d * call->n_x, n, d * d);
        }
        if (d < call->n_y - y) {
            lower(nearest, call->squares + row + (size_t)d * call->n_x, n, d * d);
        }
    }
    for (size_t i = 0; i < n; i++) {
        call->out[row + i] = vxd_grid_cost(call->costs, radius, nearest[i],
                                           call->states[row + i], call->unknown);
    }
}

static void costs_rows(void *context, size_t begin, size_t end)
{
    const struct vxd_grid_costs_call *call = context;

    for (size_t y = call->rows.begin + begin; y < call->rows.begin + end; y++) {
        for (uint32_t x = 0; x < call->n_x; x += COSTS_CELLS) {
            size_t n = call->n_x - x < COSTS_CELLS ? call->n_x - x : COSTS_CELLS;

            costs_part(call, (uint32_t)y, x, n);
        }
    }
}

static enum vxd_status costs_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_grid_costs_call call = *(const struct vxd_grid_costs_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.rows.end - call.rows.begin, GRAIN, costs_rows, &call);
    return VXD_OK;
}

enum vxd_status vxd_grid_costs_cpu(struct vxd_queue *queue,
                                   const struct vxd_grid_costs_call *call,
                                   struct vxd_err *err)
{
    return vxd_queue_push(queue, costs_job, call, sizeof *call, err);
}

static void mark_words(void *context, size_t begin, size_t end)
{
    const struct vxd_grid_marks_call *call = context;

    for (size_t w = call->words.begin + begin; w < call->words.begin + end; w++) {
        uint32_t first = (uint32_t)w * 32;
        uint32_t n = call->n_cells - first < 32 ? call->n_cells - first : 32;
        uint32_t word = 0;

        for (uint32_t i = 0; i < n; i++) {
            word |= vxd_grid_is_frontier(call->states, call->n, first + i) ? 1u << i : 0;
        }
        call->marks[w] = word;
    }
}

static enum vxd_status marks_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_grid_marks_call call = *(const struct vxd_grid_marks_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.words.end - call.words.begin, WORDS_GRAIN, mark_words,
                     &call);
    return VXD_OK;
}

enum vxd_status vxd_grid_mark_frontiers_cpu(struct vxd_queue *queue,
                                            const struct vxd_grid_marks_call *call,
                                            struct vxd_err *err)
{
    return vxd_queue_push(queue, marks_job, call, sizeof *call, err);
}
