// SPDX-License-Identifier: Apache-2.0
/* voxeld: options, configuration, lock, engine, transports, then events until the end. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gpu/core/core.h"
#include "proto/base/clock.h"
#include "server/config_tool.h"
#include "server/data_tools.h"
#include "server/tool_report.h"
#include "server/durable/data_dir/data_dir.h"
#include "server/method_table.h"
#include "server/observe/log/log.h"
#include "server/network_tools.h"
#include "server/registry/networks/networks.h"
#include "server/idle.h"
#include "server/notify.h"
#include "server/config/config.h"
#include "server/registry/registry.h"
#include "server/schedule/schedule.h"
#include "server/server.h"
#include "server/service/watch/watch.h"
#include "server/signals.h"
#include "server/transport/http/http.h"
#include "server/transport/nng/nng.h"
#include "server/warm_up.h"

enum {
    EXIT_USAGE = 2,
    EXIT_LOST = 70,
    /* How long ending may take beyond drain.timeout_ms before SIGALRM cuts it short. */
    STOP_SPARE_S = 15,
    EXTEND_MS = 5000, /* between two messages to the supervisor as the data come back */
    TICK_MS = 5000,   /* between two looks at what is due while nothing happens */
    SAVE_S = 60,      /* for the snapshots of a stop */
    ENOUGH_DESCRIPTORS = 65536
};
#define EXTEND_USEC "30000000"
#define SAVE_USEC "60000000"

struct daemon {
    struct vxd_options options;
    struct vxd_config config;
    struct vxd_server server;
    struct vxd_signals *signals;
    struct vxd_rpc *rpc;
    struct vxd_http *http;
    int passed_fd; /* HTTP's socket where systemd listens on it, -1 = none, or HTTP has it */
    bool is_passed;
    struct vxd_http *foxglove;
    struct vxd_data_dir data_dir;
};

static int fail(const char *what, const struct vxd_err *err)
{
    vxd_log(VXD_LOG_ERROR, what, "error", err->message, "field",
            err->field[0] != '\0' ? err->field : "-");
    return EXIT_FAILURE;
}

/* A directory that is damaged, with the command that mends it; or a device that was lost. */
static int fail_data(const char *what, const struct daemon *d, const struct vxd_err *err)
{
    char command[VXD_DATA_DIR_BYTES + 32];

    if (vxd_context_is_lost(d->server.context)) {
        (void)fail(what, err);
        return EXIT_LOST;
    }
    if (err->code != VXD_DATA_LOSS) {
        return fail(what, err);
    }
    (void)snprintf(command, sizeof command, "voxeld --repair-data %s", d->data_dir.path);
    vxd_log(VXD_LOG_ERROR, what, "error", err->message, "repair", command);
    return EXIT_FAILURE;
}

/* The data directory is opened on a thread of its own. */
struct opening {
    struct daemon *d;
    enum vxd_status status;
    struct vxd_err err;
};

static void *open_data(void *argument)
{
    struct opening *opening = argument;
    struct daemon *d = opening->d;
    const char event = VXD_EVENT_DATA;

    opening->status = vxd_registry_open_journal(d->server.registry, d->server.once,
                                                &d->data_dir, &opening->err);
    while (write(vxd_signals_fd(d->signals), &event, 1) < 0 && errno == EINTR) {
    }
    return NULL;
}

static enum vxd_status start_http(struct daemon *d, struct vxd_err *err)
{
    int fd = d->passed_fd;

    if (d->http != NULL || d->config.http[0] == '\0') {
        return VXD_OK;
    }
    d->passed_fd = -1;
    return vxd_http_start(&d->server, fd, &d->http, err);
}

/* Waits until the data are open. A start may take long: the supervisor learns that it goes
 * on. On a socket that was passed, connections wait meanwhile; but health is answered, and
 * everybody else refused, after the first of these intervals. Whoever wants the daemon to
 * end meanwhile need not wait, since the disk is as it should be after a kill at any
 * moment. True when a reload was asked for. */
static bool wait_for_data(struct daemon *d)
{
    bool is_reload_due = false;
    struct vxd_err err = {0};

    for (;;) {
        vxd_notify("EXTEND_TIMEOUT_USEC=" EXTEND_USEC
                   "\nSTATUS=bringing back scenes and maps");
        switch (vxd_signals_wait(d->signals, EXTEND_MS)) {
        case VXD_EVENT_DATA:
            return is_reload_due;
        case VXD_EVENT_STOP:
            vxd_log(VXD_LOG_INFO, "stopped before the data were back");
            vxd_notify("STOPPING=1");
            _exit(EXIT_SUCCESS);
        case VXD_EVENT_LOST:
            vxd_log(VXD_LOG_ERROR,
                    "the engine's device was lost before the data were back");
            vxd_notify("STOPPING=1");
            _exit(EXIT_LOST);
        case VXD_EVENT_RELOAD:
            is_reload_due = true;
            break;
        default:
            if (start_http(d, &err) != VXD_OK) {
                (void)fail("HTTP is not there yet", &err);
            }
            break;
        }
    }
}

