// SPDX-License-Identifier: Apache-2.0
/* Collections on a GPU: marks by height from the roots down, their numbers, capacity in
 * the target store, then items from the leaves up. Each piece is one or two launches and
 * a wait. As on the CPU (collect_cpu.c), items that occur at several heights may have to
 * wait for a child. */
#include "gpu/svdag/collect/collect_device.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/core/core.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/store/store_math.h"

enum {
    MARK_PIECE = 1 << 18,    /* items: some tenths of a millisecond */
    PUT_PIECE = 1 << 18,     /* likewise */
    GROWTH_WORDS = 16 << 20, /* most words that the store grows by at once */
    PAGE_BYTES = VXD_SVDAG_PAGE_MARKS * sizeof(struct vxd_svdag_mark)
};

enum phase {
    IDLE,
    MARK,
    RANK,
    PUT
};

/* Like struct vxd_svdag_marks on the CPU. */
struct generation {
    struct vxd_buffer marks;
    struct vxd_buffer refs;
    uint32_t n;
};

struct vxd_svdag_device_collection {
    struct vxd_svdag_view view;
    struct vxd_svdag *to;
    struct generation generations[2];
    uint32_t fresh;
    uint32_t n_chunks;
    struct vxd_buffer sums; /* counts of marks, followed by the scratch of the scan */
    size_t scan_bytes;
    struct vxd_buffer list;
    struct vxd_buffer kernel_state; /* device: state of the kernels that put items */
    struct vxd_buffer state;        /* device */
    struct vxd_buffer mirror;       /* host: the state after the last wait */
    enum phase phase;
    int height;
    uint32_t next; /* index in the list */
    uint32_t
        begins[VXD_SVDAG_N_HEIGHTS]; /* ranges in the list by height; 0 means blocks */
    uint32_t ends[VXD_SVDAG_N_HEIGHTS];
    struct vxd_svdag_collect_state before; /* the counts when the round began */
    int first_left;
    uint64_t n_put_before; /* n_put when the way up last began */
};

static const struct vxd_svdag_collect_state *
counted(const struct vxd_svdag_device_collection *collection)
{
    return collection->mirror.ptr;
}

static uint32_t n_groups(const struct vxd_svdag_device_collection *collection)
{
    return collection->n_chunks * VXD_SVDAG_PAGE_MARKS;
}

static struct vxd_svdag_collect_view
view_of(const struct vxd_svdag_device_collection *collection)
{
    struct vxd_svdag_collect_view view = {.view = collection->view,
                                          .fresh = collection->fresh,
                                          .list = collection->list.ptr,
                                          .state = collection->state.ptr};

    for (int i = 0; i < 2; i++) {
        view.marks[i] = collection->generations[i].marks.ptr;
        view.refs[i] = collection->generations[i].refs.ptr;
    }
    vxd_svdag_device_set_args(collection->to, &view.to);
    view.to.state = collection->kernel_state.ptr;
    return view;
}

