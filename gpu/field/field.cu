// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of the passes of field_math.h. A thread block has a tile of a line: up to fifteen
 * blocks of eight targets along the axis of the pass, 32 voxels along z, and in shared memory the
 * squares of the tile and of what is within reach of it on both sides. A warp has a block of
 * eight targets, a lane a z: first the best candidate of the block's first target is searched,
 * then those between it and the next block's are tried for all eight at once. Squares of the first
 * pass are found from the bits when the second one's tile is loaded. Blocks that no change can
 * reach are left out, and of tiles only what is in reach of the others is loaded.
 *
 * Bytes a voxel: a quarter read from the bits, 3 written and (1 + 2 reach / 120) * 2 read by the
 * third pass, 3 written: about 10, of which tiles' margins are mostly found in L2. */
#include "gpu/core/core_cuda.h"
#include "gpu/field/field_backends.h"

#define TILE_Z 32
#define TILE_WARPS 16
/* One less than warps: those also have the target behind the last block. */
#define TILE_BLOCKS (TILE_WARPS - 1)
/* Whole blocks, with what is in reach on both sides. */
#define TILE_ROWS (TILE_BLOCKS * VXD_FIELD_BLOCK + 2 * (VXD_FIELD_MAX_DISTANCE + 1))
#define ALL_LANES 0xffffffffu
#define BITS_THREADS 256

static __device__ __forceinline__ size_t flag_index(const struct vxd_field_view *field,
                                                    int block_x, int block_y, int word)
{
    return ((size_t)block_x * (size_t)field->n_blocks[1] + (size_t)block_y) *
               (size_t)field->n_words +
           (size_t)word;
}

/* A thread a word of the part. */
static __global__ void __launch_bounds__(BITS_THREADS)
    take_bits_kernel(const __grid_constant__ struct vxd_field_part part, size_t n)
{
    const struct vxd_field_view *field = &part.field;
    size_t i = (size_t)blockIdx.x * BITS_THREADS + threadIdx.x;
    size_t row = i / (size_t)field->n_words;
    int word = (int)(i % (size_t)field->n_words);
    int x = part.first * VXD_FIELD_BLOCK + (int)(row / (size_t)field->size[1]);
    int y = (int)(row % (size_t)field->size[1]);
    uint64_t unknown;
    uint64_t bits;
    size_t to;

    if (i >= n) {
        return;
    }
    to = vxd_field_row(field, x, y) * (size_t)field->n_words + (size_t)word;
    bits = vxd_field_classify_word(part.unknown, part.tracks_free, part.occupied[i],
                                   part.free[i],
                                   vxd_field_word_mask(field->size[2], word), &unknown);
    if (bits != field->obstacles[to]) {
        field->obstacles[to] = bits;
        field->bits_changed[flag_index(field, x / VXD_FIELD_BLOCK, y / VXD_FIELD_BLOCK,
                                       word)] = 1;
    }
    if (field->unknown != NULL) {
        field->unknown[to] = unknown;
    }
}

/* A part of a line: targets first .. last - 1, of which candidates from .. to - 1 are in reach, all
 * whole blocks; the slice it is of, and the z of this thread. */
struct tile {
    int first, last;
    int from, to;
    int across;
    int z;
    bool has_z;
    bool is_along_y;
};

/* The squares of a tile, the least candidates of its blocks, and the places of the best candidates
 * of blocks' first targets, counted from the tile's first row. */
struct tile_rows {
    int16_t squares[TILE_ROWS][TILE_Z];
    int16_t minima[2][TILE_ROWS / VXD_FIELD_BLOCK][TILE_Z];
    int16_t places[2][TILE_WARPS][TILE_Z];
    unsigned active; /* blocks of targets, a bit each */
};

static __device__ __forceinline__ size_t place_of(const struct vxd_field_view *field,
                                                  const struct tile *tile, int target)
{
    return tile->is_along_y ? vxd_field_index(field, tile->across, target, tile->z)
                            : vxd_field_index(field, target, tile->across, tile->z);
}

static __device__ __forceinline__ size_t flag_of(const struct vxd_field_view *field,
                                                 const struct tile *tile, int block,
                                                 int word)
{
    int across = tile->across / VXD_FIELD_BLOCK;

    return tile->is_along_y ? flag_index(field, across, block, word)
                            : flag_index(field, block, across, word);
}

