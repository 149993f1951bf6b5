// SPDX-License-Identifier: Apache-2.0
/* Transfers: their roots, rounds and times. The work is transfer_cpu.c's or transfer_cuda.c's. */
#include <stdlib.h>
#include <time.h>

#include "gpu/svdag/collect/collect_traversal_cpu.h"
#include "gpu/svdag/collect/collect_device.h"
#include "gpu/svdag/collect/collect_source.h"

/* A root, and what it became. */
struct pair {
    uint32_t from;
    uint32_t to;
};

struct vxd_svdag_transfer {
    const struct vxd_svdag *from; /* NULL: source alone */
    struct vxd_svdag_transfer_source source;
    struct vxd_svdag *to;
    struct pair *done; /* ascending */
    size_t n_done;
    uint32_t *pending; /* roots to be carried over, */
    size_t n_pending;
    size_t capacity;
    size_t n_begun; /* the first of them by the round that goes on */
    struct vxd_svdag_walk walk;
    struct vxd_svdag_carry *carry; /* on a GPU */
    struct vxd_svdag_usage usage;  /* of from, when the last round began */
    struct vxd_svdag_transfer_stats stats;
};

/* A constant in builds without CUDA. */
#define IS_ON_CUDA(transfer) VXD_ON_CUDA((transfer)->to->context)

static bool is_idle(const struct vxd_svdag_transfer *transfer)
{
    return IS_ON_CUDA(transfer) ? vxd_svdag_carry_is_idle(transfer->carry)
                                : transfer->walk.phase == VXD_SVDAG_WALK_IDLE;
}

static enum vxd_status put(void *args, struct vxd_svdag_writer *writer,
                           enum vxd_svdag_kind kind, const uint32_t *words, int n_words,
                           uint32_t *ref, struct vxd_err *err)
{
    const struct vxd_svdag *to = args;
    const struct vxd_svdag_wanted wanted = {vxd_svdag_hash(kind, words, n_words), words,
                                            kind, n_words};
    bool is_new;

    return to->ops->put(writer, &wanted, ref, &is_new, err);
}

enum vxd_status vxd_svdag_transfer_open(struct vxd_queue *queue,
                                        const struct vxd_svdag_transfer_source *source,
                                        struct vxd_svdag *to,
                                        struct vxd_svdag_transfer **out,
                                        struct vxd_err *err)
{
    struct vxd_svdag_transfer *transfer = calloc(1, sizeof *transfer);
    enum vxd_status status;

    *out = NULL;
    if (transfer == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a transfer");
    }
    transfer->source = *source;
    transfer->to = to;
    status = vxd_svdag_walk_open(&transfer->walk, queue->context, &source->view, err);
    if (status == VXD_OK && IS_ON_CUDA(transfer)) {
        status = vxd_svdag_carry_open(queue, &source->view, to, &transfer->carry, err);
    }
    if (status != VXD_OK) {
        vxd_svdag_transfer_end(queue, transfer);
        return status;
    }
    transfer->walk.pool = queue->context->pool;
    transfer->walk.to = to;
    transfer->walk.put = put;
    transfer->walk.put_args = to;
    *out = transfer;
    return VXD_OK;
}

enum vxd_status vxd_svdag_transfer_begin(struct vxd_queue *queue,
                                         const struct vxd_svdag *from,
                                         struct vxd_svdag *to,
                                         struct vxd_svdag_transfer **out,
                                         struct vxd_err *err)
{
    const struct vxd_svdag_format *a = &from->spec.format;
    const struct vxd_svdag_format *b = &to->spec.format;
    const struct vxd_svdag_transfer_source source = {.view = from->view};
    enum vxd_status status;

    *out = NULL;
    if (from == to || from->context != to->context) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "to",
                        "must be another store of the same context");
    }
    if (a->depth != b->depth || a->material_bits != b->material_bits ||
        a->tracks_free != b->tracks_free) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "to",
                        "has not the format of the store that is read");
    }
    status = vxd_svdag_transfer_open(queue, &source, to, out, err);
    if (status == VXD_OK) {
        (*out)->from = from;
    }
    return status;
}

