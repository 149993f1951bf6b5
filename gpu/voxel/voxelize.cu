// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of voxelize.h: groups points by sorting them by voxel.
 *
 * 1 key     thread a point: Morton key of its voxel, sample above, index below or beside
 * 2 sort    CUB, only over the bits that can differ (voxelize_sort.cu)
 * 3 rank    prefix sum of "another voxel begins here"
 * 4 mark    thread a place: where voxels and samples begin, the inverse map
 * 5 renumber for caps and FIRST_POINT only (voxelize_renumber.cu)
 * 6 emit    thread a voxel: coordinates, counts, totals
 * 7 reduce  thread a voxel and channel, long voxels by warps (voxelize_reduce.cu)
 * Bytes for n points, m voxels, C channels and P sort passes in PAIRS:
 *   compulsory  n (12 + 4 C + 4) + m (16 + 4 + 4 C)
 *   moved       n (68 + 24 P + 4 C) + m (40 + 4 C); PACKED n (60 + 16 P + 4 C),
 *               KEYS n (52 + 16 P) + 36 m
 * 8 M points, 4 channels, m = n, 63 bits: 0.54 and 2.7 GB, 0.13 and 0.65 ms at 4.1 TB/s;
 * an H200 takes 1.13 ms, 0.66 of it in the sort (tests/bench/results/voxelization.md).
 * Source: ASH, section 6.1, with a sort in place of its hash map: sums in point order need that
 * order anyway. */
#include "gpu/voxel/voxelize_cuda.h"

#define N_THREADS 256

static int bit_length(uint64_t v)
{
    return v == 0 ? 0 : 64 - __builtin_clzll(v);
}

/* The least and greatest biased coordinate of an axis that the arguments allow. */
static void axis_bounds(const struct vxd_voxel_lattice *lattice, int axis,
                        uint32_t *least, uint32_t *greatest)
{
    float lo = -1048576.0f;
    float hi = 1048575.0f;

    if (lattice->rule == VXD_RULE_SPCONV) {
        lo = 0.0f;
        hi = (float)(lattice->grid[axis] - 1);
    } else if (lattice->has_range && lattice->rule == VXD_RULE_MINKOWSKI) {
        lo = fmaxf(lo, floorf(vxd_divf(lattice->lo[axis], lattice->size[axis])));
        hi = fminf(hi, floorf(vxd_divf(lattice->hi[axis], lattice->size[axis])));
    }
    /* A range outside the lattice keeps no point, so any bounds are right. */
    lo = fminf(lo, 1048575.0f);
    hi = fmaxf(hi, lo);
    *least = (uint32_t)((int32_t)lo + lattice->bias);
    *greatest = (uint32_t)((int32_t)hi + lattice->bias);
}

static void make_key_code(const struct vxd_voxel_lattice *lattice,
                          struct vxd_key_code *code)
{
    uint64_t mask = 0;
    uint64_t fixed = 0;
    uint64_t gaps;

    for (int axis = 0; axis < 3; axis++) {
        uint32_t least;
        uint32_t greatest;
        uint32_t varying;

        axis_bounds(lattice, axis, &least, &greatest);
        varying = (uint32_t)((1ULL << bit_length(least ^ greatest)) - 1);
        mask |= vxd_spread3(varying) << (2 - axis);
        fixed |= vxd_spread3(least & ~varying) << (2 - axis);
    }
    code->mask = mask;
    code->fixed = fixed;
    code->n_bits = __builtin_popcountll(mask);
    gaps = ~mask << 1;
    for (int i = 0; i < 6; i++) {
        uint64_t parity = gaps ^ gaps << 1;

        for (int shift = 2; shift < 64; shift *= 2) {
            parity ^= parity << shift;
        }
        code->moves[i] = parity & mask;
        mask = (mask ^ code->moves[i]) | code->moves[i] >> (1 << i);
        gaps &= ~parity;
    }
}

static bool wants_floats(const struct vxd_voxels *out)
{
    return out->mean != NULL || out->sum != NULL || out->min != NULL ||
           out->max != NULL || out->first != NULL || out->points != NULL;
}

