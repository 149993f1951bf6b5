// SPDX-License-Identifier: Apache-2.0
/* Connecting. There is one nng REQ socket whose dialer reconnects by itself; synchronous calls make
 * connections of their own while it stands (direct.h). The
 * callbacks of its pipes count the standing connections, so that a call knows at once
 * whether it can be sent. The resend time is infinite: nng would otherwise repeat a
 * slow request by itself, up to once a minute and at every reconnection. */
#include <errno.h>
#include <fcntl.h>
#include <nng/nng.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/c/call/client_internal.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libvoxeld hands out little-endian arrays as they are"
#endif

enum {
    DEFAULT_WAIT_MS = 1000,
    DEFAULT_IN_FLIGHT = 16,
    MAX_IN_FLIGHT = 1024,
    RECONNECT_MIN_MS = 20,
    RECONNECT_MAX_MS = 1000,
    CLOSE_WAIT_MS = 1000,
    MAX_URL_BYTES = 128 /* nng's NNG_MAXADDRLEN */
};

#define DEFAULT_REPLY_BYTES ((size_t)1 << 30)
#define MAX_SHARED_BYTES ((size_t)1 << 40)
/* nng tries again and does not say what failed. */
#define NO_TRUST                                                                         \
    "; or its certificate is not signed by those of tls_ca_file, not for this host or "  \
    "over, or it does not accept ours"
#define SYSTEM_URL "ipc:///run/voxeld/voxeld.sock"

static bool is_tls(const char *url)
{
    return strncmp(url, "tls+", 4) == 0;
}

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct voxeld_client *client = arg;

    (void)pipe;
    (void)pthread_mutex_lock(&client->mutex);
    if (event == NNG_PIPE_EV_ADD_POST) {
        client->n_connections++;
        client->connection_no++;
    } else if (client->n_connections > 0) {
        client->n_connections--;
        vxd_client_abort_sends(client);
    }
    (void)pthread_cond_broadcast(&client->changed);
    (void)pthread_mutex_unlock(&client->mutex);
}

/* The URL to use, malloc'd; NULL when memory runs out. */
static char *choose_url(const char *given)
{
    const char *url = given != NULL ? given : getenv("VOXELD_URL");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char candidate[MAX_URL_BYTES];
    int n;

    if (url != NULL && url[0] != '\0') {
        return strdup(url);
    }
    if (runtime != NULL && runtime[0] == '/') {
        n = snprintf(candidate, sizeof candidate, "ipc://%s/voxeld/voxeld.sock", runtime);
        if (n > 0 && (size_t)n < sizeof candidate &&
            access(candidate + strlen("ipc://"), F_OK) == 0) {
            return strdup(candidate);
        }
    }
    return strdup(SYSTEM_URL);
}

/* The given client_id, or one that no other client has; malloc'd, NULL when memory
 * runs out. */
static char *choose_client_id(const char *given)
{
    char random[24];

    if (given != NULL && given[0] != '\0') {
        return strdup(given);
    }
    (void)snprintf(random, sizeof random, "c-%08x%08x", (unsigned)nng_random(),
                   (unsigned)nng_random());
    return strdup(random);
}

static enum vxd_status copy_strings(struct voxeld_client *client,
                                    const struct voxeld_options *options,
                                    struct vxd_err *err)
{
    const char *token = options->token != NULL ? options->token : getenv("VOXELD_TOKEN");

    client->url = choose_url(options->url);
    client->token = strdup(token != NULL ? token : "");
    client->client_id = choose_client_id(options->client_id);
    if (client->url == NULL || client->token == NULL || client->client_id == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a client");
    }
    if (strlen(client->url) >= MAX_URL_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "url", "longer than %d bytes",
                        MAX_URL_BYTES - 1);
    }
    return VXD_OK;
}

