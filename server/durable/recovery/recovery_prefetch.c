// SPDX-License-Identifier: Apache-2.0
/* One thread reads: it copies packed records into batches of tens of kilobytes and puts these into
 * a ring. Helpers unpack batches into slots that were reserved for them, which keeps the order.
 * The caller takes the unpacked records of the first batches, and unpacks too while there are not
 * enough. The mutex is taken for a batch, never for a record.
 *
 * The size of a record in memory is known only when it is unpacked; one that packs well is many
 * times as large. So a batch gets a budget that is a guess, and waits until that much is left of
 * MAX_BYTES. A batch that needs more is marked TOO_LARGE. Once it is the first, the caller unpacks
 * it one record at a time, within all that is left, or, with nothing else to apply, within what any
 * record may take.
 *
 * `foresee` needs all records before any is applied. It gets them as they are read; where they are
 * more than the ring holds, the others are read for it alone, and then once more. */
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
        MAX_BYTES / 4,             /* of those that are packed; the first may be larger */
    BYTES_AT_ONCE = MAX_BYTES / 2, /* to be taken, while as much again is unpacked */
    GROWTH = 16                    /* that is guessed: bytes of a packed one */
};

enum state {
    WAITING,        /* to be unpacked */
    BEING_UNPACKED, /* of one thread, whose it is without the mutex */
    UNPACKED,       /* wholly, */
    TOO_LARGE,      /* or up to one that does not fit, */
    DAMAGED         /* or up to one that is damaged */
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

struct prefetch {
    struct vxd_journal *journal;
    uint32_t family;
    uint64_t first;
    size_t most; /* that are taken at once */
    enum vxd_status (*foresee)(void *user, const struct vxd_journal_record *record,
                               struct vxd_err *err);
    void *user; /* its */
    /* The thread's that reads. */
    struct batch open; /* is filled */
    bool is_paused;    /* the ring is full while records are still to be foreseen */
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

static struct batch *batch_at(struct prefetch *prefetch, size_t i)
{
    return &prefetch->batches[(prefetch->begin + i) % N_BATCHES];
}

/* Unpacking ---------------------------------------------------------------------------------- */

static size_t guess_bytes(const struct batch *batch)
{
    return GROWTH * batch->n_packed_bytes + batch->n * sizeof(struct vxd_svdag_op);
}

/* With the mutex held: the first that waits, if what it may take is left. */
static struct batch *find_work(struct prefetch *prefetch)
{
    for (size_t i = 0; prefetch->n_waiting > 0 && i < prefetch->n; i++) {
        struct batch *batch = batch_at(prefetch, i);

        if (batch->state == WAITING) {
            return prefetch->n_bytes + guess_bytes(batch) <= MAX_BYTES ? batch : NULL;
        }
    }
    return NULL;
}

/* Up to n_most records within n_budget of memory; what they take. */
static size_t unpack_records(struct prefetch *prefetch, struct batch *batch,
                             size_t n_most, size_t n_budget)
{
    size_t n_bytes = 0;

    batch->status = VXD_OK;
    for (size_t i = 0; i < n_most && batch->n_done < batch->n; i++) {
        struct slot *slot = &prefetch->slots[(batch->first + batch->n_done) % N_SLOTS];

        batch->status =
            n_bytes < n_budget
                ? vxd_record_decode(slot->packed, slot->n_bytes, slot->rules_version,
                                    n_budget - n_bytes, &slot->record, &batch->err)
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
static void unpack(struct prefetch *prefetch, struct batch *batch, size_t n_most,
                   size_t n_budget)
{
    bool is_limited = n_budget < VXD_RECORD_MAX_BYTES;
    size_t n_bytes;

    prefetch->n_waiting -= batch->state == WAITING;
    prefetch->n_bytes += n_budget;
    batch->state = BEING_UNPACKED;
    (void)pthread_mutex_unlock(&prefetch->mutex);
    n_bytes = unpack_records(prefetch, batch, n_most, n_budget);
    (void)pthread_mutex_lock(&prefetch->mutex);
    prefetch->n_bytes = prefetch->n_bytes - n_budget + n_bytes;
    if (batch->n_done == batch->n) {
        batch->state = UNPACKED;
        free(batch->packed);
        batch->packed = NULL;
        prefetch->n_bytes -= batch->capacity;
        prefetch->n_packed_bytes -= batch->capacity;
    } else if (batch->status == VXD_OK) {
        batch->state = WAITING;
        prefetch->n_waiting++;
    } else {
        batch->state =
            batch->status == VXD_RESOURCE_EXHAUSTED && is_limited ? TOO_LARGE : DAMAGED;
    }
    (void)pthread_cond_broadcast(&prefetch->changed);
    if (prefetch->n_waiting > 0) {
        (void)pthread_cond_broadcast(&prefetch->work);
    }
}

static void *help(void *argument)
{
    struct prefetch *prefetch = argument;

    (void)pthread_mutex_lock(&prefetch->mutex);
    while (!prefetch->is_stopped) {
        struct batch *batch = find_work(prefetch);

        if (batch != NULL) {
            unpack(prefetch, batch, SIZE_MAX, guess_bytes(batch));
        } else {
            prefetch->n_idle++;
            (void)pthread_cond_wait(&prefetch->work, &prefetch->mutex);
            prefetch->n_idle--;
        }
    }
    (void)pthread_mutex_unlock(&prefetch->mutex);
    return NULL;
}

/* Reading ------------------------------------------------------------------------------------ */

/* One more, beside the threads that read and take; none is no harm. */
static void start_helper(struct prefetch *prefetch)
{
    if (prefetch->max_helpers < 0) {
        int n = vxd_machine_cpus() - 1;

        prefetch->max_helpers = n < MAX_HELPERS ? n : MAX_HELPERS;
    }
    if (prefetch->n_helpers < prefetch->max_helpers &&
        pthread_create(&prefetch->helpers[prefetch->n_helpers], NULL, help, prefetch) ==
            0) {
        prefetch->n_helpers++;
    }
}

/* Puts the open batch into the ring, which has a free place. */
static void close_batch(struct prefetch *prefetch)
{
    bool is_behind;

    if (prefetch->open.n == 0) {
        return;
    }
    (void)pthread_mutex_lock(&prefetch->mutex);
    *batch_at(prefetch, prefetch->n++) = prefetch->open;
    prefetch->next_slot += prefetch->open.n;
    prefetch->n_slots += prefetch->open.n;
    prefetch->n_waiting++;
    is_behind = prefetch->n_waiting > 1 && prefetch->n_idle == 0;
    (void)pthread_cond_broadcast(&prefetch->changed);
    (void)pthread_cond_signal(&prefetch->work);
    (void)pthread_mutex_unlock(&prefetch->mutex);
    prefetch->open = (struct batch){0};
    if (is_behind) {
        start_helper(prefetch);
    }
}

static bool has_capacity(const struct prefetch *prefetch, size_t n_bytes)
{
    return prefetch->n < N_BATCHES && prefetch->n_slots + BATCH_RECORDS <= N_SLOTS &&
           (prefetch->n_packed_bytes == 0 ||
            prefetch->n_packed_bytes + n_bytes <= MAX_PACKED_BYTES);
}

/* Waits for a free place for a full batch. While records are foreseen it does not wait: it fails
 * and sets is_paused. */
static enum vxd_status open_batch(struct prefetch *prefetch, size_t n_bytes,
                                  struct vxd_err *err)
{
    struct batch *open = &prefetch->open;
    bool has_failed;

    open->capacity = n_bytes > BATCH_BYTES ? n_bytes : BATCH_BYTES;
    (void)pthread_mutex_lock(&prefetch->mutex);
    while (!prefetch->is_stopped && !prefetch->is_foreseeing &&
           !has_capacity(prefetch, open->capacity)) {
        (void)pthread_cond_wait(&prefetch->changed, &prefetch->mutex);
    }
    prefetch->is_paused =
        prefetch->is_foreseeing && !has_capacity(prefetch, open->capacity);
    has_failed = prefetch->is_stopped || prefetch->is_paused;
    if (!has_failed) {
        prefetch->n_packed_bytes += open->capacity;
        prefetch->n_bytes += open->capacity;
        open->first = prefetch->next_slot;
    }
    (void)pthread_mutex_unlock(&prefetch->mutex);
    if (has_failed) {
        return vxd_fail(err, VXD_ABORTED, NULL, "no more are wanted");
    }
    open->packed = malloc(open->capacity);
    return open->packed != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for records");
}

static enum vxd_status add_record(void *user, const struct vxd_journal_record *bytes,
                                  struct vxd_err *err)
{
    struct prefetch *prefetch = user;
    struct batch *open = &prefetch->open;
    struct slot *slot;
    enum vxd_status status = VXD_OK;

    if (open->packed == NULL || open->n == BATCH_RECORDS ||
        bytes->n_bytes > open->capacity - open->n_packed_bytes) {
        close_batch(prefetch);
        VXD_TRY(open_batch(prefetch, bytes->n_bytes, err));
    }
    if (prefetch->is_foreseeing) {
        VXD_TRY(prefetch->foresee(prefetch->user, bytes, err));
    }
    slot = &prefetch->slots[(open->first + open->n++) % N_SLOTS];
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
    const struct prefetch *prefetch = user;

    return prefetch->foresee(prefetch->user, bytes, err);
}

/* From now on records are taken. */
static void end_foreseeing(struct prefetch *prefetch)
{
    (void)pthread_mutex_lock(&prefetch->mutex);
    prefetch->is_foreseeing = false;
    (void)pthread_cond_broadcast(&prefetch->changed);
    (void)pthread_mutex_unlock(&prefetch->mutex);
}

static enum vxd_status read_all(struct prefetch *prefetch, struct vxd_err *err)
{
    struct vxd_err damage; /* is found again */
    uint64_t next;
    enum vxd_status status = vxd_journal_read_records(
        prefetch->journal, prefetch->family, prefetch->first, VXD_JOURNAL_MAX_SEQUENCE,
        add_record, prefetch, &next, err);

    if (!prefetch->is_paused) {
        return status;
    }
    (void)vxd_journal_read_records(prefetch->journal, prefetch->family, next,
                                   VXD_JOURNAL_MAX_SEQUENCE, foresee_alone, prefetch,
                                   NULL, &damage);
    end_foreseeing(prefetch);
    return vxd_journal_read_records(prefetch->journal, prefetch->family, next,
                                    VXD_JOURNAL_MAX_SEQUENCE, add_record, prefetch, NULL,
                                    err);
}

static void *read_records(void *argument)
{
    struct prefetch *prefetch = argument;
    struct vxd_err err = {0};
    enum vxd_status status = read_all(prefetch, &err);

    close_batch(prefetch);
    free(prefetch->open.packed);
    (void)pthread_mutex_lock(&prefetch->mutex);
    prefetch->is_foreseeing = false;
    prefetch->has_ended = true;
    prefetch->status = status;
    prefetch->err = err;
    (void)pthread_cond_broadcast(&prefetch->changed);
    (void)pthread_mutex_unlock(&prefetch->mutex);
    return NULL;
}

/* Taking ------------------------------------------------------------------------------------- */

/* With the mutex held: those that are unpacked before any that is not, behind the n that were
 * taken. What they take is added to *n_bytes; how many are taken then. */
static size_t take_unpacked(struct prefetch *prefetch, size_t n, size_t *n_bytes)
{
    while (prefetch->n > 0 && batch_at(prefetch, 0)->state != BEING_UNPACKED) {
        struct batch *batch = batch_at(prefetch, 0);

        for (; batch->n_done > 0 && n < prefetch->most; n++) {
            prefetch->taken[n] = prefetch->slots[batch->first++ % N_SLOTS].record;
            *n_bytes += prefetch->taken[n].n_bytes;
            batch->n--;
            batch->n_done--;
            prefetch->n_slots--;
        }
        if (batch->n > 0) {
            break;
        }
        prefetch->begin = (prefetch->begin + 1) % N_BATCHES;
        prefetch->n--;
    }
    (void)pthread_cond_broadcast(&prefetch->changed);
    return n;
}

/* With the mutex held: unpacks one record of the first batch, which needs more than its budget.
 * False where not enough memory is left for one either. */
static bool unpack_one(struct prefetch *prefetch, bool is_alone)
{
    struct batch *batch = batch_at(prefetch, 0);
    size_t n_left = prefetch->n_bytes < MAX_BYTES ? MAX_BYTES - prefetch->n_bytes : 0;

    unpack(prefetch, batch, 1, is_alone ? VXD_RECORD_MAX_BYTES : n_left);
    return batch->state != TOO_LARGE;
}

/* With the mutex held: unpacks until all are foreseen. */
static void wait_for_all(struct prefetch *prefetch)
{
    while (prefetch->is_foreseeing) {
        struct batch *work = find_work(prefetch);

        if (work != NULL) {
            unpack(prefetch, work, SIZE_MAX, guess_bytes(work));
        } else {
            (void)pthread_cond_wait(&prefetch->changed, &prefetch->mutex);
        }
    }
}

/* The next ones, how many; 0 at the end. */
static size_t take(struct prefetch *prefetch)
{
    size_t n_bytes = 0;
    size_t n = 0;
    bool may_go_on = true;

    (void)pthread_mutex_lock(&prefetch->mutex);
    wait_for_all(prefetch);
    while (may_go_on) {
        struct batch *work = find_work(prefetch);
        enum state state;

        n = take_unpacked(prefetch, n, &n_bytes);
        state = prefetch->n > 0 ? batch_at(prefetch, 0)->state : UNPACKED;
        if (n == prefetch->most || n_bytes >= BYTES_AT_ONCE || state == DAMAGED ||
            (prefetch->n == 0 && prefetch->has_ended)) {
            may_go_on = false;
        } else if (state == TOO_LARGE || (state == WAITING && work == NULL)) {
            may_go_on = unpack_one(prefetch, n == 0);
        } else if (work != NULL) {
            unpack(prefetch, work, SIZE_MAX, guess_bytes(work));
        } else {
            (void)pthread_cond_wait(&prefetch->changed, &prefetch->mutex);
        }
    }
    (void)pthread_mutex_unlock(&prefetch->mutex);
    return n;
}

/* Frees records that were applied; others may use their memory. */
static void release(struct prefetch *prefetch, size_t n)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < n; i++) {
        n_bytes += prefetch->taken[i].n_bytes;
        vxd_record_decoded_free(&prefetch->taken[i]);
    }
    (void)pthread_mutex_lock(&prefetch->mutex);
    prefetch->n_bytes -= n_bytes;
    (void)pthread_cond_broadcast(&prefetch->work);
    (void)pthread_mutex_unlock(&prefetch->mutex);
}

/* Beginning and end -------------------------------------------------------------------------- */

static void destroy(struct prefetch *prefetch)
{
    (void)pthread_cond_destroy(&prefetch->work);
    (void)pthread_cond_destroy(&prefetch->changed);
    (void)pthread_mutex_destroy(&prefetch->mutex);
    free(prefetch);
}

/* Of one whose first members are set. False: nothing is begun. */
static bool begin(struct prefetch *prefetch, pthread_t *thread)
{
    prefetch->is_foreseeing = prefetch->foresee != NULL;
    prefetch->max_helpers = -1;
    (void)pthread_mutex_init(&prefetch->mutex, NULL);
    (void)pthread_cond_init(&prefetch->changed, NULL);
    (void)pthread_cond_init(&prefetch->work, NULL);
    return pthread_create(thread, NULL, read_records, prefetch) == 0;
}

static void stop(struct prefetch *prefetch, pthread_t thread)
{
    (void)pthread_mutex_lock(&prefetch->mutex);
    prefetch->is_stopped = true;
    (void)pthread_cond_broadcast(&prefetch->changed);
    (void)pthread_cond_broadcast(&prefetch->work);
    (void)pthread_mutex_unlock(&prefetch->mutex);
    (void)pthread_join(thread, NULL);
    for (int i = 0; i < prefetch->n_helpers; i++) {
        (void)pthread_join(prefetch->helpers[i], NULL);
    }
}

/* With no thread any more: why there are no more than were taken. */
static enum vxd_status end(struct prefetch *prefetch, struct vxd_err *err)
{
    const struct batch *first = batch_at(prefetch, 0);
    bool is_damaged = prefetch->n > 0 && first->state == DAMAGED;
    enum vxd_status status = is_damaged ? first->status : prefetch->status;

