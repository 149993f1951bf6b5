// SPDX-License-Identifier: Apache-2.0
#include "client/files/reader.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/number.h"

enum vxd_status vxd_file_add_field(struct vxd_cloud_file *file, const char *name,
                                   size_t n_name, size_t offset, enum vxd_dtype dtype,
                                   struct vxd_err *err)
{
    struct vxd_file_field *field;

    if (file->n_fields == VXD_FILE_MAX_FIELDS) {
        return VXD_FILE_BAD(err, "more than %d fields", VXD_FILE_MAX_FIELDS);
    }
    if (n_name == 0 || n_name >= VXD_FILE_NAME_BYTES) {
        return VXD_FILE_BAD(err,
                            "the name of field %zu has %zu bytes, 1 to %d are allowed",
                            file->n_fields, n_name, VXD_FILE_NAME_BYTES - 1);
    }
    for (size_t i = 0; i < n_name; i++) {
        /* Bytes over 126 are refused, too: a name need not be UTF-8, but a protobuf
         * string must be. */
        if (name[i] < 0x20 || name[i] > 0x7e) {
            return VXD_FILE_BAD(err, "the name of field %zu is not printable ASCII",
                                file->n_fields);
        }
    }
    for (size_t i = 0; i < file->n_fields; i++) {
        if (vxd_word_is(name, n_name, file->fields[i].name)) {
            return VXD_FILE_BAD(err, "two fields are called \"%s\"",
                                file->fields[i].name);
        }
    }
    field = &file->fields[file->n_fields++];
    memcpy(field->name, name, n_name);
    field->name[n_name] = '\0';
    field->offset = (uint32_t)offset;
    field->dtype = dtype;
    field->scale = 1.0;
    field->bias = 0.0;
    return VXD_OK;
}

enum vxd_status vxd_file_alloc(size_t *budget_bytes, size_t n_bytes, uint8_t **out,
                               struct vxd_err *err)
{
    if (n_bytes > *budget_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "file",
                        "the decoded file needs %zu bytes more, %zu are allowed", n_bytes,
                        *budget_bytes);
    }
    *out = malloc(n_bytes > 0 ? n_bytes : 1);
    if (*out == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "file", "no memory for %zu bytes",
                        n_bytes);
    }
    *budget_bytes -= n_bytes;
    return VXD_OK;
}

static void swap_bytes(uint8_t *value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes / 2; i++) {
        uint8_t byte = value[i];

        value[i] = value[n_bytes - 1 - i];
        value[n_bytes - 1 - i] = byte;
    }
}

void vxd_file_swap_fields(const struct vxd_cloud_file *file, uint8_t *records)
{
    for (size_t p = 0; p < file->n_points; p++) {
        for (size_t i = 0; i < file->n_fields; i++) {
            swap_bytes(records + p * file->point_step + file->fields[i].offset,
                       vxd_dtype_bytes(file->fields[i].dtype));
        }
    }
}

