// SPDX-License-Identifier: Apache-2.0
#include "server/access/auth.h"

#include <inttypes.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "server/access/login_guard.h"
#include "server/access/signed_token.h"
#include "server/access/token_file.h"

struct vxd_auth {
    char path[VXD_PATH_BYTES]; /* "" = no tokens */
    bool requires_token;       /* over HTTP, whatever path is */
    uint32_t uids[VXD_CONFIG_MAX_UIDS];
    size_t n_uids;
    const struct vxd_method_names *methods;
    struct vxd_token_key key;
    struct vxd_accounts *accounts;
    pthread_mutex_t mutex; /* guards list and has_held_quota */
    struct vxd_token_list list;
    bool has_held_quota; /* a token has one of what it made */
    struct vxd_login_guard *guard;
};

static enum vxd_status load(struct vxd_auth *auth, struct vxd_token_list *out,
                            struct vxd_err *err)
{
    enum vxd_status status = vxd_token_file_read(auth->path, auth->methods, out, err);

    for (size_t i = 0; i < out->n; i++) {
        out->tokens[i].account = vxd_accounts_find(auth->accounts, out->tokens[i].name);
    }
    return status;
}

static bool has_held_quota(const struct vxd_token_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct vxd_quota *q = vxd_rules_quota(list->tokens[i].rules);

        if (q->max_bytes > 0) {
            return true;
        }
        for (int noun = 0; noun < VXD_N_NOUNS; noun++) {
            if (q->max_held[noun] > 0) {
                return true;
            }
        }
    }
    return false;
}

enum vxd_status vxd_auth_create(const struct vxd_config *config,
                                const struct vxd_method_names *methods,
                                struct vxd_auth **out, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;
    struct vxd_auth *auth = calloc(1, sizeof *auth);

    if (auth == NULL || pthread_mutex_init(&auth->mutex, NULL) != 0) {
        free(auth);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the tokens");
    }
    memcpy(auth->path, config->tokens_file, sizeof auth->path);
    memcpy(auth->uids, config->ipc_uids, sizeof auth->uids);
    auth->n_uids = config->n_ipc_uids;
    auth->requires_token = config->http_require_token;
    auth->methods = methods;
    VXD_TRY(vxd_accounts_create(&auth->accounts, err));
    VXD_TRY(vxd_login_guard_create(config->failed_logins, &auth->guard, err));
    VXD_TRY(vxd_token_key_open(config->data_dir, &auth->key, err));
    VXD_TRY(load(auth, &auth->list, err));
    auth->has_held_quota = has_held_quota(&auth->list);
    *out = auth;
    auth = NULL;
out:
    vxd_auth_destroy(auth);
    return status;
}

enum vxd_status vxd_auth_reload(struct vxd_auth *auth, struct vxd_err *err)
{
    struct vxd_token_list fresh;
    struct vxd_token_list old;
    enum vxd_status status = load(auth, &fresh, err);

    if (status != VXD_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&auth->mutex);
    old = auth->list;
    auth->list = fresh;
    auth->has_held_quota = has_held_quota(&fresh);
    (void)pthread_mutex_unlock(&auth->mutex);
    vxd_token_list_clear(&old);
    return VXD_OK;
}

void vxd_auth_destroy(struct vxd_auth *auth)
{
    if (auth != NULL) {
        (void)pthread_mutex_destroy(&auth->mutex);
        vxd_login_guard_destroy(auth->guard);
        vxd_token_list_clear(&auth->list);
        vxd_accounts_destroy(auth->accounts);
        memset(&auth->key, 0, sizeof auth->key);
        free(auth);
    }
}

/* The quota of the token of a name; none where no token has it. */
static struct vxd_quota quota_of(struct vxd_auth *auth, const char *owner)
{
    struct vxd_quota quota = {0};

    if (auth == NULL) {
        return quota;
    }
    (void)pthread_mutex_lock(&auth->mutex);
    for (size_t i = 0; auth->has_held_quota && i < auth->list.n; i++) {
        if (strcmp(auth->list.tokens[i].name, owner) == 0) {
            quota = *vxd_rules_quota(auth->list.tokens[i].rules);
            break;
        }
    }
    (void)pthread_mutex_unlock(&auth->mutex);
    return quota;
}

