// SPDX-License-Identifier: Apache-2.0
/* The layout of fields, and the rule of their passes, as both backends compile them.
 *
 * Three passes, along z, y and x. After a pass along an axis every voxel has the signed square E
 * to the nearest voxel of the other kind among those that differ from it in this axis and the
 * axes before only: positive for voxels that are no obstacle, negative for obstacles, FAR where
 * there is none within max_distance. One number is enough for both kinds, because a voxel of the
 * wanted kind has distance 0. The pass takes, of the candidates c at a step s along its
 * axis, f(E(c)) + s^2, where f is |E| where c is of the target's kind and else 0, the least;
 * of equal ones the lowest c. The rule of field.h follows: x is decided last.
 *
 * Of the first pass nothing is stored: its results are in the bits. The second stores squares and
 * steps, the third too. Where the nearest voxel is, the steps of the third, of the second at the
 * place it names, and then the rest of the square tell. */
#ifndef VXD_GPU_FIELD_FIELD_MATH_H
#define VXD_GPU_FIELD_FIELD_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/field/field.h"

enum {
    /* Above 127^2, and with another square added still an int16. */
    VXD_FIELD_FAR = 16383,
    VXD_FIELD_WORD = 64, /* voxels along z of a word of bits */
    VXD_FIELD_LANES = 16 /* rows of squares are padded to so many */
};

/* What kernels and loops need to know of a field. Arrays are row-major, x slowest. */
struct vxd_field_view {
    int32_t low[3];
    int32_t size[3];
    int32_t n_blocks[2]; /* along x and y */
    int32_t n_words;     /* of a row of bits */
    int32_t pitch;       /* squares of a row */
    int32_t reach;       /* max_distance */
    double voxel_size_m;
    uint64_t *obstacles;    /* bits; behind the end of a row 0 */
    uint64_t *unknown;      /* the same; NULL where nothing is ignored */
    int16_t *plane_squares; /* after the second pass */
    int8_t *plane_steps;    /* along y */
    int16_t *squares;       /* after the third */
    int8_t *steps;          /* along x */
    /* By blocks along x and y, and words along z: where bits, and where squares after the
     * second pass, have changed in this update. */
    uint8_t *bits_changed;
    uint8_t *plane_changed;
};

VXD_HD size_t vxd_field_row(const struct vxd_field_view *field, int x, int y)
{
    return (size_t)x * (size_t)field->size[1] + (size_t)y;
}

VXD_HD size_t vxd_field_index(const struct vxd_field_view *field, int x, int y, int z)
{
    return vxd_field_row(field, x, y) * (size_t)field->pitch + (size_t)z;
}

VXD_HD const uint64_t *vxd_field_bits(const struct vxd_field_view *field, int x, int y)
{
    return field->obstacles + vxd_field_row(field, x, y) * (size_t)field->n_words;
}

VXD_HD bool vxd_field_is_obstacle(const struct vxd_field_view *field, int x, int y, int z)
{
    return (vxd_field_bits(field, x, y)[z / VXD_FIELD_WORD] >> (z % VXD_FIELD_WORD) &
            1) != 0;
}

VXD_HD bool vxd_field_is_unknown(const struct vxd_field_view *field, int x, int y, int z)
{
    size_t row = vxd_field_row(field, x, y) * (size_t)field->n_words;

    return field->unknown != NULL &&
           (field->unknown[row + (size_t)(z / VXD_FIELD_WORD)] >> (z % VXD_FIELD_WORD) &
            1) != 0;
}

VXD_HD int vxd_field_lowest_bit(uint64_t v)
{
#if defined(__CUDA_ARCH__)
    return __ffsll((long long)v) - 1;
#else
    return __builtin_ctzll(v);
#endif
}

VXD_HD int vxd_field_highest_bit(uint64_t v)
{
#if defined(__CUDA_ARCH__)
    return 63 - __clzll((long long)v);
#else
    return 63 - __builtin_clzll(v);
#endif
}

/* The first voxel from z up to `last` of a row whose bit, exclusive-or `flip` (0 or all ones), is
 * set; -1 where there is none. */
VXD_HD int vxd_field_next(const uint64_t *row, uint64_t flip, int z, int last)
{
    int word = z / VXD_FIELD_WORD;
    uint64_t bits;
    int found;

    if (z > last) {
        return -1;
    }
    bits = (row[word] ^ flip) & ~(uint64_t)0 << (z % VXD_FIELD_WORD);
    while (bits == 0) {
        word++;
        if (word * VXD_FIELD_WORD > last) {
            return -1;
        }
        bits = row[word] ^ flip;
    }
    found = word * VXD_FIELD_WORD + vxd_field_lowest_bit(bits);
    return found <= last ? found : -1;
}

