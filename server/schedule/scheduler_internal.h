// SPDX-License-Identifier: Apache-2.0
/* What scheduler.c (the list, admission to it, expiry), scheduler_drain.c and lane.c (the
 * threads that run requests) share. */
#ifndef VXD_SERVER_SCHEDULE_SCHEDULER_INTERNAL_H
#define VXD_SERVER_SCHEDULE_SCHEDULER_INTERNAL_H

#include <pthread.h>

#include "server/schedule/schedule.h"
#include "server/instance/instance.h"
#include "server/schedule/timer.h"

enum {
    VXD_WRITE_LANES = 4,
    VXD_MAX_LANES = 16 + VXD_WRITE_LANES, /* read lanes and write lanes */
    VXD_FAIR_ADDRESSES = 1024,
    VXD_FAIR_SENDERS = VXD_MAX_ACCOUNTS + VXD_FAIR_ADDRESSES,
    VXD_FAIR_CLIENTS = 4096,
    /* Bulk requests begun and not finished, where fewer lanes than these take bulk. */
    VXD_BEGUN_BULK = 4
};

/* Clocks of senders and of their clients (scheduler_fair.c). Tokens and users have a slot each;
 * addresses, and the names of clients, share them by their hashes: two in one slot count as one, which
 * costs them fairness and nothing else. */
struct vxd_fair {
    uint64_t now; /* the clock of the sender that was served last */
    uint64_t senders[VXD_FAIR_SENDERS];
    uint64_t clients[VXD_FAIR_CLIENTS];
    uint64_t client_now[VXD_FAIR_SENDERS]; /* of each sender's clients */
};

/* How the queue's places are shared out. */
struct vxd_fair_places {
    uint32_t of_sender[VXD_FAIR_SENDERS];
    uint32_t of_client[VXD_FAIR_CLIENTS];
    uint32_t weight[VXD_FAIR_SENDERS]; /* of senders that have one */
};

struct vxd_fair_turn {
    uint64_t sender;
    uint64_t client;
};

/* A thread with a queue of the engine. */
struct vxd_lane {
    struct vxd_scheduler *scheduler;
    struct vxd_queue *queue;
    pthread_t thread;
    enum vxd_lane_kind kind;
    bool takes_bulk;
    /* Guarded by the scheduler's mutex. */
    pthread_cond_t wake;
    bool idle;                   /* it waits, and nobody has woken it yet */
    bool is_apart;               /* its request works beside the writer, or */
    bool is_returning;           /* waits to be the writer again */
    struct vxd_request *running; /* borrowed; for a drain that ran out of time */
};

struct vxd_scheduler {
    struct vxd_server *server;
    struct vxd_timer *timer;
    struct vxd_lane lanes[VXD_MAX_LANES];
    size_t n_lanes;
    uint64_t memory_bytes; /* the engine's device budget */

    pthread_mutex_t mutex; /* guards all below */
    /* The write lane whose turn it is; NULL: none's. Registries are its alone (scheduler_turn.c). */
    struct vxd_lane *writer;
    size_t
        n_committing; /* requests that were handed over (commit.h) and have not ended */
    struct vxd_request *
        committing; /* those of them that are not decided, linked by commit->next_handed_over */
    struct vxd_request
        *decided; /* those that are decided, linked by commit->next, in that order */
    struct vxd_request *last_decided;
    struct vxd_request *first;
    struct vxd_request *last;
    size_t
        n_queued; /* in the list and not begun, or waiting for another request's work */
    size_t n_running; /* begun and not finished, in the list between stages included */
    size_t n_running_bulk;
    uint64_t begun_bytes; /* cost of the requests that have begun */
    bool refusing;
    bool stopping;
    struct vxd_fair fair;
    struct vxd_fair_places places; /* scratch of vxd_fair_find_place */
};

/* scheduler_turn.c: which write lane writes. The mutex is held. */

/* Makes a write lane the writer; false where another one is, or has a better right to be. */
bool vxd_turn_take(struct vxd_lane *lane);
/* The lane is no writer any more. Whoever waits to return becomes it. */
void vxd_turn_give(struct vxd_lane *lane);
/* Wakes a write lane where there is something for a writer and none is awake. */
void vxd_turn_wake(struct vxd_scheduler *scheduler);
/* Whether a writer may begin, or go on with, the request: nobody else has what it names for itself, and
 * one lane stays free for other requests than long changes. */
bool vxd_turn_allows(const struct vxd_scheduler *scheduler,
                     const struct vxd_request *request);
/* The mutex is not held: struct vxd_schedule_calls. */
void vxd_turn_begin_apart(struct vxd_scheduler *scheduler, struct vxd_request *request);
void vxd_turn_end_apart(struct vxd_scheduler *scheduler, struct vxd_request *request);

/* scheduler_fair.c: turns and places. The mutex is held, but for the first one. */

