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
    CUBES_A_THREAD = 64,
    SMALL_HEIGHT = 6 /* cubes of this height are tasks however few they are */
};

/* A cube of the upper levels. */
struct part {
    struct vxd_svdag_cube cube;
    uint32_t old;
    uint32_t ref;       /* what it becomes, once known */
    size_t first_child; /* in the level below */
    bool has_children;
    union vxd_svdag_edit_state state;
};

struct level {
    struct vxd_buffer memory;
    struct part *parts;
    size_t n;
};

struct build {
    struct vxd_svdag_way way;
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
    struct vxd_svdag_way *way = &build->way;
    struct vxd_svdag_walker *walker = take_walker(build);
    struct vxd_err err = {0};

    for (size_t i = begin;
         i < end && !atomic_load_explicit(&way->has_failed, memory_order_relaxed); i++) {
        struct part *part = &build->tasks->parts[build->n_done + i];
        enum vxd_status status = vxd_svdag_way_run(way, walker, &part->cube, part->old,
                                                   &part->state, &part->ref, &err);

        if (status != VXD_OK &&
            !atomic_exchange_explicit(&way->has_failed, true, memory_order_relaxed)) {
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
           atomic_load_explicit(&build->way.n_visits, memory_order_relaxed) == 0) {
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
    enum vxd_status status = vxd_host_alloc(build->way.svdag->context,
                                            n * sizeof(struct part), &level->memory, err);

    level->parts = level->memory.ptr;
    level->n = 0;
    return status;
}

/* Visits the cubes of a level; says how many go on. */
static enum vxd_status visit_level(struct build *build, struct level *level,
                                   size_t *n_open, struct vxd_err *err)
{
    struct vxd_svdag_frame at;
    enum vxd_status status = VXD_OK;

    *n_open = 0;
    at.state = &at.own;
    for (size_t i = 0; i < level->n; i++) {
        struct part *part = &level->parts[i];

        at.cube = part->cube;
        at.old = part->old;
        at.own = part->state;
        at.ref = &part->ref;
        VXD_TRY(vxd_svdag_way_visit(&build->way, &build->walkers[0], &at,
                                    &part->has_children, err));
        part->state = at.own;
        *n_open += part->has_children;
    }
out:
    return status;
}

static void make_child_state(const struct vxd_svdag_way *way, const struct part *part,
                             int octant, union vxd_svdag_edit_state *child)
{
    const struct vxd_svdag_editor *editor = way->editor;

    if (editor->child == NULL) {
        *child = part->state;
    } else {
        editor->child(editor->args, way->view, &part->cube, &part->state, octant, child);
    }
}

static void add_children(struct build *build, struct part *part, struct level *below)
{
    uint32_t children[8];

    part->first_child = below->n;
    vxd_svdag_read_children(build->way.view, part->old, children);
    for (int octant = 0; octant < 8; octant++) {
        struct part *child = &below->parts[below->n++];

        child->cube = vxd_svdag_cube_child(&part->cube, octant);
        child->old = children[octant];
        child->ref = child->old;
        child->first_child = 0;
        child->has_children = false;
        make_child_state(&build->way, part, octant, &child->state);
    }
}

/* Goes down from the root's cube until the cubes are enough or small: *height is theirs.
 * Where none goes on before that, they are none. */
static enum vxd_status open_levels(struct build *build, uint32_t root, int *height,
                                   struct vxd_err *err)
{
    size_t n_enough = (size_t)build->n_walkers * CUBES_A_THREAD;
    struct part *top;
    enum vxd_status status;

    *height = build->way.view->depth;
    VXD_TRY(level_alloc(build, *height, 1, err));
    top = build->levels[*height].parts;
    build->levels[*height].n = 1;
    top->cube = (struct vxd_svdag_cube){.height = *height};
    top->old = root;
    top->ref = root;
    top->first_child = 0;
    top->has_children = false;
    memset(&top->state, 0, sizeof top->state);
    build->way.editor->begin(build->way.editor->args, &top->state);
    while (*height > SMALL_HEIGHT && build->levels[*height].n < n_enough &&
           build->levels[*height].n > 0) {
        struct level *level = &build->levels[*height];
        size_t n_open;

        VXD_TRY(visit_level(build, level, &n_open, err));
        (*height)--;
        VXD_TRY(level_alloc(build, *height, 8 * n_open, err));
        for (size_t i = 0; i < level->n; i++) {
            if (level->parts[i].has_children) {
                add_children(build, &level->parts[i], &build->levels[*height]);
            }
        }
    }
out:
    return status;
}

static enum vxd_status close_levels(struct build *build, int height, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (; height < build->way.view->depth; height++) {
        struct level *level = &build->levels[height + 1];

        for (size_t i = 0; i < level->n; i++) {
            struct part *part = &level->parts[i];
            struct vxd_svdag_made made = {.ref = &part->ref, .old = part->old};

            for (size_t k = 0; k < 8 && part->has_children; k++) {
                made.children[k] = build->levels[height].parts[part->first_child + k].ref;
            }
            if (part->has_children) {
                VXD_TRY(vxd_svdag_way_close(&build->way, &build->walkers[0], height + 1,
                                            &made, err));
            }
        }
    }
out:
    return status;
}

static enum vxd_status walkers_open(struct build *build, struct vxd_pool *pool,
                                    struct vxd_err *err)
{
    struct vxd_svdag *svdag = build->way.svdag;
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
    vxd_host_free(build->way.svdag->context, &build->memory);
}

enum vxd_status vxd_svdag_build(struct vxd_pool *pool, struct vxd_svdag *svdag,
                                uint32_t root, const struct vxd_svdag_editor *editor,
                                struct vxd_svdag_edit_result *result, struct vxd_err *err)
{
    struct build build = {
        .way = {.svdag = svdag, .view = &svdag->view, .editor = editor}};
    int height;
    enum vxd_status status;

    atomic_init(&build.way.has_failed, false);
    atomic_init(&build.way.n_visits, 0);
    VXD_TRY(walkers_open(&build, pool, err));
    VXD_TRY(open_levels(&build, root, &height, err));
    build.tasks = &build.levels[height];
    run_all(&build, pool, height);
    if (atomic_load(&build.way.has_failed)) {
        if (err != NULL) {
            *err = build.err;
        }
        status = build.status;
        goto out;
    }
    VXD_TRY(close_levels(&build, height, err));
    result->root = build.levels[svdag->view.depth].parts[0].ref;
out:
    for (int i = 0; i < VXD_SVDAG_N_HEIGHTS; i++) {
        vxd_host_free(svdag->context, &build.levels[i].memory);
    }
    if (build.walkers != NULL) {
        walkers_close(&build, result);
    }
    return status;
}
