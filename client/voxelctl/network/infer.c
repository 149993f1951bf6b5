// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <time.h>

#include "client/voxelctl/generated/network_args.h"
#include "client/voxelctl/network/infer_out.h"

enum {
    SHOWN = 4 /* numbers of a vector to print */
};

int ctl_check_infer(const struct ctl_network_args *args)
{
    if (args->out == NULL) {
        return CTL_OK;
    }
    if (args->n_words > 2) {
        return ctl_usage("infer", "--out goes with one file, not %zu", args->n_words - 1);
    }
    if (ctl_network_has(args, CTL_NETWORK_HALF) && strstr(args->out, ".ply") != NULL) {
        return ctl_usage("infer", "--half goes with .npy: PLY has no such type");
    }
    return ctl_infer_check_out(args->out);
}

static void print_shape(const struct voxeld_infer_output *output)
{
    for (size_t i = 0; i < output->n_axes; i++) {
        (void)printf("%s%zu", i > 0 ? " x " : "", output->shape[i]);
    }
}

/* Prints the first numbers of a vector, enough to see that two places differ. */
static void print_vector(const struct voxeld_infer_output *output)
{
    const float *values = output->values;
    size_t n = output->shape[1] < SHOWN ? output->shape[1] : SHOWN;

    if (output->kind != VOXELD_KIND_VECTOR || output->dtype != VOXELD_FLOAT32) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        (void)printf("%s%.6g", i > 0 ? ", " : ": ", (double)values[i]);
    }
    (void)fputs(output->shape[1] > n ? ", ..." : "", stdout);
}

static void print_text(const char *path, const struct voxeld_inference *in,
                       double round_trip_ms)
{
    const struct voxeld_infer_item *item = &in->items[0];
    char points[32];
    char voxels[32];

    (void)printf("%s: %s voxels from %s points: %.2f ms in the engine, %.2f ms round "
                 "trip\n",
                 path, ctl_thousands(item->n_voxels, voxels),
                 ctl_thousands(item->n_points, points), in->engine_ms, round_trip_ms);
    if (item->code != VOXELD_OK) {
        (void)printf("  %s: %s\n", voxeld_status_name(item->code), item->message);
    }
    for (size_t i = 0; i < in->n_outputs; i++) {
        const struct voxeld_infer_output *output = &in->outputs[i];

        (void)printf("  %s%s ", output->name, output->labels != NULL ? " (labels)" : "");
        print_shape(output);
        print_vector(output);
        (void)fputc('\n', stdout);
    }
}

static void print_json(const char *path, const struct voxeld_inference *in,
                       double round_trip_ms)
{
    const struct voxeld_infer_item *item = &in->items[0];

    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "file", path);
    ctl_json_member_string(stdout, false, "network", in->network);
    ctl_json_member_string(stdout, false, "digest", in->digest);
    ctl_json_member_string(stdout, false, "code", voxeld_status_name(item->code));
    ctl_json_member_count(stdout, false, "n_points", item->n_points);
    ctl_json_member_count(stdout, false, "n_used", item->n_used);
    ctl_json_member_count(stdout, false, "n_voxels", item->n_voxels);
    (void)fputs(", \"outputs\": [", stdout);
    for (size_t i = 0; i < in->n_outputs; i++) {
        (void)fputs(i > 0 ? ", {" : "{", stdout);
        ctl_json_member_string(stdout, true, "name", in->outputs[i].name);
        (void)fputs(", \"shape\": [", stdout);
        for (size_t k = 0; k < in->outputs[i].n_axes; k++) {
            (void)printf("%s%zu", k > 0 ? ", " : "", in->outputs[i].shape[k]);
        }
        (void)fputs("]}", stdout);
    }
    (void)fputc(']', stdout);
    ctl_json_member_number(stdout, false, "voxelize_ms", in->timings.voxelize_ms);
    ctl_json_member_number(stdout, false, "sets_ms", in->timings.sets_ms);
    ctl_json_member_number(stdout, false, "layers_ms", in->timings.layers_ms);
    ctl_json_member_number(stdout, false, "outputs_ms", in->timings.outputs_ms);
    ctl_json_member_number(stdout, false, "engine_ms", in->engine_ms);
    ctl_json_member_number(stdout, false, "round_trip_ms", round_trip_ms);
    ctl_json_member_string(stdout, false, "request_id", in->request_id);
    (void)fputs("}\n", stdout);
}

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int run_file(struct voxeld_client *client, const struct ctl_network_args *args,
                    const char *path, bool json)
{
    struct voxeld_infer_request request = {.outputs = &args->output,
                                           .n_outputs = args->output != NULL ? 1 : 0};
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_inference *inference = NULL;
    struct voxeld_error error;
    double begin_ms;
    int result = CTL_OK;

    if (ctl_read_cloud(path, args->format, &cloud, &error) != VOXELD_OK) {
        return ctl_failed(path, &error);
    }
    ctl_network_infer_request(args, &request);
    request.dtype = ctl_network_has(args, CTL_NETWORK_HALF) ? VOXELD_FLOAT16 : 0;
    request.clouds = cloud;
    request.n_clouds = 1;
    begin_ms = now_ms();
    if (voxeld_infer(client, &request, &inference, &error) != VOXELD_OK) {
        voxeld_cloud_free(cloud);
        return ctl_failed(path, &error);
    }
    begin_ms = now_ms() - begin_ms;
    if (args->out != NULL) {
        result = ctl_infer_write(args->out, args->output, cloud, inference);
    }
    if (result == CTL_OK && json) {
        print_json(path, inference, begin_ms);
    } else if (result == CTL_OK) {
        print_text(path, inference, begin_ms);
    }
    voxeld_inference_free(inference);
    voxeld_cloud_free(cloud);
    return result == CTL_OK ? ctl_flush() : result;
}

int ctl_run_infer(struct voxeld_client *client, const struct ctl_globals *globals,
                  const struct ctl_network_args *args)
{
    int result = CTL_OK;

    for (size_t i = 1; i < args->n_words; i++) {
        int one = run_file(client, args, args->words[i], globals->json);

        /* A bad file does not keep the others from being sent. */
        result = one != CTL_OK ? one : result;
    }
    return result;
}
