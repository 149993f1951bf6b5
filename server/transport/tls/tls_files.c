// SPDX-License-Identifier: Apache-2.0
/* Reads and checks the files of the section tls. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/transport/tls/tls_internal.h"

#define MAX_FILE_BYTES ((size_t)1 << 20)
#define KEY_ID_BYTES 64

/* A file's bytes, malloc'ed. One that is secret must not be everybody's to read. */
static enum vxd_status read_file(const char *field, const char *path, bool is_secret,
                                 gnutls_datum_t *out, struct vxd_err *err)
{
    FILE *file = fopen(path, "rb");
    size_t n;

    *out = (gnutls_datum_t){NULL, 0};
    if (file == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, field, "cannot open %.150s: %s", path,
                        strerror(errno));
    }
    if (is_secret && vxd_secret_file_check(fileno(file), path, field, err) != VXD_OK) {
        (void)fclose(file);
        return VXD_PERMISSION_DENIED;
    }
    out->data = malloc(MAX_FILE_BYTES + 1);
    n = out->data != NULL ? fread(out->data, 1, MAX_FILE_BYTES + 1, file) : 0;
    if (out->data == NULL || ferror(file) != 0 || n > MAX_FILE_BYTES) {
        enum vxd_status status =
            out->data == NULL ? vxd_fail(err, VXD_RESOURCE_EXHAUSTED, field,
                                         "no memory for %.150s", path)
            : n > MAX_FILE_BYTES
                ? vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                           "%.150s has more than %zu bytes", path, MAX_FILE_BYTES)
                : vxd_fail(err, VXD_NOT_FOUND, field, "cannot read %.150s: %s", path,
                           strerror(errno));

        free(out->data);
        out->data = NULL;
        (void)fclose(file);
        return status;
    }
    (void)fclose(file);
    out->size = (unsigned)n;
    return VXD_OK;
}

/* Frees the bytes, of a key too, so they are wiped. */
static void free_file(gnutls_datum_t *file)
{
    if (file->data != NULL) {
        gnutls_memset(file->data, 0, file->size);
        free(file->data);
        file->data = NULL;
    }
}

static enum vxd_status read_chain(const char *path, struct vxd_tls_files *files,
                                  struct vxd_err *err)
{
    gnutls_datum_t pem;
    enum vxd_status status;
    int result;

    VXD_TRY(read_file("tls.certificate", path, false, &pem, err));
    result = gnutls_x509_crt_list_import2(&files->chain, &files->n_chain, &pem,
                                          GNUTLS_X509_FMT_PEM, 0);
    free_file(&pem);
    if (result < 0 || files->n_chain == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "tls.certificate",
                        "%.150s has no certificates in PEM, the server's own one first: "
                        "%.60s",
                        path, result < 0 ? gnutls_strerror(result) : "it is empty");
    }
    files->begins_unix_s = (int64_t)gnutls_x509_crt_get_activation_time(files->chain[0]);
    files->expires_unix_s = (int64_t)gnutls_x509_crt_get_expiration_time(files->chain[0]);
out:
    return status;
}

/* Compares their public keys. */
static bool belongs_to(const struct vxd_tls_files *files)
{
    uint8_t of_key[KEY_ID_BYTES];
    uint8_t of_certificate[KEY_ID_BYTES];
    size_t n_key = sizeof of_key;
    size_t n_certificate = sizeof of_certificate;

    return gnutls_x509_privkey_get_key_id(files->key, GNUTLS_KEYID_USE_SHA256, of_key,
                                          &n_key) == 0 &&
           gnutls_x509_crt_get_key_id(files->chain[0], GNUTLS_KEYID_USE_SHA256,
                                      of_certificate, &n_certificate) == 0 &&
           n_key == n_certificate && memcmp(of_key, of_certificate, n_key) == 0;
}

static enum vxd_status read_key(const char *path, const char *certificate,
                                struct vxd_tls_files *files, struct vxd_err *err)
{
    gnutls_datum_t pem;
    enum vxd_status status;
    int result;

