// SPDX-License-Identifier: Apache-2.0
/* A list of voxels (numbers are base 128, planes those of byte_planes.c):
 *
 *     n, leaves (number)
 *     1 = there are values, 0 = none (1 byte)
 *     bytes of the next plane (number)
 *     plane  of each leaf its code less the one before less 1 (the first one's itself), as a
 *            number
 *     plane  n bytes: bit i = octant i (bits 8i to 8i + 7 of the mask: 2 x 2 x 2 voxels, as
 *            Morton order has it) has voxels; never 0
 *     plane  n bytes: bit i = octant i is full, and has voxels
 *     plane  of all octants that have voxels and are not full, in order, their 8 bits
 *   with values, v of them, one a voxel, in order:
 *     plane  v bytes, the low halves
 *     plane  v bytes, the high halves
 *
 * So a full leaf takes 3 bytes at most where its neighbour is in the list too, one of a single
 * voxel 4, and both less than one where many have the same form.
 *
 * A heightfield:
 *
 *     n_x, n_y, cell (numbers), x, y (signed numbers)
 *     bytes of the next plane (number)
 *     plane  of each height what it is more than the one before it in its row, the first of a row
 *            than the first of the row before, as signed numbers */
#include <pthread.h>

#include "server/durable/record/byte_planes.h"
#include "server/durable/record/record_internal.h"

#define EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))
#define OCTANT(i) (UINT64_C(255) << 8 * (i))
#define MAX_CODES ((uint64_t)1 << 3 * (VXD_SVDAG_MAX_DEPTH - 2))
#define MAX_CELLS ((uint64_t)1 << 26)

const char *vxd_record_check_voxels(const struct vxd_svdag_voxels *voxels)
{
    if (voxels->n > 0 && (voxels->codes == NULL || voxels->masks == NULL)) {
        return "codes or masks are missing";
    }
    if ((voxels->values == NULL) != (voxels->first_value == NULL)) {
        return "values and first_value go together";
    }
    for (size_t i = 0; i < voxels->n; i++) {
        if (voxels->codes[i] >= MAX_CODES ||
            (i > 0 && voxels->codes[i] <= voxels->codes[i - 1])) {
            return "codes do not ascend, or lie outside";
        }
        if (voxels->masks[i] == 0) {
            return "a mask is 0";
        }
    }
    return NULL;
}

/* Bit i = byte i is not 0. */
static uint8_t bytes_that_are(uint64_t word)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t top =
        (((word & low) + low) | word) & ~low; /* the high bit of each that is */

    return (uint8_t)((top >> 7) * UINT64_C(0x0102040810204080) >> 56);
}

static void put_codes(struct vxd_bytes_out *out, const struct vxd_svdag_voxels *voxels)
{
    struct vxd_bytes_out plane = {0};
    uint64_t next = 0;

    (void)vxd_bytes_reserve(&plane, 2 * voxels->n); /* what it mostly takes */
    for (size_t i = 0; i < voxels->n; i++) {
        vxd_bytes_put_number(&plane, voxels->codes[i] - next);
        next = voxels->codes[i] + 1;
    }
    vxd_bytes_put_number(out, plane.n);
    vxd_byte_plane_put(out, plane.bytes, plane.n);
    out->is_out_of_memory = out->is_out_of_memory || plane.is_out_of_memory;
    free(plane.bytes);
}

/* The bits of octants that have voxels and are not full; returns how many. */
static size_t write_octants(const struct vxd_svdag_voxels *voxels, const uint8_t *some,
                            const uint8_t *full, uint8_t *to)
{
    const uint8_t *begin = to;

    for (size_t i = 0; i < voxels->n; i++) {
        unsigned mixed = (unsigned)some[i] & ~(unsigned)full[i];

        for (; mixed != 0; mixed &= mixed - 1) {
            *to++ = (uint8_t)(voxels->masks[i] >> 8 * __builtin_ctz(mixed));
        }
    }
    return (size_t)(to - begin);
}

static void put_masks(struct vxd_bytes_out *out, const struct vxd_svdag_voxels *voxels)
{
    struct vxd_bytes_out some = {0};
    struct vxd_bytes_out full = {0};
    struct vxd_bytes_out octants = {0};
    uint8_t *flags[2] = {vxd_bytes_reserve(&some, voxels->n),
                         vxd_bytes_reserve(&full, voxels->n)};
    uint8_t *to = NULL;
    size_t n_octants = 0;

    for (size_t i = 0; flags[0] != NULL && flags[1] != NULL && i < voxels->n; i++) {
        flags[0][i] = bytes_that_are(voxels->masks[i]);
        flags[1][i] = (uint8_t)~bytes_that_are(~voxels->masks[i]);
        n_octants += (size_t)__builtin_popcount((unsigned)flags[0][i] & ~flags[1][i]);
    }
    if (flags[0] != NULL && flags[1] != NULL) {
        to = vxd_bytes_reserve(&octants, n_octants);
    }
    if (to == NULL) {
        out->is_out_of_memory = true;
    } else {
        octants.n = write_octants(voxels, flags[0], flags[1], to);
        vxd_byte_plane_put(out, flags[0], voxels->n);
        vxd_byte_plane_put(out, flags[1], voxels->n);
        vxd_byte_plane_put(out, octants.bytes, octants.n);
    }
    free(some.bytes);
    free(full.bytes);
    free(octants.bytes);
}

