// SPDX-License-Identifier: Apache-2.0
/* Hands changes of pose graphs over to the journal. Sequence numbers are counted for each graph, in the
 * order of the write lane, so the changes of a graph are decided in the order in which they were
 * made. */
#include "server/registry/posegraphs/posegraphs_journal.h"

#include <stdlib.h>
#include <string.h>

#include "server/observe/log/log.h"
#include "server/registry/posegraphs/posegraphs_internal.h"
#include "server/request/request.h"

enum {
    MAX_WAITING_BYTES = 128 << 20, /* of the journal's queue, which takes twice as much */
    MAX_CHANGE_BYTES = 240 << 20   /* what it takes where nothing else waits */
};

void vxd_posegraph_get_description(const struct vxd_named_posegraph *posegraph,
                                   struct vxd_posegraph_described *out)
{
    out->terms = posegraph->terms;
    out->generation = posegraph->generation;
    out->created_unix_ns = posegraph->created_unix_ns;
}

/* --- a graph that is not what the disk has ---------------------------------------------------- */

static enum vxd_status bring_back(struct vxd_posegraphs *posegraphs,
                                  struct vxd_named_posegraph *posegraph,
                                  struct vxd_err *err)
{
    enum vxd_status status = vxd_posegraph_bring_back(
        vxd_registry_get_journal(posegraphs->registry),
        vxd_registry_get_data_dir(posegraphs->registry), posegraph->durable.journal_id,
        posegraph->terms.name, posegraph->durable.decided, &posegraph->content, err);

    vxd_posegraphs_account(posegraphs, posegraph);
    if (status != VXD_OK) {
        vxd_log(VXD_LOG_ERROR, "a pose graph could not be brought back from the disk",
                "posegraph", posegraph->terms.name, "error", err->message);
        return status;
    }
    posegraph->durable.sequence = posegraph->durable.decided;
    posegraph->durable.is_broken = false;
    vxd_log(VXD_LOG_INFO, "a pose graph was brought back from the disk", "posegraph",
            posegraph->terms.name);
    return VXD_OK;
}

/* Brings a broken posegraph back, once no change waits that was built on the one that failed. */
static void bring_back_when_possible(struct vxd_posegraphs *posegraphs,
                                     struct vxd_named_posegraph *posegraph)
{
    struct vxd_err err = {0};

    if (posegraph->durable.is_broken && posegraph->durable.n_waiting == 0 &&
        !posegraph->durable.is_gone) {
        (void)bring_back(posegraphs, posegraph, &err);
    }
}

void vxd_posegraph_mark_broken(struct vxd_posegraphs *posegraphs,
                               struct vxd_named_posegraph *posegraph)
{
    if (posegraph->durable.journal_id != 0) {
        posegraph->durable.is_broken = true;
        bring_back_when_possible(posegraphs, posegraph);
    }
}

enum vxd_status vxd_posegraph_check_visible(struct vxd_posegraphs *posegraphs,
                                            struct vxd_named_posegraph *posegraph,
                                            struct vxd_err *err)
{
    if (posegraph->durable.is_leaving) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "the pose graph \"%s\" is being dropped; try again",
                        posegraph->terms.name);
    }
    bring_back_when_possible(posegraphs, posegraph);
    return !posegraph->durable.is_broken
               ? VXD_OK
               : vxd_fail(
                     err, VXD_UNAVAILABLE, NULL,
                     "a change of the pose graph could not be written to the disk, and "
                     "what was built on it goes with it; try again");
}

enum vxd_status vxd_posegraph_check_journal(struct vxd_posegraphs *posegraphs,
                                            const struct vxd_named_posegraph *posegraph,
                                            struct vxd_err *err)
{
    struct vxd_journal_stats stats;
    enum vxd_status status;

    if (posegraph->durable.journal_id == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_registry_check_disk(posegraphs->registry, &stats, err));
    if (stats.n_queued > 0 && stats.n_queued_bytes > MAX_WAITING_BYTES) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "%zu bytes of changes wait for the disk already; try again",
                        stats.n_queued_bytes);
    }
out:
    return status;
}

bool vxd_posegraph_is_waiting(struct vxd_posegraphs *posegraphs,
                              const struct vxd_named_posegraph *posegraph)
{
    if (posegraph != NULL) {
        return posegraph->durable.n_waiting > 0;
    }
    for (const struct vxd_named_posegraph *v = posegraphs->first; v != NULL;
         v = v->next) {
        if (v->durable.n_waiting > 0) {
            return true;
        }
    }
    return false;
}

/* --- records -------------------------------------------------------------------------------- */

static enum vxd_status add_record(struct vxd_journal_txn *txn,
                                  const struct vxd_named_posegraph *posegraph,
                                  struct vxd_posegraph_entry *entry, struct vxd_err *err)
{
    struct vxd_journal_record row = {.family = posegraph->durable.journal_id,
                                     .sequence = posegraph->durable.sequence + 1,
                                     .rules_version = VXD_POSEGRAPH_RULES_VERSION,
                                     .kind = (uint32_t)entry->record_kind,
                                     .bytes = entry->record.bytes,
                                     .n_bytes = entry->record.n_bytes};

    if (entry->record.n_bytes > MAX_CHANGE_BYTES) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the change is more than the %d bytes that the journal takes at "
                        "once",
                        MAX_CHANGE_BYTES);
    }
    entry->sequence = row.sequence;
    return vxd_journal_add_record(txn, &row, err);
}

/* --- handing over --------------------------------------------------------------------------- */

void vxd_posegraph_enter_journal(struct vxd_posegraphs *posegraphs,
                                 struct vxd_named_posegraph *posegraph)
{
    posegraph->durable.journal_id =
        vxd_journal_new_family(vxd_registry_get_journal(posegraphs->registry));
}

