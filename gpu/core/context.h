// SPDX-License-Identifier: Apache-2.0
/* A context is one device (a CUDA GPU, or the CPU with its thread pool) with its memory
 * budgets. Contexts are independent: nothing here is global, so several may live in one
 * process. All functions may be called from any thread. */
#ifndef VXD_GPU_CORE_CONTEXT_H
#define VXD_GPU_CORE_CONTEXT_H

#include "proto/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_context;
struct vxd_pool;

enum vxd_backend {
    VXD_BACKEND_CPU = 0,
    VXD_BACKEND_CUDA = 1
};

struct vxd_svdag_stores; /* gpu/svdag/store/store_table.h */
struct vxd_hash_indexes; /* gpu/hash/hash_internal.h */

/* Tables of functions that a context is given when it is created, so that the code
 * behind them need not be in every build: further stores of scenes and further indexes
 * of hash maps. Either may be NULL. Both are constants that outlive the context. */
struct vxd_context_extras {
    const struct vxd_svdag_stores *stores;
    const struct vxd_hash_indexes *indexes;
};

struct vxd_context_options {
    enum vxd_backend backend;
    int device; /* CUDA ordinal, 0 for the CPU */
    /* Threads of the CPU pool, callers included, at most 256; 0 = all cores or, in a
     * container, its share of them. */
    int n_threads;
    /* Budgets. 0 stands for nine tenths of a GPU's memory, or on the CPU for half of the
     * memory of the machine or container. */
    size_t device_bytes;
    /* Likewise; 0 stands for half of the machine's or container's memory, on the CPU for a
     * quarter. */
    size_t host_bytes;
    const struct vxd_context_extras *extras; /* copied; NULL: none */
};

struct vxd_context_info {
    enum vxd_backend backend;
    char name[96];             /* as "cuda:0 NVIDIA H200, sm_90, 132 SMs" */
    int n_threads;             /* of the CPU pool, 1 or more on both backends */
    int n_multiprocessors;     /* 0 on the CPU */
    int compute_capability;    /* 90 for sm_90, 0 on the CPU */
    size_t device_total_bytes; /* of the GPU, the machine or the container (cgroup v2) */
};

struct vxd_memory_usage {
    size_t device_bytes; /* in use at present, by space, without cached free blocks */
    size_t host_bytes;
    size_t device_peak_bytes;
    size_t host_peak_bytes;
    size_t device_budget_bytes;
    size_t host_budget_bytes;
    size_t
        device_kept_bytes; /* cached free blocks; on a GPU its driver keeps them, uncounted */
    size_t host_kept_bytes;
};

/* How many CUDA devices answer. 0 without CUDA in the build, without a driver or
 * without a device; `why` (may be NULL) then says which, for example "built without
 * CUDA". */
int vxd_cuda_device_count(char *why, size_t why_bytes);

/* errors  INVALID_ARGUMENT    unknown backend, device ordinal or thread count
 *         UNAVAILABLE         the device does not answer, or CUDA is not in this build
 *         RESOURCE_EXHAUSTED  no memory for the context itself
 * owner   the caller, who destroys every queue and buffer of it first */
enum vxd_status vxd_context_create(const struct vxd_context_options *options,
                                   struct vxd_context **out, struct vxd_err *err);
void vxd_context_destroy(struct vxd_context *context);

enum vxd_backend vxd_context_backend(const struct vxd_context *context);
void vxd_context_get_info(const struct vxd_context *context,
                          struct vxd_context_info *out);
void vxd_context_get_memory(const struct vxd_context *context,
                            struct vxd_memory_usage *out);

/* Frees host memory, on the CPU backend "device" memory too, that was kept for reuse and that nobody
 * took since the call before. On a GPU it may wait for what runs there. Any thread. */
void vxd_context_trim(struct vxd_context *context);

/* True once a sticky CUDA error has poisoned the device: no call on it can succeed any
 * more, and the process should end in order. On the CPU it is true only after
 * vxd_context_mark_lost. */
bool vxd_context_is_lost(const struct vxd_context *context);

/* Latches the loss, as a sticky error would; for tests of the shutdown path. */
void vxd_context_mark_lost(struct vxd_context *context);

/* The pool on which this context runs parallel host loops; borrowed. */
struct vxd_pool *vxd_context_pool(struct vxd_context *context);

#ifdef __cplusplus
}
#endif
#endif
