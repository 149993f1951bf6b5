// SPDX-License-Identifier: Apache-2.0
/* A record (numbers are base 128, the low seven bits first; s = signed, zigzag):
 *
 *      1  kind: 1 edit, 2 undo, 3 redo, 4 create, 5 branch, 6 drop, 7 integrate, 8 fuse,
 *         12 decay, 13 pin, 26 cast, 27 cast and fuse
 *      1  bytes of the head's name, 1 to 63, and the name
 *      1  bytes of the author's name, 0 to 63, and the name
 *      1  bytes of the client's name, 0 to 63, and the name
 *         unix_ns (s)
 *         version: epoch (number), n (number)
 *    undo, redo, branch
 *         of_version: epoch (number), n (number)
 *    branch
 *      1  bytes of the name of the head it comes from, 1 to 63, and the name
 *    create
 *         bytes of the spec (number), and the spec
 *    fuse, cast and fuse
 *      1  0, or 1: it forgets
 *    cast, cast and fuse
 *      1  1: what rays pass is erased, 0: it is set free
 *         scans (number), and each of them (record_scans.c)
 *    pin
 *         operations on the pins (number), the last ones of those that follow
 *    edit, integrate, fuse, pin
 *         operations (number, 0 to 4096), and each of them (record_ops.c)
 *    decay
 *      1  1 where it forgets, plus 2 where it keeps a ball
 *         factor (number, 0 to 65536), step (number, 0 to 255)
 *         low x y z, high x y z (numbers, 0 to 2^21)
 *         where it keeps a ball: centre x y z (s), radius (number)
 *         decayed_ns (s)
 *
 * and nothing behind. */
#include "server/durable/record/scene_record.h"

#include "server/durable/record/record_internal.h"

enum {
    MAX_STEP = 255,
    MAX_VOXEL = 1 << VXD_SVDAG_MAX_DEPTH,
    MAX_CENTRE = 1 << 30
};

#define MAX_RADIUS ((int64_t)1 << 31)

void *vxd_record_alloc(struct vxd_record_reader *reader, uint64_t n, size_t item_bytes)
{
    struct vxd_record_block *block = NULL;
    size_t n_bytes;

    if (n <= reader->n_bytes_left && vxd_size_mul((size_t)n, item_bytes, &n_bytes) &&
        n_bytes <= reader->n_bytes_left) {
        block = malloc(sizeof *block + n_bytes);
    }
    if (block == NULL) {
        reader->is_out_of_memory = true;
        return NULL;
    }
    reader->n_bytes_left -= n_bytes;
    block->next = reader->blocks;
    reader->blocks = block;
    return block->bytes;
}

bool vxd_record_bad(struct vxd_record_reader *reader, const char *what)
{
    if (reader->what == NULL) {
        reader->what = what;
    }
    return false;
}

static bool has_ops(enum vxd_record_kind kind)
{
    return kind == VXD_RECORD_EDIT || kind == VXD_RECORD_INTEGRATE ||
           kind == VXD_RECORD_FUSE || kind == VXD_RECORD_PIN;
}

static bool is_kind(unsigned kind)
{
    return (kind >= VXD_RECORD_EDIT && kind <= VXD_RECORD_FUSE) ||
           kind == VXD_RECORD_DECAY || kind == VXD_RECORD_PIN ||
           kind == VXD_RECORD_CAST || kind == VXD_RECORD_CAST_FUSE;
}

static bool has_of_version(enum vxd_record_kind kind)
{
    return kind == VXD_RECORD_UNDO || kind == VXD_RECORD_REDO ||
           kind == VXD_RECORD_BRANCH;
}

static void put_name(struct vxd_bytes_out *out, const char *name, size_t n)
{
    vxd_bytes_put8(out, (unsigned)n);
    vxd_bytes_put(out, name, n);
}

static void put_version(struct vxd_bytes_out *out, const struct vxd_version *version)
{
    vxd_bytes_put_number(out, version->epoch);
    vxd_bytes_put_number(out, version->n);
}

