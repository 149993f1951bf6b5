// SPDX-License-Identifier: Apache-2.0
#include "client/files/files.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/number.h"
#include "client/files/reader.h"

enum {
    FIRST_BYTES = 4096
};

/* The rows that have been read so far. */
struct rows {
    uint8_t *bytes;
    size_t used;
    size_t capacity;
};

static bool is_separator(char c)
{
    return c == ',' || c == ';' || c == ' ' || c == '\t';
}

/* Takes the next number of a line; false when there is none. "1,,2" has an empty one. */
static bool next_word(const char **line, size_t *n_line, const char **word,
                      size_t *n_word)
{
    const char *at = *line;
    const char *end = at + *n_line;

    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    if (at == end) {
        return false;
    }
    *word = at;
    while (at < end && !is_separator(*at)) {
        at++;
    }
    *n_word = (size_t)(at - *word);
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    if (at < end && is_separator(*at)) {
        at++;
    }
    *n_line = (size_t)(end - at);
    *line = at;
    return true;
}

static enum vxd_status reserve(struct rows *rows, size_t n_bytes, struct vxd_err *err)
{
    size_t capacity = rows->capacity > 0 ? rows->capacity : FIRST_BYTES;
    uint8_t *grown;

    if (rows->capacity - rows->used >= n_bytes) {
        return VXD_OK;
    }
    if (rows->capacity > 0 && !vxd_size_mul(capacity, 2, &capacity)) {
        capacity = 0;
    }
    grown = capacity > 0 ? realloc(rows->bytes, capacity) : NULL;
    if (grown == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "file", "no memory for %zu bytes",
                        capacity);
    }
    rows->bytes = grown;
    rows->capacity = capacity;
    return VXD_OK;
}

/* Appends the numbers of a line; *n is how many there were. */
static enum vxd_status read_line(struct rows *rows, const char *line, size_t n_line,
                                 size_t line_no, enum vxd_dtype dtype, size_t *n,
                                 struct vxd_err *err)
{
    const size_t n_bytes = vxd_dtype_bytes(dtype);
    const char *word;
    size_t n_word;
    enum vxd_status status = VXD_OK;

    *n = 0;
    while (next_word(&line, &n_line, &word, &n_word)) {
        VXD_TRY(reserve(rows, n_bytes, err));
        if (!vxd_number_store(word, n_word, dtype, rows->bytes + rows->used)) {
            return VXD_FILE_BAD(err,
                                "line %zu: \"%.*s\" is no number of the requested type",
                                line_no, (int)(n_word < 40 ? n_word : 40), word);
        }
        rows->used += n_bytes;
        (*n)++;
    }
out:
    return status;
}

/* Whether the line names columns: it begins with a letter and with no number ("nan" is
 * one). */
static bool is_heading(const char *line, size_t n_line)
{
    const char *word;
    size_t n_word;
    double value;
    char first;

    if (!next_word(&line, &n_line, &word, &n_word) || n_word == 0) {
        return false;
    }
    first = (char)(word[0] | 0x20);
    return ((first >= 'a' && first <= 'z') || word[0] == '"' || word[0] == '_') &&
           !vxd_number_double(word, n_word, &value);
}

/* Takes the next line; the last one may lack a line's end. */
static bool next_line(struct vxd_text_cursor *cursor, const char **line, size_t *n)
{
    if (vxd_cursor_line(cursor, line, n)) {
        return true;
    }
    *line = (const char *)cursor->bytes + cursor->at;
    *n = cursor->n_bytes - cursor->at;
    if (*n == 0 || *n >= VXD_FILE_MAX_LINE_BYTES) {
        return false;
    }
    cursor->at = cursor->n_bytes;
    return true;
}

static enum vxd_status read_rows(struct rows *rows, const uint8_t *bytes, size_t n_bytes,
                                 enum vxd_dtype dtype, struct vxd_array_file *out,
                                 struct vxd_err *err)
{
    struct vxd_text_cursor cursor = {.bytes = bytes, .n_bytes = n_bytes, .line = 1};
    const char *line;
    size_t n_line;
    size_t n;
    bool is_first = true;
    enum vxd_status status = VXD_OK;

    for (;;) {
        size_t line_no = cursor.line;

        if (!next_line(&cursor, &line, &n_line)) {
            break;
        }
        if (n_line == 0 || line[0] == '#' || (is_first && is_heading(line, n_line))) {
            is_first = is_first && (n_line == 0 || line[0] == '#');
            continue;
        }
        is_first = false;
        VXD_TRY(read_line(rows, line, n_line, line_no, dtype, &n, err));
        if (n > 0 && out->n > 0 && n != out->n_elements) {
            return VXD_FILE_BAD(err, "line %zu has %zu numbers, those before it %zu",
                                line_no, n, out->n_elements);
        }
        out->n_elements = n > 0 ? n : out->n_elements;
        out->n += n > 0 ? 1 : 0;
    }
    if (cursor.at < n_bytes) {
        return VXD_FILE_BAD(err, "line %zu is longer than %d bytes", cursor.line,
                            VXD_FILE_MAX_LINE_BYTES);
    }
out:
    return status;
}

enum vxd_status vxd_text_parse_array(const uint8_t *bytes, size_t n_bytes,
                                     enum vxd_dtype dtype, struct vxd_array_file *out,
                                     struct vxd_err *err)
{
    struct rows rows = {0};
    enum vxd_status status;

    *out = (struct vxd_array_file){.dtype = dtype, .n_elements = 1};
    status = read_rows(&rows, bytes, n_bytes, dtype, out, err);
    if (status != VXD_OK) {
        free(rows.bytes);
        *out = (struct vxd_array_file){0};
        return status;
    }
    out->owned = rows.bytes;
    out->data = rows.bytes;
    return VXD_OK;
}

void vxd_array_file_clear(struct vxd_array_file *file)
{
    free(file->owned);
    *file = (struct vxd_array_file){0};
}
