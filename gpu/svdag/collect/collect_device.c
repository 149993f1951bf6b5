// SPDX-License-Identifier: Apache-2.0
/* Transfers on a GPU: marks by height from the roots down, their numbers, room in the store that
 * is filled, then items from the leaves up. Each piece is a launch or two and a wait. As on the
 * CPU (transfer_cpu.c), items that stand at several heights may have to wait for a child. */
#include "gpu/svdag/collect/collect_device.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/core/core.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/store/store_math.h"

enum {
    MARK_PIECE = 1 << 18,  /* items, some tenths of a millisecond */
    PUT_PIECE = 1 << 18,   /* likewise */
    ROOM_WORDS = 16 << 20, /* that the store grows by at once */
    PAGE_BYTES = VXD_SVDAG_PAGE_MARKS * sizeof(struct vxd_svdag_mark)
};

enum phase {
    IDLE,
    MARK,
    RANK,
    PUT
};

/* As struct vxd_svdag_marks on the CPU. */
struct generation {
    struct vxd_buffer marks;
    struct vxd_buffer refs;
    uint32_t n;
};

struct vxd_svdag_carry {
    struct vxd_svdag_view view;
    struct vxd_svdag *to;
    struct generation generations[2];
    uint32_t fresh;
    uint32_t n_chunks;
    struct vxd_buffer sums; /* of marks, with the scan's scratch behind */
    size_t scan_bytes;
    struct vxd_buffer list;
    struct vxd_buffer pass;   /* device: the state of the pass that puts are */
    struct vxd_buffer state;  /* device */
    struct vxd_buffer mirror; /* host: the same after the last wait */
    enum phase phase;
    int height;
    uint32_t next;                        /* of the list */
    uint32_t begins[VXD_SVDAG_N_HEIGHTS]; /* of the list, by height; 0 is for blocks */
    uint32_t ends[VXD_SVDAG_N_HEIGHTS];
    struct vxd_svdag_carry_state before; /* what was told when the round began */
    int first_left;
    uint64_t n_put_before; /* the way up began */
};

static const struct vxd_svdag_carry_state *told(const struct vxd_svdag_carry *carry)
{
    return carry->mirror.ptr;
}

static uint32_t n_groups(const struct vxd_svdag_carry *carry)
{
    return carry->n_chunks * VXD_SVDAG_PAGE_MARKS;
}

static struct vxd_svdag_carry_view view_of(const struct vxd_svdag_carry *carry)
{
    struct vxd_svdag_carry_view view = {.view = carry->view,
                                        .fresh = carry->fresh,
                                        .list = carry->list.ptr,
                                        .state = carry->state.ptr};

    for (int i = 0; i < 2; i++) {
        view.marks[i] = carry->generations[i].marks.ptr;
        view.refs[i] = carry->generations[i].refs.ptr;
    }
    vxd_svdag_device_begin_pass(carry->to, &view.to);
    view.to.state = carry->pass.ptr;
    return view;
}