static enum vxd_status check_names(const struct vxd_record *record, struct vxd_err *err)
{
    if (!is_kind((unsigned)record->kind)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "kind", "%d is no kind of record",
                        (int)record->kind);
    }
    if (record->head[0] == '\0' || memchr(record->head, 0, sizeof record->head) == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "head", "must have 1 to 63 bytes");
    }
    if (memchr(record->author, 0, sizeof record->author) == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "author", "must have up to 63 bytes");
    }
    if (memchr(record->client, 0, sizeof record->client) == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "client", "must have up to 63 bytes");
    }
    if (record->kind == VXD_RECORD_BRANCH &&
        (record->from[0] == '\0' ||
         memchr(record->from, 0, sizeof record->from) == NULL)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "from", "must have 1 to 63 bytes");
    }
    if (record->n_ops > VXD_SVDAG_MAX_OPS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "ops", "%zu, must be at most %d",
                        record->n_ops, VXD_SVDAG_MAX_OPS);
    }
    return VXD_OK;
}

static bool is_of_scan(const struct vxd_svdag_op *op)
{
    return op->shape.kind == VXD_SVDAG_VOXELS &&
           (op->action == VXD_SVDAG_FILL || op->action == VXD_SVDAG_SET_FREE);
}

static enum vxd_status check_scan(const struct vxd_record *record, struct vxd_err *err)
{
    for (size_t i = 0; i < record->n_ops; i++) {
        if (!is_of_scan(&record->ops[i])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "ops",
                            "%zu is not of a scan: no list that is filled or set free",
                            i);
        }
    }
    return VXD_OK;
}

/* Whether operations on pins are those that pin and unpin. */
static bool are_of_pins(const struct vxd_record *record)
{
    if (record->n_pin_ops > record->n_ops) {
        return false;
    }
    for (size_t i = record->n_ops - record->n_pin_ops; i < record->n_ops; i++) {
        if (record->ops[i].action != VXD_SVDAG_FILL &&
            record->ops[i].action != VXD_SVDAG_ERASE) {
            return false;
        }
    }
    return true;
}

static bool is_decay(const struct vxd_occupancy_decay *decay)
{
    bool is_good = decay->factor <= VXD_OCCUPANCY_DECAY_ONE && decay->step >= 0 &&
                   decay->step <= MAX_STEP && decay->radius >= 0 &&
                   decay->radius <= MAX_RADIUS;

    for (int i = 0; i < 3; i++) {
        is_good = is_good && decay->low[i] >= 0 && decay->high[i] >= 0 &&
                  decay->low[i] <= MAX_VOXEL && decay->high[i] <= MAX_VOXEL &&
                  decay->centre[i] > -MAX_CENTRE && decay->centre[i] < MAX_CENTRE;
    }
    return is_good;
}

static void put_decay(struct vxd_bytes_out *out, const struct vxd_record *record)
{
    const struct vxd_occupancy_decay *decay = &record->decay;

    vxd_bytes_put8(out, (record->forgets ? 1u : 0u) | (decay->keeps ? 2u : 0u));
    vxd_bytes_put_number(out, decay->factor);
    vxd_bytes_put_number(out, (uint64_t)decay->step);
    for (int i = 0; i < 3; i++) {
        vxd_bytes_put_number(out, (uint64_t)decay->low[i]);
    }
    for (int i = 0; i < 3; i++) {
        vxd_bytes_put_number(out, (uint64_t)decay->high[i]);
    }
    for (int i = 0; i < 3 && decay->keeps; i++) {
        vxd_bytes_put_signed(out, decay->centre[i]);
    }
    if (decay->keeps) {
        vxd_bytes_put_number(out, (uint64_t)decay->radius);
    }
    vxd_bytes_put_signed(out, record->decayed_ns);
}

