// SPDX-License-Identifier: Apache-2.0
/* Durable maps after a start. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/durable/recovery/recovery.h"
#include "server/observe/log/log.h"
#include "server/registry/maps/maps_internal.h"
#include "server/registry/maps/maps_journal.h"
#include "server/registry/scenes/scenes_recover.h"
#include "server/instance/instance.h"

struct recovery {
    struct vxd_maps *maps;
    struct vxd_map *map; /* in hand, not findable yet, with one reference */
    uint64_t generation; /* none up to it is given out again */
    int64_t logged_ns;   /* 0: not yet, so that the first line comes at once */
};

static void let_go(struct recovery *recovery)
{
    if (recovery->map != NULL) {
        vxd_map_drop(recovery->maps, recovery->maps->queue, recovery->map);
        (void)vxd_queue_wait(recovery->maps->queue, NULL);
        recovery->map = NULL;
    }
}

/* What a snapshot file says that the map is.
 * errors  DATA_LOSS  none says it; others where one cannot be read now */
static enum vxd_status describe_by_file(const struct vxd_data_dir *dir, uint32_t family,
                                        struct vxd_map_described *out,
                                        struct vxd_err *err)
{
    struct vxd_err fault = {0};
    uint64_t *sequences = NULL;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_list(dir, family, &sequences, &n, err));
    (void)vxd_fail(&fault, VXD_DATA_LOSS, NULL, "what the map is, is gone");
    status = VXD_DATA_LOSS;
    for (size_t i = 0; i < n && status == VXD_DATA_LOSS; i++) {
        struct vxd_snapshot_reader *reader = NULL;

        status = vxd_snapshot_open(dir, family, sequences[i], &reader, &fault);
        if (status == VXD_OK) {
            status = vxd_map_read_catalogue(reader, out, &fault);
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

/* A repair may have had to make the row anew, without what the map is: then a snapshot file says
 * it, though not that no other map has its name: rows' names are all different. */
static enum vxd_status describe(const struct recovery *recovery,
                                const struct vxd_journal_family *row,
                                struct vxd_map_described *out, struct vxd_err *err)
{
    const struct vxd_map *map = recovery->map;
    char name[VXD_JOURNAL_NAME_BYTES];
    enum vxd_status status;

    if (row->n_spec_bytes > 0) {
        return vxd_map_read_description(row->spec, row->n_spec_bytes, out, err);
    }
    if (map != NULL && map->durable.journal_id == row->id) {
        vxd_map_get_description(map, out); /* of a file that was no good otherwise */
        return VXD_OK;
    }
    VXD_TRY(describe_by_file(recovery->maps->dir, row->id, out, err));
    vxd_map_family_name(out->terms.name, name);
    if (strcmp(name, row->name) != 0) {
        vxd_map_name_of_family(row, out->terms.name);
    }
    if (!vxd_is_name(out->terms.name)) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "its name is another map's");
    }
out:
    return status;
}

/* Again, after a snapshot that was no good: what it brought goes. */
static enum vxd_status begin_family(void *user, const struct vxd_journal_family *row,
                                    struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_maps *maps = recovery->maps;
    struct vxd_map_described described;
    struct vxd_err fault = {0};
    enum vxd_status status;

    status = describe(recovery, row, &described, &fault);
    let_go(recovery);
    if (status == VXD_DATA_LOSS && row->n_spec_bytes == 0) {
        vxd_log(VXD_LOG_ERROR, "a map cannot be brought back", "map", row->name, "reason",
                fault.message);
        return VXD_OK;
    }
    if (status != VXD_OK) {
        *err = fault; /* nothing is given up that a later start may have */
        return status;
    }
    if (vxd_maps_peek(maps, described.terms.name) != NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "there are two maps \"%s\"",
                        described.terms.name);
    }
    status = vxd_map_new(maps, maps->queue, &described.terms, &described.spec, NULL,
                         &recovery->map, err);
    if (status == VXD_OK) {
        recovery->map->generation = described.generation;
        recovery->map->first_epoch = described.first_epoch;
        recovery->map->created_unix_ns = described.created_unix_ns;
        recovery->map->durable.journal_id = row->id;
    }
    return status;
}

static enum vxd_status load(void *user, const struct vxd_journal_family *row,
                            struct vxd_snapshot_reader *reader, struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_map *map = recovery->map;
    struct vxd_queue *queue = recovery->maps->queue;
    struct vxd_map_described described;
    struct vxd_hashmap *hashmap = NULL;
    enum vxd_status status;

    (void)row;
    if (map == NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "what the map is, is gone");
    }
    vxd_map_get_description(map, &described);
    status = vxd_map_read_snapshot(reader, &described, queue, &hashmap, err);
    if (status == VXD_OK) {
        vxd_hashmap_destroy(queue, map->hashmap);
        map->hashmap = hashmap;
        status = vxd_queue_wait(queue, err);
    }
    return status;
}

static enum vxd_status apply(void *user, const struct vxd_journal_family *row,
                             const struct vxd_journal_record *record, struct vxd_err *err)
{
    struct recovery *recovery = user;

    (void)row;
    if (recovery->map == NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "what the map is, is gone");
    }
    return vxd_map_apply(recovery->maps->queue, recovery->map->hashmap, record, err);
}

