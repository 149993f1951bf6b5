// SPDX-License-Identifier: Apache-2.0
/* Kernels of scans and voxel lists: a thread for each point, ray or leaf.
 *
 * A ray walks from voxel to voxel, keeps the passed voxels of its leaf in a register, and
 * ORs them into a word of a brick when it leaves the leaf, unless they are already set:
 * about four steps for a write, and near the origin hardly any write. Rays are sorted by
 * the Morton code of their ends, so those of a warp have similar lengths and go through
 * the same bricks. */
#include "gpu/core/core_cuda.h"
#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/scan/carve_bricks.h"
#include "gpu/svdag/store/store_cuda.h"

enum {
    THREADS = 256,
    CAST_THREADS = 128
};

/* Blocks for n elements, a thread each, up to a limit; kernels loop over the rest. */
static unsigned blocks_for(const struct vxd_queue *queue, uint64_t n, unsigned threads)
{
    uint64_t most = (uint64_t)queue->context->info.n_multiprocessors * 16;
    uint64_t needed = (n + threads - 1) / threads;

    return (unsigned)(needed < 1 ? 1 : needed < most ? needed : most);
}

static cudaStream_t stream_of(const struct vxd_queue *queue)
{
    return (cudaStream_t)queue->stream;
}

static __device__ __forceinline__ uint64_t first_index(void)
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ uint64_t n_threads(void)
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* Counts of a thread over its points. */
struct carve_sums {
    uint64_t n_class[VXD_SVDAG_POINT_OUTSIDE + 1];
    uint64_t n_rays_only;
};

/* Computes the key of point i. */
VXD_SVDAG_DEVICE void carve_key(const struct vxd_svdag_carve_input *input, uint32_t i,
                                uint64_t *keys, uint32_t *points, struct carve_sums *sums,
                                struct vxd_svdag_carve_counts *counts)
{
    const struct vxd_svdag_scan *scan = &input->scan;
    uint64_t key;
    enum vxd_svdag_point point =
        input->voxels != NULL ? vxd_svdag_voxel_key(input->voxels, input->depth, i, &key)
                              : vxd_svdag_scan_key(scan, input->depth, i, &key);

    keys[i] = key;
    points[i] = i;
    for (int c = 0; c <= VXD_SVDAG_POINT_OUTSIDE; c++) {
        sums->n_class[c] += c == (int)point ? 1 : 0;
    }
    if (point != VXD_SVDAG_POINT_HIT) {
        sums->n_rays_only += key != vxd_svdag_no_key(input->depth) ? 1 : 0;
    } else if (scan->values != NULL && scan->values[i] >= input->n_materials) {
        vxd_svdag_atomic_or(&counts->has_bad_value, 1);
    }
}

/* Whether point i in the sorted order hits. Hits come first, and those of one voxel are
 * consecutive. */
VXD_SVDAG_DEVICE bool carve_is_hit(const struct vxd_svdag_carve_runs *runs, uint32_t i)
{
    return runs->keys[i] < vxd_svdag_key_flag(runs->input.depth);
}

VXD_SVDAG_DEVICE void carve_begin(const struct vxd_svdag_carve_runs *runs, uint32_t i)
{
    const bool is_hit = carve_is_hit(runs, i);
    const uint64_t key = runs->keys[i];
    const uint64_t before = i == 0 ? ~key : runs->keys[i - 1];

    runs->voxels[i] = is_hit && key != before ? 1 : 0;
    runs->leaves[i] = is_hit && key >> 6 != before >> 6 ? 1 : 0;
}

VXD_SVDAG_DEVICE void carve_put(const struct vxd_svdag_carve_runs *runs, uint32_t i)
{
    const struct vxd_svdag_scan *scan = &runs->input.scan;
    const uint64_t key = runs->keys[i];
    const uint32_t point = runs->points[i];
    const uint32_t voxel = runs->voxels[i + 1] - 1; /* voxel that point i hits */
    const uint32_t leaf = runs->leaves[i + 1] - 1;

    if (i >= runs->n_hit) {
        if (runs->rays != NULL && i - runs->n_hit < runs->n_rays - runs->n_voxels) {
            runs->rays[runs->n_voxels + (i - runs->n_hit)] = point;
        }
        return;
    }
    if (runs->leaves[i] != leaf + 1) {
        runs->codes[leaf] = key >> 6;
        if (runs->first_value != NULL) {
            runs->first_value[leaf] = voxel;
        }
    }
    if (runs->voxels[i] != voxel + 1) {
        vxd_svdag_atomic_or64(&runs->masks[leaf], (uint64_t)1 << (key & 63));
        if (runs->rays != NULL) {
            runs->rays[voxel] = point;
        }
    }
    if (runs->values != NULL && (i + 1 == runs->n_hit || runs->keys[i + 1] != key)) {
        runs->values[voxel] =
            scan->values != NULL ? scan->values[point] : (uint16_t)scan->value;
    }
}

