// SPDX-License-Identifier: Apache-2.0
/* The thread of the archive. It looks at the spool once a second. What waits is copied when it has
 * waited long enough or is large enough; behind a sync of the journal, so that no loss of power takes
 * back what is archived. The rows go from the spool when their file is synced and has its name. */
#include "server/durable/archive/archive.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/base/clock.h"
#include "server/observe/log/log.h"

enum {
    DEFAULT_TICK_MS = 1000,
    DEFAULT_RETRY_MS = 5000
};
#define DEFAULT_BYTES ((uint64_t)16 << 20)

struct vxd_archive {
    const struct vxd_file_ops *ops;
    struct vxd_journal *journal;
    struct vxd_archive_options options;
    char folder[VXD_DATA_DIR_BYTES]; /* without a slash at its end */
    int64_t waiting_ns;              /* since when something waits; 0 = nothing does */
    int64_t retry_ns;                /* not before */
    bool is_named;                   /* the folder's name is on the disk */
    uint64_t n_breaks;               /* for which the rows were dropped */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping;
    struct vxd_archive_stats stats;
};

/* One file, of what waits up to `last`, and no more than is due at once. */
static enum vxd_status write_segment(struct vxd_archive *archive,
                                     const struct vxd_spool *spool, uint64_t last,
                                     struct vxd_segment_head *head, uint64_t *n_bytes,
                                     struct vxd_err *err)
{
    struct vxd_segment_writer *writer = NULL;
    enum vxd_status status;

    *n_bytes = 0;
    VXD_TRY(vxd_segment_begin(archive->ops, archive->folder, spool->line, spool->first,
                              &writer, err));
    for (uint64_t number = spool->first;
         number <= last && vxd_segment_size(writer) < archive->options.n_bytes;
         number++) {
        uint8_t *bytes = NULL;
        size_t n = 0;

        status = vxd_journal_read_spool(archive->journal, number, &bytes, &n, err);
        if (status == VXD_OK) {
            status = vxd_segment_add(writer, bytes, n, err);
        }
        free(bytes);
        VXD_TRY(status);
        *n_bytes += n;
    }
    status = vxd_segment_conclude(writer, head, err);
    writer = NULL;
out:
    vxd_segment_abandon(writer);
    return status;
}

/* Once in a run the folder's own name is synced, whoever made it. */
static enum vxd_status make_folder(struct vxd_archive *archive, struct vxd_err *err)
{
    const struct vxd_file_ops *ops = archive->ops;
    char parent[VXD_DATA_DIR_BYTES];
    char *slash;
    int made = ops->make_directory(ops->user, archive->folder, 0700);
    enum vxd_status status;

    if (made != 0 && made != -EEXIST) {
        return vxd_file_fail(err, made, "make", archive->folder);
    }
    if (made != 0 && archive->is_named) {
        return VXD_OK;
    }
    (void)snprintf(parent, sizeof parent, "%s", archive->folder);
    slash = strrchr(parent, '/');
    if (slash == NULL) {
        (void)snprintf(parent, sizeof parent, ".");
    } else {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    VXD_TRY(vxd_file_sync_directory(ops, parent, err));
    archive->is_named = true;
out:
    return status;
}

/* Copies all that waits now. */
static enum vxd_status copy_waiting(struct vxd_archive *archive, struct vxd_err *err)
{
    struct vxd_spool spool;
    uint64_t last;
    uint64_t line;
    enum vxd_status status;

