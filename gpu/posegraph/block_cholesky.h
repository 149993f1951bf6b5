// SPDX-License-Identifier: Apache-2.0
/* Cholesky factorization of sparse symmetric matrices of small dense blocks, by the multifrontal
 * method with supernodes. The folder's own.
 *
 * A matrix has n x n blocks of b x b numbers (b 1, 3 or 6): one on the diagonal for each node, and one
 * for each pair of nodes that is named; a pair may be named several times, and its blocks add up.
 *
 * source  Duff and Reid, The multifrontal solution of indefinite sparse symmetric linear equations
 *         (1983); Amestoy, Davis and Duff, An approximate minimum degree ordering algorithm (1996);
 *         Liu, The role of elimination trees in sparse factorization (1990) */
#ifndef VXD_GPU_POSEGRAPH_BLOCK_CHOLESKY_H
#define VXD_GPU_POSEGRAPH_BLOCK_CHOLESKY_H

#include "gpu/core/core.h"

struct vxd_block_pair {
    uint32_t a;
    uint32_t b; /* another node than a */
};

/* Some columns that are eliminated together, and the rows below them that are not zero. Node numbers
 * are those of the order of elimination. */
struct vxd_supernode {
    uint32_t first; /* column */
    uint32_t n_columns;
    uint32_t n_rows;     /* with the columns themselves */
    uint32_t parent;     /* supernode; UINT32_MAX: a root */
    uint32_t first_leaf; /* the subtree is the supernodes from there on */
    size_t rows;         /* index of its rows in `rows`, ascending */
    size_t
        to_parent; /* index in `positions`: where its rows below are in the parent's rows */
    size_t
        first_pair; /* index in `pairs_of` of the pairs that it takes, to the next one's */
    size_t panel;   /* index of its panel, in blocks */
    double work;    /* multiplications of blocks */
};

/* A subtree that one thread factors. */
struct vxd_subtree {
    uint32_t first;
    uint32_t last; /* supernode; the root of the subtree */
    size_t stack;  /* blocks of its stack of updates, from `stack_offset` on */
    size_t stack_offset;
};

/* The structure of a matrix and of its factor. */
struct vxd_block_plan {
    uint32_t n;
    size_t n_pairs;
    uint32_t *order;    /* node of each column */
    uint32_t *position; /* column of each node */
    uint32_t n_supernodes;
    struct vxd_supernode *supernodes; /* n_supernodes + 1, the last for its first_pair */
    uint32_t *rows;
    uint32_t *positions;
    uint32_t *pairs_of; /* pairs by supernode, ascending in each */
    uint32_t
        *pair_row; /* n_pairs: where the pair's later node is in its supernode's rows */
    uint32_t *supernode; /* of each column */
    size_t n_panel_blocks;
    bool *is_apart; /* by supernode: the root of a subtree that one thread factors */
    uint32_t n_subtrees;
    struct vxd_subtree *subtrees; /* ascending; all other supernodes come last */
    size_t stack_blocks;          /* of all stacks */
    size_t top_offset;            /* of the stack of those others */
    double work;
    size_t n_bytes; /* of this plan */
};

/* block_order.c. An order of elimination with little fill: approximate minimum degree, with the
 * nodes that become indistinguishable from a pivot eliminated with it. Deterministic.
 * in      group  of each node: pivots are those of the lowest group; NULL: all are in one
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_block_order(uint32_t n, const struct vxd_block_pair *pairs,
                                size_t n_pairs, const uint32_t *group, uint32_t *order,
                                struct vxd_err *err);

/* block_dissect.c. Divides a graph into a few parts by separators. Deterministic.
 * out     group  n, for vxd_block_order: 0 in a part, else a separator's, of which the last one
 *                divides the whole graph
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_block_dissect(uint32_t n, const struct vxd_block_pair *pairs,
                                  size_t n_pairs, uint32_t *group, struct vxd_err *err);

/* block_plan.c. Finds the structure of the factor in two orders, of minimum degree alone and inside
 * of the parts of a dissected graph, and keeps the one that takes less work.
 * in      max_blocks  that factor and stacks may have; 0 = no limit
 * errors  RESOURCE_EXHAUSTED  no memory, or more than max_blocks: says how many */
enum vxd_status vxd_block_plan_create(struct vxd_pool *pool, uint32_t n,
                                      const struct vxd_block_pair *pairs, size_t n_pairs,
                                      size_t max_blocks, struct vxd_block_plan **out,
                                      struct vxd_err *err);
void vxd_block_plan_destroy(struct vxd_block_plan *plan);

/* A factor's numbers, of blocks of b x b. A copy whose b is smaller may use the same memory. */
struct vxd_block_factor {
    const struct vxd_block_plan *plan; /* borrowed */
    struct vxd_pool *pool;             /* borrowed */
    int b;
    double *panels; /* of each supernode n_rows x n_columns blocks, columns first */
    double *stacks;
    double *x; /* of one right-hand side, in the order of elimination */
};

/* block_factor.c.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_block_factor_create(const struct vxd_block_plan *plan,
                                        struct vxd_pool *pool, int b,
                                        struct vxd_block_factor **out,
                                        struct vxd_err *err);
void vxd_block_factor_destroy(struct vxd_block_factor *factor);
size_t vxd_block_factor_bytes(const struct vxd_block_plan *plan, int b);

/* block_factor.c. Factors a matrix. The same bits for any number of threads.
 * in      diagonal  n x b x b, symmetric
 *         pairs     n_pairs x b x b, rows first: rows are those of pair.a, columns those of pair.b
 *         named     the pairs of the plan
 * returns UINT32_MAX, or a node at which the matrix is found to be not positive definite */
uint32_t vxd_block_factor_run(struct vxd_block_factor *factor, const double *diagonal,
                              const double *pairs, const struct vxd_block_pair *named);

/* block_factor.c. Solves for one right-hand side of n x b numbers, in place. */
void vxd_block_factor_solve(struct vxd_block_factor *factor, double *x);

/* block_dense.c. Cholesky of the first n_columns of a panel in place, columns first: its lower
 * triangle becomes L and the rows below L21. Returns n_columns, or the column at which it is not
 * positive definite. */
size_t vxd_dense_factor(double *panel, size_t ld, size_t n_rows, size_t n_columns);

/* block_dense.c. Makes rows [begin, end) of L21 where vxd_dense_factor was called with the first
 * n_columns rows alone: the same bits as if it had been called with all. */
void vxd_dense_solve_rows(double *panel, size_t ld, size_t n_columns, size_t begin,
                          size_t end);

/* block_dense.c. The same factorization of a square panel in strips of columns, so that threads share
 * its rows. For each j in steps of VXD_DENSE_STRIP: vxd_dense_strip, which returns how many columns of
 * the strip are positive definite; then vxd_dense_strip_rows for all rows from j + VXD_DENSE_STRIP on,
 * in any pieces. */
enum {
    VXD_DENSE_STRIP = 24
};

size_t vxd_dense_strip(double *panel, size_t ld, size_t n_columns, size_t j);
void vxd_dense_strip_rows(double *panel, size_t ld, size_t n_columns, size_t j,
                          size_t begin, size_t end);

/* block_dense.c. Subtracts A A^T from columns [begin, end) of the lower triangle of C: A is
 * n x n_k with leading dimension ld_a, C n x n with ld_c, columns first. */
void vxd_dense_update(const double *a, size_t ld_a, size_t n, size_t n_k, double *c,
                      size_t ld_c, size_t begin, size_t end);

#endif