enum vxd_status vxd_auth_check_held(struct vxd_auth *auth, const char *owner,
                                    enum vxd_noun noun, size_t n_held,
                                    struct vxd_err *err)
{
    uint32_t limit = quota_of(auth, owner).max_held[noun];

    if (limit == 0 || n_held < limit) {
        return VXD_OK;
    }
    vxd_account_refuse(vxd_accounts_find(auth->accounts, owner), VXD_REFUSED_HELD);
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "%s has %zu %s, max_%s of it is %u (tokens file)", owner, n_held,
                    vxd_noun_plural(noun), vxd_noun_plural(noun), limit);
}

void vxd_auth_note_bytes(struct vxd_auth *auth, const char *owner, uint64_t before,
                         uint64_t now)
{
    if (auth != NULL && owner[0] != '\0' && before != now) {
        vxd_account_note_bytes(vxd_accounts_find(auth->accounts, owner), before, now);
    }
}

/* Of `limit` bytes, what is left beside others. */
static uint64_t rest_of(uint64_t limit, uint64_t others)
{
    return limit > others ? limit - others : 0;
}

/* What max_bytes of the owner's token leaves a thing that has `own` bytes; UINT64_MAX: there is no
 * such quota. */
static uint64_t quota_left(struct vxd_auth *auth, const char *owner, uint64_t own,
                           uint64_t *max_bytes)
{
    uint64_t all;

    *max_bytes = quota_of(auth, owner).max_bytes;
    if (*max_bytes == 0) {
        return UINT64_MAX;
    }
    all = vxd_account_bytes(vxd_accounts_find(auth->accounts, owner));
    return rest_of(*max_bytes, rest_of(all, own));
}

struct vxd_owner_bytes vxd_auth_allow_bytes(struct vxd_auth *auth, const char *owner,
                                            uint64_t own, uint64_t others, uint64_t limit,
                                            const char *key)
{
    struct vxd_owner_bytes of_noun = {rest_of(limit, others), limit, key};
    struct vxd_owner_bytes of_token = {.key = "max_bytes in the tokens file"};

    of_token.left = quota_left(auth, owner, own, &of_token.limit);
    return of_token.left < of_noun.left ? of_token : of_noun;
}

enum vxd_status vxd_auth_check_bytes(struct vxd_auth *auth, const char *owner,
                                     uint64_t own, uint64_t n_bytes, const char *what,
                                     struct vxd_err *err)
{
    uint64_t limit;
    uint64_t left = quota_left(auth, owner, own, &limit);

    if (n_bytes <= left) {
        return VXD_OK;
    }
    vxd_account_refuse(vxd_accounts_find(auth->accounts, owner), VXD_REFUSED_HELD);
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "%s would take %" PRIu64
                    " bytes; max_bytes in the tokens file, which is "
                    "%" PRIu64 " for all that %s has, leaves it %" PRIu64,
                    what, n_bytes, limit, owner, left);
}

struct vxd_accounts *vxd_auth_accounts(struct vxd_auth *auth)
{
    return auth->accounts;
}

void vxd_principal_clear(struct vxd_principal *principal)
{
    vxd_rules_drop(principal->rules);
    principal->rules = NULL;
}

static bool is_trusted(const struct vxd_auth *auth, int64_t uid)
{
    if (uid < 0) {
        return false;
    }
    if (uid == 0 || uid == (int64_t)geteuid()) {
        return true;
    }
    for (size_t i = 0; i < auth->n_uids; i++) {
        if (uid == (int64_t)auth->uids[i]) {
            return true;
        }
    }
    return false;
}

static void take_token(const struct vxd_token *token, struct vxd_principal *out)
{
    memcpy(out->name, token->name, sizeof out->name);
    out->scopes = token->scopes;
    out->rules = vxd_rules_hold(token->rules);
    out->account = token->account;
    out->is_known = true;
}

/* Compares with every token whatever it finds, so that the time it takes shows nothing
 * but the number of tokens. */
static bool find_token(struct vxd_auth *auth, const uint8_t digest[SHA256_DIGEST_SIZE],
                       struct vxd_principal *out)
{
    bool found = false;

