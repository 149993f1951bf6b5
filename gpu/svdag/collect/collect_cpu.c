// SPDX-License-Identifier: Apache-2.0
/* The traversal of what roots reach on the CPU: marked level by level from the roots
 * down, then handed out from the leaves up.
 *
 * An item may occur at several heights where nothing in it differs. It is listed at the
 * first, highest one, so on the way up a parent may come before such a child. The parent
 * then waits, and the way up is repeated from its height. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/collect/collect_traversal_cpu.h"

enum {
    N_CHUNKS = 1 << (32 - VXD_SVDAG_CHUNK_BITS),
    CHUNK_MASK = (1 << VXD_SVDAG_CHUNK_BITS) - 1,
    SLAB_PAGES = 16,
    GRAIN = 512,        /* items a thread takes at once */
    PIECE_ITEMS = 8192, /* items of a step: some milliseconds at most */
    PIECE_PAGES = 64,
    PREFETCH_ITEMS = 8 /* prefetch distance in items */
};

#define PAGE_BYTES (VXD_SVDAG_PAGE_MARKS * sizeof(struct vxd_svdag_mark))

/* Marks ----------------------------------------------------------------------------------- */

/* Allocates a page without marks. With the mutex held while other threads run. */
static enum vxd_status new_page(struct vxd_svdag_collect_traversal *traversal,
                                struct vxd_svdag_mark **out, struct vxd_err *err)
{
    struct vxd_buffer *slab;

    if (traversal->n_slabs == 0 || traversal->n_slab_pages == SLAB_PAGES) {
        enum vxd_status status;

        slab = realloc(traversal->slabs, (traversal->n_slabs + 1) * sizeof *slab);
        if (slab == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for marks");
        }
        traversal->slabs = slab;
        status = vxd_host_alloc(traversal->context, SLAB_PAGES * PAGE_BYTES,
                                &slab[traversal->n_slabs], err);
        if (status != VXD_OK) {
            return status;
        }
        traversal->n_slabs++;
        traversal->n_slab_pages = 0;
    }
    slab = &traversal->slabs[traversal->n_slabs - 1];
    *out = (struct vxd_svdag_mark *)slab->ptr +
           (size_t)traversal->n_slab_pages++ * VXD_SVDAG_PAGE_MARKS;
    memset(*out, 0, PAGE_BYTES);
    return VXD_OK;
}

static struct vxd_svdag_mark *page_of(const struct vxd_svdag_marks *marks, uint32_t ref)
{
    return __atomic_load_n(&marks->pages[ref >> VXD_SVDAG_CHUNK_BITS], __ATOMIC_ACQUIRE);
}

/* The group of a reference in this round's marks; NULL, with the status set, where there
 * is no memory for its page. */
static struct vxd_svdag_mark *fresh_mark(struct vxd_svdag_collect_traversal *traversal,
                                         uint32_t ref)
{
    struct vxd_svdag_mark *page = page_of(traversal->fresh, ref);

    if (page == NULL) {
        struct vxd_svdag_mark **at =
            &traversal->fresh->pages[ref >> VXD_SVDAG_CHUNK_BITS];

        (void)pthread_mutex_lock(&traversal->mutex);
        page = *at;
        if (page == NULL && traversal->status == VXD_OK) {
            traversal->status = new_page(traversal, &page, &traversal->err);
            __atomic_store_n(at, page, __ATOMIC_RELEASE);
        }
        (void)pthread_mutex_unlock(&traversal->mutex);
    }
    return page == NULL ? NULL : &page[(ref & CHUNK_MASK) / VXD_SVDAG_MARK_WORDS];
}

/* The group of a marked reference; NULL where it is not marked. */
static const struct vxd_svdag_mark *find_mark(const struct vxd_svdag_marks *marks,
                                              uint32_t ref)
{
    const struct vxd_svdag_mark *page = page_of(marks, ref);
    const struct vxd_svdag_mark *mark = &page[(ref & CHUNK_MASK) / VXD_SVDAG_MARK_WORDS];

    return page == NULL || (__atomic_load_n(&mark->bits, __ATOMIC_RELAXED) &
                            vxd_svdag_mark_bit(ref)) == 0
               ? NULL
               : mark;
}

