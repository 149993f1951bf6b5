// SPDX-License-Identifier: Apache-2.0
/* Watches that wait until a scene changes, and the places that bound how many there may be: in
 * all, and for one token at one address. A connection that watches all the time (server-sent
 * events) holds a place of its own, and then its requests take none. Any thread may call these
 * functions. */
#ifndef VXD_SERVER_SERVICE_WATCH_WATCH_H
#define VXD_SERVER_SERVICE_WATCH_WATCH_H

#include "server/request/request.h"

struct vxd_watch;

/* Who watches: the token's name, and the peer's address without its port. */
#define VXD_WATCH_OWNER_BYTES 136

/* A place among the watchers; in memory of who holds it. Zero-initialised it is none. */
struct vxd_watch_place {
    char owner[VXD_WATCH_OWNER_BYTES];
    bool is_taken;
    struct vxd_watch_place *next;
};

/* A parked watch; in memory of the request, which the list holds meanwhile. */
struct vxd_watcher {
    struct vxd_watch_place place;
    struct vxd_request *request;
    const char *name; /* of the scene; "" = all */
    int64_t until_ns;
    bool is_due;
    bool is_released; /* it was given to the scheduler, and is not gone yet */
    struct vxd_watcher *next;
};

/* Hears of the scenes' changes from then on.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_watch_create(struct vxd_server *server, struct vxd_watch **out,
                                 struct vxd_err *err);

/* Answers all that are parked UNAVAILABLE, and refuses others from then on. NULL is fine. */
void vxd_watch_refuse(struct vxd_watch *watch);

/* After vxd_watch_refuse, when no request is left. NULL is fine. */
void vxd_watch_destroy(struct vxd_watch *watch);

/* errors  RESOURCE_EXHAUSTED  limits.watchers, limits.watchers_per_client */
enum vxd_status vxd_watch_take_place(struct vxd_watch *watch,
                                     const struct vxd_principal *principal,
                                     const char *peer, struct vxd_watch_place *place,
                                     struct vxd_err *err);
void vxd_watch_give_place(struct vxd_watch *watch, struct vxd_watch_place *place);

/* Parks a request until its scene may have changed, or the time is over, which it may be already;
 * a lane gets it then, when not too many others have theirs.
 * watcher is zeroed.
 * errors  RESOURCE_EXHAUSTED  as vxd_watch_take_place
 *         UNAVAILABLE         the server shuts down */
enum vxd_status vxd_watch_park(struct vxd_watch *watch, struct vxd_request *request,
                               const char *name, int64_t until_ns,
                               struct vxd_watcher *watcher, struct vxd_err *err);

/* The scene of this name may have changed. */
void vxd_watch_notify(struct vxd_watch *watch, const char *name);

/* A parked request was answered. */
void vxd_watch_unpark(struct vxd_watch *watch);

/* The request of a watcher is gone. */
void vxd_watch_forget(struct vxd_watch *watch, struct vxd_watcher *watcher);

/* How many places are taken; NULL is none. */
size_t vxd_watch_count(struct vxd_watch *watch);

/* --- watch_heads.c ------------------------------------------------------------------------ */

/* Whether something has changed after this number in this run of the server. */
bool vxd_watch_heads_are_newer(const struct vxd_server *server, uint64_t generation,
                               uint64_t change);

/* Makes the reply to a watch on all scenes, in request->output, and where it needs an arena of
 * its own, in *arena.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_watch_heads_reply(struct vxd_request *request,
                                      struct vxd_decoder **arena, struct vxd_err *err);

#endif
