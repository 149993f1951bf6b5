// SPDX-License-Identifier: Apache-2.0
/* The way down of a pass (pass_cuda.h), by warps: four cubes at a time, a lane for each of their
 * children. The same code opens rows of the pass, height by height, and a warp's own in shared
 * memory, whose lowest ones' children are leaves that it edits and stores.
 *
 * Where an editor tells at once of all children of a cube (a ball does), a lane asks for a cube
 * of 32; their leaves are gathered in a list first, so that no lane is idle. */
#ifndef VXD_GPU_DAG_OPEN_CUDA_H
#define VXD_GPU_DAG_OPEN_CUDA_H

#include "gpu/dag/likes_cuda.h"
#include "gpu/dag/pairs_cuda.h"

/* Cubes of a height, and where what is below them goes. */
template <class State> struct vxd_dag_span {
    struct vxd_dag_row<State> *rows;
    bool is_local; /* they are a warp's */
    int height;
    uint32_t begin;
    uint32_t n;
    uint32_t begin_below;
    uint64_t weight; /* of all, where they are local */
    struct vxd_dag_pairs_to pairs;
};

/* How many cubes and pairs of a warp were found below. */
struct vxd_dag_found {
    uint32_t n_rows;
    uint32_t n_pairs;
    uint32_t n_leaves; /* listed */
    bool has_failed;   /* the store has no room */
};

/* A child of an open cube, and what becomes of it. */
template <class State> struct vxd_dag_visited {
    struct vxd_dag_cube cube;
    State state;
    uint32_t parent; /* row */
    uint32_t octant;
    uint32_t old;
    uint32_t ref; /* where it is not open */
    bool is_there;
    bool is_open;
    bool is_told;
};

/* What an editor tells of the children of a lane's cube, for other lanes: masks of octants that
 * are set and open, and a bit that says that it tells. */
struct vxd_dag_telling {
    uint32_t bits; /* open, set << 8, told << 16 */
    uint32_t uniform;
};

/* Visits ---------------------------------------------------------------------------------- */

template <class Editor>
VXD_DAG_DEVICE struct vxd_dag_telling
vxd_dag_ask(const Editor &editor, const struct vxd_dag_row<typename Editor::state> *row,
            int height)
{
    const struct vxd_dag_cube cube = vxd_dag_cube_at(row->place, height);
    struct vxd_dag_told told;

    if (!editor.tell(&cube, &row->state, &told)) {
        return {0, VXD_DAG_EMPTY};
    }
    return {told.open | told.set << 8 | 1u << 16, told.uniform};
}

/* The child of this lane, of the cubes from `first` on. */
template <class Editor>
VXD_DAG_DEVICE void vxd_dag_visit(const struct vxd_dag_pass *pass, const Editor &editor,
                                  const struct vxd_dag_span<typename Editor::state> *span,
                                  uint32_t first, const struct vxd_dag_telling *telling,
                                  struct vxd_dag_visited<typename Editor::state> *at)
{
    const struct vxd_dag_row<typename Editor::state> *row;
    struct vxd_dag_cube cube;
    enum vxd_dag_visit visit;
    uint32_t uniform = VXD_DAG_EMPTY;

    at->parent = span->begin + first + vxd_dag_lane() / 8;
    at->octant = vxd_dag_lane() % 8;
    at->is_there = first + vxd_dag_lane() / 8 < span->n;
    at->is_open = false;
    at->is_told = telling->bits >> 16 != 0;
    at->old = VXD_DAG_EMPTY;
    at->ref = VXD_DAG_EMPTY;
    if (!at->is_there) {
        return;
    }
    row = &span->rows[at->parent];
    cube = vxd_dag_cube_at(row->place, span->height);
    at->cube = vxd_dag_cube_child(&cube, (int)at->octant);
    at->old = vxd_dag_below(&pass->view, row->ref, (int)at->octant);
    if (vxd_dag_is_node(at->old)) {
        /* Its header is read here, or its children at the next height. */
        vxd_dag_prefetch(vxd_dag_words(&pass->view, at->old));
    }
    if (at->is_told) {
        at->state = row->state;
        at->is_open =
            (telling->bits >> at->octant & 1) != 0 && at->old != telling->uniform;
        at->ref =
            (telling->bits >> (8 + at->octant) & 1) != 0 ? telling->uniform : at->old;
        return;
    }
    editor.child(&cube, &row->state, (int)at->octant, &at->state);
    visit = editor.visit(&pass->view, &at->cube, at->old, &at->state, &uniform);
    at->is_open = visit == VXD_DAG_DESCEND;
    at->ref = visit == VXD_DAG_SET ? uniform : at->old;
}