/* Whether some output depends on which points a voxel has. */
static bool wants_points(const struct vxd_voxels *out)
{
    return out->inverse != NULL || out->first_point != NULL || wants_floats(out);
}

/* The largest scratch that any choice of outputs needs: `out` is not known when the
 * size is asked for. False on overflow or where CUB fails. */
static bool make_plan(const struct vxd_voxelize_args *args,
                      const struct vxd_voxel_lattice *lattice,
                      struct vxd_voxel_plan *plan)
{
    size_t n = args->n_points;
    size_t n_samples = (size_t)args->n_batch + 1;
    size_t key_bytes =
        ((n * sizeof(uint32_t) + 255) & ~(size_t)255) + (n + 1) * sizeof(uint32_t);
    size_t *total = &plan->total_bytes;
    int index_bits = bit_length(n > 1 ? n - 1 : 1);
    bool ok = true;

    *plan = {};
    make_key_code(lattice, &plan->code);
    plan->sample_bits = bit_length((uint64_t)args->n_batch);
    plan->form = VXD_SORT_WIDE;
    if (plan->code.n_bits + plan->sample_bits + index_bits <= 64) {
        plan->form = VXD_SORT_PACKED;
        plan->index_bits = index_bits;
    } else if (plan->code.n_bits + plan->sample_bits <= 64) {
        plan->form = VXD_SORT_PAIRS;
    }
    plan->has_remap = args->order == VXD_ORDER_FIRST_POINT ||
                      (args->max_voxels != 0 && args->max_voxels < n);
    for (int i = 0; i < 2; i++) {
        ok = ok && vxd_layout_add(total, 1, key_bytes, &plan->keys[i]);
        if (plan->form != VXD_SORT_PACKED) {
            ok = ok && vxd_layout_add(total, n, sizeof(uint32_t), &plan->indices[i]);
        }
        if (plan->form == VXD_SORT_WIDE) {
            ok = ok && vxd_layout_add(total, n, sizeof(uint32_t), &plan->samples[i]) &&
                 vxd_layout_add(total, n, sizeof(uint32_t), &plan->places[i]);
        }
    }
    ok = ok && vxd_layout_add(total, n_samples, sizeof(uint32_t), &plan->sample_points) &&
         vxd_layout_add(total, n_samples, sizeof(uint32_t), &plan->sample_voxels);
    if (plan->has_remap) {
        ok = ok && vxd_layout_add(total, n + 1, sizeof(uint32_t), &plan->first_ranks) &&
             vxd_layout_add(total, n + 1, sizeof(uint32_t), &plan->remap);
    }
    if (args->n_channels > 0) {
        ok = ok && vxd_voxelize_reduce_layout(plan, n, args->n_channels);
    }
    plan->cub_bytes = vxd_voxelize_sort_bytes(plan, n, args->n_batch);
    return ok && plan->cub_bytes != 0 &&
           vxd_layout_add(total, 1, plan->cub_bytes, &plan->cub);
}

struct key_args {
    struct vxd_voxel_lattice lattice;
    struct vxd_key_code code;
    const float *positions;
    const double *exact; /* DOUBLE only */
    const uint32_t *batch_starts;
    uint32_t n_points;
    int n_batch;
    int index_bits; /* 0: not PACKED */
    bool is_wide;
    uint64_t *keys;
    uint32_t *indices; /* NULL: PACKED, KEYS */
    struct vxd_voxel_totals *totals;
};

/* Makes one atomic operation a block where the whole block is in one sample, which is
 * nearly always so. */
static __device__ void count_dropped(struct vxd_voxel_totals *totals, uint32_t sample,
                                     enum vxd_point_class point_class)
{
    __shared__ uint32_t block_sample;
    int n_non_finite;
    int n_out_of_range;

