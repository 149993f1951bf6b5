// SPDX-License-Identifier: Apache-2.0
/* PCL's PCD, versions 0.6 and 0.7.
 *
 *   # comment
 *   VERSION .7
 *   FIELDS x y z rgb           COLUMNS in older files; "_" is padding
 *   SIZE 4 4 4 4               bytes of one number
 *   TYPE F F F F               F float, I signed, U unsigned
 *   COUNT 1 1 1 1              numbers a field; absent = 1 each
 *   WIDTH 213                  HEIGHT 1, POINTS 213 = WIDTH * HEIGHT
 *   VIEWPOINT 0 0 0 1 0 0 0    where the sensor was; points are not relative to it
 *   DATA ascii | binary | binary_compressed
 *
 * then: text, a point a line; or little-endian records; or uint32 packed size, uint32
 * unpacked size and LZF data, which unpacks to all values of the first field, then all of
 * the second, ... Fields of several numbers (descriptors) are skipped. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/number.h"
#include "client/files/reader.h"

enum {
    /* Most fields of a file, of which at most VXD_FILE_MAX_FIELDS are returned. */
    MAX_FILE_FIELDS = 128,
    MAX_STEP = 65535,
    /* A match of 264 bytes takes 3. */
    LZF_MAX_RATIO = 88
};

enum encoding {
    ASCII,
    BINARY,
    COMPRESSED
};

struct pcd_field {
    const char *name; /* into the file */
    size_t n_name;
    uint64_t size;
    char type;
    uint64_t count;
    enum vxd_dtype dtype; /* VXD_DTYPE_UNSPECIFIED: padding */
};

struct pcd {
    struct vxd_text_cursor cursor;
    size_t n_fields;
    struct pcd_field fields[MAX_FILE_FIELDS];
    size_t n_sizes;
    size_t n_types;
    size_t n_counts;
    bool has_width;
    bool has_points;
    bool has_data;
    uint64_t width;
    uint64_t height;
    uint64_t points;
    enum encoding encoding;
};

static enum vxd_status bad_line(const struct pcd *pcd, const char *why,
                                struct vxd_err *err)
{
    return VXD_FILE_BAD(err, "pcd: line %zu: %s", pcd->cursor.line - 1, why);
}

static enum vxd_status read_names(struct pcd *pcd, const char *line, size_t n,
                                  struct vxd_err *err)
{
    const char *word;
    size_t n_word;

    if (pcd->n_fields > 0) {
        return bad_line(pcd, "a second FIELDS", err);
    }
    while (vxd_line_word(&line, &n, &word, &n_word)) {
        if (pcd->n_fields == MAX_FILE_FIELDS) {
            return bad_line(pcd, "more than 128 fields", err);
        }
        pcd->fields[pcd->n_fields].name = word;
        pcd->fields[pcd->n_fields].n_name = n_word;
        pcd->fields[pcd->n_fields].count = 1;
        pcd->n_fields++;
    }
    return pcd->n_fields > 0 ? VXD_OK : bad_line(pcd, "FIELDS without names", err);
}

/* SIZE, TYPE or COUNT: one word a field. */
static enum vxd_status read_per_field(struct pcd *pcd, char which, const char *line,
                                      size_t n, size_t *n_read, struct vxd_err *err)
{
    const char *word;
    size_t n_word;

    for (*n_read = 0; vxd_line_word(&line, &n, &word, &n_word); (*n_read)++) {
        struct pcd_field *field = &pcd->fields[*n_read];
        bool good = *n_read < pcd->n_fields;

        if (good && which == 'S') {
            good = vxd_number_uint64(word, n_word, &field->size) && field->size > 0 &&
                   field->size <= 8;
        } else if (good && which == 'C') {
            good = vxd_number_uint64(word, n_word, &field->count) && field->count > 0 &&
                   field->count <= MAX_STEP;
        } else if (good) {
            good = n_word == 1 && (word[0] == 'I' || word[0] == 'U' || word[0] == 'F');
            field->type = word[0];
        }
        if (!good) {
            return bad_line(pcd, "not one value for each of FIELDS, or one out of range",
                            err);
        }
    }
    return *n_read == pcd->n_fields ? VXD_OK
                                    : bad_line(pcd, "fewer values than FIELDS", err);
}

static enum vxd_status read_count(struct pcd *pcd, const char *line, size_t n,
                                  uint64_t *out, struct vxd_err *err)
{
    const char *word;
    size_t n_word;

    (void)vxd_line_word(&line, &n, &word, &n_word);
    return vxd_number_uint64(word, n_word, out) ? VXD_OK
                                                : bad_line(pcd, "not a count", err);
}

static enum vxd_status read_encoding(struct pcd *pcd, const char *line, size_t n,
                                     struct vxd_err *err)
{
    const char *word;
    size_t n_word;

