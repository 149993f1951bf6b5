// SPDX-License-Identifier: Apache-2.0
/* Registers scans against the local map, as odometry_register does.
 *
 *   bench_odometry [FILE.bin ...] [--street N] [--backend cpu|cuda] [--threads N] [--repeat N]
 *                  [--method point|plane] [--voxel M] [--deskew 0|1] [--write FOLDER]
 *
 * FILE.bin are scans in KITTI's layout, in order. --street N drives N scans of 64 x 1,900 rays through
 * a synthetic street, whose poses are known: errors follow. --repeat runs all of it so often and takes
 * the median of each scan. Times are the wall clock around registration, which waits, with decoding
 * where scans are deskewed; "CPU" is the time of all threads of the process. --write writes the
 * street's scans as KITTI's files and their poses, for other programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/core/core.h"
#include "gpu/odometry/odometry.h"
#include "gpu/voxel/cloud.h"
#include "tests/bench/support/bench_device.h"
#include "tests/support/odometry/street.h"

#define MAX_SCANS 2048

struct options {
    const char *files[MAX_SCANS];
    int n_files;
    int n_street;
    int n_threads;
    int repeat;
    bool deskew;
    const char *folder;
    enum vxd_backend backend;
    struct vxd_odometry_options odometry;
};

struct bench {
    struct options options;
    struct vxd_context *context;
    struct vxd_queue *queue;
    struct street_scan scans[MAX_SCANS];
    int n;
    double *wall_ms; /* n x repeat */
    double *cpu_ms;
};

static int fail(const struct vxd_err *err)
{
    (void)fprintf(stderr, "bench_odometry: %s %s\n", err->field, err->message);
    return 1;
}

static double now_ms(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool parse(int argc, char **argv, struct options *out)
{
    *out = (struct options){.repeat = 1};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (argv[i][0] != '-') {
            if (out->n_files == MAX_SCANS) {
                return false;
            }
            out->files[out->n_files++] = argv[i];
            continue;
        }
        i++;
        if (strcmp(argv[i - 1], "--street") == 0) {
            out->n_street = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i - 1], "--backend") == 0) {
            out->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(argv[i - 1], "--threads") == 0) {
            out->n_threads = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i - 1], "--repeat") == 0) {
            out->repeat = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i - 1], "--method") == 0) {
            out->odometry.method = strcmp(value, "point") == 0
                                       ? VXD_ODOMETRY_POINT_TO_POINT
                                       : VXD_ODOMETRY_POINT_TO_PLANE;
        } else if (strcmp(argv[i - 1], "--voxel") == 0) {
            out->odometry.voxel_size_m = strtod(value, NULL);
        } else if (strcmp(argv[i - 1], "--deskew") == 0) {
            out->deskew = strcmp(value, "0") != 0;
        } else if (strcmp(argv[i - 1], "--write") == 0) {
            out->folder = value;
        } else {
            return false;
        }
    }
    return out->repeat > 0 && (out->n_files > 0) != (out->n_street > 0) &&
           out->n_street <= MAX_SCANS;
}

static bool read_kitti(const char *path, struct street_scan *out)
{
    FILE *file = fopen(path, "rb");
    float record[4];
    size_t capacity = 1 << 18;

    *out = (struct street_scan){.points = malloc(capacity * 3 * sizeof(float)),
                                .times = calloc(capacity, sizeof(float))};
    if (file == NULL || out->points == NULL || out->times == NULL) {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
        return false;
    }
    while (out->n < capacity && fread(record, sizeof record, 1, file) == 1) {
        memcpy(out->points + 3 * out->n++, record, 3 * sizeof(float));
    }
    (void)fclose(file);
    return true;
}

static bool write_kitti(const struct bench *bench, int i)
{
    const struct street_scan *scan = &bench->scans[i];
    struct vxd_volume_pose pose = street_pose(i);
    char path[512];
    FILE *file;
    bool is_good;

    (void)snprintf(path, sizeof path, "%s/%06d.bin", bench->options.folder, i);
    file = fopen(path, "wb");
    if (file == NULL) {
        return false;
    }
    for (size_t k = 0; k < scan->n; k++) {
        float record[4] = {scan->points[3 * k], scan->points[3 * k + 1],
                           scan->points[3 * k + 2], scan->times[k]};

        if (record[0] == record[0]) {
            (void)fwrite(record, sizeof record, 1, file);
        }
    }
    is_good = fclose(file) == 0;
    (void)snprintf(path, sizeof path, "%s/poses.txt", bench->options.folder);
    file = fopen(path, i == 0 ? "w" : "a");
    if (file == NULL) {
        return false;
    }
    for (int row = 0; row < 3; row++) {
        (void)fprintf(file, "%.9f %.9f %.9f %.9f%s", pose.rotation[3 * row],
                      pose.rotation[3 * row + 1], pose.rotation[3 * row + 2],
                      pose.translation[row], row < 2 ? " " : "\n");
    }
    return fclose(file) == 0 && is_good;
}