static enum vxd_status copy_options(struct voxeld_client *client,
                                    const struct voxeld_options *options,
                                    struct vxd_err *err)
{
    if (options->wait_ms < VOXELD_NO_WAIT) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "wait_ms",
                        "%d; -1 (VOXELD_NO_WAIT), 0 or more", (int)options->wait_ms);
    }
    if (options->max_in_flight > MAX_IN_FLIGHT) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_in_flight", "%u; at most %d",
                        (unsigned)options->max_in_flight, MAX_IN_FLIGHT);
    }
    if (options->timeout_ms > INT32_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "timeout_ms", "%u; at most %d",
                        (unsigned)options->timeout_ms, INT32_MAX);
    }
    client->timeout_ms = options->timeout_ms;
    client->waiting = options->waiting;
    client->waiting_user = options->waiting_user;
    client->max_in_flight =
        options->max_in_flight > 0 ? options->max_in_flight : DEFAULT_IN_FLIGHT;
    if (options->shared_bytes > MAX_SHARED_BYTES &&
        options->shared_bytes != VOXELD_SHARES_NOTHING) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "shared_bytes", "%zu; at most %zu",
                        options->shared_bytes, MAX_SHARED_BYTES);
    }
    client->max_reply_bytes =
        options->max_reply_bytes > 0 ? options->max_reply_bytes : DEFAULT_REPLY_BYTES;
    return copy_strings(client, options, err);
}

/* Makes a pipe both of whose ends close on exec and never block. */
static enum vxd_status open_signal_pipe(struct voxeld_client *client, struct vxd_err *err)
{
    if (pipe(client->fds) != 0) {
        client->fds[0] = -1;
        client->fds[1] = -1;
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no pipe: %s",
                        strerror(errno));
    }
    for (int i = 0; i < 2; i++) {
        if (fcntl(client->fds[i], F_SETFD, FD_CLOEXEC) != 0 ||
            fcntl(client->fds[i], F_SETFL, O_NONBLOCK) != 0) {
            return vxd_fail(err, VXD_INTERNAL, NULL, "fcntl: %s", strerror(errno));
        }
    }
    return VXD_OK;
}

static enum vxd_status dial(struct voxeld_client *client,
                            const struct voxeld_options *options, struct vxd_err *err)
{
    nng_socket s = client->socket;
    nng_dialer dialer;
    int result;

    if ((result = nng_socket_set_ms(s, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE)) !=
            0 ||
        (result = nng_socket_set_size(s, NNG_OPT_RECVMAXSZ, client->max_reply_bytes)) !=
            0 ||
        (result = nng_socket_set_ms(s, NNG_OPT_RECONNMINT, RECONNECT_MIN_MS)) != 0 ||
        (result = nng_socket_set_ms(s, NNG_OPT_RECONNMAXT, RECONNECT_MAX_MS)) != 0 ||
        (result = nng_pipe_notify(s, NNG_PIPE_EV_ADD_POST, on_pipe, client)) != 0 ||
        (result = nng_pipe_notify(s, NNG_PIPE_EV_REM_POST, on_pipe, client)) != 0) {
        return vxd_client_nng_error(result, "setting the socket up", err);
    }
    if (strncmp(client->url, "http", 4) == 0) {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, "url",
            "%.100s is for HTTP clients (curl --cacert, say); this one speaks "
            "nng: ipc:///PATH, tcp://HOST:PORT or tls+tcp://HOST:PORT",
            client->url);
    }
    result = nng_dialer_create(&dialer, s, client->url);
    if (is_tls(client->url) && result == NNG_ENOTSUP) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "url", "%s", VXD_CLIENT_NO_TLS);
    }
    if (result == 0 && is_tls(client->url)) {
        enum vxd_status status = vxd_client_set_tls(dialer, client->url, options, err);

        if (status != VXD_OK) {
            return status;
        }
    }
    if (result == 0) {
        result = nng_dialer_start(dialer, NNG_FLAG_NONBLOCK);
    }
    if (result == NNG_EINVAL || result == NNG_EADDRINVAL || result == NNG_ENOTSUP) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "url",
                        "%.100s is no address of a daemon; right are ipc:///PATH, "
                        "tcp://HOST:PORT and tls+tcp://HOST:PORT",
                        client->url);
    }
    if (result != 0) {
        enum vxd_status status = vxd_client_nng_error(result, client->url, err);

        if (err != NULL) {
            (void)snprintf(err->field, sizeof err->field, "url");
        }
        return status;
    }
    return VXD_OK;
}