    if (threadIdx.x == 0) {
        block_sample = sample;
    }
    if (__syncthreads_or(point_class != VXD_POINT_KEPT) == 0) {
        return;
    }
    if (__syncthreads_and(point_class == VXD_POINT_KEPT || sample == block_sample) == 0) {
        if (point_class == VXD_POINT_NON_FINITE) {
            atomicAdd(&totals[sample].n_non_finite, 1);
        } else if (point_class == VXD_POINT_OUT_OF_RANGE) {
            atomicAdd(&totals[sample].n_out_of_range, 1);
        }
        return;
    }
    n_non_finite = __syncthreads_count(point_class == VXD_POINT_NON_FINITE);
    n_out_of_range = __syncthreads_count(point_class == VXD_POINT_OUT_OF_RANGE);
    if (threadIdx.x == 0 && n_non_finite > 0) {
        atomicAdd(&totals[sample].n_non_finite, (uint32_t)n_non_finite);
    }
    if (threadIdx.x == 0 && n_out_of_range > 0) {
        atomicAdd(&totals[sample].n_out_of_range, (uint32_t)n_out_of_range);
    }
}

static __global__ void __launch_bounds__(N_THREADS)
    key_kernel(const __grid_constant__ struct key_args args)
{
    uint32_t i = blockIdx.x * N_THREADS + threadIdx.x;
    enum vxd_point_class point_class = VXD_POINT_KEPT;
    uint32_t sample = 0;

    if (i < args.n_points) {
        uint64_t key = 0;
        uint64_t key_sample;
        int32_t c[3];

        sample = (uint32_t)vxd_voxel_sample(args.batch_starts, args.n_batch, i);
        if (args.lattice.rule == VXD_RULE_DOUBLE) {
            const double *p = args.exact + 3 * (size_t)i;
            double exact[3] = {p[0], p[1], p[2]};

            point_class = vxd_voxel_coord_exact(&args.lattice, exact, c);
        } else {
            const float *p = args.positions + 3 * (size_t)i;
            float position[3] = {p[0], p[1], p[2]};

            point_class = vxd_voxel_coord(&args.lattice, position, c);
        }
        key_sample = point_class == VXD_POINT_KEPT ? sample : (uint32_t)args.n_batch;
        if (point_class == VXD_POINT_KEPT) {
            key = vxd_key_compress(&args.code, vxd_voxel_key(&args.lattice, c));
        }
        if (args.is_wide) {
            key |= point_class == VXD_POINT_KEPT ? 0 : 1ULL << 63;
        } else {
            key |= key_sample << args.code.n_bits;
        }
        if (args.indices != NULL) {
            args.keys[i] = key;
            args.indices[i] = i;
        } else {
            args.keys[i] = args.index_bits > 0 ? key << args.index_bits | i : key;
        }
    }
    count_dropped(args.totals, sample, point_class);
}

/* A thread for each sorted place. A sample without points begins where the next one
 * does. */
static __global__ void __launch_bounds__(N_THREADS)
    mark_kernel(const __grid_constant__ struct vxd_voxel_run run)
{
    uint32_t place = blockIdx.x * N_THREADS + threadIdx.x;
    uint32_t n_batch = (uint32_t)run.n_batch;
    uint32_t n = (uint32_t)run.n_points;
    uint32_t rank;
    uint32_t rank_before;
    uint32_t sample;
    uint32_t next_sample;
    uint32_t index;

    if (place >= n) {
        return;
    }
    rank = run.ranks[place];
    rank_before = place > 0 ? run.ranks[place - 1] : 0;
    sample = vxd_sorted_sample(&run.sorted, place);
    index = vxd_sorted_index(&run.sorted, place);
    next_sample = place > 0 ? vxd_sorted_sample(&run.sorted, place - 1) + 1 : 0;
    for (uint32_t s = next_sample; s <= sample; s++) {
        run.sample_points[s] = place;
        run.sample_voxels[s] = rank_before;
    }
    if (sample == n_batch && next_sample <= n_batch) {
        run.segments[rank_before] = place;
    }
    if (place == n - 1 && sample < n_batch) {
        for (uint32_t s = sample + 1; s <= n_batch; s++) {
            run.sample_points[s] = n;
            run.sample_voxels[s] = rank;
        }
        run.segments[rank] = n;
    }
    if (rank != rank_before) {
        run.segments[rank - 1] = place;
        if (run.first_ranks != NULL) {
            run.first_ranks[index] = 1;
        }
    }
    if (run.out.inverse != NULL && run.remap == NULL) {
        run.out.inverse[index] = sample < n_batch ? (int32_t)rank - 1 : -1;
    }
}

