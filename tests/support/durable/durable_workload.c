// SPDX-License-Identifier: Apache-2.0
#include "tests/support/durable/durable_workload.h"

#include <sched.h>
#include <string.h>

#define ROOT "/data"

static const char *const names[WORK_FAMILIES] = {"always", "everysec", "dropped"};

static const struct vxd_journal_options options = {
    .probe_ms = 1, .sync_ms = 1000000, .n_wal_pages = 24, .n_rest_pages = 24};

/* Record n of family f, always the same. */
static enum vxd_status make_record(int f, uint64_t n, struct vxd_record_bytes *out)
{
    struct vxd_svdag_op op = {.shape = {.kind = VXD_SVDAG_BALL,
                                        .a = {(int64_t)n * 1000, f, -(int64_t)n},
                                        .r = (int64_t)(n % 7) * 256},
                              .action = VXD_SVDAG_FILL,
                              .value = (uint32_t)(n % 5)};
    uint8_t bulk[3000];
    struct vxd_record record = {.kind = VXD_RECORD_EDIT,
                                .head = "main",
                                .author = "test",
                                .unix_ns = (int64_t)n,
                                .version = {1, n},
                                .ops = &op,
                                .n_ops = 1};

    if (n % 4 == 0) { /* some of several pages */
        record.kind = VXD_RECORD_CREATE;
        memset(bulk, (int)n, sizeof bulk);
        record.spec = bulk;
        record.n_spec_bytes = sizeof bulk;
    }
    return vxd_record_encode(&record, out, NULL);
}

static void rest(void)
{
    (void)sched_yield();
}

/* Until the writer has nothing to do, so that equal runs sync in equal order. */
static void settle(struct work *work)
{
    struct vxd_journal_stats stats;

    for (;;) {
        vxd_journal_get_stats(work->journal, &stats);
        if (!stats.is_available || (stats.is_idle && stats.n_queued == 0)) {
            return;
        }
        rest();
    }
}

static bool wait_available(struct work *work)
{
    struct vxd_journal_stats stats;

    for (int i = 0; i < 10000000; i++) {
        vxd_journal_get_stats(work->journal, &stats);
        if (stats.is_available) {
            return true;
        }
        rest();
    }
    return false;
}

/* Steps ------------------------------------------------------------------------------------ */

static bool do_open(struct work *work, int unused)
{
    struct vxd_journal_found found;

    (void)unused;
    if (work->dir.lock < 0) {
        if (vxd_data_dir_open(work->ops, ROOT, &work->dir, NULL) != VXD_OK) {
            return false;
        }
        work->was_opened = true;
    }
    work->was_closed = false; /* an opening that fails may have been written */
    return vxd_journal_open(&work->dir, &options, &work->journal, &found, NULL) == VXD_OK;
}

static bool do_raise(struct work *work, int unused)
{
    uint64_t epoch;

    (void)unused;
    if (vxd_journal_raise_epoch(work->journal, &epoch, NULL) != VXD_OK) {
        return false;
    }
    work->epoch_promised = epoch;
    return true;
}

static bool commit(struct vxd_journal_txn *txn)
{
    return vxd_journal_commit_wait(txn, NULL) == VXD_OK;
}

static bool do_create(struct work *work, int f)
{
    static const enum vxd_fsync policies[] = {VXD_FSYNC_ALWAYS, VXD_FSYNC_EVERYSEC,
                                              VXD_FSYNC_ALWAYS};
    struct vxd_journal_family family = {.id = work->families[f].id != 0
                                                  ? work->families[f].id
                                                  : vxd_journal_new_family(work->journal),
                                        .fsync = policies[f],
                                        .epoch = work->epoch_promised,
                                        .spec = "spec",
                                        .n_spec_bytes = 4};
    struct vxd_journal_txn *txn;

    work->families[f].id = family.id;
    (void)snprintf(family.name, sizeof family.name, "%s", names[f]);
    if (vxd_journal_begin(work->journal, &txn, NULL) != VXD_OK ||
        vxd_journal_put_family(txn, &family, NULL) != VXD_OK || !commit(txn)) {
        return false;
    }
    work->families[f].is_promised = true;
    return true;
}

