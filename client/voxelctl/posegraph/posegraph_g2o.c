// SPDX-License-Identifier: Apache-2.0
/* voxelctl posegraph load and save: g2o files. Their lines are
 *
 *   VERTEX_SE3:QUAT id x y z qx qy qz qw
 *   EDGE_SE3:QUAT from to x y z qx qy qz qw, and the information's upper triangle, 21 numbers
 *   FIX id...
 *
 * Others are refused, with their number. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/posegraph/posegraph_commands.h"

enum {
    LINE_BYTES = 4096,
    N_TRIANGLE = 21
};

/* What a file has. */
struct g2o {
    struct voxeld_posegraph_node *nodes;
    size_t n_nodes;
    size_t nodes_capacity;
    struct voxeld_posegraph_edge *edges;
    size_t n_edges;
    size_t edges_capacity;
    double (*information)[N_TRIANGLE]; /* by edge */
    uint64_t *fixed;
    size_t n_fixed;
    size_t fixed_capacity;
};

static void clear(struct g2o *file)
{
    free(file->fixed);
    free(file->information);
    free(file->edges);
    free(file->nodes);
}

/* Grows an array for one item more; false without memory. */
static bool grow(void **items, size_t n, size_t *capacity, size_t item_bytes)
{
    size_t wanted = *capacity > 0 ? *capacity * 2 : 256;
    void *grown;

    if (n < *capacity) {
        return true;
    }
    grown = realloc(*items, wanted * item_bytes);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

/* Reads n numbers from the text, which moves behind them. */
static bool read_numbers(const char **text, double *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *end;

        out[i] = strtod(*text, &end);
        if (end == *text || !isfinite(out[i])) {
            return false;
        }
        *text = end;
    }
    return true;
}

static bool read_id(const char **text, uint64_t *out)
{
    const char *at = *text + strspn(*text, " \t");
    char *end;

    errno = 0;
    *out = strtoull(at, &end, 10);
    if (end == at || *at == '-' || errno != 0) {
        return false;
    }
    *text = end;
    return true;
}

static bool is_end(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

/* Files have quaternions of few digits. */
static bool read_pose(const char **text, struct voxeld_pose *out)
{
    double length = 0;

    if (!read_numbers(text, out->translation_m, 3) ||
        !read_numbers(text, out->rotation, 4)) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        length += out->rotation[i] * out->rotation[i];
    }
    length = sqrt(length);
    if (!(fabs(length - 1) < 0.1)) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        out->rotation[i] /= length;
    }
    return true;
}

static bool read_vertex(const char *text, struct g2o *file)
{
    void *nodes = file->nodes;
    struct voxeld_posegraph_node *node;
    bool is_good =
        grow(&nodes, file->n_nodes, &file->nodes_capacity, sizeof *file->nodes);

    file->nodes = nodes;
    if (!is_good) {
        return false;
    }
    node = &file->nodes[file->n_nodes++];
    *node = (struct voxeld_posegraph_node){.id = 0};
    return read_id(&text, &node->id) && read_pose(&text, &node->T_map_node) &&
           is_end(text);
}

static bool read_edge(const char *text, struct g2o *file)
{
    void *edges = file->edges;
    void *information = file->information;
    size_t capacity = file->edges_capacity;
    struct voxeld_posegraph_edge *edge;
    bool is_good =
        grow(&edges, file->n_edges, &file->edges_capacity, sizeof *file->edges) &&
        grow(&information, file->n_edges, &capacity, sizeof *file->information);

    file->edges = edges;
    file->information = information;
    if (!is_good) {
        return false;
    }
    edge = &file->edges[file->n_edges];
    *edge = (struct voxeld_posegraph_edge){.n_information = N_TRIANGLE};
    return read_id(&text, &edge->from) && read_id(&text, &edge->to) &&
           read_pose(&text, &edge->T_from_to) &&
           read_numbers(&text, file->information[file->n_edges++], N_TRIANGLE) &&
           is_end(text);
}

static bool read_fix(const char *text, struct g2o *file)
{
    while (!is_end(text)) {
        void *fixed = file->fixed;
        bool is_good =
            grow(&fixed, file->n_fixed, &file->fixed_capacity, sizeof *file->fixed);

        file->fixed = fixed;
        if (!is_good || !read_id(&text, &file->fixed[file->n_fixed++])) {
            return false;
        }
    }
    return true;
}

