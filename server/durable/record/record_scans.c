// SPDX-License-Identifier: Apache-2.0
/* A scan by the cells in which its rays end (numbers are base 128, s = signed; planes those of
 * byte_planes.c). A cell's voxel is the cell divided by 256, rounded down.
 *
 *      1  1 where it fills what its points hit, plus 2 where its voxels have values, plus 4 where
 *         each ray has an origin of its own
 *         value (number, 0 to 65535)
 *         base x y z (s, 2^40 at most either way)
 *     24  origin x y z, three doubles, the low byte first
 *         n, rays (number, 1 to 2^28); those that hit (number, 0 to n)
 *         bytes of the plane of far steps (number)
 *     plane  n bytes: of each ray the step from the voxel in which the one before it ends (from
 *            0 0 0 at first), 49 (x + 1) + 7 (y + 3) + z + 3 where x is -1 to 3 and y and z are -3 to
 *            3, otherwise 255
 *     plane  of each such ray x, y and z of the step, as signed numbers
 *    3 n   x, y and z of each cell, the low bytes
 *   with values, one for each hit ray whose voxel is another one than that of the ray before:
 *     plane  their low halves
 *     plane  their high halves
 *   with origins:
 *            three columns of 4 bytes (record_columns.c): the cells that the rays start in
 *
 * Rays that hit come first, and are sorted by the Morton code of their voxels, so nearly all steps
 * stay in a leaf. What no order makes smaller is where in its voxel a ray ends: 3 bytes. */
#include <math.h>

#include "server/durable/record/byte_planes.h"
#include "server/durable/record/record_internal.h"

enum {
    FILLS = 1,
    HAS_VALUES = 2,
    HAS_ORIGINS = 4,
    FAR_STEP = 255,
    CELL_BITS = 8,
    MAX_RAYS = 1 << 28,
    MOST_BYTES_OF_STEP = 9 /* three numbers that fit 16 bits with their sign */
};

#define MAX_BASE ((int64_t)1 << 40)

/* A step between voxels. */
struct step {
    int32_t x;
    int32_t y;
    int32_t z;
};

static bool is_same_voxel(const int32_t *a, const int32_t *b)
{
    return a[0] >> CELL_BITS == b[0] >> CELL_BITS &&
           a[1] >> CELL_BITS == b[1] >> CELL_BITS &&
           a[2] >> CELL_BITS == b[2] >> CELL_BITS;
}

size_t vxd_record_count_values(const struct vxd_record_scan *scan)
{
    size_t n = 0;

    for (size_t i = 0; i < scan->n_hits; i++) {
        n += i == 0 || !is_same_voxel(scan->ends + 3 * i, scan->ends + 3 * (i - 1));
    }
    return n;
}

static bool are_cells(const int32_t *cells, size_t n)
{
    uint32_t all = 0;

    for (size_t i = 0; i < 3 * n; i++) {
        all |= (uint32_t)(cells[i] >= 0 ? cells[i] : ~cells[i]);
    }
    return all < (uint32_t)VXD_SVDAG_MAX_RAY_CELL;
}

/* What is wrong with a scan, but for its cells; NULL = nothing. */
static const char *check_terms(const struct vxd_record_scan *scan)
{
    for (int a = 0; a < 3; a++) {
        if (scan->base[a] > MAX_BASE || scan->base[a] < -MAX_BASE ||
            !isfinite(scan->origin[a])) {
            return "a scan's base or origin is out of range";
        }
    }
    return scan->n == 0 || scan->n > MAX_RAYS || scan->n_hits > scan->n
               ? "a scan has no proper number of rays"
           : scan->value > UINT16_MAX ? "a scan's value is none"
                                      : NULL;
}

/* --- writing ---------------------------------------------------------------------------- */

/* The steps of all rays, and the low bytes of their cells. */
static void split_ends(const struct vxd_record_scan *scan, uint8_t *steps, uint8_t *low,
                       struct vxd_bytes_out *far)
{
    struct step last = {0, 0, 0};