/* One record, and an outcome of the same number. */
static bool do_edit(struct work *work, int f)
{
    struct work_family *family = &work->families[f];
    uint64_t n = family->acknowledged + 1;
    struct vxd_record_bytes bytes = {0};
    struct vxd_journal_reply reply = {.client = names[f],
                                      .n_client_bytes = strlen(names[f]),
                                      .sequence = n,
                                      .bytes = "reply",
                                      .n_bytes = 5};
    struct vxd_journal_txn *txn = NULL;
    struct vxd_journal_record record = {
        .family = family->id, .sequence = n, .rules_version = 1, .kind = 1};

    if (make_record(f, n, &bytes) != VXD_OK ||
        vxd_journal_begin(work->journal, &txn, NULL) != VXD_OK) {
        vxd_record_bytes_free(&bytes);
        return false;
    }
    record.bytes = bytes.bytes;
    record.n_bytes = bytes.n_bytes;
    reply.digest[0] = (uint8_t)n;
    family->tried = n;
    if (vxd_journal_add_record(txn, &record, NULL) != VXD_OK ||
        vxd_journal_put_reply(txn, &reply, NULL) != VXD_OK || !commit(txn)) {
        vxd_record_bytes_free(&bytes);
        return false;
    }
    vxd_record_bytes_free(&bytes);
    family->acknowledged = n;
    family->promised = f != 1 ? n : family->promised;
    return true;
}

static bool do_flush(struct work *work, int unused)
{
    (void)unused;
    if (vxd_journal_flush(work->journal, NULL) != VXD_OK) {
        return false;
    }
    work->families[1].promised = work->families[1].acknowledged;
    return true;
}

static bool do_item(struct work *work, int f)
{
    const struct vxd_journal_item item = {
        .family = work->families[f].id, .name = "main", .bytes = "head", .n_bytes = 4};
    struct vxd_journal_txn *txn;

    if (vxd_journal_begin(work->journal, &txn, NULL) != VXD_OK ||
        vxd_journal_put_item(txn, VXD_JOURNAL_HEAD, &item, NULL) != VXD_OK ||
        !commit(txn)) {
        return false;
    }
    work->item_promised = true;
    return true;
}

/* A snapshot says which record it holds up to, many times over. */
static bool write_snapshot(struct work *work, int f, uint64_t n, uint64_t *keep_from)
{
    struct vxd_snapshot_head head = {
        .family = work->families[f].id, .epoch = 1, .sequence = n, .rules_version = 1};
    struct vxd_snapshot_writer *writer;
    uint64_t words[300];

    (void)snprintf(head.name, sizeof head.name, "%s", names[f]);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        words[i] = n;
    }
    if (vxd_snapshot_begin(&work->dir, &head, &writer, NULL) != VXD_OK) {
        return false;
    }
    if (vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, "heads", 5, NULL) != VXD_OK ||
        vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, words, sizeof words, NULL) !=
            VXD_OK) {
        vxd_snapshot_abandon(writer);
        return false;
    }
    return vxd_snapshot_finish(writer, NULL, keep_from, NULL) == VXD_OK;
}

static bool do_snapshot(struct work *work, int f)
{
    struct work_family *family = &work->families[f];
    uint64_t n = family->acknowledged;
    uint64_t keep_from;
    struct vxd_journal_txn *txn;

    if (!write_snapshot(work, f, n, &keep_from)) {
        return false;
    }
    family->snapshot_promised = n;
    family->promised = n; /* whatever its policy: the snapshot has it */
    if (vxd_journal_begin(work->journal, &txn, NULL) != VXD_OK ||
        vxd_journal_snapshot_taken(txn, family->id, n, keep_from, NULL) != VXD_OK ||
        !commit(txn)) {
        return false;
    }
    family->taken_promised = f != 1 ? n : family->taken_promised;
    return true;
}

static bool do_drop(struct work *work, int f)
{
    struct vxd_journal_txn *txn;

    work->families[f].drop_tried = true;
    if (vxd_journal_begin(work->journal, &txn, NULL) != VXD_OK ||
        vxd_journal_drop_family(txn, work->families[f].id, NULL) != VXD_OK ||
        !commit(txn)) {
        return false;
    }
    work->families[f].drop_promised = true;
    return true;
}

