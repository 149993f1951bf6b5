// SPDX-License-Identifier: Apache-2.0
/* The voxels that the rays of a scan pass, as bit masks of bricks of 32^3 voxels (4 KiB:
 * 512 leaves in Morton order). Each thread has bricks of its own, so a step is an OR
 * without atomics. Rays are sorted by the Morton code of their ends, so the rays of one
 * thread go through the same bricks, and only bricks near the origin exist in several
 * threads. What becomes of the bricks at the end: carve_cpu_list.c.
 *
 * A step costs the choice of an axis and one OR, without a branch that is often
 * mispredicted. A scan of 120 k points in voxels of 0.1 m has about 70 k rays of 250
 * steps. */
#include "gpu/svdag/scan/carve_cpu.h"

#include <string.h>

#define RAYS_AT_ONCE ((size_t)256)

enum {
    CHUNK_BRICKS = 64,   /* bricks allocated at once */
    MIN_TABLE_SIZE = 256 /* a power of two */
};

/* Bits of x in a code; those of y and z are to the right of them. */
#define X_BITS UINT64_C(0x4924924924924924)

struct vxd_svdag_brick_chunk {
    struct vxd_svdag_brick_chunk *next;
    uint64_t *words; /* the memory behind this header */
};

static size_t slot_of(const struct vxd_svdag_brick *table, size_t size, uint64_t code)
{
    size_t slot = (size_t)(code * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (size - 1);

    while (table[slot].words != NULL && table[slot].code != code) {
        slot = (slot + 1) & (size - 1);
    }
    return slot;
}

/* Grows the table where it would become more than half full. */
static enum vxd_status grow_table(struct vxd_svdag_caster *caster)
{
    size_t size = caster->table_size == 0 ? MIN_TABLE_SIZE : 2 * caster->table_size;
    struct vxd_svdag_brick *table;
    void *memory;
    enum vxd_status status;

    if (2 * (caster->n_bricks + 1) <= caster->table_size) {
        return VXD_OK;
    }
    status = vxd_svdag_scratch_take(caster->context, size * sizeof *table, &memory,
                                    &caster->err);
    if (status != VXD_OK) {
        return status;
    }
    table = memory;
    memset(table, 0, size * sizeof *table);
    for (size_t i = 0; i < caster->table_size; i++) {
        if (caster->table[i].words != NULL) {
            table[slot_of(table, size, caster->table[i].code)] = caster->table[i];
        }
    }
    vxd_svdag_scratch_give(caster->context, caster->table);
    caster->table = table;
    caster->table_size = size;
    return VXD_OK;
}

static enum vxd_status new_brick(struct vxd_svdag_caster *caster, uint64_t **words)
{
    const size_t n_bytes = VXD_SVDAG_BRICK_LEAVES * sizeof **words;

    if (caster->chunks == NULL || caster->n_in_chunk == CHUNK_BRICKS) {
        void *memory;
        enum vxd_status status = vxd_svdag_scratch_take(
            caster->context, 256 + CHUNK_BRICKS * n_bytes, &memory, &caster->err);

        if (status != VXD_OK) {
            return status;
        }
        *(struct vxd_svdag_brick_chunk *)memory = (struct vxd_svdag_brick_chunk){
            caster->chunks, (void *)((char *)memory + 256)};
        caster->chunks = memory;
        caster->n_in_chunk = 0;
    }
    *words = caster->chunks->words + caster->n_in_chunk * VXD_SVDAG_BRICK_LEAVES;
    caster->n_in_chunk++;
    memset(*words, 0, n_bytes);
    return VXD_OK;
}

/* The words of a brick; NULL, with caster->status set, where there is no memory for
 * it. */
static uint64_t *find_brick(struct vxd_svdag_caster *caster, uint64_t code)
{
    size_t slot;

    if (caster->last.words != NULL && caster->last.code == code) {
        return caster->last.words;
    }
    caster->status = grow_table(caster);
    if (caster->status != VXD_OK) {
        return NULL;
    }
    slot = slot_of(caster->table, caster->table_size, code);
    if (caster->table[slot].words == NULL) {
        uint64_t *words;

        caster->status = new_brick(caster, &words);
        if (caster->status != VXD_OK) {
            return NULL;
        }
        caster->table[slot] = (struct vxd_svdag_brick){code, words};
        caster->n_bricks++;
    }
    caster->last = caster->table[slot];
    return caster->last.words;
}

/* A time before which no crossing leaves the scene, and all crossings are ones that the
 * walk makes (VXD_SVDAG_WALK_SAFE). */
static int64_t safe_time(const struct vxd_svdag_walk *walk, int depth)
{
    int64_t side = (int64_t)1 << depth;
    int64_t safe = VXD_SVDAG_WALK_SAFE;

    for (int a = 0; a < 3; a++) {
        /* crossings until it is outside */
        int64_t n = walk->step[a] > 0 ? side - walk->voxel[a] : walk->voxel[a] + 1;

        if (n <= (int64_t)walk->left[a]) {
            int64_t leaves = walk->t[a] + (n - 1) * walk->dt[a];

            safe = leaves < safe ? leaves : safe;
        }
    }
    return safe;
}

/* Marks a voxel. *at is the brick of the voxel before, and becomes its own. */
static inline bool mark(struct vxd_svdag_caster *caster, uint64_t code,
                        struct vxd_svdag_brick *at)
{
    if (code >> VXD_SVDAG_BRICK_BITS != at->code) {
        uint64_t *words = find_brick(caster, code >> VXD_SVDAG_BRICK_BITS);

        if (words == NULL) {
            return false;
        }
        *at = (struct vxd_svdag_brick){code >> VXD_SVDAG_BRICK_BITS, words};
    }
    at->words[code >> 6 & (VXD_SVDAG_BRICK_LEAVES - 1)] |= (uint64_t)1 << (code & 63);
    return true;
}

/* An axis of a walk on Morton codes: its bits of the code are incremented with carries
 * across the other axes' bits. */
struct axis {
    uint64_t t;
    uint64_t dt;
    uint64_t bits;
    uint64_t step;
    uint64_t part;
};

static struct axis axis_of(const struct vxd_svdag_walk *walk, int a)
{
    const uint64_t bits = X_BITS >> a;
    const struct axis axis = {(uint64_t)walk->t[a], (uint64_t)walk->dt[a], bits,
                              walk->step[a] > 0 ? 0 - bits : UINT64_MAX,
                              vxd_spread3((uint64_t)walk->voxel[a]) << (2 - a)};

    return axis;
}

/* Repeats vxd_svdag_walk_next inside the scene for all crossings before `safe`, and marks
 * the voxels that the walk leaves. Which of two axes comes next is chosen by a mask; only
 * the third axis, the one with the fewest crossings, takes a branch. */
static bool cast_safely(struct vxd_svdag_caster *caster, struct vxd_svdag_walk *walk,
                        uint64_t safe, struct vxd_svdag_brick *brick)
{
    const uint32_t *left = walk->left;
    const int rare =
        left[0] < left[1] ? (left[0] < left[2] ? 0 : 2) : (left[1] < left[2] ? 1 : 2);
    struct axis a = axis_of(walk, (rare + 1) % 3);
    struct axis b = axis_of(walk, (rare + 2) % 3);
    struct axis c = axis_of(walk, rare);
    struct vxd_svdag_brick at = *brick;

    for (;;) {
        const uint64_t until = c.t < safe ? c.t : safe;

        while ((a.t < b.t ? a.t : b.t) < until) {
            const uint64_t is_b = 0 - (uint64_t)(b.t < a.t);

            if (!mark(caster, a.part | b.part | c.part, &at)) {
                return false;
            }
            a.t += a.dt & ~is_b;
            b.t += b.dt & is_b;
            a.part = (a.part + (a.step & ~is_b)) & a.bits;
            b.part = (b.part + (b.step & is_b)) & b.bits;
        }
        if (c.t >= safe) {
            break;
        }
        if (!mark(caster, a.part | b.part | c.part, &at)) {
            return false;
        }
        c.t += c.dt;
        c.part = (c.part + c.step) & c.bits;
    }
    *brick = at;
    walk->t[(rare + 1) % 3] = (int64_t)a.t;
    walk->t[(rare + 2) % 3] = (int64_t)b.t;
    walk->t[rare] = (int64_t)c.t;
    for (int k = 0; k < 3; k++) {
        uint64_t code = a.part | b.part | c.part;
        int64_t voxel = (int64_t)vxd_gather3(code >> (2 - k));

        walk->left[k] -= (uint32_t)((voxel - walk->voxel[k]) * walk->step[k]);
        walk->voxel[k] = voxel;
        walk->t[k] = walk->left[k] == 0 ? INT64_MAX : walk->t[k];
    }
    return true;
}

static uint64_t code_of(const struct vxd_svdag_walk *walk)
{
    return vxd_svdag_voxel_code((uint64_t)walk->voxel[0], (uint64_t)walk->voxel[1],
                                (uint64_t)walk->voxel[2]);
}

/* Marks the voxels that ray k passes inside the scene. */
static bool cast_ray(struct vxd_svdag_caster *caster, size_t k)
{
    const struct vxd_svdag_rays *rays = caster->rays;
    const struct vxd_svdag_scan *scan = rays->scan;
    const int depth = rays->depth;
    struct vxd_svdag_ray ray;
    struct vxd_svdag_walk walk;
    struct vxd_svdag_brick brick;
    bool is_cast;

    vxd_svdag_scan_ray(scan, depth, rays->points[k], &ray);
    is_cast = vxd_svdag_walk_begin(&walk, ray.origin, ray.end);
    if (rays->ends != NULL &&
        !(is_cast && vxd_svdag_put_ray(&ray, k, rays->ends, rays->origins))) {
        atomic_store_explicit(rays->are_off, true, memory_order_relaxed);
    }
    if (!is_cast) {
        return true;
    }
    caster->n_visits += (uint64_t)walk.left[0] + walk.left[1] + walk.left[2];
    for (int a = 0; a < 3; a++) {
        walk.voxel[a] += scan->base[a];
    }
    while (!vxd_svdag_is_inside(walk.voxel, depth)) {
        if (!vxd_svdag_walk_next(&walk)) {
            return true;
        }
    }
    brick.code = code_of(&walk) >> VXD_SVDAG_BRICK_BITS;
    brick.words = find_brick(caster, brick.code);
    if (brick.words == NULL ||
        !cast_safely(caster, &walk, (uint64_t)safe_time(&walk, depth), &brick)) {
        return false;
    }
    while (vxd_svdag_is_inside(
        walk.voxel, depth)) { /* until it leaves the scene, or reaches the point */
        uint64_t code = code_of(&walk);

        if (!vxd_svdag_walk_next(&walk)) {
            break;
        }
        if (!mark(caster, code, &brick)) {
            return false;
        }
    }
    return true;
}

/* Takes more rays, where those that were taken are cast. */
static bool take_rays(struct vxd_svdag_casting *casting, struct vxd_svdag_caster *caster)
{
    const size_t n = casting->rays->n;

    if (caster->at == caster->end) {
        size_t i =
            atomic_fetch_add_explicit(&casting->next, RAYS_AT_ONCE, memory_order_relaxed);

        caster->at = i < n ? i : n;
        caster->end = i < n && n - i > RAYS_AT_ONCE ? i + RAYS_AT_ONCE : n;
    }
    return caster->at < caster->end;
}

static void cast_thread(void *args, size_t begin, size_t end)
{
    struct vxd_svdag_casting *casting = args;

    for (size_t k = begin; k < end; k++) {
        struct vxd_svdag_caster *caster = &casting->casters[k];

        caster->n_visits = 0;
        while (caster->n_visits < casting->max_visits &&
               !atomic_load_explicit(&casting->has_failed, memory_order_relaxed) &&
               take_rays(casting, caster)) {
            if (!cast_ray(caster, caster->at)) {
                atomic_store_explicit(&casting->has_failed, true, memory_order_relaxed);
                break;
            }
            caster->at++;
        }
    }
}

enum vxd_status vxd_svdag_cast_begin(struct vxd_pool *pool,
                                     const struct vxd_svdag_rays *rays,
                                     struct vxd_svdag_casting *casting,
                                     struct vxd_err *err)
{
    struct vxd_context *context = rays->queue->context;
    const size_t n_threads = (size_t)vxd_pool_n_threads(pool);
    void *block;
    enum vxd_status status = vxd_svdag_scratch_take(
        context, n_threads * sizeof *casting->casters, &block, err);

    if (status != VXD_OK) {
        return status;
    }
    casting->rays = rays;
    casting->casters = block;
    casting->n_casters = n_threads;
    memset(block, 0, n_threads * sizeof *casting->casters);
    for (size_t k = 0; k < n_threads; k++) {
        casting->casters[k].rays = rays;
        casting->casters[k].context = context;
    }
    return VXD_OK;
}

enum vxd_status vxd_svdag_cast_step(struct vxd_pool *pool,
                                    struct vxd_svdag_casting *casting,
                                    uint64_t max_visits, bool *is_done,
                                    struct vxd_err *err)
{
    casting->max_visits = max_visits;
    vxd_parallel_for(pool, casting->n_casters, 1, cast_thread, casting);
    *is_done = atomic_load(&casting->next) >= casting->rays->n;
    for (size_t k = 0; k < casting->n_casters; k++) {
        const struct vxd_svdag_caster *caster = &casting->casters[k];

        if (caster->status != VXD_OK) {
            if (err != NULL) {
                *err = caster->err;
            }
            return caster->status;
        }
        *is_done = *is_done && caster->at == caster->end;
    }
    return VXD_OK;
}

void vxd_svdag_cast_end(struct vxd_svdag_casting *casting)
{
    for (size_t k = 0; k < casting->n_casters; k++) {
        struct vxd_svdag_caster *caster = &casting->casters[k];

        while (caster->chunks != NULL) {
            struct vxd_svdag_brick_chunk *chunk = caster->chunks;

            caster->chunks = chunk->next;
            vxd_svdag_scratch_give(caster->context, chunk);
        }
        vxd_svdag_scratch_give(caster->context, caster->table);
    }
    if (casting->casters != NULL) {
        vxd_svdag_scratch_give(casting->rays->queue->context, casting->casters);
    }
    casting->casters = NULL;
    casting->n_casters = 0;
}