/* Sets the request's slots by who sends it. */
void vxd_fair_name(struct vxd_request *request);
/* The request begins to wait. */
void vxd_fair_enter(struct vxd_fair *fair, const struct vxd_request *request);
/* Its turn; who is before another comes first. */
struct vxd_fair_turn vxd_fair_turn_of(const struct vxd_fair *fair,
                                      const struct vxd_request *request);
bool vxd_fair_is_before(struct vxd_fair_turn a, struct vxd_fair_turn b);
/* A lane takes the request. */
void vxd_fair_take(struct vxd_fair *fair, const struct vxd_request *request);
/* A stage of a request and its companions has run. */
void vxd_fair_charge(struct vxd_fair *fair, struct vxd_request *leader);
/* Finds the request whose place a newcomer gets where the queue is full, and the one before it in
 * the list; NULL: none. */
struct vxd_request *vxd_fair_find_place(struct vxd_scheduler *scheduler,
                                        const struct vxd_request *newcomer,
                                        struct vxd_request **before);

/* Takes a request out of the list; before is the one in front of it, NULL for the first. The
 * mutex is held. */
void vxd_scheduler_unlink(struct vxd_scheduler *scheduler, struct vxd_request *before,
                          struct vxd_request *request);

/* Answers and drops linked requests that were taken out of the list. */
void vxd_scheduler_answer_all(struct vxd_request *requests, const struct vxd_err *err);

/* The request this lane should run next, taken from the list; the mutex is held. NULL when
 * there is none. */
struct vxd_request *vxd_scheduler_take(struct vxd_lane *lane);

/* Puts a request back into the list between two stages. */
void vxd_scheduler_requeue(struct vxd_lane *lane, struct vxd_request *request);

/* The lane has finished with a request and its companions: what they held is free for
 * others. */
void vxd_scheduler_end(struct vxd_lane *lane, struct vxd_request *request);

/* Count a request that begins, or ends, among those that run. The mutex is held. */
void vxd_scheduler_count_begun(struct vxd_scheduler *scheduler,
                               struct vxd_request *request);
void vxd_scheduler_count_ended(struct vxd_scheduler *scheduler,
                               const struct vxd_request *request);

/* Whether the engine has the memory for one more. The mutex is held. */
bool vxd_scheduler_fits(const struct vxd_scheduler *scheduler,
                        const struct vxd_request *request);

/* scheduler_batch.c: requests that run as one. The mutex is held, except where the
 * comment says otherwise. */

/* Takes from the list what may run with a request that is about to begin, as its companions. */
void vxd_scheduler_collect(const struct vxd_lane *lane, struct vxd_request *leader);

/* Notes that a request was queued: if its batch is full now, it does not wait for more
 * requests. */
void vxd_scheduler_note_queued(struct vxd_scheduler *scheduler,
                               const struct vxd_request *request);

/* When the next request that waits for companions begins without them, or one that waits for
 * another's work tries again; INT64_MAX = none. */
int64_t vxd_scheduler_next_ready_ns(const struct vxd_lane *lane);

/* Mutex not held. Whether the request and all its companions are answered. */
bool vxd_scheduler_all_answered(const struct vxd_request *leader);

/* Mutex not held. A batch has failed: those of it that are not answered go back to the
 * list to run alone, and the lane has finished with them. */
void vxd_scheduler_split(struct vxd_lane *lane, struct vxd_request *leader);

/* Mutex not held. Answers a request and its companions with an error, those that have no
 * answer yet. */
void vxd_scheduler_answer(struct vxd_request *leader, const struct vxd_err *err);

/* Mutex not held. Drops the list's references to a request and its companions. */
void vxd_scheduler_drop(struct vxd_request *leader);

/* scheduler_why.c: notes who is ahead of a request that is about to be queued, or is refused since
 * the queue is full. The mutex is held. */
void vxd_scheduler_note_ahead(const struct vxd_scheduler *scheduler,
                              struct vxd_request *request, bool is_full);

/* Makes idle lanes look at the list again. The mutex is held. */
void vxd_scheduler_wake_lanes(struct vxd_scheduler *scheduler);

/* Whether a lane may run the request. */
bool vxd_lane_takes(const struct vxd_lane *lane, const struct vxd_request *request);

/* errors  ABORTED  the request has waited longer than its sender wants */
enum vxd_status vxd_scheduler_check_age(const struct vxd_request *request,
                                        struct vxd_err *err);

/* Begins the lane's thread. errors  RESOURCE_EXHAUSTED, and what vxd_queue_create gives */
enum vxd_status vxd_lane_start(struct vxd_lane *lane, struct vxd_err *err);

/* Joins it; scheduler->stopping is set and the lane was woken. Its queue stays, for releasing
 * requests that no lane will run any more. */
void vxd_lane_join(struct vxd_lane *lane);
void vxd_lane_close(struct vxd_lane *lane);

#endif
