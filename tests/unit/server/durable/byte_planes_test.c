// SPDX-License-Identifier: Apache-2.0
/* Planes and lists of voxels of records, whole and damaged, beside a reader that is as plain as
 * their description: one bit, one leaf, one octant at a time. */
#include "tests/support/test.h"

#include <stdlib.h>

#include "server/durable/record/byte_planes.h"
#include "server/durable/record/record_internal.h"

enum {
    MAX_CODE_BITS = 11,
    MAX_PLANE = 20000,
    MAX_LEAVES = 7000,
    MAX_BYTES = 1 << 22 /* of a record in memory */
};

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

/* n bytes, and none behind them. */
static void *allocate(size_t n)
{
    void *bytes = calloc(1, n > 0 ? n : 1);

    if (bytes == NULL) {
        abort();
    }
    return bytes;
}

/* The plain reader --------------------------------------------------------------------------- */

static bool next_bit(const uint8_t *bytes, size_t n_bits, size_t *at, unsigned *code)
{
    if (*at == n_bits) {
        return false;
    }
    *code = *code << 1 | (bytes[*at / 8] >> (7 - *at % 8) & 1);
    ++*at;
    return true;
}

/* The symbol whose code these are, -1 = not one. */
static int find_symbol(const uint8_t *nibbles, int n_bits, unsigned code)
{
    unsigned next = 0;

    for (int length = 1; length <= n_bits; length++) {
        next <<= 1;
        for (int i = 0; i < 256; i++) {
            if ((nibbles[i / 2] >> 4 * (i % 2) & 15) != length) {
                continue;
            }
            if (length == n_bits && next == code) {
                return i;
            }
            next++;
        }
    }
    return -1;
}

static bool is_complete(const uint8_t *nibbles)
{
    unsigned n = 0;

    for (int i = 0; i < 256; i++) {
        int length = nibbles[i / 2] >> 4 * (i % 2) & 15;

        if (length > MAX_CODE_BITS) {
            return false;
        }
        n += length > 0 ? 1u << (MAX_CODE_BITS - length) : 0;
    }
    return n == 1u << MAX_CODE_BITS;
}

static bool plain_huffman(struct vxd_bytes_in *in, uint8_t *plane, size_t n)
{
    const uint8_t *nibbles = vxd_bytes_get(in, 128);
    uint64_t n_coded = vxd_bytes_get_number(in);
    static int16_t symbols[MAX_CODE_BITS + 1][1 << MAX_CODE_BITS];
    const uint8_t *from;
    unsigned rest = 0;
    size_t at = 0;

    if (nibbles == NULL || n_coded > n || !is_complete(nibbles)) {
        return false;
    }
    for (int n_bits = 1; n_bits <= MAX_CODE_BITS; n_bits++) {
        for (unsigned code = 0; code < 1u << n_bits; code++) {
            symbols[n_bits][code] = -2; /* is not looked for yet */
        }
    }
    from = vxd_bytes_get(in, (size_t)n_coded);
    for (size_t i = 0; from != NULL && i < n; i++) {
        unsigned code = 0;
        int n_bits = 0;
        int16_t *symbol;

        do {
            if (!next_bit(from, 8 * (size_t)n_coded, &at, &code)) {
                return false;
            }
            symbol = &symbols[++n_bits][code];
            if (*symbol == -2) {
                *symbol = (int16_t)find_symbol(nibbles, n_bits, code);
            }
        } while (*symbol < 0);
        plane[i] = (uint8_t)*symbol;
    }
    if (from == NULL || 8 * n_coded - at >= 8) {
        return false;
    }
    while (next_bit(from, 8 * (size_t)n_coded, &at, &rest)) {
    }
    return rest == 0;
}

