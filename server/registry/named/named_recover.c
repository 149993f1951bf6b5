// SPDX-License-Identifier: Apache-2.0
/* Durable things after a start: the newest valid snapshot, then the records after it, in order. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/registry/named/named_internal.h"

struct recovery {
    struct vxd_names *names;
    const struct vxd_noun_calls *calls;
    const struct vxd_durable_calls *durable;
    struct vxd_named
        *named; /* being recovered: without a name yet, and with one reference */
    struct vxd_described *described; /* of the family that begins */
    struct vxd_registry_start *start;
    uint64_t generation; /* generations up to it were given out before */
};

static void release(struct recovery *recovery)
{
    if (recovery->named != NULL) {
        vxd_named_drop(recovery->named, recovery->names->queue);
        vxd_names_wait(recovery->names);
        recovery->named = NULL;
    }
}

static enum vxd_status fail_undescribed(const struct recovery *recovery,
                                        struct vxd_err *err)
{
    return vxd_fail(err, VXD_DATA_LOSS, NULL, "no description of the %s is left",
                    recovery->calls->one);
}

/* Reads the description from a snapshot file.
 * errors  DATA_LOSS  no file has one; others where a file cannot be read now */
static enum vxd_status describe_by_file(const struct recovery *recovery, uint32_t family,
                                        struct vxd_err *err)
{
    const struct vxd_data_dir *dir = vxd_registry_get_data_dir(recovery->names->registry);
    struct vxd_err fault = {0};
    uint64_t *sequences = NULL;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_list(dir, family, &sequences, &n, err));
    status = fail_undescribed(recovery, &fault);
    for (size_t i = 0; i < n && status == VXD_DATA_LOSS; i++) {
        struct vxd_snapshot_reader *reader = NULL;

        status = vxd_snapshot_open(dir, family, sequences[i], &reader, &fault);
        if (status == VXD_OK) {
            status =
                recovery->durable->read_catalogue(reader, recovery->described, &fault);
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

/* Finds the description of a family. A repair may have made the row anew without one; then a snapshot
 * file has it. The name in the file may meanwhile belong to another thing, so the row's name, which is
 * unique, decides. */
static enum vxd_status describe(const struct recovery *recovery,
                                const struct vxd_journal_family *row, struct vxd_err *err)
{
    const struct vxd_durable_kind *kind = recovery->durable->kind;
    const struct vxd_named *named = recovery->named;
    struct vxd_named_terms *terms = &recovery->described->terms;
    char name[VXD_JOURNAL_NAME_BYTES];
    enum vxd_status status;

    if (row->n_spec_bytes > 0) {
        return recovery->durable->read_description(row->spec, row->n_spec_bytes,
                                                   recovery->described, err);
    }
    if (named != NULL && named->durable.journal_id == row->id) {
        /* It was read from a file whose other parts were damaged. */
        vxd_named_describe(named, recovery->described);
        return VXD_OK;
    }
    VXD_TRY(describe_by_file(recovery, row->id, err));
    vxd_registry_family_name(kind, terms->name, name);
    if (strcmp(name, row->name) != 0) {
        (void)snprintf(terms->name, sizeof terms->name, "%s",
                       row->name + strlen(kind->prefix));
    }
    if (!vxd_is_name(terms->name)) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "its name is another %s's",
                          recovery->calls->one);
    }
out:
    return status;
}

/* Called again after a damaged snapshot: what that had loaded is dropped. */
static enum vxd_status begin_family(void *user, const struct vxd_journal_family *row,
                                    struct vxd_err *err)
{
    struct recovery *recovery = user;
    const struct vxd_described *described = recovery->described;
    struct vxd_named *made = NULL;
    struct vxd_err fault = {0};
    enum vxd_status status;

    memset(recovery->described, 0, recovery->durable->described_bytes);
    status = describe(recovery, row, &fault);
    release(recovery);
    if (status == VXD_DATA_LOSS && row->n_spec_bytes == 0) {
        recovery->calls->log(VXD_REGISTRY_NOT_RECOVERED, row->name, fault.message);
        return VXD_OK;
    }
    if (status != VXD_OK) {
        *err = fault; /* a later start may be able to read it, so nothing is given up */
        return status;
    }
    if (vxd_names_peek(recovery->names, described->terms.name) != NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "there are two %s \"%s\"",
                        recovery->calls->many, described->terms.name);
    }
    VXD_TRY(recovery->durable->make(recovery->names, described, &made, err));
    made->generation = described->generation;
    made->created_unix_ns = described->created_unix_ns;
    made->durable.journal_id = row->id;
    recovery->named = made;
out:
    return status;
}

static enum vxd_status load(void *user, const struct vxd_journal_family *row,
                            struct vxd_snapshot_reader *reader, struct vxd_err *err)
{
    struct recovery *recovery = user;
    const struct vxd_durable_calls *durable = recovery->durable;
    struct vxd_queue *queue = recovery->names->queue;
    void *content;
    enum vxd_status status;