/* Marks a node; false where it was marked. */
static bool mark_node(struct vxd_svdag_collect_traversal *traversal, uint32_t ref)
{
    struct vxd_svdag_mark *mark;
    uint32_t bit = vxd_svdag_mark_bit(ref);

    if (traversal->fresh != &traversal->marks[0] &&
        find_mark(&traversal->marks[0], ref) != NULL) {
        return false;
    }
    mark = fresh_mark(traversal, ref);
    return mark != NULL && (__atomic_load_n(&mark->bits, __ATOMIC_RELAXED) & bit) == 0 &&
           (__atomic_fetch_or(&mark->bits, bit, __ATOMIC_RELAXED) & bit) == 0;
}

/* Where the new reference of a marked node is kept; NULL where it is not marked. */
static uint32_t *slot_of(const struct vxd_svdag_collect_traversal *traversal,
                         uint32_t ref)
{
    for (int i = 0; i < 2; i++) {
        const struct vxd_svdag_mark *mark = find_mark(&traversal->marks[i], ref);

        if (mark != NULL) {
            return (uint32_t *)traversal->marks[i].refs.ptr +
                   vxd_svdag_mark_number(mark, ref);
        }
    }
    return NULL;
}

uint32_t
vxd_svdag_collect_traversal_ref(const struct vxd_svdag_collect_traversal *traversal,
                                uint32_t ref)
{
    const uint32_t *slot;

    if (!vxd_svdag_is_node(ref)) {
        return ref;
    }
    slot = slot_of(traversal, ref);
    return slot == NULL ? VXD_SVDAG_EMPTY : __atomic_load_n(slot, __ATOMIC_RELAXED);
}

/* Pieces ---------------------------------------------------------------------------------- */

struct piece {
    struct vxd_svdag_collect_traversal *traversal;
    uint32_t begin; /* index in the list */
    enum vxd_svdag_kind kind;
    uint32_t is_left; /* an item waits for a child */
    uint64_t n_put;
    uint64_t n_words;
};

/* Counts of one thread of a piece. */
struct tally {
    struct vxd_svdag_writer writer;
    bool is_left;
    uint64_t n_put;
    uint64_t n_words;
};

/* Whether the items of a height have no references. */
static bool is_lowest(const struct vxd_svdag_collect_traversal *traversal, int height)
{
    return height == 0 ||
           (height == VXD_SVDAG_LEAF_HEIGHT && traversal->view.value_bits < 8);
}

static void run(struct vxd_svdag_collect_traversal *traversal, size_t n, vxd_loop_fn body,
                struct piece *piece)
{
    if (traversal->pool == NULL) {
        body(piece, 0, n);
    } else {
        vxd_parallel_for(traversal->pool, n, GRAIN, body, piece);
    }
}

/* Takes the status that the threads of a piece set. */
static enum vxd_status counted(struct vxd_svdag_collect_traversal *traversal,
                               struct vxd_err *err)
{
    enum vxd_status status = traversal->status;

    if (status != VXD_OK && err != NULL) {
        *err = traversal->err;
    }
    traversal->status = VXD_OK;
    return status;
}

static void prefetch_item(const struct vxd_svdag_collect_traversal *traversal,
                          const uint32_t *list, size_t i, size_t end)
{
    if (i + PREFETCH_ITEMS < end) {
        __builtin_prefetch(vxd_svdag_words(&traversal->view, list[i + PREFETCH_ITEMS]));
    }
}

static struct vxd_svdag_item item_of(const struct vxd_svdag_view *view, uint32_t ref,
                                     enum vxd_svdag_kind kind, int *n_words)
{
    *n_words = vxd_svdag_item_words(view->value_bits, kind, vxd_svdag_words(view, ref));
    return vxd_svdag_item_at(view, ref, *n_words);
}

/* Down ------------------------------------------------------------------------------------ */

static void list_nodes(struct vxd_svdag_collect_traversal *traversal,
                       const uint32_t *refs, uint32_t n)
{
    uint32_t at = __atomic_fetch_add(&traversal->n_listed, n, __ATOMIC_RELAXED);

    assert((at + (uint64_t)n) * sizeof *refs <= traversal->list.n_bytes);
    // cppcheck-suppress uninitvar
    memcpy((uint32_t *)traversal->list.ptr + at, refs,
           n * sizeof *refs); /* the first n elements are set */
}