static bool plain_plane(struct vxd_bytes_in *in, uint8_t *plane, size_t n)
{
    unsigned form = vxd_bytes_get8(in);

    if (in->is_bad || form > 2 || (form > 0 && n == 0)) {
        return false;
    }
    if (form == 2) {
        return plain_huffman(in, plane, n);
    }
    for (size_t i = 0; i < n; i++) {
        plane[i] = form == 0 || i == 0 ? (uint8_t)vxd_bytes_get8(in) : plane[0];
    }
    return !in->is_bad;
}

/* Both readers, of bytes that end with memory, into planes that do: the same. */
static bool compare_planes(const uint8_t *bytes, size_t n_bytes, size_t n)
{
    uint8_t *exact = allocate(n_bytes);
    uint8_t *plane = allocate(n);
    uint8_t *plain = allocate(n);
    struct vxd_bytes_in in = {.bytes = exact, .n = n_bytes};
    struct vxd_bytes_in plain_in = in;
    bool is_good, is_plain_good;

    memcpy(exact, bytes, n_bytes);
    is_good = vxd_byte_plane_get(&in, plane, n);
    is_plain_good = plain_plane(&plain_in, plain, n);
    CHECK(is_good == is_plain_good && in.is_bad == !is_good);
    CHECK(!is_good || (in.at == plain_in.at && memcmp(plane, plain, n) == 0));
    free(exact);
    free(plane);
    free(plain);
    return is_good;
}

/* Planes ------------------------------------------------------------------------------------- */

/* Of n_symbols, which become rarer the faster the more skewed they are. */
static void fill_plane(uint8_t *plane, size_t n, unsigned n_symbols, unsigned skew)
{
    for (size_t i = 0; i < n; i++) {
        unsigned symbol = 0;

        if (skew == 0) {
            symbol = random_below(n_symbols);
        }
        while (skew > 0 && symbol + 1 < n_symbols && random_below(skew + 1) == 0) {
            symbol++;
        }
        plane[i] = (uint8_t)(symbol * 77);
    }
}

static void test_planes_of_every_skew_come_back(void)
{
    static const unsigned counts[] = {1, 2, 3, 4, 5, 7, 16, 60, 256};
    static const size_t lengths[] = {0,   1,   2,   37,   38,   39,   159,      160,
                                     161, 500, 999, 4095, 4096, 4097, MAX_PLANE};
    static uint8_t plane[MAX_PLANE];

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (unsigned skew = 0; skew < 12; skew++) {
            for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
                struct vxd_bytes_out out = {0};
                struct vxd_bytes_in in = {0};
                uint8_t *again = allocate(lengths[k]);

                fill_plane(plane, lengths[k], counts[i], skew);
                vxd_byte_plane_put(&out, plane, lengths[k]);
                in.bytes = out.bytes;
                in.n = out.n;
                CHECK(vxd_byte_plane_get(&in, again, lengths[k]) && in.at == in.n);
                CHECK(memcmp(again, plane, lengths[k]) == 0);
                CHECK(compare_planes(out.bytes, out.n, lengths[k]));
                free(again);
                free(out.bytes);
            }
        }
    }
}

/* Behind the form, a complete code of two symbols and no bits. */
static void test_plane_without_bytes_has_no_form_but_the_plain_one(void)
{
    uint8_t bytes[1 + 128 + 1] = {0, 0x11};
    struct vxd_bytes_in in = {.bytes = bytes, .n = 1};

    CHECK(vxd_byte_plane_get(&in, NULL, 0)); /* nothing is copied nowhere */
    for (unsigned form = 0; form < 256; form++) {
        bytes[0] = (uint8_t)form;
        CHECK_INT(compare_planes(bytes, sizeof bytes, 0), form == 0);
    }
}

