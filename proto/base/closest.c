// SPDX-License-Identifier: Apache-2.0
#include "proto/base/closest.h"

#include <stdio.h>
#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Counts differences (optimal string alignment); both words are shorter than VXD_CLOSEST_BYTES. */
static size_t distance_of(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t rows[3][VXD_CLOSEST_BYTES + 1];
    size_t *before = rows[0]; /* of a's letters without the last two */
    size_t *above = rows[1];
    size_t *row = rows[2];

    memset(rows, 0, sizeof rows);
    for (size_t j = 0; j <= n_b; j++) {
        above[j] = j;
    }
    for (size_t i = 1; i <= n_a; i++) {
        size_t *free_row = before;

        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t changed = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);

            row[j] = least(changed, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], before[j - 2] + 1);
            }
        }
        before = above;
        above = row;
        row = free_row;
    }
    return above[n_b];
}

void vxd_closest_offer(struct vxd_closest *search, const char *candidate)
{
    size_t n_word = strlen(search->word);
    size_t n = strlen(candidate);
    size_t distance;

    if (n_word == 0 || n == 0 || n_word >= VXD_CLOSEST_BYTES || n >= VXD_CLOSEST_BYTES) {
        return;
    }
    distance = distance_of(search->word, n_word, candidate, n);
    if (distance <= (n_word > n ? n_word : n) / 3 &&
        (search->found[0] == '\0' || distance < search->distance)) {
        memcpy(search->found, candidate, n + 1);
        search->distance = distance;
    }
}

const char *vxd_closest_text(const struct vxd_closest *search, char *text, size_t n_bytes)
{
    text[0] = '\0';
    if (search->found[0] != '\0') {
        (void)snprintf(text, n_bytes, ". Did you mean \"%s\"?", search->found);
    }
    return text;
}
