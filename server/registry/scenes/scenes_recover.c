// SPDX-License-Identifier: Apache-2.0
/* Recovers scenes at a start: each family from its newest valid snapshot and the records
 * after it. Until a family is done, its scenes keep all versions, since the names that
 * keep some are read last. */
#include "server/registry/scenes/scenes_recover.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/request/request.h"
#include "server/observe/log/log.h"
#include "server/registry/scenes/scene_catalogue.h"
#include "server/registry/scenes/scene_fusion.h"
#include "server/registry/scenes/scenes_journal.h"
#include "server/registry/scenes/scenes_replay.h"

enum {
    ON_CUDA_AT_ONCE = 64
};

struct recovery {
    struct vxd_scenes *scenes;
    uint64_t least_generation;  /* of the family that is being recovered */
    struct vxd_scene_plan plan; /* of its records */
    size_t most_together;       /* how many records at most become one edit */
    int64_t began_ns;           /* with the family's records */
    struct vxd_registry_start *start;
};

struct vxd_scene_family *vxd_scenes_find_family(struct vxd_scenes *scenes,
                                                uint32_t journal_id)
{
    struct vxd_scene_family *family = scenes->families;

    while (family != NULL && family->journal_id != journal_id) {
        family = family->next;
    }
    return family;
}

void vxd_scene_set_generation(struct vxd_scene *scene, uint64_t least,
                              uint64_t generation)
{
    struct vxd_scenes *scenes = scene->scenes;

    scene->generation = generation > least ? generation : least;
    if (scene->generation > scenes->last_generation) {
        scenes->last_generation = scene->generation;
    }
}

static bool formats_equal(const struct vxd_svdag_format *a,
                          const struct vxd_svdag_format *b)
{
    return a->depth == b->depth && a->material_bits == b->material_bits &&
           a->tracks_free == b->tracks_free;
}

enum vxd_status vxd_scenes_add_described(struct vxd_scenes *scenes, uint32_t journal_id,
                                         const struct vxd_scene_terms *terms,
                                         const struct vxd_scene_spec *spec,
                                         uint64_t generation, int64_t created_unix_ns,
                                         struct vxd_scene **out, struct vxd_err *err)
{
    struct vxd_scene_family *family = vxd_scenes_find_family(scenes, journal_id);
    struct vxd_scene *scene = vxd_scenes_find_in_family(scenes, journal_id, terms->name);
    enum vxd_status status;

    if (scene != NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "there are two scenes \"%s\"",
                        terms->name);
    }
    if (family != NULL && !formats_equal(&family->first->spec.format, &spec->format)) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL,
                        "\"%s\" has another depth or materials than its family",
                        terms->name);
    }
    status = vxd_scene_restore(scenes, family, terms, spec, &scene, err);
    if (status != VXD_OK) {
        return status;
    }
    scene->family->journal_id = journal_id;
    vxd_scene_set_generation(scene, 0, generation);
    scene->created_unix_ns = created_unix_ns;
    scene->history.keeps_all = true;
    *out = scene;
    return VXD_OK;
}

/* --- the visitor ------------------------------------------------------------------------- */

/* Plans for a named version. A damaged item is reported later, when its name is restored. */
static enum vxd_status plan_name(void *user, const struct vxd_journal_item *item,
                                 struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_bytes_in in = {.bytes = item->bytes, .n = item->n_bytes};
    struct vxd_scene_snapshot named;
    char name[VXD_NAME_BYTES];

    (void)err;
    if (vxd_scene_read_named(&in, name, &named, NULL) == VXD_OK) {
        vxd_scene_plan_name(&recovery->plan, name, named.version.number);
    }
    return VXD_OK;
}

static enum vxd_backend backend_of(const struct vxd_scenes *scenes)
{
    return vxd_context_backend(vxd_queue_context(scenes->queue));
}

/* A GPU repeats an edit until it has reserved enough memory. So it gets few records at a
 * time, and the next ones are unpacked meanwhile. */
static size_t most_at_once(const struct vxd_scenes *scenes)
{
    return backend_of(scenes) == VXD_BACKEND_CUDA ? ON_CUDA_AT_ONCE : VXD_RECORDS_AT_ONCE;
}

static enum vxd_status begin_family(void *user, const struct vxd_journal_family *row,
                                    struct vxd_err *err)
{
    struct recovery *recovery = user;

