// SPDX-License-Identifier: Apache-2.0
/* Registration on the CPU. A thread takes strips of 16 points. The neighbours of a point's voxel are
 * looked up once, when a search needs them; a search begins with the match of the step before and
 * leaves out voxels that cannot be nearer. All arithmetic is in odometry_math.h. */
#include "gpu/odometry/odometry_internal.h"

enum {
    SLOTS = VXD_ODOMETRY_SLOTS,
    STRIP = VXD_ODOMETRY_STRIP,
    LANES = VXD_ODOMETRY_STRIP_LANES,
    N_SUMS = VXD_ODOMETRY_N_SUMS,
    PIECE_STRIPS = 8
};

/* Each loop once for any machine and once for AVX2. Flattened, so that what is called is compiled
 * for the function's instructions too. */
#if defined(__x86_64__)
#define LOOP(name)                                                                       \
    __attribute__((flatten)) static void name##_base(void *args, size_t begin,           \
                                                     size_t end)                         \
    {                                                                                    \
        name(args, begin, end);                                                          \
    }                                                                                    \
    __attribute__((flatten, target("avx2"))) static void name##_avx2(                    \
        void *args, size_t begin, size_t end)                                            \
    {                                                                                    \
        name(args, begin, end);                                                          \
    }
#define PICK(name) (__builtin_cpu_supports("avx2") ? name##_avx2 : name##_base)
#else
#define LOOP(name)                                                                       \
    __attribute__((flatten)) static void name##_base(void *args, size_t begin,           \
                                                     size_t end)                         \
    {                                                                                    \
        name(args, begin, end);                                                          \
    }
#define PICK(name) name##_base
#endif

/* Neighbours by how likely they have the nearest point: the voxel itself, then by faces. */
static const uint8_t order[27] = {13, 4,  10, 12, 14, 16, 22, 1, 3, 5,  7,  9,  11, 15,
                                  17, 19, 21, 23, 25, 0,  2,  6, 8, 18, 20, 24, 26};

static inline int32_t entry_of(const struct vxd_odometry_grid *grid,
                               struct vxd_odometry_cell *cell, int rank)
{
    if (cell->entries[rank] == VXD_ODOMETRY_UNKNOWN) {
        cell->entries[rank] = vxd_odometry_neighbour(grid, cell->cell, rank);
    }
    return cell->entries[rank];
}

/* As vxd_odometry_search: the distances of all slots first, as vectors. */
static inline void search(const struct vxd_odometry_grid *grid, int32_t entry,
                          const float local[3], int rank,
                          struct vxd_odometry_match *match)
{
    const float *row = grid->points + (size_t)entry * 3 * SLOTS;
    int n = (int)grid->counts[entry];
    float d2[SLOTS];
    float shift[3];
    float least = INFINITY;

    vxd_odometry_shift(grid, local, rank, shift);
    for (int k = 0; k < SLOTS; k++) {
        float all = vxd_odometry_distance2(row, k, shift);

        d2[k] = k < n ? all : INFINITY;
    }
    for (int k = 0; k < SLOTS; k++) {
        least = d2[k] < least ? d2[k] : least;
    }
    if (least > match->d2) {
        return;
    }
    for (int k = 0; k < n; k++) {
        uint32_t id = (uint32_t)(rank * 32 + k);

        if (d2[k] < match->d2 || (d2[k] == match->d2 && id < match->id)) {
            match->d2 = d2[k];
            match->id = id;
        }
    }
}

/* The nearest point of the map. */
static inline struct vxd_odometry_match find(const struct vxd_odometry_align_call *call,
                                             struct vxd_odometry_cell *cell,
                                             const float local[3])
{
    const struct vxd_odometry_grid *grid = &call->grid;
    struct vxd_odometry_match match = {call->rule.max_d2[call->work->stage],
                                       VXD_ODOMETRY_NO_MATCH};
    int first = cell->last != VXD_ODOMETRY_NO_MATCH ? (int)(cell->last / 32) : -1;

    if (first >= 0) {
        search(grid, cell->entries[first], local, first, &match);
    }
    for (int i = 0; i < 27; i++) {
        int rank = order[i];

        if (rank != first && !(vxd_odometry_bound(grid, local, rank) > match.d2)) {
            int32_t entry = entry_of(grid, cell, rank);

            if (entry != VXD_NO_ENTRY) {
                search(grid, entry, local, rank, &match);
            }
        }
    }
    cell->last = match.id;
    return match;
}

/* The plane around a point of the map, which is kept until another point is the nearest. */
static inline void find_plane(const struct vxd_odometry_grid *grid, const int32_t home[3],
                              uint32_t id, int32_t entry, struct vxd_odometry_kept *kept)
{
    uint32_t match = (uint32_t)entry * 32 + id % 32;
    const float *row = grid->points + (size_t)entry * 3 * SLOTS;
    float sums[32][VXD_ODOMETRY_N_MOMENTS] = {{0}};
    int32_t cell[3];
    float local[3];

    if (kept->match == match) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        cell[i] = home[i] + vxd_odometry_offset((int)(id / 32), i);
        local[i] = row[i * SLOTS + (int)(id % 32)];
    }
    for (int rank = 0; rank < 27; rank++) {
        int32_t other = rank == 13 ? entry : vxd_odometry_neighbour(grid, cell, rank);

        if (other != VXD_NO_ENTRY) {
            vxd_odometry_moments(grid, other, local, rank, sums[rank]);
        }
    }
    for (int half = 16; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            for (int k = 0; k < VXD_ODOMETRY_N_MOMENTS; k++) {
                sums[i][k] = vxd_addf(sums[i][k], sums[i + half][k]);
            }
        }
    }
    kept->shape = vxd_odometry_plane(sums[0], kept->normal);
    kept->match = match;
}

