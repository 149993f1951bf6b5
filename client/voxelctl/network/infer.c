// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <time.h>

#include "client/voxelctl/network/voxelctl_network.h"
#include "client/voxelctl/network/infer_out.h"

enum {
    OPT_FORMAT = CTL_OPT_FIRST_OWN,
    OPT_OUTPUT,
    OPT_OUT,
    OPT_DIGEST,
    OPT_HALF,
    SHOWN = 4 /* numbers of a vector to print */
};

/* The command line. */
struct job {
    struct voxeld_infer_request request;
    const char *format;
    const char *output;
    const char *out;
};

/* Parses the command line: CTL_OK and *go_on, or the exit status. */
static int parse(struct ctl_globals *globals, int argc, char **argv, struct job *job,
                 bool *go_on)
{
    static const struct option options[] = {
        CTL_GLOBAL_OPTIONS,
        {"format", required_argument, NULL, OPT_FORMAT},
        {"output", required_argument, NULL, OPT_OUTPUT},
        {"out", required_argument, NULL, OPT_OUT},
        {"digest", required_argument, NULL, OPT_DIGEST},
        {"half", no_argument, NULL, OPT_HALF},
        {NULL, 0, NULL, 0}};
    int result = CTL_OK;
    int id;

    *go_on = false;
    while ((id = ctl_next_option("infer", argc, argv, options)) != -1) {
        switch (id) {
        case OPT_FORMAT:
            job->format = optarg;
            break;
        case OPT_OUTPUT:
            job->output = optarg;
            break;
        case OPT_OUT:
            job->out = optarg;
            break;
        case OPT_DIGEST:
            job->request.expect_digest = optarg;
            break;
        case OPT_HALF:
            job->request.dtype = VOXELD_FLOAT16;
            break;
        default:
            if (ctl_common_option(globals, &ctl_infer, id, optarg, &result)) {
                return result;
            }
        }
    }
    if (argc - optind < 2) {
        return ctl_usage("infer", "takes a network and a file or several");
    }
    if (job->out != NULL && argc - optind > 2) {
        return ctl_usage("infer", "--out goes with one file, not %d", argc - optind - 1);
    }
    if (job->out != NULL && job->request.dtype == VOXELD_FLOAT16 &&
        strstr(job->out, ".ply") != NULL) {
        return ctl_usage("infer", "--half goes with .npy: PLY has no such type");
    }
    job->request.network = argv[optind];
    job->request.outputs = &job->output;
    job->request.n_outputs = job->output != NULL ? 1 : 0;
    result = job->out != NULL ? ctl_infer_check_out(job->out) : CTL_OK;
    *go_on = result == CTL_OK;
    return result;
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

static int run_file(struct voxeld_client *client, struct job *job, const char *path,
                    bool json)
{
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_inference *inference = NULL;
    struct voxeld_error error;
    double begin_ms;
    int result = CTL_OK;

    if (ctl_read_cloud(path, job->format, &cloud, &error) != VOXELD_OK) {
        return ctl_failed(path, &error);
    }
    job->request.clouds = cloud;
    job->request.n_clouds = 1;
    begin_ms = now_ms();
    if (voxeld_infer(client, &job->request, &inference, &error) != VOXELD_OK) {
        voxeld_cloud_free(cloud);
        return ctl_failed(path, &error);
    }
    begin_ms = now_ms() - begin_ms;
    if (job->out != NULL) {
        result = ctl_infer_write(job->out, job->output, cloud, inference);
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

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct voxeld_client *client;
    struct job job = {0};
    bool go_on;
    int result = parse(globals, argc, argv, &job, &go_on);

    if (!go_on) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    for (int i = optind + 1; i < argc; i++) {
        int one = run_file(client, &job, argv[i], globals->json);

        /* A bad file does not keep the others from being sent. */
        result = one != CTL_OK ? one : result;
    }
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_infer = {
    .name = "infer",
    .summary = "runs a network on point cloud files",
    .help = "voxelctl infer - runs a network on point cloud files\n"
            "\n"
            "usage: voxelctl infer NETWORK FILE ... [OPTIONS]\n"
            "\n"
            "Sends each file's points to a network that the daemon has loaded, and "
            "prints what\n"
            "came back. FILE - is standard input; a file must have the fields that the "
            "network\n"
            "looks at (voxelctl net info NETWORK).\n"
            "\n"
            "  --format NAME      pcd, ply, npy, npz, las, kitti or nuscenes. Default: "
            "by the\n"
            "                     file's ending; needed for .bin and standard input\n"
            "  --output NAME      which output; \"*\" = all. Default: the small ones, "
            "vectors "
            "and\n"
            "                     labels\n"
            "  --out FILE.npy     writes that output (the first that came, without "
            "--output) as "
            "an\n"
            "                     array for NumPy: its labels where it has them, else "
            "values\n"
            "  --out FILE.ply     of voxels or points: with x y z and label and score, "
            "or the\n"
            "                     channels as c0, c1, ...\n"
            "  --half             values as float16\n"
            "  --digest HEX       fails unless the network's digest begins so\n"
            "  --json             a JSON object a file, one a line\n"
            "\n"
            "shared options: voxelctl --help\n"
            "\n"
            "examples\n"
            "  voxelctl infer svtnet 000000.bin --format kitti --out place.npy\n"
            "  voxelctl infer minkunet42 scan.pcd --output labels --out labelled.ply\n",
    .run = run,
};
