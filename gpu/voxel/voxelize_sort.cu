// SPDX-License-Identifier: Apache-2.0
/* Sorting points by voxel, and ranking the voxels: CUB over the layouts of voxelize_cuda.h.
 *
 * A one-sweep pass takes 8 bits and reads and writes every point once: 16 bytes in PACKED and
 * KEYS, 24 in PAIRS, so a call over b bits costs n (8 + ceil(b / 8) * 16 or 24) bytes. The index
 * may be packed below the key because the sort is stable and skips those bits. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "gpu/voxel/voxelize_cuda.h"

#define N_THREADS 256

/* 1 where a place begins another voxel. It does not branch on loaded values, so that a
 * thread's loads are issued together. */
template <bool IS_WIDE> struct voxel_begins {
    struct vxd_sorted sorted;
    uint32_t n_batch;

    __device__ uint32_t operator()(uint32_t place) const
    {
        uint32_t before = place > 0 ? place - 1 : 0;
        uint64_t key = sorted.keys[place] >> sorted.index_bits;
        uint64_t key_before = sorted.keys[before] >> sorted.index_bits;
        bool differs = place == 0 || key != key_before;
        uint32_t sample;

        if (IS_WIDE) {
            sample = sorted.samples[place];
            differs = differs || sample != sorted.samples[before];
        } else {
            sample = (uint32_t)(key >> sorted.key_bits);
        }
        return differs && sample < n_batch ? 1 : 0;
    }
};

template <bool IS_WIDE>
static cudaError_t rank_scan_form(void *cub, size_t *cub_bytes,
                                  const struct vxd_sorted *sorted, uint32_t n_batch,
                                  uint32_t *ranks, size_t n, cudaStream_t stream)
{
    struct voxel_begins<IS_WIDE> begins = {
        *sorted, n_batch
    };

    return cub::DeviceScan::InclusiveSum(
        cub, *cub_bytes,
        thrust::make_transform_iterator(thrust::make_counting_iterator((uint32_t)0),
                                        begins),
        ranks, (uint32_t)n, stream);
}

static cudaError_t rank_scan(void *cub, size_t *cub_bytes,
                             const struct vxd_voxel_plan *plan,
                             const struct vxd_sorted *sorted, uint32_t n_batch,
                             uint32_t *ranks, size_t n, cudaStream_t stream)
{
    if (plan->form == VXD_SORT_WIDE) {
        return rank_scan_form<true>(cub, cub_bytes, sorted, n_batch, ranks, n, stream);
    }
    return rank_scan_form<false>(cub, cub_bytes, sorted, n_batch, ranks, n, stream);
}

/* First (and, but for WIDE, only) sort: by every key bit that counts. */
static cudaError_t key_sort(void *cub, size_t *cub_bytes,
                            const struct vxd_voxel_plan *plan,
                            cub::DoubleBuffer<uint64_t> &keys,
                            cub::DoubleBuffer<uint32_t> &indices, size_t n,
                            cudaStream_t stream)
{
    int begin = plan->index_bits;
    int end = begin + plan->code.n_bits + plan->sample_bits;

    if (plan->form == VXD_SORT_PACKED || plan->form == VXD_SORT_KEYS) {
        return cub::DeviceRadixSort::SortKeys(cub, *cub_bytes, keys, (uint32_t)n, begin,
                                              end, stream);
    }
    if (plan->form == VXD_SORT_WIDE) {
        end = 64;
    }
    return cub::DeviceRadixSort::SortPairs(cub, *cub_bytes, keys, indices, (uint32_t)n,
                                           begin, end, stream);
}

static cudaError_t sample_sort(void *cub, size_t *cub_bytes,
                               const struct vxd_voxel_plan *plan,
                               cub::DoubleBuffer<uint32_t> &samples,
                               cub::DoubleBuffer<uint32_t> &places, size_t n,
                               cudaStream_t stream)
{
    return cub::DeviceRadixSort::SortPairs(cub, *cub_bytes, samples, places, (uint32_t)n,
                                           0, plan->sample_bits, stream);
}

size_t vxd_voxelize_sort_bytes(const struct vxd_voxel_plan *plan, size_t n_points,
                               int n_batch)
{
    cub::DoubleBuffer<uint64_t> keys;
    cub::DoubleBuffer<uint32_t> words;
    struct vxd_sorted sorted = {};
    size_t most = vxd_scan_scratch_bytes_cuda(n_points);
    size_t n_bytes = vxd_scan_scratch_bytes_cuda((size_t)n_batch);

    if (most == 0 || n_bytes == 0) {
        return 0;
    }
    most = n_bytes > most ? n_bytes : most;
    if (key_sort(NULL, &n_bytes, plan, keys, words, n_points, NULL) != cudaSuccess) {
        goto failed;
    }
    most = n_bytes > most ? n_bytes : most;
    if (plan->form == VXD_SORT_PAIRS) { /* which may become KEYS */
        struct vxd_voxel_plan keys_plan = *plan;

        keys_plan.form = VXD_SORT_KEYS;
        if (key_sort(NULL, &n_bytes, &keys_plan, keys, words, n_points, NULL) !=
            cudaSuccess) {
            goto failed;
        }
        most = n_bytes > most ? n_bytes : most;
    }
    if (rank_scan(NULL, &n_bytes, plan, &sorted, 0, NULL, n_points, NULL) !=
        cudaSuccess) {
        goto failed;
    }
    most = n_bytes > most ? n_bytes : most;
    if (plan->form == VXD_SORT_WIDE) {
        if (sample_sort(NULL, &n_bytes, plan, words, words, n_points, NULL) !=
            cudaSuccess) {
            goto failed;
        }
        most = n_bytes > most ? n_bytes : most;
    }
    return most;
failed:
    (void)cudaGetLastError();
    return 0;
}

