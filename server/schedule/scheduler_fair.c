// SPDX-License-Identifier: Apache-2.0
/* Who comes next, and who waits at all, so that nobody's work depends on how much another asks for.
 *
 * Turns: start-time fair queueing over two levels. A sender (a token, a user, or without either an
 * address) has a clock that moves on by the time lanes have worked for it, divided by its weight;
 * the one that is behind comes first. Of one sender's clients, whose names it chooses, the
 * same. Who was away gets no credit for it: its clock begins where that of the one that was served
 * last stood.
 *
 * Places: where the queue is full, whoever has at least two fewer places than another gets one of
 * the other's: the one that came last. So it goes between senders, by weight, then between
 * clients of one sender, then between reads and writes of one client. */
#include <string.h>

#include "server/schedule/scheduler_internal.h"

/* A stage costs its milliseconds and one more, in such parts of a millisecond: a weight's multiple. */
#define COST_SCALE UINT64_C(100)
#define MS_NS INT64_C(1000000)
#define FNV_BASIS 2166136261u

static uint32_t hash_more(uint32_t hash, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 16777619u; /* FNV-1a */
    }
    return hash;
}

/* A peer without its port: another connection is the same sender. */
static size_t host_bytes(const char *peer)
{
    const char *colon = strrchr(peer, ':');

    return colon != NULL ? (size_t)(colon - peer) : strlen(peer);
}

static size_t sender_slot(const struct vxd_request *request)
{
    uint32_t hash;

    if (request->principal.is_known) {
        return vxd_account_index(request->principal.account);
    }
    hash = hash_more(FNV_BASIS, request->peer, host_bytes(request->peer));
    return VXD_MAX_ACCOUNTS + (hash ^ (hash >> 16)) % VXD_FAIR_ADDRESSES;
}