static void put_values(struct vxd_bytes_out *out, const struct vxd_svdag_voxels *voxels)
{
    size_t n_values = 0;

    for (size_t i = 0; i < voxels->n; i++) {
        n_values += (size_t)__builtin_popcountll(voxels->masks[i]);
    }
    for (int half = 0; half < 2; half++) {
        struct vxd_bytes_out plane = {0};
        uint8_t *to = vxd_bytes_reserve(&plane, n_values);

        for (size_t i = 0; to != NULL && i < voxels->n; i++) {
            int n = __builtin_popcountll(voxels->masks[i]);
            const uint16_t *values = voxels->values + voxels->first_value[i];

            for (int k = 0; k < n; k++) {
                *to++ = (uint8_t)(values[k] >> 8 * half);
            }
        }
        out->is_out_of_memory = out->is_out_of_memory || plane.is_out_of_memory;
        if (!out->is_out_of_memory) {
            vxd_byte_plane_put(out, plane.bytes, n_values);
        }
        free(plane.bytes);
    }
}

void vxd_record_put_voxels(struct vxd_bytes_out *out,
                           const struct vxd_svdag_voxels *voxels)
{
    vxd_bytes_put_number(out, voxels->n);
    vxd_bytes_put8(out, voxels->values != NULL);
    put_codes(out, voxels);
    put_masks(out, voxels);
    if (voxels->values != NULL) {
        put_values(out, voxels);
    }
}

/* Reads a plane of n bytes into the reader's memory of this number, where eight zeros follow it.
 * NULL = none. */
static const uint8_t *get_plane(struct vxd_record_reader *reader, int number, uint64_t n)
{
    struct vxd_byte_plane_reader *plane = &reader->planes[number];

    if (n > reader->n_bytes_left) {
        reader->is_out_of_memory = true;
        return NULL;
    }
    if (plane->bytes == NULL || plane->capacity < n) {
        free(plane->bytes);
        plane->bytes = malloc((size_t)n + sizeof(uint64_t));
        plane->capacity = (size_t)n;
    }
    if (plane->bytes == NULL) {
        reader->is_out_of_memory = true;
        return NULL;
    }
    if (!vxd_byte_plane_get(&reader->in, plane->bytes, (size_t)n)) {
        (void)vxd_record_bad(reader, "a plane is damaged");
        return NULL;
    }
    memset(plane->bytes + n, 0, sizeof(uint64_t));
    return plane->bytes;
}

static uint64_t load8(const uint8_t *from)
{
    uint64_t word;

    memcpy(&word, from, sizeof word);
    return word;
}

/* The codes of steps of one byte, eight at a time: nearly all are. Returns how many. */
static size_t get_short_steps(struct vxd_bytes_in *in, uint64_t *codes, size_t n,
                              uint64_t *next)
{
    size_t i = 0;

    while (n - i >= 8 && in->n - in->at >= 8 && *next <= MAX_CODES - (uint64_t)8 * 128) {
        uint64_t steps = load8(in->bytes + in->at);

        if ((steps & EACH_BYTE(0x80)) != 0) {
            break;
        }
        for (int k = 0; k < 8; k++) {
            codes[i] = *next + (steps >> 8 * k & 127);
            *next = codes[i++] + 1;
        }
        in->at += 8;
    }
    return i;
}

static bool get_codes(struct vxd_record_reader *reader, uint64_t *codes, size_t n)
{
    uint64_t n_bytes = vxd_bytes_get_number(&reader->in);
    struct vxd_bytes_in in = {0};
    uint64_t next = 0;

    if (n_bytes < n || n_bytes > 10 * (uint64_t)n) {
        return vxd_record_bad(reader, "the plane of codes has no proper length");
    }
    in.bytes = get_plane(reader, 0, n_bytes);
    if (in.bytes == NULL) {
        return false;
    }
    in.n = (size_t)n_bytes;
    for (size_t i = 0; (i += get_short_steps(&in, codes + i, n - i, &next)) < n; i++) {
        uint64_t step = vxd_bytes_get_number(&in);

        if (in.is_bad || step >= MAX_CODES - next) {
            return vxd_record_bad(reader, "a leaf lies outside every scene");
        }
        codes[i] = next + step;
        next = codes[i] + 1;
    }
    return in.at == in.n || vxd_record_bad(reader, "more codes than leaves");
}

