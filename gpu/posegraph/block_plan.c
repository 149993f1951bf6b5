// SPDX-License-Identifier: Apache-2.0
/* The structure of a factor: elimination tree, rows of each column, supernodes (small ones merged
 * into their parents, which costs some zeros and saves many short loops), and where everything goes
 * when fronts are assembled. */
#include <stdlib.h>
#include <string.h>

#include "gpu/posegraph/block_cholesky.h"

#define NONE UINT32_MAX

/* A supernode of so few columns is merged into its parent although that adds zeros. */
#define SMALL_COLUMNS 4
#define MOST_ZEROS 0.25
/* Fewer nodes are ordered by minimum degree alone. */
#define LEAST_DISSECTED 100
/* Subtrees of at most so much of all work are factored by one thread each. */
#define SUBTREE_SHARE 0.03

/* What is needed while a plan is made. */
struct making {
    struct vxd_block_plan *plan;
    const struct vxd_block_pair *pairs;
    size_t *first;        /* n + 2: index in `neighbours` of those of each column */
    uint32_t *neighbours; /* n_pairs */
    uint32_t *parent;     /* of each column in the elimination tree */
    uint32_t *mark;       /* by column */
    uint32_t *spare;      /* 4 n */
    /* supernodes: first column, and rows below as lists of their own */
    uint32_t *first_column;
    uint32_t **below;
    uint32_t *n_below;
    double *zeros; /* blocks that are there only since supernodes were merged */
    uint32_t n_supernodes;
    uint32_t
        *children;     /* by column: the first supernode whose first row below is there */
    uint32_t *sibling; /* by supernode: the next one of these */
};

static enum vxd_status no_memory(const struct vxd_block_plan *plan, struct vxd_err *err)
{
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "no memory to plan the factor of %u nodes", plan->n);
}

/* --- elimination tree ----------------------------------------------------------------------- */

/* Lists for each column its earlier, or its later neighbours; pairs that are named twice stay
 * twice. */
static void list_neighbours(struct making *m, bool later)
{
    const struct vxd_block_plan *plan = m->plan;

    memset(m->first, 0, ((size_t)plan->n + 2) * sizeof *m->first);
    for (int fill = 0; fill < 2; fill++) {
        for (size_t i = 0; i < plan->n_pairs; i++) {
            uint32_t a = plan->position[m->pairs[i].a];
            uint32_t b = plan->position[m->pairs[i].b];
            uint32_t high = a > b ? a : b;
            uint32_t low = a > b ? b : a;

            if (fill == 0) {
                m->first[(later ? low : high) + 2]++;
            } else {
                m->neighbours[m->first[(later ? low : high) + 1]++] = later ? high : low;
            }
        }
        for (uint32_t i = 0; i < plan->n && fill == 0; i++) {
            m->first[i + 2] += m->first[i + 1];
        }
    }
}

/* Liu's algorithm with compressed paths. */
static void find_tree(struct making *m)
{
    uint32_t *ancestor = m->spare;

    for (uint32_t j = 0; j < m->plan->n; j++) {
        m->parent[j] = NONE;
        ancestor[j] = NONE;
        for (size_t k = m->first[j]; k < m->first[j + 1]; k++) {
            uint32_t i = m->neighbours[k];

            while (i != NONE && i < j) {
                uint32_t next = ancestor[i];

                ancestor[i] = j;
                if (next == NONE) {
                    m->parent[i] = j;
                }
                i = next;
            }
        }
    }
}

