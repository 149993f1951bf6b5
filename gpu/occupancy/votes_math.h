// SPDX-License-Identifier: Apache-2.0
/* Votes of scans for the materials of voxels, as both backends compile them. A voxel has its last
 * votes in a word of four uint16, the newest lowest: a material plus 1, 0 where there is none. */
#ifndef VXD_GPU_OCCUPANCY_VOTES_MATH_H
#define VXD_GPU_OCCUPANCY_VOTES_MATH_H

#include "gpu/occupancy/occupancy_math.h"

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

#endif
