// SPDX-License-Identifier: Apache-2.0
/* The block table on a GPU: entries of keys, changed blocks, neighbours of blocks. A thread takes
 * an entry, or one neighbour of it.
 *
 * A slot is claimed by a compare-and-swap of its tag; its entry is written by the claimer, and
 * no kernel reads the table while another adds to it. */
#include "gpu/core/core_cuda.h"
#include "gpu/volume/volume_internal.h"

#define N_THREADS 256

static unsigned grid_of(size_t n)
{
    return (unsigned)((n + N_THREADS - 1) / N_THREADS);
}

static __global__ void __launch_bounds__(N_THREADS)
    add_kernel(struct vxd_volume_view view, struct vxd_block_slot *table,
               const int32_t *entries, size_t n)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    const int32_t *key;
    uint64_t tag;
    uint32_t slot;

    if (i >= n) {
        return;
    }
    key = view.keys + 3 * (size_t)entries[i];
    tag = vxd_block_tag(key[0], key[1], key[2]);
    slot = vxd_block_hash(tag) & view.table_mask;
    for (uint32_t step = 0; step <= view.table_mask; step++) {
        if (atomicCAS((unsigned long long *)&table[slot].tag,
                      (unsigned long long)VXD_BLOCK_EMPTY,
                      (unsigned long long)tag) == VXD_BLOCK_EMPTY) {
            table[slot].entry = entries[i];
            return;
        }
        slot = (slot + 1) & view.table_mask;
    }
}

enum vxd_status vxd_volume_table_add_cuda(struct vxd_queue *queue,
                                          const struct vxd_volume *volume,
                                          const int32_t *entries, size_t n,
                                          struct vxd_err *err)
{
    struct vxd_volume_view view;
    enum vxd_status status;

    vxd_volume_get_view(volume, &view);
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    add_kernel<<<grid_of(n), N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        view, (struct vxd_block_slot *)volume->table.ptr, entries, n);
    VXD_TRY(vxd_cuda_launched(queue->context, "add_kernel", err));
out:
    return status;
}

/* Two new neighbours write the same numbers into each other's rows. */
static __global__ void __launch_bounds__(N_THREADS)
    link_kernel(const __grid_constant__ struct vxd_link_call call)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;
    size_t column = i % 27;
    int32_t entry;
    int32_t found;

    if (i >= 27 * call.n) {
        return;
    }
    entry = call.entries[i / 27];
    found = vxd_block_neighbour(&call.view, entry, (int)column);
    call.neighbours[27 * (size_t)entry + column] = found;
    if (found != VXD_NO_ENTRY && !call.is_for_all) {
        call.neighbours[27 * (size_t)found + 26 - column] = entry;
    }
}

enum vxd_status vxd_volume_link_cuda(struct vxd_queue *queue,
                                     const struct vxd_link_call *call,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    link_kernel<<<grid_of(27 * call->n), N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        *call);
    VXD_TRY(vxd_cuda_launched(queue->context, "link_kernel", err));
out:
    return status;
}

static __global__ void __launch_bounds__(N_THREADS)
    changed_kernel(struct vxd_volume_view view, uint64_t since, uint32_t *flags)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < view.capacity) {
        flags[i] = view.stamps[i] > since ? 1 : 0;
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    list_kernel(struct vxd_volume_view view, uint64_t since, const uint32_t *offsets,
                int32_t *entries)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < view.capacity && view.stamps[i] > since) {
        entries[offsets[i]] = (int32_t)i;
    }
}

enum vxd_status vxd_volume_changed_cuda(struct vxd_queue *queue,
                                        const struct vxd_volume *volume, uint64_t since,
                                        int32_t *entries, uint32_t *counts, void *scratch,
                                        size_t scratch_bytes, struct vxd_err *err)
{
    struct vxd_volume_view view;
    enum vxd_status status;

    vxd_volume_get_view(volume, &view);
    VXD_TRY(vxd_cuda_enter(queue->context, err));
    changed_kernel<<<grid_of(view.capacity), N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        view, since, counts);
    VXD_TRY(vxd_cuda_launched(queue->context, "changed_kernel", err));
    VXD_TRY(vxd_scan_exclusive(queue, counts, counts, view.capacity, scratch,
                               scratch_bytes, err));
    list_kernel<<<grid_of(view.capacity), N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        view, since, counts, entries);
    VXD_TRY(vxd_cuda_launched(queue->context, "list_kernel", err));
out:
    return status;
}

static __global__ void __launch_bounds__(N_THREADS)
    neighbours_kernel(struct vxd_volume_view view, const int32_t *entries, size_t n,
                      int32_t *indices)
{
    size_t i = (size_t)blockIdx.x * N_THREADS + threadIdx.x;

    if (i < 27 * n) {
        indices[i] = vxd_block_neighbour(&view, entries[i / 27], (int)(i % 27));
    }
}

enum vxd_status vxd_volume_neighbours_cuda(struct vxd_queue *queue,
                                           const struct vxd_volume_view *view,
                                           const int32_t *entries, size_t n,
                                           int32_t *indices, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    neighbours_kernel<<<grid_of(27 * n), N_THREADS, 0, (cudaStream_t)queue->stream>>>(
        *view, entries, n, indices);
    VXD_TRY(vxd_cuda_launched(queue->context, "neighbours_kernel", err));
out:
    return status;
}
