// SPDX-License-Identifier: Apache-2.0
/* One way over a tree with an editor: one cooperative kernel, in steps with a barrier between.
 *
 * down   height by height, a thread each child of an open cube: the editor says what becomes
 *        of it, and open ones become rows of the next height. The first block alone as long as
 *        the cubes are few
 *        (children equal to another's take its row, and count for as many)
 * leaves a thread each
 * up     height by height, three steps: items are made from the children's references; each
 *        item is found, or takes a slot of the index, or finds that an equal one took it
 *        first; those that took slots get addresses, write their words and enter both
 *
 * Rules that keep it right:
 * - Which barriers a thread comes to depends only on counts that a barrier stands behind.
 * - Rows, words and hashes of items are written before a barrier, and only read by others
 *   after it. Slots are only ever taken while items are looked for, from a bucket's first free
 *   one on, so of equal items that look for a place all but one find the other there.
 * - A slot that is taken has no tag until all have looked; then nobody looks until it has.
 * - A fault is acted on after the barrier behind the step that raised it, by all threads
 *   alike: a height's items are stored all or not at all, and slots that were taken for
 *   items of a height that is not stored are all given back, which leaves the buckets as they
 *   were, without gaps. */
#ifndef VXD_GPU_DAG_PASS_CUDA_H
#define VXD_GPU_DAG_PASS_CUDA_H

#include "gpu/dag/open_cuda.h"

/* Leaves ---------------------------------------------------------------------------------- */

/* The item of a changed leaf; where its values stand in a block, that one's first. */
VXD_DAG_DEVICE void vxd_dag_make_leaf(const struct vxd_dag_pass *pass, uint64_t row,
                                      const struct vxd_dag_leaf *leaf)
{
    const struct vxd_dag_item_rows *items = &pass->leaves.items;
    const struct vxd_dag_item_rows *blocks = &pass->blocks;
    const int bits = pass->view.value_bits;
    uint32_t *words = items->words + row * items->stride;
    uint32_t *block = blocks->words + row * blocks->stride;
    const int n = vxd_dag_popc(leaf->set);
    uint32_t value;

    if (leaf->set == 0) {
        items->refs[row] = VXD_DAG_EMPTY;
        return;
    }
    if (bits <= 4) {
        if (vxd_dag_leaf_compose(&pass->view, leaf, words, &items->refs[row])) {
            vxd_dag_item_wait(items, row, VXD_DAG_LEAF,
                              vxd_dag_leaf_words(bits, leaf->set));
        }
        return;
    }
    words[0] = (uint32_t)leaf->set;
    words[1] = (uint32_t)(leaf->set >> 32);
    block[0] = (uint32_t)n;
    if (!vxd_dag_leaf_pack(&pass->view, leaf, block + 1, &value)) {
        vxd_dag_item_wait(blocks, row, VXD_DAG_BLOCK, vxd_dag_block_words(bits, n));
        items->marks[row] = VXD_DAG_MARK_WAITING;
        return;
    }
    items->refs[row] = VXD_DAG_UNIFORM | value;
    if (leaf->set != ~(uint64_t)0) {
        blocks->refs[row] = VXD_DAG_UNIFORM | value;
        items->marks[row] = VXD_DAG_MARK_WAITING;
    }
}

template <class Editor>
VXD_DAG_STEP void vxd_dag_edit_leaves(const struct vxd_dag_pass *pass,
                                      const Editor &editor,
                                      const struct vxd_dag_team *team, uint32_t n,
                                      struct vxd_dag_change *change)
{
    typedef typename Editor::state state_t;
    const struct vxd_dag_cube_rows *rows = &pass->leaves;
    const struct vxd_dag_view *view = &pass->view;

    for (uint64_t row = (uint64_t)team->first + team->thread; row < n;
         row += team->size) {
        const struct vxd_dag_cube cube =
            vxd_dag_cube_at(rows->places[row], VXD_DAG_LEAF_HEIGHT);
        const uint32_t old = rows->olds[row];
        struct vxd_dag_change own = {0, 0, 0, 0};
        struct vxd_dag_leaf leaf;

        rows->items.marks[row] = VXD_DAG_MARK_DONE;
        rows->items.refs[row] = old;
        if (view->value_bits > 4) {
            pass->blocks.marks[row] = VXD_DAG_MARK_DONE;
        }
        vxd_dag_leaf_split(view, old, &leaf);
        editor.leaf(view, &cube, (const state_t *)(const void *)rows->states + row,
                    &leaf);
        if (vxd_dag_change_add_edited(view, old, &leaf, &own)) {
            vxd_dag_add_times(change, &own, vxd_dag_weight(rows->weights, row));
            vxd_dag_make_leaf(pass, row, &leaf);
        }
    }
}