/* Rays ---------------------------------------------------------------------------------- */

/* The slot of a brick, which is inserted if it is new; bricks.n where there is no slot
 * for it. */
VXD_SVDAG_DEVICE uint32_t brick_enter(const struct vxd_svdag_bricks *bricks,
                                      uint64_t code)
{
    uint32_t slot = (uint32_t)(code * 0x9e3779b97f4a7c15ULL >> 32) & (bricks->n - 1);

    for (int i = 0; i < VXD_SVDAG_BRICK_PROBES; i++) {
        uint64_t seen = vxd_svdag_load_volatile64(&bricks->slots[slot]);

        if (seen == 0) {
            seen = vxd_svdag_atomic_cas64(&bricks->slots[slot], 0, code + 1);
        }
        if (seen == 0 || seen == code + 1) {
            return slot;
        }
        slot = (slot + 1) & (bricks->n - 1);
    }
    return bricks->n;
}

/* The slot of a brick, after all were inserted; bricks.n where the table does not have
 * it. */
VXD_SVDAG_DEVICE uint32_t brick_find(const struct vxd_svdag_bricks *bricks, uint64_t code)
{
    uint32_t slot = (uint32_t)(code * 0x9e3779b97f4a7c15ULL >> 32) & (bricks->n - 1);

    for (int i = 0; i < VXD_SVDAG_BRICK_PROBES; i++) {
        if (bricks->slots[slot] == code + 1) {
            return slot;
        }
        if (bricks->slots[slot] == 0) {
            break;
        }
        slot = (slot + 1) & (bricks->n - 1);
    }
    return bricks->n;
}

/* The leaf that a ray is in. Its passed voxels are kept in a register until the ray
 * leaves the leaf. */
struct carve_leaf {
    uint32_t x, y, z; /* leaf coordinates; x = UINT32_MAX: none yet */
    uint64_t mask;
    uint64_t brick; /* code of the last brick */
    uint32_t slot;
};

/* Writes the voxels of the leaf that the ray leaves. False: there is no slot for its
 * brick. */
VXD_SVDAG_DEVICE bool carve_leave(const struct vxd_svdag_carve_cast *cast,
                                  struct carve_leaf *at)
{
    const uint64_t leaf = vxd_svdag_voxel_code(at->x, at->y, at->z);
    const uint64_t brick = leaf / VXD_SVDAG_BRICK_LEAVES;
    uint64_t *word;

    if (at->mask == 0) {
        return true;
    }
    if (brick != at->brick) {
        at->brick = brick;
        at->slot = brick_enter(&cast->bricks, brick);
    }
    if (at->slot == cast->bricks.n) {
        vxd_svdag_atomic_or(&cast->counts->is_full, 1);
        return false;
    }
    word = &cast->bricks.words[(uint64_t)at->slot * VXD_SVDAG_BRICK_LEAVES +
                               leaf % VXD_SVDAG_BRICK_LEAVES];
    /* Near the origin most voxels are already set. */
    if ((at->mask & ~vxd_svdag_load_volatile64(word)) != 0) {
        vxd_svdag_atomic_or64(word, at->mask);
    }
    return true;
}

/* Marks the voxels that ray k passes inside the scene, in at most as many steps as
 * vxd_svdag_walk_begin allows. */
VXD_SVDAG_DEVICE void carve_cast_ray(const struct vxd_svdag_carve_cast *cast, uint32_t k)
{
    const struct vxd_svdag_scan *scan = &cast->scan;
    struct carve_leaf at = {UINT32_MAX, 0, 0, 0, ~(uint64_t)0, 0};
    struct vxd_svdag_ray ray;
    struct vxd_svdag_walk walk;
    bool goes_on = true;
    bool is_cast;

    vxd_svdag_scan_ray(scan, cast->depth, cast->points[k], &ray);
    is_cast = vxd_svdag_walk_begin(&walk, ray.origin, ray.end);
    if (cast->ends != NULL &&
        !(is_cast && vxd_svdag_put_ray(&ray, k, cast->ends, cast->origins))) {
        vxd_svdag_atomic_or(&cast->counts->are_off, 1);
    }
    if (!is_cast) {
        return;
    }
    for (int a = 0; a < 3; a++) {
        walk.voxel[a] += scan->base[a];
    }
    while (!vxd_svdag_is_inside(walk.voxel, cast->depth)) {
        if (!vxd_svdag_walk_next(&walk)) {
            return;
        }
    }
    /* Until the ray leaves the scene, or reaches the point, whose own voxel it does not
     * pass. */
    while (goes_on && vxd_svdag_is_inside(walk.voxel, cast->depth)) {
        const uint32_t x = (uint32_t)walk.voxel[0];
        const uint32_t y = (uint32_t)walk.voxel[1];
        const uint32_t z = (uint32_t)walk.voxel[2];

        if (!vxd_svdag_walk_next(&walk)) {
            break;
        }
        if (x >> 2 != at.x || y >> 2 != at.y || z >> 2 != at.z) {
            goes_on = carve_leave(cast, &at);
            at.x = x >> 2;
            at.y = y >> 2;
            at.z = z >> 2;
            at.mask = 0;
        }
        at.mask |= (uint64_t)1 << vxd_svdag_leaf_bit(x, y, z);
    }
    if (goes_on) {
        (void)carve_leave(cast, &at);
    }
}

