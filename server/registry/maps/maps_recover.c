// SPDX-License-Identifier: Apache-2.0
/* Durable maps after a start. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/observe/log/log.h"
#include "server/registry/maps/maps_internal.h"

struct recovery {
    struct vxd_maps *maps;
    struct vxd_map
        *map; /* the one being recovered, without a name yet and with one reference */
    struct vxd_registry_start *start;
    uint64_t generation; /* generations up to it were given out before */
};

static void release_map(struct recovery *recovery)
{
    if (recovery->map != NULL) {
        vxd_map_drop(recovery->maps, recovery->maps->queue, recovery->map);
        (void)vxd_queue_wait(recovery->maps->queue, NULL);
        recovery->map = NULL;
    }
}

/* Reads the map's description from a snapshot file.
 * errors  DATA_LOSS  no file has one; others where a file cannot be read now */
static enum vxd_status describe_by_file(const struct vxd_data_dir *dir, uint32_t family,
                                        struct vxd_map_described *out,
                                        struct vxd_err *err)
{
    struct vxd_err fault = {0};
    uint64_t *sequences = NULL;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_list(dir, family, &sequences, &n, err));
    (void)vxd_fail(&fault, VXD_DATA_LOSS, NULL, "no description of the map is left");
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

/* Finds the map's description. A repair may have made the row anew without one; then a
 * snapshot file has it. The name in the file may meanwhile belong to another map, so the
 * row's name, which is unique, decides. */
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
        vxd_map_get_description(
            map, out); /* read from a file whose other parts were damaged */
        return VXD_OK;
    }
    VXD_TRY(describe_by_file(vxd_registry_get_data_dir(recovery->maps->registry), row->id,
                             out, err));
    vxd_registry_family_name(&vxd_maps_kind, out->terms.name, name);
    if (strcmp(name, row->name) != 0) {
        (void)snprintf(out->terms.name, sizeof out->terms.name, "%s",
                       row->name + strlen(vxd_maps_kind.prefix));
    }
    if (!vxd_is_name(out->terms.name)) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "its name is another map's");
    }
out:
    return status;
}

/* Called again after a damaged snapshot: what that had loaded is dropped. */
static enum vxd_status begin_family(void *user, const struct vxd_journal_family *row,
                                    struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_maps *maps = recovery->maps;
    struct vxd_map_described described;
    struct vxd_err fault = {0};
    enum vxd_status status;

    status = describe(recovery, row, &described, &fault);
    release_map(recovery);
    if (status == VXD_DATA_LOSS && row->n_spec_bytes == 0) {
        vxd_log(VXD_LOG_ERROR, "a map cannot be brought back", "map", row->name, "reason",
                fault.message);
        return VXD_OK;
    }
    if (status != VXD_OK) {
        *err = fault; /* a later start may be able to read it, so nothing is given up */
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
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "no description of the map is left");
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
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "no description of the map is left");
    }
    return vxd_map_apply(recovery->maps->queue, recovery->map->hashmap, record, err);
}

/* Gives a map that has lost changes a new generation, so that whatever clients know of
 * it, numbers of entries included, counts as another map's. */
static enum vxd_status raise_generation(const struct recovery *recovery,
                                        struct vxd_map *map,
                                        const struct vxd_journal_family *family,
                                        struct vxd_err *err)
{
    struct vxd_maps *maps = recovery->maps;
    struct vxd_journal_family row = *family;
    struct vxd_bytes_out bytes = {0};
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
    row.fsync = map->terms.fsync; /* a row that a repair made lacks it */
    row.max_bytes = map->terms.journal_max_bytes;
    row.epoch = map->generation;
    row.spec = bytes.bytes;
    row.n_spec_bytes = bytes.n;
    status = !bytes.is_out_of_memory
                 ? vxd_registry_rewrite_family(maps->registry, &row, err)
                 : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no memory for a map's description");
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

    if (map == NULL) { /* so that its name is free again */
        return vxd_journal_forget_family(vxd_registry_get_journal(maps->registry),
                                         result->family->id, err);
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
    release_map(recovery); /* the registry holds it */
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

    return vxd_context_is_lost(vxd_queue_context(recovery->maps->queue));
}

static bool is_ours(const struct vxd_journal_family *row)
{
    return vxd_registry_is_of_kind(&vxd_maps_kind, row);
}

static enum vxd_status recover(void *owner, struct vxd_registry_start *start,
                               const struct vxd_journal_found *found, struct vxd_err *err)
{
    struct vxd_maps *maps = owner;
    struct recovery recovery = {
        .maps = maps, .start = start, .generation = found->generation};
    const struct vxd_recovery_visitor visitor = {.user = &recovery,
                                                 .family = begin_family,
                                                 .snapshot = load,
                                                 .is_device_lost = is_device_lost,
                                                 .own_record = apply,
                                                 .is_ours = is_ours,
                                                 .done = done,
                                                 .progress = progress};
    enum vxd_status status;

    maps->is_recovering = true;
    status = vxd_registry_recover(start, found, &visitor, err);
    maps->is_recovering = false;
    release_map(&recovery);
    return status;
}

static void log_event(enum vxd_registry_event event, const char *name, const char *text)
{
    switch (event) {
    case VXD_REGISTRY_RECOVERING:
        vxd_log(VXD_LOG_INFO, "bringing back maps", "done", text, "map", name);
        break;
    case VXD_REGISTRY_RECOVERED:
        vxd_log(VXD_LOG_INFO, "maps are back", "families", text);
        break;
    case VXD_REGISTRY_SAVED:
        vxd_log(VXD_LOG_INFO, "snapshot written", "map", name, "seconds", text);
        break;
    case VXD_REGISTRY_NOT_SAVED:
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "map", name, "error", text);
        break;
    }
}

const struct vxd_durable_kind vxd_maps_kind = {.noun = "map",
                                               .prefix = VXD_MAP_FAMILIES,
                                               .log = log_event,
                                               .recover = recover,
                                               .save = vxd_maps_save};