/* Puts the blocks' references into the leaves' items. */
VXD_DAG_STEP void vxd_dag_join_blocks(const struct vxd_dag_pass *pass,
                                      const struct vxd_dag_team *team, uint32_t n)
{
    const struct vxd_dag_item_rows *items = &pass->leaves.items;

    for (uint64_t row = (uint64_t)team->first + team->thread; row < n;
         row += team->size) {
        if (items->marks[row] == VXD_DAG_MARK_WAITING) {
            items->words[row * items->stride + 2] =
                vxd_dag_item_ref(&pass->blocks, (uint32_t)row);
            vxd_dag_item_wait(items, row, VXD_DAG_LEAF, 3);
        }
    }
}

/* Up -------------------------------------------------------------------------------------- */

/* The items of a height's open cubes, from the references of their children. */
VXD_DAG_STEP void vxd_dag_make_inner(const struct vxd_dag_pass *pass,
                                     const struct vxd_dag_team *team, int height,
                                     uint32_t begin, uint32_t n)
{
    const struct vxd_dag_cube_rows *rows = &pass->cubes;
    const struct vxd_dag_item_rows *below =
        height - 1 == VXD_DAG_LEAF_HEIGHT ? &pass->leaves.items : &pass->cubes.items;

    for (uint64_t i = (uint64_t)team->first + team->thread; i < n; i += team->size) {
        const uint64_t row = begin + i;
        const uint32_t old = rows->olds[row];
        uint32_t *words = rows->items.words + row * 9;
        uint32_t children[8];
        bool is_changed = false;

        for (int octant = 0; octant < 8; octant++) {
            const uint32_t word = words[1 + octant];

            children[octant] = rows->opens[row * 8 + (uint32_t)octant] != VXD_DAG_IS_REF
                                   ? vxd_dag_item_ref(below, word)
                                   : word;
            is_changed =
                is_changed || children[octant] != vxd_dag_below(&pass->view, old, octant);
        }
        rows->items.marks[row] = VXD_DAG_MARK_DONE;
        rows->items.refs[row] = old;
        if (is_changed && vxd_dag_inner_compose(&pass->view, height, children, words,
                                                &rows->items.refs[row])) {
            vxd_dag_item_wait(&rows->items, row, VXD_DAG_INNER,
                              vxd_dag_inner_words(words));
        }
    }
}

/* A height of inner nodes, by all threads of the team. */
static __device__ void vxd_dag_close_level(const struct vxd_dag_pass *pass,
                                           const struct vxd_dag_team *team, int height,
                                           uint32_t begin, uint32_t n)
{
    const bool is_bad = vxd_dag_has_fault(pass);

    if (!is_bad) {
        vxd_dag_make_inner(pass, team, height, begin, n);
    }
    vxd_dag_team_sync(team);
    vxd_dag_store_items(pass, &pass->cubes.items, team, VXD_DAG_INNER, height, begin, n,
                        is_bad);
}

template <class Editor>
static __device__ void
vxd_dag_close_leaves(const struct vxd_dag_pass *pass, const Editor &editor,
                     const struct vxd_dag_team *team, struct vxd_dag_change *change)
{
    const uint32_t n =
        vxd_dag_rows_here(vxd_dag_load_now64(&pass->state->n_cubes[VXD_DAG_LEAF_HEIGHT]),
                          0, pass->leaves.capacity);
    bool is_bad = vxd_dag_has_fault(pass);

    if (!is_bad) {
        vxd_dag_edit_leaves(pass, editor, team, n, change);
    }
    vxd_dag_team_sync(team);
    if (pass->view.value_bits > 4) {
        vxd_dag_store_items(pass, &pass->blocks, team, VXD_DAG_BLOCK, 0, 0, n, is_bad);
        is_bad = vxd_dag_has_fault(pass);
        if (!is_bad) {
            vxd_dag_join_blocks(pass, team, n);
        }
        vxd_dag_team_sync(team);
    }
    vxd_dag_store_items(pass, &pass->leaves.items, team, VXD_DAG_LEAF,
                        VXD_DAG_LEAF_HEIGHT, 0, n, is_bad);
}

/* From the leaves to the root: by the grid up to the height above which cubes are few. */
template <class Editor>
static __device__ void vxd_dag_go_up(const struct vxd_dag_pass *pass,
                                     const Editor &editor, struct vxd_dag_change *change)
{
    const struct vxd_dag_team grid = vxd_dag_team_of_grid();
    const int depth = pass->view.depth;
    struct vxd_dag_level level = vxd_dag_level_top(pass);
    int grid_height = VXD_DAG_LEAF_HEIGHT; /* the last that is the grid's */

    while (level.height > VXD_DAG_LEAF_HEIGHT + 1) {
        grid_height =
            grid_height == VXD_DAG_LEAF_HEIGHT && level.n_cubes > VXD_DAG_FEW_ROWS
                ? level.height
                : grid_height;
        vxd_dag_level_next(pass, &level);
    }
    if (grid_height == VXD_DAG_LEAF_HEIGHT && level.n_cubes > VXD_DAG_FEW_ROWS) {
        grid_height = level.height;
    }
    vxd_dag_close_leaves(pass, editor, &grid, change);
    for (; level.height <= grid_height; vxd_dag_level_back(pass, &level)) {
        vxd_dag_close_level(pass, &grid, level.height, level.cubes, level.n_cubes);
    }
    if (vxd_dag_is_first_block()) {
        const struct vxd_dag_team block = vxd_dag_team_of_block();

        for (; level.height <= depth; vxd_dag_level_back(pass, &level)) {
            vxd_dag_close_level(pass, &block, level.height, level.cubes, level.n_cubes);
        }
    }
}

