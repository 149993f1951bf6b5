// SPDX-License-Identifier: Apache-2.0
/* Sorts positions by entry (stably), so that the rows of one entry are adjacent and in
 * the order of their positions, and lets one thread combine each entry's rows. Moves
 * 24 bytes for each row and sorting pass. */
#include "gpu/hash/combine_math.h"
#include "gpu/hash/hash_cpu.h"

#define PIECE ((size_t)4096)

struct layout {
    size_t keys[2];
    size_t positions[2];
    size_t sort;
    size_t total;
};

/* What vxd_queue_push copies; the arrays lie in the scratch. */
struct update {
    struct vxd_hashmap map;
    struct vxd_hashmap_update_args args;
    enum vxd_dtype own; /* dtype of the array */
    size_t n_elements;
    uint64_t *keys; /* entry numbers, the capacity where no entry lives */
    uint64_t *spare_keys;
    uint32_t *positions;
    uint32_t *spare_positions;
    void *sort_scratch;
};

/* The rows of one entry, in the order of their positions. */
struct group {
    const struct update *update;
    const uint32_t *positions;
    size_t n;
};

static bool lay_out(int n_threads, size_t n, struct layout *out)
{
    *out = (struct layout){.total = 0};
    for (int i = 0; i < 2; i++) {
        if (!vxd_layout_add(&out->total, n, sizeof(uint64_t), &out->keys[i]) ||
            !vxd_layout_add(&out->total, n, sizeof(uint32_t), &out->positions[i])) {
            return false;
        }
    }
    return vxd_layout_add(&out->total, vxd_sort_pairs_scratch_bytes_cpu(n_threads, n), 1,
                          &out->sort);
}

size_t vxd_hash_update_scratch_bytes_cpu(const struct vxd_queue *queue,
                                         const struct vxd_hashmap *map,
                                         const struct vxd_hashmap_update_args *args)
{
    struct layout layout;

    (void)map;
    return lay_out(queue->context->info.n_threads, args->n, &layout) ? layout.total
                                                                     : SIZE_MAX;
}

static void key_piece(void *args, size_t begin, size_t end)
{
    const struct update *update = args;

    for (size_t i = begin; i < end; i++) {
        int32_t entry = update->args.indices[i];
        bool lives = vxd_entry_lives(&update->map, entry);

        update->keys[i] = lives ? (uint64_t)entry : update->map.capacity;
        update->positions[i] = (uint32_t)i;
        if (update->args.updated != NULL) {
            update->args.updated[i] = lives ? 1 : 0;
        }
    }
}

/* Element e of the group's row i, as an element number in args.rows. */
static inline size_t element_of(const struct group *group, size_t i, size_t e)
{
    return group->positions[i] * group->update->n_elements + e;
}

static void add_ints(const struct group *group, void *to, size_t e)
{
    const struct vxd_hashmap_update_args *args = &group->update->args;
    enum vxd_dtype own = group->update->own;
    struct vxd_wide_int sum = vxd_int_load(own, to, e);

    for (size_t i = 0; i < group->n; i++) {
        sum = vxd_wide_add(
            sum, vxd_int_load(args->dtype, args->rows, element_of(group, i, e)));
    }
    vxd_int_store(own, to, e, sum);
}

static void add_floats(const struct group *group, void *to, size_t e)
{
    const struct vxd_hashmap_update_args *args = &group->update->args;
    enum vxd_dtype own = group->update->own;
    float total = 0;

    for (size_t begin = 0; begin < group->n; begin += VXD_COMBINE_BLOCK) {
        size_t end =
            group->n - begin < VXD_COMBINE_BLOCK ? group->n : begin + VXD_COMBINE_BLOCK;
        float sum = vxd_float_load(own, args->rows, element_of(group, begin, e));

        for (size_t i = begin + 1; i < end; i++) {
            sum = vxd_addf(sum, vxd_float_load(own, args->rows, element_of(group, i, e)));
        }
        total = begin == 0 ? sum : vxd_addf(total, sum);
    }
    vxd_float_store(own, to, e, vxd_addf(vxd_float_load(own, to, e), total));
}

