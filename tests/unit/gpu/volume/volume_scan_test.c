// SPDX-License-Identifier: Apache-2.0
/* Scans against the same in double: which voxels a ray meets is found from all planes of the grid
 * that it crosses, sorted. A room with a ball in it, from a moving sensor, and a scan of KITTI;
 * what is gone is carved; labels; equal results of all backends. */
#include "tests/support/test.h"
#include "tests/support/volume/volume_helpers.h"

#include <math.h>

#include "gpu/volume/scan/volume_scan.h"
#include "gpu/volume/volume_math.h"

#define ROWS 20
#define COLUMNS 120
#define N_BEAMS ((size_t)ROWS * COLUMNS)
#define GRID 128 /* voxels a side */
#define N_GRID ((size_t)GRID * GRID * GRID)
#define RADIANS (3.14159265358979323846 / 180)

/* ---- The scene ---- */

static const double walls[3][2] = {{-2.41, 2.37}, {-1.83, 1.91}, {-0.92, 1.18}};
static const double ball[4] = {1.2, 0.5, 0.1, 0.45};

struct scan_case {
    const char *name;
    struct vxd_volume_spec spec;
    struct vxd_volume_scan scan;
    bool has_ball; /* which is gone in a second scan */
    bool moves;
    bool has_normals;
    bool has_labels;
    double bound; /* of distances, in truncations */
};

static const struct scan_case cases[] = {
    {.name = "rays",
     .spec = {.voxel_size_m = 0.1, .block_edge = 8, .truncation_m = 0.3},
     .bound = 1e-5},
    {.name = "rays, moving, 1/z^2, by angle, carved, labels",
     .spec = {.voxel_size_m = 0.1,
              .block_edge = 8,
              .truncation_m = 0.25,
              .origin_m = {0.03, -0.02, 0.01},
              .has_labels = true},
     .scan = {.weighting = VXD_VOLUME_WEIGHT_INV_Z2, .by_angle = true, .carve_m = 2},
     .has_ball = true,
     .moves = true,
     .has_normals = true,
     .has_labels = true,
     .bound = 2e-5},
    {.name = "rays, compact 16, colour, carved, open rays",
     .spec = {.voxel_size_m = 0.1,
              .block_edge = 16,
              .truncation_m = 0.3,
              .form = VXD_VOLUME_COMPACT,
              .has_colour = true},
     .scan = {.carve_m = 5, .range_max_m = 2.2, .range_min_m = 0.5, .weight = 2},
     .has_ball = true,
     .bound = 2e-3},
    {.name = "range image",
     .spec = {.voxel_size_m = 0.1, .block_edge = 8, .truncation_m = 0.3},
     .scan = {.method = VXD_LIDAR_RANGE_IMAGE},
     .bound = 1e-5},
    {.name = "range image, moving, carved, open rays, labels",
     .spec = {.voxel_size_m = 0.1,
              .block_edge = 8,
              .truncation_m = 0.3,
              .has_colour = true,
              .has_labels = true},
     .scan = {.method = VXD_LIDAR_RANGE_IMAGE,
              .carve_m = 3,
              .range_max_m = 2.3,
              .image_time = 0.5},
     .has_ball = true,
     .moves = true,
     .has_labels = true,
     .bound = 1e-5},
};

#define N_CASES ((int)(sizeof cases / sizeof cases[0]))

static void turn(const double axis[3], double angle, double out[9])
{
    double c = cos(angle);
    double s = sin(angle);
    const double *a = axis;
    const double rows[9] = {
        c + a[0] * a[0] * (1 - c),        a[0] * a[1] * (1 - c) - a[2] * s,
        a[0] * a[2] * (1 - c) + a[1] * s, a[1] * a[0] * (1 - c) + a[2] * s,
        c + a[1] * a[1] * (1 - c),        a[1] * a[2] * (1 - c) - a[0] * s,
        a[2] * a[0] * (1 - c) - a[1] * s, a[2] * a[1] * (1 - c) + a[0] * s,
        c + a[2] * a[2] * (1 - c)};

    memcpy(out, rows, sizeof rows);
}

/* The pose at share s: a turn about one axis and a straight line. */
static struct vxd_volume_pose pose_at(double s)
{
    const double axis[3] = {0.2, -0.1, sqrt(1 - 0.05)};
    struct vxd_volume_pose pose = {
        .translation = {0.2 + 0.3 * s, -0.3 + 0.4 * s, 0.1 + 0.05 * s}};

