// SPDX-License-Identifier: Apache-2.0
/* An image that was checked, for those who then read it. */
#ifndef VXD_GPU_DAG_IMAGE_CHECK_H
#define VXD_GPU_DAG_IMAGE_CHECK_H

#include "gpu/dag/image.h"
#include "gpu/dag/internal.h"
#include "gpu/dag/transfer_math.h"

/* How many items there are, and where each begins. */
struct vxd_dag_image_items {
    struct vxd_dag_view view; /* of the words */
    const uint32_t **chunks;  /* the view's */
    struct vxd_buffer marks;  /* host: struct vxd_dag_mark of each 32 words */
    uint64_t n_items[VXD_DAG_N_KINDS];
    uint64_t n_item_words;
};

/* vxd_dag_image_check, of which something stays. The caller closes it, whatever came. */
enum vxd_status vxd_dag_image_items_open(struct vxd_context *context,
                                         const struct vxd_dag_image_info *info,
                                         const uint32_t *words, const uint32_t *roots,
                                         size_t n_roots, struct vxd_dag_image_items *out,
                                         struct vxd_err *err);
void vxd_dag_image_items_close(struct vxd_context *context,
                               struct vxd_dag_image_items *items);

/* What the word at an address is part of. */
static inline enum vxd_dag_kind vxd_dag_image_kind(const struct vxd_dag_image_info *info,
                                                   uint64_t at)
{
    return at < info->leaves  ? VXD_DAG_BLOCK
           : at < info->inner ? VXD_DAG_LEAF
                              : VXD_DAG_INNER;
}

/* arena_cpu.c. Takes a checked image into an arena that has nothing: words where they are, an
 * index made in one go. *is_taken is false where an item is in it twice.
 * errors  RESOURCE_EXHAUSTED; then too, as where it is not taken, the arena has no node */
enum vxd_status vxd_dag_arena_adopt(struct vxd_dag *dag,
                                    const struct vxd_dag_image_info *info,
                                    const struct vxd_dag_image_items *items,
                                    bool *is_taken, struct vxd_err *err);
/* Whether it can: nothing was ever stored in it. */
bool vxd_dag_arena_is_new(const struct vxd_dag *dag);

#endif
