// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include "gpu/paper/slab_map_cpu.h"

uint32_t vxd_slab_find(const struct vxd_slab_view *view, const void *row,
                       struct vxd_slab_home home, uint64_t *seen)
{
    size_t n_slabs = vxd_slab_count(&view->shape);
    uint64_t slab = home.bucket;

    for (size_t n_read = 0; n_read < n_slabs && slab < n_slabs; n_read++) {
        const uint64_t *words = view->words + slab * VXD_SLAB_WORDS;

        for (uint32_t p = 0; p < VXD_SLAB_PLACES; p++) {
            uint64_t place = words[p];

            if (place == VXD_SLAB_EMPTY) {
                return VXD_SLAB_NO_PLACE;
            }
            if (vxd_slab_matches(place, home.fragment) &&
                vxd_keys_equal(&view->form, row, vxd_slab_key(view, NULL, place))) {
                *seen = place;
                return (uint32_t)slab * VXD_SLAB_WORDS + p;
            }
        }
        slab = words[VXD_SLAB_LINK];
    }
    return VXD_SLAB_NO_PLACE;
}

/* Number of the slab after the one whose link this is, a new one if it was the last; NONE
 * when all slabs are in use. */
static uint64_t next_slab(const struct vxd_slab_view *view, uint64_t *link)
{
    uint64_t seen = vxd_slab_load(link);

    while (seen >= VXD_SLAB_TAKEN) {
        if (seen == VXD_SLAB_TAKEN) {
            (void)sched_yield();
            seen = vxd_slab_load(link);
        } else if (vxd_slab_swap(link, &seen, VXD_SLAB_TAKEN)) {
            uint32_t n =
                __atomic_fetch_add(&view->counters->n_slabs, 1, __ATOMIC_RELAXED);

            if (n >= view->shape.n_spare) {
                (void)__atomic_fetch_sub(&view->counters->n_slabs, 1, __ATOMIC_RELAXED);
                vxd_slab_store(link, VXD_SLAB_NONE);
                return VXD_SLAB_NONE;
            }
            seen = (uint64_t)view->shape.n_buckets + n;
            vxd_slab_store(link, seen);
        }
    }
    return seen;
}

/* Reads a slab: true when the key's place, or the first EMPTY one, is in it. *found is the
 * key's place or else NO_PLACE; *vacant the first free one seen since it was NO_PLACE. */
static bool read_slab(const struct vxd_slab_view *view, const void *batch,
                      struct vxd_slab_claim *claim, uint32_t slab, uint32_t *found,
                      uint32_t *vacant, uint64_t *vacant_mark)
{
    const uint64_t *words = view->words + (size_t)slab * VXD_SLAB_WORDS;

    for (uint32_t p = 0; p < VXD_SLAB_PLACES; p++) {
        uint64_t place = vxd_slab_load(words + p);

        if (vxd_slab_is_free(place)) {
            if (*vacant == VXD_SLAB_NO_PLACE) {
                *vacant = slab * VXD_SLAB_WORDS + p;
                *vacant_mark = place;
            }
            if (place == VXD_SLAB_EMPTY) {
                return true;
            }
        } else if (vxd_slab_matches(place, claim->home.fragment) &&
                   vxd_keys_equal(&view->form, claim->row,
                                  vxd_slab_key(view, batch, place))) {
            claim->seen = place;
            *found = slab * VXD_SLAB_WORDS + p;
            return true;
        }
    }
    return false;
}

uint32_t vxd_slab_claim_place(const struct vxd_slab_view *view, const void *batch,
                              struct vxd_slab_claim *claim)
{
    uint32_t slab = claim->home.bucket;
    uint32_t vacant = VXD_SLAB_NO_PLACE;
    uint64_t mark = VXD_SLAB_EMPTY;

