// SPDX-License-Identifier: Apache-2.0
/* Makes durable things from their last snapshot and the records after it: for snapshot files, and after
 * a change that the disk did not take. The same changes in the same order give the same thing on either
 * backend.
 *
 * Snapshot files are written on the registry's thread. The thing that requests use is left alone: another
 * one is made, on the CPU, in a context of its own; or, since a GPU may be much faster than this thread,
 * there, where the device has plenty of memory. */
#include <stdlib.h>

#include "server/registry/named/named_internal.h"

enum {
    SPARE_PARTS = 4 /* the device's free memory is at least so many of all things */
};

enum vxd_status vxd_named_workspace_new(const struct vxd_names *names,
                                        struct vxd_named_workspace *out,
                                        struct vxd_err *err)
{
    const struct vxd_durable_calls *calls = names->calls->durable;

    out->described = calloc(1, calls->described_bytes);
    out->content = calloc(1, calls->content_bytes);
    if (out->described != NULL && out->content != NULL) {
        return VXD_OK;
    }
    vxd_named_workspace_free(out);
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");
}

void vxd_named_workspace_free(struct vxd_named_workspace *workspace)
{
    free(workspace->described);
    free(workspace->content);
    *workspace = (struct vxd_named_workspace){NULL, NULL};
}

/* --- snapshot and records ------------------------------------------------------------------------- */

/* A content that is being made. */
struct rebuilt {
    const struct vxd_noun_calls *calls;
    struct vxd_queue *queue;
    const struct vxd_described *described;
    void *content;
};

static enum vxd_status begin(void *user, struct vxd_err *err)
{
    const struct rebuilt *rebuilt = user;

    return rebuilt->calls->durable->begin(rebuilt->queue, rebuilt->described, false,
                                          rebuilt->content, err);
}

static enum vxd_status load(void *user, struct vxd_snapshot_reader *reader,
                            struct vxd_err *err)
{
    const struct rebuilt *rebuilt = user;

    return rebuilt->calls->durable->read(reader, rebuilt->queue, rebuilt->described,
                                         rebuilt->content, err);
}

static void discard(void *user, const struct vxd_err *why)
{
    const struct rebuilt *rebuilt = user;

    rebuilt->calls->durable->clear(rebuilt->queue, rebuilt->content);
    rebuilt->calls->log(VXD_REGISTRY_BAD_SNAPSHOT, rebuilt->described->terms.name,
                        why->message);
}

static enum vxd_status apply(void *user, const struct vxd_journal_record *record,
                             struct vxd_err *err)
{
    const struct rebuilt *rebuilt = user;

    return rebuilt->calls->durable->apply(rebuilt->queue, rebuilt->content, record, err);
}

enum vxd_status vxd_named_rebuild(const struct vxd_names *names, struct vxd_queue *queue,
                                  uint32_t family, uint64_t sequence,
                                  const struct vxd_described *described, void *content,
                                  struct vxd_err *err)
{
    const struct vxd_durable_calls *calls = names->calls->durable;
    struct rebuilt rebuilt = {.calls = names->calls,
                              .queue = queue,
                              .described = described,
                              .content = content};
    const struct vxd_rebuilder rebuild = {.user = &rebuilt,
                                          .begin = begin,
                                          .load = load,
                                          .discard = discard,
                                          .apply = apply};
    enum vxd_status status = vxd_registry_rebuild(
        vxd_registry_get_journal(names->registry),
        vxd_registry_get_data_dir(names->registry), family, sequence, &rebuild, err);

    if (status != VXD_OK) {
        calls->clear(queue, content);
    } else if (calls->end != NULL) {
        calls->end(queue, content);
    }
    if (queue != NULL) {
        (void)vxd_queue_wait(queue, NULL);
    }
    return status;
}

/* --- snapshot files ------------------------------------------------------------------------------- */

/* A thing as its snapshot file will have it. */
struct capture {
    struct vxd_names *names;
    struct vxd_registry_save *save;
    struct vxd_named_workspace space;
    struct vxd_queue *queue; /* of the CPU */
};

