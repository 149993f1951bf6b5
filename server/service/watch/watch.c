// SPDX-License-Identifier: Apache-2.0
/* The parked watches are a linked list under one mutex; there are at most limits.watchers. The
 * thread sleeps until one of them is due: what it watches has changed, its time is over, or it was
 * answered meanwhile (its connection has ended, say). */
#include "server/service/watch/watch.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/observe/observe.h"
#include "server/registry/scenes/scenes.h"
#include "server/registry/volumes/volumes.h"
#include "server/service/service.h"

enum {
    /* Of those that were parked, how many may be with the scheduler. */
    MOST_RELEASED = 8,
    /* Looks at volumes take turns with what changes volumes, on the write lane. So there is one at a
     * time, and after it none for so many times as long as it took, however many watch. */
    LOOK_PAUSES = 3
};

/* A wait ends so long before the request's own time is over. */
#define SPARE_NS INT64_C(250000000)

struct vxd_watch {
    struct vxd_server *server;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t wake;
    pthread_t thread;
    bool is_running;
    bool refuses;
    struct vxd_watcher *first;
    struct vxd_watch_place *places;
    size_t n_released;
    bool is_looking;        /* one of the released is a look at a volume */
    int64_t look_ns;        /* there is none before */
    atomic_size_t n_parked; /* read without the mutex, too */
};

/* --- places ------------------------------------------------------------------------------- */

static void name_owner(const struct vxd_principal *principal, const char *peer,
                       char out[VXD_WATCH_OWNER_BYTES])
{
    const char *colon = strrchr(peer, ':');
    int n_peer = (int)(colon != NULL ? (size_t)(colon - peer) : strlen(peer));

    (void)snprintf(out, VXD_WATCH_OWNER_BYTES, "%.63s at %.*s", principal->name, n_peer,
                   peer);
}

/* With the mutex held. */
static enum vxd_status take_place(struct vxd_watch *watch,
                                  const struct vxd_principal *principal, const char *peer,
                                  struct vxd_watch_place *place, struct vxd_err *err)
{
    const struct vxd_config *config = &watch->server->config;
    size_t n = 0;
    size_t n_own = 0;

    name_owner(principal, peer, place->owner);
    for (const struct vxd_watch_place *p = watch->places; p != NULL; p = p->next) {
        n++;
        n_own += strcmp(p->owner, place->owner) == 0 ? 1 : 0;
    }
    if (n >= config->n_watchers || n_own >= config->n_client_watchers) {
        bool is_own = n < config->n_watchers;

        vxd_metrics_count_rejected(watch->server->metrics, "watchers");
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu watchers %s%s: limits.%s is %u", is_own ? n_own : n,
                        is_own ? "are of " : "there are", is_own ? place->owner : "",
                        is_own ? "watchers_per_client" : "watchers",
                        is_own ? config->n_client_watchers : config->n_watchers);
    }
    place->is_taken = true;
    place->next = watch->places;
    watch->places = place;
    return VXD_OK;
}

static void give_place(struct vxd_watch *watch, struct vxd_watch_place *place)
{
    struct vxd_watch_place **at = &watch->places;

    if (!place->is_taken) {
        return;
    }
    while (*at != place) {
        at = &(*at)->next;
    }
    *at = place->next;
    place->is_taken = false;
}

enum vxd_status vxd_watch_take_place(struct vxd_watch *watch,
                                     const struct vxd_principal *principal,
                                     const char *peer, struct vxd_watch_place *place,
                                     struct vxd_err *err)
{
    enum vxd_status status;

    (void)pthread_mutex_lock(&watch->mutex);
    status = take_place(watch, principal, peer, place, err);
    (void)pthread_mutex_unlock(&watch->mutex);
    return status;
}

void vxd_watch_give_place(struct vxd_watch *watch, struct vxd_watch_place *place)
{
    (void)pthread_mutex_lock(&watch->mutex);
    give_place(watch, place);
    (void)pthread_mutex_unlock(&watch->mutex);
}

size_t vxd_watch_count(struct vxd_watch *watch)
{
    size_t n = 0;

    if (watch == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&watch->mutex);
    for (const struct vxd_watch_place *p = watch->places; p != NULL; p = p->next) {
        n++;
    }
    (void)pthread_mutex_unlock(&watch->mutex);
    return n;
}

/* --- the list ----------------------------------------------------------------------------- */

static bool is_answered(const struct vxd_watcher *watcher)
{
    return atomic_load(&watcher->request->answered) != 0;
}

/* Whether it watches a volume's blocks, which are read on the write lane; heads of volumes are not. */
static bool watches_blocks(const struct vxd_watcher *watcher)
{
    return watcher->noun == VXD_WATCH_VOLUMES && watcher->name[0] != '\0';
}

/* Whether it takes a turn on the write lane: there may be something. */
static bool is_look(const struct vxd_watcher *watcher)
{
    return watches_blocks(watcher) && (watcher->is_due || watcher->until_ns == 0);
}

