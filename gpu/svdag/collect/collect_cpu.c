// SPDX-License-Identifier: Apache-2.0
/* What roots reach, marked level by level and handed out from the leaves up.
 *
 * An item may stand at several heights where nothing in it tells them apart; it is listed at the
 * first one, the highest, so that a parent may come before such a child on the way up. It then
 * waits, and the way up is gone again from there. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/collect/collect_traversal_cpu.h"

enum {
    N_CHUNKS = 1 << (32 - VXD_SVDAG_CHUNK_BITS),
    CHUNK_MASK = (1 << VXD_SVDAG_CHUNK_BITS) - 1,
    SLAB_PAGES = 16,
    GRAIN = 512,        /* items a thread takes at once */
    PIECE_ITEMS = 8192, /* a step: some milliseconds at most */
    PIECE_PAGES = 64,
    PREFETCH_ITEMS = 8 /* items whose words are fetched early */
};

#define PAGE_BYTES (VXD_SVDAG_PAGE_MARKS * sizeof(struct vxd_svdag_mark))

/* Marks ----------------------------------------------------------------------------------- */

/* A page of no marks. With the mutex held where others run. */
static enum vxd_status new_page(struct vxd_svdag_walk *walk, struct vxd_svdag_mark **out,
                                struct vxd_err *err)
{
    struct vxd_buffer *slab;

    if (walk->n_slabs == 0 || walk->n_slab_pages == SLAB_PAGES) {
        enum vxd_status status;

        slab = realloc(walk->slabs, (walk->n_slabs + 1) * sizeof *slab);
        if (slab == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for marks");
        }
        walk->slabs = slab;
        status = vxd_host_alloc(walk->context, SLAB_PAGES * PAGE_BYTES,
                                &slab[walk->n_slabs], err);
        if (status != VXD_OK) {
            return status;
        }
        walk->n_slabs++;
        walk->n_slab_pages = 0;
    }
    slab = &walk->slabs[walk->n_slabs - 1];
    *out = (struct vxd_svdag_mark *)slab->ptr +
           (size_t)walk->n_slab_pages++ * VXD_SVDAG_PAGE_MARKS;
    memset(*out, 0, PAGE_BYTES);
    return VXD_OK;
}

static struct vxd_svdag_mark *page_of(const struct vxd_svdag_marks *marks, uint32_t ref)
{
    return __atomic_load_n(&marks->pages[ref >> VXD_SVDAG_CHUNK_BITS], __ATOMIC_ACQUIRE);
}

/* The group of a reference this round; NULL without memory, which the walk then tells. */
static struct vxd_svdag_mark *fresh_mark(struct vxd_svdag_walk *walk, uint32_t ref)
{
    struct vxd_svdag_mark *page = page_of(walk->fresh, ref);

    if (page == NULL) {
        struct vxd_svdag_mark **at = &walk->fresh->pages[ref >> VXD_SVDAG_CHUNK_BITS];

        (void)pthread_mutex_lock(&walk->mutex);
        page = *at;
        if (page == NULL && walk->status == VXD_OK) {
            walk->status = new_page(walk, &page, &walk->err);
            __atomic_store_n(at, page, __ATOMIC_RELEASE);
        }
        (void)pthread_mutex_unlock(&walk->mutex);
    }
    return page == NULL ? NULL : &page[(ref & CHUNK_MASK) / VXD_SVDAG_MARK_WORDS];
}

/* The group of a reference of which a bit is set; NULL where none is. */
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
static bool mark_node(struct vxd_svdag_walk *walk, uint32_t ref)
{
    struct vxd_svdag_mark *mark;
    uint32_t bit = vxd_svdag_mark_bit(ref);

    if (walk->fresh != &walk->marks[0] && find_mark(&walk->marks[0], ref) != NULL) {
        return false;
    }
    mark = fresh_mark(walk, ref);
    return mark != NULL && (__atomic_load_n(&mark->bits, __ATOMIC_RELAXED) & bit) == 0 &&
           (__atomic_fetch_or(&mark->bits, bit, __ATOMIC_RELAXED) & bit) == 0;
}

/* Where it stands what a marked node became; NULL where it is not marked. */
static uint32_t *slot_of(const struct vxd_svdag_walk *walk, uint32_t ref)
{
    for (int i = 0; i < 2; i++) {
        const struct vxd_svdag_mark *mark = find_mark(&walk->marks[i], ref);

        if (mark != NULL) {
            return (uint32_t *)walk->marks[i].refs.ptr + vxd_svdag_mark_number(mark, ref);
        }
    }
    return NULL;
}

