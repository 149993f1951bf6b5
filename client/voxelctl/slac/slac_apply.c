// SPDX-License-Identifier: Apache-2.0
/* voxelctl slac apply: the points of a cloud, or the vertices of a mesh, moved by a grid. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/mesh/files_mesh.h"
#include "client/voxelctl/slac/slac_commands.h"

#define MOST_VERTICES ((size_t)1 << 27)

enum {
    PART_TRIANGLES = 65536
};

struct shape {
    struct ctl_slac_points points;
    uint32_t (*triangles)[3];
    size_t n_triangles;
};

/* --- reading ------------------------------------------------------------------------------- */

static int fail_file(const char *path, const struct vxd_err *err)
{
    return ctl_error("%s: %s", path, err->message);
}

static int read_triangles(const char *path, struct vxd_mesh_file *mesh,
                          struct shape *shape)
{
    struct vxd_err err = {0};

    for (;;) {
        size_t n = 0;
        void *grown =
            realloc((void *)shape->triangles,
                    (shape->n_triangles + PART_TRIANGLES) * sizeof *shape->triangles);

        if (grown == NULL) {
            return ctl_error("no memory");
        }
        shape->triangles = grown;
        if (vxd_mesh_next(mesh, shape->triangles + shape->n_triangles, PART_TRIANGLES, &n,
                          &err) != VXD_OK) {
            return fail_file(path, &err);
        }
        if (n == 0) {
            return CTL_OK;
        }
        shape->n_triangles += n;
    }
}

/* Reads a mesh; one without faces is left to the readers of clouds: *is_mesh says which. */
static int read_mesh(const char *path, enum vxd_mesh_format format, struct shape *shape,
                     bool *is_mesh)
{
    FILE *file = fopen(path, "rb");
    struct vxd_mesh_file mesh = {0};
    struct vxd_err err = {0};
    int result = CTL_OK;

    *is_mesh = false;
    if (file == NULL) {
        return ctl_error("%s: %s", path, strerror(errno));
    }
    if (vxd_mesh_open(file, format, MOST_VERTICES, &mesh, &err) != VXD_OK) {
        (void)fclose(file); /* a cloud of points alone, perhaps */
        return format == VXD_MESH_PLY ? CTL_OK : fail_file(path, &err);
    }
    result = read_triangles(path, &mesh, shape);
    *is_mesh = shape->n_triangles > 0;
    if (result == CTL_OK && *is_mesh) {
        shape->points.points = malloc(3 * (mesh.n_vertices + 1) * sizeof(float));
        shape->points.n = mesh.n_vertices;
        if (shape->points.points == NULL) {
            (void)ctl_error("no memory");
            result = CTL_FAILED;
        }
        for (size_t i = 0; result == CTL_OK && i < 3 * mesh.n_vertices; i++) {
            shape->points.points[i] = (float)mesh.vertices[i];
        }
    }
    vxd_mesh_close(&mesh);
    (void)fclose(file);
    return result;
}

static int read_shape(const char *path, struct shape *shape)
{
    enum vxd_mesh_format format;
    bool is_mesh = false;

    if (vxd_mesh_format_of(path, &format)) {
        int result = read_mesh(path, format, shape, &is_mesh);

        if (result != CTL_OK || is_mesh) {
            return result;
        }
    }
    return ctl_slac_read_cloud(path, &shape->points);
}

/* --- writing ------------------------------------------------------------------------------- */

static bool write_shape(FILE *file, const struct shape *shape,
                        const struct voxeld_slac_moved *moved)
{
    const char *points = moved->points.data;
    const char *normals = moved->normals.data;
    bool has_normals = moved->normals.n > 0;
    bool is_written =
        fprintf(file,
                "ply\nformat binary_little_endian 1.0\ncomment voxeld, metres\n"
                "element vertex %zu\nproperty float x\nproperty float y\n"
                "property float z\n%s",
                shape->points.n,
                has_normals ? "property float nx\nproperty float ny\nproperty float nz\n"
                            : "") > 0;

    if (shape->n_triangles > 0) {
        is_written =
            is_written &&
            fprintf(file, "element face %zu\nproperty list uchar int vertex_indices\n",
                    shape->n_triangles) > 0;
    }
    is_written = is_written && fputs("end_header\n", file) >= 0;
    for (size_t i = 0; i < shape->points.n && is_written; i++) {
        is_written = fwrite(points + 12 * i, 12, 1, file) == 1 &&
                     (!has_normals || fwrite(normals + 12 * i, 12, 1, file) == 1);
    }
    for (size_t i = 0; i < shape->n_triangles && is_written; i++) {
        is_written =
            fputc(3, file) != EOF &&
            fwrite(shape->triangles[i], sizeof shape->triangles[i], 1, file) == 1;
    }
    return is_written;
}

static int write_file(const char *path, const struct shape *shape,
                      const struct voxeld_slac_moved *moved)
{
    FILE *file = fopen(path, "wb");
    bool is_written = file != NULL && write_shape(file, shape, moved);

    if (file != NULL && fclose(file) != 0) {
        is_written = false;
    }
    if (!is_written) {
        (void)ctl_error("%s: %s", path, strerror(errno));
    }
    return is_written ? CTL_OK : CTL_FAILED;
}

static int send(struct voxeld_client *client, const struct ctl_globals *globals,
                const struct ctl_slac_args *args, const struct shape *shape)
{
    struct voxeld_slac_apply_request request = {0};
    struct voxeld_slac_moved *moved = NULL;
    struct voxeld_error error;
    char text[2][32];
    int result = CTL_OK;

    ctl_slac_apply_request(args, &request);
    request.grid = args->words[0];
    request.points = (struct voxeld_array){.dtype = VOXELD_FLOAT32,
                                           .data = shape->points.points,
                                           .n = shape->points.n,
                                           .n_elements = 3};
    if (shape->points.has_normals) {
        request.normals = request.points;
        request.normals.data = shape->points.normals;
    }
    if (args->pose != NULL) {
        result = ctl_read_pose(args->pose, &request.T_out_grid);
    }
    if (result != CTL_OK) {
        return result;
    }
    if (voxeld_slac_apply(client, &request, &moved, &error) != VOXELD_OK) {
        return ctl_failed(request.grid, &error);
    }
    result = write_file(args->words[2], shape, moved);
    if (result == CTL_OK && globals->json) {
        ctl_slac_apply_json(moved);
    } else if (result == CTL_OK) {
        (void)printf("%s: %s points, %s of them where the grid is\n", args->words[2],
                     ctl_thousands(moved->n_points, text[0]),
                     ctl_thousands(moved->n_inside, text[1]));
    }
    voxeld_slac_moved_free(moved);
    return result == CTL_OK ? ctl_flush() : result;
}

int ctl_slac_apply(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_slac_args *args)
{
    struct shape shape = {0};
    int result = read_shape(args->words[1], &shape);

    if (result == CTL_OK) {
        result = send(client, globals, args, &shape);
    }
    ctl_slac_points_clear(&shape.points);
    free((void *)shape.triangles);
    return result;
}
