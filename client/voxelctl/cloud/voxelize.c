// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/voxelctl/cloud/voxelize_out.h"
#include "client/voxelctl/generated/voxelize_args.h"

int ctl_check_voxelize(const struct ctl_voxelize_args *args)
{
    uint32_t bits[2] = {0, 0};

    if (args->out == NULL) {
        return CTL_OK;
    }
    if (args->n_words > 1) {
        return ctl_usage("voxelize", "--out goes with one file, not %zu", args->n_words);
    }
    return ctl_out_plan(args->out, args->tensor, &bits[0], &bits[1]);
}

static void print_json(const char *path, const struct voxeld_voxels *v,
                       double round_trip_ms)
{
    const struct voxeld_item *item = &v->items[0];

    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "file", path);
    ctl_json_member_count(stdout, false, "n_points", item->n_points);
    ctl_json_member_count(stdout, false, "n_voxels", v->n_voxels);
    ctl_json_member_count(stdout, false, "n_used", item->n_used);
    ctl_json_member_count(stdout, false, "n_non_finite", item->n_non_finite);
    ctl_json_member_count(stdout, false, "n_out_of_range", item->n_out_of_range);
    ctl_json_member_count(stdout, false, "n_over_max_voxels", item->n_over_max_voxels);
    ctl_json_member_count(stdout, false, "n_over_max_points", item->n_over_max_points);
    ctl_json_member_string(stdout, false, "rule",
                           v->rule == VOXELD_RULE_SPCONV   ? "spconv"
                           : v->rule == VOXELD_RULE_DOUBLE ? "double"
                                                           : "minkowski");
    ctl_json_member_vec3(stdout, false, "size_m", v->size_m);
    ctl_json_member_vec3(stdout, false, "origin_m", v->origin_m);
    ctl_json_member_vec3(stdout, false, "low_m", v->low_m);
    (void)printf(", \"grid\": [%" PRId32 ", %" PRId32 ", %" PRId32 "]", v->grid[0],
                 v->grid[1], v->grid[2]);
    ctl_json_member_strings(stdout, false, "features", v->features, v->n_channels);
    ctl_json_member_number(stdout, false, "engine_ms", v->engine_ms);
    ctl_json_member_number(stdout, false, "queue_ms", v->queue_ms);
    ctl_json_member_number(stdout, false, "server_ms", v->total_ms);
    ctl_json_member_number(stdout, false, "round_trip_ms", round_trip_ms);
    ctl_json_member_string(stdout, false, "request_id", v->request_id);
    (void)fputs("}\n", stdout);
}

static void print_dropped(const char *why, uint64_t n)
{
    char text[32];

    if (n > 0) {
        (void)printf("  %s points %s\n", ctl_thousands(n, text), why);
    }
}

static void print_text(const char *path, bool several, const struct voxeld_voxels *v,
                       double round_trip_ms)
{
    const struct voxeld_item *item = &v->items[0];
    char voxels[32];
    char points[32];

    if (several) {
        (void)printf("%s: ", path);
    }
    (void)printf("%s voxels from %s points: %.2f ms in the engine, %.2f ms round trip\n",
                 ctl_thousands(v->n_voxels, voxels),
                 ctl_thousands(item->n_points, points), v->engine_ms, round_trip_ms);
    print_dropped("dropped: not finite", item->n_non_finite);
    print_dropped("dropped: outside the range or the grid", item->n_out_of_range);
    print_dropped("dropped: voxels over --max-voxels", item->n_over_max_voxels);
    print_dropped("not reduced: voxels had --max-points already",
                  item->n_over_max_points);
}

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Voxelizes one file. The progress bar is erased before anything is
 * printed. */
static int run_file(struct voxeld_client *client, const struct ctl_voxelize_args *args,
                    struct voxeld_voxelize_request *request, const char *path, bool json)
{
    size_t n_files = args->n_words;
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_voxels *voxels = NULL;
    struct voxeld_error error;
    double begin_ms;
    double round_trip_ms;
    int result;

    if (ctl_read_cloud(path, args->format, &cloud, &error) != VOXELD_OK) {
        ctl_progress_clear(n_files);
        return ctl_failed(path, &error);
    }
    request->clouds = cloud;
    request->n_clouds = 1;
    begin_ms = now_ms();
    if (voxeld_voxelize(client, request, &voxels, &error) != VOXELD_OK) {
        voxeld_cloud_free(cloud);
        ctl_progress_clear(n_files);
        return ctl_failed(path, &error);
    }
    round_trip_ms = now_ms() - begin_ms;
    voxeld_cloud_free(cloud);
    ctl_progress_clear(n_files);
    result = args->out != NULL ? ctl_out_write(args->out, args->tensor, voxels) : CTL_OK;
    if (result == CTL_OK) {
        if (json) {
            print_json(path, voxels, round_trip_ms);
        } else {
            print_text(path, n_files > 1, voxels, round_trip_ms);
        }
        result = ctl_flush();
    }
    voxeld_voxels_free(voxels);
    return result;
}

int ctl_run_voxelize(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_voxelize_args *args)
{
    struct voxeld_voxelize_request request = {.reduce = args->reduce};
    int result = CTL_OK;

    ctl_voxelize_voxelize_request(args, &request);
    request.has_range = ctl_voxelize_has(args, CTL_VOXELIZE_RANGE);
    memcpy(request.range_low_m, args->range, sizeof request.range_low_m);
    memcpy(request.range_high_m, args->range + 3, sizeof request.range_high_m);
    if (args->out != NULL) {
        result = ctl_out_plan(args->out, args->tensor, &request.outputs, &request.reduce);
    }
    for (size_t i = 0; i < args->n_words; i++) {
        int one;

        ctl_progress_show(i, args->n_words, args->words[i]);
        one = run_file(client, args, &request, args->words[i], globals->json);
        /* A bad file does not keep the others from being sent. */
        result = one != CTL_OK ? one : result;
    }
    return result;
}