/* Passed voxels
 * --------------------------------------------------------------------------- */

/* Removes leaf i of the hits. Each leaf has one thread, so no other thread writes the
 * word. */
VXD_SVDAG_DEVICE void carve_take_hit(const struct vxd_svdag_bricks *bricks,
                                     const struct vxd_svdag_voxels *hits, uint64_t i)
{
    const uint64_t code = hits->codes[i];
    const uint32_t slot = brick_find(bricks, code / VXD_SVDAG_BRICK_LEAVES);

    if (slot < bricks->n) {
        bricks->words[(uint64_t)slot * VXD_SVDAG_BRICK_LEAVES +
                      code % VXD_SVDAG_BRICK_LEAVES] &= ~hits->masks[i];
    }
}

VXD_SVDAG_DEVICE uint64_t carve_word(const struct vxd_svdag_carve_passed *passed,
                                     uint64_t i)
{
    const uint32_t slot = passed->slots[i / VXD_SVDAG_BRICK_LEAVES];

    return passed->bricks
        .words[(uint64_t)slot * VXD_SVDAG_BRICK_LEAVES + i % VXD_SVDAG_BRICK_LEAVES];
}

/* Flags leaf i, counted over all bricks in order; returns its number of voxels. */
VXD_SVDAG_DEVICE uint64_t carve_flag_leaf(const struct vxd_svdag_carve_passed *passed,
                                          uint64_t i)
{
    const uint64_t word = carve_word(passed, i);

    passed->places[i] = word != 0 ? 1 : 0;
    return (uint64_t)vxd_svdag_popc(word);
}

VXD_SVDAG_DEVICE void carve_list_leaf(const struct vxd_svdag_carve_passed *passed,
                                      uint64_t i)
{
    const uint64_t word = carve_word(passed, i);
    const uint32_t place = passed->places[i];

    if (word != 0) {
        passed->list_codes[place] =
            passed->codes[i / VXD_SVDAG_BRICK_LEAVES] * VXD_SVDAG_BRICK_LEAVES +
            i % VXD_SVDAG_BRICK_LEAVES;
        passed->list_masks[place] = word;
    }
}

/* Points ---------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS)
    keys_kernel(const struct vxd_svdag_carve_input input, uint64_t *keys,
                uint32_t *points, struct vxd_svdag_carve_counts *counts)
{
    struct carve_sums sums = {};

    for (uint64_t i = first_index(); i < input.scan.n; i += n_threads()) {
        carve_key(&input, (uint32_t)i, keys, points, &sums, counts);
    }
    for (int c = 0; c <= VXD_SVDAG_POINT_OUTSIDE; c++) {
        vxd_svdag_warp_add(&counts->n_class[c], sums.n_class[c]);
    }
    vxd_svdag_warp_add(&counts->n_rays_only, sums.n_rays_only);
}

enum vxd_status vxd_svdag_carve_keys(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_input *input,
                                     uint64_t *keys, uint32_t *points,
                                     struct vxd_svdag_carve_counts *counts,
                                     struct vxd_err *err)
{
    enum vxd_status status = vxd_cuda_enter(queue->context, err);

    if (status != VXD_OK) {
        return status;
    }
    keys_kernel<<<blocks_for(queue, input->scan.n, THREADS), THREADS, 0,
                  stream_of(queue)>>>(*input, keys, points, counts);
    return vxd_cuda_launched(queue->context, "keys_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    begins_kernel(const struct vxd_svdag_carve_runs runs)
{
    for (uint64_t i = first_index(); i < runs.n; i += n_threads()) {
        carve_begin(&runs, (uint32_t)i);
    }
}

enum vxd_status vxd_svdag_carve_begins(struct vxd_queue *queue,
                                       const struct vxd_svdag_carve_runs *runs,
                                       struct vxd_err *err)
{
    begins_kernel<<<blocks_for(queue, runs->n, THREADS), THREADS, 0, stream_of(queue)>>>(
        *runs);
    return vxd_cuda_launched(queue->context, "begins_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    write_kernel(const struct vxd_svdag_carve_runs runs)
{
    for (uint64_t i = first_index(); i < runs.n; i += n_threads()) {
        carve_put(&runs, (uint32_t)i);
    }
}

enum vxd_status vxd_svdag_carve_write(struct vxd_queue *queue,
                                      const struct vxd_svdag_carve_runs *runs,
                                      struct vxd_err *err)
{
    write_kernel<<<blocks_for(queue, runs->n, THREADS), THREADS, 0, stream_of(queue)>>>(
        *runs);
    return vxd_cuda_launched(queue->context, "write_kernel", err);
}

/* Rays ------------------------------------------------------------------------------------ */

