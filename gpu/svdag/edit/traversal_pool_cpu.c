// SPDX-License-Identifier: Apache-2.0
/* Goes over a tree with an editor, on the pool.
 *
 * The upper levels are visited one after the other, serially, until there are enough cubes to
 * share out (or they are small); then each is a task, gone through depth first (way_cpu.c);
 * then the upper levels are closed from below. Tasks take their order from nothing: which
 * thread does what changes addresses and lookups, not results. */
#include <string.h>

#include "gpu/svdag/edit/traversal_cpu.h"

enum {
    CUBES_PER_THREAD = 64,
    SMALL_HEIGHT = 6 /* cubes of this height are tasks however few they are */
};

/* A cube of the upper levels. */
struct node {
    struct vxd_svdag_cube cube;
    uint32_t old;
    uint32_t ref;       /* what it becomes, once known */
    size_t first_child; /* in the level below */
    bool has_children;
    union vxd_svdag_edit_state state;
};

struct level {
    struct vxd_buffer memory;
    struct node *child_states;
    size_t n;
};

struct build {
    struct vxd_svdag_traversal traversal;
    struct level levels[VXD_SVDAG_N_HEIGHTS]; /* by height */
    struct level *tasks;
    size_t n_done; /* of them, by the caller alone */
    struct vxd_buffer memory;
    struct vxd_svdag_walker *walkers;
    int n_walkers;
    enum vxd_status status; /* of the first that failed */
    struct vxd_err err;
};

/* A walker that nobody uses: there is one for each thread that may run tasks. */
static struct vxd_svdag_walker *take_walker(struct build *build)
{
    for (int i = 0;; i = i + 1 < build->n_walkers ? i + 1 : 0) {
        if (!atomic_flag_test_and_set_explicit(&build->walkers[i].is_busy,
                                               memory_order_acquire)) {
            return &build->walkers[i];
        }
    }
}

static void run_tasks(void *args, size_t begin, size_t end)
{
    struct build *build = args;
    struct vxd_svdag_traversal *traversal = &build->traversal;
    struct vxd_svdag_walker *walker = take_walker(build);
    struct vxd_err err = {0};

    for (size_t i = begin;
         i < end && !atomic_load_explicit(&traversal->has_failed, memory_order_relaxed);
         i++) {
        struct node *node = &build->tasks->child_states[build->n_done + i];
        enum vxd_status status = vxd_svdag_traversal_run(
            traversal, walker, &node->cube, node->old, &node->state, &node->ref, &err);

        if (status != VXD_OK && !atomic_exchange_explicit(&traversal->has_failed, true,
                                                          memory_order_relaxed)) {
            build->status = status;
            build->err = err;
        }
    }
    atomic_flag_clear_explicit(&walker->is_busy, memory_order_release);
}

/* Waking a thread takes longer than many an edit: while cubes are small and few are looked at,
 * the caller runs tasks alone; then whoever has time. */
static void run_all(struct build *build, struct vxd_pool *pool, int height)
{
    size_t n = build->tasks->n;

    while (height <= SMALL_HEIGHT && build->n_done < n &&
           atomic_load_explicit(&build->traversal.n_visits, memory_order_relaxed) == 0) {
        run_tasks(build, 0, 1);
        build->n_done++;
    }
    vxd_parallel_for(pool, n - build->n_done, 1, run_tasks, build);
}

/* Upper levels ---------------------------------------------------------------------------- */

static enum vxd_status level_alloc(struct build *build, int height, size_t n,
                                   struct vxd_err *err)
{
    struct level *level = &build->levels[height];
    enum vxd_status status = vxd_host_alloc(build->traversal.svdag->context,
                                            n * sizeof(struct node), &level->memory, err);

    level->child_states = level->memory.ptr;
    level->n = 0;
    return status;
}

/* Visits the cubes of a level; says how many go on. */
static enum vxd_status visit_level(struct build *build, struct level *level,
                                   size_t *n_expand, struct vxd_err *err)
{
    struct vxd_svdag_frame at;
    enum vxd_status status = VXD_OK;

    *n_expand = 0;
    at.state = &at.own;
    for (size_t i = 0; i < level->n; i++) {
        struct node *node = &level->child_states[i];

        at.cube = node->cube;
        at.old = node->old;
        at.own = node->state;
        at.ref = &node->ref;
        VXD_TRY(vxd_svdag_traversal_visit(&build->traversal, &build->walkers[0], &at,
                                          &node->has_children, err));
        node->state = at.own;
        *n_expand += node->has_children;
    }
out:
    return status;
}

static void make_child_state(const struct vxd_svdag_traversal *traversal,
                             const struct node *node, int octant,
                             union vxd_svdag_edit_state *child)
{
    const struct vxd_svdag_editor *editor = traversal->editor;

    if (editor->child == NULL) {
        *child = node->state;
    } else {
        editor->child(editor->args, traversal->view, &node->cube, &node->state, octant,
                      child);
    }
}