static __device__ void write_coords(const struct vxd_voxel_run *run, uint32_t voxel,
                                    uint32_t sample, uint32_t place)
{
    int32_t *row = run->out.coords + 4 * (size_t)voxel;
    int32_t c[3];

    vxd_voxel_from_key(&run->lattice,
                       vxd_key_expand(&run->code, vxd_sorted_key(&run->sorted, place)),
                       c);
    if (((uintptr_t)row & 15) == 0) {
        *(int4 *)row = make_int4((int32_t)sample, c[0], c[1], c[2]);
    } else {
        row[0] = (int32_t)sample;
        row[1] = c[0];
        row[2] = c[1];
        row[3] = c[2];
    }
}

/* A thread for each rank; no lane leaves early, because vxd_total_add needs the whole
 * warp. */
static __global__ void __launch_bounds__(N_THREADS)
    emit_kernel(const __grid_constant__ struct vxd_voxel_run run)
{
    struct vxd_voxel_totals *totals = run.out.totals;
    uint32_t n_ranks = run.sample_voxels[run.n_batch];
    size_t stride = (size_t)gridDim.x * N_THREADS;
    size_t start = (size_t)blockIdx.x * N_THREADS;

    for (size_t s = start + threadIdx.x; s < (size_t)run.n_batch; s += stride) {
        atomicAdd(&totals[s].n_used, run.sample_points[s + 1] - run.sample_points[s]);
        totals[s].n_voxels = run.out.starts[s + 1] - run.out.starts[s];
    }
    for (; start < n_ranks; start += stride) {
        uint32_t rank = (uint32_t)(start + threadIdx.x);
        uint32_t sample = 0;
        uint32_t n_no_voxel = 0;
        uint32_t n_over = 0;

        if (rank < n_ranks) {
            uint32_t place = run.segments[rank];
            uint32_t count = run.segments[rank + 1] - place;
            uint32_t voxel = vxd_run_voxel(&run, rank);

            sample = vxd_sorted_sample(&run.sorted, place);
            if (voxel == VXD_NO_VOXEL) {
                n_no_voxel = count;
            } else {
                n_over = count > run.max_points ? count - run.max_points : 0;
                if (run.out.coords != NULL) {
                    write_coords(&run, voxel, sample, place);
                }
                if (run.out.counts != NULL) {
                    run.out.counts[voxel] = count - n_over;
                }
                if (run.out.first_point != NULL) {
                    run.out.first_point[voxel] = vxd_sorted_index(&run.sorted, place);
                }
            }
        }
        vxd_total_add(&totals->n_over_max_voxels, sample, n_no_voxel);
        vxd_total_add(&totals->n_over_max_points, sample, n_over);
        vxd_total_add(&totals->n_used, sample, 0 - (n_no_voxel + n_over));
    }
}

size_t vxd_voxelize_scratch_bytes_cuda(const struct vxd_queue *queue,
                                       const struct vxd_voxelize_args *args,
                                       const struct vxd_voxel_lattice *lattice)
{
    struct vxd_voxel_plan plan;

    if (vxd_cuda_enter(queue->context, NULL) != VXD_OK ||
        !make_plan(args, lattice, &plan)) {
        return 0;
    }
    return plan.total_bytes;
}

static void bind_run(const struct vxd_voxelize_call *call,
                     const struct vxd_voxel_plan *plan, struct vxd_voxel_run *run)
{
    const struct vxd_voxelize_args *args = &call->args;
    uint8_t *scratch = (uint8_t *)call->scratch;

    *run = {};
    run->code = plan->code;
    run->lattice = call->lattice;
    run->out = call->out;
    run->features = args->features;
    run->n_points = args->n_points;
    run->n_channels = args->n_channels;
    run->n_batch = args->n_batch;
    run->max_points = args->max_points != 0 ? args->max_points : UINT32_MAX;
    run->max_voxels = args->max_voxels != 0 ? args->max_voxels : UINT32_MAX;
    run->sample_points = (uint32_t *)(scratch + plan->sample_points);
    run->sample_voxels = call->out.starts;
    if (plan->has_remap) {
        run->sample_voxels = (uint32_t *)(scratch + plan->sample_voxels);
        run->first_ranks = (uint32_t *)(scratch + plan->first_ranks);
        run->remap = (uint32_t *)(scratch + plan->remap);
    }
}

