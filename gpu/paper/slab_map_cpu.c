// SPDX-License-Identifier: Apache-2.0
#include "gpu/paper/slab_map_cpu.h"

#define PIECE VXD_SLAB_PIECE

/* A slice of keys to look for; `kind` neighbours of each, or 0: the keys themselves. */
struct find {
    struct vxd_slab_view view;
    const uint8_t *rows;
    enum vxd_hash_neighbours kind;
    int32_t *indices;
    uint8_t *found;
};

struct erase {
    struct vxd_hashmap map; /* a copy */
    struct vxd_slab_view view;
    const uint8_t *rows;
    size_t n;
    uint8_t *erased;
    uint32_t *places;
    int32_t *entries; /* whose key was found; then to be freed */
    void *heap_scratch;
};

struct probes {
    struct vxd_slab_view view;
    uint64_t *counts;
};

static enum vxd_status clear_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_slab_view view = *(const struct vxd_slab_view *)args;

    (void)err;
    vxd_slab_clear_run(pool, &view);
    return VXD_OK;
}

static enum vxd_status slab_clear(struct vxd_queue *queue, struct vxd_hashmap *map,
                                  struct vxd_err *err)
{
    struct vxd_slab_view view = vxd_slab_view_of(map);

    return vxd_queue_push(queue, clear_job, &view, sizeof view, err);
}

static enum vxd_status rebuild_job(struct vxd_pool *pool, const void *args,
                                   struct vxd_err *err)
{
    struct vxd_slab_view view = *(const struct vxd_slab_view *)args;

    return vxd_slab_rebuild_run(pool, &view, err);
}

static enum vxd_status slab_rebuild(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err)
{
    struct vxd_slab_view view = vxd_slab_view_of(map);

    (void)scratch;
    (void)scratch_bytes;
    return vxd_queue_push(queue, rebuild_job, &view, sizeof view, err);
}

/* Finding --------------------------------------------------------------------------------*/

static void find_keys(void *args, size_t begin, size_t end)
{
    const struct find *find = args;
    size_t row_bytes = (size_t)find->view.form.row_bytes;
    struct vxd_slab_home homes[VXD_SLAB_PREFETCH_ROWS];

    for (size_t at = begin; at < end; at += VXD_SLAB_PREFETCH_ROWS) {
        const uint8_t *rows = find->rows + at * row_bytes;
        size_t n = end - at < VXD_SLAB_PREFETCH_ROWS ? end - at : VXD_SLAB_PREFETCH_ROWS;

        vxd_slab_prefetch_rows(&find->view, rows, n, homes);
        for (size_t i = 0; i < n; i++) {
            uint64_t seen;
            bool is_there = vxd_slab_find(&find->view, rows + i * row_bytes, homes[i],
                                          &seen) != VXD_SLAB_NO_PLACE;

            if (find->indices != NULL) {
                find->indices[at + i] =
                    is_there ? (int32_t)vxd_slab_delegate(seen) : VXD_NO_ENTRY;
            }
            if (find->found != NULL) {
                find->found[at + i] = is_there;
            }
        }
    }
}

static void find_neighbours(void *args, size_t begin, size_t end)
{
    const struct find *find = args;
    const struct vxd_slab_view *view = &find->view;
    size_t kind = (size_t)find->kind;

    for (size_t i = begin; i < end; i++) {
        const uint8_t *row = find->rows + i * (size_t)view->form.row_bytes;

        for (size_t column = 0; column < kind; column++) {
            int64_t neighbour[4];
            int32_t entry = VXD_NO_ENTRY;
            uint64_t seen;

            if (vxd_key_neighbour(&view->form, row, (int)kind, (int)column, neighbour) &&
                vxd_slab_find(
                    view, neighbour,
                    vxd_slab_home_of(&view->shape, vxd_key_tag(&view->form, neighbour)),
                    &seen) != VXD_SLAB_NO_PLACE) {
                entry = (int32_t)vxd_slab_delegate(seen);
            }
            find->indices[i * kind + column] = entry;
        }
    }
}

struct find_call {
    struct find find;
    size_t n;
};

static enum vxd_status find_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct find_call call = *(const struct find_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.n, PIECE,
                     call.find.kind == 0 ? find_keys : find_neighbours, &call.find);
    return VXD_OK;
}

static enum vxd_status slab_find(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                 const void *keys, size_t n, int32_t *indices,
                                 uint8_t *found, struct vxd_err *err)
{
    struct find_call call = {
        {.view = vxd_slab_view_of(map), .rows = keys, .indices = indices, .found = found},
        n};

    return vxd_queue_push(queue, find_job, &call, sizeof call, err);
}

