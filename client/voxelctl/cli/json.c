// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "proto/base/number.h"
#include "client/voxelctl/cli/cli.h"

/* Returns the length of the UTF-8 character at s, 0 where it is none: a surrogate, an
 * overlong form, or more than U+10FFFF. */
static size_t utf8_length(const unsigned char *s)
{
    unsigned low = 0x80;
    unsigned high = 0xbf;
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (n == 1) {
        return 1;
    }
    if (s[0] < 0xc2 || s[0] > 0xf4) {
        return 0;
    }
    low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : low;
    high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : high;
    if (s[1] < low || s[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return n;
}

void ctl_json_string(FILE *stream, const char *s)
{
    const unsigned char *at = (const unsigned char *)s;

    (void)fputc('"', stream);
    while (*at != '\0') {
        size_t n = utf8_length(at);

        if (n == 0) {
            (void)fputs("\\ufffd", stream);
            n = 1;
        } else if (*at == '"' || *at == '\\') {
            (void)fprintf(stream, "\\%c", *at);
        } else if (*at < 0x20 || *at == 0x7f) {
            (void)fprintf(stream, "\\u%04x", *at);
        } else {
            (void)fwrite(at, 1, n, stream);
        }
        at += n;
    }
    (void)fputc('"', stream);
}

void ctl_json_number(FILE *stream, double value)
{
    char text[40];

    if (!isfinite(value)) {
        (void)fputs("null", stream);
        return;
    }
    /* This prints the shortest text that reads back the same. */
    for (int digits = 6; digits <= 17; digits++) {
        double back;

        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (vxd_number_double(text, strlen(text), &back) && back == value) {
            break;
        }
    }
    (void)fputs(text, stream);
}

static void begin_member(FILE *stream, bool first, const char *name)
{
    (void)fputs(first ? "" : ", ", stream);
    ctl_json_string(stream, name);
    (void)fputs(": ", stream);
}

void ctl_json_member_string(FILE *stream, bool first, const char *name, const char *s)
{
    begin_member(stream, first, name);
    ctl_json_string(stream, s);
}

void ctl_json_member_number(FILE *stream, bool first, const char *name, double value)
{
    begin_member(stream, first, name);
    ctl_json_number(stream, value);
}

void ctl_json_member_count(FILE *stream, bool first, const char *name, uint64_t n)
{
    begin_member(stream, first, name);
    (void)fprintf(stream, "%" PRIu64, n);
}

void ctl_json_member_strings(FILE *stream, bool first, const char *name,
                             const char *const *strings, size_t n)
{
    begin_member(stream, first, name);
    (void)fputc('[', stream);
    for (size_t i = 0; i < n; i++) {
        (void)fputs(i > 0 ? ", " : "", stream);
        ctl_json_string(stream, strings[i]);
    }
    (void)fputc(']', stream);
}

void ctl_json_member_digest(FILE *stream, bool first, const char *name, uint64_t digest)
{
    begin_member(stream, first, name);
    (void)fprintf(stream, "\"%016" PRIx64 "\"", digest);
}

const char *ctl_date(int64_t unix_ns, char *text)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm parts;

    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(text, CTL_DATE_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        (void)snprintf(text, CTL_DATE_BYTES, "?");
    }
    return text;
}

void ctl_json_member_date(FILE *stream, bool first, const char *name, int64_t unix_ns)
{
    char text[CTL_DATE_BYTES];

    ctl_json_member_string(stream, first, name, ctl_date(unix_ns, text));
}

void ctl_json_member_vec3(FILE *stream, bool first, const char *name, const double v[3])
{
    begin_member(stream, first, name);
    (void)fputc('[', stream);
    for (size_t i = 0; i < 3; i++) {
        (void)fputs(i > 0 ? ", " : "", stream);
        ctl_json_number(stream, v[i]);
    }
    (void)fputc(']', stream);
}

void ctl_json_member_pose(FILE *stream, bool first, const char *name,
                          const struct voxeld_pose *pose)
{
    begin_member(stream, first, name);
    (void)fputc('{', stream);
    ctl_json_member_vec3(stream, true, "translation", pose->translation_m);
    begin_member(stream, false, "rotation");
    (void)fputc('[', stream);
    for (size_t i = 0; i < 4; i++) {
        (void)fputs(i > 0 ? ", " : "", stream);
        ctl_json_number(stream, pose->rotation[i]);
    }
    (void)fputs("]}", stream);
}

void ctl_json_member_choice(FILE *stream, bool first, const char *name,
                            const char *const *names, size_t n, size_t i)
{
    ctl_json_member_string(stream, first, name, i < n ? names[i] : "?");
}
