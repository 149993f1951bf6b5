// SPDX-License-Identifier: Apache-2.0
#include "server/request/tickets.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"

/* So that a ticket is no token by its looks. */
#define PREFIX "ticket-"

enum {
    MOST_TICKETS = 256,
    RANDOM_BYTES = 16
};

struct ticket {
    char text[VXD_TICKET_BYTES];
    char token[VXD_TOKEN_BYTES];
    int64_t until_ns; /* 0 = none */
};

struct vxd_tickets {
    pthread_mutex_t lock; /* guards the rest */
    struct ticket tickets[MOST_TICKETS];
    size_t next;
};

enum vxd_status vxd_tickets_create(struct vxd_tickets **out, struct vxd_err *err)
{
    struct vxd_tickets *tickets = calloc(1, sizeof *tickets);

    if (tickets == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for tickets");
    }
    (void)pthread_mutex_init(&tickets->lock, NULL);
    *out = tickets;
    return VXD_OK;
}

void vxd_tickets_destroy(struct vxd_tickets *tickets)
{
    if (tickets == NULL) {
        return;
    }
    (void)pthread_mutex_destroy(&tickets->lock);
    memset(tickets, 0, sizeof *tickets);
    free(tickets);
}

enum vxd_status vxd_tickets_issue(struct vxd_tickets *tickets, const char *token,
                                  char out[VXD_TICKET_BYTES], struct vxd_err *err)
{
    uint8_t random[RANDOM_BYTES];
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, random, sizeof random) : -1;
    struct ticket *ticket;

    if (fd >= 0) {
        (void)close(fd);
    }
    if (n != (ssize_t)sizeof random) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "cannot read /dev/urandom: %s",
                        strerror(errno));
    }
    (void)snprintf(out, VXD_TICKET_BYTES, PREFIX);
    for (size_t i = 0; i < RANDOM_BYTES; i++) {
        (void)snprintf(out + sizeof PREFIX - 1 + 2 * i, 3, "%02x", random[i]);
    }
    (void)pthread_mutex_lock(&tickets->lock);
    ticket = &tickets->tickets[tickets->next++ % MOST_TICKETS];
    memcpy(ticket->text, out, sizeof ticket->text);
    (void)snprintf(ticket->token, sizeof ticket->token, "%s", token);
    ticket->until_ns = vxd_clock_ns() + VXD_TICKET_S * INT64_C(1000000000);
    (void)pthread_mutex_unlock(&tickets->lock);
    return VXD_OK;
}

/* In the same time for any wrong text. */
static bool is_equal(const char *a, const char *b)
{
    unsigned char differs = 0;

    for (size_t i = 0; i < VXD_TICKET_BYTES; i++) {
        differs |= (unsigned char)((unsigned char)a[i] ^ (unsigned char)b[i]);
    }
    return differs == 0;
}

bool vxd_tickets_find(struct vxd_tickets *tickets, const char *text,
                      char token[VXD_TOKEN_BYTES])
{
    char padded[VXD_TICKET_BYTES] = "";
    int64_t now_ns = vxd_clock_ns();
    bool is_found = false;

    if (strncmp(text, PREFIX, sizeof PREFIX - 1) != 0 ||
        strlen(text) != sizeof PREFIX - 1 + (size_t)2 * RANDOM_BYTES) {
        return false;
    }
    (void)snprintf(padded, sizeof padded, "%s", text);
    (void)pthread_mutex_lock(&tickets->lock);
    for (size_t i = 0; i < MOST_TICKETS; i++) {
        const struct ticket *ticket = &tickets->tickets[i];

        if (is_equal(ticket->text, padded) && ticket->until_ns > now_ns) {
            memcpy(token, ticket->token, sizeof ticket->token);
            is_found = true;
        }
    }
    (void)pthread_mutex_unlock(&tickets->lock);
    return is_found;
}
