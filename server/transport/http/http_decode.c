// SPDX-License-Identifier: Apache-2.0
/* Threads that decode uploaded files, so that a large one keeps no connection waiting that the library's
 * threads serve. What they have not begun when its deadline passes, or its sender hangs up, they only
 * drop. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/transport/http/http_internal.h"

enum {
    MAX_THREADS = 4
};

/* A request whose body has come. Its strings are its own: the connection's memory may be used for
 * another request as soon as this one is answered. */
struct job {
    struct vxd_request *request;
    struct vxd_body body;
    struct job *next;
    char text[];
};

struct vxd_http_decoders {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct job *first;
    struct job **last;
    bool is_stopping;
    pthread_t threads[MAX_THREADS];
    size_t n_threads;
};

static void *run(void *argument)
{
    struct vxd_http_decoders *decoders = argument;

    (void)pthread_mutex_lock(&decoders->lock);
    while (decoders->first != NULL || !decoders->is_stopping) {
        struct job *job = decoders->first;

        if (job == NULL) {
            (void)pthread_cond_wait(&decoders->wake, &decoders->lock);
            continue;
        }
        decoders->first = job->next;
        if (decoders->first == NULL) {
            decoders->last = &decoders->first;
        }
        (void)pthread_mutex_unlock(&decoders->lock);
        vxd_request_submit(job->request, &job->body);
        free(job);
        (void)pthread_mutex_lock(&decoders->lock);
    }
    (void)pthread_mutex_unlock(&decoders->lock);
    return NULL;
}

enum vxd_status vxd_http_decoders_start(uint32_t n_threads,
                                        struct vxd_http_decoders **out,
                                        struct vxd_err *err)
{
    struct vxd_http_decoders *decoders = calloc(1, sizeof *decoders);

    if (decoders == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the transport");
    }
    (void)pthread_mutex_init(&decoders->lock, NULL);
    (void)pthread_cond_init(&decoders->wake, NULL);
    decoders->last = &decoders->first;
    n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    while (decoders->n_threads < n_threads) {
        if (pthread_create(&decoders->threads[decoders->n_threads], NULL, run,
                           decoders) != 0) {
            vxd_http_decoders_destroy(decoders);
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no thread for uploaded files");
        }
        decoders->n_threads++;
    }
    *out = decoders;
    return VXD_OK;
}

void vxd_http_decoders_stop(struct vxd_http_decoders *decoders)
{
    if (decoders == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&decoders->lock);
    decoders->is_stopping = true;
    (void)pthread_cond_broadcast(&decoders->wake);
    (void)pthread_mutex_unlock(&decoders->lock);
    for (size_t i = 0; i < decoders->n_threads; i++) {
        (void)pthread_join(decoders->threads[i], NULL);
    }
    decoders->n_threads = 0;
}

void vxd_http_decoders_destroy(struct vxd_http_decoders *decoders)
{
    if (decoders == NULL) {
        return;
    }
    vxd_http_decoders_stop(decoders);
    (void)pthread_cond_destroy(&decoders->wake);
    (void)pthread_mutex_destroy(&decoders->lock);
    free(decoders);
}

static size_t bytes_of(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Copies a string to *at, which moves on; NULL stays NULL. */
static const char *keep(const char *text, char **at)
{
    size_t n = bytes_of(text);
    const char *kept = n > 0 ? *at : NULL;

    if (n > 0) {
        memcpy(*at, text, n);
    }
    *at += n;
    return kept;
}

static struct job *make_job(struct vxd_request *request, const struct vxd_body *body)
{
    size_t n_items = body->n_query * sizeof *body->query;
    size_t n_bytes = n_items + bytes_of(body->format);
    struct vxd_query_item *items;
    struct job *job;
    char *at;

    for (size_t i = 0; i < body->n_query; i++) {
        n_bytes += bytes_of(body->query[i].key) + bytes_of(body->query[i].value);
    }
    job = malloc(sizeof *job + n_bytes);
    if (job == NULL) {
        return NULL;
    }
    *job = (struct job){.request = request, .body = *body};
    items = (struct vxd_query_item *)(void *)job->text; /* aligned: it follows pointers */
    at = job->text + n_items;
    for (size_t i = 0; i < body->n_query; i++) {
        items[i].key = keep(body->query[i].key, &at);
        items[i].value = keep(body->query[i].value, &at);
    }
    job->body.query = items;
    job->body.format = keep(body->format, &at);
    return job;
}

void vxd_http_decode(struct vxd_http_decoders *decoders, struct vxd_request *request,
                     const struct vxd_body *body)
{
    struct vxd_err err = {0};
    struct job *job = make_job(request, body);
    bool is_stopping;

    if (job == NULL) {
        (void)vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the request");
        vxd_request_fail(request, &err);
        return;
    }
    if (vxd_request_watch(request, &err) != VXD_OK) {
        free(job);
        vxd_request_fail(request, &err);
        return;
    }
    (void)pthread_mutex_lock(&decoders->lock);
    is_stopping = decoders->is_stopping;
    if (!is_stopping) {
        *decoders->last = job;
        decoders->last = &job->next;
        (void)pthread_cond_signal(&decoders->wake);
    }
    (void)pthread_mutex_unlock(&decoders->lock);
    if (is_stopping) {
        vxd_request_submit(request, body);
        free(job);
    }
}