static bool read_line(const char *line, struct g2o *file)
{
    static const char vertex[] = "VERTEX_SE3:QUAT ";
    static const char edge[] = "EDGE_SE3:QUAT ";
    static const char fix[] = "FIX ";

    if (strncmp(line, vertex, sizeof vertex - 1) == 0) {
        return read_vertex(line + sizeof vertex - 1, file);
    }
    if (strncmp(line, edge, sizeof edge - 1) == 0) {
        return read_edge(line + sizeof edge - 1, file);
    }
    if (strncmp(line, fix, sizeof fix - 1) == 0) {
        return read_fix(line + sizeof fix - 1, file);
    }
    return line[0] == '#' || is_end(line);
}

static int fail(const char *path, const char *why)
{
    return ctl_error("%s: %s", path, why);
}

/* CTL_FAILED after a message. */
static int read_file(const char *path, struct g2o *file)
{
    FILE *stream = fopen(path, "re");
    char line[LINE_BYTES];
    size_t number = 0;

    if (stream == NULL) {
        return fail(path, strerror(errno));
    }
    while (fgets(line, sizeof line, stream) != NULL) {
        number++;
        if (strchr(line, '\n') == NULL && !feof(stream)) {
            (void)fclose(stream);
            (void)snprintf(line, sizeof line, "line %zu is longer than %d bytes", number,
                           LINE_BYTES);
            return fail(path, line);
        }
        if (!read_line(line, file)) {
            (void)fclose(stream);
            (void)snprintf(line, sizeof line,
                           "line %zu is no VERTEX_SE3:QUAT, EDGE_SE3:QUAT or FIX line as "
                           "they should be",
                           number);
            return fail(path, line);
        }
    }
    if (ferror(stream) != 0) {
        (void)fclose(stream);
        return fail(path, strerror(errno));
    }
    (void)fclose(stream);
    for (size_t i = 0; i < file->n_edges; i++) {
        file->edges[i].information = file->information[i];
    }
    for (size_t k = 0; k < file->n_fixed; k++) {
        for (size_t i = 0; i < file->n_nodes; i++) {
            file->nodes[i].fixed =
                file->nodes[i].fixed || file->nodes[i].id == file->fixed[k];
        }
    }
    return CTL_OK;
}

/* Sets the cost of edges whose nodes do not follow one another; CTL_USAGE after a message. */
static int set_robust(const char *text, struct g2o *file)
{
    static const char *const kinds[] = {"squares", "huber", "cauchy", "dcs"};
    size_t n = text != NULL ? strcspn(text, ",") : 0;
    int kind = -1;
    double width = 1;

    if (text == NULL) {
        return CTL_OK;
    }
    for (int i = 1; i < 4; i++) {
        if (strlen(kinds[i]) == n && strncmp(kinds[i], text, n) == 0) {
            kind = i;
        }
    }
    if (kind < 0 || (text[n] == ',' && (ctl_parse_doubles(text + n + 1, &width, 1) != 1 ||
                                        !(width > 0 && width <= 1e9)))) {
        return ctl_usage(
            "posegraph load",
            "--robust %s: huber, cauchy or dcs is right, and perhaps a width "
            "above 0, as dcs,3",
            text);
    }
    for (size_t i = 0; i < file->n_edges; i++) {
        struct voxeld_posegraph_edge *edge = &file->edges[i];

        if (edge->to != edge->from + 1) {
            edge->robust = (enum voxeld_posegraph_robust)kind;
            edge->width = width;
        }
    }
    return CTL_OK;
}

/* Makes the graph where it is missing. CTL_FAILED after a message. */
static int make_graph(struct voxeld_client *client, const struct ctl_posegraph_args *args)
{
    struct voxeld_posegraph_create_request request = {.posegraph = args->words[0]};
    struct voxeld_posegraphs *graphs;
    struct voxeld_error error;

    if (voxeld_posegraph_get(client, NULL, args->words[0], &graphs, &error) !=
        VOXELD_OK) {
        if (error.code != VOXELD_NOT_FOUND) {
            return ctl_failed(args->words[0], &error);
        }
        request.durable = ctl_posegraph_has(args, CTL_POSEGRAPH_DURABLE);
        request.fsync = args->durable;
        if (voxeld_posegraph_create(client, &request, &graphs, &error) != VOXELD_OK) {
            return ctl_failed(args->words[0], &error);
        }
    }
    voxeld_posegraphs_free(graphs);
    return CTL_OK;
}

