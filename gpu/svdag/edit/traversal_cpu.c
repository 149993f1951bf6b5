// SPDX-License-Identifier: Apache-2.0
/* Depth first through one cube, with a stack of frames by height.
 *
 * A node is stored only if a child of it changed, and not when its last child is known: nodes of
 * a height wait until there are some, so that their lookups miss the cache together, and are
 * stored lowest heights first, as the higher ones hold their references. So do leaves that the
 * thread did not meet lately.
 *
 * Cubes that an editor calls equal (a wall cuts thousands alike) are gone into once a thread,
 * as far as its memory of them reaches. */
#include "gpu/svdag/edit/traversal_cpu.h"

#include <string.h>

enum {
    VISITS_AT_ONCE = 4096,
    FIRST_HEIGHT = VXD_SVDAG_LEAF_HEIGHT + 1, /* of inner nodes */
    ALL_OCTANTS = 0xff
};

void vxd_svdag_walker_open(struct vxd_svdag_walker *walker, struct vxd_svdag *svdag)
{
    atomic_flag_clear(&walker->is_busy);
    walker->has_signed = false;
    walker->writer = (struct vxd_svdag_writer){.svdag = svdag};
    walker->change = (struct vxd_svdag_change){0};
    walker->n_visits = 0;
    walker->n_leaves = 0;
    walker->memo.is_made = false;
}

/* Counts cubes that are looked at. */
static enum vxd_status count_visits(struct vxd_svdag_way *way,
                                    struct vxd_svdag_walker *walker, uint32_t n,
                                    struct vxd_err *err)
{
    uint32_t n_visits = walker->n_visits + n;

    walker->n_visits = n_visits;
    if (n_visits < VISITS_AT_ONCE) {
        return VXD_OK;
    }
    walker->n_visits = 0;
    if (atomic_fetch_add_explicit(&way->n_visits, n_visits, memory_order_relaxed) <
        way->svdag->max_visits) {
        return VXD_OK;
    }
    return vxd_fail(
        err, VXD_RESOURCE_EXHAUSTED, NULL,
        "the edit touches more than %llu regions of the scene; make its shapes "
        "smaller, or split it",
        (unsigned long long)way->svdag->max_visits);
}

/* Equal cubes ----------------------------------------------------------------------------- */

static void make_places(struct vxd_svdag_walker *walker)
{
    for (int i = 0; i < VXD_SVDAG_N_SIGNED; i++) {
        walker->places[i].signature.n_words = 0;
    }
    walker->has_signed = true;
}

/* Makes a cube's signature and finds the place for it in the walker's memory, NULL where it
 * has none. */
static struct vxd_svdag_signed *find_place(const struct vxd_svdag_way *way,
                                           struct vxd_svdag_walker *walker,
                                           struct vxd_svdag_frame *at)
{
    struct vxd_svdag_signature *signature = &at->signature;
    uint64_t hash;

    if (way->editor->signature == NULL) {
        return NULL;
    }
    signature->n_words =
        way->editor->signature(way->editor->args, &at->cube, at->state, signature->words);
    if (signature->n_words == 0) {
        return NULL;
    }
    if (!walker->has_signed) {
        make_places(walker);
    }
    signature->height = at->cube.height;
    signature->old = at->old;
    hash = (uint64_t)signature->height << 32 | signature->old;
    for (int i = 0; i < signature->n_words; i++) {
        hash = (hash ^ signature->words[i]) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32;
    }
    return &walker->places[hash % VXD_SVDAG_N_SIGNED];
}

static bool is_known(const struct vxd_svdag_signed *known,
                     const struct vxd_svdag_signature *signature)
{
    return known->signature.n_words == signature->n_words &&
           known->signature.height == signature->height &&
           known->signature.old == signature->old &&
           memcmp(known->signature.words, signature->words,
                  (size_t)signature->n_words * sizeof signature->words[0]) == 0;
}

/* True where an equal cube was gone into before: then it becomes the same. Otherwise notes
 * what it takes to remember it. */
static bool recall(const struct vxd_svdag_way *way, struct vxd_svdag_walker *walker,
                   struct vxd_svdag_frame *at)
{
    at->place = find_place(way, walker, at);
    if (at->place == NULL) {
        return false;
    }
    at->before = walker->change;
    if (!is_known(at->place, &at->signature)) {
        return false;
    }
    *at->ref = at->place->ref;
    vxd_svdag_change_sum(&walker->change, &at->place->change);
    return true;
}

