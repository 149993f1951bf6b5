// SPDX-License-Identifier: Apache-2.0
/* How a warp finds or stores items in the slab tables of a scene while others do: the stores of
 * slab_store_math.h behind the type that edits and collections are compiled for (store_cuda.h). For
 * .cu files only; those of ATOMIC64 define VXD_SVDAG_SPLIT_FORM first, or VXD_SVDAG_ANY_FORM.
 *
 * Each lane goes through its item's list by itself, a slab a turn. The lanes of a warp take their
 * turns together, and nothing within a turn waits: what a lane has to wait for is looked at
 * again in its next turn, when all that its own warp had to do for it is done.
 *
 * A list is a row of places, from its oldest slab's first to the front slab's last. Places are
 * taken in that order, each by one swap, by who has looked at all places before it; and a slab
 * comes to the front only past one that is full. So equal items are stored once.
 *
 * - A place's words are written after it was taken; then, behind a fence, its bit of the slab's
 *   ready word is set. Who meets a place that may be equal and is not ready looks again.
 * - A list whose front slab is full is locked (a bit of its address) by who puts the next one
 *   there, with its own item in it. That one waits for nobody: where it gets no slab it unlocks
 *   the list as it was.
 * - A table takes slabs of one chunk until that is full; then one of those who find it so locks
 *   it (a bit of its number), and takes the store's next chunk for it. */
#ifndef VXD_GPU_PAPER_SLAB_STORE_CUDA_H
#define VXD_GPU_PAPER_SLAB_STORE_CUDA_H

#include "gpu/svdag/store/store_cuda.h"
#include "gpu/paper/slab_cuda.h"
#include "gpu/paper/slab_stores.h"

#define VXD_SLAB_LOCKED 1u

/* Turns of a search, at most: a minute of them. Lists have no circles, and what is waited for
 * comes within a few. */
#define VXD_SLAB_MAX_STEPS (1u << 26)

/* What the first words of a slab tell. */
struct vxd_slab_seen {
    uint32_t equal; /* places that may hold the item, */
    uint32_t taken; /* and that hold one, or will */
    uint32_t next;
};

/* Where a lane's search has come to. Slabs from `stop` on were all looked at, and are full. */
struct vxd_slab_search {
    uint64_t hash;
    uint32_t *list;
    uint32_t slab;   /* to be looked at next; VXD_SVDAG_EMPTY: the list's front */
    uint32_t front;  /* where this way through the list began, */
    uint32_t behind; /* the slab behind it, */
    uint32_t place;  /* and its first free place, or VXD_SLAB_NONE */
    uint32_t stop;
};

enum vxd_slab_step {
    VXD_SLAB_CONTINUES,
    VXD_SLAB_FOUND,
    VXD_SLAB_STORED,
    VXD_SLAB_NEEDS_SLAB /* its list is locked, for a slab that is to be taken */
};

enum vxd_slab_taking {
    VXD_SLAB_TAKEN,
    VXD_SLAB_IS_BUSY, /* another warp is getting the table's next chunk */
    VXD_SLAB_NO_CHUNK
};

VXD_SVDAG_DEVICE uint4 vxd_slab_load_volatile(const uint32_t *words)
{
    return __ldcg((const uint4 *)(const void *)words);
}

/* By what its places are looked up. */
template <enum vxd_svdag_store STORE>
VXD_SVDAG_DEVICE uint64_t vxd_slab_value(const struct vxd_svdag_lane_key *key,
                                         uint64_t hash)
{
    return STORE == VXD_SVDAG_ACCEL32  ? vxd_svdag_slab_hash32(hash)
           : STORE == VXD_SVDAG_ACCEL8 ? vxd_svdag_slab_hash8(hash)
                                       : vxd_slab_pair(key->words[0], key->words[1]);
}