/* The same from z down to `first`. */
VXD_HD int vxd_field_previous(const uint64_t *row, uint64_t flip, int z, int first)
{
    int word = z / VXD_FIELD_WORD;
    uint64_t bits;
    int found;

    if (z < first) {
        return -1;
    }
    bits = (row[word] ^ flip) & ~(uint64_t)0 >> (VXD_FIELD_WORD - 1 - z % VXD_FIELD_WORD);
    while (bits == 0) {
        if (word * VXD_FIELD_WORD <= first) {
            return -1;
        }
        word--;
        bits = row[word] ^ flip;
    }
    found = word * VXD_FIELD_WORD + vxd_field_highest_bit(bits);
    return found >= first ? found : -1;
}

/* The bits of a word that are in the box. */
VXD_HD uint64_t vxd_field_word_mask(int size_z, int word)
{
    int n = size_z - word * VXD_FIELD_WORD;

    return n >= VXD_FIELD_WORD ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

/* The obstacles among the voxels of a word, and those that are unknown and ignored. */
VXD_HD uint64_t vxd_field_classify_word(enum vxd_field_unknown policy, bool tracks_free,
                                        uint64_t occupied, uint64_t free, uint64_t mask,
                                        uint64_t *unknown)
{
    uint64_t unset = tracks_free ? ~(occupied | free) & mask : 0;

    *unknown = policy == VXD_FIELD_UNKNOWN_IGNORED ? unset : 0;
    return policy == VXD_FIELD_UNKNOWN_OCCUPIED ? occupied | unset : occupied;
}

/* Rows of squares that a line of n places takes, minima of its blocks included (field_cpu.c). */
VXD_HD size_t vxd_field_line_rows(int n)
{
    return (size_t)n + 2 * ((size_t)n / VXD_FIELD_BLOCK);
}

/* Squares along a line of the second or third pass, `stride` apart, of n places. For each eight
 * of them the least candidates: [0] of targets that are no obstacles, [1] of those that are. */
struct vxd_field_line {
    const int16_t *squares;
    const int16_t *minima[2];
    int stride;
    int n;
    int reach;
};

/* Best candidates are kept as one number: the square, and below it the place. So the least number
 * is the nearest candidate, and of equal ones the lowest. Places are below 1024. */
#define VXD_FIELD_PLACE_BITS 10

VXD_HD int vxd_field_best_square(int best)
{
    return best >> VXD_FIELD_PLACE_BITS;
}

VXD_HD int vxd_field_best_place(int best)
{
    return best & ((1 << VXD_FIELD_PLACE_BITS) - 1);
}

VXD_HD int vxd_field_pack_best(int square, int place)
{
    return square * (1 << VXD_FIELD_PLACE_BITS) + place;
}

VXD_HD int vxd_field_least(int a, int b)
{
    return a < b ? a : b;
}

/* The square of a place as a candidate, its own distance from the target left out. */
VXD_HD int vxd_field_candidate(const struct vxd_field_line *line, int sign, int place)
{
    int at = place * line->stride;
    int square = sign * line->squares[at];

    return square > 0 ? square : 0;
}

/* The best candidate of the block at `first` for a target. */
VXD_HD int vxd_field_try_block(const struct vxd_field_line *line, int sign, int target,
                               int first, int best)
{
    for (int i = 0; i < VXD_FIELD_BLOCK; i++) {
        int s = first + i - target;

        best = vxd_field_least(
            best, vxd_field_pack_best(vxd_field_candidate(line, sign, first + i) + s * s,
                                      first + i));
    }
    return best;
}

/* The place of the best candidate of a target at the beginning of a block, as if the target were
 * of the kind `sign`: searched from the target outwards until no farther candidate can be nearer.
 * The target's own place where no candidate is within reach. */
VXD_HD int vxd_field_line_place(const struct vxd_field_line *line, int sign, int target)
{
    const int16_t *minima = line->minima[sign < 0];
    int best = vxd_field_pack_best(line->reach * line->reach + 1, target);

    best = vxd_field_try_block(line, sign, target, target, best);
    for (int s = 1; s * s <= vxd_field_best_square(best); s += VXD_FIELD_BLOCK) {
        int below = target - s;
        int above = target - 1 + s + VXD_FIELD_BLOCK;
        int at_below = below / VXD_FIELD_BLOCK * line->stride;
        int at_above = above / VXD_FIELD_BLOCK * line->stride;

        if (below >= 0 && minima[at_below] + s * s <= vxd_field_best_square(best)) {
            best = vxd_field_try_block(line, sign, target, below - (VXD_FIELD_BLOCK - 1),
                                       best);
        }
        if (above < line->n && minima[at_above] + (above - target) * (above - target) <=
                                   vxd_field_best_square(best)) {
            best = vxd_field_try_block(line, sign, target, above, best);
        }
    }
    return vxd_field_best_place(best);
}

/* A candidate for eight targets in a row from `first` on. The squares in `best` are less by j^2 at
 * target j, which is the same for all of its candidates. */
VXD_HD void vxd_field_try_targets(const struct vxd_field_line *line, int sign, int first,
                                  int place, int best[VXD_FIELD_BLOCK])
{
    int s = place - first;
    int at_first =
        vxd_field_pack_best(vxd_field_candidate(line, sign, place) + s * s, place);
    int slope = vxd_field_pack_best(-2 * s, 0);

    for (int j = 0; j < VXD_FIELD_BLOCK; j++) {
        best[j] = vxd_field_least(best[j], at_first + j * slope);
    }
}

/* The best candidates of the eight targets of the block at `first`, each as if it were of the kind
 * `sign`. A farther target's best candidate is never below a nearer one's: parabolas of one width
 * cross once. So all are between `low`, the place of the first target's, and `high`, that of the
 * target behind the block, or the line's end. */
VXD_HD void vxd_field_line_block(const struct vxd_field_line *line, int sign, int first,
                                 int low, int high, int best[VXD_FIELD_BLOCK])
{
    const int16_t *minima = line->minima[sign < 0];
    int place = low + 1;

    for (int j = 0; j < VXD_FIELD_BLOCK; j++) {
        best[j] = vxd_field_pack_best(VXD_FIELD_FAR, first);
    }
    vxd_field_try_targets(line, sign, first, low, best);
    vxd_field_try_targets(line, sign, first, high, best);
    while (place < high) {
        int block = place / VXD_FIELD_BLOCK;
        int away = block - first / VXD_FIELD_BLOCK;
        int s = away == 0
                    ? 0
                    : (away < 0 ? -away : away) * VXD_FIELD_BLOCK - (VXD_FIELD_BLOCK - 1);
        int next = (block + 1) * VXD_FIELD_BLOCK;
        int at = block * line->stride;
        int most = best[0];

        for (int j = 1; j < VXD_FIELD_BLOCK; j++) {
            most = best[j] > most ? best[j] : most;
        }
        most = vxd_field_least(vxd_field_best_square(most) +
                                   (VXD_FIELD_BLOCK - 1) * (VXD_FIELD_BLOCK - 1),
                               line->reach * line->reach);
        if (minima[at] + s * s > most) {
            place = next;
        }
        for (; place < next && place < high; place++) {
            vxd_field_try_targets(line, sign, first, place, best);
        }
    }
}

/* The square of target j of a block, and the step to it; own square and best candidate given. */
VXD_HD int vxd_field_block_square(const struct vxd_field_line *line, int sign, int first,
                                  int j, int best, int *step)
{
    int square = vxd_field_best_square(best) + j * j;
    bool is_far = square > line->reach * line->reach;

    *step = is_far ? 0 : vxd_field_best_place(best) - (first + j);
    return is_far ? sign * VXD_FIELD_FAR : sign * square;
}

/* The root of a perfect square up to 127^2. */
VXD_HD int vxd_field_root(int square)
{
    return (int)sqrtf((float)square);
}

/* The nearest voxel of the other kind, in the field's indices; false where there is none. */
VXD_HD bool vxd_field_nearest(const struct vxd_field_view *field, const int at[3],
                              int nearest[3])
{
    size_t i = vxd_field_index(field, at[0], at[1], at[2]);
    int square = field->squares[i];
    bool is_obstacle = square < 0;
    int rest = is_obstacle ? -square : square;
    int step = (int)field->steps[i];

    if (rest == VXD_FIELD_FAR) {
        return false;
    }
    nearest[0] = at[0] + step;
    nearest[1] = at[1];
    nearest[2] = at[2];
    rest -= step * step;
    i = vxd_field_index(field, nearest[0], at[1], at[2]);
    if ((field->plane_squares[i] < 0) != is_obstacle) {
        return true;
    }
    step = (int)field->plane_steps[i];
    nearest[1] += step;
    rest -= step * step;
    step = vxd_field_root(rest);
    if (step == 0) {
        return true;
    }
    nearest[2] = at[2] >= step && vxd_field_is_obstacle(field, nearest[0], nearest[1],
                                                        at[2] - step) != is_obstacle
                     ? at[2] - step
                     : at[2] + step;
    return true;
}

#endif
