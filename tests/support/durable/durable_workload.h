// SPDX-License-Identifier: Apache-2.0
/* A workload of everything in server/durable, and what it was promised: to be held against what a
 * start finds after power was lost. */
#ifndef VXD_TESTS_SUPPORT_DURABLE_DURABLE_WORKLOAD_H
#define VXD_TESTS_SUPPORT_DURABLE_DURABLE_WORKLOAD_H

#include "server/durable/recovery/recovery.h"

enum {
    WORK_FAMILIES = 3, /* always, everysec, one that is dropped */
    WORK_MAX_RECORDS = 128
};

/* A family: tried is what was handed over, promised what is to outlive a loss of power. */
struct work_family {
    uint32_t id;
    bool is_promised; /* its row */
    bool drop_tried, drop_promised;
    uint64_t tried;
    uint64_t acknowledged; /* with whatever promise */
    uint64_t promised;
    uint64_t snapshot_promised; /* the file, */
    uint64_t taken_promised;    /* and that the journal knows of it */
};

struct work {
    const struct vxd_file_ops *ops;
    struct work_family families[WORK_FAMILIES];
    uint64_t epoch_promised;
    uint64_t mark_promised; /* transactions that the mark has on the disk */
    bool was_opened;        /* vxd_data_dir_open came back */
    bool was_closed;        /* vxd_journal_close did, and nothing came after */
    bool item_promised;
    int n_failures; /* steps that failed, and were done again */
    bool retries;   /* do failed steps again, until they work */
    struct vxd_data_dir dir;
    struct vxd_journal *journal;
};

/* Runs until the end, or until the disk is dead; nothing is open then. False when a step failed,
 * which unless it retries is the end. */
bool work_run(struct work *work, const struct vxd_file_ops *ops);

/* Starts from what is there, checks it against what was promised, changes something more and ends.
 * NULL = all is well, else what is not; the text is static. */
const char *work_check(const struct work *work);

#endif
