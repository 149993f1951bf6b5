// SPDX-License-Identifier: Apache-2.0
#include "server/tool_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/request/request.h"

enum {
    EXIT_FAULTY = 2
};

void vxd_tool_member(struct vxd_text *text, bool first, const char *name,
                     const char *value)
{
    vxd_text_printf(text, "%s\"%s\": ", first ? "" : ", ", name);
    vxd_text_json_string(text, value, strlen(value));
}

static void fail_as_json(const char *what, const struct vxd_err *err, const char *help)
{
    struct vxd_text text = {0};

    vxd_text_append(&text, "{", 1);
    vxd_tool_member(&text, true, "code", vxd_status_name(err->code));
    if (what != NULL) {
        vxd_tool_member(&text, false, "what", what);
    }
    if (err->field[0] != '\0') {
        vxd_tool_member(&text, false, "field", err->field);
    }
    vxd_tool_member(&text, false, "message", err->message);
    if (help != NULL) {
        vxd_tool_member(&text, false, "help", help);
    }
    vxd_text_append(&text, "}\n", 2);
    (void)fputs(text.failed ? "{\"code\": \"RESOURCE_EXHAUSTED\"}\n" : text.bytes,
                stderr);
    free(text.bytes);
}

int vxd_tool_fail(bool json, const char *what, const struct vxd_err *err,
                  const char *help)
{
    const char *before = what != NULL ? what : err->field;

    if (json) {
        fail_as_json(what, err, help);
        return EXIT_FAULTY;
    }
    (void)fprintf(stderr, "%s%s%s\n", before, before[0] != '\0' ? ": " : "",
                  err->message);
    if (help != NULL) {
        (void)fprintf(stderr, "%s\n", help);
    }
    return EXIT_FAULTY;
}

int vxd_tool_print(struct vxd_text *text, int result)
{
    struct vxd_err err = {0};

    if (text->failed) {
        (void)vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    } else if (fwrite(text->bytes, 1, text->n_bytes, stdout) != text->n_bytes ||
               fflush(stdout) != 0) {
        (void)vxd_fail(&err, VXD_UNAVAILABLE, NULL, "standard output took less");
    }
    free(text->bytes);
    *text = (struct vxd_text){0};
    return err.code != VXD_OK ? vxd_tool_fail(true, NULL, &err, NULL) : result;
}