    turn(axis, 0.35 + 0.7 * s, pose.rotation);
    return pose;
}

/* Range along a ray of the map, and the surface's normal. */
static double range_of(const double p[3], const double d[3], bool has_ball,
                       double normal[3])
{
    double best = 1e9;

    for (int axis = 0; axis < 3; axis++) {
        double wall = walls[axis][d[axis] > 0 ? 1 : 0];
        double t = d[axis] != 0 ? (wall - p[axis]) / d[axis] : 1e9;

        if (t < best) {
            best = t;
            memset(normal, 0, 3 * sizeof *normal);
            normal[axis] = d[axis] > 0 ? -1 : 1;
        }
    }
    if (has_ball) {
        double b = 0;
        double c = -ball[3] * ball[3];
        double root;

        for (int i = 0; i < 3; i++) {
            b += d[i] * (p[i] - ball[i]);
            c += (p[i] - ball[i]) * (p[i] - ball[i]);
        }
        root = b * b - c;
        if (root > 0 && -b - sqrt(root) > 0 && -b - sqrt(root) < best) {
            best = -b - sqrt(root);
            for (int i = 0; i < 3; i++) {
                normal[i] = (p[i] + best * d[i] - ball[i]) / ball[3];
            }
        }
    }
    return best;
}

enum {
    TIME = 0,
    NORMAL = 1,
    LABEL = 4,
    N_FEATURES = 5
};

/* A scan in host memory: three points that cannot be used, then a point a beam. */
struct points {
    size_t n;
    float *xyz;
    float *features;
};

static struct points shoot(const struct scan_case *c, bool has_ball)
{
    struct points out = {.n = N_BEAMS + 3};
    float *at;

    out.xyz = gpu_alloc(out.n * 3 * sizeof(float));
    out.features = gpu_alloc(out.n * N_FEATURES * sizeof(float));
    memset(out.xyz, 0, 9 * sizeof(float));
    memset(out.features, 0, 3 * N_FEATURES * sizeof(float));
    out.xyz[0] = NAN;
    out.xyz[4] = INFINITY;
    for (size_t i = 0; i < N_BEAMS; i++) {
        double s = (double)(i / ROWS) / (COLUMNS - 1);
        double elevation = (24 - 2.6 * (double)(i % ROWS) + 0.37) * RADIANS;
        double azimuth = 2 * 3.14159265358979 * ((double)(i / ROWS) + 0.31) / COLUMNS;
        struct vxd_volume_pose pose = pose_at(c->moves ? s : 0);
        double d[3] = {cos(elevation) * cos(azimuth), cos(elevation) * sin(azimuth),
                       sin(elevation)};
        double way[3];
        double normal[3];
        double range;
        float *features = out.features + (i + 3) * N_FEATURES;

        for (int k = 0; k < 3; k++) {
            const double *r = pose.rotation + 3 * (size_t)k;

            way[k] = r[0] * d[0] + r[1] * d[1] + r[2] * d[2];
        }
        range = range_of(pose.translation, way, has_ball, normal);
        at = out.xyz + (i + 3) * 3;
        for (int k = 0; k < 3; k++) {
            at[k] = (float)(range * d[k]);
            features[NORMAL + k] =
                (float)(pose.rotation[k] * normal[0] + pose.rotation[3 + k] * normal[1] +
                        pose.rotation[6 + k] * normal[2]);
        }
        if (i % 11 == 0) { /* no normal */
            features[NORMAL] = features[NORMAL + 1] = features[NORMAL + 2] = 0;
        }
        features[TIME] = (float)s;
        features[LABEL] = (float)(i % 7 == 0               ? -3
                                  : fabs(normal[2]) > 0.99 ? 40
                                                           : 50 + (int)(i % 2));
    }
    return out;
}

static struct vxd_volume_scan scan_of(const struct scan_case *c)
{
    struct vxd_volume_scan scan = c->scan;

    scan.n_features = N_FEATURES;
    scan.time_column = c->moves ? TIME : -1;
    scan.normal_column = c->has_normals ? NORMAL : -1;
    scan.label_column = c->has_labels ? LABEL : -1;
    scan.T_map_sensor = pose_at(0);
    scan.T_map_sensor_end = pose_at(1);
    scan.range_max_m = scan.range_max_m > 0 ? scan.range_max_m : 100;
    scan.lidar = (struct vxd_volume_lidar){.rows = ROWS,
                                           .columns = COLUMNS,
                                           .top_deg = 24,
                                           .bottom_deg = 24 - 2.6 * (ROWS - 1),
                                           .azimuth_begin_deg = 0,
                                           .azimuth_span_deg = 360};
    return scan;
}

