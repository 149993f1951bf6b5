// SPDX-License-Identifier: Apache-2.0
/* Unpacked leaves, as editors change them, and the way back to their canonical words.
 *
 * In most leaves all occupied voxels have one value, before an edit and after it. Where
 * an edit cuts through a leaf they mostly have two values. Both cases are computed with
 * masks alone. Values one by one are needed only where a third value comes, or where a
 * stored leaf has several. Devices call the functions that do so out of line, and hand
 * them the values alone, so that the other members of a leaf stay in registers. */
#ifndef VXD_GPU_SVDAG_NODE_LEAF_MATH_H
#define VXD_GPU_SVDAG_NODE_LEAF_MATH_H

#include "gpu/svdag/node/tree_cursor_math.h"

/* An unpacked leaf of 4x4x4 voxels. Materials of the occupied voxels are either in
 * `values` (is_mixed), or given by masks: those in `others` have the value `other`, all
 * the rest has `first`. In scenes without materials none of these members is read. */
struct vxd_svdag_leaf {
    uint64_t set; /* occupied or FREE */
    uint64_t
        free; /* the FREE ones among the set; 0 where the scene does not track FREE */
    bool is_mixed;   /* materials are in `values` */
    uint16_t first;  /* value of the occupied voxels that are not in `others` */
    uint64_t others; /* a mask; its bits for voxels that are not occupied mean nothing */
    uint16_t other;  /* differs from `first` where the mask is not 0 */
    bool is_packed;  /* values are 4 bits, four in each of the first 16 elements */
    uint16_t
        *values; /* 64, owned by the caller; undefined where a voxel is not occupied */
};

/* Writes the value of one voxel. */
VXD_HD void vxd_svdag_values_put(uint16_t *values, bool is_packed, int bit,
                                 uint32_t value)
{
    if (is_packed) {
        const int shift = 4 * (bit & 3);

        values[bit >> 2] =
            (uint16_t)((values[bit >> 2] & ~(15u << shift)) | value << shift);
    } else {
        values[bit] = (uint16_t)value;
    }
}

/* The packed values of an octant. */
VXD_HD uint32_t vxd_svdag_octet_get(const uint16_t *values, int octant)
{
    const uint16_t *at = values + (size_t)octant * 2;

    return at[0] | (uint32_t)at[1] << 16;
}

VXD_HD void vxd_svdag_octet_put(uint16_t *values, int octant, uint32_t nibbles)
{
    uint16_t *at = values + (size_t)octant * 2;

    at[0] = (uint16_t)nibbles;
    at[1] = (uint16_t)(nibbles >> 16);
}

/* The voxels of an octant in a mask of 64, as the low bits of their nibbles. */
VXD_HD uint32_t vxd_svdag_octet_mask(uint64_t mask, int octant)
{
    return vxd_svdag_bits_spread((uint32_t)(mask >> 8 * octant) & 0xffu);
}

/* Value of an occupied voxel. */
VXD_HD uint32_t vxd_svdag_leaf_value(const struct vxd_svdag_leaf *leaf, int bit)
{
    if (!leaf->is_mixed) {
        return (leaf->others >> bit & 1) != 0 ? leaf->other : leaf->first;
    }
    return leaf->is_packed ? (uint32_t)leaf->values[bit >> 2] >> 4 * (bit & 3) & 15u
                           : leaf->values[bit];
}

/* Splitting ------------------------------------------------------------------------------- */

/* Whether all of n 4-bit values that are not FREE are equal, and that value. `free` < 0:
 * there are no FREE ones. Where all are FREE the value is undefined. */
