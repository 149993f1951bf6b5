// SPDX-License-Identifier: Apache-2.0
/* Hands changes of scenes over to the journal. Sequence numbers are counted for each
 * family, in the order of the write lane, so the versions of a family are decided in the
 * order in which they were made. */
#include "server/registry/scenes/scenes_journal.h"

#include <string.h>

#include "proto/base/clock.h"
#include "server/request/request.h"
#include "server/registry/scenes/scene_catalogue.h"
#include "server/registry/scenes/scene_fusion.h"
#include "server/registry/scenes/scenes_recover.h"
#include "server/instance/instance.h"

#define MAX_REPLAY_NS INT64_C(2000000000)

enum {
    PACK_ITEMS = 512 /* operations and leaves that take longer than waking a thread */
};

uint64_t vxd_scenes_run_ns(const struct vxd_scenes *scenes)
{
    const struct vxd_journal *journal = vxd_registry_get_journal(scenes->registry);

    return journal != NULL ? vxd_journal_get_run_ns(journal) : (uint64_t)vxd_clock_ns();
}

bool vxd_scene_is_durable(const struct vxd_scene *scene)
{
    return scene->family->journal_id != 0;
}

enum vxd_status vxd_scene_check_journal(struct vxd_scene *scene, struct vxd_err *err)
{
    struct vxd_scene_family *family = scene->family;
    struct vxd_journal_stats stats;

    if (family->is_broken) {
        return vxd_fail(
            err, VXD_UNAVAILABLE, NULL,
            "a change of the scene could not be written to the disk, and what "
            "was built on it goes with it; try again");
    }
    if (scene->is_leaving) {
        /* The change's record would follow the one that drops the scene. */
        return vxd_fail(err, VXD_UNAVAILABLE, NULL,
                        "the scene \"%s\" is being dropped; try again",
                        scene->terms.name);
    }
    return vxd_registry_check_disk(scene->scenes->registry, &stats, err);
}

/* Makes the description that CREATE records and families' rows have. */
static enum vxd_status describe(const struct vxd_scene *scene, struct vxd_bytes_out *out,
                                struct vxd_err *err)
{
    vxd_scene_describe(out, &scene->terms, &scene->spec, scene->generation,
                       scene->created_unix_ns);
    return !out->is_out_of_memory ? VXD_OK
                                  : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                             "no memory for a scene's description");
}

/* Packs the record, on whatever thread; nothing but the entry changes. */
static enum vxd_status pack(const struct vxd_scene_packing *packing,
                            struct vxd_scene_entry *entry, struct vxd_err *err)
{
    const struct vxd_scene *scene = packing->scene;
    const struct vxd_request *request = packing->request;
    struct vxd_record record = {
        .kind = entry->kind,
        .unix_ns = entry->unix_ns,
        .version = {scene->generation, entry->version},
        .of_version = {0, packing->of_version},
        .ops = packing->ops,
        .n_ops = packing->n_ops,
        .scans = entry->scans,
        .n_scans = entry->n_scans,
        .erases = entry->erases,
        .n_pin_ops = entry->n_pin_ops,
        .decay = entry->decay,
        .decayed_ns = entry->decayed_ns,
        .forgets = (vxd_record_fuses(entry->kind) || entry->kind == VXD_RECORD_DECAY) &&
                   scene->log_odds.has_forgotten};
    struct vxd_bytes_out description = {0};
    enum vxd_status status = VXD_OK;

    (void)snprintf(record.head, sizeof record.head, "%s", scene->terms.name);
    (void)snprintf(record.author, sizeof record.author, "%s", request->principal.name);
    (void)snprintf(record.client, sizeof record.client, "%s", request->client_id);
    if (packing->from != NULL) {
        (void)snprintf(record.from, sizeof record.from, "%s", packing->from->terms.name);
    }
    if (entry->kind == VXD_RECORD_CREATE) {
        VXD_TRY(describe(scene, &description, err));
        record.spec = description.bytes;
        record.n_spec_bytes = description.n;
    }
    status = vxd_record_encode(&record, &entry->record, err);
out:
    free(description.bytes);
    return status;
}

static void run_packing(void *user)
{
    struct vxd_scene_entry *entry = user;

    entry->packing.status = pack(&entry->packing, entry, &entry->packing.err);
}