static void remember(const struct vxd_svdag_walker *walker,
                     const struct vxd_svdag_frame *at)
{
    struct vxd_svdag_signed *known = at->place;

    known->signature = at->signature;
    known->ref = *at->ref;
    known->change.n_added = walker->change.n_added - at->before.n_added;
    known->change.n_removed = walker->change.n_removed - at->before.n_removed;
    known->change.n_changed = walker->change.n_changed - at->before.n_changed;
    known->change.n_freed = walker->change.n_freed - at->before.n_freed;
}

/* Visits ---------------------------------------------------------------------------------- */

static enum vxd_status store_leaves(struct vxd_svdag_walker *walker, struct vxd_err *err)
{
    uint32_t n = walker->n_leaves;
    enum vxd_status status = VXD_OK;

    walker->n_leaves = 0;
    for (uint32_t i = 0; i < n && status == VXD_OK; i++) {
        const struct vxd_svdag_made_leaf *leaf = &walker->leaves[i];
        struct vxd_svdag_wanted wanted = {leaf->hash, leaf->words, VXD_SVDAG_LEAF,
                                          leaf->n_words};

        status = vxd_svdag_put_hashed(&walker->writer, &wanted, VXD_SVDAG_LEAF_HEIGHT,
                                      leaf->ref, err);
    }
    return status;
}

/* *ref may come only with store_leaves. */
static enum vxd_status put_leaf(const struct vxd_svdag_way *way,
                                struct vxd_svdag_walker *walker,
                                const struct vxd_svdag_leaf *leaf, uint32_t *ref,
                                struct vxd_err *err)
{
    struct vxd_svdag_made_leaf *made;
    struct vxd_svdag_wanted wanted = {.kind = VXD_SVDAG_LEAF};
    enum vxd_status status = VXD_OK;

    if (walker->n_leaves == VXD_SVDAG_N_CLOSED) {
        VXD_TRY(store_leaves(walker, err));
    }
    made = &walker->leaves[walker->n_leaves];
    VXD_TRY(vxd_svdag_leaf_make(&walker->writer, leaf, made->words, &made->n_words, ref,
                                err));
    if (made->n_words == 0) {
        return VXD_OK;
    }
    wanted.words = made->words;
    wanted.n_words = made->n_words;
    wanted.hash = vxd_svdag_hash(VXD_SVDAG_LEAF, made->words, made->n_words);
    if (!vxd_svdag_has_met(&walker->writer, &wanted, ref)) {
        vxd_svdag_prefetch(way->svdag, wanted.hash);
        made->ref = ref;
        made->hash = wanted.hash;
        walker->n_leaves++;
    }
out:
    return status;
}

static enum vxd_status edit_leaf(const struct vxd_svdag_way *way,
                                 struct vxd_svdag_walker *walker,
                                 const struct vxd_svdag_cube *cube, uint32_t old,
                                 const union vxd_svdag_edit_state *state, uint32_t *ref,
                                 struct vxd_err *err)
{
    const struct vxd_svdag_editor *editor = way->editor;
    struct vxd_svdag_leaf before;
    struct vxd_svdag_leaf after;
    uint16_t values[64];

    vxd_svdag_leaf_split(way->view, old, values, &after);
    before = after;
    editor->leaf(editor->args, way->view, cube, state, &after);
    if (!vxd_svdag_change_add_edited(way->view, old, &before, &after, &walker->change)) {
        *ref = old;
        return VXD_OK;
    }
    return put_leaf(way, walker, &after, ref, err);
}

enum vxd_status vxd_svdag_way_visit(struct vxd_svdag_way *way,
                                    struct vxd_svdag_walker *walker,
                                    struct vxd_svdag_frame *at, bool *is_open,
                                    struct vxd_err *err)
{
    const struct vxd_svdag_editor *editor = way->editor;
    uint32_t uniform = VXD_SVDAG_EMPTY;
    enum vxd_status status = count_visits(way, walker, 1, err);

    *is_open = false;
    if (status != VXD_OK) {
        return status;
    }
    *at->ref = at->old;
    switch (
        editor->visit(editor->args, way->view, &at->cube, at->old, at->state, &uniform)) {
    case VXD_SVDAG_KEEP:
        return VXD_OK;
    case VXD_SVDAG_SET:
        *at->ref = uniform;
        vxd_svdag_change_add(way->view, &walker->memo, at->old, uniform, at->cube.height,
                             &walker->change);
        return VXD_OK;
    case VXD_SVDAG_DESCEND:
        break;
    }
    if (at->cube.height == VXD_SVDAG_LEAF_HEIGHT) {
        return edit_leaf(way, walker, &at->cube, at->old, at->state, at->ref, err);
    }
    *is_open = !recall(way, walker, at);
    return VXD_OK;
}

