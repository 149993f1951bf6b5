// SPDX-License-Identifier: Apache-2.0
/* Activations that do not fit fp16 become infinite, and NaN a few layers on. Outputs that are not finite
 * are found on the host; then, and only then, the network runs once more and counts in each layer what is
 * not finite, so that the reply names the layer. */
#include <string.h>

#include "gpu/sparse/executor/executor.h"
#include "server/service/infer/infer.h"

/* Whether no exponent is the one of infinities and NaN; the loops have no branches. */
static bool are_floats_finite(const uint8_t *bytes, size_t n)
{
    uint32_t n_bad = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
        n_bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return n_bad == 0;
}

static bool are_halves_finite(const uint8_t *bytes, size_t n)
{
    uint32_t n_bad = 0;

    for (size_t i = 0; i < n; i++) {
        uint16_t bits;

        memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
        n_bad |= (bits & 0x7c00u) == 0x7c00u;
    }
    return n_bad == 0;
}

/* Finds the rows of an item, all rows for -1. */
static void find_rows(const struct vxd_infer_job *job,
                      const struct vxd_model_output *model,
                      const struct vxd_infer_output *output, int item, size_t *first,
                      size_t *end)
{
    *first = 0;
    *end = output->n_rows;
    if (item < 0) {
        return;
    }
    *first = (size_t)item;
    *end = (size_t)item + 1;
    if (model->kind == VXD_MODEL_POINTS) {
        *first = job->clouds.starts[item];
        *end = job->clouds.starts[item + 1];
    } else if (model->kind == VXD_MODEL_VOXELS) {
        *first = (size_t)output->first_rows[item];
        *end = (size_t)output->first_rows[item + 1];
    }
}

bool vxd_infer_is_finite(const struct vxd_infer_job *job, int item)
{
    const struct vxd_model *model = job->network->model;
    bool finite = true;

    for (size_t i = 0; i < vxd_model_n_outputs(model) && finite; i++) {
        const struct vxd_infer_output *output = &job->outputs[i];
        const uint8_t *bytes = output->values.bytes;
        size_t row_bytes;
        size_t first;
        size_t end;

        if (!output->is_selected || output->n_rows == 0 || bytes == NULL) {
            continue;
        }
        row_bytes = output->values.n_bytes / output->n_rows;
        find_rows(job, vxd_model_output(model, i), output, item, &first, &end);
        bytes += first * row_bytes;
        finite =
            job->dtype == VXD_FLOAT16
                ? are_halves_finite(bytes, (end - first) * row_bytes / sizeof(uint16_t))
                : are_floats_finite(bytes, (end - first) * row_bytes / sizeof(float));
    }
    return finite;
}

bool vxd_infer_all_finite(const struct vxd_request *leader)
{
    bool finite = true;

    for (const struct vxd_request *r = leader; r != NULL && finite;
         r = vxd_infer_next(leader, r)) {
        finite = vxd_infer_is_finite(r->state, -1);
    }
    return finite;
}

enum vxd_status vxd_infer_begin_trace(struct vxd_request *leader, struct vxd_queue *queue,
                                      struct vxd_err *err)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    const struct vxd_net_input input = {.coords = batch->voxels.coords,
                                        .features = batch->features,
                                        .n_rows = batch->voxel_starts[batch->n_items],
                                        .n_samples = (int)batch->n_items,
                                        .counts_overflow = true};
    enum vxd_status status;

    batch->overflows = true;
    batch->stage = VXD_INFER_TRACE;
    vxd_net_run_destroy(queue, batch->run); /* the outputs were copied from it */
    batch->run = NULL;
    VXD_TRY(vxd_net_run_create(queue, batch->network->net, &input, &batch->run, err));
    VXD_TRY(vxd_net_run_step(queue, batch->run, &leader->more, err));
out:
    return status;
}

enum vxd_status vxd_infer_end_trace(struct vxd_request *leader, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    uint32_t n_values;

    return vxd_net_run_find_overflow(queue, batch->run, &batch->overflow_layer, &n_values,
                                     err);
}