VXD_HD bool vxd_svdag_nibbles_equal(const uint32_t *words, int n, int free,
                                    uint16_t *value)
{
    const uint32_t frees = (uint32_t)free * 0x11111111u;
    uint32_t one = words[0] & 15u;
    uint32_t differ = 0;

    if (free < 0) {
        VXD_SVDAG_ROLLED
        for (; n >= 8; n -= 8) {
            differ |= *words++ ^ one * 0x11111111u;
        }
        if (n > 0) {
            differ |= *words ^ (one * 0x11111111u & ((1u << 4 * n) - 1));
        }
        *value = (uint16_t)one;
        return differ == 0;
    }
    VXD_SVDAG_ROLLED
    for (; n > 0; n -= 8) {
        uint32_t word = *words++;
        uint32_t others = word ^ frees; /* low bits of the nibbles that are not FREE */

        others |= others >> 2;
        others |= others >> 1;
        others &= 0x11111111u & (n >= 8 ? ~0u : (1u << 4 * n) - 1);
        if (others != 0) {
            one = one != (uint32_t)free ? one : word >> vxd_svdag_low_bit(others) & 15u;
            differ |= (word ^ one * 0x11111111u) & others * 15u;
        }
    }
    *value = (uint16_t)one;
    return differ == 0;
}

/* Iterates over the 4-bit values of a leaf, or of an empty or uniform region, octant by
 * octant. */
struct vxd_svdag_octets {
    struct vxd_svdag_item item;
    uint64_t set;  /* set voxels of the octants left, the next octant in the low bits */
    int rank;      /* rank of its first value */
    bool is_even;  /* every value is */
    uint32_t even; /* `even` */
};

VXD_HD struct vxd_svdag_octets vxd_svdag_octets_of(const struct vxd_svdag_view *view,
                                                   uint32_t ref)
{
    struct vxd_svdag_octets octets;

    octets.is_even = !vxd_svdag_is_node(ref);
    octets.even = vxd_svdag_uniform_value(ref);
    octets.rank = 0;
    octets.set = 0;
    octets.item.words = NULL;
    octets.item.rest = NULL;
    if (!octets.is_even) {
        octets.item = vxd_svdag_leaf_item(view, ref);
        octets.set = vxd_svdag_leaf_mask(octets.item.words);
    }
    return octets;
}

/* Values of the next octant, each in the nibble of its voxel. Undefined for voxels that
 * are not set. */
VXD_HD uint32_t vxd_svdag_octets_next(struct vxd_svdag_octets *octets)
{
    const uint32_t set = (uint32_t)octets->set & 0xffu;
    const int n = vxd_svdag_popc(set);
    uint32_t nibbles = 0;

    if (octets->is_even) {
        return vxd_svdag_nibbles_of(octets->even);
    }
    if (n > 0) {
        nibbles = vxd_svdag_leaf_nibbles(&octets->item, octets->rank, n);
        nibbles = n == 8 ? nibbles
                         : vxd_svdag_nibbles_deposit(nibbles, vxd_svdag_bits_spread(set));
    }
    octets->rank += n;
    octets->set >>= 8;
    return nibbles;
}

/* Reads the values of a stored leaf of 4 bits, packed. */
VXD_SVDAG_RARE void vxd_svdag_octets_spread(const struct vxd_svdag_view *view,
                                            uint32_t ref, uint16_t *values)
{
    struct vxd_svdag_octets octets = vxd_svdag_octets_of(view, ref);

    VXD_SVDAG_ROLLED
    for (int octant = 0; octant < 8; octant++) {
        vxd_svdag_octet_put(values, octant, vxd_svdag_octets_next(&octets));
    }
}

/* Reads the values of a leaf from consecutive words. */
VXD_SVDAG_RARE void vxd_svdag_leaf_spread(const uint32_t *words, int bits, uint64_t set,
                                          uint16_t *values)
{
    const uint32_t mask = (1u << bits) - 1;
    uint32_t word = 0;
    int left = 0;

    for (uint64_t rest = set; rest != 0; rest &= rest - 1) {
        if (left == 0) {
            word = *words++;
            left = 32;
        }
        values[vxd_svdag_low_bit(rest)] = (uint16_t)(word & mask);
        word >>= bits;
        left -= bits;
    }
}

