// SPDX-License-Identifier: Apache-2.0
/* libvoxeld: explanations. Part of voxeld.h, whose conventions hold here. Generated
 * by proto/gen from why.proto: not to be edited.
 *
 * Why a request was refused, or takes so long. */
#ifndef VOXELD_WHY_H
#define VOXELD_WHY_H

#include "voxeld.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Requests of one method and token. */
struct voxeld_why_ahead {
    const char *method;
    /* The token's name; "uid-1000" and "anonymous" for peers without one */
    const char *token;
    uint32_t n;
    /* They ran, the others waited */
    bool is_running;
};

struct voxeld_why_request {
    /* As its reply, its error and the log say it: X-Request-Id, header.request_id */
    const char *request_id;
    struct voxeld_call call;
};

/* All pointers live until it is freed. */
struct voxeld_why {
    /* One or two sentences with all of what follows */
    const char *summary;
    const char *request_id;
    const char *method;
    const char *token;
    /* "waits", "runs", or "answered" */
    const char *state;
    /* Of an answered one, as in its reply */
    enum voxeld_status code;
    const char *message;
    const char *field;
    /* The key of the configuration whose limit refused it or held it up; empty where
     * none did */
    const char *key;
    /* The key's value, where it is a number */
    uint64_t limit;
    /* How many that came before it waited: when it came, or now while it waits; and who
     * they were, with those that ran. At most 6 groups; n_others are the rest. Lanes are
     * shared out by token, so it may run before some of them, and later ones before it */
    uint32_t queue_position;
    const struct voxeld_why_ahead *ahead;
    size_t n_ahead;
    uint32_t n_others;
    /* Where its time went, as in StageTimes */
    double receive_ms;
    double decode_ms;
    double wait_ms;
    double engine_ms;
    double commit_ms;
    double total_ms;
    /* Of its traceparent; empty where it had none */
    const char *trace_id;
    /* Unix time; 0 while it is not answered */
    int64_t finished_ns;
};

VOXELD_API void voxeld_why_free(struct voxeld_why *result);

/* Explains one request: where it stands while it waits or runs, and afterwards, for
 * a while, why it was refused or what it spent its time on. Known are those that
 * failed and those that took at least 10 ms, the last few dozen of each token. Who
 * has not the scope admin sees requests of their own token alone. NOT_FOUND where
 * nothing is known (any more).
 *
 * NOT_FOUND: nothing is known of it, or not any more, or it is another token's. */
VOXELD_API enum voxeld_status voxeld_why(struct voxeld_client *client,
                                         const struct voxeld_why_request *request,
                                         struct voxeld_why **out,
                                         struct voxeld_error *error);

#ifdef __cplusplus
}
#endif

#endif
