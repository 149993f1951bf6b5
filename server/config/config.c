// SPDX-License-Identifier: Apache-2.0
/* Reading the configuration file: JSON of one level of sections, every key looked up in
 * the table of config_keys.c. */
#include "server/config/daemon_config.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/config/config_keys.h"

enum {
    MAX_FILE_BYTES = 1024 * 1024,
    PATH_BYTES = 96 /* of a key's path, like vxd_err.field */
};

/* What the value readers share. */
struct reader {
    const char *file; /* for messages */
    struct vxd_config *config;
    struct vxd_err *err;
};

void vxd_config_default(struct vxd_config *config)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    memset(config, 0, sizeof *config);
    if (runtime == NULL || runtime[0] != '/' || strlen(runtime) > VXD_PATH_BYTES / 2) {
        runtime = "/run";
    }
    (void)snprintf(config->rpc[0], sizeof config->rpc[0], "ipc://%.*s/voxeld/voxeld.sock",
                   VXD_PATH_BYTES / 2, runtime);
    config->n_rpc = 1;
    config->ipc_mode = 0660;
    (void)snprintf(config->http, sizeof config->http, "127.0.0.1:8420");
    (void)snprintf(config->networks_dir, sizeof config->networks_dir, "auto");
    (void)snprintf(config->backend, sizeof config->backend, "auto");
    config->max_message_bytes = UINT64_C(64) << 20;
    config->inflight_bytes = UINT64_C(1) << 30;
    config->shared_bytes = UINT64_C(1) << 30;
    config->queue_limit = 64;
    config->max_connections = 512;
    config->failed_logins = 60;
    config->default_timeout_ms = 5000;
    config->max_timeout_ms = 60000;
    config->bulk_points = 1000000;
    config->replay_bytes = UINT64_C(32) << 20;
    config->replay_clients = 4096;
    config->replay_seconds = 30;
    config->archive_seconds = 60;
    config->archive_bytes = UINT64_C(1) << 30;
    config->n_scenes = 1024;
    config->scene_edit_regions = UINT64_C(1) << 29; /* the engine's own limit */
    config->n_watchers = 192;
    config->n_client_watchers = 128;
    config->scene_collect_growth = 100;
    (void)snprintf(config->scene_store, sizeof config->scene_store, "arena");
    config->tls_client_required = true;
    (void)snprintf(config->log_level, sizeof config->log_level, "info");
    config->drain_grace_ms = 1000;
    config->drain_timeout_ms = 10000;
}

void vxd_config_find_networks(struct vxd_config *config)
{
    static const char beside[] = "share/voxeld/networks";
    char path[VXD_PATH_BYTES] = "";
    ssize_t n;

    if (strcmp(config->networks_dir, "auto") != 0) {
        return;
    }
    config->networks_dir[0] = '\0';
    n = readlink("/proc/self/exe", path, sizeof path - sizeof beside - 1);
    for (int i = 0; i < 2 && n > 0; i++) { /* up from "/usr/bin/voxeld" */
        while (n > 0 && path[--n] != '/') {
        }
    }
    if (n < 0) {
        return;
    }
    (void)snprintf(path + n, sizeof path - (size_t)n, "/%s", beside);
    if (access(path, R_OK | X_OK) == 0) {
        (void)snprintf(config->networks_dir, sizeof config->networks_dir, "%s", path);
    }
}

static const char *kind_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

static enum vxd_status fail_kind(const struct reader *r, const char *path,
                                 const char *expected, const json_t *value)
{
    return vxd_fail(r->err, VXD_INVALID_ARGUMENT, path,
                    "%.100s: \"%s\" must be %s, not %s", r->file, path, expected,
                    kind_name(value));
}

static enum vxd_status read_integer(const struct reader *r, const char *path,
                                    const struct vxd_config_entry *entry,
                                    const json_t *value, uint64_t *out)
{
    json_int_t number;

    if (!json_is_integer(value)) {
        return fail_kind(r, path, "a whole number", value);
    }
    number = json_integer_value(value);
    if (number < 0 || (uint64_t)number < entry->low || (uint64_t)number > entry->high) {
        return vxd_fail(r->err, VXD_INVALID_ARGUMENT, path,
                        "%.100s: \"%s\" is %" JSON_INTEGER_FORMAT ", it must be %" PRIu64
                        " to %" PRIu64,
                        r->file, path, number, entry->low, entry->high);
    }
    *out = (uint64_t)number;
    return VXD_OK;
}