/* Reads a reference of leaf height, also an empty or uniform one, without the values of a
 * mixed leaf. Returns where those are stored, or NULL where the leaf is not mixed; then
 * all have the value `first`. */
VXD_HD const uint32_t *vxd_svdag_leaf_peek(const struct vxd_svdag_view *view,
                                           uint32_t ref, struct vxd_svdag_leaf *leaf)
{
    const uint32_t *words;
    struct vxd_svdag_item item;

    leaf->is_mixed = false;
    leaf->first = (uint16_t)vxd_svdag_uniform_value(ref);
    leaf->others = 0;
    leaf->other = 0;
    leaf->is_packed = view->value_bits == 4;
    leaf->values = NULL;
    if (!vxd_svdag_is_node(ref)) {
        leaf->set = ref == VXD_SVDAG_EMPTY ? 0 : ~(uint64_t)0;
        leaf->free = (int)leaf->first == view->free_value ? leaf->set : 0;
        return NULL;
    }
    item = vxd_svdag_leaf_item(view, ref);
    leaf->set = vxd_svdag_leaf_mask(item.words);
    leaf->free = leaf->set & ~vxd_svdag_item_occupied_called(view, &item);
    if (view->value_bits <= 1) {
        return NULL;
    }
    if (view->value_bits > 4) {
        leaf->first = (uint16_t)vxd_svdag_uniform_value(item.rest[0]);
        leaf->is_mixed = !vxd_svdag_is_uniform(item.rest[0]);
        return leaf->is_mixed ? vxd_svdag_words(view, item.rest[0]) + 1 : NULL;
    }
    words = item.rest;
    leaf->is_mixed = !vxd_svdag_nibbles_equal(words, vxd_svdag_popc(leaf->set),
                                              view->free_value, &leaf->first);
    return leaf->is_mixed ? words : NULL;
}

/* The same with the values of a mixed leaf. `values` becomes the leaf's. */
VXD_HD void vxd_svdag_leaf_split(const struct vxd_svdag_view *view, uint32_t ref,
                                 uint16_t values[64], struct vxd_svdag_leaf *leaf)
{
    const uint32_t *words = vxd_svdag_leaf_peek(view, ref, leaf);

    leaf->values = values;
    if (words != NULL && leaf->is_packed) {
        vxd_svdag_octets_spread(view, ref, values);
    } else if (words != NULL) {
        vxd_svdag_leaf_spread(words, view->value_bits, leaf->set, values);
    }
}

/* Editing --------------------------------------------------------------------------------- */

VXD_HD void vxd_svdag_values_fill(uint16_t *values, uint64_t mask, uint32_t value)
{
    for (; mask != 0; mask &= mask - 1) {
        values[vxd_svdag_low_bit(mask)] = (uint16_t)value;
    }
}

/* Writes three values, each to the voxels of its mask. */
VXD_SVDAG_RARE void vxd_svdag_values_mix(uint16_t *values, uint64_t firsts,
                                         uint32_t first, uint64_t others, uint32_t other,
                                         uint64_t mask, uint32_t value)
{
    vxd_svdag_values_fill(values, firsts, first);
    vxd_svdag_values_fill(values, others, other);
    vxd_svdag_values_fill(values, mask, value);
}

/* The same for packed values. */
VXD_SVDAG_RARE void vxd_svdag_octets_mix(uint16_t *values, uint64_t firsts,
                                         uint32_t first, uint64_t others, uint32_t other,
                                         uint64_t mask, uint32_t value)
{
    VXD_SVDAG_ROLLED
    for (int octant = 0; octant < 8; octant++) {
        const uint32_t at[3] = {15u * vxd_svdag_octet_mask(firsts, octant),
                                15u * vxd_svdag_octet_mask(others, octant),
                                15u * vxd_svdag_octet_mask(mask, octant)};

        vxd_svdag_octet_put(
            values, octant,
            (vxd_svdag_octet_get(values, octant) & ~(at[0] | at[1] | at[2])) |
                (at[0] & vxd_svdag_nibbles_of(first)) |
                (at[1] & vxd_svdag_nibbles_of(other)) |
                (at[2] & vxd_svdag_nibbles_of(value)));
    }
}

