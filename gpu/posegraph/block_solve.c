// SPDX-License-Identifier: Apache-2.0
/* Solutions with a factor. Subtrees are solved by one thread each; what a subtree takes from the
 * right-hand side of columns behind it is summed apart and subtracted in the subtrees' order. The
 * few supernodes above them follow one after the other. The factor's stacks are the memory for sums:
 * a stack is at least as long as the square of its longest update. */
#include <string.h>

#include "gpu/posegraph/block_cholesky.h"

#define LANES 8
#define ROWS_AT_ONCE 256
#define COLUMNS_AT_ONCE 16
#define DIVIDED_NUMBERS                                                                  \
    20000 /* of a panel below its columns: above, all threads share it */

typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));

/* One supernode in a solution. */
struct part {
    struct vxd_block_factor *factor;
    const struct vxd_supernode *s;
    double *
        rows; /* of the numbers of the rows below its columns: sums, or what x has there */
};

/* A x for the n rows below the columns. */
static void sum_rows(const struct part *part, size_t n)
{
    const struct vxd_supernode *s = part->s;
    size_t b = (size_t)part->factor->b;
    size_t ld = s->n_rows * b;
    const double *x = part->factor->x + s->first * b;
    const double *below = part->factor->panels + s->panel * b * b + s->n_columns * b;
    double *sums = part->rows;

    memset(sums, 0, n * sizeof *sums);
    for (size_t j = 0; j < s->n_columns * b; j++) {
        const double *column = below + j * ld;

        for (size_t r = 0; r < n; r++) {
            sums[r] += column[r] * x[j];
        }
    }
}

/* Subtracts A^T (x of the rows below) from the columns' numbers. The sum of a column is that of
 * eight sums, whose numbers are eight apart. */
static void subtract_columns(const struct part *part, size_t n_columns)
{
    const struct vxd_supernode *s = part->s;
    size_t b = (size_t)part->factor->b;
    size_t ld = s->n_rows * b;
    size_t n = (s->n_rows - s->n_columns) * b;
    double *x = part->factor->x + s->first * b;
    const double *below = part->factor->panels + s->panel * b * b + s->n_columns * b;

    for (size_t j = 0; j < n_columns; j++) {
        const double *column = below + j * ld;
        lanes sums = {0};
        double sum = 0;
        size_t r = 0;

        for (; r + LANES <= n; r += LANES) {
            sums += *(const lanes *)(column + r) * *(const lanes *)(part->rows + r);
        }
        for (; r < n; r++) {
            sum += column[r] * part->rows[r];
        }
        for (int lane = 0; lane < LANES; lane++) {
            sum += sums[lane];
        }
        x[j] -= sum;
    }
}

/* Solves for the columns of a supernode, and sums in part->rows what they take from those below. */
static void solve_forward(struct part *part)
{
    const struct vxd_supernode *s = part->s;
    size_t b = (size_t)part->factor->b;
    size_t ld = s->n_rows * b;
    size_t n = s->n_columns * b;
    const double *panel = part->factor->panels + s->panel * b * b;
    double *x = part->factor->x + s->first * b;

    for (size_t j = 0; j < n; j++) {
        const double *column = panel + j * ld;

        x[j] /= column[j];
        for (size_t r = j + 1; r < n; r++) {
            x[r] -= column[r] * x[j];
        }
    }
    sum_rows(part, ld - n);
}

static void solve_backward(struct part *part)
{
    const struct vxd_supernode *s = part->s;
    size_t b = (size_t)part->factor->b;
    size_t ld = s->n_rows * b;
    size_t n = s->n_columns * b;
    const double *panel = part->factor->panels + s->panel * b * b;
    const uint32_t *rows = part->factor->plan->rows + s->rows;
    double *x = part->factor->x + s->first * b;

    for (uint32_t k = s->n_columns; k < s->n_rows; k++) {
        memcpy(part->rows + (k - s->n_columns) * b, part->factor->x + rows[k] * b,
               b * sizeof *x);
    }
    subtract_columns(part, n);
    for (size_t j = n; j-- > 0;) {
        const double *column = panel + j * ld;
        double sum = x[j];

        for (size_t r = j + 1; r < n; r++) {
            sum -= column[r] * x[r];
        }
        x[j] = sum / column[j];
    }
}

/* Subtracts a supernode's sums from x, as far as its rows, which ascend, are before `end`; returns
 * the number of the first row that is not. */
static uint32_t subtract_sums(const struct part *part, uint32_t end)
{
    const struct vxd_supernode *s = part->s;
    size_t b = (size_t)part->factor->b;
    const uint32_t *rows = part->factor->plan->rows + s->rows;
    uint32_t k = s->n_columns;

    for (; k < s->n_rows && rows[k] < end; k++) {
        const double *from = part->rows + (k - s->n_columns) * b;
        double *to = part->factor->x + rows[k] * b;

        for (size_t r = 0; r < b; r++) {
            to[r] -= from[r];
        }
    }
    return k;
}

