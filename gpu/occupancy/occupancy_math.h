// SPDX-License-Identifier: Apache-2.0
/* What one update does to a voxel, and each step of a scan for one element of its arrays,
 * as both backends compile them. All of it is integers.
 *
 * A row of the layer has the 512 voxels of a block in Morton order: eight leaves of eight
 * words of eight voxels. So a leaf of a list (code and mask) is 64 consecutive bytes, and
 * an octet (eight voxels: a byte of a mask, a word of a row) is what one thread does. */
#ifndef VXD_GPU_OCCUPANCY_OCCUPANCY_MATH_H
#define VXD_GPU_OCCUPANCY_OCCUPANCY_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/occupancy/occupancy.h"
#include "gpu/svdag/node/node_math.h"

enum {
    VXD_OCCUPANCY_BLOCK_HEIGHT = 3,
    VXD_OCCUPANCY_BLOCK_LEAVES = 8,
    VXD_OCCUPANCY_LEAF_OCTETS = 8,
    VXD_OCCUPANCY_BLOCK_OCTETS = 64
};

/* The steps of a scan, each run for some number of elements. */
enum vxd_occupancy_step {
    VXD_OCCUPANCY_NUMBER = 0, /* entries: writes their places */
    VXD_OCCUPANCY_MARK,       /* entries: flags where runs of leaves and blocks begin */
    VXD_OCCUPANCY_JOIN,       /* entries: writes leaves and blocks */
    VXD_OCCUPANCY_BEGIN,      /* leaves of blocks: values of new ones, from the scene */
    VXD_OCCUPANCY_JUDGE,      /* octets of leaves: which voxels become free */
    VXD_OCCUPANCY_FLAG,       /* leaves: flags those with such voxels */
    VXD_OCCUPANCY_LIST,       /* leaves: writes their list */
    VXD_OCCUPANCY_APPLY,      /* octets of leaves: new values */
    VXD_OCCUPANCY_FOLLOW,     /* blocks, by number: values after another change */
    VXD_OCCUPANCY_COUNT,      /* blocks, by number: observed voxels */
    VXD_OCCUPANCY_LOCATE,     /* voxels: the key of their block */
    VXD_OCCUPANCY_READ,       /* voxels: their values */
    VXD_OCCUPANCY_KEY, /* blocks, by number: their keys, to be sorted (upkeep_math.h) */
    VXD_OCCUPANCY_FADE_JUDGE, /* leaves of blocks: which voxels become unknown */
    VXD_OCCUPANCY_FADE_LIST,  /* leaves of blocks: writes their list */
    VXD_OCCUPANCY_FADE,       /* leaves of blocks: values after a decay */
    VXD_OCCUPANCY_UNPIN_MARK, /* leaves of a list: what is not pinned of them */
    VXD_OCCUPANCY_UNPIN_LIST, /* leaves of a list: writes the list without pinned voxels */
    VXD_OCCUPANCY_VOTE_KEY, /* leaves of a list: the keys of their blocks (votes_math.h) */
    VXD_OCCUPANCY_VOTE_BEGIN, /* leaves of a list: rows of new blocks */
    VXD_OCCUPANCY_VOTE,       /* leaves of a list: votes, and the materials that win */
    VXD_OCCUPANCY_VOTE_UNDO,  /* leaves of a list: what was there before */
    VXD_OCCUPANCY_N_STEPS
};

