// SPDX-License-Identifier: Apache-2.0
/* Durable pose graphs after a start. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/observe/log/log.h"
#include "server/registry/posegraphs/posegraphs_internal.h"

struct recovery {
    struct vxd_posegraphs *posegraphs;
    struct vxd_named_posegraph *
        posegraph; /* the one being recovered, without a name yet and with one reference */
    struct vxd_registry_start *start;
    uint64_t generation; /* generations up to it were given out before */
};

static void release_posegraph(struct recovery *recovery)
{
    if (recovery->posegraph != NULL) {
        vxd_named_posegraph_drop(recovery->posegraphs, recovery->posegraph);
        recovery->posegraph = NULL;
    }
}

/* Reads the pose graph's description from a snapshot file.
 * errors  DATA_LOSS  no file has one; others where a file cannot be read now */
static enum vxd_status describe_by_file(const struct vxd_data_dir *dir, uint32_t family,
                                        struct vxd_posegraph_described *out,
                                        struct vxd_err *err)
{
    struct vxd_err fault = {0};
    uint64_t *sequences = NULL;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_list(dir, family, &sequences, &n, err));
    (void)vxd_fail(&fault, VXD_DATA_LOSS, NULL,
                   "no description of the pose graph is left");
    status = VXD_DATA_LOSS;
    for (size_t i = 0; i < n && status == VXD_DATA_LOSS; i++) {
        struct vxd_snapshot_reader *reader = NULL;

        status = vxd_snapshot_open(dir, family, sequences[i], &reader, &fault);
        if (status == VXD_OK) {
            status = vxd_posegraph_read_catalogue(reader, out, &fault);
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

/* Finds the pose graph's description. A repair may have made the row anew without one; then a
 * snapshot file has it. The name in the file may meanwhile belong to another graph, so the
 * row's name, which is unique, decides. */
static enum vxd_status describe(const struct recovery *recovery,
                                const struct vxd_journal_family *row,
                                struct vxd_posegraph_described *out, struct vxd_err *err)
{
    const struct vxd_named_posegraph *posegraph = recovery->posegraph;
    char name[VXD_JOURNAL_NAME_BYTES];
    enum vxd_status status;

    if (row->n_spec_bytes > 0) {
        return vxd_posegraph_read_description(row->spec, row->n_spec_bytes, out, err);
    }
    if (posegraph != NULL && posegraph->durable.journal_id == row->id) {
        vxd_posegraph_get_description(
            posegraph, out); /* read from a file whose other parts were damaged */
        return VXD_OK;
    }
    VXD_TRY(describe_by_file(vxd_registry_get_data_dir(recovery->posegraphs->registry),
                             row->id, out, err));
    vxd_registry_family_name(&vxd_posegraphs_kind, out->terms.name, name);
    if (strcmp(name, row->name) != 0) {
        (void)snprintf(out->terms.name, sizeof out->terms.name, "%s",
                       row->name + strlen(vxd_posegraphs_kind.prefix));
    }
    if (!vxd_is_name(out->terms.name)) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "its name is another graph's");
    }
out:
    return status;
}

/* Called again after a damaged snapshot: what that had loaded is dropped. */
static enum vxd_status begin_family(void *user, const struct vxd_journal_family *row,
                                    struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_posegraphs *posegraphs = recovery->posegraphs;
    struct vxd_posegraph_described described;
    struct vxd_err fault = {0};
    enum vxd_status status;

    status = describe(recovery, row, &described, &fault);
    release_posegraph(recovery);
    if (status == VXD_DATA_LOSS && row->n_spec_bytes == 0) {
        vxd_log(VXD_LOG_ERROR, "a pose graph cannot be brought back", "posegraph",
                row->name, "reason", fault.message);
        return VXD_OK;
    }
    if (status != VXD_OK) {
        *err = fault; /* a later start may be able to read it, so nothing is given up */
        return status;
    }
    if (vxd_posegraphs_find(posegraphs, described.terms.name) != NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "there are two pose graphs \"%s\"",
                        described.terms.name);
    }
    status =
        vxd_named_posegraph_new(posegraphs, &described.terms, &recovery->posegraph, err);
    if (status == VXD_OK) {
        recovery->posegraph->generation = described.generation;
        recovery->posegraph->created_unix_ns = described.created_unix_ns;
        recovery->posegraph->durable.journal_id = row->id;
    }
    return status;
}

static enum vxd_status load(void *user, const struct vxd_journal_family *row,
                            struct vxd_snapshot_reader *reader, struct vxd_err *err)
{
    const struct recovery *recovery = user;

    (void)row;
    if (recovery->posegraph == NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL,
                        "no description of the pose graph is left");
    }
    vxd_posegraph_content_clear(&recovery->posegraph->content);
    return vxd_posegraph_read_snapshot(reader, &recovery->posegraph->content, err);
}

