// SPDX-License-Identifier: Apache-2.0
#include "server/access/login_guard.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_NS INT64_C(60000000000)

enum {
    N_ADDRESSES = 1024,
    N_WAYS = 4, /* places that an address may have */
    N_KNOWN =
        64, /* half a KiB of a place, half a MiB of all: a fleet behind one router */
    ADDRESS_BYTES = 64
};

struct place {
    char address[ADDRESS_BYTES]; /* "": free */
    int64_t used_ns;
    int64_t
        owed_ns; /* until then its failures are paid for: each costs a share of a minute */
    uint64_t known[N_KNOWN]; /* the tokens that it had success with, the last one first */
};

struct vxd_login_guard {
    uint32_t per_minute;
    pthread_mutex_t mutex;
    struct place places[N_ADDRESSES];
};

enum vxd_status vxd_login_guard_create(uint32_t per_minute, struct vxd_login_guard **out,
                                       struct vxd_err *err)
{
    struct vxd_login_guard *guard = calloc(1, sizeof *guard);

    if (guard == NULL || pthread_mutex_init(&guard->mutex, NULL) != 0) {
        free(guard);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the logins");
    }
    guard->per_minute = per_minute;
    *out = guard;
    return VXD_OK;
}

void vxd_login_guard_destroy(struct vxd_login_guard *guard)
{
    if (guard != NULL) {
        (void)pthread_mutex_destroy(&guard->mutex);
        free(guard);
    }
}

/* The host of a peer, without the transport's name and the port; of IPv6 the network, unless it
 * is an IPv4 host on a socket for both. */
static void find_address(const char *peer, char out[ADDRESS_BYTES])
{
    const char *host = strchr(peer, ' ');
    const char *port;
    struct in6_addr network;
    char text[ADDRESS_BYTES];
    bool is_ipv6;
    int n;

    host = host != NULL ? host + 1 : peer;
    port = strrchr(host, ':');
    n = port != NULL ? (int)(port - host) : (int)strlen(host);
    if (n >= 2 && host[0] == '[' && host[n - 1] == ']') {
        host++;
        n -= 2;
    }
    (void)snprintf(text, sizeof text, "%.*s", n, host);
    is_ipv6 = inet_pton(AF_INET6, text, &network) == 1;
    if (is_ipv6 && IN6_IS_ADDR_V4MAPPED(&network)) {
        (void)inet_ntop(AF_INET, network.s6_addr + 12, text, sizeof text);
    } else if (is_ipv6) {
        memset(network.s6_addr + 8, 0, 8);
        (void)inet_ntop(AF_INET6, &network, text, sizeof text);
    }
    memcpy(out, text, ADDRESS_BYTES);
}

/* Its place, perhaps that of whoever was silent for longest among those that could be there. */
static struct place *find_place(struct vxd_login_guard *guard, const char *address,
                                int64_t now_ns)
{
    struct place *place = NULL;
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const char *s = address; *s != '\0'; s++) {
        hash = (hash ^ (unsigned char)*s) * 16777619u;
    }
    for (uint32_t i = 0; i < N_WAYS; i++) {
        struct place *at = &guard->places[(hash + i) % N_ADDRESSES];

        if (strcmp(at->address, address) == 0) {
            place = at;
            break;
        }
        place = place == NULL || at->used_ns < place->used_ns ? at : place;
    }
    if (strcmp(place->address, address) != 0) {
        *place = (struct place){.owed_ns = now_ns};
        memcpy(place->address, address, ADDRESS_BYTES);
    }
    place->used_ns = now_ns;
    return place;
}

/* Where the token is, or N_KNOWN. */
static size_t find_known(const struct place *place, uint64_t token)
{
    size_t at = 0;

    while (at < N_KNOWN && place->known[at] != token) {
        at++;
    }
    return at;
}

/* Moves a token that is there to the front, or adds it in place of the last one. */
static void set_known(struct place *place, size_t at, uint64_t token)
{
    size_t n_before = at < N_KNOWN ? at : N_KNOWN - 1;

    memmove(place->known + 1, place->known, n_before * sizeof place->known[0]);
    place->known[0] = token;
}

enum vxd_status vxd_login_guard_judge(struct vxd_login_guard *guard, const char *peer,
                                      const uint8_t *token, bool is_good, int64_t now_ns,
                                      struct vxd_err *err)
{
    int64_t share_ns = guard->per_minute > 0 ? MINUTE_NS / guard->per_minute : 0;
    char address[ADDRESS_BYTES];
    struct place *place;
    size_t known_at;
    uint64_t key;
    int64_t wait_ns;
    bool is_barred;
    enum vxd_status status = VXD_OK;

    memcpy(&key, token, sizeof key);
    find_address(peer, address);
    (void)pthread_mutex_lock(&guard->mutex);
    place = find_place(guard, address, now_ns);
    place->owed_ns = place->owed_ns > now_ns ? place->owed_ns : now_ns;
    /* Failures of a minute may come at once. */
    wait_ns = place->owed_ns + share_ns - MINUTE_NS - now_ns;
    known_at = find_known(place, key);
    is_barred = guard->per_minute > 0 && wait_ns > 0;
    if (is_good && (known_at < N_KNOWN || !is_barred)) {
        set_known(place, known_at, key);
    } else if (is_barred) {
        status =
            vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                     "too many failed logins from %s: limits.failed_logins is %u a "
                     "minute; try again in %lld s",
                     address, guard->per_minute, (long long)(wait_ns / 1000000000 + 1));
    } else {
        place->owed_ns += share_ns;
        status = vxd_fail(err, VXD_UNAUTHENTICATED, NULL, "the token is unknown");
    }
    (void)pthread_mutex_unlock(&guard->mutex);
    return status;
}
