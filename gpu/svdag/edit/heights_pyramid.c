// SPDX-License-Identifier: Apache-2.0
#include "gpu/svdag/edit/shapes_editor.h"

enum vxd_status vxd_svdag_pyramid_make(struct vxd_context *context,
                                       const struct vxd_svdag_heights *field,
                                       struct vxd_buffer *memory,
                                       struct vxd_svdag_pyramid *out, struct vxd_err *err)
{
    size_t n_words = vxd_svdag_pyramid_words(field, &out->n_levels);
    int32_t *words;
    enum vxd_status status;

    if ((size_t)field->n_x * field->n_y <= VXD_SVDAG_PYRAMID_FEW) {
        out->n_levels = 0;
        return VXD_OK;
    }
    status = vxd_host_alloc(context, 2 * n_words * sizeof *words, memory, err);
    if (status != VXD_OK) {
        return status;
    }
    words = memory->ptr;
    for (int number = 0; number < out->n_levels; number++) {
        int level = VXD_SVDAG_PYRAMID_BASE + number;
        uint32_t n_x = vxd_svdag_pyramid_side(field->n_x, level);
        uint32_t n_y = vxd_svdag_pyramid_side(field->n_y, level);
        size_t n = (size_t)n_x * n_y;

        for (uint32_t x = 0; x < n_x; x++) {
            for (uint32_t y = 0; y < n_y; y++) {
                size_t at = (size_t)x * n_y + y;

                vxd_svdag_pyramid_square(field, out, number, x, y, &words[at],
                                         &words[n + at]);
            }
        }
        out->least[number] = words;
        out->most[number] = words + n;
        words += 2 * n;
    }
    return VXD_OK;
}
