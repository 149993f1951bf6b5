// SPDX-License-Identifier: Apache-2.0
/* Goes over a tree with an editor, on the pool.
 *
 * The upper levels are visited one after the other, serially, until there are enough cubes to
 * share out (or they are small); then each is a task, gone through depth first with a stack of
 * frames; then the upper levels are closed from below. A node is looked up in the store only
 * if a child of it changed, and that when the next one is closed, so that the memory it takes has
 * come by then. Tasks take their order from nothing: which thread does what changes
 * addresses and lookups, not results.
 *
 * Cubes that an editor calls equal (a wall cuts thousands alike) are gone into once a thread,
 * as far as its memory of them reaches. */
#include <string.h>

#include "gpu/dag/change.h"

enum {
    CUBES_A_THREAD = 64,
    SMALL_HEIGHT = 6, /* cubes of this height are tasks however few they are */
    N_KNOWN = 512,    /* signatures a thread remembers */
    VISITS_AT_ONCE = 4096,
    N_HEIGHTS = VXD_DAG_MAX_DEPTH + 1
};

/* A cube of the upper levels. */
struct part {
    struct vxd_dag_cube cube;
    uint32_t old;
    uint32_t ref;       /* what it becomes, once known */
    size_t first_child; /* in the level below */
    bool has_children;
    union vxd_dag_edit_state state;
};

struct level {
    struct vxd_buffer memory;
    struct part *parts;
    size_t n;
};

/* What a cube was to its editor. */
struct signature {
    int n_words;
    int height;
    uint32_t old;
    uint64_t words[VXD_DAG_SIGNATURE_WORDS];
};

/* A cube that was gone into, and what came of it. */
struct known {
    struct signature signature;
    uint32_t ref;
    struct vxd_dag_change change;
};

/* A node on the way down. */
struct frame {
    struct vxd_dag_cube cube;
    uint32_t old;
    int octant; /* the next one */
    uint32_t children[8];
    union vxd_dag_edit_state state;
    struct signature signature;
    struct known *place;          /* for it; NULL where it stands for itself */
    struct vxd_dag_change before; /* the worker's, when it was gone into */
};

/* A node that is closed, but not yet looked up. */
struct pending {
    uint32_t *ref; /* where its reference goes; NULL: there is none pending */
    int height;
    uint64_t hash;
    uint32_t words[9];
};

/* What a thread has for itself while it runs tasks. */
struct worker {
    atomic_flag is_busy;
    struct vxd_dag_writer writer;
    struct vxd_dag_change change;
    struct vxd_dag_change_memo memo;
    struct pending pending;
    uint32_t n_visits; /* not yet among the build's */
    struct known known[N_KNOWN];
};

struct build {
    struct vxd_dag *dag;
    const struct vxd_dag_view *view;
    const struct vxd_dag_editor *editor;
    struct level levels[N_HEIGHTS]; /* by height */
    struct level *tasks;
    struct vxd_buffer memory;
    struct worker *workers;
    int n_workers;
    atomic_bool has_failed;
    atomic_uint_fast64_t n_visits;
    enum vxd_status status; /* of the first that failed */
    struct vxd_err err;
};

static void make_child_state(const struct build *build, const struct vxd_dag_cube *cube,
                             const union vxd_dag_edit_state *state, int octant,
                             union vxd_dag_edit_state *child)
{
    if (build->editor->child == NULL) {
        *child = *state;
    } else {
        build->editor->child(build->editor->args, build->view, cube, state, octant,
                             child);
    }
}

static enum vxd_status edit_leaf(const struct build *build, struct worker *worker,
                                 const struct frame *at, uint32_t *ref,
                                 struct vxd_err *err)
{
    const struct vxd_dag_editor *editor = build->editor;
    bool has_materials = build->view->value_bits > 1;
    struct vxd_dag_leaf before;
    struct vxd_dag_leaf after;

    vxd_dag_leaf_read(build->view, at->old, &after);
    before.set = after.set;
    before.free = after.free;
    if (has_materials && after.set != 0) {
        memcpy(before.values, after.values, sizeof before.values);
    }
    editor->leaf(editor->args, build->view, &at->cube, &at->state, &after);
    if (!vxd_dag_change_add_leaf(&before, &after, has_materials, &worker->change)) {
        *ref = at->old;
        return VXD_OK;
    }
    return vxd_dag_leaf_put(&worker->writer, &after, ref, err);
}

