// SPDX-License-Identifier: Apache-2.0
/* The words of stored nodes, and the functions with which both backends read them. All
 * words are uint32.
 *
 * leaf    4x4x4 voxels; bit i of the mask is voxel i in Morton order
 *           w0 w1   mask of the set voxels (occupied or FREE), low half first; not 0
 *           then the values of the set voxels, by value bits (vxd_svdag_value_bits):
 *             0     nothing
 *             1     w2 w3: mask of the FREE voxels
 *             4     one nibble for each set voxel, in order, eight a word, zeros after the last
 *             8, 16 w2: reference of a block, or VXD_SVDAG_UNIFORM | value where all are equal
 * block   w0      n, the number of its values, 1 .. 64
 *         then    n bytes or halfwords, low ones first, zeros after the last
 * inner   w0      bits 0-7    mask of the present children, bit = octant; not 0
 *                 bit  8      the subtree has an occupied voxel
 *                 bit  9      the subtree has a FREE voxel
 *                 bits 10-31  number of occupied voxels where the height is at most 7, else 0
 *         then    a reference for each present child, by octant
 *
 * Leaves, inner nodes and blocks are called items. The words of an item are contiguous,
 * except in a store that splits items: there the first two words stand at its address,
 * and the rest stands elsewhere in the same chunk (struct vxd_svdag_item).
 *
 * Items are canonical. No leaf has all 64 voxels set to one value, and no inner node has
 * eight equal uniform children: both are written as a uniform reference. The values of a
 * block are not all equal. Equal items of a kind are stored once. */
#ifndef VXD_GPU_SVDAG_NODE_NODE_WORDS_MATH_H
#define VXD_GPU_SVDAG_NODE_NODE_WORDS_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/svdag/svdag.h"

/* Marks code that runs seldom and needs many registers or instructions. Devices call it,
 * so that the code around it keeps its registers. */
#if defined(__CUDACC__)
#define VXD_SVDAG_RARE static __host__ __device__ __noinline__ inline
#else
#define VXD_SVDAG_RARE static inline
#endif

/* Operations on eight 4-bit values in a word: those of an octant of a leaf, a nibble for
 * each voxel. A stored leaf has only the values of its set voxels, one after the other.
 * Here they are deposited to the nibbles of their voxels, and extracted from them. A set
 * of nibbles is given by the low bit of each. */
#define VXD_SVDAG_LOW_BITS 0x11111111u

/* Spreads eight bits to the low bits of eight nibbles. */
VXD_HD uint32_t vxd_svdag_bits_spread(uint32_t bits)
{
    bits = (bits | bits << 12) & 0x000f000fu;
    bits = (bits | bits << 6) & 0x03030303u;
    return (bits | bits << 3) & VXD_SVDAG_LOW_BITS;
}

/* A bit for each nibble that is not 0. */
VXD_HD uint32_t vxd_svdag_nibbles_any(uint32_t nibbles)
{
    nibbles |= nibbles >> 1;
    nibbles |= nibbles >> 2;
    nibbles &= VXD_SVDAG_LOW_BITS;
    nibbles = (nibbles | nibbles >> 3) & 0x03030303u;
    nibbles |= nibbles >> 6;
    return (nibbles | nibbles >> 12) & 0xffu;
}

/* A value repeated eight times. */
VXD_HD uint32_t vxd_svdag_nibbles_of(uint32_t value)
{
    return value * VXD_SVDAG_LOW_BITS;
}

/* For each nibble of a set, how many nibbles below it are not in the set: the distance by
 * which an extraction moves it down. */
VXD_HD uint32_t vxd_svdag_nibbles_distance(uint32_t kept)
{
    return (kept ^ VXD_SVDAG_LOW_BITS) * 0x11111110u & kept * 15u;
}

