// SPDX-License-Identifier: Apache-2.0
/* What the files of convolutions on CUDA share; for .cu files only.
 *
 * The unit of work is a slot: 32 bytes of input channels of one tap (16 channels of two bytes, 8
 * of four), the depth of one matrix instruction. Packed weights are n_taps x n_slots tiles of
 * n_padded output channels x 32 bytes, with zeros where there is no channel. A tile is a sequence
 * of matrices in the layout that matrix units load: 8 output channels x 16 bytes, first half
 * before second, so any 8 adjacent output channels are 256 consecutive bytes. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_CUDA_H
#define VXD_GPU_SPARSE_CONV_CONV_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/sparse/conv/conv_math.h"
#include "gpu/sparse/conv/conv_backends.h"

#define VXD_CONV_SLOT_BYTES 32
#define VXD_CONV_TILE_ROWS 128

struct vxd_conv_shape {
    int n_in;
    int n_out;
    int n_slots;  /* of a tap */
    int n_tile;   /* output channels of a tile: 16, 32, 64 or 96 */
    int n_padded; /* output channels, a multiple of n_tile */
};

/* Depends on the layer only. A tile of more channels would leave fewer stages and
 * registers, and wide layers have few rows: small tiles keep the device busy. */
static inline struct vxd_conv_shape vxd_conv_shape_of(int n_in, int n_out,
                                                      enum vxd_net_precision precision)
{
    int n_elements = VXD_CONV_SLOT_BYTES / (int)vxd_net_element_bytes(precision);
    struct vxd_conv_shape shape = {n_in, n_out, (n_in + n_elements - 1) / n_elements, 64,
                                   0};

    if (n_out <= 32) {
        shape.n_tile = n_out <= 16 ? 16 : 32;
    } else if ((n_out + 95) / 96 * 96 < (n_out + 63) / 64 * 64) {
        shape.n_tile = 96;
    }
    shape.n_padded = (n_out + shape.n_tile - 1) / shape.n_tile * shape.n_tile;
    return shape;
}

/* Byte offset of a packed weight. */
static inline __host__ __device__ size_t vxd_conv_weight_at(int n_slots, int n_padded,
                                                            int tap, int channel, int out,
                                                            int element_bytes)
{
    int n_elements = VXD_CONV_SLOT_BYTES / element_bytes;
    int in_slot = channel % n_elements * element_bytes;
    size_t slot = (size_t)tap * (size_t)n_slots + (size_t)(channel / n_elements);

    return (slot * (size_t)(n_padded / 8) + (size_t)(out / 8)) * 256 +
           (size_t)(in_slot / 16 * 128 + out % 8 * 16 + in_slot % 16);
}

/* The arguments of a kernel. */
struct vxd_conv_tiles {
    const char *in;
    uint32_t in_row_bytes;
    char *out;
    size_t out_row_bytes;
    const char *add; /* NULL = none */
    size_t add_row_bytes;
    const float *bias; /* NULL = none */
    const char *weights;
    const int32_t *table; /* NULL: row i reads row i */
    const uint32_t *masks;
    const uint32_t *order;
    size_t map_capacity;
    const uint32_t *n_rows;
    uint32_t *error_word;
    uint32_t max_rows; /* upper bound of the rows */
    int n_taps;
    int n_in;
    int n_out;
    int n_slots;
    uint32_t slots_reciprocal; /* 2^32 / n_slots rounded up; 0 = one slot */
    int n_padded;
    int n_stages; /* stages of the pipeline */
    enum vxd_net_act act;
    float alpha;
    int in_alignment;    /* alignment of every row and of its end: 16, 8, 4 or 2 bytes */
    bool is_out_aligned; /* rows of out and add, and bias, are aligned to 16 bytes */
    /* is_out_aligned, n_out is a multiple of 16 bytes too, and the activation is none
     * or ReLU */
    bool is_out_whole;
};

/* Launches the tiles; n_tile is that of the shape. */
enum vxd_status vxd_conv_tiles_fp32(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err);
enum vxd_status vxd_conv_tiles_tf32(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err);
enum vxd_status vxd_conv_tiles_fp16(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err);
enum vxd_status vxd_conv_tiles_bf16(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err);
/* The same with Hopper's asynchronous matrix instructions, on compute capability 9.0
 * only. */
enum vxd_status vxd_conv_wgmma_tf32(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err);
enum vxd_status vxd_conv_wgmma_fp16(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err);
enum vxd_status vxd_conv_wgmma_bf16(struct vxd_queue *queue,
                                    const struct vxd_conv_tiles *tiles, int n_tile,
                                    struct vxd_err *err);

#endif
