// SPDX-License-Identifier: Apache-2.0
/* The object behind table.h and its twins. The public entries check every argument; the twins
 * only compute. */
#ifndef VXD_GPU_DAG_TABLE_BACKENDS_H
#define VXD_GPU_DAG_TABLE_BACKENDS_H

#include "gpu/core/internal.h"
#include "gpu/dag/index_math.h"
#include "gpu/paper/slab_store_math.h"
#include "gpu/dag/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What kernels get of a table by value; but for the first two, on a GPU alone. */
struct vxd_dag_table_view {
    unsigned kind; /* enum vxd_dag_kind of the items */
    int n_words;
    uint32_t *const *chunks; /* n_chunks, zeros where nothing was stored */
    uint32_t n_chunks;
    /* Slabs. */
    struct vxd_dag_slab_form form;
    uint32_t *lists; /* addresses of first slabs */
    uint32_t n_lists;
    uint32_t n_blocks;     /* memory blocks of all chunks, */
    uint32_t chunk_blocks; /* and of one */
    /* The arena. */
    struct vxd_dag_index index;
    uint32_t chunk_items;
};

struct vxd_dag_table {
    struct vxd_context *context;
    struct vxd_dag_table_spec spec; /* its load is not 0 */
    uint64_t n_items;               /* queued to be inserted */
    struct vxd_dag *dag;            /* on the CPU: a scene's store */
    struct vxd_dag_table_view view;
    struct vxd_buffer memory; /* on a GPU */
    uint64_t *n_slabs;        /* in it: where slabs are counted */
};

/* What the twins get; n is at least 1. */
struct vxd_dag_table_call {
    const struct vxd_dag_table *table;
    const uint32_t *items;
    size_t n;
    uint32_t *refs;
    uint64_t first; /* items there before */
};

enum vxd_status vxd_dag_table_open_cpu(struct vxd_queue *queue,
                                       struct vxd_dag_table *table, struct vxd_err *err);
void vxd_dag_table_close_cpu(struct vxd_queue *queue, struct vxd_dag_table *table);
enum vxd_status vxd_dag_table_insert_cpu(struct vxd_queue *queue,
                                         const struct vxd_dag_table_call *call,
                                         struct vxd_err *err);
enum vxd_status vxd_dag_table_find_cpu(struct vxd_queue *queue,
                                       const struct vxd_dag_table_call *call,
                                       struct vxd_err *err);
enum vxd_status vxd_dag_table_usage_cpu(struct vxd_queue *queue,
                                        const struct vxd_dag_table *table,
                                        struct vxd_dag_table_usage *out,
                                        struct vxd_err *err);

enum vxd_status vxd_dag_table_open_cuda(struct vxd_queue *queue,
                                        struct vxd_dag_table *table, struct vxd_err *err);
void vxd_dag_table_close_cuda(struct vxd_queue *queue, struct vxd_dag_table *table);
enum vxd_status vxd_dag_table_insert_cuda(struct vxd_queue *queue,
                                          const struct vxd_dag_table_call *call,
                                          struct vxd_err *err);
enum vxd_status vxd_dag_table_find_cuda(struct vxd_queue *queue,
                                        const struct vxd_dag_table_call *call,
                                        struct vxd_err *err);
enum vxd_status vxd_dag_table_usage_cuda(struct vxd_queue *queue,
                                         const struct vxd_dag_table *table,
                                         struct vxd_dag_table_usage *out,
                                         struct vxd_err *err);

/* slab_tables.cu, table_arena.cu: the launches of insert and find. */
enum vxd_status vxd_dag_table_slabs_insert(struct vxd_queue *queue,
                                           const struct vxd_dag_table_call *call,
                                           struct vxd_err *err);
enum vxd_status vxd_dag_table_slabs_find(struct vxd_queue *queue,
                                         const struct vxd_dag_table_call *call,
                                         struct vxd_err *err);
enum vxd_status vxd_dag_table_slabs_count(struct vxd_queue *queue,
                                          const struct vxd_dag_table *table,
                                          struct vxd_err *err);
enum vxd_status vxd_dag_table_arena_insert(struct vxd_queue *queue,
                                           const struct vxd_dag_table_call *call,
                                           struct vxd_err *err);
enum vxd_status vxd_dag_table_arena_find(struct vxd_queue *queue,
                                         const struct vxd_dag_table_call *call,
                                         struct vxd_err *err);

/* Warps that one launch over n items has at once: each may hold one slab that is in no list. */
uint64_t vxd_dag_table_slabs_takers(const struct vxd_queue *queue, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