    for (;;) {
        uint64_t *link = view->words + (size_t)slab * VXD_SLAB_WORDS + VXD_SLAB_LINK;
        uint32_t found = VXD_SLAB_NO_PLACE;
        bool at_end = read_slab(view, batch, claim, slab, &found, &vacant, &mark);
        uint64_t next;

        if (found != VXD_SLAB_NO_PLACE) {
            return found;
        }
        if (vacant != VXD_SLAB_NO_PLACE &&
            (at_end || vxd_slab_load(link) >= VXD_SLAB_TAKEN)) {
            uint64_t mine = vxd_slab_place(claim->home.fragment, claim->delegate);

            if (vxd_slab_swap(view->words + vacant, &mark, mine)) {
                claim->seen = mine;
                claim->reused = mark == VXD_SLAB_ERASED;
                return vacant;
            }
            slab = vacant / VXD_SLAB_WORDS;
            vacant = VXD_SLAB_NO_PLACE;
            continue;
        }
        next = next_slab(view, link);
        if (next == VXD_SLAB_NONE) {
            return VXD_SLAB_NO_PLACE;
        }
        slab = (uint32_t)next;
    }
}

void vxd_slab_prefetch_rows(const struct vxd_slab_view *view, const uint8_t *rows,
                            size_t n, struct vxd_slab_home *homes)
{
    for (size_t i = 0; i < n; i++) {
        const void *row = rows + i * (size_t)view->form.row_bytes;
        const uint64_t *words;

        homes[i] = vxd_slab_home_of(&view->shape, vxd_key_tag(&view->form, row));
        words = view->words + (size_t)homes[i].bucket * VXD_SLAB_WORDS;
        __builtin_prefetch(words);
        __builtin_prefetch(words + VXD_SLAB_WORDS / 2);
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t *words = view->words + (size_t)homes[i].bucket * VXD_SLAB_WORDS;

        for (uint32_t p = 0; p < VXD_SLAB_PLACES; p++) {
            uint64_t place = vxd_slab_load(words + p);

            if (place == VXD_SLAB_EMPTY) {
                break;
            }
            if (vxd_slab_matches(place, homes[i].fragment)) {
                if (vxd_slab_delegate(place) < VXD_SLAB_CLAIM) {
                    __builtin_prefetch(vxd_slab_key(view, NULL, place));
                }
                break;
            }
        }
    }
}

static void empty_slabs(void *args, size_t begin, size_t end)
{
    const struct vxd_slab_view *view = args;

    memset((uint8_t *)view->words + begin * VXD_SLAB_BYTES, 0xff,
           (end - begin) * VXD_SLAB_BYTES);
}

void vxd_slab_clear_run(struct vxd_pool *pool, struct vxd_slab_view *view)
{
    vxd_parallel_for(pool, vxd_slab_count(&view->shape), VXD_SLAB_PIECE, empty_slabs,
                     view);
    view->counters->n_slabs = 0;
    view->counters->n_erased_marks = 0;
}

static void place_entries(void *args, size_t begin, size_t end)
{
    const struct vxd_slab_view *view = args;

    for (size_t e = begin; e < end; e++) {
        const void *row = view->keys + e * (size_t)view->form.row_bytes;
        struct vxd_slab_claim claim = {row, {0, 0}, (uint32_t)e, 0, false};

        if (!vxd_slab_lives(view->live, (uint32_t)e)) {
            continue;
        }
        claim.home = vxd_slab_home_of(&view->shape, vxd_key_tag(&view->form, row));
        if (vxd_slab_claim_place(view, NULL, &claim) == VXD_SLAB_NO_PLACE ||
            vxd_slab_delegate(claim.seen) != (uint32_t)e) {
            __atomic_store_n(&view->counters->scratch[VXD_SLAB_FAILED], 1,
                             __ATOMIC_RELAXED);
        }
    }
}

enum vxd_status vxd_slab_rebuild_run(struct vxd_pool *pool, struct vxd_slab_view *view,
                                     struct vxd_err *err)
{
    vxd_slab_clear_run(pool, view);
    vxd_parallel_for(pool, view->capacity, VXD_SLAB_PIECE, place_entries, view);
    if (view->counters->scratch[VXD_SLAB_FAILED] != 0) {
        view->counters->scratch[VXD_SLAB_FAILED] = 0;
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "a key of the map is there twice");
    }
    return VXD_OK;
}
