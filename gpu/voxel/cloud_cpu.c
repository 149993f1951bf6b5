// SPDX-License-Identifier: Apache-2.0
/* Decodes batches of records column by column, so that the element type is looked at
 * once for each column of a batch, not once for each number. The arithmetic equals
 * that of cloud_math.h, which the CUDA backend applies record by record. */
#include "gpu/core/core_cpu.h"
#include "gpu/voxel/voxel_backends.h"
#include "gpu/voxel/cloud_math.h"

#define BATCH_POINTS ((size_t)256)
#define PIECE_POINTS (BATCH_POINTS * 32)

struct decode {
    struct vxd_cloud cloud;
    float *positions;
    float *features;
};

/* With a constant dtype the compiler removes the switches of vxd_raw_load and
 * vxd_raw_value. */
#define COLUMN_CASE(type)                                                                \
    case type:                                                                           \
        for (size_t i = 0; i < n; i++) {                                                 \
            uint64_t bits = vxd_raw_load(first + i * point_step, vxd_raw_bytes(type));   \
            column[i] = vxd_addd(vxd_muld(vxd_raw_value(bits, type), scale), bias);      \
        }                                                                                \
        break

static void decode_column(const struct vxd_field *field, const uint8_t *records,
                          size_t point_step, size_t n, double *column)
{
    const uint8_t *first = records + field->offset;
    double scale = field->scale;
    double bias = field->bias;

    switch (field->dtype) {
        COLUMN_CASE(VXD_INT8);
        COLUMN_CASE(VXD_UINT8);
        COLUMN_CASE(VXD_INT16);
        COLUMN_CASE(VXD_UINT16);
        COLUMN_CASE(VXD_INT32);
        COLUMN_CASE(VXD_UINT32);
        COLUMN_CASE(VXD_INT64);
        COLUMN_CASE(VXD_UINT64);
        COLUMN_CASE(VXD_FLOAT16);
        COLUMN_CASE(VXD_BFLOAT16);
        COLUMN_CASE(VXD_FLOAT32);
        COLUMN_CASE(VXD_FLOAT64);
    case VXD_DTYPE_UNSPECIFIED:
        break;
    }
}

static void decode_positions(const struct vxd_cloud *cloud, const uint8_t *records,
                             size_t n, float *positions)
{
    double columns[3][BATCH_POINTS];

    for (int i = 0; i < 3; i++) {
        decode_column(&cloud->position[i], records, cloud->point_step, n, columns[i]);
    }
    for (size_t axis = 0; axis < 3; axis++) {
        const double *r = &cloud->rotation[3 * axis];
        double t = cloud->translation[axis];

        for (size_t i = 0; i < n; i++) {
            double sum = vxd_muld(r[0], columns[0][i]);

            sum = vxd_addd(sum, vxd_muld(r[1], columns[1][i]));
            sum = vxd_addd(sum, vxd_muld(r[2], columns[2][i]));
            positions[3 * i + axis] = vxd_round_to_float(vxd_addd(sum, t));
        }
    }
}

/* The same point by point, where each has a pose of its own, or more than this is asked for. */
static void decode_moving(const struct vxd_cloud *cloud, size_t first,
                          const uint8_t *records, size_t n, float *positions)
{
    for (size_t i = 0; i < n; i++) {
        float origin[3];
        double exact[3];

        vxd_cloud_place(cloud, records + i * cloud->point_step, exact, positions + 3 * i,
                        origin);
        for (size_t axis = 0; axis < 3 && cloud->origins != NULL; axis++) {
            cloud->origins[3 * (first + i) + axis] = origin[axis];
        }
        for (size_t axis = 0; axis < 3 && cloud->exact != NULL; axis++) {
            cloud->exact[3 * (first + i) + axis] = exact[axis];
        }
    }
}

static void decode_channel(const struct vxd_cloud *cloud, int index,
                           const uint8_t *records, const float *positions, size_t n,
                           float *features)
{
    const struct vxd_channel *channel = &cloud->channels[index];
    size_t stride = (size_t)cloud->n_channels;
    float *to = features + index;
    double column[BATCH_POINTS];

    switch (channel->kind) {
    case VXD_CHANNEL_FIELD:
        decode_column(&channel->field, records, cloud->point_step, n, column);
        for (size_t i = 0; i < n; i++) {
            to[i * stride] = vxd_round_to_float(column[i]);
        }
        break;
    case VXD_CHANNEL_POSITION:
        for (size_t i = 0; i < n; i++) {
            to[i * stride] =
                vxd_cloud_scaled(channel, positions[3 * i + (size_t)channel->component]);
        }
        break;
    case VXD_CHANNEL_CONSTANT:
        for (size_t i = 0; i < n; i++) {
            to[i * stride] = channel->constant;
        }
        break;
    }
}

static void decode_piece(void *args, size_t begin, size_t end)
{
    const struct decode *decode = args;
    const struct vxd_cloud *cloud = &decode->cloud;

    for (size_t i = begin; i < end; i += BATCH_POINTS) {
        size_t n = end - i < BATCH_POINTS ? end - i : BATCH_POINTS;
        const uint8_t *records = (const uint8_t *)cloud->data + i * cloud->point_step;
        float *positions = decode->positions + 3 * i;

        if (cloud->motion.is_moving || cloud->origins != NULL || cloud->exact != NULL) {
            decode_moving(cloud, i, records, n, positions);
        } else {
            decode_positions(cloud, records, n, positions);
        }
        for (int c = 0; c < cloud->n_channels; c++) {
            decode_channel(cloud, c, records, positions, n,
                           decode->features + i * (size_t)cloud->n_channels);
        }
    }
}

static enum vxd_status decode_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct decode decode = *(const struct decode *)args;

    (void)err;
    vxd_parallel_for(pool, decode.cloud.n_points, PIECE_POINTS, decode_piece, &decode);
    return VXD_OK;
}

static void leave_out_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_cloud_body_call *call = args;
    uint32_t n[2] = {0, 0};

    for (size_t i = begin; i < end; i++) {
        int kind = vxd_cloud_leave_out(call, i);

        if (kind >= 0) {
            n[kind]++;
        }
    }
    for (int kind = 0; kind < 2 && call->own != NULL; kind++) {
        (void)__atomic_fetch_add(&call->own->n[kind], n[kind], __ATOMIC_RELAXED);
    }
}

static enum vxd_status leave_out_job(struct vxd_pool *pool, const void *args,
                                     struct vxd_err *err)
{
    struct vxd_cloud_body_call call = *(const struct vxd_cloud_body_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.n_points, PIECE_POINTS, leave_out_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_cloud_leave_out_cpu(struct vxd_queue *queue,
                                        const struct vxd_cloud_body_call *call,
                                        struct vxd_err *err)
{
    return vxd_queue_push(queue, leave_out_job, call, sizeof *call, err);
}

enum vxd_status vxd_cloud_decode_cpu(struct vxd_queue *queue,
                                     const struct vxd_cloud *cloud, float *positions,
                                     float *features, struct vxd_err *err)
{
    struct decode decode = {*cloud, positions, features};

    return vxd_queue_push(queue, decode_job, &decode, sizeof decode, err);
}