/* What clients keep of it, numbers included, is another map's from now on. */
static enum vxd_status raise_generation(const struct recovery *recovery,
                                        struct vxd_map *map,
                                        const struct vxd_journal_family *family,
                                        struct vxd_err *err)
{
    struct vxd_maps *maps = recovery->maps;
    struct vxd_journal_family row = *family;
    struct vxd_bytes_out bytes = {0};
    struct vxd_journal_txn *txn = NULL;
    struct vxd_map_described described;
    uint64_t now_ns = (uint64_t)vxd_clock_unix_ns();
    enum vxd_status status;

    if (map->generation < recovery->generation) {
        map->generation = recovery->generation;
    }
    map->generation = now_ns > map->generation ? now_ns : map->generation + 1;
    map->first_epoch =
        (now_ns / 1000 > vxd_map_epoch(map) ? now_ns / 1000 : vxd_map_epoch(map) + 1);
    vxd_map_get_description(map, &described);
    vxd_map_describe(&bytes, &described);
    row.fsync = map->terms.fsync; /* a repair's row has not its own */
    row.max_bytes = map->terms.journal_max_bytes;
    row.epoch = map->generation;
    row.spec = bytes.bytes;
    row.n_spec_bytes = bytes.n;
    status = !bytes.is_out_of_memory ? vxd_journal_begin(maps->journal, &txn, err)
                                     : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                                "no memory for a map's description");
    VXD_TRY(status);
    VXD_TRY(vxd_journal_put_family(txn, &row, err));
    status = vxd_journal_commit_wait(txn, err);
    txn = NULL;
out:
    vxd_journal_abandon(txn);
    free(bytes.bytes);
    return status;
}

static enum vxd_status done(void *user, const struct vxd_recovered_family *result,
                            struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_maps *maps = recovery->maps;
    struct vxd_map *map = recovery->map;
    size_t n_entries = 0;
    enum vxd_status status;

    if (map == NULL) { /* its name is free again */
        return vxd_journal_forget_family(maps->journal, result->family->id, err);
    }
    VXD_TRY(vxd_hashmap_size(maps->queue, map->hashmap, &n_entries, err));
    map->n_entries = n_entries;
    map->durable.sequence = result->last_sequence;
    map->durable.decided = result->last_sequence;
    vxd_maps_account(maps, map);
    if (result->is_lossy || result->family->n_spec_bytes == 0) {
        vxd_log(VXD_LOG_ERROR, "a map has lost changes; its generation is another one",
                "map", map->terms.name, "reason", result->reason);
        VXD_TRY(raise_generation(recovery, map, result->family, err));
    }
    vxd_maps_publish(maps, map);
    let_go(recovery); /* the registry holds it */
out:
    return status;
}

static void progress(void *user, const struct vxd_recovery_progress *at)
{
    struct recovery *recovery = user;
    int64_t now = vxd_clock_ns();
    char text[96];

    if (now - recovery->logged_ns < 1000000000) {
        return;
    }
    recovery->logged_ns = now;
    (void)snprintf(text, sizeof text,
                   "%" PRIu64 " of %" PRIu64 " records, map %zu of %zu", at->i_record,
                   at->n_records, at->i_family + 1, at->n_families);
    vxd_log(VXD_LOG_INFO, "bringing back maps", "done", text, "map", at->name);
}

/* Those whose snapshot was due when the last start ended. */
static void ask_again(struct vxd_maps *maps)
{
    struct vxd_journal_state state;

    for (const struct vxd_map *m = maps->first; m != NULL; m = m->next) {
        if (m->terms.durable &&
            vxd_journal_get_state(maps->journal, m->durable.journal_id, &state, NULL) ==
                VXD_OK &&
            state.snapshot_due) {
            vxd_scene_saver_ask(maps->saver, m->durable.journal_id);
        }
    }
}

enum vxd_status vxd_maps_recover(struct vxd_maps *maps,
                                 const struct vxd_journal_found *found,
                                 struct vxd_err *err)
{
    struct recovery recovery = {.maps = maps, .generation = found->generation};
    const struct vxd_recovery_visitor visitor = {.user = &recovery,
                                                 .family = begin_family,
                                                 .snapshot = load,
                                                 .own_record = apply,
                                                 .is_ours = vxd_is_map_family,
                                                 .is_not_last = true,
                                                 .done = done,
                                                 .progress = progress};
    struct vxd_recovery_result result;
    enum vxd_status status;
    char text[96];

    maps->is_recovering = true;
    status = vxd_recover(maps->dir, maps->journal, found, &visitor, &result, err);
    maps->is_recovering = false;
    let_go(&recovery);
    if (status == VXD_OK && result.n_families > 0) {
        (void)snprintf(text, sizeof text, "%zu, %" PRIu64 " records replayed",
                       result.n_families, result.n_replayed);
        vxd_log(VXD_LOG_INFO, "maps are back", "families", text);
    }
    if (status == VXD_OK) {
        ask_again(maps);
    }
    return status;
}