/* Extracts the nibbles of a set to consecutive places. */
VXD_HD uint32_t vxd_svdag_nibbles_extract(uint32_t nibbles, uint32_t kept)
{
    uint32_t distance = vxd_svdag_nibbles_distance(kept);

    nibbles &= kept * 15u;
    for (int i = 0; i < 3; i++) {
        uint32_t moved = (distance >> i & VXD_SVDAG_LOW_BITS) * 15u;

        nibbles = (nibbles & ~moved) | (nibbles & moved) >> (4 << i);
        distance = (distance & ~moved) | (distance & moved) >> (4 << i);
    }
    return nibbles;
}

/* The inverse: deposits consecutive nibbles to the places of a set; the others become
 * 0. */
VXD_HD uint32_t vxd_svdag_nibbles_deposit(uint32_t nibbles, uint32_t kept)
{
    uint32_t distance = vxd_svdag_nibbles_distance(kept);
    uint32_t moved[3];

    for (int i = 0; i < 3; i++) {
        moved[i] = (distance >> i & VXD_SVDAG_LOW_BITS) * 15u;
        distance = (distance & ~moved[i]) | (distance & moved[i]) >> (4 << i);
    }
    for (int i = 2; i >= 0; i--) {
        nibbles = (nibbles & ~moved[i]) | (nibbles << (4 << i) & moved[i]);
    }
    return nibbles & kept * 15u;
}

/* Stands before a loop that devices must not unroll, because code size matters more there
 * than time. */
#if defined(__CUDA_ARCH__)
#define VXD_SVDAG_ROLLED _Pragma("unroll 1")
#else
#define VXD_SVDAG_ROLLED
#endif

enum {
    VXD_SVDAG_LEAF_HEIGHT = 2,  /* 4 voxels a side */
    VXD_SVDAG_COUNT_HEIGHT = 7, /* up to this height inner nodes hold a count of voxels */
    VXD_SVDAG_MAX_ITEM_WORDS = 33,
    VXD_SVDAG_CHUNK_BITS = 18, /* words of a chunk, 1 MiB */
    VXD_SVDAG_CHUNK_WORDS = 1 << VXD_SVDAG_CHUNK_BITS,
    /* Chunks of a store. The addresses of one more chunk would be uniform references. */
    VXD_SVDAG_MAX_CHUNKS = (1 << (32 - VXD_SVDAG_CHUNK_BITS)) - 1,
    /* Split items: the first two words (the head) stand in rows of 64 words, which hold
     * 31 heads and two words of the store's own. A unit is the rows of two slabs,
     * followed by the remaining words of both. Units follow the first words of a
     * chunk. */
    VXD_SVDAG_SPLIT_FIRST = 128,
    VXD_SVDAG_SPLIT_ROW = 64,
    VXD_SVDAG_SPLIT_SLOTS = 32
};

#define VXD_SVDAG_HAS_OCCUPIED 0x100u
#define VXD_SVDAG_HAS_FREE 0x200u

/* Folds the 128-bit product of two words. */
VXD_HD uint64_t vxd_svdag_fold(uint64_t a, uint64_t b)
{
#if defined(__CUDA_ARCH__)
    return (a * b) ^ __umul64hi(a, b);
#else
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
#endif
}

/* Hash of an item, by which stores find it. All bits are of equal quality. */
VXD_HD uint64_t vxd_svdag_hash(uint32_t kind, const uint32_t *words, int n_words)
{
    uint64_t hash = ((uint64_t)n_words << 8 | kind) * 0x9e3779b97f4a7c15ULL;
    int i = 0;

    for (; i + 1 < n_words; i += 2) {
        hash = vxd_svdag_fold(hash ^ ((uint64_t)words[i + 1] << 32 | words[i]),
                              0xa0761d6478bd642fULL);
    }
    if (i < n_words) {
        hash = vxd_svdag_fold(hash ^ words[i], 0xe7037ed1a0b428dbULL);
    }
    return vxd_svdag_fold(hash ^ 0x8ebc6af09c88c6e3ULL, 0x589965cc75374cc3ULL);
}

