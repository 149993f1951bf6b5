// SPDX-License-Identifier: Apache-2.0
/* The rpc transport: listeners and a few threads ("loops"), each with its share of the
 * connections. A loop reads messages into memory that the engine can use in place, and runs
 * them; a reply is written by whoever has it where the socket takes it at once, and by the loop
 * otherwise. nng's own sockets are not used: its library hands each piece of a message from its
 * polling thread to another one (42 us against 12 for a small message there and back over ipc,
 * 0.73 ms against 0.52 for one of 3 MB, on two cores), and neither limits nor deadlines of a
 * connection can be set in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/observe/log/log.h"
#include "server/transport/nng/nng.h"
#include "server/transport/nng/rpc_internal.h"
#include "server/transport/shared/shared.h"

/* Beside what can wait or run, so that overload is answered and does not stall. */
#define SPARE_REQUESTS 8
/* Most that stopping waits for replies on their way. */
#define FLUSH_TIMEOUT_MS 5000
#define FLUSH_STEP_MS 5

static size_t choose_n_loops(void)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (n_cores <= 4) {
        return 2;
    }
    return n_cores / 2 < VXD_RPC_MAX_LOOPS ? (size_t)(n_cores / 2) : VXD_RPC_MAX_LOOPS;
}

/* With its loops stopped, or never started. */
static void destroy(struct vxd_rpc *rpc)
{
    for (size_t i = 0; i < rpc->n_loops; i++) {
        vxd_rpc_loop_stop(&rpc->loops[i]);
    }
    for (size_t i = 0; i < rpc->n_listeners; i++) {
        vxd_rpc_unlisten(&rpc->listeners[i]);
    }
    vxd_shared_stop(rpc->shared);
    for (size_t i = 0; i < rpc->n_shared_listeners; i++) {
        vxd_rpc_unlisten(&rpc->shared_listeners[i]);
    }
    free(rpc);
}

/* Opens the sockets of shared memory beside those of ipc, and hands them over. */
static enum vxd_status start_shared(struct vxd_rpc *rpc, struct vxd_err *err)
{
    const struct vxd_config *config = &rpc->server->config;
    int fds[VXD_CONFIG_MAX_LISTEN];
    size_t n_fds = 0;
    enum vxd_status status = VXD_OK;

    if (config->shared_bytes == 0) {
        return VXD_OK;
    }
    for (; rpc->n_shared_listeners < config->n_rpc; rpc->n_shared_listeners++) {
        VXD_TRY(vxd_rpc_listen_shared(config, config->rpc[rpc->n_shared_listeners],
                                      &rpc->shared_listeners[rpc->n_shared_listeners],
                                      err));
    }
    for (size_t i = 0; i < rpc->n_shared_listeners; i++) {
        struct vxd_rpc_listener *listener = &rpc->shared_listeners[i];

        if (listener->fd >= 0) {
            fds[n_fds++] = listener->fd;
            listener->fd = -1;
        }
    }
    if (n_fds > 0) {
        status = vxd_shared_start(rpc->server, fds, n_fds, &rpc->shared, err);
    }
out:
    return status;
}

enum vxd_status vxd_rpc_start(struct vxd_server *server, struct vxd_rpc **out,
                              struct vxd_err *err)
{
    const struct vxd_config *config = &server->config;
    struct vxd_rpc *rpc = calloc(1, sizeof *rpc);
    enum vxd_status status = VXD_OK;

    if (rpc == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the transport");
    }
    rpc->server = server;
    /* queued; on the write lane and the read lanes, each of which may have one more waiting
     * between two stages; repeated ones that wait; and the spare ones */
    rpc->max_open = (size_t)config->queue_limit + 1 + 2 * (size_t)config->n_read_lanes +
                    VXD_ONCE_MAX_WAITING + SPARE_REQUESTS;
    for (; rpc->n_listeners < config->n_rpc; rpc->n_listeners++) {
        size_t i = rpc->n_listeners;

        VXD_TRY(vxd_rpc_listen(config, config->rpc[i], &rpc->listeners[i],
                               server->rpc_bound[i], err));
    }
    VXD_TRY(start_shared(rpc, err));
    for (size_t n = choose_n_loops(); rpc->n_loops < n; rpc->n_loops++) {
        struct vxd_rpc_loop *loop = &rpc->loops[rpc->n_loops];

        loop->rpc = rpc;
        loop->has_listeners = rpc->n_loops == 0;
        /* The first loop gives connections to the others, so it begins last. */
        if (rpc->n_loops > 0) {
            VXD_TRY(vxd_rpc_loop_start(loop, err));
        }
    }
    VXD_TRY(vxd_rpc_loop_start(&rpc->loops[0], err));
    *out = rpc;
out:
    if (status != VXD_OK) {
        destroy(rpc);
    }
    return status;
}

void vxd_rpc_refuse_new(struct vxd_rpc *rpc)
{
    atomic_store(&rpc->refusing, true);
}

void vxd_rpc_stop(struct vxd_rpc *rpc)
{
    const struct timespec step = {.tv_nsec = FLUSH_STEP_MS * 1000000L};
    int64_t until_ns = vxd_clock_ns() + FLUSH_TIMEOUT_MS * INT64_C(1000000);

    /* Replies are being handed over by other threads, which take no time; peers may. */
    while (atomic_load(&rpc->n_unanswered) > 0 ||
           (atomic_load(&rpc->n_open) > 0 && vxd_clock_ns() < until_ns)) {
        (void)nanosleep(&step, NULL);
    }
    if (atomic_load(&rpc->n_open) > 0) {
        vxd_log(VXD_LOG_WARNING, "some rpc peers do not read their replies");
    }
    atomic_store(&rpc->stopping, true);
    destroy(rpc);
}
