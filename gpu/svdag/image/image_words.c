// SPDX-License-Identifier: Apache-2.0
/* The rules on the words of single items in an image: lengths, layout, values. */
#include "gpu/svdag/image/image_check.h"

#include <string.h>

enum {
    CHUNK_WORDS = 1 << VXD_SVDAG_CHUNK_BITS
};

bool vxd_svdag_checking_broken(struct vxd_svdag_checking *check, enum vxd_svdag_kind kind,
                               uint64_t at, const char *rule)
{
    static const char *const names[VXD_SVDAG_N_KINDS] = {"leaf", "inner node", "block"};

    (void)pthread_mutex_lock(&check->mutex);
    if (!vxd_svdag_check_has_failed(check)) {
        (void)vxd_fail(&check->err, VXD_DATA_LOSS, NULL, "%s at word %llu: %s",
                       names[kind], (unsigned long long)at, rule);
        __atomic_store_n(&check->has_failed, true, __ATOMIC_RELAXED);
    }
    (void)pthread_mutex_unlock(&check->mutex);
    return false;
}

static bool tail_is_zero(const uint32_t *words, int n_bits)
{
    return n_bits % 32 == 0 || words[n_bits / 32] >> (n_bits % 32) == 0;
}

static bool values_differ(const uint32_t *words, int bits, int n)
{
    uint32_t differ = 0;

    for (int i = 1; i < n; i++) {
        differ |= (words[i * bits / 32] >> (i * bits % 32)) ^ words[0];
    }
    return (differ & ((1u << bits) - 1)) != 0;
}

static bool check_block(struct vxd_svdag_checking *check, uint64_t at,
                        const uint32_t *words)
{
    int bits = check->items->view.value_bits;
    int n = (int)words[0];

    return !tail_is_zero(words + 1, n * bits)
               ? vxd_svdag_checking_broken(check, VXD_SVDAG_BLOCK, at,
                                           "words after its values are not zero")
           : !values_differ(words + 1, bits, n)
               ? vxd_svdag_checking_broken(check, VXD_SVDAG_BLOCK, at,
                                           "its values are all equal")
               : true;
}

static bool check_leaf(struct vxd_svdag_checking *check, uint64_t at,
                       const uint32_t *words)
{
    int bits = check->items->view.value_bits;
    uint64_t set = vxd_svdag_leaf_mask(words);
    uint64_t free_ones = bits == 1 ? (uint64_t)words[3] << 32 | words[2] : 0;
    bool is_one = bits == 0 || (bits == 1 && (free_ones == 0 || free_ones == set)) ||
                  (bits == 4 && !values_differ(words + 2, 4, vxd_svdag_popc(set))) ||
                  (bits >= 8 && vxd_svdag_is_uniform(words[2]));

    if ((free_ones & ~set) != 0) {
        return vxd_svdag_checking_broken(check, VXD_SVDAG_LEAF, at,
                                         "a voxel is FREE and not set");
    }
    if (bits == 4 && !tail_is_zero(words + 2, 4 * vxd_svdag_popc(set))) {
        return vxd_svdag_checking_broken(check, VXD_SVDAG_LEAF, at,
                                         "words after its values are not zero");
    }
    if (bits >= 8 && !vxd_svdag_is_node(words[2]) &&
        (words[2] == VXD_SVDAG_EMPTY || !vxd_svdag_checking_is_value(check, words[2]))) {
        return vxd_svdag_checking_broken(check, VXD_SVDAG_LEAF, at, "it has no values");
    }
    return set != UINT64_MAX || !is_one ||
           vxd_svdag_checking_broken(check, VXD_SVDAG_LEAF, at,
                                     "its 64 voxels are equal");
}

static bool check_inner(struct vxd_svdag_checking *check, uint64_t at,
                        const uint32_t *words, int n)
{
    uint32_t *most = &check->most[at / VXD_SVDAG_CHECK_WORDS];
    bool equal = n == 9 && vxd_svdag_is_uniform(words[1]);

    for (int i = 1; i < n; i++) {
        if (words[i] == VXD_SVDAG_EMPTY) {
            return vxd_svdag_checking_broken(check, VXD_SVDAG_INNER, at,
                                             "an empty child is present");
        }
        if (vxd_svdag_is_uniform(words[i]) &&
            !vxd_svdag_checking_is_value(check, words[i])) {
            return vxd_svdag_checking_broken(check, VXD_SVDAG_INNER, at,
                                             "a uniform reference has no valid value");
        }
        if (vxd_svdag_is_node(words[i])) {
            if (words[i] >= at || words[i] < check->info->leaves) {
                return vxd_svdag_checking_broken(check, VXD_SVDAG_INNER, at,
                                                 "a child is not a node before it");
            }
            *most = words[i] > *most ? words[i] : *most;
        }
        equal = equal && words[i] == words[1];
    }
    return !equal ||
           vxd_svdag_checking_broken(check, VXD_SVDAG_INNER, at,
                                     "its eight children are equal and uniform");
}