uint32_t vxd_svdag_walk_ref(const struct vxd_svdag_walk *walk, uint32_t ref)
{
    const uint32_t *slot;

    if (!vxd_svdag_is_node(ref)) {
        return ref;
    }
    slot = slot_of(walk, ref);
    return slot == NULL ? VXD_SVDAG_EMPTY : __atomic_load_n(slot, __ATOMIC_RELAXED);
}

/* Pieces ---------------------------------------------------------------------------------- */

struct piece {
    struct vxd_svdag_walk *walk;
    uint32_t begin; /* of the list */
    enum vxd_svdag_kind kind;
    uint32_t is_left; /* an item waits for a child */
    uint64_t n_put;
    uint64_t n_words;
};

/* What one thread of a piece did. */
struct tally {
    struct vxd_svdag_writer writer;
    bool is_left;
    uint64_t n_put;
    uint64_t n_words;
};

/* Whether the items of a height refer to none. */
static bool is_lowest(const struct vxd_svdag_walk *walk, int height)
{
    return height == 0 || (height == VXD_SVDAG_LEAF_HEIGHT && walk->view.value_bits < 8);
}

static void run(struct vxd_svdag_walk *walk, size_t n, vxd_loop_fn body,
                struct piece *piece)
{
    if (walk->pool == NULL) {
        body(piece, 0, n);
    } else {
        vxd_parallel_for(walk->pool, n, GRAIN, body, piece);
    }
}

/* What the threads of a piece told, once they are done. */
static enum vxd_status counted(struct vxd_svdag_walk *walk, struct vxd_err *err)
{
    enum vxd_status status = walk->status;

    if (status != VXD_OK && err != NULL) {
        *err = walk->err;
    }
    walk->status = VXD_OK;
    return status;
}

static void prefetch_item(const struct vxd_svdag_walk *walk, const uint32_t *list,
                          size_t i, size_t end)
{
    if (i + PREFETCH_ITEMS < end) {
        __builtin_prefetch(vxd_svdag_words(&walk->view, list[i + PREFETCH_ITEMS]));
    }
}

static struct vxd_svdag_item item_of(const struct vxd_svdag_view *view, uint32_t ref,
                                     enum vxd_svdag_kind kind, int *n_words)
{
    *n_words = vxd_svdag_item_words(view->value_bits, kind, vxd_svdag_words(view, ref));
    return vxd_svdag_item_at(view, ref, *n_words);
}

/* Down ------------------------------------------------------------------------------------ */

static void list_nodes(struct vxd_svdag_walk *walk, const uint32_t *refs, uint32_t n)
{
    uint32_t at = __atomic_fetch_add(&walk->n_listed, n, __ATOMIC_RELAXED);

    assert((at + (uint64_t)n) * sizeof *refs <= walk->list.n_bytes);
    // cppcheck-suppress uninitvar
    memcpy((uint32_t *)walk->list.ptr + at, refs, n * sizeof *refs); /* n are set */
}

/* Marks and lists what items refer to, of at most GRAIN: references first, so that their marks
 * are on the way while the others are found. */
