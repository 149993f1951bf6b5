// SPDX-License-Identifier: Apache-2.0
/* Fragments of a room that a distorting, noisy depth camera has seen, aligned by poses alone and with a
 * control grid; and how long a deformed image takes to integrate.
 *
 *   bench_slac TRIANGLES [--backend cpu|cuda] [--threads N] [--fragments N] [--frames N] [--width N]
 *              [--amplitude-mm MM] [--noise F] [--steps N] [--voxel-mm MM] [--lambda L] [--out DIR]
 *
 * TRIANGLES is of gltf_triangles.py. Each fragment fuses --frames images (default 42 of 48 fragments:
 * 2,016 in all) in the frame of its first camera, in which the planted distortion lies, too. Scores are at
 * 20 mm against points that the undistorted camera would have seen, after a rigid alignment. --out writes
 * fragments (.ply with normals), their poses, and the truth, for bench_open3d_slac.py.
 * Times are the wall clock around calls that wait; "CPU" is that of all threads of the process. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/slac/slac.h"
#include "gpu/surface/surface.h"
#include "tests/bench/gpu/slac/bench_slac_render.h"
#include "tests/support/slac/slac_scene.h"
#include "tests/support/track/track_scene.h"

#define N_TIMED 30

struct options {
    const char *mesh;
    const char *out;
    enum vxd_backend backend;
    int n_threads;
    size_t n_fragments;
    size_t n_frames; /* of a fragment */
    int width;
    int n_steps;
    double amplitude_m;
    double noise;
    double voxel_m;
    double lambda;
};

struct bench {
    struct options options;
    struct gpu_env env;
    struct bench_mesh mesh;
    struct vxd_volume_camera camera;
    double middle[3];
    struct slac_scene scene;
    float *truth; /* points that are seen, map frame */
    size_t n_truth;
    size_t truth_capacity;
};

static double now_ms(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void require(enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_slac: %s %s\n", err->field, err->message);
        exit(1);
    }
}

/* ---- Fragments ---- */

/* Adds every fourth pixel of an image to what is seen. */
static void add_truth(struct bench *bench, const struct vxd_volume_pose *pose,
                      const float *depth)
{
    const struct vxd_volume_camera *camera = &bench->camera;

    for (int v = 0; v < camera->height; v += 2) {
        for (int u = 0; u < camera->width; u += 2) {
            double z = (double)depth[v * camera->width + u];
            const double p[3] = {(u - camera->cx) / camera->fx * z,
                                 (v - camera->cy) / camera->fy * z, z};

            if (!(z > 0 && z < 3.5)) {
                continue;
            }
            if (bench->n_truth == bench->truth_capacity) {
                bench->truth_capacity = 2 * bench->truth_capacity + 4096;
                bench->truth =
                    realloc(bench->truth, bench->truth_capacity * 3 * sizeof(float));
                if (bench->truth == NULL) {
                    exit(1);
                }
            }
            for (size_t a = 0; a < 3; a++) {
                bench->truth[3 * bench->n_truth + a] =
                    (float)(pose->rotation[3 * a] * p[0] +
                            pose->rotation[3 * a + 1] * p[1] +
                            pose->rotation[3 * a + 2] * p[2] + pose->translation[a]);
            }
            bench->n_truth++;
        }
    }
}

static void read_surface(struct bench *bench, struct vxd_volume *volume,
                         struct slac_fragment *fragment)
{
    const struct vxd_surface_args args = {.kind = VXD_SURFACE_POINTS, .min_weight = 2};
    struct vxd_surface *surface = NULL;
    struct vxd_surface_counts n;
    struct vxd_surface_outputs out = {0};
    struct vxd_buffer points;
    struct vxd_buffer normals;
    struct vxd_err err = {0};

    require(vxd_surface_create(bench->env.queue, volume, &args, &surface, &err), &err);
    vxd_surface_get_counts(surface, &n);
    points = gpu_to_device(&bench->env, NULL, n.n_vertices * 12);
    normals = gpu_to_device(&bench->env, NULL, n.n_vertices * 12);
    out.vertices = points.ptr;
    out.normals = normals.ptr;
    require(vxd_surface_write(bench->env.queue, surface, &out, &err), &err);
    fragment->n = n.n_vertices;
    fragment->points = gpu_to_host(&bench->env, &points);
    fragment->normals = gpu_to_host(&bench->env, &normals);
    vxd_surface_destroy(bench->env.queue, surface);
    vxd_device_free(bench->env.queue, &points);
    vxd_device_free(bench->env.queue, &normals);
}