    if (status != VXD_OK) {
        *err = is_damaged ? first->err : prefetch->err;
    }
    for (size_t i = 0; i < prefetch->n; i++) {
        struct batch *batch = batch_at(prefetch, i);

        for (size_t k = 0; k < batch->n_done; k++) {
            vxd_record_decoded_free(
                &prefetch->slots[(batch->first + k) % N_SLOTS].record);
        }
        free(batch->packed);
    }
    destroy(prefetch);
    return status;
}

/* Without a thread. */
struct direct {
    enum vxd_status (*each)(void *user, uint64_t sequence,
                            const struct vxd_record_decoded *records, size_t n,
                            size_t *n_taken, struct vxd_err *err);
    void *user;
};

static enum vxd_status decode_one(void *user, const struct vxd_journal_record *bytes,
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
                                    decode_one, direct, next, err);
}

enum vxd_status vxd_prefetch_records(
    struct vxd_journal *journal, uint32_t family, uint64_t first, size_t most,
    enum vxd_status (*foresee)(void *user, const struct vxd_journal_record *record,
                               struct vxd_err *err),
    enum vxd_status (*each)(void *user, uint64_t sequence,
                            const struct vxd_record_decoded *records, size_t n,
                            size_t *n_taken, struct vxd_err *err),
    void *user, uint64_t *next, struct vxd_err *err)
{
    struct prefetch *prefetch = calloc(1, sizeof *prefetch);
    struct direct direct = {each, user};
    struct vxd_err reason = {0};
    enum vxd_status status = VXD_OK;
    enum vxd_status end_status;
    pthread_t thread;
    size_t n;

    *next = first;
    if (prefetch != NULL) {
        prefetch->journal = journal;
        prefetch->family = family;
        prefetch->first = first;
        prefetch->most = most;
        prefetch->foresee = foresee;
        prefetch->user = user;
    }
    if (prefetch == NULL || !begin(prefetch, &thread)) {
        free(prefetch);
        return read_direct(journal, family, first, foresee, &direct, next, err);
    }
    while (status == VXD_OK && (n = take(prefetch)) > 0) {
        size_t n_taken = 0;

        status = each(user, *next, prefetch->taken, n, &n_taken, err);
        release(prefetch, n);
        *next += n_taken;
    }
    stop(prefetch, thread);
    end_status = end(prefetch, &reason);
    if (status == VXD_OK && end_status != VXD_OK) {
        status = end_status;
        *err = reason;
    }
    return status;
}
