// SPDX-License-Identifier: Apache-2.0
/* The object behind table.h, and its backends. The public entries check every argument;
 * the backends only compute. */
#ifndef VXD_GPU_SVDAG_TABLE_TABLE_BACKENDS_H
#define VXD_GPU_SVDAG_TABLE_TABLE_BACKENDS_H

#include "gpu/core/core_cpu.h"
#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/table/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What kernels take of a table, by value. Only the first two members are used on the
 * CPU. */
struct vxd_svdag_table_view {
    unsigned kind; /* enum vxd_svdag_kind of the items */
    int n_words;
    uint32_t *const *chunks; /* n_chunks; words that hold no item are zeros */
    uint32_t n_chunks;
    /* Of an arena: */
    struct vxd_svdag_index index;
    uint32_t chunk_items;
};

struct vxd_svdag_table {
    struct vxd_context *context;
    const struct vxd_svdag_table_ops *ops;
    struct vxd_svdag_table_spec spec; /* its load is not 0 */
    uint64_t n_items;                 /* queued to be inserted */
    struct vxd_svdag *svdag;          /* on the CPU: the store of a scene */
    struct vxd_svdag_table_view view;
    struct vxd_buffer memory; /* on a GPU */
    void *own;                /* of a store of gpu/paper, whose close frees it */
};

/* A call of a backend; n is at least 1. */
struct vxd_svdag_table_call {
    const struct vxd_svdag_table *table;
    const uint32_t *items;
    size_t n;
    uint32_t *refs;
    uint64_t first; /* items in the table before */
};

/* Functions of a backend, and on a GPU of a store. An open that fails leaves nothing
 * behind. */
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

/* The CPU's, for any store, and the GPU's for an arena. */
extern const struct vxd_svdag_table_ops vxd_svdag_table_cpu;
extern const struct vxd_svdag_table_ops vxd_svdag_table_cuda;

/* table.cu. Allocates the memory of a table and sets the chunks in its view. The memory
 * is zeros except the pointers to chunks; *index is n_index_bytes of it. Waits.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_table_alloc(struct vxd_queue *queue,
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
