// SPDX-License-Identifier: Apache-2.0
/* The end of the way up of a pass, where no height has many rows: the first block alone, eight lanes a
 * row. What a height became stays in shared memory for the next; rows are loaded one height ahead.
 *
 * A row above a node that was not there before becomes one that was not there either: it takes an
 * address, and the next height goes on; such nodes enter the index all at once after the last
 * height. Of others that have to be stored a node of a height above may have the same words, so
 * they enter before that is looked for. Equal ones of a height are found by comparing them. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_REDUCE_TOP_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_REDUCE_TOP_CUDA_H

#include "gpu/svdag/edit_kernel/reduce_top_nodes_cuda.h"
#include "gpu/svdag/edit_kernel/stage_cuda.h"

/* By all lanes of a warp, after a barrier: the node of a row that is stored but not in the index;
 * *ref is where. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_climb_stored(const struct vxd_svdag_pass *pass,
                                             struct vxd_svdag_climb *climb, uint32_t row,
                                             bool is_there, struct vxd_svdag_eight *at,
                                             uint32_t *ref)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    const row_t *from = (const row_t *)pass->cubes + (is_there ? row : 0);
    const bool is_stored = is_there && (from->marks & VXD_SVDAG_MARK_STORED) != 0;
    uint32_t *words = climb->words[vxd_svdag_climb_number()];
    int n_words = 0;

    *ref = is_stored ? from->ref : (uint32_t)VXD_SVDAG_EMPTY;
    if (is_stored) {
        const uint32_t *stored = vxd_svdag_words_to(pass, *ref);

        n_words = 1 + __popc(__ldcg(stored) & 0xffu);
        for (int i = (int)vxd_svdag_eight_lane(); i < n_words; i += 8) {
            words[i] = __ldcg(&stored[i]);
        }
    }
    __syncwarp();
    *at = vxd_svdag_eight_of(words, n_words, is_stored, is_stored);
}

/* By all lanes of a warp, after a search for it: it enters the index. False: not yet. */
template <class Editor>
VXD_SVDAG_DEVICE bool
vxd_svdag_climb_enter(const struct vxd_svdag_pass *pass, uint32_t row,
                      const struct vxd_svdag_eight *at, uint32_t ref, bool *has_room)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    const bool enters = ref != VXD_SVDAG_EMPTY;
    const bool is_done = vxd_svdag_eight_enter(pass, at, ref, enters, has_room);

    if (enters && is_done && vxd_svdag_eight_lane() == 0) {
        ((row_t *)pass->cubes)[row].marks &= ~VXD_SVDAG_MARK_STORED;
    }
    return is_done;
}

/* By all that climb: the block, or its first warp alone; a barrier. Whether one of them has this. */
VXD_SVDAG_DEVICE bool vxd_svdag_climb_any(bool is_block, bool has)
{
    bool any;

    if (is_block) {
        return __syncthreads_or(has) != 0;
    }
    any = __any_sync(UINT32_MAX, has);
    __syncwarp();
    return any;
}

/* By the lanes of a row, whose node has so many words (0: it needs none) and may be new. */
VXD_SVDAG_DEVICE void vxd_svdag_climb_count(struct vxd_svdag_board *board,
                                            struct vxd_svdag_climb *climb, int height,
                                            int n_words, bool is_new)
{
    if (n_words > 0 && vxd_svdag_eight_lane() == 0) {
        (void)atomicAdd(&board->n_lookups[height], 1u);
    }
    if (is_new && vxd_svdag_eight_lane() == 0) {
        (void)atomicAdd(&board->n_new[height], 1u);
        (void)atomicAdd(&climb->n_new_words, (uint32_t)n_words);
    }
}

/* By all that climb, a barrier before and behind: what a row became, to the height above and the
 * pass. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_climb_put(const struct vxd_svdag_pass *pass, struct vxd_svdag_climb *climb,
                    const struct vxd_svdag_climb_rows *rows,
                    const struct vxd_svdag_climb_node *node, uint32_t ref, uint32_t marks)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    const uint32_t i = vxd_svdag_climb_number();
    row_t *row = (row_t *)pass->cubes + rows->begin + i;

    if (i < rows->n && vxd_svdag_eight_lane() == 0) {
        climb->refs[i] = ref;
        climb->headers[i] = node->header;
        climb->marks[i] = marks & ~VXD_SVDAG_MARK_STORED;
        row->ref = ref;
        row->marks = marks;
    }
}

/* By all that climb: what the rows of a height become, as far as their children tell, and what
 * is to be looked for. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_climb_node
vxd_svdag_climb_seek(const struct vxd_svdag_pass *pass, struct vxd_svdag_climb *climb,
                     const struct vxd_svdag_climb_rows *rows,
                     const struct vxd_svdag_climb_row *row, bool is_first,
                     struct vxd_svdag_eight *at)
{
    const struct vxd_svdag_climb_row child =
        vxd_svdag_climb_child<Editor>(pass, climb, rows, row, is_first);
    const struct vxd_svdag_climb_node node =
        vxd_svdag_climb_compose(climb, rows->height, row, &child);
    const bool is_one = rows->n <= 1;

    *at = vxd_svdag_eight_of(climb->words[vxd_svdag_climb_number()], node.n_words,
                             node.n_words > 0 && (!node.is_sure || !is_one),
                             node.n_words > 0 && !node.is_sure);
    return node;
}

/* By all that climb, after the search: what the rows of a height become. *is_missing: the node
 * of one has to enter the index now. False: there is no room. */
