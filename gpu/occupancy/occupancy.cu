// SPDX-License-Identifier: Apache-2.0
/* The steps of occupancy on a GPU: one kernel, a form for each step, a thread an element.
 *
 * An octet of a scan reads 8 bytes of the layer and 12 of its leaf, which eight threads
 * share, and APPLY writes 8: about 30 bytes for eight voxels. Leaves are sorted, so the
 * octets of a warp are in one or two rows. */
#define VXD_SVDAG_ANY_FORM 1
#include "gpu/core/core_cuda.h"
#include "gpu/occupancy/occupancy_backends.h"

enum {
    THREADS = 256
};

template <int STEP>
static __global__ void __launch_bounds__(THREADS)
    step_kernel(const __grid_constant__ struct vxd_occupancy_work work, uint64_t n)
{
    const uint64_t n_threads = (uint64_t)gridDim.x * THREADS;

    for (uint64_t k = (uint64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += n_threads) {
        const uint64_t i = work.first + k;

        switch (STEP) {
        case VXD_OCCUPANCY_NUMBER:
            vxd_occupancy_number(&work, i);
            break;
        case VXD_OCCUPANCY_MARK:
            vxd_occupancy_mark(&work, i);
            break;
        case VXD_OCCUPANCY_JOIN:
            vxd_occupancy_join(&work, i);
            break;
        case VXD_OCCUPANCY_BEGIN:
            vxd_occupancy_begin(&work, i);
            break;
        case VXD_OCCUPANCY_JUDGE:
            vxd_occupancy_judge(&work, i);
            break;
        case VXD_OCCUPANCY_FLAG:
            vxd_occupancy_flag(&work, i);
            break;
        case VXD_OCCUPANCY_LIST:
            vxd_occupancy_list(&work, i);
            break;
        case VXD_OCCUPANCY_APPLY:
            vxd_occupancy_apply_octet(&work, i);
            break;
        case VXD_OCCUPANCY_FOLLOW:
            vxd_occupancy_follow_block(&work, i);
            break;
        case VXD_OCCUPANCY_COUNT:
            vxd_occupancy_count_block(&work, i);
            break;
        case VXD_OCCUPANCY_LOCATE:
            vxd_occupancy_locate(&work, i);
            break;
        case VXD_OCCUPANCY_READ:
            vxd_occupancy_read(&work, i);
            break;
        case VXD_OCCUPANCY_KEY:
            vxd_occupancy_key(&work, i);
            break;
        case VXD_OCCUPANCY_FADE_JUDGE:
            vxd_occupancy_fade_judge(&work, i);
            break;
        case VXD_OCCUPANCY_FADE_LIST:
            vxd_occupancy_fade_list(&work, i);
            break;
        case VXD_OCCUPANCY_FADE:
            vxd_occupancy_fade(&work, i);
            break;
        case VXD_OCCUPANCY_UNPIN_MARK:
            vxd_occupancy_unpin_mark(&work, i);
            break;
        case VXD_OCCUPANCY_UNPIN_LIST:
            vxd_occupancy_unpin_list(&work, i);
            break;
        case VXD_OCCUPANCY_VOTE_KEY:
            vxd_occupancy_vote_key(&work, i);
            break;
        case VXD_OCCUPANCY_VOTE_BEGIN:
            vxd_occupancy_vote_begin(&work, i);
            break;
        case VXD_OCCUPANCY_VOTE:
            vxd_occupancy_vote_leaf(&work, i);
            break;
        case VXD_OCCUPANCY_VOTE_UNDO:
            vxd_occupancy_vote_undo(&work, i);
            break;
        }
    }
}

template <int STEP>
static enum vxd_status launch(struct vxd_queue *queue,
                              const struct vxd_occupancy_work *work, uint64_t n,
                              struct vxd_err *err)
{
    const uint64_t most = (uint64_t)queue->context->info.n_multiprocessors * 32;
    const uint64_t needed = (n + THREADS - 1) / THREADS;
    enum vxd_status status = vxd_cuda_enter(queue->context, err);

    if (status != VXD_OK || n == 0) {
        return status;
    }
    step_kernel<STEP><<<(unsigned)(needed < most ? needed : most), THREADS, 0,
                        (cudaStream_t)queue->stream>>>(*work, n);
    return vxd_cuda_launched(queue->context, "step_kernel", err);
}

typedef enum vxd_status (*launch_fn)(struct vxd_queue *queue,
                                     const struct vxd_occupancy_work *work, uint64_t n,
                                     struct vxd_err *err);

enum vxd_status vxd_occupancy_run_cuda(struct vxd_queue *queue,
                                       enum vxd_occupancy_step step,
                                       const struct vxd_occupancy_work *work, uint64_t n,
                                       struct vxd_err *err)
{
    static const launch_fn launches[VXD_OCCUPANCY_N_STEPS] = {
        launch<VXD_OCCUPANCY_NUMBER>,     launch<VXD_OCCUPANCY_MARK>,
        launch<VXD_OCCUPANCY_JOIN>,       launch<VXD_OCCUPANCY_BEGIN>,
        launch<VXD_OCCUPANCY_JUDGE>,      launch<VXD_OCCUPANCY_FLAG>,
        launch<VXD_OCCUPANCY_LIST>,       launch<VXD_OCCUPANCY_APPLY>,
        launch<VXD_OCCUPANCY_FOLLOW>,     launch<VXD_OCCUPANCY_COUNT>,
        launch<VXD_OCCUPANCY_LOCATE>,     launch<VXD_OCCUPANCY_READ>,
        launch<VXD_OCCUPANCY_KEY>,        launch<VXD_OCCUPANCY_FADE_JUDGE>,
        launch<VXD_OCCUPANCY_FADE_LIST>,  launch<VXD_OCCUPANCY_FADE>,
        launch<VXD_OCCUPANCY_UNPIN_MARK>, launch<VXD_OCCUPANCY_UNPIN_LIST>,
        launch<VXD_OCCUPANCY_VOTE_KEY>,   launch<VXD_OCCUPANCY_VOTE_BEGIN>,
        launch<VXD_OCCUPANCY_VOTE>,       launch<VXD_OCCUPANCY_VOTE_UNDO>};

    return launches[step](queue, work, n, err);
}
