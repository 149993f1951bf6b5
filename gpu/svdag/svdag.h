// SPDX-License-Identifier: Apache-2.0
/* Sparse voxel DAGs: a store of immutable nodes, shared by any number of roots.
 *
 * A scene is a cube of 2^depth voxels a side. It is an octree in which equal subtrees are
 * stored once, and it is named by the reference of its root. Nothing that a root reaches
 * ever changes: an edit (edit/edit.h) makes a new root, and readers of an old one never
 * wait.
 *
 * Space. Voxel (x, y, z) has indices 0 .. 2^depth - 1. Geometry is fixed point, int64 in
 * 1/256 voxel (VXD_SVDAG_UNIT): voxel x covers [256 x, 256 x + 256) and its centre lies
 * at 256 x + 128. A voxel is in a shape when its centre is. Child order, and the order of
 * all results, is Morton: per level x*4 + y*2 + z.
 *
 * Values. A voxel is not set (empty; unknown where the scene tracks free space), occupied
 * with a material 0 .. 2^material_bits - 1, or FREE. Where tracks_free is set, the
 * highest material of 4, 8 and 16 bits is reserved for FREE; scenes without materials
 * keep one bit.
 *
 * References have 32 bits: VXD_SVDAG_EMPTY, a uniform region of any size
 * (VXD_SVDAG_UNIFORM | value), or the address of a node's first word in the store. The
 * words of nodes are described in node/node_words_math.h. Trees are canonical: equal
 * voxels give equal trees, whatever edits led there.
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

/* How a store finds nodes. This is a choice of engine and benchmark; results are the
 * same.
 * ARENA     consecutive words, with an index of {tag, address}
 * The others are those of the papers. A context has them if it was given them when it
 * opened (struct vxd_context_extras). They keep items in lists of slabs by hash, of 31 or
 * 32 items each, with a table for each kind and length. On the CPU the number of lists
 * never changes; on a GPU a table gets more lists when capacity is reserved for more
 * items than its lists were made for. They support no materials, or 4 bits:
 * ATOMIC64  the first 64 bits of all items together, taken by a compare-and-swap of 64 bits
 * TICKET    a mask of the items that are there, then the items
 * ACCEL32   a hash of 32 bits for each item, then the items
 * ACCEL8    a hash of 8 bits for each item, then the items
 * source    SVDAG editing, sections 4.2 and 5.1 */
enum vxd_svdag_store {
    VXD_SVDAG_ARENA = 0,
    VXD_SVDAG_ATOMIC64 = 1,
    VXD_SVDAG_TICKET = 2,
    VXD_SVDAG_ACCEL32 = 3,
    VXD_SVDAG_ACCEL8 = 4,
    VXD_SVDAG_N_STORES = 5
};

/* The name of a store in configurations and messages. */
const char *vxd_svdag_store_name(enum vxd_svdag_store store);

struct vxd_svdag_format {
    int depth;         /* VXD_SVDAG_MIN_DEPTH .. VXD_SVDAG_MAX_DEPTH */
    int material_bits; /* 0, 4, 8 or 16 */
    bool tracks_free;
};

struct vxd_svdag_spec {
    struct vxd_svdag_format format;
    enum vxd_svdag_store store;
    size_t max_bytes; /* limit of its device memory; 0 = only the context's budget */
    /* Slab stores: average number of items of a list in a full table, and the number of
     * items that a table is made for. 0 = VXD_SVDAG_LOAD, VXD_SVDAG_TABLE_ITEMS. */
    uint32_t load;
    uint64_t table_items;
};

#define VXD_SVDAG_LOAD 96u
#define VXD_SVDAG_MAX_LOAD 65536u
#define VXD_SVDAG_TABLE_ITEMS ((uint64_t)1 << 20)
#define VXD_SVDAG_MAX_TABLE_ITEMS ((uint64_t)1 << 30)

struct vxd_svdag;

/* State of a voxel; for a region the set of states that occur in it. */
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

/* Nothing may use it any more, including queued work. NULL is fine. */
void vxd_svdag_destroy(struct vxd_queue *queue, struct vxd_svdag *svdag);

const struct vxd_svdag_spec *vxd_svdag_get_spec(const struct vxd_svdag *svdag);

/* Changes spec.max_bytes, while no edit runs. Below what the store has, it does not grow
 * any more. */
void vxd_svdag_set_max_bytes(struct vxd_svdag *svdag, size_t max_bytes);

/* Most cubes that an edit visits; approximate, because threads count separately for a
 * while. It refuses a surface that fills a large scene after seconds, instead of editing
 * it for minutes; err.field is "max_visits" then. A new store has VXD_SVDAG_MAX_VISITS. To be called while no edit
 * runs. */
#define VXD_SVDAG_MAX_VISITS ((uint64_t)1 << 29)
void vxd_svdag_set_max_visits(struct vxd_svdag *svdag, uint64_t max_visits);

/* What an edit or an undo asks whether it should end: it returns true when nobody wants the result any
 * more. On the CPU an edit asks about every 4096 cubes that a thread visits, on any of the pool's
 * threads; on a GPU before each of its runs, which are short. It ends as CANCELLED then, and every
 * root reaches what it did. NULL: it goes on to its end. To be called while no edit runs. */
void vxd_svdag_set_stop(struct vxd_svdag *svdag, bool (*is_stopped)(void *user),
                        void *user);

/* The material of FREE voxels, -1 where free space is not tracked. */
int vxd_svdag_free_value(const struct vxd_svdag_format *format);
/* Materials that voxels can have: 1 for none, 2^bits, one less with tracks_free. */
uint32_t vxd_svdag_n_materials(const struct vxd_svdag_format *format);

struct vxd_svdag_usage {
    uint64_t n_leaves; /* items in the store, reached by a root or not */
    uint64_t n_inner;
    uint64_t n_blocks;   /* of 8- and 16-bit materials */
    uint64_t node_bytes; /* bytes of those items, which the paper calls raw */
    uint64_t n_bytes;    /* device memory, including index and unused capacity */
    uint64_t
        used_bytes; /* of it without unused words in chunks; slabs and segments that were handed out count fully */
};

/* What the store takes. Thread-safe; while an edit runs the values are of some moment of
 * it. */
void vxd_svdag_get_usage(const struct vxd_svdag *svdag, struct vxd_svdag_usage *out);

/* Summary of a root. */
struct vxd_svdag_summary {
    uint64_t n_occupied;
    uint64_t n_free;
    /* Nodes of its DAG by height; the side of a node is 2^height voxels, 2 = leaves. */
    uint64_t n_nodes[VXD_SVDAG_MAX_DEPTH + 1];
    uint64_t n_blocks;
    uint64_t node_bytes;
    /* A digest of the voxels alone: equal for equal scenes in any store, on any
     * backend. */
    uint64_t digest[2];
};

/* Visits every node of a root once and checks it. Blocking: for tests, information and
 * snapshots.
 * errors  RESOURCE_EXHAUSTED  no memory for the memo of visited nodes
 *         DATA_LOSS           a node breaks a rule; says which */
enum vxd_status vxd_svdag_verify(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                 uint32_t root, struct vxd_svdag_summary *out,
                                 struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
