// SPDX-License-Identifier: Apache-2.0
/* Checks untrusted images. First each chunk is checked alone, as no item crosses its end:
 * where items begin, and the rules on their own words. Then items are checked in order
 * against their children: the heights at which an item may occur follow from its
 * children's heights and from its header, and so do its counts; and each item has a
 * parent, or is a root. Items that refer only to checked ones are checked in parallel. */
#include "gpu/svdag/image/image_check.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_WORDS = 1 << VXD_SVDAG_CHUNK_BITS,
    BLOCK_MARKS = VXD_SVDAG_CHECK_WORDS / VXD_SVDAG_MARK_WORDS,
    PREFETCH_WORDS = 64, /* words of prefetch distance */
    COUNT_BITS = 22,
    HEIGHT_BITS = 5
};

/* Facts of an inner node, never 0: its count of occupied voxels and its height; or, where
 * several heights are possible (then no count is kept), a bit for each height. */
#define HAS_PARENT 0x80000000u
#define HAS_HEIGHTS 0x40000000u
#define HAS_FREE 0x20000000u
#define HAS_OCCUPIED 0x10000000u
#define IS_ODD 0x08000000u /* it begins at an odd address */
#define COUNT_MASK ((1u << COUNT_BITS) - 1)
#define HEIGHT_MASK ((1u << HEIGHT_BITS) - 1)

static uint32_t odd_bit(uint32_t at)
{
    return (at & 1u) != 0 ? IS_ODD : 0;
}

static void chunk_body(void *args, size_t begin, size_t end)
{
    struct vxd_svdag_checking *check = args;

    for (size_t i = begin; i < end && !vxd_svdag_check_has_failed(check); i++) {
        (void)vxd_svdag_checking_chunk(check, i);
    }
}

/* Checks across chunks: free words at the end of a chunk are only allowed where the next
 * item does not fit. */
static bool check_pads(struct vxd_svdag_checking *check)
{
    for (uint64_t i = 0; i < check->n_chunks; i++) {
        bool is_last = i + 1 == check->n_chunks;

        if (check->pads[i] > 0 && (is_last || check->first[i + 1] <= check->pads[i])) {
            return vxd_svdag_checking_broken(
                check, VXD_SVDAG_INNER, (i + 1) * CHUNK_WORDS - check->pads[i],
                "free words although the next item would fit");
        }
    }
    return true;
}

/* Items and their children
 * ------------------------------------------------------------------ */

/* The facts of the inner node at an address, 0 where none begins there. Marks that it has
 * a parent. That is the only bit which changes while other threads read the facts, and
 * all of them write the same value. */
static uint32_t refer_to_inner(const struct vxd_svdag_checking *check, uint32_t ref)
{
    uint32_t *fact = &check->facts[ref / 2 - check->first_fact];
    uint32_t known = __atomic_load_n(fact, __ATOMIC_RELAXED);

    if (known == 0 || (known & IS_ODD) != odd_bit(ref)) {
        return 0;
    }
    if ((known & HAS_PARENT) == 0) {
        __atomic_store_n(fact, known | HAS_PARENT, __ATOMIC_RELAXED);
    }
    return known;
}

/* The same for a leaf or a block. */
static uint32_t refer_to_small(const struct vxd_svdag_checking *check, uint32_t ref)
{
    uint16_t *fact = &check->small_facts[ref / 2];
    uint32_t known = __atomic_load_n(fact, __ATOMIC_RELAXED);

    if (known == 0 || (known & VXD_SVDAG_SMALL_IS_ODD) != vxd_svdag_small_odd(ref)) {
        return 0;
    }
    if ((known & VXD_SVDAG_SMALL_PARENT) == 0) {
        __atomic_store_n(fact, (uint16_t)(known | VXD_SVDAG_SMALL_PARENT),
                         __ATOMIC_RELAXED);
    }
    return known;
}

