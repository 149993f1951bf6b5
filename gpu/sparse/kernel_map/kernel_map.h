// SPDX-License-Identifier: Apache-2.0
/* Kernel maps: which input row each tap of each output row reads (the paper's offset table;
 * its location table is the set's block table). */
#ifndef VXD_GPU_SPARSE_KERNEL_MAP_KERNEL_MAP_H
#define VXD_GPU_SPARSE_KERNEL_MAP_KERNEL_MAP_H

#include "gpu/sparse/coords/coords.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of 32-bit words of a row's tap mask. */
#define VXD_SPARSE_MASK_WORDS(n_taps) (((n_taps) + 31) / 32)

/* Rows of tables are padded to a multiple of this, so that tiles never need a bounds
 * check. */
#define VXD_SPARSE_ROW_PAD 128

/* Convolutions divide the ordered rows into tiles of 64, 128 or 256. */
#define VXD_SPARSE_TILE_ROWS 64
#define VXD_SPARSE_TILE_SIZES 3

struct vxd_kernel_map {
    int n_taps;
    size_t capacity; /* output rows, a multiple of VXD_SPARSE_ROW_PAD */
    /* n_taps x capacity: input row or -1, tap major. It is -1 between the rows and the
     * next multiple of VXD_SPARSE_ROW_PAD, and undefined after that. */
    int32_t *table;
    /* capacity x words: bit t = tap t reads a row; CUDA only, else NULL. */
    uint32_t *masks;
    /* capacity: output rows sorted by mask, rarest tap first, in the order of a Gray
     * code, so that rows of a tile share their taps (research, 2.4); then the rows of
     * the padding in ascending order. From vxd_sparse_tiles_at on follow, for each
     * size of tiles, the numbers of the tiles that contain a row, those with the most
     * taps first. CUDA only, else NULL. */
    uint32_t *order;
    uint64_t *n_pairs; /* one value: entries that are not -1 */
};

/* Device bytes of a map (0: taps not 1 to VXD_SPARSE_MAX_TAPS, rows above 2^31 - 1 less the
 * padding, or overflow), and the map laid out in one 256-aligned block of that size.
 * errors of the latter  INVALID_ARGUMENT  where the size would be 0 */
size_t vxd_kernel_map_bytes(const struct vxd_queue *queue, int n_taps, size_t n_rows);
enum vxd_status vxd_kernel_map_layout(const struct vxd_queue *queue, void *block,
                                      int n_taps, size_t n_rows,
                                      struct vxd_kernel_map *out, struct vxd_err *err);

/* Device bytes; 0 where no scratch is needed. */
size_t vxd_kernel_map_scratch_bytes(const struct vxd_queue *queue, int n_taps,
                                    size_t n_rows);

/* Fills the map of `out` rows that read `in` rows; each tap reads at most one row.
 *
 * errors  INVALID_ARGUMENT    a geometry outside its ranges; a map of another number of taps;
 *                             less scratch than vxd_kernel_map_scratch_bytes of its capacity
 *         RESOURCE_EXHAUSTED  by the wait: more rows than the map's capacity
 * sync    asynchronous; reads the sets' device counts */
enum vxd_status vxd_kernel_map_build(struct vxd_queue *queue,
                                     const struct vxd_sparse_geometry *geometry,
                                     const struct vxd_coord_set *in,
                                     const struct vxd_coord_set *out,
                                     struct vxd_kernel_map *map, void *scratch,
                                     size_t scratch_bytes, struct vxd_err *err);

/* Several maps at once. On a GPU one launch makes many, since the map of a scan
 * occupies it for only a few microseconds. */
struct vxd_kernel_map_request {
    struct vxd_sparse_geometry geometry;
    const struct vxd_coord_set *in;
    const struct vxd_coord_set *out;
    struct vxd_kernel_map *map;
};

/* Device bytes, the sum of vxd_kernel_map_scratch_bytes over the maps; SIZE_MAX where
 * the sum overflows. */
size_t vxd_kernel_maps_scratch_bytes(const struct vxd_queue *queue,
                                     const struct vxd_kernel_map_request *requests,
                                     size_t n);

/* As vxd_kernel_map_build for each; the error does not name the request that failed. */
enum vxd_status vxd_kernel_maps_build(struct vxd_queue *queue,
                                      const struct vxd_kernel_map_request *requests,
                                      size_t n, void *scratch, size_t scratch_bytes,
                                      struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
