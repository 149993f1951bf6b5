// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/core/core.h"
#include "gpu/paper/paper.h"
#include "proto/base/clock.h"
#include "server/request/request.h"
#include "server/observe/log/log.h"
#include "server/registry/maps/maps.h"
#include "server/registry/networks/networks.h"
#include "server/registry/registry.h"
#include "server/registry/fields/registry_fields.h"
#include "server/registry/odometries/odometries.h"
#include "server/registry/scenes/scenes.h"
#include "server/registry/posegraphs/posegraphs.h"
#include "server/registry/volumes/volumes.h"
#include "server/observe/observe.h"
#include "server/schedule/schedule.h"
#include "server/service/slac/service_slac.h"
#include "server/service/watch/watch.h"
#include "server/transport/tls/tls.h"

/* Opens the engine. "auto" tries the GPU and logs once why the CPU is used instead. */
static enum vxd_status open_context(struct vxd_server *server, struct vxd_err *err)
{
    const struct vxd_config *config = &server->config;
    struct vxd_context_options options = {
        .backend = VXD_BACKEND_CUDA,
        .n_threads = (int)config->n_threads,
        .device_bytes = (size_t)config->device_bytes,
        .host_bytes = (size_t)config->host_bytes,
        .extras = vxd_paper_stores(),
    };
    bool is_auto = strcmp(config->backend, "auto") == 0;
    struct vxd_err cuda_err = {0};
    char why[128] = "";

    if (strncmp(config->backend, "cuda", 4) == 0) {
        options.device =
            config->backend[4] == ':' ? (int)strtol(config->backend + 5, NULL, 10) : 0;
        return vxd_context_create(&options, &server->context, err);
    }
    if (is_auto && vxd_cuda_device_count(why, sizeof why) > 0) {
        if (vxd_context_create(&options, &server->context, &cuda_err) == VXD_OK) {
            return VXD_OK;
        }
        (void)snprintf(why, sizeof why, "%.127s", cuda_err.message);
    }
    if (is_auto) {
        vxd_log(VXD_LOG_INFO, "no GPU, running on the CPU", "why", why);
    }
    options.backend = VXD_BACKEND_CPU;
    return vxd_context_create(&options, &server->context, err);
}

static enum vxd_status make_instance_id(char out[33], struct vxd_err *err)
{
    uint8_t random[16];
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, random, sizeof random) : -1;

    if (fd >= 0) {
        (void)close(fd);
    }
    if (n != (ssize_t)sizeof random) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "cannot read /dev/urandom: %s",
                        strerror(errno));
    }
    for (size_t i = 0; i < sizeof random; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", random[i]);
    }
    return VXD_OK;
}

static void apply_limits(struct vxd_server *server, const struct vxd_config *config)
{
    enum vxd_log_level level = VXD_LOG_INFO;

    atomic_store(&server->limits.queue, config->queue_limit);
    atomic_store(&server->limits.default_timeout_ms, config->default_timeout_ms);
    atomic_store(&server->limits.max_timeout_ms, config->max_timeout_ms);
    if (vxd_log_level_parse(config->log_level, &level, NULL) == VXD_OK) {
        vxd_log_set_level(level);
    }
}

/* With a certificate whose time is over, who does not ask for certificates (over ipc, say) is served
 * all the same. */
static enum vxd_status open_tls(struct vxd_server *server, struct vxd_err *err)
{
    enum vxd_status status = vxd_tls_create(&server->config, &server->tls, err);

    if (status == VXD_FAILED_PRECONDITION) {
        vxd_log(VXD_LOG_WARNING, "clients will refuse this certificate", "error",
                err->message);
        *err = (struct vxd_err){0};
        status = VXD_OK;
    }
    return status;
}

/* Chooses what the configuration leaves to the machine. A lane also packs replies and writes them to
 * their sockets, so one alone keeps neither a GPU nor many cores busy. */
static void choose_by_machine(struct vxd_config *config)
{
    enum {
        CPUS_OF_ONE = 4,
        LEAST = 2, /* one lane takes small requests only; threads of HTTP as well */
        MOST_LANES = 4,
        MOST_HTTP_THREADS = 8
    };
    uint32_t n = (uint32_t)vxd_machine_cpus() / CPUS_OF_ONE;

    n = n > LEAST ? n : LEAST;
    if (config->n_read_lanes == 0) {
        config->n_read_lanes = n < MOST_LANES ? n : MOST_LANES;
    }
    if (config->http_threads == 0) {
        config->http_threads = n < MOST_HTTP_THREADS ? n : MOST_HTTP_THREADS;
    }
}

enum vxd_status vxd_server_open(struct vxd_server *server,
                                const struct vxd_config *config,
                                const struct vxd_method_table *methods,
                                struct vxd_err *err)
{
    enum vxd_log_level level;
    enum vxd_status status;