static bool note_leaf(struct vxd_svdag_checking *check, uint32_t at)
{
    const struct vxd_svdag_view *view = &check->items->view;
    const struct vxd_svdag_item leaf = vxd_svdag_item_of(check->words + at);
    uint64_t set = vxd_svdag_leaf_mask(leaf.words);
    uint64_t occupied;

    if (view->value_bits >= 8 && vxd_svdag_is_node(leaf.rest[0])) {
        uint32_t ref = leaf.rest[0];

        if (ref >= check->info->leaves || refer_to_small(check, ref) == 0) {
            return vxd_svdag_checking_broken(check, VXD_SVDAG_LEAF, at,
                                             "its values are not a block");
        }
        if (check->words[ref] != (uint32_t)vxd_svdag_popc(set)) {
            return vxd_svdag_checking_broken(
                check, VXD_SVDAG_LEAF, at,
                "it does not have one value for each set voxel");
        }
    }
    occupied = vxd_svdag_item_occupied(view, &leaf);
    __atomic_store_n(&check->small_facts[at / 2],
                     (uint16_t)((uint32_t)vxd_svdag_popc(occupied) |
                                vxd_svdag_small_odd(at) |
                                (occupied != 0 ? VXD_SVDAG_SMALL_OCCUPIED : 0) |
                                (occupied != set ? VXD_SVDAG_SMALL_FREE : 0)),
                     __ATOMIC_RELAXED);
    return true;
}

/* Sums over the children of an inner node. */
struct sum {
    uint32_t heights; /* heights that the node may have */
    uint32_t flags;
    uint64_t n_occupied;
    uint32_t n_uniform; /* occupied uniform children */
};

static bool add_child(struct vxd_svdag_checking *check, uint32_t ref, struct sum *sum)
{
    uint32_t known;

    if (vxd_svdag_is_uniform(ref)) {
        bool is_free =
            vxd_svdag_uniform_state(&check->items->view, ref) == VXD_SVDAG_FREE;

        sum->flags |= is_free ? HAS_FREE : HAS_OCCUPIED;
        sum->n_uniform += is_free ? 0 : 1;
        return true;
    }
    if (ref < check->info->inner) {
        known = refer_to_small(check, ref);
        sum->flags |= (known & VXD_SVDAG_SMALL_FREE) != 0 ? HAS_FREE : 0;
        sum->flags |= (known & VXD_SVDAG_SMALL_OCCUPIED) != 0 ? HAS_OCCUPIED : 0;
        sum->heights &= 2u << VXD_SVDAG_LEAF_HEIGHT;
        sum->n_occupied += known & VXD_SVDAG_SMALL_COUNT;
        return known != 0;
    }
    known = refer_to_inner(check, ref);
    sum->flags |= known & (HAS_FREE | HAS_OCCUPIED);
    if ((known & HAS_HEIGHTS) != 0) {
        sum->heights &= (known & COUNT_MASK) << 1;
    } else {
        sum->heights &= 2u << (known >> COUNT_BITS & HEIGHT_MASK);
        sum->n_occupied += known & COUNT_MASK;
    }
    return known != 0;
}

/* Prefetches the facts of a word that may be an inner node's reference; any other word is
 * harmless. It must be inlined early: GCC 12 treats a function that only prefetches as
 * one without effects, and drops its calls. */
__attribute__((always_inline)) static inline void
fetch(const struct vxd_svdag_checking *check, uint64_t at)
{
    const struct vxd_svdag_image_info *info = check->info;
    uint32_t ref = at < info->n_words ? check->words[at] : VXD_SVDAG_UNIFORM;

    if (ref < info->inner) {
        __builtin_prefetch(&check->small_facts[ref / 2]);
    } else if (ref < info->n_words) {
        __builtin_prefetch(&check->facts[ref / 2 - check->first_fact]);
    }
}

