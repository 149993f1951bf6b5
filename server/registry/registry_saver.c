// SPDX-License-Identifier: Apache-2.0
/* The thread that writes snapshot files. It finds out which kind a family is of and has
 * that kind write the file. Where the journal no longer has the family, it removes the
 * files. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/registry/registry_internal.h"

enum {
    RETRY_S = 60 /* after a file that could not be written */
};

struct vxd_registry_saver {
    struct vxd_registry *registry;
    struct vxd_queue *queue;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    uint32_t *due; /* ids, each once */
    size_t n_due;
    size_t capacity;
    bool may_begin; /* all families are there */
    bool is_saving;
    bool stopping;
};

/* --- one family -------------------------------------------------------------------------- */

enum vxd_status vxd_registry_write_snapshot(
    struct vxd_registry_save *save,
    enum vxd_status (*write)(void *user, struct vxd_snapshot_writer *writer,
                             struct vxd_err *err),
    void *user, struct vxd_err *err)
{
    struct vxd_snapshot_writer *writer = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_begin(save->registry->dir, &save->head, &writer, err));
    VXD_TRY(write(user, writer, err));
    status = vxd_snapshot_conclude(writer, save->registry->journal, err);
    writer = NULL;
out:
    vxd_snapshot_abandon(writer);
    return status;
}

/* A copy of a family's row, which is looked for by its number. */
struct row {
    uint32_t family;
    bool is_there;
    struct vxd_journal_family copy;
    void *spec;
};

static enum vxd_status copy_row(void *user, const struct vxd_journal_family *family,
                                struct vxd_err *err)
{
    struct row *row = user;

    if (family->id != row->family) {
        return VXD_OK;
    }
    row->spec = malloc(family->n_spec_bytes > 0 ? family->n_spec_bytes : 1);
    if (row->spec == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");
    }
    if (family->n_spec_bytes > 0) {
        memcpy(row->spec, family->spec, family->n_spec_bytes);
    }
    row->copy = *family;
    row->copy.spec = row->spec;
    row->is_there = true;
    return VXD_OK;
}

/* Whether the family was dropped meanwhile. Then a failure is none: its records go while
 * they are read. */
static bool is_dropped(const struct vxd_registry *registry, uint32_t family)
{
    struct vxd_journal_state state;

    return vxd_journal_get_state(registry->journal, family, &state, NULL) ==
           VXD_NOT_FOUND;
}

static void remove_files(const struct vxd_registry *registry, uint32_t family)
{
    struct vxd_err err = {0};

    if (vxd_snapshot_remove_all(registry->dir, family, &err) != VXD_OK) {
        vxd_log(VXD_LOG_WARNING, "files of a scene that was dropped are left", "error",
                err.message);
    }
}

/* Counts and logs how it went. */
static void note_saved(struct vxd_registered_kind *of,
                       const struct vxd_registry_save *save, int64_t since_ns,
                       enum vxd_status status, const struct vxd_err *err)
{
    char took[32];

    if (status != VXD_OK) {
        atomic_fetch_add(&of->n_failed_snapshots, 1);
        of->kind->log(VXD_REGISTRY_NOT_SAVED, save->head.name, err->message);
        return;
    }
    atomic_fetch_add(&of->n_snapshots, 1);
    (void)snprintf(took, sizeof took, "%.3f", (double)(vxd_clock_ns() - since_ns) / 1e9);
    of->kind->log(VXD_REGISTRY_SAVED, save->head.name, took);
}

static enum vxd_status save_row(struct vxd_registry_saver *saver,
                                const struct vxd_journal_family *row)
{
    struct vxd_registered_kind *of = vxd_registry_find_kind(saver->registry, row);
    struct vxd_registry_save save = {
        .registry = saver->registry,
        .row = row,
        .queue = saver->queue,
        .head = {.family = row->id, .epoch = row->epoch, .unix_ns = vxd_clock_unix_ns()}};
    int64_t since_ns = vxd_clock_ns();
    struct vxd_err err = {0};
    enum vxd_status status;

    if (of == NULL) {
        return VXD_OK; /* the start has refused such families */
    }
    (void)snprintf(save.head.name, sizeof save.head.name, "%s", row->name);
    status = of->kind->save(of->owner, &save, &err);
    (void)vxd_queue_wait(saver->queue, NULL);
    if (save.is_empty || (status != VXD_OK && is_dropped(saver->registry, row->id))) {
        return VXD_OK; /* whoever dropped it asks for its files to be removed */
    }
    note_saved(of, &save, since_ns, status, &err);
    return status;
}

/* Returns false where it should be tried again. */
static bool save_family(struct vxd_registry_saver *saver, uint32_t family)
{
    struct row row = {.family = family};
    struct vxd_err err = {0};
    enum vxd_status status =
        vxd_journal_read_families(saver->registry->journal, copy_row, &row, &err);

    if (status != VXD_OK) {
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "error", err.message);
    } else if (row.is_there) {
        status = save_row(saver, &row.copy);
    } else if (is_dropped(saver->registry, family)) {
        remove_files(saver->registry, family);
    }
    free(row.spec);
    return status == VXD_OK;
}

/* --- the thread ------------------------------------------------------------------------- */

/* Waits before a file is tried again. The mutex is held. */
static void wait_to_retry(struct vxd_registry_saver *saver)
{
    struct timespec until = {0};
    int result = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += RETRY_S;
    while (!saver->stopping && result == 0) {
        result = pthread_cond_timedwait(&saver->wake, &saver->mutex, &until);
    }
}

