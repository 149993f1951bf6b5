// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume extract: the surface as a PLY file. */
#include <errno.h>
#include <string.h>

#include "client/voxelctl/volume/volume_commands.h"

static enum vxd_status write_bytes(FILE *file, void *context, struct vxd_err *err)
{
    const struct voxeld_volume_surface *surface = context;

    return fwrite(surface->ply, 1, surface->n_ply_bytes, file) == surface->n_ply_bytes
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, "out", "%s", strerror(errno));
}

int ctl_volume_write_ply(struct voxeld_client *client,
                         const struct voxeld_volume_extract_request *request,
                         const char *path, uint64_t *n_vertices, uint64_t *n_triangles)
{
    struct voxeld_volume_surface *surface;
    struct voxeld_error error;
    int result;

    if (voxeld_volume_extract(client, request, &surface, &error) != VOXELD_OK) {
        return ctl_failed(request->volume, &error);
    }
    *n_vertices = surface->n_vertices;
    *n_triangles = surface->n_triangles;
    result = ctl_write_file(path, write_bytes, surface);
    voxeld_volume_surface_free(surface);
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
    request.as_ply = true;
    if (!ctl_has_ending(path, ".ply")) {
        return ctl_usage("volume extract", "%s: FILE.ply is right", path);
    }
    if (ctl_volume_parse_box(args->box, &request.has_box, &request.box) != CTL_OK) {
        return CTL_USAGE;
    }
    result = ctl_volume_write_ply(client, &request, path, &n_vertices, &n_triangles);
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
