// SPDX-License-Identifier: Apache-2.0
/* Tracks a camera through the frames of a file, as VolumeTrackAndIntegrate does, and compares its
 * poses with those of the file.
 *
 *   bench_track FILE [--backend cpu|cuda] [--n N] [--threads N] [--voxel-mm MM]
 *               [--method plane|intensity|hybrid] [--robust huber|tukey|squares] [--pixels N]
 *               [--out FILE]
 *
 * FILE is of rgbd_frames.py or room_scene.py. The first frame is integrated at its own pose, so
 * errors of positions need no alignment ("as they are"); the row "standing still" is the score of
 * a camera that never moves. Times are the wall clock around tracking, which waits, and around
 * integration with its wait; "CPU" is the time of all threads of the process. --out writes the
 * poses found, 16 float64 each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/core/core.h"
#include "gpu/track/track.h"

#define MAX_FRAMES 4096
#define DEGREES 57.29577951308232

struct options {
    const char *file;
    const char *out;
    enum vxd_backend backend;
    int n;
    int n_threads;
    double voxel_mm;
    struct vxd_track_options track;
};

struct bench {
    struct options options;
    FILE *file;
    int n;
    struct vxd_volume_camera camera;
    struct vxd_context *context;
    struct vxd_queue *queue;
    struct vxd_volume *volume;
    uint16_t *depth;
    uint8_t *colour;
    struct vxd_volume_pose truth[MAX_FRAMES];
    struct vxd_volume_pose found[MAX_FRAMES];
    double track_ms[MAX_FRAMES];
    double integrate_ms[MAX_FRAMES];
    int n_lost;
    double least[3]; /* fitness, agreement, constraint */
};

static int fail(const struct vxd_err *err)
{
    (void)fprintf(stderr, "bench_track: %s %s\n", err->field, err->message);
    return 1;
}

