// SPDX-License-Identifier: Apache-2.0
/* Decoding of every element type, unaligned, against the compiler's own conversions. */
#include <math.h>

#include "gpu/voxel/cloud_math.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

static struct vxd_cloud plain_cloud(const void *data, size_t n, uint32_t step)
{
    struct vxd_cloud cloud = {.data = data, .n_points = n, .point_step = step};

    for (int i = 0; i < 3; i++) {
        cloud.position[i] = (struct vxd_field){(uint32_t)i * 4, VXD_FLOAT32, 1, 0};
        cloud.rotation[4 * i] = 1;
    }
    return cloud;
}

/* float32 of the value at p, times 0.5, plus 3. */
static float expected_feature(const unsigned char *p, enum vxd_dtype dtype)
{
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f32;
    double value = 0;

    memcpy(&i8, p, 1);
    memcpy(&u8, p, 1);
    memcpy(&i16, p, 2);
    memcpy(&u16, p, 2);
    memcpy(&i32, p, 4);
    memcpy(&u32, p, 4);
    memcpy(&f32, p, 4);
    memcpy(&i64, p, 8);
    memcpy(&u64, p, 8);
    switch (dtype) {
    case VXD_INT8:
        value = i8;
        break;
    case VXD_UINT8:
        value = u8;
        break;
    case VXD_INT16:
        value = i16;
        break;
    case VXD_UINT16:
        value = u16;
        break;
    case VXD_INT32:
        value = i32;
        break;
    case VXD_UINT32:
        value = u32;
        break;
    case VXD_INT64:
        value = (double)i64;
        break;
    case VXD_UINT64:
        value = (double)u64;
        break;
    case VXD_FLOAT32:
        value = (double)f32;
        break;
    case VXD_FLOAT64:
        memcpy(&value, p, 8);
        break;
    case VXD_FLOAT16: {
        int exponent = u16 >> 10 & 31;
        int fraction = u16 & 1023;

        value = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                : exponent == 0 ? ldexp(fraction, -24)
                                : ldexp(1024 + fraction, exponent - 25);
        value = u16 >> 15 != 0 ? -value : value;
        break;
    }
    case VXD_BFLOAT16:
        u32 = (uint32_t)u16 << 16;
        memcpy(&f32, &u32, 4);
        value = (double)f32;
        break;
    case VXD_DTYPE_UNSPECIFIED:
        break;
    }
    value = value * 0.5;
    value = value + 3.0;
    return (float)value;
}

static bool is_same_float(float a, float b)
{
    uint32_t bits;

    memcpy(&bits, &a, sizeof bits);
    return isnan(b) ? bits == 0x7fc00000u : memcmp(&a, &b, sizeof a) == 0;
}

/* 12 types in 13 channels of 27-byte records: no field is aligned. */
static void every_type(struct gpu_env *env)
{
    enum {
        N = 70000,
        STEP = 27,
        N_CHANNELS = 13
    };
    unsigned char *bytes = gpu_alloc((size_t)N * STEP);
    uint64_t seed = 5;
    struct vxd_buffer data;
    struct vxd_buffer positions = gpu_to_device(env, NULL, (size_t)N * 12);
    struct vxd_buffer features = gpu_to_device(env, NULL, (size_t)N * N_CHANNELS * 4);
    struct vxd_cloud cloud;
    float *f;
    size_t n_wrong[N_CHANNELS] = {0};

    for (size_t i = 0; i < (size_t)N * STEP; i++) {
        bytes[i] = (unsigned char)gpu_random(&seed);
    }
    data = gpu_to_device(env, bytes, (size_t)N * STEP);
    cloud = plain_cloud(data.ptr, N, STEP);
    cloud.n_channels = N_CHANNELS;
    for (int c = 0; c < N_CHANNELS; c++) {
        enum vxd_dtype dtype = (enum vxd_dtype)(c % 12 + 1);

        cloud.channels[c].kind = VXD_CHANNEL_FIELD;
        cloud.channels[c].field = (struct vxd_field){(uint32_t)(c + 3), dtype, 0.5, 3.0};
    }
    CHECK_INT(vxd_cloud_decode(env->queue, &cloud, positions.ptr, features.ptr, NULL),
              VXD_OK);
    gpu_wait(env);
    f = gpu_to_host(env, &features);
    for (size_t i = 0; i < N; i++) {
        for (size_t c = 0; c < N_CHANNELS; c++) {
            float expected =
                expected_feature(bytes + i * STEP + c + 3, (enum vxd_dtype)(c % 12 + 1));

            n_wrong[c] += is_same_float(f[i * N_CHANNELS + c], expected) ? 0 : 1;
        }
    }
    for (int c = 0; c < N_CHANNELS; c++) {
        CHECK_INT(n_wrong[c], 0);
    }
    free(f);
    free(bytes);
    vxd_device_free(env->queue, &data);
    vxd_device_free(env->queue, &positions);
    vxd_device_free(env->queue, &features);
}