static bool get_scans(struct bench *bench)
{
    const struct options *options = &bench->options;
    const struct street_lidar lidar = {.beams = 64,
                                       .columns = 1900,
                                       .range_m = 100,
                                       .noise_m = 0.02,
                                       .is_instant = !options->deskew};

    bench->n = options->n_street > 0 ? options->n_street : options->n_files;
    for (int i = 0; i < bench->n; i++) {
        if (options->n_files > 0
                ? !read_kitti(options->files[i], &bench->scans[i])
                : !street_shoot(STREET_TOWN, &lidar, i, (uint64_t)i, &bench->scans[i])) {
            return false;
        }
        if (options->folder != NULL && options->n_street > 0 && !write_kitti(bench, i)) {
            (void)fprintf(stderr, "%s: cannot be written\n", options->folder);
            return false;
        }
    }
    return true;
}

static void quaternion_of(const double r[9], double q[4])
{
    q[3] =
        sqrt(fmax(1 + r[0] + r[4] + r[8], 1e-12)) / 2; /* scans turn by less than 180 */
    q[0] = (r[7] - r[5]) / (4 * q[3]);
    q[1] = (r[2] - r[6]) / (4 * q[3]);
    q[2] = (r[3] - r[1]) / (4 * q[3]);
}

/* Decodes records of x y z t with the motion that odometry knows. */
static enum vxd_status deskew(struct bench *bench, const struct vxd_odometry *odometry,
                              const struct vxd_buffer *records, size_t n, float *out,
                              struct vxd_err *err)
{
    static const double identity[4] = {0, 0, 0, 1};
    static const double zero[3] = {0};
    const struct vxd_field time = {12, VXD_FLOAT32, 1, 0};
    struct vxd_cloud cloud = {.data = records->ptr,
                              .n_points = n,
                              .point_step = 16,
                              .position = {{0, VXD_FLOAT32, 1, 0},
                                           {4, VXD_FLOAT32, 1, 0},
                                           {8, VXD_FLOAT32, 1, 0}},
                              .rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    struct vxd_volume_pose begin;
    double q[4];

    vxd_odometry_get_motion(odometry, &begin);
    quaternion_of(begin.rotation, q);
    memcpy(cloud.translation, begin.translation, sizeof begin.translation);
    vxd_cloud_set_motion(&cloud, &time, q, identity, 1, zero);
    return vxd_cloud_decode(bench->queue, &cloud, out, NULL, err);
}

static enum vxd_status run_scan(struct bench *bench, struct vxd_odometry *odometry, int i,
                                int round, struct vxd_odometry_result *result,
                                struct vxd_err *err)
{
    const struct street_scan *scan = &bench->scans[i];
    struct vxd_odometry_scan input = {.n_points = scan->n};
    struct vxd_buffer raw = {.space = VXD_SPACE_DEVICE};
    struct vxd_buffer points = {.space = VXD_SPACE_DEVICE};
    float *records = NULL;
    double wall;
    double cpu;
    enum vxd_status status;

    if (bench->options.deskew) {
        records = malloc(scan->n * 4 * sizeof *records);
        if (records == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
        }
        for (size_t k = 0; k < scan->n; k++) {
            memcpy(records + 4 * k, scan->points + 3 * k, 3 * sizeof(float));
            records[4 * k + 3] = scan->times[k];
        }
        VXD_TRY(vxd_device_alloc(bench->queue, scan->n * 16, &raw, err));
        VXD_TRY(vxd_device_alloc(bench->queue, scan->n * 12, &points, err));
        VXD_TRY(vxd_queue_copy(bench->queue, raw.ptr, records, raw.n_bytes, err));
    } else {
        VXD_TRY(vxd_device_alloc(bench->queue, scan->n * 12, &points, err));
        VXD_TRY(
            vxd_queue_copy(bench->queue, points.ptr, scan->points, points.n_bytes, err));
    }
    VXD_TRY(vxd_queue_wait(bench->queue, err));
    wall = now_ms(CLOCK_MONOTONIC);
    cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (bench->options.deskew) {
        VXD_TRY(deskew(bench, odometry, &raw, scan->n, points.ptr, err));
    }
    input.points = points.ptr;
    VXD_TRY(vxd_odometry_register(bench->queue, odometry, &input, result, err));
    bench->wall_ms[i * bench->options.repeat + round] = now_ms(CLOCK_MONOTONIC) - wall;
    bench->cpu_ms[i * bench->options.repeat + round] =
        now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
out:
    vxd_device_free(bench->queue, &points);
    vxd_device_free(bench->queue, &raw);
    (void)vxd_queue_wait(bench->queue, NULL);
    free(records);
    return status;
}

static void show(const struct bench *bench, int i, const struct vxd_odometry_result *r)
{
    static const char *const reasons[] = {"found",    "too few points", "too few inliers",
                                          "singular", "moved too far",  "not converged"};
    const double *m = r->T_map_sensor.rotation;
    const double *t = r->T_map_sensor.translation;
    int repeat = bench->options.repeat;

    (void)printf(
        "%4d %-15s %6.2f ms, CPU %6.2f  used %zu map %zu registered %zu, %zu steps,"
        " threshold %.3f fitness %.3f rmse %.3f constraint %.4f",
        i, reasons[r->reason], bench_median(bench->wall_ms + i * repeat, repeat),
        bench_median(bench->cpu_ms + i * repeat, repeat), r->n_used, r->n_map,
        r->n_registered, r->n_iterations, r->threshold_m, r->fitness, r->rmse_m,
        r->constraint);
    if (bench->options.n_street > 0) {
        struct vxd_volume_pose first = street_pose(0);
        struct vxd_volume_pose now = street_pose(i);
        struct vxd_volume_pose truth = street_between(&first, &now);

        (void)printf(" error %.1f mm %.3f deg",
                     1e3 * street_apart_m(&truth, &r->T_map_sensor),
                     street_apart_deg(&truth, &r->T_map_sensor));
    } else {
        (void)printf(
            "\n     [%.6f %.6f %.6f %.6f  %.6f %.6f %.6f %.6f  %.6f %.6f %.6f %.6f]",
            m[0], m[1], m[2], t[0], m[3], m[4], m[5], t[1], m[6], m[7], m[8], t[2]);
        (void)printf(" sigma x %.4f y %.4f z %.4f m", sqrt(r->covariance[0]),
                     sqrt(r->covariance[7]), sqrt(r->covariance[14]));
    }
    (void)printf("\n");
}

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    static struct vxd_odometry_result results[MAX_SCANS];
    double *walls = NULL;
    double *cpus = NULL;
    enum vxd_status status = VXD_OK;

