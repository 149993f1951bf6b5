// SPDX-License-Identifier: Apache-2.0
/* Scenes and their costmaps as Foxglove shows them. The cells come as the PLY that scene_export
 * makes: centres as float64, then the material and the palette's colour where the scene has them.
 * Positions in messages count from the scene's low corner, so that float32 is exact enough. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/transport/foxglove/foxglove_internal.h"

enum {
    POSITION_BYTES = 24,
    MATERIAL_BYTES = 2,
    COLOUR_BYTES = 3,
    POINT_BYTES = 16, /* x, y, z, and a colour */
    VOXEL_BYTES = 4,
    CUBE_BYTES = 112, /* at most, as written */
    COST_BYTES = 5    /* the cost, and a colour */
};

/* The rows of an export. */
struct rows {
    const uint8_t *bytes;
    size_t n;
    size_t n_bytes; /* of one */
    bool has_material;
    bool has_colour;
};

struct row {
    double x[3];
    uint16_t material;
    uint8_t rgb[3];
};

static bool has_line(const char *header, size_t n_bytes, const char *line)
{
    size_t n_line = strlen(line);

    for (size_t i = 0; i + n_line <= n_bytes; i++) {
        if (memcmp(header + i, line, n_line) == 0) {
            return true;
        }
    }
    return false;
}

static enum vxd_status open_rows(const ProtobufCBinaryData *ply, struct rows *out,
                                 struct vxd_err *err)
{
    static const char end[] = "end_header\n";
    const char *bytes = (const char *)ply->data;
    size_t n_header = 0;

    while (n_header + sizeof end - 1 <= ply->len &&
           memcmp(bytes + n_header, end, sizeof end - 1) != 0) {
        n_header++;
    }
    if (n_header + sizeof end - 1 > ply->len ||
        !has_line(bytes, n_header, "property double x\n")) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "the export is no PLY of cells");
    }
    out->has_material = has_line(bytes, n_header, " material\n");
    out->has_colour = has_line(bytes, n_header, " red\n");
    out->n_bytes = POSITION_BYTES + (out->has_material ? (size_t)MATERIAL_BYTES : 0) +
                   (out->has_colour ? (size_t)COLOUR_BYTES : 0);
    n_header += sizeof end - 1;
    out->bytes = ply->data + n_header;
    out->n = (ply->len - n_header) / out->n_bytes;
    return VXD_OK;
}

/* Materials without a palette get colours that are far apart: steps of the golden ratio around
 * the circle of hues. */
static void colour_of(uint16_t material, uint8_t rgb[3])
{
    double hue = fmod(material * 0.61803398874989485, 1) * 6;

    for (int k = 0; k < 3; k++) {
        double distance =
            fabs(fmod(hue + 6 - 2 * k, 6) - 3); /* 3 at its own hue's opposite */

        rgb[k] = (uint8_t)(90 + 140 * fmin(fmax(distance - 1, 0), 1));
    }
}

static struct row read_row(const struct rows *rows, size_t i)
{
    const uint8_t *bytes = rows->bytes + i * rows->n_bytes;
    struct row row = {.rgb = {200, 200, 200}};

    memcpy(row.x, bytes, sizeof row.x);
    bytes += POSITION_BYTES;
    if (rows->has_material) {
        memcpy(&row.material, bytes, sizeof row.material);
        bytes += MATERIAL_BYTES;
        colour_of(row.material, row.rgb);
    }
    if (rows->has_colour) {
        memcpy(row.rgb, bytes, sizeof row.rgb);
    }
    return row;
}

uint64_t vxd_fox_scene_limit(enum vxd_foxglove_schema schema, size_t max_bytes)
{
    switch (schema) {
    case VXD_FOXGLOVE_SCENE_UPDATE:
        return max_bytes / CUBE_BYTES;
    case VXD_FOXGLOVE_VOXEL_GRID:
        return max_bytes / VOXEL_BYTES;
    default:
        return max_bytes / (POINT_BYTES + MATERIAL_BYTES);
    }
}