/* Gives the occupied voxels of `mask` a value, and makes the leaf mixed: `rest`, the
 * other occupied voxels, keep the values that they have. */
VXD_HD void vxd_svdag_leaf_mix(struct vxd_svdag_leaf *leaf, uint64_t rest, uint64_t mask,
                               uint32_t value)
{
    const uint64_t firsts = leaf->is_mixed ? 0 : rest & ~leaf->others;
    const uint64_t others = leaf->is_mixed ? 0 : rest & leaf->others;

    if (leaf->is_packed) {
        vxd_svdag_octets_mix(leaf->values, firsts, leaf->first, others, leaf->other, mask,
                             value);
    } else {
        vxd_svdag_values_mix(leaf->values, firsts, leaf->first, others, leaf->other, mask,
                             value);
    }
    leaf->is_mixed = true;
}

/* Gives the occupied voxels of `mask`, at least one, a value. */
VXD_HD void vxd_svdag_leaf_set_value(struct vxd_svdag_leaf *leaf, uint64_t mask,
                                     uint16_t value)
{
    const uint64_t rest = leaf->set & ~leaf->free & ~mask;
    const uint64_t others = rest & leaf->others;

    if (rest == 0) {
        leaf->is_mixed = false;
        leaf->others = 0;
        leaf->first = value;
    } else if (leaf->is_mixed || (others != 0 && others != rest && leaf->first != value &&
                                  leaf->other != value)) {
        vxd_svdag_leaf_mix(leaf, rest, mask, value);
    } else if (others != 0 && leaf->other == value) {
        leaf->others = others | mask;
    } else if (rest == others || leaf->first == value) {
        leaf->others = others;
        leaf->first = value;
    } else {
        leaf->others = mask;
        leaf->other = value;
    }
}

/* Gives one occupied voxel a value. */
VXD_HD void vxd_svdag_leaf_set_voxel(struct vxd_svdag_leaf *leaf, int bit, uint32_t value)
{
    if (leaf->is_mixed) {
        vxd_svdag_values_put(leaf->values, leaf->is_packed, bit, value);
    } else {
        vxd_svdag_leaf_set_value(leaf, (uint64_t)1 << bit, (uint16_t)value);
    }
}

VXD_SVDAG_RARE uint64_t vxd_svdag_values_find(const uint16_t *values, uint64_t mask,
                                              uint32_t value)
{
    uint64_t equal = 0;

    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        equal |= values[vxd_svdag_low_bit(rest)] == value ? rest & (~rest + 1) : 0;
    }
    return equal;
}

/* The same for packed values. */
VXD_SVDAG_RARE uint64_t vxd_svdag_octets_find(const uint16_t *values, uint64_t mask,
                                              uint32_t value)
{
    uint64_t differ = 0;

    VXD_SVDAG_ROLLED
    for (int octant = 0; octant < 8; octant++) {
        differ |= (uint64_t)vxd_svdag_nibbles_any(vxd_svdag_octet_get(values, octant) ^
                                                  vxd_svdag_nibbles_of(value))
                  << 8 * octant;
    }
    return mask & ~differ;
}

/* The voxels of `mask`, all of them occupied, that have a value. */
VXD_HD uint64_t vxd_svdag_leaf_find_value(const struct vxd_svdag_leaf *leaf,
                                          uint64_t mask, uint32_t value)
{
    if (leaf->is_mixed) {
        return leaf->is_packed ? vxd_svdag_octets_find(leaf->values, mask, value)
                               : vxd_svdag_values_find(leaf->values, mask, value);
    }
    return mask & ((leaf->first == value ? ~leaf->others : 0) |
                   (leaf->other == value ? leaf->others : 0));
}