    (void)pthread_mutex_lock(&auth->mutex);
    for (size_t i = 0; i < auth->list.n; i++) {
        const struct vxd_token *token = &auth->list.tokens[i];

        if (memeql_sec(token->digest, digest, SHA256_DIGEST_SIZE) != 0 && !found) {
            take_token(token, out);
            found = true;
        }
    }
    (void)pthread_mutex_unlock(&auth->mutex);
    return found;
}

/* Who may be there without a token. */
static void take_peer(struct vxd_auth *auth, const char *name, bool is_known,
                      struct vxd_principal *out)
{
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    out->scopes = VXD_ALL_SCOPES;
    out->account = vxd_accounts_find(auth->accounts, name);
    out->is_known = is_known;
}

/* The token of a name, as it is now. */
static bool find_named(struct vxd_auth *auth, const char *name, struct vxd_principal *out)
{
    bool found = false;

    (void)pthread_mutex_lock(&auth->mutex);
    for (size_t i = 0; i < auth->list.n && !found; i++) {
        if (strcmp(auth->list.tokens[i].name, name) == 0) {
            take_token(&auth->list.tokens[i], out);
            found = true;
        }
    }
    (void)pthread_mutex_unlock(&auth->mutex);
    return found;
}

/* Finds who issued a token, as they are now. False: they are no more, so neither is the token. */
static bool find_issuer(struct vxd_auth *auth, const char *name,
                        struct vxd_principal *out)
{
    bool found = find_named(auth, name, out);

    if (found) {
        return true;
    }
    if (strncmp(name, "uid-", 4) == 0) {
        found = auth->path[0] == '\0' || is_trusted(auth, strtoll(name + 4, NULL, 10));
    } else {
        found = auth->path[0] == '\0' && strcmp(name, "anonymous") == 0;
    }
    if (found) {
        take_peer(auth, name, true, out);
    }
    return found;
}

/* Gives the principal, which is the issuer, what the token says. */
static enum vxd_status narrow(const struct vxd_signed_token *token,
                              struct vxd_principal *principal, struct vxd_err *err)
{
    char rule[VXD_SIGNED_PREFIXES_BYTES + 8];
    struct vxd_rules *rules;
    enum vxd_status status;

    /* An admin may issue any other scopes. */
    principal->scopes = (principal->scopes & VXD_SCOPE_ADMIN) != 0
                            ? token->scopes
                            : principal->scopes & token->scopes;
    principal->expires_unix_s = token->expires_unix_s;
    principal->issued_id = token->id;
    if (token->prefixes[0] == '\0') {
        return VXD_OK;
    }
    rules = vxd_rules_create(vxd_rules_hold(principal->rules));
    if (rules == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a token");
    }
    (void)snprintf(rule, sizeof rule, "names=%s", token->prefixes);
    status = vxd_rules_read(rules, rule, NULL, err);
    if (status != VXD_OK) {
        vxd_rules_drop(rules);
        return status;
    }
    vxd_rules_drop(principal->rules);
    principal->rules = rules;
    return VXD_OK;
}

static enum vxd_status check_time(const struct vxd_signed_token *token,
                                  struct vxd_err *err)
{
    int64_t now_s = vxd_clock_unix_ns() / 1000000000;

    return now_s < token->expires_unix_s
               ? VXD_OK
               : vxd_fail(
                     err, VXD_UNAUTHENTICATED, NULL,
                     "the token, issued by %s, expired %lld s ago: issue another one",
                     token->issuer, (long long)(now_s - token->expires_unix_s));
}

/* The address that failed logins are counted for: on this host a user, whichever process it is. */
static const char *guarded_peer(const char *peer, int64_t peer_uid, char user[32])
{
    if (peer_uid < 0) {
        return peer;
    }
    (void)snprintf(user, 32, "uid-%lld", (long long)peer_uid);
    return user;
}

static enum vxd_status log_in(struct vxd_auth *auth, const char *text, const char *peer,
                              int64_t peer_uid, struct vxd_principal *out,
                              struct vxd_err *err)
{
    char user[32];
    struct vxd_principal found = {0};
    struct vxd_signed_token token = {0};
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    bool is_signed = vxd_signed_token_read(&auth->key, text, &token);
    bool is_good;
    enum vxd_status status;

