// SPDX-License-Identifier: Apache-2.0
/* Cells as a PLY file: what other programs show. */
#include <math.h>

#include "client/files/files.h"
#include "server/service/scene/scene.h"

enum {
    MAX_COLUMNS = 8,
    HEADER_BYTES = 1024 /* at most */
};

struct ply {
    struct vxd_write_column columns[MAX_COLUMNS];
    size_t n_columns;
    size_t row_bytes;
};

static void add_column(struct ply *ply, const char *name, enum vxd_dtype dtype,
                       const void *data, size_t stride_bytes)
{
    ply->columns[ply->n_columns++] =
        (struct vxd_write_column){name, dtype, data, stride_bytes};
    ply->row_bytes += vxd_dtype_bytes(dtype);
}

/* Writes the middle of each cell. */
static enum vxd_status add_positions(struct vxd_request *request, const int32_t *cells,
                                     size_t n, int level, struct ply *ply,
                                     struct vxd_err *err)
{
    static const char *const axes[3] = {"x", "y", "z"};
    const struct vxd_scene_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->scene->spec;
    double cell_m = ldexp(spec->voxel_size_m, level);
    double *positions;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n, 3 * sizeof *positions, &block, err));
    positions = block;
    for (size_t i = 0; i < 3 * n; i++) {
        positions[i] = spec->origin_m[i % 3] + ((double)cells[i] + 0.5) * cell_m;
    }
    for (size_t axis = 0; axis < 3; axis++) {
        add_column(ply, axes[axis], VXD_FLOAT64, n > 0 ? positions + axis : NULL,
                   3 * sizeof *positions);
    }
out:
    return status;
}

/* Writes the palette's colours; materials beyond it are grey. */
static enum vxd_status add_colours(struct vxd_request *request, const uint16_t *materials,
                                   size_t n, struct ply *ply, struct vxd_err *err)
{
    static const char *const names[3] = {"red", "green", "blue"};
    const struct vxd_scene_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->scene->spec;
    uint8_t *colours;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n, 3, &block, err));
    colours = block;
    for (size_t i = 0; i < n; i++) {
        uint32_t rgb =
            materials[i] < spec->n_palette ? spec->palette[materials[i]].rgb : 0x808080;

        colours[3 * i] = (uint8_t)(rgb >> 16);
        colours[3 * i + 1] = (uint8_t)(rgb >> 8);
        colours[3 * i + 2] = (uint8_t)rgb;
    }
    for (size_t k = 0; k < 3; k++) {
        add_column(ply, names[k], VXD_UINT8, n > 0 ? colours + k : NULL, 3);
    }
out:
    return status;
}

/* PLY has no 64-bit integers. */
static enum vxd_status add_counts(struct vxd_request *request, const uint64_t *counts,
                                  size_t n, struct ply *ply, struct vxd_err *err)
{
    double *wide;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n, sizeof *wide, &block, err));
    wide = block;
    for (size_t i = 0; i < n; i++) {
        wide[i] = (double)counts[i];
    }
    add_column(ply, "count", VXD_FLOAT64, wide, sizeof *wide);
out:
    return status;
}

static enum vxd_status add_columns(struct vxd_request *request, const int32_t *cells,
                                   const uint16_t *materials, const uint64_t *counts,
                                   size_t n, int level, struct ply *ply,
                                   struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->scene->spec;
    enum vxd_status status;

    VXD_TRY(add_positions(request, cells, n, level, ply, err));
    if (spec->format.material_bits > 0) {
        add_column(ply, "material", VXD_UINT16, materials, sizeof *materials);
    }
    if (spec->format.material_bits > 0 && spec->n_palette > 0) {
        VXD_TRY(add_colours(request, materials, n, ply, err));
    }
    if (counts != NULL) {
        VXD_TRY(add_counts(request, counts, n, ply, err));
    }
out:
    return status;
}

enum vxd_status vxd_scene_write_ply(struct vxd_request *request, const int32_t *cells,
                                    const uint16_t *materials, const uint64_t *counts,
                                    size_t n, int level,
                                    Voxeld__V1__SceneExportResponse *reply,
                                    struct vxd_err *err)
{
    struct ply ply = {0};
    FILE *stream;
    void *block;
    size_t n_room;
    long n_bytes;
    enum vxd_status status;

    VXD_TRY(add_columns(request, cells, materials, counts, n, level, &ply, err));
    VXD_TRY(vxd_scene_check_reply(n, ply.row_bytes, err));
    n_room = n * ply.row_bytes + HEADER_BYTES;
    VXD_TRY(vxd_scene_take_host(request, n_room, 1, &block, err));
    stream = fmemopen(block, n_room, "wb");
    if (stream == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a PLY file"));
    }
    status = vxd_ply_write(stream, ply.columns, ply.n_columns, n, err);
    n_bytes = status == VXD_OK && fflush(stream) == 0 ? ftell(stream) : -1;
    (void)fclose(stream);
    if (status == VXD_OK && n_bytes < 0) {
        status = vxd_fail(err, VXD_INTERNAL, NULL, "the PLY file was not written");
    }
    if (status == VXD_OK) {
        reply->ply.data = block;
        reply->ply.len = (size_t)n_bytes;
    }
out:
    return status;
}
