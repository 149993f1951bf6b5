// SPDX-License-Identifier: Apache-2.0
/* Ray casting by cells on the CPU: cubes of 8^3 cells are shared out, then rows of pixels. Which
 * cells the surface goes through is found a row at a time, by bits. All arithmetic is in
 * volume_cells_math.h. */
#include <string.h>

#include "gpu/core/core_cpu.h"
#include "gpu/volume/cast/volume_cast_internal.h"

#define PIECE_CUBES ((size_t)64)
#define PIECE_ROWS ((size_t)4)

/* The voxels around the cells of a cube. */
struct cube {
    float d[VXD_CELLS_ROWS * VXD_CELLS_VOXELS]; /* NaN: not known */
    uint32_t fronts[VXD_CELLS_ROWS];            /* a bit a voxel: known, above 0 */
    uint32_t backs[VXD_CELLS_ROWS];             /* known, not above 0 */
};

static void lower(uint64_t *word, uint64_t value)
{
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

    while (value < seen &&
           !__atomic_compare_exchange_n(word, &seen, value, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

/* Loads the voxels of a cube. Returns whether any of them is known and in front of the surface, and
 * any known and behind it. */
static inline bool load(const struct vxd_cast_call *call, int32_t entry,
                        const int32_t at[3], struct cube *cube)
{
    int32_t next[8];
    uint32_t any_front = 0;
    uint32_t any_back = 0;

    next[0] = entry;
    for (int across = 1; across < 8; across++) {
        next[across] = vxd_block_neighbour(&call->view, entry, vxd_cells_column(across));
    }
    for (int row = 0; row < VXD_CELLS_ROWS; row++) {
        int32_t y = at[1] + row % VXD_CELLS_VOXELS;
        int32_t z = at[2] + row / VXD_CELLS_VOXELS;
        float *d = cube->d + (size_t)row * VXD_CELLS_VOXELS;
        uint32_t front = 0;
        uint32_t back = 0;

        for (int x = 0; x < VXD_CELLS_VOXELS; x++) {
            d[x] = vxd_cells_voxel(call, next, at[0] + x, y, z);
            front |= (d[x] > 0 ? 1u : 0u) << x;
            back |= (d[x] <= 0 ? 1u : 0u) << x;
        }
        cube->fronts[row] = front;
        cube->backs[row] = back;
        any_front |= front;
        any_back |= back;
    }
    return any_front != 0 && any_back != 0;
}

/* Looks for the rays that meet the surface in a cell. */
static inline void meet(const struct vxd_cells_call *call, const int32_t low[3],
                        const float d[8], uint32_t number)
{
    int width = call->cast.camera.width;
    int first_row = call->cast.first_row * VXD_CAST_TILE;
    struct vxd_cells_rect rect;

    if (!vxd_cells_project(call, low, 1, &rect)) {
        return;
    }
    for (int v = rect.first_v; v <= rect.last_v; v++) {
        for (int u = rect.first_u; u <= rect.last_u; u++) {
            struct vxd_cells_ray ray;
            uint64_t word;

            vxd_cells_aim(call, u, v, &ray);
            word = vxd_cells_crossing(call, &ray, low, d, number);
            if (word != VXD_CELLS_NONE) {
                lower(
                    &call->crossings[(size_t)(v - first_row) * (size_t)width + (size_t)u],
                    word);
            }
        }
    }
}

static inline void meet_cube(const struct vxd_cells_call *call, int32_t entry, int part)
{
    const struct vxd_volume_view *view = &call->cast.view;
    uint32_t first = (uint32_t)entry << 3 * view->shift;
    struct vxd_cells_rect rect;
    struct cube cube;
    int32_t at[3];
    int32_t low[3];

    vxd_cells_part(view, part, at);
    vxd_cells_block_low(&call->cast, entry, low);
    for (int axis = 0; axis < 3; axis++) {
        low[axis] += at[axis];
    }
    if (!vxd_cells_project(call, low, VXD_CELLS_SIDE, &rect) ||
        !load(&call->cast, entry, at, &cube)) {
        return;
    }
    for (int z = 0; z < VXD_CELLS_SIDE; z++) {
        for (int y = 0; y < VXD_CELLS_SIDE; y++) {
            int row = z * VXD_CELLS_VOXELS + y;
            uint32_t left = vxd_cells_of_rows(cube.fronts, cube.backs, row);

            for (; left != 0; left &= left - 1) {
                int x = __builtin_ctz(left);
                int32_t cell[3] = {low[0] + x, low[1] + y, low[2] + z};
                uint32_t number =
                    first + vxd_voxel_index(view, at[0] + x, at[1] + y, at[2] + z);
                float d[8];

                for (int corner = 0; corner < 8; corner++) {
                    d[corner] = cube.d[(row + (corner >> 1 & 1) +
                                        (corner >> 2) * VXD_CELLS_VOXELS) *
                                           VXD_CELLS_VOXELS +
                                       x + (corner & 1)];
                }
                meet(call, cell, d, number);
            }
        }
    }
}

static inline void meet_cubes(const struct vxd_cells_call *call, size_t begin, size_t end)
{
    size_t a_side = (size_t)call->cast.view.edge / VXD_CELLS_SIDE;
    size_t n_parts = a_side * a_side * a_side;

    for (size_t i = begin; i < end; i++) {
        size_t block = i / n_parts;
        int32_t entry =
            call->cast.entries != NULL ? call->cast.entries[block] : (int32_t)block;

        if (call->cast.view.stamps[entry] != 0) {
            meet_cube(call, entry, (int)(i % n_parts));
        }
    }
}

static inline void show_rows(const struct vxd_cells_call *call, size_t begin, size_t end)
{
    int first_row = call->cast.first_row * VXD_CAST_TILE;

    for (size_t row = begin; row < end; row++) {
        for (int u = 0; u < call->cast.camera.width; u++) {
            vxd_cells_pixel(call, u, first_row + (int)row);
        }
    }
}

/* Flattened, so that what is called is compiled for the function's instructions too. */
__attribute__((flatten)) static void cubes_base(void *args, size_t begin, size_t end)
{
    meet_cubes(args, begin, end);
}

__attribute__((flatten)) static void rows_base(void *args, size_t begin, size_t end)
{
    show_rows(args, begin, end);
}

#if defined(__x86_64__)
__attribute__((flatten, target("avx2"))) static void cubes_avx2(void *args, size_t begin,
                                                                size_t end)
{
    meet_cubes(args, begin, end);
}

__attribute__((flatten, target("avx2"))) static void rows_avx2(void *args, size_t begin,
                                                               size_t end)
{
    show_rows(args, begin, end);
}
#endif

static vxd_loop_fn pick_cubes(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return cubes_avx2;
    }
#endif
    return cubes_base;
}

static vxd_loop_fn pick_rows(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return rows_avx2;
    }
#endif
    return rows_base;
}

static enum vxd_status cells_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_cells_call call = *(const struct vxd_cells_call *)args;
    size_t a_side = (size_t)call.cast.view.edge / VXD_CELLS_SIDE;
    size_t n_cubes = call.cast.n * a_side * a_side * a_side;
    size_t n_rows =
        (size_t)(vxd_cast_end_row(&call.cast) - call.cast.first_row * VXD_CAST_TILE);

    (void)err;
    memset(call.crossings, 0xff,
           n_rows * (size_t)call.cast.camera.width * sizeof *call.crossings);
    vxd_parallel_for(pool, n_cubes, PIECE_CUBES, pick_cubes(), &call);
    vxd_parallel_for(pool, n_rows, PIECE_ROWS, pick_rows(), &call);
    return VXD_OK;
}

enum vxd_status vxd_volume_cells_cpu(struct vxd_queue *queue,
                                     const struct vxd_cells_call *call,
                                     struct vxd_err *err)
{
    return vxd_queue_push(queue, cells_job, call, sizeof *call, err);
}
