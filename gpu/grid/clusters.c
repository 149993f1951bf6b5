// SPDX-License-Identifier: Apache-2.0
/* Clusters of marked cells, by a forest of disjoint sets. A marked cell is known by its rank, the
 * number of marks before it, which a sum a word of marks gives; so memory and time go with the
 * marks and not with the cells. The root of a set is its lowest rank, whatever the order.
 *
 * source  Galler and Fischer, An improved equivalence algorithm, 1964 */
#include <inttypes.h>
#include <stdlib.h>

#include "gpu/grid/grid_math.h"

struct vxd_clusters {
    struct vxd_context *context; /* whose budget of host memory it is of */
    struct vxd_buffer before_memory;
    struct vxd_buffer parents_memory;
    struct vxd_buffer list_memory;
    const uint32_t *marks;
    uint32_t n[3];
    uint32_t n_words;
    uint32_t next; /* the first word that is not joined yet */
    uint32_t n_marks;
    uint32_t *before;  /* marks before each word */
    uint32_t *parents; /* by rank; later the number of the cluster + 1, 0 = dropped */
    struct vxd_cluster *list;
    size_t n_cells; /* of the clusters in the list */
};

void vxd_clusters_destroy(struct vxd_clusters *clusters)
{
    if (clusters != NULL) {
        vxd_host_free(clusters->context, &clusters->before_memory);
        vxd_host_free(clusters->context, &clusters->parents_memory);
        vxd_host_free(clusters->context, &clusters->list_memory);
        free(clusters);
    }
}

enum vxd_status vxd_clusters_create(struct vxd_context *context, const uint32_t *marks,
                                    const uint32_t n[3], struct vxd_clusters **out,
                                    struct vxd_err *err)
{
    struct vxd_clusters *c = calloc(1, sizeof *c);
    uint64_t n_marks = 0;
    enum vxd_status status;

    *out = NULL;
    if (c == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for clusters");
    }
    c->context = context;
    c->marks = marks;
    memcpy(c->n, n, sizeof c->n);
    c->n_words = (uint32_t)(((uint64_t)n[0] * n[1] * n[2] + 31) / 32);
    VXD_TRY(vxd_host_alloc(context, ((size_t)c->n_words + 1) * sizeof *c->before,
                           &c->before_memory, err));
    c->before = c->before_memory.ptr;
    for (uint32_t w = 0; w < c->n_words; w++) {
        c->before[w] = (uint32_t)n_marks;
        n_marks += (uint64_t)vxd_svdag_popc(marks[w]);
    }
    if (n_marks > VXD_GRID_MAX_FRONTIER_CELLS) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "box",
                         "%" PRIu64 " cells of frontiers, at most %zu are joined; take a "
                         "smaller box",
                         n_marks, VXD_GRID_MAX_FRONTIER_CELLS));
    }
    c->n_marks = (uint32_t)n_marks;
    VXD_TRY(vxd_host_alloc(context, ((size_t)n_marks + 1) * sizeof *c->parents,
                           &c->parents_memory, err));
    c->parents = c->parents_memory.ptr;
    *out = c;
    c = NULL;
out:
    vxd_clusters_destroy(c);
    return status;
}

static bool is_marked(const struct vxd_clusters *c, uint32_t cell)
{
    return (c->marks[cell / 32] >> cell % 32 & 1) != 0;
}

static uint32_t rank_of(const struct vxd_clusters *c, uint32_t cell)
{
    return c->before[cell / 32] +
           (uint32_t)vxd_svdag_popc(c->marks[cell / 32] & ((1u << cell % 32) - 1));
}

static uint32_t find_root(uint32_t *parents, uint32_t i)
{
    while (parents[i] != i) {
        parents[i] = parents[parents[i]];
        i = parents[i];
    }
    return i;
}

/* Joins a cell with its marked neighbours that come before it. */
static void join(struct vxd_clusters *c, uint32_t cell, uint32_t rank)
{
    uint32_t z = cell % c->n[2];
    uint32_t y = cell / c->n[2] % c->n[1];
    uint32_t x = cell / c->n[2] / c->n[1];
    uint32_t root = rank;

    c->parents[rank] = rank;
    for (int i = 0; i < 13; i++) { /* -1 -1 -1 to 0 0 -1, z fastest */
        int dx = i / 9 - 1;
        int dy = i / 3 % 3 - 1;
        int dz = i % 3 - 1;
        uint32_t other;
        uint32_t found;

        /* Below 0 is above all. */
        if (x + (uint32_t)dx >= c->n[0] || y + (uint32_t)dy >= c->n[1] ||
            z + (uint32_t)dz >= c->n[2]) {
            continue;
        }
        other = ((x + (uint32_t)dx) * c->n[1] + y + (uint32_t)dy) * c->n[2] + z +
                (uint32_t)dz;
        if (!is_marked(c, other)) {
            continue;
        }
        found = find_root(c->parents, rank_of(c, other));
        if (found < root) {
            c->parents[root] = found;
            root = found;
        } else {
            c->parents[found] = root;
        }
    }
}

bool vxd_clusters_step(struct vxd_clusters *c, size_t n_words)
{
    uint32_t end =
        c->n_words - c->next < n_words ? c->n_words : c->next + (uint32_t)n_words;

    for (; c->next < end; c->next++) {
        uint32_t rank = c->before[c->next];

        for (uint32_t bits = c->marks[c->next]; bits != 0; bits &= bits - 1) {
            join(c, c->next * 32 + (uint32_t)vxd_svdag_low_bit(bits), rank++);
        }
    }
    return c->next == c->n_words;
}

