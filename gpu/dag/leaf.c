// SPDX-License-Identifier: Apache-2.0
/* Leaves between their stored form and 64 voxels apart. */
#include <assert.h>
#include <string.h>

#include "gpu/dag/internal.h"

void vxd_dag_leaf_read(const struct vxd_dag_view *view, uint32_t ref,
                       struct vxd_dag_leaf *leaf)
{
    struct vxd_dag_item item;
    int bits = view->value_bits;
    int rank = 0;

    if (!vxd_dag_is_node(ref)) {
        uint16_t value = (uint16_t)vxd_dag_uniform_value(ref);

        leaf->set = ref == VXD_DAG_EMPTY ? 0 : UINT64_MAX;
        leaf->free =
            ref != VXD_DAG_EMPTY && (int)value == view->free_value ? leaf->set : 0;
        for (int i = 0; i < 64 && leaf->set != 0 && bits > 1; i++) {
            leaf->values[i] = value;
        }
        return;
    }
    item = vxd_dag_leaf_item(view, ref);
    leaf->set = vxd_dag_leaf_mask(item.words);
    leaf->free = leaf->set & ~vxd_dag_item_occupied(view, &item);
    if (bits <= 1) {
        return;
    }
    for (uint64_t rest = leaf->set; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);

        leaf->values[bit] = (uint16_t)vxd_dag_item_ranked_value(view, &item, rank++);
    }
}

/* The values of the set voxels, FREE ones among them, packed from `words` on; says whether
 * all are that of the first. */
static bool pack_values(const struct vxd_dag_view *view, const struct vxd_dag_leaf *leaf,
                        uint32_t *words, uint32_t *first)
{
    int bits = view->value_bits;
    int n = 0;
    uint32_t differ = 0;

    for (uint64_t rest = leaf->set; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);
        uint32_t value =
            (leaf->free >> bit & 1) != 0 ? (uint32_t)view->free_value : leaf->values[bit];

        assert(value < 1u << bits);
        if (n == 0) {
            *first = value;
        }
        differ |= value ^ *first;
        words[n * bits / 32] |= value << (n * bits % 32);
        n++;
    }
    return differ == 0;
}

/* Values in a block beside the leaf, or in the reference where all are equal. */
static enum vxd_status put_values(struct vxd_dag_writer *writer,
                                  const struct vxd_dag_leaf *leaf, uint32_t *ref,
                                  struct vxd_err *err)
{
    const struct vxd_dag_view *view = &writer->dag->view;
    uint32_t words[VXD_DAG_MAX_ITEM_WORDS] = {0};
    uint32_t first = 0;
    int n = vxd_dag_popc(leaf->set);

    words[0] = (uint32_t)n;
    if (pack_values(view, leaf, words + 1, &first)) {
        *ref = VXD_DAG_UNIFORM | first;
        return VXD_OK;
    }
    return vxd_dag_put(writer, VXD_DAG_BLOCK, 0, words,
                       vxd_dag_block_words(view->value_bits, n), ref, err);
}

enum vxd_status vxd_dag_leaf_put(struct vxd_dag_writer *writer,
                                 const struct vxd_dag_leaf *leaf, uint32_t *ref,
                                 struct vxd_err *err)
{
    const struct vxd_dag_view *view = &writer->dag->view;
    uint32_t words[VXD_DAG_MAX_ITEM_WORDS] = {(uint32_t)leaf->set,
                                              (uint32_t)(leaf->set >> 32)};
    uint64_t free_mask = leaf->free & leaf->set;
    uint32_t value = 0;
    bool equal = true;

    if (leaf->set == 0) {
        *ref = VXD_DAG_EMPTY;
        return VXD_OK;
    }
    if (view->value_bits == 1) {
        words[2] = (uint32_t)free_mask;
        words[3] = (uint32_t)(free_mask >> 32);
        equal = free_mask == 0 || free_mask == leaf->set;
        value = free_mask != 0 ? 1 : 0;
    } else if (view->value_bits == 4) {
        equal = pack_values(view, leaf, words + 2, &value);
    } else if (view->value_bits > 4) {
        enum vxd_status status = put_values(writer, leaf, &words[2], err);

        if (status != VXD_OK) {
            return status;
        }
        equal = vxd_dag_is_uniform(words[2]);
        value = vxd_dag_uniform_value(words[2]);
    }
    if (equal && leaf->set == UINT64_MAX) {
        *ref = VXD_DAG_UNIFORM | value;
        return VXD_OK;
    }
    return vxd_dag_put(writer, VXD_DAG_LEAF, VXD_DAG_LEAF_HEIGHT, words,
                       vxd_dag_leaf_words(view->value_bits, leaf->set), ref, err);
}