static enum vxd_status apply(void *user, const struct vxd_journal_family *row,
                             const struct vxd_journal_record *record, struct vxd_err *err)
{
    const struct recovery *recovery = user;

    (void)row;
    if (recovery->posegraph == NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL,
                        "no description of the pose graph is left");
    }
    return vxd_posegraph_replay(&recovery->posegraph->content, record, err);
}

/* Gives a graph that has lost changes a new generation, so that whatever clients know of it counts
 * as another one's. */
static enum vxd_status raise_generation(const struct recovery *recovery,
                                        struct vxd_named_posegraph *posegraph,
                                        const struct vxd_journal_family *family,
                                        struct vxd_err *err)
{
    struct vxd_posegraphs *posegraphs = recovery->posegraphs;
    struct vxd_journal_family row = *family;
    struct vxd_bytes_out bytes = {0};
    struct vxd_posegraph_described described;
    uint64_t now_ns = (uint64_t)vxd_clock_unix_ns();
    enum vxd_status status;

    if (posegraph->generation < recovery->generation) {
        posegraph->generation = recovery->generation;
    }
    posegraph->generation =
        now_ns > posegraph->generation ? now_ns : posegraph->generation + 1;
    vxd_posegraph_get_description(posegraph, &described);
    vxd_posegraph_describe(&bytes, &described);
    row.fsync = posegraph->terms.fsync; /* a row that a repair made lacks it */
    row.max_bytes = posegraph->terms.journal_max_bytes;
    row.epoch = posegraph->generation;
    row.spec = bytes.bytes;
    row.n_spec_bytes = bytes.n;
    status = !bytes.is_out_of_memory
                 ? vxd_registry_rewrite_family(posegraphs->registry, &row, err)
                 : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no memory for a pose graph's description");
    free(bytes.bytes);
    return status;
}

static enum vxd_status done(void *user, const struct vxd_recovered_family *result,
                            struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_posegraphs *posegraphs = recovery->posegraphs;
    struct vxd_named_posegraph *posegraph = recovery->posegraph;
    enum vxd_status status = VXD_OK;

    if (posegraph == NULL) { /* so that its name is free again */
        return vxd_journal_forget_family(vxd_registry_get_journal(posegraphs->registry),
                                         result->family->id, err);
    }
    posegraph->durable.sequence = result->last_sequence;
    posegraph->durable.decided = result->last_sequence;
    vxd_posegraphs_account(posegraphs, posegraph);
    if (result->is_lossy || result->family->n_spec_bytes == 0) {
        vxd_log(VXD_LOG_ERROR,
                "a pose graph has lost changes; its generation is another one",
                "posegraph", posegraph->terms.name, "reason", result->reason);
        VXD_TRY(raise_generation(recovery, posegraph, result->family, err));
    }
    vxd_posegraphs_publish(posegraphs, posegraph);
    release_posegraph(recovery); /* the registry holds it */
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
    (void)user;
    return false; /* none is used */
}

static bool is_ours(void *user, const struct vxd_journal_family *row)
{
    (void)user;
    return vxd_registry_is_of_kind(&vxd_posegraphs_kind, row);
}

static enum vxd_status recover(void *owner, struct vxd_registry_start *start,
                               const struct vxd_journal_found *found, struct vxd_err *err)
{
    struct vxd_posegraphs *posegraphs = owner;
    struct recovery recovery = {
        .posegraphs = posegraphs, .start = start, .generation = found->generation};
    const struct vxd_recovery_visitor visitor = {.user = &recovery,
                                                 .family = begin_family,
                                                 .snapshot = load,
                                                 .is_device_lost = is_device_lost,
                                                 .own_record = apply,
                                                 .is_ours = is_ours,
                                                 .done = done,
                                                 .progress = progress};
    enum vxd_status status;

    posegraphs->is_recovering = true;
    status = vxd_registry_recover(start, found, &visitor, err);
    posegraphs->is_recovering = false;
    release_posegraph(&recovery);
    return status;
}

static void log_event(enum vxd_registry_event event, const char *name, const char *text)
{
    switch (event) {
    case VXD_REGISTRY_RECOVERING:
        vxd_log(VXD_LOG_INFO, "bringing back pose graphs", "done", text, "posegraph",
                name);
        break;
    case VXD_REGISTRY_RECOVERED:
        vxd_log(VXD_LOG_INFO, "posegraphs are back", "families", text);
        break;
    case VXD_REGISTRY_SAVED:
        vxd_log(VXD_LOG_INFO, "snapshot written", "posegraph", name, "seconds", text);
        break;
    case VXD_REGISTRY_NOT_SAVED:
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "posegraph", name, "error",
                text);
        break;
    default:
        break;
    }
}

const struct vxd_durable_kind vxd_posegraphs_kind = {.noun = "posegraph",
                                                     .prefix = VXD_POSEGRAPH_FAMILIES,
                                                     .log = log_event,
                                                     .recover = recover,
                                                     .save = vxd_posegraphs_save};