static enum vxd_status open_direct(struct voxeld_client *client, struct vxd_err *err)
{
    client->reply_memory = vxd_reply_memory_create();
    if (client->reply_memory == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for replies");
    }
    return vxd_direct_create(client->url, client->max_reply_bytes, &client->direct, err);
}

static struct timespec monotonic_after(int64_t wait_ms)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(wait_ms / 1000);
    at.tv_nsec += (long)(wait_ms % 1000) * 1000000L;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_nsec -= 1000000000L;
        at.tv_sec++;
    }
    return at;
}

static enum vxd_status await_connection(struct voxeld_client *client, int32_t wait_ms,
                                        struct vxd_err *err)
{
    static const char ipc[] = "ipc://";
    int64_t limit_ms = wait_ms > 0 ? wait_ms : DEFAULT_WAIT_MS;
    struct timespec until = monotonic_after(limit_ms);
    bool connected;
    int waited = 0;

    if (wait_ms == 0 && strncmp(client->url, ipc, sizeof ipc - 1) == 0 &&
        access(client->url + sizeof ipc - 1, F_OK) != 0) {
        return vxd_fail(err, VXD_UNAVAILABLE, "url",
                        "no socket at %s: %s; is voxeld running?",
                        client->url + sizeof ipc - 1, strerror(errno));
    }
    (void)pthread_mutex_lock(&client->mutex);
    while (client->n_connections == 0 && waited == 0) {
        waited = pthread_cond_timedwait(&client->changed, &client->mutex, &until);
    }
    connected = client->n_connections > 0;
    (void)pthread_mutex_unlock(&client->mutex);
    if (!connected) {
        return vxd_fail(err, VXD_UNAVAILABLE, "url",
                        "nobody answers at %s within %lld ms%s", client->url,
                        (long long)limit_ms, is_tls(client->url) ? NO_TRUST : "");
    }
    return VXD_OK;
}

/* Creates the members whose destruction needs to know that they exist. NULL, and *err,
 * when one of them cannot be had. */
static struct voxeld_client *client_create(struct vxd_err *err)
{
    struct voxeld_client *client = calloc(1, sizeof *client);
    pthread_condattr_t attributes;
    int result;

