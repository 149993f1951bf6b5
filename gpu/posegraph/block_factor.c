// SPDX-License-Identifier: Apache-2.0
/* The factorization itself. The front of a supernode is its panel (in the factor) and its update (on
 * a stack). Subtrees are factored by one thread each; what is above them, one supernode after the
 * other, each by all threads. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/posegraph/block_cholesky.h"

/* Multiplications of blocks above which an update is divided among threads. */
#define DIVIDED_WORK 4000.0
#define DIVIDED_COLUMNS 24

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

/* Adds the matrix's own blocks to a panel. */
static void add_blocks(const struct run *run, const struct vxd_supernode *s,
                       double *panel, size_t ld)
{
    const struct vxd_block_plan *plan = run->factor->plan;
    size_t b = (size_t)run->factor->b;

    for (uint32_t j = 0; j < s->n_columns; j++) {
        const double *block = run->diagonal + plan->order[s->first + j] * b * b;
        double *to = panel + j * b * ld + j * b;

        for (size_t c = 0; c < b; c++) {
            for (size_t r = 0; r < b; r++) {
                to[c * ld + r] += block[c * b + r];
            }
        }
    }
    for (size_t i = s->first_pair; i < s[1].first_pair; i++) {
        uint32_t pair = plan->pairs_of[i];
        uint32_t a = plan->position[run->named[pair].a];
        uint32_t other = plan->position[run->named[pair].b];
        bool a_first = a < other;
        const double *block = run->pairs + pair * b * b;
        double *to = panel + ((a_first ? a : other) - s->first) * b * ld +
                     plan->pair_row[pair] * b;

        /* The later node's numbers are rows. */
        for (size_t c = 0; c < b; c++) {
            for (size_t r = 0; r < b; r++) {
                to[c * ld + r] += a_first ? block[c * b + r] : block[r * b + c];
            }
        }
    }
}

