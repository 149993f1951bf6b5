// SPDX-License-Identifier: Apache-2.0
/* The path of a pass whose editor says where it edits (Editor::HAS_BOUNDS; a copy does): the cubes from the root
 * down to the smallest one that holds all of it, one of each height. They are opened at once, a
 * lane each, as no child of theirs is open but the next one. On the way up, where the last of
 * them, or of all cubes that are the only ones of their heights, became a node that was not there
 * before, nodes of those above cannot have been there either: addresses are taken for all, and
 * they are stored at once too. */
#ifndef VXD_GPU_DAG_PATH_CUDA_H
#define VXD_GPU_DAG_PATH_CUDA_H

#include "gpu/dag/batch_cuda.h"
#include "gpu/dag/stage_cuda.h"

/* The height of the smallest cube that holds what the editor edits: that of rows at least. */
template <class Editor>
VXD_DAG_DEVICE int vxd_dag_path_end(const Editor &editor, int depth,
                                    struct vxd_dag_cube *end)
{
    uint32_t low[3];
    uint32_t high[3];
    int height = depth;

    if (editor.bounds(depth, low, high)) {
        const uint32_t differ =
            (low[0] ^ high[0]) | (low[1] ^ high[1]) | (low[2] ^ high[2]);

        height = 32 - __clz((int)differ);
        height = height < vxd_dag_sizes<Editor>::ROW_HEIGHT
                     ? vxd_dag_sizes<Editor>::ROW_HEIGHT
                     : height;
    }
    end->height = height;
    end->x = height < depth ? low[0] >> height << height : 0;
    end->y = height < depth ? low[1] >> height << height : 0;
    end->z = height < depth ? low[2] >> height << height : 0;
    return height;
}

/* Octant of the child of a cube of this height that a cube below is in. */
VXD_DAG_DEVICE int vxd_dag_path_octant(const struct vxd_dag_cube *end, int height)
{
    return (int)((end->x >> (height - 1) & 1) << 2 | (end->y >> (height - 1) & 1) << 1 |
                 (end->z >> (height - 1) & 1));
}

/* By one thread: rows of the path, from the root's on; which may end before, where it is known what
 * becomes of the next cube. The last one is not opened. */
template <class Editor>
VXD_DAG_DEVICE struct vxd_dag_path vxd_dag_put_path(const struct vxd_dag_pass *pass,
                                                    const Editor &editor,
                                                    const struct vxd_dag_cube *end)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    row_t *row = (row_t *)pass->cubes;
    uint32_t ref = pass->progress->root;
    int height = pass->view.depth;

    editor.begin(&pass->view, ref, &row->state);
    for (;; height--, row++) {
        const struct vxd_dag_cube cube = {end->x >> height << height,
                                          end->y >> height << height,
                                          end->z >> height << height, height};

        row->place = vxd_dag_place_of(&cube);
        row->marks = 0;
        row->ref = ref;
        pass->state->n_cubes[height] = 1;
        if (pass->cube_weights != NULL) {
            pass->cube_weights[pass->view.depth - height] = 1;
        }
        if (height > end->height) {
            const int octant = vxd_dag_path_octant(end, height);
            const struct vxd_dag_cube child = vxd_dag_cube_child(&cube, octant);
            uint32_t uniform;

            ref = vxd_dag_below(&pass->view, ref, octant);
            editor.child(&cube, &row->state, octant, &row[1].state);
            if (editor.visit(&pass->view, &child, ref, &row[1].state, &uniform) ==
                VXD_DAG_DESCEND) {
                continue;
            }
        }
        return {(uint32_t)(pass->view.depth - height), height, 1};
    }
}

/* By the first warp of the first block, alone: takes addresses for the nodes of the path's n_rows
 * rows, of which each has the next one as its only child that is new, and the headers of all.
 * False: there is no room. */
template <class Store, class Editor>
VXD_DAG_DEVICE bool vxd_dag_reserve_path(struct vxd_dag_worker<Store, Editor> *worker,
                                         uint32_t n_rows)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    const struct vxd_dag_pass *pass = worker->pass;
    row_t *rows = (row_t *)pass->cubes;
    const bool is_there = vxd_dag_lane() < n_rows;
    row_t *row = &rows[is_there ? vxd_dag_lane() : 0];
    const int height = pass->view.depth - (int)vxd_dag_lane();
    uint32_t header = vxd_dag_lane() <= n_rows ? rows[vxd_dag_lane()].words[0] : 0;
    uint32_t n_words = 0;
    uint32_t ref;
    bool has_room;

    if (is_there) {
        n_words = 2; /* the child's too, of which the word is a row's now */
#pragma unroll
        for (int i = 0; i < 8; i++) {
            n_words += (row->marks >> i & 1) == 0 && row->words[1 + i] != VXD_DAG_EMPTY;
        }
    }
    __syncwarp();
    has_room = vxd_dag_take_room(pass, &worker->board->n_taken, n_words, &ref);
    /* What a cube has all above it have. */
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
        const uint32_t below = __shfl_down_sync(UINT32_MAX, header, step);

        if (vxd_dag_lane() + (uint32_t)step < 32) {
            header = vxd_dag_headers_join(header, below);
        }
    }
    if (is_there) {
        row->words[0] = height <= VXD_DAG_COUNT_HEIGHT
                            ? header & ~0xffu
                            : header & VXD_DAG_HEADER_FLAGS & ~0xffu;
        row->ref = ref;
        row->marks |= VXD_DAG_MARK_CHANGED;
        worker->spare = {ref, (int)n_words};
    }
    __syncwarp();
    return has_room;
}

/* By all threads of the first block, alone, once the cube is closed above which there are n_rows,
 * one of each height: the stage that comes next, which is this one where its node was there before. */
template <class Store, class Editor>
VXD_DAG_DEVICE void vxd_dag_begin_path_up(struct vxd_dag_worker<Store, Editor> *worker,
                                          uint32_t n_rows, struct vxd_dag_stage *stage)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    const row_t *last = (const row_t *)worker->pass->cubes + n_rows;
    const uint32_t marks = vxd_dag_load_now(&last->marks);
    bool has_room = true;

    __syncthreads();
    if ((marks & VXD_DAG_MARK_CHANGED) == 0) {
        stage->kind = VXD_DAG_STAGE_END;
        return;
    }
    if constexpr (Store::RESERVES) {
        if ((marks & VXD_DAG_MARK_NEW) != 0) {
            if (threadIdx.x < 32) {
                has_room = vxd_dag_reserve_path(worker, n_rows);
            }
            stage->kind = __syncthreads_or(!has_room) != 0 ? VXD_DAG_STAGE_END
                                                           : VXD_DAG_STAGE_CLOSE_PATH;
            stage->height = worker->pass->view.depth;
            stage->cubes = 0;
            stage->n_cubes = n_rows;
        }
    }
}

#endif
