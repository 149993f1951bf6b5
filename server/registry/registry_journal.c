// SPDX-License-Identifier: Apache-2.0
/* The journal that all kinds share: opened at the start, when each kind brings back what is its
 * own, and given the changes of all of them until it is closed. */
#include <assert.h>
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/registry/registry_internal.h"

enum {
    CUT_NAME = 42, /* of a long name, in a family's */
    LOG_STEP_NS = 1000000000,
    /* A stop writes a family with as many records after its snapshot, or as many bytes of
     * them; it waits as long for all of them. */
    STOP_RECORDS = 256,
    STOP_BYTES = 1 << 20,
    STOP_MS = 5000
};

enum vxd_status vxd_registry_create(struct vxd_context *context,
                                    struct vxd_registry **out, struct vxd_err *err)
{
    struct vxd_registry *registry = calloc(1, sizeof *registry);

    if (registry == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the registry");
    }
    registry->context = context;
    *out = registry;
    return VXD_OK;
}

void vxd_registry_destroy(struct vxd_registry *registry)
{
    free(registry);
}

void vxd_registry_add(struct vxd_registry *registry, const struct vxd_durable_kind *kind,
                      void *owner)
{
    struct vxd_registered_kind *added = &registry->kinds[registry->n_kinds];

    assert(registry->n_kinds < VXD_REGISTRY_MAX_KINDS);
    added->kind = kind;
    added->owner = owner;
    registry->n_kinds++;
}

struct vxd_journal *vxd_registry_get_journal(const struct vxd_registry *registry)
{
    return registry->journal;
}

const struct vxd_data_dir *vxd_registry_get_data_dir(const struct vxd_registry *registry)
{
    return registry->dir;
}

void vxd_registry_set_archive(struct vxd_registry *registry,
                              const struct vxd_registry_archive *archive)
{
    registry->archived = *archive;
}

struct vxd_archive *vxd_registry_get_archive(const struct vxd_registry *registry)
{
    return registry->archive;
}

/* --- names of families ------------------------------------------------------------------- */

void vxd_registry_family_name(const struct vxd_durable_kind *kind, const char *name,
                              char out[VXD_JOURNAL_NAME_BYTES])
{
    size_t n_prefix = strlen(kind->prefix);
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    size_t at;

    if (n_prefix + strlen(name) < VXD_JOURNAL_NAME_BYTES) {
        memcpy(out, kind->prefix, n_prefix);
        memcpy(out + n_prefix, name, strlen(name) + 1);
        return;
    }
    sha256_init(&hash);
    sha256_update(&hash, strlen(name), (const uint8_t *)name);
    sha256_digest(&hash, sizeof digest, digest);
    (void)snprintf(out, VXD_JOURNAL_NAME_BYTES, "%s%.*s~", kind->prefix, CUT_NAME, name);
    at = strlen(out);
    for (size_t i = 0; i < 8 && at + 2 < VXD_JOURNAL_NAME_BYTES; i++, at += 2) {
        (void)snprintf(out + at, VXD_JOURNAL_NAME_BYTES - at, "%02x", digest[i]);
    }
}

void vxd_registry_free_family_name(const struct vxd_registry *registry,
                                   const struct vxd_durable_kind *kind, const char *name,
                                   uint32_t id, char out[VXD_JOURNAL_NAME_BYTES])
{
    vxd_registry_family_name(kind, name, out);
    if (vxd_journal_has_name(registry->journal, out, id)) {
        (void)snprintf(out, VXD_JOURNAL_NAME_BYTES, "%s%.*s~%" PRIu32, kind->prefix,
                       CUT_NAME, name, id);
    }
}

bool vxd_registry_is_of_kind(const struct vxd_durable_kind *kind,
                             const struct vxd_journal_family *row)
{
    const char *colon = strchr(row->name, ':');
    size_t n_prefix = colon != NULL ? (size_t)(colon - row->name) + 1 : 0;

    return strlen(kind->prefix) == n_prefix &&
           memcmp(kind->prefix, row->name, n_prefix) == 0;
}