static enum vxd_status put_family(const struct vxd_named_posegraph *posegraph,
                                  struct vxd_journal_txn *txn, struct vxd_err *err)
{
    struct vxd_journal_family row = {.id = posegraph->durable.journal_id,
                                     .fsync = posegraph->terms.fsync,
                                     .max_bytes = posegraph->terms.journal_max_bytes,
                                     .epoch = posegraph->generation};
    struct vxd_bytes_out bytes = {0};
    struct vxd_posegraph_described described;
    enum vxd_status status;

    vxd_registry_family_name(&vxd_posegraphs_kind, posegraph->terms.name, row.name);
    vxd_posegraph_get_description(posegraph, &described);
    vxd_posegraph_describe(&bytes, &described);
    row.spec = bytes.bytes;
    row.n_spec_bytes = bytes.n;
    status = !bytes.is_out_of_memory
                 ? vxd_journal_put_family(txn, &row, err)
                 : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no memory for a pose graph's description");
    free(bytes.bytes);
    return status;
}

static enum vxd_status need(const struct vxd_named_posegraph *posegraph,
                            struct vxd_journal_txn *txn, struct vxd_err *err)
{
    return vxd_journal_need(txn, posegraph->durable.journal_id,
                            posegraph->durable.sequence, err);
}

/* Makes a read wait for all changes that it saw: of this posegraph, or of all where it is NULL. */
static enum vxd_status need_seen(const struct vxd_posegraphs *posegraphs,
                                 const struct vxd_named_posegraph *posegraph,
                                 struct vxd_journal_txn *txn, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (posegraph != NULL) {
        return need(posegraph, txn, err);
    }
    for (const struct vxd_named_posegraph *v = posegraphs->first;
         v != NULL && status == VXD_OK; v = v->next) {
        /* A pose graph that is being dropped may be gone by then, which is no error. */
        status = v->durable.n_waiting > 0 && !v->durable.is_leaving ? need(v, txn, err)
                                                                    : VXD_OK;
    }
    return status;
}

/* Adds the change to the transaction. */
static enum vxd_status put_change(struct vxd_posegraphs *posegraphs,
                                  const struct vxd_named_posegraph *posegraph,
                                  struct vxd_posegraph_entry *entry,
                                  struct vxd_journal_txn *txn, struct vxd_err *err)
{
    entry->sequence = posegraph != NULL ? posegraph->durable.sequence : 0;
    switch (entry->kind) {
    case VXD_POSEGRAPH_MADE:
        return put_family(posegraph, txn, err);
    case VXD_POSEGRAPH_DROPPED:
        return vxd_journal_drop_family(txn, posegraph->durable.journal_id, err);
    case VXD_POSEGRAPH_READ:
        return need_seen(posegraphs, posegraph, txn, err);
    case VXD_POSEGRAPH_CHANGED:
    default:
        return add_record(txn, posegraph, entry, err);
    }
}

enum vxd_status vxd_posegraph_hand_over(struct vxd_posegraphs *posegraphs,
                                        struct vxd_named_posegraph *posegraph,
                                        struct vxd_request *request,
                                        struct vxd_posegraph_entry *entry,
                                        struct vxd_err *err)
{
    struct vxd_journal_txn *txn = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_journal_begin(vxd_registry_get_journal(posegraphs->registry), &txn, err));
    VXD_TRY(put_change(posegraphs, posegraph, entry, txn, err));
    status = vxd_registry_hand_over(txn, request, entry->unix_ns, err);
    txn = NULL;
    if (status == VXD_OK && entry->kind != VXD_POSEGRAPH_READ) {
        entry->is_handed_over = true;
        posegraph->durable.n_waiting++;
        posegraph->durable.is_leaving = entry->kind == VXD_POSEGRAPH_DROPPED;
        posegraph->durable.sequence = entry->sequence;
    }
out:
    vxd_journal_abandon(txn);
    return status;
}

/* --- what is decided ------------------------------------------------------------------------ */

/* Removes the pose graph, so that its name is free again. */
static void remove_posegraph(struct vxd_posegraphs *posegraphs,
                             struct vxd_named_posegraph *posegraph)
{
    if (!posegraph->durable.is_gone) {
        posegraph->durable.is_gone = true;
        vxd_posegraphs_remove(posegraphs, posegraph);
    }
}

void vxd_posegraph_end_change(struct vxd_posegraphs *posegraphs,
                              struct vxd_named_posegraph *posegraph,
                              struct vxd_posegraph_entry *entry, bool committed)
{
    struct vxd_posegraph_durable *durable;

    if (entry->kind == VXD_POSEGRAPH_READ) {
        return; /* a list has no posegraph of its own */
    }
    durable = &posegraph->durable;
    durable->n_waiting -= entry->is_handed_over ? 1 : 0;
    if (entry->kind == VXD_POSEGRAPH_CHANGED) {
        durable->decided = committed ? entry->sequence : durable->decided;
        durable->is_broken = durable->is_broken || !committed;
    } else if (entry->kind == VXD_POSEGRAPH_MADE && committed) {
        durable->decided = entry->sequence;
    } else if (entry->kind == VXD_POSEGRAPH_MADE) {
        durable->is_broken = true;
        remove_posegraph(posegraphs, posegraph);
    } else if (entry->kind == VXD_POSEGRAPH_DROPPED) {
        durable->is_leaving = false;
        if (committed) {
            /* This comes before the pose graph is removed, since its id is lost with its last
             * reference. */
            vxd_registry_ask_snapshot(posegraphs->registry, durable->journal_id);
            remove_posegraph(posegraphs, posegraph);
            return;
        }
    }
    bring_back_when_possible(posegraphs, posegraph);
}