static void append_frame(struct vxd_text *text, const char *frame)
{
    vxd_fox_string(text, 2, frame[0] != '\0' ? frame : "map");
}

static void write_points(const Voxeld__V1__SceneExportResponse *reply,
                         const struct rows *rows, struct vxd_text *text)
{
    const Voxeld__V1__Vec3 *origin = reply->origin;
    uint32_t n_point = POINT_BYTES + (rows->has_material ? MATERIAL_BYTES : 0);

    vxd_fox_pose(text, 3, origin->x, origin->y, origin->z);
    vxd_fox_fixed32(text, 4, n_point);
    vxd_fox_packed_field(text, 5, "x", 0, VXD_FOX_FLOAT32);
    vxd_fox_packed_field(text, 5, "y", 4, VXD_FOX_FLOAT32);
    vxd_fox_packed_field(text, 5, "z", 8, VXD_FOX_FLOAT32);
    vxd_fox_packed_colour(text, 5, 12);
    if (rows->has_material) {
        vxd_fox_packed_field(text, 5, "material", POINT_BYTES, VXD_FOX_UINT16);
    }
    vxd_fox_begin_bytes(text, 6, rows->n * n_point);
    for (size_t i = 0; i < rows->n; i++) {
        struct row row = read_row(rows, i);
        const float at[3] = {(float)(row.x[0] - origin->x), (float)(row.x[1] - origin->y),
                             (float)(row.x[2] - origin->z)};
        const uint8_t rgba[4] = {row.rgb[0], row.rgb[1], row.rgb[2], 255};

        vxd_text_append(text, (const char *)at, sizeof at);
        vxd_text_append(text, (const char *)rgba, sizeof rgba);
        if (rows->has_material) {
            vxd_text_append(text, (const char *)&row.material, sizeof row.material);
        }
    }
}

static void write_cubes(const Voxeld__V1__SceneExportResponse *reply,
                        const struct rows *rows, const char *name, int64_t stamp_ns,
                        struct vxd_text *text)
{
    size_t at = vxd_fox_open(text, 2);
    double side = reply->cell_size_m;

    vxd_fox_time(text, 1, stamp_ns);
    append_frame(text, reply->frame_id);
    vxd_fox_string(text, 3, name);
    for (size_t i = 0; i < rows->n; i++) {
        struct row row = read_row(rows, i);
        size_t cube = vxd_fox_open(text, 8);

        vxd_fox_pose(text, 1, row.x[0], row.x[1], row.x[2]);
        vxd_fox_vector(text, 2, side, side, side);
        vxd_fox_colour(text, 3, row.rgb[0] / 255.0, row.rgb[1] / 255.0,
                       row.rgb[2] / 255.0, 1);
        vxd_fox_close(text, cube);
    }
    vxd_fox_close(text, at);
}

/* The cell of a row, from the scene's low corner. */
static void cell_of(const Voxeld__V1__SceneExportResponse *reply, const struct row *row,
                    int64_t out[3])
{
    const double origin[3] = {reply->origin->x, reply->origin->y, reply->origin->z};

    for (int k = 0; k < 3; k++) {
        out[k] = (int64_t)floor((row->x[k] - origin[k]) / reply->cell_size_m);
    }
}

/* The box of all rows: low, and its sides. */
static void find_box(const Voxeld__V1__SceneExportResponse *reply,
                     const struct rows *rows, int64_t low[3], int64_t n[3])
{
    int64_t high[3] = {0, 0, 0};

    memset(low, 0, 3 * sizeof *low);
    for (size_t i = 0; i < rows->n; i++) {
        struct row row = read_row(rows, i);
        int64_t cell[3];

        cell_of(reply, &row, cell);
        for (int k = 0; k < 3; k++) {
            low[k] = i == 0 || cell[k] < low[k] ? cell[k] : low[k];
            high[k] = i == 0 || cell[k] > high[k] ? cell[k] : high[k];
        }
    }
    for (int k = 0; k < 3; k++) {
        n[k] =
            high[k] - low[k] + 1; /* of nothing, one clear voxel: strides must not be 0 */
    }
}

