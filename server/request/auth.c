// SPDX-License-Identifier: Apache-2.0
#include "server/request/auth.h"

#include <errno.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/request/login_guard.h"

enum {
    MAX_TOKENS = 4096,
    LINE_BYTES = 512
};

#define HEX_DIGITS ((size_t)2 * SHA256_DIGEST_SIZE)

struct token {
    char name[VXD_NAME_BYTES];
    uint32_t scopes;
    uint8_t digest[SHA256_DIGEST_SIZE];
};

struct token_list {
    struct token *tokens;
    size_t n;
};

struct vxd_auth {
    char path[VXD_PATH_BYTES]; /* "" = no tokens */
    uint32_t uids[VXD_CONFIG_MAX_UIDS];
    size_t n_uids;
    pthread_mutex_t mutex; /* guards list */
    struct token_list list;
    struct vxd_login_guard *guard;
};

static const struct {
    const char *name;
    enum vxd_scope scope;
} scope_names[] = {
    {"read", VXD_SCOPE_READ},
    {"write", VXD_SCOPE_WRITE},
    {"admin", VXD_SCOPE_ADMIN},
};

static bool parse_scopes(const char *text, uint32_t *out)
{
    *out = 0;
    for (;;) {
        size_t n = strcspn(text, ",");
        bool known = false;

        for (size_t i = 0; i < sizeof scope_names / sizeof scope_names[0]; i++) {
            if (strlen(scope_names[i].name) == n &&
                memcmp(scope_names[i].name, text, n) == 0) {
                *out |= (uint32_t)scope_names[i].scope;
                known = true;
            }
        }
        if (!known) {
            return false;
        }
        if (text[n] == '\0') {
            return true;
        }
        text += n + 1;
    }
}

static bool parse_digest(const char *text, uint8_t out[SHA256_DIGEST_SIZE])
{
    if (strlen(text) != HEX_DIGITS ||
        strspn(text, "0123456789abcdefABCDEF") != HEX_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};

        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

/* Parses a line that is neither empty nor a comment: NAME SCOPES SHA256HEX. */
static enum vxd_status parse_line(const char *path, int number, char *line,
                                  struct token *out, struct vxd_err *err)
{
    static const char spaces[] = " \t\r\n";
    char *rest = NULL;
    const char *name = strtok_r(line, spaces, &rest);
    const char *scopes = strtok_r(NULL, spaces, &rest);
    const char *digest = strtok_r(NULL, spaces, &rest);

    if (digest == NULL || strtok_r(NULL, spaces, &rest) != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "auth.tokens_file",
                        "%.100s:%d: a line is NAME SCOPES SHA256HEX", path, number);
    }
    if (!vxd_is_name(name)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "auth.tokens_file",
                        "%.100s:%d: a name is [a-z0-9][a-z0-9._-]{0,62}", path, number);
    }
    if (!parse_scopes(scopes, &out->scopes)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "auth.tokens_file",
                        "%.100s:%d: scopes are a comma list of read, write, admin", path,
                        number);
    }
    if (!parse_digest(digest, out->digest)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "auth.tokens_file",
                        "%.100s:%d: the hash must be 64 hexadecimal digits (sha256sum of "
                        "the token)",
                        path, number);
    }
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    return VXD_OK;
}

static enum vxd_status read_tokens(const char *path, FILE *file, struct token_list *out,
                                   struct vxd_err *err)
{
    char line[LINE_BYTES];

    for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        enum vxd_status status;

        if (strchr(line, '\n') == NULL && feof(file) == 0) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "auth.tokens_file",
                            "%.100s:%d: the line has more than %d bytes", path, number,
                            LINE_BYTES - 2);
        }
        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, " \t\r\n")] == '\0') {
            continue;
        }
        if (out->n == MAX_TOKENS) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "auth.tokens_file",
                            "%.100s:%d: more than %d tokens", path, number, MAX_TOKENS);
        }
        status = parse_line(path, number, line, &out->tokens[out->n], err);
        if (status != VXD_OK) {
            return status;
        }
        out->n++;
    }
    if (ferror(file) != 0) {
        return vxd_fail(err, VXD_NOT_FOUND, "auth.tokens_file", "cannot read %.100s: %s",
                        path, strerror(errno));
    }
    return VXD_OK;
}

static enum vxd_status load(const char *path, struct token_list *out, struct vxd_err *err)
{
    struct token_list list = {0};
    enum vxd_status status;
    FILE *file;

    *out = list;
    if (path[0] == '\0') {
        return VXD_OK;
    }
    file = fopen(path, "rb");
    if (file == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, "auth.tokens_file", "cannot open %.100s: %s",
                        path, strerror(errno));
    }
    list.tokens = calloc(MAX_TOKENS, sizeof *list.tokens);
    if (list.tokens == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the tokens");
        goto out;
    }
    VXD_TRY(read_tokens(path, file, &list, err));
    *out = list;
    list.tokens = NULL;
out:
    free(list.tokens);
    (void)fclose(file);
    return status;
}