/* ---- The same in double ---- */

struct cell {
    double distance;
    double weight;
    double sum;
    double sum_weight;
    double nearest; /* of a hit with a label */
    uint64_t votes;
    uint8_t label;
    bool is_passed;
    bool is_tie;
    bool exists; /* its block is in the volume when the scan is carved */
};

struct grid {
    const struct vxd_volume_spec *spec;
    struct cell *cells;
    double max_weight;
};

static struct cell *cell_of(const struct grid *grid, const int v[3])
{
    for (int axis = 0; axis < 3; axis++) {
        if (v[axis] < -GRID / 2 || v[axis] >= GRID / 2) {
            return NULL;
        }
    }
    return &grid->cells[((size_t)(v[2] + GRID / 2) * GRID + (size_t)(v[1] + GRID / 2)) *
                            GRID +
                        (size_t)(v[0] + GRID / 2)];
}

/* A ray of the oracle, from the volume's origin. */
struct ray {
    double sensor[3];
    double hit[3];
    double way[3];
    double range;
    double weight;
    int label;
    bool is_open;
};

typedef void (*visit_fn)(const struct grid *grid, const struct ray *ray, const int v[3],
                         double length);

static int by_value(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;

    return d < 0 ? -1 : d > 0 ? 1 : 0;
}

/* Calls visit for each voxel between two distances along a ray, with the length in it. */
static void visit_segment(const struct grid *grid, const struct ray *ray, double from,
                          double to, visit_fn visit)
{
    double size = grid->spec->voxel_size_m;
    double at[2048];
    size_t n = 0;

    at[n++] = from;
    at[n++] = to;
    for (int axis = 0; axis < 3; axis++) {
        double a = (ray->sensor[axis] + from * ray->way[axis]) / size;
        double b = (ray->sensor[axis] + to * ray->way[axis]) / size;

        for (double plane = ceil(fmin(a, b)); plane <= fmax(a, b) && n < 2048; plane++) {
            at[n++] = from + (plane - a) / (b - a) * (to - from);
        }
    }
    qsort(at, n, sizeof *at, by_value);
    for (size_t i = 0; i + 1 < n; i++) {
        int v[3];

        for (int axis = 0; axis < 3; axis++) {
            v[axis] = (int)floor(
                (ray->sensor[axis] + (at[i] + at[i + 1]) / 2 * ray->way[axis]) / size);
        }
        if (at[i + 1] > at[i]) {
            visit(grid, ray, v, at[i + 1] - at[i]);
        }
    }
}

static double distance_of(const struct grid *grid, const struct ray *ray, const int v[3])
{
    double d = 0;

    for (int axis = 0; axis < 3; axis++) {
        d += (ray->hit[axis] - (v[axis] + 0.5) * grid->spec->voxel_size_m) *
             ray->way[axis];
    }
    return d / grid->spec->truncation_m;
}

static void visit_near(const struct grid *grid, const struct ray *ray, const int v[3],
                       double length)
{
    struct cell *cell = cell_of(grid, v);
    double d = distance_of(grid, ray, v);

    if (cell == NULL) {
        return;
    }
    cell->is_tie = cell->is_tie || length < 1e-4 * grid->spec->voxel_size_m ||
                   fabs(d + 1) < 1e-4 || (ray->label > 0 && fabs(d - 1) < 1e-4);
    if (d < -1) {
        return;
    }
    d = fmin(d, 1);
    cell->sum += ray->weight * d;
    cell->sum_weight += ray->weight;
    if (ray->label > 0 && d < 1) {
        cell->is_tie = cell->is_tie || (cell->label != 0 && cell->label != ray->label &&
                                        fabs(cell->nearest - fabs(d)) < 1e-4);
        if (cell->label == 0 || fabs(d) < cell->nearest) {
            cell->nearest = fabs(d);
            cell->label = (uint8_t)ray->label;
        }
    }
}

static void visit_free(const struct grid *grid, const struct ray *ray, const int v[3],
                       double length)
{
    struct cell *cell = cell_of(grid, v);

    (void)ray;
    if (cell != NULL) {
        cell->is_tie = cell->is_tie ||
                       (!cell->is_passed && length < 1e-3 * grid->spec->voxel_size_m);
        cell->is_passed = true;
    }
}

