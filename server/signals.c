// SPDX-License-Identifier: Apache-2.0
#include "server/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/instance/instance.h"
#include "server/observe/log/log.h"

struct vxd_signals {
    int read_fd;
    int write_fd;
    sigset_t set;
    pthread_t thread;
};

static void send_event(int fd, enum vxd_event event)
{
    char byte = (char)event;

    while (write(fd, &byte, 1) < 0 && errno == EINTR) {
    }
}

/* SIGUSR2 is how vxd_signals_stop ends this thread. */
static void *run(void *argument)
{
    struct vxd_signals *signals = argument;
    bool stopping = false;

    for (;;) {
        int signal_number = 0;

        if (sigwait(&signals->set, &signal_number) != 0) {
            continue;
        }
        switch (signal_number) {
        case SIGUSR2:
            return NULL;
        case SIGHUP:
            send_event(signals->write_fd, VXD_EVENT_RELOAD);
            break;
        case SIGALRM:
            vxd_log(VXD_LOG_ERROR, "stopping took too long, exiting at once");
            _exit(EXIT_FAILURE);
        default:
            if (stopping) {
                vxd_log(VXD_LOG_WARNING, "second signal, exiting at once");
                _exit(EXIT_FAILURE);
            }
            stopping = true;
            send_event(signals->write_fd, VXD_EVENT_STOP);
        }
    }
}

enum vxd_status vxd_signals_start(struct vxd_signals **out, struct vxd_err *err)
{
    struct vxd_signals *signals = calloc(1, sizeof *signals);
    struct sigaction ignore;
    int fds[2];

    if (signals == NULL || pipe(fds) != 0) {
        free(signals);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no pipe for the signals");
    }
    for (int i = 0; i < 2; i++) {
        (void)fcntl(fds[i], F_SETFD, FD_CLOEXEC);
    }
    signals->read_fd = fds[0];
    signals->write_fd = fds[1];
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)sigaction(SIGXFSZ, &ignore,
                    NULL); /* a file's limit is an error as a full disk is */
    (void)sigemptyset(&signals->set);
    (void)sigaddset(&signals->set, SIGTERM);
    (void)sigaddset(&signals->set, SIGINT);
    (void)sigaddset(&signals->set, SIGHUP);
    (void)sigaddset(&signals->set, SIGALRM);
    (void)sigaddset(&signals->set, SIGUSR2);
    (void)pthread_sigmask(SIG_BLOCK, &signals->set, NULL);
    if (pthread_create(&signals->thread, NULL, run, signals) != 0) {
        (void)close(fds[0]);
        (void)close(fds[1]);
        free(signals);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no thread for the signals");
    }
    *out = signals;
    return VXD_OK;
}

void vxd_signals_stop(struct vxd_signals *signals)
{
    if (signals == NULL) {
        return;
    }
    (void)pthread_kill(signals->thread, SIGUSR2);
    (void)pthread_join(signals->thread, NULL);
    (void)close(signals->read_fd);
    (void)close(signals->write_fd);
    free(signals);
}

int vxd_signals_fd(const struct vxd_signals *signals)
{
    return signals->write_fd;
}

int vxd_signals_wait(struct vxd_signals *signals, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = signals->read_fd, .events = POLLIN};
    char byte = 0;

    for (;;) {
        int n = poll(&poll_fd, 1, timeout_ms);

        if (n == 0) {
            return 0;
        }
        if (n > 0 && read(signals->read_fd, &byte, 1) == 1) {
            return byte;
        }
        if (errno != EINTR) {
            return VXD_EVENT_STOP; /* the pipe is broken, and it is better to end than to hang */
        }
    }
}