int ctl_posegraph_load(struct voxeld_client *client, const struct ctl_globals *globals,
                       const struct ctl_posegraph_args *args)
{
    struct voxeld_posegraph_add_request request = {.posegraph = args->words[0]};
    struct voxeld_posegraph_change *change;
    struct voxeld_error error;
    struct g2o file = {0};
    char text[2][32];
    int result = read_file(args->words[1], &file);

    if (result == CTL_OK) {
        result = set_robust(args->robust, &file);
    }
    if (result == CTL_OK) {
        result = make_graph(client, args);
    }
    request.nodes = file.nodes;
    request.n_nodes = file.n_nodes;
    request.edges = file.edges;
    request.n_edges = file.n_edges;
    if (result == CTL_OK &&
        voxeld_posegraph_add(client, &request, &change, &error) != VOXELD_OK) {
        result = ctl_failed(args->words[1], &error);
    } else if (result == CTL_OK) {
        if (globals->json) {
            (void)printf("{\"n_nodes\": %" PRIu64 ", \"n_edges\": %" PRIu64 "}\n",
                         change->n_nodes, change->n_edges);
        } else {
            (void)printf("%s: %s nodes and %s edges\n", request.posegraph,
                         ctl_thousands(change->n_nodes, text[0]),
                         ctl_thousands(change->n_edges, text[1]));
        }
        voxeld_posegraph_change_free(change);
        result = ctl_flush();
    }
    clear(&file);
    return result;
}

/* --- save ---------------------------------------------------------------------------------------- */

static void write_row(FILE *stream, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(stream, " %.17g", values[i]);
    }
}

static enum vxd_status write_content(FILE *stream, void *context, struct vxd_err *err)
{
    const struct voxeld_posegraph_content *content = context;
    const uint64_t *ids = content->ids.data;
    const double *poses = content->poses.data;
    const uint32_t *flags = content->flags.data;
    const uint64_t *edges = content->edge_ids.data;
    const double *edge_poses = content->edge_poses.data;
    const double *information = content->edge_information.data;

    for (size_t i = 0; i < content->n_nodes; i++) {
        (void)fprintf(stream, "VERTEX_SE3:QUAT %" PRIu64, ids[i]);
        write_row(stream, poses + 7 * i, 7);
        (void)fputc('\n', stream);
        if ((flags[i] & 1) != 0) {
            (void)fprintf(stream, "FIX %" PRIu64 "\n", ids[i]);
        }
    }
    for (size_t i = 0; i < content->n_edges; i++) {
        (void)fprintf(stream, "EDGE_SE3:QUAT %" PRIu64 " %" PRIu64, edges[2 * i],
                      edges[2 * i + 1]);
        write_row(stream, edge_poses + 7 * i, 7);
        for (size_t r = 0; r < 6; r++) {
            write_row(stream, information + 36 * i + 7 * r, 6 - r);
        }
        (void)fputc('\n', stream);
    }
    return ferror(stream) == 0
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, "out", "%s", strerror(errno));
}

int ctl_posegraph_save(struct voxeld_client *client, const struct ctl_globals *globals,
                       const struct ctl_posegraph_args *args)
{
    struct voxeld_posegraph_read_request request = {0};
    struct voxeld_posegraph_content *content;
    struct voxeld_error error;
    const char *path = args->words[1];
    char text[2][32];
    int result;

    ctl_posegraph_save_request(args, &request);
    request.edges = true;
    if (voxeld_posegraph_read(client, &request, &content, &error) != VOXELD_OK) {
        return ctl_failed(request.posegraph, &error);
    }
    result = ctl_write_file(path, write_content, content);
    if (result == CTL_OK && globals->json) {
        (void)printf("{\"version\": %" PRIu64 ", \"n_nodes\": %" PRIu64
                     ", \"n_edges\": %" PRIu64 "}\n",
                     content->version, content->n_nodes, content->n_edges);
    } else if (result == CTL_OK) {
        (void)printf("%s: version %" PRIu64 ", %s nodes and %s edges\n", path,
                     content->version, ctl_thousands(content->n_nodes, text[0]),
                     ctl_thousands(content->n_edges, text[1]));
    }
    voxeld_posegraph_content_free(content);
    return result == CTL_OK ? ctl_flush() : result;
}