template <enum vxd_svdag_store STORE>
VXD_SVDAG_DEVICE struct vxd_slab_seen vxd_slab_see(const struct vxd_svdag_slab_form *form,
                                                   const uint32_t *slab, uint64_t value)
{
    struct vxd_slab_seen seen = {0, 0, VXD_SVDAG_EMPTY};

#pragma unroll 4
    for (uint32_t i = 0; i < vxd_slab_vectors(STORE); i++) {
        const uint4 v = vxd_slab_load_volatile(slab + 4 * i);

        seen.equal |= vxd_slab_match<STORE>(v, i, value);
        seen.taken |= vxd_slab_match<STORE>(v, i, 0); /* those that are free */
    }
    seen.equal &= form->places;
    seen.taken = ~seen.taken & form->places;
    seen.next = vxd_svdag_load_volatile(slab + form->next);
    return seen;
}

/* Of a ticket board. The bits of items' first words are looked at in slabs behind the front alone:
 * those were full, with all their bits, before another slab came to the front of them. */
VXD_SVDAG_DEVICE struct vxd_slab_seen
vxd_slab_see_tickets(const struct vxd_svdag_slab_form *form, const uint32_t *slab,
                     uint64_t head, bool is_front)
{
    const uint4 board = vxd_slab_load_volatile(slab);
    const uint32_t filter = vxd_svdag_slab_filter((uint32_t)head, (uint32_t)(head >> 32));
    const uint32_t ready = board.x & board.z;
    struct vxd_slab_seen seen = {board.x & ~ready, board.x, board.y};

    if (!is_front && (board.w & filter) == 0) {
        seen.equal = 0;
        return seen;
    }
    __threadfence(); /* heads that are ready are there */
#pragma unroll 4
    for (uint32_t i = 0; i < VXD_SVDAG_SLAB_PLACES; i++) {
        const uint32_t *words = slab + form->items + i * form->n_words;

        seen.equal |=
            vxd_slab_pair(__ldcg(words), __ldcg(words + 1)) == head ? ready & 1u << i : 0;
    }
    return seen;
}

/* Where the words of an item go from the third on, less two. */
template <enum vxd_svdag_store STORE>
VXD_SVDAG_DEVICE uint32_t *vxd_slab_rest(uint32_t *words, uint32_t ref, int n_words)
{
    return STORE == VXD_SVDAG_ATOMIC64 && n_words > 2
               ? words + vxd_svdag_split_distance(ref, n_words) - 2
               : words;
}

template <enum vxd_svdag_store STORE>
VXD_SVDAG_DEVICE bool vxd_slab_holds(const struct vxd_svdag_kernel_args *args,
                                     uint32_t ref, const struct vxd_svdag_lane_key *key)
{
    uint32_t *words = vxd_svdag_words_to(args, ref);
    uint32_t *rest = vxd_slab_rest<STORE>(words, ref, key->n_words);
    uint32_t differ =
        (__ldcg(words) ^ key->words[0]) | (__ldcg(words + 1) ^ key->words[1]);

#pragma unroll 2
    for (int i = 2; i < key->n_words; i++) {
        differ |= __ldcg(&rest[i]) ^ key->words[i];
    }
    return differ == 0;
}

/* Looks at the places that may hold the item. GOES_ON: none does; *is_unsure: but one may that is
 * not ready. */
template <enum vxd_svdag_store STORE>
VXD_SVDAG_DEVICE enum vxd_slab_step
vxd_slab_compare(const struct vxd_svdag_kernel_args *args,
                 const struct vxd_svdag_lane_key *key,
                 const struct vxd_svdag_slab_form *form, uint32_t slab, uint32_t equal,
                 uint32_t *ref, bool *is_unsure)
{
    uint32_t ready;

    *is_unsure = false;
    if (equal == 0) {
        return VXD_SLAB_CONTINUES;
    }
    ready = vxd_svdag_load_published(vxd_svdag_words_to(args, slab) + form->ready);
    *is_unsure = (equal & ~ready) != 0;
    for (uint32_t rest = equal & ready; rest != 0; rest &= rest - 1) {
        *ref = slab + vxd_svdag_slab_item(form, (uint32_t)__ffs((int)rest) - 1);
        if (vxd_slab_holds<STORE>(args, *ref, key)) {
            return VXD_SLAB_FOUND;
        }
    }
    *ref = VXD_SVDAG_EMPTY;
    return VXD_SLAB_CONTINUES;
}