/* What kernels counted, after what is queued. */
static enum vxd_status read_state(struct vxd_queue *queue, struct vxd_svdag_carry *carry,
                                  struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_queue_copy(queue, carry->mirror.ptr, carry->state.ptr,
                           sizeof(struct vxd_svdag_carry_state), err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

/* ----------------------------------------------------------------------------------------- */

enum vxd_status vxd_svdag_carry_open(struct vxd_queue *queue,
                                     const struct vxd_svdag_view *view,
                                     struct vxd_svdag *to, struct vxd_svdag_carry **out,
                                     struct vxd_err *err)
{
    struct vxd_svdag_carry *carry = calloc(1, sizeof *carry);
    enum vxd_status status;

    *out = NULL;
    if (carry == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a transfer");
    }
    carry->view = *view;
    carry->to = to;
    VXD_TRY(vxd_host_alloc(queue->context, sizeof(struct vxd_svdag_carry_state),
                           &carry->mirror, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof(struct vxd_svdag_carry_state), &carry->state,
                             err));
    VXD_TRY(
        vxd_device_alloc(queue, sizeof(struct vxd_svdag_pass_state), &carry->pass, err));
    VXD_TRY(vxd_queue_fill(queue, carry->state.ptr, 0, carry->state.n_bytes, err));
    VXD_TRY(read_state(queue, carry, err));
    *out = carry;
    return VXD_OK;
out:
    vxd_svdag_carry_close(queue, carry);
    return status;
}

void vxd_svdag_carry_close(struct vxd_queue *queue, struct vxd_svdag_carry *carry)
{
    if (carry == NULL) {
        return;
    }
    /* The mirror is host memory, which goes at once. */
    (void)vxd_queue_wait(queue, NULL);
    for (int i = 0; i < 2; i++) {
        vxd_device_free(queue, &carry->generations[i].marks);
        vxd_device_free(queue, &carry->generations[i].refs);
    }
    vxd_device_free(queue, &carry->sums);
    vxd_device_free(queue, &carry->list);
    vxd_device_free(queue, &carry->pass);
    vxd_device_free(queue, &carry->state);
    vxd_host_free(queue->context, &carry->mirror);
    free(carry);
}

bool vxd_svdag_carry_is_idle(const struct vxd_svdag_carry *carry)
{
    return carry->phase == IDLE;
}

void vxd_svdag_carry_count(const struct vxd_svdag_carry *carry, uint64_t *n_nodes,
                           uint64_t *n_words)
{
    *n_nodes = told(carry)->n_put;
    *n_words = told(carry)->n_put_words;
}

/* Rounds ---------------------------------------------------------------------------------- */

/* Marks for as many chunks as the store has now. */
static enum vxd_status grow_marks(struct vxd_queue *queue, struct vxd_svdag_carry *carry,
                                  struct generation *generation, struct vxd_err *err)
{
    struct vxd_buffer *old = &generation->marks;
    size_t n_bytes = (size_t)carry->n_chunks * PAGE_BYTES;
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

/* Sums of the marks that the next steps number, with their scratch. */
static enum vxd_status sum_marks(struct vxd_queue *queue, struct vxd_svdag_carry *carry,
                                 bool has_both, struct vxd_err *err)
{
    const struct vxd_svdag_carry_view view = view_of(carry);
    size_t n = (n_groups(carry) + VXD_SVDAG_RANK_MARKS - 1) / VXD_SVDAG_RANK_MARKS;
    size_t scan_bytes = vxd_scan_scratch_bytes(queue, n);
    size_t n_bytes = 0;
    size_t at[2];
    char *memory;
    enum vxd_status status = VXD_OK;

    if (!vxd_layout_add(&n_bytes, n + 1, sizeof(uint32_t), &at[0]) ||
        !vxd_layout_add(&n_bytes, 1, scan_bytes, &at[1])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no room for marks");
    }
    if (carry->sums.n_bytes < n_bytes) {
        vxd_device_free(queue, &carry->sums);
        VXD_TRY(vxd_device_alloc(queue, n_bytes, &carry->sums, err));
    }
    memory = carry->sums.ptr;
    VXD_TRY(vxd_svdag_carry_count_marks(queue, &view, has_both, n_groups(carry),
                                        carry->sums.ptr, err));
    VXD_TRY(vxd_scan_exclusive(queue, carry->sums.ptr, carry->sums.ptr, n, memory + at[1],
                               scan_bytes, err));
out:
    return status;
}

/* Makes one of two generations. */
static enum vxd_status merge(struct vxd_queue *queue, struct vxd_svdag_carry *carry,
                             struct vxd_err *err)
{
    struct generation *old = &carry->generations[0];
    struct generation *fresh = &carry->generations[1];
    struct vxd_buffer refs = {0};
    struct vxd_svdag_carry_view view;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, ((size_t)old->n + fresh->n) * sizeof(uint32_t), &refs,
                             err));
    VXD_TRY(sum_marks(queue, carry, true, err));
    view = view_of(carry);
    VXD_TRY(vxd_svdag_carry_merge(queue, &view, n_groups(carry), carry->sums.ptr,
                                  refs.ptr, err));
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
static enum vxd_status begin_marks(struct vxd_queue *queue, struct vxd_svdag_carry *carry,
                                   const uint32_t *roots, size_t n_roots,
                                   struct vxd_err *err)
{
    const struct vxd_svdag_carry_view view = view_of(carry);
    struct vxd_svdag_carry_state *state = carry->mirror.ptr;
    struct vxd_buffer device = {0};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n_roots * sizeof *roots, &device, err));
    VXD_TRY(vxd_queue_copy(queue, device.ptr, roots, n_roots * sizeof *roots, err));
    state->n_listed = 0;
    VXD_TRY(vxd_queue_copy(queue, carry->state.ptr, state, sizeof *state, err));
    VXD_TRY(vxd_svdag_carry_mark_roots(queue, &view, device.ptr, (uint32_t)n_roots, err));
    carry->before = *state;
    VXD_TRY(read_state(queue, carry, err));
out:
    vxd_device_free(queue, &device);
    return status;
}