/* The arrays of the steps, in device memory. Kernels take it by value. */
struct vxd_occupancy_work {
    uint64_t first; /* the element that a run of a step begins with */
    struct vxd_occupancy_rule rule;
    struct vxd_svdag_view view;
    uint32_t root;
    uint32_t root_before; /* FOLLOW */
    uint64_t *rows;       /* of the layer: VXD_OCCUPANCY_BLOCK_OCTETS words a block */
    /* n_entries, sorted by code: leaves of all lists. Those below n_hit_entries, by their
     * place in the lists (`order`), are hit, the others passed. */
    const uint64_t *keys;
    uint32_t *order;
    const uint64_t *masks; /* by place in the lists */
    uint32_t n_entries;
    uint32_t n_hit_entries;
    uint32_t *leaf_at; /* n_entries + 1: 1 where a leaf begins; then how many before */
    uint32_t *block_at;
    /* n_leaves. */
    uint64_t *codes;
    uint64_t *hits;
    uint64_t *misses;
    uint8_t *freed;     /* 8 a leaf: a mask's bytes */
    uint32_t *blocks;   /* of each leaf */
    uint32_t *freed_at; /* n_leaves + 1: as leaf_at */
    uint64_t *list_codes;
    uint64_t *list_masks;
    /* n_blocks, or in FOLLOW and COUNT those of the layer. */
    int64_t *block_keys;
    int32_t *entries;
    uint8_t *is_new;
    const int64_t *layer_keys; /* by number */
    uint32_t *n_observed;      /* COUNT */
    /* LOCATE, READ: block_keys and entries are theirs. */
    const int32_t *voxels;
    int8_t *values;
    /* FADE: leaves i / 8 of the blocks in `entries`, which ascend by key; codes, hits (what is
     * forgotten) and freed_at are theirs. KEY writes sorted_keys. */
    uint32_t pins; /* root of the voxels that scans and decays leave; also of UNPIN */
    struct vxd_occupancy_decay decay;
    int8_t faded[256]; /* of each value, as a byte without a sign */
    uint64_t *sorted_keys;
    /* UNPIN: a list; hits are what is left of its masks, leaf_at and value_at count it. */
    struct vxd_svdag_voxels list;
    uint32_t *value_at;
    uint32_t *list_firsts;
    uint16_t *list_values;
    /* VOTE: a list, its rows' block_keys, entries and is_new; list_firsts and list_values are
     * written, 64 values a leaf, and `saved` what the votes of its voxels were. */
    uint64_t *vote_rows; /* of the layer: 512 a block */
    uint64_t *saved;
    uint32_t value; /* of a list without values */
};

VXD_HD int32_t vxd_occupancy_byte(uint64_t word, int k)
{
    return (int32_t)((word >> 8 * k & 0xff) ^ 0x80) - 0x80;
}

VXD_HD uint64_t vxd_occupancy_with_byte(uint64_t word, int k, int32_t value)
{
    return (word & ~((uint64_t)0xff << 8 * k)) | (uint64_t)(uint8_t)value << 8 * k;
}

/* A voxel's value after a hit or a miss. */
VXD_HD int32_t vxd_occupancy_after(const struct vxd_occupancy_rule *rule, int32_t value,
                                   bool is_hit)
{
    const int32_t before = value == VXD_OCCUPANCY_UNKNOWN ? 0 : value;
    const int32_t after = before + (is_hit ? rule->hit : rule->miss);

    return after < rule->low ? rule->low : after > rule->high ? rule->high : after;
}

VXD_HD bool vxd_occupancy_is_free(const struct vxd_occupancy_rule *rule, int32_t value)
{
    return value != VXD_OCCUPANCY_UNKNOWN && value < rule->occupied;
}

/* The octet after the scan. *freed are the voxels that the scene's edit has to free: those
 * that are free now and were not, and those that it fills before because they were hit. */
VXD_HD uint64_t vxd_occupancy_octet(const struct vxd_occupancy_rule *rule, uint64_t word,
                                    uint32_t hits, uint32_t misses, uint8_t *freed)
{
    uint32_t free = 0;

    for (int k = 0; k < 8; k++) {
        const int32_t value = vxd_occupancy_byte(word, k);
        const bool is_hit = (hits >> k & 1u) != 0;
        int32_t after;

        if (((hits | misses) >> k & 1u) == 0) {
            continue;
        }
        after = vxd_occupancy_after(rule, value, is_hit);
        if (vxd_occupancy_is_free(rule, after) &&
            (is_hit || !vxd_occupancy_is_free(rule, value))) {
            free |= 1u << k;
        }
        word = vxd_occupancy_with_byte(word, k, after);
    }
    *freed = (uint8_t)free;
    return word;
}

/* States in the scene ---------------------------------------------------------------- */

