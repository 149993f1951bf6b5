// SPDX-License-Identifier: Apache-2.0
/* LZF, the compression of "DATA binary_compressed" PCD files. A control byte c, then
 *
 *   c < 32   c + 1 literal bytes
 *   else     a match: length (c >> 5) + 2, where 7 in the top bits means one more byte to
 *            add to it; distance ((c & 31) << 8 | next byte) + 1 back from here; the match
 *            may run into the bytes it writes
 */
#include <stdlib.h>
#include <string.h>

#include "client/files/reader.h"

bool vxd_lzf_decompress(const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out)
{
    size_t at = 0;
    size_t to = 0;

    while (at < n_in) {
        size_t control = in[at++];
        size_t length;
        size_t distance;

        if (control < 32) {
            length = control + 1;
            if (length > n_in - at || length > n_out - to) {
                return false;
            }
            memcpy(out + to, in + at, length);
            at += length;
            to += length;
            continue;
        }
        length = (control >> 5) + 2;
        if (control >> 5 == 7) {
            if (at == n_in) {
                return false;
            }
            length += in[at++];
        }
        if (at == n_in) {
            return false;
        }
        distance = ((control & 31) << 8 | in[at++]) + 1;
        if (distance > to || length > n_out - to) {
            return false;
        }
        for (size_t i = 0; i < length; i++, to++) {
            out[to] = out[to - distance];
        }
    }
    return to == n_out;
}

/* For each hash of three bytes, the last position that had it, plus one. */
enum {
    HASH_BITS = 14,
    MIN_MATCH = 3,
    MAX_MATCH = 264,
    MAX_DISTANCE = 8192,
    MAX_LITERALS = 32
};

static size_t hash_of(const uint8_t *p)
{
    uint32_t three = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];

    return three * 2654435761U >> (32 - HASH_BITS);
}

static size_t put_literals(const uint8_t *in, size_t n, uint8_t *out)
{
    size_t to = 0;

    while (n > 0) {
        size_t run = n < MAX_LITERALS ? n : MAX_LITERALS;

        out[to++] = (uint8_t)(run - 1);
        memcpy(out + to, in, run);
        to += run;
        in += run;
        n -= run;
    }
    return to;
}

static size_t put_match(size_t length, size_t distance, uint8_t *out)
{
    size_t code = length - 2;
    size_t to = 0;

    distance--;
    if (code < 7) {
        out[to++] = (uint8_t)(code << 5 | distance >> 8);
    } else {
        out[to++] = (uint8_t)(7U << 5 | distance >> 8);
        out[to++] = (uint8_t)(code - 7);
    }
    out[to++] = (uint8_t)(distance & 0xff);
    return to;
}

bool vxd_lzf_compress(const uint8_t *in, size_t n_in, uint8_t *out, size_t *n_out)
{
    uint32_t *last = calloc((size_t)1 << HASH_BITS, sizeof *last);
    size_t at = 0;
    size_t literals_at = 0;

    *n_out = 0;
    if (last == NULL) {
        return false;
    }
    while (n_in - at >= MIN_MATCH) {
        size_t hash = hash_of(in + at);
        size_t from = last[hash];
        size_t limit = n_in - at < MAX_MATCH ? n_in - at : MAX_MATCH;
        size_t length = 0;

        last[hash] = (uint32_t)(at + 1);
        if (from > 0 && at - (from - 1) <= MAX_DISTANCE) {
            from--;
            while (length < limit && in[from + length] == in[at + length]) {
                length++;
            }
        }
        if (length < MIN_MATCH) {
            at++;
            continue;
        }
        *n_out += put_literals(in + literals_at, at - literals_at, out + *n_out);
        *n_out += put_match(length, at - from, out + *n_out);
        at += length;
        literals_at = at;
    }
    *n_out += put_literals(in + literals_at, n_in - literals_at, out + *n_out);
    free(last);
    return true;
}
