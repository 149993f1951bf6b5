// SPDX-License-Identifier: Apache-2.0
/* The runtime's calls on the emulated device. */
#include <new>

#include "tests/emulator/device.h"

/* New memory is filled with garbage. Of large blocks only the beginning is, so that
 * memory that is never touched costs nothing. */
#define MAX_GARBAGE ((size_t)4 << 20)

/* As in CUDA. */
#define ALIGNMENT 256

static thread_local cudaError_t last_error = cudaSuccess;

static cudaError_t failed(cudaError_t error)
{
    last_error = error;
    return error;
}

void emu_launched(bool is_valid)
{
    if (!is_valid) {
        (void)failed(cudaErrorInvalidConfiguration);
    }
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaSuccess ? "cudaSuccess" : "cudaError";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInvalidDeviceFunction:
        return "invalid device function";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    default:
        return "invalid argument";
    }
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : failed(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    memset(prop, 0, sizeof *prop);
    (void)snprintf(prop->name, sizeof prop->name, "emulated");
    prop->totalGlobalMem = (size_t)8 << 30;
    prop->multiProcessorCount = (int)emu_n_multiprocessors();
    prop->major = 9;
    return cudaSetDevice(device);
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int device)
{
    *value = 1;
    return cudaSetDevice(device);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *)
{
    *pool = (cudaMemPool_t) new char;
    return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    delete (char *)pool;
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *)
{
    return cudaSuccess;
}

static cudaError_t allocate(void **out, size_t n_bytes)
{
    /* It does not use malloc, which tests wrap to make the engine's own allocations
     * fail. */
    *out = operator new(n_bytes > 0 ? n_bytes : 1, std::align_val_t(ALIGNMENT),
                        std::nothrow);
    if (*out == NULL) {
        return failed(cudaErrorMemoryAllocation);
    }
    memset(*out, 0xa5, n_bytes < MAX_GARBAGE ? n_bytes : MAX_GARBAGE);
    return cudaSuccess;
}

static cudaError_t release(void *ptr)
{
    operator delete(ptr, std::align_val_t(ALIGNMENT));
    return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t n_bytes, cudaMemPool_t,
                                    cudaStream_t)
{
    return allocate(out, n_bytes);
}

cudaError_t cudaFreeAsync(void *ptr, cudaStream_t)
{
    return release(ptr);
}

cudaError_t cudaFree(void *ptr)
{
    return release(ptr);
}

cudaError_t cudaHostAlloc(void **out, size_t n_bytes, unsigned)
{
    return allocate(out, n_bytes);
}

cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned)
{
    *out = host;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *ptr)
{
    return release(ptr);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n_bytes, cudaMemcpyKind,
                            cudaStream_t)
{
    if (n_bytes > 0) {
        memmove(to, from, n_bytes);
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t n_bytes, cudaStream_t)
{
    if (n_bytes > 0) {
        memset(to, value, n_bytes);
    }
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    *stream = (cudaStream_t) new char;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    delete (char *)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = (cudaEvent_t) new char;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete (char *)event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n_blocks, const void *,
                                                          int n_threads, size_t)
{
    *n_blocks = (int)emu_blocks_of((unsigned)n_threads);
    return cudaSuccess;
}

cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block,
                                        void **args, size_t n_shared, cudaStream_t)
{
    void *call[2] = {(void *)kernel, args};
    struct emu_launch launch = {NULL, grid, block, n_shared, true, NULL, call};

    if (!emu_find(kernel, &launch)) {
        return failed(cudaErrorInvalidDeviceFunction);
    }
    return emu_run(&launch) ? cudaSuccess : failed(cudaErrorInvalidConfiguration);
}