/* A cube's header, by the lane of its first child, from the children that are not open. */
template <class State>
VXD_DAG_DEVICE void vxd_dag_put_header(const struct vxd_dag_pass *pass,
                                       const struct vxd_dag_span<State> *span,
                                       const struct vxd_dag_visited<State> *at,
                                       bool is_row, bool is_like)
{
    const uint32_t shift = vxd_dag_lane() & 24;
    const bool is_known = at->is_there && !at->is_open;
    struct vxd_dag_part part = {0, 0};
    uint32_t occupied;
    uint32_t free;
    uint32_t changed;
    uint32_t is_rows;
    uint32_t likes;

    if (is_known) {
        part = vxd_dag_part_of(&pass->view, at->ref, span->height - 1);
    }
    __syncwarp();
    occupied =
        __ballot_sync(UINT32_MAX, (part.flags & VXD_DAG_HAS_OCCUPIED) != 0) >> shift;
    free = __ballot_sync(UINT32_MAX, (part.flags & VXD_DAG_HAS_FREE) != 0) >> shift;
    changed = __ballot_sync(UINT32_MAX, is_known && at->ref != at->old) >> shift;
    is_rows = __ballot_sync(UINT32_MAX, is_row || is_like) >> shift;
    likes = __ballot_sync(UINT32_MAX, is_like) >> shift;
    for (int step = 1; step < 8; step *= 2) {
        part.n_occupied += __shfl_xor_sync(UINT32_MAX, part.n_occupied, step);
    }
    if (at->is_there && at->octant == 0) {
        struct vxd_dag_row<State> *row = &span->rows[at->parent];

        row->words[0] =
            ((occupied & 0xffu) != 0 ? VXD_DAG_HAS_OCCUPIED : 0) |
            ((free & 0xffu) != 0 ? VXD_DAG_HAS_FREE : 0) |
            (span->height <= VXD_DAG_COUNT_HEIGHT ? part.n_occupied << 10 : 0);
        row->marks = (is_rows & 0xffu) |
                     ((changed & 0xffu) != 0 ? VXD_DAG_MARK_CHANGED : 0) |
                     (likes & 0xffu) << VXD_DAG_MARK_LIKES;
    }
}

/* By all lanes of a warp: a row for each child that takes one. Its number, which may be beyond
 * those there are: then a fault is raised. */
template <class State>
VXD_DAG_DEVICE uint32_t vxd_dag_take_rows(const struct vxd_dag_pass *pass,
                                          const struct vxd_dag_span<State> *span,
                                          const struct vxd_dag_visited<State> *at,
                                          bool takes, uint64_t weight,
                                          struct vxd_dag_found *found)
{
    const uint32_t mask = __ballot_sync(UINT32_MAX, takes);
    unsigned long long begin = found->n_rows;
    uint64_t child;

