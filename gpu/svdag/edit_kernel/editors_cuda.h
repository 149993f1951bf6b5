// SPDX-License-Identifier: Apache-2.0
/* Editors as the kernel calls them. The functions of brush_math.h decide what becomes of
 * cubes and voxels, on the CPU too; a type here binds them to one kind of operations, for
 * one lane. Members:
 *
 * state           what the editor knows of a cube; begin sets that of the root, child
 *                 that of a child
 * CLASSIFIES      classify may decide about all children of a cube at once,
 * CLASSIFIES_ALL  and does so for every cube
 * HAS_BOUNDS      bounds says where it edits
 * visit           what becomes of a cube: it is kept, set, or open
 * edit_key        words that are equal for cubes which it edits the same way; how many
 * leaf            edits a leaf */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_EDITORS_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_EDITORS_CUDA_H

#include "gpu/svdag/brush/brush_math.h"
#include "gpu/svdag/store/store_cuda.h"

/* The first and last voxels of the scene along each axis whose centres are at `from` or
 * behind and before `end`, in units. False: there are none. */
static __device__ __forceinline__ bool
vxd_svdag_clip_voxels(int depth, const int64_t from[3], const int64_t end[3],
                      uint32_t low[3], uint32_t high[3])
{
    const int64_t side = (int64_t)1 << depth;

    for (int axis = 0; axis < 3; axis++) {
        const int64_t first = vxd_svdag_voxel_from(from[axis]);
        const int64_t behind = vxd_svdag_voxel_from(end[axis]);

        if (first >= behind || behind <= 0 || first >= side) {
            return false;
        }
        low[axis] = (uint32_t)vxd_svdag_within(first, 0, side - 1);
        high[axis] = (uint32_t)vxd_svdag_within(behind - 1, 0, side - 1);
    }
    return true;
}

/* Up to 64 operations on shapes, with lists of voxels among them. */
struct vxd_svdag_lists_editor_cuda {
    typedef struct vxd_svdag_shapes_state state;
    const struct vxd_svdag_shapes_run *run; /* in device memory */
    static const bool CLASSIFIES = true;
    static const bool CLASSIFIES_ALL = false;
    static const bool HAS_BOUNDS = false;

    __device__ __forceinline__ bool classify(const struct vxd_svdag_cube *cube,
                                             const state *at,
                                             struct vxd_svdag_classes *classes) const
    {
        return vxd_svdag_shapes_classify(run, cube, at->partial, at->inside, classes);
    }
    __device__ __forceinline__ void begin(const struct vxd_svdag_view *view,
                                          uint32_t root, state *at) const
    {
        (void)view;
        (void)root;
        vxd_svdag_shapes_begin_state(run, at);
    }
    __device__ __forceinline__ enum vxd_svdag_visit
    visit(const struct vxd_svdag_view *view, const struct vxd_svdag_cube *cube,
          uint32_t old, state *at, uint32_t *uniform) const
    {
        return vxd_svdag_shapes_visit(run, view, cube, old, at, uniform);
    }
    __device__ __forceinline__ int edit_key(const struct vxd_svdag_cube *cube,
                                            const state *at, uint64_t *words) const
    {
        return vxd_svdag_shapes_edit_key(run, cube, at, words);
    }
    __device__ __forceinline__ void child(const struct vxd_svdag_cube *cube,
                                          const state *from, int octant, state *to) const
    {
        (void)cube;
        (void)octant;
        *to = *from;
    }
    __device__ __forceinline__ void leaf(const struct vxd_svdag_view *view,
                                         const struct vxd_svdag_cube *cube,
                                         const state *at,
                                         struct vxd_svdag_leaf *leaf) const
    {
        (void)view;
        vxd_svdag_shapes_edit_leaf(run, cube, at, leaf);
    }
};

/* The same without lists: a fifth of the state. */
struct vxd_svdag_shapes_editor_cuda {
    struct state {
        uint64_t partial;
        uint64_t inside;
    };
    const struct vxd_svdag_shapes_run *run; /* in device memory */
    static const bool CLASSIFIES = true;
    static const bool CLASSIFIES_ALL = false;
    static const bool HAS_BOUNDS = false;

    __device__ __forceinline__ bool classify(const struct vxd_svdag_cube *cube,
                                             const state *at,
                                             struct vxd_svdag_classes *classes) const
    {
        return vxd_svdag_shapes_classify(run, cube, at->partial, at->inside, classes);
    }