enum vxd_status vxd_svdag_carry_begin(struct vxd_queue *queue,
                                      struct vxd_svdag_carry *carry,
                                      const uint32_t *roots, size_t n_roots,
                                      uint32_t n_chunks, uint64_t n_items,
                                      bool *has_begun, struct vxd_err *err)
{
    enum vxd_status status;

    *has_begun = false;
    carry->n_chunks = n_chunks > carry->n_chunks ? n_chunks : carry->n_chunks;
    carry->fresh = carry->generations[0].n > 0 ? 1 : 0;
    for (uint32_t i = 0; i <= carry->fresh; i++) {
        VXD_TRY(grow_marks(queue, carry, &carry->generations[i], err));
    }
    if (carry->generations[1].n > 0) {
        return merge(queue, carry, err);
    }
    n_items -= n_items < carry->generations[0].n ? n_items : carry->generations[0].n;
    vxd_device_free(queue, &carry->list);
    VXD_TRY(vxd_device_alloc(queue, (size_t)(n_items + 1) * sizeof(uint32_t),
                             &carry->list, err));
    VXD_TRY(begin_marks(queue, carry, roots, n_roots, err));
    memset(carry->begins, 0, sizeof carry->begins);
    memset(carry->ends, 0, sizeof carry->ends);
    carry->height = carry->view.depth;
    carry->ends[carry->height] = told(carry)->n_listed;
    carry->next = 0;
    carry->phase = MARK;
    *has_begun = true;
out:
    return status;
}

/* Steps ----------------------------------------------------------------------------------- */

static enum vxd_status step_mark(struct vxd_queue *queue, struct vxd_svdag_carry *carry,
                                 struct vxd_err *err)
{
    const struct vxd_svdag_carry_view view = view_of(carry);
    uint32_t left = carry->ends[carry->height] - carry->next;
    uint32_t n = left < MARK_PIECE ? left : MARK_PIECE;
    enum vxd_status status = VXD_OK;

    if (n > 0) {
        VXD_TRY(vxd_svdag_carry_mark(queue, &view, carry->height == VXD_SVDAG_LEAF_HEIGHT,
                                     carry->next, n, err));
        VXD_TRY(read_state(queue, carry, err));
        carry->next += n;
    }
    if (n < left) {
        goto out;
    }
    /* The list of the next height is whole. */
    if (carry->height == VXD_SVDAG_LEAF_HEIGHT) {
        carry->begins[0] = carry->next;
        carry->ends[0] = told(carry)->n_listed;
        carry->phase = RANK;
    } else {
        carry->height--;
        carry->begins[carry->height] = carry->next;
        carry->ends[carry->height] = told(carry)->n_listed;
    }
out:
    return status;
}