    sha256_init(&hash);
    sha256_update(&hash, strlen(text), (const uint8_t *)text);
    sha256_digest(&hash, sizeof digest, digest);
    is_good = is_signed || find_token(auth, digest, &found);
    VXD_TRY(vxd_login_guard_judge(auth->guard, guarded_peer(peer, peer_uid, user), digest,
                                  is_good, vxd_clock_ns(), err));
    if (is_signed) {
        VXD_TRY(check_time(&token, err));
        if (!find_issuer(auth, token.issuer, &found)) {
            VXD_TRY(vxd_fail(err, VXD_UNAUTHENTICATED, NULL,
                             "%s, who issued the token, may not log in any more",
                             token.issuer));
        }
        VXD_TRY(narrow(&token, &found, err));
    }
    *out = found;
    found.rules = NULL;
out:
    vxd_principal_clear(&found);
    return status;
}

bool vxd_auth_http_needs_token(const struct vxd_auth *auth)
{
    return auth->path[0] != '\0' || auth->requires_token;
}

enum vxd_status vxd_auth_identify(struct vxd_auth *auth, const char *token,
                                  const char *peer, int64_t peer_uid,
                                  struct vxd_principal *out, struct vxd_err *err)
{
    bool has_token = token != NULL && token[0] != '\0';
    bool needs_token = strncmp(peer, "http", 4) == 0 ? vxd_auth_http_needs_token(auth)
                                                     : auth->path[0] != '\0';
    char name[VXD_NAME_BYTES] = "anonymous";

    memset(out, 0, sizeof *out);
    (void)snprintf(out->name, sizeof out->name, "unknown");
    /* Without tokens whatever a client sends is as good as none, but for what we have issued. */
    if (has_token && (needs_token || vxd_is_signed_token(token))) {
        return log_in(auth, token, peer, peer_uid, out, err);
    }
    if (needs_token && !is_trusted(auth, peer_uid)) {
        return vxd_fail(err, VXD_UNAUTHENTICATED, NULL, "a token is required");
    }
    if (peer_uid >= 0) {
        (void)snprintf(name, sizeof name, "uid-%lld", (long long)peer_uid);
    }
    take_peer(auth, name, peer_uid >= 0, out);
    return VXD_OK;
}

enum vxd_status vxd_auth_identify_certified(struct vxd_auth *auth, const char *token_name,
                                            struct vxd_principal *out,
                                            struct vxd_err *err)
{
    memset(out, 0, sizeof *out);
    (void)snprintf(out->name, sizeof out->name, "unknown");
    return find_named(auth, token_name, out)
               ? VXD_OK
               : vxd_fail(err, VXD_UNAUTHENTICATED, NULL,
                          "the certificate is for the token \"%s\", which does not "
                          "exist",
                          token_name);
}

enum vxd_status vxd_auth_require(const struct vxd_principal *principal,
                                 enum vxd_scope scope, struct vxd_err *err)
{
    char lacks[32];
    char has[32];

    if ((principal->scopes & (uint32_t)scope) != 0) {
        return VXD_OK;
    }
    vxd_scopes_write((uint32_t)scope, lacks, sizeof lacks);
    vxd_scopes_write(principal->scopes, has, sizeof has);
    vxd_account_refuse(principal->account, VXD_REFUSED_SCOPE);
    return vxd_fail(err, VXD_PERMISSION_DENIED, NULL, "%s lacks the scope %s; it has %s",
                    principal->name, lacks, has[0] != '\0' ? has : "none");
}

enum vxd_status vxd_auth_require_method(const struct vxd_principal *principal,
                                        const char *method, struct vxd_err *err)
{
    if (vxd_rules_allow_method(principal->rules, method)) {
        return VXD_OK;
    }
    vxd_account_refuse(principal->account, VXD_REFUSED_METHOD);
    for (const struct vxd_rules *r = principal->rules; r != NULL; r = r->base) {
        if (r->methods != NULL || r->denied != NULL) {
            return vxd_fail(
                err, VXD_PERMISSION_DENIED, NULL,
                "%s may not call %s: the rules of its token are%s%.70s%s%.70s",
                principal->name, method, r->methods != NULL ? " methods=" : "",
                r->methods != NULL ? r->methods : "", r->denied != NULL ? " deny=" : "",
                r->denied != NULL ? r->denied : "");
        }
    }
    return vxd_fail(err, VXD_PERMISSION_DENIED, NULL, "%s may not call %s",
                    principal->name, method);
}

