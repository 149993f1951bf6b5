// SPDX-License-Identifier: Apache-2.0
/* The fan of a pass whose editor tells of all parts of every cube (Editor::TELLS_ALL): the cubes
 * from the root down as long as those of a height are few, and the edit sets no part of them as a
 * whole. A ball that is small has one to eight of each height. One warp finds them, height by
 * height without a barrier; then all are opened at once, a lane each.
 *
 * On the way up, where each cube of the fan is above a node that was not there before, its own
 * cannot have been there either: addresses are taken for all, and they are stored at once too. No
 * two of them may be equal. The lowest ones are compared; those above have an address below them
 * that no other one has. */
#ifndef VXD_GPU_DAG_FAN_CUDA_H
#define VXD_GPU_DAG_FAN_CUDA_H

#include "gpu/dag/batch_cuda.h"
#include "gpu/dag/stage_cuda.h"

/* Children of a cube that its editor goes into, a bit each: the open ones that are not yet what they
 * would become. */
VXD_DAG_DEVICE uint32_t vxd_dag_fan_open(const uint32_t olds[8],
                                         const struct vxd_dag_told *told)
{
    uint32_t open = told->open;

#pragma unroll
    for (int octant = 0; octant < 8; octant++) {
        open &= olds[octant] == told->uniform ? ~(1u << octant) : UINT32_MAX;
    }
    return open;
}

/* By a lane of the first warp: rows of open children of its cube, from `row` of the pass on, which
 * are those of the block from `own` on too. */
template <class Editor>
VXD_DAG_DEVICE void
vxd_dag_fan_put(const struct vxd_dag_pass *pass, struct vxd_dag_desk<Editor> *desk,
                const struct vxd_dag_cube *cube, const uint32_t olds[8], uint32_t open,
                uint32_t row, uint32_t own)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    row_t *rows = (row_t *)pass->cubes;

#pragma unroll
    for (int octant = 0; octant < 8; octant++) {
        if ((open >> octant & 1) != 0) {
            const struct vxd_dag_cube child = vxd_dag_cube_child(cube, octant);
            const uint64_t place = vxd_dag_place_of(&child);

            desk->rows[own].place = place;
            desk->rows[own].ref = olds[octant];
            rows[row].place = place;
            rows[row].ref = olds[octant];
            row++;
            own++;
        }
    }
}

/* By all lanes of the first block's first warp: the fan's rows, and those of the height below it. */
template <class Editor>
VXD_DAG_DEVICE void vxd_dag_put_fan(const struct vxd_dag_pass *pass, const Editor &editor,
                                    struct vxd_dag_desk<Editor> *desk)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    row_t *rows = (row_t *)pass->cubes;
    const uint32_t lane = vxd_dag_lane();
    int height = pass->view.depth;
    uint32_t begin = 0;
    uint32_t n = 1;

    if (lane == 0) {
        const uint32_t root = pass->progress->root;

        desk->rows[0].place = 0;
        desk->rows[0].ref = root;
        editor.begin(&pass->view, root, &rows[0].state);
        rows[0].place = 0;
        rows[0].ref = root;
        pass->state->n_cubes[height] = 1;
    }
    __syncwarp();
    while (height > vxd_dag_sizes<Editor>::ROW_HEIGHT && n > 0 && n <= 32 &&
           begin + n <= VXD_DAG_FAN_ROWS) {
        const row_t *row = &desk->rows[lane < n ? lane : 0];
        const struct vxd_dag_cube cube = vxd_dag_cube_at(row->place, height);
        const uint32_t ref = row->ref;
        struct vxd_dag_told told = {0, 0, VXD_DAG_EMPTY};
        uint32_t olds[8];
        uint32_t open;
        uint32_t before;
        uint32_t total;

        /* What is loaded comes while the editor tells. */
        if (lane < n && vxd_dag_is_node(ref)) {
            vxd_dag_prefetch(vxd_dag_words(&pass->view, ref));
        }
        if (lane < n) {
            (void)editor.tell(&cube, &row->state, &told);
        }
        if (__any_sync(UINT32_MAX, told.set != 0)) {
            break;
        }
        vxd_dag_below_all(&pass->view, ref, olds);
        open = vxd_dag_fan_open(olds, &told);
        before = vxd_dag_sum_before((uint32_t)__popc(open), &total);
        if (begin + n + total > pass->cubes_capacity) {
            break;
        }
        if (lane < n) {
            desk->fan.heights[begin + lane] = (uint8_t)height;
            desk->fan.below[begin + lane] = (uint16_t)(begin + n + before);
        }
        __syncwarp();
        vxd_dag_fan_put(pass, desk, &cube, olds, open, begin + n + before, before);
        begin += n;
        n = total;
        height--;
        if (lane == 0) {
            pass->state->n_cubes[height] = n;
        }
        __syncwarp();
    }
    if (lane == 0) {
        desk->path = {begin, height, n};
    }
}