/* Reads the counts of the kernels; waits for queued work. */
static enum vxd_status read_state(struct vxd_queue *queue,
                                  struct vxd_svdag_device_collection *collection,
                                  struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_queue_copy(queue, collection->mirror.ptr, collection->state.ptr,
                           sizeof(struct vxd_svdag_collect_state), err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

/* ----------------------------------------------------------------------------------------- */

enum vxd_status vxd_svdag_collect_device_open(struct vxd_queue *queue,
                                              const struct vxd_svdag_view *view,
                                              struct vxd_svdag *to,
                                              struct vxd_svdag_device_collection **out,
                                              struct vxd_err *err)
{
    struct vxd_svdag_device_collection *collection = calloc(1, sizeof *collection);
    enum vxd_status status;

    *out = NULL;
    if (collection == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a collection");
    }
    collection->view = *view;
    collection->to = to;
    VXD_TRY(vxd_host_alloc(queue->context, sizeof(struct vxd_svdag_collect_state),
                           &collection->mirror, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(struct vxd_svdag_collect_state),
                             &collection->state, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(struct vxd_svdag_kernel_state),
                             &collection->kernel_state, err));
    VXD_TRY(
        vxd_queue_fill(queue, collection->state.ptr, 0, collection->state.n_bytes, err));
    VXD_TRY(read_state(queue, collection, err));
    *out = collection;
    return VXD_OK;
out:
    vxd_svdag_collect_device_close(queue, collection);
    return status;
}

void vxd_svdag_collect_device_close(struct vxd_queue *queue,
                                    struct vxd_svdag_device_collection *collection)
{
    if (collection == NULL) {
        return;
    }
    /* The mirror is host memory, which is freed at once. */
    (void)vxd_queue_wait(queue, NULL);
    for (int i = 0; i < 2; i++) {
        vxd_device_free(queue, &collection->generations[i].marks);
        vxd_device_free(queue, &collection->generations[i].refs);
    }
    vxd_device_free(queue, &collection->sums);
    vxd_device_free(queue, &collection->list);
    vxd_device_free(queue, &collection->kernel_state);
    vxd_device_free(queue, &collection->state);
    vxd_host_free(queue->context, &collection->mirror);
    free(collection);
}

bool vxd_svdag_collect_device_is_idle(
    const struct vxd_svdag_device_collection *collection)
{
    return collection->phase == IDLE;
}

void vxd_svdag_collect_device_count(const struct vxd_svdag_device_collection *collection,
                                    uint64_t *n_nodes, uint64_t *n_words)
{
    *n_nodes = counted(collection)->n_put;
    *n_words = counted(collection)->n_put_words;
}

/* Rounds ---------------------------------------------------------------------------------- */

/* Grows the marks to the number of chunks that the store has. */
static enum vxd_status grow_marks(struct vxd_queue *queue,
                                  struct vxd_svdag_device_collection *collection,
                                  struct generation *generation, struct vxd_err *err)
{
    struct vxd_buffer *old = &generation->marks;
    size_t n_bytes = (size_t)collection->n_chunks * PAGE_BYTES;
    struct vxd_buffer marks = {0};
    enum vxd_status status = VXD_OK;

    if (n_bytes <= old->n_bytes) {
        return VXD_OK;
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &marks, err));
    VXD_TRY(vxd_queue_fill(queue, (char *)marks.ptr + old->n_bytes, 0,
                           n_bytes - old->n_bytes, err));
    if (old->n_bytes > 0) {
        VXD_TRY(vxd_queue_copy(queue, marks.ptr, old->ptr, old->n_bytes, err));
    }
    vxd_device_free(queue, old);
    *old = marks;
    return VXD_OK;
out:
    vxd_device_free(queue, &marks);
    return status;
}

/* Computes prefix sums of the marks for the next step, and allocates their scratch. */
static enum vxd_status sum_marks(struct vxd_queue *queue,
                                 struct vxd_svdag_device_collection *collection,
                                 bool has_both, struct vxd_err *err)
{
    const struct vxd_svdag_collect_view view = view_of(collection);
    size_t n = (n_groups(collection) + VXD_SVDAG_RANK_MARKS - 1) / VXD_SVDAG_RANK_MARKS;
    size_t scan_bytes = vxd_scan_scratch_bytes(queue, n);
    size_t n_bytes = 0;
    size_t at[2];
    char *memory;
    enum vxd_status status = VXD_OK;

    if (!vxd_layout_add(&n_bytes, n + 1, sizeof(uint32_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, 1, scan_bytes, &at[1])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for marks");
    }
    if (collection->sums.n_bytes < n_bytes) {
        vxd_device_free(queue, &collection->sums);
        VXD_TRY(vxd_device_alloc(queue, n_bytes, &collection->sums, err));
    }
    memory = collection->sums.ptr;
    VXD_TRY(vxd_svdag_collect_device_count_marks(
        queue, &view, has_both, n_groups(collection), collection->sums.ptr, err));
    VXD_TRY(vxd_scan_exclusive(queue, collection->sums.ptr, collection->sums.ptr, n,
                               memory + at[1], scan_bytes, err));
out:
    return status;
}

/* Merges two generations. */
static enum vxd_status merge(struct vxd_queue *queue,
                             struct vxd_svdag_device_collection *collection,
                             struct vxd_err *err)
{
    struct generation *old = &collection->generations[0];
    struct generation *fresh = &collection->generations[1];
    struct vxd_buffer refs = {0};
    struct vxd_svdag_collect_view view;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, ((size_t)old->n + fresh->n) * sizeof(uint32_t), &refs,
                             err));
    VXD_TRY(sum_marks(queue, collection, true, err));
    view = view_of(collection);
    VXD_TRY(vxd_svdag_collect_device_merge(queue, &view, n_groups(collection),
                                           collection->sums.ptr, refs.ptr, err));
    vxd_device_free(queue, &old->refs);
    vxd_device_free(queue, &fresh->refs);
    old->refs = refs;
    old->n += fresh->n;
    fresh->n = 0;
    return vxd_queue_wait(queue, err);
out:
    vxd_device_free(queue, &refs);
    return status;
}

