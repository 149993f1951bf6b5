// SPDX-License-Identifier: Apache-2.0
/* Grids as files and messages of ROS 2.
 *
 * PGM (P5, trinary; the first row is the highest y):
 *     text    "P5", a newline, width, a blank, height, a newline, "255", a newline
 *     bytes   a row after the other: 0 occupied, 254 free, 205 unknown
 *
 * nav_msgs/OccupancyGrid as CDR (OMG DDS-XTypes, plain CDR version 1). Numbers are little-endian and
 * aligned to their size, counted from behind the encapsulation header:
 *     4 bytes       0 1 0 0: little-endian
 *     header        int32 s, uint32 ns; frame_id: uint32 bytes with the NUL, the bytes
 *     info          map_load_time: int32 s, uint32 ns; float32 resolution; uint32 width, height
 *                   origin: 3 float64 position; 4 float64 orientation x y z w
 *     data          uint32 n, n int8: row-major, x fastest, the low y first */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/image/files_image.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/grid/grid_job.h"

enum {
    MAP_OCCUPIED = 0,
    MAP_FREE = 254,
    MAP_UNKNOWN = 205, /* nav2 reads it as 50 / 255 = 0.196 occupied: above free_thresh */
    HEAD_BYTES = 64,
    YAML_BYTES = 1024,
    CDR_BYTES = 256, /* of all but frame_id and data */
    PNG_LEVEL = 1
};

/* What nav2's Costmap2DPublisher makes of a cost. */
static int8_t occupancy_of_cost(unsigned cost)
{
    switch (cost) {
    case VXD_COST_FREE:
        return 0;
    case VXD_COST_INSCRIBED:
        return 99;
    case VXD_COST_LETHAL:
        return 100;
    case VXD_COST_UNKNOWN:
        return -1;
    default:
        return (int8_t)(1 + 97 * (cost - 1) / 251);
    }
}

static int8_t occupancy_of_state(unsigned state, enum vxd_grid_unknown unknown)
{
    if (state != VXD_SVDAG_UNKNOWN) {
        return state == VXD_SVDAG_OCCUPIED ? 100 : 0;
    }
    return unknown == VXD_GRID_UNKNOWN_LETHAL ? 100
           : unknown == VXD_GRID_UNKNOWN_FREE ? 0
                                              : -1;
}

void vxd_grid_occupancy_table(const struct vxd_grid_picture *picture, int8_t table[256])
{
    for (unsigned i = 0; i < 256; i++) {
        table[i] = picture->is_costs ? occupancy_of_cost(i)
                                     : occupancy_of_state(i, picture->unknown);
    }
}

/* What a trinary map says of each value of a cell. */
static void make_trinary_table(const struct vxd_grid_picture *picture, uint8_t table[256])
{
    int8_t occupancy[256];

    vxd_grid_occupancy_table(picture, occupancy);
    for (unsigned i = 0; i < 256; i++) {
        table[i] = occupancy[i] < 0     ? (uint8_t)MAP_UNKNOWN
                   : occupancy[i] >= 99 ? (uint8_t)MAP_OCCUPIED
                                        : (uint8_t)MAP_FREE;
    }
}

static enum vxd_status take_bytes(struct vxd_request *request, size_t n_bytes,
                                  uint8_t **out, struct vxd_err *err)
{
    void *bytes = NULL;
    enum vxd_status status = vxd_scene_take_host(request, n_bytes, 1, &bytes, err);

    *out = bytes;
    return status;
}

/* Writes cells as bytes, the highest y first. */
static void put_rows(const struct vxd_grid_picture *picture, const uint8_t table[256],
                     uint8_t *out)
{
    for (uint32_t y = picture->n_y; y-- > 0;) {
        const uint8_t *row = picture->cells + (size_t)y * picture->n_x;

        for (uint32_t x = 0; x < picture->n_x; x++) {
            *out++ = table[row[x]];
        }
    }
}

static enum vxd_status write_pgm(struct vxd_request *request,
                                 const struct vxd_grid_picture *picture, uint8_t **bytes,
                                 size_t *n_bytes, struct vxd_err *err)
{
    size_t n = (size_t)picture->n_x * picture->n_y;
    uint8_t table[256];
    char head[HEAD_BYTES];
    size_t n_head;
    enum vxd_status status;

    make_trinary_table(picture, table);
    n_head = (size_t)snprintf(head, sizeof head, "P5\n%u %u\n255\n", picture->n_x,
                              picture->n_y);
    VXD_TRY(take_bytes(request, n_head + n, bytes, err));
    memcpy(*bytes, head, n_head);
    put_rows(picture, table, *bytes + n_head);
    *n_bytes = n_head + n;
out:
    return status;
}

static enum vxd_status write_png(struct vxd_request *request,
                                 const struct vxd_grid_picture *picture, uint8_t **bytes,
                                 size_t *n_bytes, struct vxd_err *err)
{
    size_t n = (size_t)picture->n_x * picture->n_y;
    struct vxd_image image = {picture->n_x, picture->n_y, 1, 1, NULL, n};
    uint8_t *encoded = NULL;
    uint8_t *rows;
    uint8_t table[256];
    enum vxd_status status;

    make_trinary_table(picture, table);
    for (unsigned i = 0; picture->is_costs && i < 256; i++) {
        table[i] = (uint8_t)i;
    }
    VXD_TRY(take_bytes(request, n, &rows, err));
    put_rows(picture, table, rows);
    image.data = rows;
    VXD_TRY(vxd_png_encode(&image, PNG_LEVEL, &encoded, n_bytes, err));
    VXD_TRY(take_bytes(request, *n_bytes, bytes, err));
    memcpy(*bytes, encoded, *n_bytes);
out:
    free(encoded);
    return status;
}

