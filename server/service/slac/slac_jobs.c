// SPDX-License-Identifier: Apache-2.0
/* The jobs that run or ran last, under one mutex. */
#include <pthread.h>
#include <stdlib.h>

#include "proto/base/clock.h"
#include "server/service/slac/slac_service.h"

struct slot {
    uint64_t id; /* 0: the slot is free */
    char name[VXD_NAME_BYTES];
    struct vxd_slac_progress progress;
    bool is_cancelled;
};

struct vxd_slac_jobs {
    pthread_mutex_t mutex;
    uint64_t n_begun;
    struct slot slots[VXD_SLAC_JOBS];
};

enum vxd_status vxd_slac_jobs_create(struct vxd_slac_jobs **out, struct vxd_err *err)
{
    struct vxd_slac_jobs *jobs = calloc(1, sizeof *jobs);

    *out = NULL;
    if (jobs == NULL || pthread_mutex_init(&jobs->mutex, NULL) != 0) {
        free(jobs);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for jobs");
    }
    *out = jobs;
    return VXD_OK;
}

void vxd_slac_jobs_destroy(struct vxd_slac_jobs *jobs)
{
    if (jobs != NULL) {
        (void)pthread_mutex_destroy(&jobs->mutex);
        free(jobs);
    }
}

static bool runs(const struct slot *slot)
{
    return slot->id != 0 && slot->progress.ended_ns == 0;
}

/* The last job of a name; NULL: none. The mutex is held. */
static struct slot *find_name(struct vxd_slac_jobs *jobs, const char *name)
{
    struct slot *found = NULL;

    for (size_t i = 0; i < VXD_SLAC_JOBS; i++) {
        struct slot *slot = &jobs->slots[i];

        if (slot->id != 0 && strcmp(slot->name, name) == 0 &&
            (found == NULL || slot->id > found->id)) {
            found = slot;
        }
    }
    return found;
}

static struct slot *find_id(struct vxd_slac_jobs *jobs, uint64_t id)
{
    for (size_t i = 0; i < VXD_SLAC_JOBS; i++) {
        if (jobs->slots[i].id == id) {
            return &jobs->slots[i];
        }
    }
    return NULL;
}

/* The slot of the oldest job that has ended; NULL: all run. The mutex is held. */
static struct slot *find_place(struct vxd_slac_jobs *jobs)
{
    struct slot *oldest = NULL;

    for (size_t i = 0; i < VXD_SLAC_JOBS; i++) {
        struct slot *slot = &jobs->slots[i];

        if (!runs(slot) && (oldest == NULL || slot->id < oldest->id)) {
            oldest = slot;
        }
    }
    return oldest;
}

enum vxd_status vxd_slac_jobs_begin(struct vxd_slac_jobs *jobs, const char *name,
                                    uint32_t iterations, uint64_t *id,
                                    struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;
    struct slot *same;
    struct slot *slot;

    (void)pthread_mutex_lock(&jobs->mutex);
    same = find_name(jobs, name);
    slot = find_place(jobs);
    if (same != NULL && runs(same)) {
        status = vxd_fail(err, VXD_ALREADY_EXISTS, "name",
                          "an alignment \"%s\" is running", name);
    } else if (slot == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "%d alignments are running, which is as many as there can be",
                          VXD_SLAC_JOBS);
    } else {
        *slot = (struct slot){.id = ++jobs->n_begun};
        (void)snprintf(slot->name, sizeof slot->name, "%s", name);
        slot->progress.iterations = iterations;
        slot->progress.began_ns = vxd_clock_ns();
        *id = slot->id;
    }
    (void)pthread_mutex_unlock(&jobs->mutex);
    return status;
}

void vxd_slac_jobs_get_usage(struct vxd_slac_jobs *jobs, struct vxd_slac_usage *out)
{
    *out = (struct vxd_slac_usage){0};
    (void)pthread_mutex_lock(&jobs->mutex);
    for (size_t i = 0; i < VXD_SLAC_JOBS; i++) {
        if (runs(&jobs->slots[i])) {
            out->n_jobs++;
            out->n_bytes += jobs->slots[i].progress.n_bytes;
        }
    }
    (void)pthread_mutex_unlock(&jobs->mutex);
}

void vxd_slac_jobs_update(struct vxd_slac_jobs *jobs, uint64_t id, uint32_t iteration,
                          const struct vxd_slac_loss *loss,
                          const struct vxd_slac_info *info)
{
    struct slot *slot;

    (void)pthread_mutex_lock(&jobs->mutex);
    slot = find_id(jobs, id);
    if (slot != NULL) {
        slot->progress.iteration = iteration;
        slot->progress.loss = *loss;
        slot->progress.n_control_points = info->n_control_points;
        slot->progress.n_bytes = info->n_bytes;
    }
    (void)pthread_mutex_unlock(&jobs->mutex);
}

bool vxd_slac_jobs_is_cancelled(struct vxd_slac_jobs *jobs, uint64_t id)
{
    struct slot *slot;
    bool is;

    (void)pthread_mutex_lock(&jobs->mutex);
    slot = find_id(jobs, id);
    is = slot != NULL && slot->is_cancelled;
    (void)pthread_mutex_unlock(&jobs->mutex);
    return is;
}

void vxd_slac_jobs_end(struct vxd_slac_jobs *jobs, uint64_t id,
                       Voxeld__V1__SlacState state, const char *error)
{
    struct slot *slot;

    (void)pthread_mutex_lock(&jobs->mutex);
    slot = find_id(jobs, id);
    if (slot != NULL) {
        slot->progress.state = state;
        slot->progress.ended_ns = vxd_clock_ns();
        (void)snprintf(slot->progress.error, sizeof slot->progress.error, "%s", error);
    }
    (void)pthread_mutex_unlock(&jobs->mutex);
}

static enum vxd_status fail_unknown(const char *name, struct vxd_err *err)
{
    return vxd_fail(err, VXD_NOT_FOUND, "name",
                    "no alignment \"%.63s\" is running, nor among the %d last ones", name,
                    VXD_SLAC_JOBS);
}

enum vxd_status vxd_slac_jobs_get(struct vxd_slac_jobs *jobs, const char *name,
                                  struct vxd_slac_progress *out, struct vxd_err *err)
{
    const struct slot *slot;

    (void)pthread_mutex_lock(&jobs->mutex);
    slot = find_name(jobs, name);
    if (slot != NULL) {
        *out = slot->progress;
    }
    (void)pthread_mutex_unlock(&jobs->mutex);
    return slot != NULL ? VXD_OK : fail_unknown(name, err);
}

enum vxd_status vxd_slac_jobs_cancel(struct vxd_slac_jobs *jobs, const char *name,
                                     bool *was_running, struct vxd_err *err)
{
    struct slot *slot;

    (void)pthread_mutex_lock(&jobs->mutex);
    slot = find_name(jobs, name);
    *was_running = slot != NULL && runs(slot);
    if (*was_running) {
        slot->is_cancelled = true;
    }
    (void)pthread_mutex_unlock(&jobs->mutex);
    return slot != NULL ? VXD_OK : fail_unknown(name, err);
}
