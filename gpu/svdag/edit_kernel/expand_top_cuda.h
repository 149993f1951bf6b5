// SPDX-License-Identifier: Apache-2.0
/* The fan of a pass whose editor tells of all parts of every cube (Editor::TELLS_ALL): the cubes
 * from the root down as long as those of a height are few, and what changed in those that are set
 * as a whole is known at once. A ball that is small has one to eight of each height. The first
 * block finds them height by height, a thread for a child; headers that stay are read once all are
 * found, at once. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_TOP_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EXPAND_TOP_CUDA_H

#include "gpu/svdag/edit_kernel/batch_cuda.h"
#include "gpu/svdag/edit_kernel/stage_cuda.h"

/* What becomes of the child that a thread has, one of eight of its cube; by all lanes of a warp. */
struct vxd_svdag_fan_child {
    struct vxd_svdag_cube cube;
    uint32_t old;
    bool is_open;
    bool is_set;
};

/* A word of the node that each eight lanes look at, and its header: a word that may be the lane's
 * child does not wait for the header that tells which is. */
VXD_SVDAG_DEVICE void vxd_svdag_fan_load(const struct vxd_svdag_view *view, uint32_t ref,
                                         uint32_t *header, uint32_t *word)
{
    const uint32_t *chunk = view->chunks[ref >> VXD_SVDAG_CHUNK_BITS];
    const uint32_t at = ref & ((1u << VXD_SVDAG_CHUNK_BITS) - 1);
    const uint32_t own = at + 1 + threadIdx.x % 8;

    *header = chunk[at];
    *word = chunk[own < VXD_SVDAG_CHUNK_WORDS ? own : at];
}

template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_fan_child
vxd_svdag_fan_look(const struct vxd_svdag_pass *pass, const Editor &editor,
                   const struct vxd_svdag_fan *fan, uint32_t n, int height)
{
    const uint32_t i = threadIdx.x / 8;
    const uint32_t octant = threadIdx.x % 8;
    const uint32_t at = i < n ? i : 0;
    const struct vxd_svdag_cube cube = vxd_svdag_cube_at(fan->places[at], height);
    const uint32_t ref = fan->refs[at];
    const bool is_split = vxd_svdag_reads_split(&pass->view);
    struct vxd_svdag_fan_child child = {vxd_svdag_cube_child(&cube, (int)octant), ref,
                                        false, false};
    uint32_t header = 0;
    uint32_t word = VXD_SVDAG_EMPTY;
    enum vxd_svdag_relation relation;

    if (vxd_svdag_is_node(ref) && is_split) {
        child.old = vxd_svdag_below(&pass->view, ref, (int)octant);
    } else if (vxd_svdag_is_node(ref)) {
        vxd_svdag_fan_load(&pass->view, ref, &header, &word);
    }
    __syncwarp();
    /* It is told while that is loaded. */
    relation = editor.relation(&cube);
    word = __shfl_sync(
        UINT32_MAX, word,
        (int)((threadIdx.x & 24) + (uint32_t)__popc(header & ((1u << octant) - 1))));
    if (vxd_svdag_is_node(ref) && !is_split) {
        child.old = (header >> octant & 1) != 0 ? word : (uint32_t)VXD_SVDAG_EMPTY;
    }
    child.is_set = i < n && relation == VXD_SVDAG_INSIDE && child.old != editor.uniform;
    child.is_open = i < n && relation == VXD_SVDAG_PARTIAL && child.old != editor.uniform;
    return child;
}

/* By all lanes of a warp: counts what changes in children that are set; those of which it is not
 * known at once become pairs of the height below, counted in *n_pairs. */
VXD_SVDAG_DEVICE void vxd_svdag_fan_count(const struct vxd_svdag_pass *pass,
                                          struct vxd_svdag_board *board,
                                          const struct vxd_svdag_fan_child *child,
                                          uint32_t uniform, uint64_t *n_pairs)
{
    const struct vxd_svdag_pairs_to to = {n_pairs, 0};
    const struct vxd_svdag_pair pair = {child->is_set, child->cube.height, child->old,
                                        uniform, 1};
    struct vxd_svdag_change change = {0, 0, 0, 0};
    const bool is_open =
        child->is_set && !vxd_svdag_change_known(&pass->view, child->old, uniform,
                                                 child->cube.height, &change);

    __syncwarp();
    vxd_svdag_count_change(board, &change);
    vxd_svdag_put_pairs(pass, &to, is_open, &pair, NULL, NULL);
}

/* By all threads of the block: a height's row, and those of its open children from `below` on, of
 * which this thread's is the one of that number. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_fan_put(const struct vxd_svdag_pass *pass,
                                        struct vxd_svdag_fan *fan, uint32_t row,
                                        const struct vxd_svdag_fan_child *child,
                                        uint32_t uniform, uint32_t below, uint32_t number)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    row_t *rows = (row_t *)pass->cubes;

    rows[row].words[1 + threadIdx.x % 8] = child->is_open  ? below + number
                                           : child->is_set ? uniform
                                                           : child->old;
    if (child->is_open) {
        const uint64_t place = vxd_svdag_place_of(&child->cube);

        rows[below + number].place = place;
        rows[below + number].ref = child->old;
        if (number < VXD_SVDAG_FEW_ROWS) {
            fan->places[number] = place;
            fan->refs[number] = child->old;
        }
    }
}

/* By all threads of the block, a barrier after what each warp counted: how many there are in warps
 * before this one; of all in *total. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_fan_before(const struct vxd_svdag_fan *fan,
                                               uint32_t *total)
{
    const uint64_t counts = fan->n_open.of_all; /* a byte each; sums need more */
    const uint64_t bytes = UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t ones = UINT64_C(0x0001000100010001);
    const uint64_t before = counts & ((UINT64_C(1) << (threadIdx.x / 32 * 8)) - 1);

    *total = (uint32_t)(((counts & bytes) + (counts >> 8 & bytes)) * ones >> 48);
    return (uint32_t)(((before & bytes) + (before >> 8 & bytes)) * ones >> 48);
}

