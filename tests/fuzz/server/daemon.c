// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/server/daemon.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/core/core.h"
#include "proto/base/clock.h"
#include "proto/wire/wire.h"
#include "server/method_table.h"
#include "server/observe/log/log.h"
#include "server/schedule/schedule.h"
#include "server/server.h"
#include "tests/fuzz/server/mutate.h"

enum {
    TIMEOUT_MS = 25,
    MAX_TIMEOUT_MS = 80,
    PATIENT_MS = 60000,
    SELF_TEST_MS = 3,
    SETTLE_MS = 60000,
    KEEP_MS = 5, /* what succeeded may keep memory; what did not is gone by then */
    STEP_NS = 20000,
    QUEUE_LIMIT = 4, /* fewer than the steps of an input */
    READ_LANES = 2,
    N_THREADS = 2,
    MAX_MESSAGE_BYTES = 1 << 20,
    INFLIGHT_BYTES = 8 << 20,
    ENGINE_BYTES = 4 << 20
};

static const struct timespec step = {.tv_nsec = STEP_NS};

void fuzz_fail(const char *condition, const char *format, ...)
{
    va_list args;

    (void)fprintf(stderr, "expected %s: ", condition);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fprintf(stderr, "\n");
    abort();
}

/* The log's way out; see fuzz.cmake. Whatever strangers wrote, a line is one JSON object in
 * plain ASCII. */
ssize_t __real_write(int fd, const void *bytes, size_t n_bytes);
ssize_t __wrap_write(int fd, const void *bytes, size_t n_bytes);

ssize_t __wrap_write(int fd, const void *bytes, size_t n_bytes)
{
    const char *line = bytes;

    if (fd != STDERR_FILENO || n_bytes < 3 || line[0] != '{') {
        return __real_write(fd, bytes, n_bytes);
    }
    FUZZ_EXPECT(line[n_bytes - 2] == '}' && line[n_bytes - 1] == '\n', "%.*s",
                (int)n_bytes, line);
    for (size_t i = 0; i < n_bytes - 1; i++) {
        FUZZ_EXPECT(line[i] >= 0x20 && line[i] < 0x7f, "byte %zu of %.*s", i,
                    (int)n_bytes, line);
    }
    return (ssize_t)n_bytes;
}

const char *fuzz_url(void)
{
    static char url[VXD_PATH_BYTES];
    const char *directory = getenv("TMPDIR");

    (void)snprintf(url, sizeof url, FUZZ_URL_PREFIX "%s/voxeld-fuzz-%ld.sock",
                   directory != NULL ? directory : "/tmp", (long)getpid());
    return url;
}

struct vxd_server *fuzz_server_start(const char *http)
{
    struct vxd_server *server = calloc(1, sizeof *server);
    struct vxd_config *config = calloc(1, sizeof *config);
    struct vxd_err err = {0};
    enum vxd_status status;

    FUZZ_EXPECT(server != NULL && config != NULL, "no memory");
    vxd_config_default(config);
    (void)snprintf(config->rpc[0], sizeof config->rpc[0], "%s", fuzz_url());
    config->n_rpc = 1;
    (void)snprintf(config->http, sizeof config->http, "%s", http);
    (void)snprintf(config->backend, sizeof config->backend, "cpu");
    (void)snprintf(config->log_level, sizeof config->log_level, "debug");
    config->networks_dir[0] = '\0';
    config->n_threads = N_THREADS;
    config->queue_limit = QUEUE_LIMIT;
    config->n_read_lanes = READ_LANES;
    config->max_message_bytes = MAX_MESSAGE_BYTES;
    config->inflight_bytes = INFLIGHT_BYTES;
    config->device_bytes = ENGINE_BYTES;
    config->host_bytes = ENGINE_BYTES;
    config->bulk_points = 1000;
    config->default_timeout_ms = TIMEOUT_MS;
    config->max_timeout_ms = MAX_TIMEOUT_MS;
    config->max_connections = 8;
    config->http_threads = 1;
    status = vxd_server_open(server, config, vxd_method_table(), &err);
    free(config);
    FUZZ_EXPECT(status == VXD_OK, "%s", err.message);
    atomic_store(&server->state, VXD_STATE_SERVING);
    return server;
}