static void add_children(struct build *build, struct node *node, struct level *next_level)
{
    uint32_t children[8];

    node->first_child = next_level->n;
    vxd_svdag_read_children(build->traversal.view, node->old, children);
    for (int octant = 0; octant < 8; octant++) {
        struct node *child = &next_level->child_states[next_level->n++];

        child->cube = vxd_svdag_cube_child(&node->cube, octant);
        child->old = children[octant];
        child->ref = child->old;
        child->first_child = 0;
        child->has_children = false;
        make_child_state(&build->traversal, node, octant, &child->state);
    }
}

/* Goes down from the root's cube until the cubes are enough or small: *height is theirs.
 * Where none goes on before that, they are none. */
static enum vxd_status expand_levels(struct build *build, uint32_t root, int *height,
                                     struct vxd_err *err)
{
    size_t n_enough = (size_t)build->n_walkers * CUBES_PER_THREAD;
    struct node *top;
    enum vxd_status status;

    *height = build->traversal.view->depth;
    VXD_TRY(level_alloc(build, *height, 1, err));
    top = build->levels[*height].child_states;
    build->levels[*height].n = 1;
    top->cube = (struct vxd_svdag_cube){.height = *height};
    top->old = root;
    top->ref = root;
    top->first_child = 0;
    top->has_children = false;
    memset(&top->state, 0, sizeof top->state);
    build->traversal.editor->begin(build->traversal.editor->args, &top->state);
    while (*height > SMALL_HEIGHT && build->levels[*height].n < n_enough &&
           build->levels[*height].n > 0) {
        struct level *level = &build->levels[*height];
        size_t n_expand;

        VXD_TRY(visit_level(build, level, &n_expand, err));
        (*height)--;
        VXD_TRY(level_alloc(build, *height, 8 * n_expand, err));
        for (size_t i = 0; i < level->n; i++) {
            if (level->child_states[i].has_children) {
                add_children(build, &level->child_states[i], &build->levels[*height]);
            }
        }
    }
out:
    return status;
}

static enum vxd_status reduce_levels(struct build *build, int height, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (; height < build->traversal.view->depth; height++) {
        struct level *level = &build->levels[height + 1];

        for (size_t i = 0; i < level->n; i++) {
            struct node *node = &level->child_states[i];
            struct vxd_svdag_made made = {.ref = &node->ref, .old = node->old};

            for (size_t k = 0; k < 8 && node->has_children; k++) {
                made.children[k] =
                    build->levels[height].child_states[node->first_child + k].ref;
            }
            if (node->has_children) {
                VXD_TRY(vxd_svdag_traversal_reduce(&build->traversal, &build->walkers[0],
                                                   height + 1, &made, err));
            }
        }
    }
out:
    return status;
}

static enum vxd_status walkers_open(struct build *build, struct vxd_pool *pool,
                                    struct vxd_err *err)
{
    struct vxd_svdag *svdag = build->traversal.svdag;
    size_t n = (size_t)vxd_pool_n_threads(pool);
    enum vxd_status status = vxd_host_alloc(
        svdag->context, n * sizeof(struct vxd_svdag_walker), &build->memory, err);

    if (status != VXD_OK) {
        return status;
    }
    build->walkers = build->memory.ptr;
    for (size_t i = 0; i < n; i++) {
        vxd_svdag_walker_open(&build->walkers[i], svdag);
    }
    build->n_walkers = (int)n;
    return VXD_OK;
}

/* Adds what the walkers counted and gives back what they have. */
static void walkers_close(struct build *build, struct vxd_svdag_edit_result *result)
{
    for (int i = 0; i < build->n_walkers; i++) {
        struct vxd_svdag_walker *walker = &build->walkers[i];

        vxd_svdag_writer_close(&walker->writer);
        result->n_added += walker->change.n_added;
        result->n_removed += walker->change.n_removed;
        result->n_changed += walker->change.n_changed;
        result->n_freed += walker->change.n_freed;
        for (int height = 0; height < VXD_SVDAG_N_HEIGHTS; height++) {
            result->n_lookups[height] += walker->writer.n_lookups[height];
            result->n_new[height] += walker->writer.n_new[height];
        }
    }
    vxd_host_free(build->traversal.svdag->context, &build->memory);
}

enum vxd_status vxd_svdag_build(struct vxd_pool *pool, struct vxd_svdag *svdag,
                                uint32_t root, const struct vxd_svdag_editor *editor,
                                struct vxd_svdag_edit_result *result, struct vxd_err *err)
{
    struct build build = {
        .traversal = {.svdag = svdag, .view = &svdag->view, .editor = editor}};
    int height;
    enum vxd_status status;

    atomic_init(&build.traversal.has_failed, false);
    atomic_init(&build.traversal.n_visits, 0);
    VXD_TRY(walkers_open(&build, pool, err));
    VXD_TRY(expand_levels(&build, root, &height, err));
    build.tasks = &build.levels[height];
    run_all(&build, pool, height);
    if (atomic_load(&build.traversal.has_failed)) {
        if (err != NULL) {
            *err = build.err;
        }
        status = build.status;
        goto out;
    }
    VXD_TRY(reduce_levels(&build, height, err));
    result->root = build.levels[svdag->view.depth].child_states[0].ref;
out:
    for (int i = 0; i < VXD_SVDAG_N_HEIGHTS; i++) {
        vxd_host_free(svdag->context, &build.levels[i].memory);
    }
    if (build.walkers != NULL) {
        walkers_close(&build, result);
    }
    return status;
}
