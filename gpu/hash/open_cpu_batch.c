// SPDX-License-Identifier: Apache-2.0
/* Sorts a chunk by region: each piece of positions counts its keys by region, the
 * counts become places (region major, then piece, which keeps positions in order), and
 * each piece stores its keys there. Each key takes 16 bytes, which are written and
 * read once. */
#include "gpu/hash/open_cpu.h"

#define PIECE ((size_t)16384)
#define MAX_REGIONS 512
#define MIN_REGION_LINES 256
#define MIN_REGION_KEYS 512

struct layout {
    size_t items;
    size_t regions;
    size_t counts;
    size_t piece_new;
    size_t numbers;
    size_t flags;
    size_t total;
};

struct walk {
    struct vxd_open_batch *batch;
    vxd_open_walk_fn run;
};

static uint32_t max_regions(size_t n, uint32_t n_lines)
{
    size_t by_keys = n / MIN_REGION_KEYS;
    size_t by_lines = n_lines / MIN_REGION_LINES;
    size_t most = by_keys < by_lines ? by_keys : by_lines;

    return most < 1 ? 1 : most > MAX_REGIONS ? MAX_REGIONS : (uint32_t)most;
}

/* False on overflow. */
static bool lay_out(size_t n, size_t capacity, struct layout *out)
{
    size_t n_pieces = n / PIECE + 1;
    size_t n_regions = max_regions(n, vxd_open_n_lines(capacity));

    *out = (struct layout){.total = 0};
    return vxd_layout_add(&out->total, n, sizeof(struct vxd_open_item), &out->items) &&
           vxd_layout_add(&out->total, n_regions, sizeof(struct vxd_open_region),
                          &out->regions) &&
           vxd_layout_add(&out->total, n_pieces * n_regions, sizeof(uint32_t),
                          &out->counts) &&
           vxd_layout_add(&out->total, n / VXD_OPEN_PIECE + 1, sizeof(uint32_t),
                          &out->piece_new) &&
           vxd_layout_add(&out->total, n, sizeof(uint32_t), &out->numbers) &&
           vxd_layout_add(&out->total, n, 1, &out->flags);
}

size_t vxd_open_batch_bytes(size_t n, size_t capacity)
{
    struct layout layout;

    return lay_out(n < VXD_OPEN_CHUNK ? n : VXD_OPEN_CHUNK, capacity, &layout)
               ? layout.total
               : SIZE_MAX;
}

static inline bool is_selected(const struct vxd_open_batch *batch, size_t i)
{
    return batch->live == NULL || (batch->live[i / 32] >> (i % 32) & 1u) != 0;
}

static void count_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_open_batch *batch = args;
    const struct vxd_open_table *table = &batch->table;
    size_t row_bytes = (size_t)table->form.row_bytes;
    uint32_t *counts = batch->counts + begin / PIECE * batch->n_regions;

    memset(counts, 0, batch->n_regions * sizeof *counts);
    for (size_t i = begin; i < end; i++) {
        if (is_selected(batch, i)) {
            uint64_t tag = vxd_open_tag(&table->form, batch->keys + i * row_bytes);

            counts[vxd_open_home(table, tag).line >> batch->region_shift]++;
        }
    }
}

static void place_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_open_batch *batch = args;
    const struct vxd_open_table *table = &batch->table;
    size_t row_bytes = (size_t)table->form.row_bytes;
    uint32_t *places = batch->counts + begin / PIECE * batch->n_regions;

    for (size_t i = begin; i < end; i++) {
        if (is_selected(batch, i)) {
            uint64_t tag = vxd_open_tag(&table->form, batch->keys + i * row_bytes);
            struct vxd_open_walk home = vxd_open_home(table, tag);

            batch->items[places[home.line >> batch->region_shift]++] =
                (struct vxd_open_item){
                    tag, (uint32_t)i, (uint32_t)vxd_open_place(home.line, home.start, 0)};
        }
    }
}

static void counts_to_places(struct vxd_open_batch *batch)
{
    size_t n_pieces = (batch->n + PIECE - 1) / PIECE;
    uint32_t place = 0;

    for (size_t region = 0; region < batch->n_regions; region++) {
        batch->regions[region] = (struct vxd_open_region){.begin = place};
        for (size_t piece = 0; piece < n_pieces; piece++) {
            uint32_t *count = &batch->counts[piece * batch->n_regions + region];
            uint32_t n = *count;

            *count = place;
            place += n;
        }
        batch->regions[region].end = place;
    }
}