static bool note_inner(struct vxd_svdag_checking *check, uint32_t at)
{
    const uint32_t *words = check->words + at;
    int depth = check->items->view.depth;
    int n = vxd_svdag_inner_words(words);
    struct sum sum = {.heights = (2u << depth) - (2u << VXD_SVDAG_LEAF_HEIGHT)};
    uint32_t expected = words[0] & 0xffu;

    fetch(check, (uint64_t)at + PREFETCH_WORDS);
    for (int i = 1; i < n; i++) {
        fetch(check, (uint64_t)at + PREFETCH_WORDS + (uint64_t)i);
        if (!add_child(check, words[i], &sum)) {
            return vxd_svdag_checking_broken(check, VXD_SVDAG_INNER, at,
                                             "a child is not a node before it");
        }
    }
    expected |= (sum.flags & HAS_OCCUPIED) != 0 ? VXD_SVDAG_HAS_OCCUPIED : 0;
    expected |= (sum.flags & HAS_FREE) != 0 ? VXD_SVDAG_HAS_FREE : 0;
    for (uint32_t rest = sum.heights; rest != 0; rest &= rest - 1) {
        int height = __builtin_ctz(rest);
        uint64_t count =
            height > VXD_SVDAG_COUNT_HEIGHT
                ? 0
                : sum.n_occupied + ((uint64_t)sum.n_uniform << (3 * (height - 1)));

        if (words[0] != (expected | (uint32_t)count << 10)) {
            sum.heights &= ~(1u << height);
        }
    }
    if (sum.heights == 0) {
        return vxd_svdag_checking_broken(
            check, VXD_SVDAG_INNER, at,
            "its header does not match its children at any height");
    }
    __atomic_store_n(
        &check->facts[at / 2 - check->first_fact],
        odd_bit(at) | sum.flags |
            ((sum.heights & (sum.heights - 1)) != 0
                 ? HAS_HEIGHTS | sum.heights
                 : words[0] >> 10 | (uint32_t)__builtin_ctz(sum.heights) << COUNT_BITS),
        __ATOMIC_RELAXED);
    return true;
}

static void block_body(void *args, size_t begin, size_t end)
{
    struct vxd_svdag_checking *check = args;
    uint64_t n_marks = check->items->marks.n_bytes / sizeof *check->marks;

    for (size_t i = (check->block + begin) * (size_t)BLOCK_MARKS;
         i < (check->block + end) * (size_t)BLOCK_MARKS && i < n_marks &&
         !vxd_svdag_check_has_failed(check);
         i++) {
        for (uint32_t rest = check->marks[i].bits; rest != 0; rest &= rest - 1) {
            uint32_t at =
                (uint32_t)i * VXD_SVDAG_MARK_WORDS + (uint32_t)__builtin_ctz(rest);
            enum vxd_svdag_kind kind = vxd_svdag_image_kind(check->info, at);
            bool is_good = kind == VXD_SVDAG_BLOCK  ? true
                           : kind == VXD_SVDAG_LEAF ? note_leaf(check, at)
                                                    : note_inner(check, at);

            if (!is_good) {
                return;
            }
        }
    }
}

/* Checks runs of blocks that do not refer to each other in parallel. A block that refers
 * into itself is a run of its own, for one thread. */
static void check_blocks(struct vxd_svdag_checking *check, struct vxd_pool *pool)
{
    uint32_t n_blocks = (uint32_t)((check->info->n_words + VXD_SVDAG_CHECK_WORDS - 1) /
                                   VXD_SVDAG_CHECK_WORDS);
    uint32_t end;

    for (check->block = 0; check->block < n_blocks && !vxd_svdag_check_has_failed(check);
         check->block = end) {
        end = check->block + 1;
        while (end < n_blocks &&
               check->most[end] < check->block * VXD_SVDAG_CHECK_WORDS &&
               check->most[check->block] < check->block * VXD_SVDAG_CHECK_WORDS) {
            end++;
        }
        vxd_parallel_for(pool, end - check->block, 1, block_body, check);
    }
}

static void no_parent(struct vxd_svdag_checking *check, uint64_t at)
{
    (void)vxd_svdag_checking_broken(check, vxd_svdag_image_kind(check->info, at), at,
                                    "it has no parent");
}

static void parent_body(void *args, size_t begin, size_t end)
{
    struct vxd_svdag_checking *check = args;
    uint64_t n_small = (check->info->inner + 1) / 2;
    size_t i = begin;

    for (; i < end && i < n_small; i++) {
        uint32_t known = check->small_facts[i];

        if (known != 0 && (known & VXD_SVDAG_SMALL_PARENT) == 0) {
            no_parent(check, 2 * i + ((known & VXD_SVDAG_SMALL_IS_ODD) != 0 ? 1 : 0));
        }
    }
    for (i = begin > check->first_fact ? begin : check->first_fact; i < end; i++) {
        uint32_t known = check->facts[i - check->first_fact];

        if (known != 0 && (known & HAS_PARENT) == 0) {
            no_parent(check, 2 * i + ((known & IS_ODD) != 0 ? 1 : 0));
        }
    }
}

