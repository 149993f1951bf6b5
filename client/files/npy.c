// SPDX-License-Identifier: Apache-2.0
/* Reads NumPy's .npy.
 *
 *   0   6  "\x93NUMPY"
 *   6   2  major (1, 2 or 3), minor
 *   8   2  length of the header, little-endian; 4 bytes from version 2 on
 *          header: a Python dictionary as text, padded with blanks, for example
 *          {'descr': '<f4', 'fortran_order': False, 'shape': (198130, 3), }
 *          {'descr': [('x', '<f4'), ('ring', '<u2'), ('', '|V2')], ...}
 *          then the elements, row-major unless fortran_order
 *
 * A plain N x C array names its columns x, y, z, intensity, c4, c5, ...; records keep their
 * names. Unnamed and void fields are padding, fields of several elements are skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/files.h"
#include "proto/base/number.h"
#include "client/files/reader.h"

enum {
    PREFIX_BYTES = 10,
    MIN_COLUMNS = 3,
    MAX_STEP = 65535,
    MAX_AXES = 8
};

struct npy_type {
    enum vxd_dtype dtype; /* VXD_DTYPE_UNSPECIFIED: void */
    size_t n_bytes;
    bool big_endian;
};

struct npy_header {
    struct vxd_cloud_file *file; /* gets the fields of records */
    bool has_descr;
    bool has_order;
    bool has_shape;
    bool is_records;
    bool any_big;
    bool any_little;
    bool fortran_order;
    struct npy_type type; /* of plain arrays */
    size_t record_bytes;
    size_t n_axes;
    size_t shape[MAX_AXES];
    size_t data_at; /* first byte of the elements */
};

/* A cursor in the header's text. */
struct scanner {
    const char *text;
    size_t n;
    size_t at;
    size_t base; /* of text in the file, for messages */
};

static enum vxd_status bad_header(const struct scanner *s, const char *expected,
                                  struct vxd_err *err)
{
    return VXD_FILE_BAD(err, "npy: byte %zu is not %s", s->base + s->at, expected);
}

static void skip_blanks(struct scanner *s)
{
    while (s->at < s->n && (s->text[s->at] == ' ' || s->text[s->at] == '\n')) {
        s->at++;
    }
}

/* Skips blanks, then takes the character c if it comes next. */
static bool take(struct scanner *s, char c)
{
    skip_blanks(s);
    if (s->at == s->n || s->text[s->at] != c) {
        return false;
    }
    s->at++;
    return true;
}

/* 'text' or "text"; without escapes, which no field name needs. */
static bool take_string(struct scanner *s, const char **string, size_t *n)
{
    char quote = '\'';

    if (!take(s, '\'')) {
        if (!take(s, '"')) {
            return false;
        }
        quote = '"';
    }
    *string = s->text + s->at;
    for (*n = 0; s->at < s->n && s->text[s->at] != quote; s->at++, (*n)++) {
        if (s->text[s->at] == '\\' || s->text[s->at] == '\n') {
            return false;
        }
    }
    return take(s, quote);
}

static bool take_word(struct scanner *s, const char *word)
{
    size_t n = strlen(word);

    skip_blanks(s);
    if (s->n - s->at < n || memcmp(s->text + s->at, word, n) != 0) {
        return false;
    }
    s->at += n;
    return true;
}

static bool take_size(struct scanner *s, size_t *out)
{
    uint64_t value;
    size_t begin;

    skip_blanks(s);
    begin = s->at;
    while (s->at < s->n && s->text[s->at] >= '0' && s->text[s->at] <= '9') {
        s->at++;
    }
    if (!vxd_number_uint64(s->text + begin, s->at - begin, &value) || value > SIZE_MAX) {
        return false;
    }
    *out = (size_t)value;
    return true;
}

/* (), (n,), (n, m) */
static bool take_shape(struct scanner *s, size_t *shape, size_t *n_axes)
{
    *n_axes = 0;
    if (!take(s, '(')) {
        return false;
    }
    while (!take(s, ')')) {
        if (*n_axes == MAX_AXES || !take_size(s, &shape[*n_axes])) {
            return false;
        }
        (*n_axes)++;
        if (!take(s, ',')) {
            return take(s, ')');
        }
    }
    return true;
}

/* "<f4", ">i2", "|u1", "=f8", "|V12" */
static enum vxd_status parse_type(const char *text, size_t n, struct npy_type *out,
                                  struct vxd_err *err)
{
    static const struct {
        const char *name;
        enum vxd_dtype dtype;
    } types[] = {
        {"f2", VXD_FLOAT16}, {"f4", VXD_FLOAT32}, {"f8", VXD_FLOAT64}, {"i1", VXD_INT8},
        {"i2", VXD_INT16},   {"i4", VXD_INT32},   {"i8", VXD_INT64},   {"u1", VXD_UINT8},
        {"u2", VXD_UINT16},  {"u4", VXD_UINT32},  {"u8", VXD_UINT64},
    };
    uint64_t n_void;