/* Marks and lists what at most GRAIN items refer to. It gathers all references first, so
 * that their marks are prefetched meanwhile. */
static void mark_some(struct piece *piece, size_t begin, size_t end)
{
    struct vxd_svdag_collect_traversal *traversal = piece->traversal;
    const struct vxd_svdag_view *view = &traversal->view;
    const uint32_t *list = (const uint32_t *)traversal->list.ptr + piece->begin;
    uint32_t found[GRAIN * 8];
    uint32_t n = 0;
    uint32_t n_new = 0;

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_item item;
        int n_words;
        int first;
        int n_refs;

        prefetch_item(traversal, list, i, end);
        item = item_of(view, list[i], piece->kind, &n_words);
        n_refs = vxd_svdag_item_refs(view->value_bits, piece->kind, n_words, &first);
        for (int k = 0; k < n_refs; k++) {
            uint32_t ref = vxd_svdag_item_word(&item, first + k);

            if (vxd_svdag_is_node(ref)) {
                const struct vxd_svdag_mark *page = page_of(traversal->fresh, ref);

                found[n++] = ref;
                if (page != NULL) {
                    __builtin_prefetch(&page[(ref & CHUNK_MASK) / VXD_SVDAG_MARK_WORDS]);
                }
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (mark_node(traversal, found[i])) {
            found[n_new++] = found[i];
        }
    }
    list_nodes(traversal, found, n_new);
}

static void mark_body(void *args, size_t begin, size_t end)
{
    for (; begin < end; begin += GRAIN) {
        mark_some(args, begin, end - begin < GRAIN ? end : begin + GRAIN);
    }
}

/* A height is finished, so the list of the next one is complete. Items of the last height
 * have no references. */
static void go_down(struct vxd_svdag_collect_traversal *traversal)
{
    traversal->height =
        traversal->height > VXD_SVDAG_LEAF_HEIGHT ? traversal->height - 1 : 0;
    traversal->begins[traversal->height] = traversal->next;
    traversal->ends[traversal->height] = traversal->n_listed;
    if (is_lowest(traversal, traversal->height)) {
        traversal->phase = VXD_SVDAG_COLLECT_RANK;
        traversal->number = 0;
        traversal->next = 0;
    }
}

static enum vxd_status step_mark(struct vxd_svdag_collect_traversal *traversal,
                                 struct vxd_err *err)
{
    uint32_t end = traversal->ends[traversal->height];
    uint32_t n =
        end - traversal->next < PIECE_ITEMS ? end - traversal->next : PIECE_ITEMS;
    struct piece piece = {.traversal = traversal, .begin = traversal->next};

    piece.kind = vxd_svdag_kind_at(traversal->height);
    /* A failed piece has listed all that it marked, so it can be repeated. */
    run(traversal, n, mark_body, &piece);
    if (traversal->status != VXD_OK) {
        return counted(traversal, err);
    }
    traversal->next += n;
    if (traversal->next == end) {
        go_down(traversal);
    }
    return VXD_OK;
}

/* Numbers --------------------------------------------------------------------------------- */

static enum vxd_status step_rank(struct vxd_svdag_collect_traversal *traversal,
                                 struct vxd_err *err)
{
    struct vxd_svdag_marks *marks = traversal->fresh;
    enum vxd_status status;

    vxd_host_free(traversal->context, &marks->refs);
    for (int n = 0; traversal->next < N_CHUNKS && n < PIECE_PAGES; traversal->next++) {
        struct vxd_svdag_mark *page = marks->pages[traversal->next];

        for (int i = 0; page != NULL && i < VXD_SVDAG_PAGE_MARKS; i++) {
            page[i].base = traversal->number;
            traversal->number += (uint32_t)vxd_svdag_popc(page[i].bits);
        }
        n += page != NULL;
    }
    if (traversal->next < N_CHUNKS) {
        return VXD_OK;
    }
    status =
        vxd_host_alloc(traversal->context, (traversal->number + 1) * sizeof(uint32_t),
                       &marks->refs, err);
    if (status != VXD_OK) {
        return status;
    }
    memset(marks->refs.ptr, 0, marks->refs.n_bytes);
    marks->n = traversal->number;
    traversal->phase = VXD_SVDAG_COLLECT_PUT;
    traversal->height = traversal->view.value_bits >= 8 ? 0 : VXD_SVDAG_LEAF_HEIGHT;
    traversal->next = traversal->begins[traversal->height];
    traversal->first_left = VXD_SVDAG_N_HEIGHTS;
    traversal->n_put = 0;
    return VXD_OK;
}

/* Merges one chunk: the new references of both rounds' items, in the order of their
 * addresses. */
static enum vxd_status merge_page(struct vxd_svdag_collect_traversal *traversal,
                                  uint32_t chunk, struct vxd_err *err)
{
    struct vxd_svdag_mark **old = &traversal->marks[0].pages[chunk];
    struct vxd_svdag_mark *fresh = traversal->marks[1].pages[chunk];
    const uint32_t *refs[2] = {traversal->marks[0].refs.ptr,
                               traversal->marks[1].refs.ptr};
    static const struct vxd_svdag_mark none = {0};
    uint32_t *to = traversal->merged.ptr;

    if (*old == NULL && fresh != NULL) {
        enum vxd_status status = new_page(traversal, old, err);

        if (status != VXD_OK) {
            return status;
        }
    }
    for (int i = 0; *old != NULL && i < VXD_SVDAG_PAGE_MARKS; i++) {
        struct vxd_svdag_mark *mark = &(*old)[i];
        const struct vxd_svdag_mark mine = *mark;
        const struct vxd_svdag_mark other = fresh == NULL ? none : fresh[i];
        uint32_t n[2] = {0};

        mark->bits |= other.bits;
        mark->base = traversal->number;
        for (uint32_t rest = mark->bits; rest != 0; rest &= rest - 1) {
            int from = (mine.bits & rest & (~rest + 1)) != 0 ? 0 : 1;
            uint32_t base = from == 0 ? mine.base : other.base;

            to[traversal->number++] = refs[from][base + n[from]++];
        }
    }
    if (fresh != NULL) {
        memset(fresh, 0, PAGE_BYTES);
    }
    return VXD_OK;
}

/* Merges the marks of two rounds. */
static enum vxd_status step_merge(struct vxd_svdag_collect_traversal *traversal,
                                  struct vxd_err *err)
{
    for (int n = 0; traversal->next < N_CHUNKS && n < PIECE_PAGES; traversal->next++) {
        enum vxd_status status = merge_page(traversal, traversal->next, err);

        if (status != VXD_OK) {
            return status;
        }
        n += traversal->marks[0].pages[traversal->next] != NULL;
    }
    if (traversal->next == N_CHUNKS) {
        vxd_host_free(traversal->context, &traversal->marks[0].refs);
        vxd_host_free(traversal->context, &traversal->marks[1].refs);
        traversal->marks[0].refs = traversal->merged;
        traversal->marks[0].n = traversal->number;
        traversal->marks[1].n = 0;
        traversal->merged = (struct vxd_buffer){0};
        traversal->phase = VXD_SVDAG_COLLECT_IDLE;
    }
    return VXD_OK;
}

/* Up -------------------------------------------------------------------------------------- */

/* Puts an item if all its children have new references; else it is left for later. */
static enum vxd_status put_item(const struct piece *piece, struct tally *tally,
                                uint32_t ref, struct vxd_err *err)
{
    struct vxd_svdag_collect_traversal *traversal = piece->traversal;
    uint32_t words[VXD_SVDAG_MAX_ITEM_WORDS];
    uint32_t *slot = slot_of(traversal, ref);
    struct vxd_svdag_item item;
    uint32_t became = VXD_SVDAG_EMPTY;
    int n_words;
    int first;
    int n_refs;
    enum vxd_status status;

    if (__atomic_load_n(slot, __ATOMIC_RELAXED) != VXD_SVDAG_EMPTY) {
        return VXD_OK;
    }
    item = item_of(&traversal->view, ref, piece->kind, &n_words);
    for (int i = 0; i < n_words; i++) {
        words[i] = vxd_svdag_item_word(&item, i);
    }
    n_refs =
        vxd_svdag_item_refs(traversal->view.value_bits, piece->kind, n_words, &first);
    for (int i = first; i < first + n_refs; i++) {
        words[i] = vxd_svdag_collect_traversal_ref(traversal, words[i]);
        if (words[i] == VXD_SVDAG_EMPTY) {
            tally->is_left = true;
            return VXD_OK;
        }
    }
    status = traversal->put(traversal->put_args, &tally->writer, piece->kind, words,
                            n_words, &became, err);
    if (status == VXD_OK) {
        __atomic_store_n(slot, became, __ATOMIC_RELAXED);
        tally->n_put++;
        tally->n_words += (uint64_t)n_words;
    }
    return status;
}

static void put_body(void *args, size_t begin, size_t end)
{
    struct piece *piece = args;
    struct vxd_svdag_collect_traversal *traversal = piece->traversal;
    const uint32_t *list = (const uint32_t *)traversal->list.ptr + piece->begin;
    struct tally tally = {.writer = {.svdag = traversal->to}};
    struct vxd_err err = {0};
    enum vxd_status status = VXD_OK;

    for (size_t i = begin; i < end && status == VXD_OK; i++) {
        prefetch_item(traversal, list, i, end);
        status = put_item(piece, &tally, list[i], &err);
    }
    if (traversal->to != NULL) {
        vxd_svdag_writer_close(&tally.writer);
    }
    (void)pthread_mutex_lock(&traversal->mutex);
    piece->is_left |= tally.is_left;
    piece->n_put += tally.n_put;
    piece->n_words += tally.n_words;
    if (status != VXD_OK && traversal->status == VXD_OK) {
        traversal->status = status;
        traversal->err = err;
    }
    (void)pthread_mutex_unlock(&traversal->mutex);
}

/* A height is finished: goes to the next one, or back to the first one at which an item
 * waits, or to the end. */
static enum vxd_status go_up(struct vxd_svdag_collect_traversal *traversal,
                             struct vxd_err *err)
{
    if (traversal->height < traversal->view.depth) {
        traversal->height += traversal->height == 0 ? VXD_SVDAG_LEAF_HEIGHT : 1;
        traversal->next = traversal->begins[traversal->height];
        return VXD_OK;
    }
    if (traversal->first_left == VXD_SVDAG_N_HEIGHTS) {
        vxd_host_free(traversal->context, &traversal->list);
        traversal->phase = VXD_SVDAG_COLLECT_IDLE;
        return VXD_OK;
    }
    if (traversal->n_put == 0) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "nodes refer to each other in a circle");
    }
    traversal->height = traversal->first_left;
    traversal->next = traversal->begins[traversal->height];
    traversal->first_left = VXD_SVDAG_N_HEIGHTS;
    traversal->n_put = 0;
    return VXD_OK;
}