    recovery->least_generation = row->epoch;
    recovery->began_ns = vxd_clock_ns();
    /* Called again after a damaged snapshot: what that had loaded is dropped. */
    vxd_scenes_drop_unnamed(recovery->scenes, row->id);
    vxd_scene_plan_free(&recovery->plan);
    recovery->plan.backend = backend_of(recovery->scenes);
    recovery->most_together = most_at_once(recovery->scenes);
    return vxd_journal_read_items(vxd_registry_get_journal(recovery->scenes->registry),
                                  VXD_JOURNAL_NAMED, row->id, plan_name, recovery, NULL,
                                  err);
}

static void foresee(void *user, const struct vxd_journal_family *row, uint64_t sequence,
                    const struct vxd_record *head)
{
    struct recovery *recovery = user;

    (void)row;
    vxd_scene_plan_record(&recovery->plan, sequence, head);
}

static enum vxd_status load(void *user, const struct vxd_journal_family *row,
                            struct vxd_snapshot_reader *reader, struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_scenes *scenes = recovery->scenes;
    enum vxd_status status =
        vxd_scenes_load(scenes, row->id, recovery->least_generation, reader, err);

    recovery->began_ns = vxd_clock_ns();
    return status;
}

static enum vxd_status create(struct recovery *recovery, uint32_t id,
                              const struct vxd_record *record, struct vxd_err *err)
{
    struct vxd_bytes_in in = {.bytes = record->spec, .n = record->n_spec_bytes};
    struct vxd_scene_described described;
    struct vxd_scene *scene;
    uint64_t generation;
    enum vxd_status status = vxd_scene_read_description(&in, &described, err);

    if (status != VXD_OK) {
        return status;
    }
    generation = described.generation > recovery->least_generation
                     ? described.generation
                     : recovery->least_generation;
    VXD_TRY(vxd_scenes_add_described(recovery->scenes, id, &described.terms,
                                     &described.spec, generation,
                                     described.created_unix_ns, &scene, err));
    status = vxd_scene_history_begin(scene, VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY, err);
out:
    free(described.palette);
    return status;
}

/* Finds a scene of this family by name.
 * errors  DATA_LOSS */
static enum vxd_status find_scene(struct recovery *recovery, uint32_t id,
                                  const char *name, struct vxd_scene **out,
                                  struct vxd_err *err)
{
    *out = vxd_scenes_find_in_family(recovery->scenes, id, name);
    return *out != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_DATA_LOSS, NULL,
                          "there is a record of the scene \"%s\", which does not exist",
                          name);
}

static enum vxd_status branch(struct recovery *recovery, uint32_t id,
                              const struct vxd_record *record, struct vxd_err *err)
{
    const struct vxd_scene_at at = {record->of_version.n, NULL};
    struct vxd_scene_state state;
    struct vxd_scene_terms terms;
    struct vxd_scene *from;
    struct vxd_scene *scene;
    enum vxd_status status;

    VXD_TRY(find_scene(recovery, id, record->from, &from, err));
    status = vxd_scene_pin(from, &at, &state, err);
    if (status != VXD_OK) {
        err->code = VXD_DATA_LOSS;
        return VXD_DATA_LOSS;
    }
    terms = from->terms;
    (void)snprintf(terms.name, sizeof terms.name, "%s", record->head);
    (void)snprintf(terms.owner, sizeof terms.owner, "%s", record->author);
    status = vxd_scenes_add_described(recovery->scenes, id, &terms, &from->spec, 0,
                                      record->unix_ns, &scene, err);
    if (status == VXD_OK) {
        vxd_scene_set_generation(scene, recovery->least_generation,
                                 record->version.epoch);
        status = vxd_scene_history_begin(scene, state.root, state.pins, err);
    }
    if (status == VXD_OK && vxd_scene_is_last(from, state.version)) {
        status = vxd_scene_new_log_odds(scene, from, recovery->scenes->queue, err);
    }
    vxd_scene_unpin(recovery->scenes, &state, recovery->scenes->queue);
out:
    return status;
}

static bool is_change(const struct vxd_record *record)
{
    return record->kind != VXD_RECORD_CREATE && record->kind != VXD_RECORD_BRANCH &&
           record->kind != VXD_RECORD_DROP;
}

static enum vxd_status change(struct recovery *recovery, uint32_t id,
                              const struct vxd_record_decoded *record,
                              struct vxd_err *err)
{
    struct vxd_scene *scene;
    enum vxd_status status;