template <class Editor>
VXD_SVDAG_DEVICE bool
vxd_svdag_climb_height(const struct vxd_svdag_pass *pass, struct vxd_svdag_board *board,
                       struct vxd_svdag_climb *climb,
                       const struct vxd_svdag_climb_rows *rows,
                       const struct vxd_svdag_climb_node *node,
                       const struct vxd_svdag_eight *at, bool is_block, bool *is_missing)
{
    const uint32_t i = vxd_svdag_climb_number();
    const bool is_one = rows->n <= 1;
    const bool wants = node->n_words > 0 && at->ref == VXD_SVDAG_EMPTY;
    uint32_t ref = at->ref != VXD_SVDAG_EMPTY ? at->ref : node->ref;
    uint32_t like = i;
    uint32_t marks;
    bool has_room;

    if (!is_one) {
        if (vxd_svdag_eight_lane() == 0) {
            climb->hashes[i] = at->hash;
            climb->n_words[i] = wants ? (uint32_t)node->n_words : 0;
        }
        (void)vxd_svdag_climb_any(is_block, false);
        like = vxd_svdag_climb_alike(climb, at, wants);
    }
    has_room = vxd_svdag_climb_place(pass, climb, at, wants && like == i, &ref);
    marks = (node->is_changed ? VXD_SVDAG_MARK_CHANGED : 0) |
            (wants ? VXD_SVDAG_MARK_NEW : 0) |
            (wants && like == i ? VXD_SVDAG_MARK_STORED : 0);
    vxd_svdag_climb_put<Editor>(pass, climb, rows, node, ref, marks);
    vxd_svdag_climb_count(board, climb, rows->height, node->n_words, wants && like == i);
    if (vxd_svdag_climb_any(is_block, !has_room)) {
        return false;
    }
    if (!is_one) {
        if (like != i) {
            vxd_svdag_climb_put<Editor>(pass, climb, rows, node, climb->refs[like],
                                        marks);
        }
        (void)vxd_svdag_climb_any(is_block, false);
    }
    *is_missing = vxd_svdag_climb_any(is_block, wants && !node->is_sure);
    return true;
}

/* By one thread: what there is room for. */
VXD_SVDAG_DEVICE void vxd_svdag_climb_begin(const struct vxd_svdag_pass *pass,
                                            struct vxd_svdag_climb *climb)
{
    const uint64_t taken = vxd_svdag_load_now64(&pass->state->n_taken);
    const uint64_t n_slots = (uint64_t)pass->index.n_buckets * VXD_SVDAG_INDEX_SLOTS;
    const uint64_t n_most = vxd_svdag_index_most(n_slots);
    const uint64_t n_items = pass->state->n_items + vxd_svdag_taken_items(taken);

    climb->next = pass->store->next + vxd_svdag_taken_words(taken);
    climb->n_items_left = n_items < n_most ? n_most - n_items : 0;
    climb->n_taken = 0;
    climb->n_new_words = 0;
    climb->has_failed = 0;
}

/* By one thread: what was taken. */
VXD_SVDAG_DEVICE void vxd_svdag_climb_end(const struct vxd_svdag_pass *pass,
                                          struct vxd_svdag_board *board,
                                          const struct vxd_svdag_climb *climb,
                                          uint32_t n_rows)
{
    pass->state->n_taken +=
        vxd_svdag_climb_words(climb->n_taken) +
        ((uint64_t)(climb->n_taken >> VXD_SVDAG_CLIMB_ITEMS) << VXD_SVDAG_TAKEN_ITEMS);
    board->n_new_words += climb->n_new_words;
    pass->state->n_closed += n_rows;
}

/* What a turn looks for: nodes of a height, or such as are to enter the index. */
struct vxd_svdag_climb_turn {
    bool is_block; /* else the first warp is alone */
    bool enters;
    uint32_t row; /* the first one that enters, */
    uint32_t end; /* and that behind the last one */
};