struct vxd_registered_kind *vxd_registry_find_kind(struct vxd_registry *registry,
                                                   const struct vxd_journal_family *row)
{
    for (size_t i = 0; i < registry->n_kinds; i++) {
        if (vxd_registry_is_of_kind(registry->kinds[i].kind, row)) {
            return &registry->kinds[i];
        }
    }
    return NULL;
}

/* --- the start --------------------------------------------------------------------------- */

struct vxd_registry_start {
    struct vxd_registry *registry;
    const struct vxd_durable_kind *kind;
    bool is_last;
    int64_t logged_ns; /* 0: not yet, so that the first line comes at once */
};

void vxd_registry_log_progress(struct vxd_registry_start *start,
                               const struct vxd_recovery_progress *at)
{
    int64_t now_ns = vxd_clock_ns();
    char text[96];

    if (now_ns - start->logged_ns < LOG_STEP_NS) {
        return;
    }
    start->logged_ns = now_ns;
    (void)snprintf(text, sizeof text, "%" PRIu64 " of %" PRIu64 " records, %s %zu of %zu",
                   at->i_record, at->n_records, start->kind->noun, at->i_family + 1,
                   at->n_families);
    start->kind->log(VXD_REGISTRY_RECOVERING, at->name, text);
}

enum vxd_status vxd_registry_recover(struct vxd_registry_start *start,
                                     const struct vxd_journal_found *found,
                                     const struct vxd_recovery_visitor *visitor,
                                     struct vxd_err *err)
{
    struct vxd_recovery_visitor all = *visitor;
    struct vxd_recovery_result result;
    enum vxd_status status;
    char text[96];

    all.is_not_last = !start->is_last;
    status = vxd_recover(start->registry->dir, start->registry->journal, found, &all,
                         &result, err);
    if (status == VXD_OK && result.n_families > 0) {
        (void)snprintf(text, sizeof text, "%zu, %" PRIu64 " records replayed",
                       result.n_families, result.n_replayed);
        start->kind->log(VXD_REGISTRY_RECOVERED, NULL, text);
    }
    return status;
}

enum vxd_status vxd_registry_rewrite_family(struct vxd_registry *registry,
                                            const struct vxd_journal_family *row,
                                            struct vxd_err *err)
{
    struct vxd_journal_txn *txn = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_journal_begin(registry->journal, &txn, err));
    VXD_TRY(vxd_journal_put_family(txn, row, err));
    status = vxd_journal_commit_wait(txn, err);
    txn = NULL;
out:
    vxd_journal_abandon(txn);
    return status;
}

/* The numbers of all families in the journal. */
struct listing {
    struct vxd_registry *registry;
    uint32_t *ids;
    size_t n;
    size_t capacity;
};

/* Lists a family, and ends the start where its kind is unknown, since a newer server
 * wrote it: a kind that cannot read its records would cut them all. */
static enum vxd_status list_family(void *user, const struct vxd_journal_family *row,
                                   struct vxd_err *err)
{
    struct listing *listing = user;

    if (vxd_registry_find_kind(listing->registry, row) == NULL) {
        return vxd_fail(
            err, VXD_FAILED_PRECONDITION, NULL,
            "the journal has \"%s\", of a kind that this server does not know; "
            "a newer server wrote it",
            row->name);
    }
    if (listing->n == listing->capacity) {
        size_t capacity = 2 * listing->capacity + 16;
        uint32_t *ids = realloc(listing->ids, capacity * sizeof *ids);

        if (ids == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for families");
        }
        listing->ids = ids;
        listing->capacity = capacity;
    }
    listing->ids[listing->n++] = row->id;
    return VXD_OK;
}