static void test_decode_of_every_type_unaligned_is_exact(void)
{
    gpu_each_backend(every_type);
}

/* All 65536 halves. */
static void every_half(struct gpu_env *env)
{
    enum {
        N = 65536
    };
    uint16_t *halves = gpu_alloc(N * sizeof *halves);
    struct vxd_buffer data;
    struct vxd_buffer positions = gpu_to_device(env, NULL, N * 12);
    struct vxd_cloud cloud;
    float *p;
    size_t n_wrong = 0;

    for (int i = 0; i < N; i++) {
        halves[i] = (uint16_t)i;
    }
    data = gpu_to_device(env, halves, N * sizeof *halves);
    cloud = plain_cloud(data.ptr, N, 2);
    for (int i = 0; i < 3; i++) {
        cloud.position[i] = (struct vxd_field){0, VXD_FLOAT16, i == 0 ? 0.5 : 0, 3.0};
    }
    CHECK_INT(vxd_cloud_decode(env->queue, &cloud, positions.ptr, NULL, NULL), VXD_OK);
    gpu_wait(env);
    p = gpu_to_host(env, &positions);
    for (int i = 0; i < N; i++) {
        unsigned char bytes[8] = {0};
        float expected;

        memcpy(bytes, &halves[i], 2);
        expected = expected_feature(bytes, VXD_FLOAT16);
        /* 0 * inf is NaN in the other axes, and so in every sum that contains it. */
        expected = isfinite(expected) ? expected : NAN;
        n_wrong += is_same_float(p[3 * i], expected) ? 0 : 1;
    }
    CHECK_INT(n_wrong, 0);
    free(p);
    free(halves);
    vxd_device_free(env->queue, &data);
    vxd_device_free(env->queue, &positions);
}

static void test_decode_of_every_half_is_exact(void)
{
    gpu_each_backend(every_half);
}

/* Checks the channels of pose_and_channels. */
static void check_channels(const float *features, const float position[3], float field)
{
    CHECK(features[0] == position[2]);
    CHECK(features[1] == 0.05f);
    CHECK(features[2] == field);
    CHECK(features[3] == (float)((double)position[0] * 0.1 - 3));
    CHECK(features[4] == (float)((double)position[1] * 3));
    CHECK(features[5] == (float)((double)position[1] + 2.5));
    CHECK(features[6] == features[5]); /* a scale of 0 counts as 1 */
}

/* CUDA's kernels decode record by record, the CPU column by column. */
static void check_record(const struct vxd_cloud *cloud, const float *point,
                         const float position[3], const float *features)
{
    const uint8_t *record = (const uint8_t *)(const void *)point;
    float alone[3];

    vxd_cloud_position(cloud, record, alone);
    CHECK(memcmp(alone, position, sizeof alone) == 0);
    for (int c = 0; c < cloud->n_channels; c++) {
        CHECK(vxd_cloud_feature(&cloud->channels[c], record, alone) == features[c]);
    }
}

