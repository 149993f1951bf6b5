// SPDX-License-Identifier: Apache-2.0
/* Times integration of depth frames into a volume and ray casts out of it, in the paper's two
 * modes (section 6.2.6): fast, blocks of 8^3 without colour, rays bounded by the frame's blocks;
 * complete, blocks of 16^3 with colour, rays through all blocks. 640 x 480, 5.8 mm, truncation
 * 4 cm, 0.2 to 3 m.
 *
 *   bench_volume [--backend cpu|cuda] [--frames FILE] [--n N] [--threads N] [--voxel-mm MM]
 *                [--truncation-mm MM] [--dump FILE]
 *
 * --dump writes the fast mode's blocks after each frame was integrated once, and ends;
 * check_volume.py compares them with NumPy. The frames' FILE is of rgbd_frames.py; without it N
 * frames of a made-up room are rendered. All frames are integrated once (the row "first": blocks
 * are new), then timed again. A time is the median over the frames, of the device (CUDA events
 * around the call, with caches flushed before; an integration waits once within) or of the wall
 * clock on the CPU; "CPU" is the time of all threads of the process. "Call to wait" has the flush
 * in it on a GPU. The floor is the bytes of the touched blocks, read and written once, and of the
 * images over the copy bandwidth that was measured in this run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/volume/volume.h"
#include "tests/bench/support/bench_device.h"

#define MAX_FRAMES 256
#define FLOOR_BYTES ((size_t)256 << 20)

struct options {
    enum vxd_backend backend;
    const char *file;
    const char *dump;
    int n_frames;
    int n_threads;
    double voxel_mm;
    double truncation_mm;
};

struct frames {
    int n;
    struct vxd_volume_camera camera;
    struct vxd_volume_pose poses[MAX_FRAMES];
    uint16_t *depths; /* n images */
    uint8_t *colours;
};

struct bench {
    struct options options;
    struct frames frames;
    struct bench_device device;
    struct bench_floors floors;
    struct vxd_buffer d_depths;
    struct vxd_buffer d_colours;
    struct vxd_buffer pictures; /* depth, vertex, normal, colour */
};

static size_t n_pixels(const struct frames *frames)
{
    return (size_t)frames->camera.width * (size_t)frames->camera.height;
}

static bool alloc_frames(struct frames *frames)
{
    size_t n = (size_t)frames->n * n_pixels(frames);

    frames->depths = malloc(n * sizeof *frames->depths);
    frames->colours = malloc(3 * n);
    return frames->depths != NULL && frames->colours != NULL;
}

static bool read_frames(const char *path, int most, struct frames *out)
{
    FILE *file = fopen(path, "rb");
    bool is_whole = false;
    char line[256];

    if (file == NULL || fgets(line, sizeof line, file) == NULL ||
        sscanf(line, "voxeld-frames %d %d %d %lf %lf %lf %lf", &out->n,
               &out->camera.width, &out->camera.height, &out->camera.fx, &out->camera.fy,
               &out->camera.cx, &out->camera.cy) != 7 ||
        out->n < 1 || out->n > MAX_FRAMES || out->camera.width < 1 ||
        out->camera.width > 16384 || out->camera.height < 1 ||
        out->camera.height > 16384) {
        (void)fprintf(stderr, "%s: no file of frames\n", path);
        goto out;
    }
    out->n = out->n < most ? out->n : most;
    if (!alloc_frames(out)) {
        goto out;
    }
    is_whole = true;
    for (int i = 0; i < out->n; i++) {
        size_t n = n_pixels(out);
        double pose[16];

        is_whole = is_whole && fread(pose, sizeof pose, 1, file) == 1 &&
                   fread(out->depths + (size_t)i * n, 2, n, file) == n &&
                   fread(out->colours + (size_t)i * n * 3, 3, n, file) == n;
        for (int row = 0; is_whole && row < 3; row++) {
            memcpy(&out->poses[i].rotation[3 * row], &pose[4 * row], 3 * sizeof(double));
            out->poses[i].translation[row] = pose[4 * row + 3];
        }
    }
out:
    if (file != NULL) {
        (void)fclose(file);
    }
    return is_whole;
}