    /* Only operations with lists read the ranges, which are left out here. */
    static __device__ __forceinline__ void widen(const state *from,
                                                 struct vxd_svdag_shapes_state *to)
    {
        to->partial = from->partial;
        to->inside = from->inside;
    }
    __device__ __forceinline__ void begin(const struct vxd_svdag_view *view,
                                          uint32_t root, state *at) const
    {
        struct vxd_svdag_shapes_state wide;

        (void)view;
        (void)root;
        vxd_svdag_shapes_begin_state(run, &wide);
        at->partial = wide.partial;
        at->inside = wide.inside;
    }
    __device__ __forceinline__ enum vxd_svdag_visit
    visit(const struct vxd_svdag_view *view, const struct vxd_svdag_cube *cube,
          uint32_t old, state *at, uint32_t *uniform) const
    {
        struct vxd_svdag_shapes_state wide;
        enum vxd_svdag_visit visit;

        widen(at, &wide);
        visit = vxd_svdag_shapes_visit(run, view, cube, old, &wide, uniform);
        at->partial = wide.partial;
        at->inside = wide.inside;
        return visit;
    }
    __device__ __forceinline__ int edit_key(const struct vxd_svdag_cube *cube,
                                            const state *at, uint64_t *words) const
    {
        struct vxd_svdag_shapes_state wide;

        widen(at, &wide);
        return vxd_svdag_shapes_edit_key(run, cube, &wide, words);
    }
    __device__ __forceinline__ void child(const struct vxd_svdag_cube *cube,
                                          const state *from, int octant, state *to) const
    {
        (void)cube;
        (void)octant;
        *to = *from;
    }
    __device__ __forceinline__ void leaf(const struct vxd_svdag_view *view,
                                         const struct vxd_svdag_cube *cube,
                                         const state *at,
                                         struct vxd_svdag_leaf *leaf) const
    {
        struct vxd_svdag_shapes_state wide;

        (void)view;
        widen(at, &wide);
        vxd_svdag_shapes_edit_leaf(run, cube, &wide, leaf);
    }
};

/* One ball that overwrites what stands there. */
struct vxd_svdag_ball_editor_cuda {
    struct state {
        uint32_t none;
    };
    struct vxd_svdag_shape shape;
    enum vxd_svdag_action action;
    uint32_t uniform; /* what becomes of a cube in it */
    uint16_t value;
    bool has_materials;
    static const bool CLASSIFIES = true;
    static const bool CLASSIFIES_ALL = true;
    static const bool HAS_BOUNDS = false;

    __device__ __forceinline__ bool classify(const struct vxd_svdag_cube *cube,
                                             const state *at,
                                             struct vxd_svdag_classes *classes) const
    {
        (void)at;
        vxd_svdag_ball_classify(&shape, cube, uniform, classes);
        return true;
    }
    __device__ __forceinline__ void begin(const struct vxd_svdag_view *view,
                                          uint32_t root, state *at) const
    {
        (void)view;
        (void)root;
        at->none = 0;
    }
    __device__ __forceinline__ int edit_key(const struct vxd_svdag_cube *cube,
                                            const state *at, uint64_t *words) const
    {
        (void)cube;
        (void)at;
        (void)words;
        return 0;
    }
    /* By all lanes of a warp, eight a cube, each with one child: how its child lies to the
     * ball. The term of an axis is the same for four children, so six lanes compute one
     * term each. */
    __device__ __forceinline__ enum vxd_svdag_relation
    relation(const struct vxd_svdag_cube *cube) const
    {
        const uint32_t octant = threadIdx.x % 8;
        const uint32_t axis = octant % 3;
        const int64_t side = (int64_t)VXD_SVDAG_UNIT << (cube->height - 1);
        const uint64_t limit = vxd_svdag_square(shape.r);
        const struct vxd_svdag_extent extent =
            vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);
        const int64_t first = axis == 0   ? extent.low[0] - shape.a[0]
                              : axis == 1 ? extent.low[1] - shape.a[1]
                                          : extent.low[2] - shape.a[2];
        const int64_t low = first + (octant / 3 == 1 ? side : 0);
        unsigned long long terms[2];
        uint64_t nearest;
        uint64_t farthest;
        uint64_t sums[2] = {0, 0};