static void mark_some(struct piece *piece, size_t begin, size_t end)
{
    struct vxd_svdag_walk *walk = piece->walk;
    const struct vxd_svdag_view *view = &walk->view;
    const uint32_t *list = (const uint32_t *)walk->list.ptr + piece->begin;
    uint32_t found[GRAIN * 8];
    uint32_t n = 0;
    uint32_t n_new = 0;

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_item item;
        int n_words;
        int first;
        int n_refs;

        prefetch_item(walk, list, i, end);
        item = item_of(view, list[i], piece->kind, &n_words);
        n_refs = vxd_svdag_item_refs(view->value_bits, piece->kind, n_words, &first);
        for (int k = 0; k < n_refs; k++) {
            uint32_t ref = vxd_svdag_item_word(&item, first + k);

            if (vxd_svdag_is_node(ref)) {
                const struct vxd_svdag_mark *page = page_of(walk->fresh, ref);

                found[n++] = ref;
                if (page != NULL) {
                    __builtin_prefetch(&page[(ref & CHUNK_MASK) / VXD_SVDAG_MARK_WORDS]);
                }
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (mark_node(walk, found[i])) {
            found[n_new++] = found[i];
        }
    }
    list_nodes(walk, found, n_new);
}

static void mark_body(void *args, size_t begin, size_t end)
{
    for (; begin < end; begin += GRAIN) {
        mark_some(args, begin, end - begin < GRAIN ? end : begin + GRAIN);
    }
}

/* A height was gone over: the list of the next one is whole. The last one refers to nothing. */
static void go_down(struct vxd_svdag_walk *walk)
{
    walk->height = walk->height > VXD_SVDAG_LEAF_HEIGHT ? walk->height - 1 : 0;
    walk->begins[walk->height] = walk->next;
    walk->ends[walk->height] = walk->n_listed;
    if (is_lowest(walk, walk->height)) {
        walk->phase = VXD_SVDAG_WALK_RANK;
        walk->number = 0;
        walk->next = 0;
    }
}

static enum vxd_status step_mark(struct vxd_svdag_walk *walk, struct vxd_err *err)
{
    uint32_t end = walk->ends[walk->height];
    uint32_t n = end - walk->next < PIECE_ITEMS ? end - walk->next : PIECE_ITEMS;
    struct piece piece = {.walk = walk, .begin = walk->next};

    piece.kind = vxd_svdag_kind_at(walk->height);
    /* What a failed piece marked is listed: it is only gone over again. */
    run(walk, n, mark_body, &piece);
    if (walk->status != VXD_OK) {
        return counted(walk, err);
    }
    walk->next += n;
    if (walk->next == end) {
        go_down(walk);
    }
    return VXD_OK;
}

/* Numbers --------------------------------------------------------------------------------- */

static enum vxd_status step_rank(struct vxd_svdag_walk *walk, struct vxd_err *err)
{
    struct vxd_svdag_marks *marks = walk->fresh;
    enum vxd_status status;

    vxd_host_free(walk->context, &marks->refs);
    for (int n = 0; walk->next < N_CHUNKS && n < PIECE_PAGES; walk->next++) {
        struct vxd_svdag_mark *page = marks->pages[walk->next];

        for (int i = 0; page != NULL && i < VXD_SVDAG_PAGE_MARKS; i++) {
            page[i].base = walk->number;
            walk->number += (uint32_t)vxd_svdag_popc(page[i].bits);
        }
        n += page != NULL;
    }
    if (walk->next < N_CHUNKS) {
        return VXD_OK;
    }
    status = vxd_host_alloc(walk->context, (walk->number + 1) * sizeof(uint32_t),
                            &marks->refs, err);
    if (status != VXD_OK) {
        return status;
    }
    memset(marks->refs.ptr, 0, marks->refs.n_bytes);
    marks->n = walk->number;
    walk->phase = VXD_SVDAG_WALK_STORE;
    walk->height = walk->view.value_bits >= 8 ? 0 : VXD_SVDAG_LEAF_HEIGHT;
    walk->next = walk->begins[walk->height];
    walk->first_left = VXD_SVDAG_N_HEIGHTS;
    walk->n_put = 0;
    return VXD_OK;
}

/* Of one chunk: what both rounds' items became, in the order of their addresses. */
static enum vxd_status merge_page(struct vxd_svdag_walk *walk, uint32_t chunk,
                                  struct vxd_err *err)
{
    struct vxd_svdag_mark **old = &walk->marks[0].pages[chunk];
    struct vxd_svdag_mark *fresh = walk->marks[1].pages[chunk];
    const uint32_t *refs[2] = {walk->marks[0].refs.ptr, walk->marks[1].refs.ptr};
    static const struct vxd_svdag_mark none = {0};
    uint32_t *to = walk->merged.ptr;

    if (*old == NULL && fresh != NULL) {
        enum vxd_status status = new_page(walk, old, err);

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
        mark->base = walk->number;
        for (uint32_t rest = mark->bits; rest != 0; rest &= rest - 1) {
            int from = (mine.bits & rest & (~rest + 1)) != 0 ? 0 : 1;
            uint32_t base = from == 0 ? mine.base : other.base;

            to[walk->number++] = refs[from][base + n[from]++];
        }
    }
    if (fresh != NULL) {
        memset(fresh, 0, PAGE_BYTES);
    }
    return VXD_OK;
}

/* Makes one of the marks of two rounds. */
static enum vxd_status step_merge(struct vxd_svdag_walk *walk, struct vxd_err *err)
{
    for (int n = 0; walk->next < N_CHUNKS && n < PIECE_PAGES; walk->next++) {
        enum vxd_status status = merge_page(walk, walk->next, err);

        if (status != VXD_OK) {
            return status;
        }
        n += walk->marks[0].pages[walk->next] != NULL;
    }
    if (walk->next == N_CHUNKS) {
        vxd_host_free(walk->context, &walk->marks[0].refs);
        vxd_host_free(walk->context, &walk->marks[1].refs);
        walk->marks[0].refs = walk->merged;
        walk->marks[0].n = walk->number;
        walk->marks[1].n = 0;
        walk->merged = (struct vxd_buffer){0};
        walk->phase = VXD_SVDAG_WALK_IDLE;
    }
    return VXD_OK;
}

/* Up -------------------------------------------------------------------------------------- */

/* Puts an item whose references are there, else it is left. */
static enum vxd_status put_item(const struct piece *piece, struct tally *tally,
                                uint32_t ref, struct vxd_err *err)
{
    struct vxd_svdag_walk *walk = piece->walk;
    uint32_t words[VXD_SVDAG_MAX_ITEM_WORDS];
    uint32_t *slot = slot_of(walk, ref);
    struct vxd_svdag_item item;
    uint32_t became = VXD_SVDAG_EMPTY;
    int n_words;
    int first;
    int n_refs;
    enum vxd_status status;

    if (__atomic_load_n(slot, __ATOMIC_RELAXED) != VXD_SVDAG_EMPTY) {
        return VXD_OK;
    }
    item = item_of(&walk->view, ref, piece->kind, &n_words);
    for (int i = 0; i < n_words; i++) {
        words[i] = vxd_svdag_item_word(&item, i);
    }
    n_refs = vxd_svdag_item_refs(walk->view.value_bits, piece->kind, n_words, &first);
    for (int i = first; i < first + n_refs; i++) {
        words[i] = vxd_svdag_walk_ref(walk, words[i]);
        if (words[i] == VXD_SVDAG_EMPTY) {
            tally->is_left = true;
            return VXD_OK;
        }
    }
    status = walk->put(walk->put_args, &tally->writer, piece->kind, words, n_words,
                       &became, err);
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
    struct vxd_svdag_walk *walk = piece->walk;
    const uint32_t *list = (const uint32_t *)walk->list.ptr + piece->begin;
    struct tally tally = {.writer = {.svdag = walk->to}};
    struct vxd_err err = {0};
    enum vxd_status status = VXD_OK;

    for (size_t i = begin; i < end && status == VXD_OK; i++) {
        prefetch_item(walk, list, i, end);
        status = put_item(piece, &tally, list[i], &err);
    }
    if (walk->to != NULL) {
        vxd_svdag_writer_close(&tally.writer);
    }
    (void)pthread_mutex_lock(&walk->mutex);
    piece->is_left |= tally.is_left;
    piece->n_put += tally.n_put;
    piece->n_words += tally.n_words;
    if (status != VXD_OK && walk->status == VXD_OK) {
        walk->status = status;
        walk->err = err;
    }
    (void)pthread_mutex_unlock(&walk->mutex);
}

/* The list of a height was gone over: the next one, or once more from the first one of which an
 * item waits, or the end. */
static enum vxd_status go_up(struct vxd_svdag_walk *walk, struct vxd_err *err)
{
    if (walk->height < walk->view.depth) {
        walk->height += walk->height == 0 ? VXD_SVDAG_LEAF_HEIGHT : 1;
        walk->next = walk->begins[walk->height];
        return VXD_OK;
    }
    if (walk->first_left == VXD_SVDAG_N_HEIGHTS) {
        vxd_host_free(walk->context, &walk->list);
        walk->phase = VXD_SVDAG_WALK_IDLE;
        return VXD_OK;
    }
    if (walk->n_put == 0) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "nodes wait for each other");
    }
    walk->height = walk->first_left;
    walk->next = walk->begins[walk->height];
    walk->first_left = VXD_SVDAG_N_HEIGHTS;
    walk->n_put = 0;
    return VXD_OK;
}

