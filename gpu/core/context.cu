// SPDX-License-Identifier: Apache-2.0
/* The CUDA side of contexts, queues and memory (the hooks of core_cpu.h).
 *
 * Device memory comes from one stream-ordered pool for each context. The pool keeps freed blocks
 * up to the budget, so that a steady load allocates nothing from the driver. A wait polls first,
 * then sleeps for short intervals, then sleeps on a blocking event; even a long wait costs only
 * about a millisecond of processor time. Kernels report faults through a word of mapped pinned
 * memory, one for each queue, which the host reads without a copy. */
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "gpu/core/core_cuda.h"

/* Waking from a blocking event took 0.2 to 0.5 ms on the virtual machine measured,
 * more than voxelizing a scan does. So a wait polls for 0.2 ms, which is as long as
 * short work takes. Up to 4 ms it alternates between short sleeps and queries, each of
 * which takes about 7 us of processor time: a quarter of a core, a millisecond in all,
 * and the end of the work is noticed at most one short sleep late. Longer waits sleep
 * on the event: that costs no more processor time, and waking takes at most a tenth of
 * the wait. */
#define POLL_NS 200000
#define SLEEP_NS 20000
#define SLEEPS_END_NS 4000000
#define SLEEP_SLACK_NS 1000 /* a thread's default of 50,000 makes the sleeps 70 us long */

static void describe(struct vxd_context_info *info, int device,
                     const struct cudaDeviceProp *prop)
{
    info->backend = VXD_BACKEND_CUDA;
    info->n_multiprocessors = prop->multiProcessorCount;
    info->compute_capability = prop->major * 10 + prop->minor;
    info->device_total_bytes = prop->totalGlobalMem;
    (void)snprintf(info->name, sizeof info->name, "cuda:%d %.48s, sm_%d, %d SMs", device,
                   prop->name, info->compute_capability, info->n_multiprocessors);
}

static enum vxd_status meaning_of(cudaError_t result)
{
    switch (result) {
    case cudaErrorMemoryAllocation:
        return VXD_RESOURCE_EXHAUSTED;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
        return VXD_UNAVAILABLE;
    default:
        return VXD_INTERNAL;
    }
}

enum vxd_status vxd_cuda_status(struct vxd_context *context, cudaError_t result,
                                const char *call, struct vxd_err *err)
{
    bool is_lost;

    if (result == cudaSuccess) {
        return VXD_OK;
    }
    /* Reading an ordinary error clears it. An error that poisoned the device comes
     * back from any later call, even a free of nothing. So does the error of a device
     * that cannot be opened; its status does not depend on whether the device is lost. */
    (void)cudaGetLastError();
    is_lost = cudaFree(NULL) != cudaSuccess;
    if (is_lost) {
        (void)cudaGetLastError();
        vxd_context_mark_lost(context);
    }
    return vxd_fail(err, meaning_of(result), NULL, "%s: %s (%s)%s", call,
                    cudaGetErrorString(result), cudaGetErrorName(result),
                    is_lost ? "; the device is lost" : "");
}

enum vxd_status vxd_cuda_enter(struct vxd_context *context, struct vxd_err *err)
{
    if (vxd_context_is_lost(context)) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "the device is lost");
    }
    return VXD_CUDA(context, cudaSetDevice(context->device), err);
}

int vxd_cuda_count(char *why, size_t why_bytes)
{
    int n = 0;
    cudaError_t result = cudaGetDeviceCount(&n);

    if (result != cudaSuccess) {
        (void)cudaGetLastError();
        n = 0;
    }
    if (n == 0 && why != NULL) {
        (void)snprintf(why, why_bytes, "%s",
                       result != cudaSuccess ? cudaGetErrorString(result)
                                             : "none listed");
    }
    return n;
}

