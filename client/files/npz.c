// SPDX-License-Identifier: Apache-2.0
/* Reads NumPy's .npz: a zip archive of .npy members. The points are the first member that is one
 * N x C array or has fields x, y and z.
 *
 *   end record, in the last 22 to 65,557 bytes:
 *     0 4 "PK\5\6"   10 2 members   12 4 size of the directory   16 4 where it begins
 *   directory, one entry a member:
 *     0 4 "PK\1\2"   8 2 flags (1 = encrypted)   10 2 method (0 stored, 8 deflated)
 *     16 4 CRC-32    20 4 bytes packed   24 4 bytes unpacked   28 2 name, 30 2 extra,
 *     32 2 comment lengths   42 4 where the local header begins   46 the name
 *   local header, before a member's bytes:
 *     0 4 "PK\3\4"   26 2 name, 28 2 extra lengths   30 the name, the extra
 *
 * Sizes are taken from the directory, so numpy's habit of writing zip64 extras into local
 * headers does no harm; archives over 4 GiB, which need zip64 throughout, are refused. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "client/files/reader.h"

enum {
    END_BYTES = 22,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    MAX_COMMENT = 65535,
    ENCRYPTED = 1,
    STORED = 0,
    DEFLATED = 8,
    /* So many bytes of a member show what array it is; mostly the first ones alone. */
    PROBE_BYTES = 16384,
    FIRST_PROBE_BYTES = 256,
    /* What looking at members may take in all: bytes, and for each of them so many more. An archive of
     * 65,534 members, all of them one and the same, took seconds. */
    MAX_PROBES_BYTES = 16 << 20,
    PROBE_COST_BYTES = 1024,
    INFLATE_COST_BYTES = 3072,
    /* Deflate cannot pack better than this. */
    MAX_RATIO = 1032
};

struct member {
    unsigned method;
    unsigned flags;
    uint32_t crc;
    size_t n_packed;
    size_t n_unpacked;
    size_t local_at;
    const uint8_t *name;
    size_t n_name;
    const uint8_t *packed;
};

static unsigned u16(const uint8_t *p)
{
    return (unsigned)p[0] | (unsigned)p[1] << 8;
}

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16;
}

static enum vxd_status find_directory(const uint8_t *bytes, size_t n_bytes, size_t *at,
                                      size_t *n_members, struct vxd_err *err)
{
    size_t lowest;

    if (n_bytes < END_BYTES) {
        return VXD_FILE_BAD(err, "npz: %zu bytes are too few for a zip archive", n_bytes);
    }
    lowest = n_bytes - END_BYTES;
    lowest = lowest > MAX_COMMENT ? lowest - MAX_COMMENT : 0;
    for (size_t end = n_bytes - END_BYTES + 1; end-- > lowest;) {
        const uint8_t *p = bytes + end;

        if (u32(p) != 0x06054b50 || u16(p + 20) != n_bytes - end - END_BYTES) {
            continue;
        }
        *n_members = u16(p + 10);
        *at = u32(p + 16);
        if (*n_members == 0xffff || *at == 0xffffffff || u32(p + 12) == 0xffffffff) {
            return VXD_FILE_BAD(err,
                                "npz: archives over 4 GiB (zip64) are not supported");
        }
        if (*at > end || u32(p + 12) > end - *at) {
            return VXD_FILE_BAD(err,
                                "npz: the directory of %lu bytes at byte %zu lies "
                                "outside the file",
                                (unsigned long)u32(p + 12), *at);
        }
        return VXD_OK;
    }
    return VXD_FILE_BAD(err, "npz: no end record: not a zip archive, or cut short");
}

/* Reads the directory's entry at *at and moves *at after it. */
static enum vxd_status read_entry(const uint8_t *bytes, size_t n_bytes, size_t *at,
                                  struct member *m, struct vxd_err *err)
{
    const uint8_t *p = bytes + *at;
    size_t n_rest;