/* Makes the ray of a point; false: it is left out. */
static bool ray_of(const struct grid *grid, const struct scan_case *c,
                   const struct vxd_volume_scan *scan, const struct points *points,
                   size_t i, struct ray *ray)
{
    const float *p = points->xyz + 3 * i;
    const float *features = points->features + i * N_FEATURES;
    struct vxd_volume_pose pose = pose_at(c->moves ? (double)features[TIME] : 0);
    struct vxd_volume_pose image = pose_at(c->moves ? scan->image_time : 0);
    double own = sqrt((double)p[0] * p[0] + (double)p[1] * p[1] + (double)p[2] * p[2]);
    double cosine = 0;
    double length = 0;
    double weight = scan->weight > 0 ? scan->weight : 1;

    if (!(own > 0 && own >= scan->range_min_m && own < 1e6)) {
        return false;
    }
    ray->range = 0;
    for (int k = 0; k < 3; k++) {
        const double *r = pose.rotation + 3 * (size_t)k;
        double from = pose.translation[k] - grid->spec->origin_m[k];

        ray->hit[k] = from + r[0] * p[0] + r[1] * p[1] + r[2] * p[2];
        ray->sensor[k] = scan->method == VXD_LIDAR_RANGE_IMAGE
                             ? image.translation[k] - grid->spec->origin_m[k]
                             : from;
        ray->range += (ray->hit[k] - ray->sensor[k]) * (ray->hit[k] - ray->sensor[k]);
        cosine += (double)features[NORMAL + k] * p[k] / own;
        length += (double)features[NORMAL + k] * features[NORMAL + k];
    }
    ray->range = sqrt(ray->range);
    for (int k = 0; k < 3; k++) {
        ray->way[k] = (ray->hit[k] - ray->sensor[k]) / ray->range;
    }
    ray->is_open = own > scan->range_max_m;
    ray->range = ray->is_open ? scan->range_max_m : ray->range;
    weight /= scan->weighting == VXD_VOLUME_WEIGHT_INV_Z2 ? own * own : 1;
    if (scan->by_angle && length > 0) {
        weight *= fmax(fabs(cosine) / sqrt(length), 0.01);
    }
    ray->weight = ray->is_open ? 0 : weight;
    ray->label = c->has_labels ? (int)features[LABEL] : 0;
    return true;
}

static void average(const struct grid *grid, struct cell *cell, double d, double w)
{
    if (grid->spec->form == VXD_VOLUME_COMPACT) {
        w = fmax(floor(w + 0.5), 1);
    }
    w = fmin(w, grid->max_weight);
    cell->distance += (d - cell->distance) * w / (cell->weight + w);
    cell->weight = fmin(cell->weight + w, grid->max_weight);
}

/* Ends a scan along rays: all voxels take their one step. */
static void end_scan(const struct grid *grid, double free_weight)
{
    for (size_t i = 0; i < N_GRID; i++) {
        struct cell *cell = &grid->cells[i];

        if (cell->sum_weight > 0) {
            average(grid, cell, cell->sum / cell->sum_weight, cell->sum_weight);
            cell->votes =
                cell->label != 0 ? vxd_label_vote(cell->votes, cell->label) : cell->votes;
        } else if (cell->is_passed && cell->exists) {
            average(grid, cell, 1, free_weight);
        }
        cell->sum = cell->sum_weight = 0;
        cell->label = 0;
        cell->is_passed = false;
    }
}

static void mark_blocks(const struct grid *grid, const struct volume_host *host)
{
    int edge = grid->spec->block_edge;

    for (size_t b = 0; b < host->n; b++) {
        for (int index = 0; index < edge * edge * edge; index++) {
            const int32_t *key = host->keys + 3 * b;
            int v[3] = {key[0] * edge + index % edge, key[1] * edge + index / edge % edge,
                        key[2] * edge + index / edge / edge};
            struct cell *cell = cell_of(grid, v);

            REQUIRE(cell != NULL);
            cell->exists = true;
        }
    }
}