static enum vxd_status put_rest(struct vxd_bytes_out *out,
                                const struct vxd_record *record, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (has_of_version(record->kind)) {
        put_version(out, &record->of_version);
    }
    if (record->kind == VXD_RECORD_BRANCH) {
        put_name(out, record->from, strlen(record->from));
    } else if (record->kind == VXD_RECORD_CREATE) {
        vxd_bytes_put_number(out, record->n_spec_bytes);
        vxd_bytes_put(out, record->spec, record->n_spec_bytes);
    } else if (record->kind == VXD_RECORD_DECAY) {
        VXD_TRY(is_decay(&record->decay)
                    ? VXD_OK
                    : vxd_fail(err, VXD_INVALID_ARGUMENT, "decay", "is out of range"));
        put_decay(out, record);
    } else if (vxd_record_casts(record->kind)) {
        VXD_TRY(vxd_record_put_scans(out, record, err));
    } else if (has_ops(record->kind)) {
        if (record->kind == VXD_RECORD_PIN) {
            VXD_TRY(are_of_pins(record)
                        ? VXD_OK
                        : vxd_fail(err, VXD_INVALID_ARGUMENT, "n_pin_ops",
                                   "the last %zu of %zu operations are not of pins",
                                   record->n_pin_ops, record->n_ops));
            vxd_bytes_put_number(out, record->n_pin_ops);
        }
        if (record->kind == VXD_RECORD_FUSE) {
            vxd_bytes_put8(out, record->forgets ? 1 : 0);
            VXD_TRY(check_scan(record, err));
        }
        vxd_bytes_put_number(out, record->n_ops);
        for (size_t i = 0; i < record->n_ops; i++) {
            VXD_TRY(vxd_record_put_op(out, &record->ops[i], i, err));
        }
    }
out:
    return status;
}

enum vxd_status vxd_record_encode(const struct vxd_record *record,
                                  struct vxd_record_bytes *out, struct vxd_err *err)
{
    struct vxd_bytes_out bytes = {0};
    enum vxd_status status;

    VXD_TRY(check_names(record, err));
    vxd_bytes_put8(&bytes, (unsigned)record->kind);
    put_name(&bytes, record->head, strlen(record->head));
    put_name(&bytes, record->author, strlen(record->author));
    put_name(&bytes, record->client, strlen(record->client));
    vxd_bytes_put_signed(&bytes, record->unix_ns);
    put_version(&bytes, &record->version);
    VXD_TRY(put_rest(&bytes, record, err));
    if (bytes.is_out_of_memory) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a record"));
    }
    *out = (struct vxd_record_bytes){.bytes = bytes.bytes, .n_bytes = bytes.n};
    bytes.bytes = NULL;
out:
    free(bytes.bytes);
    return status;
}

void vxd_record_bytes_free(struct vxd_record_bytes *bytes)
{
    free(bytes->bytes);
    *bytes = (struct vxd_record_bytes){0};
}

static bool get_name(struct vxd_record_reader *reader, char out[VXD_RECORD_NAME_BYTES],
                     unsigned n_least)
{
    unsigned n = vxd_bytes_get8(&reader->in);
    const uint8_t *from =
        n < VXD_RECORD_NAME_BYTES ? vxd_bytes_get(&reader->in, n) : NULL;

    if (from == NULL || n < n_least || memchr(from, 0, n) != NULL) {
        return vxd_record_bad(reader, "not a name");
    }
    memcpy(out, from, n);
    out[n] = '\0';
    return true;
}

static void get_version(struct vxd_bytes_in *in, struct vxd_version *version)
{
    version->epoch = vxd_bytes_get_number(in);
    version->n = vxd_bytes_get_number(in);
}

static bool get_spec(struct vxd_record_reader *reader, struct vxd_record *record)
{
    uint64_t n = vxd_bytes_get_number(&reader->in);
    const uint8_t *from = n <= SIZE_MAX ? vxd_bytes_get(&reader->in, (size_t)n) : NULL;
    uint8_t *spec;

    if (from == NULL) {
        return vxd_record_bad(reader, "not a spec");
    }
    spec = vxd_record_alloc(reader, n > 0 ? n : 1, 1);
    if (spec == NULL) {
        return false;
    }
    memcpy(spec, from, (size_t)n);
    record->spec = spec;
    record->n_spec_bytes = (size_t)n;
    return true;
}