    memset(server, 0, sizeof *server);
    server->config = *config;
    choose_by_machine(&server->config);
    server->methods = methods;
    server->event_fd = -1;
    atomic_init(&server->state, VXD_STATE_STARTING);
    server->started_ns = vxd_clock_ns();
    server->started_unix_ns = vxd_clock_unix_ns();
    VXD_TRY(vxd_log_level_parse(config->log_level, &level, err));
    apply_limits(server, config);
    VXD_TRY(vxd_audit_open(config->audit_file, err));
    VXD_TRY(make_instance_id(server->instance_id, err));
    VXD_TRY(vxd_method_names_make(methods, &server->method_names, err));
    VXD_TRY(vxd_auth_create(config, &server->method_names, &server->auth, err));
    VXD_TRY(open_tls(server, err));
    VXD_TRY(vxd_tickets_create(&server->tickets, err));
    VXD_TRY(vxd_metrics_create(&server->metrics, err));
    VXD_TRY(vxd_slowlog_create(&server->slowlog, err));
    VXD_TRY(vxd_whys_create(&server->whys, err));
    VXD_TRY(vxd_once_create(config->replay_bytes, config->replay_clients, &server->once,
                            err));
    vxd_once_set_life(server->once, config->replay_seconds);
    VXD_TRY(open_context(server, err));
    VXD_TRY(vxd_registry_create(server->context, &server->registry, err));
    if (config->archive_dir[0] != '\0') {
        const struct vxd_registry_archive archive = {.folder = config->archive_dir,
                                                     .seconds = config->archive_seconds,
                                                     .max_bytes = config->archive_bytes};

        vxd_registry_set_archive(server->registry, &archive);
    }
    VXD_TRY(vxd_maps_create(server, &server->maps, err));
    VXD_TRY(vxd_networks_create(server, &server->networks, err));
    VXD_TRY(vxd_scenes_create(server, &server->scenes, err));
    VXD_TRY(vxd_volumes_create(server, &server->volumes, err));
    VXD_TRY(vxd_posegraphs_create(server, &server->posegraphs, err));
    VXD_TRY(vxd_odometries_create(server, &server->odometries, err));
    VXD_TRY(vxd_fields_create(server->context, &server->fields, err));
    VXD_TRY(vxd_slac_jobs_create(&server->slac, err));
    VXD_TRY(vxd_watch_create(server, &server->watch, err));
    VXD_TRY(vxd_scheduler_create(server, &server->scheduler, err));
out:
    if (status != VXD_OK) {
        vxd_server_close(server);
    }
    return status;
}

void vxd_server_close(struct vxd_server *server)
{
    vxd_watch_refuse(server->watch);
    vxd_scheduler_destroy(server->scheduler);
    vxd_registry_close_journal(server->registry);
    vxd_names_destroy(server->maps);
    vxd_names_destroy(server->networks);
    vxd_fields_destroy(server->fields);
    server->fields = NULL; /* volumes that go have no fields any more */
    vxd_scenes_destroy(server->scenes);
    vxd_names_destroy(server->volumes);
    vxd_names_destroy(server->posegraphs);
    vxd_odometries_destroy(server->odometries);
    vxd_watch_destroy(server->watch);
    vxd_slac_jobs_destroy(server->slac);
    vxd_registry_destroy(server->registry);
    if (server->context != NULL) {
        vxd_context_destroy(server->context);
    }
    vxd_once_destroy(server->once);
    vxd_slowlog_destroy(server->slowlog);
    vxd_whys_destroy(server->whys);
    vxd_metrics_destroy(server->metrics);
    vxd_tickets_destroy(server->tickets);
    vxd_auth_destroy(server->auth);
    vxd_tls_destroy(server->tls);
    vxd_method_names_free(&server->method_names);
    (void)vxd_audit_open("", NULL);
    server->scheduler = NULL;
    server->maps = NULL;
    server->networks = NULL;
    server->scenes = NULL;
    server->volumes = NULL;
    server->posegraphs = NULL;
    server->odometries = NULL;
    server->watch = NULL;
    server->slac = NULL;
    server->registry = NULL;
    server->context = NULL;
    server->once = NULL;
    server->slowlog = NULL;
    server->whys = NULL;
    server->metrics = NULL;
    server->tickets = NULL;
    server->auth = NULL;
    server->tls = NULL;
}

enum vxd_status vxd_server_reload(struct vxd_server *server,
                                  const struct vxd_config *config, struct vxd_err *err)
{
    enum vxd_log_level level;
    enum vxd_status status;

    VXD_TRY(vxd_config_check(config, err));
    VXD_TRY(vxd_log_level_parse(config->log_level, &level, err));
    /* The rpc transport made a receiver for each place in the queue at its start. */
    if (config->queue_limit > server->config.queue_limit) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "limits.queue",
                         "is %u; a running server can lower it, but more than the %u of "
                         "its start needs a restart",
                         config->queue_limit, server->config.queue_limit));
    }
    VXD_TRY(vxd_audit_open(config->audit_file, err));
    if (server->tls != NULL && config->tls_certificate[0] != '\0') {
        VXD_TRY(vxd_tls_reload(server->tls, config, err));
    }
    VXD_TRY(vxd_auth_reload(server->auth, err));
    apply_limits(server, config);
out:
    return status;
}
