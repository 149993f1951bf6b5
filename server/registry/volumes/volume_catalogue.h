// SPDX-License-Identifier: Apache-2.0
/* Durable volumes as bytes: the description of a volume (in families' rows and snapshot files), and
 * all its blocks (in snapshot files). volume_catalogue.c describes them byte by byte. */
#ifndef VXD_SERVER_REGISTRY_VOLUMES_VOLUME_CATALOGUE_H
#define VXD_SERVER_REGISTRY_VOLUMES_VOLUME_CATALOGUE_H

#include "proto/base/bytes.h"
#include "server/durable/snapshot/snapshot.h"
#include "server/registry/volumes/named_volumes.h"

/* What the journal's row says of a volume. The engine's max_bytes is not in it. */
struct vxd_volume_described {
    struct vxd_described base; /* first: a struct vxd_described of a volume is one */
    struct vxd_volume_spec spec;
};

/* Adds a description. A lack of memory shows at the end (vxd_bytes_out). */
void vxd_volume_describe(struct vxd_bytes_out *out,
                         const struct vxd_volume_described *volume);

/* errors  DATA_LOSS; FAILED_PRECONDITION  it says what this program does not know */
enum vxd_status vxd_volume_read_description(const void *bytes, size_t n_bytes,
                                            struct vxd_volume_described *out,
                                            struct vxd_err *err);

/* Reads the description from a snapshot file that was just opened.
 * errors  DATA_LOSS, FAILED_PRECONDITION, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_volume_read_catalogue(struct vxd_snapshot_reader *reader,
                                          struct vxd_volume_described *out,
                                          struct vxd_err *err);

/* Writes the description and the blocks of a volume that nobody changes meanwhile; on a queue of
 * the CPU. Blocking.
 * errors  RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_volume_write_snapshot(struct vxd_snapshot_writer *writer,
                                          const struct vxd_volume_described *described,
                                          struct vxd_queue *queue,
                                          const struct vxd_volume_state *state,
                                          struct vxd_err *err);

/* Gives an empty volume, which was made as *described says, what a snapshot file has. The caller
 * checks the file's end. Blocking.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_volume_read_snapshot(struct vxd_snapshot_reader *reader,
                                         const struct vxd_volume_described *described,
                                         struct vxd_queue *queue,
                                         struct vxd_volume_state *state,
                                         struct vxd_err *err);

#endif
