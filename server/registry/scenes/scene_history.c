// SPDX-License-Identifier: Apache-2.0
/* The history of a scene: an array of versions by number, without gaps, and one of
 * snapshots by name. The mutex of the list of scenes guards both. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/registry/scenes/scenes_internal.h"

#define NS_PER_S UINT64_C(1000000000)

/* --- the arrays ------------------------------------------------------------------------- */

enum vxd_status vxd_scene_history_begin(struct vxd_scene *scene, uint32_t root,
                                        uint32_t pins, struct vxd_err *err)
{
    struct vxd_scene_version first = {.kind = VXD_SCENE_MADE, .root = root, .pins = pins};
    enum vxd_status status = vxd_scene_reserve_version(scene, err);

    if (status == VXD_OK) {
        first.unix_ns = scene->created_unix_ns;
        (void)snprintf(first.by, sizeof first.by, "%s", scene->terms.owner);
        (void)vxd_scene_add_version(scene, &first, false);
    }
    return status;
}

void vxd_scene_history_free(struct vxd_scene_history *history)
{
    free(history->versions);
    free(history->snapshots);
    free(history->filed);
    memset(history, 0, sizeof *history);
}

static void map_version(struct vxd_scene_version *version,
                        uint32_t (*map)(void *argument, uint32_t root), void *argument)
{
    version->root = map(argument, version->root);
    if (version->pins != VXD_SVDAG_EMPTY) {
        version->pins = map(argument, version->pins);
    }
}

void vxd_scene_history_map(struct vxd_scene_history *history,
                           uint32_t (*map)(void *argument, uint32_t root), void *argument)
{
    for (size_t i = 0; i < history->n; i++) {
        map_version(&history->versions[i], map, argument);
    }
    for (size_t i = 0; i < history->n_snapshots; i++) {
        map_version(&history->snapshots[i].version, map, argument);
    }
    for (size_t i = 0; i < history->n_filed; i++) {
        map_version(&history->filed[i].version, map, argument);
    }
}

/* Finds the kept version of this number, apart from snapshots; NULL where there is none. */
static struct vxd_scene_version *find_version(const struct vxd_scene_history *history,
                                              uint64_t number)
{
    uint64_t oldest = history->versions[0].number;

    return number >= oldest && number - oldest < history->n
               ? &history->versions[number - oldest]
               : NULL;
}

/* Returns the last version that everybody sees. */
static struct vxd_scene_version *newest(const struct vxd_scene_history *history)
{
    return &history->versions[history->n - history->n_waiting - 1];
}

/* Returns the last of the first n versions that undid this one; 0 where none did. */
static uint64_t find_undoing(const struct vxd_scene_history *history, size_t n,
                             const struct vxd_scene_version *version)
{
    const struct vxd_scene_version *by = &history->versions[n - 1];

    while (by > version && by->of_version != version->number) {
        by--;
    }
    return by > version ? by->number : 0;
}

uint64_t vxd_scene_undone_by(const struct vxd_scene_history *history,
                             const struct vxd_scene_version *version)
{
    return version->undone_by <= newest(history)->number
               ? version->undone_by
               : find_undoing(history, history->n - history->n_waiting, version);
}

static bool waits(const struct vxd_scene_history *history,
                  const struct vxd_scene_version *version)
{
    return version > newest(history);
}

/* Finds the place where a snapshot of this name is, or would be. */
static size_t find_snapshot(const struct vxd_scene_history *history, const char *name,
                            bool *found)
{
    size_t i = 0;

    while (i < history->n_snapshots && strcmp(history->snapshots[i].name, name) < 0) {
        i++;
    }
    *found = i < history->n_snapshots && strcmp(history->snapshots[i].name, name) == 0;
    return i;
}

/* Finds a version by its number or a snapshot's name, whether its age or a snapshot keeps
 * it. */
static const struct vxd_scene_version *find_at(const struct vxd_scene_history *history,
                                               const struct vxd_scene_at *at)
{
    const struct vxd_scene_version *version;
    bool found;
    size_t i;

    if (at->snapshot != NULL && at->snapshot[0] != '\0') {
        i = find_snapshot(history, at->snapshot, &found);
        return found ? &history->snapshots[i].version : NULL;
    }
    if (at->version == 0) {
        return newest(history);
    }
    version = find_version(history, at->version);
    if (version != NULL && waits(history, version)) {
        return NULL;
    }
    for (i = 0; i < history->n_snapshots && version == NULL; i++) {
        if (history->snapshots[i].version.number == at->version) {
            version = &history->snapshots[i].version;
        }
    }
    for (i = 0; i < history->n_filed && version == NULL; i++) {
        if (history->filed[i].version.number == at->version) {
            version = &history->filed[i].version;
        }
    }
    return version;
}

