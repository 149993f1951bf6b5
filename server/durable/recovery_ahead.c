// SPDX-License-Identifier: Apache-2.0
#include "server/durable/recovery_ahead.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    N_SLOTS = 2 * VXD_RECORDS_AT_ONCE,
    /* Of records that wait or are taken, as they are in memory: what packs well is many times as
     * large. The first may be larger, as one alone may. */
    MAX_BYTES = 64 << 20,
    ENOUGH_BYTES = MAX_BYTES / 2 /* to be taken, while as much again is read */
};

struct ahead {
    struct vxd_journal *journal;
    uint32_t family;
    uint64_t first;
    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t changed;
    struct vxd_record_decoded slots[N_SLOTS];             /* a ring */
    struct vxd_record_decoded taken[VXD_RECORDS_AT_ONCE]; /* from it, without the mutex */
    size_t begin;
    size_t n;
    size_t n_bytes; /* of those in it, and of those that were taken and are not over */
    bool is_full;   /* the next one waits for room */
    bool has_ended; /* no more come, for this reason: */
    enum vxd_status status;
    struct vxd_err err;
    bool is_stopped; /* no more are wanted */
};

/* With the mutex held: waits until there is room for n_bytes. */
static bool wait_for_room(struct ahead *ahead, size_t n_bytes)
{
    while (!ahead->is_stopped &&
           (ahead->n == N_SLOTS ||
            (ahead->n_bytes > 0 && ahead->n_bytes + n_bytes > MAX_BYTES))) {
        ahead->is_full = true;
        (void)pthread_cond_broadcast(&ahead->changed);
        (void)pthread_cond_wait(&ahead->changed, &ahead->mutex);
    }
    ahead->is_full = false;
    return !ahead->is_stopped;
}

/* With the mutex held: no more are to be waited for before some are taken. */
static bool is_enough(const struct ahead *ahead)
{
    return ahead->n >= VXD_RECORDS_AT_ONCE || ahead->n_bytes >= ENOUGH_BYTES ||
           (ahead->is_full && ahead->n > 0) || ahead->has_ended;
}

/* On the thread that reads. */
static enum vxd_status put(void *user, const struct vxd_journal_record *bytes,
                           struct vxd_err *err)
{
    struct ahead *ahead = user;
    struct vxd_record_decoded decoded;
    enum vxd_status status = vxd_record_decode(bytes->bytes, bytes->n_bytes,
                                               bytes->rules_version, 0, &decoded, err);

    if (status != VXD_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&ahead->mutex);
    if (wait_for_room(ahead, decoded.n_bytes)) {
        ahead->slots[(ahead->begin + ahead->n++) % N_SLOTS] = decoded;
        ahead->n_bytes += decoded.n_bytes;
        if (is_enough(ahead)) {
            (void)pthread_cond_broadcast(&ahead->changed);
        }
    } else {
        vxd_record_decoded_free(&decoded);
        status = vxd_fail(err, VXD_ABORTED, NULL, "no more are wanted");
    }
    (void)pthread_mutex_unlock(&ahead->mutex);
    return status;
}

static void *read_ahead(void *argument)
{
    struct ahead *ahead = argument;
    struct vxd_err err = {0};
    enum vxd_status status =
        vxd_journal_read_records(ahead->journal, ahead->family, ahead->first,
                                 VXD_JOURNAL_MAX_SEQUENCE, put, ahead, NULL, &err);

    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->has_ended = true;
    ahead->status = status;
    ahead->err = err;
    (void)pthread_cond_broadcast(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

/* The next ones, how many; 0 at the end. */
static size_t take(struct ahead *ahead)
{
    size_t n = 0;

    (void)pthread_mutex_lock(&ahead->mutex);
    while (!is_enough(ahead)) {
        (void)pthread_cond_wait(&ahead->changed, &ahead->mutex);
    }
    for (; n < VXD_RECORDS_AT_ONCE && ahead->n > 0; n++) {
        ahead->taken[n] = ahead->slots[ahead->begin];
        ahead->begin = (ahead->begin + 1) % N_SLOTS;
        ahead->n--;
    }
    (void)pthread_cond_broadcast(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->mutex);
    return n;
}

/* They are over: others have their room. */
static void let_go(struct ahead *ahead, size_t n)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < n; i++) {
        n_bytes += ahead->taken[i].n_bytes;
        vxd_record_decoded_free(&ahead->taken[i]);
    }
    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->n_bytes -= n_bytes;
    (void)pthread_cond_broadcast(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->mutex);
}

static void stop(struct ahead *ahead)
{
    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->is_stopped = true;
    (void)pthread_cond_broadcast(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->mutex);
}

static void begin(struct ahead *ahead, struct vxd_journal *journal, uint32_t family,
                  uint64_t first)
{
    ahead->journal = journal;
    ahead->family = family;
    ahead->first = first;
    (void)pthread_mutex_init(&ahead->mutex, NULL);
    (void)pthread_cond_init(&ahead->changed, NULL);
}

/* No thread reads any more. NULL is fine. */
static void end(struct ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    for (; ahead->n > 0; ahead->n--) {
        vxd_record_decoded_free(&ahead->slots[ahead->begin]);
        ahead->begin = (ahead->begin + 1) % N_SLOTS;
    }
    (void)pthread_cond_destroy(&ahead->changed);
    (void)pthread_mutex_destroy(&ahead->mutex);
    free(ahead);
}

/* Without a thread. */
struct direct {
    enum vxd_status (*each)(void *user, uint64_t sequence,
                            const struct vxd_record_decoded *records, size_t n,
                            size_t *n_taken, struct vxd_err *err);
    void *user;
};

static enum vxd_status pass_on(void *user, const struct vxd_journal_record *bytes,
                               struct vxd_err *err)
{
    const struct direct *direct = user;
    struct vxd_record_decoded decoded = {0};
    size_t n_taken;
    enum vxd_status status;

    VXD_TRY(vxd_record_decode(bytes->bytes, bytes->n_bytes, bytes->rules_version, 0,
                              &decoded, err));
    status = direct->each(direct->user, bytes->sequence, &decoded, 1, &n_taken, err);
out:
    vxd_record_decoded_free(&decoded);
    return status;
}

enum vxd_status vxd_read_records_ahead(
    struct vxd_journal *journal, uint32_t family, uint64_t first,
    enum vxd_status (*each)(void *user, uint64_t sequence,
                            const struct vxd_record_decoded *records, size_t n,
                            size_t *n_taken, struct vxd_err *err),
    void *user, uint64_t *next, struct vxd_err *err)
{
    struct ahead *ahead = calloc(1, sizeof *ahead);
    struct direct direct = {each, user};
    enum vxd_status status = VXD_OK;
    pthread_t thread;
    size_t n;

    *next = first;
    if (ahead != NULL) {
        begin(ahead, journal, family, first);
    }
    if (ahead == NULL || pthread_create(&thread, NULL, read_ahead, ahead) != 0) {
        end(ahead);
        return vxd_journal_read_records(journal, family, first, VXD_JOURNAL_MAX_SEQUENCE,
                                        pass_on, &direct, next, err);
    }
    while (status == VXD_OK && (n = take(ahead)) > 0) {
        size_t n_taken = 0;

        status = each(user, *next, ahead->taken, n, &n_taken, err);
        let_go(ahead, n);
        *next += n_taken;
    }
    stop(ahead);
    (void)pthread_join(thread, NULL);
    if (status == VXD_OK && ahead->status != VXD_OK) {
        status = ahead->status;
        *err = ahead->err;
    }
    end(ahead);
    return status;
}
