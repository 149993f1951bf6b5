// SPDX-License-Identifier: Apache-2.0
/* Wavefront OBJ, line by line:
 *
 *   v X Y Z R G B        a vertex, with a colour, 0 to 1 each; without one it may have a w, which is
 *                        skipped
 *   f A B C ...          a face; each corner is V, V/T, V//N or V/T/N, vertices from 1, or from -1,
 *                        the last one before this line, backwards
 *
 * All other lines are skipped. The file is read twice: for the vertices, and for the faces. */
#include <string.h>

#include "client/files/mesh/mesh_internal.h"
#include "proto/base/number.h"

static enum vxd_status read_vertex(const struct vxd_mesh_reader *reader, char *rest,
                                   struct vxd_mesh_vertex *vertex, struct vxd_err *err)
{
    int n = 0;

    for (int k = 0; k < 3; k++) {
        const char *word = vxd_mesh_word(&rest);

        if (word == NULL || !vxd_number_double(word, strlen(word), &vertex->x[k])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                            "line %llu: a vertex is three numbers",
                            (unsigned long long)reader->n_lines);
        }
    }
    for (const char *word = vxd_mesh_word(&rest);
         word != NULL && n < 3 && vxd_number_double(word, strlen(word), &vertex->rgb[n]);
         word = vxd_mesh_word(&rest)) {
        vertex->rgb[n++] *= 255;
    }
    vertex->has_colour = n == 3;
    return VXD_OK;
}

/* The next line of this kind; *rest is NULL at the end. Counts the vertices that it passes. */
static enum vxd_status find_line(struct vxd_mesh_reader *reader, const char *kind,
                                 char **rest, struct vxd_err *err)
{
    for (;;) {
        bool is_end;
        char *at = reader->line;
        const char *word;
        enum vxd_status status = vxd_mesh_read_line(reader, &is_end, err);

        *rest = NULL;
        if (status != VXD_OK || is_end) {
            return status;
        }
        word = vxd_mesh_word(&at);
        if (word != NULL && strcmp(word, "v") == 0) {
            reader->n_before++;
        }
        if (word != NULL && strcmp(word, kind) == 0) {
            *rest = at;
            return VXD_OK;
        }
    }
}

enum vxd_status vxd_mesh_open_obj(struct vxd_mesh_file *mesh, size_t most,
                                  struct vxd_err *err)
{
    struct vxd_mesh_reader *reader = mesh->reader;
    size_t capacity = 0;
    enum vxd_status status;

    for (;;) {
        struct vxd_mesh_vertex vertex = {0};
        char *rest;

        VXD_TRY(find_line(reader, "v", &rest, err));
        if (rest == NULL) {
            break;
        }
        VXD_TRY(read_vertex(reader, rest, &vertex, err));
        VXD_TRY(vxd_mesh_add_vertex(mesh, &capacity, most, &vertex, err));
    }
    if (fseek(reader->stream, 0, SEEK_SET) != 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "cannot be read twice"));
    }
    reader->n_lines = 0;
    reader->n_before = 0;
out:
    return status;
}

static bool read_corner(const struct vxd_mesh_file *mesh, const char *word, uint32_t *out)
{
    int64_t number;
    int64_t n = (int64_t)mesh->n_vertices;

    if (!vxd_number_int64(word, strcspn(word, "/"), &number) || number == 0) {
        return false;
    }
    if (number < 0 && number >= -n) {
        number += (int64_t)mesh->reader->n_before + 1;
    }
    *out = (uint32_t)(number - 1);
    return number >= 1 && number <= n;
}

enum vxd_status vxd_mesh_face_obj(struct vxd_mesh_file *mesh, uint32_t *corners,
                                  size_t *n, struct vxd_err *err)
{
    const struct vxd_mesh_reader *reader = mesh->reader;
    char *rest;
    const char *word;
    enum vxd_status status = find_line(mesh->reader, "f", &rest, err);

    *n = 0;
    if (status != VXD_OK || rest == NULL) {
        return status;
    }
    while ((word = vxd_mesh_word(&rest)) != NULL) {
        if (*n == VXD_MESH_MOST_CORNERS || !read_corner(mesh, word, &corners[*n])) {
            return vxd_fail(
                err, VXD_INVALID_ARGUMENT, NULL,
                "line %llu: '%.40s' is none of %zu vertices, or the face has more "
                "than %d corners",
                (unsigned long long)reader->n_lines, word, mesh->n_vertices,
                VXD_MESH_MOST_CORNERS);
        }
        ++*n;
    }
    return *n >= 3 ? VXD_OK
                   : vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                              "line %llu: a face has at least three corners",
                              (unsigned long long)reader->n_lines);
}
