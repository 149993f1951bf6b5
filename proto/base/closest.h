// SPDX-License-Identifier: Apache-2.0
/* Finds what a misspelt word may have meant, for messages that say "did you mean". */
#ifndef VXD_PROTO_BASE_CLOSEST_H
#define VXD_PROTO_BASE_CLOSEST_H

#include <stdbool.h>
#include <stddef.h>

/* Longer words are never close to another one. */
#define VXD_CLOSEST_BYTES 64

/* The search so far; {.word = "yrad"} begins one. */
struct vxd_closest {
    const char *word;
    char found
        [VXD_CLOSEST_BYTES]; /* the closest word that was offered; "" = none is close */
    size_t distance;         /* of `found` */
};

/* Offers a word: it is taken where it is closer than those before and
 * differs from the misspelt one in at most a third of its letters. A difference is one letter that
 * is missing, added or another one, or two neighbours that changed places. */
void vxd_closest_offer(struct vxd_closest *search, const char *candidate);

/* Writes ". Did you mean \"yard\"?", or nothing where no word is close. Returns text. */
const char *vxd_closest_text(const struct vxd_closest *search, char *text,
                             size_t n_bytes);

#endif