    VXD_TRY(find_scene(recovery, id, record->record.head, &scene, err));
    status = vxd_scene_replay(scene, recovery->least_generation, record, 1, err);
    if (status == VXD_NOT_FOUND || status == VXD_FAILED_PRECONDITION) {
        err->code = VXD_DATA_LOSS; /* an undo of what is not there */
        status = VXD_DATA_LOSS;
    }
out:
    return status;
}

/* Applies a record that makes or drops a scene. */
static enum vxd_status turn(struct recovery *recovery, uint32_t id,
                            const struct vxd_record *record, struct vxd_err *err)
{
    struct vxd_scene *scene;
    enum vxd_status status;
    bool is_made = record->kind == VXD_RECORD_CREATE || record->kind == VXD_RECORD_BRANCH;

    /* A snapshot may have one change more than its number says. */
    if ((vxd_scenes_find_in_family(recovery->scenes, id, record->head) != NULL) ==
        is_made) {
        return VXD_OK;
    }
    if (is_made) {
        return record->kind == VXD_RECORD_CREATE ? create(recovery, id, record, err)
                                                 : branch(recovery, id, record, err);
    }
    VXD_TRY(find_scene(recovery, id, record->head, &scene, err));
    vxd_scene_drop(scene, recovery->scenes->queue);
out:
    return status;
}

/* Whether the record is the next change of its scene, and not one that the snapshot has
 * already. */
static bool is_next(struct vxd_scene *scene, const struct vxd_record *record)
{
    struct vxd_scene_state state;

    vxd_scene_pin_last(scene, &state);
    vxd_scene_unpin(scene->scenes, &state, scene->scenes->queue);
    return record->version.n == state.version + 1;
}

/* Returns how many of the records become one edit. *is_done says that it was applied; a
 * single record, and records whose edit failed, are to be applied one after the other. An
 * edit that lacked memory is not tried again: half as many records are. */
static size_t apply_together(struct recovery *recovery, uint32_t id, uint64_t sequence,
                             const struct vxd_record_decoded *records, size_t n,
                             bool *is_done)
{
    struct vxd_scene *scene;
    size_t n_together = n < recovery->most_together ? n : recovery->most_together;
    enum vxd_status status;

    *is_done = false;
    if (n_together < 2 || !is_change(&records[0].record) ||
        find_scene(recovery, id, records[0].record.head, &scene, NULL) != VXD_OK ||
        !is_next(scene, &records[0].record)) {
        return 1;
    }
    n_together =
        vxd_scene_plan_count(&recovery->plan, scene, sequence, records, n_together);
    if (n_together == 1) {
        return 1;
    }
    status =
        vxd_scene_replay(scene, recovery->least_generation, records, n_together, NULL);
    *is_done = status == VXD_OK;
    if (status == VXD_RESOURCE_EXHAUSTED) {
        recovery->most_together = n_together / 2;
        return 1;
    }
    return n_together;
}

static enum vxd_status apply(void *user, const struct vxd_journal_family *row,
                             uint64_t sequence, const struct vxd_record_decoded *records,
                             size_t n, size_t *n_done, struct vxd_err *err)
{
    struct recovery *recovery = user;
    enum vxd_status status = VXD_OK;

    *n_done = 0;
    while (*n_done < n) {
        bool is_done;
        size_t end = *n_done + apply_together(recovery, row->id, sequence + *n_done,
                                              records + *n_done, n - *n_done, &is_done);

        for (; *n_done < end; ++*n_done) {
            const struct vxd_record_decoded *next = &records[*n_done];

            if (!is_done) {
                VXD_TRY(is_change(&next->record)
                            ? change(recovery, row->id, next, err)
                            : turn(recovery, row->id, &next->record, err));
            }
        }
    }
out:
    return status;
}

/* Restores the ages of a scene's versions; without them versions begin with age 0. */
static void take_ages(struct recovery *recovery, const struct vxd_journal_item *item)
{
    struct vxd_bytes_in in = {.bytes = item->bytes, .n = item->n_bytes};
    struct vxd_scene_ages ages;
    char name[VXD_NAME_BYTES];
    struct vxd_scene *scene;

    if (vxd_scene_age_read(&in, name, &ages) &&
        find_scene(recovery, item->family, name, &scene, NULL) == VXD_OK) {
        vxd_scene_age_drop_later(&ages, vxd_scenes_run_ns(recovery->scenes));
        scene->ages = ages;
    }
}

/* Whether the disk, or memory, did not take something that the next start does again. It keeps
 * nobody from reading what is there. */