/* Packing --------------------------------------------------------------------------------- */

/* Packs the values of the set voxels, FREE ones included. They come from masks where
 * `values` is NULL. Returns the uniform reference where all are equal, else
 * VXD_SVDAG_EMPTY. */
VXD_SVDAG_RARE uint32_t vxd_svdag_values_pack(const struct vxd_svdag_view *view,
                                              uint64_t set, uint64_t free,
                                              const uint16_t *values, uint64_t others,
                                              uint32_t one, uint32_t other,
                                              uint32_t *words)
{
    int bits = view->value_bits;
    int shift = 0;
    uint32_t word = 0;
    uint32_t differ = 0;
    uint32_t first = VXD_SVDAG_UNIFORM;

    for (uint64_t rest = set; rest != 0; rest &= rest - 1) {
        int bit = vxd_svdag_low_bit(rest);
        uint32_t value = (free >> bit & 1) != 0     ? (uint32_t)view->free_value
                         : values != NULL           ? values[bit]
                         : (others >> bit & 1) != 0 ? other
                                                    : one;

        first = rest == set ? value : first;
        differ |= value ^ first;
        word |= value << shift;
        shift += bits;
        if (shift == 32) {
            *words++ = word;
            word = 0;
            shift = 0;
        }
    }
    if (shift > 0) {
        *words = word;
    }
    return differ == 0 ? VXD_SVDAG_UNIFORM | first : VXD_SVDAG_EMPTY;
}

/* Writes one value n times. */
VXD_HD void vxd_svdag_nibbles_fill(uint32_t *words, int n, uint32_t value)
{
    const uint32_t word = vxd_svdag_nibbles_of(value);

    VXD_SVDAG_ROLLED
    for (; n >= 8; n -= 8) {
        *words++ = word;
    }
    if (n > 0) {
        *words = word & ((1u << 4 * n) - 1);
    }
}

/* Packs the 4-bit values of the set voxels, FREE ones included. They come from masks
 * where `values` is NULL, else from packed values. Returns the uniform reference where
 * all are equal, else VXD_SVDAG_EMPTY. */
VXD_SVDAG_RARE uint32_t vxd_svdag_octets_pack(uint64_t set, uint64_t free,
                                              const uint16_t *values, uint64_t others,
                                              uint32_t first, uint32_t other,
                                              uint32_t free_value, uint32_t *words)
{
    uint64_t packed = 0;
    uint32_t one = 0;
    uint32_t differ = 0;
    int n = 0; /* nibbles in `packed`; at most 7 between octants */
    bool has_one = false;

    VXD_SVDAG_ROLLED
    for (int octant = 0; octant < 8; octant++) {
        const uint32_t kept = vxd_svdag_octet_mask(set, octant);
        const int n_kept = vxd_svdag_popc(kept);
        const uint32_t frees = 15u * vxd_svdag_octet_mask(free, octant);
        uint32_t nibbles = vxd_svdag_nibbles_of(first) ^
                           vxd_svdag_octet_mask(others, octant) * (first ^ other);

        nibbles = values != NULL ? vxd_svdag_octet_get(values, octant) : nibbles;
        nibbles = (nibbles & ~frees) | (vxd_svdag_nibbles_of(free_value) & frees);
        nibbles = vxd_svdag_nibbles_extract(nibbles, kept);
        one = has_one ? one : nibbles & 15u;
        has_one = has_one || n_kept > 0;
        differ |= nibbles ^ (vxd_svdag_nibbles_of(one) &
                             (uint32_t)(((uint64_t)1 << 4 * n_kept) - 1));
        packed |= (uint64_t)nibbles << 4 * n;
        n += n_kept;
        if (n >= 8) {
            *words++ = (uint32_t)packed;
            packed >>= 32;
            n -= 8;
        }
    }
    if (n > 0) {
        *words = (uint32_t)packed;
    }
    return differ == 0 ? VXD_SVDAG_UNIFORM | one : VXD_SVDAG_EMPTY;
}