    memset(out, 0, sizeof *out);
    if (n < 3 || (text[0] != '<' && text[0] != '>' && text[0] != '|' && text[0] != '=')) {
        return VXD_FILE_BAD(err, "npy: element type \"%.*s\" is not supported",
                            (int)(n < 40 ? n : 40), text);
    }
    out->big_endian = text[0] == '>';
    if (text[1] == 'V' && vxd_number_uint64(text + 2, n - 2, &n_void) && n_void > 0 &&
        n_void <= MAX_STEP) {
        out->n_bytes = (size_t)n_void;
        return VXD_OK;
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (vxd_word_is(text + 1, n - 1, types[i].name)) {
            out->dtype = types[i].dtype;
            out->n_bytes = vxd_dtype_bytes(types[i].dtype);
            return VXD_OK;
        }
    }
    return VXD_FILE_BAD(err,
                        "npy: element type \"%.*s\" is not supported; known: f2 f4 f8 i1 "
                        "i2 i4 i8 u1 u2 u4 u8",
                        (int)(n < 40 ? n : 40), text);
}

/* Takes one ('name', '<f4') or ('name', '<f4', (3,)) of a record, after its "(". */
static enum vxd_status parse_record_field(struct scanner *s, struct npy_header *h,
                                          struct vxd_err *err)
{
    const char *name;
    const char *type_text;
    size_t n_name;
    size_t n_type;
    size_t shape[MAX_AXES];
    size_t n_axes = 0;
    size_t n_elements = 1;
    bool closed;
    struct npy_type type;
    enum vxd_status status;

    if (!take_string(s, &name, &n_name) || !take(s, ',') ||
        !take_string(s, &type_text, &n_type)) {
        return bad_header(s, "a field ('name', 'type') without title or nesting", err);
    }
    closed = take(s, ')');
    if (!closed && take(s, ',')) {
        closed = take(s, ')') || (take_shape(s, shape, &n_axes) && take(s, ')'));
    }
    if (!closed) {
        return bad_header(s, "a field's shape or end", err);
    }
    VXD_TRY(parse_type(type_text, n_type, &type, err));
    for (size_t i = 0; i < n_axes; i++) {
        if (!vxd_size_mul(n_elements, shape[i], &n_elements)) {
            return bad_header(s, "a field's shape of sane size", err);
        }
    }
    if (n_elements > MAX_STEP || h->record_bytes + n_elements * type.n_bytes > MAX_STEP) {
        return VXD_FILE_BAD(err, "npy: a record has more than %d bytes", MAX_STEP);
    }
    if (n_name > 0 && n_elements == 1 && type.dtype != VXD_DTYPE_UNSPECIFIED) {
        VXD_TRY(
            vxd_file_add_field(h->file, name, n_name, h->record_bytes, type.dtype, err));
        h->any_big |= type.big_endian && type.n_bytes > 1;
        h->any_little |= !type.big_endian && type.n_bytes > 1;
    }
    h->record_bytes += n_elements * type.n_bytes;
out:
    return status;
}

static enum vxd_status parse_descr(struct scanner *s, struct npy_header *h,
                                   struct vxd_err *err)
{
    const char *text;
    size_t n;
    enum vxd_status status;

    h->has_descr = true;
    if (!take(s, '[')) {
        if (!take_string(s, &text, &n)) {
            return bad_header(s, "an element type", err);
        }
        return parse_type(text, n, &h->type, err);
    }
    h->is_records = true;
    while (!take(s, ']')) {
        if (!take(s, '(')) {
            return bad_header(s, "a field or the end of the fields", err);
        }
        VXD_TRY(parse_record_field(s, h, err));
        if (!take(s, ',')) {
            return take(s, ']') ? VXD_OK : bad_header(s, "\",\" or \"]\"", err);
        }
    }
    status = VXD_OK;
out:
    return status;
}

static enum vxd_status parse_entry(struct scanner *s, struct npy_header *h,
                                   struct vxd_err *err)
{
    const char *key;
    size_t n_key;

    if (!take_string(s, &key, &n_key) || !take(s, ':')) {
        return bad_header(s, "a key", err);
    }
    if (vxd_word_is(key, n_key, "descr") && !h->has_descr) {
        return parse_descr(s, h, err);
    }
    if (vxd_word_is(key, n_key, "fortran_order") && !h->has_order) {
        h->has_order = true;
        h->fortran_order = take_word(s, "True");
        return h->fortran_order || take_word(s, "False")
                   ? VXD_OK
                   : bad_header(s, "True or False", err);
    }
    if (vxd_word_is(key, n_key, "shape") && !h->has_shape) {
        h->has_shape = true;
        return take_shape(s, h->shape, &h->n_axes) ? VXD_OK
                                                   : bad_header(s, "a shape", err);
    }
    return bad_header(
        s, "after one of the keys descr, fortran_order and shape, each once", err);
}