    found->n_rows += (uint32_t)__popc(mask);
    if (!span->is_local && mask != 0) {
        if (vxd_dag_lane() == 0) {
            begin = vxd_dag_atomic_add(&pass->state->n_cubes[span->height - 1],
                                       (uint64_t)__popc(mask));
        }
        begin = __shfl_sync(UINT32_MAX, begin, 0);
    }
    child =
        span->begin_below + begin + (uint64_t)__popc(mask & ((1u << vxd_dag_lane()) - 1));
    if (takes && !span->is_local && child >= pass->cubes_capacity) {
        vxd_dag_raise(pass, VXD_DAG_NO_CUBES);
    } else if (takes) {
        struct vxd_dag_row<State> *row = &span->rows[child];

        row->place = vxd_dag_place_of(&at->cube);
        row->state = at->state;
        row->ref = at->old;
        if (!span->is_local && pass->cube_weights != NULL) {
            pass->cube_weights[child] = weight;
        }
    }
    return (uint32_t)child;
}

/* Leaves ---------------------------------------------------------------------------------- */

/* A leaf that was edited, and what it becomes as far as that is known without the store. */
struct vxd_dag_leaf_made {
    uint32_t words
        [VXD_DAG_MAX_ITEM_WORDS]; /* of the item that is to be found or stored next */
    uint64_t set;
    int n_words; /* 0: none */
    bool is_block;
    uint32_t ref; /* where there is none */
    uint32_t
        value; /* of the leaf behind a block: what stands for it where n_words is 0 */
};

VXD_DAG_DEVICE void vxd_dag_make_leaf(const struct vxd_dag_view *view,
                                      const struct vxd_dag_leaf *leaf,
                                      struct vxd_dag_leaf_made *made)
{
    const int bits = view->value_bits;
    uint32_t value;

    made->set = leaf->set;
    if (leaf->set == 0) {
        made->ref = VXD_DAG_EMPTY;
    } else if (bits <= 4) {
        if (vxd_dag_leaf_compose(view, leaf, made->words, &made->ref)) {
            made->n_words = vxd_dag_leaf_words(bits, leaf->set);
        }
    } else if (!vxd_dag_leaf_pack(view, leaf, made->words + 1, &value)) {
        made->words[0] = (uint32_t)vxd_dag_popc(leaf->set);
        made->n_words = vxd_dag_block_words(bits, (int)made->words[0]);
        made->is_block = true;
    } else {
        made->ref = VXD_DAG_UNIFORM | value;
        made->is_block = leaf->set != ~(uint64_t)0;
    }
}

/* Once its block has a reference, or is uniform: the leaf's words. */
VXD_DAG_DEVICE void vxd_dag_join_block(struct vxd_dag_leaf_made *made)
{
    made->n_words = 0;
    if (made->is_block) {
        made->words[0] = (uint32_t)made->set;
        made->words[1] = (uint32_t)(made->set >> 32);
        made->words[2] = made->ref;
        made->n_words = 3;
    }
}

/* By all lanes of a warp: edits the leaves of those that have one, a child of a local row, and
 * stores them. */