    if (n_bytes - *at < ENTRY_BYTES || u32(p) != 0x02014b50) {
        return VXD_FILE_BAD(err, "npz: no directory entry at byte %zu", *at);
    }
    n_rest = (size_t)u16(p + 28) + u16(p + 30) + u16(p + 32);
    if (n_rest > n_bytes - *at - ENTRY_BYTES) {
        return VXD_FILE_BAD(err, "npz: the directory entry at byte %zu is cut short",
                            *at);
    }
    m->flags = u16(p + 8);
    m->method = u16(p + 10);
    m->crc = u32(p + 16);
    m->n_packed = u32(p + 20);
    m->n_unpacked = u32(p + 24);
    m->n_name = u16(p + 28);
    m->local_at = u32(p + 42);
    m->name = p + ENTRY_BYTES;
    *at += ENTRY_BYTES + n_rest;
    return VXD_OK;
}

static bool is_npy(const struct member *m)
{
    return m->n_name > 4 && memcmp(m->name + m->n_name - 4, ".npy", 4) == 0;
}

static enum vxd_status locate(const uint8_t *bytes, size_t n_bytes, struct member *m,
                              struct vxd_err *err)
{
    const uint8_t *p;
    size_t skip;

    if ((m->flags & ENCRYPTED) != 0 || (m->method != STORED && m->method != DEFLATED)) {
        return VXD_FILE_BAD(
            err,
            "npz: the member at byte %zu is encrypted or packed by method "
            "%u; 0 (stored) and 8 (deflated) are known",
            m->local_at, m->method);
    }
    if (m->n_packed == 0xffffffff || m->n_unpacked == 0xffffffff ||
        m->local_at == 0xffffffff) {
        return VXD_FILE_BAD(err, "npz: members over 4 GiB (zip64) are not supported");
    }
    if (m->local_at > n_bytes || n_bytes - m->local_at < LOCAL_BYTES ||
        u32(bytes + m->local_at) != 0x04034b50) {
        return VXD_FILE_BAD(err, "npz: no member at byte %zu", m->local_at);
    }
    p = bytes + m->local_at;
    skip = LOCAL_BYTES + (size_t)u16(p + 26) + u16(p + 28);
    if (skip > n_bytes - m->local_at || m->n_packed > n_bytes - m->local_at - skip ||
        (m->method == STORED && m->n_packed != m->n_unpacked)) {
        return VXD_FILE_BAD(err,
                            "npz: the member at byte %zu has %zu bytes, more than follow",
                            m->local_at, m->n_packed);
    }
    if (m->n_unpacked / MAX_RATIO > m->n_packed) {
        return VXD_FILE_BAD(
            err,
            "npz: the member at byte %zu claims %zu bytes out of %zu, more "
            "than deflate can pack",
            m->local_at, m->n_unpacked, m->n_packed);
    }
    m->packed = p + skip;
    return VXD_OK;
}

/* Unpacks at most n_out bytes from the member's beginning; returns how many there
 * were. */
static bool inflate_member(const struct member *m, uint8_t *out, size_t n_out,
                           size_t *n_got, bool *complete)
{
    z_stream stream;
    int result;

    memset(&stream, 0, sizeof stream);
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        return false;
    }
    /* Both lengths came from 32-bit fields. */
    stream.next_in = (z_const Bytef *)m->packed;
    stream.avail_in = (uInt)m->n_packed;
    stream.next_out = out;
    stream.avail_out = (uInt)n_out;
    result = inflate(&stream, Z_FINISH);
    *n_got = n_out - stream.avail_out;
    *complete = result == Z_STREAM_END;
    (void)inflateEnd(&stream);
    return result == Z_STREAM_END || result == Z_BUF_ERROR || result == Z_OK;
}

