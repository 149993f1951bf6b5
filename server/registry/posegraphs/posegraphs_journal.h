// SPDX-License-Identifier: Apache-2.0
/* Durable pose graphs. A change is in the journal (server/durable) before anybody sees it or is
 * answered. At the next start pose graphs come back from the journal, or from a snapshot file and the
 * records after it.
 *
 *   change    the graph is changed in memory, its record and the reply are handed over as one
 *             transaction, and the reply is given when that is decided. A read in between is
 *             answered when all changes that it saw are decided
 *   record    what was added, or the poses that an optimization made (posegraph_record.h)
 *   failure   memory has a change that the disk has not: nobody sees the graph until it has been
 *             brought back from the disk, which is tried at once and at each request
 *   snapshot  on the registry's thread (registry_saver.c), from the last snapshot and the records
 *             after it, in a graph of its own, so no request waits for it */
#ifndef VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_JOURNAL_H
#define VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_JOURNAL_H

#include "server/durable/record/record.h"
#include "server/registry/posegraphs/named_posegraphs.h"

/* --- on the write lane ------------------------------------------------------------------- */

/* Checks that requests may see the graph, and brings it back where it is broken.
 * errors  UNAVAILABLE  the disk lacks a change that the graph has, or it is being dropped */
enum vxd_status vxd_posegraph_check_visible(struct vxd_posegraphs *posegraphs,
                                            struct vxd_named_posegraph *posegraph,
                                            struct vxd_err *err);

/* Checks that a change can be handed over now. Pose graphs that are not durable always pass.
 * errors  UNAVAILABLE  the disk does not take it, or too much waits for it */
enum vxd_status vxd_posegraph_check_journal(struct vxd_posegraphs *posegraphs,
                                            const struct vxd_named_posegraph *posegraph,
                                            struct vxd_err *err);

enum vxd_posegraph_change_kind {
    VXD_POSEGRAPH_CHANGED = 0,
    VXD_POSEGRAPH_MADE = 1, /* empty */
    VXD_POSEGRAPH_DROPPED = 2,
    VXD_POSEGRAPH_READ =
        3 /* nothing changes, but all that was read has to be decided first */
};

/* What a request hands over to the journal. Zero-initialised it is nothing. */
struct vxd_posegraph_entry {
    enum vxd_posegraph_change_kind kind;
    enum vxd_posegraph_record_kind record_kind; /* CHANGED */
    struct vxd_record_bytes record;             /* CHANGED: packed; the owner frees it */
    int64_t unix_ns;
    uint64_t sequence; /* the number that its record got */
    bool is_handed_over;
};

/* Gives a new graph its number in the journal. To be called before it is published. */
void vxd_posegraph_enter_journal(struct vxd_posegraphs *posegraphs,
                                 struct vxd_named_posegraph *posegraph);

/* Hands a change over with the request's outcome (its output is complete);
 * vxd_commit_decide follows.
 * in      posegraph  NULL for READ: all pose graphs
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED; then it does not follow */
enum vxd_status vxd_posegraph_hand_over(struct vxd_posegraphs *posegraphs,
                                        struct vxd_named_posegraph *posegraph,
                                        struct vxd_request *request,
                                        struct vxd_posegraph_entry *entry,
                                        struct vxd_err *err);

/* Ends a change once it is decided, or could not be handed over. Changes end in the order in which
 * they were made. */
void vxd_posegraph_end_change(struct vxd_posegraphs *posegraphs,
                              struct vxd_named_posegraph *posegraph,
                              struct vxd_posegraph_entry *entry, bool committed);

/* Says that the graph has a change in memory that will never be handed over. */
void vxd_posegraph_mark_broken(struct vxd_posegraphs *posegraphs,
                               struct vxd_named_posegraph *posegraph);

/* Whether a read of the graph, or of all pose graphs where it is NULL, sees changes that are not
 * decided. */
bool vxd_posegraph_is_waiting(struct vxd_posegraphs *posegraphs,
                              const struct vxd_named_posegraph *posegraph);

#endif