    vxd_journal_get_spool(archive->journal, &spool);
    last = spool.next - 1;
    line = spool.line;
    VXD_TRY(make_folder(archive, err));
    VXD_TRY(vxd_journal_flush(archive->journal, err));
    while (spool.line == line && spool.first <= last) {
        struct vxd_segment_head head;
        uint64_t n_bytes;

        VXD_TRY(write_segment(archive, &spool, last, &head, &n_bytes, err));
        VXD_TRY(vxd_journal_drop_spool(archive->journal, line, head.first + head.n - 1,
                                       n_bytes, err));
        (void)pthread_mutex_lock(&archive->lock);
        archive->stats.n_segments++;
        archive->stats.n_segment_bytes += head.n_bytes;
        archive->stats.n_transactions += head.n;
        (void)pthread_mutex_unlock(&archive->lock);
        vxd_journal_get_spool(archive->journal, &spool);
    }
out:
    return status;
}

/* Changes between working and not are logged, once each. */
static void note(struct vxd_archive *archive, enum vxd_status status,
                 const struct vxd_err *err)
{
    struct vxd_archive_stats *stats = &archive->stats;

    if (status != VXD_OK && stats->is_available) {
        vxd_log(VXD_LOG_ERROR,
                "the archive takes nothing; changes wait for it in the data directory",
                "archive_dir", archive->folder, "reason", err->message);
    } else if (status == VXD_OK && !stats->is_available) {
        vxd_log(VXD_LOG_INFO, "the archive works again", "archive_dir", archive->folder);
    }
    (void)pthread_mutex_lock(&archive->lock);
    stats->is_available = status == VXD_OK;
    stats->n_failed += status != VXD_OK;
    (void)snprintf(stats->reason, sizeof stats->reason, "%.*s",
                   (int)sizeof stats->reason - 1, status != VXD_OK ? err->message : "");
    (void)pthread_mutex_unlock(&archive->lock);
}

/* Rows that were given up, of which nobody else takes care. */
static void drop_given_up(struct vxd_archive *archive, const struct vxd_spool *spool)
{
    if (archive->n_breaks != spool->n_breaks &&
        vxd_journal_drop_spool(archive->journal, 0, 0, 0, NULL) == VXD_OK) {
        archive->n_breaks = spool->n_breaks;
    }
}

static void tick(struct vxd_archive *archive, bool is_last)
{
    int64_t now_ns = vxd_clock_ns();
    struct vxd_err err = {0};
    struct vxd_spool spool;
    enum vxd_status status;

    vxd_journal_get_spool(archive->journal, &spool);
    drop_given_up(archive, &spool);
    if (!spool.is_open || spool.first == spool.next) {
        archive->waiting_ns = 0;
        return;
    }
    archive->waiting_ns = archive->waiting_ns != 0 ? archive->waiting_ns : now_ns;
    if (!is_last && (now_ns < archive->retry_ns ||
                     (spool.n_bytes < archive->options.n_bytes &&
                      now_ns - archive->waiting_ns <
                          archive->options.seconds * INT64_C(1000000000)))) {
        return;
    }
    status = copy_waiting(archive, &err);
    note(archive, status, &err);
    archive->retry_ns = 0;
    if (status == VXD_OK) {
        archive->waiting_ns = 0;
    } else {
        archive->retry_ns = now_ns + archive->options.retry_ms * INT64_C(1000000);
    }
}

static void *run(void *argument)
{
    struct vxd_archive *archive = argument;
    bool is_last = false;

    while (!is_last) {
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(archive->options.tick_ms % 1000) * 1000000;
        until.tv_sec += archive->options.tick_ms / 1000 + until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_mutex_lock(&archive->lock);
        while (!archive->is_stopping &&
               pthread_cond_timedwait(&archive->wake, &archive->lock, &until) !=
                   ETIMEDOUT) {
        }
        is_last = archive->is_stopping;
        (void)pthread_mutex_unlock(&archive->lock);
        tick(archive, is_last);
    }
    return NULL;
}

enum vxd_status vxd_archive_start(const struct vxd_file_ops *ops,
                                  struct vxd_journal *journal,
                                  const struct vxd_archive_options *options,
                                  struct vxd_archive **out, struct vxd_err *err)
{
    struct vxd_archive *archive;
    struct vxd_archive_options *mine;

    if (strlen(options->folder) >= sizeof archive->folder) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "archive_dir", "the path is too long");
    }
    archive = calloc(1, sizeof *archive);
    if (archive == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the archive");
    }
    archive->ops = ops;
    archive->journal = journal;
    archive->stats.is_available = true;
    (void)snprintf(archive->folder, sizeof archive->folder, "%s", options->folder);
    for (size_t n = strlen(archive->folder); n > 1 && archive->folder[n - 1] == '/';) {
        archive->folder[--n] = '\0';
    }
    mine = &archive->options;
    *mine = *options;
    mine->folder = archive->folder;
    mine->n_bytes = mine->n_bytes != 0 ? mine->n_bytes : DEFAULT_BYTES;
    mine->tick_ms = mine->tick_ms != 0 ? mine->tick_ms : DEFAULT_TICK_MS;
    mine->retry_ms = mine->retry_ms != 0 ? mine->retry_ms : DEFAULT_RETRY_MS;
    if (!vxd_clock_init_condition(&archive->wake)) {
        free(archive);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the archive");
    }
    (void)pthread_mutex_init(&archive->lock, NULL);
    if (pthread_create(&archive->thread, NULL, run, archive) != 0) {
        (void)pthread_cond_destroy(&archive->wake);
        (void)pthread_mutex_destroy(&archive->lock);
        free(archive);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no thread for the archive");
    }
    *out = archive;
    return VXD_OK;
}

void vxd_archive_stop(struct vxd_archive *take_archive)
{
    if (take_archive == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&take_archive->lock);
    take_archive->is_stopping = true;
    (void)pthread_cond_signal(&take_archive->wake);
    (void)pthread_mutex_unlock(&take_archive->lock);
    (void)pthread_join(take_archive->thread, NULL);
    (void)pthread_cond_destroy(&take_archive->wake);
    (void)pthread_mutex_destroy(&take_archive->lock);
    free(take_archive);
}

void vxd_archive_get_stats(struct vxd_archive *archive, struct vxd_archive_stats *out)
{
    struct vxd_spool spool;

    vxd_journal_get_spool(archive->journal, &spool);
    (void)pthread_mutex_lock(&archive->lock);
    *out = archive->stats;
    (void)pthread_mutex_unlock(&archive->lock);
    out->n_waiting = spool.next - spool.first;
    out->n_waiting_bytes = spool.n_bytes;
    out->n_breaks = spool.n_breaks;
}