        vxd_svdag_ball_axis(low, low + side - VXD_SVDAG_UNIT, limit, &nearest, &farthest);
        terms[0] = nearest;
        terms[1] = farthest;
#pragma unroll
        for (uint32_t i = 0; i < 3; i++) {
            const int lane = (int)((threadIdx.x & 24) + i + 3 * (octant >> (2 - i) & 1));

            sums[0] += __shfl_sync(UINT32_MAX, terms[0], lane);
            sums[1] += __shfl_sync(UINT32_MAX, terms[1], lane);
        }
        return sums[0] > limit    ? VXD_SVDAG_OUTSIDE
               : sums[1] <= limit ? VXD_SVDAG_INSIDE
                                  : VXD_SVDAG_PARTIAL;
    }
    /* Voxels of a leaf that it overwrites. */
    __device__ __forceinline__ uint64_t mask(const struct vxd_svdag_cube *cube) const
    {
        const struct vxd_svdag_extent extent =
            vxd_svdag_extent_of(cube->x, cube->y, cube->z, cube->height);

        return vxd_svdag_ball_mask(&shape, &extent);
    }
    __device__ __forceinline__ void leaf(const struct vxd_svdag_view *view,
                                         const struct vxd_svdag_cube *cube,
                                         const state *at,
                                         struct vxd_svdag_leaf *leaf) const
    {
        const uint64_t voxels = mask(cube);

        (void)view;
        (void)at;
        if (vxd_svdag_leaf_overwrite(action, voxels, leaf) && has_materials &&
            voxels != 0) {
            vxd_svdag_leaf_set_value(leaf, voxels, value);
        }
    }
};

/* A copy. Its source is the root that the edit begins with. */
struct vxd_svdag_copy_editor_cuda {
    typedef struct vxd_svdag_sources state;
    struct vxd_svdag_op op;
    struct vxd_svdag_view view;
    static const bool CLASSIFIES = false;
    static const bool CLASSIFIES_ALL = false;
    static const bool HAS_BOUNDS = true;

    __device__ __forceinline__ bool classify(const struct vxd_svdag_cube *cube,
                                             const state *at,
                                             struct vxd_svdag_classes *classes) const
    {
        (void)cube;
        (void)at;
        (void)classes;
        return false;
    }

    __device__ __forceinline__ struct vxd_svdag_source source(void) const
    {
        return {&op, view, VXD_SVDAG_EMPTY};
    }
    __device__ __forceinline__ void begin(const struct vxd_svdag_view *same,
                                          uint32_t root, state *at) const
    {
        (void)same;
        vxd_svdag_sources_begin(&op, view.depth, root, at);
    }
    __device__ __forceinline__ enum vxd_svdag_visit
    visit(const struct vxd_svdag_view *same, const struct vxd_svdag_cube *cube,
          uint32_t old, state *at, uint32_t *uniform) const
    {
        const struct vxd_svdag_source from = source();

        (void)same;
        return vxd_svdag_copy_visit(&from, cube, old, at, uniform);
    }
    /* The first and the last voxels along each axis that it edits, in the scene. No cube
     * outside is open. False: it is not known. */
    __device__ __forceinline__ bool bounds(int depth, uint32_t low[3],
                                           uint32_t high[3]) const
    {
        return vxd_svdag_clip_voxels(depth, op.shape.low, op.shape.high, low, high);
    }
    /* No cube duplicates another one. */
    __device__ __forceinline__ int edit_key(const struct vxd_svdag_cube *cube,
                                            const state *at, uint64_t *words) const
    {
        (void)cube;
        (void)at;
        (void)words;
        return 0;
    }
    __device__ __forceinline__ void child(const struct vxd_svdag_cube *cube,
                                          const state *from, int octant, state *to) const
    {
        const struct vxd_svdag_source whole = source();

        vxd_svdag_copy_child(&whole, cube, from, octant, to);
    }
    __device__ __forceinline__ void leaf(const struct vxd_svdag_view *same,
                                         const struct vxd_svdag_cube *cube,
                                         const state *at,
                                         struct vxd_svdag_leaf *leaf) const
    {
        const struct vxd_svdag_source from = source();

        (void)same;
        vxd_svdag_copy_edit_leaf(&from, cube, at, leaf);
    }
};

/* Erosion or dilation of the root that the edit begins with. */
struct vxd_svdag_morph_editor_cuda {
    typedef struct vxd_svdag_morph_state state;
    const struct vxd_svdag_op *op; /* in device memory */
    struct vxd_svdag_view view;
    static const bool CLASSIFIES = false;
    static const bool CLASSIFIES_ALL = false;
    static const bool HAS_BOUNDS = false;

