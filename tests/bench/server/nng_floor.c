// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/server/nng_floor.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/util/platform.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WARM_UP = 10,
    DIAL_TRIES = 200,
    DIAL_PAUSE_MS = 10
};

struct nng_floor {
    pid_t child;
    char directory[64];
    char url[96];
};

/* The other process: the first 8 bytes of a request say how long its reply is. */
static void answer(const char *url)
{
    nng_socket socket;
    nng_msg *message;

    if (nng_rep0_open(&socket) != 0 || nng_listen(socket, url, NULL, 0) != 0) {
        return;
    }
    while (nng_recvmsg(socket, &message, 0) == 0) {
        uint64_t n_down = 0;

        if (nng_msg_len(message) >= sizeof n_down) {
            memcpy(&n_down, nng_msg_body(message), sizeof n_down);
        }
        nng_msg_free(message);
        if (nng_msg_alloc(&message, n_down) != 0) {
            return;
        }
        memset(nng_msg_body(message), 1, n_down);
        if (nng_sendmsg(socket, message, 0) != 0) {
            nng_msg_free(message);
            return;
        }
    }
}

struct nng_floor *nng_floor_start(void)
{
    struct nng_floor *floor = calloc(1, sizeof *floor);

    if (floor == NULL) {
        return NULL;
    }
    (void)snprintf(floor->directory, sizeof floor->directory, "/tmp/nng_floor.XXXXXX");
    if (mkdtemp(floor->directory) == NULL) {
        free(floor);
        return NULL;
    }
    (void)snprintf(floor->url, sizeof floor->url, "ipc://%s/s", floor->directory);
    floor->child = fork();
    if (floor->child == 0) {
        answer(floor->url);
        _exit(1);
    }
    if (floor->child < 0) {
        nng_floor_stop(floor);
        return NULL;
    }
    return floor;
}

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int round_trip(nng_socket socket, size_t n_up, uint64_t n_down)
{
    nng_msg *message;

    if (nng_msg_alloc(&message, n_up) != 0) {
        return -1;
    }
    memset(nng_msg_body(message), 1, n_up);
    memcpy(nng_msg_body(message), &n_down, sizeof n_down);
    if (nng_sendmsg(socket, message, 0) != 0) {
        nng_msg_free(message);
        return -1;
    }
    if (nng_recvmsg(socket, &message, 0) != 0) {
        return -1;
    }
    nng_msg_free(message);
    return 0;
}

int nng_floor_measure(struct nng_floor *floor, size_t n_up, size_t n_down, long n_repeat,
                      double *ms)
{
    nng_socket socket;
    int result = -1;

    if (nng_req0_open(&socket) != 0) {
        return -1;
    }
    (void)nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    (void)nng_socket_set_ms(socket, NNG_OPT_RECVTIMEO, 10000);
    for (int i = 0; i < DIAL_TRIES && result != 0; i++) {
        result = nng_dial(socket, floor->url, NULL, 0);
        if (result != 0) {
            nng_msleep(DIAL_PAUSE_MS);
        }
    }
    for (long i = -WARM_UP; i < n_repeat && result == 0; i++) {
        double begin = now_ms();

        result = round_trip(socket, n_up, n_down);
        if (i >= 0) {
            ms[i] = now_ms() - begin;
        }
    }
    (void)nng_close(socket);
    return result == 0 ? 0 : -1;
}

void nng_floor_stop(struct nng_floor *floor)
{
    char path[80];

    if (floor == NULL) {
        return;
    }
    if (floor->child > 0) {
        (void)kill(floor->child, SIGKILL);
        (void)waitpid(floor->child, NULL, 0);
    }
    (void)snprintf(path, sizeof path, "%s/s", floor->directory);
    (void)unlink(path);
    (void)rmdir(floor->directory);
    free(floor);
}
