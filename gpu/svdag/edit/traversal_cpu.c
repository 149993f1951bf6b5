// SPDX-License-Identifier: Apache-2.0
/* Depth first through one cube, with a stack of frames by height.
 *
 * A node is stored only if a child of it changed, and not when its last child is known: nodes of
 * a height wait until there are some, so that their lookups miss the cache together, and are
 * stored lowest heights first, as the higher ones hold their references. So do leaves that the
 * thread did not meet lately.
 *
 * Cubes that an editor calls equal (a wall cuts thousands the same way) are gone into once a thread,
 * as far as its memory of them reaches. */
#include "gpu/svdag/edit/traversal_cpu.h"

#include <string.h>

enum {
    VISITS_AT_ONCE = 4096,
    FIRST_HEIGHT = VXD_SVDAG_LEAF_HEIGHT + 1, /* of inner nodes */
    ALL_CHILDREN = 0xff
};

void vxd_svdag_walker_open(struct vxd_svdag_walker *walker, struct vxd_svdag *svdag)
{
    atomic_flag_clear(&walker->is_busy);
    walker->has_edit_memo = false;
    walker->writer = (struct vxd_svdag_writer){.svdag = svdag};
    walker->change = (struct vxd_svdag_change){0};
    walker->n_visits = 0;
    walker->n_leaves = 0;
    walker->memo.is_made = false;
}

/* Counts cubes that are looked at. */
static enum vxd_status count_visits(struct vxd_svdag_traversal *traversal,
                                    struct vxd_svdag_walker *walker, uint32_t n,
                                    struct vxd_err *err)
{
    uint32_t n_visits = walker->n_visits + n;

    walker->n_visits = n_visits;
    if (n_visits < VISITS_AT_ONCE) {
        return VXD_OK;
    }
    walker->n_visits = 0;
    if (atomic_fetch_add_explicit(&traversal->n_visits, n_visits, memory_order_relaxed) <
        traversal->svdag->max_visits) {
        return vxd_svdag_check_stop(traversal->svdag, err);
    }
    return vxd_fail(
        err, VXD_RESOURCE_EXHAUSTED, "max_visits",
        "the edit touches more than %llu regions of the scene; make its shapes "
        "smaller, or split it",
        (unsigned long long)traversal->svdag->max_visits);
}

/* Equal cubes ----------------------------------------------------------------------------- */

static void make_places(struct vxd_svdag_walker *walker)
{
    for (int i = 0; i < VXD_SVDAG_N_EDIT_MEMO; i++) {
        walker->edit_memo[i].edit_key.n_words = 0;
    }
    walker->has_edit_memo = true;
}

/* Makes a cube's signature and finds the place for it in the walker's memory, NULL where it
 * has none. */
static struct vxd_svdag_edit_memo_entry *
find_place(const struct vxd_svdag_traversal *traversal, struct vxd_svdag_walker *walker,
           struct vxd_svdag_frame *at)
{
    struct vxd_svdag_edit_key *edit_key = &at->edit_key;
    uint64_t hash;

    if (traversal->editor->edit_key == NULL) {
        return NULL;
    }
    edit_key->n_words = traversal->editor->edit_key(traversal->editor->args, &at->cube,
                                                    at->state, edit_key->words);
    if (edit_key->n_words == 0) {
        return NULL;
    }
    if (!walker->has_edit_memo) {
        make_places(walker);
    }
    edit_key->height = at->cube.height;
    edit_key->old = at->old;
    hash = (uint64_t)edit_key->height << 32 | edit_key->old;
    for (int i = 0; i < edit_key->n_words; i++) {
        hash = (hash ^ edit_key->words[i]) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32;
    }
    return &walker->edit_memo[hash % VXD_SVDAG_N_EDIT_MEMO];
}

static bool is_known(const struct vxd_svdag_edit_memo_entry *known,
                     const struct vxd_svdag_edit_key *edit_key)
{
    return known->edit_key.n_words == edit_key->n_words &&
           known->edit_key.height == edit_key->height &&
           known->edit_key.old == edit_key->old &&
           memcmp(known->edit_key.words, edit_key->words,
                  (size_t)edit_key->n_words * sizeof edit_key->words[0]) == 0;
}

