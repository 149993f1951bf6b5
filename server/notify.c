// SPDX-License-Identifier: Apache-2.0
#include "server/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/observe/log/log.h"

void vxd_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n_bytes = path != NULL ? strlen(path) : 0;
    int fd;

    if (n_bytes == 0) {
        return;
    }
    if (n_bytes >= sizeof address.sun_path) {
        vxd_log(VXD_LOG_WARNING, "NOTIFY_SOCKET is too long", "path", path);
        return;
    }
    memcpy(address.sun_path, path, n_bytes);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; /* Linux's abstract names */
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n_bytes)) < 0) {
        vxd_log(VXD_LOG_WARNING, "telling the supervisor failed", "error",
                strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Reads a number that the supervisor set; 0 where there is none. */
static uint64_t read_number(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10)
                                                            : 0;
}

/* Whether a variable means this process; one that names none means any. */
static bool is_for_us(const char *name)
{
    uint64_t pid = read_number(name);

    return pid == 0 || pid == (uint64_t)getpid();
}

int vxd_notify_watchdog_ms(void)
{
    uint64_t half_ms = read_number("WATCHDOG_USEC") / 2000;

    if (half_ms == 0 || !is_for_us("WATCHDOG_PID")) {
        return -1;
    }
    return half_ms < INT_MAX ? (int)half_ms : INT_MAX;
}

/* Writes "HOST:PORT" or "[IPV6]:PORT" of a socket; fails where it does not listen on TCP. */
static enum vxd_status describe_listener(int fd, char *address, size_t n_bytes,
                                         struct vxd_err *err)
{
    struct sockaddr_storage bound = {0};
    socklen_t n_bound = sizeof bound;
    int listens = 0;
    socklen_t n_listens = sizeof listens;
    char host[64];
    char port[8];
    const char *form;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n_listens) != 0 ||
        listens == 0 || getsockname(fd, (struct sockaddr *)&bound, &n_bound) != 0 ||
        (bound.ss_family != AF_INET && bound.ss_family != AF_INET6) ||
        getnameinfo((struct sockaddr *)&bound, n_bound, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "LISTEN_FDS",
                        "descriptor %d is no TCP socket that listens; the socket unit "
                        "must have ListenStream=HOST:PORT",
                        fd);
    }
    form = bound.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s";
    (void)snprintf(address, n_bytes, form, host, port);
    return VXD_OK;
}

enum vxd_status vxd_notify_take_listener(int *out, char *address, size_t n_bytes,
                                         struct vxd_err *err)
{
    enum {
        FIRST_FD = 3, /* SD_LISTEN_FDS_START */
        MOST_FDS = 64
    };
    uint64_t n = is_for_us("LISTEN_PID") ? read_number("LISTEN_FDS") : 0;
    int n_fds = n < MOST_FDS ? (int)n : MOST_FDS;
    enum vxd_status status;

    *out = -1;
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    if (n_fds == 0) {
        return VXD_OK;
    }
    for (int fd = FIRST_FD + 1; fd < FIRST_FD + n_fds; fd++) {
        (void)close(fd);
    }
    VXD_TRY(describe_listener(FIRST_FD, address, n_bytes, err));
    if (fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(FIRST_FD, F_SETFL, O_NONBLOCK) != 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "LISTEN_FDS", "descriptor %d: %s",
                        FIRST_FD, strerror(errno));
    }
    *out = FIRST_FD;
out:
    return status;
}
