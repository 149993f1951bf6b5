// SPDX-License-Identifier: Apache-2.0
/* CUDA backend of the passes of field_math.h. A block has a tile of a line: 64 targets along the
 * axis of the pass, 32 voxels along z, and in shared memory the squares of the tile and of what
 * is within reach of it on both sides. A thread has a z and every eighth target, and searches
 * outwards until no farther candidate can be nearer. Squares of the first pass are found from
 * the bits when the second one's tile is loaded. Tiles that no change can reach end at once.
 *
 * Bytes a voxel: a quarter read from the bits, 3 written and (1 + 2 reach / 64) * 2 read by the
 * third pass, 3 written: about 10, of which tiles' margins are mostly found in L2. */
#include "gpu/core/core_cuda.h"
#include "gpu/field/field_backends.h"

#define TILE_Z 32
#define TILE_TARGETS 64
/* Whole blocks, with what is in reach on both sides. */
#define TILE_ROWS (TILE_TARGETS + 2 * (VXD_FIELD_MAX_DISTANCE + 1))
#define TILE_THREADS_Y 8
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

/* A block's tile: targets first .. last - 1 of a line, of which candidates from .. to - 1 are in
 * reach; z of this thread. */
struct tile {
    int first, last;
    int from, to; /* whole blocks */
    int z;
    bool has_z;
};

static __device__ __forceinline__ struct tile tile_of(const struct vxd_field_view *field,
                                                      int n)
{
    struct tile tile;

    tile.first = (int)blockIdx.y * TILE_TARGETS;
    tile.last = min(n, tile.first + TILE_TARGETS);
    tile.from = max(0, tile.first - field->reach) / VXD_FIELD_BLOCK * VXD_FIELD_BLOCK;
    tile.to = min(n, (tile.last + field->reach + VXD_FIELD_BLOCK - 1) / VXD_FIELD_BLOCK *
                         VXD_FIELD_BLOCK);
    tile.z = (int)blockIdx.z * TILE_Z + (int)threadIdx.x;
    tile.has_z = tile.z < field->size[2];
    return tile;
}

/* Whether flags are set within reach of a tile, by all threads of the block: of blocks along the
 * axis of the pass, and words from `first_word` to `last_word`. */
static __device__ bool tile_is_reached(const struct vxd_field_view *field,
                                       const uint8_t *flags, const struct tile *tile,
                                       bool along_y, int across, int first_word,
                                       int last_word)
{
    int first = tile->from / VXD_FIELD_BLOCK;
    int n = (tile->to - 1) / VXD_FIELD_BLOCK - first + 1;
    int n_words = last_word - first_word + 1;
    int found = 0;

    for (int i = (int)(threadIdx.y * TILE_Z + threadIdx.x); i < n * n_words;
         i += TILE_Z * TILE_THREADS_Y) {
        int block = first + i / n_words;
        int word = first_word + i % n_words;

        found |= flags[along_y ? flag_index(field, across, block, word)
                               : flag_index(field, block, across, word)];
    }
    return __syncthreads_or(found) != 0;
}

/* The squares of a tile, and the least candidates of its blocks. */
struct tile_rows {
    int16_t squares[TILE_ROWS][TILE_Z];
    int16_t minima[2][TILE_ROWS / VXD_FIELD_BLOCK][TILE_Z];
};

/* Finds the minima once the squares are there, by all threads of the block. */
static __device__ __forceinline__ void put_minima(const struct tile *tile,
                                                  struct tile_rows *rows)
{
    int n = (tile->to - tile->from) / VXD_FIELD_BLOCK;