/* The uniform reference of the set voxels (at least one, FREE ones included) where masks
 * show that all have one value, else VXD_SVDAG_EMPTY. */
VXD_HD uint32_t vxd_svdag_leaf_even(const struct vxd_svdag_view *view,
                                    const struct vxd_svdag_leaf *leaf)
{
    const uint64_t occupied = leaf->set & ~leaf->free;
    const uint64_t others = occupied & leaf->others;

    if (occupied == 0) {
        return VXD_SVDAG_UNIFORM | (uint32_t)view->free_value;
    }
    if (leaf->is_mixed || occupied != leaf->set || (others != 0 && others != occupied)) {
        return VXD_SVDAG_EMPTY;
    }
    return VXD_SVDAG_UNIFORM | (others != 0 ? leaf->other : leaf->first);
}

/* Packs 8- or 16-bit values of the set voxels (at least one, FREE ones included) into
 * `words`. Returns true where all are *value; the words may then be unwritten. */
VXD_HD bool vxd_svdag_leaf_pack(const struct vxd_svdag_view *view,
                                const struct vxd_svdag_leaf *leaf, uint32_t *words,
                                uint32_t *value)
{
    uint32_t even = vxd_svdag_leaf_even(view, leaf);

    if (even == VXD_SVDAG_EMPTY) {
        even = vxd_svdag_values_pack(view, leaf->set, leaf->free,
                                     leaf->is_mixed ? leaf->values : NULL, leaf->others,
                                     leaf->first, leaf->other, words);
    }
    *value = vxd_svdag_uniform_value(even);
    return even != VXD_SVDAG_EMPTY;
}

/* The same for 4 bits; the words are always written. Returns the uniform reference where
 * all values are equal, else VXD_SVDAG_EMPTY. */
VXD_HD uint32_t vxd_svdag_leaf_pack_nibbles(const struct vxd_svdag_view *view,
                                            const struct vxd_svdag_leaf *leaf,
                                            uint32_t *words)
{
    const uint32_t even = vxd_svdag_leaf_even(view, leaf);

    if (even != VXD_SVDAG_EMPTY) {
        vxd_svdag_nibbles_fill(words, vxd_svdag_popc(leaf->set),
                               vxd_svdag_uniform_value(even));
        return even;
    }
    if (leaf->is_mixed && !leaf->is_packed) {
        return vxd_svdag_values_pack(view, leaf->set, leaf->free, leaf->values, 0, 0, 0,
                                     words);
    }
    return vxd_svdag_octets_pack(
        leaf->set, leaf->free, leaf->is_mixed ? leaf->values : NULL, leaf->others,
        leaf->first, leaf->other, (uint32_t)view->free_value, words);
}

/* Writes the words of a leaf of up to 4-bit values with at least one set voxel. Returns
 * false where the leaf is uniform; then *ref is its uniform reference. */
VXD_HD bool vxd_svdag_leaf_compose(const struct vxd_svdag_view *view,
                                   const struct vxd_svdag_leaf *leaf, uint32_t *words,
                                   uint32_t *ref)
{
    uint64_t free_mask = leaf->free & leaf->set;

    words[0] = (uint32_t)leaf->set;
    words[1] = (uint32_t)(leaf->set >> 32);
    *ref = VXD_SVDAG_UNIFORM;
    if (view->value_bits == 1) {
        words[2] = (uint32_t)free_mask;
        words[3] = (uint32_t)(free_mask >> 32);
        *ref |= free_mask != 0 ? 1 : 0;
        return leaf->set != ~(uint64_t)0 || (free_mask != 0 && free_mask != leaf->set);
    }
    if (view->value_bits == 4) {
        *ref = vxd_svdag_leaf_pack_nibbles(view, leaf, words + 2);
    }
    return leaf->set != ~(uint64_t)0 || *ref == VXD_SVDAG_EMPTY;
}

#endif
