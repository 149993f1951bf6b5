// SPDX-License-Identifier: Apache-2.0
/* voxeld.mark says how far the journal had come when its last changes were acknowledged, outside of
 * voxeld.db and its WAL. SQLite ends a WAL at the first frame whose checksum is wrong, as it must
 * after a loss of power, and so takes damage in its middle for its end. A journal that is behind
 * the mark has lost acknowledged changes.
 *
 * The file has 8192 bytes from the beginning, so that a write never changes its size: two sectors,
 * at bytes 0 and 4096, which are written in turn, so that one of them is whole at any moment. The
 * valid one with the higher `written` counts. Little-endian:
 *
 *      0   8  "VXDMARK1"
 *      8   8  generation: the highest epoch that was given out
 *     16   8  written: the number of transactions that were ever acknowledged
 *     24   8  synced: of them, those that outlive a loss of power
 *     32  40  id of the system's run in which it was written, with zeros
 *     72   4  CRC32C of these
 *
 * `synced` is compared after another run of the system, `written` within the same one: without a
 * sync the system may write the mark to the disk before the WAL. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "proto/base/crc32c.h"
#include "server/durable/database/database.h"

enum {
    SLOT_BYTES = 4096, /* from one sector to the other */
    HEAD_BYTES = 76,
    N_SLOTS = 2
};

static const char magic[8] = {'V', 'X', 'D', 'M', 'A', 'R', 'K', '1'};

static void put64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

static uint64_t get64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
    return value;
}

static void encode(const struct vxd_mark *mark, uint8_t out[HEAD_BYTES])
{
    uint32_t crc;

    memset(out, 0, HEAD_BYTES);
    memcpy(out, magic, sizeof magic);
    put64(out + 8, mark->generation);
    put64(out + 16, mark->written);
    put64(out + 24, mark->synced);
    (void)snprintf((char *)out + 32, sizeof mark->boot_id, "%s", mark->boot_id);
    crc = vxd_crc32c(0, out, 72);
    memcpy(out + 72, &crc, sizeof crc);
}

static bool decode(const uint8_t in[HEAD_BYTES], struct vxd_mark *out)
{
    uint32_t crc;

    memcpy(&crc, in + 72, sizeof crc);
    if (memcmp(in, magic, sizeof magic) != 0 || crc != vxd_crc32c(0, in, 72)) {
        return false;
    }
    *out = (struct vxd_mark){.file = -1,
                             .generation = get64(in + 8),
                             .written = get64(in + 16),
                             .synced = get64(in + 24)};
    memcpy(out->boot_id, in + 32, sizeof out->boot_id - 1);
    return true;
}

static void set_path(const char *folder, const char *end,
                     char out[VXD_DURABLE_PATH_BYTES])
{
    (void)snprintf(out, VXD_DURABLE_PATH_BYTES, "%.512s/voxeld.mark%s", folder, end);
}

/* The valid sector that counts. A sector that was not to be synced is the next one that is written:
 * then the other one, which was synced, stays whole until the next sync. */
static enum vxd_status read_slots(const struct vxd_file_ops *ops, int file,
                                  const char *path, struct vxd_mark *out,
                                  struct vxd_err *err)
{
    bool is_found = false;

    for (int slot = 0; slot < N_SLOTS; slot++) {
        uint8_t bytes[HEAD_BYTES];
        struct vxd_mark mark;
        enum vxd_status status = vxd_file_read_all(
            ops, file, bytes, sizeof bytes, (uint64_t)slot * SLOT_BYTES, path, err);

        if (status != VXD_OK && status != VXD_DATA_LOSS) {
            return status;
        }
        if (status == VXD_OK && decode(bytes, &mark) &&
            (!is_found || mark.written > out->written)) {
            *out = mark;
            out->slot = mark.written == mark.synced ? 1 - slot : slot;
            is_found = true;
        }
    }
    return is_found ? VXD_OK
                    : vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                               "voxeld.mark is damaged: neither of its sectors is whole");
}

enum vxd_status vxd_mark_open(const struct vxd_file_ops *ops, const char *folder,
                              bool is_read_only, struct vxd_mark *out,
                              struct vxd_err *err)
{
    char path[VXD_DURABLE_PATH_BYTES];
    enum vxd_status status;
    int file;

    *out = (struct vxd_mark){.file = -1};
    set_path(folder, "", path);
    file = ops->open(ops->user, path, is_read_only ? O_RDONLY : O_RDWR, 0);
    if (file < 0) {
        return vxd_file_fail(err, file, "open", path);
    }
    status = read_slots(ops, file, path, out, err);
    if (status == VXD_OK && !is_read_only) {
        out->file = file;
        out->ops = ops;
        return VXD_OK;
    }
    (void)ops->close(ops->user, file);
    return status;
}

enum vxd_status vxd_mark_write(struct vxd_mark *mark, struct vxd_err *err)
{
    uint8_t bytes[HEAD_BYTES];

    encode(mark, bytes);
    return vxd_file_write_all(mark->ops, mark->file, bytes, sizeof bytes,
                              (uint64_t)mark->slot * SLOT_BYTES, "voxeld.mark", err);
}

enum vxd_status vxd_mark_sync(struct vxd_mark *mark, struct vxd_err *err)
{
    int result = mark->ops->sync_data(mark->ops->user, mark->file);

    if (result != 0) {
        return vxd_file_fail(err, result, "sync", "voxeld.mark");
    }
    mark->slot = 1 - mark->slot;
    return VXD_OK;
}

static enum vxd_status fill(const struct vxd_file_ops *ops, int file, const char *path,
                            const struct vxd_mark *mark, struct vxd_err *err)
{
    uint8_t bytes[SLOT_BYTES] = {0};
    enum vxd_status status = VXD_OK;
    int result;

    encode(mark, bytes);
    for (int slot = 0; slot < N_SLOTS; slot++) {
        VXD_TRY(vxd_file_write_all(ops, file, bytes, sizeof bytes,
                                   (uint64_t)slot * SLOT_BYTES, path, err));
    }
    result = ops->sync(ops->user, file);
    if (result != 0) {
        status = vxd_file_fail(err, result, "sync", path);
    }
out:
    return status;
}

enum vxd_status vxd_mark_make(const struct vxd_file_ops *ops, const char *folder,
                              const struct vxd_mark *mark, struct vxd_err *err)
{
    char path[VXD_DURABLE_PATH_BYTES];
    char made[VXD_DURABLE_PATH_BYTES];
    enum vxd_status status;
    int file, result;

    set_path(folder, "", path);
    set_path(folder, ".new", made);
    file = ops->open(ops->user, made, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0) {
        return vxd_file_fail(err, file, "make", made);
    }
    status = fill(ops, file, made, mark, err);
    (void)ops->close(ops->user, file);
    VXD_TRY(status);
    result = ops->rename(ops->user, made, path);
    if (result != 0) {
        status = vxd_file_fail(err, result, "rename", made);
    }
out:
    return status;
}

void vxd_mark_close(struct vxd_mark *mark)
{
    if (mark->file >= 0) {
        (void)mark->ops->close(mark->ops->user, mark->file);
    }
    mark->file = -1;
}
