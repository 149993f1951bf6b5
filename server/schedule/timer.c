// SPDX-License-Identifier: Apache-2.0
#include "server/schedule/timer.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "proto/base/clock.h"

enum {
    FIRST_CAPACITY = 64
};

struct entry {
    int64_t at_ns;
    struct vxd_request *request;
};

struct vxd_timer {
    vxd_timer_fn fire;
    void *context;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all below and every request's timer_slot */
    pthread_cond_t changed;
    struct entry *heap;
    size_t n;
    size_t capacity;
    /* When the thread looks at the entries next: it is not woken for what comes later, and most
     * entries have gone by then. AWAKE: it is about to. */
    int64_t looks_at_ns;
    bool stopping;
};

#define AWAKE INT64_MIN

static void put(struct vxd_timer *timer, size_t i, struct entry entry)
{
    timer->heap[i] = entry;
    entry.request->timer_slot = i + 1;
}

static void sift_up(struct vxd_timer *timer, size_t i, struct entry entry)
{
    while (i > 0 && timer->heap[(i - 1) / 2].at_ns > entry.at_ns) {
        put(timer, i, timer->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(timer, i, entry);
}

static void sift_down(struct vxd_timer *timer, size_t i, struct entry entry)
{
    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < timer->n &&
            timer->heap[child + 1].at_ns < timer->heap[child].at_ns) {
            child++;
        }
        if (child >= timer->n || timer->heap[child].at_ns >= entry.at_ns) {
            break;
        }
        put(timer, i, timer->heap[child]);
        i = child;
    }
    put(timer, i, entry);
}

static void remove_at(struct vxd_timer *timer, size_t i)
{
    struct entry last = timer->heap[--timer->n];
    struct entry gone = timer->heap[i];

    gone.request->timer_slot = 0;
    if (i == timer->n) {
        return;
    }
    if (i > 0 && timer->heap[(i - 1) / 2].at_ns > last.at_ns) {
        sift_up(timer, i, last);
    } else {
        sift_down(timer, i, last);
    }
}

/* Waits for the first entry's time or a change; the mutex is held. */
static void wait_first(struct vxd_timer *timer)
{
    struct timespec until;

    if (timer->n == 0) {
        timer->looks_at_ns = INT64_MAX;
        (void)pthread_cond_wait(&timer->changed, &timer->mutex);
    } else {
        timer->looks_at_ns = timer->heap[0].at_ns;
        until.tv_sec = (time_t)(timer->looks_at_ns / 1000000000);
        until.tv_nsec = (long)(timer->looks_at_ns % 1000000000);
        (void)pthread_cond_timedwait(&timer->changed, &timer->mutex, &until);
    }
    timer->looks_at_ns = AWAKE;
}

static void *run(void *argument)
{
    struct vxd_timer *timer = argument;

    (void)pthread_mutex_lock(&timer->mutex);
    while (!timer->stopping) {
        struct vxd_request *request;

        if (timer->n == 0 || timer->heap[0].at_ns > vxd_clock_ns()) {
            wait_first(timer);
            continue;
        }
        request = timer->heap[0].request;
        remove_at(timer, 0);
        (void)pthread_mutex_unlock(&timer->mutex);
        timer->fire(timer->context, request);
        (void)pthread_mutex_lock(&timer->mutex);
    }
    (void)pthread_mutex_unlock(&timer->mutex);
    return NULL;
}

enum vxd_status vxd_timer_create(vxd_timer_fn fire, void *context, struct vxd_timer **out,
                                 struct vxd_err *err)
{
    struct vxd_timer *timer = calloc(1, sizeof *timer);

    if (timer == NULL || !vxd_clock_init_condition(&timer->changed)) {
        free(timer);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the timer");
    }
    timer->fire = fire;
    timer->context = context;
    timer->looks_at_ns = AWAKE;
    if (pthread_mutex_init(&timer->mutex, NULL) != 0 ||
        pthread_create(&timer->thread, NULL, run, timer) != 0) {
        (void)pthread_cond_destroy(&timer->changed);
        free(timer);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no thread for the timer");
    }
    *out = timer;
    return VXD_OK;
}

void vxd_timer_destroy(struct vxd_timer *timer)
{
    if (timer == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&timer->mutex);
    timer->stopping = true;
    (void)pthread_cond_signal(&timer->changed);
    (void)pthread_mutex_unlock(&timer->mutex);
    (void)pthread_join(timer->thread, NULL);
    for (size_t i = 0; i < timer->n; i++) {
        timer->heap[i].request->timer_slot = 0;
        vxd_request_drop(timer->heap[i].request);
    }
    (void)pthread_mutex_destroy(&timer->mutex);
    (void)pthread_cond_destroy(&timer->changed);
    free(timer->heap);
    free(timer);
}

/* The mutex is held. */
static bool grow(struct vxd_timer *timer)
{
    size_t capacity = timer->capacity > 0 ? 2 * timer->capacity : FIRST_CAPACITY;
    struct entry *heap;

    if (timer->n < timer->capacity) {
        return true;
    }
    heap = realloc(timer->heap, capacity * sizeof *heap);
    if (heap == NULL) {
        return false;
    }
    timer->heap = heap;
    timer->capacity = capacity;
    return true;
}

enum vxd_status vxd_timer_add(struct vxd_timer *timer, struct vxd_request *request,
                              int64_t at_ns, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;
    bool wakes = false;

    (void)pthread_mutex_lock(&timer->mutex);
    if (grow(timer)) {
        vxd_request_hold(request);
        sift_up(timer, timer->n++, (struct entry){at_ns, request});
        wakes = at_ns < timer->looks_at_ns;
        if (wakes) {
            timer->looks_at_ns = AWAKE;
        }
    } else {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a deadline");
    }
    (void)pthread_mutex_unlock(&timer->mutex);
    if (wakes) {
        (void)pthread_cond_signal(&timer->changed);
    }
    return status;
}

void vxd_timer_remove(struct vxd_timer *timer, struct vxd_request *request)
{
    bool watched;

    (void)pthread_mutex_lock(&timer->mutex);
    watched = request->timer_slot != 0;
    if (watched) {
        remove_at(timer, request->timer_slot - 1);
    }
    (void)pthread_mutex_unlock(&timer->mutex);
    if (watched) {
        vxd_request_drop(request);
    }
}