/* The stage that opens a fan; the rows of the height below it too where they are few. */
VXD_DAG_DEVICE void vxd_dag_fan_stage(const struct vxd_dag_path *path,
                                      struct vxd_dag_stage *stage)
{
    if (stage->kind == VXD_DAG_STAGE_PATH) {
        stage->height = path->height;
        if (path->height > stage->row_height && path->n_cubes <= VXD_DAG_FEW_ROWS) {
            stage->n_cubes += path->n_cubes;
        }
    }
}

/* Up ---------------------------------------------------------------------------------------- */

/* The header of a node of this height that tells of what it has below. */
VXD_DAG_DEVICE uint32_t vxd_dag_header_at(uint32_t header, int height)
{
    return height > VXD_DAG_COUNT_HEIGHT ? header & VXD_DAG_HEADER_FLAGS : header;
}

/* By a thread: what is known of the node of row i of the fan, in the block's own: that it is new
 * where a child is. Rows of the stage's height have children that are closed, of which `place` is
 * made here: equal nodes have the same. Returns the marks of those children. */
template <class Editor>
VXD_DAG_DEVICE uint32_t vxd_dag_fan_gather(const struct vxd_dag_pass *pass,
                                           struct vxd_dag_desk<Editor> *desk, uint32_t i,
                                           const struct vxd_dag_stage *stage)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    const row_t *rows = (const row_t *)pass->cubes;
    const row_t *row = &rows[i];
    row_t *to = &desk->rows[i];
    const bool is_lowest = i >= stage->cubes;
    const uint32_t marks = row->marks;
    uint32_t header = row->words[0] & ~0xffu;
    uint32_t children = 0; /* their marks */
    uint32_t n_words = 1;
    uint64_t alike = 0;

#pragma unroll
    for (int octant = 0; octant < 8; octant++) {
        uint32_t word = row->words[1 + octant];

        to->words[1 + octant] = word;
        if ((marks >> octant & 1) != 0 && is_lowest) {
            const row_t *child = &rows[word];

            header = vxd_dag_headers_join(header, child->words[0]);
            children |= child->marks;
            word = child->ref;
        }
        alike = (alike ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        /* A child that is a row of the fan has a node. */
        n_words += (marks >> octant & 1) != 0 && !is_lowest ? 1 : word != VXD_DAG_EMPTY;
    }
    to->words[0] = is_lowest ? vxd_dag_header_at(header, stage->height) : header;
    to->place = alike;
    to->ref = n_words;
    to->marks = (marks & VXD_DAG_MARK_ROWS) | (children & VXD_DAG_MARK_NEW);
    return children;
}

/* By all lanes of the first warp, once all is gathered: headers of the fan's rows above those of a
 * stage's height. False: of some it is not known that their nodes are new, or two may be equal. */
template <class Editor>
VXD_DAG_DEVICE bool vxd_dag_fan_join(const struct vxd_dag_pass *pass,
                                     struct vxd_dag_desk<Editor> *desk,
                                     const struct vxd_dag_stage *stage)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    const uint32_t lane = vxd_dag_lane();
    uint32_t begin = stage->cubes;
    uint32_t n = stage->n_cubes;
    const row_t *lowest = &desk->rows[begin + (lane < n ? lane : 0)];
    const uint32_t alike =
        __match_any_sync(UINT32_MAX, (unsigned long long)lowest->place) &
        __ballot_sync(UINT32_MAX, lane < n);
    bool is_sure = lane >= n || ((lowest->marks & VXD_DAG_MARK_NEW) != 0 &&
                                 (alike & (alike - 1)) == 0);