enum vxd_status vxd_auth_create(const struct vxd_config *config, struct vxd_auth **out,
                                struct vxd_err *err)
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
    VXD_TRY(vxd_login_guard_create(config->failed_logins, &auth->guard, err));
    VXD_TRY(load(auth->path, &auth->list, err));
    *out = auth;
    auth = NULL;
out:
    vxd_auth_destroy(auth);
    return status;
}

enum vxd_status vxd_auth_reload(struct vxd_auth *auth, struct vxd_err *err)
{
    struct token_list fresh;
    struct token_list old;
    enum vxd_status status = load(auth->path, &fresh, err);

    if (status != VXD_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&auth->mutex);
    old = auth->list;
    auth->list = fresh;
    (void)pthread_mutex_unlock(&auth->mutex);
    free(old.tokens);
    return VXD_OK;
}

void vxd_auth_destroy(struct vxd_auth *auth)
{
    if (auth != NULL) {
        (void)pthread_mutex_destroy(&auth->mutex);
        vxd_login_guard_destroy(auth->guard);
        free(auth->list.tokens);
        free(auth);
    }
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

/* Compares with every token whatever it finds, so that the time it takes shows nothing
 * but the number of tokens. */
static bool find_token(struct vxd_auth *auth, const uint8_t digest[SHA256_DIGEST_SIZE],
                       struct vxd_principal *out)
{
    bool found = false;

    (void)pthread_mutex_lock(&auth->mutex);
    for (size_t i = 0; i < auth->list.n; i++) {
        const struct token *token = &auth->list.tokens[i];

        if (memeql_sec(token->digest, digest, SHA256_DIGEST_SIZE) != 0 && !found) {
            memcpy(out->name, token->name, sizeof out->name);
            out->scopes = token->scopes;
            found = true;
        }
    }
    (void)pthread_mutex_unlock(&auth->mutex);
    return found;
}

static enum vxd_status log_in(struct vxd_auth *auth, const char *token, const char *peer,
                              int64_t peer_uid, struct vxd_principal *out,
                              struct vxd_err *err)
{
    char user[32];
    struct vxd_principal found = {0};
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    bool is_good;
    enum vxd_status status;

    sha256_init(&hash);
    sha256_update(&hash, strlen(token), (const uint8_t *)token);
    sha256_digest(&hash, sizeof digest, digest);
    is_good = find_token(auth, digest, &found);
    if (peer_uid >= 0) { /* on this host, whichever process it is */
        (void)snprintf(user, sizeof user, "uid-%lld", (long long)peer_uid);
        peer = user;
    }
    status =
        vxd_login_guard_judge(auth->guard, peer, digest, is_good, vxd_clock_ns(), err);
    if (status == VXD_OK) {
        *out = found;
    }
    return status;
}

enum vxd_status vxd_auth_identify(struct vxd_auth *auth, const char *token,
                                  const char *peer, int64_t peer_uid,
                                  struct vxd_principal *out, struct vxd_err *err)
{
    bool has_token = token != NULL && token[0] != '\0';

    if (auth->path[0] != '\0' && has_token) {
        return log_in(auth, token, peer, peer_uid, out, err);
    }
    if (auth->path[0] != '\0' && !is_trusted(auth, peer_uid)) {
        return vxd_fail(err, VXD_UNAUTHENTICATED, NULL, "a token is required");
    }
    if (peer_uid >= 0) {
        (void)snprintf(out->name, sizeof out->name, "uid-%lld", (long long)peer_uid);
    } else {
        (void)snprintf(out->name, sizeof out->name, "anonymous");
    }
    out->scopes = VXD_ALL_SCOPES;
    return VXD_OK;
}

enum vxd_status vxd_auth_identify_certified(struct vxd_auth *auth, const char *token_name,
                                            struct vxd_principal *out,
                                            struct vxd_err *err)
{
    bool found = false;

    (void)pthread_mutex_lock(&auth->mutex);
    for (size_t i = 0; i < auth->list.n && !found; i++) {
        const struct token *token = &auth->list.tokens[i];

        if (strcmp(token->name, token_name) == 0) {
            memcpy(out->name, token->name, sizeof out->name);
            out->scopes = token->scopes;
            found = true;
        }
    }
    (void)pthread_mutex_unlock(&auth->mutex);
    return found ? VXD_OK
                 : vxd_fail(err, VXD_UNAUTHENTICATED, NULL,
                            "the certificate is for the token \"%s\", which does not "
                            "exist",
                            token_name);
}

enum vxd_status vxd_auth_require(const struct vxd_principal *principal,
                                 enum vxd_scope scope, struct vxd_err *err)
{
    if ((principal->scopes & (uint32_t)scope) != 0) {
        return VXD_OK;
    }
    for (size_t i = 0; i < sizeof scope_names / sizeof scope_names[0]; i++) {
        if (scope_names[i].scope == scope) {
            return vxd_fail(err, VXD_PERMISSION_DENIED, NULL, "%s lacks the scope %s",
                            principal->name, scope_names[i].name);
        }
    }
    return vxd_fail(err, VXD_PERMISSION_DENIED, NULL, "%s lacks scope %u",
                    principal->name, (unsigned)scope);
}
