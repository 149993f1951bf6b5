// SPDX-License-Identifier: Apache-2.0
/* Exports a scene's voxels as a file. It is fetched in several replies, each of which is a PLY file of its own, with the same header except for the
 * number of vertices. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/call/call.h"
#include "client/c/include/voxeld_scene.h"

enum {
    MAX_HEADER_BYTES = 4096,
    MAX_NAME_BYTES = 128 /* the server answered to the name, which is not as long */
};

/* The three parts of a PLY file: the header before and after its number of vertices,
 * and the vertices. */
struct ply {
    const uint8_t *bytes;
    size_t n_before;
    size_t behind;
    size_t vertices;
    uint64_t n;
};

/* Where `text` begins in the first n bytes; n if it does not occur. */
static size_t find(const uint8_t *bytes, size_t n, const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i + length <= n; i++) {
        if (memcmp(bytes + i, text, length) == 0) {
            return i;
        }
    }
    return n;
}

static bool take_apart(const struct voxeld_scene_cells *part, struct ply *out)
{
    static const char element[] = "element vertex ";
    static const char end[] = "end_header\n";
    size_t n_head =
        part->n_ply_bytes < MAX_HEADER_BYTES ? part->n_ply_bytes : MAX_HEADER_BYTES;
    size_t at = find(part->ply, n_head, element);
    size_t last = find(part->ply, n_head, end);

    if (at == n_head || last == n_head || last < at) {
        return false;
    }
    *out = (struct ply){.bytes = part->ply, .n_before = at + sizeof element - 1};
    out->behind = out->n_before;
    while (out->behind < last && part->ply[out->behind] >= '0' &&
           part->ply[out->behind] <= '9' && out->n < UINT64_MAX / 16) {
        out->n = 10 * out->n + (uint64_t)(part->ply[out->behind] - '0');
        out->behind++;
    }
    out->vertices = last + sizeof end - 1;
    return out->behind > out->n_before && part->ply[out->behind] == '\n';
}

/* A file to which each reply is appended. */
struct whole {
    struct vxd_out_file file;
    uint64_t version;
    uint64_t generation;
    uint64_t n_cells; /* vertices in the complete file */
    uint64_t n_written;
    size_t vertex_bytes; /* 0 before the first reply */
};

static enum vxd_status write_header(struct whole *w, const struct ply *ply,
                                    struct vxd_err *err)
{
    char number[24];
    int n = snprintf(number, sizeof number, "%" PRIu64, w->n_cells);
    enum vxd_status status;

    VXD_TRY(vxd_out_file_write(&w->file, ply->bytes, ply->n_before, err));
    VXD_TRY(vxd_out_file_write(&w->file, number, (size_t)n, err));
    VXD_TRY(vxd_out_file_write(&w->file, ply->bytes + ply->behind,
                               ply->vertices - ply->behind, err));
out:
    return status;
}

static enum vxd_status append(struct whole *w, const struct voxeld_scene_cells *part,
                              struct vxd_err *err)
{
    bool is_first = w->file.file == NULL;
    size_t n_bytes;
    struct ply ply;
    enum vxd_status status = VXD_OK;

    if (!take_apart(part, &ply)) {
        return vxd_reply_bad(err, "ply", "no PLY file of vertices");
    }
    if (is_first) {
        w->version = part->version;
        w->generation = part->generation;
        w->n_cells = part->n_cells;
        VXD_TRY(vxd_out_file_open(w->file.path, &w->file, err));
        VXD_TRY(write_header(w, &ply, err));
    }
    if (part->version != w->version || part->generation != w->generation) {
        return vxd_fail(err, VXD_ABORTED, NULL,
                        "the scene changed while it was exported: version %" PRIu64
                        ", then %" PRIu64,
                        w->version, part->version);
    }
    n_bytes = part->n_ply_bytes - ply.vertices;
    if (ply.n > w->n_cells - w->n_written || (ply.n == 0) != (n_bytes == 0) ||
        (ply.n == 0 && w->n_written < w->n_cells)) {
        return vxd_reply_bad(err, "ply", "not the cells that are next");
    }
    if (ply.n > 0) {
        w->vertex_bytes =
            w->vertex_bytes > 0 ? w->vertex_bytes : (size_t)(n_bytes / ply.n);
        if (n_bytes / ply.n != w->vertex_bytes || n_bytes % ply.n != 0) {
            return vxd_reply_bad(err, "ply", "vertices of different lengths");
        }
    }
    VXD_TRY(vxd_out_file_write(&w->file, part->ply + ply.vertices, n_bytes, err));
    w->n_written += ply.n;
out:
    return status;
}

/* Fetches the next reply, of the version of the first one, and appends it. */
static enum voxeld_status fetch(struct voxeld_client *client,
                                const struct voxeld_scene_export_request *all,
                                struct whole *w, struct voxeld_error *error)
{
    struct voxeld_scene_export_request request = *all;
    struct voxeld_scene_cells *part = NULL;
    struct vxd_err err = {0};
    char name[MAX_NAME_BYTES];
    enum voxeld_status status;

    request.first = w->n_written;
    if (w->version > 0 && strchr(all->scene, '@') == NULL) {
        (void)snprintf(name, sizeof name, "%s@%" PRIu64, all->scene, w->version);
        request.scene = name;
    }
    status = voxeld_scene_export(client, &request, &part, error);
    if (status == VOXELD_OK && append(w, part, &err) != VXD_OK) {
        status = vxd_client_error(&err, part->request_id, error);
    }
    voxeld_scene_cells_free(part);
    return status;
}

enum voxeld_status
voxeld_scene_export_file(struct voxeld_client *client,
                         const struct voxeld_scene_export_request *request,
                         const char *path, uint64_t *n_cells, struct voxeld_error *error)
{
    struct voxeld_scene_export_request all = *request;
    struct whole w = {.file = {.path = path}};
    struct vxd_err err = {0};
    enum voxeld_status status;
    enum vxd_status ended;

    if (path == NULL) {
        (void)vxd_fail(&err, VXD_INVALID_ARGUMENT, "path", "is NULL");
        return vxd_client_error(&err, "", error);
    }
    all.format = VOXELD_SCENE_PLY;
    all.limit = 0;
    all.with_counts = false;
    do {
        status = fetch(client, &all, &w, error);
    } while (status == VOXELD_OK && w.n_written < w.n_cells);
    ended = vxd_out_file_end(&w.file, (enum vxd_status)status, &err);
    if (status == VOXELD_OK && ended != VXD_OK) {
        return vxd_client_error(&err, "", error);
    }
    if (status == VOXELD_OK && n_cells != NULL) {
        *n_cells = w.n_cells;
    }
    return status;
}