/* Adds up what the pass did, by one thread after all others. */
VXD_DAG_STEP void vxd_dag_end_pass(const struct vxd_dag_pass *pass)
{
    const struct vxd_dag_pass_state *state = pass->state;
    struct vxd_dag_progress *progress = pass->progress;
    const uint32_t fault = vxd_dag_load_now(&state->fault);

    vxd_dag_add_stored(pass);
    if (fault != 0) {
        progress->fault = fault;
        vxd_dag_tell_needs(pass, fault);
        return;
    }
    progress->root =
        state->is_open != 0 ? vxd_dag_item_ref(&pass->cubes.items, 0) : state->root;
    for (int i = 0; i < VXD_DAG_N_HEIGHTS; i++) {
        progress->n_lookups[i] += vxd_dag_load_now64(&state->n_lookups[i]);
        progress->n_new[i] += vxd_dag_load_now64(&state->n_claimed[i]);
    }
}

/* What all threads of the edit counted, each for itself. */
VXD_DAG_DEVICE void vxd_dag_add_change(struct vxd_dag_change *sum,
                                       const struct vxd_dag_change *change)
{
    vxd_dag_warp_add(&sum->n_added, change->n_added);
    vxd_dag_warp_add(&sum->n_removed, change->n_removed);
    vxd_dag_warp_add(&sum->n_changed, change->n_changed);
    vxd_dag_warp_add(&sum->n_freed, change->n_freed);
}

/* The whole pass, by all threads of a cooperative grid. */
template <class Editor>
static __device__ void vxd_dag_run_pass(const struct vxd_dag_pass *pass,
                                        const Editor &editor)
{
    struct vxd_dag_change change = {0, 0, 0, 0};

    /* Of passes before this one; changes only once all blocks of this one have met. */
    if (vxd_dag_load_now(&pass->progress->fault) != 0) {
        return;
    }
    vxd_dag_go_down(pass, editor, &change);
    vxd_dag_go_up(pass, editor, &change);
    if (pass->counts_changes) {
        vxd_dag_add_change(&pass->progress->change, &change);
    }
    if (vxd_dag_is_first_block() && vxd_dag_team_of_block().thread == 0) {
        vxd_dag_end_pass(pass);
    }
}

/* What changed from the edit's first root to its last, by all threads of a grid: pairs alone. */
static __device__ void vxd_dag_run_change(const struct vxd_dag_pass *pass)
{
    const struct vxd_dag_team grid = vxd_dag_team_of_grid();
    struct vxd_dag_change change = {0, 0, 0, 0};
    struct vxd_dag_level level;
    const uint32_t from = pass->progress->first_root;
    const uint32_t to = pass->progress->root;
    const int depth = pass->view.depth;

    if (vxd_dag_load_now(&pass->progress->fault) != 0) {
        return;
    }
    if (grid.first + grid.thread == 0 &&
        vxd_dag_pair_is_open(pass, from, to, depth, 1, &change)) {
        vxd_dag_pair_put(pass, 0, from, to, 1);
        pass->state->n_pairs[depth] = 1;
    }
    vxd_dag_team_sync(&grid);
    level = vxd_dag_level_top(pass);
    while (level.height > VXD_DAG_LEAF_HEIGHT) {
        vxd_dag_open_pairs(pass, &grid, &level, &change);
        vxd_dag_team_sync(&grid);
        vxd_dag_level_next(pass, &level);
    }
    vxd_dag_add_change(&pass->progress->change, &change);
    if (grid.first + grid.thread == 0 && vxd_dag_has_fault(pass)) {
        pass->progress->fault = vxd_dag_load_now(&pass->state->fault);
        vxd_dag_tell_needs(pass, pass->progress->fault);
    }
}

/* The result of an edit, by one thread after its passes. */
static __device__ void vxd_dag_finish(const struct vxd_dag_pass *pass,
                                      struct vxd_dag_edit_result *out)
{
    const struct vxd_dag_progress *progress = pass->progress;
    const bool is_bad = progress->fault != 0;

    out->needs_room = is_bad && (progress->fault & VXD_DAG_BAD_DATA) == 0;
    out->needs = progress->needs;
    out->root = is_bad ? progress->first_root : progress->root;
    out->n_added = is_bad ? 0 : progress->change.n_added;
    out->n_removed = is_bad ? 0 : progress->change.n_removed;
    out->n_changed = is_bad ? 0 : progress->change.n_changed;
    out->n_freed = is_bad ? 0 : progress->change.n_freed;
    for (int i = 0; i < VXD_DAG_N_HEIGHTS; i++) {
        out->n_lookups[i] = is_bad ? 0 : progress->n_lookups[i];
        out->n_new[i] = is_bad ? 0 : progress->n_new[i];
    }
}

#endif
