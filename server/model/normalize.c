// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "server/model/model.h"

static bool is_kept(const struct vxd_model_normalize *how, const float p[3])
{
    for (int i = 0; i < 3; i++) {
        if (!isfinite(p[i]) || (how->has_range && !(p[i] >= how->range_lo_m[i] &&
                                                    p[i] < how->range_hi_m[i]))) {
            return false;
        }
    }
    return true;
}

size_t vxd_model_normalized_max(const struct vxd_model_normalize *how, size_t n)
{
    return how->n_points > 0 && how->n_points < n ? how->n_points : n;
}

/* Of m points the i * m / n-th stay. The points are walked once, since the next one to
 * stay is known. */
static size_t pick(const struct vxd_model_normalize *how, const float *positions,
                   size_t n, uint32_t *picked)
{
    size_t n_picked = 0;
    size_t next = 0;
    size_t m = 0;
    size_t at = 0;
    size_t n_stay;

    for (size_t i = 0; i < n; i++) {
        m += is_kept(how, positions + 3 * i) ? 1 : 0;
    }
    n_stay = vxd_model_normalized_max(how, m);
    for (size_t i = 0; i < n && n_picked < n_stay; i++) {
        if (!is_kept(how, positions + 3 * i)) {
            continue;
        }
        if (at++ == next) {
            picked[n_picked++] = (uint32_t)i;
            next = (size_t)((uint64_t)n_picked * m / n_stay);
        }
    }
    return n_picked;
}

void vxd_model_normalize(const struct vxd_model_normalize *how, const float *positions,
                         size_t n, float *normal, uint32_t *picked, size_t *n_out)
{
    size_t n_picked = pick(how, positions, n, picked);
    double mean[3] = {0, 0, 0};
    double largest = 0;

    *n_out = n_picked;
    for (size_t i = 0; how->center && i < n_picked; i++) {
        for (int k = 0; k < 3; k++) {
            mean[k] += (double)positions[3 * (size_t)picked[i] + (size_t)k];
        }
    }
    for (int k = 0; n_picked > 0 && k < 3; k++) {
        mean[k] /= (double)n_picked;
    }
    for (size_t i = 0; how->scale_to_one && i < n_picked; i++) {
        for (int k = 0; k < 3; k++) {
            largest =
                fmax(largest, fabs((double)positions[3 * (size_t)picked[i] + (size_t)k] -
                                   mean[k]));
        }
    }
    for (size_t i = 0; i < n_picked; i++) {
        for (int k = 0; k < 3; k++) {
            double value = (double)positions[3 * (size_t)picked[i] + (size_t)k] - mean[k];

            normal[3 * i + (size_t)k] = (float)(largest > 0 ? value / largest : value);
        }
    }
}
