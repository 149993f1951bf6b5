// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene costmap and scene frontiers. They have options of their own. */
#include <inttypes.h>
#include <string.h>

#include "client/c/include/voxeld_grid.h"
#include "client/voxelctl/scene/scene_commands.h"

enum grid_option {
    GRID_BOX = CTL_OPT_FIRST_OWN,
    GRID_IN_VOXELS,
    GRID_Z,
    GRID_KIND,
    GRID_UNKNOWN,
    GRID_ROBOT_RADIUS,
    GRID_INFLATION,
    GRID_SCALING,
    GRID_IN_SPACE,
    GRID_MIN_CELLS,
    GRID_OUT,
    GRID_END
};

#define GRID_BIT(option) (UINT64_C(1) << ((option)-CTL_OPT_FIRST_OWN))

/* By enum grid_option. */
static const struct ctl_own_option known[] = {
    {"box", "six numbers, low x,y,z and high x,y,z", false},
    {"in-voxels", "", true},
    {"z", "low,high; of a slice one number", false},
    {"kind", "costmap, projected, height, slice or distance", false},
    {"unknown", "kept, free or lethal", false},
    {"robot-radius", "metres >= 0", false},
    {"inflation", "metres; negative: none", false},
    {"cost-scaling", "a number > 0", false},
    {"in-space", "", true},
    {"min-cells", "a whole number", false},
    {"out", "a name ending in .npz", false},
};

_Static_assert((int)(sizeof known / sizeof known[0]) == GRID_END - CTL_OPT_FIRST_OWN,
               "by number");

enum {
    MAX_PATH = 4096,
    MAX_PRINTED = 100
};

struct grid_args {
    const char *const *words;
    char scene[128]; /* without its version */
    bool has_at;
    struct voxeld_scene_at at;
    bool has_box;
    struct voxeld_scene_box box;
    bool in_voxels;
    double z[2];
    int kind;
    int unknown;
    double robot_radius_m;
    double inflation_m;
    double scaling;
    bool in_space;
    uint32_t min_cells;
    const char *out;
};

static bool take(void *user, int id, const char *value)
{
    static const char *const kinds[] = {"costmap", "projected", "height",
                                        "slice",   "distance",  NULL};
    static const char *const unknowns[] = {"", "kept", "free", "lethal", NULL};
    struct grid_args *args = user;
    double numbers[6];
    size_t n;

    switch ((enum grid_option)id) {
    case GRID_BOX:
        args->has_box = ctl_parse_doubles(value, numbers, 6) == 6;
        memcpy(args->box.low, numbers, sizeof args->box.low);
        memcpy(args->box.high, numbers + 3, sizeof args->box.high);
        return args->has_box;
    case GRID_IN_VOXELS:
        args->in_voxels = true;
        return true;
    case GRID_Z:
        n = ctl_parse_doubles(value, args->z, 2);
        args->z[1] = n == 1 ? args->z[0] : args->z[1];
        return n == 1 || n == 2;
    case GRID_KIND:
        args->kind = ctl_parse_choice(value, kinds);
        return args->kind >= 0;
    case GRID_UNKNOWN:
        args->unknown = ctl_parse_choice(value, unknowns);
        return args->unknown >= 1;
    case GRID_ROBOT_RADIUS:
        return ctl_parse_between(value, 0, 1e6, &args->robot_radius_m);
    case GRID_INFLATION:
        return ctl_parse_between(value, -1, 1e6, &args->inflation_m);
    case GRID_SCALING:
        return ctl_parse_between(value, 0, 1e6, &args->scaling) && args->scaling > 0;
    case GRID_IN_SPACE:
        args->in_space = true;
        return true;
    case GRID_MIN_CELLS:
        return ctl_parse_u32(value, 1, UINT32_MAX, &args->min_cells);
    case GRID_OUT:
        args->out = value;
        return ctl_has_ending(value, ".npz");
    case GRID_END:
        break;
    }
    return false;
}

/* Takes NAME, NAME@VERSION or NAME@SNAPSHOT apart. */
static bool take_scene(struct grid_args *args, const char *word)
{
    size_t n = strcspn(word, "@");

    if (n >= sizeof args->scene) {
        return false;
    }
    memcpy(args->scene, word, n);
    args->scene[n] = '\0';
    args->has_at = word[n] == '@';
    if (args->has_at && word[n + 1 + strspn(word + n + 1, "0123456789")] != '\0') {
        args->at.snapshot = word + n + 1;
    } else if (args->has_at) {
        return ctl_parse_u64(word + n + 1, &args->at.version) && args->at.version > 0;
    }
    return true;
}