static bool do_close(struct work *work, int unused)
{
    enum vxd_status status = vxd_journal_close(work->journal, NULL);

    (void)unused;
    work->journal = NULL;
    vxd_data_dir_close(&work->dir);
    if (status != VXD_OK) {
        return work->retries; /* it is closed in any case */
    }
    work->was_closed = true;
    work->families[1].promised = work->families[1].acknowledged;
    return true;
}

struct step {
    bool (*run)(struct work *work, int argument);
    int argument;
    int n; /* times */
};

static const struct step steps[] = {
    {do_open, 0, 1},   {do_raise, 0, 1},    {do_create, 0, 1},   {do_edit, 0, 3},
    {do_create, 1, 1}, {do_edit, 1, 4},     {do_flush, 0, 1},    {do_edit, 1, 2},
    {do_item, 0, 1},   {do_edit, 0, 6},     {do_create, 2, 1},   {do_edit, 2, 3},
    {do_edit, 1, 5},   {do_snapshot, 0, 1}, {do_edit, 0, 3},     {do_edit, 1, 6},
    {do_flush, 0, 1},  {do_snapshot, 0, 1}, {do_drop, 2, 1},     {do_edit, 0, 2},
    {do_close, 0, 1},  {do_open, 0, 1},     {do_edit, 0, 2},     {do_edit, 1, 7},
    {do_raise, 0, 1},  {do_snapshot, 0, 1}, {do_snapshot, 1, 1}, {do_edit, 0, 5},
    {do_edit, 1, 16},  {do_edit, 0, 1},     {do_edit, 1, 3},     {do_flush, 0, 1},
    {do_edit, 0, 1},   {do_close, 0, 1},    {do_open, 0, 1},     {do_edit, 0, 4},
};

/* What the journal says that the mark has. */
static void note_mark(struct work *work)
{
    struct vxd_journal_stats stats;

    if (work->journal != NULL) {
        vxd_journal_get_stats(work->journal, &stats);
        work->mark_promised =
            stats.n_marked > work->mark_promised ? stats.n_marked : work->mark_promised;
    }
}

static bool run_step(struct work *work, const struct step *step)
{
    for (int i = 0; i < 200; i++) {
        if (work->journal != NULL) {
            settle(work);
        }
        if (step->run(work, step->argument)) {
            note_mark(work);
            return true;
        }
        work->n_failures++;
        if (!work->retries || (work->journal != NULL && !wait_available(work))) {
            return false;
        }
    }
    return false;
}

bool work_run(struct work *work, const struct vxd_file_ops *ops)
{
    bool is_good = true;

    work->ops = ops;
    work->dir.lock = -1;
    for (size_t i = 0; is_good && i < sizeof steps / sizeof steps[0]; i++) {
        for (int n = 0; is_good && n < steps[i].n; n++) {
            is_good = run_step(work, &steps[i]);
        }
    }
    /* The power goes, rather than the server. */
    if (work->journal != NULL) {
        settle(work);
    }
    return is_good;
}

/* Checking --------------------------------------------------------------------------------- */

struct check {
    const struct work *work;
    const char *fault;
    uint64_t at[WORK_FAMILIES]; /* the record that each is at */
    uint64_t from[WORK_FAMILIES];
    uint64_t taken[WORK_FAMILIES];
    bool is_there[WORK_FAMILIES];
    bool is_lossy[WORK_FAMILIES];
    uint64_t replies[WORK_FAMILIES];
    bool has_item;
};

static enum vxd_status fault(struct check *check, const char *what)
{
    if (check->fault == NULL) {
        check->fault = what;
    }
    return VXD_OK;
}

static int find_family(const char *name)
{
    for (int f = 0; f < WORK_FAMILIES; f++) {
        if (strcmp(name, names[f]) == 0) {
            return f;
        }
    }
    return -1;
}

static enum vxd_status see_family(void *user, const struct vxd_journal_family *family,
                                  struct vxd_err *err)
{
    struct check *check = user;
    int f = find_family(family->name);

