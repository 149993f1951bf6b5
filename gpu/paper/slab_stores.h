// SPDX-License-Identifier: Apache-2.0
/* What the files of the slab stores share: the functions behind the tables that paper.c hands in, on
 * the host's side. Included as C11 and as CUDA C++. */
#ifndef VXD_GPU_PAPER_SLAB_STORES_H
#define VXD_GPU_PAPER_SLAB_STORES_H

#include "gpu/svdag/query/query_math.h"
#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/table/table_math.h"
#include "gpu/paper/slab_store_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A table of slabs as kernels see it; all zeros where the format has no such items. A scene has
 * VXD_SVDAG_SLAB_TABLES of them (struct vxd_svdag_kernel_args's tables). */
struct vxd_svdag_slab_table {
    uint32_t
        *lists; /* addresses of their front slabs. Lowest bit: another one is coming */
    uint32_t n_lists;
};

/* Where a table of slabs takes them from; a scene's VXD_SVDAG_SLAB_TABLES are the own words of its
 * store's state. */
struct vxd_svdag_slab_source {
    uint32_t
        chunk; /* vxd_svdag_slab_chunk_word; 0: none yet. Lowest bit: the next one is coming */
    uint32_t n_slabs; /* taken so far: all of its chunks before this one are full */
};

/* slab_store_cpu.c: the four stores on the CPU, by spec.store. */
extern const struct vxd_svdag_store_ops vxd_paper_slabs_cpu;

/* slab_store_cpu.c. The address of an item in the list of slabs that begins at `front`, VXD_SVDAG_EMPTY
 * where it is not. Nobody stores in the list meanwhile. */
uint32_t vxd_svdag_slab_find(const struct vxd_svdag_view *view,
                             const struct vxd_svdag_slab_form *form, uint32_t front,
                             const struct vxd_svdag_lookup_key *key);

/* slab_store_device.c: the stores on a GPU. */
extern const struct vxd_svdag_device_ops vxd_paper_atomic64_cuda;
extern const struct vxd_svdag_device_ops vxd_paper_ticket_cuda;
extern const struct vxd_svdag_device_ops vxd_paper_accel32_cuda;
extern const struct vxd_svdag_device_ops vxd_paper_accel8_cuda;

/* slab_lists.cu. Lists of a table with `factor` times as many: each takes the front of the one that its
 * items were in, so that nothing moves, and lists have the same slabs behind their own ones. */
enum vxd_status vxd_svdag_slabs_spread(struct vxd_queue *queue, const uint32_t *from,
                                       uint32_t n_from, uint32_t factor, uint32_t *to,
                                       struct vxd_err *err);

/* edit_kernel_atomic64.cu, ...: the kernels of edits. */
extern const struct vxd_svdag_edit_kernels vxd_paper_atomic64_kernels;
extern const struct vxd_svdag_edit_kernels vxd_paper_ticket_kernels;
extern const struct vxd_svdag_edit_kernels vxd_paper_accel32_kernels;
extern const struct vxd_svdag_edit_kernels vxd_paper_accel8_kernels;

/* query_split.cu: the kernels of queries for items that stand in two pieces. */
extern const struct vxd_svdag_queries vxd_paper_split_queries;
/* render_split.cu: a part of a picture. */
enum vxd_status vxd_paper_draw_split(struct vxd_queue *queue,
                                     const struct vxd_render_call *call,
                                     struct vxd_err *err);

/* slab_put.cu: the kernels of transfers that store items, as vxd_svdag_device_ops's put. */
#define VXD_PAPER_PUT(form)                                                              \
    enum vxd_status vxd_svdag_collect_device_put##form(                                  \
        struct vxd_queue *queue, const struct vxd_svdag_collect_view *view,              \
        enum vxd_svdag_kind kind, uint32_t begin, uint32_t n, struct vxd_err *err)
VXD_PAPER_PUT(_atomic64);
VXD_PAPER_PUT(_ticket);
VXD_PAPER_PUT(_accel32);
VXD_PAPER_PUT(_accel8);

/* slab_tables.cu: tables of items of one length, of any of the four stores. */
extern const struct vxd_svdag_table_ops vxd_paper_slab_tables_cuda;

#ifdef __cplusplus
}
#endif
#endif