/* Takes a place that was free, by the one swap that the store is named after. False: another
 * one did. */
template <enum vxd_svdag_store STORE>
VXD_SVDAG_DEVICE bool vxd_slab_claim(uint32_t *slab, uint32_t place, uint64_t value)
{
    if (STORE == VXD_SVDAG_ATOMIC64) {
        return vxd_svdag_atomic_cas64((uint64_t *)(void *)(slab + 2 * place), 0, value) ==
               0;
    }
    if (STORE == VXD_SVDAG_ACCEL32) {
        return vxd_svdag_atomic_cas(slab + place, 0, (uint32_t)value) == 0;
    }
    if (STORE == VXD_SVDAG_ACCEL8) {
        uint32_t *word = slab + place / 4;
        const uint32_t seen = vxd_svdag_load_volatile(word);
        const uint32_t shift = place % 4 * 8;

        /* Places before it are taken, those after it cannot be: only its own byte changes. */
        return (seen >> shift & 0xffu) == 0 &&
               vxd_svdag_atomic_cas(word, seen, seen | (uint32_t)value << shift) == seen;
    }
    /* Who sees the place taken, and a slab before this one, sees its item's bit too. */
    vxd_svdag_atomic_or(slab + 3,
                        vxd_svdag_slab_filter((uint32_t)value, (uint32_t)(value >> 32)));
    __threadfence();
    return (atomicOr(slab, 1u << place) >> place & 1u) == 0;
}

/* Writes an item to a place that is the lane's, and says so. */
template <enum vxd_svdag_store STORE>
VXD_SVDAG_DEVICE uint32_t vxd_slab_write(const struct vxd_svdag_kernel_args *args,
                                         const struct vxd_svdag_lane_key *key,
                                         const struct vxd_svdag_slab_form *form,
                                         uint32_t slab, uint32_t place)
{
    const uint32_t ref = slab + vxd_svdag_slab_item(form, place);
    uint32_t *words = vxd_svdag_words_to(args, ref);
    uint32_t *rest = vxd_slab_rest<STORE>(words, ref, key->n_words);

    if (STORE != VXD_SVDAG_ATOMIC64) { /* there the swap wrote them */
        words[0] = key->words[0];
        words[1] = key->words[1];
    }
    for (int i = 2; i < key->n_words; i++) {
        rest[i] = key->words[i];
    }
    __threadfence();
    vxd_svdag_atomic_or(vxd_svdag_words_to(args, slab) + form->ready, 1u << place);
    return ref;
}

/* Begins a way through the list, or locks it where all of it was looked at. */
VXD_SVDAG_DEVICE enum vxd_slab_step vxd_slab_begin(struct vxd_slab_search *at)
{
    const uint32_t seen = vxd_svdag_load_published(at->list);
    const uint32_t front = seen & ~VXD_SLAB_LOCKED;

    at->front = front;
    if (front != at->stop) {
        at->slab = front;
        return VXD_SLAB_CONTINUES;
    }
    return seen == front &&
                   vxd_svdag_atomic_cas(at->list, front, front | VXD_SLAB_LOCKED) == front
               ? VXD_SLAB_NEEDS_SLAB
               : VXD_SLAB_CONTINUES;
}