static bool is_put_off(enum vxd_status status, const struct vxd_scene_family *family,
                       const struct vxd_err *err)
{
    if (status != VXD_UNAVAILABLE && status != VXD_RESOURCE_EXHAUSTED) {
        return false;
    }
    vxd_log(VXD_LOG_WARNING, "the start leaves something to the next one", "scene",
            family != NULL ? family->first->terms.name : "-", "reason", err->message);
    return true;
}

/* Marks the newest version of a scene where it has no mark.
 * errors  those of the journal; the scene's ages are as they were */
static enum vxd_status mark_age(struct vxd_scene *scene, struct vxd_err *err)
{
    struct vxd_journal *journal = vxd_registry_get_journal(scene->scenes->registry);
    struct vxd_scene_ages before = scene->ages;
    struct vxd_journal_txn *txn = NULL;
    struct vxd_scene_log_summary log;
    enum vxd_status status;

    vxd_scene_get_log_summary(scene, &log);
    if (scene->terms.keep_seconds == 0 ||
        (before.n > 0 && before.marks[before.n - 1].version >= log.version)) {
        return VXD_OK;
    }
    VXD_TRY(vxd_journal_begin(journal, &txn, err));
    VXD_TRY(vxd_scene_mark_age(scene, log.version, txn, err));
    status = vxd_journal_commit_wait(txn, err);
    txn = NULL;
out:
    if (status != VXD_OK) {
        scene->ages = before;
    }
    vxd_journal_abandon(txn);
    return status;
}

/* Marks the newest version of each scene, so that one without a mark ages from this start on; on a
 * disk that takes nothing from a later one. */
static enum vxd_status mark_ages(struct vxd_scene_family *family, struct vxd_err *err)
{
    struct vxd_journal_stats stats;
    struct vxd_err fault = {0};
    enum vxd_status status = VXD_OK;

    vxd_journal_get_stats(vxd_registry_get_journal(family->scenes->registry), &stats);
    for (struct vxd_scene *scene = family->first; scene != NULL;
         scene = scene->next_in_family) {
        struct vxd_scene_log_summary log;

        vxd_scene_get_log_summary(scene, &log);
        vxd_scene_age_forget(&scene->ages, log.version + 1); /* what was lost */
        if (stats.is_available && status == VXD_OK) {
            status = mark_age(scene, &fault);
        }
    }
    if (status == VXD_OK || is_put_off(status, family, &fault)) {
        return VXD_OK;
    }
    *err = fault;
    return status;
}

/* Restores a snapshot's name; it is left out where its scene or version is gone. */
static enum vxd_status name_version(void *user, enum vxd_journal_item_kind kind,
                                    const struct vxd_journal_item *item,
                                    struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_bytes_in in = {.bytes = item->bytes, .n = item->n_bytes};
    struct vxd_scene_snapshot named;
    struct vxd_scene_state state;
    struct vxd_scene_at at = {0};
    char name[VXD_NAME_BYTES];
    struct vxd_scene *scene;
    enum vxd_status status;

    if (kind == VXD_JOURNAL_AGES) {
        take_ages(recovery, item);
    }
    if (kind != VXD_JOURNAL_NAMED) {
        return VXD_OK;
    }
    VXD_TRY(vxd_scene_read_named(&in, name, &named, err));
    VXD_TRY(find_scene(recovery, item->family, name, &scene, err));
    at.version = named.version.number;
    VXD_TRY(vxd_scene_pin(scene, &at, &state, err));
    status = vxd_scene_check_snapshot(scene, &state, false, true, &named, err);
    if (status == VXD_OK) {
        vxd_scene_set_snapshot(scene, &named, false);
    }
    vxd_scene_unpin(recovery->scenes, &state, recovery->scenes->queue);
out:
    if (status == VXD_RESOURCE_EXHAUSTED) {
        return status;
    }
    if (status != VXD_OK) {
        vxd_log(VXD_LOG_WARNING, "a snapshot's version is not there any more", "error",
                err->message);
    }
    return VXD_OK;
}

/* Forgets a family whose scenes were all dropped, the last two of them at once. */
static enum vxd_status forget_family(struct vxd_scenes *scenes, uint32_t id,
                                     struct vxd_err *err)
{
    struct vxd_err fault = {0};
    enum vxd_status status =
        vxd_journal_forget_family(vxd_registry_get_journal(scenes->registry), id, &fault);

