// SPDX-License-Identifier: Apache-2.0
/* Reads LAS 1.2 to 1.4, point formats 0 to 10; las.h describes the bytes. The points
 * stay where they are: fields are int32 x, y, z with scale and offset, intensity,
 * classification, and gps_time, red, green, blue, nir where the format has them. In
 * formats 0 to 5 the upper three bits of classification are flags (synthetic, key
 * point, withheld), as in the file. Bytes of a point after its format's own are
 * skipped, and so are extended records and waveforms, which lie after the points.
 * Compressed files (LAZ) are refused. */
#include "client/files/las.h"

#include <math.h>
#include <string.h>

#include "client/files/reader.h"

enum {
    RECORD_BYTES = 54,
    RECORD_USER_AT = 2,
    RECORD_ID_AT = 18,
    RECORD_LENGTH_AT = 20,
    LASZIP_RECORD = 22204,
    COMPRESSED = 0xc0 /* bits of the format's byte that LAZ sets */
};

const struct vxd_las_layout vxd_las_layouts[VXD_LAS_N_FORMATS] = {
    {20, 15, 0, 0, 0},    {28, 15, 20, 0, 0},  {26, 15, 0, 20, 0},   {34, 15, 20, 28, 0},
    {57, 15, 20, 0, 0},   {63, 15, 20, 28, 0}, {30, 16, 22, 0, 0},   {36, 16, 22, 30, 0},
    {38, 16, 22, 30, 36}, {59, 16, 22, 0, 0},  {67, 16, 22, 30, 36},
};

struct las {
    const uint8_t *bytes;
    size_t n_bytes;
    size_t header_bytes;
    size_t points_at;
    unsigned minor;
    const struct vxd_las_layout *layout;
};

static unsigned u16(const uint8_t *p)
{
    return (unsigned)p[0] | (unsigned)p[1] << 8;
}

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16;
}

static uint64_t u64(const uint8_t *p)
{
    return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32;
}

static double f64(const uint8_t *p)
{
    double value;

    memcpy(&value, p, sizeof value);
    return value;
}

static enum vxd_status refuse_laz(size_t at, struct vxd_err *err)
{
    return VXD_FILE_BAD(err,
                        "las: byte %zu: the points are compressed (LAZ); decompress the "
                        "file to LAS first, for example with laszip or PDAL",
                        at);
}

static enum vxd_status read_header(struct las *las, struct vxd_err *err)
{
    const uint8_t *p = las->bytes;
    size_t least;

    if (las->n_bytes < 4 || memcmp(p, "LASF", 4) != 0) {
        return VXD_FILE_BAD(err, "las: byte 0: the file does not begin with \"LASF\"");
    }
    if (las->n_bytes < VXD_LAS_HEADER_1_2) {
        return VXD_FILE_BAD(err, "las: the file ends at byte %zu, in its header",
                            las->n_bytes);
    }
    las->minor = p[VXD_LAS_VERSION_AT + 1];
    if (p[VXD_LAS_VERSION_AT] != 1 || las->minor < 2 || las->minor > 4) {
        return VXD_FILE_BAD(err, "las: byte %d: version %u.%u; 1.2 to 1.4 are known",
                            VXD_LAS_VERSION_AT, (unsigned)p[VXD_LAS_VERSION_AT],
                            las->minor);
    }
    least = las->minor == 2   ? VXD_LAS_HEADER_1_2
            : las->minor == 3 ? VXD_LAS_HEADER_1_3
                              : VXD_LAS_HEADER_1_4;
    las->header_bytes = u16(p + VXD_LAS_HEADER_BYTES_AT);
    if (las->header_bytes < least || las->header_bytes > las->n_bytes) {
        return VXD_FILE_BAD(err,
                            "las: byte %d: a header of %zu bytes; version 1.%u has at "
                            "least %zu, the file %zu",
                            VXD_LAS_HEADER_BYTES_AT, las->header_bytes, las->minor, least,
                            las->n_bytes);
    }
    las->points_at = u32(p + VXD_LAS_POINTS_AT);
    if (las->points_at < las->header_bytes || las->points_at > las->n_bytes) {
        return VXD_FILE_BAD(err,
                            "las: byte %d: the points begin at byte %zu, in the header's "
                            "%zu bytes or behind the file's %zu",
                            VXD_LAS_POINTS_AT, las->points_at, las->header_bytes,
                            las->n_bytes);
    }
    return VXD_OK;
}

/* Variable length records hold nothing that is needed, except whether the file is a
 * LAZ. */
static enum vxd_status skip_records(const struct las *las, struct vxd_err *err)
{
    uint32_t n_records = u32(las->bytes + VXD_LAS_N_RECORDS_AT);
    size_t at = las->header_bytes;

    for (uint32_t i = 0; i < n_records; i++) {
        const uint8_t *p = las->bytes + at;
        size_t left = las->points_at - at;

        if (left < RECORD_BYTES || u16(p + RECORD_LENGTH_AT) > left - RECORD_BYTES) {
            return VXD_FILE_BAD(
                err,
                "las: byte %zu: variable length record %u of %u runs into "
                "the points at byte %zu",
                at, (unsigned)i, (unsigned)n_records, las->points_at);
        }
        if (memcmp(p + RECORD_USER_AT, "laszip encoded", 14) == 0 &&
            u16(p + RECORD_ID_AT) == LASZIP_RECORD) {
            return refuse_laz(at, err);
        }
        at += RECORD_BYTES + u16(p + RECORD_LENGTH_AT);
    }
    return VXD_OK;
}