static enum vxd_status step_store(struct vxd_svdag_collect_traversal *traversal,
                                  struct vxd_err *err)
{
    uint32_t end = traversal->ends[traversal->height];
    uint32_t n =
        end - traversal->next < PIECE_ITEMS ? end - traversal->next : PIECE_ITEMS;
    struct piece piece = {.traversal = traversal, .begin = traversal->next};

    piece.kind = vxd_svdag_kind_at(traversal->height);
    run(traversal, n, put_body, &piece);
    traversal->n_put += piece.n_put;
    traversal->n_nodes += piece.n_put;
    traversal->n_words += piece.n_words;
    if (piece.is_left != 0 && traversal->height < traversal->first_left) {
        traversal->first_left = traversal->height;
    }
    if (traversal->status != VXD_OK) {
        return counted(traversal, err);
    }
    traversal->next += n;
    return traversal->next == end ? go_up(traversal, err) : VXD_OK;
}

/* --------------------------------------------------------------------------------------- */

enum vxd_status
vxd_svdag_collect_traversal_open(struct vxd_svdag_collect_traversal *traversal,
                                 struct vxd_context *context,
                                 const struct vxd_svdag_view *view, struct vxd_err *err)
{
    traversal->context = context;
    traversal->view = *view;
    traversal->fresh = &traversal->marks[0];
    (void)pthread_mutex_init(&traversal->mutex, NULL);
    for (int i = 0; i < 2; i++) {
        // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
        traversal->marks[i].pages = calloc(N_CHUNKS, sizeof *traversal->marks[i].pages);
        if (traversal->marks[i].pages == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for marks");
        }
    }
    return VXD_OK;
}