/* Divides a line of n voxels evenly among as many thread blocks as it needs. */
static __device__ __forceinline__ struct tile tile_of(const struct vxd_field_part *part,
                                                      int n, bool is_along_y)
{
    int n_blocks = n / VXD_FIELD_BLOCK;
    int blocks = (n_blocks + (int)gridDim.y - 1) / (int)gridDim.y;
    struct tile tile;

    tile.first = min(n, (int)blockIdx.y * blocks * VXD_FIELD_BLOCK);
    tile.last = min(n, tile.first + blocks * VXD_FIELD_BLOCK);
    tile.from = tile.first;
    tile.to = tile.last;
    tile.across = part->first * VXD_FIELD_BLOCK + (int)blockIdx.x;
    tile.z = (int)blockIdx.z * TILE_Z + (int)threadIdx.x;
    tile.has_z = tile.z < part->field.size[2];
    tile.is_along_y = is_along_y;
    return tile;
}

/* How far along the line the nearest change is from a block of targets, by all lanes of a warp;
 * INT32_MAX where none is within reach. Flags of words first_word .. last_word count. */
static __device__ int nearest_change(const struct vxd_field_view *field,
                                     const uint8_t *flags, const struct tile *tile, int n,
                                     int block, int first_word, int last_word)
{
    int n_away = (field->reach + VXD_FIELD_BLOCK - 1) / VXD_FIELD_BLOCK;
    int n_words = last_word - first_word + 1;
    int nearest = INT32_MAX;

    for (int i = (int)threadIdx.x; i < (2 * n_away + 1) * n_words; i += TILE_Z) {
        int away = i / n_words - n_away;
        int at = block + away;

        if (at >= 0 && at < n / VXD_FIELD_BLOCK &&
            flags[flag_of(field, tile, at, first_word + i % n_words)] != 0) {
            nearest =
                min(nearest, max(0, abs(away) * VXD_FIELD_BLOCK - (VXD_FIELD_BLOCK - 1)));
        }
    }
    for (int lanes = TILE_Z / 2; lanes > 0; lanes /= 2) {
        nearest = min(nearest, __shfl_xor_sync(ALL_LANES, nearest, lanes));
    }
    return nearest <= field->reach ? nearest : INT32_MAX;
}

/* Whether squares of this warp's block of targets can become other ones: a change that is as far
 * away as s is no nearer than s, hence leaves squares below s^2 as they are. */
static __device__ bool block_is_reached(const struct vxd_field_view *field,
                                        const uint8_t *flags, const int16_t *squares,
                                        const struct tile *tile, int n, int first_word,
                                        int last_word)
{
    int first = tile->first + (int)threadIdx.y * VXD_FIELD_BLOCK;
    bool is_reached = false;
    int s;

    if (first >= tile->last) {
        return false;
    }
    s = nearest_change(field, flags, tile, n, first / VXD_FIELD_BLOCK, first_word,
                       last_word);
    if (s == 0 || s == INT32_MAX) {
        return s == 0;
    }
    for (int j = 0; tile->has_z && j < VXD_FIELD_BLOCK; j++) {
        is_reached |= abs((int)squares[place_of(field, tile, first + j)]) >= s * s;
    }
    return __any_sync(ALL_LANES, is_reached) != 0;
}

/* Finds which blocks of a tile have to be done, and cuts the tile to these and what they reach;
 * false: none. All threads of the thread block call this. */
static __device__ bool find_active(const struct vxd_field_part *part,
                                   const uint8_t *flags, const int16_t *squares, int n,
                                   int first_word, int last_word, struct tile *tile,
                                   struct tile_rows *rows)
{
    const struct vxd_field_view *field = &part->field;
    int first = tile->first;
    bool is_active =
        part->is_all
            ? first + (int)threadIdx.y * VXD_FIELD_BLOCK < tile->last
            : block_is_reached(field, flags, squares, tile, n, first_word, last_word);

    if (threadIdx.x == 0 && threadIdx.y == 0) {
        rows->active = 0;
    }
    if (__syncthreads_or(is_active) == 0) {
        return false;
    }
    if (is_active && threadIdx.x == 0) {
        atomicOr(&rows->active, 1u << threadIdx.y);
    }
    __syncthreads();
    tile->from =
        max(0, first + (__ffs((int)rows->active) - 1) * VXD_FIELD_BLOCK - field->reach) /
        VXD_FIELD_BLOCK * VXD_FIELD_BLOCK;
    tile->to = min(n, (first + (32 - __clz((int)rows->active)) * VXD_FIELD_BLOCK +
                       field->reach + VXD_FIELD_BLOCK - 1) /
                          VXD_FIELD_BLOCK * VXD_FIELD_BLOCK);
    return true;
}