static enum vxd_status read_layout(struct las *las, struct vxd_cloud_file *out,
                                   struct vxd_err *err)
{
    unsigned format = las->bytes[VXD_LAS_FORMAT_AT];
    unsigned step = u16(las->bytes + VXD_LAS_STEP_AT);

    if ((format & COMPRESSED) != 0) {
        return refuse_laz(VXD_LAS_FORMAT_AT, err);
    }
    if (format >= VXD_LAS_N_FORMATS) {
        return VXD_FILE_BAD(err, "las: byte %d: point format %u; 0 to 10 are known",
                            VXD_LAS_FORMAT_AT, format);
    }
    las->layout = &vxd_las_layouts[format];
    if (step < las->layout->n_bytes) {
        return VXD_FILE_BAD(err,
                            "las: byte %d: points of %u bytes; those of format %u have "
                            "at least %u",
                            VXD_LAS_STEP_AT, step, format,
                            (unsigned)las->layout->n_bytes);
    }
    out->point_step = step;
    return VXD_OK;
}

static enum vxd_status read_count(const struct las *las, struct vxd_cloud_file *out,
                                  struct vxd_err *err)
{
    uint64_t legacy = u32(las->bytes + VXD_LAS_LEGACY_COUNT_AT);
    uint64_t count = legacy;
    int count_at = VXD_LAS_LEGACY_COUNT_AT;

    if (las->minor == 4) {
        count_at = VXD_LAS_COUNT_AT;
        count = u64(las->bytes + VXD_LAS_COUNT_AT);
        if (legacy != 0 && legacy != count) {
            return VXD_FILE_BAD(err,
                                "las: byte %d: %llu points, but %llu by the legacy count "
                                "at byte %d",
                                VXD_LAS_COUNT_AT, (unsigned long long)count,
                                (unsigned long long)legacy, VXD_LAS_LEGACY_COUNT_AT);
        }
    }
    if (count > (las->n_bytes - las->points_at) / out->point_step) {
        return VXD_FILE_BAD(err,
                            "las: byte %d: %llu points of %u bytes are announced, %zu "
                            "bytes are left from byte %zu on",
                            count_at, (unsigned long long)count,
                            (unsigned)out->point_step, las->n_bytes - las->points_at,
                            las->points_at);
    }
    out->n_points = (size_t)count;
    return VXD_OK;
}

static enum vxd_status add_axes(const struct las *las, struct vxd_cloud_file *out,
                                struct vxd_err *err)
{
    static const char *const axes[] = {"x", "y", "z"};
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < 3; i++) {
        size_t scale_at = VXD_LAS_SCALE_AT + 8 * i;
        size_t bias_at = VXD_LAS_OFFSET_AT + 8 * i;

        VXD_TRY(vxd_file_add_field(out, axes[i], 1, 4 * i, VXD_INT32, err));
        out->fields[i].scale = f64(las->bytes + scale_at);
        out->fields[i].bias = f64(las->bytes + bias_at);
        if (!isfinite(out->fields[i].scale) || out->fields[i].scale == 0) {
            return VXD_FILE_BAD(err,
                                "las: byte %zu: the scale of %s is zero or no number",
                                scale_at, axes[i]);
        }
        if (!isfinite(out->fields[i].bias)) {
            return VXD_FILE_BAD(err, "las: byte %zu: the offset of %s is no number",
                                bias_at, axes[i]);
        }
    }
out:
    return status;
}

static enum vxd_status add_fields(const struct las *las, struct vxd_cloud_file *out,
                                  struct vxd_err *err)
{
    static const char *const colours[] = {"red", "green", "blue"};
    const struct vxd_las_layout *layout = las->layout;
    enum vxd_status status;

    VXD_TRY(add_axes(las, out, err));
    VXD_TRY(
        vxd_file_add_field(out, "intensity", 9, VXD_LAS_INTENSITY_AT, VXD_UINT16, err));
    VXD_TRY(vxd_file_add_field(out, "classification", 14, layout->classification,
                               VXD_UINT8, err));
    if (layout->gps_time > 0) {
        VXD_TRY(
            vxd_file_add_field(out, "gps_time", 8, layout->gps_time, VXD_FLOAT64, err));
    }
    for (size_t i = 0; layout->rgb > 0 && i < 3; i++) {
        VXD_TRY(vxd_file_add_field(out, colours[i], strlen(colours[i]),
                                   layout->rgb + 2 * i, VXD_UINT16, err));
    }
    if (layout->nir > 0) {
        VXD_TRY(vxd_file_add_field(out, "nir", 3, layout->nir, VXD_UINT16, err));
    }
out:
    return status;
}

enum vxd_status vxd_las_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                              struct vxd_cloud_file *out, struct vxd_err *err)
{
    struct las las = {.bytes = bytes, .n_bytes = n_bytes};
    enum vxd_status status;

    (void)budget_bytes; /* nothing is allocated */
    VXD_TRY(read_header(&las, err));
    VXD_TRY(read_layout(&las, out, err));
    VXD_TRY(skip_records(&las, err));
    VXD_TRY(read_count(&las, out, err));
    VXD_TRY(add_fields(&las, out, err));
    out->data = bytes + las.points_at;
out:
    return status;
}
