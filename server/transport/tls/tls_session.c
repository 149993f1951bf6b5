// SPDX-License-Identifier: Apache-2.0
/* Sessions over sockets that do not block. */
#include <errno.h>
#include <stdlib.h>

#include "server/transport/tls/tls_internal.h"

struct vxd_tls_session {
    struct vxd_tls *tls;
    gnutls_session_t session;
    bool is_open; /* its handshake is over */
    const char *why;
};

enum vxd_status vxd_tls_session_create(struct vxd_tls *tls, int fd,
                                       struct vxd_tls_session **out, struct vxd_err *err)
{
    struct vxd_tls_session *session = calloc(1, sizeof *session);

    *out = NULL;
    if (session == NULL ||
        gnutls_init(&session->session, GNUTLS_SERVER | GNUTLS_NONBLOCK |
                                           GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS) < 0) {
        free(session);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a TLS session");
    }
    session->tls = tls;
    session->why = "";
    if (gnutls_priority_set(session->session, tls->priorities) < 0 ||
        gnutls_credentials_set(session->session, GNUTLS_CRD_CERTIFICATE,
                               tls->credentials) < 0) {
        vxd_tls_session_destroy(session);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a TLS session");
    }
    vxd_tls_attach(tls, session->session);
    gnutls_transport_set_int(session->session, fd);
    *out = session;
    return VXD_OK;
}

void vxd_tls_session_destroy(struct vxd_tls_session *session)
{
    if (session != NULL) {
        if (session->is_open) {
            (void)gnutls_bye(session->session, GNUTLS_SHUT_WR);
        }
        gnutls_deinit(session->session);
        free(session);
    }
}

enum vxd_tls_progress vxd_tls_session_handshake(struct vxd_tls_session *session,
                                                const char **why)
{
    int result;

    *why = session->why;
    if (session->is_open) {
        return VXD_TLS_DONE;
    }
    do {
        result = gnutls_handshake(session->session);
    } while (result == GNUTLS_E_INTERRUPTED || result == GNUTLS_E_WARNING_ALERT_RECEIVED);
    if (result == GNUTLS_E_AGAIN) {
        return gnutls_record_get_direction(session->session) == 0 ? VXD_TLS_READS
                                                                  : VXD_TLS_WRITES;
    }
    if (result < 0) {
        vxd_tls_count_failed(session->tls);
        (void)gnutls_alert_send_appropriate(session->session, result);
        session->why = gnutls_strerror(result);
        *why = session->why;
        return VXD_TLS_FAILED;
    }
    session->is_open = true;
    return VXD_TLS_DONE;
}

bool vxd_tls_session_judge(struct vxd_tls_session *session, struct vxd_tls_peer *peer)
{
    return vxd_tls_judge(session->tls, session->session, peer);
}

/* What GnuTLS says, as a socket says it. */
static ssize_t as_socket(ssize_t result)
{
    if (result >= 0) {
        return result;
    }
    if (result == GNUTLS_E_AGAIN) {
        errno = EAGAIN;
    } else if (result == GNUTLS_E_INTERRUPTED) {
        errno = EINTR;
    } else {
        errno =
            ECONNRESET; /* the peer's fault: a broken record, or a wish for another handshake */
    }
    return -1;
}

ssize_t vxd_tls_session_recv(struct vxd_tls_session *session, void *bytes, size_t n_bytes)
{
    return as_socket(gnutls_record_recv(session->session, bytes, n_bytes));
}

ssize_t vxd_tls_session_send(struct vxd_tls_session *session, const void *bytes,
                             size_t n_bytes)
{
    return as_socket(gnutls_record_send(session->session, bytes, n_bytes));
}

bool vxd_tls_session_has_more(struct vxd_tls_session *session)
{
    return gnutls_record_check_pending(session->session) > 0;
}
