// SPDX-License-Identifier: Apache-2.0
#include "server/access/token_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/access/auth.h"
#include "server/config/config.h"

enum {
    MAX_TOKENS = 4096,
    LINE_BYTES = 4096
};

#define HEX_DIGITS ((size_t)2 * SHA256_DIGEST_SIZE)

/* What the reading functions share. */
struct reader {
    const char *path; /* for messages */
    int line;
    const struct vxd_method_names *methods;
    struct vxd_token_list list;
    size_t capacity;
};

static const struct {
    const char *name;
    enum vxd_scope scope;
} scope_names[] = {
    {"read", VXD_SCOPE_READ},
    {"write", VXD_SCOPE_WRITE},
    {"admin", VXD_SCOPE_ADMIN},
};

bool vxd_scopes_read(const char *text, uint32_t *out)
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

void vxd_scopes_write(uint32_t scopes, char *out, size_t n_bytes)
{
    const char *comma = "";
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < sizeof scope_names / sizeof scope_names[0]; i++) {
        if ((scopes & (uint32_t)scope_names[i].scope) != 0 && n < n_bytes) {
            n += (size_t)snprintf(out + n, n_bytes - n, "%s%s", comma,
                                  scope_names[i].name);
            comma = ",";
        }
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

static enum vxd_status fail_line(const struct reader *r, const char *what,
                                 struct vxd_err *err)
{
    return vxd_fail(err, VXD_INVALID_ARGUMENT, "auth.tokens_file", "%.60s:%d: %.160s",
                    r->path, r->line, what);
}

/* A token of that name would pass for a sender without one. */
static bool is_reserved(const char *name)
{
    return strcmp(name, "anonymous") == 0 || strcmp(name, "unknown") == 0 ||
           strncmp(name, "uid-", 4) == 0;
}

static enum vxd_status check_token(const struct reader *r, const struct vxd_token *token,
                                   struct vxd_err *err)
{
    if (is_reserved(token->name)) {
        return fail_line(r,
                         "anonymous, unknown and uid-... are names of senders without "
                         "a token: take another",
                         err);
    }
    return VXD_OK;
}

/* Reads the rules behind the hash; none make NULL. */
static enum vxd_status parse_rules(const struct reader *r, char *rest,
                                   struct vxd_token *token, struct vxd_err *err)
{
    static const char spaces[] = " \t\r\n";
    char *position = NULL;
    enum vxd_status status = VXD_OK;

    for (const char *word = strtok_r(rest, spaces, &position); word != NULL;
         word = strtok_r(NULL, spaces, &position)) {
        struct vxd_err why = {0};

        if (token->rules == NULL) {
            token->rules = vxd_rules_create(NULL);
        }
        if (token->rules == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no memory for the tokens");
        }
        status = vxd_rules_read(token->rules, word, r->methods, &why);
        if (status == VXD_INVALID_ARGUMENT) {
            return fail_line(r, why.message, err);
        }
        if (status != VXD_OK) {
            *err = why;
            return status;
        }
    }
    return status;
}

/* Parses a line that is neither empty nor a comment. */
static enum vxd_status parse_line(const struct reader *r, char *line,
                                  struct vxd_token *out, struct vxd_err *err)
{
    static const char spaces[] = " \t\r\n";
    char *rest = NULL;
    const char *name = strtok_r(line, spaces, &rest);
    const char *scopes = strtok_r(NULL, spaces, &rest);
    const char *digest = strtok_r(NULL, spaces, &rest);

    if (digest == NULL) {
        return fail_line(r, "a line is NAME SCOPES SHA256HEX, and rules KEY=VALUE", err);
    }
    if (!vxd_is_name(name)) {
        return fail_line(r, "a name is [a-z0-9][a-z0-9._-]{0,62}", err);
    }
    if (!vxd_scopes_read(scopes, &out->scopes)) {
        return fail_line(r, "scopes are a comma list of read, write, admin", err);
    }
    if (!parse_digest(digest, out->digest)) {
        return fail_line(
            r, "the hash must be 64 hexadecimal digits (sha256sum of the token)", err);
    }
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    return rest != NULL ? parse_rules(r, rest, out, err) : VXD_OK;
}

static enum vxd_status grow(struct reader *r, struct vxd_err *err)
{
    size_t capacity = r->capacity > 0 ? 2 * r->capacity : 16;
    struct vxd_token *grown;

    if (r->list.n < r->capacity) {
        return VXD_OK;
    }
    if (r->list.n == MAX_TOKENS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "auth.tokens_file",
                        "%.100s:%d: more than %d tokens", r->path, r->line, MAX_TOKENS);
    }
    grown = realloc(r->list.tokens, capacity * sizeof *grown);
    if (grown == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the tokens");
    }
    r->list.tokens = grown;
    r->capacity = capacity;
    return VXD_OK;
}

