// SPDX-License-Identifier: Apache-2.0
/* What the files behind volumes.h share. */
#ifndef VXD_SERVER_REGISTRY_VOLUMES_VOLUMES_INTERNAL_H
#define VXD_SERVER_REGISTRY_VOLUMES_VOLUMES_INTERNAL_H

#include "server/registry/volumes/volume_catalogue.h"
#include "server/registry/volumes/volumes.h"

/* named_volumes.c. Frees the distance fields of a volume that is dropped, or that goes back to an
 * earlier stamp, which changes will have again. */
void vxd_volume_forget_fields(struct vxd_named *named);

/* named_volumes.c. The blocks are others now, or in another order. */
void vxd_volume_renew_order(struct vxd_named_volume *volume);

/* volumes_replay.c. Applies a record to a volume that only this queue uses, with the same result as
 * at first. Blocking.
 * errors  DATA_LOSS            damaged, or of another volume
 *         FAILED_PRECONDITION  of newer rules
 *         RESOURCE_EXHAUSTED   no memory: the volume is to be thrown away */
enum vxd_status vxd_volume_apply(struct vxd_queue *queue, struct vxd_volume_state *state,
                                 const struct vxd_journal_record *record,
                                 struct vxd_err *err);

/* volumes_replay.c. What the engine refuses of a record or a description is damage. */
enum vxd_status vxd_volume_as_damage(enum vxd_status status, struct vxd_err *err);

/* volumes_records.c. As put of struct vxd_durable_calls; the entry is a struct vxd_volume_entry. */
enum vxd_status vxd_volume_put(struct vxd_named *named, struct vxd_request *request,
                               struct vxd_named_entry *base, struct vxd_journal_txn *txn,
                               struct vxd_err *err);

/* volumes_durable.c. What the registry of durable things and the table need of volumes. */
extern const struct vxd_durable_kind vxd_volumes_kind;
extern const struct vxd_durable_calls vxd_volumes_durable;
void vxd_volumes_log(enum vxd_registry_event event, const char *name, const char *text);

#endif
