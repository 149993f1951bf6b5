// SPDX-License-Identifier: Apache-2.0
/* The tokens file: a line a token, "NAME SCOPES SHA256HEX [KEY=VALUE ...]", # comments. NAME is as
 * names are, but for those that senders without a token have (anonymous, uid-...); SCOPES is a comma
 * list of read, write, admin; the rules behind the hash are those of rules.h. */
#ifndef VXD_SERVER_ACCESS_TOKEN_FILE_H
#define VXD_SERVER_ACCESS_TOKEN_FILE_H

#include <nettle/sha2.h>

#include "proto/base/name.h"
#include "server/access/rules.h"

struct vxd_account;

struct vxd_token {
    char name[VXD_NAME_BYTES];
    uint32_t scopes;
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct vxd_rules *rules;     /* NULL: it has none */
    struct vxd_account *account; /* auth.c sets it */
};

struct vxd_token_list {
    struct vxd_token *tokens;
    size_t n;
};

/* Reads a file; "" gives an empty list.
 * errors  INVALID_ARGUMENT  (file and line), NOT_FOUND, RESOURCE_EXHAUSTED; *out is empty then
 *         PERMISSION_DENIED  every user of the machine can read or write it */
enum vxd_status vxd_token_file_read(const char *path,
                                    const struct vxd_method_names *methods,
                                    struct vxd_token_list *out, struct vxd_err *err);

/* The same from text, for tests and fuzzing; `path` stands for the file in messages. */
enum vxd_status vxd_token_file_parse(const char *path, const char *text, size_t n_bytes,
                                     const struct vxd_method_names *methods,
                                     struct vxd_token_list *out, struct vxd_err *err);

void vxd_token_list_clear(struct vxd_token_list *list);

/* Reads and writes a comma list of scopes. False where a word is none. */
bool vxd_scopes_read(const char *text, uint32_t *out);
void vxd_scopes_write(uint32_t scopes, char *out, size_t n_bytes);

#endif
