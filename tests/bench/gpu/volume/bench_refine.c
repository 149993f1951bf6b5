// SPDX-License-Identifier: Apache-2.0
/* Refines a ball with a relief of 1 mm, and compares it with what is known of it.
 *
 *   bench_refine [--backend cpu|cuda] [--threads N] [--voxel-mm MM] [--radius-mm MM] [--relief-mm MM]
 *                [--wavelength-mm MM] [--keyframes N] [--height PIXELS] [--rounds N] [--iterations N]
 *                [--cg N] [--upsample N] [--subvolume-mm MM] [--lamps 0|1] [--plain 0|1] [--adam 0|1]
 *                [--smooth W] [--init W] [--chroma W] [--light W] [--shake-mm MM] [--band-mm MM]
 *                [--poses 0|1] [--intrinsics 0|1] [--zoom F] [--work-ms MS]
 *
 * "epoch" is the time of a joint step with its linearisation and the movement of keyframes, the median
 * of all; "begin" that from the first step to the first loss: voxel set, images, visibility, and light
 * six times over, "light" that of one of these times. "CPU" is the time of all threads. A stage is of
 * --work-ms of a CPU thread's work, by default as the service gives a stage to a GPU, and twice that of a
 * CPU. --shake moves each keyframe's given position, --zoom multiplies the focal length. Scores are those
 * of the surface's vertices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/core/core.h"
#include "tests/support/refine/refine_scene.h"

#define MAX_TIMES 4096
#define WORK_MS_CPU 40
#define WORK_MS_CUDA 1000

struct options {
    enum vxd_backend backend;
    int n_threads;
    double voxel_mm;
    double shake_mm;
    double zoom;
    double work_ms;
    struct refine_scene scene;
    struct vxd_refine_options refine;
};

static double clock_ms(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

static double cpu_ms(void)
{
    return clock_ms(CLOCK_PROCESS_CPUTIME_ID);
}

static bool parse(int argc, char **argv, struct options *out)
{
    const struct {
        const char *name;
        double *number;
        int *whole;
        bool *flag;
    } words[] = {{"--voxel-mm", &out->voxel_mm, NULL, NULL},
                 {"--shake-mm", &out->shake_mm, NULL, NULL},
                 {"--zoom", &out->zoom, NULL, NULL},
                 {"--work-ms", &out->work_ms, NULL, NULL},
                 {"--radius-mm", &out->scene.radius_m, NULL, NULL},
                 {"--relief-mm", &out->scene.relief_m, NULL, NULL},
                 {"--wavelength-mm", &out->scene.wavelength_m, NULL, NULL},
                 {"--subvolume-mm", &out->refine.subvolume_m, NULL, NULL},
                 {"--band-mm", &out->refine.band_m, NULL, NULL},
                 {"--smooth", &out->refine.smooth, NULL, NULL},
                 {"--init", &out->refine.init, NULL, NULL},
                 {"--chroma", &out->refine.chroma, NULL, NULL},
                 {"--light", &out->refine.light, NULL, NULL},
                 {"--threads", NULL, &out->n_threads, NULL},
                 {"--keyframes", NULL, &out->scene.n_keyframes, NULL},
                 {"--height", NULL, &out->scene.height, NULL},
                 {"--rounds", NULL, &out->refine.rounds, NULL},
                 {"--iterations", NULL, &out->refine.iterations, NULL},
                 {"--cg", NULL, &out->refine.cg_iterations, NULL},
                 {"--upsample", NULL, &out->refine.upsample, NULL},
                 {"--lamps", NULL, NULL, &out->scene.has_lamps},
                 {"--plain", NULL, NULL, &out->scene.is_plain},
                 {"--intrinsics", NULL, NULL, &out->refine.refine_intrinsics},
                 {"--poses", NULL, NULL, &out->refine.keep_poses}};

    for (int i = 1; i + 1 < argc; i += 2) {
        bool known = false;
        double value = strtod(argv[i + 1], NULL);

        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            if (strcmp(argv[i], words[k].name) != 0) {
                continue;
            }
            known = true;
            if (words[k].number != NULL) {
                bool is_length = strstr(argv[i], "-mm") != NULL &&
                                 words[k].number != &out->voxel_mm &&
                                 words[k].number != &out->shake_mm;

                *words[k].number = is_length ? value / 1e3 : value;
            } else if (words[k].whole != NULL) {
                *words[k].whole = (int)value;
            } else if (words[k].flag == &out->refine.keep_poses) {
                *words[k].flag = value == 0;
            } else {
                *words[k].flag = value != 0;
            }
        }
        if (strcmp(argv[i], "--backend") == 0) {
            known = true;
            out->backend =
                strcmp(argv[i + 1], "cuda") == 0 ? VXD_BACKEND_CUDA : VXD_BACKEND_CPU;
        } else if (strcmp(argv[i], "--adam") == 0) {
            known = true;
            out->refine.solver = value != 0 ? VXD_REFINE_ADAM : VXD_REFINE_GAUSS_NEWTON;
        }
        if (!known) {
            return false;
        }
    }
    return argc % 2 == 1 && out->scene.n_keyframes > 0 &&
           out->scene.n_keyframes <= VXD_REFINE_MAX_KEYFRAMES;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y ? 1 : 0;
}

static void print_score(const char *what, const struct refine_score *score)
{
    (void)printf("%-8s normals %6.3f deg, surface %6.4f mm, albedo %6.4f, %zu vertices\n",
                 what, score->normal_deg, score->surface_mm, score->correlation,
                 score->n_vertices);
}

/* Runs all steps; times are of the whole steps that end with a loss more. */
static enum vxd_status run(struct vxd_queue *queue, const struct options *options,
                           struct vxd_volume *volume, struct vxd_refine *refine,
                           struct vxd_err *err)
{
    static double epochs[MAX_TIMES];
    static double cpus[MAX_TIMES];
    struct vxd_refine_progress progress = {0};
    const struct vxd_refine_loss *losses;
    double begin = now_ms();
    double last = begin;
    double last_cpu = cpu_ms();
    double first[2] = {0, 0};
    double longest[2] = {0, 0};
    size_t longest_at[2] = {0, 0};
    double light = 0;
    size_t n = 0;
    size_t n_stages = 0;
    bool is_done = false;
    enum vxd_status status = VXD_OK;

