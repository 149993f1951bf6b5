// SPDX-License-Identifier: Apache-2.0
/* Hands changes of volumes over to the journal. Sequence numbers are counted for each volume, in
 * the order of the write lane, so the changes of a volume are decided in the order in which they
 * were made. */
#include "server/registry/volumes/volumes_journal.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/registry/volumes/volumes_internal.h"
#include "server/request/request.h"

enum {
    MAX_WAITING_BYTES = 128 << 20, /* of the journal's queue, which takes twice as much */
    MAX_CHANGE_BYTES = 240 << 20,  /* what it takes where nothing else waits */
    BLOCK_BYTES_AT_ONCE = 16 << 20, /* of blocks in one record, unpacked */
    LEAST_PACKED = 10 /* the part of their bytes that blocks take in a record, at best */
};

void vxd_volume_get_description(const struct vxd_named_volume *volume,
                                struct vxd_volume_described *out)
{
    out->terms = volume->terms;
    out->spec = volume->spec;
    out->generation = volume->generation;
    out->created_unix_ns = volume->created_unix_ns;
}

/* --- a volume that is not what the disk has ------------------------------------------------ */

/* Empties the volume before it is brought back, since the old and the new blocks may not both
 * fit. */
static enum vxd_status empty(struct vxd_volumes *volumes, struct vxd_named_volume *volume,
                             struct vxd_err *err)
{
    struct vxd_volume_spec spec = volume->spec;
    struct vxd_volume *made;
    enum vxd_status status;

    spec.capacity = 0;
    VXD_TRY(vxd_volume_create(volumes->queue, &spec, &made, err));
    vxd_volume_destroy(volumes->queue, volume->volume);
    volume->volume = made;
    status = vxd_queue_wait(volumes->queue, err);
    vxd_volumes_account(volumes, volume);
out:
    return status;
}

static enum vxd_status bring_back(struct vxd_volumes *volumes,
                                  struct vxd_named_volume *volume, struct vxd_err *err)
{
    struct vxd_volume_described described;
    struct vxd_volume_state state = {0};
    enum vxd_status status;

    vxd_volume_get_description(volume, &described);
    VXD_TRY(empty(volumes, volume, err));
    VXD_TRY(vxd_volume_bring_back(
        volumes->queue, vxd_registry_get_journal(volumes->registry),
        vxd_registry_get_data_dir(volumes->registry), volume->durable.journal_id,
        &described, volume->durable.decided, &state, err));
    vxd_volume_destroy(volumes->queue, volume->volume);
    volume->volume = state.volume;
    vxd_volume_forget_fields(volumes, volume);
    volume->n_images = state.n_images;
    volume->durable.sequence = volume->durable.decided;
    volume->durable.is_broken = false;
    vxd_log(VXD_LOG_INFO, "a volume was brought back from the disk", "volume",
            volume->terms.name);
out:
    (void)vxd_queue_wait(volumes->queue, NULL);
    vxd_volumes_account(volumes, volume);
    if (status != VXD_OK) {
        vxd_log(VXD_LOG_ERROR, "a volume could not be brought back from the disk",
                "volume", volume->terms.name, "error", err->message);
    }
    return status;
}

/* Brings a broken volume back, once no change waits that was built on the one that failed. */
static void bring_back_when_possible(struct vxd_volumes *volumes,
                                     struct vxd_named_volume *volume)
{
    struct vxd_err err = {0};

    if (volume->durable.is_broken && volume->durable.n_waiting == 0 &&
        !volume->durable.is_gone) {
        (void)bring_back(volumes, volume, &err);
    }
}

void vxd_volume_mark_broken(struct vxd_volumes *volumes, struct vxd_named_volume *volume)
{
    if (volume->durable.journal_id != 0) {
        volume->durable.is_broken = true;
        bring_back_when_possible(volumes, volume);
    }
}

enum vxd_status vxd_volume_check_visible(struct vxd_volumes *volumes,
                                         struct vxd_named_volume *volume,
                                         struct vxd_err *err)
{
    if (volume->durable.is_leaving) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "the volume \"%s\" is being dropped; try again",
                        volume->terms.name);
    }
    bring_back_when_possible(volumes, volume);
    return !volume->durable.is_broken
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, NULL,
                          "a change of the volume could not be written to the disk, and "
                          "what was built on it goes with it; try again");
}

enum vxd_status vxd_volume_check_journal(struct vxd_volumes *volumes,
                                         const struct vxd_named_volume *volume,
                                         struct vxd_err *err)
{
    struct vxd_journal_stats stats;
    enum vxd_status status;

    if (volume->durable.journal_id == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_registry_check_disk(volumes->registry, &stats, err));
    if (stats.n_queued > 0 && stats.n_queued_bytes > MAX_WAITING_BYTES) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "%zu bytes of changes wait for the disk already; try again",
                        stats.n_queued_bytes);
    }
