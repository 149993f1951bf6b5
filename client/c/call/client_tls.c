// SPDX-License-Identifier: Apache-2.0
/* TLS of the connection: nng's own, which compares the server's certificate with the URL's host. */
#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/call/client_internal.h"

#define MAX_PEM_BYTES ((size_t)1 << 20)

/* The file's text, malloc'd. */
static enum vxd_status read_pem(const char *option, const char *path, char **out,
                                struct vxd_err *err)
{
    FILE *file = fopen(path, "rb");
    size_t n = 0;

    *out = file != NULL ? malloc(MAX_PEM_BYTES + 1) : NULL;
    if (*out != NULL) {
        n = fread(*out, 1, MAX_PEM_BYTES + 1, file);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    if (*out == NULL || n == 0 || n > MAX_PEM_BYTES) {
        free(*out);
        *out = NULL;
        return vxd_fail(err, VXD_INVALID_ARGUMENT, option,
                        "cannot read %.180s, or it is empty or has more than %zu bytes",
                        path, MAX_PEM_BYTES);
    }
    (*out)[n] = '\0';
    return VXD_OK;
}

static enum vxd_status set_own(nng_tls_config *config,
                               const struct voxeld_options *options, struct vxd_err *err)
{
    char *certificate = NULL;
    char *key = NULL;
    enum vxd_status status;
    int result;

    VXD_TRY(read_pem("tls_cert_key_file", options->tls_cert_key_file, &certificate, err));
    VXD_TRY(read_pem(options->tls_key_file != NULL ? "tls_key_file" : "tls_cert_key_file",
                     options->tls_key_file != NULL ? options->tls_key_file
                                                   : options->tls_cert_key_file,
                     &key, err));
    result = nng_tls_config_own_cert(config, certificate, key, NULL);
    if (result != 0) {
        status = vxd_fail(err, VXD_INVALID_ARGUMENT, "tls_cert_key_file",
                          "%.120s is no certificate in PEM, or has another key: %.60s",
                          options->tls_cert_key_file, nng_strerror(result));
    }
out:
    if (key != NULL) {
        memset(key, 0, strlen(key));
    }
    free(certificate);
    free(key);
    return status;
}

static enum vxd_status set_host(nng_tls_config *config, const char *url,
                                struct vxd_err *err)
{
    nng_url *parsed = NULL;
    int result = nng_url_parse(&parsed, url);

    if (result == 0) {
        result = nng_tls_config_server_name(config, parsed->u_hostname);
        nng_url_free(parsed);
    }
    return result == 0 ? VXD_OK : vxd_client_nng_error(result, url, err);
}

enum vxd_status vxd_client_set_tls(nng_dialer dialer, const char *url,
                                   const struct voxeld_options *options,
                                   struct vxd_err *err)
{
    nng_tls_config *config = NULL;
    enum vxd_status status = VXD_OK;
    int result;

    if (options->tls_key_file != NULL && options->tls_cert_key_file == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "tls_key_file",
                        "goes with tls_cert_key_file, the certificate");
    }
    if (options->tls_ca_file == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "tls_ca_file",
                        "tls+tcp needs the authorities that may have signed the server's "
                        "certificate (voxelctl: --ca-file)");
    }
    result = nng_tls_config_alloc(&config, NNG_TLS_MODE_CLIENT);
    if (result == NNG_ENOTSUP) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "url", "%s", VXD_CLIENT_NO_TLS);
    }
    if (result != 0) {
        return vxd_client_nng_error(result, "TLS", err);
    }
    VXD_TRY(set_host(config, url, err));
    if (nng_tls_config_auth_mode(config, NNG_TLS_AUTH_MODE_REQUIRED) != 0 ||
        nng_tls_config_version(config, NNG_TLS_1_2, NNG_TLS_1_3) != 0) {
        /* An nng whose TLS has no 1.3 takes its own newest. */
        (void)nng_tls_config_version(config, NNG_TLS_1_2, NNG_TLS_1_2);
    }
    result = nng_tls_config_ca_file(config, options->tls_ca_file);
    if (result != 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "tls_ca_file",
                         "%.180s has no certificates in PEM that can be read: %.60s",
                         options->tls_ca_file, nng_strerror(result)));
    }
    if (options->tls_cert_key_file != NULL) {
        VXD_TRY(set_own(config, options, err));
    }
    result = nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, config);
    if (result != 0) {
        status = vxd_client_nng_error(result, "TLS", err);
    }
out:
    nng_tls_config_free(config); /* the dialer holds it */
    return status;
}