static enum vxd_status bring_back(struct daemon *d, bool *is_reload_due,
                                  struct vxd_err *err)
{
    struct opening opening = {.d = d, .status = VXD_OK};
    pthread_t thread;

    if (d->config.data_dir[0] == '\0') {
        return VXD_OK;
    }
    if (pthread_create(&thread, NULL, open_data, &opening) != 0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no thread for the data");
    }
    *is_reload_due = wait_for_data(d);
    (void)pthread_join(thread, NULL);
    vxd_server_set_state(&d->server, VXD_STATE_STARTING);
    if (opening.status != VXD_OK) {
        *err = opening.err;
    }
    return opening.status;
}

static void log_ready(const struct daemon *d)
{
    char rpc[VXD_CONFIG_MAX_LISTEN * VXD_PATH_BYTES];
    struct vxd_context_info info;
    char backend[32];
    size_t n = 0;

    rpc[0] = '\0';
    for (size_t i = 0; i < d->config.n_rpc; i++) {
        n += (size_t)snprintf(rpc + n, sizeof rpc - n, "%s%s", i > 0 ? "," : "",
                              d->server.rpc_bound[i]);
    }
    vxd_context_get_info(d->server.context, &info);
    vxd_server_backend_name(&d->server, backend, sizeof backend);
    vxd_log(VXD_LOG_INFO, "ready", "http", d->server.http_bound, "foxglove",
            d->server.foxglove_bound, "rpc", rpc, "backend", backend, "device",
            info.name);
}

/* Says at the start what lets more people in than they may have meant who wrote the configuration. */
static void warn_of_reach(const struct vxd_config *config)
{
    bool is_open = config->tokens_file[0] == '\0';
    bool is_unix = strncmp(config->http, "unix:", 5) == 0;
    /* Whoever must show a certificate is not every user. */
    bool is_certified = vxd_config_http_is_tls(config->http) &&
                        config->tls_client_ca[0] != '\0' && config->tls_client_required;
    char mode[8];

    (void)snprintf(mode, sizeof mode, "0%o", (unsigned)config->ipc_mode);
    if (is_open && config->http[0] != '\0' && !is_unix && !is_certified &&
        !config->http_require_token) {
        vxd_log(VXD_LOG_WARNING,
                "every user of this machine may do everything over HTTP: set "
                "auth.tokens_file, http.require_token, or listen.http to unix:/PATH",
                "listen.http", config->http);
    }
    if ((config->ipc_mode & 2) != 0 && (config->n_rpc > 0 || is_unix)) {
        vxd_log(VXD_LOG_WARNING,
                is_open ? "every user of this machine may do everything over ipc: "
                          "listen.ipc_mode lets them connect, and there is no "
                          "auth.tokens_file"
                        : "every user of this machine may connect over ipc",
                "listen.ipc_mode", mode);
    }
}

static void reload(struct daemon *d)
{
    struct vxd_config *config = malloc(sizeof *config);
    struct vxd_err err = {0};
    enum vxd_status status;

    vxd_notify("RELOADING=1");
    if (config == NULL) {
        (void)vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
        (void)fail("reload failed, nothing changed", &err);
    } else {
        status = vxd_options_load(&d->options, config, &err);
        if (status == VXD_OK) {
            status = vxd_server_reload(&d->server, config, &err);
        }
        if (status == VXD_OK) {
            vxd_log(VXD_LOG_INFO, "reloaded");
        } else {
            (void)fail("reload failed, nothing changed", &err);
        }
    }
    free(config);
    vxd_notify("READY=1");
}

/* Serves until the daemon should end; returns true when the engine is lost. Looking after the idle
 * daemon takes the scheduler's lock, so the watchdog learns of one that is never released. */
static bool serve(struct daemon *d)
{
    int watchdog_ms = vxd_notify_watchdog_ms();
    int tick_ms = watchdog_ms > 0 && watchdog_ms < TICK_MS ? watchdog_ms : TICK_MS;
    struct vxd_idle idle = {0};

    for (;;) {
        int event = vxd_signals_wait(d->signals, tick_ms);

        vxd_idle_tick(&d->server, &idle);
        if (watchdog_ms > 0) {
            vxd_notify("WATCHDOG=1");
        }
        switch (event) {
        case VXD_EVENT_RELOAD:
            reload(d);
            break;
        case VXD_EVENT_LOST:
            return true;
        case VXD_EVENT_STOP:
            return false;
        default:
            break;
        }
    }
}