static __global__ void __launch_bounds__(CAST_THREADS)
    rays_kernel(const struct vxd_svdag_carve_cast cast)
{
    for (uint64_t i = first_index(); i < cast.n; i += n_threads()) {
        carve_cast_ray(&cast, (uint32_t)i);
    }
}

enum vxd_status vxd_svdag_carve_rays(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_cast *cast,
                                     struct vxd_err *err)
{
    rays_kernel<<<blocks_for(queue, cast->n, CAST_THREADS), CAST_THREADS, 0,
                  stream_of(queue)>>>(*cast);
    return vxd_cuda_launched(queue->context, "rays_kernel", err);
}

/* Passed voxels
 * -------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS)
    subtract_kernel(const struct vxd_svdag_bricks bricks,
                    const struct vxd_svdag_voxels hits)
{
    for (uint64_t i = first_index(); i < hits.n; i += n_threads()) {
        carve_take_hit(&bricks, &hits, i);
    }
}

enum vxd_status vxd_svdag_carve_subtract(struct vxd_queue *queue,
                                         const struct vxd_svdag_bricks *bricks,
                                         const struct vxd_svdag_voxels *hits,
                                         struct vxd_err *err)
{
    subtract_kernel<<<blocks_for(queue, hits->n, THREADS), THREADS, 0,
                      stream_of(queue)>>>(*bricks, *hits);
    return vxd_cuda_launched(queue->context, "subtract_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    gather_kernel(const struct vxd_svdag_carve_passed passed)
{
    for (uint64_t i = first_index(); i < passed.bricks.n; i += n_threads()) {
        if (passed.bricks.slots[i] != 0) {
            uint32_t place = atomicAdd(&passed.counts->n_bricks, 1u);

            passed.codes[place] = passed.bricks.slots[i] - 1;
            passed.slots[place] = (uint32_t)i;
        }
    }
}

enum vxd_status vxd_svdag_carve_gather(struct vxd_queue *queue,
                                       const struct vxd_svdag_carve_passed *passed,
                                       struct vxd_err *err)
{
    gather_kernel<<<blocks_for(queue, passed->bricks.n, THREADS), THREADS, 0,
                    stream_of(queue)>>>(*passed);
    return vxd_cuda_launched(queue->context, "gather_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    flag_kernel(const struct vxd_svdag_carve_passed passed)
{
    const uint64_t n = (uint64_t)passed.n_bricks * VXD_SVDAG_BRICK_LEAVES;
    uint64_t n_voxels = 0;

    for (uint64_t i = first_index(); i < n; i += n_threads()) {
        n_voxels += carve_flag_leaf(&passed, i);
    }
    vxd_svdag_warp_add(&passed.counts->n_passed, n_voxels);
}

enum vxd_status vxd_svdag_carve_flag(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_passed *passed,
                                     struct vxd_err *err)
{
    const uint64_t n = (uint64_t)passed->n_bricks * VXD_SVDAG_BRICK_LEAVES;

    flag_kernel<<<blocks_for(queue, n, THREADS), THREADS, 0, stream_of(queue)>>>(*passed);
    return vxd_cuda_launched(queue->context, "flag_kernel", err);
}

static __global__ void __launch_bounds__(THREADS)
    list_kernel(const struct vxd_svdag_carve_passed passed)
{
    const uint64_t n = (uint64_t)passed.n_bricks * VXD_SVDAG_BRICK_LEAVES;

    for (uint64_t i = first_index(); i < n; i += n_threads()) {
        carve_list_leaf(&passed, i);
    }
}

enum vxd_status vxd_svdag_carve_list(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_passed *passed,
                                     struct vxd_err *err)
{
    const uint64_t n = (uint64_t)passed->n_bricks * VXD_SVDAG_BRICK_LEAVES;

    list_kernel<<<blocks_for(queue, n, THREADS), THREADS, 0, stream_of(queue)>>>(*passed);
    return vxd_cuda_launched(queue->context, "list_kernel", err);
}
