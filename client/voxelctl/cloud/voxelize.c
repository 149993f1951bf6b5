// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/voxelctl/cloud/voxelctl_cloud.h"
#include "client/voxelctl/cloud/voxelize_out.h"

enum {
    OPT_SIZE = CTL_OPT_FIRST_OWN,
    OPT_FORMAT,
    OPT_RANGE,
    OPT_RULE,
    OPT_ORDER,
    OPT_ORIGIN,
    OPT_FEATURES,
    OPT_NO_FEATURES,
    OPT_REDUCE,
    OPT_MAX_POINTS,
    OPT_MAX_VOXELS,
    OPT_OUT,
    OPT_TENSOR,
    MAX_FEATURES = 64,
    MAX_FEATURE_TEXT = 4096
};

/* The command line, with the request for every file. */
struct job {
    struct voxeld_voxelize_request request;
    const char *format;
    const char *out;
    const char *tensor;
    char feature_text[MAX_FEATURE_TEXT];
    const char *features[MAX_FEATURES];
};

/* A word of a list, and its bit or number. */
struct choice {
    const char *name;
    uint32_t value;
};

static const struct choice reductions[] = {
    {"mean", VOXELD_REDUCE_MEAN},   {"sum", VOXELD_REDUCE_SUM},
    {"min", VOXELD_REDUCE_MIN},     {"max", VOXELD_REDUCE_MAX},
    {"first", VOXELD_REDUCE_FIRST}, {NULL, 0}};
static const struct choice rules[] = {{"spconv", VOXELD_RULE_SPCONV},
                                      {"minkowski", VOXELD_RULE_MINKOWSKI},
                                      {"double", VOXELD_RULE_DOUBLE},
                                      {NULL, 0}};
static const struct choice orders[] = {
    {"morton", VOXELD_ORDER_MORTON}, {"first", VOXELD_ORDER_FIRST_POINT}, {NULL, 0}};

static const struct choice *find(const struct choice *choices, const char *word, size_t n)
{
    for (; choices->name != NULL; choices++) {
        if (strlen(choices->name) == n && memcmp(choices->name, word, n) == 0) {
            return choices;
        }
    }
    return NULL;
}

static bool parse_reduce(const char *text, uint32_t *bits)
{
    for (;;) {
        size_t n = strcspn(text, ",");
        const struct choice *choice = find(reductions, text, n);

        if (choice == NULL) {
            return false;
        }
        *bits |= choice->value;
        if (text[n] == '\0') {
            return true;
        }
        text += n + 1;
    }
}

/* Parses the low corner and the high corner, or low and high for all axes. */
static bool parse_range(const char *text, struct voxeld_voxelize_request *request)
{
    double v[6];
    size_t n = ctl_parse_doubles(text, v, 6);

    if (n != 2 && n != 6) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        request->range_low_m[i] = v[n == 6 ? i : 0];
        request->range_high_m[i] = v[n == 6 ? 3 + i : 1];
        if (!(request->range_low_m[i] < request->range_high_m[i])) {
            return false;
        }
    }
    request->has_range = true;
    return true;
}

static bool parse_features(const char *text, struct job *job)
{
    size_t n = strlen(text);
    char *at = job->feature_text;

    if (n == 0 || n >= sizeof job->feature_text) {
        return false;
    }
    memcpy(job->feature_text, text, n + 1);
    for (job->request.n_features = 0;;) {
        size_t length = strcspn(at, ",");
        bool last = at[length] == '\0';

        if (length == 0 || job->request.n_features == MAX_FEATURES) {
            return false;
        }
        at[length] = '\0';
        job->features[job->request.n_features++] = at;
        if (last) {
            job->request.features = job->features;
            return true;
        }
        at += length + 1;
    }
}

static int take_choice(const char *option, const struct choice *choices,
                       const char *value, uint32_t *out)
{
    const struct choice *choice = find(choices, value, strlen(value));

    if (choice == NULL) {
        return ctl_usage("voxelize", "%s %s: %s or %s", option, value, choices[0].name,
                         choices[1].name);
    }
    *out = choice->value;
    return CTL_OK;
}

static int take_geometry(struct job *job, int id, const char *value)
{
    switch (id) {
    case OPT_SIZE:
        return ctl_parse_size(value, job->request.size_m)
                   ? CTL_OK
                   : ctl_usage("voxelize",
                               "--size %s: metres > 0, one number or three x,y,z", value);
    case OPT_RANGE:
        return parse_range(value, &job->request)
                   ? CTL_OK
                   : ctl_usage(
                         "voxelize",
                         "--range %s: x0,y0,z0,x1,y1,z1 or low,high, each low below "
                         "its high",
                         value);
    default:
        return ctl_parse_doubles(value, job->request.origin_m, 3) == 3
                   ? CTL_OK
                   : ctl_usage("voxelize", "--origin %s: three numbers x,y,z", value);
    }
}