/* Counts a cube that is looked at. */
static enum vxd_status count_visit(struct build *build, struct worker *worker,
                                   struct vxd_err *err)
{
    if (++worker->n_visits < VISITS_AT_ONCE) {
        return VXD_OK;
    }
    worker->n_visits = 0;
    if (atomic_fetch_add_explicit(&build->n_visits, VISITS_AT_ONCE,
                                  memory_order_relaxed) < build->dag->max_visits) {
        return VXD_OK;
    }
    return vxd_fail(
        err, VXD_RESOURCE_EXHAUSTED, NULL,
        "the edit touches more than %llu regions of the scene; make its shapes "
        "smaller, or split it",
        (unsigned long long)build->dag->max_visits);
}

/* Makes a cube's signature and finds the place for it in the worker's memory, NULL where it
 * has none. */
static struct known *find_place(const struct build *build, struct worker *worker,
                                struct frame *at)
{
    struct signature *signature = &at->signature;
    uint64_t hash;

    if (build->editor->signature == NULL || at->cube.height <= VXD_DAG_LEAF_HEIGHT) {
        return NULL;
    }
    signature->n_words = build->editor->signature(build->editor->args, &at->cube,
                                                  &at->state, signature->words);
    if (signature->n_words == 0) {
        return NULL;
    }
    signature->height = at->cube.height;
    signature->old = at->old;
    hash = (uint64_t)signature->height << 32 | signature->old;
    for (int i = 0; i < signature->n_words; i++) {
        hash = (hash ^ signature->words[i]) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32;
    }
    return &worker->known[hash % N_KNOWN];
}

static bool is_known(const struct known *known, const struct signature *signature)
{
    return known->signature.n_words == signature->n_words &&
           known->signature.height == signature->height &&
           known->signature.old == signature->old &&
           memcmp(known->signature.words, signature->words,
                  (size_t)signature->n_words * sizeof signature->words[0]) == 0;
}

/* True where an equal cube was gone into before: *ref is what this one becomes. Otherwise
 * notes what it takes to remember it. */
static bool recall(const struct build *build, struct worker *worker, struct frame *at,
                   uint32_t *ref)
{
    const struct known *known;

    at->place = find_place(build, worker, at);
    at->before = worker->change;
    known = at->place;
    if (known == NULL || !is_known(known, &at->signature)) {
        return false;
    }
    *ref = known->ref;
    worker->change.n_added += known->change.n_added;
    worker->change.n_removed += known->change.n_removed;
    worker->change.n_changed += known->change.n_changed;
    worker->change.n_freed += known->change.n_freed;
    return true;
}

static void remember(const struct worker *worker, const struct frame *at, uint32_t ref)
{
    struct known *known = at->place;

    if (known == NULL) {
        return;
    }
    known->signature = at->signature;
    known->ref = ref;
    known->change.n_added = worker->change.n_added - at->before.n_added;
    known->change.n_removed = worker->change.n_removed - at->before.n_removed;
    known->change.n_changed = worker->change.n_changed - at->before.n_changed;
    known->change.n_freed = worker->change.n_freed - at->before.n_freed;
}

/* Finds what a cube becomes, or that its parts decide (*is_open). */
static enum vxd_status visit(struct build *build, struct worker *worker, struct frame *at,
                             uint32_t *ref, bool *is_open, struct vxd_err *err)
{
    const struct vxd_dag_editor *editor = build->editor;
    uint32_t uniform = VXD_DAG_EMPTY;
    enum vxd_status status = count_visit(build, worker, err);

    *is_open = false;
    if (status != VXD_OK) {
        return status;
    }
    *ref = at->old;
    switch (editor->visit(editor->args, build->view, &at->cube, at->old, &at->state,
                          &uniform)) {
    case VXD_DAG_KEEP:
        return VXD_OK;
    case VXD_DAG_SET:
        *ref = uniform;
        vxd_dag_change_add(build->view, &worker->memo, at->old, uniform, at->cube.height,
                           &worker->change);
        return VXD_OK;
    case VXD_DAG_DESCEND:
        break;
    }
    if (at->cube.height == VXD_DAG_LEAF_HEIGHT) {
        return edit_leaf(build, worker, at, ref, err);
    }
    *is_open = !recall(build, worker, at, ref);
    return VXD_OK;
}

/* Stores a node whose children are known, if one of them changed. */
static enum vxd_status close_node(const struct build *build, struct worker *worker,
                                  int height, uint32_t old, const uint32_t children[8],
                                  uint32_t *ref, struct vxd_err *err)
{
    for (int octant = 0; octant < 8; octant++) {
        if (children[octant] != vxd_dag_below(build->view, old, octant)) {
            return vxd_dag_inner_put(&worker->writer, height, children, ref, err);
        }
    }
    *ref = old;
    return VXD_OK;
}

static enum vxd_status put_pending(struct worker *worker, struct vxd_err *err)
{
    struct pending *pending = &worker->pending;
    struct vxd_dag_wanted wanted = {pending->hash, VXD_DAG_INNER, pending->words,
                                    vxd_dag_inner_words(pending->words)};
    uint32_t *ref = pending->ref;