/* Whether packing takes long enough that another thread should do it. */
static bool is_large(const struct vxd_scene_entry *entry)
{
    const struct vxd_scene_packing *packing = &entry->packing;
    size_t n = entry->n_scans > 0 ? PACK_ITEMS : 0;

    for (size_t i = 0; i < packing->n_ops && n < PACK_ITEMS; i++) {
        const struct vxd_svdag_shape *shape = &packing->ops[i].shape;

        n += shape->kind == VXD_SVDAG_VOXELS        ? shape->voxels.n
             : shape->kind == VXD_SVDAG_HEIGHTFIELD ? PACK_ITEMS
                                                    : 1;
    }
    return n >= PACK_ITEMS;
}

void vxd_scene_begin_entry(const struct vxd_scene *scene,
                           const struct vxd_request *request,
                           const struct vxd_svdag_op *ops, size_t n_ops,
                           const struct vxd_scene *from, uint64_t of_version,
                           struct vxd_scene_entry *entry)
{
    entry->packing =
        (struct vxd_scene_packing){.base = {.run = run_packing, .user = entry},
                                   .scene = scene,
                                   .request = request,
                                   .ops = ops,
                                   .n_ops = n_ops,
                                   .from = from,
                                   .of_version = of_version};
    if (is_large(entry)) {
        vxd_registry_begin_packing(scene->scenes->registry, &entry->packing.base);
    }
}

enum vxd_status vxd_scene_end_entry(const struct vxd_scene *scene,
                                    struct vxd_scene_entry *entry, bool is_needed,
                                    struct vxd_err *err)
{
    struct vxd_scene_packing *packing = &entry->packing;
    bool is_begun = packing->base.run != NULL;

    if (packing->base.is_begun) {
        vxd_registry_end_packing(scene->scenes->registry, &packing->base, is_needed);
    } else if (is_begun && is_needed) {
        run_packing(entry);
    }
    packing->base.run = NULL;
    if (is_begun && is_needed && packing->status != VXD_OK) {
        *err = packing->err;
        return packing->status;
    }
    return VXD_OK;
}

/* Adds the family's row, in the transaction of its first record. */
static enum vxd_status put_family(const struct vxd_scene *scene,
                                  struct vxd_journal_txn *txn, struct vxd_err *err)
{
    struct vxd_journal_family row = {.id = scene->family->journal_id,
                                     .fsync = scene->terms.fsync,
                                     .max_bytes = scene->terms.journal_max_bytes,
                                     .epoch = scene->generation};
    struct vxd_bytes_out description = {0};
    enum vxd_status status;

    vxd_registry_free_family_name(scene->scenes->registry, &vxd_scenes_kind,
                                  scene->terms.name, row.id, row.name);
    VXD_TRY(describe(scene, &description, err));
    row.spec = description.bytes;
    row.n_spec_bytes = description.n;
    status = vxd_journal_put_family(txn, &row, err);
out:
    free(description.bytes);
    return status;
}

static enum vxd_status put_named(const struct vxd_scene *scene,
                                 const struct vxd_scene_snapshot *snapshot, bool drop,
                                 struct vxd_journal_txn *txn, struct vxd_err *err)
{
    struct vxd_journal_item item = {.family = scene->family->journal_id};
    struct vxd_bytes_out bytes = {0};
    char name[VXD_SCENE_ITEM_BYTES];
    enum vxd_status status;

    vxd_scene_item_name(scene->terms.name, snapshot->name, name);
    item.name = name;
    VXD_TRY(vxd_journal_need(txn, item.family, scene->family->decided, err));
    if (drop) {
        status = vxd_journal_drop_item(txn, VXD_JOURNAL_NAMED, item.family, name, err);
        goto out;
    }
    vxd_scene_write_named(&bytes, scene->terms.name, snapshot);
    item.bytes = bytes.bytes;
    item.n_bytes = bytes.n;
    status =
        !bytes.is_out_of_memory
            ? vxd_journal_put_item(txn, VXD_JOURNAL_NAMED, &item, err)
            : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");
out:
    free(bytes.bytes);
    return status;
}

static enum vxd_status put_ages(const struct vxd_scene *scene,
                                const struct vxd_scene_ages *ages,
                                struct vxd_journal_txn *txn, struct vxd_err *err)
{
    char name[VXD_SCENE_ITEM_BYTES];
    struct vxd_journal_item item = {.family = scene->family->journal_id, .name = name};
    struct vxd_bytes_out bytes = {0};
    enum vxd_status status;

