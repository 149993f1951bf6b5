// SPDX-License-Identifier: Apache-2.0
/* What decides the integer results of hash maps; compiled by both gcc and nvcc. */
#ifndef VXD_GPU_HASH_HASHMAP_MATH_H
#define VXD_GPU_HASH_HASHMAP_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/hash/hash.h"

/* A key's tag, 64 bits. The tag of a packed key is the key itself: top bit 0, then the
 * biased components, the first one highest. The tag of another key has top bit 1 and a
 * fingerprint of 63 bits, so equal tags must be confirmed by comparing the keys. Two
 * fingerprints are reserved for the index's own marks. */
#define VXD_TAG_WIDE ((uint64_t)1 << 63)
#define VXD_TAG_EMPTY (~(uint64_t)0)
#define VXD_TAG_ERASED (~(uint64_t)1)

/* How keys of one map are read and packed; made once by vxd_key_form_init (host). */
struct vxd_key_form {
    int n_components;
    int component_bytes; /* 2, 4, 8 */
    int row_bytes;
    int bits[VXD_HASHMAP_MAX_COMPONENTS];
};

/* Component c of the key at `row`; rows are aligned to their components. */
VXD_HD int64_t vxd_key_component(const struct vxd_key_form *form, const void *row, int c)
{
    switch (form->component_bytes) {
    case 2:
        return ((const int16_t *)row)[c];
    case 4:
        return ((const int32_t *)row)[c];
    default:
        return ((const int64_t *)row)[c];
    }
}

/* Finaliser of MurmurHash3: spreads every bit of v over all 64. */
VXD_HD uint64_t vxd_mix64(uint64_t v)
{
    v ^= v >> 33;
    v *= 0xff51afd7ed558ccdULL;
    v ^= v >> 33;
    v *= 0xc4ceb9fe1a85ec53ULL;
    v ^= v >> 33;
    return v;
}

/* The fingerprint of a key that cannot be packed: begin with VXD_FINGERPRINT, add its
 * components in order, then end. */
#define VXD_FINGERPRINT 0x9e3779b97f4a7c15ULL

VXD_HD uint64_t vxd_fingerprint_add(uint64_t fingerprint, int64_t component)
{
    return vxd_mix64(fingerprint + (uint64_t)component) + VXD_FINGERPRINT;
}

VXD_HD uint64_t vxd_fingerprint_end(uint64_t fingerprint)
{
    fingerprint |= VXD_TAG_WIDE;
    return fingerprint >= VXD_TAG_ERASED ? fingerprint - 2 : fingerprint;
}

VXD_HD uint64_t vxd_key_tag(const struct vxd_key_form *form, const void *row)
{
    uint64_t packed = 0;
    uint64_t fingerprint = VXD_FINGERPRINT;
    bool fits = true;

    for (int c = 0; c < form->n_components; c++) {
        int64_t value = vxd_key_component(form, row, c);
        uint64_t biased = (uint64_t)value + ((uint64_t)1 << (form->bits[c] - 1));

        fits = fits && biased >> form->bits[c] == 0;
        packed = packed << form->bits[c] | biased;
    }
    if (fits) {
        return packed;
    }
    for (int c = 0; c < form->n_components; c++) {
        fingerprint = vxd_fingerprint_add(fingerprint, vxd_key_component(form, row, c));
    }
    return vxd_fingerprint_end(fingerprint);
}

VXD_HD bool vxd_tag_is_wide(uint64_t tag)
{
    return tag >> 63 != 0;
}

VXD_HD bool vxd_keys_equal(const struct vxd_key_form *form, const void *a, const void *b)
{
    for (int c = 0; c < form->n_components; c++) {
        if (vxd_key_component(form, a, c) != vxd_key_component(form, b, c)) {
            return false;
        }
    }
    return true;
}

/* Offset of neighbour `column` of a kind; see enum vxd_hash_neighbours. */
VXD_HD void vxd_neighbour_offset(int kind, int column, int offset[3])
{
    if (kind == 6) {
        for (int axis = 0; axis < 3; axis++) {
            offset[axis] = column / 2 == axis ? column % 2 * 2 - 1 : 0;
        }
    } else if (kind == 8) {
        offset[0] = column >> 2;
        offset[1] = column >> 1 & 1;
        offset[2] = column & 1;
    } else {
        offset[0] = column / 9 - 1;
        offset[1] = column / 3 % 3 - 1;
        offset[2] = column % 3 - 1;
    }
}

/* Writes neighbour `column` of the key at `row` to `out`, a row of the same form. Of
 * four components the first, a batch number, stays. Returns false, with `out`
 * undefined, where the neighbour is outside the range of the components' type. */
VXD_HD bool vxd_key_neighbour(const struct vxd_key_form *form, const void *row, int kind,
                              int column, void *out)
{
    int first = form->n_components - 3;
    int64_t most = INT64_MAX >> (64 - 8 * form->component_bytes);
    int offset[3];

    vxd_neighbour_offset(kind, column, offset);
    for (int c = 0; c < form->n_components; c++) {
        int64_t value = vxd_key_component(form, row, c);
        int step = c < first ? 0 : offset[c - first];

        if (step > 0 ? value == most : step < 0 && value == -most - 1) {
            return false;
        }
        value += step;
        if (form->component_bytes == 2) {
            ((int16_t *)out)[c] = (int16_t)value;
        } else if (form->component_bytes == 4) {
            ((int32_t *)out)[c] = (int32_t)value;
        } else {
            ((int64_t *)out)[c] = value;
        }
    }
    return true;
}

#endif