/* Parses a command line: CTL_OK and *go_on, or the exit status. */
static int parse(struct ctl_globals *globals, const struct ctl_command *command,
                 uint64_t taken, size_t n_words, int argc, char **argv,
                 struct grid_args *args, bool *go_on)
{
    const struct ctl_own_options own = {.known = known,
                                        .n_known = sizeof known / sizeof known[0],
                                        .taken = taken,
                                        .n_min = n_words,
                                        .n_max = n_words,
                                        .take = take,
                                        .args = args};
    int result = CTL_OK;

    *go_on = false;
    if (ctl_take_own_options(globals, command, &own, argc, argv, &result)) {
        return result;
    }
    args->words = (const char *const *)argv + optind;
    if (!take_scene(args, args->words[0])) {
        return ctl_usage(command->name, "%s: a scene's name, or NAME@VERSION",
                         args->words[0]);
    }
    *go_on = true;
    return CTL_OK;
}

/* --- costmap ------------------------------------------------------------------------------ */

static struct voxeld_scene_grid_request request_of(const struct grid_args *args)
{
    return (struct voxeld_scene_grid_request){
        .scene = args->scene,
        .kind = (enum voxeld_grid_kind)args->kind,
        .has_box = args->has_box,
        .box = args->box,
        .in_voxels = args->in_voxels,
        .z_low = args->z[0],
        .z_high = args->z[1],
        .unknown = (enum voxeld_grid_unknown)args->unknown,
        .robot_radius_m = args->robot_radius_m,
        .inflation_radius_m = args->inflation_m,
        .cost_scaling = args->scaling,
        .has_at = args->has_at,
        .at = args->at,
    };
}

static enum vxd_status write_bytes(FILE *file, void *context, struct vxd_err *err)
{
    const struct voxeld_grid *grid = context;

    return fwrite(grid->file, 1, grid->n_file_bytes, file) == grid->n_file_bytes
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, "out", "cannot write");
}

/* Writes arrays: cells, or the four of a height map. */
static int write_arrays(const struct voxeld_grid *grid, bool is_heights, const char *path)
{
    struct voxeld_array arrays[4] = {grid->cells};

    if (!is_heights) {
        arrays[0].name = "cells";
        return ctl_write_arrays(path, arrays, 1);
    }
    arrays[0] = grid->low;
    arrays[1] = grid->high;
    arrays[2] = grid->mean;
    arrays[3] = grid->slope;
    arrays[0].name = "low";
    arrays[1].name = "high";
    arrays[2].name = "mean";
    arrays[3].name = "slope";
    return ctl_write_arrays(path, arrays, 4);
}

/* Writes the YAML beside a PGM, of the same version. */
static int write_yaml(struct voxeld_client *client,
                      const struct voxeld_scene_grid_request *of, uint64_t version,
                      const char *pgm)
{
    struct voxeld_scene_grid_request request = *of;
    const char *slash = strrchr(pgm, '/');
    struct voxeld_grid *grid = NULL;
    struct voxeld_error error;
    char path[MAX_PATH];
    int result;

    (void)snprintf(path, sizeof path, "%.*s.yaml", (int)(strlen(pgm) - strlen(".pgm")),
                   pgm);
    request.format = VOXELD_GRID_YAML;
    request.image = slash != NULL ? slash + 1 : pgm;
    request.has_at = true;
    request.at = (struct voxeld_scene_at){.version = version};
    if (voxeld_scene_grid(client, &request, &grid, &error) != VOXELD_OK) {
        return ctl_failed(request.scene, &error);
    }
    result = ctl_write_file(path, write_bytes, grid);
    voxeld_grid_free(grid);
    return result;
}

static int print_grid(const struct ctl_globals *globals, const struct voxeld_grid *grid,
                      const char *path, const char *scene)
{
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "file", path);
        ctl_json_member_count(stdout, false, "n_x", grid->n_x);
        ctl_json_member_count(stdout, false, "n_y", grid->n_y);
        ctl_json_member_number(stdout, false, "cell_size_m", grid->cell_size_m);
        ctl_json_member_vec3(stdout, false, "origin", grid->origin_m);
        ctl_json_member_count(stdout, false, "version", grid->version);
        ctl_json_member_number(stdout, false, "engine_ms", grid->engine_ms);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: %" PRIu32 " x %" PRIu32 " cells of %g m of %s, version %" PRIu64
                     "\n",
                     path, grid->n_x, grid->n_y, grid->cell_size_m, scene, grid->version);
    }
    return ctl_flush();
}