enum vxd_status vxd_cuda_context_init(struct vxd_context *context, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;
    struct cudaDeviceProp prop;
    cudaMemPoolProps props = {};
    cudaMemPool_t pool = NULL;
    uint64_t threshold;
    int has_pools = 0;

    VXD_TRY(vxd_cuda_enter(context, err));
    VXD_TRY(VXD_CUDA(context, cudaGetDeviceProperties(&prop, context->device), err));
    VXD_TRY(VXD_CUDA(context,
                     cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported,
                                            context->device),
                     err));
    if (has_pools == 0) {
        status = vxd_fail(err, VXD_UNAVAILABLE, NULL,
                          "device %d (%s) has no stream-ordered memory pools",
                          context->device, prop.name);
        goto out;
    }
    describe(&context->info, context->device, &prop);
    if (context->usage.device_budget_bytes == 0) {
        context->usage.device_budget_bytes = prop.totalGlobalMem / 10 * 9;
    }
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = context->device;
    VXD_TRY(VXD_CUDA(context, cudaMemPoolCreate(&pool, &props), err));
    threshold = context->usage.device_budget_bytes;
    VXD_TRY(VXD_CUDA(
        context,
        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), err));
    context->cuda_pool = pool;
    pool = NULL;
out:
    if (pool != NULL) {
        (void)cudaMemPoolDestroy(pool);
    }
    return status;
}

/* Goes on whatever fails: no caller is left to report to, and on a lost device every
 * call fails. */
void vxd_cuda_context_free(struct vxd_context *context)
{
    if (cudaSetDevice(context->device) == cudaSuccess && context->cuda_pool != NULL) {
        (void)cudaMemPoolDestroy((cudaMemPool_t)context->cuda_pool);
    }
    context->cuda_pool = NULL;
    (void)cudaGetLastError();
}

enum vxd_status vxd_cuda_queue_init(struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    enum vxd_status status = VXD_OK;
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    void *h_word = NULL;
    void *d_word = NULL;

    VXD_TRY(vxd_cuda_enter(context, err));
    VXD_TRY(VXD_CUDA(context, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     err));
    VXD_TRY(VXD_CUDA(
        context,
        cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming),
        err));
    VXD_TRY(VXD_CUDA(context,
                     cudaHostAlloc(&h_word, sizeof(uint32_t),
                                   cudaHostAllocMapped | cudaHostAllocPortable),
                     err));
    VXD_TRY(VXD_CUDA(context, cudaHostGetDevicePointer(&d_word, h_word, 0), err));
    *(uint32_t *)h_word = VXD_OK;
    queue->stream = stream;
    queue->event = event;
    queue->h_error_word = (uint32_t *)h_word;
    queue->error_word = (uint32_t *)d_word;
    return VXD_OK;
out:
    if (h_word != NULL) {
        (void)cudaFreeHost(h_word);
    }
    if (event != NULL) {
        (void)cudaEventDestroy(event);
    }
    if (stream != NULL) {
        (void)cudaStreamDestroy(stream);
    }
    return status;
}

void vxd_cuda_queue_free(struct vxd_queue *queue)
{
    if (cudaSetDevice(queue->context->device) == cudaSuccess) {
        (void)cudaStreamSynchronize((cudaStream_t)queue->stream);
        (void)cudaEventDestroy((cudaEvent_t)queue->event);
        (void)cudaStreamDestroy((cudaStream_t)queue->stream);
        (void)cudaFreeHost(queue->h_error_word);
    }
    queue->stream = NULL;
    queue->event = NULL;
    queue->h_error_word = NULL;
    queue->error_word = NULL;
    (void)cudaGetLastError();
}

static int64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static cudaError_t query(cudaEvent_t event)
{
    cudaError_t result = cudaEventQuery(event);

    if (result == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* would otherwise be taken for a launch's error */
    }
    return result;
}

