// SPDX-License-Identifier: Apache-2.0
/* Registration: headings all around are tried on the coarse cells, the best few are followed on the
 * fine ones, point to plane. What decides whether a match holds are upright surfaces alone, since the
 * ground lies on the ground everywhere. */
#include "gpu/relocalize/relocalize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/posegraph/posegraph_math.h"
#include "gpu/relocalize/scan_index.h"

#define DEFAULT_HEADINGS 24
#define DEFAULT_FITNESS 0.6
#define DEFAULT_CONSTRAINT 0.001
#define DEFAULT_CELLS 40
#define COARSE_STEPS 30
#define FINE_STEPS 30
#define FOLLOWED 8      /* headings that are tried on the fine cells */
#define UPRIGHT 0.7f    /* a normal's z below it: no ground */
#define SAME_NORMAL 0.8 /* cosine */
#define ON_PLANE 0.3    /* cells */
#define NOISE 0.1       /* cells; standard deviation of a distance in the information */
#define CELLS_AT_ONCE 512

/* --- descriptors ----------------------------------------------------------------------------- */

size_t vxd_relocalize_rank(const float *query, const float *const *descriptors, size_t n,
                           size_t n_values, size_t k,
                           struct vxd_relocalize_candidate *found)
{
    size_t n_found = 0;

    for (size_t i = 0; i < n; i++) {
        double square = 0;
        size_t at = n_found;

        if (descriptors[i] == NULL) {
            continue;
        }
        for (size_t v = 0; v < n_values; v++) {
            double d = (double)query[v] - (double)descriptors[i][v];

            square += d * d;
        }
        while (at > 0 && found[at - 1].distance > sqrt(square)) {
            at--;
        }
        if (at >= k) {
            continue;
        }
        n_found += n_found < k ? 1 : 0;
        memmove(found + at + 1, found + at, (n_found - at - 1) * sizeof *found);
        found[at] = (struct vxd_relocalize_candidate){i, sqrt(square)};
    }
    return n_found;
}

/* --- one step ------------------------------------------------------------------------------------ */

/* What a strip of cells adds up to. */
struct sums {
    double a[21]; /* upper triangle of J^T w J */
    double b[6];
    double square; /* of the distances of upright matches */
    size_t n_upright;
    size_t n_reach; /* upright, with a cell of the other scan near them */
    size_t n_match; /* of these: on its plane, with its normal */
};

struct step {
    const struct vxd_scan_level *target;
    const struct vxd_scan_level *source;
    double R[9];
    double t[3];
    struct sums *strips;
};

static bool has_normal(const struct vxd_scan_cell *cell)
{
    return cell->normal[0] != 0 || cell->normal[1] != 0 || cell->normal[2] != 0;
}

static void widen(const float v[3], double out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = (double)v[i];
    }
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Rows are of the left perturbation Exp(x) T: (n, p x n). */
static void add_cell(const struct step *step, const struct vxd_scan_cell *cell,
                     struct sums *sums)
{
    bool is_upright = has_normal(cell) && fabsf(cell->normal[2]) < UPRIGHT;
    const struct vxd_scan_cell *near;
    double scale = ON_PLANE * step->target->cell_m;
    double mean[3];
    double p[3];
    double n[3];
    double m[3];
    double own[3];
    double row[6];
    double distance;
    double weight;
    int at = 0;

