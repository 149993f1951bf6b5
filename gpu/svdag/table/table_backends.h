// SPDX-License-Identifier: Apache-2.0
/* The object behind table.h and its twins. The public entries check every argument; the twins
 * only compute. */
#ifndef VXD_GPU_SVDAG_TABLE_TABLE_BACKENDS_H
#define VXD_GPU_SVDAG_TABLE_TABLE_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/table/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What kernels get of a table by value; but for the first two, on a GPU alone. */
struct vxd_svdag_table_view {
    unsigned kind; /* enum vxd_svdag_kind of the items */
    int n_words;
    uint32_t *const *chunks; /* n_chunks, zeros where nothing was stored */
    uint32_t n_chunks;
    /* The arena. */
    struct vxd_svdag_index index;
    uint32_t chunk_items;
};

struct vxd_svdag_table {
    struct vxd_context *context;
    const struct vxd_svdag_table_ops *ops;
    struct vxd_svdag_table_spec spec; /* its load is not 0 */
    uint64_t n_items;                 /* queued to be inserted */
    struct vxd_svdag *svdag;          /* on the CPU: a scene's store */
    struct vxd_svdag_table_view view;
    struct vxd_buffer memory; /* on a GPU */
    void *own;                /* of a store that was handed in; its close frees it */
};

/* What the twins get; n is at least 1. */
struct vxd_svdag_table_call {
    const struct vxd_svdag_table *table;
    const uint32_t *items;
    size_t n;
    uint32_t *refs;
    uint64_t first; /* items there before */
};

/* A backend, or on a GPU a store. open leaves nothing where it fails. */
struct vxd_svdag_table_ops {
    enum vxd_status (*open)(struct vxd_queue *queue, struct vxd_svdag_table *table,
                            struct vxd_err *err);
    void (*close)(struct vxd_queue *queue, struct vxd_svdag_table *table);
    enum vxd_status (*insert)(struct vxd_queue *queue,
                              const struct vxd_svdag_table_call *call,
                              struct vxd_err *err);
    enum vxd_status (*find)(struct vxd_queue *queue,
                            const struct vxd_svdag_table_call *call, struct vxd_err *err);
    enum vxd_status (*get_usage)(struct vxd_queue *queue,
                                 const struct vxd_svdag_table *table,
                                 struct vxd_svdag_table_usage *out, struct vxd_err *err);
};

/* The CPU's, with any store, and an arena's on a GPU. */
extern const struct vxd_svdag_table_ops vxd_svdag_table_cpu;
extern const struct vxd_svdag_table_ops vxd_svdag_table_cuda;

/* table.cu. Takes the memory of a table, all zeros but for the addresses of its chunks, and sets
 * these in its view; *index is memory of n_index_bytes in it. Waits.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_leaf_memo_take(struct vxd_queue *queue,
                                         struct vxd_svdag_table *table, uint64_t n_chunks,
                                         size_t n_index_bytes, void **index,
                                         struct vxd_err *err);

/* table_arena.cu: the launches of insert and find. */
enum vxd_status vxd_svdag_table_arena_insert(struct vxd_queue *queue,
                                             const struct vxd_svdag_table_call *call,
                                             struct vxd_err *err);
enum vxd_status vxd_svdag_table_arena_find(struct vxd_queue *queue,
                                           const struct vxd_svdag_table_call *call,
                                           struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