/* Queries after each short sleep until end_ns. Restores the timer slack of the thread. */
static cudaError_t sleep_until(cudaEvent_t event, int64_t end_ns)
{
    const struct timespec interval = {0, SLEEP_NS};
    int slack_ns = prctl(PR_GET_TIMERSLACK);
    bool is_coarse = slack_ns > SLEEP_SLACK_NS;
    cudaError_t result;

    if (is_coarse) {
        (void)prctl(PR_SET_TIMERSLACK, (unsigned long)SLEEP_SLACK_NS);
    }
    do {
        (void)nanosleep(&interval,
                        NULL); /* may be shortened by a signal, which does no harm */
        result = query(event);
    } while (result == cudaErrorNotReady && now_ns() < end_ns);
    if (is_coarse) {
        (void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack_ns);
    }
    return result;
}

static cudaError_t wait_for(cudaEvent_t event)
{
    int64_t begin_ns = now_ns();
    cudaError_t result = query(event);

    while (result == cudaErrorNotReady && now_ns() < begin_ns + POLL_NS) {
        (void)sched_yield();
        result = query(event);
    }
    if (result == cudaErrorNotReady) {
        result = sleep_until(event, begin_ns + SLEEPS_END_NS);
    }
    return result == cudaErrorNotReady ? cudaEventSynchronize(event) : result;
}

enum vxd_status vxd_cuda_queue_mark(struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    enum vxd_status status;

    VXD_TRY(VXD_CUDA(context, cudaSetDevice(context->device), err));
    VXD_TRY(VXD_CUDA(
        context, cudaEventRecord((cudaEvent_t)queue->event, (cudaStream_t)queue->stream),
        err));
out:
    return status;
}

enum vxd_status vxd_cuda_queue_wait_mark(struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    enum vxd_status status = VXD_OK;
    uint32_t word;

    VXD_TRY(VXD_CUDA(context, wait_for((cudaEvent_t)queue->event), err));
    VXD_TRY(vxd_cuda_enter(context, err));
    word = *(volatile uint32_t *)queue->h_error_word;
    if (word != VXD_OK) {
        *(volatile uint32_t *)queue->h_error_word = VXD_OK;
        status = vxd_fail(err, (enum vxd_status)word, NULL,
                          "a kernel on %s reported status %u", context->info.name, word);
    }
out:
    return status;
}

enum vxd_status vxd_cuda_copy(struct vxd_queue *queue, void *to, const void *from,
                              size_t n_bytes, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDefault,
                                     (cudaStream_t)queue->stream),
                     err));
out:
    return status;
}

enum vxd_status vxd_cuda_fill(struct vxd_queue *queue, void *to, int value,
                              size_t n_bytes, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(VXD_CUDA(queue->context,
                     cudaMemsetAsync(to, value, n_bytes, (cudaStream_t)queue->stream),
                     err));
out:
    return status;
}

enum vxd_status vxd_cuda_device_alloc(struct vxd_queue *queue, size_t n_bytes, void **out,
                                      struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(context, err));
    VXD_TRY(
        VXD_CUDA(context,
                 cudaMallocFromPoolAsync(out, n_bytes, (cudaMemPool_t)context->cuda_pool,
                                         (cudaStream_t)queue->stream),
                 err));
out:
    return status;
}

/* Frees are tried on a lost device too: a test may only have marked it as lost, and
 * where it really is lost its memory is gone as well. */
void vxd_cuda_device_free(struct vxd_queue *queue, void *ptr)
{
    struct vxd_context *context = queue->context;

    if (VXD_CUDA(context, cudaSetDevice(context->device), NULL) == VXD_OK) {
        (void)VXD_CUDA(context, cudaFreeAsync(ptr, (cudaStream_t)queue->stream), NULL);
    }
}

enum vxd_status vxd_cuda_host_alloc(struct vxd_context *context, size_t n_bytes,
                                    void **out, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(context, err));
    VXD_TRY(VXD_CUDA(context, cudaHostAlloc(out, n_bytes, cudaHostAllocPortable), err));
out:
    return status;
}

void vxd_cuda_host_free(struct vxd_context *context, void *ptr)
{
    if (VXD_CUDA(context, cudaSetDevice(context->device), NULL) == VXD_OK) {
        (void)VXD_CUDA(context, cudaFreeHost(ptr), NULL);
    }
}