/* True where an equal cube was gone into before: then it becomes the same. Otherwise notes
 * what it takes to remember it. */
static bool recall(const struct vxd_svdag_traversal *traversal,
                   struct vxd_svdag_walker *walker, struct vxd_svdag_frame *at)
{
    at->memo_entry = find_place(traversal, walker, at);
    if (at->memo_entry == NULL) {
        return false;
    }
    at->before = walker->change;
    if (!is_known(at->memo_entry, &at->edit_key)) {
        return false;
    }
    *at->ref = at->memo_entry->ref;
    vxd_svdag_change_sum(&walker->change, &at->memo_entry->change);
    return true;
}

static void remember(const struct vxd_svdag_walker *walker,
                     const struct vxd_svdag_frame *at)
{
    struct vxd_svdag_edit_memo_entry *known = at->memo_entry;

    known->edit_key = at->edit_key;
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
        struct vxd_svdag_lookup_key key = {leaf->hash, leaf->words, VXD_SVDAG_LEAF,
                                           leaf->n_words};

        status = vxd_svdag_put_hashed(&walker->writer, &key, VXD_SVDAG_LEAF_HEIGHT,
                                      leaf->ref, err);
    }
    return status;
}

/* *ref may come only with store_leaves. */
static enum vxd_status put_leaf(const struct vxd_svdag_traversal *traversal,
                                struct vxd_svdag_walker *walker,
                                const struct vxd_svdag_leaf *leaf, uint32_t *ref,
                                struct vxd_err *err)
{
    struct vxd_svdag_made_leaf *made;
    struct vxd_svdag_lookup_key key = {.kind = VXD_SVDAG_LEAF};
    enum vxd_status status = VXD_OK;

    if (walker->n_leaves == VXD_SVDAG_N_PENDING) {
        VXD_TRY(store_leaves(walker, err));
    }
    made = &walker->leaves[walker->n_leaves];
    VXD_TRY(vxd_svdag_leaf_make(&walker->writer, leaf, made->words, &made->n_words, ref,
                                err));
    if (made->n_words == 0) {
        return VXD_OK;
    }
    key.words = made->words;
    key.n_words = made->n_words;
    key.hash = vxd_svdag_hash(VXD_SVDAG_LEAF, made->words, made->n_words);
    if (!vxd_svdag_find_recent(&walker->writer, &key, ref)) {
        vxd_svdag_prefetch(traversal->svdag, key.hash);
        made->ref = ref;
        made->hash = key.hash;
        walker->n_leaves++;
    }
out:
    return status;
}

static enum vxd_status edit_leaf(const struct vxd_svdag_traversal *traversal,
                                 struct vxd_svdag_walker *walker,
                                 const struct vxd_svdag_cube *cube, uint32_t old,
                                 const union vxd_svdag_edit_state *state, uint32_t *ref,
                                 struct vxd_err *err)
{
    const struct vxd_svdag_editor *editor = traversal->editor;
    struct vxd_svdag_leaf before;
    struct vxd_svdag_leaf after;
    uint16_t values[64];

    vxd_svdag_leaf_split(traversal->view, old, values, &after);
    before = after;
    editor->leaf(editor->args, traversal->view, cube, state, &after);
    if (!vxd_svdag_change_add_edited(traversal->view, old, &before, &after,
                                     &walker->change)) {
        *ref = old;
        return VXD_OK;
    }
    return put_leaf(traversal, walker, &after, ref, err);
}

enum vxd_status vxd_svdag_traversal_visit(struct vxd_svdag_traversal *traversal,
                                          struct vxd_svdag_walker *walker,
                                          struct vxd_svdag_frame *at, bool *expands,
                                          struct vxd_err *err)
{
    const struct vxd_svdag_editor *editor = traversal->editor;
    uint32_t uniform = VXD_SVDAG_EMPTY;
    enum vxd_status status = count_visits(traversal, walker, 1, err);