static enum vxd_status write_voxels(const Voxeld__V1__SceneExportResponse *reply,
                                    const struct rows *rows, size_t max_bytes,
                                    struct vxd_text *text, bool *fits,
                                    struct vxd_err *err)
{
    int64_t most = (int64_t)(max_bytes / VOXEL_BYTES);
    double side = reply->cell_size_m;
    int64_t low[3];
    int64_t n[3];
    size_t n_bytes;
    uint8_t *data;

    find_box(reply, rows, low, n);
    /* A scene is at most 2^21 cells a side, so a product of two sides does not overflow. */
    *fits = n[0] * n[1] <= most && n[0] * n[1] * n[2] <= most;
    if (!*fits) {
        return VXD_OK;
    }
    n_bytes = (size_t)(n[0] * n[1] * n[2]) * VOXEL_BYTES;
    data = calloc(1, n_bytes);
    if (data == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a grid");
    }
    for (size_t i = 0; i < rows->n; i++) {
        struct row row = read_row(rows, i);
        int64_t cell[3];
        uint8_t *voxel;

        cell_of(reply, &row, cell);
        voxel = data + (((cell[2] - low[2]) * n[1] + cell[1] - low[1]) * n[0] + cell[0] -
                        low[0]) *
                           VOXEL_BYTES;
        memcpy(voxel, row.rgb, sizeof row.rgb);
        voxel[3] = 255;
    }
    vxd_fox_pose(text, 3, reply->origin->x + (double)low[0] * side,
                 reply->origin->y + (double)low[1] * side,
                 reply->origin->z + (double)low[2] * side);
    vxd_fox_fixed32(text, 4, (uint32_t)n[1]);
    vxd_fox_fixed32(text, 5, (uint32_t)n[0]);
    vxd_fox_vector(text, 6, side, side, side);
    vxd_fox_fixed32(text, 7, (uint32_t)(n[0] * n[1] * VOXEL_BYTES));
    vxd_fox_fixed32(text, 8, (uint32_t)(n[0] * VOXEL_BYTES));
    vxd_fox_fixed32(text, 9, VOXEL_BYTES);
    vxd_fox_packed_colour(text, 10, 0);
    vxd_fox_bytes(text, 11, data, n_bytes);
    free(data);
    return VXD_OK;
}

enum vxd_status vxd_fox_scene_message(enum vxd_foxglove_schema schema,
                                      const Voxeld__V1__SceneExportResponse *reply,
                                      const char *name, int64_t stamp_ns,
                                      size_t max_bytes, struct vxd_text *text, bool *fits,
                                      struct vxd_err *err)
{
    struct rows rows;
    enum vxd_status status;

    VXD_TRY(open_rows(&reply->ply, &rows, err));
    if (reply->origin == NULL || !(reply->cell_size_m > 0)) {
        VXD_TRY(vxd_fail(err, VXD_INTERNAL, NULL, "the export says no place"));
    }
    *fits = reply->n_cells <= vxd_fox_scene_limit(schema, max_bytes) &&
            rows.n == reply->n_cells;
    if (!*fits) {
        goto out;
    }
    if (schema == VXD_FOXGLOVE_SCENE_UPDATE) {
        write_cubes(reply, &rows, name, stamp_ns, text);
        goto out;
    }
    vxd_fox_time(text, 1, stamp_ns);
    append_frame(text, reply->frame_id);
    if (schema == VXD_FOXGLOVE_VOXEL_GRID) {
        VXD_TRY(write_voxels(reply, &rows, max_bytes, text, fits, err));
    } else {
        write_points(reply, &rows, text);
    }
out:
    return status;
}