VXD_HD uint32_t vxd_occupancy_child(const struct vxd_svdag_view *view, uint32_t ref,
                                    int octant)
{
    return vxd_svdag_is_node(ref) ? vxd_svdag_child_of(view, ref, octant) : ref;
}

/* Octant of the child at `height` - 1 on the way to a block. */
VXD_HD int vxd_occupancy_octant(uint64_t block, int height)
{
    return (int)(block >> 3 * (height - 1 - VXD_OCCUPANCY_BLOCK_HEIGHT) & 7u);
}

VXD_HD uint32_t vxd_occupancy_find_block(const struct vxd_svdag_view *view, uint32_t root,
                                         uint64_t block)
{
    for (int height = view->depth;
         height > VXD_OCCUPANCY_BLOCK_HEIGHT && vxd_svdag_is_node(root); height--) {
        root = vxd_svdag_child_of(view, root, vxd_occupancy_octant(block, height));
    }
    return root;
}

/* States of a leaf's voxels, as masks; those in neither are unknown. */
struct vxd_occupancy_states {
    uint64_t occupied;
    uint64_t free;
};

VXD_HD struct vxd_occupancy_states
vxd_occupancy_states_of(const struct vxd_svdag_view *view, uint32_t ref)
{
    struct vxd_occupancy_states states;
    struct vxd_svdag_item leaf;

    states.occupied = 0;
    states.free = 0;
    if (vxd_svdag_is_node(ref)) {
        leaf = vxd_svdag_leaf_item(view, ref);
        states.occupied = vxd_svdag_item_occupied(view, &leaf);
        states.free = vxd_svdag_leaf_mask(leaf.words) & ~states.occupied;
    } else if (ref != VXD_SVDAG_EMPTY) {
        if ((int)vxd_svdag_uniform_value(ref) == view->free_value) {
            states.free = ~(uint64_t)0;
        } else {
            states.occupied = ~(uint64_t)0;
        }
    }
    return states;
}

/* The clamp of voxel `bit`'s state. */
VXD_HD int32_t vxd_occupancy_clamp(const struct vxd_occupancy_rule *rule,
                                   const struct vxd_occupancy_states *states, int bit)
{
    return (states->occupied >> bit & 1) != 0 ? rule->high
           : (states->free >> bit & 1) != 0   ? rule->low
                                              : VXD_OCCUPANCY_UNKNOWN;
}

/* Sets the voxels of a leaf that are in `mask` to the clamps of their states. */
VXD_HD void vxd_occupancy_set_clamps(const struct vxd_occupancy_rule *rule,
                                     const struct vxd_occupancy_states *states,
                                     uint64_t mask, uint64_t *words)
{
    for (int octet = 0; octet < VXD_OCCUPANCY_LEAF_OCTETS; octet++) {
        uint64_t word = words[octet];

        if ((mask >> 8 * octet & 0xff) == 0) {
            continue;
        }
        for (int k = 0; k < 8; k++) {
            const int bit = 8 * octet + k;

            if ((mask >> bit & 1) != 0) {
                word = vxd_occupancy_with_byte(word, k,
                                               vxd_occupancy_clamp(rule, states, bit));
            }
        }
        words[octet] = word;
    }
}

/* Steps ------------------------------------------------------------------------------- */

VXD_HD void vxd_occupancy_number(const struct vxd_occupancy_work *work, uint64_t i)
{
    work->order[i] = (uint32_t)i;
}

VXD_HD void vxd_occupancy_mark(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint64_t key = work->keys[i];
    const uint64_t before = i == 0 ? ~key : work->keys[i - 1];

    work->leaf_at[i] = key != before ? 1 : 0;
    work->block_at[i] = key >> 3 != before >> 3 ? 1 : 0;
}

