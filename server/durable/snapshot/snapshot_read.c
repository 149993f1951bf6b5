// SPDX-License-Identifier: Apache-2.0
/* A snapshot file, little-endian; CRCs are CRC32C:
 *
 *      0   8  "VXDSNP\r\n"
 *      8   4  version of this layout, 1
 *     12   4  version of the rules by which its contents came to be
 *     16   8  the family's id
 *     24   8  its epoch
 *     32   8  sequence: all records up to this one are in
 *     40   8  when it was taken, ns since 1970
 *     48  64  the family's name, zeros behind it
 *    112  12  zeros
 *    124   4  CRC of the bytes 0 to 123
 *   then chunks:
 *      0   4  kind: 1 catalogue, 2 image, 3 log-odds, 255 end; none is below the one before
 *      4   4  n, bytes in it, 1 to 2^20
 *      8   8  its number, from 0
 *     16   4  CRC of the bytes 0 to 15 of it and of what follows byte 24, going on from the CRC
 *             of the file's head: so a chunk of another file, or from elsewhere in this one, is
 *             none
 *     20   4  zeros
 *     24   n  the bytes, and zeros up to a multiple of 8
 *   the last is the end, n = 16:
 *     24   8  chunks before it
 *     32   8  bytes of the file before it
 *   and nothing behind it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "proto/base/crc32c.h"
#include "server/durable/record/record.h"
#include "server/durable/snapshot/snapshot_internal.h"

struct vxd_snapshot_reader {
    const struct vxd_file_ops *ops;
    struct vxd_snapshot_head head;
    int file;
    uint32_t head_crc;
    enum vxd_snapshot_kind last_kind; /* that bytes were asked of */
    uint64_t n_file_bytes;
    uint64_t at;       /* of the chunk, */
    uint64_t n_chunks; /* its number, */
    bool has_head;     /* and whether its head was read: */
    enum vxd_snapshot_kind kind;
    size_t n_payload;
    uint32_t crc;
    bool has_payload; /* whether its bytes are in `payload`, checked, */
    size_t n_given;   /* and how many of them were given */
    char path[VXD_DURABLE_PATH_BYTES];
    uint8_t crc_begin[16];
    uint8_t payload[VXD_SNAPSHOT_CHUNK_BYTES + 8];
};

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static enum vxd_status
damaged(struct vxd_err *err, const struct vxd_snapshot_reader *reader, uint64_t at,
        const char *format, ...)
{
    const char *name = strrchr(reader->path, '/');
    char message[120];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return vxd_fail(err, VXD_DATA_LOSS, "snapshot", "%s is damaged at byte %llu: %s",
                    name != NULL ? name + 1 : reader->path, (unsigned long long)at,
                    message);
}

static enum vxd_status read_at(struct vxd_snapshot_reader *reader, void *to,
                               size_t n_bytes, uint64_t at, struct vxd_err *err)
{
    if (at > reader->n_file_bytes || n_bytes > reader->n_file_bytes - at) {
        return damaged(err, reader, at, "the file ends");
    }
    return vxd_file_read_all(reader->ops, reader->file, to, n_bytes, at, reader->path,
                             err);
}

static enum vxd_status read_head(struct vxd_snapshot_reader *reader, uint32_t family,
                                 uint64_t sequence, struct vxd_err *err)
{
    uint8_t bytes[VXD_SNAPSHOT_HEAD_BYTES] = {0};
    struct vxd_snapshot_head *head = &reader->head;
    const struct vxd_record_owner *owner;
    uint32_t known;
    enum vxd_status status;

    VXD_TRY(read_at(reader, bytes, sizeof bytes, 0, err));
    if (vxd_get64(bytes) != VXD_SNAPSHOT_MAGIC) {
        return damaged(err, reader, 0, "not a snapshot");
    }
    reader->head_crc = vxd_crc32c(0, bytes, sizeof bytes - 4);
    if (vxd_get32(bytes + sizeof bytes - 4) != reader->head_crc) {
        return damaged(err, reader, sizeof bytes - 4, "the head's CRC is wrong");
    }
    if (vxd_get32(bytes + 8) != VXD_SNAPSHOT_LAYOUT) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "snapshot",
                        "%.100s is of layout %u; this program knows %d: a newer server "
                        "wrote it",
                        reader->path, vxd_get32(bytes + 8), VXD_SNAPSHOT_LAYOUT);
    }
    head->rules_version = vxd_get32(bytes + 12);
    owner = vxd_record_find_owner(head->rules_version);
    known = owner != NULL ? owner->rules_version : 0;
    if (head->rules_version > known) {
        return vxd_fail(
            err, VXD_FAILED_PRECONDITION, "snapshot",
            "%.100s is of rules %u; this program knows those up to %u: a newer "
            "server wrote it",
            reader->path, head->rules_version, known);
    }
    if (vxd_get64(bytes + 16) != family || vxd_get64(bytes + 32) != sequence) {
        return damaged(err, reader, 16, "it is another family's, or of another sequence");
    }
    if (bytes[48] == 0 || bytes[48 + VXD_SNAPSHOT_NAME_BYTES - 1] != 0) {
        return damaged(err, reader, 48, "not a name");
    }
    head->family = family;
    head->epoch = vxd_get64(bytes + 24);
    head->sequence = sequence;
    head->unix_ns = (int64_t)vxd_get64(bytes + 40);
    memcpy(head->name, bytes + 48, VXD_SNAPSHOT_NAME_BYTES);
    reader->at = VXD_SNAPSHOT_HEAD_BYTES;
