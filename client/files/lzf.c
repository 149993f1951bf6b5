// SPDX-License-Identifier: Apache-2.0
/* LZF, the compression of "DATA binary_compressed" PCD files. A control byte c, then
 *
 *   c < 32   c + 1 literal bytes
 *   else     a match: length (c >> 5) + 2, where 7 in the top bits means one more byte to
 *            add to it; distance ((c & 31) << 8 | next byte) + 1 back from here; the match
 *            may run into the bytes it writes
 */
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