/* --- reading ---------------------------------------------------------------------------- */

/* With the mutex held. */
static void pin(struct vxd_scene *scene, const struct vxd_scene_version *version,
                struct vxd_scene_state *out)
{
    *out = (struct vxd_scene_state){.store = scene->family->store,
                                    .svdag = scene->family->store->svdag,
                                    .root = version->root,
                                    .pins = version->pins,
                                    .version = version->number,
                                    .changed_unix_ns = version->unix_ns};
    out->store->references++;
}

void vxd_scene_pin_last(struct vxd_scene *scene, struct vxd_scene_state *out)
{
    vxd_scenes_lock(scene->scenes);
    pin(scene, &scene->history.versions[scene->history.n - 1], out);
    vxd_scenes_unlock(scene->scenes);
}

enum vxd_status vxd_scene_pin(struct vxd_scene *scene, const struct vxd_scene_at *at,
                              struct vxd_scene_state *out, struct vxd_err *err)
{
    const struct vxd_scene_version *version;
    uint64_t oldest;
    uint64_t last;

    vxd_scenes_lock(scene->scenes);
    version = find_at(&scene->history, at);
    if (version != NULL) {
        pin(scene, version, out);
    }
    oldest = scene->history.versions[0].number;
    last = newest(&scene->history)->number;
    vxd_scenes_unlock(scene->scenes);
    if (version != NULL) {
        return VXD_OK;
    }
    if (at->snapshot != NULL && at->snapshot[0] != '\0') {
        return vxd_fail(err, VXD_NOT_FOUND, "at.snapshot",
                        "the scene \"%s\" has no snapshot \"%.63s\"", scene->terms.name,
                        at->snapshot);
    }
    return vxd_fail(err, VXD_NOT_FOUND, "at.version",
                    "%" PRIu64 " is not kept: the scene \"%s\" has %" PRIu64
                    " to %" PRIu64 ", and its snapshots",
                    at->version, scene->terms.name, oldest, last);
}

bool vxd_scene_is_last(const struct vxd_scene *scene, uint64_t version)
{
    const struct vxd_scene_history *history = &scene->history;

    return history->versions[history->n - 1].number == version;
}

void vxd_scene_unpin(struct vxd_scenes *scenes, struct vxd_scene_state *state,
                     struct vxd_queue *queue)
{
    vxd_scene_store_drop(scenes, state->store, queue);
    state->store = NULL;
    state->svdag = NULL;
}

void vxd_scene_get_log_summary(const struct vxd_scene *scene,
                               struct vxd_scene_log_summary *out)
{
    const struct vxd_scene_history *history = &scene->history;

    vxd_scenes_lock(scene->scenes);
    *out = (struct vxd_scene_log_summary){.version = newest(history)->number,
                                          .changed_unix_ns = newest(history)->unix_ns,
                                          .oldest = history->versions[0].number,
                                          .n_versions = history->n - history->n_waiting,
                                          .n_snapshots = history->n_snapshots};
    for (const struct vxd_scene *other = scene->family->first; other != NULL;
         other = other->next_in_family) {
        out->n_sharing++;
    }
    vxd_scenes_unlock(scene->scenes);
}

size_t vxd_scene_copy_versions(const struct vxd_scene *scene, uint64_t below,
                               struct vxd_scene_version *out, size_t n_most)
{
    const struct vxd_scene_history *history = &scene->history;
    size_t n = 0;

    vxd_scenes_lock(scene->scenes);
    for (size_t i = history->n - history->n_waiting; i > 0 && n < n_most; i--) {
        if (below == 0 || history->versions[i - 1].number < below) {
            out[n] = history->versions[i - 1];
            out[n++].undone_by = vxd_scene_undone_by(history, &history->versions[i - 1]);
        }
    }
    vxd_scenes_unlock(scene->scenes);
    return n;
}