    widen(cell->mean, mean);
    vxd_apply3(step->R, mean, p);
    for (int i = 0; i < 3; i++) {
        p[i] += step->t[i];
    }
    sums->n_upright += is_upright ? 1 : 0;
    near = vxd_scan_nearest(step->target, p);
    if (near == NULL) {
        return;
    }
    sums->n_reach += is_upright ? 1 : 0;
    if (!has_normal(near)) {
        return;
    }
    widen(near->normal, n);
    widen(near->mean, mean);
    for (int i = 0; i < 3; i++) {
        mean[i] = p[i] - mean[i];
    }
    distance = dot(n, mean);
    if (has_normal(cell)) {
        widen(cell->normal, own);
        vxd_apply3(step->R, own, m);
        if (fabs(dot(m, n)) < SAME_NORMAL) {
            return; /* another surface */
        }
        if (is_upright && fabs(distance) < scale) {
            sums->n_match++;
            sums->square += distance * distance;
        }
    }
    weight = scale * scale / (scale * scale + distance * distance);
    weight *= weight; /* Geman and McClure's */
    memcpy(row, n, sizeof n);
    vxd_cross(p, n, row + 3);
    for (int r = 0; r < 6; r++) {
        sums->b[r] += weight * distance * row[r];
        for (int c = r; c < 6; c++) {
            sums->a[at++] += weight * row[r] * row[c];
        }
    }
}

static void add_strip(void *args, size_t begin, size_t end)
{
    struct step *step = args;
    struct sums sums = {.square = 0};

    for (size_t i = begin; i < end; i++) {
        add_cell(step, &step->source->cells[i], &sums);
    }
    step->strips[begin / CELLS_AT_ONCE] = sums;
}

static void add_up(struct vxd_pool *pool, struct step *step, const struct vxd_rigid *T,
                   struct sums *out)
{
    size_t n = step->source->n;

    vxd_quaternion_matrix(T->q, step->R);
    memcpy(step->t, T->t_m, sizeof step->t);
    vxd_parallel_for(pool, n, CELLS_AT_ONCE, add_strip, step);
    *out = (struct sums){.square = 0};
    for (size_t i = 0; i * CELLS_AT_ONCE < n; i++) {
        const struct sums *strip = &step->strips[i];

        for (int k = 0; k < 21; k++) {
            out->a[k] += strip->a[k];
        }
        for (int k = 0; k < 6; k++) {
            out->b[k] += strip->b[k];
        }
        out->square += strip->square;
        out->n_upright += strip->n_upright;
        out->n_reach += strip->n_reach;
        out->n_match += strip->n_match;
    }
}

static void unpack(const struct sums *sums, double a[36])
{
    int at = 0;

    for (int r = 0; r < 6; r++) {
        for (int c = r; c < 6; c++) {
            a[6 * r + c] = sums->a[at];
            a[6 * c + r] = sums->a[at++];
        }
    }
}

/* x = -A^-1 b along the directions that are held; others are left alone. */
static void solve(const struct sums *sums, double x[6])
{
    double a[36];
    double v[36];
    double values[6];

    unpack(sums, a);
    vxd_scan_eigen(6, a, v, values);
    memset(x, 0, 6 * sizeof *x);
    for (int i = 0; i < 6; i++) {
        double part = 0;

        if (!(values[i] > 1e-6 * values[5])) {
            continue;
        }
        for (int k = 0; k < 6; k++) {
            part += v[6 * k + i] * sums->b[k];
        }
        for (int k = 0; k < 6; k++) {
            x[k] -= v[6 * k + i] * part / values[i];
        }
    }
}

/* Follows a motion downhill. */
static void follow(struct vxd_pool *pool, struct step *step, int n_steps,
                   struct vxd_rigid *T)
{
    for (int i = 0; i < n_steps; i++) {
        struct vxd_rigid move;
        struct sums sums;
        double x[6];
        double length = 0;

        add_up(pool, step, T, &sums);
        solve(&sums, x);
        for (int k = 0; k < 6; k++) {
            length = fmax(length, fabs(x[k]));
        }
        if (!(length < 10)) {
            return;
        }
        vxd_rigid_exp(x, &move);
        vxd_rigid_multiply(&move, T, T);
        vxd_quaternion_normalize(T->q);
        if (length < 1e-5) {
            return;
        }
    }
}

/* --- the whole -------------------------------------------------------------------------------------- */

