// SPDX-License-Identifier: Apache-2.0
#include "server/access/signed_token.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define HEAD "vxd1."

enum {
    MAC_BYTES = 16,
    MAC_CHARS = 22, /* of 16 bytes, without padding */
    HEAD_BYTES = sizeof HEAD - 1,
    PAYLOAD_BYTES = VXD_NAME_BYTES + VXD_SIGNED_PREFIXES_BYTES + 64
};

enum vxd_status vxd_token_random(void *out, size_t n_bytes, struct vxd_err *err)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, n_bytes) : -1;
    int saved = errno;

    if (fd >= 0) {
        (void)close(fd);
    }
    return n == (ssize_t)n_bytes
               ? VXD_OK
               : vxd_fail(err, VXD_INTERNAL, NULL, "cannot read /dev/urandom: %s",
                          strerror(saved));
}

static enum vxd_status read_key(int fd, const char *path, struct vxd_token_key *out,
                                struct vxd_err *err)
{
    struct stat about;
    uint8_t bytes[sizeof out->bytes + 1];
    ssize_t n;

    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir", "%.150s is no file", path);
    }
    if ((about.st_mode & 077) != 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir",
                        "%.120s signs tokens, and others may read it: chmod 600", path);
    }
    n = read(fd, bytes, sizeof bytes);
    if (n != (ssize_t)sizeof out->bytes) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir",
                        "%.120s is not a key of %zu bytes: remove it, and a start makes "
                        "another; tokens that were issued end with it",
                        path, sizeof out->bytes);
    }
    memcpy(out->bytes, bytes, sizeof out->bytes);
    return VXD_OK;
}

/* Written aside and renamed, so that a key is whole or not there. */
static enum vxd_status make_key(const char *path, struct vxd_token_key *out,
                                struct vxd_err *err)
{
    char aside[600];
    int fd = -1;
    enum vxd_status status;

    (void)snprintf(aside, sizeof aside, "%s.new", path);
    VXD_TRY(vxd_token_random(out->bytes, sizeof out->bytes, err));
    (void)unlink(aside);
    fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 ||
        write(fd, out->bytes, sizeof out->bytes) != (ssize_t)sizeof out->bytes ||
        fsync(fd) != 0 || rename(aside, path) != 0) {
        VXD_TRY(vxd_fail(err, VXD_INTERNAL, "data_dir", "cannot make %.150s: %s", path,
                         strerror(errno)));
    }
out:
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

enum vxd_status vxd_token_key_open(const char *data_dir, struct vxd_token_key *out,
                                   struct vxd_err *err)
{
    char path[592];
    enum vxd_status status;
    int fd;

    if (data_dir[0] == '\0') {
        return vxd_token_random(out->bytes, sizeof out->bytes, err);
    }
    (void)snprintf(path, sizeof path, "%.512s/token.key", data_dir);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT
                   ? make_key(path, out, err)
                   : vxd_fail(err, VXD_INVALID_ARGUMENT, "data_dir",
                              "cannot open %.150s: %s", path, strerror(errno));
    }
    status = read_key(fd, path, out, err);
    (void)close(fd);
    return status;
}

bool vxd_is_signed_token(const char *text)
{
    return strncmp(text, HEAD, HEAD_BYTES) == 0;
}

static void sign(const struct vxd_token_key *key, const char *text, size_t n_bytes,
                 uint8_t out[MAC_BYTES])
{
    struct hmac_sha256_ctx hash;

    hmac_sha256_set_key(&hash, sizeof key->bytes, key->bytes);
    hmac_sha256_update(&hash, n_bytes, (const uint8_t *)text);
    hmac_sha256_digest(&hash, MAC_BYTES, out);
}

/* Writes base64url without padding; returns the number of characters. */
static size_t encode(const uint8_t *bytes, size_t n_bytes, char *out)
{
    struct base64_encode_ctx context;
    size_t n;

    base64url_encode_init(&context);
    n = base64_encode_update(&context, out, n_bytes, bytes);
    n += base64_encode_final(&context, out + n);
    while (n > 0 && out[n - 1] == '=') {
        n--;
    }
    return n;
}