static void add_doubles(const struct group *group, void *to, size_t e)
{
    const struct vxd_hashmap_update_args *args = &group->update->args;
    double total = 0;

    for (size_t begin = 0; begin < group->n; begin += VXD_COMBINE_BLOCK) {
        size_t end =
            group->n - begin < VXD_COMBINE_BLOCK ? group->n : begin + VXD_COMBINE_BLOCK;
        double sum =
            vxd_double_load(args->dtype, args->rows, element_of(group, begin, e));

        for (size_t i = begin + 1; i < end; i++) {
            sum = vxd_addd(
                sum, vxd_double_load(args->dtype, args->rows, element_of(group, i, e)));
        }
        total = begin == 0 ? sum : vxd_addd(total, sum);
    }
    vxd_double_store(to, e, vxd_addd(vxd_double_load(VXD_FLOAT64, to, e), total));
}

static void take_extreme(const struct group *group, void *to, size_t e)
{
    const struct vxd_hashmap_update_args *args = &group->update->args;
    size_t best = element_of(group, 0, e);

    for (size_t i = 1; i < group->n; i++) {
        size_t next = element_of(group, i, e);

        if (vxd_element_supersedes(args->combine, args->dtype, args->rows, next, best)) {
            best = next;
        }
    }
    if (vxd_element_wins(args->combine, args->dtype, args->rows, best, group->update->own,
                         to, e)) {
        vxd_element_copy(group->update->own, to, e, args->dtype, args->rows, best);
    }
}

static void combine_group(const struct group *group, void *to)
{
    const struct update *update = group->update;

    for (size_t e = 0; e < update->n_elements; e++) {
        if (update->args.combine == VXD_COMBINE_SET) {
            vxd_element_copy(update->own, to, e, update->args.dtype, update->args.rows,
                             element_of(group, group->n - 1, e));
        } else if (update->args.combine != VXD_COMBINE_ADD) {
            take_extreme(group, to, e);
        } else if (vxd_combine_form_of(update->own) == VXD_FORM_INT) {
            add_ints(group, to, e);
        } else if (vxd_combine_form_of(update->own) == VXD_FORM_FLOAT) {
            add_floats(group, to, e);
        } else {
            add_doubles(group, to, e);
        }
    }
}

/* Combines the groups that begin among the sorted pairs [begin, end). */
static void combine_piece(void *args, size_t begin, size_t end)
{
    const struct update *update = args;
    const uint64_t *keys = update->keys;
    size_t row_bytes = update->map.row_bytes[update->args.array];
    char *rows = update->map.values[update->args.array].ptr;

    while (begin > 0 && begin < end && keys[begin] == keys[begin - 1]) {
        begin++;
    }
    while (begin < end && keys[begin] < update->map.capacity) {
        struct group group = {update, update->positions + begin, 1};

        while (begin + group.n < update->args.n && keys[begin + group.n] == keys[begin]) {
            group.n++;
        }
        combine_group(&group, rows + keys[begin] * row_bytes);
        begin += group.n;
    }
}

static enum vxd_status update_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct update update = *(const struct update *)args;
    int n_bits = 64 - __builtin_clzll(update.map.capacity | 1);

    (void)err;
    vxd_parallel_for(pool, update.args.n, PIECE, key_piece, &update);
    if (vxd_sort_pairs_run(pool, update.keys, update.positions, update.spare_keys,
                           update.spare_positions, update.args.n, 0, n_bits,
                           update.sort_scratch)) {
        update.keys = update.spare_keys;
        update.positions = update.spare_positions;
    }
    vxd_parallel_for(pool, update.args.n, PIECE, combine_piece, &update);
    return VXD_OK;
}

enum vxd_status vxd_hash_update_cpu(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    const struct vxd_hashmap_update_args *args,
                                    void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err)
{
    struct update update = {.map = *map, .args = *args};
    struct layout layout;
    char *base = scratch;

    (void)scratch_bytes;
    /* The same sizes were computed when the scratch was allocated, so this cannot
     * fail. */
    (void)lay_out(queue->context->info.n_threads, args->n, &layout);
    update.own = map->spec.values[args->array].dtype;
    update.n_elements = map->spec.values[args->array].n_elements;
    update.keys = (void *)(base + layout.keys[0]);
    update.spare_keys = (void *)(base + layout.keys[1]);
    update.positions = (void *)(base + layout.positions[0]);
    update.spare_positions = (void *)(base + layout.positions[1]);
    update.sort_scratch = base + layout.sort;
    return vxd_queue_push(queue, update_job, &update, sizeof update, err);
}
