// SPDX-License-Identifier: Apache-2.0
/* TLS for both transports, by GnuTLS: the daemon's certificate and key, who may connect with a
 * certificate of their own, and sessions over a socket. TLS 1.2 and 1.3, with forward secrecy.
 *
 * The files are read again at SIGHUP. Handshakes from then on get the new certificate; standing
 * connections go on, and their peers' certificates are judged anew with their next request.
 * Everything here is for any thread, but that each session is used by one thread at a time. */
#ifndef VXD_SERVER_TRANSPORT_TLS_TLS_H
#define VXD_SERVER_TRANSPORT_TLS_TLS_H

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <sys/types.h>

#include "proto/base/name.h"
#include "server/config/config.h"

struct vxd_tls;

/* Which versions and ciphers are possible, as GnuTLS writes it. */
#define VXD_TLS_PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA"

/* Reads the files of config's section tls; *out is NULL where it names no certificate.
 *
 * errors  NOT_FOUND            a file that cannot be read; err.field is its key in all cases
 *         PERMISSION_DENIED    the key's file can be read by every user of the machine
 *         INVALID_ARGUMENT     no PEM, a key that is encrypted or does not belong to the certificate
 *         FAILED_PRECONDITION  the certificate's time is over, or has not begun; *out is there all
 *                              the same, so that a caller may go on with it
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_tls_create(const struct vxd_config *config, struct vxd_tls **out,
                               struct vxd_err *err);
/* Reads them again, perhaps from other paths. On any error, FAILED_PRECONDITION too, what was there
 * stays. */
enum vxd_status vxd_tls_reload(struct vxd_tls *tls, const struct vxd_config *config,
                               struct vxd_err *err);
/* With all of its sessions gone. NULL is fine. */
void vxd_tls_destroy(struct vxd_tls *tls);

/* When the certificate ends, Unix time in seconds. */
int64_t vxd_tls_expires_unix_s(struct vxd_tls *tls);
/* Handshakes that were refused or did not end. */
uint64_t vxd_tls_n_failed(const struct vxd_tls *tls);

/* Makes a GnuTLS session of the server's side, which whoever calls has made (libmicrohttpd, say),
 * take certificates from here and ask its peer for one where that is wanted. Before the handshake. */
void vxd_tls_attach(struct vxd_tls *tls, gnutls_session_t session);
/* Gives a session, which is attached, the certificate and key of now: for
 * gnutls_certificate_set_retrieve_function3 and MHD_OPTION_HTTPS_CERT_CALLBACK2. */
int vxd_tls_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                     gnutls_pcert_st **certificates, unsigned *n_certificates,
                     gnutls_ocsp_data_st **ocsp, unsigned *n_ocsp, gnutls_privkey_t *key,
                     unsigned *flags);
void vxd_tls_count_failed(struct vxd_tls *tls);
/* Whether our certificate is for this host. */
bool vxd_tls_is_our_host(struct vxd_tls *tls, const char *host);
/* Sends what fits into the socket as a whole, and that nothing follows. */
bool vxd_tls_send_last(gnutls_session_t session, const void *bytes, size_t n_bytes);

/* Who is at the other end of a session, as far as its certificate says. All zeros to begin with. */
struct vxd_tls_peer {
    uint64_t generation; /* of the files that it was judged by */
    /* The token that tls.client_names gives to its certificate; "" = none. */
    char token_name[VXD_NAME_BYTES];
};

/* Judges the peer of a session whose handshake is over, unless it was by the files of now. False:
 * these do not accept it any more, and its connection is to be ended. */
bool vxd_tls_judge(struct vxd_tls *tls, gnutls_session_t session,
                   struct vxd_tls_peer *peer);

/* A session over a socket that does not block, for a transport of our own. */
struct vxd_tls_session;

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_tls_session_create(struct vxd_tls *tls, int fd,
                                       struct vxd_tls_session **out, struct vxd_err *err);
/* Says good-bye to the peer, if the socket takes it at once. NULL is fine. */
void vxd_tls_session_destroy(struct vxd_tls_session *session);

enum vxd_tls_progress {
    VXD_TLS_DONE,
    VXD_TLS_READS,  /* goes on when the socket can be read */
    VXD_TLS_WRITES, /* goes on when the socket can be written */
    VXD_TLS_FAILED
};

/* Goes on with the handshake. why, "" unless it failed, is valid until the session's end. */
enum vxd_tls_progress vxd_tls_session_handshake(struct vxd_tls_session *session,
                                                const char **why);
/* As vxd_tls_judge. */
bool vxd_tls_session_judge(struct vxd_tls_session *session, struct vxd_tls_peer *peer);

/* As recv(2) and send(2) of a socket that does not block: -1 and errno EAGAIN where there is nothing
 * to do now. After such a send the next one must begin with the same bytes. Bytes that were received
 * and not taken do not wake anybody: has_more says whether there are some. */
ssize_t vxd_tls_session_recv(struct vxd_tls_session *session, void *bytes,
                             size_t n_bytes);
ssize_t vxd_tls_session_send(struct vxd_tls_session *session, const void *bytes,
                             size_t n_bytes);
bool vxd_tls_session_has_more(struct vxd_tls_session *session);

#endif