/* The shortest text that reads back as the same number. */
static void print_number(char *out, size_t n_bytes, double number)
{
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out, n_bytes, "%.*g", digits, number);
        if (strtod(out, NULL) == number) {
            return;
        }
    }
}

static enum vxd_status write_yaml(struct vxd_request *request,
                                  const struct vxd_grid_picture *picture, uint8_t **bytes,
                                  size_t *n_bytes, struct vxd_err *err)
{
    char numbers[3][32];
    uint8_t *text;
    enum vxd_status status;

    print_number(numbers[0], sizeof numbers[0], picture->cell_m);
    print_number(numbers[1], sizeof numbers[1], picture->origin_m[0]);
    print_number(numbers[2], sizeof numbers[2], picture->origin_m[1]);
    VXD_TRY(take_bytes(request, YAML_BYTES, &text, err));
    *n_bytes = (size_t)snprintf((char *)text, YAML_BYTES,
                                "image: %s\n"
                                "mode: trinary\n"
                                "resolution: %s\n"
                                "origin: [%s, %s, 0]\n"
                                "negate: 0\n"
                                "occupied_thresh: 0.65\n"
                                "free_thresh: 0.19\n",
                                picture->image, numbers[0], numbers[1], numbers[2]);
    *bytes = text;
out:
    return status;
}

/* A CDR message that is being written. Every number of it is little-endian, as this machine's. */
struct cdr {
    uint8_t *bytes;
    size_t n; /* behind the encapsulation header */
};

static void put(struct cdr *cdr, const void *value, size_t n_bytes, size_t alignment)
{
    while (cdr->n % alignment != 0) {
        cdr->bytes[4 + cdr->n++] = 0;
    }
    memcpy(cdr->bytes + 4 + cdr->n, value, n_bytes);
    cdr->n += n_bytes;
}

static void put_u32(struct cdr *cdr, uint32_t value)
{
    put(cdr, &value, sizeof value, sizeof value);
}

static void put_double(struct cdr *cdr, double value)
{
    put(cdr, &value, sizeof value, sizeof value);
}

static void put_time(struct cdr *cdr, int64_t ns)
{
    int64_t rest = ns % 1000000000;
    int64_t s = ns / 1000000000 - (rest < 0 ? 1 : 0);

    put_u32(cdr, (uint32_t)(int32_t)s);
    put_u32(cdr, (uint32_t)(rest < 0 ? rest + 1000000000 : rest));
}

static enum vxd_status write_occupancy(struct vxd_request *request,
                                       const struct vxd_grid_picture *picture,
                                       uint8_t **bytes, size_t *n_bytes,
                                       struct vxd_err *err)
{
    static const uint8_t encapsulation[4] = {0, 1, 0, 0};
    size_t n = (size_t)picture->n_x * picture->n_y;
    size_t n_frame = strlen(picture->frame_id) + 1;
    float cell_m = (float)picture->cell_m;
    int8_t table[256];
    struct cdr cdr = {NULL, 0};
    enum vxd_status status;

    VXD_TRY(take_bytes(request, CDR_BYTES + n_frame + n, &cdr.bytes, err));
    memcpy(cdr.bytes, encapsulation, sizeof encapsulation);
    put_time(&cdr, picture->stamp_ns);
    put_u32(&cdr, (uint32_t)n_frame);
    put(&cdr, picture->frame_id, n_frame, 1);
    put_time(&cdr, picture->stamp_ns);
    put(&cdr, &cell_m, sizeof cell_m, sizeof cell_m);
    put_u32(&cdr, picture->n_x);
    put_u32(&cdr, picture->n_y);
    for (int axis = 0; axis < 3; axis++) {
        put_double(&cdr, axis < 2 ? picture->origin_m[axis] : 0);
    }
    for (int i = 0; i < 4; i++) {
        put_double(&cdr, i == 3 ? 1 : 0);
    }
    put_u32(&cdr, (uint32_t)n);
    vxd_grid_occupancy_table(picture, table);
    for (size_t i = 0; i < n; i++) {
        cdr.bytes[4 + cdr.n + i] = (uint8_t)table[picture->cells[i]];
    }
    *bytes = cdr.bytes;
    *n_bytes = 4 + cdr.n + n;
out:
    return status;
}

enum vxd_status vxd_grid_write(struct vxd_request *request, Voxeld__V1__GridFormat format,
                               const struct vxd_grid_picture *picture, uint8_t **bytes,
                               size_t *n_bytes, struct vxd_err *err)
{
    switch (format) {
    case VOXELD__V1__GRID_FORMAT__GRID_PNG:
        return write_png(request, picture, bytes, n_bytes, err);
    case VOXELD__V1__GRID_FORMAT__GRID_PGM:
        return write_pgm(request, picture, bytes, n_bytes, err);
    case VOXELD__V1__GRID_FORMAT__GRID_YAML:
        return write_yaml(request, picture, bytes, n_bytes, err);
    case VOXELD__V1__GRID_FORMAT__GRID_OCCUPANCY:
        return write_occupancy(request, picture, bytes, n_bytes, err);
    default:
        return vxd_fail(err, VXD_INTERNAL, "format", "is %d", (int)format);
    }
}