enum vxd_status vxd_scene_pin_versions(struct vxd_scene *scene,
                                       const struct vxd_scene_at *at,
                                       struct vxd_scene_state *state,
                                       struct vxd_scene_version *out, size_t n_most,
                                       size_t *n, struct vxd_err *err)
{
    const struct vxd_scene_history *history = &scene->history;
    enum vxd_status status = vxd_scene_pin(scene, at, state, err);

    *n = 0;
    if (status != VXD_OK) {
        return status;
    }
    vxd_scenes_lock(scene->scenes);
    /* A collection may have moved all roots to another store since then. */
    if (state->store == scene->family->store) {
        const struct vxd_scene_version *last = find_version(history, state->version);

        for (size_t i = last != NULL ? (size_t)(last - history->versions) + 1 : 0;
             i > 0 && *n < n_most; i--) {
            out[*n] = history->versions[i - 1];
            out[*n].undone_by = vxd_scene_undone_by(history, &history->versions[i - 1]);
            (*n)++;
        }
    }
    vxd_scenes_unlock(scene->scenes);
    if (*n == 0 && n_most > 0) {
        out[(*n)++] = (struct vxd_scene_version){.number = state->version,
                                                 .root = state->root,
                                                 .pins = state->pins,
                                                 .unix_ns = state->changed_unix_ns};
    }
    return VXD_OK;
}

void vxd_scene_set_sensor(struct vxd_scene *scene, const struct vxd_scene_sensor *sensor)
{
    vxd_scenes_lock(scene->scenes);
    scene->sensor = *sensor;
    vxd_scenes_unlock(scene->scenes);
}

void vxd_scene_get_sensor(const struct vxd_scene *scene, struct vxd_scene_sensor *out)
{
    vxd_scenes_lock(scene->scenes);
    *out = scene->sensor;
    vxd_scenes_unlock(scene->scenes);
}

size_t vxd_scene_copy_snapshots(const struct vxd_scene *scene,
                                struct vxd_scene_snapshot *out, size_t n_most)
{
    const struct vxd_scene_history *history = &scene->history;
    size_t n;

    vxd_scenes_lock(scene->scenes);
    n = history->n_snapshots < n_most ? history->n_snapshots : n_most;
    if (n > 0) {
        memcpy(out, history->snapshots, n * sizeof *out);
    }
    vxd_scenes_unlock(scene->scenes);
    return n;
}

static int compare_roots(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

size_t vxd_scene_pin_roots(struct vxd_scene *scene, struct vxd_scene_state *state,
                           uint32_t *out, size_t n_most)
{
    const struct vxd_scene_history *history = &scene->history;
    size_t n = 0;
    size_t n_different = 0;

    vxd_scenes_lock(scene->scenes);
    pin(scene, newest(history), state);
    for (size_t i = history->n - history->n_waiting; i > 0 && n + 1 < n_most; i--) {
        out[n++] = history->versions[i - 1].root;
        out[n++] = history->versions[i - 1].pins;
    }
    for (size_t i = 0; i < history->n_snapshots && n + 1 < n_most; i++) {
        out[n++] = history->snapshots[i].version.root;
        out[n++] = history->snapshots[i].version.pins;
    }
    vxd_scenes_unlock(scene->scenes);
    qsort(out, n, sizeof *out, compare_roots);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || out[i] != out[i - 1]) {
            out[n_different++] = out[i];
        }
    }
    return n_different;
}

/* --- adding ----------------------------------------------------------------------------- */

enum vxd_status vxd_scene_reserve_versions(struct vxd_scene *scene, size_t n,
                                           struct vxd_err *err)
{
    struct vxd_scene_history *history = &scene->history;
    size_t capacity = 2 * history->capacity + (n < 8 ? 8 : n);
    struct vxd_scene_version *larger;

    if (history->capacity - history->n >= n) {
        return VXD_OK;
    }
    /* The mutex is held while the array changes, since readers look at it with the mutex
     * held. */
    vxd_scenes_lock(scene->scenes);
    larger = realloc(history->versions, capacity * sizeof *larger);
    if (larger != NULL) {
        history->versions = larger;
        history->capacity = capacity;
    }
    vxd_scenes_unlock(scene->scenes);
    return larger != NULL ? VXD_OK
                          : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                     "no memory for another version of the scene");
}

enum vxd_status vxd_scene_reserve_version(struct vxd_scene *scene, struct vxd_err *err)
{
    return vxd_scene_reserve_versions(scene, 1, err);
}

/* Counts the oldest versions that the terms do not keep; never the newest one. Waiting
 * versions do not count, since they may fail. */
static size_t count_old(const struct vxd_scene *scene)
{
    uint64_t now_ns = vxd_scenes_run_ns(scene->scenes);
    const struct vxd_scene_history *history = &scene->history;
    size_t n_seen = history->n - history->n_waiting;
    size_t n =
        n_seen > scene->terms.keep_versions ? n_seen - scene->terms.keep_versions : 0;
    size_t n_most = n_seen - 1;
    uint64_t seconds = scene->terms.keep_seconds;

    if (seconds > 0 && seconds < UINT64_MAX / NS_PER_S) {
        while (n < n_most && now_ns > history->versions[n].run_ns &&
               now_ns - history->versions[n].run_ns > seconds * NS_PER_S) {
            n++;
        }
    }
    return history->keeps_all ? 0 : n < n_most ? n : n_most;
}