static int compare(const void *a, const void *b)
{
    const struct vxd_cluster *p = a;
    const struct vxd_cluster *q = b;

    if (p->n_cells != q->n_cells) {
        return p->n_cells > q->n_cells ? -1 : 1;
    }
    return p->first < q->first ? -1 : p->first > q->first;
}

/* Numbers the sets by their lowest cell: parents become numbers. Returns how many there are. */
static uint32_t number_sets(struct vxd_clusters *c)
{
    uint32_t n_sets = 0;

    /* A parent is not above its child, so it is a number already. */
    for (uint32_t i = 0; i < c->n_marks; i++) {
        c->parents[i] = c->parents[i] == i ? n_sets++ : c->parents[c->parents[i]];
    }
    return n_sets;
}

/* Counts the cells of each set, and then makes counts places in the list, plus 1; 0 = dropped.
 * Returns how many are kept. */
static size_t keep_sets(struct vxd_clusters *c, uint64_t min_cells, uint32_t *counts,
                        uint32_t n_sets)
{
    size_t n_kept = 0;

    memset(counts, 0, (size_t)n_sets * sizeof *counts);
    for (uint32_t i = 0; i < c->n_marks; i++) {
        counts[c->parents[i]]++;
    }
    for (uint32_t i = 0; i < n_sets; i++) {
        if (counts[i] >= min_cells) {
            c->n_cells += counts[i];
            counts[i] = (uint32_t)++n_kept;
        } else {
            counts[i] = 0;
        }
    }
    return n_kept;
}

/* Adds every cell to its set: sums in `centre`, which are whole numbers below 2^53. */
static void sum_sets(struct vxd_clusters *c, const uint32_t *places)
{
    for (uint32_t w = 0; w < c->n_words; w++) {
        uint32_t rank = c->before[w];

        for (uint32_t bits = c->marks[w]; bits != 0; bits &= bits - 1) {
            uint32_t cell = w * 32 + (uint32_t)vxd_svdag_low_bit(bits);
            uint32_t place = places[c->parents[rank++]];
            struct vxd_cluster *set;

            if (place == 0) {
                continue;
            }
            set = &c->list[place - 1];
            set->first = set->n_cells++ == 0 ? cell : set->first;
            for (int axis = 2; axis >= 0; axis--) {
                set->centre[axis] += (double)(cell % c->n[axis]);
                cell /= c->n[axis];
            }
        }
    }
}

/* Sorts the list; places and parents follow. */
static void sort_sets(struct vxd_clusters *c, size_t n_kept, uint32_t *places)
{
    qsort(c->list, n_kept, sizeof *c->list, compare);
    for (size_t i = 0; i < n_kept; i++) {
        struct vxd_cluster *set = &c->list[i];

        for (int axis = 0; axis < 3; axis++) {
            set->centre[axis] /= (double)set->n_cells;
        }
        places[c->parents[rank_of(c, (uint32_t)set->first)]] = (uint32_t)i + 1;
    }
    for (uint32_t i = 0; i < c->n_marks; i++) {
        c->parents[i] = places[c->parents[i]];
    }
}

enum vxd_status vxd_clusters_finish(struct vxd_clusters *c, uint64_t min_cells,
                                    const struct vxd_cluster **list, size_t *n,
                                    struct vxd_err *err)
{
    uint32_t n_sets = number_sets(c);
    struct vxd_buffer places = {0};
    size_t n_kept;
    size_t n_bytes;
    enum vxd_status status;

    VXD_TRY(vxd_host_alloc(c->context, ((size_t)n_sets + 1) * sizeof(uint32_t), &places,
                           err));
    n_kept = keep_sets(c, min_cells, places.ptr, n_sets);
    if (n_kept > VXD_GRID_MAX_CLUSTERS) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "min_cells",
                         "is %" PRIu64 ", and %zu frontiers have as many cells; at most "
                         "%zu are listed: ask for larger ones, or take a smaller box",
                         min_cells, n_kept, VXD_GRID_MAX_CLUSTERS));
    }
    n_bytes = (n_kept + 1) * sizeof *c->list;
    VXD_TRY(vxd_host_alloc(c->context, n_bytes, &c->list_memory, err));
    c->list = c->list_memory.ptr;
    memset(c->list, 0, n_bytes);
    sum_sets(c, places.ptr);
    sort_sets(c, n_kept, places.ptr);
    *list = c->list;
    *n = n_kept;
out:
    vxd_host_free(c->context, &places);
    return status;
}

size_t vxd_clusters_n_cells(const struct vxd_clusters *clusters)
{
    return clusters->n_cells;
}

void vxd_clusters_cells(const struct vxd_clusters *c, uint32_t *cells,
                        uint32_t *of_cluster)
{
    size_t n = 0;

    for (uint32_t w = 0; w < c->n_words; w++) {
        uint32_t rank = c->before[w];

        for (uint32_t bits = c->marks[w]; bits != 0; bits &= bits - 1) {
            uint32_t number = c->parents[rank++];

            if (number != 0) {
                cells[n] = w * 32 + (uint32_t)vxd_svdag_low_bit(bits);
                of_cluster[n++] = number - 1;
            }
        }
    }
}
