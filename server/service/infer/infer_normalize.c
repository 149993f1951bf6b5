// SPDX-License-Identifier: Apache-2.0
/* Networks that pick, centre or scale their points (SVT-Net's 4096 in [-1, 1]) do so on
 * the host, since few points are kept. */
#include <math.h>
#include <string.h>

#include "server/service/infer/infer.h"
#include "server/service/service.h"

static bool is_in_range(const struct vxd_model_normalize *how, const float *p)
{
    for (int i = 0; i < 3 && how->has_range; i++) {
        if (!(p[i] >= how->range_lo_m[i] && p[i] < how->range_hi_m[i])) {
            return false;
        }
    }
    return true;
}

static void count_dropped(const struct vxd_model_normalize *how, const float *positions,
                          size_t n, size_t n_kept, struct vxd_infer_dropped *out)
{
    uint32_t n_left = 0;

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n; i++) {
        const float *p = positions + 3 * i;

        if (!isfinite(p[0]) || !isfinite(p[1]) || !isfinite(p[2])) {
            out->n_non_finite++;
        } else if (!is_in_range(how, p)) {
            out->n_out_of_range++;
        } else {
            n_left++;
        }
    }
    out->n_not_picked = n_left - (uint32_t)n_kept;
}

/* Copies the features of the kept points, except for channels of the position, which get
 * the normalized one. */
static void pick_features(const struct vxd_model_input *input, const float *raw,
                          const float *normal, const uint32_t *picked, size_t n,
                          float *out)
{
    size_t n_features = (size_t)input->n_features;

    for (size_t i = 0; i < n; i++) {
        memcpy(out + i * n_features, raw + picked[i] * n_features,
               n_features * sizeof(float));
        for (size_t c = 0; c < n_features; c++) {
            const struct vxd_model_feature *feature = &input->features[c];
            double scale = feature->scale == 0 ? 1 : feature->scale;

            if (feature->kind == VXD_CHANNEL_POSITION) {
                double value = (double)normal[3 * i + (size_t)feature->component];

                out[i * n_features + c] = (float)(value * scale + feature->bias);
            }
        }
    }
}

/* Normalizes items one after the other; *picked counts from the batch's first point. */
static void pick_all(struct vxd_request *leader, float *normal, uint32_t *picked)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    const struct vxd_model_normalize *how =
        &vxd_model_input(batch->network->model)->normalize;
    size_t n_all = 0;
    size_t item = 0;

    for (struct vxd_request *r = leader; r != NULL; r = vxd_infer_next(leader, r)) {
        const struct vxd_infer_job *job = r->state;

        for (size_t i = 0; i < job->clouds.n_clouds; i++, item++) {
            size_t first = job->first_point + job->clouds.starts[i];
            size_t n = job->clouds.starts[i + 1] - job->clouds.starts[i];
            size_t n_kept = 0;

            if (n > 0) {
                vxd_model_normalize(how, batch->raw_positions + 3 * first, n,
                                    normal + 3 * n_all, picked + n_all, &n_kept);
                count_dropped(how, batch->raw_positions + 3 * first, n, n_kept,
                              &batch->dropped[item]);
            }
            for (size_t k = 0; k < n_kept; k++) {
                picked[n_all + k] += (uint32_t)first;
            }
            n_all += n_kept;
            batch->starts[item + 1] = (uint32_t)n_all;
        }
    }
}

/* Returns the most points that all items keep together. */
static size_t most_kept(const struct vxd_request *leader)
{
    const struct vxd_infer_batch *batch =
        ((const struct vxd_infer_job *)leader->state)->batch;
    const struct vxd_model_normalize *how =
        &vxd_model_input(batch->network->model)->normalize;
    size_t n = 0;

    for (const struct vxd_request *r = leader; r != NULL; r = vxd_infer_next(leader, r)) {
        const struct vxd_infer_job *job = r->state;

        for (size_t i = 0; i < job->clouds.n_clouds; i++) {
            n += vxd_model_normalized_max(how, job->clouds.starts[i + 1] -
                                                   job->clouds.starts[i]);
        }
    }
    return n;
}

enum vxd_status vxd_infer_pick(struct vxd_request *leader, struct vxd_queue *queue,
                               struct vxd_err *err)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    const struct vxd_model_input *input = vxd_model_input(batch->network->model);
    struct vxd_context *context = vxd_queue_context(queue);
    size_t n_most = most_kept(leader);
    size_t n_columns = 4 + (size_t)input->n_features;
    struct vxd_buffer host = {0};
    float *positions;
    uint32_t *picked;
    size_t n;
    enum vxd_status status;

    /* The host writes to memory of its own, since features follow positions without a gap
     * in the batch's. */
    VXD_TRY(vxd_host_alloc(context, (n_most > 0 ? n_most : 1) * 4 * sizeof(float), &host,
                           err));
    VXD_TRY(vxd_host_alloc(context, (n_most > 0 ? n_most : 1) * n_columns * sizeof(float),
                           &batch->normal_host, err));
    positions = host.ptr;
    picked = (uint32_t *)host.ptr + 3 * n_most;
    pick_all(leader, positions, picked);
    n = batch->starts[batch->n_items];
    if (n > 0) {
        float *to = batch->normal_host.ptr;

        memcpy(to, positions, 3 * n * sizeof *to);
        pick_features(input, batch->raw_features, positions, picked, n, to + 3 * n);
        memcpy(to + (n_columns - 1) * n, picked, n * sizeof *picked);
        batch->picked = (const uint32_t *)(const void *)(to + (n_columns - 1) * n);
    }
out:
    vxd_host_free(context, &host);
    return status;
}

enum vxd_status vxd_infer_spread_inverse(struct vxd_request *leader,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_infer_batch *batch = ((struct vxd_infer_job *)leader->state)->batch;
    size_t n_kept = batch->starts[batch->n_items];
    int32_t *inverse;
    const void *bytes = NULL;
    enum vxd_status status;

    if (batch->n_points == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_host_alloc(vxd_queue_context(queue), batch->n_points * sizeof *inverse,
                           &batch->inverse_host, err));
    inverse = batch->inverse_host.ptr;
    memset(inverse, 0xff, batch->n_points * sizeof *inverse); /* -1 */
    for (size_t i = 0; i < n_kept; i++) {
        inverse[batch->picked[i]] = batch->kept_inverse[i];
    }
    VXD_TRY(vxd_upload(queue, inverse, batch->n_points * sizeof *inverse,
                       &batch->inverse_device, &bytes, err));
    batch->inverse = bytes;
out:
    return status;
}