/* Without the instruction, which not every processor has, it would be a call. */
static unsigned count_bits(uint64_t word)
{
    word -= word >> 1 & EACH_BYTE(0x55);
    word = (word & EACH_BYTE(0x33)) + (word >> 2 & EACH_BYTE(0x33));
    word = (word + (word >> 4)) & EACH_BYTE(0x0f);
    return (unsigned)(word * EACH_BYTE(1) >> 56);
}

/* For each set of octants, how consecutive bytes are moved into them: a byte is moved up by four
 * octants, then by two, then by one. */
static struct {
    uint64_t by_4, by_2, by_1;
    uint64_t all; /* in the end */
    size_t n;
} moves[256];
static pthread_once_t moves_made = PTHREAD_ONCE_INIT;

static void make_moves(void)
{
    for (unsigned set = 0; set < 256; set++) {
        unsigned at = 0;

        for (unsigned octant = 0; octant < 8; octant++) {
            unsigned up = octant - at;

            if ((set >> octant & 1) == 0) {
                continue;
            }
            moves[set].by_4 |= (up & 4) != 0 ? OCTANT(at + 4) : 0;
            moves[set].by_2 |= (up & 2) != 0 ? OCTANT(at + (up & 4) + 2) : 0;
            moves[set].by_1 |= (up & 1) != 0 ? OCTANT(octant) : 0;
            moves[set].all |= OCTANT(octant);
            at++;
        }
        moves[set].n = at;
    }
}

/* Whether every leaf has voxels, and the full octants are of those that have; and how many have
 * some, which are not all. */
static bool count_mixed(const uint8_t *some, const uint8_t *full, size_t n,
                        uint64_t *n_mixed)
{
    uint8_t is_bad = 0;

    *n_mixed = 0;
    for (size_t i = 0; i < n; i++) {
        is_bad |= (uint8_t)((some[i] == 0) | ((full[i] & ~some[i]) != 0));
    }
    for (size_t i = 0; i < n; i += 8) {
        *n_mixed += count_bits(load8(some + i) & ~load8(full + i));
    }
    return is_bad == 0;
}

static bool are_mixed(const uint8_t *octants, size_t n)
{
    uint8_t is_bad = 0;

    for (size_t i = 0; i < n; i++) {
        is_bad |= (uint8_t)(octants[i] + 1) < 2; /* 255 or 0 */
    }
    return is_bad == 0;
}

static bool get_masks(struct vxd_record_reader *reader, uint64_t *masks, size_t n)
{
    const uint8_t *some = get_plane(reader, 0, n);
    const uint8_t *full = some != NULL ? get_plane(reader, 1, n) : NULL;
    const uint8_t *octants;
    uint64_t n_mixed;

    if (full == NULL) {
        return false;
    }
    if (!count_mixed(some, full, n, &n_mixed)) {
        return vxd_record_bad(reader, "a leaf has no voxels");
    }
    octants = get_plane(reader, 2, n_mixed);
    if (octants == NULL) {
        return false;
    }
    if (!are_mixed(octants, (size_t)n_mixed)) {
        return vxd_record_bad(reader, "an octant is empty or full");
    }
    (void)pthread_once(&moves_made, make_moves);
    for (size_t i = 0; i < n; i++) {
        unsigned mixed = some[i] & ~(unsigned)full[i];
        uint64_t mask = load8(octants);

        mask ^= (mask ^ mask << 32) & moves[mixed].by_4;
        mask ^= (mask ^ mask << 16) & moves[mixed].by_2;
        mask ^= (mask ^ mask << 8) & moves[mixed].by_1;
        masks[i] = (mask & moves[mixed].all) | moves[full[i]].all;
        octants += moves[mixed].n;
    }
    return true;
}

static bool get_values(struct vxd_record_reader *reader, struct vxd_svdag_voxels *voxels)
{
    uint32_t *first =
        vxd_record_alloc(reader, voxels->n > 0 ? voxels->n : 1, sizeof *first);
    uint64_t n_values = 0;
    uint16_t *values;
    const uint8_t *halves[2];

    for (size_t i = 0; first != NULL && i < voxels->n; i++) {
        first[i] = (uint32_t)n_values;
        n_values += count_bits(voxels->masks[i]);
        if (n_values > UINT32_MAX) {
            return vxd_record_bad(reader, "more values than any list has");
        }
    }
    values = first != NULL
                 ? vxd_record_alloc(reader, n_values > 0 ? n_values : 1, sizeof *values)
                 : NULL;
    halves[0] = values != NULL ? get_plane(reader, 0, n_values) : NULL;
    halves[1] = halves[0] != NULL ? get_plane(reader, 1, n_values) : NULL;
    for (size_t i = 0; halves[1] != NULL && i < n_values; i++) {
        values[i] = (uint16_t)(halves[0][i] | halves[1][i] << 8);
    }
    voxels->first_value = first;
    voxels->values = values;
    return halves[1] != NULL;
}