    for (size_t i = 0; i < scan->n; i++) {
        const int32_t *end = scan->ends + 3 * i;
        const struct step at = {end[0] >> CELL_BITS, end[1] >> CELL_BITS,
                                end[2] >> CELL_BITS};
        const int32_t x = at.x - last.x;
        const int32_t y = at.y - last.y;
        const int32_t z = at.z - last.z;

        if ((uint32_t)(x + 1) < 5 && (uint32_t)(y + 3) < 7 && (uint32_t)(z + 3) < 7) {
            steps[i] = (uint8_t)(49 * (x + 1) + 7 * (y + 3) + z + 3);
        } else {
            steps[i] = FAR_STEP;
            vxd_bytes_put_signed(far, x);
            vxd_bytes_put_signed(far, y);
            vxd_bytes_put_signed(far, z);
        }
        low[3 * i] = (uint8_t)end[0];
        low[3 * i + 1] = (uint8_t)end[1];
        low[3 * i + 2] = (uint8_t)end[2];
        last = at;
    }
}

static void put_ends(struct vxd_bytes_out *out, const struct vxd_record_scan *scan)
{
    struct vxd_bytes_out bytes = {0};
    struct vxd_bytes_out far = {0};
    uint8_t *steps = vxd_bytes_reserve(&bytes, 4 * scan->n);

    if (steps == NULL) {
        out->is_out_of_memory = true;
        return;
    }
    split_ends(scan, steps, steps + scan->n, &far);
    (void)vxd_bytes_reserve(out, 5 * scan->n); /* what it mostly takes */
    vxd_bytes_put_number(out, far.n);
    vxd_byte_plane_put(out, steps, scan->n);
    vxd_byte_plane_put(out, far.n > 0 ? far.bytes : steps, far.n);
    vxd_bytes_put(out, steps + scan->n, 3 * scan->n);
    out->is_out_of_memory = out->is_out_of_memory || far.is_out_of_memory;
    free(bytes.bytes);
    free(far.bytes);
}

static void put_values(struct vxd_bytes_out *out, const struct vxd_record_scan *scan)
{
    const size_t n = vxd_record_count_values(scan);
    struct vxd_bytes_out plane = {0};
    uint8_t *to = vxd_bytes_reserve(&plane, n);

    for (int half = 0; to != NULL && half < 2; half++) {
        for (size_t i = 0; i < n; i++) {
            to[i] = (uint8_t)(scan->values[i] >> 8 * half);
        }
        vxd_byte_plane_put(out, to, n);
    }
    out->is_out_of_memory = out->is_out_of_memory || plane.is_out_of_memory;
    free(plane.bytes);
}

static void put_double(struct vxd_bytes_out *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++) {
        vxd_bytes_put8(out, (unsigned)(bits >> 8 * i & 255));
    }
}

static enum vxd_status put_scan(struct vxd_bytes_out *out,
                                const struct vxd_record_scan *scan, size_t number,
                                struct vxd_err *err)
{
    struct vxd_record_columns origins = {/* put_columns only reads them. */
                                         .bytes = (uint8_t *)(uintptr_t)scan->origins,
                                         .n = scan->n,
                                         .n_columns = 3,
                                         .width = sizeof(int32_t)};
    const char *what = check_terms(scan);

    if (what == NULL && (!are_cells(scan->ends, scan->n) ||
                         (scan->origins != NULL && !are_cells(scan->origins, scan->n)))) {
        what = "a ray's cell is too far from the base";
    }
    if (what != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "scans", "%zu: %s", number, what);
    }
    vxd_bytes_put8(out, (scan->fills ? (unsigned)FILLS : 0) |
                            (scan->values != NULL ? (unsigned)HAS_VALUES : 0) |
                            (scan->origins != NULL ? (unsigned)HAS_ORIGINS : 0));
    vxd_bytes_put_number(out, scan->value);
    for (int a = 0; a < 3; a++) {
        vxd_bytes_put_signed(out, scan->base[a]);
    }
    for (int a = 0; a < 3; a++) {
        put_double(out, scan->origin[a]);
    }
    vxd_bytes_put_number(out, scan->n);
    vxd_bytes_put_number(out, scan->n_hits);
    put_ends(out, scan);
    if (scan->values != NULL) {
        put_values(out, scan);
    }
    return scan->origins != NULL ? vxd_record_put_columns(out, &origins, err) : VXD_OK;
}

/* How many operations scans make. */
static size_t count_scan_ops(const struct vxd_record *record)
{
    size_t n = record->n_scans;

    for (size_t i = 0; i < record->n_scans; i++) {
        n += record->scans[i].fills ? 1 : 0;
    }
    return n;
}