/* What a reader needs to know of a store. Kernels take it by value. */
struct vxd_svdag_view {
    const uint32_t *const
        *chunks; /* by address >> VXD_SVDAG_CHUNK_BITS; no item crosses a chunk */
    int depth;
    int value_bits; /* 0, 1, 4, 8, 16 */
    int free_value; /* -1: not tracked */
    bool is_split;
};

/* A stored item, as its two contiguous pieces. */
struct vxd_svdag_item {
    const uint32_t *words; /* the first two */
    const uint32_t *rest;  /* from the third on, where the item has more */
};

VXD_HD int vxd_svdag_popc(uint64_t v)
{
#if defined(__CUDA_ARCH__)
    return __popcll(v);
#elif defined(__x86_64__) && !defined(__POPCNT__)
    /* Without the POPCNT instruction the compiler's builtin is a function call. */
    v -= v >> 1 & 0x5555555555555555ULL;
    v = (v & 0x3333333333333333ULL) + (v >> 2 & 0x3333333333333333ULL);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
    return (int)(v * 0x0101010101010101ULL >> 56);
#else
    return __builtin_popcountll(v);
#endif
}

VXD_HD bool vxd_svdag_is_uniform(uint32_t ref)
{
    return ref >= VXD_SVDAG_UNIFORM;
}

VXD_HD uint32_t vxd_svdag_uniform_value(uint32_t ref)
{
    return ref & 0xffffu;
}

/* True for references with words to read: neither empty nor uniform. */
VXD_HD bool vxd_svdag_is_node(uint32_t ref)
{
    return ref != VXD_SVDAG_EMPTY && ref < VXD_SVDAG_UNIFORM;
}

VXD_HD const uint32_t *vxd_svdag_words(const struct vxd_svdag_view *view, uint32_t ref)
{
    return view->chunks[ref >> VXD_SVDAG_CHUNK_BITS] +
           (ref & ((1u << VXD_SVDAG_CHUNK_BITS) - 1));
}

/* Whether a reader has to expect split items. Devices have two compiled forms of readers,
 * and the form is a constant of the translation unit: a .cu that reads split stores
 * defines VXD_SVDAG_SPLIT_FORM before it includes this file, and one that reads both
 * defines VXD_SVDAG_ANY_FORM. With the latter, and on the CPU, the view decides. */
VXD_HD bool vxd_svdag_reads_split(const struct vxd_svdag_view *view)
{
#if defined(VXD_SVDAG_SPLIT_FORM)
    (void)view;
    return true;
#elif defined(__CUDA_ARCH__) && !defined(VXD_SVDAG_ANY_FORM)
    (void)view;
    return false;
#else
    return view->is_split;
#endif
}

/* Distance in words from the first word of a split item of n_words to its third. */
VXD_HD uint32_t vxd_svdag_split_distance(uint32_t ref, int n_words)
{
    uint32_t n = (uint32_t)n_words;
    uint32_t at = (ref & ((1u << VXD_SVDAG_CHUNK_BITS) - 1)) - VXD_SVDAG_SPLIT_FIRST;
    uint32_t slab = at / VXD_SVDAG_SPLIT_ROW % n; /* of its unit: 0 or 1 */
    uint32_t slot = at % VXD_SVDAG_SPLIT_ROW / 2;

    return (2 - slab) * VXD_SVDAG_SPLIT_ROW - 2 * slot +
           (slab * VXD_SVDAG_SPLIT_SLOTS + slot) * (n - 2);
}

/* An item whose words are contiguous. */
VXD_HD struct vxd_svdag_item vxd_svdag_item_of(const uint32_t *words)
{
    struct vxd_svdag_item item;

    item.words = words;
    item.rest = words + 2;
    return item;
}

