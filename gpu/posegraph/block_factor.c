// SPDX-License-Identifier: Apache-2.0
/* The factorization itself. The front of a supernode is its panel (in the factor) and its update (on
 * a stack). Subtrees are factored by one thread each; what is above them, one supernode after the
 * other, each by all threads. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/posegraph/block_cholesky.h"

/* Multiplications of blocks above which a front is divided among threads, and into what. */
#define DIVIDED_WORK 4000.0
#define DIVIDED_BLOCKS 4 /* columns of blocks */
#define DIVIDED_COLUMNS 24
#define DIVIDED_ROWS 64
#define STRIP_ROWS 48

struct run {
    struct vxd_block_factor *factor;
    const double *diagonal;
    const double *pairs;
    const struct vxd_block_pair *named;
    atomic_uint_fast32_t failed; /* column, lowest */
};

struct stack {
    double *base;
    size_t height; /* blocks */
};

/* --- assembly ---------------------------------------------------------------------------------- */

/* A front of n_rows columns of blocks: the panel's, then the update's. */
struct front {
    const struct run *run;
    const struct vxd_supernode *s;
    uint32_t number; /* the supernode's */
    bool divided;
    const double
        *stack_top; /* behind the updates of its children that are on the stack */
    double *panel;
    double *update;
};

/* Adds the matrix's own blocks to columns [begin, end) of the panel. */
static void add_blocks(const struct front *front, size_t begin, size_t end)
{
    const struct run *run = front->run;
    const struct vxd_supernode *s = front->s;
    const struct vxd_block_plan *plan = run->factor->plan;
    size_t b = (size_t)run->factor->b;
    size_t ld = s->n_rows * b;

    for (size_t j = begin; j < end && j < s->n_columns; j++) {
        const double *block = run->diagonal + plan->order[s->first + j] * b * b;
        double *to = front->panel + j * b * ld + j * b;

        for (size_t c = 0; c < b; c++) {
            for (size_t r = 0; r < b; r++) {
                to[c * ld + r] += block[c * b + r];
            }
        }
    }
    for (size_t i = s->first_pair; i < s[1].first_pair && begin < s->n_columns; i++) {
        uint32_t pair = plan->pairs_of[i];
        uint32_t a = plan->position[run->named[pair].a];
        uint32_t other = plan->position[run->named[pair].b];
        bool a_first = a < other;
        size_t column = (a_first ? a : other) - s->first;
        const double *block = run->pairs + pair * b * b;
        double *to = front->panel + column * b * ld + plan->pair_row[pair] * b;

        if (column < begin || column >= end) {
            continue;
        }
        /* The later node's numbers are rows. */
        for (size_t c = 0; c < b; c++) {
            for (size_t r = 0; r < b; r++) {
                to[c * ld + r] += a_first ? block[c * b + r] : block[r * b + c];
            }
        }
    }
}

/* Adds to columns [begin, end) what a child's update has there: the lower triangle, block by
 * block. The child's columns ascend in the front's. */
static void add_child(const struct front *front, const struct vxd_supernode *child,
                      const double *from, size_t begin, size_t end)
{
    const struct vxd_supernode *s = front->s;
    const struct vxd_block_plan *plan = front->run->factor->plan;
    size_t b = (size_t)front->run->factor->b;
    size_t n = child->n_rows - child->n_columns;
    size_t ld = s->n_rows * b;
    size_t ld_update = (s->n_rows - s->n_columns) * b;
    const uint32_t *places = plan->positions + child->to_parent;

    for (size_t j = 0; j < n && places[j] < end; j++) {
        bool in_panel = places[j] < s->n_columns;
        size_t to_ld = in_panel ? ld : ld_update;
        double *column = in_panel
                             ? front->panel + places[j] * b * ld
                             : front->update + (places[j] - s->n_columns) * b * ld_update;

        for (size_t c = 0; c < b && places[j] >= begin; c++) {
            const double *from_column = from + (j * b + c) * n * b;
            double *to = column + c * to_ld;

            for (size_t i = j; i < n; i++) {
                size_t row = (places[i] - (in_panel ? 0 : s->n_columns)) * b;

                for (size_t r = 0; r < b; r++) {
                    to[row + r] += from_column[i * b + r];
                }
            }
        }
    }
}

