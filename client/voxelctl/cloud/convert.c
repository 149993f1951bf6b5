// SPDX-License-Identifier: Apache-2.0
/* voxelctl convert: one point cloud file to another. Needs no daemon. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/files/files.h"
#include "client/voxelctl/cloud/voxelctl_cloud.h"

enum {
    OPT_FORMAT = CTL_OPT_FIRST_OWN,
    OPT_OUT_FORMAT,
    OPT_ADD
};

struct job {
    const char *in;
    const char *out;
    const char *format; /* NULL: by the name's ending */
    const char *out_format;
    char added[VXD_FILE_NAME_BYTES]; /* a field that all points get; "" = none */
    double value;
    uint8_t *records;           /* with it; NULL: the file's own */
    struct vxd_cloud_file file; /* a view of the cloud that was read */
    struct vxd_write_result result;
};

static bool is_stdout(const struct job *job)
{
    return strcmp(job->out, "-") == 0;
}

static bool can_write(const char *format)
{
    const char *known;

    for (size_t i = 0; (known = vxd_cloud_file_write_format(i)) != NULL; i++) {
        if (strcmp(known, format) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes NAME=VALUE. */
static bool take_added(struct job *job, const char *text)
{
    size_t n = strcspn(text, "=");

    if (n == 0 || n >= sizeof job->added || text[n] != '=' ||
        ctl_parse_doubles(text + n + 1, &job->value, 1) != 1) {
        return false;
    }
    memcpy(job->added, text, n);
    job->added[n] = '\0';
    return true;
}

/* Parses the command line: CTL_OK and *go_on, or the exit status. */
static int parse(struct ctl_globals *globals, int argc, char **argv, struct job *job,
                 bool *go_on)
{
    static const struct option options[] = {
        CTL_GLOBAL_OPTIONS,
        {"format", required_argument, NULL, OPT_FORMAT},
        {"out-format", required_argument, NULL, OPT_OUT_FORMAT},
        {"add", required_argument, NULL, OPT_ADD},
        {NULL, 0, NULL, 0}};
    int result = CTL_OK;
    int id;

    *go_on = false;
    while ((id = ctl_next_option("convert", argc, argv, options)) != -1) {
        if (id == OPT_FORMAT) {
            job->format = optarg;
        } else if (id == OPT_OUT_FORMAT) {
            job->out_format = optarg;
        } else if (id == OPT_ADD) {
            if (!take_added(job, optarg)) {
                return ctl_usage("convert", "--add %s: NAME=VALUE", optarg);
            }
        } else if (ctl_common_option(globals, &ctl_convert, id, optarg, &result)) {
            return result;
        }
    }
    if (argc - optind != 2) {
        return ctl_usage("convert", "takes two files, IN and OUT, not %d", argc - optind);
    }
    job->in = argv[optind];
    job->out = argv[optind + 1];
    if (job->out_format == NULL) {
        job->out_format = vxd_cloud_file_format_of(job->out);
    }
    if (job->out_format == NULL) {
        return ctl_usage("convert",
                         "%s does not say by its name what it is to be: "
                         "--out-format",
                         job->out);
    }
    if (!can_write(job->out_format)) {
        return ctl_usage("convert", "--out-format %s: none of those in --help",
                         job->out_format);
    }
    *go_on = true;
    return CTL_OK;
}

static void view(const struct voxeld_cloud *cloud, struct vxd_cloud_file *file)
{
    for (size_t i = 0; i < cloud->n_fields; i++) {
        const struct voxeld_field *field = &cloud->fields[i];

        (void)snprintf(file->fields[i].name, sizeof file->fields[i].name, "%s",
                       field->name);
        file->fields[i].offset = field->offset;
        file->fields[i].dtype = (enum vxd_dtype)field->dtype;
        file->fields[i].scale = field->scale;
        file->fields[i].bias = field->bias;
    }
    file->n_fields = cloud->n_fields;
    file->point_step = cloud->point_step;
    file->n_points = cloud->n_points;
    file->data = cloud->data;
}

/* Makes records that end with the added field, a float32. CTL_FAILED after a message. */
static int add_field(struct job *job)
{
    struct vxd_cloud_file *file = &job->file;
    size_t step = (size_t)file->point_step + sizeof(float);
    float value = (float)job->value;

    for (size_t i = 0; i < file->n_fields; i++) {
        if (strcmp(file->fields[i].name, job->added) == 0) {
            return ctl_error("%s: has a field \"%s\" already", job->in, job->added);
        }
    }
    if (file->n_fields == VXD_FILE_MAX_FIELDS || step > UINT16_MAX) {
        return ctl_error("%s: has no place for another field", job->in);
    }
    job->records = calloc(file->n_points + 1, step);
    if (job->records == NULL) {
        return ctl_error("no memory for %zu points", file->n_points);
    }
    for (size_t i = 0; i < file->n_points; i++) {
        memcpy(job->records + i * step, file->data + i * file->point_step,
               file->point_step);
        memcpy(job->records + i * step + file->point_step, &value, sizeof value);
    }
    file->fields[file->n_fields] = (struct vxd_file_field){
        .offset = file->point_step, .dtype = VXD_FLOAT32, .scale = 1};
    (void)snprintf(file->fields[file->n_fields].name, VXD_FILE_NAME_BYTES, "%s",
                   job->added);
    file->n_fields++;
    file->point_step = (uint32_t)step;
    file->data = job->records;
    return CTL_OK;
}

static enum vxd_status write_cloud(FILE *stream, void *context, struct vxd_err *err)
{
    struct job *job = context;

    return vxd_cloud_file_write(stream, job->out_format, &job->file, &job->result, err);
}

static int write_out(struct job *job)
{
    struct ctl_progress *progress;
    struct vxd_err err = {0};
    enum vxd_status status;

    if (!is_stdout(job)) {
        return ctl_write_file(job->out, write_cloud, job);
    }
    progress = ctl_progress_begin_writing("-");
    status = write_cloud(stdout, job, &err);
    ctl_progress_end(progress);
    if (status != VXD_OK) {
        (void)ctl_error("standard output: %s", err.message);
        return CTL_FAILED;
    }
    return CTL_OK;
}

static void print_json_names(FILE *stream, const struct job *job, bool kept)
{
    bool first = true;

    (void)fputc('[', stream);
    for (size_t i = 0; i < job->file.n_fields; i++) {
        if (job->result.kept[i] == kept) {
            (void)fputs(first ? "" : ", ", stream);
            ctl_json_string(stream, job->file.fields[i].name);
            first = false;
        }
    }
    (void)fputc(']', stream);
}

static void print_json(FILE *stream, const struct job *job)
{
    (void)fputc('{', stream);
    ctl_json_member_string(stream, true, "file", job->in);
    ctl_json_member_string(stream, false, "out", job->out);
    ctl_json_member_string(stream, false, "out_format", job->out_format);
    ctl_json_member_count(stream, false, "n_points", job->result.n_points);
    ctl_json_member_count(stream, false, "n_left_out",
                          job->file.n_points - job->result.n_points);
    (void)fputs(", \"fields\": ", stream);
    print_json_names(stream, job, true);
    (void)fputs(", \"fields_left_out\": ", stream);
    print_json_names(stream, job, false);
    (void)fputs("}\n", stream);
}

static void print_names(FILE *stream, const char *before, const struct job *job,
                        bool kept)
{
    for (size_t i = 0; i < job->file.n_fields; i++) {
        if (job->result.kept[i] == kept) {
            (void)fprintf(stream, "%s%s", before, job->file.fields[i].name);
            before = " ";
        }
    }
}

static void print_text(FILE *stream, const struct job *job)
{
    size_t n_left_out = job->file.n_points - job->result.n_points;
    char text[32];

    (void)fprintf(stream, "%s points", ctl_thousands(job->result.n_points, text));
    print_names(stream, " of ", job, true);
    (void)fprintf(stream, " as %s\n", job->out_format);
    if (n_left_out > 0) {
        (void)fprintf(stream, "  %s points left out: not finite\n",
                      ctl_thousands(n_left_out, text));
    }
    for (size_t i = 0; i < job->file.n_fields; i++) {
        if (!job->result.kept[i]) {
            print_names(stream, "  fields left out: ", job, false);
            (void)fputc('\n', stream);
            break;
        }
    }
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct job job = {0};
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_error error;
    bool go_on;
    int result = parse(globals, argc, argv, &job, &go_on);

    if (!go_on) {
        return result;
    }
    if (ctl_read_cloud(job.in, job.format, &cloud, &error) != VOXELD_OK) {
        return ctl_failed(job.in, &error);
    }
    view(cloud, &job.file);
    result = job.added[0] != '\0' ? add_field(&job) : CTL_OK;
    if (result == CTL_OK) {
        result = write_out(&job);
    }
    if (result == CTL_OK) {
        /* If the points go to standard output, the summary goes to standard error. */
        FILE *stream = is_stdout(&job) ? stderr : stdout;

        if (globals->json) {
            print_json(stream, &job);
        } else {
            print_text(stream, &job);
        }
        result = ctl_flush();
    }
    free(job.records);
    voxeld_cloud_free(cloud);
    return result;
}

const struct ctl_command ctl_convert = {
    .name = "convert",
    .summary = "a point cloud file to another format; needs no daemon",
    .help =
        "voxelctl convert - a point cloud file to another format\n"
        "\n"
        "usage: voxelctl convert IN OUT [--format NAME] [--out-format NAME] [--add F=V] "
        "\\\n"
        "           [OPTIONS]\n"
        "\n"
        "Reads IN whole, then writes OUT, and prints how many points it has and which\n"
        "fields or points the format cannot hold. IN - is standard input, OUT - "
        "standard\n"
        "output. Needs no daemon.\n"
        "\n"
        "  --format NAME      of IN: pcd, ply, npy, npz, las, kitti (float32 x y z\n"
        "                     intensity) or nuscenes (float32 x y z intensity ring).\n"
        "                     Default: by the file's ending\n"
        "  --add NAME=VALUE   a field that all points get, float32: what a network looks "
        "at\n"
        "                     and the sensor lacks\n"
        "  --out-format NAME  of OUT. Default: by the file's ending. One of\n"
        "      pcd, pcd-ascii, pcd-compressed   all fields; pcd is binary\n"
        "      ply, ply-ascii, ply-big          all fields; ply is little-endian\n"
        "      npy, npz       all fields; N x C where they are of one type and called\n"
        "                     x, y, z, intensity, c4, ..., else records\n"
        "      las            x y z intensity classification gps_time red green blue "
        "nir;\n"
        "                     positions of other formats rounded to 0.000001 (coarser "
        "by\n"
        "                     powers of ten over 2147 m), fractions of intensity and "
        "colour\n"
        "                     scaled to 65535, points that are not finite left out\n"
        "      kitti, nuscenes   float32 x y z intensity (ring); 0 where IN has none\n"
        "  --json             a JSON object instead of text\n"
        "\n"
        "shared options: voxelctl --help\n"
        "\n"
        "examples\n"
        "  voxelctl convert scan.las scan.pcd\n"
        "  voxelctl convert 000001.bin scan.ply --format kitti\n"
        "  voxelctl convert scan.ply scan.pcd --out-format pcd-compressed\n",
    .run = run,
};
