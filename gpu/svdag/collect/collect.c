// SPDX-License-Identifier: Apache-2.0
/* Collections: their roots, rounds and time limits. collect_cpu.c and collect_device.c do
 * the work. */
#include <stdlib.h>
#include <time.h>

#include "gpu/svdag/collect/collect_traversal_cpu.h"
#include "gpu/svdag/collect/collect_device.h"
#include "gpu/svdag/collect/collect_source.h"

/* A root and its new reference. */
struct pair {
    uint32_t from;
    uint32_t to;
};

struct vxd_svdag_collection {
    const struct vxd_svdag *from; /* NULL: only `source` is read */
    struct vxd_svdag_collect_source source;
    struct vxd_svdag *to;
    struct pair *done; /* ascending */
    size_t n_done;
    uint32_t *pending; /* roots to be copied */
    size_t n_pending;
    size_t capacity;
    size_t n_begun; /* so many of them, from the first on, are in the running round */
    struct vxd_svdag_collect_traversal traversal;
    struct vxd_svdag_device_collection *device; /* on a GPU */
    struct vxd_svdag_usage usage; /* of `from`, at the beginning of the last round */
    struct vxd_svdag_collect_stats stats;
};

/* A constant in builds without CUDA. */
#define IS_ON_CUDA(collection) VXD_ON_CUDA((collection)->to->context)

static bool is_idle(const struct vxd_svdag_collection *collection)
{
    return IS_ON_CUDA(collection) ? vxd_svdag_collect_device_is_idle(collection->device)
                                  : collection->traversal.phase == VXD_SVDAG_COLLECT_IDLE;
}

static enum vxd_status put(void *args, struct vxd_svdag_writer *writer,
                           enum vxd_svdag_kind kind, const uint32_t *words, int n_words,
                           uint32_t *ref, struct vxd_err *err)
{
    const struct vxd_svdag *to = args;
    const struct vxd_svdag_lookup_key key = {vxd_svdag_hash(kind, words, n_words), words,
                                             kind, n_words};
    bool is_new;

    return to->ops->put(writer, &key, ref, &is_new, err);
}

enum vxd_status vxd_svdag_collect_open(struct vxd_queue *queue,
                                       const struct vxd_svdag_collect_source *source,
                                       struct vxd_svdag *to,
                                       struct vxd_svdag_collection **out,
                                       struct vxd_err *err)
{
    struct vxd_svdag_collection *collection = calloc(1, sizeof *collection);
    enum vxd_status status;

    *out = NULL;
    if (collection == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a collection");
    }
    collection->source = *source;
    collection->to = to;
    status = vxd_svdag_collect_traversal_open(&collection->traversal, queue->context,
                                              &source->view, err);
    if (status == VXD_OK && IS_ON_CUDA(collection)) {
        status = vxd_svdag_collect_device_open(queue, &source->view, to,
                                               &collection->device, err);
    }
    if (status != VXD_OK) {
        vxd_svdag_collect_end(queue, collection);
        return status;
    }
    collection->traversal.pool = queue->context->pool;
    collection->traversal.to = to;
    collection->traversal.put = put;
    collection->traversal.put_args = to;
    *out = collection;
    return VXD_OK;
}

enum vxd_status vxd_svdag_collect_begin(struct vxd_queue *queue,
                                        const struct vxd_svdag *from,
                                        struct vxd_svdag *to,
                                        struct vxd_svdag_collection **out,
                                        struct vxd_err *err)
{
    const struct vxd_svdag_format *a = &from->spec.format;
    const struct vxd_svdag_format *b = &to->spec.format;
    const struct vxd_svdag_collect_source source = {.view = from->view};
    enum vxd_status status;

    *out = NULL;
    if (from == to || from->context != to->context) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "to",
                        "must be another store of the same context");
    }
    if (a->depth != b->depth || a->material_bits != b->material_bits ||
        a->tracks_free != b->tracks_free) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "to",
                        "has another format than the store that is read");
    }
    status = vxd_svdag_collect_open(queue, &source, to, out, err);
    if (status == VXD_OK) {
        (*out)->from = from;
    }
    return status;
}

void vxd_svdag_collect_end(struct vxd_queue *queue,
                           struct vxd_svdag_collection *collection)
{
    if (collection == NULL) {
        return;
    }
    vxd_svdag_collect_traversal_close(&collection->traversal);
    if (IS_ON_CUDA(collection)) {
        vxd_svdag_collect_device_close(queue, collection->device);
    }
    free(collection->done);
    free(collection->pending);
    free(collection);
}

/* The pair of a root, or NULL. */
static const struct pair *find_pair(const struct vxd_svdag_collection *collection,
                                    uint32_t root)
{
    size_t begin = 0;
    size_t end = collection->n_done;

    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;

        if (collection->done[middle].from < root) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin < collection->n_done && collection->done[begin].from == root
               ? &collection->done[begin]
               : NULL;
}

enum vxd_status vxd_svdag_collect_add(struct vxd_svdag_collection *collection,
                                      uint32_t root, struct vxd_err *err)
{
    if (!vxd_svdag_is_node(root) || find_pair(collection, root) != NULL) {
        return VXD_OK;
    }
    if (collection->n_pending == collection->capacity) {
        size_t capacity = collection->capacity * 2 + 16;
        uint32_t *pending =
            realloc(collection->pending, capacity * sizeof *collection->pending);

        if (pending == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a root");
        }
        collection->pending = pending;
        collection->capacity = capacity;
    }
    collection->pending[collection->n_pending++] = root;
    return VXD_OK;
}