    vxd_scene_item_name(scene->terms.name, "", name);
    vxd_scene_age_write(&bytes, scene->terms.name, ages);
    item.bytes = bytes.bytes;
    item.n_bytes = bytes.n;
    status = !bytes.is_out_of_memory
                 ? vxd_journal_put_item(txn, VXD_JOURNAL_AGES, &item, err)
                 : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no memory for the ages of versions");
    free(bytes.bytes);
    return status;
}

enum vxd_status vxd_scene_mark_age(struct vxd_scene *scene, uint64_t version,
                                   struct vxd_journal_txn *txn, struct vxd_err *err)
{
    uint64_t keep_seconds = scene->terms.keep_seconds;
    uint64_t run_ns = vxd_scenes_run_ns(scene->scenes);
    struct vxd_scene_ages ages = scene->ages;
    enum vxd_status status;

    vxd_scene_age_add(&ages, keep_seconds, version, run_ns);
    status = put_ages(scene, &ages, txn, err);
    if (status == VXD_OK) {
        scene->ages = ages;
    }
    return status;
}

/* Drops the names of all snapshots and the ages of a scene that is dropped. */
static enum vxd_status drop_all_named(const struct vxd_scene *scene,
                                      struct vxd_journal_txn *txn, struct vxd_err *err)
{
    char name[VXD_SCENE_ITEM_BYTES];
    enum vxd_status status;

    vxd_scene_item_name(scene->terms.name, "", name);
    status = vxd_journal_drop_item(txn, VXD_JOURNAL_AGES, scene->family->journal_id, name,
                                   err);
    for (size_t i = 0; i < scene->history.n_snapshots && status == VXD_OK; i++) {
        vxd_scene_item_name(scene->terms.name, scene->history.snapshots[i].name, name);
        status = vxd_journal_drop_item(txn, VXD_JOURNAL_NAMED, scene->family->journal_id,
                                       name, err);
    }
    return status;
}

/* Whether this is the last scene of its family, of which nothing is needed then. */
static bool is_last(const struct vxd_scene *scene)
{
    struct vxd_scene_log_summary summary;

    vxd_scene_get_log_summary(scene, &summary);
    return summary.n_sharing == 1;
}

static bool is_referring(const struct vxd_scene_entry *entry)
{
    return entry->kind == VXD_RECORD_UNDO || entry->kind == VXD_RECORD_REDO ||
           entry->kind == VXD_RECORD_BRANCH;
}

enum vxd_status vxd_scene_hand_over(struct vxd_scene *scene, struct vxd_request *request,
                                    struct vxd_scene_entry *entry, struct vxd_err *err)
{
    struct vxd_scene_family *family = scene->family;
    uint32_t rules = vxd_scene_rules(scene);
    uint32_t least = vxd_record_least_rules(entry->kind);
    struct vxd_journal_record record = {.family = family->journal_id,
                                        .sequence = family->sequence + 1,
                                        .rules_version = rules > least ? rules : least,
                                        .kind = (uint32_t)entry->kind,
                                        .bytes = entry->record.bytes,
                                        .n_bytes = entry->record.n_bytes};
    struct vxd_journal_txn *txn = NULL;
    enum vxd_status status;

    VXD_TRY(
        vxd_journal_begin(vxd_registry_get_journal(scene->scenes->registry), &txn, err));
    if (entry->kind == VXD_RECORD_CREATE) {
        VXD_TRY(put_family(scene, txn, err));
    }
    if (entry->kind == VXD_RECORD_DROP && is_last(scene)) {
        VXD_TRY(vxd_journal_drop_family(txn, family->journal_id, err));
    } else {
        VXD_TRY(vxd_journal_add_record(txn, &record, err));
        entry->sequence = record.sequence;
    }
    if (entry->kind == VXD_RECORD_DROP && entry->sequence > 0) {
        VXD_TRY(drop_all_named(scene, txn, err));
    }
    if (entry->kind != VXD_RECORD_DROP &&
        vxd_scene_age_is_due(&scene->ages, scene->terms.keep_seconds, entry->version,
                             vxd_scenes_run_ns(scene->scenes))) {
        VXD_TRY(vxd_scene_mark_age(scene, entry->version, txn, err));
    }
    status = vxd_registry_hand_over(txn, request, entry->unix_ns, err);
    txn = NULL;
    if (status == VXD_OK) {
        family->n_waiting++;
        vxd_scenes_lock(scene->scenes);
        family->n_referring += is_referring(entry) ? 1 : 0;
        vxd_scenes_unlock(scene->scenes);
        scene->is_leaving = entry->kind == VXD_RECORD_DROP;
        family->replay_ns += request->engine_ns;
        family->sequence += entry->sequence > 0 ? 1 : 0;
    }
out:
    if (status != VXD_OK) {
        vxd_scene_age_forget(&scene->ages, entry->version);
    }
    vxd_journal_abandon(txn);
    return status;
}