/* WIDE, after the first sort: the sample of each place, and the place itself. */
static __global__ void __launch_bounds__(N_THREADS)
    sample_kernel(const uint64_t *keys, const uint32_t *indices,
                  const uint32_t *batch_starts, int n_batch, uint32_t n,
                  uint32_t *samples, uint32_t *places)
{
    uint32_t i = blockIdx.x * N_THREADS + threadIdx.x;

    if (i < n) {
        samples[i] = keys[i] >> 63 != 0
                         ? (uint32_t)n_batch
                         : (uint32_t)vxd_voxel_sample(batch_starts, n_batch, indices[i]);
        places[i] = i;
    }
}

/* WIDE, after the second sort: keys and indices follow their samples. */
static __global__ void __launch_bounds__(N_THREADS)
    permute_kernel(const uint32_t *places, const uint64_t *keys_in,
                   const uint32_t *indices_in, uint32_t n, uint64_t *keys,
                   uint32_t *indices)
{
    uint32_t i = blockIdx.x * N_THREADS + threadIdx.x;

    if (i < n) {
        uint32_t place = places[i];

        keys[i] = keys_in[place];
        indices[i] = indices_in[place];
    }
}

static enum vxd_status
sort_by_sample(struct vxd_queue *queue, const struct vxd_voxel_plan *plan,
               const struct vxd_voxelize_call *call, cub::DoubleBuffer<uint64_t> *keys,
               cub::DoubleBuffer<uint32_t> *indices, const uint32_t **sorted_samples,
               struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    uint8_t *scratch = (uint8_t *)call->scratch;
    cudaStream_t stream = (cudaStream_t)queue->stream;
    uint32_t n = (uint32_t)call->args.n_points;
    unsigned n_blocks = (n + N_THREADS - 1) / N_THREADS;
    size_t cub_bytes = plan->cub_bytes;
    cub::DoubleBuffer<uint32_t> samples((uint32_t *)(scratch + plan->samples[0]),
                                        (uint32_t *)(scratch + plan->samples[1]));
    cub::DoubleBuffer<uint32_t> places((uint32_t *)(scratch + plan->places[0]),
                                       (uint32_t *)(scratch + plan->places[1]));
    enum vxd_status status = VXD_OK;

    sample_kernel<<<n_blocks, N_THREADS, 0, stream>>>(
        keys->Current(), indices->Current(), call->batch_starts, call->args.n_batch, n,
        samples.Current(), places.Current());
    VXD_TRY(vxd_cuda_launched(context, "sample_kernel", err));
    VXD_TRY(VXD_CUDA(
        context,
        sample_sort(scratch + plan->cub, &cub_bytes, plan, samples, places, n, stream),
        err));
    permute_kernel<<<n_blocks, N_THREADS, 0, stream>>>(
        places.Current(), keys->Current(), indices->Current(), n, keys->Alternate(),
        indices->Alternate());
    VXD_TRY(vxd_cuda_launched(context, "permute_kernel", err));
    keys->selector ^= 1;
    indices->selector ^= 1;
    *sorted_samples = samples.Current();
out:
    return status;
}

enum vxd_status vxd_voxelize_sort(struct vxd_queue *queue,
                                  const struct vxd_voxel_plan *plan,
                                  const struct vxd_voxelize_call *call,
                                  struct vxd_sorted *sorted, void **free_keys,
                                  struct vxd_err *err)
{
    uint8_t *scratch = (uint8_t *)call->scratch;
    cub::DoubleBuffer<uint64_t> keys((uint64_t *)(scratch + plan->keys[0]),
                                     (uint64_t *)(scratch + plan->keys[1]));
    cub::DoubleBuffer<uint32_t> indices((uint32_t *)(scratch + plan->indices[0]),
                                        (uint32_t *)(scratch + plan->indices[1]));
    size_t cub_bytes = plan->cub_bytes;
    enum vxd_status status = VXD_OK;

    *sorted = {};
    VXD_TRY(VXD_CUDA(queue->context,
                     key_sort(scratch + plan->cub, &cub_bytes, plan, keys, indices,
                              call->args.n_points, (cudaStream_t)queue->stream),
                     err));
    if (plan->form == VXD_SORT_WIDE) {
        VXD_TRY(
            sort_by_sample(queue, plan, call, &keys, &indices, &sorted->samples, err));
    }
    sorted->keys = keys.Current();
    sorted->indices = plan->form == VXD_SORT_PAIRS || plan->form == VXD_SORT_WIDE
                          ? indices.Current()
                          : NULL;
    sorted->index_bits = plan->index_bits;
    sorted->key_bits = plan->code.n_bits;
    *free_keys = keys.Alternate();
out:
    return status;
}

enum vxd_status vxd_voxelize_rank(struct vxd_queue *queue,
                                  const struct vxd_voxel_plan *plan,
                                  const struct vxd_voxel_run *run, void *scratch,
                                  struct vxd_err *err)
{
    size_t cub_bytes = plan->cub_bytes;

    return VXD_CUDA(queue->context,
                    rank_scan((uint8_t *)scratch + plan->cub, &cub_bytes, plan,
                              &run->sorted, (uint32_t)run->n_batch, run->ranks,
                              run->n_points, (cudaStream_t)queue->stream),
                    err);
}