out:
    return status;
}

bool vxd_volume_is_waiting(struct vxd_volumes *volumes,
                           const struct vxd_named_volume *volume)
{
    if (volume != NULL) {
        return volume->durable.n_waiting > 0;
    }
    for (const struct vxd_named_volume *v = volumes->first; v != NULL; v = v->next) {
        if (v->durable.n_waiting > 0) {
            return true;
        }
    }
    return false;
}

/* --- records -------------------------------------------------------------------------------- */

/* What a transaction has of a volume's records. */
struct added {
    uint64_t sequence; /* of the last one */
    size_t n_bytes;
};

/* txn NULL: only counts. */
static enum vxd_status add_record(struct vxd_journal_txn *txn,
                                  const struct vxd_named_volume *volume,
                                  const struct vxd_volume_record *record,
                                  struct added *added, struct vxd_err *err)
{
    struct vxd_record_bytes bytes = {0};
    struct vxd_journal_record row = {.family = volume->durable.journal_id,
                                     .sequence = added->sequence + 1,
                                     .rules_version = VXD_VOLUME_RULES_VERSION,
                                     .kind = (uint32_t)record->kind};
    enum vxd_status status;

    VXD_TRY(vxd_volume_record_encode(record, &bytes, err));
    row.bytes = bytes.bytes;
    row.n_bytes = bytes.n_bytes;
    added->n_bytes += bytes.n_bytes;
    if (added->n_bytes > MAX_CHANGE_BYTES) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "the change is more than the %d bytes that the journal takes at "
                         "once",
                         MAX_CHANGE_BYTES));
    }
    if (txn != NULL) {
        VXD_TRY(vxd_journal_add_record(txn, &row, err));
    }
    added->sequence++;
out:
    vxd_record_bytes_free(&bytes);
    return status;
}

/* Blocks that changed, which are to be records. */
struct packing {
    struct vxd_volumes *volumes;
    const struct vxd_named_volume *volume;
    struct vxd_volume_record record;
    int32_t *entries; /* of those that changed */
    size_t n;
    int32_t *all; /* of all, where blocks were removed */
    struct vxd_volume_blocks all_keys;
};

/* Makes the record of blocks first to first + n of those that changed. */
static enum vxd_status add_blocks(struct vxd_journal_txn *txn, struct packing *packing,
                                  size_t first, size_t n, struct added *added,
                                  struct vxd_err *err)
{
    const struct vxd_volume *volume = packing->volume->volume;
    struct vxd_queue *queue = packing->volumes->queue;
    struct vxd_record_blocks *to = &packing->record.blocks;
    struct vxd_volume_layer layers[VXD_VOLUME_MAX_LAYERS];
    struct vxd_volume_blocks blocks = {0};
    enum vxd_status status;

    to->n_layers = vxd_volume_get_layers(volume, layers);
    VXD_TRY(vxd_volume_read_blocks(queue, volume, packing->entries + first, n, true,
                                   &blocks, err));
    to->n = n;
    to->entries = blocks.entries;
    to->keys = blocks.keys;
    to->stamps = blocks.stamps;
    for (int i = 0; i < to->n_layers; i++) {
        (void)snprintf(to->layers[i].name, sizeof to->layers[i].name, "%s",
                       layers[i].name);
        to->layers[i].dtype = layers[i].dtype;
        to->layers[i].n_elements = layers[i].n_elements;
        to->layers[i].rows = blocks.layers[i];
    }
    to->has_all_keys = first == 0 && packing->all != NULL;
    to->all_keys = packing->all_keys.keys;
    to->n_all_keys = packing->all_keys.n;
    VXD_TRY(add_record(txn, packing->volume, &packing->record, added, err));
out:
    vxd_volume_blocks_free(queue, &blocks);
    return status;
}

/* Adds what changed after a version, as one record or several. */
static enum vxd_status put_blocks(struct vxd_volumes *volumes,
                                  const struct vxd_named_volume *volume,
                                  const struct vxd_volume_record *head, uint64_t since,
                                  struct vxd_journal_txn *txn, struct added *added,
                                  struct vxd_err *err)
{
    struct packing packing = {.volumes = volumes, .volume = volume, .record = *head};
    struct vxd_volume_info info;
    size_t n_all = 0;
    size_t at_once;
    enum vxd_status status;