    if (ref == NULL) {
        return VXD_OK;
    }
    pending->ref = NULL;
    return vxd_dag_put_hashed(&worker->writer, &wanted, pending->height, ref, err);
}

/* As close_node, but *ref may come only with the worker's next pending node. */
static void close_soon(const struct build *build, struct worker *worker, int height,
                       const struct frame *frame, uint32_t *ref)
{
    struct pending *pending = &worker->pending;
    bool is_changed = false;

    for (int octant = 0; octant < 8; octant++) {
        is_changed |=
            frame->children[octant] != vxd_dag_below(build->view, frame->old, octant);
    }
    *ref = frame->old;
    if (is_changed && vxd_dag_inner_compose(build->view, height, frame->children,
                                            pending->words, ref)) {
        pending->ref = ref;
        pending->height = height;
        pending->hash = vxd_dag_hash(VXD_DAG_INNER, pending->words,
                                     vxd_dag_inner_words(pending->words));
        vxd_dag_prefetch(build->dag, pending->hash);
    }
}

/* Depth first through one cube and all below it. */
static enum vxd_status run_part(struct build *build, struct worker *worker,
                                struct part *part, struct vxd_err *err)
{
    struct frame stack[N_HEIGHTS]; /* by height */
    int top = part->cube.height;
    int height = top;
    bool is_open;
    enum vxd_status status;

    worker->pending.ref = NULL; /* of a part that failed */
    stack[top].cube = part->cube;
    stack[top].old = part->old;
    stack[top].octant = 0;
    stack[top].state = part->state;
    VXD_TRY(visit(build, worker, &stack[top], &part->ref, &is_open, err));
    if (!is_open) {
        return VXD_OK;
    }
    for (;;) {
        struct frame *frame = &stack[height];
        struct frame *child = frame - 1;
        uint32_t *ref;

        if (frame->octant < 8) {
            child->cube = vxd_dag_cube_child(&frame->cube, frame->octant);
            child->old = vxd_dag_below(build->view, frame->old, frame->octant);
            child->octant = 0;
            make_child_state(build, &frame->cube, &frame->state, frame->octant,
                             &child->state);
            VXD_TRY(visit(build, worker, child, &frame->children[frame->octant], &is_open,
                          err));
            if (is_open) {
                height--;
            } else {
                frame->octant++;
            }
            continue;
        }
        if (atomic_load_explicit(&build->has_failed, memory_order_relaxed)) {
            return VXD_OK;
        }
        VXD_TRY(put_pending(worker, err)); /* a child maybe */
        ref = height == top ? &part->ref : &frame[1].children[frame[1].octant++];
        if (height < top && frame->place == NULL) {
            close_soon(build, worker, height, frame, ref);
        } else {
            VXD_TRY(
                close_node(build, worker, height, frame->old, frame->children, ref, err));
            remember(worker, frame, *ref);
        }
        if (height == top) {
            return VXD_OK;
        }
        height++;
    }
out:
    return status;
}

/* A worker that nobody uses: there is one for each thread that may run tasks. */
static struct worker *take_worker(struct build *build)
{
    for (int i = 0;; i = i + 1 < build->n_workers ? i + 1 : 0) {
        if (!atomic_flag_test_and_set_explicit(&build->workers[i].is_busy,
                                               memory_order_acquire)) {
            return &build->workers[i];
        }
    }
}

static void run_tasks(void *args, size_t begin, size_t end)
{
    struct build *build = args;
    struct worker *worker = take_worker(build);
    struct vxd_err err = {0};

    for (size_t i = begin;
         i < end && !atomic_load_explicit(&build->has_failed, memory_order_relaxed);
         i++) {
        enum vxd_status status = run_part(build, worker, &build->tasks->parts[i], &err);

        if (status != VXD_OK &&
            !atomic_exchange_explicit(&build->has_failed, true, memory_order_relaxed)) {
            build->status = status;
            build->err = err;
        }
    }
    atomic_flag_clear_explicit(&worker->is_busy, memory_order_release);
}

/* Upper levels ---------------------------------------------------------------------------- */

static enum vxd_status level_alloc(struct build *build, int height, size_t n,
                                   struct vxd_err *err)
{
    struct level *level = &build->levels[height];
    enum vxd_status status =
        vxd_host_alloc(build->dag->context, n * sizeof(struct part), &level->memory, err);

    level->parts = level->memory.ptr;
    level->n = 0;
    return status;
}

/* Visits the cubes of a level; says how many go on. */
static enum vxd_status visit_level(struct build *build, struct level *level,
                                   size_t *n_open, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    *n_open = 0;
    for (size_t i = 0; i < level->n; i++) {
        struct part *part = &level->parts[i];
        struct frame at = {.cube = part->cube, .old = part->old, .state = part->state};

        VXD_TRY(
            visit(build, &build->workers[0], &at, &part->ref, &part->has_children, err));
        part->state = at.state;
        *n_open += part->has_children;
    }
out:
    return status;
}