enum vxd_status vxd_scene_commit_drop(struct vxd_scene *scene, struct vxd_err *err)
{
    struct vxd_scene_family *family = scene->family;
    struct vxd_journal *journal = vxd_registry_get_journal(scene->scenes->registry);
    struct vxd_record record = {.kind = VXD_RECORD_DROP,
                                .unix_ns = vxd_clock_unix_ns(),
                                .version = {scene->generation, 0}};
    struct vxd_journal_record row = {.family = family->journal_id,
                                     .sequence = family->sequence + 1,
                                     .rules_version = vxd_scene_rules(scene),
                                     .kind = (uint32_t)record.kind};
    struct vxd_record_bytes bytes = {0};
    struct vxd_journal_txn *txn = NULL;
    enum vxd_status status;

    (void)snprintf(record.head, sizeof record.head, "%s", scene->terms.name);
    VXD_TRY(vxd_record_encode(&record, &bytes, err));
    row.bytes = bytes.bytes;
    row.n_bytes = bytes.n_bytes;
    VXD_TRY(vxd_journal_begin(journal, &txn, err));
    VXD_TRY(vxd_journal_add_record(txn, &row, err));
    VXD_TRY(drop_all_named(scene, txn, err));
    status = vxd_journal_commit_wait(txn, err);
    txn = NULL;
    if (status == VXD_OK) {
        family->sequence = row.sequence;
        family->decided = row.sequence;
    }
out:
    vxd_journal_abandon(txn);
    vxd_record_bytes_free(&bytes);
    return status;
}

enum vxd_status vxd_scene_commit_snapshot(struct vxd_scene *scene,
                                          struct vxd_request *request,
                                          const struct vxd_scene_snapshot *snapshot,
                                          bool drop, struct vxd_err *err)
{
    struct vxd_journal_txn *txn = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_scene_check_journal(scene, err));
    VXD_TRY(
        vxd_journal_begin(vxd_registry_get_journal(scene->scenes->registry), &txn, err));
    VXD_TRY(put_named(scene, snapshot, drop, txn, err));
    VXD_TRY(vxd_once_put_outcome(request, vxd_clock_unix_ns(), txn, err));
    status = vxd_journal_commit_wait(txn, err);
    txn = NULL;
out:
    vxd_journal_abandon(txn);
    return status;
}

void vxd_scene_save_if_slow(struct vxd_scene_family *family)
{
    int64_t most_ns = 4 * atomic_load(&family->save_ns);

    if (family->replay_ns >= (most_ns > MAX_REPLAY_NS ? most_ns : MAX_REPLAY_NS)) {
        family->replay_ns = 0;
        vxd_registry_ask_snapshot(family->scenes->registry, family->journal_id);
    }
}

void vxd_scene_end_record(struct vxd_scene *scene, const struct vxd_scene_entry *entry,
                          bool committed)
{
    struct vxd_scene_family *family = scene->family;

    family->n_waiting--;
    vxd_scenes_lock(scene->scenes);
    family->n_referring -= is_referring(entry) ? 1 : 0;
    if (committed && entry->sequence > 0) {
        family->decided = entry->sequence;
    }
    vxd_scenes_unlock(scene->scenes);
    if (committed && entry->kind == VXD_RECORD_DROP && entry->sequence == 0) {
        vxd_registry_ask_snapshot(scene->scenes->registry, family->journal_id);
    } else if (committed) {
        vxd_scene_save_if_slow(family);
    }
    if (!committed) {
        vxd_scene_age_forget(&scene->ages, entry->version);
        scene->is_leaving = scene->is_leaving && entry->kind != VXD_RECORD_DROP;
        family->is_broken = true;
    }
    if (family->is_broken && family->n_waiting == 0) {
        /* All changes that were built on the failed one have failed, too, so new ones
         * continue from here. */
        family->sequence = family->decided;
        family->is_broken = false;
    }
}

void vxd_scene_free_entry(struct vxd_scene_entry *entry)
{
    vxd_record_bytes_free(&entry->record);
    memset(entry, 0, sizeof *entry);
}
