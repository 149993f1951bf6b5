// SPDX-License-Identifier: Apache-2.0
/* The way down of a pass (pass_cuda.h): cubes are opened height by height, a thread a child; and
 * pairs of references of which it is not known at once in how many voxels they differ. Of
 * children that are equal to their editor one alone becomes a row. */
#ifndef VXD_GPU_DAG_OPEN_CUDA_H
#define VXD_GPU_DAG_OPEN_CUDA_H

#include "gpu/dag/items_cuda.h"

/* Rows of a height up to which the first block goes on alone. */
#define VXD_DAG_FEW_ROWS 256u

#define VXD_DAG_NO_CHILD UINT32_MAX

VXD_DAG_DEVICE uint64_t vxd_dag_place_of(const struct vxd_dag_cube *cube)
{
    return (uint64_t)cube->x | (uint64_t)cube->y << 21 | (uint64_t)cube->z << 42;
}

VXD_DAG_DEVICE struct vxd_dag_cube vxd_dag_cube_at(uint64_t place, int height)
{
    struct vxd_dag_cube cube;

    cube.x = (uint32_t)(place & 0x1fffffu);
    cube.y = (uint32_t)(place >> 21 & 0x1fffffu);
    cube.z = (uint32_t)(place >> 42);
    cube.height = height;
    return cube;
}

/* Rows of a height that are there, of those wanted. */
VXD_DAG_DEVICE uint32_t vxd_dag_rows_here(uint64_t n_wanted, uint32_t begin,
                                          uint32_t capacity)
{
    return n_wanted < capacity - begin ? (uint32_t)n_wanted : capacity - begin;
}

/* Down ------------------------------------------------------------------------------------ */

/* Where the rows of the height that is opened are, and where those below begin. */
struct vxd_dag_level {
    int height;
    uint32_t cubes;
    uint32_t n_cubes;
    uint32_t pairs;
    uint32_t n_pairs;
};

/* How many cubes, or pairs, a row stands for. */
VXD_DAG_DEVICE uint64_t vxd_dag_weight(const uint64_t *weights, uint64_t row)
{
    return weights == NULL ? 1 : weights[row];
}

VXD_DAG_DEVICE void vxd_dag_add_times(struct vxd_dag_change *sum,
                                      const struct vxd_dag_change *change,
                                      uint64_t weight)
{
    sum->n_added += change->n_added * weight;
    sum->n_removed += change->n_removed * weight;
    sum->n_changed += change->n_changed * weight;
    sum->n_freed += change->n_freed * weight;
}

/* Adds a pair to what changed, or says that it has to be a row. */
VXD_DAG_DEVICE bool vxd_dag_pair_is_open(const struct vxd_dag_pass *pass, uint32_t from,
                                         uint32_t to, int height, uint64_t weight,
                                         struct vxd_dag_change *sum)
{
    struct vxd_dag_change change;

    if (!vxd_dag_change_at_once(&pass->view, from, to, height, &change)) {
        return true;
    }
    vxd_dag_add_times(sum, &change, weight);
    return false;
}

VXD_DAG_DEVICE void vxd_dag_pair_put(const struct vxd_dag_pass *pass, uint64_t row,
                                     uint32_t from, uint32_t to, uint64_t weight)
{
    if (row < pass->pairs_capacity) {
        pass->pairs[row] = (uint64_t)from << 32 | to;
        if (pass->pair_weights != NULL) {
            pass->pair_weights[row] = weight;
        }
    } else {
        vxd_dag_raise(pass, VXD_DAG_NO_PAIRS);
    }
}

/* The child of an open cube: what becomes of it, its state where it is open. */
template <class Editor> struct vxd_dag_visited {
    struct vxd_dag_cube cube;
    uint32_t old;
    uint32_t ref;
    bool is_open;
    typename Editor::state state;
};

template <class Editor>
VXD_DAG_DEVICE void vxd_dag_visit(const struct vxd_dag_pass *pass, const Editor &editor,
                                  struct vxd_dag_visited<Editor> *at)
{
    uint32_t uniform = VXD_DAG_EMPTY;
    enum vxd_dag_visit visit =
        editor.visit(&pass->view, &at->cube, at->old, &at->state, &uniform);

    at->is_open = visit == VXD_DAG_DESCEND;
    at->ref = visit == VXD_DAG_SET ? uniform : at->old;
}

/* The child that this one, number `child`, is equal to, or VXD_DAG_NO_CHILD: then it stands for
 * all that come after. Records are whole before their slot tells of them. */