    (void)row;
    if (recovery->named == NULL) {
        return fail_undescribed(recovery, err);
    }
    content = durable->content(recovery->named);
    durable->clear(queue, content);
    vxd_named_describe(recovery->named, recovery->described);
    status = durable->read(reader, queue, recovery->described, content, err);
    if (status == VXD_OK && queue != NULL) {
        status = vxd_queue_wait(queue, err);
    }
    return status;
}

static enum vxd_status apply(void *user, const struct vxd_journal_family *row,
                             const struct vxd_journal_record *record, struct vxd_err *err)
{
    struct recovery *recovery = user;

    (void)row;
    if (recovery->named == NULL) {
        return fail_undescribed(recovery, err);
    }
    return recovery->durable->apply(
        recovery->names->queue, recovery->durable->content(recovery->named), record, err);
}

/* Gives a thing that has lost changes a new generation, so that whatever clients know of it counts as
 * another one's. */
static enum vxd_status raise_generation(const struct recovery *recovery,
                                        const struct vxd_journal_family *family,
                                        struct vxd_err *err)
{
    struct vxd_named *named = recovery->named;
    struct vxd_journal_family row = *family;
    uint64_t now_ns = (uint64_t)vxd_clock_unix_ns();
    enum vxd_status status;

    row.spec = NULL;
    if (named->generation < recovery->generation) {
        named->generation = recovery->generation;
    }
    named->generation = now_ns > named->generation ? now_ns : named->generation + 1;
    if (recovery->durable->renew != NULL) {
        recovery->durable->renew(named, now_ns);
    }
    /* A row that a repair made lacks more than the description. */
    VXD_TRY(vxd_named_make_row(named, &row, err));
    status = vxd_registry_rewrite_family(recovery->names->registry, &row, err);
out:
    free((void *)(uintptr_t)row.spec);
    return status;
}

static enum vxd_status done(void *user, const struct vxd_recovered_family *result,
                            struct vxd_err *err)
{
    struct recovery *recovery = user;
    const struct vxd_durable_calls *durable = recovery->durable;
    struct vxd_named *named = recovery->named;
    struct vxd_names *names = recovery->names;
    enum vxd_status status = VXD_OK;

    if (named == NULL) { /* so that its name is free again */
        return vxd_journal_forget_family(vxd_registry_get_journal(names->registry),
                                         result->family->id, err);
    }
    if (durable->end != NULL) {
        durable->end(names->queue, durable->content(named));
    }
    if (durable->settle != NULL) {
        VXD_TRY(durable->settle(named, err));
    }
    if (names->queue != NULL) {
        VXD_TRY(vxd_queue_wait(names->queue, err));
    }
    named->durable.sequence = result->last_sequence;
    named->durable.decided = result->last_sequence;
    vxd_named_account(named);
    if (result->is_lossy || result->family->n_spec_bytes == 0) {
        recovery->calls->log(VXD_REGISTRY_LOSSY, named->terms.name, result->reason);
        VXD_TRY(raise_generation(recovery, result->family, err));
    }
    vxd_named_publish(named);
    release(recovery); /* the table holds it */
out:
    return status;
}

static void progress(void *user, const struct vxd_recovery_progress *at)
{
    const struct recovery *recovery = user;

    vxd_registry_log_progress(recovery->start, at);
}

static bool is_device_lost(void *user)
{
    const struct vxd_queue *queue = ((const struct recovery *)user)->names->queue;

    return queue != NULL && vxd_context_is_lost(vxd_queue_context(queue));
}

static bool is_ours(void *user, const struct vxd_journal_family *row)
{
    return vxd_registry_is_of_kind(((const struct recovery *)user)->durable->kind, row);
}

enum vxd_status vxd_names_recover(void *owner, struct vxd_registry_start *start,
                                  const struct vxd_journal_found *found,
                                  struct vxd_err *err)
{
    struct vxd_names *names = owner;
    struct recovery recovery = {.names = names,
                                .calls = names->calls,
                                .durable = names->calls->durable,
                                .start = start,
                                .generation = found->generation};
    const struct vxd_recovery_visitor visitor = {.user = &recovery,
                                                 .family = begin_family,
                                                 .snapshot = load,
                                                 .is_device_lost = is_device_lost,
                                                 .own_record = apply,
                                                 .is_ours = is_ours,
                                                 .done = done,
                                                 .progress = progress};
    enum vxd_status status;

    recovery.described = calloc(1, recovery.durable->described_bytes);
    if (recovery.described == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory to bring %s back",
                        names->calls->many);
    }
    names->is_recovering = true;
    status = vxd_registry_recover(start, found, &visitor, err);
    names->is_recovering = false;
    release(&recovery);
    free(recovery.described);
    return status;
}
