// SPDX-License-Identifier: Apache-2.0
/* A segment of the archive. Integers are little-endian.
 *
 *      0  magic    "VXARCHIV"
 *      8  version  4, now 1
 *     12  crc      4, CRC32C of these 64 bytes with zeros here
 *     16  line 8, first 8, n 8, from_ns 8, to_ns 8, n_bytes 8 (of the file)
 *     64  n transactions: number 8, n_bytes 8, crc 4 (CRC32C of number, n_bytes and the bytes),
 *         zero 4, then the bytes: a row of the spool (journal_spool.c)
 *
 * It is written as .NAME.new, its head last, synced and renamed, so that it is there as a whole or
 * not at all. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/crc32c.h"
#include "server/durable/archive/archive.h"

enum {
    SEGMENT_VERSION = 1
};

struct head {
    char magic[8];
    uint32_t version;
    uint32_t crc;
    struct vxd_segment_head fields;
};

struct entry {
    uint64_t number;
    uint64_t n_bytes;
    uint32_t crc;
    uint32_t zero;
};

static_assert(sizeof(struct head) == 64, "a segment's head has no padding");
static_assert(sizeof(struct entry) == 24, "a transaction's head has no padding");

struct vxd_segment_writer {
    const struct vxd_file_ops *ops;
    int file;
    uint64_t at;
    struct vxd_segment_head head;
    char folder[VXD_DATA_DIR_BYTES];
    char name[VXD_DURABLE_PATH_BYTES];
    char aside[VXD_DURABLE_PATH_BYTES];
};

void vxd_segment_name(uint64_t line, uint64_t first, char out[VXD_SEGMENT_NAME_BYTES])
{
    (void)snprintf(out, VXD_SEGMENT_NAME_BYTES, "%016llx.%016llx.vxa",
                   (unsigned long long)line, (unsigned long long)first);
}

bool vxd_segment_parse_name(const char *name, uint64_t *line, uint64_t *first)
{
    static const char digits[] = "0123456789abcdef";

    if (strlen(name) != VXD_SEGMENT_NAME_BYTES - 1 || strspn(name, digits) != 16 ||
        name[16] != '.' || strspn(name + 17, digits) != 16 ||
        strcmp(name + 33, ".vxa") != 0) {
        return false;
    }
    *line = strtoull(name, NULL, 16);
    *first = strtoull(name + 17, NULL, 16);
    return true;
}

static uint32_t entry_crc(const struct entry *entry, const void *bytes)
{
    uint32_t crc = vxd_crc32c(0, &entry->number, sizeof entry->number);

    crc = vxd_crc32c(crc, &entry->n_bytes, sizeof entry->n_bytes);
    return vxd_crc32c(crc, bytes, entry->n_bytes);
}

static uint32_t head_crc(const struct head *head)
{
    struct head copy = *head;

    copy.crc = 0;
    return vxd_crc32c(0, &copy, sizeof copy);
}

/* Writing ---------------------------------------------------------------------------------- */

enum vxd_status vxd_segment_begin(const struct vxd_file_ops *ops, const char *folder,
                                  uint64_t line, uint64_t first,
                                  struct vxd_segment_writer **out, struct vxd_err *err)
{
    struct vxd_segment_writer *writer = calloc(1, sizeof *writer);
    char name[VXD_SEGMENT_NAME_BYTES];