/* An item of known length, split or not. */
VXD_HD struct vxd_svdag_item vxd_svdag_item_at(const struct vxd_svdag_view *view,
                                               uint32_t ref, int n_words)
{
    struct vxd_svdag_item item = vxd_svdag_item_of(vxd_svdag_words(view, ref));

    if (vxd_svdag_reads_split(view) && n_words > 2) {
        item.rest = item.words + vxd_svdag_split_distance(ref, n_words);
    }
    return item;
}

VXD_HD uint32_t vxd_svdag_item_word(const struct vxd_svdag_item *item, int i)
{
    return i < 2 ? item->words[i] : item->rest[i - 2];
}

/* The child of an inner node whose words are contiguous. */
VXD_HD uint32_t vxd_svdag_child(const uint32_t *words, int octant)
{
    uint32_t mask = words[0] & 0xffu;

    return (mask >> octant & 1u) == 0
               ? VXD_SVDAG_EMPTY
               : words[1 + vxd_svdag_popc(mask & ((1u << octant) - 1))];
}

VXD_HD int vxd_svdag_inner_words(const uint32_t *words)
{
    return 1 + vxd_svdag_popc(words[0] & 0xffu);
}

/* Child of a stored inner node. */
VXD_HD uint32_t vxd_svdag_child_of(const struct vxd_svdag_view *view, uint32_t ref,
                                   int octant)
{
    const uint32_t *words = vxd_svdag_words(view, ref);
    struct vxd_svdag_item item;
    uint32_t mask = words[0] & 0xffu;

    if (!vxd_svdag_reads_split(view)) {
        return vxd_svdag_child(words, octant);
    }
    if ((mask >> octant & 1u) == 0) {
        return VXD_SVDAG_EMPTY;
    }
    item = vxd_svdag_item_at(view, ref, vxd_svdag_inner_words(words));
    return vxd_svdag_item_word(&item, 1 + vxd_svdag_popc(mask & ((1u << octant) - 1)));
}

VXD_HD uint64_t vxd_svdag_leaf_mask(const uint32_t *words)
{
    return (uint64_t)words[1] << 32 | words[0];
}

VXD_HD int vxd_svdag_leaf_words(int value_bits, uint64_t mask)
{
    return value_bits == 0   ? 2
           : value_bits == 1 ? 4
           : value_bits == 4 ? 2 + (vxd_svdag_popc(mask) + 7) / 8
                             : 3;
}

VXD_HD int vxd_svdag_block_words(int value_bits, int n_values)
{
    return 1 + (n_values * value_bits + 31) / 32;
}

/* A stored leaf. */
VXD_HD struct vxd_svdag_item vxd_svdag_leaf_item(const struct vxd_svdag_view *view,
                                                 uint32_t ref)
{
    const uint32_t *words = vxd_svdag_words(view, ref);

    return !vxd_svdag_reads_split(view)
               ? vxd_svdag_item_of(words)
               : vxd_svdag_item_at(
                     view, ref,
                     vxd_svdag_leaf_words(view->value_bits, vxd_svdag_leaf_mask(words)));
}

/* Octant of the child of height `height` - 1 that holds the voxel. */
VXD_HD int vxd_svdag_octant(uint32_t x, uint32_t y, uint32_t z, int height)
{
    int s = height - 1;

    return (int)((x >> s & 1u) << 2 | (y >> s & 1u) << 1 | (z >> s & 1u));
}

/* Bit of a voxel in its leaf's mask. */
VXD_HD int vxd_svdag_leaf_bit(uint32_t x, uint32_t y, uint32_t z)
{
    return vxd_svdag_octant(x, y, z, 2) << 3 | vxd_svdag_octant(x, y, z, 1);
}

/* Value of a set voxel of a leaf, by its rank among the set ones. Not for 1-bit
 * values. */