    __device__ __forceinline__ bool classify(const struct vxd_svdag_cube *cube,
                                             const state *at,
                                             struct vxd_svdag_classes *classes) const
    {
        (void)cube;
        (void)at;
        (void)classes;
        return false;
    }

    __device__ __forceinline__ struct vxd_svdag_source source(uint32_t root) const
    {
        return {op, view, root};
    }
    __device__ __forceinline__ void begin(const struct vxd_svdag_view *same,
                                          uint32_t root, state *at) const
    {
        const struct vxd_svdag_source from = source(root);

        (void)same;
        vxd_svdag_morph_begin(&from, at);
    }
    __device__ __forceinline__ enum vxd_svdag_visit
    visit(const struct vxd_svdag_view *same, const struct vxd_svdag_cube *cube,
          uint32_t old, state *at, uint32_t *uniform) const
    {
        const struct vxd_svdag_source from = source(VXD_SVDAG_EMPTY);

        (void)same;
        (void)old;
        (void)uniform;
        return vxd_svdag_morph_visit(&from, cube, at);
    }
    /* No cube duplicates another one. */
    __device__ __forceinline__ int edit_key(const struct vxd_svdag_cube *cube,
                                            const state *at, uint64_t *words) const
    {
        (void)cube;
        (void)at;
        (void)words;
        return 0;
    }
    __device__ __forceinline__ void child(const struct vxd_svdag_cube *cube,
                                          const state *from, int octant, state *to) const
    {
        const struct vxd_svdag_source whole = source(VXD_SVDAG_EMPTY);

        (void)cube;
        vxd_svdag_morph_child(&whole, from, octant, to);
    }
    __device__ __forceinline__ void leaf(const struct vxd_svdag_view *same,
                                         const struct vxd_svdag_cube *cube,
                                         const state *at,
                                         struct vxd_svdag_leaf *leaf) const
    {
        const struct vxd_svdag_source from = source(VXD_SVDAG_EMPTY);

        (void)same;
        vxd_svdag_morph_edit_leaf(&from, cube, at, leaf);
    }
};

/* Above this height a cube that is as it was after the edit that is taken back is open,
 * although it is known what it becomes. Equal cubes become one entry (a wall that is
 * taken back has millions of them), while each pair that counts what changed is an entry
 * of its own. */
#define VXD_SVDAG_UNDO_PAIRS_HEIGHT 5

/* An undo. */
struct vxd_svdag_undo_editor_cuda {
    typedef struct vxd_svdag_undo_state state;
    struct vxd_svdag_undo_state roots;
    struct vxd_svdag_view view;
    static const bool CLASSIFIES = false;
    static const bool CLASSIFIES_ALL = false;
    static const bool HAS_BOUNDS = false;

    __device__ __forceinline__ bool classify(const struct vxd_svdag_cube *cube,
                                             const state *at,
                                             struct vxd_svdag_classes *classes) const
    {
        (void)cube;
        (void)at;
        (void)classes;
        return false;
    }

    __device__ __forceinline__ void begin(const struct vxd_svdag_view *same,
                                          uint32_t root, state *at) const
    {
        (void)same;
        (void)root;
        *at = roots;
    }
    __device__ __forceinline__ enum vxd_svdag_visit
    visit(const struct vxd_svdag_view *same, const struct vxd_svdag_cube *cube,
          uint32_t old, state *at, uint32_t *ref) const
    {
        const enum vxd_svdag_visit visit = vxd_svdag_undo_visit(at, old, ref);

        (void)same;
        return visit == VXD_SVDAG_SET && cube->height > VXD_SVDAG_UNDO_PAIRS_HEIGHT &&
                       vxd_svdag_is_node(old) && vxd_svdag_is_node(*ref)
                   ? VXD_SVDAG_DESCEND
                   : visit;
    }
    __device__ __forceinline__ int edit_key(const struct vxd_svdag_cube *cube,
                                            const state *at, uint64_t *words) const
    {
        (void)cube;
        return vxd_svdag_undo_edit_key(at, words);
    }
    __device__ __forceinline__ void child(const struct vxd_svdag_cube *cube,
                                          const state *from, int octant, state *to) const
    {
        (void)cube;
        *to = vxd_svdag_undo_child(&view, from, octant);
    }
    __device__ __forceinline__ void leaf(const struct vxd_svdag_view *same,
                                         const struct vxd_svdag_cube *cube,
                                         const state *at,
                                         struct vxd_svdag_leaf *leaf) const
    {
        (void)same;
        (void)cube;
        vxd_svdag_undo_edit_leaf(&view, at, leaf);
    }
};

#endif