enum vxd_status vxd_record_put_scans(struct vxd_bytes_out *out,
                                     const struct vxd_record *record, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (record->n_scans > VXD_SVDAG_MAX_OPS ||
        count_scan_ops(record) > VXD_SVDAG_MAX_OPS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "scans",
                        "%zu, must make at most %d operations", record->n_scans,
                        VXD_SVDAG_MAX_OPS);
    }
    if (record->kind == VXD_RECORD_CAST_FUSE) {
        vxd_bytes_put8(out, record->forgets ? 1 : 0);
    }
    vxd_bytes_put8(out, record->erases ? 1 : 0);
    vxd_bytes_put_number(out, record->n_scans);
    for (size_t i = 0; i < record->n_scans && status == VXD_OK; i++) {
        status = put_scan(out, &record->scans[i], i, err);
    }
    return status;
}

/* --- reading ---------------------------------------------------------------------------- */

static double get_double(struct vxd_bytes_in *in)
{
    const uint8_t *from = vxd_bytes_get(in, 8);
    uint64_t bits = 0;
    double value;

    for (int i = 0; from != NULL && i < 8; i++) {
        bits |= (uint64_t)from[i] << 8 * i;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A plane of n bytes in memory of the record's; NULL = none. */
static uint8_t *get_plane(struct vxd_record_reader *reader, uint64_t n)
{
    uint8_t *plane = vxd_record_alloc(reader, n + 1, 1);

    if (plane != NULL && !vxd_byte_plane_get(&reader->in, plane, (size_t)n)) {
        (void)vxd_record_bad(reader, "a plane is damaged");
        return NULL;
    }
    return plane;
}

static struct step step_of(unsigned step)
{
    return (struct step){(int32_t)(step / 49) - 1, (int32_t)(step / 7 % 7) - 3,
                         (int32_t)(step % 7) - 3};
}

static int32_t get_far(struct vxd_bytes_in *in)
{
    int64_t step = vxd_bytes_get_signed(in);

    in->is_bad = in->is_bad || step > UINT16_MAX || step < -UINT16_MAX;
    return in->is_bad ? 0 : (int32_t)step;
}

/* Makes the cells of steps and low bytes. False where one is too far, or a step is none. */
static bool join_ends(const uint8_t *steps, const uint8_t *low, struct vxd_bytes_in *far,
                      size_t n, int32_t *ends)
{
    const int32_t most = VXD_SVDAG_MAX_RAY_CELL >> CELL_BITS;
    struct step at = {0, 0, 0};

    for (size_t i = 0; i < n; i++) {
        struct step step = step_of(steps[i]);

        if (steps[i] == FAR_STEP) {
            step = (struct step){get_far(far), 0, 0};
            step.y = get_far(far);
            step.z = get_far(far);
        } else if (steps[i] >= 5 * 49) {
            return false;
        }
        at = (struct step){at.x + step.x, at.y + step.y, at.z + step.z};
        if (far->is_bad || at.x < -most || at.x >= most || at.y < -most || at.y >= most ||
            at.z < -most || at.z >= most) {
            return false;
        }
        ends[3 * i] = at.x * (1 << CELL_BITS) + low[3 * i];
        ends[3 * i + 1] = at.y * (1 << CELL_BITS) + low[3 * i + 1];
        ends[3 * i + 2] = at.z * (1 << CELL_BITS) + low[3 * i + 2];
    }
    return far->at == far->n;
}

static bool get_ends(struct vxd_record_reader *reader, struct vxd_record_scan *scan)
{
    uint64_t n_far = vxd_bytes_get_number(&reader->in);
    struct vxd_bytes_in far = {.bytes = (const uint8_t *)"", .n = (size_t)n_far};
    const uint8_t *steps;
    const uint8_t *low;
    int32_t *ends;

    if (reader->in.is_bad || n_far > MOST_BYTES_OF_STEP * (uint64_t)scan->n) {
        return vxd_record_bad(reader, "the plane of far steps has no proper length");
    }
    ends = vxd_record_alloc(reader, scan->n, 3 * sizeof *ends);
    steps = ends != NULL ? get_plane(reader, scan->n) : NULL;
    far.bytes = steps != NULL ? get_plane(reader, n_far) : NULL;
    if (far.bytes == NULL) {
        return false;
    }
    low = vxd_bytes_get(&reader->in, 3 * scan->n);
    if (low == NULL) {
        return vxd_record_bad(reader, "the record ends too soon");
    }
    scan->ends = ends;
    return join_ends(steps, low, &far, scan->n, ends) ||
           vxd_record_bad(reader, "a ray ends too far from the base");
}

static bool get_values(struct vxd_record_reader *reader, struct vxd_record_scan *scan)
{
    const size_t n = vxd_record_count_values(scan);
    uint16_t *values = vxd_record_alloc(reader, n + 1, sizeof *values);
    const uint8_t *low = values != NULL ? get_plane(reader, n) : NULL;
    const uint8_t *high = low != NULL ? get_plane(reader, n) : NULL;

    if (high == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = (uint16_t)(low[i] | high[i] << 8);
    }
    scan->values = values;
    return true;
}

static bool get_origins(struct vxd_record_reader *reader, struct vxd_record_scan *scan)
{
    struct vxd_record_columns columns = {
        .n = scan->n, .n_columns = 3, .width = sizeof(int32_t)};

    if (!vxd_record_get_columns(reader, &columns)) {
        return false;
    }
    scan->origins = (const int32_t *)(const void *)columns.bytes;
    return are_cells(scan->origins, scan->n) ||
           vxd_record_bad(reader, "a ray starts too far from the base");
}

static bool get_scan(struct vxd_record_reader *reader, struct vxd_record_scan *scan)
{
    struct vxd_bytes_in *in = &reader->in;
    unsigned flags = vxd_bytes_get8(in);
    uint64_t value = vxd_bytes_get_number(in);
    uint64_t n;
    uint64_t n_hits;
    const char *what;

    scan->fills = (flags & FILLS) != 0;
    scan->value = value <= UINT16_MAX ? (uint32_t)value : UINT32_MAX;
    for (int a = 0; a < 3; a++) {
        scan->base[a] = vxd_bytes_get_signed(in);
    }
    for (int a = 0; a < 3; a++) {
        scan->origin[a] = get_double(in);
    }
    n = vxd_bytes_get_number(in);
    n_hits = vxd_bytes_get_number(in);
    scan->n = n <= MAX_RAYS ? (size_t)n : 0;
    scan->n_hits = n_hits <= MAX_RAYS ? (size_t)n_hits : SIZE_MAX;
    what = in->is_bad || flags > (FILLS | HAS_VALUES | HAS_ORIGINS) ? "not a scan"
                                                                    : check_terms(scan);
    if (what != NULL) {
        return vxd_record_bad(reader, what);
    }
    return get_ends(reader, scan) &&
           ((flags & HAS_VALUES) == 0 || get_values(reader, scan)) &&
           ((flags & HAS_ORIGINS) == 0 || get_origins(reader, scan));
}

/* The operations that scans make, without their lists. */
static bool make_scan_ops(struct vxd_record_reader *reader, struct vxd_record *record)
{
    size_t n = count_scan_ops(record);
    struct vxd_svdag_op *ops;
    size_t at = record->n_scans;

    if (n > VXD_SVDAG_MAX_OPS) {
        return vxd_record_bad(reader, "more scans than there may be operations");
    }
    ops = vxd_record_alloc(reader, n + 1, sizeof *ops);
    if (ops == NULL) {
        return false;
    }
    memset(ops, 0, n * sizeof *ops);
    for (size_t i = 0; i < record->n_scans; i++) {
        ops[i].shape.kind = VXD_SVDAG_VOXELS;
        ops[i].action = record->erases ? VXD_SVDAG_ERASE : VXD_SVDAG_SET_FREE;
        if (record->scans[i].fills) {
            ops[at].shape.kind = VXD_SVDAG_VOXELS;
            ops[at].value = record->scans[i].value;
            ops[at++].action = VXD_SVDAG_FILL;
        }
    }
    record->ops = ops;
    record->n_ops = n;
    return true;
}

bool vxd_record_get_scans(struct vxd_record_reader *reader, struct vxd_record *record)
{
    unsigned forgets =
        record->kind == VXD_RECORD_CAST_FUSE ? vxd_bytes_get8(&reader->in) : 0;
    unsigned erases = vxd_bytes_get8(&reader->in);
    uint64_t n = vxd_bytes_get_number(&reader->in);
    struct vxd_record_scan *scans;

    if (reader->in.is_bad || forgets > 1 || erases > 1 || n > VXD_SVDAG_MAX_OPS) {
        return vxd_record_bad(reader, "not a number of scans");
    }
    record->forgets = forgets == 1;
    record->erases = erases == 1;
    scans = vxd_record_alloc(reader, n + 1, sizeof *scans);
    if (scans == NULL) {
        return false;
    }
    memset(scans, 0, (size_t)n * sizeof *scans);
    for (uint64_t i = 0; i < n; i++) {
        if (!get_scan(reader, &scans[i])) {
            return false;
        }
    }
    record->scans = scans;
    record->n_scans = (size_t)n;
    return make_scan_ops(reader, record);
}