static void check_roots(struct vxd_svdag_checking *check, const uint32_t *roots,
                        size_t n_roots)
{
    int depth = check->items->view.depth;

    for (size_t i = 0; i < n_roots && !vxd_svdag_check_has_failed(check); i++) {
        bool is_there = vxd_svdag_is_node(roots[i]) && roots[i] < check->info->n_words &&
                        vxd_svdag_image_kind(check->info, roots[i]) == VXD_SVDAG_INNER;
        uint32_t known = is_there ? refer_to_inner(check, roots[i]) : 0;
        bool is_good = known != 0
                           ? (known & HAS_HEIGHTS) != 0
                                 ? (known & COUNT_MASK) >> depth & 1u
                                 : (int)(known >> COUNT_BITS & HEIGHT_MASK) == depth
                           : !vxd_svdag_is_node(roots[i]) &&
                                 (roots[i] == VXD_SVDAG_EMPTY ||
                                  vxd_svdag_checking_is_value(check, roots[i]));

        if (!is_good) {
            (void)vxd_svdag_checking_broken(check, VXD_SVDAG_INNER, roots[i],
                                            "it is not a root");
        }
    }
}

/* ----------------------------------------------------------------------------------------- */

static enum vxd_status check_info(const struct vxd_svdag_image_info *info,
                                  struct vxd_err *err)
{
    const struct vxd_svdag_format *format = &info->format;

    if (format->depth < VXD_SVDAG_MIN_DEPTH || format->depth > VXD_SVDAG_MAX_DEPTH ||
        (format->material_bits != 0 && format->material_bits != 4 &&
         format->material_bits != 8 && format->material_bits != 16)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                        "depth %d with %d bits is not a format of scenes", format->depth,
                        format->material_bits);
    }
    if (info->n_words < 1 || info->n_words > VXD_SVDAG_UNIFORM || info->leaves < 1 ||
        info->inner < info->leaves || info->n_words < info->inner ||
        (format->material_bits < 8 && info->leaves != 1)) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL,
                        "the sections of an image of %llu words begin at %llu and %llu",
                        (unsigned long long)info->n_words,
                        (unsigned long long)info->leaves,
                        (unsigned long long)info->inner);
    }
    return VXD_OK;
}

static enum vxd_status open_check(struct vxd_svdag_checking *check,
                                  struct vxd_context *context, struct vxd_err *err)
{
    const struct vxd_svdag_image_info *info = check->info;
    struct vxd_svdag_image_items *items = check->items;
    uint64_t n_blocks = info->n_words / VXD_SVDAG_CHECK_WORDS + 1;
    uint64_t n_small = (info->inner + 1) / 2;
    size_t n_bytes = 0;
    size_t n_fact_bytes = 0;
    size_t at[4];
    size_t facts_at[2];
    enum vxd_status status = VXD_OK;

