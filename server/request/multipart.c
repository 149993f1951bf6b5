// SPDX-License-Identifier: Apache-2.0
/* Parts of a multipart body. A part begins behind a line "--BOUNDARY", has header lines, an empty
 * line and then its bytes, up to the line break before the next "--BOUNDARY"; a "--" behind that
 * ends the body. Every byte is looked at a bounded number of times, and nothing is copied but
 * names. */
#include "server/request/request_life.h"

#include <string.h>
#include <strings.h>

enum {
    MAX_BOUNDARY = 70, /* RFC 2046, section 5.1.1 */
    MAX_HEAD_BYTES = 2048,
    DELIMITER_BYTES = MAX_BOUNDARY + 4
};

static bool is_boundary_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("'()+_,-./:=? ", c) != NULL);
}

bool vxd_multipart_boundary(const char *content_type, char out[VXD_BOUNDARY_BYTES])
{
    static const char key[] = "boundary=";
    const char *at = strchr(content_type, ';');
    size_t n = 0;

    for (; at != NULL; at = strchr(at, ';')) {
        at += strspn(at, "; \t");
        if (strncasecmp(at, key, sizeof key - 1) == 0) {
            break;
        }
    }
    if (at == NULL) {
        return false;
    }
    at += sizeof key - 1;
    if (*at == '"') {
        n = strcspn(++at, "\"");
        if (at[n] != '"') {
            return false;
        }
    } else {
        n = strcspn(at, "; \t");
    }
    if (n < 1 || n > MAX_BOUNDARY || at[n - 1] == ' ') {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_boundary_char(at[i])) {
            return false;
        }
    }
    memcpy(out, at, n);
    out[n] = '\0';
    return true;
}

/* What is left of a body. */
struct reader {
    const uint8_t *at;
    const uint8_t *end;
};

/* Finds `text` from `at` on; NULL: it is not there. */
static const uint8_t *find(const uint8_t *at, const uint8_t *end, const char *text,
                           size_t n)
{
    while ((size_t)(end - at) >= n) {
        at = memchr(at, text[0], (size_t)(end - at) - n + 1);
        if (at == NULL || memcmp(at, text, n) == 0) {
            return at;
        }
        at++;
    }
    return NULL;
}

/* Reads a quoted value behind key= in the parameters of a header line. */
static bool take_parameter(const char *line, const char *key, char *out, size_t n_out)
{
    size_t n_key = strlen(key);

    for (const char *at = strchr(line, ';'); at != NULL; at = strchr(at, ';')) {
        size_t n;

        at += strspn(at, "; \t");
        if (strncasecmp(at, key, n_key) != 0 || at[n_key] != '=') {
            continue;
        }
        at += n_key + 1;
        n = *at == '"' ? strcspn(at + 1, "\"") : strcspn(at, "; \t");
        at += *at == '"' ? 1 : 0;
        if (n < 1 || n >= n_out) {
            return false;
        }
        memcpy(out, at, n);
        out[n] = '\0';
        return true;
    }
    return false;
}

/* Reads one line of a part's head. */
static enum vxd_status take_line(const char *line, struct vxd_body_part *part,
                                 struct vxd_err *err)
{
    static const char disposition[] = "Content-Disposition:";
    static const char encoding[] = "Content-Transfer-Encoding:";

    if (strncasecmp(line, encoding, sizeof encoding - 1) == 0) {
        const char *value =
            line + sizeof encoding - 1 + strspn(line + sizeof encoding - 1, " \t");

        return strcasecmp(value, "binary") == 0 || strcasecmp(value, "8bit") == 0 ||
                       strcasecmp(value, "7bit") == 0
                   ? VXD_OK
                   : vxd_fail(err, VXD_INVALID_ARGUMENT, "Content-Transfer-Encoding",
                              "\"%.32s\" of a part; binary is right", value);
    }
    if (strncasecmp(line, disposition, sizeof disposition - 1) == 0 &&
        !take_parameter(line, "name", part->name, sizeof part->name)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "Content-Disposition",
                        "of a part: name=\"...\" of 1 to %zu bytes is right",
                        sizeof part->name - 1);
    }
    return VXD_OK;
}