/* Adds a child's update to the front: the lower triangle, block by block. */
static void add_child(const struct run *run, const struct vxd_supernode *child,
                      const double *from, const struct vxd_supernode *s, double *panel,
                      double *update)
{
    const struct vxd_block_plan *plan = run->factor->plan;
    size_t b = (size_t)run->factor->b;
    size_t n = child->n_rows - child->n_columns;
    size_t ld = s->n_rows * b;
    size_t ld_update = (s->n_rows - s->n_columns) * b;
    const uint32_t *places = plan->positions + child->to_parent;

    for (size_t j = 0; j < n; j++) {
        bool in_panel = places[j] < s->n_columns;
        size_t to_ld = in_panel ? ld : ld_update;
        double *column = in_panel ? panel + places[j] * b * ld
                                  : update + (places[j] - s->n_columns) * b * ld_update;

        for (size_t c = 0; c < b; c++) {
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

/* --- one supernode ----------------------------------------------------------------------------- */

struct update {
    const double *a;
    size_t ld;
    size_t n;
    size_t n_k;
    double *c;
};

static void update_columns(void *args, size_t begin, size_t end)
{
    const struct update *u = args;

    vxd_dense_update(u->a, u->ld, u->n, u->n_k, u->c, u->n, begin, end);
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
    size_t ld = s->n_rows * b;
    size_t n_update = s->n_rows - s->n_columns;
    size_t height = stack->height;
    double *panel = factor->panels + s->panel * bb;
    struct update update = {.a = panel + s->n_columns * b,
                            .ld = ld,
                            .n = n_update * b,
                            .n_k = s->n_columns * b,
                            .c = stack->base + height * bb};
    size_t done;

    memset(panel, 0, (size_t)s->n_columns * s->n_rows * bb * sizeof *panel);
    memset(update.c, 0, n_update * n_update * bb * sizeof *update.c);
    add_blocks(run, s, panel, ld);
    for (uint32_t c = i; c-- > s->first_leaf; c = plan->supernodes[c].first_leaf) {
        const struct vxd_supernode *child = &plan->supernodes[c];
        size_t n = child->n_rows - child->n_columns;
        const double *from;

        if (plan->is_apart[c] && divided) {
            from = factor->stacks + subtree_of(plan, c)->stack_offset * bb;
        } else {
            height -= n * n;
            from = stack->base + height * bb;
        }
        add_child(run, child, from, s, panel, update.c);
    }
    done = vxd_dense_factor(panel, ld, ld, update.n_k);
    if (done < update.n_k) {
        uint_fast32_t column = s->first + (uint32_t)(done / b);
        uint_fast32_t lowest = atomic_load(&run->failed);

        while (column < lowest &&
               !atomic_compare_exchange_weak(&run->failed, &lowest, column)) {
        }
        return false;
    }
    if (divided && s->work > DIVIDED_WORK) {
        vxd_parallel_for(factor->pool, update.n, DIVIDED_COLUMNS, update_columns,
                         &update);
    } else {
        update_columns(&update, 0, update.n);
    }
    memmove(stack->base + height * bb, update.c,
            n_update * n_update * bb * sizeof *update.c);
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

/* --- solution ----------------------------------------------------------------------------------- */

static void solve_forward(const struct vxd_block_factor *factor,
                          const struct vxd_supernode *s)
{
    size_t b = (size_t)factor->b;
    size_t ld = s->n_rows * b;
    size_t n = s->n_columns * b;
    const double *panel = factor->panels + s->panel * b * b;
    const uint32_t *rows = factor->plan->rows + s->rows;
    double *x = factor->x + s->first * b;

    for (size_t j = 0; j < n; j++) {
        const double *column = panel + j * ld;

        x[j] /= column[j];
        for (size_t r = j + 1; r < n; r++) {
            x[r] -= column[r] * x[j];
        }
        for (uint32_t k = s->n_columns; k < s->n_rows; k++) {
            double *to = factor->x + rows[k] * b;

            for (size_t r = 0; r < b; r++) {
                to[r] -= column[k * b + r] * x[j];
            }
        }
    }
}

static void solve_backward(const struct vxd_block_factor *factor,
                           const struct vxd_supernode *s)
{
    size_t b = (size_t)factor->b;
    size_t ld = s->n_rows * b;
    size_t n = s->n_columns * b;
    const double *panel = factor->panels + s->panel * b * b;
    const uint32_t *rows = factor->plan->rows + s->rows;
    double *x = factor->x + s->first * b;

    for (size_t j = n; j-- > 0;) {
        const double *column = panel + j * ld;
        double sum = x[j];

        for (size_t r = j + 1; r < n; r++) {
            sum -= column[r] * x[r];
        }
        for (uint32_t k = s->n_columns; k < s->n_rows; k++) {
            const double *from = factor->x + rows[k] * b;

            for (size_t r = 0; r < b; r++) {
                sum -= column[k * b + r] * from[r];
            }
        }
        x[j] = sum / column[j];
    }
}

void vxd_block_factor_solve(struct vxd_block_factor *factor, double *x)
{
    const struct vxd_block_plan *plan = factor->plan;
    size_t b = (size_t)factor->b;

    for (uint32_t j = 0; j < plan->n; j++) {
        memcpy(factor->x + j * b, x + plan->order[j] * b, b * sizeof *x);
    }
    for (uint32_t s = 0; s < plan->n_supernodes; s++) {
        solve_forward(factor, &plan->supernodes[s]);
    }
    for (uint32_t s = plan->n_supernodes; s-- > 0;) {
        solve_backward(factor, &plan->supernodes[s]);
    }
    for (uint32_t j = 0; j < plan->n; j++) {
        memcpy(x + plan->order[j] * b, factor->x + j * b, b * sizeof *x);
    }
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
        factor->panels = malloc((plan->n_panel_blocks * bb + 1) * sizeof(double));
        factor->stacks = malloc((plan->stack_blocks * bb + 1) * sizeof(double));
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