static enum vxd_status parse_dictionary(struct scanner *s, struct npy_header *h,
                                        struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (!take(s, '{')) {
        return bad_header(s, "\"{\"", err);
    }
    while (!take(s, '}')) {
        VXD_TRY(parse_entry(s, h, err));
        if (!take(s, ',')) {
            if (!take(s, '}')) {
                return bad_header(s, "\",\" or \"}\"", err);
            }
            break;
        }
    }
    skip_blanks(s);
    if (s->at != s->n) {
        return bad_header(s, "a blank after the dictionary", err);
    }
    if (!h->has_descr || !h->has_order || !h->has_shape) {
        return VXD_FILE_BAD(err, "npy: the header lacks descr, fortran_order or shape");
    }
out:
    return status;
}

static enum vxd_status parse_header(const uint8_t *bytes, size_t n_bytes,
                                    struct npy_header *h, struct vxd_err *err)
{
    struct scanner s = {0};
    size_t n_header;

    if (n_bytes < PREFIX_BYTES || memcmp(bytes, "\x93NUMPY", 6) != 0) {
        return VXD_FILE_BAD(err, "npy: the file does not begin with \"\\x93NUMPY\"");
    }
    if (bytes[6] < 1 || bytes[6] > 3) {
        return VXD_FILE_BAD(err, "npy: version %u at byte 6; known: 1, 2, 3",
                            (unsigned)bytes[6]);
    }
    n_header = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    s.base = PREFIX_BYTES;
    if (bytes[6] > 1) {
        s.base += 2;
        if (n_bytes < s.base) {
            return VXD_FILE_BAD(err, "npy: the file ends in the header's length");
        }
        n_header |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (n_header > VXD_FILE_MAX_HEADER_BYTES || n_header > n_bytes - s.base) {
        return VXD_FILE_BAD(err,
                            "npy: a header of %zu bytes at byte %zu; the file has %zu",
                            n_header, s.base, n_bytes);
    }
    s.text = (const char *)bytes + s.base;
    s.n = n_header;
    h->data_at = s.base + n_header;
    return parse_dictionary(&s, h, err);
}

static enum vxd_status name_columns(struct npy_header *h, struct vxd_err *err)
{
    static const char *const names[] = {"x", "y", "z", "intensity"};
    enum vxd_status status = VXD_OK;

    if (h->type.dtype == VXD_DTYPE_UNSPECIFIED) {
        return VXD_FILE_BAD(err, "npy: the elements are void");
    }
    if (h->n_axes != 2 || h->shape[1] < MIN_COLUMNS ||
        h->shape[1] > VXD_FILE_MAX_FIELDS) {
        return VXD_FILE_BAD(
            err,
            "npy: the array has %zu axes, the last of %zu; points are N x C "
            "with C from %d to %d",
            h->n_axes, h->n_axes > 0 ? h->shape[h->n_axes - 1] : 0, MIN_COLUMNS,
            VXD_FILE_MAX_FIELDS);
    }
    for (size_t i = 0; i < h->shape[1]; i++) {
        char name[24];

        (void)snprintf(name, sizeof name, "c%zu", i);
        VXD_TRY(vxd_file_add_field(h->file, i < 4 ? names[i] : name,
                                   strlen(i < 4 ? names[i] : name), i * h->type.n_bytes,
                                   h->type.dtype, err));
    }
    h->record_bytes = h->shape[1] * h->type.n_bytes;
    h->any_big = h->type.big_endian && h->type.n_bytes > 1;
    h->any_little = !h->any_big;
    h->file->n_points = h->shape[0];
out:
    return status;
}

static enum vxd_status check_records(struct npy_header *h, struct vxd_err *err)
{
    if (h->n_axes == 0 || h->n_axes > 2 ||
        !vxd_size_mul(h->shape[0], h->n_axes == 2 ? h->shape[1] : 1,
                      &h->file->n_points)) {
        return VXD_FILE_BAD(err, "npy: records in %zu axes; 1 or 2 are points",
                            h->n_axes);
    }
    if (h->any_big && h->any_little) {
        return VXD_FILE_BAD(err, "npy: records mix little-endian and big-endian fields");
    }
    return VXD_OK;
}

/* Fortran order keeps each column together, so this separates the columns again.
 * Records are whole elements: for them the order only permutes the points, and it is
 * kept. */
static enum vxd_status transpose(struct npy_header *h, const uint8_t *data,
                                 size_t *budget_bytes, struct vxd_err *err)
{
    struct vxd_cloud_file *file = h->file;
    size_t width = h->type.n_bytes;
    enum vxd_status status = vxd_file_alloc(
        budget_bytes, file->n_points * file->point_step, &file->owned, err);

    if (status != VXD_OK) {
        return status;
    }
    for (size_t c = 0; c < file->n_fields; c++) {
        for (size_t p = 0; p < file->n_points; p++) {
            memcpy(file->owned + p * file->point_step + c * width,
                   data + (c * file->n_points + p) * width, width);
        }
    }
    if (h->any_big) {
        vxd_file_swap_fields(file, file->owned);
    }
    file->data = file->owned;
    return VXD_OK;
}

enum vxd_status vxd_npy_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                              struct vxd_cloud_file *out, struct vxd_err *err)
{
    struct npy_header h = {.file = out};
    size_t n_expected;
    enum vxd_status status;