bool vxd_svdag_collect_root(const struct vxd_svdag_collection *collection, uint32_t root,
                            uint32_t *out)
{
    const struct pair *pair =
        vxd_svdag_is_node(root) ? find_pair(collection, root) : NULL;

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

/* Begins a round of the pending roots. */
static enum vxd_status begin_round(struct vxd_queue *queue,
                                   struct vxd_svdag_collection *collection,
                                   struct vxd_err *err)
{
    struct vxd_svdag_collect_source source = collection->source;
    size_t n = collection->n_pending;
    bool has_begun;
    enum vxd_status status;

    if (collection->from != NULL) {
        vxd_svdag_get_usage(collection->from, &collection->usage);
        source.n_items = collection->usage.n_leaves + collection->usage.n_inner +
                         collection->usage.n_blocks;
    }
    if (IS_ON_CUDA(collection)) {
        if (collection->from != NULL) {
            source.n_chunks = vxd_svdag_device_n_chunks(collection->from);
        }
        status = vxd_svdag_collect_device_begin(queue, collection->device,
                                                collection->pending, n, source.n_chunks,
                                                source.n_items, &has_begun, err);
        collection->n_begun = status == VXD_OK && has_begun ? n : 0;
        return status;
    }
    status = vxd_svdag_collect_traversal_begin(
        &collection->traversal, collection->pending, n, source.n_items, err);
    has_begun = collection->traversal.phase == VXD_SVDAG_COLLECT_MARK;
    collection->n_begun = status == VXD_OK && has_begun ? n : 0;
    return status;
}

static enum vxd_status read_refs(struct vxd_queue *queue,
                                 struct vxd_svdag_collection *collection, uint32_t *refs,
                                 struct vxd_err *err)
{
    if (IS_ON_CUDA(collection)) {
        return vxd_svdag_collect_device_refs(queue, collection->device,
                                             collection->pending, refs,
                                             collection->n_begun, err);
    }
    for (size_t i = 0; i < collection->n_begun; i++) {
        refs[i] = vxd_svdag_collect_traversal_ref(&collection->traversal,
                                                  collection->pending[i]);
    }
    return VXD_OK;
}

/* Ends a round: reads the new references of its roots. */
static enum vxd_status end_round(struct vxd_queue *queue,
                                 struct vxd_svdag_collection *collection,
                                 struct vxd_err *err)
{
    size_t n = collection->n_begun;
    uint32_t *refs = malloc(n * sizeof *refs);
    struct pair *done =
        realloc(collection->done, (collection->n_done + n) * sizeof *collection->done);
    enum vxd_status status = VXD_OK;

    collection->done = done != NULL ? done : collection->done;
    if (refs == NULL || done == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for roots");
        goto out;
    }
    VXD_TRY(read_refs(queue, collection, refs, err));
    for (size_t i = 0; i < n; i++) {
        done[collection->n_done++] = (struct pair){collection->pending[i], refs[i]};
    }
    qsort(done, collection->n_done, sizeof *done, compare_pairs);
    collection->n_pending -= n;
    for (size_t i = 0; i < collection->n_pending; i++) {
        collection->pending[i] = collection->pending[n + i];
    }
    collection->n_begun = 0;
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

/* Does the next piece of work; *is_done: there is none left. */
static enum vxd_status step_once(struct vxd_queue *queue,
                                 struct vxd_svdag_collection *collection, bool *is_done,
                                 struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    *is_done = false;
    if (!is_idle(collection)) {
        status = IS_ON_CUDA(collection)
                     ? vxd_svdag_collect_device_step(queue, collection->device, err)
                     : vxd_svdag_collect_traversal_step(&collection->traversal, err);
    } else if (collection->n_begun == 0 && collection->n_pending > 0) {
        status = begin_round(queue, collection, err);
    }
    if (status == VXD_OK && is_idle(collection) && collection->n_begun > 0) {
        status = end_round(queue, collection, err);
    }
    *is_done = status == VXD_OK && is_idle(collection) && collection->n_pending == 0;
    return status;
}

enum vxd_status vxd_svdag_collect_step(struct vxd_queue *queue,
                                       struct vxd_svdag_collection *collection,
                                       uint64_t max_ns, bool *is_done,
                                       struct vxd_err *err)
{
    struct vxd_svdag_collect_stats *stats = &collection->stats;
    struct vxd_svdag_pace pace = vxd_svdag_pace_begin(max_ns);
    uint64_t n_ns;
    enum vxd_status status;

    *is_done = false;
    VXD_TRY(vxd_queue_wait(queue, err));
    do {
        VXD_TRY(step_once(queue, collection, is_done, err));
    } while (!*is_done && vxd_svdag_pace_goes_on(&pace));
out:
    n_ns = vxd_svdag_now_ns() - pace.begin_ns;
    stats->n_steps++;
    stats->total_ns += n_ns;
    stats->longest_step_ns =
        n_ns > stats->longest_step_ns ? n_ns : stats->longest_step_ns;
    return status;
}

void vxd_svdag_collect_get_stats(const struct vxd_svdag_collection *collection,
                                 struct vxd_svdag_collect_stats *out)
{
    const struct vxd_svdag_usage *usage = &collection->usage;
    uint64_t n_nodes = usage->n_leaves + usage->n_inner + usage->n_blocks;
    uint64_t n_words = collection->traversal.n_words;

    *out = collection->stats;
    out->n_nodes = collection->traversal.n_nodes;
    if (IS_ON_CUDA(collection)) {
        vxd_svdag_collect_device_count(collection->device, &out->n_nodes, &n_words);
    }
    out->n_bytes = n_words * sizeof(uint32_t);
    out->n_dead_nodes = n_nodes > out->n_nodes ? n_nodes - out->n_nodes : 0;
    out->n_dead_bytes =
        usage->node_bytes > out->n_bytes ? usage->node_bytes - out->n_bytes : 0;
}