static enum vxd_status slab_neighbours(struct vxd_queue *queue,
                                       const struct vxd_hashmap *map, const void *keys,
                                       size_t n, enum vxd_hash_neighbours kind,
                                       int32_t *indices, struct vxd_err *err)
{
    struct find_call call = {
        {.view = vxd_slab_view_of(map), .rows = keys, .kind = kind, .indices = indices},
        n};

    return vxd_queue_push(queue, find_job, &call, sizeof call, err);
}

/* Erasing: keys are found while nothing changes; then each raises what stands at its place
 * to a mark of its position, smaller positions to higher marks; who finds its own mark there
 * in the end was the first. That is the result under both orders. */

static uint32_t erase_mark(size_t i)
{
    return VXD_SLAB_CLAIM | (0x7ffffffeu - (uint32_t)i);
}

static void locate_keys(void *args, size_t begin, size_t end)
{
    const struct erase *erase = args;
    size_t row_bytes = (size_t)erase->view.form.row_bytes;
    struct vxd_slab_home homes[VXD_SLAB_PREFETCH_ROWS];

    for (size_t at = begin; at < end; at += VXD_SLAB_PREFETCH_ROWS) {
        const uint8_t *rows = erase->rows + at * row_bytes;
        size_t n = end - at < VXD_SLAB_PREFETCH_ROWS ? end - at : VXD_SLAB_PREFETCH_ROWS;

        vxd_slab_prefetch_rows(&erase->view, rows, n, homes);
        for (size_t i = 0; i < n; i++) {
            uint64_t seen = 0;

            erase->places[at + i] =
                vxd_slab_find(&erase->view, rows + i * row_bytes, homes[i], &seen);
            erase->entries[at + i] = (int32_t)vxd_slab_delegate(seen);
        }
    }
}

static void mark_places(void *args, size_t begin, size_t end)
{
    const struct erase *erase = args;

    for (size_t i = begin; i < end; i++) {
        if (erase->places[i] != VXD_SLAB_NO_PLACE) {
            uint64_t *word = erase->view.words + erase->places[i];
            uint64_t seen = vxd_slab_load(word);

            while (
                vxd_slab_delegate(seen) < erase_mark(i) &&
                !vxd_slab_swap(word, &seen,
                               vxd_slab_place((uint32_t)(seen >> 32), erase_mark(i)))) {
            }
        }
    }
}

static void empty_places(void *args, size_t begin, size_t end)
{
    const struct erase *erase = args;

    for (size_t i = begin; i < end; i++) {
        uint32_t place = erase->places[i];
        bool is_first =
            place != VXD_SLAB_NO_PLACE &&
            vxd_slab_delegate(vxd_slab_load(erase->view.words + place)) == erase_mark(i);

        if (is_first) {
            vxd_slab_store(erase->view.words + place, VXD_SLAB_ERASED);
        } else {
            erase->entries[i] = VXD_NO_ENTRY;
        }
        if (erase->erased != NULL) {
            erase->erased[i] = is_first;
        }
    }
}

static enum vxd_status erase_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct erase erase = *(const struct erase *)args;
    struct vxd_hash_counters *counters = erase.view.counters;
    uint32_t n_erased;

    vxd_parallel_for(pool, erase.n, PIECE, locate_keys, &erase);
    vxd_parallel_for(pool, erase.n, PIECE, mark_places, &erase);
    vxd_parallel_for(pool, erase.n, PIECE, empty_places, &erase);
    n_erased = vxd_hash_entries_free_run(pool, &erase.map, erase.entries, erase.n);
    if (n_erased == 0) {
        return VXD_OK;
    }
    counters->n_erased_marks += n_erased;
    vxd_hash_heap_return_run(pool, &erase.map, erase.entries, erase.n, n_erased,
                             erase.heap_scratch);
    if (counters->n_erased_marks > erase.view.shape.max_erased) {
        return vxd_slab_rebuild_run(pool, &erase.view, err);
    }
    return VXD_OK;
}

static bool lay_out_erase(const struct vxd_queue *queue, size_t capacity, size_t n,
                          size_t *entries, size_t *heap, size_t *total)
{
    size_t places;

    *entries = *heap = *total = 0;
    return vxd_layout_add(total, n, sizeof(uint32_t), &places) &&
           vxd_layout_add(total, n, sizeof(int32_t), entries) &&
           vxd_layout_add(total, vxd_hash_heap_scratch_bytes_cpu(queue, capacity), 1,
                          heap);
}

