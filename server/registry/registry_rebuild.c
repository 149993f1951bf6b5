// SPDX-License-Identifier: Apache-2.0
/* Makes a thing as the disk has it, beside the journal's writer: from its newest valid snapshot
 * and the records after it. */
#include <inttypes.h>
#include <stdlib.h>

#include "proto/base/bytes.h"
#include "server/registry/registry.h"

enum {
    RECORDS_AT_ONCE = 256, /* copied while the journal's writer waits */
    BYTES_AT_ONCE = 8 << 20
};

/* Records that were read. They are applied after the reading, which the journal's writer
 * waits for. */
struct batch {
    struct vxd_bytes_out bytes;
    struct vxd_journal_record records[RECORDS_AT_ONCE];
    size_t starts[RECORDS_AT_ONCE];
    size_t n;
};

static enum vxd_status add_record(void *user, const struct vxd_journal_record *record,
                                  struct vxd_err *err)
{
    struct batch *batch = user;

    if (batch->n == RECORDS_AT_ONCE ||
        (batch->n > 0 && batch->bytes.n + record->n_bytes > BYTES_AT_ONCE)) {
        return VXD_ABORTED; /* enough for now */
    }
    batch->starts[batch->n] = batch->bytes.n;
    batch->records[batch->n] = *record;
    vxd_bytes_put(&batch->bytes, record->bytes, record->n_bytes);
    if (batch->bytes.is_out_of_memory) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for records");
    }
    batch->n++;
    return VXD_OK;
}

static enum vxd_status replay(struct vxd_journal *journal, uint32_t family, uint64_t next,
                              uint64_t last, const struct vxd_rebuilder *rebuild,
                              struct vxd_err *err)
{
    struct batch *batch = calloc(1, sizeof *batch);
    enum vxd_status status = VXD_OK;

    if (batch == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for records");
    }
    while (next <= last) {
        batch->n = 0;
        batch->bytes.n = 0;
        status = vxd_journal_read_records(journal, family, next, last, add_record, batch,
                                          NULL, err);
        VXD_TRY(status == VXD_ABORTED ? VXD_OK : status);
        if (batch->n == 0) {
            VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL, "record %" PRIu64 " is missing",
                             next));
        }
        for (size_t i = 0; i < batch->n; i++) {
            batch->records[i].bytes = batch->bytes.bytes + batch->starts[i];
            VXD_TRY(rebuild->apply(rebuild->user, &batch->records[i], err));
        }
        next += batch->n;
    }
out:
    free(batch->bytes.bytes);
    free(batch);
    return status;
}

static enum vxd_status load(const struct vxd_data_dir *dir, uint32_t family,
                            uint64_t sequence, const struct vxd_rebuilder *rebuild,
                            struct vxd_err *err)
{
    struct vxd_snapshot_reader *reader = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_open(dir, family, sequence, &reader, err));
    VXD_TRY(rebuild->load(rebuild->user, reader, err));
    VXD_TRY(vxd_snapshot_read_end(reader, err));
out:
    vxd_snapshot_close(reader);
    return status;
}

/* Loads the newest valid snapshot of at most `last`; *sequence is 0 where there is none. */
static enum vxd_status load_newest(const struct vxd_data_dir *dir, uint32_t family,
                                   uint64_t last, const struct vxd_rebuilder *rebuild,
                                   bool *is_loaded, uint64_t *sequence,
                                   struct vxd_err *err)
{
    uint64_t *sequences = NULL;
    size_t n = 0;
    enum vxd_status status;

    *is_loaded = false;
    *sequence = 0;
    VXD_TRY(vxd_snapshot_list(dir, family, &sequences, &n, err));
    for (size_t i = 0; i < n && !*is_loaded; i++) {
        struct vxd_err fault = {0};

        if (sequences[i] > last) {
            continue;
        }
        status = load(dir, family, sequences[i], rebuild, &fault);
        if (status == VXD_RESOURCE_EXHAUSTED || status == VXD_FAILED_PRECONDITION) {
            *err = fault;
            goto out;
        }
        if (status == VXD_OK) {
            *is_loaded = true;
            *sequence = sequences[i];
        } else {
            rebuild->discard(rebuild->user, &fault);
        }
    }
    status = VXD_OK;
out:
    free(sequences);
    return status;
}

enum vxd_status vxd_registry_rebuild(struct vxd_journal *journal,
                                     const struct vxd_data_dir *dir, uint32_t family,
                                     uint64_t sequence,
                                     const struct vxd_rebuilder *rebuild,
                                     struct vxd_err *err)
{
    bool is_loaded;
    uint64_t from;
    enum vxd_status status;

    VXD_TRY(load_newest(dir, family, sequence, rebuild, &is_loaded, &from, err));
    if (!is_loaded) {
        VXD_TRY(rebuild->begin(rebuild->user, err));
    }
    status = replay(journal, family, from + 1, sequence, rebuild, err);
out:
    return status;
}
