// SPDX-License-Identifier: Apache-2.0
/* Ray casting on the CPU: the range image by blocks, then the rays by tiles of pixels, whose rays
 * read the same blocks. All arithmetic is in volume_cast_math.h. */
#include "gpu/core/core_cpu.h"
#include "gpu/volume/cast/volume_cast_internal.h"

#define PIECE_BLOCKS ((size_t)512)
#define PIECE_TILES ((size_t)16)

static void lower(uint32_t *word, uint32_t bits)
{
    uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

    while (bits < seen &&
           !__atomic_compare_exchange_n(word, &seen, bits, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

static void store_max(uint32_t *word, uint32_t bits)
{
    uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

    while (bits > seen &&
           !__atomic_compare_exchange_n(word, &seen, bits, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

static void range_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_cast_call *call = args;

    for (size_t i = begin; i < end; i++) {
        size_t entry = call->entries != NULL ? (size_t)call->entries[i] : i;
        struct vxd_cast_box box;

        if (call->view.stamps[entry] == 0 ||
            !vxd_cast_project(call, call->view.keys + 3 * entry, &box)) {
            continue;
        }
        for (int y = box.first_y; y <= box.last_y; y++) {
            for (int x = box.first_x; x <= box.last_x; x++) {
                lower(&call->range_min[y * call->tiles_x + x], vxd_float_bits(box.z_min));
                store_max(&call->range_max[y * call->tiles_x + x],
                          vxd_float_bits(box.z_max));
            }
        }
    }
}

static inline void cast_tiles(const struct vxd_cast_call *call, size_t begin, size_t end)
{
    size_t tiles_x = (size_t)call->tiles_x;
    size_t first = (size_t)call->first_row * tiles_x;

    for (size_t tile = first + begin; tile < first + end; tile++) {
        int left = (int)(tile % tiles_x) * VXD_CAST_TILE;
        int top = (int)(tile / tiles_x) * VXD_CAST_TILE;

        for (int v = top; v < top + VXD_CAST_TILE && v < call->camera.height; v++) {
            for (int u = left; u < left + VXD_CAST_TILE && u < call->camera.width; u++) {
                vxd_cast_pixel(call, u, v);
            }
        }
    }
}

/* Flattened, so that what is called is compiled for the function's instructions too. */
__attribute__((flatten)) static void rays_base(void *args, size_t begin, size_t end)
{
    cast_tiles(args, begin, end);
}

#if defined(__x86_64__)
__attribute__((flatten, target("avx2"))) static void rays_avx2(void *args, size_t begin,
                                                               size_t end)
{
    cast_tiles(args, begin, end);
}
#endif

static vxd_loop_fn pick_rays(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return rays_avx2;
    }
#endif
    return rays_base;
}

static enum vxd_status cast_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_cast_call call = *(const struct vxd_cast_call *)args;
    size_t n_tiles = (size_t)call.tiles_x * (size_t)(call.end_row - call.first_row);

    (void)err;
    if (call.range_min != NULL) {
        vxd_parallel_for(pool, call.n, PIECE_BLOCKS, range_piece, &call);
    }
    vxd_parallel_for(pool, n_tiles, PIECE_TILES, pick_rays(), &call);
    return VXD_OK;
}

enum vxd_status vxd_volume_cast_cpu(struct vxd_queue *queue,
                                    const struct vxd_cast_call *call, struct vxd_err *err)
{
    return vxd_queue_push(queue, cast_job, call, sizeof *call, err);
}