static void pose_and_channels(struct gpu_env *env)
{
    enum {
        N = 1025,
        N_CHANNELS = 7
    };
    float *points = gpu_alloc((size_t)N * 4 * sizeof *points);
    uint64_t seed = 9;
    struct vxd_buffer data;
    struct vxd_buffer positions = gpu_to_device(env, NULL, (size_t)N * 12);
    struct vxd_buffer features = gpu_to_device(env, NULL, (size_t)N * N_CHANNELS * 4);
    struct vxd_cloud cloud;
    float *p;
    float *f;

    for (size_t i = 0; i < (size_t)N * 4; i++) {
        points[i] = gpu_random_float(&seed, -50, 50);
    }
    data = gpu_to_device(env, points, (size_t)N * 16);
    cloud = plain_cloud(data.ptr, N, 16);
    for (int i = 0; i < 9; i++) {
        cloud.rotation[i] = (double)gpu_random_float(&seed, -1, 1);
    }
    for (int i = 0; i < 3; i++) {
        cloud.translation[i] = 4.5e6 * (i - 1) + 0.123456789;
    }
    cloud.n_channels = N_CHANNELS;
    cloud.channels[0].kind = VXD_CHANNEL_POSITION;
    cloud.channels[0].component = 2;
    cloud.channels[1].kind = VXD_CHANNEL_CONSTANT;
    cloud.channels[1].constant = 0.05f;
    cloud.channels[2].kind = VXD_CHANNEL_FIELD;
    cloud.channels[2].field = (struct vxd_field){12, VXD_FLOAT32, 1, 0};
    cloud.channels[3].kind = VXD_CHANNEL_POSITION;
    cloud.channels[3].field.scale = 0.1;
    cloud.channels[3].field.bias = -3;
    for (int c = 4; c < N_CHANNELS; c++) { /* a scale alone; biases with scales 0 and 1 */
        cloud.channels[c].kind = VXD_CHANNEL_POSITION;
        cloud.channels[c].component = 1;
        cloud.channels[c].field.scale = c == 4 ? 3 : c - 5;
        cloud.channels[c].field.bias = c == 4 ? 0 : 2.5;
    }
    CHECK_INT(vxd_cloud_decode(env->queue, &cloud, positions.ptr, features.ptr, NULL),
              VXD_OK);
    gpu_wait(env);
    p = gpu_to_host(env, &positions);
    f = gpu_to_host(env, &features);
    for (size_t i = 0; i < N; i++) {
        double v[3] = {(double)points[4 * i], (double)points[4 * i + 1],
                       (double)points[4 * i + 2]};

        for (size_t axis = 0; axis < 3; axis++) {
            const double *r = cloud.rotation + 3 * axis;
            double sum = r[0] * v[0] + r[1] * v[1];

            sum = sum + r[2] * v[2] + cloud.translation[axis];
            CHECK(p[3 * i + axis] == (float)sum);
        }
        check_channels(&f[N_CHANNELS * i], &p[3 * i], points[4 * i + 3]);
        check_record(&cloud, &points[4 * i], &p[3 * i], &f[N_CHANNELS * i]);
    }
    free(points);
    free(p);
    free(f);
    vxd_device_free(env->queue, &data);
    vxd_device_free(env->queue, &positions);
    vxd_device_free(env->queue, &features);
}

static void test_decode_with_pose_far_from_zero_rounds_once(void)
{
    gpu_each_backend(pose_and_channels);
}

static void test_position_channel_without_scale_keeps_the_sign_of_zero(void)
{
    struct vxd_channel channel = {.kind = VXD_CHANNEL_POSITION};

    CHECK(signbit(vxd_cloud_scaled(&channel, -0.0f)) != 0);
    channel.field.scale = 1;
    CHECK(signbit(vxd_cloud_scaled(&channel, -0.0f)) != 0);
}

