// SPDX-License-Identifier: Apache-2.0
/* The path of a pass whose editor says where it edits (Editor::HAS_BOUNDS; a copy does): the cubes
 * from the root down to the smallest one that holds all of it, one of each height. They are opened
 * at once, a lane each, as no child of theirs is open but the next one. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_PATH_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_PATH_CUDA_H

#include "gpu/svdag/edit_kernel/batch_cuda.h"
#include "gpu/svdag/edit_kernel/stage_cuda.h"

/* The height of the smallest cube that holds what the editor edits: that of rows at least. */
template <class Editor>
VXD_SVDAG_DEVICE int vxd_svdag_path_end(const Editor &editor, int depth,
                                        struct vxd_svdag_cube *end)
{
    uint32_t low[3];
    uint32_t high[3];
    int height = depth;

    if (editor.bounds(depth, low, high)) {
        const uint32_t differ =
            (low[0] ^ high[0]) | (low[1] ^ high[1]) | (low[2] ^ high[2]);

        height = 32 - __clz((int)differ);
        height = height < vxd_svdag_sizes<Editor>::SUBTREE_HEIGHT
                     ? vxd_svdag_sizes<Editor>::SUBTREE_HEIGHT
                     : height;
    }
    end->height = height;
    end->x = height < depth ? low[0] >> height << height : 0;
    end->y = height < depth ? low[1] >> height << height : 0;
    end->z = height < depth ? low[2] >> height << height : 0;
    return height;
}

/* Octant of the child of a cube of this height that a cube below is in. */
VXD_SVDAG_DEVICE int vxd_svdag_path_octant(const struct vxd_svdag_cube *end, int height)
{
    return (int)((end->x >> (height - 1) & 1) << 2 | (end->y >> (height - 1) & 1) << 1 |
                 (end->z >> (height - 1) & 1));
}

/* By one thread: rows of the path, from the root's on; which may end before, where it is known what
 * becomes of the next cube. The last one is not opened. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_path
vxd_svdag_put_path(const struct vxd_svdag_kernel_args *args, const Editor &editor,
                   const struct vxd_svdag_cube *end)
{
    typedef struct vxd_svdag_frontier_entry<typename Editor::state> entry_t;
    entry_t *entry = (entry_t *)args->entries;
    uint32_t ref = args->progress->root;
    int height = args->view.depth;

    editor.begin(&args->view, ref, &entry->state);
    for (;; height--, entry++) {
        const struct vxd_svdag_cube cube = {end->x >> height << height,
                                            end->y >> height << height,
                                            end->z >> height << height, height};

        entry->place = vxd_svdag_place_of(&cube);
        entry->marks = 0;
        entry->ref = ref;
        args->state->n_entries[height] = 1;
        if (args->entry_weights != NULL) {
            args->entry_weights[args->view.depth - height] = 1;
        }
        if (height > end->height) {
            const int octant = vxd_svdag_path_octant(end, height);
            const struct vxd_svdag_cube child = vxd_svdag_cube_child(&cube, octant);
            uint32_t uniform;

            ref = vxd_svdag_child_ref(&args->view, ref, octant);
            editor.child(&cube, &entry->state, octant, &entry[1].state);
            if (editor.visit(&args->view, &child, ref, &entry[1].state, &uniform) ==
                VXD_SVDAG_DESCEND) {
                continue;
            }
        }
        return {(uint32_t)(args->view.depth - height), height, 1, 0};
    }
}

#endif
