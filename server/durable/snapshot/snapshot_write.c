// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "proto/base/crc32c.h"
#include "server/durable/journal/journal.h"
#include "server/durable/snapshot/snapshot_internal.h"

struct vxd_snapshot_writer {
    const struct vxd_data_dir *dir;
    struct vxd_snapshot_head head;
    int file;
    uint32_t head_crc;
    enum vxd_snapshot_kind kind;
    uint64_t at;       /* where the next chunk begins */
    uint64_t n_chunks; /* written */
    size_t n_filled;   /* of this one */
    char path[VXD_DURABLE_PATH_BYTES];
    char beside[VXD_DURABLE_PATH_BYTES];
    uint8_t chunk[VXD_SNAPSHOT_CHUNK_HEAD_BYTES + VXD_SNAPSHOT_CHUNK_BYTES + 8];
};

static enum vxd_status write_head(struct vxd_snapshot_writer *writer, struct vxd_err *err)
{
    uint8_t bytes[VXD_SNAPSHOT_HEAD_BYTES] = {0};
    const struct vxd_snapshot_head *head = &writer->head;

    vxd_put64(bytes, VXD_SNAPSHOT_MAGIC);
    vxd_put32(bytes + 8, VXD_SNAPSHOT_LAYOUT);
    vxd_put32(bytes + 12, head->rules_version);
    vxd_put64(bytes + 16, head->family);
    vxd_put64(bytes + 24, head->epoch);
    vxd_put64(bytes + 32, head->sequence);
    vxd_put64(bytes + 40, (uint64_t)head->unix_ns);
    (void)snprintf((char *)bytes + 48, VXD_SNAPSHOT_NAME_BYTES, "%s", head->name);
    writer->head_crc = vxd_crc32c(0, bytes, VXD_SNAPSHOT_HEAD_BYTES - 4);
    vxd_put32(bytes + VXD_SNAPSHOT_HEAD_BYTES - 4, writer->head_crc);
    writer->at = VXD_SNAPSHOT_HEAD_BYTES;
    return vxd_file_write_all(writer->dir->ops, writer->file, bytes, sizeof bytes, 0,
                              writer->beside, err);
}

/* Writes what is filled of the chunk. */
static enum vxd_status write_chunk(struct vxd_snapshot_writer *writer,
                                   struct vxd_err *err)
{
    uint8_t *head = writer->chunk;
    uint8_t *payload = head + VXD_SNAPSHOT_CHUNK_HEAD_BYTES;
    size_t padded = vxd_snapshot_padded(writer->n_filled);
    size_t n_bytes = VXD_SNAPSHOT_CHUNK_HEAD_BYTES + padded;
    uint32_t crc;
    enum vxd_status status;

    memset(payload + writer->n_filled, 0, padded - writer->n_filled);
    vxd_put32(head, (uint32_t)writer->kind);
    vxd_put32(head + 4, (uint32_t)writer->n_filled);
    vxd_put64(head + 8, writer->n_chunks);
    vxd_put32(head + 20, 0);
    crc = vxd_crc32c(writer->head_crc, head, 16);
    vxd_put32(head + 16, vxd_crc32c(crc, payload, padded));
    status = vxd_file_write_all(writer->dir->ops, writer->file, head, n_bytes, writer->at,
                                writer->beside, err);
    writer->at += n_bytes;
    writer->n_chunks++;
    writer->n_filled = 0;
    return status;
}

enum vxd_status vxd_snapshot_begin(const struct vxd_data_dir *dir,
                                   const struct vxd_snapshot_head *head,
                                   struct vxd_snapshot_writer **out, struct vxd_err *err)
{
    struct vxd_snapshot_writer *writer;
    enum vxd_status status = VXD_OK;

    if (head->name[0] == '\0' || memchr(head->name, 0, sizeof head->name) == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "name", "must have 1 to 63 bytes");
    }
    writer = calloc(1, sizeof *writer);
    if (writer == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");
    }
    writer->dir = dir;
    writer->head = *head;
    vxd_snapshot_path(dir, head->family, head->sequence, "", writer->path);
    vxd_snapshot_path(dir, head->family, head->sequence, ".new", writer->beside);
    writer->file = dir->ops->open(dir->ops->user, writer->beside,
                                  O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (writer->file < 0) {
        VXD_TRY(vxd_file_fail(err, writer->file, "make", writer->beside));
    }
    VXD_TRY(write_head(writer, err));
    *out = writer;
    return VXD_OK;
out:
    vxd_snapshot_abandon(writer);
    return status;
}