static enum vxd_status read_string(const struct reader *r, const char *path,
                                   const struct vxd_config_entry *entry,
                                   const json_t *value, char *out)
{
    size_t n_bytes;

    if (!json_is_string(value)) {
        return fail_kind(r, path, "a string", value);
    }
    /* jansson refuses \u0000, so the length is strlen's. */
    n_bytes = json_string_length(value);
    if (n_bytes < entry->low || n_bytes > entry->high) {
        return vxd_fail(r->err, VXD_INVALID_ARGUMENT, path,
                        "%.100s: \"%s\" has %zu bytes, it must have %" PRIu64
                        " to %" PRIu64,
                        r->file, path, n_bytes, entry->low, entry->high);
    }
    memcpy(out, json_string_value(value), n_bytes + 1);
    return VXD_OK;
}

static enum vxd_status read_choice(const struct reader *r, const char *path,
                                   const struct vxd_config_entry *entry,
                                   const json_t *value, char *out)
{
    const char *text = json_string_value(value);
    size_t n_bytes = text != NULL ? strlen(text) : 0;
    const char *at = entry->choices;

    if (text == NULL) {
        return fail_kind(r, path, "a string", value);
    }
    while (*at != '\0') {
        size_t n = strcspn(at, " ");

        if (n == n_bytes && memcmp(at, text, n) == 0) {
            memcpy(out, text, n_bytes + 1);
            return VXD_OK;
        }
        at += n + strspn(at + n, " ");
    }
    return vxd_fail(r->err, VXD_INVALID_ARGUMENT, path,
                    "%.100s: \"%s\" is \"%.40s\", it must be one of: %s", r->file, path,
                    text, entry->choices);
}

static enum vxd_status read_mode(const struct reader *r, const char *path,
                                 const struct vxd_config_entry *entry,
                                 const json_t *value, uint32_t *out)
{
    const char *text = json_string_value(value);
    unsigned long mode;

    if (text == NULL) {
        return fail_kind(r, path, "an octal string like \"0660\"", value);
    }
    mode = strtoul(text, NULL, 8);
    if (text[0] == '\0' || strlen(text) > 4 || text[strspn(text, "01234567")] != '\0' ||
        mode > entry->high) {
        return vxd_fail(r->err, VXD_INVALID_ARGUMENT, path,
                        "%.100s: \"%s\" is \"%.40s\", it must be octal digits, 0 to 0%o",
                        r->file, path, text, (unsigned)entry->high);
    }
    *out = (uint32_t)mode;
    return VXD_OK;
}

/* Reads a list of strings or numbers. The count is set last, so that a half read list is
 * never seen. */
static enum vxd_status read_list(const struct reader *r,
                                 const struct vxd_config_entry *entry,
                                 const json_t *value)
{
    uint8_t *to = (uint8_t *)r->config + entry->offset;
    size_t n = json_array_size(value);

    if (!json_is_array(value)) {
        return fail_kind(r, entry->path, "an array", value);
    }
    if (n > entry->max_items) {
        return vxd_fail(r->err, VXD_INVALID_ARGUMENT, entry->path,
                        "%.100s: \"%s\" has %zu items, at most %zu are supported",
                        r->file, entry->path, n, entry->max_items);
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        char path[PATH_BYTES];
        enum vxd_status status;
        uint64_t number = 0;

        (void)snprintf(path, sizeof path, "%s[%zu]", entry->path, i);
        if (entry->kind == VXD_CONFIG_STRINGS) {
            status = read_string(r, path, entry, item, (char *)to + i * VXD_PATH_BYTES);
        } else {
            status = read_integer(r, path, entry, item, &number);
            ((uint32_t *)(void *)to)[i] = (uint32_t)number;
        }
        if (status != VXD_OK) {
            return status;
        }
    }
    memcpy((uint8_t *)r->config + entry->n_offset, &n, sizeof n);
    return VXD_OK;
}