    vxd_volume_get_info(volume->volume, &info);
    at_once = BLOCK_BYTES_AT_ONCE / info.block_bytes;
    packing.record.kind = VXD_VOLUME_RECORD_BLOCKS;
    packing.record.blocks =
        (struct vxd_record_blocks){.version = info.version,
                                   .removed_version = info.removed_version,
                                   .n_images = volume->n_images};
    VXD_TRY(vxd_volume_list_changed(volumes->queue, volume->volume, since,
                                    &packing.entries, &packing.n, err));
    if (since != 0 && info.removed_version > since) {
        VXD_TRY(vxd_volume_list_changed(volumes->queue, volume->volume, 0, &packing.all,
                                        &n_all, err));
        VXD_TRY(vxd_volume_read_blocks(volumes->queue, volume->volume, packing.all, n_all,
                                       false, &packing.all_keys, err));
    }
    for (size_t first = 0; first == 0 || first < packing.n; first += at_once) {
        size_t n_left = packing.n - first;

        VXD_TRY(add_blocks(txn, &packing, first, n_left < at_once ? n_left : at_once,
                           added, err));
    }
out:
    vxd_volume_blocks_free(volumes->queue, &packing.all_keys);
    free(packing.all);
    free(packing.entries);
    return status;
}

/* Adds a scan: as it is, or as the blocks that it changed where these are fewer bytes. Most scans
 * are not packed both ways, since they are far fewer bytes. */
static enum vxd_status put_scan(struct vxd_volumes *volumes,
                                const struct vxd_named_volume *volume,
                                const struct vxd_volume_entry *entry,
                                struct vxd_journal_txn *txn, struct added *added,
                                struct vxd_err *err)
{
    const struct vxd_volume_scan *scan = &entry->record.scan;
    size_t n_bytes = scan->n_points * (3 + (size_t)scan->n_features) * sizeof(float);
    struct added as_scan = {0};
    struct added as_blocks = {0};
    struct vxd_volume_info info;
    int32_t *entries = NULL;
    size_t n_blocks = 0;
    enum vxd_status status;

    vxd_volume_get_info(volume->volume, &info);
    VXD_TRY(vxd_volume_list_changed(volumes->queue, volume->volume, entry->since,
                                    &entries, &n_blocks, err));
    free(entries);
    if (n_bytes * LEAST_PACKED > n_blocks * info.block_bytes &&
        put_blocks(volumes, volume, &entry->record, entry->since, NULL, &as_blocks,
                   NULL) == VXD_OK &&
        add_record(NULL, volume, &entry->record, &as_scan, NULL) == VXD_OK &&
        as_blocks.n_bytes < as_scan.n_bytes) {
        return put_blocks(volumes, volume, &entry->record, entry->since, txn, added, err);
    }
    status = add_record(txn, volume, &entry->record, added, err);
out:
    return status;
}

/* --- handing over --------------------------------------------------------------------------- */

void vxd_volume_enter_journal(struct vxd_volumes *volumes,
                              struct vxd_named_volume *volume)
{
    volume->durable.journal_id =
        vxd_journal_new_family(vxd_registry_get_journal(volumes->registry));
}

static enum vxd_status put_family(const struct vxd_named_volume *volume,
                                  struct vxd_journal_txn *txn, struct vxd_err *err)
{
    struct vxd_journal_family row = {.id = volume->durable.journal_id,
                                     .fsync = volume->terms.fsync,
                                     .max_bytes = volume->terms.journal_max_bytes,
                                     .epoch = volume->generation};
    struct vxd_bytes_out bytes = {0};
    struct vxd_volume_described described;
    enum vxd_status status;

    vxd_registry_family_name(&vxd_volumes_kind, volume->terms.name, row.name);
    vxd_volume_get_description(volume, &described);
    vxd_volume_describe(&bytes, &described);
    row.spec = bytes.bytes;
    row.n_spec_bytes = bytes.n;
    status = !bytes.is_out_of_memory ? vxd_journal_put_family(txn, &row, err)
                                     : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                                "no memory for a volume's description");
    free(bytes.bytes);
    return status;
}

static enum vxd_status need(const struct vxd_named_volume *volume,
                            struct vxd_journal_txn *txn, struct vxd_err *err)
{
    return vxd_journal_need(txn, volume->durable.journal_id, volume->durable.sequence,
                            err);
}

/* Makes a read wait for all changes that it saw: of this volume, or of all where it is NULL. */
static enum vxd_status need_seen(const struct vxd_volumes *volumes,
                                 const struct vxd_named_volume *volume,
                                 struct vxd_journal_txn *txn, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (volume != NULL) {
        return need(volume, txn, err);
    }
    for (const struct vxd_named_volume *v = volumes->first; v != NULL && status == VXD_OK;
         v = v->next) {
        /* A volume that is being dropped may be gone by then, which is no error. */
        status = v->durable.n_waiting > 0 && !v->durable.is_leaving ? need(v, txn, err)
                                                                    : VXD_OK;
    }
    return status;
}

static enum vxd_status put_made(struct vxd_volumes *volumes,
                                const struct vxd_named_volume *volume,
                                const struct vxd_volume_entry *entry,
                                struct vxd_journal_txn *txn, struct added *added,
                                struct vxd_err *err)
{
    struct vxd_volume_info info;
    enum vxd_status status;

