// SPDX-License-Identifier: Apache-2.0
/* Tables of functions of stores other than the arena, which is the engine's own and needs
 * none. A context gets them when it opens (struct vxd_context_extras); nothing in this
 * folder names such a store. */
#ifndef VXD_GPU_SVDAG_STORE_STORE_TABLE_H
#define VXD_GPU_SVDAG_STORE_STORE_TABLE_H

#include "gpu/core/core_cpu.h"
#include "gpu/svdag/store/store_device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_svdag_store_ops; /* gpu/svdag/store/store.h */
struct vxd_svdag_lookup_key;
struct vxd_svdag_queries;      /* query_backends.h */
struct vxd_svdag_table_ops;    /* table_backends.h */
struct vxd_svdag_collect_view; /* collect_device.h */

/* What store_device.c, edits, collections and queries need of a store on a GPU.
 * store_device.c keeps its chunks and counts. */
struct vxd_svdag_device_ops {
    /* Its items stand in two pieces (vxd_svdag_reads_split). */
    bool is_split;
    /* Makes the index of a new store; close frees what there is of it.
     * errors  RESOURCE_EXHAUSTED */
    enum vxd_status (*open)(struct vxd_queue *queue, struct vxd_svdag *svdag,
                            struct vxd_err *err);
    void (*close)(struct vxd_queue *queue, struct vxd_svdag *svdag);
    /* Called after chunks were added, while no edit runs: takes more memory for the
     * index, where the budget has it.
     * errors  of the device */
    enum vxd_status (*grow)(struct vxd_queue *queue, struct vxd_svdag *svdag,
                            struct vxd_err *err);
    /* Number of chunks to add beyond those that are needed. */
    uint32_t (*n_more_chunks)(const struct vxd_svdag *svdag);
    /* Number of unused words in chunks that are in use. */
    uint64_t (*n_free_words)(const struct vxd_svdag *svdag);
    /* Bytes of a copy of the index in host memory, and the copy itself, which is queued;
     * out->tables points to it. */
    size_t (*n_copy_bytes)(const struct vxd_svdag *svdag);
    enum vxd_status (*copy)(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                            char *memory, struct vxd_svdag_image *out,
                            struct vxd_err *err);
    /* The address of an item by such a copy, VXD_SVDAG_EMPTY where it is not there. */
    uint32_t (*find_in_copy)(const struct vxd_svdag *svdag,
                             const struct vxd_svdag_image *image,
                             const struct vxd_svdag_lookup_key *key);
    /* The edit kernels. */
    const struct vxd_svdag_edit_kernels *edit_kernels;
    /* The kernels of queries; NULL: the engine's own, for items in one piece. */
    const struct vxd_svdag_queries *queries;
    /* The kernels of collections that insert items; as vxd_svdag_collect_device_put. */
    enum vxd_status (*put)(struct vxd_queue *queue,
                           const struct vxd_svdag_collect_view *view,
                           enum vxd_svdag_kind kind, uint32_t begin, uint32_t n,
                           struct vxd_err *err);
    /* Tables of items of one length (gpu/svdag/table/table.h). */
    const struct vxd_svdag_table_ops *tables;
};

struct vxd_svdag_store_table {
    const struct vxd_svdag_store_ops
        *cpu; /* NULL: the context was not given this store */
    const struct vxd_svdag_device_ops *cuda; /* NULL in a build without CUDA */
};

/* By enum vxd_svdag_store; the arena's entry is not read. */
struct vxd_svdag_stores {
    struct vxd_svdag_store_table of[VXD_SVDAG_N_STORES];
};

/* store.c. The table of a store other than the arena.
 * errors  UNIMPLEMENTED  the context was not given this store */
enum vxd_status vxd_svdag_find_store(const struct vxd_context *context,
                                     enum vxd_svdag_store store,
                                     const struct vxd_svdag_store_table **out,
                                     struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
