// SPDX-License-Identifier: Apache-2.0
/* Rows: their CRCs, what they say, and the families that the writer keeps in memory. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/crc32c.h"
#include "server/durable/journal/journal_internal.h"

/* A CRC under way. */
static uint32_t add32(uint32_t crc, uint32_t value)
{
    return vxd_crc32c(crc, &value, sizeof value);
}

static uint32_t add64(uint32_t crc, uint64_t value)
{
    return vxd_crc32c(crc, &value, sizeof value);
}

static uint32_t add_name(uint32_t crc, const char *name)
{
    char padded[VXD_JOURNAL_NAME_BYTES] = {0};
    size_t n = strlen(name);

    memcpy(padded, name, n < sizeof padded ? n : sizeof padded);
    return vxd_crc32c(crc, padded, sizeof padded);
}

uint32_t vxd_journal_record_crc(uint32_t family, uint64_t sequence,
                                uint32_t rules_version, uint32_t kind, const void *bytes,
                                size_t n_bytes)
{
    uint32_t crc = add64(add32(0, family), sequence);

    return vxd_crc32c(add32(add32(crc, rules_version), kind), bytes, n_bytes);
}

uint32_t vxd_journal_family_crc(const struct vxd_journal_family *family)
{
    uint32_t crc = add32(add32(0, family->id), (uint32_t)family->fsync);

    crc = add_name(add64(add64(crc, family->max_bytes), family->epoch), family->name);
    return vxd_crc32c(crc, family->spec, family->n_spec_bytes);
}

uint32_t vxd_journal_state_crc(uint32_t id, const struct vxd_family_state *state)
{
    uint32_t crc = add32(add32(0, id), state->open_tail ? 1 : 0);

    crc = add64(add64(crc, state->last_sequence), state->snapshot_sequence);
    return add64(add64(crc, state->kept_from), state->journal_bytes);
}

uint32_t vxd_journal_item_crc(enum vxd_journal_item_kind kind,
                              const struct vxd_journal_item *item)
{
    uint32_t crc = add32(add32(0, item->family), (uint32_t)kind);

    return vxd_crc32c(add_name(crc, item->name), item->bytes, item->n_bytes);
}

uint32_t vxd_journal_reply_crc(const struct vxd_journal_reply *reply)
{
    uint32_t crc = add64(add64(0, reply->sequence), (uint64_t)reply->unix_ns);

    crc = vxd_crc32c(crc, reply->digest, sizeof reply->digest);
    crc = vxd_crc32c(add64(crc, reply->n_client_bytes), reply->client,
                     reply->n_client_bytes);
    return vxd_crc32c(crc, reply->bytes, reply->n_bytes);
}

/* SQLite gives NULL for no bytes; a pointer to none is easier to use. */
static const void *get_bytes(sqlite3_stmt *row, int column, size_t *n_bytes)
{
    const void *bytes = sqlite3_column_blob(row, column);

    *n_bytes = bytes != NULL ? (size_t)sqlite3_column_bytes(row, column) : 0;
    return bytes != NULL ? bytes : "";
}

static bool get_name(sqlite3_stmt *row, int column, const char **out)
{
    const unsigned char *text = sqlite3_column_text(row, column);

    *out = text != NULL ? (const char *)text : "";
    return text != NULL && text[0] != '\0' &&
           (size_t)sqlite3_column_bytes(row, column) < VXD_JOURNAL_NAME_BYTES;
}

static uint64_t get64(sqlite3_stmt *row, int column)
{
    return (uint64_t)sqlite3_column_int64(row, column);
}

const char *vxd_journal_row_family(sqlite3_stmt *row, struct vxd_journal_family *family,
                                   struct vxd_family_state *state)
{
    uint64_t id = get64(row, 0);
    uint64_t fsync = get64(row, 2);
    const char *name;

    *family =
        (struct vxd_journal_family){.max_bytes = get64(row, 3), .epoch = get64(row, 4)};
    if (id < 1 || id > VXD_JOURNAL_MAX_FAMILY || fsync > VXD_FSYNC_OFF ||
        !get_name(row, 1, &name)) {
        return "its id, name or policy is none";
    }
    family->id = (uint32_t)id;
    family->fsync = (enum vxd_fsync)fsync;
    (void)snprintf(family->name, sizeof family->name, "%s", name);
    family->spec = get_bytes(row, 5, &family->n_spec_bytes);
    *state = (struct vxd_family_state){.exists = true,
                                       .fsync = family->fsync,
                                       .max_bytes = family->max_bytes,
                                       .epoch = family->epoch,
                                       .last_sequence = get64(row, 7),
                                       .snapshot_sequence = get64(row, 8),
                                       .kept_from = get64(row, 9),
                                       .journal_bytes = get64(row, 10),
                                       .open_tail = get64(row, 11) != 0};
    memcpy(state->name, family->name, sizeof state->name);
    if (get64(row, 6) != vxd_journal_family_crc(family)) {
        return "its CRC is wrong";
    }
    return get64(row, 12) == vxd_journal_state_crc(family->id, state)
               ? NULL
               : "the CRC of its state is wrong";
}