/* By all threads of the block: rows of the pass from the root's on; where they end. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_path
vxd_svdag_fan_down(const struct vxd_svdag_pass *pass, const Editor &editor,
                   struct vxd_svdag_board *board, struct vxd_svdag_fan *fan)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    row_t *rows = (row_t *)pass->cubes;
    const uint32_t lane = vxd_svdag_lane();
    const uint32_t i = threadIdx.x / 8;
    struct vxd_svdag_path path = {0, pass->view.depth, 1, 0};

    while (path.height > vxd_svdag_sizes<Editor>::ROW_HEIGHT && path.n_cubes > 0 &&
           path.n_cubes <= VXD_SVDAG_FEW_ROWS &&
           path.n_rows + path.n_cubes <= VXD_SVDAG_FAN_ROWS && path.n_pairs == 0) {
        const struct vxd_svdag_fan_child child =
            vxd_svdag_fan_look(pass, editor, fan, path.n_cubes, path.height);
        const uint32_t open = __ballot_sync(UINT32_MAX, child.is_open);
        const uint32_t set = __ballot_sync(UINT32_MAX, child.is_set);
        const uint32_t below = path.n_rows + path.n_cubes;
        uint32_t number;
        uint32_t n;
        bool has_set;

        if (lane == 0) {
            fan->n_open.of_warps[threadIdx.x / 32] = (uint8_t)__popc(open);
        }
        has_set = __syncthreads_or(child.is_set) != 0;
        number =
            vxd_svdag_fan_before(fan, &n) + (uint32_t)__popc(open & ((1u << lane) - 1));
        if (below + n > pass->cubes_capacity) {
            break;
        }
        if (has_set && pass->counts_changes) {
            vxd_svdag_fan_count(pass, board, &child, editor.uniform, &fan->n_pairs);
        }
        if (i < path.n_cubes) {
            const uint32_t row = path.n_rows + i;

            if (lane % 8 == 0) {
                rows[row].marks =
                    (open >> lane & VXD_SVDAG_MARK_ROWS) |
                    ((set >> lane & 0xffu) != 0 ? VXD_SVDAG_MARK_CHANGED : 0);
                fan->heights[row] = (uint8_t)path.height;
            }
            vxd_svdag_fan_put<Editor>(pass, fan, row, &child, editor.uniform, below,
                                      number);
        }
        __syncthreads();
        path = {below, path.height - 1, n, has_set ? (uint32_t)fan->n_pairs : 0};
        if (threadIdx.x == 0) {
            pass->state->n_cubes[path.height] = n;
            pass->state->n_pairs[path.height] = path.n_pairs;
        }
    }
    return path;
}

/* By all threads of the block: headers of rows of the fan, of children that are not open. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_fan_head(const struct vxd_svdag_pass *pass,
                                         const struct vxd_svdag_fan *fan, uint32_t n_rows)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    const uint32_t octant = threadIdx.x % 8;

#pragma unroll 1
    for (uint32_t i = threadIdx.x / 8; i - threadIdx.x / 8 < n_rows;
         i += blockDim.x / 8) {
        const uint32_t at = i < n_rows ? i : 0;
        row_t *row = (row_t *)pass->cubes + at;
        const int height = fan->heights[at];
        const uint32_t ref = row->words[1 + octant];
        struct vxd_svdag_part part = {0, 0};
        uint32_t header;

        if ((row->marks >> octant & 1) == 0) {
            part = vxd_svdag_is_node(ref)
                       ? vxd_svdag_part_told(vxd_svdag_words(&pass->view, ref)[0])
                       : vxd_svdag_part_even(&pass->view, ref, height - 1);
        }
        header = part.flags | part.n_occupied << 10;
        __syncwarp();
#pragma unroll
        for (int step = 1; step < 8; step *= 2) {
            header =
                vxd_svdag_headers_join(header, __shfl_xor_sync(UINT32_MAX, header, step));
        }
        if (i < n_rows && octant == 0) {
            row->words[0] = vxd_svdag_header_at(header, height);
        }
    }
}

/* By all threads of the first block: the fan's rows, opened, and those of the height below it,
 * with its pairs. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_put_fan(const struct vxd_svdag_pass *pass, const Editor &editor,
                  struct vxd_svdag_board *board, struct vxd_svdag_desk<Editor> *desk)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    row_t *root = (row_t *)pass->cubes;
    struct vxd_svdag_path path;

    if (threadIdx.x == 0) {
        root->place = 0;
        root->ref = pass->progress->root;
        pass->state->n_cubes[pass->view.depth] = 1;
        desk->fan.places[0] = 0;
        desk->fan.refs[0] = root->ref;
        desk->fan.n_pairs = 0;
    }
    __syncthreads();
    path = vxd_svdag_fan_down(pass, editor, board, &desk->fan);
    vxd_svdag_fan_head<Editor>(pass, &desk->fan, path.n_rows);
    if (threadIdx.x == 0) {
        desk->path = path;
    }
    if (vxd_svdag_is_dealer()) {
        desk->jobs.n_visits += path.n_rows * 8;
    }
}

#endif
