// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume run: a folder of depth images to a mesh. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/voxelctl/volume/volume_commands.h"

#define DEFAULT_SIZE_M 0.01
#define TUM_DEPTH_SCALE 5000

static int make_volume(struct ctl_run *run, const struct ctl_volume_args *args)
{
    struct voxeld_volume_create_request request = {
        .volume = run->request.volume,
        .voxel_size_m =
            ctl_volume_has(args, CTL_VOLUME_SIZE) ? args->size : DEFAULT_SIZE_M,
        .truncation_m = args->truncation,
        .block = args->block,
        .compact = ctl_volume_has(args, CTL_VOLUME_COMPACT),
        .colour = ctl_volume_has(args, CTL_VOLUME_COLOUR),
        .max_weight = args->max_weight,
        .max_bytes = args->max_bytes,
        .when_full = args->when_full,
        .durable = ctl_volume_has(args, CTL_VOLUME_DURABLE),
        .fsync = args->durable};
    struct voxeld_error error;

    return voxeld_volume_create(run->client, &request, NULL, &error) == VOXELD_OK
               ? CTL_OK
               : ctl_failed(request.volume, &error);
}

/* One image; its request is repeated until it is answered. */
static int integrate(struct ctl_run *run, const struct ctl_shot *shot, size_t total)
{
    struct voxeld_volume_integrate_request *request = &run->request;
    struct voxeld_retry retry = {.total_ms = (uint32_t)(run->retry_s * 1000)};
    struct voxeld_call call = {0};
    struct voxeld_volume_change *change = NULL;
    struct voxeld_error error;
    enum voxeld_status status = VOXELD_OK;
    uint8_t *depth = NULL;
    uint8_t *colour = NULL;
    int result = ctl_read_file(shot->depth, &depth, &request->n_depth_bytes);

    request->n_colour_bytes = 0;
    if (result == CTL_OK && shot->colour != NULL) {
        result = ctl_read_file(shot->colour, &colour, &request->n_colour_bytes);
    }
    request->depth = depth;
    request->colour = colour;
    request->T_map_camera = shot->pose;
    if (result == CTL_OK) {
        do {
            request->call = call;
            status = voxeld_volume_integrate(run->client, request, &change, &error);
        } while (voxeld_retry(&retry, &call, status, &error));
    }
    free(depth);
    free(colour);
    if (status != VOXELD_OK) {
        ctl_progress_clear(total);
        return ctl_failed(shot->depth, &error);
    }
    if (result == CTL_OK) {
        run->n_images++;
        run->engine_ms += change->engine_ms;
        run->n_blocks = change->n_blocks;
        voxeld_volume_change_free(change);
    }
    return result;
}

static int integrate_all(struct ctl_run *run, const struct ctl_folder *folder,
                         size_t every)
{
    int result = CTL_OK;

    for (size_t i = 0; i < folder->n; i += every) {
        int one;

        ctl_progress_show(i, folder->n, folder->shots[i].depth);
        one = integrate(run, &folder->shots[i], folder->n);
        /* A bad file does not keep the others from being sent. */
        result = one != CTL_OK ? one : result;
    }
    ctl_progress_clear(folder->n);
    return result;
}

static void print_errors_json(const char *name, const struct ctl_errors *errors)
{
    (void)printf(", \"%s\": {", name);
    ctl_json_member_count(stdout, true, "n", errors->n);
    ctl_json_member_number(stdout, false, "ate_rms_m", errors->ate_m);
    ctl_json_member_number(stdout, false, "ate_aligned_rms_m", errors->ate_aligned_m);
    ctl_json_member_number(stdout, false, "rpe_rms_m", errors->rpe_m);
    ctl_json_member_number(stdout, false, "rpe_rms_deg", errors->rpe_deg);
    (void)fputc('}', stdout);
}

static void print_errors(const char *name, const struct ctl_errors *errors)
{
    (void)printf("%s: ATE rms %.1f mm as it is, %.1f mm aligned; RPE rms %.2f mm, %.3f "
                 "degrees an image\n",
                 name, 1e3 * errors->ate_m, 1e3 * errors->ate_aligned_m,
                 1e3 * errors->rpe_m, errors->rpe_deg);
}

/* What tracking found, and how far it is from known poses. */
static int report_track(const struct ctl_run *run, const struct ctl_folder *folder,
                        bool as_json)
{
    struct ctl_errors found;
    struct ctl_errors still;
    char text[2][32];
    int result = ctl_trajectory_errors(folder, &found, &still);

    if (result != CTL_OK) {
        return result;
    }
    if (as_json) {
        ctl_json_member_count(stdout, false, "n_lost", run->n_lost);
        if (found.n > 0) {
            print_errors_json("errors", &found);
            print_errors_json("standing_still", &still);
        }
        return CTL_OK;
    }
    (void)printf("%s images tracked, %s lost\n", ctl_thousands(run->n_images, text[0]),
                 ctl_thousands(run->n_lost, text[1]));
    if (found.n > 0) {
        print_errors("against known poses", &found);
        print_errors("standing still", &still);
    }
    return CTL_OK;
}

