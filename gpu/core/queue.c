// SPDX-License-Identifier: Apache-2.0
#include "gpu/core/queue.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/core/core_cpu.h"

/* Copies and fills are divided into pieces of this many bytes for the pool. */
#define PIECE_BYTES ((size_t)1 << 18)

/* Offset of a pushed job's arguments, aligned for any type. */
#define JOB_HEADER_BYTES ((sizeof(struct vxd_job) + 15) / 16 * 16)

struct copy_args {
    char *to;
    const char *from; /* NULL: fill */
    size_t n_bytes;
    int value;
};

enum vxd_status vxd_queue_create(struct vxd_context *context, struct vxd_queue **out,
                                 struct vxd_err *err)
{
    struct vxd_queue *queue;

    *out = NULL;
    if (vxd_context_is_lost(context)) {
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "the device is lost");
    }
    queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a queue");
    }
    queue->context = context;
    if (VXD_ON_CUDA(context)) {
        enum vxd_status status = vxd_cuda_queue_init(queue, err);

        if (status != VXD_OK) {
            free(queue);
            return status;
        }
    }
    *out = queue;
    return VXD_OK;
}

void vxd_queue_destroy(struct vxd_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    (void)vxd_queue_wait(queue, NULL);
    if (VXD_ON_CUDA(queue->context)) {
        vxd_cuda_queue_free(queue);
    }
    free(queue);
}

struct vxd_context *vxd_queue_context(const struct vxd_queue *queue)
{
    return queue->context;
}

enum vxd_status vxd_queue_wait(struct vxd_queue *queue, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (VXD_ON_CUDA(queue->context)) {
        status = vxd_cuda_queue_mark(queue, err);
        return status == VXD_OK ? vxd_cuda_queue_wait_mark(queue, err) : status;
    }
    if (vxd_context_is_lost(queue->context)) {
        status = vxd_fail(err, VXD_UNAVAILABLE, NULL, "the device is lost");
    }
    while (queue->first != NULL) {
        struct vxd_job *job = queue->first;

        /* Read before the job runs: it frees the memory of a release job. */
        queue->first = job->next;
        if (queue->first == NULL) {
            queue->last = NULL;
        }
        if (job->is_release) {
            (void)job->run(queue->context->pool, job->args, NULL);
            continue;
        }
        if (status == VXD_OK) {
            status = job->run(queue->context->pool, job->args, err);
        }
        free(job);
    }
    return status;
}

enum vxd_status vxd_queue_mark(struct vxd_queue *queue, struct vxd_err *err)
{
    return VXD_ON_CUDA(queue->context) ? vxd_cuda_queue_mark(queue, err) : VXD_OK;
}

enum vxd_status vxd_queue_wait_mark(struct vxd_queue *queue, struct vxd_err *err)
{
    return VXD_ON_CUDA(queue->context) ? vxd_cuda_queue_wait_mark(queue, err)
                                       : vxd_queue_wait(queue, err);
}

void vxd_queue_append(struct vxd_queue *queue, struct vxd_job *job)
{
    job->next = NULL;
    if (queue->last != NULL) {
        queue->last->next = job;
    } else {
        queue->first = job;
    }
    queue->last = job;
}

enum vxd_status vxd_queue_push(struct vxd_queue *queue, vxd_job_fn run, const void *args,
                               size_t n_bytes, struct vxd_err *err)
{
    struct vxd_job *job;

    if (n_bytes > VXD_JOB_BYTES) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "job arguments of %zu bytes, at most %d",
                        n_bytes, VXD_JOB_BYTES);
    }
    job = malloc(JOB_HEADER_BYTES + n_bytes);
    if (job == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory to queue a job");
    }
    job->run = run;
    job->args = (char *)job + JOB_HEADER_BYTES;
    job->is_release = false;
    if (n_bytes > 0) {
        memcpy(job->args, args, n_bytes);
    }
    vxd_queue_append(queue, job);
    return VXD_OK;
}

static void copy_piece(void *args, size_t begin, size_t end)
{
    const struct copy_args *copy = args;

    if (copy->from != NULL) {
        memcpy(copy->to + begin, copy->from + begin, end - begin);
    } else {
        memset(copy->to + begin, copy->value, end - begin);
    }
}

static enum vxd_status copy_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct copy_args copy = *(const struct copy_args *)args;

    (void)err;
    vxd_parallel_for(pool, copy.n_bytes, PIECE_BYTES, copy_piece, &copy);
    return VXD_OK;
}

enum vxd_status vxd_queue_copy(struct vxd_queue *queue, void *to, const void *from,
                               size_t n_bytes, struct vxd_err *err)
{
    struct copy_args copy = {to, from, n_bytes, 0};

    if (n_bytes == 0) {
        return VXD_OK;
    }
    if (VXD_ON_CUDA(queue->context)) {
        return vxd_cuda_copy(queue, to, from, n_bytes, err);
    }
    return vxd_queue_push(queue, copy_job, &copy, sizeof copy, err);
}

enum vxd_status vxd_queue_fill(struct vxd_queue *queue, void *to, int value,
                               size_t n_bytes, struct vxd_err *err)
{
    struct copy_args copy = {to, NULL, n_bytes, value};

    if (n_bytes == 0) {
        return VXD_OK;
    }
    if (VXD_ON_CUDA(queue->context)) {
        return vxd_cuda_fill(queue, to, value, n_bytes, err);
    }
    return vxd_queue_push(queue, copy_job, &copy, sizeof copy, err);
}

void *vxd_queue_stream(const struct vxd_queue *queue)
{
    return queue->stream;
}

uint32_t *vxd_queue_error_word(const struct vxd_queue *queue)
{
    return queue->error_word;
}