    (void)vxd_line_word(&line, &n, &word, &n_word);
    pcd->has_data = true;
    if (vxd_word_is(word, n_word, "ascii")) {
        pcd->encoding = ASCII;
    } else if (vxd_word_is(word, n_word, "binary")) {
        pcd->encoding = BINARY;
    } else if (vxd_word_is(word, n_word, "binary_compressed")) {
        pcd->encoding = COMPRESSED;
    } else {
        return bad_line(pcd, "DATA is not ascii, binary or binary_compressed", err);
    }
    return VXD_OK;
}

static enum vxd_status read_line(struct pcd *pcd, const char *line, size_t n,
                                 struct vxd_err *err)
{
    const char *key;
    size_t n_key;

    if (!vxd_line_word(&line, &n, &key, &n_key) || key[0] == '#') {
        return VXD_OK;
    }
    if (vxd_word_is(key, n_key, "FIELDS") || vxd_word_is(key, n_key, "COLUMNS")) {
        return read_names(pcd, line, n, err);
    }
    if (vxd_word_is(key, n_key, "SIZE")) {
        return read_per_field(pcd, 'S', line, n, &pcd->n_sizes, err);
    }
    if (vxd_word_is(key, n_key, "TYPE")) {
        return read_per_field(pcd, 'T', line, n, &pcd->n_types, err);
    }
    if (vxd_word_is(key, n_key, "COUNT")) {
        return read_per_field(pcd, 'C', line, n, &pcd->n_counts, err);
    }
    if (vxd_word_is(key, n_key, "WIDTH")) {
        pcd->has_width = true;
        return read_count(pcd, line, n, &pcd->width, err);
    }
    if (vxd_word_is(key, n_key, "HEIGHT")) {
        return read_count(pcd, line, n, &pcd->height, err);
    }
    if (vxd_word_is(key, n_key, "POINTS")) {
        pcd->has_points = true;
        return read_count(pcd, line, n, &pcd->points, err);
    }
    if (vxd_word_is(key, n_key, "DATA")) {
        return read_encoding(pcd, line, n, err);
    }
    if (vxd_word_is(key, n_key, "VERSION") || vxd_word_is(key, n_key, "VIEWPOINT")) {
        return VXD_OK;
    }
    return bad_line(pcd, "no keyword of a PCD header", err);
}

static enum vxd_status read_header(struct pcd *pcd, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;
    uint64_t product;

    while (!pcd->has_data) {
        const char *line;
        size_t n;

        if (pcd->cursor.at > VXD_FILE_MAX_HEADER_BYTES ||
            !vxd_cursor_line(&pcd->cursor, &line, &n)) {
            return VXD_FILE_BAD(err, "pcd: line %zu: no DATA line", pcd->cursor.line);
        }
        VXD_TRY(read_line(pcd, line, n, err));
    }
    if (pcd->n_fields == 0 || pcd->n_sizes == 0 || pcd->n_types == 0 ||
        !(pcd->has_points || pcd->has_width)) {
        return VXD_FILE_BAD(err, "pcd: the header lacks FIELDS, SIZE, TYPE or POINTS");
    }
    if (pcd->has_width) {
        if (__builtin_mul_overflow(pcd->width, pcd->height, &product) ||
            (pcd->has_points && product != pcd->points)) {
            return VXD_FILE_BAD(
                err, "pcd: POINTS %llu is not WIDTH %llu times HEIGHT %llu",
                (unsigned long long)pcd->points, (unsigned long long)pcd->width,
                (unsigned long long)pcd->height);
        }
        pcd->points = product;
    }
    if (pcd->points > SIZE_MAX / MAX_STEP) {
        return VXD_FILE_BAD(err, "pcd: %llu points are too many",
                            (unsigned long long)pcd->points);
    }
out:
    return status;
}

static enum vxd_dtype dtype_of(char type, uint64_t size)
{
    switch (size) {
    case 1:
        return type == 'I' ? VXD_INT8 : type == 'U' ? VXD_UINT8 : VXD_DTYPE_UNSPECIFIED;
    case 2:
        return type == 'I' ? VXD_INT16 : type == 'U' ? VXD_UINT16 : VXD_DTYPE_UNSPECIFIED;
    case 4:
        return type == 'I' ? VXD_INT32 : type == 'U' ? VXD_UINT32 : VXD_FLOAT32;
    case 8:
        return type == 'I' ? VXD_INT64 : type == 'U' ? VXD_UINT64 : VXD_FLOAT64;
    default:
        return VXD_DTYPE_UNSPECIFIED;
    }
}