void fuzz_server_stop(struct vxd_server *take_server)
{
    FUZZ_EXPECT(vxd_scheduler_drain(take_server->scheduler, SETTLE_MS),
                "requests are left");
    vxd_server_close(take_server);
    free(take_server);
}

static bool is_quiet(struct vxd_server *server)
{
    struct vxd_scheduler_load load;

    vxd_scheduler_get_load(server->scheduler, &load);
    return load.n_queued == 0 && load.n_running == 0 &&
           atomic_load(&server->n_open) == 0 && atomic_load(&server->inflight_bytes) == 0;
}

static void wait_for_quiet(struct vxd_server *server)
{
    int64_t until_ns = vxd_clock_ns() + SETTLE_MS * INT64_C(1000000);

    while (!is_quiet(server)) {
        FUZZ_EXPECT(vxd_clock_ns() < until_ns,
                    "%llu requests are open, %llu bytes are in flight",
                    (unsigned long long)atomic_load(&server->n_open),
                    (unsigned long long)atomic_load(&server->inflight_bytes));
        (void)nanosleep(&step, NULL);
    }
}

/* A body's buffer goes back right after its bytes in flight. */
bool fuzz_server_settle(struct vxd_server *server, bool may_keep)
{
    int64_t until_ns;
    struct vxd_memory_usage memory;

    wait_for_quiet(server);
    vxd_log_set_level(VXD_LOG_DEBUG);
    until_ns = vxd_clock_ns() + (may_keep ? KEEP_MS : SETTLE_MS) * INT64_C(1000000);
    for (;;) {
        vxd_context_get_memory(server->context, &memory);
        if (memory.device_bytes == 0 && memory.host_bytes == 0) {
            return true;
        }
        if (vxd_clock_ns() >= until_ns) {
            FUZZ_EXPECT(may_keep, "%zu device bytes and %zu host bytes are left",
                        memory.device_bytes, memory.host_bytes);
            return false;
        }
        (void)nanosleep(&step, NULL);
    }
}

void fuzz_server_set_patience(struct vxd_server *server, bool patient)
{
    atomic_store(&server->limits.default_timeout_ms, patient ? PATIENT_MS : TIMEOUT_MS);
    atomic_store(&server->limits.max_timeout_ms, patient ? PATIENT_MS : MAX_TIMEOUT_MS);
}

void fuzz_limit_time(Voxeld__V1__Request *request)
{
    if (request->method_case == VOXELD__V1__REQUEST__METHOD_SELF_TEST &&
        (request->self_test->duration_ms == 0 ||
         request->self_test->duration_ms > SELF_TEST_MS)) {
        request->self_test->duration_ms = SELF_TEST_MS;
    }
}

void fuzz_expect_code(int code)
{
    FUZZ_EXPECT(code >= VXD_OK && code <= VXD_UNAUTHENTICATED, "code %d", code);
    FUZZ_EXPECT(code != VXD_UNKNOWN && code != VXD_INTERNAL && code != VXD_DATA_LOSS,
                "code %d", code);
}

static void expect_tensor(const Voxeld__V1__Tensor *tensor)
{
    static const uint64_t sizes[] = {0, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 2, 2};
    uint64_t n_bytes;

    FUZZ_EXPECT((size_t)tensor->dtype < sizeof sizes / sizeof sizes[0], "dtype %d",
                (int)tensor->dtype);
    n_bytes = sizes[tensor->dtype];
    for (size_t i = 0; i < tensor->n_shape; i++) {
        FUZZ_EXPECT(tensor->shape[i] >= 0, "extent %lld", (long long)tensor->shape[i]);
        n_bytes *= (uint64_t)tensor->shape[i];
    }
    FUZZ_EXPECT(n_bytes == tensor->data.len && tensor->n_values == 0,
                "the shape has %llu bytes, the data %zu", (unsigned long long)n_bytes,
                tensor->data.len);
}

static void expect_item(const Voxeld__V1__VoxelizeItem *item)
{
    uint64_t n = item->n_used + item->n_non_finite + item->n_out_of_range +
                 item->n_over_max_voxels + item->n_over_max_points;

    FUZZ_EXPECT(n == item->n_points, "%llu points became %llu",
                (unsigned long long)item->n_points, (unsigned long long)n);
}