static enum vxd_status take_line(struct reader *r, char *line, struct vxd_err *err)
{
    struct vxd_token token = {0};
    enum vxd_status status;

    line[strcspn(line, "#")] = '\0';
    if (line[strspn(line, " \t\r\n")] == '\0') {
        return VXD_OK;
    }
    VXD_TRY(grow(r, err));
    VXD_TRY(parse_line(r, line, &token, err));
    VXD_TRY(check_token(r, &token, err));
    r->list.tokens[r->list.n++] = token;
    token.rules = NULL;
out:
    vxd_rules_drop(token.rules);
    return status;
}

enum vxd_status vxd_token_file_parse(const char *path, const char *text, size_t n_bytes,
                                     const struct vxd_method_names *methods,
                                     struct vxd_token_list *out, struct vxd_err *err)
{
    struct reader r = {.path = path, .methods = methods};
    char line[LINE_BYTES];
    size_t at = 0;
    enum vxd_status status = VXD_OK;

    *out = r.list;
    while (at < n_bytes) {
        const char *end = memchr(text + at, '\n', n_bytes - at);
        size_t n = end != NULL ? (size_t)(end - (text + at)) : n_bytes - at;

        r.line++;
        if (n >= sizeof line) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "auth.tokens_file",
                             "%.100s:%d: the line has more than %d bytes", path, r.line,
                             LINE_BYTES - 1));
        }
        if (memchr(text + at, '\0', n) != NULL) {
            VXD_TRY(fail_line(&r, "the line has a zero byte", err));
        }
        memcpy(line, text + at, n);
        line[n] = '\0';
        VXD_TRY(take_line(&r, line, err));
        at += n + 1;
    }
    *out = r.list;
    r.list = (struct vxd_token_list){0};
out:
    vxd_token_list_clear(&r.list);
    return status;
}

enum vxd_status vxd_token_file_read(const char *path,
                                    const struct vxd_method_names *methods,
                                    struct vxd_token_list *out, struct vxd_err *err)
{
    static const size_t most = (size_t)MAX_TOKENS * LINE_BYTES;
    size_t capacity = (size_t)64 * 1024;
    size_t n_bytes = 0;
    char *text = NULL;
    FILE *file;
    enum vxd_status status = VXD_OK;

    *out = (struct vxd_token_list){0};
    if (path[0] == '\0') {
        return VXD_OK;
    }
    file = fopen(path, "rb");
    if (file == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, "auth.tokens_file", "cannot open %.100s: %s",
                        path, strerror(errno));
    }
    VXD_TRY(vxd_secret_file_check(fileno(file), path, "auth.tokens_file", err));
    for (bool is_first = true; is_first || n_bytes == capacity; is_first = false) {
        char *grown = capacity <= most ? realloc(text, 2 * capacity) : NULL;

        if (grown == NULL) {
            VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "auth.tokens_file",
                             "no memory for %.100s, or it is too large", path));
        }
        text = grown;
        capacity *= 2;
        n_bytes += fread(text + n_bytes, 1, capacity - n_bytes, file);
    }
    if (ferror(file) != 0) {
        VXD_TRY(vxd_fail(err, VXD_NOT_FOUND, "auth.tokens_file", "cannot read %.100s: %s",
                         path, strerror(errno)));
    }
    VXD_TRY(vxd_token_file_parse(path, text, n_bytes, methods, out, err));
out:
    free(text);
    (void)fclose(file);
    return status;
}

void vxd_token_list_clear(struct vxd_token_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        vxd_rules_drop(list->tokens[i].rules);
    }
    free(list->tokens);
    *list = (struct vxd_token_list){0};
}
