// SPDX-License-Identifier: Apache-2.0
/* Snapshot files of durable maps, on the registry's thread. The map that requests use is left
 * alone: its last snapshot and the records after it are brought together in another one, on the
 * CPU whatever the server's backend is, which gives the same entries bit for bit. The bytes are
 * described in map_catalogue.c. */
#include <stdlib.h>

#include "gpu/core/core.h"
#include "server/durable/record/record.h"
#include "server/registry/maps/maps_internal.h"

/* A map as its snapshot file will have it. */
struct capture {
    struct vxd_map_described described;
    struct vxd_queue *queue;
    struct vxd_hashmap *hashmap;
};

static enum vxd_status write_file(void *user, struct vxd_snapshot_writer *writer,
                                  struct vxd_err *err)
{
    struct capture *capture = user;

    return vxd_map_write_snapshot(writer, &capture->described, capture->queue,
                                  capture->hashmap, err);
}

/* Uses a context of its own whose one thread is this one. */
static enum vxd_status save_capture(struct vxd_registry_save *save,
                                    struct capture *capture, struct vxd_err *err)
{
    const struct vxd_context_options options = {.backend = VXD_BACKEND_CPU,
                                                .n_threads = 1};
    struct vxd_journal *journal = vxd_registry_get_journal(save->registry);
    struct vxd_context *context = NULL;
    struct vxd_journal_state state;
    enum vxd_status status;

    VXD_TRY(vxd_map_read_description(save->row->spec, save->row->n_spec_bytes,
                                     &capture->described, err));
    VXD_TRY(vxd_journal_get_state(journal, save->row->id, &state, err));
    save->head.sequence = state.last_sequence;
    save->head.rules_version = VXD_MAP_RULES_VERSION;
    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &capture->queue, err));
    VXD_TRY(vxd_map_bring_back(
        capture->queue, journal, vxd_registry_get_data_dir(save->registry), save->row->id,
        &capture->described, state.last_sequence, &capture->hashmap, err));
    status = vxd_registry_write_snapshot(save, write_file, capture, err);
out:
    if (capture->queue != NULL) {
        vxd_hashmap_destroy(capture->queue, capture->hashmap);
        (void)vxd_queue_wait(capture->queue, NULL);
        vxd_queue_destroy(capture->queue);
    }
    if (context != NULL) {
        vxd_context_destroy(context);
    }
    return status;
}

enum vxd_status vxd_maps_save(void *owner, struct vxd_registry_save *save,
                              struct vxd_err *err)
{
    struct capture *capture = calloc(1, sizeof *capture);
    enum vxd_status status = capture != NULL ? save_capture(save, capture, err)
                                             : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                                        "no memory for a snapshot");

    (void)owner; /* all that is written comes from the disk */
    free(capture);
    return status;
}
