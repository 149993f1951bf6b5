// SPDX-License-Identifier: Apache-2.0
/* The work that a network enqueues, captured once and launched as one CUDA graph.
 *
 * Backends compile the address of the queue's error word into their kernels' arguments, but a
 * graph is launched on any queue. So it is captured for a queue that has the stream of the
 * caller's queue and a word of its own, and every launch ends with a kernel that passes the word
 * on, unless the captured work reports to another word. */
#include <stdlib.h>

#include "gpu/core/core_cuda.h"
#include "gpu/sparse/layers/layers.h"

struct vxd_net_graph {
    cudaGraphExec_t exec;
    /* device memory of this graph; NULL: what it runs has its own */
    uint32_t *error_word;
};

static __global__ void copy_fault_kernel(uint32_t *error_word, uint32_t *queue_word)
{
    uint32_t word = *error_word;

    if (word != VXD_OK) {
        (void)atomicCAS(queue_word, (uint32_t)VXD_OK, word);
        *error_word = VXD_OK;
    }
}

/* Allocates the word, so that a launch on any queue finds it set to 0. It does not use
 * the queue's stream, because waiting for that means waiting for everything queued. */
static enum vxd_status make_error_word(struct vxd_context *context, uint32_t **out,
                                       struct vxd_err *err)
{
    cudaStream_t stream = cudaStreamPerThread;
    enum vxd_status status;

    VXD_TRY(VXD_CUDA(context,
                     cudaMallocFromPoolAsync((void **)out, sizeof **out,
                                             (cudaMemPool_t)context->cuda_pool, stream),
                     err));
    VXD_TRY(VXD_CUDA(context, cudaMemsetAsync(*out, VXD_OK, sizeof **out, stream), err));
    VXD_TRY(VXD_CUDA(context, cudaStreamSynchronize(stream), err));
out:
    return status;
}

/* Captures the work that enqueue puts on the stream. A capture that has begun is ended
 * in every case, because the stream accepts no other work before. The mode is relaxed:
 * the calls by which vxd_cuda_status examines a fault must work during the capture
 * too. */
static enum vxd_status capture(const struct vxd_queue *queue, uint32_t *error_word,
                               vxd_net_enqueue_fn enqueue, void *args, cudaGraph_t *graph,
                               struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    struct vxd_queue recorder = *queue;
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status;
    enum vxd_status ended;

    recorder.error_word = error_word;
    VXD_TRY(VXD_CUDA(context,
                     cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), err));
    status = enqueue(&recorder, args, err);
    ended = VXD_CUDA(context, cudaStreamEndCapture(stream, graph),
                     status == VXD_OK ? err : NULL);
    status = status == VXD_OK ? ended : status;
out:
    return status;
}

enum vxd_status vxd_net_graph_record_cuda(struct vxd_queue *queue,
                                          vxd_net_enqueue_fn enqueue, void *args,
                                          bool has_own_word, struct vxd_net_graph **out,
                                          struct vxd_err *err)
{
    struct vxd_context *context = queue->context;
    struct vxd_net_graph *graph = (struct vxd_net_graph *)calloc(1, sizeof *graph);
    cudaGraph_t captured = NULL;
    enum vxd_status status = VXD_OK;

    *out = NULL;
    if (graph == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a graph");
    }
    VXD_TRY(vxd_cuda_enter(context, err));
    if (!has_own_word) {
        VXD_TRY(make_error_word(context, &graph->error_word, err));
    }
    VXD_TRY(capture(queue, graph->error_word, enqueue, args, &captured, err));
    VXD_TRY(VXD_CUDA(context, cudaGraphInstantiate(&graph->exec, captured, 0), err));
    *out = graph;
    graph = NULL;
out:
    if (captured != NULL) {
        (void)cudaGraphDestroy(captured);
    }
    vxd_net_graph_destroy_cuda(context, graph);
    return status;
}

enum vxd_status vxd_net_graph_launch_cuda(struct vxd_queue *queue,
                                          const struct vxd_net_graph *graph,
                                          struct vxd_err *err)
{
    cudaStream_t stream = (cudaStream_t)queue->stream;
    enum vxd_status status = VXD_OK;

    VXD_TRY(vxd_cuda_enter(queue->context, err));
    VXD_TRY(VXD_CUDA(queue->context, cudaGraphLaunch(graph->exec, stream), err));
    if (graph->error_word != NULL) {
        copy_fault_kernel<<<1, 1, 0, stream>>>(graph->error_word, queue->error_word);
        VXD_TRY(vxd_cuda_launched(queue->context, "copy_fault_kernel", err));
    }
out:
    return status;
}

/* Frees the word on a stream that no thread waits for: no launch is in flight. */
void vxd_net_graph_destroy_cuda(struct vxd_context *context, struct vxd_net_graph *graph)
{
    if (graph == NULL) {
        return;
    }
    if (VXD_CUDA(context, cudaSetDevice(context->device), NULL) == VXD_OK) {
        if (graph->exec != NULL) {
            (void)VXD_CUDA(context, cudaGraphExecDestroy(graph->exec), NULL);
        }
        if (graph->error_word != NULL) {
            (void)VXD_CUDA(context, cudaFreeAsync(graph->error_word, cudaStreamPerThread),
                           NULL);
        }
    }
    free(graph);
}
