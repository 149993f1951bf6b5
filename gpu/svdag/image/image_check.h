// SPDX-License-Identifier: Apache-2.0
/* An image that was checked, for those who then read it. */
#ifndef VXD_GPU_SVDAG_IMAGE_IMAGE_CHECK_H
#define VXD_GPU_SVDAG_IMAGE_IMAGE_CHECK_H

#include "gpu/svdag/image/image.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/collect/collect_math.h"

/* How many items there are, and where each begins. */
struct vxd_svdag_image_items {
    struct vxd_svdag_view view; /* of the words */
    const uint32_t **chunks;    /* the view's */
    struct vxd_buffer
        marks; /* host: struct vxd_svdag_mark of each 32 words; no numbers */
    struct vxd_buffer spare; /* host: of the check, for whoever needs memory next */
    uint64_t n_items[VXD_SVDAG_N_KINDS];
};

/* vxd_svdag_image_check, of which something stays. The caller closes it, whatever came. */
enum vxd_status vxd_svdag_image_items_open(struct vxd_context *context,
                                           const struct vxd_svdag_image_info *info,
                                           const uint32_t *words, const uint32_t *roots,
                                           size_t n_roots,
                                           struct vxd_svdag_image_items *out,
                                           struct vxd_err *err);
void vxd_svdag_image_items_close(struct vxd_context *context,
                                 struct vxd_svdag_image_items *items);

enum {
    VXD_SVDAG_CHECK_WORDS = 4096 /* of a block, which one thread takes */
};

/* What is told of a leaf or a block, which has two words at least, so that no two share an entry:
 * the occupied voxels of a leaf, from bit 0 on, and these; never 0. Most references are to leaves,
 * anywhere among them: 16 bits keep more of them in the caches. */
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

/* A check that goes on; the words are checked chunk by chunk by themselves (image_words.c), then
 * with what they refer to (image_check.c). */
struct vxd_svdag_checking {
    const struct vxd_svdag_image_info *info;
    const uint32_t *words;
    struct vxd_svdag_image_items *items;
    struct vxd_svdag_mark *marks;
    uint64_t n_chunks;
    /* In items->spare, by half the address, 0 = no item begins there: */
    uint16_t *small_facts; /* of leaves and blocks */
    uint32_t *facts;       /* of inner nodes, from first_tell on */
    uint64_t first_fact;
    struct vxd_buffer sides; /* host: what follows */
    uint32_t *most;          /* a block: the highest address that its items refer to */
    uint32_t *pads;          /* a chunk: words left free at its end, */
    uint32_t *first;         /* and of its first item */
    uint64_t *counts;        /* a chunk: items by kind */
    uint32_t block;          /* where a run of blocks begins */
    bool has_failed;         /* written with the mutex held, read without */
    pthread_mutex_t mutex;
    struct vxd_err err;
};

static inline bool vxd_svdag_check_has_failed(const struct vxd_svdag_checking *check)
{
    return __atomic_load_n(&check->has_failed, __ATOMIC_RELAXED);
}

/* image_words.c. Tells, once, which rule is broken where; gives false. Any thread. */
bool vxd_svdag_checking_broken(struct vxd_svdag_checking *check, enum vxd_svdag_kind kind,
                               uint64_t at, const char *rule);
/* Goes over the items of a chunk: marks where they begin, counts them, and checks what their own
 * words tell. Other chunks may go on beside it. */
bool vxd_svdag_checking_chunk(struct vxd_svdag_checking *check, uint64_t chunk);

/* Whether a uniform reference is of a value that the format has. */
static inline bool vxd_svdag_checking_is_value(const struct vxd_svdag_checking *check,
                                               uint32_t ref)
{
    return vxd_svdag_uniform_value(ref) >> check->items->view.value_bits == 0;
}

/* What the word at an address is part of. */
static inline enum vxd_svdag_kind
vxd_svdag_image_kind(const struct vxd_svdag_image_info *info, uint64_t at)
{
    return at < info->leaves  ? VXD_SVDAG_BLOCK
           : at < info->inner ? VXD_SVDAG_LEAF
                              : VXD_SVDAG_INNER;
}

/* arena_adopt_cpu.c. Takes a checked image into an arena that has nothing: words where they are,
 * an index made in one go. *is_taken is false where an item is in it twice, or where far more
 * items than by chance are of one shard.
 *
 * inout   items    its spare memory is overwritten
 *         memory   the words', of vxd_svdag_image_alloc: the arena's own and emptied where the image
 *                  is taken and the arena had no chunk. Else, and with NULL, the words are copied
 * errors  RESOURCE_EXHAUSTED; then too, as where it is not taken, the arena has no node */
enum vxd_status vxd_svdag_arena_adopt(struct vxd_svdag *svdag,
                                      const struct vxd_svdag_image_info *info,
                                      struct vxd_svdag_image_items *items,
                                      struct vxd_buffer *memory, bool *is_taken,
                                      struct vxd_err *err);
/* Whether it can: nothing was ever stored in it. */
bool vxd_svdag_arena_is_new(const struct vxd_svdag *svdag);

#endif