/* Finds the minima once the squares are there, by all threads of the block. */
static __device__ __forceinline__ void put_minima(const struct tile *tile,
                                                  struct tile_rows *rows)
{
    int n = (tile->to - tile->from) / VXD_FIELD_BLOCK;

    __syncthreads();
    for (int block = (int)threadIdx.y; block < n; block += TILE_WARPS) {
        int clear = VXD_FIELD_FAR;
        int obstacle = VXD_FIELD_FAR;

        for (int i = 0; i < VXD_FIELD_BLOCK; i++) {
            int square = rows->squares[block * VXD_FIELD_BLOCK + i][threadIdx.x];

            clear = min(clear, max(square, 0));
            obstacle = min(obstacle, max(-square, 0));
        }
        rows->minima[0][block][threadIdx.x] = (int16_t)clear;
        rows->minima[1][block][threadIdx.x] = (int16_t)obstacle;
    }
    __syncthreads();
}

/* The line of this thread's z. */
static __device__ __forceinline__ struct vxd_field_line
line_of(const struct vxd_field_view *field, const struct tile *tile,
        const struct tile_rows *rows)
{
    struct vxd_field_line line = {
        &rows->squares[0][threadIdx.x],
        {&rows->minima[0][0][threadIdx.x], &rows->minima[1][0][threadIdx.x]},
        TILE_Z,
        tile->to - tile->from,
        field->reach};

    return line;
}

/* Whether a block of targets, if it has to be done, has any of a kind in this lane: their squares
 * are 0 for targets of the other one. */
static __device__ __forceinline__ bool
has_kind(const struct tile *tile, const struct tile_rows *rows, int block, int sign)
{
    int at = (tile->first - tile->from) / VXD_FIELD_BLOCK + block;

    return tile->has_z && block >= 0 && (rows->active >> block & 1) != 0 &&
           rows->minima[sign > 0 ? 1 : 0][at][threadIdx.x] == 0;
}

/* The places of the best candidates at the ends of blocks, by all threads: warp w has that at the
 * beginning of block w. */
static __device__ __forceinline__ void put_places(const struct vxd_field_line *line,
                                                  const struct tile *tile,
                                                  struct tile_rows *rows)
{
    int block = (int)threadIdx.y;
    int target = tile->first - tile->from + block * VXD_FIELD_BLOCK;

    VXD_UNROLL
    for (int sign = 1; sign >= -1; sign -= 2) {
        if (has_kind(tile, rows, block, sign) || has_kind(tile, rows, block - 1, sign)) {
            rows->places[sign < 0][block][threadIdx.x] =
                (int16_t)(target < line->n ? vxd_field_line_place(line, sign, target)
                                           : line->n - 1);
        }
    }
    __syncthreads();
}

/* Writes this warp's block of targets, if it has to be done; says whether squares have become other
 * ones in this lane, which is not looked at where `is_all`. */
static __device__ __forceinline__ bool
put_block(const struct vxd_field_view *field, const struct vxd_field_line *line,
          const struct tile *tile, const struct tile_rows *rows, int16_t *squares,
          int8_t *steps, bool is_all)
{
    int block = (int)threadIdx.y;
    int first = tile->first - tile->from + block * VXD_FIELD_BLOCK;
    bool has_changed = false;
    int16_t before[VXD_FIELD_BLOCK] = {0};

    if (!is_all && tile->has_z && (rows->active >> block & 1) != 0) {
        VXD_UNROLL
        for (int j = 0; j < VXD_FIELD_BLOCK; j++) {
            before[j] = squares[place_of(field, tile, tile->from + first + j)];
        }
    }
    VXD_UNROLL
    for (int sign = 1; sign >= -1; sign -= 2) {
        int best[VXD_FIELD_BLOCK];

        if (!has_kind(tile, rows, block, sign)) {
            continue;
        }
        vxd_field_line_block(line, sign, first,
                             rows->places[sign < 0][block][threadIdx.x],
                             rows->places[sign < 0][block + 1][threadIdx.x], best);
        for (int j = 0; j < VXD_FIELD_BLOCK; j++) {
            size_t to = place_of(field, tile, tile->from + first + j);
            int step;
            int16_t square;

            if (sign * line->squares[(first + j) * TILE_Z] <= 0) {
                continue;
            }
            square =
                (int16_t)vxd_field_block_square(line, sign, first, j, best[j], &step);
            has_changed |= !is_all && square != before[j];
            squares[to] = square;
            steps[to] = (int8_t)step;
        }
    }
    return has_changed;
}

