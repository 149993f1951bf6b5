// SPDX-License-Identifier: Apache-2.0
/* Snapshot files of durable maps, on the thread that writes scenes' (scenes_save.c). The map that
 * requests use is left alone: its last snapshot and the records after it are brought together in
 * another one, on the CPU whatever the server's backend is, which gives the same entries bit for
 * bit. Bytes: map_catalogue.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/core/core.h"
#include "proto/base/clock.h"
#include "server/durable/record/record.h"
#include "server/durable/snapshot/snapshot.h"
#include "server/observe/log/log.h"
#include "server/registry/maps/maps_internal.h"
#include "server/registry/maps/maps_journal.h"
#include "server/instance/instance.h"

/* A family's row, looked for. */
struct row {
    uint32_t id;
    bool is_there;
    struct vxd_map_described *described; /* NULL: not wanted */
    struct vxd_snapshot_head head;
};

static enum vxd_status look_at_row(void *user, const struct vxd_journal_family *family,
                                   struct vxd_err *err)
{
    struct row *row = user;

    if (family->id != row->id || !vxd_is_map_family(family)) {
        return VXD_OK;
    }
    row->is_there = true;
    row->head.epoch = family->epoch;
    (void)snprintf(row->head.name, sizeof row->head.name, "%s", family->name);
    return row->described != NULL
               ? vxd_map_read_description(family->spec, family->n_spec_bytes,
                                          row->described, err)
               : VXD_OK;
}

bool vxd_maps_is_family(struct vxd_maps *maps, uint32_t journal_id)
{
    struct row row = {.id = journal_id};

    return maps->journal != NULL &&
           vxd_journal_read_families(maps->journal, look_at_row, &row, NULL) == VXD_OK &&
           row.is_there;
}

static enum vxd_status write_file(struct vxd_maps *maps,
                                  const struct vxd_snapshot_head *head,
                                  const struct vxd_map_described *described,
                                  struct vxd_queue *queue, struct vxd_hashmap *hashmap,
                                  struct vxd_err *err)
{
    struct vxd_snapshot_writer *writer = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_begin(maps->dir, head, &writer, err));
    VXD_TRY(vxd_map_write_snapshot(writer, described, queue, hashmap, err));
    status = vxd_snapshot_conclude(writer, maps->journal, err);
    writer = NULL;
out:
    vxd_snapshot_abandon(writer);
    return status;
}

/* With a context of its own, of one thread: this one. */
static enum vxd_status save(struct vxd_maps *maps, struct row *row, struct vxd_err *err)
{
    const struct vxd_context_options options = {.backend = VXD_BACKEND_CPU,
                                                .n_threads = 1};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_hashmap *hashmap = NULL;
    struct vxd_journal_state state;
    enum vxd_status status;

    VXD_TRY(vxd_journal_get_state(maps->journal, row->id, &state, err));
    row->head.family = row->id;
    row->head.sequence = state.last_sequence;
    row->head.rules_version = VXD_MAP_RULES_VERSION;
    row->head.unix_ns = vxd_clock_unix_ns();
    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &queue, err));
    VXD_TRY(vxd_map_bring_back(queue, maps->journal, maps->dir, row->id, row->described,
                               state.last_sequence, &hashmap, err));
    status = write_file(maps, &row->head, row->described, queue, hashmap, err);
out:
    if (queue != NULL) {
        vxd_hashmap_destroy(queue, hashmap);
        (void)vxd_queue_wait(queue, NULL);
        vxd_queue_destroy(queue);
    }
    if (context != NULL) {
        vxd_context_destroy(context);
    }
    return status;
}

/* Whatever then failed: records go while they are read. */
static bool is_dropped(const struct vxd_maps *maps, uint32_t journal_id)
{
    struct vxd_journal_state state;

    return vxd_journal_get_state(maps->journal, journal_id, &state, NULL) ==
           VXD_NOT_FOUND;
}

bool vxd_maps_save(struct vxd_maps *maps, uint32_t journal_id)
{
    struct vxd_map_described *described = malloc(sizeof *described);
    struct row row = {.id = journal_id, .described = described};
    int64_t since_ns = vxd_clock_ns();
    struct vxd_err err = {0};
    char took[32];
    enum vxd_status status =
        described != NULL
            ? vxd_journal_read_families(maps->journal, look_at_row, &row, &err)
            : vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");

    if (status == VXD_OK && row.is_there) {
        status = save(maps, &row, &err);
    }
    if (status != VXD_OK && is_dropped(maps, journal_id)) {
        free(described); /* who dropped it asks for its files to go */
        return true;
    }
    (void)snprintf(took, sizeof took, "%.3f", (double)(vxd_clock_ns() - since_ns) / 1e9);
    if (status == VXD_OK) {
        atomic_fetch_add(&maps->n_snapshots, 1);
        vxd_log(VXD_LOG_INFO, "snapshot written", "map", row.head.name, "seconds", took);
    } else {
        atomic_fetch_add(&maps->n_failed_snapshots, 1);
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "map", row.head.name, "error",
                err.message);
    }
    free(described);
    return status == VXD_OK;
}