static enum vxd_status launch_keys(struct vxd_queue *queue,
                                   const struct vxd_voxel_plan *plan,
                                   const struct vxd_voxelize_call *call,
                                   struct vxd_err *err)
{
    uint8_t *scratch = (uint8_t *)call->scratch;
    size_t n = call->args.n_points;
    struct key_args args = {};

    args.lattice = call->lattice;
    args.code = plan->code;
    args.positions = call->args.positions;
    args.exact = call->args.exact;
    args.batch_starts = call->batch_starts;
    args.n_points = (uint32_t)n;
    args.n_batch = call->args.n_batch;
    args.index_bits = plan->index_bits;
    args.is_wide = plan->form == VXD_SORT_WIDE;
    args.keys = (uint64_t *)(scratch + plan->keys[0]);
    if (plan->form == VXD_SORT_PAIRS || plan->form == VXD_SORT_WIDE) {
        args.indices = (uint32_t *)(scratch + plan->indices[0]);
    }
    args.totals = call->out.totals;
    key_kernel<<<(unsigned)((n + N_THREADS - 1) / N_THREADS), N_THREADS, 0,
                 (cudaStream_t)queue->stream>>>(args);
    return vxd_cuda_launched(queue->context, "key_kernel", err);
}

enum vxd_status vxd_voxelize_cuda(struct vxd_queue *queue,
                                  const struct vxd_voxelize_call *call,
                                  struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    const struct vxd_voxels *out = &call->out;
    size_t n = call->args.n_points;
    size_t n_batch = (size_t)call->args.n_batch;
    unsigned n_blocks = (unsigned)((n + N_THREADS - 1) / N_THREADS);
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;
    struct vxd_voxel_plan plan;
    struct vxd_voxel_run run;
    void *free_keys;

    VXD_TRY(vxd_cuda_enter(context, err));
    VXD_TRY(vxd_cuda_fill(queue, out->totals, 0, n_batch * sizeof *out->totals, err));
    if (n == 0) {
        return vxd_cuda_fill(queue, out->starts, 0, (n_batch + 1) * sizeof *out->starts,
                             err);
    }
    if (!make_plan(&call->args, &call->lattice, &plan) ||
        plan.total_bytes > call->scratch_bytes) {
        return vxd_fail(err, VXD_INTERNAL, NULL,
                        "voxelize: %zu bytes of scratch, %zu needed", call->scratch_bytes,
                        plan.total_bytes);
    }
    if (plan.form == VXD_SORT_PAIRS && !plan.has_remap && !wants_points(out)) {
        plan.form = VXD_SORT_KEYS;
    }
    bind_run(call, &plan, &run);
    VXD_TRY(launch_keys(queue, &plan, call, err));
    VXD_TRY(vxd_voxelize_sort(queue, &plan, call, &run.sorted, &free_keys, err));
    run.ranks = (uint32_t *)free_keys;
    run.segments = run.ranks + ((n + 63) & ~(size_t)63);
    VXD_TRY(vxd_voxelize_rank(queue, &plan, &run, call->scratch, err));
    if (plan.has_remap) {
        VXD_TRY(vxd_cuda_fill(queue, run.first_ranks, 0, n * sizeof(uint32_t), err));
    }
    mark_kernel<<<n_blocks, N_THREADS, 0, stream>>>(run);
    VXD_TRY(vxd_cuda_launched(context, "mark_kernel", err));
    if (plan.has_remap) {
        VXD_TRY(vxd_voxelize_renumber(queue, &plan, &run, call->args.order, call->scratch,
                                      err));
    }
    emit_kernel<<<vxd_voxelize_blocks(queue, n, N_THREADS), N_THREADS, 0, stream>>>(run);
    VXD_TRY(vxd_cuda_launched(context, "emit_kernel", err));
    if (call->args.n_channels > 0 && wants_floats(out)) {
        VXD_TRY(vxd_voxelize_reduce(queue, &plan, &run, call->scratch, err));
    }
out:
    return status;
}
