// SPDX-License-Identifier: Apache-2.0
/* What the files behind volumes.h share. */
#ifndef VXD_SERVER_REGISTRY_VOLUMES_VOLUMES_INTERNAL_H
#define VXD_SERVER_REGISTRY_VOLUMES_VOLUMES_INTERNAL_H

#include "server/registry/registry.h"
#include "server/registry/volumes/volume_catalogue.h"
#include "server/registry/volumes/volumes.h"

struct vxd_volumes {
    struct vxd_named_volume *first;   /* by name */
    struct vxd_named_volume *unnamed; /* not yet published, or removed and still held */
    struct vxd_queue *queue; /* of the server's context: the journal's work, the end */
    struct vxd_registry *registry; /* borrowed; has the journal */
    struct vxd_auth *auth;         /* borrowed; has the quotas */
    struct vxd_server *server;     /* borrowed; has the kept distance fields */
    uint64_t limit_bytes;
    uint64_t token_limit_bytes;
    uint64_t n_made;
    bool is_recovering; /* limits do not count, so that all on the disk comes back */
    _Atomic size_t n_volumes;
    _Atomic size_t n_durable;
    _Atomic uint64_t n_bytes;
    _Atomic int64_t next_reap_ns;
};

/* named_volumes.c. Frees the distance fields of a volume that is dropped, or that goes back to an
 * earlier stamp, which changes will have again. */
void vxd_volume_forget_fields(struct vxd_volumes *volumes,
                              const struct vxd_named_volume *volume);

/* What a volume is on the disk: the engine's, and what counts beside it. */
struct vxd_volume_state {
    struct vxd_volume *volume;
    uint64_t n_images;
};

/* volumes_replay.c. Makes the empty volume that a description is about.
 * errors  RESOURCE_EXHAUSTED; DATA_LOSS  a spec that the engine refuses */
enum vxd_status vxd_volume_state_begin(struct vxd_queue *queue,
                                       const struct vxd_volume_described *described,
                                       struct vxd_volume_state *out, struct vxd_err *err);

/* volumes_replay.c. Applies a record to a volume that only this queue uses, with the same result as
 * at first. Blocking.
 * errors  DATA_LOSS            damaged, or of another volume
 *         FAILED_PRECONDITION  of newer rules
 *         RESOURCE_EXHAUSTED   no memory: the volume is to be thrown away */
enum vxd_status vxd_volume_apply(struct vxd_queue *queue, struct vxd_volume_state *state,
                                 const struct vxd_journal_record *record,
                                 struct vxd_err *err);

/* volumes_replay.c. Makes a volume as the disk has it up to a sequence number; see
 * vxd_registry_rebuild. */
enum vxd_status vxd_volume_bring_back(struct vxd_queue *queue,
                                      struct vxd_journal *journal,
                                      const struct vxd_data_dir *dir, uint32_t family,
                                      const struct vxd_volume_described *described,
                                      uint64_t sequence, struct vxd_volume_state *out,
                                      struct vxd_err *err);

/* volumes_recover.c. What the registry of durable things needs of volumes. */
extern const struct vxd_durable_kind vxd_volumes_kind;

/* volumes_save.c. Writes a volume's snapshot file.
 * in      owner  struct vxd_volumes
 * errors  as save of struct vxd_durable_kind */
enum vxd_status vxd_volumes_save(void *owner, struct vxd_registry_save *save,
                                 struct vxd_err *err);

/* volumes_journal.c. Fills in what the journal's row says of a volume. */
void vxd_volume_get_description(const struct vxd_named_volume *volume,
                                struct vxd_volume_described *out);

#endif