/* Renumbers the columns so that each subtree's are contiguous and children come first. */
static void postorder(struct making *m)
{
    struct vxd_block_plan *plan = m->plan;
    uint32_t *head = m->spare + plan->n;
    uint32_t *next = m->spare + 2 * (size_t)plan->n;
    uint32_t *stack = m->spare + 3 * (size_t)plan->n;
    uint32_t n = 0;

    memset(head, 0xff, plan->n * sizeof *head);
    for (uint32_t j = plan->n; j-- > 0;) {
        if (m->parent[j] != NONE) {
            next[j] = head[m->parent[j]];
            head[m->parent[j]] = j;
        }
    }
    for (uint32_t root = 0; root < plan->n; root++) {
        uint32_t n_stack = 0;

        if (m->parent[root] != NONE) {
            continue;
        }
        stack[n_stack++] = root;
        while (n_stack > 0) {
            uint32_t j = stack[n_stack - 1];

            if (head[j] != NONE) {
                stack[n_stack++] = head[j];
                head[j] = next[head[j]];
            } else {
                n_stack--;
                m->spare[n++] = plan->order[j];
            }
        }
    }
    memcpy(plan->order, m->spare, plan->n * sizeof *plan->order);
    for (uint32_t j = 0; j < plan->n; j++) {
        plan->position[plan->order[j]] = j;
    }
}

/* --- supernodes ------------------------------------------------------------------------------ */

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Merges the last supernode but one into the last, its parent, where that costs few zeros.
 * in      end  the column after the last supernode */
static bool merge_last(struct making *m, uint32_t end)
{
    uint32_t s = m->n_supernodes - 1;
    uint32_t child = s - 1;
    uint32_t n_parent = end - m->first_column[s];
    uint32_t n_child = m->first_column[s] - m->first_column[child];
    double n_rows = n_parent + m->n_below[s];
    double zeros = n_child * (n_rows - m->n_below[child]) + m->zeros[s] + m->zeros[child];
    double n = n_parent + n_child;
    double size = n * (n_rows + n_child);

    if (m->n_below[child] == 0 || m->below[child][0] >= end) {
        return false; /* no child of it */
    }
    if (zeros > 0 && (n > SMALL_COLUMNS || zeros > MOST_ZEROS * size) &&
        zeros > 0.05 * size) {
        return false;
    }
    free(m->below[child]);
    m->below[child] = m->below[s];
    m->n_below[child] = m->n_below[s];
    m->zeros[child] = zeros;
    m->below[s] = NULL;
    m->n_supernodes--;
    return true;
}

/* Adds a row to those of column j that are collected in `spare`, once. */
static void add_row(struct making *m, uint32_t j, uint32_t row, uint32_t *n)
{
    if (m->mark[row] != j) {
        m->mark[row] = j;
        m->spare[(*n)++] = row;
    }
}

/* Makes column j a supernode: its rows are its later neighbours, and those of the supernodes whose
 * first row it is. */
static enum vxd_status add_column(struct making *m, uint32_t j, struct vxd_err *err)
{
    uint32_t n = 0;
    uint32_t *rows;

    m->mark[j] = j;
    for (size_t k = m->first[j]; k < m->first[j + 1]; k++) {
        add_row(m, j, m->neighbours[k], &n);
    }
    for (uint32_t s = m->children[j]; s != NONE; s = m->sibling[s]) {
        for (uint32_t k = 0; k < m->n_below[s]; k++) {
            add_row(m, j, m->below[s][k], &n);
        }
    }
    qsort(m->spare, n, sizeof *m->spare, compare_u32);
    rows = malloc(((size_t)n + 1) * sizeof *rows);
    if (rows == NULL) {
        return no_memory(m->plan, err);
    }
    memcpy(rows, m->spare, n * sizeof *rows);
    m->first_column[m->n_supernodes] = j;
    m->below[m->n_supernodes] = rows;
    m->n_below[m->n_supernodes] = n;
    m->zeros[m->n_supernodes] = 0;
    m->n_supernodes++;
    return VXD_OK;
}

static enum vxd_status find_supernodes(struct making *m, struct vxd_err *err)
{
    uint32_t n = m->plan->n;
    enum vxd_status status = VXD_OK;