/* The turn after this one: what is missing enters before the height above is looked for, and all
 * that is stored at the end. False: there is none. */
VXD_SVDAG_DEVICE bool vxd_svdag_climb_go_on(const struct vxd_svdag_climb_rows *rows,
                                            uint32_t n_rows, bool is_root,
                                            bool is_missing, bool is_done,
                                            struct vxd_svdag_climb_turn *turn)
{
    if (turn->enters) {
        turn->row += is_done ? VXD_SVDAG_FEW_ROWS : 0;
        turn->enters = turn->row < turn->end;
        return turn->enters || !is_root;
    }
    turn->enters = is_root || is_missing;
    turn->row = is_root ? 0 : rows->begin;
    turn->end = is_root ? n_rows : rows->begin + rows->n;
    return true;
}

/* By all lanes of a warp: the height above. */
VXD_SVDAG_DEVICE struct vxd_svdag_climb_rows
vxd_svdag_climb_above(const struct vxd_svdag_climb_rows *rows,
                      const struct vxd_svdag_stage *stage)
{
    const uint32_t n = __shfl_sync(UINT32_MAX, stage->n_closed, rows->height + 1);

    return {rows->height + 1, rows->begin - n, n};
}

/* By all that climb: one turn. False: there is no room. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_climb_take_turn(
    struct vxd_svdag_worker<Store, Editor> *worker, const struct vxd_svdag_stage *stage,
    const struct vxd_svdag_climb_turn *turn, struct vxd_svdag_climb_rows *rows,
    struct vxd_svdag_climb_row *row, bool *is_missing, bool *is_done)
{
    const struct vxd_svdag_pass *pass = worker->pass;
    struct vxd_svdag_climb *climb = &worker->desk->climb;
    const uint32_t entering = turn->row + vxd_svdag_climb_number();
    struct vxd_svdag_climb_node node = {VXD_SVDAG_EMPTY, 0, 0, false, false};
    struct vxd_svdag_eight at;
    uint32_t ref = VXD_SVDAG_EMPTY;
    bool has_room = true;

    if (turn->enters) {
        vxd_svdag_climb_stored<Editor>(pass, climb, entering, entering < turn->end, &at,
                                       &ref);
    } else {
        struct vxd_svdag_climb_rows above;

        *rows = vxd_svdag_climb_above(rows, stage);
        above = vxd_svdag_climb_above(rows, stage);
        node = vxd_svdag_climb_seek<Editor>(pass, climb, rows, row,
                                            rows->height == stage->height, &at);
        *row = vxd_svdag_climb_load<Editor>(pass, &above);
    }
    vxd_svdag_eight_search(pass, &at);
    *is_missing = false;
    *is_done = true;
    if (!turn->enters) {
        return vxd_svdag_climb_height<Editor>(pass, worker->board, climb, rows, &node,
                                              &at, turn->is_block, is_missing);
    }
    *is_done = !vxd_svdag_climb_any(
        turn->is_block,
        !vxd_svdag_climb_enter<Editor>(pass, entering, &at, ref, &has_room));
    return !vxd_svdag_climb_any(turn->is_block, !has_room);
}

/* By all lanes of a warp: whether each of the first n_rows rows has one child that is a row. */
template <class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_climb_is_chain(const struct vxd_svdag_pass *pass,
                                               uint32_t n_rows)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    const row_t *row = (const row_t *)pass->cubes + vxd_svdag_lane();

    return __all_sync(UINT32_MAX, vxd_svdag_lane() >= n_rows ||
                                      __popc(row->marks & VXD_SVDAG_MARK_ROWS) == 1);
}

/* By the first warp, alone: all heights above one whose only row has a node that is new, where
 * each has one row with one child that is a row: their nodes are new, too. A lane takes a row;
 * what one has below it all above have. False: there is no room. */
template <class Editor>
VXD_SVDAG_DEVICE bool
vxd_svdag_climb_chain(const struct vxd_svdag_pass *pass, struct vxd_svdag_board *board,
                      struct vxd_svdag_climb *climb, uint32_t n_rows)
{
    typedef struct vxd_svdag_row<typename Editor::state> row_t;
    const uint32_t lane = vxd_svdag_lane();
    const bool is_there = lane < n_rows;
    row_t *row = (row_t *)pass->cubes + (is_there ? lane : 0);
    const uint32_t marks = row->marks & VXD_SVDAG_MARK_ROWS;
    const int height = pass->view.depth - (int)lane;
    uint32_t header = is_there ? row->words[0] : lane == n_rows ? climb->headers[0] : 0;
    uint32_t words[8];
    uint32_t mask = 0;
    uint32_t before;
    uint32_t total;
    uint32_t first;
    uint32_t child;

#pragma unroll
    for (int i = 0; i < 8; i++) {
        words[i] = row->words[1 + i];
        mask |= words[i] != VXD_SVDAG_EMPTY ? 1u << i : 0;
    }
    before = vxd_svdag_sum_before(is_there ? 1 + (uint32_t)__popc(mask) : 0, &total);
    if (!vxd_svdag_climb_take(pass, climb, total, n_rows, &first)) {
        return false;
    }
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
        const uint32_t below = __shfl_down_sync(UINT32_MAX, header, step);

