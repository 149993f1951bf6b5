// SPDX-License-Identifier: Apache-2.0
/* The object of both transports: it gives handshakes the certificate of now, and asks clients for
 * theirs. GnuTLS calls back without an argument of ours, so each session's pointer is the object. */
#include <stdlib.h>
#include <string.h>

#include "server/transport/tls/tls_internal.h"

enum vxd_status vxd_tls_create(const struct vxd_config *config, struct vxd_tls **out,
                               struct vxd_err *err)
{
    struct vxd_tls *tls;
    enum vxd_status status;

    *out = NULL;
    if (config->tls_certificate[0] == '\0') {
        return VXD_OK;
    }
    tls = calloc(1, sizeof *tls);
    if (tls == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for TLS");
    }
    (void)pthread_mutex_init(&tls->lock, NULL);
    if (gnutls_certificate_allocate_credentials(&tls->credentials) < 0 ||
        gnutls_priority_init(&tls->priorities, VXD_TLS_PRIORITIES, NULL) < 0) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for TLS"));
    }
    gnutls_certificate_set_retrieve_function3(tls->credentials, vxd_tls_retrieve);
    status = vxd_tls_files_read(config, 1, &tls->files, err);
    if (tls->files != NULL) {
        *out = tls;
        return status;
    }
out:
    vxd_tls_destroy(tls);
    return status;
}

enum vxd_status vxd_tls_reload(struct vxd_tls *tls, const struct vxd_config *config,
                               struct vxd_err *err)
{
    struct vxd_tls_files *files;
    struct vxd_tls_files *old;
    enum vxd_status status =
        vxd_tls_files_read(config, tls->files->generation + 1, &files, err);

    if (status != VXD_OK) {
        vxd_tls_files_drop(files);
        return status;
    }
    (void)pthread_mutex_lock(&tls->lock);
    old = tls->files;
    tls->files = files;
    (void)pthread_mutex_unlock(&tls->lock);
    vxd_tls_files_drop(old);
    return VXD_OK;
}

void vxd_tls_destroy(struct vxd_tls *tls)
{
    if (tls == NULL) {
        return;
    }
    vxd_tls_files_drop(tls->files);
    if (tls->credentials != NULL) {
        gnutls_certificate_free_credentials(tls->credentials);
    }
    gnutls_priority_deinit(tls->priorities);
    (void)pthread_mutex_destroy(&tls->lock);
    free(tls);
}

int64_t vxd_tls_expires_unix_s(struct vxd_tls *tls)
{
    struct vxd_tls_files *files = vxd_tls_files_hold(tls);
    int64_t expires = files->expires_unix_s;

    vxd_tls_files_drop(files);
    return expires;
}

uint64_t vxd_tls_n_failed(const struct vxd_tls *tls)
{
    return atomic_load(&tls->n_failed);
}

void vxd_tls_count_failed(struct vxd_tls *tls)
{
    atomic_fetch_add(&tls->n_failed, 1);
}

bool vxd_tls_is_our_host(struct vxd_tls *tls, const char *host)
{
    struct vxd_tls_files *files = vxd_tls_files_hold(tls);
    bool is_ours = gnutls_x509_crt_check_hostname(files->chain[0], host) != 0;

    vxd_tls_files_drop(files);
    return is_ours;
}

bool vxd_tls_send_last(gnutls_session_t session, const void *bytes, size_t n_bytes)
{
    return gnutls_record_send(session, bytes, n_bytes) == (ssize_t)n_bytes &&
           gnutls_bye(session, GNUTLS_SHUT_WR) == GNUTLS_E_SUCCESS;
}

/* Called in the handshake when the peer's certificate has come. */
static int verify(gnutls_session_t session)
{
    struct vxd_tls *tls = gnutls_session_get_ptr(session);
    struct vxd_tls_peer peer = {0};

    return vxd_tls_judge(tls, session, &peer) ? 0 : GNUTLS_E_CERTIFICATE_ERROR;
}

void vxd_tls_attach(struct vxd_tls *tls, gnutls_session_t session)
{
    struct vxd_tls_files *files = vxd_tls_files_hold(tls);

    gnutls_session_set_ptr(session, tls);
    if (files->client_ca != NULL) {
        gnutls_certificate_server_set_request(
            session, files->is_required ? GNUTLS_CERT_REQUIRE : GNUTLS_CERT_REQUEST);
        /* Which authorities we know is nobody's business, and a list of them could be of another
         * time than the one that judges. */
        gnutls_certificate_send_x509_rdn_sequence(session, 1);
        gnutls_session_set_verify_function(session, verify);
    }
    vxd_tls_files_drop(files);
}

/* Copies of both, which the session frees: the files may be read anew before its handshake ends. */
static int copy_to_session(const struct vxd_tls_files *files, gnutls_pcert_st *chain,
                           gnutls_privkey_t key)
{
    unsigned n = 0;
    int result = 0;

    for (; result >= 0 && n < files->n_chain; n++) {
        result = gnutls_pcert_import_x509(&chain[n], files->chain[n], 0);
    }
    if (result >= 0) {
        result = gnutls_privkey_import_x509(key, files->key, GNUTLS_PRIVKEY_IMPORT_COPY);
    } else {
        n--; /* the last one was not made */
    }
    for (unsigned i = 0; result < 0 && i < n; i++) {
        gnutls_pcert_deinit(&chain[i]);
    }
    return result;
}

int vxd_tls_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                     gnutls_pcert_st **certificates, unsigned *n_certificates,
                     gnutls_ocsp_data_st **ocsp, unsigned *n_ocsp, gnutls_privkey_t *key,
                     unsigned *flags)
{
    struct vxd_tls *tls = gnutls_session_get_ptr(session);
    struct vxd_tls_files *files = vxd_tls_files_hold(tls);
    gnutls_pcert_st *chain = gnutls_calloc(files->n_chain, sizeof *chain);
    gnutls_privkey_t copy = NULL;
    int result = chain != NULL ? gnutls_privkey_init(&copy) : GNUTLS_E_MEMORY_ERROR;

    (void)info;
    if (result >= 0) {
        result = copy_to_session(files, chain, copy);
    }
    if (result >= 0) {
        *certificates = chain;
        *n_certificates = files->n_chain;
        *ocsp = NULL;
        *n_ocsp = 0;
        *key = copy;
        *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
        result = 0;
    } else {
        gnutls_free(chain);
        gnutls_privkey_deinit(copy);
        result = -1;
    }
    vxd_tls_files_drop(files);
    return result;
}