enum vxd_status vxd_file_own_swapped(struct vxd_cloud_file *file, const uint8_t *data,
                                     size_t *budget_bytes, struct vxd_err *err)
{
    size_t n_bytes = file->n_points * file->point_step;
    enum vxd_status status = vxd_file_alloc(budget_bytes, n_bytes, &file->owned, err);

    if (status != VXD_OK) {
        return status;
    }
    if (n_bytes > 0) {
        memcpy(file->owned, data, n_bytes);
    }
    vxd_file_swap_fields(file, file->owned);
    file->data = file->owned;
    return VXD_OK;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

bool vxd_cursor_line(struct vxd_text_cursor *cursor, const char **line, size_t *n)
{
    size_t left = cursor->n_bytes - cursor->at;
    size_t limit = left < VXD_FILE_MAX_LINE_BYTES ? left : VXD_FILE_MAX_LINE_BYTES;
    const uint8_t *start = cursor->bytes + cursor->at;
    const uint8_t *end = limit > 0 ? memchr(start, '\n', limit) : NULL;

    if (end == NULL) {
        return false;
    }
    *line = (const char *)start;
    *n = (size_t)(end - start);
    cursor->at += *n + 1;
    cursor->line++;
    if (*n > 0 && start[*n - 1] == '\r') {
        (*n)--;
    }
    return true;
}

bool vxd_cursor_token(struct vxd_text_cursor *cursor, const char **token, size_t *n)
{
    const uint8_t *bytes = cursor->bytes;
    size_t at = cursor->at;

    while (at < cursor->n_bytes && is_blank(bytes[at])) {
        cursor->line += bytes[at] == '\n' ? 1 : 0;
        at++;
    }
    *token = (const char *)(bytes + at);
    cursor->at = at;
    while (at < cursor->n_bytes && !is_blank(bytes[at])) {
        at++;
    }
    *n = at - cursor->at;
    cursor->at = at;
    return *n > 0;
}

bool vxd_line_word(const char **line, size_t *n_line, const char **word, size_t *n_word)
{
    size_t at = 0;
    size_t begin;

    while (at < *n_line && is_blank((uint8_t)(*line)[at])) {
        at++;
    }
    begin = at;
    while (at < *n_line && !is_blank((uint8_t)(*line)[at])) {
        at++;
    }
    *word = *line + begin;
    *n_word = at - begin;
    *line += at;
    *n_line -= at;
    return *n_word > 0;
}

bool vxd_word_is(const char *word, size_t n_word, const char *text)
{
    return strlen(text) == n_word && memcmp(word, text, n_word) == 0;
}

static enum vxd_status read_column(const struct vxd_text_column *column, uint8_t *record,
                                   const char *format, size_t point,
                                   struct vxd_text_cursor *cursor, struct vxd_err *err)
{
    for (size_t k = 0; k < column->n; k++) {
        const char *token;
        size_t n;

        if (!vxd_cursor_token(cursor, &token, &n)) {
            return VXD_FILE_BAD(err, "%s: the file ends at line %zu, in point %zu",
                                format, cursor->line, point);
        }
        if (column->stored &&
            !vxd_number_store(token, n, column->dtype, record + column->offset)) {
            return VXD_FILE_BAD(err,
                                "%s: line %zu: \"%.*s\" is no number of its field's type",
                                format, cursor->line, (int)(n < 40 ? n : 40), token);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_file_read_text(struct vxd_cloud_file *file, const char *format,
                                   struct vxd_text_cursor *cursor,
                                   const struct vxd_text_column *columns,
                                   size_t n_columns, size_t *budget_bytes,
                                   struct vxd_err *err)
{
    size_t left = cursor->n_bytes - cursor->at;
    size_t n_tokens = 0;
    size_t n_bytes;
    enum vxd_status status;

    for (size_t i = 0; i < n_columns; i++) {
        n_tokens += columns[i].n;
    }
    /* A token takes at least a byte, and a blank before the next one. */
    if (n_tokens == 0 || file->n_points > (left / 2 + 1) / n_tokens) {
        return VXD_FILE_BAD(
            err,
            "%s: %zu points of %zu numbers cannot be in the %zu bytes that "
            "follow the header",
            format, file->n_points, n_tokens, left);
    }
    if (!vxd_size_mul(file->n_points, file->point_step, &n_bytes)) {
        return VXD_FILE_BAD(err, "%s: %zu points of %u bytes are too many", format,
                            file->n_points, (unsigned)file->point_step);
    }
    VXD_TRY(vxd_file_alloc(budget_bytes, n_bytes, &file->owned, err));
    memset(file->owned, 0, n_bytes > 0 ? n_bytes : 1);
    file->data = file->owned;
    for (size_t p = 0; p < file->n_points; p++) {
        for (size_t i = 0; i < n_columns; i++) {
            VXD_TRY(read_column(&columns[i], file->owned + p * file->point_step, format,
                                p, cursor, err));
        }
    }
out:
    return status;
}
