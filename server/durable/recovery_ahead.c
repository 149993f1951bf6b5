// SPDX-License-Identifier: Apache-2.0
#include "server/durable/recovery_ahead.h"

#include <pthread.h>

enum {
    N_SLOTS = 16,
    /* Of records that wait, as they are in memory: what packs well is many times as large. The
     * first may be larger, as one alone may. */
    MAX_BYTES = 64 << 20
};

struct slot {
    uint64_t sequence;
    size_t n_bytes;
    struct vxd_record_decoded decoded;
};

struct ahead {
    struct vxd_journal *journal;
    uint32_t family;
    uint64_t first;
    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t changed;
    struct slot slots[N_SLOTS]; /* a ring */
    size_t begin;
    size_t n;
    size_t n_bytes;
    bool has_ended; /* no more come, for this reason: */
    enum vxd_status status;
    struct vxd_err err;
    bool is_stopped; /* no more are wanted */
};

/* With the mutex held: waits until there is room for n_bytes. */
static bool wait_for_room(struct ahead *ahead, size_t n_bytes)
{
    while (!ahead->is_stopped && ahead->n > 0 &&
           (ahead->n == N_SLOTS || ahead->n_bytes + n_bytes > MAX_BYTES)) {
        (void)pthread_cond_wait(&ahead->changed, &ahead->mutex);
    }
    return !ahead->is_stopped;
}

/* On the thread that reads. */
static enum vxd_status put(void *user, const struct vxd_journal_record *bytes,
                           struct vxd_err *err)
{
    struct ahead *ahead = user;
    struct slot slot = {.sequence = bytes->sequence};
    enum vxd_status status = vxd_record_decode(
        bytes->bytes, bytes->n_bytes, bytes->rules_version, 0, &slot.decoded, err);

    if (status != VXD_OK) {
        vxd_record_decoded_free(&slot.decoded);
        return status;
    }
    slot.n_bytes = slot.decoded.n_bytes;
    (void)pthread_mutex_lock(&ahead->mutex);
    if (wait_for_room(ahead, slot.n_bytes)) {
        ahead->slots[(ahead->begin + ahead->n++) % N_SLOTS] = slot;
        ahead->n_bytes += slot.n_bytes;
        (void)pthread_cond_broadcast(&ahead->changed);
    } else {
        vxd_record_decoded_free(&slot.decoded);
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

/* The next one; false at the end. */
static bool take(struct ahead *ahead, struct slot *out)
{
    bool is_there;

    (void)pthread_mutex_lock(&ahead->mutex);
    while (ahead->n == 0 && !ahead->has_ended) {
        (void)pthread_cond_wait(&ahead->changed, &ahead->mutex);
    }
    is_there = ahead->n > 0;
    if (is_there) {
        *out = ahead->slots[ahead->begin];
        ahead->begin = (ahead->begin + 1) % N_SLOTS;
        ahead->n--;
        ahead->n_bytes -= out->n_bytes;
        (void)pthread_cond_broadcast(&ahead->changed);
    }
    (void)pthread_mutex_unlock(&ahead->mutex);
    return is_there;
}

static void stop(struct ahead *ahead)
{
    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->is_stopped = true;
    (void)pthread_cond_broadcast(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->mutex);
}

/* Without a thread. */
struct direct {
    enum vxd_status (*each)(void *user, uint64_t sequence,
                            const struct vxd_record *record, struct vxd_err *err);
    void *user;
};

static enum vxd_status pass_on(void *user, const struct vxd_journal_record *bytes,
                               struct vxd_err *err)
{
    const struct direct *direct = user;
    struct vxd_record_decoded decoded = {0};
    enum vxd_status status;

    VXD_TRY(vxd_record_decode(bytes->bytes, bytes->n_bytes, bytes->rules_version, 0,
                              &decoded, err));
    status = direct->each(direct->user, bytes->sequence, &decoded.record, err);
out:
    vxd_record_decoded_free(&decoded);
    return status;
}

enum vxd_status vxd_read_records_ahead(
    struct vxd_journal *journal, uint32_t family, uint64_t first,
    enum vxd_status (*each)(void *user, uint64_t sequence,
                            const struct vxd_record *record, struct vxd_err *err),
    void *user, uint64_t *next, struct vxd_err *err)
{
    struct ahead ahead = {.journal = journal,
                          .family = family,
                          .first = first,
                          .mutex = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
    struct direct direct = {each, user};
    enum vxd_status status = VXD_OK;
    struct slot slot;
    pthread_t thread;

    *next = first;
    if (pthread_create(&thread, NULL, read_ahead, &ahead) != 0) {
        return vxd_journal_read_records(journal, family, first, VXD_JOURNAL_MAX_SEQUENCE,
                                        pass_on, &direct, next, err);
    }
    while (status == VXD_OK && take(&ahead, &slot)) {
        status = each(user, slot.sequence, &slot.decoded.record, err);
        vxd_record_decoded_free(&slot.decoded);
        *next += status == VXD_OK ? 1 : 0;
    }
    stop(&ahead);
    (void)pthread_join(thread, NULL);
    for (; ahead.n > 0; ahead.n--) {
        vxd_record_decoded_free(&ahead.slots[ahead.begin].decoded);
        ahead.begin = (ahead.begin + 1) % N_SLOTS;
    }
    if (status == VXD_OK && ahead.status != VXD_OK) {
        status = ahead.status;
        *err = ahead.err;
    }
    (void)pthread_cond_destroy(&ahead.changed);
    (void)pthread_mutex_destroy(&ahead.mutex);
    return status;
}
