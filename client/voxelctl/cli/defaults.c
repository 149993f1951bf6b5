// SPDX-License-Identifier: Apache-2.0
/* The user's defaults: $XDG_CONFIG_HOME/voxeld.json, else ~/.config/voxeld.json:
 *
 *     {"url": "tcp://robot:8421", "token_file": "~/.config/voxeld.token", "timeout_s": 30,
 *      "ca_file": "...", "cert_file": "...", "key_file": "...", "json": false}
 *
 * Whatever the environment or the command line say wins. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/voxelctl/cli/cli.h"
#include "proto/base/closest.h"

enum {
    MAX_BYTES = 65536,
    PATH_BYTES = 1024
};

/* The file's path; "" where there is no home. */
static const char *path_of(char path[PATH_BYTES])
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    path[0] = '\0';
    if (config != NULL && config[0] == '/') {
        (void)snprintf(path, PATH_BYTES, "%s/voxeld.json", config);
    } else if (home != NULL && home[0] == '/') {
        (void)snprintf(path, PATH_BYTES, "%s/.config/voxeld.json", home);
    }
    return path;
}

/* Copies a text; "~/" becomes the home. */
static bool copy_text(const json_t *json, char text[PATH_BYTES])
{
    const char *home = getenv("HOME");
    const char *from = json_string_value(json);
    bool is_home = from != NULL && strncmp(from, "~/", 2) == 0 && home != NULL;

    return from != NULL && snprintf(text, PATH_BYTES, "%s%s", is_home ? home : "",
                                    from + (is_home ? 1 : 0)) < PATH_BYTES;
}

static bool take_text(struct ctl_globals *globals, const json_t *json, int slot,
                      const char **to)
{
    *to = globals->texts[slot];
    return copy_text(json, globals->texts[slot]);
}

static bool take_url(struct ctl_globals *globals, const json_t *json)
{
    const char *environment = getenv("VOXELD_URL");

    return environment != NULL && environment[0] != '\0'
               ? json_is_string(json)
               : take_text(globals, json, 0, &globals->options.url);
}

static bool take_token_file(struct ctl_globals *globals, const json_t *json)
{
    const char *environment = getenv("VOXELD_TOKEN");
    char path[PATH_BYTES];

    if (environment != NULL && environment[0] != '\0') {
        return json_is_string(json);
    }
    return copy_text(json, path) &&
           ctl_global_option(globals, CTL_OPT_TOKEN_FILE, path) == CTL_OK;
}

static bool take_timeout(struct ctl_globals *globals, const json_t *json)
{
    double seconds = json_number_value(json); /* 0 of what is no number */

    if (!(seconds >= 0.001) || seconds > 86400) {
        return false;
    }
    globals->options.timeout_ms = (uint32_t)(seconds * 1000);
    return true;
}

static bool take_ca(struct ctl_globals *globals, const json_t *json)
{
    return take_text(globals, json, 1, &globals->options.tls_ca_file);
}

static bool take_cert(struct ctl_globals *globals, const json_t *json)
{
    return take_text(globals, json, 2, &globals->options.tls_cert_key_file);
}

static bool take_key(struct ctl_globals *globals, const json_t *json)
{
    return take_text(globals, json, 3, &globals->options.tls_key_file);
}

static bool take_json(struct ctl_globals *globals, const json_t *json)
{
    globals->json = json_is_true(json);
    return json_is_boolean(json);
}

static const struct {
    const char *key;
    const char *right;
    bool (*take)(struct ctl_globals *globals, const json_t *json);
} keys[] = {
    {"url", "a string like \"ipc:///run/voxeld/voxeld.sock\"", take_url},
    {"token_file", "the path of a file whose first line is the token", take_token_file},
    {"timeout_s", "seconds, 0.001 to 86400", take_timeout},
    {"ca_file", "a path", take_ca},
    {"cert_file", "a path", take_cert},
    {"key_file", "a path", take_key},
    {"json", "true or false", take_json},
};

static int take_member(struct ctl_globals *globals, const char *path, const char *key,
                       const json_t *json)
{
    struct vxd_closest closest = {.word = key};
    char meant[96];

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(keys[i].key, key) == 0) {
            return keys[i].take(globals, json)
                       ? CTL_OK
                       : ctl_error("%s: %s: must be %s", path, key, keys[i].right);
        }
        vxd_closest_offer(&closest, keys[i].key);
    }
    return ctl_error("%s: there is no key \"%s\"%s", path, key,
                     vxd_closest_text(&closest, meant, sizeof meant));
}

static int take_file(struct ctl_globals *globals, const char *path, const uint8_t *bytes,
                     size_t n_bytes)
{
    json_error_t error;
    json_t *file = json_loadb((const char *)bytes, n_bytes, 0, &error);
    const char *key;
    json_t *value;
    int result = CTL_OK;

    if (file == NULL) {
        return ctl_error("%s: line %d, column %d: %s", path, error.line, error.column,
                         error.text);
    }
    if (!json_is_object(file)) {
        result = ctl_error("%s: must be an object: {\"url\": ...}", path);
    }
    json_object_foreach(file, key, value)
    {
        if (result == CTL_OK) {
            result = take_member(globals, path, key, value);
        }
    }
    json_decref(file);
    return result;
}

int ctl_globals_defaults(struct ctl_globals *globals)
{
    char path[PATH_BYTES];
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    struct stat there;
    int result;

    if (path_of(path)[0] == '\0' || stat(path, &there) != 0) {
        return CTL_OK;
    }
    if (there.st_size > MAX_BYTES) {
        return ctl_error("%s: is larger than %d bytes", path, MAX_BYTES);
    }
    result = ctl_read_file(path, &bytes, &n_bytes);
    if (result == CTL_OK) {
        result = take_file(globals, path, bytes, n_bytes);
    }
    free(bytes);
    return result;
}