    while (!is_done) {
        double start = now_ms();
        size_t n_losses = progress.n_losses;
        bool is_finding_light = progress.is_finding_light;

        VXD_TRY(vxd_refine_step(queue, refine, volume, options->work_ms * 1e6, &is_done,
                                err));
        start = now_ms() - start;
        n_stages++;
        if (start > longest[0]) {
            longest[1] = longest[0];
            longest_at[1] = longest_at[0];
            longest[0] = start;
            longest_at[0] = n_stages;
        } else if (start > longest[1]) {
            longest[1] = start;
            longest_at[1] = n_stages;
        }
        light += is_finding_light && n_losses == 0 ? start : 0;
        vxd_refine_get_progress(refine, &progress);
        if (progress.n_losses != n_losses) {
            losses = vxd_refine_losses(refine);
            if (n_losses > 0 && n < MAX_TIMES &&
                losses[progress.n_losses - 1].round == losses[n_losses - 1].round &&
                losses[progress.n_losses - 1].level == losses[n_losses - 1].level) {
                cpus[n] = (cpu_ms() - last_cpu) / (double)(progress.n_losses - n_losses);
                epochs[n++] = (now_ms() - last) / (double)(progress.n_losses - n_losses);
            }
            if (n_losses == 0) {
                first[0] = now_ms() - begin;
                first[1] = cpu_ms() - last_cpu;
            }
            last = now_ms();
            last_cpu = cpu_ms();
        }
    }
    qsort(epochs, n, sizeof *epochs, by_time);
    qsort(cpus, n, sizeof *cpus, by_time);
    losses = vxd_refine_losses(refine);
    for (size_t i = 0; i < progress.n_losses; i++) {
        (void)printf("  level %d round %d: data %.5g smooth %.4g init %.4g chroma %.4g "
                     "light %.4g%s\n",
                     losses[i].level, losses[i].round, losses[i].data, losses[i].smooth,
                     losses[i].init, losses[i].chroma, losses[i].light,
                     losses[i].rejected ? " (taken back)" : "");
    }
    (void)printf("%zu voxels, %zu subvolumes; all %.1f ms, begin %.1f ms (CPU %.1f), "
                 "light %.2f ms, epoch "
                 "%.2f ms (CPU %.2f), longest of %zu stages: number %zu %.1f ms, number "
                 "%zu %.1f ms\n",
                 progress.n_voxels, progress.n_subvolumes, now_ms() - begin, first[0],
                 first[1], light / fmax(progress.light_passes, 1),
                 n > 0 ? epochs[n / 2] : 0, n > 0 ? cpus[n / 2] : 0, n_stages,
                 longest_at[0], longest[0], longest_at[1], longest[1]);
out:
    return status;
}

/* A refinement of one step before those that are timed: a GPU loads each kernel when it is used first. */
static enum vxd_status warm_up(struct vxd_queue *queue, const struct options *options,
                               struct vxd_volume *volume,
                               const struct vxd_refine_keyframe *keyframes,
                               struct vxd_err *err)
{
    struct vxd_refine_options one = options->refine;
    struct vxd_refine *refine = NULL;
    bool is_done = false;
    enum vxd_status status;

