// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene export. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/scene/scene_commands.h"

/* The cells of all replies so far. */
struct gathered {
    int32_t *cells;
    uint16_t *materials;
    uint64_t *counts;
    size_t n;
};

static void gathered_free(struct gathered *g)
{
    free(g->cells);
    free(g->materials);
    free(g->counts);
}

bool ctl_scene_grow(void **block, size_t n, size_t n_bytes)
{
    void *grown =
        vxd_size_mul(n > 0 ? n : 1, n_bytes, &n_bytes) ? realloc(*block, n_bytes) : NULL;

    *block = grown != NULL ? grown : *block;
    return grown != NULL;
}

static bool gather(struct gathered *g, const struct voxeld_scene_cells *part)
{
    void *cells = g->cells;
    void *materials = g->materials;
    void *counts = g->counts;
    size_t n = g->n + part->n;
    bool has_grown = ctl_scene_grow(&cells, n, 3 * sizeof *g->cells);

    has_grown = has_grown &&
                (part->materials == NULL ||
                 ctl_scene_grow(&materials, n, sizeof *g->materials)) &&
                (part->counts == NULL || ctl_scene_grow(&counts, n, sizeof *g->counts));
    g->cells = cells;
    g->materials = materials;
    g->counts = counts;
    if (!has_grown) {
        return false;
    }
    memcpy(g->cells + 3 * g->n, part->cells, 3 * part->n * sizeof *g->cells);
    if (part->materials != NULL) {
        memcpy(g->materials + g->n, part->materials, part->n * sizeof *g->materials);
    }
    if (part->counts != NULL) {
        memcpy(g->counts + g->n, part->counts, part->n * sizeof *g->counts);
    }
    g->n = n;
    return true;
}

/* Fetches all cells, in as many replies as it takes, of one version. */
static int fetch_all(struct voxeld_client *client,
                     const struct voxeld_scene_export_request *options,
                     struct gathered *g)
{
    struct voxeld_scene_export_request request = *options;
    char pinned[128]; /* the name with the first reply's version */
    struct voxeld_error error;
    uint64_t version = 0;
    uint64_t n_cells = 0;
    int result = CTL_OK;

    do {
        struct voxeld_scene_cells *part = NULL;
        size_t before = g->n;

        request.first = g->n;
        if (voxeld_scene_export(client, &request, &part, &error) != VOXELD_OK) {
            return ctl_failed(request.scene, &error);
        }
        version = before == 0 ? part->version : version;
        n_cells = part->n_cells;
        if (before == 0 && version > 0 && strchr(request.scene, '@') == NULL) {
            (void)snprintf(pinned, sizeof pinned, "%s@%" PRIu64, request.scene, version);
            request.scene = pinned;
        }
        if (part->version != version) {
            (void)ctl_error("%s: it changed while it was exported; try again",
                            request.scene);
            result = CTL_FAILED;
        } else if (!gather(g, part)) {
            (void)ctl_error("no memory");
            result = CTL_FAILED;
        }
        if (result == CTL_OK && g->n == before && g->n < n_cells) {
            (void)ctl_error("%s: a reply without the next cells", request.scene);
            result = CTL_FAILED;
        }
        voxeld_scene_cells_free(part);
    } while (result == CTL_OK && g->n < n_cells);
    return result;
}

static int export_list(struct voxeld_client *client,
                       const struct voxeld_scene_export_request *request,
                       const char *path, uint64_t *n_cells)
{
    struct gathered g = {0};
    struct voxeld_array out[3];
    size_t n = 0;
    int result = fetch_all(client, request, &g);

    if (result == CTL_OK) {
        out[n++] = (struct voxeld_array){"cells", VOXELD_INT32, g.cells, g.n, 3};
        if (g.materials != NULL) {
            out[n++] =
                (struct voxeld_array){"materials", VOXELD_UINT16, g.materials, g.n, 1};
        }
        if (g.counts != NULL) {
            out[n++] = (struct voxeld_array){"counts", VOXELD_UINT64, g.counts, g.n, 1};
        }
        result = ctl_write_arrays(path, out, n);
        *n_cells = g.n;
    }
    gathered_free(&g);
    return result;
}

struct dense_output {
    const struct voxeld_scene_cells *cells;
    bool materials;
};

static enum vxd_status write_dense(FILE *file, void *context, struct vxd_err *err)
{
    const struct dense_output *out = context;

    return out->materials ? vxd_npy_write(file, VXD_UINT16, out->cells->shape, 3,
                                          out->cells->materials, err)
                          : vxd_npy_write(file, VXD_UINT8, out->cells->shape, 3,
                                          out->cells->states, err);
}

static int export_dense(struct voxeld_client *client,
                        const struct voxeld_scene_export_request *request,
                        const char *path, bool materials, uint64_t *n_cells)
{
    struct voxeld_scene_cells *cells = NULL;
    struct dense_output out = {.materials = materials};
    struct voxeld_error error;
    int result;

    if (voxeld_scene_export(client, request, &cells, &error) != VOXELD_OK) {
        return ctl_failed(request->scene, &error);
    }
    out.cells = cells;
    *n_cells = cells->n;
    if (materials && cells->materials == NULL) {
        (void)ctl_error("%s: it has no materials", request->scene);
        result = CTL_FAILED;
    } else {
        result = ctl_write_file(path, write_dense, &out);
    }
    voxeld_scene_cells_free(cells);
    return result;
}

int ctl_scene_check_export(const struct ctl_scene_args *args)
{
    const char *path = args->words[1];
    bool dense = ctl_scene_has(args, CTL_SCENE_DENSE);

    if (!ctl_has_ending(path, ".ply") && !ctl_has_ending(path, ".npz") &&
        !ctl_has_ending(path, ".npy")) {
        return ctl_usage("scene export", "%s: a name ending in .ply, .npz or .npy", path);
    }
    if (dense && (!ctl_scene_has(args, CTL_SCENE_BOX) || !ctl_has_ending(path, ".npy"))) {
        return ctl_usage("scene export", "--dense needs a --box, and an .npy file");
    }
    if (ctl_scene_has(args, CTL_SCENE_COUNTS) && !ctl_has_ending(path, ".npz")) {
        return ctl_usage("scene export", "--counts goes with an .npz file");
    }
    return CTL_OK;
}

int ctl_scene_export(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_scene_args *args)
{
    const char *path = args->words[1];
    bool dense = ctl_scene_has(args, CTL_SCENE_DENSE);
    struct voxeld_scene_export_request request = {0};
    struct voxeld_error error;
    uint64_t n_cells = 0;
    char text[32];
    int result = CTL_OK;

    ctl_scene_export_request(args, &request);
    request.format = dense ? VOXELD_SCENE_DENSE : VOXELD_SCENE_CELLS;
    if (dense) {
        result = export_dense(client, &request, path,
                              ctl_scene_has(args, CTL_SCENE_MATERIALS), &n_cells);
    } else if (!ctl_has_ending(path, ".ply")) {
        result = export_list(client, &request, path, &n_cells);
    } else if (voxeld_scene_export_file(client, &request, path, &n_cells, &error) !=
               VOXELD_OK) {
        result = ctl_failed(request.scene, &error);
    }
    if (result != CTL_OK) {
        return result;
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "file", path);
        ctl_json_member_count(stdout, false, "n_cells", n_cells);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: %s cells of %s\n", path, ctl_thousands(n_cells, text),
                     request.scene);
    }
    return ctl_flush();
}