/* A complete code of random lengths, made by splitting codes in two; how many symbols. */
static int make_lengths(uint8_t lengths[256], unsigned skew)
{
    uint8_t split[256] = {1, 1};
    int n = 2;
    int n_wanted = 2 + (int)random_below(255);

    for (int tries = 0; n < n_wanted && tries < 5000; tries++) {
        int i = skew > 0 && random_below(skew + 1) > 0 ? n - 1
                                                       : (int)random_below((uint32_t)n);

        if (split[i] < MAX_CODE_BITS) {
            split[n++] = ++split[i];
        }
    }
    memset(lengths, 0, 256);
    for (int i = 0; i < n; i++) {
        int at = (int)random_below(256);

        while (lengths[at] != 0) {
            at = (at + 1) % 256;
        }
        lengths[at] = split[i];
    }
    return n;
}

/* A plane of n symbols, short codes mostly, by their code; few of them where that would be too
 * long to be one. */
static size_t make_coded(uint8_t *bytes, size_t n)
{
    uint8_t lengths[256];
    uint8_t nibbles[128] = {0};
    struct vxd_bytes_out out = {0};
    uint8_t *coded = allocate(2 * n);
    size_t n_bits = 0;
    size_t n_bytes;

    (void)make_lengths(lengths, random_below(4));
    for (int i = 0; i < 256; i++) {
        nibbles[i / 2] = (uint8_t)(nibbles[i / 2] | lengths[i] << 4 * (i % 2));
    }
    for (size_t i = 0; i < n; i++) {
        unsigned code = 0;

        /* Random bits are a symbol sooner or later: the code is complete. */
        for (int length = 1; length == 1 || find_symbol(nibbles, length - 1, code) < 0;
             length++) {
            unsigned bit = random_below(3) == 0;

            code = code << 1 | bit;
            coded[n_bits / 8] = (uint8_t)(coded[n_bits / 8] | bit << (7 - n_bits % 8));
            n_bits++;
        }
    }
    vxd_bytes_put8(&out, 2);
    vxd_bytes_put(&out, nibbles, sizeof nibbles);
    vxd_bytes_put_number(&out, (n_bits + 7) / 8);
    vxd_bytes_put(&out, coded, (n_bits + 7) / 8);
    if (out.is_out_of_memory) {
        abort();
    }
    memcpy(bytes, out.bytes, out.n);
    n_bytes = out.n;
    free(out.bytes);
    free(coded);
    return n_bytes;
}

static void test_random_codes_are_read_as_a_plain_reader_reads_them(void)
{
    static uint8_t bytes[4096];
    size_t n_good = 0;

    for (size_t k = 0; k < 600; k++) {
        size_t n = k < 100 ? k : 1 + random_below(1000);
        size_t n_bytes = make_coded(bytes, n);

        n_good += compare_planes(bytes, n_bytes, n);
        (void)compare_planes(bytes, n_bytes, n + 1);
        (void)compare_planes(bytes, n_bytes, n > 0 ? n - 1 : 0);
    }
    CHECK(n_good > 100); /* the others have more bytes than symbols */
}

static void test_damaged_planes_are_read_as_a_plain_reader_reads_them(void)
{
    static uint8_t bytes[4096];
    size_t n_refused = 0;
    size_t n_others = 0;

    for (size_t k = 0; k < 12; k++) {
        size_t n = 150 + 60 * k;
        size_t n_bytes = make_coded(bytes, n);

        for (size_t cut = 0; cut < n_bytes; cut++) {
            CHECK(!compare_planes(bytes, cut, n));
        }
        for (size_t i = 0; i < n_bytes; i++) {
            uint8_t before = bytes[i];

            bytes[i] = (uint8_t)(before ^ (1 + random_below(255)));
            if (compare_planes(bytes, n_bytes, n)) {
                n_others++;
            } else {
                n_refused++;
            }
            bytes[i] = before;
        }
    }
    CHECK(n_refused > 100 && n_others > 100);
}

