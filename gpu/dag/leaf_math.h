// SPDX-License-Identifier: Apache-2.0
/* Leaves apart, as editors change them, and their canonical words.
 *
 * Of most leaves all occupied voxels have one value, before an edit and after it: there the
 * value stands for them, and masks are all that is computed with. The values one by one are
 * written where two meet, by functions that devices call: they are handed the values alone, so
 * that the rest of a leaf stays in registers. */
#ifndef VXD_GPU_DAG_LEAF_MATH_H
#define VXD_GPU_DAG_LEAF_MATH_H

#include "gpu/dag/cursor_math.h"

/* 4x4x4 voxels, apart. Where there are no materials neither value nor values are looked at. */
struct vxd_dag_leaf {
    uint64_t set;   /* occupied or FREE */
    uint64_t free;  /* of those, FREE; 0 where it is not tracked */
    bool is_mixed;  /* the occupied ones may differ in material: see values */
    uint16_t value; /* of all occupied ones, where not */
    uint16_t
        *values; /* room for 64, borrowed from whoever made the leaf; where it is mixed
                       * those of the occupied ones are there, others are anything */
};

/* Value of an occupied voxel. */
VXD_HD uint32_t vxd_dag_leaf_value(const struct vxd_dag_leaf *leaf, int bit)
{
    return leaf->is_mixed ? leaf->values[bit] : leaf->value;
}

/* Values of `bits` bits each, which divide 32, all the same in every word. */
VXD_HD uint32_t vxd_dag_repeated(uint32_t value, int bits)
{
    return value * (bits == 4 ? 0x11111111u : bits == 8 ? 0x01010101u : 0x00010001u);
}

/* Splitting ------------------------------------------------------------------------------- */

/* Whether n values of 4 bits are equal but for FREE ones, and the value; `free` < 0: there are
 * none. Of FREE ones alone it is any. */
VXD_HD bool vxd_dag_nibbles_equal(const uint32_t *words, int n, int free, uint16_t *value)
{
    const uint32_t frees = (uint32_t)free * 0x11111111u;
    uint32_t one = words[0] & 15u;
    uint32_t differ = 0;

    if (free < 0) {
        for (; n >= 8; n -= 8) {
            differ |= *words++ ^ one * 0x11111111u;
        }
        if (n > 0) {
            differ |= *words ^ (one * 0x11111111u & ((1u << 4 * n) - 1));
        }
        *value = (uint16_t)one;
        return differ == 0;
    }
    for (; n > 0; n -= 8) {
        uint32_t word = *words++;
        uint32_t others = word ^ frees; /* low bits of those that are not FREE */

        others |= others >> 2;
        others |= others >> 1;
        others &= 0x11111111u & (n >= 8 ? ~0u : (1u << 4 * n) - 1);
        if (others != 0) {
            one = one != (uint32_t)free ? one : word >> vxd_dag_low_bit(others) & 15u;
            differ |= (word ^ one * 0x11111111u) & others * 15u;
        }
    }
    *value = (uint16_t)one;
    return differ == 0;
}

/* A leaf's values from words, one after the other. */
VXD_DAG_RARE void vxd_dag_leaf_spread(const uint32_t *words, int bits, uint64_t set,
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
        values[vxd_dag_low_bit(rest)] = (uint16_t)(word & mask);
        word >>= bits;
        left -= bits;
    }
}

/* What stands at a reference of leaf height, empty and uniform ones too, but the values of a
 * mixed one: NULL where there are none, else where they are stored. */
VXD_HD const uint32_t *vxd_dag_leaf_peek(const struct vxd_dag_view *view, uint32_t ref,
                                         struct vxd_dag_leaf *leaf)
{
    const uint32_t *words;
    struct vxd_dag_item item;

    leaf->is_mixed = false;
    leaf->value = (uint16_t)vxd_dag_uniform_value(ref);
    leaf->values = NULL;
    if (!vxd_dag_is_node(ref)) {
        leaf->set = ref == VXD_DAG_EMPTY ? 0 : ~(uint64_t)0;
        leaf->free = (int)leaf->value == view->free_value ? leaf->set : 0;
        return NULL;
    }
    item = vxd_dag_leaf_item(view, ref);
    leaf->set = vxd_dag_leaf_mask(item.words);
    leaf->free = leaf->set & ~vxd_dag_item_occupied(view, &item);
    if (view->value_bits <= 1) {
        return NULL;
    }
    if (view->value_bits > 4) {
        leaf->value = (uint16_t)vxd_dag_uniform_value(item.rest[0]);
        leaf->is_mixed = !vxd_dag_is_uniform(item.rest[0]);
        return leaf->is_mixed ? vxd_dag_words(view, item.rest[0]) + 1 : NULL;
    }
    words = item.rest;
    leaf->is_mixed = !vxd_dag_nibbles_equal(words, vxd_dag_popc(leaf->set),
                                            view->free_value, &leaf->value);
    return leaf->is_mixed ? words : NULL;
}

/* The same, and the values of a mixed one; `values` becomes the leaf's. */
VXD_HD void vxd_dag_leaf_split(const struct vxd_dag_view *view, uint32_t ref,
                               uint16_t values[64], struct vxd_dag_leaf *leaf)
{
    const uint32_t *words = vxd_dag_leaf_peek(view, ref, leaf);

    leaf->values = values;
    if (words != NULL) {
        vxd_dag_leaf_spread(words, view->value_bits, leaf->set, values);
    }
}

/* Editing --------------------------------------------------------------------------------- */