/* Nodes ----------------------------------------------------------------------------------- */

void vxd_svdag_read_children(const struct vxd_svdag_view *view, uint32_t ref,
                             uint32_t children[8])
{
    struct vxd_svdag_item item;
    uint32_t mask;
    int n = 1;

    if (!vxd_svdag_is_node(ref)) {
        for (int octant = 0; octant < 8; octant++) {
            children[octant] = ref;
        }
        return;
    }
    item.words = vxd_svdag_words(view, ref);
    mask = item.words[0] & 0xffu;
    item = vxd_svdag_item_at(view, ref, vxd_svdag_inner_words(item.words));
    for (int octant = 0; octant < 8; octant++) {
        children[octant] = (mask >> octant & 1u) == 0 ? VXD_SVDAG_EMPTY
                                                      : vxd_svdag_item_word(&item, n++);
    }
}

static bool is_changed(const struct vxd_svdag_view *view,
                       const struct vxd_svdag_made *made)
{
    uint32_t before[8];

    vxd_svdag_read_children(view, made->old, before);
    return memcmp(before, made->children, sizeof before) != 0;
}

enum vxd_status vxd_svdag_way_close(const struct vxd_svdag_way *way,
                                    struct vxd_svdag_walker *walker, int height,
                                    const struct vxd_svdag_made *made,
                                    struct vxd_err *err)
{
    if (is_changed(way->view, made)) {
        return vxd_svdag_inner_put(&walker->writer, height, made->children, made->ref,
                                   err);
    }
    *made->ref = made->old;
    return VXD_OK;
}

/* Stores what waits at a height, below which nothing does. */
static enum vxd_status store_height(const struct vxd_svdag_way *way,
                                    struct vxd_svdag_walker *walker, int height,
                                    struct vxd_err *err)
{
    struct vxd_svdag_wanted wanted[VXD_SVDAG_N_CLOSED];
    uint32_t words[VXD_SVDAG_N_CLOSED][9];
    uint32_t *refs[VXD_SVDAG_N_CLOSED];
    uint32_t n_made = walker->n_made[height];
    uint32_t n = 0;
    enum vxd_status status = VXD_OK;

    walker->n_made[height] = 0;
    for (uint32_t i = 0; i < n_made; i++) {
        const struct vxd_svdag_made *made = &walker->made[height][i];

        *made->ref = made->old;
        if (is_changed(way->view, made) &&
            vxd_svdag_inner_compose(way->view, height, made->children, words[n],
                                    made->ref)) {
            int n_words = vxd_svdag_inner_words(words[n]);
            uint64_t hash = vxd_svdag_hash(VXD_SVDAG_INNER, words[n], n_words);

            vxd_svdag_prefetch(way->svdag, hash);
            wanted[n] =
                (struct vxd_svdag_wanted){hash, words[n], VXD_SVDAG_INNER, n_words};
            refs[n++] = made->ref;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        VXD_TRY(vxd_svdag_put_hashed(&walker->writer, &wanted[i], height, refs[i], err));
    }
out:
    return status;
}

/* Stores what waits, up to a height, whose nodes' references are known then. */
static enum vxd_status store_made(const struct vxd_svdag_way *way,
                                  struct vxd_svdag_walker *walker, int height,
                                  struct vxd_err *err)
{
    enum vxd_status status = store_leaves(walker, err);

    for (int h = FIRST_HEIGHT; h <= height && status == VXD_OK; h++) {
        status = store_height(way, walker, h, err);
    }
    return status;
}

/* Sets parts to what the editor told, and counts what that changes. */
static void set_parts(const struct vxd_svdag_way *way, struct vxd_svdag_walker *walker,
                      const struct vxd_svdag_told *told, int height, uint32_t children[8])
{
    struct vxd_svdag_change change = {0};
    uint32_t from = told->uniform; /* from which that is the change */

    for (unsigned rest = told->set; rest != 0; rest &= rest - 1) {
        uint32_t *child = &children[__builtin_ctz(rest)];

        if (*child != from) {
            from = *child;
            change = (struct vxd_svdag_change){0};
            vxd_svdag_change_add(way->view, &walker->memo, from, told->uniform, height,
                                 &change);
        }
        vxd_svdag_change_sum(&walker->change, &change);
        *child = told->uniform;
    }
}

/* Begins with the parts of a frame. */
static enum vxd_status open_frame(struct vxd_svdag_way *way,
                                  struct vxd_svdag_walker *walker,
                                  struct vxd_svdag_frame *frame, struct vxd_err *err)
{
    const struct vxd_svdag_editor *editor = way->editor;
    int height = frame->cube.height;
    struct vxd_svdag_made *node;
    struct vxd_svdag_told told;
    enum vxd_status status = VXD_OK;