    /* The error of every step up to the socket. */
    (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                   "no memory, mutex or condition variable for a client");
    if (client == NULL) {
        return NULL;
    }
    client->fds[0] = -1;
    client->fds[1] = -1;
    client->done_end = &client->done;
    if (pthread_condattr_init(&attributes) != 0) {
        goto no_condition;
    }
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    result = pthread_cond_init(&client->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    if (result != 0) {
        goto no_condition;
    }
    if (pthread_mutex_init(&client->mutex, NULL) != 0) {
        goto no_mutex;
    }
    if (pthread_mutex_init(&client->shared.mutex, NULL) != 0) {
        goto no_shared_mutex;
    }
    result = nng_req0_open(&client->socket);
    if (result != 0) {
        (void)vxd_client_nng_error(result, "opening a socket", err);
        goto no_socket;
    }
    client->id_prefix = nng_random();
    return client;

no_socket:
    (void)pthread_mutex_destroy(&client->shared.mutex);
no_shared_mutex:
    (void)pthread_mutex_destroy(&client->mutex);
no_mutex:
    (void)pthread_cond_destroy(&client->changed);
no_condition:
    free(client);
    return NULL;
}

/* Frees the client, once the socket is closed and none of its pipes' callbacks runs
 * any more. */
static void client_free(struct voxeld_client *client)
{
    vxd_client_drop_shared(client, NULL, false);
    vxd_direct_destroy(client->direct);
    vxd_reply_memory_drop(client->reply_memory);
    (void)pthread_mutex_destroy(&client->shared.mutex);
    (void)pthread_mutex_destroy(&client->mutex);
    (void)pthread_cond_destroy(&client->changed);
    for (int i = 0; i < 2; i++) {
        if (client->fds[i] >= 0) {
            (void)close(client->fds[i]);
        }
    }
    free(client->url);
    free(client->token);
    free(client->client_id);
    free(client);
}

static void *close_socket(void *arg)
{
    struct voxeld_client *client = arg;
    bool abandoned;

    (void)nng_close(client->socket);
    (void)pthread_mutex_lock(&client->mutex);
    client->closed = true;
    abandoned = client->abandoned;
    (void)pthread_cond_broadcast(&client->changed);
    (void)pthread_mutex_unlock(&client->mutex);
    if (abandoned) {
        client_free(client);
    }
    return NULL;
}

/* nng 1.5.2 never returns from nng_close when a large message is half received at that
 * moment, such as the late reply to a call that was given up. So nng_close runs on a
 * thread of its own, which is abandoned after a while together with the client's
 * memory. */
static void client_destroy(struct voxeld_client *client)
{
    struct timespec until = monotonic_after(CLOSE_WAIT_MS);
    pthread_t closer;
    bool closed;
    int waited = 0;

    if (pthread_create(&closer, NULL, close_socket, client) != 0) {
        (void)nng_close(client->socket);
        client_free(client);
        return;
    }
    (void)pthread_mutex_lock(&client->mutex);
    while (!client->closed && waited == 0) {
        waited = pthread_cond_timedwait(&client->changed, &client->mutex, &until);
    }
    closed = client->closed;
    client->abandoned = !closed;
    (void)pthread_mutex_unlock(&client->mutex);
    if (closed) {
        (void)pthread_join(closer, NULL);
        client_free(client);
    } else {
        (void)pthread_detach(closer);
    }
}

enum voxeld_status voxeld_connect(const struct voxeld_options *options,
                                  struct voxeld_client **out, struct voxeld_error *error)
{
    static const struct voxeld_options defaults;
    struct vxd_err err = {0};
    struct voxeld_client *client = client_create(&err);
    enum vxd_status status;

    *out = NULL;
    options = options != NULL ? options : &defaults;
    if (client == NULL) {
        return vxd_client_error(&err, "", error);
    }
    VXD_TRY(copy_options(client, options, &err));
    vxd_client_set_shared(client, options->shared_bytes);
    VXD_TRY(open_signal_pipe(client, &err));
    VXD_TRY(open_direct(client, &err));
    VXD_TRY(dial(client, options, &err));
    if (options->wait_ms != VOXELD_NO_WAIT) {
        VXD_TRY(await_connection(client, options->wait_ms, &err));
        vxd_client_learn_limit(client, NULL);
    }
    *out = client;
    return VOXELD_OK;
out:
    client_destroy(client);
    return vxd_client_error(&err, "", error);
}

void voxeld_close(struct voxeld_client *client)
{
    if (client == NULL) {
        return;
    }
    /* From here on no callback can start a new call. */
    vxd_client_abort_calls(client);
    (void)voxeld_dispatch(client, 0);
    client_destroy(client);
}

bool voxeld_is_connected(struct voxeld_client *client)
{
    bool connected;

    (void)pthread_mutex_lock(&client->mutex);
    connected = client->n_connections > 0;
    (void)pthread_mutex_unlock(&client->mutex);
    return connected;
}

bool voxeld_last_timings(struct voxeld_client *client, struct voxeld_timings *out)
{
    bool has_timings;

    (void)pthread_mutex_lock(&client->mutex);
    *out = client->timings;
    has_timings = client->has_timings;
    (void)pthread_mutex_unlock(&client->mutex);
    return has_timings;
}

int voxeld_fd(struct voxeld_client *client)
{
    return client->fds[0];
}
