// SPDX-License-Identifier: Apache-2.0
/* Durable volumes after a start. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/observe/log/log.h"
#include "server/registry/volumes/volumes_internal.h"

struct recovery {
    struct vxd_volumes *volumes;
    struct vxd_named_volume
        *volume; /* the one being recovered, without a name yet and with one reference */
    struct vxd_registry_start *start;
    uint64_t generation; /* generations up to it were given out before */
};

static void release_volume(struct recovery *recovery)
{
    if (recovery->volume != NULL) {
        vxd_named_volume_drop(recovery->volumes, recovery->volumes->queue,
                              recovery->volume);
        (void)vxd_queue_wait(recovery->volumes->queue, NULL);
        recovery->volume = NULL;
    }
}

/* Reads the volume's description from a snapshot file.
 * errors  DATA_LOSS  no file has one; others where a file cannot be read now */
static enum vxd_status describe_by_file(const struct vxd_data_dir *dir, uint32_t family,
                                        struct vxd_volume_described *out,
                                        struct vxd_err *err)
{
    struct vxd_err fault = {0};
    uint64_t *sequences = NULL;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_list(dir, family, &sequences, &n, err));
    (void)vxd_fail(&fault, VXD_DATA_LOSS, NULL, "no description of the volume is left");
    status = VXD_DATA_LOSS;
    for (size_t i = 0; i < n && status == VXD_DATA_LOSS; i++) {
        struct vxd_snapshot_reader *reader = NULL;

        status = vxd_snapshot_open(dir, family, sequences[i], &reader, &fault);
        if (status == VXD_OK) {
            status = vxd_volume_read_catalogue(reader, out, &fault);
        }
        vxd_snapshot_close(reader);
    }
    if (status != VXD_OK) {
        *err = fault;
    }
out:
    free(sequences);
    return status;
}

/* Finds the volume's description. A repair may have made the row anew without one; then a
 * snapshot file has it. The name in the file may meanwhile belong to another volume, so the
 * row's name, which is unique, decides. */
static enum vxd_status describe(const struct recovery *recovery,
                                const struct vxd_journal_family *row,
                                struct vxd_volume_described *out, struct vxd_err *err)
{
    const struct vxd_named_volume *volume = recovery->volume;
    char name[VXD_JOURNAL_NAME_BYTES];
    enum vxd_status status;

    if (row->n_spec_bytes > 0) {
        return vxd_volume_read_description(row->spec, row->n_spec_bytes, out, err);
    }
    if (volume != NULL && volume->durable.journal_id == row->id) {
        vxd_volume_get_description(
            volume, out); /* read from a file whose other parts were damaged */
        return VXD_OK;
    }
    VXD_TRY(describe_by_file(vxd_registry_get_data_dir(recovery->volumes->registry),
                             row->id, out, err));
    vxd_registry_family_name(&vxd_volumes_kind, out->terms.name, name);
    if (strcmp(name, row->name) != 0) {
        (void)snprintf(out->terms.name, sizeof out->terms.name, "%s",
                       row->name + strlen(vxd_volumes_kind.prefix));
    }
    if (!vxd_is_name(out->terms.name)) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "its name is another volume's");
    }
out:
    return status;
}

/* Called again after a damaged snapshot: what that had loaded is dropped. */
static enum vxd_status begin_family(void *user, const struct vxd_journal_family *row,
                                    struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_volumes *volumes = recovery->volumes;
    struct vxd_volume_described described;
    struct vxd_err fault = {0};
    enum vxd_status status;

    status = describe(recovery, row, &described, &fault);
    release_volume(recovery);
    if (status == VXD_DATA_LOSS && row->n_spec_bytes == 0) {
        vxd_log(VXD_LOG_ERROR, "a volume cannot be brought back", "volume", row->name,
                "reason", fault.message);
        return VXD_OK;
    }
    if (status != VXD_OK) {
        *err = fault; /* a later start may be able to read it, so nothing is given up */
        return status;
    }
    if (vxd_volumes_peek(volumes, described.terms.name) != NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "there are two volumes \"%s\"",
                        described.terms.name);
    }
    status = vxd_named_volume_new(volumes, volumes->queue, &described.terms,
                                  &described.spec, NULL, &recovery->volume, err);
    if (status == VXD_OK) {
        recovery->volume->generation = described.generation;
        vxd_volume_begin_version(recovery->volume->volume, described.generation);
        recovery->volume->created_unix_ns = described.created_unix_ns;
        recovery->volume->durable.journal_id = row->id;
    }
    return status;
}

static enum vxd_status load(void *user, const struct vxd_journal_family *row,
                            struct vxd_snapshot_reader *reader, struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_named_volume *volume = recovery->volume;
    struct vxd_queue *queue = recovery->volumes->queue;
    struct vxd_volume_described described;
    struct vxd_volume_state state;
    enum vxd_status status;

    (void)row;
    if (volume == NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "no description of the volume is left");
    }
    vxd_volume_get_description(volume, &described);
    state = (struct vxd_volume_state){volume->volume, volume->n_images};
    status = vxd_volume_read_snapshot(reader, &described, queue, &state, err);
    volume->volume = state.volume;
    volume->n_images = state.n_images;
    return status;
}