bool vxd_record_get_voxels(struct vxd_record_reader *reader,
                           struct vxd_svdag_voxels *voxels)
{
    uint64_t n = vxd_bytes_get_number(&reader->in);
    unsigned has_values = vxd_bytes_get8(&reader->in);
    uint64_t *codes, *masks;

    if (reader->in.is_bad || has_values > 1) {
        return vxd_record_bad(reader, "not a list of voxels");
    }
    codes = vxd_record_alloc(reader, n > 0 ? n : 1, sizeof *codes);
    masks = codes != NULL ? vxd_record_alloc(reader, n > 0 ? n : 1, sizeof *masks) : NULL;
    if (masks == NULL || !get_codes(reader, codes, (size_t)n) ||
        !get_masks(reader, masks, (size_t)n)) {
        return false;
    }
    voxels->codes = codes;
    voxels->masks = masks;
    voxels->n = (size_t)n;
    return has_values == 0 || get_values(reader, voxels);
}

void vxd_record_put_heights(struct vxd_bytes_out *out,
                            const struct vxd_svdag_heights *field)
{
    struct vxd_bytes_out plane = {0};
    size_t n = (size_t)field->n_x * field->n_y;

    vxd_bytes_put_number(out, field->n_x);
    vxd_bytes_put_number(out, field->n_y);
    vxd_bytes_put_number(out, field->cell);
    vxd_bytes_put_signed(out, field->x);
    vxd_bytes_put_signed(out, field->y);
    for (size_t i = 0; i < n; i++) {
        size_t before = i % field->n_y != 0 ? 1 : field->n_y;
        int64_t base = i >= before ? field->heights[i - before] : 0;

        vxd_bytes_put_signed(&plane, field->heights[i] - base);
    }
    vxd_bytes_put_number(out, plane.n);
    out->is_out_of_memory = out->is_out_of_memory || plane.is_out_of_memory;
    if (!out->is_out_of_memory) {
        vxd_byte_plane_put(out, plane.bytes, plane.n);
    }
    free(plane.bytes);
}

static bool get_all_heights(struct vxd_record_reader *reader, int64_t *heights,
                            const struct vxd_svdag_heights *field, size_t n)
{
    uint64_t n_bytes = vxd_bytes_get_number(&reader->in);
    struct vxd_bytes_in in = {0};

    if (n_bytes < n || n_bytes > 10 * (uint64_t)n) {
        return vxd_record_bad(reader, "the plane of heights has no proper length");
    }
    in.bytes = get_plane(reader, 0, n_bytes);
    if (in.bytes == NULL) {
        return false;
    }
    in.n = (size_t)n_bytes;
    for (size_t i = 0; i < n; i++) {
        size_t before = i % field->n_y != 0 ? 1 : field->n_y;
        int64_t base = i >= before ? heights[i - before] : 0;
        int64_t step = vxd_bytes_get_signed(&in);

        if (in.is_bad || __builtin_add_overflow(base, step, &heights[i]) ||
            heights[i] > VXD_SVDAG_MAX_COORDINATE ||
            heights[i] < -VXD_SVDAG_MAX_COORDINATE) {
            return vxd_record_bad(reader, "a height is beyond 2^31 units");
        }
    }
    return in.at == in.n || vxd_record_bad(reader, "more heights than cells");
}

bool vxd_record_get_heights(struct vxd_record_reader *reader,
                            struct vxd_svdag_heights *field)
{
    uint64_t n_x = vxd_bytes_get_number(&reader->in);
    uint64_t n_y = vxd_bytes_get_number(&reader->in);
    uint64_t cell = vxd_bytes_get_number(&reader->in);
    int64_t *heights;

    field->x = vxd_bytes_get_signed(&reader->in);
    field->y = vxd_bytes_get_signed(&reader->in);
    if (reader->in.is_bad || n_x < 1 || n_x > MAX_CELLS || n_y < 1 || n_y > MAX_CELLS ||
        n_x * n_y > MAX_CELLS || cell < 1 || cell > UINT32_MAX) {
        return vxd_record_bad(reader, "not a heightfield");
    }
    field->n_x = (uint32_t)n_x;
    field->n_y = (uint32_t)n_y;
    field->cell = (uint32_t)cell;
    heights = vxd_record_alloc(reader, n_x * n_y, sizeof *heights);
    field->heights = heights;
    return heights != NULL &&
           get_all_heights(reader, heights, field, (size_t)(n_x * n_y));
}