void vxd_svdag_collect_traversal_close(struct vxd_svdag_collect_traversal *traversal)
{
    for (size_t i = 0; i < traversal->n_slabs; i++) {
        vxd_host_free(traversal->context, &traversal->slabs[i]);
    }
    free(traversal->slabs);
    for (int i = 0; i < 2; i++) {
        vxd_host_free(traversal->context, &traversal->marks[i].refs);
        free(traversal->marks[i].pages);
    }
    vxd_host_free(traversal->context, &traversal->list);
    vxd_host_free(traversal->context, &traversal->merged);
    (void)pthread_mutex_destroy(&traversal->mutex);
}

/* Marks and lists the roots. */
static enum vxd_status begin_marks(struct vxd_svdag_collect_traversal *traversal,
                                   const uint32_t *roots, size_t n_roots,
                                   struct vxd_err *err)
{
    uint32_t *list = traversal->list.ptr;

    /* Allocates memory first, so that nothing fails afterwards. */
    for (size_t i = 0; i < n_roots; i++) {
        if (vxd_svdag_is_node(roots[i]) && fresh_mark(traversal, roots[i]) == NULL) {
            return counted(traversal, err);
        }
    }
    traversal->n_listed = 0;
    memset(traversal->begins, 0, sizeof traversal->begins);
    memset(traversal->ends, 0, sizeof traversal->ends);
    for (size_t i = 0; i < n_roots; i++) {
        if (vxd_svdag_is_node(roots[i]) && mark_node(traversal, roots[i])) {
            list[traversal->n_listed++] = roots[i];
        }
    }
    traversal->height = traversal->view.depth;
    traversal->ends[traversal->height] = traversal->n_listed;
    traversal->next = 0;
    traversal->phase = VXD_SVDAG_COLLECT_MARK;
    return VXD_OK;
}

