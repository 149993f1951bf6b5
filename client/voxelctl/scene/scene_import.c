// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene import: the triangles of a mesh fill voxels of a scene. The file is read and sent in
 * parts, each with corners of its own, so memory is that of the file's vertices and of one part. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/include/voxeld_mesh.h"
#include "client/files/mesh/files_mesh.h"
#include "client/voxelctl/scene/scene_commands.h"

enum {
    PART_TRIANGLES = 200000,
    N_CORNERS = 3
};

#define MOST_VOXELS 1e6
#define MOST_VERTICES ((size_t)1 << 31)

/* What the command line says; the scale is 1 where it does not say one. */
struct import_args {
    const char *scene;
    int rule;
    uint32_t material;
    bool has_material;
    double scale;
    const double *offset;
    bool in_voxels;
};

struct totals {
    uint64_t version;
    uint64_t n_triangles;
    uint64_t n_added;
    uint64_t n_changed;
    uint64_t n_outside;
    uint64_t n_non_finite;
    double engine_ms;
};

/* About how many voxels a triangle sets: those of its area, and those along its sides. */
static double voxels_of(const struct vxd_mesh_file *mesh,
                        const uint32_t corners[N_CORNERS], double unit)
{
    const double *p[N_CORNERS];
    double e[2][3];
    double cross[3];
    double area = 0;
    double sides = 0;

    for (int i = 0; i < N_CORNERS; i++) {
        p[i] = mesh->vertices + 3 * (size_t)corners[i];
    }
    for (int k = 0; k < 3; k++) {
        e[0][k] = (p[1][k] - p[0][k]) * unit;
        e[1][k] = (p[2][k] - p[0][k]) * unit;
        sides += fabs(e[0][k]) + fabs(e[1][k]);
    }
    for (int k = 0; k < 3; k++) {
        cross[k] =
            e[0][(k + 1) % 3] * e[1][(k + 2) % 3] - e[0][(k + 2) % 3] * e[1][(k + 1) % 3];
        area += fabs(cross[k]) / 2;
    }
    return 2 * area + 2 * sides + 4;
}

/* So many triangles from this one on as have about MOST_VOXELS voxels, so that a request takes about
 * a second on a small machine. */
static size_t part_of(const struct vxd_mesh_file *mesh, uint32_t (*triangles)[N_CORNERS],
                      size_t first, size_t n, double unit)
{
    double n_voxels = 0;
    size_t end = first;

    while (end < n && (end == first || n_voxels < MOST_VOXELS)) {
        n_voxels += voxels_of(mesh, triangles[end], unit);
        end++;
    }
    return end - first;
}

/* Voxels that one unit of the file is, and whether the scene has colours for vertices. */
static int look_at_scene(struct voxeld_client *client, const struct import_args *args,
                         double *unit, bool *has_palette)
{
    struct voxeld_scenes *scenes = NULL;
    struct voxeld_error error;

    *unit = args->scale;
    *has_palette = false;
    if (voxeld_scene_get(client, NULL, args->scene, &scenes, &error) != VOXELD_OK) {
        return ctl_failed(args->scene, &error);
    }
    *unit = args->in_voxels ? args->scale : args->scale / scenes->scenes[0].voxel_size_m;
    *has_palette = scenes->scenes[0].n_palette > 0;
    voxeld_scenes_free(scenes);
    return CTL_OK;
}

/* Sends triangles, each with its own three vertices. A part that lies outside of the scene is none
 * to stop at. */
static int send_part(struct voxeld_client *client, const struct import_args *args,
                     const struct vxd_mesh_file *mesh, uint32_t (*triangles)[N_CORNERS],
                     size_t n, double *vertices, uint8_t *colours, struct totals *totals)
{
    bool has_colours = colours != NULL && mesh->colours != NULL;
    const struct voxeld_scene_import_mesh_request request = {
        .scene = args->scene,
        .vertices = {.dtype = VOXELD_FLOAT64,
                     .data = vertices,
                     .n = N_CORNERS * n,
                     .n_elements = 3},
        .triangles = {.dtype = VOXELD_INT32,
                      .data = triangles,
                      .n = n,
                      .n_elements = N_CORNERS},
        .colours = {.dtype = has_colours ? VOXELD_UINT8 : (enum voxeld_dtype)0,
                    .data = has_colours ? colours : NULL,
                    .n = has_colours ? N_CORNERS * n : 0,
                    .n_elements = has_colours ? 3 : 0},
        .material = args->material,
        .rule = (enum voxeld_mesh_rule)args->rule,
        .in_voxels = args->in_voxels,
    };
    struct voxeld_mesh_import *done = NULL;
    struct voxeld_error error;

    for (size_t i = 0; i < N_CORNERS * n; i++) {
        const double *p = mesh->vertices + 3 * (size_t)triangles[i / 3][i % 3];

        for (size_t k = 0; k < 3; k++) {
            vertices[3 * i + k] = p[k] * args->scale + args->offset[k];
        }
        for (size_t k = 0; k < 3 && has_colours; k++) {
            colours[3 * i + k] =
                (uint8_t)(mesh->colours[triangles[i / 3][i % 3]] >> (16 - 8 * k));
        }
    }
    for (size_t i = 0; i < N_CORNERS * n; i++) {
        triangles[i / 3][i % 3] = (uint32_t)i;
    }
    totals->n_triangles += n;
    if (voxeld_scene_import_mesh(client, &request, &done, &error) != VOXELD_OK) {
        if (error.code == VOXELD_OUT_OF_RANGE) {
            totals->n_outside += n;
            return CTL_OK;
        }
        return ctl_failed(args->scene, &error);
    }
    totals->version = done->version;
    totals->n_added += done->n_added;
    totals->n_changed += done->n_changed;
    totals->n_outside += done->n_outside;
    totals->n_non_finite += done->n_non_finite;
    totals->engine_ms += done->engine_ms;
    voxeld_mesh_import_free(done);
    return CTL_OK;
}

