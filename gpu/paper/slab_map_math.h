// SPDX-License-Identifier: Apache-2.0
/* The slab index (ASH, section 4.4; SlabHash): what gcc and nvcc must agree on.
 *
 * A bucket is a list of slabs. A slab is 128 bytes, 16 little-endian uint64: 15 places and
 * a link. A place is
 *
 *     bits 32-63  fragment: 32 bits of the key's hash that did not choose the bucket
 *     bits  0-31  delegate: who stands for the key
 *                 0 .. 2^30 - 1  the entry of that number, which has the key
 *                 2^31 + i       during an insertion: key i of the batch (a claim)
 *
 * or one of the marks EMPTY (never taken since the index was emptied) and ERASED. The link
 * is the number of the list's next slab, NONE, or TAKEN while somebody fetches one.
 *
 * The paper keeps bare delegates, so that every place a search passes costs a visit to the
 * key buffer. Our fragments let all but one in 2^32 / 15 searches visit it once, for the key
 * it finds, or never, for one that is not there. Keys are always compared in the end.
 *
 * Slabs 0 .. n_buckets - 1 head the lists; n_spare more follow and are handed out in order.
 * A place is taken where the first free one, EMPTY or ERASED, was seen on the way along the
 * whole list, and a list is lengthened only when it has none. Hence
 * - no EMPTY place comes before one that is not: searches end at the first EMPTY;
 * - spare slabs in use <= places that are not EMPTY / 15, whatever the keys: with at most
 *   max_erased marks left between operations the spare slabs below never run out while
 *   entries fit the capacity;
 * - during one insertion places only go from free to taken, so of two who insert the same
 *   key one finds the other's claim: the later of them to read the earlier place.
 *
 * Bytes an entry of capacity: 16 for the buckets (8 entries each when full) and 10.7 spare. */
#ifndef VXD_GPU_PAPER_SLAB_MAP_MATH_H
#define VXD_GPU_PAPER_SLAB_MAP_MATH_H

#include "gpu/hash/hash_math.h"

#ifdef __cplusplus
extern "C" {
#endif
/* slab_map_cpu.c and slab_map.cu: the index on each backend. */
extern const struct vxd_hash_ops vxd_paper_slab_map_cpu;
extern const struct vxd_hash_ops vxd_paper_slab_map_cuda;
#ifdef __cplusplus
}
#endif

#define VXD_SLAB_PLACES 15
#define VXD_SLAB_LINK 15 /* which of a slab's words is the link */
#define VXD_SLAB_WORDS 16
#define VXD_SLAB_BYTES ((size_t)128)
#define VXD_SLAB_FILL 8 /* entries a bucket, on average, in a full map */

#define VXD_SLAB_EMPTY (~(uint64_t)0)
#define VXD_SLAB_ERASED ((uint64_t)0x7fffffff)
#define VXD_SLAB_CLAIM ((uint32_t)1 << 31)

#define VXD_SLAB_NONE (~(uint64_t)0) /* a link: the list ends; bytes 0xff, as EMPTY */
#define VXD_SLAB_TAKEN (~(uint64_t)1)

/* In place numbers (slab * 16 + place): none. There are at most 2^32 - 2^28 of them. */
#define VXD_SLAB_NO_PLACE UINT32_MAX

/* counters.scratch[...] of the slab index. */
enum vxd_slab_counter {
    VXD_SLAB_WORN = 0,   /* not 0: the index is to be rebuilt by what follows */
    VXD_SLAB_FAILED = 1, /* not 0: a key found no place, or no number */
    VXD_SLAB_N_NEW = 2,  /* numbers given by an insertion */
    VXD_SLAB_N_DONE = 3, /* blocks that are through with a rebuild */
    VXD_SLAB_BASE = 4    /* n_live before an insertion */
};

struct vxd_slab_shape {
    uint32_t n_buckets;
    uint32_t n_spare;
    uint32_t max_erased; /* marks an operation may leave; with more the index is worn */
};

/* Everything an operation touches; jobs and kernels get it by value. */
struct vxd_slab_view {
    uint64_t *words; /* VXD_SLAB_WORDS a slab */
    uint8_t *keys;
    uint32_t *live;
    const uint32_t *heap;
    struct vxd_hash_counters *counters;
    uint32_t capacity;
    struct vxd_slab_shape shape;
    struct vxd_key_form form;
};