#define REFUSE(name, spoil)                                                              \
    do {                                                                                 \
        struct vxd_cloud cloud = plain_cloud(b.ptr, 4, 16);                              \
        struct vxd_err err = {0};                                                        \
        float *positions = b.ptr;                                                        \
        float *features = b.ptr;                                                         \
                                                                                         \
        spoil;                                                                           \
        CHECK_INT(vxd_cloud_decode(env->queue, &cloud, positions, features, &err),       \
                  VXD_INVALID_ARGUMENT);                                                 \
        CHECK_STR(err.field, name);                                                      \
    } while (0)

static void bad_clouds(struct gpu_env *env)
{
    struct vxd_buffer b = gpu_to_device(env, NULL, 4096);
    struct vxd_cloud empty = plain_cloud(NULL, 0, 16);

    REFUSE("point_step", cloud.point_step = 0);
    REFUSE("point_step", cloud.point_step = 65536);
    REFUSE("n_points", cloud.n_points = SIZE_MAX / 8);
    REFUSE("n_channels", cloud.n_channels = -1);
    REFUSE("n_channels", cloud.n_channels = VXD_MAX_CHANNELS + 1);
    REFUSE("data", cloud.data = NULL);
    REFUSE("positions", positions = NULL);
    REFUSE("features", (cloud.n_channels = 1, features = NULL));
    REFUSE("position[1]", cloud.position[1].dtype = VXD_DTYPE_UNSPECIFIED);
    REFUSE("position[1]", cloud.position[1].dtype = (enum vxd_dtype)13);
    REFUSE("position[2]", cloud.position[2].offset = 13);
    REFUSE("position[0]", cloud.position[0].offset = UINT32_MAX);
    REFUSE("rotation", cloud.rotation[5] = (double)NAN);
    REFUSE("translation", cloud.translation[2] = (double)INFINITY);
    REFUSE("channels[0]", cloud.n_channels = 1);
    REFUSE("channels[1]",
           (cloud.n_channels = 2, cloud.channels[0].kind = VXD_CHANNEL_CONSTANT,
            cloud.channels[1].kind = (enum vxd_channel_kind)3));
    REFUSE("channels[0]",
           (cloud.n_channels = 1, cloud.channels[0].kind = VXD_CHANNEL_POSITION,
            cloud.channels[0].component = 3));
    CHECK_INT(vxd_cloud_decode(env->queue, &empty, NULL, NULL, NULL), VXD_OK);
    gpu_wait(env);
    vxd_device_free(env->queue, &b);
}

static void test_decode_with_bad_arguments_names_the_field(void)
{
    gpu_each_backend(bad_clouds);
}

/* A moving sensor ---------------------------------------------------------------------- */

/* The quaternion of a turn about an axis of any length. */
static void quaternion_of(const double axis[3], double angle, double q[4])
{
    double length = sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);

    for (int i = 0; i < 3; i++) {
        q[i] = axis[i] / length * sin(angle / 2);
    }
    q[3] = cos(angle / 2);
}

/* Turns a vector about an axis, by Rodrigues' formula. */
static void turn(const double axis[3], double angle, double v[3])
{
    double length = sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
    double k[3] = {axis[0] / length, axis[1] / length, axis[2] / length};
    double along = k[0] * v[0] + k[1] * v[1] + k[2] * v[2];
    double out[3];

    for (int i = 0; i < 3; i++) {
        int a = (i + 1) % 3;
        int b = (i + 2) % 3;

        out[i] = v[i] * cos(angle) + (k[a] * v[b] - k[b] * v[a]) * sin(angle) +
                 k[i] * along * (1 - cos(angle));
    }
    memcpy(v, out, sizeof out);
}

/* q times p, of quaternions. */
static void multiply(const double q[4], const double p[4], double out[4])
{
    for (int i = 0; i < 3; i++) {
        int a = (i + 1) % 3;
        int b = (i + 2) % 3;

        out[i] = q[3] * p[i] + q[i] * p[3] + q[a] * p[b] - q[b] * p[a];
    }
    out[3] = q[3] * p[3] - q[0] * p[0] - q[1] * p[1] - q[2] * p[2];
}

