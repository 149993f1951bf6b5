// SPDX-License-Identifier: Apache-2.0
/* Reads --labels: the material for each label of a network. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/scene/scene_commands.h"

struct ctl_scene_labels {
    char *text; /* the text that the names point into */
    struct voxeld_scene_label *labels;
    size_t n;
};

static const char separators[] = ",\n";

/* Trims the spaces around an entry, which lines of a file may have. */
static char *trimmed(char *text)
{
    size_t n;

    text += strspn(text, " \t\r");
    n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL) {
        text[--n] = '\0';
    }
    return text;
}

/* Parses a whole number; anything else is a name. */
static void take(const char *text, int32_t *number, const char **name)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0 && value >= INT32_MIN &&
        value <= INT32_MAX) {
        *number = (int32_t)value;
    } else {
        *name = text;
    }
}

static bool take_entry(char *entry, struct voxeld_scene_label *out)
{
    char *equals = strchr(entry, '=');
    char *label;
    char *material;

    if (equals == NULL) {
        return false;
    }
    *equals = '\0';
    label = trimmed(entry);
    material = trimmed(equals + 1);
    take(label, &out->label, &out->label_name);
    take(material, &out->material, &out->material_name);
    return label[0] != '\0' && material[0] != '\0';
}

/* Parses all entries. Lines that are empty or begin with '#' are skipped. */
static bool parse(struct ctl_scene_labels *labels)
{
    size_t n_most = 1;
    char *next = labels->text;

    for (const char *s = labels->text; *s != '\0'; s++) {
        n_most += strchr(separators, *s) != NULL;
    }
    labels->labels = calloc(n_most, sizeof *labels->labels);
    while (labels->labels != NULL && next != NULL) {
        char *entry = next;
        size_t n = strcspn(entry, separators);

        next = entry[n] != '\0' ? entry + n + 1 : NULL;
        entry[n] = '\0';
        entry = trimmed(entry);
        if (entry[0] == '\0' || entry[0] == '#') {
            continue;
        }
        if (!take_entry(entry, &labels->labels[labels->n++])) {
            return false;
        }
    }
    return labels->labels != NULL && labels->n > 0;
}

/* Reads the file's bytes as a text. */
static int read_file(const char *path, char **out)
{
    uint8_t *bytes;
    size_t n = 0;
    int result = ctl_read_file(path, &bytes, &n);

    if (result == CTL_OK) {
        *out = malloc(n + 1);
        if (*out != NULL) {
            memcpy(*out, bytes, n);
            (*out)[n] = '\0';
        }
        free(bytes);
    }
    return result;
}

int ctl_scene_labels_read(const char *given, struct ctl_scene_labels **out)
{
    struct ctl_scene_labels *labels = calloc(1, sizeof *labels);
    bool is_file = strchr(given, '=') == NULL;
    int result = CTL_OK;

    *out = labels;
    if (labels != NULL && is_file) {
        result = read_file(given, &labels->text);
    } else if (labels != NULL) {
        labels->text = strdup(given);
    }
    if (result != CTL_OK) {
        return result;
    }
    if (labels == NULL || labels->text == NULL) {
        (void)ctl_error("no memory");
        return CTL_FAILED;
    }
    if (parse(labels)) {
        return CTL_OK;
    }
    if (is_file) {
        (void)ctl_error("%s: not entries LABEL=MATERIAL", given);
        return CTL_FAILED;
    }
    return ctl_usage("scene integrate",
                     "--labels %s: LABEL=MATERIAL,... or a file of such", given);
}

const struct voxeld_scene_label *
ctl_scene_labels_get(const struct ctl_scene_labels *labels, size_t *n)
{
    *n = labels != NULL ? labels->n : 0;
    return labels != NULL ? labels->labels : NULL;
}

void ctl_scene_labels_free(struct ctl_scene_labels *labels)
{
    if (labels != NULL) {
        free(labels->labels);
        free(labels->text);
        free(labels);
    }
}
