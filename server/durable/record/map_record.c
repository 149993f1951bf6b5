// SPDX-License-Identifier: Apache-2.0
/* A record of a map (numbers are base 128, the low seven bits first; s = signed, zigzag):
 *
 *      1  kind: 65 insert, 66 update, 67 erase, 68 clear
 *      1  bytes of the author's name, 0 to 63, and the name
 *      1  bytes of the client's name, 0 to 63, and the name
 *         unix_ns (s)
 *    insert, update, erase
 *         n, keys or numbers (number, up to 2^31 - 1)
 *      1  what they are: 0 numbers of entries (update alone), 1 keys, 2 keys of which those that
 *         are missing are inserted first (update alone)
 *    of keys
 *      1  dtype (3 int16, 5 int32, 9 int64)
 *      1  components c, 1 to 8
 *    then, with c = 1 and int32 for numbers, for each component, for each byte of its differences
 *    from the lowest up, a plane of n bytes (byte_planes.c). A difference is to the component
 *    of the key before (0 before the first), modulo the dtype's range, zigzag
 *    insert, update
 *      1  combine: 0 set, 1 add, 2 min, 3 max; 0 of an insert
 *      1  arrays that are given, 0 to 16, and each, ascending:
 *           1  number of the array, 0 to 15
 *           1  dtype of the rows
 *              elements a row (number)
 *              n rows, little-endian, as they are
 *
 * and nothing behind. */
#include "server/durable/record/map_record.h"

#include "server/durable/journal/journal.h"
#include "server/durable/record/record_internal.h"

enum {
    WHAT_NUMBERS = 0,
    WHAT_KEYS = 1,
    WHAT_KEYS_INSERTED = 2
};

/* --- writing ---------------------------------------------------------------------------- */

static void put_rows(struct vxd_bytes_out *out, const struct vxd_map_record *record)
{
    unsigned n_given = 0;

    for (int i = 0; i < VXD_HASHMAP_MAX_VALUES; i++) {
        n_given += record->rows[i].rows != NULL ? 1 : 0;
    }
    vxd_bytes_put8(out, (unsigned)record->combine);
    vxd_bytes_put8(out, n_given);
    for (int i = 0; i < VXD_HASHMAP_MAX_VALUES; i++) {
        const struct vxd_map_record_rows *rows = &record->rows[i];

        if (rows->rows != NULL) {
            vxd_bytes_put8(out, (unsigned)i);
            vxd_bytes_put8(out, (unsigned)rows->dtype);
            vxd_bytes_put_number(out, rows->n_elements);
            vxd_bytes_put(out, rows->rows,
                          record->n * rows->n_elements * vxd_dtype_bytes(rows->dtype));
        }
    }
}

static bool has_rows(enum vxd_map_record_kind kind)
{
    return kind == VXD_MAP_RECORD_INSERT || kind == VXD_MAP_RECORD_UPDATE;
}

static enum vxd_status put_entries(struct vxd_bytes_out *out,
                                   const struct vxd_map_record *record,
                                   struct vxd_err *err)
{
    /* They are only read; the type serves reading and writing. */
    struct vxd_record_columns columns = {.bytes = (uint8_t *)(uintptr_t)record->numbers,
                                         .n = record->n,
                                         .n_columns = 1,
                                         .width = sizeof *record->numbers};

    vxd_bytes_put_number(out, record->n);
    vxd_bytes_put8(out, record->numbers != NULL ? WHAT_NUMBERS
                        : record->inserts       ? WHAT_KEYS_INSERTED
                                                : WHAT_KEYS);
    if (record->numbers == NULL) {
        vxd_bytes_put8(out, (unsigned)record->key_dtype);
        vxd_bytes_put8(out, (unsigned)record->n_components);
        columns.bytes = (uint8_t *)(uintptr_t)record->keys;
        columns.n_columns = (size_t)record->n_components;
        columns.width = vxd_dtype_bytes(record->key_dtype);
    }
    return vxd_record_put_columns(out, &columns, err);
}

enum vxd_status vxd_map_record_encode(const struct vxd_map_record *record,
                                      struct vxd_record_bytes *out, struct vxd_err *err)
{
    struct vxd_bytes_out bytes = {0};
    enum vxd_status status = VXD_OK;

