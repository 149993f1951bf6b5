// SPDX-License-Identifier: Apache-2.0
/* What the journal gets of a change of a volume: an image or a scan as it came, what is removed, or the
 * blocks that changed. */
#include <stdlib.h>
#include <string.h>

#include "server/registry/volumes/volumes_internal.h"

enum {
    MAX_CHANGE_BYTES =
        240 << 20, /* what the journal takes at once where nothing else waits */
    BLOCK_BYTES_AT_ONCE = 16 << 20, /* of blocks in one record, unpacked */
    LEAST_PACKED = 10 /* the part of their bytes that blocks take in a record, at best */
};

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
    struct vxd_journal_record row = {.family = volume->named.durable.journal_id,
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
    struct vxd_queue *queue;
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
    const struct vxd_volume *volume = packing->volume->state.volume;
    struct vxd_queue *queue = packing->queue;
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
static enum vxd_status put_blocks(const struct vxd_named_volume *volume,
                                  const struct vxd_volume_record *head, uint64_t since,
                                  struct vxd_journal_txn *txn, struct added *added,
                                  struct vxd_err *err)
{
    struct vxd_queue *queue = vxd_names_queue(volume->named.names);
    struct packing packing = {.queue = queue, .volume = volume, .record = *head};
    struct vxd_volume_info info;
    size_t n_all = 0;
    size_t at_once;
    enum vxd_status status;

    vxd_volume_get_info(volume->state.volume, &info);
    at_once = BLOCK_BYTES_AT_ONCE / info.block_bytes;
    packing.record.kind = VXD_VOLUME_RECORD_BLOCKS;
    packing.record.blocks =
        (struct vxd_record_blocks){.version = info.version,
                                   .removed_version = info.removed_version,
                                   .n_images = volume->state.n_images};
    VXD_TRY(vxd_volume_list_changed(queue, volume->state.volume, since, &packing.entries,
                                    &packing.n, err));
    if (since != 0 && info.removed_version > since) {
        VXD_TRY(vxd_volume_list_changed(queue, volume->state.volume, 0, &packing.all,
                                        &n_all, err));
        VXD_TRY(vxd_volume_read_blocks(queue, volume->state.volume, packing.all, n_all,
                                       false, &packing.all_keys, err));
    }
    for (size_t first = 0; first == 0 || first < packing.n; first += at_once) {
        size_t n_left = packing.n - first;

        VXD_TRY(add_blocks(txn, &packing, first, n_left < at_once ? n_left : at_once,
                           added, err));
    }
out:
    vxd_volume_blocks_free(queue, &packing.all_keys);
    free(packing.all);
    free(packing.entries);
    return status;
}

/* Adds a scan: as it is, or as the blocks that it changed where these are fewer bytes. Most scans
 * are not packed both ways, since they are far fewer bytes. */
static enum vxd_status put_scan(const struct vxd_named_volume *volume,
                                const struct vxd_volume_entry *entry,
                                struct vxd_journal_txn *txn, struct added *added,
                                struct vxd_err *err)
{
    const struct vxd_volume_scan *scan = &entry->record.scan;
    size_t n_bytes = scan->n_points * (3 + (size_t)scan->n_features) * sizeof(float);
    struct added as_scan = {0};
    struct added as_blocks = {0};
    struct vxd_volume_info info;
    struct vxd_queue *queue = vxd_names_queue(volume->named.names);
    int32_t *entries = NULL;
    size_t n_blocks = 0;
    enum vxd_status status;

    vxd_volume_get_info(volume->state.volume, &info);
    VXD_TRY(vxd_volume_list_changed(queue, volume->state.volume, entry->since, &entries,
                                    &n_blocks, err));
    free(entries);
    if (n_bytes * LEAST_PACKED > n_blocks * info.block_bytes &&
        put_blocks(volume, &entry->record, entry->since, NULL, &as_blocks, NULL) ==
            VXD_OK &&
        add_record(NULL, volume, &entry->record, &as_scan, NULL) == VXD_OK &&
        as_blocks.n_bytes < as_scan.n_bytes) {
        return put_blocks(volume, &entry->record, entry->since, txn, added, err);
    }
    status = add_record(txn, volume, &entry->record, added, err);
out:
    return status;
}

static enum vxd_status put_made(const struct vxd_named_volume *volume,
                                const struct vxd_volume_entry *entry,
                                struct vxd_journal_txn *txn, struct added *added,
                                struct vxd_err *err)
{
    const struct vxd_named_volume *from = entry->copied_from;
    struct vxd_volume_info info;
    enum vxd_status status = VXD_OK;

    vxd_volume_get_info(volume->state.volume, &info);
    if (from != NULL && from->named.durable.n_waiting > 0) {
        VXD_TRY(vxd_named_need(&from->named, txn, err));
    }
    if (info.n_blocks > 0) {
        status = put_blocks(volume, &entry->record, 0, txn, added, err);
    }
out:
    return status;
}

/* All blocks that the disk has are removed, those outside a ball without a radius where no block has its
 * centre; then all that are there now are added. */
static enum vxd_status put_anew(const struct vxd_named_volume *volume,
                                const struct vxd_volume_entry *entry,
                                struct vxd_journal_txn *txn, struct added *added,
                                struct vxd_err *err)
{
    struct vxd_volume_record removal = entry->record;
    struct vxd_volume_region *region = &removal.decay.region;
    enum vxd_status status;

    removal.kind = VXD_VOLUME_RECORD_REMOVE;
    region->is_ball = true;
    memcpy(region->centre, volume->spec.origin_m, sizeof region->centre);
    VXD_TRY(add_record(txn, volume, &removal, added, err));
    status = put_blocks(volume, &entry->record, 0, txn, added, err);
out:
    return status;
}

static enum vxd_status put_changed(const struct vxd_named_volume *volume,
                                   const struct vxd_volume_entry *entry,
                                   struct vxd_journal_txn *txn, struct added *added,
                                   struct vxd_err *err)
{
    if (entry->replaces) {
        return put_anew(volume, entry, txn, added, err);
    }
    if (entry->record.kind == VXD_VOLUME_RECORD_SCAN) {
        return put_scan(volume, entry, txn, added, err);
    }
    return entry->record.kind != 0
               ? add_record(txn, volume, &entry->record, added, err)
               : put_blocks(volume, &entry->record, entry->since, txn, added, err);
}

enum vxd_status vxd_volume_put(struct vxd_named *named, struct vxd_request *request,
                               struct vxd_named_entry *base, struct vxd_journal_txn *txn,
                               struct vxd_err *err)
{
    const struct vxd_named_volume *volume = (const struct vxd_named_volume *)named;
    struct vxd_volume_entry *entry = (struct vxd_volume_entry *)base;
    struct vxd_volume_record *record = &entry->record;
    struct added added = {.sequence = base->sequence};
    enum vxd_status status;

    record->unix_ns = base->unix_ns;
    (void)snprintf(record->author, sizeof record->author, "%s", request->principal.name);
    (void)snprintf(record->client, sizeof record->client, "%s", request->client_id);
    status = base->kind == VXD_NAMED_MADE ? put_made(volume, entry, txn, &added, err)
                                          : put_changed(volume, entry, txn, &added, err);
    base->sequence = added.sequence;
    return status;
}
