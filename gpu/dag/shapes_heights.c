// SPDX-License-Identifier: Apache-2.0
#include "gpu/dag/shapes.h"

/* All levels of a field: words each of least and most takes. */
static size_t count_words(const struct vxd_dag_heights *field, int *n_levels)
{
    size_t n = 0;
    size_t n_squares;

    *n_levels = 0;
    do {
        int level = VXD_DAG_PYRAMID_BASE + *n_levels;

        n_squares = (size_t)vxd_dag_pyramid_side(field->n_x, level) *
                    vxd_dag_pyramid_side(field->n_y, level);
        n += n_squares;
        (*n_levels)++;
    } while (n_squares > 1);
    return n;
}

static int32_t cut(int64_t height)
{
    return (int32_t)(height > INT32_MAX   ? INT32_MAX
                     : height < INT32_MIN ? INT32_MIN
                                          : height);
}

/* One square of the first level, of the cells, or of a later one, of four squares below. */
static void fill_square(const struct vxd_dag_heights *field,
                        const struct vxd_dag_pyramid *pyramid, int number, uint32_t x,
                        uint32_t y, int32_t *least, int32_t *most)
{
    int level = VXD_DAG_PYRAMID_BASE + number;
    int shift = number == 0 ? VXD_DAG_PYRAMID_BASE : 1;
    uint32_t n_x = number == 0 ? field->n_x : vxd_dag_pyramid_side(field->n_x, level - 1);
    uint32_t n_y = number == 0 ? field->n_y : vxd_dag_pyramid_side(field->n_y, level - 1);
    uint32_t end_x = (x + 1) << shift < n_x ? (x + 1) << shift : n_x;
    uint32_t end_y = (y + 1) << shift < n_y ? (y + 1) << shift : n_y;

    *least = INT32_MAX;
    *most = INT32_MIN;
    for (uint32_t i = x << shift; i < end_x; i++) {
        for (uint32_t j = y << shift; j < end_y; j++) {
            size_t at = (size_t)i * n_y + j;
            int32_t low =
                number == 0 ? cut(field->heights[at]) : pyramid->least[number - 1][at];
            int32_t high = number == 0 ? low : pyramid->most[number - 1][at];

            *least = low < *least ? low : *least;
            *most = high > *most ? high : *most;
        }
    }
}

enum vxd_status vxd_dag_pyramid_make(struct vxd_context *context,
                                     const struct vxd_dag_heights *field,
                                     struct vxd_buffer *memory,
                                     struct vxd_dag_pyramid *out, struct vxd_err *err)
{
    size_t n_words = count_words(field, &out->n_levels);
    int32_t *words;
    enum vxd_status status;

    if ((size_t)field->n_x * field->n_y <= VXD_DAG_PYRAMID_FEW) {
        out->n_levels = 0;
        return VXD_OK;
    }
    status = vxd_host_alloc(context, 2 * n_words * sizeof *words, memory, err);
    if (status != VXD_OK) {
        return status;
    }
    words = memory->ptr;
    for (int number = 0; number < out->n_levels; number++) {
        int level = VXD_DAG_PYRAMID_BASE + number;
        uint32_t n_x = vxd_dag_pyramid_side(field->n_x, level);
        uint32_t n_y = vxd_dag_pyramid_side(field->n_y, level);
        size_t n = (size_t)n_x * n_y;

        for (uint32_t x = 0; x < n_x; x++) {
            for (uint32_t y = 0; y < n_y; y++) {
                size_t at = (size_t)x * n_y + y;

                fill_square(field, out, number, x, y, &words[at], &words[n + at]);
            }
        }
        out->least[number] = words;
        out->most[number] = words + n;
        words += 2 * n;
    }
    return VXD_OK;
}
