// SPDX-License-Identifier: Apache-2.0
/* Sparse voxel DAGs: a store of immutable nodes, shared by any number of roots.
 *
 * A scene is a cube of 2^depth voxels a side. An octree over it, in which equal subtrees are
 * one, is named by the reference of its root. Nothing that a root reaches ever changes: an
 * edit (edit.h) gives a new root, and readers of an old one never wait.
 *
 * Space. Voxel (x, y, z) has indices 0 .. 2^depth - 1; geometry is fixed point, int64 in
 * 1/256 voxel (VXD_SVDAG_UNIT), so voxel x covers [256 x, 256 x + 256) and its centre lies at
 * 256 x + 128. A voxel is in a shape when its centre is. Child order, and the order of all
 * results, is Morton: per level x*4 + y*2 + z.
 *
 * Values. A voxel is not set (empty; unknown where the scene tracks free space), occupied
 * with a material 0 .. 2^material_bits - 1, or FREE: the highest material of 4, 8 and 16 bits
 * is reserved for it where tracks_free is set, and scenes without materials keep one bit.
 *
 * References, 32 bits: VXD_SVDAG_EMPTY, a uniform region (VXD_SVDAG_UNIFORM | value) of whatever
 * size its place has, else the word address of a node's first word in the store. The forms
 * of nodes stand in svdag_math.h. Trees are canonical: equal voxels, equal trees, whatever
 * edits led there.
 *
 * source  SVDAG editing, sections 3 and 4; research S1 to S8 */
#ifndef VXD_GPU_SVDAG_SVDAG_H
#define VXD_GPU_SVDAG_SVDAG_H

#include "gpu/core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_SVDAG_MIN_DEPTH 4
#define VXD_SVDAG_MAX_DEPTH 21
#define VXD_SVDAG_UNIT 256

#define VXD_SVDAG_EMPTY 0u
#define VXD_SVDAG_UNIFORM 0xffff0000u

/* How nodes are found again. An engine and benchmark choice: results are the same.
 * ARENA     words handed out one after the other, an index of {tag, address} beside them
 * The others are the papers'. They are there for contexts that were given them when they opened
 * (struct vxd_context_extras). They are lists of slabs by hash, of 31 or 32 items each, a table a
 * kind and length. On the CPU their numbers of lists stay as they were made; on a GPU a table gets
 * more when room is made for more items than its lists are for. No materials, or 4 bits:
 * ATOMIC64  the items' first 64 bits together, which are taken by a swap of 64 bits
 * TICKET    a mask of the items that are there, then the items
 * ACCEL32   a hash of 32 bits an item, then the items
 * ACCEL8    a hash of 8 bits an item, then the items
 * source    SVDAG editing, sections 4.2 and 5.1 */
enum vxd_svdag_store {
    VXD_SVDAG_ARENA = 0,
    VXD_SVDAG_ATOMIC64 = 1,
    VXD_SVDAG_TICKET = 2,
    VXD_SVDAG_ACCEL32 = 3,
    VXD_SVDAG_ACCEL8 = 4,
    VXD_SVDAG_N_STORES = 5
};

/* As configurations and messages call it. */
const char *vxd_svdag_store_name(enum vxd_svdag_store store);

struct vxd_svdag_format {
    int depth;         /* VXD_SVDAG_MIN_DEPTH .. VXD_SVDAG_MAX_DEPTH */
    int material_bits; /* 0, 4, 8 or 16 */
    bool tracks_free;
};

struct vxd_svdag_spec {
    struct vxd_svdag_format format;
    enum vxd_svdag_store store;
    size_t
        max_bytes; /* device memory it may ever take; 0 = what the context's budget gives */
    /* Of slab stores: items a list, on average, where a table has as many as it is made for;
     * and how many that is. 0 = VXD_SVDAG_LOAD, VXD_SVDAG_TABLE_ITEMS. */
    uint32_t load;
    uint64_t table_items;
};