enum vxd_status vxd_auth_require_name(const struct vxd_principal *principal,
                                      enum vxd_noun noun, const char *name,
                                      const char *field, struct vxd_err *err)
{
    const char *list = vxd_rules_names_list(principal->rules, noun, name);

    if (list == NULL) {
        return VXD_OK;
    }
    vxd_account_refuse(principal->account, VXD_REFUSED_NAME);
    if (strcmp(list, "-") == 0) {
        return vxd_fail(err, VXD_PERMISSION_DENIED, field,
                        "%s may not use %ss at all, by a rule of its token",
                        principal->name, vxd_noun_name(noun));
    }
    return vxd_fail(err, VXD_PERMISSION_DENIED, field,
                    "%.63s may not use the %s %.63s: by the rules of its token the names "
                    "begin with %.80s",
                    principal->name, vxd_noun_name(noun), name, list);
}

/* Writes the prefixes as a comma list, which the issuer has all of. */
static enum vxd_status write_prefixes(const struct vxd_principal *issuer,
                                      const struct vxd_token_terms *terms,
                                      struct vxd_signed_token *out, struct vxd_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < terms->n_prefixes; i++) {
        const char *prefix = terms->prefixes[i];
        char field[32];

        (void)snprintf(field, sizeof field, "prefixes[%zu]", i);
        if (!vxd_is_name(prefix)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "must be the beginning of a name, [a-z0-9][a-z0-9._-]{0,62}");
        }
        if (!vxd_rules_allow_prefix(issuer->rules, prefix)) {
            vxd_account_refuse(issuer->account, VXD_REFUSED_NAME);
            return vxd_fail(err, VXD_PERMISSION_DENIED, field,
                            "%s may not use all names that begin with %.63s itself",
                            issuer->name, prefix);
        }
        if (n + strlen(prefix) + 2 > sizeof out->prefixes) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "prefixes",
                            "have more than %zu bytes together", sizeof out->prefixes);
        }
        n += (size_t)snprintf(out->prefixes + n, sizeof out->prefixes - n, "%s%s",
                              i > 0 ? "," : "", prefix);
    }
    /* Who has an issued token gives its prefixes on: they are in no file. */
    if (terms->n_prefixes == 0 && issuer->expires_unix_s > 0 && issuer->rules != NULL &&
        issuer->rules->names[VXD_N_NOUNS] != NULL) {
        (void)snprintf(out->prefixes, sizeof out->prefixes, "%s",
                       issuer->rules->names[VXD_N_NOUNS]);
    }
    return VXD_OK;
}

enum vxd_status vxd_auth_issue(struct vxd_auth *auth, const struct vxd_principal *issuer,
                               const struct vxd_token_terms *terms, char text[],
                               int64_t *expires_unix_s, uint32_t *scopes,
                               struct vxd_err *err)
{
    struct vxd_signed_token token = {0};
    uint64_t ttl_s = terms->ttl_s > 0 ? terms->ttl_s : VXD_TOKEN_DEFAULT_TTL_S;
    uint32_t wanted = terms->scopes != 0 ? terms->scopes : issuer->scopes;
    enum vxd_status status;

    for (uint32_t scope = 1; scope <= VXD_SCOPE_ADMIN; scope *= 2) {
        if ((wanted & scope) != 0 && (issuer->scopes & VXD_SCOPE_ADMIN) == 0) {
            VXD_TRY(vxd_auth_require(issuer, (enum vxd_scope)scope, err));
        }
    }
    (void)snprintf(token.issuer, sizeof token.issuer, "%s", issuer->name);
    token.scopes = wanted;
    token.expires_unix_s = vxd_clock_unix_ns() / 1000000000 + (int64_t)ttl_s;
    if (issuer->expires_unix_s > 0 && issuer->expires_unix_s < token.expires_unix_s) {
        token.expires_unix_s = issuer->expires_unix_s;
    }
    VXD_TRY(vxd_token_random(&token.id, sizeof token.id, err));
    VXD_TRY(write_prefixes(issuer, terms, &token, err));
    VXD_TRY(vxd_signed_token_write(&auth->key, &token, text, err));
    *expires_unix_s = token.expires_unix_s;
    *scopes = wanted;
out:
    return status;
}