static void test_code_that_is_not_complete_is_refused(void)
{
    static uint8_t bytes[200];

    for (unsigned length = 1; length < 16; length++) {
        for (size_t n_symbols = 1; n_symbols <= 256; n_symbols++) {
            memset(bytes, 0, sizeof bytes);
            bytes[0] = 2;
            for (size_t i = 0; i < n_symbols; i++) {
                bytes[1 + i / 2] = (uint8_t)(bytes[1 + i / 2] | length << 4 * (i % 2));
            }
            bytes[129] = 2; /* bytes of codes, zeros */
            CHECK(compare_planes(bytes, 132, 16 / length) ==
                  (length <= 8 && n_symbols == (size_t)1 << length));
        }
    }
}

/* One bit a byte, so that a look-up gives as many as any: what is left over is not written behind
 * the plane. */
static void test_codes_that_are_left_over_are_refused(void)
{
    static uint8_t bytes[1 + 128 + 1 + 40] = {2, 0x11};

    bytes[129] = 40;
    for (size_t n = 40; n < 400; n++) {
        CHECK(compare_planes(bytes, sizeof bytes, n) == (n > 312 && n <= 320));
    }
}

/* Lists -------------------------------------------------------------------------------------- */

struct list {
    uint64_t codes[MAX_LEAVES];
    uint64_t masks[MAX_LEAVES];
    size_t n;
};

/* A mask whose octants are empty, full or mixed as the digits of `which`, base 3, say. */
static uint64_t make_mask(unsigned which)
{
    uint64_t mask = 0;

    for (int i = 0; i < 8; i++, which /= 3) {
        uint64_t octant = which % 3 == 0   ? 0
                          : which % 3 == 1 ? 255
                                           : 1 + random_below(254);

        mask |= octant << 8 * i;
    }
    return mask;
}

/* All kinds of masks but 0, of which there are 6,560, in random order; and steps of which one in
 * `rare` takes more than a byte. */
static void make_list(struct list *list, size_t n, uint32_t rare)
{
    uint64_t next = random_below(1000);
    unsigned first = random_below(6560);

    list->n = n;
    for (size_t i = 0; i < n; i++) {
        uint32_t step =
            random_below(rare) > 0 ? random_below(128) : random_below(1 << 30);

        list->codes[i] = next + step;
        next = list->codes[i] + 1;
        list->masks[i] = make_mask(1 + (first + (unsigned)i * 1237) % 6560);
    }
}

static struct vxd_record_bytes encode_list(const struct list *list)
{
    const struct vxd_svdag_op op = {
        .shape = {.kind = VXD_SVDAG_VOXELS,
                  .voxels = {.codes = list->codes, .masks = list->masks, .n = list->n}},
        .action = VXD_SVDAG_ERASE};
    const struct vxd_record record = {
        .kind = VXD_RECORD_EDIT, .head = "a", .version = {1, 2}, .ops = &op, .n_ops = 1};
    struct vxd_record_bytes bytes = {0};

    if (vxd_record_encode(&record, &bytes, NULL) != VXD_OK) {
        abort();
    }
    return bytes;
}

/* Where its list begins: behind kind, names, time, version, number, shape and action. */
enum {
    LIST_BEGINS = 1 + 2 + 1 + 1 + 1 + 2 + 1 + 2
};

static bool plain_masks(struct vxd_bytes_in *in, struct list *list)
{
    static uint8_t planes[2][MAX_LEAVES];
    static uint8_t octants[8 * MAX_LEAVES];
    const uint8_t *next = octants;
    size_t n_octants = 0;

    if (!plain_plane(in, planes[0], list->n) || !plain_plane(in, planes[1], list->n)) {
        return false;
    }
    for (size_t i = 0; i < 8 * list->n; i++) {
        bool has_some = (planes[0][i / 8] >> i % 8 & 1) != 0;
        bool is_full = (planes[1][i / 8] >> i % 8 & 1) != 0;

        if ((is_full && !has_some) || planes[0][i / 8] == 0) {
            return false;
        }
        n_octants += has_some && !is_full;
    }
    if (!plain_plane(in, octants, n_octants)) {
        return false;
    }
    for (size_t i = 0; i < 8 * list->n; i++) {
        uint64_t octant = (planes[0][i / 8] >> i % 8 & 1) != 0 ? 255 : 0;

        if (octant == 255 && (planes[1][i / 8] >> i % 8 & 1) == 0) {
            octant = *next++;
            if (octant == 0 || octant == 255) {
                return false;
            }
        }
        list->masks[i / 8] = (i % 8 == 0 ? 0 : list->masks[i / 8]) | octant << i % 8 * 8;
    }
    return true;
}