#define VXD_SVDAG_LOAD 96u
#define VXD_SVDAG_MAX_LOAD 65536u
#define VXD_SVDAG_TABLE_ITEMS ((uint64_t)1 << 20)
#define VXD_SVDAG_MAX_TABLE_ITEMS ((uint64_t)1 << 30)

struct vxd_svdag;

/* State of a voxel, or of a region: a set of what occurs in it. */
enum vxd_svdag_state {
    VXD_SVDAG_UNKNOWN = 1,
    VXD_SVDAG_OCCUPIED = 2,
    VXD_SVDAG_FREE = 4
};

/* errors  INVALID_ARGUMENT    a spec outside the ranges above; err.field "depth", ...
 *         UNIMPLEMENTED       the context was not given spec.store
 *         RESOURCE_EXHAUSTED  over max_bytes or the context's budget
 * owner   the caller. The store is empty; VXD_SVDAG_EMPTY is a root of it */
enum vxd_status vxd_svdag_create(struct vxd_queue *queue,
                                 const struct vxd_svdag_spec *spec,
                                 struct vxd_svdag **out, struct vxd_err *err);

/* Nobody may use it any more, queued work included. NULL is fine. */
void vxd_svdag_destroy(struct vxd_queue *queue, struct vxd_svdag *svdag);

const struct vxd_svdag_spec *vxd_svdag_get_spec(const struct vxd_svdag *svdag);

/* What spec.max_bytes is from now on; below what the store has, it grows no more. While no
 * edit of it runs. */
void vxd_svdag_set_max_bytes(struct vxd_svdag *svdag, size_t max_bytes);

/* Cubes that an edit looks at, at most (about: threads count for themselves in between), so
 * that a surface that fills a large scene is refused after seconds, not gone over for
 * minutes. A new store has VXD_SVDAG_MAX_VISITS. While no edit of it runs. */
#define VXD_SVDAG_MAX_VISITS ((uint64_t)1 << 29)
void vxd_svdag_set_max_visits(struct vxd_svdag *svdag, uint64_t max_visits);

/* The material of FREE voxels, -1 where free space is not tracked. */
int vxd_svdag_free_value(const struct vxd_svdag_format *format);
/* Materials that voxels can have: 1 for none, 2^bits, one less with tracks_free. */
uint32_t vxd_svdag_n_materials(const struct vxd_svdag_format *format);

struct vxd_svdag_usage {
    uint64_t n_leaves; /* in the store, reached by a root or not */
    uint64_t n_inner;
    uint64_t n_blocks;   /* of 8- and 16-bit materials */
    uint64_t node_bytes; /* of those: what the paper calls raw */
    uint64_t n_bytes;    /* device memory taken, index and free room included */
    uint64_t
        used_bytes; /* of it, without the room for more items in chunks begun: slabs and
                          * segments that were handed out count as a whole */
};

/* What the store takes. Thread-safe; while an edit runs, of some moment of it. */
void vxd_svdag_get_usage(const struct vxd_svdag *svdag, struct vxd_svdag_usage *out);

/* What a root holds. */
struct vxd_svdag_summary {
    uint64_t n_occupied;
    uint64_t n_free;
    /* Nodes of its DAG by height: the side is 2^height voxels, 2 = leaves. */
    uint64_t n_nodes[VXD_SVDAG_MAX_DEPTH + 1];
    uint64_t n_blocks;
    uint64_t node_bytes;
    /* Of the voxels alone: equal for equal scenes in any store, on any backend. */
    uint64_t digest[2];
};

/* Walks every node of a root once. Blocking: for tests, information and snapshots.
 * errors  RESOURCE_EXHAUSTED  no memory for the marks
 *         DATA_LOSS           a node breaks a rule of its form; says which */
enum vxd_status vxd_svdag_verify(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                 uint32_t root, struct vxd_svdag_summary *out,
                                 struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
