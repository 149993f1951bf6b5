// SPDX-License-Identifier: Apache-2.0
/* The layer behind the opaque name, what its files share, and the arithmetic of upkeep and votes. */
#ifndef VXD_GPU_OCCUPANCY_OCCUPANCY_BACKENDS_H
#define VXD_GPU_OCCUPANCY_OCCUPANCY_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/hash/hash.h"
#include "gpu/occupancy/occupancy_math.h"

/* --- upkeep ------------------------------------------------------------------------------ */

/* The steps of decays, and of lists without pinned voxels, for one element, as both backends
 * compile them. What a decay makes of a value is a table, which the host computes once.
 *
 * Pins are a root of the scene's store: the voxels that are occupied there are pinned. */

/* Eight voxels that were never observed. */
#define VXD_OCCUPANCY_UNKNOWN_OCTET UINT64_C(0x8080808080808080)

/* The pinned voxels of a leaf. */
VXD_HD uint64_t vxd_occupancy_pinned(const struct vxd_svdag_view *view, uint32_t pins,
                                     uint64_t code)
{
    const int leaf = (int)(code % VXD_OCCUPANCY_BLOCK_LEAVES);
    uint32_t ref;

    if (pins == VXD_SVDAG_EMPTY) {
        return 0;
    }
    ref = vxd_occupancy_find_block(view, pins, code / VXD_OCCUPANCY_BLOCK_LEAVES);
    return vxd_occupancy_states_of(view, vxd_occupancy_child(view, ref, leaf)).occupied;
}

/* The leaf's first voxel. */
VXD_HD void vxd_occupancy_leaf_corner(uint64_t code, int64_t corner[3])
{
    corner[0] = (int64_t)vxd_gather3(code >> 2) * 4;
    corner[1] = (int64_t)vxd_gather3(code >> 1) * 4;
    corner[2] = (int64_t)vxd_gather3(code) * 4;
}

/* Squares of the least and of the greatest distance from the ball's centre to the centres of
 * the leaf's voxels, in units. */
VXD_HD void vxd_occupancy_leaf_distances(const struct vxd_occupancy_decay *decay,
                                         const int64_t corner[3], int64_t *least,
                                         int64_t *greatest)
{
    *least = 0;
    *greatest = 0;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t first = corner[axis] * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2;
        const int64_t low = first - decay->centre[axis];
        const int64_t high = low + (int64_t)3 * VXD_SVDAG_UNIT;
        const int64_t near = low > 0 ? low : high < 0 ? high : 0;
        const int64_t far = -low > high ? low : high;

        *least += near * near;
        *greatest += far * far;
    }
}

VXD_HD bool vxd_occupancy_voxel_fades(const struct vxd_occupancy_decay *decay,
                                      const int64_t voxel[3])
{
    int64_t square = 0;

    for (int axis = 0; axis < 3; axis++) {
        const int64_t d =
            voxel[axis] * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2 - decay->centre[axis];

        if (voxel[axis] < decay->low[axis] || voxel[axis] >= decay->high[axis]) {
            return false;
        }
        square += d * d;
    }
    return !decay->keeps || square > decay->radius * decay->radius;
}

/* The voxels of a leaf that a decay is about. */
VXD_HD uint64_t vxd_occupancy_fading(const struct vxd_occupancy_decay *decay,
                                     uint64_t code)
{
    const int64_t square = decay->radius * decay->radius;
    int64_t corner[3];
    int64_t least;
    int64_t greatest;
    bool is_inside = true;
    uint64_t mask = 0;

    vxd_occupancy_leaf_corner(code, corner);
    for (int axis = 0; axis < 3; axis++) {
        if (corner[axis] + 4 <= decay->low[axis] || corner[axis] >= decay->high[axis]) {
            return 0;
        }
        is_inside = is_inside && corner[axis] >= decay->low[axis] &&
                    corner[axis] + 4 <= decay->high[axis];
    }
    vxd_occupancy_leaf_distances(decay, corner, &least, &greatest);
    if (decay->keeps && greatest <= square) {
        return 0;
    }
    if (is_inside && (!decay->keeps || least > square)) {
        return ~(uint64_t)0;
    }
    for (int bit = 0; bit < 64; bit++) {
        const uint64_t within = (uint64_t)bit;
        const int64_t voxel[3] = {corner[0] + (int64_t)vxd_gather3(within >> 2),
                                  corner[1] + (int64_t)vxd_gather3(within >> 1),
                                  corner[2] + (int64_t)vxd_gather3(within)};

        mask |= (uint64_t)(vxd_occupancy_voxel_fades(decay, voxel) ? 1 : 0) << bit;
    }
    return mask;
}