VXD_HD void vxd_occupancy_join(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint64_t key = work->keys[i];
    const uint32_t leaf = work->leaf_at[i];
    const uint32_t block = work->block_at[i + 1] - 1;
    uint64_t hits = 0;
    uint64_t passed = 0;

    if (work->leaf_at[i + 1] == leaf) {
        return; /* another entry of the leaf before it */
    }
    for (uint64_t k = i; k < work->n_entries && work->keys[k] == key; k++) {
        const uint32_t place = work->order[k];

        if (place < work->n_hit_entries) {
            hits |= work->masks[place];
        } else {
            passed |= work->masks[place];
        }
    }
    work->codes[leaf] = key;
    work->hits[leaf] = hits;
    work->misses[leaf] = passed & ~hits;
    work->blocks[leaf] = block;
    if (work->block_at[i] == block) {
        work->block_keys[block] = (int64_t)(key >> 3);
    }
}

VXD_HD void vxd_occupancy_begin(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint64_t block = i / VXD_OCCUPANCY_BLOCK_LEAVES;
    const int leaf = (int)(i % VXD_OCCUPANCY_BLOCK_LEAVES);
    struct vxd_occupancy_states states;
    uint32_t ref;

    if (work->is_new[block] == 0) {
        return;
    }
    ref = vxd_occupancy_find_block(&work->view, work->root,
                                   (uint64_t)work->block_keys[block]);
    states =
        vxd_occupancy_states_of(&work->view, vxd_occupancy_child(&work->view, ref, leaf));
    vxd_occupancy_set_clamps(
        &work->rule, &states, ~(uint64_t)0,
        work->rows + (uint64_t)work->entries[block] * VXD_OCCUPANCY_BLOCK_OCTETS +
            (uint64_t)leaf * VXD_OCCUPANCY_LEAF_OCTETS);
}

/* The word of octet i, counted over all leaves of the scan. */
VXD_HD uint64_t *vxd_occupancy_word_of(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint64_t leaf = i / VXD_OCCUPANCY_LEAF_OCTETS;
    const uint64_t entry = (uint64_t)work->entries[work->blocks[leaf]];

    return work->rows + entry * VXD_OCCUPANCY_BLOCK_OCTETS +
           work->codes[leaf] % VXD_OCCUPANCY_BLOCK_LEAVES * VXD_OCCUPANCY_LEAF_OCTETS +
           i % VXD_OCCUPANCY_LEAF_OCTETS;
}

VXD_HD uint32_t vxd_occupancy_octet_mask(const uint64_t *masks, uint64_t i)
{
    return (uint32_t)(masks[i / VXD_OCCUPANCY_LEAF_OCTETS] >>
                      8 * (i % VXD_OCCUPANCY_LEAF_OCTETS)) &
           0xffu;
}

VXD_HD void vxd_occupancy_judge(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint32_t hits = vxd_occupancy_octet_mask(work->hits, i);
    const uint32_t misses = vxd_occupancy_octet_mask(work->misses, i);
    uint8_t freed = 0;

    if ((hits | misses) != 0) {
        (void)vxd_occupancy_octet(&work->rule, *vxd_occupancy_word_of(work, i), hits,
                                  misses, &freed);
    }
    work->freed[i] = freed;
}

VXD_HD void vxd_occupancy_apply_octet(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint32_t hits = vxd_occupancy_octet_mask(work->hits, i);
    const uint32_t misses = vxd_occupancy_octet_mask(work->misses, i);
    uint8_t freed;

    if ((hits | misses) != 0) {
        uint64_t *word = vxd_occupancy_word_of(work, i);

        *word = vxd_occupancy_octet(&work->rule, *word, hits, misses, &freed);
    }
}

VXD_HD uint64_t vxd_occupancy_freed_of(const struct vxd_occupancy_work *work, uint64_t i)
{
    uint64_t mask = 0;

    for (int k = 0; k < 8; k++) {
        mask |= (uint64_t)work->freed[8 * i + (uint64_t)k] << 8 * k;
    }
    return mask;
}

VXD_HD void vxd_occupancy_flag(const struct vxd_occupancy_work *work, uint64_t i)
{
    work->freed_at[i] = vxd_occupancy_freed_of(work, i) != 0 ? 1 : 0;
}

VXD_HD void vxd_occupancy_list(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint32_t place = work->freed_at[i];

    if (work->freed_at[i + 1] != place) {
        work->list_codes[place] = work->codes[i];
        work->list_masks[place] = vxd_occupancy_freed_of(work, i);
    }
}

