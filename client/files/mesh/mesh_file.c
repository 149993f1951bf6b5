// SPDX-License-Identifier: Apache-2.0
#include "client/files/mesh/files_mesh.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/files/mesh/mesh_internal.h"

bool vxd_mesh_format_of(const char *path, enum vxd_mesh_format *out)
{
    size_t n = strlen(path);

    if (n < 5) {
        return false;
    }
    *out = strcasecmp(path + n - 4, ".ply") == 0 ? VXD_MESH_PLY : VXD_MESH_OBJ;
    return *out == VXD_MESH_PLY || strcasecmp(path + n - 4, ".obj") == 0;
}

enum vxd_status vxd_mesh_read_line(struct vxd_mesh_reader *reader, bool *is_end,
                                   struct vxd_err *err)
{
    size_t n;

    reader->n_lines++;
    *is_end = false;
    for (n = 0; n < sizeof reader->line; n++) {
        int c = getc(reader->stream);

        if (c == EOF || c == '\n') {
            *is_end = c == EOF && n == 0;
            n -= n > 0 && reader->line[n - 1] == '\r' ? 1 : 0;
            reader->line[n] = '\0';
            return VXD_OK;
        }
        if (c == '\0') {
            break;
        }
        reader->line[n] = (char)c;
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "line %llu %s",
                    (unsigned long long)reader->n_lines,
                    n < sizeof reader->line ? "has a zero" : "is longer than 4095 bytes");
}

char *vxd_mesh_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t");
    size_t n = strcspn(word, " \t");

    *rest = word + n;
    if (**rest != '\0') {
        *(*rest)++ = '\0';
    }
    return n > 0 ? word : NULL;
}

/* A colour of bytes; what is out of range is the nearest that is in it, and NaN is 0. */
static uint32_t pack(const double rgb[3])
{
    uint32_t packed = 0;

    for (int i = 0; i < 3; i++) {
        double c = rgb[i] > 0 ? rgb[i] : 0;

        packed = packed << 8 | (uint32_t)((c < 255 ? c : 255) + 0.5);
    }
    return packed;
}

enum vxd_status vxd_mesh_add_vertex(struct vxd_mesh_file *mesh, size_t *capacity,
                                    size_t most, const struct vxd_mesh_vertex *vertex,
                                    struct vxd_err *err)
{
    bool has_colours = mesh->n_vertices > 0 ? mesh->colours != NULL : vertex->has_colour;

    if (mesh->n_vertices >= most) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "has more than %zu vertices",
                        most);
    }
    if (mesh->n_vertices == *capacity) {
        size_t n = *capacity > 0 ? 2 * *capacity : 1024;
        double *vertices = realloc(mesh->vertices, n * 3 * sizeof *vertices);

        if (vertices == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for vertices");
        }
        mesh->vertices = vertices;
        if (has_colours) {
            uint32_t *colours = realloc(mesh->colours, n * sizeof *colours);

            if (colours == NULL) {
                return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                "no memory for colours");
            }
            mesh->colours = colours;
        }
        *capacity = n;
    }
    memcpy(mesh->vertices + 3 * mesh->n_vertices, vertex->x, sizeof vertex->x);
    if (has_colours) {
        mesh->colours[mesh->n_vertices] =
            vertex->has_colour ? pack(vertex->rgb) : 0xffffff;
    }
    mesh->n_vertices++;
    return VXD_OK;
}

size_t vxd_mesh_fan(const uint32_t *corners, size_t n, uint32_t (*triangles)[3])
{
    for (size_t i = 2; i < n; i++) {
        triangles[i - 2][0] = corners[0];
        triangles[i - 2][1] = corners[i - 1];
        triangles[i - 2][2] = corners[i];
    }
    return n > 2 ? n - 2 : 0;
}

enum vxd_status vxd_mesh_open(FILE *stream, enum vxd_mesh_format format,
                              size_t most_vertices, struct vxd_mesh_file *out,
                              struct vxd_err *err)
{
    enum vxd_status status;

    *out = (struct vxd_mesh_file){.reader = calloc(1, sizeof *out->reader)};
    if (out->reader == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a mesh");
    }
    out->reader->stream = stream;
    out->reader->format = format;
    most_vertices = most_vertices < UINT32_MAX ? most_vertices : UINT32_MAX;
    status = format == VXD_MESH_PLY ? vxd_mesh_open_ply(out, most_vertices, err)
                                    : vxd_mesh_open_obj(out, most_vertices, err);
    if (status != VXD_OK) {
        vxd_mesh_close(out);
    }
    return status;
}

enum vxd_status vxd_mesh_next(struct vxd_mesh_file *mesh, uint32_t (*triangles)[3],
                              size_t capacity, size_t *n, struct vxd_err *err)
{
    uint32_t corners[VXD_MESH_MOST_CORNERS];
    size_t n_corners = 1;

    *n = 0;
    while (n_corners > 0 && *n + VXD_MESH_MOST_CORNERS <= capacity) {
        enum vxd_status status = mesh->reader->format == VXD_MESH_PLY
                                     ? vxd_mesh_face_ply(mesh, corners, &n_corners, err)
                                     : vxd_mesh_face_obj(mesh, corners, &n_corners, err);

        if (status != VXD_OK) {
            return status;
        }
        *n += vxd_mesh_fan(corners, n_corners, triangles + *n);
    }
    return VXD_OK;
}

void vxd_mesh_close(struct vxd_mesh_file *mesh)
{
    free(mesh->vertices);
    free(mesh->colours);
    free(mesh->reader);
    *mesh = (struct vxd_mesh_file){0};
}
