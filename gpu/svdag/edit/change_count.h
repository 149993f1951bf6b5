// SPDX-License-Identifier: Apache-2.0
/* How many voxels differ between two references, without a look at what both share. */
#ifndef VXD_GPU_SVDAG_EDIT_CHANGE_COUNT_H
#define VXD_GPU_SVDAG_EDIT_CHANGE_COUNT_H

#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/store/store.h"

enum {
    VXD_SVDAG_CHANGE_MEMO = 512
};

/* One thread's memory of pairs it compared: a DAG has more paths than nodes. Nodes never
 * change, so it holds as long as the store. It is empty where is_made is false; the pairs are made
 * when the first is looked for. */
struct vxd_svdag_change_pair {
    uint32_t from, to; /* equal ones are never looked for */
    int height;
    struct vxd_svdag_change change;
};
struct vxd_svdag_change_memo {
    bool is_made;
    struct vxd_svdag_change_pair pairs[VXD_SVDAG_CHANGE_MEMO];
};

/* Adds what changes where `from` becomes `to`, both of this height. */
void vxd_svdag_change_add(const struct vxd_svdag_view *view,
                          struct vxd_svdag_change_memo *memo, uint32_t from, uint32_t to,
                          int height, struct vxd_svdag_change *sum);

#endif
