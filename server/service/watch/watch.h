// SPDX-License-Identifier: Apache-2.0
/* Watches that wait until a scene or a volume changes, and the places that bound how many there may be: in
 * all, and for one token at one address. A connection that watches all the time (server-sent
 * events) holds a place of its own, and then its requests take none. Any thread may call these
 * functions. */
#ifndef VXD_SERVER_SERVICE_WATCH_WATCH_H
#define VXD_SERVER_SERVICE_WATCH_WATCH_H

#include "server/request/request.h"
#include "voxeld/v1/watch.pb-c.h"

struct vxd_watch;

enum vxd_watch_noun {
    VXD_WATCH_SCENES = 0,
    VXD_WATCH_VOLUMES = 1
};

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
    enum vxd_watch_noun noun;
    const char *name; /* of the scene or volume; "" = all */
    int64_t until_ns;
    bool is_due;
    bool is_released; /* it was given to the scheduler, and is not gone yet */
    bool is_looking;  /* at a volume, on the write lane */
    bool is_over;     /* its time was over, and nothing had come */
    struct vxd_watcher *next;
};

/* Hears of the changes of scenes and volumes from then on.
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

/* How a request waits. */
struct vxd_watch_terms {
    enum vxd_watch_noun noun;
    const char *name; /* "" = all; lives as long as the request */
    bool has_after;   /* it knows something; else it is answered at once */
    uint32_t timeout_ms;
    /* Any thread. Whether there is something now that the request does not know. */
    bool (*is_newer)(const struct vxd_request *request);
};

/* The prerequisite of a watch: parks the request until what it watches may have changed, or the time is
 * over, which it may be already; a lane gets it then, when not too many others have theirs.
 * watcher is zeroed, in the request's memory.
 * errors  RESOURCE_EXHAUSTED  as vxd_watch_take_place
 *         UNAVAILABLE         the server shuts down */
enum vxd_status vxd_watch_wait(struct vxd_request *request,
                               const struct vxd_watch_terms *terms,
                               struct vxd_watcher *watcher, bool *waits,
                               struct vxd_err *err);

/* What a request knows; NULL is nothing.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_watch_check_point(const Voxeld__V1__WatchPoint *after,
                                      struct vxd_err *err);

/* The scene or volume of this name may have changed. */
void vxd_watch_notify(struct vxd_watch *watch, enum vxd_watch_noun noun,
                      const char *name);

/* A look at a volume has left the write lane, so that another one may come. */
void vxd_watch_end_look(struct vxd_request *request, struct vxd_watcher *watcher);

/* The request of a watcher is gone. */
void vxd_watch_forget(struct vxd_request *request, struct vxd_watcher *watcher);

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

/* --- volume_heads.c ----------------------------------------------------------------------- */

/* The same two of volumes. */
bool vxd_watch_volume_heads_are_newer(const struct vxd_server *server,
                                      uint64_t generation, uint64_t change);
enum vxd_status vxd_watch_volume_heads_reply(struct vxd_request *request,
                                             struct vxd_decoder **arena,
                                             struct vxd_err *err);

#endif
