// SPDX-License-Identifier: Apache-2.0
/* The archive's part of a restoration: the segments of the backup's line in order, without a hole, up
 * to the target. Transactions are applied many at once, with one sync; what decides is looked at one
 * by one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/durable/archive/archive.h"
#include "server/durable/maintenance/restore_internal.h"
#include "server/durable/record/record.h"

enum {
    BATCH_ROWS = 256,
    BATCH_BYTES = 8 << 20
};

struct fill {
    const struct vxd_restore_target *target;
    struct vxd_journal *journal;
    struct vxd_journal_txn *txn; /* not yet committed, */
    size_t n_rows;               /* so many rows */
    size_t n_bytes;
    struct vxd_restore_result batch; /* *out when they are */
    struct vxd_restore_result *out;
    uint64_t next;
    bool is_done; /* the target is reached */
    bool has_version;
};

static enum vxd_status commit(struct fill *fill, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (fill->txn != NULL) {
        VXD_TRY(vxd_journal_commit_wait(fill->txn, err));
    }
    *fill->out = fill->batch;
out:
    fill->txn = NULL;
    fill->n_rows = 0;
    fill->n_bytes = 0;
    return status;
}

static enum vxd_status find_version(void *user, const struct vxd_journal_record *row,
                                    struct vxd_err *err)
{
    struct fill *fill = user;
    const struct vxd_restore_target *target = fill->target;
    struct vxd_record record;

    if (vxd_record_decode_head(row->bytes, row->n_bytes, row->rules_version, &record,
                               NULL) != VXD_OK ||
        (uint32_t)record.kind != row->kind || strcmp(record.head, target->scene) != 0 ||
        record.kind == VXD_RECORD_DROP) {
        return VXD_OK; /* a map's, or another scene's */
    }
    if (record.version.n > target->version && !fill->has_version) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "until",
                        "the backup is newer than version %llu of %s: the first that the "
                        "archive has after it is %llu; take an older backup",
                        (unsigned long long)target->version, target->scene,
                        (unsigned long long)record.version.n);
    }
    fill->has_version = fill->has_version || record.version.n == target->version;
    return VXD_OK;
}

static enum vxd_status add(struct fill *fill, int64_t unix_ns, const void *bytes,
                           size_t n_bytes, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (fill->txn == NULL) {
        VXD_TRY(vxd_journal_begin(fill->journal, &fill->txn, err));
    }
    VXD_TRY(vxd_journal_add_archived(fill->txn, bytes, n_bytes, err));
    fill->batch.n_transactions++;
    fill->batch.unix_ns = unix_ns;
    fill->n_rows++;
    fill->n_bytes += n_bytes;
    if (fill->n_rows >= BATCH_ROWS || fill->n_bytes >= BATCH_BYTES) {
        status = commit(fill, err);
    }
out:
    return status;
}

static enum vxd_status take_row(void *user, uint64_t number, const void *bytes,
                                size_t n_bytes, struct vxd_err *err)
{
    struct fill *fill = user;
    struct vxd_archived when;
    enum vxd_status status = VXD_OK;

    if (fill->is_done || number < fill->next) {
        return VXD_OK; /* the backup has it */
    }
    VXD_TRY(vxd_journal_archived_read(bytes, n_bytes, &when, err));
    if (fill->target->until == VXD_RESTORE_TIME && when.unix_ns > fill->target->unix_ns) {
        fill->is_done = true;
        return VXD_OK;
    }
    if (fill->target->until == VXD_RESTORE_VERSION) {
        VXD_TRY(vxd_journal_archived_records(bytes, n_bytes, find_version, fill, err));
    }
    fill->next = number + 1;
    VXD_TRY(add(fill, when.unix_ns, bytes, n_bytes, err));
    fill->is_done = fill->has_version;
out:
    return status;
}

/* The segments of a line ------------------------------------------------------------------- */

struct listing {
    uint64_t line;
    uint64_t *firsts;
    size_t n;
    size_t capacity;
    bool is_out_of_memory;
};

