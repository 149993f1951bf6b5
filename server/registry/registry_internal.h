// SPDX-License-Identifier: Apache-2.0
/* What the files behind registry.h share. */
#ifndef VXD_SERVER_REGISTRY_REGISTRY_INTERNAL_H
#define VXD_SERVER_REGISTRY_REGISTRY_INTERNAL_H

#include "server/registry/registry.h"

struct vxd_registry_saver;
struct vxd_registry_packer;

struct vxd_registered_kind {
    const struct vxd_durable_kind *kind;
    void *owner;
    _Atomic uint64_t n_snapshots; /* files written */
    _Atomic uint64_t n_failed_snapshots;
};

struct vxd_registry {
    struct vxd_context *context; /* borrowed */
    struct vxd_registered_kind kinds[VXD_REGISTRY_MAX_KINDS];
    size_t n_kinds;
    struct vxd_journal *journal; /* NULL: nothing is durable */
    bool is_recovered;           /* all that the journal has came back */
    const struct vxd_data_dir *dir;
    struct vxd_registry_archive archived; /* no folder: there is no archive */
    struct vxd_archive *archive;
    struct vxd_registry_saver *saver;
    struct vxd_registry_packer *packer;
};

/* Finds the kind of a family; NULL where it is unknown. */
struct vxd_registered_kind *vxd_registry_find_kind(struct vxd_registry *registry,
                                                   const struct vxd_journal_family *row);

/* registry_saver.c. Starts the thread that writes snapshot files, which waits until it
 * may begin.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_registry_saver_start(struct vxd_registry *registry,
                                         struct vxd_registry_saver **out,
                                         struct vxd_err *err);
/* Lets it begin, once all families have come back: before, a half recovered one might be
 * written. */
void vxd_registry_saver_begin(struct vxd_registry_saver *saver);
/* Stops the thread after the file that it is writing, which needs the journal. Snapshots
 * that are asked for later are not written. */
void vxd_registry_saver_stop(struct vxd_registry_saver *saver);
/* Waits until nothing is asked for that is not written. */
void vxd_registry_saver_wait(struct vxd_registry_saver *saver, uint32_t timeout_ms);
/* Frees it. The thread must be stopped, and the journal, whose own thread asks for
 * snapshots, closed. */
void vxd_registry_saver_destroy(struct vxd_registry_saver *saver);

/* registry_packer.c. Starts and stops the thread that packs records. Stopping needs no packing to
 * be left; NULL is fine.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_registry_packer_start(struct vxd_registry_packer **out,
                                          struct vxd_err *err);
void vxd_registry_packer_stop(struct vxd_registry_packer *packer);

#endif
