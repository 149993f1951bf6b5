// SPDX-License-Identifier: Apache-2.0
/* How warps traverse a tree, and lists of cubes that many warps share, so that one
 * region, export or diff is work for a whole device. A tree cube is a cube of the scene
 * with the reference of its node or region.
 *
 * Threads: a warp traverses with a stack in shared memory, 32 cubes a round, a thread
 * each. One block makes a list, height by height, and the warps of the device take its
 * cubes in turn.
 * Bytes: 12 a cube of a stack or a list, and the words of the nodes that are visited. */
#ifndef VXD_GPU_SVDAG_QUERY_TREE_WALK_CUDA_H
#define VXD_GPU_SVDAG_QUERY_TREE_WALK_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/svdag/query/tree_parts_math.h"
#include "gpu/svdag/query/query_backends.h"

/* Kernels that walk over nodes have two compiled forms, for stores that split items and
 * for those that do not. A .cu file instantiates one of them; that of split items defines
 * VXD_SVDAG_SPLIT_FORM before its first include (vxd_svdag_reads_split). */
#if defined(VXD_SVDAG_SPLIT_FORM)
#define VXD_SVDAG_IS_SPLIT_FORM true
#else
#define VXD_SVDAG_IS_SPLIT_FORM false
#endif

/* Blocks for n items (at least 1), `share` to a block. */
static inline enum vxd_status vxd_svdag_blocks_of(size_t n, size_t share,
                                                  unsigned *n_blocks, struct vxd_err *err)
{
    size_t wanted = (n - 1) / share + 1;

    if (wanted > INT32_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n", "%zu are too many at once", n);
    }
    *n_blocks = (unsigned)wanted;
    return VXD_OK;
}

/* The corner of a cube, in leaves, and its height, in one word; its reference is kept
 * beside it. */
enum {
    VXD_SVDAG_PLACE_BITS = VXD_SVDAG_MAX_DEPTH - VXD_SVDAG_LEAF_HEIGHT
};

static __device__ __forceinline__ uint64_t
vxd_svdag_place(const struct vxd_svdag_position *tree_cube)
{
    return (uint64_t)(tree_cube->x >> VXD_SVDAG_LEAF_HEIGHT) |
           (uint64_t)(tree_cube->y >> VXD_SVDAG_LEAF_HEIGHT) << VXD_SVDAG_PLACE_BITS |
           (uint64_t)(tree_cube->z >> VXD_SVDAG_LEAF_HEIGHT)
               << (2 * VXD_SVDAG_PLACE_BITS) |
           (uint64_t)tree_cube->height << (3 * VXD_SVDAG_PLACE_BITS);
}

static __device__ __forceinline__ struct vxd_svdag_position
vxd_svdag_tree_cube_of(uint32_t ref, uint64_t place)
{
    uint32_t mask = (1u << VXD_SVDAG_PLACE_BITS) - 1;
    struct vxd_svdag_position tree_cube;

    tree_cube.ref = ref;
    tree_cube.x = ((uint32_t)place & mask) << VXD_SVDAG_LEAF_HEIGHT;
    tree_cube.y = ((uint32_t)(place >> VXD_SVDAG_PLACE_BITS) & mask)
                  << VXD_SVDAG_LEAF_HEIGHT;
    tree_cube.z = ((uint32_t)(place >> (2 * VXD_SVDAG_PLACE_BITS)) & mask)
                  << VXD_SVDAG_LEAF_HEIGHT;
    tree_cube.height = (int)(place >> (3 * VXD_SVDAG_PLACE_BITS));
    return tree_cube;
}

/* The smallest cube that holds an area, which is not empty, and what stands there; no
 * lower than a height. */
static __device__ __forceinline__ struct vxd_svdag_position
vxd_svdag_top_of(const struct vxd_svdag_view *view, uint32_t root,
                 const struct vxd_svdag_area *area, int least)
{
    struct vxd_svdag_subtrees subtrees =
        vxd_svdag_subtrees_of(area, min(least, view->depth));

    return vxd_svdag_position_at(view, root, subtrees.x, subtrees.y, subtrees.z,
                                 subtrees.height + subtrees.n_levels);
}

/* The octants of an inner or uniform reference that are not empty. */
static __device__ __forceinline__ uint32_t
vxd_svdag_child_mask(const struct vxd_svdag_view *view, uint32_t ref)
{
    return vxd_svdag_is_node(ref) ? vxd_svdag_words(view, ref)[0] & 0xffu : 0xffu;
}

/* --- a warp's traversal ---------------------------------------------------------------- */

/* A stack of cubes that are to be visited, in Morton order from its top. A round takes up
 * to 32 of them, a thread each, and pushes what stands below. Of n cubes, m are taken so
 * that n + 7 m fit below the spare entries. Where not even one fits, one is taken, and
 * the warp goes depth first below it: that takes seven more cubes a height. */