static bool decode(const char *text, size_t n_chars, uint8_t *out, size_t capacity,
                   size_t *n_bytes)
{
    struct base64_decode_ctx context;
    char again[PAYLOAD_BYTES * 2];

    if (BASE64_DECODE_LENGTH(n_chars) > capacity) {
        return false;
    }
    base64url_decode_init(&context);
    *n_bytes = 0;
    if (memchr(text, '=', n_chars) != NULL ||
        base64_decode_update(&context, n_bytes, out, n_chars, text) != 1) {
        return false;
    }
    /* One text for one token: no spaces, no bits that nobody reads. */
    return encode(out, *n_bytes, again) == n_chars && memcmp(again, text, n_chars) == 0;
}

enum vxd_status vxd_signed_token_write(const struct vxd_token_key *key,
                                       const struct vxd_signed_token *token,
                                       char out[VXD_SIGNED_TOKEN_BYTES],
                                       struct vxd_err *err)
{
    char payload[PAYLOAD_BYTES];
    uint8_t mac[MAC_BYTES];
    size_t n_payload = (size_t)snprintf(
        payload, sizeof payload, "%s\n%x\n%" PRIx64 "\n%08" PRIx32 "\n%s", token->issuer,
        token->scopes, (uint64_t)token->expires_unix_s, token->id, token->prefixes);
    size_t n = HEAD_BYTES;

    if (n_payload >= sizeof payload ||
        HEAD_BYTES + BASE64_ENCODE_RAW_LENGTH(n_payload) + 2 + MAC_CHARS + 2 >=
            VXD_SIGNED_TOKEN_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "prefixes",
                        "are too many for a token, which has at most %d characters",
                        VXD_SIGNED_TOKEN_BYTES - 1);
    }
    memcpy(out, HEAD, HEAD_BYTES);
    n += encode((const uint8_t *)payload, n_payload, out + n);
    sign(key, out, n, mac);
    out[n++] = '.';
    n += encode(mac, MAC_BYTES, out + n);
    out[n] = '\0';
    return VXD_OK;
}

/* Reads a number of hexadecimal digits up to a line's end and moves behind it. */
static bool read_hex(const char **at, uint64_t high, uint64_t *out)
{
    char *end = NULL;

    if (strspn(*at, "0123456789abcdef") == 0) {
        return false;
    }
    errno = 0;
    *out = strtoull(*at, &end, 16);
    if (errno != 0 || *end != '\n' || *out > high) {
        return false;
    }
    *at = end + 1;
    return true;
}

/* We wrote it, so a fault of it is one of another version's. */
static bool read_payload(const char *payload, struct vxd_signed_token *out)
{
    size_t n_name = strcspn(payload, "\n");
    const char *at = payload + n_name + 1;
    uint64_t scopes;
    uint64_t expires;
    uint64_t id;

    if (payload[n_name] != '\n' || n_name >= sizeof out->issuer) {
        return false;
    }
    memcpy(out->issuer, payload, n_name);
    out->issuer[n_name] = '\0';
    if (!vxd_is_name(out->issuer) || !read_hex(&at, 7, &scopes) ||
        !read_hex(&at, INT64_MAX, &expires) || !read_hex(&at, UINT32_MAX, &id) ||
        strlen(at) >= sizeof out->prefixes) {
        return false;
    }
    out->scopes = (uint32_t)scopes;
    out->expires_unix_s = (int64_t)expires;
    out->id = (uint32_t)id;
    (void)snprintf(out->prefixes, sizeof out->prefixes, "%s", at);
    return true;
}

bool vxd_signed_token_read(const struct vxd_token_key *key, const char *text,
                           struct vxd_signed_token *out)
{
    const char *dot;
    uint8_t payload[PAYLOAD_BYTES];
    uint8_t given[MAC_CHARS];
    uint8_t mac[MAC_BYTES];
    size_t n_payload;
    size_t n_mac;

    if (!vxd_is_signed_token(text) || strlen(text) >= VXD_SIGNED_TOKEN_BYTES) {
        return false;
    }
    dot = strchr(text + HEAD_BYTES, '.');
    if (dot == NULL || strlen(dot + 1) != MAC_CHARS ||
        !decode(dot + 1, MAC_CHARS, given, sizeof given, &n_mac) || n_mac != MAC_BYTES) {
        return false;
    }
    sign(key, text, (size_t)(dot - text), mac);
    if (memeql_sec(mac, given, MAC_BYTES) == 0 ||
        !decode(text + HEAD_BYTES, (size_t)(dot - text) - HEAD_BYTES, payload,
                sizeof payload - 1, &n_payload)) {
        return false;
    }
    payload[n_payload] = '\0';
    return strlen((const char *)payload) == n_payload &&
           read_payload((const char *)payload, out);
}