enum vxd_status vxd_snapshot_write(struct vxd_snapshot_writer *writer,
                                   enum vxd_snapshot_kind kind, const void *bytes,
                                   size_t n_bytes, struct vxd_err *err)
{
    const uint8_t *from = bytes;
    enum vxd_status status = VXD_OK;

    if (kind < writer->kind || kind < VXD_SNAPSHOT_CATALOGUE ||
        kind > VXD_SNAPSHOT_UPKEEP) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "kind",
                        "%d, after %d; kinds stand in their order", (int)kind,
                        (int)writer->kind);
    }
    if (kind != writer->kind && writer->n_filled > 0) {
        VXD_TRY(write_chunk(writer, err));
    }
    writer->kind = kind;
    while (n_bytes > 0) {
        size_t n = VXD_SNAPSHOT_CHUNK_BYTES - writer->n_filled;

        n = n < n_bytes ? n : n_bytes;
        memcpy(writer->chunk + VXD_SNAPSHOT_CHUNK_HEAD_BYTES + writer->n_filled, from, n);
        writer->n_filled += n;
        from += n;
        n_bytes -= n;
        if (writer->n_filled == VXD_SNAPSHOT_CHUNK_BYTES) {
            VXD_TRY(write_chunk(writer, err));
        }
    }
out:
    return status;
}

static enum vxd_status write_end(struct vxd_snapshot_writer *writer, struct vxd_err *err)
{
    uint8_t *payload = writer->chunk + VXD_SNAPSHOT_CHUNK_HEAD_BYTES;
    enum vxd_status status = VXD_OK;

    if (writer->n_filled > 0) {
        VXD_TRY(write_chunk(writer, err));
    }
    vxd_put64(payload, writer->n_chunks);
    vxd_put64(payload + 8, writer->at);
    writer->kind = VXD_SNAPSHOT_END;
    writer->n_filled = VXD_SNAPSHOT_END_BYTES;
    VXD_TRY(write_chunk(writer, err));
out:
    return status;
}

/* Synced before it has its name, its name before anybody hears of it. */
static enum vxd_status put_in_place(struct vxd_snapshot_writer *writer,
                                    struct vxd_err *err)
{
    const struct vxd_file_ops *ops = writer->dir->ops;
    char folder[VXD_DURABLE_PATH_BYTES];
    int result = ops->sync(ops->user, writer->file);
    enum vxd_status status = VXD_OK;

    if (result != 0) {
        return vxd_file_fail(err, result, "sync", writer->beside);
    }
    result = ops->close(ops->user, writer->file);
    writer->file = -1;
    if (result != 0) {
        return vxd_file_fail(err, result, "close", writer->beside);
    }
    result = ops->rename(ops->user, writer->beside, writer->path);
    if (result != 0) {
        return vxd_file_fail(err, result, "rename", writer->beside);
    }
    writer->beside[0] = '\0';
    (void)snprintf(folder, sizeof folder, "%s/snapshots", writer->dir->path);
    VXD_TRY(vxd_file_sync_directory(ops, folder, err));
out:
    return status;
}

/* Older files than the kept ones go; which stay is known only where the list could be read, and
 * then all are needed. */
static uint64_t remove_older(const struct vxd_snapshot_writer *writer)
{
    const struct vxd_data_dir *dir = writer->dir;
    uint64_t *sequences;
    uint64_t keep_from = 0;
    size_t n;

    if (vxd_snapshot_list(dir, writer->head.family, &sequences, &n, NULL) != VXD_OK) {
        return 0;
    }
    if (n >= VXD_SNAPSHOTS_KEPT) {
        keep_from = sequences[VXD_SNAPSHOTS_KEPT - 1];
    }
    for (size_t i = VXD_SNAPSHOTS_KEPT; i < n; i++) {
        char path[VXD_DURABLE_PATH_BYTES];

        vxd_snapshot_path(dir, writer->head.family, sequences[i], "", path);
        (void)dir->ops->unlink(dir->ops->user, path);
    }
    free(sequences);
    return keep_from;
}

enum vxd_status vxd_snapshot_finish(struct vxd_snapshot_writer *take_writer,
                                    struct vxd_snapshot_info *out, uint64_t *keep_from,
                                    struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(write_end(take_writer, err));
    VXD_TRY(put_in_place(take_writer, err));
    if (out != NULL) {
        out->head = take_writer->head;
        out->n_bytes = take_writer->at;
    }
    *keep_from = remove_older(take_writer);
out:
    vxd_snapshot_abandon(take_writer);
    return status;
}

enum vxd_status vxd_snapshot_conclude(struct vxd_snapshot_writer *take_writer,
                                      struct vxd_journal *journal, struct vxd_err *err)
{
    const struct vxd_snapshot_head head = take_writer->head;
    struct vxd_journal_txn *txn = NULL;
    uint64_t keep_from;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_finish(take_writer, NULL, &keep_from, err));
    VXD_TRY(vxd_journal_begin(journal, &txn, err));
    VXD_TRY(vxd_journal_snapshot_taken(txn, head.family, head.sequence, keep_from, err));
    status = vxd_journal_commit_wait(txn, err);
    txn = NULL;
out:
    vxd_journal_abandon(txn);
    return status;
}

void vxd_snapshot_abandon(struct vxd_snapshot_writer *take_writer)
{
    const struct vxd_file_ops *ops;

    if (take_writer == NULL) {
        return;
    }
    ops = take_writer->dir->ops;
    if (take_writer->file >= 0) {
        (void)ops->close(ops->user, take_writer->file);
    }
    if (take_writer->beside[0] != '\0') {
        (void)ops->unlink(ops->user, take_writer->beside);
    }
    free(take_writer);
}