/* Depth along a ray from p to the walls of a room of 4 x 3 x 4 m around zero, or to a ball. */
static double room_depth(const double p[3], const double d[3])
{
    static const double half[3] = {2, 1.5, 2};
    static const double ball[3] = {0.3, 0.4, 1.2};
    double a = 0;
    double b = 0;
    double c = -0.25;
    double t = 1e9;

    for (int i = 0; i < 3; i++) {
        double wall = ((d[i] > 0 ? half[i] : -half[i]) - p[i]) / d[i];

        t = d[i] != 0 && wall < t ? wall : t;
        a += d[i] * d[i];
        b += d[i] * (p[i] - ball[i]);
        c += (p[i] - ball[i]) * (p[i] - ball[i]);
    }
    if (b * b > a * c && -b - sqrt(b * b - a * c) > 0) {
        double near_t = (-b - sqrt(b * b - a * c)) / a;

        t = near_t < t ? near_t : t;
    }
    return t;
}

static bool make_frames(int n, struct frames *out)
{
    out->n = n;
    out->camera = (struct vxd_volume_camera){
        .width = 640, .height = 480, .fx = 585, .fy = 585, .cx = 319.5, .cy = 239.5};
    if (!alloc_frames(out)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        struct vxd_volume_pose *pose = &out->poses[i];
        double yaw = 0.01 * i;
        double r[9] = {cos(yaw), 0, sin(yaw), 0, 1, 0, -sin(yaw), 0, cos(yaw)};

        memcpy(pose->rotation, r, sizeof r);
        memcpy(pose->translation, (double[3]){0.004 * i, 0.1, -0.3}, 3 * sizeof(double));
        for (size_t pixel = 0; pixel < n_pixels(out); pixel++) {
            size_t at = (size_t)i * n_pixels(out) + pixel;
            double x = ((double)(pixel % 640) - 319.5) / 585;
            double y = ((double)(pixel / 640) - 239.5) / 585;
            double d[3];

            for (int axis = 0; axis < 3; axis++) {
                d[axis] = r[3 * axis] * x + r[3 * axis + 1] * y + r[3 * axis + 2];
            }
            out->depths[at] = (uint16_t)lround(1000 * room_depth(pose->translation, d));
            for (int c = 0; c < 3; c++) {
                out->colours[3 * at + (size_t)c] =
                    (uint8_t)(pixel % 640 / (size_t)(c + 3) + pixel / 6400);
            }
        }
    }
    return true;
}

static struct vxd_volume_frame frame_of(const struct bench *bench, int i, bool has_colour)
{
    size_t n = n_pixels(&bench->frames);
    const uint8_t *colours = bench->d_colours.ptr;

    return (struct vxd_volume_frame){
        .camera = bench->frames.camera,
        .T_map_camera = bench->frames.poses[i],
        .depth = (const uint16_t *)bench->d_depths.ptr + (size_t)i * n,
        .dtype = VXD_UINT16,
        .depth_min_m = 0.2,
        .depth_max_m = 3,
        .colour = has_colour ? colours + (size_t)i * n * 3 : NULL};
}

static double cpu_now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct times {
    double device[MAX_FRAMES];
    double wall[MAX_FRAMES];
    double cpu[MAX_FRAMES];
    double blocks; /* mean a frame */
};

static void print_row(const struct bench *bench, const char *name, struct times *times,
                      int n, double n_bytes)
{
    double device_s = bench_median(times->device, n);
    double wall_s = bench_median(times->wall, n);
    double cpu_s = bench_median(times->cpu, n);
    double floor_s = n_bytes / bench->floors.copy_bytes_per_s;

    (void)printf("| %-28s | %8.0f | %8.4f | %8.4f | %8.2f | %8.4f | %6.1f |\n", name,
                 times->blocks, 1e3 * device_s, 1e3 * wall_s, 1e3 * cpu_s, 1e3 * floor_s,
                 device_s / floor_s);
    (void)fflush(stdout);
}