static void integrate_rays(const struct grid *grid, const struct scan_case *c,
                           const struct vxd_volume_scan *scan,
                           const struct points *points, const struct volume_host *host)
{
    double mu = grid->spec->truncation_m;
    struct ray ray;

    mark_blocks(grid, host);
    for (size_t i = 0; i < points->n; i++) {
        double free_end;

        if (!ray_of(grid, c, scan, points, i, &ray)) {
            continue;
        }
        if (!ray.is_open) {
            visit_segment(grid, &ray, fmax(ray.range - mu, 0), ray.range + mu,
                          visit_near);
        }
        free_end = fmin(ray.is_open ? ray.range : ray.range - mu, scan->carve_m);
        if (free_end > 0) {
            visit_segment(grid, &ray, 0, free_end, visit_free);
        }
    }
    end_scan(grid, scan->weight > 0 ? scan->weight : 1);
}

/* The pixel of a direction in the image's frame, -1: none; is_tie where rounding decides. */
static int pixel_of(const double p[3], bool *is_tie)
{
    double elevation = atan2(p[2], hypot(p[0], p[1])) / RADIANS;
    double row = (24 - elevation) / 2.6 + 0.5;
    double azimuth = atan2(p[1], p[0]) / RADIANS;
    double column = (azimuth < 0 ? azimuth + 360 : azimuth) / 360 * COLUMNS;

    *is_tie = fabs(row - round(row)) < 1e-4 || fabs(column - round(column)) < 1e-4;
    return row >= 0 && row < ROWS ? (int)row * COLUMNS + (int)column % COLUMNS : -1;
}

static void integrate_image(const struct grid *grid, const struct scan_case *c,
                            const struct vxd_volume_scan *scan,
                            const struct points *points, bool is_second,
                            const struct volume_host *host)
{
    struct vxd_volume_pose image = pose_at(c->moves ? scan->image_time : 0);
    const double *r = image.rotation;
    int nearest[ROWS * COLUMNS];
    struct ray *rays = gpu_alloc(points->n * sizeof *rays);
    int edge = grid->spec->block_edge;
    double size = grid->spec->voxel_size_m;

    memset(nearest, 0xff, sizeof nearest);
    for (size_t i = 0; i < points->n; i++) {
        double seen[3];
        bool is_tie;
        int pixel;

        if (!ray_of(grid, c, scan, points, i, &rays[i])) {
            continue;
        }
        for (int k = 0; k < 3; k++) {
            seen[k] = r[k] * rays[i].way[0] + r[3 + k] * rays[i].way[1] +
                      r[6 + k] * rays[i].way[2];
        }
        pixel = pixel_of(seen, &is_tie);
        CHECK(!is_tie || pixel < 0 || c->moves);
        if (pixel >= 0 && (!rays[i].is_open || scan->carve_m > 0) &&
            (nearest[pixel] < 0 || rays[i].range < rays[nearest[pixel]].range)) {
            nearest[pixel] = (int)i;
        }
    }
    for (size_t b = 0; b < host->n; b++) {
        const int32_t *key = host->keys + 3 * b;
        double away = 0;

        for (int k = 0; k < 3; k++) {
            double centre = (key[k] + 0.5) * edge * size;

            away += pow(centre - image.translation[k] + grid->spec->origin_m[k], 2);
        }
        for (int index = 0; index < edge * edge * edge; index++) {
            int v[3] = {key[0] * edge + index % edge, key[1] * edge + index / edge % edge,
                        key[2] * edge + index / edge / edge};
            struct cell *cell = cell_of(grid, v);
            double way[3];
            double seen[3];
            double range = 0;
            double d;
            bool is_tie;
            int pixel;
            const struct ray *ray;

            REQUIRE(cell != NULL);
            for (int k = 0; k < 3; k++) {
                way[k] =
                    (v[k] + 0.5) * size - image.translation[k] + grid->spec->origin_m[k];
                range += way[k] * way[k];
            }
            range = sqrt(range);
            for (int k = 0; k < 3; k++) {
                seen[k] = r[k] * way[0] + r[3 + k] * way[1] + r[6 + k] * way[2];
            }
            pixel = pixel_of(seen, &is_tie);
            cell->is_tie = cell->is_tie || is_tie;
            if (pixel < 0 || nearest[pixel] < 0) {
                continue;
            }
            ray = &rays[nearest[pixel]];
            d = (ray->range - range) / grid->spec->truncation_m;
            cell->is_tie = cell->is_tie || fabs(d + 1) < 1e-4 || fabs(d - 1) < 1e-4 ||
                           (ray->is_open && fabs(d) < 1e-4);
            /* In a second scan, blocks that it does not touch observe it where it reaches. */
            cell->is_tie =
                cell->is_tie || (is_second && sqrt(away) > scan->carve_m - 1e-6);
            if (ray->is_open ? d >= 0 : d >= -1) {
                average(grid, cell, ray->is_open ? 1 : fmin(d, 1),
                        ray->is_open ? 1 : ray->weight);
                if (ray->label > 0 && d < 1 && !ray->is_open) {
                    cell->votes = vxd_label_vote(cell->votes, (uint32_t)ray->label);
                }
            }
        }
    }
    free(rays);
}

