// SPDX-License-Identifier: Apache-2.0
/* Rows of the tables: their CRCs, and what their columns say. */
#include <string.h>

#include "proto/base/crc32c.h"
#include "server/durable/database/database.h"

/* Each adds a value to a CRC. */
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

uint32_t vxd_database_record_crc(uint32_t family, uint64_t sequence,
                                 uint32_t rules_version, uint32_t kind, const void *bytes,
                                 size_t n_bytes)
{
    uint32_t crc = add64(add32(0, family), sequence);

    return vxd_crc32c(add32(add32(crc, rules_version), kind), bytes, n_bytes);
}

uint32_t vxd_database_family_crc(const struct vxd_journal_family *family)
{
    uint32_t crc = add32(add32(0, family->id), (uint32_t)family->fsync);

    crc = add_name(add64(add64(crc, family->max_bytes), family->epoch), family->name);
    return vxd_crc32c(crc, family->spec, family->n_spec_bytes);
}

uint32_t vxd_database_state_crc(uint32_t id, const struct vxd_family_state *state)
{
    uint32_t crc = add32(add32(0, id), state->open_tail ? 1 : 0);

    crc = add64(add64(crc, state->last_sequence), state->snapshot_sequence);
    return add64(add64(crc, state->kept_from), state->journal_bytes);
}

uint32_t vxd_database_item_crc(enum vxd_journal_item_kind kind,
                               const struct vxd_journal_item *item)
{
    uint32_t crc = add32(add32(0, item->family), (uint32_t)kind);

    return vxd_crc32c(add_name(crc, item->name), item->bytes, item->n_bytes);
}

uint32_t vxd_database_reply_crc(const struct vxd_journal_reply *reply)
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

const char *vxd_database_row_family(sqlite3_stmt *row, struct vxd_journal_family *family,
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
    if (get64(row, 6) != vxd_database_family_crc(family)) {
        return "its CRC is wrong";
    }
    return get64(row, 12) == vxd_database_state_crc(family->id, state)
               ? NULL
               : "the CRC of its state is wrong";
}

const char *vxd_database_row_record(sqlite3_stmt *row, struct vxd_journal_record *record)
{
    uint64_t id = get64(row, 0);
    uint64_t rules = get64(row, 1);
    uint64_t kind = get64(row, 2);

    *record = (struct vxd_journal_record){
        .family = (uint32_t)(id >> VXD_DATABASE_SEQUENCE_BITS),
        .sequence = id & VXD_JOURNAL_MAX_SEQUENCE,
        .rules_version = (uint32_t)rules,
        .kind = (uint32_t)kind};
    record->bytes = get_bytes(row, 4, &record->n_bytes);
    return rules <= UINT32_MAX && kind <= UINT16_MAX &&
                   get64(row, 3) ==
                       vxd_database_record_crc(record->family, record->sequence,
                                               record->rules_version, record->kind,
                                               record->bytes, record->n_bytes)
               ? NULL
               : "its CRC is wrong";
}

const char *vxd_database_row_item(sqlite3_stmt *row, enum vxd_journal_item_kind *kind,
                                  struct vxd_journal_item *item)
{
    *item = (struct vxd_journal_item){.family = (uint32_t)get64(row, 0)};
    *kind = (enum vxd_journal_item_kind)get64(row, 1);
    item->bytes = get_bytes(row, 4, &item->n_bytes);
    return get_name(row, 2, &item->name) &&
                   get64(row, 3) == vxd_database_item_crc(*kind, item)
               ? NULL
               : "its CRC is wrong";
}

bool vxd_database_was_ages(sqlite3_stmt *row, enum vxd_journal_item_kind kind,
                           const struct vxd_journal_item *item)
{
    uint64_t crc = get64(row, 3);

    return kind == VXD_JOURNAL_AGES &&
           crc != vxd_database_item_crc(VXD_JOURNAL_HEAD, item) &&
           crc != vxd_database_item_crc(VXD_JOURNAL_NAMED, item);
}

const char *vxd_database_row_reply(sqlite3_stmt *row, struct vxd_journal_reply *reply)
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
    return get64(row, 4) == vxd_database_reply_crc(reply) ? NULL : "its CRC is wrong";
}
