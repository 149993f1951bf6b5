// SPDX-License-Identifier: Apache-2.0
/* One thread reads: it copies packed records into batches of tens of kilobytes, which it puts into
 * a ring. Helpers unpack batches, into slots that were kept for them, so that order takes care of
 * itself. The caller takes what is unpacked of the first ones, and while there is not enough it
 * unpacks too. The mutex is for batches, never for a record.
 *
 * How large a record is in memory shows when it is unpacked: what packs well is many times as
 * large. So a batch is unpacked within a guess, and while that is left of MAX_BYTES. Where it
 * takes more it is held up: once it is the first, the caller unpacks of it one record at a time,
 * within all that is left, or, with nothing else to go on with, within what any record may take. *
 * Somebody may have to be told of all records before any is taken. That is done as they are read; where
 * they are more than there is room for, the others are read for that alone, and then once more. */
#include "server/durable/recovery/recovery_prefetch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/core/core.h"

enum {
    N_SLOTS = 2 * VXD_RECORDS_AT_ONCE,
    N_BATCHES = 64,
    BATCH_RECORDS = 512,
    BATCH_BYTES = 32 << 10, /* or one record */
    MAX_HELPERS = 8,
    MAX_BYTES = 64 << 20, /* of records that are packed, unpacked or taken */
    MAX_PACKED_BYTES =
        MAX_BYTES / 4,            /* of those that are packed; the first may be larger */
    ENOUGH_BYTES = MAX_BYTES / 2, /* to be taken, while as much again is unpacked */
    GROWTH = 16                   /* that is guessed: bytes of a packed one */
};

enum state {
    WAITING,   /* to be unpacked */
    IN_WORK,   /* of one thread, whose it is without the mutex */
    UNPACKED,  /* wholly, */
    HELD_UP,   /* or up to one that does not fit, */
    GONE_WRONG /* or up to one that is damaged */
};

struct batch {
    enum state state;
    enum vxd_status status; /* of the last one that was tried */
    struct vxd_err err;
    uint8_t *packed;
    size_t capacity;
    size_t n_packed_bytes;
    size_t first;  /* its slot, */
    size_t n;      /* how many follow from there, */
    size_t n_done; /* and are unpacked */
};

struct slot {
    const uint8_t *packed;
    size_t n_bytes;
    uint32_t rules_version;
    struct vxd_record_decoded record;
};

struct ahead {
    struct vxd_journal *journal;
    uint32_t family;
    uint64_t first;
    size_t most; /* that are taken at once */
    enum vxd_status (*foresee)(void *user, const struct vxd_journal_record *record,
                               struct vxd_err *err);
    void *user; /* its */
    /* The thread's that reads. */
    struct batch open; /* is filled */
    bool is_paused; /* there is no room for the next one, and others are to be foreseen */
    pthread_t helpers[MAX_HELPERS];
    int n_helpers;
    int max_helpers; /* -1 = not asked yet */
    /* The caller's. */
    struct vxd_record_decoded taken[VXD_RECORDS_AT_ONCE];
    /* The mutex guards the rest, but for slots of batches that are filled or in work. */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* for the thread that reads, and the caller */
    pthread_cond_t work;    /* for helpers */
    struct slot slots[N_SLOTS];
    size_t next_slot; /* numbers of slots are modulo N_SLOTS */
    size_t n_slots;   /* of batches in the ring */
    struct batch batches[N_BATCHES];
    size_t begin;
    size_t n;
    size_t n_waiting; /* batches */
    size_t n_idle;    /* helpers */
    size_t n_bytes;   /* that count for MAX_BYTES */
    size_t n_packed_bytes;
    bool is_foreseeing; /* nothing is taken yet */
    bool has_ended;     /* no more come, for this reason: */
    enum vxd_status status;
    struct vxd_err err;
    bool is_stopped; /* no more are wanted */
};

static struct batch *batch_at(struct ahead *ahead, size_t i)
{
    return &ahead->batches[(ahead->begin + i) % N_BATCHES];
}

/* Unpacking ---------------------------------------------------------------------------------- */

static size_t guess_bytes(const struct batch *batch)
{
    return GROWTH * batch->n_packed_bytes + batch->n * sizeof(struct vxd_svdag_op);
}

