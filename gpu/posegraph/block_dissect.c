// SPDX-License-Identifier: Apache-2.0
/* Nested dissection by levels. A breadth-first search from a node at the border of a part puts its
 * nodes into levels, of which only neighbouring ones have pairs; so a level in the middle separates
 * those before it from those behind it. Parts are halved a few times; inside of them, and in each
 * separator, the order of minimum degree decides. A separator is eliminated after both parts that
 * it separates, which then fill nothing in each other and may be factored by different threads. */
#include <stdlib.h>
#include <string.h>

#include "gpu/posegraph/block_cholesky.h"

#define NONE UINT32_MAX
#define MOST_DEPTH 16
#define SEARCHES 4 /* for a node at the border */
/* Parts of at most so much of the graph are not divided: below, minimum degree does as well. */
#define PART_SHARE 3

struct part {
    uint32_t begin; /* in `nodes` */
    uint32_t end;
    uint32_t depth;
};

struct dissection {
    size_t *first; /* n + 2: index in `neighbours` */
    uint32_t *neighbours;
    uint32_t *nodes;   /* by part */
    uint32_t *part_of; /* the part that a node is in; separators are in none */
    uint32_t *level;
    uint32_t *queue;
    uint32_t *counts; /* by level */
    uint32_t *ends;   /* of components in `queue` */
    uint32_t n_ends;
    struct part *parts; /* that are still to be divided */
    size_t n_parts;
    uint32_t n_made; /* parts, to number them */
};

static void list_neighbours(struct dissection *d, uint32_t n,
                            const struct vxd_block_pair *pairs, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        d->first[pairs[i].a + 2]++;
        d->first[pairs[i].b + 2]++;
    }
    for (uint32_t i = 0; i < n; i++) {
        d->first[i + 2] += d->first[i + 1];
    }
    for (size_t i = 0; i < n_pairs; i++) {
        d->neighbours[d->first[pairs[i].a + 1]++] = pairs[i].b;
        d->neighbours[d->first[pairs[i].b + 1]++] = pairs[i].a;
    }
}

/* Levels from a node on, inside of its part. `queue` gets the nodes that are reached, by level, behind
 * its first n; returns how many it then has. */
static uint32_t spread(struct dissection *d, uint32_t from, uint32_t n)
{
    uint32_t number = d->part_of[from];
    uint32_t k = n;

    d->level[from] = 0;
    d->queue[n++] = from;
    for (; k < n; k++) {
        uint32_t i = d->queue[k];

        for (size_t m = d->first[i]; m < d->first[i + 1]; m++) {
            uint32_t j = d->neighbours[m];

            if (d->part_of[j] == number && d->level[j] == NONE) {
                d->level[j] = d->level[i] + 1;
                d->queue[n++] = j;
            }
        }
    }
    return n;
}

/* The same in a part without levels. */
static uint32_t search(struct dissection *d, const struct part *part, uint32_t from)
{
    for (uint32_t k = part->begin; k < part->end; k++) {
        d->level[d->nodes[k]] = NONE;
    }
    return spread(d, from, 0);
}

/* Makes nodes [begin, end) a part of their own, to be divided. */
static void add_part(struct dissection *d, uint32_t begin, uint32_t end, uint32_t depth)
{
    for (uint32_t k = begin; k < end; k++) {
        d->part_of[d->nodes[k]] = d->n_made;
    }
    d->n_made++;
    d->parts[d->n_parts++] = (struct part){begin, end, depth};
}

/* The level of few nodes that leaves at least a quarter of all on both sides; 0: there is none. */
static uint32_t choose_level(struct dissection *d, uint32_t n)
{
    uint32_t n_levels = d->level[d->queue[n - 1]] + 1;
    uint32_t before = 0;
    uint32_t best = 0;
    double least = n;

    memset(d->counts, 0, n_levels * sizeof *d->counts);
    for (uint32_t k = 0; k < n; k++) {
        d->counts[d->level[d->queue[k]]]++;
    }
    for (uint32_t l = 0; l < n_levels; l++) {
        uint32_t behind = n - before - d->counts[l];
        uint32_t apart = before > behind ? before - behind : behind - before;
        double cost = d->counts[l] * (1 + (double)apart / n);

        if (before >= n / 4 && behind >= n / 4 && cost < least) {
            least = cost;
            best = l;
        }
        before += d->counts[l];
    }
    return best;
}

/* Levels from a node at the border of a part. Returns how many nodes were reached. */
static uint32_t search_from_border(struct dissection *d, const struct part *part)
{
    uint32_t n = part->end - part->begin;
    uint32_t reached = search(d, part, d->nodes[part->begin]);
    uint32_t last = d->level[d->queue[reached - 1]];
    uint32_t longest = 0;

    for (int i = 1; i < SEARCHES && reached == n && (i == 1 || last > longest); i++) {
        longest = last;
        (void)search(d, part, d->queue[n - 1]);
        last = d->level[d->queue[n - 1]];
    }
    return reached;
}

/* Divides a part into its components, of which a search has reached the first. Those of at most
 * `least` nodes stay whole. */