static int write_costmap(struct voxeld_client *client, const struct ctl_globals *globals,
                         const struct grid_args *args)
{
    const char *path = args->words[1];
    struct voxeld_scene_grid_request request = request_of(args);
    struct voxeld_grid *grid = NULL;
    struct voxeld_error error;
    int result;

    request.format = ctl_has_ending(path, ".png")   ? VOXELD_GRID_PNG
                     : ctl_has_ending(path, ".pgm") ? VOXELD_GRID_PGM
                     : ctl_has_ending(path, ".cdr") ? VOXELD_GRID_OCCUPANCY
                                                    : VOXELD_GRID_TENSOR;
    if (voxeld_scene_grid(client, &request, &grid, &error) != VOXELD_OK) {
        return ctl_failed(request.scene, &error);
    }
    result = request.format != VOXELD_GRID_TENSOR
                 ? ctl_write_file(path, write_bytes, grid)
                 : write_arrays(grid, request.kind == VOXELD_GRID_HEIGHT, path);
    if (result == CTL_OK && request.format == VOXELD_GRID_PGM) {
        result = write_yaml(client, &request, grid->version, path);
    }
    if (result == CTL_OK) {
        result = print_grid(globals, grid, path, request.scene);
    }
    voxeld_grid_free(grid);
    return result;
}

static int check_costmap(const struct grid_args *args)
{
    const char *path = args->words[1];
    bool is_array = ctl_has_ending(path, ".npy") || ctl_has_ending(path, ".npz");

    if (!is_array && !ctl_has_ending(path, ".png") && !ctl_has_ending(path, ".pgm") &&
        !ctl_has_ending(path, ".cdr")) {
        return ctl_usage("scene costmap",
                         "%s: a name ending in .png, .pgm, .npy, .npz or .cdr", path);
    }
    if (args->kind == VOXELD_GRID_HEIGHT && !ctl_has_ending(path, ".npz")) {
        return ctl_usage("scene costmap", "heights are four arrays: an .npz file");
    }
    if (strlen(path) + sizeof ".yaml" > MAX_PATH) {
        return ctl_usage("scene costmap", "the name of the file is too long");
    }
    return CTL_OK;
}

static int run_costmap(struct ctl_globals *globals, int argc, char **argv)
{
    struct grid_args args = {0};
    struct voxeld_client *client;
    bool go_on;
    int result = parse(globals, &ctl_scene_costmap.command,
                       GRID_BIT(GRID_BOX) | GRID_BIT(GRID_IN_VOXELS) | GRID_BIT(GRID_Z) |
                           GRID_BIT(GRID_KIND) | GRID_BIT(GRID_UNKNOWN) |
                           GRID_BIT(GRID_ROBOT_RADIUS) | GRID_BIT(GRID_INFLATION) |
                           GRID_BIT(GRID_SCALING),
                       2, argc, argv, &args, &go_on);

    result = go_on ? check_costmap(&args) : result;
    if (!go_on || result != CTL_OK) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    result = write_costmap(client, globals, &args);
    voxeld_close(client);
    return result;
}

/* --- frontiers ---------------------------------------------------------------------------- */

static void print_frontiers(const struct ctl_globals *globals,
                            const struct voxeld_frontiers *f)
{
    const uint64_t *sizes = f->sizes.data;
    const double *at = f->centroids.data;
    size_t n = f->n < MAX_PRINTED || globals->json ? f->n : (size_t)MAX_PRINTED;

    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_count(stdout, true, "version", f->version);
        ctl_json_member_count(stdout, false, "n_cells", f->n_cells);
        ctl_json_member_number(stdout, false, "cell_size_m", f->cell_size_m);
        (void)fputs(",\"clusters\":[", stdout);
    }
    for (size_t i = 0; i < n; i++) {
        if (globals->json) {
            (void)fputs(i == 0 ? "{" : ",{", stdout);
            ctl_json_member_count(stdout, true, "size", sizes[i]);
            ctl_json_member_vec3(stdout, false, "centroid", at + 3 * i);
            (void)fputc('}', stdout);
        } else {
            (void)printf("%" PRIu64 " cells around %.3f,%.3f,%.3f\n", sizes[i], at[3 * i],
                         at[3 * i + 1], at[3 * i + 2]);
        }
    }
    if (globals->json) {
        (void)fputs("]}\n", stdout);
    } else if (n < f->n) {
        (void)printf("... and %zu more; --out FILE.npz takes all\n", f->n - n);
    } else if (n == 0) {
        (void)puts("none");
    }
}

static int write_frontiers(const struct voxeld_frontiers *f, const char *path)
{
    struct voxeld_array arrays[4] = {
        f->sizes,
        f->centroids,
        {"cells", VOXELD_INT32, f->cells, (size_t)f->n_cells, 3},
        {"clusters", VOXELD_INT32, f->clusters, (size_t)f->n_cells, 1}};

    arrays[0].name = "sizes";
    arrays[1].name = "centroids";
    return ctl_write_arrays(path, arrays, 4);
}