/* With the mutex held. */
static void drop_old(struct vxd_scene *scene)
{
    struct vxd_scene_history *history = &scene->history;
    size_t n_old = count_old(scene);

    if (n_old > 0) {
        history->n -= n_old;
        memmove(history->versions, history->versions + n_old,
                history->n * sizeof *history->versions);
    }
}

void vxd_scene_end_recovery(struct vxd_scene *scene)
{
    struct vxd_scene_history *history = &scene->history;
    uint64_t now_ns = vxd_scenes_run_ns(scene->scenes);

    vxd_scenes_lock(scene->scenes);
    free(history->filed);
    history->filed = NULL;
    history->n_filed = 0;
    history->keeps_all = false;
    for (size_t i = 0; i < history->n; i++) {
        history->versions[i].run_ns =
            vxd_scene_age_find(&scene->ages, history->versions[i].number, now_ns);
    }
    drop_old(scene);
    vxd_scenes_unlock(scene->scenes);
}

uint64_t vxd_scene_add_version(struct vxd_scene *scene,
                               const struct vxd_scene_version *version, bool waiting)
{
    struct vxd_scene_history *history = &scene->history;
    struct vxd_scene_version *added;
    struct vxd_scene_version *undone;
    uint64_t number;
    bool is_seen;

    vxd_scenes_lock(scene->scenes);
    added = &history->versions[history->n];
    *added = *version;
    added->number = history->n > 0 ? added[-1].number + 1 : 1;
    if (added->unix_ns == 0) {
        added->unix_ns = vxd_clock_unix_ns();
    }
    added->run_ns = vxd_scenes_run_ns(scene->scenes);
    number = added->number;
    history->n++;
    history->n_waiting += waiting ? 1 : 0;
    undone = version->of_version > 0 ? find_version(history, version->of_version) : NULL;
    if (undone != NULL) {
        undone->undone_by = number;
    }
    is_seen = !waiting && scene->is_named;
    if (!waiting) {
        drop_old(scene);
        vxd_scene_number_change(scene, false);
    }
    vxd_scenes_unlock(scene->scenes);
    vxd_scene_family_keep(scene->family, version->root);
    vxd_scene_family_keep(scene->family, version->pins);
    vxd_scene_notify(scene, is_seen);
    return number;
}

void vxd_scene_decide_version(struct vxd_scene *scene, uint64_t number, bool committed)
{
    struct vxd_scene_history *history = &scene->history;
    bool is_seen;

    vxd_scenes_lock(scene->scenes);
    is_seen = committed && scene->is_named;
    if (committed) {
        history->n_waiting--;
        drop_old(scene);
        vxd_scene_number_change(scene, false);
    } else {
        /* A version that failed is dropped with all that were built on it, and what these
         * had undone is in effect again. */
        while (history->n_waiting > 0 &&
               history->versions[history->n - 1].number >= number) {
            history->n--;
            history->n_waiting--;
        }
        for (size_t i = 0; i < history->n; i++) {
            if (history->versions[i].undone_by >= number) {
                history->versions[i].undone_by =
                    find_undoing(history, history->n, &history->versions[i]);
            }
        }
    }
    vxd_scenes_unlock(scene->scenes);
    vxd_scene_notify(scene, is_seen);
}

/* --- undoing ---------------------------------------------------------------------------- */

static bool may_be_undone(const struct vxd_scene_version *version, bool redo)
{
    return redo ? version->kind == VXD_SCENE_UNDONE : version->kind != VXD_SCENE_MADE;
}

/* Finds the newest version that this sender made, of the right kind and not undone; NULL
 * where there is none. */
static const struct vxd_scene_version *find_own(const struct vxd_scene_history *history,
                                                bool redo,
                                                const struct vxd_request *sender)
{
    for (size_t i = history->n; i > 0; i--) {
        const struct vxd_scene_version *version = &history->versions[i - 1];
        bool is_edit = version->kind == VXD_SCENE_EDITED ||
                       version->kind == VXD_SCENE_INTEGRATED ||
                       version->kind == VXD_SCENE_REDONE;

        if ((redo ? version->kind == VXD_SCENE_UNDONE : is_edit) &&
            version->undone_by == 0 && strcmp(version->by, sender->principal.name) == 0 &&
            strcmp(version->client_id, sender->client_id) == 0) {
            return version;
        }
    }
    return NULL;
}

