// SPDX-License-Identifier: Apache-2.0
/* The four slab stores on the CPU: the layouts of slab_store_math.h, a lock a few lists.
 *
 * There is a table for each length that leaves and inner nodes of the format can have. Lists
 * are guarded in stripes; slabs are taken under the store's lock, from the chunk that the
 * table filled last: all before it are full. A table's chunk is taken when a slab does not
 * fit into those it has, so a scene takes a MiB a length.
 *
 * Locks are taken in the order stripe, store, context. Readers of nodes take none: what a
 * place holds is written before its reference is known to them. */
#include <string.h>

#include "gpu/svdag/store/store.h"
#include "gpu/paper/slab_stores.h"

enum {
    N_STRIPES = 1024,
    NO_CHUNK = -1
};

struct table {
    struct vxd_svdag_slab_form form;
    uint32_t
        *lists; /* addresses of their first slabs; NULL: the format has no such item */
    uint32_t n_lists;
    int chunk;        /* slabs are taken from, */
    uint32_t n_taken; /* of it, the first ones */
};

/* Of the lists whose numbers leave the same rest. */
struct stripe {
    pthread_mutex_t mutex;
    uint32_t n_items[VXD_SVDAG_N_KINDS];
    uint64_t n_words;
};

struct slabs {
    pthread_mutex_t mutex; /* guards chunks, bytes, and the last two of each table */
    uint32_t **chunks;
    uint32_t n_chunks;
    size_t n_bytes;
    struct table tables[VXD_SVDAG_SLAB_TABLES];
    struct stripe stripes[N_STRIPES];
};

static struct slabs *slabs_of(const struct vxd_svdag *svdag)
{
    return svdag->own;
}

/* A list, and who guards it. */
struct place {
    struct table *table;
    uint32_t *list;
    struct stripe *stripe;
};

/* False: the format has no items of this kind and length. */
static bool place_of(struct slabs *slabs, const struct vxd_svdag_lookup_key *key,
                     struct place *out)
{
    uint32_t list;

    if (key->kind == VXD_SVDAG_BLOCK || key->n_words >= VXD_SVDAG_SLAB_SIZES) {
        return false;
    }
    out->table = &slabs->tables[vxd_svdag_slab_table_of(key->kind, key->n_words)];
    if (out->table->lists == NULL) {
        return false;
    }
    list = vxd_svdag_slab_list(key->hash, out->table->n_lists);
    out->list = &out->table->lists[list];
    out->stripe = &slabs->stripes[list % N_STRIPES];
    return true;
}

static uint32_t *slab_words(const struct slabs *slabs, uint32_t slab)
{
    return slabs->chunks[slab >> VXD_SVDAG_CHUNK_BITS] +
           (slab & (VXD_SVDAG_CHUNK_WORDS - 1));
}

/* --- the words of a slab ---------------------------------------------------------------- */

/* Places of a slab that may hold the item: a mask. */
static uint32_t candidates(const struct vxd_svdag_slab_form *form, const uint32_t *slab,
                           const struct vxd_svdag_lookup_key *key)
{
    uint32_t hash32 = vxd_svdag_slab_hash32(key->hash);
    uint32_t hash8 = vxd_svdag_slab_hash8(key->hash);
    uint32_t mask = 0;

    if (form->store == VXD_SVDAG_TICKET) {
        return (slab[3] & vxd_svdag_slab_filter(key->words[0], key->words[1])) != 0
                   ? slab[0]
                   : 0;
    }
    for (size_t i = 0; i < VXD_SVDAG_SLAB_PLACES; i++) {
        bool equal =
            form->store == VXD_SVDAG_ATOMIC64
                ? ((slab[2 * i] ^ key->words[0]) | (slab[2 * i + 1] ^ key->words[1])) == 0
            : form->store == VXD_SVDAG_ACCEL32
                ? slab[i] == hash32
                : (slab[i / 4] >> i % 4 * 8 & 0xffu) == hash8;

        mask |= (uint32_t)equal << i;
    }
    return mask & form->places;
}