/* With the mutex held: the first that waits, if what it may take is left. */
static struct batch *find_work(struct ahead *ahead)
{
    for (size_t i = 0; ahead->n_waiting > 0 && i < ahead->n; i++) {
        struct batch *batch = batch_at(ahead, i);

        if (batch->state == WAITING) {
            return ahead->n_bytes + guess_bytes(batch) <= MAX_BYTES ? batch : NULL;
        }
    }
    return NULL;
}

/* Up to n_most records within n_room of memory; what they take. */
static size_t unpack_records(struct ahead *ahead, struct batch *batch, size_t n_most,
                             size_t n_room)
{
    size_t n_bytes = 0;

    batch->status = VXD_OK;
    for (size_t i = 0; i < n_most && batch->n_done < batch->n; i++) {
        struct slot *slot = &ahead->slots[(batch->first + batch->n_done) % N_SLOTS];

        batch->status =
            n_bytes < n_room
                ? vxd_record_decode(slot->packed, slot->n_bytes, slot->rules_version,
                                    n_room - n_bytes, &slot->record, &batch->err)
                : VXD_RESOURCE_EXHAUSTED;
        if (batch->status != VXD_OK) {
            break;
        }
        n_bytes += slot->record.n_bytes;
        batch->n_done++;
    }
    return n_bytes;
}

/* With the mutex held, but for the work itself. */
static void unpack(struct ahead *ahead, struct batch *batch, size_t n_most, size_t n_room)
{
    bool is_limited = n_room < VXD_RECORD_MAX_BYTES;
    size_t n_bytes;

    ahead->n_waiting -= batch->state == WAITING;
    ahead->n_bytes += n_room;
    batch->state = IN_WORK;
    (void)pthread_mutex_unlock(&ahead->mutex);
    n_bytes = unpack_records(ahead, batch, n_most, n_room);
    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->n_bytes = ahead->n_bytes - n_room + n_bytes;
    if (batch->n_done == batch->n) {
        batch->state = UNPACKED;
        free(batch->packed);
        batch->packed = NULL;
        ahead->n_bytes -= batch->capacity;
        ahead->n_packed_bytes -= batch->capacity;
    } else if (batch->status == VXD_OK) {
        batch->state = WAITING;
        ahead->n_waiting++;
    } else {
        batch->state =
            batch->status == VXD_RESOURCE_EXHAUSTED && is_limited ? HELD_UP : GONE_WRONG;
    }
    (void)pthread_cond_broadcast(&ahead->changed);
    if (ahead->n_waiting > 0) {
        (void)pthread_cond_broadcast(&ahead->work);
    }
}

