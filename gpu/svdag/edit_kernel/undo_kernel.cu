// SPDX-License-Identifier: Apache-2.0
/* Passes of undos: the kernel of pass_cuda.h with the editor of undo_math.h. */
#include "gpu/svdag/edit_kernel/edit_launch_cuda.h"
#include "gpu/svdag/brush/brush_math.h"

/* Above this height a cube that is as after the edit is gone into, although it is known what
 * it becomes: of cubes that are alike (a wall that is taken back has millions) one is a row,
 * while the pairs that count what changed are a row each. */
#define PAIRS_HEIGHT 5

struct undo_cuda {
    typedef struct vxd_svdag_undo_state state;
    struct vxd_svdag_undo_state roots;
    struct vxd_svdag_view view;
    static const bool CLASSIFIES = false; /* of all parts of a cube at once */
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
        return visit == VXD_SVDAG_SET && cube->height > PAIRS_HEIGHT &&
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

static __global__ void __launch_bounds__(VXD_SVDAG_BLOCK_THREADS,
                                         vxd_svdag_blocks_per_sm<struct undo_cuda>())
    undo_kernel(const __grid_constant__ struct vxd_svdag_kernel_args args,
                const __grid_constant__ struct undo_cuda editor)
{
    vxd_svdag_run_edit_kernel<VXD_SVDAG_KERNEL_STORE>(&args, editor);
}

size_t VXD_SVDAG_KERNEL_FORM(vxd_svdag_undo_entry_bytes)(void)
{
    return sizeof(struct vxd_svdag_frontier_entry<undo_cuda::state>);
}

enum vxd_status VXD_SVDAG_KERNEL_FORM(vxd_svdag_launch_undo)(
    struct vxd_queue *queue, const struct vxd_svdag_kernel_args *args,
    const struct vxd_svdag_undo_state *roots, struct vxd_err *err)
{
    static struct vxd_svdag_kernel kernel = {(const void *)undo_kernel,
                                             vxd_svdag_shared_bytes<struct undo_cuda>(),
                                             "undo_kernel", 0};
    const struct undo_cuda editor = {*roots, args->view};

    return vxd_svdag_launch_edit_kernel(queue, &kernel, args, &editor, err);
}