/* A turn of one lane. */
template <enum vxd_svdag_store STORE>
VXD_SVDAG_DEVICE enum vxd_slab_step
vxd_slab_run_step(const struct vxd_svdag_kernel_args *args,
                  const struct vxd_svdag_lane_key *key, struct vxd_slab_search *at,
                  uint32_t *ref)
{
    const struct vxd_svdag_slab_form form = vxd_svdag_slab_form_of(STORE, key->n_words);
    const uint64_t value = vxd_slab_value<STORE>(key, at->hash);
    struct vxd_slab_seen seen;
    bool is_unsure;
    uint32_t *slab;

    if (at->slab == VXD_SVDAG_EMPTY) {
        const enum vxd_slab_step step = vxd_slab_begin(at);

        if (at->slab == VXD_SVDAG_EMPTY) {
            return step;
        }
    }
    slab = vxd_svdag_words_to(args, at->slab);
    if constexpr (STORE == VXD_SVDAG_TICKET) {
        seen = vxd_slab_see_tickets(&form, slab, value, at->slab == at->front);
    } else {
        seen = vxd_slab_see<STORE>(&form, slab, value);
    }
    if (vxd_slab_compare<STORE>(args, key, &form, at->slab, seen.equal, ref,
                                &is_unsure) == VXD_SLAB_FOUND) {
        return VXD_SLAB_FOUND;
    }
    if (is_unsure) {
        return VXD_SLAB_CONTINUES; /* with this one again */
    }
    if (at->slab == at->front) {
        at->behind = seen.next;
        at->place = seen.taken == form.places
                        ? VXD_SLAB_NONE
                        : (uint32_t)__ffs((int)(form.places & ~seen.taken)) - 1;
    }
    if (seen.next != at->stop) {
        at->slab = seen.next;
        return VXD_SLAB_CONTINUES;
    }
    if (at->place == VXD_SLAB_NONE) {
        at->stop = at->front;
        at->slab = VXD_SVDAG_EMPTY;
        return VXD_SLAB_CONTINUES;
    }
    /* What is behind the front does not change any more. */
    at->stop = at->behind;
    at->slab = at->front;
    if (!vxd_slab_claim<STORE>(vxd_svdag_words_to(args, at->front), at->place, value)) {
        return VXD_SLAB_CONTINUES;
    }
    *ref = vxd_slab_write<STORE>(args, key, &form, at->front, at->place);
    return VXD_SLAB_STORED;
}

/* SlabAlloc ------------------------------------------------------------------------------- */

/* The store's next chunk becomes the table's, of which `seen` is full. By one lane. */
VXD_SVDAG_DEVICE enum vxd_slab_taking
vxd_slab_next_chunk(const struct vxd_svdag_kernel_args *args,
                    struct vxd_svdag_slab_source *source, uint32_t seen)
{
    uint64_t first;

    if (vxd_svdag_atomic_cas(&source->chunk, seen, seen | VXD_SLAB_LOCKED) != seen) {
        return VXD_SLAB_IS_BUSY;
    }
    first = vxd_svdag_atomic_add(&args->store->next, VXD_SVDAG_CHUNK_WORDS);
    if (first + VXD_SVDAG_CHUNK_WORDS > args->capacity_words) {
        (void)vxd_svdag_atomic_add(&args->store->next,
                                   ~(uint64_t)0 - VXD_SVDAG_CHUNK_WORDS + 1);
        (void)atomicExch(&source->chunk, seen);
        return VXD_SLAB_NO_CHUNK;
    }
    (void)atomicExch(&source->chunk, vxd_svdag_slab_chunk_word(
                                         (uint32_t)(first >> VXD_SVDAG_CHUNK_BITS)));
    return VXD_SLAB_TAKEN;
}