    one.rounds = 1;
    one.iterations = 1;
    VXD_TRY(vxd_refine_create(queue, volume, keyframes,
                              (size_t)options->scene.n_keyframes, &one, &refine, err));
    while (!is_done) {
        VXD_TRY(vxd_refine_step(queue, refine, volume, options->work_ms * 1e6, &is_done,
                                err));
    }
out:
    vxd_refine_destroy(queue, refine);
    return status;
}

static void shake(const struct options *options, struct vxd_refine_keyframe *keyframes)
{
    for (int i = 0; i < options->scene.n_keyframes; i++) {
        for (int k = 0; k < 3; k++) {
            keyframes[i].T_map_camera.translation[k] +=
                options->shake_mm * 1e-3 * sin(7.0 * i + 2.5 * k);
        }
        keyframes[i].camera.fx *= options->zoom;
        keyframes[i].camera.fy *= options->zoom;
    }
}

/* Root of the mean square distance of the refined positions, and the mean focal length. */
static void print_poses(const struct options *options, const struct vxd_refine *refine,
                        const struct vxd_refine_keyframe *truth)
{
    double squares = 0;
    double focal = 0;

    for (int i = 0; i < options->scene.n_keyframes; i++) {
        struct vxd_volume_camera camera;
        struct vxd_volume_pose pose;

        vxd_refine_get_keyframe(refine, (size_t)i, &camera, &pose);
        focal += camera.fx / truth[i].camera.fx / options->scene.n_keyframes;
        for (int k = 0; k < 3; k++) {
            double apart = pose.translation[k] - truth[i].T_map_camera.translation[k];

            squares += apart * apart / options->scene.n_keyframes;
        }
    }
    (void)printf("keyframes %.4f mm from the truth, focal length x %.5f\n",
                 sqrt(squares) * 1e3, focal);
}

static enum vxd_status bench(const struct options *options, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    struct vxd_refine_keyframe keyframes[VXD_REFINE_MAX_KEYFRAMES];
    struct vxd_refine_keyframe truth[VXD_REFINE_MAX_KEYFRAMES];
    struct vxd_volume_spec spec = {.voxel_size_m = options->voxel_mm * 1e-3,
                                   .block_edge = 8,
                                   .truncation_m = options->voxel_mm * 6e-3};
    struct vxd_volume *volume = NULL;
    struct vxd_volume *made = NULL;
    struct vxd_refine *refine = NULL;
    struct refine_score score;
    uint8_t *images = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_volume_create(queue, &spec, &volume, err));
    VXD_TRY(refine_scene_integrate(&options->scene, queue, volume, err));
    VXD_TRY(refine_scene_score(&options->scene, queue, volume, &score, err));
    print_score("before", &score);
    refine_scene_shoot(&options->scene, keyframes, &images);
    memcpy(truth, keyframes, sizeof truth);
    shake(options, keyframes);
    if (options->backend == VXD_BACKEND_CUDA) {
        VXD_TRY(warm_up(queue, options, volume, keyframes, err));
    }
    VXD_TRY(vxd_refine_create(queue, volume, keyframes,
                              (size_t)options->scene.n_keyframes, &options->refine,
                              &refine, err));
    VXD_TRY(run(queue, options, volume, refine, err));
    print_poses(options, refine, truth);
    made = vxd_refine_take_volume(refine);
    VXD_TRY(refine_scene_score(&options->scene, queue, made, &score, err));
    print_score("after", &score);
out:
    vxd_refine_destroy(queue, refine);
    vxd_volume_destroy(queue, made);
    vxd_volume_destroy(queue, volume);
    free(images);
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {.backend = VXD_BACKEND_CPU,
                              .voxel_mm = 2,
                              .zoom = 1,
                              .scene = {.radius_m = 0.06,
                                        .relief_m = 0.001,
                                        .wavelength_m = 0.016,
                                        .n_keyframes = 26,
                                        .height = 240}};
    struct vxd_context_options context_options = {0};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;

    vxd_refine_options_init(&options.refine);
    options.refine.makes_volume = true;
    if (!parse(argc, argv, &options)) {
        (void)fprintf(stderr,
                      "usage: bench_refine [--backend cpu|cuda] [--NAME VALUE]...\n");
        return 2;
    }
    if (options.work_ms == 0) {
        options.work_ms =
            options.backend == VXD_BACKEND_CUDA ? WORK_MS_CUDA : WORK_MS_CPU;
    }
    options.scene.width = options.scene.height * 4 / 3;
    context_options.backend = options.backend;
    context_options.n_threads = options.n_threads;
    VXD_TRY(vxd_context_create(&context_options, &context, &err));
    VXD_TRY(vxd_queue_create(context, &queue, &err));
    VXD_TRY(bench(&options, queue, &err));
out:
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_refine: %s %s\n", err.field, err.message);
    }
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    return status != VXD_OK;
}
