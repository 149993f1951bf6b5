// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/voxelctl/cli/cli.h"
#include "proto/wire/wire.h"

/* Writes what is in the text, and frees it; null where there was no memory for it. */
static void put(FILE *stream, struct vxd_text *text)
{
    (void)fputs(text->failed ? "null" : text->bytes, stream);
    free(text->bytes);
}

void ctl_json_string(FILE *stream, const char *s)
{
    struct vxd_text text = {0};

    vxd_text_json_string(&text, s, strlen(s));
    put(stream, &text);
}

void ctl_json_number(FILE *stream, double value)
{
    struct vxd_text text = {0};

    if (!isfinite(value)) {
        (void)fputs("null", stream);
        return;
    }
    vxd_text_json_double(&text, value);
    put(stream, &text);
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