static enum vxd_status slab_erase(struct vxd_queue *queue, struct vxd_hashmap *map,
                                  const void *keys, size_t n, enum vxd_hash_order order,
                                  uint8_t *erased, void *scratch, size_t scratch_bytes,
                                  struct vxd_err *err)
{
    struct erase erase = {.map = *map,
                          .view = vxd_slab_view_of(map),
                          .rows = keys,
                          .n = n,
                          .erased = erased,
                          .places = scratch};
    size_t entries;
    size_t heap;

    (void)order;
    /* The same sizes were laid out when the scratch was allocated. */
    (void)lay_out_erase(queue, map->capacity, n, &entries, &heap, &scratch_bytes);
    erase.entries = (int32_t *)((uint8_t *)scratch + entries);
    erase.heap_scratch = (uint8_t *)scratch + heap;
    return vxd_queue_push(queue, erase_job, &erase, sizeof erase, err);
}

static size_t slab_scratch_bytes(const struct vxd_queue *queue,
                                 const struct vxd_hashmap *map, enum vxd_hash_call call,
                                 enum vxd_hash_order order, size_t n)
{
    size_t entries;
    size_t heap;
    size_t total;

    (void)order;
    if (call == VXD_CALL_INSERT) {
        return vxd_slab_insert_bytes(n);
    }
    if (call == VXD_CALL_ERASE) {
        return lay_out_erase(queue, map->capacity, n, &entries, &heap, &total) ? total
                                                                               : SIZE_MAX;
    }
    return 0; /* finding and rebuilding need none */
}

/* Statistics -----------------------------------------------------------------------------*/

static void count_probes(void *args, size_t begin, size_t end)
{
    const struct probes *probes = args;
    const struct vxd_slab_view *view = &probes->view;
    uint64_t n_slabs = vxd_slab_count(&view->shape);
    uint64_t counts[VXD_PROBE_BINS + 2] = {0};
    uint64_t *most = probes->counts + VXD_PROBE_BINS + 1;
    uint64_t seen;

    for (size_t bucket = begin; bucket < end; bucket++) {
        uint64_t slab = bucket;

        for (uint64_t n_read = 1; n_read <= n_slabs && slab < n_slabs; n_read++) {
            const uint64_t *words = view->words + slab * VXD_SLAB_WORDS;
            size_t bin = n_read < VXD_PROBE_BINS ? n_read - 1 : VXD_PROBE_BINS - 1;
            uint64_t n_taken = 0;

            for (int p = 0; p < VXD_SLAB_PLACES; p++) {
                n_taken += !vxd_slab_is_free(words[p]);
            }
            counts[bin] += n_taken;
            counts[VXD_PROBE_BINS] += n_taken * n_read;
            if (n_taken > 0 && n_read > counts[VXD_PROBE_BINS + 1]) {
                counts[VXD_PROBE_BINS + 1] = n_read;
            }
            slab = words[VXD_SLAB_LINK];
        }
    }
    for (int i = 0; i <= VXD_PROBE_BINS; i++) {
        (void)__atomic_fetch_add(probes->counts + i, counts[i], __ATOMIC_RELAXED);
    }
    seen = vxd_slab_load(most);
    while (seen < counts[VXD_PROBE_BINS + 1] &&
           !vxd_slab_swap(most, &seen, counts[VXD_PROBE_BINS + 1])) {
    }
}

static enum vxd_status probes_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct probes probes = *(const struct probes *)args;

    (void)err;
    memset(probes.counts, 0, (VXD_PROBE_BINS + 2) * sizeof *probes.counts);
    vxd_parallel_for(pool, probes.view.shape.n_buckets, PIECE, count_probes, &probes);
    return VXD_OK;
}

static enum vxd_status slab_probes(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                   uint64_t *counts, struct vxd_err *err)
{
    struct probes probes = {vxd_slab_view_of(map), counts};

    return vxd_queue_push(queue, probes_job, &probes, sizeof probes, err);
}

const struct vxd_hash_ops vxd_paper_slab_map_cpu = {
    .index_bytes = vxd_slab_index_bytes,
    .scratch_bytes = slab_scratch_bytes,
    .clear = slab_clear,
    .rebuild = slab_rebuild,
    .insert = vxd_slab_insert_cpu,
    .find = slab_find,
    .erase = slab_erase,
    .neighbours = slab_neighbours,
    .probes = slab_probes,
    .n_places = vxd_slab_n_places,
};
