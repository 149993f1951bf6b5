// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/gpu/sparse/bench_soak.h"

#include <stdio.h>
#include <unistd.h>

#ifdef VXD_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

/* Runs until every size has occurred; then measures the memory of each run. */
#define N_WARM_UP 500
#define N_LOADS_WARM_UP 20
#define COST_EVERY 50

struct memory {
    size_t used_bytes; /* of the context's budget */
    /* bytes of the device in use by all processes, including the pool */
    size_t device_bytes;
    size_t host_bytes; /* resident */
};

static struct memory look(const struct bench_soak *soak)
{
    struct vxd_memory_usage usage;
    struct memory memory = {0, 0, 0};
    unsigned long n_pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    vxd_context_get_memory(soak->device->context, &usage);
    memory.used_bytes = usage.device_bytes;
#ifdef VXD_WITH_CUDA
    size_t free_bytes = 0;
    size_t total_bytes = 0;

    if (soak->device->clock != NULL &&
        cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
        memory.device_bytes = total_bytes - free_bytes;
    }
#endif
    if (file != NULL) {
        if (fscanf(file, "%*u %lu", &n_pages) == 1) {
            memory.host_bytes = n_pages * (size_t)sysconf(_SC_PAGESIZE);
        }
        (void)fclose(file);
    }
    return memory;
}

static void print(const char *what, int n, const struct memory *memory)
{
    (void)printf("%-28s %6d: in use %9.3f MB, device %9.1f MB, host %7.1f MB\n", what, n,
                 (double)memory->used_bytes * 1e-6, (double)memory->device_bytes * 1e-6,
                 (double)memory->host_bytes * 1e-6);
}

/* Raises *most to the run's ratio of peak to needed memory, if it is not NULL. */
static enum vxd_status run_once(const struct bench_soak *soak, const struct vxd_net *net,
                                size_t n_rows, double *most, struct vxd_err *err)
{
    struct vxd_queue *queue = soak->device->queue;
    struct vxd_net_input input = {.coords = soak->coords,
                                  .features = soak->features,
                                  .n_rows = n_rows,
                                  .n_samples = soak->options.max_samples};
    struct vxd_net_run *run = NULL;
    bool more = true;
    enum vxd_status status;

    VXD_TRY(vxd_net_run_create(queue, net, &input, &run, err));
    while (more) {
        VXD_TRY(vxd_net_run_step(queue, run, &more, err));
        VXD_TRY(vxd_queue_wait(queue, err));
    }
    if (most != NULL) {
        struct vxd_net_cost cost;
        double ratio;

        VXD_TRY(vxd_net_run_get_cost(queue, run, &cost, err));
        ratio = (double)cost.peak_bytes / (double)cost.live_bytes;
        *most = ratio > *most ? ratio : *most;
    }
out:
    vxd_net_run_destroy(queue, run);
    if (status == VXD_OK) {
        status = vxd_queue_wait(queue, err);
    }
    return status;
}

static enum vxd_status load(const struct bench_soak *soak, struct vxd_net **out,
                            struct vxd_err *err)
{
    struct vxd_net_builder *builder = NULL;
    enum vxd_status status;

    VXD_TRY(bench_net_build(soak->network, soak->n_channels, soak->shape, &builder, err));
    VXD_TRY(vxd_net_create(soak->device->queue, builder, &soak->options, out, err));
out:
    vxd_net_builder_destroy(builder);
    return status;
}

static enum vxd_status soak_runs(const struct bench_soak *soak, int n_runs,
                                 struct vxd_err *err)
{
    struct vxd_net *net = NULL;
    struct memory before = {0, 0, 0};
    struct memory after;
    uint64_t random = 7;
    double most = 0.0;
    double start = 0.0;
    enum vxd_status status;

    VXD_TRY(load(soak, &net, err));
    for (int i = 0; i < N_WARM_UP + n_runs; i++) {
        size_t share = (size_t)((random = random * 6364136223846793005U + 1) >> 40);
        size_t n_rows =
            soak->n_rows / 4 + soak->n_rows * 3 / 4 * share / ((1U << 24) - 1);

        if (i == N_WARM_UP) {
            before = look(soak);
            start = bench_now_s();
        }
        VXD_TRY(run_once(soak, net, n_rows, i % COST_EVERY == 0 ? &most : NULL, err));
    }
    after = look(soak);
    print("before inferences", n_runs, &before);
    print("after", n_runs, &after);
    (void)printf("%.3f ms an inference; at most %.2f times what was needed\n",
                 (bench_now_s() - start) * 1e3 / n_runs, most);
out:
    vxd_net_destroy(soak->device->queue, net);
    return status;
}

static enum vxd_status soak_loads(const struct bench_soak *soak, int n_loads,
                                  struct vxd_err *err)
{
    struct memory before = {0, 0, 0};
    struct memory after;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < N_LOADS_WARM_UP + n_loads; i++) {
        struct vxd_net *net = NULL;

        if (i == N_LOADS_WARM_UP) {
            before = look(soak);
        }
        VXD_TRY(load(soak, &net, err));
        status = run_once(soak, net, soak->n_rows, NULL, err);
        vxd_net_destroy(soak->device->queue, net);
        VXD_TRY(status);
        VXD_TRY(vxd_queue_wait(soak->device->queue, err));
    }
    after = look(soak);
    print("before loads and unloads", n_loads, &before);
    print("after", n_loads, &after);
out:
    return status;
}

enum vxd_status bench_soak_run(const struct bench_soak *soak, int n_runs, int n_loads,
                               struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (n_runs > 0) {
        VXD_TRY(soak_runs(soak, n_runs, err));
    }
    if (n_loads > 0) {
        VXD_TRY(soak_loads(soak, n_loads, err));
    }
out:
    return status;
}