    memset(m->mark, 0xff, n * sizeof *m->mark);
    memset(m->children, 0xff, n * sizeof *m->children);
    for (uint32_t j = 0; j < n; j++) {
        uint32_t top;

        VXD_TRY(add_column(m, j, err));
        while (m->n_supernodes > 1 && merge_last(m, j + 1)) {
        }
        top = m->n_supernodes - 1;
        if (m->n_below[top] > 0) {
            uint32_t row = m->below[top][0];

            m->sibling[top] = m->children[row];
            m->children[row] = top;
        }
    }
out:
    return status;
}

/* --- the plan ---------------------------------------------------------------------------------- */

/* Copies the supernodes with all of their rows. */
static enum vxd_status store_supernodes(struct making *m, struct vxd_err *err)
{
    struct vxd_block_plan *plan = m->plan;
    size_t n_rows = 0;
    size_t at = 0;

    for (uint32_t s = 0; s < m->n_supernodes; s++) {
        uint32_t end = s + 1 < m->n_supernodes ? m->first_column[s + 1] : plan->n;

        n_rows += end - m->first_column[s] + m->n_below[s];
    }
    plan->n_supernodes = m->n_supernodes;
    plan->supernodes = calloc((size_t)m->n_supernodes + 1, sizeof *plan->supernodes);
    plan->rows = malloc((n_rows + 1) * sizeof *plan->rows);
    plan->positions = malloc((n_rows + 1) * sizeof *plan->positions);
    plan->supernode = malloc(((size_t)plan->n + 1) * sizeof *plan->supernode);
    plan->n_bytes =
        2 * n_rows * sizeof *plan->rows + m->n_supernodes * sizeof *plan->supernodes;
    if (plan->supernodes == NULL || plan->rows == NULL || plan->positions == NULL ||
        plan->supernode == NULL) {
        return no_memory(plan, err);
    }
    for (uint32_t s = 0; s < m->n_supernodes; s++) {
        struct vxd_supernode *to = &plan->supernodes[s];
        uint32_t end = s + 1 < m->n_supernodes ? m->first_column[s + 1] : plan->n;

        to->first = m->first_column[s];
        to->n_columns = end - to->first;
        to->n_rows = to->n_columns + m->n_below[s];
        to->rows = at;
        to->to_parent = at;
        to->panel = plan->n_panel_blocks;
        to->work = (double)to->n_columns * to->n_rows * to->n_rows;
        plan->work += to->work;
        plan->n_panel_blocks += (size_t)to->n_columns * to->n_rows;
        for (uint32_t j = to->first; j < end; j++) {
            plan->supernode[j] = s;
            plan->rows[at++] = j;
        }
        memcpy(plan->rows + at, m->below[s], m->n_below[s] * sizeof *plan->rows);
        at += m->n_below[s];
    }
    return VXD_OK;
}