/* How much of the upright cells of `source`, where `target` has any near, lie on it. */
static double measure(struct vxd_pool *pool, struct step *step, const struct vxd_rigid *T,
                      struct sums *sums)
{
    add_up(pool, step, T, sums);
    /* A scan that reaches little of the other's is no match of it, however well that fits. */
    return sums->n_upright > 0
               ? (double)sums->n_match /
                     fmax((double)sums->n_reach, 0.4 * (double)sums->n_upright)
               : 0;
}

struct tried {
    struct vxd_rigid T;
    double fitness;
};

/* Keeps the best few, best first. */
static void keep(struct tried *best, const struct tried *one)
{
    int at = FOLLOWED;

    while (at > 0 && best[at - 1].fitness < one->fitness) {
        at--;
    }
    if (at < FOLLOWED) {
        memmove(best + at + 1, best + at, (size_t)(FOLLOWED - 1 - at) * sizeof *best);
        best[at] = *one;
    }
}

/* The information for T Exp(x), from that for Exp(x) T: Ad^T A Ad. */
static void turn_information(const struct sums *sums, const struct vxd_rigid *T,
                             double sigma, double out[36])
{
    double a[36];
    double ad[36];
    double product[36];

    unpack(sums, a);
    vxd_rigid_adjoint(T, ad);
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            product[6 * r + c] = 0;
            for (int k = 0; k < 6; k++) {
                product[6 * r + c] += a[6 * r + k] * ad[6 * k + c];
            }
        }
    }
    for (int r = 0; r < 6; r++) {
        for (int c = r; c < 6; c++) {
            double sum = 0;

            for (int k = 0; k < 6; k++) {
                sum += ad[6 * k + r] * product[6 * k + c];
            }
            out[6 * r + c] = sum / (sigma * sigma);
            out[6 * c + r] = out[6 * r + c];
        }
    }
}

/* The information's least eigenvalue over their mean, rotations counted as metres at a distance of the
 * scan's root mean square radius. */
static double measure_constraint(const double information[36], double radius_m)
{
    double a[36];
    double v[36];
    double values[6];
    double sum = 0;

    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            a[6 * r + c] = information[6 * r + c] /
                           ((r > 2 ? radius_m : 1) * (c > 2 ? radius_m : 1));
        }
    }
    vxd_scan_eigen(6, a, v, values);
    for (int i = 0; i < 6; i++) {
        sum += values[i];
    }
    return sum > 0 ? fmax(values[0], 0) * 6 / sum : 0;
}

static double find_radius(const struct vxd_scan_level *level)
{
    double sum = 0;

    for (size_t i = 0; i < level->n; i++) {
        double p[3];

        widen(level->cells[i].mean, p);
        sum += dot(p, p);
    }
    return level->n > 0 ? fmax(sqrt(sum / (double)level->n), 1e-3) : 1;
}

static void search(struct vxd_pool *pool, const struct vxd_scan *target,
                   const struct vxd_scan *source, int n_headings, struct sums *strips,
                   struct tried *found)
{
    struct step coarse = {
        .target = &target->levels[0], .source = &source->levels[0], .strips = strips};
    struct step fine = {
        .target = &target->levels[1], .source = &source->levels[1], .strips = strips};
    struct tried best[FOLLOWED + 1];
    struct sums sums;

    for (int i = 0; i <= FOLLOWED; i++) {
        best[i] = (struct tried){.T = {.q = {0, 0, 0, 1}}, .fitness = -1};
    }
    for (int i = 0; i < n_headings; i++) {
        double half = 3.141592653589793 * i / n_headings;
        struct tried one = {.T = {.q = {0, 0, sin(half), cos(half)}}};

        follow(pool, &coarse, COARSE_STEPS, &one.T);
        one.fitness = measure(pool, &coarse, &one.T, &sums);
        keep(best, &one);
    }
    *found = (struct tried){.T = {.q = {0, 0, 0, 1}}, .fitness = -1};
    for (int i = 0; i < FOLLOWED && best[i].fitness >= 0; i++) {
        follow(pool, &fine, FINE_STEPS, &best[i].T);
        best[i].fitness = measure(pool, &fine, &best[i].T, &sums);
        if (best[i].fitness > found->fitness) {
            *found = best[i];
        }
    }
}

