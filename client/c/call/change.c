// SPDX-License-Identifier: Apache-2.0
/* The sequence numbers of calls that change something, and repeating such calls. */
#include <string.h>
#include <time.h>

#include "client/c/call/client_internal.h"

enum {
    FIRST_WAIT_MS = 10,
    LONGEST_WAIT_MS = 500
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct voxeld_call vxd_client_number(struct voxeld_client *client,
                                     const struct voxeld_call *options)
{
    struct voxeld_call numbered = {0};
    /* The number is the time, so that a client that starts again goes on above the
     * numbers of the one that had its client_id before; it rises where the clock does
     * not. */
    int64_t now_us = clock_ns(CLOCK_REALTIME) / 1000;

    if (options != NULL) {
        numbered = *options;
    }
    (void)pthread_mutex_lock(&client->mutex);
    if (numbered.sequence == 0) {
        client->last_sequence++;
        if (now_us > 0 && (uint64_t)now_us > client->last_sequence) {
            client->last_sequence = (uint64_t)now_us;
        }
        numbered.sequence = client->last_sequence;
    } else if (numbered.sequence > client->last_sequence) {
        client->last_sequence = numbered.sequence; /* the caller's own number: later ones
                                                    * go on above it */
    }
    (void)pthread_mutex_unlock(&client->mutex);
    return numbered;
}

/* Whether the server has given the call up, which would not be in time when it began anew. */
static bool is_given_up(enum voxeld_status status, const struct voxeld_error *error)
{
    return status == VOXELD_DEADLINE_EXCEEDED &&
           strcmp(error->field, "header.timeout_ms") == 0;
}

/* How long to wait before the call is repeated; < 0: it must not be repeated. */
static int64_t wait_before(struct voxeld_retry *retry, enum voxeld_status status,
                           const struct voxeld_error *error)
{
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    int64_t wait_ns = 0;

    if ((status != VOXELD_DEADLINE_EXCEEDED && status != VOXELD_UNAVAILABLE) ||
        error->sequence == 0 || is_given_up(status, error)) {
        return -1;
    }
    if (retry->until_ns == 0) {
        retry->until_ns = now_ns + (int64_t)retry->total_ms * 1000000;
    }
    if (status == VOXELD_UNAVAILABLE) {
        retry->wait_ms = retry->wait_ms == 0 ? FIRST_WAIT_MS : retry->wait_ms * 2;
        retry->wait_ms =
            retry->wait_ms < LONGEST_WAIT_MS ? retry->wait_ms : LONGEST_WAIT_MS;
        wait_ns = (int64_t)retry->wait_ms * 1000000;
    }
    return now_ns + wait_ns < retry->until_ns ? wait_ns : -1;
}

bool voxeld_retry(struct voxeld_retry *retry, struct voxeld_call *call,
                  enum voxeld_status status, const struct voxeld_error *error)
{
    int64_t wait_ns = wait_before(retry, status, error);
    struct timespec wait;

    if (wait_ns < 0) {
        retry->until_ns = 0;
        retry->wait_ms = 0;
        call->sequence = 0;
        return false;
    }
    wait.tv_sec = (time_t)(wait_ns / 1000000000);
    wait.tv_nsec = (long)(wait_ns % 1000000000);
    (void)nanosleep(&wait, NULL); /* a signal may shorten it, which does no harm */
    call->sequence = error->sequence;
    return true;
}