enum vxd_status vxd_scene_find_undoing(struct vxd_scene *scene, bool redo, uint64_t of,
                                       const struct vxd_request *sender,
                                       struct vxd_scene_undoing *out, struct vxd_err *err)
{
    /* The write lane alone changes the history, so it reads without the mutex. */
    const struct vxd_scene_history *history = &scene->history;
    const struct vxd_scene_version *version =
        of > 0 ? find_version(history, of) : find_own(history, redo, sender);
    const struct vxd_scene_version *before;

    if (version == NULL && of == 0) {
        return vxd_fail(err, VXD_NOT_FOUND, "of_version",
                        redo ? "no kept version of the scene \"%s\" is an undo of yours "
                               "that is not redone"
                             : "no kept version of the scene \"%s\" is a change of yours "
                               "that is not undone",
                        scene->terms.name);
    }
    before = version != NULL ? find_version(history, version->number - 1) : NULL;
    if (version != NULL && !may_be_undone(version, redo)) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "of_version",
                        redo ? "%" PRIu64 " is no undo"
                             : "%" PRIu64 " is how the scene was made",
                        version->number);
    }
    if (before == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, "of_version",
                        "%" PRIu64 " and the one before it must be kept: the scene "
                        "\"%s\" has %" PRIu64 " to %" PRIu64,
                        version != NULL ? version->number : of, scene->terms.name,
                        history->versions[0].number, newest(history)->number);
    }
    *out = (struct vxd_scene_undoing){version->number, before->root, version->root};
    return VXD_OK;
}

/* --- snapshots -------------------------------------------------------------------------- */

static enum vxd_status make_place(struct vxd_scene_history *history, struct vxd_err *err)
{
    if (history->n_snapshots == VXD_SCENE_MAX_SNAPSHOTS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "snapshot",
                        "the scene has %d snapshots already, the most that it may have",
                        VXD_SCENE_MAX_SNAPSHOTS);
    }
    if (history->snapshots == NULL) {
        history->snapshots = calloc(VXD_SCENE_MAX_SNAPSHOTS, sizeof *history->snapshots);
    }
    return history->snapshots != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for snapshots");
}

enum vxd_status vxd_scene_check_snapshot(struct vxd_scene *scene,
                                         const struct vxd_scene_state *state, bool drop,
                                         bool replace,
                                         struct vxd_scene_snapshot *snapshot,
                                         struct vxd_err *err)
{
    struct vxd_scene_history *history = &scene->history;
    const struct vxd_scene_at at = {state->version, NULL};
    bool found;
    size_t i;
    enum vxd_status status = VXD_OK;

    vxd_scenes_lock(scene->scenes);
    i = find_snapshot(history, snapshot->name, &found);
    if (drop) {
        VXD_TRY(found ? VXD_OK
                      : vxd_fail(err, VXD_NOT_FOUND, "snapshot",
                                 "the scene \"%s\" has no snapshot \"%.63s\"",
                                 scene->terms.name, snapshot->name));
        *snapshot = history->snapshots[i];
        goto out;
    }
    if (found && !replace && history->snapshots[i].version.number != state->version) {
        VXD_TRY(vxd_fail(err, VXD_ALREADY_EXISTS, "snapshot",
                         "\"%s\" is version %" PRIu64 "; say `replace` to move it",
                         snapshot->name, history->snapshots[i].version.number));
    }
    if (!found) {
        VXD_TRY(make_place(history, err));
    }
    snapshot->version =
        *find_at(history, &at); /* it was pinned on this lane, so it is still kept */
out:
    vxd_scenes_unlock(scene->scenes);
    return status;
}

void vxd_scene_set_snapshot(struct vxd_scene *scene,
                            const struct vxd_scene_snapshot *snapshot, bool drop)
{
    struct vxd_scene_history *history = &scene->history;
    bool found;
    size_t i;

    vxd_scenes_lock(scene->scenes);
    i = find_snapshot(history, snapshot->name, &found);
    if (drop) {
        history->n_snapshots--;
        memmove(&history->snapshots[i], &history->snapshots[i + 1],
                (history->n_snapshots - i) * sizeof *history->snapshots);
    } else {
        if (!found) {
            memmove(&history->snapshots[i + 1], &history->snapshots[i],
                    (history->n_snapshots - i) * sizeof *history->snapshots);
            history->n_snapshots++;
        }
        history->snapshots[i] = *snapshot;
    }
    vxd_scenes_unlock(scene->scenes);
}