static uint32_t free_places(const struct vxd_svdag_slab_form *form, const uint32_t *slab)
{
    uint32_t mask = 0;

    if (form->store == VXD_SVDAG_TICKET) {
        return ~slab[0];
    }
    for (size_t i = 0; i < VXD_SVDAG_SLAB_PLACES; i++) {
        bool is_free =
            form->store == VXD_SVDAG_ATOMIC64  ? (slab[2 * i] | slab[2 * i + 1]) == 0
            : form->store == VXD_SVDAG_ACCEL32 ? slab[i] == 0
                                               : (slab[i / 4] >> i % 4 * 8 & 0xffu) == 0;

        mask |= (uint32_t)is_free << i;
    }
    return mask & form->places;
}

/* Writes an item to a free place, and what says that it is there. */
static void write_item(const struct vxd_svdag_slab_form *form, uint32_t *slab,
                       uint32_t address, uint32_t place,
                       const struct vxd_svdag_lookup_key *key)
{
    uint32_t *words = slab + vxd_svdag_slab_item(form, place);
    uint32_t *rest = words + 2;

    switch (form->store) {
    case VXD_SVDAG_ATOMIC64:
        if (key->n_words > 2) {
            rest = words + vxd_svdag_split_distance(
                               address + vxd_svdag_slab_item(form, place), key->n_words);
        }
        break;
    case VXD_SVDAG_TICKET:
        slab[0] |= 1u << place;
        slab[3] |= vxd_svdag_slab_filter(key->words[0], key->words[1]);
        break;
    case VXD_SVDAG_ACCEL32:
        slab[place] = vxd_svdag_slab_hash32(key->hash);
        break;
    default:
        slab[place / 4] |= vxd_svdag_slab_hash8(key->hash) << place % 4 * 8;
        break;
    }
    memcpy(words, key->words, 2 * sizeof *words);
    memcpy(rest, key->words + 2, (size_t)(key->n_words - 2) * sizeof *rest);
}

/* --- slabs ------------------------------------------------------------------------------ */

/* With the store's mutex held. */
static enum vxd_status take_chunk(struct vxd_svdag *svdag, struct table *table,
                                  struct vxd_err *err)
{
    struct slabs *slabs = slabs_of(svdag);
    void *memory;
    enum vxd_status status;

    if (slabs->n_chunks == VXD_SVDAG_MAX_CHUNKS) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the scene's store has no addresses left: 16 GiB of slabs");
    }
    status = vxd_svdag_take_bytes(svdag, VXD_SVDAG_CHUNK_WORDS * sizeof(uint32_t),
                                  &slabs->n_bytes, &memory, err);
    if (status != VXD_OK) {
        return status;
    }
    memset(memory, 0, VXD_SVDAG_CHUNK_BITMAP_WORDS * sizeof(uint32_t));
    table->chunk = (int)slabs->n_chunks;
    table->n_taken = 0;
    slabs->chunks[slabs->n_chunks++] = memory;
    return VXD_OK;
}

/* A slab of zeros. */
static enum vxd_status take_slab(struct vxd_svdag *svdag, struct table *table,
                                 uint32_t *slab, struct vxd_err *err)
{
    struct slabs *slabs = slabs_of(svdag);
    const struct vxd_svdag_slab_form *form = &table->form;
    uint32_t *words;
    uint32_t *bits;
    uint32_t i;
    enum vxd_status status = VXD_OK;

    (void)pthread_mutex_lock(&slabs->mutex);
    if (table->chunk == NO_CHUNK || table->n_taken == form->n_slabs) {
        VXD_TRY(take_chunk(svdag, table, err));
    }
    i = table->n_taken++;
    bits = slabs->chunks[table->chunk] + i / 32;
    *bits |= 1u << i % 32;
    *slab = vxd_svdag_slab_address(form, (uint32_t)table->chunk, i);
    words = slab_words(slabs, *slab);
    /* A row of heads, or the whole; the rest of heads needs no zeros. */
    memset(words, 0,
           (form->store == VXD_SVDAG_ATOMIC64 ? VXD_SVDAG_SPLIT_ROW : form->stride) *
               sizeof *words);
out:
    (void)pthread_mutex_unlock(&slabs->mutex);
    return status;
}

/* --- lists ------------------------------------------------------------------------------ */