/* Waits for the grace period, which only the loss of the engine cuts short; it is too
 * late to reload. */
static void wait_grace(struct daemon *d)
{
    int64_t end = vxd_clock_ns() + d->config.drain_grace_ms * INT64_C(1000000);
    int64_t now;

    while ((now = vxd_clock_ns()) < end) {
        int left_ms = (int)((end - now) / 1000000) + 1;

        if (vxd_signals_wait(d->signals, left_ms) == VXD_EVENT_LOST) {
            return;
        }
    }
}

/* HTTP's socket was passed: new connections wait there for the next daemon, and each answer ends its
 * connection. Waits until none is left, at most a second, since one may stand idle. */
static void hand_over(struct daemon *d)
{
    int n_empty = 0;

    vxd_http_refuse_new(d->http);
    for (int i = 0; i < 50 && n_empty < 3; i++) {
        /* A connection is counted a moment after it was accepted, so one look is not enough. */
        if (vxd_signals_wait(d->signals, 20) == VXD_EVENT_LOST) {
            return;
        }
        n_empty = vxd_http_count_connections(d->http) == 0 ? n_empty + 1 : 0;
    }
}

/* Ends without losing a reply. First the daemon reports that it is not ready, so that
 * load balancers turn away, or hands its socket over; then it refuses new work while old
 * work ends; then the transports close. */
static void drain(struct daemon *d, bool lost)
{
    struct vxd_server *server = &d->server;

    vxd_log(VXD_LOG_INFO, "draining");
    vxd_notify("STOPPING=1");
    (void)alarm((d->config.drain_grace_ms + d->config.drain_timeout_ms) / 1000 +
                STOP_SPARE_S);
    if (!lost) {
        vxd_server_set_state(server, VXD_STATE_DRAINING);
        if (d->is_passed) {
            hand_over(d);
        } else {
            wait_grace(d);
        }
    }
    vxd_server_set_state(server, VXD_STATE_REFUSING);
    if (d->rpc != NULL) {
        vxd_rpc_refuse_new(d->rpc);
    }
    if (d->http != NULL) {
        vxd_http_refuse_new(d->http);
    }
    if (d->foxglove != NULL) {
        vxd_http_refuse_new(d->foxglove);
    }
    vxd_watch_refuse(server->watch);
    if (!vxd_scheduler_drain(server->scheduler, d->config.drain_timeout_ms)) {
        vxd_log(VXD_LOG_WARNING,
                "drain.timeout_ms is over, unfinished requests were refused");
    }
}

static void close_daemon(struct daemon *d)
{
    if (d->rpc != NULL) {
        vxd_rpc_stop(d->rpc);
    }
    if (d->http != NULL) {
        vxd_http_stop(d->http);
    }
    if (d->foxglove != NULL) {
        vxd_http_stop(d->foxglove);
    }
    if (d->config.data_dir[0] != '\0') {
        vxd_notify("EXTEND_TIMEOUT_USEC=" SAVE_USEC);
        (void)alarm(SAVE_S);
        vxd_registry_save_grown(d->server.registry);
    }
    vxd_server_close(&d->server);
    vxd_signals_stop(d->signals);
    vxd_data_dir_close(&d->data_dir);
}

