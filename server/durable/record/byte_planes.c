// SPDX-License-Identifier: Apache-2.0
/* A plane of n bytes (n is known to the reader):
 *
 *     1  form: 0 as it is, 1 constant, 2 Huffman; the shortest, the lower one of equals
 *   then 0: n bytes
 *        1: 1 byte, which all are; n is at least 1
 *        2: 128 bytes of code lengths, a nibble each of byte 0 (low), 1 (high), 2, ...: 0 = does
 *           not occur, else 1 to 11, and the code is complete;
 *           bytes of code (number, base 128); the codes, the first bit of a byte its highest,
 *           zeros behind the last
 *
 * Codes are canonical: shorter ones first, of equal length in the order of their bytes, each the
 * one before plus one. Lengths come from the counts of the bytes by Huffman's rule, where of
 * equal counts the one that was made first is taken, bytes in their order before joined ones;
 * while a length is above 11 all counts are halved (rounded up) and it is done again. */
#include "server/durable/record/byte_planes.h"

enum {
    FORM_PLAIN = 0,
    FORM_CONSTANT = 1,
    FORM_HUFFMAN = 2,
    N_SYMBOLS = 256,
    MAX_BITS = 11,
    CODES_AT_ONCE = 6,            /* of one look-up, at most */
    FEW_BITS = CODES_AT_ONCE - 1, /* that with one code before them are no more codes */
    LOOKUPS_AT_ONCE = 5,          /* that 56 bits do for surely */
    MOST_AT_ONCE = LOOKUPS_AT_ONCE * CODES_AT_ONCE,
    LENGTH_BYTES = N_SYMBOLS / 2,
    MIN_HUFFMAN = 160 /* below, the lengths alone cost more than they can save */
};