void vxd_open_batch_start(struct vxd_open_batch *batch, struct vxd_pool *pool,
                          const struct vxd_hashmap *map, const char *keys,
                          const uint32_t *live, size_t n, void *scratch)
{
    uint32_t n_lines = vxd_open_n_lines(map->capacity);
    uint32_t most = max_regions(n, n_lines);
    struct layout layout;

    /* The same sizes were computed when the scratch was allocated, so this cannot
     * fail. */
    (void)lay_out(n, map->capacity, &layout);
    *batch = (struct vxd_open_batch){
        .pool = pool,
        .map = map,
        .table = vxd_open_table_of(map),
        .keys = keys,
        .live = live,
        .n = n,
        .items = (void *)((char *)scratch + layout.items),
        .regions = (void *)((char *)scratch + layout.regions),
        .counts = (void *)((char *)scratch + layout.counts),
        .piece_new = (void *)((char *)scratch + layout.piece_new),
        .numbers = (void *)((char *)scratch + layout.numbers),
        .flags = (void *)((char *)scratch + layout.flags),
    };
    while (((n_lines - 1) >> batch->region_shift) + 1 > most) {
        batch->region_shift++;
    }
    batch->n_regions = ((n_lines - 1) >> batch->region_shift) + 1;
    vxd_parallel_for(pool, n, PIECE, count_piece, batch);
    counts_to_places(batch);
    vxd_parallel_for(pool, n, PIECE, place_piece, batch);
}

/* Whether the key in a slot that has an item's tag is the item's key. */
static inline bool is_same_key(const struct vxd_open_batch *batch,
                               const struct vxd_open_item *item, uint32_t entry)
{
    const struct vxd_key_form *form = &batch->table.form;
    size_t row_bytes = (size_t)form->row_bytes;
    const char *row = batch->keys + item->position * row_bytes;

    if (!vxd_tag_is_wide(item->tag)) {
        return true;
    }
    if ((entry & VXD_OPEN_PENDING) != 0) {
        return vxd_keys_equal(form, row,
                              batch->keys + (entry & ~VXD_OPEN_PENDING) * row_bytes);
    }
    return vxd_keys_equal(form, row, batch->table.keys + entry * row_bytes);
}

enum vxd_open_outcome vxd_open_seek(const struct vxd_open_batch *batch,
                                    const struct vxd_open_region *region,
                                    const struct vxd_open_item *item, bool alone,
                                    size_t *place)
{
    const struct vxd_open_table *table = &batch->table;
    struct vxd_open_walk walk = vxd_open_home(table, item->tag);
    size_t next_region = (size_t)(region - batch->regions) + 1;
    size_t end_line = next_region << batch->region_shift;
    size_t n_left;
    size_t free_place = SIZE_MAX;

    if (end_line > table->n_lines) {
        end_line = table->n_lines;
    }
    n_left = alone ? table->n_lines : end_line - walk.line;
    for (; n_left > 0; n_left--) {
        for (uint32_t step = 0; step < VXD_OPEN_LINE; step++) {
            size_t i = vxd_open_place(walk.line, walk.start, step);
            const struct vxd_open_slot *slot = &table->slots[i];

            if (slot->tag == VXD_TAG_EMPTY) {
                *place = free_place != SIZE_MAX ? free_place : i;
                return VXD_OPEN_ABSENT;
            }
            if (slot->tag == VXD_TAG_ERASED) {
                free_place = free_place != SIZE_MAX ? free_place : i;
            } else if (slot->tag == item->tag && is_same_key(batch, item, slot->entry)) {
                *place = i;
                return VXD_OPEN_FOUND;
            }
        }
        walk.line = walk.line + 1 < table->n_lines ? walk.line + 1 : 0;
    }
    *place = free_place;
    return alone ? VXD_OPEN_ABSENT : VXD_OPEN_OUT_OF_REGION;
}

static void walk_region(void *args, size_t begin, size_t end)
{
    const struct walk *walk = args;

    for (size_t i = begin; i < end; i++) {
        walk->run(walk->batch, &walk->batch->regions[i], false);
    }
}

void vxd_open_batch_walk(struct vxd_open_batch *batch, vxd_open_walk_fn run)
{
    struct walk walk = {batch, run};

    vxd_parallel_for(batch->pool, batch->n_regions, 1, walk_region, &walk);
    for (uint32_t i = 0; i < batch->n_regions; i++) {
        struct vxd_open_region *region = &batch->regions[i];

        if (region->n_deferred > 0) {
            run(batch, region, true);
        }
    }
}

struct vxd_open_region vxd_open_batch_sum(const struct vxd_open_batch *batch)
{
    struct vxd_open_region sum = {.end = batch->regions[batch->n_regions - 1].end};

    for (uint32_t i = 0; i < batch->n_regions; i++) {
        sum.n_new += batch->regions[i].n_new;
        sum.n_marks_used += batch->regions[i].n_marks_used;
        sum.failed = sum.failed || batch->regions[i].failed;
    }
    return sum;
}