static bool get_ops(struct vxd_record_reader *reader, struct vxd_record *record)
{
    uint64_t n = vxd_bytes_get_number(&reader->in);
    struct vxd_svdag_op *ops;

    if (reader->in.is_bad || n > VXD_SVDAG_MAX_OPS) {
        return vxd_record_bad(reader, "not a number of operations");
    }
    ops = vxd_record_alloc(reader, n > 0 ? n : 1, sizeof *ops);
    if (ops != NULL) {
        memset(ops, 0, (size_t)n * sizeof *ops);
    }
    for (uint64_t i = 0; ops != NULL && i < n; i++) {
        if (!vxd_record_get_op(reader, &ops[i])) {
            return false;
        }
    }
    record->ops = ops;
    record->n_ops = (size_t)n;
    return ops != NULL;
}

static bool get_head(struct vxd_record_reader *reader, struct vxd_record *record)
{
    unsigned kind = vxd_bytes_get8(&reader->in);

    if (reader->in.is_bad || !is_kind(kind)) {
        return vxd_record_bad(reader, "no kind of record");
    }
    record->kind = (enum vxd_record_kind)kind;
    if (!get_name(reader, record->head, 1) || !get_name(reader, record->author, 0) ||
        !get_name(reader, record->client, 0)) {
        return false;
    }
    record->unix_ns = vxd_bytes_get_signed(&reader->in);
    get_version(&reader->in, &record->version);
    if (has_of_version(record->kind)) {
        get_version(&reader->in, &record->of_version);
    }
    if (record->kind == VXD_RECORD_BRANCH && !get_name(reader, record->from, 1)) {
        return false;
    }
    return !reader->in.is_bad || vxd_record_bad(reader, "the record ends too soon");
}

/* What only a scan's record has, before and behind its operations. */
static bool get_scan(struct vxd_record_reader *reader, struct vxd_record *record)
{
    unsigned forgets = vxd_bytes_get8(&reader->in);

    if (reader->in.is_bad || forgets > 1) {
        return vxd_record_bad(reader, "not a scan");
    }
    record->forgets = forgets == 1;
    if (!get_ops(reader, record)) {
        return false;
    }
    for (size_t i = 0; i < record->n_ops; i++) {
        if (!is_of_scan(&record->ops[i])) {
            return vxd_record_bad(reader, "an operation that is not of a scan");
        }
    }
    return true;
}

static bool get_pins(struct vxd_record_reader *reader, struct vxd_record *record)
{
    uint64_t n = vxd_bytes_get_number(&reader->in);

    if (reader->in.is_bad || n > VXD_SVDAG_MAX_OPS) {
        return vxd_record_bad(reader, "not a number of operations on pins");
    }
    record->n_pin_ops = (size_t)n;
    return get_ops(reader, record) &&
           (are_of_pins(record) || vxd_record_bad(reader, "an operation on no pins"));
}

static int64_t get_below(struct vxd_bytes_in *in, int64_t most)
{
    uint64_t n = vxd_bytes_get_number(in);

    in->is_bad = in->is_bad || n > (uint64_t)most;
    return in->is_bad ? 0 : (int64_t)n;
}

static bool get_decay(struct vxd_record_reader *reader, struct vxd_record *record)
{
    struct vxd_bytes_in *in = &reader->in;
    struct vxd_occupancy_decay *decay = &record->decay;
    unsigned flags = vxd_bytes_get8(in);

    record->forgets = (flags & 1u) != 0;
    decay->keeps = (flags & 2u) != 0;
    decay->factor = (uint32_t)get_below(in, VXD_OCCUPANCY_DECAY_ONE);
    decay->step = (int32_t)get_below(in, MAX_STEP);
    for (int i = 0; i < 3; i++) {
        decay->low[i] = get_below(in, MAX_VOXEL);
    }
    for (int i = 0; i < 3; i++) {
        decay->high[i] = get_below(in, MAX_VOXEL);
    }
    for (int i = 0; i < 3 && decay->keeps; i++) {
        decay->centre[i] = vxd_bytes_get_signed(in);
    }
    decay->radius = decay->keeps ? get_below(in, MAX_RADIUS) : 0;
    record->decayed_ns = vxd_bytes_get_signed(in);
    return (!in->is_bad && flags < 4 && is_decay(decay)) ||
           vxd_record_bad(reader, "not a decay");
}