/* By all lanes of a warp: a slab of zeros, *slab, that no list has. */
VXD_SVDAG_DEVICE enum vxd_slab_taking
vxd_slab_take(const struct vxd_svdag_kernel_args *args, uint32_t table,
              const struct vxd_svdag_slab_form *form, uint32_t seed, uint32_t *slab)
{
    struct vxd_svdag_slab_source *source =
        (struct vxd_svdag_slab_source *)(void *)args->store->own + table;
    const uint32_t n_blocks = (form->n_slabs + 1023) / 1024;
    const uint32_t lane = vxd_svdag_lane();

    /* A new chunk that is full at once, by all the others, is as good as none for now. */
    for (int k = 0; k < 2; k++) {
        const uint32_t seen =
            vxd_slab_from_warp(vxd_svdag_load_volatile(&source->chunk), 0);
        const uint32_t chunk = vxd_svdag_slab_chunk_of_word(seen);
        uint32_t block = __umulhi(seed, n_blocks);
        uint32_t taking = VXD_SLAB_IS_BUSY;

        if ((seen & VXD_SLAB_LOCKED) != 0) {
            return VXD_SLAB_IS_BUSY;
        }
        for (uint32_t i = 0; seen != 0 && i < n_blocks; i++) {
            const uint32_t number =
                vxd_slab_take_of_block(form, args->chunks[chunk], block, lane, seed);

            if (number != VXD_SLAB_NONE_TAKEN) {
                if (lane == 0) {
                    (void)atomicAdd(&source->n_slabs, 1u);
                    (void)vxd_svdag_atomic_add(&args->state->n_taken, form->stride);
                }
                *slab = vxd_svdag_slab_address(form, chunk, number);
                return VXD_SLAB_TAKEN;
            }
            block = block + 1 == n_blocks ? 0 : block + 1;
        }
        if (lane == 0) {
            taking = (uint32_t)vxd_slab_next_chunk(args, source, seen);
        }
        taking = vxd_slab_from_warp(taking, 0);
        if (taking != VXD_SLAB_TAKEN) {
            return (enum vxd_slab_taking)taking;
        }
    }
    return VXD_SLAB_IS_BUSY;
}

/* By the lane that locked the list: the slab, of zeros, comes to its front with the lane's item. */
template <enum vxd_svdag_store STORE>
VXD_SVDAG_DEVICE uint32_t vxd_slab_lengthen(const struct vxd_svdag_kernel_args *args,
                                            const struct vxd_svdag_lane_key *key,
                                            const struct vxd_svdag_slab_form *form,
                                            const struct vxd_slab_search *at,
                                            uint32_t slab)
{
    uint32_t *words = vxd_svdag_words_to(args, slab);
    const uint32_t place = (uint32_t)__ffs((int)form->places) - 1;
    uint32_t ref;

    *(volatile uint32_t *)(words + form->next) = at->front;
    (void)vxd_slab_claim<STORE>(words, place, vxd_slab_value<STORE>(key, at->hash));
    ref = vxd_slab_write<STORE>(args, key, form, slab, place);
    __threadfence();
    (void)atomicExch(at->list, slab);
    return ref;
}

/* By all lanes of a warp: a slab for each that lacks one. Gives whether the lane has stored its
 * item, or (*is_over) there is no room for it; else its search goes on. */
template <enum vxd_svdag_store STORE>
VXD_SVDAG_DEVICE bool vxd_slab_lengthen_all(const struct vxd_svdag_kernel_args *args,
                                            const struct vxd_svdag_lane_key *key,
                                            const struct vxd_slab_search *at,
                                            bool needs_slab, uint32_t *ref, bool *is_over)
{
    const uint32_t lane = vxd_svdag_lane();
    bool is_stored = false;

    *is_over = false;
    for (uint32_t owners = __ballot_sync(VXD_SLAB_WARP, needs_slab); owners != 0;
         owners &= owners - 1) {
        const uint32_t owner = (uint32_t)__ffs((int)owners) - 1;
        const uint32_t n_words = vxd_slab_from_warp((uint32_t)key->n_words, owner);
        const uint32_t kind = vxd_slab_from_warp((uint32_t)key->kind, owner);
        const uint32_t seed = vxd_slab_from_warp((uint32_t)at->hash, owner);
        const struct vxd_svdag_slab_form form =
            vxd_svdag_slab_form_of(STORE, (int)n_words);
        uint32_t slab = VXD_SVDAG_EMPTY;
        const enum vxd_slab_taking taking = vxd_slab_take(
            args, vxd_svdag_slab_table_of((enum vxd_svdag_kind)kind, (int)n_words), &form,
            seed, &slab);

        if (lane == owner) {
            if (taking == VXD_SLAB_TAKEN) {
                *ref = vxd_slab_lengthen<STORE>(args, key, &form, at, slab);
                is_stored = true;
            } else {
                (void)atomicExch(at->list, at->front);
                *is_over = taking == VXD_SLAB_NO_CHUNK;
            }
        }
        __syncwarp();
    }
    if (*is_over) {
        vxd_svdag_set_fault(args, VXD_SVDAG_NO_WORDS);
    }
    return is_stored;
}