    if (status == VXD_OK || is_put_off(status, NULL, &fault)) {
        vxd_registry_ask_snapshot(scenes->registry, id);
        return VXD_OK;
    }
    *err = fault;
    return status;
}

static enum vxd_status done(void *user, const struct vxd_recovered_family *result,
                            struct vxd_err *err)
{
    struct recovery *recovery = user;
    struct vxd_scenes *scenes = recovery->scenes;
    struct vxd_scene_family *family = vxd_scenes_find_family(scenes, result->family->id);
    struct vxd_journal_family row = *result->family;
    enum vxd_status status;

    if (family == NULL) {
        /* Where the family has lost something, its rest stays for people to look at. */
        return result->is_lossy ? VXD_OK : forget_family(scenes, row.id, err);
    }
    family->sequence = result->last_sequence;
    family->decided = result->last_sequence;
    family->replay_ns = result->n_replayed > 0 ? vxd_clock_ns() - recovery->began_ns : 0;
    for (struct vxd_scene *scene = family->first; scene != NULL;
         scene = scene->next_in_family) {
        vxd_scene_end_recovery(scene);
    }
    vxd_scenes_name_family(family);
    vxd_scene_save_if_slow(family);
    VXD_TRY(mark_ages(family, err));
    if (!result->is_lossy) {
        return VXD_OK;
    }
    vxd_log(VXD_LOG_ERROR, "a scene has lost changes; its generation is another one",
            "scene", row.name, "reason", result->reason);
    row.epoch = vxd_scenes_new_generation(scenes);
    for (struct vxd_scene *scene = family->first; scene != NULL;
         scene = scene->next_in_family) {
        scene->generation = row.epoch;
    }
    status = vxd_registry_rewrite_family(scenes->registry, &row, err);
out:
    return status;
}

static enum vxd_status settle_names(struct vxd_scenes *scenes, struct vxd_err *err)
{
    struct vxd_err fault = {0};
    enum vxd_status status = vxd_scenes_settle_names(scenes, &fault);

    if (status == VXD_OK || is_put_off(status, NULL, &fault)) {
        return VXD_OK;
    }
    *err = fault;
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

    return vxd_context_is_lost(recovery->scenes->context);
}

static bool is_ours(void *user, const struct vxd_journal_family *row)
{
    (void)user;
    return vxd_registry_is_of_kind(&vxd_scenes_kind, row);
}

static enum vxd_status recover(void *owner, struct vxd_registry_start *start,
                               const struct vxd_journal_found *found, struct vxd_err *err)
{
    struct vxd_scenes *scenes = owner;
    struct recovery recovery = {.scenes = scenes, .start = start};
    const struct vxd_recovery_visitor visitor = {.user = &recovery,
                                                 .family = begin_family,
                                                 .snapshot = load,
                                                 .is_device_lost = is_device_lost,
                                                 .records = apply,
                                                 .records_at_once = most_at_once(scenes),
                                                 .foresee = foresee,
                                                 .is_ours = is_ours,
                                                 .item = name_version,
                                                 .done = done,
                                                 .progress = progress};
    enum vxd_status status;

    if (found->generation > scenes->last_generation) {
        scenes->last_generation = found->generation;
    }
    atomic_store(&scenes->is_recovering, true);
    status = vxd_registry_recover(start, found, &visitor, err);
    if (status == VXD_OK) {
        status = settle_names(scenes, err);
    }
    vxd_scenes_drop_unnamed(scenes, 0);
    atomic_store(&scenes->is_recovering, false);
    vxd_scene_plan_free(&recovery.plan);
    return status;
}

static void log_event(enum vxd_registry_event event, const char *name, const char *text)
{
    switch (event) {
    case VXD_REGISTRY_RECOVERING:
        vxd_log(VXD_LOG_INFO, "bringing back scenes", "done", text, "scene", name);
        break;
    case VXD_REGISTRY_RECOVERED:
        vxd_log(VXD_LOG_INFO, "scenes are back", "families", text);
        break;
    case VXD_REGISTRY_SAVED:
        vxd_log(VXD_LOG_INFO, "snapshot written", "scene", name, "seconds", text);
        break;
    case VXD_REGISTRY_NOT_SAVED:
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "scene", name, "error", text);
        break;
    default:
        break;
    }
}

const struct vxd_durable_kind vxd_scenes_kind = {.noun = "scene",
                                                 .prefix = VXD_SCENE_FAMILIES,
                                                 .log = log_event,
                                                 .recover = recover,
                                                 .save = vxd_scenes_save};