static int send_all(struct voxeld_client *client, const struct import_args *args,
                    const char *path, struct vxd_mesh_file *mesh, struct totals *totals)
{
    uint32_t(*triangles)[N_CORNERS] = malloc(PART_TRIANGLES * sizeof *triangles);
    double *vertices = malloc((size_t)PART_TRIANGLES * N_CORNERS * 3 * sizeof *vertices);
    uint8_t *colours = malloc((size_t)PART_TRIANGLES * N_CORNERS * 3);
    struct vxd_err err = {0};
    double unit = 1;
    size_t n = 1;
    bool has_palette;
    int result = look_at_scene(client, args, &unit, &has_palette);
    bool has_colours = has_palette && !args->has_material;

    if (triangles == NULL || vertices == NULL || colours == NULL) {
        (void)ctl_error("no memory for triangles");
        result = CTL_FAILED;
    }
    while (result == CTL_OK && n > 0) {
        if (vxd_mesh_next(mesh, triangles, PART_TRIANGLES, &n, &err) != VXD_OK) {
            (void)ctl_error("%s: %s", path, err.message);
            result = CTL_FAILED;
        }
        for (size_t i = 0; result == CTL_OK && i < n;) {
            size_t n_part = part_of(mesh, triangles, i, n, unit);

            result = send_part(client, args, mesh, triangles + i, n_part, vertices,
                               has_colours ? colours : NULL, totals);
            i += n_part;
        }
    }
    free(colours);
    free(vertices);
    free(triangles);
    return result;
}

static void print_totals(const struct ctl_globals *globals, const struct totals *t)
{
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_count(stdout, true, "version", t->version);
        ctl_json_member_count(stdout, false, "n_triangles", t->n_triangles);
        ctl_json_member_count(stdout, false, "n_added", t->n_added);
        ctl_json_member_count(stdout, false, "n_changed", t->n_changed);
        ctl_json_member_count(stdout, false, "n_outside", t->n_outside);
        ctl_json_member_count(stdout, false, "n_non_finite", t->n_non_finite);
        (void)fputs("}\n", stdout);
        return;
    }
    (void)printf("version %" PRIu64 ": %" PRIu64 " triangles, +%" PRIu64
                 " voxels, %" PRIu64 " of another material, %.1f ms\n",
                 t->version, t->n_triangles, t->n_added, t->n_changed, t->engine_ms);
    if (t->n_outside + t->n_non_finite > 0) {
        (void)printf("%" PRIu64 " triangles are outside of the scene, %" PRIu64
                     " have a vertex that is not finite\n",
                     t->n_outside, t->n_non_finite);
    }
}

int ctl_scene_check_import(const struct ctl_scene_args *args)
{
    enum vxd_mesh_format format;

    return vxd_mesh_format_of(args->words[0], &format)
               ? CTL_OK
               : ctl_usage("scene import", "%s: a mesh is a .ply or .obj file",
                           args->words[0]);
}

/* Opens a mesh; CTL_FAILED after a message. */
static int open_mesh(const char *path, FILE *stream, struct vxd_mesh_file *mesh)
{
    struct ctl_progress *progress = ctl_progress_begin_reading(path);
    enum vxd_mesh_format format = {0};
    struct vxd_err err = {0};
    enum vxd_status status;

    (void)vxd_mesh_format_of(path, &format);
    status = vxd_mesh_open(stream, format, MOST_VERTICES, mesh, &err);
    ctl_progress_end(progress);
    if (status != VXD_OK) {
        (void)ctl_error("%s: %s", path, err.message);
    }
    return status == VXD_OK ? CTL_OK : CTL_FAILED;
}

int ctl_scene_import(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_scene_args *args)
{
    const struct import_args import = {
        .scene = args->scene,
        .rule = args->mesh_rule,
        .material = args->material,
        .has_material = ctl_scene_has(args, CTL_SCENE_MATERIAL),
        .scale = ctl_scene_has(args, CTL_SCENE_SCALE) ? args->scale : 1,
        .offset = args->offset,
        .in_voxels = ctl_scene_has(args, CTL_SCENE_IN_VOXELS)};
    const char *path = args->words[0];
    struct vxd_mesh_file mesh = {0};
    struct totals totals = {0};
    FILE *stream = fopen(path, "rb");
    int result;

    if (stream == NULL) {
        (void)ctl_error("cannot read %s", path);
        return CTL_FAILED;
    }
    result = open_mesh(path, stream, &mesh);
    if (result == CTL_OK) {
        result = send_all(client, &import, path, &mesh, &totals);
    }
    if (result == CTL_OK && totals.version == 0) {
        (void)ctl_error("%s: no triangle has a voxel in the scene", path);
        result = CTL_FAILED;
    }
    if (totals.version > 0) {
        print_totals(globals, &totals);
        result = result == CTL_OK ? ctl_flush() : result;
    }
    vxd_mesh_close(&mesh);
    (void)fclose(stream);
    return result;
}