out:
    return status;
}

enum vxd_status vxd_snapshot_open(const struct vxd_data_dir *dir, uint32_t family,
                                  uint64_t sequence, struct vxd_snapshot_reader **out,
                                  struct vxd_err *err)
{
    struct vxd_snapshot_reader *reader = calloc(1, sizeof *reader);
    int64_t n_bytes;
    enum vxd_status status = VXD_OK;

    if (reader == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");
    }
    reader->ops = dir->ops;
    vxd_snapshot_path(dir, family, sequence, "", reader->path);
    reader->file = dir->ops->open(dir->ops->user, reader->path, O_RDONLY, 0);
    if (reader->file < 0) {
        VXD_TRY(vxd_file_fail(err, reader->file, "open", reader->path));
    }
    n_bytes = dir->ops->size(dir->ops->user, reader->file);
    if (n_bytes < 0) {
        VXD_TRY(vxd_file_fail(err, n_bytes, "read", reader->path));
    }
    reader->n_file_bytes = (uint64_t)n_bytes;
    VXD_TRY(read_head(reader, family, sequence, err));
    *out = reader;
    return VXD_OK;
out:
    vxd_snapshot_close(reader);
    return status;
}

const struct vxd_snapshot_head *
vxd_snapshot_get_head(const struct vxd_snapshot_reader *reader)
{
    return &reader->head;
}

uint64_t vxd_snapshot_get_size(const struct vxd_snapshot_reader *reader)
{
    return reader->n_file_bytes;
}

static enum vxd_status read_chunk_head(struct vxd_snapshot_reader *reader,
                                       struct vxd_err *err)
{
    uint8_t bytes[VXD_SNAPSHOT_CHUNK_HEAD_BYTES] = {0};
    uint32_t kind;
    enum vxd_status status;

    VXD_TRY(read_at(reader, bytes, sizeof bytes, reader->at, err));
    kind = vxd_get32(bytes);
    reader->n_payload = vxd_get32(bytes + 4);
    if (((kind < VXD_SNAPSHOT_CATALOGUE || kind > VXD_SNAPSHOT_UPKEEP) &&
         kind != VXD_SNAPSHOT_END) ||
        reader->n_payload < 1 || reader->n_payload > VXD_SNAPSHOT_CHUNK_BYTES ||
        vxd_get64(bytes + 8) != reader->n_chunks || vxd_get32(bytes + 20) != 0 ||
        (reader->n_chunks > 0 && kind < (uint32_t)reader->kind)) {
        return damaged(err, reader, reader->at, "not the head of chunk %llu",
                       (unsigned long long)reader->n_chunks);
    }
    reader->kind = (enum vxd_snapshot_kind)kind;
    reader->crc = vxd_get32(bytes + 16);
    memcpy(reader->crc_begin, bytes, sizeof reader->crc_begin);
    reader->has_head = true;
    reader->has_payload = false;
    reader->n_given = 0;
out:
    return status;
}

/* Reads the chunk's bytes to `to`, and checks them. */
static enum vxd_status read_payload(struct vxd_snapshot_reader *reader, uint8_t *to,
                                    struct vxd_err *err)
{
    size_t padded = vxd_snapshot_padded(reader->n_payload);
    uint64_t at = reader->at + VXD_SNAPSHOT_CHUNK_HEAD_BYTES;
    uint8_t zeros[8] = {0};
    uint32_t crc = vxd_crc32c(reader->head_crc, reader->crc_begin, 16);
    enum vxd_status status;