/* The sensor begins turned about one axis, and turns about another one meanwhile: a point at
 * time s is turned by s of that, and then by how it began. */
static void check_motion(struct gpu_env *env, double angle)
{
    enum {
        N = 1000
    };
    const double first_axis[3] = {0.3, -1, 0.5};
    const double axis[3] = {1, 2, -0.7};
    const double translation[3] = {-4, 1, 12};
    const struct vxd_field time = {12, VXD_FLOAT32, 1, 0};
    float *records = gpu_alloc(N * 4 * sizeof *records);
    struct vxd_buffer positions = gpu_to_device(env, NULL, N * 3 * sizeof(float));
    struct vxd_buffer origins = gpu_to_device(env, NULL, N * 3 * sizeof(float));
    struct vxd_buffer data;
    struct vxd_cloud cloud;
    double begin[4];
    double turned[4];
    double end[4];
    double worst = 0;
    uint64_t seed = 9;
    float *p;
    float *o;

    for (size_t i = 0; i < N * 4; i++) {
        records[i] = (float)((double)(gpu_random(&seed) % 100000) / 1000 - 50);
    }
    for (size_t i = 0; i < N; i++) {
        records[4 * i + 3] =
            (float)i / (N / 2) - 0.5f; /* before, in and after the scan */
    }
    records[3] = NAN;
    quaternion_of(first_axis, 2.5, begin);
    quaternion_of(axis, angle, turned);
    multiply(begin, turned, end);
    data = gpu_to_device(env, records, N * 4 * sizeof *records);
    cloud = plain_cloud(data.ptr, N, 16);
    cloud.translation[0] = 3;
    cloud.origins = origins.ptr;
    vxd_cloud_set_motion(&cloud, &time, begin, end, 2, translation);
    REQUIRE(vxd_cloud_decode(env->queue, &cloud, positions.ptr, NULL, NULL) == VXD_OK);
    p = gpu_to_host(env, &positions);
    o = gpu_to_host(env, &origins);
    CHECK(isnan(p[0]) && isnan(p[1]) && isnan(p[2]));
    for (size_t i = 1; i < N; i++) {
        double t = (double)records[4 * i + 3];
        double v[3] = {(double)records[4 * i], (double)records[4 * i + 1],
                       (double)records[4 * i + 2]};

        t = t < 0 ? 0 : t > 1 ? 1 : t;
        turn(axis, t * angle, v);
        turn(first_axis, 2.5, v);
        for (int a = 0; a < 3; a++) {
            double from = (1 - t) * cloud.translation[a] + t * translation[a];

            worst = fmax(worst, fabs((double)o[3 * i + (size_t)a] - from));
            worst = fmax(worst, fabs((double)p[3 * i + (size_t)a] - (2 * v[a] + from)));
        }
        check_record(&cloud, records + 4 * i, p + 3 * i, NULL);
    }
    CHECK(worst < 1.5e-5); /* a float32 of 200 has so much */
    free(p);
    free(o);
    free(records);
    vxd_device_free(env->queue, &data);
    vxd_device_free(env->queue, &positions);
    vxd_device_free(env->queue, &origins);
    gpu_wait(env);
}

static void motions(struct gpu_env *env)
{
    static const double angles[6] = {0, 1e-9, 1e-6, 0.3, -2.8, 3.1};

    for (int k = 0; k < 6; k++) {
        check_motion(env, angles[k]);
    }
}

static void test_points_of_a_moving_sensor_have_the_pose_of_their_time(void)
{
    gpu_each_backend(motions);
}

/* --- a robot's body --- */