/* ---- Comparison ---- */

static struct vxd_volume_scan_result integrate(struct gpu_env *env,
                                               struct vxd_volume *volume,
                                               const struct vxd_volume_scan *like,
                                               const struct points *points)
{
    struct vxd_volume_scan scan = *like;
    struct vxd_buffer xyz =
        gpu_to_device(env, points->xyz, points->n * 3 * sizeof(float));
    struct vxd_buffer features =
        gpu_to_device(env, points->features, points->n * N_FEATURES * sizeof(float));
    struct vxd_volume_scan_result result;
    struct vxd_err err = {0};

    scan.points = xyz.ptr;
    scan.features = features.ptr;
    scan.n_points = points->n;
    CHECK_INT(vxd_volume_integrate_scan(env->queue, volume, &scan, &result, &err),
              VXD_OK);
    CHECK_STR(err.message, "");
    vxd_device_free(env->queue, &features);
    vxd_device_free(env->queue, &xyz);
    gpu_wait(env);
    return result;
}

static void compare(const struct grid *grid, const struct scan_case *c,
                    const struct volume_host *host)
{
    int edge = grid->spec->block_edge;
    size_t n = 0;
    size_t n_observed = 0;
    size_t n_ties = 0;
    size_t n_wrong = 0;
    size_t n_labels = 0;

    for (size_t b = 0; b < host->n; b++) {
        for (int index = 0; index < edge * edge * edge; index++) {
            const int32_t *key = host->keys + 3 * b;
            int v[3] = {key[0] * edge + index % edge, key[1] * edge + index / edge % edge,
                        key[2] * edge + index / edge / edge};
            const struct cell *cell = cell_of(grid, v);
            size_t row = b * (size_t)(edge * edge * edge) + (size_t)index;
            bool is_wrong;

            REQUIRE(cell != NULL);
            n++;
            if (cell->is_tie) {
                n_ties++;
                continue;
            }
            n_observed += cell->weight > 0 ? 1 : 0;
            is_wrong = !(fabs((double)host->weights[row] - cell->weight) <=
                         1e-5 * (1 + cell->weight)) ||
                       !(fabs((double)host->distances[row] - cell->distance) <= c->bound);
            if (host->labels != NULL) {
                is_wrong = is_wrong || host->labels[row] != cell->votes;
                n_labels += cell->votes != 0 ? 1 : 0;
            }
            n_wrong += is_wrong ? 1 : 0;
        }
    }
    if (n_wrong * 5000 >= n_observed || n_ties * 4 >= n) {
        (void)fprintf(stderr, "%s: of %zu voxels %zu observed, %zu ties, %zu wrong\n",
                      c->name, n, n_observed, n_ties, n_wrong);
    }
    CHECK(n_observed > 2000);
    CHECK(n_wrong * 5000 < n_observed);
    CHECK(n_ties * 4 < n);
    CHECK(c->has_labels == (n_labels > 300));
}

/* All voxels that the oracle observed near a hit are in blocks. */
static size_t n_outside(const struct grid *grid, const struct volume_host *host)
{
    int edge = grid->spec->block_edge;
    size_t n = 0;

    for (size_t i = 0; i < N_GRID; i++) {
        const struct cell *cell = &grid->cells[i];
        int v[3] = {(int)(i % GRID) - GRID / 2, (int)(i / GRID % GRID) - GRID / 2,
                    (int)(i / GRID / GRID) - GRID / 2};
        bool is_in = false;

        if (!(cell->weight > 0) || cell->is_tie || !(cell->distance < 1)) {
            continue;
        }
        for (size_t b = 0; b < host->n && !is_in; b++) {
            is_in = true;
            for (int k = 0; k < 3; k++) {
                is_in = is_in &&
                        host->keys[3 * b + (size_t)k] == (int)floor((double)v[k] / edge);
            }
        }
        n += is_in ? 0 : 1;
    }
    return n;
}

static uint64_t digests[N_CASES];

