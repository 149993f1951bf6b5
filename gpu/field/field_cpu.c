// SPDX-License-Identifier: Apache-2.0
/* The passes of field_math.h on the pool: a piece is a slice across x, then across y. The lines of
 * a slice are first put together in scratch, where neighbours are near each other; then sixteen
 * targets along z are searched at once, from the nearest candidates outwards, until no farther
 * one can be nearer. Slices and blocks that no change can reach are left as they are. */
#include "gpu/field/field_backends.h"

#if defined(__x86_64__)
#define HAS_AVX2 1
#else
#define HAS_AVX2 0
#endif

#define INLINE static inline __attribute__((always_inline))

typedef int16_t lanes __attribute__((vector_size(32), may_alias));
typedef int8_t small_lanes __attribute__((vector_size(16), may_alias));
typedef uint64_t quads __attribute__((vector_size(32), may_alias));

_Static_assert(sizeof(lanes) == VXD_FIELD_LANES * sizeof(int16_t), "lanes of a row");

/* --- bits ------------------------------------------------------------------------------ */

static void set_flag(uint8_t *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

static size_t flag_index(const struct vxd_field_view *field, int block_x, int block_y)
{
    return ((size_t)block_x * (size_t)field->n_blocks[1] + (size_t)block_y) *
           (size_t)field->n_words;
}

/* One row of bits; `from` counts from the part's first row. */
static void take_row(const struct vxd_field_part *part, int x, int y, size_t from)
{
    const struct vxd_field_view *field = &part->field;
    size_t n_words = (size_t)field->n_words;
    size_t to = vxd_field_row(field, x, y) * n_words;
    uint8_t *flags =
        field->bits_changed + flag_index(field, x / VXD_FIELD_BLOCK, y / VXD_FIELD_BLOCK);

    for (size_t word = 0; word < n_words; word++) {
        uint64_t unknown;
        uint64_t bits = vxd_field_classify_word(
            part->unknown, part->tracks_free, part->occupied[from * n_words + word],
            part->free[from * n_words + word],
            vxd_field_word_mask(field->size[2], (int)word), &unknown);

        if (bits != field->obstacles[to + word]) {
            field->obstacles[to + word] = bits;
            set_flag(flags + word);
        }
        if (field->unknown != NULL) {
            field->unknown[to + word] = unknown;
        }
    }
}

static void take_slice(void *context, size_t begin, size_t end)
{
    const struct vxd_field_part *part = context;
    size_t n_rows = (size_t)part->field.size[1];

    for (size_t i = begin; i < end; i++) {
        for (size_t y = 0; y < n_rows; y++) {
            take_row(part, part->first * VXD_FIELD_BLOCK + (int)i, (int)y,
                     i * n_rows + y);
        }
    }
}

/* --- lines ----------------------------------------------------------------------------- */

/* The first pass of a whole row: runs of voxels of one kind, whose ends are near the other. */
static void put_row(const struct vxd_field_view *field, int x, int y, int16_t *out)
{
    const uint64_t *row = vxd_field_bits(field, x, y);
    const int n = field->size[2];
    const int reach = field->reach;

    for (int start = 0; start < n;) {
        bool is_obstacle =
            (row[start / VXD_FIELD_WORD] >> (start % VXD_FIELD_WORD) & 1) != 0;
        int next = vxd_field_next(row, is_obstacle ? ~(uint64_t)0 : 0, start, n - 1);
        int length = (next < 0 ? n : next) - start;
        int low = start > 0 ? 1 : reach + 1;
        int high = next < 0 ? length + reach + 1 : length;
        int sign = is_obstacle ? -1 : 1;

        for (int i = 0; i < length; i++) {
            int step = low + i < high - i ? low + i : high - i;

            out[start + i] =
                (int16_t)(sign * (step > reach ? (int)VXD_FIELD_FAR : step * step));
        }
        start += length;
    }
    for (int i = n; i < field->pitch; i++) {
        out[i] = 0; /* neither kind: its search ends at once */
    }
}

/* A line of rows of targets: place i of n at rows + i * pitch. Behind the rows stand, for each
 * block of eight, the least candidates of targets that are no obstacles, and behind these the
 * same for targets that are. */
struct line {
    const int16_t *rows;
    const int16_t *minima[2];
    int pitch;
    int n;
    int reach;
};

/* Completes the minima of a line whose rows are there. */
static struct line make_line(const struct vxd_field_view *field, int16_t *rows, int n)
{
    size_t pitch = (size_t)field->pitch;
    size_t n_blocks = (size_t)n / VXD_FIELD_BLOCK;
    int16_t *minima = rows + (size_t)n * pitch;

    for (size_t block = 0; block < n_blocks; block++) {
        int16_t *clear = minima + block * pitch;
        int16_t *obstacle = minima + (n_blocks + block) * pitch;

        for (size_t z = 0; z < pitch; z++) {
            clear[z] = VXD_FIELD_FAR;
            obstacle[z] = VXD_FIELD_FAR;
        }
        for (size_t i = block * VXD_FIELD_BLOCK; i < (block + 1) * VXD_FIELD_BLOCK; i++) {
            const int16_t *row = rows + i * pitch;

            for (size_t z = 0; z < pitch; z++) {
                int16_t from = row[z] > 0 ? row[z] : 0;
                int16_t negated = row[z] < 0 ? (int16_t)-row[z] : 0;

                clear[z] = from < clear[z] ? from : clear[z];
                obstacle[z] = negated < obstacle[z] ? negated : obstacle[z];
            }
        }
    }
    return (struct line){
        rows, {minima, minima + n_blocks * pitch}, field->pitch, n, field->reach};
}

INLINE bool is_any(const lanes *mask)
{
    const quads all = (quads)*mask;

    return (all[0] | all[1] | all[2] | all[3]) != 0;
}

/* Keeps `best` where the mask is set, and takes the candidate elsewhere. */
INLINE void take_lanes(lanes *best, lanes *step, const lanes *candidate,
                       const lanes *keep, int s)
{
    *best = (*best & *keep) | (*candidate & ~*keep);
    *step = (*step & *keep) | (((lanes){0} + (int16_t)s) & ~*keep);
}

/* Sixteen candidates of one row, at `s` from the target. */
INLINE void try_row(const int16_t *row, int s, bool negate, lanes *best, lanes *step)
{
    lanes from = *(const lanes *)(const void *)row;
    lanes keep;

    from = negate ? -from : from;
    from = (from & (lanes)(from > 0)) + (int16_t)(s * s);
    keep = s < 0 ? (lanes)(from > *best) : (lanes)(from >= *best);
    take_lanes(best, step, &from, &keep, s);
}

/* Candidates below the targets, then those above, from the nearest on. Of equal ones the last
 * counts below, and none above. The targets' own block goes row by row; of others the least
 * candidate decides whether they are looked into. */
INLINE void search_below(const struct line *line, int target, int z, bool negate,
                         lanes *best, lanes *step)
{
    const int16_t *rows = line->rows + z;
    const int16_t *minima = line->minima[negate] + z;
    int first = target - line->reach > 0 ? target - line->reach : 0;
    int block = target / VXD_FIELD_BLOCK;
    lanes is_near =
        (lanes)(*(const lanes *)(const void *)(minima + (ptrdiff_t)block * line->pitch) +
                    1 <=
                *best);

    for (int i = target - 1;
         is_any(&is_near) && i >= block * VXD_FIELD_BLOCK && i >= first; i--) {
        try_row(rows + (ptrdiff_t)i * line->pitch, i - target, negate, best, step);
    }
    for (int i = block * VXD_FIELD_BLOCK - 1; i >= first; i -= VXD_FIELD_BLOCK) {
        const int16_t square = (int16_t)((target - i) * (target - i));
        const lanes is_open = (lanes)(*best >= square);
        const int16_t *least = minima + (ptrdiff_t)(i / VXD_FIELD_BLOCK) * line->pitch;

        if (!is_any(&is_open)) {
            return;
        }
        is_near = (lanes)(*(const lanes *)(const void *)least + square <= *best);
        for (int j = i; is_any(&is_near) && j > i - VXD_FIELD_BLOCK && j >= first; j--) {
            try_row(rows + (ptrdiff_t)j * line->pitch, j - target, negate, best, step);
        }
    }
}

INLINE void search_above(const struct line *line, int target, int z, bool negate,
                         lanes *best, lanes *step)
{
    const int16_t *rows = line->rows + z;
    const int16_t *minima = line->minima[negate] + z;
    int last = target + line->reach < line->n ? target + line->reach : line->n - 1;
    int next = (target / VXD_FIELD_BLOCK + 1) * VXD_FIELD_BLOCK;
    const int16_t *own = minima + (ptrdiff_t)(target / VXD_FIELD_BLOCK) * line->pitch;
    lanes is_near = (lanes)(*(const lanes *)(const void *)own + 1 < *best);

    for (int i = target + 1; is_any(&is_near) && i < next && i <= last; i++) {
        try_row(rows + (ptrdiff_t)i * line->pitch, i - target, negate, best, step);
    }
    for (int i = next; i <= last; i += VXD_FIELD_BLOCK) {
        const int16_t square = (int16_t)((i - target) * (i - target));
        const lanes is_open = (lanes)(*best > square);
        const int16_t *least = minima + (ptrdiff_t)(i / VXD_FIELD_BLOCK) * line->pitch;

        if (!is_any(&is_open)) {
            return;
        }
        is_near = (lanes)(*(const lanes *)(const void *)least + square < *best);
        for (int j = i; is_any(&is_near) && j < i + VXD_FIELD_BLOCK && j <= last; j++) {
            try_row(rows + (ptrdiff_t)j * line->pitch, j - target, negate, best, step);
        }
    }
}

/* Searches sixteen targets; lanes whose best is -1 take nothing. */
INLINE void search_lanes(const struct line *line, int target, int z, bool negate,
                         lanes *best, lanes *step)
{
    search_below(line, target, z, negate, best, step);
    search_above(line, target, z, negate, best, step);
}

/* Sixteen results, by vxd_field_line_square; true where a square is not what it was. */
INLINE bool put_lanes(const struct line *line, int target, int z, int16_t *squares,
                      int8_t *steps)
{
    const lanes own =
        *(const lanes *)(const void *)(line->rows + (ptrdiff_t)target * line->pitch + z);
    const lanes is_clear = (lanes)(own > 0);
    const lanes is_obstacle = (lanes)(own < 0);
    lanes best = (own & is_clear) | ~is_clear;
    lanes step = {0};
    lanes sum;
    lanes is_far;
    lanes differs;

    search_lanes(line, target, z, false, &best, &step);
    sum = best & is_clear;
    if (is_any(&is_obstacle)) {
        best = (-own & is_obstacle) | ~is_obstacle;
        search_lanes(line, target, z, true, &best, &step);
        sum |= best & is_obstacle;
    }
    is_far = (lanes)(sum > (int16_t)(line->reach * line->reach));
    sum = (sum & ~is_far) | (((lanes){0} + (int16_t)VXD_FIELD_FAR) & is_far);
    step &= ~is_far;
    sum = (sum ^ is_obstacle) - is_obstacle;
    differs = sum ^ *(const lanes *)(const void *)squares;
    *(lanes *)(void *)squares = sum;
    *(small_lanes *)(void *)steps = __builtin_convertvector(step, small_lanes);
    return is_any(&differs);
}

/* Targets first .. last - 1 of a line; `stride` is from one target's results to the next one's.
 * True where a square is not what it was. */
INLINE bool put_targets(const struct line *line, int first, int last, int16_t *squares,
                        int8_t *steps, size_t stride)
{
    bool changed = false;

    for (int target = first; target < last; target++) {
        size_t row = (size_t)(target - first) * stride;

        for (int z = 0; z < line->pitch; z += VXD_FIELD_LANES) {
            changed |= put_lanes(line, target, z, squares + row + z, steps + row + z);
        }
    }
    return changed;
}

static bool put_targets_base(const struct line *line, int first, int last,
                             int16_t *squares, int8_t *steps, size_t stride)
{
    return put_targets(line, first, last, squares, steps, stride);
}

#if HAS_AVX2
__attribute__((target("avx2"))) static bool put_targets_avx2(const struct line *line,
                                                             int first, int last,
                                                             int16_t *squares,
                                                             int8_t *steps, size_t stride)
{
    return put_targets(line, first, last, squares, steps, stride);
}
#endif

typedef bool (*put_targets_fn)(const struct line *line, int first, int last,
                               int16_t *squares, int8_t *steps, size_t stride);

static put_targets_fn pick_put_targets(void)
{
#if HAS_AVX2
    if (__builtin_cpu_supports("avx2")) {
        return put_targets_avx2;
    }
#endif
    return put_targets_base;
}

/* --- passes ---------------------------------------------------------------------------- */

struct pass {
    struct vxd_field_part part;
    put_targets_fn put;
};

/* Whether flags are set within reach of a block. `axis` is the one that the blocks go along, and
 * `other` the block across it. */
static bool is_reached(const struct vxd_field_view *field, const uint8_t *flags, int axis,
                       int block, int other)
{
    int n = (field->reach + VXD_FIELD_BLOCK - 1) / VXD_FIELD_BLOCK;
    int first = block > n ? block - n : 0;
    int last = block + n < field->n_blocks[axis] ? block + n : field->n_blocks[axis] - 1;

    for (int i = first; i <= last; i++) {
        const uint8_t *row = flags + (axis == 1 ? flag_index(field, other, i)
                                                : flag_index(field, i, other));

        for (int word = 0; word < field->n_words; word++) {
            if (row[word] != 0) {
                return true;
            }
        }
    }
    return false;
}

/* Says of a block of squares that they have changed. */
static void set_plane_flags(const struct vxd_field_view *field, int block_x, int block_y)
{
    uint8_t *flags = field->plane_changed + flag_index(field, block_x, block_y);

    for (int word = 0; word < field->n_words; word++) {
        set_flag(flags + word);
    }
}

static void plane_slice(const struct pass *pass, int x, int16_t *rows)
{
    const struct vxd_field_view *field = &pass->part.field;
    struct line line = {0};

    for (int block = 0; block < field->n_blocks[1]; block++) {
        int first = block * VXD_FIELD_BLOCK;
        size_t to = vxd_field_index(field, x, first, 0);

        if (!is_reached(field, field->bits_changed, 1, block, x / VXD_FIELD_BLOCK)) {
            continue;
        }
        if (line.rows == NULL) {
            for (int y = 0; y < field->size[1]; y++) {
                put_row(field, x, y, rows + (size_t)y * (size_t)field->pitch);
            }
            line = make_line(field, rows, field->size[1]);
        }
        if (pass->put(&line, first, first + VXD_FIELD_BLOCK, field->plane_squares + to,
                      field->plane_steps + to, (size_t)field->pitch)) {
            set_plane_flags(field, x / VXD_FIELD_BLOCK, block);
        }
    }
}

static void plane_slices(void *context, size_t begin, size_t end)
{
    const struct pass *pass = context;
    const struct vxd_field_view *field = &pass->part.field;

    for (size_t i = begin; i < end; i++) {
        plane_slice(pass, pass->part.first * VXD_FIELD_BLOCK + (int)i,
                    pass->part.lines +
                        i * vxd_field_line_rows(field->size[1]) * (size_t)field->pitch);
    }
}

static void space_slice(const struct pass *pass, int y, int16_t *rows)
{
    const struct vxd_field_view *field = &pass->part.field;
    struct line line = {0};
    size_t pitch = (size_t)field->pitch;
    size_t stride = (size_t)field->size[1] * pitch;

    for (int block = 0; block < field->n_blocks[0]; block++) {
        int first = block * VXD_FIELD_BLOCK;
        size_t to = vxd_field_index(field, first, y, 0);

        if (!is_reached(field, field->plane_changed, 0, block, y / VXD_FIELD_BLOCK)) {
            continue;
        }
        if (line.rows == NULL) {
            for (int x = 0; x < field->size[0]; x++) {
                memcpy(rows + (size_t)x * pitch,
                       field->plane_squares + vxd_field_index(field, x, y, 0),
                       pitch * sizeof *rows);
            }
            line = make_line(field, rows, field->size[0]);
        }
        (void)pass->put(&line, first, first + VXD_FIELD_BLOCK, field->squares + to,
                        field->steps + to, stride);
    }
}

static void space_slices(void *context, size_t begin, size_t end)
{
    const struct pass *pass = context;
    const struct vxd_field_view *field = &pass->part.field;

    for (size_t i = begin; i < end; i++) {
        space_slice(pass, pass->part.first * VXD_FIELD_BLOCK + (int)i,
                    pass->part.lines +
                        i * vxd_field_line_rows(field->size[0]) * (size_t)field->pitch);
    }
}

static void run_slices(struct vxd_pool *pool, const void *context, vxd_loop_fn body)
{
    struct pass pass = {.put = pick_put_targets()};

    memcpy(&pass.part, context, sizeof pass.part);
    vxd_parallel_for(pool, (size_t)(pass.part.last - pass.part.first) * VXD_FIELD_BLOCK,
                     1, body, &pass);
}

static enum vxd_status take_job(struct vxd_pool *pool, const void *context,
                                struct vxd_err *err)
{
    struct vxd_field_part part = *(const struct vxd_field_part *)context;

    (void)err;
    vxd_parallel_for(pool, (size_t)(part.last - part.first) * VXD_FIELD_BLOCK, 1,
                     take_slice, &part);
    return VXD_OK;
}

static enum vxd_status plane_job(struct vxd_pool *pool, const void *context,
                                 struct vxd_err *err)
{
    (void)err;
    run_slices(pool, context, plane_slices);
    return VXD_OK;
}

static enum vxd_status space_job(struct vxd_pool *pool, const void *context,
                                 struct vxd_err *err)
{
    (void)err;
    run_slices(pool, context, space_slices);
    return VXD_OK;
}

enum vxd_status vxd_field_take_bits_cpu(struct vxd_queue *queue,
                                        const struct vxd_field_part *call,
                                        struct vxd_err *err)
{
    return vxd_queue_push(queue, take_job, call, sizeof *call, err);
}

enum vxd_status vxd_field_plane_pass_cpu(struct vxd_queue *queue,
                                         const struct vxd_field_part *call,
                                         struct vxd_err *err)
{
    return vxd_queue_push(queue, plane_job, call, sizeof *call, err);
}

enum vxd_status vxd_field_space_pass_cpu(struct vxd_queue *queue,
                                         const struct vxd_field_part *call,
                                         struct vxd_err *err)
{
    return vxd_queue_push(queue, space_job, call, sizeof *call, err);
}