    if (writer == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a segment");
    }
    writer->ops = ops;
    writer->at = sizeof(struct head);
    writer->head = (struct vxd_segment_head){.line = line, .first = first};
    vxd_segment_name(line, first, name);
    (void)snprintf(writer->folder, sizeof writer->folder, "%s", folder);
    (void)snprintf(writer->name, sizeof writer->name, "%s/%s", writer->folder, name);
    (void)snprintf(writer->aside, sizeof writer->aside, "%s/.%s.new", writer->folder,
                   name);
    writer->file = ops->open(ops->user, writer->aside, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (writer->file < 0) {
        enum vxd_status status = vxd_file_fail(err, writer->file, "make", writer->aside);

        free(writer);
        return status;
    }
    *out = writer;
    return VXD_OK;
}

enum vxd_status vxd_segment_add(struct vxd_segment_writer *writer, const void *bytes,
                                size_t n_bytes, struct vxd_err *err)
{
    struct entry entry = {.number = writer->head.first + writer->head.n,
                          .n_bytes = n_bytes};
    struct vxd_archived when;
    enum vxd_status status;

    VXD_TRY(vxd_journal_archived_read(bytes, n_bytes, &when, err));
    entry.crc = entry_crc(&entry, bytes);
    VXD_TRY(vxd_file_write_all(writer->ops, writer->file, &entry, sizeof entry,
                               writer->at, writer->aside, err));
    VXD_TRY(vxd_file_write_all(writer->ops, writer->file, bytes, n_bytes,
                               writer->at + sizeof entry, writer->aside, err));
    writer->at += sizeof entry + n_bytes;
    if (writer->head.n == 0) {
        writer->head.from_ns = when.unix_ns;
    }
    writer->head.to_ns = when.unix_ns;
    writer->head.n++;
out:
    return status;
}

uint64_t vxd_segment_size(const struct vxd_segment_writer *writer)
{
    return writer->at;
}

static void free_writer(struct vxd_segment_writer *writer)
{
    if (writer->file >= 0) {
        (void)writer->ops->close(writer->ops->user, writer->file);
        (void)writer->ops->unlink(writer->ops->user, writer->aside);
    }
    free(writer);
}

enum vxd_status vxd_segment_conclude(struct vxd_segment_writer *take_writer,
                                     struct vxd_segment_head *out, struct vxd_err *err)
{
    struct vxd_segment_writer *writer = take_writer;
    const struct vxd_file_ops *ops = writer->ops;
    struct head head = {.version = SEGMENT_VERSION, .fields = writer->head};
    int result;
    enum vxd_status status;

    memcpy(head.magic, "VXARCHIV", sizeof head.magic);
    head.fields.n_bytes = writer->at;
    head.crc = head_crc(&head);
    VXD_TRY(
        vxd_file_write_all(ops, writer->file, &head, sizeof head, 0, writer->aside, err));
    result = ops->sync(ops->user, writer->file);
    if (result != 0) {
        VXD_TRY(vxd_file_fail(err, result, "sync", writer->aside));
    }
    result = ops->rename(ops->user, writer->aside, writer->name);
    if (result != 0) {
        VXD_TRY(vxd_file_fail(err, result, "rename", writer->aside));
    }
    (void)ops->close(ops->user, writer->file);
    writer->file = -1;
    VXD_TRY(vxd_file_sync_directory(ops, writer->folder, err));
    *out = head.fields;
out:
    free_writer(writer);
    return status;
}

void vxd_segment_abandon(struct vxd_segment_writer *take_writer)
{
    if (take_writer != NULL) {
        free_writer(take_writer);
    }
}

/* Reading ---------------------------------------------------------------------------------- */

struct reader {
    const struct vxd_file_ops *ops;
    int file;
    uint64_t n_file_bytes;
    const char *path;
    const char *name;
    struct vxd_err *err;
};

static enum vxd_status damaged(const struct reader *reader, uint64_t at, const char *what)
{
    return vxd_fail(reader->err, VXD_DATA_LOSS, "archive_dir",
                    "%s is damaged at byte %llu: %s", reader->name,
                    (unsigned long long)at, what);
}

static enum vxd_status read_head(const struct reader *reader, struct head *head)
{
    uint64_t line;
    uint64_t first;
    enum vxd_status status = VXD_OK;