template <class Editor>
VXD_DAG_STEP uint32_t vxd_dag_find_like(const struct vxd_dag_pass *pass,
                                        const Editor &editor,
                                        const struct vxd_dag_visited<Editor> *at,
                                        uint32_t child)
{
    const struct vxd_dag_signs *signs = &pass->signs;
    uint64_t words[VXD_DAG_SIGN_WORDS];
    const int n = 1 + editor.sign(&at->cube, &at->state, words + 1);
    uint64_t record;
    uint64_t hash = 0;

    if (n == 1) {
        return VXD_DAG_NO_CHILD;
    }
    record = vxd_dag_atomic_add(&pass->state->n_signs, 1);
    if (record >= signs->n) {
        return VXD_DAG_NO_CHILD;
    }
    words[0] = (uint64_t)at->old << 32 | (uint64_t)at->cube.height << 8 | (uint64_t)n;
    for (int i = 0; i < n; i++) {
        signs->records[record * VXD_DAG_SIGN_WORDS + (uint64_t)i] = words[i];
        hash = vxd_dag_fold(hash ^ words[i], 0xa0761d6478bd642fULL);
    }
    signs->records[record * VXD_DAG_SIGN_WORDS + VXD_DAG_SIGN_WORDS - 1] = child;
    for (int probe = 0; probe < VXD_DAG_SIGN_PROBES; probe++) {
        uint32_t *slot = &signs->slots[(hash + (uint64_t)probe) & (2 * signs->n - 1)];
        uint32_t seen = vxd_dag_load_published(slot);
        const uint64_t *other;
        bool is_equal = true;

        seen = seen != 0 ? seen : vxd_dag_publish(slot, (uint32_t)record + 1);
        if (seen == 0) {
            break;
        }
        other = signs->records + (uint64_t)(seen - 1) * VXD_DAG_SIGN_WORDS;
        for (int i = 0; i < n && is_equal; i++) {
            is_equal = vxd_dag_load_now64(&other[i]) == words[i];
        }
        if (is_equal) {
            return (uint32_t)vxd_dag_load_now64(&other[VXD_DAG_SIGN_WORDS - 1]);
        }
    }
    return VXD_DAG_NO_CHILD;
}

/* After that and a barrier: children that are equal to others take their rows, which stand for
 * so many more. */
VXD_DAG_STEP void vxd_dag_join_likes(const struct vxd_dag_pass *pass,
                                     const struct vxd_dag_team *team,
                                     const struct vxd_dag_level *level)
{
    const struct vxd_dag_cube_rows *rows = &pass->cubes;
    const uint64_t n = (uint64_t)level->n_cubes * 8;

    /* Rows that had no room are not there. */
    if (vxd_dag_has_fault(pass)) {
        return;
    }
    for (uint64_t i = (uint64_t)team->first + team->thread; i < n; i += team->size) {
        const uint64_t child = (uint64_t)level->cubes * 8 + i;
        uint32_t *word = &rows->items.words[child / 8 * 9 + 1 + child % 8];
        uint32_t row;

        if (rows->opens[child] == VXD_DAG_IS_LIKE) {
            row = rows->items.words[(uint64_t)(*word / 8) * 9 + 1 + *word % 8];
            *word = row;
            rows->opens[child] = VXD_DAG_IS_ROW;
            (void)vxd_dag_atomic_add(&rows->weights[row], rows->weights[child / 8]);
        }
    }
}

/* Opens the cubes of a height: by all threads of the team. */
template <class Editor>
VXD_DAG_STEP void
vxd_dag_open_cubes(const struct vxd_dag_pass *pass, const Editor &editor,
                   const struct vxd_dag_team *team, const struct vxd_dag_level *level,
                   struct vxd_dag_change *change)
{
    typedef typename Editor::state state_t;
    const struct vxd_dag_cube_rows *rows = &pass->cubes;
    const int below = level->height - 1;
    const struct vxd_dag_cube_rows *to =
        below == VXD_DAG_LEAF_HEIGHT ? &pass->leaves : &pass->cubes;
    const uint32_t to_begin =
        below == VXD_DAG_LEAF_HEIGHT ? 0 : level->cubes + level->n_cubes;
    const uint32_t pairs_begin = level->pairs + level->n_pairs;
    const uint64_t n = (uint64_t)level->n_cubes * 8;

