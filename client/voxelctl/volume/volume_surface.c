// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume extract: the surface as a PLY, GLB or OBJ file. A large one comes in parts, which the server
 * makes one after the other; vertices between two parts are in both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/volume/volume_commands.h"

enum {
    PART_VOXELS = 1 << 25, /* what any server looks at in one request */
    VERTEX_BYTES = 24
};

/* The parts, in order. */
struct surface {
    struct voxeld_volume_surface **parts;
    size_t n_parts;
    uint64_t n_vertices;
    uint64_t n_triangles;
    bool has_colour;
    bool has_labels;
};

static void surface_free(struct surface *surface)
{
    for (size_t i = 0; i < surface->n_parts; i++) {
        voxeld_volume_surface_free(surface->parts[i]);
    }
    free((void *)surface->parts);
}

/* Adds a part, which is the list's then. */
static bool add_part(struct surface *surface, struct voxeld_volume_surface *take_part)
{
    void *grown =
        realloc((void *)surface->parts, (surface->n_parts + 1) * sizeof(void *));

    if (grown == NULL) {
        voxeld_volume_surface_free(take_part);
        (void)ctl_error("no memory");
        return false;
    }
    surface->parts = grown;
    surface->parts[surface->n_parts++] = take_part;
    surface->n_vertices += take_part->n_vertices;
    surface->n_triangles += take_part->n_triangles;
    surface->has_colour = surface->has_colour || take_part->n_colours > 0;
    surface->has_labels = surface->has_labels || take_part->n_labels > 0;
    return true;
}

static int fetch(struct voxeld_client *client,
                 const struct voxeld_volume_extract_request *like,
                 struct surface *surface)
{
    struct voxeld_volume_extract_request request = *like;
    struct voxeld_volumes *volumes;
    struct voxeld_error error;
    uint64_t edge;

    if (voxeld_volume_get(client, NULL, request.volume, &volumes, &error) != VOXELD_OK) {
        return ctl_failed(request.volume, &error);
    }
    edge = volumes->volumes[0].block > 8 ? 16 : 8;
    voxeld_volumes_free(volumes);
    request.limit = PART_VOXELS / (edge * edge * edge);
    do {
        struct voxeld_volume_surface *part;

        if (voxeld_volume_extract(client, &request, &part, &error) != VOXELD_OK) {
            return ctl_failed(request.volume, &error);
        }
        request.first = part->next;
        if (!add_part(surface, part)) {
            return CTL_FAILED;
        }
    } while (request.first > 0);
    return CTL_OK;
}

/* --- the file ------------------------------------------------------------------------------ */

static bool write_header(FILE *file, const struct surface *surface)
{
    bool is_written =
        fprintf(file,
                "ply\nformat binary_little_endian 1.0\ncomment voxeld, metres\n"
                "element vertex %llu\nproperty float x\nproperty float y\n"
                "property float z\nproperty float nx\nproperty float ny\n"
                "property float nz\n%s%s",
                (unsigned long long)surface->n_vertices,
                surface->has_colour
                    ? "property uchar red\nproperty uchar green\nproperty uchar blue\n"
                    : "",
                surface->has_labels ? "property uchar label\n" : "") > 0;

    if (surface->n_triangles > 0) {
        is_written =
            is_written &&
            fprintf(file, "element face %llu\nproperty list uchar int vertex_indices\n",
                    (unsigned long long)surface->n_triangles) > 0;
    }
    return is_written && fputs("end_header\n", file) >= 0;
}

static bool write_vertices(FILE *file, const struct voxeld_volume_surface *part,
                           bool has_colour, bool has_labels)
{
    const char *vertices = part->vertices.data;
    const char *normals = part->normals.data;
    const char *colours = part->colours.data;
    const char *labels = part->labels.data;
    bool is_written = true;

    for (size_t i = 0; i < part->n && is_written; i++) {
        char row[VERTEX_BYTES + 4] = {0};
        size_t n_bytes = VERTEX_BYTES + (has_colour ? 3 : 0);

        memcpy(row, vertices + i * VERTEX_BYTES / 2, VERTEX_BYTES / 2);
        memcpy(row + VERTEX_BYTES / 2, normals + i * VERTEX_BYTES / 2, VERTEX_BYTES / 2);
        if (part->n_colours > 0) {
            memcpy(row + VERTEX_BYTES, colours + 3 * i, 3);
        }
        if (has_labels) {
            row[n_bytes++] = part->n_labels > 0 ? labels[i] : 0;
        }
        is_written = fwrite(row, n_bytes, 1, file) == 1;
    }
    return is_written;
}