static enum vxd_status step_store(struct vxd_svdag_walk *walk, struct vxd_err *err)
{
    uint32_t end = walk->ends[walk->height];
    uint32_t n = end - walk->next < PIECE_ITEMS ? end - walk->next : PIECE_ITEMS;
    struct piece piece = {.walk = walk, .begin = walk->next};

    piece.kind = vxd_svdag_kind_at(walk->height);
    run(walk, n, put_body, &piece);
    walk->n_put += piece.n_put;
    walk->n_nodes += piece.n_put;
    walk->n_words += piece.n_words;
    if (piece.is_left != 0 && walk->height < walk->first_left) {
        walk->first_left = walk->height;
    }
    if (walk->status != VXD_OK) {
        return counted(walk, err);
    }
    walk->next += n;
    return walk->next == end ? go_up(walk, err) : VXD_OK;
}

/* --------------------------------------------------------------------------------------- */

enum vxd_status vxd_svdag_walk_open(struct vxd_svdag_walk *walk,
                                    struct vxd_context *context,
                                    const struct vxd_svdag_view *view,
                                    struct vxd_err *err)
{
    walk->context = context;
    walk->view = *view;
    walk->fresh = &walk->marks[0];
    (void)pthread_mutex_init(&walk->mutex, NULL);
    for (int i = 0; i < 2; i++) {
        // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
        walk->marks[i].pages = calloc(N_CHUNKS, sizeof *walk->marks[i].pages);
        if (walk->marks[i].pages == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for marks");
        }
    }
    return VXD_OK;
}