    vxd_volume_get_info(volume->volume, &info);
    VXD_TRY(put_family(volume, txn, err));
    if (entry->copied_from != NULL && entry->copied_from->durable.n_waiting > 0) {
        VXD_TRY(need(entry->copied_from, txn, err));
    }
    if (info.n_blocks > 0) {
        VXD_TRY(put_blocks(volumes, volume, &entry->record, 0, txn, added, err));
    }
out:
    return status;
}

/* Adds the change to the transaction; *added counts its records. */
static enum vxd_status put_change(struct vxd_volumes *volumes,
                                  const struct vxd_named_volume *volume,
                                  const struct vxd_volume_entry *entry,
                                  struct vxd_journal_txn *txn, struct added *added,
                                  struct vxd_err *err)
{
    switch (entry->kind) {
    case VXD_VOLUME_MADE:
        return put_made(volumes, volume, entry, txn, added, err);
    case VXD_VOLUME_DROPPED:
        return vxd_journal_drop_family(txn, volume->durable.journal_id, err);
    case VXD_VOLUME_READ:
        return need_seen(volumes, volume, txn, err);
    case VXD_VOLUME_CHANGED:
    default:
        if (entry->record.kind == VXD_VOLUME_RECORD_SCAN) {
            return put_scan(volumes, volume, entry, txn, added, err);
        }
        return entry->record.kind != 0
                   ? add_record(txn, volume, &entry->record, added, err)
                   : put_blocks(volumes, volume, &entry->record, entry->since, txn, added,
                                err);
    }
}

enum vxd_status vxd_volume_hand_over(struct vxd_volumes *volumes,
                                     struct vxd_named_volume *volume,
                                     struct vxd_request *request,
                                     struct vxd_volume_entry *entry, struct vxd_err *err)
{
    struct added added = {0};
    struct vxd_journal_txn *txn = NULL;
    enum vxd_status status;

    entry->record.unix_ns = vxd_clock_unix_ns();
    (void)snprintf(entry->record.author, sizeof entry->record.author, "%s",
                   request->principal.name);
    (void)snprintf(entry->record.client, sizeof entry->record.client, "%s",
                   request->client_id);
    if (entry->kind != VXD_VOLUME_READ) {
        added.sequence = volume->durable.sequence;
    }
    VXD_TRY(vxd_journal_begin(vxd_registry_get_journal(volumes->registry), &txn, err));
    VXD_TRY(put_change(volumes, volume, entry, txn, &added, err));
    status = vxd_registry_hand_over(txn, request, entry->record.unix_ns, err);
    txn = NULL;
    if (status == VXD_OK && entry->kind != VXD_VOLUME_READ) {
        entry->is_handed_over = true;
        volume->durable.n_waiting++;
        volume->durable.is_leaving = entry->kind == VXD_VOLUME_DROPPED;
        volume->durable.sequence = added.sequence;
        entry->sequence = added.sequence;
    }
out:
    vxd_journal_abandon(txn);
    return status;
}

/* --- what is decided ------------------------------------------------------------------------ */

/* Removes the volume, so that its name is free again. */
static void remove_volume(struct vxd_volumes *volumes, struct vxd_named_volume *volume)
{
    if (!volume->durable.is_gone) {
        volume->durable.is_gone = true;
        vxd_volumes_remove(volumes, volumes->queue, volume);
        (void)vxd_queue_wait(volumes->queue, NULL);
    }
}

void vxd_volume_end_change(struct vxd_volumes *volumes, struct vxd_named_volume *volume,
                           struct vxd_volume_entry *entry, bool committed)
{
    struct vxd_volume_durable *durable;

    if (entry->kind == VXD_VOLUME_READ) {
        return; /* a list has no volume of its own */
    }
    durable = &volume->durable;
    durable->n_waiting -= entry->is_handed_over ? 1 : 0;
    if (entry->kind == VXD_VOLUME_CHANGED) {
        durable->decided = committed ? entry->sequence : durable->decided;
        durable->is_broken = durable->is_broken || !committed;
    } else if (entry->kind == VXD_VOLUME_MADE && committed) {
        durable->decided = entry->sequence;
    } else if (entry->kind == VXD_VOLUME_MADE) {
        durable->is_broken = true;
        remove_volume(volumes, volume);
    } else if (entry->kind == VXD_VOLUME_DROPPED) {
        durable->is_leaving = false;
        if (committed) {
            /* This comes before the volume is removed, since its id is lost with its last
             * reference. */
            vxd_registry_ask_snapshot(volumes->registry, durable->journal_id);
            remove_volume(volumes, volume);
            return;
        }
    }
    bring_back_when_possible(volumes, volume);
}