    for (uint64_t first = team->first; first < n; first += team->size) {
        const uint64_t i = first + team->thread;
        const uint64_t row = level->cubes + i / 8;
        const int octant = (int)(i % 8);
        struct vxd_dag_visited<Editor> at;
        struct vxd_dag_rows_taken taken;
        uint64_t weight = 1;
        uint32_t like = VXD_DAG_NO_CHILD;
        bool is_pair = false;

        at.is_open = false;
        if (i < n) {
            const struct vxd_dag_cube cube =
                vxd_dag_cube_at(rows->places[row], level->height);
            const state_t *state = (const state_t *)(const void *)rows->states + row;

            at.cube = vxd_dag_cube_child(&cube, octant);
            at.old = vxd_dag_below(&pass->view, rows->olds[row], octant);
            editor.child(&cube, state, octant, &at.state);
            vxd_dag_visit(pass, editor, &at);
            weight = vxd_dag_weight(rows->weights, row);
            is_pair = pass->counts_changes && !at.is_open && at.ref != at.old &&
                      vxd_dag_pair_is_open(pass, at.old, at.ref, below, weight, change);
            if (at.is_open && pass->signs.n > 0 && below > VXD_DAG_LEAF_HEIGHT) {
                like = vxd_dag_find_like(pass, editor, &at,
                                         (uint32_t)(row * 8 + (uint32_t)octant));
            }
            rows->items.words[row * 9 + 1 + (uint32_t)octant] =
                like != VXD_DAG_NO_CHILD ? like : at.ref;
            rows->opens[row * 8 + (uint32_t)octant] =
                (uint8_t)(like != VXD_DAG_NO_CHILD ? VXD_DAG_IS_LIKE
                          : at.is_open             ? VXD_DAG_IS_ROW
                                                   : VXD_DAG_IS_REF);
            at.is_open = at.is_open && like == VXD_DAG_NO_CHILD;
        }
        taken = vxd_dag_block_take(&pass->state->n_cubes[below], at.is_open,
                                   &pass->state->n_pairs[below], is_pair);
        if (at.is_open && taken.a < to->capacity - to_begin) {
            const uint64_t child = to_begin + taken.a;

            rows->items.words[row * 9 + 1 + (uint32_t)octant] = (uint32_t)child;
            to->places[child] = vxd_dag_place_of(&at.cube);
            to->olds[child] = at.old;
            ((state_t *)(void *)to->states)[child] = at.state;
            if (to->weights != NULL) {
                to->weights[child] = weight;
            }
        } else if (at.is_open) {
            vxd_dag_raise(pass, below == VXD_DAG_LEAF_HEIGHT ? VXD_DAG_NO_LEAVES
                                                             : VXD_DAG_NO_CUBES);
        }
        if (is_pair) {
            vxd_dag_pair_put(pass, pairs_begin + taken.b, at.old, at.ref, weight);
        }
    }
}

/* Opens the pairs of a height, likewise. */
VXD_DAG_STEP void vxd_dag_open_pairs(const struct vxd_dag_pass *pass,
                                     const struct vxd_dag_team *team,
                                     const struct vxd_dag_level *level,
                                     struct vxd_dag_change *change)
{
    const int below = level->height - 1;
    const uint64_t n = (uint64_t)level->n_pairs * 8;
    const uint32_t begin = level->pairs + level->n_pairs;

    for (uint64_t first = team->first; first < n; first += team->size) {
        const uint64_t i = first + team->thread;
        struct vxd_dag_rows_taken taken;
        uint32_t from = VXD_DAG_EMPTY;
        uint32_t to = VXD_DAG_EMPTY;
        uint64_t weight = 1;
        bool is_open = false;

        if (i < n) {
            const uint64_t pair = pass->pairs[level->pairs + i / 8];

            from = vxd_dag_below(&pass->view, (uint32_t)(pair >> 32), (int)(i % 8));
            to = vxd_dag_below(&pass->view, (uint32_t)pair, (int)(i % 8));
            weight = vxd_dag_weight(pass->pair_weights, level->pairs + i / 8);
            is_open = vxd_dag_pair_is_open(pass, from, to, below, weight, change);
        }
        taken = vxd_dag_block_take(&pass->state->n_pairs[below], is_open,
                                   &pass->state->n_pairs[below], false);
        if (is_open) {
            vxd_dag_pair_put(pass, begin + taken.a, from, to, weight);
        }
    }
}

/* The next height, once the team has opened this one and met. */
VXD_DAG_DEVICE void vxd_dag_level_next(const struct vxd_dag_pass *pass,
                                       struct vxd_dag_level *level)
{
    level->cubes += level->n_cubes;
    level->pairs += level->n_pairs;
    level->height--;
    level->n_cubes =
        level->height == VXD_DAG_LEAF_HEIGHT
            ? 0
            : vxd_dag_rows_here(vxd_dag_load_now64(&pass->state->n_cubes[level->height]),
                                level->cubes, pass->cubes.capacity);
    level->n_pairs =
        vxd_dag_rows_here(vxd_dag_load_now64(&pass->state->n_pairs[level->height]),
                          level->pairs, pass->pairs_capacity);
}