#pragma unroll 1
    for (int height = stage->height + 1; height <= pass->view.depth; height++) {
        row_t *row;

        n = __shfl_sync(UINT32_MAX, stage->n_closed, height);
        begin -= n;
        row = &desk->rows[begin + (lane < n ? lane : 0)];
        if (lane < n) {
            uint32_t marks = row->marks;
            uint32_t header = row->words[0];

#pragma unroll 1
            for (uint32_t rest = marks & VXD_DAG_MARK_ROWS; rest != 0; rest &= rest - 1) {
                const row_t *child = &desk->rows[row->words[__ffs((int)rest)]];

                header = vxd_dag_headers_join(header, child->words[0]);
                marks |= child->marks & VXD_DAG_MARK_NEW;
            }
            row->words[0] = vxd_dag_header_at(header, height);
            row->marks = marks;
            is_sure = is_sure && (marks & VXD_DAG_MARK_NEW) != 0;
        }
        __syncwarp();
    }
    return __all_sync(UINT32_MAX, is_sure);
}

/* By all lanes of a warp: takes addresses for the nodes of the warp's rows of the fan's first n_rows,
 * all of which are new. False: there is no room. */
template <class Store, class Editor>
VXD_DAG_DEVICE bool vxd_dag_fan_reserve(struct vxd_dag_worker<Store, Editor> *worker,
                                        uint32_t n_rows)
{
    typedef struct vxd_dag_row<typename Editor::state> row_t;
    const struct vxd_dag_pass *pass = worker->pass;
    const uint32_t size = vxd_dag_share(n_rows);
    const uint32_t i = threadIdx.x / 32 * size + vxd_dag_lane();
    const bool is_there = vxd_dag_lane() < size && i < n_rows;
    const row_t *own = &worker->desk->rows[is_there ? i : 0];
    const uint32_t n_words = is_there ? own->ref : 0;
    uint32_t ref;
    const bool has_room = vxd_dag_take_room(pass, &worker->board->n_taken, n_words, &ref);

    if (is_there) {
        row_t *row = (row_t *)pass->cubes + i;

        row->words[0] = own->words[0];
        row->ref = ref;
        row->marks |= VXD_DAG_MARK_CHANGED;
        worker->spare = {ref, (int)n_words};
    }
    __syncwarp();
    return has_room;
}

/* By all threads of the first block, alone, before a stage that closes rows of the fan: the stage
 * that comes instead, where nothing changed, or all nodes of the fan's rows from there on up are
 * new. Else that stage goes up to the root where nothing is new yet, and it is asked again after
 * its height where something is. */
template <class Store, class Editor>
VXD_DAG_DEVICE void vxd_dag_begin_fan_up(struct vxd_dag_worker<Store, Editor> *worker,
                                         struct vxd_dag_stage *stage)
{
    const uint32_t n_rows = stage->cubes + stage->n_cubes;
    const uint32_t marks =
        threadIdx.x < n_rows
            ? vxd_dag_fan_gather(worker->pass, worker->desk, threadIdx.x, stage)
            : 0;
    bool is_sure = true;
    bool has_room = true;

    if (__syncthreads_or((marks & VXD_DAG_MARK_CHANGED) != 0) == 0) {
        stage->kind = VXD_DAG_STAGE_END;
        return;
    }
    if (!Store::RESERVES || __syncthreads_or((marks & VXD_DAG_MARK_NEW) != 0) == 0) {
        stage->top = worker->pass->view.depth;
        return;
    }
    if constexpr (Store::RESERVES) {
        if (threadIdx.x < 32) {
            is_sure = vxd_dag_fan_join(worker->pass, worker->desk, stage);
        }
        if (__syncthreads_or(!is_sure) != 0) {
            return;
        }
        has_room = vxd_dag_fan_reserve(worker, n_rows);
        stage->kind = __syncthreads_or(!has_room) != 0 ? VXD_DAG_STAGE_END
                                                       : VXD_DAG_STAGE_CLOSE_PATH;
        stage->height = worker->pass->view.depth;
        stage->cubes = 0;
        stage->n_cubes = n_rows;
    }
}

#endif