void fuzz_expect_sound(const ProtobufCMessage *output)
{
    struct fuzz_nodes *nodes = calloc(1, sizeof *nodes);
    size_t n_bytes = protobuf_c_message_get_packed_size(output);
    uint8_t *bytes = malloc(n_bytes + 1);
    struct vxd_decoder *decoder = NULL;
    ProtobufCMessage *message = NULL;
    struct vxd_err err = {0};

    /* Our own decoder looks at texts. */
    FUZZ_EXPECT(nodes != NULL && bytes != NULL, "no memory");
    (void)protobuf_c_message_pack(output, bytes);
    FUZZ_EXPECT(vxd_decoder_create(SIZE_MAX / 2, NULL, &decoder, &err) == VXD_OK &&
                    vxd_decode(decoder, output->descriptor, bytes, n_bytes, &message,
                               &err) == VXD_OK,
                "%s: %s", err.field, err.message);
    fuzz_collect(message, nodes);
    for (size_t i = 0; i < nodes->n; i++) {
        const ProtobufCMessage *node = nodes->items[i];

        if (node->descriptor == &voxeld__v1__tensor__descriptor) {
            expect_tensor((const Voxeld__V1__Tensor *)node);
        } else if (node->descriptor == &voxeld__v1__voxelize_item__descriptor) {
            expect_item((const Voxeld__V1__VoxelizeItem *)node);
        }
    }
    vxd_decoder_destroy(decoder);
    free(bytes);
    free(nodes);
}

size_t fuzz_good_request(uint8_t **out)
{
    static char *const names[] = {"x", "y", "z"};
    static float points[64][3];
    Voxeld__V1__Field fields[3];
    Voxeld__V1__Field *field_pointers[3] = {&fields[0], &fields[1], &fields[2]};
    Voxeld__V1__Cloud cloud = VOXELD__V1__CLOUD__INIT;
    Voxeld__V1__Cloud *clouds[1] = {&cloud};
    Voxeld__V1__Vec3 size = VOXELD__V1__VEC3__INIT;
    Voxeld__V1__VoxelizeRequest voxelize = VOXELD__V1__VOXELIZE_REQUEST__INIT;
    Voxeld__V1__Request request = VOXELD__V1__REQUEST__INIT;

    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        for (size_t k = 0; k < 3; k++) {
            points[i][k] = (float)((i * 37 + k * 11) % 29) * 0.25f - 3;
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        voxeld__v1__field__init(&fields[i]);
        fields[i].name = names[i];
        fields[i].offset = 4 * i;
        fields[i].dtype = VOXELD__V1__DTYPE__FLOAT32;
    }
    cloud.fields = field_pointers;
    cloud.n_fields = 3;
    cloud.point_step = sizeof points[0];
    cloud.data.data = (uint8_t *)points;
    cloud.data.len = sizeof points;
    size.x = size.y = size.z = 1;
    voxelize.clouds = clouds;
    voxelize.n_clouds = 1;
    voxelize.size = &size;
    request.voxelize = &voxelize;
    request.method_case = VOXELD__V1__REQUEST__METHOD_VOXELIZE;
    *out = malloc(voxeld__v1__request__get_packed_size(&request));
    FUZZ_EXPECT(*out != NULL, "no memory");
    return voxeld__v1__request__pack(&request, *out);
}

size_t fuzz_good_reply(const uint8_t *response, size_t n_bytes, uint8_t **out)
{
    Voxeld__V1__Response *reply = voxeld__v1__response__unpack(NULL, n_bytes, response);
    size_t n;

    FUZZ_EXPECT(reply != NULL && reply->header != NULL, "no reply in %zu bytes", n_bytes);
    FUZZ_EXPECT(reply->header->code == VOXELD__V1__CODE__OK, "%s: %s",
                reply->header->field, reply->header->message);
    FUZZ_EXPECT(reply->method_case == VOXELD__V1__RESPONSE__METHOD_VOXELIZE, "method %d",
                (int)reply->method_case);
    reply->voxelize->engine_ms = 0;
    n = voxeld__v1__voxelize_response__get_packed_size(reply->voxelize);
    *out = malloc(n + 1);
    FUZZ_EXPECT(*out != NULL, "no memory");
    n = voxeld__v1__voxelize_response__pack(reply->voxelize, *out);
    voxeld__v1__response__free_unpacked(reply, NULL);
    return n;
}
