// SPDX-License-Identifier: Apache-2.0
/* Writes LAS; las.h describes the bytes. It writes version 1.2 with the smallest of
 * the formats 0 to 3 that holds the fields, and version 1.4 with format 6, 7 or 8
 * where there is nir, or a classification over 31, which does not fit into the older
 * ones. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "client/files/las.h"
#include "client/files/writer.h"

enum {
    N_COLOURS = 3,
    MAX_POINT_BYTES = 38, /* format 8 */
    MAX_OLD_CLASS = 31,
    WKT = 16 /* the bit of the global encoding that formats from 6 on set */
};

/* A field that LAS keeps in 16 bits. */
struct wide {
    const struct vxd_column *column; /* NULL: zeros */
    double gain;
};

struct las_out {
    const struct vxd_column *axes[3];
    struct wide intensity;
    struct wide colours[N_COLOURS];
    struct wide nir;
    const struct vxd_column *classification;
    const struct vxd_column *gps_time;
    bool raw; /* the axes are int32 with scale and offset already */
    double scale[3];
    double bias[3];
    double low[3];
    double high[3];
    size_t n_points;
    unsigned format;
};

static bool is_float(const struct vxd_column *column)
{
    return column->to == VXD_FLOAT16 || column->to == VXD_BFLOAT16 ||
           column->to == VXD_FLOAT32 || column->to == VXD_FLOAT64;
}

static double highest(const struct vxd_column *column, size_t n_rows)
{
    double high = 0;

    for (size_t row = 0; column != NULL && row < n_rows; row++) {
        double value = vxd_column_double(column, row);

        high = value > high ? value : high;
    }
    return high;
}

/* LAS wants the whole range of 16 bits used: fractions are scaled to it, and so are
 * bytes of a colour. Other values stay as they are. */
static struct wide wide_of(struct vxd_table *table, const char *name, bool is_colour)
{
    struct wide wide = {.column = vxd_table_find(table, name), .gain = 1};

    if (wide.column == NULL) {
        return wide;
    }
    if (is_colour && wide.column->to == VXD_UINT8) {
        wide.gain = 257;
    } else if (is_float(wide.column) && highest(wide.column, table->n_rows) <= 1) {
        wide.gain = UINT16_MAX;
    }
    return wide;
}

static bool position(const struct las_out *las, size_t row, double *p)
{
    for (size_t a = 0; a < 3; a++) {
        p[a] = vxd_column_double(las->axes[a], row);
    }
    return isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]);
}

static void measure(struct las_out *las, size_t n_rows)
{
    for (size_t row = 0; row < n_rows; row++) {
        double p[3];

        if (!position(las, row, p)) {
            continue;
        }
        for (size_t a = 0; a < 3; a++) {
            las->low[a] = las->n_points == 0 || p[a] < las->low[a] ? p[a] : las->low[a];
            las->high[a] =
                las->n_points == 0 || p[a] > las->high[a] ? p[a] : las->high[a];
        }
        las->n_points++;
    }
}

/* Chooses micrometres, or the first power of ten of them by which the extent fits in
 * 31 bits. */
static enum vxd_status choose_scale(struct las_out *las, struct vxd_err *err)
{
    static const double exact[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
    const size_t n_exact = sizeof exact / sizeof exact[0];
    double extent = 0;
    double scale = exact[0];

    for (size_t a = 0; a < 3; a++) {
        las->bias[a] = floor(las->low[a]);
        extent = fmax(extent, las->high[a] - las->bias[a]);
    }
    if (!(extent <= DBL_MAX)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                        "the points lie too far apart for LAS");
    }
    for (size_t i = 1; extent / scale > INT32_MAX; i++) {
        scale = i < n_exact ? exact[i] : scale * 10;
    }
    for (size_t a = 0; a < 3; a++) {
        las->scale[a] = scale;
    }
    return VXD_OK;
}

static enum vxd_status plan_axes(struct las_out *las, struct vxd_table *table,
                                 struct vxd_err *err)
{
    static const char *const names[] = {"x", "y", "z"};

    las->raw = true;
    for (size_t a = 0; a < 3; a++) {
        const struct vxd_column *axis = vxd_table_find(table, names[a]);

        if (axis == NULL) {
            (void)vxd_fail(err, VXD_INVALID_ARGUMENT, "out", "no field \"%s\"", names[a]);
            return VXD_INVALID_ARGUMENT;
        }
        las->axes[a] = axis;
        las->scale[a] = axis->scale;
        las->bias[a] = axis->bias;
        las->raw = las->raw && axis->from == VXD_INT32 && axis->scale != 0;
    }
    measure(las, table->n_rows);
    return las->raw ? VXD_OK : choose_scale(las, err);
}

static enum vxd_status plan(struct las_out *las, struct vxd_table *table,
                            struct vxd_err *err)
{
    static const char *const names[N_COLOURS] = {"red", "green", "blue"};
    bool has_colour = false;
    bool has_nir;
    enum vxd_status status;

    VXD_TRY(plan_axes(las, table, err));
    las->intensity = wide_of(table, "intensity", false);
    las->nir = wide_of(table, "nir", true);
    las->classification = vxd_table_find(table, "classification");
    las->gps_time = vxd_table_find(table, "gps_time");
    for (size_t i = 0; i < N_COLOURS; i++) {
        las->colours[i] = wide_of(table, names[i], true);
        has_colour = has_colour || las->colours[i].column != NULL;
    }
    has_nir = las->nir.column != NULL;
    if (has_nir || highest(las->classification, table->n_rows) > MAX_OLD_CLASS) {
        las->format = has_nir ? 8 : has_colour ? 7 : 6;
    } else {
        las->format = (las->gps_time != NULL ? 1U : 0U) + (has_colour ? 2U : 0U);
    }
    if (las->format <= 3 && las->n_points > UINT32_MAX) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                          "%zu points; LAS 1.2 holds at most 4294967295", las->n_points);
    }
