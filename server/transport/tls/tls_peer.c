// SPDX-License-Identifier: Apache-2.0
/* Judges the certificates of clients, and finds the token that is given to one. */
#include <stdlib.h>
#include <string.h>

#include "server/transport/tls/tls_internal.h"

/* Longer chains than this nobody has. */
#define MAX_CHAIN 8
#define NAME_BYTES 512

/* The token of a name; false where it has none. */
static bool find_name(const struct vxd_tls_files *files, const char *name, size_t n_name,
                      char token_name[VXD_NAME_BYTES])
{
    for (size_t i = 0; i < files->n_names; i++) {
        const char *equals = strrchr(files->names[i], '=');

        if (equals != NULL && (size_t)(equals - files->names[i]) == n_name &&
            memcmp(files->names[i], name, n_name) == 0) {
            (void)snprintf(token_name, VXD_NAME_BYTES, "%s", equals + 1);
            return true;
        }
    }
    return false;
}

/* Looks at the names that say who somebody is: those for hosts, URIs and mail, and the common one. */
static void find_token(const struct vxd_tls_files *files, gnutls_x509_crt_t certificate,
                       char token_name[VXD_NAME_BYTES])
{
    char name[NAME_BYTES];
    size_t n = sizeof name;
    int type;

    for (unsigned i = 0; i < NAME_BYTES; i++) {
        n = sizeof name;
        type = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &n, NULL);
        if (type == GNUTLS_E_SHORT_MEMORY_BUFFER) {
            continue;
        }
        if (type < 0) {
            break;
        }
        if ((type == GNUTLS_SAN_DNSNAME || type == GNUTLS_SAN_URI ||
             type == GNUTLS_SAN_RFC822NAME) &&
            find_name(files, name, strnlen(name, n), token_name)) {
            return;
        }
    }
    n = sizeof name;
    if (gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0,
                                      name, &n) >= 0) {
        (void)find_name(files, name, strnlen(name, n), token_name);
    }
}

/* Whether the authorities have signed it, for clients, and its time is now. */
static bool is_signed(const struct vxd_tls_files *files, gnutls_x509_crt_t *chain,
                      unsigned n_chain)
{
    gnutls_typed_vdata_st purpose = {
        .type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned problems = 0;

    return gnutls_x509_trust_list_verify_crt2(files->client_ca, chain, n_chain, &purpose,
                                              1, 0, &problems, NULL) >= 0 &&
           problems == 0;
}

bool vxd_tls_files_judge(const struct vxd_tls_files *files, gnutls_session_t session,
                         char token_name[VXD_NAME_BYTES])
{
    gnutls_x509_crt_t chain[MAX_CHAIN];
    const gnutls_datum_t *sent;
    unsigned n_sent = 0;
    unsigned n_chain = 0;
    bool is_good;

    token_name[0] = '\0';
    if (files->client_ca == NULL) {
        return true;
    }
    sent = gnutls_certificate_get_peers(session, &n_sent);
    if (sent == NULL || n_sent == 0) {
        return !files->is_required;
    }
    if (n_sent > MAX_CHAIN) {
        return false;
    }
    is_good = true;
    while (is_good && n_chain < n_sent) {
        is_good = gnutls_x509_crt_init(&chain[n_chain]) >= 0;
        if (is_good) {
            is_good = gnutls_x509_crt_import(chain[n_chain], &sent[n_chain],
                                             GNUTLS_X509_FMT_DER) >= 0;
            n_chain++;
        }
    }
    is_good = is_good && is_signed(files, chain, n_chain);
    if (is_good) {
        find_token(files, chain[0], token_name);
    }
    for (unsigned i = 0; i < n_chain; i++) {
        gnutls_x509_crt_deinit(chain[i]);
    }
    return is_good;
}

bool vxd_tls_judge(struct vxd_tls *tls, gnutls_session_t session,
                   struct vxd_tls_peer *peer)
{
    struct vxd_tls_files *files = vxd_tls_files_hold(tls);
    bool is_good = true;

    if (peer->generation != files->generation) {
        is_good = vxd_tls_files_judge(files, session, peer->token_name);
        peer->generation = is_good ? files->generation : 0;
    }
    vxd_tls_files_drop(files);
    return is_good;
}