VXD_HD void vxd_occupancy_key(const struct vxd_occupancy_work *work, uint64_t i)
{
    work->sorted_keys[i] = (uint64_t)work->layer_keys[work->entries[i]];
}

VXD_HD uint64_t *vxd_occupancy_leaf_words(const struct vxd_occupancy_work *work,
                                          uint64_t i)
{
    return work->rows +
           (uint64_t)work->entries[i / VXD_OCCUPANCY_BLOCK_LEAVES] *
               VXD_OCCUPANCY_BLOCK_OCTETS +
           i % VXD_OCCUPANCY_BLOCK_LEAVES * VXD_OCCUPANCY_LEAF_OCTETS;
}

VXD_HD uint64_t vxd_occupancy_leaf_code(const struct vxd_occupancy_work *work, uint64_t i)
{
    const int32_t entry = work->entries[i / VXD_OCCUPANCY_BLOCK_LEAVES];

    return (uint64_t)work->layer_keys[entry] * VXD_OCCUPANCY_BLOCK_LEAVES +
           i % VXD_OCCUPANCY_BLOCK_LEAVES;
}

/* The voxels of an octet that were observed and are forgotten, as a mask. */
VXD_HD uint32_t vxd_occupancy_forgotten(const int8_t *faded, uint64_t word)
{
    uint32_t mask = 0;

    if (word == VXD_OCCUPANCY_UNKNOWN_OCTET) {
        return 0;
    }
    for (int k = 0; k < 8; k++) {
        const uint32_t byte = (uint32_t)(word >> 8 * k) & 0xffu;

        mask |= (faded[byte] == VXD_OCCUPANCY_UNKNOWN && byte != 0x80u ? 1u : 0u) << k;
    }
    return mask;
}

/* An octet of which all voxels fade. */
VXD_HD uint64_t vxd_occupancy_faded(const int8_t *faded, uint64_t word)
{
    uint64_t after = 0;

    for (int k = 0; k < 8; k++) {
        after |= (uint64_t)(uint8_t)faded[word >> 8 * k & 0xff] << 8 * k;
    }
    return after;
}

VXD_HD void vxd_occupancy_fade_judge(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint64_t *words = vxd_occupancy_leaf_words(work, i);
    const uint64_t code = vxd_occupancy_leaf_code(work, i);
    uint64_t mask = vxd_occupancy_fading(&work->decay, code);
    uint64_t forgotten = 0;

    mask &= mask != 0 ? ~vxd_occupancy_pinned(&work->view, work->pins, code) : 0;
    for (int octet = 0; octet < VXD_OCCUPANCY_LEAF_OCTETS && mask != 0; octet++) {
        forgotten |= (uint64_t)vxd_occupancy_forgotten(work->faded, words[octet])
                     << 8 * octet;
    }
    forgotten &= mask;
    work->codes[i] = mask;
    work->hits[i] = forgotten;
    work->freed_at[i] = forgotten != 0 ? 1 : 0;
}

VXD_HD void vxd_occupancy_fade_list(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint32_t place = work->freed_at[i];

    if (work->freed_at[i + 1] != place) {
        work->list_codes[place] = vxd_occupancy_leaf_code(work, i);
        work->list_masks[place] = work->hits[i];
    }
}

/* The masks of fading voxels are in `codes`, where the step before has left them. */
VXD_HD void vxd_occupancy_fade(const struct vxd_occupancy_work *work, uint64_t i)
{
    uint64_t *words = vxd_occupancy_leaf_words(work, i);
    const uint64_t mask = work->codes[i];

    for (int octet = 0; octet < VXD_OCCUPANCY_LEAF_OCTETS; octet++) {
        const uint64_t word = words[octet];
        uint64_t fades = 0;

        if ((mask >> 8 * octet & 0xff) == 0 || word == VXD_OCCUPANCY_UNKNOWN_OCTET) {
            continue;
        }
        for (int k = 0; k < 8; k++) {
            fades |= (mask >> (8 * octet + k) & 1) != 0 ? (uint64_t)0xff << 8 * k : 0;
        }
        words[octet] = (vxd_occupancy_faded(work->faded, word) & fades) | (word & ~fades);
    }
}

VXD_HD uint32_t vxd_occupancy_popcount(uint64_t mask)
{
    uint32_t n = 0;

    for (; mask != 0; mask &= mask - 1) {
        n++;
    }
    return n;
}

