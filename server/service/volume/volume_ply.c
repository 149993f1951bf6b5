// SPDX-License-Identifier: Apache-2.0
/* A surface as a binary little-endian PLY file: vertices with normals and, where there are any,
 * colours; then triangles, unless there are none. */
#include <string.h>

#include "server/service/volume/volume_service.h"

enum {
    HEADER_BYTES = 512,
    VERTEX_BYTES = 6 * sizeof(float),
    COLOUR_BYTES = 3,
    TRIANGLE_BYTES = 1 + 3 * sizeof(int32_t)
};

static size_t write_header(const struct vxd_volume_mesh *mesh, char out[HEADER_BYTES])
{
    char faces[96] = "";
    int n;

    if (mesh->n_triangles > 0) {
        (void)snprintf(faces, sizeof faces,
                       "element face %zu\nproperty list uchar int vertex_indices\n",
                       mesh->n_triangles);
    }
    n = snprintf(out, HEADER_BYTES,
                 "ply\nformat binary_little_endian 1.0\ncomment voxeld, metres\n"
                 "element vertex %zu\nproperty float x\nproperty float y\n"
                 "property float z\nproperty float nx\nproperty float ny\n"
                 "property float nz\n%s%send_header\n",
                 mesh->n_vertices,
                 mesh->colours != NULL
                     ? "property uchar red\nproperty uchar green\nproperty uchar blue\n"
                     : "",
                 faces);
    return (size_t)n;
}

size_t vxd_volume_ply_bytes(const struct vxd_volume_mesh *mesh)
{
    char header[HEADER_BYTES];

    return write_header(mesh, header) +
           mesh->n_vertices *
               (VERTEX_BYTES + (size_t)(mesh->colours != NULL ? COLOUR_BYTES : 0)) +
           mesh->n_triangles * TRIANGLE_BYTES;
}

void vxd_volume_write_ply(const struct vxd_volume_mesh *mesh, uint8_t *out)
{
    char header[HEADER_BYTES];
    size_t n_header = write_header(mesh, header);

    memcpy(out, header, n_header);
    out += n_header;
    for (size_t i = 0; i < mesh->n_vertices; i++) {
        memcpy(out, mesh->vertices + 3 * i, VERTEX_BYTES / 2);
        memcpy(out + VERTEX_BYTES / 2, mesh->normals + 3 * i, VERTEX_BYTES / 2);
        out += VERTEX_BYTES;
        if (mesh->colours != NULL) {
            memcpy(out, mesh->colours + 3 * i, COLOUR_BYTES);
            out += COLOUR_BYTES;
        }
    }
    for (size_t i = 0; i < mesh->n_triangles; i++) {
        *out = 3;
        memcpy(out + 1, mesh->triangles + 3 * i, TRIANGLE_BYTES - 1);
        out += TRIANGLE_BYTES;
    }
}