/* folder: of a run that tracked, else NULL. */
static int finish(struct ctl_run *run, const struct ctl_globals *globals,
                  const struct ctl_volume_args *args, const struct ctl_folder *folder)
{
    const struct voxeld_volume_extract_request extract = {.volume = run->request.volume,
                                                          .min_weight = args->min_weight};
    uint64_t n_vertices = 0;
    uint64_t n_triangles = 0;
    char text[4][32];
    int result = CTL_OK;

    if (args->out != NULL) {
        result = ctl_volume_write_surface(run->client, &extract, args->out, &n_vertices,
                                          &n_triangles);
    }
    if (result != CTL_OK) {
        return result;
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_count(stdout, true, "n_images", run->n_images);
        ctl_json_member_count(stdout, false, "n_blocks", run->n_blocks);
        ctl_json_member_count(stdout, false, "n_vertices", n_vertices);
        ctl_json_member_count(stdout, false, "n_triangles", n_triangles);
        ctl_json_member_number(stdout, false, "engine_ms", run->engine_ms);
        result = folder != NULL ? report_track(run, folder, true) : CTL_OK;
        (void)fputs("}\n", stdout);
        if (result != CTL_OK) {
            return result;
        }
        return ctl_flush();
    }
    (void)printf("%s images, %s blocks; %.1f ms in the engine an image\n",
                 ctl_thousands(run->n_images, text[0]),
                 ctl_thousands(run->n_blocks, text[1]),
                 run->engine_ms / (double)(run->n_images > 0 ? run->n_images : 1));
    result = folder != NULL ? report_track(run, folder, false) : CTL_OK;
    if (result != CTL_OK) {
        return result;
    }
    if (args->out != NULL) {
        (void)printf("%s: %s vertices, %s triangles\n", args->out,
                     ctl_thousands(n_vertices, text[2]),
                     ctl_thousands(n_triangles, text[3]));
    }
    return ctl_flush();
}

/* Sends all images, tracked where that is asked for or no pose is known, and reports. */
static int run_folder(struct ctl_run *run, const struct ctl_globals *globals,
                      const struct ctl_volume_args *args, struct ctl_folder *folder,
                      size_t every)
{
    bool tracks =
        ctl_volume_has(args, CTL_VOLUME_TRACK) || ctl_folder_n_posed(folder) == 0;
    int finished = CTL_OK;
    int result;

    if (folder->is_tum && args->depth_scale == 0) {
        run->request.depth_scale = TUM_DEPTH_SCALE;
    }
    if (tracks) {
        result = ctl_volume_track_all(run, folder, every);
    } else {
        ctl_folder_keep_posed(folder);
        result = integrate_all(run, folder, every);
    }
    if (tracks && args->trajectory != NULL) {
        finished = ctl_trajectory_write(args->trajectory, folder);
    }
    if (run->n_images > 0 && finished == CTL_OK) {
        finished = finish(run, globals, args, tracks ? folder : NULL);
    }
    return finished != CTL_OK ? finished : result;
}

/* Says where the dashboard shows the volume. */
static int show_address(struct voxeld_client *client, const struct ctl_globals *globals,
                        const char *volume)
{
    struct voxeld_server_info *info = NULL;
    struct voxeld_error error;

    if (voxeld_get_server_info(client, NULL, &info, &error) != VOXELD_OK) {
        return ctl_failed(volume, &error);
    }
    if (strncmp(info->http, "http", 4) == 0) {
        (void)fprintf(globals->json ? stderr : stdout, "%s/#/volume/%s\n", info->http,
                      volume);
    } else {
        (void)ctl_error("the server has no address for browsers (listen.http)");
    }
    voxeld_server_info_free(info);
    return ctl_flush();
}

/* Checks what the options say. */
static int check_args(const struct ctl_volume_args *args, uint32_t *every)
{
    if (args->out == NULL && args->name == NULL && args->trajectory == NULL &&
        !ctl_volume_has(args, CTL_VOLUME_WATCH)) {
        return ctl_usage("volume run",
                         "--out, --trajectory, --name or --watch is needed");
    }
    if (args->every != NULL && !ctl_parse_u32(args->every, 1, UINT32_MAX, every)) {
        return ctl_usage("volume run", "--every %s: a number from 1 on is right",
                         args->every);
    }
    return CTL_OK;
}

int ctl_volume_run(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_volume_args *args)
{
    struct ctl_run run = {
        .client = client,
        .retry_s =
            ctl_volume_has(args, CTL_VOLUME_RETRY) ? args->retry : CTL_DRIVE_RETRY_S,
        .request = {.volume = args->name,
                    .has_camera = true,
                    .depth_scale = args->depth_scale,
                    .depth_min_m = args->depth_min,
                    .depth_max_m = args->depth_max,
                    .inverse_square = ctl_volume_has(args, CTL_VOLUME_INVERSE_SQUARE)}};
    struct ctl_folder folder = {0};
    uint32_t every = 1;
    char own_name[40];
    int result;

    result = check_args(args, &every);
    if (result == CTL_OK) {
        result = ctl_volume_parse_method(args->method, &run.method);
    }
    if (result != CTL_OK) {
        return result;
    }
    if (args->name == NULL) {
        (void)snprintf(own_name, sizeof own_name, "run-%ld", (long)getpid());
        run.request.volume = own_name;
    }
    result = ctl_volume_read_camera(args->intrinsics, &run.request.camera);
    if (result == CTL_OK) {
        result = ctl_folder_read(args->words[0], args->poses, &folder);
    }
    if (result == CTL_OK) {
        result = make_volume(&run, args);
    }
    if (result == CTL_OK && ctl_volume_has(args, CTL_VOLUME_WATCH)) {
        result = show_address(client, globals, run.request.volume);
    }
    if (result == CTL_OK) {
        result = run_folder(&run, globals, args, &folder, every);
        if (args->name == NULL && !ctl_volume_has(args, CTL_VOLUME_WATCH)) {
            (void)voxeld_volume_drop(client, NULL, own_name, true, NULL, NULL);
        }
    }
    ctl_folder_clear(&folder);
    return result;
}