/* Computes the record's layout and names the fields that are returned. */
static enum vxd_status lay_out(struct pcd *pcd, struct vxd_cloud_file *out,
                               struct vxd_err *err)
{
    size_t step = 0;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < pcd->n_fields; i++) {
        struct pcd_field *field = &pcd->fields[i];

        if (!vxd_word_is(field->name, field->n_name, "_") && field->count == 1) {
            field->dtype = dtype_of(field->type, field->size);
            if (field->dtype == VXD_DTYPE_UNSPECIFIED) {
                return VXD_FILE_BAD(err,
                                    "pcd: field %zu has TYPE %c and SIZE %u, which is "
                                    "no number known here",
                                    i, field->type, (unsigned)field->size);
            }
            VXD_TRY(vxd_file_add_field(out, field->name, field->n_name, step,
                                       field->dtype, err));
        }
        step += (size_t)(field->size * field->count);
        if (step > MAX_STEP) {
            return VXD_FILE_BAD(err, "pcd: a point has more than %d bytes", MAX_STEP);
        }
    }
    out->point_step = (uint32_t)step;
    out->n_points = (size_t)pcd->points;
out:
    return status;
}

static enum vxd_status read_ascii(struct pcd *pcd, size_t *budget_bytes,
                                  struct vxd_cloud_file *out, struct vxd_err *err)
{
    struct vxd_text_column columns[MAX_FILE_FIELDS];
    size_t offset = 0;

    for (size_t i = 0; i < pcd->n_fields; i++) {
        const struct pcd_field *field = &pcd->fields[i];

        columns[i] =
            (struct vxd_text_column){.dtype = field->dtype,
                                     .offset = offset,
                                     .n = (size_t)field->count,
                                     .stored = field->dtype != VXD_DTYPE_UNSPECIFIED};
        offset += (size_t)(field->size * field->count);
    }
    return vxd_file_read_text(out, "pcd", &pcd->cursor, columns, pcd->n_fields,
                              budget_bytes, err);
}

static size_t u32_le(const uint8_t *p)
{
    return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

/* Reorders from field after field to record after record. */
static void interleave(const struct pcd *pcd, const uint8_t *fields,
                       const struct vxd_cloud_file *out)
{
    size_t offset = 0;

    for (size_t i = 0; i < pcd->n_fields; i++) {
        size_t n_bytes = (size_t)(pcd->fields[i].size * pcd->fields[i].count);

        for (size_t p = 0; p < out->n_points; p++) {
            memcpy(out->owned + p * out->point_step + offset, fields, n_bytes);
            fields += n_bytes;
        }
        offset += n_bytes;
    }
}

static enum vxd_status read_compressed(const struct pcd *pcd, size_t *budget_bytes,
                                       struct vxd_cloud_file *out, struct vxd_err *err)
{
    const uint8_t *head = pcd->cursor.bytes + pcd->cursor.at;
    size_t left = pcd->cursor.n_bytes - pcd->cursor.at;
    size_t n_bytes = out->n_points * out->point_step;
    size_t n_packed;
    uint8_t *fields = NULL;
    enum vxd_status status;

    if (left < 8) {
        return VXD_FILE_BAD(err,
                            "pcd: the file ends at byte %zu, before the packed sizes",
                            pcd->cursor.n_bytes);
    }
    n_packed = u32_le(head);
    if (n_packed > left - 8 || u32_le(head + 4) != n_bytes ||
        n_bytes / LZF_MAX_RATIO > n_packed) {
        return VXD_FILE_BAD(err,
                            "pcd: %zu packed and %zu unpacked bytes at byte %zu; %zu are "
                            "left and the points take %zu",
                            n_packed, u32_le(head + 4), pcd->cursor.at, left - 8,
                            n_bytes);
    }
    VXD_TRY(vxd_file_alloc(budget_bytes, n_bytes, &fields, err));
    VXD_TRY(vxd_file_alloc(budget_bytes, n_bytes, &out->owned, err));
    if (!vxd_lzf_decompress(head + 8, n_packed, fields, n_bytes)) {
        status = VXD_FILE_BAD(err, "pcd: the LZF data at byte %zu are broken",
                              pcd->cursor.at + 8);
        goto out;
    }
    interleave(pcd, fields, out);
    out->data = out->owned;
out:
    free(fields);
    return status;
}

enum vxd_status vxd_pcd_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                              struct vxd_cloud_file *out, struct vxd_err *err)
{
    struct pcd pcd;
    size_t left;
    enum vxd_status status;

    memset(&pcd, 0, sizeof pcd);
    pcd.cursor.bytes = bytes;
    pcd.cursor.n_bytes = n_bytes;
    pcd.cursor.line = 1;
    pcd.height = 1;
    VXD_TRY(read_header(&pcd, err));
    VXD_TRY(lay_out(&pcd, out, err));
    if (pcd.encoding == ASCII) {
        return read_ascii(&pcd, &budget_bytes, out, err);
    }
    if (pcd.encoding == COMPRESSED) {
        return read_compressed(&pcd, &budget_bytes, out, err);
    }
    left = n_bytes - pcd.cursor.at;
    if (out->point_step == 0 || out->n_points > left / out->point_step) {
        return VXD_FILE_BAD(err,
                            "pcd: %zu points of %u bytes are announced, %zu bytes follow "
                            "the header",
                            out->n_points, (unsigned)out->point_step, left);
    }
    out->data = bytes + pcd.cursor.at;
out:
    return status;
}