/* Where the fragment's points truly are: T D(p). */
static void set_truth(const struct bench *bench, struct slac_fragment *fragment)
{
    const struct vxd_volume_pose *pose = &fragment->true_pose;

    fragment->truth = gpu_alloc(fragment->n * 12);
    for (size_t i = 0; i < fragment->n; i++) {
        const double p[3] = {(double)fragment->points[3 * i],
                             (double)fragment->points[3 * i + 1],
                             (double)fragment->points[3 * i + 2]};
        double q[3];

        slac_distort(p, bench->options.amplitude_m, q);
        for (size_t a = 0; a < 3; a++) {
            fragment->truth[3 * i + a] =
                (float)(pose->rotation[3 * a] * q[0] + pose->rotation[3 * a + 1] * q[1] +
                        pose->rotation[3 * a + 2] * q[2] + pose->translation[a]);
        }
    }
}

static void integrate(struct bench *bench, struct vxd_volume *volume,
                      const struct vxd_volume_pose *pose, const float *depth,
                      const struct vxd_deform *deform,
                      const struct vxd_volume_pose *T_grid_camera)
{
    struct vxd_volume_frame frame = {.camera = bench->camera,
                                     .T_map_camera = *pose,
                                     .depth = depth,
                                     .dtype = VXD_FLOAT32,
                                     .depth_min_m = 0.3,
                                     .depth_max_m = 3.5,
                                     .deform = deform};
    struct vxd_volume_activation activation;
    struct vxd_err err = {0};

    if (T_grid_camera != NULL) {
        frame.T_grid_camera = *T_grid_camera;
    }
    require(vxd_volume_integrate(bench->env.queue, volume, &frame, &activation, &err),
            &err);
}

static void make_fragment(struct bench *bench, size_t i, float *clean, float *seen)
{
    struct slac_fragment *fragment = &bench->scene.fragments[i];
    const struct options *options = &bench->options;
    size_t n = options->n_fragments * options->n_frames;
    const struct vxd_volume_spec spec = {.voxel_size_m = options->voxel_m,
                                         .block_edge = 8,
                                         .truncation_m = 4 * options->voxel_m};
    struct vxd_volume_pose fragment_map;
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};

    (void)snprintf(fragment->name, sizeof fragment->name, "part-%02zu", i);
    fragment->true_pose = bench_path_pose(bench->middle, i * options->n_frames, n);
    fragment_map = bench_pose_inverse(&fragment->true_pose);
    require(vxd_volume_create(bench->env.queue, &spec, &volume, &err), &err);
    for (size_t k = 0; k < options->n_frames; k++) {
        struct vxd_volume_pose pose =
            bench_path_pose(bench->middle, i * options->n_frames + k, n);
        struct vxd_volume_pose local = bench_pose_times(&fragment_map, &pose);
        struct vxd_buffer device;

        bench_render(&bench->mesh, &bench->camera, &pose, clean);
        if (k % 5 == 0) {
            add_truth(bench, &pose, clean);
        }
        bench_sense(&bench->camera, &local, options->amplitude_m, options->noise,
                    1000 * i + k, clean, seen);
        device = gpu_to_device(&bench->env, seen,
                               (size_t)bench->camera.width *
                                   (size_t)bench->camera.height * sizeof *seen);
        integrate(bench, volume, &local, device.ptr, NULL, NULL);
        gpu_wait(&bench->env);
        vxd_device_free(bench->env.queue, &device);
    }
    read_surface(bench, volume, fragment);
    vxd_volume_destroy(bench->env.queue, volume);
    set_truth(bench, fragment);
}

/* Poses that are wrong by two centimetres and a degree, as a pose graph leaves them. */
static void set_poses(struct bench *bench)
{
    uint64_t state = 5;

    for (size_t i = 0; i < bench->scene.n_fragments; i++) {
        struct slac_fragment *fragment = &bench->scene.fragments[i];
        struct vxd_volume_pose by =
            track_pose((double)gpu_random_float(&state, -0.015f, 0.015f),
                       (double)gpu_random_float(&state, -0.015f, 0.015f),
                       (double)gpu_random_float(&state, -0.015f, 0.015f),
                       (double)gpu_random_float(&state, -0.5f, 0.5f),
                       (double)gpu_random_float(&state, -0.5f, 0.5f),
                       (double)gpu_random_float(&state, -0.5f, 0.5f));

        fragment->pose =
            i == 0 ? fragment->true_pose : bench_pose_times(&fragment->true_pose, &by);
    }
}

