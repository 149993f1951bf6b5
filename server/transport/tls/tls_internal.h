// SPDX-License-Identifier: Apache-2.0
/* What the files of this folder share; nobody else includes this. */
#ifndef VXD_SERVER_TRANSPORT_TLS_TLS_INTERNAL_H
#define VXD_SERVER_TRANSPORT_TLS_TLS_INTERNAL_H

#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>

#include "server/transport/tls/tls.h"

/* What the files said when they were read last; it goes with its last reference. */
struct vxd_tls_files {
    atomic_int references;
    uint64_t generation;
    gnutls_x509_crt_t *chain; /* the server's, its own certificate first */
    unsigned n_chain;
    gnutls_x509_privkey_t key;
    int64_t begins_unix_s;
    int64_t expires_unix_s;
    gnutls_x509_trust_list_t client_ca; /* NULL: clients are not asked for certificates */
    bool is_required;                   /* that clients have one */
    char (*names)[VXD_PATH_BYTES];      /* "NAME=TOKEN" */
    size_t n_names;
};

struct vxd_tls {
    gnutls_certificate_credentials_t credentials; /* of our own sessions */
    gnutls_priority_t priorities;
    pthread_mutex_t lock; /* guards the pointer */
    struct vxd_tls_files *files;
    atomic_uint_fast64_t n_failed;
};

/* tls_files.c. errors  as vxd_tls_create; of FAILED_PRECONDITION *out is there. */
enum vxd_status vxd_tls_files_read(const struct vxd_config *config, uint64_t generation,
                                   struct vxd_tls_files **out, struct vxd_err *err);
void vxd_tls_files_drop(struct vxd_tls_files *files);
/* The ones of now, with a reference. */
struct vxd_tls_files *vxd_tls_files_hold(struct vxd_tls *tls);

/* tls_peer.c: whether the files accept the peer's certificate, or that it has none; writes the name of
 * the token that is given to it. */
bool vxd_tls_files_judge(const struct vxd_tls_files *files, gnutls_session_t session,
                         char token_name[VXD_NAME_BYTES]);

#endif