/* Block i of the layer's list: gives voxels whose state has changed its clamp. */
VXD_HD void vxd_occupancy_follow_block(const struct vxd_occupancy_work *work, uint64_t i)
{
    const struct vxd_svdag_view *view = &work->view;
    const uint64_t entry = (uint64_t)work->entries[i];
    const uint64_t block = (uint64_t)work->layer_keys[entry];
    uint32_t before = work->root_before;
    uint32_t after = work->root;

    for (int height = view->depth; height > VXD_OCCUPANCY_BLOCK_HEIGHT && before != after;
         height--) {
        const int octant = vxd_occupancy_octant(block, height);

        before = vxd_occupancy_child(view, before, octant);
        after = vxd_occupancy_child(view, after, octant);
    }
    for (int leaf = 0; leaf < VXD_OCCUPANCY_BLOCK_LEAVES && before != after; leaf++) {
        const struct vxd_occupancy_states was =
            vxd_occupancy_states_of(view, vxd_occupancy_child(view, before, leaf));
        const struct vxd_occupancy_states is =
            vxd_occupancy_states_of(view, vxd_occupancy_child(view, after, leaf));

        vxd_occupancy_set_clamps(&work->rule, &is,
                                 (was.occupied ^ is.occupied) | (was.free ^ is.free),
                                 work->rows + entry * VXD_OCCUPANCY_BLOCK_OCTETS +
                                     (uint64_t)leaf * VXD_OCCUPANCY_LEAF_OCTETS);
    }
}

VXD_HD void vxd_occupancy_count_block(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint64_t *words =
        work->rows + (uint64_t)work->entries[i] * VXD_OCCUPANCY_BLOCK_OCTETS;
    uint32_t n = 0;

    for (int w = 0; w < VXD_OCCUPANCY_BLOCK_OCTETS; w++) {
        for (int k = 0; k < 8; k++) {
            n += vxd_occupancy_byte(words[w], k) != VXD_OCCUPANCY_UNKNOWN ? 1 : 0;
        }
    }
    work->n_observed[i] = n;
}

/* Morton code of voxel i; false where it is outside the scene. */
VXD_HD bool vxd_occupancy_code_of(const struct vxd_occupancy_work *work, uint64_t i,
                                  uint64_t *code)
{
    const uint32_t x = (uint32_t)work->voxels[3 * i];
    const uint32_t y = (uint32_t)work->voxels[3 * i + 1];
    const uint32_t z = (uint32_t)work->voxels[3 * i + 2];

    *code = vxd_spread3(x) << 2 | vxd_spread3(y) << 1 | vxd_spread3(z);
    return (x | y | z) >> work->view.depth == 0;
}

VXD_HD void vxd_occupancy_locate(const struct vxd_occupancy_work *work, uint64_t i)
{
    uint64_t code;

    /* No block has the key -1. */
    work->block_keys[i] =
        vxd_occupancy_code_of(work, i, &code) ? (int64_t)(code >> 9) : -1;
}

VXD_HD void vxd_occupancy_read(const struct vxd_occupancy_work *work, uint64_t i)
{
    uint64_t code;
    int32_t value = VXD_OCCUPANCY_UNKNOWN;

    if (vxd_occupancy_code_of(work, i, &code)) {
        const int32_t entry = work->entries[i];
        const int leaf = (int)(code >> 6 & 7);
        const int bit = (int)(code & 63);

        if (entry >= 0) {
            value = vxd_occupancy_byte(
                work->rows[(uint64_t)entry * VXD_OCCUPANCY_BLOCK_OCTETS +
                           (code >> 3 & 63)],
                bit & 7);
        } else {
            const struct vxd_occupancy_states states = vxd_occupancy_states_of(
                &work->view,
                vxd_occupancy_child(
                    &work->view,
                    vxd_occupancy_find_block(&work->view, work->root, code >> 9), leaf));

            value = vxd_occupancy_clamp(&work->rule, &states, bit);
        }
    }
    work->values[i] = (int8_t)value;
}

#endif