#define VXD_SVDAG_WALK_WARPS 4 /* of a block */
#define VXD_SVDAG_WALK_THREADS (32 * VXD_SVDAG_WALK_WARPS)
#define VXD_SVDAG_WALK_CAPACITY 512
#define VXD_SVDAG_WALK_SPARE (7 * VXD_SVDAG_PLACE_BITS)

/* A warp's, in shared memory. */
struct vxd_svdag_walk {
    uint64_t places[VXD_SVDAG_WALK_CAPACITY];
    uint32_t refs[VXD_SVDAG_WALK_CAPACITY];
};

/* How many of n cubes a round takes; n is not 0. */
static __device__ __forceinline__ uint32_t vxd_svdag_walk_share(uint32_t n)
{
    uint32_t capacity = VXD_SVDAG_WALK_CAPACITY - VXD_SVDAG_WALK_SPARE;
    uint32_t most = n + 7 > capacity ? 1 : (capacity - n) / 7;

    return min(n, min(most, 32u));
}

/* A stack of one cube. By all threads of the warp, like everything below. */
static __device__ __forceinline__ uint32_t vxd_svdag_walk_begin(
    struct vxd_svdag_walk *walk, const struct vxd_svdag_position *tree_cube)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        walk->refs[0] = tree_cube->ref;
        walk->places[0] = vxd_svdag_place(tree_cube);
    }
    __syncwarp();
    return 1;
}

/* Pushes on n cubes, in the order of threads: the cube itself (stays), or its children at
 * `octants`. Returns how many there are then. */
static __device__ __forceinline__ uint32_t vxd_svdag_walk_put(
    const struct vxd_svdag_view *view, struct vxd_svdag_walk *walk, uint32_t n,
    const struct vxd_svdag_position *tree_cube, bool stays, uint32_t child_mask)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t count = stays ? 1 : (uint32_t)__popc(child_mask);
    uint32_t end = count;
    uint32_t at;

    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(UINT32_MAX, end, step);

        end += lane >= step ? other : 0;
    }
    n += __shfl_sync(UINT32_MAX, end, 31);
    at = n - 1 - (end - count);
    /* Every thread has read what it took. */
    __syncwarp();
    if (stays) {
        walk->refs[at] = tree_cube->ref;
        walk->places[at] = vxd_svdag_place(tree_cube);
    } else {
        for (uint32_t rest = child_mask; rest != 0; rest &= rest - 1, at--) {
            struct vxd_svdag_position child =
                vxd_svdag_tree_cube_child(view, tree_cube, __ffs(rest) - 1);

            walk->refs[at] = child.ref;
            walk->places[at] = vxd_svdag_place(&child);
        }
    }
    __syncwarp();
    return n;
}

/* Traverses the tree below a cube. visitor->visit(cube, &octants) is called for each
 * cube, in any order, and sets at which octants the traversal goes on; there are none
 * before. visitor->is_over() ends it: all threads call it between rounds, and all get the
 * same answer. */
template <typename VISITOR>
static __device__ __forceinline__ void
vxd_svdag_walk_run(const struct vxd_svdag_view *view, struct vxd_svdag_walk *walk,
                   const struct vxd_svdag_position *from, VISITOR *visitor)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t n = vxd_svdag_walk_begin(walk, from);

    while (n > 0 && !visitor->is_over()) {
        uint32_t share = vxd_svdag_walk_share(n);
        struct vxd_svdag_position tree_cube = *from;
        uint32_t child_mask = 0;

        if (lane < share) {
            tree_cube = vxd_svdag_tree_cube_of(walk->refs[n - 1 - lane],
                                               walk->places[n - 1 - lane]);
            visitor->visit(&tree_cube, &child_mask);
        }
        n = vxd_svdag_walk_put(view, walk, n - share, &tree_cube, false, child_mask);
    }
}

/* The sum over a warp, for all of its threads. */
static __device__ __forceinline__ uint64_t vxd_svdag_warp_sum(uint64_t value)
{
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(UINT32_MAX, value, step);
    }
    return value;
}

/* --- lists of cubes -------------------------------------------------------------------- */

#define VXD_SVDAG_TREE_CUBES_THREADS 1024

/* A list in scratch memory (query_backends.h), and the one that it is made from. */
struct vxd_svdag_tree_cubes {
    uint32_t *head; /* n, and the number of the list, 0 or 1 */
    uint64_t *places[2];
    uint32_t *refs[2];
};

static __device__ __forceinline__ struct vxd_svdag_tree_cubes
vxd_svdag_tree_cubes_at(void *scratch, size_t i)
{
    unsigned char *at = (unsigned char *)scratch + i * VXD_SVDAG_TREE_CUBES_BYTES;
    struct vxd_svdag_tree_cubes tree_cubes;

    tree_cubes.head = (uint32_t *)at;
    at += VXD_SVDAG_TREE_CUBES_HEAD_BYTES;
    for (int side = 0; side < 2; side++) {
        tree_cubes.places[side] =
            (uint64_t *)at + (size_t)side * VXD_SVDAG_TREE_CUBES_MOST;
    }
    at += (size_t)2 * VXD_SVDAG_TREE_CUBES_MOST * sizeof(uint64_t);
    for (int side = 0; side < 2; side++) {
        tree_cubes.refs[side] = (uint32_t *)at + (size_t)side * VXD_SVDAG_TREE_CUBES_MOST;
    }
    return tree_cubes;
}