    (void)err;
    if (f < 0 || family->id != check->work->families[f].id || family->n_spec_bytes != 4 ||
        memcmp(family->spec, "spec", 4) != 0) {
        return fault(check, "a family that is none");
    }
    check->is_there[f] = true;
    check->at[f] = 0;
    return VXD_OK;
}

static enum vxd_status see_snapshot(void *user, const struct vxd_journal_family *family,
                                    struct vxd_snapshot_reader *reader,
                                    struct vxd_err *err)
{
    struct check *check = user;
    int f = find_family(family->name);
    char heads[16];
    uint64_t words[400];
    size_t n;
    enum vxd_status status;

    VXD_TRY(
        vxd_snapshot_read(reader, VXD_SNAPSHOT_CATALOGUE, heads, sizeof heads, &n, err));
    if (n != 5 || memcmp(heads, "heads", 5) != 0) {
        return fault(check, "a snapshot's catalogue is another");
    }
    VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_IMAGE, words, sizeof words, &n, err));
    if (n != 300 * sizeof words[0] ||
        words[299] != vxd_snapshot_get_head(reader)->sequence) {
        return fault(check, "a snapshot's image is another");
    }
    check->at[f] = words[0];
out:
    return status;
}

static enum vxd_status see_record(void *user, const struct vxd_journal_family *family,
                                  uint64_t sequence, const struct vxd_record *record,
                                  struct vxd_err *err)
{
    struct check *check = user;
    int f = find_family(family->name);
    struct vxd_record_bytes expected = {0};
    struct vxd_record_bytes found = {0};

    (void)err;
    if (sequence != check->at[f] + 1) {
        return fault(check, "records are out of order");
    }
    check->at[f] = sequence;
    if (make_record(f, sequence, &expected) != VXD_OK ||
        vxd_record_encode(record, &found, NULL) != VXD_OK ||
        found.n_bytes != expected.n_bytes ||
        memcmp(found.bytes, expected.bytes, found.n_bytes) != 0) {
        (void)fault(check, "a record is another");
    }
    vxd_record_bytes_free(&expected);
    vxd_record_bytes_free(&found);
    return VXD_OK;
}

static enum vxd_status see_item(void *user, enum vxd_journal_item_kind kind,
                                const struct vxd_journal_item *item, struct vxd_err *err)
{
    struct check *check = user;

    (void)err;
    check->has_item = kind == VXD_JOURNAL_HEAD && item->n_bytes == 4 &&
                      memcmp(item->bytes, "head", 4) == 0;
    return VXD_OK;
}

static enum vxd_status see_done(void *user, const struct vxd_recovered_family *result,
                                struct vxd_err *err)
{
    struct check *check = user;
    int f = find_family(result->family->name);

    (void)err;
    check->is_lossy[f] = result->is_lossy;
    check->from[f] = result->snapshot_sequence;
    return result->last_sequence == check->at[f]
               ? VXD_OK
               : fault(check, "a family says that it is elsewhere than it is");
}

static enum vxd_status see_reply(void *user, const struct vxd_journal_reply *reply,
                                 struct vxd_err *err)
{
    struct check *check = user;

    (void)err;
    for (int f = 0; f < WORK_FAMILIES; f++) {
        if (reply->n_client_bytes == strlen(names[f]) &&
            memcmp(reply->client, names[f], reply->n_client_bytes) == 0) {
            if (reply->sequence != check->replies[f] + 1 ||
                reply->digest[0] != (uint8_t)reply->sequence) {
                return fault(check, "an outcome is missing");
            }
            check->replies[f] = reply->sequence;
        }
    }
    return VXD_OK;
}