    __syncthreads();
    for (int block = (int)threadIdx.y; block < n; block += TILE_THREADS_Y) {
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

/* One target in the loaded tile, of this thread's z. */
static __device__ __forceinline__ int tile_square(const struct vxd_field_view *field,
                                                  const struct tile *tile,
                                                  const struct tile_rows *rows,
                                                  int target, int *step)
{
    struct vxd_field_line line = {
        &rows->squares[0][threadIdx.x],
        {&rows->minima[0][0][threadIdx.x], &rows->minima[1][0][threadIdx.x]},
        TILE_Z,
        tile->to - tile->from,
        field->reach};

    return vxd_field_line_square(&line, target - tile->from, step);
}

/* The first and second pass. */
static __global__ void __launch_bounds__(TILE_Z *TILE_THREADS_Y)
    plane_kernel(const __grid_constant__ struct vxd_field_part part)
{
    __shared__ struct tile_rows rows;
    const struct vxd_field_view *field = &part.field;
    int x = part.first * VXD_FIELD_BLOCK + (int)blockIdx.x;
    struct tile tile = tile_of(field, field->size[1]);
    int z_first = (int)blockIdx.z * TILE_Z;
    int z_last = min(field->size[2], z_first + TILE_Z) - 1;

    if (!tile_is_reached(field, field->bits_changed, &tile, true, x / VXD_FIELD_BLOCK,
                         max(0, z_first - field->reach) / VXD_FIELD_WORD,
                         min(field->size[2] - 1, z_last + field->reach) /
                             VXD_FIELD_WORD)) {
        return;
    }
    for (int y = tile.from + (int)threadIdx.y; y < tile.to; y += TILE_THREADS_Y) {
        rows.squares[y - tile.from][threadIdx.x] =
            tile.has_z ? (int16_t)vxd_field_row_square(field, vxd_field_bits(field, x, y),
                                                       tile.z)
                       : (int16_t)0;
    }
    put_minima(&tile, &rows);
    for (int y = tile.first + (int)threadIdx.y; tile.has_z && y < tile.last;
         y += TILE_THREADS_Y) {
        size_t to = vxd_field_index(field, x, y, tile.z);
        int step;
        int16_t square = (int16_t)tile_square(field, &tile, &rows, y, &step);

        if (square != field->plane_squares[to]) {
            field->plane_squares[to] = square;
            field->plane_changed[flag_index(field, x / VXD_FIELD_BLOCK,
                                            y / VXD_FIELD_BLOCK,
                                            tile.z / VXD_FIELD_WORD)] = 1;
        }
        field->plane_steps[to] = (int8_t)step;
    }
}

/* The third pass. */
static __global__ void __launch_bounds__(TILE_Z *TILE_THREADS_Y)
    space_kernel(const __grid_constant__ struct vxd_field_part part)
{
    __shared__ struct tile_rows rows;
    const struct vxd_field_view *field = &part.field;
    int y = part.first * VXD_FIELD_BLOCK + (int)blockIdx.x;
    struct tile tile = tile_of(field, field->size[0]);
    int word = (int)blockIdx.z * TILE_Z / VXD_FIELD_WORD;

    if (!tile_is_reached(field, field->plane_changed, &tile, false, y / VXD_FIELD_BLOCK,
                         word, word)) {
        return;
    }
    for (int x = tile.from + (int)threadIdx.y; x < tile.to; x += TILE_THREADS_Y) {
        rows.squares[x - tile.from][threadIdx.x] =
            tile.has_z ? field->plane_squares[vxd_field_index(field, x, y, tile.z)]
                       : (int16_t)0;
    }
    put_minima(&tile, &rows);
    for (int x = tile.first + (int)threadIdx.y; tile.has_z && x < tile.last;
         x += TILE_THREADS_Y) {
        size_t to = vxd_field_index(field, x, y, tile.z);
        int step;

        field->squares[to] = (int16_t)tile_square(field, &tile, &rows, x, &step);
        field->steps[to] = (int8_t)step;
    }
}

/* A grid of a part's slices, tiles of a line, and pieces along z. */
static dim3 tiles_of(const struct vxd_field_part *part, int n)
{
    return dim3((unsigned)(part->last - part->first) * VXD_FIELD_BLOCK,
                (unsigned)(n + TILE_TARGETS - 1) / TILE_TARGETS,
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
    plane_kernel<<<tiles_of(part, part->field.size[1]), dim3(TILE_Z, TILE_THREADS_Y), 0,
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
    space_kernel<<<tiles_of(part, part->field.size[0]), dim3(TILE_Z, TILE_THREADS_Y), 0,
                   (cudaStream_t)queue->stream>>>(*part);
    VXD_TRY(vxd_cuda_launched(queue->context, "space_kernel", err));
out:
    return status;
}