    if (walker->n_made[height] == VXD_SVDAG_N_CLOSED) {
        VXD_TRY(store_made(way, walker, height, err));
    }
    node = &walker->made[height][walker->n_made[height]++];
    node->ref = frame->ref;
    node->old = frame->old;
    vxd_svdag_read_children(way->view, frame->old, node->children);
    frame->node = node;
    frame->octants = ALL_OCTANTS;
    frame->is_told = editor->visit_parts != NULL &&
                     editor->visit_parts(editor->args, &frame->cube, frame->state,
                                         node->children, &told);
    if (frame->is_told) {
        VXD_TRY(count_visits(way, walker, 8, err));
        frame->octants = told.open;
        set_parts(way, walker, &told, height - 1, node->children);
    }
    frame->is_split = !frame->is_told && editor->split != NULL;
    if (frame->is_split) {
        frame->octants =
            editor->split(editor->args, &frame->cube, frame->state, frame->parts);
        VXD_TRY(
            count_visits(way, walker, 8 - (uint32_t)vxd_svdag_popc(frame->octants), err));
    }
out:
    return status;
}

/* Looks at the next part of a frame; where it is gone into (*is_open), `child` is its frame. */
static enum vxd_status next_part(struct vxd_svdag_way *way,
                                 struct vxd_svdag_walker *walker,
                                 struct vxd_svdag_frame *frame,
                                 struct vxd_svdag_frame *child, bool *is_open,
                                 struct vxd_err *err)
{
    const struct vxd_svdag_editor *editor = way->editor;
    int octant = __builtin_ctz(frame->octants);

    frame->octants &= frame->octants - 1;
    child->cube = vxd_svdag_cube_child(&frame->cube, octant);
    child->ref = &frame->node->children[octant];
    child->old = *child->ref;
    if (frame->is_told) {
        if (child->cube.height == VXD_SVDAG_LEAF_HEIGHT) {
            *is_open = false;
            return edit_leaf(way, walker, &child->cube, child->old, frame->state,
                             child->ref, err);
        }
        child->state = frame->state;
        child->place = NULL;
        *is_open = true;
        return VXD_OK;
    }
    child->state = frame->is_split ? &frame->parts[octant] : &child->own;
    if (frame->is_split) {
        return vxd_svdag_way_visit(way, walker, child, is_open, err);
    }
    if (editor->child == NULL) {
        child->own = *frame->state;
    } else {
        editor->child(editor->args, way->view, &frame->cube, frame->state, octant,
                      &child->own);
    }
    return vxd_svdag_way_visit(way, walker, child, is_open, err);
}

enum vxd_status vxd_svdag_way_run(struct vxd_svdag_way *way,
                                  struct vxd_svdag_walker *walker,
                                  const struct vxd_svdag_cube *cube, uint32_t old,
                                  const union vxd_svdag_edit_state *state, uint32_t *ref,
                                  struct vxd_err *err)
{
    struct vxd_svdag_frame stack[VXD_SVDAG_N_HEIGHTS]; /* by height */
    struct vxd_svdag_frame *top = &stack[cube->height];
    struct vxd_svdag_frame *frame = top;
    bool is_open;
    enum vxd_status status;

    memset(walker->n_made, 0, sizeof walker->n_made); /* of a cube that failed */
    walker->n_leaves = 0;
    top->cube = *cube;
    top->old = old;
    top->own = *state;
    top->state = &top->own;
    top->ref = ref;
    VXD_TRY(vxd_svdag_way_visit(way, walker, top, &is_open, err));
    if (!is_open) {
        return store_leaves(walker, err); /* it may be one */
    }
    VXD_TRY(open_frame(way, walker, top, err));
    for (;;) {
        if (frame->octants != 0) {
            VXD_TRY(next_part(way, walker, frame, frame - 1, &is_open, err));
            if (is_open) {
                frame--;
                VXD_TRY(open_frame(way, walker, frame, err));
            }
            continue;
        }
        if (atomic_load_explicit(&way->has_failed, memory_order_relaxed)) {
            return VXD_OK;
        }
        if (frame == top || frame->place != NULL) {
            VXD_TRY(store_made(way, walker, frame->cube.height, err));
        }
        if (frame->place != NULL) {
            remember(walker, frame);
        }
        if (frame == top) {
            return VXD_OK;
        }
        frame++;
    }
out:
    return status;
}