/* Where a key belongs. */
struct vxd_slab_home {
    uint32_t bucket;
    uint32_t fragment;
};

/* capacity <= VXD_HASHMAP_MAX_CAPACITY. */
VXD_HD struct vxd_slab_shape vxd_slab_shape_of(size_t capacity)
{
    struct vxd_slab_shape shape;

    shape.max_erased = (uint32_t)(capacity / 4);
    shape.n_buckets = (uint32_t)((capacity + VXD_SLAB_FILL - 1) / VXD_SLAB_FILL);
    shape.n_buckets = shape.n_buckets == 0 ? 1 : shape.n_buckets;
    shape.n_spare =
        (uint32_t)((capacity + shape.max_erased + VXD_SLAB_PLACES - 1) / VXD_SLAB_PLACES);
    return shape;
}

VXD_HD size_t vxd_slab_count(const struct vxd_slab_shape *shape)
{
    return (size_t)shape->n_buckets + shape->n_spare;
}

VXD_HD struct vxd_slab_home vxd_slab_home_of(const struct vxd_slab_shape *shape,
                                             uint64_t tag)
{
    uint64_t hash = vxd_mix64(tag);
    struct vxd_slab_home home;

    home.bucket = (uint32_t)((hash >> 32) * shape->n_buckets >> 32);
    home.fragment = (uint32_t)hash;
    return home;
}

VXD_HD uint64_t vxd_slab_place(uint32_t fragment, uint32_t delegate)
{
    return (uint64_t)fragment << 32 | delegate;
}

VXD_HD uint32_t vxd_slab_delegate(uint64_t place)
{
    return (uint32_t)place;
}

/* EMPTY or ERASED: no entry and no claim ends in 31 ones. */
VXD_HD bool vxd_slab_is_free(uint64_t place)
{
    return ((uint32_t)place & 0x7fffffffu) == 0x7fffffffu;
}

VXD_HD bool vxd_slab_matches(uint64_t place, uint32_t fragment)
{
    return place >> 32 == fragment && !vxd_slab_is_free(place);
}

/* The key a taken place stands for; `batch` are the rows of the insertion under way. */
VXD_HD const void *vxd_slab_key(const struct vxd_slab_view *view, const void *batch,
                                uint64_t place)
{
    uint32_t delegate = vxd_slab_delegate(place);

    if ((delegate & VXD_SLAB_CLAIM) != 0) {
        return (const uint8_t *)batch +
               (size_t)(delegate & ~VXD_SLAB_CLAIM) * (size_t)view->form.row_bytes;
    }
    return view->keys + (size_t)delegate * (size_t)view->form.row_bytes;
}

VXD_HD bool vxd_slab_lives(const uint32_t *live, uint32_t entry)
{
    return (live[entry / 32] >> entry % 32 & 1) != 0;
}

static inline struct vxd_slab_view vxd_slab_view_of(const struct vxd_hashmap *map)
{
    struct vxd_slab_view view;

    view.words = (uint64_t *)map->index.ptr;
    view.keys = (uint8_t *)map->keys.ptr;
    view.live = (uint32_t *)map->live.ptr;
    view.heap = (const uint32_t *)map->heap.ptr;
    view.counters = (struct vxd_hash_counters *)map->counters.ptr;
    view.capacity = (uint32_t)map->capacity;
    view.shape = vxd_slab_shape_of(map->capacity);
    view.form = map->form;
    return view;
}

static inline size_t vxd_slab_index_bytes(const struct vxd_key_form *form,
                                          size_t capacity)
{
    struct vxd_slab_shape shape;

    (void)form;
    if (capacity > VXD_HASHMAP_MAX_CAPACITY) {
        return 0;
    }
    shape = vxd_slab_shape_of(capacity);
    return vxd_slab_count(&shape) * VXD_SLAB_BYTES;
}

static inline size_t vxd_slab_n_places(const struct vxd_hashmap *map, size_t capacity)
{
    struct vxd_slab_shape shape = vxd_slab_shape_of(capacity);

    (void)map;
    return vxd_slab_count(&shape) * VXD_SLAB_PLACES;
}

#endif
