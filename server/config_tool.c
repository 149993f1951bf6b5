// SPDX-License-Identifier: Apache-2.0
#include "server/config_tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/config/config.h"
#include "server/access/access.h"
#include "server/method_table.h"
#include "server/request/request.h"
#include "server/tool_report.h"
#include "server/transport/tls/tls.h"

#define IPC "ipc://"
#define UNIX "unix:"

/* The folder that a path lies in: "/run/voxeld" of "/run/voxeld/voxeld.sock". */
static void folder_of(const char *path, char out[VXD_PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash != NULL ? (size_t)(slash - path) : 0;

    if (slash == NULL) {
        (void)snprintf(out, VXD_PATH_BYTES, ".");
    } else {
        (void)snprintf(out, VXD_PATH_BYTES, "%.*s", n > 0 ? (int)n : 1, path);
    }
}

static enum vxd_status check_folder(const char *field, const char *path, int mode,
                                    struct vxd_err *err)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        return vxd_fail(err, VXD_NOT_FOUND, field, "cannot use the folder %.150s: %s",
                        path, strerror(errno));
    }
    if (!S_ISDIR(info.st_mode)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "%.150s is no folder", path);
    }
    if (access(path, mode) != 0) {
        return vxd_fail(err, VXD_PERMISSION_DENIED, field,
                        "cannot %s the folder %.150s: %s",
                        (mode & W_OK) != 0 ? "write to" : "read", path, strerror(errno));
    }
    return VXD_OK;
}

/* One that the daemon makes, where only its last part is missing. */
static enum vxd_status check_own_folder(const char *field, const char *path,
                                        struct vxd_err *err)
{
    char plain[VXD_PATH_BYTES];
    char parent[VXD_PATH_BYTES];
    struct stat info;
    size_t n;

    (void)snprintf(plain, sizeof plain, "%s", path);
    for (n = strlen(plain); n > 1 && plain[n - 1] == '/'; n--) {
        plain[n - 1] = '\0';
    }
    if (stat(plain, &info) == 0 || errno != ENOENT) {
        return check_folder(field, plain, R_OK | W_OK | X_OK, err);
    }
    folder_of(plain, parent);
    return check_folder(field, parent, W_OK | X_OK, err);
}

static enum vxd_status check_sockets(const struct vxd_config *config, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; status == VXD_OK && i < config->n_rpc; i++) {
        char field[48];
        char folder[VXD_PATH_BYTES];

        (void)snprintf(field, sizeof field, "listen.rpc[%zu]", i);
        if (strncmp(config->rpc[i], IPC, strlen(IPC)) == 0) {
            folder_of(config->rpc[i] + strlen(IPC), folder);
            status = check_own_folder(field, folder, err);
        }
    }
    if (status == VXD_OK && strncmp(config->http, UNIX, strlen(UNIX)) == 0) {
        char folder[VXD_PATH_BYTES];

        folder_of(config->http + strlen(UNIX), folder);
        status = check_folder("listen.http", folder, W_OK | X_OK, err);
    }
    return status;
}

static enum vxd_status check_networks(const struct vxd_config *config,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    if (config->networks_dir[0] == '\0') {
        return VXD_OK;
    }
    VXD_TRY(check_folder("networks_dir", config->networks_dir, R_OK | X_OK, err));
    for (size_t i = 0; i < config->n_networks; i++) {
        char path[2 * VXD_PATH_BYTES];
        char field[48];

        (void)snprintf(field, sizeof field, "networks[%zu]", i);
        (void)snprintf(path, sizeof path, "%s/%.*s.json", config->networks_dir,
                       (int)strcspn(config->networks[i], ":"), config->networks[i]);
        if (access(path, R_OK) != 0) {
            return vxd_fail(err, VXD_NOT_FOUND, field, "cannot read %.180s: %s", path,
                            strerror(errno));
        }
    }
out:
    return status;
}

static enum vxd_status check_audit(const char *path, struct vxd_err *err)
{
    char folder[VXD_PATH_BYTES];
    struct stat info;

    if (path[0] == '\0') {
        return VXD_OK;
    }
    if (stat(path, &info) != 0 && errno == ENOENT) {
        folder_of(path, folder);
        return check_folder("audit.file", folder, W_OK | X_OK, err);
    }
    return access(path, W_OK) == 0
               ? VXD_OK
               : vxd_fail(err, VXD_PERMISSION_DENIED, "audit.file",
                          "cannot write to %.180s: %s", path, strerror(errno));
}

static bool has_token(const struct vxd_token_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->tokens[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The tokens, and that those exist that are given to clients' certificates. */
static enum vxd_status check_tokens(const struct vxd_config *config, struct vxd_err *err)
{
    struct vxd_method_names names = {NULL, 0};
    struct vxd_token_list list = {NULL, 0};
    enum vxd_status status;

    VXD_TRY(vxd_method_names_make(vxd_method_table(), &names, err));
    VXD_TRY(vxd_token_file_read(config->tokens_file, &names, &list, err));
    for (size_t i = 0; i < config->n_tls_client_names; i++) {
        char field[48];

        if (!has_token(&list, strrchr(config->tls_client_names[i], '=') + 1)) {
            (void)snprintf(field, sizeof field, "tls.client_names[%zu]", i);
            VXD_TRY(vxd_fail(err, VXD_NOT_FOUND, field,
                             "\"%.100s\" names a token that is not in auth.tokens_file",
                             config->tls_client_names[i]));
        }
    }
out:
    vxd_token_list_clear(&list);
    vxd_method_names_free(&names);
    return status;
}

static enum vxd_status check_tls(const struct vxd_config *config, struct vxd_err *err)
{
    struct vxd_tls *tls = NULL;
    enum vxd_status status = vxd_tls_create(config, &tls, err);

    vxd_tls_destroy(tls);
    return status;
}

static enum vxd_status check(const char *path, struct vxd_config *config,
                             struct vxd_err *err)
{
    struct vxd_options options = {.config = path};
    enum vxd_status status;

    VXD_TRY(vxd_options_load(&options, config, err));
    if (config->data_dir[0] != '\0') {
        VXD_TRY(check_own_folder("data_dir", config->data_dir, err));
    }
    if (config->archive_dir[0] != '\0') {
        VXD_TRY(check_own_folder("archive_dir", config->archive_dir, err));
    }
    VXD_TRY(check_sockets(config, err));
    VXD_TRY(check_networks(config, err));
    VXD_TRY(check_audit(config->audit_file, err));
    VXD_TRY(check_tokens(config, err));
    VXD_TRY(check_tls(config, err));
out:
    return status;
}

int vxd_config_tool_check(const char *path, bool json)
{
    struct vxd_config *config = malloc(sizeof *config);
    struct vxd_err err = {0};
    enum vxd_status status =
        config != NULL ? check(path, config, &err)
                       : vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");

    free(config);
    if (status != VXD_OK) {
        return vxd_tool_fail(json, NULL, &err, NULL);
    }
    (void)puts(json ? "{\"ok\": true}" : "ok");
    return EXIT_SUCCESS;
}