static int find_frontiers(struct voxeld_client *client, const struct ctl_globals *globals,
                          const struct grid_args *args)
{
    const struct voxeld_scene_frontiers_request request = {
        .scene = args->scene,
        .has_box = args->has_box,
        .box = args->box,
        .in_voxels = args->in_voxels,
        .z_low = args->z[0],
        .z_high = args->z[1],
        .in_space = args->in_space,
        .min_cells = args->min_cells,
        .with_cells = args->out != NULL,
        .has_at = args->has_at,
        .at = args->at,
    };
    struct voxeld_frontiers *frontiers = NULL;
    struct voxeld_error error;
    int result = CTL_OK;

    if (voxeld_scene_frontiers(client, &request, &frontiers, &error) != VOXELD_OK) {
        return ctl_failed(request.scene, &error);
    }
    if (frontiers->sizes.dtype != VOXELD_UINT64 ||
        frontiers->centroids.dtype != VOXELD_FLOAT64) {
        (void)ctl_error("a reply with other types than the schema's");
        result = CTL_FAILED;
    } else if (args->out != NULL) {
        result = write_frontiers(frontiers, args->out);
    }
    if (result == CTL_OK) {
        print_frontiers(globals, frontiers);
        result = ctl_flush();
    }
    voxeld_frontiers_free(frontiers);
    return result;
}

static int run_frontiers(struct ctl_globals *globals, int argc, char **argv)
{
    struct grid_args args = {0};
    struct voxeld_client *client;
    bool go_on;
    int result =
        parse(globals, &ctl_scene_frontiers.command,
              GRID_BIT(GRID_BOX) | GRID_BIT(GRID_IN_VOXELS) | GRID_BIT(GRID_Z) |
                  GRID_BIT(GRID_IN_SPACE) | GRID_BIT(GRID_MIN_CELLS) | GRID_BIT(GRID_OUT),
              1, argc, argv, &args, &go_on);

    if (!go_on) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    result = find_frontiers(client, globals, &args);
    voxeld_close(client);
    return result;
}

const struct ctl_scene_sub ctl_scene_costmap = {
    .command =
        {.name = "scene costmap",
         .help =
             "voxelctl scene costmap - a map that a robot plans with, as a file\n"
             "\n"
             "usage: voxelctl scene costmap NAME[@V] FILE [OPTIONS]\n"
             "\n"
             "  FILE.png            the costs, the highest y in the first row\n"
             "  FILE.pgm            a trinary map, and FILE.yaml beside it, as nav2's\n"
             "                      map_server reads them\n"
             "  FILE.npy, .npz      an array y, x from the low corner\n"
             "  FILE.cdr            nav_msgs/OccupancyGrid as CDR\n"
             "\n"
             "  --z LOW,HIGH        the heights that count, metres; default all. Of a "
             "slice one\n"
             "  --kind KIND         costmap (default): nav2's costs; projected: 100, 0, "
             "-1;\n"
             "                      height: low, high, mean, slope (.npz); slice; "
             "distance:\n"
             "                      of a slice, to obstacles (.npy, .npz)\n"
             "  --box X,Y,Z,X,Y,Z   of this box only, metres; default around all that "
             "is known\n"
             "  --in-voxels         ... voxels from the low corner; --z, too\n"
             "  --robot-radius M    costs are 253 so near to an obstacle; default 0\n"
             "  --inflation M       how far costs reach; default 0.55, negative none\n"
             "  --cost-scaling K    of 252 * exp(-K (d - radius)), 1/m; default 10\n"
             "  --unknown WHAT      kept, free or lethal; default kept where the scene\n"
             "                      tracks free space, else free\n"
             "\n"
             "examples\n"
             "  voxelctl scene costmap yard yard.pgm --z 0.1,1.8 --robot-radius 0.3\n"
             "  voxelctl scene costmap yard heights.npz --kind height\n"},
    .main = run_costmap,
};

const struct ctl_scene_sub ctl_scene_frontiers = {
    .command =
        {.name = "scene frontiers",
         .help =
             "voxelctl scene frontiers - where exploration can go on\n"
             "\n"
             "usage: voxelctl scene frontiers NAME[@V] [OPTIONS]\n"
             "\n"
             "Free cells with an unknown neighbour, in clusters: the size of each, and "
             "where\n"
             "it lies, the largest first.\n"
             "\n"
             "  --z LOW,HIGH        the heights that count, metres; default all\n"
             "  --in-space          voxels instead of columns\n"
             "  --min-cells N       leaves smaller clusters out\n"
             "  --box X,Y,Z,X,Y,Z   of this box only, metres\n"
             "  --in-voxels         ... voxels from the low corner; --z, too\n"
             "  --out FILE.npz      sizes, centroids, cells, clusters\n"
             "\n"
             "examples\n"
             "  voxelctl scene frontiers yard --z 0.1,1.8 --min-cells 20\n"},
    .main = run_frontiers,
};