/* Asks for the snapshots that were due when the last start ended. */
static void ask_again(struct vxd_registry *registry, const struct listing *listing)
{
    struct vxd_journal_state state;

    for (size_t i = 0; i < listing->n; i++) {
        if (vxd_journal_get_state(registry->journal, listing->ids[i], &state, NULL) ==
                VXD_OK &&
            state.snapshot_due) {
            vxd_registry_ask_snapshot(registry, listing->ids[i]);
        }
    }
}

/* Removes files of no family: those that the journal never had would be taken for another's. */
static enum vxd_status sweep(const struct vxd_registry *registry, struct vxd_err *err)
{
    struct vxd_snapshot_swept swept;
    enum vxd_status status =
        vxd_snapshot_sweep(registry->dir, registry->journal, &swept, err);
    char text[64];

    if (swept.n_removed + swept.n_set_aside > 0) {
        (void)snprintf(text, sizeof text, "%zu removed, %zu renamed to .orphan",
                       swept.n_removed, swept.n_set_aside);
        vxd_log(swept.n_set_aside > 0 ? VXD_LOG_WARNING : VXD_LOG_INFO,
                "snapshot files of no scene that the journal has", "files", text);
    }
    return status;
}

/* Restores an outcome of an earlier start. */
static enum vxd_status restore_outcome(void *user, const struct vxd_journal_reply *reply,
                                       struct vxd_err *err)
{
    return vxd_once_restore(user, reply->client, reply->n_client_bytes, reply->sequence,
                            reply->digest, reply->bytes, reply->n_bytes, err);
}

/* Begins to copy what waits, which may be of the run before. */
static enum vxd_status start_archive(struct vxd_registry *registry, struct vxd_err *err)
{
    const struct vxd_archive_options options = {.folder = registry->archived.folder,
                                                .seconds = registry->archived.seconds};

    return options.folder == NULL
               ? VXD_OK
               : vxd_archive_start(registry->dir->ops, registry->journal, &options,
                                   &registry->archive, err);
}

static enum vxd_status restore_outcomes(struct vxd_registry *registry,
                                        struct vxd_once *once, struct vxd_err *err)
{
    uint8_t secret[VXD_JOURNAL_SECRET_BYTES];
    uint64_t n_damaged = 0;
    char text[24];
    enum vxd_status status;

    vxd_journal_get_secret(registry->journal, secret);
    vxd_once_set_key(once, secret);
    VXD_TRY(vxd_journal_read_replies(registry->journal, restore_outcome, once, &n_damaged,
                                     err));
    if (n_damaged > 0) {
        (void)snprintf(text, sizeof text, "%" PRIu64, n_damaged);
        vxd_log(VXD_LOG_WARNING, "outcomes of earlier requests are damaged", "count",
                text);
    }
out:
    return status;
}

/* On the journal's thread. */
static void snapshot_due(void *user, uint32_t family)
{
    vxd_registry_ask_snapshot(user, family);
}

enum vxd_status vxd_registry_open_journal(struct vxd_registry *registry,
                                          struct vxd_once *once,
                                          const struct vxd_data_dir *dir,
                                          struct vxd_err *err)
{
    const struct vxd_journal_options options = {
        .snapshot_due = snapshot_due,
        .user = registry,
        .archives = registry->archived.folder != NULL,
        .max_archive_bytes = registry->archived.max_bytes};
    struct listing listing = {.registry = registry};
    struct vxd_journal_found found;
    enum vxd_status status;