/* The configured connections of all kinds are more than the descriptors that a shell gives. */
static void allow_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < ENOUGH_DESCRIPTORS) {
        limit.rlim_cur = limit.rlim_max < ENOUGH_DESCRIPTORS ? limit.rlim_max
                                                             : (rlim_t)ENOUGH_DESCRIPTORS;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int run(struct daemon *d)
{
    struct vxd_err err = {0};
    enum vxd_status status;
    bool is_reload_due = false;
    bool lost;

    allow_descriptors();
    if (vxd_signals_start(&d->signals, &err) != VXD_OK) {
        return fail("cannot start", &err);
    }
    if (d->config.data_dir[0] != '\0' &&
        vxd_data_dir_open(NULL, d->config.data_dir, &d->data_dir, &err) != VXD_OK) {
        return fail("cannot take the data directory", &err);
    }
    if (vxd_server_open(&d->server, &d->config, vxd_method_table(), &err) != VXD_OK) {
        return fail("cannot start", &err);
    }
    /* A memory budget that is too small for warming up may still serve small requests. */
    status = vxd_warm_up(d->server.context, &err);
    if (status == VXD_RESOURCE_EXHAUSTED) {
        vxd_log(VXD_LOG_WARNING, "no memory to warm up", "error", err.message);
    } else if (status != VXD_OK) {
        return fail("cannot start: the engine does not work", &err);
    }
    if (vxd_networks_load_configured(d->server.networks, &err) != VXD_OK) {
        return fail("cannot start", &err);
    }
    if (d->config.data_dir[0] != '\0') {
        vxd_networks_bring_back(d->server.networks, &d->data_dir);
    }
    d->server.event_fd = vxd_signals_fd(d->signals);
    /* Health is answered while the data come back, and nothing else: from the first request on,
     * since one that was admitted before would run in the midst of it. */
    if (d->config.data_dir[0] != '\0') {
        vxd_server_set_state(&d->server, VXD_STATE_RECOVERING);
    }
    if ((!d->is_passed && start_http(d, &err) != VXD_OK) ||
        (d->config.foxglove[0] != '\0' &&
         vxd_http_start_foxglove(&d->server, &d->foxglove, &err) != VXD_OK)) {
        return fail("cannot listen", &err);
    }
    if (bring_back(d, &is_reload_due, &err) != VXD_OK) {
        return fail_data("cannot bring back the scenes", d, &err);
    }
    if (start_http(d, &err) != VXD_OK) {
        return fail("cannot listen", &err);
    }
    if (d->config.n_rpc > 0 && vxd_rpc_start(&d->server, &d->rpc, &err) != VXD_OK) {
        /* Requests that one transport accepted before the other failed are answered
         * first. */
        vxd_server_set_state(&d->server, VXD_STATE_REFUSING);
        (void)vxd_scheduler_drain(d->server.scheduler, d->config.drain_timeout_ms);
        return fail("cannot listen", &err);
    }
    atomic_store(&d->server.ready_ns, vxd_clock_ns());
    vxd_server_set_state(&d->server, VXD_STATE_SERVING);
    warn_of_reach(&d->config);
    log_ready(d);
    vxd_notify("READY=1");
    if (is_reload_due) {
        reload(d);
    }
    lost = serve(d);
    drain(d, lost);
    lost = atomic_load(&d->server.state) == VXD_STATE_LOST;
    return lost ? EXIT_LOST : EXIT_SUCCESS;
}

/* Reads the configuration. A socket that systemd passed says itself where HTTP listens, and must keep
 * the rules of listen.http, too; it speaks TLS where listen.http does. */
static enum vxd_status load_config(struct daemon *d, struct vxd_err *err)
{
    char address[VXD_PATH_BYTES / 2] = "";
    enum vxd_status status;

    VXD_TRY(vxd_notify_take_listener(&d->passed_fd, address, sizeof address, err));
    VXD_TRY(vxd_options_load(&d->options, &d->config, err));
    d->is_passed = d->passed_fd >= 0;
    if (d->is_passed) {
        bool is_tls = vxd_config_http_is_tls(d->config.http);

        (void)snprintf(d->config.http, sizeof d->config.http, "%s%s",
                       is_tls ? VXD_CONFIG_HTTPS : "", address);
        VXD_TRY(vxd_config_check(&d->config, err));
    }
out:
    return status;
}

int main(int argc, char **argv)
{
    struct daemon *d = calloc(1, sizeof *d);
    struct vxd_err err = {0};
    int result;

    if (d == NULL) {
        (void)fputs("voxeld: no memory\n", stderr);
        return EXIT_FAILURE;
    }
    d->data_dir.lock = -1;
    d->passed_fd = -1;
    if (vxd_options_parse(argc, argv, &d->options, &err) != VXD_OK) {
        result = vxd_tool_fail(d->options.json, "voxeld", &err, NULL);
    } else if (d->options.help) {
        (void)fputs(vxd_options_help(), stdout);
        result = EXIT_SUCCESS;
    } else if (d->options.version) {
        (void)puts("voxeld " VXD_VERSION);
        result = EXIT_SUCCESS;
    } else if (d->options.check_config != NULL) {
        result = vxd_config_tool_check(d->options.check_config, d->options.json);
    } else if (d->options.check_network != NULL) {
        result = vxd_network_tool_check(d->options.check_network, d->options.json);
    } else if (d->options.check_data != NULL) {
        result = vxd_data_tool_check(d->options.check_data, d->options.json);
    } else if (d->options.repair_data != NULL) {
        result = vxd_data_tool_repair(d->options.repair_data, d->options.json);
    } else if (d->options.restore_data != NULL) {
        result = vxd_data_tool_restore(d->options.restore_data, d->options.archive,
                                       d->options.until, d->options.to, d->options.json);
    } else if (d->options.init_network != NULL) {
        result = vxd_network_tool_init(d->options.init_network, d->options.seed,
                                       d->options.replace, d->options.json);
    } else if (load_config(d, &err) != VXD_OK) {
        (void)fail("faulty configuration", &err);
        result = EXIT_USAGE;
    } else {
        result = run(d);
        close_daemon(d);
        vxd_log(VXD_LOG_INFO, "stopped");
    }
    free(d);
    return result;
}
