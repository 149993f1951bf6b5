// SPDX-License-Identifier: Apache-2.0
/* A checked image, as its readers see it. */
#ifndef VXD_GPU_SVDAG_IMAGE_IMAGE_CHECK_H
#define VXD_GPU_SVDAG_IMAGE_IMAGE_CHECK_H

#include "gpu/svdag/image/image.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/collect/collect_math.h"

/* The items of an image: their number, and where each begins. */
struct vxd_svdag_image_items {
    struct vxd_svdag_view view; /* of the words */
    const uint32_t **chunks;    /* chunks of the view */
    struct vxd_buffer
        marks; /* host: a struct vxd_svdag_mark for each 32 words; bases are not set */
    struct vxd_buffer
        spare; /* host: memory of the check, free for other use afterwards */
    uint64_t n_items[VXD_SVDAG_N_KINDS];
};

/* vxd_svdag_image_check, whose results are kept. The caller closes *out, also after an
 * error. */
enum vxd_status vxd_svdag_image_items_open(struct vxd_context *context,
                                           const struct vxd_svdag_image_info *info,
                                           const uint32_t *words, const uint32_t *roots,
                                           size_t n_roots,
                                           struct vxd_svdag_image_items *out,
                                           struct vxd_err *err);
void vxd_svdag_image_items_close(struct vxd_context *context,
                                 struct vxd_svdag_image_items *items);

enum {
    VXD_SVDAG_CHECK_WORDS = 4096 /* words of a block, which one thread checks */
};

/* Facts of a leaf or a block, never 0: the number of occupied voxels of a leaf in the low
 * bits, and these flags. Such items have at least two words, so no two share an entry.
 * Most references lead to leaves, in no order: with 16 bits each more of them fit the
 * caches. */
#define VXD_SVDAG_SMALL_PARENT 0x8000u
#define VXD_SVDAG_SMALL_IS_ODD 0x4000u /* it begins at an odd address */
#define VXD_SVDAG_SMALL_FREE 0x2000u
#define VXD_SVDAG_SMALL_OCCUPIED 0x1000u
#define VXD_SVDAG_SMALL_BLOCK 0x0800u
#define VXD_SVDAG_SMALL_COUNT 0x007fu

static inline uint16_t vxd_svdag_small_odd(uint32_t at)
{
    return (at & 1u) != 0 ? VXD_SVDAG_SMALL_IS_ODD : 0;
}

/* A running check. The words are checked chunk by chunk alone (image_words.c), then with
 * the items that they refer to (image_check.c). */
struct vxd_svdag_checking {
    const struct vxd_svdag_image_info *info;
    const uint32_t *words;
    struct vxd_svdag_image_items *items;
    struct vxd_svdag_mark *marks;
    uint64_t n_chunks;
    /* In items->spare, indexed by half the address; 0 = no item begins there: */
    uint16_t *small_facts; /* of leaves and blocks */
    uint32_t *facts;       /* of inner nodes, from first_fact on */
    uint64_t first_fact;
    struct vxd_buffer sides; /* host: memory of the following arrays */
    uint32_t *most;          /* by block: the highest address that its items refer to */
    uint32_t *pads;          /* by chunk: free words at its end */
    uint32_t *first;         /* by chunk: length of its first item */
    uint64_t *counts;        /* by chunk: number of items by kind */
    uint32_t block;          /* where a run of blocks begins */
    bool has_failed;         /* written with the mutex held, read without */
    pthread_mutex_t mutex;
    struct vxd_err err;
};

static inline bool vxd_svdag_check_has_failed(const struct vxd_svdag_checking *check)
{
    return __atomic_load_n(&check->has_failed, __ATOMIC_RELAXED);
}

/* image_words.c. Records the first broken rule and its place; returns false. Any
 * thread. */
bool vxd_svdag_checking_broken(struct vxd_svdag_checking *check, enum vxd_svdag_kind kind,
                               uint64_t at, const char *rule);
/* Checks a chunk: marks where its items begin, counts them, and checks the rules on their
 * own words. Chunks may be checked at the same time. */
bool vxd_svdag_checking_chunk(struct vxd_svdag_checking *check, uint64_t chunk);

/* Whether the value of a uniform reference is valid in the format. */
static inline bool vxd_svdag_checking_is_value(const struct vxd_svdag_checking *check,
                                               uint32_t ref)
{
    return vxd_svdag_uniform_value(ref) >> check->items->view.value_bits == 0;
}

/* The kind of items in the section of an address. */
static inline enum vxd_svdag_kind
vxd_svdag_image_kind(const struct vxd_svdag_image_info *info, uint64_t at)
{
    return at < info->leaves  ? VXD_SVDAG_BLOCK
           : at < info->inner ? VXD_SVDAG_LEAF
                              : VXD_SVDAG_INNER;
}

/* image_adopt_cpu.c. Moves a checked image into an empty arena: the words keep their
 * addresses, and the index is built at once. *is_taken is false where an item occurs
 * twice, or where far more items than is likely by chance fall into one shard.
 *
 * inout   items    its spare memory is overwritten
 *         memory   of the words, from vxd_svdag_image_alloc: emptied and owned by the arena
 *                  where the image is taken and the arena had no chunk. Else, and with
 *                  NULL, the words are copied
 * errors  RESOURCE_EXHAUSTED; in this case, and where it is not taken, the arena has no node */
enum vxd_status vxd_svdag_arena_adopt(struct vxd_svdag *svdag,
                                      const struct vxd_svdag_image_info *info,
                                      struct vxd_svdag_image_items *items,
                                      struct vxd_buffer *memory, bool *is_taken,
                                      struct vxd_err *err);
/* Whether nothing was ever inserted into the arena. */
bool vxd_svdag_arena_is_new(const struct vxd_svdag *svdag);

#endif
