// SPDX-License-Identifier: Apache-2.0
/* Durable volumes. A change is in the journal (server/durable) before anybody sees it or is
 * answered. At the next start volumes come back from the journal, or from a snapshot file and the
 * records after it.
 *
 *   change    the volume is changed in memory, its record and the reply are handed over as one
 *             transaction, and the reply is given when that is decided. A read in between is
 *             answered when all changes that it saw are decided
 *   record    an image with its pose, or what is removed, since the engine gives the same volume
 *             again for them; else the blocks that changed
 *   failure   memory has a change that the disk has not: nobody sees the volume until it has been
 *             brought back from the disk, which is tried at once and at each request
 *   snapshot  on the registry's thread (registry_saver.c), from the last snapshot and the records
 *             after it, in a volume of its own, so no request waits for it */
#ifndef VXD_SERVER_REGISTRY_VOLUMES_VOLUMES_JOURNAL_H
#define VXD_SERVER_REGISTRY_VOLUMES_VOLUMES_JOURNAL_H

#include "server/durable/record/record.h"
#include "server/registry/volumes/named_volumes.h"

/* --- on the write lane ------------------------------------------------------------------- */

/* Checks that requests may see the volume, and brings it back where it is broken.
 * errors  UNAVAILABLE  the disk lacks a change that the volume has, or it is being dropped */
enum vxd_status vxd_volume_check_visible(struct vxd_volumes *volumes,
                                         struct vxd_named_volume *volume,
                                         struct vxd_err *err);

/* Checks that a change can be handed over now. Volumes that are not durable always pass.
 * errors  UNAVAILABLE  the disk does not take it, or too much waits for it */
enum vxd_status vxd_volume_check_journal(struct vxd_volumes *volumes,
                                         const struct vxd_named_volume *volume,
                                         struct vxd_err *err);

enum vxd_volume_change_kind {
    VXD_VOLUME_CHANGED = 0,
    VXD_VOLUME_MADE = 1, /* with the blocks that it has */
    VXD_VOLUME_DROPPED = 2,
    VXD_VOLUME_READ =
        3 /* nothing changes, but all that was read has to be decided first */
};

/* What a request hands over to the journal. Zero-initialised it is nothing. */
struct vxd_volume_entry {
    enum vxd_volume_change_kind kind;
    /* CHANGED: what the change was; kind 0: the blocks that have changed since `since` */
    struct vxd_volume_record record;
    uint64_t since; /* the volume's version before the change */
    const struct vxd_named_volume
        *copied_from;  /* MADE: has to be decided first; or NULL */
    uint64_t sequence; /* the number that its last record got */
    bool is_handed_over;
};

/* Gives a new volume its number in the journal. To be called before it is published. */
void vxd_volume_enter_journal(struct vxd_volumes *volumes,
                              struct vxd_named_volume *volume);

/* Hands a change over with the request's outcome (its output is complete);
 * vxd_commit_decide follows.
 * in      volume  NULL for READ: all volumes
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED; then it does not follow */
enum vxd_status vxd_volume_hand_over(struct vxd_volumes *volumes,
                                     struct vxd_named_volume *volume,
                                     struct vxd_request *request,
                                     struct vxd_volume_entry *entry, struct vxd_err *err);

/* Ends a change once it is decided, or could not be handed over. Changes end in the order in which
 * they were made. */
void vxd_volume_end_change(struct vxd_volumes *volumes, struct vxd_named_volume *volume,
                           struct vxd_volume_entry *entry, bool committed);

/* Says that the volume has a change in memory that will never be handed over. */
void vxd_volume_mark_broken(struct vxd_volumes *volumes, struct vxd_named_volume *volume);

/* Whether a read of the volume, or of all volumes where it is NULL, sees changes that are not
 * decided. */
bool vxd_volume_is_waiting(struct vxd_volumes *volumes,
                           const struct vxd_named_volume *volume);

#endif