static enum vxd_status step_rank(struct vxd_queue *queue, struct vxd_svdag_carry *carry,
                                 struct vxd_err *err)
{
    struct generation *fresh = &carry->generations[carry->fresh];
    const struct vxd_svdag_carry_view view = view_of(carry);
    size_t n_bytes = ((size_t)told(carry)->n_listed + 1) * sizeof(uint32_t);
    enum vxd_status status;

    VXD_TRY(sum_marks(queue, carry, false, err));
    VXD_TRY(vxd_svdag_carry_rank(queue, &view, n_groups(carry), carry->sums.ptr, err));
    vxd_device_free(queue, &fresh->refs);
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &fresh->refs, err));
    VXD_TRY(vxd_queue_fill(queue, fresh->refs.ptr, 0, n_bytes, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    fresh->n = told(carry)->n_listed;
    carry->phase = PUT;
    carry->height = carry->view.value_bits >= 8 ? 0 : VXD_SVDAG_LEAF_HEIGHT;
    carry->next = carry->begins[carry->height];
    carry->first_left = VXD_SVDAG_N_HEIGHTS;
    carry->n_put_before = told(carry)->n_put;
out:
    return status;
}

/* What an arena lacks for all that is listed and not put, some of it at once, so that there is room
 * for each launch. What another store needs is known once it has no room. False: nothing. */
static bool needs_room(const struct vxd_svdag_carry *carry,
                       const struct vxd_svdag_carry_view *view,
                       struct vxd_svdag_needs *needs)
{
    const struct vxd_svdag_store_state store = vxd_svdag_device_state(carry->to);
    const struct vxd_svdag_carry_state *now = told(carry);
    const struct vxd_svdag_carry_state *before = &carry->before;
    const uint64_t n_words = now->n_listed_words - before->n_listed_words -
                             (now->n_put_words - before->n_put_words);
    const uint64_t n_items =
        store.n_items[VXD_SVDAG_LEAF] + store.n_items[VXD_SVDAG_INNER] +
        store.n_items[VXD_SVDAG_BLOCK] + now->n_listed - (now->n_put - before->n_put);
    /* Warps lose some words at the ends of chunks. */
    const uint64_t lost = UINT64_C(32) * VXD_SVDAG_MAX_ITEM_WORDS;
    const uint64_t wanted =
        store.next + n_words + lost * (n_words / (VXD_SVDAG_CHUNK_WORDS - lost) + 2);
    const uint64_t most = view->to.capacity_words + ROOM_WORDS;

    *needs = (struct vxd_svdag_needs){0};
    if (carry->to->spec.store != VXD_SVDAG_ARENA) {
        /* A word more than it has: a chunk. */
        needs->n_words =
            (told(carry)->fault & VXD_SVDAG_NO_WORDS) != 0
                ? store.next + 1 + (n_words < ROOM_WORDS ? n_words : ROOM_WORDS)
                : 0;
        return needs->n_words > 0;
    }
    if (wanted > view->to.capacity_words) {
        needs->n_words = wanted < most ? wanted : most;
    }
    if (vxd_svdag_index_is_full(n_items, (uint64_t)view->to.index.n_buckets *
                                             VXD_SVDAG_INDEX_SLOTS)) {
        needs->n_items = n_items;
    }
    return needs->n_words > 0 || needs->n_items > 0;
}

/* A height was gone over. */
static enum vxd_status go_up(struct vxd_queue *queue, struct vxd_svdag_carry *carry,
                             struct vxd_err *err)
{
    if (carry->height < carry->view.depth) {
        carry->height += carry->height == 0 ? VXD_SVDAG_LEAF_HEIGHT : 1;
        carry->next = carry->begins[carry->height];
        return VXD_OK;
    }
    if (carry->first_left == VXD_SVDAG_N_HEIGHTS) {
        vxd_device_free(queue, &carry->list);
        carry->phase = IDLE;
        return VXD_OK;
    }
    if (told(carry)->n_put == carry->n_put_before) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "nodes wait for each other");
    }
    carry->height = carry->first_left;
    carry->next = carry->begins[carry->height];
    carry->first_left = VXD_SVDAG_N_HEIGHTS;
    carry->n_put_before = told(carry)->n_put;
    return VXD_OK;
}