template <class Store, class Editor>
VXD_DAG_DEVICE void
vxd_dag_edit_leaves(const struct vxd_dag_pass *pass, const Editor &editor,
                    struct vxd_dag_board *board, struct vxd_dag_desk<Editor> *desk,
                    const struct vxd_dag_visited<typename Editor::state> *at, bool has,
                    uint64_t weight, typename Store::spare *spare, bool *has_failed)
{
    const struct vxd_dag_view *view = &pass->view;
    struct vxd_dag_row<typename Editor::state> *row = &desk->rows[has ? at->parent : 0];
    struct vxd_dag_change change = {0, 0, 0, 0};
    struct vxd_dag_leaf_made made;
    bool is_bad = false;

    made.ref = at->old;
    made.n_words = 0;
    made.is_block = false;
    if (has) {
        struct vxd_dag_change own = {0, 0, 0, 0};
        struct vxd_dag_leaf leaf;
        struct vxd_dag_leaf before;
        uint16_t values[64];
        uint64_t occupied;

        vxd_dag_leaf_split(view, at->old, values, &leaf);
        before = leaf;
        editor.leaf(view, &at->cube, &at->state, &leaf);
        if (vxd_dag_change_add_edited(view, at->old, &before, &leaf, &own)) {
            vxd_dag_make_leaf(view, &leaf, &made);
        }
        vxd_dag_add_times(&change, &own, weight);
        occupied = leaf.set & ~leaf.free;
        (void)atomicAdd(&row->words[0], (uint32_t)vxd_dag_popc(occupied) << 10);
        (void)atomicOr(&row->words[0], (occupied != 0 ? VXD_DAG_HAS_OCCUPIED : 0) |
                                           (leaf.free != 0 ? VXD_DAG_HAS_FREE : 0));
    }
    __syncwarp();
    if (pass->counts_changes) {
        vxd_dag_count_change(board, &change);
    }
    /* Blocks, where there are any, then leaves. */
    for (int number = view->value_bits > 4 ? 0 : VXD_DAG_LEAF_HEIGHT;;
         number = VXD_DAG_LEAF_HEIGHT) {
        if (__any_sync(UINT32_MAX, made.n_words > 0)) {
            const struct vxd_dag_sought sought = {
                made.words, made.n_words, number == 0 ? VXD_DAG_BLOCK : VXD_DAG_LEAF};
            bool is_new;
            const uint32_t ref = Store::find_or_store(pass, &sought, spare, &is_new);

            vxd_dag_count_items_of(board, number, made.n_words, is_new);
            made.ref = made.n_words > 0 ? ref : made.ref;
            is_bad = is_bad || (made.n_words > 0 && ref == VXD_DAG_EMPTY);
        }
        if (number == VXD_DAG_LEAF_HEIGHT) {
            break;
        }
        vxd_dag_join_block(&made);
        *has_failed = *has_failed || __any_sync(UINT32_MAX, is_bad);
        if (*has_failed) {
            break;
        }
    }
    *has_failed = *has_failed || __any_sync(UINT32_MAX, is_bad);
    if (has && made.ref != at->old) {
        row->words[1 + at->octant] = made.ref;
        (void)atomicOr(&row->marks, VXD_DAG_MARK_CHANGED);
    }
    __syncwarp();
}

/* Cubes ----------------------------------------------------------------------------------- */

/* What is known of the children of four cubes goes to their rows; those that are open become
 * rows, those that are leaves of a told cube are listed. */
template <class Editor>
VXD_DAG_DEVICE void
vxd_dag_put_children(const struct vxd_dag_pass *pass, const Editor &editor,
                     struct vxd_dag_board *board, struct vxd_dag_desk<Editor> *desk,
                     const struct vxd_dag_span<typename Editor::state> *span,
                     const struct vxd_dag_visited<typename Editor::state> *at,
                     struct vxd_dag_found *found)
{
    const int below = span->height - 1;
    const uint32_t number = at->parent * 8 + at->octant;
    const uint64_t weight = span->is_local || !at->is_there
                                ? span->weight
                                : vxd_dag_weight(pass->cube_weights, at->parent);
    struct vxd_dag_change change = {0, 0, 0, 0};
    const bool is_above = below > VXD_DAG_LEAF_HEIGHT;
    const bool is_listed = !is_above && at->is_open && at->is_told;
    const uint32_t listed = __ballot_sync(UINT32_MAX, is_listed);
    uint32_t like = VXD_DAG_NO_CHILD;
    bool is_pair = false;
    bool is_row;
    uint32_t child;

    if (at->is_there && !at->is_open && at->ref != at->old && pass->counts_changes) {
        is_pair = vxd_dag_pair_is_open(pass, at->old, at->ref, below, weight, &change);
    }
    if (!span->is_local && at->is_open && pass->signs.n > 0) {
        like = vxd_dag_find_like(pass, editor, &at->cube, at->old, &at->state, number);
    }
    __syncwarp();
    vxd_dag_put_pairs(pass, &span->pairs, is_pair, at->old, at->ref, weight,
                      &found->n_pairs);
    vxd_dag_count_change(board, &change);
    is_row = is_above && at->is_open && like == VXD_DAG_NO_CHILD;
    child = vxd_dag_take_rows(pass, span, at, is_row, weight, found);
    if (at->is_there) {
        span->rows[at->parent].words[1 + at->octant] = like != VXD_DAG_NO_CHILD ? like
                                                       : is_row                 ? child
                                                       : at->is_open            ? at->old
                                                                                : at->ref;
    }
    if (is_listed) {
        const uint32_t rank = (uint32_t)__popc(listed & ((1u << vxd_dag_lane()) - 1));

        desk->leaves[found->n_leaves + rank] = (uint16_t)number;
    }
    found->n_leaves += (uint32_t)__popc(listed);
    vxd_dag_put_header(pass, span, at, is_row, like != VXD_DAG_NO_CHILD);
    __syncwarp();
}