static enum vxd_status write_file(void *user, struct vxd_snapshot_writer *writer,
                                  struct vxd_err *err)
{
    const struct capture *capture = user;

    return capture->names->calls->durable->write(
        writer, capture->queue, capture->space.described, capture->space.content, err);
}

static enum vxd_status rebuild_on(const struct capture *capture, struct vxd_queue *queue,
                                  void *content, struct vxd_err *err)
{
    return vxd_named_rebuild(capture->names, queue, capture->save->row->id,
                             capture->save->head.sequence, capture->space.described,
                             content, err);
}

static bool has_spare_gpu(const struct capture *capture)
{
    struct vxd_context *context = vxd_queue_context(capture->save->queue);
    uint64_t n_bytes =
        atomic_load(&capture->names->n_bytes); /* at most that of this one */
    struct vxd_memory_usage memory;

    vxd_context_get_memory(context, &memory);
    return vxd_context_backend(context) == VXD_BACKEND_CUDA &&
           memory.device_bytes <= memory.device_budget_bytes &&
           n_bytes <= (memory.device_budget_bytes - memory.device_bytes) / SPARE_PARTS;
}

/* Brings the thing back on the server's GPU and copies it to the CPU. False where that is not possible,
 * or would take memory that requests may need. */
static bool use_gpu(const struct capture *capture)
{
    const struct vxd_durable_calls *calls = capture->names->calls->durable;
    struct vxd_queue *queue = capture->save->queue;
    struct vxd_err why = {0}; /* dropped: it is tried on the CPU */
    void *content;
    bool is_done;

    if (calls->copy == NULL || !has_spare_gpu(capture) ||
        (content = calloc(1, calls->content_bytes)) == NULL) {
        return false;
    }
    is_done = rebuild_on(capture, queue, content, &why) == VXD_OK &&
              calls->copy(queue, content, capture->queue, capture->space.content, &why) ==
                  VXD_OK;
    calls->clear(queue, content);
    (void)vxd_queue_wait(queue, NULL);
    free(content);
    return is_done;
}

/* Uses a context of its own whose one thread is this one. */
static enum vxd_status save_capture(struct capture *capture, struct vxd_err *err)
{
    const struct vxd_context_options options = {.backend = VXD_BACKEND_CPU,
                                                .n_threads = 1};
    const struct vxd_noun_calls *calls = capture->names->calls;
    const struct vxd_durable_calls *durable = calls->durable;
    struct vxd_registry_save *save = capture->save;
    struct vxd_context *context = NULL;
    struct vxd_journal_state state;
    enum vxd_status status;

    VXD_TRY(durable->read_description(save->row->spec, save->row->n_spec_bytes,
                                      capture->space.described, err));
    VXD_TRY(vxd_journal_get_state(vxd_registry_get_journal(save->registry), save->row->id,
                                  &state, err));
    save->head.sequence = state.last_sequence;
    save->head.rules_version = durable->rules_version;
    if (calls->uses_device) {
        VXD_TRY(vxd_context_create(&options, &context, err));
        VXD_TRY(vxd_queue_create(context, &capture->queue, err));
    }
    if (!use_gpu(capture)) {
        VXD_TRY(rebuild_on(capture, capture->queue, capture->space.content, err));
    }
    status = vxd_registry_write_snapshot(save, write_file, capture, err);
out:
    if (!calls->uses_device || capture->queue != NULL) {
        durable->clear(capture->queue, capture->space.content);
    }
    if (capture->queue != NULL) {
        (void)vxd_queue_wait(capture->queue, NULL);
        vxd_queue_destroy(capture->queue);
    }
    if (context != NULL) {
        vxd_context_destroy(context);
    }
    return status;
}

enum vxd_status vxd_names_save(void *owner, struct vxd_registry_save *save,
                               struct vxd_err *err)
{
    struct capture capture = {.names = owner, .save = save};
    enum vxd_status status = vxd_named_workspace_new(capture.names, &capture.space, err);

    if (status == VXD_OK) {
        status = save_capture(&capture, err);
    }
    vxd_named_workspace_free(&capture.space);
    return status;
}