static const struct vxd_subtree *subtree_of(const struct vxd_block_plan *plan,
                                            uint32_t last)
{
    size_t low = 0;
    size_t high = plan->n_subtrees;

    while (low + 1 < high) {
        size_t middle = (low + high) / 2;

        if (plan->subtrees[middle].first <= last) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &plan->subtrees[low];
}

/* Sums columns [begin, end) of a front. */
static void assemble(void *args, size_t begin, size_t end)
{
    const struct front *front = args;
    const struct vxd_supernode *s = front->s;
    const struct vxd_block_factor *factor = front->run->factor;
    const struct vxd_block_plan *plan = factor->plan;
    size_t b = (size_t)factor->b;
    size_t bb = b * b;
    size_t n_update = s->n_rows - s->n_columns;
    size_t border = begin > s->n_columns ? begin : s->n_columns;
    const double *top = front->stack_top;

    if (begin < s->n_columns) {
        size_t last = end < s->n_columns ? end : s->n_columns;

        memset(front->panel + begin * s->n_rows * bb, 0,
               (last - begin) * s->n_rows * bb * sizeof *front->panel);
        add_blocks(front, begin, last);
    }
    if (end > border) {
        memset(front->update + (border - s->n_columns) * n_update * bb, 0,
               (end - border) * n_update * bb * sizeof *front->update);
    }
    for (uint32_t c = front->number; c-- > s->first_leaf;
         c = plan->supernodes[c].first_leaf) {
        const struct vxd_supernode *child = &plan->supernodes[c];
        size_t n = child->n_rows - child->n_columns;
        const double *from;

        if (plan->is_apart[c] && front->divided) {
            from = factor->stacks + subtree_of(plan, c)->stack_offset * bb;
        } else {
            top -= n * n * bb;
            from = top;
        }
        add_child(front, child, from, begin, end);
    }
}

/* --- one supernode ----------------------------------------------------------------------------- */

struct update {
    double *panel;
    size_t ld;
    size_t n;     /* rows below the panel's columns */
    size_t n_k;   /* columns of the panel */
    size_t strip; /* of its columns, the first of those that are factored */
    double *c;
};

static void update_columns(void *args, size_t begin, size_t end)
{
    const struct update *u = args;

    vxd_dense_update(u->panel + u->n_k, u->ld, u->n, u->n_k, u->c, u->n, begin, end);
}

static void solve_rows(void *args, size_t begin, size_t end)
{
    const struct update *u = args;

    vxd_dense_solve_rows(u->panel, u->ld, u->n_k, u->n_k + begin, u->n_k + end);
}

static void strip_rows(void *args, size_t begin, size_t end)
{
    const struct update *u = args;
    size_t first = u->strip + VXD_DENSE_STRIP;

    vxd_dense_strip_rows(u->panel, u->ld, u->n_k, u->strip, first + begin, first + end);
}

/* Factors the triangle of a panel by all threads; returns the columns that are positive definite. */
static size_t factor_triangle(struct vxd_pool *pool, struct update *u)
{
    for (u->strip = 0; u->strip < u->n_k; u->strip += VXD_DENSE_STRIP) {
        size_t done = vxd_dense_strip(u->panel, u->ld, u->n_k, u->strip);
        size_t left = u->n_k - u->strip;

        if (done < (left < VXD_DENSE_STRIP ? left : VXD_DENSE_STRIP)) {
            return u->strip + done;
        }
        if (left > VXD_DENSE_STRIP) {
            vxd_parallel_for(pool, left - VXD_DENSE_STRIP, STRIP_ROWS, strip_rows, u);
        }
    }
    return u->n_k;
}

/* The blocks that the children of supernode i have on the stack. */
static size_t children_blocks(const struct vxd_block_plan *plan, uint32_t i, bool divided)
{
    size_t n_blocks = 0;

    for (uint32_t c = i; c-- > plan->supernodes[i].first_leaf;
         c = plan->supernodes[c].first_leaf) {
        size_t n = plan->supernodes[c].n_rows - plan->supernodes[c].n_columns;

        n_blocks += plan->is_apart[c] && divided ? 0 : n * n;
    }
    return n_blocks;
}

/* Assembles and factors supernode number i; its children's updates leave the stack, and its own
 * goes there. False where the matrix is not positive definite. */
static bool factor_supernode(struct run *run, uint32_t i, struct stack *stack,
                             bool divided)
{
    const struct vxd_block_factor *factor = run->factor;
    const struct vxd_block_plan *plan = factor->plan;
    const struct vxd_supernode *s = &plan->supernodes[i];
    size_t b = (size_t)factor->b;
    size_t bb = b * b;
    size_t n_update = s->n_rows - s->n_columns;
    double *top = stack->base + stack->height * bb;
    size_t height = stack->height - children_blocks(plan, i, divided);
    double *panel = factor->panels + s->panel * bb;
    struct front front = {.run = run,
                          .s = s,
                          .number = i,
                          .divided = divided,
                          .stack_top = top,
                          .panel = panel,
                          .update = top};
    struct update update = {.panel = panel,
                            .ld = s->n_rows * b,
                            .n = n_update * b,
                            .n_k = s->n_columns * b,
                            .c = top};
    bool by_all = divided && s->work > DIVIDED_WORK;
    size_t done;

    if (by_all) {
        vxd_parallel_for(factor->pool, s->n_rows, DIVIDED_BLOCKS, assemble, &front);
    } else {
        assemble(&front, 0, s->n_rows);
    }
    done = by_all ? factor_triangle(factor->pool, &update)
                  : vxd_dense_factor(panel, update.ld, update.ld, update.n_k);
    if (done < update.n_k) {
        uint_fast32_t column = s->first + (uint32_t)(done / b);
        uint_fast32_t lowest = atomic_load(&run->failed);

        while (column < lowest &&
               !atomic_compare_exchange_weak(&run->failed, &lowest, column)) {
        }
        return false;
    }
    if (by_all) {
        vxd_parallel_for(factor->pool, update.n, DIVIDED_ROWS, solve_rows, &update);
        vxd_parallel_for(factor->pool, update.n, DIVIDED_COLUMNS, update_columns,
                         &update);
    } else {
        update_columns(&update, 0, update.n);
    }
    if (height != stack->height) {
        memmove(stack->base + height * bb, update.c,
                n_update * n_update * bb * sizeof *update.c);
    }
    stack->height = height + n_update * n_update;
    return true;
}

/* --- all of them ------------------------------------------------------------------------------- */

static void factor_subtrees(void *args, size_t begin, size_t end)
{
    struct run *run = args;
    const struct vxd_block_factor *factor = run->factor;

    for (size_t t = begin; t < end; t++) {
        const struct vxd_subtree *tree = &factor->plan->subtrees[t];
        struct stack stack = {.base =
                                  factor->stacks +
                                  tree->stack_offset * (size_t)(factor->b * factor->b)};

        for (uint32_t s = tree->first; s <= tree->last; s++) {
            if (!factor_supernode(run, s, &stack, false)) {
                return;
            }
        }
    }
}

uint32_t vxd_block_factor_run(struct vxd_block_factor *factor, const double *diagonal,
                              const double *pairs, const struct vxd_block_pair *named)
{
    const struct vxd_block_plan *plan = factor->plan;
    struct run run = {
        .factor = factor, .diagonal = diagonal, .pairs = pairs, .named = named};
    struct stack stack = {.base = factor->stacks +
                                  plan->top_offset * (size_t)(factor->b * factor->b)};
    uint_fast32_t failed;

    atomic_init(&run.failed, UINT32_MAX);
    vxd_parallel_for(factor->pool, plan->n_subtrees, 1, factor_subtrees, &run);
    failed = atomic_load(&run.failed);
    for (uint32_t s = 0, t = 0; s < plan->n_supernodes && failed == UINT32_MAX; s++) {
        if (t < plan->n_subtrees && plan->subtrees[t].first == s) {
            s = plan->subtrees[t++].last;
        } else {
            (void)factor_supernode(&run, s, &stack, true);
            failed = atomic_load(&run.failed);
        }
    }
    return failed == UINT32_MAX ? UINT32_MAX : plan->order[failed];
}

/* --- objects ------------------------------------------------------------------------------------ */

size_t vxd_block_factor_bytes(const struct vxd_block_plan *plan, int b)
{
    return ((plan->n_panel_blocks + plan->stack_blocks) * (size_t)(b * b) +
            (size_t)plan->n * (size_t)b) *
           sizeof(double);
}

enum vxd_status vxd_block_factor_create(const struct vxd_block_plan *plan,
                                        struct vxd_pool *pool, int b,
                                        struct vxd_block_factor **out,
                                        struct vxd_err *err)
{
    struct vxd_block_factor *factor = calloc(1, sizeof *factor);
    size_t bb = (size_t)b * (size_t)b;

    *out = factor;
    if (factor != NULL) {
        *factor = (struct vxd_block_factor){.plan = plan, .pool = pool, .b = b};
        /* Faults of small pages had taken a fifth of the time. */
        factor->panels =
            vxd_machine_alloc((plan->n_panel_blocks * bb + 1) * sizeof(double));
        factor->stacks =
            vxd_machine_alloc((plan->stack_blocks * bb + 1) * sizeof(double));
        factor->x = malloc(((size_t)plan->n * (size_t)b + 1) * sizeof(double));
    }
    if (factor == NULL || factor->panels == NULL || factor->stacks == NULL ||
        factor->x == NULL) {
        vxd_block_factor_destroy(factor);
        *out = NULL;
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for a factor of %zu bytes",
                        vxd_block_factor_bytes(plan, b));
    }
    return VXD_OK;
}

void vxd_block_factor_destroy(struct vxd_block_factor *factor)
{
    if (factor != NULL) {
        free(factor->x);
        free(factor->stacks);
        free(factor->panels);
        free(factor);
    }
}