void vxd_svdag_walk_close(struct vxd_svdag_walk *walk)
{
    for (size_t i = 0; i < walk->n_slabs; i++) {
        vxd_host_free(walk->context, &walk->slabs[i]);
    }
    free(walk->slabs);
    for (int i = 0; i < 2; i++) {
        vxd_host_free(walk->context, &walk->marks[i].refs);
        free(walk->marks[i].pages);
    }
    vxd_host_free(walk->context, &walk->list);
    vxd_host_free(walk->context, &walk->merged);
    (void)pthread_mutex_destroy(&walk->mutex);
}

/* Marks and lists the roots. */
static enum vxd_status begin_marks(struct vxd_svdag_walk *walk, const uint32_t *roots,
                                   size_t n_roots, struct vxd_err *err)
{
    uint32_t *list = walk->list.ptr;

    /* Memory first: from there on nothing fails. */
    for (size_t i = 0; i < n_roots; i++) {
        if (vxd_svdag_is_node(roots[i]) && fresh_mark(walk, roots[i]) == NULL) {
            return counted(walk, err);
        }
    }
    walk->n_listed = 0;
    memset(walk->begins, 0, sizeof walk->begins);
    memset(walk->ends, 0, sizeof walk->ends);
    for (size_t i = 0; i < n_roots; i++) {
        if (vxd_svdag_is_node(roots[i]) && mark_node(walk, roots[i])) {
            list[walk->n_listed++] = roots[i];
        }
    }
    walk->height = walk->view.depth;
    walk->ends[walk->height] = walk->n_listed;
    walk->next = 0;
    walk->phase = VXD_SVDAG_WALK_MARK;
    return VXD_OK;
}

enum vxd_status vxd_svdag_walk_begin(struct vxd_svdag_walk *walk, const uint32_t *roots,
                                     size_t n_roots, uint64_t n_items,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    if (walk->marks[1].n > 0) {
        uint64_t n = (uint64_t)walk->marks[0].n + walk->marks[1].n;

        status = vxd_host_alloc(walk->context, n * sizeof(uint32_t), &walk->merged, err);
        if (status == VXD_OK) {
            walk->phase = VXD_SVDAG_WALK_MERGE;
            walk->next = 0;
            walk->number = 0;
        }
        return status;
    }
    n_items = n_items > walk->marks[0].n ? n_items - walk->marks[0].n : 0;
    vxd_host_free(walk->context, &walk->list);
    status =
        vxd_host_alloc(walk->context, (n_items + 1) * sizeof(uint32_t), &walk->list, err);
    if (status != VXD_OK) {
        return status;
    }
    walk->fresh = walk->marks[0].n > 0 ? &walk->marks[1] : &walk->marks[0];
    return begin_marks(walk, roots, n_roots, err);
}

enum vxd_status vxd_svdag_walk_step(struct vxd_svdag_walk *walk, struct vxd_err *err)
{
    switch (walk->phase) {
    case VXD_SVDAG_WALK_MERGE:
        return step_merge(walk, err);
    case VXD_SVDAG_WALK_MARK:
        return step_mark(walk, err);
    case VXD_SVDAG_WALK_RANK:
        return step_rank(walk, err);
    case VXD_SVDAG_WALK_STORE:
        return step_store(walk, err);
    default:
        return VXD_OK;
    }
}