    *expands = false;
    if (status != VXD_OK) {
        return status;
    }
    *at->ref = at->old;
    switch (editor->visit(editor->args, traversal->view, &at->cube, at->old, at->state,
                          &uniform)) {
    case VXD_SVDAG_KEEP:
        return VXD_OK;
    case VXD_SVDAG_SET:
        *at->ref = uniform;
        vxd_svdag_change_add(traversal->view, &walker->memo, at->old, uniform,
                             at->cube.height, &walker->change);
        return VXD_OK;
    case VXD_SVDAG_DESCEND:
        break;
    }
    if (at->cube.height == VXD_SVDAG_LEAF_HEIGHT) {
        return edit_leaf(traversal, walker, &at->cube, at->old, at->state, at->ref, err);
    }
    *expands = !recall(traversal, walker, at);
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

enum vxd_status vxd_svdag_traversal_reduce(const struct vxd_svdag_traversal *traversal,
                                           struct vxd_svdag_walker *walker, int height,
                                           const struct vxd_svdag_made *made,
                                           struct vxd_err *err)
{
    if (is_changed(traversal->view, made)) {
        return vxd_svdag_inner_put(&walker->writer, height, made->children, made->ref,
                                   err);
    }
    *made->ref = made->old;
    return VXD_OK;
}

/* Stores what waits at a height, below which nothing does. */
static enum vxd_status store_height(const struct vxd_svdag_traversal *traversal,
                                    struct vxd_svdag_walker *walker, int height,
                                    struct vxd_err *err)
{
    struct vxd_svdag_lookup_key key[VXD_SVDAG_N_PENDING];
    uint32_t words[VXD_SVDAG_N_PENDING][9];
    uint32_t *refs[VXD_SVDAG_N_PENDING];
    uint32_t n_made = walker->n_made[height];
    uint32_t n = 0;
    enum vxd_status status = VXD_OK;

    walker->n_made[height] = 0;
    for (uint32_t i = 0; i < n_made; i++) {
        const struct vxd_svdag_made *made = &walker->made[height][i];

        *made->ref = made->old;
        if (is_changed(traversal->view, made) &&
            vxd_svdag_inner_compose(traversal->view, height, made->children, words[n],
                                    made->ref)) {
            int n_words = vxd_svdag_inner_words(words[n]);
            uint64_t hash = vxd_svdag_hash(VXD_SVDAG_INNER, words[n], n_words);

            vxd_svdag_prefetch(traversal->svdag, hash);
            key[n] =
                (struct vxd_svdag_lookup_key){hash, words[n], VXD_SVDAG_INNER, n_words};
            refs[n++] = made->ref;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        VXD_TRY(vxd_svdag_put_hashed(&walker->writer, &key[i], height, refs[i], err));
    }
out:
    return status;
}

/* Stores what waits, up to a height, whose nodes' references are known then. */
static enum vxd_status store_made(const struct vxd_svdag_traversal *traversal,
                                  struct vxd_svdag_walker *walker, int height,
                                  struct vxd_err *err)
{
    enum vxd_status status = store_leaves(walker, err);

    for (int h = FIRST_HEIGHT; h <= height && status == VXD_OK; h++) {
        status = store_height(traversal, walker, h, err);
    }
    return status;
}

/* Sets children to the classes that the editor gave them, and counts what that changes. */
static void set_children(const struct vxd_svdag_traversal *traversal,
                         struct vxd_svdag_walker *walker,
                         const struct vxd_svdag_classes *classes, int height,
                         uint32_t children[8])
{
    struct vxd_svdag_change change = {0};
    uint32_t from = classes->uniform; /* from which that is the change */

    for (unsigned rest = classes->set; rest != 0; rest &= rest - 1) {
        uint32_t *child = &children[__builtin_ctz(rest)];

        if (*child != from) {
            from = *child;
            change = (struct vxd_svdag_change){0};
            vxd_svdag_change_add(traversal->view, &walker->memo, from, classes->uniform,
                                 height, &change);
        }
        vxd_svdag_change_sum(&walker->change, &change);
        *child = classes->uniform;
    }
}

/* Begins with the parts of a frame. */
static enum vxd_status expand_frame(struct vxd_svdag_traversal *traversal,
                                    struct vxd_svdag_walker *walker,
                                    struct vxd_svdag_frame *frame, struct vxd_err *err)
{
    const struct vxd_svdag_editor *editor = traversal->editor;
    int height = frame->cube.height;
    struct vxd_svdag_made *node;
    struct vxd_svdag_classes classes;
    enum vxd_status status = VXD_OK;

