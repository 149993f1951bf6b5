// SPDX-License-Identifier: Apache-2.0
/* Approximate minimum degree on the quotient graph. An eliminated node becomes an element, which
 * stands for the clique of its neighbours. A node has a list of its elements and one of the
 * neighbours that no element covers; neither gets longer than its neighbours were at first, since
 * each pivot takes at least one entry from the lists of a node that it becomes an element of. */
#include <stdlib.h>
#include <string.h>

#include "gpu/posegraph/block_cholesky.h"

#define NONE UINT32_MAX

struct node {
    size_t list; /* index of its neighbours in `lists`, and elements in `of_nodes` */
    uint32_t n_elements;
    uint32_t n_neighbours;
    uint32_t degree; /* an upper bound */
    uint32_t next;   /* in the list of its degree */
    uint32_t previous;
    bool is_eliminated;
};

struct element {
    size_t nodes; /* index in the pool */
    uint32_t n;   /* in the pool, with those that are eliminated meanwhile */
    uint32_t n_left;
    uint32_t mark; /* the pivot for which n_outside counts, plus 1 */
    uint32_t n_outside;
    bool is_alive;
};

struct ordering {
    uint32_t n;
    struct node *nodes;
    uint32_t *lists;
    uint32_t *of_nodes;       /* elements */
    struct element *elements; /* by the node that was eliminated */
    uint32_t *pool;
    size_t n_pool;
    size_t pool_capacity;
    uint32_t *heads; /* of lists by degree */
    uint32_t least;  /* no node has a smaller degree */
    uint32_t *seen;  /* by node: the pivot whose clique it is in, plus 1 */
    uint32_t *order;
    uint32_t n_ordered;
    const uint32_t *group; /* of nodes; NULL: all are in one */
    uint32_t current;      /* nodes of later groups are in no list of their degree */
    uint32_t n_listed;
};

static bool is_later(const struct ordering *o, uint32_t i)
{
    return o->group != NULL && o->group[i] > o->current;
}

static void enlist(struct ordering *o, uint32_t i)
{
    struct node *node = &o->nodes[i];

    if (is_later(o, i)) {
        return;
    }
    o->n_listed++;
    node->previous = NONE;
    node->next = o->heads[node->degree];
    if (node->next != NONE) {
        o->nodes[node->next].previous = i;
    }
    o->heads[node->degree] = i;
    if (node->degree < o->least) {
        o->least = node->degree;
    }
}

