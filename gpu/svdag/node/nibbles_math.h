// SPDX-License-Identifier: Apache-2.0
/* Values of 4 bits, eight at a time: those of a leaf's octant, a nibble for each of its voxels.
 * Stored leaves have the values of their set voxels alone, one after the other; here those are
 * put to their places and taken from them. A set of nibbles is given by their low bits. */
#ifndef VXD_GPU_SVDAG_NODE_NIBBLES_MATH_H
#define VXD_GPU_SVDAG_NODE_NIBBLES_MATH_H

#include "gpu/core/core_math.h"

#define VXD_SVDAG_LOW_BITS 0x11111111u

/* Each of eight bits to the low bit of a nibble. */
VXD_HD uint32_t vxd_svdag_bits_spread(uint32_t bits)
{
    bits = (bits | bits << 12) & 0x000f000fu;
    bits = (bits | bits << 6) & 0x03030303u;
    return (bits | bits << 3) & VXD_SVDAG_LOW_BITS;
}

/* The nibbles that are not 0, a bit each. */
VXD_HD uint32_t vxd_svdag_nibbles_any(uint32_t nibbles)
{
    nibbles |= nibbles >> 1;
    nibbles |= nibbles >> 2;
    nibbles &= VXD_SVDAG_LOW_BITS;
    nibbles = (nibbles | nibbles >> 3) & 0x03030303u;
    nibbles |= nibbles >> 6;
    return (nibbles | nibbles >> 12) & 0xffu;
}

/* A value eight times. */
VXD_HD uint32_t vxd_svdag_nibbles_of(uint32_t value)
{
    return value * VXD_SVDAG_LOW_BITS;
}

/* By how many places each nibble of a set goes down where those before it are to stand one after
 * the other: how many of them are not in the set. */
VXD_HD uint32_t vxd_svdag_nibbles_distance(uint32_t kept)
{
    return (kept ^ VXD_SVDAG_LOW_BITS) * 0x11111110u & kept * 15u;
}

/* The nibbles of a set, one after the other. */
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

/* The other way: nibbles that stand one after the other to the places of a set; others are 0. */
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