/* Adds a supernode's sums from row number k on to `behind`, whose rows are `behind_rows`. */
static void add_sums(const struct part *part, uint32_t k, double *behind,
                     const uint32_t *behind_rows)
{
    const struct vxd_supernode *s = part->s;
    size_t b = (size_t)part->factor->b;
    const uint32_t *rows = part->factor->plan->rows + s->rows;
    size_t place = 0;

    for (; k < s->n_rows; k++) {
        const double *from = part->rows + (k - s->n_columns) * b;

        while (behind_rows[place] != rows[k]) {
            place++;
        }
        for (size_t r = 0; r < b; r++) {
            behind[place * b + r] += from[r];
        }
    }
}

/* The sums of subtree `tree` for the columns behind it; numbers are `n_behind` blocks. */
static double *behind_of(const struct vxd_block_factor *factor,
                         const struct vxd_subtree *tree, size_t *n_behind)
{
    const struct vxd_supernode *root = &factor->plan->supernodes[tree->last];

    *n_behind = root->n_rows - root->n_columns;
    return factor->stacks + tree->stack_offset * (size_t)(factor->b * factor->b);
}

static void forward_subtrees(void *args, size_t begin, size_t end)
{
    struct vxd_block_factor *factor = args;
    const struct vxd_block_plan *plan = factor->plan;
    size_t b = (size_t)factor->b;

    for (size_t t = begin; t < end; t++) {
        const struct vxd_subtree *tree = &plan->subtrees[t];
        const struct vxd_supernode *root = &plan->supernodes[tree->last];
        const uint32_t *behind_rows = plan->rows + root->rows + root->n_columns;
        size_t n_behind;
        double *behind = behind_of(factor, tree, &n_behind);
        struct part part = {.factor = factor, .rows = behind + n_behind * b};

        memset(behind, 0, n_behind * b * sizeof *behind);
        for (uint32_t s = tree->first; s <= tree->last; s++) {
            part.s = &plan->supernodes[s];
            solve_forward(&part);
            add_sums(&part, subtract_sums(&part, root->first + root->n_columns), behind,
                     behind_rows);
        }
    }
}

static void backward_subtrees(void *args, size_t begin, size_t end)
{
    struct vxd_block_factor *factor = args;
    const struct vxd_block_plan *plan = factor->plan;

    for (size_t t = begin; t < end; t++) {
        const struct vxd_subtree *tree = &plan->subtrees[t];
        size_t n_behind;
        struct part part = {.factor = factor, .rows = behind_of(factor, tree, &n_behind)};

        for (uint32_t s = tree->last + 1; s-- > tree->first;) {
            part.s = &plan->supernodes[s];
            solve_backward(&part);
        }
    }
}

void vxd_block_factor_solve(struct vxd_block_factor *factor, double *x)
{
    const struct vxd_block_plan *plan = factor->plan;
    size_t b = (size_t)factor->b;
    struct part part = {.factor = factor,
                        .rows = factor->stacks + plan->top_offset * b * b};

    for (uint32_t j = 0; j < plan->n; j++) {
        memcpy(factor->x + j * b, x + plan->order[j] * b, b * sizeof *x);
    }
    vxd_parallel_for(factor->pool, plan->n_subtrees, 1, forward_subtrees, factor);
    for (uint32_t t = 0; t < plan->n_subtrees; t++) {
        const struct vxd_supernode *root = &plan->supernodes[plan->subtrees[t].last];
        const uint32_t *rows = plan->rows + root->rows + root->n_columns;
        size_t n_behind;
        const double *behind = behind_of(factor, &plan->subtrees[t], &n_behind);

        for (size_t i = 0; i < n_behind * b; i++) {
            factor->x[rows[i / b] * b + i % b] -= behind[i];
        }
    }
    for (uint32_t s = 0, t = 0; s < plan->n_supernodes; s++) {
        if (t < plan->n_subtrees && plan->subtrees[t].first == s) {
            s = plan->subtrees[t++].last;
        } else {
            part.s = &plan->supernodes[s];
            solve_forward(&part);
            (void)subtract_sums(&part, plan->n);
        }
    }
    for (uint32_t s = plan->n_supernodes, t = plan->n_subtrees; s-- > 0;) {
        if (t > 0 && plan->subtrees[t - 1].last == s) {
            s = plan->subtrees[--t].first;
        } else {
            part.s = &plan->supernodes[s];
            solve_backward(&part);
        }
    }
    vxd_parallel_for(factor->pool, plan->n_subtrees, 1, backward_subtrees, factor);
    for (uint32_t j = 0; j < plan->n; j++) {
        memcpy(x + plan->order[j] * b, factor->x + j * b, b * sizeof *x);
    }
}