/* Marks and lists roots. */
static enum vxd_status begin_marks(struct vxd_queue *queue,
                                   struct vxd_svdag_device_collection *collection,
                                   const uint32_t *roots, size_t n_roots,
                                   struct vxd_err *err)
{
    const struct vxd_svdag_collect_view view = view_of(collection);
    struct vxd_svdag_collect_state *state = collection->mirror.ptr;
    struct vxd_buffer device = {0};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_roots * sizeof *roots, &device, err));
    VXD_TRY(vxd_queue_copy(queue, device.ptr, roots, n_roots * sizeof *roots, err));
    state->n_listed = 0;
    VXD_TRY(vxd_queue_copy(queue, collection->state.ptr, state, sizeof *state, err));
    VXD_TRY(vxd_svdag_collect_device_mark_roots(queue, &view, device.ptr,
                                                (uint32_t)n_roots, err));
    collection->before = *state;
    VXD_TRY(read_state(queue, collection, err));
out:
    vxd_device_free(queue, &device);
    return status;
}

enum vxd_status
vxd_svdag_collect_device_begin(struct vxd_queue *queue,
                               struct vxd_svdag_device_collection *collection,
                               const uint32_t *roots, size_t n_roots, uint32_t n_chunks,
                               uint64_t n_items, bool *has_begun, struct vxd_err *err)
{
    enum vxd_status status;

    *has_begun = false;
    collection->n_chunks =
        n_chunks > collection->n_chunks ? n_chunks : collection->n_chunks;
    collection->fresh = collection->generations[0].n > 0 ? 1 : 0;
    for (uint32_t i = 0; i <= collection->fresh; i++) {
        VXD_TRY(grow_marks(queue, collection, &collection->generations[i], err));
    }
    if (collection->generations[1].n > 0) {
        return merge(queue, collection, err);
    }
    n_items -=
        n_items < collection->generations[0].n ? n_items : collection->generations[0].n;
    vxd_device_free(queue, &collection->list);
    VXD_TRY(vxd_device_alloc(queue, (size_t)(n_items + 1) * sizeof(uint32_t),
                             &collection->list, err));
    VXD_TRY(begin_marks(queue, collection, roots, n_roots, err));
    memset(collection->begins, 0, sizeof collection->begins);
    memset(collection->ends, 0, sizeof collection->ends);
    collection->height = collection->view.depth;
    collection->ends[collection->height] = counted(collection)->n_listed;
    collection->next = 0;
    collection->phase = MARK;
    *has_begun = true;
out:
    return status;
}

/* Steps ----------------------------------------------------------------------------------- */

static enum vxd_status step_mark(struct vxd_queue *queue,
                                 struct vxd_svdag_device_collection *collection,
                                 struct vxd_err *err)
{
    const struct vxd_svdag_collect_view view = view_of(collection);
    uint32_t left = collection->ends[collection->height] - collection->next;
    uint32_t n = left < MARK_PIECE ? left : MARK_PIECE;
    enum vxd_status status = VXD_OK;

    if (n > 0) {
        VXD_TRY(vxd_svdag_collect_device_mark(queue, &view,
                                              collection->height == VXD_SVDAG_LEAF_HEIGHT,
                                              collection->next, n, err));
        VXD_TRY(read_state(queue, collection, err));
        collection->next += n;
    }
    if (n < left) {
        goto out;
    }
    /* The list of the next height is complete. */
    if (collection->height == VXD_SVDAG_LEAF_HEIGHT) {
        collection->begins[0] = collection->next;
        collection->ends[0] = counted(collection)->n_listed;
        collection->phase = RANK;
    } else {
        collection->height--;
        collection->begins[collection->height] = collection->next;
        collection->ends[collection->height] = counted(collection)->n_listed;
    }
out:
    return status;
}