/* Length of the item that begins with these words, n_left of which may be read. 0: it is
 * no item. */
static int length_of(const struct vxd_svdag_checking *check, enum vxd_svdag_kind kind,
                     const uint32_t *words, uint64_t n_left)
{
    int bits = check->items->view.value_bits;
    int n = 0;

    if (kind == VXD_SVDAG_BLOCK) {
        n = words[0] >= 1 && words[0] <= 64 ? vxd_svdag_block_words(bits, (int)words[0])
                                            : 0;
    } else if (kind == VXD_SVDAG_LEAF) {
        n = n_left >= 2 && vxd_svdag_leaf_mask(words) != 0
                ? vxd_svdag_leaf_words(bits, vxd_svdag_leaf_mask(words))
                : 0;
    } else {
        n = (words[0] & 0xffu) != 0 ? vxd_svdag_inner_words(words) : 0;
    }
    return (uint64_t)n <= n_left ? n : 0;
}

static bool all_zero(const uint32_t *words, uint64_t n)
{
    uint32_t bits = 0;

    for (uint64_t i = 0; i < n; i++) {
        bits |= words[i];
    }
    return bits == 0;
}

/* Clears the marks and facts of a chunk. The thread that fills them clears them, so that
 * the pages are touched by all threads. */
static void clear_chunk(const struct vxd_svdag_checking *check, uint64_t chunk)
{
    uint64_t n_small = (check->info->inner + 1) / 2;
    uint64_t begin = chunk * CHUNK_WORDS / 2;
    uint64_t end = begin + CHUNK_WORDS / 2;

    memset(check->marks + chunk * CHUNK_WORDS / VXD_SVDAG_MARK_WORDS, 0,
           CHUNK_WORDS / VXD_SVDAG_MARK_WORDS * sizeof *check->marks);
    if (begin < n_small) {
        memset(check->small_facts + begin, 0,
               ((end < n_small ? end : n_small) - begin) * sizeof *check->small_facts);
    }
    if (end > check->first_fact) {
        uint64_t from = begin > check->first_fact ? begin : check->first_fact;

        memset(check->facts + (from - check->first_fact), 0,
               (end - from) * sizeof *check->facts);
    }
}

bool vxd_svdag_checking_chunk(struct vxd_svdag_checking *check, uint64_t chunk)
{
    const struct vxd_svdag_image_info *info = check->info;
    uint64_t *counts = check->counts + chunk * VXD_SVDAG_N_KINDS;
    uint64_t begin = chunk == 0 ? 1 : chunk * CHUNK_WORDS;
    uint64_t end = (chunk + 1) * CHUNK_WORDS;
    uint64_t at = begin;

    clear_chunk(check, chunk);
    end = end < info->n_words ? end : info->n_words;
    while (at < end) {
        enum vxd_svdag_kind kind = vxd_svdag_image_kind(info, at);
        const uint32_t *words = check->words + at;
        uint64_t part = kind == VXD_SVDAG_BLOCK  ? info->leaves
                        : kind == VXD_SVDAG_LEAF ? info->inner
                                                 : info->n_words;
        uint64_t n_left = (part < end ? part : end) - at;
        int n = length_of(check, kind, words, n_left);
        bool is_good;

        if (n == 0) {
            if (end % CHUNK_WORDS == 0 && part >= end &&
                end - at < VXD_SVDAG_MAX_ITEM_WORDS && all_zero(words, end - at)) {
                check->pads[chunk] = (uint32_t)(end - at);
                return true;
            }
            return vxd_svdag_checking_broken(check, kind, at,
                                             "no complete item begins here");
        }
        is_good = kind == VXD_SVDAG_BLOCK  ? check_block(check, at, words)
                  : kind == VXD_SVDAG_LEAF ? check_leaf(check, at, words)
                                           : check_inner(check, at, words, n);
        if (!is_good) {
            return false;
        }
        check->first[chunk] = at == begin ? (uint32_t)n : check->first[chunk];
        check->marks[at / VXD_SVDAG_MARK_WORDS].bits |= vxd_svdag_mark_bit((uint32_t)at);
        if (kind == VXD_SVDAG_BLOCK) {
            check->small_facts[at / 2] =
                (uint16_t)(VXD_SVDAG_SMALL_BLOCK | vxd_svdag_small_odd((uint32_t)at));
        }
        counts[kind]++;
        at += (uint64_t)n;
    }
    return true;
}