/* What was promised is there, and nothing that was never tried, nor half of anything. */
static void compare_family(struct check *check, int f)
{
    const struct work_family *promised = &check->work->families[f];

    if (!check->is_there[f]) {
        if (promised->is_promised && !promised->drop_tried) {
            (void)fault(check, "a family is lost");
        }
        return;
    }
    if (promised->drop_promised) {
        (void)fault(check, "a dropped family is there");
    } else if (check->at[f] < promised->promised) {
        (void)fault(check, "an acknowledged record is lost");
    } else if (check->at[f] > promised->tried) {
        (void)fault(check, "a record is there that nobody wrote");
    } else if (check->from[f] < promised->snapshot_promised) {
        (void)fault(check, "a finished snapshot is lost");
    } else if (check->taken[f] < promised->taken_promised) {
        (void)fault(check, "that a snapshot was taken is lost");
    } else if (f == 0 && check->is_lossy[f]) {
        (void)fault(check, "a family that was always synced is called lossy");
    } else if (check->at[f] < promised->acknowledged && !check->is_lossy[f]) {
        (void)fault(check, "a loss is not noticed");
    } else if (check->at[f] != check->replies[f] && check->from[f] < check->at[f]) {
        (void)fault(check, "a record without its outcome, or the other way round");
    }
}

static void check_more(struct check *check, struct work *again)
{
    again->families[0].acknowledged = check->at[0];
    if (check->is_there[0] && !do_edit(again, 0)) {
        (void)fault(check, "nothing can be written after it");
    }
}

static void check_started(struct check *check, const struct vxd_journal_found *found,
                          struct work *again)
{
    const struct vxd_recovery_visitor visitor = {.user = check,
                                                 .family = see_family,
                                                 .snapshot = see_snapshot,
                                                 .record = see_record,
                                                 .item = see_item,
                                                 .done = see_done};
    struct vxd_recovery_result result;
    uint64_t n_damaged = 0;

    if (vxd_recover(&again->dir, again->journal, found, &visitor, &result, NULL) !=
        VXD_OK) {
        (void)fault(check, "the recovery failed");
        return;
    }
    if (vxd_journal_read_replies(again->journal, see_reply, check, &n_damaged, NULL) !=
            VXD_OK ||
        n_damaged > 0) {
        (void)fault(check, "outcomes are damaged");
    }
    for (int f = 0; f < WORK_FAMILIES; f++) {
        struct vxd_journal_state state = {0};

        (void)vxd_journal_get_state(again->journal, check->work->families[f].id, &state,
                                    NULL);
        check->taken[f] = state.snapshot_sequence;
        compare_family(check, f);
    }
    if (check->work->item_promised && !check->has_item) {
        (void)fault(check, "a head is lost");
    }
    if (vxd_journal_get_epoch(again->journal) < check->work->epoch_promised) {
        (void)fault(check, "an epoch would be given out again");
    }
    if (check->work->was_closed && !found->was_clean) {
        (void)fault(check, "a clean end is not known");
    }
    check_more(check, again);
}

static void ignore_name(void *arg, const char *name)
{
    (void)arg;
    (void)name;
}

static bool is_mark_at(const struct work *work)
{
    struct vxd_mark mark;

    return vxd_mark_open(work->ops, ROOT, true, &mark, NULL) == VXD_OK &&
           mark.synced >= work->mark_promised;
}

const char *work_check(const struct work *work)
{
    struct check check = {.work = work};
    struct work again = *work;
    struct vxd_journal_found found;

    again.dir.lock = -1;
    again.journal = NULL;
    if (work->was_opened &&
        work->ops->list(work->ops->user, ROOT "/snapshots", ignore_name, NULL) != 0) {
        return "the data directory is lost";
    }
    if (vxd_data_dir_open(work->ops, ROOT, &again.dir, NULL) != VXD_OK) {
        return "the data directory cannot be opened";
    }
    if (work->mark_promised > 0 && !is_mark_at(work)) {
        vxd_data_dir_close(&again.dir);
        return "the mark is behind what was acknowledged";
    }
    if (vxd_journal_open(&again.dir, &options, &again.journal, &found, NULL) != VXD_OK) {
        vxd_data_dir_close(&again.dir);
        return "the journal cannot be opened";
    }
    if (found.n_lost > 0) {
        (void)fault(&check, "the mark is above a journal that is whole");
    }
    check_started(&check, &found, &again);
    if (vxd_journal_close(again.journal, NULL) != VXD_OK) {
        (void)fault(&check, "the journal cannot be closed");
    }
    vxd_data_dir_close(&again.dir);
    return check.fault;
}