static int take_option(struct job *job, int id, const char *value)
{
    struct voxeld_voxelize_request *r = &job->request;
    uint32_t number = 0;
    int result = CTL_OK;

    switch (id) {
    case OPT_SIZE:
    case OPT_RANGE:
    case OPT_ORIGIN:
        return take_geometry(job, id, value);
    case OPT_FORMAT:
        job->format = value;
        break;
    case OPT_RULE:
        result = take_choice("--rule", rules, value, &number);
        r->rule = (enum voxeld_rule)number;
        break;
    case OPT_ORDER:
        result = take_choice("--order", orders, value, &number);
        r->order = (enum voxeld_order)number;
        break;
    case OPT_FEATURES:
        return parse_features(value, job)
                   ? CTL_OK
                   : ctl_usage("voxelize", "--features %s: 1 to %d names, with commas",
                               value, MAX_FEATURES);
    case OPT_NO_FEATURES:
        r->no_features = true;
        break;
    case OPT_REDUCE:
        return parse_reduce(value, &r->reduce)
                   ? CTL_OK
                   : ctl_usage("voxelize", "--reduce %s: of mean, sum, min, max, first",
                               value);
    case OPT_MAX_POINTS:
        return ctl_parse_u32(value, 1, 65536, &r->max_points)
                   ? CTL_OK
                   : ctl_usage("voxelize", "--max-points %s: 1 to 65536", value);
    case OPT_MAX_VOXELS:
        return ctl_parse_u32(value, 1, INT32_MAX, &r->max_voxels)
                   ? CTL_OK
                   : ctl_usage("voxelize", "--max-voxels %s: 1 to %d", value, INT32_MAX);
    case OPT_OUT:
        job->out = value;
        break;
    default:
        job->tensor = value;
        break;
    }
    return result;
}

/* Parses the command line: CTL_OK and *go_on, or the exit status. */
static int parse(struct ctl_globals *globals, int argc, char **argv, struct job *job,
                 bool *go_on)
{
    static const struct option options[] = {
        CTL_GLOBAL_OPTIONS,
        {"size", required_argument, NULL, OPT_SIZE},
        {"format", required_argument, NULL, OPT_FORMAT},
        {"range", required_argument, NULL, OPT_RANGE},
        {"rule", required_argument, NULL, OPT_RULE},
        {"order", required_argument, NULL, OPT_ORDER},
        {"origin", required_argument, NULL, OPT_ORIGIN},
        {"features", required_argument, NULL, OPT_FEATURES},
        {"no-features", no_argument, NULL, OPT_NO_FEATURES},
        {"reduce", required_argument, NULL, OPT_REDUCE},
        {"max-points", required_argument, NULL, OPT_MAX_POINTS},
        {"max-voxels", required_argument, NULL, OPT_MAX_VOXELS},
        {"out", required_argument, NULL, OPT_OUT},
        {"tensor", required_argument, NULL, OPT_TENSOR},
        {NULL, 0, NULL, 0}};
    int result = CTL_OK;
    int id;

    *go_on = false;
    while ((id = ctl_next_option("voxelize", argc, argv, options)) != -1) {
        if (id >= OPT_SIZE) {
            result = take_option(job, id, optarg);
        } else if (ctl_common_option(globals, &ctl_voxelize, id, optarg, &result)) {
            return result;
        }
        if (result != CTL_OK) {
            return result;
        }
    }
    if (optind == argc) {
        return ctl_usage("voxelize", "no file");
    }
    if (!(job->request.size_m[0] > 0)) {
        return ctl_usage("voxelize", "no --size: metres > 0, one number or three x,y,z");
    }
    if (job->out != NULL && argc - optind > 1) {
        return ctl_usage("voxelize", "--out goes with one file, not %d", argc - optind);
    }
    if (job->tensor != NULL && job->out == NULL) {
        return ctl_usage("voxelize", "--tensor goes with --out FILE.npy");
    }
    if (job->out != NULL) {
        result = ctl_out_plan(job->out, job->tensor, &job->request.outputs,
                              &job->request.reduce);
    }
    *go_on = result == CTL_OK;
    return result;
}