/* The place of a row in a supernode's rows, which have it. */
static uint32_t find_row(const struct vxd_block_plan *plan, uint32_t s, uint32_t row)
{
    const struct vxd_supernode *in = &plan->supernodes[s];
    const uint32_t *rows = plan->rows + in->rows;
    uint32_t low = 0;
    uint32_t high = in->n_rows - 1;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (rows[middle] < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Links supernodes with their parents, and says where their rows go there. */
static void link_parents(struct vxd_block_plan *plan)
{
    for (uint32_t s = 0; s < plan->n_supernodes; s++) {
        plan->supernodes[s].first_leaf = s;
    }
    for (uint32_t s = 0; s < plan->n_supernodes; s++) {
        struct vxd_supernode *node = &plan->supernodes[s];
        struct vxd_supernode *parent;
        uint32_t at = 0;

        node->parent = NONE;
        if (node->n_rows == node->n_columns) {
            continue;
        }
        node->parent = plan->supernode[plan->rows[node->rows + node->n_columns]];
        parent = &plan->supernodes[node->parent];
        if (node->first_leaf < parent->first_leaf) {
            parent->first_leaf = node->first_leaf;
        }
        for (uint32_t k = node->n_columns; k < node->n_rows; k++) {
            while (plan->rows[parent->rows + at] != plan->rows[node->rows + k]) {
                at++;
            }
            plan->positions[node->to_parent + k - node->n_columns] = at;
        }
    }
}

/* Gives each pair to the supernode of its earlier node. */
static enum vxd_status assign_pairs(struct making *m, struct vxd_err *err)
{
    struct vxd_block_plan *plan = m->plan;

    plan->pairs_of = malloc((plan->n_pairs + 1) * sizeof *plan->pairs_of);
    plan->pair_row = malloc((plan->n_pairs + 1) * sizeof *plan->pair_row);
    plan->n_bytes += 2 * plan->n_pairs * sizeof *plan->pairs_of;
    if (plan->pairs_of == NULL || plan->pair_row == NULL) {
        return no_memory(plan, err);
    }
    memset(m->first, 0, ((size_t)plan->n + 2) * sizeof *m->first);
    for (size_t i = 0; i < plan->n_pairs; i++) {
        uint32_t a = plan->position[m->pairs[i].a];
        uint32_t b = plan->position[m->pairs[i].b];
        uint32_t s = plan->supernode[a < b ? a : b];

        plan->pair_row[i] = find_row(plan, s, a < b ? b : a);
        m->first[s + 2]++;
    }
    for (uint32_t s = 0; s < plan->n_supernodes; s++) {
        m->first[s + 2] += m->first[s + 1];
        plan->supernodes[s].first_pair = m->first[s + 1];
    }
    plan->supernodes[plan->n_supernodes].first_pair = plan->n_pairs;
    for (size_t i = 0; i < plan->n_pairs; i++) {
        uint32_t a = plan->position[m->pairs[i].a];
        uint32_t b = plan->position[m->pairs[i].b];
        uint32_t s = plan->supernode[a < b ? a : b];

        plan->pairs_of[m->first[s + 1]++] = (uint32_t)i;
    }
    return VXD_OK;
}

/* Blocks of a supernode's update. */
static size_t update_blocks(const struct vxd_block_plan *plan, uint32_t s)
{
    size_t n = plan->supernodes[s].n_rows - plan->supernodes[s].n_columns;

    return n * n;
}

/* Follows a stack of updates over one supernode, whose children's are on it unless they lie on
 * stacks of their own. */
static void follow_stack(const struct vxd_block_plan *plan, uint32_t s,
                         const bool *is_apart, size_t *height, size_t *most)
{
    size_t children = 0;

    for (uint32_t c = s; c-- > plan->supernodes[s].first_leaf;
         c = plan->supernodes[c].first_leaf) {
        children += is_apart[c] ? 0 : update_blocks(plan, c);
    }
    *height += update_blocks(plan, s);
    *most = *height > *most ? *height : *most;
    *height -= children;
}

/* Chooses the subtrees that one thread each factors, and sizes all stacks.
 * in      below     n_supernodes, zero
 *         is_apart  likewise: roots of those subtrees */
static void choose_subtrees(struct vxd_block_plan *plan, double *below, bool *is_apart)
{
    double most_work = SUBTREE_SHARE * plan->work;
    size_t height = 0;
    size_t most = 0;

    for (uint32_t s = 0; s < plan->n_supernodes; s++) {
        below[s] += plan->supernodes[s].work;
        if (plan->supernodes[s].parent != NONE) {
            below[plan->supernodes[s].parent] += below[s];
        }
    }
    for (uint32_t s = 0; s < plan->n_supernodes; s++) {
        uint32_t parent = plan->supernodes[s].parent;
        struct vxd_subtree *tree = &plan->subtrees[plan->n_subtrees];

        if (below[s] > most_work || (parent != NONE && below[parent] <= most_work)) {
            continue;
        }
        *tree = (struct vxd_subtree){.first = plan->supernodes[s].first_leaf,
                                     .last = s,
                                     .stack_offset = plan->stack_blocks};
        height = 0;
        for (uint32_t i = tree->first; i <= s; i++) {
            follow_stack(plan, i, is_apart, &height, &tree->stack);
        }
        /* Solutions need two numbers where fronts of single numbers need but one. */
        tree->stack = tree->stack > 2 ? tree->stack : 2;
        is_apart[s] = true;
        plan->stack_blocks += tree->stack;
        plan->n_subtrees++;
    }
    height = 0;
    for (uint32_t s = 0, t = 0; s < plan->n_supernodes; s++) {
        if (t < plan->n_subtrees && plan->subtrees[t].first == s) {
            s = plan->subtrees[t++].last;
        } else {
            follow_stack(plan, s, is_apart, &height, &most);
        }
    }
    plan->top_offset = plan->stack_blocks;
    plan->stack_blocks += most;
}

static enum vxd_status divide(struct vxd_block_plan *plan, struct vxd_err *err)
{
    double *below = calloc((size_t)plan->n_supernodes + 1, sizeof *below);

    plan->is_apart = calloc((size_t)plan->n_supernodes + 1, sizeof *plan->is_apart);
    plan->subtrees = calloc((size_t)plan->n_supernodes + 1, sizeof *plan->subtrees);
    if (below == NULL || plan->subtrees == NULL || plan->is_apart == NULL) {
        free(below);
        return no_memory(plan, err);
    }
    choose_subtrees(plan, below, plan->is_apart);
    free(below);
    return VXD_OK;
}

static enum vxd_status order(struct making *m, bool is_dissected, struct vxd_err *err)
{
    struct vxd_block_plan *plan = m->plan;
    uint32_t *group = is_dissected ? m->mark : NULL;
    enum vxd_status status;

    if (is_dissected) {
        VXD_TRY(vxd_block_dissect(plan->n, m->pairs, plan->n_pairs, group, err));
    }
    VXD_TRY(vxd_block_order(plan->n, m->pairs, plan->n_pairs, group, plan->order, err));
    for (uint32_t j = 0; j < plan->n; j++) {
        plan->position[plan->order[j]] = j;
    }
out:
    return status;
}

static enum vxd_status make(struct making *m, bool is_dissected, struct vxd_err *err)
{
    struct vxd_block_plan *plan = m->plan;
    size_t n = plan->n;
    enum vxd_status status;

    m->first = malloc((n + 2) * sizeof *m->first);
    m->neighbours = malloc((plan->n_pairs + 1) * sizeof *m->neighbours);
    m->parent = malloc((n + 1) * sizeof *m->parent);
    m->mark = malloc((n + 1) * sizeof *m->mark);
    m->spare = malloc((4 * n + 1) * sizeof *m->spare);
    m->first_column = malloc((n + 1) * sizeof *m->first_column);
    m->below = calloc(n + 1, sizeof *m->below);
    m->n_below = malloc((n + 1) * sizeof *m->n_below);
    m->zeros = malloc((n + 1) * sizeof *m->zeros);
    m->children = malloc((n + 1) * sizeof *m->children);
    m->sibling = malloc((n + 1) * sizeof *m->sibling);
    if (m->first == NULL || m->neighbours == NULL || m->parent == NULL ||
        m->mark == NULL || m->spare == NULL || m->first_column == NULL ||
        m->below == NULL || m->n_below == NULL || m->zeros == NULL ||
        m->children == NULL || m->sibling == NULL) {
        return no_memory(plan, err);
    }
    VXD_TRY(order(m, is_dissected, err));
    list_neighbours(m, false);
    find_tree(m);
    postorder(m);
    list_neighbours(m, true);
    VXD_TRY(find_supernodes(m, err));
    VXD_TRY(store_supernodes(m, err));
    link_parents(plan);
    VXD_TRY(assign_pairs(m, err));
    VXD_TRY(divide(plan, err));
out:
    return status;
}

static enum vxd_status make_plan(uint32_t n, const struct vxd_block_pair *pairs,
                                 size_t n_pairs, bool is_dissected,
                                 struct vxd_block_plan **out, struct vxd_err *err)
{
    struct vxd_block_plan *plan = calloc(1, sizeof *plan);
    struct making m = {.plan = plan, .pairs = pairs};
    enum vxd_status status;

    *out = NULL;
    if (plan == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a plan");
    }
    plan->n = n;
    plan->n_pairs = n_pairs;
    plan->order = malloc(((size_t)n + 1) * sizeof *plan->order);
    plan->position = malloc(((size_t)n + 1) * sizeof *plan->position);
    status = plan->order != NULL && plan->position != NULL ? make(&m, is_dissected, err)
                                                           : no_memory(plan, err);
    for (uint32_t s = 0; m.below != NULL && s < n; s++) {
        free(m.below[s]);
    }
    free(m.sibling);
    free(m.children);
    free(m.zeros);
    free(m.n_below);
    free(m.below);
    free(m.first_column);
    free(m.spare);
    free(m.mark);
    free(m.parent);
    free(m.neighbours);
    free(m.first);
    if (status != VXD_OK) {
        vxd_block_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return VXD_OK;
}

/* Both orders' plans, made at the same time. */
struct choice {
    uint32_t n;
    const struct vxd_block_pair *pairs;
    size_t n_pairs;
    struct vxd_block_plan *plans[2];
    enum vxd_status statuses[2];
    struct vxd_err errors[2];
};

static void make_plans(void *args, size_t begin, size_t end)
{
    struct choice *choice = args;

    for (size_t i = begin; i < end; i++) {
        choice->statuses[i] = make_plan(choice->n, choice->pairs, choice->n_pairs, i == 1,
                                        &choice->plans[i], &choice->errors[i]);
    }
}

enum vxd_status vxd_block_plan_create(struct vxd_pool *pool, uint32_t n,
                                      const struct vxd_block_pair *pairs, size_t n_pairs,
                                      size_t max_blocks, struct vxd_block_plan **out,
                                      struct vxd_err *err)
{
    struct choice choice = {.n = n, .pairs = pairs, .n_pairs = n_pairs};
    size_t n_plans = n < LEAST_DISSECTED ? 1 : 2;
    size_t best = 0;
    size_t n_blocks;
    enum vxd_status status = VXD_OK;

    *out = NULL;
    vxd_parallel_for(pool, n_plans, 1, make_plans, &choice);
    for (size_t i = 0; i < n_plans; i++) {
        if (choice.statuses[i] != VXD_OK) {
            *err = choice.errors[i];
            status = choice.statuses[i];
            goto out;
        }
    }
    best = n_plans == 2 && choice.plans[1]->work < choice.plans[0]->work ? 1 : 0;
    n_blocks = choice.plans[best]->n_panel_blocks + choice.plans[best]->stack_blocks;
    if (max_blocks > 0 && n_blocks > max_blocks) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                         "the factor of %u poses and %zu edges has %zu blocks, and the "
                         "budget is %zu",
                         n, n_pairs, n_blocks, max_blocks));
    }
    *out = choice.plans[best];
    choice.plans[best] = NULL;
out:
    vxd_block_plan_destroy(choice.plans[0]);
    vxd_block_plan_destroy(choice.plans[1]);
    return status;
}

void vxd_block_plan_destroy(struct vxd_block_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    free(plan->is_apart);
    free(plan->subtrees);
    free(plan->supernode);
    free(plan->pair_row);
    free(plan->pairs_of);
    free(plan->positions);
    free(plan->rows);
    free(plan->supernodes);
    free(plan->position);
    free(plan->order);
    free(plan);
}