static void divide_apart(struct dissection *d, const struct part *part, uint32_t reached,
                         uint32_t least)
{
    uint32_t *nodes = d->nodes + part->begin;
    uint32_t n = part->end - part->begin;
    uint32_t begin = 0;
    uint32_t i = 0;

    d->n_ends = 0;
    d->ends[d->n_ends++] = reached;
    while (reached < n) {
        while (d->level[nodes[i]] != NONE) {
            i++;
        }
        reached = spread(d, nodes[i], reached);
        d->ends[d->n_ends++] = reached;
    }
    memcpy(nodes, d->queue, n * sizeof *nodes);
    for (uint32_t k = 0; k < d->n_ends; begin = d->ends[k++]) {
        if (d->ends[k] - begin > least) {
            add_part(d, part->begin + begin, part->begin + d->ends[k], part->depth);
        }
    }
}

/* Whether a node has a neighbour in its part behind its level. */
static bool leads_behind(const struct dissection *d, uint32_t i, uint32_t number)
{
    bool leads = false;

    for (size_t m = d->first[i]; m < d->first[i + 1]; m++) {
        uint32_t j = d->neighbours[m];

        leads = leads || (d->part_of[j] == number && d->level[j] > d->level[i]);
    }
    return leads;
}

/* Divides a part by nodes of a level; those without a neighbour behind it stay before it. */
static void divide_at(struct dissection *d, const struct part *part, uint32_t middle,
                      uint32_t *depth_of)
{
    uint32_t n = part->end - part->begin;
    uint32_t *nodes = d->nodes + part->begin;
    uint32_t number = d->part_of[nodes[0]];
    uint32_t n_before = 0;
    uint32_t n_behind = 0;

    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = d->queue[k];

        if (d->level[i] == middle && leads_behind(d, i, number)) {
            depth_of[i] = part->depth;
        } else if (d->level[i] <= middle) {
            nodes[n_before++] = i;
        } else {
            nodes[n - ++n_behind] = i;
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        if (depth_of[d->queue[k]] != NONE) {
            d->part_of[d->queue[k]] = NONE;
        }
    }
    add_part(d, part->begin, part->begin + n_before, part->depth + 1);
    add_part(d, part->end - n_behind, part->end, part->depth + 1);
}

static void divide(struct dissection *d, const struct part *part, uint32_t least,
                   uint32_t *depth_of)
{
    uint32_t n = part->end - part->begin;
    uint32_t reached = search_from_border(d, part);
    uint32_t middle;

    if (reached < n) {
        divide_apart(d, part, reached, least);
        return;
    }
    middle = choose_level(d, n);
    if (middle > 0) {
        divide_at(d, part, middle, depth_of);
    }
}

static enum vxd_status reserve(struct dissection *d, uint32_t n, size_t n_pairs,
                               struct vxd_err *err)
{
    d->first = calloc((size_t)n + 3, sizeof *d->first);
    d->neighbours = malloc((2 * n_pairs + 1) * sizeof *d->neighbours);
    d->nodes = malloc(((size_t)n + 1) * sizeof *d->nodes);
    d->part_of = malloc(((size_t)n + 1) * sizeof *d->part_of);
    d->level = malloc(((size_t)n + 1) * sizeof *d->level);
    d->queue = malloc(((size_t)n + 1) * sizeof *d->queue);
    d->counts = malloc(((size_t)n + 1) * sizeof *d->counts);
    d->ends = malloc(((size_t)n + 1) * sizeof *d->ends);
    d->parts = malloc(((size_t)n + 2) * sizeof *d->parts);
    return d->first != NULL && d->neighbours != NULL && d->nodes != NULL &&
                   d->part_of != NULL && d->level != NULL && d->queue != NULL &&
                   d->counts != NULL && d->ends != NULL && d->parts != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "no memory to divide a graph of %u nodes", n);
}

enum vxd_status vxd_block_dissect(uint32_t n, const struct vxd_block_pair *pairs,
                                  size_t n_pairs, uint32_t *group, struct vxd_err *err)
{
    struct dissection d = {0};
    uint32_t least = n / PART_SHARE;
    enum vxd_status status;

    VXD_TRY(reserve(&d, n, n_pairs, err));
    list_neighbours(&d, n, pairs, n_pairs);
    for (uint32_t i = 0; i < n; i++) {
        d.nodes[i] = i;
        group[i] = NONE;
    }
    add_part(&d, 0, n, 0);
    while (d.n_parts > 0) {
        struct part part = d.parts[--d.n_parts];

        if (part.end - part.begin > least && part.end - part.begin > 1 &&
            part.depth < MOST_DEPTH) {
            divide(&d, &part, least, group);
        }
    }
    /* From depths to groups: the first cut comes last. */
    for (uint32_t i = 0; i < n; i++) {
        group[i] = group[i] == NONE ? 0 : MOST_DEPTH - group[i];
    }
out:
    free(d.parts);
    free(d.ends);
    free(d.counts);
    free(d.queue);
    free(d.level);
    free(d.part_of);
    free(d.nodes);
    free(d.neighbours);
    free(d.first);
    return status;
}
