// SPDX-License-Identifier: Apache-2.0
/* The thread that packs records while the lane that needs them goes on. A record that it has not
 * begun when it is needed is packed by the lane itself, so nothing waits for a busy machine to run
 * this thread. */
#include <pthread.h>
#include <stdlib.h>

#include "server/registry/registry_internal.h"

struct vxd_registry_packer {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_cond_t done;
    struct vxd_packing *first; /* those that nobody has begun */
    struct vxd_packing **end;
    bool stopping;
};

static void *run(void *argument)
{
    struct vxd_registry_packer *packer = argument;

    (void)pthread_mutex_lock(&packer->mutex);
    while (!packer->stopping) {
        struct vxd_packing *packing = packer->first;

        if (packing == NULL) {
            (void)pthread_cond_wait(&packer->wake, &packer->mutex);
            continue;
        }
        packer->first = packing->next;
        packer->end = packer->first == NULL ? &packer->first : packer->end;
        packing->state = VXD_PACKING_RUNS;
        (void)pthread_mutex_unlock(&packer->mutex);
        packing->run(packing->user);
        (void)pthread_mutex_lock(&packer->mutex);
        packing->state = VXD_PACKING_DONE;
        (void)pthread_cond_broadcast(&packer->done);
    }
    (void)pthread_mutex_unlock(&packer->mutex);
    return NULL;
}

enum vxd_status vxd_registry_packer_start(struct vxd_registry_packer **out,
                                          struct vxd_err *err)
{
    struct vxd_registry_packer *packer = calloc(1, sizeof *packer);

    if (packer == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a thread");
    }
    packer->end = &packer->first;
    (void)pthread_mutex_init(&packer->mutex, NULL);
    (void)pthread_cond_init(&packer->wake, NULL);
    (void)pthread_cond_init(&packer->done, NULL);
    if (pthread_create(&packer->thread, NULL, run, packer) != 0) {
        (void)pthread_cond_destroy(&packer->done);
        (void)pthread_cond_destroy(&packer->wake);
        (void)pthread_mutex_destroy(&packer->mutex);
        free(packer);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no thread that packs records");
    }
    *out = packer;
    return VXD_OK;
}

void vxd_registry_packer_stop(struct vxd_registry_packer *packer)
{
    if (packer == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&packer->mutex);
    packer->stopping = true;
    (void)pthread_cond_signal(&packer->wake);
    (void)pthread_mutex_unlock(&packer->mutex);
    (void)pthread_join(packer->thread, NULL);
    (void)pthread_cond_destroy(&packer->done);
    (void)pthread_cond_destroy(&packer->wake);
    (void)pthread_mutex_destroy(&packer->mutex);
    free(packer);
}

void vxd_registry_begin_packing(struct vxd_registry *registry,
                                struct vxd_packing *packing)
{
    struct vxd_registry_packer *packer = registry->packer;

    packing->is_begun = true;
    packing->next = NULL;
    (void)pthread_mutex_lock(&packer->mutex);
    packing->state = VXD_PACKING_WAITS;
    *packer->end = packing;
    packer->end = &packing->next;
    (void)pthread_cond_signal(&packer->wake);
    (void)pthread_mutex_unlock(&packer->mutex);
}

/* Takes one that nobody has begun out of the queue. The mutex is held. */
static bool take_back(struct vxd_registry_packer *packer, struct vxd_packing *packing)
{
    struct vxd_packing **at = &packer->first;

    if (packing->state != VXD_PACKING_WAITS) {
        return false;
    }
    while (*at != packing) {
        at = &(*at)->next;
    }
    *at = packing->next;
    packer->end = packing->next == NULL ? at : packer->end;
    return true;
}

void vxd_registry_end_packing(struct vxd_registry *registry, struct vxd_packing *packing,
                              bool is_needed)
{
    struct vxd_registry_packer *packer = registry->packer;
    bool is_ours;

    if (!packing->is_begun) {
        return;
    }
    (void)pthread_mutex_lock(&packer->mutex);
    is_ours = take_back(packer, packing);
    while (!is_ours && packing->state != VXD_PACKING_DONE) {
        (void)pthread_cond_wait(&packer->done, &packer->mutex);
    }
    (void)pthread_mutex_unlock(&packer->mutex);
    if (is_ours && is_needed) {
        packing->run(packing->user);
    }
    packing->is_begun = false;
}