enum vxd_status
vxd_svdag_collect_traversal_begin(struct vxd_svdag_collect_traversal *traversal,
                                  const uint32_t *roots, size_t n_roots, uint64_t n_items,
                                  struct vxd_err *err)
{
    enum vxd_status status;

    if (traversal->marks[1].n > 0) {
        uint64_t n = (uint64_t)traversal->marks[0].n + traversal->marks[1].n;

        status = vxd_host_alloc(traversal->context, n * sizeof(uint32_t),
                                &traversal->merged, err);
        if (status == VXD_OK) {
            traversal->phase = VXD_SVDAG_COLLECT_MERGE;
            traversal->next = 0;
            traversal->number = 0;
        }
        return status;
    }
    n_items = n_items > traversal->marks[0].n ? n_items - traversal->marks[0].n : 0;
    vxd_host_free(traversal->context, &traversal->list);
    status = vxd_host_alloc(traversal->context, (n_items + 1) * sizeof(uint32_t),
                            &traversal->list, err);
    if (status != VXD_OK) {
        return status;
    }
    traversal->fresh =
        traversal->marks[0].n > 0 ? &traversal->marks[1] : &traversal->marks[0];
    return begin_marks(traversal, roots, n_roots, err);
}

enum vxd_status
vxd_svdag_collect_traversal_step(struct vxd_svdag_collect_traversal *traversal,
                                 struct vxd_err *err)
{
    switch (traversal->phase) {
    case VXD_SVDAG_COLLECT_MERGE:
        return step_merge(traversal, err);
    case VXD_SVDAG_COLLECT_MARK:
        return step_mark(traversal, err);
    case VXD_SVDAG_COLLECT_RANK:
        return step_rank(traversal, err);
    case VXD_SVDAG_COLLECT_PUT:
        return step_store(traversal, err);
    default:
        return VXD_OK;
    }
}
