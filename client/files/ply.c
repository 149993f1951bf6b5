// SPDX-License-Identifier: Apache-2.0
/* PLY.
 *
 *   ply
 *   format ascii 1.0 | binary_little_endian 1.0 | binary_big_endian 1.0
 *   comment ... / obj_info ...
 *   element NAME COUNT         followed by its properties:
 *   property TYPE NAME
 *   property list COUNT_TYPE TYPE NAME
 *   end_header
 *
 * then the elements' records one after the other, in the order of the header. The points
 * are the element "vertex"; elements before it are skipped, and those after it are not read. */
#include <string.h>

#include "proto/base/number.h"
#include "client/files/reader.h"

enum {
    MAX_ELEMENTS = 16,
    MAX_PROPERTIES = 64
};

enum encoding {
    ASCII,
    LITTLE,
    BIG
};

struct property {
    enum vxd_dtype dtype;
    enum vxd_dtype count_dtype; /* of a list; VXD_DTYPE_UNSPECIFIED: no list */
};

struct element {
    uint64_t n;
    size_t n_properties;
    bool has_list;
    size_t record_bytes; /* without lists */
    struct property properties[MAX_PROPERTIES];
};

struct ply {
    struct vxd_text_cursor cursor;
    enum encoding encoding;
    bool has_format;
    size_t n_elements;
    size_t vertex; /* index of the element, n_elements while there is none */
    struct element elements[MAX_ELEMENTS];
};

static bool parse_type(const char *word, size_t n, enum vxd_dtype *out)
{
    static const struct {
        const char *name;
        enum vxd_dtype dtype;
    } types[] = {
        {"char", VXD_INT8},       {"int8", VXD_INT8},       {"uchar", VXD_UINT8},
        {"uint8", VXD_UINT8},     {"short", VXD_INT16},     {"int16", VXD_INT16},
        {"ushort", VXD_UINT16},   {"uint16", VXD_UINT16},   {"int", VXD_INT32},
        {"int32", VXD_INT32},     {"uint", VXD_UINT32},     {"uint32", VXD_UINT32},
        {"float", VXD_FLOAT32},   {"float32", VXD_FLOAT32}, {"double", VXD_FLOAT64},
        {"float64", VXD_FLOAT64},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (vxd_word_is(word, n, types[i].name)) {
            *out = types[i].dtype;
            return true;
        }
    }
    return false;
}

static enum vxd_status bad_line(const struct ply *ply, const char *why,
                                struct vxd_err *err)
{
    return VXD_FILE_BAD(err, "ply: line %zu: %s", ply->cursor.line - 1, why);
}

static enum vxd_status read_format(struct ply *ply, const char *line, size_t n,
                                   struct vxd_err *err)
{
    const char *word;
    size_t n_word;

    (void)vxd_line_word(&line, &n, &word, &n_word);
    if (vxd_word_is(word, n_word, "ascii")) {
        ply->encoding = ASCII;
    } else if (vxd_word_is(word, n_word, "binary_little_endian")) {
        ply->encoding = LITTLE;
    } else if (vxd_word_is(word, n_word, "binary_big_endian")) {
        ply->encoding = BIG;
    } else {
        return bad_line(ply, "the format is not ascii or binary_{little,big}_endian",
                        err);
    }
    (void)vxd_line_word(&line, &n, &word, &n_word);
    if (!vxd_word_is(word, n_word, "1.0") || ply->has_format) {
        return bad_line(ply, "not version 1.0, or a second format", err);
    }
    ply->has_format = true;
    return VXD_OK;
}

static enum vxd_status read_element(struct ply *ply, const char *line, size_t n,
                                    struct vxd_err *err)
{
    struct element *element;
    const char *name;
    const char *count;
    size_t n_name;
    size_t n_count;

    if (ply->n_elements == MAX_ELEMENTS) {
        return bad_line(ply, "more than 16 elements", err);
    }
    element = &ply->elements[ply->n_elements];
    if (!vxd_line_word(&line, &n, &name, &n_name) ||
        !vxd_line_word(&line, &n, &count, &n_count) ||
        !vxd_number_uint64(count, n_count, &element->n)) {
        return bad_line(ply, "not \"element NAME COUNT\"", err);
    }
    if (vxd_word_is(name, n_name, "vertex")) {
        if (ply->vertex < ply->n_elements) {
            return bad_line(ply, "a second element vertex", err);
        }
        ply->vertex = ply->n_elements;
    } else if (ply->vertex == ply->n_elements) {
        ply->vertex++; /* no vertices yet */
    }
    ply->n_elements++;
    return VXD_OK;
}