/* A slab comes to the front of one list once, so that lists end. */
uint32_t vxd_svdag_slab_find(const struct vxd_svdag_view *view,
                             const struct vxd_svdag_slab_form *form, uint32_t front,
                             const struct vxd_svdag_lookup_key *key)
{
    uint32_t slab = front;

    while (slab != VXD_SVDAG_EMPTY) {
        const uint32_t *words = vxd_svdag_words(view, slab);
        uint32_t mask = candidates(form, words, key);

        for (; mask != 0; mask &= mask - 1) {
            uint32_t ref =
                slab + vxd_svdag_slab_item(form, (uint32_t)__builtin_ctz(mask));

            if (vxd_svdag_is_equal(view, ref, key)) {
                return ref;
            }
        }
        slab = words[form->next];
    }
    return VXD_SVDAG_EMPTY;
}

/* With the stripe held. */
static uint32_t list_find(const struct vxd_svdag *svdag, const struct place *place,
                          const struct vxd_svdag_lookup_key *key)
{
    return vxd_svdag_slab_find(&svdag->view, &place->table->form, *place->list, key);
}

/* Stores an item that the list does not hold. With the stripe held. */
static enum vxd_status list_add(struct vxd_svdag *svdag, const struct place *place,
                                const struct vxd_svdag_lookup_key *key, uint32_t *ref,
                                struct vxd_err *err)
{
    const struct vxd_svdag_slab_form *form = &place->table->form;
    uint32_t slab = *place->list;
    uint32_t *words = slab == VXD_SVDAG_EMPTY ? NULL : slab_words(slabs_of(svdag), slab);
    uint32_t mask = words == NULL ? 0 : free_places(form, words);
    uint32_t at;

    if (mask == 0) {
        enum vxd_status status = take_slab(svdag, place->table, &slab, err);

        if (status != VXD_OK) {
            return status;
        }
        words = slab_words(slabs_of(svdag), slab);
        words[form->next] = *place->list;
        *place->list = slab;
        mask = form->places;
    }
    at = (uint32_t)__builtin_ctz(mask);
    write_item(form, words, slab, at, key);
    place->stripe->n_items[key->kind]++;
    place->stripe->n_words += (uint64_t)key->n_words;
    *ref = slab + vxd_svdag_slab_item(form, at);
    return VXD_OK;
}

static enum vxd_status slabs_put(struct vxd_svdag_writer *writer,
                                 const struct vxd_svdag_lookup_key *key, uint32_t *ref,
                                 bool *is_new, struct vxd_err *err)
{
    struct vxd_svdag *svdag = writer->svdag;
    struct place place;
    enum vxd_status status = VXD_OK;

    if (!place_of(slabs_of(svdag), key, &place)) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "the store has no items of %d words",
                        key->n_words);
    }
    (void)pthread_mutex_lock(&place.stripe->mutex);
    *ref = list_find(svdag, &place, key);
    *is_new = *ref == VXD_SVDAG_EMPTY;
    if (*is_new) {
        status = list_add(svdag, &place, key, ref, err);
    }
    (void)pthread_mutex_unlock(&place.stripe->mutex);
    return status;
}

static uint32_t slabs_find(const struct vxd_svdag *svdag,
                           const struct vxd_svdag_lookup_key *key)
{
    struct place place;
    uint32_t ref;

    if (!place_of(slabs_of(svdag), key, &place)) {
        return VXD_SVDAG_EMPTY;
    }
    (void)pthread_mutex_lock(&place.stripe->mutex);
    ref = list_find(svdag, &place, key);
    (void)pthread_mutex_unlock(&place.stripe->mutex);
    return ref;
}

static void slabs_close(struct vxd_svdag_writer *writer)
{
    (void)writer; /* has nothing of the store's */
}

/* --- the store -------------------------------------------------------------------------- */

/* Lists of all tables; their places in `lists`, where that is not NULL. */
static uint64_t lay_out(const struct vxd_svdag *svdag, struct slabs *slabs,
                        uint32_t *lists)
{
    const struct vxd_svdag_spec *spec = &svdag->spec;
    uint32_t n_lists = vxd_svdag_slab_spec_lists(spec);
    uint64_t n = 0;

    for (int i = 0; i < VXD_SVDAG_SLAB_TABLES; i++) {
        int n_words = i % VXD_SVDAG_SLAB_SIZES;

        if (!vxd_svdag_slab_occurs(svdag->view.value_bits,
                                   (enum vxd_svdag_kind)(i / VXD_SVDAG_SLAB_SIZES),
                                   n_words)) {
            continue;
        }
        if (lists != NULL) {
            slabs->tables[i] =
                (struct table){.form = vxd_svdag_slab_form_of(spec->store, n_words),
                               .lists = lists + n,
                               .n_lists = n_lists,
                               .chunk = NO_CHUNK};
        }
        n += n_lists;
    }
    return n;
}