    check->n_chunks = (info->n_words + CHUNK_WORDS - 1) / CHUNK_WORDS;
    check->first_fact = info->inner / 2;
    if (!vxd_layout_add(&n_fact_bytes, n_small, sizeof *check->small_facts,
                        &facts_at[0]) ||
        !vxd_layout_add(&n_fact_bytes,
                        check->n_chunks * CHUNK_WORDS / 2 - check->first_fact,
                        sizeof *check->facts, &facts_at[1]) ||
        !vxd_layout_add(&n_bytes, n_blocks, sizeof *check->most, &at[0]) ||
        !vxd_layout_add(&n_bytes, check->n_chunks, sizeof *check->pads, &at[1]) ||
        !vxd_layout_add(&n_bytes, check->n_chunks, sizeof *check->first, &at[2]) ||
        !vxd_layout_add(&n_bytes, check->n_chunks * VXD_SVDAG_N_KINDS,
                        sizeof *check->counts, &at[3])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an image");
    }
    items->view.depth = info->format.depth;
    items->view.value_bits = vxd_svdag_value_bits(&info->format);
    items->view.free_value = vxd_svdag_free_value(&info->format);
    items->chunks = calloc(check->n_chunks, sizeof *items->chunks);
    if (items->chunks == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for an image");
    }
    for (uint64_t i = 0; i < check->n_chunks; i++) {
        items->chunks[i] = check->words + i * CHUNK_WORDS;
    }
    items->view.chunks = items->chunks;
    VXD_TRY(vxd_host_alloc(context,
                           check->n_chunks * VXD_SVDAG_PAGE_MARKS * sizeof *check->marks,
                           &items->marks, err));
    VXD_TRY(vxd_host_alloc(context, n_fact_bytes, &items->spare, err));
    VXD_TRY(vxd_host_alloc(context, n_bytes, &check->sides, err));
    check->marks = items->marks.ptr;
    check->small_facts = (void *)((char *)items->spare.ptr + facts_at[0]);
    check->facts = (void *)((char *)items->spare.ptr + facts_at[1]);
    memset(check->sides.ptr, 0, n_bytes);
    check->most = (void *)((char *)check->sides.ptr + at[0]);
    check->pads = (void *)((char *)check->sides.ptr + at[1]);
    check->first = (void *)((char *)check->sides.ptr + at[2]);
    check->counts = (void *)((char *)check->sides.ptr + at[3]);
out:
    return status;
}

static void count_items(struct vxd_svdag_checking *check)
{
    for (uint64_t i = 0; i < check->n_chunks; i++) {
        const uint64_t *counts = check->counts + i * VXD_SVDAG_N_KINDS;

        for (int kind = 0; kind < VXD_SVDAG_N_KINDS; kind++) {
            check->items->n_items[kind] += counts[kind];
        }
    }
}

enum vxd_status vxd_svdag_image_items_open(struct vxd_context *context,
                                           const struct vxd_svdag_image_info *info,
                                           const uint32_t *words, const uint32_t *roots,
                                           size_t n_roots,
                                           struct vxd_svdag_image_items *out,
                                           struct vxd_err *err)
{
    struct vxd_svdag_checking check = {.info = info, .words = words, .items = out};
    struct vxd_pool *pool = context->pool;
    enum vxd_status status;

    *out = (struct vxd_svdag_image_items){0};
    check.has_failed = false;
    (void)pthread_mutex_init(&check.mutex, NULL);
    VXD_TRY(check_info(info, err));
    if (words[0] != 0) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "word 0 is not 0");
        goto out;
    }
    VXD_TRY(open_check(&check, context, err));
    vxd_parallel_for(pool, check.n_chunks, 1, chunk_body, &check);
    if (!vxd_svdag_check_has_failed(&check) && check_pads(&check)) {
        count_items(&check);
        check_blocks(&check, pool);
        check_roots(&check, roots, n_roots);
    }
    if (!vxd_svdag_check_has_failed(&check)) {
        vxd_parallel_for(pool, check.n_chunks * CHUNK_WORDS / 2, 65536, parent_body,
                         &check);
    }
    if (vxd_svdag_check_has_failed(&check)) {
        status = VXD_DATA_LOSS;
        if (err != NULL) {
            *err = check.err;
        }
    }
out:
    vxd_host_free(context, &check.sides);
    (void)pthread_mutex_destroy(&check.mutex);
    return status;
}

void vxd_svdag_image_items_close(struct vxd_context *context,
                                 struct vxd_svdag_image_items *items)
{
    vxd_host_free(context, &items->marks);
    vxd_host_free(context, &items->spare);
    free(items->chunks);
    items->chunks = NULL;
}

enum vxd_status vxd_svdag_image_check(struct vxd_context *context,
                                      const struct vxd_svdag_image_info *info,
                                      const uint32_t *words, const uint32_t *roots,
                                      size_t n_roots, struct vxd_err *err)
{
    struct vxd_svdag_image_items items;
    enum vxd_status status =
        vxd_svdag_image_items_open(context, info, words, roots, n_roots, &items, err);

    vxd_svdag_image_items_close(context, &items);
    return status;
}
