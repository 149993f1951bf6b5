// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/support/bench_device.h"

#include <stdlib.h>
#include <time.h>

#include "gpu/paper/paper.h"
#ifdef VXD_WITH_CUDA
#include "tests/bench/support/floors.h"
#endif

#define FLUSH_BYTES ((size_t)512 << 20)
#define COPY_BYTES ((size_t)256 << 20)
#define LEAST_TABLE_BYTES ((size_t)1 << 20)
#define N_RUNS 9

double bench_now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_cpu_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

long bench_number(const char *text, long least, long most, void (*usage)(void))
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end != '\0' || value < least || value > most) {
        usage();
    }
    return value;
}

enum vxd_status bench_device_create(enum vxd_backend backend, int n_threads,
                                    struct bench_device *out, struct vxd_err *err)
{
    struct vxd_context_options options = {
        .backend = backend, .n_threads = n_threads, .extras = vxd_paper_stores()};
    enum vxd_status status;

    *out = (struct bench_device){0};
    VXD_TRY(vxd_context_create(&options, &out->context, err));
    VXD_TRY(vxd_queue_create(out->context, &out->queue, err));
#ifdef VXD_WITH_CUDA
    if (backend == VXD_BACKEND_CUDA) {
        out->clock = vxd_bench_clock_create(out->queue);
        if (out->clock == NULL) {
            status = vxd_fail(err, VXD_INTERNAL, NULL, "no CUDA events");
            goto out;
        }
        VXD_TRY(vxd_device_alloc(out->queue, FLUSH_BYTES, &out->flush, err));
    }
#endif
out:
    if (status != VXD_OK) {
        bench_device_destroy(out);
    }
    return status;
}

void bench_device_destroy(struct bench_device *device)
{
#ifdef VXD_WITH_CUDA
    vxd_bench_clock_destroy(device->clock);
#endif
    if (device->queue != NULL) {
        vxd_device_free(device->queue, &device->flush);
        vxd_queue_destroy(device->queue);
    }
    if (device->context != NULL) {
        vxd_context_destroy(device->context);
    }
    *device = (struct bench_device){0};
}

enum vxd_status bench_device_flush(struct bench_device *device, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    int n = device->n_flushes > 0 ? device->n_flushes : 3;

    for (int i = 0; i < n && device->flush.ptr != NULL; i++) {
        VXD_TRY(vxd_queue_fill(device->queue, device->flush.ptr, i, FLUSH_BYTES, err));
    }
out:
    return status;
}

bool bench_device_start(struct bench_device *device)
{
    device->started_s = bench_now_s();
#ifdef VXD_WITH_CUDA
    if (device->clock != NULL) {
        return vxd_bench_clock_start(device->clock);
    }
#endif
    return true;
}

bool bench_device_stop(struct bench_device *device)
{
#ifdef VXD_WITH_CUDA
    if (device->clock != NULL) {
        return vxd_bench_clock_stop(device->clock);
    }
#endif
    (void)device;
    return true;
}

double bench_device_seconds(struct bench_device *device)
{
#ifdef VXD_WITH_CUDA
    if (device->clock != NULL) {
        return 1e-3 * (double)vxd_bench_clock_ms(device->clock);
    }
#endif
    return bench_now_s() - device->started_s;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *times, int n)
{
    qsort(times, (size_t)n, sizeof *times, compare);
    return n % 2 == 1 ? times[n / 2] : 0.5 * (times[n / 2 - 1] + times[n / 2]);
}

static enum vxd_status time_copy(struct bench_device *device, double *bytes_per_s,
                                 struct vxd_err *err)
{
    struct vxd_buffer from = {0};
    struct vxd_buffer to = {0};
    enum vxd_status status;
    double times[N_RUNS];

    VXD_TRY(vxd_device_alloc(device->queue, COPY_BYTES, &from, err));
    VXD_TRY(vxd_device_alloc(device->queue, COPY_BYTES, &to, err));
    VXD_TRY(vxd_queue_fill(device->queue, from.ptr, 7, COPY_BYTES, err));
    VXD_TRY(vxd_queue_fill(device->queue, to.ptr, 7, COPY_BYTES, err));
    for (int i = 0; i < N_RUNS; i++) {
        VXD_TRY(vxd_queue_wait(device->queue, err));
        (void)bench_device_start(device);
        VXD_TRY(vxd_queue_copy(device->queue, to.ptr, from.ptr, COPY_BYTES, err));
        (void)bench_device_stop(device);
        VXD_TRY(vxd_queue_wait(device->queue, err));
        times[i] = bench_device_seconds(device);
    }
    *bytes_per_s = 2.0 * (double)COPY_BYTES / bench_median(times, N_RUNS);
out:
    vxd_device_free(device->queue, &to);
    vxd_device_free(device->queue, &from);
    return status;
}

#ifdef VXD_WITH_CUDA
static enum vxd_status time_random(struct bench_device *device, void *table,
                                   size_t n_bytes, size_t n, bool is_cas, double *per_s,
                                   struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;
    double times[N_RUNS];

    for (int i = 0; i < N_RUNS; i++) {
        bool is_queued;

        VXD_TRY(vxd_queue_fill(device->queue, table, 0, n_bytes, err));
        VXD_TRY(bench_device_flush(device, err));
        (void)bench_device_start(device);
        is_queued = is_cas ? vxd_bench_cas(device->queue, table, n_bytes, n)
                           : vxd_bench_gather(device->queue, table, n_bytes, n);
        (void)bench_device_stop(device);
        VXD_TRY(vxd_queue_wait(device->queue, err));
        if (!is_queued) {
            return vxd_fail(err, VXD_INTERNAL, NULL, "a floor's kernel did not start");
        }
        times[i] = bench_device_seconds(device);
    }
    *per_s = (double)n / bench_median(times, N_RUNS);
out:
    return status;
}
#endif

enum vxd_status bench_device_floors(struct bench_device *device, size_t n_bytes, size_t n,
                                    struct bench_floors *out, struct vxd_err *err)
{
    enum vxd_status status;
    struct vxd_buffer table = {0};

    *out = (struct bench_floors){0};
    VXD_TRY(time_copy(device, &out->copy_bytes_per_s, err));
#ifdef VXD_WITH_CUDA
    if (device->clock != NULL) {
        n_bytes = n_bytes < LEAST_TABLE_BYTES ? LEAST_TABLE_BYTES : n_bytes / 32 * 32;
        VXD_TRY(vxd_device_alloc(device->queue, n_bytes, &table, err));
        VXD_TRY(
            time_random(device, table.ptr, n_bytes, n, false, &out->gather_per_s, err));
        VXD_TRY(time_random(device, table.ptr, n_bytes, n, true, &out->cas_per_s, err));
    }
#else
    (void)n_bytes;
    (void)n;
#endif
out:
    vxd_device_free(device->queue, &table);
    return status;
}