static void expect_case(struct gpu_env *env, int number)
{
    const struct scan_case *c = &cases[number];
    struct vxd_volume_scan scan = scan_of(c);
    struct points first = shoot(c, c->has_ball);
    struct points second = shoot(c, false);
    struct vxd_volume *volume = NULL;
    struct volume_host host;
    struct vxd_volume_scan_result result;
    struct vxd_err err = {0};
    bool is_image = scan.method == VXD_LIDAR_RANGE_IMAGE;
    struct volume_host before;

    CHECK_INT(vxd_volume_create(env->queue, &c->spec, &volume, &err), VXD_OK);
    REQUIRE(volume != NULL);
    result = integrate(env, volume, &scan, &first);
    CHECK_INT(result.n_used + result.n_beyond + result.n_dropped, first.n);
    CHECK(result.n_dropped >= 3);
    CHECK_INT(result.n_new, result.n_touched);
    volume_read(env, volume, &before);
    if (c->has_ball) {
        result = integrate(env, volume, &scan, &second);
        CHECK(result.n_carved > 0);
        CHECK(result.n_touched > 0 && result.n_new < before.n);
    }
    volume_read(env, volume, &host);
    CHECK_INT(host.info.version, c->has_ball ? 2 : 1);
    if (digests[number] == 0) { /* the oracle runs once; all backends equal the first */
        struct grid grid = {.spec = &c->spec, .max_weight = 255};

        digests[number] = volume_digest(&host);
        grid.cells = calloc(N_GRID, sizeof *grid.cells);
        REQUIRE(grid.cells != NULL);
        if (is_image) {
            integrate_image(&grid, c, &scan, &first, false, &before);
        } else {
            integrate_rays(&grid, c, &scan, &first, &before);
        }
        if (c->has_ball && is_image) {
            integrate_image(&grid, c, &scan, &second, true, &host);
        } else if (c->has_ball) {
            integrate_rays(&grid, c, &scan, &second, &host);
        }
        compare(&grid, c, &host);
        if (!is_image) {
            CHECK_INT(n_outside(&grid, &host), 0);
        }
        free(grid.cells);
    }
    CHECK_INT(volume_digest(&host), digests[number]);
    volume_host_free(&host);
    volume_host_free(&before);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
    free(first.xyz);
    free(first.features);
    free(second.xyz);
    free(second.features);
}

static void expect_cases(struct gpu_env *env)
{
    for (int i = 0; i < N_CASES; i++) {
        expect_case(env, i);
    }
}

static void test_scan_in_a_room_equals_double_arithmetic(void)
{
    gpu_each_backend(expect_cases);
}

/* ---- A real scan ---- */

static uint64_t kitti_digest;

static void expect_kitti(struct gpu_env *env)
{
    static const struct scan_case c = {
        .name = "KITTI",
        .spec = {.voxel_size_m = 0.25, .block_edge = 8, .truncation_m = 0.75},
        .scan = {.range_max_m = 14, .range_min_m = 2, .carve_m = 10},
        .bound = 1e-5,
    };
    struct vxd_volume_scan scan = scan_of(&c);
    size_t n_bytes = 0;
    float *file = gpu_read_data("lidar/kitti_seq_000000.bin", &n_bytes);
    struct points points = {.n = n_bytes / 64};
    struct vxd_volume *volume = NULL;
    struct volume_host host;
    struct vxd_err err = {0};

    if (file == NULL) {
        SKIP("no data directory (set VOXELD_DATA)");
    }
    points.xyz = gpu_alloc(points.n * 3 * sizeof(float));
    points.features = gpu_alloc(points.n * N_FEATURES * sizeof(float));
    memset(points.features, 0, points.n * N_FEATURES * sizeof(float));
    for (size_t i = 0; i < points.n; i++) { /* one point of four */
        memcpy(points.xyz + 3 * i, file + 16 * i, 3 * sizeof(float));
    }
    CHECK_INT(vxd_volume_create(env->queue, &c.spec, &volume, &err), VXD_OK);
    (void)integrate(env, volume, &scan, &points);
    volume_read(env, volume, &host);
    CHECK(host.n > 100);
    if (kitti_digest == 0) {
        struct grid grid = {.spec = &c.spec, .max_weight = 255};

        kitti_digest = volume_digest(&host);
        grid.cells = calloc(N_GRID, sizeof *grid.cells);
        REQUIRE(grid.cells != NULL);
        integrate_rays(&grid, &c, &scan, &points, &host);
        compare(&grid, &c, &host);
        free(grid.cells);
    }
    CHECK_INT(volume_digest(&host), kitti_digest);
    volume_host_free(&host);
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
    free(points.xyz);
    free(points.features);
    free(file);
}

