// SPDX-License-Identifier: Apache-2.0
/* Reading leaves, and inserting them. */
#include "gpu/svdag/store/store.h"

void vxd_svdag_leaf_read(const struct vxd_svdag_view *view, uint32_t ref,
                         uint16_t values[64], struct vxd_svdag_leaf *leaf)
{
    vxd_svdag_leaf_split(view, ref, values, leaf);
}

/* Inserts the block of a leaf's values; where all are equal *ref is the uniform
 * reference. */
static enum vxd_status put_values(struct vxd_svdag_writer *writer,
                                  const struct vxd_svdag_leaf *leaf, uint32_t *ref,
                                  struct vxd_err *err)
{
    const struct vxd_svdag_view *view = &writer->svdag->view;
    uint32_t words[VXD_SVDAG_MAX_ITEM_WORDS] = {0};
    uint32_t first = 0;
    int n = vxd_svdag_popc(leaf->set);

    words[0] = (uint32_t)n;
    if (vxd_svdag_leaf_pack(view, leaf, words + 1, &first)) {
        *ref = VXD_SVDAG_UNIFORM | first;
        return VXD_OK;
    }
    return vxd_svdag_put(writer, VXD_SVDAG_BLOCK, 0, words,
                         vxd_svdag_block_words(view->value_bits, n), ref, err);
}

enum vxd_status vxd_svdag_leaf_make(struct vxd_svdag_writer *writer,
                                    const struct vxd_svdag_leaf *leaf,
                                    uint32_t words[VXD_SVDAG_MAX_LEAF_WORDS],
                                    int *n_words, uint32_t *ref, struct vxd_err *err)
{
    const struct vxd_svdag_view *view = &writer->svdag->view;
    enum vxd_status status;

    *n_words = 0;
    *ref = VXD_SVDAG_EMPTY;
    if (leaf->set == 0) {
        return VXD_OK;
    }
    if (view->value_bits <= 4) {
        if (!vxd_svdag_leaf_compose(view, leaf, words, ref)) {
            return VXD_OK;
        }
    } else {
        words[0] = (uint32_t)leaf->set;
        words[1] = (uint32_t)(leaf->set >> 32);
        status = put_values(writer, leaf, &words[2], err);
        if (status != VXD_OK) {
            return status;
        }
        if (vxd_svdag_is_uniform(words[2]) && leaf->set == UINT64_MAX) {
            *ref = words[2];
            return VXD_OK;
        }
    }
    *n_words = vxd_svdag_leaf_words(view->value_bits, leaf->set);
    return VXD_OK;
}

enum vxd_status vxd_svdag_leaf_put(struct vxd_svdag_writer *writer,
                                   const struct vxd_svdag_leaf *leaf, uint32_t *ref,
                                   struct vxd_err *err)
{
    uint32_t words[VXD_SVDAG_MAX_LEAF_WORDS];
    int n_words;
    enum vxd_status status = vxd_svdag_leaf_make(writer, leaf, words, &n_words, ref, err);

    return status != VXD_OK || n_words == 0
               ? status
               : vxd_svdag_put(writer, VXD_SVDAG_LEAF, VXD_SVDAG_LEAF_HEIGHT, words,
                               n_words, ref, err);
}