static bool plain_list(struct vxd_bytes_in *in, struct list *list)
{
    static uint8_t steps[10 * MAX_LEAVES];
    struct vxd_bytes_in step_in = {.bytes = steps};
    uint64_t n = vxd_bytes_get_number(in);
    unsigned has_values = vxd_bytes_get8(in);
    uint64_t next = 0;

    step_in.n = (size_t)vxd_bytes_get_number(in);
    if (in->is_bad || has_values != 0 || n > MAX_LEAVES || step_in.n < n ||
        step_in.n > 10 * n || !plain_plane(in, steps, step_in.n)) {
        return false;
    }
    list->n = (size_t)n;
    for (size_t i = 0; i < n; i++) {
        uint64_t step = vxd_bytes_get_number(&step_in);

        if (step_in.is_bad || step >= ((uint64_t)1 << 57) - next) {
            return false;
        }
        list->codes[i] = next + step;
        next += step + 1;
    }
    return step_in.at == step_in.n && plain_masks(in, list) && in->at == in->n;
}

/* Both readers, of a record of one list, from memory of its own: whether it is good. */
static bool compare_lists(const uint8_t *bytes, size_t n_bytes)
{
    static struct list list;
    struct vxd_bytes_in in = {.bytes = bytes, .n = n_bytes, .at = LIST_BEGINS};
    struct vxd_record_decoded decoded;
    struct vxd_err err = {0};
    bool is_good = plain_list(&in, &list);
    uint8_t *exact = allocate(n_bytes);
    enum vxd_status status;

    memcpy(exact, bytes, n_bytes);
    status = vxd_record_decode(exact, n_bytes, 1, MAX_BYTES, &decoded, &err);
    free(exact);
    /* A number that is damaged may be one of more than there is memory for. */
    CHECK(status == VXD_OK || status == VXD_DATA_LOSS ||
          status == VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(status == VXD_OK, is_good);
    if (status == VXD_OK) {
        const struct vxd_svdag_voxels *voxels = &decoded.record.ops[0].shape.voxels;

        CHECK(voxels->n == list.n &&
              memcmp(voxels->codes, list.codes, list.n * sizeof list.codes[0]) == 0 &&
              memcmp(voxels->masks, list.masks, list.n * sizeof list.masks[0]) == 0);
        vxd_record_decoded_free(&decoded);
    }
    return is_good;
}

static void test_lists_of_all_masks_come_back(void)
{
    static const uint32_t rares[] = {1, 2, 10, 300, UINT32_MAX};
    static struct list list;

    for (size_t k = 0; k < (size_t)5 * 42; k++) {
        struct vxd_record_bytes bytes;

        make_list(&list, k / 5 < 40 ? k / 5 : 6560 + k, rares[k % 5]);
        bytes = encode_list(&list);
        CHECK(compare_lists(bytes.bytes, bytes.n_bytes));
        vxd_record_bytes_free(&bytes);
    }
}

/* Where eight short steps would fit and do not. */
static void test_list_may_end_with_the_last_leaf_of_all(void)
{
    static struct list list;

    for (uint64_t step = 1; step < 120; step += 7) {
        for (size_t n = 1; n < 40; n++) {
            struct vxd_record_bytes bytes;

            for (size_t i = 0; i < n; i++) {
                list.codes[i] = ((uint64_t)1 << 57) - 1 - (n - 1 - i) * step;
                list.masks[i] = 1;
            }
            list.n = n;
            bytes = encode_list(&list);
            CHECK(compare_lists(bytes.bytes, bytes.n_bytes));
            /* The first step, number and plane's form before it, is one more. */
            bytes.bytes[LIST_BEGINS + 4]++;
            CHECK(!compare_lists(bytes.bytes, bytes.n_bytes));
            vxd_record_bytes_free(&bytes);
        }
    }
}

/* Numbers and planes as they are, so that what is said of a leaf is a byte. */
static void test_list_that_contradicts_itself_is_refused(void)
{
    enum {
        N = 40,
        LONG = 20
    };
    const size_t some_at = LIST_BEGINS + 3 + 1 + N + LONG + 1;
    static struct list list = {.n = N};
    struct vxd_record_bytes bytes;

    for (size_t i = 0; i < N; i++) {
        list.codes[i] = i < LONG ? 1000 * i + 1000 : 20000 + 2 * i;
        list.masks[i] = i == 0 ? 1 << 8 : 1;
    }
    bytes = encode_list(&list);
    CHECK(compare_lists(bytes.bytes, bytes.n_bytes));
    /* As many octants as before, but none of this leaf. */
    CHECK_INT(bytes.bytes[some_at], 2);
    bytes.bytes[some_at] = 0;
    bytes.bytes[some_at + 1] = 3;
    CHECK(!compare_lists(bytes.bytes, bytes.n_bytes));
    bytes.bytes[some_at] = 2;
    bytes.bytes[some_at + 1] = 1;
    CHECK(compare_lists(bytes.bytes, bytes.n_bytes));
    for (int n = N + 1; n <= N + LONG; n++) { /* leaves, and bytes of codes end sooner */
        bytes.bytes[LIST_BEGINS] = (uint8_t)n;
        CHECK(!compare_lists(bytes.bytes, bytes.n_bytes));
    }
    vxd_record_bytes_free(&bytes);
}

static void test_damaged_lists_are_read_as_a_plain_reader_reads_them(void)
{
    static const size_t lengths[] = {1, 7, 8, 9, 40, 300, 700};
    static struct list list;
    size_t n_refused = 0;
    size_t n_others = 0;

    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        struct vxd_record_bytes bytes;

        make_list(&list, lengths[k], 20);
        bytes = encode_list(&list);
        for (size_t n = LIST_BEGINS; n < bytes.n_bytes; n++) {
            CHECK(!compare_lists(bytes.bytes, n));
        }
        for (size_t i = LIST_BEGINS; i < bytes.n_bytes; i++) {
            uint8_t before = bytes.bytes[i];

            bytes.bytes[i] = (uint8_t)(before ^ (1 + random_below(255)));
            if (compare_lists(bytes.bytes, bytes.n_bytes)) {
                n_others++;
            } else {
                n_refused++;
            }
            bytes.bytes[i] = before;
        }
        vxd_record_bytes_free(&bytes);
    }
    CHECK(n_refused > 100 && n_others > 100);
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_planes_of_every_skew_come_back),
        VXD_TEST(test_plane_without_bytes_has_no_form_but_the_plain_one),
        VXD_TEST(test_random_codes_are_read_as_a_plain_reader_reads_them),
        VXD_TEST(test_damaged_planes_are_read_as_a_plain_reader_reads_them),
        VXD_TEST(test_code_that_is_not_complete_is_refused),
        VXD_TEST(test_codes_that_are_left_over_are_refused),
        VXD_TEST(test_lists_of_all_masks_come_back),
        VXD_TEST(test_list_may_end_with_the_last_leaf_of_all),
        VXD_TEST(test_list_that_contradicts_itself_is_refused),
        VXD_TEST(test_damaged_lists_are_read_as_a_plain_reader_reads_them),
    };

    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