    registry->dir = dir;
    VXD_TRY(vxd_registry_saver_start(registry, &registry->saver, err));
    VXD_TRY(vxd_registry_packer_start(&registry->packer, err));
    VXD_TRY(vxd_journal_open(dir, &options, &registry->journal, &found, err));
    VXD_TRY(start_archive(registry, err));
    VXD_TRY(vxd_journal_read_families(registry->journal, list_family, &listing, err));
    VXD_TRY(sweep(registry, err));
    for (size_t i = 0; i < registry->n_kinds; i++) {
        struct vxd_registry_start start = {.registry = registry,
                                           .kind = registry->kinds[i].kind,
                                           .is_last = i + 1 == registry->n_kinds};

        VXD_TRY(start.kind->recover(registry->kinds[i].owner, &start, &found, err));
    }
    VXD_TRY(restore_outcomes(registry, once, err));
    ask_again(registry, &listing);
    registry->is_recovered = true;
    vxd_registry_saver_begin(registry->saver);
out:
    free(listing.ids);
    return status;
}

/* Asks for snapshots of families of which a start would have to replay much. */
static void ask_grown(struct vxd_registry *registry, const struct listing *listing)
{
    struct vxd_journal_state state;

    for (size_t i = 0; i < listing->n; i++) {
        if (vxd_journal_get_state(registry->journal, listing->ids[i], &state, NULL) ==
                VXD_OK &&
            (state.last_sequence - state.snapshot_sequence >= STOP_RECORDS ||
             state.journal_bytes >= STOP_BYTES)) {
            vxd_registry_ask_snapshot(registry, listing->ids[i]);
        }
    }
}

void vxd_registry_save_grown(struct vxd_registry *registry)
{
    struct listing listing = {.registry = registry};
    struct vxd_err err = {0};

    if (registry == NULL || !registry->is_recovered ||
        vxd_context_is_lost(registry->context)) {
        return;
    }
    if (vxd_journal_read_families(registry->journal, list_family, &listing, &err) ==
        VXD_OK) {
        ask_grown(registry, &listing);
        vxd_registry_saver_wait(registry->saver, STOP_MS);
    } else {
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "error", err.message);
    }
    free(listing.ids);
}

void vxd_registry_close_journal(struct vxd_registry *registry)
{
    struct vxd_err err = {0};
    enum vxd_status status;

    if (registry == NULL || registry->saver == NULL) {
        return;
    }
    vxd_registry_saver_stop(registry->saver);
    vxd_registry_packer_stop(registry->packer);
    registry->packer = NULL;
    vxd_archive_stop(registry->archive);
    registry->archive = NULL;
    status = registry->is_recovered ? vxd_journal_close(registry->journal, &err)
                                    : vxd_journal_leave(registry->journal, &err);
    if (status != VXD_OK) {
        vxd_log(VXD_LOG_ERROR, "the journal did not end well", "error", err.message);
    }
    registry->journal = NULL;
    registry->is_recovered = false;
    registry->dir = NULL;
    vxd_registry_saver_destroy(registry->saver);
    registry->saver = NULL;
}

/* --- changes ----------------------------------------------------------------------------- */

enum vxd_status vxd_registry_check_disk(const struct vxd_registry *registry,
                                        struct vxd_journal_stats *stats,
                                        struct vxd_err *err)
{
    vxd_journal_get_stats(registry->journal, stats);
    return stats->is_available
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, NULL,
                          "the disk does not take changes: %s", stats->reason);
}

/* On the journal's thread. */
static void decided(void *user, enum vxd_status status, const struct vxd_err *err)
{
    struct vxd_err why = {0};

    if (status == VXD_ABORTED || status == VXD_NOT_FOUND) {
        (void)vxd_fail(&why, VXD_UNAVAILABLE, NULL,
                       "a change that this one was built on could not be written to the "
                       "disk; try again");
        err = &why;
    }
    vxd_commit_decide(user, status == VXD_OK ? NULL : err);
}

enum vxd_status vxd_registry_hand_over(struct vxd_journal_txn *take_txn,
                                       struct vxd_request *request, int64_t unix_ns,
                                       struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_once_put_outcome(request, unix_ns, take_txn, err));
    status = vxd_journal_commit(take_txn, decided, request, err);
    take_txn = NULL;
out:
    vxd_journal_abandon(take_txn);
    return status;
}
