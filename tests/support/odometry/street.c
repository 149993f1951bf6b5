// SPDX-License-Identifier: Apache-2.0
#include "tests/support/odometry/street.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846
#define SENSOR_HEIGHT 1.8
#define SPEED_M 1.2 /* a step, in the end */
#define NEAR_M 110.0

/* ---- Random numbers ---- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) / 9007199254740992.0;
}

static double gaussian(uint64_t *state)
{
    return sqrt(-2 * log(uniform(state) + 1e-18)) * cos(2 * PI * uniform(state));
}

/* A number that belongs to a place along the street. */
static double hashed(int place, int salt)
{
    uint64_t state = (uint64_t)(place + 1000000) * 2654435761u + (uint64_t)salt * 97;

    (void)next_random(&state);
    return uniform(&state);
}

/* ---- The path ---- */

/* Where the street's middle is, y of x, and its slope. */
static double bend(double x)
{
    return 12 * sin(x / 60) + 3 * sin(x / 23);
}

static double slope(double x)
{
    return 12.0 / 60 * cos(x / 60) + 3.0 / 23 * cos(x / 23);
}

/* From rest to full speed in two seconds, which then varies by a tenth. */
static double travelled(double step)
{
    double t = fmax(step, 0);

    return SPEED_M * (t < 20 ? t * t / 40 : t - 10 + sin((t - 20) / 10));
}

struct vxd_volume_pose street_pose(double step)
{
    double x = travelled(step);
    double yaw = atan(slope(x));
    double pitch = 0.006 * sin(step / 3);
    double roll = 0.004 * cos(step / 5);
    double cy = cos(yaw);
    double sy = sin(yaw);
    double cp = cos(pitch);
    double sp = sin(pitch);
    double cr = cos(roll);
    double sr = sin(roll);

    return (struct vxd_volume_pose){
        .rotation = {cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr, sy * cp,
                     sy * sp * sr + cy * cr, sy * sp * cr - cy * sr, -sp, cp * sr,
                     cp * cr},
        .translation = {x, bend(x), SENSOR_HEIGHT + 0.05 * sin(step / 4)}};
}

/* ---- The scene ---- */

enum shape {
    BOX, /* upright, turned by yaw */
    POLE /* an upright cylinder */
};

struct thing {
    enum shape shape;
    double x, y;
    double cosine, sine;   /* of the yaw */
    double half_x, half_y; /* POLE: the radius, unused */
    double top;
};

enum {
    PLACES = 36, /* of 8 m each */
    MAX_THINGS = 6 * PLACES
};

static void add(struct thing *things, int *n, enum shape shape, double x, double across,
                double half_x, double half_y, double top)
{
    double yaw = atan(slope(x));

    things[(*n)++] = (struct thing){shape,
                                    x - across * sin(yaw),
                                    bend(x) + across * cos(yaw),
                                    cos(yaw),
                                    sin(yaw),
                                    half_x,
                                    half_y,
                                    top};
}

static int make_things(enum street_kind kind, double around_x, struct thing *things)
{
    int middle = (int)floor(around_x / 8);
    int n = 0;

    for (int place = middle - PLACES / 2;
         kind == STREET_TOWN && place < middle + PLACES / 2; place++) {
        double x = 8.0 * place;

        for (int side = -1; side <= 1; side += 2) {
            int salt = 10 + 10 * side;
            double setback = 9 + 4 * hashed(place, salt);

            if (hashed(place, salt + 1) < 0.75) {
                add(things, &n, BOX, x, side * (setback + 3),
                    2.5 + 1.4 * hashed(place, salt + 2), 3,
                    5 + 6 * hashed(place, salt + 3));
            }
            if (hashed(place, salt + 4) < 0.4) {
                add(things, &n, BOX, x + 5 * hashed(place, salt + 5) - 2, side * 4.5, 2.1,
                    0.85, 1.5);
            }
            if (hashed(place, salt + 6) < 0.6) {
                add(things, &n, POLE, x + 6 * hashed(place, salt + 7), side * 6.5,
                    0.1 + 0.2 * hashed(place, salt + 8), 0, 6);
            }
        }
    }
    return n;
}

/* ---- Rays ---- */

static double hit_box(const struct thing *thing, const double o[3], const double d[3])
{
    const double dx = o[0] - thing->x;
    const double dy = o[1] - thing->y;
    const double low[3] = {-thing->half_x, -thing->half_y, 0};
    const double high[3] = {thing->half_x, thing->half_y, thing->top};
    const double from[3] = {thing->cosine * dx + thing->sine * dy,
                            -thing->sine * dx + thing->cosine * dy, o[2]};
    const double to[3] = {thing->cosine * d[0] + thing->sine * d[1],
                          -thing->sine * d[0] + thing->cosine * d[1], d[2]};
    double near = 0;
    double far = INFINITY;

    for (int i = 0; i < 3; i++) {
        double a = (low[i] - from[i]) / to[i];
        double b = (high[i] - from[i]) / to[i];

        near = fmax(near, fmin(a, b));
        far = fmin(far, fmax(a, b));
    }
    return near < far && near > 0 ? near : INFINITY;
}

