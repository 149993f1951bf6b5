// SPDX-License-Identifier: Apache-2.0
/* Which points of a scan hit nothing though they are there: the ground, and what too few points
 * say. Their rays count, as those of points that a network gives no material. It is done on the
 * host for either backend, so there is one rule.
 *
 * The ground is the plane that most points are near (RANSAC, Fischler and Bolles 1981), of those
 * that are level enough, fitted to them by least squares; as octomap_server takes it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/service/integrate/integrate.h"
#include "server/service/scene/scene.h"

enum {
    N_TRIES = 256,
    N_JUDGES = 4096, /* points that judge a plane */
    N_FITS = 3,
    FAR = 1 << 20 /* voxels; what is farther stands alone */
};

#define DEFAULT_DISTANCE_M 0.04
#define DEFAULT_ANGLE 0.15
#define HALF_PI 1.5707963267948966
#define NO_VOXEL UINT64_MAX

enum vxd_status vxd_scene_filter_check(const Voxeld__V1__SceneIntegrateRequest *message,
                                       struct vxd_err *err)
{
    const Voxeld__V1__SceneFilter *filter = message->filter;

    if (filter == NULL) {
        return VXD_OK;
    }
    if (message->network[0] != '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "filter",
                        "goes without a network: labels that take no material do the "
                        "same");
    }
    return isfinite(filter->ground_z)
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "filter.ground_z",
                          "is %g, it must be finite", filter->ground_z);
}

/* --- ground ------------------------------------------------------------------------------- */

/* Heights a x + b y + c above the base, in voxels. */
struct plane {
    double a, b, c;
};

struct ground {
    const float *points;
    size_t n;
    double distance;  /* voxels, along the normal */
    double steepest;  /* of a^2 + b^2 */
    double z;         /* at the sensor, voxels from the base */
    double tolerance; /* 0: any height */
    const double *sensor;
};

static bool is_finite(const float *p)
{
    return isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]);
}

static bool is_near(const struct ground *ground, const struct plane *plane,
                    const float *p)
{
    double above =
        (double)p[2] - (plane->a * (double)p[0] + plane->b * (double)p[1] + plane->c);
    double scale = 1 + plane->a * plane->a + plane->b * plane->b;

    return above * above <= ground->distance * ground->distance * scale;
}

/* Whether it is level enough, and at the height where the ground is looked for. */
static bool is_ground(const struct ground *ground, const struct plane *plane)
{
    double z = plane->a * ground->sensor[0] + plane->b * ground->sensor[1] + plane->c;

    return plane->a * plane->a + plane->b * plane->b <= ground->steepest &&
           (ground->tolerance == 0 || fabs(z - ground->z) <= ground->tolerance);
}

/* The plane through three points; false where they are in a line, or it stands upright. */
static bool plane_of(const float *p, const float *q, const float *r, struct plane *out)
{
    double u[3];
    double v[3];
    double up;

    for (int i = 0; i < 3; i++) {
        u[i] = (double)q[i] - (double)p[i];
        v[i] = (double)r[i] - (double)p[i];
    }
    up = u[0] * v[1] - u[1] * v[0];
    out->a = (u[2] * v[1] - u[1] * v[2]) / up;
    out->b = (u[0] * v[2] - u[2] * v[0]) / up;
    out->c = (double)p[2] - out->a * (double)p[0] - out->b * (double)p[1];
    return isfinite(out->a) && isfinite(out->b) && isfinite(out->c);
}

/* Fits a plane to the points that are near it, by least squares around their middle. */
static bool fit(const struct ground *ground, struct plane *plane)
{
    double sum[3] = {0};
    double xx = 0;
    double xy = 0;
    double yy = 0;
    double xz = 0;
    double yz = 0;
    double n = 0;
    double up;

    for (size_t i = 0; i < ground->n; i++) {
        const float *p = ground->points + 3 * i;

        if (is_finite(p) && is_near(ground, plane, p)) {
            double x = (double)p[0];
            double y = (double)p[1];
            double z = (double)p[2];

            n++;
            sum[0] += x;
            sum[1] += y;
            sum[2] += z;
            xx += x * x;
            xy += x * y;
            yy += y * y;
            xz += x * z;
            yz += y * z;
        }
    }
    xx -= sum[0] * sum[0] / n;
    xy -= sum[0] * sum[1] / n;
    yy -= sum[1] * sum[1] / n;
    xz -= sum[0] * sum[2] / n;
    yz -= sum[1] * sum[2] / n;
    up = xx * yy - xy * xy;
    plane->a = (xz * yy - yz * xy) / up;
    plane->b = (yz * xx - xz * xy) / up;
    plane->c = (sum[2] - plane->a * sum[0] - plane->b * sum[1]) / n;
    return isfinite(plane->a) && isfinite(plane->b) && isfinite(plane->c);
}

/* Equal for equal scans. */
static size_t draw(uint64_t *state, size_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)((*state >> 33) % n);
}

/* Finds the ground; false where no plane has three points of those that judge. */
static bool find_ground(const struct ground *ground, struct plane *best)
{
    size_t stride = ground->n > N_JUDGES ? ground->n / N_JUDGES : 1;
    uint64_t state = 1;
    size_t most = 2;

    for (int i = 0; i < N_TRIES && ground->n >= 3; i++) {
        struct plane plane;
        size_t n = 0;

        if (!plane_of(ground->points + 3 * draw(&state, ground->n),
                      ground->points + 3 * draw(&state, ground->n),
                      ground->points + 3 * draw(&state, ground->n), &plane) ||
            !is_ground(ground, &plane)) {
            continue;
        }
        for (size_t k = 0; k < ground->n; k += stride) {
            const float *p = ground->points + 3 * k;

            n += is_finite(p) && is_near(ground, &plane, p) ? 1 : 0;
        }
        if (n > most) {
            most = n;
            *best = plane;
        }
    }
    for (int i = 0; i < N_FITS && most > 2; i++) {
        struct plane plane = *best;

        if (fit(ground, &plane) && is_ground(ground, &plane)) {
            *best = plane;
        }
    }
    return most > 2;
}