/* Integrates all frames once; the times are those of every call. */
static enum vxd_status integrate_all(struct bench *bench, struct vxd_volume *volume,
                                     bool has_colour, struct times *out,
                                     struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    enum vxd_status status = VXD_OK;

    out->blocks = 0;
    for (int i = 0; i < bench->frames.n; i++) {
        struct vxd_volume_frame frame = frame_of(bench, i, has_colour);
        struct vxd_volume_activation done;
        double start;
        double cpu;

        VXD_TRY(bench_device_flush(&bench->device, err));
        start = bench_now_s();
        cpu = cpu_now_s();
        (void)bench_device_start(&bench->device);
        VXD_TRY(vxd_volume_integrate(queue, volume, &frame, &done, err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(queue, err));
        out->wall[i] = bench_now_s() - start;
        out->cpu[i] = cpu_now_s() - cpu;
        out->device[i] = bench_device_seconds(&bench->device);
        out->blocks += (double)done.n_blocks / bench->frames.n;
    }
out:
    return status;
}

/* The second half of an integration alone. */
static enum vxd_status fuse_all(struct bench *bench, struct vxd_volume *volume,
                                bool has_colour, struct times *out, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    enum vxd_status status = VXD_OK;

    out->blocks = 0;
    for (int i = 0; i < bench->frames.n; i++) {
        struct vxd_volume_frame frame = frame_of(bench, i, has_colour);
        struct vxd_volume_activation done;
        double start;
        double cpu;

        VXD_TRY(vxd_volume_activate(queue, volume, &frame, &done, err));
        VXD_TRY(bench_device_flush(&bench->device, err));
        start = bench_now_s();
        cpu = cpu_now_s();
        (void)bench_device_start(&bench->device);
        VXD_TRY(vxd_volume_fuse(queue, volume, &frame, 0, done.n_blocks, err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(queue, err));
        out->wall[i] = bench_now_s() - start;
        out->cpu[i] = cpu_now_s() - cpu;
        out->device[i] = bench_device_seconds(&bench->device);
        out->blocks += (double)done.n_blocks / bench->frames.n;
    }
out:
    return status;
}

static enum vxd_status cast_all(struct bench *bench, struct vxd_volume *volume,
                                bool has_colour, enum vxd_volume_cast_mode mode,
                                struct times *out, double *hits, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    size_t n = n_pixels(&bench->frames);
    float *pictures = bench->pictures.ptr;
    enum vxd_status status = VXD_OK;
    uint8_t *mask = malloc(n);

    *hits = 0;
    for (int i = 0; mask != NULL && i < bench->frames.n; i++) {
        struct vxd_volume_frame frame = frame_of(bench, i, has_colour);
        struct vxd_volume_cast_args args = {
            .camera = bench->frames.camera,
            .T_map_camera = bench->frames.poses[i],
            .depth_min_m = 0.2,
            .depth_max_m = 3,
            .mode = mode,
            .depth = pictures,
            .vertex = pictures + n,
            .normal = pictures + 4 * n,
            .colour = has_colour ? (uint8_t *)(pictures + 7 * n) : NULL,
            .mask = (uint8_t *)(pictures + 8 * n)};
        struct vxd_volume_activation done;
        double start;
        double cpu;

        VXD_TRY(vxd_volume_activate(queue, volume, &frame, &done, err));
        VXD_TRY(bench_device_flush(&bench->device, err));
        start = bench_now_s();
        cpu = cpu_now_s();
        (void)bench_device_start(&bench->device);
        VXD_TRY(vxd_volume_cast(queue, volume, &args, err));
        (void)bench_device_stop(&bench->device);
        VXD_TRY(vxd_queue_wait(queue, err));
        out->wall[i] = bench_now_s() - start;
        out->cpu[i] = cpu_now_s() - cpu;
        out->device[i] = bench_device_seconds(&bench->device);
        VXD_TRY(vxd_queue_copy(queue, mask, args.mask, n, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        for (size_t pixel = 0; pixel < n; pixel++) {
            *hits += mask[pixel] / (double)n / bench->frames.n;
        }
    }
out:
    free(mask);
    return status;
}

/* Writes "voxeld-blocks N VOXEL_M MU_M", then of N blocks the keys (int32), the distances and the
 * weights (float32). */
static enum vxd_status dump_blocks(struct bench *bench, struct vxd_volume *volume,
                                   struct vxd_err *err)
{
    FILE *file = fopen(bench->options.dump, "wb");
    struct vxd_hashmap_image image = {0};
    struct vxd_volume_info info;
    enum vxd_status status;
    bool is_written;

    if (file == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, "dump", "%s: cannot be written",
                        bench->options.dump);
    }
    vxd_volume_get_info(volume, &info);
    VXD_TRY(vxd_hashmap_export(bench->device.queue, vxd_volume_map(volume), &image, err));
    is_written =
        fprintf(file, "voxeld-blocks %zu %.17g %.17g\n", image.n_entries,
                info.spec.voxel_size_m, info.spec.truncation_m) > 0 &&
        fwrite(image.keys.ptr, 12, image.n_entries, file) == image.n_entries &&
        fwrite(image.values[1].ptr, 2048, image.n_entries, file) == image.n_entries &&
        fwrite(image.values[2].ptr, 2048, image.n_entries, file) == image.n_entries;
    if (!is_written) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "dump", "%s: not written whole",
                          bench->options.dump);
    }
    vxd_hashmap_image_free(&image);
out:
    (void)fclose(file);
    return status;
}

static enum vxd_status run_mode(struct bench *bench, bool is_complete,
                                struct vxd_err *err)
{
    const char *mode = is_complete ? "complete 16^3 + colour" : "fast 8^3";
    struct vxd_volume_spec spec = {.voxel_size_m = bench->options.voxel_mm / 1000,
                                   .block_edge = is_complete ? 16 : 8,
                                   .truncation_m = bench->options.truncation_mm / 1000,
                                   .has_colour = is_complete};
    struct vxd_volume *volume = NULL;
    struct vxd_volume_info info;
    struct times times;
    char name[64];
    double images = (double)n_pixels(&bench->frames) * (is_complete ? 5 : 2);
    double outputs = (double)n_pixels(&bench->frames) * (is_complete ? 32 : 29);
    double block_bytes;
    double hits;
    enum vxd_status status;

    VXD_TRY(vxd_volume_create(bench->device.queue, &spec, &volume, err));
    VXD_TRY(integrate_all(bench, volume, is_complete, &times, err));
    vxd_volume_get_info(volume, &info);
    if (bench->options.dump != NULL) {
        status = dump_blocks(bench, volume, err);
        goto out;
    }
    block_bytes = (double)info.block_bytes;
    (void)snprintf(name, sizeof name, "first %s", mode);
    print_row(bench, name, &times, bench->frames.n,
              2 * block_bytes * times.blocks + images);
    VXD_TRY(integrate_all(bench, volume, is_complete, &times, err));
    (void)snprintf(name, sizeof name, "integrate %s", mode);
    print_row(bench, name, &times, bench->frames.n,
              2 * block_bytes * times.blocks + images);
    VXD_TRY(fuse_all(bench, volume, is_complete, &times, err));
    (void)snprintf(name, sizeof name, "of it fuse %s", mode);
    print_row(bench, name, &times, bench->frames.n,
              2 * block_bytes * times.blocks + images);
    for (int local = 1; local >= 0; local--) {
        VXD_TRY(cast_all(bench, volume, is_complete,
                         local != 0 ? VXD_VOLUME_CAST_LOCAL : VXD_VOLUME_CAST_GLOBAL,
                         &times, &hits, err));
        (void)snprintf(name, sizeof name, "cast %s %s", local != 0 ? "local" : "global",
                       mode);
        print_row(bench, name, &times, bench->frames.n, outputs);
    }
    (void)printf(
        "%s: %zu blocks of %zu bytes, %.1f MiB with index and frame map; %.1f %% of "
        "rays hit\n",
        mode, info.n_blocks, info.block_bytes, (double)info.n_bytes / 1048576.0,
        100 * hits);
out:
    vxd_volume_destroy(bench->device.queue, volume);
    return status;
}

static enum vxd_status upload(struct bench *bench, struct vxd_err *err)
{
    struct vxd_queue *queue = bench->device.queue;
    size_t n = n_pixels(&bench->frames);
    size_t all = (size_t)bench->frames.n * n;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, 2 * all, &bench->d_depths, err));
    VXD_TRY(vxd_device_alloc(queue, 3 * all, &bench->d_colours, err));
    VXD_TRY(vxd_device_alloc(queue, 36 * n, &bench->pictures, err));
    VXD_TRY(
        vxd_queue_copy(queue, bench->d_depths.ptr, bench->frames.depths, 2 * all, err));
    VXD_TRY(
        vxd_queue_copy(queue, bench->d_colours.ptr, bench->frames.colours, 3 * all, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

static enum vxd_status run_all(struct bench *bench, struct vxd_err *err)
{
    const struct options *options = &bench->options;
    struct vxd_context_info info;
    enum vxd_status status;

    VXD_TRY(
        bench_device_create(options->backend, options->n_threads, &bench->device, err));
    /* A host that waits for longer than a fifth of a millisecond sleeps, and would wake late. */
    bench->device.n_flushes = 1;
    vxd_context_get_info(bench->device.context, &info);
    VXD_TRY(bench_device_floors(&bench->device, FLOOR_BYTES, FLOOR_BYTES / 32,
                                &bench->floors, err));
    VXD_TRY(upload(bench, err));
    (void)printf("%s; %s, %d frames of %d x %d, %g mm voxels; copy %.1f GB/s (read + "
                 "written)\n\n| what | blocks a frame | ms | call to wait, ms | CPU, ms "
                 "| floor, ms | "
                 "ratio |\n|---|---:|---:|---:|---:|---:|---:|\n",
                 info.name, options->file != NULL ? options->file : "made-up room",
                 bench->frames.n, bench->frames.camera.width, bench->frames.camera.height,
                 options->voxel_mm, bench->floors.copy_bytes_per_s * 1e-9);
    VXD_TRY(run_mode(bench, false, err));
    if (options->dump == NULL) {
        VXD_TRY(run_mode(bench, true, err));
    }
out:
    if (bench->device.queue != NULL) {
        vxd_device_free(bench->device.queue, &bench->pictures);
        vxd_device_free(bench->device.queue, &bench->d_colours);
        vxd_device_free(bench->device.queue, &bench->d_depths);
    }
    bench_device_destroy(&bench->device);
    return status;
}

static void usage(void)
{
    (void)fprintf(stderr, "usage: bench_volume [--backend cpu|cuda] [--frames FILE] "
                          "[--n 1..256] [--threads N] [--voxel-mm MM] [--dump FILE]\n");
    exit(2);
}

static void parse(int argc, char **argv, struct options *out)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--backend") == 0 &&
            (strcmp(value, "cpu") == 0 || strcmp(value, "cuda") == 0)) {
            out->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(argv[i], "--frames") == 0 && *value != '\0') {
            out->file = value;
        } else if (strcmp(argv[i], "--dump") == 0 && *value != '\0') {
            out->dump = value;
        } else if (strcmp(argv[i], "--n") == 0) {
            out->n_frames = (int)bench_number(value, 1, MAX_FRAMES, usage);
        } else if (strcmp(argv[i], "--threads") == 0) {
            out->n_threads = (int)bench_number(value, 0, 256, usage);
        } else if (strcmp(argv[i], "--voxel-mm") == 0 && strtod(value, NULL) >= 1 &&
                   strtod(value, NULL) <= 1000) {
            out->voxel_mm = strtod(value, NULL);
        } else if (strcmp(argv[i], "--truncation-mm") == 0 && strtod(value, NULL) >= 1 &&
                   strtod(value, NULL) <= 10000) {
            out->truncation_mm = strtod(value, NULL);
        } else {
            usage();
        }
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {.options = {.backend = VXD_BACKEND_CPU,
                                      .n_frames = 45,
                                      .voxel_mm = 5.8,
                                      .truncation_mm = 40}};
    struct vxd_err err = {0};
    bool has_frames;
    enum vxd_status status = VXD_INTERNAL;

    parse(argc, argv, &bench.options);
    has_frames =
        bench.options.file != NULL
            ? read_frames(bench.options.file, bench.options.n_frames, &bench.frames)
            : make_frames(bench.options.n_frames, &bench.frames);
    if (has_frames) {
        status = run_all(&bench, &err);
        if (status != VXD_OK) {
            (void)fprintf(stderr, "bench_volume: %s\n", err.message);
        }
    }
    free(bench.frames.colours);
    free(bench.frames.depths);
    return status == VXD_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
