// SPDX-License-Identifier: Apache-2.0
#include "server/instance/instance.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu/core/core.h"

void vxd_server_stop(struct vxd_server *server, bool lost)
{
    char event = lost ? VXD_EVENT_LOST : VXD_EVENT_STOP;

    if (lost) {
        atomic_store(&server->state, VXD_STATE_LOST);
    }
    if (server->event_fd >= 0) {
        while (write(server->event_fd, &event, 1) < 0 && errno == EINTR) {
        }
    }
}

void vxd_server_set_state(struct vxd_server *server, enum vxd_server_state state)
{
    int before = atomic_load(&server->state);

    while (before != VXD_STATE_LOST &&
           !atomic_compare_exchange_weak(&server->state, &before, (int)state)) {
    }
}

const char *vxd_server_state_name(const struct vxd_server *server)
{
    switch (atomic_load(&server->state)) {
    case VXD_STATE_RECOVERING:
    case VXD_STATE_STARTING:
        return "starting";
    case VXD_STATE_SERVING:
        return "serving";
    case VXD_STATE_LOST:
        return "lost";
    default:
        return "draining";
    }
}

void vxd_server_backend_name(const struct vxd_server *server, char *out, size_t n_bytes)
{
    if (vxd_context_backend(server->context) == VXD_BACKEND_CPU) {
        (void)snprintf(out, n_bytes, "cpu");
    } else {
        (void)snprintf(out, n_bytes, "%s",
                       strcmp(server->config.backend, "auto") == 0 ||
                               strcmp(server->config.backend, "cuda") == 0
                           ? "cuda:0"
                           : server->config.backend);
    }
}
