// SPDX-License-Identifier: Apache-2.0
/* Who may do what: bearer tokens kept as SHA-256 hashes in a file, and the peer's uid on
 * ipc sockets. */
#ifndef VXD_SERVER_REQUEST_AUTH_H
#define VXD_SERVER_REQUEST_AUTH_H

#include "server/config/config.h"

enum vxd_scope {
    VXD_SCOPE_READ = 1,
    VXD_SCOPE_WRITE = 2,
    VXD_SCOPE_ADMIN = 4
};

#define VXD_ALL_SCOPES 7u

/* Who sends a request. The name is for logs; the token is never kept. */
struct vxd_principal {
    char name[64];
    uint32_t scopes;
};

struct vxd_auth;

/* Reads config->tokens_file (lines "NAME SCOPES SHA256HEX", # comments; NAME as names are,
 * SCOPES a comma list of read, write, admin). Also what SIGHUP calls: a bad new file keeps
 * the old tokens. errors  INVALID_ARGUMENT (file and line), NOT_FOUND. Thread-safe. */
enum vxd_status vxd_auth_create(const struct vxd_config *config, struct vxd_auth **out,
                                struct vxd_err *err);
enum vxd_status vxd_auth_reload(struct vxd_auth *auth, struct vxd_err *err);
void vxd_auth_destroy(struct vxd_auth *auth);

/* Identifies the sender. Where tokens are configured, everybody but trusted ipc peers
 * needs one; where none are, every peer that can connect has all scopes. peer_uid is -1
 * where it is unknown. The comparison takes the same time for any wrong token.
 *
 * in      peer  as the request's; whoever fails too often is refused for a while (login_guard.h)
 * errors  UNAUTHENTICATED     a token is missing or unknown
 *         RESOURCE_EXHAUSTED  too many failed logins from the peer's address */
enum vxd_status vxd_auth_identify(struct vxd_auth *auth, const char *token,
                                  const char *peer, int64_t peer_uid,
                                  struct vxd_principal *out, struct vxd_err *err);

/* Identifies a sender without a token by the name of the token that tls.client_names gives to its
 * certificate, which was judged.
 * errors  UNAUTHENTICATED  there is no token of this name any more */
enum vxd_status vxd_auth_identify_certified(struct vxd_auth *auth, const char *token_name,
                                            struct vxd_principal *out,
                                            struct vxd_err *err);

/* errors  PERMISSION_DENIED  names the scope that is missing */
enum vxd_status vxd_auth_require(const struct vxd_principal *principal,
                                 enum vxd_scope scope, struct vxd_err *err);

#endif