/* Beyond all reach, and still a sum of 16 bits. */
#define NO_STEP 0x3fff

/* The bits of a row in the tile's z, and how far below its first z, and from there on above its
 * last, the nearest voxels of either kind are: no obstacles in the low halves, obstacles in the high
 * ones. */
struct row_bits {
    uint32_t own;
    uint32_t below, above;
};

static __device__ __forceinline__ struct row_bits
row_bits_of(const struct vxd_field_view *field, const uint64_t *row, int z_first)
{
    int first = max(0, z_first - field->reach);
    int end = z_first + TILE_Z;
    int last = min(field->size[2] - 1, end - 1 + field->reach);
    struct row_bits bits = {
        (uint32_t)(row[z_first / VXD_FIELD_WORD] >> (z_first % VXD_FIELD_WORD)), 0, 0};

    VXD_UNROLL
    for (int kind = 0; kind < 2; kind++) {
        uint64_t flip = kind == 0 ? ~(uint64_t)0 : 0;
        int below = vxd_field_previous(row, flip, z_first - 1, first);
        int above = vxd_field_next(row, flip, end, last);

        bits.below |= (uint32_t)(below < 0 ? NO_STEP : z_first - below) << (16 * kind);
        bits.above |= (uint32_t)(above < 0 ? NO_STEP : above - end) << (16 * kind);
    }
    return bits;
}

/* The square of the first pass at this lane's z. `mask` has the bits of those in the box. */
static __device__ __forceinline__ int square_in_row(const struct vxd_field_view *field,
                                                    const struct row_bits *bits,
                                                    uint32_t mask)
{
    int lane = (int)threadIdx.x;
    bool is_obstacle = (bits->own >> lane & 1) != 0;
    uint32_t others = (is_obstacle ? ~bits->own : bits->own) & mask;
    uint32_t low = others & ((1u << lane) - 1);
    uint32_t high = others & ~((2u << lane) - 1);
    int shift = is_obstacle ? 0 : 16;
    int below = low != 0 ? lane - 31 + __clz((int)low)
                         : lane + (int)(bits->below >> shift & 0xffffu);
    int above = high != 0 ? __ffs((int)high) - 1 - lane
                          : TILE_Z - lane + (int)(bits->above >> shift & 0xffffu);
    int step = min(below, above);
    int square = step <= field->reach ? step * step : VXD_FIELD_FAR;

    return is_obstacle ? -square : square;
}

/* The squares of the first pass, by all threads of the block: a warp has 32 rows at once, of which
 * each lane examines one, and then one after the other. */
static __device__ __forceinline__ void put_row_squares(const struct vxd_field_view *field,
                                                       const struct tile *tile,
                                                       int z_first,
                                                       struct tile_rows *rows)
{
    int n_z = field->size[2] - z_first;
    uint32_t mask = n_z >= TILE_Z ? ~0u : (1u << n_z) - 1;

    for (int y = tile->from + (int)threadIdx.y; y < tile->to; y += TILE_WARPS * TILE_Z) {
        int y_lane = y + TILE_WARPS * (int)threadIdx.x;
        struct row_bits mine = {0, 0, 0};

        if (y_lane < tile->to) {
            mine =
                row_bits_of(field, vxd_field_bits(field, tile->across, y_lane), z_first);
        }
        for (int i = 0; i < TILE_Z && y + TILE_WARPS * i < tile->to; i++) {
            struct row_bits bits = {__shfl_sync(ALL_LANES, mine.own, i),
                                    __shfl_sync(ALL_LANES, mine.below, i),
                                    __shfl_sync(ALL_LANES, mine.above, i)};

            rows->squares[y + TILE_WARPS * i - tile->from][threadIdx.x] =
                tile->has_z ? (int16_t)square_in_row(field, &bits, mask) : (int16_t)0;
        }
    }
}