static enum vxd_status read_property(struct ply *ply, const char *line, size_t n,
                                     struct vxd_cloud_file *out, struct vxd_err *err)
{
    struct element *element;
    struct property property = {0};
    const char *word;
    size_t n_word;
    bool is_vertex;

    if (ply->n_elements == 0) {
        return bad_line(ply, "a property before the first element", err);
    }
    element = &ply->elements[ply->n_elements - 1];
    is_vertex = ply->vertex == ply->n_elements - 1;
    (void)vxd_line_word(&line, &n, &word, &n_word);
    if (vxd_word_is(word, n_word, "list")) {
        if (is_vertex) {
            return bad_line(ply, "lists in the element vertex are not supported", err);
        }
        (void)vxd_line_word(&line, &n, &word, &n_word);
        if (!parse_type(word, n_word, &property.count_dtype) ||
            property.count_dtype == VXD_FLOAT32 || property.count_dtype == VXD_FLOAT64) {
            return bad_line(ply, "the type of the list's count is not known", err);
        }
        element->has_list = true;
        (void)vxd_line_word(&line, &n, &word, &n_word);
    }
    if (!parse_type(word, n_word, &property.dtype)) {
        return bad_line(ply, "the property's type is not known", err);
    }
    if (!vxd_line_word(&line, &n, &word, &n_word)) {
        return bad_line(ply, "the property has no name", err);
    }
    if (element->n_properties == MAX_PROPERTIES) {
        return bad_line(ply, "more than 64 properties", err);
    }
    element->properties[element->n_properties++] = property;
    if (is_vertex) {
        enum vxd_status status = vxd_file_add_field(
            out, word, n_word, element->record_bytes, property.dtype, err);

        if (status != VXD_OK) {
            return status;
        }
    }
    element->record_bytes += vxd_dtype_bytes(property.dtype);
    return VXD_OK;
}

static enum vxd_status read_header(struct ply *ply, struct vxd_cloud_file *out,
                                   struct vxd_err *err)
{
    enum vxd_status status;

    for (;;) {
        const char *line;
        const char *word;
        size_t n;
        size_t n_word;
        bool first = ply->cursor.at == 0;

        if (ply->cursor.at > VXD_FILE_MAX_HEADER_BYTES ||
            !vxd_cursor_line(&ply->cursor, &line, &n)) {
            return VXD_FILE_BAD(err, "ply: line %zu: no end_header", ply->cursor.line);
        }
        (void)vxd_line_word(&line, &n, &word, &n_word);
        if (first) {
            if (!vxd_word_is(word, n_word, "ply")) {
                return bad_line(ply, "the file does not begin with \"ply\"", err);
            }
        } else if (vxd_word_is(word, n_word, "format")) {
            VXD_TRY(read_format(ply, line, n, err));
        } else if (vxd_word_is(word, n_word, "element")) {
            VXD_TRY(read_element(ply, line, n, err));
        } else if (vxd_word_is(word, n_word, "property")) {
            VXD_TRY(read_property(ply, line, n, out, err));
        } else if (vxd_word_is(word, n_word, "end_header")) {
            break;
        } else if (n_word > 0 && !vxd_word_is(word, n_word, "comment") &&
                   !vxd_word_is(word, n_word, "obj_info")) {
            return bad_line(ply, "no keyword of a PLY header", err);
        }
    }
    if (!ply->has_format || ply->vertex == ply->n_elements) {
        return VXD_FILE_BAD(err, "ply: the header lacks a format or the element vertex");
    }
    status = VXD_OK;
out:
    return status;
}

/* Reads a list's count of type `dtype` at p. A negative one becomes huge. */
static uint64_t binary_count(const uint8_t *p, enum vxd_dtype dtype, bool big)
{
    size_t n_bytes = vxd_dtype_bytes(dtype);
    bool is_signed = dtype == VXD_INT8 || dtype == VXD_INT16 || dtype == VXD_INT32;
    uint64_t value = 0;

    for (size_t i = 0; i < n_bytes; i++) {
        value |= (uint64_t)p[big ? n_bytes - 1 - i : i] << (8 * i);
    }
    if (is_signed && n_bytes > 0 && value >> (8 * n_bytes - 1) != 0) {
        return UINT64_MAX;
    }
    return value;
}

/* Moves the cursor past one binary record that has lists. Each list takes at least its
 * count's bytes, so a huge element count runs into the end of the file. */