    VXD_TRY(read_file("tls.key", path, true, &pem, err));
    result = gnutls_x509_privkey_init(&files->key);
    if (result >= 0) {
        result =
            gnutls_x509_privkey_import2(files->key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    }
    free_file(&pem);
    if (result == GNUTLS_E_DECRYPTION_FAILED) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "tls.key",
                        "%.150s is encrypted; a daemon cannot ask for its password: "
                        "openssl pkey -in FILE -out FILE2",
                        path);
    }
    if (result < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "tls.key",
                        "%.150s has no private key in PEM: %.60s", path,
                        gnutls_strerror(result));
    }
    if (!belongs_to(files)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "tls.key",
                        "%.80s is not the key of the first certificate in %.80s", path,
                        certificate);
    }
out:
    return status;
}

static enum vxd_status read_client_ca(const char *path, struct vxd_tls_files *files,
                                      struct vxd_err *err)
{
    gnutls_datum_t pem;
    enum vxd_status status;
    int n = 0;

    VXD_TRY(read_file("tls.client_ca", path, false, &pem, err));
    if (gnutls_x509_trust_list_init(&files->client_ca, 0) < 0) {
        files->client_ca = NULL;
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "tls.client_ca",
                          "no memory for the authorities");
    } else {
        n = gnutls_x509_trust_list_add_trust_mem(files->client_ca, &pem, NULL,
                                                 GNUTLS_X509_FMT_PEM, 0, 0);
    }
    free_file(&pem);
    if (status == VXD_OK && n <= 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "tls.client_ca",
                        "%.150s has no authorities' certificates in PEM", path);
    }
out:
    return status;
}

static enum vxd_status copy_names(const struct vxd_config *config,
                                  struct vxd_tls_files *files, struct vxd_err *err)
{
    if (config->n_tls_client_names == 0) {
        return VXD_OK;
    }
    files->names = calloc(config->n_tls_client_names, sizeof *files->names);
    if (files->names == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "tls.client_names",
                        "no memory for the names");
    }
    files->n_names = config->n_tls_client_names;
    memcpy(files->names, config->tls_client_names, files->n_names * sizeof *files->names);
    return VXD_OK;
}

static enum vxd_status check_time(const char *path, const struct vxd_tls_files *files,
                                  struct vxd_err *err)
{
    int64_t now = (int64_t)time(NULL);
    bool has_begun = now >= files->begins_unix_s;
    time_t when = (time_t)(has_begun ? files->expires_unix_s : files->begins_unix_s);
    char date[32] = "";
    struct tm parts;

    if (has_begun && now <= files->expires_unix_s) {
        return VXD_OK;
    }
    if (gmtime_r(&when, &parts) != NULL) {
        (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    }
    return vxd_fail(err, VXD_FAILED_PRECONDITION, "tls.certificate",
                    "the certificate in %.120s %s %s", path,
                    has_begun ? "ended on" : "begins on", date);
}

enum vxd_status vxd_tls_files_read(const struct vxd_config *config, uint64_t generation,
                                   struct vxd_tls_files **out, struct vxd_err *err)
{
    struct vxd_tls_files *files = calloc(1, sizeof *files);
    enum vxd_status status;

    *out = NULL;
    if (files == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the files");
    }
    atomic_init(&files->references, 1);
    files->generation = generation;
    files->is_required = config->tls_client_required;
    VXD_TRY(read_chain(config->tls_certificate, files, err));
    VXD_TRY(read_key(config->tls_key, config->tls_certificate, files, err));
    if (config->tls_client_ca[0] != '\0') {
        VXD_TRY(read_client_ca(config->tls_client_ca, files, err));
    }
    VXD_TRY(copy_names(config, files, err));
    *out = files;
    return check_time(config->tls_certificate, files, err);
out:
    vxd_tls_files_drop(files);
    return status;
}

void vxd_tls_files_drop(struct vxd_tls_files *files)
{
    if (files == NULL || atomic_fetch_sub(&files->references, 1) != 1) {
        return;
    }
    for (unsigned i = 0; i < files->n_chain; i++) {
        gnutls_x509_crt_deinit(files->chain[i]);
    }
    gnutls_free(files->chain);
    gnutls_x509_privkey_deinit(files->key);
    if (files->client_ca != NULL) {
        gnutls_x509_trust_list_deinit(files->client_ca, 1);
    }
    free(files->names);
    free(files);
}

struct vxd_tls_files *vxd_tls_files_hold(struct vxd_tls *tls)
{
    struct vxd_tls_files *files;

    (void)pthread_mutex_lock(&tls->lock);
    files = tls->files;
    atomic_fetch_add(&files->references, 1);
    (void)pthread_mutex_unlock(&tls->lock);
    return files;
}