void vxd_svdag_transfer_end(struct vxd_queue *queue, struct vxd_svdag_transfer *transfer)
{
    if (transfer == NULL) {
        return;
    }
    vxd_svdag_walk_close(&transfer->walk);
    if (IS_ON_CUDA(transfer)) {
        vxd_svdag_carry_close(queue, transfer->carry);
    }
    free(transfer->done);
    free(transfer->pending);
    free(transfer);
}

/* The pair of a root, or NULL. */
static const struct pair *find_pair(const struct vxd_svdag_transfer *transfer,
                                    uint32_t root)
{
    size_t begin = 0;
    size_t end = transfer->n_done;

    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;

        if (transfer->done[middle].from < root) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin < transfer->n_done && transfer->done[begin].from == root
               ? &transfer->done[begin]
               : NULL;
}

enum vxd_status vxd_svdag_transfer_add(struct vxd_svdag_transfer *transfer, uint32_t root,
                                       struct vxd_err *err)
{
    if (!vxd_svdag_is_node(root) || find_pair(transfer, root) != NULL) {
        return VXD_OK;
    }
    if (transfer->n_pending == transfer->capacity) {
        size_t capacity = transfer->capacity * 2 + 16;
        uint32_t *pending =
            realloc(transfer->pending, capacity * sizeof *transfer->pending);

        if (pending == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a root");
        }
        transfer->pending = pending;
        transfer->capacity = capacity;
    }
    transfer->pending[transfer->n_pending++] = root;
    return VXD_OK;
}

bool vxd_svdag_transfer_root(const struct vxd_svdag_transfer *transfer, uint32_t root,
                             uint32_t *out)
{
    const struct pair *pair = vxd_svdag_is_node(root) ? find_pair(transfer, root) : NULL;

    *out = pair != NULL ? pair->to : root;
    return pair != NULL || !vxd_svdag_is_node(root);
}

/* Rounds ---------------------------------------------------------------------------------- */

static int compare_pairs(const void *a, const void *b)
{
    uint32_t x = ((const struct pair *)a)->from;
    uint32_t y = ((const struct pair *)b)->from;

    return x < y ? -1 : x > y;
}

/* Begins a round of the roots that wait. */
static enum vxd_status begin_round(struct vxd_queue *queue,
                                   struct vxd_svdag_transfer *transfer,
                                   struct vxd_err *err)
{
    struct vxd_svdag_transfer_source source = transfer->source;
    size_t n = transfer->n_pending;
    bool has_begun;
    enum vxd_status status;

    if (transfer->from != NULL) {
        vxd_svdag_get_usage(transfer->from, &transfer->usage);
        source.n_items =
            transfer->usage.n_leaves + transfer->usage.n_inner + transfer->usage.n_blocks;
    }
    if (IS_ON_CUDA(transfer)) {
        if (transfer->from != NULL) {
            source.n_chunks = vxd_svdag_device_n_chunks(transfer->from);
        }
        status = vxd_svdag_carry_begin(queue, transfer->carry, transfer->pending, n,
                                       source.n_chunks, source.n_items, &has_begun, err);
        transfer->n_begun = status == VXD_OK && has_begun ? n : 0;
        return status;
    }
    status =
        vxd_svdag_walk_begin(&transfer->walk, transfer->pending, n, source.n_items, err);
    has_begun = transfer->walk.phase == VXD_SVDAG_WALK_MARK;
    transfer->n_begun = status == VXD_OK && has_begun ? n : 0;
    return status;
}

static enum vxd_status read_refs(struct vxd_queue *queue,
                                 struct vxd_svdag_transfer *transfer, uint32_t *refs,
                                 struct vxd_err *err)
{
    if (IS_ON_CUDA(transfer)) {
        return vxd_svdag_carry_refs(queue, transfer->carry, transfer->pending, refs,
                                    transfer->n_begun, err);
    }
    for (size_t i = 0; i < transfer->n_begun; i++) {
        refs[i] = vxd_svdag_walk_ref(&transfer->walk, transfer->pending[i]);
    }
    return VXD_OK;
}

/* A round is over: its roots are known. */
static enum vxd_status end_round(struct vxd_queue *queue,
                                 struct vxd_svdag_transfer *transfer, struct vxd_err *err)
{
    size_t n = transfer->n_begun;
    uint32_t *refs = malloc(n * sizeof *refs);
    struct pair *done =
        realloc(transfer->done, (transfer->n_done + n) * sizeof *transfer->done);
    enum vxd_status status = VXD_OK;