/* Whether its operations stand alone. */
static bool has_ops_alone(enum vxd_record_kind kind)
{
    return kind == VXD_RECORD_EDIT || kind == VXD_RECORD_INTEGRATE;
}

static bool get_record(struct vxd_record_reader *reader, struct vxd_record *record)
{
    if (!get_head(reader, record) ||
        (record->kind == VXD_RECORD_CREATE && !get_spec(reader, record)) ||
        (record->kind == VXD_RECORD_FUSE && !get_scan(reader, record)) ||
        (record->kind == VXD_RECORD_PIN && !get_pins(reader, record)) ||
        (vxd_record_casts(record->kind) && !vxd_record_get_scans(reader, record)) ||
        (record->kind == VXD_RECORD_DECAY && !get_decay(reader, record)) ||
        (has_ops_alone(record->kind) && !get_ops(reader, record))) {
        return false;
    }
    if (reader->in.is_bad) {
        return vxd_record_bad(reader, "the record ends too soon");
    }
    return reader->in.at == reader->in.n || vxd_record_bad(reader, "more bytes follow");
}

static void free_blocks(struct vxd_record_block *block)
{
    while (block != NULL) {
        struct vxd_record_block *next = block->next;

        free(block);
        block = next;
    }
}

/* errors  FAILED_PRECONDITION */
static enum vxd_status check_rules(uint32_t rules_version, struct vxd_err *err)
{
    if (rules_version >= 1 && rules_version <= VXD_RULES_VERSION) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                    "a record of rules %u; this program knows those up to %u: a newer "
                    "server wrote it",
                    rules_version, VXD_RULES_VERSION);
}

static enum vxd_status fail_damaged(const struct vxd_record_reader *reader,
                                    struct vxd_err *err)
{
    return vxd_fail(err, VXD_DATA_LOSS, NULL, "a record is damaged at byte %zu: %s",
                    reader->in.at,
                    reader->what != NULL ? reader->what : "the record ends too soon");
}

enum vxd_status vxd_record_decode_head(const void *bytes, size_t n_bytes,
                                       uint32_t rules_version, struct vxd_record *out,
                                       struct vxd_err *err)
{
    struct vxd_record_reader reader = {
        .in = {.bytes = n_bytes > 0 ? bytes : (const void *)"", .n = n_bytes}};
    enum vxd_status status = check_rules(rules_version, err);

    *out = (struct vxd_record){0};
    if (status == VXD_OK && !get_head(&reader, out)) {
        status = fail_damaged(&reader, err);
    }
    return status;
}

enum vxd_status vxd_record_decode(const void *bytes, size_t n_bytes,
                                  uint32_t rules_version, size_t max_bytes,
                                  struct vxd_record_decoded *out, struct vxd_err *err)
{
    struct vxd_record_reader reader = {
        .in = {.bytes = n_bytes > 0 ? bytes : (const void *)"", .n = n_bytes},
        .n_bytes_left = max_bytes != 0 ? max_bytes : VXD_RECORD_MAX_BYTES};
    enum vxd_status status = check_rules(rules_version, err);
    bool is_good;

    *out = (struct vxd_record_decoded){0};
    if (status != VXD_OK) {
        return status;
    }
    is_good = get_record(&reader, &out->record);
    for (size_t i = 0; i < sizeof reader.planes / sizeof reader.planes[0]; i++) {
        free(reader.planes[i].bytes);
    }
    if (is_good) {
        out->memory = reader.blocks;
        out->n_bytes =
            (max_bytes != 0 ? max_bytes : VXD_RECORD_MAX_BYTES) - reader.n_bytes_left;
        return VXD_OK;
    }
    free_blocks(reader.blocks);
    *out = (struct vxd_record_decoded){0};
    if (reader.is_out_of_memory && reader.what == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "a record that takes more than %zu bytes of memory",
                        max_bytes != 0 ? max_bytes : VXD_RECORD_MAX_BYTES);
    }
    return fail_damaged(&reader, err);
}

void vxd_record_decoded_free(struct vxd_record_decoded *decoded)
{
    free_blocks(decoded->memory);
    *decoded = (struct vxd_record_decoded){0};
}