/* When a watcher will be ready, unless it becomes due before; INT64_MAX: when another one is gone. */
static int64_t ready_ns(const struct vxd_watch *watch, const struct vxd_watcher *watcher)
{
    int64_t at_ns = watcher->is_due ? 0 : watcher->until_ns;

    if (is_answered(watcher) || watch->refuses) {
        return 0;
    }
    if (is_look(watcher) && at_ns < watch->look_ns) {
        at_ns = watch->look_ns;
    }
    return watch->n_released < MOST_RELEASED && !(is_look(watcher) && watch->is_looking)
               ? at_ns
               : INT64_MAX;
}

/* Takes the one of those that are ready that waits for longest out of the list; NULL where none is.
 * *next_ns is when one will be by its time. */
static struct vxd_watcher *take_ready(struct vxd_watch *watch, int64_t *next_ns)
{
    int64_t now_ns = vxd_clock_ns();
    struct vxd_watcher **oldest = NULL;
    struct vxd_watcher *watcher;

    *next_ns = INT64_MAX;
    for (struct vxd_watcher **at = &watch->first; *at != NULL; at = &(*at)->next) {
        int64_t at_ns = ready_ns(watch, *at);

        oldest = at_ns <= now_ns ? at : oldest;
        *next_ns = at_ns < *next_ns ? at_ns : *next_ns;
    }
    if (oldest == NULL) {
        return NULL;
    }
    watcher = *oldest;
    *oldest = watcher->next;
    atomic_fetch_sub(&watch->n_parked, 1);
    give_place(watch, &watcher->place);
    if (!is_answered(watcher) && !watch->refuses) {
        watcher->is_released = true;
        watch->n_released++;
        watcher->is_looking = is_look(watcher);
        watcher->is_over = watches_blocks(watcher) && !watcher->is_looking;
        if (watcher
                ->is_over) { /* which needs nothing of the volume's, so that nobody waits for its lane */
            watcher->request->lane = VXD_LANE_READ;
            watcher->request->bulk = false;
        }
        watch->is_looking = watch->is_looking || watcher->is_looking;
    }
    return watcher;
}

/* Gives a watch that was parked to the scheduler, or answers it. Takes the list's reference. */
static void release(struct vxd_request *take_request, bool refuses)
{
    struct vxd_request *request = take_request;
    const struct vxd_server *server = request->server;
    int64_t now_ns = vxd_clock_ns();
    struct vxd_err err = {0};
    enum vxd_status status;

    atomic_fetch_add(&request->waited_ns,
                     now_ns - atomic_exchange(&request->waits_since_ns, 0));
    atomic_store(&request->started_ns, now_ns);
    if (atomic_load(&request->answered) == 0) {
        status =
            refuses ? vxd_fail(&err, VXD_UNAVAILABLE, NULL, "the server is shutting down")
                    : server->schedule->push_next(server->scheduler, request, &err);
        if (status != VXD_OK) {
            (void)vxd_request_answer(request, &err, NULL);
        }
    }
    vxd_request_drop(request);
}