    transfer->done = done != NULL ? done : transfer->done;
    if (refs == NULL || done == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for roots");
        goto out;
    }
    VXD_TRY(read_refs(queue, transfer, refs, err));
    for (size_t i = 0; i < n; i++) {
        done[transfer->n_done++] = (struct pair){transfer->pending[i], refs[i]};
    }
    qsort(done, transfer->n_done, sizeof *done, compare_pairs);
    transfer->n_pending -= n;
    for (size_t i = 0; i < transfer->n_pending; i++) {
        transfer->pending[i] = transfer->pending[n + i];
    }
    transfer->n_begun = 0;
out:
    free(refs);
    return status;
}

/* Steps ----------------------------------------------------------------------------------- */

uint64_t vxd_svdag_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct vxd_svdag_pace vxd_svdag_pace_begin(uint64_t max_ns)
{
    uint64_t now = vxd_svdag_now_ns();

    return (struct vxd_svdag_pace){.begin_ns = now, .last_ns = now, .max_ns = max_ns};
}

bool vxd_svdag_pace_goes_on(struct vxd_svdag_pace *pace)
{
    uint64_t now = vxd_svdag_now_ns();
    uint64_t n_ns = now - pace->last_ns;

    pace->longest_ns = n_ns > pace->longest_ns ? n_ns : pace->longest_ns;
    pace->last_ns = now;
    return now - pace->begin_ns < pace->max_ns &&
           pace->longest_ns < pace->max_ns - (now - pace->begin_ns);
}

/* One piece of whatever comes next; *is_done: nothing does. */
static enum vxd_status step_once(struct vxd_queue *queue,
                                 struct vxd_svdag_transfer *transfer, bool *is_done,
                                 struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    *is_done = false;
    if (!is_idle(transfer)) {
        status = IS_ON_CUDA(transfer) ? vxd_svdag_carry_step(queue, transfer->carry, err)
                                      : vxd_svdag_walk_step(&transfer->walk, err);
    } else if (transfer->n_begun == 0 && transfer->n_pending > 0) {
        status = begin_round(queue, transfer, err);
    }
    if (status == VXD_OK && is_idle(transfer) && transfer->n_begun > 0) {
        status = end_round(queue, transfer, err);
    }
    *is_done = status == VXD_OK && is_idle(transfer) && transfer->n_pending == 0;
    return status;
}

enum vxd_status vxd_svdag_transfer_step(struct vxd_queue *queue,
                                        struct vxd_svdag_transfer *transfer,
                                        uint64_t max_ns, bool *is_done,
                                        struct vxd_err *err)
{
    struct vxd_svdag_transfer_stats *stats = &transfer->stats;
    struct vxd_svdag_pace pace = vxd_svdag_pace_begin(max_ns);
    uint64_t n_ns;
    enum vxd_status status;

    *is_done = false;
    VXD_TRY(vxd_queue_wait(queue, err));
    do {
        VXD_TRY(step_once(queue, transfer, is_done, err));
    } while (!*is_done && vxd_svdag_pace_goes_on(&pace));
out:
    n_ns = vxd_svdag_now_ns() - pace.begin_ns;
    stats->n_steps++;
    stats->total_ns += n_ns;
    stats->longest_step_ns =
        n_ns > stats->longest_step_ns ? n_ns : stats->longest_step_ns;
    return status;
}

void vxd_svdag_transfer_get_stats(const struct vxd_svdag_transfer *transfer,
                                  struct vxd_svdag_transfer_stats *out)
{
    const struct vxd_svdag_usage *usage = &transfer->usage;
    uint64_t n_nodes = usage->n_leaves + usage->n_inner + usage->n_blocks;
    uint64_t n_words = transfer->walk.n_words;

    *out = transfer->stats;
    out->n_nodes = transfer->walk.n_nodes;
    if (IS_ON_CUDA(transfer)) {
        vxd_svdag_carry_count(transfer->carry, &out->n_nodes, &n_words);
    }
    out->n_bytes = n_words * sizeof(uint32_t);
    out->n_dead_nodes = n_nodes > out->n_nodes ? n_nodes - out->n_nodes : 0;
    out->n_dead_bytes =
        usage->node_bytes > out->n_bytes ? usage->node_bytes - out->n_bytes : 0;
}