static enum vxd_status read_value(const struct reader *r,
                                  const struct vxd_config_entry *entry,
                                  const json_t *value)
{
    void *to = (uint8_t *)r->config + entry->offset;
    enum vxd_status status = VXD_OK;
    uint64_t number = 0;

    switch (entry->kind) {
    case VXD_CONFIG_BOOL:
        if (!json_is_boolean(value)) {
            return fail_kind(r, entry->path, "true or false", value);
        }
        *(bool *)to = json_is_true(value);
        return VXD_OK;
    case VXD_CONFIG_UINT32:
        status = read_integer(r, entry->path, entry, value, &number);
        if (status == VXD_OK) {
            *(uint32_t *)to = (uint32_t)number;
        }
        return status;
    case VXD_CONFIG_UINT64:
        return read_integer(r, entry->path, entry, value, to);
    case VXD_CONFIG_MODE:
        return read_mode(r, entry->path, entry, value, to);
    case VXD_CONFIG_STRING:
        return read_string(r, entry->path, entry, value, to);
    case VXD_CONFIG_STRINGS:
    case VXD_CONFIG_UINT32_LIST:
        return read_list(r, entry, value);
    case VXD_CONFIG_CHOICE:
        return read_choice(r, entry->path, entry, value, to);
    }
    return VXD_OK;
}

static const struct vxd_config_entry *find_entry(const char *path)
{
    for (size_t i = 0; i < vxd_config_n_entries; i++) {
        if (strcmp(vxd_config_entries[i].path, path) == 0) {
            return &vxd_config_entries[i];
        }
    }
    return NULL;
}

static bool is_section(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < vxd_config_n_entries; i++) {
        const char *path = vxd_config_entries[i].path;

        if (strncmp(path, name, n) == 0 && path[n] == '.') {
            return true;
        }
    }
    return false;
}

/* Reads the members of the file (section "") or of one of its sections. */
static enum vxd_status read_members(const struct reader *r, const char *section,
                                    json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        const struct vxd_config_entry *entry;
        char path[PATH_BYTES];
        enum vxd_status status;

        (void)snprintf(path, sizeof path, "%s%s%.60s", section,
                       section[0] != '\0' ? "." : "", name);
        /* A dot in a name would be mistaken for a section. */
        entry = strchr(name, '.') == NULL ? find_entry(path) : NULL;
        if (entry != NULL) {
            status = read_value(r, entry, value);
        } else if (section[0] == '\0' && is_section(name)) {
            status = json_is_object(value) ? read_members(r, name, value)
                                           : fail_kind(r, path, "an object", value);
        } else {
            status =
                vxd_fail(r->err, VXD_INVALID_ARGUMENT, path,
                         "%.100s: \"%s\" is no key of the configuration", r->file, path);
        }
        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_config_parse(const char *name, const char *text, size_t n_bytes,
                                 struct vxd_config *config, struct vxd_err *err)
{
    struct reader r = {.file = name, .err = err};
    enum vxd_status status = VXD_OK;
    json_error_t error;
    json_t *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error);

    if (root == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "%.100s:%d:%d: %.100s", name,
                        error.line, error.column, error.text);
    }
    r.config = malloc(sizeof *r.config);
    if (r.config == NULL) {
        status =
            vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %.100s", name);
        goto out;
    }
    *r.config = *config;
    if (!json_is_object(root)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                         "%.100s: the file must be one object, not %s", name,
                         kind_name(root)));
    }
    VXD_TRY(read_members(&r, "", root));
    *config = *r.config;
out:
    free(r.config);
    json_decref(root);
    return status;
}

enum vxd_status vxd_config_read(const char *path, struct vxd_config *config,
                                struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;
    char *text = NULL;
    size_t n_bytes;
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, NULL, "cannot open %.100s: %s", path,
                        strerror(errno));
    }
    text = malloc(MAX_FILE_BYTES + 1);
    if (text == NULL) {
        VXD_TRY(
            vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %.100s", path));
    }
    n_bytes = fread(text, 1, MAX_FILE_BYTES + 1, file);
    if (ferror(file) != 0) {
        VXD_TRY(vxd_fail(err, VXD_NOT_FOUND, NULL, "cannot read %.100s: %s", path,
                         strerror(errno)));
    }
    if (n_bytes > MAX_FILE_BYTES) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "%.100s has more than %d bytes",
                         path, MAX_FILE_BYTES));
    }
    VXD_TRY(vxd_config_parse(path, text, n_bytes, config, err));
out:
    free(text);
    (void)fclose(file);
    return status;
}
