// SPDX-License-Identifier: Apache-2.0
/* From probabilities to steps of log-odds. The step is found by trying many: the largest
 * number becomes MIN_STEPS to 127 steps, and the others are rounded. */
#include <math.h>
#include <string.h>

#include "gpu/occupancy/occupancy.h"

enum {
    MIN_STEPS = 16,
    MAX_STEPS = 127,
    TRIES_A_STEP = 64,
    N_NUMBERS = 5
};

#define MAX_ERROR 0.01

static const struct vxd_occupancy_odds defaults = {0.7, 0.4, 0.1192, 0.971, 0.5, 0};

static double log_odds(double p)
{
    return log(p / (1 - p));
}

static enum vxd_status check(double p, double above, double below, const char *field,
                             struct vxd_err *err)
{
    return p > above && p < below
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                          "is %g, it must be a probability above %g and below %g", p,
                          above, below);
}

static void fill_in(double *p, double standard)
{
    *p = *p == 0 ? standard : *p;
}

/* The largest relative error of the numbers in steps of this size. */
static double round_all(const double numbers[N_NUMBERS], double step,
                        int32_t out[N_NUMBERS])
{
    double worst = 0;

    for (int i = 0; i < N_NUMBERS; i++) {
        double error;

        out[i] = (int32_t)lround(numbers[i] / step);
        error = numbers[i] != 0 ? fabs(out[i] * step / numbers[i] - 1) : 0;
        worst = error > worst ? error : worst;
    }
    return worst;
}

static double find_step(const double numbers[N_NUMBERS])
{
    double largest = 0;
    double best = 0;
    double least = INFINITY;

    for (int i = 0; i < N_NUMBERS; i++) {
        largest = fabs(numbers[i]) > largest ? fabs(numbers[i]) : largest;
    }
    for (int i = MIN_STEPS * TRIES_A_STEP; i <= MAX_STEPS * TRIES_A_STEP; i++) {
        double step = largest * TRIES_A_STEP / i;
        int32_t rounded[N_NUMBERS];
        double error = round_all(numbers, step, rounded);

        if (error < least) {
            least = error;
            best = step;
        }
    }
    return best;
}

enum vxd_status vxd_occupancy_rule_of(struct vxd_occupancy_odds *odds,
                                      struct vxd_occupancy_rule *out, struct vxd_err *err)
{
    double numbers[N_NUMBERS];
    int32_t rounded[N_NUMBERS];
    struct vxd_occupancy_odds usual = defaults;
    enum vxd_status status;

    fill_in(&odds->hit, defaults.hit);
    fill_in(&odds->miss, defaults.miss);
    fill_in(&odds->clamp_low, defaults.clamp_low);
    fill_in(&odds->clamp_high, defaults.clamp_high);
    fill_in(&odds->occupied, defaults.occupied);
    VXD_TRY(check(odds->hit, 0.5, 1, "hit", err));
    VXD_TRY(check(odds->miss, 0, 0.5, "miss", err));
    VXD_TRY(check(odds->clamp_low, 0, 0.5, "clamp_low", err));
    VXD_TRY(check(odds->clamp_high, 0.5, 1, "clamp_high", err));
    if (odds->votes != 0 && (odds->votes < 2 || odds->votes > VXD_OCCUPANCY_MAX_VOTES)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "label_votes",
                         "is %d, it must be 0 or 2 to %d", (int)odds->votes,
                         VXD_OCCUPANCY_MAX_VOTES));
    }
    VXD_TRY(check(odds->occupied, odds->clamp_low, odds->clamp_high, "occupied", err));
    numbers[0] = log_odds(odds->hit);
    numbers[1] = log_odds(odds->miss);
    numbers[2] = log_odds(odds->clamp_low);
    numbers[3] = log_odds(odds->clamp_high);
    numbers[4] = odds->occupied == 0.5 ? 0 : log_odds(odds->occupied);
    *out = (struct vxd_occupancy_rule){.step = 0.0338};
    usual.votes = odds->votes;
    if (!vxd_occupancy_odds_equal(odds, &usual)) {
        out->step = find_step(numbers);
    }
    out->error = round_all(numbers, out->step, rounded);
    if (out->error > MAX_ERROR || rounded[4] <= rounded[2]) {
        VXD_TRY(
            vxd_fail(err, VXD_INVALID_ARGUMENT, "hit",
                     "no step of log-odds brings hit %g, miss %g, clamps %g and %g and "
                     "occupied %g within 1 %% in 8 bits (%.1f %% at best)",
                     odds->hit, odds->miss, odds->clamp_low, odds->clamp_high,
                     odds->occupied, 100 * out->error));
    }
    out->hit = rounded[0];
    out->miss = rounded[1];
    out->low = rounded[2];
    out->high = rounded[3];
    out->occupied = rounded[4];
    out->votes = odds->votes;
out:
    return status;
}