        header = lane + (uint32_t)step < 32 ? vxd_svdag_headers_join(header, below)
                                            : header & ~0xffu;
    }
    child = __shfl_down_sync(UINT32_MAX, first + before, 1);
    child = lane + 1 == n_rows ? climb->refs[0] : child;
    if (is_there) {
        uint32_t *to = vxd_svdag_words_to(pass, first + before);

        *to++ = vxd_svdag_header_at(header, height) | mask;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (words[i] != VXD_SVDAG_EMPTY) {
                *to++ = (marks >> i & 1) != 0 ? child : words[i];
            }
        }
        row->ref = first + before;
        row->marks = VXD_SVDAG_MARK_CHANGED | VXD_SVDAG_MARK_NEW | VXD_SVDAG_MARK_STORED;
        board->n_lookups[height]++;
        board->n_new[height]++;
    }
    if (lane == 0) {
        climb->n_new_words += total;
    }
    __syncwarp();
    return true;
}

/* By all threads of the first block, alone: the stage that closes what is left, from its height on
 * up to the root. From where on all heights have up to four rows the first warp goes on alone
 * (above a new node of one row, all at once), and the others help again when all that is stored
 * enters. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_climb_up(struct vxd_svdag_worker<Store, Editor> *worker,
                                         const struct vxd_svdag_stage *stage)
{
    const struct vxd_svdag_pass *pass = worker->pass;
    struct vxd_svdag_climb *climb = &worker->desk->climb;
    const uint32_t n_rows = stage->cubes + stage->n_cubes;
    const uint32_t many = __ballot_sync(UINT32_MAX, stage->n_closed > 4);
    const uint32_t several = __ballot_sync(UINT32_MAX, stage->n_closed > 1);
    struct vxd_svdag_climb_rows rows = {stage->height - 1, n_rows, 0};
    struct vxd_svdag_climb_rows first = {stage->height, stage->cubes, stage->n_cubes};
    struct vxd_svdag_climb_turn turn = {true, false, 0, 0};
    struct vxd_svdag_climb_row row;
    bool goes_on = true;

    if (threadIdx.x == 0) {
        vxd_svdag_climb_begin(pass, climb);
    }
    __syncthreads();
    if (worker->desk->jobs.is_bad != 0) {
        return; /* rows may not even be there */
    }
    row = vxd_svdag_climb_load<Editor>(pass, &first);
#pragma unroll 1
    while (goes_on) {
        bool is_missing = false;
        bool is_done = true;
        bool has_room;

        if (!turn.enters) {
            turn.is_block = many >> (rows.height + 1) != 0;
        }
        if (turn.is_block || threadIdx.x < 32) {
            has_room = vxd_svdag_climb_take_turn(worker, stage, &turn, &rows, &row,
                                                 &is_missing, &is_done);
            if (has_room && !turn.enters && rows.height < pass->view.depth &&
                rows.n == 1 && several >> rows.height == 0 &&
                (climb->marks[0] & VXD_SVDAG_MARK_NEW) != 0 &&
                vxd_svdag_climb_is_chain<Editor>(pass, rows.begin)) {
                has_room =
                    vxd_svdag_climb_chain<Editor>(pass, worker->board, climb, rows.begin);
                rows = {pass->view.depth, 0, 1};
            }
            if (!has_room && threadIdx.x == 0) {
                climb->has_failed = 1;
            }
        } else {
            rows.height = pass->view.depth;
            has_room = true;
        }
        goes_on = has_room &&
                  vxd_svdag_climb_go_on(&rows, n_rows, rows.height == pass->view.depth,
                                        is_missing, is_done, &turn);
        if (!turn.is_block &&
            (!goes_on || (turn.enters && rows.height == pass->view.depth))) {
            __syncthreads(); /* the first warp is through */
            goes_on = climb->has_failed == 0;
            turn.is_block = true;
        }
    }
    if (threadIdx.x == 0) {
        vxd_svdag_climb_end(pass, worker->board, climb, n_rows - rows.begin);
    }
}

#endif
