// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene costmap and scene frontiers. */
#include <inttypes.h>
#include <string.h>

#include "client/c/include/voxeld_grid.h"
#include "client/voxelctl/scene/scene_commands.h"

enum {
    MAX_PATH = 4096,
    MAX_PRINTED = 100
};

/* --- costmap ------------------------------------------------------------------------------ */

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

int ctl_scene_costmap(struct voxeld_client *client, const struct ctl_globals *globals,
                      const struct ctl_scene_args *args)
{
    const char *path = args->words[1];
    struct ctl_place place = {0};
    struct voxeld_scene_grid_request request = {
        .scene = place.name,
        .kind = (enum voxeld_grid_kind)args->kind,
        .has_box = ctl_scene_has(args, CTL_SCENE_BOX),
        .box = args->box,
        .in_voxels = ctl_scene_has(args, CTL_SCENE_IN_VOXELS),
        .z_low = args->z[0],
        .z_high = args->z[1],
        .unknown = (enum voxeld_grid_unknown)args->unknown,
        .robot_radius_m = args->robot_radius,
        .inflation_radius_m = args->inflation,
        .cost_scaling = args->cost_scaling,
    };
    struct voxeld_grid *grid = NULL;
    struct voxeld_error error;
    int result;

    (void)ctl_parse_place(args->words[0], &place);
    request.has_at = place.has_at;
    request.at = place.at;
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

int ctl_scene_check_costmap(const struct ctl_scene_args *args)
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
    return ctl_check_place("scene costmap", args->words[0]);
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

int ctl_scene_check_frontiers(const struct ctl_scene_args *args)
{
    if (args->out != NULL && !ctl_has_ending(args->out, ".npz")) {
        return ctl_usage("scene frontiers", "--out %s: a name ending in .npz", args->out);
    }
    return ctl_check_place("scene frontiers", args->words[0]);
}

int ctl_scene_frontiers(struct voxeld_client *client, const struct ctl_globals *globals,
                        const struct ctl_scene_args *args)
{
    struct ctl_place place = {0};
    struct voxeld_scene_frontiers_request request = {
        .scene = place.name,
        .has_box = ctl_scene_has(args, CTL_SCENE_BOX),
        .box = args->box,
        .in_voxels = ctl_scene_has(args, CTL_SCENE_IN_VOXELS),
        .z_low = args->z[0],
        .z_high = args->z[1],
        .in_space = ctl_scene_has(args, CTL_SCENE_IN_SPACE),
        .min_cells = args->min_cells,
        .with_cells = args->out != NULL,
    };
    struct voxeld_frontiers *frontiers = NULL;
    struct voxeld_error error;
    int result = CTL_OK;

    (void)ctl_parse_place(args->words[0], &place);
    request.has_at = place.has_at;
    request.at = place.at;
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
