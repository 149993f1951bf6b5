// SPDX-License-Identifier: Apache-2.0
/* voxelctl map export. */
#include <errno.h>
#include <string.h>

#include "client/voxelctl/generated/map_args.h"

enum {
    MAX_ARRAYS = CTL_MAX_LISTED + 2 /* with keys and indices */
};

/* Writes an .npz with keys, indices and the value arrays, or an .npy with the keys or
 * the first array of --arrays. */
static int write_arrays(const char *path, const struct voxeld_map_result *r, bool chosen)
{
    struct voxeld_array out[MAX_ARRAYS];
    size_t n = 0;

    if (chosen && r->n_values > 0 && ctl_has_ending(path, ".npy")) {
        return ctl_write_arrays(path, r->values, 1);
    }
    out[n++] = r->keys;
    out[n++] = (struct voxeld_array){"indices", VOXELD_INT32, r->indices, r->n, 1};
    for (size_t i = 0; i < r->n_values && n < MAX_ARRAYS; i++) {
        out[n++] = r->values[i];
    }
    return ctl_write_arrays(path, out, n);
}

static enum vxd_status write_bytes(FILE *file, void *context, struct vxd_err *err)
{
    const struct voxeld_map_result *r = context;

    return fwrite(r->ply, 1, r->n_ply_bytes, file) == r->n_ply_bytes
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, "out", "%s", strerror(errno));
}

static int export_file(struct voxeld_client *client,
                       const struct voxeld_map_export_request *request, const char *path,
                       uint64_t *n_entries)
{
    struct voxeld_map_result *r = NULL;
    struct voxeld_error error;
    int result;

    if (voxeld_map_export(client, request, &r, &error) != VOXELD_OK) {
        return ctl_failed(request->map, &error);
    }
    *n_entries = r->n_entries;
    result = request->as_ply ? ctl_write_file(path, write_bytes, r)
                             : write_arrays(path, r, request->n_arrays > 0);
    voxeld_map_result_free(r);
    return result;
}

int ctl_map_check_export(const struct ctl_map_args *args)
{
    const char *path = args->words[1];

    if (!ctl_has_ending(path, ".ply") && !ctl_has_ending(path, ".npz") &&
        !ctl_has_ending(path, ".npy")) {
        return ctl_usage("map export", "%s: a name ending in .ply, .npz or .npy", path);
    }
    return CTL_OK;
}

int ctl_map_export(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_map_args *args)
{
    const char *path = args->words[1];
    struct voxeld_map_export_request request = {0};
    uint64_t n_entries = 0;
    char text[32];
    int result;

    ctl_map_export_request(args, &request);
    request.keys_only = ctl_has_ending(path, ".npy") && request.n_arrays == 0;
    request.as_ply = ctl_has_ending(path, ".ply");
    result = export_file(client, &request, path, &n_entries);
    if (result != CTL_OK) {
        return result;
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "file", path);
        ctl_json_member_count(stdout, false, "n_entries", n_entries);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: of %s, which has %s entries\n", path, request.map,
                     ctl_thousands(n_entries, text));
    }
    return ctl_flush();
}
