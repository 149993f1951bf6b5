// SPDX-License-Identifier: Apache-2.0
#include "gpu/core/context.h"

#include <stdlib.h>

#include "gpu/core/core_cpu.h"
#include "gpu/core/machine_limits.h"

/* Larger budgets mean "all there is"; sums of sizes below this one cannot overflow. */
#define MAX_BUDGET_BYTES ((size_t)1 << 62)

int vxd_cuda_device_count(char *why, size_t why_bytes)
{
#if defined(VXD_WITH_CUDA)
    return vxd_cuda_count(why, why_bytes);
#else
    if (why != NULL && why_bytes > 0) {
        (void)snprintf(why, why_bytes, "built without CUDA");
    }
    return 0;
#endif
}

static enum vxd_status check_options(const struct vxd_context_options *options,
                                     struct vxd_err *err)
{
    if (options->backend != VXD_BACKEND_CPU && options->backend != VXD_BACKEND_CUDA) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "backend",
                        "%d is no backend; 0 is the CPU, 1 CUDA", (int)options->backend);
    }
    if (options->device < 0 ||
        (options->backend == VXD_BACKEND_CPU && options->device != 0)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "device",
                        "%d is no device; CUDA counts from 0, the CPU is 0",
                        options->device);
    }
    if (options->backend == VXD_BACKEND_CUDA) {
        char why[160] = "";
        int n_devices = vxd_cuda_device_count(why, sizeof why);

        if (n_devices == 0) {
            return vxd_fail(err, VXD_UNAVAILABLE, "backend", "no CUDA device: %s", why);
        }
        if (options->device >= n_devices) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "device",
                            "%d is not one of the %d CUDA devices", options->device,
                            n_devices);
        }
    }
    return VXD_OK;
}

/* Sets up what does not depend on a GPU: budgets, pool, block caches. */
static enum vxd_status init_host(struct vxd_context *context,
                                 const struct vxd_context_options *options,
                                 struct vxd_err *err)
{
    struct vxd_memory_usage *usage = &context->usage;
    enum vxd_status status = VXD_OK;
    size_t total_bytes = vxd_machine_bytes();
    /* On the CPU both budgets are of the same memory, a quarter of which stays unused. */
    size_t host_bytes = VXD_ON_CUDA(context) ? total_bytes / 2 : total_bytes / 4;

    usage->host_budget_bytes =
        options->host_bytes != 0 ? options->host_bytes : host_bytes;
    if (usage->host_budget_bytes > MAX_BUDGET_BYTES) {
        usage->host_budget_bytes = MAX_BUDGET_BYTES;
    }
    VXD_TRY(vxd_pool_create(options->n_threads, &context->pool, err));
    context->info.n_threads = vxd_pool_n_threads(context->pool);
    VXD_TRY(vxd_block_cache_create(context, VXD_SPACE_HOST, &context->host_cache, err));
    if (context->backend == VXD_BACKEND_CPU) {
        context->info.device_total_bytes = total_bytes;
        (void)snprintf(context->info.name, sizeof context->info.name, "cpu, %d thread%s",
                       context->info.n_threads, context->info.n_threads == 1 ? "" : "s");
        if (usage->device_budget_bytes == 0) {
            usage->device_budget_bytes = total_bytes / 2;
        }
        VXD_TRY(vxd_block_cache_create(context, VXD_SPACE_DEVICE, &context->device_cache,
                                       err));
    }
out:
    return status;
}

enum vxd_status vxd_context_create(const struct vxd_context_options *options,
                                   struct vxd_context **out, struct vxd_err *err)
{
    struct vxd_context *context = NULL;
    enum vxd_status status;

    *out = NULL;
    status = check_options(options, err);
    if (status != VXD_OK) {
        return status;
    }
    context = calloc(1, sizeof *context);
    if (context == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a context");
    }
    (void)pthread_mutex_init(&context->mutex, NULL);
    context->backend = options->backend;
    context->info.backend = options->backend;
    context->device = options->device;
    if (options->extras != NULL) {
        context->extras = *options->extras;
    }
    context->usage.device_budget_bytes = options->device_bytes < MAX_BUDGET_BYTES
                                             ? options->device_bytes
                                             : MAX_BUDGET_BYTES;
    VXD_TRY(init_host(context, options, err));
    if (VXD_ON_CUDA(context)) {
        VXD_TRY(vxd_cuda_context_init(context, err));
    }
    *out = context;
    return VXD_OK;
out:
    vxd_block_cache_destroy(context->device_cache);
    vxd_block_cache_destroy(context->host_cache);
    vxd_pool_destroy(context->pool);
    (void)pthread_mutex_destroy(&context->mutex);
    free(context);
    return status;
}

void vxd_context_destroy(struct vxd_context *context)
{
    if (context == NULL) {
        return;
    }
    vxd_block_cache_destroy(context->device_cache);
    vxd_block_cache_destroy(context->host_cache);
    if (VXD_ON_CUDA(context)) {
        vxd_cuda_context_free(context);
    }
    vxd_pool_destroy(context->pool);
    (void)pthread_mutex_destroy(&context->mutex);
    free(context);
}

void vxd_context_trim(struct vxd_context *context)
{
    vxd_block_cache_trim(context->host_cache);
    if (context->device_cache != NULL) {
        vxd_block_cache_trim(context->device_cache);
    }
}