/* A point and a body as the test understands them: 0 nearer than its range, 1 in a box, -1 neither. */
static int own_kind(const struct vxd_cloud_body *body, const float *p)
{
    double x = (double)p[0];
    double y = (double)p[1];
    double z = (double)p[2];

    if (x * x + y * y + z * z < body->min_range * body->min_range) {
        return 0;
    }
    for (int i = 0; i < body->n_boxes; i++) {
        bool is_in = true;

        for (int axis = 0; axis < 3; axis++) {
            const double *r = body->rotation + 3 * axis;
            double v = r[0] * x + r[1] * y + r[2] * z + body->translation[axis];

            is_in =
                is_in && v >= body->boxes[i].low[axis] && v < body->boxes[i].high[axis];
        }
        if (is_in) {
            return 1;
        }
    }
    return -1;
}

/* Quarters, so that many points lie on the borders of boxes and of the range. */
static void random_body(uint64_t *seed, struct vxd_cloud_body *body)
{
    /* A quarter turn about z and a mirror of nothing: points stay quarters. */
    *body = (struct vxd_cloud_body){.min_range = 1.25,
                                    .rotation = {0, -1, 0, 1, 0, 0, 0, 0, 1},
                                    .translation = {0.5, -0.25, 1},
                                    .n_boxes = VXD_MAX_BODY_BOXES};
    for (int i = 0; i < VXD_MAX_BODY_BOXES; i++) {
        for (int axis = 0; axis < 3; axis++) {
            body->boxes[i].low[axis] = (double)(gpu_random(seed) % 32) / 4 - 4;
            body->boxes[i].high[axis] =
                body->boxes[i].low[axis] + (double)(1 + gpu_random(seed) % 4) / 4;
        }
    }
}

static void check_body(struct gpu_env *env, bool is_moving, bool wants_exact)
{
    enum {
        N = 5000
    };
    const struct vxd_field time = {12, VXD_FLOAT32, 1, 0};
    const double begin[4] = {0, 0, 0, 1};
    const double end[4] = {0, 0, 1, 0};
    const double translation[3] = {9, 9, 9};
    float *records = gpu_alloc(N * 4 * sizeof *records);
    struct vxd_buffer positions = gpu_to_device(env, NULL, N * 3 * sizeof(float));
    struct vxd_buffer whole = gpu_to_device(env, NULL, N * 3 * sizeof(float));
    struct vxd_buffer exact = gpu_to_device(env, NULL, N * 3 * sizeof(double));
    const struct vxd_cloud_own before = {{7, 1000}};
    struct vxd_buffer own = gpu_to_device(env, &before, sizeof before);
    struct vxd_cloud_own expected = before;
    struct vxd_cloud_own *counted;
    struct vxd_cloud_body body;
    struct vxd_buffer data;
    struct vxd_cloud cloud;
    uint64_t seed = 21;
    double *e;
    float *p;
    float *w;

    for (size_t i = 0; i < N * 4; i++) {
        records[i] = (float)(gpu_random(&seed) % 41) / 4 - 5;
    }
    for (size_t i = 0; i < N; i++) {
        records[4 * i + 3] = (float)i / N;
    }
    records[0] = NAN;
    records[5] = INFINITY;
    random_body(&seed, &body);
    data = gpu_to_device(env, records, N * 4 * sizeof *records);
    cloud = plain_cloud(data.ptr, N, 16);
    cloud.translation[1] = -3;
    cloud.exact = wants_exact ? exact.ptr : NULL;
    if (is_moving) {
        vxd_cloud_set_motion(&cloud, &time, begin, end, 1, translation);
    }
    REQUIRE(vxd_cloud_decode(env->queue, &cloud, whole.ptr, NULL, NULL) == VXD_OK);
    cloud.body = &body;
    cloud.own = own.ptr;
    REQUIRE(vxd_cloud_decode(env->queue, &cloud, positions.ptr, NULL, NULL) == VXD_OK);
    p = gpu_to_host(env, &positions);
    w = gpu_to_host(env, &whole);
    e = gpu_to_host(env, &exact);
    counted = gpu_to_host(env, &own);
    for (size_t i = 0; i < N; i++) {
        int kind = own_kind(&body, records + 4 * i);

        if (kind >= 0) {
            expected.n[kind]++;
        }
        for (size_t k = 3 * i; k < 3 * i + 3; k++) {
            CHECK(kind >= 0 ? isnan(p[k]) : memcmp(p + k, w + k, sizeof *p) == 0);
            CHECK(!wants_exact || isnan(e[k]) == isnan(p[k]));
        }
    }
    CHECK_INT(counted->n[0], expected.n[0]);
    CHECK_INT(counted->n[1], expected.n[1]);
    CHECK(expected.n[0] > 7 + 10 && expected.n[1] > 1000 + 10);
    free(p);
    free(w);
    free(e);
    free(counted);
    free(records);
    vxd_device_free(env->queue, &data);
    vxd_device_free(env->queue, &positions);
    vxd_device_free(env->queue, &whole);
    vxd_device_free(env->queue, &exact);
    vxd_device_free(env->queue, &own);
    gpu_wait(env);
}