static enum vxd_status slabs_create(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                    struct vxd_err *err)
{
    size_t n_pointers = VXD_SVDAG_MAX_CHUNKS + 1;
    size_t n_bytes = sizeof(struct slabs) + n_pointers * sizeof(uint32_t *) +
                     lay_out(svdag, NULL, NULL) * sizeof(uint32_t);
    size_t max_bytes = svdag->spec.max_bytes;
    size_t n_taken = 0;
    struct slabs *slabs;
    void *memory;
    enum vxd_status status;

    (void)queue;
    if (max_bytes != 0 && n_bytes > max_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "%zu, but an empty store takes %zu", max_bytes, n_bytes);
    }
    status = vxd_svdag_take_bytes(svdag, n_bytes, &n_taken, &memory, err);
    if (status != VXD_OK) {
        return status;
    }
    memset(memory, 0, n_bytes);
    slabs = memory;
    slabs->chunks = (uint32_t **)(slabs + 1);
    slabs->n_bytes = n_taken;
    (void)lay_out(svdag, slabs, (uint32_t *)(slabs->chunks + n_pointers));
    (void)pthread_mutex_init(&slabs->mutex, NULL);
    for (int i = 0; i < N_STRIPES; i++) {
        (void)pthread_mutex_init(&slabs->stripes[i].mutex, NULL);
    }
    svdag->own = slabs;
    svdag->view.chunks = (const uint32_t *const *)slabs->chunks;
    svdag->view.is_split = svdag->spec.store == VXD_SVDAG_ATOMIC64;
    return VXD_OK;
}

static void slabs_destroy(struct vxd_queue *queue, struct vxd_svdag *svdag)
{
    struct slabs *slabs = slabs_of(svdag);

    (void)queue;
    for (uint32_t i = 0; i < slabs->n_chunks; i++) {
        vxd_svdag_release_bytes(svdag, slabs->chunks[i]);
    }
    for (int i = 0; i < N_STRIPES; i++) {
        (void)pthread_mutex_destroy(&slabs->stripes[i].mutex);
    }
    (void)pthread_mutex_destroy(&slabs->mutex);
    vxd_svdag_release_bytes(svdag, slabs);
    svdag->own = NULL;
}

static void slabs_get_usage(const struct vxd_svdag *svdag, struct vxd_svdag_usage *out)
{
    struct slabs *slabs = slabs_of(svdag);

    *out = (struct vxd_svdag_usage){0};
    for (int i = 0; i < N_STRIPES; i++) {
        struct stripe *stripe = &slabs->stripes[i];

        (void)pthread_mutex_lock(&stripe->mutex);
        out->n_leaves += stripe->n_items[VXD_SVDAG_LEAF];
        out->n_inner += stripe->n_items[VXD_SVDAG_INNER];
        out->node_bytes += stripe->n_words * sizeof(uint32_t);
        (void)pthread_mutex_unlock(&stripe->mutex);
    }
    (void)pthread_mutex_lock(&slabs->mutex);
    out->n_bytes = slabs->n_bytes;
    out->used_bytes = slabs->n_bytes;
    for (int i = 0; i < VXD_SVDAG_SLAB_TABLES; i++) {
        const struct table *table = &slabs->tables[i];

        if (table->lists != NULL && table->chunk != NO_CHUNK) {
            out->used_bytes -= (VXD_SVDAG_CHUNK_WORDS - VXD_SVDAG_CHUNK_BITMAP_WORDS -
                                (uint64_t)table->n_taken * table->form.stride) *
                               sizeof(uint32_t);
        }
    }
    (void)pthread_mutex_unlock(&slabs->mutex);
}

const struct vxd_svdag_store_ops vxd_paper_slabs_cpu = {
    slabs_create, slabs_destroy, slabs_put,       slabs_find,
    NULL,         slabs_close,   slabs_get_usage,
};