static enum vxd_status step_rank(struct vxd_queue *queue,
                                 struct vxd_svdag_device_collection *collection,
                                 struct vxd_err *err)
{
    struct generation *fresh = &collection->generations[collection->fresh];
    const struct vxd_svdag_collect_view view = view_of(collection);
    size_t n_bytes = ((size_t)counted(collection)->n_listed + 1) * sizeof(uint32_t);
    enum vxd_status status;

    VXD_TRY(sum_marks(queue, collection, false, err));
    VXD_TRY(vxd_svdag_collect_device_rank(queue, &view, n_groups(collection),
                                          collection->sums.ptr, err));
    vxd_device_free(queue, &fresh->refs);
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &fresh->refs, err));
    VXD_TRY(vxd_queue_fill(queue, fresh->refs.ptr, 0, n_bytes, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    fresh->n = counted(collection)->n_listed;
    collection->phase = PUT;
    collection->height = collection->view.value_bits >= 8 ? 0 : VXD_SVDAG_LEAF_HEIGHT;
    collection->next = collection->begins[collection->height];
    collection->first_left = VXD_SVDAG_N_HEIGHTS;
    collection->n_put_before = counted(collection)->n_put;
out:
    return status;
}

/* What an arena lacks for all items that are listed and not put, at most GROWTH_WORDS at
 * once, so that each launch has the capacity that it needs. Of other stores this is known
 * only after a fault. False: nothing is lacking. */
static bool needs_capacity(const struct vxd_svdag_device_collection *collection,
                           const struct vxd_svdag_collect_view *view,
                           struct vxd_svdag_needs *needs)
{
    const struct vxd_svdag_store_state store = vxd_svdag_device_state(collection->to);
    const struct vxd_svdag_collect_state *now = counted(collection);
    const struct vxd_svdag_collect_state *before = &collection->before;
    const uint64_t n_words = now->n_listed_words - before->n_listed_words -
                             (now->n_put_words - before->n_put_words);
    const uint64_t n_items =
        store.n_items[VXD_SVDAG_LEAF] + store.n_items[VXD_SVDAG_INNER] +
        store.n_items[VXD_SVDAG_BLOCK] + now->n_listed - (now->n_put - before->n_put);
    /* Warps lose some words at the end of each chunk. */
    const uint64_t lost = UINT64_C(32) * VXD_SVDAG_MAX_ITEM_WORDS;
    const uint64_t needed =
        store.next + n_words + lost * (n_words / (VXD_SVDAG_CHUNK_WORDS - lost) + 2);
    const uint64_t most = view->to.capacity_words + GROWTH_WORDS;

    *needs = (struct vxd_svdag_needs){0};
    if (collection->to->spec.store != VXD_SVDAG_ARENA) {
        /* One word more than it has makes it grow by a chunk. */
        needs->n_words =
            (counted(collection)->fault & VXD_SVDAG_NO_WORDS) != 0
                ? store.next + 1 + (n_words < GROWTH_WORDS ? n_words : GROWTH_WORDS)
                : 0;
        return needs->n_words > 0;
    }
    if (needed > view->to.capacity_words) {
        needs->n_words = needed < most ? needed : most;
    }
    if (vxd_svdag_index_is_full(n_items, (uint64_t)view->to.index.n_buckets *
                                             VXD_SVDAG_INDEX_SLOTS)) {
        needs->n_items = n_items;
    }
    return needs->n_words > 0 || needs->n_items > 0;
}

/* A height is finished. */
static enum vxd_status go_up(struct vxd_queue *queue,
                             struct vxd_svdag_device_collection *collection,
                             struct vxd_err *err)
{
    if (collection->height < collection->view.depth) {
        collection->height += collection->height == 0 ? VXD_SVDAG_LEAF_HEIGHT : 1;
        collection->next = collection->begins[collection->height];
        return VXD_OK;
    }
    if (collection->first_left == VXD_SVDAG_N_HEIGHTS) {
        vxd_device_free(queue, &collection->list);
        collection->phase = IDLE;
        return VXD_OK;
    }
    if (counted(collection)->n_put == collection->n_put_before) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "nodes refer to each other in a circle");
    }
    collection->height = collection->first_left;
    collection->next = collection->begins[collection->height];
    collection->first_left = VXD_SVDAG_N_HEIGHTS;
    collection->n_put_before = counted(collection)->n_put;
    return VXD_OK;
}