static void *run(void *argument)
{
    struct vxd_registry_saver *saver = argument;

    (void)pthread_mutex_lock(&saver->mutex);
    while (!saver->stopping) {
        uint32_t id;
        bool is_done;

        if (saver->n_due == 0 || !saver->may_begin) {
            (void)pthread_cond_wait(&saver->wake, &saver->mutex);
            continue;
        }
        id = saver->due[0];
        saver->n_due--;
        saver->is_saving = true;
        memmove(saver->due, saver->due + 1, saver->n_due * sizeof *saver->due);
        (void)pthread_mutex_unlock(&saver->mutex);
        is_done = save_family(saver, id);
        if (!is_done) {
            /* The journal asks once, and grows until there is a file. */
            vxd_registry_ask_snapshot(saver->registry, id);
        }
        (void)pthread_mutex_lock(&saver->mutex);
        saver->is_saving = false;
        if (!is_done) {
            wait_to_retry(saver);
        }
    }
    (void)pthread_mutex_unlock(&saver->mutex);
    return NULL;
}

void vxd_registry_ask_snapshot(struct vxd_registry *registry, uint32_t family)
{
    struct vxd_registry_saver *saver = registry->saver;
    bool is_there = false;

    (void)pthread_mutex_lock(&saver->mutex);
    for (size_t i = 0; i < saver->n_due; i++) {
        is_there = is_there || saver->due[i] == family;
    }
    if (!is_there && saver->n_due == saver->capacity) {
        size_t capacity = saver->capacity > 0 ? 2 * saver->capacity : 64;
        uint32_t *larger = realloc(saver->due, capacity * sizeof *larger);

        if (larger != NULL) {
            saver->due = larger;
            saver->capacity = capacity;
        }
    }
    /* Where there is no memory, the journal grows until a later start asks again. */
    if (!is_there && saver->n_due < saver->capacity) {
        saver->due[saver->n_due++] = family;
        (void)pthread_cond_signal(&saver->wake);
    }
    (void)pthread_mutex_unlock(&saver->mutex);
}

enum vxd_status vxd_registry_saver_start(struct vxd_registry *registry,
                                         struct vxd_registry_saver **out,
                                         struct vxd_err *err)
{
    struct vxd_registry_saver *saver = calloc(1, sizeof *saver);
    enum vxd_status status;

    if (saver == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for snapshots");
    }
    saver->registry = registry;
    status = vxd_queue_create(registry->context, &saver->queue, err);
    if (status != VXD_OK) {
        free(saver);
        return status;
    }
    (void)pthread_mutex_init(&saver->mutex, NULL);
    if (!vxd_clock_init_condition(&saver->wake)) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for snapshots");
    } else if (pthread_create(&saver->thread, NULL, run, saver) != 0) {
        (void)pthread_cond_destroy(&saver->wake);
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no thread for snapshots");
    }
    if (status != VXD_OK) {
        vxd_queue_destroy(saver->queue);
        (void)pthread_mutex_destroy(&saver->mutex);
        free(saver);
        return status;
    }
    *out = saver;
    return VXD_OK;
}

void vxd_registry_saver_begin(struct vxd_registry_saver *saver)
{
    (void)pthread_mutex_lock(&saver->mutex);
    saver->may_begin = true;
    (void)pthread_cond_signal(&saver->wake);
    (void)pthread_mutex_unlock(&saver->mutex);
}

void vxd_registry_saver_stop(struct vxd_registry_saver *saver)
{
    (void)pthread_mutex_lock(&saver->mutex);
    saver->stopping = true;
    (void)pthread_cond_signal(&saver->wake);
    (void)pthread_mutex_unlock(&saver->mutex);
    (void)pthread_join(saver->thread, NULL);
}

static bool has_work(struct vxd_registry_saver *saver)
{
    bool result;

    (void)pthread_mutex_lock(&saver->mutex);
    result = saver->n_due > 0 || saver->is_saving;
    (void)pthread_mutex_unlock(&saver->mutex);
    return result;
}

void vxd_registry_saver_wait(struct vxd_registry_saver *saver, uint32_t timeout_ms)
{
    const struct timespec step = {.tv_nsec = 2000000};
    int64_t end_ns = vxd_clock_ns() + timeout_ms * INT64_C(1000000);

    while (has_work(saver) && vxd_clock_ns() < end_ns) {
        (void)nanosleep(&step, NULL);
    }
}

void vxd_registry_saver_destroy(struct vxd_registry_saver *saver)
{
    vxd_queue_destroy(saver->queue);
    (void)pthread_cond_destroy(&saver->wake);
    (void)pthread_mutex_destroy(&saver->mutex);
    free(saver->due);
    free(saver);
}

void vxd_registry_count_snapshots(const struct vxd_registry *registry,
                                  const struct vxd_durable_kind *kind,
                                  uint64_t *n_written, uint64_t *n_failed)
{
    *n_written = 0;
    *n_failed = 0;
    for (size_t i = 0; i < registry->n_kinds; i++) {
        if (registry->kinds[i].kind == kind) {
            *n_written = atomic_load(&registry->kinds[i].n_snapshots);
            *n_failed = atomic_load(&registry->kinds[i].n_failed_snapshots);
        }
    }
}