/* The height above, where no fault is; after the highest one nothing. */
VXD_DAG_DEVICE void vxd_dag_level_back(const struct vxd_dag_pass *pass,
                                       struct vxd_dag_level *level)
{
    level->height++;
    if (level->height <= pass->view.depth) {
        level->n_cubes =
            (uint32_t)vxd_dag_load_now64(&pass->state->n_cubes[level->height]);
        level->cubes -= level->n_cubes;
    }
}

VXD_DAG_DEVICE struct vxd_dag_level vxd_dag_level_top(const struct vxd_dag_pass *pass)
{
    const int depth = pass->view.depth;
    struct vxd_dag_level level;

    level.height = depth;
    level.cubes = 0;
    level.pairs = 0;
    level.n_cubes = vxd_dag_rows_here(vxd_dag_load_now64(&pass->state->n_cubes[depth]), 0,
                                      pass->cubes.capacity);
    level.n_pairs = vxd_dag_rows_here(vxd_dag_load_now64(&pass->state->n_pairs[depth]), 0,
                                      pass->pairs_capacity);
    return level;
}

/* The root's cube, by one thread. */
template <class Editor>
VXD_DAG_STEP void vxd_dag_open_root(const struct vxd_dag_pass *pass, const Editor &editor,
                                    struct vxd_dag_change *change)
{
    typedef typename Editor::state state_t;
    struct vxd_dag_visited<Editor> at;

    at.cube.x = 0;
    at.cube.y = 0;
    at.cube.z = 0;
    at.cube.height = pass->view.depth;
    at.old = pass->progress->root;
    editor.begin(&pass->view, at.old, &at.state);
    vxd_dag_visit(pass, editor, &at);
    pass->state->is_open = at.is_open ? 1 : 0;
    pass->state->root = at.ref;
    if (at.is_open) {
        pass->cubes.places[0] = 0;
        pass->cubes.olds[0] = at.old;
        ((state_t *)(void *)pass->cubes.states)[0] = at.state;
        if (pass->cubes.weights != NULL) {
            pass->cubes.weights[0] = 1;
        }
        pass->state->n_cubes[at.cube.height] = 1;
    } else if (pass->counts_changes &&
               vxd_dag_pair_is_open(pass, at.old, at.ref, at.cube.height, 1, change)) {
        vxd_dag_pair_put(pass, 0, at.old, at.ref, 1);
        pass->state->n_pairs[at.cube.height] = 1;
    }
}

template <class Editor>
VXD_DAG_DEVICE void
vxd_dag_open_level(const struct vxd_dag_pass *pass, const Editor &editor,
                   const struct vxd_dag_team *team, struct vxd_dag_level *level,
                   struct vxd_dag_change *change)
{
    vxd_dag_open_cubes(pass, editor, team, level, change);
    vxd_dag_open_pairs(pass, team, level, change);
    vxd_dag_team_sync(team);
    if (pass->signs.n > 0) {
        vxd_dag_join_likes(pass, team, level);
        vxd_dag_team_sync(team);
    }
    vxd_dag_level_next(pass, level);
}

/* From the root to the leaves. */
template <class Editor>
static __device__ void vxd_dag_go_down(const struct vxd_dag_pass *pass,
                                       const Editor &editor,
                                       struct vxd_dag_change *change)
{
    const struct vxd_dag_team grid = vxd_dag_team_of_grid();
    struct vxd_dag_level level;

    if (vxd_dag_is_first_block()) {
        const struct vxd_dag_team block = vxd_dag_team_of_block();

        if (block.thread == 0) {
            vxd_dag_open_root(pass, editor, change);
        }
        vxd_dag_team_sync(&block);
        level = vxd_dag_level_top(pass);
        while (level.height > VXD_DAG_LEAF_HEIGHT && level.n_cubes <= VXD_DAG_FEW_ROWS &&
               level.n_pairs <= VXD_DAG_FEW_ROWS) {
            vxd_dag_open_level(pass, editor, &block, &level, change);
        }
        if (block.thread == 0) {
            pass->state->grid_height = level.height;
        }
    }
    vxd_dag_team_sync(&grid);
    level = vxd_dag_level_top(pass);
    while (level.height > (int)vxd_dag_load_now(&pass->state->grid_height)) {
        vxd_dag_level_next(pass, &level);
    }
    while (level.height > VXD_DAG_LEAF_HEIGHT) {
        vxd_dag_open_level(pass, editor, &grid, &level, change);
    }
}

#endif