/* The leaf of this lane among those that were listed. */
template <class Editor>
VXD_DAG_DEVICE void
vxd_dag_listed_leaf(const struct vxd_dag_desk<Editor> *desk, uint32_t i, uint32_t n,
                    struct vxd_dag_visited<typename Editor::state> *at)
{
    const uint32_t number = desk->leaves[i < n ? i : 0];
    const struct vxd_dag_row<typename Editor::state> *row = &desk->rows[number / 8];
    const struct vxd_dag_cube cube = vxd_dag_cube_at(row->place, VXD_DAG_LEAF_HEIGHT + 1);

    at->parent = number / 8;
    at->octant = number % 8;
    at->cube = vxd_dag_cube_child(&cube, (int)at->octant);
    at->state = row->state;
    at->old = row->words[1 + at->octant];
    at->is_open = i < n;
    at->is_told = false;
}

/* By all lanes of a warp: opens the cubes of a span; where their children are leaves, it is local,
 * and they are edited. */
template <class Store, class Editor>
VXD_DAG_DEVICE struct vxd_dag_found
vxd_dag_open_cubes(const struct vxd_dag_pass *pass, const Editor &editor,
                   struct vxd_dag_board *board, struct vxd_dag_desk<Editor> *desk,
                   const struct vxd_dag_span<typename Editor::state> *span,
                   uint32_t n_pairs, typename Store::spare *spare)
{
    const uint32_t n_steps = (span->n + 3) / 4;
    const bool is_above = span->height - 1 > VXD_DAG_LEAF_HEIGHT;
    struct vxd_dag_telling tellings = {0, VXD_DAG_EMPTY};
    struct vxd_dag_found found = {0, n_pairs, 0, false};

    for (uint32_t step = 0; step * 4 < span->n || (step - n_steps) * 32 < found.n_leaves;
         step++) {
        struct vxd_dag_visited<typename Editor::state> at;
        const uint32_t first = step * 4;

        if (first < span->n) {
            const int from = (int)(step % 8 * 4 + vxd_dag_lane() / 8);
            struct vxd_dag_telling telling;

            if (Editor::TELLS && step % 8 == 0) {
                tellings.bits = 0;
                if (first + vxd_dag_lane() < span->n) {
                    tellings = vxd_dag_ask(
                        editor, &span->rows[span->begin + first + vxd_dag_lane()],
                        span->height);
                }
                __syncwarp();
            }
            telling.bits = __shfl_sync(UINT32_MAX, tellings.bits, from);
            telling.uniform = __shfl_sync(UINT32_MAX, tellings.uniform, from);
            vxd_dag_visit(pass, editor, span, first, &telling, &at);
            __syncwarp();
            vxd_dag_put_children(pass, editor, board, desk, span, &at, &found);
        } else {
            vxd_dag_listed_leaf(desk, (step - n_steps) * 32 + vxd_dag_lane(),
                                found.n_leaves, &at);
        }
        if (!is_above && __any_sync(UINT32_MAX, at.is_open && !at.is_told)) {
            vxd_dag_edit_leaves<Store>(pass, editor, board, desk, &at,
                                       at.is_open && !at.is_told, span->weight, spare,
                                       &found.has_failed);
        }
        if (found.has_failed) {
            break;
        }
    }
    return found;
}

#endif