struct code {
    uint8_t lengths[N_SYMBOLS];
    uint16_t codes[N_SYMBOLS];
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Nodes of a tree of codes: bytes by their counts, then joined ones as they are made, whose weights
 * ascend, too. So the lightest is always the first of one of the two that is left. */
struct tree {
    uint64_t weights[2 * N_SYMBOLS];
    uint16_t parents[2 * N_SYMBOLS];
    size_t n_bytes; /* that occur */
    size_t next_byte;
    size_t next_joined;
};

static size_t take_lightest(struct tree *tree, size_t n)
{
    if (tree->next_joined == n ||
        (tree->next_byte < tree->n_bytes &&
         tree->weights[tree->next_byte] <= tree->weights[tree->next_joined])) {
        return tree->next_byte++;
    }
    return tree->next_joined++;
}

/* The lengths of one round; returns the longest. */
static int join_all(const uint64_t counts[N_SYMBOLS], uint8_t lengths[N_SYMBOLS])
{
    struct tree tree = {.n_bytes = 0};
    uint64_t sorted[N_SYMBOLS] = {0}; /* counts with their bytes below them */
    size_t n;
    int longest = 0;

    for (unsigned i = 0; i < N_SYMBOLS; i++) {
        if (counts[i] > 0) {
            sorted[tree.n_bytes++] = counts[i] << 8 | i;
        }
    }
    qsort(sorted, tree.n_bytes, sizeof *sorted, by_value);
    for (size_t i = 0; i < tree.n_bytes; i++) {
        tree.weights[i] = sorted[i] >> 8;
    }
    tree.next_joined = tree.n_bytes;
    for (n = tree.n_bytes; n < 2 * tree.n_bytes - 1; n++) {
        size_t first = take_lightest(&tree, n);
        size_t second = take_lightest(&tree, n);

        tree.weights[n] = tree.weights[first] + tree.weights[second];
        tree.parents[first] = (uint16_t)n;
        tree.parents[second] = (uint16_t)n;
    }
    memset(lengths, 0, N_SYMBOLS);
    for (size_t i = 0; i < tree.n_bytes; i++) {
        int length = 0;

        for (size_t at = i; at != n - 1; at = tree.parents[at]) {
            length++;
        }
        lengths[sorted[i] & 255] = (uint8_t)length;
        longest = length > longest ? length : longest;
    }
    return longest;
}

static void assign_codes(struct code *code)
{
    unsigned next = 0;

    for (int length = 1; length <= MAX_BITS; length++) {
        for (int i = 0; i < N_SYMBOLS; i++) {
            if (code->lengths[i] == length) {
                code->codes[i] = (uint16_t)next++;
            }
        }
        next <<= 1;
    }
}

static void make_code(const uint64_t counts[N_SYMBOLS], struct code *code)
{
    uint64_t scaled[N_SYMBOLS];

    memcpy(scaled, counts, sizeof scaled);
    while (join_all(scaled, code->lengths) > MAX_BITS) {
        for (int i = 0; i < N_SYMBOLS; i++) {
            scaled[i] = (scaled[i] + 1) / 2;
        }
    }
    assign_codes(code);
}

static void store8(uint8_t *to, uint64_t word)
{
    for (int i = 0; i < 8; i++) {
        to[i] = (uint8_t)(word >> (56 - 8 * i)); /* one instruction, or two */
    }
}

/* Writes codes four at a time: with the bits before them they are at most 7 + 4 x MAX_BITS. What
 * is stored behind the last whole byte is overwritten later. */
static void put_codes(struct vxd_bytes_out *out, const struct code *code,
                      const uint8_t *plane, size_t n, size_t n_coded)
{
    uint8_t *to = vxd_bytes_reserve(out, n_coded + sizeof(uint64_t));
    uint32_t entries[N_SYMBOLS]; /* the code, and its length above it */
    uint64_t bits = 0;
    unsigned n_bits = 0;
    size_t i = 0;

    if (to == NULL) {
        return;
    }
    for (int k = 0; k < N_SYMBOLS; k++) {
        entries[k] = code->codes[k] | (uint32_t)code->lengths[k] << 16;
    }
    while (i < n) {
        const size_t end = n - i < 4 ? n : i + 4;

        for (; i < end; i++) {
            const uint32_t entry = entries[plane[i]];

            bits = bits << (entry >> 16) | (entry & 0xffff);
            n_bits += entry >> 16;
        }
        store8(to, bits << (64 - n_bits)); /* a code has a bit at least */
        to += n_bits / 8;
        n_bits %= 8;
    }
    out->n += n_coded;
}

static size_t number_bytes(uint64_t value)
{
    size_t n = 1;

    for (; value >= 128; value >>= 7) {
        n++;
    }
    return n;
}

static void put_huffman(struct vxd_bytes_out *out, const struct code *code,
                        const uint8_t *plane, size_t n, size_t n_coded)
{
    vxd_bytes_put8(out, FORM_HUFFMAN);
    for (int i = 0; i < N_SYMBOLS; i += 2) {
        vxd_bytes_put8(out, (unsigned)(code->lengths[i] | code->lengths[i + 1] << 4));
    }
    vxd_bytes_put_number(out, n_coded);
    put_codes(out, code, plane, n, n_coded);
}

/* Four counters a byte: equal bytes follow each other, and one would wait for itself. */
static void count_bytes(const uint8_t *plane, size_t n, uint64_t counts[N_SYMBOLS])
{
    uint64_t partial[4][N_SYMBOLS] = {0};
    size_t i = 0;

    for (; i + 4 <= n; i += 4) {
        partial[0][plane[i]]++;
        partial[1][plane[i + 1]]++;
        partial[2][plane[i + 2]]++;
        partial[3][plane[i + 3]]++;
    }
    for (; i < n; i++) {
        partial[0][plane[i]]++;
    }
    for (int k = 0; k < N_SYMBOLS; k++) {
        counts[k] = partial[0][k] + partial[1][k] + partial[2][k] + partial[3][k];
    }
}

void vxd_byte_plane_put(struct vxd_bytes_out *out, const uint8_t *plane, size_t n)
{
    uint64_t counts[N_SYMBOLS];
    struct code code = {0};
    uint64_t n_bits = 0;
    size_t n_coded;

    count_bytes(plane, n, counts);
    if (n > 1 && counts[plane[0]] == n) {
        vxd_bytes_put8(out, FORM_CONSTANT);
        vxd_bytes_put8(out, plane[0]);
        return;
    }
    if (n >= MIN_HUFFMAN) {
        make_code(counts, &code);
        for (int i = 0; i < N_SYMBOLS; i++) {
            n_bits += counts[i] * code.lengths[i];
        }
        n_coded = (size_t)((n_bits + 7) / 8);
        if (LENGTH_BYTES + number_bytes(n_coded) + n_coded < n) {
            put_huffman(out, &code, plane, n, n_coded);
            return;
        }
    }
    vxd_bytes_put8(out, FORM_PLAIN);
    vxd_bytes_put(out, plane, n);
}

/* A code to read by. */
struct decoder {
    uint8_t symbols[N_SYMBOLS];    /* that occur, in the order of their codes */
    uint16_t begins[MAX_BITS + 2]; /* where in them those of a length begin */
    uint16_t ends[MAX_BITS + 1];   /* behind its last code, as MAX_BITS bits */
    /* What n bits begin with, at 1 << n + the bits: of all codes that are whole in them, of
     * CODES_AT_ONCE at most, how many bits they have (8 bits, lowest), how many they are (8),
     * and their bytes. */
    uint64_t entries[2 << MAX_BITS];
};

/* False where it is no complete code. */
static bool sort_symbols(const uint8_t *nibbles, struct decoder *decoder)
{
    uint8_t lengths[N_SYMBOLS];
    uint16_t next[16] = {0}; /* first how many there are, then where they go */
    unsigned end = 0;

    for (int i = 0; i < N_SYMBOLS; i++) {
        lengths[i] = (uint8_t)(nibbles[i / 2] >> 4 * (i % 2) & 15);
        if (lengths[i] > MAX_BITS) {
            return false;
        }
        next[lengths[i]]++;
    }
    decoder->begins[1] = 0;
    for (int length = 1; length <= MAX_BITS; length++) {
        end += (unsigned)next[length] << (MAX_BITS - length);
        decoder->ends[length] = (uint16_t)end;
        decoder->begins[length + 1] = (uint16_t)(decoder->begins[length] + next[length]);
        next[length] = decoder->begins[length];
    }
    for (int i = 0; i < N_SYMBOLS; i++) {
        if (lengths[i] > 0) {
            decoder->symbols[next[lengths[i]]++] = (uint8_t)i;
        }
    }
    return end == 1u << MAX_BITS;
}

/* The entries of n_bits, from those of fewer: behind a code it goes on as those bits do. */
static void make_entries(struct decoder *decoder, int n_bits)
{
    const uint64_t *of_few = decoder->entries + (1 << FEW_BITS);
    uint64_t *to = decoder->entries + ((size_t)1 << n_bits);
    uint64_t *end = to + ((size_t)1 << n_bits);

    for (int length = 1; length <= n_bits; length++) {
        const uint64_t *of_rest = decoder->entries + ((size_t)1 << (n_bits - length));
        int more = n_bits - length > FEW_BITS ? n_bits - length - FEW_BITS : 0;

        for (int i = decoder->begins[length]; i < decoder->begins[length + 1]; i++) {
            for (size_t rest = 0; rest < (size_t)1 << (n_bits - length); rest++) {
                uint64_t entry = of_rest[rest];

                if (more > 0 && (entry >> 8 & 255) == CODES_AT_ONCE) {
                    entry = of_few[rest >> more];
                }
                *to++ = (entry >> 16 << 24) | (uint64_t)decoder->symbols[i] << 16 |
                        ((entry & 0xffff) + (0x100 + (unsigned)length));
            }
        }
    }
    while (to < end) {
        *to++ = 0;
    }
}

static bool make_decoder(const uint8_t *nibbles, struct decoder *decoder)
{
    if (!sort_symbols(nibbles, decoder)) {
        return false;
    }
    decoder->entries[1] = 0;
    for (int n_bits = 1; n_bits <= MAX_BITS; n_bits++) {
        make_entries(decoder, n_bits);
    }
    return true;
}

static uint64_t four_bytes(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 |
           from[3];
}

static uint64_t load_8_bytes(const uint8_t *from)
{
    return four_bytes(from) << 32 | four_bytes(from + 4);
}

/* Bits of coded bytes that were taken from them: the high n_bits; what is below them are the first
 * bits of from[at]. */
struct bits {
    const uint8_t *from;
    size_t n_coded;
    size_t at;
    uint64_t word;
    int n_bits;
};

/* Several codes a look-up, while there are bits for some look-ups, and space for all that they may
 * give; how many bytes came. */
static size_t get_most(struct bits *bits, const uint64_t *entries, uint8_t *plane,
                       size_t n)
{
    struct bits left = *bits;
    size_t i = 0;

    while (n - i >= MOST_AT_ONCE + sizeof left.word &&
           left.n_coded - left.at >= sizeof left.word) {
        left.word |= load_8_bytes(left.from + left.at) >> left.n_bits;
        left.at += (size_t)(63 - left.n_bits) / 8;
        left.n_bits |= 56; /* whole bytes were added */
        for (int k = 0; k < LOOKUPS_AT_ONCE; k++) {
            uint64_t entry = entries[left.word >> (64 - MAX_BITS)];
            uint64_t symbols = entry >> 16;

            memcpy(plane + i, &symbols, sizeof symbols);
            i += entry >> 8 & 255;
            left.n_bits -= (int)(entry & 63);
            left.word <<= entry & 63;
        }
    }
    *bits = left;
    return i;
}

/* The coded bytes end with the last code, zeros behind it. */
static bool get_codes(const uint8_t *from, size_t n_coded, const struct decoder *decoder,
                      uint8_t *plane, size_t n)
{
    struct bits bits = {.from = from, .n_coded = n_coded};

    for (size_t i = get_most(&bits, decoder->entries + (1 << MAX_BITS), plane, n); i < n;
         i++) {
        unsigned next;
        int length = 1;

        for (; bits.n_bits <= 56 && bits.at < n_coded; bits.n_bits += 8) {
            bits.word |= (uint64_t)from[bits.at++] << (56 - bits.n_bits);
        }
        next = (unsigned)(bits.word >> (64 - MAX_BITS));
        while (next >= decoder->ends[length]) {
            length++;
        }
        if (length > bits.n_bits) {
            return false;
        }
        bits.n_bits -= length;
        bits.word <<= length;
        next = (decoder->ends[length] - 1u - next) >> (MAX_BITS - length);
        plane[i] = decoder->symbols[decoder->begins[length + 1] - 1u - next];
    }
    return bits.at == n_coded && bits.n_bits < 8 &&
           (bits.n_bits == 0 || bits.word >> (64 - bits.n_bits) == 0);
}

static bool get_huffman(struct vxd_bytes_in *in, uint8_t *plane, size_t n)
{
    struct decoder decoder;
    const uint8_t *nibbles = vxd_bytes_get(in, LENGTH_BYTES);
    uint64_t n_coded = vxd_bytes_get_number(in);
    const uint8_t *from;

    if (nibbles == NULL || n_coded > n || !make_decoder(nibbles, &decoder)) {
        return false;
    }
    from = vxd_bytes_get(in, (size_t)n_coded);
    return from != NULL && get_codes(from, (size_t)n_coded, &decoder, plane, n);
}

bool vxd_byte_plane_get(struct vxd_bytes_in *in, uint8_t *plane, size_t n)
{
    unsigned form = vxd_bytes_get8(in);
    const uint8_t *from;
    bool is_good = false;

    if (form == FORM_PLAIN && !in->is_bad) {
        from = vxd_bytes_get(in, n);
        is_good = from != NULL;
        if (is_good && n > 0) {
            memcpy(plane, from, n);
        }
    } else if (form == FORM_CONSTANT && n > 0) {
        from = vxd_bytes_get(in, 1);
        is_good = from != NULL;
        if (is_good) {
            memset(plane, *from, n);
        }
    } else if (form == FORM_HUFFMAN && n > 0) {
        is_good = get_huffman(in, plane, n);
    }
    in->is_bad = in->is_bad || !is_good;
    return is_good;
}