static void *run(void *argument)
{
    struct vxd_watch *watch = argument;

    (void)pthread_mutex_lock(&watch->mutex);
    while (!watch->refuses || watch->first != NULL) {
        int64_t next_ns;
        struct vxd_watcher *watcher = take_ready(watch, &next_ns);
        struct timespec until = {.tv_sec = (time_t)(next_ns / 1000000000),
                                 .tv_nsec = (long)(next_ns % 1000000000)};

        if (watcher != NULL) {
            struct vxd_request *request = watcher->request;
            bool refuses = watch->refuses;

            /* The watcher is the request's memory: it may be gone after release. */
            (void)pthread_mutex_unlock(&watch->mutex);
            release(request, refuses);
            (void)pthread_mutex_lock(&watch->mutex);
        } else if (next_ns == INT64_MAX) {
            (void)pthread_cond_wait(&watch->wake, &watch->mutex);
        } else {
            (void)pthread_cond_timedwait(&watch->wake, &watch->mutex, &until);
        }
    }
    (void)pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

/* Lists a request, which holds it. */
static enum vxd_status park(struct vxd_watch *watch, struct vxd_request *request,
                            struct vxd_watcher *watcher, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    (void)pthread_mutex_lock(&watch->mutex);
    if (watch->refuses) {
        status = vxd_fail(err, VXD_UNAVAILABLE, NULL, "the server is shutting down");
    } else if (!request->holds_place) {
        status =
            take_place(watch, &request->principal, request->peer, &watcher->place, err);
    }
    if (status == VXD_OK) {
        vxd_request_hold(request);
        atomic_store(&request->waits_since_ns, vxd_clock_ns());
        watcher->next = watch->first;
        watch->first = watcher;
        atomic_fetch_add(&watch->n_parked, 1);
        (void)pthread_cond_signal(&watch->wake);
    }
    (void)pthread_mutex_unlock(&watch->mutex);
    return status;
}

enum vxd_status vxd_watch_wait(struct vxd_request *request,
                               const struct vxd_watch_terms *terms,
                               struct vxd_watcher *watcher, bool *waits,
                               struct vxd_err *err)
{
    struct vxd_watch *watch = request->server->watch;
    int64_t until_ns = request->received_ns + terms->timeout_ms * INT64_C(1000000);
    enum vxd_status status;

    if (until_ns > request->deadline_ns - SPARE_NS) {
        until_ns = request->deadline_ns - SPARE_NS;
    }
    if (!terms->has_after || terms->is_newer(request)) {
        until_ns = 0;
    }
    watcher->request = request;
    watcher->noun = terms->noun;
    watcher->name = terms->name;
    watcher->until_ns = until_ns;
    /* From here on its reference is the list's, and so is its life. */
    vxd_request_hold(request);
    status = park(watch, request, watcher, err);
    *waits = status == VXD_OK;
    /* The change may have come between the look and the parking. */
    if (status == VXD_OK && until_ns > 0 && terms->is_newer(request)) {
        vxd_watch_notify(watch, terms->noun, terms->name);
    }
    vxd_request_drop(request);
    return status;
}

enum vxd_status vxd_watch_check_point(const Voxeld__V1__WatchPoint *after,
                                      struct vxd_err *err)
{
    return after != NULL && after->to_version > 0 && after->to_version <= after->version
               ? vxd_fail(err, VXD_INVALID_ARGUMENT, "after.to_version",
                          "must be above after.version, or 0")
               : VXD_OK;
}

void vxd_watch_notify(struct vxd_watch *watch, enum vxd_watch_noun noun, const char *name)
{
    bool is_any_due = false;

    if (atomic_load(&watch->n_parked) == 0) {
        return;
    }
    (void)pthread_mutex_lock(&watch->mutex);
    for (struct vxd_watcher *w = watch->first; w != NULL; w = w->next) {
        if (w->noun == noun && (w->name[0] == '\0' || strcmp(w->name, name) == 0)) {
            w->is_due = true;
            is_any_due = true;
        }
    }
    if (is_any_due) {
        (void)pthread_cond_signal(&watch->wake);
    }
    (void)pthread_mutex_unlock(&watch->mutex);
}

void vxd_watch_unpark_request(struct vxd_request *request)
{
    struct vxd_watch *watch = request->server->watch;

    (void)pthread_mutex_lock(&watch->mutex);
    (void)pthread_cond_signal(&watch->wake);
    (void)pthread_mutex_unlock(&watch->mutex);
}

void vxd_watch_end_look(struct vxd_request *request, struct vxd_watcher *watcher)
{
    struct vxd_watch *watch = request->server->watch;

    (void)pthread_mutex_lock(&watch->mutex);
    if (watcher->is_looking) {
        watcher->is_looking = false;
        watch->is_looking = false;
        watch->look_ns = vxd_clock_ns() + LOOK_PAUSES * request->engine_ns;
        (void)pthread_cond_signal(&watch->wake);
    }
    (void)pthread_mutex_unlock(&watch->mutex);
}

void vxd_watch_forget(struct vxd_request *request, struct vxd_watcher *watcher)
{
    struct vxd_watch *watch = request->server->watch;

    vxd_watch_end_look(request, watcher);
    (void)pthread_mutex_lock(&watch->mutex);
    if (watcher->is_released) {
        watcher->is_released = false;
        watch->n_released--;
        (void)pthread_cond_signal(&watch->wake);
    }
    (void)pthread_mutex_unlock(&watch->mutex);
}

/* --- its life ----------------------------------------------------------------------------- */

static void on_scene(void *context, const char *name)
{
    vxd_watch_notify(context, VXD_WATCH_SCENES, name);
}

static void on_volume(void *context, const char *name)
{
    vxd_watch_notify(context, VXD_WATCH_VOLUMES, name);
}

enum vxd_status vxd_watch_create(struct vxd_server *server, struct vxd_watch **out,
                                 struct vxd_err *err)
{
    struct vxd_watch *watch = calloc(1, sizeof *watch);

    if (watch == NULL || !vxd_clock_init_condition(&watch->wake)) {
        free(watch);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the watchers");
    }
    watch->server = server;
    (void)pthread_mutex_init(&watch->mutex, NULL);
    *out = watch;
    if (pthread_create(&watch->thread, NULL, run, watch) != 0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no thread for the watchers");
    }
    watch->is_running = true;
    vxd_scenes_set_listener(server->scenes, on_scene, watch);
    vxd_names_set_listener(server->volumes, on_volume, watch);
    return VXD_OK;
}

void vxd_watch_refuse(struct vxd_watch *watch)
{
    if (watch == NULL || !watch->is_running) {
        return;
    }
    (void)pthread_mutex_lock(&watch->mutex);
    watch->refuses = true;
    (void)pthread_cond_signal(&watch->wake);
    (void)pthread_mutex_unlock(&watch->mutex);
    (void)pthread_join(watch->thread, NULL);
    watch->is_running = false;
}

void vxd_watch_destroy(struct vxd_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    (void)pthread_cond_destroy(&watch->wake);
    (void)pthread_mutex_destroy(&watch->mutex);
    free(watch);
}
