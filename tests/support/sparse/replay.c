// SPDX-License-Identifier: Apache-2.0
/* Runs the executor as on a GPU on a machine without one: memory with spare capacity,
 * coordinate sets derived from sets that are not counted yet, runs that record graphs
 * for later ones. The executor's files are compiled as with CUDA and treat every
 * context as a GPU's. The backends that they call are the CPU's, and a graph is the
 * list of jobs that were queued while it was recorded, which run again. Only real GPUs
 * predict sizes. */
#include <stdlib.h>

#include "gpu/sparse/layers/layers.h"
#include "gpu/sparse/executor/network_internal.h"

enum vxd_status __real_vxd_context_create(const struct vxd_context_options *options,
                                          struct vxd_context **out, struct vxd_err *err);
enum vxd_status __wrap_vxd_context_create(const struct vxd_context_options *options,
                                          struct vxd_context **out, struct vxd_err *err);

enum vxd_status __wrap_vxd_context_create(const struct vxd_context_options *options,
                                          struct vxd_context **out, struct vxd_err *err)
{
    enum vxd_status status = __real_vxd_context_create(options, out, err);

    if (status == VXD_OK) {
        (*out)->backend = VXD_BACKEND_CUDA;
    }
    return status;
}

/* Runs that are enqueued whole rely on faults that are set in a word of device memory,
 * which the CPU's jobs do not have; so every run here counts. */
enum vxd_status vxd_net_run_whole(struct vxd_queue *queue, struct vxd_net_run *run,
                                  bool *is_enqueued, struct vxd_err *err)
{
    (void)queue;
    (void)run;
    (void)err;
    *is_enqueued = false;
    return VXD_OK;
}

enum vxd_status vxd_net_run_check_prediction(struct vxd_queue *queue,
                                             struct vxd_net_run *run, bool *is_right,
                                             struct vxd_err *err)
{
    (void)queue;
    (void)run;
    *is_right = false;
    return vxd_fail(err, VXD_INTERNAL, NULL, "no run was enqueued whole");
}

#define CPU_BACKEND(name)                                                                \
    enum vxd_status vxd_net_##name##_cuda(struct vxd_queue *queue,                       \
                                          const struct vxd_net_##name##_call *call,      \
                                          struct vxd_err *err)                           \
    {                                                                                    \
        return vxd_net_##name##_cpu(queue, call, err);                                   \
    }

CPU_BACKEND(load)
CPU_BACKEND(save)
CPU_BACKEND(combine)
CPU_BACKEND(pool)
CPU_BACKEND(global)
CPU_BACKEND(batch_norm)
CPU_BACKEND(norm)
CPU_BACKEND(embedding)
CPU_BACKEND(keep)
CPU_BACKEND(attention)
CPU_BACKEND(tokens)
CPU_BACKEND(argmax)
CPU_BACKEND(count)
CPU_BACKEND(bev)

size_t vxd_net_global_scratch_bytes_cuda(size_t max_rows, int n_samples, int n_channels)
{
    return vxd_net_global_scratch_bytes_cpu(max_rows, n_samples, n_channels);
}

size_t vxd_net_batch_norm_scratch_bytes_cuda(size_t max_rows, int n_samples,
                                             int n_channels)
{
    return vxd_net_batch_norm_scratch_bytes_cpu(max_rows, n_samples, n_channels);
}

size_t vxd_net_attention_scratch_bytes_cuda(size_t max_q, size_t max_k, int n_samples,
                                            int n_inner, int n_channels)
{
    return vxd_net_attention_scratch_bytes_cpu(max_q, max_k, n_samples, n_inner,
                                               n_channels);
}

size_t vxd_net_tokens_scratch_bytes_cuda(size_t max_rows, int n_samples, int n_tokens,
                                         int n_channels)
{
    return vxd_net_tokens_scratch_bytes_cpu(max_rows, n_samples, n_tokens, n_channels);
}

struct vxd_net_graph {
    struct vxd_queue *recorded; /* this queue is never waited for */
};

static void drop_jobs(struct vxd_queue *queue)
{
    while (queue->first != NULL) {
        struct vxd_job *job = queue->first;

        queue->first = job->next;
        free(job);
    }
}

enum vxd_status vxd_net_graph_record_cuda(struct vxd_queue *queue,
                                          vxd_net_enqueue_fn enqueue, void *args,
                                          bool has_own_word, struct vxd_net_graph **out,
                                          struct vxd_err *err)
{
    struct vxd_net_graph *graph = calloc(1, sizeof *graph);
    enum vxd_status status;

    (void)has_own_word;
    *out = NULL;
    if (graph == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a graph");
    }
    VXD_TRY(vxd_queue_create(queue->context, &graph->recorded, err));
    VXD_TRY(enqueue(graph->recorded, args, err));
    for (const struct vxd_job *job = graph->recorded->first; job != NULL;
         job = job->next) {
        if (job->is_release) {
            (void)fprintf(stderr, "memory was given back while recording\n");
            exit(EXIT_FAILURE);
        }
    }
    *out = graph;
    return VXD_OK;
out:
    vxd_net_graph_destroy_cuda(queue->context, graph);
    return status;
}

static enum vxd_status replay_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    const struct vxd_net_graph *graph = *(const struct vxd_net_graph *const *)args;
    enum vxd_status status = VXD_OK;

    for (const struct vxd_job *job = graph->recorded->first; job != NULL;
         job = job->next) {
        VXD_TRY(job->run(pool, job->args, err));
    }
out:
    return status;
}

enum vxd_status vxd_net_graph_launch_cuda(struct vxd_queue *queue,
                                          const struct vxd_net_graph *graph,
                                          struct vxd_err *err)
{
    return vxd_queue_push(queue, replay_job, &graph, sizeof(const void *), err);
}

void vxd_net_graph_destroy_cuda(struct vxd_context *context, struct vxd_net_graph *graph)
{
    (void)context;
    if (graph == NULL) {
        return;
    }
    if (graph->recorded != NULL) {
        drop_jobs(graph->recorded);
        vxd_queue_destroy(graph->recorded);
    }
    free(graph);
}