static void bodies(struct gpu_env *env)
{
    check_body(env, false, false);
    check_body(env, false, true);
    check_body(env, true, false);
}

static void test_points_of_the_robots_body_have_no_position(void)
{
    gpu_each_backend(bodies);
}

static void wrong_bodies(struct gpu_env *env)
{
    static const struct {
        double min_range, low, high;
        int n_boxes;
        const char *field;
    } cases[] = {{-1, 0, 1, 0, "body.min_range"},
                 {INFINITY, 0, 1, 0, "body.min_range"},
                 {NAN, 0, 1, 0, "body.min_range"},
                 {0, 0, 1, -1, "body.boxes"},
                 {0, 0, 1, VXD_MAX_BODY_BOXES + 1, "body.boxes"},
                 {0, 1, 1, 3, "body.boxes[0]"},
                 {0, -INFINITY, 1, 1, "body.boxes[0]"},
                 {0, 0, NAN, 1, "body.boxes[0]"}};
    struct vxd_cloud cloud = plain_cloud(NULL, 0, 16);
    struct vxd_err err = {0};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vxd_cloud_body body = {.min_range = cases[i].min_range,
                                      .rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                      .n_boxes = cases[i].n_boxes};

        for (int axis = 0; axis < 3; axis++) {
            body.boxes[0].low[axis] = cases[i].low;
            body.boxes[0].high[axis] = cases[i].high;
        }
        cloud.body = &body;
        CHECK_INT(vxd_cloud_decode(env->queue, &cloud, NULL, NULL, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, cases[i].field);
    }
}

static void test_wrong_body_is_refused_with_its_field(void)
{
    gpu_each_backend(wrong_bodies);
}

static void test_range_of_times_leaves_out_what_is_not_finite(void)
{
    const float times[8] = {0, 0, 0, NAN, 0, 0, 0, INFINITY};
    const float two[8] = {0, 0, 0, 3, 0, 0, 0, -2};
    const struct vxd_field time = {12, VXD_FLOAT32, 2, 1};
    struct vxd_cloud cloud = plain_cloud(times, 2, 16);
    double low;
    double high;

    vxd_cloud_field_range(&cloud, &time, &low, &high);
    CHECK(low == 0 && high == 0);
    cloud.data = two;
    vxd_cloud_field_range(&cloud, &time, &low, &high);
    CHECK(low == -3 && high == 7);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_points_of_a_moving_sensor_have_the_pose_of_their_time),
    VXD_TEST(test_points_of_the_robots_body_have_no_position),
    VXD_TEST(test_wrong_body_is_refused_with_its_field),
    VXD_TEST(test_range_of_times_leaves_out_what_is_not_finite),
    VXD_TEST(test_decode_of_every_type_unaligned_is_exact),
    VXD_TEST(test_decode_of_every_half_is_exact),
    VXD_TEST(test_decode_with_pose_far_from_zero_rounds_once),
    VXD_TEST(test_position_channel_without_scale_keeps_the_sign_of_zero),
    VXD_TEST(test_decode_with_bad_arguments_names_the_field),
};

VXD_TEST_MAIN(tests)