VXD_DAG_RARE void vxd_dag_values_fill(uint16_t *values, uint64_t mask, uint16_t value)
{
    for (; mask != 0; mask &= mask - 1) {
        values[vxd_dag_low_bit(mask)] = value;
    }
}

/* Before values of some voxels are written: those of the others are there afterwards. */
VXD_HD void vxd_dag_leaf_mix(struct vxd_dag_leaf *leaf, uint64_t others)
{
    if (!leaf->is_mixed) {
        leaf->is_mixed = true;
        vxd_dag_values_fill(leaf->values, others, leaf->value);
    }
}

/* Gives occupied voxels a value. */
VXD_HD void vxd_dag_leaf_set_value(struct vxd_dag_leaf *leaf, uint64_t mask,
                                   uint16_t value)
{
    const uint64_t others = leaf->set & ~leaf->free & ~mask;

    if (mask == 0 || (!leaf->is_mixed && leaf->value == value)) {
        return;
    }
    if (others == 0) {
        leaf->is_mixed = false;
        leaf->value = value;
        return;
    }
    vxd_dag_leaf_mix(leaf, others);
    vxd_dag_values_fill(leaf->values, mask, value);
}

/* Gives one occupied voxel a value. */
VXD_HD void vxd_dag_leaf_set_voxel(struct vxd_dag_leaf *leaf, int bit, uint32_t value)
{
    const uint64_t others = leaf->set & ~leaf->free & ~((uint64_t)1 << bit);

    if (!leaf->is_mixed && others == 0) {
        leaf->value = (uint16_t)value;
    } else if (leaf->is_mixed || leaf->value != value) {
        vxd_dag_leaf_mix(leaf, others);
        leaf->values[bit] = (uint16_t)value;
    }
}

VXD_DAG_RARE uint64_t vxd_dag_values_find(const uint16_t *values, uint64_t mask,
                                          uint32_t value)
{
    uint64_t equal = 0;

    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        equal |= values[vxd_dag_low_bit(rest)] == value ? rest & (~rest + 1) : 0;
    }
    return equal;
}

/* Those of some occupied voxels that have a value. */
VXD_HD uint64_t vxd_dag_leaf_find_value(const struct vxd_dag_leaf *leaf, uint64_t mask,
                                        uint32_t value)
{
    return leaf->is_mixed         ? vxd_dag_values_find(leaf->values, mask, value)
           : leaf->value == value ? mask
                                  : 0;
}

/* Packing --------------------------------------------------------------------------------- */

/* Values of some voxels, packed: of those in `others` that, of the rest theirs, or one where
 * there are no values. False where not all are the first. */
VXD_DAG_RARE bool vxd_dag_values_pack(const uint16_t *values, uint32_t one, uint64_t set,
                                      uint64_t others, uint32_t other, int bits,
                                      uint32_t *words, uint32_t *first)
{
    int shift = 0;
    uint32_t word = 0;
    uint32_t differ = 0;

    *first = VXD_DAG_UNIFORM;
    for (uint64_t rest = set; rest != 0; rest &= rest - 1) {
        int bit = vxd_dag_low_bit(rest);
        uint32_t value = (others >> bit & 1) != 0 ? other
                         : values != NULL         ? values[bit]
                                                  : one;

        *first = *first == VXD_DAG_UNIFORM ? value : *first;
        differ |= value ^ *first;
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
    return differ == 0;
}

/* The values of the set voxels (at least one), FREE ones among them, packed from `words` on;
 * says whether all are that of the first, of which those of more than 4 bits are not written.
 * Of 4 bits and more. */
VXD_HD bool vxd_dag_leaf_pack(const struct vxd_dag_view *view,
                              const struct vxd_dag_leaf *leaf, uint32_t *words,
                              uint32_t *first)
{
    const uint64_t free_mask = leaf->free & leaf->set;
    const uint32_t free = (uint32_t)view->free_value;
    int n = vxd_dag_popc(leaf->set);

    if ((leaf->is_mixed || free_mask != 0) && free_mask != leaf->set) {
        return vxd_dag_values_pack(leaf->is_mixed ? leaf->values : NULL, leaf->value,
                                   leaf->set, free_mask, free, view->value_bits, words,
                                   first);
    }
    *first = free_mask != 0 ? free : leaf->value;
    if (view->value_bits == 4) {
        const uint32_t word = *first * 0x11111111u;

        for (; n >= 8; n -= 8) {
            *words++ = word;
        }
        if (n > 0) {
            *words = word & ((1u << 4 * n) - 1);
        }
    }
    return true;
}

/* The words of a leaf of up to 4 bits that has a set voxel. False where it is even: *ref is
 * uniform then. */
VXD_HD bool vxd_dag_leaf_compose(const struct vxd_dag_view *view,
                                 const struct vxd_dag_leaf *leaf, uint32_t *words,
                                 uint32_t *ref)
{
    uint64_t free_mask = leaf->free & leaf->set;
    uint32_t value = 0;
    bool equal = true;

    words[0] = (uint32_t)leaf->set;
    words[1] = (uint32_t)(leaf->set >> 32);
    if (view->value_bits == 1) {
        words[2] = (uint32_t)free_mask;
        words[3] = (uint32_t)(free_mask >> 32);
        equal = free_mask == 0 || free_mask == leaf->set;
        value = free_mask != 0 ? 1 : 0;
    } else if (view->value_bits == 4) {
        equal = vxd_dag_leaf_pack(view, leaf, words + 2, &value);
    }
    *ref = VXD_DAG_UNIFORM | value;
    return !equal || leaf->set != ~(uint64_t)0;
}

#endif