const char *vxd_journal_row_record(sqlite3_stmt *row, struct vxd_journal_record *record)
{
    uint64_t id = get64(row, 0);
    uint64_t rules = get64(row, 1);
    uint64_t kind = get64(row, 2);

    *record =
        (struct vxd_journal_record){.family = (uint32_t)(id >> VXD_JOURNAL_SEQUENCE_BITS),
                                    .sequence = id & VXD_JOURNAL_MAX_SEQUENCE,
                                    .rules_version = (uint32_t)rules,
                                    .kind = (uint32_t)kind};
    record->bytes = get_bytes(row, 4, &record->n_bytes);
    return rules <= UINT32_MAX && kind <= UINT16_MAX &&
                   get64(row, 3) ==
                       vxd_journal_record_crc(record->family, record->sequence,
                                              record->rules_version, record->kind,
                                              record->bytes, record->n_bytes)
               ? NULL
               : "its CRC is wrong";
}

const char *vxd_journal_row_item(sqlite3_stmt *row, enum vxd_journal_item_kind *kind,
                                 struct vxd_journal_item *item)
{
    *item = (struct vxd_journal_item){.family = (uint32_t)get64(row, 0)};
    *kind = (enum vxd_journal_item_kind)get64(row, 1);
    item->bytes = get_bytes(row, 4, &item->n_bytes);
    return get_name(row, 2, &item->name) &&
                   get64(row, 3) == vxd_journal_item_crc(*kind, item)
               ? NULL
               : "its CRC is wrong";
}

const char *vxd_journal_row_reply(sqlite3_stmt *row, struct vxd_journal_reply *reply)
{
    size_t n_digest;
    const void *digest = get_bytes(row, 2, &n_digest);

    *reply = (struct vxd_journal_reply){.sequence = get64(row, 1),
                                        .unix_ns = sqlite3_column_int64(row, 3)};
    reply->client = get_bytes(row, 0, &reply->n_client_bytes);
    reply->bytes = get_bytes(row, 5, &reply->n_bytes);
    if (n_digest != sizeof reply->digest) {
        return "its digest is none";
    }
    memcpy(reply->digest, digest, sizeof reply->digest);
    return get64(row, 4) == vxd_journal_reply_crc(reply) ? NULL : "its CRC is wrong";
}

/* The families in memory ------------------------------------------------------------------- */

struct vxd_family_row *vxd_journal_find_row(struct vxd_journal *journal, uint32_t id)
{
    for (size_t i = 0; i < journal->n_rows; i++) {
        if (journal->rows[i].id == id) {
            return &journal->rows[i];
        }
    }
    return NULL;
}

struct vxd_family_row *vxd_journal_make_row(struct vxd_journal *journal, uint32_t id)
{
    struct vxd_family_row *row = vxd_journal_find_row(journal, id);

    if (row != NULL) {
        return row;
    }
    if (journal->n_rows == journal->rows_room) {
        size_t room = 2 * journal->rows_room + 16;
        struct vxd_family_row *rows = realloc(journal->rows, room * sizeof *rows);

        if (rows == NULL) {
            return NULL;
        }
        journal->rows = rows;
        journal->rows_room = room;
    }
    row = &journal->rows[journal->n_rows++];
    memset(row, 0, sizeof *row);
    row->id = id;
    return row;
}

bool vxd_journal_remember_dropped(struct vxd_journal *journal, uint32_t family)
{
    if (journal->n_dropped == journal->dropped_room) {
        size_t room = 2 * journal->dropped_room + 16;
        uint32_t *dropped = realloc(journal->dropped, room * sizeof *dropped);

        if (dropped == NULL) {
            return false;
        }
        journal->dropped = dropped;
        journal->dropped_room = room;
    }
    journal->dropped[journal->n_dropped++] = family;
    return true;
}

static enum vxd_status load_row(struct vxd_journal *journal, sqlite3_stmt *row,
                                const struct vxd_journal_found *found,
                                struct vxd_err *err)
{
    struct vxd_journal_family family;
    struct vxd_family_state state;
    const char *fault = vxd_journal_row_family(row, &family, &state);
    struct vxd_family_row *made;

    if (fault != NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, "data_dir",
                        "voxeld.db: row %lld of the catalogue is damaged: %s",
                        (long long)sqlite3_column_int64(row, 0), fault);
    }
    made = vxd_journal_make_row(journal, family.id);
    if (made == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a family");
    }
    made->committed = state;
    made->now = state;
    made->trimmed_to = 0;
    made->may_have_lost = !found->was_clean && !found->same_boot && state.open_tail;
    return VXD_OK;
}

static enum vxd_status load(struct vxd_journal *journal, const char *sql,
                            const struct vxd_journal_found *found, struct vxd_err *err)
{
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(journal->db, sql, -1, &row, NULL);
    enum vxd_status status = VXD_OK;

    while (result == SQLITE_OK && status == VXD_OK &&
           (result = sqlite3_step(row)) == SQLITE_ROW) {
        result = SQLITE_OK;
        if (found != NULL) {
            status = load_row(journal, row, found, err);
        } else if (!vxd_journal_remember_dropped(
                       journal, (uint32_t)sqlite3_column_int64(row, 0))) {
            status =
                vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for families");
        }
    }
    if (status == VXD_OK && result != SQLITE_DONE) {
        status = vxd_journal_sql_fail(err, journal->db, result, "read the catalogue");
    }
    (void)sqlite3_finalize(row);
    return status;
}

enum vxd_status vxd_journal_load_rows(struct vxd_journal *journal,
                                      const struct vxd_journal_found *found,
                                      struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(load(journal, "SELECT " VXD_FAMILY_COLUMNS " FROM families ORDER BY id",
                 found, err));
    VXD_TRY(load(journal, "SELECT family FROM dropped", NULL, err));
out:
    return status;
}
