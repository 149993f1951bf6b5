// SPDX-License-Identifier: Apache-2.0
/* Who sends a request: bearer tokens, kept as SHA-256 hashes in a file or signed by this server, and
 * the peer's uid on unix sockets, and tokens that clients' certificates stand for. */
#ifndef VXD_SERVER_ACCESS_AUTH_H
#define VXD_SERVER_ACCESS_AUTH_H

#include "proto/base/name.h"
#include "server/access/account.h"
#include "server/access/rules.h"
#include "server/config/config.h"

enum vxd_scope {
    VXD_SCOPE_READ = 1,
    VXD_SCOPE_WRITE = 2,
    VXD_SCOPE_ADMIN = 4
};

#define VXD_ALL_SCOPES 7u

/* Who sends a request. The name is for logs, owners and exactly-once; the token is never kept. */
struct vxd_principal {
    char name[VXD_NAME_BYTES];
    uint32_t scopes;
    struct vxd_rules *rules;     /* held; NULL: they limit nothing */
    struct vxd_account *account; /* of the name; lives as long as the server's auth */
    bool is_known; /* by a token or a uid; else senders differ by address alone */
    int64_t expires_unix_s; /* of an issued token; 0: never */
    uint32_t issued_id;     /* of an issued token, for the audit log */
};

struct vxd_auth;

/* Reads config->tokens_file (token_file.h) and the key of signed tokens (signed_token.h).
 *
 * in      methods  what rules may name; NULL: anything. Borrowed for good
 * errors  INVALID_ARGUMENT (file and line), NOT_FOUND, PERMISSION_DENIED (token_file.h),
 *         RESOURCE_EXHAUSTED, INTERNAL */
enum vxd_status vxd_auth_create(const struct vxd_config *config,
                                const struct vxd_method_names *methods,
                                struct vxd_auth **out, struct vxd_err *err);

/* What SIGHUP calls: reads the file again; a bad new one keeps the old tokens. Any thread.
 * errors  as vxd_auth_create */
enum vxd_status vxd_auth_reload(struct vxd_auth *auth, struct vxd_err *err);
void vxd_auth_destroy(struct vxd_auth *auth);

/* Whether who sends over HTTP needs a token, unless trusted as the peer of a unix socket. */
bool vxd_auth_http_needs_token(const struct vxd_auth *auth);

/* Identifies the sender. Where tokens are configured, everybody but trusted peers of unix sockets
 * needs one, and so does every other peer over HTTP where http.require_token is set; else every
 * peer that can connect has all scopes. peer_uid is -1 where it is unknown. The comparison takes
 * the same time for any wrong token.
 *
 * in      peer  as the request's; whoever fails too often is refused for a while (login_guard.h)
 * out     out   vxd_principal_clear gives back what it holds; a zeroed one is fine there, too
 * errors  UNAUTHENTICATED     a token is missing, unknown, or over; says which
 *         RESOURCE_EXHAUSTED  too many failed logins from the peer's address; no memory */
enum vxd_status vxd_auth_identify(struct vxd_auth *auth, const char *token,
                                  const char *peer, int64_t peer_uid,
                                  struct vxd_principal *out, struct vxd_err *err);

/* Identifies a sender without a token by the name of the token that tls.client_names gives to its
 * certificate, which was judged: the token's scopes, rules, quotas and account hold for it.
 *
 * out     out  as vxd_auth_identify's
 * errors  UNAUTHENTICATED  there is no token of this name any more */
enum vxd_status vxd_auth_identify_certified(struct vxd_auth *auth, const char *token_name,
                                            struct vxd_principal *out,
                                            struct vxd_err *err);

void vxd_principal_clear(struct vxd_principal *principal);

/* errors  PERMISSION_DENIED  names the scope that is missing */
enum vxd_status vxd_auth_require(const struct vxd_principal *principal,
                                 enum vxd_scope scope, struct vxd_err *err);

/* errors  PERMISSION_DENIED  names the method and the rule */
enum vxd_status vxd_auth_require_method(const struct vxd_principal *principal,
                                        const char *method, struct vxd_err *err);

/* errors  PERMISSION_DENIED  names the object and what is allowed
 *
 * in      field  of the request, for the error */
enum vxd_status vxd_auth_require_name(const struct vxd_principal *principal,
                                      enum vxd_noun noun, const char *name,
                                      const char *field, struct vxd_err *err);

/* A token with fewer rights than its issuer's. */
struct vxd_token_terms {
    uint32_t scopes;             /* 0 = the issuer's */
    const char *const *prefixes; /* of names of any noun; none = the issuer's */
    size_t n_prefixes;
    uint64_t ttl_s;
};

enum {
    VXD_TOKEN_MAX_TTL_S = 7 * 24 * 3600,
    VXD_TOKEN_DEFAULT_TTL_S = 3600
};

/* Issues a token in the name of its issuer, whose rules, quotas and account hold for it.
 *
 * out     text            for vxd_auth_identify
 *         expires_unix_s  not after the issuer's own
 *         scopes          that it has
 * errors  PERMISSION_DENIED  a scope or prefix that the issuer does not have
 *         INVALID_ARGUMENT   a prefix is none; the token would be too long */
enum vxd_status vxd_auth_issue(struct vxd_auth *auth, const struct vxd_principal *issuer,
                               const struct vxd_token_terms *terms, char text[],
                               int64_t *expires_unix_s, uint32_t *scopes,
                               struct vxd_err *err);

/* Whether whoever has made n_held objects of a noun may make one more.
 *
 * in      auth   NULL: no quota
 *         owner  a principal's name; of names that no token has there is no quota
 * errors  RESOURCE_EXHAUSTED  says the figure, the limit and its key */
enum vxd_status vxd_auth_check_held(struct vxd_auth *auth, const char *owner,
                                    enum vxd_noun noun, size_t n_held,
                                    struct vxd_err *err);

/* Notes that something of the owner took `before` bytes and takes `now`; its things of all nouns
 * count together. Without auth or an owner it does nothing. Any thread. */
void vxd_auth_note_bytes(struct vxd_auth *auth, const char *owner, uint64_t before,
                         uint64_t now);

/* What one thing of an owner may take, with what it takes already. */
struct vxd_owner_bytes {
    uint64_t left;
    uint64_t limit;  /* which that is a part of, and its key */
    const char *key; /* static */
};

/* Finds the tighter one of two limits: max_bytes of the owner's token, which is of all its things, and
 * one of the configuration, which is of those of this thing's noun.
 *
 * in      own     bytes that the thing takes already, as noted
 *         others  bytes of the owner's other things of its noun
 *         limit, key  of the configuration */
struct vxd_owner_bytes vxd_auth_allow_bytes(struct vxd_auth *auth, const char *owner,
                                            uint64_t own, uint64_t others, uint64_t limit,
                                            const char *key);

/* Whether something of the owner may come to take n_bytes, as far as max_bytes of its token goes.
 *
 * in      own  bytes that it takes already, as noted
 *         what is to take them, for the error
 * errors  RESOURCE_EXHAUSTED  says what there is, the limit and its key */
enum vxd_status vxd_auth_check_bytes(struct vxd_auth *auth, const char *owner,
                                     uint64_t own, uint64_t n_bytes, const char *what,
                                     struct vxd_err *err);

/* The accounts of all senders, for the metrics. */
struct vxd_accounts *vxd_auth_accounts(struct vxd_auth *auth);

#endif