    vxd_bytes_put8(&bytes, (unsigned)record->kind);
    vxd_record_put_name(&bytes, record->author);
    vxd_record_put_name(&bytes, record->client);
    vxd_bytes_put_signed(&bytes, record->unix_ns);
    if (record->kind != VXD_MAP_RECORD_CLEAR) {
        VXD_TRY(put_entries(&bytes, record, err));
    }
    if (has_rows(record->kind)) {
        put_rows(&bytes, record);
    }
    if (bytes.is_out_of_memory) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a record"));
    }
    if (bytes.n > VXD_JOURNAL_MAX_BLOB_BYTES) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "a change of %zu bytes is more than the journal takes at once "
                         "(%zu)",
                         bytes.n, VXD_JOURNAL_MAX_BLOB_BYTES));
    }
    *out = (struct vxd_record_bytes){bytes.bytes, bytes.n};
    return VXD_OK;
out:
    free(bytes.bytes);
    return status;
}

/* --- reading ---------------------------------------------------------------------------- */

static bool get_key_type(struct vxd_record_reader *reader, struct vxd_map_record *record,
                         struct vxd_record_columns *columns)
{
    unsigned dtype = vxd_bytes_get8(&reader->in);
    unsigned n_components = vxd_bytes_get8(&reader->in);

    if (dtype != VXD_INT16 && dtype != VXD_INT32 && dtype != VXD_INT64) {
        return vxd_record_bad(reader, "no type of keys");
    }
    if (n_components < 1 || n_components > VXD_HASHMAP_MAX_COMPONENTS) {
        return vxd_record_bad(reader, "no number of components");
    }
    record->key_dtype = (enum vxd_dtype)dtype;
    record->n_components = (int)n_components;
    columns->n_columns = n_components;
    columns->width = vxd_dtype_bytes(record->key_dtype);
    return true;
}

static bool get_entries(struct vxd_record_reader *reader, struct vxd_map_record *record)
{
    uint64_t n = vxd_bytes_get_number(&reader->in);
    unsigned what = vxd_bytes_get8(&reader->in);
    struct vxd_record_columns columns = {.n_columns = 1,
                                         .width = sizeof *record->numbers};

    if (n > INT32_MAX ||
        what > (record->kind == VXD_MAP_RECORD_UPDATE ? WHAT_KEYS_INSERTED : WHAT_KEYS) ||
        (what == WHAT_NUMBERS && record->kind != VXD_MAP_RECORD_UPDATE)) {
        return vxd_record_bad(reader, "no number or kind of entries");
    }
    columns.n = (size_t)n;
    if ((what != WHAT_NUMBERS && !get_key_type(reader, record, &columns)) ||
        !vxd_record_get_columns(reader, &columns)) {
        return false;
    }
    record->n = (size_t)n;
    record->inserts = what == WHAT_KEYS_INSERTED;
    if (what == WHAT_NUMBERS) {
        record->numbers = (const int32_t *)(const void *)columns.bytes;
    } else {
        record->keys = columns.bytes;
    }
    return true;
}

/* Copied: what the engine reads has to be aligned. */
static bool get_array(struct vxd_record_reader *reader, unsigned least,
                      struct vxd_map_record *record, unsigned *number)
{
    unsigned i = vxd_bytes_get8(&reader->in);
    enum vxd_dtype dtype = (enum vxd_dtype)vxd_bytes_get8(&reader->in);
    uint64_t n_elements = vxd_bytes_get_number(&reader->in);
    size_t element_bytes = vxd_dtype_bytes(dtype);
    const uint8_t *from;
    size_t n_bytes;
    void *rows;

    if (i < least || i >= VXD_HASHMAP_MAX_VALUES || element_bytes == 0 ||
        n_elements < 1 || n_elements > VXD_HASHMAP_MAX_ROW_BYTES / element_bytes) {
        return vxd_record_bad(reader, "not an array");
    }
    n_bytes = record->n * (size_t)n_elements * element_bytes;
    from = vxd_bytes_get(&reader->in, n_bytes);
    if (from == NULL) {
        return vxd_record_bad(reader, "an array ends too soon");
    }
    rows = vxd_record_alloc(reader, (uint64_t)n_bytes + 1, 1);
    if (rows == NULL) {
        return false;
    }
    memcpy(rows, from, n_bytes);
    record->rows[i] = (struct vxd_map_record_rows){rows, dtype, (uint32_t)n_elements};
    *number = i;
    return true;
}