/* A slab store, with the members that struct vxd_svdag_arena_cuda documents. */
template <enum vxd_svdag_store STORE> struct vxd_svdag_slabs_cuda {
    struct spare {
    };
    static const bool RESERVES = false;

    static __device__ __forceinline__ spare no_spare(void)
    {
        return {};
    }

    static __device__ __forceinline__ uint32_t
    find_or_insert(const struct vxd_svdag_kernel_args *args,
                   const struct vxd_svdag_lane_key *key, spare *own, bool *is_new)
    {
        struct vxd_slab_search at = {0,
                                     NULL,
                                     VXD_SVDAG_EMPTY,
                                     VXD_SVDAG_EMPTY,
                                     VXD_SVDAG_EMPTY,
                                     VXD_SLAB_NONE,
                                     VXD_SVDAG_EMPTY};
        uint32_t ref = VXD_SVDAG_EMPTY;
        bool is_busy = key->n_words > 0;

        (void)own;
        *is_new = false;
        if (is_busy) {
            const struct vxd_svdag_slab_table *table =
                (const struct vxd_svdag_slab_table *)args->tables +
                vxd_svdag_slab_table_of(key->kind, key->n_words);

            at.hash = vxd_svdag_hash((uint32_t)key->kind, key->words, key->n_words);
            at.list = table->lists + vxd_svdag_slab_list(at.hash, table->n_lists);
        }
        for (uint32_t left = VXD_SLAB_MAX_STEPS; __any_sync(VXD_SLAB_WARP, is_busy);
             left--) {
            enum vxd_slab_step step = VXD_SLAB_CONTINUES;

            if (is_busy) {
                step = vxd_slab_run_step<STORE>(args, key, &at, &ref);
            }
            __syncwarp();
            if (__any_sync(VXD_SLAB_WARP, step == VXD_SLAB_NEEDS_SLAB)) {
                bool is_over;

                if (vxd_slab_lengthen_all<STORE>(
                        args, key, &at, step == VXD_SLAB_NEEDS_SLAB, &ref, &is_over)) {
                    step = VXD_SLAB_STORED;
                }
                is_busy = is_busy && !is_over;
            }
            *is_new = *is_new || step == VXD_SLAB_STORED;
            is_busy = is_busy && step != VXD_SLAB_FOUND && step != VXD_SLAB_STORED;
            if (left == 0) {
                vxd_svdag_set_fault(args, VXD_SVDAG_STUCK);
                break;
            }
        }
        return ref;
    }

    /* Slabs were counted as they were taken. */
    static __device__ __forceinline__ void end(const struct vxd_svdag_kernel_args *args)
    {
        (void)args;
    }

    static __device__ __forceinline__ void
    report_needs(const struct vxd_svdag_kernel_args *args, uint32_t fault,
                 uint64_t n_done, uint64_t n_subtrees, uint64_t n_above)
    {
        const uint64_t n_words =
            vxd_svdag_taken_words(vxd_svdag_load_volatile64(&args->state->n_taken));
        const uint64_t done = n_done > n_subtrees / 8 ? n_done : n_subtrees / 8 + 1;
        const uint64_t left = n_done < n_subtrees ? 24 * (n_subtrees - n_done) / done : 0;

        /* As the arena's; chunks that are wanted for their first slabs are the host's to
         * think of. */
        if ((fault & VXD_SVDAG_NO_WORDS) != 0) {
            args->progress->needs.n_words =
                vxd_svdag_load_volatile64(&args->store->next) + n_words * left / 64 +
                6 * n_above;
        }
    }
};

#endif