    if (walker->n_made[height] == VXD_SVDAG_N_PENDING) {
        VXD_TRY(store_made(traversal, walker, height, err));
    }
    node = &walker->made[height][walker->n_made[height]++];
    node->ref = frame->ref;
    node->old = frame->old;
    vxd_svdag_read_children(traversal->view, frame->old, node->children);
    frame->node = node;
    frame->relations = ALL_CHILDREN;
    frame->is_classified = editor->classify != NULL &&
                           editor->classify(editor->args, &frame->cube, frame->state,
                                            node->children, &classes);
    if (frame->is_classified) {
        VXD_TRY(count_visits(traversal, walker, 8, err));
        frame->relations = classes.expand;
        set_children(traversal, walker, &classes, height - 1, node->children);
    }
    frame->is_split = !frame->is_classified && editor->split != NULL;
    if (frame->is_split) {
        frame->relations =
            editor->split(editor->args, &frame->cube, frame->state, frame->child_states);
        VXD_TRY(count_visits(traversal, walker,
                             8 - (uint32_t)vxd_svdag_popc(frame->relations), err));
    }
out:
    return status;
}

/* Looks at the next part of a frame; where it is gone into (*is_open), `child` is its frame. */
static enum vxd_status next_child(struct vxd_svdag_traversal *traversal,
                                  struct vxd_svdag_walker *walker,
                                  struct vxd_svdag_frame *frame,
                                  struct vxd_svdag_frame *child, bool *expands,
                                  struct vxd_err *err)
{
    const struct vxd_svdag_editor *editor = traversal->editor;
    int octant = __builtin_ctz(frame->relations);

    frame->relations &= frame->relations - 1;
    child->cube = vxd_svdag_cube_child(&frame->cube, octant);
    child->ref = &frame->node->children[octant];
    child->old = *child->ref;
    if (frame->is_classified) {
        if (child->cube.height == VXD_SVDAG_LEAF_HEIGHT) {
            *expands = false;
            return edit_leaf(traversal, walker, &child->cube, child->old, frame->state,
                             child->ref, err);
        }
        child->state = frame->state;
        child->memo_entry = NULL;
        *expands = true;
        return VXD_OK;
    }
    child->state = frame->is_split ? &frame->child_states[octant] : &child->own;
    if (frame->is_split) {
        return vxd_svdag_traversal_visit(traversal, walker, child, expands, err);
    }
    if (editor->child == NULL) {
        child->own = *frame->state;
    } else {
        editor->child(editor->args, traversal->view, &frame->cube, frame->state, octant,
                      &child->own);
    }
    return vxd_svdag_traversal_visit(traversal, walker, child, expands, err);
}

enum vxd_status vxd_svdag_traversal_run(struct vxd_svdag_traversal *traversal,
                                        struct vxd_svdag_walker *walker,
                                        const struct vxd_svdag_cube *cube, uint32_t old,
                                        const union vxd_svdag_edit_state *state,
                                        uint32_t *ref, struct vxd_err *err)
{
    struct vxd_svdag_frame stack[VXD_SVDAG_N_HEIGHTS]; /* by height */
    struct vxd_svdag_frame *top = &stack[cube->height];
    struct vxd_svdag_frame *frame = top;
    bool expands;
    enum vxd_status status;

    memset(walker->n_made, 0, sizeof walker->n_made); /* of a cube that failed */
    walker->n_leaves = 0;
    top->cube = *cube;
    top->old = old;
    top->own = *state;
    top->state = &top->own;
    top->ref = ref;
    VXD_TRY(vxd_svdag_traversal_visit(traversal, walker, top, &expands, err));
    if (!expands) {
        return store_leaves(walker, err); /* it may be one */
    }
    VXD_TRY(expand_frame(traversal, walker, top, err));
    for (;;) {
        if (frame->relations != 0) {
            VXD_TRY(next_child(traversal, walker, frame, frame - 1, &expands, err));
            if (expands) {
                frame--;
                VXD_TRY(expand_frame(traversal, walker, frame, err));
            }
            continue;
        }
        if (atomic_load_explicit(&traversal->has_failed, memory_order_relaxed)) {
            return VXD_OK;
        }
        if (frame == top || frame->memo_entry != NULL) {
            VXD_TRY(store_made(traversal, walker, frame->cube.height, err));
        }
        if (frame->memo_entry != NULL) {
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
