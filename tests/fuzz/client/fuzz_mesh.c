// SPDX-License-Identifier: Apache-2.0
/* The readers of meshes: whatever the bytes, an error with a code and a message, or triangles whose
 * corners are vertices. The first byte says which format. */
#include <assert.h>
#include <stdlib.h>

#include "client/files/mesh/files_mesh.h"

enum {
    CAPACITY = 1024,
    MOST_VERTICES = 65536,
    MOST_TRIANGLES = 1 << 20 /* rows without bytes would go on for long */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(FILE *stream, enum vxd_mesh_format format)
{
    uint32_t(*triangles)[3] = malloc(CAPACITY * sizeof *triangles);
    struct vxd_mesh_file mesh;
    struct vxd_err err = {0};
    size_t n = 1;
    size_t n_triangles = 0;
    enum vxd_status status;

    assert(triangles != NULL);
    status = vxd_mesh_open(stream, format, MOST_VERTICES, &mesh, &err);
    while (status == VXD_OK && n > 0 && n_triangles < MOST_TRIANGLES) {
        status = vxd_mesh_next(&mesh, triangles, CAPACITY, &n, &err);
        for (size_t i = 0; status == VXD_OK && i < 3 * n; i++) {
            assert(triangles[i / 3][i % 3] < mesh.n_vertices);
        }
        n_triangles += n;
    }
    assert(status == VXD_OK || (err.code == status && err.message[0] != '\0'));
    vxd_mesh_close(&mesh);
    free(triangles);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *stream;

    if (size < 2) {
        return 0;
    }
    stream = fmemopen((void *)(uintptr_t)(data + 1), size - 1, "rb");
    if (stream != NULL) {
        read_all(stream, data[0] % 2 == 0 ? VXD_MESH_PLY : VXD_MESH_OBJ);
        (void)fclose(stream);
    }
    return 0;
}