static double now_ms(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The index of a word in a list; -1 where it is not there. */
static int find_word(const char *word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(word, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static bool parse(int argc, char **argv, struct options *out)
{
    static const char *const backends[] = {"cpu", "cuda"};
    static const char *const methods[] = {"plane", "intensity", "hybrid"};
    static const char *const robusts[] = {"huber", "tukey", "squares"};
    int backend = 0;
    int method = 0;
    int robust = 0;

    *out = (struct options){
        .file = argc > 1 ? argv[1] : NULL, .n = MAX_FRAMES, .voxel_mm = 10};
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--backend") == 0) {
            backend = find_word(value, backends, 2);
        } else if (strcmp(argv[i], "--method") == 0) {
            method = find_word(value, methods, 3);
        } else if (strcmp(argv[i], "--robust") == 0) {
            robust = find_word(value, robusts, 3);
        } else if (strcmp(argv[i], "--n") == 0) {
            out->n = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--threads") == 0) {
            out->n_threads = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--voxel-mm") == 0) {
            out->voxel_mm = strtod(value, NULL);
        } else if (strcmp(argv[i], "--pixels") == 0) {
            out->track.max_pixels = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--out") == 0) {
            out->out = value;
        } else {
            return false;
        }
    }
    out->backend = backend == 1 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
    out->track.method = (enum vxd_track_method)method;
    out->track.robust = (enum vxd_track_robust)robust;
    return out->file != NULL && argc % 2 == 0 && out->n > 0 && backend >= 0 &&
           method >= 0 && robust >= 0;
}

static bool open_file(struct bench *bench)
{
    char line[256];

    bench->file = fopen(bench->options.file, "rb");
    if (bench->file == NULL || fgets(line, sizeof line, bench->file) == NULL ||
        sscanf(line, "voxeld-frames %d %d %d %lf %lf %lf %lf", &bench->n,
               &bench->camera.width, &bench->camera.height, &bench->camera.fx,
               &bench->camera.fy, &bench->camera.cx, &bench->camera.cy) != 7 ||
        bench->camera.width < 1 || bench->camera.width > 16384 ||
        bench->camera.height < 1 || bench->camera.height > 16384) {
        (void)fprintf(stderr, "%s: no file of frames\n", bench->options.file);
        return false;
    }
    bench->n = bench->n < bench->options.n ? bench->n : bench->options.n;
    bench->n = bench->n < MAX_FRAMES ? bench->n : MAX_FRAMES;
    bench->depth = malloc((size_t)bench->camera.width * (size_t)bench->camera.height *
                          sizeof *bench->depth);
    bench->colour =
        malloc(3 * (size_t)bench->camera.width * (size_t)bench->camera.height);
    return bench->depth != NULL && bench->colour != NULL;
}

static bool read_frame(struct bench *bench, int i)
{
    size_t n = (size_t)bench->camera.width * (size_t)bench->camera.height;
    double pose[16];

    if (fread(pose, sizeof pose, 1, bench->file) != 1 ||
        fread(bench->depth, 2, n, bench->file) != n ||
        fread(bench->colour, 3, n, bench->file) != n) {
        (void)fprintf(stderr, "%s: ends within frame %d\n", bench->options.file, i);
        return false;
    }
    for (int row = 0; row < 3; row++) {
        memcpy(&bench->truth[i].rotation[3 * row], &pose[4 * row], 3 * sizeof(double));
        bench->truth[i].translation[row] = pose[4 * row + 3];
    }
    return true;
}

/* Tracks and integrates one frame, whose arrays are on the device. */
static enum vxd_status run_frame(struct bench *bench, int i,
                                 struct vxd_volume_frame *frame,
                                 struct vxd_track_state *state, struct vxd_err *err)
{
    struct vxd_volume_activation done;
    struct vxd_track_result result = {.status = VXD_TRACK_OK,
                                      .T_map_camera = bench->truth[0]};
    double start = now_ms(CLOCK_MONOTONIC);
    enum vxd_status status;

    if (i > 0) {
        vxd_track_predict(state, &frame->T_map_camera);
        VXD_TRY(vxd_track(bench->queue, bench->volume, frame, &bench->options.track,
                          &result, err));
    }
    if (i > 0) {
        bench->least[0] = fmin(bench->least[0], result.fitness);
        bench->least[1] = fmin(bench->least[1], result.agreement);
        bench->least[2] = fmin(bench->least[2], result.constraint);
    }
    bench->track_ms[i] = now_ms(CLOCK_MONOTONIC) - start;
    start = now_ms(CLOCK_MONOTONIC);
    bench->found[i] = result.T_map_camera;
    if (result.status == VXD_TRACK_OK) {
        vxd_track_accept(state, &result.T_map_camera);
        frame->T_map_camera = result.T_map_camera;
        VXD_TRY(vxd_volume_integrate(bench->queue, bench->volume, frame, &done, err));
        VXD_TRY(vxd_queue_wait(bench->queue, err));
    } else {
        (void)fprintf(stderr, "frame %d: LOST, reason %d, fitness %.2f, agreement %.2f\n",
                      i, (int)result.reason, result.fitness, result.agreement);
        vxd_track_lose(state);
        bench->n_lost++;
    }
    bench->integrate_ms[i] = now_ms(CLOCK_MONOTONIC) - start;
    status = VXD_OK;
out:
    return status;
}

static enum vxd_status run(struct bench *bench, struct vxd_err *err)
{
    size_t n = (size_t)bench->camera.width * (size_t)bench->camera.height;
    struct vxd_track_state state = {0};
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < bench->n && status == VXD_OK && read_frame(bench, i); i++) {
        struct vxd_volume_frame frame = {.camera = bench->camera,
                                         .T_map_camera = bench->truth[0],
                                         .dtype = VXD_UINT16,
                                         .depth_min_m = 0.2,
                                         .depth_max_m = 4};
        struct vxd_buffer depth = {NULL, 0, VXD_SPACE_DEVICE};
        struct vxd_buffer colour = {NULL, 0, VXD_SPACE_DEVICE};
        const void *device;

        VXD_TRY(vxd_upload(bench->queue, bench->depth, 2 * n, &depth, &device, err));
        frame.depth = device;
        VXD_TRY(vxd_upload(bench->queue, bench->colour, 3 * n, &colour, &device, err));
        frame.colour = device;
        VXD_TRY(vxd_queue_wait(bench->queue, err));
        status = run_frame(bench, i, &frame, &state, err);
        vxd_device_free(bench->queue, &depth);
        vxd_device_free(bench->queue, &colour);
    }
out:
    return status;
}

/* ---- Errors ---- */

/* b in the frame of a. */
static struct vxd_volume_pose between(const struct vxd_volume_pose *a,
                                      const struct vxd_volume_pose *b)
{
    struct vxd_volume_pose out = {0};

    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            for (int j = 0; j < 3; j++) {
                out.rotation[3 * i + j] +=
                    a->rotation[3 * k + i] * b->rotation[3 * k + j];
            }
            out.translation[i] +=
                a->rotation[3 * k + i] * (b->translation[k] - a->translation[k]);
        }
    }
    return out;
}

static double length2(const double v[3])
{
    return v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
}

static double turned_deg(const struct vxd_volume_pose *pose)
{
    double chord2 = 0;

    for (int i = 0; i < 9; i++) {
        double d = pose->rotation[i] - (i % 4 == 0 ? 1 : 0);

        chord2 += d * d;
    }
    return 2 * asin(fmin(sqrt(chord2 / 8), 1)) * DEGREES;
}