    if (reader->n_file_bytes < sizeof *head) {
        return damaged(reader, 0, "it ends in its head");
    }
    VXD_TRY(vxd_file_read_all(reader->ops, reader->file, head, sizeof *head, 0,
                              reader->path, reader->err));
    if (memcmp(head->magic, "VXARCHIV", sizeof head->magic) != 0 ||
        head->crc != head_crc(head)) {
        return damaged(reader, 0, "its head is none");
    }
    if (head->version != SEGMENT_VERSION) {
        return vxd_fail(reader->err, VXD_FAILED_PRECONDITION, "archive_dir",
                        "%s is of version %u; this program knows %d", reader->name,
                        head->version, SEGMENT_VERSION);
    }
    if (!vxd_segment_parse_name(reader->name, &line, &first) ||
        line != head->fields.line || first != head->fields.first) {
        return damaged(reader, 16, "it is of another name");
    }
    if (head->fields.n_bytes != reader->n_file_bytes || head->fields.n < 1) {
        return damaged(reader, 56, "its size is not as in its head");
    }
out:
    return status;
}

static enum vxd_status read_entry(const struct reader *reader, uint64_t number,
                                  uint64_t *at, uint8_t **bytes, size_t *n_bytes)
{
    struct entry entry;
    enum vxd_status status = VXD_OK;

    if (reader->n_file_bytes - *at < sizeof entry) {
        return damaged(reader, *at, "it ends too early");
    }
    VXD_TRY(vxd_file_read_all(reader->ops, reader->file, &entry, sizeof entry, *at,
                              reader->path, reader->err));
    if (entry.number != number ||
        entry.n_bytes > reader->n_file_bytes - *at - sizeof entry) {
        return damaged(reader, *at, "no transaction's head");
    }
    *bytes = malloc(entry.n_bytes > 0 ? entry.n_bytes : 1);
    if (*bytes == NULL) {
        return vxd_fail(reader->err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for a transaction of %llu bytes",
                        (unsigned long long)entry.n_bytes);
    }
    VXD_TRY(vxd_file_read_all(reader->ops, reader->file, *bytes, entry.n_bytes,
                              *at + sizeof entry, reader->path, reader->err));
    if (entry.crc != entry_crc(&entry, *bytes)) {
        return damaged(reader, *at, "a transaction's CRC does not fit");
    }
    *n_bytes = entry.n_bytes;
    *at += sizeof entry + entry.n_bytes;
out:
    return status;
}

static enum vxd_status open_reader(struct reader *reader, const char *folder,
                                   char path[2 * VXD_DURABLE_PATH_BYTES])
{
    int64_t n_bytes;

    (void)snprintf(path, 2 * (size_t)VXD_DURABLE_PATH_BYTES, "%s/%s", folder,
                   reader->name);
    reader->path = path;
    reader->file = reader->ops->open(reader->ops->user, path, O_RDONLY, 0);
    if (reader->file < 0) {
        return vxd_file_fail(reader->err, reader->file, "open", path);
    }
    n_bytes = reader->ops->size(reader->ops->user, reader->file);
    if (n_bytes < 0) {
        (void)reader->ops->close(reader->ops->user, reader->file);
        return vxd_file_fail(reader->err, n_bytes, "read", path);
    }
    reader->n_file_bytes = (uint64_t)n_bytes;
    return VXD_OK;
}

enum vxd_status vxd_segment_read_head(const struct vxd_file_ops *ops, const char *folder,
                                      const char *name, struct vxd_segment_head *head,
                                      struct vxd_err *err)
{
    char path[2 * VXD_DURABLE_PATH_BYTES];
    struct reader reader = {.ops = ops, .name = name, .err = err};
    struct head read;
    enum vxd_status status = open_reader(&reader, folder, path);

    if (status != VXD_OK) {
        return status;
    }
    status = read_head(&reader, &read);
    (void)ops->close(ops->user, reader.file);
    if (status == VXD_OK) {
        *head = read.fields;
    }
    return status;
}

enum vxd_status
vxd_segment_read(const struct vxd_file_ops *ops, const char *folder, const char *name,
                 struct vxd_segment_head *head,
                 enum vxd_status (*each)(void *user, uint64_t number, const void *bytes,
                                         size_t n_bytes, struct vxd_err *err),
                 void *user, struct vxd_err *err)
{
    char path[2 * VXD_DURABLE_PATH_BYTES];
    struct reader reader = {.ops = ops, .name = name, .err = err};
    struct head read;
    uint64_t at = sizeof read;
    enum vxd_status status = open_reader(&reader, folder, path);

    if (status != VXD_OK) {
        return status;
    }
    VXD_TRY(read_head(&reader, &read));
    *head = read.fields;
    for (uint64_t i = 0; i < read.fields.n; i++) {
        uint8_t *bytes = NULL;
        size_t n_bytes = 0;

        status = read_entry(&reader, read.fields.first + i, &at, &bytes, &n_bytes);
        if (status == VXD_OK) {
            status = each(user, read.fields.first + i, bytes, n_bytes, err);
        }
        free(bytes);
        VXD_TRY(status);
    }
    if (at != reader.n_file_bytes) {
        status = damaged(&reader, at, "bytes follow its last transaction");
    }
out:
    (void)ops->close(ops->user, reader.file);
    return status;
}