/* Once a store has no room the next step makes some, and puts the same again. */
static enum vxd_status check_fault(const struct vxd_svdag_carry *carry,
                                   struct vxd_err *err)
{
    return (told(carry)->fault & ~(uint32_t)VXD_SVDAG_NO_WORDS) == 0 &&
                   carry->to->spec.store != VXD_SVDAG_ARENA
               ? VXD_OK
               : vxd_fail(err, VXD_INTERNAL, NULL,
                          "a store with room for all nodes took some of them only: %u",
                          told(carry)->fault);
}

static enum vxd_status step_put(struct vxd_queue *queue, struct vxd_svdag_carry *carry,
                                struct vxd_err *err)
{
    const struct vxd_svdag_carry_view view = view_of(carry);
    enum vxd_svdag_kind kind = vxd_svdag_kind_at(carry->height);
    struct vxd_svdag_carry_state *mirror = carry->mirror.ptr;
    enum vxd_status (*put)(struct vxd_queue *, const struct vxd_svdag_carry_view *,
                           enum vxd_svdag_kind, uint32_t, uint32_t, struct vxd_err *);
    struct vxd_svdag_needs needs;
    uint32_t left = carry->ends[carry->height] - carry->next;
    uint32_t n = left < PUT_PIECE ? left : PUT_PIECE;
    enum vxd_status status = VXD_OK;

    if (needs_room(carry, &view, &needs)) {
        VXD_TRY(vxd_svdag_device_grow(queue, carry->to, &needs, err));
        mirror->fault = 0;
        goto out;
    }
    if (n > 0) {
        VXD_TRY(vxd_queue_fill(queue,
                               (char *)carry->state.ptr +
                                   offsetof(struct vxd_svdag_carry_state, is_left),
                               0, sizeof(uint32_t), err));
        put = carry->to->device_ops == NULL ? vxd_svdag_carry_put
                                            : carry->to->device_ops->put;
        VXD_TRY(put(queue, &view, kind, carry->next, n, err));
        VXD_TRY(vxd_svdag_device_end_edit(queue, carry->to, err));
        VXD_TRY(read_state(queue, carry, err));
        if (told(carry)->fault != 0) {
            status = check_fault(carry, err);
            goto out;
        }
        carry->next += n;
        if (told(carry)->is_left != 0 && carry->height < carry->first_left) {
            carry->first_left = carry->height;
        }
    }
    if (n == left) {
        status = go_up(queue, carry, err);
    }
out:
    return status;
}

enum vxd_status vxd_svdag_carry_step(struct vxd_queue *queue,
                                     struct vxd_svdag_carry *carry, struct vxd_err *err)
{
    switch (carry->phase) {
    case MARK:
        return step_mark(queue, carry, err);
    case RANK:
        return step_rank(queue, carry, err);
    case PUT:
        return step_put(queue, carry, err);
    default:
        return VXD_OK;
    }
}

enum vxd_status vxd_svdag_carry_refs(struct vxd_queue *queue,
                                     struct vxd_svdag_carry *carry, const uint32_t *roots,
                                     uint32_t *refs, size_t n, struct vxd_err *err)
{
    const struct vxd_svdag_carry_view view = view_of(carry);
    struct vxd_buffer device = {0};
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, 2 * n * sizeof *refs, &device, err));
    VXD_TRY(vxd_queue_copy(queue, device.ptr, roots, n * sizeof *roots, err));
    VXD_TRY(vxd_svdag_carry_read(queue, &view, device.ptr, (uint32_t *)device.ptr + n,
                                 (uint32_t)n, err));
    VXD_TRY(
        vxd_queue_copy(queue, refs, (uint32_t *)device.ptr + n, n * sizeof *refs, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    vxd_device_free(queue, &device);
    return status;
}