static void judge(struct vxd_pool *pool, const struct vxd_scan *target,
                  const struct vxd_scan *source,
                  const struct vxd_register_options *options, struct sums *strips,
                  struct vxd_register_result *out)
{
    double cell_m = target->levels[1].cell_m;
    struct step forth = {
        .target = &target->levels[1], .source = &source->levels[1], .strips = strips};
    struct step back = {
        .target = &source->levels[1], .source = &target->levels[1], .strips = strips};
    struct vxd_rigid inverse;
    struct sums there;
    struct sums here;
    double fitness;

    vxd_rigid_invert(&out->T_target_source, &inverse);
    fitness = measure(pool, &back, &inverse, &there);
    out->fitness = fmin(fitness, measure(pool, &forth, &out->T_target_source, &here));
    out->n_cells = here.n_match;
    out->rmse_m = here.n_match > 0 ? sqrt(here.square / (double)here.n_match) : 0;
    turn_information(&here, &out->T_target_source, fmax(out->rmse_m, NOISE * cell_m),
                     out->information);
    out->constraint =
        measure_constraint(out->information, find_radius(&source->levels[1]));
    if (here.n_upright < options->min_cells || there.n_upright < options->min_cells) {
        out->verdict = VXD_REGISTER_BARE;
    } else if (out->fitness < options->min_fitness) {
        out->verdict = VXD_REGISTER_UNFIT;
    } else if (out->constraint < options->min_constraint) {
        out->verdict = VXD_REGISTER_SINGULAR;
    }
}

enum vxd_status vxd_scan_register(struct vxd_pool *pool, const struct vxd_scan *target,
                                  const struct vxd_scan *source,
                                  const struct vxd_register_options *options,
                                  struct vxd_register_result *out, struct vxd_err *err)
{
    struct vxd_register_options used = *options;
    size_t most = 0;
    struct sums *strips = NULL;
    struct tried found;
    enum vxd_status status = VXD_OK;

    if (used.n_headings < 0 || used.n_headings > 360) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "n_headings",
                         "is %d, it must be 0 to 360", used.n_headings));
    }
    if (!(used.min_fitness >= 0 && used.min_fitness <= 1)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "min_fitness",
                         "is %g, it must be 0 to 1", used.min_fitness));
    }
    if (!(used.min_constraint >= 0 && used.min_constraint <= 1)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "min_constraint",
                         "is %g, it must be 0 to 1", used.min_constraint));
    }
    if (target->levels[1].cell_m != source->levels[1].cell_m) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "cell_m",
                         "both scans must have the same cells"));
    }
    used.n_headings = used.n_headings > 0 ? used.n_headings : DEFAULT_HEADINGS;
    used.min_fitness = used.min_fitness > 0 ? used.min_fitness : DEFAULT_FITNESS;
    used.min_constraint =
        used.min_constraint > 0 ? used.min_constraint : DEFAULT_CONSTRAINT;
    used.min_cells = used.min_cells > 0 ? used.min_cells : DEFAULT_CELLS;
    for (int i = 0; i < 2; i++) {
        most = target->levels[i].n > most ? target->levels[i].n : most;
        most = source->levels[i].n > most ? source->levels[i].n : most;
    }
    strips = calloc(most / CELLS_AT_ONCE + 1, sizeof *strips);
    if (strips == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory to register"));
    }
    *out = (struct vxd_register_result){.verdict = VXD_REGISTER_OK};
    search(pool, target, source, used.n_headings, strips, &found);
    out->T_target_source = found.T;
    judge(pool, target, source, &used, strips, out);
out:
    free(strips);
    return status;
}
