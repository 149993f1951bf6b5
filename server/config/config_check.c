// SPDX-License-Identifier: Apache-2.0
/* Checks what concerns several keys at once: reach, tokens, order of limits. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/svdag.h"
#include "gpu/paper/paper.h"
#include "proto/base/name.h"
#include "server/config/daemon_config.h"

enum {
    IPC_PATH_BYTES = 107 /* sun_path, less its NUL */
};

/* Splits "host:port" or "[v6]:port"; false when it is neither, or the port no number. */
static bool split_address(const char *address, char *host, size_t n_host)
{
    const char *colon = strrchr(address, ':');
    const char *begin = address;
    const char *end = colon;
    size_t n_digits;

    if (colon == NULL) {
        return false;
    }
    n_digits = strspn(colon + 1, "0123456789");
    if (n_digits == 0 || n_digits > 5 || colon[1 + n_digits] != '\0' ||
        strtoul(colon + 1, NULL, 10) > 65535) {
        return false;
    }
    if (address[0] == '[') {
        if (colon == address || colon[-1] != ']') {
            return false;
        }
        begin++;
        end--;
    } else if (memchr(address, ':', (size_t)(colon - address)) != NULL) {
        return false; /* IPv6 without its brackets */
    }
    if (end <= begin || (size_t)(end - begin) >= n_host) {
        return false;
    }
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    return true;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (strcmp(host, "localhost") == 0) {
        return true;
    }
    if (inet_pton(AF_INET, host, &v4) == 1) {
        return (ntohl(v4.s_addr) >> 24) == 127;
    }
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

#define TLS_TCP "tls+tcp://"

bool vxd_config_http_is_tls(const char *http)
{
    return strncmp(http, VXD_CONFIG_HTTPS, strlen(VXD_CONFIG_HTTPS)) == 0;
}

const char *vxd_config_http_address(const char *http)
{
    return http + (vxd_config_http_is_tls(http) ? strlen(VXD_CONFIG_HTTPS) : 0);
}

/* Whether whoever connects has shown a certificate that we accept. */
static bool asks_for_certificates(const struct vxd_config *config)
{
    return config->tls_client_ca[0] != '\0' && config->tls_client_required;
}

static enum vxd_status check_reach(const struct vxd_config *config, const char *field,
                                   const char *address, bool is_tls, struct vxd_err *err)
{
    char host[VXD_PATH_BYTES];

    if (!split_address(address, host, sizeof host)) {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, field,
            "\"%.100s\" must be host:port, an IPv6 host in brackets, the port "
            "0 to 65535",
            address);
    }
    if (is_tls && config->tls_certificate[0] == '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "\"%.100s\" speaks TLS: give tls.certificate and tls.key",
                        address);
    }
    if (!is_loopback(host) && !config->allow_insecure && config->tokens_file[0] == '\0' &&
        !(is_tls && asks_for_certificates(config))) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "\"%.100s\" can be reached from other machines: configure "
                        "auth.tokens_file, or TLS with tls.client_ca, or set "
                        "listen.allow_insecure",
                        address);
    }
    return VXD_OK;
}

static enum vxd_status check_rpc(const struct vxd_config *config, size_t i,
                                 struct vxd_err *err)
{
    const char *url = config->rpc[i];
    char field[48];

    (void)snprintf(field, sizeof field, "listen.rpc[%zu]", i);
    if (strncmp(url, "tcp://", 6) == 0) {
        return check_reach(config, field, url + 6, false, err);
    }
    if (strncmp(url, TLS_TCP, strlen(TLS_TCP)) == 0) {
        return check_reach(config, field, url + strlen(TLS_TCP), true, err);
    }
    if (strncmp(url, "ipc:///", 7) != 0 || url[7] == '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "\"%.100s\" must be ipc:///PATH, tcp://HOST:PORT or "
                        "tls+tcp://HOST:PORT",
                        url);
    }
    if (strlen(url) - 6 > IPC_PATH_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "the socket's path has %zu bytes, the system allows %d",
                        strlen(url) - 6, IPC_PATH_BYTES);
    }
    return VXD_OK;
}

static bool has_tls_listener(const struct vxd_config *config)
{
    bool has =
        vxd_config_http_is_tls(config->http) || vxd_config_http_is_tls(config->foxglove);

    for (size_t i = 0; i < config->n_rpc; i++) {
        has = has || strncmp(config->rpc[i], TLS_TCP, strlen(TLS_TCP)) == 0;
    }
    return has;
}