static void list_segment(void *arg, const char *name)
{
    struct listing *listing = arg;
    uint64_t line;
    uint64_t first;

    if (!vxd_segment_parse_name(name, &line, &first) || line != listing->line) {
        return;
    }
    if (listing->n == listing->capacity) {
        size_t capacity = 2 * listing->capacity + 64;
        uint64_t *larger = realloc(listing->firsts, capacity * sizeof *larger);

        if (larger == NULL) {
            listing->is_out_of_memory = true;
            return;
        }
        listing->firsts = larger;
        listing->capacity = capacity;
    }
    listing->firsts[listing->n++] = first;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static enum vxd_status missing(const struct fill *fill, const struct listing *listing,
                               size_t i, struct vxd_err *err)
{
    char expected[VXD_SEGMENT_NAME_BYTES];
    char there[VXD_SEGMENT_NAME_BYTES];

    vxd_segment_name(listing->line, fill->next, expected);
    vxd_segment_name(listing->line, listing->firsts[i], there);
    return vxd_fail(err, VXD_DATA_LOSS, "archive_dir",
                    "%s is missing, or others before %s: changes %llu to %llu", expected,
                    there, (unsigned long long)fill->next,
                    (unsigned long long)listing->firsts[i] - 1);
}

/* Of the files that begin at or before the next number, from *i on, the one that leads farthest.
 * After a crash one may hold a part of another. A damaged head is an error where nobody else goes on.
 * *found is false where none does. */
static enum vxd_status choose(const struct fill *fill, const struct vxd_file_ops *ops,
                              const char *archive, const struct listing *listing,
                              size_t *i, char name[VXD_SEGMENT_NAME_BYTES], bool *found,
                              struct vxd_err *err)
{
    uint64_t end = fill->next;
    enum vxd_status status = VXD_OK;

    *found = false;
    for (; *i < listing->n && listing->firsts[*i] <= fill->next; ++*i) {
        struct vxd_segment_head head;
        char candidate[VXD_SEGMENT_NAME_BYTES];
        struct vxd_err fault = {0};
        enum vxd_status read;

        vxd_segment_name(listing->line, listing->firsts[*i], candidate);
        read = vxd_segment_read_head(ops, archive, candidate, &head, &fault);
        if (read != VXD_OK) {
            status = read;
            *err = fault;
        } else if (head.first + head.n > end) {
            end = head.first + head.n;
            memcpy(name, candidate, VXD_SEGMENT_NAME_BYTES);
            *found = true;
        }
    }
    return *found ? VXD_OK : status;
}

static enum vxd_status read_segments(struct fill *fill, const struct vxd_file_ops *ops,
                                     const char *archive, const struct listing *listing,
                                     struct vxd_err *err)
{
    size_t i = 0;
    enum vxd_status status = VXD_OK;

    while (!fill->is_done) {
        struct vxd_segment_head head;
        char name[VXD_SEGMENT_NAME_BYTES];
        bool found;

        VXD_TRY(choose(fill, ops, archive, listing, &i, name, &found, err));
        if (!found) {
            return i < listing->n ? missing(fill, listing, i, err) : VXD_OK;
        }
        VXD_TRY(vxd_segment_read(ops, archive, name, &head, take_row, fill, err));
        fill->batch.n_segments++;
    }
out:
    return status;
}

/* Whether the last change is of the very nanosecond that was asked for: the one that a restoration
 * which failed has named as its end. What is behind it is not needed. */
static bool is_exact(const struct fill *fill)
{
    return fill->target->until == VXD_RESTORE_TIME &&
           fill->batch.unix_ns == fill->target->unix_ns;
}

static enum vxd_status check_reached(const struct fill *fill, struct vxd_err *err)
{
    const struct vxd_restore_target *target = fill->target;

    if (fill->is_done || target->until == VXD_RESTORE_END || is_exact(fill)) {
        return VXD_OK;
    }
    return target->until == VXD_RESTORE_TIME
               ? vxd_fail(err, VXD_NOT_FOUND, "until",
                          "the archive ends before that time, so that whether more was "
                          "changed until then is not known")
               : vxd_fail(err, VXD_NOT_FOUND, "until",
                          "the archive has no version %llu of the scene %s after the "
                          "backup",
                          (unsigned long long)target->version, target->scene);
}

enum vxd_status vxd_restore_fill(const struct vxd_file_ops *ops, const char *archive,
                                 uint64_t line, uint64_t next,
                                 const struct vxd_restore_target *target,
                                 struct vxd_journal *journal,
                                 struct vxd_restore_result *out, struct vxd_err *err)
{
    struct vxd_err fault = {0};
    struct listing listing = {.line = line};
    struct fill fill = {
        .target = target, .journal = journal, .batch = *out, .out = out, .next = next};
    int result = ops->list(ops->user, archive, list_segment, &listing);
    enum vxd_status status = VXD_OK;

    if (result != 0) {
        VXD_TRY(vxd_file_fail(err, result, "read", archive));
    }
    if (listing.is_out_of_memory) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for segments"));
    }
    if (listing.n > 0) {
        qsort(listing.firsts, listing.n, sizeof *listing.firsts, compare);
    }
    status = read_segments(&fill, ops, archive, &listing, &fault);
    if (status != VXD_OK && err != NULL) {
        *err = fault;
    }
    if (status == VXD_DATA_LOSS && is_exact(&fill)) {
        status = VXD_OK;
    }
    if (status == VXD_OK) {
        status = check_reached(&fill, err);
    }
    if (status == VXD_OK) {
        status = commit(&fill, err);
    } else {
        (void)commit(&fill, NULL); /* how far it leads, with what was whole */
    }
out:
    free(listing.firsts);
    return status;
}