static bool get_rows(struct vxd_record_reader *reader, struct vxd_map_record *record)
{
    unsigned combine = vxd_bytes_get8(&reader->in);
    unsigned n_given = vxd_bytes_get8(&reader->in);
    unsigned least = 0;

    if (combine > VXD_COMBINE_MAX ||
        (combine != VXD_COMBINE_SET && record->kind == VXD_MAP_RECORD_INSERT)) {
        return vxd_record_bad(reader, "no way to combine");
    }
    record->combine = (enum vxd_hash_combine)combine;
    if (n_given > VXD_HASHMAP_MAX_VALUES) {
        return vxd_record_bad(reader, "not a number of arrays");
    }
    for (unsigned k = 0; k < n_given; k++) {
        unsigned number = 0;

        if (!get_array(reader, least, record, &number)) {
            return false;
        }
        least = number + 1;
    }
    return true;
}

static bool get_record(struct vxd_record_reader *reader, struct vxd_map_record *record)
{
    unsigned kind = vxd_bytes_get8(&reader->in);

    if (kind < VXD_MAP_RECORD_INSERT || kind > VXD_MAP_RECORD_CLEAR) {
        return vxd_record_bad(reader, "no kind of record");
    }
    record->kind = (enum vxd_map_record_kind)kind;
    if (!vxd_record_get_name(reader, record->author) ||
        !vxd_record_get_name(reader, record->client)) {
        return false;
    }
    record->unix_ns = vxd_bytes_get_signed(&reader->in);
    if ((record->kind != VXD_MAP_RECORD_CLEAR && !get_entries(reader, record)) ||
        (has_rows(record->kind) && !get_rows(reader, record))) {
        return false;
    }
    if (reader->in.is_bad) {
        return vxd_record_bad(reader, "the record ends too soon");
    }
    return reader->in.at == reader->in.n || vxd_record_bad(reader, "more bytes follow");
}

enum vxd_status vxd_map_record_decode(const void *bytes, size_t n_bytes,
                                      uint32_t rules_version, size_t max_bytes,
                                      struct vxd_map_record_decoded *out,
                                      struct vxd_err *err)
{
    struct vxd_record_reader reader = {
        .in = {.bytes = n_bytes > 0 ? bytes : (const void *)"", .n = n_bytes},
        .n_bytes_left = max_bytes != 0 ? max_bytes : VXD_RECORD_MAX_BYTES};

    *out = (struct vxd_map_record_decoded){0};
    if (rules_version <= VXD_MAP_RULES_BASE || rules_version > VXD_MAP_RULES_VERSION) {
        return vxd_fail(
            err, VXD_FAILED_PRECONDITION, NULL,
            "a map's record of rules %u; this program knows those up to %d: a "
            "newer server wrote it",
            rules_version, VXD_MAP_RULES_VERSION);
    }
    if (get_record(&reader, &out->record)) {
        out->memory = reader.blocks;
        return VXD_OK;
    }
    out->memory = reader.blocks;
    vxd_map_record_decoded_free(out);
    if (reader.is_out_of_memory && reader.what == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "a record that takes more than %zu bytes of memory",
                        max_bytes != 0 ? max_bytes : VXD_RECORD_MAX_BYTES);
    }
    return vxd_fail(err, VXD_DATA_LOSS, NULL, "a map's record is damaged at byte %zu: %s",
                    reader.in.at,
                    reader.what != NULL ? reader.what : "the record ends too soon");
}

void vxd_map_record_decoded_free(struct vxd_map_record_decoded *decoded)
{
    struct vxd_record_decoded blocks = {.memory = decoded->memory};

    vxd_record_decoded_free(&blocks);
    *decoded = (struct vxd_map_record_decoded){0};
}