static bool write_triangles(FILE *file, const struct voxeld_volume_surface *part,
                            uint64_t first_vertex)
{
    bool is_written = true;

    for (size_t i = 0; i < part->n_triangles && is_written; i++) {
        char row[13] = {3};

        for (size_t k = 0; k < 3; k++) {
            int32_t vertex =
                (int32_t)(first_vertex + (uint64_t)part->triangles[3 * i + k]);

            memcpy(row + 1 + 4 * k, &vertex, sizeof vertex);
        }
        is_written = fwrite(row, sizeof row, 1, file) == 1;
    }
    return is_written;
}

static enum vxd_status write_ply(FILE *file, void *context, struct vxd_err *err)
{
    const struct surface *surface = context;
    bool is_written = write_header(file, surface);
    uint64_t first = 0;

    for (size_t i = 0; i < surface->n_parts && is_written; i++) {
        is_written = write_vertices(file, surface->parts[i], surface->has_colour,
                                    surface->has_labels);
    }
    for (size_t i = 0; i < surface->n_parts && is_written; i++) {
        is_written = write_triangles(file, surface->parts[i], first);
        first += surface->parts[i]->n_vertices;
    }
    return is_written ? VXD_OK
                      : vxd_fail(err, VXD_UNAVAILABLE, "out", "%s", strerror(errno));
}

static enum vxd_status write_mesh(FILE *file, const struct surface *surface,
                                  enum vxd_surface_format format, struct vxd_err *err)
{
    struct vxd_surface_part *parts = calloc(surface->n_parts + 1, sizeof *parts);
    enum vxd_status status;

    if (parts == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "out", "no memory");
    }
    for (size_t i = 0; i < surface->n_parts; i++) {
        const struct voxeld_volume_surface *part = surface->parts[i];

        parts[i] = (struct vxd_surface_part){
            .n_vertices = part->n,
            .n_triangles = part->n_triangles,
            .vertices = part->vertices.data,
            .normals = part->normals.data,
            .colours = part->n_colours > 0 ? part->colours.data : NULL,
            .labels = part->n_labels > 0 ? part->labels.data : NULL,
            .triangles = part->triangles,
        };
    }
    status = vxd_surface_file_write(file, format, parts, surface->n_parts, err);
    free(parts);
    return status;
}

static enum vxd_status write_glb(FILE *file, void *context, struct vxd_err *err)
{
    return write_mesh(file, context, VXD_SURFACE_GLB, err);
}

static enum vxd_status write_obj(FILE *file, void *context, struct vxd_err *err)
{
    return write_mesh(file, context, VXD_SURFACE_OBJ, err);
}

bool ctl_volume_is_mesh(const char *path)
{
    return ctl_has_ending(path, ".ply") || ctl_has_ending(path, ".glb") ||
           ctl_has_ending(path, ".obj");
}

int ctl_volume_write_surface(struct voxeld_client *client,
                             const struct voxeld_volume_extract_request *request,
                             const char *path, uint64_t *n_vertices,
                             uint64_t *n_triangles)
{
    struct surface surface = {0};
    int result = fetch(client, request, &surface);

    if (result == CTL_OK && surface.n_vertices > INT32_MAX) {
        (void)ctl_error("%llu vertices are more than a file can number; ask for "
                        "boxes of it",
                        (unsigned long long)surface.n_vertices);
        result = CTL_FAILED;
    }
    if (result == CTL_OK) {
        result = ctl_write_file(path,
                                ctl_has_ending(path, ".glb")   ? write_glb
                                : ctl_has_ending(path, ".obj") ? write_obj
                                                               : write_ply,
                                &surface);
    }
    *n_vertices = surface.n_vertices;
    *n_triangles = surface.n_triangles;
    surface_free(&surface);
    return result;
}

int ctl_volume_extract(struct voxeld_client *client, const struct ctl_globals *globals,
                       const struct ctl_volume_args *args)
{
    const char *path = args->words[1];
    struct voxeld_volume_extract_request request = {0};
    uint64_t n_vertices = 0;
    uint64_t n_triangles = 0;
    char text[2][32];
    int result;

    ctl_volume_extract_request(args, &request);
    if (!ctl_volume_is_mesh(path)) {
        return ctl_usage("volume extract", "%s: FILE.ply, .glb or .obj is right", path);
    }
    result = ctl_volume_write_surface(client, &request, path, &n_vertices, &n_triangles);
    if (result != CTL_OK) {
        return result;
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "file", path);
        ctl_json_member_count(stdout, false, "n_vertices", n_vertices);
        ctl_json_member_count(stdout, false, "n_triangles", n_triangles);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: %s vertices, %s triangles\n", path,
                     ctl_thousands(n_vertices, text[0]),
                     ctl_thousands(n_triangles, text[1]));
    }
    return ctl_flush();
}