/* ---- Files for the peer ---- */

static void write_ply(const char *directory, const char *name, const float *points,
                      const float *normals, size_t n)
{
    char path[512];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s.ply", directory, name);
    file = fopen(path, "wb");
    if (file == NULL) {
        (void)fprintf(stderr, "bench_slac: cannot write %s\n", path);
        exit(1);
    }
    (void)fprintf(
        file,
        "ply\nformat binary_little_endian 1.0\nelement vertex %zu\nproperty float "
        "x\nproperty float y\nproperty float z\n%send_header\n",
        n,
        normals != NULL ? "property float nx\nproperty float ny\nproperty float nz\n"
                        : "");
    for (size_t i = 0; i < n; i++) {
        (void)fwrite(points + 3 * i, 12, 1, file);
        if (normals != NULL) {
            (void)fwrite(normals + 3 * i, 12, 1, file);
        }
    }
    (void)fclose(file);
}

static void write_files(const struct bench *bench)
{
    char path[512];
    FILE *file;

    for (size_t i = 0; i < bench->scene.n_fragments; i++) {
        const struct slac_fragment *fragment = &bench->scene.fragments[i];

        write_ply(bench->options.out, fragment->name, fragment->points, fragment->normals,
                  fragment->n);
        (void)snprintf(path, sizeof path, "true-%02zu", i);
        write_ply(bench->options.out, path, fragment->truth, NULL, fragment->n);
    }
    write_ply(bench->options.out, "truth", bench->truth, NULL, bench->n_truth);
    (void)snprintf(path, sizeof path, "%s/poses.txt", bench->options.out);
    file = fopen(path, "w");
    for (size_t i = 0; file != NULL && i < bench->scene.n_fragments; i++) {
        const struct vxd_volume_pose *pose = &bench->scene.fragments[i].pose;

        for (size_t a = 0; a < 3; a++) {
            (void)fprintf(file, "%.17g %.17g %.17g %.17g%s", pose->rotation[3 * a],
                          pose->rotation[3 * a + 1], pose->rotation[3 * a + 2],
                          pose->translation[a], a < 2 ? " " : "\n");
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

/* ---- Alignment ---- */

struct verdict {
    double left_mm;
    double f; /* percent */
};

static struct verdict judge(struct bench *bench, const char *what,
                            const struct vxd_hashmap *grid,
                            const struct vxd_volume_pose *poses)
{
    struct verdict verdict;
    size_t n;
    float *truth = slac_scene_truth(&bench->scene, &n);
    float *points = slac_scene_map(&bench->env, &bench->scene, grid, 0.375, poses, &n);
    double rms = slac_align(points, truth, n);
    struct slac_score score = slac_score(points, n, bench->truth, bench->n_truth, 0.02);

    verdict.f = 100 * score.f;
    verdict.left_mm = 1e3 * slac_distortion_left(&bench->env, &bench->scene, grid, 0.375,
                                                 bench->options.amplitude_m);
    (void)printf(
        "%s: points %.2f mm rms from where they are, distortion %.2f mm rms left, "
        "precision %.2f recall %.2f F %.2f %% at 20 mm\n",
        what, 1e3 * rms, verdict.left_mm, 100 * score.precision, 100 * score.recall,
        verdict.f);
    free(points);
    free(truth);
    return verdict;
}

static struct vxd_slac *align(struct bench *bench, bool is_rigid,
                              struct vxd_volume_pose *poses)
{
    struct vxd_slac_fragment fragments[SLAC_MAX_FRAGMENTS];
    struct vxd_buffer *buffers;
    struct vxd_slac_args args = {
        .fragments = fragments,
        .n_fragments = bench->scene.n_fragments,
        .options = {.is_rigid = is_rigid, .lambda = bench->options.lambda}};
    struct vxd_slac *slac = NULL;
    struct vxd_slac_info info;
    struct vxd_err err = {0};
    double begin;
    double cpu;
    double made;

    slac_scene_upload(&bench->env, &bench->scene, fragments, &buffers);
    begin = now_ms(CLOCK_MONOTONIC);
    cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    require(vxd_slac_create(bench->env.queue, &args, &slac, &err), &err);
    made = now_ms(CLOCK_MONOTONIC) - begin;
    for (int i = 0; i <= bench->options.n_steps; i++) {
        struct vxd_slac_loss loss;
        double start = now_ms(CLOCK_MONOTONIC);
        double paired;

        require(vxd_slac_find_pairs(bench->env.queue, slac, &loss, &err), &err);
        paired = now_ms(CLOCK_MONOTONIC);
        if (i < bench->options.n_steps) {
            require(vxd_slac_solve(bench->env.queue, slac, &err), &err);
            gpu_wait(&bench->env);
        }
        (void)printf(
            "  step %d: %zu pairs of %zu edges, %.2f mm rms, regularizer %.3f m^2; "
            "pairs %.1f ms, solve %.1f ms\n",
            i, loss.n_pairs, loss.n_edges, 1e3 * sqrt(loss.data / (double)loss.n_pairs),
            loss.regularizer, paired - start, now_ms(CLOCK_MONOTONIC) - paired);
    }
    vxd_slac_get_info(slac, &info);
    (void)printf(
        "%s: %zu points, %zu control points, %zu unknowns, %zu edges tried, %.0f MB: "
        "%.1f ms (of which %.1f ms to prepare), CPU %.1f ms\n",
        is_rigid ? "rigid" : "slac", info.n_points, info.n_control_points,
        info.n_unknowns, info.n_edges, (double)info.n_bytes / 1e6,
        now_ms(CLOCK_MONOTONIC) - begin, made, now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    require(vxd_slac_read_poses(bench->env.queue, slac, poses, &err), &err);
    slac_buffers_free(&bench->env, &bench->scene, buffers);
    return slac;
}

/* ---- Deformed integration ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y ? 1 : 0;
}

/* The median time of an image of 640 x 480 into a volume of 5.8 mm. */
static void time_images(struct bench *bench, const struct vxd_deform *deform,
                        const char *what)
{
    const struct vxd_volume_spec spec = {
        .voxel_size_m = 0.0058, .block_edge = 8, .truncation_m = 0.04};
    size_t n = bench->options.n_fragments * bench->options.n_frames;
    struct vxd_volume_camera kept = bench->camera;
    struct vxd_volume *volume = NULL;
    struct vxd_err err = {0};
    double times[N_TIMED];
    double cpu[N_TIMED];
    float *depth;

    bench->camera = track_camera(640, 480);
    depth = gpu_alloc((size_t)640 * 480 * sizeof *depth);
    require(vxd_volume_create(bench->env.queue, &spec, &volume, &err), &err);
    for (size_t i = 0; i < N_TIMED; i++) {
        struct vxd_volume_pose pose = bench_path_pose(bench->middle, i / 3, n);
        struct vxd_volume_pose first = bench_path_pose(bench->middle, 0, n);
        struct vxd_volume_pose back = bench_pose_inverse(&first);
        struct vxd_volume_pose local = bench_pose_times(&back, &pose);
        struct vxd_buffer device;
        double start;

        bench_render(&bench->mesh, &bench->camera, &pose, depth);
        device = gpu_to_device(&bench->env, depth, (size_t)640 * 480 * sizeof *depth);
        cpu[i] = now_ms(CLOCK_PROCESS_CPUTIME_ID);
        start = now_ms(CLOCK_MONOTONIC);
        integrate(bench, volume, &pose, device.ptr, deform, &local);
        gpu_wait(&bench->env);
        times[i] = now_ms(CLOCK_MONOTONIC) - start;
        cpu[i] = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu[i];
        vxd_device_free(bench->env.queue, &device);
    }
    qsort(times, N_TIMED, sizeof times[0], compare);
    qsort(cpu, N_TIMED, sizeof cpu[0], compare);
    (void)printf(
        "%s: %.3f ms an image of 640 x 480, median of %d (least %.3f), CPU %.3f ms\n",
        what, times[N_TIMED / 2], N_TIMED, times[0], cpu[N_TIMED / 2]);
    vxd_volume_destroy(bench->env.queue, volume);
    free(depth);
    bench->camera = kept;
}

static void run(struct bench *bench)
{
    const struct vxd_deform_lattice lattice = {.cell_m = 0.375};
    struct vxd_volume_pose poses[SLAC_MAX_FRAGMENTS];
    struct vxd_deform *deform = NULL;
    struct vxd_slac *slac;
    struct verdict given;
    struct verdict rigid;
    struct verdict bent;
    struct vxd_err err = {0};

    for (size_t i = 0; i < bench->scene.n_fragments; i++) {
        poses[i] = bench->scene.fragments[i].pose;
    }
    given = judge(bench, "as given", NULL, poses);
    slac = align(bench, true, poses);
    rigid = judge(bench, "rigid", NULL, poses);
    vxd_slac_destroy(bench->env.queue, slac);
    slac = align(bench, false, poses);
    bent = judge(bench, "slac", vxd_slac_grid(slac), poses);
    (void)printf(
        "slac: F is %.2f points above rigid and %.2f above what was given (goal: "
        "8), %.2f mm of %.2f mm are left (goal: 3)\n",
        bent.f - rigid.f, bent.f - given.f, bent.left_mm, given.left_mm);
    require(vxd_deform_create(bench->env.queue, vxd_slac_grid(slac), VXD_SLAC_OFFSETS,
                              &lattice, &deform, &err),
            &err);
    vxd_slac_destroy(bench->env.queue, slac);
    time_images(bench, NULL, "straight integration");
    time_images(bench, deform, "deformed integration");
    vxd_deform_destroy(bench->env.queue, deform);
}

static bool read_options(int argc, char **argv, struct options *out)
{
    *out = (struct options){.n_threads = 2,
                            .n_fragments = 48,
                            .n_frames = 42,
                            .width = 320,
                            .n_steps = 5,
                            .amplitude_m = 0.035,
                            .noise = 1,
                            .voxel_m = 0.01};
    if (argc < 2) {
        return false;
    }
    out->mesh = argv[1];
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--backend") == 0) {
            out->backend =
                strcmp(value, "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(argv[i], "--threads") == 0) {
            out->n_threads = atoi(value);
        } else if (strcmp(argv[i], "--fragments") == 0) {
            out->n_fragments = (size_t)atoi(value);
        } else if (strcmp(argv[i], "--frames") == 0) {
            out->n_frames = (size_t)atoi(value);
        } else if (strcmp(argv[i], "--width") == 0) {
            out->width = atoi(value);
        } else if (strcmp(argv[i], "--steps") == 0) {
            out->n_steps = atoi(value);
        } else if (strcmp(argv[i], "--amplitude-mm") == 0) {
            out->amplitude_m = atof(value) / 1e3;
        } else if (strcmp(argv[i], "--noise") == 0) {
            out->noise = atof(value);
        } else if (strcmp(argv[i], "--voxel-mm") == 0) {
            out->voxel_m = atof(value) / 1e3;
        } else if (strcmp(argv[i], "--lambda") == 0) {
            out->lambda = atof(value);
        } else if (strcmp(argv[i], "--out") == 0) {
            out->out = value;
        } else {
            return false;
        }
    }
    return argc % 2 == 0 && out->n_fragments >= 2 &&
           out->n_fragments <= SLAC_MAX_FRAGMENTS && out->n_frames > 0 &&
           out->width >= 32;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    size_t least = SIZE_MAX;
    size_t n_pixels;
    float *images;

    if (!read_options(argc, argv, &bench.options) ||
        !bench_mesh_read(bench.options.mesh, &bench.mesh)) {
        (void)fputs(
            "usage: bench_slac TRIANGLES [--backend cpu|cuda] [--threads N] "
            "[--fragments N] [--frames N] [--width N] [--amplitude-mm MM] [--noise F] "
            "[--steps N] [--voxel-mm MM] [--lambda L] [--out DIR]\n",
            stderr);
        return 2;
    }
    gpu_env_create(&bench.env, bench.options.backend, bench.options.n_threads, 0, 0);
    bench.camera = track_camera(bench.options.width, bench.options.width * 3 / 4);
    bench.middle[0] = -0.3;
    bench.middle[1] = 0.2;
    bench.middle[2] = 1.6;
    bench.scene.n_fragments = bench.options.n_fragments;
    n_pixels = (size_t)bench.camera.width * (size_t)bench.camera.height;
    images = gpu_alloc(2 * n_pixels * sizeof *images);
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    for (size_t i = 0; i < bench.scene.n_fragments; i++) {
        make_fragment(&bench, i, images, images + n_pixels);
        least = bench.scene.fragments[i].n < least ? bench.scene.fragments[i].n : least;
    }
    set_poses(&bench);
    (void)printf(
        "%s: %zu fragments of %zu images of %d x %d, at least %zu points; planted "
        "distortion of %.0f mm\n",
        bench.env.name, bench.scene.n_fragments, bench.options.n_frames,
        bench.camera.width, bench.camera.height, least, 1e3 * bench.options.amplitude_m);
    if (bench.options.out != NULL) {
        write_files(&bench);
    }
    run(&bench);
    slac_scene_free(&bench.scene);
    free(bench.truth);
    free(bench.mesh.corners);
    free(images);
    gpu_env_destroy(&bench.env);
    return 0;
}
