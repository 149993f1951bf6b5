// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hash/hash_keys.h"

#include "gpu/hash/hash_math.h"
#include "tests/support/hash/hash_model.h"
#include "tests/support/gpu/gpu_helpers.h"

#define GOLDEN 0x9e3779b97f4a7c15ULL

/* Inverse of vxd_mix64. */
static uint64_t unmix64(uint64_t v)
{
    v ^= v >> 33;
    v *= 0x9cb4b2f8129337dbULL;
    v ^= v >> 33;
    v *= 0x4f74430c22a54005ULL;
    v ^= v >> 33;
    return v;
}

static void form_of(const struct vxd_hashmap_spec *spec, struct vxd_key_form *form)
{
    *form =
        (struct vxd_key_form){.n_components = spec->n_components,
                              .component_bytes = (int)vxd_dtype_bytes(spec->key_dtype)};
    form->row_bytes = form->n_components * form->component_bytes;
    vxd_hashmap_key_bits(spec->n_components, form->bits);
}

static int64_t edge(const struct vxd_key_form *form, int c, uint64_t *random)
{
    int n_bits = 8 * form->component_bytes;
    int64_t packed = (int64_t)1 << (form->bits[c] - 1);
    int64_t most = (int64_t)(((uint64_t)1 << (n_bits - 1)) - 1);
    int64_t edges[] = {most, -most - 1, most - 1,    -most,   0,
                       -1,   packed,    -packed - 1, -packed, packed - 1};

    return edges[gpu_random(random) % 10];
}

/* Sets a component to a value that the dtype can hold, whatever the generator chose. */
static void set(const struct vxd_hashmap_spec *spec, void *key, int c, int64_t value)
{
    if (!hash_model_set_component(spec, key, c, value)) {
        (void)hash_model_set_component(spec, key, c, value % 1000);
    }
}

static int64_t anywhere(const struct vxd_key_form *form, uint64_t *random)
{
    return (int64_t)gpu_random(random) >> (64 - 8 * form->component_bytes);
}

static void make_plain(const struct vxd_hashmap_spec *spec,
                       const struct vxd_key_form *form, enum hash_key_kind kind,
                       uint64_t *random, void *key)
{
    bool is_near = kind == HASH_KEYS_SMALL ||
                   (kind == HASH_KEYS_MIXED && gpu_random(random) % 2 == 0);

    for (int c = 0; c < form->n_components; c++) {
        if (kind == HASH_KEYS_EDGES) {
            set(spec, key, c, edge(form, c, random));
        } else if (is_near) {
            set(spec, key, c, (int64_t)(gpu_random(random) % 17) - 8);
        } else {
            set(spec, key, c, anywhere(form, random));
        }
    }
}

/* The key with this tag; false where the dtype cannot hold it. */
static bool unpack(const struct vxd_hashmap_spec *spec, const struct vxd_key_form *form,
                   uint64_t tag, void *key)
{
    bool fits = !vxd_tag_is_wide(tag);

    for (int c = form->n_components - 1; c >= 0; c--) {
        int64_t bias = (int64_t)1 << (form->bits[c] - 1);
        uint64_t field = tag & (((uint64_t)1 << form->bits[c]) - 1);

        fits = fits && hash_model_set_component(spec, key, c, (int64_t)field - bias);
        tag >>= form->bits[c];
    }
    return fits && tag == 0;
}

static void make_bucket(const struct vxd_hashmap_spec *spec,
                        const struct vxd_key_form *form, enum hash_key_kind kind,
                        uint64_t *random, void *key)
{
    const uint64_t pattern = 0xa5a5a5a5a5a5a5a5ULL;
    bool is_high = kind == HASH_KEYS_HIGH;
    bool is_exact = spec->key_dtype == VXD_INT32 && spec->n_components == 3;
    uint64_t mask = is_high ? (uint64_t)127 << 57 : 127;
    uint64_t hash;

    do {
        if (is_exact) {
            uint64_t noise = gpu_random(random);

            hash = is_high ? (pattern & ~0xffffffULL) | (noise & 0xffffffULL)
                           : (pattern >> 24) | noise << 40;
            if (!unpack(spec, form, unmix64(hash), key)) {
                hash = ~pattern; /* the top bit is set: try again */
            }
        } else {
            make_plain(spec, form, HASH_KEYS_MIXED, random, key);
            hash = vxd_mix64(vxd_key_tag(form, key));
        }
    } while (((hash ^ (is_high ? pattern : pattern >> 24)) & mask) != 0);
}

/* The last component is chosen so that all keys get the same fingerprint. */
static void make_same_fingerprint(const struct vxd_hashmap_spec *spec,
                                  const struct vxd_key_form *form, uint64_t *random,
                                  void *key)
{
    const uint64_t fingerprint_preimage = unmix64(0xfedcba9876543210ULL - GOLDEN);
    uint64_t fingerprint = GOLDEN;
    int last = form->n_components - 1;

    for (int c = 0; c < last; c++) {
        uint64_t value = gpu_random(random) % 3000;

        set(spec, key, c, (int64_t)value);
        fingerprint = vxd_mix64(fingerprint + value) + GOLDEN;
    }
    set(spec, key, last, (int64_t)(fingerprint_preimage - fingerprint));
}

void hash_keys_make(const struct vxd_hashmap_spec *spec, enum hash_key_kind kind,
                    uint64_t *random, void *out, size_t n)
{
    struct vxd_key_form form;

    form_of(spec, &form);
    if (kind == HASH_KEYS_SAME_FINGERPRINT &&
        (spec->key_dtype != VXD_INT64 || spec->n_components < 2)) {
        kind = HASH_KEYS_MIXED;
    }
    if ((kind == HASH_KEYS_HIGH || kind == HASH_KEYS_LOW) &&
        spec->key_dtype == VXD_INT16 && spec->n_components == 1) {
        kind = HASH_KEYS_EDGES; /* there are too few such keys */
    }
    for (size_t i = 0; i < n; i++) {
        void *key = (char *)out + i * (size_t)form.row_bytes;

        if (kind == HASH_KEYS_HIGH || kind == HASH_KEYS_LOW) {
            make_bucket(spec, &form, kind, random, key);
        } else if (kind == HASH_KEYS_SAME_FINGERPRINT) {
            make_same_fingerprint(spec, &form, random, key);
        } else {
            make_plain(spec, &form, kind, random, key);
        }
    }
}