/* --- costmaps ------------------------------------------------------------------------------- */

/* The colours that nav2's users see in RViz: free is clear, costs go from blue to red, cyan where
 * the robot would touch, magenta in an obstacle, grey-green where nothing is known. */
static void colour_cost(uint8_t cost, uint8_t out[4])
{
    static const uint8_t inscribed[4] = {0, 255, 255, 255};
    static const uint8_t lethal[4] = {255, 0, 255, 255};
    static const uint8_t unknown[4] = {112, 137, 134, 255};
    const uint8_t between[4] = {cost, 0, (uint8_t)(255 - cost), 255};
    static const uint8_t clear[4] = {0, 0, 0, 0};
    const uint8_t *colour = cost == 0     ? clear
                            : cost < 253  ? between
                            : cost == 253 ? inscribed
                            : cost == 254 ? lethal
                                          : unknown;

    memcpy(out, colour, 4);
}

/* Of k x k cells the highest cost; unknown where none is known. */
static uint8_t highest_cost(const uint8_t *costs, uint32_t n_x, uint32_t n_y, uint32_t k,
                            uint32_t x, uint32_t y)
{
    uint8_t highest = 0;
    bool is_known = false;

    for (uint32_t j = y * k; j < (y + 1) * k && j < n_y; j++) {
        for (uint32_t i = x * k; i < (x + 1) * k && i < n_x; i++) {
            uint8_t cost = costs[(size_t)j * n_x + i];

            if (cost != 255) {
                is_known = true;
                highest = cost > highest ? cost : highest;
            }
        }
    }
    return is_known ? highest : 255;
}

enum vxd_status vxd_fox_costmap_message(const Voxeld__V1__SceneGridResponse *reply,
                                        int64_t stamp_ns, size_t max_bytes,
                                        struct vxd_text *text, struct vxd_err *err)
{
    uint32_t k = 1;
    size_t n_x, n_y, n_bytes, at;
    uint8_t *data;

    if (reply->cells == NULL || reply->origin == NULL ||
        reply->cells->data.len != (size_t)reply->n_x * reply->n_y) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "the costmap has no cells");
    }
    do {
        n_x = ((size_t)reply->n_x + k - 1) / k;
        n_y = ((size_t)reply->n_y + k - 1) / k;
        n_bytes = n_x * n_y * COST_BYTES;
        k *= 2;
    } while (n_bytes > max_bytes);
    k /= 2;
    data = malloc(n_bytes > 0 ? n_bytes : 1);
    if (data == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a costmap");
    }
    for (size_t i = 0; i < n_x * n_y; i++) {
        uint8_t cost = highest_cost(reply->cells->data.data, reply->n_x, reply->n_y, k,
                                    (uint32_t)(i % n_x), (uint32_t)(i / n_x));

        data[i * COST_BYTES] = cost;
        colour_cost(cost, data + i * COST_BYTES + 1);
    }
    vxd_fox_time(text, 1, stamp_ns);
    append_frame(text, reply->frame_id);
    vxd_fox_pose(text, 3, reply->origin->x, reply->origin->y, reply->origin->z);
    vxd_fox_fixed32(text, 4, (uint32_t)n_x);
    at = vxd_fox_open(text, 5);
    vxd_fox_double(text, 1, reply->cell_size_m * k);
    vxd_fox_double(text, 2, reply->cell_size_m * k);
    vxd_fox_close(text, at);
    vxd_fox_fixed32(text, 6, (uint32_t)(n_x * COST_BYTES));
    vxd_fox_fixed32(text, 7, COST_BYTES);
    vxd_fox_packed_field(text, 8, "cost", 0, VXD_FOX_UINT8);
    vxd_fox_packed_colour(text, 8, 1);
    vxd_fox_bytes(text, 9, data, n_bytes);
    free(data);
    return VXD_OK;
}
