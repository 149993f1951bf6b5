// SPDX-License-Identifier: Apache-2.0
/* Two passes over blocks: the first sums each block, the second scans each from its
 * offset. */
#include "gpu/core/core_cpu.h"

#define BLOCK_ITEMS ((size_t)16384)

struct scan {
    const uint32_t *in;
    uint32_t *out;
    size_t n;
    uint32_t *block_sums;
};

static size_t n_blocks_of(size_t n)
{
    return (n + BLOCK_ITEMS - 1) / BLOCK_ITEMS;
}

size_t vxd_scan_scratch_bytes_cpu(int n_threads, size_t n)
{
    (void)n_threads;
    return n_blocks_of(n) * sizeof(uint32_t) + 256;
}

static void sum_block(void *args, size_t begin, size_t end)
{
    const struct scan *scan = args;
    uint32_t sum = 0;

    for (size_t i = begin; i < end; i++) {
        sum += scan->in[i];
    }
    scan->block_sums[begin / BLOCK_ITEMS] = sum;
}

static void scan_block(void *args, size_t begin, size_t end)
{
    const struct scan *scan = args;
    uint32_t sum = scan->block_sums[begin / BLOCK_ITEMS];

    for (size_t i = begin; i < end; i++) {
        uint32_t count =
            scan->in
                [i]; /* read before it is overwritten: in and out may be the same array */

        scan->out[i] = sum;
        sum += count;
    }
}

void vxd_scan_exclusive_run(struct vxd_pool *pool, const uint32_t *in, uint32_t *out,
                            size_t n, void *scratch)
{
    struct scan scan = {in, out, n, scratch};
    uint32_t total = 0;

    vxd_parallel_for(pool, n, BLOCK_ITEMS, sum_block, &scan);
    for (size_t i = 0; i < n_blocks_of(n); i++) {
        uint32_t sum = scan.block_sums[i];

        scan.block_sums[i] = total;
        total += sum;
    }
    vxd_parallel_for(pool, n, BLOCK_ITEMS, scan_block, &scan);
    out[n] = total;
}

static enum vxd_status scan_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    const struct scan *scan = args;

    (void)err;
    vxd_scan_exclusive_run(pool, scan->in, scan->out, scan->n, scan->block_sums);
    return VXD_OK;
}

enum vxd_status vxd_scan_exclusive_cpu(struct vxd_queue *queue, const uint32_t *in,
                                       uint32_t *out, size_t n, void *scratch,
                                       struct vxd_err *err)
{
    struct scan scan = {in, out, n, scratch};

    return vxd_queue_push(queue, scan_job, &scan, sizeof scan, err);
}
