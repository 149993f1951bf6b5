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
#include "server/durable/record/byte_planes.h"
#include "server/durable/record/record_internal.h"

enum {
    WHAT_NUMBERS = 0,
    WHAT_KEYS = 1,
    WHAT_KEYS_INSERTED = 2
};

/* The components of keys, or numbers, as columns of integers of a width. */
struct columns {
    uint8_t *bytes; /* not changed by writing */
    size_t n;
    size_t n_columns;
    size_t width; /* bytes of each */
};

static uint64_t mask_of(size_t width)
{
    return width == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * width)) - 1;
}

static uint64_t load(const struct columns *columns, size_t row, size_t column)
{
    uint64_t value = 0;

    memcpy(&value, columns->bytes + (row * columns->n_columns + column) * columns->width,
           columns->width);
    return value;
}

/* --- writing ---------------------------------------------------------------------------- */

static void put_name(struct vxd_bytes_out *out, const char *name)
{
    size_t n = strlen(name);

    vxd_bytes_put8(out, (unsigned)n);
    vxd_bytes_put(out, name, n);
}

/* The differences of one column, their bytes in planes one behind the other. */
static void split(const struct columns *columns, size_t column, uint8_t *planes)
{
    uint64_t mask = mask_of(columns->width);
    size_t top = 8 * columns->width - 1;
    uint64_t before = 0;

    for (size_t i = 0; i < columns->n; i++) {
        uint64_t value = load(columns, i, column);
        uint64_t difference = (value - before) & mask;
        uint64_t sign = difference >> top != 0 ? mask : 0;
        uint64_t folded = ((difference << 1) & mask) ^ sign;

        for (size_t k = 0; k < columns->width; k++) {
            planes[k * columns->n + i] = (uint8_t)(folded >> (8 * k));
        }
        before = value;
    }
}

static enum vxd_status put_columns(struct vxd_bytes_out *out,
                                   const struct columns *columns, struct vxd_err *err)
{
    uint8_t *planes;

    if (columns->n == 0) {
        return VXD_OK;
    }
    planes = calloc(columns->n, columns->width);
    if (planes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a record");
    }
    for (size_t j = 0; j < columns->n_columns; j++) {
        split(columns, j, planes);
        for (size_t k = 0; k < columns->width; k++) {
            vxd_byte_plane_put(out, planes + k * columns->n, columns->n);
        }
    }
    free(planes);
    return VXD_OK;
}

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
    struct columns columns = {.bytes = (uint8_t *)(uintptr_t)record->numbers,
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
    return put_columns(out, &columns, err);
}

enum vxd_status vxd_map_record_encode(const struct vxd_map_record *record,
                                      struct vxd_record_bytes *out, struct vxd_err *err)
{
    struct vxd_bytes_out bytes = {0};
    enum vxd_status status = VXD_OK;

    vxd_bytes_put8(&bytes, (unsigned)record->kind);
    put_name(&bytes, record->author);
    put_name(&bytes, record->client);
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

static bool get_name(struct vxd_record_reader *reader, char out[VXD_RECORD_NAME_BYTES])
{
    unsigned n = vxd_bytes_get8(&reader->in);
    const uint8_t *from =
        n < VXD_RECORD_NAME_BYTES ? vxd_bytes_get(&reader->in, n) : NULL;

    if (from == NULL || (n > 0 && memchr(from, 0, n) != NULL)) {
        return vxd_record_bad(reader, "not a name");
    }
    memcpy(out, from, n);
    out[n] = '\0';
    return true;
}

/* One column from its planes. */
static void join(const struct columns *columns, size_t column, const uint8_t *planes)
{
    uint64_t mask = mask_of(columns->width);
    uint64_t before = 0;

    for (size_t i = 0; i < columns->n; i++) {
        uint64_t folded = 0;

        for (size_t k = 0; k < columns->width; k++) {
            folded |= (uint64_t)planes[k * columns->n + i] << (8 * k);
        }
        before += (folded >> 1) ^ ((folded & 1) != 0 ? mask : 0);
        before &= mask;
        memcpy(columns->bytes + (i * columns->n_columns + column) * columns->width,
               &before, columns->width);
    }
}

static bool get_columns(struct vxd_record_reader *reader, struct columns *columns)
{
    uint8_t *planes;

    columns->bytes = vxd_record_alloc(reader, (uint64_t)columns->n + 1,
                                      columns->n_columns * columns->width);
    planes = columns->bytes != NULL
                 ? vxd_record_alloc(reader, (uint64_t)columns->n + 1, columns->width)
                 : NULL;
    if (planes == NULL) {
        return false;
    }
    for (size_t j = 0; j < columns->n_columns && columns->n > 0; j++) {
        for (size_t k = 0; k < columns->width; k++) {
            if (!vxd_byte_plane_get(&reader->in, planes + k * columns->n, columns->n)) {
                return vxd_record_bad(reader, "not a plane of keys");
            }
        }
        join(columns, j, planes);
    }
    return true;
}

static bool get_key_type(struct vxd_record_reader *reader, struct vxd_map_record *record,
                         struct columns *columns)
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
    struct columns columns = {.n_columns = 1, .width = sizeof *record->numbers};

    if (n > INT32_MAX ||
        what > (record->kind == VXD_MAP_RECORD_UPDATE ? WHAT_KEYS_INSERTED : WHAT_KEYS) ||
        (what == WHAT_NUMBERS && record->kind != VXD_MAP_RECORD_UPDATE)) {
        return vxd_record_bad(reader, "no number or kind of entries");
    }
    columns.n = (size_t)n;
    if ((what != WHAT_NUMBERS && !get_key_type(reader, record, &columns)) ||
        !get_columns(reader, &columns)) {
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
    if (!get_name(reader, record->author) || !get_name(reader, record->client)) {
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