void vxd_fair_name(struct vxd_request *request)
{
    const char *client = vxd_request_client(request);
    size_t sender = sender_slot(request);
    uint32_t hash =
        hash_more(FNV_BASIS ^ (uint32_t)sender * 2654435761u, client, strlen(client));

    request->fair_sender = (uint16_t)sender;
    request->fair_client = (uint16_t)((hash ^ (hash >> 16)) % VXD_FAIR_CLIENTS);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void vxd_fair_enter(struct vxd_fair *fair, const struct vxd_request *request)
{
    uint64_t *sender = &fair->senders[request->fair_sender];
    uint64_t *client = &fair->clients[request->fair_client];

    *sender = later(*sender, fair->now);
    *client = later(*client, fair->client_now[request->fair_sender]);
}

struct vxd_fair_turn vxd_fair_turn_of(const struct vxd_fair *fair,
                                      const struct vxd_request *request)
{
    return (struct vxd_fair_turn){fair->senders[request->fair_sender],
                                  fair->clients[request->fair_client]};
}

bool vxd_fair_is_before(struct vxd_fair_turn a, struct vxd_fair_turn b)
{
    return a.sender != b.sender ? a.sender < b.sender : a.client < b.client;
}

/* Moves the clocks on. */
static void move(struct vxd_fair *fair, const struct vxd_request *request, uint64_t ms)
{
    fair->senders[request->fair_sender] +=
        ms * COST_SCALE / vxd_rules_weight(request->principal.rules);
    fair->clients[request->fair_client] += ms * COST_SCALE;
}

void vxd_fair_take(struct vxd_fair *fair, const struct vxd_request *request)
{
    uint64_t *client_now = &fair->client_now[request->fair_sender];

    fair->now = later(fair->now, fair->senders[request->fair_sender]);
    *client_now = later(*client_now, fair->clients[request->fair_client]);
    move(fair, request, 1);
}

/* What has run of a request, and is not charged yet, is charged; of a batch to each an equal
 * share. */
void vxd_fair_charge(struct vxd_fair *fair, struct vxd_request *leader)
{
    int64_t engine_ns = atomic_load(&leader->engine_ns);
    uint64_t ms = (uint64_t)((engine_ns - leader->charged_ns) / MS_NS);
    uint64_t n = 1;

    leader->charged_ns += (int64_t)ms * MS_NS;
    for (const struct vxd_request *r = leader->companions; r != NULL;
         r = r->next_companion) {
        n++;
    }
    move(fair, leader, ms / n);
    for (const struct vxd_request *r = leader->companions; r != NULL;
         r = r->next_companion) {
        move(fair, r, ms / n);
    }
}

/* --- places ------------------------------------------------------------------------------- */

/* Whether a request holds a place in the queue that may be another's. */
static bool holds_place(const struct vxd_request *request)
{
    return !request->submitted && !request->continues && !request->method->waits_apart;
}

/* Whether one that has n_many places is to give one to another that has n_few. */
static bool gives(uint64_t n_many, uint64_t many_weight, uint64_t n_few,
                  uint64_t few_weight)
{
    return n_many > 0 && (n_few + 1) * many_weight <= (n_many - 1) * few_weight;
}

static void count_places(const struct vxd_scheduler *scheduler,
                         const struct vxd_request *newcomer, struct vxd_fair_places *out)
{
    out->of_sender[newcomer->fair_sender] = 0;
    out->of_client[newcomer->fair_client] = 0;
    for (const struct vxd_request *r = scheduler->first; r != NULL; r = r->next) {
        out->of_sender[r->fair_sender] = 0;
        out->of_client[r->fair_client] = 0;
    }
    for (const struct vxd_request *r = scheduler->first; r != NULL; r = r->next) {
        if (holds_place(r)) {
            out->of_sender[r->fair_sender]++;
            out->of_client[r->fair_client]++;
            out->weight[r->fair_sender] = vxd_rules_weight(r->principal.rules);
        }
    }
}

/* The sender that has the most places for its weight, and of its clients the one that has the most;
 * NULL where nobody waits whose place could be given. */
static const struct vxd_request *find_largest(const struct vxd_scheduler *scheduler,
                                              const struct vxd_fair_places *places)
{
    const struct vxd_request *largest = NULL;

    for (const struct vxd_request *r = scheduler->first; r != NULL; r = r->next) {
        uint64_t n;
        uint64_t most;

        if (!holds_place(r) || largest == NULL) {
            largest = holds_place(r) ? r : largest;
            continue;
        }
        n = (uint64_t)places->of_sender[r->fair_sender] *
            places->weight[largest->fair_sender];
        most = (uint64_t)places->of_sender[largest->fair_sender] *
               places->weight[r->fair_sender];
        if (n > most || (r->fair_sender == largest->fair_sender &&
                         places->of_client[r->fair_client] >
                             places->of_client[largest->fair_client])) {
            largest = r;
        }
    }
    return largest;
}

/* Whether two requests are of one client of one sender. */
static bool is_same_client(const struct vxd_request *a, const struct vxd_request *b)
{
    return a->fair_sender == b->fair_sender && a->fair_client == b->fair_client;
}

static size_t count_lane(const struct vxd_scheduler *scheduler,
                         const struct vxd_request *of, enum vxd_lane_kind lane)
{
    size_t n = 0;

    for (const struct vxd_request *r = scheduler->first; r != NULL; r = r->next) {
        n += holds_place(r) && r->lane == lane && is_same_client(r, of) ? 1 : 0;
    }
    return n;
}

/* Whether the newcomer gets a place of `largest`. */
static bool gets_place(const struct vxd_scheduler *scheduler,
                       const struct vxd_request *largest,
                       const struct vxd_request *newcomer)
{
    const struct vxd_fair_places *places = &scheduler->places;
    enum vxd_lane_kind other =
        newcomer->lane == VXD_LANE_WRITE ? VXD_LANE_READ : VXD_LANE_WRITE;

    if (largest->fair_sender != newcomer->fair_sender) {
        return gives(places->of_sender[largest->fair_sender],
                     places->weight[largest->fair_sender],
                     places->of_sender[newcomer->fair_sender],
                     vxd_rules_weight(newcomer->principal.rules));
    }
    if (largest->fair_client != newcomer->fair_client) {
        return gives(places->of_client[largest->fair_client], 1,
                     places->of_client[newcomer->fair_client], 1);
    }
    return gives(count_lane(scheduler, largest, other), 1,
                 count_lane(scheduler, largest, newcomer->lane), 1);
}

struct vxd_request *vxd_fair_find_place(struct vxd_scheduler *scheduler,
                                        const struct vxd_request *newcomer,
                                        struct vxd_request **before)
{
    const struct vxd_request *largest;
    struct vxd_request *found = NULL;
    struct vxd_request *last = NULL;

    count_places(scheduler, newcomer, &scheduler->places);
    largest = find_largest(scheduler, &scheduler->places);
    if (largest == NULL || !gets_place(scheduler, largest, newcomer)) {
        return NULL;
    }
    for (struct vxd_request *r = scheduler->first; r != NULL; last = r, r = r->next) {
        bool is_own = is_same_client(r, newcomer);

        if (holds_place(r) && is_same_client(r, largest) &&
            !(is_own && r->lane == newcomer->lane)) {
            found = r;
            *before = last;
        }
    }
    return found;
}