VXD_HD uint32_t vxd_svdag_item_ranked_value(const struct vxd_svdag_view *view,
                                            const struct vxd_svdag_item *leaf, int rank)
{
    const uint32_t *block;

    if (view->value_bits < 4) {
        return 0;
    }
    if (view->value_bits == 4) {
        return leaf->rest[rank >> 3] >> ((rank & 7) * 4) & 15u;
    }
    if (vxd_svdag_is_uniform(leaf->rest[0])) {
        return vxd_svdag_uniform_value(leaf->rest[0]);
    }
    block = vxd_svdag_words(view, leaf->rest[0]) + 1;
    return view->value_bits == 8 ? block[rank >> 2] >> ((rank & 3) * 8) & 0xffu
                                 : block[rank >> 1] >> ((rank & 1) * 16) & 0xffffu;
}

/* Value of the set voxel `bit` of a leaf. */
VXD_HD uint32_t vxd_svdag_item_value(const struct vxd_svdag_view *view,
                                     const struct vxd_svdag_item *leaf, int bit)
{
    uint64_t lower = ((uint64_t)1 << bit) - 1;

    if (view->value_bits == 1) {
        return leaf->rest[bit >> 5] >> (bit & 31) & 1u;
    }
    return vxd_svdag_item_ranked_value(
        view, leaf, vxd_svdag_popc(vxd_svdag_leaf_mask(leaf->words) & lower));
}

/* Values of n set voxels of a leaf of 4-bit values, from `rank` on; 1 <= n <= 8. Nibbles
 * above the n-th hold other values. */
VXD_HD uint32_t vxd_svdag_leaf_nibbles(const struct vxd_svdag_item *leaf, int rank, int n)
{
    int shift = (rank & 7) * 4;
    uint32_t nibbles = leaf->rest[rank >> 3] >> shift;

    if ((rank & 7) + n > 8) {
        nibbles |= leaf->rest[(rank >> 3) + 1] << (32 - shift);
    }
    return nibbles;
}

/* The occupied ones among eight voxels, of which `set` are set. The values of the set
 * ones are given as consecutive nibbles. */
VXD_HD uint32_t vxd_svdag_octet_occupied(uint32_t set, uint32_t nibbles, uint32_t free)
{
    if (set != 0xffu) {
        nibbles = vxd_svdag_nibbles_deposit(nibbles, vxd_svdag_bits_spread(set));
    }
    return vxd_svdag_nibbles_any(nibbles ^ vxd_svdag_nibbles_of(free)) & set;
}

/* The occupied voxels of a leaf of 4-bit values, some of which may be FREE. It goes
 * octant by octant, as the eight values of an octant can be read together. */
VXD_HD uint64_t vxd_svdag_nibbles_occupied(const struct vxd_svdag_item *leaf,
                                           uint64_t mask, uint32_t free)
{
    uint64_t occupied = 0;
    int rank = 0;

    for (int octant = 0; octant < 8; octant++) {
        uint32_t set = (uint32_t)(mask >> (8 * octant)) & 0xffu;
        int n = vxd_svdag_popc(set);

        if (n > 0) {
            uint32_t nibbles = vxd_svdag_leaf_nibbles(leaf, rank, n);

            occupied |= (uint64_t)vxd_svdag_octet_occupied(set, nibbles, free)
                        << (8 * octant);
            rank += n;
        }
    }
    return occupied;
}

/* Mask of the occupied voxels of a leaf: the set voxels that are not FREE. */
VXD_HD uint64_t vxd_svdag_item_occupied(const struct vxd_svdag_view *view,
                                        const struct vxd_svdag_item *leaf)
{
    uint64_t mask = vxd_svdag_leaf_mask(leaf->words);
    uint64_t occupied = 0;
    int rank = 0;

    if (view->free_value < 0) {
        return mask;
    }
    if (view->value_bits == 1) {
        return mask & ~((uint64_t)leaf->rest[1] << 32 | leaf->rest[0]);
    }
    if (view->value_bits == 4) {
        return vxd_svdag_nibbles_occupied(leaf, mask, (uint32_t)view->free_value);
    }
    if (vxd_svdag_is_uniform(leaf->rest[0])) {
        return vxd_svdag_uniform_value(leaf->rest[0]) == (uint32_t)view->free_value
                   ? 0
                   : mask;
    }
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        if (vxd_svdag_item_ranked_value(view, leaf, rank++) !=
            (uint32_t)view->free_value) {
            occupied |= rest & (~rest + 1);
        }
    }
    return occupied;
}