static uint64_t mark_ground(const Voxeld__V1__SceneFilter *filter,
                            const struct vxd_scene_filtering *in, uint8_t *dropped)
{
    double unit_m = in->spec->voxel_size_m;
    double distance_m =
        filter->ground_distance_m > 0 ? filter->ground_distance_m : DEFAULT_DISTANCE_M;
    double slope = tan(filter->ground_angle > 0 ? filter->ground_angle : DEFAULT_ANGLE);
    const struct ground ground = {
        .points = in->points,
        .n = in->n,
        .distance = distance_m / unit_m,
        .steepest = slope * slope,
        .z = (filter->ground_z - in->spec->origin_m[2]) / unit_m - in->base_voxel[2],
        .tolerance = filter->ground_z_tolerance_m / unit_m,
        .sensor = in->sensor};
    struct plane plane;
    uint64_t n = 0;

    if (!filter->ground || !find_ground(&ground, &plane)) {
        return 0;
    }
    for (size_t i = 0; i < in->n; i++) {
        const float *p = in->points + 3 * i;

        if (is_finite(p) && is_near(&ground, &plane, p)) {
            dropped[i] = 1;
            n++;
        }
    }
    return n;
}

/* --- voxels of few points, and those that stand alone -------------------------------------- */

/* Points a voxel, by open addressing. */
struct counts {
    uint64_t *keys; /* NO_VOXEL: an empty slot */
    uint32_t *n;
    size_t mask;
};

static uint64_t key_of(const float *p, const int step[3])
{
    uint64_t key = 0;

    for (int i = 0; i < 3; i++) {
        double at = floor((double)p[i]) + step[i];

        if (!(fabs(at) < FAR)) {
            return NO_VOXEL;
        }
        key = key << 21 | (uint64_t)((int64_t)at + FAR);
    }
    return key;
}

static size_t slot_of(const struct counts *counts, uint64_t key)
{
    size_t slot = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & counts->mask;

    while (counts->keys[slot] != NO_VOXEL && counts->keys[slot] != key) {
        slot = (slot + 1) & counts->mask;
    }
    return slot;
}

static bool has_neighbour(const struct counts *counts, const float *p, uint32_t least)
{
    for (int k = 0; k < 27; k++) {
        const int step[3] = {k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1};
        uint64_t key = k == 13 ? NO_VOXEL : key_of(p, step);
        size_t slot = key != NO_VOXEL ? slot_of(counts, key) : 0;

        if (key != NO_VOXEL && counts->keys[slot] == key && counts->n[slot] >= least) {
            return true;
        }
    }
    return false;
}

static uint64_t mark_sparse(const Voxeld__V1__SceneFilter *filter,
                            const struct vxd_scene_filtering *in,
                            const struct counts *counts, uint8_t *dropped)
{
    static const int here[3] = {0, 0, 0};
    uint32_t least = filter->min_hits > 1 ? filter->min_hits : 1;
    uint64_t n = 0;

    for (size_t i = 0; i < in->n; i++) {
        uint64_t key = dropped[i] == 0 ? key_of(in->points + 3 * i, here) : NO_VOXEL;

        if (key != NO_VOXEL) {
            size_t slot = slot_of(counts, key);

            counts->keys[slot] = key;
            counts->n[slot]++;
        }
    }
    for (size_t i = 0; i < in->n; i++) {
        const float *p = in->points + 3 * i;
        uint64_t key = dropped[i] == 0 ? key_of(p, here) : NO_VOXEL;

        if (key != NO_VOXEL &&
            (counts->n[slot_of(counts, key)] < least ||
             (filter->no_speckles && !has_neighbour(counts, p, least)))) {
            dropped[i] = 1;
            n++;
        }
    }
    return n;
}

static enum vxd_status drop_sparse(struct vxd_request *request,
                                   const Voxeld__V1__SceneFilter *filter,
                                   const struct vxd_scene_filtering *in, uint8_t *dropped,
                                   uint64_t *n_sparse, struct vxd_err *err)
{
    struct counts counts = {.mask = 1};
    void *block;
    enum vxd_status status = VXD_OK;

    if (filter->min_hits < 2 && !filter->no_speckles) {
        return VXD_OK;
    }
    while (counts.mask < 2 * in->n) {
        counts.mask = 2 * counts.mask + 1;
    }
    VXD_TRY(
        vxd_scene_take_host(request, counts.mask + 1, sizeof *counts.keys, &block, err));
    counts.keys = block;
    VXD_TRY(vxd_scene_take_host(request, counts.mask + 1, sizeof *counts.n, &block, err));
    counts.n = block;
    memset(counts.keys, 0xff, (counts.mask + 1) * sizeof *counts.keys);
    memset(counts.n, 0, (counts.mask + 1) * sizeof *counts.n);
    *n_sparse = mark_sparse(filter, in, &counts, dropped);
out:
    return status;
}

enum vxd_status vxd_scene_filter_points(struct vxd_request *request,
                                        const Voxeld__V1__SceneFilter *filter,
                                        const struct vxd_scene_filtering *in,
                                        uint8_t *dropped, uint64_t *n_ground,
                                        uint64_t *n_sparse, struct vxd_err *err)
{
    memset(dropped, 0, in->n);
    *n_ground = mark_ground(filter, in, dropped);
    *n_sparse = 0;
    return drop_sparse(request, filter, in, dropped, n_sparse, err);
}
