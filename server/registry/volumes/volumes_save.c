// SPDX-License-Identifier: Apache-2.0
/* Snapshot files of durable volumes, on the registry's thread. The volume that requests use is left
 * alone: its last snapshot and the records after it are brought together in another one, which gives
 * the same values bit for bit whatever the backend. That is done on the CPU, in a context of its
 * own, or, since a GPU integrates images faster than this thread, there, where the device has plenty
 * of memory. The bytes are described in volume_catalogue.c. */
#include <stdlib.h>

#include "gpu/core/core.h"
#include "server/durable/record/record.h"
#include "server/registry/volumes/volumes_internal.h"

enum {
    SPARE_PARTS = 4 /* the device's free memory is at least so many volumes */
};

/* A volume as its snapshot file will have it. */
struct capture {
    struct vxd_registry_save *save;
    struct vxd_volume_described described;
    uint64_t sequence;
    struct vxd_queue *queue; /* of the CPU */
    struct vxd_volume_state state;
};

static enum vxd_status write_file(void *user, struct vxd_snapshot_writer *writer,
                                  struct vxd_err *err)
{
    struct capture *capture = user;

    return vxd_volume_write_snapshot(writer, &capture->described, capture->queue,
                                     &capture->state, err);
}

static enum vxd_status bring_back(struct capture *capture, struct vxd_queue *queue,
                                  struct vxd_volume_state *out, struct vxd_err *err)
{
    const struct vxd_registry *registry = capture->save->registry;

    return vxd_volume_bring_back(
        queue, vxd_registry_get_journal(registry), vxd_registry_get_data_dir(registry),
        capture->save->row->id, &capture->described, capture->sequence, out, err);
}

/* Brings the volume back on the server's GPU and copies it to the CPU. False where that is not
 * possible, or would take memory that requests may need. */
static bool use_gpu(struct vxd_volumes *volumes, struct capture *capture)
{
    struct vxd_queue *queue = capture->save->queue;
    struct vxd_context *context = vxd_queue_context(queue);
    struct vxd_volume_state state = {0};
    struct vxd_memory_usage memory;
    struct vxd_err why = {0}; /* dropped: it is tried on the CPU */
    uint64_t n_bytes = atomic_load(&volumes->n_bytes); /* at most that of this one */
    bool is_done;

    vxd_context_get_memory(context, &memory);
    if (vxd_context_backend(context) != VXD_BACKEND_CUDA ||
        memory.device_bytes > memory.device_budget_bytes ||
        n_bytes > (memory.device_budget_bytes - memory.device_bytes) / SPARE_PARTS ||
        bring_back(capture, queue, &state, &why) != VXD_OK) {
        return false;
    }
    is_done = vxd_volume_copy(queue, state.volume, capture->queue, &capture->state.volume,
                              NULL) == VXD_OK;
    capture->state.n_images = state.n_images;
    vxd_volume_destroy(queue, state.volume);
    (void)vxd_queue_wait(queue, NULL);
    return is_done;
}

/* Uses a context of its own whose one thread is this one. */
static enum vxd_status save_capture(struct vxd_volumes *volumes,
                                    struct vxd_registry_save *save,
                                    struct capture *capture, struct vxd_err *err)
{
    const struct vxd_context_options options = {.backend = VXD_BACKEND_CPU,
                                                .n_threads = 1};
    struct vxd_context *context = NULL;
    struct vxd_journal_state state;
    enum vxd_status status;

    capture->save = save;
    VXD_TRY(vxd_volume_read_description(save->row->spec, save->row->n_spec_bytes,
                                        &capture->described, err));
    VXD_TRY(vxd_journal_get_state(vxd_registry_get_journal(save->registry), save->row->id,
                                  &state, err));
    capture->sequence = state.last_sequence;
    save->head.sequence = state.last_sequence;
    save->head.rules_version = VXD_VOLUME_RULES_VERSION;
    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &capture->queue, err));
    if (!use_gpu(volumes, capture)) {
        VXD_TRY(bring_back(capture, capture->queue, &capture->state, err));
    }
    status = vxd_registry_write_snapshot(save, write_file, capture, err);
out:
    if (capture->queue != NULL) {
        vxd_volume_destroy(capture->queue, capture->state.volume);
        (void)vxd_queue_wait(capture->queue, NULL);
        vxd_queue_destroy(capture->queue);
    }
    if (context != NULL) {
        vxd_context_destroy(context);
    }
    return status;
}

enum vxd_status vxd_volumes_save(void *owner, struct vxd_registry_save *save,
                                 struct vxd_err *err)
{
    struct capture *capture = calloc(1, sizeof *capture);
    enum vxd_status status = capture != NULL ? save_capture(owner, save, capture, err)
                                             : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                                        "no memory for a snapshot");

    free(capture);
    return status;
}