static void print_errors(const struct bench *bench, const char *name, bool stands_still)
{
    double positions = 0;
    double steps = 0;
    double turns = 0;
    double last = 0;

    for (int i = 0; i < bench->n; i++) {
        const struct vxd_volume_pose *at =
            stands_still ? &bench->truth[0] : &bench->found[i];
        struct vxd_volume_pose off = between(&bench->truth[i], at);

        positions += length2(off.translation);
        last = sqrt(length2(off.translation));
        if (i > 0) {
            const struct vxd_volume_pose *before =
                stands_still ? &bench->truth[0] : &bench->found[i - 1];
            struct vxd_volume_pose ours = between(before, at);
            struct vxd_volume_pose theirs =
                between(&bench->truth[i - 1], &bench->truth[i]);

            off = between(&theirs, &ours);
            steps += length2(off.translation);
            turns += pow(turned_deg(&off), 2);
        }
    }
    (void)printf("| %s | %.1f | %.1f | %.2f | %.3f |\n", name,
                 1e3 * sqrt(positions / bench->n), 1e3 * last,
                 1e3 * sqrt(steps / (bench->n - 1)), sqrt(turns / (bench->n - 1)));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y ? 1 : 0;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

static void report(struct bench *bench, double cpu_ms)
{
    struct vxd_volume_info info;
    double path = 0;

    vxd_volume_get_info(bench->volume, &info);
    for (int i = 1; i < bench->n; i++) {
        struct vxd_volume_pose step = between(&bench->truth[i - 1], &bench->truth[i]);

        path += sqrt(length2(step.translation));
    }
    (void)printf("%d frames of %d x %d, %.2f m; %.1f mm voxels, %zu blocks; %d lost\n\n",
                 bench->n, bench->camera.width, bench->camera.height, path,
                 bench->options.voxel_mm, info.n_blocks, bench->n_lost);
    (void)printf("| trajectory | ATE rms as it is, mm | at the end, mm | RPE a frame, mm "
                 "| RPE, degrees |\n|---|---:|---:|---:|---:|\n");
    print_errors(bench, "tracked", false);
    print_errors(bench, "standing still", true);
    (void)printf("\nleast fitness %.3f, agreement %.3f, constraint %.4f\n",
                 bench->least[0], bench->least[1], bench->least[2]);
    (void)printf("track %.2f ms, integrate %.2f ms (medians); %.1f ms of CPU a frame\n",
                 median(bench->track_ms, bench->n), median(bench->integrate_ms, bench->n),
                 cpu_ms / bench->n);
}

static void write_poses(const struct bench *bench)
{
    FILE *out = fopen(bench->options.out, "wb");

    for (int i = 0; out != NULL && i < bench->n; i++) {
        const struct vxd_volume_pose *pose = &bench->found[i];
        double m[16] = {[15] = 1};

        for (int row = 0; row < 3; row++) {
            memcpy(m + 4 * row, pose->rotation + 3 * row, 3 * sizeof(double));
            m[4 * row + 3] = pose->translation[row];
        }
        (void)fwrite(m, sizeof m, 1, out);
    }
    if (out == NULL || fclose(out) != 0) {
        perror(bench->options.out);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct vxd_volume_spec spec = {.block_edge = 8, .has_colour = true};
    struct vxd_context_options context = {0};
    struct vxd_err err = {0};
    double cpu_ms;
    int result = 1;

    if (!parse(argc, argv, &bench.options)) {
        (void)fprintf(stderr, "usage: bench_track FILE [--option value ...]; see the "
                              "source\n");
        return 2;
    }
    context.backend = bench.options.backend;
    context.n_threads = bench.options.n_threads;
    spec.voxel_size_m = bench.options.voxel_mm / 1e3;
    for (int k = 0; k < 3; k++) {
        bench.least[k] = 1;
    }
    spec.truncation_m = 4 * spec.voxel_size_m;
    if (!open_file(&bench)) {
        return 1;
    }
    if (vxd_context_create(&context, &bench.context, &err) != VXD_OK ||
        vxd_queue_create(bench.context, &bench.queue, &err) != VXD_OK ||
        vxd_volume_create(bench.queue, &spec, &bench.volume, &err) != VXD_OK) {
        return fail(&err);
    }
    cpu_ms = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (run(&bench, &err) == VXD_OK) {
        report(&bench, now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu_ms);
        if (bench.options.out != NULL) {
            write_poses(&bench);
        }
        result = 0;
    } else {
        (void)fail(&err);
    }
    vxd_volume_destroy(bench.queue, bench.volume);
    vxd_queue_destroy(bench.queue);
    vxd_context_destroy(bench.context);
    (void)fclose(bench.file);
    free(bench.depth);
    free(bench.colour);
    return result;
}
