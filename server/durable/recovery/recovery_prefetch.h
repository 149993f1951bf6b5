// SPDX-License-Identifier: Apache-2.0
/* Records of a family, read by one thread and unpacked by several while those before them are
 * applied: unpacking a scan takes a part of what the edit that it makes does. */
#ifndef VXD_SERVER_DURABLE_RECOVERY_RECOVERY_PREFETCH_H
#define VXD_SERVER_DURABLE_RECOVERY_RECOVERY_PREFETCH_H

#include "server/durable/journal/journal.h"
#include "server/durable/record/record.h"

enum {
    VXD_RECORDS_AT_ONCE = 4096 /* most that `each` is given */
};

/* As vxd_journal_read_records from `first` on, with each record decoded; `each` is called on this
 * thread with n that follow one another, `most` (up to VXD_RECORDS_AT_ONCE) where there are room and
 * memory for as many, the first of them `sequence`; it must not ask the journal anything that
 * blocks. It sets *n_taken, to less than n with a failure alone, which is that of the next one.
 * Where there is no thread or memory to be had, nothing is done ahead, and n is 1.
 *
 * in      foresee  is told of all records as they are stored, up to the first that it fails at, before
 *                  `each` is called; on another thread. NULL = nobody is
 * out     next     the number after the last that `each` took
 * errors  those of vxd_journal_read_records, vxd_record_decode, `foresee` and `each`, of whichever
 *         record comes first */
enum vxd_status vxd_read_records_ahead(
    struct vxd_journal *journal, uint32_t family, uint64_t first, size_t most,
    enum vxd_status (*foresee)(void *user, const struct vxd_journal_record *record,
                               struct vxd_err *err),
    enum vxd_status (*each)(void *user, uint64_t sequence,
                            const struct vxd_record_decoded *records, size_t n,
                            size_t *n_taken, struct vxd_err *err),
    void *user, uint64_t *next, struct vxd_err *err);

#endif