static void *help(void *argument)
{
    struct ahead *ahead = argument;

    (void)pthread_mutex_lock(&ahead->mutex);
    while (!ahead->is_stopped) {
        struct batch *batch = find_work(ahead);

        if (batch != NULL) {
            unpack(ahead, batch, SIZE_MAX, guess_bytes(batch));
        } else {
            ahead->n_idle++;
            (void)pthread_cond_wait(&ahead->work, &ahead->mutex);
            ahead->n_idle--;
        }
    }
    (void)pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

/* Reading ------------------------------------------------------------------------------------ */

/* One more, beside the threads that read and take; none is no harm. */
static void start_helper(struct ahead *ahead)
{
    if (ahead->max_helpers < 0) {
        int n = vxd_machine_cpus() - 1;

        ahead->max_helpers = n < MAX_HELPERS ? n : MAX_HELPERS;
    }
    if (ahead->n_helpers < ahead->max_helpers &&
        pthread_create(&ahead->helpers[ahead->n_helpers], NULL, help, ahead) == 0) {
        ahead->n_helpers++;
    }
}

/* Puts the open one into the ring, where there is room for it. */
static void close_batch(struct ahead *ahead)
{
    bool is_behind;

    if (ahead->open.n == 0) {
        return;
    }
    (void)pthread_mutex_lock(&ahead->mutex);
    *batch_at(ahead, ahead->n++) = ahead->open;
    ahead->next_slot += ahead->open.n;
    ahead->n_slots += ahead->open.n;
    ahead->n_waiting++;
    is_behind = ahead->n_waiting > 1 && ahead->n_idle == 0;
    (void)pthread_cond_broadcast(&ahead->changed);
    (void)pthread_cond_signal(&ahead->work);
    (void)pthread_mutex_unlock(&ahead->mutex);
    ahead->open = (struct batch){0};
    if (is_behind) {
        start_helper(ahead);
    }
}

static bool has_room(const struct ahead *ahead, size_t n_bytes)
{
    return ahead->n < N_BATCHES && ahead->n_slots + BATCH_RECORDS <= N_SLOTS &&
           (ahead->n_packed_bytes == 0 ||
            ahead->n_packed_bytes + n_bytes <= MAX_PACKED_BYTES);
}

/* Waits until there is room for a batch that is full, but while records are foreseen: then it has
 * failed, and *is_paused. */
static enum vxd_status open_batch(struct ahead *ahead, size_t n_bytes,
                                  struct vxd_err *err)
{
    struct batch *open = &ahead->open;
    bool has_failed;

    open->capacity = n_bytes > BATCH_BYTES ? n_bytes : BATCH_BYTES;
    (void)pthread_mutex_lock(&ahead->mutex);
    while (!ahead->is_stopped && !ahead->is_foreseeing &&
           !has_room(ahead, open->capacity)) {
        (void)pthread_cond_wait(&ahead->changed, &ahead->mutex);
    }
    ahead->is_paused = ahead->is_foreseeing && !has_room(ahead, open->capacity);
    has_failed = ahead->is_stopped || ahead->is_paused;
    if (!has_failed) {
        ahead->n_packed_bytes += open->capacity;
        ahead->n_bytes += open->capacity;
        open->first = ahead->next_slot;
    }
    (void)pthread_mutex_unlock(&ahead->mutex);
    if (has_failed) {
        return vxd_fail(err, VXD_ABORTED, NULL, "no more are wanted");
    }
    open->packed = malloc(open->capacity);
    return open->packed != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for records");
}

static enum vxd_status put(void *user, const struct vxd_journal_record *bytes,
                           struct vxd_err *err)
{
    struct ahead *ahead = user;
    struct batch *open = &ahead->open;
    struct slot *slot;
    enum vxd_status status = VXD_OK;

    if (open->packed == NULL || open->n == BATCH_RECORDS ||
        bytes->n_bytes > open->capacity - open->n_packed_bytes) {
        close_batch(ahead);
        VXD_TRY(open_batch(ahead, bytes->n_bytes, err));
    }
    if (ahead->is_foreseeing) {
        VXD_TRY(ahead->foresee(ahead->user, bytes, err));
    }
    slot = &ahead->slots[(open->first + open->n++) % N_SLOTS];
    slot->packed = open->packed + open->n_packed_bytes;
    slot->n_bytes = bytes->n_bytes;
    slot->rules_version = bytes->rules_version;
    if (bytes->n_bytes > 0) {
        memcpy(open->packed + open->n_packed_bytes, bytes->bytes, bytes->n_bytes);
    }
    open->n_packed_bytes += bytes->n_bytes;
out:
    return status;
}

static enum vxd_status foresee_alone(void *user, const struct vxd_journal_record *bytes,
                                     struct vxd_err *err)
{
    const struct ahead *ahead = user;

    return ahead->foresee(ahead->user, bytes, err);
}

/* From now on records are taken. */
static void end_foreseeing(struct ahead *ahead)
{
    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->is_foreseeing = false;
    (void)pthread_cond_broadcast(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->mutex);
}

static enum vxd_status read_all(struct ahead *ahead, struct vxd_err *err)
{
    struct vxd_err damage; /* is found again */
    uint64_t next;
    enum vxd_status status =
        vxd_journal_read_records(ahead->journal, ahead->family, ahead->first,
                                 VXD_JOURNAL_MAX_SEQUENCE, put, ahead, &next, err);

    if (!ahead->is_paused) {
        return status;
    }
    (void)vxd_journal_read_records(ahead->journal, ahead->family, next,
                                   VXD_JOURNAL_MAX_SEQUENCE, foresee_alone, ahead, NULL,
                                   &damage);
    end_foreseeing(ahead);
    return vxd_journal_read_records(ahead->journal, ahead->family, next,
                                    VXD_JOURNAL_MAX_SEQUENCE, put, ahead, NULL, err);
}

static void *read_ahead(void *argument)
{
    struct ahead *ahead = argument;
    struct vxd_err err = {0};
    enum vxd_status status = read_all(ahead, &err);

    close_batch(ahead);
    free(ahead->open.packed);
    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->is_foreseeing = false;
    ahead->has_ended = true;
    ahead->status = status;
    ahead->err = err;
    (void)pthread_cond_broadcast(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

/* Taking ------------------------------------------------------------------------------------- */

/* With the mutex held: those that are unpacked before any that is not, behind the n that were
 * taken. What they take is added to *n_bytes; how many are taken then. */
static size_t take_unpacked(struct ahead *ahead, size_t n, size_t *n_bytes)
{
    while (ahead->n > 0 && batch_at(ahead, 0)->state != IN_WORK) {
        struct batch *batch = batch_at(ahead, 0);

        for (; batch->n_done > 0 && n < ahead->most; n++) {
            ahead->taken[n] = ahead->slots[batch->first++ % N_SLOTS].record;
            *n_bytes += ahead->taken[n].n_bytes;
            batch->n--;
            batch->n_done--;
            ahead->n_slots--;
        }
        if (batch->n > 0) {
            break;
        }
        ahead->begin = (ahead->begin + 1) % N_BATCHES;
        ahead->n--;
    }
    (void)pthread_cond_broadcast(&ahead->changed);
    return n;
}

/* With the mutex held: unpacks one record of the first batch, which is held up or has not the room
 * that it may take. False where there is not enough left either. */
static bool unpack_one(struct ahead *ahead, bool is_alone)
{
    struct batch *batch = batch_at(ahead, 0);
    size_t n_left = ahead->n_bytes < MAX_BYTES ? MAX_BYTES - ahead->n_bytes : 0;

    unpack(ahead, batch, 1, is_alone ? VXD_RECORD_MAX_BYTES : n_left);
    return batch->state != HELD_UP;
}

/* With the mutex held: unpacks until all are foreseen. */
static void wait_for_all(struct ahead *ahead)
{
    while (ahead->is_foreseeing) {
        struct batch *work = find_work(ahead);

        if (work != NULL) {
            unpack(ahead, work, SIZE_MAX, guess_bytes(work));
        } else {
            (void)pthread_cond_wait(&ahead->changed, &ahead->mutex);
        }
    }
}

/* The next ones, how many; 0 at the end. */
static size_t take(struct ahead *ahead)
{
    size_t n_bytes = 0;
    size_t n = 0;
    bool may_go_on = true;

    (void)pthread_mutex_lock(&ahead->mutex);
    wait_for_all(ahead);
    while (may_go_on) {
        struct batch *work = find_work(ahead);
        enum state state;

        n = take_unpacked(ahead, n, &n_bytes);
        state = ahead->n > 0 ? batch_at(ahead, 0)->state : UNPACKED;
        if (n == ahead->most || n_bytes >= ENOUGH_BYTES || state == GONE_WRONG ||
            (ahead->n == 0 && ahead->has_ended)) {
            may_go_on = false;
        } else if (state == HELD_UP || (state == WAITING && work == NULL)) {
            may_go_on = unpack_one(ahead, n == 0);
        } else if (work != NULL) {
            unpack(ahead, work, SIZE_MAX, guess_bytes(work));
        } else {
            (void)pthread_cond_wait(&ahead->changed, &ahead->mutex);
        }
    }
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
    (void)pthread_cond_broadcast(&ahead->work);
    (void)pthread_mutex_unlock(&ahead->mutex);
}

/* Beginning and end -------------------------------------------------------------------------- */

static void destroy(struct ahead *ahead)
{
    (void)pthread_cond_destroy(&ahead->work);
    (void)pthread_cond_destroy(&ahead->changed);
    (void)pthread_mutex_destroy(&ahead->mutex);
    free(ahead);
}

/* NULL where there is no memory or no thread to be had. */
/* Of one whose first members are set. False: nothing is begun. */
static bool begin(struct ahead *ahead, pthread_t *thread)
{
    ahead->is_foreseeing = ahead->foresee != NULL;
    ahead->max_helpers = -1;
    (void)pthread_mutex_init(&ahead->mutex, NULL);
    (void)pthread_cond_init(&ahead->changed, NULL);
    (void)pthread_cond_init(&ahead->work, NULL);
    return pthread_create(thread, NULL, read_ahead, ahead) == 0;
}

static void stop(struct ahead *ahead, pthread_t thread)
{
    (void)pthread_mutex_lock(&ahead->mutex);
    ahead->is_stopped = true;
    (void)pthread_cond_broadcast(&ahead->changed);
    (void)pthread_cond_broadcast(&ahead->work);
    (void)pthread_mutex_unlock(&ahead->mutex);
    (void)pthread_join(thread, NULL);
    for (int i = 0; i < ahead->n_helpers; i++) {
        (void)pthread_join(ahead->helpers[i], NULL);
    }
}

/* With no thread any more: why there are no more than were taken. */
static enum vxd_status end(struct ahead *ahead, struct vxd_err *err)
{
    const struct batch *first = batch_at(ahead, 0);
    bool is_damaged = ahead->n > 0 && first->state == GONE_WRONG;
    enum vxd_status status = is_damaged ? first->status : ahead->status;

    if (status != VXD_OK) {
        *err = is_damaged ? first->err : ahead->err;
    }
    for (size_t i = 0; i < ahead->n; i++) {
        struct batch *batch = batch_at(ahead, i);

        for (size_t k = 0; k < batch->n_done; k++) {
            vxd_record_decoded_free(&ahead->slots[(batch->first + k) % N_SLOTS].record);
        }
        free(batch->packed);
    }
    destroy(ahead);
    return status;
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

/* All of it on this thread. */
static enum vxd_status read_direct(
    struct vxd_journal *journal, uint32_t family, uint64_t first,
    enum vxd_status (*foresee)(void *user, const struct vxd_journal_record *record,
                               struct vxd_err *err),
    struct direct *direct, uint64_t *next, struct vxd_err *err)
{
    struct vxd_err damage; /* is found again */

    if (foresee != NULL) {
        (void)vxd_journal_read_records(journal, family, first, VXD_JOURNAL_MAX_SEQUENCE,
                                       foresee, direct->user, NULL, &damage);
    }
    return vxd_journal_read_records(journal, family, first, VXD_JOURNAL_MAX_SEQUENCE,
                                    pass_on, direct, next, err);
}

enum vxd_status vxd_read_records_ahead(
    struct vxd_journal *journal, uint32_t family, uint64_t first, size_t most,
    enum vxd_status (*foresee)(void *user, const struct vxd_journal_record *record,
                               struct vxd_err *err),
    enum vxd_status (*each)(void *user, uint64_t sequence,
                            const struct vxd_record_decoded *records, size_t n,
                            size_t *n_taken, struct vxd_err *err),
    void *user, uint64_t *next, struct vxd_err *err)
{
    struct ahead *ahead = calloc(1, sizeof *ahead);
    struct direct direct = {each, user};
    struct vxd_err reason = {0};
    enum vxd_status status = VXD_OK;
    enum vxd_status end_status;
    pthread_t thread;
    size_t n;

    *next = first;
    if (ahead != NULL) {
        ahead->journal = journal;
        ahead->family = family;
        ahead->first = first;
        ahead->most = most;
        ahead->foresee = foresee;
        ahead->user = user;
    }
    if (ahead == NULL || !begin(ahead, &thread)) {
        free(ahead);
        return read_direct(journal, family, first, foresee, &direct, next, err);
    }
    while (status == VXD_OK && (n = take(ahead)) > 0) {
        size_t n_taken = 0;

        status = each(user, *next, ahead->taken, n, &n_taken, err);
        let_go(ahead, n);
        *next += n_taken;
    }
    stop(ahead, thread);
    end_status = end(ahead, &reason);
    if (status == VXD_OK && end_status != VXD_OK) {
        status = end_status;
        *err = reason;
    }
    return status;
}