    for (int round = 0; round < bench->options.repeat; round++) {
        struct vxd_odometry *odometry = NULL;

        VXD_TRY(vxd_odometry_create(bench->queue, &bench->options.odometry, NULL,
                                    &odometry, err));
        for (int i = 0; i < bench->n && status == VXD_OK; i++) {
            status = run_scan(bench, odometry, i, round, &results[i], err);
        }
        vxd_odometry_destroy(bench->queue, odometry);
        VXD_TRY(status);
    }
    walls = calloc((size_t)bench->n, sizeof *walls);
    cpus = calloc((size_t)bench->n, sizeof *cpus);
    for (int i = 0; i < bench->n; i++) {
        show(bench, i, &results[i]);
        if (walls != NULL && cpus != NULL) {
            walls[i] = bench_median(bench->wall_ms + i * bench->options.repeat,
                                    bench->options.repeat);
            cpus[i] = bench_median(bench->cpu_ms + i * bench->options.repeat,
                                   bench->options.repeat);
        }
    }
    if (walls != NULL && cpus != NULL && bench->n > 2) {
        (void)printf("median of scans 2 to %d: %.3f ms, CPU %.3f ms\n", bench->n,
                     bench_median(walls + 1, bench->n - 1),
                     bench_median(cpus + 1, bench->n - 1));
    }
out:
    free(walls);
    free(cpus);
    return status;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct vxd_context_options context = {0};
    struct vxd_context_info info;
    struct vxd_err err = {0};
    size_t n_times;
    int result = 1;

    if (!parse(argc, argv, &bench.options)) {
        (void)fprintf(
            stderr,
            "usage: bench_odometry [FILE.bin ...] [--street N] [--backend cpu|cuda]\n"
            "       [--threads N] [--repeat N] [--method point|plane] [--voxel M]\n"
            "       [--deskew 0|1] [--write FOLDER]\n");
        return 2;
    }
    context.backend = bench.options.backend;
    context.n_threads = bench.options.n_threads;
    if (vxd_context_create(&context, &bench.context, &err) != VXD_OK ||
        vxd_queue_create(bench.context, &bench.queue, &err) != VXD_OK) {
        result = fail(&err);
        goto out;
    }
    vxd_context_get_info(bench.context, &info);
    (void)printf("%s, %d threads\n", info.name, info.n_threads);
    if (!get_scans(&bench)) {
        goto out;
    }
    n_times = (size_t)bench.n * (size_t)bench.options.repeat;
    bench.wall_ms = calloc(n_times, sizeof *bench.wall_ms);
    bench.cpu_ms = calloc(n_times, sizeof *bench.cpu_ms);
    if (bench.wall_ms == NULL || bench.cpu_ms == NULL) {
        goto out;
    }
    result = run(&bench, &err) == VXD_OK ? 0 : fail(&err);
out:
    for (int i = 0; i < bench.n; i++) {
        street_free(&bench.scans[i]);
    }
    free(bench.wall_ms);
    free(bench.cpu_ms);
    vxd_queue_destroy(bench.queue);
    vxd_context_destroy(bench.context);
    return result;
}