static enum vxd_status check_client_names(const struct vxd_config *config,
                                          struct vxd_err *err)
{
    if (config->n_tls_client_names > 0 &&
        (config->tls_client_ca[0] == '\0' || config->tokens_file[0] == '\0')) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "tls.client_names",
                        "gives tokens to clients' certificates: it needs %s",
                        config->tls_client_ca[0] == '\0' ? "tls.client_ca"
                                                         : "auth.tokens_file");
    }
    for (size_t i = 0; i < config->n_tls_client_names; i++) {
        const char *name = config->tls_client_names[i];
        const char *equals = strrchr(name, '=');
        char field[48];

        (void)snprintf(field, sizeof field, "tls.client_names[%zu]", i);
        if (equals == NULL || equals == name || !vxd_is_name(equals + 1)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "\"%.100s\" must be NAME=TOKEN, where a certificate has NAME "
                            "and auth.tokens_file has TOKEN",
                            name);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_unix(const char *path, struct vxd_err *err)
{
    if (path[0] != '/' || path[1] == '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "listen.http",
                        "\"unix:%.100s\" must be unix:/PATH", path);
    }
    if (strlen(path) > IPC_PATH_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "listen.http",
                        "the socket's path has %zu bytes, the system allows %d",
                        strlen(path), IPC_PATH_BYTES);
    }
    return VXD_OK;
}

static enum vxd_status check_tls(const struct vxd_config *config, struct vxd_err *err)
{
    bool has_certificate = config->tls_certificate[0] != '\0';

    if (has_certificate != (config->tls_key[0] != '\0')) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        has_certificate ? "tls.key" : "tls.certificate",
                        "is missing: a certificate and its key go together");
    }
    if (has_certificate && !has_tls_listener(config)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "tls.certificate",
                        "nobody would use it: neither listen.http nor listen.foxglove is "
                        "https://HOST:PORT, and listen.rpc has no tls+tcp://HOST:PORT");
    }
    if (!has_certificate && config->tls_client_ca[0] != '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "tls.client_ca",
                        "goes with tls.certificate and tls.key");
    }
    return check_client_names(config, err);
}

static bool is_backend(const char *name)
{
    size_t n_digits;

    if (strcmp(name, "auto") == 0 || strcmp(name, "cpu") == 0 ||
        strcmp(name, "cuda") == 0) {
        return true;
    }
    if (strncmp(name, "cuda:", 5) != 0) {
        return false;
    }
    n_digits = strspn(name + 5, "0123456789");
    return n_digits >= 1 && n_digits <= 3 && name[5 + n_digits] == '\0';
}

/* The parser knows all stores, but those of the papers are an option of the build. */
static enum vxd_status check_store(const char *store, struct vxd_err *err)
{
    if (vxd_paper_stores() == NULL &&
        strcmp(store, vxd_svdag_store_name(VXD_SVDAG_ARENA)) != 0) {
        return vxd_fail(err, VXD_UNIMPLEMENTED, "scenes.store",
                        "store \"%s\" is one of the papers' stores, which this build "
                        "leaves out (VOXELD_PAPER=OFF); known here: %s",
                        store, vxd_svdag_store_name(VXD_SVDAG_ARENA));
    }
    return VXD_OK;
}

enum vxd_status vxd_config_check(const struct vxd_config *config, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (config->n_rpc == 0 && config->http[0] == '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "listen",
                        "nobody could reach the daemon: give listen.rpc or listen.http");
    }
    for (size_t i = 0; i < config->n_rpc; i++) {
        VXD_TRY(check_rpc(config, i, err));
    }
    if (config->foxglove[0] != '\0') {
        VXD_TRY(check_reach(config, "listen.foxglove",
                            vxd_config_http_address(config->foxglove),
                            vxd_config_http_is_tls(config->foxglove), err));
    }
    if (strncmp(config->http, "unix:", 5) == 0) {
        VXD_TRY(check_unix(config->http + 5, err));
    } else if (config->http[0] != '\0') {
        VXD_TRY(check_reach(config, "listen.http", vxd_config_http_address(config->http),
                            vxd_config_http_is_tls(config->http), err));
    }
    VXD_TRY(check_tls(config, err));
    if (!is_backend(config->backend)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "engine.backend",
                        "\"%s\" must be auto, cpu, cuda or cuda:N", config->backend);
    }
    if (config->n_read_lanes == 1) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "engine.read_lanes",
                        "is 1, it must be 2 to 16, or 0, which is by the machine");
    }
    VXD_TRY(check_store(config->scene_store, err));
    if (config->n_networks > 0 && config->networks_dir[0] == '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "networks",
                        "%zu networks are named, but there is no networks_dir",
                        config->n_networks);
    }
    if (config->archive_dir[0] != '\0' && config->data_dir[0] == '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "archive_dir",
                        "there is no data_dir, so there is nothing to archive");
    }
    if (config->default_timeout_ms > config->max_timeout_ms) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "limits.timeout_ms",
                        "the default, %u, is above limits.max_timeout_ms, %u",
                        config->default_timeout_ms, config->max_timeout_ms);
    }
    if (config->max_message_bytes > config->inflight_bytes / 2) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "limits.inflight_bytes",
                        "%llu must be at least twice limits.message_bytes, %llu: a "
                        "message and its decoded form",
                        (unsigned long long)config->inflight_bytes,
                        (unsigned long long)config->max_message_bytes);
    }
out:
    return status;
}