    VXD_TRY(parse_header(bytes, n_bytes, &h, err));
    VXD_TRY(h.is_records ? check_records(&h, err) : name_columns(&h, err));
    if (h.record_bytes == 0) {
        return VXD_FILE_BAD(err, "npy: the records are empty");
    }
    out->point_step = (uint32_t)h.record_bytes;
    if (!vxd_size_mul(out->n_points, h.record_bytes, &n_expected) ||
        n_expected != n_bytes - h.data_at) {
        return VXD_FILE_BAD(
            err,
            "npy: %zu points of %zu bytes are announced, %zu bytes follow "
            "the header at byte %zu",
            out->n_points, h.record_bytes, n_bytes - h.data_at, h.data_at);
    }
    out->data = bytes + h.data_at;
    if (h.fortran_order && !h.is_records) {
        return transpose(&h, out->data, &budget_bytes, err);
    }
    if (h.any_big) {
        return vxd_file_own_swapped(out, out->data, &budget_bytes, err);
    }
out:
    return status;
}

bool vxd_npy_is_cloud(const uint8_t *bytes, size_t n_bytes)
{
    struct vxd_cloud_file file = {0};
    struct npy_header h = {.file = &file};
    unsigned axes = 0;

    if (parse_header(bytes, n_bytes, &h, NULL) != VXD_OK) {
        return false;
    }
    if (!h.is_records) {
        return name_columns(&h, NULL) == VXD_OK;
    }
    for (size_t i = 0; i < file.n_fields; i++) {
        if (file.fields[i].name[1] == '\0') {
            axes |= file.fields[i].name[0] == 'x' ? 1U : 0U;
            axes |= file.fields[i].name[0] == 'y' ? 2U : 0U;
            axes |= file.fields[i].name[0] == 'z' ? 4U : 0U;
        }
    }
    return axes == 7 && check_records(&h, NULL) == VXD_OK;
}

enum vxd_status vxd_npy_parse_array(const uint8_t *bytes, size_t n_bytes,
                                    struct vxd_array_file *out, struct vxd_err *err)
{
    struct vxd_cloud_file file = {0};
    struct npy_header h = {.file = &file};
    size_t n_expected;
    enum vxd_status status;

    VXD_TRY(parse_header(bytes, n_bytes, &h, err));
    if (h.is_records || h.type.dtype == VXD_DTYPE_UNSPECIFIED || h.n_axes < 1 ||
        h.n_axes > 2) {
        return VXD_FILE_BAD(err, "npy: no array of numbers with one or two axes");
    }
    if (h.type.big_endian && h.type.n_bytes > 1) {
        return VXD_FILE_BAD(err, "npy: big-endian; save it with astype('<%c%zu')",
                            h.type.dtype == VXD_FLOAT32 || h.type.dtype == VXD_FLOAT64 ||
                                    h.type.dtype == VXD_FLOAT16
                                ? 'f'
                                : 'i',
                            h.type.n_bytes);
    }
    out->n = h.shape[0];
    out->n_elements = h.n_axes == 2 ? h.shape[1] : 1;
    if (h.fortran_order && out->n > 1 && out->n_elements > 1) {
        return VXD_FILE_BAD(err, "npy: in Fortran order; save it by ascontiguousarray");
    }
    if (!vxd_size_mul(out->n, out->n_elements, &n_expected) ||
        !vxd_size_mul(n_expected, h.type.n_bytes, &n_expected) ||
        n_expected != n_bytes - h.data_at) {
        return VXD_FILE_BAD(err,
                            "npy: %zu x %zu elements are announced, %zu bytes follow the "
                            "header at byte %zu",
                            out->n, out->n_elements, n_bytes - h.data_at, h.data_at);
    }
    out->dtype = h.type.dtype;
    out->data = bytes + h.data_at;
out:
    return status;
}