    VXD_TRY(read_at(reader, to, reader->n_payload, at, err));
    VXD_TRY(
        read_at(reader, zeros, padded - reader->n_payload, at + reader->n_payload, err));
    crc = vxd_crc32c(crc, to, reader->n_payload);
    crc = vxd_crc32c(crc, zeros, padded - reader->n_payload);
    if (crc != reader->crc) {
        status = damaged(err, reader, reader->at + 16, "the CRC of chunk %llu is wrong",
                         (unsigned long long)reader->n_chunks);
    }
out:
    return status;
}

static void leave_chunk(struct vxd_snapshot_reader *reader)
{
    reader->at += VXD_SNAPSHOT_CHUNK_HEAD_BYTES + vxd_snapshot_padded(reader->n_payload);
    reader->n_chunks++;
    reader->has_head = false;
}

/* Gives up to n_bytes of the chunk; one that fits as a whole is read to where it goes. */
static enum vxd_status give(struct vxd_snapshot_reader *reader, uint8_t *to,
                            size_t n_bytes, size_t *n_given, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;
    size_t n;

    if (!reader->has_payload && reader->n_payload <= n_bytes) {
        VXD_TRY(read_payload(reader, to, err));
        *n_given = reader->n_payload;
        leave_chunk(reader);
        return VXD_OK;
    }
    if (!reader->has_payload) {
        VXD_TRY(read_payload(reader, reader->payload, err));
        reader->has_payload = true;
    }
    n = reader->n_payload - reader->n_given;
    n = n < n_bytes ? n : n_bytes;
    memcpy(to, reader->payload + reader->n_given, n);
    reader->n_given += n;
    *n_given = n;
    if (reader->n_given == reader->n_payload) {
        leave_chunk(reader);
    }
out:
    return status;
}

enum vxd_status vxd_snapshot_read(struct vxd_snapshot_reader *reader,
                                  enum vxd_snapshot_kind kind, void *to, size_t n_bytes,
                                  size_t *n_read, struct vxd_err *err)
{
    uint8_t *next = to;
    enum vxd_status status = VXD_OK;

    *n_read = 0;
    if (kind < reader->last_kind || kind >= VXD_SNAPSHOT_END ||
        (reader->has_head && reader->kind < kind)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "kind",
                        "%d is out of order, or chunks before it were not read",
                        (int)kind);
    }
    reader->last_kind = kind;
    while (n_bytes > 0) {
        size_t n;

        if (!reader->has_head) {
            VXD_TRY(read_chunk_head(reader, err));
        }
        if (reader->kind < kind) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "kind",
                            "chunks before it were not read");
        }
        if (reader->kind > kind) {
            break;
        }
        VXD_TRY(give(reader, next, n_bytes, &n, err));
        next += n;
        n_bytes -= n;
        *n_read += n;
    }
out:
    return status;
}

enum vxd_status vxd_snapshot_read_end(struct vxd_snapshot_reader *reader,
                                      struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (!reader->has_head) {
        VXD_TRY(read_chunk_head(reader, err));
    }
    if (reader->kind != VXD_SNAPSHOT_END) {
        return damaged(err, reader, reader->at, "more chunks than were asked for");
    }
    VXD_TRY(read_payload(reader, reader->payload, err));
    if (reader->n_payload != VXD_SNAPSHOT_END_BYTES ||
        vxd_get64(reader->payload) != reader->n_chunks ||
        vxd_get64(reader->payload + 8) != reader->at) {
        return damaged(err, reader, reader->at, "not this file's end");
    }
    leave_chunk(reader);
    if (reader->at != reader->n_file_bytes) {
        status = damaged(err, reader, reader->at, "bytes behind the end");
    }
out:
    return status;
}

enum vxd_status vxd_snapshot_skip_to_end(struct vxd_snapshot_reader *reader,
                                         struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (;;) {
        if (!reader->has_head) {
            VXD_TRY(read_chunk_head(reader, err));
        }
        if (reader->kind == VXD_SNAPSHOT_END) {
            return vxd_snapshot_read_end(reader, err);
        }
        if (!reader->has_payload) {
            VXD_TRY(read_payload(reader, reader->payload, err));
        }
        leave_chunk(reader);
    }
out:
    return status;
}

void vxd_snapshot_close(struct vxd_snapshot_reader *reader)
{
    if (reader != NULL) {
        if (reader->file >= 0) {
            (void)reader->ops->close(reader->ops->user, reader->file);
        }
        free(reader);
    }
}