static inline void pair_point(const struct vxd_odometry_align_call *call, size_t i,
                              struct vxd_odometry_rows *rows, int lane)
{
    const struct vxd_odometry_grid *grid = &call->grid;
    const struct vxd_odometry_rule *rule = &call->rule;
    struct vxd_odometry_cell *cell = &call->cells[i];
    const float *T = call->work->T;
    const float sensor[3] = {T[3], T[7], T[11]};
    struct vxd_odometry_match match;
    int32_t now[3];
    float q[3];
    float local[3];
    float arm[3];
    float difference[3];
    float shift[3];
    const float *row;
    int rank;
    int slot;
    enum vxd_odometry_shape shape = VXD_ODOMETRY_NO_SHAPE;

    vxd_odometry_move(T, call->points + 3 * i, q);
    vxd_odometry_locate(grid, q, now, local);
    if (memcmp(now, cell->cell, sizeof now) != 0) {
        memcpy(cell->cell, now, sizeof now);
        for (int k = 0; k < 27; k++) {
            cell->entries[k] = VXD_ODOMETRY_UNKNOWN;
        }
        cell->last = VXD_ODOMETRY_NO_MATCH;
    }
    match = find(call, cell, local);
    if (match.id == VXD_ODOMETRY_NO_MATCH) {
        vxd_odometry_clear_rows(rows, lane);
        return;
    }
    rank = (int)(match.id / 32);
    slot = (int)(match.id % 32);
    row = grid->points + (size_t)cell->entries[rank] * 3 * SLOTS;
    vxd_odometry_shift(grid, local, rank, shift);
    for (int k = 0; k < 3; k++) {
        arm[k] = vxd_subf(q[k], sensor[k]);
        difference[k] = -vxd_addf(row[k * SLOTS + slot], shift[k]);
    }
    if (rule->method == VXD_ODOMETRY_POINT_TO_PLANE || rule->is_last != 0) {
        find_plane(grid, now, match.id, cell->entries[rank], &call->kept[i]);
        shape = call->kept[i].shape;
    }
    vxd_odometry_set_rows(rule, call->work->stage, arm, difference, shape,
                          call->kept[i].normal, rows, lane);
}

static inline void strips(void *args, size_t begin, size_t end)
{
    const struct vxd_odometry_align_call *call = args;
    size_t n = call->work->n_registered;
    struct vxd_odometry_rows rows;

    for (size_t strip = begin; strip < end; strip++) {
        float *out = call->strips + strip * N_SUMS;

        for (int lane = 0; lane < STRIP; lane++) {
            size_t i = strip * STRIP + (size_t)lane;

            if (i < n) {
                pair_point(call, i, &rows, lane);
            } else {
                vxd_odometry_clear_rows(&rows, lane);
            }
        }
        for (int k = 0; k < N_SUMS; k++) {
            out[k] = vxd_odometry_add_strip(&rows, k);
        }
    }
}
LOOP(strips)

/* Adds the strips in the one order. */
static void add_strips(const float *strips, size_t n_strips, double out[N_SUMS])
{
    double lanes[LANES][N_SUMS] = {{0}};

    for (size_t strip = 0; strip < n_strips; strip++) {
        for (int k = 0; k < N_SUMS; k++) {
            lanes[strip % LANES][k] = vxd_addd(
                lanes[strip % LANES][k], (double)strips[strip * N_SUMS + (size_t)k]);
        }
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            for (int k = 0; k < N_SUMS; k++) {
                lanes[i][k] = vxd_addd(lanes[i][k], lanes[i + half][k]);
            }
        }
    }
    memcpy(out, lanes[0], sizeof lanes[0]);
}

static enum vxd_status align_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_odometry_align_call call = *(const struct vxd_odometry_align_call *)args;
    struct vxd_odometry_work *work = call.work;
    size_t n_strips = ((size_t)work->n_registered + STRIP - 1) / STRIP;
    int rounds = call.rule.is_last != 0 ? 1 : call.n;

    (void)err;
    for (size_t i = 0; call.is_begin && i < work->n_registered; i++) {
        call.kept[i].match = VXD_ODOMETRY_NO_MATCH;
        call.cells[i].cell[0] = INT32_MAX; /* no point is there */
    }
    for (int round = 0; round < rounds; round++) {
        if (call.rule.is_last == 0 && (work->is_done != 0 || work->is_singular != 0)) {
            break;
        }
        vxd_parallel_for(pool, n_strips, PIECE_STRIPS, PICK(strips), &call);
        add_strips(call.strips, n_strips, work->sums);
        if (call.rule.is_last == 0) {
            vxd_odometry_step(work);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_odometry_align_cpu(struct vxd_queue *queue,
                                       const struct vxd_odometry_align_call *call,
                                       struct vxd_err *err)
{
    return vxd_queue_push(queue, align_job, call, sizeof *call, err);
}