static void unlist(struct ordering *o, uint32_t i)
{
    struct node *node = &o->nodes[i];

    if (is_later(o, i)) {
        return;
    }
    o->n_listed--;
    if (node->next != NONE) {
        o->nodes[node->next].previous = node->previous;
    }
    if (node->previous != NONE) {
        o->nodes[node->previous].next = node->next;
    } else {
        o->heads[node->degree] = node->next;
    }
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Makes the lists of neighbours, each pair once. */
static enum vxd_status build(struct ordering *o, const struct vxd_block_pair *pairs,
                             size_t n_pairs, struct vxd_err *err)
{
    uint64_t *both = malloc((2 * n_pairs + 1) * sizeof *both);
    size_t n = 0;

    o->lists = malloc((2 * n_pairs + 1) * sizeof *o->lists);
    o->of_nodes = malloc((2 * n_pairs + 1) * sizeof *o->of_nodes);
    if (both == NULL || o->lists == NULL || o->of_nodes == NULL) {
        free(both);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory to order a graph of %zu pairs", n_pairs);
    }
    for (size_t i = 0; i < n_pairs; i++) {
        both[2 * i] = (uint64_t)pairs[i].a << 32 | pairs[i].b;
        both[2 * i + 1] = (uint64_t)pairs[i].b << 32 | pairs[i].a;
    }
    qsort(both, 2 * n_pairs, sizeof *both, compare_u64);
    for (size_t i = 0; i < 2 * n_pairs; i++) {
        struct node *node = &o->nodes[both[i] >> 32];

        if (i > 0 && both[i] == both[i - 1]) {
            continue;
        }
        if (node->n_neighbours == 0) {
            node->list = n;
        }
        node->n_neighbours++;
        o->lists[n++] = (uint32_t)both[i];
    }
    free(both);
    for (uint32_t i = 0; i < o->n; i++) {
        o->heads[i] = NONE;
    }
    for (uint32_t i = o->n; i-- > 0;) { /* so that the lowest of equals comes first */
        o->nodes[i].degree = o->nodes[i].n_neighbours;
        enlist(o, i);
    }
    return VXD_OK;
}

static bool reserve(struct ordering *o, size_t n)
{
    size_t capacity = o->pool_capacity * 2 + n;
    uint32_t *pool;

    if (o->n_pool + n <= o->pool_capacity) {
        return true;
    }
    pool = realloc(o->pool, capacity * sizeof *pool);
    if (pool != NULL) {
        o->pool = pool;
        o->pool_capacity = capacity;
    }
    return pool != NULL;
}

static void add_to_element(struct ordering *o, uint32_t pivot, uint32_t j)
{
    struct element *element = &o->elements[pivot];

    if (!o->nodes[j].is_eliminated && o->seen[j] != pivot + 1) {
        o->seen[j] = pivot + 1;
        o->pool[element->nodes + element->n++] = j;
    }
}

/* Makes the element of a pivot: its neighbours and those of its elements, which it absorbs. */
static bool make_element(struct ordering *o, uint32_t pivot)
{
    const struct node *node = &o->nodes[pivot];
    const uint32_t *of_pivot = o->of_nodes + node->list;
    struct element *element = &o->elements[pivot];
    size_t most = node->n_neighbours;

    for (uint32_t k = 0; k < node->n_elements; k++) {
        most += o->elements[of_pivot[k]].n;
    }
    if (!reserve(o, most)) {
        return false;
    }
    *element = (struct element){.nodes = o->n_pool, .is_alive = true};
    o->seen[pivot] = pivot + 1;
    for (uint32_t k = 0; k < node->n_neighbours; k++) {
        add_to_element(o, pivot, o->lists[node->list + k]);
    }
    for (uint32_t k = 0; k < node->n_elements; k++) {
        struct element *from = &o->elements[of_pivot[k]];

        for (uint32_t m = 0; m < from->n && from->is_alive; m++) {
            add_to_element(o, pivot, o->pool[from->nodes + m]);
        }
        from->is_alive = false;
    }
    element->n_left = element->n;
    o->n_pool += element->n;
    return true;
}

/* Counts, for each element that touches the pivot's, its nodes outside of that. */
static void count_outside(struct ordering *o, uint32_t pivot)
{
    const struct element *element = &o->elements[pivot];

    for (uint32_t m = 0; m < element->n; m++) {
        const struct node *node = &o->nodes[o->pool[element->nodes + m]];

        for (uint32_t k = 0; k < node->n_elements; k++) {
            struct element *other = &o->elements[o->of_nodes[node->list + k]];

            if (!other->is_alive) {
                continue;
            }
            if (other->mark != pivot + 1) {
                other->mark = pivot + 1;
                other->n_outside = other->n_left;
            }
            other->n_outside--;
        }
    }
}

/* Replaces in a node's lists what the pivot's element covers by that element, and bounds the node's
 * degree anew. */
static void update_node(struct ordering *o, uint32_t i, uint32_t pivot)
{
    struct node *node = &o->nodes[i];
    uint32_t *elements = o->of_nodes + node->list;
    uint32_t *neighbours = o->lists + node->list;
    uint32_t n_elements = 0;
    uint32_t n_neighbours = 0;
    uint64_t degree = o->elements[pivot].n_left - 1;
    uint64_t most = (uint64_t)node->degree + degree;
    uint32_t n_free = o->n - o->n_ordered - 1;

    for (uint32_t k = 0; k < node->n_elements; k++) {
        struct element *other = &o->elements[elements[k]];

        if (other->is_alive && other->n_outside == 0) {
            other->is_alive = false; /* the pivot's has all of its nodes */
        }
        if (other->is_alive) {
            degree += other->n_outside;
            elements[n_elements++] = elements[k];
        }
    }
    elements[n_elements++] = pivot;
    for (uint32_t k = 0; k < node->n_neighbours; k++) {
        uint32_t j = neighbours[k];

        if (!o->nodes[j].is_eliminated && o->seen[j] != pivot + 1) {
            neighbours[n_neighbours++] = j;
        }
    }
    node->n_elements = n_elements;
    node->n_neighbours = n_neighbours;
    degree += n_neighbours;
    degree = degree < most ? degree : most;
    node->degree = (uint32_t)(degree < n_free ? degree : n_free);
}

static void eliminate(struct ordering *o, uint32_t i)
{
    o->nodes[i].is_eliminated = true;
    o->order[o->n_ordered++] = i;
}

/* Lists the nodes of the next group once those before it are eliminated. */
static void begin_group(struct ordering *o)
{
    o->current++;
    for (uint32_t i = o->n; i-- > 0;) {
        if (!o->nodes[i].is_eliminated && o->group[i] == o->current) {
            enlist(o, i);
        }
    }
}

static bool eliminate_next(struct ordering *o)
{
    struct element *element;
    uint32_t pivot;

    while (o->n_listed == 0) {
        begin_group(o);
    }
    while (o->heads[o->least] == NONE) {
        o->least++;
    }
    pivot = o->heads[o->least];
    unlist(o, pivot);
    eliminate(o, pivot);
    if (!make_element(o, pivot)) {
        return false;
    }
    element = &o->elements[pivot];
    count_outside(o, pivot);
    for (uint32_t m = 0; m < element->n; m++) {
        uint32_t i = o->pool[element->nodes + m];

        unlist(o, i);
        update_node(o, i, pivot);
    }
    /* Nodes of which nothing is left but the pivot's element fill nothing in. */
    for (uint32_t m = 0; m < element->n; m++) {
        uint32_t i = o->pool[element->nodes + m];
        const struct node *node = &o->nodes[i];

        if (node->n_elements == 1 && node->n_neighbours == 0) {
            eliminate(o, i);
            element->n_left--;
        }
    }
    for (uint32_t m = 0; m < element->n; m++) {
        uint32_t i = o->pool[element->nodes + m];

        if (!o->nodes[i].is_eliminated) {
            uint32_t n_free = o->n - o->n_ordered;

            o->nodes[i].degree =
                o->nodes[i].degree < n_free ? o->nodes[i].degree : n_free - 1;
            enlist(o, i);
        }
    }
    return true;
}

enum vxd_status vxd_block_order(uint32_t n, const struct vxd_block_pair *pairs,
                                size_t n_pairs, const uint32_t *group, uint32_t *order,
                                struct vxd_err *err)
{
    struct ordering o = {.n = n, .order = order, .least = n, .group = group};
    enum vxd_status status;

    o.nodes = calloc((size_t)n + 1, sizeof *o.nodes);
    o.elements = calloc((size_t)n + 1, sizeof *o.elements);
    o.heads = malloc(((size_t)n + 1) * sizeof *o.heads);
    o.seen = calloc((size_t)n + 1, sizeof *o.seen);
    if (o.nodes == NULL || o.elements == NULL || o.heads == NULL || o.seen == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "no memory to order a graph of %u nodes", n));
    }
    VXD_TRY(build(&o, pairs, n_pairs, err));
    while (o.n_ordered < n) {
        if (!eliminate_next(&o)) {
            VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                             "no memory to order a graph of %u nodes", n));
        }
    }
out:
    free(o.pool);
    free(o.seen);
    free(o.heads);
    free(o.elements);
    free(o.of_nodes);
    free(o.lists);
    free(o.nodes);
    return status;
}