static bool skip_list_record(struct ply *ply, const struct element *element)
{
    struct vxd_text_cursor *c = &ply->cursor;

    for (size_t i = 0; i < element->n_properties; i++) {
        const struct property *property = &element->properties[i];
        size_t width = vxd_dtype_bytes(property->dtype);
        size_t n_count = vxd_dtype_bytes(property->count_dtype);
        uint64_t count = 1;

        if (property->count_dtype != VXD_DTYPE_UNSPECIFIED) {
            if (n_count > c->n_bytes - c->at) {
                return false;
            }
            count = binary_count(c->bytes + c->at, property->count_dtype,
                                 ply->encoding == BIG);
            c->at += n_count;
        }
        if (width == 0 || count > (c->n_bytes - c->at) / width) {
            return false;
        }
        c->at += (size_t)count * width;
    }
    return true;
}

static bool skip_text_record(struct ply *ply, const struct element *element)
{
    const char *token;
    size_t n;

    for (size_t i = 0; i < element->n_properties; i++) {
        uint64_t count = 1;

        if (element->properties[i].count_dtype != VXD_DTYPE_UNSPECIFIED &&
            (!vxd_cursor_token(&ply->cursor, &token, &n) ||
             !vxd_number_uint64(token, n, &count))) {
            return false;
        }
        for (; count > 0; count--) {
            if (!vxd_cursor_token(&ply->cursor, &token, &n)) {
                return false;
            }
        }
    }
    return true;
}

static enum vxd_status skip_element(struct ply *ply, const struct element *element,
                                    struct vxd_err *err)
{
    struct vxd_text_cursor *c = &ply->cursor;

    if (element->record_bytes == 0) { /* no properties */
        return VXD_OK;
    }
    if (ply->encoding != ASCII && !element->has_list) {
        if (element->n > (c->n_bytes - c->at) / element->record_bytes) {
            return VXD_FILE_BAD(err,
                                "ply: the file ends in an element before the vertices");
        }
        c->at += (size_t)element->n * element->record_bytes;
        return VXD_OK;
    }
    for (uint64_t i = 0; i < element->n; i++) {
        if (!(ply->encoding == ASCII ? skip_text_record(ply, element)
                                     : skip_list_record(ply, element))) {
            return VXD_FILE_BAD(
                err, "ply: byte %zu: a broken record in an element before the vertices",
                c->at);
        }
    }
    return VXD_OK;
}

static enum vxd_status read_text_vertices(struct ply *ply, size_t *budget_bytes,
                                          struct vxd_cloud_file *out, struct vxd_err *err)
{
    struct vxd_text_column columns[MAX_PROPERTIES];

    for (size_t i = 0; i < out->n_fields; i++) {
        columns[i] = (struct vxd_text_column){.dtype = out->fields[i].dtype,
                                              .offset = out->fields[i].offset,
                                              .n = 1,
                                              .stored = true};
    }
    return vxd_file_read_text(out, "ply", &ply->cursor, columns, out->n_fields,
                              budget_bytes, err);
}

static enum vxd_status read_vertices(struct ply *ply, size_t *budget_bytes,
                                     struct vxd_cloud_file *out, struct vxd_err *err)
{
    const struct element *vertex = &ply->elements[ply->vertex];
    size_t left = ply->cursor.n_bytes - ply->cursor.at;

    /* vxd_file_read_text has an exact bound for text; here only size_t must not
     * overflow. */
    size_t limit = left;

    if (vertex->record_bytes > 0 && ply->encoding != ASCII) {
        limit = left / vertex->record_bytes;
    }
    if (vertex->record_bytes == 0 || vertex->n > limit) {
        return VXD_FILE_BAD(err,
                            "ply: %llu vertices of %zu bytes are announced, %zu bytes "
                            "follow the header and the elements before",
                            (unsigned long long)vertex->n, vertex->record_bytes, left);
    }
    out->point_step = (uint32_t)vertex->record_bytes;
    out->n_points = (size_t)vertex->n;
    if (ply->encoding == ASCII) {
        return read_text_vertices(ply, budget_bytes, out, err);
    }
    out->data = ply->cursor.bytes + ply->cursor.at;
    if (ply->encoding == BIG) {
        return vxd_file_own_swapped(out, out->data, budget_bytes, err);
    }
    return VXD_OK;
}

enum vxd_status vxd_ply_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                              struct vxd_cloud_file *out, struct vxd_err *err)
{
    struct ply ply;
    enum vxd_status status;

    memset(&ply, 0, sizeof ply);
    ply.cursor.bytes = bytes;
    ply.cursor.n_bytes = n_bytes;
    ply.cursor.line = 1;
    VXD_TRY(read_header(&ply, out, err));
    for (size_t i = 0; i < ply.vertex; i++) {
        VXD_TRY(skip_element(&ply, &ply.elements[i], err));
    }
    VXD_TRY(read_vertices(&ply, &budget_bytes, out, err));
out:
    return status;
}