static double hit_pole(const struct thing *thing, const double o[3], const double d[3])
{
    double x = o[0] - thing->x;
    double y = o[1] - thing->y;
    double a = d[0] * d[0] + d[1] * d[1];
    double b = x * d[0] + y * d[1];
    double c = x * x + y * y - thing->half_x * thing->half_x;
    double root = b * b - a * c;
    double t;

    if (root <= 0 || a <= 0) {
        return INFINITY;
    }
    t = (-b - sqrt(root)) / a;
    return t > 0 && o[2] + t * d[2] < thing->top ? t : INFINITY;
}

static double cast(enum street_kind kind, const struct thing *things, int n,
                   const double o[3], const double d[3])
{
    double t = d[2] < 0 ? -o[2] / d[2] : INFINITY;

    if (kind == STREET_TUNNEL) {
        t = fmin(t, fmax((4 - o[1]) / d[1], (-4 - o[1]) / d[1]));
        t = d[2] > 0 ? fmin(t, (5 - o[2]) / d[2]) : t;
    }
    for (int i = 0; i < n; i++) {
        double dx = things[i].x - o[0];
        double dy = things[i].y - o[1];
        double along = dx * d[0] + dy * d[1];
        double reach = 1 + things[i].half_x + things[i].half_y;

        /* The ray's line passes near enough, in front. */
        if (along > -reach &&
            fabs(dx * d[1] - dy * d[0]) <= reach * sqrt(d[0] * d[0] + d[1] * d[1])) {
            t = fmin(t, things[i].shape == BOX ? hit_box(&things[i], o, d)
                                               : hit_pole(&things[i], o, d));
        }
    }
    return t;
}

/* A tunnel goes straight on: its poses are those along x. */
static struct vxd_volume_pose pose_of(enum street_kind kind, double step)
{
    struct vxd_volume_pose pose = street_pose(step);

    if (kind == STREET_TUNNEL) {
        pose =
            (struct vxd_volume_pose){.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                     .translation = {travelled(step), 0, SENSOR_HEIGHT}};
    }
    return pose;
}

bool street_shoot(enum street_kind kind, const struct street_lidar *lidar, double step,
                  uint64_t seed, struct street_scan *out)
{
    struct thing things[MAX_THINGS];
    int n_things = make_things(kind, travelled(step), things);
    size_t n = (size_t)lidar->beams * (size_t)lidar->columns;
    uint64_t state = seed * 7919 + 13;

    out->n = n;
    out->points = malloc(n * 3 * sizeof *out->points);
    out->times = malloc(n * sizeof *out->times);
    if (out->points == NULL || out->times == NULL) {
        street_free(out);
        return false;
    }
    for (int column = 0; column < lidar->columns; column++) {
        double time = (double)column / (lidar->columns - 1);
        struct vxd_volume_pose pose =
            pose_of(kind, lidar->is_instant ? step : step - 1 + time);
        double azimuth = PI - 2 * PI * column / lidar->columns;

        for (int beam = 0; beam < lidar->beams; beam++) {
            size_t i = (size_t)column * (size_t)lidar->beams + (size_t)beam;
            double elevation = (-25 + 28.0 * beam / (lidar->beams - 1)) * PI / 180;
            double ray[3] = {cos(elevation) * cos(azimuth), cos(elevation) * sin(azimuth),
                             sin(elevation)};
            double d[3];
            double t;

            for (int k = 0; k < 3; k++) {
                d[k] = pose.rotation[3 * k] * ray[0] + pose.rotation[3 * k + 1] * ray[1] +
                       pose.rotation[3 * k + 2] * ray[2];
            }
            t = cast(kind, things, n_things, pose.translation, d) +
                lidar->noise_m * gaussian(&state);
            for (int k = 0; k < 3; k++) {
                out->points[3 * i + (size_t)k] =
                    t < lidar->range_m && t < NEAR_M ? (float)(t * ray[k]) : NAN;
            }
            out->times[i] = (float)time;
        }
    }
    return true;
}

void street_free(struct street_scan *scan)
{
    free(scan->points);
    free(scan->times);
    *scan = (struct street_scan){0};
}

/* ---- Poses ---- */

struct vxd_volume_pose street_between(const struct vxd_volume_pose *a,
                                      const struct vxd_volume_pose *b)
{
    struct vxd_volume_pose out = {{0}, {0}};

    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            out.translation[i] +=
                a->rotation[3 * k + i] * (b->translation[k] - a->translation[k]);
            for (int j = 0; j < 3; j++) {
                out.rotation[3 * i + j] +=
                    a->rotation[3 * k + i] * b->rotation[3 * k + j];
            }
        }
    }
    return out;
}

double street_apart_m(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b)
{
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        double d = a->translation[i] - b->translation[i];

        sum += d * d;
    }
    return sqrt(sum);
}

double street_apart_deg(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b)
{
    struct vxd_volume_pose between = street_between(a, b);
    const double *r = between.rotation;
    double sine = sqrt((r[7] - r[5]) * (r[7] - r[5]) + (r[2] - r[6]) * (r[2] - r[6]) +
                       (r[3] - r[1]) * (r[3] - r[1]));

    return atan2(sine, r[0] + r[4] + r[8] - 1) * 180 / PI;
}