/* How many bytes of a .npy file, of which n_bytes are here, are its header; 0: it is none. */
static size_t header_bytes(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes < 12) {
        return 0;
    }
    return bytes[6] <= 1 ? 10 + (size_t)u16(bytes + 8) : 12 + (size_t)u32(bytes + 8);
}

/* Whether a member is the points, by its header; *cost_bytes is what it took to look. */
static bool member_is_cloud(const struct member *m, size_t *cost_bytes)
{
    uint8_t probe[PROBE_BYTES];
    const uint8_t *bytes = m->packed;
    size_t n_got = m->n_packed < PROBE_BYTES ? m->n_packed : PROBE_BYTES;
    size_t n_header;
    bool complete;

    *cost_bytes = PROBE_COST_BYTES;
    if (m->method == DEFLATED) {
        bytes = probe;
        *cost_bytes += INFLATE_COST_BYTES;
        if (!inflate_member(m, probe, FIRST_PROBE_BYTES, &n_got, &complete)) {
            return false;
        }
        if (header_bytes(probe, n_got) > n_got && !complete) {
            *cost_bytes += PROBE_BYTES;
            (void)inflate_member(m, probe, sizeof probe, &n_got, &complete);
        }
    }
    n_header = header_bytes(bytes, n_got);
    if (n_header == 0 || n_header > n_got) {
        return false;
    }
    *cost_bytes += n_header;
    return vxd_npy_is_cloud(bytes, n_got);
}

static enum vxd_status read_member(const struct member *m, size_t budget_bytes,
                                   struct vxd_cloud_file *out, struct vxd_err *err)
{
    const uint8_t *bytes = m->packed;
    uint8_t *unpacked = NULL;
    size_t n_got = 0;
    bool complete = false;
    enum vxd_status status;

    if (m->method == DEFLATED) {
        VXD_TRY(vxd_file_alloc(&budget_bytes, m->n_unpacked, &unpacked, err));
        if (!inflate_member(m, unpacked, m->n_unpacked, &n_got, &complete) || !complete ||
            n_got != m->n_unpacked) {
            status = VXD_FILE_BAD(
                err, "npz: the member at byte %zu does not unpack to %zu bytes",
                m->local_at, m->n_unpacked);
            goto out;
        }
        bytes = unpacked;
    }
    if (crc32_z(0, bytes, m->n_unpacked) != m->crc) {
        status = VXD_FILE_BAD(err, "npz: the checksum of the member at byte %zu is wrong",
                              m->local_at);
        goto out;
    }
    VXD_TRY(vxd_npy_parse(bytes, m->n_unpacked, budget_bytes, out, err));
    if (out->owned == NULL) {
        out->owned = unpacked;
        unpacked = NULL;
    }
out:
    free(unpacked);
    return status;
}

enum vxd_status vxd_npz_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                              struct vxd_cloud_file *out, struct vxd_err *err)
{
    size_t n_members = 0;
    size_t at = 0;
    size_t n_left = MAX_PROBES_BYTES;
    enum vxd_status status;

    VXD_TRY(find_directory(bytes, n_bytes, &at, &n_members, err));
    for (size_t i = 0; i < n_members; i++) {
        struct member m = {0};
        size_t cost_bytes;

        VXD_TRY(read_entry(bytes, n_bytes, &at, &m, err));
        if (!is_npy(&m)) {
            continue;
        }
        VXD_TRY(locate(bytes, n_bytes, &m, err));
        if (member_is_cloud(&m, &cost_bytes)) {
            return read_member(&m, budget_bytes, out, err);
        }
        if (cost_bytes > n_left) {
            return VXD_FILE_BAD(
                err,
                "npz: none of its first %zu members of %zu is the points, "
                "and to look at more takes too long; save the points first",
                i + 1, n_members);
        }
        n_left -= cost_bytes;
    }
    return VXD_FILE_BAD(err,
                        "npz: none of the %zu members is an N x C array of numbers with "
                        "C >= 3, or records with x, y, z",
                        n_members);
out:
    return status;
}
