// SPDX-License-Identifier: Apache-2.0
/* Parses options that hold several values. */
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/cli/cli.h"

bool ctl_parse_place(const char *text, struct ctl_place *out)
{
    size_t n = strcspn(text, "@");

    if (n >= sizeof out->name) {
        return false;
    }
    memcpy(out->name, text, n);
    out->name[n] = '\0';
    out->has_at = text[n] == '@';
    out->at = (struct voxeld_scene_at){0};
    return !out->has_at || (text[n + 1] != '\0' && ctl_parse_at(text + n + 1, &out->at));
}

int ctl_check_place(const char *command, const char *word)
{
    struct ctl_place place;

    return ctl_parse_place(word, &place)
               ? CTL_OK
               : ctl_usage(command, "%s: no NAME, NAME@VERSION or NAME@SNAPSHOT", word);
}

bool ctl_parse_names(struct ctl_names *names, const char *text)
{
    size_t n = strlen(text);
    char *at = names->text;

    if (n >= sizeof names->text) {
        return false;
    }
    memcpy(names->text, text, n + 1);
    for (names->n = 0;;) {
        size_t length = strcspn(at, ",");
        bool last = at[length] == '\0';

        if (length == 0 || names->n == CTL_MAX_NAMES) {
            return false;
        }
        at[length] = '\0';
        names->names[names->n++] = at;
        if (last) {
            return true;
        }
        at += length + 1;
    }
}

bool ctl_add_spec(struct ctl_specs *specs, const char *text)
{
    size_t i = specs->n;
    size_t n_name = strcspn(text, ":");
    const char *dtype = text + n_name + 1;
    size_t n_dtype;

    if (i == CTL_MAX_LISTED || text[n_name] == '\0' || n_name == 0 ||
        n_name >= CTL_NAME_BYTES) {
        return false;
    }
    n_dtype = strcspn(dtype, ":");
    memcpy(specs->names[i], text, n_name);
    specs->specs[i].name = specs->names[i];
    specs->specs[i].n_elements = 1;
    specs->n++;
    return ctl_parse_dtype(dtype, n_dtype, &specs->specs[i].dtype) &&
           (dtype[n_dtype] == '\0' ||
            ctl_parse_u32(dtype + n_dtype + 1, 1, UINT16_MAX + 1,
                          &specs->specs[i].n_elements));
}

bool ctl_add_text(struct ctl_texts *texts, const char *text, char must_have)
{
    if (texts->n == CTL_MAX_LISTED || strchr(text, must_have) == NULL) {
        return false;
    }
    texts->texts[texts->n++] = text;
    return true;
}

bool ctl_add_step(struct ctl_steps *steps, int option, const char *value)
{
    /* It doubles where the number is a power of 2. */
    if ((steps->n & (steps->n - 1)) == 0) {
        size_t n = steps->n > 0 ? 2 * steps->n : 1;
        struct ctl_step *grown = realloc(steps->steps, n * sizeof *grown);

        if (grown == NULL) {
            return false;
        }
        steps->steps = grown;
    }
    steps->steps[steps->n++] = (struct ctl_step){option, value};
    return true;
}