static enum vxd_status apply(void *user, const struct vxd_journal_family *row,
                             const struct vxd_journal_record *record, struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_named_volume *volume = recovery->volume;
    struct vxd_volume_state state;
    enum vxd_status status;

    (void)row;
    if (volume == NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "no description of the volume is left");
    }
    state = (struct vxd_volume_state){volume->volume, volume->n_images};
    status = vxd_volume_apply(recovery->volumes->queue, &state, record, err);
    volume->n_images = state.n_images;
    return status;
}

/* Gives a volume that has lost changes a new generation, from which its stamps go on, so that
 * whatever clients know of it counts as another volume's. */
static enum vxd_status raise_generation(const struct recovery *recovery,
                                        struct vxd_named_volume *volume,
                                        const struct vxd_journal_family *family,
                                        struct vxd_err *err)
{
    struct vxd_volumes *volumes = recovery->volumes;
    struct vxd_journal_family row = *family;
    struct vxd_bytes_out bytes = {0};
    struct vxd_volume_described described;
    uint64_t now_ns = (uint64_t)vxd_clock_unix_ns();
    enum vxd_status status;

    if (volume->generation < recovery->generation) {
        volume->generation = recovery->generation;
    }
    volume->generation = now_ns > volume->generation ? now_ns : volume->generation + 1;
    vxd_volume_begin_version(volume->volume, volume->generation);
    vxd_volume_get_description(volume, &described);
    vxd_volume_describe(&bytes, &described);
    row.fsync = volume->terms.fsync; /* a row that a repair made lacks it */
    row.max_bytes = volume->terms.journal_max_bytes;
    row.epoch = volume->generation;
    row.spec = bytes.bytes;
    row.n_spec_bytes = bytes.n;
    status = !bytes.is_out_of_memory
                 ? vxd_registry_rewrite_family(volumes->registry, &row, err)
                 : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no memory for a volume's description");
    free(bytes.bytes);
    return status;
}

static enum vxd_status done(void *user, const struct vxd_recovered_family *result,
                            struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_volumes *volumes = recovery->volumes;
    struct vxd_named_volume *volume = recovery->volume;
    enum vxd_status status;

    if (volume == NULL) { /* so that its name is free again */
        return vxd_journal_forget_family(vxd_registry_get_journal(volumes->registry),
                                         result->family->id, err);
    }
    vxd_volume_forget_frame(volumes->queue, volume->volume);
    VXD_TRY(vxd_queue_wait(volumes->queue, err));
    volume->durable.sequence = result->last_sequence;
    volume->durable.decided = result->last_sequence;
    vxd_volumes_account(volumes, volume);
    if (result->is_lossy || result->family->n_spec_bytes == 0) {
        vxd_log(VXD_LOG_ERROR, "a volume has lost changes; its generation is another one",
                "volume", volume->terms.name, "reason", result->reason);
        VXD_TRY(raise_generation(recovery, volume, result->family, err));
    }
    vxd_volumes_publish(volumes, volume);
    release_volume(recovery); /* the registry holds it */
out:
    return status;
}

static void progress(void *user, const struct vxd_recovery_progress *at)
{
    struct recovery *recovery = user;

    vxd_registry_log_progress(recovery->start, at);
}

static bool is_device_lost(void *user)
{
    const struct recovery *recovery = user;

    return vxd_context_is_lost(vxd_queue_context(recovery->volumes->queue));
}

static bool is_ours(void *user, const struct vxd_journal_family *row)
{
    (void)user;
    return vxd_registry_is_of_kind(&vxd_volumes_kind, row);
}

static enum vxd_status recover(void *owner, struct vxd_registry_start *start,
                               const struct vxd_journal_found *found, struct vxd_err *err)
{
    struct vxd_volumes *volumes = owner;
    struct recovery recovery = {
        .volumes = volumes, .start = start, .generation = found->generation};
    const struct vxd_recovery_visitor visitor = {.user = &recovery,
                                                 .family = begin_family,
                                                 .snapshot = load,
                                                 .is_device_lost = is_device_lost,
                                                 .own_record = apply,
                                                 .is_ours = is_ours,
                                                 .done = done,
                                                 .progress = progress};
    enum vxd_status status;

    volumes->is_recovering = true;
    status = vxd_registry_recover(start, found, &visitor, err);
    volumes->is_recovering = false;
    release_volume(&recovery);
    return status;
}

static void log_event(enum vxd_registry_event event, const char *name, const char *text)
{
    switch (event) {
    case VXD_REGISTRY_RECOVERING:
        vxd_log(VXD_LOG_INFO, "bringing back volumes", "done", text, "volume", name);
        break;
    case VXD_REGISTRY_RECOVERED:
        vxd_log(VXD_LOG_INFO, "volumes are back", "families", text);
        break;
    case VXD_REGISTRY_SAVED:
        vxd_log(VXD_LOG_INFO, "snapshot written", "volume", name, "seconds", text);
        break;
    case VXD_REGISTRY_NOT_SAVED:
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "volume", name, "error", text);
        break;
    default:
        break;
    }
}

const struct vxd_durable_kind vxd_volumes_kind = {.noun = "volume",
                                                  .prefix = VXD_VOLUME_FAMILIES,
                                                  .log = log_event,
                                                  .recover = recover,
                                                  .save = vxd_volumes_save};
