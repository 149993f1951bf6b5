// SPDX-License-Identifier: Apache-2.0
/* Prefetches the records of a family: one thread reads them and several unpack them while earlier
 * ones are applied. Unpacking a scan takes a considerable share of the time of its edit. */
#ifndef VXD_SERVER_DURABLE_RECOVERY_RECOVERY_PREFETCH_H
#define VXD_SERVER_DURABLE_RECOVERY_RECOVERY_PREFETCH_H

#include "server/durable/journal/journal.h"
#include "server/durable/record/record.h"

enum {
    VXD_RECORDS_AT_ONCE = 4096 /* most that `each` is given */
};

/* As vxd_journal_read_records from `first` on, with each record decoded; `each` is called on this
 * thread with n that follow one another, `most` (up to VXD_RECORDS_AT_ONCE) where memory
 * permits, the first of them `sequence`; it must not ask the journal anything that
 * blocks. It sets *n_taken, to less than n with a failure alone, which is that of the next one.
 * Without memory or a thread nothing is prefetched, and n is 1.
 *
 * in      foresee  gets all records as they are stored, up to the first that it fails at, before
 *                  `each` is called; on another thread. NULL = not wanted
 * out     next     the number after the last that `each` took
 * errors  those of vxd_journal_read_records, vxd_record_decode, `foresee` and `each`, of whichever
 *         record comes first */
enum vxd_status vxd_prefetch_records(
    struct vxd_journal *journal, uint32_t family, uint64_t first, size_t most,
    enum vxd_status (*foresee)(void *user, const struct vxd_journal_record *record,
                               struct vxd_err *err),
    enum vxd_status (*each)(void *user, uint64_t sequence,
                            const struct vxd_record_decoded *records, size_t n,
                            size_t *n_taken, struct vxd_err *err),
    void *user, uint64_t *next, struct vxd_err *err);

#endif