static void add_children(struct build *build, struct part *part, struct level *below)
{
    part->first_child = below->n;
    for (int octant = 0; octant < 8; octant++) {
        struct part *child = &below->parts[below->n++];

        child->cube = vxd_dag_cube_child(&part->cube, octant);
        child->old = vxd_dag_below(build->view, part->old, octant);
        child->ref = child->old;
        child->first_child = 0;
        child->has_children = false;
        make_child_state(build, &part->cube, &part->state, octant, &child->state);
    }
}

/* Goes down from the root's cube until the cubes are enough or small: *height is theirs.
 * Where none goes on before that, they are none. */
static enum vxd_status open_levels(struct build *build, uint32_t root, int *height,
                                   struct vxd_err *err)
{
    size_t n_enough = (size_t)build->n_workers * CUBES_A_THREAD;
    struct part *top;
    enum vxd_status status;

    *height = build->view->depth;
    VXD_TRY(level_alloc(build, *height, 1, err));
    top = build->levels[*height].parts;
    build->levels[*height].n = 1;
    top->cube = (struct vxd_dag_cube){.height = *height};
    top->old = root;
    top->ref = root;
    top->first_child = 0;
    top->has_children = false;
    memset(&top->state, 0, sizeof top->state);
    build->editor->begin(build->editor->args, &top->state);
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

    for (; height < build->view->depth; height++) {
        struct level *level = &build->levels[height + 1];

        for (size_t i = 0; i < level->n; i++) {
            struct part *part = &level->parts[i];
            uint32_t children[8];

            for (size_t k = 0; k < 8 && part->has_children; k++) {
                children[k] = build->levels[height].parts[part->first_child + k].ref;
            }
            if (part->has_children) {
                VXD_TRY(close_node(build, &build->workers[0], height + 1, part->old,
                                   children, &part->ref, err));
            }
        }
    }
out:
    return status;
}

static enum vxd_status workers_open(struct build *build, struct vxd_pool *pool,
                                    struct vxd_err *err)
{
    size_t n = (size_t)vxd_pool_n_threads(pool);
    enum vxd_status status = vxd_host_alloc(
        build->dag->context, n * sizeof(struct worker), &build->memory, err);

    if (status != VXD_OK) {
        return status;
    }
    build->workers = build->memory.ptr;
    memset(build->workers, 0, n * sizeof(struct worker));
    for (size_t i = 0; i < n; i++) {
        atomic_flag_clear(&build->workers[i].is_busy);
        build->workers[i].writer.dag = build->dag;
    }
    build->n_workers = (int)n;
    return VXD_OK;
}

/* Adds what the workers counted and gives back what they have. */
static void workers_close(struct build *build, struct vxd_dag_edit_result *result)
{
    for (int i = 0; i < build->n_workers; i++) {
        struct worker *worker = &build->workers[i];

        vxd_dag_writer_close(&worker->writer);
        result->n_added += worker->change.n_added;
        result->n_removed += worker->change.n_removed;
        result->n_changed += worker->change.n_changed;
        result->n_freed += worker->change.n_freed;
        for (int height = 0; height < N_HEIGHTS; height++) {
            result->n_lookups[height] += worker->writer.n_lookups[height];
            result->n_new[height] += worker->writer.n_new[height];
        }
    }
    vxd_host_free(build->dag->context, &build->memory);
}

enum vxd_status vxd_dag_build(struct vxd_pool *pool, struct vxd_dag *dag, uint32_t root,
                              const struct vxd_dag_editor *editor,
                              struct vxd_dag_edit_result *result, struct vxd_err *err)
{
    struct build build = {.dag = dag, .view = &dag->view, .editor = editor};
    int height;
    enum vxd_status status;

    atomic_init(&build.has_failed, false);
    atomic_init(&build.n_visits, 0);
    VXD_TRY(workers_open(&build, pool, err));
    VXD_TRY(open_levels(&build, root, &height, err));
    build.tasks = &build.levels[height];
    vxd_parallel_for(pool, build.tasks->n, 1, run_tasks, &build);
    if (atomic_load(&build.has_failed)) {
        if (err != NULL) {
            *err = build.err;
        }
        status = build.status;
        goto out;
    }
    VXD_TRY(close_levels(&build, height, err));
    result->root = build.levels[dag->view.depth].parts[0].ref;
out:
    for (int i = 0; i < N_HEIGHTS; i++) {
        vxd_host_free(dag->context, &build.levels[i].memory);
    }
    if (build.workers != NULL) {
        workers_close(&build, result);
    }
    return status;
}