out:
    return status;
}

static void store(uint8_t *out, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        out[i] = (uint8_t)(value >> (8 * i) & 0xff);
    }
}

/* The field is padded with zeros, which are there already. */
static void store_text(uint8_t *out, const char *text)
{
    for (size_t i = 0; text[i] != '\0'; i++) {
        out[i] = (uint8_t)text[i];
    }
}

static void store_double(uint8_t *out, double value)
{
    memcpy(out, &value, sizeof value);
}

static void put_header(struct vxd_sink *sink, const struct las_out *las)
{
    bool is_new = las->format > 3;
    size_t n_header = is_new ? VXD_LAS_HEADER_1_4 : VXD_LAS_HEADER_1_2;
    uint8_t h[VXD_LAS_HEADER_1_4] = "LASF";

    store(h + VXD_LAS_ENCODING_AT, is_new ? WKT : 0, 2);
    h[VXD_LAS_VERSION_AT] = 1;
    h[VXD_LAS_VERSION_AT + 1] = is_new ? 4 : 2;
    store_text(h + VXD_LAS_SYSTEM_AT, "OTHER");
    store_text(h + VXD_LAS_SOFTWARE_AT, "voxelctl");
    store(h + VXD_LAS_HEADER_BYTES_AT, n_header, 2);
    store(h + VXD_LAS_POINTS_AT, n_header, 4);
    h[VXD_LAS_FORMAT_AT] = (uint8_t)las->format;
    store(h + VXD_LAS_STEP_AT, vxd_las_layouts[las->format].n_bytes, 2);
    for (size_t a = 0; a < 3; a++) {
        store_double(h + VXD_LAS_SCALE_AT + 8 * a, las->scale[a]);
        store_double(h + VXD_LAS_OFFSET_AT + 8 * a, las->bias[a]);
        store_double(h + VXD_LAS_BOUNDS_AT + 16 * a, las->high[a]);
        store_double(h + VXD_LAS_BOUNDS_AT + 16 * a + 8, las->low[a]);
    }
    if (is_new) { /* the legacy counts stay zero */
        store(h + VXD_LAS_COUNT_AT, las->n_points, 8);
        store(h + VXD_LAS_RETURNS_AT, las->n_points, 8);
    } else {
        store(h + VXD_LAS_LEGACY_COUNT_AT, las->n_points, 4);
        store(h + VXD_LAS_LEGACY_RETURNS_AT, las->n_points, 4);
    }
    vxd_sink_put(sink, h, n_header);
}

/* Rounds and clamps to 0 .. limit. */
static uint64_t whole(double value, double limit)
{
    return !(value > 0) ? 0 : (uint64_t)(fmin(value, limit) + 0.5);
}

static void store_wide(uint8_t *out, const struct wide *wide, size_t row)
{
    if (wide->column != NULL) {
        double value = vxd_column_double(wide->column, row);

        store(out, whole(value * wide->gain, UINT16_MAX), 2);
    }
}

static void store_position(const struct las_out *las, size_t row, const double *p,
                           uint8_t *out)
{
    for (size_t a = 0; a < 3; a++) {
        int32_t raw;

        if (las->raw) {
            memcpy(&raw, las->axes[a]->data + row * las->axes[a]->stride_bytes,
                   sizeof raw);
        } else {
            raw = (int32_t)fmin(floor((p[a] - las->bias[a]) / las->scale[a] + 0.5),
                                INT32_MAX);
        }
        memcpy(out + 4 * a, &raw, sizeof raw);
    }
}

static void put_point(struct vxd_sink *sink, const struct las_out *las, size_t row,
                      const double *p)
{
    const struct vxd_las_layout *layout = &vxd_las_layouts[las->format];
    uint8_t point[MAX_POINT_BYTES] = {0};

    store_position(las, row, p, point);
    store_wide(point + VXD_LAS_INTENSITY_AT, &las->intensity, row);
    /* Every point is the first return of one: 3 bits each, from format 6 on 4. */
    point[VXD_LAS_RETURN_AT] = las->format > 3 ? 1 | 1 << 4 : 1 | 1 << 3;
    if (las->classification != NULL) {
        point[layout->classification] =
            (uint8_t)whole(vxd_column_double(las->classification, row), UINT8_MAX);
    }
    if (layout->gps_time > 0 && las->gps_time != NULL) {
        store_double(point + layout->gps_time, vxd_column_double(las->gps_time, row));
    }
    for (size_t i = 0; layout->rgb > 0 && i < N_COLOURS; i++) {
        store_wide(point + layout->rgb + 2 * i, &las->colours[i], row);
    }
    if (layout->nir > 0) {
        store_wide(point + layout->nir, &las->nir, row);
    }
    vxd_sink_put(sink, point, layout->n_bytes);
}

enum vxd_status vxd_las_put(struct vxd_sink *sink, struct vxd_table *table,
                            struct vxd_err *err)
{
    struct las_out las = {0};
    enum vxd_status status;

    VXD_TRY(plan(&las, table, err));
    table->n_written = las.n_points;
    put_header(sink, &las);
    for (size_t row = 0; row < table->n_rows; row++) {
        double p[3];

        if (position(&las, row, p)) {
            put_point(sink, &las, row, p);
        }
    }
out:
    return status;
}