static void test_scan_of_kitti_equals_double_arithmetic(void)
{
    gpu_each_backend(expect_kitti);
}

/* ---- Votes ---- */

static void test_votes_for_few_labels_are_counted_exactly(void)
{
    uint64_t state = 5;

    for (int round = 0; round < 200; round++) {
        uint32_t counts[5] = {0};
        uint64_t votes = 0;
        uint32_t best = 0;

        for (int i = 0; i < 60; i++) {
            uint32_t label = 1 + (uint32_t)(gpu_random(&state) % 4);

            counts[label]++;
            votes = vxd_label_vote(votes, 10 * label);
        }
        for (uint32_t label = 1; label <= 4; label++) {
            best = best == 0 || counts[label] > counts[best] ? label : best;
        }
        CHECK_INT(vxd_label_of_votes(votes), 10 * best);
    }
}

/* A label with more than half of all votes wins, whatever the others are and in which order. */
static void test_votes_of_a_majority_win_among_many_labels(void)
{
    uint64_t state = 9;

    for (int round = 0; round < 200; round++) {
        uint64_t votes = 0;
        int left = 101;
        int others = 99;

        while (left + others > 0) {
            bool is_major = (int)(gpu_random(&state) % (uint64_t)(left + others)) < left;

            votes = vxd_label_vote(
                votes, is_major ? 77 : 100 + (uint32_t)(gpu_random(&state) % 100));
            left -= is_major ? 1 : 0;
            others -= is_major ? 0 : 1;
        }
        CHECK_INT(vxd_label_of_votes(votes), 77);
    }
}

static void test_votes_after_many_follow_new_labels(void)
{
    uint64_t votes = 0;

    for (int i = 0; i < 100000; i++) {
        votes = vxd_label_vote(votes, 3);
    }
    CHECK_INT(vxd_label_of_votes(votes), 3);
    for (int i = 0; i < 256; i++) {
        votes = vxd_label_vote(votes, 4);
    }
    CHECK_INT(vxd_label_of_votes(votes), 4);
}

/* ---- Refusals ---- */

static void expect_refusals(struct gpu_env *env)
{
    const struct vxd_volume_spec spec = {
        .voxel_size_m = 0.1, .block_edge = 8, .truncation_m = 0.3};
    struct vxd_volume *volume = NULL;
    struct vxd_volume_scan_result result;
    struct vxd_err err = {0};

    CHECK_INT(vxd_volume_create(env->queue, &spec, &volume, &err), VXD_OK);
    for (int i = 0; i < 8; i++) {
        static const char *const fields[] = {
            "depth_max_m",          "carve_m",    "lidar",  "lidar.azimuth_span_deg",
            "lidar.elevations_deg", "image_time", "weight", "T_map_sensor_end"};
        struct vxd_volume_scan scan = scan_of(&cases[4]);

        scan.range_max_m = i == 0 ? NAN : 10;
        scan.carve_m = i == 1 ? 1e9 : 0;
        scan.lidar.rows = i == 2 ? 1 : ROWS;
        scan.lidar.azimuth_span_deg = i == 3 ? INFINITY : 360;
        scan.lidar.top_deg = i == 4 ? -80 : 24;
        scan.image_time = i == 5 ? 1.5 : 0;
        scan.weight = i == 6 ? -1 : 0;
        turn((double[3]){0, 0, 1}, i == 7 ? 3.4 : 0.2, scan.T_map_sensor_end.rotation);
        scan.features = (const float *)&scan;
        CHECK_INT(vxd_volume_integrate_scan(env->queue, volume, &scan, &result, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, fields[i]);
    }
    vxd_volume_destroy(env->queue, volume);
    gpu_wait(env);
}

static void test_scan_with_numbers_out_of_range_is_refused(void)
{
    gpu_each_backend(expect_refusals);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scan_in_a_room_equals_double_arithmetic),
    VXD_TEST(test_scan_of_kitti_equals_double_arithmetic),
    VXD_TEST(test_votes_for_few_labels_are_counted_exactly),
    VXD_TEST(test_votes_of_a_majority_win_among_many_labels),
    VXD_TEST(test_votes_after_many_follow_new_labels),
    VXD_TEST(test_scan_with_numbers_out_of_range_is_refused),
};

VXD_TEST_MAIN(tests)
