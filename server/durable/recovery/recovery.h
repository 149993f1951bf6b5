// SPDX-License-Identifier: Apache-2.0
/* Start-up: each family from its newest valid snapshot and the records after it, in order. */
#ifndef VXD_SERVER_DURABLE_RECOVERY_RECOVERY_H
#define VXD_SERVER_DURABLE_RECOVERY_RECOVERY_H

#include "server/durable/recovery/recovery_prefetch.h"
#include "server/durable/recovery/snapshot_sweep.h"
#include "server/durable/journal/journal.h"
#include "server/durable/record/record.h"
#include "server/durable/snapshot/snapshot.h"

struct vxd_recovery_progress {
    size_t n_families; /* in all, */
    size_t i_family;   /* this one's number from 0, */
    const char *name;
    uint64_t n_records; /* its records, */
    uint64_t i_record;  /* and those done */
};

/* How a family came back. */
struct vxd_recovered_family {
    const struct vxd_journal_family *family;
    uint64_t snapshot_sequence; /* where the replay began; 0 = from nothing */
    uint64_t last_sequence;     /* where it ended: the state that the owner has now */
    uint64_t n_replayed;
    /* Something acknowledged is missing, or may be: the owner raises the epoch in `done`. Records
     * after last_sequence are cut (vxd_journal_cut) behind that, so that a start that ends in
     * between finds the loss again. */
    bool is_lossy;
    char reason[240]; /* "" unless lossy */
};

/* What the owner does. Each is called on the thread of vxd_recover; a status but OK ends the
 * recovery with it, unless said otherwise. */
struct vxd_recovery_visitor {
    void *user;
    /* A family begins, empty. */
    enum vxd_status (*family)(void *user, const struct vxd_journal_family *family,
                              struct vxd_err *err);
    /* Loads a snapshot: reads its kinds; the end is checked behind it. DATA_LOSS or UNAVAILABLE,
     * from the reader or the owner, means that it is no good: the file is renamed to .bad,
     * `family` is called again, which forgets what was loaded, and the older one is tried. */
    enum vxd_status (*snapshot)(void *user, const struct vxd_journal_family *family,
                                struct vxd_snapshot_reader *reader, struct vxd_err *err);
    /* Applies a record. DATA_LOSS ends the replay of this family before it. It must not ask the
     * journal anything that blocks, nor must `item`. */
    enum vxd_status (*record)(void *user, const struct vxd_journal_family *family,
                              uint64_t sequence, const struct vxd_record *record,
                              struct vxd_err *err);
    /* The same instead of `record`, for n that follow one another, the first of them `sequence`:
     * *n_done of them are applied, fewer than n with a failure alone, which is that of the next
     * one. */
    enum vxd_status (*records)(void *user, const struct vxd_journal_family *family,
                               uint64_t sequence,
                               const struct vxd_record_decoded *records, size_t n,
                               size_t *n_done, struct vxd_err *err);
    /* Whether the engine's device is lost. Then neither a snapshot nor a record is to blame for a
     * failure, and the recovery ends as UNAVAILABLE. NULL = never. */
    bool (*is_device_lost)(void *user);
    size_t records_at_once; /* most that it is given; 0 = VXD_RECORDS_AT_ONCE */
    /* Before them each one's head (vxd_record_decode_head), as far as they are good, so that the
     * owner knows what later ones ask of earlier ones; on another thread. If the records end
     * before that, `family` and `snapshot` are called again and the records given again, without
     * this. NULL = not wanted; with `record` or `records`. */
    void (*foresee)(void *user, const struct vxd_journal_family *family,
                    uint64_t sequence, const struct vxd_record *head);
    /* The same instead of `record`, where the record's bytes are the owner's own; NULL = they are
     * those of record.h. */
    enum vxd_status (*own_record)(void *user, const struct vxd_journal_family *family,
                                  const struct vxd_journal_record *record,
                                  struct vxd_err *err);
    /* Which families are the owner's; the others are passed over. NULL = all. */
    bool (*is_ours)(void *user, const struct vxd_journal_family *family);
    /* Another owner's recovery follows: what is restored from a backup stays so for it. */
    bool is_not_last;
    /* The rows of the catalogue, after the records. NULL = not wanted. */
    enum vxd_status (*item)(void *user, enum vxd_journal_item_kind kind,
                            const struct vxd_journal_item *item, struct vxd_err *err);
    /* The family is as it will be. */
    enum vxd_status (*done)(void *user, const struct vxd_recovered_family *result,
                            struct vxd_err *err);
    /* NULL = not wanted. About every 100 records, and at the ends. */
    void (*progress)(void *user, const struct vxd_recovery_progress *progress);
};

struct vxd_recovery_result {
    size_t n_families;
    size_t n_lossy;
    uint64_t n_replayed;
};

/* Blocking; before anybody else uses the journal. What is wrong is logged as it is found, and
 * damaged ends are cut, on disk, before this returns.
 *
 * in      found   of vxd_journal_open
 * errors  FAILED_PRECONDITION  a record or snapshot of newer rules: nothing was cut
 *         those of the visitor, of journal.h and of snapshot.h where no family is to blame */
enum vxd_status vxd_recover(const struct vxd_data_dir *dir, struct vxd_journal *journal,
                            const struct vxd_journal_found *found,
                            const struct vxd_recovery_visitor *visitor,
                            struct vxd_recovery_result *out, struct vxd_err *err);

#endif