VXD_HD void vxd_occupancy_unpin_mark(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint64_t pinned =
        vxd_occupancy_pinned(&work->view, work->pins, work->list.codes[i]);
    const uint64_t left = work->list.masks[i] & ~pinned;

    work->hits[i] = left;
    work->leaf_at[i] = left != 0 ? 1 : 0;
    if (work->list.values != NULL) {
        work->value_at[i] = vxd_occupancy_popcount(left);
    }
}

VXD_HD void vxd_occupancy_unpin_list(const struct vxd_occupancy_work *work, uint64_t i)
{
    const uint32_t place = work->leaf_at[i];
    const uint64_t left = work->hits[i];
    uint32_t from;
    uint32_t to;

    if (left == 0) {
        return;
    }
    work->list_codes[place] = work->list.codes[i];
    work->list_masks[place] = left;
    if (work->list.values == NULL) {
        return;
    }
    from = work->list.first_value[i];
    to = work->value_at[i];
    work->list_firsts[place] = to;
    for (uint64_t mask = work->list.masks[i]; mask != 0; mask &= mask - 1, from++) {
        if ((left & mask & (0 - mask)) != 0) {
            work->list_values[to++] = work->list.values[from];
        }
    }
}

/* --- votes ------------------------------------------------------------------------------- */

/* Votes of scans for the materials of voxels, as both backends compile them. A voxel has its last
 * votes in a word of four uint16, the newest lowest: a material plus 1, 0 where there is none. */

enum {
    VXD_OCCUPANCY_LEAF_VOXELS = 64
};

/* The votes after one for a material, of which n are kept. Material 65535 is no vote. */
VXD_HD uint64_t vxd_votes_after(uint64_t votes, uint32_t material, int n)
{
    const uint64_t kept = n < 4 ? ((uint64_t)1 << 16 * n) - 1 : ~(uint64_t)0;
    const uint64_t vote = (material + 1) & 0xffffu;

    return vote != 0 ? (votes << 16 | vote) & kept : votes;
}

/* The material with most votes, of several the one with the newest vote; `material` where there
 * are none. */
VXD_HD uint32_t vxd_votes_winner(uint64_t votes, uint32_t material)
{
    uint32_t best = 0;
    int most = 0;

    for (int i = 0; i < 4; i++) {
        const uint32_t vote = (uint32_t)(votes >> 16 * i) & 0xffffu;
        int n = 0;

        for (int k = 0; k < 4; k++) {
            n += ((uint32_t)(votes >> 16 * k) & 0xffffu) == vote ? 1 : 0;
        }
        if (vote != 0 && n > most) {
            best = vote;
            most = n;
        }
    }
    return most > 0 ? best - 1 : material;
}

VXD_HD void vxd_occupancy_vote_key(const struct vxd_occupancy_work *work, uint64_t i)
{
    work->block_keys[i] = (int64_t)(work->list.codes[i] >> 3);
}

/* Of the leaves of a new block one says that it is new. */
VXD_HD void vxd_occupancy_vote_begin(const struct vxd_occupancy_work *work, uint64_t i)
{
    uint64_t *row =
        work->vote_rows + (uint64_t)work->entries[i] * VXD_OCCUPANCY_BLOCK_VOXELS;

    for (int v = 0; v < VXD_OCCUPANCY_BLOCK_VOXELS && work->is_new[i] != 0; v++) {
        row[v] = 0;
    }
}

/* The votes of leaf i's voxels. */
VXD_HD uint64_t *vxd_occupancy_votes_of(const struct vxd_occupancy_work *work, uint64_t i)
{
    return work->vote_rows + (uint64_t)work->entries[i] * VXD_OCCUPANCY_BLOCK_VOXELS +
           work->list.codes[i] % VXD_OCCUPANCY_BLOCK_LEAVES * VXD_OCCUPANCY_LEAF_VOXELS;
}

VXD_HD void vxd_occupancy_vote_leaf(const struct vxd_occupancy_work *work, uint64_t i)
{
    uint64_t *votes = vxd_occupancy_votes_of(work, i);
    const uint64_t mask = work->list.masks[i];
    uint16_t *out = work->list_values + i * VXD_OCCUPANCY_LEAF_VOXELS;
    int k = 0;

    work->list_firsts[i] = (uint32_t)i * VXD_OCCUPANCY_LEAF_VOXELS;
    for (int bit = 0; bit < VXD_OCCUPANCY_LEAF_VOXELS; bit++) {
        uint32_t material = work->value;

        if ((mask >> bit & 1) == 0) {
            continue;
        }
        if (work->list.values != NULL) {
            material = work->list.values[work->list.first_value[i] + (uint32_t)k];
        }
        work->saved[i * VXD_OCCUPANCY_LEAF_VOXELS + (uint64_t)bit] = votes[bit];
        votes[bit] = vxd_votes_after(votes[bit], material, work->rule.votes);
        out[k++] = (uint16_t)vxd_votes_winner(votes[bit], material);
    }
}

