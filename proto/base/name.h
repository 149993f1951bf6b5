// SPDX-License-Identifier: Apache-2.0
/* The names that users choose for maps, scenes, files, clients and streams. */
#ifndef VXD_PROTO_BASE_NAME_H
#define VXD_PROTO_BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The size of a name with its closing zero byte. */
#define VXD_NAME_BYTES 64

/* What a name is, for messages. */
#define VXD_NAME_RULE                                                                    \
    "lower-case letters, digits, \".\", \"_\" and \"-\", at most 63 and first a letter " \
    "or digit"

/* Whether text is a name: [a-z0-9][a-z0-9._-]{0,62}. The empty text is not. */
static inline bool vxd_is_name(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && n < VXD_NAME_BYTES && strchr("._-", text[0]) == NULL &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

#endif