/* The first and second pass. */
static __global__ void __launch_bounds__(TILE_Z *TILE_WARPS)
    plane_kernel(const __grid_constant__ struct vxd_field_part part)
{
    __shared__ struct tile_rows rows;
    const struct vxd_field_view *field = &part.field;
    struct tile tile = tile_of(&part, field->size[1], true);
    struct vxd_field_line line;
    bool has_changed;
    int z_first = (int)blockIdx.z * TILE_Z;
    int z_last = min(field->size[2], z_first + TILE_Z) - 1;

    if (!find_active(&part, field->bits_changed, field->plane_squares, field->size[1],
                     max(0, z_first - field->reach) / VXD_FIELD_WORD,
                     min(field->size[2] - 1, z_last + field->reach) / VXD_FIELD_WORD,
                     &tile, &rows)) {
        return;
    }
    put_row_squares(field, &tile, z_first, &rows);
    put_minima(&tile, &rows);
    line = line_of(field, &tile, &rows);
    put_places(&line, &tile, &rows);
    has_changed = put_block(field, &line, &tile, &rows, field->plane_squares,
                            field->plane_steps, part.is_all);
    if (__any_sync(ALL_LANES, has_changed) != 0 && threadIdx.x == 0) {
        field->plane_changed[flag_of(field, &tile,
                                     tile.first / VXD_FIELD_BLOCK + (int)threadIdx.y,
                                     tile.z / VXD_FIELD_WORD)] = 1;
    }
}

/* The third pass. */
static __global__ void __launch_bounds__(TILE_Z *TILE_WARPS)
    space_kernel(const __grid_constant__ struct vxd_field_part part)
{
    __shared__ struct tile_rows rows;
    const struct vxd_field_view *field = &part.field;
    struct tile tile = tile_of(&part, field->size[0], false);
    struct vxd_field_line line;
    int word = (int)blockIdx.z * TILE_Z / VXD_FIELD_WORD;

    if (!find_active(&part, field->plane_changed, field->squares, field->size[0], word,
                     word, &tile, &rows)) {
        return;
    }
    for (int x = tile.from + (int)threadIdx.y; x < tile.to; x += TILE_WARPS) {
        rows.squares[x - tile.from][threadIdx.x] =
            tile.has_z ? field->plane_squares[place_of(field, &tile, x)] : (int16_t)0;
    }
    put_minima(&tile, &rows);
    line = line_of(field, &tile, &rows);
    put_places(&line, &tile, &rows);
    (void)put_block(field, &line, &tile, &rows, field->squares, field->steps, true);
}

/* A grid of a part's slices, tiles of a line, and pieces along z. */
static dim3 tiles_of(const struct vxd_field_part *part, int n)
{
    int n_blocks = n / VXD_FIELD_BLOCK;

    return dim3((unsigned)(part->last - part->first) * VXD_FIELD_BLOCK,
                (unsigned)(n_blocks + TILE_BLOCKS - 1) / TILE_BLOCKS,
                (unsigned)(part->field.size[2] + TILE_Z - 1) / TILE_Z);
}

enum vxd_status vxd_field_take_bits_cuda(struct vxd_queue *queue,
                                         const struct vxd_field_part *part,
                                         struct vxd_err *err)
{
    size_t n = (size_t)(part->last - part->first) * VXD_FIELD_BLOCK *
               (size_t)part->field.size[1] * (size_t)part->field.n_words;
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    take_bits_kernel<<<(unsigned)((n + BITS_THREADS - 1) / BITS_THREADS), BITS_THREADS, 0,
                       (cudaStream_t)queue->stream>>>(*part, n);
    VXD_TRY(vxd_cuda_launched(queue->context, "take_bits_kernel", err));
out:
    return status;
}

enum vxd_status vxd_field_plane_pass_cuda(struct vxd_queue *queue,
                                          const struct vxd_field_part *part,
                                          struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    plane_kernel<<<tiles_of(part, part->field.size[1]), dim3(TILE_Z, TILE_WARPS), 0,
                   (cudaStream_t)queue->stream>>>(*part);
    VXD_TRY(vxd_cuda_launched(queue->context, "plane_kernel", err));
out:
    return status;
}

enum vxd_status vxd_field_space_pass_cuda(struct vxd_queue *queue,
                                          const struct vxd_field_part *part,
                                          struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    space_kernel<<<tiles_of(part, part->field.size[0]), dim3(TILE_Z, TILE_WARPS), 0,
                   (cudaStream_t)queue->stream>>>(*part);
    VXD_TRY(vxd_cuda_launched(queue->context, "space_kernel", err));
out:
    return status;
}