static void print_vector(const char *name, const double *v)
{
    (void)printf(", \"%s\": [", name);
    for (size_t i = 0; i < 3; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_json_number(stdout, v[i]);
    }
    (void)fputc(']', stdout);
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
    print_vector("size_m", v->size_m);
    print_vector("origin_m", v->origin_m);
    print_vector("low_m", v->low_m);
    (void)printf(", \"grid\": [%" PRId32 ", %" PRId32 ", %" PRId32 "], \"features\": [",
                 v->grid[0], v->grid[1], v->grid[2]);
    for (size_t i = 0; i < v->n_channels; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_json_string(stdout, v->features[i]);
    }
    (void)fputc(']', stdout);
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

/* Voxelizes one file of n_files. The progress bar is erased before anything is
 * printed. */
static int run_file(struct voxeld_client *client, struct job *job, const char *path,
                    size_t n_files, bool json)
{
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_voxels *voxels = NULL;
    struct voxeld_error error;
    double begin_ms;
    double round_trip_ms;
    int result;

    if (ctl_read_cloud(path, job->format, &cloud, &error) != VOXELD_OK) {
        ctl_progress_clear(n_files);
        return ctl_failed(path, &error);
    }
    job->request.clouds = cloud;
    job->request.n_clouds = 1;
    begin_ms = now_ms();
    if (voxeld_voxelize(client, &job->request, &voxels, &error) != VOXELD_OK) {
        voxeld_cloud_free(cloud);
        ctl_progress_clear(n_files);
        return ctl_failed(path, &error);
    }
    round_trip_ms = now_ms() - begin_ms;
    voxeld_cloud_free(cloud);
    ctl_progress_clear(n_files);
    result = job->out != NULL ? ctl_out_write(job->out, job->tensor, voxels) : CTL_OK;
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

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct voxeld_client *client;
    struct job job = {0};
    size_t n_files;
    bool go_on;
    int result = parse(globals, argc, argv, &job, &go_on);

    if (!go_on) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    n_files = (size_t)(argc - optind);
    for (size_t i = 0; i < n_files; i++) {
        const char *path = argv[optind + (int)i];
        int one;

        ctl_progress_show(i, n_files, path);
        one = run_file(client, &job, path, n_files, globals->json);
        /* A bad file does not keep the others from being sent. */
        result = one != CTL_OK ? one : result;
    }
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_voxelize = {
    .name = "voxelize",
    .summary = "point cloud files to voxels",
    .help =
        "voxelctl voxelize - point cloud files to voxels\n"
        "\n"
        "usage: voxelctl voxelize FILE ... --size METRES [OPTIONS]\n"
        "\n"
        "Reads each file, sends its points, and prints how many voxels came back, what\n"
        "became of the points and how long it took. FILE - is standard input.\n"
        "\n"
        "input\n"
        "  --format NAME      pcd, ply, npy, npz, las, kitti (float32 x y z intensity)\n"
        "                     or nuscenes (float32 x y z intensity ring). Default: by "
        "the\n"
        "                     file's ending; needed for .bin, which can be anything, "
        "and\n"
        "                     for standard input\n"
        "\n"
        "voxels\n"
        "  --size S | X,Y,Z   edge of a voxel, metres; required\n"
        "  --range X0,Y0,Z0,X1,Y1,Z1 | LOW,HIGH\n"
        "                     keep points in this box only, metres, the high ends\n"
        "                     excluded; two numbers hold for all axes\n"
        "  --rule NAME        spconv: floor((p - low) / size) in float32, as spconv and\n"
        "                     OpenPCDet; needs a range. minkowski: floor(p / size), as\n"
        "                     MinkowskiEngine. double: that in float64, as Open3D.\n"
        "                     Default: spconv with a range, else minkowski\n"
        "  --order NAME       morton (default), or first: by each voxel's first point\n"
        "  --origin X,Y,Z     map position of the lattice's zero; default 0,0,0\n"
        "  --max-points N     points kept a voxel, the first ones; default all\n"
        "  --max-voxels N     voxels kept, those with the earliest points; default all\n"
        "\n"
        "features\n"
        "  --features A,B,..  channels: names of the file's fields; default x, y, z and "
        "all\n"
        "                     others\n"
        "  --reduce A,B,..    of mean (default), sum, min, max, first\n"
        "  --no-features      coordinates and counts only\n"
        "\n"
        "output\n"
        "  --out FILE.ply     points at the voxels' centres, metres in the map frame, "
        "with\n"
        "                     count and REDUCTION_FEATURE as properties\n"
        "  --out FILE.npy     one array for NumPy, which --tensor names: coords "
        "(default;\n"
        "                     int32, N x 4: item, x, y, z), counts, inverse, "
        "first_index,\n"
        "                     mean, sum, min, max, first\n"
        "  --json             a JSON object a file, one a line\n"
        "\n"
        "shared options: voxelctl --help\n"
        "\n"
        "examples\n"
        "  voxelctl voxelize scan.pcd --size 0.1\n"
        "  voxelctl voxelize 000001.bin --format kitti --size 0.05,0.05,0.1 \\\n"
        "      --range 0,-40,-3,70.4,40,1 --max-points 5 --max-voxels 16000\n"
        "  curl -s https://example.org/scan.ply | voxelctl voxelize - --format ply \\\n"
        "      --size 0.2 --out voxels.ply\n",
    .run = run,
};