/* Without capacity in the store the next step reserves some, and puts the same items
 * again. */
static enum vxd_status check_fault(const struct vxd_svdag_device_collection *collection,
                                   struct vxd_err *err)
{
    return (counted(collection)->fault & ~(uint32_t)VXD_SVDAG_NO_WORDS) == 0 &&
                   collection->to->spec.store != VXD_SVDAG_ARENA
               ? VXD_OK
               : vxd_fail(err, VXD_INTERNAL, NULL,
                          "a store with capacity for all nodes took only some of them: "
                          "fault %u",
                          counted(collection)->fault);
}

static enum vxd_status step_put(struct vxd_queue *queue,
                                struct vxd_svdag_device_collection *collection,
                                struct vxd_err *err)
{
    const struct vxd_svdag_collect_view view = view_of(collection);
    enum vxd_svdag_kind kind = vxd_svdag_kind_at(collection->height);
    struct vxd_svdag_collect_state *mirror = collection->mirror.ptr;
    enum vxd_status (*put)(struct vxd_queue *, const struct vxd_svdag_collect_view *,
                           enum vxd_svdag_kind, uint32_t, uint32_t, struct vxd_err *);
    struct vxd_svdag_needs needs;
    uint32_t left = collection->ends[collection->height] - collection->next;
    uint32_t n = left < PUT_PIECE ? left : PUT_PIECE;
    enum vxd_status status = VXD_OK;

    if (needs_capacity(collection, &view, &needs)) {
        VXD_TRY(vxd_svdag_device_grow(queue, collection->to, &needs, err));
        mirror->fault = 0;
        goto out;
    }
    if (n > 0) {
        VXD_TRY(vxd_queue_fill(queue,
                               (char *)collection->state.ptr +
                                   offsetof(struct vxd_svdag_collect_state, is_left),
                               0, sizeof(uint32_t), err));
        put = collection->to->device_ops == NULL ? vxd_svdag_collect_device_put
                                                 : collection->to->device_ops->put;
        VXD_TRY(put(queue, &view, kind, collection->next, n, err));
        VXD_TRY(vxd_svdag_device_end_edit(queue, collection->to, err));
        VXD_TRY(read_state(queue, collection, err));
        if (counted(collection)->fault != 0) {
            status = check_fault(collection, err);
            goto out;
        }
        collection->next += n;
        if (counted(collection)->is_left != 0 &&
            collection->height < collection->first_left) {
            collection->first_left = collection->height;
        }
    }
    if (n == left) {
        status = go_up(queue, collection, err);
    }
out:
    return status;
}

enum vxd_status
vxd_svdag_collect_device_step(struct vxd_queue *queue,
                              struct vxd_svdag_device_collection *collection,
                              struct vxd_err *err)
{
    switch (collection->phase) {
    case MARK:
        return step_mark(queue, collection, err);
    case RANK:
        return step_rank(queue, collection, err);
    case PUT:
        return step_put(queue, collection, err);
    default:
        return VXD_OK;
    }
}

enum vxd_status vxd_svdag_collect_device_refs(
    struct vxd_queue *queue, struct vxd_svdag_device_collection *collection,
    const uint32_t *roots, uint32_t *refs, size_t n, struct vxd_err *err)
{
    const struct vxd_svdag_collect_view view = view_of(collection);
    struct vxd_buffer device = {0};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, 2 * n * sizeof *refs, &device, err));
    VXD_TRY(vxd_queue_copy(queue, device.ptr, roots, n * sizeof *roots, err));
    VXD_TRY(vxd_svdag_collect_device_read(queue, &view, device.ptr,
                                          (uint32_t *)device.ptr + n, (uint32_t)n, err));
    VXD_TRY(
        vxd_queue_copy(queue, refs, (uint32_t *)device.ptr + n, n * sizeof *refs, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    vxd_device_free(queue, &device);
    return status;
}
