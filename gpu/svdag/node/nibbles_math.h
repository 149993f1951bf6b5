// SPDX-License-Identifier: Apache-2.0
/* Operations on eight 4-bit values in a word: those of an octant of a leaf, a nibble for
 * each voxel. A stored leaf has the values of its set voxels alone, one after the other.
 * Here they are deposited to the nibbles of their voxels, and extracted from them. A set
 * of nibbles is given by the low bit of each. */
#ifndef VXD_GPU_SVDAG_NODE_NIBBLES_MATH_H
#define VXD_GPU_SVDAG_NODE_NIBBLES_MATH_H

#include "gpu/core/core_math.h"

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

#endif