/* Reads a part's head, and goes behind it. */
static enum vxd_status take_head(struct reader *reader, struct vxd_body_part *part,
                                 struct vxd_err *err)
{
    const uint8_t *limit = reader->end - reader->at > MAX_HEAD_BYTES
                               ? reader->at + MAX_HEAD_BYTES
                               : reader->end;
    char line[MAX_HEAD_BYTES + 1];

    part->name[0] = '\0';
    for (;;) {
        const uint8_t *line_end = find(reader->at, limit, "\r\n", 2);
        size_t n = line_end != NULL ? (size_t)(line_end - reader->at) : 0;

        if (line_end == NULL || memchr(reader->at, '\0', n) != NULL) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "body",
                            "a part's head does not end within %d bytes", MAX_HEAD_BYTES);
        }
        memcpy(line, reader->at, n);
        line[n] = '\0';
        reader->at = line_end + 2;
        if (n == 0) {
            break;
        }
        if (take_line(line, part, err) != VXD_OK) {
            return VXD_INVALID_ARGUMENT;
        }
    }
    return part->name[0] != '\0'
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "Content-Disposition",
                          "of a part is missing; form-data with a name is right");
}

/* Goes behind the line of a boundary, which `at` is behind. *is_last where it ends the body. */
static enum vxd_status end_line(struct reader *reader, bool *is_last, struct vxd_err *err)
{
    *is_last = reader->end - reader->at >= 2 && memcmp(reader->at, "--", 2) == 0;
    if (*is_last) {
        return VXD_OK;
    }
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t')) {
        reader->at++;
    }
    if (reader->end - reader->at < 2 || memcmp(reader->at, "\r\n", 2) != 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "body",
                        "a boundary is not the end of its line");
    }
    reader->at += 2;
    return VXD_OK;
}

enum vxd_status vxd_multipart_split(const uint8_t *bytes, size_t n_bytes,
                                    const char *boundary,
                                    struct vxd_body_part parts[VXD_BODY_MAX_PARTS],
                                    size_t *n_parts, struct vxd_err *err)
{
    struct reader reader = {bytes, bytes + n_bytes};
    char delimiter[DELIMITER_BYTES + 1];
    size_t n = (size_t)snprintf(delimiter, sizeof delimiter, "\r\n--%s", boundary);
    const uint8_t *found;
    bool is_last = false;
    enum vxd_status status;

    *n_parts = 0;
    /* The first boundary may begin the body. */
    found = n_bytes >= n - 2 && memcmp(bytes, delimiter + 2, n - 2) == 0
                ? bytes
                : find(reader.at, reader.end, delimiter, n);
    if (found == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "body", "has no part: no line --%.70s",
                        boundary);
    }
    reader.at = found + (found == bytes && bytes[0] == '-' ? n - 2 : n);
    VXD_TRY(end_line(&reader, &is_last, err));
    while (!is_last) {
        struct vxd_body_part *part = &parts[*n_parts];

        if (*n_parts == VXD_BODY_MAX_PARTS) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "body", "has more than %d parts",
                            VXD_BODY_MAX_PARTS);
        }
        VXD_TRY(take_head(&reader, part, err));
        for (size_t i = 0; i < *n_parts; i++) {
            if (strcmp(parts[i].name, part->name) == 0) {
                return vxd_fail(err, VXD_INVALID_ARGUMENT, part->name,
                                "is the name of two parts");
            }
        }
        /* The line break before a boundary is the boundary's, also behind an empty head. */
        found = find(reader.at - 2, reader.end, delimiter, n);
        if (found == NULL) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, part->name,
                            "does not end: no line --%.70s behind it", boundary);
        }
        part->bytes = found > reader.at ? reader.at : found;
        part->n_bytes = found > reader.at ? (size_t)(found - reader.at) : 0;
        ++*n_parts;
        reader.at = found + n;
        VXD_TRY(end_line(&reader, &is_last, err));
    }
    if (*n_parts == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "body", "has no part");
    }
out:
    return status;
}