VXD_HD void vxd_occupancy_vote_undo(const struct vxd_occupancy_work *work, uint64_t i)
{
    uint64_t *votes = vxd_occupancy_votes_of(work, i);
    const uint64_t mask = work->list.masks[i];

    for (int bit = 0; bit < VXD_OCCUPANCY_LEAF_VOXELS; bit++) {
        if ((mask >> bit & 1) != 0) {
            votes[bit] = work->saved[i * VXD_OCCUPANCY_LEAF_VOXELS + (uint64_t)bit];
        }
    }
}

/* --- the layer --------------------------------------------------------------------------- */

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_occupancy {
    struct vxd_occupancy_rule rule;
    int depth;
    /* From a block's Morton code to its row: 512 int8, in Morton order. */
    struct vxd_hashmap *map;
    struct vxd_hashmap *votes; /* likewise: 512 uint64, as above; NULL: none are kept */
    size_t max_bytes;          /* of both; 0 = what the context's budget allows */
    /* New blocks were added and memory ran out before they had values. */
    bool is_damaged;
};

/* What a change of a layer does, once its scene has been edited. */
struct vxd_occupancy_plan {
    struct vxd_occupancy_work work;
    enum vxd_occupancy_step step; /* that applies it, for n_elements */
    uint64_t n_elements;
    uint32_t n_leaves;
    uint32_t n_blocks;
    struct vxd_buffer leaves; /* and blocks */
    struct vxd_buffer list;
    struct vxd_buffer fading; /* a decay's leaves */
    struct vxd_occupancy *layer;
    const struct vxd_svdag *svdag;       /* whose stop ends the work */
    struct vxd_occupancy_ballot *ballot; /* NULL: nothing has voted */
};

/* The numbers of all blocks, ascending, in *memory. Blocking.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_occupancy_list_blocks(struct vxd_queue *queue,
                                          struct vxd_occupancy *layer,
                                          struct vxd_buffer *memory, size_t *n,
                                          struct vxd_err *err);

/* Forgets all values of a damaged layer: they become the clamps of the scene's states.
 * errors  RESOURCE_EXHAUSTED; it is still damaged */
enum vxd_status vxd_occupancy_mend(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                   struct vxd_err *err);

/* Prepares a map of the layer for new blocks. A small one grows by little more than it needs: most
 * of a layer is its rows, and few may be unused; a large one would be copied too often. Ends
 * between two pieces of that copy where nobody waits for the work any more.
 * errors  RESOURCE_EXHAUSTED, CANCELLED */
enum vxd_status vxd_occupancy_prepare(struct vxd_queue *queue, struct vxd_hashmap *map,
                                      const struct vxd_svdag *svdag, const int64_t *keys,
                                      size_t n, size_t *n_new, struct vxd_err *err);

/* votes.c. Takes back the votes of a plan that was not applied, and frees them. In queue order. */
void vxd_occupancy_ballot_free(struct vxd_queue *queue, struct vxd_occupancy_plan *plan);
/* The votes of a plan count. */
void vxd_occupancy_ballot_close(const struct vxd_occupancy_plan *plan);
/* What the map of votes may take: what the other one leaves. */
void vxd_occupancy_allow_votes(struct vxd_occupancy *layer);

/* Runs one step for n elements, on a CPU so many at a time, and ends between two parts where nobody
 * waits for the work any more (vxd_svdag_set_stop). May wait.
 * errors  CANCELLED, and those of a step; some parts may have run */
enum vxd_status vxd_occupancy_run_parts(struct vxd_queue *queue,
                                        const struct vxd_svdag *svdag,
                                        enum vxd_occupancy_step step,
                                        const struct vxd_occupancy_work *work, uint64_t n,
                                        uint64_t part, struct vxd_err *err);

/* Runs one step for n elements, from work->first on.
 * errors  RESOURCE_EXHAUSTED, UNAVAILABLE, INTERNAL; nothing ran */
enum vxd_status vxd_occupancy_run_cpu(struct vxd_queue *queue,
                                      enum vxd_occupancy_step step,
                                      const struct vxd_occupancy_work *work, uint64_t n,
                                      struct vxd_err *err);
enum vxd_status vxd_occupancy_run_cuda(struct vxd_queue *queue,
                                       enum vxd_occupancy_step step,
                                       const struct vxd_occupancy_work *work, uint64_t n,
                                       struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