/* The same in a scene that tracks FREE space. Most scenes do not, so devices call it out
 * of line. */
VXD_SVDAG_RARE uint64_t vxd_svdag_item_not_free(const struct vxd_svdag_view *view,
                                                const uint32_t *words,
                                                const uint32_t *rest)
{
    struct vxd_svdag_item leaf;

    leaf.words = words;
    leaf.rest = rest;
    return vxd_svdag_item_occupied(view, &leaf);
}

VXD_HD uint64_t vxd_svdag_item_occupied_called(const struct vxd_svdag_view *view,
                                               const struct vxd_svdag_item *leaf)
{
    return view->free_value < 0 ? vxd_svdag_leaf_mask(leaf->words)
                                : vxd_svdag_item_not_free(view, leaf->words, leaf->rest);
}

/* Bits of a voxel's value in a leaf: those of the material, or one bit where a scene
 * without materials distinguishes FREE voxels from occupied ones. */
VXD_HD int vxd_svdag_value_bits(const struct vxd_svdag_format *format)
{
    return format->material_bits != 0 ? format->material_bits
           : format->tracks_free      ? 1
                                      : 0;
}

/* The state of all voxels of an empty or uniform region, as a set of states. For an inner
 * node UNKNOWN is left out, because its header does not say whether voxels are not
 * set. */
VXD_HD unsigned vxd_svdag_uniform_state(const struct vxd_svdag_view *view, uint32_t ref)
{
    return ref == VXD_SVDAG_EMPTY                                  ? VXD_SVDAG_UNKNOWN
           : (int)vxd_svdag_uniform_value(ref) == view->free_value ? VXD_SVDAG_FREE
                                                                   : VXD_SVDAG_OCCUPIED;
}

/* The reference that holds a voxel: descends from `ref` of height *height to a leaf, or
 * to an empty or uniform region. Leaves the height of that reference in *height. */
VXD_HD uint32_t vxd_svdag_descend(const struct vxd_svdag_view *view, uint32_t ref,
                                  uint32_t x, uint32_t y, uint32_t z, int *height)
{
    while (*height > VXD_SVDAG_LEAF_HEIGHT && vxd_svdag_is_node(ref)) {
        ref = vxd_svdag_child_of(view, ref, vxd_svdag_octant(x, y, z, *height));
        (*height)--;
    }
    return ref;
}

/* State of a voxel inside the scene (exactly one bit), and its value where it is set. */
VXD_HD unsigned vxd_svdag_voxel(const struct vxd_svdag_view *view, uint32_t root,
                                uint32_t x, uint32_t y, uint32_t z, uint32_t *value)
{
    int height = view->depth;
    uint32_t ref = vxd_svdag_descend(view, root, x, y, z, &height);
    struct vxd_svdag_item leaf;
    int bit;

    *value = 0;
    if (!vxd_svdag_is_node(ref)) {
        *value = ref == VXD_SVDAG_EMPTY ? 0 : vxd_svdag_uniform_value(ref);
        return vxd_svdag_uniform_state(view, ref);
    }
    leaf = vxd_svdag_leaf_item(view, ref);
    bit = vxd_svdag_leaf_bit(x, y, z);
    if ((vxd_svdag_leaf_mask(leaf.words) >> bit & 1) == 0) {
        return VXD_SVDAG_UNKNOWN;
    }
    *value = vxd_svdag_item_value(view, &leaf, bit);
    return (int)*value == view->free_value ? VXD_SVDAG_FREE : VXD_SVDAG_OCCUPIED;
}

#endif