static __device__ __forceinline__ struct vxd_svdag_position
vxd_svdag_tree_cubes_get(const struct vxd_svdag_tree_cubes *tree_cubes, int side,
                         uint32_t i)
{
    return vxd_svdag_tree_cube_of(tree_cubes->refs[side][i], tree_cubes->places[side][i]);
}

/* The sum over the threads before this one; over all VXD_SVDAG_TREE_CUBES_THREADS in
 * *total. */
static __device__ __forceinline__ uint64_t vxd_svdag_block_before(uint64_t value,
                                                                  uint64_t *total)
{
    __shared__ uint64_t warps[32];
    uint32_t lane = threadIdx.x % 32;
    uint32_t warp = threadIdx.x / 32;
    uint64_t end = value;
    uint64_t of_warp;

    for (uint32_t step = 1; step < 32; step *= 2) {
        uint64_t other = __shfl_up_sync(UINT32_MAX, end, step);

        end += lane >= step ? other : 0;
    }
    if (lane == 31) {
        warps[warp] = end;
    }
    __syncthreads();
    of_warp = warps[lane];
    /* All have read before anybody's next call writes. */
    __syncthreads();
    *total = vxd_svdag_warp_sum(of_warp);
    return vxd_svdag_warp_sum(lane < warp ? of_warp : 0) + end - value;
}

/* The octants of a cube that the filter lets pass. */
template <typename FILTER>
static __device__ __forceinline__ uint32_t vxd_svdag_tree_cube_child_mask(
    const struct vxd_svdag_view *view, const struct vxd_svdag_position *tree_cube,
    const FILTER *filter)
{
    uint32_t child_mask = 0;

    for (uint32_t rest = vxd_svdag_child_mask(view, tree_cube->ref); rest != 0;
         rest &= rest - 1) {
        int octant = __ffs(rest) - 1;
        struct vxd_svdag_position child =
            vxd_svdag_tree_cube_child(view, tree_cube, octant);

        child_mask |= filter->may(&child) ? 1u << octant : 0;
    }
    return child_mask;
}

/* Makes a list, by one block of VXD_SVDAG_TREE_CUBES_THREADS: the cubes of one height that
 * filter->may lets pass, in Morton order. The height is as low as the cubes surely fit,
 * but not below `least`. Together they hold all of the area. */
template <typename FILTER>
static __device__ __forceinline__ void vxd_svdag_tree_cubes_make(
    const struct vxd_svdag_view *view, uint32_t root, const struct vxd_svdag_area *area,
    int least, const FILTER *filter, const struct vxd_svdag_tree_cubes *tree_cubes)
{
    uint32_t n = 0;
    int side = 0;
    int height = 0;

    if (!vxd_svdag_area_is_empty(area)) {
        struct vxd_svdag_position tree_cube = vxd_svdag_top_of(view, root, area, least);

        height = tree_cube.height;
        n = filter->may(&tree_cube) ? 1 : 0;
        if (threadIdx.x == 0) {
            tree_cubes->refs[0][0] = tree_cube.ref;
            tree_cubes->places[0][0] = vxd_svdag_place(&tree_cube);
        }
    }
    for (; n > 0 && n <= VXD_SVDAG_TREE_CUBES_MOST / 8 && height > least; height--) {
        uint32_t n_next = 0;

        __syncthreads();
        for (uint32_t base = 0; base < n; base += VXD_SVDAG_TREE_CUBES_THREADS) {
            struct vxd_svdag_position tree_cube = {VXD_SVDAG_EMPTY, 0, 0, 0, height};
            uint32_t child_mask = 0;
            uint64_t total;
            uint32_t at;

            if (base + threadIdx.x < n) {
                tree_cube =
                    vxd_svdag_tree_cubes_get(tree_cubes, side, base + threadIdx.x);
                child_mask = vxd_svdag_tree_cube_child_mask(view, &tree_cube, filter);
            }
            at = n_next +
                 (uint32_t)vxd_svdag_block_before((uint64_t)__popc(child_mask), &total);
            for (; child_mask != 0; child_mask &= child_mask - 1, at++) {
                struct vxd_svdag_position child =
                    vxd_svdag_tree_cube_child(view, &tree_cube, __ffs(child_mask) - 1);

                tree_cubes->refs[1 - side][at] = child.ref;
                tree_cubes->places[1 - side][at] = vxd_svdag_place(&child);
            }
            n_next += (uint32_t)total;
        }
        n = n_next;
        side = 1 - side;
    }
    if (threadIdx.x == 0) {
        tree_cubes->head[0] = n;
        tree_cubes->head[1] = (uint32_t)side;
    }
}

#endif
